/* tests/unit/tensor/test_vector_levels.c - every kernel with loops for wider vectors gives the same bits at each level
 * that the machine has; only NaN may be another NaN.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/half.h"
#include "base/vector.h"
#include "harness/tensors.h"

/* Rows longer than any vector and their unrolled loops, and no multiple of one; so many that eight of them or four are
 * taken together, and one is left. */
enum { ROWS = 13, COLUMNS = 149 };
enum { N_GROUPS = 8 }; /* of subjects, a process each */

/* A letter per tensor: m [ROWS, COLUMNS]   r [ROWS, 1]   c [COLUMNS]   l [ROWS]   0 []
 * After it may stand its dtype: b bool, i i64, d f64.  Else it is the dtype that is tried. */
struct subject {
    const char *name;
    kernel_fn kernel;
    const char *in, *out;
    struct op_attr attr;
    bool is_for_floats; /* and checks no dtype */
};

/* clang-format off */
#define K(name, in, out, ...) { #name, k_##name, in, out, { __VA_ARGS__ }, false },
#define F(name, in, out, ...) { #name, k_##name, in, out, { __VA_ARGS__ }, true },
static const struct subject subjects[] = {
    K(add, "mm", "m", .keepdim = 0)                K(add, "mc", "m", .keepdim = 0)
    K(sub, "mr", "m", .keepdim = 0)                K(mul, "mm", "m", .keepdim = 0)
    K(div, "mm", "m", .keepdim = 0)                K(div, "rm", "m", .keepdim = 0)
    K(neg, "m", "m", .keepdim = 0)                 K(relu, "m", "m", .keepdim = 0)
    K(mul_scalar, "m", "m", .value = { 3 })        K(add_scalar, "m", "m", .value = { 3 })
    K(tanh, "m", "m", .keepdim = 0)                K(tanh_backward, "mm", "m", .keepdim = 0)
    K(gelu, "m", "m", .mode = 0)                   K(gelu, "m", "m", .mode = 1)
    K(gelu_backward, "mm", "m", .mode = 0)         K(gelu_backward, "mm", "m", .mode = 1)
    K(relu_backward, "mm", "m", .keepdim = 0)
#define UNARY(name, ...) K(name, "m", "m", .value = { 1.25, 2 }) K(name##_backward, "mm", "m", .value = { 1.25, 2 })
#include "tensor/unary.def"
    K(pow_scalar, "m", "m", .value = { 2 })        K(pow_scalar, "m", "m", .value = { -0.5 })
    K(eq, "mm", "mb", .keepdim = 0)                K(lt, "mc", "mb", .keepdim = 0)
    K(ne, "mm", "mb", .keepdim = 0)                K(le, "mm", "mb", .keepdim = 0)
    K(gt, "mm", "mb", .keepdim = 0)                K(ge, "mm", "mb", .keepdim = 0)
    K(isnan, "m", "mb", .keepdim = 0)              K(logical_not, "m", "mb", .keepdim = 0)
    K(logical_and, "mm", "mb", .keepdim = 0)       K(logical_or, "mm", "mb", .keepdim = 0)
    K(bitwise_and, "mm", "m", .keepdim = 0)        K(bitwise_or, "mm", "m", .keepdim = 0)
    K(bitwise_xor, "mm", "m", .keepdim = 0)        K(bitwise_not, "m", "m", .keepdim = 0)
    K(maximum, "mm", "m", .keepdim = 0)            K(minimum, "mc", "m", .keepdim = 0)
    K(maximum_backward, "mmm", "m", .keepdim = 0)  K(minimum_backward, "mmm", "m", .keepdim = 0)
    K(pow, "mm", "m", .keepdim = 0)                K(pow, "mr", "m", .keepdim = 0)
    K(pow_backward, "mmm", "m", .keepdim = 0)      K(pow_backward_exponent, "mmm", "m", .keepdim = 0)
    K(lerp, "mm", "m", .value = { 0.25 })          K(where, "mbmm", "m", .keepdim = 0)
    K(masked_fill, "mmb", "m", .value = { 1 })
    K(sum, "m", "0", .dims = 3)                    K(sum, "m", "r", .dims = 2, .keepdim = 1)
    K(sum, "m", "c", .dims = 1)                    K(sum_to, "m", "c", .keepdim = 0)
    K(amax, "m", "0", .dims = 3)                   K(amax, "m", "c", .dims = 1)
    K(amin, "m", "l", .dims = 2)                   K(amin, "m", "c", .dims = 1)
    K(prod, "m", "l", .dims = 2)                   K(prod, "m", "c", .dims = 1)
    K(all, "m", "lb", .dims = 2)                   K(any, "m", "cb", .dims = 1)
    F(power_sum, "m", "0", .dims = 3, .value = { 2 })
    F(power_sum, "m", "c", .dims = 1, .value = { 1 })
    F(power_sum, "m", "l", .dims = 2, .value = { 3 })
    F(var, "m", "0", .dims = 3, .value = { 1e-3, 1e-3 })
    F(var, "m", "l", .dims = 2, .value = { 1e-3, 1e-3 })
    F(var, "m", "c", .dims = 1, .value = { 1e-3, 1e-3 })
    F(logsumexp, "m", "l", .dims = 2)              F(logsumexp, "m", "c", .dims = 1)
    K(argmax, "m", "li", .dims = 2)                K(argmin, "m", "ci", .dims = 1)
    F(softmax, "m", "m", .dim = { 1 })             F(softmax, "m", "m", .dim = { 0 })
    F(log_softmax, "m", "m", .dim = { 1 })         F(log_softmax, "m", "m", .dim = { 0 })
    F(softmax_backward, "mm", "m", .dim = { 1 })   F(log_softmax_backward, "mm", "m", .dim = { 1 })
    F(softmax_backward, "mm", "m", .dim = { 0 })   F(log_softmax_backward, "mm", "m", .dim = { 0 })
    F(cumsum, "m", "m", .dim = { 1 })              F(cumsum, "m", "m", .dim = { 0 })
    F(cumsum, "mi", "mi", .dim = { 1 })           F(cumsum, "mi", "mi", .dim = { 0 })
    F(layer_norm, "mcc", "m", .value = { 1e-5 }, .index = { 1 })
    F(rms_norm, "mc", "m", .value = { 1e-5 }, .index = { 1 })
    F(normalize_grad_input, "mmc", "m", .value = { 1e-5 }, .index = { 1 })
    F(normalize_grad_weight, "mm", "c", .value = { 1e-5 }, .index = { 1 })
    F(cross_entropy_sum, "mli", "00i", .value = { 0.125, COLUMNS }, .index = { -100 })
    F(cross_entropy_grad, "0mli", "m", .value = { 0.125, COLUMNS }, .index = { -100 })
    K(equal_mask, "mm", "m", .keepdim = 0)         F(squared_difference, "mm", "m", .keepdim = 0)
    F(exp_shifted, "mm", "m", .keepdim = 0)        F(softmax_piece, "mmm", "m", .keepdim = 0)
    F(plus_log, "mm", "m", .keepdim = 0)           F(root, "m", "m", .value = { 3 })
    F(inverse_root, "m", "m", .value = { 1e-5 })   F(norm_backward, "mmm", "m", .value = { 2 })
};
/* clang-format on */

