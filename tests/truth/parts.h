/* tests/truth/parts.h - a logical tensor cut into the parts that ranks hold, and put together again, in one process.
 *
 * Everything is obvious loops over doubles: it is what layouts, rules and redistribution are compared with.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRUTH_PARTS_H
#define TRUTH_PARTS_H

#include "dtensor/layout.h"

#define PARTS_MAX_RANKS 16

/* How a pending value is spread over a line: unequal parts with changing signs, or the value on coordinate 0 and what
 * changes nothing on the others. */
enum split { SPLIT_UNEVEN, SPLIT_NEUTRAL, N_SPLITS };

struct cut { /* a mesh and a layout on it */
    int ndim;
    int size[MESH_MAX_MESH_NDIM];
    mesh_placements p;
    int salt; /* pending parts of inputs with different salts differ */
};

/* For what a test itself relies on: ends the program.  (Check's own asserts write a line to a file each time.) */
void parts_must(bool claim, const char *what);

double tensor_number(const struct mesh_tensor *t, int64_t i);
double number_wrapped(double v, mesh_dtype t); /* as an integer of that dtype keeps it; other dtypes: v */
void tensor_set_number(struct mesh_tensor *t, int64_t i, double v);

/* Small numbers of both signs, never 0, different in every element; integers stay integers. */
struct mesh_tensor *sample_tensor(mesh_shape s, mesh_dtype t, int seed);

int cut_ranks(const struct cut *c);
void cut_coordinate(const struct cut *c, int rank, int *ret_coordinate);

/* The part of rank (row-major in the mesh); the reference is the caller's. */
struct mesh_tensor *cut_part(const struct mesh_tensor *whole, const struct cut *c, int rank, enum split split);

/* The logical value of parts [ranks], as doubles [numel]; the caller frees.  *ret_same: replicas agree. */
double *join_parts(struct mesh_tensor *const *parts, mesh_shape global, const struct cut *c, bool *ret_same);

/* All legal layouts of a tensor on a mesh: R, S(d) of every dim, and pending reductions of floating (sum avg max min)
 * or integer (sum max min; of bool none) tensors.  Returns how many. */
#define LAYOUTS_MAX 256
int all_layouts(mesh_shape s, mesh_dtype t, int ndim, mesh_placements *ret_layouts);

/* By number, and with every reduction there is: layout_numbered() of the numbers below layouts_count(), which may mix
 * reductions. */
int64_t layouts_count(mesh_shape s, mesh_dtype t, int ndim);
mesh_placements layout_numbered(mesh_shape s, mesh_dtype t, int ndim, int64_t number);

bool numbers_are_near(double a, double b, double tolerance); /* NaN is near NaN */
/* Of a few dozen operations whose parts are larger than what they come to, each rounded to t. */
double tolerance_of(mesh_dtype t, double of_f64);
bool tensors_are_near(const struct mesh_tensor *a, const struct mesh_tensor *b, double tolerance); /* and alike */

#endif
