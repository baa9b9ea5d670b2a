/* tests/unit/daemon/test_jobs.c - jobs as a whole: rendezvous, generations, deaths, ends.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/jobs.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "harness/check_main.h"
#include "seen.h"

static struct jobs jobs;
static struct job *job; /* of 4 ranks */
static struct actions out;
static const uint8_t secret[2][SECRET_BYTES] = { { 1 }, { 2 } };

static void set_up(void)
{
    jobs_init(&jobs, 3);
    memset(&out, 0, sizeof out);
    ck_assert_int_eq(jobs_create(&jobs, "train", 4, 1000, 0, &job), 0);
    job->n_attached = 1;
}

static void tear_down(void)
{
    jobs_fini(&jobs);
    actions_fini(&out);
}

static struct join_call call(uint64_t client, int32_t rank)
{
    return (struct join_call){ .who = { .client = client, .request = 7 },
                               .rank = rank,
                               .pid = (uint32_t)client,
                               .host = "node1",
                               .deadline_ms = 3000 };
}

static int join(uint64_t client, int32_t rank)
{
    const struct join_call c = call(client, rank);
    return job_join(job, &c, secret[0], &out);
}

static void gone(uint64_t client)
{
    job_client_gone(job, client, secret[1], 0, &out);
}

static int leave(uint64_t client)
{
    return job_leave(job, client, secret[1], 0, &out);
}

/* Clients 10..13 become ranks 0..3. */
static void form(void)
{
    for (int32_t i = 0; i < 4; i++) {
        ck_assert_int_eq(join(10 + (uint64_t)i, i), 0);
    }
    ck_assert_uint_eq(job->liveness.n_alive, 4);
    actions_clear(&out);
}

static enum job_state state(void)
{
    const char *reason;
    return job_state(job, &reason);
}

START_TEST(the_last_join_answers_all_with_their_ranks)
{
    for (int32_t i = 3; i >= 0; i--) {
        ck_assert_uint_eq(out.list.n, 0);
        ck_assert_int_eq(state(), JOB_WAITING);
        ck_assert_int_eq(join(10 + (uint64_t)i, i), 0);
    }
    ck_assert_uint_eq(out.list.n, 4);
    for (uint64_t i = 0; i < 4; i++) {
        const struct action *a = seen_answer(&out, 10 + i);
        ck_assert_int_eq(a->kind, ACTION_JOINED);
        ck_assert_uint_eq(a->rank, i);
        ck_assert_uint_eq(a->to.request, 7);
    }
    ck_assert_int_eq(state(), JOB_RUNNING);
    ck_assert_uint_eq(job->rendezvous.running, 1);
    ck_assert_mem_eq(job->rendezvous.secret, secret[0], SECRET_BYTES);
}
END_TEST

START_TEST(hundreds_of_joiners_in_any_order_form)
{
    enum { N = 512 };
    struct job *big;
    ck_assert_int_eq(jobs_create(&jobs, "big", N, 1000, 0, &big), 0);
    uint32_t order[N];
    shuffle(order, N, (uint64_t)_i);
    for (uint32_t i = 0; i < N; i++) {
        char host[32];
        snprintf(host, sizeof host, "node%u", order[i] / 16);
        struct join_call c = call(order[i] + 1, _i % 2 == 0 ? -1 : (int32_t)order[i]);
        c.host = host;
        c.slot = order[i] % 16;
        ck_assert_int_eq(job_join(big, &c, secret[0], &out), 0);
    }
    ck_assert_uint_eq(out.list.n, N);
    for (uint32_t i = 0; i < N; i++) {
        ck_assert_uint_eq(out.list.at[i].to.client, out.list.at[i].rank + 1);
    }
}
END_TEST