static const struct fill fills[] = { { .kind = FILL_UNIFORM, .a = -1, .b = 2, .key = { 7, 3 } },
                                     { .kind = FILL_NORMAL, .a = 1, .b = 0.5, .key = { 7, 3 } },
                                     { .kind = FILL_MASK, .a = 0.25, .b = 2, .key = { 7, 3 } },
                                     { .kind = FILL_WHOLE, .a = -5, .b = 50, .key = { 7, 3 } } };

static mesh_shape shape_of_letter(char letter)
{
    return letter == 'm'   ? MESH_SHAPE(ROWS, COLUMNS)
           : letter == 'r' ? MESH_SHAPE(ROWS, 1)
           : letter == 'c' ? MESH_SHAPE(COLUMNS)
           : letter == 'l' ? MESH_SHAPE(ROWS)
                           : (mesh_shape){ .ndim = 0 };
}

static bool is_float(mesh_dtype t)
{
    return dtype_kind(t) == DTYPE_FLOAT;
}

/* Numbers around 0; in the second half of each row's places also far ones, and some that no arithmetic likes. */
static struct mesh_tensor *made(mesh_shape shape, mesh_dtype t, uint64_t seed)
{
    static const double odd[] = { 0, -0.0, 1, -1, 1e-40, -1e-310, 3e38, -1e300, 710, -745, 88, -104, 1e7, INFINITY };
    struct mesh_tensor *x = (is_float(t) ? test_tensor_rough : test_tensor)(shape, t, seed);
    for (int64_t i = 0; is_float(t) && i < x->n; i++) {
        if (i % 11 == 3) {
            set(x, i, get(x, i) * 20);
        } else if (i % 13 == 5 && i > 200) {
            set(x, i, odd[(i / 13 + (int64_t)seed) % (int64_t)(sizeof odd / sizeof odd[0])]);
        }
    }
    return x;
}

