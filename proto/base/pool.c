/* proto/base/pool.c - per thread one list of free blocks for each multiple of 64 bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/kept.h"

#define GRAIN      ((size_t)64)
#define N_CLASSES  (POOL_MAX_BYTES / GRAIN)
#define KEPT_BYTES ((size_t)2 << 20) /* of a thread */

struct block {
    struct block *next;
};

struct pool {
    struct block *free[N_CLASSES];
    size_t kept; /* bytes */
    enum { POOL_NEW, POOL_OPEN, POOL_CLOSED } state;
};

static _Thread_local struct pool pool;
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool has_key;

static void close_pool(void *arg)
{
    struct pool *p = arg;
    p->state = POOL_CLOSED; /* what the thread frees from now on is freed */
    for (size_t i = 0; i < N_CLASSES; i++) {
        while (p->free[i]) {
            struct block *b = p->free[i];
            p->free[i] = b->next;
            mem_free(b);
        }
    }
    p->kept = 0;
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, close_pool) == 0;
}

/* Whether this thread keeps blocks: it must have been told to let go of them when it ends. */
static bool open_pool(void)
{
    if (pool.state == POOL_NEW) {
        pthread_once(&key_once, make_key);
        pool.state = has_key && pthread_setspecific(key, &pool) == 0 ? POOL_OPEN : POOL_CLOSED;
    }
    return pool.state == POOL_OPEN;
}

static size_t class_of(size_t bytes)
{
    return bytes == 0 ? 0 : (bytes - 1) / GRAIN;
}

void *pool_alloc(size_t bytes)
{
    size_t i = class_of(bytes);
    if (i >= N_CLASSES || !pool.free[i]) {
        return mem_alloc(bytes);
    }
    if (fault_hits(FAULT_ALLOC)) {
        return NULL;
    }
    struct block *b = pool.free[i];
    pool.free[i] = b->next;
    pool.kept -= (i + 1) * GRAIN;
    return b;
}

void *pool_zalloc(size_t bytes)
{
    void *p = pool_alloc(bytes);
    return p ? memset(p, 0, bytes) : NULL;
}

void pool_free(void *p, size_t bytes)
{
    size_t i = class_of(bytes), block = (i + 1) * GRAIN;
    if (!p || !KEEPS_BLOCKS || i >= N_CLASSES || pool.kept + block > KEPT_BYTES || !open_pool()) {
        mem_free(p);
        return;
    }
    struct block *b = p;
    b->next = pool.free[i];
    pool.free[i] = b;
    pool.kept += block;
}
