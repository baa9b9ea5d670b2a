/* tests/unit/nn/test_parallel.c - tensor parallelism: values, exactly the collectives promised, plans that do not fit.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "dtensor/dtensor.h"
#include "harness/check_main.h"
#include "harness/ranks.h"

#define SHAPE(...) MESH_SHAPE(__VA_ARGS__)

static uint64_t n_collectives(void)
{
    return mesh_comm_count(MESH_COMM_ALL_REDUCE) + mesh_comm_count(MESH_COMM_ALL_GATHER) +
           mesh_comm_count(MESH_COMM_REDUCE_SCATTER) + mesh_comm_count(MESH_COMM_ALL_TO_ALL) +
           mesh_comm_count(MESH_COMM_BROADCAST);
}

static mesh_placements two(mesh_placement a, mesh_placement b)
{
    return MESH_PLACEMENTS(a, b);
}

/* Writes f(row, column) into the part of a 1-d or 2-d parameter that this rank holds. */
static int fill(mesh_dtensor *p, double (*f)(int64_t row, int64_t column))
{
    struct box box;
    mesh_tensor *local = mesh_to_local(p);
    REQUIRE(local != NULL);
    layout_box(p->shape, p->mesh->size, p->mesh->coordinate, &p->placements, &box);
    int64_t columns = box.ndim == 2 ? box.extent[1] : 1;
    for (int64_t i = 0; i < box.extent[0] * columns; i++) {
        int64_t column = box.ndim == 2 ? box.offset[1] + i % columns : 0;
        ((float *)mesh_tensor_data(local))[i] = (float)f(box.offset[0] + i / columns, column);
    }
    return 0;
}

static double first_weight(int64_t row, int64_t column)
{
    return column == 0 ? (double)row : 1;
}
static double zero(int64_t row, int64_t column)
{
    (void)row;
    (void)column;
    return 0;
}
static double one(int64_t row, int64_t column)
{
    return zero(row, column) + 1;
}
static double ten(int64_t row, int64_t column)
{
    return zero(row, column) + 10;
}

/* x = [1, 2]; W1 (5,2) with rows [i, 1]; W2 = ones (1,5), bias 10: sum of (i + 2) + 10 = 30; 4 ranks hold 2, 2, 1, 0 of
 * the 5 hidden units. */
static int closed_form(void *arg)
{
    const bool *is_sequence = arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(4), MESH_NAMES("tp"));
    mesh_module *net = mesh_nn_sequential({ "up", mesh_nn_linear(m, 2, 5) }, { "down", mesh_nn_linear(m, 5, 1) });
    mesh_style up = mesh_colwise(), down = mesh_rowwise();
    if (*is_sequence) {
        up.input = down.output = mesh_shard(0);
    }
    REQUIRE(mesh_parallelize_module(net, "tp", { "up", up }, { "down", down }) == 0);
    REQUIRE_OK(fill(mesh_module_parameter(net, 0, NULL), first_weight));
    REQUIRE_OK(fill(mesh_module_parameter(net, 1, NULL), zero));
    REQUIRE_OK(fill(mesh_module_parameter(net, 2, NULL), one));
    REQUIRE_OK(fill(mesh_module_parameter(net, 3, NULL), ten));
    static const float tokens[10] = { 1, 2, 1, 2, 1, 2, 1, 2, 1, 2 };
    mesh_tensor *x = mesh_tensor_view((void *)(uintptr_t)tokens, SHAPE(5, 2), MESH_F32);
    mesh_placement rows = *is_sequence ? mesh_shard(0) : mesh_replicate();
    mesh_dtensor *y = mesh_forward(net, mesh_distribute_same(x, m, MESH_PLACEMENTS(rows)));
    REQUIRE(y != NULL);
    REQUIRE(mesh_placements_equal(mesh_placements_of(y), MESH_PLACEMENTS(rows)));
    if (*is_sequence) {
        static const int64_t want[4] = { 2, 2, 1, 0 };
        REQUIRE(mesh_tensor_shape(mesh_to_local(y)).dim[0] == want[mesh_rank()]);
    }
    const float *value = mesh_tensor_data(mesh_full_tensor(y));
    for (int i = 0; i < 5; i++) {
        REQUIRE_NEAR((double)value[i], 30, 0);
    }
    return 0;
}
START_TEST(five_hidden_units_over_four_ranks_give_30_with_the_bias_once)
{
    bool is_sequence = _i == 1;
    ranks_run(4, closed_form, &is_sequence);
}
END_TEST

static mesh_module *network(mesh_device_mesh *m)
{
    return mesh_nn_sequential({ "up", mesh_nn_linear(m, 6, 10, .seed = 1) }, { "gelu", mesh_nn_gelu() },
                              { "down", mesh_nn_linear(m, 10, 4, .seed = 2) });
}

