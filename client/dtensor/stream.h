/* client/dtensor/stream.h - the elements of a part in their order, as runs of row-major indices of the whole tensor.
 *
 *      [4,6], rows 0-1 of columns 3-5      runs 3-5 and 9-11; as [24] they are the same
 *
 * So parts of two shapes of the same tensor can be compared and cut with each other.  Indices always ascend.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_STREAM_H
#define DTENSOR_STREAM_H

#include "dtensor/layout.h"

struct stream {
    bool is_some;         /* there is a current run */
    int64_t at, n, local; /* it begins there in the whole, has n elements (left), and begins there in the part */
    mesh_shape shape;
    struct places places[MESH_MAX_NDIM];
    int64_t index[MESH_MAX_NDIM]; /* in the part */
    int last;              /* the innermost dim of which not all is held; those behind it make up `inner` elements */
    int64_t inner, extent; /* extent: of the current run along `last` */
};

void stream_first(struct stream *s, mesh_shape global, const int *mesh_size, const int *coordinate,
                  const mesh_placements *p);
void stream_skip(struct stream *s, int64_t n); /* at most the n of the current run */

/* Goes on to the next run that both have: 0: none; else its length, and both stand at it. */
int64_t streams_meet(struct stream *a, struct stream *b);
bool streams_are_equal(struct stream *a, struct stream *b);

#endif
