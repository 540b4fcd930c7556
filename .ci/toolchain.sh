# Read by arm.sh and boards: compilers for other machines where rustup cannot fetch them. They come from Debian,
# all of one version, unpacked into a cache and not installed: rustup stays as it is. ARM_TOOLCHAIN=debian takes
# this detour on purpose.

cache=${ARM_CACHE:-$PWD/target/arm}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

# unpack FOLDER PACKAGE…: the packages' files, of the versions the mirror has.
unpack() {
    local into=$1
    shift
    rm -rf "$cache/debs" && mkdir "$cache/debs"
    # As root it warns about each file that its own user may not write here.
    (cd "$cache/debs" && apt-get download -qq "$@" 2>"$cache/download.log") || { cat "$cache/download.log" >&2 && return 1; }
    for package in "$cache/debs/"*.deb; do dpkg -x "$package" "$into"; done
    rm -rf "$cache/debs"
}

# machine_emulator PROGRAM PACKAGE…: qemu-system-… on PATH. Where installing it would remove packages, the first
# package is unpacked and not installed.
machine_emulator() {
    local program=$1
    shift
    ! command -v "$program" >/dev/null || return 0
    if [ ! -x "$cache/qemu/usr/bin/$program" ]; then
        as_root apt-get update -qq
        ! as_root apt-get install -y -qq --no-remove --no-install-recommends "$@" >"$cache/apt.log" 2>&1 || return 0
        # Its libraries get along with everything; its data is for machines with a firmware of their own.
        apt-cache depends "$1" | awk '/^  Depends: lib/ {print $2}' |
            as_root xargs apt-get install -y -qq --no-remove --no-install-recommends >"$cache/apt.log"
        unpack "$cache/qemu" "$1"
    fi
    export PATH=$PATH:$cache/qemu/usr/bin
}

# rustup_targets TARGET…: the ordinary way; fails where it cannot be gone.
rustup_targets() {
    [ "${ARM_TOOLCHAIN:-}" != debian ] && timeout 300 rustup target add "$@" >"$cache/rustup.log" 2>&1
}

# Debian's compiler with the source of its library in $cache/debian; sets RUSTC.
debian_rust() {
    local root=$cache/debian
    if [ ! -e "$root/unpacked" ]; then
        rm -rf "$root"
        mkdir -p "$root"
        as_root apt-get update -qq
        local runtime llvm
        # Their versions are in the names of these libraries.
        runtime=$(apt-cache depends libstd-rust-web-dev | awk '/Depends: libstd-rust-web-[0-9]/ {print $2; exit}')
        llvm=$(apt-cache depends "$runtime" | awk '/Depends: libllvm[0-9]/ {print $2; exit}')
        unpack "$root" rustc-web rust-web-src "$runtime" libstd-rust-web-dev "$llvm"
        # Found beside its libraries, and only there: cargo and the linker keep their own.
        cat > "$root/rustc" <<SCRIPT
#!/bin/sh
LD_LIBRARY_PATH=$root/usr/lib/$(gcc -print-multiarch):$root/usr/lib exec $root/usr/bin/rustc "\$@"
SCRIPT
        chmod +x "$root/rustc"
        touch "$root/unpacked"
    fi
    export RUSTC=$root/rustc
}

# debian_library CRATES TARGET…: the library (`core,alloc`) built once, and put where a target's is looked for.
debian_library() {
    local crates=$1 root=$cache/debian target
    shift
    mkdir -p "$root/library/src"
    printf '[package]\nname = "library"\nedition = "2024"\n[workspace]\n' > "$root/library/Cargo.toml"
    printf '#![no_std]\n' > "$root/library/src/lib.rs"
    for target in "$@"; do
        [ ! -e "$root/$target" ] || continue
        # With bitcode, or `lto = true` fails; without this folder's path in it.
        (cd "$root/library" && RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$root/build \
            RUSTFLAGS="-Cembed-bitcode=yes --remap-path-prefix=$root=debian" env -u CARGO_ENCODED_RUSTFLAGS \
            cargo build --release -Zbuild-std="$crates" --target "$target")
        mkdir -p "$root/usr/lib/rustlib/$target/lib"
        find "$root/build/$target/release/deps" -name 'lib*.r*' ! -name 'liblibrary-*' \
            -exec cp {} "$root/usr/lib/rustlib/$target/lib/" \;
        touch "$root/$target"
    done
}
