/* tests/world/test_backward_memory.c - what a backward pass holds at once, and what it leaves.
 *
 * Ranks are threads of one process, so what is bounded is the sum over all of them, counted in tensors of one size.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/mesh.h>
#include <mesh/shorthand.h>

#include "base/alloc.h"
#include "harness/check_main.h"
#include "harness/ranks.h"

#define N       1024
#define BYTES   ((int64_t)N * N * 4) /* of a whole tensor, f32: the unit */
#define DEPTH   50
#define N_RANKS 2
#define SLACK   (BYTES / 8) /* plans, nodes, handles, what is on its way between threads */

static _Thread_local size_t in_use_before;
static _Thread_local bool is_measured; /* the first run makes plans, links and pools, which stay */

/* From here on: all ranks wait until nobody works any more. */
static int begin(void)
{
    REQUIRE(mesh_barrier(mesh_world()) == 0);
    in_use_before = mem_in_use();
    mem_peak_reset();
    REQUIRE(mesh_barrier(mesh_world()) == 0);
    return 0;
}

static int bound(const char *what, int64_t bytes, int64_t units)
{
    return !is_measured || bytes <= units * BYTES + SLACK
               ? 0
               : ranks_complain(__FILE__, __LINE__, "%s: %lld hundredths of a tensor, %lld hundred are allowed", what,
                                (long long)(bytes * 100 / BYTES), (long long)units);
}

static int peak_is_within(const char *what, int64_t units)
{
    REQUIRE(mesh_barrier(mesh_world()) == 0);
    return bound(what, (int64_t)mem_peak() - (int64_t)in_use_before, units);
}

static int growth_is_within(const char *what, int64_t units)
{
    REQUIRE(mesh_barrier(mesh_world()) == 0);
    int r = bound(what, (int64_t)mem_in_use() - (int64_t)in_use_before, units);
    REQUIRE(mesh_barrier(mesh_world()) == 0);
    return r;
}

/* Each time in a scope of its own. */
static int run_twice(rank_fn fn, void *arg)
{
    for (int i = 0; i < 2; i++) {
        mesh_scope *s = mesh_scope_begin();
        is_measured = i == 1;
        REQUIRE_OK(fn(arg));
        REQUIRE(mesh_scope_end(s) == 0);
    }
    return 0;
}

static mesh_device_mesh *all_ranks(void)
{
    return mesh_init_device_mesh("cpu", Shape(mesh_world_size()), NULL);
}

static mesh_dtensor *leaf(mesh_device_mesh *m, mesh_placement p, uint64_t seed)
{
    return mesh_requires_grad(mesh_randn(Shape(N, N), m, Placements(p), .seed = seed), true);
}

/* f in a scope of its own, of which the result alone outlives it: what else lives on is saved by the record. */
static mesh_dtensor *chain(mesh_dtensor *(*layer)(mesh_dtensor *x), mesh_dtensor *x, int depth)
{
    mesh_scope *s = mesh_scope_begin();
    for (int i = 0; i < depth; i++) {
        x = layer(x);
    }
    mesh_dtensor *y = x == NULL ? NULL : mesh_keep(mesh_sum(x));
    return mesh_scope_end(s) < 0 ? NULL : y;
}

static mesh_dtensor *halved(mesh_dtensor *x)
{
    return mesh_mul_scalar(x, 0.5);
}

static mesh_dtensor *squashed(mesh_dtensor *x)
{
    return mesh_tanh(x);
}

static mesh_dtensor *dropped(mesh_dtensor *x)
{
    return mesh_dropout(x, 0.1);
}

static mesh_dtensor *rectified(mesh_dtensor *x)
{
    return mesh_relu(mesh_add_scalar(x, 0.25));
}

static const struct saving {
    const char *name;
    mesh_dtensor *(*layer)(mesh_dtensor *x);
    int saved;     /* per layer */
    int gradients; /* and what makes them, at once */
} savings[] = {
    { "mul_scalar", halved, 0, 2 },
    { "dropout", dropped, 0, 3 }, /* the mask is drawn again */
    { "tanh", squashed, 1, 2 },   /* the result */
    { "relu", rectified, 1, 2 },  /* the result; what was added is gone */
};

/* Saved values are those stated, go with the pass, and beside them there are one or two gradients. */
static int walk_a_chain_once(void *arg)
{
    const struct saving *k = arg;
    mesh_dtensor *x = leaf(all_ranks(), Shard(0), 3);
    REQUIRE_OK(begin());
    mesh_dtensor *y = chain(k->layer, x, DEPTH);
    REQUIRE(y != NULL);
    REQUIRE_OK(growth_is_within("saved", (int64_t)k->saved * DEPTH));
    REQUIRE_OK(begin());
    REQUIRE(mesh_backward(y) == 0);
    REQUIRE_OK(peak_is_within("gradients", k->gradients));
    return growth_is_within("left, saved values gone", 1 - (int64_t)k->saved * DEPTH);
}

static int walk_a_chain(void *arg)
{
    return run_twice(walk_a_chain_once, arg);
}

