/* client/dtensor/picture.h - the grid that a layout cuts a tensor into, and who holds each cell: what pictures are drawn of.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_PICTURE_H
#define DTENSOR_PICTURE_H

#include "dtensor/dtensor.h"

struct cuts { /* of one tensor dim: its pieces that are not empty, in order */
    int n;
    struct chunk *at; /* [n] */
};

struct picture {
    const mesh_dtensor *tensor;
    struct cuts cuts[MESH_MAX_NDIM]; /* of the tensor's dims */
};
int picture_init(struct picture *p, const mesh_dtensor *x);
void picture_fini(struct picture *p);

/* Text that is cut to fit, but counted whole. */
struct text {
    char *buf;
    size_t cap, n;
};
void text_add(struct text *t, const char *format, ...) PRINTF_LIKE(2, 3);

/* "0,1" or "0+1": the ranks that hold this piece of every dim.  cell: [ndim] indices into the cuts. */
void picture_add_ranks(const struct picture *p, const int *cell, struct text *t);
/* "nothing: ranks 3, 4" or "". */
void picture_add_empty(const struct picture *p, struct text *t);
/* The next cell in the first n_dims dims, the last fastest; false: that was the last. */
bool picture_next_slice(const struct picture *p, int n_dims, int *inout_cell);

#endif
