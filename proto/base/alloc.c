/* proto/base/alloc.c - aligned allocation behind one fault point.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/util.h"

#define ALIGNMENT ((size_t)64)

/* Just under 1 TiB.  The sanitizers end the program at that size, where a plain malloc returns NULL. */
#if SIZE_MAX > UINT32_MAX
#define MAX_BYTES (((size_t)1 << 40) - 4096)
#else
#define MAX_BYTES ((size_t)PTRDIFF_MAX - 4096)
#endif

void *mem_alloc(size_t bytes)
{
    if (fault_hits(FAULT_ALLOC) || bytes > MAX_BYTES) {
        return NULL;
    }
    size_t rounded = (MAX(bytes, (size_t)1) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return aligned_alloc(ALIGNMENT, rounded);
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
    free(p);
    return NULL;
}
