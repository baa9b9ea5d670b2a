/* tests/world/test_reductions.c - reductions, scans, sorts, softmax and losses as a program sees them.  Ids are those
 * of the case list.
 *
 * Beside values: what is sent (nothing is gathered along a sharded dim), and that all ranks are refused with one
 * sentence.
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
#define WANT(...)  ((const double[]){ __VA_ARGS__ }), (int)(sizeof((double[]){ __VA_ARGS__ }) / sizeof(double))

static double number_at(mesh_tensor *t, int64_t i)
{
    void *data = mesh_tensor_data(t);
    switch (mesh_tensor_dtype(t)) {
    case MESH_F32:
        return (double)((float *)data)[i];
    case MESH_F64:
        return ((double *)data)[i];
    case MESH_BOOL:
        return ((bool *)data)[i];
    default:
        return (double)((int64_t *)data)[i];
    }
}

static mesh_dtensor *make(mesh_device_mesh *m, mesh_shape s, mesh_dtype d, const double *v, mesh_placements p)
{
    mesh_tensor *t = mesh_tensor_new(s, d);
    int64_t n = 1;
    for (int i = 0; i < s.ndim; i++) {
        n *= s.dim[i];
    }
    for (int64_t i = 0; t != NULL && i < n; i++) {
        if (d == MESH_F64) {
            ((double *)mesh_tensor_data(t))[i] = v[i];
        } else if (d == MESH_I64) {
            ((int64_t *)mesh_tensor_data(t))[i] = (int64_t)v[i];
        } else {
            ((bool *)mesh_tensor_data(t))[i] = v[i] != 0;
        }
    }
    return mesh_distribute_same(t, m, p);
}
#define F64(m, s, p, ...)  make(m, s, MESH_F64, (const double[]){ __VA_ARGS__ }, p)
#define I64(m, s, p, ...)  make(m, s, MESH_I64, (const double[]){ __VA_ARGS__ }, p)
#define BOOL(m, s, p, ...) make(m, s, MESH_BOOL, (const double[]){ __VA_ARGS__ }, p)

/* A tensor whose parts of a pending reduction are given: rank r has the numbers from r n on. */
static mesh_dtensor *pending(mesh_device_mesh *m, int64_t n, mesh_reduce_op op, const double *parts)
{
    mesh_tensor *t = mesh_tensor_new(SHAPE(n), MESH_F64);
    if (t != NULL) {
        memcpy(mesh_tensor_data(t), parts + mesh_rank() * n, (size_t)n * sizeof *parts);
    }
    return mesh_from_local(t, m, ON(mesh_partial(op)));
}

static int is(mesh_dtensor *x, const double *want, int n)
{
    REQUIRE(x != NULL);
    mesh_tensor *t = mesh_full_tensor(x);
    REQUIRE(t != NULL);
    mesh_shape s = mesh_tensor_shape(t);
    int64_t count = 1;
    for (int d = 0; d < s.ndim; d++) {
        count *= s.dim[d];
    }
    REQUIRE(count == n);
    for (int i = 0; i < n; i++) {
        REQUIRE_NEAR(number_at(t, i), want[i], 1e-7);
    }
    return 0;
}
#define IS(x, ...) REQUIRE_OK(is((x), WANT(__VA_ARGS__)))

/* The call failed with this status before anything was sent; the scope ends. */
static int refused(mesh_scope *scope, mesh_status status, const char *says)
{
    REQUIRE((int)mesh_last_error()->status == (int)status);
    if (strstr(mesh_last_error()->message, says) == NULL) {
        return ranks_complain(__FILE__, __LINE__, "not in \"%s\": %s", mesh_last_error()->message, says);
    }
    for (int kind = MESH_COMM_ALL_REDUCE; kind <= MESH_COMM_BARRIER; kind++) {
        REQUIRE(mesh_comm_count((mesh_comm_kind)kind) == 0);
    }
    REQUIRE(mesh_scope_end(scope) < 0);
    return 0;
}

