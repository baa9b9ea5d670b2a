/* tests/world/test_strided.c - strided shards: what makes them, what keeps them, and that nothing else mistakes them.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/util.h"
#include "harness/check_main.h"
#include "harness/placements.h"
#include "harness/ranks.h"

#define ON(...)   MESH_PLACEMENTS(__VA_ARGS__)
#define R         mesh_replicate()
#define S(d)      mesh_shard(d)
#define SS(d, f)  mesh_strided_shard((d), (f))
#define TOLERANCE 1e-10 /* f64, a few dozen additions */

static mesh_device_mesh *mesh_of(int rows, int columns)
{
    return rows == 1 ? mesh_init_device_mesh("cpu", MESH_SHAPE(columns), NULL)
                     : mesh_init_device_mesh("cpu", MESH_SHAPE(rows, columns), NULL);
}

static mesh_placements everywhere(const mesh_device_mesh *m, mesh_placement p)
{
    mesh_placements all = { .n = mesh_mesh_ndim(m) };
    for (int i = 0; i < all.n; i++) {
        all.at[i] = p;
    }
    return all;
}

static int64_t numel(const mesh_tensor *t)
{
    int64_t n = 1;
    for (int d = 0; d < mesh_tensor_shape(t).ndim; d++) {
        n *= mesh_tensor_shape(t).dim[d];
    }
    return n;
}

static double element(const mesh_tensor *t, int64_t i)
{
    const void *data = mesh_tensor_data((mesh_tensor *)t);
    return mesh_tensor_dtype(t) == MESH_F64 ? ((const double *)data)[i] : (double)((const int64_t *)data)[i];
}

static int same_values(mesh_dtensor *a, mesh_dtensor *b)
{
    REQUIRE(a != NULL && b != NULL);
    mesh_tensor *x = mesh_full_tensor(a), *y = mesh_full_tensor(b);
    REQUIRE(x != NULL && y != NULL);
    mesh_shape s = mesh_tensor_shape(x), t = mesh_tensor_shape(y);
    REQUIRE(s.ndim == t.ndim && memcmp(s.dim, t.dim, (size_t)s.ndim * sizeof s.dim[0]) == 0);
    for (int64_t i = 0; i < numel(x); i++) {
        REQUIRE_NEAR(element(x, i), element(y, i), TOLERANCE);
    }
    return 0;
}

static long long n_collectives(void)
{
    long long n = 0;
    for (int kind = MESH_COMM_ALL_REDUCE; kind <= MESH_COMM_BARRIER; kind++) {
        n += (long long)mesh_comm_count((mesh_comm_kind)kind);
    }
    return n;
}

static mesh_dtensor *random(mesh_device_mesh *m, mesh_shape s, mesh_placements p, uint64_t seed)
{
    return mesh_randn_opt(
        s, m, p, &(mesh_factory_options){ .size = sizeof(mesh_factory_options), .dtype = MESH_F64, .seed = seed });
}

/* --- views -------------------------------------------------------------------------------------------------------- */

static bool lies(mesh_dtensor *x, mesh_placements p)
{
    return x != NULL && mesh_placements_equal(mesh_placements_of(x), p);
}

/* Tokens of sequences, spread over the sequence: what runs on [tokens, features] does not have to know. */
static int tokens(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_of(1, 4);
    mesh_dtensor *x = mesh_requires_grad(random(m, MESH_SHAPE(3, 8, 5), ON(S(1)), 1), true);
    mesh_dtensor *w = mesh_requires_grad(random(m, MESH_SHAPE(6, 5), ON(R), 2), true);
    mesh_comm_reset();
    mesh_dtensor *flat = mesh_view(x, MESH_SHAPE(24, 5));
    REQUIRE(lies(flat, ON(SS(0, 3))));
    mesh_dtensor *h = mesh_mul_scalar(mesh_relu(mesh_linear(flat, w, NULL)), 2);
    REQUIRE(lies(h, ON(SS(0, 3))));
    mesh_dtensor *y = mesh_view(mesh_add(h, h), MESH_SHAPE(3, 8, 6));
    REQUIRE(lies(y, ON(S(1))) && n_collectives() == 0);

    mesh_dtensor *x1 = mesh_requires_grad(random(m, MESH_SHAPE(3, 8, 5), ON(R), 1), true);
    mesh_dtensor *w1 = mesh_requires_grad(random(m, MESH_SHAPE(6, 5), ON(R), 2), true);
    mesh_dtensor *h1 = mesh_mul_scalar(mesh_relu(mesh_linear(mesh_view(x1, MESH_SHAPE(24, 5)), w1, NULL)), 2);
    mesh_dtensor *y1 = mesh_view(mesh_add(h1, h1), MESH_SHAPE(3, 8, 6));
    REQUIRE_OK(same_values(y, y1));
    REQUIRE(mesh_backward(mesh_sum(mesh_mul(y, y))) == 0 && mesh_backward(mesh_sum(mesh_mul(y1, y1))) == 0);
    REQUIRE(lies(mesh_grad(x), ON(S(1))));
    REQUIRE_OK(same_values(mesh_grad(x), mesh_grad(x1)));
    return same_values(mesh_grad(w), mesh_grad(w1));
}

