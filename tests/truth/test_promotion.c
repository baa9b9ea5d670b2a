/* tests/truth/test_promotion.c - inputs of two dtypes: every operator that takes several inputs, with every pair of
 * dtypes.
 *
 * The ladder is written out here once more; what the operator then has to do is what it does with inputs that the
 * program cast itself, to the bit, or refuse as it does.  On one rank, and on two with the inputs in several layouts.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/dtype.h"
#include "dtensor/dtensor.h"
#include "harness/check_main.h"
#include "harness/ranks.h"

#define SHAPE(...) MESH_SHAPE(__VA_ARGS__)

static const mesh_dtype dtypes[] = { MESH_BOOL, MESH_U8,   MESH_I8,  MESH_I32, MESH_I64,
                                     MESH_F16,  MESH_BF16, MESH_F32, MESH_F64 };
enum { N = sizeof dtypes / sizeof dtypes[0], EDGE = 4 };

/* Row and column in the order above. */
#define B MESH_BOOL
#define U MESH_U8
#define C MESH_I8
#define I MESH_I32
#define L MESH_I64
#define H MESH_F16
#define G MESH_BF16
#define F MESH_F32
#define D MESH_F64
static const mesh_dtype both_of[N][N] = {
    { B, U, C, I, L, H, G, F, D }, { U, U, I, I, L, H, G, F, D }, { C, I, C, I, L, H, G, F, D },
    { I, I, I, I, L, H, G, F, D }, { L, L, L, L, L, H, G, F, D }, { H, H, H, H, H, H, F, F, D },
    { G, G, G, G, G, F, G, F, D }, { F, F, F, F, F, F, F, F, D }, { D, D, D, D, D, D, D, D, D },
};
static const int kind_of[] = { [B] = 0, [U] = 1, [C] = 1, [I] = 1, [L] = 1, [H] = 2, [G] = 2, [F] = 2, [D] = 2 };

/* --- operators of two inputs, both [4,4] -------------------------------------------------------------------------- */

typedef mesh_dtensor *(*pair_fn)(mesh_dtensor *a, mesh_dtensor *b);

/* 0 1 2 3 0 1 ... on the mesh of a tensor, i64, replicated; to `last` 3 or 1. */
static mesh_dtensor *whole_numbers(mesh_dtensor *like, int last)
{
    mesh_device_mesh *m = mesh_device_mesh_of(like);
    mesh_placements whole = MESH_PLACEMENTS(mesh_replicate());
    mesh_dtensor *n = mesh_arange(0, EDGE * EDGE, 1, m, whole, .dtype = MESH_I64);
    return mesh_bitwise_and(mesh_reshape(n, SHAPE(EDGE, EDGE)),
                            mesh_full(MESH_SCALAR_SHAPE, last, m, whole, .dtype = MESH_I64));
}
static mesh_dtensor *row_of(mesh_dtensor *x)
{
    return mesh_redistribute(mesh_select(x, 0, 1), MESH_PLACEMENTS(mesh_replicate()));
}
static mesh_dtensor *lerp(mesh_dtensor *a, mesh_dtensor *b)
{
    return mesh_lerp(a, b, 0.25);
}
static mesh_dtensor *where(mesh_dtensor *a, mesh_dtensor *b)
{
    return mesh_where(mesh_cast(whole_numbers(a, 1), MESH_BOOL), a, b);
}
static mesh_dtensor *linear(mesh_dtensor *a, mesh_dtensor *b)
{
    return mesh_linear(a, b, NULL);
}
static mesh_dtensor *linear_bias(mesh_dtensor *a, mesh_dtensor *b)
{
    return mesh_linear(a, a, row_of(b));
}
static mesh_dtensor *addmm(mesh_dtensor *a, mesh_dtensor *b)
{
    return mesh_addmm(b, a, a);
}
static mesh_dtensor *addmm_product(mesh_dtensor *a, mesh_dtensor *b)
{
    return mesh_addmm(a, a, b);
}
static mesh_dtensor *bmm(mesh_dtensor *a, mesh_dtensor *b)
{
    return mesh_bmm(mesh_unsqueeze(a, 0), mesh_unsqueeze(b, 0));
}
static mesh_dtensor *einsum(mesh_dtensor *a, mesh_dtensor *b)
{
    return mesh_einsum("ik,jk->ij", a, b);
}
static mesh_dtensor *cat(mesh_dtensor *a, mesh_dtensor *b)
{
    return mesh_cat((mesh_dtensor *[]){ a, b, a }, 3, 1);
}
static mesh_dtensor *stack(mesh_dtensor *a, mesh_dtensor *b)
{
    return mesh_stack((mesh_dtensor *[]){ a, b }, 2, 0);
}
static mesh_dtensor *scatter_add(mesh_dtensor *a, mesh_dtensor *b)
{
    return mesh_scatter_add(a, whole_numbers(a, 3), b, 1);
}
static mesh_dtensor *mse(mesh_dtensor *a, mesh_dtensor *b)
{
    return mesh_mse_loss(a, b, MESH_REDUCTION_NONE);
}
static mesh_dtensor *layer_norm(mesh_dtensor *a, mesh_dtensor *b)
{
    return mesh_layer_norm(a, 1, row_of(b), row_of(a), 1e-5);
}
static mesh_dtensor *rms_norm(mesh_dtensor *a, mesh_dtensor *b)
{
    return mesh_rms_norm(a, 1, row_of(b), 1e-5);
}
static mesh_dtensor *cross_entropy(mesh_dtensor *a, mesh_dtensor *b)
{
    return mesh_cross_entropy(a, row_of(whole_numbers(a, 3)), .weight = row_of(b));
}
static mesh_dtensor *nll(mesh_dtensor *a, mesh_dtensor *b)
{
    return mesh_nll_loss(a, row_of(whole_numbers(a, 3)), .weight = row_of(b));
}
static mesh_dtensor *conv(mesh_dtensor *a, mesh_dtensor *b)
{
    return mesh_conv2d(mesh_reshape(a, SHAPE(1, 1, EDGE, EDGE)), mesh_reshape(b, SHAPE(1, 1, EDGE, EDGE)), NULL);
}
static mesh_dtensor *attention(mesh_dtensor *a, mesh_dtensor *b)
{
    mesh_dtensor *q = mesh_reshape(a, SHAPE(1, 1, EDGE, EDGE)), *k = mesh_reshape(b, SHAPE(1, 1, EDGE, EDGE));
    return mesh_scaled_dot_product_attention(q, k, q);
}

