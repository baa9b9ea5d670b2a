/* tests/truth/conformance.h - cases with known answers, and what the ranks of a world made of them.
 *
 *     conformance.c        files, groups of cases, one child process per group, the report
 *       conformance_read.c   a JSON line -> struct test_case
 *       conformance_rows.c   an operator's name -> how to call it (conformance_ops.def)
 *       conformance_group.c  a group of cases in one world -> verdicts
 *         conformance_processes.c  the same where the ranks are processes
 *       conformance_run.c    one case on one rank of a world -> struct outcome
 *         conformance_parts.c  a logical value -> this rank's part of it
 *       conformance_check.c  the outcomes of all ranks -> passed, or what differs
 *
 * Only the installed headers are used: what is tested is what a program sees.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRUTH_CONFORMANCE_H
#define TRUTH_CONFORMANCE_H

#include <mesh/mesh.h>

#include <jansson.h>
#include <stdio.h>

#define CASE_MAX_INPUTS  8
#define CASE_MAX_OUTPUTS 4
#define CASE_MAX_RANKS   64
#define CASE_ID_BYTES    96
#define TEXT_BYTES       640

/* A whole tensor. */
struct value {
    mesh_shape shape;
    mesh_dtype dtype;
    int64_t n;
    void *data; /* [n] */
    mesh_placements placements;
};

/* What one rank must hold after distribute_tensor or redistribute. */
struct local_part {
    struct value value;
    mesh_shape offset;
};

/* The arguments of operators that are not tensors; which of them an operator takes stands in conformance_ops.def. */
struct case_attr {
    mesh_shape dims, shape;
    bool keepdim, approximate_tanh;
    int dim, dim0, dim1;
    double value, label_smoothing;
    double min, max, negative_slope, weight, exponent;
    int64_t diagonal;
    int64_t ignore_index;
    mesh_reduction reduction;
    mesh_placements to;
    int64_t shift, start, length, index, split_size, num_classes;
    mesh_shape pad, repeats;
    bool is_causal;
    double correction, p, eps;
    int64_t k;
    int normalized_dims;
    bool descending;
};

struct test_case {
    char id[CASE_ID_BYTES];
    int order;  /* in the files */
    char *line; /* the JSON that it was read from */
    const struct op_row *row;
    mesh_shape mesh;
    int n_ranks; /* the product of mesh */
    struct case_attr attr;
    int n_in, n_out;
    struct value in[CASE_MAX_INPUTS];
    bool is_absent[CASE_MAX_INPUTS]; /* an optional input given as null */
    struct value out[CASE_MAX_OUTPUTS];
    bool has_gradient[CASE_MAX_INPUTS];
    struct value gradient[CASE_MAX_INPUTS];
    struct local_part *locals; /* [n_ranks]; NULL: full values are compared */
    double rtol, atol;
    char unsupported[TEXT_BYTES]; /* not "": fails without being run, and why */
};

/* A known operator: calls it and returns how many outputs it wrote. */
struct op_row {
    const char *name;
    int min_inputs, max_inputs;
    const char *attrs; /* the names it takes, separated by spaces */
    int (*call)(mesh_dtensor *const *in, const struct case_attr *a, mesh_dtensor **out);
    bool is_distribute; /* input 0 is laid out by mesh_distribute_tensor(), not by mesh_from_local() */
};
const struct op_row *op_row_find(const char *name); /* NULL: not built yet */

/* One JSON object to a case.  false: malformed, *ret_why says how.  A well-formed case that we cannot run has unsupported set. */
bool case_read(json_t *object, const struct op_row *row, struct test_case *ret_case, const char **ret_why);
void case_fini(struct test_case *c);
bool placement_read(const char *text, mesh_placement *ret_placement); /* "R", "S(0)", "P(sum)" */

/* Elements by index, as the widest number of their kind. */
size_t item_bytes(mesh_dtype t);
bool is_float(mesh_dtype t);
double number_at(mesh_dtype t, const void *data, int64_t i);
int64_t whole_at(mesh_dtype t, const void *data, int64_t i); /* integers and bool */
void number_put(mesh_dtype t, void *data, int64_t i, double v);
int64_t numel(mesh_shape s);

/* The box of a tensor that a rank of a row-major mesh holds: ceil chunks, earlier mesh dims outermost.  The offset of an
 * empty part is the extent of the dim. */
void part_box(mesh_shape shape, mesh_shape mesh, mesh_placements p, int rank, mesh_shape *ret_offset,
              mesh_shape *ret_extent);
/* Element i of the logical tensor, of value v, as this rank's share: v itself unless a placement is Partial. */
double part_value(double v, int64_t i, const struct value *whole, mesh_shape mesh, int rank);
/* Fills data, dense of the box's extent, with the rank's part of v. */
void part_fill(void *data, const struct value *v, mesh_shape mesh, int rank);

/* What a rank saw. */
struct captured {
    char what[40]; /* "output 0", "gradient of input 1", "local part" */
    mesh_shape shape;
    mesh_dtype dtype;
    void *data;
};
#define CASE_MAX_CAPTURED (CASE_MAX_OUTPUTS + CASE_MAX_INPUTS)

struct outcome {
    bool was_run;
    int status; /* of the scope; below 0: message */
    char message[TEXT_BYTES];
    int n_captured;
    struct captured captured[CASE_MAX_CAPTURED];
};

void case_run(const struct test_case *c, mesh_device_mesh *mesh, int rank, struct outcome *ret_outcome);
void outcome_fini(struct outcome *o);

/* true: all ranks agree with the case; else ret_why says which one differs where. */
bool case_check(const struct test_case *c, const struct outcome *outcomes, char ret_why[TEXT_BYTES]);

/* Cases on the same mesh, which share a world. */
struct group {
    const struct test_case *cases;
    int n;
    bool has_processes;       /* the ranks are processes; else simulated */
    struct outcome *outcomes; /* [n][n_ranks] */
    FILE *file;               /* not NULL: this rank's outcomes also go there, in order */
    char failure[320];        /* of the world as a whole; "": none */
};

struct verdict {
    bool has_passed;
    char why[TEXT_BYTES];
};

/* Runs the cases and sends a struct verdict for each, up to the first in which a rank failed.  Returns an exit status. */
int group_run(struct group *g, int fd);
/* On each rank; stops at its first failing case, because the ranks may no longer be in step. */
int group_run_rank(struct group *g);

/* Runs the cases on processes and reads their outcomes back; sets failure. */
void processes_run(struct group *g);
/* What such a process does: the cases, with its outcomes to a file in the folder.  Returns an exit status. */
int processes_rank(const struct test_case *cases, int n, const char *folder);

#endif
