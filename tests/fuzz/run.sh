#!/usr/bin/env bash
# Runs fuzz targets with libFuzzer, guided by coverage, on the stable toolchain.
#
#   tests/fuzz/run.sh SECONDS [TARGET...]    each target for so long; all targets if none is named
#   tests/fuzz/run.sh core                   what .ci/run asks of the core's targets: a fixed seed
#   tests/fuzz/run.sh daemon                 the same of the daemon's and the tool's
#
# What is found lies in fuzz/<target>/ in the target folder; the saved corpus is only read.
set -euo pipefail
cd "$(dirname "$0")/../.."

core="cbor document instant json link link_message manifesto number pose profile proof reference stream text uri value"
daemon="block config interface log manifest message parameters recording request segment sidecar signature
    store time_range token trajectory transaction witness"
# No input may take long or much memory: a decoder reserves nothing because a header says so.
bounds=(-max_len=16384 -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=64)

case ${1:-} in
core) targets=$core bounds+=(-seed=1 -max_total_time=5) ;;
daemon) targets=$daemon bounds+=(-seed=1 -max_total_time=3) ;;
[1-9]*) bounds+=("-max_total_time=$1") && shift && targets=${*:-$core $daemon} ;;
*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac

if ! command -v c++ >/dev/null; then
    [ "$(id -u)" = 0 ] || sudo="sudo -n"
    ${sudo:-} apt-get update -qq && ${sudo:-} apt-get install -y --no-remove -qq g++
fi

features=(--no-default-features --features libfuzzer)
bins=()
for target in $targets; do
    bins+=(--bin "$target")
    case " $core " in *" $target "*) ;; *) features=(--features libfuzzer) ;; esac
done
RUSTC_WORKSPACE_WRAPPER=$PWD/tests/fuzz/instrumented-rustc.sh \
    cargo build --quiet --locked -p omird-fuzz "${features[@]}" "${bins[@]}"

folder=${CARGO_TARGET_DIR:-target}
# fuzz TARGET: what it found is the end of its log, and tells how to see it again.
fuzz() {
    local target=$1 found=$folder/fuzz/$1 log=$folder/fuzz/$1.log
    mkdir -p "$found"
    if "$folder/debug/$target" "${bounds[@]}" -print_final_stats=1 -artifact_prefix="$found/" \
        "$found" "tests/fuzz/corpus/$target" >"$log" 2>&1; then
        printf '%-12s %s runs, %s\n' "$target" \
            "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
            "$(grep -o 'cov: [0-9]* ft: [0-9]*' "$log" | tail -1)"
    else
        printf '%s\n%s: a finding; replay it with %s/debug/%s FILE\n' \
            "$(tail -50 "$log")" "$target" "$folder" "$target"
        return 1
    fi
}

# A target uses one core.
cores=$(nproc) failed=0
for target in $targets; do
    [ "$(jobs -r | wc -l)" -lt "$cores" ] || wait -n || failed=1
    fuzz "$target" &
done
while [ -n "$(jobs -p)" ]; do wait -n || failed=1; done
exit "$failed"