static mesh_device_mesh *line(void)
{
    return mesh_init_device_mesh("cpu", SHAPE(mesh_world_size()), NULL);
}

/* --- 85 to 101 ---------------------------------------------------------------------------------------------------- */

static int extremes(void *arg)
{
    mesh_device_mesh *m = line();
    const double nan_there[5] = { 1, NAN, 9, 2, 0 };
    (void)arg;
    mesh_dtensor *x = F64(m, SHAPE(3, 3), ON(S(1)), 0, 1, 2, 3, 4, 5, 6, 7, 8);
    IS(mesh_amax(x), 8);
    IS(mesh_amax(x, .dims = SHAPE(1)), 2, 5, 8);
    IS(mesh_amin(x, .dims = SHAPE(0), .keepdim = true), 0, 1, 2);
    IS(mesh_amax(make(m, SHAPE(5), MESH_F64, nan_there, ON(S(0)))), NAN);
    IS(mesh_amax(I64(m, SHAPE(2), ON(S(0)), -7, -5)), -5);
    IS(mesh_prod(F64(m, SHAPE(5), ON(S(0)), 1, 2, 3, 4, 5)), 120);
    IS(mesh_var(F64(m, SHAPE(6), ON(S(0)), 0, 1, 2, 3, 4, 5), 1), 3.5);
    IS(mesh_std(F64(m, SHAPE(6), ON(S(0)), 0, 1, 2, 3, 4, 5), 1), 1.8708286933869707);
    IS(mesh_var(F64(m, SHAPE(1), ON(S(0)), 7), 1), NAN);
    IS(mesh_var(F64(m, SHAPE(1), ON(S(0)), 7), 0), 0);
    IS(mesh_all(BOOL(m, SHAPE(4), ON(S(0)), 1, 1, 1, 0)), 0);
    IS(mesh_all(BOOL(m, SHAPE(3), ON(S(0)), 1, 1, 1)), 1);
    IS(mesh_any(BOOL(m, SHAPE(3), ON(S(0)), 0, 0, 0)), 0);
    IS(mesh_any(F64(m, SHAPE(3), ON(S(0)), 0, 0, -0.5)), 1);
    IS(mesh_norm(F64(m, SHAPE(5), ON(S(0)), 1, -2, 0, 2, -4), 2), 5);
    IS(mesh_norm(F64(m, SHAPE(5), ON(S(0)), 1, -2, 0, 2, -4), 1), 9);
    IS(mesh_norm(F64(m, SHAPE(5), ON(S(0)), 1, -2, 0, 2, -4), 0), 4);
    IS(mesh_norm(F64(m, SHAPE(5), ON(S(0)), 1, -2, 0, 2, -4), INFINITY), 4);
    return 0;
}

static int nothing(void *arg)
{
    mesh_device_mesh *m = line();
    (void)arg;
    mesh_dtensor *x = mesh_zeros(SHAPE(0, 3), m, ON(S(0)), .dtype = MESH_F64);
    IS(mesh_sum(x), 0);
    IS(mesh_prod(x), 1);
    IS(mesh_mean(x), NAN);
    IS(mesh_all(x), 1);
    IS(mesh_any(x), 0);
    IS(mesh_norm(x, 2), 0);
    IS(mesh_logsumexp(x), -INFINITY);
    IS(mesh_var(x, 0), NAN);
    mesh_dtensor *of_rows = mesh_amax(x, .dims = SHAPE(1)); /* of no rows there are no largest */
    REQUIRE(of_rows != NULL && mesh_shape_of(of_rows).dim[0] == 0);
    mesh_comm_reset();
    mesh_scope *s = mesh_scope_begin();
    REQUIRE(mesh_amax(x) == NULL);
    REQUIRE_OK(refused(s, MESH_EINVAL, "nothing has no amax"));
    s = mesh_scope_begin();
    REQUIRE(mesh_argmin(x, .dims = SHAPE(0)) == NULL);
    return refused(s, MESH_EINVAL, "dim 0 of [0,3] has no elements");
}

