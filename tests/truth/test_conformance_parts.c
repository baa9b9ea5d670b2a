/* tests/truth/test_conformance_parts.c - the parts that the runner makes of a logical tensor put together give it again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "truth/conformance.h"

#define MAX_ELEMENTS 64

static int n_ranks_of(mesh_shape mesh)
{
    return (int)numel(mesh);
}

/* Over the ranks that differ only in mesh dim m, i.e. whose coordinate there runs: completes the Partial of every dim. */
static double complete(const double *shares, mesh_shape mesh, mesh_placements p, int m, int rank)
{
    if (m < 0) {
        return shares[rank];
    }
    int stride = 1;
    for (int d = m + 1; d < mesh.ndim; d++) {
        stride *= (int)mesh.dim[d];
    }
    if (p.at[m].kind != MESH_IS_PARTIAL) {
        return complete(shares, mesh, p, m - 1, rank);
    }
    int base = rank - rank / stride % (int)mesh.dim[m] * stride;
    double result = complete(shares, mesh, p, m - 1, base);
    for (int c = 1; c < mesh.dim[m]; c++) {
        double other = complete(shares, mesh, p, m - 1, base + c * stride);
        result = p.at[m].op == MESH_MAX   ? fmax(result, other)
                 : p.at[m].op == MESH_MIN ? fmin(result, other)
                                          : result + other;
    }
    return p.at[m].op == MESH_AVG ? result / (double)mesh.dim[m] : result;
}

START_TEST(partial_shares_complete_to_the_value)
{
    static const mesh_reduce_op ops[] = { MESH_SUM, MESH_AVG, MESH_MAX, MESH_MIN };
    static const mesh_shape meshes[] = { { 1, { 2 } }, { 1, { 5 } }, { 2, { 2, 3 } }, { 3, { 2, 1, 2 } } };
    struct value v = { .dtype = MESH_F64 };
    for (size_t k = 0; k < 4 * sizeof meshes / sizeof meshes[0]; k++) {
        mesh_shape mesh = meshes[k / 4];
        double shares[16];
        bool are_all_equal = true;
        v.placements = (mesh_placements){ .n = mesh.ndim };
        for (int m = 0; m < mesh.ndim; m++) {
            v.placements.at[m] = m == 1 ? mesh_replicate() : mesh_partial(ops[k % 4]);
        }
        for (int64_t i = 0; i < 20; i++) {
            for (int rank = 0; rank < n_ranks_of(mesh); rank++) {
                shares[rank] = part_value(1.5 + (double)i, i, &v, mesh, rank);
                are_all_equal = are_all_equal && shares[rank] == shares[0];
            }
            for (int rank = 0; rank < n_ranks_of(mesh); rank++) {
                ck_assert_double_eq(complete(shares, mesh, v.placements, mesh.ndim - 1, rank), 1.5 + (double)i);
            }
        }
        ck_assert(!are_all_equal);
    }
}
END_TEST

START_TEST(shards_cover_every_element_once)
{
    static const mesh_shape meshes[] = { { 1, { 4 } }, { 2, { 2, 2 } }, { 2, { 2, 4 } } };
    static const mesh_shape shapes[] = { { 1, { 9 } }, { 2, { 5, 3 } }, { 2, { 0, 3 } }, { 1, { 2 } } };
    for (size_t k = 0; k < 12; k++) {
        mesh_shape mesh = meshes[k / 4];
        struct value v = { .shape = shapes[k % 4], .dtype = MESH_I64, .placements = { .n = mesh.ndim } };
        int64_t data[MAX_ELEMENTS], part[MAX_ELEMENTS];
        int seen[MAX_ELEMENTS] = { 0 };
        v.n = numel(v.shape);
        v.data = data;
        for (int m = 0; m < mesh.ndim; m++) {
            v.placements.at[m] = mesh_shard(0);
        }
        for (int64_t i = 0; i < v.n; i++) {
            data[i] = i;
        }
        for (int rank = 0; rank < n_ranks_of(mesh); rank++) {
            mesh_shape offset, extent;
            part_box(v.shape, mesh, v.placements, rank, &offset, &extent);
            part_fill(part, &v, mesh, rank);
            for (int64_t i = 0; i < numel(extent); i++) {
                seen[part[i]]++;
            }
        }
        for (int64_t i = 0; i < v.n; i++) {
            ck_assert_int_eq(seen[i], 1);
        }
    }
}
END_TEST

