/* tests/cases/case_spots.c - the meshes and layouts under which a case that fixes neither must come out the same.
 *
 * Meshes are lines, planes, a cube, and one whose ranks stand in another order; on each, every draw gives each tensor of the case
 * a layout of its own.  A pending sum is dealt out unevenly and with both signs, so that a rule that lets it through wrongly
 * shows.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/util.h"
#include "case_list.h"

enum { N_DRAWS = 6 };

static const struct {
    mesh_shape shape;
    int ranks[8]; /* all 0: in order */
} spots[] = {
    { { .ndim = 1, .dim = { 1 } }, { 0 } },       { { .ndim = 1, .dim = { 2 } }, { 0 } },
    { { .ndim = 1, .dim = { 3 } }, { 2, 0, 1 } }, { { .ndim = 1, .dim = { 4 } }, { 0 } },
    { { .ndim = 2, .dim = { 2, 2 } }, { 0 } },    { { .ndim = 2, .dim = { 1, 4 } }, { 3, 1, 0, 2 } },
    { { .ndim = 1, .dim = { 5 } }, { 0 } },       { { .ndim = 3, .dim = { 2, 2, 2 } }, { 0 } },
    { { .ndim = 2, .dim = { 2, 4 } }, { 0 } },
};

static int n_ranks_of(mesh_shape s)
{
    int64_t n = 1;
    for (int d = 0; d < s.ndim; d++) {
        n *= s.dim[d];
    }
    return (int)n;
}

static mesh_device_mesh *spot_mesh(size_t k)
{
    int n = n_ranks_of(spots[k].shape), in_order[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    bool is_in_order = n == 1 || memcmp(spots[k].ranks, (int[8]){ 0 }, sizeof in_order) == 0;
    return mesh_new_device_mesh("cpu", spots[k].shape, is_in_order ? in_order : spots[k].ranks, NULL);
}

int case_spots_run(int (*body)(struct spot *at))
{
    for (size_t k = 0; k < ARRAY_SIZE(spots); k++) {
        for (uint64_t draw = 0; n_ranks_of(spots[k].shape) == mesh_world_size() && draw < N_DRAWS; draw++) {
            mesh_scope *scope = mesh_scope_begin();
            struct spot at = { .m = spot_mesh(k), .draw = draw };
            REQUIRE(at.m != NULL && scope != NULL);
            if (body(&at) < 0) {
                return ranks_complain(__FILE__, __LINE__, "mesh %zu, draw %d", k, (int)draw);
            }
            REQUIRE(mesh_scope_end(scope) == 0);
        }
    }
    return 0;
}

mesh_placements spot_whole(const struct spot *at)
{
    mesh_placements p = { .n = mesh_mesh_ndim(at->m) };
    for (int d = 0; d < p.n; d++) {
        p.at[d] = R;
    }
    return p;
}

/* Draw 0 is whole everywhere, draw 1 sharded along dim 0, the others are mixed. */
static mesh_placement draw_one(struct spot *at, int ndim, bool may_pend)
{
    if (at->draw < 2) {
        return at->draw == 1 && ndim > 0 ? S(0) : R;
    }
    at->draw = at->draw * 6364136223846793005u + 1442695040888963407u;
    int k = (int)((at->draw >> 33) % (uint64_t)(ndim + 1 + (may_pend ? 2 : 0)));
    return k < ndim ? S(k) : k == ndim ? R : P(MESH_SUM);
}

mesh_placements spot_split(struct spot *at)
{
    mesh_placements p = { .n = mesh_mesh_ndim(at->m) };
    for (int d = 0; d < p.n; d++) {
        p.at[d] = draw_one(at, 2, false);
    }
    return p;
}

/* Over a line of n, the parts beside coordinate 0 hold 1, -2, 3, ..., and coordinate 0 takes them away again. */
static double share(int coordinate, int n)
{
    double sum = 0;
    for (int j = 1; j < n; j++) {
        sum += j % 2 == 1 ? j : -j;
    }
    return coordinate == 0 ? -sum : coordinate % 2 == 1 ? coordinate : -coordinate;
}

static void deal_out(double *part, int64_t n, const struct spot *at, mesh_placements p)
{
    const int *mine = mesh_get_coordinate(at->m);
    double more = 0;
    bool is_owner = true;
    for (int d = 0; d < p.n; d++) {
        char dim[2] = { (char)('0' + d), '\0' };
        if (p.at[d].kind == MESH_IS_PARTIAL) {
            more += is_owner ? share(mine[d], mesh_mesh_size(at->m, dim)) : 0;
            is_owner = is_owner && mine[d] == 0;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        part[i] = (is_owner ? part[i] : 0) + more;
    }
}

static mesh_tensor *made(mesh_dtype t, mesh_shape s, const double *values)
{
    mesh_tensor *x = mesh_tensor_new(s, t);
    for (int i = 0; x != NULL && i < n_ranks_of(s); i++) {
        if (t == MESH_F64) {
            ((double *)mesh_tensor_data(x))[i] = values[i];
        } else if (t == MESH_I64) {
            ((int64_t *)mesh_tensor_data(x))[i] = (int64_t)values[i];
        } else {
            ((bool *)mesh_tensor_data(x))[i] = values[i] != 0;
        }
    }
    return x;
}

mesh_dtensor *spot_lay(struct spot *at, mesh_dtype t, mesh_shape s, const double *values, bool may_pend)
{
    mesh_placements asked = { .n = mesh_mesh_ndim(at->m) }, held;
    bool is_pending = false;
    for (int d = 0; d < asked.n; d++) {
        asked.at[d] = draw_one(at, s.ndim, may_pend);
        is_pending = is_pending || asked.at[d].kind == MESH_IS_PARTIAL;
    }
    held = asked;
    for (int d = 0; d < held.n; d++) {
        held.at[d] = held.at[d].kind == MESH_IS_PARTIAL ? R : held.at[d];
    }
    mesh_dtensor *x = mesh_distribute_same(made(t, s, values), at->m, held);
    if (x == NULL || !is_pending) {
        return x;
    }
    mesh_tensor *part = mesh_to_local(x);
    deal_out(mesh_tensor_data(part), n_ranks_of(mesh_tensor_shape(part)), at, asked);
    return mesh_from_local(part, at->m, asked, .shape = s, .unchecked = true);
}