static int of_pending(void *arg)
{
    mesh_device_mesh *m = line();
    static const double parts[] = { 1, 0, 0, 3 };
    (void)arg;
    IS(mesh_amax(pending(m, 2, MESH_SUM, parts)), 3);
    IS(mesh_sum(pending(m, 2, MESH_MAX, parts)), 4);
    mesh_dtensor *stays = mesh_amax(pending(m, 2, MESH_MAX, parts));
    REQUIRE(mesh_placements_equal(mesh_placements_of(stays), ON(mesh_partial(MESH_MAX))));
    IS(stays, 3);
    return 0;
}

START_TEST(reductions_of_uneven_and_empty_shards)
{
    ranks_run(_i, extremes, NULL);
}
END_TEST

START_TEST(reductions_of_nothing)
{
    ranks_run(_i, nothing, NULL);
}
END_TEST

START_TEST(reductions_of_pending_parts)
{
    ranks_run(2, of_pending, NULL);
}
END_TEST

/* --- 107 to 111: indices, scans, sorts ---------------------------------------------------------------------------- */

static int indices(void *arg)
{
    mesh_device_mesh *m = line();
    const double nan_there[4] = { 1, NAN, 9, 2 };
    mesh_dtensor *values = NULL, *found = NULL;
    (void)arg;
    IS(mesh_argmax(F64(m, SHAPE(4), ON(S(0)), 10, 5, 3, 8)), 0);
    IS(mesh_argmax(F64(m, SHAPE(4), ON(S(0)), 7, 1, 7, 0)), 0);
    IS(mesh_argmax(make(m, SHAPE(4), MESH_F64, nan_there, ON(S(0)))), 1);
    IS(mesh_argmin(make(m, SHAPE(4), MESH_F64, nan_there, ON(S(0)))), 1);
    mesh_dtensor *x = F64(m, SHAPE(2, 2), ON(S(1)), 1, 9, 8, 2);
    IS(mesh_argmax(x), 1);
    IS(mesh_argmin(x, .dims = SHAPE(1)), 0, 1);
    mesh_topk(F64(m, SHAPE(2, 4), ON(S(1)), 1, 9, 2, 3, 4, 5, 6, 7), 1, 1, &values, &found);
    IS(values, 9, 7);
    IS(found, 1, 3);
    x = F64(m, SHAPE(6), ON(S(0)), 4, 9, 1, 7, 8, 3);
    mesh_topk(x, 3, 0, &values, &found);
    IS(values, 9, 8, 7);
    IS(found, 1, 4, 3);
    mesh_topk(F64(m, SHAPE(4), ON(S(0)), 5, 5, 5, 5), 3, 0, NULL, &found);
    IS(found, 0, 1, 2);
    mesh_sort(F64(m, SHAPE(6), ON(S(0)), 2, 1, 2, 0, 1, 2), 0, true, &values, &found);
    IS(values, 2, 2, 2, 1, 1, 0);
    IS(found, 0, 2, 5, 1, 4, 3);
    mesh_sort(make(m, SHAPE(4), MESH_F64, nan_there, ON(S(0))), 0, false, &values, &found);
    IS(found, 0, 3, 2, 1);
    IS(mesh_cumsum(F64(m, SHAPE(6), ON(S(0)), 1, 2, 3, 4, 5, 6), 0), 1, 3, 6, 10, 15, 21);
    IS(mesh_cumsum(I64(m, SHAPE(2, 3), ON(S(1)), 1, 2, 3, 4, 5, 6), -1), 1, 3, 6, 4, 9, 15);
    mesh_comm_reset();
    mesh_scope *s = mesh_scope_begin();
    mesh_topk(x, 7, 0, &values, &found);
    REQUIRE(values == NULL && found == NULL);
    return refused(s, MESH_EINVAL, "topk: 7 of the 6 elements along dim 0 of [6]");
}

START_TEST(indices_are_global_and_ties_go_to_the_lowest)
{
    ranks_run(_i, indices, NULL);
}
END_TEST

