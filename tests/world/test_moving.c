/* tests/world/test_moving.c - views, moving, joining, cutting and indexing as a program sees them.  Ids are those of the case list.
 *
 * Beside values: which placements the results have, what is sent, and that all ranks are refused with one sentence.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/util.h"
#include "harness/check_main.h"
#include "harness/ranks.h"

#define ON(...)      MESH_PLACEMENTS(__VA_ARGS__)
#define R            mesh_replicate()
#define S(d)         mesh_shard(d)
#define P(op)        mesh_partial(op)

#define SHAPE(...)   MESH_SHAPE(__VA_ARGS__)
#define VALUES(...)  ((const double[]){ __VA_ARGS__ })
#define MAX_ELEMENTS 128

static int64_t numel(mesh_shape s)
{
    int64_t n = 1;
    for (int d = 0; d < s.ndim; d++) {
        n *= s.dim[d];
    }
    return n;
}

/* 0, factor, 2 factor, ... */
static mesh_dtensor *steps(mesh_device_mesh *m, mesh_shape s, double factor, mesh_placements p)
{
    mesh_tensor *t = mesh_tensor_new(s, MESH_F32);
    for (int64_t i = 0; t != NULL && i < numel(s); i++) {
        ((float *)mesh_tensor_data(t))[i] = (float)((double)i * factor);
    }
    return mesh_distribute_same(t, m, p);
}

static mesh_dtensor *arange(mesh_device_mesh *m, mesh_shape s, mesh_placements p)
{
    return steps(m, s, 1, p);
}

static mesh_dtensor *numbers(mesh_device_mesh *m, mesh_shape s, const int64_t *values, mesh_placements p)
{
    mesh_tensor *t = mesh_tensor_new(s, MESH_I64);
    if (t != NULL) {
        memcpy(mesh_tensor_data(t), values, (size_t)numel(s) * sizeof *values);
    }
    return mesh_distribute_same(t, m, p);
}

static int holds(mesh_tensor *t, mesh_shape s, const double *values)
{
    REQUIRE(t != NULL);
    mesh_shape got = mesh_tensor_shape(t);
    REQUIRE(got.ndim == s.ndim);
    for (int d = 0; d < s.ndim; d++) {
        REQUIRE(got.dim[d] == s.dim[d]);
    }
    for (int64_t i = 0; i < numel(s); i++) {
        bool is_float = mesh_tensor_dtype(t) == MESH_F32;
        double v = is_float ? (double)((float *)mesh_tensor_data(t))[i] : (double)((int64_t *)mesh_tensor_data(t))[i];
        REQUIRE_NEAR(v, values[i], 1e-5);
    }
    return 0;
}

static int full_is(mesh_dtensor *x, mesh_shape s, const double *values)
{
    REQUIRE(x != NULL);
    return holds(mesh_full_tensor(x), s, values);
}

static int is_arange(mesh_dtensor *x, mesh_shape s)
{
    double values[MAX_ELEMENTS];
    for (int i = 0; i < MAX_ELEMENTS; i++) {
        values[i] = i;
    }
    return full_is(x, s, values);
}

static bool lies(const mesh_dtensor *x, mesh_placements p)
{
    return x != NULL && mesh_placements_equal(mesh_placements_of(x), p);
}

static long long n_collectives(void)
{
    long long n = 0;
    for (int kind = MESH_COMM_ALL_REDUCE; kind <= MESH_COMM_BARRIER; kind++) {
        n += (long long)mesh_comm_count((mesh_comm_kind)kind);
    }
    return n;
}

static int refused(mesh_scope *s, int status, const char *says)
{
    int r = mesh_scope_end(s);
    if (r != status || strstr(mesh_last_error()->message, says) == NULL) {
        return ranks_complain(__FILE__, __LINE__, "%d \"%s\" is not %d with \"%s\"", r, mesh_last_error()->message,
                              status, says);
    }
    return 0;
}

static mesh_device_mesh *line_of(int n)
{
    return mesh_init_device_mesh("cpu", MESH_SHAPE(n), MESH_NAMES("tp"));
}

/* --- views ----------------------------------------------------------------------------------------------------------- */

static int is_no_view(mesh_dtensor *x, mesh_shape to)
{
    mesh_scope *s = mesh_scope_begin();
    REQUIRE(mesh_view(x, to) == NULL);
    return refused(s, MESH_EPLACEMENT, "elements would have to move between ranks");
}

