/* tests/world/test_arguments.c - arguments far out of range are refused on every rank alike, and the job goes on.
 * SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>

#include "base/util.h"
#include "harness/check_main.h"
#include "harness/ranks.h"

#define ON(...) MESH_PLACEMENTS(__VA_ARGS__)
#define R       mesh_replicate()
#define S(d)    mesh_shard(d)
#define P(op)   mesh_partial(op)
#define FAR     (INT64_C(1) << 32) /* 0 to whoever keeps 32 bits of it */

struct given {
    mesh_device_mesh *m; /* 2 x 2 */
    mesh_dtensor *x;     /* [4,6], sharded over both mesh dims */
};

static mesh_shape of_ndim(int ndim)
{
    return (mesh_shape){ .ndim = ndim, .dim = { 1, 0 } };
}

static mesh_dtensor *local_of(const struct given *g, mesh_shape whole)
{
    return mesh_from_local(mesh_tensor_new(MESH_SHAPE(2, 3), MESH_F32), g->m, ON(S(0), S(1)), .shape = whole);
}

/* clang-format off */
static mesh_dtensor *permute_many(const struct given *g)  { return mesh_permute(g->x, of_ndim(INT_MAX)); }
static mesh_dtensor *permute_fewer(const struct given *g) { return mesh_permute(g->x, of_ndim(INT_MIN)); }
static mesh_dtensor *permute_far(const struct given *g)   { return mesh_permute(g->x, MESH_SHAPE(1, FAR)); }
static mesh_dtensor *repeat_fewer(const struct given *g)  { return mesh_repeat(g->x, of_ndim(INT_MIN)); }
static mesh_dtensor *flip_far(const struct given *g)      { return mesh_flip(g->x, MESH_SHAPE(FAR)); }
static mesh_dtensor *sum_far(const struct given *g)       { return mesh_sum(g->x, .dims = MESH_SHAPE(FAR)); }
static mesh_dtensor *reshape_huge(const struct given *g)  { return mesh_reshape(g->x, MESH_SHAPE(INT64_MAX, 3, -1)); }
static mesh_dtensor *view_many(const struct given *g)     { return mesh_view(g->x, of_ndim(9)); }
static mesh_dtensor *whole_of_many(const struct given *g) { return local_of(g, of_ndim(INT_MAX)); }
static mesh_dtensor *whole_of_fewer(const struct given *g){ return local_of(g, of_ndim(-1)); }
static mesh_dtensor *from_nothing(const struct given *g)  { return mesh_from_local(NULL, g->m, ON(S(0), S(1))); }
static mesh_dtensor *from_nowhere(const struct given *g)  { return mesh_from_local(mesh_to_local(g->x), NULL, ON(S(0))); }
static mesh_dtensor *deal_nothing(const struct given *g)  { return mesh_distribute_tensor(NULL, g->m, ON(R, S(0))); }
static mesh_dtensor *deal_nowhere(const struct given *g)  { return mesh_distribute_tensor(mesh_to_local(g->x), NULL, ON(R)); }
static mesh_dtensor *cut_nothing(const struct given *g)   { return mesh_distribute_same(NULL, g->m, ON(R, S(0))); }
static mesh_dtensor *send_nothing(const struct given *g)  { return mesh_distribute_tensor_from(NULL, g->m, ON(R, R), 0); }
static mesh_dtensor *list_of_many(const struct given *g)  { return mesh_zeros(MESH_SHAPE(4), g->m, ((mesh_placements){ .n = 99 })); }
static mesh_dtensor *half_of_ints(const struct given *g)
{
    return mesh_full(MESH_SHAPE(4), 0.5, g->m, ON(P(MESH_SUM), S(0)), .dtype = MESH_I32);
}
/* clang-format on */

static const struct {
    mesh_dtensor *(*call)(const struct given *);
    int status;
    const char *says;
} refused[] = {
    { permute_many, MESH_ESHAPE, "2147483647 dims" },         { permute_fewer, MESH_ESHAPE, "-2147483648 dims" },
    { permute_far, MESH_EINVAL, "no dimension 4294967296" },  { repeat_fewer, MESH_ESHAPE, "-2147483648 numbers" },
    { flip_far, MESH_EINVAL, "no dimension 4294967296" },     { sum_far, MESH_EINVAL, "no dimension 4294967296" },
    { reshape_huge, MESH_ESHAPE, "more than 2^62 elements" }, { view_many, MESH_ESHAPE, "9 dims" },
    { whole_of_many, MESH_ESHAPE, "2147483647 dims" },        { whole_of_fewer, MESH_ESHAPE, "-1 dims" },
    { from_nothing, MESH_EINVAL, "tensor is NULL" },          { from_nowhere, MESH_EINVAL, "mesh is NULL" },
    { deal_nothing, MESH_EINVAL, "tensor is NULL" },          { deal_nowhere, MESH_EINVAL, "mesh is NULL" },
    { cut_nothing, MESH_EINVAL, "tensor is NULL" },           { send_nothing, MESH_EINVAL, "tensor is NULL" },
    { list_of_many, MESH_EINVAL, "99 placements" },           { half_of_ints, MESH_EINVAL, "i32 cannot hold 0.5" },
};

