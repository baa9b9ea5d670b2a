/* tests/unit/nn/test_layers.c - embedding, norms, dropout, modules of several inputs, paths, distribution by functions.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "harness/check_main.h"
#include "harness/ranks.h"
#include "nn/module.h"

#define SHAPE(...) MESH_SHAPE(__VA_ARGS__)

static mesh_placements everywhere(const mesh_device_mesh *m)
{
    return placements_replicated(m);
}

static mesh_dtensor *numbers(mesh_device_mesh *m, mesh_shape shape, int64_t *values)
{
    return mesh_distribute_same(mesh_tensor_view(values, shape, MESH_I64), m, everywhere(m));
}

/* Writes 1, 2, 3, ... times `factor` by row-major index of the whole into the part that this rank holds. */
static int write_counted(mesh_dtensor *p, double factor)
{
    struct box b;
    mesh_tensor *local = mesh_to_local(p);
    REQUIRE(local != NULL);
    layout_box(p->shape, p->mesh->size, p->mesh->coordinate, &p->placements, &b);
    int64_t columns = b.ndim == 2 ? b.extent[1] : 1, whole = b.ndim == 2 ? p->shape.dim[1] : 1;
    for (int64_t i = 0; i < local->n; i++) {
        int64_t row = b.offset[0] + i / columns, column = b.ndim == 2 ? b.offset[1] + i % columns : 0;
        ((float *)local->data)[i] = (float)(factor * (double)(row * whole + column + 1));
    }
    return 0;
}

/* Ten rows of two over 4 ranks (3, 3, 3, 1 by rows; 1, 1, 0, 0 by columns). */
static int embedding(void *arg)
{
    const int *style = arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(4), MESH_NAMES("tp"));
    int64_t ids[8] = { 0, 2, 3, 5, 6, 8, 9, 9 };
    mesh_module *net = mesh_nn_sequential({ "table", mesh_nn_embedding(m, 10, 2) });
    if (*style > 0) {
        mesh_style s = *style == 1 ? mesh_rowwise() : mesh_colwise();
        REQUIRE(mesh_parallelize_module(net, "tp", { "table", s }) == 0);
    }
    mesh_dtensor *w = mesh_module_parameter_at(net, "table.weight");
    REQUIRE(w != NULL && mesh_placements_of(w).at[0].kind == (*style > 0 ? MESH_IS_SHARD : MESH_IS_REPLICATE));
    REQUIRE(*style == 0 || mesh_placements_of(w).at[0].dim == *style - 1);
    REQUIRE_OK(write_counted(w, 1));
    mesh_dtensor *y = mesh_forward(net, numbers(m, SHAPE(2, 4), ids));
    REQUIRE(y != NULL);
    const float *value = mesh_tensor_data(mesh_full_tensor(y));
    for (int i = 0; i < 16; i++) {
        REQUIRE_NEAR((double)value[i], (double)(2 * ids[i / 2] + i % 2 + 1), 0);
    }
    REQUIRE(mesh_placements_of(y).at[0].kind == (*style == 2 ? MESH_IS_SHARD : MESH_IS_REPLICATE));
    mesh_reduce_options all = { .size = sizeof all };
    REQUIRE(mesh_backward(mesh_sum_opt(y, &all)) == 0);
    REQUIRE(mesh_placements_equal(mesh_placements_of(mesh_grad(w)), mesh_placements_of(w)));
    const float *g = mesh_tensor_data(mesh_full_tensor(mesh_grad(w)));
    for (int64_t row = 0; row < 10; row++) { /* how often it was looked up */
        int n = 0;
        for (int i = 0; i < 8; i++) {
            n += ids[i] == row ? 1 : 0;
        }
        REQUIRE(g[2 * row] == (float)n && g[2 * row + 1] == (float)n);
    }
    return 0;
}
START_TEST(an_embedding_whole_by_rows_or_by_columns_gives_the_same_rows_and_gradients)
{
    ranks_run(4, embedding, &(int){ _i });
}
END_TEST

static mesh_module *block(mesh_device_mesh *m)
{
    return mesh_nn_sequential({ "norm", mesh_nn_layer_norm(m, 6) }, { "drop", mesh_nn_dropout(0.25) },
                              { "up", mesh_nn_linear(m, 6, 8, .seed = 1) }, { "gelu", mesh_nn_gelu() },
                              { "down", mesh_nn_linear(m, 8, 6, .seed = 2) });
}

