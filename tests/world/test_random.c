/* tests/world/test_random.c - random tensors are the same bits on one process and on any mesh.  Ids are those of the
 * case list.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
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

/* Draws of a session, one after another: what each gives on one process is the truth for all. */
enum {
    DRAW_RAND,
    DRAW_RANDN,
    DRAW_UNIFORM,
    DRAW_NORMAL,
    DRAW_DROPOUT,
    DRAW_F64,
    DRAW_F16,
    DRAW_BF16,
    DRAW_DROP_BF16,
    DRAW_WHOLE,
    DRAW_RANDINT,
    DRAW_RANDINT_WIDE,
    DRAW_RANDINT_LIKE,
    N_DRAWS
};
#define ELEMENTS 35
static double truth[N_DRAWS][ELEMENTS];

static const mesh_shape SHAPE = { .ndim = 2, .dim = { 5, 7 } };

/* Ones, laid out anew on the way: every list of placements that is drawn on has been redistributed to. */
static mesh_dtensor *ones(mesh_device_mesh *m, mesh_placements p)
{
    mesh_placements before = p;
    for (int i = 0; i < p.n; i++) {
        before.at[i] = mesh_shard(1);
    }
    return mesh_redistribute(mesh_ones(SHAPE, m, before), p);
}

static mesh_dtensor *draw(int kind, mesh_device_mesh *m, mesh_placements p)
{
    mesh_dtensor *x = ones(m, p);
    switch (kind) {
    case DRAW_RAND:
        return mesh_rand(SHAPE, m, p);
    case DRAW_RANDN:
        return mesh_randn(SHAPE, m, p);
    case DRAW_UNIFORM:
        return mesh_uniform_(x, -2, 3, 0) == x ? x : NULL;
    case DRAW_NORMAL:
        return mesh_normal_(x, 1, 0.5, 0) == x ? x : NULL;
    case DRAW_DROPOUT:
        return mesh_dropout(x, 0.4);
    case DRAW_F64:
        return mesh_randn(SHAPE, m, p, .dtype = MESH_F64, .seed = 11);
    case DRAW_F16:
        return mesh_rand(SHAPE, m, p, .dtype = MESH_F16, .seed = 11);
    case DRAW_BF16:
        return mesh_normal_(mesh_cast(x, MESH_BF16), 1, 3, 0);
    case DRAW_DROP_BF16:
        return mesh_dropout(mesh_cast(x, MESH_BF16), 0.4);
    case DRAW_RANDINT:
        return mesh_randint(SHAPE, -100, 100, m, p, .dtype = MESH_I32);
    case DRAW_RANDINT_WIDE: /* almost a third of the draws is drawn again */
        return mesh_randint(SHAPE, 0, INT64_C(3) << 30, m, p);
    case DRAW_RANDINT_LIKE:
        return mesh_randint_like(x, 5, 9, .dtype = MESH_I64, .seed = 4);
    default:
        return mesh_randint_(mesh_cast(x, MESH_I64), -3, 4, 0);
    }
}

static double element(mesh_tensor *t, int i)
{
    const void *data = mesh_tensor_data(t);
    switch (mesh_tensor_dtype(t)) {
    case MESH_F64:
        return ((const double *)data)[i];
    case MESH_F16:
        return (double)float_from_f16(((const uint16_t *)data)[i]);
    case MESH_BF16:
        return (double)float_from_bf16(((const uint16_t *)data)[i]);
    case MESH_I64:
        return (double)((const int64_t *)data)[i];
    case MESH_I32:
        return (double)((const int32_t *)data)[i];
    default:
        return (double)((const float *)data)[i];
    }
}

static int draw_all(mesh_device_mesh *m, mesh_placements p, bool is_truth)
{
    mesh_manual_seed(7);
    for (int kind = 0; kind < N_DRAWS; kind++) {
        mesh_tensor *full = mesh_full_tensor(draw(kind, m, p));
        REQUIRE(full != NULL);
        for (int i = 0; i < ELEMENTS; i++) {
            if (is_truth) {
                truth[kind][i] = element(full, i);
            } else {
                REQUIRE_NEAR(element(full, i), truth[kind][i], 0);
            }
        }
    }
    return 0;
}

static int draw_alone(void *arg)
{
    (void)arg;
    return draw_all(mesh_init_device_mesh("cpu", MESH_SHAPE(1), NULL), ON(mesh_replicate()), true);
}

#define N_PLACES 11
struct where {
    int n_ranks;
    mesh_shape shape;
    const int *ranks; /* NULL: all of them in order */
};

