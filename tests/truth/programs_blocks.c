/* tests/truth/programs_blocks.c - random training: a network of blocks of every kind, those of the library and of a
 * program's own.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "base/util.h"
#include "truth/programs_train.h"

/* --- operators of our own ----------------------------------------------------------------------------------------- */

static double number(mesh_tensor *t, int64_t i)
{
    return mesh_tensor_dtype(t) == MESH_F64 ? ((double *)mesh_tensor_data(t))[i]
                                            : (double)((float *)mesh_tensor_data(t))[i];
}

static void set_number(mesh_tensor *t, int64_t i, double v)
{
    if (mesh_tensor_dtype(t) == MESH_F64) {
        ((double *)mesh_tensor_data(t))[i] = v;
    } else {
        ((float *)mesh_tensor_data(t))[i] = (float)v;
    }
}

/* "ik,ik->i" */
static int row_dot(const mesh_op_call *c)
{
    mesh_shape s = mesh_tensor_shape(c->in[0]);
    for (int64_t i = 0; i < s.dim[0]; i++) {
        double sum = 0;
        for (int64_t k = 0; k < s.dim[1]; k++) {
            sum += number(c->in[0], i * s.dim[1] + k) * number(c->in[1], i * s.dim[1] + k);
        }
        set_number(c->out, i, sum);
    }
    return 0;
}

static int row_dot_gradient(mesh_op_gradient *g)
{
    mesh_dtensor *dy = mesh_unsqueeze(g->dy, 1);
    g->dx[0] = g->wants[0] ? mesh_mul(dy, g->in[1]) : NULL;
    g->dx[1] = g->wants[1] ? mesh_mul(dy, g->in[0]) : NULL;
    return 0;
}

/* "*a,a->*a" */
static int scale_columns(const mesh_op_call *c)
{
    mesh_shape s = mesh_tensor_shape(c->in[0]);
    int64_t width = s.dim[s.ndim - 1];
    for (int64_t i = 0; i < count_of(s); i++) {
        set_number(c->out, i, number(c->in[0], i) * number(c->in[1], i % width));
    }
    return 0;
}

static int scale_columns_gradient(mesh_op_gradient *g)
{
    g->dx[0] = g->wants[0] ? mesh_mul(g->dy, g->in[1]) : NULL;
    g->dx[1] = g->wants[1] ? mesh_mul(g->dy, g->in[0]) : NULL;
    return 0;
}

static void register_ops(struct net *net)
{
    net->dot = mesh_register_op(&(mesh_op_class){
        .name = "row_dot", .n_in = 2, .rule = "ik,ik->i", .kernel = row_dot, .gradient = row_dot_gradient });
    net->scale = mesh_register_op(&(mesh_op_class){ .name = "scale_columns",
                                                    .n_in = 2,
                                                    .rule = "*a,a->*a",
                                                    .linear = MESH_OP_LINEAR_EACH,
                                                    .kernel = scale_columns,
                                                    .gradient = scale_columns_gradient });
}

/* --- modules of our own ------------------------------------------------------------------------------------------- */

static mesh_dtensor *own(const struct block *b, const char *name)
{
    return mesh_module_parameter_at(b->module, name);
}

static mesh_placements anyhow(const struct block *b, mesh_dtensor *x, bool pending)
{
    return any_layout(b->net->p, on(x), mesh_shape_of(x), mesh_dtype_of(x), pending);
}

// clang-format off
#define FORWARD(name) static mesh_dtensor *forward_##name(void *self, mesh_dtensor *x)
#define BLOCK         const struct block *b = self
FORWARD(rms)      { BLOCK; return mesh_rms_norm(x, 1, own(b, "weight"), 0.1); }
FORWARD(scale)    { BLOCK; return mesh_apply_op(b->net->scale, (mesh_dtensor *[]){ x, mesh_cast(own(b, "weight"), mesh_dtype_of(x)) }, 2, NULL); }
FORWARD(tied)     { BLOCK; return mesh_linear(x, own(b, "weight"), NULL); }
FORWARD(residual) { BLOCK; return mesh_add(x, mesh_forward(mesh_module_at(b->module, "inner"), x)); }
FORWARD(twice)    { BLOCK; mesh_module *m = mesh_module_at(b->module, "inner"); return mesh_forward(m, mesh_forward(m, x)); }
FORWARD(async)    { BLOCK; return mesh_redistribute_async(x, anyhow(b, x, true)); }
FORWARD(narrow)   { BLOCK; return mesh_cast(mesh_redistribute_with(x, anyhow(b, x, true), .backward_dtype = MESH_F64), MESH_F32); }
FORWARD(settle)   { BLOCK; return mesh_redistribute(x, anyhow(b, x, false)); }
FORWARD(move)     { BLOCK; return mesh_redistribute_to(x, b->to, any_layout(b->net->p, b->to, mesh_shape_of(x), mesh_dtype_of(x), true)); }
FORWARD(detach)   { (void)self; return mesh_add(x, mesh_mul_scalar(mesh_detach(x), 0.5)); }
FORWARD(turn)     { (void)self; int n = mesh_shape_of(x).ndim; return mesh_flip(mesh_transpose(mesh_roll(mesh_transpose(x, 0, n - 1), 1, 0), 0, n - 1), MESH_SHAPE(0)); }
// clang-format on

