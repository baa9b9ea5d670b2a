/* tests/truth/test_pointwise.c - pointwise operators on pending values, mixed dtypes and ties, by hand (cases.md D).
 *
 * A name that ends in _caseN is row N of the list of cases.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "harness/check_main.h"
#include "harness/ranks.h"

#define SHAPE(...)     MESH_SHAPE(__VA_ARGS__)
#define VALUES(...)    ((const double[]){ __VA_ARGS__ })
#define EXPECT(x, ...) REQUIRE_OK(expect((x), VALUES(__VA_ARGS__), (int)(sizeof(VALUES(__VA_ARGS__)) / sizeof(double))))
#define KIND(x)        mesh_placements_of(x).at[0]

static mesh_device_mesh *line(void)
{
    return mesh_init_device_mesh("cpu", SHAPE(mesh_world_size()), NULL);
}

static void put(mesh_tensor *t, int64_t i, double v)
{
    void *data = mesh_tensor_data(t);
    switch (mesh_tensor_dtype(t)) {
    case MESH_F32:
        ((float *)data)[i] = (float)v;
        return;
    case MESH_F64:
        ((double *)data)[i] = v;
        return;
    case MESH_I32:
        ((int32_t *)data)[i] = (int32_t)v;
        return;
    case MESH_I64:
        ((int64_t *)data)[i] = (int64_t)v;
        return;
    default:
        ((uint8_t *)data)[i] = (uint8_t)v;
        return;
    }
}

/* Each rank holds its own n of the numbers as its part of a pending value. */
static mesh_dtensor *pending(mesh_device_mesh *m, mesh_reduce_op op, int n, const double *of_all)
{
    mesh_tensor *t = mesh_tensor_new(SHAPE(n), MESH_F64);
    for (int i = 0; i < n; i++) {
        put(t, i, of_all[mesh_rank() * n + i]);
    }
    return mesh_detach(mesh_from_local(t, m, MESH_PLACEMENTS(mesh_partial(op))));
}

static mesh_dtensor *laid(mesh_device_mesh *m, mesh_placement p, mesh_shape s, mesh_dtype t, const double *values)
{
    mesh_tensor *x = mesh_tensor_new(s, t);
    int64_t n = 1;
    for (int d = 0; d < s.ndim; d++) {
        n *= s.dim[d];
    }
    for (int64_t i = 0; i < n; i++) {
        put(x, i, values[i]);
    }
    return mesh_distribute_same(x, m, MESH_PLACEMENTS(p));
}

static mesh_dtensor *whole(mesh_device_mesh *m, double v)
{
    return laid(m, mesh_replicate(), SHAPE(1), MESH_F64, &v);
}

static int expect(mesh_dtensor *x, const double *want, int n)
{
    REQUIRE(x != NULL);
    mesh_dtensor *wide = mesh_dtype_of(x) == MESH_F64 ? x : mesh_cast(x, MESH_F64);
    mesh_tensor *full = mesh_full_tensor(wide);
    REQUIRE(full != NULL);
    for (int i = 0; i < n; i++) {
        REQUIRE_NEAR(((const double *)mesh_tensor_data(full))[i], want[i], 1e-12);
    }
    return 0;
}

/* Runs what follows in a scope of its own, whose end must be good. */
#define CASE(name)                                                                                                     \
    static int name##_in(mesh_device_mesh *m);                                                                         \
    static int name##_on(void *arg)                                                                                    \
    {                                                                                                                  \
        (void)arg;                                                                                                     \
        mesh_device_mesh *m = line();                                                                                  \
        mesh_scope *scope = mesh_scope_begin();                                                                        \
        REQUIRE(m != NULL && scope != NULL);                                                                           \
        REQUIRE_OK(name##_in(m));                                                                                      \
        REQUIRE(mesh_scope_end(scope) == 0);                                                                           \
        return 0;                                                                                                      \
    }                                                                                                                  \
    START_TEST(name)                                                                                                   \
    {                                                                                                                  \
        ranks_run(2, name##_on, NULL);                                                                                 \
    }                                                                                                                  \
    END_TEST                                                                                                           \
    static int name##_in(mesh_device_mesh *m)

/* --- pending values ------------------------------------------------------------------------------------------------ */

CASE(a_pending_sum_passes_what_is_linear_case95)
{
    mesh_dtensor *x = pending(m, MESH_SUM, 1, VALUES(2, 3));
    mesh_comm_reset();
    mesh_dtensor *twice = mesh_mul_scalar(x, 2), *half = mesh_div(x, whole(m, 2));
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_REDUCE) == 0 && KIND(twice).kind == MESH_IS_PARTIAL);
    EXPECT(twice, 10);
    EXPECT(half, 2.5);
    EXPECT(mesh_div(whole(m, 2), x), 0.4);
    EXPECT(mesh_mul_scalar(mesh_reciprocal(x), 2), 0.4);
    return 0;
}

