/* tests/world/test_training_memory.c - a training loop takes as much memory after two hundred steps as at first, and
 * gives it back.
 *
 * All modules of nn.h on a mesh of two dims, split over both; each optimizer.  Ranks are threads of one process: the
 * sum over all of them is looked at, between barriers.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/mesh.h>
#include <mesh/shorthand.h>

#include "base/alloc.h"
#include "harness/check_main.h"
#include "harness/ranks.h"

#define WORDS   64
#define WIDTH   64
#define ROWS    32
#define N_RANKS 4
#define STEPS   200
#define STRETCH 40 /* steps between two looks */
#define ROUNDS  20
#define FEW     4    /* rounds between two looks */
#define SLACK   4096 /* bytes */

static mesh_optimizer *plain_sgd(mesh_module *m)
{
    return mesh_sgd(m, .lr = 0.01);
}
static mesh_optimizer *momentum_sgd(mesh_module *m)
{
    return mesh_sgd(m, .lr = 0.01, .momentum = 0.9);
}
static mesh_optimizer *adamw(mesh_module *m)
{
    return mesh_adamw(m, .lr = 0.001);
}

static const struct training {
    mesh_optimizer *(*make)(mesh_module *m);
    bool retains; /* two backward passes through one graph, which add up */
} trainings[] = { { plain_sgd, false }, { momentum_sgd, false }, { adamw, false }, { adamw, true } };

static mesh_module *model(mesh_device_mesh *m)
{
    mesh_module *all =
        mesh_nn_sequential({ "words", mesh_nn_embedding(m, WORDS, WIDTH) }, { "norm", mesh_nn_layer_norm(m, WIDTH) },
                           { "up", mesh_nn_linear(m, WIDTH, 4 * WIDTH) }, { "gelu", mesh_nn_gelu() },
                           { "drop", mesh_nn_dropout(0.1) }, { "down", mesh_nn_linear(m, 4 * WIDTH, WORDS) });
    return mesh_parallelize_module(all, "tp", { "up", Colwise() }, { "down", Rowwise() }) == 0 ? all : NULL;
}

static mesh_dtensor *halved(mesh_dtensor *grad, void *user)
{
    (void)user;
    return mesh_mul_scalar(grad, 0.5);
}

static int step(mesh_module *m, mesh_optimizer *o, mesh_device_mesh *mesh, const struct training *k)
{
    mesh_placements rows = Placements(Shard(0), Replicate());
    mesh_dtensor *words = mesh_zeros(Shape(ROWS), mesh, rows, .dtype = MESH_I64);
    mesh_dtensor *y = mesh_forward(m, words), *loss = mesh_cross_entropy(y, words);
    REQUIRE(loss != NULL && mesh_grad_hook(y, halved, NULL) == 0);
    REQUIRE(!k->retains || mesh_backward_with(loss, .retain_graph = true) == 0);
    REQUIRE(mesh_backward(loss) == 0);
    REQUIRE(mesh_clip_grad_norm(m, 1e-3) > 0);
    REQUIRE(mesh_optimizer_step(o) == 0);
    return 0;
}

/* What is in use, from look to look.  Plans, links and buffers come once, whenever they are first needed; what is lost
 * in every step makes every stretch grow. */
struct looks {
    size_t last, least_growth;
    int n;
};

static int look(struct looks *l)
{
    REQUIRE(mesh_barrier(mesh_world()) == 0);
    size_t now = mem_in_use(), growth = now > l->last ? now - l->last : 0;
    l->least_growth = l->n <= 1 || growth < l->least_growth ? growth : l->least_growth;
    l->last = now;
    l->n++;
    REQUIRE(mesh_barrier(mesh_world()) == 0);
    return 0;
}

static int is_flat(const struct looks *l, int steps)
{
    return l->n > 3 && l->least_growth <= SLACK
               ? 0
               : ranks_complain(__FILE__, __LINE__, "%zu bytes more in use with every %d steps", l->least_growth,
                                steps);
}

static int train(void *arg)
{
    const struct training *k = arg;
    mesh_device_mesh *mesh = mesh_init_device_mesh("cpu", Shape(2, 2), Names("dp", "tp"));
    mesh_module *m = model(mesh);
    mesh_optimizer *o = m == NULL ? NULL : k->make(m);
    REQUIRE(o != NULL);
    struct looks looks = { .last = 0 };
    mesh_scope *s = mesh_scope_begin();
    for (int i = 0; i <= STEPS; i++) {
        REQUIRE(mesh_scope_next(s));
        REQUIRE_OK(i % STRETCH == 0 ? look(&looks) : 0);
        REQUIRE_OK(step(m, o, mesh, k));
    }
    REQUIRE_OK(is_flat(&looks, STRETCH));
    return mesh_scope_end(s);
}

START_TEST(a_training_loop_takes_no_more_after_two_hundred_steps)
{
    struct training k = trainings[_i];
    ranks_run(N_RANKS, train, &k);
}
END_TEST

/* --- what a scope leaves ------------------------------------------------------------------------------------------ */

static int one_round(mesh_device_mesh *mesh, const struct training *k)
{
    mesh_scope *s = mesh_scope_begin();
    mesh_module *m = model(mesh);
    mesh_optimizer *o = m == NULL ? NULL : k->make(m);
    REQUIRE(o != NULL);
    REQUIRE_OK(step(m, o, mesh, k));
    mesh_optimizer_free(o);
    mesh_module_free(m);
    return mesh_scope_end(s);
}

static int rounds(void *arg)
{
    mesh_device_mesh *mesh = mesh_init_device_mesh("cpu", Shape(2, 2), Names("dp", "tp"));
    struct looks looks = { .last = 0 };
    for (int i = 0; i <= ROUNDS; i++) {
        REQUIRE_OK(i % FEW == 0 ? look(&looks) : 0);
        REQUIRE_OK(one_round(mesh, arg));
    }
    return is_flat(&looks, FEW);
}

START_TEST(a_scope_with_freed_modules_leaves_nothing)
{
    struct training k = trainings[_i];
    ranks_run(N_RANKS, rounds, &k);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("memory of training");
    TCase *t = tcase_create("memory of training");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_training_loop_takes_no_more_after_two_hundred_steps, 0,
                        (int)(sizeof trainings / sizeof trainings[0]));
    tcase_add_loop_test(t, a_scope_with_freed_modules_leaves_nothing, 0, (int)(sizeof trainings / sizeof trainings[0]));
    suite_add_tcase(s, t);
    return s;
}
