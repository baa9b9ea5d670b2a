/* tests/unit/dtensor/test_choose.c - which layouts an operator takes: the rules as text, and the cheapest of them.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "dtensor/dispatch.h"
#include "harness/check_main.h"

#define SHAPE(...)                                                                                                     \
    {                                                                                                                  \
        .ndim = MESH_COUNT_(int64_t, __VA_ARGS__), .dim = { __VA_ARGS__ }                                              \
    }
#define R                                                                                                              \
    {                                                                                                                  \
        .kind = MESH_IS_REPLICATE                                                                                      \
    }
#define S0                                                                                                             \
    {                                                                                                                  \
        .kind = MESH_IS_SHARD, .dim = 0                                                                                \
    }
#define S1                                                                                                             \
    {                                                                                                                  \
        .kind = MESH_IS_SHARD, .dim = 1                                                                                \
    }
#define P                                                                                                              \
    {                                                                                                                  \
        .kind = MESH_IS_PARTIAL, .op = MESH_SUM                                                                        \
    }
#define PMAX                                                                                                           \
    {                                                                                                                  \
        .kind = MESH_IS_PARTIAL, .op = MESH_MAX                                                                        \
    }

static struct op_shapes facts(enum op_id id, int n_in, const mesh_shape *in, const struct op_attr *attr)
{
    struct op_shapes s = {
        .name = op_table[id].name, .n_in = op_table[id].n_in, .n_out = op_table[id].n_out, .mesh_ndim = 1
    };
    s.attr = attr ? *attr : s.attr;
    for (int i = 0; i < n_in; i++) {
        s.has[i] = true;
        s.in[i] = in[i];
        s.in_dtype[i] = MESH_F32;
    }
    ck_assert_int_eq(op_table[id].shape(&s), 0);
    return s;
}

/* "R,R->R S(0),R->S(0) ..." without the pending inputs, which other tests look at. */
static const char *rules_text(enum op_id id, const struct op_shapes *s, char *buf, size_t cap)
{
    struct rule_list *rules = malloc(sizeof *rules);
    size_t at = 0;
    rules_derive(&op_table[id], s, 4, rules);
    for (int k = 0; k < rules->n; k++) {
        const struct rule *r = &rules->at[k];
        char one[24];
        if (r->in[0].kind == MESH_IS_PARTIAL || r->in[1].kind == MESH_IS_PARTIAL) {
            continue;
        }
        at += (size_t)snprintf(buf + at, cap - at, "%s", at ? " " : "");
        for (int i = 0; i < s->n_in; i++) {
            at += (size_t)snprintf(buf + at, cap - at, "%s%s", i ? "," : "", placement_text(r->in[i], one, sizeof one));
        }
        at += (size_t)snprintf(buf + at, cap - at, "->%s", placement_text(r->out[0], one, sizeof one));
    }
    free(rules);
    return buf;
}

struct rule_case {
    enum op_id id;
    int n_in;
    mesh_shape in[3];
    struct op_attr attr;
    const char *rules;
};

/* clang-format off */
static const struct rule_case rule_cases[] = {
    { OP_matmul,
      2,
      { SHAPE(8, 6), SHAPE(6, 4) },
      { .mode = 0 },
      "R,R->R S(0),R->S(0) S(1),S(0)->P(sum) R,S(1)->S(1)" },
    { OP_linear,
      3,
      { SHAPE(8, 6), SHAPE(4, 6), SHAPE(4) },
      { .mode = 0 },
      "R,R,R->R S(0),R,R->S(0) S(1),S(1),P(sum)->P(sum) R,S(0),S(0)->S(1)" },
    { OP_add, 2, { SHAPE(8, 1), SHAPE(3) }, { .mode = 0 }, "R,R->R S(0),R->S(0) R,S(0)->S(1)" },
    { OP_transpose, 1, { SHAPE(8, 6) }, { .dim = { 0, 1 } }, "R->R S(0)->S(1) S(1)->S(0)" },
    { OP_sum, 1, { SHAPE(8, 6) }, { .dims = 1 }, "R->R S(0)->P(sum) S(1)->S(0)" },
    { OP_softmax, 1, { SHAPE(8, 6) }, { .dim = { 1, 0 } }, "R->R S(0)->S(0)" },
    { OP_reshape, 1, { SHAPE(6, 256) }, { .shape = SHAPE(1536) }, "R->R" },
    { OP_reshape, 1, { SHAPE(8, 3) }, { .shape = SHAPE(24) }, "R->R S(0)->S(0)" },
    { OP_reshape, 1, { SHAPE(2, 12) }, { .shape = SHAPE(2, 4, 3) }, "R->R S(0)->S(0) S(1)->S(1)" },
    { OP_reshape, 1, { SHAPE(2, 12) }, { .shape = SHAPE(2, 3, 4) }, "R->R S(0)->S(0)" },
    { OP_expand, 1, { SHAPE(5, 1) }, { .shape = SHAPE(5, 3) }, "R->R S(0)->S(0)" },
    { OP_cross_entropy_rows, 1, { SHAPE(8, 3) }, { .mode = 0 }, "R,R->R S(0),S(0)->S(0)" },
};
/* clang-format on */

