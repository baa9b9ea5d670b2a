/* client/tensor/past_caches.h - writing a large result past the caches.
 *
 * Else each of its lines would be read before it is written, and what is worth keeping in a cache would make room for
 * it.
 *
 *     bool is_large = goes_past_caches(out, bytes_of_all, bytes_of_a_row);
 *     ... = is_large ? block : out + i                         compute some elements
 *     if (is_large) write_past_caches(out + i, block, bytes);  whole lines
 *     finish_past_caches();                                    once, before anybody may read them
 *
 * Where a processor has no such stores (that we know how to ask for) nothing is large.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_PAST_CACHES_H
#define TENSOR_PAST_CACHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#else
#include <string.h>
#endif

#define CACHE_LINE        64
#define PAST_CACHES_LEAST ((size_t)4 << 20) /* bytes of a result */

/* Whether a result of so many bytes, whose rows begin so far apart, is to be written so. */
static inline bool goes_past_caches(const void *to, size_t bytes, size_t row_bytes)
{
#if defined(__SSE2__)
    return bytes >= PAST_CACHES_LEAST && row_bytes % CACHE_LINE == 0 && (uintptr_t)to % CACHE_LINE == 0;
#else
    (void)to, (void)bytes, (void)row_bytes;
    return false;
#endif
}

/* Whole lines of the cache, from line-aligned to line-aligned memory. */
static inline void write_past_caches(void *to, const void *from, size_t bytes)
{
#if defined(__SSE2__)
    for (size_t k = 0; k < bytes; k += sizeof(__m128i)) {
        _mm_stream_si128((__m128i *)((char *)to + k), _mm_load_si128((const __m128i *)((const char *)from + k)));
    }
#else
    memcpy(to, from, bytes);
#endif
}

/* Other loads and stores must not overtake what went past the caches. */
static inline void finish_past_caches(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

#endif