/* Every list of placements over {R, S(0), S(1), _S(0, 2)}; of lists of three a fifth. */
static int draw_everywhere(void *arg)
{
    const struct where *w = arg;
    mesh_device_mesh *m = w->ranks == NULL ? mesh_init_device_mesh("cpu", w->shape, NULL)
                                           : mesh_new_device_mesh("cpu", w->shape, w->ranks, NULL);
    const mesh_placement kinds[] = { mesh_replicate(), mesh_shard(0), mesh_shard(1), mesh_strided_shard(0, 2) };
    REQUIRE(m != NULL);
    for (int k = 0; k < 1 << 2 * w->shape.ndim; k += w->shape.ndim == 3 ? 5 : 1) {
        mesh_placements p = { .n = w->shape.ndim };
        for (int i = 0; i < p.n; i++) {
            p.at[i] = kinds[k >> 2 * i & 3];
        }
        REQUIRE_OK(draw_all(m, p, false));
    }
    return 0;
}

/* 155 rnd, 157 drop, 161 (no two ranks share a stream) */
START_TEST(case_rnd_drop_every_mesh_and_layout_draws_the_bits_of_one_process)
{
    static const int turned[] = { 3, 0, 2, 1 }, turned_6[] = { 4, 1, 0, 5, 3, 2 };
    static const struct where places[N_PLACES] = {
        { 1, { 1, { 1 } }, NULL },       { 2, { 1, { 2 } }, NULL },           { 4, { 1, { 4 } }, NULL },
        { 4, { 2, { 2, 2 } }, NULL },    { 6, { 2, { 3, 2 } }, NULL },        { 8, { 1, { 8 } }, NULL },
        { 4, { 3, { 2, 1, 2 } }, NULL }, { 8, { 3, { 2, 2, 2 } }, NULL },     { 4, { 1, { 4 } }, turned },
        { 4, { 2, { 2, 2 } }, turned },  { 6, { 3, { 1, 2, 3 } }, turned_6 },
    };
    ranks_run(1, draw_alone, NULL);
    ranks_run(places[_i].n_ranks, draw_everywhere, (void *)(uintptr_t)&places[_i]);
}
END_TEST

/* 156 rnd2: the stream moves on by calls, also where the part is empty */
static int second_draw(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(4), NULL);
    mesh_manual_seed(9);
    mesh_dtensor *first = mesh_rand(MESH_SHAPE(2), m, ON(mesh_shard(0)));
    mesh_tensor *a = mesh_full_tensor(mesh_rand(MESH_SHAPE(3), m, ON(mesh_replicate())));
    mesh_manual_seed(9);
    mesh_dtensor *again = mesh_rand(MESH_SHAPE(2), m, ON(mesh_replicate()));
    mesh_tensor *b = mesh_full_tensor(mesh_rand(MESH_SHAPE(3), m, ON(mesh_shard(0))));
    REQUIRE(first != NULL && again != NULL && a != NULL && b != NULL);
    REQUIRE(memcmp(mesh_tensor_data(a), mesh_tensor_data(b), 12) == 0);
    return 0;
}

START_TEST(case_rnd2_the_second_draw_does_not_depend_on_the_layout_of_the_first)
{
    ranks_run(4, second_draw, NULL);
}
END_TEST

/* 157 drop: the gradient has the same mask; a pending input is refused */
/* Of ones: what is left of them is the mask itself.  Backward from a gradient in any layout. */
static int drop_back(void *arg)
{
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(mesh_world_size()), NULL);
    const mesh_placement p[] = { mesh_shard(0), mesh_shard(1), mesh_replicate() };
    (void)arg;
    for (int i = 0; i < 9; i++) {
        mesh_dtensor *x = mesh_requires_grad(mesh_ones(MESH_SHAPE(7, 5), m, ON(p[i / 3])), true);
        mesh_dtensor *y = mesh_dropout(x, 0.4), *dy = mesh_ones(MESH_SHAPE(7, 5), m, ON(p[i % 3]));
        REQUIRE(mesh_backward_from(y, dy) == 0 && mesh_equal(mesh_grad(x), y));
        mesh_dtensor *half = mesh_requires_grad(mesh_ones(MESH_SHAPE(7, 5), m, ON(p[i / 3]), .dtype = MESH_F16), true);
        y = mesh_dropout(half, 0.4);
        REQUIRE(mesh_backward_from(y, mesh_cast(dy, MESH_F16)) == 0 && mesh_equal(mesh_grad(half), y));
    }
    return 0;
}

START_TEST(the_gradient_of_dropout_goes_through_the_same_mask)
{
    ranks_run(3, drop_back, NULL);
}
END_TEST

