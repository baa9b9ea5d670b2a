/* tests/unit/nn/test_traffic.c - what each style of tensor parallelism sends: collectives and bytes, there and back.
 *
 *     y = x + mlp(norm(x))       mlp: up colwise, gelu, down rowwise
 *     y = x + heads(norm(x))     heads: q, k, v colwise, attention, o rowwise
 *
 * alone, without norms, in chains and with several readers of one x; and that the gradients are those of one rank.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <mesh/inspect.h>

#include "harness/check_main.h"
#include "harness/ranks.h"

#define SHAPE(...) MESH_SHAPE(__VA_ARGS__)

enum { ROWS = 2, TOKENS = 8, WIDTH = 8, HEADS = 4, HIDDEN = 16, CLASSES = 12, MOST_PARAMETERS = 64 };

struct how { /* networks are built and spread at once */
    mesh_device_mesh *mesh;
    bool is_sequence; /* activations between the layers are split over the tokens */
};

struct own { /* the children of a module of this file */
    mesh_module *child[4];
    int n;
};

static mesh_module *make(const mesh_module_class *cls, const mesh_child *children)
{
    struct own *own = calloc(1, sizeof *own);
    mesh_module *m = mesh_module_new(cls, own);
    for (; m != NULL && children->name != NULL; children++) {
        own->child[own->n++] = children->module;
        m = mesh_module_add(m, children->name, children->module) < 0 ? NULL : m;
    }
    return m;
}
#define MAKE(cls, ...) make((cls), (const mesh_child[]){ __VA_ARGS__, { NULL, NULL } })

static mesh_dtensor *run(void *self, int i, mesh_dtensor *x)
{
    return mesh_forward(((const struct own *)self)->child[i], x);
}

static mesh_dtensor *residual(void *self, mesh_dtensor *x)
{
    return mesh_add(x, run(self, 1, run(self, 0, x)));
}
static const mesh_module_class residual_class = { "residual", residual, free };

/* Without a norm: what the body reads is what goes past it. */
static mesh_dtensor *bare(void *self, mesh_dtensor *x)
{
    return mesh_add(x, run(self, 0, x));
}
static const mesh_module_class bare_class = { "bare", bare, free };

static mesh_dtensor *split_heads(mesh_dtensor *x)
{
    mesh_dtensor *y = mesh_reshape(x, SHAPE(ROWS, TOKENS, HEADS, WIDTH / HEADS));
    return mesh_permute(y, SHAPE(0, 2, 1, 3));
}

static mesh_dtensor *heads(void *self, mesh_dtensor *x)
{
    mesh_dtensor *q = split_heads(run(self, 0, x)), *k = split_heads(run(self, 1, x)),
                 *v = split_heads(run(self, 2, x));
    mesh_dtensor *y = mesh_permute(mesh_scaled_dot_product_attention(q, k, v), SHAPE(0, 2, 1, 3));
    return run(self, 3, mesh_reshape(y, SHAPE(ROWS, TOKENS, WIDTH)));
}
static const mesh_module_class heads_class = { "heads", heads, free };

static mesh_dtensor *gated(void *self, mesh_dtensor *x)
{
    return run(self, 2, mesh_mul(mesh_relu(run(self, 0, x)), run(self, 1, x)));
}
static const mesh_module_class gated_class = { "gated", gated, free };

/* x + rows of a table. */
static mesh_dtensor *lookup(void *self, mesh_dtensor *x)
{
    mesh_placements whole = MESH_PLACEMENTS(mesh_replicate());
    return mesh_add(x,
                    run(self, 0, mesh_full(SHAPE(ROWS, TOKENS), 3, mesh_device_mesh_of(x), whole, .dtype = MESH_I64)));
}
static const mesh_module_class lookup_class = { "lookup", lookup, free };

