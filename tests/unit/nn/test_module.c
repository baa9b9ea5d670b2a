/* tests/unit/nn/test_module.c - trees of modules: names, ownership, when parameters come to be.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "harness/check_main.h"
#include "harness/ranks.h"
#include "nn/module.h"

#define SHAPE(...) MESH_SHAPE(__VA_ARGS__)

static mesh_device_mesh *line(void)
{
    return mesh_init_device_mesh("cpu", SHAPE(mesh_world_size()), MESH_NAMES("tp"));
}

static mesh_module *two_layers(mesh_device_mesh *m)
{
    return mesh_nn_sequential({ "up", mesh_nn_linear(m, 3, 5, .seed = 1) }, { "gelu", mesh_nn_gelu() },
                              { "down", mesh_nn_linear(m, 5, 2, .no_bias = true, .seed = 2) });
}

static int names(void *arg)
{
    (void)arg;
    static const char *const want[] = { "net.up.weight", "net.up.bias", "net.down.weight" };
    mesh_module *root = mesh_nn_sequential({ "net", two_layers(line()) });
    const char *name = NULL;
    for (size_t i = 0; i < 3; i++) {
        mesh_dtensor *p = mesh_module_parameter(root, i, &name);
        REQUIRE(p != NULL && strcmp(name, want[i]) == 0);
        REQUIRE(p->requires_grad && p->node == NULL);
    }
    REQUIRE(mesh_module_parameter(root, 3, &name) == NULL);
    REQUIRE(mesh_scope_status(NULL) == MESH_OK);
    REQUIRE(mesh_shape_of(mesh_module_parameter(root, 0, NULL)).dim[0] == 5);
    return 0;
}
START_TEST(parameters_are_named_by_their_path_in_the_order_they_were_added)
{
    ranks_run(1, names, NULL);
}
END_TEST

static int bounds(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line();
    mesh_module *a = mesh_nn_linear(m, 64, 50, .seed = 5), *b = mesh_nn_linear(m, 64, 50, .seed = 5);
    const float *w = mesh_tensor_data(mesh_to_local(mesh_module_parameter(a, 0, NULL)));
    const float *bias = mesh_tensor_data(mesh_to_local(mesh_module_parameter(a, 1, NULL)));
    const float *again = mesh_tensor_data(mesh_to_local(mesh_module_parameter(b, 0, NULL)));
    double least = 1, greatest = -1;
    for (int i = 0; i < 64 * 50; i++) {
        least = (double)w[i] < least ? (double)w[i] : least;
        greatest = (double)w[i] > greatest ? (double)w[i] : greatest;
        REQUIRE(w[i] == again[i]);
    }
    REQUIRE(least >= -0.125 && least < -0.12 && greatest < 0.125 && greatest > 0.12);
    REQUIRE(w[0] != bias[0] && w[1] != bias[1]);
    mesh_module *c = mesh_nn_linear(m, 64, 50);
    REQUIRE(((const float *)mesh_tensor_data(mesh_to_local(mesh_module_parameter(c, 0, NULL))))[0] != w[0]);
    return 0;
}
START_TEST(a_linear_layer_is_drawn_evenly_below_one_over_the_root_of_its_inputs)
{
    ranks_run(1, bounds, NULL);
}
END_TEST

/* The rows of the whole weight that this rank holds after sharding are those of the unsharded layer with that seed. */
static int deferred(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line();
    mesh_module *whole = two_layers(m), *split = two_layers(m);
    REQUIRE(mesh_parallelize_module(split, "tp", { "up", mesh_colwise() }, { "down", mesh_rowwise() }) == 0);
    for (size_t i = 0; i < split->children.n; i++) {
        for (size_t j = 0; j < split->children.at[i].module->parameters.n; j++) {
            REQUIRE(split->children.at[i].module->parameters.at[j].value == NULL); /* nothing made yet */
        }
    }
    for (size_t i = 0; i < 3; i++) {
        mesh_dtensor *a = mesh_module_parameter(whole, i, NULL), *b = mesh_module_parameter(split, i, NULL);
        REQUIRE(mesh_placements_of(b).at[0].kind == MESH_IS_SHARD);
        mesh_tensor *x = mesh_full_tensor(a), *y = mesh_full_tensor(b);
        REQUIRE(x != NULL && y != NULL);
        REQUIRE(memcmp(mesh_tensor_data(x), mesh_tensor_data(y), tensor_bytes(x)) == 0);
    }
    return 0;
}
START_TEST(a_layer_split_before_its_first_use_has_the_values_of_the_whole_one)
{
    ranks_run(4, deferred, NULL);
}
END_TEST

struct counter {
    mesh_module *inner;
    int *n_freed;
};

static mesh_dtensor *forward(void *self, mesh_dtensor *x)
{
    struct counter *c = self;
    return mesh_add(x, mesh_forward(c->inner, x));
}

