/* client/parallel/styles.h - what a style does to a module on one mesh dim, as facts.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PARALLEL_STYLES_H
#define PARALLEL_STYLES_H

#include <mesh/parallel.h>

#include "nn/module.h"

struct style_row {
    const char *name;
    mesh_placement weight, bias;          /* of the parameters */
    mesh_placement input, needed, output; /* of the activations; Shard(-1) is the last dim */
};

/* NULL: MESH_EINVAL set. */
const struct style_row *style_find(const mesh_style *s);

#endif
