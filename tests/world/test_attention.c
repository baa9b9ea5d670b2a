/* tests/world/test_attention.c - attention by tiles against the formula, also sharded: values, gradients, layouts.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/util.h"
#include "harness/check_main.h"
#include "harness/ranks.h"

#define ON(...)    MESH_PLACEMENTS(__VA_ARGS__)
#define R          mesh_replicate()
#define S(d)       mesh_shard(d)
#define SHAPE(...) MESH_SHAPE(__VA_ARGS__)

struct setting {
    mesh_shape q, k; /* [batch, heads, rows or places, width]; v is as wide as k */
    bool is_causal;
    int64_t first;
    mesh_dtype dtype;
    double tolerance;
};

static const struct setting settings[] = {
    { .q = { 4, { 2, 4, 5, 8 } }, .k = { 4, { 2, 4, 7, 8 } }, .dtype = MESH_F64, .tolerance = 1e-12 },
    { .q = { 4, { 1, 2, 150, 4 } }, .k = { 4, { 1, 2, 600, 4 } }, .dtype = MESH_F64, .tolerance = 1e-11 },
    { .q = { 4, { 1, 2, 300, 4 } }, .k = { 4, { 1, 2, 300, 4 } }, true, 0, MESH_F64, 1e-11 },
    { .q = { 4, { 2, 8, 66, 4 } }, .k = { 4, { 2, 4, 270, 4 } }, true, 200, MESH_F64, 1e-11 },
    { .q = { 4, { 2, 4, 70, 8 } }, .k = { 4, { 2, 1, 300, 8 } }, true, 3, MESH_F32, 2e-5 },
    { .q = { 4, { 1, 4, 9, 8 } }, .k = { 4, { 1, 2, 9, 8 } }, true, 0, MESH_BF16, 0.05 },
    { .q = { 4, { 2, 6, 9, 8 } }, .k = { 4, { 2, 2, 9, 8 } }, true, 0, MESH_F64, 1e-12 },
};

static mesh_dtensor *input(mesh_device_mesh *m, mesh_shape s, mesh_dtype t, mesh_placements p, uint64_t seed)
{
    mesh_dtensor *x = mesh_cast(mesh_randn(s, m, p, .dtype = MESH_F32, .seed = seed), t);
    return mesh_requires_grad(mesh_detach(mesh_redistribute(x, p)), true);
}

/* -inf where a row does not see a place. */
static mesh_dtensor *mask(mesh_device_mesh *m, const struct setting *c, mesh_placements whole)
{
    int64_t l = c->q.dim[2], s = c->k.dim[2];
    mesh_tensor *t = mesh_tensor_new(SHAPE(l, s), c->dtype == MESH_F64 ? MESH_F64 : MESH_F32);
    for (int64_t i = 0; t != NULL && i < l * s; i++) {
        double v = c->is_causal && i % s > i / s + c->first ? -INFINITY : 0;
        if (c->dtype == MESH_F64) {
            ((double *)mesh_tensor_data(t))[i] = v;
        } else {
            ((float *)mesh_tensor_data(t))[i] = (float)v;
        }
    }
    return mesh_distribute_same(t, m, whole);
}

/* The formula, with each head of k written out for all of q's that see it. */
static mesh_dtensor *plain(const struct setting *c, mesh_dtensor *const *x, mesh_dtensor *seen)
{
    mesh_shape k = c->k, one = SHAPE(k.dim[0], k.dim[1], 1, k.dim[2], k.dim[3]), all = one, heads = c->k;
    all.dim[2] = c->q.dim[1] / k.dim[1];
    heads.dim[1] = c->q.dim[1];
    mesh_dtensor *keys = mesh_reshape(mesh_expand(mesh_reshape(x[1], one), all), heads);
    mesh_dtensor *values = mesh_reshape(mesh_expand(mesh_reshape(x[2], one), all), heads);
    mesh_dtensor *scores = mesh_mul_scalar(mesh_matmul(x[0], mesh_transpose(keys, -2, -1)), 0.3);
    return mesh_matmul(mesh_softmax(mesh_add(scores, seen), -1), values);
}