START_TEST(nested_shards_have_the_known_offsets)
{
    static const int64_t sizes[] = { 1, 0, 0, 0, 1, 0, 0, 0 }, offsets[] = { 0, 2, 2, 2, 1, 2, 2, 2 };
    mesh_placements p = MESH_PLACEMENTS(mesh_shard(0), mesh_shard(-1));
    for (int rank = 0; rank < 8; rank++) {
        mesh_shape offset, extent;
        part_box(MESH_SHAPE(2), MESH_SHAPE(2, 4), p, rank, &offset, &extent);
        ck_assert_int_eq(extent.dim[0], sizes[rank]);
        ck_assert_int_eq(offset.dim[0], offsets[rank]);
    }
}
END_TEST

START_TEST(integer_shares_are_whole)
{
    struct value v = { .dtype = MESH_I64, .placements = MESH_PLACEMENTS(mesh_partial(MESH_SUM)) };
    for (int64_t i = 0; i < 9; i++) {
        double sum = 0;
        for (int rank = 0; rank < 3; rank++) {
            double share = part_value(5, i, &v, MESH_SHAPE(3), rank);
            ck_assert_double_eq(share, floor(share));
            sum += share;
        }
        ck_assert_double_eq(sum, 5);
    }
}
END_TEST

static bool reads(const char *line, const char **ret_why, char unsupported[TEXT_BYTES])
{
    struct test_case c;
    json_t *object = json_loads(line, 0, NULL);
    ck_assert_ptr_nonnull(object);
    bool is_good = case_read(object, op_row_find(json_string_value(json_object_get(object, "op"))), &c, ret_why);
    if (is_good) {
        memcpy(unsupported, c.unsupported, TEXT_BYTES);
        case_fini(&c);
    }
    json_decref(object);
    return is_good;
}

START_TEST(malformed_and_unsupported_cases_are_told_apart)
{
    static const struct {
        const char *line;
        bool is_read, is_supported;
    } lines[] = {
        { "{\"id\":\"a\",\"op\":\"neg\",\"mesh\":[2],\"in\":[{\"shape\":[1],\"dtype\":\"f32\",\"data\":[\"nan\"],"
          "\"placements\":[\"P(sum)\"]}],\"out\":[],\"tol\":[0,0]}",
          true, true },
        { "{\"id\":\"a\",\"op\":\"neg\",\"mesh\":[2],\"in\":[{\"shape\":[1],\"dtype\":\"f8\",\"data\":[1],"
          "\"placements\":[\"R\"]}],\"out\":[],\"tol\":[0,0]}",
          true, false },
        { "{\"id\":\"a\",\"op\":\"neg\",\"mesh\":[2],\"in\":[{\"shape\":[1],\"dtype\":\"f32\",\"data\":[1],"
          "\"placements\":[\"R\"]}],\"attr\":{\"dims\":[0]},\"out\":[],\"tol\":[0,0]}",
          true, false },
        { "{\"id\":\"a\",\"op\":\"neg\",\"mesh\":[2],\"in\":[{\"shape\":[2],\"dtype\":\"f32\",\"data\":[1],"
          "\"placements\":[\"R\"]}],\"out\":[],\"tol\":[0,0]}",
          false, false },
        { "{\"id\":\"a\",\"op\":\"neg\",\"mesh\":[2,2],\"in\":[{\"shape\":[1],\"dtype\":\"f32\",\"data\":[1],"
          "\"placements\":[\"R\"]}],\"out\":[],\"tol\":[0,0]}",
          false, false },
        { "{\"id\":\"a\",\"op\":\"neg\",\"mesh\":[0],\"in\":[],\"out\":[],\"tol\":[0,0]}", false, false },
        { "{\"id\":\"a\",\"op\":\"neg\",\"mesh\":[2],\"out\":[],\"tol\":[0,0]}", false, false },
        { "{\"op\":\"neg\"}", false, false },
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const char *why = NULL;
        char unsupported[TEXT_BYTES] = "";
        ck_assert_int_eq(reads(lines[i].line, &why, unsupported), lines[i].is_read);
        ck_assert_int_eq(why == NULL, lines[i].is_read);
        ck_assert(!lines[i].is_read || (unsupported[0] == '\0') == lines[i].is_supported);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("conformance_parts");
    TCase *t = tcase_create("conformance_parts");
    tcase_add_test(t, partial_shares_complete_to_the_value);
    tcase_add_test(t, shards_cover_every_element_once);
    tcase_add_test(t, nested_shards_have_the_known_offsets);
    tcase_add_test(t, integer_shares_are_whole);
    tcase_add_test(t, malformed_and_unsupported_cases_are_told_apart);
    suite_add_tcase(s, t);
    return s;
}
