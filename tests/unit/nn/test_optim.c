/* tests/unit/nn/test_optim.c - the optimizers against their formulas, written out for one number at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "harness/check_main.h"
#include "harness/ranks.h"

#define SHAPE(...) MESH_SHAPE(__VA_ARGS__)
#define N          5

static mesh_dtensor *no_forward(void *self, mesh_dtensor *x)
{
    (void)self;
    return x;
}
static const mesh_module_class holder = { .name = "holder", .forward = no_forward };

struct setting {
    double lr, momentum, weight_decay;
    bool nesterov;
};

/* What element i of the parameter is after `steps` steps with the gradient k = (i + 1) step. */
static double by_formula(const struct setting *s, int i, int steps)
{
    double p = i, v = 0, lr = s->lr > 0 ? s->lr : 0.01;
    for (int step = 1; step <= steps; step++) {
        double g = (i + 1) * step + s->weight_decay * p;
        v = step == 1 ? g : s->momentum * v + g;
        p -= lr * (s->nesterov ? g + s->momentum * v : v);
    }
    return p;
}

static mesh_dtensor *numbers(mesh_device_mesh *m, double start, double by, mesh_placement p)
{
    mesh_tensor *t = mesh_tensor_new(SHAPE(N), MESH_F64);
    for (int i = 0; t != NULL && i < N; i++) {
        ((double *)mesh_tensor_data(t))[i] = start + i * by;
    }
    return mesh_distribute_same(t, m, MESH_PLACEMENTS(p));
}

static int steps(void *arg)
{
    const struct setting *s = arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(mesh_world_size()), NULL);
    mesh_module *module = mesh_module_new(&holder, NULL);
    mesh_dtensor *p = numbers(m, 0, 1, mesh_shard(0)), *unused = numbers(m, 0, 1, mesh_replicate());
    mesh_module_add_parameter(module, "p", p);
    mesh_module_add_parameter(module, "unused", unused);
    mesh_optimizer *sgd = mesh_sgd(module, .lr = s->lr, .momentum = s->momentum, .weight_decay = s->weight_decay,
                                   .nesterov = s->nesterov);
    for (int step = 1; step <= 3; step++) {
        REQUIRE(mesh_backward_from(mesh_mul_scalar(p, step), numbers(m, 1, 1, mesh_replicate())) == 0);
        mesh_comm_reset();
        REQUIRE(mesh_optimizer_step(sgd) == 0);
        REQUIRE(mesh_comm_count(MESH_COMM_ALL_REDUCE) == 0 && mesh_comm_count(MESH_COMM_ALL_GATHER) == 0);
        REQUIRE(mesh_grad(p) == NULL);
        mesh_tensor *full = mesh_full_tensor(p);
        for (int i = 0; i < N; i++) {
            REQUIRE_NEAR(((const double *)mesh_tensor_data(full))[i], by_formula(s, i, step), 1e-12);
        }
    }
    REQUIRE_NEAR(((const double *)mesh_tensor_data(mesh_to_local(unused)))[4], 4, 0);
    return 0;
}

static const struct setting settings[] = { { .lr = 0 },
                                           { .lr = 0.1 },
                                           { .lr = 0.1, .weight_decay = 0.25 },
                                           { .lr = 0.1, .momentum = 0.9 },
                                           { .lr = 0.1, .momentum = 0.9, .weight_decay = 0.25, .nesterov = true } };

START_TEST(a_step_on_sharded_parameters_follows_the_formula_without_communication)
{
    struct setting s = settings[_i];
    ranks_run(2, steps, &s);
}
END_TEST

/* What element i is after `steps` steps of AdamW with the gradient (i + 1) step. */
static double by_adamw(int i, int steps, double weight_decay)
{
    double p = i, m = 0, v = 0, lr = 0.1, beta1 = 0.8, beta2 = 0.999;
    for (int t = 1; t <= steps; t++) {
        double g = (i + 1) * t;
        p -= lr * weight_decay * p;
        m = beta1 * m + (1 - beta1) * g;
        v = beta2 * v + (1 - beta2) * g * g;
        p -= lr * (m / (1 - pow(beta1, t))) / (sqrt(v / (1 - pow(beta2, t))) + 1e-8);
    }
    return p;
}

