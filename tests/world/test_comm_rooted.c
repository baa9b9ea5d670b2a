/* tests/world/test_comm_rooted.c - reduce, gather and scatter: right on the root, and nothing is touched elsewhere.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/dtype.h"
#include "comm_world.h"

static const size_t counts[] = { 0, 1, 7, 1000, 30011 };
static const mesh_dtype moved[] = { MESH_F32, MESH_F16, MESH_U8, MESH_I64 };

static int untouched(const void *buf, size_t bytes, const char *what)
{
    const uint8_t *b = buf;
    for (size_t i = 0; i < bytes; i++) {
        if (b[i] != 0x5a) {
            return wrong("rank %d: %s was written to at byte %zu", mesh_rank(), what, i);
        }
    }
    return 0;
}

/* reduce ----------------------------------------------------------------------------------------------------------- */

/* Rank r has r + 1 + (i % 5); the root is told to have the sum or the average, the others to keep what they had. */
static void fill(void *buf, size_t count, mesh_dtype t, int first)
{
    for (size_t i = 0; i < count; i++) {
        float v = (float)first + (float)(i % 5);
        if (t == MESH_F32) {
            ((float *)buf)[i] = v;
        } else if (t == MESH_BF16) {
            ((uint16_t *)buf)[i] = float_to_bf16(v);
        } else {
            ((int32_t *)buf)[i] = (int32_t)v;
        }
    }
}

static bool is_sum(const void *buf, size_t count, mesh_dtype t, int n)
{
    for (size_t i = 0; i < count; i++) {
        int want = n * (n + 1) / 2 + n * (int)(i % 5);
        float got = t == MESH_F32    ? ((const float *)buf)[i]
                    : t == MESH_BF16 ? float_from_bf16(((const uint16_t *)buf)[i])
                                     : (float)((const int32_t *)buf)[i];
        if (got != (float)want) {
            return false;
        }
    }
    return true;
}

static int try_reduce(size_t count, mesh_dtype t, int root)
{
    int n = mesh_world_size(), me = mesh_rank();
    size_t bytes = count * dtype_size(t);
    void *in = get_memory(bytes), *copy = get_memory(bytes), *out = get_memory(bytes);
    fill(in, count, t, me + 1);
    memcpy(copy, in, bytes);
    memset(out, 0x5a, bytes);
    int r = mesh_reduce(me == root || root == 0 ? out : NULL, in, count, t, MESH_SUM, root, mesh_world());
    if (r == 0 && me == root && !is_sum(out, count, t, n)) {
        r = wrong("reduce of %zu %s to %d is wrong", count, dtype_name(t), root);
    }
    r = r < 0 || me == root ? r : untouched(out, bytes, "the result of reduce");
    if (r == 0 && memcmp(in, copy, bytes) != 0) {
        r = wrong("rank %d: reduce has changed the input", me);
    }
    r = r < 0 ? r : mesh_reduce(in, in, count, t, MESH_SUM, root, mesh_world()); /* in place */
    bool is_right = me == root ? is_sum(in, count, t, n) : memcmp(in, copy, bytes) == 0;
    r = r < 0 || is_right ? r : wrong("rank %d: reduce of %zu in place is wrong", me, count);
    free(in);
    free(copy);
    free(out);
    return r;
}

static int reduces(void *arg)
{
    static const mesh_dtype dtypes[] = { MESH_F32, MESH_BF16, MESH_I32 };
    int r = 0;
    (void)arg;
    for (size_t i = 0; i < ARRAY_SIZE(counts) && r == 0; i++) {
        for (size_t t = 0; t < ARRAY_SIZE(dtypes) && r == 0; t++) {
            for (int root = 0; root < mesh_world_size() && r == 0; root += counts[i] > 1000 ? 3 : 1) {
                r = try_reduce(counts[i], dtypes[t], root);
            }
        }
    }
    int32_t x = 0;
    if (r == 0 && mesh_reduce(&x, &x, 1, MESH_I32, MESH_AVG, 0, mesh_world()) != MESH_EUNSUPPORTED) {
        r = wrong("avg of integers is not refused");
    }
    return r;
}

