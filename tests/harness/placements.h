/* tests/harness/placements.h - placements as initialisers of tables, where functions cannot stand.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HARNESS_PLACEMENTS_H
#define HARNESS_PLACEMENTS_H

#include <mesh/placement.h>

#define R_                                                                                                             \
    {                                                                                                                  \
        .kind = MESH_IS_REPLICATE                                                                                      \
    }
#define S_(d)                                                                                                          \
    {                                                                                                                  \
        .kind = MESH_IS_SHARD, .dim = (d)                                                                              \
    }
#define SS_(d, f)                                                                                                      \
    {                                                                                                                  \
        .kind = MESH_IS_STRIDED_SHARD, .dim = (d), .split_factor = (f)                                                 \
    }
#define P_                                                                                                             \
    {                                                                                                                  \
        .kind = MESH_IS_PARTIAL, .op = MESH_SUM                                                                        \
    }

#endif
