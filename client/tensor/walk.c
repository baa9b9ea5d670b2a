/* client/tensor/walk.c - steps through several arrays at once, row by row.
 *
 * Invariant: extents are at least 2, except in an empty walk; no two neighbours could be merged.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tensor/walk.h"

#include <string.h>

#include "base/check.h"

void walk_init(struct walk *w)
{
    w->ndim = 0;
    w->is_empty = false;
}

static bool continues_last(const struct walk *w, int64_t extent, const int64_t *stride)
{
    for (int i = 0; i < WALK_OPERANDS; i++) {
        if (w->stride[w->ndim - 1][i] != stride[i] * extent) {
            return false;
        }
    }
    return true;
}

void walk_push(struct walk *w, int64_t extent, const int64_t stride[WALK_OPERANDS])
{
    if (extent == 0) {
        w->is_empty = true;
    }
    if (extent <= 1) {
        return;
    }
    if (w->ndim > 0 && continues_last(w, extent, stride)) {
        w->ndim--;
        extent *= w->extent[w->ndim];
    }
    PRE(w->ndim < WALK_MAX_NDIM);
    w->extent[w->ndim] = extent;
    memcpy(w->stride[w->ndim], stride, sizeof w->stride[0]);
    w->ndim++;
}

bool walk_first(const struct walk *w, struct walk_at *ret_at)
{
    *ret_at = (struct walk_at){ .index = { 0 } };
    return !w->is_empty;
}

bool walk_next(const struct walk *w, struct walk_at *at)
{
    for (int d = w->ndim - 2; d >= 0; d--) { /* the last dimension is the row */
        int64_t back = ++at->index[d] < w->extent[d] ? 0 : w->extent[d];
        for (int i = 0; i < WALK_OPERANDS; i++) {
            at->offset[i] += (1 - back) * w->stride[d][i];
        }
        if (back == 0) {
            return true;
        }
        at->index[d] = 0;
    }
    return false;
}

int64_t walk_inner(const struct walk *w)
{
    return w->ndim == 0 ? 1 : w->extent[w->ndim - 1];
}

int64_t walk_step(const struct walk *w, int operand)
{
    return w->ndim == 0 ? 0 : w->stride[w->ndim - 1][operand];
}

void shape_strides(mesh_shape s, mesh_shape to, int64_t ret_stride[MESH_MAX_NDIM])
{
    int leading = to.ndim - s.ndim;
    int64_t stride = 1;
    for (int d = to.ndim - 1; d >= 0; d--) {
        bool is_broadcast = d < leading || s.dim[d - leading] == 1;
        ret_stride[d] = is_broadcast ? 0 : stride;
        stride *= d < leading ? 1 : s.dim[d - leading];
    }
}