static int counts(void *arg)
{
    const mesh_shape *shape = arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", *shape, MESH_NAMES("dp", "tp"));
    mesh_module *net = network(m);
    REQUIRE(mesh_parallelize_module(net, "tp", { "up", mesh_colwise() }, { "down", mesh_rowwise() }) == 0);
    for (int wanted = 0; wanted < 2; wanted++) {
        mesh_dtensor *x = mesh_randn(SHAPE(7, 6), m, two(mesh_shard(0), mesh_replicate()), .seed = 3);
        mesh_dtensor *t = mesh_zeros(SHAPE(7), m, two(mesh_shard(0), mesh_replicate()), .dtype = MESH_I64);
        mesh_requires_grad(x, wanted != 0);
        mesh_comm_reset();
        mesh_dtensor *y = mesh_forward(net, x);
        REQUIRE(y != NULL);
        REQUIRE(mesh_comm_count(MESH_COMM_ALL_REDUCE) == 1 && n_collectives() == 1);
        mesh_dtensor *loss = mesh_cross_entropy(y, t);
        double value = mesh_item(loss);
        REQUIRE(value > 0.1 && value < 10);
        REQUIRE(n_collectives() == 1); /* replicated over tp, one rank in dp */
        mesh_comm_reset();
        REQUIRE(mesh_backward(loss) == 0);
        REQUIRE(mesh_comm_count(MESH_COMM_ALL_REDUCE) == (uint64_t)wanted && n_collectives() == (uint64_t)wanted);
        REQUIRE(wanted == 0 || mesh_grad(x) != NULL);
    }
    return 0;
}
START_TEST(on_1xN_one_step_is_one_all_reduce_forward_and_one_backward_only_if_the_input_wants_a_gradient)
{
    mesh_shape shape = SHAPE(1, _i);
    ranks_run(_i, counts, &shape);
}
END_TEST

/* Loss and all gradients of a mesh, whole. */
struct result {
    double loss;
    float gradient[4][60];
};
struct request {
    mesh_shape shape;
    struct result *result;
};

static int compute(void *arg)
{
    const struct request *q = arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", q->shape, MESH_NAMES("dp", "tp"));
    mesh_module *net = network(m);
    REQUIRE(mesh_parallelize_module(net, "tp", { "up", mesh_colwise() }, { "down", mesh_rowwise() }) == 0);
    mesh_dtensor *x = mesh_randn(SHAPE(7, 6), m, two(mesh_shard(0), mesh_replicate()), .seed = 3);
    mesh_dtensor *t = mesh_zeros(SHAPE(7), m, two(mesh_shard(0), mesh_replicate()), .dtype = MESH_I64);
    mesh_dtensor *loss = mesh_cross_entropy(mesh_forward(net, x), t);
    REQUIRE(mesh_backward(loss) == 0);
    double value = mesh_item(loss);
    for (size_t i = 0; i < 4; i++) {
        mesh_dtensor *p = mesh_module_parameter(net, i, NULL), *g = mesh_grad(p);
        REQUIRE(g != NULL && mesh_placements_equal(mesh_placements_of(g), mesh_placements_of(p)));
        mesh_tensor *full = mesh_full_tensor(g);
        REQUIRE(full != NULL && full->n <= 60);
        if (mesh_rank() == 0) {
            q->result->loss = value;
            memcpy(q->result->gradient[i], full->data, tensor_bytes(full));
        }
    }
    return 0;
}

START_TEST(every_mesh_computes_the_loss_and_gradients_of_one_process)
{
    static const int meshes[][2] = { { 2, 1 }, { 1, 2 }, { 2, 2 }, { 1, 3 }, { 3, 1 }, { 4, 1 }, { 1, 4 }, { 2, 3 } };
    struct result want = { 0 }, got = { 0 };
    ranks_run(1, compute, &(struct request){ SHAPE(1, 1), &want });
    for (size_t k = 0; k < sizeof meshes / sizeof meshes[0]; k++) {
        struct request q = { SHAPE(meshes[k][0], meshes[k][1]), &got };
        ranks_run(meshes[k][0] * meshes[k][1], compute, &q);
        ck_assert_double_eq_tol(got.loss, want.loss, 1e-6);
        for (int i = 0; i < 4 * 60; i++) {
            ck_assert_float_eq_tol((&got.gradient[0][0])[i], (&want.gradient[0][0])[i], 2e-6F); /* sums of f32 */
        }
    }
}
END_TEST

