/* tests/truth/test_rules_changed.c - the brute force must be able to fail: every rule, with one placement changed, is
 * refuted.
 *
 * Each placement of each rule of each sample is replaced by each other one, and the claim tried as test_rules.c tries
 * rules.  What is not refuted there must be right: it follows from a rule, or holds on everything that the search for
 * missing rules tries (then OPERATORS.md lists it).
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "harness/check_main.h"
#include "truth/missing.h"
#include "truth/share.h"

#define N_RANKS   3 /* that rules are derived for */
#define MAX_RANKS 8

static int n_caught[N_OPS];
static struct count {
    int n, caught;
} counts;

static bool is_caught_with(const struct trial *t, const struct rule *r)
{
    for (int parts = 2; parts <= MAX_RANKS; parts++) {
        for (int split = 0; split < N_SPLITS; split++) {
            struct claim c = { .trial = t, .size = &parts, .split = (enum split)split, .is_guess = true };
            claim_add_rule(&c, r);
            if (!claim_holds(&c)) {
                return true;
            }
        }
    }
    return false;
}

struct stage {
    const struct sample *sample;
    struct trial trial[N_VARIANTS];
    struct rule_list *rules;
};

static bool is_caught(const struct stage *g, const struct rule *r)
{
    bool is = false;
    for (int v = 0; !is && v < N_VARIANTS; v++) {
        is = is_caught_with(&g->trial[v], r);
    }
    return is;
}

/* Right, though products beside other reductions are not looked for: a product is not 0 where no factor is. */
static bool is_all_of_product(const struct stage *g, const struct rule *r)
{
    return g->sample->op == OP_all && r->in[0].op == MESH_PROD && r->out[0].op == MESH_MIN;
}

static void judge(const struct stage *g, const struct rule *r)
{
    char text[CLAIM_TEXT_BYTES];
    int parts = N_RANKS;
    counts.n++;
    if (is_caught(g, r)) {
        n_caught[g->sample->op]++;
        counts.caught++;
    } else if (!is_all_of_product(g, r) && !missing_has_answer(g->sample, g->rules, r)) {
        struct claim c = { .trial = &g->trial[0], .size = &parts };
        claim_add_rule(&c, r);
        ck_abort_msg("not caught: %s", claim_text(&c, text, sizeof text));
    }
}

static bool is_same(mesh_placement a, mesh_placement b)
{
    return a.kind == b.kind && a.dim == b.dim && a.op == b.op;
}

/* The rule with every other placement in the place of *at, which is one of its own. */
static void change(const struct stage *g, struct rule *r, mesh_placement *at, mesh_shape s, mesh_dtype dtype)
{
    const mesh_placement was = *at;
    int64_t n = layouts_count(s, dtype, 1);
    for (int64_t k = 0; k < n; k++) {
        *at = layout_numbered(s, dtype, 1, k).at[0];
        if (!is_same(*at, was)) {
            judge(g, r);
        }
    }
    *at = was;
}

static void change_each(const struct stage *g, struct rule r)
{
    const struct op_shapes *s = &g->trial[0].shapes;
    for (int i = 0; i < g->sample->n_in; i++) {
        if (!sample_is_index(g->sample, i)) { /* parts of places are no places */
            change(g, &r, &r.in[i], s->in[i], s->in_dtype[i]);
        }
    }
    for (int o = 0; o < s->n_out; o++) {
        change(g, &r, &r.out[o], s->out[o], s->out_dtype[o]);
    }
}

START_TEST(a_rule_with_one_placement_changed_is_refuted)
{
    struct stage g = { .sample = &samples[_i], .rules = malloc(sizeof *g.rules) };
    for (int v = 0; v < N_VARIANTS; v++) {
        trial_init_variant(&g.trial[v], g.sample, 1, v);
    }
    rules_derive(g.trial[0].op, &g.trial[0].shapes, N_RANKS, g.rules);
    for (int k = 0; k < g.rules->n; k++) {
        change_each(&g, g.rules->at[k]);
    }
    for (int v = 0; v < N_VARIANTS; v++) {
        trial_fini(&g.trial[v]);
    }
    free(g.rules);
}
END_TEST

START_TEST(every_operator_refutes_something)
{
    printf("changed rules: %d of %d refuted, the others right as well\n", counts.caught, counts.n);
    for (int op = 0; op < N_OPS; op++) {
        ck_assert_msg(n_caught[op] > 0, "%s: nothing that was changed is wrong", op_table[op].name);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("rules changed");
    TCase *t = tcase_create("rules changed");
    share_one_process();
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, a_rule_with_one_placement_changed_is_refuted, 0, n_samples);
    tcase_add_test(t, every_operator_refutes_something);
    suite_add_tcase(s, t);
    return s;
}