START_TEST(a_view_of_an_inner_shard_is_strided_and_layers_keep_it)
{
    ranks_run(4, tokens, NULL);
}
END_TEST

struct view {
    mesh_shape mesh, from, to;
    mesh_placements in, out; /* out.n 0: not as a view */
};

static const struct view views[] = {
    { { 1, { 4 } }, { 2, { 2, 8 } }, { 1, { 16 } }, { 1, { S_(1) } }, { 1, { SS_(0, 2) } } },
    { { 1, { 4 } }, { 1, { 16 } }, { 2, { 2, 8 } }, { 1, { SS_(0, 2) } }, { 1, { S_(1) } } },
    { { 1, { 4 } }, { 1, { 16 } }, { 3, { 2, 2, 4 } }, { 1, { SS_(0, 4) } }, { 1, { S_(2) } } },
    { { 1, { 4 } }, { 3, { 2, 3, 8 } }, { 2, { 6, 8 } }, { 1, { S_(2) } }, { 1, { S_(1) } } },
    { { 1, { 4 } }, { 3, { 2, 3, 8 } }, { 2, { 2, 24 } }, { 1, { S_(2) } }, { 1, { SS_(1, 3) } } },
    { { 1, { 4 } }, { 3, { 2, 3, 8 } }, { 1, { 48 } }, { 1, { S_(2) } }, { 1, { SS_(0, 6) } } },
    { { 1, { 4 } }, { 2, { 2, 24 } }, { 1, { 48 } }, { 1, { SS_(1, 3) } }, { 1, { SS_(0, 6) } } },
    { { 1, { 4 } }, { 2, { 3, 6 } }, { 1, { 18 } }, { 1, { S_(1) } }, { 1, { SS_(0, 3) } } }, /* 2 2 2 0 of each 6 */
    { { 1, { 4 } }, { 2, { 5, 2 } }, { 2, { 1, 10 } }, { 1, { S_(0) } }, { 0, { R_ } } },     /* rows 2 2 1 0 */
    { { 1, { 4 } }, { 2, { 12, 8 } }, { 2, { 16, 6 } }, { 1, { S_(1) } }, { 0, { R_ } } },
    { { 2, { 2, 2 } }, { 2, { 4, 8 } }, { 1, { 32 } }, { 2, { S_(0), S_(1) } }, { 2, { S_(0), SS_(0, 2) } } },
    { { 2, { 2, 2 } }, { 2, { 4, 8 } }, { 1, { 32 } }, { 2, { S_(1), S_(0) } }, { 2, { SS_(0, 4), S_(0) } } },
    { { 2, { 2, 2 } }, { 2, { 4, 8 } }, { 1, { 32 } }, { 2, { S_(1), S_(1) } }, { 2, { SS_(0, 4), SS_(0, 4) } } },
    { { 2, { 2, 2 } }, { 1, { 32 } }, { 2, { 4, 8 } }, { 2, { SS_(0, 4), S_(0) } }, { 2, { S_(1), S_(0) } } },
};

