/* tests/truth/large.c - samples whose every extent above 1 grows by one factor, as far as their row takes that.
 * SPDX-License-Identifier: Apache-2.0 */
#include "truth/large.h"

#include "base/kept.h"
#include "base/util.h"

#define FACTOR 12 /* of every extent above 1 */

/* Which extents grow: where a row's argument is a shape, it must fit. */
enum growth { ALL_DIMS, ALL_BUT_ARGUMENT, FIRST_DIM, NO_DIM };

static void grow(mesh_shape *s, bool first_only)
{
    for (int d = 0; d < (first_only ? MIN(s->ndim, 1) : s->ndim); d++) {
        s->dim[d] *= s->dim[d] > 1 ? FACTOR : 1;
    }
}

static struct sample grown(const struct sample *s, enum growth how)
{
    struct sample large = *s;
    for (int i = 0; how != NO_DIM && i < s->n_in; i++) {
        grow(&large.in[i], how == FIRST_DIM);
    }
    if (how == ALL_DIMS || how == FIRST_DIM) {
        grow(&large.attr.shape, how == FIRST_DIM);
    }
    return large;
}

static bool is_accepted(const struct sample *s)
{
    const struct op_row *op = &op_table[s->op];
    struct op_shapes shapes = {
        .name = op->name, .n_in = op->n_in, .n_out = op->n_out, .attr = s->attr, .mesh_ndim = 1
    };
    for (int i = 0; i < s->n_in; i++) {
        shapes.has[i] = true;
        shapes.in[i] = s->in[i];
        shapes.in_dtype[i] = s->dtype[i] ? s->dtype[i] : MESH_F64;
    }
    return op->shape(&shapes) == 0;
}

size_t with_slack(size_t bytes)
{
    size_t objects = KEEPS_BLOCKS ? 0 : 8192; /* else they come from a pool and are not counted */
    return bytes + 2048 + objects + bytes / 32;
}

struct sample sample_largest(const struct sample *s)
{
    struct sample large = *s;
    for (enum growth how = ALL_DIMS; how <= NO_DIM; how++) {
        large = grown(s, how);
        if (is_accepted(&large)) {
            break;
        }
    }
    return large;
}