static int refuse(void *arg)
{
    (void)arg;
    struct given g = { .m = mesh_init_device_mesh("cpu", MESH_SHAPE(2, 2), NULL) };
    g.x = mesh_ones(MESH_SHAPE(4, 6), g.m, ON(S(0), S(1)));
    REQUIRE(g.x != NULL);
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        mesh_scope *s = mesh_scope_begin();
        mesh_dtensor *y = refused[i].call(&g);
        int r = mesh_scope_end(s);
        if (y != NULL || r != refused[i].status || strstr(mesh_last_error()->message, refused[i].says) == NULL) {
            return ranks_complain(__FILE__, __LINE__, "call %zu: %d \"%s\" is not %d with \"%s\"", i, r,
                                  mesh_last_error()->message, refused[i].status, refused[i].says);
        }
    }
    mesh_scope *s = mesh_scope_begin();
    mesh_compute_local_shape_and_offset(MESH_SHAPE(4), g.m, ON(R, S(0)), NULL, &(mesh_shape){ .ndim = 0 }, NULL);
    REQUIRE(mesh_scope_end(s) == MESH_EINVAL);
    REQUIRE_NEAR(mesh_item(mesh_sum(g.x)), 24, 0);
    return 0;
}

START_TEST(arguments_far_out_of_range_are_refused_alike_and_the_job_goes_on)
{
    ranks_run(4, refuse, NULL);
}
END_TEST

static int accept(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(4), NULL);
    mesh_dtensor *x = mesh_full(MESH_SHAPE(5, 3), 2, m, ON(S(0)), .requires_grad = true);
    REQUIRE_NEAR(mesh_item(mesh_sum(mesh_roll(x, INT64_MIN, 0))), 30, 0);
    REQUIRE_NEAR(mesh_item(mesh_sum(mesh_tril(x, INT64_MAX))), 30, 0);
    REQUIRE_NEAR(mesh_item(mesh_sum(mesh_tril(x, INT64_MIN))), 0, 0);
    REQUIRE_NEAR(mesh_item(mesh_sum(mesh_triu(x, INT64_MAX))), 0, 0);
    mesh_dtensor *y = mesh_sum(mesh_roll(mesh_tril(x, INT64_MAX), INT64_MIN, 1));
    REQUIRE_OK(mesh_backward(y));
    REQUIRE_NEAR(mesh_item(mesh_sum(mesh_grad(x))), 15, 0);
    return 0;
}

START_TEST(shifts_and_diagonals_may_be_as_far_as_they_like)
{
    ranks_run(4, accept, NULL);
}
END_TEST

START_TEST(worlds_that_cannot_be_are_refused_for_the_right_reason)
{
    ck_assert_int_eq(mesh_world_run(2, NULL, NULL), MESH_EINVAL);
    ck_assert_ptr_nonnull(strstr(mesh_last_error()->message, "needs a function for its ranks, not NULL"));
    ck_assert_int_eq(mesh_world_run(0, refuse, NULL), MESH_EINVAL);
    ck_assert_ptr_nonnull(strstr(mesh_last_error()->message, " ranks, not 0"));
    ck_assert_int_eq(mesh_init(.rank = &(int){ -5 }), MESH_EINVAL);
    ck_assert_ptr_nonnull(strstr(mesh_last_error()->message, "rank is -5: 0 or more is needed"));
    ck_assert_int_eq(mesh_init(.rank = &(int){ 2 }, .world_size = 2), MESH_EINVAL);
    ck_assert_ptr_nonnull(strstr(mesh_last_error()->message, "rank 2 is not one of a world of 2"));
}
END_TEST

START_TEST(the_longest_placements_there_are_make_a_text_and_so_do_impossible_ones)
{
    mesh_placement far = { MESH_IS_STRIDED_SHARD, INT_MIN, 0, INT_MIN }, none = { (mesh_placement_kind)99, 0, 0, 0 };
    char text[200], small[5];
    ck_assert_str_eq(mesh_placements_text(ON(far, far, far, far), text, sizeof text),
                     "[_S(-2147483648, -2147483648), _S(-2147483648, -2147483648), _S(-2147483648, -2147483648), "
                     "_S(-2147483648, -2147483648)]");
    ck_assert_str_eq(mesh_placements_text((mesh_placements){ .n = INT_MAX, .at = { none } }, text, sizeof text),
                     "[?, ?, ?, ?]");
    ck_assert_str_eq(mesh_placements_text((mesh_placements){ .n = INT_MIN }, text, sizeof text), "[]");
    ck_assert_str_eq(mesh_placements_text(ON(R, R), small, sizeof small), "[R, ");
    ck_assert_ptr_null(mesh_placements_text(ON(R), NULL, 9));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("arguments");
    TCase *t = tcase_create("arguments");
    tcase_add_test(t, arguments_far_out_of_range_are_refused_alike_and_the_job_goes_on);
    tcase_add_test(t, shifts_and_diagonals_may_be_as_far_as_they_like);
    tcase_add_test(t, worlds_that_cannot_be_are_refused_for_the_right_reason);
    tcase_add_test(t, the_longest_placements_there_are_make_a_text_and_so_do_impossible_ones);
    suite_add_tcase(s, t);
    return s;
}
