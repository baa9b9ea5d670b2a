/* tests/unit/comm/test_reduce.c - which pairs of dtype and op can be reduced, and what comes out.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/util.h"
#include "base/vector.h"
#include "comm/collective.h"
#include "comm/reduce.h"
#include "harness/check_main.h"

START_TEST(each_pair_of_dtype_and_op_works_or_is_refused)
{
    for (int t = MESH_F32; t <= MESH_BOOL; t++) {
        for (int op = MESH_SUM; op <= MESH_BXOR; op++) {
            bool is_float = t == MESH_F32 || t == MESH_F64 || t == MESH_F16 || t == MESH_BF16;
            bool works = is_float ? op < MESH_BAND : op != MESH_AVG;
            ck_assert_int_eq(reduce_check((mesh_dtype)t, (mesh_reduce_op)op), works ? 0 : MESH_EUNSUPPORTED);
        }
    }
    ck_assert_int_eq(reduce_check((mesh_dtype)0, MESH_SUM), MESH_EINVAL);
    ck_assert_int_eq(reduce_check(MESH_F32, (mesh_reduce_op)9), MESH_EINVAL);
}
END_TEST

static const char *const ops_in_the_header[] = { "sum", "avg", "prod", "min", "max", "band", "bor", "bxor" };

/* "        f32   yes  yes ...", of what the library answers; the columns are five wide. */
static void table_row(char *row, size_t cap, mesh_dtype t)
{
    int n = snprintf(row, cap, " *        %-6s", dtype_name(t));
    for (int op = MESH_SUM; op <= MESH_BXOR; op++) {
        const char *word = reduce_check(t, (mesh_reduce_op)op) == 0 ? "yes" : "-";
        n += snprintf(row + n, cap - (size_t)n, op == MESH_BXOR ? "%s\n" : "%-5s", word);
    }
}

START_TEST(the_table_in_the_public_header_is_what_the_library_answers)
{
    static char text[100000];
    FILE *header = fopen(COLLECTIVE_H, "r");
    ck_assert_ptr_nonnull(header);
    text[fread(text, 1, sizeof text - 1, header)] = 0;
    ck_assert_int_eq(fclose(header), 0);
    const char *at = text;
    for (int op = MESH_SUM; op <= MESH_BXOR; op++) { /* the head of the table, in this order */
        at = strstr(at, ops_in_the_header[op - MESH_SUM]);
        ck_assert_ptr_nonnull(at);
    }
    for (int t = MESH_F32; t <= MESH_BOOL; t++) {
        char row[100];
        table_row(row, sizeof row, (mesh_dtype)t);
        ck_assert_msg(strstr(text, row) != NULL, "the table of mesh/collective.h should have the row\n%s", row);
    }
}
END_TEST

START_TEST(a_fold_of_16_bit_floats_is_rounded_once)
{
    uint16_t parts[4][2], sum[2];
    static const float values[4] = { 40000, 40000, -40000, -40000 };
    for (int r = 0; r < 4; r++) {
        parts[r][0] = float_to_f16(values[r]);
        parts[r][1] = float_to_f16(r == 0 ? 2048 : 0.5f); /* 2048.5 rounds to 2048 in f16, 2049.5 to 2050 */
    }
    reduce_fold(sum, parts, 2, 4, MESH_F16, MESH_SUM);
    ck_assert(float_from_f16(sum[0]) == 0);
    ck_assert(float_from_f16(sum[1]) == 2050);
    reduce_fold(sum, parts, 2, 1, MESH_F16, MESH_AVG);
    ck_assert(memcmp(sum, parts[0], sizeof sum) == 0);
    for (int r = 0; r < 4; r++) {
        parts[r][0] = float_to_bf16((float)r + 1);
    }
    parts[2][1] = float_to_bf16(NAN);
    reduce_fold(sum, parts, 2, 4, MESH_BF16, MESH_AVG);
    ck_assert(float_from_bf16(sum[0]) == 2.5f && isnan(float_from_bf16(sum[1])));
    reduce_fold(sum, parts, 2, 4, MESH_BF16, MESH_MAX);
    ck_assert(float_from_bf16(sum[0]) == 4 && isnan(float_from_bf16(sum[1])));
}
END_TEST

START_TEST(a_fold_longer_than_a_block_is_right_in_every_place)
{
    static uint16_t parts[3][5003], sum[5003];
    static int32_t numbers[3][1000], total[1000];
    for (int i = 0; i < 5003; i++) {
        for (int r = 0; r < 3; r++) {
            parts[r][i] = float_to_bf16((float)((i + r) % 50));
            numbers[r][i % 1000] = i % 1000 + r;
        }
    }
    reduce_fold(sum, parts, 5003, 3, MESH_BF16, MESH_SUM);
    reduce_fold(total, numbers, 1000, 3, MESH_I32, MESH_SUM);
    for (int i = 0; i < 5003; i++) {
        ck_assert(float_from_bf16(sum[i]) == (float)(i % 50 + (i + 1) % 50 + (i + 2) % 50));
        ck_assert_int_eq(total[i % 1000], 3 * (i % 1000) + 3);
    }
}
END_TEST

