/* tests/unit/autograd/test_custom.c - operators that a program registers: rules on every placement, gradients,
 * refusals.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "dtensor/dtensor.h"
#include "harness/check_main.h"
#include "harness/ranks.h"

#define SHAPE(...) MESH_SHAPE(__VA_ARGS__)

/* out[i] = sum over k of a[i, k] b[i, k] */
static int row_dot(const mesh_op_call *c)
{
    mesh_shape s = mesh_tensor_shape(c->in[0]);
    const double *a = mesh_tensor_data(c->in[0]), *b = mesh_tensor_data(c->in[1]);
    double *out = mesh_tensor_data(c->out);
    for (int64_t i = 0; i < s.dim[0]; i++) {
        out[i] = 0;
        for (int64_t k = 0; k < s.dim[1]; k++) {
            out[i] += a[i * s.dim[1] + k] * b[i * s.dim[1] + k];
        }
    }
    return 0;
}

static int row_dot_gradient(mesh_op_gradient *g)
{
    mesh_dtensor *dy = mesh_unsqueeze(g->dy, 1);
    g->dx[0] = g->wants[0] ? mesh_mul(dy, g->in[1]) : NULL;
    g->dx[1] = g->wants[1] ? mesh_mul(dy, g->in[0]) : NULL;
    return 0;
}

/* y = value[0] x, but for the first index[0] columns, which it keeps; counts columns in the whole. */
static int scale_tail(const mesh_op_call *c)
{
    mesh_shape s = mesh_tensor_shape(c->in[0]);
    for (int64_t i = 0; i < s.dim[0] * s.dim[1]; i++) {
        double x = ((const double *)mesh_tensor_data(c->in[0]))[i];
        int64_t column = c->offset[1] + i % s.dim[1];
        ((double *)mesh_tensor_data(c->out))[i] = column < c->args.index[0] ? x : c->args.value[0] * x;
    }
    return 0;
}
static int scale_tail_gradient(mesh_op_gradient *g)
{
    mesh_op *self = *(mesh_op **)g->user;
    g->dx[0] = mesh_apply_op(self, &g->dy, 1, &g->args);
    return 0;
}

static mesh_placement placement(int k)
{
    return k < 2 ? mesh_shard(k) : (k == 2 ? mesh_replicate() : mesh_partial(k == 3 ? MESH_SUM : MESH_AVG));
}

struct ops {
    mesh_op *dot, *scale;
};

static mesh_dtensor *dot_of(mesh_dtensor *const *in, int n, void *user)
{
    return mesh_apply_op(((struct ops *)user)->dot, in, n, NULL);
}
static mesh_dtensor *scale_of(mesh_dtensor *const *in, int n, void *user)
{
    return mesh_apply_op(((struct ops *)user)->scale, in, n, &(mesh_op_args){ .value = { 3 }, .index = { 2 } });
}

static int register_both(struct ops *ret_ops)
{
    ret_ops->dot = mesh_register_op(&(mesh_op_class){ .name = "row_dot",
                                                      .n_in = 2,
                                                      .rule = "ik,ik->i",
                                                      .linear = MESH_OP_LINEAR_EACH,
                                                      .kernel = row_dot,
                                                      .gradient = row_dot_gradient });
    ret_ops->scale = mesh_register_op(&(mesh_op_class){ .name = "scale_tail",
                                                        .n_in = 1,
                                                        .rule = "ij->ij",
                                                        .linear = MESH_OP_LINEAR_FIRST,
                                                        .kernel = scale_tail,
                                                        .gradient = scale_tail_gradient,
                                                        .user = &ret_ops->scale });
    REQUIRE(ret_ops->dot != NULL && ret_ops->scale != NULL);
    return 0;
}

static int compare(mesh_dtensor *y, mesh_dtensor *want)
{
    mesh_tensor *a = y != NULL ? mesh_full_tensor(y) : NULL, *b = mesh_full_tensor(want);
    REQUIRE(a != NULL && b != NULL && a->n == b->n && a->n > 0);
    for (int64_t i = 0; i < a->n; i++) {
        REQUIRE_NEAR(((const double *)a->data)[i], ((const double *)b->data)[i], 1e-12);
    }
    return 0;
}