START_TEST(rules_read_as_in_the_textbook)
{
    for (size_t k = 0; k < ARRAY_SIZE(rule_cases); k++) {
        const struct rule_case *c = &rule_cases[k];
        char buf[800];
        struct op_shapes s = { .name = "" };
        if (c->id == OP_cross_entropy_rows) { /* its target is not floating */
            s = (struct op_shapes){ .name = "cross_entropy",
                                    .n_in = 2,
                                    .n_out = 1,
                                    .has = { true, true },
                                    .in = { c->in[0], MESH_SHAPE(8) },
                                    .in_dtype = { MESH_F32, MESH_I64 } };
            ck_assert_int_eq(op_table[c->id].shape(&s), 0);
        } else {
            s = facts(c->id, c->n_in, c->in, &c->attr);
        }
        ck_assert_str_eq(rules_text(c->id, &s, buf, sizeof buf), c->rules);
    }
}
END_TEST

struct choice_case {
    enum op_id id;
    int n_in;
    mesh_shape in[3];
    struct op_attr attr;
    int mesh_ndim, size[2];
    mesh_placements now[3];
    const char *text; /* chosen inputs and result */
    bool is_free;
};

#define ON(...)                                                                                                        \
    {                                                                                                                  \
        .n = (int)(sizeof((mesh_placement[]){ __VA_ARGS__ }) / sizeof(mesh_placement)), .at = { __VA_ARGS__ }          \
    }

/* clang-format off */
static const struct choice_case choice_cases[] = {
    /* data parallel x tensor parallel: nothing moves */
    { OP_linear,
      3,
      { SHAPE(64, 32), SHAPE(16, 32), SHAPE(16) },
      { .mode = 0 },
      2,
      { 2, 2 },
      { ON(S0, R), ON(R, S0), ON(R, S0) },
      "[S(0), R] [R, S(0)] [R, S(0)] -> [S(0), S(1)]",
      true },
    { OP_linear,
      3,
      { SHAPE(64, 32), SHAPE(16, 32), SHAPE(16) },
      { .mode = 0 },
      2,
      { 2, 2 },
      { ON(S0, S1), ON(R, S1), ON(R, R) },
      "[S(0), S(1)] [R, S(1)] [R, P(sum)] -> [S(0), P(sum)]",
      true },
    { OP_matmul,
      2,
      { SHAPE(8, 6), SHAPE(6, 4) },
      { .mode = 0 },
      1,
      { 4 },
      { ON(R), ON(R) },
      "[R] [R] -> [R]",
      true },
    { OP_matmul,
      2,
      { SHAPE(8, 6), SHAPE(6, 4) },
      { .mode = 0 },
      1,
      { 4 },
      { ON(P), ON(R) },
      "[P(sum)] [R] -> [P(sum)]",
      true },
    { OP_add,
      2,
      { SHAPE(8, 6), SHAPE(8, 6) },
      { .mode = 0 },
      1,
      { 4 },
      { ON(P), ON(R) },
      "[P(sum)] [P(sum)] -> [P(sum)]",
      true },
    /* two shards do not become two pending sums, free as that would be now */
    { OP_add,
      2,
      { SHAPE(8, 8), SHAPE(8, 8) },
      { .mode = 0 },
      1,
      { 4 },
      { ON(S0), ON(S1) },
      "[S(0)] [S(0)] -> [S(0)]",
      false },
    { OP_relu, 1, { SHAPE(8, 8) }, { .mode = 0 }, 1, { 4 }, { ON(PMAX) }, "[P(max)] -> [P(max)]", true },
    { OP_relu, 1, { SHAPE(1) }, { .mode = 0 }, 1, { 4 }, { ON(P) }, "[R] -> [R]", false },
    { OP_reshape,
      1,
      { SHAPE(4, 6) },
      { .shape = SHAPE(2, 2, 6) },
      2,
      { 2, 2 },
      { ON(S0, S0) },
      "[S(0), S(0)] -> [S(0), S(1)]",
      true },
    { OP_reshape,
      1,
      { SHAPE(6, 4) },
      { .shape = SHAPE(2, 3, 4) },
      2,
      { 2, 2 },
      { ON(S0, S0) },
      "[S(0), S(0)] -> [S(0), S(1)]",
      true },
    { OP_reshape,
      1,
      { SHAPE(8, 3) },
      { .shape = SHAPE(24) },
      1,
      { 4 },
      { ON(S0) },
      "[S(0)] -> [S(0)]",
      true },
};
/* clang-format on */

