/* client/dtensor/places.h - which places of one tensor dim a rank holds, in order.  Pure functions.
 *
 * Each mesh dim that splits the dim is a level, the earliest outermost.  A level cuts its list of places into `factor`
 * chunks (1: a plain shard), each chunk into a piece per rank, and keeps this rank's piece of every chunk:
 *
 *      12 places, factor 2, rank 1 of 3      0 1 [2 3] 4 5 | 6 7 [8 9] 10 11      runs 2-3 and 8-9
 *
 * All cuts follow the ceil-chunk rule, so only the last chunks may be short, and what a rank holds is always in
 * ascending order.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_PLACES_H
#define DTENSOR_PLACES_H

#include <mesh/placement.h>

struct chunk {
    int64_t offset, extent;
};
struct chunk layout_chunk(int64_t n, int64_t parts, int64_t i);

struct level {
    int64_t width, n_full;      /* of its chunks: the full ones */
    struct chunk piece, short_; /* this rank's piece of a full chunk, and of the one after them */
};

struct places {
    int n_levels;
    struct level level[MESH_MAX_MESH_NDIM];
    int64_t whole, extent; /* of the dim, and how many of them are held */
};

/* A shard, strided or not. */
static inline bool placement_is_shard(mesh_placement p)
{
    return p.kind == MESH_IS_SHARD || p.kind == MESH_IS_STRIDED_SHARD;
}
static inline bool placement_splits(mesh_placement p, int d)
{
    return placement_is_shard(p) && p.dim == d;
}
static inline int placement_factor(mesh_placement p)
{
    return p.kind == MESH_IS_STRIDED_SHARD ? p.split_factor : 1;
}
bool placements_have_stride(const mesh_placements *p);

struct places places_all(int64_t n);
void places_split(struct places *inout, mesh_placement p, int parts, int i); /* one more level, innermost */
/* How many of n places rank i of `parts` keeps: the extent alone. */
int64_t places_kept(int64_t n, mesh_placement p, int parts, int i);
/* What dim d of extent n becomes at a coordinate. */
struct places places_of(int64_t n, int d, const int *mesh_size, const int *coordinate, const mesh_placements *p);

/* The run that goes on from local place `at`: where it is in the whole, and how many places follow each other there. */
struct chunk places_run(const struct places *p, int64_t at);
/* The local place of one of the whole; -1: not held. */
int64_t places_find(const struct places *p, int64_t place);
/* How many both hold. */
int64_t places_common(const struct places *a, const struct places *b);

/* The next coordinate of a mesh, the last dim fastest; false: that was the last. */
bool next_coordinate(int mesh_ndim, const int *mesh_size, int *inout_coordinate);

#endif
