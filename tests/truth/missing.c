/* tests/truth/missing.c - tries every combination of placements that no rule has.
 *
 * A combination that happens to be right for some numbers is none that a rule could have: what survives on three ranks
 * is tried on 2, 4 and 5, with other numbers, and with pending values spread both ways.
 * SPDX-License-Identifier: Apache-2.0 */
#include "truth/missing.h"

#include <string.h>

#include "base/dtype.h"
#include "base/util.h"
#include "tensor/shape.h"

#define FIRST_SIZE  3
#define MAX_GUESSES 100000

struct search {
    const struct sample *sample;
    const struct rule_list *rules;
    struct trial trial[N_VARIANTS];
    bool is_ignored[OP_MAX_INPUTS]; /* the result does not depend on its numbers */
    struct missing *found;
};

static bool is_same(mesh_placement a, mesh_placement b)
{
    return a.kind == b.kind && a.dim == b.dim && a.op == b.op;
}

/* From a: for nothing. */
static bool can_become(mesh_placement a, mesh_placement b)
{
    return is_same(a, b) || a.kind == MESH_IS_REPLICATE;
}

static bool follows_from(const struct search *s, const struct rule *guess, const struct rule *known)
{
    bool follows = true;
    for (int i = 0; follows && i < s->sample->n_in; i++) {
        follows = can_become(guess->in[i], known->in[i]);
    }
    for (int o = 0; follows && o < s->trial[0].op->n_out; o++) {
        follows = can_become(known->out[o], guess->out[o]);
    }
    return follows;
}

static bool is_known(const struct search *s, const struct rule *guess)
{
    for (int k = 0; k < s->rules->n; k++) {
        if (follows_from(s, guess, &s->rules->at[k])) {
            return true;
        }
    }
    for (int k = 0; k < s->found->n; k++) {
        if (follows_from(s, guess, &s->found->at[k])) {
            return true;
        }
    }
    return false;
}

static bool holds_on(const struct search *s, const struct rule *guess, int size, int variant)
{
    for (int split = 0; split < N_SPLITS; split++) {
        struct claim c = { .trial = &s->trial[variant], .size = &size, .split = (enum split)split, .is_guess = true };
        claim_add_rule(&c, guess);
        if (!claim_holds(&c)) {
            return false;
        }
    }
    return true;
}

static bool holds_always(const struct search *s, const struct rule *guess)
{
    static const int sizes[] = { FIRST_SIZE, 2, 4, 5 }; /* the first two leave hardly any part empty */
    size_t n_sizes = claim_is_of_whole(s->sample->op) ? 2 : ARRAY_SIZE(sizes);
    for (size_t k = 0; k < n_sizes; k++) {
        for (int variant = 0; variant < N_VARIANTS; variant++) {
            if (!holds_on(s, guess, sizes[k], variant)) {
                return false;
            }
        }
    }
    return true;
}

static bool is_rare(mesh_reduce_op op)
{
    return op == MESH_PROD || op == MESH_BAND || op == MESH_BOR || op == MESH_BXOR;
}

/* Products and bits are pending beside their like only: what else fits does so by the numbers.  A result that is whole
 * on every rank comes of inputs that are. */
static bool is_sensible(const struct search *s, const struct rule *guess)
{
    int first = 0, n_in = s->sample->n_in, n_out = s->trial[0].op->n_out;
    bool has_rare = false, differs = false, is_whole = true, has_part = false;
    for (int i = 0; i < n_in + n_out; i++) {
        mesh_placement p = i < n_in ? guess->in[i] : guess->out[i - n_in];
        is_whole = is_whole && (i < n_in || p.kind == MESH_IS_REPLICATE);
        has_part = has_part || (i < n_in && p.kind != MESH_IS_REPLICATE);
        if (p.kind == MESH_IS_PARTIAL) {
            has_rare = has_rare || is_rare(p.op);
            differs = differs || (first != 0 && first != (int)p.op);
            first = (int)p.op;
        }
    }
    return !(has_rare && differs) && !(is_whole && has_part);
}

/* Fills in output o and the ones after it. */
static void try_outputs(struct search *s, struct rule *guess, int o)
{
    const struct op_shapes *x = &s->trial[0].shapes;
    if (o < s->trial[0].op->n_out && o < OP_MAX_OUTPUTS) {
        int64_t n = layouts_count(x->out[o], x->out_dtype[o], 1);
        for (int64_t k = 0; k < n; k++) {
            guess->out[o] = layout_numbered(x->out[o], x->out_dtype[o], 1, k).at[0];
            try_outputs(s, guess, o + 1);
        }
        return;
    }
    if (is_sensible(s, guess) && !is_known(s, guess) && holds_always(s, guess)) {
        parts_must(s->found->n < MISSING_MAX, "too many missing rules");
        s->found->at[s->found->n++] = *guess;
    }
}