CASE(a_pending_maximum_passes_what_keeps_or_turns_order_case96)
{
    mesh_dtensor *x = pending(m, MESH_MAX, 2, VALUES(1, 5, 4, 2));
    mesh_dtensor *negative = mesh_neg(x);
    REQUIRE(KIND(negative).kind == MESH_IS_PARTIAL && KIND(negative).op == MESH_MIN);
    EXPECT(mesh_add_scalar(x, 1), 5, 6);
    EXPECT(mesh_mul_scalar(x, -1), -4, -5);
    EXPECT(negative, -4, -5);
    EXPECT(mesh_mul_scalar(x, 2), 8, 10);
    return 0;
}

CASE(a_pending_sum_is_reduced_before_what_is_not_linear_case97)
{
    mesh_dtensor *x = pending(m, MESH_SUM, 1, VALUES(3, -5));
    EXPECT(mesh_abs(x), 2);
    EXPECT(mesh_relu(x), 0);
    EXPECT(mesh_square(x), 4);
    EXPECT(mesh_exp(x), exp(-2));
    EXPECT(mesh_neg(x), 2);
    EXPECT(mesh_clamp(x, -1, 10), -1);
    EXPECT(mesh_sign(x), -1);
    return 0;
}

CASE(averages_case98)
{
    mesh_dtensor *x = pending(m, MESH_AVG, 1, VALUES(2, 4)), *y = pending(m, MESH_SUM, 1, VALUES(1, 3));
    EXPECT(mesh_add_scalar(x, 10), 13);
    EXPECT(mesh_mul_scalar(x, 3), 9);
    EXPECT(mesh_add(x, y), 7);
    return 0;
}

CASE(comparisons_and_choices_of_a_pending_sum_case99)
{
    mesh_dtensor *x = pending(m, MESH_SUM, 1, VALUES(3, -5));
    EXPECT(mesh_gt(x, whole(m, 0)), 0);
    EXPECT(mesh_eq(x, whole(m, -2)), 1);
    EXPECT(mesh_where(mesh_lt(x, whole(m, 0)), whole(m, 1), whole(m, 0)), 1);
    return 0;
}

CASE(monotone_functions_keep_pending_extremes)
{
    mesh_dtensor *x = pending(m, MESH_MAX, 2, VALUES(-1.5, 2.5, 0.25, -3));
    mesh_dtensor *y[] = { mesh_exp(x),   mesh_expm1(x), mesh_erf(x),  mesh_sigmoid(x),      mesh_ceil(x),
                          mesh_floor(x), mesh_round(x), mesh_sign(x), mesh_clamp(x, -1, 1), mesh_tanh(x) };
    mesh_comm_reset();
    for (size_t i = 0; i < sizeof y / sizeof y[0]; i++) {
        REQUIRE(y[i] != NULL && KIND(y[i]).kind == MESH_IS_PARTIAL && KIND(y[i]).op == MESH_MAX);
    }
    EXPECT(y[0], exp(0.25), exp(2.5));
    EXPECT(y[4], 1, 3);
    EXPECT(y[8], 0.25, 1);
    return 0;
}

