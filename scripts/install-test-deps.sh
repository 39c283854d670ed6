#!/usr/bin/env bash
# Installs what the tests use beside Rust: network namespaces and packet filters for the radio
# tests, babeld beside them, iperf3, iperf, ping, setpriv and Avahi for tunnels, a C++ compiler for
# the fuzzer's engine, Python's venv, Wireshark's tshark for captures and their dissector, ffmpeg
# for streams of video, Chromium for the console, Prometheus for the metrics, QEMU for the NEON
# kernels, systemd's check of units. Without root or apt it only says what is missing; tests that
# need it are then skipped, which is a failure if CI is in the environment.
set -euo pipefail
missing=()
need() { command -v "$1" >/dev/null 2>&1 || missing+=("$2"); }
need ip iproute2
need nft nftables
need iperf3 iperf3
need iperf iperf
need ping iputils-ping
need avahi-daemon avahi-daemon
need avahi-browse avahi-utils
need dbus-daemon dbus
need setpriv util-linux
need babeld babeld
need g++ g++
need python3 python3
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
need tshark tshark
need ffmpeg ffmpeg
need chromium chromium
need prometheus prometheus
need qemu-aarch64-static qemu-user-static
need systemd-analyze systemd
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  echo "not installed, tests that need them will be skipped: ${missing[*]}" >&2
  exit 0
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
