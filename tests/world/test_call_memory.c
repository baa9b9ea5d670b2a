/* tests/world/test_call_memory.c - what public calls hold at once, on inputs in whatever layout, and what they leave.
 *
 * A call leaves its result and nothing else, though it may be put together from many operators.  At its peak it holds
 * the inputs as its rule wants them (those that had to move), its result and what the table states.  Ranks are threads
 * of one process, so the sum over all of them is bounded.  Nothing is recorded here: what is kept for gradients is in
 * test_backward_memory.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include <mesh/mesh.h>
#include <mesh/shorthand.h>

#include "base/alloc.h"
#include "base/util.h"
#include "dtensor/dtensor.h"
#include "harness/check_main.h"
#include "harness/placements.h"
#include "harness/ranks.h"

#define N       512
#define BYTES   ((int64_t)N * N * 4) /* of x, whole: the unit */
#define N_RANKS 2
#define SLACK   (BYTES / 8) /* handles, what is on its way between threads, one number per row */

/* What calls are given, made before. */
struct given {
    mesh_dtensor *x;    /* [N,N] */
    mesh_dtensor *wide; /* the same in f64 */
    mesh_dtensor *row;  /* [N] */
    mesh_dtensor *classes;
    mesh_dtensor *mask;
    mesh_dtensor *image, *filter, *bias;
};
typedef mesh_dtensor *(*call_fn)(const struct given *g);

static mesh_dtensor *sorted(mesh_dtensor *x)
{
    mesh_dtensor *y = NULL;
    mesh_sort(x, 0, false, &y, NULL);
    return y;
}

static mesh_dtensor *top(mesh_dtensor *x)
{
    mesh_dtensor *y = NULL;
    mesh_topk(x, 4, 0, &y, NULL);
    return y;
}

#define REFUSED (-1)

/* With the most that is held beside the result, of x as Shard(0), Shard(1), Partial and Replicate, of both ranks
 * together. */