struct outcome {
    double loss;
    float norm_weight[6], up_bias[8];
};

/* Tokens split over ranks through the norm and the dropout; whole for the product. */
static int sequence(void *arg)
{
    struct outcome *outcome = arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(mesh_world_size()), MESH_NAMES("tp"));
    mesh_manual_seed(5);
    mesh_module *net = block(m);
    mesh_style up = mesh_colwise(), down = mesh_rowwise();
    up.input = down.output = mesh_shard(0);
    REQUIRE(mesh_parallelize_module(net, "tp", { "[nd]o[r]*", mesh_sequence(0) }, { "drop", mesh_sequence(0) },
                                    { "up", up }, { "down", down }) == 0);
    mesh_dtensor *x = mesh_randn(SHAPE(5, 6), m, MESH_PLACEMENTS(mesh_shard(0)), .seed = 3);
    mesh_comm_reset();
    mesh_dtensor *y = mesh_forward(net, x);
    REQUIRE(y != NULL && mesh_placements_of(y).at[0].kind == MESH_IS_SHARD);
    if (mesh_world_size() > 1) {
        REQUIRE(mesh_comm_count(MESH_COMM_ALL_GATHER) == 1 && mesh_comm_count(MESH_COMM_REDUCE_SCATTER) == 1);
        REQUIRE(mesh_comm_count(MESH_COMM_ALL_REDUCE) == 0);
    }
    mesh_reduce_options all = { .size = sizeof all };
    mesh_dtensor *loss = mesh_sum_opt(mesh_mul(y, y), &all);
    REQUIRE(mesh_backward(loss) == 0);
    double value = mesh_item(loss);
    mesh_tensor *a = mesh_full_tensor(mesh_grad(mesh_module_parameter_at(net, "norm.weight")));
    mesh_tensor *b = mesh_full_tensor(mesh_grad(mesh_module_parameter_at(net, "up.bias")));
    REQUIRE(a != NULL && b != NULL);
    if (mesh_rank() == 0) {
        outcome->loss = value;
        memcpy(outcome->norm_weight, a->data, sizeof outcome->norm_weight);
        memcpy(outcome->up_bias, b->data, sizeof outcome->up_bias);
    }
    return 0;
}
START_TEST(norms_and_dropout_on_split_tokens_compute_what_one_process_does)
{
    struct outcome want = { 0 }, got = { 0 };
    ranks_run(1, sequence, &want);
    ck_assert(want.loss > 0);
    for (int n = 2; n <= 4; n++) {
        ranks_run(n, sequence, &got);
        ck_assert_double_eq_tol(got.loss, want.loss, 1e-5 * (1 + want.loss));
        for (int i = 0; i < 6; i++) {
            ck_assert_float_eq_tol(got.norm_weight[i], want.norm_weight[i], 2e-5F);
        }
        for (int i = 0; i < 8; i++) {
            ck_assert_float_eq_tol(got.up_bias[i], want.up_bias[i], 2e-5F);
        }
    }
}
END_TEST

static int evaluation(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(1), MESH_NAMES("tp"));
    mesh_module *net = mesh_nn_sequential({ "drop", mesh_nn_dropout(0.5) });
    mesh_dtensor *x = mesh_ones(SHAPE(64), m, MESH_PLACEMENTS(mesh_replicate()));
    REQUIRE(mesh_module_train(net, false) == 0 && mesh_forward(net, x) == x);
    REQUIRE(mesh_module_train(net, true) == 0 && mesh_forward(net, x) != x);
    mesh_scope *scope = mesh_scope_begin();
    REQUIRE(mesh_nn_dropout(1.5) == NULL && mesh_last_error()->status == MESH_EINVAL);
    mesh_scope_end(scope);
    return 0;
}
START_TEST(dropout_is_idle_while_a_module_is_evaluated)
{
    ranks_run(1, evaluation, NULL);
}
END_TEST

static mesh_dtensor *weighted(void *self, mesh_dtensor *const *in, int n)
{
    (void)self;
    return n == 3 ? mesh_add(mesh_mul(in[0], in[1]), in[2]) : NULL;
}

