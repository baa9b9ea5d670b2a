/* tests/world/test_windows.c - operators that look at few places along a split dim: values, layouts, what is sent.
 *
 * Every operator runs on every nesting of splits, also uneven and empty ones, and on the whole tensor in one process.
 * The elements are their own places, so each rank knows which of its results it did not hold: these are sent, each
 * once, and nothing else is.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/util.h"
#include "harness/check_main.h"
#include "harness/ranks.h"

#define ON(...)    MESH_PLACEMENTS(__VA_ARGS__)
#define R          mesh_replicate()
#define S(d)       mesh_shard(d)
#define SHAPE(...) MESH_SHAPE(__VA_ARGS__)

static int64_t numel(mesh_shape s)
{
    int64_t n = 1;
    for (int d = 0; d < s.ndim; d++) {
        n *= s.dim[d];
    }
    return n;
}

/* 1, 2, 3, ...: padding is 0. */
static mesh_dtensor *places(mesh_device_mesh *m, mesh_shape s, mesh_placements p)
{
    mesh_tensor *t = mesh_tensor_new(s, MESH_F32);
    for (int64_t i = 0; t != NULL && i < numel(s); i++) {
        ((float *)mesh_tensor_data(t))[i] = (float)(i + 1);
    }
    return mesh_distribute_same(t, m, p);
}

typedef mesh_dtensor *(*arranging)(mesh_dtensor *x);

static mesh_dtensor *roll(mesh_dtensor *x)
{
    return mesh_roll(x, 3, 0);
}
static mesh_dtensor *roll_back(mesh_dtensor *x)
{
    return mesh_roll(x, -1, 0);
}
static mesh_dtensor *flip(mesh_dtensor *x)
{
    return mesh_flip(x, SHAPE(0));
}
static mesh_dtensor *flip_all(mesh_dtensor *x)
{
    return mesh_flip(x, SHAPE(0, 1));
}
static mesh_dtensor *narrow(mesh_dtensor *x)
{
    return mesh_narrow(x, 0, 2, 6);
}
static mesh_dtensor *pad(mesh_dtensor *x)
{
    return mesh_pad(x, SHAPE(0, 0, 2, 1), 0);
}
static mesh_dtensor *cat_with_itself(mesh_dtensor *x)
{
    mesh_dtensor *both[2] = { x, x };
    return mesh_cat(both, 2, 0);
}
static mesh_dtensor *repeat(mesh_dtensor *x)
{
    return mesh_repeat(x, SHAPE(3, 1));
}
static mesh_dtensor *repeat_as_stack(mesh_dtensor *x)
{
    return mesh_repeat(x, SHAPE(1, 2, 1));
}
static mesh_dtensor *second_piece(mesh_dtensor *x)
{
    mesh_dtensor *pieces[4];
    return mesh_split(x, 7, 0, pieces, 4) > 1 ? pieces[1] : NULL;
}
static const arranging arrangings[] = { roll, roll_back,       flip,   flip_all,        narrow,
                                        pad,  cat_with_itself, repeat, repeat_as_stack, second_piece };

static bool holds(mesh_dtensor *x, float v)
{
    mesh_tensor *t = mesh_to_local(x);
    for (int64_t i = 0; i < numel(mesh_tensor_shape(t)); i++) {
        if (memcmp(&((float *)mesh_tensor_data(t))[i], &v, sizeof v) == 0) {
            return true;
        }
    }
    return false;
}

static double n_missed(mesh_dtensor *x, mesh_dtensor *y)
{
    mesh_tensor *t = mesh_to_local(y);
    double n = 0;
    for (int64_t i = 0; i < numel(mesh_tensor_shape(t)); i++) {
        float v = ((float *)mesh_tensor_data(t))[i];
        n += v > 0 && !holds(x, v);
    }
    return n;
}

static int same_values(mesh_tensor *a, mesh_tensor *b)
{
    REQUIRE(a != NULL && b != NULL && numel(mesh_tensor_shape(a)) == numel(mesh_tensor_shape(b)));
    REQUIRE(memcmp(mesh_tensor_data(a), mesh_tensor_data(b), (size_t)numel(mesh_tensor_shape(a)) * sizeof(float)) == 0);
    return 0;
}