/* The loss of the classes that a layer finds. */
static mesh_dtensor *loss(void *self, mesh_dtensor *x)
{
    mesh_placements whole = MESH_PLACEMENTS(mesh_replicate());
    mesh_dtensor *target = mesh_full(SHAPE(ROWS * TOKENS), 3, mesh_device_mesh_of(x), whole, .dtype = MESH_I64);
    return mesh_cross_entropy(run(self, 0, mesh_reshape(x, SHAPE(ROWS * TOKENS, WIDTH))), target);
}
static const mesh_module_class loss_class = { "loss", loss, free };

static mesh_style writer(const struct how *h)
{
    mesh_style s = mesh_rowwise();
    s.output = h->is_sequence ? mesh_shard(1) : s.output;
    return s;
}

static mesh_module *new_linear(const struct how *h, int64_t in, int64_t out)
{
    return mesh_nn_linear(h->mesh, in, out, .seed = (uint64_t)(100 * in + out));
}

static mesh_module *new_mlp(const struct how *h)
{
    mesh_module *m = mesh_nn_sequential({ "up", new_linear(h, WIDTH, HIDDEN) }, { "gelu", mesh_nn_gelu() },
                                        { "down", new_linear(h, HIDDEN, WIDTH) });
    mesh_style up = mesh_colwise();
    up.input = h->is_sequence ? mesh_shard(1) : up.input;
    return mesh_parallelize_module(m, "tp", { "up", up }, { "down", writer(h) }) < 0 ? NULL : m;
}

/* Several readers: x is brought to where they need it once, for the whole module. */
static mesh_style shared_input(void)
{
    mesh_style s = mesh_prepare();
    s.input = mesh_replicate();
    return s;
}

static mesh_module *new_heads(const struct how *h)
{
    mesh_module *m = MAKE(&heads_class, { "q", new_linear(h, WIDTH, WIDTH) }, { "k", new_linear(h, WIDTH, WIDTH) },
                          { "v", new_linear(h, WIDTH, WIDTH) }, { "o", new_linear(h, WIDTH, WIDTH) });
    int r = mesh_parallelize_module(m, "tp", { "", shared_input() }, { "[qkv]", mesh_colwise() }, { "o", writer(h) });
    return r < 0 ? NULL : m;
}

static mesh_module *new_gated(const struct how *h)
{
    mesh_module *m = MAKE(&gated_class, { "gate", new_linear(h, WIDTH, HIDDEN) },
                          { "up", new_linear(h, WIDTH, HIDDEN) }, { "down", new_linear(h, HIDDEN, WIDTH) });
    int r = mesh_parallelize_module(m, "tp", { "", shared_input() }, { "gate", mesh_colwise() },
                                    { "up", mesh_colwise() }, { "down", writer(h) });
    return r < 0 ? NULL : m;
}

static mesh_module *new_norm(const struct how *h)
{
    mesh_module *m = mesh_nn_layer_norm(h->mesh, WIDTH);
    bool fails = h->is_sequence && mesh_parallelize_module(m, "tp", { "", mesh_sequence(1) }) < 0;
    return fails ? NULL : m;
}

static mesh_module *with_norm(const struct how *h, mesh_module *body)
{
    return MAKE(&residual_class, { "norm", new_norm(h) }, { "body", body });
}

static mesh_module *mlp_bare(const struct how *h)
{
    return MAKE(&bare_class, { "body", new_mlp(h) });
}
static mesh_module *two_mlps_bare(const struct how *h)
{
    return mesh_nn_sequential({ "0", mlp_bare(h) }, { "1", mlp_bare(h) });
}
static mesh_module *mlp_block(const struct how *h)
{
    return with_norm(h, new_mlp(h));
}
static mesh_module *heads_block(const struct how *h)
{
    return with_norm(h, new_heads(h));
}
static mesh_module *heads_bare(const struct how *h)
{
    return MAKE(&bare_class, { "body", new_heads(h) });
}
static mesh_module *gated_block(const struct how *h)
{
    return with_norm(h, new_gated(h));
}
static mesh_module *transformer(const struct how *h)
{
    return mesh_nn_sequential({ "0", heads_block(h) }, { "1", mlp_block(h) }, { "2", heads_block(h) },
                              { "3", gated_block(h) });
}