FORWARD(dot)
{
    BLOCK;
    mesh_shape s = mesh_shape_of(x);
    mesh_dtensor *rows = mesh_reshape(x, MESH_SHAPE(-1, s.dim[s.ndim - 1]));
    mesh_dtensor *other = mesh_mul(rows, mesh_cast(own(b, "weight"), mesh_dtype_of(x)));
    mesh_dtensor *dots = mesh_apply_op(b->net->dot, (mesh_dtensor *[]){ rows, other }, 2, NULL);
    s.dim[s.ndim - 1] = 1;
    return mesh_add(x, mesh_mul_scalar(mesh_reshape(dots, s), 0.125));
}

/* A part that nobody trains, changed in place where it lies. */
FORWARD(in_place)
{
    BLOCK;
    bool was = mesh_grad_enable(false);
    mesh_dtensor *y = mesh_redistribute(mesh_detach(x), anyhow(b, x, false));
    mesh_dtensor *half = mesh_narrow(mesh_mul_scalar(y, 1), 0, 0, mesh_shape_of(y).dim[0]);
    mesh_add_scalar_(mesh_mul_scalar_(y, 0.5), 1);
    mesh_add_(y, mesh_redistribute(half, anyhow(b, half, false)));
    mesh_grad_enable(was);
    return mesh_sub(x, mesh_mul_scalar(y, 0.25));
}

FORWARD(border)
{
    BLOCK;
    x = mesh_redistribute(x, anyhow(b, x, false));
    mesh_tensor *mine = mesh_to_local(mesh_detach(x));
    mesh_dtensor *y = mesh_from_local(part_or_whole(mine, on(x), mesh_shape_of(x)), on(x), mesh_placements_of(x),
                                      .shape = mesh_shape_of(x));
    return mesh_add(x, mesh_mul_scalar(y, 0.25));
}

/* Of two inputs. */
static mesh_dtensor *forward_gate(void *self, mesh_dtensor *const *in, int n)
{
    BLOCK;
    mesh_dtensor *g = mesh_sigmoid(mesh_forward(mesh_module_at(b->module, "gate"), in[n - 1]));
    return mesh_mul(in[0], g);
}

#define CLASS(name_) static const mesh_module_class name_##_class = { #name_, forward_##name_, free }
CLASS(rms);
CLASS(scale);
CLASS(tied);
CLASS(residual);
CLASS(twice);
CLASS(async);
CLASS(narrow);
CLASS(move);
CLASS(detach);
CLASS(turn);
CLASS(settle);
CLASS(dot);
CLASS(in_place);
CLASS(border);
static const mesh_inputs_class gate_class = { "gate", forward_gate, free };

static struct block *new_block(struct net *net)
{
    struct block *b = calloc(1, sizeof *b);
    *b = (struct block){ .net = net };
    return b;
}

static mesh_module *module_of(struct net *net, const mesh_module_class *class_)
{
    struct block *b = new_block(net);
    return b->module = mesh_module_new(class_, b);
}