static bool splits_alike(mesh_placements a, mesh_placements b)
{
    for (int m = 0; m < a.n; m++) {
        if (a.at[m].kind != b.at[m].kind) {
            return false;
        }
    }
    return true;
}

static int arrange(mesh_device_mesh *m, mesh_shape s, mesh_placements p, size_t which)
{
    mesh_scope *scope = mesh_scope_begin();
    mesh_placements whole = p;
    for (int i = 0; i < p.n; i++) {
        whole.at[i] = R;
    }
    mesh_dtensor *x = places(m, s, p), *alone = places(m, s, whole);
    mesh_tensor *want = mesh_to_local(arrangings[which](alone));
    mesh_comm_reset();
    mesh_dtensor *y = arrangings[which](x);
    REQUIRE(y != NULL && splits_alike(mesh_placements_of(y), p));
    double traffic[2] = { (double)mesh_comm_bytes(MESH_COMM_ALL_TO_ALL) / (double)sizeof(float), n_missed(x, y) };
    for (int kind = MESH_COMM_ALL_REDUCE; kind <= MESH_COMM_BARRIER; kind++) {
        REQUIRE(kind == MESH_COMM_ALL_TO_ALL || mesh_comm_count((mesh_comm_kind)kind) == 0);
    }
    REQUIRE(mesh_all_reduce(traffic, 2, MESH_F64, MESH_SUM, mesh_world()) == 0);
    if (arrangings[which] != flip_all && arrangings[which] != second_piece) { /* two steps; other pieces */
        REQUIRE_NEAR(traffic[0], traffic[1], 0);
    }
    REQUIRE_OK(same_values(mesh_full_tensor(y), want));
    return mesh_scope_end(scope);
}

static int on_a_line(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(4), MESH_NAMES("a"));
    for (size_t k = 0; k < ARRAY_SIZE(arrangings); k++) {
        REQUIRE_OK(arrange(m, SHAPE(9, 3), ON(S(0)), k));
        REQUIRE_OK(arrange(m, SHAPE(13, 2), ON(S(0)), k));
    }
    return 0;
}

static int nested(void *arg)
{
    const int *size = arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(size[0], size[1]), MESH_NAMES("a", "b"));
    for (size_t k = 0; k < ARRAY_SIZE(arrangings); k++) {
        REQUIRE_OK(arrange(m, SHAPE(9, 3), ON(S(0), S(0)), k));
        REQUIRE_OK(arrange(m, SHAPE(16, 2), ON(S(0), S(0)), k));
        REQUIRE_OK(arrange(m, SHAPE(8, 4), ON(S(0), R), k));
        REQUIRE_OK(arrange(m, SHAPE(8, 4), ON(R, S(0)), k));
        REQUIRE_OK(arrange(m, SHAPE(8, 4), ON(S(1), S(0)), k));
    }
    return 0;
}

static int three_deep(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(2, 2, 2), MESH_NAMES("a", "b", "c"));
    for (size_t k = 0; k < ARRAY_SIZE(arrangings); k++) {
        REQUIRE_OK(arrange(m, SHAPE(19, 2), ON(S(0), S(0), S(0)), k));
        REQUIRE_OK(arrange(m, SHAPE(9, 2), ON(S(0), R, S(0)), k));
    }
    return 0;
}

START_TEST(only_what_changes_its_rank_is_sent)
{
    ranks_run(4, on_a_line, NULL);
}
END_TEST

START_TEST(a_dim_that_several_mesh_dims_split_is_not_gathered)
{
    ranks_run(4, nested, (int[]){ 2, 2 });
    ranks_run(6, nested, (int[]){ 2, 3 });
    ranks_run(8, three_deep, NULL);
}
END_TEST