CASE(extremes_of_pending_extremes)
{
    mesh_dtensor *x = pending(m, MESH_MAX, 1, VALUES(1, 4)), *y = pending(m, MESH_MAX, 1, VALUES(3, 2));
    mesh_dtensor *least = pending(m, MESH_MIN, 1, VALUES(1, 4)), *other = pending(m, MESH_MIN, 1, VALUES(3, 2));
    mesh_comm_reset();
    mesh_dtensor *both = mesh_maximum(x, y), *one = mesh_maximum(least, whole(m, 3));
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_REDUCE) == 0);
    REQUIRE(KIND(both).op == MESH_MAX && KIND(one).op == MESH_MIN);
    EXPECT(both, 4);
    EXPECT(one, 3);
    EXPECT(mesh_maximum(least, other), 2); /* not by parts, which gives 3 */
    EXPECT(mesh_minimum(least, other), 1);
    EXPECT(mesh_minimum(x, y), 3);
    return 0;
}

CASE(choices_keep_pending_sums_where_both_are)
{
    mesh_dtensor *yes = laid(m, mesh_replicate(), SHAPE(2), MESH_BOOL, VALUES(1, 0));
    mesh_dtensor *a = pending(m, MESH_SUM, 2, VALUES(1, 2, 10, 20)), *b = pending(m, MESH_SUM, 2, VALUES(3, 4, 30, 40));
    mesh_comm_reset();
    mesh_dtensor *y = mesh_where(yes, a, b), *zeroed = mesh_masked_fill(a, yes, 0), *mixed = mesh_lerp(a, b, 0.25);
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_REDUCE) == 0);
    REQUIRE(KIND(y).op == MESH_SUM && KIND(zeroed).op == MESH_SUM && KIND(mixed).op == MESH_SUM);
    EXPECT(y, 11, 44);
    EXPECT(zeroed, 0, 22);
    EXPECT(mixed, 11 * 0.75 + 33 * 0.25, 22 * 0.75 + 44 * 0.25);
    EXPECT(mesh_masked_fill(a, yes, -2), -2, 22);
    return 0;
}

CASE(triangles_send_nothing_whatever_the_layout)
{
    double nine[9] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
    for (int k = 0; k < 4; k++) {
        mesh_placement p = k < 2 ? mesh_shard(k) : k == 2 ? mesh_replicate() : mesh_partial(MESH_SUM);
        mesh_dtensor *x = laid(m, p, SHAPE(3, 3), MESH_F64, nine);
        mesh_comm_reset();
        mesh_dtensor *low = mesh_tril(x, 0), *high = mesh_triu(x, 1);
        for (int kind = MESH_COMM_ALL_REDUCE; kind <= MESH_COMM_BARRIER; kind++) {
            REQUIRE(mesh_comm_count((mesh_comm_kind)kind) == 0);
        }
        EXPECT(low, 1, 0, 0, 4, 5, 0, 7, 8, 9);
        EXPECT(high, 0, 2, 3, 0, 0, 6, 0, 0, 0);
    }
    return 0;
}

/* --- dtypes -------------------------------------------------------------------------------------------------------- */

static const struct {
    mesh_dtype a, b, both;
} promotions[] = {
    { MESH_BOOL, MESH_I32, MESH_I32 }, { MESH_I32, MESH_I64, MESH_I64 },  { MESH_I64, MESH_F32, MESH_F32 },
    { MESH_F32, MESH_F64, MESH_F64 },  { MESH_BOOL, MESH_F32, MESH_F32 }, { MESH_U8, MESH_I32, MESH_I32 },
    { MESH_I64, MESH_F64, MESH_F64 },  { MESH_F64, MESH_F64, MESH_F64 },
};

CASE(two_dtypes_become_the_wider_one)
{
    for (size_t k = 0; k < sizeof promotions / sizeof promotions[0]; k++) {
        for (int turned = 0; turned < 2; turned++) {
            mesh_dtype ta = turned ? promotions[k].b : promotions[k].a, tb = turned ? promotions[k].a : promotions[k].b;
            mesh_dtensor *a = laid(m, mesh_shard(0), SHAPE(3), ta, VALUES(1, 0, 1));
            mesh_dtensor *b = laid(m, mesh_replicate(), SHAPE(3), tb, VALUES(1, 1, 0));
            mesh_dtensor *sum = mesh_add(a, b), *larger = mesh_maximum(a, b), *same = mesh_eq(a, b);
            REQUIRE(sum != NULL && larger != NULL && same != NULL);
            REQUIRE(mesh_dtype_of(sum) == promotions[k].both && mesh_dtype_of(larger) == promotions[k].both);
            REQUIRE(mesh_dtype_of(same) == MESH_BOOL);
            EXPECT(sum, 2, 1, 1);
            EXPECT(larger, 1, 1, 1);
            EXPECT(same, 1, 0, 0);
            EXPECT(mesh_where(mesh_ne(a, b), a, b), 1, 0, 1);
        }
    }
    return 0;
}

