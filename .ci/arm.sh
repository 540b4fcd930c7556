#!/usr/bin/env bash
# Runs a command with cargo able to build for Cortex-M, and with an emulator of one:
#
#     .ci/arm.sh .ci/firmware.py check
#
# The ordinary way is `rustup target add` and `apt-get install qemu-system-arm`. Where the first cannot
# reach its server, the compiler, standard library and its source come from Debian, all of one version, unpacked
# into a cache and not installed: rustup stays as it is. Where the second would remove packages, the emulator is
# unpacked too. ARM_TOOLCHAIN=debian takes the detour on purpose.
set -euo pipefail
cd "$(dirname "$0")/.."

targets=(thumbv7em-none-eabihf thumbv6m-none-eabi)
cache=${ARM_CACHE:-$PWD/target/arm}
mkdir -p "$cache"

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

# unpack FOLDER PACKAGE…: the packages' files, of the versions the mirror has.
unpack() {
    local into=$1
    shift
    (cd "$cache" && rm -rf debs && mkdir debs && cd debs && apt-get download -qq "$@" 2>/dev/null &&
        for package in *.deb; do dpkg -x "$package" "$into"; done)
    rm -rf "$cache/debs"
}

debian_toolchain() {
    local root=$cache/debian
    if [ ! -e "$root/complete" ]; then
        rm -rf "$root"
        mkdir -p "$root"
        as_root apt-get update -qq
        local runtime
        # The shared library has the compiler's version in its name.
        runtime=$(apt-cache depends libstd-rust-web-dev | awk '/Depends: libstd-rust-web-[0-9]/ {print $2; exit}')
        unpack "$root" rustc-web rust-web-src "$runtime" libstd-rust-web-dev libllvm22
        # Found beside its libraries, and only there: cargo and the linker keep their own.
        cat > "$root/rustc" <<SCRIPT
#!/bin/sh
LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu:$root/usr/lib exec $root/usr/bin/rustc "\$@"
SCRIPT
        chmod +x "$root/rustc"
    fi
    export RUSTC=$root/rustc
    # Every target names this linker; it comes with rustup's compiler.
    local lld
    lld=$(find "$(env -u RUSTC rustc --print sysroot)" -name rust-lld | head -n 1)
    export CARGO_TARGET_THUMBV7EM_NONE_EABIHF_LINKER=$lld CARGO_TARGET_THUMBV6M_NONE_EABI_LINKER=$lld
    if [ ! -e "$root/complete" ]; then
        # core and alloc, built once and put where a target's library is looked for. With bitcode, or
        # `lto = true` fails.
        mkdir -p "$root/library/src"
        printf '[package]\nname = "library"\nedition = "2024"\n[workspace]\n' > "$root/library/Cargo.toml"
        printf '#![no_std]\n' > "$root/library/src/lib.rs"
        for target in "${targets[@]}"; do
            (cd "$root/library" && RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Cembed-bitcode=yes CARGO_TARGET_DIR=$root/build \
                cargo build --release -Zbuild-std=core,alloc --target "$target")
            mkdir -p "$root/usr/lib/rustlib/$target/lib"
            cp "$root/build/$target/release/deps/"lib{core,alloc,compiler_builtins}-*.r{lib,meta} \
                "$root/usr/lib/rustlib/$target/lib/"
        done
        touch "$root/complete"
    fi
}

if [ "${ARM_TOOLCHAIN:-}" = debian ] ||
    ! timeout 120 rustup target add "${targets[@]}" >"$cache/rustup.log" 2>&1; then
    debian_toolchain
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