/* out = a - 2 b on its parts, of whatever dtype: the registered operator with .promotes. */
static int kernel(const mesh_op_call *call)
{
    mesh_tensor *a = call->in[0], *b = call->in[1];
    mesh_dtype t = mesh_tensor_dtype(a);
    mesh_shape s = mesh_tensor_shape(a);
    int64_t n = 1;
    for (int d = 0; d < s.ndim; d++) {
        n *= s.dim[d];
    }
    if (t != mesh_tensor_dtype(b) || t != mesh_tensor_dtype(call->out)) {
        return MESH_EINVAL;
    }
    for (int64_t i = 0; i < n; i++) {
        if (t == MESH_F64) {
            ((double *)mesh_tensor_data(call->out))[i] =
                ((double *)mesh_tensor_data(a))[i] - 2 * ((double *)mesh_tensor_data(b))[i];
        } else if (t == MESH_F32) {
            ((float *)mesh_tensor_data(call->out))[i] =
                ((float *)mesh_tensor_data(a))[i] - 2 * ((float *)mesh_tensor_data(b))[i];
        } else {
            return MESH_EUNSUPPORTED;
        }
    }
    return 0;
}
/* It knows two dtypes, and says so before. */
static int floats_only(const mesh_op_facts *facts, mesh_shape *inout_shape, mesh_dtype *inout_dtype)
{
    (void)inout_shape;
    (void)inout_dtype;
    return kind_of[facts->dtype[0]] == 2 && facts->dtype[0] == facts->dtype[1] ? 0 : MESH_EUNSUPPORTED;
}
static mesh_dtensor *custom(mesh_dtensor *a, mesh_dtensor *b)
{
    mesh_op *op = mesh_register_op(&(mesh_op_class){ .name = "less_twice",
                                                     .n_in = 2,
                                                     .rule = "ik,ik->ik",
                                                     .shape = floats_only,
                                                     .kernel = kernel,
                                                     .promotes = 0x3 });
    return op == NULL ? NULL : mesh_apply_op(op, (mesh_dtensor *[]){ a, b }, 2, NULL);
}

#define PLAIN(name)                                                                                                    \
    {                                                                                                                  \
#name, mesh_##name, false                                                                                      \
    }