START_TEST(a_table_of_ranks_that_fits_no_frame_is_refused_to_all)
{
    enum { N = 20000 };
    char address[MAX_ADDRESS_BYTES + 1];
    memset(address, 'x', MAX_ADDRESS_BYTES);
    address[MAX_ADDRESS_BYTES] = 0;
    struct job *big;
    ck_assert_int_eq(jobs_create(&jobs, "big", N, 1000, 0, &big), 0);
    for (uint32_t i = 0; i < N; i++) {
        struct join_call c = call(i + 1, -1); /* with a wish each would be compared with all others */
        c.address = (char *[]){ address };
        c.n_addresses = 1;
        ck_assert_int_eq(job_join(big, &c, secret[0], &out), 0);
    }
    ck_assert_uint_eq(out.list.n, N);
    ck_assert_int_eq(out.list.at[N / 2].status, MESH_ETOOLARGE);
    assert_says(out.list.at[N - 1].sentence, "20000 ranks of job big take 4");
    ck_assert_uint_eq(big->liveness.n_alive, 0);
}
END_TEST

START_TEST(the_odd_world_size_is_refused_and_named)
{
    for (int32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(join(10 + (uint64_t)i, i), 0);
    }
    struct join_call c = call(13, -1);
    c.size = 3;
    ck_assert_int_eq(job_join(job, &c, secret[0], &out), MESH_EMISMATCH);
    assert_says(mesh_last_error()->message, "4 ranks");
    assert_says(mesh_last_error()->message, "for 3");
    ck_assert_uint_eq(out.list.n, 0); /* the others go on waiting */
    c.size = 4;
    ck_assert_int_eq(job_join(job, &c, secret[0], &out), 0);
    ck_assert_uint_eq(out.list.n, 4);
}
END_TEST

START_TEST(wrong_ranks_are_refused)
{
    ck_assert_int_eq(join(10, 0), 0);
    ck_assert_int_eq(join(11, 0), MESH_EEXIST);
    assert_says(mesh_last_error()->message, "pid 10 on node1");
    ck_assert_int_eq(join(11, 4), MESH_EINVAL);
    ck_assert_int_eq(join(11, -2), MESH_EINVAL);
    ck_assert_int_eq(join(10, 1), MESH_ESTATE);
    struct join_call c = call(11, 1);
    c.generation = 2;
    ck_assert_int_eq(job_join(job, &c, secret[0], &out), MESH_EINVAL);
}
END_TEST

START_TEST(a_fourth_that_comes_in_time_forms)
{
    for (int32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(join(10 + (uint64_t)i, i), 0);
    }
    job_tick(job, 1000, &out);
    ck_assert_uint_eq(out.list.n, 0);
    ck_assert_int_eq(join(13, 3), 0);
    ck_assert_uint_eq(out.list.n, 4);
}
END_TEST

START_TEST(who_is_missing_is_said_long_before_the_deadline)
{
    struct join_call c = call(10, 0);
    c.deadline_ms = 60000;
    ck_assert_int_eq(job_join(job, &c, secret[0], &out), 0);
    c = call(12, 2);
    c.deadline_ms = 60000;
    ck_assert_int_eq(job_join(job, &c, secret[0], &out), 0);
    ck_assert_int_eq(job_next_deadline(job), 4000);
    job_tick(job, 3999, &out);
    ck_assert_uint_eq(out.list.n, 0);
    job_tick(job, 4000, &out);
    ck_assert_uint_eq(out.list.n, 1);
    assert_says(seen_notice(&out, 10)->sentence, "job train waits for ranks 1 3 to join, for 4 s now; 2 of 4 are here");
    actions_clear(&out);
    ck_assert_int_eq(job_next_deadline(job), 14000);
    job->liveness.watcher = 99;
    job_tick(job, 14000, &out);
    ck_assert_uint_eq(out.list.n, 1);
    ck_assert_int_eq(seen_notice(&out, 99)->notice.kind, NOTICE_STILL_JOINING);
}
END_TEST

