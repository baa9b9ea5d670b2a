/* tests/truth/test_rules.c - every rule of every operator against brute force, without any communication.
 *
 * A rule is right when running the kernel on each rank's parts, cut as the rule says, gives parts that join, as the rule says, to
 * what the kernel gives on the whole.  Tried: each one-dimensional rule on 2, 3 and 4 ranks (uneven and empty shards, pending
 * values spread in two ways); each product of two rules that dispatch may combine, on 2x2 and 2x3; and, printed only, layouts
 * that would be right although no rule says so.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/util.h"
#include "harness/check_main.h"
#include "tensor/shape.h"
#include "truth/parts.h"
#include "truth/samples.h"

#define TOLERANCE 1e-11 /* f64: a few dozen operations, each within 2^-53 */

struct claim { /* what the parts of a trial are said to be */
    const struct trial *trial;
    int ndim;
    const int *size;
    mesh_placements in[OP_MAX_INPUTS], out[OP_MAX_OUTPUTS];
    enum split split;
};

static struct cut cut_of(const struct claim *c, const mesh_placements *p)
{
    struct cut cut = { .ndim = c->ndim, .p = *p };
    memcpy(cut.size, c->size, (size_t)c->ndim * sizeof cut.size[0]);
    return cut;
}

static bool takes_result_shape(enum op_id op)
{
    return op == OP_reshape || op == OP_expand || op == OP_sum_to || op == OP_repeat || op == OP_repeat_backward ||
           op == OP_conv2d_grad_input || op == OP_conv2d_grad_weight;
}

/* The arguments speak of the whole, so the shape function has nothing to say about a part (which may well be empty). */
static bool takes_place_in_whole(enum op_id op)
{
    return op == OP_conv2d || op == OP_conv2d_grad_input || op == OP_conv2d_grad_weight || op == OP_narrow ||
           op == OP_select || op == OP_amax || op == OP_amin || op == OP_index_of;
}

static void find_offset(const struct claim *c, int rank, struct kernel_call *inout)
{
    struct cut cut = cut_of(c, &c->in[0]);
    struct box b = { .ndim = 0 };
    int at[MESH_MAX_MESH_NDIM];
    cut_coordinate(&cut, rank, at);
    layout_box(c->trial->shapes.in[0], c->size, at, &c->in[0], &b);
    memcpy(inout->offset, b.offset, sizeof inout->offset);
}

/* The kernel on one rank's parts; false when they do not even fit together. */
static bool run_rank(const struct claim *c, int rank, struct mesh_tensor **ret_out)
{
    const struct trial *t = c->trial;
    struct op_shapes local = { .name = t->op->name, .n_in = t->op->n_in, .n_out = t->op->n_out };
    struct op_attr attr = t->shapes.attr;
    struct kernel_call call = { .attr = &attr };
    struct mesh_tensor *in[OP_MAX_INPUTS] = { NULL };
    int at[MESH_MAX_MESH_NDIM];
    bool fits = true;
    for (int i = 0; i < t->sample->n_in; i++) {
        struct cut cut = cut_of(c, &c->in[i]);
        cut.salt = i;
        call.in[i] = in[i] = cut_part(t->in[i], &cut, rank, c->split);
        local.has[i] = true;
        local.in[i] = in[i]->shape;
        local.in_dtype[i] = in[i]->dtype;
    }
    for (int o = 0; o < t->op->n_out; o++) {
        struct cut cut = cut_of(c, &c->out[o]);
        cut_coordinate(&cut, rank, at);
        call.out[o] = ret_out[o] =
            tensor_new(layout_local_shape(t->shapes.out[o], c->size, at, &c->out[o]), t->shapes.out_dtype[o]);
    }
    struct cut first = cut_of(c, &c->in[0]);
    struct box begin;
    cut_coordinate(&first, rank, at);
    layout_box(t->shapes.in[0], c->size, at, &c->in[0], &begin);
    memcpy(call.offset, begin.offset, sizeof call.offset);
    if (takes_result_shape(t->sample->op)) {
        attr.shape = ret_out[0]->shape;
    }
    local.attr = attr;
    find_offset(c, rank, &call);
    if (!takes_place_in_whole(t->sample->op)) {
        fits = t->op->shape(&local) == 0;
        for (int o = 0; fits && o < t->op->n_out; o++) {
            fits = shape_equal(local.out[o], ret_out[o]->shape);
        }
    }
    fits = fits && t->op->kernel(&call) == 0;
    for (int i = 0; i < OP_MAX_INPUTS; i++) {
        tensor_unref(in[i]);
    }
    return fits;
}

