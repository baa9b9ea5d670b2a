/* tests/truth/test_rules.c - every rule of every operator against brute force, without any communication (claim.h).
 *
 * Tried: each one-dimensional rule on 2 to 8 ranks (uneven and empty shards, pending values spread in two ways, four
 * sets of numbers) and, on fewer ranks, in every dtype; products of two and of three rules that dispatch may combine;
 * what dispatch chooses for any layouts of the inputs on meshes of up to 8 ranks and 3 dims.  OPERATORS.md has the
 * other way about: what would be right and has no rule (missing.h).
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "harness/check_main.h"
#include "tensor/shape.h"
#include "truth/claim.h"
#include "truth/combos.h"
#include "truth/missing.h"
#include "truth/share.h"

#define MAX_RANKS 8

static void try_rule(const struct trial *t, const struct rule *r, const int *parts)
{
    char text[CLAIM_TEXT_BYTES];
    for (int split = 0; split < N_SPLITS; split++) {
        struct claim c = { .trial = t, .size = parts, .split = (enum split)split };
        claim_add_rule(&c, r);
        if (!claim_holds(&c)) {
            ck_abort_msg("wrong: %s", claim_text(&c, text, sizeof text));
        }
    }
}

START_TEST(each_rule_is_right_by_itself)
{
    struct trial t;
    struct rule_list *rules = malloc(sizeof *rules);
    for (int variant = 0; variant < N_VARIANTS; variant++) {
        trial_init_variant(&t, &samples[_i], 1, variant);
        for (int parts = 2; parts <= MAX_RANKS; parts++) {
            rules_derive(t.op, &t.shapes, parts, rules);
            for (int k = 0; k < rules->n; k++) {
                try_rule(&t, &rules->at[k], &parts);
            }
        }
        trial_fini(&t);
    }
    free(rules);
}
END_TEST

/* Of truth values only the least and the greatest, and and or, make one again. */
static bool adds_truth_values(const struct trial *t, const struct rule *r)
{
    bool adds = false;
    for (int i = 0; i < t->sample->n_in; i++) {
        adds = adds || (t->shapes.in_dtype[i] == MESH_BOOL && r->in[i].kind == MESH_IS_PARTIAL &&
                        r->in[i].op != MESH_MAX && r->in[i].op != MESH_MIN);
    }
    return adds;
}

/* On few ranks: what differs between dtypes is which reductions there are, what wraps and what rounds. */
START_TEST(each_rule_is_right_in_every_dtype)
{
    struct trial t;
    struct sample s;
    struct rule_list *rules = malloc(sizeof *rules);
    for (mesh_dtype dtype = MESH_F32; dtype <= MESH_BOOL; dtype++) {
        if (!sample_with_dtype(&samples[_i], dtype, &s) || !sample_is_allowed(&s)) {
            continue;
        }
        trial_init(&t, &s, 1);
        for (int parts = 2; parts <= 3; parts++) {
            rules_derive(t.op, &t.shapes, parts, rules);
            for (int k = 0; k < rules->n; k++) {
                if (!adds_truth_values(&t, &rules->at[k])) {
                    try_rule(&t, &rules->at[k], &parts);
                }
            }
        }
        trial_fini(&t);
    }
    free(rules);
}
END_TEST

static bool has_stride(const struct rule *r)
{
    bool has = r->out[0].kind == MESH_IS_STRIDED_SHARD;
    for (int i = 0; i < OP_MAX_INPUTS; i++) {
        has = has || r->in[i].kind == MESH_IS_STRIDED_SHARD;
    }
    return has;
}

/* Those that there are beside the plain ones when input i comes so. */
static void try_stride(struct trial *t, int i, mesh_placement now, struct rule_list *rules)
{
    char text[CLAIM_TEXT_BYTES];
    t->shapes.now[i] = now;
    for (int parts = 2; parts <= 4; parts++) {
        rules_derive(t->op, &t->shapes, parts, rules);
        for (int k = 0; k < rules->n; k++) {
            struct claim c = { .trial = t, .size = &parts, .split = SPLIT_UNEVEN };
            claim_add_rule(&c, &rules->at[k]);
            if (has_stride(&rules->at[k]) && !claim_holds(&c)) {
                ck_abort_msg("wrong: %s", claim_text(&c, text, sizeof text));
            }
        }
    }
    t->shapes.now[i] = (mesh_placement){ .kind = 0 };
}