static int near_values(mesh_dtensor *a, mesh_dtensor *b, double tolerance)
{
    mesh_tensor *got = mesh_full_tensor(mesh_cast(a, MESH_F64)), *want = mesh_full_tensor(mesh_cast(b, MESH_F64));
    REQUIRE(got != NULL && want != NULL);
    mesh_shape s = mesh_tensor_shape(want);
    for (int64_t i = 0; i < s.dim[0] * s.dim[1] * s.dim[2] * s.dim[3]; i++) {
        REQUIRE_NEAR(((double *)mesh_tensor_data(got))[i], ((double *)mesh_tensor_data(want))[i], tolerance);
    }
    return 0;
}

static mesh_placements everywhere(int n)
{
    mesh_placements whole = { .n = n };
    for (int i = 0; i < n; i++) {
        whole.at[i] = R;
    }
    return whole;
}

static bool is_quiet(void)
{
    for (int kind = MESH_COMM_ALL_REDUCE; kind <= MESH_COMM_BARRIER; kind++) {
        if (mesh_comm_count((mesh_comm_kind)kind) != 0) {
            return false;
        }
    }
    return true;
}

/* Inputs that are laid out so, and the same for the formula, whole. */
static void make_inputs(mesh_device_mesh *m, const struct setting *c, const mesh_placements *p, mesh_dtensor **ret_x,
                        mesh_dtensor **ret_whole)
{
    for (int i = 0; i < 3; i++) {
        ret_x[i] = input(m, i == 0 ? c->q : c->k, c->dtype, p[i], (uint64_t)i + 1);
        mesh_dtensor *wide = mesh_detach(mesh_redistribute(ret_x[i], everywhere(p[i].n)));
        wide = mesh_detach(mesh_cast(wide, c->dtype == MESH_F64 ? MESH_F64 : MESH_F32));
        ret_whole[i] = mesh_requires_grad(wide, true);
    }
}

static mesh_dtensor *tiled(const struct setting *c, mesh_dtensor *const *x)
{
    return mesh_scaled_dot_product_attention(x[0], x[1], x[2], .is_causal = c->is_causal, .scale = 0.3,
                                             .first = c->first);
}

static int attend(mesh_device_mesh *m, const struct setting *c, mesh_placements q, mesh_placements k, bool moves)
{
    mesh_scope *scope = mesh_scope_begin();
    mesh_placements p[3] = { q, k, k };
    mesh_dtensor *x[3], *x1[3];
    make_inputs(m, c, p, x, x1);
    mesh_comm_reset();
    mesh_dtensor *y = tiled(c, x);
    REQUIRE(y != NULL && (moves || is_quiet()));
    REQUIRE(moves || mesh_placements_equal(mesh_placements_of(y), q));
    mesh_dtensor *want = plain(c, x1, mask(m, c, everywhere(q.n)));
    REQUIRE_OK(near_values(y, want, c->tolerance));
    REQUIRE(mesh_backward(mesh_sum(mesh_mul(y, y))) == 0);
    REQUIRE(mesh_backward(mesh_sum(mesh_mul(want, want))) == 0);
    for (int i = 0; i < 3; i++) {
        REQUIRE_OK(near_values(mesh_grad(x[i]), mesh_grad(x1[i]), 10 * c->tolerance));
        REQUIRE(mesh_placements_equal(mesh_placements_of(mesh_grad(x[i])), p[i]));
    }
    return mesh_scope_end(scope);
}

static int on_a_line(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(2), MESH_NAMES("tp"));
    for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
        bool is_even = settings[i].k.dim[1] % 2 == 0;
        REQUIRE_OK(attend(m, &settings[i], ON(R), ON(R), false));
        REQUIRE_OK(attend(m, &settings[i], ON(S(0)), ON(S(0)), false));
        REQUIRE_OK(attend(m, &settings[i], ON(S(1)), is_even ? ON(S(1)) : ON(R), false));
        REQUIRE_OK(attend(m, &settings[i], ON(S(2)), ON(R), false));
    }
    return 0;
}

