/* tests/world/test_device_mesh.c - meshes as programs make and ask them, on several ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/util.h"
#include "dtensor/device_mesh.h"
#include "harness/check_main.h"
#include "harness/ranks.h"

/* A call that must fail: does it, with this status and this in its sentence?  Ends the scope it failed in. */
static int failed_with(mesh_scope *s, int status, const char *says)
{
    int r = mesh_scope_end(s);
    REQUIRE(r == status);
    if (strstr(mesh_last_error()->message, says) == NULL) {
        return ranks_complain(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", mesh_last_error()->message, says);
    }
    return 0;
}

static int ask(void *arg)
{
    (void)arg;
    int me = mesh_rank();
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(2, 4), MESH_NAMES("dp", "tp"));
    REQUIRE(m != NULL);
    REQUIRE(mesh_mesh_ndim(m) == 2 && mesh_mesh_size(m, NULL) == 8 && mesh_mesh_size(m, "tp") == 4);
    REQUIRE(mesh_get_local_rank(m, "dp") == me / 4 && mesh_get_local_rank(m, "tp") == me % 4);
    REQUIRE(mesh_get_local_rank(m, "1") == me % 4 && mesh_get_local_rank(m, "-2") == me / 4);
    REQUIRE(mesh_get_coordinate(m)[0] == me / 4 && mesh_get_coordinate(m)[1] == me % 4);
    REQUIRE(mesh_get_rank(m, NULL) == me && mesh_get_rank(m, (int[]){ 1, 2 }) == 6);
    mesh_group *groups[2];
    REQUIRE(mesh_get_all_groups(m, groups) == 0);
    REQUIRE(groups[0] == mesh_get_group(m, "dp") && groups[1] == mesh_get_group(m, "1"));
    REQUIRE(mesh_group_size(groups[0]) == 2 && mesh_group_rank(groups[0]) == me / 4);
    REQUIRE(mesh_group_size(groups[1]) == 4 && mesh_group_rank(groups[1]) == me % 4);
    int sum = me;
    REQUIRE(mesh_all_reduce(&sum, 1, MESH_I32, MESH_SUM, groups[0]) == 0);
    REQUIRE(sum == 2 * (me % 4) + 4); /* the column: me and the rank four away */
    REQUIRE(mesh_init_device_mesh("cpu", MESH_SHAPE(2, 4), MESH_NAMES("dp", "tp")) == m);
    REQUIRE(mesh_init_device_mesh("cpu", MESH_SHAPE(2, 4), NULL) != m);
    return 0;
}

START_TEST(a_mesh_knows_its_lines_and_coordinates)
{
    ranks_run(8, ask, NULL);
}
END_TEST

static int slice(void *arg)
{
    (void)arg;
    int me = mesh_rank();
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(2, 2, 2), MESH_NAMES("dp", "cp", "tp"));
    mesh_device_mesh *tp = mesh_submesh(m, MESH_NAMES("tp"));
    mesh_device_mesh *turned = mesh_submesh(m, MESH_NAMES("tp", "dp"));
    REQUIRE(m != NULL && tp != NULL && turned != NULL);
    REQUIRE(mesh_submesh(m, MESH_NAMES("tp")) == tp && mesh_submesh(m, MESH_NAMES("dp", "cp", "tp")) == m);
    REQUIRE(mesh_mesh_ndim(tp) == 1 && mesh_get_local_rank(tp, NULL) == me % 2);
    REQUIRE(tp->ranks[0] == me / 2 * 2 && tp->ranks[1] == me / 2 * 2 + 1);
    REQUIRE(mesh_get_group(tp, NULL) == mesh_get_group(m, "tp")); /* no new groups */
    int cp = me / 2 % 2;
    REQUIRE(turned->ranks[0] == 2 * cp && turned->ranks[1] == 4 + 2 * cp && turned->ranks[2] == 1 + 2 * cp);
    REQUIRE(mesh_submesh(turned, MESH_NAMES("tp")) == tp);
    mesh_dtensor *x = mesh_ones(MESH_SHAPE(4), turned, MESH_PLACEMENTS(mesh_shard(0), mesh_partial(MESH_SUM)));
    mesh_tensor *full = mesh_full_tensor(x);
    REQUIRE(full != NULL);
    for (int i = 0; i < 4; i++) {
        REQUIRE_NEAR((double)((float *)mesh_tensor_data(full))[i], 1.0, 0);
    }
    return 0;
}

static int free_lent(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(2, 2), MESH_NAMES("dp", "tp"));
    mesh_dtensor *x = mesh_ones(MESH_SHAPE(4), m, MESH_PLACEMENTS(mesh_shard(0), mesh_shard(0)));
    REQUIRE(mesh_free_group(mesh_get_group(m, "tp")) == NULL && mesh_free_group(mesh_world()) == NULL);
    REQUIRE(strstr(mesh_last_error()->message, "belongs to the session or to a mesh") != NULL);
    REQUIRE_NEAR(mesh_item(mesh_sum(x)), 4, 0);
    return mesh_barrier(mesh_world());
}

START_TEST(groups_that_are_lent_are_not_freed)
{
    ranks_run(4, free_lent, NULL);
}
END_TEST

START_TEST(a_sub_mesh_reuses_groups_in_any_order_of_dims)
{
    ranks_run(8, slice, NULL);
}
END_TEST

struct refusal {
    mesh_shape shape;
    const char *const *names;
    const char *device;
    int status;
    const char *says;
};