/* clang-format off */
#define CALLS(C)                                                                                                      \
    C( add,                      0,  0,       0,  0,  mesh_add(x, x) )                                                \
    C( mul,                      0,  0,       2,  0,  mesh_mul(x, x) )                                                \
    C( add_promoted,             2,  2,       4,  4,  mesh_add(x, g->wide) )                                          \
    C( gelu,                     0,  0,       1,  0,  mesh_gelu(x, false) )                                           \
    C( relu,                     0,  0,       1,  0,  mesh_relu(x) )                                                  \
    C( matmul,                   1,  2,       3,  0,  mesh_matmul(x, x) )                                             \
    C( addmm,                    4,  5,       3,  2,  mesh_addmm(x, x, x) )                                           \
    C( linear,                   2,  1,       3,  0,  mesh_linear(x, x, NULL) )                                       \
    C( einsum,                   6,  6,       9,  7,  mesh_einsum("ab,bc->ca", x, x) )                                \
    C( einsum_in_order,          1,  2,       3,  0,  mesh_einsum("ab,bc->ac", x, x) )                                \
    C( conv2d,                   8,  8,       8,  8,  mesh_conv2d(g->image, g->filter, g->bias) )                     \
    C( attention,                5,  6,       6,  1,  mesh_scaled_dot_product_attention(x, x, x) )                    \
    C( transpose,                0,  0,       0,  0,  mesh_transpose(x, 0, 1) )                                       \
    C( reshape,                  0,  0,       0,  0,  mesh_reshape(x, Shape(-1)) )                                    \
    C( expand,                   0,  0,       0,  0,  mesh_expand(x, Shape(2, N, N)) )                                \
    C( sum,                      0,  0,       0,  0,  mesh_sum(x) )                                                   \
    C( mean_0,                   0,  0,       0,  0,  mesh_mean(x, .dims = Dims(0)) )                                 \
    C( amax_0,                   0,  0,       1,  0,  mesh_amax(x, .dims = Dims(0)) )                                 \
    C( prod_1,                   0,  0,       1,  0,  mesh_prod(x, .dims = Dims(1)) )                                 \
    C( var_0,                    0,  0,       3,  0,  mesh_var(x, 1, .dims = Dims(0)) )                               \
    C( std_1,                    0,  0,       1,  0,  mesh_std(x, 1, .dims = Dims(1)) )                               \
    C( logsumexp_0,              0,  0,       3,  0,  mesh_logsumexp(x, .dims = Dims(0)) )                            \
    C( argmax_0,                 0,  0,       3,  0,  mesh_argmax(x, .dims = Dims(0)) )                               \
    C( norm,                     0,  0,       2,  0,  mesh_norm(x, 2) )                                               \
    C( norm_max,                 1,  1,       3,  2,  mesh_norm(x, INFINITY) )                                        \
    C( softmax_0,                0,  0,       2,  0,  mesh_softmax(x, 0) )                                            \
    C( log_softmax_1,            0,  0,       1,  0,  mesh_log_softmax(x, 1) )                                        \
    C( cumsum_0,                 0,  0,       1,  0,  mesh_cumsum(x, 0) )                                             \
    C( sort_0,                   4,  3,       4,  5,  sorted(x) )                                                     \
    C( topk_0,                   1,  1,       3,  1,  top(x) )                                                        \
    C( layer_norm,               0,  3,       1,  0,  mesh_layer_norm(x, 1, g->row, g->row, 1e-5) )                   \
    C( rms_norm,                 0,  1,       1,  0,  mesh_rms_norm(x, 1, g->row, 1e-5) )                             \
    C( mse_loss,                 1,  1,       6,  2,  mesh_mse_loss(x, x, MESH_REDUCTION_MEAN) )                      \
    C( cross_entropy,            0,  1,       1,  0,  mesh_cross_entropy(x, g->classes) )                             \
    C( nll_loss,                 0,  0,       1,  0,  mesh_nll_loss(x, g->classes) )                                  \
    C( cross_entropy_weighted,   6,  4,       5,  7,  mesh_cross_entropy(x, g->classes, .weight = g->row) )           \
    C( flip,                     2,  2,       0,  0,  mesh_flip(x, Dims(0, 1)) )                                      \
    C( roll,                     3,  0,       0,  0,  mesh_roll(x, 3, 0) )                                            \
    C( narrow,                   1,  0,       0,  0,  mesh_narrow(x, 0, 5, 100) )                                     \
    C( pad,                      3,  2,       3,  3,  mesh_pad(x, Shape(1, 2, 3, 4), 0) )                             \
    C( cat,                     18,  6,      12, 12,  mesh_cat((mesh_dtensor *const[]){ x, x, x, x, x, x }, 6, 0) )   \
    C( stack,                    2,  2,       4,  4,  mesh_stack((mesh_dtensor *const[]){ x, x }, 2, 0) )             \
    C( repeat,                   5,  0,       0,  0,  mesh_repeat(x, Shape(2, 1)) )                                   \
    C( tril,                     0,  0,       0,  0,  mesh_tril(x, 0) )                                               \
    C( where,                    0,  0,       1,  0,  mesh_where(g->mask, x, x) )                                     \
    C( dropout,                  1,  1, REFUSED,  2,  mesh_dropout(x, 0.5) )                                          \
    C( embedding,                0,  0,       0,  0,  mesh_embedding(x, g->classes) )                                 \
    C( add_,                     1,  1,       2,  2,  mesh_add_(x, x) )                                               \
    C( relu_,                    1,  1, REFUSED,  2,  mesh_relu_(x) )                                                 \
    C( mul_scalar_,              1,  1,       2,  2,  mesh_mul_scalar_(x, 1) )                                        \
    C( copy_,                    0,  0,       0,  0,  mesh_copy_(x, x) )                                              \
    C( fill_,                    1,  1,       2,  2,  mesh_fill_(x, 0.5) )                                            \
    C( equal,                    1,  1,       3,  1,  mesh_equal(x, x) ? x : x )                                      \
    C( cast,                     0,  0,       0,  0,  mesh_cast(x, MESH_F64) )
/* clang-format on */

#define FUNCTION(name, rows, columns, pending, whole, expression)                                                      \
    static mesh_dtensor *call_##name(const struct given *g)                                                            \
    {                                                                                                                  \
        mesh_dtensor *x = g->x;                                                                                        \
        (void)x;                                                                                                       \
        return expression;                                                                                             \
    }