START_TEST(each_strided_rule_is_right)
{
    struct trial t;
    struct rule_list *rules = malloc(sizeof *rules);
    trial_init(&t, &samples[_i], 1);
    for (int i = 0; i < t.sample->n_in; i++) {
        for (int d = 0; d < t.shapes.in[i].ndim; d++) {
            try_stride(&t, i, mesh_shard(d), rules);
            try_stride(&t, i, mesh_strided_shard(d, 2), rules);
            try_stride(&t, i, mesh_strided_shard(d, 3), rules);
        }
    }
    free(rules);
    trial_fini(&t);
}
END_TEST

struct mesh {
    const char *name;
    int ndim, size[3];
    int64_t most; /* products (choices) per sample */
};

static const struct mesh meshes[] = {
    { "products on 2x2", 2, { 2, 2 }, 4000 },    { "products on 2x3", 2, { 2, 3 }, 400 },
    { "products on 4x2", 2, { 4, 2 }, 60 },      { "products on 2x2x2", 3, { 2, 2, 2 }, 40 },
    { "products on 1x2x3", 3, { 1, 2, 3 }, 40 }, { "products on 2x1x4", 3, { 2, 1, 4 }, 20 },
};

/* The rules of each mesh dim, combined as the digits of number say. */
static struct claim combine(const struct trial *t, const struct mesh *m, const struct rule_list *rules, int64_t number)
{
    struct claim c = { .trial = t, .size = m->size, .split = number % 2 ? SPLIT_NEUTRAL : SPLIT_UNEVEN };
    for (int d = 0; d < m->ndim; d++) {
        claim_add_rule(&c, &rules[d].at[number % rules[d].n]);
        number /= rules[d].n;
    }
    return c;
}

static void try_products(const struct trial *t, const struct mesh *m, struct rule_list *rules)
{
    char text[CLAIM_TEXT_BYTES];
    int64_t total = 1, number;
    for (int d = 0; d < m->ndim; d++) {
        rules_derive(t->op, &t->shapes, m->size[d], &rules[d]);
        total *= rules[d].n;
    }
    struct share share = share_of(m->name, total, m->most);
    while (share_next(&share, &number)) {
        struct claim c = combine(t, m, rules, number);
        if (claim_is_layout(&c) && !claim_holds(&c)) {
            ck_abort_msg("wrong: %s", claim_text(&c, text, sizeof text));
        }
    }
}

START_TEST(products_of_rules_are_right)
{
    struct trial t;
    struct rule_list *rules = malloc(3 * sizeof *rules);
    for (size_t m = 0; m < ARRAY_SIZE(meshes); m++) {
        trial_init(&t, &samples[_i], meshes[m].ndim);
        try_products(&t, &meshes[m], rules);
        trial_fini(&t);
    }
    free(rules);
}
END_TEST

static const struct mesh choice_meshes[] = {
    { "choices on 5", 1, { 5 }, 30 },           { "choices on 8", 1, { 8 }, 30 },
    { "choices on 3x2", 2, { 3, 2 }, 20 },      { "choices on 2x2x2", 3, { 2, 2, 2 }, 12 },
    { "choices on 1x2x3", 3, { 1, 2, 3 }, 12 },
};

static void try_choice(const struct trial *t, const struct mesh *m, const mesh_placements *now)
{
    char text[CLAIM_TEXT_BYTES];
    struct op_choice choice;
    if (op_choose(t->op, &t->shapes, m->ndim, m->size, now, &choice) < 0) {
        ck_abort_msg("%s: %s", t->op->name, mesh_last_error()->message);
    }
    struct claim c = { .trial = t, .ndim = m->ndim, .size = m->size, .split = SPLIT_UNEVEN };
    memcpy(c.in, choice.in, sizeof c.in);
    memcpy(c.out, choice.out, sizeof c.out);
    if (!claim_holds(&c)) {
        ck_abort_msg("wrong: %s", claim_text(&c, text, sizeof text));
    }
}

START_TEST(what_dispatch_chooses_is_right)
{
    struct trial t;
    struct combos combos;
    mesh_placements now[OP_MAX_INPUTS] = { { .n = 0 } };
    for (size_t k = 0; k < ARRAY_SIZE(choice_meshes); k++) {
        const struct mesh *m = &choice_meshes[k];
        trial_init(&t, &samples[_i], m->ndim);
        combos_init(&combos, &t, m->ndim);
        struct share share = share_of(m->name, combos.total, m->most);
        for (int64_t number; share_next(&share, &number);) {
            combos_take(&combos, number, NULL, now);
            try_choice(&t, m, now);
        }
        combos_fini(&combos);
        trial_fini(&t);
    }
}
END_TEST

