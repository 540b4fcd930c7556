#!/bin/sh
# Makes a package of a Model2Vec folder that you bring: model-package.sh FOLDER NAME VERSION LICENCE
# writes omird-model-NAME_VERSION_all.deb into the current folder. LICENCE is that of the model, in words or as a path to its text.
set -eu

if [ $# -ne 4 ]; then
    echo "usage: model-package.sh FOLDER NAME VERSION LICENCE" >&2
    exit 2
fi
folder=$1 name=$2 version=$3 licence=$4
case $name in
    *[!a-z0-9.+-]* | [!a-z0-9]* | '' ) echo "the name $name: a-z, 0-9, . + and - alone" >&2; exit 2 ;;
esac
case $version in
    [0-9]*) ;;
    *) echo "the version $version begins with no digit" >&2; exit 2 ;;
esac
tokenizer=tokenizer.json
[ -f "$folder/tokenizer.json" ] || tokenizer=vocab.txt
for file in model.safetensors "$tokenizer"; do
    [ -f "$folder/$file" ] || { echo "$folder has no $file: it is no Model2Vec folder" >&2; exit 1; }
done

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
models=$root/usr/share/omird/models/$name
doc=$root/usr/share/doc/omird-model-$name
install -d "$root/DEBIAN" "$models" "$doc"
for file in model.safetensors tokenizer.json vocab.txt config.json tokenizer_config.json; do
    [ ! -f "$folder/$file" ] || install -m 644 "$folder/$file" "$models/"
done
if [ -f "$licence" ]; then install -m 644 "$licence" "$doc/copyright"; else echo "$licence" > "$doc/copyright"; fi
size=$(du -sk "$root/usr" | cut -f1)
cat > "$root/DEBIAN/control" <<END
Package: omird-model-$name
Version: $version
Architecture: all
Section: misc
Priority: optional
Installed-Size: $size
Enhances: omird
Maintainer: whoever made this package
Description: static embedding $name for the omird robot memory daemon
 A Model2Vec folder. Set backend = "static" and
 model = "/usr/share/omird/models/$name" under [embedding] in omird.toml.
END
dpkg-deb --root-owner-group --build "$root" "omird-model-${name}_${version}_all.deb"
