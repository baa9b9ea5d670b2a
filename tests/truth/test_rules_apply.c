/* tests/truth/test_rules_apply.c - operators as programs call them: any layouts in, the right value out, on every rank.
 *
 * All combinations of layouts of up to three inputs on 2 to 8 ranks, an even spread of them on meshes of up to 8 ranks
 * and 3 dims, on permuted meshes, with ranks outside, and in every dtype (test_rules.c has the rules and their products
 * without communication, test_redistribute.c all pairs of layouts).
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "harness/check_main.h"
#include "harness/ranks.h"
#include "tensor/shape.h"
#include "truth/combos.h"
#include "truth/parts.h"
#include "truth/share.h"

#define TOLERANCE 1e-10 /* f64: products and sums of a few dozen numbers */

struct world {
    const char *name;
    int n_ranks;
    mesh_shape shape;
    const int *ranks;  /* NULL: all of them in order */
    int64_t all_up_to; /* samples with no more combinations of layouts than this are tried whole */
    int64_t most;      /* combinations per operator, of the others' */
};

/* clang-format off */
static const struct world worlds[] = {
    { "layouts on 1",               1, { 1, { 1 } },       NULL,                               60, 60 },
    { "layouts on 2",               2, { 1, { 2 } },       NULL,                              800, 1000 },
    { "layouts on 3",               3, { 1, { 3 } },       NULL,                              800, 500 },
    { "layouts on 4",               4, { 1, { 4 } },       NULL,                              800, 500 },
    { "layouts on 5",               5, { 1, { 5 } },       NULL,                              800, 500 },
    { "layouts on 6",               6, { 1, { 6 } },       NULL,                              800, 500 },
    { "layouts on 7",               7, { 1, { 7 } },       NULL,                              800, 500 },
    { "layouts on 8",               8, { 1, { 8 } },       NULL,                              800, 500 },
    { "layouts on 2 and 0 of 3",    3, { 1, { 2 } },       (const int[]){ 2, 0 },             800, 500 },
    { "layouts on 2x2",             4, { 2, { 2, 2 } },    NULL,                              130, 300 },
    { "layouts on 2x2 permuted",    4, { 2, { 2, 2 } },    (const int[]){ 3, 0, 2, 1 },       130, 100 },
    { "layouts on 2x3",             6, { 2, { 2, 3 } },    NULL,                              130, 150 },
    { "layouts on 4x2",             8, { 2, { 4, 2 } },    NULL,                              130, 120 },
    { "layouts on 2x2x2",           8, { 3, { 2, 2, 2 } }, NULL,                                0, 50 },
    { "layouts on 1x2x3 permuted",  6, { 3, { 1, 2, 3 } }, (const int[]){ 4, 1, 0, 5, 3, 2 },   0, 60 },
    { "layouts on 2x1x4",           8, { 3, { 2, 1, 4 } }, NULL,                                0, 60 },
};
/* clang-format on */

/* One sample on one mesh, with this rank's parts of the inputs, cut when first needed. */
struct stage {
    const struct world *world;
    mesh_device_mesh *mesh;
    struct trial trial;
    struct combos combos;
    struct mesh_tensor **part[OP_MAX_INPUTS]; /* [combos.n] */
};

static void stage_init(struct stage *g, const struct world *w, mesh_device_mesh *m, const struct sample *s)
{
    *g = (struct stage){ .world = w, .mesh = m };
    trial_init(&g->trial, s, m->ndim);
    combos_init(&g->combos, &g->trial, m->ndim);
    for (int i = 0; i < s->n_in; i++) {
        g->part[i] = calloc((size_t)g->combos.n[i], sizeof *g->part[i]);
        parts_must(g->part[i] != NULL, "no memory");
    }
}

static void stage_fini(struct stage *g)
{
    for (int i = 0; i < g->combos.n_in; i++) {
        for (int k = 0; k < g->combos.n[i]; k++) {
            tensor_unref(g->part[i][k]);
        }
        free(g->part[i]);
    }
    combos_fini(&g->combos);
    trial_fini(&g->trial);
}

/* This rank's part; outside of the mesh there is none. */
static struct mesh_tensor *part_of(const struct mesh_tensor *whole, const mesh_device_mesh *m, const mesh_placements *p,
                                   int salt)
{
    struct cut cut = { .ndim = m->ndim, .p = *p, .salt = salt };
    int rank = 0;
    memcpy(cut.size, m->size, sizeof cut.size);
    for (int i = 0; i < m->ndim && m->is_member; i++) {
        rank = rank * m->size[i] + m->coordinate[i];
    }
    return m->is_member ? cut_part(whole, &cut, rank, SPLIT_UNEVEN) : tensor_new(MESH_SHAPE(0), whole->dtype);
}