static int on_a_grid(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(2, 2), MESH_NAMES("dp", "tp"));
    REQUIRE_OK(attend(m, &settings[3], ON(S(0), S(1)), ON(S(0), S(1)), false));
    REQUIRE_OK(attend(m, &settings[3], ON(S(1), S(1)), ON(S(1), S(1)), false));
    REQUIRE_OK(attend(m, &settings[3], ON(S(2), S(1)), ON(R, S(1)), false));
    REQUIRE_OK(attend(m, &settings[3], ON(S(2), S(2)), ON(R, R), false));
    REQUIRE_OK(
        attend(m, &settings[6], ON(S(0), S(1)), ON(S(0), S(1)), false)); /* two heads of k, each on one rank of two */
    REQUIRE_OK(attend(m, &settings[6], ON(S(2), S(1)), ON(R, S(1)), false));
    return attend(m, &settings[4], ON(S(1), S(0)), ON(R, S(0)), false);
}

/* --- places of k on different ranks ------------------------------------------------------------------------------- */

static int places_on_a_line(void *arg)
{
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(*(int *)arg), MESH_NAMES("sp"));
    for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
        REQUIRE_OK(attend(m, &settings[i], ON(R), ON(S(2)), true));
        REQUIRE_OK(attend(m, &settings[i], ON(S(2)), ON(S(2)), true));
        REQUIRE_OK(attend(m, &settings[i], ON(S(0)), ON(S(2)), true));
    }
    return 0;
}

static int places_on_a_grid(void *arg)
{
    const int *size = arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(size[0], size[1]), MESH_NAMES("a", "b"));
    for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
        REQUIRE_OK(attend(m, &settings[i], ON(R, R), ON(S(2), S(2)), true));
        REQUIRE_OK(attend(m, &settings[i], ON(S(2), R), ON(R, S(2)), true));
        REQUIRE_OK(attend(m, &settings[i], ON(R, S(2)), ON(S(2), R), true));
        REQUIRE_OK(attend(m, &settings[i], ON(S(0), R), ON(S(0), S(2)), true));
        REQUIRE_OK(attend(m, &settings[i], ON(S(2), S(2)), ON(S(2), S(2)), true));
    }
    return 0;
}

static int places_three_deep(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(2, 2, 2), NULL);
    REQUIRE_OK(attend(m, &settings[0], ON(R, R, R), ON(S(2), S(2), S(2)), true));
    REQUIRE_OK(attend(m, &settings[3], ON(S(0), S(1), R), ON(S(0), S(1), S(2)), true));
    REQUIRE_OK(attend(m, &settings[3], ON(S(2), R, S(1)), ON(R, S(2), S(1)), true));
    return attend(m, &settings[6], ON(S(2), S(0), R), ON(S(2), S(0), S(2)), true);
}

START_TEST(each_rank_attends_to_its_own_places)
{
    for (int n = 2; n <= 8; n += 3) {
        ranks_run(n, places_on_a_line, &n);
    }
}
END_TEST

START_TEST(places_spread_over_several_mesh_dims)
{
    ranks_run(4, places_on_a_grid, (int[]){ 2, 2 });
    ranks_run(6, places_on_a_grid, (int[]){ 3, 2 });
    ranks_run(8, places_three_deep, NULL);
}
END_TEST

