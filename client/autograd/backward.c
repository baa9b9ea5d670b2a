/* client/autograd/backward.c - walks the record from the newest node to the oldest: a gradient is complete at its turn.
 *
 * The nodes whose gradient has begun wait in a heap by their number; all that feed an older node are newer.  The order
 * is that of creation, hence the same on all ranks, and so is that of the collectives.
 *
 * What is held at once: the gradient of the node whose turn it is and those it gives, those that wait, and of each leaf
 * the one it keeps.  How many edges lead to a leaf is counted first, so that it is laid out (a pending sum is reduced,
 * a shard cut out) with the last contribution, and not at the end of the pass.  Saved values go node by node, unless
 * the graph is retained.
 * SPDX-License-Identifier: Apache-2.0 */
#include "autograd/backward.h"

#include <stdatomic.h>

#include "autograd/hooks.h"
#include "autograd/leaf.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/map.h"
#include "base/vec.h"
#include "core/scope.h"

struct backward {
    VEC(struct grad_node *) heap;  /* the highest number first; owned references */
    VEC(struct leaf_sum) leaves;   /* in the order they were met */
    struct map index;              /* leaf -> 1 + its place in leaves */
    VEC(struct grad_node *) found; /* whose edges are still to be counted; of the graph */
    uint64_t pass;                 /* its number */
    const char *name;              /* what stands in error records */
    bool retains;                  /* the graph stays */
};

static void swap(struct grad_node **a, struct grad_node **b)
{
    struct grad_node *t = *a;
    *a = *b;
    *b = t;
}

static int heap_push(struct backward *b, struct grad_node *node)
{
    struct grad_node **last = VEC_PUSH(&b->heap);
    if (last == NULL) {
        return err_no_memory(b->heap.n * sizeof node, "the nodes of a backward pass");
    }
    *last = tape_ref(node);
    struct grad_node **at = b->heap.at;
    for (size_t i = b->heap.n - 1; i > 0 && at[(i - 1) / 2]->number < at[i]->number; i = (i - 1) / 2) {
        swap(&at[i], &at[(i - 1) / 2]);
    }
    return 0;
}

static struct grad_node *heap_pop(struct backward *b)
{
    struct grad_node **at = b->heap.at, *top = at[0];
    size_t n = --b->heap.n;
    at[0] = at[n];
    for (size_t i = 0, child = 1; child < n; i = child, child = 2 * i + 1) {
        child += child + 1 < n && at[child + 1]->number > at[child]->number ? 1 : 0;
        if (at[i]->number > at[child]->number) {
            break;
        }
        swap(&at[i], &at[child]);
    }
    return top;
}

static struct leaf_sum *leaf_of(struct backward *b, mesh_dtensor *leaf)
{
    uintptr_t place = (uintptr_t)map_get(&b->index, &leaf, sizeof leaf);
    if (place > 0) {
        return &b->leaves.at[place - 1];
    }
    struct leaf_sum *s = VEC_PUSH(&b->leaves);
    if (s == NULL) {
        err_no_memory(sizeof *s, "the leaves of a backward pass");
        return NULL;
    }
    *s = (struct leaf_sum){ .leaf = dtensor_ref(leaf) };
    return map_set(&b->index, &leaf, sizeof leaf, (void *)(uintptr_t)b->leaves.n, NULL) < 0 ? NULL : s;
}

/* --- how many contributions each leaf will get -------------------------------------------------------------------- */

static int count_edge(struct backward *b, const struct grad_edge *e)
{
    if (e->node != NULL && e->node->counted_by != b->pass) {
        e->node->counted_by = b->pass;
        struct grad_node **last = VEC_PUSH(&b->found);
        if (last == NULL) {
            return err_no_memory(b->found.n * sizeof *last, "the nodes of a backward pass");
        }
        *last = e->node;
    }
    struct leaf_sum *s = e->leaf != NULL ? leaf_of(b, e->leaf) : NULL;
    if (e->leaf != NULL && s == NULL) {
        return err_status();
    }
    if (s != NULL) {
        s->n_missing++;
    }
    return 0;
}

static int count_edges(struct backward *b, const struct grad_edge *start)
{
    int r = count_edge(b, start);
    while (r == 0 && b->found.n > 0) {
        const struct grad_node *node = b->found.at[--b->found.n];
        for (int i = 0; r == 0 && i < OP_MAX_INPUTS; i++) {
            r = count_edge(b, &node->edge[i]);
        }
    }
    return r;
}

/* --- the walk ----------------------------------------------------------------------------------------------------- */