/* Of unlike splits the result has all; what one of them lacks it takes from the rank beside it. */
static int joined(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(2, 2), MESH_NAMES("a", "b"));
    mesh_dtensor *x[3] = { places(m, SHAPE(5, 2), ON(S(0), R)), places(m, SHAPE(3, 2), ON(R, S(0))),
                           places(m, SHAPE(4, 2), ON(S(0), S(0))) };
    mesh_dtensor *all[3] = { places(m, SHAPE(5, 2), ON(R, R)), places(m, SHAPE(3, 2), ON(R, R)),
                             places(m, SHAPE(4, 2), ON(R, R)) };
    mesh_comm_reset();
    mesh_dtensor *y = mesh_cat(x, 3, 0);
    REQUIRE(y != NULL && mesh_placements_equal(mesh_placements_of(y), ON(S(0), S(0))));
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_GATHER) == 0 && mesh_comm_count(MESH_COMM_ALL_TO_ALL) == 3);
    return same_values(mesh_full_tensor(y), mesh_to_local(mesh_cat(all, 3, 0)));
}

START_TEST(joining_what_different_mesh_dims_split)
{
    ranks_run(4, joined, NULL);
}
END_TEST

/* y = weight x: the gradient of what was moved comes home by the same exchange the other way. */
static int gradients(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(2, 2), MESH_NAMES("a", "b"));
    mesh_placements p = ON(S(0), S(0)), whole = ON(R, R);
    for (size_t k = 0; k < ARRAY_SIZE(arrangings); k++) {
        mesh_scope *scope = mesh_scope_begin();
        mesh_dtensor *x = mesh_requires_grad(places(m, SHAPE(9, 4), p), true);
        mesh_dtensor *alone = mesh_requires_grad(places(m, SHAPE(9, 4), whole), true);
        mesh_dtensor *y = arrangings[k](x), *want = arrangings[k](alone);
        REQUIRE(y != NULL && want != NULL);
        mesh_backward(mesh_sum(mesh_mul(y, mesh_mul(y, y))));
        mesh_backward(mesh_sum(mesh_mul(want, mesh_mul(want, want))));
        REQUIRE(mesh_scope_status(NULL) == 0);
        REQUIRE(mesh_placements_equal(mesh_placements_of(mesh_grad(x)), p));
        REQUIRE_OK(same_values(mesh_full_tensor(mesh_grad(x)), mesh_to_local(mesh_grad(alone))));
        REQUIRE_OK(mesh_scope_end(scope));
    }
    return 0;
}

START_TEST(gradients_go_back_the_way_that_values_came)
{
    ranks_run(4, gradients, NULL);
}
END_TEST

/* --- convolution over split rows ---------------------------------------------------------------------------------- */

static int near_values(mesh_tensor *a, mesh_tensor *b)
{
    REQUIRE(a != NULL && b != NULL && numel(mesh_tensor_shape(a)) == numel(mesh_tensor_shape(b)));
    for (int64_t i = 0; i < numel(mesh_tensor_shape(a)); i++) {
        REQUIRE_NEAR(((double *)mesh_tensor_data(a))[i], ((double *)mesh_tensor_data(b))[i], 1e-12);
    }
    return 0;
}

static mesh_dtensor *randn(mesh_device_mesh *m, mesh_shape s, mesh_placements p, uint64_t seed)
{
    return mesh_requires_grad(mesh_randn(s, m, p, .dtype = MESH_F64, .seed = seed), true);
}

struct convolution {
    mesh_shape x, weight;
    mesh_conv2d_options options;
};

static const struct convolution convolutions[] = {
    { { 4, { 2, 4, 11, 6 } }, { 4, { 2, 4, 3, 2 } }, { .padding = { 1, 1 } } },
    { { 4, { 2, 4, 11, 6 } }, { 4, { 2, 4, 3, 2 } }, { .stride = { 2, 1 }, .padding = { 0, 2 } } },
    { { 4, { 2, 4, 11, 6 } }, { 4, { 2, 2, 3, 2 } }, { .stride = { 3, 2 }, .padding = { 2, 0 }, .groups = 2 } },
    { { 4, { 2, 4, 11, 6 } }, { 4, { 2, 4, 3, 2 } }, { .dilation = { 3, 1 }, .padding = { 2, 1 } } },
    /* places that nobody looks at, ranks without rows or columns, more padding than image, groups of one channel */
    { { 4, { 1, 4, 9, 10 } }, { 4, { 4, 4, 1, 2 } }, { .stride = { 3, 4 } } },
    { { 4, { 2, 4, 3, 2 } }, { 4, { 4, 1, 2, 2 } }, { .padding = { 3, 2 }, .dilation = { 1, 2 }, .groups = 4 } },
    { { 4, { 2, 4, 5, 1 } }, { 4, { 8, 1, 5, 1 } }, { .padding = { 2, 0 }, .stride = { 5, 1 }, .groups = 4 } },
};