/* One layer on one style. */
static mesh_module *styled(const struct how *h, mesh_module *m, mesh_style s)
{
    (void)h;
    return mesh_parallelize_module(m, "tp", { "", s }) < 0 ? NULL : m;
}
static mesh_module *colwise(const struct how *h)
{
    return styled(h, new_linear(h, WIDTH, WIDTH), mesh_colwise());
}
static mesh_module *colwise_whole(const struct how *h)
{
    mesh_style s = mesh_colwise();
    s.output = mesh_replicate();
    return styled(h, new_linear(h, WIDTH, WIDTH), s);
}
static mesh_module *rowwise(const struct how *h)
{
    return styled(h, new_linear(h, WIDTH, WIDTH), mesh_rowwise());
}
static mesh_module *rowwise_of_whole(const struct how *h)
{
    mesh_style s = mesh_rowwise();
    s.input = mesh_replicate();
    return styled(h, new_linear(h, WIDTH, WIDTH), s);
}
static mesh_module *norm(const struct how *h)
{
    return new_norm(h);
}
/* Weights laid out by the program, no styles: x w' is reduced by the program, and what comes back pending once, for x,
 * w and the bias together. */
static mesh_dtensor *by_hand(void *self, mesh_dtensor *x)
{
    mesh_dtensor *y = run(self, 0, x);
    y = mesh_redistribute(y, MESH_PLACEMENTS(mesh_replicate()));
    return run(self, 1, y);
}
static const mesh_module_class by_hand_class = { "by hand", by_hand, free };

static mesh_placements rows_or_columns(const char *parameter, mesh_shape shape, void *user)
{
    (void)user;
    bool is_first = parameter[0] == 'a';
    return is_first && shape.ndim == 1 ? MESH_PLACEMENTS(mesh_replicate()) : MESH_PLACEMENTS(mesh_shard(is_first));
}
static mesh_module *laid_out_by_hand(const struct how *h)
{
    mesh_module *m = MAKE(&by_hand_class, { "a", new_linear(h, WIDTH, WIDTH) }, { "b", new_linear(h, WIDTH, WIDTH) });
    return mesh_distribute_module(m, rows_or_columns, NULL, NULL, NULL) < 0 ? NULL : m;
}

static mesh_module *table_by_columns(const struct how *h)
{
    return MAKE(&lookup_class, { "table", styled(h, mesh_nn_embedding(h->mesh, CLASSES, WIDTH), mesh_colwise()) });
}
static mesh_module *table_by_rows(const struct how *h)
{
    return MAKE(&lookup_class, { "table", styled(h, mesh_nn_embedding(h->mesh, CLASSES, WIDTH), writer(h)) });
}
static mesh_module *parallel_loss(const struct how *h)
{
    mesh_module *m = MAKE(&loss_class, { "head", styled(h, new_linear(h, WIDTH, CLASSES), mesh_colwise()) });
    return h->is_sequence ? styled(h, m, shared_input()) : m;
}
static mesh_module *model(const struct how *h)
{
    return mesh_nn_sequential({ "blocks", transformer(h) }, { "norm", new_norm(h) }, { "loss", parallel_loss(h) });
}

/* Collectives about whole activations, and about less (the gradient of a norm's weight, one number of each row). */
struct traffic {
    int all_reduce, all_gather, reduce_scatter, small, other;
};