START_TEST(the_deadline_names_the_missing_rank_to_all)
{
    for (int32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(join(10 + (uint64_t)i, i), 0);
    }
    ck_assert_int_eq(job_next_deadline(job), 3000);
    job_tick(job, 3000, &out);
    for (uint64_t i = 10; i < 13; i++) {
        ck_assert_int_eq(seen_answer(&out, i)->status, MESH_ETIMEDOUT);
        assert_says(seen_answer(&out, i)->sentence, "rank 3 of job train did not come within 3000 ms");
    }
    /* Generation 1 is over: who insists on it is stale, others begin the next. */
    struct join_call c = call(13, 3);
    c.generation = 1;
    ck_assert_int_eq(job_join(job, &c, secret[0], &out), MESH_ESTALE);
    ck_assert_int_eq(join(13, 3), 0);
    ck_assert_uint_eq(job->rendezvous.forming, 2);
}
END_TEST

START_TEST(the_deadline_without_wished_ranks_says_who_is_there)
{
    ck_assert_int_eq(join(10, -1), 0);
    ck_assert_int_eq(join(11, -1), 0);
    uint32_t missing[4];
    ck_assert_uint_eq(rendezvous_missing(&job->rendezvous, missing), 2);
    ck_assert_uint_eq(missing[0], 2);
    job_tick(job, 3000, &out);
    assert_says(seen_answer(&out, 10)->sentence, "2 of the 4 ranks");
    assert_says(seen_answer(&out, 10)->sentence, "node1 pid 10, node1 pid 11");
}
END_TEST

START_TEST(a_death_before_completion_frees_the_place)
{
    ck_assert_int_eq(join(10, 0), 0);
    ck_assert_int_eq(join(11, 1), 0);
    gone(11);
    ck_assert_uint_eq(out.list.n, 0); /* nobody need know */
    ck_assert_int_eq(join(12, 2), 0);
    ck_assert_int_eq(join(21, 1), 0);
    ck_assert_int_eq(join(13, 3), 0);
    ck_assert_uint_eq(seen_answer(&out, 21)->rank, 1);
    ck_assert_uint_eq(out.list.n, 4);
}
END_TEST

static int told_of_end(uint32_t rank)
{
    struct ended_rank e = { .rank = rank, .pid = 11, .words = "exited with code 3" };
    return job_rank_ended(job, &e, &out);
}

START_TEST(how_a_process_ended_is_told_with_its_death)
{
    ck_assert_int_eq(join(10, 0), 0);
    ck_assert_int_eq(join(11, 1), 0);
    ck_assert_int_eq(join(12, 2), 0);
    ck_assert_int_eq(join(13, 3), 0);
    uint32_t pid = job->rendezvous.table[1].pid;
    struct ended_rank e = { .rank = 1, .pid = pid, .words = "exited with code 0" };
    struct ended_rank other = { .rank = 2, .pid = 4711, .words = "exited with code 3" };
    ck_assert_int_eq(job_rank_ended(job, &e, &out), 0);
    ck_assert_int_eq(job_rank_ended(job, &other, &out), 0);
    actions_clear(&out);
    gone(11);
    assert_says(seen_notice(&out, 10)->sentence, "exited with code 0 without mesh_finalize()");
    actions_clear(&out);
    gone(12);
    assert_says(seen_notice(&out, 10)->sentence,
                " died"); /* the process that ended was a parent of it, or another one */
}
END_TEST

static void expect_absent(uint64_t client, const char *who)
{
    const struct action *a = seen_answer(&out, client);
    ck_assert_int_eq(a->status, MESH_EPEER);
    assert_says(a->sentence, who);
    assert_says(a->sentence, "its process (pid 11) exited with code 3 before it joined");
}

