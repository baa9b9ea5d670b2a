/* tests/truth/test_peak_layouts.c - the memory of whole calls on inputs in layouts of all kinds: each sample of a row
 * in one world and one layout.
 *
 * A rank may hold the inputs that its rule wants elsewhere, as it wants them; while one of them moves, what is sent and
 * what arrives of it; the results; the kernel's scratch.  Where the rule is no placement (rows that are fetched from
 * neighbours, elements that go straight to where a reshape puts them) it may hold every input whole.  Ranks are threads
 * of one process, so what is bounded is the sum over all of them.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/util.h"
#include "harness/check_main.h"
#include "harness/ranks.h"
#include "tensor/scratch.h"
#include "tensor/shape.h"
#include "truth/large.h"
#include "truth/parts.h"

#define MAX_RANKS 4
#define SLACK     (64 << 10) /* messages between threads, counts, plans; of each rank */

static const struct world {
    int n_ranks;
    mesh_shape shape;
} worlds[] = { { 2, { 1, { 2 } } }, { 3, { 1, { 3 } } }, { 4, { 2, { 2, 2 } } } };

struct measuring {
    const struct sample *sample;
    const struct world *world;
    uint64_t seed;
};

static size_t bounds[MAX_RANKS];

static uint64_t next_random(uint64_t *inout_seed)
{
    *inout_seed = *inout_seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *inout_seed >> 33;
}

/* What is chosen by numbers is whole: its parts are no numbers of anything. */
static mesh_placements layout_of(const struct trial *t, int i, const mesh_device_mesh *m, uint64_t *inout_seed)
{
    int64_t n = layouts_count(t->in[i]->shape, t->in[i]->dtype, m->ndim);
    mesh_placements p =
        layout_numbered(t->in[i]->shape, t->in[i]->dtype, m->ndim, (int64_t)(next_random(inout_seed) % (uint64_t)n));
    for (int d = 0; d < p.n && sample_is_index(t->sample, i); d++) {
        p.at[d] = mesh_replicate();
    }
    return p;
}

/* What is chosen by numbers as it is; of the others only the size matters. */
static mesh_dtensor *lay_out(const struct trial *t, int i, mesh_device_mesh *m, const mesh_placements *p)
{
    struct mesh_tensor *whole = t->in[i];
    mesh_shape part = layout_local_shape(whole->shape, m->size, m->coordinate, p);
    struct mesh_tensor *local =
        sample_is_index(t->sample, i) ? tensor_ref(whole) : tensor_new_zeroed(part, whole->dtype);
    return dtensor_new(m, whole->shape, whole->dtype, p, local);
}

static size_t part_bytes(const mesh_dtensor *x, const mesh_placements *p)
{
    mesh_shape part = layout_local_shape(x->shape, x->mesh->size, x->mesh->coordinate, p);
    return (size_t)shape_numel(part) * dtype_size(x->dtype);
}

static bool has_own_way(enum op_id op)
{
    switch (op) {
    case OP_conv2d:
    case OP_flip:
    case OP_roll:
    case OP_narrow:
    case OP_select:
    case OP_pad:
    case OP_repeat:
    case OP_reshape:
    case OP_cat:
        return true;
    default:
        return false;
    }
}

/* false: the row refuses these layouts. */
static bool find_bound(const struct trial *t, mesh_dtensor *const *in, size_t *ret_bytes)
{
    struct op_shapes s;
    struct op_choice choice;
    mesh_placements now[OP_MAX_INPUTS] = { { .n = 0 } }, whole = { .n = in[0]->mesh->ndim };
    size_t moved = 0, on_its_way = 0;
    for (int d = 0; d < whole.n; d++) {
        whole.at[d] = mesh_replicate();
    }
    op_facts(t->op, in, &t->sample->attr, &s);
    for (int i = 0; i < t->sample->n_in; i++) {
        now[i] = in[i]->placements;
    }
    if (t->op->shape(&s) < 0 || op_choose(t->op, &s, whole.n, in[0]->mesh->size, now, &choice) < 0) {
        return false;
    }
    for (int i = 0; i < t->sample->n_in; i++) {
        bool may_be_whole = has_own_way(t->sample->op);
        if (may_be_whole || !mesh_placements_equal(now[i], choice.in[i])) {
            size_t bytes = part_bytes(in[i], may_be_whole ? &whole : &choice.in[i]);
            moved += bytes;
            on_its_way = MAX(on_its_way, bytes + part_bytes(in[i], &now[i]));
        }
    }
    *ret_bytes = moved + on_its_way;
    return true;
}