static int dropout(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(4), NULL);
    mesh_dtensor *x = mesh_ones(MESH_SHAPE(6, 6), m, ON(mesh_shard(0)), .requires_grad = true);
    mesh_comm_reset();
    mesh_dtensor *y = mesh_dropout(x, 0.5, .seed = 3);
    REQUIRE(y != NULL && mesh_comm_count(MESH_COMM_ALL_GATHER) == 0 && mesh_comm_count(MESH_COMM_ALL_REDUCE) == 0);
    REQUIRE(mesh_backward(mesh_sum(y)) == 0);
    mesh_tensor *value = mesh_full_tensor(y), *slope = mesh_full_tensor(mesh_grad(x));
    int n_kept = 0;
    for (int i = 0; i < 36; i++) {
        REQUIRE(element(value, i) <= 0 || element(value, i) >= 2);
        REQUIRE_NEAR(element(slope, i), element(value, i), 0);
        n_kept += element(value, i) > 1;
    }
    REQUIRE(n_kept > 4 && n_kept < 32);
    REQUIRE_NEAR(mesh_item(mesh_sum(mesh_dropout(x, 0))), 36, 0);
    REQUIRE_NEAR(mesh_item(mesh_sum(mesh_dropout(x, 1))), 0, 0);
    mesh_scope *s = mesh_scope_begin();
    REQUIRE(mesh_dropout(mesh_ones(MESH_SHAPE(4), m, ON(mesh_partial(MESH_SUM))), 0.5) == NULL);
    REQUIRE_OK(ends_with(s, MESH_EPLACEMENT, "dropout: [4] f32 [P(sum)]"));
    s = mesh_scope_begin();
    REQUIRE(mesh_dropout(x, 1.5) == NULL);
    REQUIRE_OK(ends_with(s, MESH_EINVAL, "1.5 is not in [0, 1]"));
    s = mesh_scope_begin();
    REQUIRE(mesh_uniform_(x, 0, 1, 0) == NULL);
    REQUIRE_OK(ends_with(s, MESH_ESTATE, "requires a gradient"));
    s = mesh_scope_begin();
    REQUIRE(mesh_normal_(mesh_detach(x), 0, -1, 0) == NULL);
    return ends_with(s, MESH_EINVAL, "deviation");
}

START_TEST(case_drop_what_is_kept_is_scaled_and_pending_sums_are_refused)
{
    ranks_run(4, dropout, NULL);
}
END_TEST

/* 158 seed */
static int seeds_differ(void *arg)
{
    (void)arg;
    mesh_scope *s = mesh_scope_begin();
    mesh_manual_seed(mesh_rank() == 2 ? 5 : 4);
    return ends_with(s, MESH_EMISMATCH, "seed");
}

START_TEST(case_seed_different_seeds_are_an_error_everywhere)
{
    ranks_run(4, seeds_differ, NULL);
}
END_TEST

/* 161 dist */
static int moments(void *arg)
{
    (void)arg;
    const int64_t n = 100000;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(4), NULL);
    mesh_dtensor *u = mesh_rand(MESH_SHAPE(n), m, ON(mesh_shard(0)), .dtype = MESH_F64, .seed = 21);
    mesh_dtensor *g = mesh_randn(MESH_SHAPE(n), m, ON(mesh_shard(0)), .dtype = MESH_F64, .seed = 22);
    double root = sqrt((double)n);
    REQUIRE(fabs(mesh_item(mesh_mean(u)) - 0.5) < 5 * sqrt(1.0 / 12) / root);
    REQUIRE(fabs(mesh_item(mesh_mean(mesh_mul(u, u))) - 1.0 / 3) < 5 * sqrt(4.0 / 45) / root);
    REQUIRE(fabs(mesh_item(mesh_mean(g))) < 5 / root);
    REQUIRE(fabs(mesh_item(mesh_mean(mesh_mul(g, g))) - 1) < 5 * sqrt(2.0) / root);
    return 0;
}

START_TEST(case_dist_mean_and_variance_of_many_draws_are_within_five_sigma)
{
    ranks_run(4, moments, NULL);
}
END_TEST

