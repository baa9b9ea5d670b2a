/* client/parallel/styles.c - the table of styles.
 *
 *     colwise   y = [x w1' + b1 | x w2' + b2 | ...]       each rank some outputs:  x whole, y sharded over its last dim
 *     rowwise   y = x1 w1' + x2 w2' + ... + b             each rank some inputs:   x sharded over its last dim, y
 *     pending;
 *                                                         the bias is made pending too, so that it counts once
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/styles.h"

#include "base/error.h"

enum style_kind { STYLE_COLWISE = 1, STYLE_ROWWISE, N_STYLES };

#define REPLICATE                                                                                                      \
    {                                                                                                                  \
        .kind = MESH_IS_REPLICATE                                                                                      \
    }
#define SHARD(which)                                                                                                   \
    {                                                                                                                  \
        .kind = MESH_IS_SHARD, .dim = (which)                                                                          \
    }

/* clang-format off */
static const struct style_row rows[N_STYLES] = {
    /*                              weight       bias        input       needed      output    */
    [STYLE_COLWISE] = { "colwise",  SHARD(0),    SHARD(0),   REPLICATE,  REPLICATE,  SHARD(-1) },
    [STYLE_ROWWISE] = { "rowwise",  SHARD(1),    REPLICATE,  SHARD(-1),  SHARD(-1),  REPLICATE },
};
/* clang-format on */

const struct style_row *style_find(const mesh_style *s)
{
    if (s->kind < STYLE_COLWISE || s->kind >= N_STYLES) {
        err_set(MESH_EINVAL, "%d is no style: use mesh_colwise() or mesh_rowwise()", s->kind);
        return NULL;
    }
    return &rows[s->kind];
}

MESH_API mesh_style mesh_colwise(void)
{
    return (mesh_style){ .kind = STYLE_COLWISE };
}

MESH_API mesh_style mesh_rowwise(void)
{
    return (mesh_style){ .kind = STYLE_ROWWISE };
}