static int candidates(void *arg)
{
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(2, 2), NULL);
    mesh_dtensor *values = NULL, *found = NULL;
    (void)arg;
    mesh_dtensor *x = F64(m, SHAPE(13), ON(S(0), S(0)), 0, 3, 1, 7, 7, 2, 9, 4, 7, 5, 9, 1, 6);
    mesh_comm_reset();
    mesh_topk(x, 2, 0, &values, &found);
    REQUIRE(mesh_comm_bytes(MESH_COMM_ALL_GATHER) < 13 * 8);
    IS(values, 9, 9);
    IS(found, 6, 10);
    mesh_topk(x, 3, 0, &values, &found);
    IS(values, 9, 9, 7);
    IS(found, 6, 10, 3);
    mesh_comm_reset();
    mesh_dtensor *sums = mesh_cumsum(x, 0);
    REQUIRE(mesh_placements_equal(mesh_placements_of(sums), ON(S(0), S(0))));
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_GATHER) == 0);
    IS(sums, 0, 3, 4, 11, 18, 20, 29, 33, 40, 45, 54, 55, 61);
    return 0;
}

START_TEST(topk_sends_candidates_and_cumsum_totals)
{
    ranks_run(4, candidates, NULL);
}
END_TEST

/* --- 128 to 131: softmax ------------------------------------------------------------------------------------------ */

static int softmaxes(void *arg)
{
    mesh_device_mesh *m = line();
    double inf = INFINITY;
    (void)arg;
    mesh_dtensor *x = F64(m, SHAPE(4), ON(S(0)), 0, log(2), log(3), log(4));
    mesh_comm_reset();
    mesh_dtensor *y = mesh_softmax(x, 0);
    REQUIRE(mesh_placements_equal(mesh_placements_of(y), ON(S(0))));
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_REDUCE) == 2 && mesh_comm_count(MESH_COMM_ALL_GATHER) == 0);
    IS(y, .1, .2, .3, .4);
    IS(mesh_softmax(F64(m, SHAPE(3), ON(S(0)), 1000, 1001, 999), 0), 0.24472847105479764, 0.66524095577482178,
       0.09003057317038046);
    IS(mesh_log_softmax(F64(m, SHAPE(4), ON(S(0)), -inf, -inf, 0, 0), 0), -inf, -inf, -log(2), -log(2));
    IS(mesh_logsumexp(F64(m, SHAPE(4), ON(S(0)), -inf, -inf, 0, 0)), log(2));
    IS(mesh_logsumexp(F64(m, SHAPE(4), ON(S(0)), -inf, -inf, -inf, -inf)), -inf);
    IS(mesh_logsumexp(F64(m, SHAPE(4), ON(S(0)), 1, 2, inf, 3)), inf);
    return 0;
}

START_TEST(softmax_over_sharded_classes_gathers_nothing)
{
    ranks_run(_i, softmaxes, NULL);
}
END_TEST

static int thin_softmax(void *arg)
{
    mesh_device_mesh *m = line();
    (void)arg;
    mesh_dtensor *x = F64(m, SHAPE(1, 5), ON(S(1)), 0, 1, 2, 3, 4), *w = F64(m, SHAPE(1, 5), ON(R), 1, 0, 0, 0, 0);
    mesh_requires_grad(x, true);
    mesh_dtensor *y = mesh_softmax(x, 1);
    double e = exp(1) + exp(2) + exp(3) + exp(4) + 1, p[5], dx[5];
    for (int i = 0; i < 5; i++) {
        p[i] = exp(i) / e;
        dx[i] = (i == 0 ? p[0] : 0) - p[0] * p[i];
    }
    REQUIRE_OK(is(y, p, 5));
    REQUIRE(mesh_backward(mesh_sum(mesh_mul(y, w))) == 0);
    return is(mesh_grad(x), dx, 5);
}

START_TEST(an_empty_shard_takes_part_in_softmax)
{
    ranks_run(4, thin_softmax, NULL);
}
END_TEST