static const struct pair_op {
    const char *name;
    pair_fn run;
    bool is_truth; /* gives bool, whatever comes in */
} pair_ops[] = {
    PLAIN(add),
    PLAIN(sub),
    PLAIN(mul),
    PLAIN(div),
    PLAIN(maximum),
    PLAIN(minimum),
    PLAIN(pow),
    PLAIN(bitwise_and),
    PLAIN(bitwise_or),
    PLAIN(bitwise_xor),
    PLAIN(matmul),
    { "eq", mesh_eq, true },
    { "ne", mesh_ne, true },
    { "lt", mesh_lt, true },
    { "le", mesh_le, true },
    { "gt", mesh_gt, true },
    { "ge", mesh_ge, true },
    { "logical_and", mesh_logical_and, true },
    { "logical_or", mesh_logical_or, true },
    { "lerp", lerp },
    { "where", where },
    { "linear", linear },
    { "linear, bias", linear_bias },
    { "addmm, bias", addmm },
    { "addmm", addmm_product },
    { "bmm", bmm },
    { "einsum", einsum },
    { "cat", cat },
    { "stack", stack },
    { "scatter_add", scatter_add },
    { "mse_loss", mse },
    { "layer_norm", layer_norm },
    { "rms_norm", rms_norm },
    { "cross_entropy, weight", cross_entropy },
    { "nll_loss, weight", nll },
    { "conv2d", conv },
    { "attention", attention },
    { "registered", custom },
};

static const struct in_place_op {
    const char *name;
    pair_fn run, plain;
} in_place_ops[] = {
    { "add_", mesh_add_, mesh_add },
    { "sub_", mesh_sub_, mesh_sub },
    { "mul_", mesh_mul_, mesh_mul },
    { "div_", mesh_div_, mesh_div },
};

/* --- the comparison ----------------------------------------------------------------------------------------------- */

struct outcome {
    int status; /* 0: y is there */
    mesh_dtensor *y;
};

/* Of a try that may be refused: y outlives it. */
static struct outcome attempt(pair_fn run, mesh_dtensor *a, mesh_dtensor *b)
{
    struct outcome o = { .status = 0 };
    mesh_scope *scope = mesh_scope_begin();
    mesh_dtensor *y = run(a, b);
    o.y = y != NULL ? mesh_keep(y) : NULL;
    o.status = mesh_scope_end(scope);
    return o;
}

static bool is_same(mesh_dtensor *a, mesh_dtensor *b)
{
    mesh_tensor *x = mesh_full_tensor(a), *y = mesh_full_tensor(b);
    return x != NULL && y != NULL && x->dtype == y->dtype && x->n == y->n &&
           memcmp(x->data, y->data, tensor_bytes(x)) == 0;
}

static mesh_dtensor *numbers(mesh_device_mesh *m, double from, mesh_dtype t, mesh_placement p)
{
    mesh_placements whole = MESH_PLACEMENTS(mesh_replicate());
    mesh_dtensor *x =
        mesh_reshape(mesh_linspace(from, from + 3, EDGE * EDGE, m, whole, .dtype = MESH_F64), SHAPE(EDGE, EDGE));
    return mesh_redistribute(mesh_cast(x, t), MESH_PLACEMENTS(p));
}

static const struct { /* of the two inputs */
    mesh_placement a, b;
} layouts[] = {
    { { .kind = MESH_IS_REPLICATE }, { .kind = MESH_IS_REPLICATE } },
    { { .kind = MESH_IS_SHARD, .dim = 0 }, { .kind = MESH_IS_SHARD, .dim = 0 } },
    { { .kind = MESH_IS_SHARD, .dim = 1 }, { .kind = MESH_IS_REPLICATE } },
};

static int try_pair(mesh_device_mesh *m, const struct pair_op *op, size_t i, size_t j, size_t layout)
{
    mesh_dtype both = both_of[i][j];
    mesh_dtensor *a = numbers(m, 0, dtypes[i], layouts[layout].a), *b = numbers(m, 1, dtypes[j], layouts[layout].b);
    struct outcome got = attempt(op->run, a, b), want = attempt(op->run, mesh_cast(a, both), mesh_cast(b, both));
    bool fits = got.status == want.status && (got.status != 0 || is_same(got.y, want.y));
    fits = fits && (got.status != 0 || mesh_dtype_of(got.y) == (op->is_truth ? MESH_BOOL : both));
    if (!fits) {
        return ranks_complain(__FILE__, __LINE__, "%s of %s and %s, layout %zu: status %d, dtype %s; as %s status %d",
                              op->name, dtype_name(dtypes[i]), dtype_name(dtypes[j]), layout, got.status,
                              got.y == NULL ? "none" : dtype_name(mesh_dtype_of(got.y)), dtype_name(both), want.status);
    }
    mesh_release(got.y);
    mesh_release(want.y);
    return 0;
}