static int see(void *arg)
{
    const struct view *v = arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", v->mesh, NULL);
    mesh_dtensor *x = random(m, v->from, v->in, 3), *whole = random(m, v->from, everywhere(m, R), 3);
    mesh_comm_reset();
    if (v->out.n > 0) {
        mesh_dtensor *y = mesh_view(x, v->to);
        REQUIRE(lies(y, v->out) && n_collectives() == 0);
        REQUIRE_OK(same_values(y, mesh_view(whole, v->to)));
        return 0;
    }
    mesh_scope *scope = mesh_scope_begin();
    REQUIRE(mesh_view(x, v->to) == NULL && n_collectives() == 0);
    REQUIRE(mesh_scope_end(scope) == MESH_EPLACEMENT);
    return same_values(mesh_reshape(x, v->to), mesh_reshape(whole, v->to));
}

START_TEST(a_view_has_the_layout_of_the_table_and_sends_nothing)
{
    struct view v = views[_i];
    ranks_run(4, see, &v);
}
END_TEST

/* v143: rows 2 2 2 0 of 256 are not the 384 elements each that the result is cut into. */
static int uneven_rows(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_of(1, 4);
    mesh_dtensor *x = mesh_requires_grad(random(m, MESH_SHAPE(6, 256), ON(S(0)), 4), true);
    mesh_comm_reset();
    mesh_dtensor *y = mesh_reshape(x, MESH_SHAPE(1536));
    REQUIRE(lies(y, ON(S(0))) && mesh_tensor_shape(mesh_to_local(y)).dim[0] == 384);
    int64_t bytes = (int64_t)mesh_comm_bytes(MESH_COMM_ALL_TO_ALL);
    REQUIRE(n_collectives() == 1 && mesh_comm_count(MESH_COMM_ALL_TO_ALL) == 1);
    REQUIRE_OK(same_values(y, mesh_reshape(random(m, MESH_SHAPE(6, 256), ON(R), 4), MESH_SHAPE(1536))));
    REQUIRE_OK(mesh_all_reduce(&bytes, 1, MESH_I64, MESH_SUM, mesh_world()));
    REQUIRE(bytes == 8 * (128 + 256 + 384));
    REQUIRE(mesh_backward(mesh_sum(mesh_mul(y, y))) == 0);
    return same_values(mesh_grad(x), mesh_mul_scalar(x, 2));
}

START_TEST(a_reshape_keeps_the_dim_split_and_moves_only_what_must)
{
    ranks_run(4, uneven_rows, NULL);
}
END_TEST

/* --- operators ---------------------------------------------------------------------------------------------------- */

static mesh_dtensor *other(mesh_dtensor *x)
{
    return random(mesh_device_mesh_of(x), MESH_SHAPE(8, 6), everywhere(mesh_device_mesh_of(x), S(0)), 7);
}

static mesh_dtensor *square(mesh_dtensor *x)
{
    return random(mesh_device_mesh_of(x), MESH_SHAPE(6, 8), everywhere(mesh_device_mesh_of(x), R), 8);
}

static mesh_dtensor *places(mesh_dtensor *x)
{
    return mesh_cast(mesh_arange_opt(0, 5, 1, mesh_device_mesh_of(x), everywhere(mesh_device_mesh_of(x), R), NULL),
                     MESH_I64);
}

/* The classes of x's rows. */
static mesh_dtensor *classes(mesh_dtensor *x)
{
    mesh_device_mesh *m = mesh_device_mesh_of(x);
    return mesh_randint(MESH_SHAPE(8), 0, 6, m, everywhere(m, R), .seed = 9);
}

/* What a row of each class counts. */
static mesh_dtensor *counts(mesh_dtensor *x)
{
    mesh_device_mesh *m = mesh_device_mesh_of(x);
    return mesh_linspace(1, 3, 6, m, everywhere(m, R), .dtype = MESH_F64);
}

static mesh_dtensor *top(mesh_dtensor *x)
{
    mesh_dtensor *values = NULL, *indices = NULL;
    mesh_topk(x, 2, 0, &values, &indices);
    return values;
}

static mesh_dtensor *sorted(mesh_dtensor *x)
{
    mesh_dtensor *values = NULL, *indices = NULL;
    mesh_sort(x, 1, true, &values, &indices);
    return values;
}