/* A vector as long as a row is wide, of any floating dtype and layout. */
static mesh_module *with_weight(struct net *net, const mesh_module_class *class_)
{
    static const mesh_dtype types[] = { MESH_F32, MESH_F32, MESH_F32, MESH_F64, MESH_BF16, MESH_F16 };
    struct program *p = net->p;
    mesh_module *m = module_of(net, class_);
    mesh_dtype t = types[below(p, ARRAY_SIZE(types))];
    net->is_rough |= t == MESH_BF16 || t == MESH_F16;
    mesh_shape s = MESH_SHAPE(net->width);
    mesh_placements all = any_layout(p, net->mesh, s, t, false);
    mesh_module_add_parameter(m, "weight",
                              mesh_randn(s, net->mesh, all, .dtype = t, .seed = 1 + (uint64_t)below(p, 99)));
    return m;
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

static mesh_module *linear(struct net *net, int64_t out)
{
    struct program *p = net->p;
    mesh_module *m =
        mesh_nn_linear(net->mesh, net->width, out, .no_bias = chance(p, 30), .seed = (uint64_t)below(p, 9));
    net->width = out;
    return m;
}

static mesh_module *make_linear(struct net *net)
{
    bool is_square = chance(net->p, 40);
    mesh_module *m = linear(net, is_square ? net->width : 4 + below(net->p, 9));
    net->square = is_square && chance(net->p, 60) ? mesh_module_parameter_at(m, "weight") : NULL;
    return m;
}

static mesh_module *make_sequential(struct net *net)
{
    mesh_module *up = linear(net, 4 + below(net->p, 9));
    mesh_module *down = linear(net, 4 + below(net->p, 9));
    net->square = NULL;
    return mesh_nn_sequential({ "up", up }, { "act", mesh_nn_gelu() }, { "down", down });
}

static mesh_module *make_tied(struct net *net)
{
    mesh_dtensor *w = net->square;
    if (w == NULL || on(w) != net->mesh || mesh_shape_of(w).dim[0] != net->width) {
        return mesh_nn_layer_norm(net->mesh, net->width);
    }
    mesh_module *m = module_of(net, &tied_class);
    mesh_module_add_parameter(m, "weight", w);
    return m;
}

static mesh_module *around(struct net *net, const mesh_module_class *class_)
{
    mesh_module *m = module_of(net, class_);
    mesh_module_add(m, "inner", chance(net->p, 50) ? linear(net, net->width) : with_weight(net, &rms_class));
    return m;
}

static mesh_module *make_gate(struct net *net)
{
    struct block *b = new_block(net);
    b->module = mesh_module_new_of_inputs(&gate_class, b);
    mesh_module_add(b->module, "gate", linear(net, net->width));
    return b->module;
}

static mesh_module *make_move(struct net *net)
{
    struct block *b = new_block(net);
    b->to = net->mesh = net->p->mesh[below(net->p, net->p->n_meshes)];
    return b->module = mesh_module_new(&move_class, b);
}

/* It takes nothing pending. */
static mesh_module *make_dropout(struct net *net)
{
    return mesh_nn_sequential({ "settle", module_of(net, &settle_class) }, { "drop", mesh_nn_dropout(0.25) });
}

// clang-format off
static mesh_module *make_norm(struct net *net)     { return mesh_nn_layer_norm(net->mesh, net->width); }
static mesh_module *make_gelu(struct net *net)     { (void)net; return mesh_nn_gelu(); }
static mesh_module *make_rms(struct net *net)      { return with_weight(net, &rms_class); }
static mesh_module *make_scale(struct net *net)    { return with_weight(net, &scale_class); }
static mesh_module *make_dot(struct net *net)      { return with_weight(net, &dot_class); }
static mesh_module *make_residual(struct net *net) { return around(net, &residual_class); }
static mesh_module *make_twice(struct net *net)    { return around(net, &twice_class); }
static mesh_module *make_async(struct net *net)    { return module_of(net, &async_class); }
static mesh_module *make_narrow(struct net *net)   { return module_of(net, &narrow_class); }
static mesh_module *make_detach(struct net *net)   { return module_of(net, &detach_class); }
static mesh_module *make_turn(struct net *net)     { return module_of(net, &turn_class); }
static mesh_module *make_in_place(struct net *net) { return module_of(net, &in_place_class); }
static mesh_module *make_border(struct net *net)   { return module_of(net, &border_class); }
// clang-format on

static mesh_module *(*const makers[])(struct net *net) = {
    make_linear, make_linear, make_linear, make_sequential, make_tied,     make_tied,   make_residual, make_twice,
    make_gate,   make_norm,   make_gelu,   make_rms,        make_scale,    make_dot,    make_async,    make_narrow,
    make_move,   make_detach, make_turn,   make_dropout,    make_in_place, make_border,
};

/* --- the network -------------------------------------------------------------------------------------------------- */

/* A gate gets what the network was given as well, where it fits. */
static mesh_dtensor *forward_net(void *self, mesh_dtensor *x)
{
    BLOCK;
    mesh_dtensor *first = NULL;
    for (int i = 0; i < b->net->n_children && x != NULL; i++) {
        if (b->net->name[i][0] == 'g') {
            bool fits = first != NULL && on(first) == on(x) &&
                        mesh_shape_of(first).dim[mesh_shape_of(first).ndim - 1] ==
                            mesh_shape_of(x).dim[mesh_shape_of(x).ndim - 1];
            x = mesh_forward_all(b->net->child[i], x, fits ? first : x);
        } else {
            x = mesh_forward(b->net->child[i], x);
        }
        first = first == NULL && i == 0 ? x : first;
    }
    return x;
}
CLASS(net);

static void append(struct net *net, mesh_module *m, char kind, bool is_library)
{
    int i = net->n_children++;
    snprintf(net->name[i], sizeof net->name[i], "%c%d", kind, i);
    net->child[i] = m;
    net->is_library[i] = is_library;
    mesh_module_add(net->root, net->name[i], m);
}

mesh_module *net_build(struct net *net)
{
    struct program *p = net->p;
    register_ops(net);
    net->mesh = p->mesh[0];
    net->root = module_of(net, &net_class);
    net->width = net->first_width = 4 + below(p, 6);
    if (chance(p, 30)) {
        net->n_classes = 5 + below(p, 9);
        append(net, mesh_nn_embedding(net->mesh, net->n_classes, net->width), 'e', true);
    }
    int n = 1 + (int)below(p, MAX_BLOCKS - 4);
    for (int i = 0; i < n; i++) {
        size_t k = (size_t)below(p, ARRAY_SIZE(makers));
        append(net, makers[k](net), makers[k] == make_gate ? 'g' : 'b', makers[k] == make_linear);
    }
    append(net, linear(net, 4 + below(p, 6)), 'b', true);
    return net->root;
}
