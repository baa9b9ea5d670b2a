/* tests/world/test_sorting.c - sorts along a sharded dim: the bits and the order of equal elements are those of one process.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/util.h"
#include "harness/check_main.h"
#include "harness/ranks.h"

#define ON(...)    MESH_PLACEMENTS(__VA_ARGS__)
#define R          mesh_replicate()
#define S(d)       mesh_shard(d)
#define SHAPE(...) MESH_SHAPE(__VA_ARGS__)

static size_t bytes_of(mesh_tensor *t)
{
    mesh_shape s = mesh_tensor_shape(t);
    size_t n = dtype_size(mesh_tensor_dtype(t));
    for (int d = 0; d < s.ndim; d++) {
        n *= (size_t)s.dim[d];
    }
    return n;
}

static int same_bits(mesh_tensor *a, mesh_tensor *b)
{
    REQUIRE(a != NULL && b != NULL && mesh_tensor_dtype(a) == mesh_tensor_dtype(b) && bytes_of(a) == bytes_of(b));
    REQUIRE(memcmp(mesh_tensor_data(a), mesh_tensor_data(b), bytes_of(a)) == 0);
    return 0;
}

/* Few different numbers (every one a hundred times), or many; -0, infinities and NaN among them when they are floats. */
static mesh_dtensor *mixture(mesh_device_mesh *m, mesh_shape s, mesh_dtype t, int n_different, mesh_placements p)
{
    mesh_placements whole = p;
    for (int i = 0; i < p.n; i++) {
        whole.at[i] = R;
    }
    mesh_dtensor *x = mesh_rand(s, m, whole, .dtype = MESH_F64, .seed = 7);
    double *at = mesh_tensor_data(mesh_to_local(x)), n = (double)n_different;
    int64_t n_all = (int64_t)(bytes_of(mesh_to_local(x)) / sizeof *at);
    for (int64_t i = 0; i < n_all; i++) {
        at[i] = floor(at[i] * n) - floor(n / 2);
        if (dtype_kind(t) == DTYPE_FLOAT && i % 97 < 4) {
            at[i] = (const double[]){ NAN, -0.0, INFINITY, -INFINITY }[i % 97];
        }
    }
    return mesh_redistribute(mesh_cast(x, t), p);
}

struct sorting {
    mesh_shape shape;
    int dim;
    mesh_placements p;
};

static int sort_alike(mesh_device_mesh *m, const struct sorting *c, mesh_dtype t, int n_different, bool descending)
{
    mesh_scope *scope = mesh_scope_begin();
    mesh_placements whole = c->p;
    for (int i = 0; i < c->p.n; i++) {
        whole.at[i] = R;
    }
    mesh_dtensor *x = mixture(m, c->shape, t, n_different, c->p), *alone = mesh_redistribute(x, whole);
    mesh_dtensor *values, *found, *want, *places;
    mesh_sort(alone, c->dim, descending, &want, &places);
    mesh_comm_reset();
    mesh_sort(x, c->dim, descending, &values, &found);
    REQUIRE(values != NULL && mesh_placements_equal(mesh_placements_of(values), c->p));
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_TO_ALL) == 2);
    REQUIRE(mesh_comm_bytes(MESH_COMM_ALL_GATHER) < 4096 && mesh_comm_bytes(MESH_COMM_ALL_REDUCE) < 65536);
    REQUIRE_OK(same_bits(mesh_full_tensor(values), mesh_to_local(want)));
    REQUIRE_OK(same_bits(mesh_full_tensor(found), mesh_to_local(places)));
    return mesh_scope_end(scope);
}

static int all_dtypes(mesh_device_mesh *m, const struct sorting *c)
{
    static const mesh_dtype dtypes[] = { MESH_F32, MESH_F64, MESH_F16, MESH_BF16, MESH_I32, MESH_I64, MESH_I8 };
    for (size_t k = 0; k < ARRAY_SIZE(dtypes); k++) {
        REQUIRE_OK(sort_alike(m, c, dtypes[k], 100, k % 2 == 0));
    }
    REQUIRE_OK(sort_alike(m, c, MESH_F32, 1 << 20, false));
    REQUIRE_OK(sort_alike(m, c, MESH_F64, 1 << 20, true));
    return sort_alike(m, c, MESH_F64, 1, false); /* all equal: nothing changes places */
}

static int on_a_line(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(4), MESH_NAMES("a"));
    REQUIRE_OK(all_dtypes(m, &(struct sorting){ SHAPE(5001), 0, ON(S(0)) }));
    return all_dtypes(m, &(struct sorting){ SHAPE(1, 4099), 1, ON(S(1)) });
}

static int nested(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(2, 3), MESH_NAMES("a", "b"));
    REQUIRE_OK(all_dtypes(m, &(struct sorting){ SHAPE(7001), 0, ON(S(0), S(0)) }));
    REQUIRE_OK(all_dtypes(m, &(struct sorting){ SHAPE(4001), 0, ON(R, S(0)) }));
    return all_dtypes(m, &(struct sorting){ SHAPE(2, 4001), 1, ON(S(0), S(1)) });
}

START_TEST(a_sort_without_a_free_dim_gathers_nothing)
{
    ranks_run(4, on_a_line, NULL);
    ranks_run(6, nested, NULL);
}
END_TEST

/* What is free is split instead: one all_to_all each, and less of it than a sort in place would move. */
static int free_dim(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(4), MESH_NAMES("a"));
    mesh_dtensor *values, *found;
    mesh_dtensor *x = mesh_randn(SHAPE(8, 8192), m, ON(S(1)));
    mesh_comm_reset();
    mesh_sort(x, 1, false, &values, &found);
    REQUIRE(values != NULL && mesh_placements_equal(mesh_placements_of(values), ON(S(0))));
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_TO_ALL) == 1 && mesh_comm_count(MESH_COMM_ALL_GATHER) == 0);
    REQUIRE(mesh_comm_bytes(MESH_COMM_ALL_TO_ALL) == UINT64_C(8) * 8192 / 4 / 4 * 3 * sizeof(float));
    return 0;
}

START_TEST(a_sort_with_a_free_dim_splits_that)
{
    ranks_run(4, free_dim, NULL);
}
END_TEST

/* The sum of value times place, so that every element has a slope of its own. */
static int gradient(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(2, 2), MESH_NAMES("a", "b"));
    mesh_dtensor *grads[2];
    for (int k = 0; k < 2; k++) {
        mesh_placements p = k == 0 ? ON(S(0), S(0)) : ON(R, R);
        mesh_dtensor *x = mesh_requires_grad(mesh_rand(SHAPE(5003), m, p, .seed = 3), true), *values;
        mesh_sort(x, 0, true, &values, NULL);
        REQUIRE(mesh_backward(mesh_sum(mesh_mul(values, mesh_arange(0, 5003, 1, m, p)))) == 0);
        grads[k] = mesh_grad(x);
    }
    REQUIRE(mesh_placements_equal(mesh_placements_of(grads[0]), ON(S(0), S(0))));
    return same_bits(mesh_full_tensor(grads[0]), mesh_to_local(grads[1]));
}

START_TEST(a_gradient_goes_back_to_where_the_sort_found_it)
{
    ranks_run(4, gradient, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("sorting");
    TCase *t = tcase_create("sorting");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_sort_without_a_free_dim_gathers_nothing);
    tcase_add_test(t, a_sort_with_a_free_dim_splits_that);
    tcase_add_test(t, a_gradient_goes_back_to_where_the_sort_found_it);
    suite_add_tcase(s, t);
    return s;
}