/* --- 135 to 140: cross entropy ------------------------------------------------------------------------------------ */

static int losses(void *arg)
{
    mesh_device_mesh *m = line();
    static const int64_t ignored = 2;
    (void)arg;
    mesh_dtensor *x = F64(m, SHAPE(1, 4), ON(S(1)), 0, log(2), log(3), log(4)), *two = I64(m, SHAPE(1), ON(R), 2);
    mesh_requires_grad(x, true);
    mesh_comm_reset();
    mesh_dtensor *loss = mesh_cross_entropy(x, two);
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_REDUCE) == 3 && mesh_comm_count(MESH_COMM_ALL_GATHER) == 0);
    IS(loss, 1.2039728043259361);
    mesh_comm_reset();
    REQUIRE(mesh_backward(loss) == 0);
    for (int kind = MESH_COMM_ALL_REDUCE; kind <= MESH_COMM_BARRIER; kind++) {
        REQUIRE(mesh_comm_count((mesh_comm_kind)kind) == 0);
    }
    IS(mesh_grad(x), .1, .2, -.7, .4);
    IS(mesh_cross_entropy(x, two, .label_smoothing = 0.1), 1.2343827);
    IS(mesh_cross_entropy(x, two, .ignore_index = &ignored), NAN);
    IS(mesh_cross_entropy(x, two, .ignore_index = &ignored, .reduction = MESH_REDUCTION_SUM), 0);
    IS(mesh_cross_entropy(F64(m, SHAPE(1, 5), ON(S(1)), 0, 1, 2, 3, 4), I64(m, SHAPE(1), ON(R), 4)), 0.4519143987);
    IS(mesh_nll_loss(mesh_log_softmax(x, 1), two), 1.2039728043259361);
    double l[4] = { 0, log(2), log(3), log(4) };
    x = F64(m, SHAPE(2, 4), ON(S(1)), l[0], l[1], l[2], l[3], l[0], l[1], l[2], l[3]);
    mesh_dtensor *weight = F64(m, SHAPE(4), ON(R), 1, 2, 1, 1), *rows = I64(m, SHAPE(2), ON(R), 1, 2);
    mesh_requires_grad(x, true);
    loss = mesh_cross_entropy(x, rows, .weight = weight);
    IS(loss, (2 * log(5) + log(10.0 / 3)) / 3);
    REQUIRE(mesh_backward(loss) == 0);
    IS(mesh_grad(x), .2 / 3, -1.6 / 3, .6 / 3, .8 / 3, .1 / 3, .2 / 3, -.7 / 3, .4 / 3);
    IS(mesh_nll_loss(mesh_log_softmax(x, 1), rows, .weight = weight, .reduction = MESH_REDUCTION_NONE), 2 * log(5),
       log(10.0 / 3));
    return 0;
}

START_TEST(cross_entropy_over_sharded_classes_is_three_small_reductions)
{
    ranks_run(_i, losses, NULL);
}
END_TEST

static int bad_targets(void *arg)
{
    mesh_device_mesh *m = line();
    (void)arg;
    for (int is_sharded = 0; is_sharded < 2; is_sharded++) {
        for (int low = 0; low < 2; low++) {
            mesh_scope *s = mesh_scope_begin();
            mesh_dtensor *x = F64(m, SHAPE(1, 4), ON(is_sharded ? S(1) : R), 0, 1, 2, 3);
            REQUIRE(mesh_cross_entropy(x, I64(m, SHAPE(1), ON(R), low ? -1 : 4)) == NULL);
            REQUIRE((int)mesh_last_error()->status == MESH_EINVAL);
            REQUIRE(strstr(mesh_last_error()->message, low ? "row 0 is -1" : "row 0 is 4, but there are 4") != NULL);
            REQUIRE(mesh_scope_end(s) < 0);
        }
    }
    return 0;
}

