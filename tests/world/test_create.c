/* tests/world/test_create.c - making tensors: spaced numbers, like others, by callback, from a chosen rank, placed by
 * name.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/shorthand.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "harness/check_main.h"
#include "harness/ranks.h"

#define ON(...) MESH_PLACEMENTS(__VA_ARGS__)

static int ends_with(mesh_scope *s, int status, const char *says)
{
    int r = mesh_scope_end(s);
    if (r != status || strstr(mesh_last_error()->message, says) == NULL) {
        return ranks_complain(__FILE__, __LINE__, "%d \"%s\" is not %d with \"%s\"", r, mesh_last_error()->message,
                              status, says);
    }
    return 0;
}

static mesh_device_mesh *line_of(int n)
{
    return mesh_init_device_mesh("cpu", MESH_SHAPE(n), MESH_NAMES("tp"));
}

/* The elements of an f64 tensor; n is how many there must be. */
static int holds(mesh_tensor *t, int64_t n, const double *values)
{
    REQUIRE(t != NULL && mesh_tensor_shape(t).ndim == 1 && mesh_tensor_shape(t).dim[0] == n);
    for (int64_t i = 0; i < n; i++) {
        REQUIRE_NEAR(((double *)mesh_tensor_data(t))[i], values[i], 0);
    }
    return 0;
}

/* 159 linsp */
static int spaced(void *arg)
{
    (void)arg;
    int me = mesh_rank();
    mesh_device_mesh *m = line_of(4);
    mesh_placements rows = ON(Shard(0));
    const double lin[5] = { 0, .25, .5, .75, 1 }, log[4] = { 1, 10, 100, 1000 }, range[3] = { 2, 1.5, 1 };
    const int64_t width[4] = { 2, 2, 1, 0 };
    REQUIRE_OK(holds(mesh_to_local(mesh_linspace(0, 1, 5, m, rows, .dtype = MESH_F64)), width[me], lin + 2 * me));
    REQUIRE_OK(holds(mesh_to_local(mesh_logspace(0, 3, 4, m, rows, .dtype = MESH_F64)), 1, log + me));
    REQUIRE_OK(holds(mesh_full_tensor(mesh_linspace(3, 9, 1, m, rows, .dtype = MESH_F64)), 1, (double[]){ 3 }));
    REQUIRE_OK(holds(mesh_full_tensor(mesh_linspace(3, 9, 0, m, rows, .dtype = MESH_F64)), 0, NULL));
    REQUIRE_OK(holds(mesh_full_tensor(mesh_arange(2, 0.9, -0.5, m, rows, .dtype = MESH_F64)), 3, range));
    REQUIRE_OK(holds(mesh_full_tensor(mesh_logspace(0, 2, 3, m, ON(Partial(MESH_SUM)), .dtype = MESH_F64, .base = 2)),
                     3, (double[]){ 1, 2, 4 }));
    mesh_tensor *third = mesh_full_tensor(mesh_linspace(0, 1.0 / 3, 1001, m, rows, .dtype = MESH_F64));
    mesh_tensor *cut = mesh_full_tensor(mesh_linspace(0, 10, 5, m, rows, .dtype = MESH_I32));
    REQUIRE_NEAR(((double *)mesh_tensor_data(third))[1000], 1.0 / 3, 0);
    REQUIRE(((int *)mesh_tensor_data(cut))[1] == 2 && ((int *)mesh_tensor_data(cut))[3] == 7);
    mesh_scope *s = mesh_scope_begin();
    REQUIRE(mesh_linspace(0, 1, -1, m, rows) == NULL);
    REQUIRE_OK(ends_with(s, MESH_EINVAL, "linspace: -1 steps"));
    s = mesh_scope_begin();
    REQUIRE(mesh_arange(0, 3, -1, m, rows) == NULL);
    REQUIRE_OK(ends_with(s, MESH_EINVAL, "leads away from the end"));
    s = mesh_scope_begin();
    REQUIRE(mesh_arange(0, 3, 0, m, rows) == NULL);
    REQUIRE_OK(ends_with(s, MESH_EINVAL, "not 0"));
    s = mesh_scope_begin();
    REQUIRE(mesh_logspace(0, 3, 4, m, rows, .dtype = MESH_U8) == NULL);
    REQUIRE_OK(ends_with(s, MESH_EINVAL, "a tensor of u8 cannot hold 1000"));
    s = mesh_scope_begin();
    REQUIRE(mesh_full_like(mesh_zeros(Shape(2), m, rows), 1000, .dtype = MESH_U8) == NULL);
    return ends_with(s, MESH_EINVAL, "full_like: a tensor of u8 cannot hold 1000");
}