static mesh_dtensor *attended(mesh_dtensor *a, mesh_dtensor *b)
{
    return mesh_scaled_dot_product_attention(a, b, b);
}
static mesh_dtensor *convolved(mesh_dtensor *a, mesh_dtensor *b)
{
    mesh_shape image = SHAPE(1, 1, 2, 2);
    return mesh_conv2d(mesh_reshape(a, image), mesh_reshape(b, image), mesh_reshape(mesh_sum(a), SHAPE(1)));
}
static mesh_dtensor *summed_products(mesh_dtensor *a, mesh_dtensor *b)
{
    return mesh_einsum("mk,nk->mn", a, b);
}
static mesh_dtensor *with_bias(mesh_dtensor *a, mesh_dtensor *b)
{
    return mesh_linear(a, a, mesh_select(b, 0, 0));
}
static mesh_dtensor *biased(mesh_dtensor *a, mesh_dtensor *b)
{
    return mesh_addmm(a, b, b);
}
static mesh_dtensor *stacked(mesh_dtensor *a, mesh_dtensor *b)
{
    mesh_shape one = SHAPE(1, 2, 2);
    return mesh_bmm(mesh_reshape(a, one), mesh_reshape(b, one));
}
static mesh_dtensor *normalized(mesh_dtensor *a, mesh_dtensor *b)
{
    return mesh_layer_norm(a, 1, mesh_select(b, 0, 0), mesh_select(a, 0, 1), 1e-5);
}
static mesh_dtensor *normalized_rms(mesh_dtensor *a, mesh_dtensor *b)
{
    return mesh_rms_norm(a, 1, mesh_select(b, 0, 0), 1e-5);
}
static mesh_dtensor *scattered(mesh_dtensor *a, mesh_dtensor *b)
{
    return mesh_scatter_add(a, mesh_cast(mesh_zeros_like(a), MESH_I64), b, 0);
}

/* Whatever meets in a product is as if it had been cast by hand, and the gradient is cast back. */
CASE(products_and_norms_of_two_dtypes_become_the_wider_one)
{
    static mesh_dtensor *(*const functions[])(mesh_dtensor * a, mesh_dtensor * b) = {
        mesh_matmul, attended, convolved,  summed_products, with_bias,
        biased,      stacked,  normalized, normalized_rms,  scattered,
    };
    static const mesh_dtype narrower[] = { MESH_I32, MESH_F16, MESH_F32 };
    for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++) {
        for (int k = 0; k < 6; k++) {
            mesh_dtensor *x = laid(m, mesh_shard(k % 2), SHAPE(2, 2), MESH_F64, VALUES(1, 2, -3, 5));
            mesh_dtensor *y = laid(m, mesh_shard(0), SHAPE(2, 2), MESH_F64, VALUES(0.5, -1, 4, 0.25));
            mesh_dtensor *narrow = mesh_detach(mesh_cast(x, narrower[k / 2]));
            narrow = k / 2 > 0 ? mesh_requires_grad(narrow, true) : narrow;
            mesh_dtensor *one = functions[f](narrow, y), *turned = functions[f](y, narrow);
            REQUIRE(one != NULL && turned != NULL);
            REQUIRE(mesh_dtype_of(one) == MESH_F64 && mesh_dtype_of(turned) == MESH_F64);
            REQUIRE(mesh_equal(one, functions[f](x, y)) && mesh_equal(turned, functions[f](y, x)));
            REQUIRE(k / 2 == 0 || mesh_backward(mesh_sum(one)) == 0);
            REQUIRE(k / 2 == 0 || mesh_dtype_of(mesh_grad(narrow)) == narrower[k / 2]);
        }
    }
    return 0;
}

