/* tests/truth/operator_comm.c - the section of OPERATORS.md on what operators communicate, measured.
 *
 * Each call is made on two simulated ranks; what rank 0's counters say afterwards is the text.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/mesh.h>
#include <stdlib.h>

#include "base/util.h"
#include "truth/operator_table.h"
#include "truth/parts.h"

#define N_RANKS 2

struct measured {
    const char *name, *text; /* the call */
    mesh_dtensor *(*call)(mesh_dtensor *x);
    int dim; /* that x is split along; -1: x is Partial(sum) */
    uint64_t count[MESH_COMM_BARRIER + 1], bytes[MESH_COMM_BARRIER + 1];
};

static mesh_dtensor *top_2(mesh_dtensor *x)
{
    mesh_dtensor *top = NULL;
    mesh_topk(x, 2, 0, &top, NULL);
    return top;
}

static mesh_dtensor *sorted(mesh_dtensor *x)
{
    mesh_dtensor *y = NULL;
    mesh_sort(x, 0, false, &y, NULL);
    return y;
}

static mesh_dtensor *classes(mesh_dtensor *x)
{
    mesh_device_mesh *m = mesh_device_mesh_of(x);
    return mesh_zeros(MESH_SHAPE(8), m, MESH_PLACEMENTS(mesh_replicate()), .dtype = MESH_I64);
}

static mesh_dtensor *pair(mesh_dtensor *x)
{
    return mesh_cat((mesh_dtensor *const[]){ x, x }, 2, 0);
}

/* One image of 8 rows, split by rows; a filter of three of them. */
static mesh_dtensor *filtered(mesh_dtensor *x)
{
    mesh_dtensor *image = mesh_unsqueeze(mesh_unsqueeze(x, 0), 0);
    mesh_dtensor *weight =
        mesh_ones(MESH_SHAPE(1, 1, 3, 1), mesh_device_mesh_of(x), MESH_PLACEMENTS(mesh_replicate()), .dtype = MESH_F64);
    return mesh_conv2d(image, weight, NULL, .padding = { 1, 0 });
}

/* Two rows that every rank has look at x, of which each rank has some places. */
static mesh_dtensor *two_rows(mesh_dtensor *x)
{
    return mesh_ones(MESH_SHAPE(2, 4), mesh_device_mesh_of(x), MESH_PLACEMENTS(mesh_replicate()), .dtype = MESH_F64);
}

/* clang-format off */
#define CALLS(C)                                                                          \
    C( add,           mesh_add(x, x),                                             0 )    \
    C( gelu,          mesh_gelu(x, false),                                       -1 )    \
    C( matmul,        mesh_matmul(x, mesh_transpose(x, 0, 1)),                    1 )    \
    C( matmul_of_rows, mesh_matmul(x, mesh_transpose(x, 0, 1)),                   0 )    \
    C( sum,           mesh_sum(x),                                                0 )    \
    C( softmax,       mesh_softmax(x, 0),                                         0 )    \
    C( log_softmax,   mesh_log_softmax(x, 0),                                     0 )    \
    C( var,           mesh_var(x, 1, .dims = MESH_SHAPE(0)),                      0 )    \
    C( logsumexp,     mesh_logsumexp(x, .dims = MESH_SHAPE(0)),                   0 )    \
    C( argmax,        mesh_argmax(x, .dims = MESH_SHAPE(0)),                      0 )    \
    C( argmin,        mesh_argmin(x, .dims = MESH_SHAPE(0)),                      0 )    \
    C( norm,          mesh_norm(x, 2),                                            0 )    \
    C( cumsum,        mesh_cumsum(x, 0),                                          0 )    \
    C( topk,          top_2(x),                                                   0 )    \
    C( sort,          sorted(x),                                                  0 )    \
    C( layer_norm,    mesh_layer_norm(x, 1, NULL, NULL, 1e-5),                    1 )    \
    C( rms_norm,      mesh_rms_norm(x, 1, NULL, 1e-5),                            1 )    \
    C( cross_entropy, mesh_cross_entropy(x, classes(x), .reduction = MESH_REDUCTION_SUM), 1 ) \
    C( nll_loss,      mesh_nll_loss(x, classes(x), .reduction = MESH_REDUCTION_SUM), 1 )  \
    C( nll_loss_of_rows, mesh_nll_loss(x, classes(x)),                            0 )    \
    C( nll_loss_of_pending, mesh_nll_loss(x, classes(x), .reduction = MESH_REDUCTION_NONE), -1 ) \
    C( mse_loss,      mesh_mse_loss(x, mesh_square(x), MESH_REDUCTION_MEAN),      0 )    \
    C( softplus,      mesh_softplus(x),                                          -1 )    \
    C( flip,          mesh_flip(x, MESH_SHAPE(0)),                                0 )    \
    C( roll,          mesh_roll(x, 1, 0),                                         0 )    \
    C( narrow,        mesh_narrow(x, 0, 2, 6),                                    0 )    \
    C( select,        mesh_select(x, 0, 3),                                       0 )    \
    C( pad,           mesh_pad(x, MESH_SHAPE(0, 0, 2, 0), 0),                     0 )    \
    C( repeat,        mesh_repeat(x, MESH_SHAPE(2, 1)),                           0 )    \
    C( cat,           pair(x),                                                    0 )    \
    C( conv2d,        filtered(x),                                                0 )    \
    C( attention,     mesh_scaled_dot_product_attention(x, x, x),                 0 )    \
    C( attention_of_few, mesh_scaled_dot_product_attention(two_rows(x), x, x),    0 )    \
    C( reshape,       mesh_reshape(x, MESH_SHAPE(4, 8)),                          1 )    \
    C( embedding,     mesh_embedding(x, classes(x)),                              0 )
