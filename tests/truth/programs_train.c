/* tests/truth/programs_train.c - a network trained on any mesh learns what it learns on one rank: random networks,
 * layouts and steps.
 *
 * Each seed is a network (programs_blocks.c), some of its parameters frozen or hooked, a loss, an optimizer, and a few
 * steps of one or more micro-batches.  Elsewhere than on one rank its modules are spread by styles and functions,
 * before their first use or after the first gradients.  Results, losses, gradients, their norm and all parameters are
 * compared (programs_see.c); calls that must fail do so in between, with one sentence on all ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>

#include "base/util.h"
#include "truth/programs_train.h"

#define MAX_PARAMETERS 64

static double tolerance(const struct net *net)
{
    return net->is_rough ? 0.1 : 3e-4;
}

/* --- layouts ------------------------------------------------------------------------------------------------------ */

/* Pending only where nothing else can be pending beside it. */
static mesh_placement any_side(struct program *p, int ndim, bool pending)
{
    int kind = (int)layout_below(p, 6);
    return kind == 0              ? (mesh_placement){ .kind = 0 }
           : kind == 1            ? mesh_replicate()
           : kind == 2 && pending ? mesh_partial(MESH_SUM)
                                  : mesh_shard((int)layout_below(p, ndim) - (layout_below(p, 2) ? ndim : 0));
}

/* Of a child that is of the library; only linear layers and embeddings take all three. */
static int style_one(struct net *net, const char *path, bool is_embedding)
{
    struct program *p = net->p;
    mesh_module *m = mesh_module_at(net->root, path);
    mesh_device_mesh *mesh = mesh_device_mesh_of(mesh_module_parameter(m, 0, NULL));
    char dim[4] = { (char)('0' + layout_below(p, mesh_mesh_ndim(mesh))) };
    int kind = (int)layout_below(p, 3);
    mesh_style s = kind == 0 ? mesh_colwise() : kind == 1 ? mesh_rowwise() : mesh_sequence(0);
    s.input = is_embedding ? s.input : any_side(p, 2, false);
    s.output = any_side(p, 2, mesh_mesh_ndim(mesh) == 1);
    return mesh_parallelize_module(net->root, dim, { path, s });
}

static bool is_linear(struct net *net, const char *path)
{
    const char *name = NULL;
    mesh_dtensor *w = mesh_module_parameter(mesh_module_at(net->root, path), 0, &name);
    return w != NULL && mesh_shape_of(w).ndim == 2 && name[0] == 'w';
}

static int style_all(struct net *net)
{
    int r = 0;
    for (int i = 0; i < net->n_children && r == 0; i++) {
        bool is_plain = net->child[i] != NULL && net->name[i][0] != 'g' && is_linear(net, net->name[i]);
        if (is_plain && net->is_library[i] && layout_below(net->p, 2)) {
            r = style_one(net, net->name[i], net->name[i][0] == 'e');
        }
    }
    return r;
}

static mesh_placements partition(const char *parameter, mesh_shape shape, void *user)
{
    struct net *net = user;
    mesh_dtensor *x = mesh_module_parameter_at(net->root, parameter);
    mesh_placements none = { .n = 0 };
    return layout_below(net->p, 3) ? any_layout(net->p, on(x), shape, mesh_dtype_of(x), false) : none;
}

static mesh_dtensor *anyhow(mesh_dtensor *x, void *user)
{
    struct net *net = user;
    return layout_below(net->p, 2)
               ? NULL
               : mesh_redistribute(x, any_layout(net->p, on(x), mesh_shape_of(x), mesh_dtype_of(x), true));
}

static int spread(struct net *net)
{
    int way = net->p->is_reference ? 0 : (int)layout_below(net->p, 4);
    int r = way & 1 ? style_all(net) : 0;
    if (r == 0 && (way & 2)) {
        r = mesh_distribute_module(net->root, partition, anyhow, anyhow, net);
    }
    return r;
}

/* --- parameters --------------------------------------------------------------------------------------------------- */

static mesh_dtensor *halve(mesh_dtensor *grad, void *user)
{
    const struct net *net = user;
    return mesh_mul_scalar(
        mesh_redistribute(grad, any_layout(net->p, on(grad), mesh_shape_of(grad), mesh_dtype_of(grad), true)), 0.5);
}

