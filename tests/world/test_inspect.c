/* tests/world/test_inspect.c - pictures of layouts, printed values, the communication log, explicit mode, compared replicas.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/shorthand.h>

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "harness/check_main.h"
#include "harness/ranks.h"

#define ON(...) MESH_PLACEMENTS(__VA_ARGS__)

static int ends_with(mesh_scope *s, int status, const char *says)
{
    int r = mesh_scope_end(s);
    if (r != status || strstr(mesh_last_error()->message, says) == NULL) {
        return ranks_complain(__FILE__, __LINE__, "%d \"%s\" is not %d with \"%s\"", r, mesh_last_error()->message,
                              status, says);
    }
    return 0;
}

static int looks_like(mesh_dtensor *x, const char *want)
{
    char buf[2048];
    int n = mesh_visualize_sharding(x, buf, sizeof buf);
    if (n != (int)strlen(want) || strcmp(buf, want) != 0) {
        return ranks_complain(__FILE__, __LINE__, "%d:\n%s", n, buf);
    }
    return 0;
}

static int pictures(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(2, 2), MESH_NAMES("dp", "tp"));
    mesh_device_mesh *line = mesh_new_device_mesh("cpu", MESH_SHAPE(4), (int[]){ 3, 2, 1, 0 }, NULL);
    REQUIRE_OK(looks_like(mesh_zeros(MESH_SHAPE(5, 4), m, ON(Shard(0), Partial(MESH_SUM))),
                          "[5,4] f32 [S(0), P(sum)] on (dp=2, tp=2)\n"
                          "     0:4\n"
                          "0:3  0+1\n"
                          "3:5  2+3\n"));
    REQUIRE_OK(looks_like(mesh_zeros(MESH_SHAPE(5, 3), m, ON(Shard(0), Shard(1))),
                          "[5,3] f32 [S(0), S(1)] on (dp=2, tp=2)\n"
                          "     0:2  2:3\n"
                          "0:3  0    1  \n"
                          "3:5  2    3  \n"));
    REQUIRE_OK(looks_like(mesh_zeros(MESH_SHAPE(5), line, ON(Shard(0))), "[5] f32 [S(0)] on (4)\n"
                                                                         "  0:2  2:4  4:5\n"
                                                                         "  3    2    1  \n"
                                                                         "nothing: ranks 0\n"));
    REQUIRE_OK(looks_like(mesh_zeros(MESH_SHAPE(2, 1, 3), m, ON(Shard(0), Replicate())),
                          "[2,1,3] f32 [S(0), R] on (dp=2, tp=2)\n"
                          "[0:1, :, :]\n"
                          "     0:3\n"
                          "0:1  0,1\n"
                          "[1:2, :, :]\n"
                          "     0:3\n"
                          "0:1  2,3\n"));
    REQUIRE_OK(looks_like(mesh_zeros(MESH_SCALAR_SHAPE, m, ON(Partial(MESH_MAX), Replicate())),
                          "[] f32 [P(max), R] on (dp=2, tp=2)\n"
                          "  0+2,1+3\n"));
    REQUIRE_OK(looks_like(mesh_zeros(MESH_SHAPE(0, 3), line, ON(Shard(0))), "[0,3] f32 [S(0)] on (4)\n"
                                                                            "nothing: ranks 3, 2, 1, 0\n"));
    char buf[8192], few[8];
    mesh_dtensor *x = mesh_zeros(MESH_SHAPE(2, 2, 5, 4), m, ON(Shard(2), Shard(0)));
    mesh_scope *s = mesh_scope_begin();
    REQUIRE(mesh_visualize_sharding(x, NULL, 0) > 0);
    REQUIRE(mesh_visualize_sharding(x, NULL, 10) == MESH_EINVAL);
    REQUIRE(mesh_scope_end(s) == MESH_EINVAL);
    int n = mesh_visualize_sharding_svg(x, buf, sizeof buf);
    REQUIRE(n > 0 && n == (int)strlen(buf) && strstr(buf, "<svg ") == buf && strstr(buf, "</svg>\n") != NULL);
    REQUIRE(strstr(buf, "[0:1, 0:2, :, :]") != NULL && strstr(buf, "[1:2, 0:2, :, :]") != NULL);
    REQUIRE(strstr(buf, ">3:5</text>") != NULL && strstr(buf, ">2</text>") != NULL);
    REQUIRE(mesh_visualize_sharding_svg(x, few, sizeof few) == n && strlen(few) == 7);
    REQUIRE(mesh_visualize_sharding(x, NULL, 0) > 0);
    return 0;
}

START_TEST(pictures_show_uneven_empty_replicated_and_pending_parts)
{
    ranks_run(4, pictures, NULL);
}
END_TEST

static int printing(void *arg)
{
    (void)arg;
    char *text = NULL;
    size_t n = 0;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(2), MESH_NAMES("tp"));
    mesh_dtensor *x = mesh_reshape(mesh_arange(0, 6, 1, m, ON(Replicate())), MESH_SHAPE(2, 3));
    FILE *f = mesh_rank() == 0 ? open_memstream(&text, &n) : NULL;
    int r = mesh_print(mesh_redistribute(x, ON(Shard(1))), f);
    r = r < 0 ? r : mesh_print(mesh_arange(0, 2000, 1, m, ON(Shard(0)), .dtype = MESH_I64), f);
    REQUIRE(r == 0);
    if (f != NULL) {
        fclose(f);
        bool is_right = strcmp(text, "[2,3] f32 [S(1)] on (tp=2)\n[[0, 1, 2],\n [3, 4, 5]]\n"
                                     "[2000] i64 [S(0)] on (tp=2)\n[0, 1, 2, ..., 1997, 1998, 1999]\n") == 0;
        r = is_right ? 0 : ranks_complain(__FILE__, __LINE__, "printed %s", text);
        free(text);
    }
    return r;
}

START_TEST(values_are_printed_where_there_is_a_file)
{
    ranks_run(2, printing, NULL);
}
END_TEST

static int logging(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(2, 2), MESH_NAMES("dp", "tp"));
    mesh_dtensor *x = mesh_ones(MESH_SHAPE(8, 8), m, ON(Replicate(), Shard(0)));
    mesh_dtensor *y = mesh_ones(MESH_SHAPE(8, 8), m, ON(Replicate(), Partial(MESH_SUM)));
    mesh_comm_log *all = mesh_comm_log_begin(), *inner = mesh_comm_log_begin();
    REQUIRE(all != NULL && inner != NULL);
    REQUIRE(mesh_redistribute(x, ON(Replicate(), Replicate())) != NULL);
    REQUIRE(mesh_comm_log_end(inner) == 0 && mesh_comm_log_size(inner) == 1);
    const mesh_comm_record *record = mesh_comm_log_at(inner, 0);
    REQUIRE(record->kind == MESH_COMM_ALL_GATHER && record->n_ranks == 2 && record->bytes == 4 * 8 * 4);
    REQUIRE(strcmp(record->where, "mesh_redistribute") == 0 && strcmp(record->plan, "S(0)->R on tp") == 0);
    REQUIRE(record->op[0] == 0);
    REQUIRE(mesh_relu(y) != NULL);
    REQUIRE(mesh_barrier(mesh_get_group(m, "dp")) == 0);
    REQUIRE(mesh_comm_log_end(all) == 0 && mesh_comm_log_size(all) == 3);
    record = mesh_comm_log_at(all, 1);
    REQUIRE(strcmp(record->op, "relu") == 0 && strcmp(record->where, "mesh_relu") == 0);
    REQUIRE(strstr(record->plan, "P(sum)->") == record->plan && strstr(record->plan, " on tp") != NULL);
    record = mesh_comm_log_at(all, 2);
    REQUIRE(record->kind == MESH_COMM_BARRIER && record->op[0] == 0 && record->plan[0] == 0);
    REQUIRE(mesh_comm_log_at(all, 3) == NULL && mesh_comm_log_end(all) == MESH_ESTATE);
    REQUIRE(mesh_barrier(mesh_get_group(m, "dp")) == 0 && mesh_comm_log_size(all) == 3);
    mesh_scope *s = mesh_scope_begin();
    REQUIRE(mesh_comm_log_begin() != NULL); /* the scope ends it */
    REQUIRE(mesh_scope_end(s) == 0);
    return mesh_barrier(mesh_get_group(m, "dp"));
}