START_TEST(reduce_gives_the_root_the_sum_and_leaves_the_others_as_they_were)
{
    run_world(_i, reduces, NULL);
}
END_TEST

/* gather and scatter ----------------------------------------------------------------------------------------------- */

static uint8_t byte_of(int rank, size_t i)
{
    return (uint8_t)(i * 13 + (size_t)rank * 101);
}

struct layout { /* of the whole, in bytes */
    size_t sizes[16], before, total, mine;
    bool is_even;
};

static struct layout lay_out(const size_t *sizes, size_t element_bytes)
{
    struct layout l = { .is_even = true };
    for (int r = 0; r < mesh_world_size(); r++) {
        l.sizes[r] = sizes[r];
        l.is_even = l.is_even && sizes[r] == sizes[0];
        l.before += r < mesh_rank() ? sizes[r] * element_bytes : 0;
        l.total += sizes[r] * element_bytes;
    }
    l.mine = sizes[mesh_rank()] * element_bytes;
    return l;
}

static void fill_whole(uint8_t *whole, const struct layout *l, size_t element_bytes)
{
    for (int r = 0; r < mesh_world_size(); r++) {
        for (size_t i = 0; i < l->sizes[r] * element_bytes; i++) {
            *whole++ = byte_of(r, i);
        }
    }
}

/* Gathers the parts at the root, scatters them again; both in place on the root when asked to. */
static int there_and_back(const struct layout *l, mesh_dtype t, int root, bool is_in_place)
{
    bool is_root = mesh_rank() == root;
    uint8_t *want = get_memory(l->total), *whole = get_memory(l->total), *part = get_memory(l->mine);
    fill_whole(want, l, dtype_size(t));
    memset(whole, 0x5a, l->total);
    memcpy(part, want + l->before, l->mine);
    uint8_t *mine = is_root && is_in_place ? whole + l->before : part;
    memcpy(mine, part, l->mine);
    int r = l->is_even ? mesh_gather(whole, mine, l->sizes[0], t, root, mesh_world())
                       : mesh_gather_v(whole, l->sizes, mine, t, root, mesh_world());
    r = r < 0 || is_root ? r : untouched(whole, l->total, "the result of gather");
    if (r == 0 && is_root && memcmp(whole, want, l->total) != 0) {
        r = wrong("gather at %d is wrong", root);
    }
    if (!is_root || !is_in_place) {
        memset(mine, 0, l->mine);
    }
    const uint8_t *from = is_root ? whole : NULL;
    r = r < 0        ? r
        : l->is_even ? mesh_scatter(mine, from, l->sizes[0], t, root, mesh_world())
                     : mesh_scatter_v(mine, from, l->sizes, t, root, mesh_world());
    if (r == 0 && memcmp(mine, want + l->before, l->mine) != 0) {
        r = wrong("scatter from %d is wrong", root);
    }
    free(want);
    free(whole);
    free(part);
    return r;
}

static int moves(void *arg)
{
    int r = 0;
    (void)arg;
    for (size_t k = 0; k < 2 * ARRAY_SIZE(counts) && r == 0; k++) {
        size_t sizes[16];
        mesh_dtype t = moved[k % ARRAY_SIZE(moved)];
        for (int i = 0; i < mesh_world_size(); i++) { /* even, then uneven with empty ones */
            sizes[i] = k < ARRAY_SIZE(counts) ? counts[k] : (size_t)((i + (int)k) % 3) * counts[k / 2];
        }
        struct layout l = lay_out(sizes, dtype_size(t));
        for (int root = 0; root < mesh_world_size() && r == 0; root++) {
            r = there_and_back(&l, t, root, k % 2 == 1);
        }
    }
    return r;
}

START_TEST(gather_and_scatter_move_every_part_to_its_place)
{
    run_world(_i, moves, NULL);
}
END_TEST