static void try_inputs(struct search *s, struct rule *guess, int i)
{
    const struct op_shapes *x = &s->trial[0].shapes;
    if (i == s->sample->n_in || i == OP_MAX_INPUTS) {
        try_outputs(s, guess, 0);
        return;
    }
    int64_t n = layouts_count(x->in[i], x->in_dtype[i], 1);
    for (int64_t k = 0; k < n; k++) {
        guess->in[i] = layout_numbered(x->in[i], x->in_dtype[i], 1, k).at[0];
        bool is_whole = guess->in[i].kind == MESH_IS_REPLICATE, is_pending = guess->in[i].kind == MESH_IS_PARTIAL;
        if (is_whole || (!s->is_ignored[i] && !(is_pending && sample_is_index(s->sample, i)))) {
            try_inputs(s, guess, i + 1);
        }
    }
}

/* One number, in every element and with all inputs. */
static bool is_constant(const struct search *s)
{
    double first = s->trial[0].out[0]->n > 0 ? tensor_number(s->trial[0].out[0], 0) : 0;
    for (int v = 0; v < N_VARIANTS; v++) {
        const struct mesh_tensor *y = s->trial[v].out[0];
        for (int64_t i = 0; i < y->n; i++) {
            if (!numbers_are_near(tensor_number(y, i), first, 0)) {
                return false;
            }
        }
    }
    return true;
}

/* With other parts of input i on every rank, the result is the same on all. */
static void find_ignored(struct search *s)
{
    for (int i = 0; i < s->sample->n_in; i++) {
        struct rule guess = rule_whole();
        guess.in[i] = mesh_partial(MESH_MAX);
        bool is_number = dtype_kind(s->trial[0].shapes.in_dtype[i]) != DTYPE_BOOL && !sample_is_index(s->sample, i);
        s->is_ignored[i] = is_number && holds_always(s, &guess);
    }
}

static int64_t count_guesses(const struct search *s)
{
    const struct op_shapes *x = &s->trial[0].shapes;
    int64_t n = 1;
    for (int i = 0; i < s->sample->n_in; i++) {
        n *= layouts_count(x->in[i], x->in_dtype[i], 1);
    }
    for (int o = 0; o < s->trial[0].op->n_out; o++) {
        n *= layouts_count(x->out[o], x->out_dtype[o], 1);
    }
    return n;
}

static void search_init(struct search *s, const struct sample *sample, const struct rule_list *rules)
{
    *s = (struct search){ .sample = sample, .rules = rules };
    for (int v = 0; v < N_VARIANTS; v++) {
        trial_init_variant(&s->trial[v], sample, 1, v);
    }
}

static void search_fini(struct search *s)
{
    for (int v = 0; v < N_VARIANTS; v++) {
        trial_fini(&s->trial[v]);
    }
}

bool missing_has_answer(const struct sample *s, const struct rule_list *rules, const struct rule *r)
{
    struct missing none = { .n = 0 };
    struct search search;
    search_init(&search, s, rules);
    search.found = &none;
    bool is_right = is_known(&search, r), is_vain = is_constant(&search);
    find_ignored(&search);
    for (int i = 0; i < s->n_in; i++) {
        is_vain = is_vain || search.is_ignored[i];
    }
    is_right = is_right || ((is_vain || is_sensible(&search, r)) && holds_always(&search, r));
    search_fini(&search);
    return is_right;
}

void missing_find(const struct sample *s, const struct rule_list *rules, struct missing *ret_missing)
{
    struct search search;
    struct rule guess = rule_whole();
    ret_missing->n = 0;
    search_init(&search, s, rules);
    search.found = ret_missing;
    bool has_numbers = search.trial[0].out[0]->n > 0;
    ret_missing->is_large = count_guesses(&search) > MAX_GUESSES;
    ret_missing->is_constant = has_numbers && is_constant(&search);
    if (has_numbers && !ret_missing->is_constant && !ret_missing->is_large) {
        find_ignored(&search);
        try_inputs(&search, &guess, 0);
    }
    search_fini(&search);
}