CASE(a_gradient_has_its_tensors_dtype)
{
    mesh_dtensor *x = mesh_requires_grad(laid(m, mesh_shard(0), SHAPE(3), MESH_F32, VALUES(1, 2, 3)), true);
    mesh_dtensor *w = laid(m, mesh_replicate(), SHAPE(3), MESH_F64, VALUES(0.5, -1, 4));
    REQUIRE(mesh_backward(mesh_sum(mesh_mul(x, w))) == 0);
    REQUIRE(mesh_dtype_of(mesh_grad(x)) == MESH_F32);
    EXPECT(mesh_grad(x), 0.5, -1, 4);
    return 0;
}

/* 2049 needs 12 bits, f16 has 11: rounding each partial sum would lose the ones. */
CASE(floats_of_16_bits_are_computed_in_32)
{
    for (int k = 0; k < 2; k++) {
        mesh_dtype t = k ? MESH_BF16 : MESH_F16;
        mesh_dtensor *x = mesh_cast(laid(m, mesh_shard(0), SHAPE(2, 2), MESH_F32, VALUES(1, 2, -3, 0.5)), t);
        mesh_dtensor *w = mesh_cast(laid(m, mesh_replicate(), SHAPE(2, 2), MESH_F32, VALUES(2, 0, 1, 4)), t);
        x = mesh_requires_grad(mesh_detach(x), true);
        mesh_dtensor *y = mesh_relu(mesh_add_scalar(mesh_matmul(x, w), 1));
        REQUIRE(y != NULL && mesh_dtype_of(y) == t);
        EXPECT(y, 5, 9, 0, 3);
        REQUIRE(mesh_backward(mesh_sum(y)) == 0);
        REQUIRE(mesh_dtype_of(mesh_grad(x)) == t);
        EXPECT(mesh_grad(x), 2, 5, 0, 4);
        mesh_dtensor *both = mesh_mul(x, mesh_cast(w, k ? MESH_F16 : MESH_BF16));
        REQUIRE(both != NULL && mesh_dtype_of(both) == MESH_F32);
        EXPECT(both, 2, 0, -3, 2);
        EXPECT(mesh_softmax(mesh_sub(x, x), 1), 0.5, 0.5, 0.5, 0.5);
    }
    mesh_dtensor *big = laid(m, mesh_replicate(), SHAPE(5), MESH_F32, VALUES(2048, 1, 1, 1, 1));
    EXPECT(mesh_sum(mesh_cast(big, MESH_F16)), 2052);
    return 0;
}

/* --- gradients where there is more than one answer ----------------------------------------------------------------- */

CASE(ties_share_the_gradient_by_half)
{
    mesh_dtensor *a = mesh_requires_grad(laid(m, mesh_shard(0), SHAPE(3), MESH_F64, VALUES(1, 2, 5)), true);
    mesh_dtensor *b = mesh_requires_grad(laid(m, mesh_replicate(), SHAPE(3), MESH_F64, VALUES(1, 3, 4)), true);
    REQUIRE(mesh_backward(mesh_sum(mesh_maximum(a, b))) == 0);
    EXPECT(mesh_grad(a), 0.5, 0, 1);
    EXPECT(mesh_grad(b), 0.5, 1, 0);
    REQUIRE(mesh_backward(mesh_sum(mesh_minimum(a, b))) == 0); /* adds */
    EXPECT(mesh_grad(a), 1, 1, 1);
    EXPECT(mesh_grad(b), 1, 1, 1);
    return 0;
}

CASE(kinks_and_bounds_as_pytorch_has_them)
{
    mesh_dtensor *x = mesh_requires_grad(laid(m, mesh_shard(0), SHAPE(4), MESH_F64, VALUES(-1, 0, 1, 2)), true);
    mesh_dtensor *y = mesh_add(mesh_abs(x), mesh_mul_scalar(mesh_clamp(x, -1, 1), 10));
    REQUIRE(mesh_backward(mesh_sum(mesh_add(y, mesh_mul_scalar(mesh_leaky_relu(x, 0.5), 100)))) == 0);
    EXPECT(mesh_grad(x), -1 + 10 + 50, 10 + 50, 1 + 10 + 100, 1 + 100);
    return 0;
}