/* Without those, which leave a row's sums infinite or NaN; each row's numbers are around another one. */
static struct mesh_tensor *made_tame(mesh_shape shape, mesh_dtype t, uint64_t seed)
{
    struct mesh_tensor *x = (is_float(t) ? test_tensor_rough : test_tensor)(shape, t, seed);
    for (int64_t i = 0; is_float(t) && i < x->n; i++) {
        set(x, i, get(x, i) + (double)(i / COLUMNS * 100));
    }
    return x;
}

typedef struct mesh_tensor *(*make_fn)(mesh_shape shape, mesh_dtype t, uint64_t seed);

/* The tensors that `letters` describe; make: NULL leaves them empty.  Returns how many. */
static int make_all(const char *letters, mesh_dtype t, make_fn make, struct mesh_tensor **ret)
{
    int n = 0;
    for (const char *at = letters; *at != '\0'; at++) {
        mesh_dtype own = at[1] == 'b' ? MESH_BOOL : at[1] == 'i' ? MESH_I64 : at[1] == 'd' ? MESH_F64 : t;
        mesh_shape shape = shape_of_letter(*at);
        ret[n] = make == NULL ? test_tensor_empty(shape, own) : make(shape, own, 5 + (uint64_t)n);
        for (int64_t i = 0; own == MESH_I64 && make != NULL && i < ret[n]->n; i++) {
            set(ret[n], i, (double)(i % COLUMNS)); /* classes */
        }
        n++;
        at += at[1] != '\0' && strchr("bid", at[1]) != NULL;
    }
    return n;
}

static double number(const struct mesh_tensor *t, int64_t i)
{
    const uint16_t *half = t->data;
    return t->dtype == MESH_F16    ? (double)half_from_f16(half[i])
           : t->dtype == MESH_BF16 ? (double)half_from_bf16(half[i])
                                   : get(t, i);
}

static bool is_same(const struct mesh_tensor *a, const struct mesh_tensor *b, int64_t i)
{
    size_t item = dtype_size(a->dtype);
    const char *x = (const char *)a->data + (size_t)i * item, *y = (const char *)b->data + (size_t)i * item;
    return memcmp(x, y, item) == 0 || (is_float(a->dtype) && isnan(number(a, i)) && isnan(number(b, i)));
}

static void assert_same(const struct mesh_tensor *want, const struct mesh_tensor *got, const char *name, int level)
{
    for (int64_t i = 0; i < want->n; i++) {
        ck_assert_msg(is_same(want, got, i), "%s, %s, level %d, element %lld: %.17g is not %.17g", name,
                      dtype_name(want->dtype), level, (long long)i, number(got, i), number(want, i));
    }
}

static void teardown(void)
{
    vector_level_set(vector_level_of_machine());
}

/* At every level above the plain one; in: the inputs, which stay. */
static void check_kernel(kernel_fn kernel, const char *name, struct kernel_call *call, const char *out, mesh_dtype t)
{
    struct mesh_tensor *want[OP_MAX_OUTPUTS], *got[OP_MAX_OUTPUTS];
    int n_out = make_all(out, t, NULL, want);
    vector_level_set(VECTOR_PLAIN);
    memcpy(call->out, want, (size_t)n_out * sizeof *want);
    int r = kernel(call);
    for (enum vector_level level = VECTOR_256; r == 0 && level <= vector_level_of_machine(); level++) {
        vector_level_set(level);
        (void)make_all(out, t, NULL, got);
        memcpy(call->out, got, (size_t)n_out * sizeof *got);
        run_kernel(kernel, call);
        for (int o = 0; o < n_out; o++) {
            assert_same(want[o], got[o], name, (int)level);
            tensors_unref(1, got[o]);
        }
    }
    ck_assert_msg(r == 0 || r == MESH_EUNSUPPORTED, "%s: %s", name, mesh_last_error()->message);
    for (int o = 0; o < n_out; o++) {
        tensors_unref(1, want[o]);
    }
}

static void check_subject(const struct subject *s, make_fn make)
{
    static const mesh_dtype dtypes[] = { MESH_F32, MESH_F64, MESH_I8, MESH_U8, MESH_I32, MESH_I64, MESH_BOOL };
    for (size_t k = 0; k < (s->is_for_floats ? 2 : sizeof dtypes / sizeof dtypes[0]); k++) {
        struct mesh_tensor *in[OP_MAX_INPUTS] = { NULL };
        struct kernel_call call = { .attr = &s->attr };
        int n_in = make_all(s->in, dtypes[k], make, in);
        for (int i = 0; i < n_in; i++) {
            call.in[i] = in[i];
        }
        check_kernel(s->kernel, s->name, &call, s->out, dtypes[k]);
        for (int i = 0; i < n_in; i++) {
            tensors_unref(1, in[i]);
        }
    }
}

