#!/usr/bin/env bash
# Runs every fuzz target for a bounded time. Works with stable Rust: the coverage counters that
# libFuzzer needs are ordinary code generation options. Findings are in fuzz/artifacts/ afterwards.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
export CARGO_TARGET_DIR="$PWD/target"
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cdebug-assertions -Coverflow-checks"
seconds=${FUZZ_SECONDS:-10}
cargo build --release --target "$(rustc -vV | sed -n 's/^host: //p')"
bin="$CARGO_TARGET_DIR/$(rustc -vV | sed -n 's/^host: //p')/release"
# What a target begins with, besides what it found before.
seeds() {
  case $1 in
    scenario) echo ../scenarios ../crates/sim/tests/data ;;
    api | config | stored) echo "seeds/$1" ;;
  esac
}

for target in fuzz_targets/*.rs; do
  name=$(basename "$target" .rs)
  mkdir -p "corpus/$name" "artifacts/$name"
  echo "fuzz $name for $seconds s"
  # shellcheck disable=SC2046 # One word for each folder.
  "$bin/$name" -max_total_time="$seconds" -max_len=8192 -rss_limit_mb=2048 -timeout=10 \
    -verbosity=0 -print_final_stats=1 -artifact_prefix="artifacts/$name/" \
    "corpus/$name" $(seeds "$name") 2>&1 | tail -n 12
done
echo "fuzzing found nothing"
