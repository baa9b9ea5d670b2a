/* tests/truth/test_rules_apply.c - operators as programs call them: any layouts in, the right value out, on every rank.
 *
 * Nearly every combination of layouts of the inputs on 2 ranks, an even spread of them on meshes of up to 8 ranks and 3 dims, on permuted
 * meshes and with ranks outside (test_rules.c has the rules and their products without communication, test_redistribute.c all
 * pairs of layouts).
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "harness/check_main.h"
#include "harness/ranks.h"
#include "tensor/shape.h"
#include "truth/parts.h"
#include "truth/samples.h"
#include "truth/share.h"

#define TOLERANCE 1e-10 /* f64: products and sums of a few dozen numbers */

struct world {
    const char *name;
    int n_ranks;
    mesh_shape shape;
    const int *ranks; /* NULL: all of them in order */
    int64_t most;     /* combinations of layouts per sample */
};

static const struct world worlds[] = {
    { "layouts on 1", 1, { 1, { 1 } }, NULL, 20 },
    { "layouts on 2", 2, { 1, { 2 } }, NULL, 800 },
    { "layouts on 3", 3, { 1, { 3 } }, NULL, 80 },
    { "layouts on 4", 4, { 1, { 4 } }, NULL, 60 },
    { "layouts on 7", 7, { 1, { 7 } }, NULL, 12 },
    { "layouts on 8", 8, { 1, { 8 } }, NULL, 12 },
    { "layouts on 2 and 0 of 3", 3, { 1, { 2 } }, (const int[]){ 2, 0 }, 30 },
    { "layouts on 2x2", 4, { 2, { 2, 2 } }, NULL, 30 },
    { "layouts on 2x2 permuted", 4, { 2, { 2, 2 } }, (const int[]){ 3, 0, 2, 1 }, 12 },
    { "layouts on 2x3", 6, { 2, { 2, 3 } }, NULL, 8 },
    { "layouts on 2x2x2", 8, { 3, { 2, 2, 2 } }, NULL, 1 },
    { "layouts on 1x2x3 permuted", 6, { 3, { 1, 2, 3 } }, (const int[]){ 4, 1, 0, 5, 3, 2 }, 1 },
};

static int64_t count_layouts(const struct trial *t, int mesh_ndim)
{
    int64_t total = 1;
    for (int i = 0; i < t->sample->n_in; i++) {
        total *= layouts_count(t->shapes.in[i], t->shapes.in_dtype[i], mesh_ndim);
    }
    return total;
}

/* false: some layout mixes reductions, so it is none. */
static bool take_layouts(const struct trial *t, int mesh_ndim, int64_t number, mesh_placements *ret_layouts)
{
    for (int i = 0; i < t->sample->n_in; i++) {
        int64_t n = layouts_count(t->shapes.in[i], t->shapes.in_dtype[i], mesh_ndim);
        ret_layouts[i] = layout_numbered(t->shapes.in[i], t->shapes.in_dtype[i], mesh_ndim, number % n);
        if (placements_mix_reductions(&ret_layouts[i])) {
            return false;
        }
        number /= n;
    }
    return true;
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

static int compare(const struct trial *t, mesh_dtensor *y, int o, const char *what)
{
    struct mesh_tensor *full = dtensor_full(y);
    bool is_right = full && shape_equal(full->shape, t->out[o]->shape) && full->dtype == t->out[o]->dtype;
    for (int64_t i = 0; is_right && i < full->n; i++) {
        is_right = numbers_are_near(tensor_number(full, i), tensor_number(t->out[o], i), TOLERANCE);
    }
    is_right = is_right || (full && !y->mesh->is_member);
    tensor_unref(full);
    return is_right ? 0 : ranks_complain(__FILE__, __LINE__, "%s: result %d is wrong", what, o);
}

static void say_what(const struct trial *t, const struct world *w, const mesh_placements *p, char *buf, size_t cap)
{
    size_t at = (size_t)snprintf(buf, cap, "%s, %s", w->name, t->op->name);
    for (int i = 0; i < t->sample->n_in; i++) {
        char text[96], shape[SHAPE_TEXT_BYTES];
        at += (size_t)snprintf(buf + at, cap - at, " %s %s", shape_text(t->in[i]->shape, shape, sizeof shape),
                               mesh_placements_text(p[i], text, sizeof text));
    }
}

static int try_one(const struct trial *t, mesh_device_mesh *m, const mesh_placements *p, const struct world *w)
{
    char what[500];
    mesh_dtensor *in[OP_MAX_INPUTS] = { NULL }, *out[OP_MAX_OUTPUTS] = { NULL };
    for (int i = 0; i < t->sample->n_in; i++) {
        in[i] = dtensor_new(m, t->in[i]->shape, t->in[i]->dtype, &p[i], part_of(t->in[i], m, &p[i], i));
    }
    say_what(t, w, p, what, sizeof what);
    if (op_apply(t->sample->op, in, &t->sample->attr, out) < 0) {
        return ranks_complain(__FILE__, __LINE__, "%s: %s", what, mesh_last_error()->message);
    }
    for (int o = 0; o < t->op->n_out; o++) {
        REQUIRE_OK(compare(t, out[o], o, what));
    }
    return 0;
}

static int try_sample(const struct sample *s, mesh_device_mesh *m, const struct world *w)
{
    struct trial t;
    mesh_placements p[OP_MAX_INPUTS] = { { .n = 0 } };
    mesh_scope *scope = mesh_scope_begin();
    int r = 0;
    trial_init(&t, s, m->ndim);
    struct share share = share_of(mesh_rank() == 0 ? w->name : NULL, count_layouts(&t, m->ndim), w->most);
    for (int64_t number; r == 0 && share_next(&share, &number);) {
        if (take_layouts(&t, m->ndim, number, p)) {
            r = mesh_scope_next(scope) ? try_one(&t, m, p, w) : -1;
        }
    }
    int end = mesh_scope_end(scope);
    trial_fini(&t);
    return r < 0 ? r : end;
}

static int try_all(void *arg)
{
    const struct world *w = arg;
    mesh_device_mesh *m = w->ranks == NULL ? mesh_init_device_mesh("cpu", w->shape, NULL)
                                           : mesh_new_device_mesh("cpu", w->shape, w->ranks, NULL);
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
    share_one_process();
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, operators_are_right_whatever_the_layouts, 0, (int)ARRAY_SIZE(worlds));
    tcase_add_test(t, two_dim_parallel_linear_sends_nothing);
    tcase_add_test(t, misfits_are_refused_on_every_rank_before_any_traffic);
    suite_add_tcase(s, t);
    return s;
}
