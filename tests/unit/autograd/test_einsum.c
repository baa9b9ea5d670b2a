/* tests/unit/autograd/test_einsum.c - mesh_einsum() against a loop over all letters, for every pair of placements.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "dtensor/dtensor.h"
#include "harness/check_main.h"
#include "harness/ranks.h"

#define SHAPE(...) MESH_SHAPE(__VA_ARGS__)

static const char *const equations[] = {
    "mk,kn->mn", "bmk,bkn->bmn", "mk,nk->nm",    "ij,ij->",   "ij,ij->ji",
    "ij,k->kij", "ij,jk->k",     "hbi,bjh->bij", "ij,kl->lk",
};

static int64_t extent_of(char letter)
{
    return 2 + (letter - 'a') % 4; /* 2 to 5 */
}

struct operand {
    char letters[9];
    mesh_shape shape;
};

static struct operand operand_at(const char **inout_at)
{
    struct operand o = { .shape = { .ndim = 0 } };
    for (; **inout_at >= 'a' && **inout_at <= 'z'; ++*inout_at) {
        o.letters[o.shape.ndim] = **inout_at;
        o.shape.dim[o.shape.ndim++] = extent_of(**inout_at);
    }
    *inout_at += strspn(*inout_at, ",->");
    return o;
}

/* Row-major place in an operand of the letters' values. */
static int64_t place_in(const struct operand *o, const int64_t value[26])
{
    int64_t at = 0;
    for (int d = 0; d < o->shape.ndim; d++) {
        at = at * o->shape.dim[d] + value[o->letters[d] - 'a'];
    }
    return at;
}

static void loop(const struct operand o[3], const double *a, const double *b, double *out)
{
    int64_t value[26] = { 0 };
    char all[27] = "";
    for (int i = 0; i < 2; i++) {
        for (const char *c = o[i].letters; *c != '\0'; c++) {
            if (strchr(all, *c) == NULL) {
                all[strlen(all)] = *c;
            }
        }
    }
    memset(out, 0, 400 * sizeof out[0]);
    for (size_t k = 0; k < strlen(all);) {
        out[place_in(&o[2], value)] += a[place_in(&o[0], value)] * b[place_in(&o[1], value)];
        for (k = 0; k < strlen(all) && ++value[all[k] - 'a'] == extent_of(all[k]); k++) {
            value[all[k] - 'a'] = 0;
        }
    }
}

static mesh_dtensor *einsum_of(mesh_dtensor *const *in, int n, void *user)
{
    return n == 2 ? mesh_einsum(user, in[0], in[1]) : NULL;
}

/* Placement k of a tensor: R, P, P(avg), then S(0), S(1), ... */
static bool placement_of(int k, int ndim, mesh_placement *ret_placement)
{
    *ret_placement =
        k == 0 ? mesh_replicate() : (k < 3 ? mesh_partial(k == 1 ? MESH_SUM : MESH_AVG) : mesh_shard(k - 3));
    return k < 3 + ndim;
}

static int check_value(mesh_dtensor *y, const double *want)
{
    REQUIRE(y != NULL);
    const double *got = mesh_tensor_data(mesh_full_tensor(y));
    int64_t n = 1;
    for (int d = 0; d < y->shape.ndim; d++) {
        n *= y->shape.dim[d];
    }
    for (int64_t i = 0; i < n; i++) {
        REQUIRE_NEAR(got[i], want[i], 1e-12);
    }
    return 0;
}

static int one_equation(void *arg)
{
    const char *equation = arg, *at = equation;
    struct operand o[3] = { operand_at(&at), operand_at(&at), operand_at(&at) };
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(mesh_world_size()), NULL);
    mesh_placements whole = MESH_PLACEMENTS(mesh_replicate());
    mesh_dtensor *a = mesh_randn(o[0].shape, m, whole, .dtype = MESH_F64, .seed = 1);
    mesh_dtensor *b = mesh_randn(o[1].shape, m, whole, .dtype = MESH_F64, .seed = 2);
    double want[400];
    loop(o, mesh_tensor_data(mesh_full_tensor(a)), mesh_tensor_data(mesh_full_tensor(b)), want);
    for (int k = 0; k < 36; k++) {
        mesh_placement p, q;
        if (!placement_of(k / 6, o[0].shape.ndim, &p) || !placement_of(k % 6, o[1].shape.ndim, &q)) {
            continue;
        }
        mesh_scope *scope = mesh_scope_begin();
        mesh_dtensor *in[2] = { mesh_redistribute(a, MESH_PLACEMENTS(p)), mesh_redistribute(b, MESH_PLACEMENTS(q)) };
        REQUIRE_OK(check_value(mesh_einsum(equation, in[0], in[1]), want));
        if (k % 7 == 0 || mesh_world_size() == 1) {
            REQUIRE(mesh_autograd_check(einsum_of, in, 2, .user = arg, .max_elements = 3) == 0);
        }
        REQUIRE(mesh_scope_end(scope) == 0);
    }
    return 0;
}
START_TEST(every_equation_is_its_loop_on_every_pair_of_placements)
{
    for (int n = 1; n <= 3; n++) {
        ranks_run(n, one_equation, (void *)(uintptr_t)equations[_i]);
    }
}
END_TEST