/* Every pair of placements of the two inputs on a line of ranks. */
static int everywhere(void *arg)
{
    (void)arg;
    struct ops ops;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(mesh_world_size()), NULL);
    mesh_placements whole = MESH_PLACEMENTS(mesh_replicate());
    REQUIRE_OK(register_both(&ops));
    mesh_dtensor *a = mesh_randn(SHAPE(5, 3), m, whole, .dtype = MESH_F64, .seed = 1);
    mesh_dtensor *b = mesh_randn(SHAPE(5, 3), m, whole, .dtype = MESH_F64, .seed = 2);
    mesh_dtensor *want = mesh_sum(mesh_mul(a, b), .dims = SHAPE(1));
    for (int k = 0; k < 25; k++) {
        mesh_scope *scope = mesh_scope_begin();
        mesh_dtensor *in[2] = { mesh_redistribute(a, MESH_PLACEMENTS(placement(k / 5))),
                                mesh_redistribute(b, MESH_PLACEMENTS(placement(k % 5))) };
        mesh_comm_reset();
        mesh_dtensor *y = mesh_apply_op(ops.dot, in, 2, NULL);
        bool is_free = k / 5 == k % 5 && k / 5 < 3; /* both alike, and no product of sums */
        REQUIRE(!is_free || mesh_comm_count(MESH_COMM_ALL_GATHER) + mesh_comm_count(MESH_COMM_ALL_REDUCE) == 0);
        REQUIRE_OK(compare(y, want));
        REQUIRE(mesh_autograd_check(dot_of, in, 2, .user = &ops, .max_elements = 4) == 0);
        REQUIRE(k >= 5 || mesh_autograd_check(scale_of, &in[1], 1, .user = &ops, .max_elements = 4) == 0);
        REQUIRE(mesh_scope_end(scope) == 0);
    }
    return 0;
}
START_TEST(a_registered_rule_holds_for_every_pair_of_placements_and_so_does_its_gradient)
{
    ranks_run(_i, everywhere, NULL);
}
END_TEST

static int on_two_dims(void *arg)
{
    (void)arg;
    struct ops ops;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(2, 2), NULL);
    mesh_placements whole = MESH_PLACEMENTS(mesh_replicate(), mesh_replicate());
    REQUIRE_OK(register_both(&ops));
    mesh_dtensor *a = mesh_randn(SHAPE(3, 5), m, whole, .dtype = MESH_F64, .seed = 1);
    mesh_dtensor *want = mesh_sum(mesh_mul(a, a), .dims = SHAPE(1));
    for (int k = 0; k < 16; k++) {
        mesh_dtensor *x = mesh_redistribute(a, MESH_PLACEMENTS(placement(k / 4), placement(k % 4)));
        REQUIRE_OK(compare(mesh_apply_op(ops.dot, (mesh_dtensor *[]){ x, x }, 2, NULL), want));
        REQUIRE(k % 5 != 0 || mesh_autograd_check(scale_of, &x, 1, .user = &ops, .max_elements = 3) == 0);
    }
    return 0;
}
START_TEST(a_registered_rule_combines_over_two_mesh_dims)
{
    ranks_run(4, on_two_dims, NULL);
}
END_TEST

static int wide(const mesh_op_facts *f, mesh_shape *inout_shape, mesh_dtype *inout_dtype)
{
    if (f->args.index[0] < 0) {
        return MESH_EINVAL;
    }
    inout_shape->dim[1] = f->args.index[0];
    *inout_dtype = MESH_I64;
    return 0;
}
static int wide_kernel(const mesh_op_call *c)
{
    mesh_shape s = mesh_tensor_shape(c->out);
    for (int64_t i = 0; i < s.dim[0] * s.dim[1]; i++) {
        ((int64_t *)mesh_tensor_data(c->out))[i] = c->offset[0] + i / s.dim[1];
    }
    return c->args.value[0] > 0 ? MESH_EIO : 0;
}

