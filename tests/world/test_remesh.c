/* tests/world/test_remesh.c - tensors that move to another mesh, over the same ranks or others.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/util.h"
#include "harness/check_main.h"
#include "harness/ranks.h"

#define ON(...) MESH_PLACEMENTS(__VA_ARGS__)

static mesh_placements list(int k, int ndim)
{
    const mesh_placement each[] = { mesh_replicate(), mesh_shard(0), mesh_shard(1), mesh_partial(MESH_SUM) };
    mesh_placements p = { .n = ndim };
    for (int i = 0; i < ndim; i++, k /= 4) {
        p.at[i] = each[k % 4];
    }
    return p;
}

static int counts_up(mesh_dtensor *x, int64_t n)
{
    mesh_tensor *t = mesh_full_tensor(x);
    REQUIRE(t != NULL);
    for (int64_t i = 0; i < n; i++) {
        REQUIRE_NEAR((double)((float *)mesh_tensor_data(t))[i], (double)i, 0);
    }
    return 0;
}

/* Every list of placements on one mesh to every one on the other. */
static int every_pair(mesh_device_mesh *a, mesh_device_mesh *b, mesh_shape s)
{
    mesh_tensor *t = mesh_tensor_new(s, MESH_F32);
    int64_t n = s.dim[0] * s.dim[1];
    for (int64_t i = 0; i < n; i++) {
        ((float *)mesh_tensor_data(t))[i] = (float)i;
    }
    int na = 1 << 2 * mesh_mesh_ndim(a), nb = 1 << 2 * mesh_mesh_ndim(b);
    for (int k = 0; k < na * nb; k++) {
        mesh_scope *scope = mesh_scope_begin();
        mesh_dtensor *x = mesh_distribute_tensor(t, a, list(k % na, mesh_mesh_ndim(a)));
        mesh_placements to = list(k / na, mesh_mesh_ndim(b));
        mesh_dtensor *y = mesh_redistribute_to(x, b, to);
        REQUIRE(y != NULL && mesh_device_mesh_of(y) == b && mesh_placements_equal(mesh_placements_of(y), to));
        REQUIRE_OK(counts_up(y, n));
        REQUIRE(mesh_scope_end(scope) == 0);
    }
    return 0;
}

static int all_meshes(void *arg)
{
    (void)arg;
    mesh_device_mesh *line = mesh_init_device_mesh("cpu", MESH_SHAPE(4), NULL);
    mesh_device_mesh *square = mesh_init_device_mesh("cpu", MESH_SHAPE(2, 2), NULL);
    mesh_device_mesh *turned = mesh_new_device_mesh("cpu", MESH_SHAPE(4), (int[]){ 2, 0, 3, 1 }, NULL);
    REQUIRE_OK(every_pair(line, square, MESH_SHAPE(5, 3)));
    REQUIRE_OK(every_pair(square, turned, MESH_SHAPE(5, 3)));
    REQUIRE_OK(every_pair(turned, line, MESH_SHAPE(2, 7)));
    return every_pair(line, turned, MESH_SHAPE(0, 3));
}

START_TEST(every_layout_moves_to_every_layout_of_another_mesh)
{
    ranks_run(4, all_meshes, NULL);
}
END_TEST

static int economy(void *arg)
{
    (void)arg;
    mesh_device_mesh *line = mesh_init_device_mesh("cpu", MESH_SHAPE(4), NULL);
    mesh_device_mesh *square = mesh_init_device_mesh("cpu", MESH_SHAPE(2, 2), NULL);
    mesh_dtensor *x = mesh_requires_grad(mesh_ones(MESH_SHAPE(8, 4), line, ON(mesh_shard(0))), true);
    mesh_comm_reset();
    mesh_dtensor *y = mesh_redistribute_to(x, square, ON(mesh_shard(0), mesh_shard(0))); /* the same parts */
    REQUIRE(y != NULL && mesh_comm_bytes(MESH_COMM_ALL_TO_ALL) == 0);
    REQUIRE(mesh_backward(mesh_sum(mesh_mul(y, y))) == 0);
    REQUIRE(mesh_device_mesh_of(mesh_grad(x)) == line);
    REQUIRE_NEAR(mesh_item(mesh_sum(mesh_grad(x))), 64, 0);
    return 0;
}

