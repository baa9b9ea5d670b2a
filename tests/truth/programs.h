/* tests/truth/programs.h - random programs: what one is made of.
 *
 * A program is drawn step by step from its seed and the shapes it has come to; a second stream draws meshes and
 * layouts.  Run on one rank it ignores the second, so that the same seed gives the same arithmetic on any mesh.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRUTH_PROGRAMS_H
#define TRUTH_PROGRAMS_H

#include <mesh/mesh.h>

#define MAX_VALUES 48
#define MAX_LEAVES 64
#define MAX_STEPS  16

struct value {
    mesh_dtensor *x;
    double tolerance; /* of the difference, by 1 + the largest element; 0: bits */
    int bits;         /* elements are multiples of 2^(4 - bits), and at most 8 */
    bool usable;      /* as an input: finite, and not too rough */
    char what[48];
};

struct leaf {
    mesh_dtensor *x;
    double scale; /* of its gradient as it comes back; 0: none is asked for */
};

/* What the run on one rank leaves to be compared with; the elements as f64 or i64. */
struct record {
    mesh_shape shape;
    mesh_dtype dtype;
    mesh_status status;
    int64_t n;
    void *data;
    double largest; /* of the finite elements */
    int halvings;   /* what brought it down to that */
    bool is_finite;
};

struct outcome; /* of a kind of program its own */

struct program {
    uint64_t seed, draws, layouts;
    int n_ranks;
    bool is_reference, wants_mixed;
    mesh_device_mesh *mesh[3];
    int n_meshes;
    struct value value[MAX_VALUES];
    int n_values;
    struct leaf leaf[MAX_LEAVES];
    int n_leaves;
    /* of the step under way */
    double tolerance;
    int bits;
    bool only_exact;
    int n_seen; /* programs_see.c; -1: something was wrong */
    struct outcome *outcome;
};

/* --- programs_run.c: main() --- */

extern bool is_verbose;
/* Keeps the first complaint of all ranks; returns -1. */
int complain(const struct program *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --- a kind of program has these three --- */

/* As one rank, inside a scope that ends afterwards: fills the outcome when p->is_reference, else compares with it. */
int program_run(struct program *p);
struct outcome *outcome_new(void);
void outcome_free(struct outcome *o);

/* --- programs_compare.c --- */

double larger(double a, double b);
void keep_record(struct record *r, mesh_dtensor *x);
/* -1: no difference of scale x from the record; else where the first one is, and what is there. */
int64_t differs(const struct record *r, mesh_dtensor *x, double scale, double allowed, double *ret_got);

/* --- programs_make.c: draws, meshes, layouts, leaves --- */

int64_t below(struct program *p, int64_t n);
bool chance(struct program *p, int percent);
void begin_step(struct program *p, int step);
uint64_t mixed(uint64_t x);

void make_meshes(struct program *p);
/* Any layout of such a tensor; without pending reductions where they are not wanted. */
mesh_placements any_layout(struct program *p, const mesh_device_mesh *m, mesh_shape s, mesh_dtype t, bool pending);
/* A number of the layouts' stream. */
int64_t layout_below(struct program *p, int64_t n);

mesh_shape any_shape(struct program *p, int max_ndim);
int64_t count_of(mesh_shape s);
bool is_floating(mesh_dtype t);
double roughness(mesh_dtype t);
int mantissa(mesh_dtype t);

/* A new leaf of quarters from -2 to 2, or of whole numbers from -8 to 8; NULL when there are too many. */
mesh_dtensor *leaf(struct program *p, mesh_device_mesh *m, mesh_shape s, mesh_dtype t);
/* Whole numbers from low to high - 1. */
mesh_dtensor *whole(struct program *p, mesh_device_mesh *m, mesh_shape s, int64_t low, int64_t high);

/* What a rank gives to mesh_from_local(). */
mesh_tensor *part_or_whole(mesh_tensor *mine, mesh_device_mesh *m, mesh_shape s);

mesh_device_mesh *on(mesh_dtensor *a);
int64_t dim_of(mesh_dtensor *a, int d);
/* A dim of a, sometimes counted from the end. */
int any_dim(struct program *p, mesh_dtensor *a);
mesh_reduce_options some_dims(struct program *p, mesh_dtensor *a);
/* The shape with another extent of dim d. */
mesh_shape with(mesh_shape s, int d, int64_t extent);
/* A tensor of this shape: one that is there, or a new one. */
mesh_dtensor *shaped(struct program *p, mesh_dtensor *a, mesh_shape s);
/* A tensor that broadcasts to a, of another dtype now and then. */
mesh_dtensor *peer(struct program *p, mesh_dtensor *a);
/* x x + 1. */
mesh_dtensor *positive(mesh_dtensor *x);

/* --- programs_ops.c, programs_moves.c --- */

#define OP(name) static mesh_dtensor *do_##name(struct program *p, mesh_dtensor *a)

/* What a result's elements need of bits, by those of the inputs. */
enum effect { MOVES, ADDS, MULTIPLIES, SUMS, PRODUCTS, ROUGH };
enum { FLOATS = 1, WHOLE = 2, EXACT = 4 };

struct op {
    const char *name;
    enum effect effect;
    int flags; /* FLOATS, WHOLE: only these; EXACT: a difference in rounding could change much */
    int min_ndim;
    mesh_dtensor *(*of)(struct program *p, mesh_dtensor *a);
    mesh_dtensor *(*unary)(mesh_dtensor *a);
    mesh_dtensor *(*binary)(mesh_dtensor *a, mesh_dtensor *b);
};
extern const struct op computing_ops[], moving_ops[];
extern const int n_computing_ops, n_moving_ops;

#endif