static int views_on_a_line(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line_of(4);
    mesh_comm_reset();
    /* 55, 56: the parts are not chunks of the new shape */
    REQUIRE_OK(is_no_view(mesh_zeros(SHAPE(6, 256), m, ON(S(0))), SHAPE(1536)));
    REQUIRE_OK(is_no_view(arange(m, SHAPE(12, 8), ON(S(1))), SHAPE(16, 6)));
    /* 57, 59 */
    mesh_dtensor *x = mesh_view(arange(m, SHAPE(8, 3), ON(S(0))), SHAPE(-1));
    REQUIRE(lies(x, ON(S(0))));
    mesh_dtensor *y = mesh_view(arange(m, SHAPE(2, 12), ON(S(1))), SHAPE(2, 4, 3));
    REQUIRE(lies(y, ON(S(1))));
    REQUIRE_OK(is_no_view(arange(m, SHAPE(2, 12), ON(S(1))), SHAPE(2, 3, 4)));
    /* 58: the parts are strided shards */
    mesh_dtensor *z = mesh_view(arange(m, SHAPE(3, 8), ON(S(1))), SHAPE(24));
    REQUIRE(lies(z, ON(mesh_strided_shard(0, 3))));
    REQUIRE(n_collectives() == 0);
    REQUIRE_OK(is_arange(z, SHAPE(24)));
    REQUIRE_OK(is_arange(x, SHAPE(24)));
    REQUIRE_OK(is_arange(y, SHAPE(2, 4, 3)));
    REQUIRE_OK(is_arange(mesh_reshape(arange(m, SHAPE(3, 8), ON(S(1))), SHAPE(24)), SHAPE(24)));
    REQUIRE_OK(is_arange(mesh_reshape(arange(m, SHAPE(12, 8), ON(S(1))), SHAPE(16, 6)), SHAPE(16, 6)));
    return 0;
}

START_TEST(a_view_keeps_parts_or_is_refused_on_every_rank)
{
    ranks_run(4, views_on_a_line, NULL);
}
END_TEST

static int views_on_a_plane(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(2, 2), NULL);
    mesh_comm_reset();
    /* 60, 61 */
    mesh_dtensor *x = mesh_view(arange(m, SHAPE(4, 6), ON(S(0), S(0))), SHAPE(2, 2, 6));
    mesh_dtensor *y = mesh_view(arange(m, SHAPE(6, 4), ON(S(0), S(0))), SHAPE(2, 3, 4));
    REQUIRE(lies(x, ON(S(0), S(1))) && lies(y, ON(S(0), S(1))));
    REQUIRE(n_collectives() == 0);
    REQUIRE_OK(is_arange(x, SHAPE(2, 2, 6)));
    REQUIRE_OK(is_arange(y, SHAPE(2, 3, 4)));
    return 0;
}

START_TEST(nested_shards_of_a_dim_become_shards_of_its_factors)
{
    ranks_run(4, views_on_a_plane, NULL);
}
END_TEST

/* --- moving and joining --------------------------------------------------------------------------------------------- */

static int permuted(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line_of(4);
    /* 65 tr */
    mesh_comm_reset();
    mesh_dtensor *x = mesh_permute(arange(m, SHAPE(5, 3), ON(S(0))), SHAPE(-1, -2));
    REQUIRE(lies(x, ON(S(1))) && n_collectives() == 0);
    if (mesh_rank() == 2) {
        REQUIRE_OK(holds(mesh_to_local(x), SHAPE(3, 1), VALUES(12, 13, 14)));
    }
    /* 79 stk */
    mesh_dtensor *two[2] = { arange(m, SHAPE(8, 8), ON(S(1))), arange(m, SHAPE(8, 8), ON(S(1))) };
    mesh_dtensor *y = mesh_stack(two, 2, 0), *z = mesh_stack(two, 2, 1);
    REQUIRE(lies(y, ON(S(2))) && mesh_shape_of(y).dim[0] == 2);
    REQUIRE(lies(z, ON(S(2))) && mesh_shape_of(z).dim[1] == 2);
    /* 71 slk */
    REQUIRE(lies(mesh_narrow(arange(m, SHAPE(6, 8), ON(S(0))), 1, 2, 3), ON(S(0))) && n_collectives() == 0);
    return 0;
}

START_TEST(untouched_dims_stay_sharded_and_nothing_is_sent)
{
    ranks_run(4, permuted, NULL);
}
END_TEST