static mesh_dtensor *input_of(struct stage *g, int i, int layout)
{
    const struct mesh_tensor *whole = g->trial.in[i];
    const mesh_placements *p = &g->combos.layouts[i][layout];
    struct mesh_tensor **part = &g->part[i][layout];
    *part = *part != NULL ? *part : part_of(whole, g->mesh, p, i);
    return dtensor_new(g->mesh, whole->shape, whole->dtype, p, tensor_ref(*part));
}

static bool is_pending(const mesh_placements *p)
{
    bool is = false;
    for (int i = 0; i < p->n; i++) {
        is = is || p->at[i].kind == MESH_IS_PARTIAL;
    }
    return is;
}

/* This rank's part is what it has to be; where a reduction is pending, what all parts come to. */
static bool is_result(mesh_dtensor *y, const struct mesh_tensor *want, double tolerance)
{
    bool is_whole = is_pending(&y->placements);
    struct mesh_tensor *got = is_whole ? dtensor_full(y) : tensor_ref(y->local);
    struct mesh_tensor *part = is_whole ? NULL : part_of(want, y->mesh, &y->placements, 0);
    bool is_right = got != NULL && (!y->mesh->is_member || tensors_are_near(got, is_whole ? want : part, tolerance));
    tensor_unref(got);
    tensor_unref(part);
    return is_right && shape_equal(y->shape, want->shape);
}

static int complain(const struct stage *g, int64_t number, const char *what)
{
    char text[COMBO_TEXT_BYTES];
    mesh_placements p[OP_MAX_INPUTS];
    combos_take(&g->combos, number, NULL, p);
    return ranks_complain(__FILE__, __LINE__, "%s, %s: %s", g->world->name, combo_text(&g->trial, p, text, sizeof text),
                          what);
}

static int try_one(struct stage *g, int64_t number)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { NULL }, *out[OP_MAX_OUTPUTS] = { NULL };
    int layout[OP_MAX_INPUTS];
    combos_take(&g->combos, number, layout, NULL);
    for (int i = 0; i < g->combos.n_in; i++) {
        in[i] = input_of(g, i, layout[i]);
    }
    if (op_apply(g->trial.sample->op, in, &g->trial.sample->attr, out) < 0) {
        return complain(g, number, mesh_last_error()->message);
    }
    double tolerance = tolerance_of(trial_precision(&g->trial), TOLERANCE);
    for (int o = 0; o < g->trial.op->n_out; o++) {
        if (!is_result(out[o], g->trial.out[o], tolerance)) {
            return complain(g, number, o == 0 ? "wrong" : "the second result is wrong");
        }
    }
    return 0;
}

static int try_sample(const struct sample *s, mesh_device_mesh *m, const struct world *w)
{
    struct stage g;
    mesh_scope *scope = mesh_scope_begin();
    int r = 0;
    stage_init(&g, w, m, s);
    bool is_small = g.combos.total <= w->all_up_to * share_times();
    int64_t most = is_small ? w->all_up_to : w->most / sample_siblings(s);
    struct share share = share_of(mesh_rank() == 0 ? w->name : NULL, g.combos.total, most);
    for (int64_t number; r == 0 && share_next(&share, &number);) {
        r = mesh_scope_next(scope) ? try_one(&g, number) : -1;
    }
    int end = mesh_scope_end(scope);
    stage_fini(&g);
    return r < 0 ? r : end;
}

static mesh_device_mesh *mesh_of(const struct world *w)
{
    return w->ranks == NULL ? mesh_init_device_mesh("cpu", w->shape, NULL)
                            : mesh_new_device_mesh("cpu", w->shape, w->ranks, NULL);
}

static int try_all(void *arg)
{
    const struct world *w = arg;
    mesh_device_mesh *m = mesh_of(w);
    REQUIRE(m != NULL);
    for (int k = 0; k < n_samples; k++) {
        REQUIRE_OK(try_sample(&samples[k], m, w));
    }
    return 0;
}

START_TEST(operators_are_right_whatever_the_layouts)
{
    struct world w = worlds[_i];
    ranks_run(w.n_ranks, try_all, &w);
}
END_TEST

/* clang-format off */
static const struct world dtype_worlds[] = {
    { "other dtypes on 2",   2, { 1, { 2 } },    NULL, 130, 60 },
    { "other dtypes on 3",   3, { 1, { 3 } },    NULL,   0, 60 },
    { "other dtypes on 2x2", 4, { 2, { 2, 2 } }, NULL,   0, 24 },
};
/* clang-format on */

static int try_dtypes(void *arg)
{
    const struct world *w = arg;
    mesh_device_mesh *m = mesh_of(w);
    REQUIRE(m != NULL);
    for (int k = 0; k < n_samples; k++) {
        for (mesh_dtype t = MESH_F32; t <= MESH_BOOL; t++) {
            struct sample s;
            if (t != MESH_F64 && sample_with_dtype(&samples[k], t, &s) && sample_is_allowed(&s)) {
                REQUIRE_OK(try_sample(&s, m, w));
            }
        }
    }
    return 0;
}