static void count_free(void *self)
{
    struct counter *c = self;
    (*c->n_freed)++;
}

static mesh_dtensor *forget(void *self, mesh_dtensor *x)
{
    (void)self;
    (void)x;
    return NULL;
}

static int own_classes(void *arg)
{
    static const mesh_module_class residual = { .name = "residual", .forward = forward, .free = count_free };
    static const mesh_module_class broken = { .name = "broken", .forward = forget };
    mesh_device_mesh *m = line();
    int n_freed = 0;
    struct counter self = { .inner = mesh_nn_linear(m, 3, 3), .n_freed = &n_freed };
    mesh_module *block = mesh_module_new(&residual, &self);
    REQUIRE(mesh_module_add(block, "inner", self.inner) == 0);
    mesh_dtensor *gain = mesh_zeros(SHAPE(3), m, MESH_PLACEMENTS(mesh_replicate()));
    REQUIRE(mesh_module_add_parameter(block, "gain", gain) == 0);
    REQUIRE(mesh_module_parameter(block, 0, NULL) == gain && gain->requires_grad); /* own ones first */
    mesh_dtensor *x = mesh_randn(SHAPE(2, 3), m, MESH_PLACEMENTS(mesh_replicate()));
    REQUIRE(mesh_forward(block, x) != NULL);

    mesh_scope *scope = mesh_scope_begin();
    REQUIRE(mesh_forward(mesh_module_new(&broken, NULL), x) == NULL);
    REQUIRE(strstr(mesh_last_error()->message, "broken") != NULL);
    REQUIRE(mesh_scope_end(scope) == MESH_EINVAL);

    REQUIRE(mesh_module_free(block) == NULL);
    REQUIRE(n_freed == 1);
    (void)arg;
    return 0;
}
START_TEST(a_users_own_module_runs_owns_and_is_freed)
{
    ranks_run(1, own_classes, NULL);
}
END_TEST

static int bad_children(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line();
    mesh_module *root = two_layers(m), *other = mesh_nn_gelu();
    struct {
        const char *name;
        mesh_module *module, *child;
        int want;
    } const tries[] = {
        { "up", root, other, MESH_EEXIST },
        { "a.b", root, other, MESH_EINVAL },
        { "", root, other, MESH_EINVAL },
        { "x", root, root, MESH_EINVAL },
        { "x", other, root->children.at[0].module, MESH_ESTATE },
        { "x", root, NULL, MESH_EINVAL },
        { "x", root->children.at[0].module, root, MESH_EINVAL },
    };
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        mesh_scope *scope = mesh_scope_begin();
        REQUIRE(mesh_module_add(tries[i].module, tries[i].name, tries[i].child) == tries[i].want);
        REQUIRE(mesh_scope_end(scope) == tries[i].want);
    }
    /* a child that is freed leaves its parent */
    mesh_module_free(root->children.at[1].module);
    REQUIRE(root->children.n == 2 && strcmp(root->children.at[1].name, "down") == 0);
    return 0;
}
START_TEST(children_need_a_new_name_and_no_other_parent)
{
    ranks_run(1, bad_children, NULL);
}
END_TEST

static int bad_arguments(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line();
    mesh_scope *scope = mesh_scope_begin();
    REQUIRE(mesh_nn_linear(m, 0, 3) == NULL);
    REQUIRE(mesh_scope_end(scope) == MESH_EINVAL);
    scope = mesh_scope_begin();
    mesh_dtensor *pending = mesh_zeros(SHAPE(3), m, MESH_PLACEMENTS(mesh_partial(MESH_SUM)));
    REQUIRE(mesh_module_add_parameter(two_layers(m), "p", pending) == MESH_EINVAL);
    REQUIRE(mesh_scope_end(scope) == MESH_EINVAL);
    scope = mesh_scope_begin();
    REQUIRE(mesh_sgd(mesh_nn_gelu(), .nesterov = true) == NULL);
    REQUIRE(mesh_scope_end(scope) == MESH_EINVAL);
    return 0;
}
START_TEST(bad_arguments_are_refused)
{
    ranks_run(1, bad_arguments, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("module");
    TCase *t = tcase_create("module");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, parameters_are_named_by_their_path_in_the_order_they_were_added);
    tcase_add_test(t, a_linear_layer_is_drawn_evenly_below_one_over_the_root_of_its_inputs);
    tcase_add_test(t, a_layer_split_before_its_first_use_has_the_values_of_the_whole_one);
    tcase_add_test(t, a_users_own_module_runs_owns_and_is_freed);
    tcase_add_test(t, children_need_a_new_name_and_no_other_parent);
    tcase_add_test(t, bad_arguments_are_refused);
    suite_add_tcase(s, t);
    return s;
}