static size_t result_bytes(const struct trial *t, mesh_dtensor *const *out)
{
    struct kernel_call c = { .attr = &t->shapes.attr };
    size_t bytes = 0;
    for (int i = 0; i < t->sample->n_in; i++) {
        c.in[i] = t->in[i];
    }
    for (int o = 0; o < t->op->n_out; o++) {
        c.out[o] = t->out[o];
        bytes += tensor_bytes(out[o]->local);
    }
    return bytes + kernel_scratch(t->op->kernel, &c); /* of all of it: no part takes more */
}

static int call_once(const struct trial *t, mesh_dtensor *const *in, size_t bound, bool is_measured)
{
    mesh_dtensor *out[OP_MAX_OUTPUTS] = { NULL };
    mesh_scope *scope = mesh_scope_begin();
    REQUIRE(mesh_barrier(mesh_world()) == 0);
    size_t before = mem_in_use(), most = 0;
    mem_peak_reset();
    REQUIRE(mesh_barrier(mesh_world()) == 0);
    REQUIRE(op_apply(t->sample->op, in, &t->sample->attr, out) == 0);
    bounds[mesh_rank()] = bound + result_bytes(t, out) + SLACK;
    REQUIRE(mesh_barrier(mesh_world()) == 0);
    size_t taken = mem_peak() - before;
    for (int r = 0; r < mesh_world_size(); r++) {
        most += bounds[r];
    }
    REQUIRE(mesh_barrier(mesh_world()) == 0);
    if (is_measured && taken > with_slack(most)) {
        char a[DTENSOR_TEXT_BYTES], b[DTENSOR_TEXT_BYTES];
        return ranks_complain(__FILE__, __LINE__, "%s of %s and %s holds %zu bytes, stated are %zu", t->op->name,
                              dtensor_text(in[0], a, sizeof a), in[1] ? dtensor_text(in[1], b, sizeof b) : "nothing",
                              taken, with_slack(most));
    }
    return mesh_scope_end(scope);
}

static int measure(void *arg)
{
    const struct measuring *k = arg;
    struct trial t;
    uint64_t seed = k->seed;
    size_t bound = 0;
    mesh_dtensor *in[OP_MAX_INPUTS] = { NULL };
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", k->world->shape, NULL);
    trial_init(&t, k->sample, m->ndim);
    for (int i = 0; i < k->sample->n_in; i++) {
        mesh_placements p = layout_of(&t, i, m, &seed);
        in[i] = lay_out(&t, i, m, &p);
        REQUIRE(in[i] != NULL);
    }
    for (int round = 0; round < 2 && find_bound(&t, in, &bound); round++) {
        REQUIRE_OK(call_once(&t, in, bound, round > 0)); /* the first leaves its choice, plans and links */
    }
    trial_fini(&t);
    return 0;
}

START_TEST(a_call_holds_what_moves_its_results_and_the_kernels_scratch)
{
    struct sample large = sample_largest(&samples[_i]);
    struct measuring m = { &large, &worlds[_i % (int)ARRAY_SIZE(worlds)], (uint64_t)_i + 1 };
    ranks_run(m.world->n_ranks, measure, &m);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("peak of layouts");
    TCase *t = tcase_create("peak of layouts");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_call_holds_what_moves_its_results_and_the_kernels_scratch, 0, n_samples);
    suite_add_tcase(s, t);
    return s;
}
