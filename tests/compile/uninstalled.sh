#!/usr/bin/env bash
# uninstalled.sh BUILD ROOT - what pkg-config says of the library, in the build tree and once installed, is enough, and no more.
set -uo pipefail
build=$1 root=$2 passed=0 failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
claim() {
    if "${@:2}"; then
        passed=$((passed + 1))
    else
        echo "$1"
        failed=$((failed + 1))
    fi
}
flags_in() { PKG_CONFIG_PATH=$build/$1 pkg-config --cflags --libs meshclient; }
names_no_other() { ! grep -qi -e openblas -e libuv -e protobuf <<<"$(flags_in "$1")"; }
builds() {
    # shellcheck disable=SC2046
    cc "$root/client/examples/hello.c" $(flags_in meson-uninstalled) -o "$work/hello"
}
claim "the flags of the build tree name what the library is made of" names_no_other meson-uninstalled
claim "the flags of the installation name what the library is made of" names_no_other meson-private
claim "an example does not build with the flags of the build tree" builds
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