static const struct test_case {
    const char *name;
    mesh_module *(*network)(const struct how *h);
    bool is_sequence;
    bool ends_split; /* x comes split over its last dim */
    struct traffic forward, backward;
} cases[] = {
    /* one layer */
    { "colwise", colwise, .backward = { .all_reduce = 1 } },
    { "colwise, output whole", colwise_whole, .forward = { .all_gather = 1 }, .backward = { .all_reduce = 1 } },
    { "rowwise", rowwise, .ends_split = true, .forward = { .all_reduce = 1 } },
    { "rowwise, input whole", rowwise_of_whole, .forward = { .all_reduce = 1 }, .backward = { .all_gather = 1 } },
    { "sequence", norm, .is_sequence = true, .backward = { .small = 2 } },
    { "embedding by columns", table_by_columns, .ends_split = true },
    { "embedding by rows", table_by_rows, .forward = { .all_reduce = 1 } },
    { "embedding by rows, sequence", table_by_rows, true, .forward = { .reduce_scatter = 1 },
      .backward = { .all_gather = 1 } },
    { "classes by columns", parallel_loss, .forward = { .small = 3 }, .backward = { .all_reduce = 1 } },
    { "transformer with loss", model, .forward = { 4, .small = 3 }, .backward = { 5 } },
    { "rowwise, then colwise, by hand", laid_out_by_hand, .ends_split = true, .forward = { 1 }, .backward = { 1 } },
    /* a pair is one all_reduce each way */
    { "mlp", new_mlp, .forward = { 1 }, .backward = { 1 } },
    { "x + mlp(x)", mlp_bare, .forward = { 1 }, .backward = { 1 } },
    { "x + mlp(x) twice", two_mlps_bare, .forward = { 2 }, .backward = { 2 } },
    { "x + mlp(norm(x))", mlp_block, .forward = { 1 }, .backward = { 1 } },
    { "x + heads(x)", heads_bare, .forward = { 1 }, .backward = { 1 } },
    { "x + heads(norm(x))", heads_block, .forward = { 1 }, .backward = { 1 } },
    { "x + gated(norm(x))", gated_block, .forward = { 1 }, .backward = { 1 } },
    { "transformer", transformer, .forward = { 4 }, .backward = { 4 } },
    /* a pair on a split sequence is one all_gather and one reduce_scatter each way; a norm's two parameters, of which
     * every rank has a part of the gradient, add two small all_reduces */
    { "mlp, sequence", new_mlp, true, .forward = { 0, 1, 1 }, .backward = { 0, 1, 1 } },
    { "x + mlp(x), sequence", mlp_bare, true, .forward = { 0, 1, 1 }, .backward = { 0, 1, 1 } },
    { "x + mlp(norm(x)), sequence", mlp_block, true, .forward = { 0, 1, 1 }, .backward = { 0, 1, 1, 2 } },
    { "x + heads(norm(x)), sequence", heads_block, true, .forward = { 0, 1, 1 }, .backward = { 0, 1, 1, 2 } },
    { "x + gated(norm(x)), sequence", gated_block, true, .forward = { 0, 1, 1 }, .backward = { 0, 1, 1, 2 } },
    { "transformer, sequence", transformer, true, .forward = { 0, 4, 4 }, .backward = { 0, 4, 4, 8 } },
    { "transformer with loss, sequence", model, true, .forward = { 0, 5, 4, 3 }, .backward = { 0, 4, 5, 10 } },
};

static struct traffic count(const mesh_comm_log *log, bool shows)
{
    struct traffic t = { 0 };
    const mesh_comm_record *c;
    for (size_t i = 0; (c = mesh_comm_log_at(log, i)) != NULL; i++) {
        uint64_t n = (uint64_t)c->n_ranks, share = (n - 1) * ROWS * TOKENS * WIDTH * sizeof(float) / n;
        bool is_reduce = c->kind == MESH_COMM_ALL_REDUCE;
        int *of_kind = is_reduce                             ? &t.all_reduce
                       : c->kind == MESH_COMM_ALL_GATHER     ? &t.all_gather
                       : c->kind == MESH_COMM_REDUCE_SCATTER ? &t.reduce_scatter
                                                             : &t.other;
        bool is_small = is_reduce && c->bytes <= 2 * ROWS * TOKENS * sizeof(float);
        ++*(is_small ? &t.small : (c->bytes == (is_reduce ? 2 * share : share) ? of_kind : &t.other));
        if (shows) {
            fprintf(stderr, "  kind %d, %llu bytes, %s: %s %s\n", (int)c->kind, (unsigned long long)c->bytes, c->where,
                    c->op, c->plan);
        }
    }
    return t;
}

