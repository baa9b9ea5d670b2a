/* client/comm/split.c - mesh_split_group(): groups that the ranks of a group make together.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "comm/collective.h"
#include "comm/group.h"

struct choice { /* of one rank, as it goes over the wire */
    int64_t color, key, place;
};

static int compare(const void *a, const void *b)
{
    const struct choice *x = a, *y = b;
    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    return x->place < y->place ? -1 : x->place > y->place;
}

/* Those of one color, or (negative) of any color, by key and then by place. */
static mesh_group *make(mesh_group *g, struct choice *all, int64_t color)
{
    int n = 0, size = group_size(g);
    int *ranks = mem_new_array(int, (size_t)size);
    if (ranks == NULL) {
        (void)err_no_memory((size_t)size * sizeof *ranks, "a group");
        return NULL;
    }
    qsort(all, (size_t)size, sizeof *all, compare);
    for (int i = 0; i < size; i++) {
        if (color < 0 ? all[i].color >= 0 : all[i].color == color) {
            ranks[n++] = group_world_ranks(g)[all[i].place];
        }
    }
    mesh_group *made = NULL;
    if (n == 0) {
        (void)err_set(MESH_EINVAL, "no rank of the group has a color: there is no group to make");
    } else {
        made = group_new(group_session(g), ranks, n, NULL);
    }
    (void)mem_free(ranks);
    return made;
}

mesh_group *mesh_split_group(mesh_group *g, int color, int key)
{
    err_enter(__func__);
    int size = g != NULL ? group_size(g) : 1;
    struct choice mine = { .color = color, .key = key, .place = g != NULL ? group_rank(g) : 0 };
    struct choice *all = mem_new_array(struct choice, (size_t)size);
    if (all == NULL) {
        (void)err_no_memory((size_t)size * sizeof *all, "a split");
        return NULL;
    }
    const struct collective_call call = {
        .kind = MESH_COMM_ALL_GATHER, .dtype = MESH_I64, .count = 3, .in = &mine, .out = all
    };
    mesh_group *made = collective_run(g, &call) == 0 ? make(g, all, color) : NULL;
    (void)mem_free(all);
    return made;
}