static mesh_placements everywhere(int n)
{
    mesh_placements whole = { .n = n };
    for (int i = 0; i < n; i++) {
        whole.at[i] = R;
    }
    return whole;
}

struct laid_out {
    mesh_placements x, weight, y;
};

/* Values and gradients, without gathering images. */
static int convolve_split(mesh_device_mesh *m, const struct convolution *c, const struct laid_out *on)
{
    mesh_scope *scope = mesh_scope_begin();
    mesh_placements whole = everywhere(on->x.n);
    mesh_shape n = SHAPE(c->weight.dim[0]);
    const mesh_conv2d_options *o = &c->options;
    mesh_dtensor *x = randn(m, c->x, on->x, 1), *w = randn(m, c->weight, on->weight, 2), *b = randn(m, n, whole, 3);
    mesh_dtensor *x1 = randn(m, c->x, whole, 1), *w1 = randn(m, c->weight, whole, 2), *b1 = randn(m, n, whole, 3);
    mesh_comm_reset();
    mesh_dtensor *y = mesh_conv2d_opt(x, w, b, o), *want = mesh_conv2d_opt(x1, w1, b1, o);
    REQUIRE(y != NULL && want != NULL && mesh_placements_equal(mesh_placements_of(y), on->y));
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_GATHER) == 0);
    REQUIRE_OK(near_values(mesh_full_tensor(y), mesh_to_local(want)));
    mesh_comm_reset();
    mesh_backward(mesh_sum(mesh_mul(y, y)));
    REQUIRE(on->y.at[0].kind == MESH_IS_PARTIAL || /* else no images */
            mesh_comm_bytes(MESH_COMM_ALL_GATHER) < (uint64_t)numel(c->weight) * sizeof(double));
    mesh_backward(mesh_sum(mesh_mul(want, want)));
    REQUIRE(mesh_placements_equal(mesh_placements_of(mesh_grad(x)), on->x));
    REQUIRE_OK(near_values(mesh_full_tensor(mesh_grad(x)), mesh_to_local(mesh_grad(x1))));
    REQUIRE_OK(near_values(mesh_full_tensor(mesh_grad(w)), mesh_to_local(mesh_grad(w1))));
    REQUIRE_OK(near_values(mesh_full_tensor(mesh_grad(b)), mesh_to_local(mesh_grad(b1))));
    return mesh_scope_end(scope);
}

/* The result as the images, the weight everywhere. */
static int convolve(mesh_device_mesh *m, mesh_placements p, size_t i)
{
    return convolve_split(m, &convolutions[i], &(struct laid_out){ p, everywhere(p.n), p });
}

static int halos(void *arg)
{
    const int *size = arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(size[0], size[1]), MESH_NAMES("a", "b"));
    for (size_t i = 0; i < ARRAY_SIZE(convolutions); i++) {
        REQUIRE_OK(convolve(m, ON(S(2), S(2)), i));
        REQUIRE_OK(convolve(m, ON(S(0), S(2)), i));
        REQUIRE_OK(convolve(m, ON(S(3), R), i));
        REQUIRE_OK(convolve(m, ON(S(3), S(0)), i));
        REQUIRE_OK(convolve(m, ON(S(2), S(3)), i));
        REQUIRE_OK(convolve(m, ON(S(3), S(2)), i));
    }
    return 0;
}

static int halos_three_deep(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(2, 2, 2), NULL);
    for (size_t i = 0; i < ARRAY_SIZE(convolutions); i++) {
        REQUIRE_OK(convolve(m, ON(S(2), S(3), S(2)), i));
        REQUIRE_OK(convolve(m, ON(S(3), S(3), S(2)), i));
        REQUIRE_OK(convolve(m, ON(S(3), S(0), S(2)), i));
    }
    return 0;
}

START_TEST(a_convolution_fetches_the_rows_beyond_its_own)
{
    ranks_run(4, halos, (int[]){ 2, 2 });
    ranks_run(6, halos, (int[]){ 3, 2 });
    ranks_run(8, halos_three_deep, NULL);
}
END_TEST