static const struct mesh view_meshes[] = {
    { "views on 2x3", 2, { 2, 3 }, 200 },
    { "views on 2x2x2", 3, { 2, 2, 2 }, 60 },
    { "views on 1x2x3", 3, { 1, 2, 3 }, 60 },
    { "views on 2x1x4", 3, { 2, 1, 4 }, 60 },
};

/* Some layout of the result has the very parts that the input has under `now`. */
static bool has_exact_result(const struct trial *t, const struct mesh *m, const mesh_placements *now)
{
    int64_t total = layouts_count(t->shapes.out[0], t->shapes.out_dtype[0], m->ndim);
    bool has_one = false;
    for (int64_t k = 0; !has_one && k < total; k++) {
        mesh_placements out = layout_numbered(t->shapes.out[0], t->shapes.out_dtype[0], m->ndim, k);
        bool is_pending_alike = true;
        for (int d = 0; d < m->ndim; d++) {
            is_pending_alike = is_pending_alike &&
                               (now->at[d].kind == MESH_IS_PARTIAL) == (out.at[d].kind == MESH_IS_PARTIAL) &&
                               (out.at[d].kind != MESH_IS_PARTIAL || now->at[d].op == out.at[d].op);
        }
        has_one = is_pending_alike && reshape_is_exact(t->shapes.in[0], t->shapes.out[0], m->ndim, m->size, now, &out);
    }
    return has_one;
}

static void try_views(const struct trial *t, const struct mesh *m)
{
    char text[COMBO_TEXT_BYTES];
    struct combos combos;
    struct op_choice choice;
    mesh_placements now[OP_MAX_INPUTS];
    combos_init(&combos, t, m->ndim);
    struct share share = share_of(m->name, combos.total, m->most);
    for (int64_t number; share_next(&share, &number);) {
        combos_take(&combos, number, NULL, now);
        ck_assert_int_eq(op_choose(t->op, &t->shapes, m->ndim, m->size, now, &choice), 0);
        if (choice.cost > 0 && has_exact_result(t, m, now)) {
            ck_abort_msg("%s: %s moves elements although none need to", m->name, combo_text(t, now, text, sizeof text));
        }
    }
    combos_fini(&combos);
}

START_TEST(a_reshape_moves_nothing_where_the_parts_are_the_same)
{
    struct trial t;
    for (size_t k = 0; samples[_i].op == OP_reshape && k < ARRAY_SIZE(view_meshes); k++) {
        trial_init(&t, &samples[_i], view_meshes[k].ndim);
        try_views(&t, &view_meshes[k]);
        trial_fini(&t);
    }
}
END_TEST

/* Dims may count from the end in the arguments of operators. */
START_TEST(negative_dims_are_the_same_dims)
{
    struct trial t, u;
    struct sample from_end = samples[_i];
    int ndim = from_end.in[0].ndim;
    bool has_two = from_end.op == OP_transpose;
    if (!sample_has_dim(&samples[_i]) && !has_two) {
        return;
    }
    for (int k = 0; k < 1 + has_two; k++) {
        from_end.attr.dim[k] += from_end.attr.dim[k] < 0 ? ndim : -ndim;
    }
    trial_init(&t, &samples[_i], 1);
    trial_init(&u, &from_end, 1);
    ck_assert_int_eq(memcmp(&t.shapes.attr, &u.shapes.attr, sizeof t.shapes.attr), 0);
    for (int o = 0; o < t.op->n_out; o++) {
        ck_assert(shape_equal(t.shapes.out[o], u.shapes.out[o]));
        ck_assert_int_eq(memcmp(t.out[o]->data, u.out[o]->data, tensor_bytes(t.out[o])), 0);
    }
    trial_fini(&t);
    trial_fini(&u);
}
END_TEST

/* Takes rule k away; the search must miss it, unless it follows from others. */
static bool is_missed_without(const struct sample *s, struct rule_list *rules, int k)
{
    struct missing *missing = malloc(sizeof *missing);
    struct rule gone = rules->at[k];
    bool is_found = false;
    rules->at[k] = rules->at[--rules->n];
    missing_find(s, rules, missing);
    for (int j = 0; j < missing->n; j++) {
        is_found = is_found || memcmp(&missing->at[j], &gone, sizeof gone) == 0;
    }
    rules->at[rules->n++] = rules->at[k];
    rules->at[k] = gone;
    free(missing);
    return is_found;
}

