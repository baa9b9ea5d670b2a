/* tests/unit/tensor/test_optim.c - the SGD step against its formula, element by element over several steps.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <float.h>

#include "harness/tensors.h"

#define N_STEPS 3

static void check_sgd(mesh_dtype dtype, double momentum, double decay, bool nesterov)
{
    mesh_shape s = MESH_SHAPE(3, 7);
    struct mesh_tensor *p = test_tensor_rough(s, dtype, 1), *m = test_tensor_empty(s, dtype);
    struct mesh_tensor *want_p = test_tensor_empty(s, MESH_F64), *want_m = test_tensor_empty(s, MESH_F64);
    for (int64_t i = 0; i < p->n; i++) {
        set(want_p, i, get(p, i));
    }
    for (int step = 0; step < N_STEPS; step++) {
        struct mesh_tensor *g = test_tensor_rough(s, dtype, (uint64_t)step + 2);
        struct sgd_step sgd = { 0.1, momentum, decay, nesterov, step == 0 };
        ck_assert_int_eq(k_sgd_step(p, g, momentum == 0 ? NULL : m, &sgd), 0);
        for (int64_t i = 0; i < p->n; i++) {
            double slope = get(g, i) + decay * get(want_p, i);
            double v = step == 0 ? slope : momentum * get(want_m, i) + slope;
            set(want_m, i, v);
            set(want_p, i, get(want_p, i) - 0.1 * (momentum == 0 ? slope : nesterov ? slope + momentum * v : v));
            assert_element(p, i, get(want_p, i), dtype == MESH_F32 ? 8 * FLT_EPSILON : 64 * DBL_EPSILON);
        }
        tensor_unref(g);
    }
    tensors_unref(4, p, m, want_p, want_m);
}

START_TEST(sgd_follows_its_formula)
{
    for (int bits = 0; bits < 16; bits++) {
        check_sgd(bits & 1 ? MESH_F64 : MESH_F32, bits & 2 ? 0.9 : 0, bits & 4 ? 0.01 : 0, bits & 8);
    }
}
END_TEST

START_TEST(integers_have_no_gradient_step)
{
    struct mesh_tensor *p = test_tensor(MESH_SHAPE(2), MESH_I32, 1);
    ck_assert_int_eq(k_sgd_step(p, p, NULL, &(struct sgd_step){ .lr = 1 }), MESH_EUNSUPPORTED);
    tensor_unref(p);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("optim");
    TCase *t = tcase_create("optim");
    tcase_add_test(t, sgd_follows_its_formula);
    tcase_add_test(t, integers_have_no_gradient_step);
    suite_add_tcase(s, t);
    return s;
}
