/* client/dtensor/line.c - a dense value that a line of ranks shares, split along one dim.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/line.h"

#include "tensor/shape.h"

static int64_t part_extent(const struct line *l, int i)
{
    return places_kept(l->shape.dim[l->split.dim], l->split, l->parts, i);
}

static struct places part_places(const struct line *l, int i)
{
    struct places p = places_all(l->shape.dim[l->split.dim]);
    places_split(&p, l->split, l->parts, i);
    return p;
}

mesh_shape line_part(const struct line *l, int i)
{
    mesh_shape s = l->shape;
    s.dim[l->split.dim] = part_extent(l, i);
    return s;
}

void line_counts(const struct line *l, size_t *ret_counts)
{
    for (int i = 0; i < l->parts; i++) {
        ret_counts[i] = (size_t)shape_numel(line_part(l, i));
    }
}

bool line_is_even(const struct line *l)
{
    return part_extent(l, 0) == part_extent(l, l->parts - 1);
}

bool line_is_contiguous(const struct line *l)
{
    return l->split.kind == MESH_IS_SHARD && shape_outer(l->shape, l->split.dim) <= 1;
}

/* Run by run; is_packing: from the whole to the part. */
static void copy_part(const struct line *l, int i, void *whole, void *part, bool is_packing)
{
    int d = l->split.dim;
    struct places held = part_places(l, i);
    mesh_shape shape = line_part(l, i);
    for (int64_t at = 0; at < held.extent;) {
        struct chunk run = places_run(&held, at);
        struct box a = box_along(l->shape, d, run.offset, run.extent), b = box_along(shape, d, at, run.extent);
        struct box_in outer = { whole, l->shape, &a }, inner = { part, shape, &b };
        box_copy(is_packing ? inner : outer, is_packing ? outer : inner, l->item);
        at += run.extent;
    }
}

void line_pack(const struct line *l, int i, void *part, const void *whole)
{
    copy_part(l, i, (void *)whole, part, true);
}

void line_unpack(const struct line *l, int i, void *whole, const void *part)
{
    copy_part(l, i, whole, (void *)part, false);
}

void line_pack_all(const struct line *l, void *parts, const void *whole)
{
    char *at = parts;
    for (int i = 0; i < l->parts; i++) {
        line_pack(l, i, at, whole);
        at += (size_t)shape_numel(line_part(l, i)) * l->item;
    }
}

void line_unpack_all(const struct line *l, void *whole, const void *parts)
{
    const char *at = parts;
    for (int i = 0; i < l->parts; i++) {
        line_unpack(l, i, whole, at);
        at += (size_t)shape_numel(line_part(l, i)) * l->item;
    }
}
