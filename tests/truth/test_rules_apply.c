/* tests/truth/test_rules_apply.c - operators as programs call them: any layouts in, the right value out, on every rank.
 *
 * On meshes of one dim every combination of layouts of the inputs; on 2x2 and 2x3 a spread of them (test_rules.c has all products
 * of rules, test_redistribute.c all pairs of layouts).
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/util.h"
#include "harness/check_main.h"
#include "harness/ranks.h"
#include "tensor/shape.h"
#include "truth/parts.h"
#include "truth/samples.h"

#define TOLERANCE  1e-10 /* f64: products and sums of a few dozen numbers */
#define MAX_PER_2D 120

struct menu { /* the layouts of each input */
    mesh_placements list[OP_MAX_INPUTS][LAYOUTS_MAX];
    int n[OP_MAX_INPUTS];
    int total;
};

static void fill_menu(const struct trial *t, int mesh_ndim, struct menu *ret)
{
    ret->total = 1;
    for (int i = 0; i < t->sample->n_in; i++) {
        bool is_class = i > 0 && dtype_kind(t->in[i]->dtype) == DTYPE_INT && t->in[i]->dtype != t->in[0]->dtype;
        int n = all_layouts(t->in[i]->shape, t->in[i]->dtype, mesh_ndim, ret->list[i]), kept = 0;
        for (int k = 0; k < n; k++) {
            bool pending = false;
            for (int m = 0; m < mesh_ndim; m++) {
                pending = pending || ret->list[i][k].at[m].kind == MESH_IS_PARTIAL;
            }
            if (!is_class || !pending) {
                ret->list[i][kept++] = ret->list[i][k];
            }
        }
        ret->n[i] = kept;
        ret->total *= kept;
    }
}

static int compare(const struct trial *t, mesh_dtensor *y, int o, const char *what)
{
    struct mesh_tensor *full = dtensor_full(y);
    bool is_right = full && shape_equal(full->shape, t->out[o]->shape) && full->dtype == t->out[o]->dtype;
    for (int64_t i = 0; is_right && i < full->n; i++) {
        is_right = numbers_are_near(tensor_number(full, i), tensor_number(t->out[o], i), TOLERANCE);
    }
    tensor_unref(full);
    return is_right ? 0 : ranks_complain(__FILE__, __LINE__, "%s: result %d is wrong", what, o);
}

static int try_one(const struct trial *t, mesh_device_mesh *m, const struct menu *menu, int number)
{
    char what[500];
    size_t at = (size_t)snprintf(what, sizeof what, "%s on", t->op->name);
    mesh_dtensor *in[OP_MAX_INPUTS] = { NULL }, *out[OP_MAX_OUTPUTS] = { NULL };
    for (int i = 0; i < m->ndim; i++) {
        at += (size_t)snprintf(what + at, sizeof what - at, " %d", m->size[i]);
    }
    for (int i = 0; i < t->sample->n_in; i++) {
        const mesh_placements *p = &menu->list[i][number % menu->n[i]];
        char text[96], shape[SHAPE_TEXT_BYTES];
        struct cut cut = { .ndim = m->ndim, .p = *p, .salt = i };
        memcpy(cut.size, m->size, sizeof cut.size);
        number /= menu->n[i];
        in[i] =
            dtensor_new(m, t->in[i]->shape, t->in[i]->dtype, p, cut_part(t->in[i], &cut, mesh_rank(), SPLIT_UNEVEN));
        at += (size_t)snprintf(what + at, sizeof what - at, " %s %s", shape_text(t->in[i]->shape, shape, sizeof shape),
                               mesh_placements_text(*p, text, sizeof text));
    }
    if (op_apply(t->sample->op, in, &t->sample->attr, out) < 0) {
        return ranks_complain(__FILE__, __LINE__, "%s: %s", what, mesh_last_error()->message);
    }
    for (int o = 0; o < t->op->n_out; o++) {
        REQUIRE_OK(compare(t, out[o], o, what));
    }
    return 0;
}

static int try_sample(const struct sample *s, mesh_device_mesh *m)
{
    struct trial t;
    struct menu *menu = malloc(sizeof *menu);
    mesh_scope *scope = mesh_scope_begin();
    int r = 0;
    trial_init(&t, s, m->ndim);
    fill_menu(&t, m->ndim, menu);
    int step = m->ndim > 1 && menu->total > MAX_PER_2D ? menu->total / MAX_PER_2D : 1;
    for (int k = 0; r == 0 && k < menu->total; k += step) {
        r = mesh_scope_next(scope) ? try_one(&t, m, menu, k) : -1;
    }
    int end = mesh_scope_end(scope);
    trial_fini(&t);
    free(menu);
    return r < 0 ? r : end;
}

static int try_all(void *arg)
{
    const mesh_shape *shape = arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", *shape, NULL);
    REQUIRE(m != NULL);
    for (int k = 0; k < n_samples; k++) {
        REQUIRE_OK(try_sample(&samples[k], m));
    }
    return 0;
}

static const mesh_shape meshes[] = { { 1, { 1 } }, { 1, { 2 } },    { 1, { 3 } },
                                     { 1, { 4 } }, { 2, { 2, 2 } }, { 2, { 2, 3 } } };

START_TEST(operators_are_right_whatever_the_layouts)
{
    mesh_shape m = meshes[_i];
    ranks_run((int)shape_numel(m), try_all, &m);
}
END_TEST

/* --- what dispatch refuses and counts ------------------------------------------------------------------------------- */

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

Suite *test_suite(void)
{
    Suite *s = suite_create("rules applied");
    TCase *t = tcase_create("rules applied");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, operators_are_right_whatever_the_layouts, 0, (int)ARRAY_SIZE(meshes));
    tcase_add_test(t, two_dim_parallel_linear_sends_nothing);
    tcase_add_test(t, misfits_are_refused_on_every_rank_before_any_traffic);
    suite_add_tcase(s, t);
    return s;
}
