/* tests/world/test_comm_collectives.c - every collective gives the right numbers, for every dtype, op, count, size and link.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/dtype.h"
#include "comm_world.h"

static const size_t counts[] = { 0, 1, 7, 1000, 100003 };
static const mesh_dtype reduced[] = { MESH_F32, MESH_F64, MESH_F16, MESH_BF16, MESH_I32,
                                      MESH_I64, MESH_U8,  MESH_I8,  MESH_BOOL };
static const mesh_reduce_op ops[] = {
    MESH_SUM, MESH_AVG, MESH_PROD, MESH_MIN, MESH_MAX, MESH_BAND, MESH_BOR, MESH_BXOR
};

static void put(void *buf, size_t i, mesh_dtype t, int64_t value)
{
    switch (t) {
    case MESH_F32:
        ((float *)buf)[i] = (float)value;
        break;
    case MESH_F64:
        ((double *)buf)[i] = (double)value;
        break;
    case MESH_F16:
        ((uint16_t *)buf)[i] = float_to_f16((float)value);
        break;
    case MESH_BF16:
        ((uint16_t *)buf)[i] = float_to_bf16((float)value);
        break;
    case MESH_BOOL:
        ((bool *)buf)[i] = value != 0;
        break;
    case MESH_I32:
        ((int32_t *)buf)[i] = (int32_t)value;
        break;
    case MESH_I64:
        ((int64_t *)buf)[i] = value;
        break;
    default:
        ((uint8_t *)buf)[i] = (uint8_t)value;
    }
}

/* Small numbers of both signs, so that every result is exact; factors of 1 and 2 for products. */
static int64_t input(int rank, size_t i, mesh_dtype t, mesh_reduce_op op)
{
    if (op == MESH_PROD && t != MESH_BOOL) {
        return (i + (size_t)rank) % 3 == 0 ? 2 : 1;
    }
    int64_t v = (int64_t)((i * 31 + (size_t)rank * 17) % 23);
    return t == MESH_BOOL ? v % 3 == 0 : t == MESH_U8 ? v : v - 11;
}

static int64_t combine(int64_t a, int64_t b, mesh_reduce_op op)
{
    switch (op) {
    case MESH_PROD:
        return a * b;
    case MESH_MIN:
        return a < b ? a : b;
    case MESH_MAX:
        return a > b ? a : b;
    case MESH_BAND:
        return a & b;
    case MESH_BOR:
        return a | b;
    case MESH_BXOR:
        return a ^ b;
    default:
        return a + b;
    }
}

static void put_expected(void *buf, size_t at, size_t i, int n, mesh_dtype t, mesh_reduce_op op)
{
    int64_t v = input(0, i, t, op);
    for (int r = 1; r < n; r++) {
        v = combine(v, input(r, i, t, op), op);
    }
    if (op != MESH_AVG) {
        put(buf, at, t, v);
    } else if (t == MESH_F32) {
        ((float *)buf)[at] = (float)v / (float)n;
    } else if (t == MESH_F16) {
        ((uint16_t *)buf)[at] = float_to_f16((float)v / (float)n);
    } else if (t == MESH_BF16) {
        ((uint16_t *)buf)[at] = float_to_bf16((float)v / (float)n);
    } else {
        ((double *)buf)[at] = (double)v / (double)n;
    }
}

static int same(const void *got, const void *want, size_t count, mesh_dtype t, const char *what)
{
    return memcmp(got, want, count * dtype_size(t)) == 0
               ? 0
               : wrong("rank %d: %s of %zu %s is wrong", mesh_rank(), what, count, dtype_name(t));
}

/* Reductions ------------------------------------------------------------------------------------------------------- */