START_TEST(a_rank_that_ended_before_joining_fails_those_who_wait)
{
    enum { WATCHER = 99 };
    job->liveness.watcher = WATCHER;
    ck_assert_int_eq(told_of_end(4), MESH_EINVAL);
    ck_assert_int_eq(join(10, 0), 0);
    ck_assert_int_eq(join(12, 2), 0);
    ck_assert_int_eq(told_of_end(1), 0);
    expect_absent(10, "rank 1 ");
    expect_absent(12, "rank 1 ");
    ck_assert_uint_eq(out.list.at[0].to.client, WATCHER); /* before anybody else */
    ck_assert_int_eq(seen_notice(&out, WATCHER)->notice.kind, NOTICE_RANK_ABSENT);
    ck_assert_int_eq(seen_notice(&out, WATCHER)->notice.rank, 1);
    actions_clear(&out);
    ck_assert_int_eq(join(13, 3), 0); /* who comes later hears it at once */
    expect_absent(13, "rank 1 ");
}
END_TEST

START_TEST(the_end_of_a_waiting_ranks_process_counts_when_its_connection_ends)
{
    for (int32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(join(10 + (uint64_t)i, i), 0);
    }
    ck_assert_int_eq(told_of_end(1), 0);
    ck_assert_uint_eq(out.list.n, 0);
    gone(11);
    expect_absent(10, "rank 1 ");
    expect_absent(12, "rank 1 ");
    ck_assert_uint_eq(seen_answers(&out, 11), 0);
}
END_TEST

START_TEST(ends_of_processes_disturb_no_running_generation_but_the_next)
{
    form();
    ck_assert_int_eq(leave(10), 0);
    ck_assert_int_eq(told_of_end(0), 0);
    ck_assert_int_eq(leave(11), 0);
    ck_assert_uint_eq(seen_answers(&out, 12), 0);
    actions_clear(&out);
    ck_assert_int_eq(join(11, 1), 0); /* wants a second generation, for which rank 0 can no longer come */
    expect_absent(11, "rank 0 ");
    ck_assert_uint_eq(job->liveness.n_alive, 2);
    actions_clear(&out);
    ck_assert_int_eq(join(20, 0), 0); /* started again by somebody */
    ck_assert_uint_eq(out.list.n, 0);
}
END_TEST

START_TEST(a_death_afterwards_degrades_the_job)
{
    form();
    ck_assert_int_eq(store_set(&job->store, (struct ticket){ 10, 1 }, text("k"), text("v"), &out), 0);
    actions_clear(&out);
    gone(12);
    ck_assert_int_eq(seen_notice(&out, 10)->notice.kind, NOTICE_RANK_DIED);
    assert_says(seen_notice(&out, 10)->sentence, "rank 2 (node1, pid 12) died");
    ck_assert_int_eq(state(), JOB_DEGRADED);
    actions_clear(&out);
    ck_assert_int_eq(store_get(&job->store, (struct ticket){ 10, 1 }, text("k"), 0, -1, &out), 0);
}
END_TEST

START_TEST(all_may_rejoin_as_the_next_generation_with_an_empty_store)
{
    form();
    ck_assert_int_eq(store_set(&job->store, (struct ticket){ 10, 1 }, text("k"), text("v"), &out), 0);
    gone(12);
    actions_clear(&out);
    ck_assert_int_eq(join(22, 2), 0); /* restarted */
    ck_assert_int_eq(leave(10), 0);
    ck_assert_int_eq(join(10, 0), 0);
    ck_assert_int_eq(leave(11), 0);
    ck_assert_int_eq(leave(13), 0);
    ck_assert_int_eq(join(11, 1), 0);
    actions_clear(&out);
    ck_assert_int_eq(join(13, 3), 0);
    ck_assert_uint_eq(out.list.n, 4);
    ck_assert_uint_eq(job->rendezvous.running, 2);
    ck_assert_int_eq(state(), JOB_RUNNING);
    ck_assert_uint_eq(job->store.entries.n, 0);
    ck_assert_int_eq(liveness_rank_of(&job->liveness, 12), -1);
    ck_assert_int_eq(liveness_rank_of(&job->liveness, 22), 2);
}
END_TEST

