/* client/autograd/backward.c - walks the record from the newest node to the oldest: a gradient is complete at its turn.
 *
 * The nodes whose gradient has begun wait in a heap by their number; all that feed an older node are newer.  The order
 * is that of creation, hence the same on all ranks, and so is that of the collectives.
 * SPDX-License-Identifier: Apache-2.0 */
#include "autograd/backward.h"

#include "autograd/hooks.h"
#include "autograd/leaf.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/map.h"
#include "base/vec.h"
#include "core/scope.h"

struct backward {
    VEC(struct grad_node *) heap; /* the highest number first; owned references */
    VEC(struct leaf_sum) leaves;  /* in the order they were met */
    struct map index;             /* leaf -> 1 + its place in leaves */
    const char *name;             /* what stands in error records */
    bool retains;                 /* the graph stays */
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
    return gradient_add(&s->sum, dx);
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

static int finish(struct backward *b)
{
    for (size_t i = 0; i < b->leaves.n; i++) {
        int r = leaf_finish(&b->leaves.at[i], b->name);
        if (r < 0) {
            return r;
        }
    }
    for (size_t i = 0; i < b->leaves.n; i++) {
        leaf_commit(&b->leaves.at[i]);
    }
    return 0;
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
    map_fini(&b->index);
}

int backward_run(const char *name, mesh_scope *scope, mesh_dtensor *y, mesh_dtensor *seed, bool retains)
{
    struct backward b = { .index = MAP_INIT, .name = name, .retains = retains };
    struct grad_edge start = { .node = y->node, .leaf = y->node == NULL ? y : NULL };
    int r = deliver(&b, &start, seed, true);
    r = r < 0 ? r : walk(&b, scope);
    r = r < 0 ? r : finish(&b);
    fini(&b);
    return r;
}
