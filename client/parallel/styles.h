/* client/parallel/styles.h - what a style does to a module on one mesh dim, as facts.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PARALLEL_STYLES_H
#define PARALLEL_STYLES_H

#include <mesh/parallel.h>

#include "nn/module.h"

struct style_row {
    int kind;
    const char *name;
    const mesh_module_class *class_;      /* NULL: any module */
    mesh_placement weight, bias;          /* of the parameters */
    mesh_placement input, needed, output; /* of the activations; Shard(-1) is the last dim */
};

/* The row of a style for this module; NULL: MESH_EINVAL or MESH_EUNSUPPORTED set. */
const struct style_row *style_find(const mesh_style *s, const mesh_module *m);

/* What the style does to inputs and results, with what the caller asked for instead. */
struct module_io style_io(const struct style_row *row, const mesh_style *s);

#endif
