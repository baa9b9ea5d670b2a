/* tests/unit/daemon/test_no_memory.c - every allocation of a job's life fails once: nothing breaks, nothing leaks.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/fault.h"
#include "daemon/jobs.h"
#include "harness/check_main.h"
#include "seen.h"

enum { N = 3 };

static struct jobs jobs;
static struct actions out;
static const uint8_t secret[SECRET_BYTES];

/* Either done or out of memory; anything else is a mistake of ours. */
static void check(int r)
{
    ck_assert_msg(r == 0 || r == MESH_ENOMEM, "status %d: %s", r, mesh_last_error()->message);
}

static bool join_all(struct job *job)
{
    char *address[] = { "unix:/tmp/a" };
    for (uint64_t i = 0; i < N; i++) {
        const struct join_call c = {
            .who = { i + 1, 1 }, .rank = -1, .host = "h", .address = address, .n_addresses = 1, .deadline_ms = 100
        };
        check(job_join(job, &c, secret, &out));
    }
    return job->liveness.n_alive == N;
}

static void use_store(struct job *job)
{
    const struct bytes keys[] = { text("a"), text("b") };
    const struct store_wait w = { .key = keys, .n = 2, .deadline_ms = 50 };
    check(store_wait(&job->store, (struct ticket){ 1, 2 }, &w, &out));
    check(store_get(&job->store, (struct ticket){ 2, 2 }, text("c"), 0, 50, &out));
    check(store_set(&job->store, (struct ticket){ 3, 2 }, text("a"), text("1"), &out));
    check(store_add(&job->store, (struct ticket){ 3, 3 }, text("b"), 1, &out));
}

static void meet(struct job *job)
{
    for (uint32_t i = 0; i < N - 1; i++) {
        const struct barrier_call b = { .who = { i + 1, 4 }, .rank = i, .name = "b", .deadline_ms = 60 };
        const struct agree_call g = {
            .who = { i + 1, 5 }, .rank = i, .key = "m", .descriptor = i == 0 ? "x=1" : "x=2", .deadline_ms = 60
        };
        check(barrier_arrive(&job->barriers, &b, &job->liveness, &out));
        check(agree_post(&job->agreements, &g, &job->liveness, &out));
    }
    const struct group_call g = { .group = 1, .name = "dp", .world_size = N };
    check(records_group(&job->records, &g));
}

static void live(void)
{
    struct job *job;
    int r = jobs_create(&jobs, "train", N, 1, 0, &job);
    check(r);
    if (r < 0) {
        return;
    }
    if (join_all(job)) {
        use_store(job);
        meet(job);
        job_tick(job, 60, &out);
        job_client_gone(job, 2, secret, 61, &out);
    }
    job_stop(job, "the end", &out);
    ck_assert_uint_eq(job->store.n_waiters, 0);
}

START_TEST(each_allocation_may_fail)
{
    bool fired = true;
    uint64_t n = 1;
    for (; fired; n++) {
        jobs_init(&jobs, 3);
        memset(&out, 0, sizeof out);
        fault_arm(FAULT_ALLOC, n, 0);
        live();
        fired = fault_fired(FAULT_ALLOC) > 0;
        fault_disarm(FAULT_ALLOC);
        jobs_fini(&jobs);
        actions_fini(&out);
    }
    ck_assert_uint_gt(n, 20);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("no memory");
    TCase *tc = tcase_create("no memory");
    tcase_add_test(tc, each_allocation_may_fail);
    suite_add_tcase(suite, tc);
    return suite;
}
