/* tests/e2e/test_look.c - status, ranks, mesh show and kv on a daemon with real jobs; tables and JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon_fixture.h"
#include "harness/check_main.h"

static struct proc p;
static const char *const at = meshd.address;

/* A job of n ranks that made a mesh and a key, and wait for the key "go". */
static void job_start(struct proc *run, const char *name, const char *n)
{
    ctl_start(run, &(struct ctl_line){ .address = at,
                                       .args = (const char *[]){ "run", "-n", n, "--job", name, "--",
                                                                 program_path("RANK_PROGRAM"), "mesh", NULL } });
    wait_until_printed(run, "] ready\n", 1);
}

static void job_end(struct proc *run, const char *name)
{
    CTL(&p, at, "kv", "set", name, "go", "1");
    ctl_expect(&p, 0, "", "");
    ck_assert_msg(proc_wait(run, SOON_MS), "the job does not end: %.3000s%.3000s", run->out.text, run->err.text);
    ctl_expect(run, 0, NULL, "");
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    ck_assert_msg(text != NULL, "no text '%s'", key);
    return text;
}

static json_int_t number_of(const json_t *object, const char *key)
{
    ck_assert_msg(json_is_integer(json_object_get(object, key)), "no number '%s'", key);
    return json_integer_value(json_object_get(object, key));
}

START_TEST(ping_says_how_long_the_daemon_is_up)
{
    CTL(&p, at, "ping");
    ctl_expect(&p, 0, at, "");
    CTL(&p, at, "ping", "-o", "json");
    json_t *d = ctl_json(&p);
    ck_assert_str_eq(text_of(d, "address"), at);
    ck_assert_int_ge(number_of(d, "uptime_ms"), 0);
    json_decref(d);
    ctl_expect(&p, 0, NULL, "");
}
END_TEST

START_TEST(a_daemon_without_jobs_says_so)
{
    CTL(&p, at, "status");
    ctl_expect(&p, 0, "", "no jobs");
    CTL(&p, at, "status", "-o", "json");
    json_t *d = ctl_json(&p);
    ck_assert_uint_eq(json_array_size(json_object_get(d, "jobs")), 0);
    ck_assert_int_eq(number_of(d, "pid"), meshd.proc.pid);
    json_decref(d);
    ctl_expect(&p, 0, NULL, "");
}
END_TEST

START_TEST(status_and_ranks_show_a_running_job)
{
    struct proc run;
    job_start(&run, "train7", "4");
    CTL(&p, at, "status");
    ck_assert_ptr_nonnull(strstr(p.out.text, "JOB"));
    ck_assert_ptr_nonnull(strstr(p.out.text, "4/4"));
    ctl_expect(&p, 0, "train7", "");
    CTL(&p, at, "status", "-o", "json");
    json_t *d = ctl_json(&p);
    json_t *job = json_array_get(json_object_get(d, "jobs"), 0);
    ck_assert_str_eq(text_of(job, "job"), "train7");
    ck_assert_str_eq(text_of(job, "state"), "running");
    ck_assert_int_eq(number_of(job, "joined"), 4);
    ck_assert_int_eq(number_of(job, "size"), 4);
    json_decref(d);
    ctl_expect(&p, 0, NULL, "");
    CTL(&p, at, "ranks", "train7", "--no-headers");
    ck_assert_int_eq(count_text(p.out.text, "\n"), 4);
    ctl_expect(&p, 0, "joined", "");
    CTL(&p, at, "ranks", "train7", "-o", "jsonl");
    ck_assert_int_eq(count_text(p.out.text, "\"apiVersion\":\"mesh/v1\""), 4);
    ctl_expect(&p, 0, "\"rank\":3", "");
    CTL(&p, at, "ranks", "train7", "-o", "json");
    d = ctl_json(&p);
    json_t *ranks = json_object_get(d, "ranks");
    ck_assert_uint_eq(json_array_size(ranks), 4);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(number_of(json_array_get(ranks, i), "rank"), (json_int_t)i);
        ck_assert_str_eq(text_of(json_array_get(ranks, i), "state"), "joined");
    }
    json_decref(d);
    ctl_expect(&p, 0, NULL, "");
    job_end(&run, "train7");
}
END_TEST

START_TEST(a_mesh_is_drawn_as_a_grid)
{
    struct proc run;
    job_start(&run, "grid", "4");
    CTL(&p, at, "mesh", "show", "grid");
    static const char *const parts[] = { "tp=0", "tp=1", "dp=0",          "dp=1",
                                         "0@",   "3@",   "agreed by 4/4", "groups: dp [0 2] [1 3]  tp [0 1] [2 3]" };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        ck_assert_msg(strstr(p.out.text, parts[i]) != NULL, "'%s' is not in\n%.3000s", parts[i], p.out.text);
    }
    ctl_expect(&p, 0, NULL, "");
    CTL(&p, at, "mesh", "show", "grid", "-o", "json");
    json_t *d = ctl_json(&p);
    json_t *mesh = json_array_get(json_object_get(d, "meshes"), 0);
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(mesh, "names"), 1)), "tp");
    ck_assert_int_eq(json_integer_value(json_array_get(json_object_get(mesh, "shape"), 0)), 2);
    ck_assert_uint_eq(json_array_size(json_object_get(mesh, "ranks")), 4);
    ck_assert_int_eq(number_of(mesh, "agreed"), 4);
    json_decref(d);
    ctl_expect(&p, 0, NULL, "");
    job_end(&run, "grid");
}
END_TEST

