/* tests/world/test_training.c - the digits network learns alike on every mesh, step for step.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "digits_data.h"
#include "harness/check_main.h"
#include "harness/ranks.h"

#define SHAPE(...) MESH_SHAPE(__VA_ARGS__)

enum { N_TRAIN = 1437, BATCH = 96, N_EPOCHS = 2 };

static struct digits data;

struct run {
    int dp, tp;
    double loss[N_EPOCHS];                        /* of rank 0 */
    uint64_t forward, loss_calls, backward, step; /* all_reduces of one training step */
    uint64_t others;                              /* collectives of other kinds, in all */
};

struct network {
    mesh_device_mesh *mesh;
    mesh_module *net;
    mesh_optimizer *sgd;
};

static struct network build(const struct run *r)
{
    struct network n = { .mesh = mesh_init_device_mesh("cpu", SHAPE(r->dp, r->tp), MESH_NAMES("dp", "tp")) };
    n.net =
        mesh_nn_sequential({ "up", mesh_nn_linear(n.mesh, DIGITS_PIXELS, 128, .seed = 1) }, { "gelu", mesh_nn_gelu() },
                           { "down", mesh_nn_linear(n.mesh, 128, DIGITS_CLASSES, .seed = 2) });
    mesh_parallelize_module(n.net, "tp", { "up", mesh_colwise() }, { "down", mesh_rowwise() });
    n.sgd = mesh_sgd(n.net, .lr = 0.1, .momentum = 0.9);
    return n;
}

static uint64_t all_reduces_since_reset(void)
{
    uint64_t n = mesh_comm_count(MESH_COMM_ALL_REDUCE);
    mesh_comm_reset();
    return n;
}

static double train_step(const struct network *n, size_t first, struct run *ret_counts)
{
    int64_t rows = N_TRAIN - first < BATCH ? (int64_t)(N_TRAIN - first) : BATCH;
    mesh_placements p = MESH_PLACEMENTS(mesh_shard(0), mesh_replicate());
    mesh_tensor *images = mesh_tensor_view(data.pixels + first * DIGITS_PIXELS, SHAPE(rows, DIGITS_PIXELS), MESH_F32);
    mesh_tensor *labels = mesh_tensor_view(data.labels + first, SHAPE(rows), MESH_I64);
    mesh_dtensor *x = mesh_distribute_same(images, n->mesh, p), *t = mesh_distribute_same(labels, n->mesh, p);
    mesh_comm_reset();
    mesh_dtensor *scores = mesh_forward(n->net, x);
    ret_counts->forward = all_reduces_since_reset();
    mesh_dtensor *loss = mesh_cross_entropy(scores, t);
    double value = mesh_item(loss);
    ret_counts->loss_calls = all_reduces_since_reset();
    mesh_backward(loss);
    ret_counts->others += mesh_comm_count(MESH_COMM_ALL_GATHER) + mesh_comm_count(MESH_COMM_REDUCE_SCATTER) +
                          mesh_comm_count(MESH_COMM_ALL_TO_ALL) + mesh_comm_count(MESH_COMM_BROADCAST);
    ret_counts->backward = all_reduces_since_reset();
    mesh_optimizer_step(n->sgd);
    ret_counts->step = all_reduces_since_reset();
    return value * (double)rows;
}

static int train(void *arg)
{
    struct run *shared = arg, r = *shared;
    struct network n = build(&r);
    for (int epoch = 0; epoch < N_EPOCHS; epoch++) {
        double sum = 0;
        mesh_scope *scope = mesh_scope_begin();
        for (size_t first = 0; first < N_TRAIN && mesh_scope_next(scope); first += BATCH) {
            sum += train_step(&n, first, &r);
        }
        REQUIRE(mesh_scope_end(scope) == 0);
        r.loss[epoch] = sum / N_TRAIN;
    }
    if (mesh_rank() == 0) {
        *shared = r;
    }
    return 0;
}

static void read_data(void)
{
    char why[400];
    ck_assert_msg(digits_read(DIGITS_CSV, &data, why, sizeof why) == 0, "%s", why);
}

static void free_data(void)
{
    digits_free(&data);
}

START_TEST(losses_of_all_meshes_agree_with_one_process)
{
    static const int meshes[][2] = { { 2, 1 }, { 1, 2 }, { 2, 2 }, { 4, 1 }, { 1, 4 }, { 3, 1 } };
    struct run want = { .dp = 1, .tp = 1 };
    ranks_run(1, train, &want);
    ck_assert_double_lt(want.loss[1], 0.6 * want.loss[0]); /* it learns */
    for (size_t k = 0; k < sizeof meshes / sizeof meshes[0]; k++) {
        struct run got = { .dp = meshes[k][0], .tp = meshes[k][1] };
        ranks_run(got.dp * got.tp, train, &got);
        for (int epoch = 0; epoch < N_EPOCHS; epoch++) {
            ck_assert_msg(fabs(got.loss[epoch] - want.loss[epoch]) <= 1e-4 * want.loss[epoch],
                          "epoch %d on %dx%d: loss %.8f, on one process %.8f", epoch + 1, got.dp, got.tp,
                          got.loss[epoch], want.loss[epoch]);
        }
    }
}
END_TEST

START_TEST(a_step_makes_exactly_the_collectives_it_needs)
{
    static const struct {
        int dp, tp;
        uint64_t forward, loss, backward;
    } meshes[] = { { 1, 1, 0, 0, 0 }, { 1, 2, 1, 0, 0 }, { 1, 4, 1, 0, 0 }, { 2, 1, 0, 1, 4 }, { 2, 2, 1, 1, 4 } };
    for (size_t k = 0; k < sizeof meshes / sizeof meshes[0]; k++) {
        struct run got = { .dp = meshes[k].dp, .tp = meshes[k].tp };
        ranks_run(got.dp * got.tp, train, &got);
        ck_assert_uint_eq(got.forward, meshes[k].forward);
        ck_assert_uint_eq(got.loss_calls, meshes[k].loss);
        ck_assert_uint_eq(got.backward, meshes[k].backward); /* one for each of the four parameters, over dp */
        ck_assert_uint_eq(got.step, 0);
        ck_assert_uint_eq(got.others, 0);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("training");
    TCase *t = tcase_create("training");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, read_data, free_data);
    tcase_add_test(t, losses_of_all_meshes_agree_with_one_process);
    tcase_add_test(t, a_step_makes_exactly_the_collectives_it_needs);
    suite_add_tcase(s, t);
    return s;
}
