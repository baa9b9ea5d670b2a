/* client/autograd/tape.c - makes nodes of the record and frees them, one after the other however long the chain.
 * SPDX-License-Identifier: Apache-2.0 */
#include "autograd/tape.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/error.h"

static _Thread_local bool is_off;
static atomic_uint_fast64_t last_number;
static pthread_once_t hook_once = PTHREAD_ONCE_INIT;

bool tape_is_on(void)
{
    return !is_off;
}

bool tape_set(bool on)
{
    bool old = !is_off;
    is_off = !on;
    return old;
}

bool tape_wants(mesh_dtensor *const *in, int n_in)
{
    for (int i = 0; !is_off && i < n_in; i++) {
        if (in[i] != NULL && in[i]->requires_grad) {
            return true;
        }
    }
    return false;
}

struct grad_node *tape_ref(struct grad_node *node)
{
    atomic_fetch_add(&node->references, 1);
    return node;
}

/* Puts the node on the list of those to free, if this was its last reference. */
static void let_go(struct grad_node *node, struct grad_node **dying)
{
    if (node != NULL && atomic_fetch_sub(&node->references, 1) == 1) {
        node->next = *dying;
        *dying = node;
    }
}

static void drop_values(struct grad_node *node)
{
    for (int i = 0; i < OP_MAX_INPUTS; i++) {
        dtensor_unref(node->in[i]);
        node->in[i] = NULL;
    }
    dtensor_unref(node->out);
    node->out = NULL;
}

static void drop_edges(struct grad_node *node, struct grad_node **dying)
{
    for (int i = 0; i < OP_MAX_INPUTS; i++) {
        dtensor_unref(node->edge[i].leaf);
        let_go(node->edge[i].node, dying);
        node->edge[i] = (struct grad_edge){ .node = NULL };
    }
}

static void free_all(struct grad_node *dying)
{
    while (dying != NULL) {
        struct grad_node *node = dying;
        dying = node->next;
        drop_values(node);
        drop_edges(node, &dying);
        dtensor_unref(node->grad);
        mem_free(node->hooks);
        mem_free(node);
    }
}

void tape_unref(struct grad_node *node)
{
    struct grad_node *dying = NULL;
    let_go(node, &dying);
    free_all(dying);
}

void tape_use_up(struct grad_node *node)
{
    struct grad_node *dying = NULL;
    node->is_used_up = true;
    drop_values(node);
    drop_edges(node, &dying);
    free_all(dying);
}

/* A handle of the value alone, the node's own: it does not hold the graph that made it. */
static int save(mesh_dtensor *x, mesh_dtensor **ret_saved)
{
    mesh_dtensor *alias = dtensor_alias(x);
    if (alias == NULL) {
        return err_status();
    }
    object_disown(&alias->object);
    *ret_saved = alias;
    return 0;
}

static void connect(struct grad_node *node, int i, mesh_dtensor *x)
{
    if (!x->requires_grad) {
        return;
    }
    if (x->node != NULL) {
        node->edge[i].node = tape_ref(x->node);
    } else {
        node->edge[i].leaf = dtensor_ref(x);
    }
}

static int save_values(struct grad_node *node, const struct tape_entry *e, mesh_dtensor *out)
{
    static const unsigned need[OP_MAX_INPUTS] = { NEEDS_IN0, NEEDS_IN1, NEEDS_IN2, NEEDS_IN3 };
    unsigned needs = 0;
    for (int i = 0; i < e->n_in; i++) {
        needs |= e->in[i] != NULL && e->in[i]->requires_grad ? e->gradient->needs[i] : 0U;
    }
    int r = 0;
    for (int i = 0; r == 0 && i < e->n_in; i++) {
        if (e->in[i] != NULL && (needs & need[i]) != 0) {
            r = save(e->in[i], &node->in[i]);
        }
    }
    return r == 0 && (needs & NEEDS_OUT) != 0 ? save(out, &node->out) : r;
}

static void install_hook(void)
{
    dtensor_set_node_free(tape_unref);
}

int tape_record(const struct tape_entry *e, mesh_dtensor *out)
{
    pthread_once(&hook_once, install_hook);
    struct grad_node *node = mem_new(struct grad_node);
    if (node == NULL) {
        return err_no_memory(sizeof *node, "a node of the gradient graph");
    }
    atomic_init(&node->references, 1);
    node->number = atomic_fetch_add(&last_number, 1) + 1;
    node->name = e->name;
    node->gradient = e->gradient;
    if (e->attr != NULL) {
        node->attr = *e->attr;
    }
    for (int i = 0; i < e->n_in; i++) {
        if (e->in[i] != NULL) {
            node->in_shape[i] = e->in[i]->shape;
            node->in_placements[i] = e->in[i]->placements;
            connect(node, i, e->in[i]);
        }
    }
    int r = save_values(node, e, out);
    if (r < 0) {
        tape_unref(node);
        return r;
    }
    out->node = node;
    out->node_output = 0;
    out->requires_grad = true;
    return 0;
}