/* Each in the name of the call. */
static int bad_weights(void *arg)
{
    mesh_device_mesh *m = line();
    mesh_dtensor *x = F64(m, SHAPE(1, 4), ON(R), 0, 1, 2, 3), *good = I64(m, SHAPE(1), ON(R), 2);
    mesh_dtensor *bad = I64(m, SHAPE(1), ON(R), 4), *ones = mesh_ones(SHAPE(4), m, ON(R)),
                 *short_ = mesh_ones(SHAPE(3), m, ON(R));
    (void)arg;
    for (int k = 0; k < 2; k++) {
        const char *name = k == 0 ? "cross_entropy: " : "nll_loss: ";
        mesh_scope *s = mesh_scope_begin();
        REQUIRE((k == 0 ? mesh_cross_entropy(x, bad, .weight = ones) : mesh_nll_loss(x, bad, .weight = ones)) == NULL);
        REQUIRE(strncmp(mesh_last_error()->message, name, strlen(name)) == 0 && mesh_scope_end(s) == MESH_EINVAL);
        s = mesh_scope_begin();
        REQUIRE((k == 0 ? mesh_cross_entropy(x, good, .weight = short_) : mesh_nll_loss(x, good, .weight = short_)) ==
                NULL);
        REQUIRE(strncmp(mesh_last_error()->message, name, strlen(name)) == 0 && mesh_scope_end(s) == MESH_ESHAPE);
    }
    return 0;
}

START_TEST(a_bad_weight_of_a_loss_is_refused_in_the_name_of_the_call)
{
    ranks_run(2, bad_weights, NULL);
}
END_TEST

START_TEST(a_target_that_is_no_class_is_known_to_all_ranks)
{
    ranks_run(2, bad_targets, NULL);
}
END_TEST

/* --- other meshes ------------------------------------------------------------------------------------------------- */

/* On rank 1, which is outside, every call returns at once. */
static int on_some_ranks(void *arg)
{
    static const int ranks[2] = { 2, 0 };
    mesh_device_mesh *m = mesh_new_device_mesh("cpu", SHAPE(2), ranks, NULL);
    bool is_member = mesh_rank() != 1;
    mesh_dtensor *values = NULL, *found = NULL;
    (void)arg;
    mesh_dtensor *x = F64(m, SHAPE(1, 5), ON(S(1)), 3, 1, 4, 1, 5), *target = I64(m, SHAPE(1), ON(R), 4);
    mesh_requires_grad(x, true);
    mesh_dtensor *loss = mesh_cross_entropy(x, target), *sums = mesh_cumsum(x, 1), *best = mesh_argmax(x);
    mesh_dtensor *y = mesh_layer_norm(x, 1, NULL, NULL, 0), *v = mesh_var(x, 1), *n = mesh_norm(x, 1);
    mesh_topk(x, 1, 1, &values, &found);
    REQUIRE(mesh_backward(mesh_sum(mesh_add(loss, mesh_add(mesh_sum(y), mesh_add(v, n))))) == 0);
    REQUIRE(mesh_scope_status(NULL) == 0 && mesh_grad(x) != NULL && sums != NULL && best != NULL && found != NULL);
    if (is_member) {
        IS(sums, 3, 4, 8, 9, 14);
        IS(best, 4);
        IS(values, 5);
        IS(found, 4);
        IS(v, 3.2);
        IS(n, 14);
    }
    return 0;
}

START_TEST(a_mesh_of_some_ranks_in_another_order)
{
    ranks_run(3, on_some_ranks, NULL);
}
END_TEST

/* --- gradients that finite differences do not see ----------------------------------------------------------------- */

