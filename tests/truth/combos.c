/* tests/truth/combos.c - combinations of layouts by number.
 * SPDX-License-Identifier: Apache-2.0 */
#include "truth/combos.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/dtype.h"
#include "tensor/shape.h"
#include "truth/parts.h"

/* All layouts of one input; returns how many. */
static int list_layouts(mesh_shape s, mesh_dtype t, int mesh_ndim, mesh_placements **ret_layouts)
{
    int64_t total = layouts_count(s, t, mesh_ndim);
    mesh_placements *list = malloc((size_t)total * sizeof *list);
    int n = 0;
    parts_must(list != NULL, "no memory");
    for (int64_t k = 0; k < total; k++) {
        mesh_placements p = layout_numbered(s, t, mesh_ndim, k);
        if (!placements_mix_reductions(&p)) {
            list[n++] = p;
        }
    }
    *ret_layouts = list;
    return n;
}

void combos_init(struct combos *c, const struct trial *t, int mesh_ndim)
{
    *c = (struct combos){ .n_in = t->sample->n_in, .total = 1 };
    for (int i = 0; i < c->n_in; i++) {
        c->n[i] = list_layouts(t->shapes.in[i], t->shapes.in_dtype[i], mesh_ndim, &c->layouts[i]);
        c->total *= c->n[i];
    }
}

void combos_fini(struct combos *c)
{
    for (int i = 0; i < c->n_in; i++) {
        free(c->layouts[i]);
    }
}

void combos_take(const struct combos *c, int64_t number, int *ret_at, mesh_placements *ret_layouts)
{
    for (int i = 0; i < c->n_in; i++) {
        int at = (int)(number % c->n[i]);
        number /= c->n[i];
        if (ret_at != NULL) {
            ret_at[i] = at;
        }
        if (ret_layouts != NULL) {
            ret_layouts[i] = c->layouts[i][at];
        }
    }
}

const char *combo_text(const struct trial *t, const mesh_placements *layouts, char *buf, size_t cap)
{
    size_t at = (size_t)snprintf(buf, cap, "%s", t->op->name);
    for (int i = 0; i < t->sample->n_in; i++) {
        char text[96], shape[SHAPE_TEXT_BYTES];
        at += (size_t)snprintf(buf + at, cap - at, " %s%s%s", dtype_name(t->in[i]->dtype),
                               shape_text(t->in[i]->shape, shape, sizeof shape),
                               mesh_placements_text(layouts[i], text, sizeof text));
    }
    return buf;
}