/* 16 bits are f32 rounded, within the half-open range; whole numbers reach both ends; what does not fit is refused. */
static int of_all_kinds(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(2), NULL);
    mesh_placements p = ON(mesh_shard(0));
    mesh_tensor *wide = mesh_full_tensor(mesh_rand(MESH_SHAPE(5000), m, p, .seed = 5));
    mesh_tensor *half = mesh_full_tensor(mesh_rand(MESH_SHAPE(5000), m, p, .seed = 5, .dtype = MESH_BF16));
    mesh_tensor *whole =
        mesh_full_tensor(mesh_randint_(mesh_zeros(MESH_SHAPE(5000), m, p, .dtype = MESH_I64), -2, 3, 9));
    REQUIRE(wide != NULL && half != NULL && whole != NULL);
    int found[5] = { 0 };
    for (int i = 0; i < 5000; i++) {
        float v = ((float *)mesh_tensor_data(wide))[i], rounded = float_from_bf16(float_to_bf16(v));
        REQUIRE_NEAR(element(half, i), (double)(rounded < 1 ? rounded : float_from_bf16(0x3f7f)), 0);
        REQUIRE(element(whole, i) >= -2 && element(whole, i) <= 2);
        found[(int)element(whole, i) + 2]++;
    }
    for (int k = 0; k < 5; k++) {
        REQUIRE(found[k] > 850 && found[k] < 1150);
    }
    mesh_tensor *low = mesh_full_tensor(mesh_randint_(mesh_zeros(MESH_SHAPE(50), m, p, .dtype = MESH_I64), -10, -5, 9));
    REQUIRE(low != NULL);
    for (int i = 0; i < 50; i++) {
        REQUIRE(element(low, i) >= -10 && element(low, i) <= -6);
    }
    mesh_scope *s = mesh_scope_begin();
    mesh_randint_(mesh_zeros(MESH_SHAPE(3), m, p, .dtype = MESH_U8), 0, 257, 0);
    REQUIRE_OK(ends_with(s, MESH_EINVAL, "randint_: [0, 257) for u8"));
    s = mesh_scope_begin();
    mesh_randint_(mesh_zeros(MESH_SHAPE(3), m, p), 0, 2, 0);
    return ends_with(s, MESH_EUNSUPPORTED, "integer dtype, not f32");
}

START_TEST(random_numbers_of_16_bits_and_whole_ones)
{
    ranks_run(2, of_all_kinds, NULL);
}
END_TEST

/* Of 3 2^30 numbers the lower third would come up twice as often if the bits were only scaled. */
static int without_bias(void *arg)
{
    (void)arg;
    enum { DRAWS = 30000 };
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(2), NULL);
    mesh_tensor *x =
        mesh_full_tensor(mesh_randint(MESH_SHAPE(DRAWS), 0, INT64_C(3) << 30, m, ON(mesh_shard(0)), .seed = 12));
    int n_of_rest[3] = { 0 };
    REQUIRE(x != NULL);
    for (int i = 0; i < DRAWS; i++) {
        REQUIRE(element(x, i) >= 0 && element(x, i) < 3.0 * (1 << 30));
        n_of_rest[(int64_t)element(x, i) % 3]++;
    }
    for (int k = 0; k < 3; k++) {
        REQUIRE(abs(n_of_rest[k] - DRAWS / 3) < 5 * 82); /* five deviations: sqrt(30000 * 2/9) = 82 */
    }
    return 0;
}

START_TEST(whole_numbers_of_a_wide_range_are_equally_likely)
{
    ranks_run(2, without_bias, NULL);
}
END_TEST

static int refusals_of_factories(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(2), NULL);
    mesh_placements p = ON(mesh_shard(0));
    mesh_scope *s = mesh_scope_begin();
    mesh_randint(MESH_SHAPE(3), 0, 129, m, p, .dtype = MESH_I8);
    REQUIRE_OK(ends_with(s, MESH_EINVAL, "randint: [0, 129) for i8"));
    s = mesh_scope_begin();
    mesh_randint(MESH_SHAPE(3), 4, 4, m, p);
    REQUIRE_OK(ends_with(s, MESH_EINVAL, "low is below high"));
    s = mesh_scope_begin();
    mesh_randint(MESH_SHAPE(3), 0, 4, m, p, .dtype = MESH_F32);
    REQUIRE_OK(ends_with(s, MESH_EUNSUPPORTED, "integer dtype, not f32"));
    s = mesh_scope_begin();
    mesh_randint_like(mesh_ones(MESH_SHAPE(3), m, p), 0, 4);
    REQUIRE_OK(ends_with(s, MESH_EUNSUPPORTED, "integer dtype, not f32"));
    s = mesh_scope_begin();
    mesh_randperm(257, m, p, .dtype = MESH_U8);
    REQUIRE_OK(ends_with(s, MESH_EINVAL, "below 257 for u8"));
    s = mesh_scope_begin();
    mesh_randperm(-1, m, p);
    REQUIRE_OK(ends_with(s, MESH_EINVAL, "at least 0"));
    s = mesh_scope_begin();
    mesh_randperm(4, m, p, .dtype = MESH_BOOL);
    REQUIRE_OK(ends_with(s, MESH_EUNSUPPORTED, "bool"));
    s = mesh_scope_begin();
    mesh_randperm(4, m, p, .dtype = MESH_F64);
    return ends_with(s, MESH_EUNSUPPORTED, "f64");
}