static int misfits(void *arg)
{
    (void)arg;
    static const struct {
        const char *dim, *path, *says;
        int kind, want;
    } tries[] = {
        { "tp", "nowhere", "up, gelu, down", 1, MESH_ENOTFOUND },
        { "tp", "up.deeper", "none", 1, MESH_ENOTFOUND },
        { "nosuch", "up", "nosuch", 1, MESH_ENOTFOUND },
        { "tp", "gelu", "gelu", 1, MESH_EUNSUPPORTED },
        { "tp", "*", "gelu", 1, MESH_EUNSUPPORTED },
        { "tp", "up", "no style", 77, MESH_EINVAL },
        { "tp", "up..x", "empty", 1, MESH_EINVAL },
        { "tp", "up.", "empty", 1, MESH_EINVAL },
    };
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(1, 1), MESH_NAMES("dp", "tp"));
    mesh_module *net = network(m);
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        mesh_scope *scope = mesh_scope_begin();
        mesh_style style = { .kind = tries[i].kind };
        int r = mesh_parallelize_module(net, tries[i].dim, { "down", mesh_rowwise() }, { tries[i].path, style });
        REQUIRE(r == tries[i].want);
        REQUIRE(strstr(mesh_last_error()->message, tries[i].says) != NULL);
        REQUIRE(mesh_scope_end(scope) == r);
    }
    mesh_dtensor *w = mesh_module_parameter(net, 2, NULL); /* and none of the plans was begun */
    REQUIRE(mesh_placements_of(w).at[1].kind == MESH_IS_REPLICATE);
    REQUIRE(mesh_parallelize_module(net, "tp", { "[ud]*", mesh_colwise() }) == 0);
    mesh_scope *scope = mesh_scope_begin();
    REQUIRE(mesh_parallelize_module(net, "tp", { "up", mesh_colwise() }) == MESH_ESTATE);
    mesh_scope_end(scope);
    return 0;
}
START_TEST(plans_that_do_not_fit_say_what_there_is_and_change_nothing)
{
    ranks_run(1, misfits, NULL);
}
END_TEST

static int patterns(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(2), MESH_NAMES("tp"));
    mesh_module *blocks = mesh_nn_sequential({ "0", network(m) }, { "1", network(m) }, { "last", network(m) });
    mesh_module *root = mesh_nn_sequential({ "blocks", blocks });
    REQUIRE(mesh_parallelize_module(root, "tp", { "blocks.[0-9].up", mesh_colwise() },
                                    { "blocks.*.down", mesh_rowwise() }) == 0);
    for (size_t i = 0; i < 12; i++) {
        const char *name = NULL;
        mesh_dtensor *p = mesh_module_parameter(root, i, &name);
        bool is_bias_of_down = strstr(name, "down.bias") != NULL, is_last_up = strstr(name, "last.up") != NULL;
        REQUIRE((mesh_placements_of(p).at[0].kind == MESH_IS_SHARD) == (!is_bias_of_down && !is_last_up));
    }
    return 0;
}
START_TEST(a_path_with_patterns_names_the_modules_of_each_level)
{
    ranks_run(2, patterns, NULL);
}
END_TEST

static int in_use(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(2), MESH_NAMES("tp"));
    mesh_module *net = network(m);
    mesh_dtensor *x = mesh_randn(SHAPE(3, 6), m, MESH_PLACEMENTS(mesh_replicate()), .seed = 4);
    const float *before = mesh_tensor_data(mesh_full_tensor(mesh_forward(net, x)));
    REQUIRE(mesh_parallelize_module(net, "tp", { "up", mesh_colwise() }, { "down", mesh_rowwise() }) == 0);
    const float *after = mesh_tensor_data(mesh_full_tensor(mesh_forward(net, x)));
    for (int i = 0; i < 12; i++) {
        REQUIRE_NEAR((double)after[i], (double)before[i], 1e-6);
    }
    return 0;
}
START_TEST(parameters_in_use_are_redistributed)
{
    ranks_run(2, in_use, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("parallel");
    TCase *t = tcase_create("parallel");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, five_hidden_units_over_four_ranks_give_30_with_the_bias_once, 0, 2);
    tcase_add_loop_test(
        t, on_1xN_one_step_is_one_all_reduce_forward_and_one_backward_only_if_the_input_wants_a_gradient, 2, 5);
    tcase_add_test(t, every_mesh_computes_the_loss_and_gradients_of_one_process);
    tcase_add_test(t, plans_that_do_not_fit_say_what_there_is_and_change_nothing);
    tcase_add_test(t, a_path_with_patterns_names_the_modules_of_each_level);
    tcase_add_test(t, parameters_in_use_are_redistributed);
    suite_add_tcase(s, t);
    return s;
}
