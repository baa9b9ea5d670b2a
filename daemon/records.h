/* daemon/records.h - which groups the ranks of a job made: kept only to be looked at.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_RECORDS_H
#define DAEMON_RECORDS_H

#include "base/vec.h"
#include "daemon/bounds.h"
#include "daemon/members.h"

struct group_record {
    uint64_t group;
    char name[MAX_NAME_BYTES + 1];
    struct members members;
};

struct records {
    VEC(struct group_record) groups;
};

struct group_call {
    uint64_t group;
    const char *name;
    const uint32_t *member; /* [n_members]; none: all ranks */
    size_t n_members;
    uint32_t world_size;
};

/* Every member posts its group; the first post is kept.  Over MAX_GROUP_RECORDS the oldest is forgotten. */
int records_group(struct records *r, const struct group_call *c);
void records_clear(struct records *r);
void records_fini(struct records *r);

#endif