START_TEST(a_log_names_operator_kind_bytes_and_plan_of_each_collective)
{
    ranks_run(4, logging, NULL);
}
END_TEST

static int strict(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(2), MESH_NAMES("tp"));
    mesh_dtensor *rows = mesh_ones(MESH_SHAPE(4, 4), m, ON(Shard(0)), .requires_grad = true);
    mesh_dtensor *columns = mesh_ones(MESH_SHAPE(4, 4), m, ON(Shard(1)));
    REQUIRE(!mesh_explicit(true));
    mesh_comm_reset();
    mesh_scope *s = mesh_scope_begin();
    REQUIRE(mesh_add(rows, columns) == NULL);
    REQUIRE_OK(ends_with(s, MESH_EPLACEMENT, "add: argument "));
    REQUIRE(strstr(mesh_last_error()->message, "->") != NULL && mesh_comm_count(MESH_COMM_ALL_TO_ALL) == 0);
    mesh_dtensor *y = mesh_add(rows, mesh_redistribute(columns, ON(Shard(0))));                    /* asked for */
    REQUIRE(y != NULL && mesh_add(rows, mesh_ones(MESH_SHAPE(4, 4), m, ON(Replicate()))) != NULL); /* a local slice */
    REQUIRE(mesh_backward(mesh_sum(y)) == 0 && mesh_item(mesh_sum(y)) > 31);
    REQUIRE(mesh_explicit(false));
    REQUIRE(mesh_add(rows, columns) != NULL);
    return 0;
}

