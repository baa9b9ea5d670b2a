/* tests/fault/test_memory.c - a training step in which the nth allocation fails, for every n.
 *
 * Whatever fails, the step ends with an error of memory, on the other rank with news of it, or succeeds; nobody hangs and
 * nothing leaks (the address sanitizer looks).
 * SPDX-License-Identifier: Apache-2.0 */

#include "base/fault.h"
#include "harness/check_main.h"
#include "harness/ranks.h"

#define SHAPE(...) MESH_SHAPE(__VA_ARGS__)

struct scenario {
    uint64_t countdown;
    int status[2];
};

static int step(mesh_device_mesh *m)
{
    mesh_scope *scope = mesh_scope_begin();
    mesh_module *net = mesh_nn_sequential({ "up", mesh_nn_linear(m, 4, 6, .seed = 1) }, { "gelu", mesh_nn_gelu() },
                                          { "down", mesh_nn_linear(m, 6, 3, .seed = 2) });
    mesh_parallelize_module(net, "tp", { "up", mesh_colwise() }, { "down", mesh_rowwise() });
    mesh_optimizer *sgd = mesh_sgd(net, .lr = 0.1, .momentum = 0.9);
    mesh_dtensor *x = mesh_randn(SHAPE(5, 4), m, MESH_PLACEMENTS(mesh_replicate()), .seed = 3);
    mesh_dtensor *t = mesh_zeros(SHAPE(5), m, MESH_PLACEMENTS(mesh_replicate()), .dtype = MESH_I64);
    mesh_requires_grad(x, true);
    mesh_dtensor *loss = mesh_cross_entropy(mesh_forward(net, x), t);
    mesh_backward(loss);
    mesh_optimizer_step(sgd);
    mesh_item(loss);
    return mesh_scope_end(scope);
}

static int run(void *arg)
{
    struct scenario *s = arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(mesh_world_size()), MESH_NAMES("tp"));
    REQUIRE(m != NULL && mesh_barrier(mesh_world()) == 0);
    if (mesh_rank() == 0) {
        fault_arm(FAULT_ALLOC, s->countdown, 0);
    }
    s->status[mesh_rank()] = step(m);
    return 0;
}

/* Until a countdown is longer than the scenario. */
static void try_all(int n_ranks, bool (*is_fine)(const struct scenario *s))
{
    for (uint64_t n = 1; n < 20000; n++) {
        struct scenario s = { .countdown = n };
        int ended =
            mesh_world_run(n_ranks, run, &s); /* a local failure is final for a session: then it tells so again */
        bool has_fired = fault_fired(FAULT_ALLOC) > 0;
        fault_disarm(FAULT_ALLOC);
        ck_assert(has_fired || ended == 0);
        ck_assert_msg(is_fine(&s), "allocation %d: status %d and %d: %s", (int)n, s.status[0], s.status[1],
                      mesh_last_error()->message);
        if (!has_fired) {
            return;
        }
    }
    ck_abort_msg("the scenario never ends");
}

static bool is_memory(const struct scenario *s)
{
    return s->status[0] == 0 || s->status[0] == MESH_ENOMEM;
}
START_TEST(the_nth_allocation_of_a_training_step_fails_with_a_status)
{
    try_all(1, is_memory);
}
END_TEST

static bool is_known_to_both(const struct scenario *s)
{
    bool is_well = s->status[0] == 0 && s->status[1] == 0;
    bool is_told = (s->status[0] == MESH_ENOMEM || s->status[0] == MESH_EABORTED) &&
                   (s->status[1] == MESH_ENOMEM || s->status[1] == MESH_EABORTED || s->status[1] == 0);
    bool is_told_0 = s->status[0] == 0 && (s->status[1] == MESH_ENOMEM || s->status[1] == MESH_EABORTED);
    return is_well || is_told || is_told_0;
}
START_TEST(when_one_of_two_ranks_runs_out_of_memory_neither_hangs)
{
    try_all(2, is_known_to_both);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("memory");
    TCase *t = tcase_create("memory");
    tcase_set_timeout(t, 240);
    tcase_add_test(t, the_nth_allocation_of_a_training_step_fails_with_a_status);
    tcase_add_test(t, when_one_of_two_ranks_runs_out_of_memory_neither_hangs);
    suite_add_tcase(s, t);
    return s;
}
