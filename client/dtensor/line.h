/* client/dtensor/line.h - a dense value that a line of ranks shares, split along one dim: each part dense, and back.
 *
 * Parts one after another are the value itself where the dim is the outermost and not strided: those need no copy.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_LINE_H
#define DTENSOR_LINE_H

#include "dtensor/layout.h"

struct line {
    mesh_shape shape;
    mesh_placement split; /* a shard, strided or not */
    int parts;
    size_t item; /* bytes */
};

mesh_shape line_part(const struct line *l, int i);          /* its shape */
void line_counts(const struct line *l, size_t *ret_counts); /* elements of each part */
bool line_is_even(const struct line *l);                    /* the first part is as large as the last */
bool line_is_contiguous(const struct line *l);
void line_pack(const struct line *l, int i, void *part, const void *whole);
void line_unpack(const struct line *l, int i, void *whole, const void *part);
void line_pack_all(const struct line *l, void *parts, const void *whole); /* one after another */
void line_unpack_all(const struct line *l, void *whole, const void *parts);

#endif
