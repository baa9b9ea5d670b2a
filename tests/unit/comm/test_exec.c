/* tests/unit/comm/test_exec.c - the executor over streams that move only a few bytes at a time.
 *
 * All ranks are executors of this thread, taken in turn; a call of a link moves at most `most` bytes, so that headers, elements
 * and payloads are cut everywhere.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "comm/exec.h"
#include "harness/check_main.h"

#define SIZE  3
#define COUNT 20001 /* of i64: payloads that are read together with their header, and such as are not */
#define STEPS 2000000

struct pipe {
    uint8_t bytes[1 << 20];
    size_t written, read;
};

struct end {
    struct link base;
    struct pipe *in, *out;
};

static struct pipe pipes[SIZE][SIZE]; /* from, to */
static struct end ends[SIZE][SIZE];   /* of the rank, to its peer */
static size_t most;

static int64_t end_send(struct link *l, const struct iovec *parts, int n)
{
    struct pipe *p = container_of(l, struct end, base)->out;
    size_t moved = 0;
    for (int i = 0; i < n; i++) {
        size_t length = MIN(MIN(parts[i].iov_len, most - moved), sizeof p->bytes - p->written);
        memcpy(p->bytes + p->written, parts[i].iov_base, length);
        p->written += length;
        moved += length;
    }
    return (int64_t)moved;
}

static int64_t end_receive(struct link *l, const struct iovec *parts, int n)
{
    struct pipe *p = container_of(l, struct end, base)->in;
    ck_assert_int_eq(n, 1);
    size_t length = MIN(MIN(parts->iov_len, most), p->written - p->read);
    memcpy(parts->iov_base, p->bytes + p->read, length);
    p->read += length;
    return (int64_t)length;
}

static const struct link_ops end_ops = { .send = end_send, .receive = end_receive };

static struct link *find_end(void *rank, int peer)
{
    return &ends[*(int *)rank][peer].base;
}

static void join_ends(void)
{
    memset(pipes, 0, sizeof pipes);
    for (int a = 0; a < SIZE; a++) {
        for (int b = 0; b < SIZE; b++) {
            ends[a][b] = (struct end){ .base = { .ops = &end_ops, .fd = -1 }, .in = &pipes[b][a], .out = &pipes[a][b] };
        }
    }
}

static int64_t in[SIZE][SIZE * COUNT], out[SIZE][SIZE * COUNT];

static struct plan *begin(struct exec *x, int rank, const struct collective_call *given, enum plan_algorithm algorithm)
{
    struct call call;
    struct collective_call mine = *given;
    struct frame_header header = { .generation = 1, .group = 7, .sequence = 1 };
    mine.in = given->kind == MESH_COMM_ALL_REDUCE ? NULL : in[rank];
    mine.out = out[rank];
    ck_assert_int_eq(call_prepare(&call, &mine, SIZE, rank), 0);
    call.algorithm = algorithm;
    call_header(&call, &header);
    struct plan *plan = plan_new(&(struct plan_request){ .kind = call.kind,
                                                         .algorithm = algorithm,
                                                         .rank = rank,
                                                         .size = SIZE,
                                                         .root = call.root,
                                                         .count = call.count });
    ck_assert_ptr_nonnull(plan);
    ck_assert_int_eq(exec_begin(x, &call, plan, &header), 0);
    return plan;
}

static void run_all(const struct collective_call *call, enum plan_algorithm algorithm)
{
    static const int ranks[SIZE] = { 0, 1, 2 };
    static int mine[SIZE] = { 0, 1, 2 };
    static struct mesh_session session; /* knows no hosts */
    struct exec x[SIZE];
    struct plan *plans[SIZE];
    bool is_done[SIZE] = { false };
    join_ends();
    for (int r = 0; r < SIZE; r++) {
        x[r] = (struct exec){ .find_link = find_end,
                              .arg = &mine[r],
                              .session = &session,
                              .group_name = "test",
                              .world_ranks = ranks,
                              .rank = r,
                              .size = SIZE };
        plans[r] = begin(&x[r], r, call, algorithm);
    }
    int n_done = 0;
    for (int i = 0; i < STEPS && n_done < SIZE; i++) {
        int r = i % SIZE;
        enum exec_result result = is_done[r] ? EXEC_BLOCKED : exec_step(&x[r]);
        ck_assert_msg(result != EXEC_FAILED && result != EXEC_LOST, "%s", err_last()->message);
        is_done[r] = is_done[r] || result == EXEC_DONE;
        n_done += result == EXEC_DONE;
    }
    ck_assert_int_eq(n_done, SIZE);
    for (int r = 0; r < SIZE; r++) {
        exec_end(&x[r]);
        exec_fini(&x[r]);
        plans[r] = plan_free(plans[r]);
    }
}

static int64_t value(int rank, size_t i)
{
    return (int64_t)(i * 31) * (rank == 0 ? -1 : 1) + ((int64_t)rank << 40);
}

static void fill(void)
{
    for (int r = 0; r < SIZE; r++) {
        for (size_t i = 0; i < SIZE * COUNT; i++) {
            in[r][i] = out[r][i] = value(r, i);
        }
    }
}

static const size_t mosts[] = { 61, 64, 71, 100, 4097, SIZE_MAX };
static const size_t counts[] = { 0, 1, 5, 1000, 4096, COUNT };

START_TEST(sums_are_right_however_the_bytes_are_cut)
{
    static const enum plan_algorithm algorithms[] = { PLAN_ALL_REDUCE_DOUBLING, PLAN_ALL_REDUCE_PAIRWISE,
                                                      PLAN_ALL_REDUCE_RING, PLAN_ALL_REDUCE_FOLD };
    most = mosts[_i];
    for (size_t a = 0; a < ARRAY_SIZE(algorithms); a++) {
        for (size_t c = 0; c < ARRAY_SIZE(counts); c++) {
            fill();
            run_all(
                &(struct collective_call){
                    .kind = MESH_COMM_ALL_REDUCE, .dtype = MESH_I64, .op = MESH_SUM, .count = counts[c] },
                algorithms[a]);
            for (size_t i = 0; i < counts[c]; i++) {
                int64_t sum = value(0, i) + value(1, i) + value(2, i);
                ck_assert(out[0][i] == sum && out[1][i] == sum && out[2][i] == sum);
            }
        }
    }
}
END_TEST

START_TEST(parts_come_whole_however_the_bytes_are_cut)
{
    most = mosts[_i];
    for (size_t c = 0; c < ARRAY_SIZE(counts); c++) {
        fill();
        run_all(&(struct collective_call){ .kind = MESH_COMM_ALL_GATHER, .dtype = MESH_I64, .count = counts[c] },
                c % 2 == 0 ? PLAN_ALL_GATHER_DIRECT : PLAN_ALL_GATHER_BRUCK);
        for (size_t i = 0; i < SIZE * counts[c]; i++) {
            int64_t part = value((int)(i / counts[c]), i % counts[c]);
            ck_assert(out[0][i] == part && out[1][i] == part && out[2][i] == part);
        }
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("exec");
    TCase *c = tcase_create("exec");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, sums_are_right_however_the_bytes_are_cut, 0, (int)ARRAY_SIZE(mosts));
    tcase_add_loop_test(c, parts_come_whole_however_the_bytes_are_cut, 0, (int)ARRAY_SIZE(mosts));
    suite_add_tcase(s, c);
    return s;
}
