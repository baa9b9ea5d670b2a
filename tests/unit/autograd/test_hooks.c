/* tests/unit/autograd/test_hooks.c - graphs walked twice, gradients that pass through functions, gradients checked by differences.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "dtensor/dtensor.h"
#include "harness/check_main.h"
#include "harness/ranks.h"

#define SHAPE(...) MESH_SHAPE(__VA_ARGS__)

static mesh_device_mesh *line(void)
{
    return mesh_init_device_mesh("cpu", SHAPE(mesh_world_size()), NULL);
}

static mesh_dtensor *constant(double v, mesh_device_mesh *m)
{
    return mesh_requires_grad(mesh_full(SHAPE(5), v, m, MESH_PLACEMENTS(mesh_shard(0))), true);
}

static double element(mesh_dtensor *x, int i)
{
    mesh_tensor *t = x != NULL ? mesh_full_tensor(x) : NULL;
    return t != NULL ? (double)((const float *)mesh_tensor_data(t))[i] : -777;
}

static int retained(void *arg)
{
    (void)arg;
    mesh_dtensor *x = constant(3, line());
    mesh_dtensor *loss = mesh_sum(mesh_mul(mesh_mul(x, x), x)); /* 3 x^2 = 27 */
    REQUIRE(mesh_backward_with(loss, .retain_graph = true) == 0);
    REQUIRE_NEAR(element(mesh_grad(x), 4), 27, 0);
    REQUIRE(mesh_backward_with(loss, .retain_graph = true) == 0);
    REQUIRE_NEAR(element(mesh_grad(x), 4), 54, 0);
    REQUIRE(mesh_backward(loss) == 0);
    REQUIRE_NEAR(element(mesh_grad(x), 0), 81, 0);
    mesh_scope *scope = mesh_scope_begin();
    REQUIRE(mesh_backward_opt(loss, NULL) == MESH_ESTATE);
    mesh_scope_end(scope);
    mesh_dtensor *y = mesh_mul(x, x);
    REQUIRE(mesh_backward_with(y, .grad = constant(2, line())) == 0);
    REQUIRE_NEAR(element(mesh_grad(x), 0), 93, 0);
    return 0;
}
START_TEST(a_retained_graph_may_be_walked_until_it_is_used_up)
{
    ranks_run(_i, retained, NULL);
}
END_TEST

struct seen {
    int n;
    double value;
    mesh_placements placements;
};

static mesh_dtensor *look(mesh_dtensor *grad, void *user)
{
    struct seen *s = user;
    s->n++;
    s->value = element(grad, 1);
    s->placements = mesh_placements_of(grad);
    return NULL;
}
static mesh_dtensor *double_it(mesh_dtensor *grad, void *user)
{
    (void)user;
    return mesh_mul_scalar(grad, 2);
}
static mesh_dtensor *gather_it(mesh_dtensor *grad, void *user)
{
    (void)user;
    return mesh_redistribute(grad, MESH_PLACEMENTS(mesh_replicate()));
}
static mesh_dtensor *shorten(mesh_dtensor *grad, void *user)
{
    (void)user;
    return mesh_narrow(grad, 0, 0, 1);
}
static mesh_dtensor *add_nothing(mesh_dtensor *grad, void *user)
{
    (void)user;
    return mesh_add(grad, NULL);
}

static int hooked(void *arg)
{
    (void)arg;
    mesh_dtensor *x = constant(3, line()), *y = mesh_mul(x, x), *z = mesh_mul_scalar(y, 5);
    struct seen of_x = { 0 }, of_y = { 0 };
    REQUIRE(mesh_grad_hook(y, look, &of_y) == 0 && mesh_grad_hook(y, double_it, NULL) == 0);
    REQUIRE(mesh_grad_hook(x, gather_it, NULL) == 0 && mesh_grad_hook(x, look, &of_x) == 0);
    REQUIRE(mesh_backward(mesh_sum(mesh_add(z, y))) == 0); /* dy 6, doubled 12, dx 2 x 12 = 72 */
    REQUIRE(of_y.n == 1 && of_x.n == 1);
    REQUIRE_NEAR(of_y.value, 6, 0);
    REQUIRE_NEAR(of_x.value, 72, 0);
    REQUIRE(of_x.placements.at[0].kind == MESH_IS_REPLICATE);
    REQUIRE(mesh_placements_equal(mesh_placements_of(mesh_grad(x)), mesh_placements_of(x)));
    REQUIRE_NEAR(element(mesh_grad(x), 4), 72, 0);
    REQUIRE(mesh_backward(mesh_sum(mesh_mul(x, x))) == 0); /* the leaf's hooks stay; they see this pass alone */
    REQUIRE(of_y.n == 1 && of_x.n == 2);
    REQUIRE_NEAR(of_x.value, 6, 0);
    REQUIRE_NEAR(element(mesh_grad(x), 4), 78, 0);
    return 0;
}
START_TEST(hooks_see_each_complete_gradient_once_and_may_replace_it)
{
    ranks_run(_i, hooked, NULL);
}
END_TEST