START_TEST(keys_set_before_the_first_generation_stay)
{
    ck_assert_int_eq(store_set(&job->store, (struct ticket){ 1, 1 }, text("k"), text("v"), &out), 0);
    form();
    ck_assert_uint_eq(job->store.entries.n, 1);
}
END_TEST

START_TEST(a_surplus_rank_is_stale_while_the_job_runs)
{
    form();
    ck_assert_int_eq(join(14, -1), MESH_ESTALE);
    ck_assert_int_eq(join(14, 2), MESH_ESTALE);
    assert_says(mesh_last_error()->message, "rank 2 (node1, pid 12) is alive");
    gone(12);
    ck_assert_int_eq(join(14, -1), 0);
    ck_assert_int_eq(join(15, -1), MESH_ESTALE); /* its place is taken */
    actions_clear(&out);
    job_tick(job, 3000, &out);
    ck_assert_int_eq(seen_answer(&out, 14)->status, MESH_ETIMEDOUT);
}
END_TEST

START_TEST(the_last_leave_lets_a_full_next_generation_form)
{
    struct job *one;
    ck_assert_int_eq(jobs_create(&jobs, "one", 1, 1000, 0, &one), 0);
    const struct join_call c = call(1, 0);
    ck_assert_int_eq(job_join(one, &c, secret[0], &out), 0);
    ck_assert_int_eq(job_leave(one, 1, secret[1], 0, &out), 0);
    ck_assert_int_eq(job_join(one, &c, secret[1], &out), 0);
    ck_assert_uint_eq(one->rendezvous.running, 2);
    ck_assert_mem_eq(one->rendezvous.secret, secret[1], SECRET_BYTES);
}
END_TEST

START_TEST(leaving_first_disturbs_nobody)
{
    form();
    ck_assert_int_eq(leave(10), 0);
    ck_assert_int_eq(seen_notice(&out, 11)->notice.kind, NOTICE_RANK_LEFT);
    ck_assert_int_eq(state(), JOB_RUNNING);
    ck_assert_int_eq(leave(10), MESH_ESTATE);
    actions_clear(&out);
    gone(10); /* its connection ends later: no death */
    ck_assert_uint_eq(out.list.n, 0);
    for (uint64_t i = 11; i < 14; i++) {
        ck_assert_int_eq(leave(i), 0);
    }
    ck_assert_int_eq(state(), JOB_DONE);
}
END_TEST

START_TEST(leaving_while_waiting_gives_up_the_join)
{
    ck_assert_int_eq(join(10, 0), 0);
    ck_assert_int_eq(leave(10), 0);
    ck_assert_int_eq(seen_answer(&out, 10)->status, MESH_EABORTED);
    ck_assert_uint_eq(job->rendezvous.waiting.n, 0);
}
END_TEST

START_TEST(ending_a_job_tells_its_ranks_why)
{
    form();
    job_end(job, "rank 2 exited with code 3", &out);
    const struct action *a = seen_notice(&out, 10);
    ck_assert_int_eq(a->notice.kind, NOTICE_REPORT);
    ck_assert_int_eq(a->notice.status, MESH_EABORTED);
    assert_says(a->sentence, "rank 2 exited with code 3");
    ck_assert_int_eq(join(20, 1), MESH_ESTALE);
    ck_assert(!jobs_drop_if_over(&jobs, job, 5, &out)); /* ranks live */
    for (uint64_t i = 10; i < 14; i++) {
        gone(i);
    }
    ck_assert(jobs_drop_if_over(&jobs, job, 5, &out));
    ck_assert_uint_eq(jobs.list.n, 0);
    ck_assert_int_eq(jobs.finished[0].state, JOB_FAILED);
    ck_assert_str_eq(jobs.finished[0].reason, "rank 2 exited with code 3");
}
END_TEST

START_TEST(ending_a_job_answers_those_who_wait_to_join)
{
    ck_assert_int_eq(join(10, 0), 0);
    job_end(job, "interrupted", &out);
    ck_assert_int_eq(seen_answer(&out, 10)->status, MESH_EABORTED);
    ck_assert(jobs_drop_if_over(&jobs, job, 5, &out));
}
END_TEST

