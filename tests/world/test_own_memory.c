/* tests/world/test_own_memory.c - what a call returns has elements of its own, also where nothing had to move.
 *
 * Otherwise a program that writes in place afterwards would compute one thing on one layout and another on the next.
 * SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <mesh/mesh.h>
#include <mesh/shorthand.h>

#include "harness/check_main.h"
#include "harness/ranks.h"

#define ROWS    4
#define COLUMNS 6
#define N       (ROWS * COLUMNS)

static mesh_dtensor *redistribute(mesh_dtensor *x)
{
    return mesh_redistribute(x, mesh_placements_of(x));
}
static mesh_dtensor *redistribute_whole(mesh_dtensor *x)
{
    return mesh_redistribute(x, Placements(Replicate()));
}
static mesh_dtensor *redistribute_rows(mesh_dtensor *x)
{
    return mesh_redistribute(x, Placements(Shard(0)));
}
static mesh_dtensor *redistribute_async(mesh_dtensor *x)
{
    return mesh_redistribute_async(x, Placements(Replicate()));
}
static mesh_dtensor *redistribute_to(mesh_dtensor *x)
{
    return mesh_redistribute_to(x, mesh_device_mesh_of(x), mesh_placements_of(x));
}
static mesh_dtensor *cast(mesh_dtensor *x)
{
    return mesh_cast(x, MESH_F32);
}
static mesh_dtensor *view(mesh_dtensor *x)
{
    return mesh_view(x, Shape(ROWS, COLUMNS));
}
static mesh_dtensor *reshape(mesh_dtensor *x)
{
    return mesh_reshape(x, Shape(ROWS, COLUMNS));
}
static mesh_dtensor *permute(mesh_dtensor *x)
{
    return mesh_permute(x, Shape(0, 1));
}
static mesh_dtensor *transpose(mesh_dtensor *x)
{
    return mesh_transpose(x, 0, 0);
}
static mesh_dtensor *expand(mesh_dtensor *x)
{
    return mesh_expand(x, Shape(ROWS, COLUMNS));
}
static mesh_dtensor *narrow(mesh_dtensor *x)
{
    return mesh_narrow(x, 0, 0, ROWS);
}
static mesh_dtensor *roll(mesh_dtensor *x)
{
    return mesh_roll(x, 0, 0);
}
static mesh_dtensor *pad(mesh_dtensor *x)
{
    return mesh_pad(x, Shape(0, 0, 0, 0), 0);
}
static mesh_dtensor *repeat(mesh_dtensor *x)
{
    return mesh_repeat(x, Shape(1, 1));
}
static mesh_dtensor *cat(mesh_dtensor *x)
{
    return mesh_cat(&x, 1, 0);
}
static mesh_dtensor *split(mesh_dtensor *x)
{
    mesh_dtensor *pieces[1] = { NULL };
    return mesh_split(x, ROWS, 0, pieces, 1) == 1 ? pieces[0] : NULL;
}
static mesh_dtensor *flip(mesh_dtensor *x)
{
    return mesh_flip(x, (mesh_shape){ .ndim = 0 });
}
static mesh_dtensor *sum(mesh_dtensor *x)
{
    return mesh_sum(mesh_unsqueeze(x, 0), .dims = Dims(0));
}
static mesh_dtensor *dropout(mesh_dtensor *x)
{
    return mesh_dropout(x, 0);
}

static const struct nothing_to_do {
    const char *name;
    mesh_dtensor *(*call)(mesh_dtensor *x);
} calls[] = {
    { "redistribute to what it is", redistribute },
    { "redistribute to Replicate", redistribute_whole },
    { "redistribute to Shard(0)", redistribute_rows },
    { "redistribute_async", redistribute_async },
    { "redistribute_to its own mesh", redistribute_to },
    { "cast", cast },
    { "view", view },
    { "reshape", reshape },
    { "permute", permute },
    { "transpose", transpose },
    { "expand", expand },
    { "narrow", narrow },
    { "roll", roll },
    { "pad", pad },
    { "repeat", repeat },
    { "cat", cat },
    { "split", split },
    { "flip", flip },
    { "sum", sum },
    { "dropout", dropout },
};

/* Writing into what the call gave leaves x as it was, and the other way round. */
static int write_after(const struct nothing_to_do *c, mesh_placements p)
{
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", Shape(mesh_world_size()), NULL);
    mesh_dtensor *x = mesh_full(Shape(ROWS, COLUMNS), 2, m, p);
    mesh_dtensor *y = x == NULL ? NULL : c->call(x);
    if (y == NULL || mesh_fill_(y, 5) == NULL || mesh_add_scalar_(x, 1) == NULL) {
        return ranks_complain(__FILE__, __LINE__, "%s: %s", c->name, mesh_last_error()->message);
    }
    double of_x = mesh_item(mesh_sum(x)), of_y = mesh_item(mesh_sum(y));
    if (of_x != 3 * N || of_y != 5 * N) {
        return ranks_complain(__FILE__, __LINE__, "%s shares memory: sums %g and %g, not %d and %d", c->name, of_x,
                              of_y, 3 * N, 5 * N);
    }
    return 0;
}

static int write_after_in_both_layouts(void *arg)
{
    REQUIRE_OK(write_after(arg, Placements(Replicate())));
    return write_after(arg, Placements(Shard(0)));
}

START_TEST(a_result_has_memory_of_its_own)
{
    struct nothing_to_do c = calls[_i];
    ranks_run(1, write_after_in_both_layouts, &c);
    ranks_run(2, write_after_in_both_layouts, &c);
}
END_TEST

/* The tensor that is laid out, and the one that is put together, are the caller's. */
static int write_into_plain(void *arg)
{
    (void)arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", Shape(mesh_world_size()), NULL);
    float mine[N] = { 7 };
    mesh_tensor *t = mesh_tensor_view(mine, Shape(N), MESH_F32);
    REQUIRE(mesh_fill_(mesh_distribute_tensor(t, m, Placements(Replicate())), 1) != NULL && mine[0] == 7);
    REQUIRE(mesh_fill_(mesh_distribute_tensor(t, m, Placements(Shard(0))), 1) != NULL && mine[0] == 7);
    REQUIRE(mesh_fill_(mesh_distribute_same(t, m, Placements(Replicate())), 1) != NULL && mine[0] == 7);
    mesh_dtensor *x = mesh_full(Shape(N), 2, m, Placements(Replicate()));
    ((float *)mesh_tensor_data(mesh_full_tensor(x)))[0] = 9;
    REQUIRE(mesh_item(mesh_sum(x)) == 2 * N);
    return 0;
}

START_TEST(plain_tensors_are_not_shared_by_layouts)
{
    ranks_run(1, write_into_plain, NULL);
    ranks_run(2, write_into_plain, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("own memory");
    TCase *t = tcase_create("own memory");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_result_has_memory_of_its_own, 0, (int)(sizeof calls / sizeof calls[0]));
    tcase_add_test(t, plain_tensors_are_not_shared_by_layouts);
    suite_add_tcase(s, t);
    return s;
}
