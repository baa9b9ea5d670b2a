/* client/dtensor/layout.c - what part of a tensor a rank holds.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/layout.h"

#include "base/util.h"
#include "tensor/shape.h"

void layout_box(mesh_shape global, const int *mesh_size, const int *coordinate, const mesh_placements *p,
                struct box *ret_box)
{
    struct box b = { .ndim = global.ndim };
    for (int d = 0; d < global.ndim; d++) {
        struct places held = places_of(global.dim[d], d, mesh_size, coordinate, p);
        b.extent[d] = held.extent;
        b.offset[d] = held.extent > 0 ? places_run(&held, 0).offset : global.dim[d];
    }
    *ret_box = b;
}

mesh_shape layout_local_shape(mesh_shape global, const int *mesh_size, const int *coordinate, const mesh_placements *p)
{
    mesh_shape local = global;
    for (int i = 0; i < p->n; i++) {
        if (mesh_size[i] > 1 && placement_is_shard(p->at[i])) {
            int64_t *n = &local.dim[p->at[i].dim];
            *n = places_kept(*n, p->at[i], mesh_size[i], coordinate[i]);
        }
    }
    return local;
}

static void enter_run(struct box_walk *w, int d)
{
    struct chunk c = places_run(&w->places[d], w->local.offset[d]);
    w->global.offset[d] = c.offset;
    w->global.extent[d] = w->local.extent[d] = c.extent;
}

void box_walk_first(struct box_walk *w, mesh_shape global, const int *mesh_size, const int *coordinate,
                    const mesh_placements *p)
{
    w->is_some = true;
    w->global = w->local = (struct box){ .ndim = global.ndim };
    for (int d = 0; d < global.ndim; d++) {
        w->places[d] = places_of(global.dim[d], d, mesh_size, coordinate, p);
        w->is_some = w->is_some && w->places[d].extent > 0;
    }
    for (int d = 0; w->is_some && d < global.ndim; d++) {
        enter_run(w, d);
    }
}

void box_walk_next(struct box_walk *w)
{
    for (int d = w->local.ndim - 1; d >= 0; d--) {
        w->local.offset[d] += w->local.extent[d];
        if (w->local.offset[d] < w->places[d].extent) {
            enter_run(w, d);
            return;
        }
        w->local.offset[d] = 0;
        enter_run(w, d);
    }
    w->is_some = false;
}

int64_t layout_find(mesh_shape global, const int *mesh_size, const int *coordinate, const mesh_placements *p,
                    const int64_t *index)
{
    int64_t at = 0;
    for (int d = 0; d < global.ndim; d++) {
        struct places held = places_of(global.dim[d], d, mesh_size, coordinate, p);
        int64_t i = places_find(&held, index[d]);
        if (i < 0) {
            return -1;
        }
        at = at * held.extent + i;
    }
    return at;
}

static mesh_shape part_shape(const struct box_walk *w)
{
    mesh_shape s = { .ndim = w->local.ndim };
    for (int d = 0; d < s.ndim; d++) {
        s.dim[d] = w->places[d].extent;
    }
    return s;
}

void layout_pack(void *part, const void *whole, struct box_walk *w, mesh_shape global, size_t item_bytes)
{
    mesh_shape shape = part_shape(w);
    for (; w->is_some; box_walk_next(w)) {
        box_copy((struct box_in){ part, shape, &w->local }, (struct box_in){ (void *)whole, global, &w->global },
                 item_bytes);
    }
}
