/* tests/truth/operator_table.c - prints OPERATORS.md: every row of the operator table with its rules, in Markdown.
 *
 *     operator_table                 prints
 *     operator_table OPERATORS.md    compares; ends with 1, having named the first line that differs
 *
 * Rules are derived on one sample of each row (samples.c).  Rules that differ only in the dim are one, S(d), where they
 * exist for every dim; pending reductions that differ only in what is reduced with stand together.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/grads.h"
#include "base/dtype.h"
#include "base/util.h"
#include "comm/collective.h"
#include "tensor/scratch.h"
#include "tensor/shape.h"
#include "truth/operator_table.h"

#define PARTS      2 /* ranks that the rules are derived for */
#define LINE_BYTES 1024

#define LETTER_DIM 1 /* S(d) for whatever dim */
#define LETTER_OP  2 /* P for whatever reduction */

enum audience {
    BY_GRADIENT, /* a helper when the row says NO_GRADIENT */
    PUBLIC,
    HELPER
};

struct note { /* what the operator table does not say */
    enum op_id op;
    enum audience audience;
    const char *call;     /* NULL: mesh_ with the row's name */
    const char *gradient; /* NULL: as the row says */
    const char *kept;     /* NULL: what the row's gradient needs */
};

/* clang-format off */
static const struct note notes[] = {
    { OP_sort, PUBLIC,       .gradient = "of the values", .kept = "the indices" },
    { OP_topk, PUBLIC,       .gradient = "of the values", .kept = "the indices" },
    { OP_gather,             .call = "mesh_take_along_dim()" },
    { OP_cross_entropy_rows, .call = "mesh_cross_entropy(), each row" },
    { OP_cross_entropy_sum,  .call = "mesh_cross_entropy(), mean or sum" },
    { OP_nll_loss_rows,      .call = "mesh_nll_loss(), each row" },
    { OP_nll_loss_sum,       .call = "mesh_nll_loss(), mean or sum" },
    { OP_squared_difference, .call = "in mesh_mse_loss()" },
    { OP_attention, PUBLIC,  .call = "mesh_scaled_dot_product_attention()", .gradient = "yes",
      .kept = "inputs 1 2 3, result, one number per row" },
    { OP_index_of, HELPER },
};
/* clang-format on */

static const struct note *note_of(enum op_id id)
{
    static const struct note none = { .audience = BY_GRADIENT };
    for (size_t i = 0; i < ARRAY_SIZE(notes); i++) {
        if (notes[i].op == id) {
            return &notes[i];
        }
    }
    return &none;
}

static bool is_helper(enum op_id id)
{
    enum audience audience = note_of(id)->audience;
    bool has_none = gradient_of(id)->run == NULL && gradient_of(id) != &CONSTANT;
    return audience == BY_GRADIENT ? has_none : audience == HELPER;
}

/* --- the sample --------------------------------------------------------------------------------------------------- */

void entry_init(struct entry *e, const struct sample *s, int n_ranks)
{
    struct op_shapes *x = &e->shapes;
    e->op = &op_table[s->op];
    e->note = note_of(s->op);
    e->sample = s;
    *x = (struct op_shapes){
        .name = e->op->name, .n_in = e->op->n_in, .n_out = e->op->n_out, .attr = s->attr, .mesh_ndim = 1
    };
    for (int i = 0; i < s->n_in; i++) {
        x->has[i] = true;
        x->in[i] = s->in[i];
        x->in_dtype[i] = s->dtype[i] ? s->dtype[i] : MESH_F64;
    }
    if (e->op->shape(x) < 0) {
        fprintf(stderr, "operator_table: %s: %s\n", x->name, mesh_last_error()->message);
        exit(1);
    }
    rules_derive(e->op, x, n_ranks, &e->rules);
}

static bool has_kind(const struct entry *e, const struct rule *r, mesh_placement_kind kind)
{
    for (int i = 0; i < e->sample->n_in; i++) {
        if (r->in[i].kind == kind) {
            return true;
        }
    }
    return false;
}