static int shapes(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(mesh_world_size()), NULL);
    mesh_op *op = mesh_register_op(
        &(mesh_op_class){ .name = "wide", .n_in = 1, .rule = "iK->iC", .shape = wide, .kernel = wide_kernel });
    mesh_dtensor *x = mesh_randn(SHAPE(3, 4), m, MESH_PLACEMENTS(mesh_shard(0)));
    mesh_dtensor *y = mesh_apply_op(op, &x, 1, &(mesh_op_args){ .index = { 2 } });
    REQUIRE(y != NULL && y->dtype == MESH_I64 && y->shape.dim[1] == 2);
    REQUIRE(mesh_world_size() == 1 || y->placements.at[0].kind == MESH_IS_SHARD);
    const int64_t *value = mesh_tensor_data(mesh_full_tensor(y));
    REQUIRE(value[0] == 0 && value[3] == 1 && value[5] == 2);
    static const struct {
        int64_t index;
        double value;
        int want;
    } tries[] = { { -1, 0, MESH_EINVAL }, { 2, 1, MESH_EIO } };
    for (size_t i = 0; i < 1 + (size_t)(mesh_world_size() == 1); i++) {
        mesh_scope *scope = mesh_scope_begin();
        mesh_op_args args = { .value = { tries[i].value }, .index = { tries[i].index } };
        REQUIRE(mesh_apply_op(op, &x, 1, &args) == NULL && mesh_scope_end(scope) == tries[i].want);
    }
    return 0;
}
START_TEST(a_shape_function_gives_extents_that_the_rule_does_not_know)
{
    ranks_run(_i, shapes, NULL);
}
END_TEST

static int refusals(void *arg)
{
    (void)arg;
    static const char *const rules[] = { "ik->i",     "ii,ik->i", "ik,ik",    "ik,ik->i,", "ik,i-k->i",
                                         "ik,ik->*i", "",         "ik,ik->z", "ik,ik->iZ" };
    struct ops ops;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(1), NULL);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        mesh_scope *scope = mesh_scope_begin();
        REQUIRE(mesh_register_op(&(mesh_op_class){ .name = "x", .n_in = 2, .rule = rules[i], .kernel = row_dot }) ==
                NULL);
        REQUIRE(mesh_scope_end(scope) == MESH_EINVAL);
    }
    REQUIRE_OK(register_both(&ops));
    mesh_placements whole = MESH_PLACEMENTS(mesh_replicate());
    mesh_dtensor *a = mesh_zeros(SHAPE(2, 3), m, whole), *b = mesh_zeros(SHAPE(2, 4), m, whole);
    mesh_dtensor *c = mesh_zeros(SHAPE(2), m, whole);
    mesh_dtensor *pairs[][2] = { { a, b }, { a, c }, { a, NULL } };
    static const int want[] = { MESH_ESHAPE, MESH_ESHAPE, MESH_EINVAL };
    for (int i = 0; i < 3; i++) {
        mesh_scope *scope = mesh_scope_begin();
        REQUIRE(mesh_apply_op(ops.dot, pairs[i], 2, NULL) == NULL && mesh_scope_end(scope) == want[i]);
    }
    mesh_scope *scope = mesh_scope_begin();
    REQUIRE(mesh_apply_op(ops.dot, pairs[0], 1, NULL) == NULL && mesh_scope_end(scope) == MESH_EINVAL);
    mesh_op *bare =
        mesh_register_op(&(mesh_op_class){ .name = "bare", .n_in = 2, .rule = "ik,ik->i", .kernel = row_dot });
    mesh_dtensor *x = mesh_requires_grad(mesh_zeros(SHAPE(2, 3), m, whole, .dtype = MESH_F64), true);
    scope = mesh_scope_begin();
    REQUIRE(mesh_apply_op(bare, (mesh_dtensor *[]){ x, x }, 2, NULL) == NULL);
    REQUIRE(strstr(mesh_last_error()->message, "bare") != NULL && mesh_scope_end(scope) == MESH_EUNSUPPORTED);
    return 0;
}
START_TEST(rules_and_inputs_that_do_not_fit_are_refused)
{
    ranks_run(1, refusals, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("custom");
    TCase *t = tcase_create("custom");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_registered_rule_holds_for_every_pair_of_placements_and_so_does_its_gradient, 1, 4);
    tcase_add_test(t, a_registered_rule_combines_over_two_mesh_dims);
    tcase_add_loop_test(t, a_shape_function_gives_extents_that_the_rule_does_not_know, 1, 3);
    tcase_add_test(t, rules_and_inputs_that_do_not_fit_are_refused);
    suite_add_tcase(s, t);
    return s;
}