START_TEST(ranges_that_do_not_fit_are_refused)
{
    ranks_run(2, refusals_of_factories, NULL);
}
END_TEST

enum { MOST_ORDERED = 130 };
static int64_t order[MOST_ORDERED + 1][MOST_ORDERED];

/* Each number once; and the same order on every number of ranks and layout. */
static int permute(void *arg)
{
    const bool *is_truth = arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(mesh_world_size()), NULL);
    for (int64_t n = 0; n <= MOST_ORDERED; n++) {
        bool found[MOST_ORDERED] = { false };
        mesh_placement p = n % 3 == 0 ? mesh_replicate() : n % 3 == 1 ? mesh_shard(0) : mesh_partial(MESH_SUM);
        mesh_tensor *x = mesh_full_tensor(mesh_randperm(n, m, ON(p), .seed = 1 + (uint64_t)n));
        REQUIRE(x != NULL && mesh_tensor_shape(x).dim[0] == n);
        for (int i = 0; i < n; i++) {
            int64_t v = (int64_t)element(x, i);
            REQUIRE(v >= 0 && v < n && !found[v]);
            found[v] = true;
            REQUIRE(*is_truth || order[n][i] == v);
            if (*is_truth) {
                order[n][i] = v;
            }
        }
    }
    return 0;
}

START_TEST(a_random_order_has_each_number_once_and_is_that_of_one_process)
{
    bool is_truth = true;
    ranks_run(1, permute, &is_truth);
    is_truth = false;
    ranks_run(2, permute, &is_truth);
    ranks_run(3, permute, &is_truth);
}
END_TEST

/* All six orders of three numbers, and every number in every place of ten. */
static int orders(void *arg)
{
    (void)arg;
    enum { DRAWS = 6000 };
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(1), NULL);
    int n_of_order[9] = { 0 }, n_in_place[10][10] = { { 0 } };
    mesh_scope *scope = mesh_scope_begin();
    for (uint64_t k = 1; k <= DRAWS; k++) {
        mesh_tensor *three = mesh_to_local(mesh_randperm(3, m, ON(mesh_replicate()), .seed = k));
        mesh_tensor *ten = mesh_to_local(mesh_randperm(10, m, ON(mesh_replicate()), .seed = k));
        n_of_order[(int)(3 * element(three, 0) + element(three, 1))]++;
        for (int i = 0; i < 10; i++) {
            n_in_place[i][(int)element(ten, i)]++;
        }
        REQUIRE(mesh_scope_next(scope));
    }
    for (int k = 0; k < 9; k++) { /* 0, 4 and 8 would have a number twice; five deviations of 1000: 144 */
        REQUIRE(n_of_order[k] == 0 ? k % 4 == 0 : abs(n_of_order[k] - DRAWS / 6) < 5 * 29);
    }
    for (int k = 0; k < 100; k++) { /* of 600: 23 */
        REQUIRE(abs(n_in_place[k / 10][k % 10] - DRAWS / 10) < 5 * 24);
    }
    return mesh_scope_end(scope);
}

START_TEST(random_orders_are_equally_likely)
{
    ranks_run(1, orders, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("random");
    TCase *t = tcase_create("random");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, case_rnd_drop_every_mesh_and_layout_draws_the_bits_of_one_process, 0, N_PLACES);
    tcase_add_test(t, the_gradient_of_dropout_goes_through_the_same_mask);
    tcase_add_test(t, case_rnd2_the_second_draw_does_not_depend_on_the_layout_of_the_first);
    tcase_add_test(t, random_numbers_of_16_bits_and_whole_ones);
    tcase_add_test(t, case_drop_what_is_kept_is_scaled_and_pending_sums_are_refused);
    tcase_add_test(t, case_seed_different_seeds_are_an_error_everywhere);
    tcase_add_test(t, case_dist_mean_and_variance_of_many_draws_are_within_five_sigma);
    tcase_add_test(t, whole_numbers_of_a_wide_range_are_equally_likely);
    tcase_add_test(t, ranges_that_do_not_fit_are_refused);
    tcase_add_test(t, a_random_order_has_each_number_once_and_is_that_of_one_process);
    tcase_add_test(t, random_orders_are_equally_likely);
    suite_add_tcase(s, t);
    return s;
}