static bool is_splittable(const struct entry *e)
{
    for (int k = 0; k < e->rules.n; k++) {
        if (has_kind(e, &e->rules.at[k], MESH_IS_SHARD)) {
            return true;
        }
    }
    return false;
}

/* The first sample with the most inputs that has a rule to show, and how few inputs some sample has. */
static void entry_find(enum op_id id, struct entry *ret_entry, int *ret_fewest)
{
    int best = -1;
    struct entry *e = malloc(sizeof *e);
    *ret_fewest = OP_MAX_INPUTS;
    for (int k = 0; e != NULL && k < n_samples; k++) {
        if (samples[k].op != id) {
            continue;
        }
        entry_init(e, &samples[k], PARTS);
        int worth = 2 * samples[k].n_in + is_splittable(e);
        if (worth > best) {
            best = worth;
            *ret_entry = *e;
        }
        *ret_fewest = MIN(*ret_fewest, samples[k].n_in);
    }
    free(e);
    if (best < 0) {
        fprintf(stderr, "operator_table: no sample of %s\n", op_table[id].name);
        exit(1);
    }
}

static void print_tensor(FILE *to, mesh_shape shape, mesh_dtype dtype)
{
    char text[SHAPE_TEXT_BYTES];
    fprintf(to, "%s%s%s", dtype == MESH_F64 ? "" : dtype_name(dtype), dtype == MESH_F64 ? "" : " ",
            shape_text(shape, text, sizeof text));
}

static void print_arguments(FILE *to, const struct sample *s)
{
    if (sample_has_dim(s)) {
        fprintf(to, ", dim %d", s->attr.dim[0] < 0 ? s->attr.dim[0] + s->in[0].ndim : s->attr.dim[0]);
    }
    const char *before = ", dims ";
    for (int d = 0; d < s->in[0].ndim; d++) {
        if ((s->attr.dims >> d & 1U) != 0) {
            fprintf(to, "%s%d", before, d);
            before = " ";
        }
    }
}

void entry_print_sample(FILE *to, const struct entry *e)
{
    for (int i = 0; i < e->sample->n_in; i++) {
        fputs(i > 0 ? ", " : "", to);
        print_tensor(to, e->shapes.in[i], e->shapes.in_dtype[i]);
    }
    for (int o = 0; o < e->op->n_out; o++) {
        fputs(o > 0 ? ", " : " -> ", to);
        print_tensor(to, e->shapes.out[o], e->shapes.out_dtype[o]);
    }
    print_arguments(to, e->sample);
}

/* --- the rules ---------------------------------------------------------------------------------------------------- */

static int placement_letters(mesh_placement p, int letters, char *buf, size_t cap)
{
    switch (p.kind) {
    case MESH_IS_SHARD:
        return letters & LETTER_DIM ? snprintf(buf, cap, "S(d)") : snprintf(buf, cap, "S(%d)", p.dim);
    case MESH_IS_PARTIAL:
        return letters & LETTER_OP ? snprintf(buf, cap, "P") : snprintf(buf, cap, "P(%s)", reduce_op_name(p.op));
    default:
        return snprintf(buf, cap, "R");
    }
}

static const char *rule_letters(const struct entry *e, const struct rule *r, int letters, char *buf)
{
    int at = 0, n_in = e->sample->n_in;
    for (int i = 0; i < n_in + e->op->n_out; i++) {
        const char *before = i == n_in ? " -> " : i > 0 ? "," : "";
        at += snprintf(buf + at, RULE_TEXT_BYTES - (size_t)at, "%s", before);
        at +=
            placement_letters(i < n_in ? r->in[i] : r->out[i - n_in], letters, buf + at, RULE_TEXT_BYTES - (size_t)at);
    }
    return buf;
}

const char *entry_rule_text(const struct entry *e, const struct rule *r, char *buf)
{
    return rule_letters(e, r, 0, buf);
}

