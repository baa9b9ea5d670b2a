/* tests/truth/samples.h - what every row of ops.def is tried on: shapes, dtypes and arguments, and its answer in one
 * process.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRUTH_SAMPLES_H
#define TRUTH_SAMPLES_H

#include "dtensor/dispatch.h"

struct sample {
    enum op_id op;
    int n_in; /* fewer than the row's: the last are absent */
    mesh_shape in[OP_MAX_INPUTS];
    mesh_dtype dtype[OP_MAX_INPUTS]; /* 0: f64 */
    struct op_attr attr;
    bool is_positive; /* the inputs are above 0: roots, logarithms */
};
extern const struct sample samples[];
extern const int n_samples;

struct trial { /* a sample brought to life */
    const struct sample *sample;
    const struct op_row *op;
    struct op_shapes shapes; /* after the shape function */
    struct mesh_tensor *in[OP_MAX_INPUTS], *out[OP_MAX_OUTPUTS];
};
void trial_init(struct trial *t, const struct sample *s, int mesh_ndim); /* ends the program when the operator fails */
/* With other numbers; 0: those of trial_init(). */
#define N_VARIANTS 4
void trial_init_variant(struct trial *t, const struct sample *s, int mesh_ndim, int variant);
void trial_fini(struct trial *t);

struct op_shapes sample_shapes(const struct sample *s, int mesh_ndim); /* before the shape function */

/* The sample in another dtype, where it names none; false: its operator does not take that, or it names all of them. */
bool sample_with_dtype(const struct sample *s, mesh_dtype t, struct sample *ret_sample);

bool sample_is_allowed(const struct sample *s); /* its dtype holds its arguments */

/* The least precise floating dtype of its inputs and results; of integers alone f64. */
mesh_dtype trial_precision(const struct trial *t);

/* The sample's attr.dim[0] names a dim of input 0. */
bool sample_has_dim(const struct sample *s);

int sample_siblings(const struct sample *s); /* how many samples its operator has */

/* Input i names classes or places, rather than being computed with. */
bool sample_is_index(const struct sample *s, int i);

#endif