CASE(zero_to_a_power_has_a_finite_gradient)
{
    mesh_dtensor *x = mesh_requires_grad(laid(m, mesh_shard(0), SHAPE(3), MESH_F64, VALUES(0, 0, 2)), true);
    mesh_dtensor *e = mesh_requires_grad(laid(m, mesh_shard(0), SHAPE(3), MESH_F64, VALUES(0, 2, 2)), true);
    REQUIRE(mesh_backward(mesh_sum(mesh_pow(x, e))) == 0);
    EXPECT(mesh_grad(x), 0, 0, 4);
    EXPECT(mesh_grad(e), 0, 0, 4 * log(2));
    return 0;
}

CASE(comparisons_of_tensors_with_gradients_are_constants)
{
    mesh_dtensor *x = mesh_requires_grad(laid(m, mesh_shard(0), SHAPE(3), MESH_F64, VALUES(-1, 2, 3)), true);
    mesh_dtensor *mask = mesh_logical_not(mesh_gt(x, whole(m, 0)));
    REQUIRE(mesh_backward(mesh_sum(mesh_masked_fill(mesh_square(x), mask, 7))) == 0);
    EXPECT(mesh_grad(x), 0, 4, 6);
    return 0;
}

/* --- one answer for all ranks -------------------------------------------------------------------------------------- */

CASE(broadcasting_over_shards_case115)
{
    mesh_dtensor *a = laid(m, mesh_shard(0), SHAPE(5, 1), MESH_F64, VALUES(0, 1, 2, 3, 4));
    for (int d = 0; d < 2; d++) {
        mesh_dtensor *b = laid(m, d ? mesh_shard(1) : mesh_replicate(), SHAPE(1, 3), MESH_F64, VALUES(0, 10, 20));
        mesh_dtensor *y = mesh_maximum(a, b);
        EXPECT(y, 0, 10, 20, 1, 10, 20, 2, 10, 20, 3, 10, 20, 4, 10, 20);
        REQUIRE(d == 1 || (KIND(y).kind == MESH_IS_SHARD && KIND(y).dim == 0));
    }
    return 0;
}

CASE(equal_is_the_same_on_every_rank_case116)
{
    mesh_dtensor *a = laid(m, mesh_shard(0), SHAPE(3), MESH_F64, VALUES(1, 2, 3));
    mesh_dtensor *b = laid(m, mesh_replicate(), SHAPE(3), MESH_F64, VALUES(1, 2, 3));
    mesh_dtensor *c = laid(m, mesh_shard(0), SHAPE(3), MESH_F64, VALUES(1, 2, 4)); /* differs on the last rank */
    mesh_dtensor *nan = laid(m, mesh_shard(0), SHAPE(1), MESH_F64, VALUES(NAN));
    REQUIRE(mesh_equal(a, b) && mesh_equal(b, a) && mesh_equal(a, a));
    REQUIRE(!mesh_equal(a, c) && !mesh_equal(c, b) && !mesh_equal(nan, nan));
    REQUIRE(mesh_equal(a, laid(m, mesh_replicate(), SHAPE(3), MESH_I64, VALUES(1, 2, 3))));
    REQUIRE(!mesh_equal(a, laid(m, mesh_replicate(), SHAPE(3, 1), MESH_F64, VALUES(1, 2, 3))));
    REQUIRE(mesh_equal(pending(m, MESH_SUM, 2, VALUES(1, 0, 1, 5)),
                       laid(m, mesh_shard(0), SHAPE(2), MESH_F32, VALUES(2, 5))));
    REQUIRE(
        mesh_equal(laid(m, mesh_shard(0), SHAPE(0), MESH_F64, NULL), laid(m, mesh_shard(0), SHAPE(0), MESH_F64, NULL)));
    return 0;
}

/* What is refused, and what the sentence says. */
static int refused(mesh_status status, const char *words)
{
    REQUIRE(mesh_scope_status(NULL) == (int)status);
    REQUIRE(strstr(mesh_last_error()->message, words) != NULL);
    return 0;
}