static int joined(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line_of(2);
    /* 75 cat2 */
    mesh_dtensor *two[2] = { arange(m, SHAPE(3, 2), ON(S(0))), arange(m, SHAPE(3, 4), ON(S(1))) };
    REQUIRE_OK(
        full_is(mesh_cat(two, 2, 1), SHAPE(3, 6), VALUES(0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 6, 7, 4, 5, 8, 9, 10, 11)));
    /* 76 catp */
    mesh_tensor *part = mesh_tensor_new(SHAPE(1), MESH_F32);
    *(float *)mesh_tensor_data(part) = (float)(mesh_rank() + 1);
    two[0] = mesh_from_local(part, m, ON(P(MESH_SUM)));
    two[1] = steps(m, SHAPE(1), 0, ON(R));
    two[1] = mesh_add_scalar(two[1], 10);
    REQUIRE_OK(full_is(mesh_cat(two, 2, 0), SHAPE(2), VALUES(3, 10)));
    /* 77 cat70 */
    mesh_dtensor *many[70];
    for (int i = 0; i < 70; i++) {
        many[i] = mesh_add_scalar(arange(m, SHAPE(1), ON(S(0))), i);
    }
    REQUIRE_OK(is_arange(mesh_cat(many, 70, 0), SHAPE(70)));
    /* a dtype for all */
    two[0] = arange(m, SHAPE(2), ON(S(0)));
    two[1] = numbers(m, SHAPE(2), (int64_t[]){ 2, 3 }, ON(R));
    mesh_dtensor *mixed = mesh_cat(two, 2, 0);
    REQUIRE(mixed != NULL && mesh_dtype_of(mixed) == MESH_F32);
    REQUIRE_OK(is_arange(mixed, SHAPE(4)));
    return 0;
}

START_TEST(joining_brings_different_layouts_together)
{
    ranks_run(2, joined, NULL);
}
END_TEST

static int cut(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line_of(4);
    mesh_dtensor *x = arange(m, SHAPE(10), ON(S(0))), *pieces[4];
    /* 78 spl */
    REQUIRE_OK(is_arange(mesh_narrow(x, 0, 0, 3), SHAPE(3)));
    REQUIRE_OK(full_is(mesh_narrow(x, 0, 3, 7), SHAPE(7), VALUES(3, 4, 5, 6, 7, 8, 9)));
    REQUIRE(mesh_split(x, 3, 0, pieces, 4) == 4);
    REQUIRE_OK(full_is(pieces[2], SHAPE(3), VALUES(6, 7, 8)));
    REQUIRE_OK(full_is(pieces[3], SHAPE(1), VALUES(9)));
    /* 69 sle, 70 sel */
    x = arange(m, SHAPE(16), ON(S(0)));
    REQUIRE_OK(full_is(mesh_narrow(x, 0, 5, 0), SHAPE(0), VALUES(0)));
    REQUIRE_OK(full_is(mesh_narrow(x, 0, -3, 3), SHAPE(3), VALUES(13, 14, 15)));
    REQUIRE_OK(full_is(mesh_select(x, 0, 7), MESH_SCALAR_SHAPE, VALUES(7)));
    REQUIRE_OK(full_is(mesh_select(x, 0, -9), MESH_SCALAR_SHAPE, VALUES(7)));
    mesh_scope *s = mesh_scope_begin();
    REQUIRE(mesh_select(x, 0, 16) == NULL);
    REQUIRE_OK(refused(s, MESH_EINVAL, "index 16 is outside dim 0 of [16]"));
    s = mesh_scope_begin();
    REQUIRE(mesh_split(x, 3, 0, pieces, 4) == 0 && pieces[0] == NULL);
    REQUIRE_OK(refused(s, MESH_EINVAL, "6 pieces of 3"));
    return 0;
}

START_TEST(cutting_a_sharded_dim)
{
    ranks_run(4, cut, NULL);
}
END_TEST

