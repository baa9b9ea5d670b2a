/* proto/base/pool.h - small blocks that come and go by the thousand: each thread keeps what it frees for its next need.
 *
 * Blocks are aligned to 64 bytes, and freed by size.  A thread keeps a bounded number of bytes, and lets go of them when it ends.
 * Built with a sanitizer that watches memory nothing is kept, so that it sees every use of a freed block.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stddef.h>

#define POOL_MAX_BYTES 1024 /* of a block; larger ones go through to mem_alloc() */

void *pool_alloc(size_t bytes); /* not zeroed; NULL: no memory, no error written */
void *pool_zalloc(size_t bytes);
void pool_free(void *p, size_t bytes); /* as many as were asked for; p NULL is fine; any thread */

#define pool_new(type)     ((type *)pool_zalloc(sizeof(type)))
#define pool_drop(pointer) pool_free((pointer), sizeof *(pointer))

#endif
