/* tests/e2e/test_digits.c - the demo: handwritten digits learned on every mesh, with the losses of one process.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl.h"
#include "harness/check_main.h"

enum { MAX_EPOCHS = 64, TRAIN_MS = 300000 };

struct report {
    int n_epochs;
    double loss[MAX_EPOCHS], accuracy[MAX_EPOCHS];
    char per_step[256]; /* "2 all_reduce" */
};

static struct proc p;

static void read_report(struct report *r)
{
    *r = (struct report){ .n_epochs = 0 };
    for (const char *at = p.out.text; (at = strstr(at, "[0] epoch ")) != NULL; at++) {
        int epoch = 0;
        ck_assert_int_lt(r->n_epochs, MAX_EPOCHS);
        ck_assert_int_eq(sscanf(at, "[0] epoch %d loss %lf accuracy %lf%%", &epoch, &r->loss[r->n_epochs],
                                &r->accuracy[r->n_epochs]),
                         3);
        ck_assert_int_eq(epoch, ++r->n_epochs);
    }
    const char *at = strstr(p.out.text, "collectives per step: ");
    ck_assert_ptr_nonnull(at);
    (void)snprintf(r->per_step, sizeof r->per_step, "%.*s", (int)strcspn(at, "\n"), at);
}

static void train(const char *n, const char *mesh, const char *epochs, struct report *ret_report)
{
    const char *args[] = { "run",    "-n", n,          "--",   program_path("DIGITS_PROGRAM"),
                           "--mesh", mesh, "--epochs", epochs, NULL };
    ctl_start(&p, &(struct ctl_line){ .args = args });
    ck_assert_msg(proc_wait(&p, TRAIN_MS), "digits on %s does not end:\n%.3000s%.3000s", mesh, p.out.text, p.err.text);
    ck_assert_msg(proc_code(&p) == 0, "digits on %s ended with %d:\n%.3000s%.3000s", mesh, proc_code(&p), p.out.text,
                  p.err.text);
    read_report(ret_report);
    ck_assert_int_eq(ret_report->n_epochs, atoi(epochs));
    proc_fini(&p);
}

START_TEST(losses_agree_on_every_mesh_at_every_epoch)
{
    static const struct {
        const char *n, *mesh;
    } meshes[] = { { "2", "2x1" }, { "2", "1x2" }, { "4", "2x2" }, { "4", "4x1" }, { "4", "1x4" }, { "3", "3x1" } };
    struct report one, many;
    train("1", "1x1", "20", &one);
    for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++) {
        train(meshes[i].n, meshes[i].mesh, "20", &many);
        for (int e = 0; e < one.n_epochs; e++) {
            double apart = fabs(many.loss[e] - one.loss[e]) / one.loss[e];
            ck_assert_msg(apart <= 1e-4, "%s, epoch %d: loss %.8f, on one process %.8f: %.2g apart", meshes[i].mesh,
                          e + 1, many.loss[e], one.loss[e], apart);
        }
    }
}
END_TEST

START_TEST(tensor_parallel_layers_need_one_all_reduce_per_step)
{
    struct report r;
    train("2", "1x2", "1", &r);
    ck_assert_str_eq(r.per_step, "collectives per step: 1 all_reduce");
    train("4", "1x4", "1", &r);
    ck_assert_str_eq(r.per_step, "collectives per step: 1 all_reduce");
    train("1", "1x1", "1", &r);
    ck_assert_str_eq(r.per_step, "collectives per step: none");
}
END_TEST

START_TEST(twenty_epochs_on_four_ranks_read_95_percent)
{
    struct report r;
    train("4", "2x2", "20", &r);
    ck_assert_msg(r.accuracy[19] >= 95.0, "%.2f %%", r.accuracy[19]);
    ck_assert_msg(r.loss[19] < r.loss[0] / 10, "loss %.4f, at first %.4f", r.loss[19], r.loss[0]);
}
END_TEST

START_TEST(a_mesh_unlike_the_world_is_refused)
{
    CTL(&p, NULL, "run", "-n", "2", "--", program_path("DIGITS_PROGRAM"), "--mesh", "2x2");
    ck_assert_int_eq(count_text(p.err.text, "digits: "), 1);
    ctl_expect(&p, 2, "", "a 2x2 mesh needs 4 ranks, but the world has 2");
    CTL(&p, NULL, "run", "-n", "2", "--", program_path("DIGITS_PROGRAM"), "--mesh", "2by2");
    ctl_expect(&p, 2, "", "--mesh 2by2");
}
END_TEST

static void write_file(const char *folder, const char *name, const char *text, char *ret_path, size_t cap)
{
    (void)snprintf(ret_path, cap, "%s/%s", folder, name);
    FILE *file = fopen(ret_path, "we");
    ck_assert_ptr_nonnull(file);
    (void)fputs(text, file);
    (void)fclose(file);
}

START_TEST(data_that_cannot_be_read_get_one_sentence)
{
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        { "", "0 digits are too few" },
        { "1,2,3\n", "bad.csv:1:" },
        { "pixel,label\n", "bad.csv:1:1: expected a number" },
        { "17,0\n", "bad.csv:1:1: expected a number from 0 to 16" },
    };
    char folder[96], path[160];
    CTL(&p, NULL, "run", "-n", "2", "--", program_path("DIGITS_PROGRAM"), "--data", "/no/such/digits.csv");
    ck_assert_int_eq(count_text(p.err.text, "digits: "), 1);
    ctl_expect(&p, 1, "", "cannot read /no/such/digits.csv: No such file or directory");
    temp_folder_make(folder, sizeof folder);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_file(folder, "bad.csv", cases[i].text, path, sizeof path);
        CTL(&p, NULL, "run", "-n", "2", "--", program_path("DIGITS_PROGRAM"), "--data", path);
        ck_assert_int_eq(count_text(p.err.text, "digits: "), 1);
        ctl_expect(&p, 1, "", cases[i].sentence);
    }
    temp_folder_remove(folder);
}
END_TEST

START_TEST(without_a_launcher_it_is_a_world_of_one)
{
    static const char *const alone[] = { "MESH_ADDRESS", "MESH_JOB", "MESH_RANK", "MESH_WORLD_SIZE", NULL };
    proc_run(&p,
             &(struct proc_options){ .argv = (const char *[]){ program_path("DIGITS_PROGRAM"), "--epochs", "1", NULL },
                                     .environment = alone },
             TRAIN_MS);
    ctl_expect(&p, 0, "epoch  1  loss ", "");
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("digits");
    TCase *cases = tcase_create("digits");
    tcase_set_timeout(cases, 900);
    tcase_add_test(cases, losses_agree_on_every_mesh_at_every_epoch);
    tcase_add_test(cases, tensor_parallel_layers_need_one_all_reduce_per_step);
    tcase_add_test(cases, twenty_epochs_on_four_ranks_read_95_percent);
    tcase_add_test(cases, a_mesh_unlike_the_world_is_refused);
    tcase_add_test(cases, data_that_cannot_be_read_get_one_sentence);
    tcase_add_test(cases, without_a_launcher_it_is_a_world_of_one);
    suite_add_tcase(suite, cases);
    return suite;
}