/* All operands that are split, on the same dim: how many dims they all have; else 0. */
static int common_ndim(const struct entry *e, const struct rule *r)
{
    int n_in = e->sample->n_in, ndim = -1, dim = -1;
    for (int i = 0; i < n_in + e->op->n_out; i++) {
        mesh_placement p = i < n_in ? r->in[i] : r->out[i - n_in];
        int n = i < n_in ? e->shapes.in[i].ndim : e->shapes.out[i - n_in].ndim;
        if (p.kind != MESH_IS_SHARD) {
            continue;
        }
        if ((ndim >= 0 && n != ndim) || (dim >= 0 && p.dim != dim)) {
            return 0;
        }
        ndim = n;
        dim = p.dim;
    }
    return MAX(ndim, 0);
}

/* All pending operands with the same reduction. */
static bool has_common_op(const struct entry *e, const struct rule *r)
{
    int n_in = e->sample->n_in, op = -1;
    for (int i = 0; i < n_in + e->op->n_out; i++) {
        mesh_placement p = i < n_in ? r->in[i] : r->out[i - n_in];
        if (p.kind == MESH_IS_PARTIAL && op >= 0 && op != (int)p.op) {
            return false;
        }
        op = p.kind == MESH_IS_PARTIAL ? (int)p.op : op;
    }
    return true;
}

/* Whether rules a and b are the same but for the dim (or for the reduction). */
static bool is_alike(const struct entry *e, const struct rule *a, const struct rule *b, int letters)
{
    char one[RULE_TEXT_BYTES], two[RULE_TEXT_BYTES];
    bool may = letters == LETTER_DIM ? common_ndim(e, a) > 0 && common_ndim(e, b) > 0
                                     : has_common_op(e, a) && has_common_op(e, b);
    return may && strcmp(rule_letters(e, a, letters, one), rule_letters(e, b, letters, two)) == 0;
}

/* How many rules are like rule k, and whether none before it is. */
static int count_alike(const struct entry *e, int k, int letters, bool *ret_is_first)
{
    int n = 0;
    *ret_is_first = true;
    for (int j = 0; j < e->rules.n; j++) {
        if (is_alike(e, &e->rules.at[j], &e->rules.at[k], letters)) {
            *ret_is_first = *ret_is_first && j >= k;
            n++;
        }
    }
    return n;
}

static void print_splits(FILE *to, const struct entry *e)
{
    char text[RULE_TEXT_BYTES];
    const char *before = "";
    for (int k = 0; k < e->rules.n; k++) {
        const struct rule *r = &e->rules.at[k];
        if (!has_kind(e, r, MESH_IS_SHARD) || has_kind(e, r, MESH_IS_PARTIAL)) {
            continue;
        }
        bool is_first;
        int ndim = common_ndim(e, r);
        bool is_folded = ndim > 1 && count_alike(e, k, LETTER_DIM, &is_first) == ndim;
        if (!is_folded || is_first) {
            fprintf(to, "%s`%s`", before, rule_letters(e, r, is_folded ? LETTER_DIM : 0, text));
            before = ", ";
        }
    }
    fputs(*before ? "" : "none", to);
}

static mesh_reduce_op pending_op(const struct entry *e, const struct rule *r)
{
    for (int i = 0; i < e->sample->n_in; i++) {
        if (r->in[i].kind == MESH_IS_PARTIAL) {
            return r->in[i].op;
        }
    }
    return MESH_SUM;
}

/* P -> P of sum, avg */
static void print_folded(FILE *to, const struct entry *e, int k)
{
    char text[RULE_TEXT_BYTES];
    const char *before = " of ";
    fprintf(to, "`%s`", rule_letters(e, &e->rules.at[k], LETTER_OP, text));
    for (int j = k; j < e->rules.n; j++) {
        if (is_alike(e, &e->rules.at[j], &e->rules.at[k], LETTER_OP)) {
            fprintf(to, "%s%s", before, reduce_op_name(pending_op(e, &e->rules.at[j])));
            before = " ";
        }
    }
}

