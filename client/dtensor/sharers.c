/* client/dtensor/sharers.c - the ranks that share a dim, and their exchange.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/sharers.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "comm/collective.h"

bool sharers_split(const mesh_device_mesh *m, const mesh_placements *p, int mesh_dim, int dim)
{
    return p->at[mesh_dim].kind == MESH_IS_SHARD && p->at[mesh_dim].dim == dim && m->size[mesh_dim] > 1;
}

struct sharers sharers_of(const mesh_device_mesh *m, const mesh_placements *p, int dim)
{
    struct sharers s = { .mesh = m, .n = 1 };
    for (int i = 0; i < m->ndim; i++) {
        if (sharers_split(m, p, i, dim)) {
            s.mesh_dims |= UINT32_C(1) << i;
            s.n *= m->size[i];
            s.me = s.me * m->size[i] + m->coordinate[i];
        }
    }
    return s;
}

void sharers_coordinate(const struct sharers *s, int part, int *ret_coordinate)
{
    const mesh_device_mesh *m = s->mesh;
    memcpy(ret_coordinate, m->coordinate, sizeof m->coordinate);
    for (int i = m->ndim - 1; i >= 0; i--) {
        if ((s->mesh_dims >> i & 1U) != 0) {
            ret_coordinate[i] = part % m->size[i];
            part /= m->size[i];
        }
    }
}

struct chunk sharers_chunk_at(const mesh_device_mesh *m, uint32_t mesh_dims, const int *coordinate, int64_t extent)
{
    struct chunk all = { 0, extent };
    for (int i = 0; i < m->ndim; i++) {
        if ((mesh_dims >> i & 1U) != 0) {
            struct chunk c = layout_chunk(all.extent, m->size[i], coordinate[i]);
            all = (struct chunk){ all.offset + c.offset, c.extent };
        }
    }
    return all;
}

struct chunk sharers_chunk(const struct sharers *s, int part, int64_t extent)
{
    int at[MESH_MAX_MESH_NDIM];
    sharers_coordinate(s, part, at);
    return sharers_chunk_at(s->mesh, s->mesh_dims, at, extent);
}

static mesh_group *group_of(const struct sharers *s)
{
    for (int i = 0; i < s->mesh->ndim; i++) {
        if (s->mesh_dims == UINT32_C(1) << i) {
            return s->mesh->group[i];
        }
    }
    return s->mesh->whole;
}

static size_t place_of(const struct sharers *s, int part)
{
    int at[MESH_MAX_MESH_NDIM];
    size_t place = 0;
    if (group_of(s) != s->mesh->whole) {
        return (size_t)part;
    }
    sharers_coordinate(s, part, at);
    for (int i = 0; i < s->mesh->ndim; i++) {
        place = place * (size_t)s->mesh->size[i] + (size_t)at[i];
    }
    return place;
}

int sharers_swap(const struct sharers *s, const struct sharers_swap *w)
{
    mesh_group *group = group_of(s);
    size_t n = group == s->mesh->whole ? (size_t)s->mesh->n_ranks : (size_t)s->n;
    size_t *counts = mem_new_array(size_t, 2 * n);
    if (counts == NULL) {
        return err_no_memory(2 * n * sizeof *counts, "the sizes of the parts");
    }
    memset(counts, 0, 2 * n * sizeof *counts);
    for (int part = 0; part < s->n; part++) {
        counts[place_of(s, part)] = w->sent_counts[part];
        counts[n + place_of(s, part)] = w->got_counts[part];
    }
    struct collective_call call = { .kind = MESH_COMM_ALL_TO_ALL,
                                    .dtype = w->sent->dtype,
                                    .in_counts = counts,
                                    .out_counts = counts + n,
                                    .in = w->sent->data,
                                    .out = w->got->data };
    int r = collective_run(group, &call);
    mem_free(counts);
    return r;
}
