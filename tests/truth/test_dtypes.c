/* tests/truth/test_dtypes.c - what a shape function lets through, its kernel can do: a rank that is not in the mesh
 * runs no kernel, and must refuse a dtype like the others.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "harness/check_main.h"
#include "truth/parts.h"
#include "truth/samples.h"

static int run_kernel(const struct sample *s, const struct op_shapes *shapes)
{
    struct mesh_tensor *in[OP_MAX_INPUTS] = { NULL }, *out[OP_MAX_OUTPUTS] = { NULL };
    struct kernel_call call = { .attr = &shapes->attr };
    for (int i = 0; i < s->n_in; i++) {
        call.in[i] = in[i] = tensor_new(shapes->in[i], shapes->in_dtype[i]);
        memset(in[i]->data, 0, tensor_bytes(in[i]));
    }
    for (int o = 0; o < shapes->n_out; o++) {
        call.out[o] = out[o] = tensor_new(shapes->out[o], shapes->out_dtype[o]);
    }
    int r = kernel_run(op_table[s->op].kernel, &call);
    for (int i = 0; i < s->n_in; i++) {
        tensor_unref(in[i]);
    }
    for (int o = 0; o < shapes->n_out; o++) {
        tensor_unref(out[o]);
    }
    return r;
}

START_TEST(a_dtype_that_a_kernel_does_not_know_is_refused_before)
{
    for (mesh_dtype t = MESH_F32; t <= MESH_BOOL; t++) {
        struct sample s;
        if (sample_with_dtype(&samples[_i], t, &s)) {
            struct op_shapes shapes = sample_shapes(&s, 1);
            ck_assert_int_eq(op_table[s.op].shape(&shapes), 0);
            if (run_kernel(&s, &shapes) == MESH_EUNSUPPORTED) {
                ck_abort_msg("%s, dtype %d: %s", op_table[s.op].name, t, mesh_last_error()->message);
            }
        }
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("dtypes");
    TCase *c = tcase_create("dtypes");
    tcase_add_loop_test(c, a_dtype_that_a_kernel_does_not_know_is_refused_before, 0, n_samples);
    suite_add_tcase(s, c);
    return s;
}
