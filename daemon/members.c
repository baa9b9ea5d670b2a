/* daemon/members.c - sets of ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/members.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

static int by_rank(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int check(const uint32_t *rank, size_t n, uint32_t world_size)
{
    for (size_t i = 0; i < n; i++) {
        if (rank[i] >= world_size) {
            return err_set(MESH_EINVAL, "rank %u is outside the job: it has ranks 0 to %u", rank[i], world_size - 1);
        }
        if (i > 0 && rank[i] == rank[i - 1]) {
            return err_set(MESH_EINVAL, "rank %u is named twice in the list of members", rank[i]);
        }
    }
    return 0;
}

int members_init(struct members *m, const uint32_t *rank, size_t n, uint32_t world_size)
{
    size_t count = n == 0 ? world_size : n;
    if (count > world_size) {
        return err_set(MESH_EINVAL, "%zu members in a job of %u ranks", n, world_size);
    }
    uint32_t *sorted = mem_new_array(uint32_t, count);
    if (sorted == NULL) {
        return err_no_memory(count * sizeof *sorted, "a list of members");
    }
    for (size_t i = 0; i < count; i++) {
        sorted[i] = n == 0 ? (uint32_t)i : rank[i];
    }
    int r = 0;
    if (n > 0) {
        qsort(sorted, count, sizeof *sorted, by_rank);
        r = check(sorted, count, world_size);
    }
    if (r < 0) {
        mem_free(sorted);
        return r;
    }
    *m = (struct members){ .rank = sorted, .n = count };
    return 0;
}

void members_fini(struct members *m)
{
    mem_free(m->rank);
    *m = (struct members){ .rank = NULL };
}

bool members_index(const struct members *m, uint32_t rank, size_t *ret_index)
{
    if (m->n == 0) {
        return false;
    }
    const uint32_t *found = bsearch(&rank, m->rank, m->n, sizeof *m->rank, by_rank);
    if (found == NULL) {
        return false;
    }
    *ret_index = (size_t)(found - m->rank);
    return true;
}

bool members_equal(const struct members *a, const struct members *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->rank, b->rank, a->n * sizeof *a->rank) == 0);
}

bool members_overlap(const struct members *a, const struct members *b)
{
    for (size_t i = 0, j = 0; i < a->n && j < b->n;) {
        if (a->rank[i] == b->rank[j]) {
            return true;
        }
        if (a->rank[i] < b->rank[j]) {
            i++;
        } else {
            j++;
        }
    }
    return false;
}