START_TEST(a_kernel_gives_the_same_bits_at_every_level)
{
    for (size_t i = (size_t)_i; i < sizeof subjects / sizeof subjects[0]; i += N_GROUPS) {
        check_subject(&subjects[i], made);
        if (subjects[i].is_for_floats) {
            check_subject(&subjects[i], made_tame);
        }
    }
}
END_TEST

START_TEST(a_cast_gives_the_same_bits_at_every_level)
{
    static const struct op_attr none;
    const mesh_dtype from = (mesh_dtype)_i;
    for (mesh_dtype to = MESH_F32; to <= MESH_BOOL; to++) {
        struct mesh_tensor *x = made(MESH_SHAPE(ROWS, COLUMNS), MESH_F64, 3), *y = test_tensor_empty(x->shape, from);
        run_kernel(k_cast, &(struct kernel_call){ .in = { x }, .out = { y }, .attr = &none });
        check_kernel(k_cast, "cast", &(struct kernel_call){ .in = { y }, .attr = &none }, "m", to);
        tensors_unref(2, x, y);
    }
}
END_TEST

START_TEST(a_filling_gives_the_same_bits_at_every_level)
{
    static const mesh_dtype dtypes[] = { MESH_F32, MESH_F64, MESH_I64 };
    const struct box whole = { 1, { 0 }, { COLUMNS } };
    for (size_t k = 0; k < sizeof dtypes / sizeof dtypes[0]; k++) {
        struct mesh_tensor *want = test_tensor_empty(MESH_SHAPE(COLUMNS), dtypes[k]);
        vector_level_set(VECTOR_PLAIN);
        int r = tensor_fill(want, want->shape, &whole, &fills[_i]);
        for (enum vector_level level = VECTOR_256; r == 0 && level <= vector_level_of_machine(); level++) {
            struct mesh_tensor *got = test_tensor_empty(MESH_SHAPE(COLUMNS), dtypes[k]);
            vector_level_set(level);
            ck_assert_int_eq(tensor_fill(got, got->shape, &whole, &fills[_i]), 0);
            assert_same(want, got, "fill", (int)level);
            tensors_unref(1, got);
        }
        tensors_unref(1, want);
    }
}
END_TEST

/* p, g, m, v after one step. */
static void step(struct mesh_tensor **t, mesh_dtype dtype, bool is_adam)
{
    (void)make_all("mmmm", dtype, made, t);
    for (int64_t i = 0; i < t[3]->n; i++) {
        set(t[3], i, fabs(get(t[3], i)));
    }
    const struct sgd_step sgd = { .lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true };
    const struct adamw_step adam = {
        .lr = 0.1, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0.01, .number = 3
    };
    int r = is_adam ? k_adamw_step(t[0], t[1], t[2], t[3], &adam) : k_sgd_step(t[0], t[1], t[2], &sgd);
    ck_assert_int_eq(r, 0);
}

START_TEST(an_optimizer_gives_the_same_bits_at_every_level)
{
    for (mesh_dtype t = MESH_F32; t <= MESH_F64; t++) {
        struct mesh_tensor *want[4], *got[4];
        vector_level_set(VECTOR_PLAIN);
        step(want, t, _i == 1);
        for (enum vector_level level = VECTOR_256; level <= vector_level_of_machine(); level++) {
            vector_level_set(level);
            step(got, t, _i == 1);
            for (int k = 0; k < 4; k++) {
                assert_same(want[k], got[k], _i == 1 ? "adamw" : "sgd", (int)level);
                tensors_unref(1, got[k]);
            }
        }
        tensors_unref(4, want[0], want[1], want[2], want[3]);
    }
}
END_TEST

START_TEST(another_bit_is_seen)
{
    struct mesh_tensor *a = made(MESH_SHAPE(ROWS, COLUMNS), MESH_F32, 1), *b = made(a->shape, MESH_F32, 1);
    ck_assert(is_same(a, b, 7));
    ((uint32_t *)b->data)[7] ^= 1;
    ck_assert(!is_same(a, b, 7));
    tensors_unref(2, a, b);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("vector levels");
    TCase *t = tcase_create("vector levels");
    tcase_add_checked_fixture(t, NULL, teardown);
    tcase_add_loop_test(t, a_kernel_gives_the_same_bits_at_every_level, 0, N_GROUPS);
    tcase_add_loop_test(t, a_cast_gives_the_same_bits_at_every_level, MESH_F32, MESH_BOOL + 1);
    tcase_add_loop_test(t, a_filling_gives_the_same_bits_at_every_level, 0, (int)(sizeof fills / sizeof fills[0]));
    tcase_add_loop_test(t, an_optimizer_gives_the_same_bits_at_every_level, 0, 2);
    tcase_add_test(t, another_bit_is_seen);
    suite_add_tcase(s, t);
    return s;
}
