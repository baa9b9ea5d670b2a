/* daemon/ranks.h - who gets which rank.
 *
 * A rank that asked for a number gets it.  The others are put in order by host, natural-sorted (node2 before node10), then
 * by slot on the host, then by arrival, and take the free numbers in that order: contiguous per node when nobody asked.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_RANKS_H
#define DAEMON_RANKS_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/bounds.h"

struct member { /* one rank, or who wants to become one */
    uint64_t client;
    uint64_t request; /* of the join that waits */
    int32_t wanted;   /* rank asked for, -1: any */
    uint32_t slot;
    char host[MAX_HOST_BYTES];
    uint32_t pid;
    size_t n_addresses;
    char *address[MAX_ADDRESSES];          /* owned */
    uint32_t rank, local_rank, local_size; /* written by ranks_assign() */
};

/* Puts the n members, in order of arrival, into the order of their ranks 0..n-1.  The wanted ranks are different and
 * below n.  MESH_ENOMEM leaves them as they were. */
int ranks_assign(struct member *member, size_t n);

int natural_compare(const char *a, const char *b); /* runs of digits by value; < 0, 0, > 0; 0 only for equal strings */

void member_fini(struct member *m);
/* "rank 2 (node1, pid 4711)"; returns buf. */
const char *member_name(const struct member *m, char *buf, size_t cap);

#endif