START_TEST(operators_are_right_in_every_dtype)
{
    struct world w = dtype_worlds[_i];
    ranks_run(w.n_ranks, try_dtypes, &w);
}
END_TEST

/* --- what dispatch refuses and counts ----------------------------------------------------------------------------- */

static int repeat(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(2, 2), MESH_NAMES("dp", "tp"));
    REQUIRE(m != NULL);
    mesh_dtensor *x = mesh_randn(MESH_SHAPE(64, 32), m, MESH_PLACEMENTS(mesh_shard(0), mesh_replicate()));
    mesh_dtensor *w = mesh_randn(MESH_SHAPE(16, 32), m, MESH_PLACEMENTS(mesh_replicate(), mesh_shard(0)));
    mesh_dtensor *out[OP_MAX_OUTPUTS];
    mesh_comm_reset();
    for (int i = 0; i < 3; i++) {
        REQUIRE(op_apply(OP_linear, (mesh_dtensor *[OP_MAX_INPUTS]){ x, w }, NULL, out) == 0);
    }
    for (int kind = MESH_COMM_ALL_REDUCE; kind <= MESH_COMM_BARRIER; kind++) {
        REQUIRE(mesh_comm_count((mesh_comm_kind)kind) == 0);
    }
    char text[DTENSOR_TEXT_BYTES];
    REQUIRE(strcmp(dtensor_text(out[0], text, sizeof text), "[64,16] f32 [S(0), S(1)] on (dp=2, tp=2)") == 0);
    return 0;
}

START_TEST(two_dim_parallel_linear_sends_nothing)
{
    ranks_run(4, repeat, NULL);
}
END_TEST

static int misfit(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(4), MESH_NAMES("tp"));
    mesh_device_mesh *n = mesh_init_device_mesh("cpu", MESH_SHAPE(2, 2), NULL);
    mesh_placements r1 = MESH_PLACEMENTS(mesh_replicate());
    REQUIRE(m != NULL && n != NULL);
    mesh_dtensor *a = mesh_zeros(MESH_SHAPE(64, 784), m, MESH_PLACEMENTS(mesh_shard(0)));
    mesh_dtensor *b = mesh_zeros(MESH_SHAPE(512, 10), m, r1);
    mesh_dtensor *c = mesh_zeros(MESH_SHAPE(512, 10), n, MESH_PLACEMENTS(mesh_replicate(), mesh_replicate()));
    mesh_dtensor *out[OP_MAX_OUTPUTS] = { NULL };
    mesh_comm_reset();
    REQUIRE(op_apply(OP_matmul, (mesh_dtensor *[OP_MAX_INPUTS]){ a, b }, NULL, out) == MESH_ESHAPE);
    REQUIRE(strstr(mesh_last_error()->message, "[64,784] x [512,10]: 784 != 512") != NULL);
    REQUIRE(strstr(mesh_last_error()->message, "[S(0)] on (tp=4)") != NULL);
    REQUIRE(op_apply(OP_add, (mesh_dtensor *[OP_MAX_INPUTS]){ b, c }, NULL, out) == MESH_EINVAL);
    REQUIRE(strstr(mesh_last_error()->message, "argument 1 is on mesh (tp=4), argument 2 on mesh (2, 2)") != NULL);
    REQUIRE(op_apply(OP_add, (mesh_dtensor *[OP_MAX_INPUTS]){ b, NULL }, NULL, out) == MESH_EINVAL);
    REQUIRE(out[0] == NULL && mesh_comm_count(MESH_COMM_ALL_GATHER) == 0);
    return 0;
}

START_TEST(misfits_are_refused_on_every_rank_before_any_traffic)
{
    ranks_run(4, misfit, NULL);
}
END_TEST

/* Each mesh is a case of its own: CK_RUN_CASE="layouts on 2x2" tries that alone. */
static void add_world(Suite *s, const char *name, const TTest *test, int i)
{
    TCase *t = tcase_create(name);
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test, i, i + 1);
    suite_add_tcase(s, t);
}

Suite *test_suite(void)
{
    Suite *s = suite_create("rules applied");
    TCase *t = tcase_create("rules applied");
    share_one_process();
    for (int i = 0; i < (int)ARRAY_SIZE(worlds); i++) {
        add_world(s, worlds[i].name, operators_are_right_whatever_the_layouts, i);
    }
    for (int i = 0; i < (int)ARRAY_SIZE(dtype_worlds); i++) {
        add_world(s, dtype_worlds[i].name, operators_are_right_in_every_dtype, i);
    }
    tcase_add_test(t, two_dim_parallel_linear_sends_nothing);
    tcase_add_test(t, misfits_are_refused_on_every_rank_before_any_traffic);
    suite_add_tcase(s, t);
    return s;
}
