/* tests/unit/base/test_dtype.c - dtypes and the 16-bit floats, every one of them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/rng.h"

static uint32_t bits_of(float f)
{
    uint32_t x;
    memcpy(&x, &f, sizeof x);
    return x;
}

static float float_of(uint32_t x)
{
    float f;
    memcpy(&f, &x, sizeof f);
    return f;
}

START_TEST(names_and_sizes_agree)
{
    static const struct {
        mesh_dtype t;
        const char *name;
        size_t size;
        enum dtype_kind kind;
    } rows[] = {
        { MESH_F32, "f32", 4, DTYPE_FLOAT },  { MESH_F64, "f64", 8, DTYPE_FLOAT },
        { MESH_F16, "f16", 2, DTYPE_FLOAT },  { MESH_BF16, "bf16", 2, DTYPE_FLOAT },
        { MESH_I8, "i8", 1, DTYPE_INT },      { MESH_U8, "u8", 1, DTYPE_INT },
        { MESH_I32, "i32", 4, DTYPE_INT },    { MESH_I64, "i64", 8, DTYPE_INT },
        { MESH_BOOL, "bool", 1, DTYPE_BOOL },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mesh_dtype back;
        ck_assert(dtype_is_valid((int)rows[i].t));
        ck_assert_str_eq(dtype_name(rows[i].t), rows[i].name);
        ck_assert_uint_eq(dtype_size(rows[i].t), rows[i].size);
        ck_assert_int_eq((int)dtype_kind(rows[i].t), (int)rows[i].kind);
        ck_assert(dtype_from_name(rows[i].name, &back));
        ck_assert_int_eq((int)back, (int)rows[i].t);
    }
}
END_TEST

START_TEST(what_is_no_dtype_is_told)
{
    mesh_dtype t;
    ck_assert(!dtype_is_valid(0));
    ck_assert(!dtype_is_valid(-1));
    ck_assert(!dtype_is_valid(MESH_BOOL + 1));
    ck_assert_str_eq(dtype_name((mesh_dtype)17), "?");
    ck_assert_uint_eq(dtype_size((mesh_dtype)0), 0);
    ck_assert(!dtype_from_name("float32", &t));
    ck_assert(!dtype_from_name("", &t));
    ck_assert(!reduce_op_is_valid(0));
    ck_assert(reduce_op_is_valid(MESH_BXOR));
    ck_assert(!reduce_op_is_valid(MESH_BXOR + 1));
    ck_assert_str_eq(reduce_op_name(MESH_AVG), "avg");
    ck_assert_str_eq(reduce_op_name((mesh_reduce_op)99), "?");
}
END_TEST

/* ck_assert() notes each claim it checks, which is too slow for hundreds of thousands. */
#define MUST(claim)                                                                                                    \
    do {                                                                                                               \
        if (!(claim)) {                                                                                                \
            ck_abort_msg("%s", #claim);                                                                                \
        }                                                                                                              \
    } while (0)

/* The value by the definition: sign, exponent, fraction. */
static double f16_by_definition(uint32_t h)
{
    int exponent = (int)(h >> 10 & 31);
    double fraction = (double)(h & 0x3ff) / 1024, sign = h & 0x8000 ? -1 : 1;
    if (exponent == 31) {
        return h & 0x3ff ? (double)NAN : sign * (double)INFINITY;
    }
    return exponent == 0 ? sign * ldexp(fraction, -14) : sign * ldexp(1 + fraction, exponent - 15);
}

START_TEST(every_f16_has_its_value_and_comes_back)
{
    for (uint32_t h = 0; h < 0x10000; h++) {
        float f = float_from_f16((uint16_t)h);
        double want = f16_by_definition(h);
        if (isnan(want)) {
            MUST(isnan(f));
            MUST(isnan(float_from_f16(float_to_f16(f))));
        } else {
            MUST((double)f == want);
            MUST((signbit(f) != 0) == ((h & 0x8000) != 0));
            MUST(float_to_f16(f) == h);
        }
    }
}
END_TEST

START_TEST(f16_rounds_to_nearest_even_between_all_neighbours)
{
    for (uint32_t h = 0; h < 0x7c00; h++) {
        double low = f16_by_definition(h);
        double high = h == 0x7bff ? 65536.0 : f16_by_definition(h + 1);
        float middle = (float)((low + high) / 2); /* exact in f32 */
        MUST((float_to_f16(middle)) == ((h & 1) ? h + 1 : h));
        MUST(float_to_f16(nextafterf(middle, 0)) == h);
        MUST(float_to_f16(nextafterf(middle, INFINITY)) == h + 1);
        MUST((float_to_f16(-middle)) == (0x8000 | ((h & 1) ? h + 1 : h)));
    }
    MUST(float_to_f16(1e30f) == 0x7c00);
    MUST(float_to_f16(-INFINITY) == 0xfc00);
    MUST(float_to_f16(1e-30f) == 0);
    MUST(float_to_f16(float_of(1)) == 0);
    MUST(float_to_f16(-0.0f) == 0x8000);
}
END_TEST

START_TEST(nan_stays_nan_whatever_its_bits)
{
    const uint32_t nans[] = { 0x7f800001, 0x7fffffff, 0x7fc00000, 0xff800001, 0xffffffff, 0x7f80ffff, 0x7f802000 };
    for (size_t i = 0; i < sizeof nans / sizeof nans[0]; i++) {
        ck_assert(isnan(float_from_f16(float_to_f16(float_of(nans[i])))));
        ck_assert(isnan(float_from_bf16(float_to_bf16(float_of(nans[i])))));
    }
}
END_TEST

START_TEST(every_bf16_comes_back)
{
    for (uint32_t h = 0; h < 0x10000; h++) {
        float f = float_from_bf16((uint16_t)h);
        if (isnan(f)) {
            MUST(isnan(float_from_bf16(float_to_bf16(f))));
        } else {
            MUST(bits_of(f) == h << 16);
            MUST(float_to_bf16(f) == h);
        }
    }
}
END_TEST

START_TEST(bf16_rounds_to_nearest_even_between_all_neighbours)
{
    for (uint32_t h = 0; h < 0x7f80; h++) {
        uint32_t middle = h << 16 | 0x8000;
        MUST((float_to_bf16(float_of(middle))) == ((h & 1) ? h + 1 : h)); /* 0x7f7f goes to infinity */
        MUST(float_to_bf16(float_of(middle - 1)) == h);
        MUST(float_to_bf16(float_of(middle + 1)) == h + 1);
        MUST((float_to_bf16(float_of(0x80000000 | (middle - 1)))) == (0x8000 | h));
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("dtype");
    TCase *t = tcase_create("dtype");
    tcase_add_test(t, names_and_sizes_agree);
    tcase_add_test(t, what_is_no_dtype_is_told);
    tcase_add_test(t, every_f16_has_its_value_and_comes_back);
    tcase_add_test(t, f16_rounds_to_nearest_even_between_all_neighbours);
    tcase_add_test(t, nan_stays_nan_whatever_its_bits);
    tcase_add_test(t, every_bf16_comes_back);
    tcase_add_test(t, bf16_rounds_to_nearest_even_between_all_neighbours);
    suite_add_tcase(s, t);
    return s;
}
