/* client/dtensor/layout.c - who holds what: the ceil-chunk rule, nested over mesh dims.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/layout.h"

#include "base/util.h"

struct chunk layout_chunk(int64_t n, int parts, int i)
{
    int64_t width = n / parts + (n % parts != 0);
    int64_t offset = MIN(n, width * i);
    return (struct chunk){ .offset = offset, .extent = MIN(n, offset + width) - offset };
}

void layout_box(mesh_shape global, const int *mesh_size, const int *coordinate, const mesh_placements *p,
                struct box *ret_box)
{
    struct box b = { .ndim = global.ndim };
    for (int d = 0; d < global.ndim; d++) {
        b.extent[d] = global.dim[d];
    }
    for (int i = 0; i < p->n; i++) {
        if (p->at[i].kind != MESH_IS_SHARD) {
            continue;
        }
        int d = p->at[i].dim;
        struct chunk c = layout_chunk(b.extent[d], mesh_size[i], coordinate[i]);
        b.offset[d] += c.offset;
        b.extent[d] = c.extent;
    }
    for (int d = 0; d < global.ndim; d++) {
        if (b.extent[d] == 0) {
            b.offset[d] = global.dim[d];
        }
    }
    *ret_box = b;
}

mesh_shape layout_local_shape(mesh_shape global, const int *mesh_size, const int *coordinate, const mesh_placements *p)
{
    mesh_shape local = global;
    for (int i = 0; i < p->n; i++) {
        if (p->at[i].kind == MESH_IS_SHARD) {
            int d = p->at[i].dim;
            local.dim[d] = layout_chunk(local.dim[d], mesh_size[i], coordinate[i]).extent;
        }
    }
    return local;
}