/* A tied one comes twice: hooks first, as a frozen parameter takes none. */
static void mark_parameters(struct net *net)
{
    mesh_dtensor *x = NULL;
    for (size_t i = 0; (x = mesh_module_parameter(net->root, i, NULL)) != NULL; i++) {
        if (chance(net->p, 10)) {
            mesh_grad_hook(x, halve, net);
        }
    }
    for (size_t i = 0; (x = mesh_module_parameter(net->root, i, NULL)) != NULL; i++) {
        if (chance(net->p, 10)) {
            mesh_requires_grad(x, false);
        }
    }
}

static void see_parameters(struct net *net, bool grads)
{
    const char *name = NULL;
    mesh_dtensor *x = NULL;
    for (size_t i = 0; (x = mesh_module_parameter(net->root, i, &name)) != NULL; i++) {
        char what[60];
        snprintf(what, sizeof what, "%s of %s", grads ? "gradient" : "value", name);
        see(net->p, what, grads ? mesh_grad(x) : x, 1, tolerance(net));
    }
}

/* --- a step ------------------------------------------------------------------------------------------------------- */

static mesh_dtensor *input(struct net *net)
{
    static const mesh_dtype types[] = { MESH_F32, MESH_F32, MESH_F32, MESH_F64, MESH_BF16 };
    struct program *p = net->p;
    mesh_shape s = { .ndim = 1 + (int)below(p, 3) };
    for (int i = 0; i < s.ndim; i++) {
        s.dim[i] = 1 + below(p, 6);
    }
    if (net->n_classes > 0) {
        return whole(p, p->mesh[0], s, 0, net->n_classes);
    }
    s.dim[s.ndim++] = net->first_width;
    mesh_dtype t = types[below(p, ARRAY_SIZE(types))];
    net->is_rough |= t == MESH_BF16;
    return leaf(p, p->mesh[0], s, t);
}

static mesh_dtensor *loss_of(struct net *net, mesh_dtensor *y)
{
    struct program *p = net->p;
    mesh_shape s = mesh_shape_of(y);
    int64_t n = count_of(s) / s.dim[s.ndim - 1];
    switch (below(p, 4)) {
    case 0: {
        mesh_dtensor *logits = mesh_reshape(y, MESH_SHAPE(-1, s.dim[s.ndim - 1]));
        return mesh_cross_entropy(logits, whole(p, on(y), MESH_SHAPE(n), 0, s.dim[s.ndim - 1]),
                                  .label_smoothing = chance(p, 30) ? 0.25 : 0);
    }
    case 1:
        return mesh_mse_loss(y, mesh_detach(mesh_cast(leaf(p, on(y), s, MESH_F32), mesh_dtype_of(y))),
                             MESH_REDUCTION_MEAN);
    case 2:
        return mesh_mean(mesh_mul(y, mesh_tanh(y)));
    default:
        return mesh_add(mesh_mean(mesh_square(y)), mesh_mul_scalar(mesh_logsumexp(y), 0.25));
    }
}

static void go_back(struct net *net, mesh_dtensor *y)
{
    struct program *p = net->p;
    if (chance(p, 20)) {
        mesh_dtensor *dy = mesh_detach(mesh_cast(leaf(p, on(y), mesh_shape_of(y), MESH_F32), mesh_dtype_of(y)));
        mesh_backward_from(y, mesh_mul_scalar(dy, 0.125));
        return;
    }
    mesh_dtensor *loss = loss_of(net, y);
    see(p, "loss", loss, 1, tolerance(net));
    if (chance(p, 20)) {
        mesh_backward_with(loss, .retain_graph = true);
    }
    mesh_backward(loss);
}

static void see_leaves(struct net *net)
{
    for (int i = 0; i < net->p->n_leaves; i++) {
        const struct leaf *l = &net->p->leaf[i];
        if (l->scale > 0) {
            see(net->p, "gradient of an input", mesh_grad(l->x), l->scale, tolerance(net));
        }
    }
}