START_TEST(a_job_without_ranks_or_connections_is_forgotten_but_remembered)
{
    form();
    for (uint64_t i = 10; i < 14; i++) {
        ck_assert_int_eq(leave(i), 0);
    }
    ck_assert(!jobs_drop_if_over(&jobs, job, 5, &out)); /* its creator is connected */
    ck_assert_int_eq(store_get(&job->store, (struct ticket){ 77, 1 }, text("k"), 0, 9000, &out), 0);
    job->n_attached = 0;
    actions_clear(&out);
    ck_assert(jobs_drop_if_over(&jobs, job, 5, &out));
    ck_assert_int_eq(seen_answer(&out, 77)->status, MESH_EABORTED);
    ck_assert_int_eq(jobs.finished[0].state, JOB_DONE);
    ck_assert_str_eq(jobs.finished[0].name, "train");
    ck_assert_int_eq(jobs_find(&jobs, "train", 1000, &job), MESH_ENOTFOUND);
}
END_TEST

START_TEST(a_created_job_waits_a_while_for_its_first_ranks)
{
    job->keep_until_ms = 60000;
    job->n_attached = 0; /* its creator has gone */
    ck_assert(!jobs_drop_if_over(&jobs, job, 59999, &out));
    ck_assert_int_eq(job_next_deadline(job), 60000);
    ck_assert_int_eq(join(10, 0), 0);
    ck_assert_int_eq(job_next_deadline(job), 3000);
    gone(10);
    ck_assert(jobs_drop_if_over(&jobs, job, 60000, &out));
    ck_assert_int_eq(jobs.finished[0].state, JOB_FAILED);
}
END_TEST

START_TEST(jobs_are_separate_and_belong_to_their_user)
{
    struct job *other, *found;
    ck_assert_int_eq(jobs_create(&jobs, "", 2, 1001, 0, &other), 0);
    ck_assert_str_eq(other->rendezvous.job, "job-1");
    ck_assert_int_eq(jobs_find(&jobs, "train", 1001, &found), MESH_EAUTH);
    ck_assert_int_eq(jobs_find(&jobs, "train", 1000, &found), 0);
    ck_assert_ptr_eq(found, job);
    ck_assert_int_eq(jobs_find(&jobs, "job-1", 0, &found), 0); /* root */
    ck_assert_int_eq(jobs_create(&jobs, "train", 2, 1000, 0, &found), MESH_EEXIST);
    ck_assert_int_eq(jobs_create(&jobs, "a b", 2, 1000, 0, &found), MESH_EINVAL);
    ck_assert_int_eq(jobs_create(&jobs, "zero", 0, 1000, 0, &found), MESH_EINVAL);
    ck_assert_int_eq(jobs_create(&jobs, "huge", MAX_RANKS + 1, 1000, 0, &found), MESH_EINVAL);
    ck_assert_int_eq(jobs_create(&jobs, "b", 1, 1000, 0, &found), 0);
    ck_assert_int_eq(jobs_create(&jobs, "c", 1, 1000, 0, &found), 0);
    ck_assert_int_eq(jobs_create(&jobs, "d", 1, 1000, 0, &found), MESH_ETOOLARGE);
}
END_TEST

START_TEST(stopping_answers_all_that_wait_in_any_way)
{
    form();
    const struct barrier_call b = { .who = { 10, 1 }, .rank = 0, .name = "b", .deadline_ms = 9000 };
    const struct agree_call g = { .who = { 11, 1 }, .rank = 1, .key = "m/0", .descriptor = "x=1", .deadline_ms = 9000 };
    ck_assert_int_eq(barrier_arrive(&job->barriers, &b, &job->liveness, &out), 0);
    ck_assert_int_eq(agree_post(&job->agreements, &g, &job->liveness, &out), 0);
    ck_assert_int_eq(store_get(&job->store, (struct ticket){ 12, 1 }, text("k"), 0, 8000, &out), 0);
    ck_assert_int_eq(job_next_deadline(job), 8000);
    job_stop(job, "meshd is stopping", &out);
    for (uint64_t i = 10; i < 13; i++) {
        ck_assert_int_eq(seen_answer(&out, i)->status, MESH_EABORTED);
        ck_assert_str_eq(seen_answer(&out, i)->sentence, "meshd is stopping");
    }
}
END_TEST

