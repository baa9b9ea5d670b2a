#!/usr/bin/env bash
# readme.sh ROOT - the program that the README shows is client/examples/train_2d.c, to the letter.
set -uo pipefail
cd "$1" || exit 1
shown=$(awk '/^```c$/ { on = 1; next } /^```$/ { if (on) exit } on' README.md)
if [ -n "$shown" ] && [ "$shown" = "$(cat client/examples/train_2d.c)" ]; then
    echo "1 passed, 0 failed"
else
    diff <(printf '%s\n' "$shown") client/examples/train_2d.c
    echo "0 passed, 1 failed"
    exit 1
fi
