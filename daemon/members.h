/* daemon/members.h - a set of ranks of one job, kept sorted.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_MEMBERS_H
#define DAEMON_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct members {
    uint32_t *rank; /* [n] ascending */
    size_t n;
};

/* n 0: all ranks of a world of this size.  MESH_EINVAL: a rank outside the world or named twice. */
int members_init(struct members *m, const uint32_t *rank, size_t n, uint32_t world_size);
void members_fini(struct members *m);

bool members_index(const struct members *m, uint32_t rank, size_t *ret_index); /* false: not a member */
bool members_equal(const struct members *a, const struct members *b);
bool members_overlap(const struct members *a, const struct members *b);

#endif