/* Whatever vectors the machine has: the bits of the elements one by one, wherever the vector begins and ends. */
START_TEST(a_long_vector_is_reduced_as_its_elements_are)
{
    enum { BYTES = 1032 };
    alignas(8) uint8_t a[BYTES], b[BYTES], one_by_one[BYTES];
    for (int t = MESH_F32; t <= MESH_BOOL; t++) {
        for (int op = MESH_SUM; op <= MESH_BXOR; op++) {
            size_t size = dtype_size((mesh_dtype)t), n = BYTES / size - 3;
            if (reduce_check((mesh_dtype)t, (mesh_reduce_op)op) < 0 || reduce_is_folded((mesh_dtype)t)) {
                continue;
            }
            for (size_t i = 0; i < BYTES; i++) { /* of many magnitudes, with infinities and NaNs among them */
                one_by_one[i] = a[i] = t == MESH_BOOL ? i % 3 == 0 : (uint8_t)(i * 37 + i / 7);
                b[i] = t == MESH_BOOL ? i % 2 == 0 : (uint8_t)(i * 59 + i / 5);
            }
            reduce_into(a + size, b + size, n, (mesh_dtype)t, (mesh_reduce_op)op);
            reduce_unify_nan(a, BYTES / size, (mesh_dtype)t);
            for (size_t i = 1; i <= n; i++) {
                reduce_into(one_by_one + i * size, b + i * size, 1, (mesh_dtype)t, (mesh_reduce_op)op);
            }
            reduce_unify_nan(one_by_one, BYTES / size, (mesh_dtype)t);
            ck_assert_msg(memcmp(a, one_by_one, sizeof a) == 0, "%s %s", dtype_name((mesh_dtype)t),
                          reduce_op_name((mesh_reduce_op)op));
        }
    }
}
END_TEST

START_TEST(integers_wrap)
{
    int8_t small[1] = { 100 }, other[1] = { 100 };
    reduce_into(small, other, 1, MESH_I8, MESH_SUM);
    ck_assert_int_eq(small[0], -56);
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
    static const mesh_dtype dtypes[] = {
        MESH_F32, MESH_F64, MESH_I32, MESH_I64, MESH_U8, MESH_I8, MESH_F16, MESH_BF16
    };
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
            if (reduce_is_folded(dtypes[t])) {
                uint64_t both[8];
                memcpy(both, identity, sizeof x);
                memcpy(both + 4, x, sizeof x);
                reduce_fold(x, both, n, 2, dtypes[t], op == MESH_AVG ? MESH_SUM : (mesh_reduce_op)op);
            } else {
                reduce_into(x, identity, n, dtypes[t], (mesh_reduce_op)op);
            }
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

/* Of every pair that can be reduced; no element is NaN, whose bits may be any. */
START_TEST(reductions_give_the_same_bits_at_every_level_of_vectors)
{
    enum { N = 211, RANKS = 3, WIDEST = 8 };
    static alignas(8) unsigned char from[RANKS * N * WIDEST], want[N * WIDEST], got[N * WIDEST];
    const enum vector_level most = vector_level_of_machine();
    const mesh_dtype t = (mesh_dtype)_i;
    for (size_t i = 0; i < sizeof from; i++) {
        from[i] =
            (unsigned char)((i * 2654435761U >> 7) & (t == MESH_BOOL ? 1 : 0xbf)); /* exponents below their half */
    }
    for (mesh_reduce_op op = MESH_SUM; op <= MESH_BXOR; op++) {
        for (enum vector_level level = VECTOR_PLAIN; reduce_check(t, op) == 0 && level <= most; level++) {
            vector_level_set(level);
            reduce_fold(level == VECTOR_PLAIN ? want : got, from, N, RANKS, t, op);
            ck_assert_msg(level == VECTOR_PLAIN || memcmp(want, got, N * dtype_size(t)) == 0, "%s, op %d, level %d",
                          dtype_name(t), (int)op, (int)level);
        }
    }
    vector_level_set(most);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("reduce");
    TCase *c = tcase_create("reduce");
    tcase_add_test(c, each_pair_of_dtype_and_op_works_or_is_refused);
    tcase_add_test(c, the_table_in_the_public_header_is_what_the_library_answers);
    tcase_add_test(c, a_fold_of_16_bit_floats_is_rounded_once);
    tcase_add_test(c, a_fold_longer_than_a_block_is_right_in_every_place);
    tcase_add_test(c, a_long_vector_is_reduced_as_its_elements_are);
    tcase_add_test(c, integers_wrap);
    tcase_add_test(c, min_and_max_give_the_same_bits_in_either_order);
    tcase_add_test(c, the_identity_changes_nothing);
    tcase_add_test(c, every_nan_becomes_the_same);
    tcase_add_loop_test(c, reductions_give_the_same_bits_at_every_level_of_vectors, MESH_F32, MESH_BOOL + 1);
    suite_add_tcase(s, c);
    return s;
}