static int inputs(void *arg)
{
    (void)arg;
    static const mesh_inputs_class cls = { .name = "weighted", .forward = weighted };
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(2), MESH_NAMES("tp"));
    mesh_module *net = mesh_module_new_of_inputs(&cls, NULL);
    mesh_dtensor *two = mesh_full(SHAPE(3), 2, m, MESH_PLACEMENTS(mesh_shard(0)));
    mesh_dtensor *y = mesh_forward_all(net, two, mesh_add_scalar(two, 1), two);
    REQUIRE(y != NULL && ((const float *)mesh_tensor_data(mesh_full_tensor(y)))[2] == 8);
    mesh_scope *scope = mesh_scope_begin();
    REQUIRE(mesh_forward(net, two) == NULL && strstr(mesh_last_error()->message, "weighted") != NULL);
    mesh_scope_end(scope);
    scope = mesh_scope_begin();
    REQUIRE(mesh_forward_all(mesh_nn_gelu(), two, two) == NULL && mesh_last_error()->status == MESH_EINVAL);
    mesh_scope_end(scope);
    return 0;
}
START_TEST(a_module_of_the_callers_may_have_several_inputs)
{
    ranks_run(2, inputs, NULL);
}
END_TEST

static int paths(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(1), MESH_NAMES("tp"));
    mesh_module *root = mesh_nn_sequential({ "blocks", mesh_nn_sequential({ "0", block(m) }) });
    REQUIRE(mesh_module_at(root, "") == root);
    mesh_module *up = mesh_module_at(root, "blocks.0.up");
    REQUIRE(up != NULL && mesh_module_parameter_at(up, "bias") == mesh_module_parameter_at(root, "blocks.0.up.bias"));
    static const char *const wrong[] = { "blocks.1.up.bias", "blocks.0.up.bins", "", "blocks", "blocks.0.up.bias.x" };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        mesh_scope *scope = mesh_scope_begin();
        REQUIRE(mesh_module_parameter_at(root, wrong[i]) == NULL);
        REQUIRE(mesh_last_error()->status == MESH_ENOTFOUND && strstr(mesh_last_error()->message, "there are") != NULL);
        mesh_scope_end(scope);
    }
    char far[400] = "blocks.";
    memset(far + 7, 'x', sizeof far - 8);
    const char *const nowhere[] = {
        "blocks.", ".", ".blocks", "blocks..0", "blocks.0.%n%s", "blocks.0.up.weight", far
    };
    for (size_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++) {
        mesh_scope *scope = mesh_scope_begin();
        REQUIRE(mesh_module_at(root, nowhere[i]) == NULL && mesh_scope_end(scope) == MESH_ENOTFOUND);
        REQUIRE(strstr(mesh_last_error()->message, "; there are: ") != NULL);
    }
    return 0;
}
START_TEST(a_path_leads_to_a_module_and_to_a_parameter)
{
    ranks_run(1, paths, NULL);
}
END_TEST

static mesh_placements by_rows(const char *parameter, mesh_shape shape, void *user)
{
    int *n_asked = user;
    ++*n_asked;
    bool is_weight = strstr(parameter, "up.weight") != NULL && shape.dim[0] == 8;
    return is_weight ? MESH_PLACEMENTS(mesh_shard(0)) : (mesh_placements){ .n = 0 };
}
static mesh_placements pending(const char *parameter, mesh_shape shape, void *user)
{
    (void)parameter;
    (void)shape;
    (void)user;
    return MESH_PLACEMENTS(mesh_partial(MESH_SUM));
}
static mesh_dtensor *split_rows(mesh_dtensor *x, void *user)
{
    (void)user;
    return mesh_redistribute(x, MESH_PLACEMENTS(mesh_shard(0)));
}
static mesh_dtensor *only_look(mesh_dtensor *x, void *user)
{
    *(int *)user += x != NULL ? 100 : 0;
    return NULL;
}

