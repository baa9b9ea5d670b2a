/* tests/unit/nn/test_tied.c - one tensor under two names is one parameter; what hangs on a parameter follows it to a
 * new layout.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include <mesh/parallel.h>

#include "harness/check_main.h"
#include "harness/ranks.h"

#define N 6

static mesh_dtensor *forward_nothing(void *self, mesh_dtensor *x)
{
    (void)self;
    return x;
}
static const mesh_module_class holder = { .name = "holder", .forward = forward_nothing };

struct pair {
    mesh_device_mesh *mesh;
    mesh_module *root, *a, *b;
    mesh_dtensor *w; /* of ones; the parameter "w" of both a and b */
};

static struct pair make_pair(void)
{
    struct pair t = { .mesh = mesh_init_device_mesh("cpu", MESH_SHAPE(mesh_world_size()), NULL) };
    t.root = mesh_module_new(&holder, NULL);
    t.a = mesh_module_new(&holder, NULL);
    t.b = mesh_module_new(&holder, NULL);
    t.w = mesh_ones(MESH_SHAPE(N), t.mesh, MESH_PLACEMENTS(mesh_replicate()), .dtype = MESH_F64);
    mesh_module_add(t.root, "a", t.a);
    mesh_module_add(t.root, "b", t.b);
    mesh_module_add_parameter(t.a, "w", t.w);
    mesh_module_add_parameter(t.b, "w", t.w);
    return t;
}

/* Each element gets the gradient 2. */
static int go_back(const struct pair *t)
{
    return mesh_backward(
        mesh_sum(mesh_add(mesh_module_parameter_at(t->root, "a.w"), mesh_module_parameter_at(t->root, "b.w"))));
}

static double sum_of(mesh_dtensor *x)
{
    return mesh_item(mesh_sum(x));
}

static mesh_placements to_shards(const char *parameter, mesh_shape shape, void *user)
{
    (void)parameter;
    (void)shape;
    (void)user;
    return MESH_PLACEMENTS(mesh_shard(0));
}

static int step_once(void *arg)
{
    (void)arg;
    struct pair t = make_pair();
    mesh_optimizer *sgd = mesh_sgd(t.root, .lr = 0.125, .momentum = 0.5), *adamw = mesh_adamw(t.root, .lr = 0.25);
    REQUIRE(go_back(&t) == 0 && mesh_optimizer_step(sgd) == 0);
    REQUIRE_NEAR(sum_of(t.w), N * 0.75, 1e-12);
    REQUIRE(mesh_grad(t.w) == NULL);
    REQUIRE(go_back(&t) == 0 && mesh_optimizer_step(adamw) == 0);
    REQUIRE_NEAR(sum_of(t.w), N * (0.75 * (1 - 0.0025) - 0.25), 1e-6);
    return 0;
}

START_TEST(a_tensor_with_two_names_takes_one_step)
{
    ranks_run(1, step_once, NULL);
    ranks_run(3, step_once, NULL);
}
END_TEST

static int count_once(void *arg)
{
    (void)arg;
    struct pair t = make_pair();
    REQUIRE(go_back(&t) == 0);
    REQUIRE_NEAR(mesh_clip_grad_norm(t.root, INFINITY), 2 * sqrt(N), 1e-12);
    REQUIRE_NEAR(mesh_clip_grad_norm(t.root, sqrt(N)), 2 * sqrt(N), 1e-12);
    REQUIRE_NEAR(sum_of(mesh_grad(t.w)), N, 1e-12);
    return 0;
}

START_TEST(a_tensor_with_two_names_counts_once_in_the_norm_and_is_scaled_once)
{
    ranks_run(1, count_once, NULL);
    ranks_run(4, count_once, NULL);
}
END_TEST

static int stay_tied(void *arg)
{
    (void)arg;
    struct pair t = make_pair();
    REQUIRE(go_back(&t) == 0);
    REQUIRE(mesh_distribute_module(t.root, to_shards, NULL, NULL, NULL) == 0);
    mesh_dtensor *w = mesh_module_parameter_at(t.root, "a.w");
    REQUIRE(w == mesh_module_parameter_at(t.root, "b.w"));
    REQUIRE(mesh_placements_of(w).at[0].kind == MESH_IS_SHARD);
    REQUIRE_NEAR(sum_of(mesh_grad(w)), 2 * N, 1e-12);
    mesh_module_free(t.a);
    REQUIRE_NEAR(sum_of(mesh_module_parameter_at(t.root, "b.w")), N, 1e-12);
    return 0;
}

START_TEST(tied_parameters_stay_tied_in_a_new_layout)
{
    ranks_run(1, stay_tied, NULL);
    ranks_run(3, stay_tied, NULL);
}
END_TEST

static mesh_dtensor *twice(mesh_dtensor *grad, void *user)
{
    (void)user;
    return mesh_mul_scalar(grad, 2);
}

static int follow(void *arg)
{
    (void)arg;
    struct pair t = make_pair();
    mesh_dtensor *frozen = mesh_ones(MESH_SHAPE(N), t.mesh, MESH_PLACEMENTS(mesh_replicate()), .dtype = MESH_F64);
    REQUIRE(mesh_module_add_parameter(t.root, "frozen", frozen) == 0);
    mesh_requires_grad(frozen, false);
    REQUIRE(mesh_grad_hook(t.w, twice, NULL) == 0 && mesh_grad_hook(t.w, twice, NULL) == 0);
    REQUIRE(go_back(&t) == 0);
    REQUIRE(mesh_distribute_module(t.root, to_shards, NULL, NULL, NULL) == 0);
    mesh_dtensor *w = mesh_module_parameter_at(t.root, "b.w"), *f = mesh_module_parameter_at(t.root, "frozen");
    REQUIRE(mesh_placements_of(f).at[0].kind == MESH_IS_SHARD);
    REQUIRE_NEAR(sum_of(mesh_grad(w)), 8 * N, 1e-12);
    REQUIRE(mesh_backward(mesh_sum(mesh_mul(w, f))) == 0);
    REQUIRE_NEAR(sum_of(mesh_grad(w)), 12 * N, 1e-12);
    REQUIRE(mesh_grad(f) == NULL);
    return 0;
}

START_TEST(gradient_hooks_and_being_frozen_follow_a_parameter_to_its_new_layout)
{
    ranks_run(1, follow, NULL);
    ranks_run(3, follow, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("tied");
    TCase *t = tcase_create("tied");
    tcase_add_test(t, a_tensor_with_two_names_takes_one_step);
    tcase_add_test(t, a_tensor_with_two_names_counts_once_in_the_norm_and_is_scaled_once);
    tcase_add_test(t, tied_parameters_stay_tied_in_a_new_layout);
    tcase_add_test(t, gradient_hooks_and_being_frozen_follow_a_parameter_to_its_new_layout);
    suite_add_tcase(s, t);
    return s;
}