static bool is_same(struct traffic a, struct traffic b)
{
    return a.all_reduce == b.all_reduce && a.all_gather == b.all_gather && a.reduce_scatter == b.reduce_scatter &&
           a.small == b.small && a.other == b.other;
}

static int check(const char *name, const char *way, const mesh_comm_log *log, struct traffic want)
{
    if (is_same(count(log, false), want)) {
        return 0;
    }
    struct traffic got = count(log, mesh_rank() == 0);
    return ranks_complain(
        __FILE__, __LINE__,
        "%s, %s: %d all_reduce, %d all_gather, %d reduce_scatter, %d small, %d other; wanted %d %d %d %d 0", name, way,
        got.all_reduce, got.all_gather, got.reduce_scatter, got.small, got.other, want.all_reduce, want.all_gather,
        want.reduce_scatter, want.small);
}

struct job {
    const struct test_case *of;
    double squares[MOST_PARAMETERS]; /* of the gradients of x and of the parameters */
    bool compares;
};

static int compare(struct job *job, mesh_module *net, mesh_dtensor *x)
{
    mesh_dtensor *p = x;
    for (size_t i = 0; p != NULL; p = mesh_module_parameter(net, i++, NULL)) {
        REQUIRE(i < MOST_PARAMETERS && mesh_grad(p) != NULL);
        double squares = mesh_item(mesh_sum(mesh_square(mesh_grad(p))));
        REQUIRE(squares > 0);
        if (job->compares) {
            REQUIRE_NEAR(squares, job->squares[i], 1e-4); /* sums of f32 in another order */
        } else {
            job->squares[i] = squares;
        }
    }
    return 0;
}

static int step(void *arg)
{
    struct job *job = arg;
    const struct test_case *c = job->of;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(mesh_world_size()), MESH_NAMES("tp"));
    mesh_module *net = c->network(&(struct how){ m, c->is_sequence });
    REQUIRE(net != NULL);
    mesh_placement p = c->ends_split ? mesh_shard(2) : c->is_sequence ? mesh_shard(1) : mesh_replicate();
    mesh_dtensor *leaf = mesh_randn(SHAPE(ROWS, TOKENS, WIDTH), m, MESH_PLACEMENTS(p), .seed = 3);
    mesh_requires_grad(leaf, true);
    mesh_dtensor *x = mesh_mul_scalar(leaf, 0.5); /* something that was computed, not a leaf */
    mesh_comm_log *log = mesh_comm_log_begin();
    mesh_dtensor *y = mesh_forward(net, x);
    REQUIRE(y != NULL && mesh_comm_log_end(log) == 0);
    REQUIRE_OK(job->compares ? check(c->name, "forward", log, c->forward) : 0);
    mesh_dtensor *loss = mesh_sum(mesh_square(y));
    log = mesh_comm_log_begin();
    REQUIRE(mesh_backward(loss) == 0 && mesh_comm_log_end(log) == 0);
    REQUIRE_OK(job->compares ? check(c->name, "backward", log, c->backward) : 0);
    return compare(job, net, leaf);
}

START_TEST(each_style_sends_what_it_promises_there_and_back)
{
    struct job job = { .of = &cases[_i] };
    ranks_run(1, step, &job);
    job.compares = true;
    ranks_run(2, step, &job);
    ranks_run(4, step, &job);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("traffic");
    TCase *t = tcase_create("traffic");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, each_style_sends_what_it_promises_there_and_back, 0, (int)(sizeof cases / sizeof cases[0]));
    suite_add_tcase(s, t);
    return s;
}
