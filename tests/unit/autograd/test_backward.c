/* tests/unit/autograd/test_backward.c - what the record keeps, when it ends, and what a second pass through it does.
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

static mesh_dtensor *ones(mesh_shape s, mesh_device_mesh *m)
{
    return mesh_requires_grad(mesh_add_scalar(mesh_zeros(s, m, MESH_PLACEMENTS(mesh_replicate())), 1), true);
}

static double first(mesh_dtensor *x)
{
    mesh_tensor *t = x != NULL ? mesh_to_local(x) : NULL;
    return t != NULL ? (double)((const float *)mesh_tensor_data(t))[0] : -777;
}

static int chain_of_100000(void *arg)
{
    (void)arg;
    mesh_dtensor *x = ones(SHAPE(1), line()), *y = x;
    mesh_scope *scope = mesh_scope_begin();
    for (int i = 0; i < 100000; i++) {
        y = mesh_mul_scalar(y, i % 2 == 0 ? 2 : 0.5);
    }
    REQUIRE(mesh_backward(y) == 0);
    REQUIRE(mesh_scope_end(scope) == 0);
    REQUIRE_NEAR(first(mesh_grad(x)), 1, 0);
    /* another that is only freed, never walked */
    scope = mesh_scope_begin();
    y = x;
    for (int i = 0; i < 100000; i++) {
        mesh_dtensor *next = mesh_mul_scalar(y, 1);
        y = y == x ? next : (mesh_release(y), next);
    }
    REQUIRE(mesh_scope_end(scope) == 0);
    return 0;
}
START_TEST(a_chain_of_100000_operators_is_walked_and_freed_without_recursion)
{
    ranks_run(1, chain_of_100000, NULL);
}
END_TEST

static int failing_calls(void *arg)
{
    (void)arg;
    mesh_dtensor *x = ones(SHAPE(2), line());
    mesh_scope *scope = mesh_scope_begin();
    mesh_dtensor *y = mesh_mul(x, x), *loss = mesh_sum(y);
    REQUIRE(mesh_backward(loss) == 0);
    REQUIRE_NEAR(first(mesh_grad(x)), 2, 0);
    REQUIRE(mesh_backward(loss) == MESH_ESTATE);
    REQUIRE(strstr(mesh_last_error()->message, "used up") != NULL);
    REQUIRE(strcmp(mesh_last_error()->where, "mesh_backward") == 0);
    REQUIRE(mesh_scope_end(scope) == MESH_ESTATE);
    REQUIRE_NEAR(first(mesh_grad(x)), 2, 0); /* as it was */

    scope = mesh_scope_begin();
    REQUIRE(mesh_backward(mesh_mul(x, x)) == MESH_ESHAPE);
    mesh_scope_end(scope);
    scope = mesh_scope_begin();
    REQUIRE(mesh_backward(mesh_sum(mesh_detach(x))) == MESH_ESTATE);
    mesh_scope_end(scope);
    scope = mesh_scope_begin();
    REQUIRE(mesh_requires_grad(mesh_mul(x, x), false) == NULL);
    REQUIRE(mesh_scope_end(scope) == MESH_ESTATE);
    scope = mesh_scope_begin();
    REQUIRE(mesh_backward(NULL) == MESH_EINVAL);
    mesh_scope_end(scope);
    scope = mesh_scope_begin();
    REQUIRE(mesh_add(x, NULL) == NULL && mesh_last_error()->status == MESH_EINVAL);
    REQUIRE(strcmp(mesh_last_error()->where, "mesh_add") == 0);
    mesh_scope_end(scope);
    return 0;
}
START_TEST(a_used_up_graph_a_loss_of_two_elements_and_no_graph_are_errors_that_change_no_leaf)
{
    ranks_run(1, failing_calls, NULL);
}
END_TEST

static int shared_subgraph(void *arg)
{
    (void)arg;
    mesh_dtensor *x = ones(SHAPE(2), line());
    mesh_dtensor *h = mesh_mul_scalar(x, 3);
    mesh_dtensor *a = mesh_sum(h), *b = mesh_sum(mesh_mul(h, h));
    REQUIRE(mesh_backward(a) == 0);
    mesh_scope *scope = mesh_scope_begin();
    REQUIRE(mesh_backward(b) == MESH_ESTATE); /* h's part is gone */
    mesh_scope_end(scope);
    REQUIRE_NEAR(first(mesh_grad(x)), 3, 0);
    return 0;
}
START_TEST(a_second_loss_over_a_used_up_part_is_an_error)
{
    ranks_run(1, shared_subgraph, NULL);
}
END_TEST

static int accumulation(void *arg)
{
    (void)arg;
    mesh_dtensor *x = ones(SHAPE(2), line()), *y = ones(SHAPE(2), mesh_device_mesh_of(x));
    for (int i = 1; i <= 3; i++) {
        REQUIRE(mesh_backward(mesh_sum(mesh_add(x, y))) == 0);
        REQUIRE_NEAR(first(mesh_grad(x)), i, 0);
    }
    /* the two gradients passed through one value, but are two */
    ((float *)mesh_tensor_data(mesh_to_local(mesh_grad(x))))[0] = 100;
    REQUIRE_NEAR(first(mesh_grad(x)), 100, 0);
    REQUIRE_NEAR(first(mesh_grad(y)), 3, 0);
    mesh_dtensor *z = ones(SHAPE(2), mesh_device_mesh_of(x)), *w = ones(SHAPE(2), mesh_device_mesh_of(x));
    REQUIRE(mesh_backward(mesh_sum(mesh_add(z, w))) == 0);
    ((float *)mesh_tensor_data(mesh_to_local(mesh_grad(z))))[0] = 100;
    REQUIRE_NEAR(first(mesh_grad(w)), 1, 0);
    return 0;
}
START_TEST(gradients_of_several_passes_add_up_and_leaves_never_share_one)
{
    ranks_run(1, accumulation, NULL);
}
END_TEST

static int recording(void *arg)
{
    (void)arg;
    mesh_dtensor *x = ones(SHAPE(2), line());
    REQUIRE(mesh_grad_enable(false) == true);
    mesh_dtensor *y = mesh_mul(x, x);
    REQUIRE(mesh_grad_enable(true) == false);
    REQUIRE(!y->requires_grad && y->node == NULL);
    REQUIRE(mesh_mul(x, x)->node != NULL);
    mesh_dtensor *plain = mesh_mul(mesh_detach(x), mesh_detach(x));
    REQUIRE(plain->node == NULL);
    REQUIRE(mesh_grad(x) == NULL);
    /* the gradient of a loss that is a leaf itself */
    mesh_dtensor *loss = ones(SHAPE(1), mesh_device_mesh_of(x));
    REQUIRE(mesh_backward(loss) == 0);
    REQUIRE_NEAR(first(mesh_grad(loss)), 1, 0);
    return 0;
}
START_TEST(nothing_is_recorded_when_switched_off_or_not_asked_for)
{
    ranks_run(1, recording, NULL);
}
END_TEST

#define N_NODES 300

/* x_k = a x_i + b x_j with i, j drawn from what there is: the sum of all is a known multiple of x. */
static int net_of_nodes(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line();
    mesh_dtensor *x[N_NODES], *loss = NULL;
    double multiple[N_NODES] = { 1 }, sum = 1;
    uint64_t state = 5;
    mesh_tensor *one = mesh_tensor_new(SHAPE(1), MESH_F64);
    ((double *)mesh_tensor_data(one))[0] = 1;
    x[0] = loss = mesh_requires_grad(mesh_distribute_same(one, m, MESH_PLACEMENTS(mesh_replicate())), true);
    for (int k = 1; k < N_NODES; k++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        int i = (int)((state >> 33) % (uint64_t)k), j = (int)((state >> 45) % (uint64_t)k);
        double a = 0.25 * (double)((state >> 20) % 3), b = 0.5 - a;
        x[k] = mesh_add(mesh_mul_scalar(x[i], a), mesh_mul_scalar(x[j], b));
        multiple[k] = a * multiple[i] + b * multiple[j];
        sum += multiple[k];
        loss = mesh_add(x[k], loss);
    }
    REQUIRE(mesh_backward(loss) == 0);
    REQUIRE_NEAR(((const double *)mesh_tensor_data(mesh_to_local(mesh_grad(x[0]))))[0], sum, 1e-12);
    return 0;
}
START_TEST(a_node_waits_for_all_that_use_it)
{
    ranks_run(1, net_of_nodes, NULL);
}
END_TEST

static int integers(void *arg)
{
    (void)arg;
    mesh_dtensor *x = mesh_zeros(SHAPE(2), line(), MESH_PLACEMENTS(mesh_replicate()), .dtype = MESH_I64);
    mesh_scope *scope = mesh_scope_begin();
    REQUIRE(mesh_requires_grad(x, true) == NULL);
    REQUIRE(mesh_scope_end(scope) == MESH_EINVAL);
    return 0;
}
START_TEST(an_integer_tensor_cannot_require_a_gradient)
{
    ranks_run(1, integers, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("backward");
    TCase *t = tcase_create("backward");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_chain_of_100000_operators_is_walked_and_freed_without_recursion);
    tcase_add_test(t, a_used_up_graph_a_loss_of_two_elements_and_no_graph_are_errors_that_change_no_leaf);
    tcase_add_test(t, a_second_loss_over_a_used_up_part_is_an_error);
    tcase_add_test(t, gradients_of_several_passes_add_up_and_leaves_never_share_one);
    tcase_add_test(t, nothing_is_recorded_when_switched_off_or_not_asked_for);
    tcase_add_test(t, a_node_waits_for_all_that_use_it);
    tcase_add_test(t, an_integer_tensor_cannot_require_a_gradient);
    suite_add_tcase(s, t);
    return s;
}
