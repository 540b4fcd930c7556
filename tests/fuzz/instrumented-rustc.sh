#!/bin/sh
# rustc for our own crates (RUSTC_WORKSPACE_WRAPPER): with libFuzzer's coverage counters, optimised,
# and with all checks. Dependencies are compiled as always, so nothing of them is built twice; no
# nightly toolchain is needed.
exec "$@" \
    --cfg fuzzing -Copt-level=2 -Cdebug-assertions=on -Coverflow-checks=on -Ccodegen-units=16 \
    -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares
