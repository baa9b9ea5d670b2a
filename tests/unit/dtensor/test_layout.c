/* tests/unit/dtensor/test_layout.c - who holds what, by the numbers of the case list.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "dtensor/layout.h"
#include "harness/check_main.h"

#define MAX_RANKS 16

/* One row of the case list: a 1-dim split of `extent` by every mesh dim in turn. */
struct layout_case {
    const char *id;
    int mesh_ndim, mesh[3];
    int64_t extent;
    int64_t sizes[MAX_RANKS], offsets[MAX_RANKS];
};

static const struct layout_case cases[] = {
    { "seedfix", 1, { 4 }, 8, { 2, 2, 2, 2 }, { 0, 2, 4, 6 } },
    { "more", 1, { 8 }, 2, { 1, 1, 0, 0, 0, 0, 0, 0 }, { 0, 1, 2, 2, 2, 2, 2, 2 } },
    { "z0", 1, { 4 }, 0, { 0, 0, 0, 0 }, { 0, 0, 0, 0 } },
    { "z1", 1, { 4 }, 3, { 1, 1, 1, 0 }, { 0, 1, 2, 3 } },
    { "s00_9", 2, { 2, 2 }, 9, { 3, 2, 2, 2 }, { 0, 3, 5, 7 } },
    { "s42_13", 2, { 4, 2 }, 13, { 2, 2, 2, 2, 2, 2, 1, 0 }, { 0, 2, 4, 6, 8, 10, 12, 13 } },
    { "s24_2", 2, { 2, 4 }, 2, { 1, 0, 0, 0, 1, 0, 0, 0 }, { 0, 2, 2, 2, 1, 2, 2, 2 } },
    { "ord5", 2, { 2, 2 }, 5, { 2, 1, 1, 1 }, { 0, 2, 3, 4 } },
    { "ord6", 2, { 2, 2 }, 6, { 2, 1, 2, 1 }, { 0, 2, 3, 5 } },
    { "nested_7", 2, { 2, 3 }, 7, { 2, 2, 0, 1, 1, 1 }, { 0, 2, 7, 4, 5, 6 } },
    { "nested_4", 2, { 2, 4 }, 4, { 1, 1, 0, 0, 1, 1, 0, 0 }, { 0, 1, 4, 4, 2, 3, 4, 4 } },
    { "i64", 1, { 3 }, INT64_C(1) << 33, { 2863311531, 2863311531, 2863311530 }, { 0, 2863311531, 5726623062 } },
};

static void coordinate_of(const int *size, int ndim, int rank, int *ret)
{
    for (int i = ndim - 1; i >= 0; i--) {
        ret[i] = rank % size[i];
        rank /= size[i];
    }
}

START_TEST(parts_are_those_of_the_case_list)
{
    const struct layout_case *c = &cases[_i];
    mesh_placements p = { .n = c->mesh_ndim };
    int n_ranks = 1;
    for (int i = 0; i < c->mesh_ndim; i++) {
        p.at[i] = mesh_shard(1);
        n_ranks *= c->mesh[i];
    }
    for (int r = 0; r < n_ranks; r++) {
        int at[3];
        struct box b;
        coordinate_of(c->mesh, c->mesh_ndim, r, at);
        layout_box(MESH_SHAPE(3, c->extent), c->mesh, at, &p, &b);
        ck_assert_msg(b.extent[1] == c->sizes[r] && b.offset[1] == c->offsets[r], "%s: rank %d holds %lld at %lld",
                      c->id, r, (long long)b.extent[1], (long long)b.offset[1]);
        ck_assert_int_eq(b.extent[0], 3);
        ck_assert_int_eq(b.offset[0], 0);
        ck_assert_int_eq(layout_local_shape(MESH_SHAPE(3, c->extent), c->mesh, at, &p).dim[1], c->sizes[r]);
    }
}
END_TEST

/* One row: a 1-dim split of `extent` by strided and plain shards in turn; what each rank holds, in order, ended by -1. */
struct stride_case {
    const char *id;
    int mesh_ndim, mesh[3], factor[3];
    int64_t extent;
    int64_t places[4][7];
};

static const struct stride_case stride_cases[] = {
    { "ord8", 2, { 2, 2 }, { 2, 1 }, 8, { { 0, 1, -1 }, { 4, 5, -1 }, { 2, 3, -1 }, { 6, 7, -1 } } },
    { "ord6", 2, { 2, 2 }, { 2, 1 }, 6, { { 0, 1, -1 }, { 3, 4, -1 }, { 2, -1 }, { 5, -1 } } },
    { "ord5", 2, { 2, 2 }, { 2, 1 }, 5, { { 0, 1, -1 }, { 3, -1 }, { 2, -1 }, { 4, -1 } } },
    { "stride8", 1, { 2 }, { 2 }, 8, { { 0, 1, 4, 5, -1 }, { 2, 3, 6, 7, -1 } } },
    { "stride5", 1, { 2 }, { 2 }, 5, { { 0, 1, 3, -1 }, { 2, 4, -1 } } },
    { "fine", 1, { 2 }, { 9 }, 3, { { 0, 1, 2, -1 }, { -1 } } },
    { "twice", 2, { 2, 2 }, { 2, 3 }, 12, { { 0, 2, 7, -1 }, { 1, 6, 8, -1 }, { 3, 5, 10, -1 }, { 4, 9, 11, -1 } } },
    { "none", 1, { 4 }, { 2 }, 0, { { -1 }, { -1 }, { -1 }, { -1 } } },
};

START_TEST(a_strided_shard_is_a_piece_of_each_chunk)
{
    const struct stride_case *c = &stride_cases[_i];
    mesh_placements p = { .n = c->mesh_ndim };
    int at[3] = { 0 }, rank = 0;
    for (int i = 0; i < c->mesh_ndim; i++) {
        p.at[i] = mesh_strided_shard(0, c->factor[i]);
    }
    do {
        struct places held = places_of(c->extent, 0, c->mesh, at, &p);
        int64_t n = 0, n_found = 0;
        for (int64_t k = 0; k < held.extent; k++) {
            struct chunk run = places_run(&held, k);
            ck_assert_msg(run.offset == c->places[rank][k], "%s: rank %d, place %lld is %lld", c->id, rank,
                          (long long)k, (long long)run.offset);
            ck_assert_int_eq(places_find(&held, run.offset), k);
            n++;
        }
        ck_assert_int_eq(c->places[rank][n], -1);
        for (int64_t k = 0; k < c->extent; k++) {
            n_found += places_find(&held, k) >= 0;
        }
        ck_assert_int_eq(n_found, held.extent);
        rank++;
    } while (next_coordinate(c->mesh_ndim, c->mesh, at));
}
END_TEST

START_TEST(big30_the_later_mesh_dim_outermost_by_a_stride)
{
    const int mesh[2] = { 30, 8 };
    mesh_placements p = MESH_PLACEMENTS(mesh_strided_shard(0, 8), mesh_shard(0));
    for (int i = 0; i < 30; i++) {
        for (int j = 0; j < 8; j++) {
            struct box b;
            layout_box(MESH_SHAPE(4096), mesh, (int[]){ i, j }, &p, &b);
            ck_assert_int_eq(b.extent[0], i < 28 ? 18 : i == 28 ? 8 : 0);
            ck_assert_int_eq(b.offset[0], i < 29 ? 512 * j + 18 * i : 4096);
        }
    }
}
END_TEST

START_TEST(case_big30_inner_parts_after_outer_ones)
{
    const int mesh[2] = { 8, 30 }; /* the outer split first */
    mesh_placements p = MESH_PLACEMENTS(mesh_shard(0), mesh_shard(0));
    for (int j = 0; j < 8; j++) {
        for (int i = 0; i < 30; i++) {
            struct box b;
            layout_box(MESH_SHAPE(4096), mesh, (int[]){ j, i }, &p, &b);
            ck_assert_int_eq(b.extent[0], i < 28 ? 18 : i == 28 ? 8 : 0);
            ck_assert_int_eq(b.offset[0], i < 29 ? 512 * j + 18 * i : 4096);
        }
    }
}
END_TEST

START_TEST(chunks_cover_every_extent_once)
{
    for (int64_t n = 0; n < 40; n++) {
        for (int parts = 1; parts < 12; parts++) {
            int64_t next = 0;
            for (int i = 0; i < parts; i++) {
                struct chunk c = layout_chunk(n, parts, i);
                ck_assert_int_eq(c.offset, next);
                next += c.extent;
            }
            ck_assert_int_eq(next, n);
        }
    }
}
END_TEST

START_TEST(negative_shard_dims_count_from_the_end)
{
    mesh_placements p = MESH_PLACEMENTS(mesh_shard(-1));
    ck_assert_int_eq(placements_check("x", MESH_SHAPE(3, 7), MESH_F32, 1, &p), 0);
    ck_assert(p.at[0].kind == MESH_IS_SHARD && p.at[0].dim == 1);
}
END_TEST

struct bad {
    mesh_shape shape;
    mesh_dtype dtype;
    int mesh_ndim;
    mesh_placements p;
    int status;
    const char *says;
};

START_TEST(bad_placements_are_refused_with_the_numbers)
{
    const struct bad bad[] = {
        { MESH_SHAPE(2, 2), MESH_F32, 1, MESH_PLACEMENTS(mesh_shard(2)), MESH_EINVAL,
          "S(2) on mesh dim 0, but the tensor has 2" },
        { MESH_SHAPE(2, 2), MESH_F32, 1, MESH_PLACEMENTS(mesh_shard(-3)), MESH_EINVAL, "S(-3)" },
        { MESH_SCALAR_SHAPE, MESH_F32, 1, MESH_PLACEMENTS(mesh_shard(0)), MESH_EINVAL, "scalar" },
        { MESH_SHAPE(2), MESH_F32, 2, MESH_PLACEMENTS(mesh_shard(0)), MESH_EINVAL, "1 placement for a mesh of 2 dims" },
        { MESH_SHAPE(2), MESH_I64, 1, MESH_PLACEMENTS(mesh_partial(MESH_AVG)), MESH_EPLACEMENT, "P(avg)" },
        { MESH_SHAPE(2), MESH_F32, 1, MESH_PLACEMENTS(mesh_partial(MESH_BXOR)), MESH_EPLACEMENT, "no meaning for f32" },
        { MESH_SHAPE(2), MESH_F32, 1, MESH_PLACEMENTS({ .kind = MESH_IS_PARTIAL }), MESH_EINVAL, "unknown reduction" },
        { MESH_SHAPE(2), MESH_F32, 1, MESH_PLACEMENTS({ .kind = 0 }), MESH_EINVAL, "unknown kind" },
        { MESH_SHAPE(2), MESH_F32, 2, MESH_PLACEMENTS(mesh_partial(MESH_SUM), mesh_partial(MESH_MAX)), MESH_EPLACEMENT,
          "mixes" },
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        mesh_placements p = bad[i].p;
        int r = placements_check("create", bad[i].shape, bad[i].dtype, bad[i].mesh_ndim, &p);
        ck_assert_msg(r == bad[i].status, "%zu: status %d", i, r);
        ck_assert_msg(strstr(mesh_last_error()->message, bad[i].says) != NULL, "%zu: %s", i,
                      mesh_last_error()->message);
    }
}
END_TEST

START_TEST(sum_and_avg_may_be_pending_together)
{
    mesh_placements p = MESH_PLACEMENTS(mesh_partial(MESH_SUM), mesh_partial(MESH_AVG));
    ck_assert_int_eq(placements_check("x", MESH_SHAPE(3), MESH_F32, 2, &p), 0);
    p = MESH_PLACEMENTS(mesh_partial(MESH_SUM));
    ck_assert_int_eq(placements_check("x", MESH_SCALAR_SHAPE, MESH_F32, 1, &p), 0);
}
END_TEST

START_TEST(placements_print_as_people_write_them)
{
    char buf[64];
    mesh_placements p =
        MESH_PLACEMENTS(mesh_shard(0), mesh_replicate(), mesh_partial(MESH_SUM), mesh_partial(MESH_MAX));
    ck_assert_str_eq(mesh_placements_text(p, buf, sizeof buf), "[S(0), R, P(sum), P(max)]");
    ck_assert_str_eq(mesh_placements_text(p, buf, 6), "[S(0)");
}
END_TEST

START_TEST(placements_are_equal_when_they_say_the_same)
{
    mesh_placements a = MESH_PLACEMENTS(mesh_shard(0), mesh_replicate()), b = a;
    b.at[1].dim = 3; /* means nothing for Replicate */
    ck_assert(mesh_placements_equal(a, b));
    b = MESH_PLACEMENTS(mesh_shard(1), mesh_replicate());
    ck_assert(!mesh_placements_equal(a, b));
    ck_assert(!mesh_placements_equal(a, MESH_PLACEMENTS(mesh_shard(0))));
    ck_assert(!mesh_placements_equal(MESH_PLACEMENTS(mesh_partial(MESH_SUM)), MESH_PLACEMENTS(mesh_partial(MESH_AVG))));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("layout");
    TCase *t = tcase_create("layout");
    tcase_add_loop_test(t, parts_are_those_of_the_case_list, 0, (int)ARRAY_SIZE(cases));
    tcase_add_test(t, case_big30_inner_parts_after_outer_ones);
    tcase_add_test(t, chunks_cover_every_extent_once);
    tcase_add_test(t, negative_shard_dims_count_from_the_end);
    tcase_add_test(t, bad_placements_are_refused_with_the_numbers);
    tcase_add_test(t, sum_and_avg_may_be_pending_together);
    tcase_add_test(t, placements_print_as_people_write_them);
    tcase_add_test(t, placements_are_equal_when_they_say_the_same);
    tcase_add_loop_test(t, a_strided_shard_is_a_piece_of_each_chunk, 0, (int)ARRAY_SIZE(stride_cases));
    tcase_add_test(t, big30_the_later_mesh_dim_outermost_by_a_stride);
    suite_add_tcase(s, t);
    return s;
}
