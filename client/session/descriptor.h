/* client/session/descriptor.h - compares what ranks say about a thing they must agree on, field by field.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_DESCRIPTOR_H
#define SESSION_DESCRIPTOR_H

#include <stdbool.h>

struct seat { /* of one rank in a meeting */
    int rank;
    bool is_taken;
    char *descriptor; /* "device=cpu shape=2x4 names=dp,tp" */
};

/* 0, or MESH_EMISMATCH with the first field in which the descriptors differ, both values, and the ranks that gave each:
 * "device_mesh/3: shape differs: rank 2 has 4x2, ranks 0 1 have 2x4".  Seats that are
 * not taken say nothing. */
int descriptors_compare(const char *name, const struct seat *seat, int n);

#endif