START_TEST(values_make_the_round_trip)
{
    struct proc run;
    job_start(&run, "kv", "2");
    CTL(&p, at, "kv", "get", "kv", "greeting");
    ctl_expect(&p, 0, "hello\n", "");
    CTL(&p, at, "kv", "set", "kv", "answer", "forty two");
    ctl_expect(&p, 0, "", "");
    CTL(&p, at, "kv", "get", "kv", "answer", "-o", "json");
    json_t *d = ctl_json(&p);
    ck_assert_str_eq(text_of(d, "value"), "forty two");
    ck_assert_str_eq(text_of(d, "value_hex"), "666f7274792074776f");
    json_decref(d);
    ctl_expect(&p, 0, NULL, "");
    CTL(&p, at, "kv", "set", "kv", "--", "negative", "-1");
    ctl_expect(&p, 0, "", "");
    CTL(&p, at, "kv", "get", "kv", "negative");
    ctl_expect(&p, 0, "-1\n", "");
    CTL(&p, at, "kv", "get", "kv", "nothing");
    ctl_expect(&p, 3, "", "nothing");
    CTL(&p, at, "kv", "get", "kv", "nothing", "--wait", "100ms");
    ctl_expect(&p, 5, "", "nothing");
    job_end(&run, "kv");
}
END_TEST

START_TEST(kv_get_can_wait_for_a_key)
{
    struct proc run, get;
    job_start(&run, "waiting", "2");
    ctl_start(&get,
              &(struct ctl_line){ .address = at,
                                  .args = (const char *[]){ "kv", "get", "waiting", "late", "--wait", "30s", NULL } });
    (void)usleep(100000);
    CTL(&p, at, "kv", "set", "waiting", "late", "now");
    ctl_expect(&p, 0, "", "");
    ck_assert(proc_wait(&get, SOON_MS));
    ctl_expect(&get, 0, "now\n", "");
    job_end(&run, "waiting");
}
END_TEST

START_TEST(a_job_that_is_not_there_is_3)
{
    CTL(&p, at, "ranks", "nobody");
    ctl_expect(&p, 3, "", "nobody");
    CTL(&p, at, "mesh", "show", "nobody");
    ctl_expect(&p, 3, "", "nobody");
    CTL(&p, at, "kv", "get", "nobody", "k");
    ctl_expect(&p, 3, "", "nobody");
}
END_TEST

START_TEST(two_jobs_run_at_once_and_do_not_meet)
{
    struct proc a, b;
    job_start(&a, "first", "2");
    job_start(&b, "second", "4");
    CTL(&p, at, "kv", "set", "first", "mine", "1");
    ctl_expect(&p, 0, "", "");
    CTL(&p, at, "kv", "get", "second", "mine");
    ctl_expect(&p, 3, "", "mine");
    CTL(&p, at, "status", "-o", "json");
    json_t *d = ctl_json(&p);
    ck_assert_uint_eq(json_array_size(json_object_get(d, "jobs")), 2);
    json_decref(d);
    ctl_expect(&p, 0, NULL, "");
    job_end(&b, "second");
    CTL(&p, at, "ranks", "first", "--no-headers");
    ck_assert_int_eq(count_text(p.out.text, "joined"), 2);
    ctl_expect(&p, 0, NULL, "");
    job_end(&a, "first");
}
END_TEST

START_TEST(a_job_name_in_use_is_refused)
{
    struct proc run;
    job_start(&run, "taken", "2");
    CTL(&p, at, "run", "-n", "2", "--job", "taken", "--", "true");
    ctl_expect(&p, 1, "", "taken");
    job_end(&run, "taken");
}
END_TEST

START_TEST(watching_shows_it_again_until_it_is_ended)
{
    struct proc watch;
    ctl_start(&watch,
              &(struct ctl_line){ .address = at, .args = (const char *[]){ "status", "--watch", "-o", "json", NULL } });
    int64_t end_ms = now_ms() + SOON_MS;
    while (count_text(watch.out.text, "\"kind\": \"Status\"") < 2 && now_ms() < end_ms) {
        (void)proc_wait(&watch, 10);
    }
    ck_assert_int_ge(count_text(watch.out.text, "\"kind\": \"Status\""), 2);
    proc_signal(&watch, SIGINT);
    ck_assert(proc_wait(&watch, SOON_MS));
    ctl_expect(&watch, 130, NULL, "");
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("look");
    TCase *cases = tcase_create("look");
    tcase_set_timeout(cases, 120);
    tcase_add_checked_fixture(cases, meshd_setup, meshd_teardown);
    tcase_add_test(cases, ping_says_how_long_the_daemon_is_up);
    tcase_add_test(cases, a_daemon_without_jobs_says_so);
    tcase_add_test(cases, status_and_ranks_show_a_running_job);
    tcase_add_test(cases, a_mesh_is_drawn_as_a_grid);
    tcase_add_test(cases, values_make_the_round_trip);
    tcase_add_test(cases, kv_get_can_wait_for_a_key);
    tcase_add_test(cases, a_job_that_is_not_there_is_3);
    tcase_add_test(cases, two_jobs_run_at_once_and_do_not_meet);
    tcase_add_test(cases, a_job_name_in_use_is_refused);
    tcase_add_test(cases, watching_shows_it_again_until_it_is_ended);
    suite_add_tcase(suite, cases);
    return suite;
}