static int distributed(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(2), MESH_NAMES("tp"));
    mesh_module *whole = block(m), *split = block(m);
    int n = 0;
    mesh_module_train(whole, false);
    mesh_module_train(split, false);
    mesh_scope *scope = mesh_scope_begin();
    REQUIRE(mesh_distribute_module(split, pending, NULL, NULL, NULL) == MESH_EPLACEMENT);
    mesh_scope_end(scope);
    REQUIRE(mesh_distribute_module(split, by_rows, split_rows, only_look, &n) == 0 && n == 6);
    REQUIRE(mesh_placements_of(mesh_module_parameter_at(split, "up.weight")).at[0].kind == MESH_IS_SHARD);
    REQUIRE(mesh_placements_of(mesh_module_parameter_at(split, "up.bias")).at[0].kind == MESH_IS_REPLICATE);
    mesh_dtensor *x = mesh_randn(SHAPE(5, 6), m, MESH_PLACEMENTS(mesh_replicate()), .seed = 3);
    mesh_tensor *a = mesh_full_tensor(mesh_forward(whole, x)), *b = mesh_full_tensor(mesh_forward(split, x));
    REQUIRE(a != NULL && b != NULL && n == 106);
    for (int64_t i = 0; i < a->n; i++) {
        REQUIRE_NEAR((double)((float *)b->data)[i], (double)((float *)a->data)[i], 1e-6);
    }
    scope = mesh_scope_begin();
    REQUIRE(mesh_distribute_module(split, NULL, NULL, NULL, NULL) == MESH_ESTATE);
    mesh_scope_end(scope);
    return 0;
}
START_TEST(a_module_is_distributed_once_by_functions_for_parameters_inputs_and_results)
{
    ranks_run(2, distributed, NULL);
}
END_TEST

struct clipping {
    mesh_shape mesh;
    int style;
};

/* Gradients 1, 2, ..., 48 and 1, ..., 8: squares sum to 38024 + 204. */
static int clip(void *arg)
{
    const struct clipping *c = arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", c->mesh, MESH_NAMES("dp", "tp"));
    mesh_module *net = mesh_nn_sequential({ "up", mesh_nn_linear(m, 6, 8) });
    if (c->style > 0) {
        REQUIRE(mesh_parallelize_module(net, "tp", { "up", c->style == 1 ? mesh_colwise() : mesh_rowwise() }) == 0);
    }
    REQUIRE(mesh_clip_grad_norm(net, 1) == 0); /* no gradients yet */
    for (size_t i = 0; i < 2; i++) {
        mesh_dtensor *p = mesh_module_parameter(net, i, NULL), *g = mesh_mul_scalar(mesh_detach(p), 0);
        REQUIRE_OK(write_counted(g, 1));
        REQUIRE(mesh_backward_from(p, g) == 0);
    }
    const double norm = sqrt(38024 + 204);
    REQUIRE(mesh_clip_grad_norm(net, INFINITY) == norm);
    REQUIRE(mesh_clip_grad_norm(net, 2 * norm) == norm);
    REQUIRE(mesh_clip_grad_norm(net, norm / 4) == norm);
    REQUIRE_NEAR(mesh_clip_grad_norm(net, INFINITY), norm / 4, 1e-12);
    mesh_dtensor *g = mesh_grad(mesh_module_parameter(net, 0, NULL));
    REQUIRE_NEAR((double)((const float *)mesh_tensor_data(mesh_full_tensor(g)))[47], 12, 0);
    mesh_scope *scope = mesh_scope_begin();
    REQUIRE(isnan(mesh_clip_grad_norm(net, -1)) && mesh_last_error()->status == MESH_EINVAL);
    mesh_scope_end(scope);
    return 0;
}
START_TEST(the_norm_of_gradients_counts_each_element_once_on_every_mesh)
{
    static const int meshes[][2] = { { 1, 1 }, { 1, 2 }, { 2, 1 }, { 1, 4 }, { 2, 2 }, { 4, 1 }, { 1, 3 } };
    struct clipping c = { SHAPE(meshes[_i][0], meshes[_i][1]), 0 };
    for (c.style = 0; c.style < 3; c.style++) {
        ranks_run(meshes[_i][0] * meshes[_i][1], clip, &c);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("layers");
    TCase *t = tcase_create("layers");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, an_embedding_whole_by_rows_or_by_columns_gives_the_same_rows_and_gradients, 0, 3);
    tcase_add_test(t, norms_and_dropout_on_split_tokens_compute_what_one_process_does);
    tcase_add_test(t, dropout_is_idle_while_a_module_is_evaluated);
    tcase_add_test(t, a_module_of_the_callers_may_have_several_inputs);
    tcase_add_test(t, a_path_leads_to_a_module_and_to_a_parameter);
    tcase_add_test(t, a_module_is_distributed_once_by_functions_for_parameters_inputs_and_results);
    tcase_add_loop_test(t, the_norm_of_gradients_counts_each_element_once_on_every_mesh, 0, 7);
    suite_add_tcase(s, t);
    return s;
}