/* Channels go by the rules on the mesh dims that do not split places. */
static int beside_channels(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(2, 2), NULL);
    const struct laid_out made = { ON(S(2), R), ON(R, S(0)), ON(S(2), S(1)) };
    const struct laid_out summed = { ON(S(1), S(3)), ON(S(1), R), ON(mesh_partial(MESH_SUM), S(3)) };
    const struct laid_out grouped = { ON(S(1), S(2)), ON(S(0), R), ON(S(1), S(2)) };
    for (size_t i = 0; i < ARRAY_SIZE(convolutions); i++) {
        bool is_grouped = convolutions[i].options.groups > 1;
        REQUIRE_OK(convolve_split(m, &convolutions[i], is_grouped ? &grouped : &made));
        if (!is_grouped) {
            REQUIRE_OK(convolve_split(m, &convolutions[i], &summed));
        }
    }
    return 0;
}

static int beside_channels_three_deep(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(2, 2, 2), NULL);
    const struct laid_out made = { ON(S(3), R, S(2)), ON(R, S(0), R), ON(S(3), S(1), S(2)) };
    const struct laid_out grouped = { ON(S(2), S(1), S(3)), ON(R, S(0), R), ON(S(2), S(1), S(3)) };
    for (size_t i = 0; i < ARRAY_SIZE(convolutions); i++) {
        bool is_grouped = convolutions[i].options.groups > 1;
        REQUIRE_OK(convolve_split(m, &convolutions[i], is_grouped ? &grouped : &made));
    }
    return 0;
}

/* A strided shard of the batch stays (of one group), one of rows or columns becomes a plain one. */
static int strided(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(2, 2), NULL);
    const mesh_placement rows = mesh_strided_shard(2, 2), columns = mesh_strided_shard(3, 3);
    const struct laid_out cases[] = {
        { ON(rows, S(2)), ON(R, R), ON(S(2), S(2)) },
        { ON(columns, R), ON(R, R), ON(S(3), R) },
        { ON(S(2), columns), ON(R, R), ON(S(2), S(3)) },
        { ON(mesh_strided_shard(0, 2), S(3)), ON(R, R), ON(mesh_strided_shard(0, 2), S(3)) },
    };
    for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
        for (size_t i = 0; i < 2; i++) {
            REQUIRE_OK(convolve_split(m, &convolutions[i], &cases[k]));
        }
    }
    return 0;
}

START_TEST(strided_shards_of_images)
{
    ranks_run(4, strided, NULL);
}
END_TEST

START_TEST(rows_are_split_beside_channels)
{
    ranks_run(4, beside_channels, NULL);
    ranks_run(8, beside_channels_three_deep, NULL);
}
END_TEST

/* Dim 1, of one column, leaves half of the ranks nothing; they take part in the calls of the others all the same. */
static int beside_nothing(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(2, 2, 2), NULL);
    const arranging all[] = { roll, roll_back, flip, narrow, pad };
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        mesh_dtensor *want = all[i](places(m, SHAPE(9, 1, 4), ON(R, R, R)));
        mesh_dtensor *first = all[i](places(m, SHAPE(9, 1, 4), ON(S(0), S(1), S(0))));
        mesh_dtensor *last = all[i](places(m, SHAPE(9, 1, 4), ON(S(1), S(0), S(0))));
        REQUIRE(mesh_equal(first, want) && mesh_equal(last, want));
    }
    return 0;
}

START_TEST(ranks_that_another_dim_leaves_empty_take_part)
{
    ranks_run(8, beside_nothing, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("windows");
    TCase *t = tcase_create("windows");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, only_what_changes_its_rank_is_sent);
    tcase_add_test(t, a_dim_that_several_mesh_dims_split_is_not_gathered);
    tcase_add_test(t, joining_what_different_mesh_dims_split);
    tcase_add_test(t, gradients_go_back_the_way_that_values_came);
    tcase_add_test(t, a_convolution_fetches_the_rows_beyond_its_own);
    tcase_add_test(t, rows_are_split_beside_channels);
    tcase_add_test(t, strided_shards_of_images);
    tcase_add_test(t, ranks_that_another_dim_leaves_empty_take_part);
    suite_add_tcase(s, t);
    return s;
}