static int try_all_reduce(size_t count, mesh_dtype t, mesh_reduce_op op)
{
    int n = mesh_world_size(), me = mesh_rank();
    char *buf = get_memory(count * 8), *want = get_memory(count * 8);
    for (size_t i = 0; i < count; i++) {
        put(buf, i, t, input(me, i, t, op));
        put_expected(want, i, i, n, t, op);
    }
    int r = mesh_all_reduce(buf, count, t, op, mesh_world());
    r = r < 0 ? r : same(buf, want, count, t, "all_reduce");
    free(buf);
    free(want);
    return r;
}

static int try_reduce_scatter(size_t count, mesh_dtype t, mesh_reduce_op op)
{
    int n = mesh_world_size(), me = mesh_rank();
    size_t total = count * (size_t)n, first = count * (size_t)me;
    char *in = get_memory(total * 8), *copy = get_memory(total * 8), *out = get_memory(count * 8),
         *want = get_memory(count * 8);
    for (size_t i = 0; i < total; i++) {
        put(in, i, t, input(me, i, t, op));
    }
    memcpy(copy, in, total * dtype_size(t));
    for (size_t i = 0; i < count; i++) {
        put_expected(want, i, first + i, n, t, op);
    }
    int r = mesh_reduce_scatter(out, in, count, t, op, mesh_world());
    r = r < 0 ? r : same(out, want, count, t, "reduce_scatter");
    r = r < 0 ? r : same(in, copy, total, t, "the input after reduce_scatter");
    char *place = in + first * dtype_size(t); /* and in place */
    r = r < 0 ? r : mesh_reduce_scatter(place, in, count, t, op, mesh_world());
    r = r < 0 ? r : same(place, want, count, t, "reduce_scatter in place");
    free(in);
    free(copy);
    free(out);
    free(want);
    return r;
}

static bool is_refused(mesh_dtype t, mesh_reduce_op op)
{
    bool is_float = dtype_kind(t) == DTYPE_FLOAT;
    return is_float ? op >= MESH_BAND : op == MESH_AVG;
}

