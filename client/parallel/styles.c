/* client/parallel/styles.c - the table of styles.
 *
 *     linear     colwise    y = [x w1' + b1 | x w2' + b2 | ...]    each rank some outputs: x whole, y sharded over its last
 *                                                                  dim
 *                rowwise    y = x1 w1' + x2 w2' + ... + b          each rank some inputs: x sharded over its last dim, y
 *                                                                  pending; the bias is made pending too, so that it
 *                                                                  counts once
 *     embedding  colwise    y = [w1[ids] | w2[ids] | ...]          each rank some columns: ids whole, y sharded over its
 *                                                                  last dim
 *                rowwise    y = w1[ids] + w2[ids] + ...            each rank some rows, 0 for the others': ids whole, y
 *                                                                  pending
 *     any        sequence   y = f(x)                               each rank some places of x's dim `dim`
 *                prepare    y = f(x)                               only where x and y are is the caller's to say
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/styles.h"

#include "base/error.h"

enum style_kind { STYLE_COLWISE = 1, STYLE_ROWWISE, STYLE_SEQUENCE, STYLE_PREPARE };

#define REPLICATE                                                                                                      \
    {                                                                                                                  \
        .kind = MESH_IS_REPLICATE                                                                                      \
    }
#define SHARD(which)                                                                                                   \
    {                                                                                                                  \
        .kind = MESH_IS_SHARD, .dim = (which)                                                                          \
    }
#define ALONG /* no placement: Shard(dim of the style) */                                                              \
    {                                                                                                                  \
        .kind = 0, .dim = -1                                                                                           \
    }
#define KEPT /* no placement: as it is */                                                                              \
    {                                                                                                                  \
        .kind = 0                                                                                                      \
    }

/* clang-format off */
static const struct style_row rows[] = {
    /* of                                                weight       bias         input      needed      output    */
    { STYLE_COLWISE,  "colwise",  &linear_class,         SHARD(0),    SHARD(0),    REPLICATE, REPLICATE,  SHARD(-1) },
    { STYLE_ROWWISE,  "rowwise",  &linear_class,         SHARD(1),    REPLICATE,   SHARD(-1), SHARD(-1),  REPLICATE },
    { STYLE_COLWISE,  "colwise",  &embedding_class,      SHARD(1),    REPLICATE,   REPLICATE, REPLICATE,  SHARD(-1) },
    { STYLE_ROWWISE,  "rowwise",  &embedding_class,      SHARD(0),    REPLICATE,   REPLICATE, REPLICATE,  REPLICATE },
    { STYLE_SEQUENCE, "sequence", NULL,                  REPLICATE,   REPLICATE,   ALONG,     ALONG,      ALONG     },
    { STYLE_PREPARE,  "prepare",  NULL,                  KEPT,        KEPT,        KEPT,      KEPT,       KEPT      },
};
/* clang-format on */

const struct style_row *style_find(const mesh_style *s, const mesh_module *m)
{
    const char *name = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].kind == s->kind) {
            name = rows[i].name;
            if (rows[i].class_ == NULL || rows[i].class_ == m->class_) {
                return &rows[i];
            }
        }
    }
    if (name == NULL) {
        err_set(MESH_EINVAL, "%d is no style: use mesh_colwise(), mesh_rowwise(), mesh_sequence() or mesh_prepare()",
                s->kind);
    } else {
        err_set(MESH_EUNSUPPORTED, "the %s style is for linear layers and embeddings; this module is a \"%s\"", name,
                module_class_name(m));
    }
    return NULL;
}

static mesh_placement chosen(mesh_placement wanted, mesh_placement of_row, int dim)
{
    if (wanted.kind != 0) {
        return wanted;
    }
    return of_row.kind == 0 && of_row.dim < 0 ? mesh_shard(dim) : of_row;
}

struct module_io style_io(const struct style_row *row, const mesh_style *s)
{
    mesh_placement own = { .kind = 0 };
    return (struct module_io){
        .input = chosen(s->input, row->input, s->dim),
        .needed = chosen(own, row->needed, s->dim),
        .output = chosen(s->output, row->output, s->dim),
    };
}

MESH_API mesh_style mesh_colwise(void)
{
    return (mesh_style){ .kind = STYLE_COLWISE };
}

MESH_API mesh_style mesh_rowwise(void)
{
    return (mesh_style){ .kind = STYLE_ROWWISE };
}

MESH_API mesh_style mesh_sequence(int dim)
{
    return (mesh_style){ .kind = STYLE_SEQUENCE, .dim = dim };
}

MESH_API mesh_style mesh_prepare(void)
{
    return (mesh_style){ .kind = STYLE_PREPARE };
}