START_TEST(what_stays_on_its_rank_does_not_travel_and_gradients_come_back)
{
    ranks_run(4, economy, NULL);
}
END_TEST

static bool is_on(const mesh_device_mesh *m)
{
    return mesh_get_coordinate(m) != NULL;
}

/* As every_pair(), where only some ranks see the result, and others have nothing to do with it. */
static int every_pair_of_some(mesh_device_mesh *a, mesh_device_mesh *b)
{
    int na = 1 << 2 * mesh_mesh_ndim(a), nb = 1 << 2 * mesh_mesh_ndim(b);
    for (int k = 0; k < na * nb; k++) {
        mesh_scope *scope = mesh_scope_begin();
        mesh_dtensor *x = mesh_reshape(mesh_arange(0, 15, 1, a, list(0, mesh_mesh_ndim(a))), MESH_SHAPE(5, 3));
        x = mesh_redistribute(x, list(k % na, mesh_mesh_ndim(a)));
        mesh_dtensor *y = mesh_redistribute_to(x, b, list(k / na, mesh_mesh_ndim(b)));
        REQUIRE(y != NULL && mesh_device_mesh_of(y) == b);
        REQUIRE(mesh_shape_of(y).dim[0] == 5 && mesh_shape_of(y).dim[1] == 3);
        if (is_on(b)) {
            REQUIRE_OK(counts_up(y, 15));
        }
        REQUIRE(mesh_scope_end(scope) == 0);
    }
    return 0;
}

static int other_ranks(void *arg)
{
    (void)arg;
    mesh_device_mesh *left = mesh_new_device_mesh("cpu", MESH_SHAPE(2), (int[]){ 1, 0 }, NULL);
    mesh_device_mesh *right = mesh_new_device_mesh("cpu", MESH_SHAPE(2), (int[]){ 2, 3 }, NULL);
    mesh_device_mesh *most = mesh_new_device_mesh("cpu", MESH_SHAPE(2, 2), (int[]){ 4, 1, 0, 2 }, NULL);
    REQUIRE_OK(every_pair_of_some(left, right));
    REQUIRE_OK(every_pair_of_some(right, most));
    REQUIRE_OK(every_pair_of_some(most, left));
    return 0;
}

START_TEST(every_layout_moves_to_a_mesh_of_other_ranks)
{
    ranks_run(6, other_ranks, NULL); /* rank 5 is on none */
}
END_TEST

/* A gradient comes back to the mesh that the tensor came from. */
static int a_stage_and_the_next(void *arg)
{
    (void)arg;
    mesh_device_mesh *first = mesh_new_device_mesh("cpu", MESH_SHAPE(2), (int[]){ 0, 1 }, NULL);
    mesh_device_mesh *second = mesh_new_device_mesh("cpu", MESH_SHAPE(2), (int[]){ 2, 3 }, NULL);
    mesh_dtensor *x = mesh_requires_grad(mesh_ones(MESH_SHAPE(8, 4), first, ON(mesh_shard(0))), true);
    mesh_dtensor *y = mesh_redistribute_to(mesh_mul_scalar(x, 3), second, ON(mesh_shard(1)));
    REQUIRE(mesh_backward(mesh_sum(mesh_mul(y, y))) == 0);
    REQUIRE(mesh_device_mesh_of(mesh_grad(x)) == first);
    double sum = mesh_item(mesh_sum(mesh_grad(x)));
    if (is_on(first)) {
        REQUIRE_NEAR(sum, 32 * 18, 1e-4);
    }
    return 0;
}

START_TEST(gradients_come_back_from_other_ranks)
{
    ranks_run(4, a_stage_and_the_next, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("remesh");
    TCase *t = tcase_create("remesh");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, every_layout_moves_to_every_layout_of_another_mesh);
    tcase_add_test(t, what_stays_on_its_rank_does_not_travel_and_gradients_come_back);
    tcase_add_test(t, every_layout_moves_to_a_mesh_of_other_ranks);
    tcase_add_test(t, gradients_come_back_from_other_ranks);
    suite_add_tcase(s, t);
    return s;
}
