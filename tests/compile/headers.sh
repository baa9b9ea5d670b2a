#!/usr/bin/env bash
# headers.sh INCLUDE_DIR - compiles each public header by itself as C11, C17 and C++17 with warnings as errors.
set -uo pipefail
include=$1
passed=0 failed=0
for header in "$include"/mesh/*.h; do
    for language in "cc -std=c11 -xc" "cc -std=c17 -xc" "c++ -std=c++17 -xc++"; do
        # shellcheck disable=SC2086
        if printf "#include <mesh/%s>\nint is_a_translation_unit;\n" "$(basename "$header")" |
            $language -Wall -Wextra -Wpedantic -Wconversion -Werror -Wno-missing-declarations -fsyntax-only -fmax-errors=3 -I"$include" -; then
            passed=$((passed + 1))
        else
            echo "$(basename "$header") does not compile alone with: $language"
            failed=$((failed + 1))
        fi
    done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