/* clang-format on */
#define FUNCTION(name, expression, dim)                                                                                \
    static mesh_dtensor *call_##name(mesh_dtensor *x)                                                                  \
    {                                                                                                                  \
        return expression;                                                                                             \
    }
CALLS(FUNCTION)
#define ENTRY(name, expression, dim) { #name, #expression, call_##name, dim, { 0 }, { 0 } },
static struct measured table[] = { CALLS(ENTRY) };

static int measure(void *arg)
{
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(N_RANKS), NULL);
    (void)arg;
    for (size_t k = 0; m != NULL && k < ARRAY_SIZE(table); k++) {
        struct measured *row = &table[k];
        mesh_placement p = row->dim < 0 ? mesh_partial(MESH_SUM) : mesh_shard(row->dim);
        mesh_scope *scope = mesh_scope_begin();
        mesh_dtensor *x = mesh_ones(MESH_SHAPE(8, 4), m, MESH_PLACEMENTS(mesh_shard(0)), .dtype = MESH_F64);
        x = mesh_redistribute(x, MESH_PLACEMENTS(p));
        mesh_comm_reset();
        row->call(x);
        for (int kind = 1; mesh_rank() == 0 && kind <= MESH_COMM_BARRIER; kind++) {
            row->count[kind] = mesh_comm_count((mesh_comm_kind)kind);
            row->bytes[kind] = mesh_comm_bytes((mesh_comm_kind)kind);
        }
        if (mesh_scope_end(scope) < 0) {
            return (int)mesh_last_error()->status;
        }
    }
    return 0;
}

static void print_counts(FILE *to, const struct measured *row)
{
    static const char *const names[] = { "",           "all_reduce", "reduce_scatter", "all_gather",
                                         "all_to_all", "broadcast",  "scatter",        "gather",
                                         "reduce",     "send",       "recv",           "barrier" };
    const char *before = "";
    for (int kind = 1; kind <= MESH_COMM_BARRIER; kind++) {
        if (row->count[kind] > 0) {
            fprintf(to, "%s%llu %s, %llu bytes", before, (unsigned long long)row->count[kind], names[kind],
                    (unsigned long long)row->bytes[kind]);
            before = "; ";
        }
    }
    fputs(*before ? "" : "nothing", to);
}

void print_communication(FILE *to)
{
    fputs("\n## Communication, measured\n\n"
          "The collectives that one call begins on two ranks with x f64 [8,4], 256 bytes in all, and the bytes that "
          "rank 0\n"
          "sends in them. Where none of an operator's rules fits and it is not listed here, its inputs go to the "
          "cheapest\n"
          "rule by `mesh_redistribute()`.\n\n"
          "| operator | call | x | collectives |\n|---|---|---|---|\n",
          to);
    parts_must(mesh_world_run(N_RANKS, measure, NULL) == 0, mesh_last_error()->message);
    for (size_t k = 0; k < ARRAY_SIZE(table); k++) {
        char layout[24];
        placement_text(table[k].dim < 0 ? mesh_partial(MESH_SUM) : mesh_shard(table[k].dim), layout, sizeof layout);
        fprintf(to, "| `%s` | `%s` | `%s` | ", table[k].name, table[k].text, layout);
        print_counts(to, &table[k]);
        fputs(" |\n", to);
    }
}
