/* tests/unit/comm/test_reduce.c - which pairs of dtype and op can be reduced, and what comes out.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/util.h"
#include "comm/collective.h"
#include "comm/reduce.h"
#include "harness/check_main.h"

START_TEST(each_pair_of_dtype_and_op_works_or_is_refused)
{
    for (int t = MESH_F32; t <= MESH_BOOL; t++) {
        for (int op = MESH_SUM; op <= MESH_BXOR; op++) {
            bool is_float = t == MESH_F32 || t == MESH_F64,
                 is_integer = t == MESH_I32 || t == MESH_I64 || t == MESH_U8 || t == MESH_BOOL;
            bool works = (is_float && op < MESH_BAND) || (is_integer && op != MESH_AVG);
            ck_assert_int_eq(reduce_check((mesh_dtype)t, (mesh_reduce_op)op), works ? 0 : MESH_EUNSUPPORTED);
        }
    }
    ck_assert_int_eq(reduce_check((mesh_dtype)0, MESH_SUM), MESH_EINVAL);
    ck_assert_int_eq(reduce_check(MESH_F32, (mesh_reduce_op)9), MESH_EINVAL);
}
END_TEST

START_TEST(integers_wrap)
{
    uint8_t bytes[2] = { 200, 3 }, more[2] = { 100, 100 };
    reduce_into(bytes, more, 2, MESH_U8, MESH_SUM);
    ck_assert_uint_eq(bytes[0], 44);
    ck_assert_uint_eq(bytes[1], 103);
    int32_t a = INT32_MAX, b = 1;
    reduce_into(&a, &b, 1, MESH_I32, MESH_SUM);
    ck_assert_int_eq(a, INT32_MIN);
    int64_t c = INT64_MAX, d = 2;
    reduce_into(&c, &d, 1, MESH_I64, MESH_PROD);
    ck_assert(c == -2);
}
END_TEST

START_TEST(min_and_max_give_the_same_bits_in_either_order)
{
    static const float values[] = { -0.0f, 0.0f, 1.0f, -1.0f, INFINITY, -INFINITY, NAN };
    static const mesh_reduce_op ops[] = { MESH_MIN, MESH_MAX };
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        for (size_t k = 0; k < ARRAY_SIZE(values); k++) {
            for (int o = 0; o < 2; o++) {
                float a = values[i], b = values[k];
                double c = (double)values[i], d = (double)values[k];
                reduce_into(&a, &values[k], 1, MESH_F32, ops[o]);
                reduce_into(&b, &values[i], 1, MESH_F32, ops[o]);
                ck_assert(memcmp(&a, &b, sizeof a) == 0);
                ck_assert(isnan(a) == (isnan(values[i]) || isnan(values[k])));
                double e = d;
                reduce_into(&d, &c, 1, MESH_F64, ops[o]);
                reduce_into(&c, &e, 1, MESH_F64, ops[o]);
                ck_assert(memcmp(&c, &d, sizeof c) == 0);
            }
        }
    }
    float zero = 0.0f, minus_zero = -0.0f;
    reduce_into(&zero, &minus_zero, 1, MESH_F32, MESH_MIN);
    ck_assert(signbit(zero));
    zero = 0.0f;
    reduce_into(&minus_zero, &zero, 1, MESH_F32, MESH_MAX);
    ck_assert(!signbit(minus_zero));
}
END_TEST

START_TEST(the_identity_changes_nothing)
{
    static const mesh_dtype dtypes[] = { MESH_F32, MESH_F64, MESH_I32, MESH_I64, MESH_U8 };
    for (size_t t = 0; t < ARRAY_SIZE(dtypes); t++) {
        for (int op = MESH_SUM; op <= MESH_BXOR; op++) {
            uint64_t x[4] = { 0x4010000000000000u, 0x4110000041100000u, 0xc0100000c0100000u, 0 }, identity[4],
                     before[4];
            if (reduce_check(dtypes[t], (mesh_reduce_op)op) < 0) {
                continue;
            }
            memcpy(before, x, sizeof x);
            size_t n = sizeof x / dtype_size(dtypes[t]);
            reduce_fill_identity(identity, n, dtypes[t], (mesh_reduce_op)op);
            reduce_into(x, identity, n, dtypes[t], (mesh_reduce_op)op);
            ck_assert_msg(memcmp(x, before, sizeof x) == 0, "%s %s", dtype_name(dtypes[t]),
                          reduce_op_name((mesh_reduce_op)op));
        }
    }
}
END_TEST

START_TEST(every_nan_becomes_the_same)
{
    uint32_t bits[3] = { 0xffc00123u, 0x7fc00001u, 0x3f800000u };
    float x[3];
    memcpy(x, bits, sizeof x);
    reduce_unify_nan(x, 3, MESH_F32);
    ck_assert(memcmp(&x[0], &x[1], sizeof x[0]) == 0);
    ck_assert(x[2] == 1.0f);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("reduce");
    TCase *c = tcase_create("reduce");
    tcase_add_test(c, each_pair_of_dtype_and_op_works_or_is_refused);
    tcase_add_test(c, integers_wrap);
    tcase_add_test(c, min_and_max_give_the_same_bits_in_either_order);
    tcase_add_test(c, the_identity_changes_nothing);
    tcase_add_test(c, every_nan_becomes_the_same);
    suite_add_tcase(s, c);
    return s;
}