static mesh_dtensor *second_piece(mesh_dtensor *x)
{
    mesh_dtensor *pieces[4] = { NULL };
    return mesh_split(x, 3, 0, pieces, 4) < 0 ? NULL : pieces[1];
}

// clang-format off
static mesh_dtensor *do_add(mesh_dtensor *x)       { return mesh_add(x, other(x)); }
static mesh_dtensor *do_mul_self(mesh_dtensor *x)  { return mesh_mul(x, x); }
static mesh_dtensor *do_tanh(mesh_dtensor *x)      { return mesh_tanh(x); }
static mesh_dtensor *do_matmul(mesh_dtensor *x)    { return mesh_matmul(x, square(x)); }
static mesh_dtensor *do_matmul_in(mesh_dtensor *x) { return mesh_matmul(square(x), x); }
static mesh_dtensor *do_transpose(mesh_dtensor *x) { return mesh_transpose(x, 0, 1); }
static mesh_dtensor *do_sum(mesh_dtensor *x)       { return mesh_sum(x, .dims = MESH_SHAPE(0)); }
static mesh_dtensor *do_mean(mesh_dtensor *x)      { return mesh_mean(x, .dims = MESH_SHAPE(1)); }
static mesh_dtensor *do_amax(mesh_dtensor *x)      { return mesh_amax(x, .dims = MESH_SHAPE(0)); }
static mesh_dtensor *do_var(mesh_dtensor *x)       { return mesh_var(x, 1, .dims = MESH_SHAPE(0)); }
static mesh_dtensor *do_norm(mesh_dtensor *x)      { return mesh_norm(x, 2, .dims = MESH_SHAPE(1)); }
static mesh_dtensor *do_softmax0(mesh_dtensor *x)  { return mesh_softmax(x, 0); }
static mesh_dtensor *do_softmax1(mesh_dtensor *x)  { return mesh_log_softmax(x, 1); }
static mesh_dtensor *do_logsumexp(mesh_dtensor *x) { return mesh_logsumexp(x, .dims = MESH_SHAPE(0)); }
static mesh_dtensor *do_cumsum(mesh_dtensor *x)    { return mesh_cumsum(x, 0); }
static mesh_dtensor *do_layer_norm(mesh_dtensor *x) { return mesh_layer_norm(x, 1, NULL, NULL, 1e-5); }
static mesh_dtensor *do_narrow(mesh_dtensor *x)    { return mesh_narrow(x, 0, 2, 5); }
static mesh_dtensor *do_select(mesh_dtensor *x)    { return mesh_select(x, 0, 5); }
static mesh_dtensor *do_roll(mesh_dtensor *x)      { return mesh_roll(x, 3, 0); }
static mesh_dtensor *do_flip(mesh_dtensor *x)      { return mesh_flip(x, MESH_SHAPE(0, 1)); }
static mesh_dtensor *do_pad(mesh_dtensor *x)       { return mesh_pad(x, MESH_SHAPE(1, 2, 0, 3), 0.5); }
static mesh_dtensor *do_cat(mesh_dtensor *x)       { return mesh_cat((mesh_dtensor *[]){ x, other(x), x }, 3, 0); }
static mesh_dtensor *do_stack(mesh_dtensor *x)     { return mesh_stack((mesh_dtensor *[]){ x, other(x) }, 2, 1); }
static mesh_dtensor *do_tril(mesh_dtensor *x)      { return mesh_tril(x, 1); }
static mesh_dtensor *do_take(mesh_dtensor *x)      { return mesh_index_select(x, places(x), 0); }
static mesh_dtensor *do_repeat(mesh_dtensor *x)    { return mesh_repeat(x, MESH_SHAPE(2, 3)); }
static mesh_dtensor *do_expand(mesh_dtensor *x)    { return mesh_expand(mesh_unsqueeze(x, 0), MESH_SHAPE(3, 8, 6)); }
static mesh_dtensor *do_reshape(mesh_dtensor *x)   { return mesh_reshape(x, MESH_SHAPE(4, 12)); }
static mesh_dtensor *do_argmax(mesh_dtensor *x)    { return mesh_argmax(x, .dims = MESH_SHAPE(0)); }
static mesh_dtensor *do_mse(mesh_dtensor *x)       { return mesh_mse_loss(x, other(x), MESH_REDUCTION_MEAN); }
static mesh_dtensor *do_loss(mesh_dtensor *x)      { return mesh_cross_entropy(x, classes(x)); }
static mesh_dtensor *do_loss_rows(mesh_dtensor *x)
{
    return mesh_cross_entropy(x, classes(x), .reduction = MESH_REDUCTION_NONE, .label_smoothing = 0.1);
}
static mesh_dtensor *do_loss_weighted(mesh_dtensor *x) { return mesh_cross_entropy(x, classes(x), .weight = counts(x)); }
static mesh_dtensor *do_nll(mesh_dtensor *x)       { return mesh_nll_loss(x, classes(x)); }
static mesh_dtensor *do_nll_rows(mesh_dtensor *x)  { return mesh_nll_loss(x, classes(x), .reduction = MESH_REDUCTION_NONE); }
// clang-format on