static void print_pending(FILE *to, const struct entry *e)
{
    char text[RULE_TEXT_BYTES];
    const char *before = "";
    for (int k = 0; k < e->rules.n; k++) {
        const struct rule *r = &e->rules.at[k];
        if (!has_kind(e, r, MESH_IS_PARTIAL)) {
            continue;
        }
        bool is_first = true;
        bool is_folded = count_alike(e, k, LETTER_OP, &is_first) > 1;
        if (is_folded && !is_first) {
            continue;
        }
        fputs(before, to);
        before = ", ";
        if (is_folded) {
            print_folded(to, e, k);
        } else {
            fprintf(to, "`%s`", rule_letters(e, r, 0, text));
        }
    }
    fputs(*before ? "" : "none", to);
}

/* --- the document ------------------------------------------------------------------------------------------------- */

static const char *gradient_text(const struct entry *e, enum op_id id)
{
    if (e->note->gradient != NULL) {
        return e->note->gradient;
    }
    return gradient_of(id) == &CONSTANT ? "constant" : gradient_of(id)->run != NULL ? "yes" : "no";
}

/* What the record holds on to, where every input requires a gradient. */
static void print_kept(FILE *to, const struct entry *e, enum op_id id)
{
    static const unsigned need[] = { NEEDS_IN0, NEEDS_IN1, NEEDS_IN2, NEEDS_IN3 };
    const struct gradient *g = gradient_of(id);
    unsigned needs = 0;
    int n = 0;
    if (e->note->kept != NULL || g->run == NULL) {
        fputs(e->note->kept != NULL ? e->note->kept : "-", to);
        return;
    }
    for (int i = 0; i < e->op->n_in; i++) {
        needs |= g->needs[i];
    }
    for (size_t i = 0; i < ARRAY_SIZE(need); i++) {
        if ((needs & need[i]) != 0) {
            fprintf(to, n++ == 0 ? "input %zu" : " %zu", i + 1);
        }
    }
    bool has_result = (needs & NEEDS_OUT) != 0;
    fputs(has_result ? n > 0 ? ", result" : "result" : n > 0 ? "" : "nothing", to);
}

static void print_row(FILE *to, enum op_id id, struct entry *e)
{
    int fewest;
    entry_find(id, e, &fewest);
    fprintf(to, "| `%s`", e->op->name);
    if (e->note->call != NULL) {
        fprintf(to, " (%s)", e->note->call);
    }
    fputs(" | ", to);
    if (fewest < e->op->n_in) {
        fprintf(to, "%d to ", fewest);
    }
    fprintf(to, "%d | ", e->op->n_in);
    entry_print_sample(to, e);
    fputs(" | ", to);
    print_splits(to, e);
    fputs(" | ", to);
    print_pending(to, e);
    if (!is_helper(id)) {
        fprintf(to, " | %s | ", gradient_text(e, id));
        print_kept(to, e, id);
    }
    fprintf(to, " | %s |\n", kernel_scratch_words(e->op->kernel));
}

static void print_rows(FILE *to, bool of_helpers)
{
    struct entry *e = malloc(sizeof *e);
    for (int id = 0; e != NULL && id < N_OPS; id++) {
        if (is_helper((enum op_id)id) == of_helpers) {
            print_row(to, (enum op_id)id, e);
        }
    }
    free(e);
}

