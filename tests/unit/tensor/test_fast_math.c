/* tests/unit/tensor/test_fast_math.c - the functions of fast_math.h against the C library's of the next wider type.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <float.h>
#include <stdlib.h>

#include "harness/tensors.h"
#include "tensor/fast_math.h"

#define N_POINTS 200000

/* What the C library does not have, from what it has. */
#define EXACT(T, suffix)                                                                                               \
    static T exact_sigmoid##suffix(T x)                                                                                \
    {                                                                                                                  \
        return 1 / (1 + (exp##suffix)(-x));                                                                            \
    }                                                                                                                  \
    static T exact_softplus##suffix(T x)                                                                               \
    {                                                                                                                  \
        return (log1p##suffix)((exp##suffix)(x > 0 ? -x : x)) + (x > 0 ? x : 0);                                       \
    }                                                                                                                  \
    static T exact_gelu##suffix(T x)                                                                                   \
    {                                                                                                                  \
        return x * (erfc##suffix)(-x * (T)0.70710678118654752440084436210484904L) / 2;                                 \
    }                                                                                                                  \
    static T exact_gelu_slope##suffix(T x)                                                                             \
    {                                                                                                                  \
        return (erfc##suffix)(-x * (T)0.70710678118654752440084436210484904L) / 2 +                                    \
               x * (exp##suffix)(-x * x / 2) * (T)0.39894228040143267793994605993438187L;                              \
    }
EXACT(double, )
EXACT(long double, l)

/* Of float in double, of double in long double (where the C library's has more bits than double: x86-64 and aarch64
 * do). */
static const struct {
    const char *name;
    float (*f)(float);
    double (*exact)(double);
    float from, to;
} floats[] = {
    { "exp", exp_f32, (exp), -87.3F, 88.7F },
    { "exp near 0", exp_f32, (exp), -1, 1 },
    { "expm1", expm1_f32, (expm1), -17, 88.7F },
    { "expm1 near 0", expm1_f32, (expm1), -0.5F, 0.5F },
    { "log", log_f32, (log), 1e-30F, 1e4F },
    { "log near 1", log_f32, (log), 0.5F, 2 },
    { "log1p", log1p_f32, (log1p), -0.9F, 1e4F },
    { "log1p near 0", log1p_f32, (log1p), -1e-3F, 1e-3F },
    { "tanh", tanh_f32, (tanh), -12, 12 },
    { "tanh near 0", tanh_f32, (tanh), -0.7F, 0.7F },
    { "erf", erf_f32, (erf), -5, 5 },
    { "erf near 0", erf_f32, (erf), -1e-3F, 1e-3F },
    { "sin", sin_f32, (sin), -(float)TRIG_BOUND, (float)TRIG_BOUND },
    { "sin near 0", sin_f32, (sin), -4, 4 },
    { "cos", cos_f32, (cos), -(float)TRIG_BOUND, (float)TRIG_BOUND },
    { "cos near 0", cos_f32, (cos), -4, 4 },
    { "sigmoid", sigmoid_f32, exact_sigmoid, -87, 20 },
    { "softplus", softplus_f32, exact_softplus, -87, 20 },
    { "softplus near 0", softplus_f32, exact_softplus, -2, 2 },
};
static const struct {
    const char *name;
    double (*f)(double);
    long double (*exact)(long double);
    double from, to;
} doubles[] = {
    { "exp", exp_f64, expl, -708, 709.7 },
    { "exp near 0", exp_f64, expl, -1, 1 },
    { "expm1", expm1_f64, expm1l, -37, 709.7 },
    { "expm1 near 0", expm1_f64, expm1l, -0.5, 0.5 },
    { "log", log_f64, logl, 1e-300, 1e4 },
    { "log near 1", log_f64, logl, 0.5, 2 },
    { "log1p", log1p_f64, log1pl, -0.9, 1e4 },
    { "log1p near 0", log1p_f64, log1pl, -1e-3, 1e-3 },
    { "tanh", tanh_f64, tanhl, -22, 22 },
    { "tanh near 0", tanh_f64, tanhl, -0.7, 0.7 },
    { "erf", erf_f64, erfl, -6, 6 },
    { "erf near 0", erf_f64, erfl, -1e-3, 1e-3 },
    { "sin", sin_f64, sinl, -TRIG_BOUND, TRIG_BOUND },
    { "sin near 0", sin_f64, sinl, -4, 4 },
    { "cos", cos_f64, cosl, -TRIG_BOUND, TRIG_BOUND },
    { "cos near 0", cos_f64, cosl, -4, 4 },
    { "sigmoid", sigmoid_f64, exact_sigmoidl, -708, 40 },
    { "softplus", softplus_f64, exact_softplusl, -700, 40 },
    { "softplus near 0", softplus_f64, exact_softplusl, -2, 2 },
    { "gelu", gelu_f64, exact_gelul, -9, 9 },
    { "gelu near 0", gelu_f64, exact_gelul, -1, 1 },
    { "gelu_slope", gelu_slope_f64, exact_gelu_slopel, -0.5, 9 },
    { "gelu_slope below its zero", gelu_slope_f64, exact_gelu_slopel, -9, -1 },
};

/* In units of the last place of the exact result. */
static double error_of(long double got, long double want, int digits)
{
    return want == 0 ? fabs((double)got) : (double)(fabsl(got - want) / ldexpl(1, ilogbl(want) - digits + 1));
}

/* 2, but where there is more said. */
static double bound_of(const char *name)
{
    static const struct {
        const char *name;
        double bound;
    } more[] = { { "tanh", 3 },    { "erf", 3 },      { "sin", 3 },  { "cos", 3 },
                 { "sigmoid", 3 }, { "softplus", 3 }, { "gelu", 10 } };
    double bound = 2;
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        bound = strncmp(name, more[i].name, strlen(more[i].name)) == 0 ? more[i].bound : bound;
    }
    return bound;
}

START_TEST(errors_of_float_stay_below_a_few_units_in_the_last_place)
{
    double worst = 0;
    for (int i = 0; i <= N_POINTS; i++) {
        float x = floats[_i].from + (floats[_i].to - floats[_i].from) * (float)i / N_POINTS;
        double error = error_of((long double)floats[_i].f(x), (long double)floats[_i].exact((double)x), FLT_MANT_DIG);
        worst = error > worst ? error : worst;
    }
    ck_assert_msg(worst < bound_of(floats[_i].name), "%s: %g", floats[_i].name, worst);
}
END_TEST

START_TEST(errors_of_double_stay_below_a_few_units_in_the_last_place)
{
    double worst = 0;
    for (int i = 0; i <= N_POINTS; i++) {
        double x = doubles[_i].from + (doubles[_i].to - doubles[_i].from) * (double)i / N_POINTS;
        double error = error_of((long double)doubles[_i].f(x), doubles[_i].exact((long double)x), DBL_MANT_DIG);
        worst = error > worst ? error : worst;
    }
    ck_assert_msg(worst < bound_of(doubles[_i].name), "%s: %g", doubles[_i].name, worst);
}
END_TEST

#define ENDS(T, F)                                                                                                     \
    static void check_ends_##F(void)                                                                                   \
    {                                                                                                                  \
        const T inf = (T)INFINITY, nan = (T)NAN;                                                                       \
        ck_assert(exp_##F(inf) == inf && exp_##F(800) == inf && exp_##F(-inf) == 0 && exp_##F(-800) == 0);             \
        ck_assert(exp_##F(0) == 1 && isnan(exp_##F(nan)));                                                             \
        ck_assert(expm1_##F(inf) == inf && expm1_##F(800) == inf && expm1_##F(-inf) == -1 && isnan(expm1_##F(nan)));   \
        ck_assert(log_##F(inf) == inf && log_##F(0) == -inf && log_##F(1) == 0 && isnan(log_##F(-1)));                 \
        ck_assert(log_##F((T)-0.0) == -inf && isnan(log_##F(-inf)) && isnan(log_##F(nan)));                            \
        ck_assert(log1p_##F(inf) == inf && log1p_##F(-1) == -inf && isnan(log1p_##F(-2)) && isnan(log1p_##F(nan)));    \
        ck_assert(tanh_##F(inf) == 1 && tanh_##F(-inf) == -1 && tanh_##F(0) == 0 && isnan(tanh_##F(nan)));             \
        ck_assert(erf_##F(inf) == 1 && erf_##F(-inf) == -1 && erf_##F(0) == 0 && isnan(erf_##F(nan)));                 \
        ck_assert(signbit(tanh_##F((T)-0.0)) && signbit(erf_##F((T)-0.0)));                                            \
        ck_assert(signbit(expm1_##F((T)-0.0)) && signbit(log1p_##F((T)-0.0)));                                         \
        ck_assert(sigmoid_##F(inf) == 1 && sigmoid_##F(-inf) == 0 && isnan(sigmoid_##F(nan)));                         \
        ck_assert(softplus_##F(inf) == inf && softplus_##F(-inf) == 0 && isnan(softplus_##F(nan)));                    \
        ck_assert(gelu_##F(inf) == inf && gelu_##F(-inf) == 0 && gelu_##F(-1e30F) == 0 && isnan(gelu_##F(nan)));       \
        ck_assert(gelu_slope_##F(inf) == 1 && gelu_slope_##F(-inf) == 0 && isnan(gelu_slope_##F(nan)));                \
    }
ENDS(float, f32)
ENDS(double, f64)

/* Beside x and 1, of which gelu is a part: what is left of a negative number has fewer digits. */
START_TEST(gelu_of_float_is_right_beside_its_argument)
{
    for (int i = -N_POINTS; i <= N_POINTS; i++) {
        float x = 14.0F * (float)i / N_POINTS;
        double error = fabs((double)gelu_f32(x) - exact_gelu((double)x)) / (fabs((double)x) + DBL_MIN);
        double of_slope = fabs((double)gelu_slope_f32(x) - exact_gelu_slope((double)x));
        ck_assert_msg(error < 2 * (double)FLT_EPSILON && of_slope < 2 * (double)FLT_EPSILON, "%g: %g, %g", (double)x,
                      error, of_slope);
    }
}
END_TEST

/* Pairs whose power is an ordinary number, the exponents large where the bases are near 1. */
START_TEST(errors_of_powers_stay_below_two_units_in_the_last_place)
{
    const struct rng_key key = { .seed = 5 };
    double worst = 0, worst_float = 0;
    for (uint64_t i = 0; i < N_POINTS; i++) {
        double size = pow_f64(10, 6 * rng_uniform(key, 3 * i) - 4),
               near_0 = size * (2 * rng_uniform(key, 3 * i + 1) - 1);
        double x = exp_f64(near_0), y = (2 * rng_uniform(key, 3 * i + 2) - 1) * 700 / size;
        double error = error_of((long double)pow_f64(x, y), powl((long double)x, (long double)y), DBL_MANT_DIG);
        worst = error > worst ? error : worst;
        float a = (float)exp_f64(near_0 * 0.4), b = (float)(y * 0.3);
        error = error_of((long double)pow_f32(a, b), (long double)(pow)((double)a, (double)b), FLT_MANT_DIG);
        worst_float = error > worst_float ? error : worst_float;
    }
    ck_assert_msg(worst < 2 && worst_float < 1, "%g, of float %g", worst, worst_float);
}
END_TEST

static void check_power(double got, double want, double tolerance, double x, double y)
{
    bool is_same = isnan(want) ? isnan(got) : got == want || fabs(got - want) <= tolerance * fabs(want);
    ck_assert_msg(is_same && (isnan(want) || !signbit(got) == !signbit(want)), "%g^%g: %g, not %g", x, y, got, want);
}

START_TEST(powers_of_special_numbers_are_the_c_librarys)
{
    static const double v[] = { 0,      -0.0,       1,          -1,          2,        -2,    3,         -3,
                                0.5,    -0.5,       1.5,        -1.5,        INFINITY, -1e20, 1e300,     -1e300,
                                1e-310, -1e-310,    1e38,       1e-40,       1075,     710,   -INFINITY, -1e-40,
                                -1075., 0x1p53 + 2, 0x1p52 + 1, -0x1p52 - 1, 16777217, NAN };
    enum { N = sizeof v / sizeof v[0] };
    for (int i = 0; i < N * N; i++) {
        double x = v[i / N], y = v[i % N];
        float a = (float)x, b = (float)y;
        check_power(pow_f64(x, y), (pow)(x, y), 4e-16, x, y);
        check_power((double)pow_f32(a, b), (double)(powf)(a, b), 2e-7, x, y);
    }
}
END_TEST

/* Where a sine is nearly 0: the doubles nearest to multiples of pi / 2. */
START_TEST(zeros_of_sine_and_cosine_have_all_their_digits)
{
    for (int k = 1; k < 330000; k += k / 50 + 1) {
        double x = (double)((long double)k * 1.57079632679489661923132169163975144L);
        double got = k % 2 == 0 ? sin_f64(x) : cos_f64(x);
        long double want = k % 2 == 0 ? sinl((long double)x) : cosl((long double)x);
        ck_assert_msg(error_of((long double)got, want, DBL_MANT_DIG) < 3, "%d: %g", k, got);
    }
    ck_assert(signbit(sin_f64(-0.0)) && signbit(sin_f32(-0.0F)) && sin_f64(0) == 0 && cos_f64(0) == 1);
}
END_TEST

/* Between others, at both sides of TRIG_BOUND, values and slopes. */
START_TEST(sines_of_large_numbers_are_the_c_librarys)
{
    static const double large[] = { 1, 524288, 524289, -1e6, 1e22, 1e300, INFINITY, NAN, -2 };
    enum { N = 5000, COUNT = sizeof large / sizeof large[0] };
    struct mesh_tensor *x = test_tensor(MESH_SHAPE(N), MESH_F64, 1), *y = test_tensor_empty(MESH_SHAPE(N), MESH_F64);
    for (int i = 0; i < N; i += 7) {
        set(x, i, large[i / 7 % COUNT]);
    }
    run_kernel(k_sin, &(struct kernel_call){ .in = { x }, .out = { y } });
    for (int i = 0; i < N; i++) {
        assert_element(y, i, (sin)(get(x, i)), 1e-15);
    }
    run_kernel(k_cos_backward, &(struct kernel_call){ .in = { x, x }, .out = { y } });
    for (int i = 0; i < N; i++) {
        assert_element(y, i, -get(x, i) * (sin)(get(x, i)), 1e-15);
    }
    tensors_unref(2, x, y);
}
END_TEST

START_TEST(ends_are_those_of_the_c_library)
{
    check_ends_f32();
    check_ends_f64();
}
END_TEST

START_TEST(the_least_numbers_come_out_too)
{
    ck_assert(exp_f32(-103) > 0 && exp_f64(-744) > 0);
    ck_assert(fabs((double)log_f32(0x1p-149F) - -103.27892990343184) < 1e-5);
    ck_assert(fabs(log_f64(0x1p-1074) - -744.44007192138126) < 1e-12);
    for (int e = -1074; e < 1024; e++) {
        ck_assert(fabs(log_f64(ldexp(1.0, e)) - e * 0.69314718055994530942) <= 1e-13 * abs(e));
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("fast math");
    TCase *t = tcase_create("fast math");
    tcase_add_loop_test(t, errors_of_float_stay_below_a_few_units_in_the_last_place, 0,
                        (int)(sizeof floats / sizeof floats[0]));
    tcase_add_loop_test(t, errors_of_double_stay_below_a_few_units_in_the_last_place, 0,
                        (int)(sizeof doubles / sizeof doubles[0]));
    tcase_add_test(t, gelu_of_float_is_right_beside_its_argument);
    tcase_add_test(t, errors_of_powers_stay_below_two_units_in_the_last_place);
    tcase_add_test(t, powers_of_special_numbers_are_the_c_librarys);
    tcase_add_test(t, the_least_numbers_come_out_too);
    tcase_add_test(t, zeros_of_sine_and_cosine_have_all_their_digits);
    tcase_add_test(t, sines_of_large_numbers_are_the_c_librarys);
    tcase_add_test(t, ends_are_those_of_the_c_library);
    suite_add_tcase(s, t);
    return s;
}