static int deliver(struct backward *b, const struct grad_edge *to, mesh_dtensor *dx, bool is_shared)
{
    if (to->node != NULL) {
        int r = to->node->grad == NULL ? heap_push(b, to->node) : 0;
        return r < 0 ? r : gradient_add(&to->node->grad, dx);
    }
    struct leaf_sum *s = leaf_of(b, to->leaf);
    if (s == NULL) {
        return err_status();
    }
    s->is_shared = s->sum == NULL && is_shared;
    s->n_missing--;
    int r = gradient_add(&s->sum, dx);
    return r < 0 || s->n_missing > 0 ? r : leaf_finish(s, b->name);
}

/* Whether dx i is not a value of its own: passed through from dy, or the same as another input's. */
static bool is_shared(const struct grad_call *c, int i)
{
    const struct storage *mine = c->dx[i]->local->storage;
    for (int j = 0; j < OP_MAX_INPUTS; j++) {
        if (j != i && c->dx[j] != NULL && c->dx[j]->local->storage == mine) {
            return true;
        }
    }
    return c->dy->local->storage == mine;
}

/* The sum of what came for the node, whole where its readers asked for that. */
static mesh_dtensor *completed(const struct grad_node *node)
{
    mesh_placements p = node->grad->placements;
    for (int d = 0; d < p.n; d++) {
        if ((node->completes >> d & 1) != 0 && p.at[d].kind == MESH_IS_PARTIAL) {
            p.at[d] = mesh_replicate();
        }
    }
    return node->completes != 0 ? dtensor_redistribute(node->grad, &p) : node->grad;
}

static int visit(struct backward *b, struct grad_node *node)
{
    if (node->is_used_up) {
        return err_set(MESH_ESTATE,
                       "the graph behind %s was used up by an earlier mesh_backward(); compute the loss again",
                       node->name);
    }
    mesh_dtensor *dy = completed(node);
    if (dy == NULL) {
        return err_wrap(err_status(), "gradient of the result of %s", node->name);
    }
    struct grad_call c = { .node = node, .dy = hooks_run(node->hooks, b->name, dy) };
    if (c.dy == NULL) {
        return err_wrap(err_status(), "hook on the result of %s", node->name);
    }
    for (int i = 0; i < OP_MAX_INPUTS; i++) {
        c.wants[i] = node->edge[i].node != NULL || node->edge[i].leaf != NULL;
    }
    node->gradient->run(&c);
    for (int i = 0; i < OP_MAX_INPUTS; i++) {
        if (!c.wants[i]) {
            continue;
        }
        if (c.dx[i] == NULL) {
            return err_wrap(err_status(), "gradient of %s", node->name);
        }
        int r = deliver(b, &node->edge[i], c.dx[i], is_shared(&c, i));
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static void drop_gradient(struct grad_node *node)
{
    dtensor_unref(node->grad);
    node->grad = NULL;
}

static int walk(struct backward *b, mesh_scope *scope)
{
    int r = 0;
    while (r == 0 && b->heap.n > 0) {
        struct grad_node *node = heap_pop(b);
        r = visit(b, node);
        drop_gradient(node);
        if (!b->retains) {
            tape_use_up(node);
        }
        tape_unref(node);
        if (r == 0 && !mesh_scope_next(scope)) { /* what lives on has references of its own */
            r = err_status();
        }
        err_enter(b->name);
    }
    return r;
}

static void commit(struct backward *b)
{
    for (size_t i = 0; i < b->leaves.n; i++) {
        leaf_commit(&b->leaves.at[i]);
    }
}

static void fini(struct backward *b)
{
    for (size_t i = 0; i < b->heap.n; i++) {
        drop_gradient(b->heap.at[i]);
        tape_unref(b->heap.at[i]);
    }
    for (size_t i = 0; i < b->leaves.n; i++) {
        leaf_fini(&b->leaves.at[i]);
    }
    VEC_FINI(&b->heap);
    VEC_FINI(&b->leaves);
    VEC_FINI(&b->found);
    map_fini(&b->index);
}

int backward_run(const char *name, mesh_scope *scope, mesh_dtensor *y, mesh_dtensor *seed, bool retains)
{
    static atomic_uint_fast64_t last_pass;
    struct backward b = {
        .index = MAP_INIT, .name = name, .pass = atomic_fetch_add(&last_pass, 1) + 1, .retains = retains
    };
    struct grad_edge start = { .node = y->node, .leaf = y->node == NULL ? y : NULL };
    int r = count_edges(&b, &start);
    r = r < 0 ? r : deliver(&b, &start, seed, true);
    r = r < 0 ? r : walk(&b, scope);
    if (r == 0) {
        commit(&b);
    }
    fini(&b);
    return r;
}