START_TEST(explicit_mode_refuses_what_would_move_bytes)
{
    ranks_run(2, strict, NULL);
}
END_TEST

static int diverging(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(3), MESH_NAMES("tp"));
    mesh_tensor *t = mesh_tensor_new(MESH_SHAPE(4), MESH_F32);
    ((float *)mesh_tensor_data(t))[2] = mesh_rank() == 1 ? 1 : 2;
    mesh_dtensor *good = mesh_ones(MESH_SHAPE(4), m, ON(Replicate()));
    mesh_dtensor *bad = mesh_from_local(t, m, ON(Replicate()));
    REQUIRE(!mesh_check_replicas(true));
    REQUIRE(mesh_add(good, good) != NULL);
    mesh_scope *s = mesh_scope_begin();
    REQUIRE(mesh_mul(good, bad) == NULL);
    REQUIRE_OK(ends_with(s, MESH_EMISMATCH, "mul: its result [4] f32 [R] on (tp=3) has diverged: ranks 0 and 1"));
    REQUIRE(mesh_add(mesh_redistribute(bad, ON(Shard(0))), good) != NULL); /* parts are nobody's replicas */
    REQUIRE(mesh_check_replicas(false) && mesh_mul(good, bad) != NULL);
    return 0;
}

START_TEST(the_first_operator_whose_replicas_differ_is_named)
{
    ranks_run(3, diverging, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("inspect");
    TCase *t = tcase_create("inspect");
    tcase_add_test(t, pictures_show_uneven_empty_replicated_and_pending_parts);
    tcase_add_test(t, values_are_printed_where_there_is_a_file);
    tcase_add_test(t, a_log_names_operator_kind_bytes_and_plan_of_each_collective);
    tcase_add_test(t, explicit_mode_refuses_what_would_move_bytes);
    tcase_add_test(t, the_first_operator_whose_replicas_differ_is_named);
    suite_add_tcase(s, t);
    return s;
}
