/* daemon/records.c - records of groups.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/records.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

static bool is_known(const struct records *r, uint64_t group)
{
    for (size_t i = r->groups.n; i-- > 0;) {
        if (r->groups.at[i].group == group) {
            return true;
        }
    }
    return false;
}

static void drop_oldest(struct records *r)
{
    members_fini(&r->groups.at[0].members);
    memmove(&r->groups.at[0], &r->groups.at[1], (r->groups.n - 1) * sizeof *r->groups.at);
    r->groups.n--;
}

int records_group(struct records *r, const struct group_call *c)
{
    if (is_known(r, c->group)) {
        return 0;
    }
    struct group_record record = { .group = c->group };
    int status = members_init(&record.members, c->member, c->n_members, c->world_size);
    if (status < 0) {
        return status;
    }
    snprintf(record.name, sizeof record.name, "%s", c->name);
    if (r->groups.n >= MAX_GROUP_RECORDS) {
        drop_oldest(r);
    }
    struct group_record *place = VEC_PUSH(&r->groups);
    if (place == NULL) {
        members_fini(&record.members);
        return err_no_memory(sizeof record, "the record of a group");
    }
    *place = record;
    return 0;
}

void records_clear(struct records *r)
{
    while (r->groups.n > 0) {
        members_fini(&r->groups.at[--r->groups.n].members);
    }
}

void records_fini(struct records *r)
{
    records_clear(r);
    VEC_FINI(&r->groups);
}