START_TEST(spaced_numbers_are_a_function_of_the_global_index_and_end_exactly)
{
    ranks_run(4, spaced, NULL);
}
END_TEST

/* 160 full, and tensors like another */
static int constant(void *arg)
{
    (void)arg;
    int me = mesh_rank();
    mesh_device_mesh *m = line_of(4);
    mesh_dtensor *x = mesh_full(MESH_SHAPE(2, 3), 7.0, m, ON(Shard(1)));
    mesh_tensor *local = mesh_to_local(x);
    REQUIRE(local != NULL && mesh_tensor_shape(local).dim[1] == (me < 3 ? 1 : 0));
    REQUIRE(me == 3 || fabsf(((float *)mesh_tensor_data(local))[1] - 7) < 1e-6F);
    REQUIRE_NEAR(mesh_item(mesh_zeros(MESH_SCALAR_SHAPE, m, ON(Replicate()))), 0, 0);
    mesh_tensor *ones = mesh_to_local(mesh_ones(MESH_SHAPE(8), m, ON(Shard(0)), .dtype = MESH_F64));
    REQUIRE_OK(holds(ones, 2, (double[]){ 1, 1 }));
    mesh_dtensor *like = mesh_full_like(x, 2.5, .dtype = MESH_F64);
    REQUIRE(like != NULL && mesh_dtype_of(like) == MESH_F64 && mesh_shape_of(like).dim[1] == 3);
    REQUIRE(mesh_placements_equal(mesh_placements_of(like), ON(Shard(1))));
    REQUIRE_NEAR(mesh_item(mesh_sum(like)), 15, 0);
    mesh_dtensor *partial = mesh_redistribute(x, ON(Partial(MESH_MAX)));
    REQUIRE(mesh_placements_equal(mesh_placements_of(mesh_ones_like(partial)), ON(Replicate())));
    REQUIRE_NEAR(mesh_item(mesh_sum(mesh_zeros_like(x))), 0, 0);
    REQUIRE(mesh_dtype_of(mesh_empty_like(like)) == MESH_F64);
    mesh_tensor *a = mesh_full_tensor(mesh_rand_like(x, .seed = 3));
    mesh_tensor *b = mesh_full_tensor(mesh_rand(MESH_SHAPE(2, 3), m, ON(Replicate()), .seed = 3));
    REQUIRE(a != NULL && b != NULL && memcmp(mesh_tensor_data(a), mesh_tensor_data(b), 24) == 0);
    return mesh_randn_like(x, .requires_grad = true) != NULL ? 0 : -1;
}

START_TEST(constants_and_likenesses_take_only_their_part)
{
    ranks_run(4, constant, NULL);
}
END_TEST

static int write_part(void *data, mesh_shape offset, mesh_shape extent, void *arg)
{
    int *n_calls = arg;
    ++*n_calls;
    for (int64_t i = 0; i < extent.dim[0]; i++) {
        for (int64_t j = 0; j < extent.dim[1]; j++) {
            ((float *)data)[i * extent.dim[1] + j] = (float)(10 * (offset.dim[0] + i) + offset.dim[1] + j);
        }
    }
    return 0;
}

static int refuse_part(void *data, mesh_shape offset, mesh_shape extent, void *arg)
{
    (void)data;
    (void)extent;
    (void)arg;
    return offset.dim[0] == 2 ? MESH_EIO : 0;
}

static int by_callback(void *arg)
{
    (void)arg;
    int me = mesh_rank();
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(2, 2), MESH_NAMES("dp", "tp"));
    const mesh_placements layouts[] = { ON(Shard(0), Shard(1)), ON(Shard(0), Shard(0)), ON(Replicate(), Shard(0)),
                                        ON(Partial(MESH_SUM), Shard(1)), ON(Partial(MESH_AVG), Replicate()) };
    for (size_t k = 0; k < ARRAY_SIZE(layouts); k++) {
        int n_calls = 0;
        mesh_dtensor *x = mesh_make_from_callback(MESH_SHAPE(3, 3), m, layouts[k], write_part, &n_calls);
        mesh_tensor *full = mesh_full_tensor(x);
        REQUIRE(full != NULL);
        REQUIRE(n_calls == (k == 3 ? me < 2 : mesh_tensor_shape(mesh_to_local(x)).dim[0] > 0));
        for (int i = 0; i < 9; i++) {
            REQUIRE_NEAR((double)((float *)mesh_tensor_data(full))[i], 10 * (i / 3) + i % 3, 0);
        }
    }
    return 0;
}