static bool joins_to(const struct claim *c, struct mesh_tensor *const *parts, int o)
{
    struct cut cut = cut_of(c, &c->out[o]);
    bool same = false;
    double *got = join_parts(parts, c->trial->shapes.out[o], &cut, &same);
    for (int64_t i = 0; same && i < c->trial->out[o]->n; i++) {
        same = numbers_are_near(got[i], tensor_number(c->trial->out[o], i), TOLERANCE);
    }
    free(got);
    return same;
}

static bool holds(const struct claim *c)
{
    struct mesh_tensor *parts[OP_MAX_OUTPUTS][PARTS_MAX_RANKS] = { { NULL } };
    struct cut any = { .ndim = c->ndim };
    memcpy(any.size, c->size, (size_t)c->ndim * sizeof any.size[0]);
    int n_ranks = cut_ranks(&any), n_out = c->trial->op->n_out;
    bool is_right = true;
    for (int rank = 0; is_right && rank < n_ranks; rank++) {
        struct mesh_tensor *out[OP_MAX_OUTPUTS] = { NULL };
        is_right = run_rank(c, rank, out);
        for (int o = 0; o < n_out; o++) {
            parts[o][rank] = out[o];
        }
    }
    for (int o = 0; is_right && o < n_out; o++) {
        is_right = joins_to(c, parts[o], o);
    }
    for (int o = 0; o < n_out; o++) {
        for (int rank = 0; rank < n_ranks; rank++) {
            tensor_unref(parts[o][rank]);
        }
    }
    return is_right;
}

static const char *claim_text(const struct claim *c, char *buf, size_t cap)
{
    const struct trial *t = c->trial;
    char one[96], shape[SHAPE_TEXT_BYTES];
    size_t at = (size_t)snprintf(buf, cap, "%s", t->op->name);
    for (int i = 0; i < t->sample->n_in; i++) {
        at += (size_t)snprintf(buf + at, cap - at, " %s%s%s", dtype_name(t->in[i]->dtype),
                               shape_text(t->in[i]->shape, shape, sizeof shape),
                               mesh_placements_text(c->in[i], one, sizeof one));
    }
    for (int o = 0; o < t->op->n_out; o++) {
        at += (size_t)snprintf(buf + at, cap - at, " -> %s", mesh_placements_text(c->out[o], one, sizeof one));
    }
    snprintf(buf + at, cap - at, " on %d%s%.0d, split %d", c->size[0], c->ndim > 1 ? "x" : "",
             c->ndim > 1 ? c->size[1] : 0, (int)c->split);
    return buf;
}

static void add_rule(struct claim *c, const struct rule *r)
{
    int m = c->ndim++;
    for (int i = 0; i < OP_MAX_INPUTS; i++) {
        c->in[i].n = c->ndim;
        c->in[i].at[m] = r->in[i];
    }
    for (int o = 0; o < OP_MAX_OUTPUTS; o++) {
        c->out[o].n = c->ndim;
        c->out[o].at[m] = r->out[o];
    }
}

START_TEST(each_rule_is_right_by_itself)
{
    struct trial t;
    struct rule_list *rules = malloc(sizeof *rules);
    char text[700];
    trial_init(&t, &samples[_i], 1);
    for (int parts = 2; parts <= 4; parts++) {
        rules_derive(t.op, &t.shapes, parts, rules);
        for (int k = 0; k < rules->n; k++) {
            for (int split = 0; split < N_SPLITS; split++) {
                struct claim c = { .trial = &t, .size = &parts, .split = (enum split)split };
                add_rule(&c, &rules->at[k]);
                ck_assert_msg(holds(&c), "wrong: %s", claim_text(&c, text, sizeof text));
            }
        }
    }
    free(rules);
    trial_fini(&t);
}
END_TEST