struct operator
{
    const char *name;
    mesh_dtensor *(*of)(mesh_dtensor * x);
    bool is_constant; /* no gradient */
};

static const struct operator operators[] = {
    { "add", do_add, false },
    { "mul", do_mul_self, false },
    { "tanh", do_tanh, false },
    { "matmul", do_matmul, false },
    { "matmul_in", do_matmul_in, false },
    { "transpose", do_transpose, false },
    { "sum", do_sum, false },
    { "mean", do_mean, false },
    { "amax", do_amax, false },
    { "var", do_var, false },
    { "norm", do_norm, false },
    { "softmax along", do_softmax0, false },
    { "log_softmax", do_softmax1, false },
    { "logsumexp", do_logsumexp, false },
    { "cumsum", do_cumsum, false },
    { "layer_norm", do_layer_norm, false },
    { "narrow", do_narrow, false },
    { "select", do_select, false },
    { "roll", do_roll, false },
    { "flip", do_flip, false },
    { "pad", do_pad, false },
    { "cat", do_cat, false },
    { "stack", do_stack, false },
    { "tril", do_tril, false },
    { "take", do_take, false },
    { "repeat", do_repeat, false },
    { "expand", do_expand, false },
    { "reshape", do_reshape, false },
    { "topk", top, false },
    { "sort", sorted, false },
    { "split", second_piece, false },
    { "argmax", do_argmax, true },
    { "mse", do_mse, false },
    { "cross_entropy", do_loss, false },
    { "cross_entropy of rows", do_loss_rows, false },
    { "cross_entropy, weighted", do_loss_weighted, false },
    { "nll_loss", do_nll, false },
    { "nll_loss of rows", do_nll_rows, false },
};

static const struct {
    int rows, columns;
    mesh_placements p;
} layouts[] = {
    { 1, 4, { 1, { SS_(0, 2) } } },
    { 1, 4, { 1, { SS_(0, 3) } } },
    { 1, 4, { 1, { SS_(1, 2) } } },
    { 2, 2, { 2, { SS_(0, 2), S_(0) } } },
    { 2, 2, { 2, { S_(0), SS_(0, 2) } } },
    { 2, 2, { 2, { SS_(0, 4), S_(1) } } },
    { 2, 2, { 2, { SS_(1, 3), SS_(0, 2) } } },
    { 2, 2, { 2, { R_, SS_(0, 2) } } },
};

static int try_operator(mesh_device_mesh *m, const struct operator* op, mesh_placements p)
{
    mesh_dtensor *x = mesh_requires_grad(random(m, MESH_SHAPE(8, 6), p, 5), !op->is_constant);
    mesh_dtensor *whole = mesh_requires_grad(random(m, MESH_SHAPE(8, 6), everywhere(m, R), 5), !op->is_constant);
    mesh_dtensor *y = op->of(x), *y1 = op->of(whole);
    REQUIRE_OK(same_values(y, y1));
    if (!op->is_constant) {
        REQUIRE(mesh_backward(mesh_sum(mesh_mul(y, y))) == 0 && mesh_backward(mesh_sum(mesh_mul(y1, y1))) == 0);
        REQUIRE_OK(same_values(mesh_grad(x), mesh_grad(whole)));
    }
    return 0;
}

