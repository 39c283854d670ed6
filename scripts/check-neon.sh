#!/usr/bin/env bash
# Compiles the NEON kernels, which cannot run on this machine. Needs that target's standard library.
set -euo pipefail
cd "$(dirname "$0")/.."
target=aarch64-unknown-linux-gnu
installed() { [ -d "$(rustc --print target-libdir --target "$target")" ]; }
if ! installed && command -v rustup >/dev/null 2>&1; then
  timeout 120 rustup target add "$target" || true
fi
if ! installed; then
  echo "skipped: the NEON kernels were not compiled, since the target $target is not installed" >&2
  exit 0
fi
${CARGO:-cargo} clippy -p ncmesh-gf --target "$target" -- -D warnings
