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

if ! command -v qemu-system-arm >/dev/null; then
    if [ ! -x "$cache/qemu/usr/bin/qemu-system-arm" ]; then
        as_root apt-get update -qq
        if ! as_root apt-get install -y -qq --no-remove --no-install-recommends qemu-system-arm \
            >"$cache/apt.log" 2>&1; then
            # Its libraries get along with everything; its data is for machines with a firmware of their own.
            apt-cache depends qemu-system-arm | awk '/^  Depends: lib/ {print $2}' |
                as_root xargs apt-get install -y -qq --no-remove --no-install-recommends >"$cache/apt.log"
            unpack "$cache/qemu" qemu-system-arm
        fi
    fi
    export PATH=$PATH:$cache/qemu/usr/bin
fi

exec "$@"
