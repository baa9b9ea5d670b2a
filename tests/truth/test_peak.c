/* tests/truth/test_peak.c - the memory that each row of ops.def takes: inputs, outputs and the scratch that
 * tensor/scratch.def states.
 *
 * Each sample is tried larger, so that a copy of an input or output would show; then once more in f16, where the row
 * takes it.  The kernel alone is measured, the operator as a program calls it, and its gradient, on one rank.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "autograd/apply.h"
#include "autograd/grads.h"
#include "base/alloc.h"
#include "base/dtype.h"
#include "base/util.h"
#include "harness/check_main.h"
#include "harness/ranks.h"
#include "tensor/scratch.h"
#include "tensor/shape.h"
#include "truth/large.h"

#define LARGE 8192 /* bytes of a tensor from which on a copy of it shows beside the slack */

static struct kernel_call call_of(const struct trial *t)
{
    struct kernel_call c = { .attr = &t->shapes.attr };
    for (int i = 0; i < t->sample->n_in; i++) {
        c.in[i] = t->in[i];
    }
    for (int o = 0; o < t->op->n_out; o++) {
        c.out[o] = t->out[o];
    }
    return c;
}

static const char *in_words(const struct trial *t, char *buf, size_t cap)
{
    char shape[SHAPE_TEXT_BYTES];
    (void)snprintf(buf, cap, "%s %s of %s", t->op->name, shape_text(t->in[0]->shape, shape, sizeof shape),
                   dtype_name(t->in[0]->dtype));
    return buf;
}

START_TEST(a_kernel_takes_the_scratch_that_is_stated)
{
    struct sample large = sample_largest(&samples[_i]);
    struct trial t;
    char words[200];
    trial_init(&t, &large, 1);
    struct kernel_call c = call_of(&t);
    size_t stated = kernel_scratch(t.op->kernel, &c), before = mem_in_use();
    mem_peak_reset();
    ck_assert_int_eq(kernel_run(t.op->kernel, &c), 0);
    size_t taken = mem_peak() - before;
    ck_assert_msg(taken <= with_slack(stated), "%s takes %zu bytes, stated are %zu (%s)",
                  in_words(&t, words, sizeof words), taken, stated, kernel_scratch_words(t.op->kernel));
    ck_assert_uint_eq(mem_in_use(), before);
    trial_fini(&t);
}
END_TEST

/* --- as a program calls it ---------------------------------------------------------------------------------------- */

static size_t bytes_of(struct mesh_tensor *const *t, int n)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++) {
        bytes += t[i] != NULL ? tensor_bytes(t[i]) : 0;
    }
    return bytes;
}

static int apply_measured(const struct trial *t, mesh_device_mesh *m, size_t *ret_taken)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { NULL }, *out[OP_MAX_OUTPUTS] = { NULL };
    mesh_placements whole = MESH_PLACEMENTS(mesh_replicate());
    for (int i = 0; i < t->sample->n_in; i++) {
        in[i] = dtensor_new(m, t->in[i]->shape, t->in[i]->dtype, &whole, tensor_ref(t->in[i]));
    }
    size_t before = mem_in_use();
    mem_peak_reset();
    REQUIRE(op_apply(t->sample->op, in, &t->sample->attr, out) == 0);
    *ret_taken = mem_peak() - before;
    return 0;
}

static int apply_largest(void *arg)
{
    struct sample large = sample_largest(arg);
    struct trial t;
    size_t first, taken;
    char words[200];
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(1), NULL);
    mesh_scope *scope = mesh_scope_begin();
    trial_init(&t, &large, 1);
    struct kernel_call c = call_of(&t);
    REQUIRE_OK(apply_measured(&t, m, &first)); /* makes the cached choice, which stays */
    REQUIRE_OK(apply_measured(&t, m, &taken));
    size_t most = with_slack(bytes_of(t.out, t.op->n_out) + kernel_scratch(t.op->kernel, &c));
    if (taken > most) {
        return ranks_complain(__FILE__, __LINE__, "%s takes %zu bytes, results and scratch are %zu",
                              in_words(&t, words, sizeof words), taken, most);
    }
    trial_fini(&t);
    return mesh_scope_end(scope);
}

START_TEST(an_operator_takes_its_results_and_the_scratch_that_is_stated)
{
    struct sample s = samples[_i];
    ranks_run(1, apply_largest, &s);
}
END_TEST

/* An image whose windows are 22 MiB. */
static const struct large_image {
    kernel_fn kernel;
    mesh_shape in[2], out;
} large_images[] = {
    { k_conv2d, { { 4, { 1, 4, 512, 300 } }, { 4, { 2, 4, 3, 3 } } }, { 4, { 1, 2, 512, 300 } } },
    { k_conv2d_grad_input, { { 4, { 1, 2, 512, 300 } }, { 4, { 2, 4, 3, 3 } } }, { 4, { 1, 4, 512, 300 } } },
    { k_conv2d_grad_weight, { { 4, { 1, 2, 512, 300 } }, { 4, { 1, 4, 512, 300 } } }, { 4, { 2, 4, 3, 3 } } },
};

