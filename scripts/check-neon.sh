#!/usr/bin/env bash
# Lints the NEON kernels and runs their tests in QEMU, since most machines that build have none. The
# target brings its own libc, and rust-lld comes with Rust, so no other toolchain is needed.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/skip.sh
target=aarch64-unknown-linux-musl
installed() { [ -d "$(rustc --print target-libdir --target "$target")" ]; }
if ! installed && command -v rustup >/dev/null 2>&1; then
  timeout 300 rustup target add "$target" || true
fi
installed || skip "the NEON kernels were not compiled, since the target $target is not installed"
cargo=${CARGO:-cargo}
"$cargo" clippy -p ncmesh-gf --target "$target" -- -D warnings
command -v qemu-aarch64-static >/dev/null 2>&1 ||
  skip "the NEON kernels did not run, since qemu-aarch64-static is missing (qemu-user-static)"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=rust-lld
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUNNER=qemu-aarch64-static
"$cargo" test --quiet -p ncmesh-gf --target "$target" --test kernels
