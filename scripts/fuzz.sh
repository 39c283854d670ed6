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
# Runs the target of one source file.
fuzz() {
  name=$(basename "$1" .rs)
  # Seeds, besides its earlier findings.
  case $name in
    scenario) seeds=(../scenarios ../crates/sim/tests/data) ;;
    api | config | manifest | stack | stored) seeds=("seeds/$name") ;;
    *) seeds=() ;;
  esac
  mkdir -p "corpus/$name" "artifacts/$name"
  status=0
  said=$("$bin/$name" -max_total_time="$seconds" -max_len=8192 -rss_limit_mb=2048 -timeout=10 \
    -verbosity=0 -print_final_stats=1 -artifact_prefix="artifacts/$name/" \
    "corpus/$name" "${seeds[@]}" 2>&1) || status=$?
  # In one piece: targets run side by side.
  printf 'fuzz %s for %s s\n%s\n' "$name" "$seconds" "$(tail -n 12 <<<"$said")"
  return "$status"
}
export -f fuzz
export bin seconds
printf '%s\0' fuzz_targets/*.rs | xargs -0 -P "$(nproc)" -I{} bash -euc 'fuzz {}'
echo "fuzzing found nothing"