/* What changes its rank is sent, and nothing else: counted, and seen in the placements. */
static int shifted(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line_of(4);
    mesh_dtensor *x = arange(m, SHAPE(8, 2), ON(S(0)));
    mesh_comm_reset();
    mesh_dtensor *rolled = mesh_roll(x, 1, 0), *flipped = mesh_flip(x, SHAPE(0)), *narrowed = mesh_narrow(x, 0, 1, 6);
    mesh_dtensor *padded = mesh_pad(x, SHAPE(0, 0, 1, 0), -1);
    REQUIRE(lies(rolled, ON(S(0))) && lies(flipped, ON(S(0))) && lies(narrowed, ON(S(0))) && lies(padded, ON(S(0))));
    REQUIRE(n_collectives() == 4 && mesh_comm_count(MESH_COMM_ALL_TO_ALL) == 4);
    mesh_dtensor *same = mesh_roll(x, 16, 0); /* nothing moves */
    REQUIRE(lies(same, ON(S(0))) && n_collectives() == 4);
    REQUIRE_OK(is_arange(same, SHAPE(8, 2)));
    REQUIRE_OK(full_is(rolled, SHAPE(8, 2), VALUES(14, 15, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)));
    REQUIRE_OK(full_is(flipped, SHAPE(8, 2), VALUES(14, 15, 12, 13, 10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 0, 1)));
    REQUIRE_OK(full_is(narrowed, SHAPE(6, 2), VALUES(2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)));
    REQUIRE_OK(full_is(padded, SHAPE(9, 2), VALUES(-1, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)));
    return 0;
}

START_TEST(shifting_along_a_sharded_dim_keeps_it_sharded)
{
    ranks_run(4, shifted, NULL);
}
END_TEST

/* --- indexing ------------------------------------------------------------------------------------------------------- */

static int looked_up(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line_of(4);
    mesh_dtensor *x = steps(m, SHAPE(10), 10, ON(S(0)));
    mesh_comm_reset();
    /* 80 isel, 81 gath */
    mesh_dtensor *a = mesh_index_select(x, numbers(m, SHAPE(4), (int64_t[]){ 9, 0, 3, -7 }, ON(R)), 0);
    mesh_dtensor *b =
        mesh_take_along_dim(arange(m, SHAPE(2, 5), ON(S(1))), numbers(m, SHAPE(2, 1), (int64_t[]){ 4, 0 }, ON(R)), 1);
    mesh_dtensor *c = mesh_select(x, 0, 4);
    REQUIRE(lies(a, ON(P(MESH_SUM))) && lies(b, ON(P(MESH_SUM))) && lies(c, ON(P(MESH_SUM))) && n_collectives() == 0);
    REQUIRE_OK(full_is(a, SHAPE(4), VALUES(90, 0, 30, 30)));
    REQUIRE_OK(full_is(b, SHAPE(2, 1), VALUES(4, 5)));
    REQUIRE_OK(full_is(c, MESH_SCALAR_SHAPE, VALUES(40)));
    /* out of range: everybody has the index, so everybody finds it */
    static const int64_t bad[2] = { 10, -11 };
    for (int i = 0; i < 2; i++) {
        mesh_scope *s = mesh_scope_begin();
        mesh_index_select(x, numbers(m, SHAPE(1), &bad[i], ON(R)), 0);
        REQUIRE_OK(refused(s, MESH_EINVAL, "is outside [-10, 10)"));
    }
    mesh_dtensor *hot = mesh_one_hot(numbers(m, SHAPE(3), (int64_t[]){ 2, 0, 1 }, ON(S(0))), 3);
    REQUIRE(lies(hot, ON(S(0))));
    return full_is(hot, SHAPE(3, 3), VALUES(0, 0, 1, 1, 0, 0, 0, 1, 0));
}

START_TEST(a_sharded_dim_is_looked_up_in_place)
{
    ranks_run(4, looked_up, NULL);
}
END_TEST

static int embedded(void *arg)
{
    (void)arg;
    static const int64_t which[8] = { 0, 2, 3, 5, 6, 8, 9, 9 };
    mesh_device_mesh *m = line_of(4);
    mesh_tensor *t = mesh_tensor_new(SHAPE(10, 2), MESH_F32);
    double want[16], slope[20] = { 0 };
    for (int i = 0; i < 10; i++) {
        ((float *)mesh_tensor_data(t))[2 * i] = (float)i;
        ((float *)mesh_tensor_data(t))[2 * i + 1] = (float)(10 * i);
    }
    for (int i = 0; i < 8; i++) {
        want[2 * i] = (double)which[i];
        want[2 * i + 1] = 10 * (double)which[i];
        slope[2 * which[i]] += 1;
        slope[2 * which[i] + 1] += 1;
    }
    /* 141 emb */
    mesh_dtensor *table = mesh_requires_grad(mesh_distribute_same(t, m, ON(S(0))), true);
    mesh_comm_reset();
    mesh_dtensor *y = mesh_embedding(table, numbers(m, SHAPE(8), which, ON(R)));
    REQUIRE(lies(y, ON(P(MESH_SUM))) && n_collectives() == 0);
    REQUIRE_OK(full_is(y, SHAPE(8, 2), want));
    mesh_comm_reset();
    REQUIRE(mesh_backward(mesh_sum(y)) == 0);
    REQUIRE(lies(mesh_grad(table), ON(S(0))));
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_GATHER) == 0 && mesh_comm_count(MESH_COMM_REDUCE_SCATTER) == 0);
    return full_is(mesh_grad(table), SHAPE(10, 2), slope);
}