CALLS(FUNCTION)
#define ENTRY(name, rows, columns, pending, whole, expression)                                                         \
    { #name, call_##name, { rows, columns, pending, whole } },
static const struct {
    const char *name;
    call_fn call;
    int most[4]; /* units, by layout */
} calls[] = { CALLS(ENTRY) };

static const mesh_placement layouts[] = { S_(0), S_(1), P_, R_ };

static void make(struct given *g, mesh_placement p)
{
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", Shape(N_RANKS), NULL);
    mesh_placements whole = Placements(Replicate()),
                    rows = Placements(p.kind == MESH_IS_SHARD ? Shard(0) : Replicate());
    g->x = mesh_rand(Shape(N, N), m, Placements(p.kind == MESH_IS_PARTIAL ? Replicate() : p), .seed = 5);
    g->x = mesh_redistribute(g->x, Placements(p));
    g->wide = mesh_cast(g->x, MESH_F64);
    g->mask = mesh_gt(g->x, g->x);
    g->row = mesh_ones(Shape(N), m, whole);
    g->classes = mesh_zeros(Shape(N), m, p.kind == MESH_IS_SHARD && p.dim == 0 ? rows : whole, .dtype = MESH_I64);
    g->image = mesh_ones(Shape(2, 2, N / 4, N), m, rows);
    g->filter = mesh_ones(Shape(2, 2, 3, 3), m, whole);
    g->bias = mesh_ones(Shape(2), m, whole);
}

static size_t result_bytes[N_RANKS];

struct trial {
    int call, layout;
};

static int bound(const struct trial *t, const char *what, int64_t bytes, int units)
{
    char text[24];
    return bytes <= units * BYTES + SLACK
               ? 0
               : ranks_complain(__FILE__, __LINE__,
                                "%s of %s: %lld hundredths of x %s beside the result, %d hundred are stated",
                                calls[t->call].name, placement_text(layouts[t->layout], text, sizeof text),
                                (long long)(bytes * 100 / BYTES), what, units);
}

/* Between barriers nothing but the call runs, on either rank. */
static int measure_once(const struct trial *t, const struct given *g, bool is_first)
{
    mesh_scope *s = mesh_scope_begin();
    REQUIRE(mesh_barrier(mesh_world()) == 0);
    size_t before = mem_in_use();
    mem_peak_reset();
    REQUIRE(mesh_barrier(mesh_world()) == 0);
    mesh_dtensor *y = calls[t->call].call(g);
    REQUIRE(y != NULL);
    result_bytes[mesh_rank()] = y == g->x ? 0 : tensor_bytes(y->local);
    REQUIRE(mesh_barrier(mesh_world()) == 0);
    int64_t left = (int64_t)mem_in_use() - (int64_t)before, most = (int64_t)mem_peak() - (int64_t)before;
    for (int r = 0; r < N_RANKS; r++) {
        left -= (int64_t)result_bytes[r];
        most -= (int64_t)result_bytes[r];
    }
    REQUIRE(mesh_barrier(mesh_world()) == 0);
    if (!is_first) { /* which makes plans, links and pools, which stay */
        REQUIRE_OK(bound(t, "left", left, 0));
        REQUIRE_OK(bound(t, "held", most, calls[t->call].most[t->layout]));
    }
    return mesh_scope_end(s);
}

static int measure(void *arg)
{
    const struct trial *t = arg;
    struct given g;
    mesh_grad_enable(false);
    make(&g, layouts[t->layout]);
    if (calls[t->call].most[t->layout] == REFUSED) {
        mesh_scope *s = mesh_scope_begin();
        REQUIRE(calls[t->call].call(&g) == NULL);
        REQUIRE(mesh_scope_end(s) < 0);
        return 0;
    }
    for (int round = 0; round < 4; round++) {
        REQUIRE_OK(measure_once(t, &g, round == 0));
    }
    return 0;
}

START_TEST(a_call_holds_what_is_stated_and_leaves_its_result)
{
    struct trial t = { _i / (int)ARRAY_SIZE(layouts), _i % (int)ARRAY_SIZE(layouts) };
    ranks_run(N_RANKS, measure, &t);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("memory of calls");
    TCase *t = tcase_create("memory of calls");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_call_holds_what_is_stated_and_leaves_its_result, 0,
                        (int)(ARRAY_SIZE(calls) * ARRAY_SIZE(layouts)));
    suite_add_tcase(s, t);
    return s;
}
