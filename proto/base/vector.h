/* proto/base/vector.h - loops that are compiled for wider vectors as well, of which the machine's widest is taken at
 * run time.
 *
 *     static VECTOR_ROW(add, (float *restrict out, const float *x, int64_t n), (out, x, n))
 *     {
 *         for (...)
 *     }
 *
 * defines add(), its parameters and then their names; VECTOR_VALUE one that returns something.  A call costs a load and
 * a branch.
 * The versions compute the same bits: no compiler fuses a multiplication with an addition here (-ffp-contract=off),
 * sums go by lanes whose number is written in the source, and fma() is exact everywhere: one instruction where the
 * vectors are wider or the processor is no x86-64, a call of the C library (slow, and right) in the version for every
 * x86-64.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_VECTOR_H
#define BASE_VECTOR_H

enum vector_level {
    VECTOR_PLAIN, /* what every processor of the kind has */
    VECTOR_256,   /* x86-64 with AVX2 and FMA */
    VECTOR_512,   /* with AVX-512 as well */
    N_VECTOR_LEVELS
};

/* Set before main(); plain until then. */
extern enum vector_level vector_level;

/* The widest that the machine and its system support. */
enum vector_level vector_level_of_machine(void);

/* For tests: from now on this one, which is none above the machine's; in no other thread may a loop be running. */
void vector_level_set(enum vector_level level);

/* Vectors of the compilers' own kind (vector_size) can be shuffled. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define HAS_SHUFFLES 1
#endif
#endif

#define VECTOR_INLINE static inline __attribute__((always_inline))

#ifdef __x86_64__

#define VECTOR_TARGET_256 "avx2,fma"
#define VECTOR_TARGET_512 VECTOR_TARGET_256 ",avx512f,avx512bw,avx512dq,avx512vl"
#ifdef __clang__ /* takes the widest by itself */
#define VECTOR_WIDEST VECTOR_TARGET_512
#else
#define VECTOR_WIDEST VECTOR_TARGET_512 ",prefer-vector-width=512"
#endif

#define VECTOR_FUNCTION(type, name, PARAMETERS, ARGUMENTS, RETURN)                                                     \
    type name PARAMETERS;                                                                                              \
    VECTOR_INLINE type name##_body PARAMETERS;                                                                         \
    __attribute__((target(VECTOR_WIDEST))) static type name##_512 PARAMETERS                                           \
    {                                                                                                                  \
        RETURN name##_body ARGUMENTS;                                                                                  \
    }                                                                                                                  \
    __attribute__((target(VECTOR_TARGET_256))) static type name##_256 PARAMETERS                                       \
    {                                                                                                                  \
        RETURN name##_body ARGUMENTS;                                                                                  \
    }                                                                                                                  \
    static type name##_plain PARAMETERS                                                                                \
    {                                                                                                                  \
        RETURN name##_body ARGUMENTS;                                                                                  \
    }                                                                                                                  \
    type name PARAMETERS                                                                                               \
    {                                                                                                                  \
        if (vector_level == VECTOR_512) {                                                                              \
            RETURN name##_512 ARGUMENTS;                                                                               \
        } else if (vector_level == VECTOR_256) {                                                                       \
            RETURN name##_256 ARGUMENTS;                                                                               \
        } else {                                                                                                       \
            RETURN name##_plain ARGUMENTS;                                                                             \
        }                                                                                                              \
    }                                                                                                                  \
    VECTOR_INLINE type name##_body PARAMETERS

#else

#define VECTOR_FUNCTION(type, name, PARAMETERS, ARGUMENTS, RETURN) type name PARAMETERS

#endif

#define VECTOR_ROW(name, PARAMETERS, ARGUMENTS)         VECTOR_FUNCTION(void, name, PARAMETERS, ARGUMENTS, )
#define VECTOR_VALUE(type, name, PARAMETERS, ARGUMENTS) VECTOR_FUNCTION(type, name, PARAMETERS, ARGUMENTS, return )

#endif