static int try_in_place(mesh_device_mesh *m, const struct in_place_op *op, size_t i, size_t j, size_t layout)
{
    mesh_dtype both = both_of[i][j];
    mesh_dtensor *a = numbers(m, 0, dtypes[i], layouts[layout].a), *b = numbers(m, 1, dtypes[j], layouts[layout].b);
    mesh_placements before = mesh_placements_of(a);
    struct outcome want = attempt(op->plain, mesh_cast(a, both), mesh_cast(b, both));
    mesh_dtensor *stored = want.y == NULL ? NULL : mesh_cast(want.y, dtypes[i]);
    struct outcome got = attempt(op->run, a, b);
    bool is_lower = kind_of[both] > kind_of[dtypes[i]];
    bool fits =
        is_lower ? got.status == MESH_EINVAL : got.status == want.status && (got.y == NULL || is_same(a, stored));
    if (!fits || !mesh_placements_equal(before, mesh_placements_of(a)) || mesh_dtype_of(a) != dtypes[i]) {
        return ranks_complain(__FILE__, __LINE__, "%s of %s and %s, layout %zu: status %d, wanted %d", op->name,
                              dtype_name(dtypes[i]), dtype_name(dtypes[j]), layout, got.status,
                              is_lower ? MESH_EINVAL : want.status);
    }
    mesh_release(got.y);
    mesh_release(want.y);
    return 0;
}

/* --- C numbers: they fit the tensor's dtype, or are refused ------------------------------------------------------- */

static mesh_dtensor *add_number(mesh_dtensor *x, double v)
{
    return mesh_add_scalar(x, v);
}
static mesh_dtensor *clamp(mesh_dtensor *x, double v)
{
    return mesh_clamp(x, v, v + 1);
}
static mesh_dtensor *masked_fill(mesh_dtensor *x, double v)
{
    return mesh_masked_fill(x, mesh_cast(whole_numbers(x, 1), MESH_BOOL), v);
}
static mesh_dtensor *clamp_in_place(mesh_dtensor *x, double v)
{
    return mesh_clamp_(x, v, v + 1);
}

static const struct {
    const char *name;
    mesh_dtensor *(*run)(mesh_dtensor *x, double v);
    bool takes_bool;
} number_ops[] = {
    { "add_scalar", add_number, false },        { "mul_scalar", mesh_mul_scalar, false },
    { "pow_scalar", mesh_pow_scalar, false },   { "clamp", clamp, false },
    { "masked_fill", masked_fill, true },       { "fill_", mesh_fill_, true },
    { "add_scalar_", mesh_add_scalar_, false }, { "mul_scalar_", mesh_mul_scalar_, false },
    { "clamp_", clamp_in_place, false },
};

static bool fits(mesh_dtype t, double v)
{
    static const double largest[] = { [B] = 255, [U] = 255, [C] = 127, [I] = 2147483647, [L] = 9e18 };
    return kind_of[t] != 1 || (v == (double)(int64_t)v && v <= largest[t]);
}

static int try_number(mesh_device_mesh *m, size_t op, mesh_dtype t, double v)
{
    mesh_scope *scope = mesh_scope_begin();
    mesh_dtensor *x = numbers(m, 0, t, mesh_world_size() == 1 ? mesh_replicate() : mesh_shard(0));
    mesh_dtensor *y = number_ops[op].run(x, v);
    mesh_dtype is = y != NULL ? mesh_dtype_of(y) : t;
    int r = mesh_scope_end(scope);
    bool works = fits(t, v) && (t != B || number_ops[op].takes_bool);
    if (is != t || (r == 0) != works) {
        return ranks_complain(__FILE__, __LINE__, "%s of %s and %g: status %d, dtype %s", number_ops[op].name,
                              dtype_name(t), v, r, dtype_name(is));
    }
    return 0;
}

static int try_numbers(void *arg)
{
    static const double numbers_[] = { 1, 2.5, 100, 300 };
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(mesh_world_size()), MESH_NAMES("x"));
    for (size_t k = 0; k < N * sizeof numbers_ / sizeof numbers_[0]; k++) {
        REQUIRE_OK(try_number(m, *(const size_t *)arg, dtypes[k % N], numbers_[k / N]));
    }
    return 0;
}

START_TEST(a_C_number_never_changes_the_dtype_and_is_refused_when_that_cannot_hold_it)
{
    size_t op = (size_t)_i;
    ranks_run(1, try_numbers, &op);
    ranks_run(2, try_numbers, &op);
}
END_TEST

/* --- operators that a program registered -------------------------------------------------------------------------- */