static int all_operators(void *arg)
{
    int k = *(int *)arg;
    mesh_device_mesh *m = mesh_of(layouts[k].rows, layouts[k].columns);
    for (size_t i = 0; i < ARRAY_SIZE(operators); i++) {
        mesh_scope *scope = mesh_scope_begin();
        char text[96];
        int r = try_operator(m, &operators[i], layouts[k].p);
        if (r < 0 || mesh_scope_end(scope) < 0) {
            return ranks_complain(__FILE__, __LINE__, "%s of %s: %s; %s", operators[i].name,
                                  mesh_placements_text(layouts[k].p, text, sizeof text), ranks_complaint(),
                                  mesh_last_error()->message);
        }
    }
    return 0;
}

START_TEST(operators_are_right_on_strided_shards_and_so_are_their_gradients)
{
    ranks_run(4, all_operators, &_i);
}
END_TEST

/* Rows that a rank has, however they are strewn, are looked at where they are. */
static int losses_stay(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_of(1, 4);
    mesh_dtensor *x = mesh_requires_grad(random(m, MESH_SHAPE(8, 6), ON(SS(0, 2)), 5), true);
    mesh_comm_reset();
    mesh_dtensor *rows[] = { do_loss_rows(x), do_nll_rows(x) };
    for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
        REQUIRE(rows[k] != NULL && mesh_placements_equal(mesh_placements_of(rows[k]), ON(SS(0, 2))));
        REQUIRE(mesh_backward(mesh_sum(rows[k])) == 0 && n_collectives() == 0);
    }
    REQUIRE(mesh_backward(do_loss(x)) == 0 && n_collectives() == 1); /* of the sum and the number of rows */
    return 0;
}

START_TEST(a_loss_of_strided_rows_moves_none_of_them)
{
    ranks_run(4, losses_stay, NULL);
}
END_TEST

/* Rank 3 has the rows 3 and 7; there is no class 7. */
static int bad_target(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_of(1, 4);
    mesh_dtensor *x = random(m, MESH_SHAPE(8, 7), ON(SS(0, 2)), 5);
    mesh_dtensor *t = mesh_arange(0, 8, 1, m, ON(SS(0, 2)), .dtype = MESH_I64);
    mesh_scope *s = mesh_scope_begin();
    mesh_cross_entropy(x, t);
    REQUIRE(mesh_scope_end(s) == (mesh_rank() == 3 ? MESH_EINVAL : MESH_EABORTED));
    REQUIRE(strstr(mesh_last_error()->message, "row 7 is 7") != NULL);
    return 0;
}

START_TEST(a_bad_target_of_strided_rows_is_named_by_its_row_in_the_whole)
{
    ranks_run(4, bad_target, NULL);
}
END_TEST

/* --- making them -------------------------------------------------------------------------------------------------- */

static int fill_by_index(void *data, mesh_shape offset, mesh_shape extent, void *arg)
{
    (void)arg;
    for (int64_t i = 0; i < extent.dim[0]; i++) {
        for (int64_t j = 0; j < extent.dim[1]; j++) {
            ((double *)data)[i * extent.dim[1] + j] = (double)((offset.dim[0] + i) * 6 + offset.dim[1] + j);
        }
    }
    return 0;
}

static int make(void *arg)
{
    int k = *(int *)arg;
    mesh_placements p = layouts[k].p;
    mesh_device_mesh *m = mesh_of(layouts[k].rows, layouts[k].columns);
    mesh_dtensor *whole = random(m, MESH_SHAPE(8, 6), everywhere(m, R), 9);
    mesh_dtensor *x = random(m, MESH_SHAPE(8, 6), p, 9);
    REQUIRE_OK(same_values(x, whole));
    REQUIRE_OK(same_values(mesh_distribute_tensor(mesh_to_local(whole), m, p), whole));
    REQUIRE_OK(same_values(mesh_distribute_same(mesh_to_local(whole), m, p), whole));
    mesh_tensor *part = mesh_to_local(x);
    REQUIRE_OK(same_values(mesh_from_local(part, m, p), whole));
    REQUIRE_OK(same_values(mesh_from_local(part, m, p, .shape = MESH_SHAPE(8, 6), .unchecked = true), whole));
    mesh_dtensor *made = mesh_make_from_callback(MESH_SHAPE(8, 6), m, p, fill_by_index, NULL, .dtype = MESH_F64);
    mesh_dtensor *counted = mesh_arange(0, 48, 1, m, everywhere(m, R), .dtype = MESH_F64);
    REQUIRE_OK(same_values(made, mesh_view(counted, MESH_SHAPE(8, 6))));
    REQUIRE_OK(same_values(mesh_uniform_(x, 0, 1, 11), mesh_uniform_(whole, 0, 1, 11)));
    mesh_shape shape, offset;
    REQUIRE(mesh_compute_local_shape_and_offset(MESH_SHAPE(8, 6), m, p, NULL, &shape, &offset) == 0);
    REQUIRE(shape.dim[0] == mesh_tensor_shape(part).dim[0] && shape.dim[1] == mesh_tensor_shape(part).dim[1]);
    return 0;
}