START_TEST(the_cheapest_right_layout_is_taken)
{
    for (size_t k = 0; k < ARRAY_SIZE(choice_cases); k++) {
        const struct choice_case *c = &choice_cases[k];
        struct op_shapes s = facts(c->id, c->n_in, c->in, &c->attr);
        struct op_choice choice;
        char text[300] = "", one[96];
        s.mesh_ndim = c->mesh_ndim;
        ck_assert_int_eq(op_choose(&op_table[c->id], &s, c->mesh_ndim, c->size, c->now, &choice), 0);
        for (int i = 0; i < c->n_in; i++) {
            strcat(text, mesh_placements_text(choice.in[i], one, sizeof one));
            strcat(text, " ");
        }
        strcat(text, "-> ");
        strcat(text, mesh_placements_text(choice.out[0], one, sizeof one));
        ck_assert_str_eq(text, c->text);
        ck_assert_msg((choice.cost <= 0) == c->is_free, "%s costs %g", text, choice.cost);
    }
}
END_TEST

struct refusal {
    enum op_id id;
    int n_in;
    mesh_shape in[3];
    mesh_dtype dtype[3];
    struct op_attr attr;
    int status;
    const char *says;
};

/* clang-format off */
static const struct refusal refusals[] = {
    { OP_matmul,
      2,
      { SHAPE(64, 784), SHAPE(512, 10) },
      { 0 },
      { .mode = 0 },
      MESH_ESHAPE,
      "matmul: [64,784] x [512,10]: 784 != 512" },
    { OP_matmul, 2, { { .ndim = 0 }, SHAPE(3) }, { 0 }, { .mode = 0 }, MESH_ESHAPE, "argument 1 is []" },
    { OP_add, 2, { SHAPE(4, 3), SHAPE(4) }, { 0 }, { .mode = 0 }, MESH_ESHAPE, "[4,3]" },
    { OP_add,
      2,
      { SHAPE(4), SHAPE(4) },
      { MESH_F32, MESH_F64 },
      { .mode = 0 },
      MESH_EINVAL,
      "f32 but argument 2 is f64" },
    { OP_linear,
      3,
      { SHAPE(4, 3), SHAPE(5, 3), SHAPE(3) },
      { 0 },
      { .mode = 0 },
      MESH_ESHAPE,
      "bias of [5], not [3]" },
    { OP_linear, 2, { SHAPE(4, 3), SHAPE(3, 5) }, { 0 }, { .mode = 0 }, MESH_ESHAPE, "(3 and 5)" },
    { OP_reshape,
      1,
      { SHAPE(4, 3) },
      { 0 },
      { .shape = SHAPE(5) },
      MESH_ESHAPE,
      "[4,3] has 12 elements, [5] has 5" },
    { OP_softmax, 1, { SHAPE(4) }, { MESH_I64 }, { .mode = 0 }, MESH_EUNSUPPORTED, "i64" },
    { OP_transpose, 1, { SHAPE(4) }, { 0 }, { .dim = { 0, 1 } }, MESH_EINVAL, "transpose" },
    { OP_expand,
      1,
      { SHAPE(4) },
      { 0 },
      { .shape = SHAPE(3) },
      MESH_ESHAPE,
      "[4] does not broadcast to [3]" },
    { OP_cross_entropy_rows,
      2,
      { SHAPE(4, 3), SHAPE(3) },
      { 0, MESH_I64 },
      { .mode = 0 },
      MESH_ESHAPE,
      "logits [4,3] and target [3]" },
    { OP_cross_entropy_rows,
      2,
      { SHAPE(4, 3), SHAPE(4) },
      { 0 },
      { .mode = 0 },
      MESH_EINVAL,
      "class numbers" },
};
/* clang-format on */

START_TEST(misfits_are_refused_with_both_shapes)
{
    for (size_t k = 0; k < ARRAY_SIZE(refusals); k++) {
        const struct refusal *c = &refusals[k];
        struct op_shapes s = {
            .name = op_table[c->id].name, .n_in = op_table[c->id].n_in, .n_out = op_table[c->id].n_out, .attr = c->attr
        };
        for (int i = 0; i < c->n_in; i++) {
            s.has[i] = true;
            s.in[i] = c->in[i];
            s.in_dtype[i] = c->dtype[i] ? c->dtype[i] : MESH_F32;
        }
        int r = op_table[c->id].shape(&s);
        ck_assert_msg(r == c->status && strstr(mesh_last_error()->message, c->says) != NULL, "%zu: %d %s", k, r,
                      mesh_last_error()->message);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("choose");
    TCase *t = tcase_create("choose");
    tcase_add_test(t, rules_read_as_in_the_textbook);
    tcase_add_test(t, the_cheapest_right_layout_is_taken);
    tcase_add_test(t, misfits_are_refused_with_both_shapes);
    suite_add_tcase(s, t);
    return s;
}