START_TEST(a_callback_makes_just_the_box_that_a_rank_holds)
{
    ranks_run(4, by_callback, NULL);
}
END_TEST

static int callback_fails(void *arg)
{
    (void)arg;
    int me = mesh_rank();
    mesh_device_mesh *m = line_of(2);
    mesh_scope *s = mesh_scope_begin();
    mesh_dtensor *x = mesh_make_from_callback(MESH_SHAPE(4), m, ON(Shard(0)), refuse_part, NULL);
    (void)mesh_full_tensor(x);
    return ends_with(s, me == 1 ? MESH_EIO : MESH_EABORTED, "the callback returned");
}

START_TEST(a_callback_that_fails_on_one_rank_fails_on_all)
{
    ranks_run(2, callback_fails, NULL);
}
END_TEST

static int from_source(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(2, 2), NULL);
    mesh_tensor *t = mesh_tensor_new(MESH_SHAPE(5), MESH_F64);
    for (int i = 0; i < 5; i++) {
        ((double *)mesh_tensor_data(t))[i] = 10 * mesh_rank() + i;
    }
    const mesh_placement each[] = { Replicate(), Shard(0), Partial(MESH_SUM), Partial(MESH_AVG) };
    for (int a = 0; a < 4; a++) {
        for (int b = 0; b < 4; b++) {
            mesh_dtensor *x = mesh_distribute_tensor_from(t, m, ON(each[a], each[b]), 1);
            REQUIRE_OK(holds(mesh_full_tensor(x), 5, (double[]){ 30, 31, 32, 33, 34 }));
        }
    }
    mesh_scope *s = mesh_scope_begin();
    REQUIRE(mesh_distribute_tensor_from(t, m, ON(each[0], each[0]), 2) == NULL);
    REQUIRE_OK(ends_with(s, MESH_EINVAL, "source 2 is no coordinate of mesh dim 0: 0..1"));
    s = mesh_scope_begin();
    REQUIRE(mesh_distribute_tensor_from(t, m, ON(each[0], each[0]), -1) == NULL);
    return ends_with(s, MESH_EINVAL, "is no coordinate");
}

START_TEST(the_data_of_the_chosen_source_win)
{
    ranks_run(4, from_source, NULL);
}
END_TEST

static int named(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(2, 1, 2), MESH_NAMES("dp", "cp", "tp"));
    REQUIRE(mesh_placements_equal(Named(m, { "tp", Shard(0) }), ON(Replicate(), Replicate(), Shard(0))));
    REQUIRE(mesh_placements_equal(Named(m, { "tp", Shard(-1) }, { "dp", Partial(MESH_MAX) }),
                                  ON(Partial(MESH_MAX), Replicate(), Shard(-1))));
    REQUIRE(mesh_placements_equal(mesh_placements_named(m, NULL), ON(Replicate(), Replicate(), Replicate())));
    mesh_dtensor *x = mesh_ones(MESH_SHAPE(4, 6), m, Named(m, { "tp", Shard(-1) }, { "0", Shard(0) }));
    REQUIRE(x != NULL && mesh_tensor_shape(mesh_to_local(x)).dim[0] == 2);
    REQUIRE(mesh_tensor_shape(mesh_to_local(x)).dim[1] == 3);
    mesh_scope *s = mesh_scope_begin();
    REQUIRE(mesh_ones(MESH_SHAPE(4), m, Named(m, { "pp", Shard(0) })) == NULL);
    REQUIRE_OK(ends_with(s, MESH_ENOTFOUND, "no dimension \"pp\": it has dp, cp, tp"));
    s = mesh_scope_begin();
    REQUIRE(Named(m, { "tp", Shard(0) }, { "-1", Shard(1) }).n == 0);
    return ends_with(s, MESH_EINVAL, "\"-1\" is placed twice");
}

START_TEST(placements_go_by_the_names_of_dims)
{
    ranks_run(4, named, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("create");
    TCase *t = tcase_create("create");
    tcase_add_test(t, spaced_numbers_are_a_function_of_the_global_index_and_end_exactly);
    tcase_add_test(t, constants_and_likenesses_take_only_their_part);
    tcase_add_test(t, a_callback_makes_just_the_box_that_a_rank_holds);
    tcase_add_test(t, a_callback_that_fails_on_one_rank_fails_on_all);
    tcase_add_test(t, the_data_of_the_chosen_source_win);
    tcase_add_test(t, placements_go_by_the_names_of_dims);
    suite_add_tcase(s, t);
    return s;
}