static int refuse(void *arg)
{
    (void)arg;
    const struct refusal cases[] = {
        { MESH_SHAPE(8), NULL, "cpu", MESH_EINVAL, "8 ranks but the job has 4" },
        { MESH_SHAPE(2), NULL, "cpu", MESH_EINVAL, "2 ranks but the job has 4" },
        { MESH_SHAPE(4, 0), NULL, "cpu", MESH_EINVAL, "dim 1 has size 0" },
        { MESH_SHAPE(-4), NULL, "cpu", MESH_EINVAL, "size -4" },
        { MESH_SHAPE(2, 2), MESH_NAMES("a", "a"), "cpu", MESH_EINVAL, "dims 0 and 1" },
        { MESH_SHAPE(2, 2), MESH_NAMES("a"), "cpu", MESH_EINVAL, "1 names for a mesh of 2" },
        { MESH_SHAPE(4), MESH_NAMES("a", "b"), "cpu", MESH_EINVAL, "more names" },
        { MESH_SHAPE(4), MESH_NAMES("0"), "cpu", MESH_EINVAL, "begin with a letter" },
        { MESH_SHAPE(4), MESH_NAMES("_a"), "cpu", MESH_EINVAL, "begin with a letter" },
        { MESH_SHAPE(4), MESH_NAMES(".a"), "cpu", MESH_EINVAL, "begin with a letter" },
        { MESH_SHAPE(4), NULL, "cuda", MESH_EUNSUPPORTED, "\"cuda\" is not supported: tensors live on \"cpu\"" },
        { MESH_SHAPE(4), NULL, "cuda:0", MESH_EINVAL, "letters only" },
        { MESH_SHAPE(4), NULL, NULL, MESH_EINVAL, "letters only" },
        { { .ndim = 0 }, NULL, "cpu", MESH_EINVAL, "1 to 4 dims" },
    };
    for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
        mesh_scope *s = mesh_scope_begin();
        REQUIRE(mesh_init_device_mesh(cases[k].device, cases[k].shape, cases[k].names) == NULL);
        REQUIRE_OK(failed_with(s, cases[k].status, cases[k].says));
    }
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(2, 2), MESH_NAMES("dp", "tp"));
    mesh_device_mesh *unnamed = mesh_init_device_mesh("cpu", MESH_SHAPE(2, 2), NULL);
    REQUIRE(m != NULL && unnamed != NULL);
    mesh_scope *s = mesh_scope_begin();
    REQUIRE(mesh_get_group(m, "pp") == NULL);
    REQUIRE_OK(failed_with(s, MESH_ENOTFOUND, "no dimension \"pp\": it has dp, tp"));
    s = mesh_scope_begin();
    REQUIRE(mesh_get_local_rank(m, NULL) == MESH_EINVAL);
    REQUIRE_OK(failed_with(s, MESH_EINVAL, "say which"));
    s = mesh_scope_begin();
    REQUIRE(mesh_submesh(unnamed, MESH_NAMES("0")) == NULL);
    REQUIRE_OK(failed_with(s, MESH_EINVAL, "no names"));
    s = mesh_scope_begin();
    REQUIRE(mesh_submesh(m, MESH_NAMES("tp", "tp")) == NULL);
    REQUIRE_OK(failed_with(s, MESH_EINVAL, "twice"));
    s = mesh_scope_begin();
    REQUIRE(mesh_get_rank(m, (int[]){ 0, 2 }) == MESH_EINVAL);
    REQUIRE_OK(failed_with(s, MESH_EINVAL, "0..1"));
    return 0;
}

START_TEST(bad_meshes_are_refused_with_the_numbers)
{
    ranks_run(4, refuse, NULL);
}
END_TEST

static int disagree(void *arg)
{
    (void)arg;
    mesh_scope *s = mesh_scope_begin();
    mesh_shape shape = mesh_rank() == 2 ? MESH_SHAPE(4, 1) : MESH_SHAPE(2, 2);
    REQUIRE(mesh_init_device_mesh("cpu", shape, NULL) == NULL);
    return failed_with(s, MESH_EMISMATCH, "2");
}

START_TEST(different_meshes_fail_on_every_rank_and_name_the_odd_one)
{
    ranks_run(4, disagree, NULL);
}
END_TEST

static int one(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(1, 1), MESH_NAMES("dp", "tp"));
    mesh_dtensor *x = mesh_full(MESH_SHAPE(3), 7.0, m, MESH_PLACEMENTS(mesh_shard(0), mesh_partial(MESH_SUM)));
    mesh_tensor *full = mesh_full_tensor(x);
    REQUIRE(full != NULL && mesh_tensor_shape(full).dim[0] == 3);
    REQUIRE_NEAR((double)((float *)mesh_tensor_data(full))[2], 7.0, 0);
    return 0;
}

START_TEST(one_rank_is_a_mesh_like_any_other)
{
    ranks_run(1, one, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("device mesh");
    TCase *t = tcase_create("device mesh");
    tcase_add_test(t, a_mesh_knows_its_lines_and_coordinates);
    tcase_add_test(t, groups_that_are_lent_are_not_freed);
    tcase_add_test(t, a_sub_mesh_reuses_groups_in_any_order_of_dims);
    tcase_add_test(t, bad_meshes_are_refused_with_the_numbers);
    tcase_add_test(t, different_meshes_fail_on_every_rank_and_name_the_odd_one);
    tcase_add_test(t, one_rank_is_a_mesh_like_any_other);
    suite_add_tcase(s, t);
    return s;
}