static int try_reductions(mesh_dtype t, mesh_reduce_op op)
{
    if (is_refused(t, op)) {
        char buf[8] = { 0 };
        int r = mesh_all_reduce(buf, 1, t, op, mesh_world());
        return r == MESH_EUNSUPPORTED ? 0 : wrong("%s %s gives %d", dtype_name(t), reduce_op_name(op), r);
    }
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        if (counts[i] > 1000 && op != MESH_SUM && op != MESH_MAX && t != MESH_U8) {
            continue; /* the loops are the same as for small counts */
        }
        int r = try_all_reduce(counts[i], t, op);
        r = r < 0 ? r : try_reduce_scatter(counts[i] / (counts[i] > 1000 ? 5 : 1), t, op);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int reductions(void *arg)
{
    (void)arg;
    for (size_t t = 0; t < ARRAY_SIZE(reduced); t++) {
        for (size_t o = 0; o < ARRAY_SIZE(ops); o++) {
            int r = try_reductions(reduced[t], ops[o]);
            if (r < 0) {
                return r;
            }
        }
    }
    return 0;
}

START_TEST(reductions_are_right_for_every_dtype_op_and_count)
{
    run_world(_i, reductions, NULL);
}
END_TEST

/* Moving data ------------------------------------------------------------------------------------------------------ */

static const mesh_dtype moved[] = { MESH_F32, MESH_F64, MESH_F16, MESH_BF16, MESH_I8,
                                    MESH_U8,  MESH_I32, MESH_I64, MESH_BOOL };

/* Byte i of what rank r has for rank `to`. */
static uint8_t byte_of(int r, int to, size_t i)
{
    return (uint8_t)(i * 13 + (size_t)r * 101 + (size_t)to * 57);
}

static int try_all_gather(size_t count, mesh_dtype t)
{
    int n = mesh_world_size(), me = mesh_rank();
    size_t bytes = count * dtype_size(t);
    uint8_t *in = get_memory(bytes), *out = get_memory(bytes * (size_t)n), *want = get_memory(bytes * (size_t)n);
    for (int r = 0; r < n; r++) {
        for (size_t i = 0; i < bytes; i++) {
            want[(size_t)r * bytes + i] = byte_of(r, 0, i);
        }
    }
    memcpy(in, want + (size_t)me * bytes, bytes);
    int r = mesh_all_gather(out, in, count, t, mesh_world());
    r = r < 0 ? r : same(out, want, count * (size_t)n, t, "all_gather");
    memset(out, 0, bytes * (size_t)n);
    memcpy(out + (size_t)me * bytes, in, bytes);
    r = r < 0 ? r : mesh_all_gather(out, out + (size_t)me * bytes, count, t, mesh_world());
    r = r < 0 ? r : same(out, want, count * (size_t)n, t, "all_gather in place");
    free(in);
    free(out);
    free(want);
    return r;
}

static int try_all_to_all(size_t count, mesh_dtype t)
{
    int n = mesh_world_size(), me = mesh_rank();
    size_t bytes = count * dtype_size(t), total = bytes * (size_t)n;
    uint8_t *in = get_memory(total), *out = get_memory(total), *want = get_memory(total);
    for (int r = 0; r < n; r++) {
        for (size_t i = 0; i < bytes; i++) {
            in[(size_t)r * bytes + i] = byte_of(me, r, i);
            want[(size_t)r * bytes + i] = byte_of(r, me, i);
        }
    }
    int r = mesh_all_to_all(out, in, count, t, mesh_world());
    r = r < 0 ? r : same(out, want, count * (size_t)n, t, "all_to_all");
    free(in);
    free(out);
    free(want);
    return r;
}

static int try_broadcast(size_t count, mesh_dtype t, int root)
{
    size_t bytes = count * dtype_size(t);
    uint8_t *buf = get_memory(bytes), *want = get_memory(bytes);
    for (size_t i = 0; i < bytes; i++) {
        want[i] = byte_of(root, 1, i);
        buf[i] = mesh_rank() == root ? want[i] : 0;
    }
    int r = mesh_broadcast(buf, count, t, root, mesh_world());
    r = r < 0 ? r : same(buf, want, count, t, "broadcast");
    free(buf);
    free(want);
    return r;
}

static int moves(void *arg)
{
    (void)arg;
    for (size_t t = 0; t < ARRAY_SIZE(moved); t++) {
        for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
            if (counts[i] > 1000 && t > 0) {
                continue;
            }
            int r = try_all_gather(counts[i], moved[t]);
            r = r < 0 ? r : try_all_to_all(counts[i], moved[t]);
            for (int root = 0; root < mesh_world_size() && r == 0; root++) {
                r = try_broadcast(counts[i], moved[t], root);
            }
            r = r < 0 ? r : mesh_barrier(mesh_world());
            if (r < 0) {
                return r;
            }
        }
    }
    return 0;
}

START_TEST(moves_are_right_for_every_dtype_and_count)
{
    run_world(_i, moves, NULL);
}
END_TEST

/* Split sizes ------------------------------------------------------------------------------------------------------ */

static size_t split(int r, int to, size_t scale)
{
    return (size_t)((r * 3 + to * 5) % 4) * scale; /* some of them 0 */
}

static int try_gather_and_scatter_v(size_t scale)
{
    int n = mesh_world_size(), me = mesh_rank();
    size_t sizes[16], before = 0, total = 0;
    for (int r = 0; r < n; r++) {
        sizes[r] = split(r, 1, scale);
        before += r < me ? sizes[r] : 0;
        total += sizes[r];
    }
    int32_t *all = get_memory(total * 4), *in = get_memory(total * 4), *out = get_memory(total * 4);
    for (size_t i = 0; i < total; i++) {
        in[i] = (int32_t)i * (me + 1);
    }
    int r = mesh_reduce_scatter_v(out, in, sizes, MESH_I32, MESH_SUM, mesh_world());
    for (size_t i = 0; i < sizes[me] && r == 0; i++) {
        r = out[i] == (int32_t)(before + i) * (n * (n + 1) / 2) ? 0 : wrong("reduce_scatter_v, element %zu", i);
    }
    r = r < 0 ? r : mesh_all_gather_v(all, sizes, out, MESH_I32, mesh_world());
    for (size_t i = 0; i < total && r == 0; i++) {
        r = all[i] == (int32_t)i * (n * (n + 1) / 2) ? 0 : wrong("all_gather_v, element %zu", i);
    }
    free(all);
    free(in);
    free(out);
    return r;
}