/* What stays where it is: many places and few queries do not move the places, few places and many queries do. */
static int what_moves(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(4), NULL);
    const struct setting few = { .q = { 4, { 1, 2, 4, 8 } }, .k = { 4, { 1, 2, 4096, 8 } }, .dtype = MESH_F32 };
    const struct setting many = { .q = { 4, { 1, 8, 4096, 8 } }, .k = { 4, { 1, 1, 4096, 8 } }, .dtype = MESH_F32 };
    mesh_placements split[3] = { ON(S(2)), ON(S(2)), ON(S(2)) }, whole_q[3] = { ON(R), ON(S(2)), ON(S(2)) };
    mesh_dtensor *x[3], *ignored[3];
    make_inputs(m, &few, whole_q, x, ignored);
    mesh_comm_reset();
    mesh_comm_log *log = mesh_comm_log_begin();
    mesh_dtensor *y = tiled(&few, x);
    REQUIRE(log != NULL && mesh_comm_log_end(log) == 0 && mesh_comm_log_size(log) == 2);
    for (size_t i = 0; i < 2; i++) {
        REQUIRE(strcmp(mesh_comm_log_at(log, i)->op, "attention") == 0);
    }
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_GATHER) == 1 && mesh_comm_count(MESH_COMM_ALL_REDUCE) == 1);
    REQUIRE(mesh_comm_bytes(MESH_COMM_ALL_GATHER) <= 3 * 8 * sizeof(float)); /* lse of 2 heads and 4 rows */
    REQUIRE(mesh_backward(mesh_sum(y)) == 0);
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_GATHER) == 1 && mesh_comm_count(MESH_COMM_REDUCE_SCATTER) == 0);
    make_inputs(m, &few, split, x, ignored);
    mesh_comm_reset();
    y = tiled(&few, x);
    REQUIRE(mesh_placements_equal(mesh_placements_of(y), ON(S(2))));
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_GATHER) == 2 && mesh_comm_count(MESH_COMM_REDUCE_SCATTER) == 1);
    make_inputs(m, &many, split, x, ignored);
    mesh_comm_reset();
    y = tiled(&many, x);
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_GATHER) == 2 && mesh_comm_count(MESH_COMM_REDUCE_SCATTER) == 0);
    REQUIRE(mesh_comm_bytes(MESH_COMM_ALL_GATHER) == 2 * 3 * 1024 * 8 * sizeof(float));
    return mesh_placements_equal(mesh_placements_of(y), ON(S(2))) ? 0 : -1;
}

/* Rows that see nothing are 0, as in one process. */
static int no_places(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(3), NULL);
    mesh_dtensor *x[3] = { input(m, SHAPE(4, 3), MESH_F64, ON(R), 1), input(m, SHAPE(0, 3), MESH_F64, ON(S(0)), 2),
                           input(m, SHAPE(0, 2), MESH_F64, ON(S(0)), 3) };
    mesh_dtensor *y = mesh_scaled_dot_product_attention(x[0], x[1], x[2], .is_causal = true);
    REQUIRE(y != NULL && mesh_backward(mesh_sum(y)) == 0);
    REQUIRE_NEAR(mesh_item(mesh_norm(y, 2)), 0, 0);
    REQUIRE_NEAR(mesh_item(mesh_norm(mesh_grad(x[0]), 2)), 0, 0);
    return mesh_grad(x[1]) != NULL && mesh_grad(x[2]) != NULL ? 0 : -1;
}

START_TEST(no_places_are_no_trouble)
{
    ranks_run(3, no_places, NULL);
}
END_TEST

START_TEST(whichever_is_fewer_bytes_moves)
{
    ranks_run(4, what_moves, NULL);
}
END_TEST

START_TEST(attention_by_tiles_is_the_formula)
{
    ranks_run(2, on_a_line, NULL);
}
END_TEST

START_TEST(attention_on_two_mesh_dims)
{
    ranks_run(4, on_a_grid, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("attention");
    TCase *t = tcase_create("attention");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, attention_by_tiles_is_the_formula);
    tcase_add_test(t, attention_on_two_mesh_dims);
    tcase_add_test(t, each_rank_attends_to_its_own_places);
    tcase_add_test(t, places_spread_over_several_mesh_dims);
    tcase_add_test(t, whichever_is_fewer_bytes_moves);
    tcase_add_test(t, no_places_are_no_trouble);
    suite_add_tcase(s, t);
    return s;
}