static int bad_hooks(void *arg)
{
    (void)arg;
    static const struct {
        mesh_grad_fn fn;
        int want;
        bool is_leaf;
    } tries[] = { { shorten, MESH_ESHAPE, true },
                  { shorten, MESH_ESHAPE, false },
                  { add_nothing, MESH_EINVAL, true },
                  { add_nothing, MESH_EINVAL, false } };
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        mesh_dtensor *x = constant(3, line());
        mesh_scope *scope = mesh_scope_begin();
        mesh_dtensor *y = mesh_mul(x, x);
        REQUIRE(mesh_grad_hook(tries[i].is_leaf ? x : y, tries[i].fn, NULL) == 0);
        REQUIRE(mesh_backward(mesh_sum(y)) == tries[i].want);
        REQUIRE(mesh_scope_end(scope) == tries[i].want);
        REQUIRE(mesh_grad(x) == NULL && mesh_scope_status(NULL) == MESH_OK);
    }
    mesh_scope *scope = mesh_scope_begin();
    REQUIRE(mesh_grad_hook(mesh_detach(constant(1, line())), look, NULL) == MESH_ESTATE);
    mesh_scope_end(scope);
    return 0;
}
START_TEST(a_hook_that_fails_fails_the_pass_and_changes_no_leaf)
{
    ranks_run(_i, bad_hooks, NULL);
}
END_TEST

static mesh_dtensor *smooth(mesh_dtensor *const *in, int n, void *user)
{
    const double *factor = user;
    mesh_dtensor *y = mesh_mul_scalar(mesh_tanh(mesh_matmul(in[0], in[1])), factor != NULL ? *factor : 1);
    return n > 2 ? mesh_add(y, in[2]) : y;
}
static mesh_dtensor *unrecorded(mesh_dtensor *const *in, int n, void *user)
{
    (void)n;
    (void)user;
    return mesh_add(mesh_mul(in[0], mesh_detach(in[0])), in[0]); /* says x + 1 for 2 x + 1 */
}

static int checked(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line();
    mesh_placements s0 = MESH_PLACEMENTS(mesh_shard(0)), r = MESH_PLACEMENTS(mesh_replicate());
    mesh_placements sum = MESH_PLACEMENTS(mesh_partial(MESH_SUM)), avg = MESH_PLACEMENTS(mesh_partial(MESH_AVG));
    mesh_dtensor *a = mesh_randn(SHAPE(3, 4), m, s0, .dtype = MESH_F64, .seed = 1);
    mesh_dtensor *b = mesh_redistribute(mesh_randn(SHAPE(4, 2), m, r, .dtype = MESH_F64, .seed = 2), sum);
    mesh_dtensor *c = mesh_redistribute(mesh_randn(SHAPE(2), m, r, .dtype = MESH_F64, .seed = 3), avg);
    mesh_dtensor *in[3] = { a, b, c };
    double factor = 3;
    REQUIRE(mesh_autograd_check(smooth, in, 2) == 0);
    REQUIRE(mesh_autograd_check(smooth, in, 3, .user = &factor, .max_elements = 5) == 0);
    REQUIRE(mesh_grad(a) == NULL && !a->requires_grad);
    mesh_dtensor *narrow[2] = { mesh_randn(SHAPE(3, 4), m, s0, .seed = 1), mesh_randn(SHAPE(4, 2), m, r, .seed = 2) };
    REQUIRE(mesh_autograd_check(smooth, narrow, 2) == 0);
    mesh_scope *scope = mesh_scope_begin();
    REQUIRE(mesh_autograd_check(unrecorded, in, 1) == MESH_EINVAL);
    REQUIRE(strstr(mesh_last_error()->message, "finite differences") != NULL);
    REQUIRE(mesh_scope_end(scope) == MESH_EINVAL);
    return 0;
}
START_TEST(gradients_that_differences_confirm_pass_and_a_wrong_one_is_named)
{
    ranks_run(_i, checked, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("hooks");
    TCase *t = tcase_create("hooks");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_retained_graph_may_be_walked_until_it_is_used_up, 1, 4);
    tcase_add_loop_test(t, hooks_see_each_complete_gradient_once_and_may_replace_it, 1, 4);
    tcase_add_loop_test(t, a_hook_that_fails_fails_the_pass_and_changes_no_leaf, 1, 3);
    tcase_add_loop_test(t, gradients_that_differences_confirm_pass_and_a_wrong_one_is_named, 1, 4);
    suite_add_tcase(s, t);
    return s;
}