static int adamw_steps(void *arg)
{
    const double *weight_decay = arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(mesh_world_size()), NULL);
    mesh_module *module = mesh_module_new(&holder, NULL);
    mesh_dtensor *p = numbers(m, 0, 1, mesh_shard(0));
    mesh_module_add_parameter(module, "p", p);
    mesh_optimizer *o = mesh_adamw(module, .lr = 0.1, .beta1 = 0.8, .weight_decay = weight_decay);
    for (int step = 1; step <= 3; step++) {
        REQUIRE(mesh_backward_from(mesh_mul_scalar(p, step), numbers(m, 1, 1, mesh_replicate())) == 0);
        REQUIRE(mesh_optimizer_step(o) == 0);
        mesh_tensor *full = mesh_full_tensor(p);
        for (int i = 0; i < N; i++) {
            double want = by_adamw(i, step, weight_decay != NULL ? *weight_decay : 0.01);
            REQUIRE_NEAR(((const double *)mesh_tensor_data(full))[i], want, 1e-12);
        }
    }
    mesh_scope *scope = mesh_scope_begin();
    REQUIRE(mesh_adamw(module, .beta1 = 1) == NULL);
    REQUIRE(mesh_scope_end(scope) == MESH_EINVAL);
    return 0;
}
START_TEST(adamw_follows_its_formula_with_a_decay_of_a_hundredth_unless_told)
{
    double weight_decay = 0;
    ranks_run(2, adamw_steps, NULL);
    ranks_run(2, adamw_steps, &weight_decay);
}
END_TEST

static int life(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(1), NULL);
    mesh_module *module = mesh_nn_linear(m, 3, 2);
    mesh_optimizer *a = mesh_sgd(module), *b = mesh_sgd(module, .lr = 0.5);
    REQUIRE(mesh_optimizer_set_lr(a, 0.2) == 0);
    mesh_scope *scope = mesh_scope_begin();
    REQUIRE(mesh_optimizer_set_lr(a, -1) == MESH_EINVAL);
    REQUIRE(mesh_scope_end(scope) == MESH_EINVAL);
    REQUIRE(mesh_optimizer_free(b) == NULL && mesh_optimizer_free(NULL) == NULL);
    mesh_module_free(module);
    REQUIRE(mesh_optimizer_step(a) == 0); /* of a module that is gone: nothing */
    return 0;
}
START_TEST(an_optimizer_outlives_its_module_and_ends_alone_or_with_the_session)
{
    ranks_run(1, life, NULL);
}
END_TEST

/* A parameter of 16 bits takes the step of f32 and is rounded once: moments do not lose what is small. */
static int half_steps(void *arg)
{
    mesh_dtype t = *(const mesh_dtype *)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(mesh_world_size()), NULL);
    mesh_module *module = mesh_module_new(&holder, NULL), *wide_module = mesh_module_new(&holder, NULL);
    mesh_dtensor *p = mesh_cast(numbers(m, 1, 1, mesh_shard(0)), t), *wide = mesh_cast(p, MESH_F32);
    mesh_module_add_parameter(module, "p", p);
    mesh_module_add_parameter(wide_module, "p", wide);
    mesh_optimizer *o = mesh_adamw(module, .lr = 0.25), *wide_o = mesh_adamw(wide_module, .lr = 0.25);
    for (int step = 1; step <= 3; step++) {
        mesh_dtensor *g = mesh_cast(numbers(m, 0.5, 1, mesh_replicate()), t);
        REQUIRE(mesh_backward_from(mesh_mul_scalar(p, step), g) == 0);
        REQUIRE(mesh_backward_from(mesh_mul_scalar(wide, step), mesh_cast(g, MESH_F32)) == 0);
        REQUIRE(mesh_optimizer_step(o) == 0 && mesh_optimizer_step(wide_o) == 0);
        mesh_tensor *got = mesh_full_tensor(mesh_cast(mesh_detach(p), MESH_F32)),
                    *want = mesh_full_tensor(mesh_detach(wide));
        REQUIRE(got != NULL && want != NULL && mesh_dtype_of(p) == t);
        for (int i = 0; i < N; i++) { /* three roundings of 8 bits behind the point */
            REQUIRE_NEAR((double)((float *)mesh_tensor_data(got))[i], (double)((float *)mesh_tensor_data(want))[i],
                         0.01);
        }
    }
    return 0;
}

START_TEST(parameters_of_16_bits_are_stepped_in_f32)
{
    static const mesh_dtype dtypes[] = { MESH_F16, MESH_BF16 };
    mesh_dtype t = dtypes[_i];
    ranks_run(2, half_steps, &t);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("optim");
    TCase *t = tcase_create("optim");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_step_on_sharded_parameters_follows_the_formula_without_communication, 0,
                        (int)(sizeof settings / sizeof settings[0]));
    tcase_add_test(t, adamw_follows_its_formula_with_a_decay_of_a_hundredth_unless_told);
    tcase_add_test(t, an_optimizer_outlives_its_module_and_ends_alone_or_with_the_session);
    tcase_add_loop_test(t, parameters_of_16_bits_are_stepped_in_f32, 0, 2);
    suite_add_tcase(s, t);
    return s;
}
