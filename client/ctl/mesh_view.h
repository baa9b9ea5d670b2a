/* client/ctl/mesh_view.h - a device mesh as meshd keeps it, taken apart for drawing.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_MESH_VIEW_H
#define CTL_MESH_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mesh/base.h>

#include "base/buf.h"

struct mesh_view {
    const char *key; /* borrowed */
    char device[32];
    int ndim;
    uint32_t shape[MESH_MAX_MESH_NDIM];
    char name[MESH_MAX_MESH_NDIM][40]; /* "dim0" when it has none */
    char *names[MESH_MAX_MESH_NDIM];   /* pointers to the above */
    const uint32_t *ranks;             /* [n_ranks], row-major, borrowed */
    size_t n_ranks;
    uint32_t agreed;
};

/* From "device=cpu shape=2x4 names=dp,tp" and the members; fields it does not know are skipped.  MESH_EPROTO when shape is
 * missing or does not fit the members. */
int mesh_view_parse(struct mesh_view *ret_view, const char *descriptor, const uint32_t *ranks, size_t n_ranks);

/* "dp=1 pp=0": the coordinates of a row of the grid; the last dimension runs across. */
void mesh_view_row_title(const struct mesh_view *v, size_t row, char *buf, size_t cap);

/* "dp [0 2] [1 3]": the groups along dimension dim. */
void mesh_view_groups(const struct mesh_view *v, int dim, struct buf *text);

#endif