#define REFUSED(call, status, words)                                                                                   \
    do {                                                                                                               \
        mesh_scope *scope = mesh_scope_begin();                                                                        \
        (void)(call);                                                                                                  \
        REQUIRE_OK(refused((status), (words)));                                                                        \
        (void)!mesh_scope_end(scope);                                                                                  \
    } while (0)

CASE(what_cannot_be_multiplied_is_refused_before_a_cast)
{
    mesh_dtensor *x = laid(m, mesh_partial(MESH_SUM), SHAPE(2, 3), MESH_I32, VALUES(1, 2, 3, 4, 5, 6));
    mesh_comm_reset();
    REFUSED(mesh_matmul(x, laid(m, mesh_replicate(), SHAPE(2, 2), MESH_F32, VALUES(1, 0, 0, 1))), MESH_ESHAPE,
            "3 != 2");
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_REDUCE) == 0);
    return 0;
}

CASE(refusals_name_operator_argument_and_way_out_case118)
{
    mesh_device_mesh *other = mesh_init_device_mesh("cpu", SHAPE(1, 2), NULL);
    mesh_dtensor *x = laid(m, mesh_shard(0), SHAPE(3), MESH_F64, VALUES(1, 2, 3));
    mesh_dtensor *whole_numbers = laid(m, mesh_shard(0), SHAPE(3), MESH_I64, VALUES(1, 2, 3));
    mesh_dtensor *far = mesh_ones(SHAPE(3), other, MESH_PLACEMENTS(mesh_replicate(), mesh_shard(0)));
    REFUSED(mesh_maximum(x, far), MESH_EINVAL, "maximum: argument 1 is on mesh (2), argument 2 on mesh (1, 2)");
    REFUSED(mesh_equal(x, far), MESH_EINVAL, "on mesh");
    REFUSED(mesh_where(x, x, x), MESH_EINVAL, "where: argument 1 is f64; it must be bool");
    REFUSED(mesh_masked_fill(whole_numbers, mesh_gt(x, x), 0.5), MESH_EINVAL, "0.5 is not a number");
    REFUSED(mesh_pow_scalar(whole_numbers, -1), MESH_EINVAL, "negative power");
    REFUSED(mesh_clamp(x, NAN, 1), MESH_EINVAL, "a bound is NaN");
    REFUSED(mesh_exp(whole_numbers), MESH_EUNSUPPORTED, "exp: i64 is not a floating dtype");
    REFUSED(mesh_tril(x, 0), MESH_ESHAPE, "at least 2 dims");
    REFUSED(mesh_lt(x, mesh_ones(SHAPE(2), m, MESH_PLACEMENTS(mesh_replicate()))), MESH_ESHAPE, "lt");
    REFUSED(mesh_cast(x, (mesh_dtype)77), MESH_EINVAL, "77 is not a dtype");
    REFUSED(mesh_abs(NULL), MESH_EINVAL, "input 1 is NULL");
    return 0;
}

/* --- in place ------------------------------------------------------------------------------------------------------ */

CASE(in_place_forms_keep_the_layout_or_refuse_case105_case106)
{
    mesh_dtensor *x = pending(m, MESH_SUM, 1, VALUES(64, 64)), *ten = whole(m, 10);
    mesh_comm_reset();
    REFUSED(mesh_clamp_(x, -INFINITY, 10), MESH_EINVAL, "use mesh_clamp(), which makes a new tensor");
    REFUSED(mesh_relu_(x), MESH_EINVAL, "its parts cannot be changed one by one");
    REFUSED(mesh_add_(ten, x), MESH_EINVAL, "is pending on mesh dim 0");
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_REDUCE) == 0);
    EXPECT(mesh_clamp(x, -INFINITY, 10), 10);
    mesh_dtensor *y = pending(m, MESH_SUM, 1, VALUES(1, 2));
    mesh_comm_reset();
    REQUIRE(mesh_add_(y, ten) == y && KIND(y).kind == MESH_IS_PARTIAL && KIND(y).op == MESH_SUM);
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_REDUCE) == 0);
    EXPECT(y, 13);
    EXPECT(mesh_mul_scalar_(mesh_sub_(y, y), 3), 0);
    EXPECT(mesh_fill_(y, 7), 7);
    EXPECT(mesh_copy_(y, x), 128);
    mesh_dtensor *most = pending(m, MESH_MAX, 2, VALUES(1, 5, 4, 2));
    EXPECT(mesh_clamp_(mesh_add_(most, ten), 0, 14.5), 14, 14.5);
    REQUIRE(KIND(most).op == MESH_MAX);
    REFUSED(mesh_neg_(most), MESH_EINVAL, "neg_");
    return 0;
}

