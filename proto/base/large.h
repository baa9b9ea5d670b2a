/* proto/base/large.h - large blocks that were freed, kept for the next need of the same size.
 *
 * A page that the system has just given costs more at its first touch than the bytes of a tensor cost to compute: a program
 * that makes its results anew in every step would spend most of its time there.  What is kept is bounded; most of it is lent
 * to the system, which takes the pages when memory gets short.  Only alloc.c uses this.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_LARGE_H
#define BASE_LARGE_H

#include <stddef.h>

#define LARGE_BYTES      ((size_t)1 << 20)
#define LARGE_KEPT_BYTES ((size_t)256 << 20) /* of this process */
#define LARGE_WARM_BYTES ((size_t)128 << 20) /* of them the newest, which are not lent: their pages stay */

/* A kept block of at least, and hardly more than, so many bytes; NULL: there is none. */
void *large_take(size_t bytes);

/* A new block of usable bytes from malloc(): asks for huge pages. */
void large_prepare(void *p, size_t bytes);

/* Takes a block of usable bytes; frees it, or older ones, where the bound asks for it. */
void large_keep(void *p, size_t bytes);

#endif