START_TEST(the_scratch_of_a_convolution_does_not_grow_with_the_image)
{
    const struct large_image *k = &large_images[_i];
    struct op_attr attr = { .dim = { 1, 1 }, .index = { 1, 1 }, .groups = 1, .dilation = { 1, 1 } };
    struct mesh_tensor *out = tensor_new(k->out, MESH_F32);
    struct kernel_call c = { .in = { tensor_new_zeroed(k->in[0], MESH_F32), tensor_new_zeroed(k->in[1], MESH_F32) },
                             .out = { out },
                             .attr = &attr };
    size_t before = mem_in_use();
    mem_peak_reset();
    ck_assert_int_eq(kernel_run(k->kernel, &c), 0);
    ck_assert_uint_le(mem_peak() - before, with_slack((size_t)4 << 20));
    ck_assert_uint_le(kernel_scratch(k->kernel, &c), (size_t)4 << 20);
    tensor_unref((struct mesh_tensor *)c.in[0]);
    tensor_unref((struct mesh_tensor *)c.in[1]);
    tensor_unref(out);
}
END_TEST

/* --- the way back ------------------------------------------------------------------------------------------------- */

/* In tensors of the size of the row's largest, beside the gradients it gives: 1 but for these. */
static const struct held {
    enum op_id op;
    int most;
} held[] = {
#define HELD(op, most) { OP_##op, most },
#include "truth/gradient_peak.def"
};

static int most_held(enum op_id op)
{
    for (size_t i = 0; i < ARRAY_SIZE(held); i++) {
        if (held[i].op == op) {
            return held[i].most;
        }
    }
    return 1;
}

struct way_back { /* a row applied to leaves that require gradients */
    mesh_dtensor *in[OP_MAX_INPUTS], *out[OP_MAX_OUTPUTS], *dy;
    size_t given, largest; /* bytes of the gradients, and of the largest tensor */
};

static int way_back_init(const struct trial *t, mesh_device_mesh *m, struct way_back *w)
{
    mesh_placements whole = MESH_PLACEMENTS(mesh_replicate());
    for (int i = 0; i < t->sample->n_in; i++) {
        size_t bytes = tensor_bytes(t->in[i]);
        w->in[i] = dtensor_new(m, t->in[i]->shape, t->in[i]->dtype, &whole, tensor_ref(t->in[i]));
        w->in[i]->requires_grad = dtype_kind(t->in[i]->dtype) == DTYPE_FLOAT && !sample_is_index(t->sample, i);
        w->given += w->in[i]->requires_grad ? bytes : 0;
        w->largest = MAX(w->largest, bytes);
    }
    w->largest = MAX(w->largest, tensor_bytes(t->out[0]));
    REQUIRE(ag_apply(t->sample->op, w->in, &t->shapes.attr, w->out) == 0);
    w->dy = mesh_ones_like(w->out[0]);
    REQUIRE(w->dy != NULL);
    return 0;
}

static int go_back(const struct trial *t, mesh_device_mesh *m, bool is_measured)
{
    struct way_back w = { .given = 0 };
    char words[200];
    mesh_scope *scope = mesh_scope_begin();
    REQUIRE_OK(way_back_init(t, m, &w));
    size_t before = mem_in_use();
    mem_peak_reset();
    REQUIRE(!w.out[0]->requires_grad || mesh_backward_from(w.out[0], w.dy) == 0);
    size_t taken = mem_peak() - before, most = with_slack(w.given + (size_t)most_held(t->sample->op) * w.largest +
                                                          w.largest / 16); /* numbers per line */
    if (is_measured && taken > most) {
        return ranks_complain(__FILE__, __LINE__, "gradient of %s holds %zu bytes, stated are %zu",
                              in_words(t, words, sizeof words), taken, most);
    }
    return mesh_scope_end(scope);
}

static int there_and_back(void *arg)
{
    struct sample large = sample_largest(arg);
    struct trial t;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(1), NULL);
    if (large.op == OP_cast) {
        large.attr.index[0] = large.dtype[0] != 0 ? (int64_t)large.dtype[0] : (int64_t)MESH_F64; /* to go back to */
    }
    trial_init(&t, &large, 1);
    REQUIRE_OK(go_back(&t, m, false)); /* makes the cached choices, which stay */
    REQUIRE_OK(go_back(&t, m, true));
    trial_fini(&t);
    return 0;
}

START_TEST(a_gradient_holds_what_is_stated)
{
    struct sample s = samples[_i];
    if (gradient_of(s.op)->run != NULL) {
        ranks_run(1, there_and_back, &s);
    }
}
END_TEST

START_TEST(most_rows_are_tried_on_tensors_that_show_a_copy)
{
    int n_large = 0;
    for (int i = 0; i < n_samples; i++) {
        struct sample s = sample_largest(&samples[i]);
        n_large += shape_numel(s.in[0]) * 8 >= LARGE;
    }
    ck_assert_msg(n_large * 10 >= n_samples * 6, "%d of %d", n_large, n_samples);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("peak");
    TCase *t = tcase_create("peak");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_kernel_takes_the_scratch_that_is_stated, 0, n_samples);
    tcase_add_loop_test(t, an_operator_takes_its_results_and_the_scratch_that_is_stated, 0, n_samples);
    tcase_add_loop_test(t, the_scratch_of_a_convolution_does_not_grow_with_the_image, 0, (int)ARRAY_SIZE(large_images));
    tcase_add_loop_test(t, a_gradient_holds_what_is_stated, 0, n_samples);
    tcase_add_test(t, most_rows_are_tried_on_tensors_that_show_a_copy);
    suite_add_tcase(s, t);
    return s;
}