static void micro_batch(struct net *net)
{
    struct program *p = net->p;
    mesh_scope *scope = mesh_scope_begin();
    p->n_leaves = 0;
    mesh_dtensor *y = mesh_forward(net->root, input(net));
    see(p, "result", y, 1, tolerance(net));
    if (y != NULL) {
        go_back(net, y);
    }
    see_leaves(net);
    for (int i = 0; i < p->n_leaves; i++) {
        mesh_release(p->leaf[i].x);
    }
    if (mesh_scope_end(scope) < 0) {
        complain(p, "a micro-batch: %s", mesh_last_error()->message);
        p->n_seen = -1;
    }
}

static void evaluate(struct net *net)
{
    bool was = mesh_grad_enable(false);
    mesh_module_train(net->root, false);
    net->p->n_leaves = 0;
    mesh_scope *scope = mesh_scope_begin();
    mesh_dtensor *y = mesh_forward(net->root, input(net));
    see(net->p, "evaluated", y, 1, tolerance(net));
    mesh_scope_end(scope);
    mesh_module_train(net->root, true);
    mesh_grad_enable(was);
}

static mesh_optimizer *any_optimizer(struct net *net)
{
    struct program *p = net->p;
    double decay = chance(p, 50) ? 0.125 : 0, momentum = chance(p, 60) ? 0.5 : 0;
    if (chance(p, 50)) {
        return mesh_adamw(net->root, .lr = 0.05, .eps = 0.1, .beta2 = 0.9, .weight_decay = &decay);
    }
    return mesh_sgd(net->root, .lr = 0.05, .momentum = momentum, .nesterov = momentum > 0 && chance(p, 50),
                    .weight_decay = decay);
}

static void step(struct net *net, mesh_optimizer *optimizer, bool spreads)
{
    struct program *p = net->p;
    for (int n = 1 + (int)below(p, 3); n > 0 && is_fine(p); n--) {
        micro_batch(net);
    }
    if (spreads && spread(net) < 0) {
        return;
    }
    see_parameters(net, true);
    if (chance(p, 40)) {
        double most = chance(p, 30) ? INFINITY : 0.5 + (double)below(p, 4);
        mesh_scope *scope = mesh_scope_begin();
        double norm = mesh_clip_grad_norm(net->root, most);
        see_failure(p, "clip", scope);
        see_number(p, "norm", norm, tolerance(net));
    }
    mesh_optimizer_step(optimizer);
    see_parameters(net, false);
    see_parameters(net, true);
}

/* --- calls that fail ---------------------------------------------------------------------------------------------- */

static const mesh_placements nowhere = { .n = 0 };

