/* client/dtensor/places.c - which places of one tensor dim a rank holds, in order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/places.h"

#include "base/util.h"

struct chunk layout_chunk(int64_t n, int64_t parts, int64_t i)
{
    int64_t width = n / parts + (n % parts != 0);
    int64_t offset = MIN(n, width * i);
    return (struct chunk){ .offset = offset, .extent = MIN(n, offset + width) - offset };
}

bool placements_have_stride(const mesh_placements *p)
{
    for (int i = 0; i < p->n; i++) {
        if (p->at[i].kind == MESH_IS_STRIDED_SHARD) {
            return true;
        }
    }
    return false;
}

struct places places_all(int64_t n)
{
    return (struct places){ .whole = n, .extent = n };
}

static struct level level_of(int64_t n, mesh_placement p, int parts, int i)
{
    int64_t factor = placement_factor(p);
    struct level l = { .width = n / factor + (n % factor != 0) };
    l.n_full = l.width > 0 ? n / l.width : 0;
    l.piece = layout_chunk(l.width, parts, i);
    l.short_ = layout_chunk(n - l.n_full * l.width, parts, i);
    return l;
}

static int64_t level_extent(const struct level *l)
{
    return l->n_full * l->piece.extent + l->short_.extent;
}

void places_split(struct places *inout, mesh_placement p, int parts, int i)
{
    struct level *l = &inout->level[inout->n_levels++];
    *l = level_of(inout->extent, p, parts, i);
    inout->extent = level_extent(l);
}

int64_t places_kept(int64_t n, mesh_placement p, int parts, int i)
{
    if (placement_factor(p) == 1) {
        return layout_chunk(n, parts, i).extent;
    }
    struct level l = level_of(n, p, parts, i);
    return level_extent(&l);
}

struct places places_of(int64_t n, int d, const int *mesh_size, const int *coordinate, const mesh_placements *p)
{
    struct places all = places_all(n);
    for (int i = 0; i < p->n; i++) {
        if (mesh_size[i] > 1 && placement_splits(p->at[i], d)) {
            places_split(&all, p->at[i], mesh_size[i], coordinate[i]);
        }
    }
    return all;
}

/* From a run of what the level keeps to one of what it was cut from; it may end earlier. */
static struct chunk outwards(const struct level *l, struct chunk c)
{
    int64_t full = l->n_full * l->piece.extent;
    bool is_short = c.offset >= full;
    int64_t k = is_short ? l->n_full : c.offset / l->piece.extent;
    struct chunk piece = is_short ? l->short_ : l->piece;
    int64_t within = c.offset - k * l->piece.extent;
    return (struct chunk){ .offset = k * l->width + piece.offset + within,
                           .extent = MIN(c.extent, piece.extent - within) };
}

struct chunk places_run(const struct places *p, int64_t at)
{
    struct chunk c = { .offset = at, .extent = p->extent - at };
    for (int k = p->n_levels - 1; k >= 0; k--) {
        c = outwards(&p->level[k], c);
    }
    return c;
}

int64_t places_find(const struct places *p, int64_t place)
{
    for (int i = 0; i < p->n_levels; i++) {
        const struct level *l = &p->level[i];
        int64_t k = place / l->width;
        struct chunk piece = k < l->n_full ? l->piece : l->short_;
        int64_t within = place - k * l->width - piece.offset;
        if (within < 0 || within >= piece.extent) {
            return -1;
        }
        place = k * l->piece.extent + within;
    }
    return place;
}

int64_t places_common(const struct places *a, const struct places *b)
{
    int64_t n = 0;
    for (int64_t i = 0, k = 0; i < a->extent && k < b->extent;) {
        struct chunk x = places_run(a, i), y = places_run(b, k);
        int64_t begin = MAX(x.offset, y.offset), end = MIN(x.offset + x.extent, y.offset + y.extent);
        n += MAX(0, end - begin);
        bool ends_first = x.offset + x.extent <= y.offset + y.extent;
        i += ends_first ? x.extent : 0;
        k += ends_first ? 0 : y.extent;
    }
    return n;
}

bool next_coordinate(int mesh_ndim, const int *mesh_size, int *inout_coordinate)
{
    for (int i = mesh_ndim - 1; i >= 0; i--) {
        if (++inout_coordinate[i] < mesh_size[i]) {
            return true;
        }
        inout_coordinate[i] = 0;
    }
    return false;
}
