/* tests/unit/tensor/test_conv.c - convolution and its gradients against loops over every index.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "harness/check_main.h"
#include "harness/tensors.h"

static const struct shape_case {
    int64_t n, c, h, w, o, kh, kw;
    int stride[2], padding[2], dilation[2], groups; /* 0: 1 */
} cases[] = {
    { 1, 1, 1, 1, 1, 1, 1, { 1, 1 }, { 0, 0 } },
    { 2, 3, 5, 4, 2, 3, 2, { 1, 1 }, { 0, 0 } },
    { 2, 2, 5, 7, 3, 3, 3, { 2, 3 }, { 1, 2 } },
    { 1, 2, 2, 2, 2, 4, 3, { 1, 1 }, { 1, 2 } },
    { 0, 2, 3, 3, 2, 2, 2, { 1, 1 }, { 0, 0 } },
    { 2, 0, 3, 3, 2, 2, 2, { 1, 1 }, { 0, 0 } },
    { 2, 2, 3, 3, 0, 2, 2, { 1, 1 }, { 0, 0 } },
    { 1, 2, 5, 6, 2, 2, 3, { 1, 2 }, { 1, 0 }, { 3, 2 } },
    { 2, 4, 4, 3, 6, 2, 2, { 1, 1 }, { 1, 0 }, { 1, 1 }, 2 },
    { 2, 3, 4, 5, 3, 2, 2, { 2, 1 }, { 0, 1 }, { 1, 2 }, 3 },
};

static int or_one(int n)
{
    return n == 0 ? 1 : n;
}

static int64_t at4(mesh_shape s, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return ((a * s.dim[1] + b) * s.dim[2] + c) * s.dim[3] + d;
}

/* Calls visit for every term of every sum: y[yi] += x[xi] w[wi]. */
struct term {
    int64_t x, w, y;
};
typedef void (*visit_fn)(const struct term *t, double *sum, const struct mesh_tensor *a, const struct mesh_tensor *b);

static void forward(const struct term *t, double *sum, const struct mesh_tensor *x, const struct mesh_tensor *w)
{
    sum[t->y] += get(x, t->x) * get(w, t->w);
}
static void by_input(const struct term *t, double *sum, const struct mesh_tensor *dy, const struct mesh_tensor *w)
{
    sum[t->x] += get(dy, t->y) * get(w, t->w);
}
static void by_weight(const struct term *t, double *sum, const struct mesh_tensor *dy, const struct mesh_tensor *x)
{
    sum[t->w] += get(dy, t->y) * get(x, t->x);
}

static void loop_window(const struct shape_case *k, const mesh_shape s[3], const int64_t at[5], visit_fn visit,
                        double *sum, const struct mesh_tensor *const in[2])
{
    int64_t per_group = k->c / or_one(k->groups), c = at[2] % (per_group > 0 ? per_group : 1);
    if (at[2] / (per_group > 0 ? per_group : 1) != at[1] / (k->o / or_one(k->groups))) {
        return; /* of another group */
    }
    for (int64_t p = 0; p < k->kh; p++) {
        for (int64_t q = 0; q < k->kw; q++) {
            int64_t i = at[3] * k->stride[0] + p * or_one(k->dilation[0]) - k->padding[0];
            int64_t j = at[4] * k->stride[1] + q * or_one(k->dilation[1]) - k->padding[1];
            if (i >= 0 && i < k->h && j >= 0 && j < k->w) {
                visit(&(struct term){ at4(s[0], at[0], at[2], i, j), at4(s[1], at[1], c, p, q),
                                      at4(s[2], at[0], at[1], at[3], at[4]) },
                      sum, in[0], in[1]);
            }
        }
    }
}

static void loop(const struct shape_case *k, const mesh_shape s[3], visit_fn visit, double *sum,
                 const struct mesh_tensor *const in[2])
{
    mesh_shape all = MESH_SHAPE(k->n, k->o, k->c, s[2].dim[2], s[2].dim[3]);
    for (int64_t i = 0; i < shape_numel(all); i++) {
        int64_t at[MESH_MAX_NDIM];
        index_of(all, i, at);
        loop_window(k, s, at, visit, sum, in);
    }
}

static int64_t places(const struct shape_case *k, int d)
{
    int64_t reach = ((d == 0 ? k->kh : k->kw) - 1) * or_one(k->dilation[d]) + 1;
    return ((d == 0 ? k->h : k->w) + 2 * k->padding[d] - reach) / k->stride[d] + 1;
}

static void check(const struct shape_case *k, mesh_dtype dtype)
{
    mesh_shape x = MESH_SHAPE(k->n, k->c, k->h, k->w), w = MESH_SHAPE(k->o, k->c / or_one(k->groups), k->kh, k->kw);
    mesh_shape y = MESH_SHAPE(k->n, k->o, places(k, 0), places(k, 1));
    const mesh_shape s[3] = { x, w, y };
    const struct {
        kernel_fn kernel;
        visit_fn visit;
        mesh_shape in[2], out;
    } kinds[] = { { k_conv2d, forward, { x, w }, y },
                  { k_conv2d_grad_input, by_input, { y, w }, x },
                  { k_conv2d_grad_weight, by_weight, { y, x }, w } };
    struct op_attr attr = { .dim = { k->stride[0], k->stride[1] },
                            .index = { k->padding[0], k->padding[1] },
                            .groups = or_one(k->groups),
                            .dilation = { or_one(k->dilation[0]), or_one(k->dilation[1]) } };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        double *sum = calloc((size_t)shape_numel(kinds[i].out) + 1, sizeof *sum);
        ck_assert_ptr_nonnull(sum);
        struct mesh_tensor *a = test_tensor(kinds[i].in[0], dtype, 1), *b = test_tensor(kinds[i].in[1], dtype, 2);
        struct mesh_tensor *out = test_tensor_empty(kinds[i].out, dtype);
        run_kernel(kinds[i].kernel, &(struct kernel_call){ .in = { a, b }, .out = { out }, .attr = &attr });
        loop(k, s, kinds[i].visit, sum, (const struct mesh_tensor *const[2]){ a, b });
        assert_values(out, 0, sum); /* quarters: every sum is exact */
        tensors_unref(3, a, b, out);
        free(sum);
    }
}
START_TEST(a_convolution_and_its_gradients_are_their_sums)
{
    check(&cases[_i], MESH_F32);
    check(&cases[_i], MESH_F64);
}
END_TEST

/* Where the windows of an image do not fit the scratch at once. */
START_TEST(an_image_of_many_tiles_is_convolved_the_same)
{
    static const struct shape_case large = { 1, 2, 190, 173, 2, 3, 3, { 1, 1 }, { 1, 2 } };
    check(&large, MESH_F32);
    check(&large, MESH_F64);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("conv");
    TCase *t = tcase_create("conv");
    tcase_add_loop_test(t, a_convolution_and_its_gradients_are_their_sums, 0, (int)(sizeof cases / sizeof cases[0]));
    tcase_add_test(t, an_image_of_many_tiles_is_convolved_the_same);
    suite_add_tcase(s, t);
    return s;
}
