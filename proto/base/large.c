/* proto/base/large.c - a short list of large blocks, the oldest of which goes first.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/large.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/kept.h"
#include "base/util.h"

#define N_KEPT     16
#define HUGE_BYTES ((uintptr_t)2 << 20) /* of a huge page; advice for parts of one would split it */

struct block {
    void *at;
    size_t bytes;
    bool is_lent; /* the system may take its pages */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block kept[N_KEPT]; /* oldest first */
static size_t n_kept, kept_bytes;

static void advise(void *p, size_t bytes, int advice)
{
    uintptr_t from = ((uintptr_t)p + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
    uintptr_t to = ((uintptr_t)p + bytes) / HUGE_BYTES * HUGE_BYTES;
    if (to > from) {
        (void)madvise((void *)from, to - from, advice); /* a kernel that cannot is only slower */
    }
}

static void *remove_at(size_t i)
{
    void *p = kept[i].at;
    kept_bytes -= kept[i].bytes;
    n_kept--;
    for (; i < n_kept; i++) {
        kept[i] = kept[i + 1];
    }
    return p;
}

void *large_take(size_t bytes)
{
    void *p = NULL;
    (void)pthread_mutex_lock(&lock);
    for (size_t i = n_kept; i-- > 0 && p == NULL;) { /* the newest is still in the caches */
        if (kept[i].bytes >= bytes && kept[i].bytes <= bytes + bytes / 8) {
            p = remove_at(i);
        }
    }
    (void)pthread_mutex_unlock(&lock);
    return p;
}

void large_prepare(void *p, size_t bytes)
{
    advise(p, bytes, MADV_HUGEPAGE);
}

/* What is older than the newest LARGE_WARM_BYTES. */
static void lend_old_ones(void)
{
    size_t newer = 0;
    for (size_t i = n_kept; i-- > 0;) {
        newer += kept[i].bytes;
        if (newer > LARGE_WARM_BYTES && !kept[i].is_lent) {
            advise(kept[i].at, kept[i].bytes, MADV_FREE);
            kept[i].is_lent = true;
        }
    }
}

void large_keep(void *p, size_t bytes)
{
    if (!KEEPS_BLOCKS || bytes > LARGE_KEPT_BYTES) {
        free(p);
        return;
    }
    (void)pthread_mutex_lock(&lock);
    while (n_kept == N_KEPT || kept_bytes + bytes > LARGE_KEPT_BYTES) {
        free(remove_at(0));
    }
    kept[n_kept++] = (struct block){ .at = p, .bytes = bytes };
    kept_bytes += bytes;
    lend_old_ones();
    (void)pthread_mutex_unlock(&lock);
}