START_TEST(a_chain_of_fifty_holds_what_was_saved_and_two_gradients)
{
    struct saving k = savings[_i];
    ranks_run(N_RANKS, walk_a_chain, &k);
}
END_TEST

static int retain_once(void *arg)
{
    (void)arg;
    mesh_dtensor *x = leaf(all_ranks(), Shard(0), 3), *y = chain(squashed, x, DEPTH);
    REQUIRE_OK(begin());
    REQUIRE(y != NULL && mesh_backward_with(y, .retain_graph = true) == 0);
    REQUIRE_OK(peak_is_within("gradients", 2));
    REQUIRE_OK(growth_is_within("the leaf's gradient", 1));
    REQUIRE_OK(begin());
    REQUIRE(mesh_backward(y) == 0);
    return growth_is_within("saved values gone", -DEPTH);
}

static int retain(void *arg)
{
    return run_twice(retain_once, arg);
}

START_TEST(a_retained_graph_keeps_its_saved_values_and_no_gradients)
{
    ranks_run(N_RANKS, retain, NULL);
}
END_TEST

/* --- parameters --------------------------------------------------------------------------------------------------- */

#define LAYERS 12

/* Parameters in shards, data in shards: each weight's gradient is pending, and as large as the whole. */
static int many_parameters_once(void *arg)
{
    const mesh_placement *p = arg;
    mesh_device_mesh *m = all_ranks();
    mesh_dtensor *w[LAYERS], *x = mesh_randn(Shape(8 * N_RANKS, N), m, Placements(Shard(0)), .seed = 2);
    for (int i = 0; i < LAYERS; i++) {
        w[i] = leaf(m, *p, 10 + (uint64_t)i);
    }
    for (int pass = 0; pass < 2; pass++) {
        mesh_scope *s = mesh_scope_begin();
        mesh_dtensor *y = x;
        for (int i = 0; i < LAYERS; i++) {
            y = mesh_tanh(mesh_linear(y, w[i], NULL));
        }
        y = mesh_sum(y);
        REQUIRE(y != NULL);
        REQUIRE_OK(begin());
        REQUIRE(mesh_backward(y) == 0);
        int64_t kept = p->kind == MESH_IS_SHARD ? LAYERS : LAYERS * N_RANKS;
        /* the weight brought together, its gradient, that one reduced: of one layer at a time; half of it on its way */
        REQUIRE_OK(peak_is_within(pass == 0 ? "first pass" : "second pass", kept + 4 * N_RANKS));
        REQUIRE_OK(growth_is_within("gradients", pass == 0 ? kept : 0));
        REQUIRE(mesh_scope_end(s) == 0);
    }
    return 0;
}

static int many_parameters(void *arg)
{
    return run_twice(many_parameters_once, arg);
}

START_TEST(whole_gradients_of_sharded_parameters_are_there_one_at_a_time)
{
    mesh_placement p[] = { Shard(0), Replicate() };
    ranks_run(N_RANKS, many_parameters, &p[_i]);
}
END_TEST

/* --- hooks -------------------------------------------------------------------------------------------------------- */

static mesh_dtensor *clipped(mesh_dtensor *grad, void *user)
{
    int *n_calls = user;
    ++*n_calls;
    return mesh_mul(mesh_clamp(grad, -1, 1), mesh_full_like(grad, 0.5));
}

static int with_hooks_once(void *arg)
{
    int n_calls = 0;
    mesh_dtensor *x = leaf(all_ranks(), Shard(0), 3), *y = x;
    (void)arg;
    for (int i = 0; i < DEPTH; i++) {
        y = mesh_tanh(y);
        REQUIRE(mesh_grad_hook(y, clipped, &n_calls) == 0);
    }
    REQUIRE(mesh_grad_hook(x, clipped, &n_calls) == 0);
    y = mesh_sum(y);
    REQUIRE_OK(begin());
    REQUIRE(mesh_backward(y) == 0 && n_calls == DEPTH + 1);
    /* at the last operator: its gradient and that of the leaf, and what the hooks of both made */
    REQUIRE_OK(peak_is_within("gradients, and what two hooks make of them", 8));
    return growth_is_within("the leaf's gradient", 1);
}

static int with_hooks(void *arg)
{
    return run_twice(with_hooks_once, arg);
}

START_TEST(what_hooks_make_is_gone_with_the_next_operator)
{
    ranks_run(N_RANKS, with_hooks, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("memory of backward passes");
    TCase *t = tcase_create("memory of backward passes");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_chain_of_fifty_holds_what_was_saved_and_two_gradients, 0,
                        (int)(sizeof savings / sizeof savings[0]));
    tcase_add_test(t, a_retained_graph_keeps_its_saved_values_and_no_gradients);
    tcase_add_loop_test(t, whole_gradients_of_sharded_parameters_are_there_one_at_a_time, 0, 2);
    tcase_add_test(t, what_hooks_make_is_gone_with_the_next_operator);
    suite_add_tcase(s, t);
    return s;
}