START_TEST(a_rule_that_is_taken_away_is_missed)
{
    static const enum op_id ops[] = {
        OP_matmul, OP_mul, OP_amax, OP_transpose, OP_cumsum, OP_sort, OP_cross_entropy_sum
    };
    struct rule_list *rules = malloc(sizeof *rules);
    struct trial t;
    int n = 0;
    while (samples[n].op != ops[_i]) {
        n++;
    }
    trial_init(&t, &samples[n], 1);
    rules_derive(t.op, &t.shapes, 3, rules);
    for (int k = 1; k < rules->n; k++) {
        ck_assert_msg(is_missed_without(&samples[n], rules, k), "%s: rule %d of %d", t.op->name, k, rules->n);
    }
    trial_fini(&t);
    free(rules);
}
END_TEST

/* The test must be able to fail: rules that look right and are not. */
START_TEST(seeded_mistakes_are_caught)
{
    struct mistake {
        enum op_id op;
        mesh_placement in[2], out;
    };
    static const struct mistake mistakes[] = {
        { OP_add, { { MESH_IS_PARTIAL, 0, MESH_SUM }, { MESH_IS_REPLICATE } }, { MESH_IS_PARTIAL, 0, MESH_SUM } },
        { OP_mul,
          { { MESH_IS_PARTIAL, 0, MESH_SUM }, { MESH_IS_PARTIAL, 0, MESH_SUM } },
          { MESH_IS_PARTIAL, 0, MESH_SUM } },
        { OP_mul, { { MESH_IS_PARTIAL, 0, MESH_MAX }, { MESH_IS_REPLICATE } }, { MESH_IS_PARTIAL, 0, MESH_MAX } },
        { OP_maximum,
          { { MESH_IS_PARTIAL, 0, MESH_MIN }, { MESH_IS_PARTIAL, 0, MESH_MIN } },
          { MESH_IS_PARTIAL, 0, MESH_MIN } },
        { OP_lerp, { { MESH_IS_PARTIAL, 0, MESH_SUM }, { MESH_IS_REPLICATE } }, { MESH_IS_PARTIAL, 0, MESH_SUM } },
        { OP_relu, { { MESH_IS_PARTIAL, 0, MESH_SUM } }, { MESH_IS_PARTIAL, 0, MESH_SUM } },
        { OP_gelu, { { MESH_IS_PARTIAL, 0, MESH_MAX } }, { MESH_IS_PARTIAL, 0, MESH_MAX } },
        { OP_mean, { { MESH_IS_SHARD, 0, 0 } }, { MESH_IS_PARTIAL, 0, MESH_AVG } },
        { OP_softmax, { { MESH_IS_SHARD, 1, 0 } }, { MESH_IS_SHARD, 1, 0 } },
        { OP_reshape, { { MESH_IS_SHARD, 0, 0 } }, { MESH_IS_SHARD, 0, 0 } },
    };
    const struct mistake *m = &mistakes[_i];
    int parts = 4, k = 0;
    struct trial t;
    while (samples[k].op != m->op) {
        k++;
    }
    trial_init(&t, &samples[k], 1);
    struct rule r = { .in = { m->in[0], m->in[1] }, .out = { m->out } };
    struct claim c = { .trial = &t, .size = &parts };
    claim_add_rule(&c, &r);
    ck_assert(!claim_holds(&c));
    trial_fini(&t);
}
END_TEST

START_TEST(every_row_has_a_sample)
{
    for (int op = 0; op < N_OPS; op++) {
        bool has_one = false;
        for (int k = 0; k < n_samples; k++) {
            has_one = has_one || (int)samples[k].op == op;
        }
        ck_assert_msg(has_one, "%s is not tried", op_table[op].name);
        ck_assert_ptr_eq(op_find(op_table[op].name), &op_table[op]);
    }
    ck_assert_ptr_null(op_find("no_such_operator"));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("rules");
    TCase *t = tcase_create("rules");
    share_one_process();
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, each_rule_is_right_by_itself, 0, n_samples);
    tcase_add_loop_test(t, each_rule_is_right_in_every_dtype, 0, n_samples);
    tcase_add_loop_test(t, each_strided_rule_is_right, 0, n_samples);
    tcase_add_loop_test(t, products_of_rules_are_right, 0, n_samples);
    tcase_add_loop_test(t, what_dispatch_chooses_is_right, 0, n_samples);
    tcase_add_loop_test(t, a_reshape_moves_nothing_where_the_parts_are_the_same, 0, n_samples);
    tcase_add_loop_test(t, negative_dims_are_the_same_dims, 0, n_samples);
    tcase_add_loop_test(t, a_rule_that_is_taken_away_is_missed, 0, 7);
    tcase_add_loop_test(t, seeded_mistakes_are_caught, 0, 10);
    tcase_add_test(t, every_row_has_a_sample);
    suite_add_tcase(s, t);
    return s;
}