static int without_traffic(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(2, 2), NULL);
    mesh_dtensor *a = mesh_ones(SHAPE(4, 6, 5), m, MESH_PLACEMENTS(mesh_shard(0), mesh_shard(2)));
    mesh_dtensor *b = mesh_ones(SHAPE(4, 5, 3), m, MESH_PLACEMENTS(mesh_shard(0), mesh_shard(1)));
    mesh_comm_reset();
    mesh_dtensor *y = mesh_einsum("bmk, bkn -> bmn", a, b);
    REQUIRE(y != NULL && mesh_comm_count(MESH_COMM_ALL_GATHER) + mesh_comm_count(MESH_COMM_ALL_REDUCE) == 0);
    REQUIRE(y->placements.at[0].kind == MESH_IS_SHARD && y->placements.at[1].kind == MESH_IS_PARTIAL);
    REQUIRE(((const float *)mesh_tensor_data(mesh_full_tensor(y)))[71] == 5);
    mesh_dtensor *half = mesh_cast(a, MESH_BF16), *number = mesh_cast(a, MESH_I64);
    REQUIRE(mesh_dtype_of(mesh_einsum("abc,abc->a", half, half)) == MESH_BF16);
    y = mesh_einsum("abc,abc->", number, number);
    REQUIRE(*(const int64_t *)mesh_tensor_data(mesh_full_tensor(y)) == 120);
    return 0;
}
START_TEST(letters_sharded_alike_move_nothing)
{
    ranks_run(4, without_traffic, NULL);
}
END_TEST

static int refusals(void *arg)
{
    (void)arg;
    static const struct {
        const char *equation;
        int want;
    } tries[] = { { "mk,kn", MESH_EINVAL },      { "mk->m", MESH_EINVAL },     { "mm,mk->k", MESH_EINVAL },
                  { "mk,kn->mz", MESH_EINVAL },  { "MK,KN->MN", MESH_EINVAL }, { "mk,mn->kn", MESH_ESHAPE },
                  { "mkl,kn->mn", MESH_ESHAPE }, { "", MESH_EINVAL },          { "...k,k->...", MESH_EINVAL },
                  { NULL, MESH_EINVAL } };
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", SHAPE(1), NULL);
    mesh_placements whole = MESH_PLACEMENTS(mesh_replicate());
    mesh_dtensor *a = mesh_ones(SHAPE(2, 3), m, whole), *b = mesh_ones(SHAPE(3, 4), m, whole);
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        mesh_scope *scope = mesh_scope_begin();
        REQUIRE(mesh_einsum(tries[i].equation, a, b) == NULL);
        REQUIRE(mesh_scope_end(scope) == tries[i].want);
    }
    mesh_scope *scope = mesh_scope_begin();
    REQUIRE(mesh_einsum("mk,kn->mn", mesh_cast(a, MESH_BOOL), mesh_cast(b, MESH_BOOL)) == NULL);
    REQUIRE(mesh_scope_end(scope) == MESH_EUNSUPPORTED);
    return 0;
}
START_TEST(what_is_no_equation_of_these_inputs_is_refused)
{
    ranks_run(1, refusals, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("einsum");
    TCase *t = tcase_create("einsum");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, every_equation_is_its_loop_on_every_pair_of_placements, 0,
                        (int)(sizeof equations / sizeof equations[0]));
    tcase_add_test(t, letters_sharded_alike_move_nothing);
    tcase_add_test(t, what_is_no_equation_of_these_inputs_is_refused);
    suite_add_tcase(s, t);
    return s;
}
