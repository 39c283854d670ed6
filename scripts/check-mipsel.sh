#!/usr/bin/env bash
# Checks the crates of a node and of the simulator for small routers: 32 bits, and no 64-bit
# atomics. Rust ships no standard library for them, so one is checked from its source, with nightly
# Rust. No C library for them comes with Rust, so nothing is linked or run.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/skip.sh
target=mipsel-unknown-linux-musl
has_source() { [ -d "$(rustc +nightly --print sysroot 2>/dev/null)/lib/rustlib/src/rust" ]; }
if ! has_source && command -v rustup >/dev/null 2>&1; then
  timeout 300 rustup toolchain install nightly --profile minimal --component rust-src || true
fi
has_source || skip "nothing was checked for $target, since nightly Rust has no rust-src here"
cargo +nightly check --locked -Zbuild-std --target "$target" -p ncmesh-node -p ncmesh-sim