START_TEST(group_records_are_kept_once_and_bounded)
{
    struct group_call g = { .group = 1, .name = "dp", .member = (uint32_t[]){ 0, 2 }, .n_members = 2, .world_size = 4 };
    ck_assert_int_eq(records_group(&job->records, &g), 0);
    ck_assert_int_eq(records_group(&job->records, &g), 0);
    ck_assert_uint_eq(job->records.groups.n, 1);
    g.group = 2;
    g.world_size = 2;
    ck_assert_int_eq(records_group(&job->records, &g), MESH_EINVAL);
    g.world_size = 4;
    for (uint64_t i = 2; i < MAX_GROUP_RECORDS + 3; i++) {
        g.group = i;
        ck_assert_int_eq(records_group(&job->records, &g), 0);
    }
    ck_assert_uint_eq(job->records.groups.n, MAX_GROUP_RECORDS);
    ck_assert_uint_eq(job->records.groups.at[0].group, 3);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("jobs");
    TCase *tc = tcase_create("jobs");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, the_last_join_answers_all_with_their_ranks);
    tcase_add_loop_test(tc, hundreds_of_joiners_in_any_order_form, 0, 6);
    tcase_add_test(tc, a_table_of_ranks_that_fits_no_frame_is_refused_to_all);
    tcase_add_test(tc, the_odd_world_size_is_refused_and_named);
    tcase_add_test(tc, wrong_ranks_are_refused);
    tcase_add_test(tc, a_fourth_that_comes_in_time_forms);
    tcase_add_test(tc, who_is_missing_is_said_long_before_the_deadline);
    tcase_add_test(tc, the_deadline_names_the_missing_rank_to_all);
    tcase_add_test(tc, the_deadline_without_wished_ranks_says_who_is_there);
    tcase_add_test(tc, a_death_before_completion_frees_the_place);
    tcase_add_test(tc, how_a_process_ended_is_told_with_its_death);
    tcase_add_test(tc, a_rank_that_ended_before_joining_fails_those_who_wait);
    tcase_add_test(tc, the_end_of_a_waiting_ranks_process_counts_when_its_connection_ends);
    tcase_add_test(tc, ends_of_processes_disturb_no_running_generation_but_the_next);
    tcase_add_test(tc, a_death_afterwards_degrades_the_job);
    tcase_add_test(tc, all_may_rejoin_as_the_next_generation_with_an_empty_store);
    tcase_add_test(tc, keys_set_before_the_first_generation_stay);
    tcase_add_test(tc, a_surplus_rank_is_stale_while_the_job_runs);
    tcase_add_test(tc, the_last_leave_lets_a_full_next_generation_form);
    tcase_add_test(tc, leaving_first_disturbs_nobody);
    tcase_add_test(tc, leaving_while_waiting_gives_up_the_join);
    tcase_add_test(tc, ending_a_job_tells_its_ranks_why);
    tcase_add_test(tc, ending_a_job_answers_those_who_wait_to_join);
    tcase_add_test(tc, a_job_without_ranks_or_connections_is_forgotten_but_remembered);
    tcase_add_test(tc, a_created_job_waits_a_while_for_its_first_ranks);
    tcase_add_test(tc, jobs_are_separate_and_belong_to_their_user);
    tcase_add_test(tc, stopping_answers_all_that_wait_in_any_way);
    tcase_add_test(tc, group_records_are_kept_once_and_bounded);
    suite_add_tcase(suite, tc);
    return suite;
}
