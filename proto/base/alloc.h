/* proto/base/alloc.h - every allocation passes here, so that a test can make the nth one fail.
 *
 * The functions return NULL on failure and write no error: the caller says what the memory was for with err_no_memory().
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

#include <stddef.h>

void *mem_alloc(size_t bytes); /* 64-byte aligned, not zeroed; bytes 0 gives a pointer that can be freed */
void *mem_zalloc(size_t bytes);
void *mem_alloc_array(size_t n, size_t size); /* NULL also when n * size does not fit */
void *mem_realloc(void *p, size_t old_bytes, size_t new_bytes);
char *mem_strdup(const char *s);
void *mem_free(void *p); /* NULL is fine; returns NULL */

/* Bytes that mem_alloc() has given and mem_free() has not taken back, of all threads together: what the allocator set aside,
 * so a little more than was asked for.  Blocks that a pool keeps (pool.h) count as given. */
size_t mem_in_use(void);
size_t mem_peak(void);     /* the most that was in use at once since mem_peak_reset() */
void mem_peak_reset(void); /* what is in use now is the peak */

#define mem_new(type)          ((type *)mem_zalloc(sizeof(type)))
#define mem_new_array(type, n) ((type *)mem_alloc_array((n), sizeof(type)))

#endif