START_TEST(strided_shards_are_made_as_others_are)
{
    ranks_run(4, make, &_i);
}
END_TEST

static int looks(void *arg)
{
    (void)arg;
    char text[400];
    mesh_device_mesh *m = mesh_of(1, 2);
    mesh_dtensor *x = mesh_zeros(MESH_SHAPE(8), m, ON(SS(-1, 2)));
    REQUIRE(strcmp(mesh_placements_text(mesh_placements_of(x), text, sizeof text), "[_S(0, 2)]") == 0);
    REQUIRE(mesh_visualize_sharding(x, text, sizeof text) > 0 && strstr(text, "0:2  2:4  4:6  6:8") != NULL);
    REQUIRE(strstr(text, "0    1    0    1") != NULL);
    REQUIRE(lies(mesh_zeros(MESH_SHAPE(8), m, ON(SS(0, 1))), ON(S(0)))); /* one chunk is no stride */
    REQUIRE(!mesh_placements_equal(ON(SS(0, 2)), ON(S(0))) && !mesh_placements_equal(ON(SS(0, 2)), ON(SS(0, 3))));
    mesh_scope *scope = mesh_scope_begin();
    REQUIRE(mesh_zeros(MESH_SHAPE(8), m, ON(SS(0, 0))) == NULL && mesh_scope_end(scope) == MESH_EINVAL);
    return 0;
}

START_TEST(strided_shards_are_printed_compared_and_drawn)
{
    ranks_run(2, looks, NULL);
}
END_TEST

/* The last dim is repeated and split; the strided one in front of it only moves on. */
static int repeats(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_of(2, 2);
    mesh_dtensor *x = mesh_randn(MESH_SHAPE(8, 2), m, ON(R, R), .dtype = MESH_F64, .seed = 1);
    mesh_dtensor *y = mesh_repeat(mesh_redistribute(x, ON(SS(0, 2), S(1))), MESH_SHAPE(3, 1, 3));
    REQUIRE(lies(y, ON(SS(1, 2), S(2))));
    return same_values(y, mesh_repeat(x, MESH_SHAPE(3, 1, 3)));
}

START_TEST(a_repeat_into_more_dims_takes_strided_shards_along)
{
    ranks_run(4, repeats, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("strided shards");
    TCase *t = tcase_create("strided shards");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_view_of_an_inner_shard_is_strided_and_layers_keep_it);
    tcase_add_loop_test(t, a_view_has_the_layout_of_the_table_and_sends_nothing, 0, (int)ARRAY_SIZE(views));
    tcase_add_test(t, a_reshape_keeps_the_dim_split_and_moves_only_what_must);
    tcase_add_test(t, a_loss_of_strided_rows_moves_none_of_them);
    tcase_add_test(t, a_bad_target_of_strided_rows_is_named_by_its_row_in_the_whole);
    tcase_add_loop_test(t, operators_are_right_on_strided_shards_and_so_are_their_gradients, 0,
                        (int)ARRAY_SIZE(layouts));
    tcase_add_loop_test(t, strided_shards_are_made_as_others_are, 0, (int)ARRAY_SIZE(layouts));
    tcase_add_test(t, strided_shards_are_printed_compared_and_drawn);
    tcase_add_test(t, a_repeat_into_more_dims_takes_strided_shards_along);
    suite_add_tcase(s, t);
    return s;
}
