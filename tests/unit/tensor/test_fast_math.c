/* tests/unit/tensor/test_fast_math.c - exp, tanh and erf of float against the C library's in double.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <float.h>
#include <stdio.h>

#include "tensor/fast_math.h"

#define N_POINTS 200000

static const struct {
    const char *name;
    float (*f)(float);
    double (*exact)(double);
    float from, to;
} functions[] = {
    { "exp", exp_f32, (exp), -87.3F, 88.7F }, { "exp near 0", exp_f32, (exp), -1, 1 },
    { "tanh", tanh_f32, (tanh), -12, 12 },    { "tanh near 0", tanh_f32, (tanh), -0.7F, 0.7F },
    { "erf", erf_f32, (erf), -5, 5 },         { "erf near 0", erf_f32, (erf), -1e-3F, 1e-3F },
};

/* In units of the last place of the exact result. */
static double error_of(float got, double want)
{
    double unit = ldexp(1.0, ilogb(want) - FLT_MANT_DIG + 1);
    return fabs((double)got - want) / unit;
}

START_TEST(errors_stay_below_3_units_in_the_last_place)
{
    double worst = 0;
    for (int i = 0; i <= N_POINTS; i++) {
        float x = functions[_i].from + (functions[_i].to - functions[_i].from) * (float)i / N_POINTS;
        double want = functions[_i].exact((double)x);
        double error = x != 0 ? error_of(functions[_i].f(x), want) : 0;
        worst = error > worst ? error : worst;
    }
    ck_assert_msg(worst < 3, "%s: %g", functions[_i].name, worst);
}
END_TEST

START_TEST(ends_are_those_of_the_c_library)
{
    ck_assert(exp_f32(INFINITY) == INFINITY && exp_f32(200) == INFINITY && exp_f32(-INFINITY) == 0);
    ck_assert(exp_f32(-150) == 0 && exp_f32(-103) > 0 && exp_f32(0) == 1 && isnan(exp_f32(NAN)));
    ck_assert(tanh_f32(INFINITY) == 1 && tanh_f32(-INFINITY) == -1 && tanh_f32(0) == 0 && isnan(tanh_f32(NAN)));
    ck_assert(erf_f32(INFINITY) == 1 && erf_f32(-INFINITY) == -1 && erf_f32(0) == 0 && isnan(erf_f32(NAN)));
    ck_assert(signbit(tanh_f32(-0.0F)) && signbit(erf_f32(-0.0F)));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("fast math");
    TCase *t = tcase_create("fast math");
    tcase_add_loop_test(t, errors_stay_below_3_units_in_the_last_place, 0,
                        (int)(sizeof functions / sizeof functions[0]));
    tcase_add_test(t, ends_are_those_of_the_c_library);
    suite_add_tcase(s, t);
    return s;
}