static const char introduction[] =
    "# Operators\n\n"
    "Made by `./dev docs` from [`client/dtensor/ops.def`](client/dtensor/ops.def) and the rules that the library\n"
    "itself applies; a test compares. Do not edit.\n\n"
    "A rule says how inputs may lie on one mesh dim for every rank to compute its part alone, and how the result\n"
    "then lies: `S(0),R -> S(0)`. `S(0)` is Shard of dim 0, `S(d)` of any dim, `R` Replicate, `P(sum)` Partial, `P`\n"
    "Partial of whichever reduction is named after it. Everything Replicate is a rule of every operator and is left\n"
    "out. On a mesh of several dims each dim takes a rule of its own. Strided shards go by the rules of `S(d)` where "
    "an\n"
    "operator does the same to every place (pointwise, products, reductions, scans and norms along other dims, "
    "transposes);\n"
    "elsewhere they are made plain first.\n\n"
    "- **tried on**: the shapes and arguments for which the rules were derived; f64 unless it says otherwise. A dim\n"
    "  of extent 1 that is broadcast is never split. Of integers other reductions may be pending than of floats: no\n"
    "  avg, but the bitwise ones.\n"
    "- **sharded**, **pending**: the rules, those with a Partial input apart.\n"
    "- **gradient**: *constant* where the result moves in jumps, so that nothing flows back.\n"
    "- **kept**: what lives on, as it is, until the backward pass has been there, when all inputs require a gradient.\n"
    "- **scratch**: what the kernel allocates beside inputs and results, gone when it returns. Products of floats use\n"
    "  OpenBLAS's workspace besides (32 to 128 MiB for each thread that ever multiplied), and f16 and bf16 are "
    "computed\n"
    "  in f32 copies.\n"
    "- **communication**: none by a rule; what there is otherwise stands below, measured.\n\n"
    "Functions that are put together from others (`mesh_norm()`, `mesh_einsum()`, ...) have no row of their own.\n\n"
    "## Public\n\n"
    "| operator | inputs | tried on | sharded | pending | gradient | kept | scratch |\n"
    "|---|---|---|---|---|---|---|---|\n";

static const char helpers[] =
    "\n## Helpers\n\n"
    "Parts of backward passes, and the pieces of distributed forms; no public function is one of them.\n\n"
    "| operator | inputs | tried on | sharded | pending | scratch |\n"
    "|---|---|---|---|---|---|\n";

static const char memory[] = "\n## Memory\n\n"
                             "A call holds its inputs as a rule wants them (copies only of those that had to move, and "
                             "while one moves at most what is\n"
                             "sent and what arrives of it), its results, and the scratch of its kernel; when it "
                             "returns, the results. All of it is\n"
                             "measured by tests: kernels, calls in several layouts, redistributions.\n\n"
                             "A backward pass frees the kept values of an operator when it has been there, and its "
                             "gradient when it was consumed; a\n"
                             "leaf's gradient is reduced or cut out with its last contribution. So beside kept values "
                             "and the leaves' gradients there\n"
                             "are those of the operator whose turn it is: what it gets, what it gives, and while it "
                             "runs one tensor of the size of its\n"
                             "largest. Two are held by";

static void print_memory(FILE *to)
{
    static const char *const two[] = {
#define HELD(op, most) #op,
#include "truth/gradient_peak.def"
    };
    fputs(memory, to);
    for (size_t i = 0; i < ARRAY_SIZE(two); i++) {
        fprintf(to, "%s `%s`", i == 0 ? "" : ",", two[i]);
    }
    fputs(".\n", to);
}

static void print_document(FILE *to)
{
    fputs(introduction, to);
    print_rows(to, false);
    fputs(helpers, to);
    print_rows(to, true);
    print_memory(to);
    print_communication(to);
    print_missing(to);
}

/* Line by line; 0 when the file says the same. */
static int compare(FILE *made, FILE *kept, const char *path)
{
    char want[LINE_BYTES], is[LINE_BYTES];
    for (int line = 1;; line++) {
        char *w = fgets(want, sizeof want, made), *i = fgets(is, sizeof is, kept);
        if (w == NULL && i == NULL) {
            return 0;
        }
        if (w == NULL || i == NULL || strcmp(want, is) != 0) {
            fprintf(stderr, "%s:%d is not what the operator table gives; make it anew with ./dev docs\n", path, line);
            fprintf(stderr, "  it says: %s  made:    %s", i ? is : "(nothing)\n", w ? want : "(nothing)\n");
            return 1;
        }
    }
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_document(stdout);
        return fflush(stdout) == 0 ? 0 : 1;
    }
    FILE *kept = fopen(argv[1], "r"), *made = tmpfile();
    int r = 1;
    if (kept == NULL || made == NULL) {
        perror(kept == NULL ? argv[1] : "tmpfile");
    } else {
        print_document(made);
        rewind(made);
        r = compare(made, kept, argv[1]);
    }
    if (made != NULL) {
        fclose(made);
    }
    if (kept != NULL) {
        fclose(kept);
    }
    return r;
}
