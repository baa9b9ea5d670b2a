/* proto/base/alloc.c - aligned, counted allocation behind one fault point.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/large.h"
#include "base/util.h"

#define ALIGNMENT ((size_t)64)

/* Just under 1 TiB.  The sanitizers end the program at that size, where a plain malloc returns NULL. */
#if SIZE_MAX > UINT32_MAX
#define MAX_BYTES (((size_t)1 << 40) - 4096)
#else
#define MAX_BYTES ((size_t)PTRDIFF_MAX - 4096)
#endif

static atomic_size_t in_use, peak;

/* The counts order nothing, so they are relaxed. */
static void *counted(void *p)
{
    size_t bytes = p ? malloc_usable_size(p) : 0;
    size_t now = atomic_fetch_add_explicit(&in_use, bytes, memory_order_relaxed) + bytes;
    size_t most = atomic_load_explicit(&peak, memory_order_relaxed);
    while (now > most &&
           !atomic_compare_exchange_weak_explicit(&peak, &most, now, memory_order_relaxed, memory_order_relaxed)) {
    }
    return p;
}

size_t mem_in_use(void)
{
    return atomic_load_explicit(&in_use, memory_order_relaxed);
}

size_t mem_peak(void)
{
    return atomic_load_explicit(&peak, memory_order_relaxed);
}

void mem_peak_reset(void)
{
    atomic_store_explicit(&peak, mem_in_use(), memory_order_relaxed);
}

/* A large block costs most when the system has to make its pages: better one that was there before. */
static void *new_block(size_t bytes)
{
    void *p = bytes >= LARGE_BYTES ? large_take(bytes) : NULL;
    if (p) {
        return p;
    }
    p = aligned_alloc(ALIGNMENT, bytes);
    if (p && bytes >= LARGE_BYTES) {
        large_prepare(p, malloc_usable_size(p));
    }
    return p;
}

void *mem_alloc(size_t bytes)
{
    if (fault_hits(FAULT_ALLOC) || bytes > MAX_BYTES) {
        return NULL;
    }
    return counted(new_block((MAX(bytes, (size_t)1) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT));
}

void *mem_zalloc(size_t bytes)
{
    void *p = mem_alloc(bytes);
    return p ? memset(p, 0, bytes) : NULL;
}

void *mem_alloc_array(size_t n, size_t size)
{
    if (size != 0 && n > SIZE_MAX / size) {
        return NULL;
    }
    return mem_alloc(n * size);
}

void *mem_realloc(void *p, size_t old_bytes, size_t new_bytes)
{
    /* realloc() would lose the alignment. */
    void *q = mem_alloc(new_bytes);
    if (!q) {
        return NULL;
    }
    if (p) {
        memcpy(q, p, MIN(old_bytes, new_bytes));
    }
    mem_free(p);
    return q;
}

char *mem_strdup(const char *s)
{
    size_t bytes = strlen(s) + 1;
    char *copy = mem_alloc(bytes);
    return copy ? memcpy(copy, s, bytes) : NULL;
}

void *mem_free(void *p)
{
    size_t bytes = p ? malloc_usable_size(p) : 0;
    atomic_fetch_sub_explicit(&in_use, bytes, memory_order_relaxed);
    if (bytes >= LARGE_BYTES) {
        large_keep(p, bytes);
    } else {
        free(p);
    }
    return NULL;
}