static int try_all_to_all_v(size_t scale)
{
    int n = mesh_world_size(), me = mesh_rank();
    size_t in_sizes[16], out_sizes[16], n_in = 0, n_out = 0;
    for (int r = 0; r < n; r++) {
        n_in += in_sizes[r] = split(me, r, scale);
        n_out += out_sizes[r] = split(r, me, scale);
    }
    uint8_t *in = get_memory(n_in), *out = get_memory(n_out), *want = get_memory(n_out), *p = in, *q = want;
    for (int r = 0; r < n; r++) {
        for (size_t i = 0; i < in_sizes[r]; i++) {
            *p++ = byte_of(me, r, i);
        }
        for (size_t i = 0; i < out_sizes[r]; i++) {
            *q++ = byte_of(r, me, i);
        }
    }
    int r = mesh_all_to_all_v(out, out_sizes, in, in_sizes, MESH_U8, mesh_world());
    r = r < 0 ? r : same(out, want, n_out, MESH_U8, "all_to_all_v");
    free(in);
    free(out);
    free(want);
    return r;
}

static int splits(void *arg)
{
    static const size_t scales[] = { 0, 1, 17, 5001 };
    (void)arg;
    for (size_t i = 0; i < ARRAY_SIZE(scales); i++) {
        int r = try_gather_and_scatter_v(scales[i]);
        r = r < 0 ? r : try_all_to_all_v(scales[i]);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

START_TEST(uneven_and_empty_splits_are_right)
{
    run_world(_i, splits, NULL);
}
END_TEST

/* Bits ------------------------------------------------------------------------------------------------------------- */

#define N_BITS 100003

struct bits {
    float result[2][9][N_BITS]; /* run, rank */
    int run;
};

static int odd_floats(void *arg)
{
    struct bits *b = arg;
    float *x = b->result[b->run][mesh_rank()];
    uint32_t seed = (uint32_t)mesh_rank() * 2654435761u + 1;
    for (size_t i = 0; i < N_BITS; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = ldexpf((float)(seed >> 8), (int)(seed % 60) - 50) * ((seed & 64) != 0 ? 1.0f : -1.0f);
    }
    int r = mesh_all_reduce(x, 1000, MESH_F32, MESH_SUM, mesh_world()); /* by doubling */
    return r < 0 ? r : mesh_all_reduce(x + 1000, N_BITS - 1000, MESH_F32, MESH_SUM, mesh_world());
}

START_TEST(case_det_sums_have_the_same_bits_on_all_ranks_and_in_every_run)
{
    int n = world_sizes[_i % (int)ARRAY_SIZE(world_sizes)];
    struct bits *b = get_memory(sizeof *b);
    for (b->run = 0; b->run < 2; b->run++) {
        run_world(_i, odd_floats, b);
    }
    for (int r = 0; r < n; r++) {
        ck_assert(memcmp(b->result[0][0], b->result[0][r], sizeof b->result[0][r]) == 0);
        ck_assert(memcmp(b->result[0][0], b->result[1][r], sizeof b->result[1][r]) == 0);
    }
    free(b);
}
END_TEST

/* Ranks hold a NaN, infinities of both signs and zeros of both signs in turn. */
static int special_floats(void *arg)
{
    static const float values[] = { 1.0f, -0.0f, 0.0f, INFINITY, -INFINITY, 5.0f };
    float least[8], greatest[8], sum[8], all[9 * 8];
    int n = mesh_world_size(), me = mesh_rank();
    (void)arg;
    for (int i = 0; i < 8; i++) {
        least[i] = greatest[i] = sum[i] = values[(i + me) % 6];
    }
    least[7] = greatest[7] = sum[7] = me == n - 1 ? NAN : 4.0f;
    int r = mesh_all_reduce(least, 8, MESH_F32, MESH_MIN, mesh_world());
    r = r < 0 ? r : mesh_all_reduce(greatest, 8, MESH_F32, MESH_MAX, mesh_world());
    r = r < 0 ? r : mesh_all_reduce(sum, 8, MESH_F32, MESH_SUM, mesh_world());
    r = r < 0 ? r : mesh_all_gather(all, sum, 8, MESH_F32, mesh_world());
    if (r < 0) {
        return r;
    }
    for (int k = 1; k < n; k++) {
        if (memcmp(all, all + 8 * k, 8 * sizeof(float)) != 0) {
            return wrong("ranks 0 and %d have different bits", k);
        }
    }
    if (n == 2 && (!signbit(least[1]) || signbit(greatest[1]) || least[0] != 0.0f || greatest[0] != 1.0f)) {
        return wrong("min and max of -0 and +0 are %g and %g", (double)least[1], (double)greatest[1]);
    }
    return isnan(least[7]) && isnan(greatest[7]) && isnan(sum[7]) ? 0 : wrong("the NaN of the last rank is lost");
}

START_TEST(nan_survives_and_zeros_have_an_order)
{
    run_world(_i, special_floats, NULL);
}
END_TEST

/* Counters --------------------------------------------------------------------------------------------------------- */

static int counted(void *arg)
{
    (void)arg;
    float x[4] = { 0 }, all[4 * 9];
    bool is_alone = mesh_world_size() == 1;
    uint64_t one = is_alone ? 0 : 1;
    mesh_comm_reset();
    int r = mesh_all_gather(all, x, 4, MESH_F32, mesh_world());
    r = r < 0 ? r : mesh_wait(mesh_all_reduce_async(x, 4, MESH_F32, MESH_SUM, mesh_world()), 0);
    if (r < 0) {
        return r;
    }
    if (mesh_comm_count(MESH_COMM_ALL_GATHER) != one || mesh_comm_count(MESH_COMM_ALL_REDUCE) != one ||
        mesh_comm_count(MESH_COMM_BARRIER) != 0) {
        return wrong("two calls are counted as %d and %d", (int)mesh_comm_count(MESH_COMM_ALL_GATHER),
                     (int)mesh_comm_count(MESH_COMM_ALL_REDUCE));
    }
    if (mesh_comm_bytes(MESH_COMM_ALL_GATHER) != 16 * (uint64_t)(mesh_world_size() - 1)) {
        return wrong("all_gather sent %d bytes", (int)mesh_comm_bytes(MESH_COMM_ALL_GATHER));
    }
    mesh_comm_reset();
    return mesh_comm_count(MESH_COMM_ALL_GATHER) == 0 ? 0 : wrong("the reset did nothing");
}

START_TEST(calls_and_bytes_are_counted)
{
    run_world(_i, counted, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("comm_collectives");
    TCase *c = tcase_create("collectives");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, reductions_are_right_for_every_dtype_op_and_count, 0, N_WORLDS);
    tcase_add_loop_test(c, moves_are_right_for_every_dtype_and_count, 0, N_WORLDS);
    tcase_add_loop_test(c, uneven_and_empty_splits_are_right, 0, N_WORLDS);
    tcase_add_loop_test(c, case_det_sums_have_the_same_bits_on_all_ranks_and_in_every_run, 0, N_WORLDS);
    tcase_add_loop_test(c, nan_survives_and_zeros_have_an_order, 0, N_WORLDS);
    tcase_add_loop_test(c, calls_and_bytes_are_counted, 0, N_WORLDS);
    suite_add_tcase(s, c);
    return s;
}
