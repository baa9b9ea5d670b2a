/* client/tensor/turn.c - a matrix written as its transpose, a tile at a time.
 *
 * A tile of SIDE x SIDE elements is read and written by whole lines of the cache.  It is turned in a copy, so that it
 * does not matter how the rows of both sides fall together in a cache.  Elements of 4 and 8 bytes are turned in
 * registers:
 *
 *     a0 a1 a2 a3       a0 b0 a1 b1      a0 b0 c0 d0
 *     b0 b1 b2 b3   ->  a2 b2 a3 b3  ->  a1 b1 c1 d1
 *     c0 c1 c2 c3       c0 d0 c1 d1      a2 b2 c2 d2
 *     d0 d1 d2 d3       c2 d2 c3 d3      a3 b3 c3 d3
 *
 * A large result goes past the caches.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tensor/turn.h"

#include <stdbool.h>
#include <string.h>

#include "base/check.h"
#include "base/util.h"
#include "tensor/past_caches.h"
#include "base/vector.h"

#define SIDE 16
#define LINE CACHE_LINE

static bool is_large_turn(const struct turn *t)
{
    return goes_past_caches(t->to, (size_t)t->rows * (size_t)t->columns * t->item, (size_t)t->to_step * t->item);
}

/* --- a small block in registers: to[j * SIDE + i] = from[i * step + j] -------------------------------------------- */

#define BLOCK_BY_ELEMENTS(T, side)                                                                                     \
    static inline void block_##T(T *restrict to, const T *from, int64_t step)                                          \
    {                                                                                                                  \
        for (int64_t i = 0; i < (side); i++) {                                                                         \
            for (int64_t j = 0; j < (side); j++) {                                                                     \
                to[j * SIDE + i] = from[i * step + j];                                                                 \
            }                                                                                                          \
        }                                                                                                              \
    }
BLOCK_BY_ELEMENTS(uint8_t, SIDE)
BLOCK_BY_ELEMENTS(uint16_t, SIDE)

#ifdef HAS_SHUFFLES
typedef uint32_t words __attribute__((vector_size(16)));
typedef uint64_t pair __attribute__((vector_size(16)));

static inline void block_uint32_t(uint32_t *restrict to, const uint32_t *from, int64_t step)
{
    words a, b, c, d;
    memcpy(&a, from, sizeof a);
    memcpy(&b, from + step, sizeof b);
    memcpy(&c, from + 2 * step, sizeof c);
    memcpy(&d, from + 3 * step, sizeof d);
    const words ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const words cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const words turned[4] = { __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5),
                              __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
                              __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
                              __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7) };
    for (size_t j = 0; j < 4; j++) {
        memcpy(to + j * SIDE, &turned[j], sizeof turned[j]);
    }
}

static inline void block_uint64_t(uint64_t *restrict to, const uint64_t *from, int64_t step)
{
    pair a, b;
    memcpy(&a, from, sizeof a);
    memcpy(&b, from + step, sizeof b);
    const pair turned[2] = { __builtin_shufflevector(a, b, 0, 2), __builtin_shufflevector(a, b, 1, 3) };
    memcpy(to, &turned[0], sizeof turned[0]);
    memcpy(to + SIDE, &turned[1], sizeof turned[1]);
}
#else
BLOCK_BY_ELEMENTS(uint32_t, 4)
BLOCK_BY_ELEMENTS(uint64_t, 2)
#endif

/* --- tiles -------------------------------------------------------------------------------------------------------- */

#define TILES(T, block_side)                                                                                           \
    static void tile_##T(T *restrict to, int64_t to_step, const T *restrict from, int64_t from_step, bool is_large)    \
    {                                                                                                                  \
        T turned[SIDE * SIDE] __attribute__((aligned(LINE)));                                                          \
        for (int64_t i = 0; i < SIDE; i += (block_side)) {                                                             \
            for (int64_t j = 0; j < SIDE; j += (block_side)) {                                                         \
                block_##T(turned + j * SIDE + i, from + i * from_step + j, from_step);                                 \
            }                                                                                                          \
        }                                                                                                              \
        for (int64_t j = 0; j < SIDE; j++) {                                                                           \
            if (is_large) {                                                                                            \
                write_past_caches(to + j * to_step, turned + j * SIDE, SIDE * sizeof(T));                              \
            } else {                                                                                                   \
                memcpy(to + j * to_step, turned + j * SIDE, SIDE * sizeof(T));                                         \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void edge_##T(T *restrict to, int64_t to_step, const T *restrict from, int64_t from_step, int64_t rows,     \
                         int64_t columns)                                                                              \
    {                                                                                                                  \
        for (int64_t j = 0; j < columns; j++) {                                                                        \
            for (int64_t i = 0; i < rows; i++) {                                                                       \
                to[j * to_step + i] = from[i * from_step + j];                                                         \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void turn_##T(const struct turn *t)                                                                         \
    {                                                                                                                  \
        const bool is_large = SIDE * sizeof(T) % LINE == 0 && is_large_turn(t);                                        \
        for (int64_t i = 0; i < t->rows; i += SIDE) {                                                                  \
            for (int64_t j = 0; j < t->columns; j += SIDE) {                                                           \
                int64_t rows = MIN(SIDE, t->rows - i), columns = MIN(SIDE, t->columns - j);                            \
                T *to = (T *)t->to + j * t->to_step + i;                                                               \
                const T *from = (const T *)t->from + i * t->from_step + j;                                             \
                if (rows == SIDE && columns == SIDE) {                                                                 \
                    tile_##T(to, t->to_step, from, t->from_step, is_large);                                            \
                } else {                                                                                               \
                    edge_##T(to, t->to_step, from, t->from_step, rows, columns);                                       \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        if (is_large) {                                                                                                \
            finish_past_caches();                                                                                      \
        }                                                                                                              \
    }
TILES(uint8_t, SIDE)
TILES(uint16_t, SIDE)
TILES(uint32_t, 4)
TILES(uint64_t, 2)

void turn_matrix(const struct turn *t)
{
    switch (t->item) {
    case sizeof(uint8_t):
        turn_uint8_t(t);
        return;
    case sizeof(uint16_t):
        turn_uint16_t(t);
        return;
    case sizeof(uint32_t):
        turn_uint32_t(t);
        return;
    default:
        PRE(t->item == sizeof(uint64_t));
        turn_uint64_t(t);
    }
}
