/* proto/base/vector.c - the vectors of this machine.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/vector.h"

#include <stdbool.h>

#include "base/check.h"

enum vector_level vector_level = VECTOR_PLAIN;

enum vector_level vector_level_of_machine(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        return VECTOR_PLAIN;
    }
    bool is_widest = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return is_widest ? VECTOR_512 : VECTOR_256;
#else
    return VECTOR_PLAIN;
#endif
}

void vector_level_set(enum vector_level level)
{
    PRE(level <= vector_level_of_machine());
    vector_level = level;
}

__attribute__((constructor)) static void take_the_widest(void)
{
    vector_level = vector_level_of_machine();
}