// clang-format off
static mesh_dtensor *some(struct net *net) { return mesh_ones(MESH_SHAPE(2, net->first_width), net->p->mesh[0], any_layout(net->p, net->p->mesh[0], MESH_SHAPE(2, net->first_width), MESH_F32, false)); }
#define FAILS(name) static void fail_##name(struct net *net)
FAILS(width)      { mesh_forward(net->root, mesh_ones(MESH_SHAPE(2, 99), net->p->mesh[0], mesh_placements_of(some(net)))); }
FAILS(nothing)    { mesh_forward(net->root, NULL); }
FAILS(two_inputs) { mesh_forward_all(net->root, some(net), some(net)); }
FAILS(path)       { mesh_module_parameter_at(net->root, "b1.wieght"); }
FAILS(deeper)     { mesh_module_at(net->root, "b%s.inner.weight"); }
FAILS(no_dim)     { mesh_parallelize_module(net->root, "nirvana", { net->name[0], mesh_colwise() }); }
FAILS(no_style)   { mesh_parallelize_module(net->root, "0", { net->name[0], { .kind = 77 } }); }
FAILS(no_module)  { mesh_parallelize_module(net->root, "0", { "b?.*.nothing", mesh_rowwise() }); }
FAILS(same_name)  { mesh_module *m = mesh_nn_gelu(); mesh_module_add(net->root, net->name[0], m); mesh_module_free(m); }
FAILS(ring)       { mesh_module_add(net->child[0], "root", net->root); }
FAILS(no_grad)    { mesh_backward(mesh_sum(some(net))); }
FAILS(not_scalar) { mesh_backward(mesh_mul_scalar(mesh_requires_grad(some(net), true), 2)); }
FAILS(used_up)    { mesh_dtensor *y = mesh_sum(mesh_square(mesh_requires_grad(some(net), true))); mesh_backward(y); mesh_backward(y); }
FAILS(in_place)   { mesh_add_scalar_(mesh_module_parameter(net->root, 0, NULL), 1); }
FAILS(no_leaf)    { mesh_requires_grad(mesh_mul_scalar(mesh_requires_grad(some(net), true), 2), true); }
FAILS(negative)   { mesh_sgd(net->root, .lr = -1); }
FAILS(betas)      { mesh_adamw(net->root, .beta1 = 1); }
FAILS(norm)       { mesh_clip_grad_norm(net->root, -1); }
FAILS(reshape)    { mesh_reshape(some(net), MESH_SHAPE(7, 3)); }
FAILS(rule)       { mesh_apply_op(net->dot, (mesh_dtensor *[]){ some(net), mesh_sum(some(net)) }, 2, NULL); }
FAILS(layout)     { mesh_redistribute(some(net), nowhere); }
FAILS(partial)    { mesh_module_add_parameter(net->root, "p", mesh_full(MESH_SHAPE(3), 1, net->p->mesh[0], MESH_PLACEMENTS(mesh_partial(MESH_SUM), mesh_partial(MESH_SUM), mesh_partial(MESH_SUM)))); }
FAILS(whole)      { (void)net; mesh_distribute_module(NULL, NULL, NULL, NULL, NULL); }
FAILS(indices)    { mesh_index_select(some(net), some(net), 0); }
FAILS(scalar)     { mesh_item(some(net)); }
FAILS(hook)       { mesh_grad_hook(some(net), halve, net); }
// clang-format on

static void fail(struct net *net)
{
#define ROW(name)                                                                                                      \
    {                                                                                                                  \
#name, fail_##name                                                                                             \
    }
    static const struct {
        const char *what;
        void (*call)(struct net *net);
    } calls[] = { ROW(width),    ROW(nothing),   ROW(two_inputs), ROW(path),     ROW(deeper),  ROW(no_dim),
                  ROW(no_style), ROW(no_module), ROW(same_name),  ROW(ring),     ROW(no_grad), ROW(not_scalar),
                  ROW(used_up),  ROW(in_place),  ROW(no_leaf),    ROW(negative), ROW(betas),   ROW(norm),
                  ROW(reshape),  ROW(rule),      ROW(layout),     ROW(partial),  ROW(whole),   ROW(indices),
                  ROW(scalar),   ROW(hook) };
    size_t k = (size_t)below(net->p, ARRAY_SIZE(calls));
    mesh_scope *scope = mesh_scope_begin();
    calls[k].call(net);
    see_failure(net->p, calls[k].what, scope);
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static void train(struct net *net)
{
    struct program *p = net->p;
    bool late = chance(p, 30);
    mesh_optimizer *optimizer = any_optimizer(net);
    if (!late && spread(net) < 0) {
        return;
    }
    if (chance(p, 70)) {
        mark_parameters(net);
    }
    int n_steps = 1 + (int)below(p, 4);
    for (int i = 0; i < n_steps && is_fine(p) && mesh_scope_status(NULL) == 0; i++) {
        begin_step(p, 10 + i);
        if (chance(p, 40)) {
            fail(net);
        }
        step(net, optimizer, late && i == 0);
        if (chance(p, 30)) {
            mesh_optimizer_set_lr(optimizer, 0.02);
        }
        if (chance(p, 20)) {
            evaluate(net);
        }
    }
    mesh_optimizer_free(optimizer);
}

int program_run(struct program *p)
{
    struct net net = { .p = p };
    begin_step(p, 0);
    make_meshes(p);
    mesh_manual_seed(p->seed);
    begin_step(p, 1);
    if (net_build(&net) != NULL) {
        train(&net);
    }
    if (mesh_scope_status(NULL) < 0) {
        return complain(p, "%s", mesh_last_error()->message);
    }
    mesh_module_free(net.root);
    return is_fine(p) ? 0 : -1;
}