static int in_flight(void *arg)
{
    int n = mesh_world_size(), me = mesh_rank();
    int32_t part = me, whole[9], sum = 0, back = -1;
    size_t sizes[9];
    (void)arg;
    for (int i = 0; i < n; i++) {
        sizes[i] = 1;
    }
    mesh_work *gather = mesh_gather_async(whole, &part, 1, MESH_I32, n - 1, mesh_world());
    mesh_work *reduce = mesh_reduce_async(&sum, &part, 1, MESH_I32, MESH_SUM, 0, mesh_world());
    mesh_work *again = mesh_gather_v_async(whole, sizes, &part, MESH_I32, n - 1, mesh_world());
    mesh_work *scatter = mesh_scatter_async(&back, whole, 1, MESH_I32, n - 1, mesh_world());
    int r = mesh_wait(mesh_scatter_v_async(&back, whole, sizes, MESH_I32, n - 1, mesh_world()), 0);
    r = r < 0 ? r : mesh_wait(scatter, 0);
    r = r < 0 ? r : mesh_wait(again, 0);
    r = r < 0 ? r : mesh_wait(reduce, 0);
    r = r < 0 ? r : mesh_wait(gather, 0);
    bool is_right = back == me && (me != 0 || sum == n * (n - 1) / 2);
    return r < 0 || is_right ? r : wrong("rank %d has %d and the sum %d", me, (int)back, (int)sum);
}

START_TEST(rooted_calls_in_flight_keep_their_order)
{
    run_world(_i, in_flight, NULL);
}
END_TEST

/* Ranks that take different ranks for the root. */
static int different_roots(void *arg)
{
    int n = mesh_world_size(), me = mesh_rank();
    float x[9 * 4] = { 0 }, y[9 * 4];
    int root = me == n - 1 ? n - 1 : 0, what = *(int *)arg;
    int r = what == 0   ? mesh_gather(y, x, 4, MESH_F32, root, mesh_world())
            : what == 1 ? mesh_scatter(y, x, 4, MESH_F32, root, mesh_world())
                        : mesh_reduce(y, x, 4, MESH_F32, MESH_SUM, root, mesh_world());
    for (int i = 0; i < 1000 && r == 0; i++) { /* who only sent hears of it in a later call */
        r = mesh_barrier(mesh_world());
    }
    return r == MESH_EMISMATCH || r == MESH_EPOISONED
               ? 0
               : wrong("different roots give %s", mesh_status_name((mesh_status)r));
}

START_TEST(different_roots_are_a_mismatch)
{
    int what = _i % 3;
    for (int n = 2; n <= 4; n++) {
        int r = world_run_linked(n, world_links[_i / 3], 20000, different_roots, &what);
        ck_assert_msg(r == 0, "%d ranks: %s", n, err_last()->message);
    }
}
END_TEST

static int bad_root(void *arg)
{
    float x = 0;
    (void)arg;
    int n = mesh_world_size();
    bool are_refused = mesh_reduce(&x, &x, 1, MESH_F32, MESH_SUM, n, mesh_world()) == MESH_EINVAL &&
                       mesh_gather(&x, &x, 1, MESH_F32, -1, mesh_world()) == MESH_EINVAL &&
                       mesh_scatter(&x, &x, 1, MESH_F32, n, mesh_world()) == MESH_EINVAL &&
                       mesh_gather_v(&x, NULL, &x, MESH_F32, 0, mesh_world()) == MESH_EINVAL;
    return are_refused ? mesh_barrier(mesh_world()) : wrong("a root that is not in the group is not refused");
}

START_TEST(a_root_outside_the_group_is_refused_before_any_traffic)
{
    run_world(_i, bad_root, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("comm_rooted");
    TCase *c = tcase_create("rooted");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, reduce_gives_the_root_the_sum_and_leaves_the_others_as_they_were, 0, N_WORLDS);
    tcase_add_loop_test(c, gather_and_scatter_move_every_part_to_its_place, 0, N_WORLDS);
    tcase_add_loop_test(c, rooted_calls_in_flight_keep_their_order, 0, N_WORLDS);
    tcase_add_loop_test(c, different_roots_are_a_mismatch, 0, 9);
    tcase_add_loop_test(c, a_root_outside_the_group_is_refused_before_any_traffic, 0, (int)ARRAY_SIZE(world_sizes));
    suite_add_tcase(s, c);
    return s;
}