CASE(in_place_forms_write_into_the_memory_that_is_there)
{
    mesh_dtensor *x = laid(m, mesh_shard(0), SHAPE(3), MESH_F32, VALUES(1, 2, 3)), *same = mesh_detach(x);
    mesh_dtensor *row = laid(m, mesh_shard(0), SHAPE(1), MESH_I64, VALUES(2));
    REQUIRE(mesh_mul_(x, row) == x && mesh_dtype_of(x) == MESH_F32 && KIND(x).kind == MESH_IS_SHARD);
    EXPECT(same, 2, 4, 6);
    EXPECT(mesh_div_(mesh_add_scalar_(x, 2), row), 2, 3, 4);
    EXPECT(mesh_neg_(mesh_relu_(mesh_neg_(same))), 0, 0, 0);
    EXPECT(mesh_copy_(x, row), 2, 2, 2);
    EXPECT(mesh_fill_(same, 0.5), 0.5, 0.5, 0.5);
    EXPECT(x, 0.5, 0.5, 0.5);
    REFUSED(mesh_add_(row, x), MESH_EINVAL, "x is i64 and cannot keep what becomes f32");
    REFUSED(mesh_add_(whole(m, 1), laid(m, mesh_replicate(), SHAPE(3), MESH_F64, VALUES(1, 2, 3))), MESH_ESHAPE, "[3]");
    REFUSED(mesh_add_(mesh_requires_grad(x, true), row), MESH_ESTATE, "requires a gradient");
    return 0;
}

Suite *test_suite(void)
{
    Suite *s = suite_create("pointwise");
    TCase *t = tcase_create("pointwise");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_pending_sum_passes_what_is_linear_case95);
    tcase_add_test(t, a_pending_maximum_passes_what_keeps_or_turns_order_case96);
    tcase_add_test(t, a_pending_sum_is_reduced_before_what_is_not_linear_case97);
    tcase_add_test(t, averages_case98);
    tcase_add_test(t, comparisons_and_choices_of_a_pending_sum_case99);
    tcase_add_test(t, monotone_functions_keep_pending_extremes);
    tcase_add_test(t, extremes_of_pending_extremes);
    tcase_add_test(t, choices_keep_pending_sums_where_both_are);
    tcase_add_test(t, triangles_send_nothing_whatever_the_layout);
    tcase_add_test(t, two_dtypes_become_the_wider_one);
    tcase_add_test(t, products_and_norms_of_two_dtypes_become_the_wider_one);
    tcase_add_test(t, what_cannot_be_multiplied_is_refused_before_a_cast);
    tcase_add_test(t, a_gradient_has_its_tensors_dtype);
    tcase_add_test(t, floats_of_16_bits_are_computed_in_32);
    tcase_add_test(t, ties_share_the_gradient_by_half);
    tcase_add_test(t, kinks_and_bounds_as_pytorch_has_them);
    tcase_add_test(t, zero_to_a_power_has_a_finite_gradient);
    tcase_add_test(t, comparisons_of_tensors_with_gradients_are_constants);
    tcase_add_test(t, broadcasting_over_shards_case115);
    tcase_add_test(t, equal_is_the_same_on_every_rank_case116);
    tcase_add_test(t, refusals_name_operator_argument_and_way_out_case118);
    tcase_add_test(t, in_place_forms_keep_the_layout_or_refuse_case105_case106);
    tcase_add_test(t, in_place_forms_write_into_the_memory_that_is_there);
    suite_add_tcase(s, t);
    return s;
}