static bool is_layout(const struct claim *c)
{
    const struct trial *t = c->trial;
    for (int i = 0; i < t->op->n_in; i++) {
        if (placements_mix_reductions(&c->in[i])) {
            return false;
        }
    }
    for (int o = 0; o < t->op->n_out; o++) {
        if (placements_mix_reductions(&c->out[o])) {
            return false;
        }
    }
    return t->sample->op != OP_reshape ||
           reshape_is_exact(t->shapes.in[0], t->shapes.out[0], c->ndim, c->size, &c->in[0], &c->out[0]);
}

START_TEST(each_product_of_two_rules_is_right)
{
    static const int meshes[2][2] = { { 2, 2 }, { 2, 3 } };
    struct trial t;
    struct rule_list *rules = malloc(2 * sizeof *rules);
    char text[700];
    trial_init(&t, &samples[_i], 2);
    for (int m = 0; m < 2; m++) {
        rules_derive(t.op, &t.shapes, meshes[m][0], &rules[0]);
        rules_derive(t.op, &t.shapes, meshes[m][1], &rules[1]);
        for (int k = 0; k < rules[0].n * rules[1].n; k++) {
            struct claim c = { .trial = &t, .size = meshes[m], .split = k % 2 ? SPLIT_NEUTRAL : SPLIT_UNEVEN };
            add_rule(&c, &rules[0].at[k / rules[1].n]);
            add_rule(&c, &rules[1].at[k % rules[1].n]);
            ck_assert_msg(!is_layout(&c) || holds(&c), "wrong: %s", claim_text(&c, text, sizeof text));
        }
    }
    free(rules);
    trial_fini(&t);
}
END_TEST

static bool is_derived(const struct rule_list *rules, const struct claim *c)
{
    for (int k = 0; k < rules->n; k++) {
        bool is_same = true;
        for (int i = 0; is_same && i < c->trial->sample->n_in; i++) {
            mesh_placements p = { .n = 1, .at = { rules->at[k].in[i] } };
            is_same = mesh_placements_equal(p, c->in[i]);
        }
        if (is_same) {
            return true;
        }
    }
    return false;
}

/* Tries every layout of every input, and every layout of the result, on three ranks; prints what no rule has. */
static void find_missing(const struct trial *t, const struct rule_list *rules, struct claim *c, int i)
{
    static const int three = 3;
    static mesh_placements lists[OP_MAX_INPUTS + 1][LAYOUTS_MAX];
    if (i < t->sample->n_in) {
        bool is_class = dtype_kind(t->in[i]->dtype) != dtype_kind(t->in[0]->dtype);
        int n = all_layouts(t->in[i]->shape, t->in[i]->dtype, 1, lists[i]);
        for (int k = 0; k < n; k++) {
            c->in[i] = lists[i][k];
            if (!is_class || c->in[i].at[0].kind != MESH_IS_PARTIAL) {
                find_missing(t, rules, c, i + 1);
            }
        }
        return;
    }
    char text[700];
    c->size = &three;
    if (is_derived(rules, c) || t->op->n_out > 1) {
        return;
    }
    int n = all_layouts(t->shapes.out[0], t->shapes.out_dtype[0], 1, lists[i]);
    for (int k = 0; k < n; k++) {
        c->out[0] = lists[i][k];
        if (c->out[0].at[0].kind != MESH_IS_REPLICATE && holds(c)) {
            printf("right, but no rule: %s\n", claim_text(c, text, sizeof text));
        }
    }
}

START_TEST(layouts_that_no_rule_has_are_printed)
{
    struct trial t;
    struct rule_list *rules = malloc(sizeof *rules);
    trial_init(&t, &samples[_i], 1);
    rules_derive(t.op, &t.shapes, 3, rules);
    struct claim c = { .trial = &t, .ndim = 1, .split = SPLIT_UNEVEN };
    if (shape_numel(t.shapes.out[0]) > 1 && !takes_place_in_whole(t.sample->op)) {
        find_missing(&t, rules, &c, 0);
    }
    free(rules);
    trial_fini(&t);
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
    add_rule(&c, &r);
    ck_assert(!holds(&c));
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
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, each_rule_is_right_by_itself, 0, n_samples);
    tcase_add_loop_test(t, each_product_of_two_rules_is_right, 0, n_samples);
    tcase_add_loop_test(t, layouts_that_no_rule_has_are_printed, 0, n_samples);
    tcase_add_loop_test(t, seeded_mistakes_are_caught, 0, 10);
    tcase_add_test(t, every_row_has_a_sample);
    suite_add_tcase(s, t);
    return s;
}
