#!/usr/bin/env bash
# headers.sh INCLUDE_DIR - compiles each public header by itself as C11, C17 and C++17 with warnings as errors, and calls that
# compilers must warn of.
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
# An option without its name would be overwritten in silence: mesh_sum(x, 0) would sum over everything.
for call in "mesh_sum(x, 0)" "mesh_argmax(x, 1)" "mesh_zeros(mesh_shape_of(x), m, p, MESH_F64)" "mesh_sgd(net, 0.1)"; do
    program="#include <mesh/mesh.h>
int f(mesh_dtensor *x, mesh_device_mesh *m, mesh_placements p, mesh_module *net) { (void)x, (void)m, (void)p, (void)net; return $call != 0; }"
    if printf '%s\n' "$program" | cc -std=c17 -xc -Werror -fsyntax-only -I"$include" - 2>/dev/null; then
        echo "no warning for $call"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
