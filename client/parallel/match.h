/* client/parallel/match.h - the modules that a path with patterns names.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PARALLEL_MATCH_H
#define PARALLEL_MATCH_H

#include "nn/module.h"

typedef VEC(mesh_module *) module_list;

/* Appends the modules below root whose path matches.  MESH_ENOTFOUND when there is none: names the part that fits
 * nothing and what there is instead. */
int match_modules(mesh_module *root, const char *pattern, module_list *inout_found);

#endif