static int say_nothing(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(2), MESH_NAMES("x"));
    mesh_op_class cls = { .name = "silent", .n_in = 2, .rule = "ik,ik->ik", .kernel = kernel };
    mesh_op *silent = mesh_register_op(&cls);
    mesh_dtensor *in[2] = { numbers(m, 0, F, mesh_shard(0)), numbers(m, 1, D, mesh_shard(0)) };
    mesh_scope *scope = mesh_scope_begin();
    REQUIRE(mesh_apply_op(silent, in, 2, NULL) == NULL);
    REQUIRE(strstr(mesh_last_error()->message, "argument 1 is f32, argument 2 f64") != NULL);
    REQUIRE(mesh_scope_end(scope) == MESH_EINVAL);
    scope = mesh_scope_begin();
    cls.promotes = 0x4;
    REQUIRE(mesh_register_op(&cls) == NULL && mesh_scope_end(scope) == MESH_EINVAL);
    mesh_requires_grad(in[0], true);
    cls.promotes = 0x3;
    mesh_dtensor *y = mesh_apply_op(mesh_register_op(&cls), (mesh_dtensor *[]){ mesh_detach(in[0]), in[1] }, 2, NULL);
    REQUIRE(y != NULL && mesh_dtype_of(y) == D);
    return 0;
}
START_TEST(a_registered_operator_that_says_nothing_of_dtypes_refuses_several)
{
    ranks_run(2, say_nothing, NULL);
}
END_TEST

/* Parts stay parts: of a pending x and one of another dtype. */
static int pending_in_place(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(2), MESH_NAMES("x"));
    static const struct {
        mesh_dtype x, other;
    } pairs[] = { { F, D }, { I, L }, { U, C }, { F, I }, { H, F } };
    for (size_t k = 0; k < sizeof pairs / sizeof pairs[0]; k++) {
        mesh_dtensor *x = numbers(m, 0, pairs[k].x, mesh_partial(MESH_SUM));
        mesh_dtensor *other = numbers(m, 1, pairs[k].other, mesh_replicate());
        mesh_dtensor *both = mesh_add(mesh_redistribute(x, MESH_PLACEMENTS(mesh_replicate())), other);
        mesh_dtensor *want = mesh_cast(both, pairs[k].x);
        REQUIRE(mesh_add_(x, other) == x && mesh_placements_of(x).at[0].kind == MESH_IS_PARTIAL);
        REQUIRE(is_same(x, want));
    }
    return 0;
}
START_TEST(a_pending_x_stays_pending_beside_another_dtype)
{
    ranks_run(2, pending_in_place, NULL);
}
END_TEST

struct job {
    size_t op;
    bool is_in_place;
};

static int try_all(void *arg)
{
    const struct job *job = arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(mesh_world_size()), MESH_NAMES("x"));
    size_t n_layouts = mesh_world_size() == 1 ? 1 : sizeof layouts / sizeof layouts[0];
    for (size_t k = 0; k < N * N * n_layouts; k++) {
        size_t i = k / n_layouts / N, j = k / n_layouts % N, layout = k % n_layouts;
        mesh_scope *scope = mesh_scope_begin();
        REQUIRE_OK(job->is_in_place ? try_in_place(m, &in_place_ops[job->op], i, j, layout)
                                    : try_pair(m, &pair_ops[job->op], i, j, layout));
        REQUIRE(mesh_scope_end(scope) == 0);
    }
    return 0;
}

START_TEST(an_operator_of_two_dtypes_is_that_of_both_cast_to_the_one_that_holds_them)
{
    for (int n = 1; n <= 2; n++) {
        ranks_run(n, try_all, &(struct job){ (size_t)_i, false });
    }
}
END_TEST

START_TEST(a_form_in_place_computes_in_both_and_stores_in_its_own_unless_that_is_of_a_lower_kind)
{
    for (int n = 1; n <= 2; n++) {
        ranks_run(n, try_all, &(struct job){ (size_t)_i, true });
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("promotion");
    TCase *t = tcase_create("promotion");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, an_operator_of_two_dtypes_is_that_of_both_cast_to_the_one_that_holds_them, 0,
                        (int)(sizeof pair_ops / sizeof pair_ops[0]));
    tcase_add_loop_test(t, a_form_in_place_computes_in_both_and_stores_in_its_own_unless_that_is_of_a_lower_kind, 0,
                        (int)(sizeof in_place_ops / sizeof in_place_ops[0]));
    tcase_add_loop_test(t, a_C_number_never_changes_the_dtype_and_is_refused_when_that_cannot_hold_it, 0,
                        (int)(sizeof number_ops / sizeof number_ops[0]));
    tcase_add_test(t, a_registered_operator_that_says_nothing_of_dtypes_refuses_several);
    tcase_add_test(t, a_pending_x_stays_pending_beside_another_dtype);
    suite_add_tcase(s, t);
    return s;
}