START_TEST(a_table_split_by_rows_is_never_gathered)
{
    ranks_run(4, embedded, NULL);
}
END_TEST

/* Only rank 1 has the bad id; nobody waits, and all learn who has it. */
static int bad_id(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line_of(2);
    mesh_dtensor *table = arange(m, SHAPE(4, 2), ON(R));
    mesh_dtensor *ids = numbers(m, SHAPE(4), (int64_t[]){ 0, 1, 2, 4 }, ON(S(0)));
    mesh_scope *s = mesh_scope_begin();
    mesh_full_tensor(mesh_embedding(table, ids));
    int r = mesh_scope_end(s);
    REQUIRE(r == (mesh_rank() == 1 ? MESH_EINVAL : MESH_EABORTED));
    REQUIRE(strstr(mesh_last_error()->message, "index 4") != NULL);
    return 0;
}

START_TEST(an_id_out_of_range_is_known_to_all_ranks)
{
    ranks_run(2, bad_id, NULL);
}
END_TEST

/* --- attention ------------------------------------------------------------------------------------------------------ */

static int attended(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = line_of(4);
    mesh_placements heads = ON(S(1)), rows = ON(S(2)), whole = ON(R);
    mesh_dtensor *q = mesh_randn(SHAPE(2, 6, 5, 4), m, heads, .seed = 1);
    mesh_dtensor *k = mesh_randn(SHAPE(2, 6, 5, 4), m, heads, .seed = 2);
    mesh_dtensor *v = mesh_randn(SHAPE(2, 6, 5, 4), m, heads, .seed = 3);
    mesh_comm_reset();
    mesh_dtensor *y = mesh_scaled_dot_product_attention(q, k, v, .is_causal = true); /* 127: 6 heads over 4 ranks */
    REQUIRE(lies(y, heads) && n_collectives() == 0);
    mesh_dtensor *q2 = mesh_redistribute(q, rows), *k2 = mesh_redistribute(k, whole), *v2 = mesh_redistribute(v, whole);
    mesh_comm_reset();
    mesh_dtensor *z = mesh_scaled_dot_product_attention(q2, k2, v2, .is_causal = true);
    REQUIRE(lies(z, rows) && n_collectives() == 0);
    mesh_tensor *a = mesh_full_tensor(y), *b = mesh_full_tensor(z);
    REQUIRE(a != NULL && b != NULL);
    for (int64_t i = 0; i < 2 * 6 * 5 * 4; i++) {
        REQUIRE_NEAR((double)((float *)mesh_tensor_data(a))[i], (double)((float *)mesh_tensor_data(b))[i], 1e-5);
    }
    mesh_dtensor *four_heads = mesh_randn(SHAPE(2, 4, 5, 4), m, whole, .seed = 2);
    mesh_scope *s = mesh_scope_begin();
    REQUIRE(mesh_scaled_dot_product_attention(q, four_heads, four_heads, .scale = 1) == NULL);
    return refused(s, MESH_ESHAPE, "q [2,6,5,4], k [2,4,5,4]");
}

START_TEST(attention_over_sharded_heads_or_rows_sends_nothing)
{
    ranks_run(4, attended, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("moving and indexing");
    TCase *t = tcase_create("worlds");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_view_keeps_parts_or_is_refused_on_every_rank);
    tcase_add_test(t, nested_shards_of_a_dim_become_shards_of_its_factors);
    tcase_add_test(t, untouched_dims_stay_sharded_and_nothing_is_sent);
    tcase_add_test(t, joining_brings_different_layouts_together);
    tcase_add_test(t, cutting_a_sharded_dim);
    tcase_add_test(t, shifting_along_a_sharded_dim_keeps_it_sharded);
    tcase_add_test(t, a_sharded_dim_is_looked_up_in_place);
    tcase_add_test(t, a_table_split_by_rows_is_never_gathered);
    tcase_add_test(t, an_id_out_of_range_is_known_to_all_ranks);
    tcase_add_test(t, attention_over_sharded_heads_or_rows_sends_nothing);
    suite_add_tcase(s, t);
    return s;
}