static int corners(void *arg)
{
    mesh_device_mesh *m = line();
    (void)arg;
    mesh_dtensor *x = mesh_requires_grad(F64(m, SHAPE(5), ON(S(0)), 3, 1, 3, 0, 3), true);
    REQUIRE(mesh_backward(mesh_amax(x)) == 0);
    IS(mesh_grad(x), 1.0 / 3, 0, 1.0 / 3, 0, 1.0 / 3);
    x = mesh_requires_grad(F64(m, SHAPE(5), ON(S(0)), 3, 1, 2, 0, 5), true);
    REQUIRE(mesh_backward(mesh_prod(x)) == 0);
    IS(mesh_grad(x), 0, 0, 0, 30, 0);
    x = mesh_requires_grad(F64(m, SHAPE(5), ON(S(0)), 3, 0, 2, 0, 5), true);
    REQUIRE(mesh_backward(mesh_prod(x)) == 0);
    IS(mesh_grad(x), 0, 0, 0, 0, 0);
    x = mesh_requires_grad(F64(m, SHAPE(3), ON(S(0)), 0, 0, 0), true);
    REQUIRE(mesh_backward(mesh_norm(x, 2)) == 0);
    IS(mesh_grad(x), 0, 0, 0);
    return 0;
}

START_TEST(gradients_share_among_ties_and_survive_zeros)
{
    ranks_run(_i, corners, NULL);
}
END_TEST

/* --- normalisation ------------------------------------------------------------------------------------------------ */

static int normalised(void *arg)
{
    mesh_device_mesh *m = line();
    (void)arg;
    mesh_dtensor *x = F64(m, SHAPE(2, 5), ON(S(1)), 0, 1, 2, 3, 4, 10, 10, 10, 10, 15);
    mesh_dtensor *w = F64(m, SHAPE(5), ON(S(0)), 1, 1, 2, 1, 1), *b = F64(m, SHAPE(5), ON(R), 0, 0, 1, 0, 0);
    double r = sqrt(2);
    mesh_comm_reset();
    mesh_dtensor *y = mesh_layer_norm(x, 1, w, b, 0);
    REQUIRE(mesh_placements_equal(mesh_placements_of(y), ON(S(1))));
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_GATHER) == 0 && mesh_comm_count(MESH_COMM_ALL_REDUCE) == 3);
    IS(y, -2 / r, -1 / r, 1, 1 / r, 2 / r, -.5, -.5, 0, -.5, 2);
    mesh_comm_reset();
    y = mesh_rms_norm(F64(m, SHAPE(4), ON(S(0)), 1, -1, 7, 7), 1, NULL, 0);
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_GATHER) == 0 && mesh_comm_count(MESH_COMM_ALL_REDUCE) == 1);
    IS(y, .2, -.2, 1.4, 1.4);
    mesh_comm_reset();
    mesh_scope *s = mesh_scope_begin();
    REQUIRE(mesh_layer_norm(x, 1, F64(m, SHAPE(4), ON(R), 1, 1, 1, 1), NULL, 0) == NULL);
    return refused(s, MESH_ESHAPE, "needs a weight of [5], not [4]");
}

START_TEST(normalisation_over_a_sharded_dim_keeps_it)
{
    ranks_run(_i, normalised, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("reductions");
    TCase *t = tcase_create("worlds");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, reductions_of_uneven_and_empty_shards, 1, 5);
    tcase_add_loop_test(t, reductions_of_nothing, 2, 4);
    tcase_add_test(t, reductions_of_pending_parts);
    tcase_add_loop_test(t, indices_are_global_and_ties_go_to_the_lowest, 1, 5);
    tcase_add_test(t, topk_sends_candidates_and_cumsum_totals);
    tcase_add_loop_test(t, softmax_over_sharded_classes_gathers_nothing, 2, 5);
    tcase_add_test(t, an_empty_shard_takes_part_in_softmax);
    tcase_add_loop_test(t, cross_entropy_over_sharded_classes_is_three_small_reductions, 2, 5);
    tcase_add_test(t, a_target_that_is_no_class_is_known_to_all_ranks);
    tcase_add_test(t, a_bad_weight_of_a_loss_is_refused_in_the_name_of_the_call);
    tcase_add_test(t, a_mesh_of_some_ranks_in_another_order);
    tcase_add_loop_test(t, gradients_share_among_ties_and_survive_zeros, 1, 5);
    tcase_add_loop_test(t, normalisation_over_a_sharded_dim_keeps_it, 2, 5);
    suite_add_tcase(s, t);
    return s;
}
