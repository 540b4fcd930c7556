#!/usr/bin/env bash
# Runs a command with cargo able to build for Cortex-M, and with an emulator of one:
#
#     .ci/arm.sh .ci/firmware.py check
#
# The ordinary way is `rustup target add` and `apt-get install qemu-system-arm`. Where the first cannot reach its
# server, compiler and library come from Debian (toolchain.sh). Where the second would remove packages, the
# emulator is unpacked and not installed.
set -euo pipefail
cd "$(dirname "$0")/.."

targets=(thumbv7em-none-eabihf thumbv6m-none-eabi)
. .ci/toolchain.sh

if ! rustup_targets "${targets[@]}"; then
    debian_rust
    debian_library core,alloc "${targets[@]}"
    # Every target names this linker; it comes with rustup's compiler.
    lld=$(find "$(env -u RUSTC rustc --print sysroot)" -name rust-lld | head -n 1)
    export CARGO_TARGET_THUMBV7EM_NONE_EABIHF_LINKER=$lld CARGO_TARGET_THUMBV6M_NONE_EABI_LINKER=$lld
fi

machine_emulator qemu-system-arm qemu-system-arm

exec "$@"
