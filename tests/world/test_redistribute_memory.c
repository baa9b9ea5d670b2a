/* tests/world/test_redistribute_memory.c - the most memory a redistribution holds at once, beside what it was given.
 *
 * All ranks are threads of one process, so their peaks are measured together, while all of them redistribute: what is
 * bounded is the sum, of which the parts of the table are the shares.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/alloc.h"
#include "base/util.h"
#include "harness/check_main.h"
#include "harness/placements.h"
#include "harness/ranks.h"

#define ROWS  1024
#define BYTES (ROWS * ROWS * 4) /* of the whole tensor, f32 */
/* Of four ranks: what is on its way between threads, counts, plans. */
#define SLACK (BYTES / 4)

struct peak {
    mesh_shape mesh;
    mesh_placements from, to;
    int result, scratch; /* of one rank, in quarters of the whole */
};

static const struct peak peaks[] = {
    { { 1, { 4 } }, { 1, { S_(0) } }, { 1, { R_ } }, 4, 0 }, /* straight into place */
    { { 1, { 4 } }, { 1, { S_(1) } }, { 1, { R_ } }, 4, 4 }, /* arrives in parts */
    { { 1, { 4 } }, { 1, { R_ } }, { 1, { S_(0) } }, 1, 0 }, /* a slice */
    { { 1, { 4 } }, { 1, { R_ } }, { 1, { S_(1) } }, 1, 0 },
    { { 1, { 4 } }, { 1, { R_ } }, { 1, { SS_(0, 8) } }, 1, 0 },
    { { 1, { 4 } }, { 1, { S_(0) } }, { 1, { S_(1) } }, 1, 0 }, /* straight out of its rows */
    { { 1, { 4 } }, { 1, { S_(1) } }, { 1, { S_(0) } }, 1, 1 },
    { { 1, { 4 } }, { 1, { P_ } }, { 1, { R_ } }, 4, 0 },
    { { 1, { 4 } }, { 1, { P_ } }, { 1, { S_(0) } }, 1, 0 },
    { { 1, { 4 } }, { 1, { P_ } }, { 1, { S_(1) } }, 1, 4 }, /* packed */
    { { 1, { 4 } }, { 1, { S_(0) } }, { 1, { P_ } }, 4, 0 },
    { { 1, { 4 } }, { 1, { S_(0) } }, { 1, { SS_(0, 8) } }, 1, 2 }, /* an exchange: what is sent and what arrives */
    { { 2, { 2, 2 } }, { 2, { S_(0), S_(1) } }, { 2, { S_(1), S_(0) } }, 1, 2 },
    { { 2, { 2, 2 } }, { 2, { S_(0), S_(0) } }, { 2, { R_, S_(0) } }, 2, 3 },
    { { 2, { 2, 2 } }, { 2, { S_(0), S_(0) } }, { 2, { R_, R_ } }, 4, 2 }, /* halves on the way */
};

static mesh_dtensor *sample(mesh_device_mesh *m, mesh_placements p)
{
    return mesh_randn(MESH_SHAPE(ROWS, ROWS), m, p, .seed = 5); /* the same in every layout */
}

static bool same_parts(mesh_dtensor *a, mesh_dtensor *b)
{
    mesh_tensor *x = mesh_to_local(a), *y = mesh_to_local(b);
    mesh_shape s = mesh_tensor_shape(x);
    return x != NULL && y != NULL &&
           memcmp(mesh_tensor_data(x), mesh_tensor_data(y), (size_t)(s.dim[0] * s.dim[1]) * sizeof(float)) == 0;
}

static int measure(void *arg)
{
    const struct peak *p = arg;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", p->mesh, NULL);
    mesh_dtensor *x = sample(m, p->from);
    REQUIRE(x != NULL);
    mesh_scope *scope = mesh_scope_begin();
    REQUIRE(mesh_redistribute(x, p->to) != NULL); /* the plan, links and buffers that stay */
    REQUIRE(mesh_scope_end(scope) == 0 && mesh_barrier(mesh_world()) == 0);
    size_t before = mem_in_use();
    mem_peak_reset();
    REQUIRE(mesh_barrier(mesh_world()) == 0);
    mesh_dtensor *y = mesh_redistribute(x, p->to);
    REQUIRE(y != NULL && mesh_barrier(mesh_world()) == 0);
    int64_t used = (int64_t)mem_peak() - (int64_t)before, allowed = (int64_t)(p->result + p->scratch) * BYTES + SLACK;
    if (used > allowed) {
        return ranks_complain(__FILE__, __LINE__,
                              "%lld hundredths of the whole at the peak of all ranks, %d + %d hundred are allowed",
                              (long long)(used * 100 / BYTES), p->result, p->scratch);
    }
    REQUIRE(mesh_barrier(mesh_world()) == 0);
    REQUIRE(p->to.at[0].kind == MESH_IS_PARTIAL || same_parts(y, sample(m, p->to)));
    return 0;
}

START_TEST(a_redistribution_holds_its_result_and_what_it_packs)
{
    struct peak p = peaks[_i];
    ranks_run(4, measure, &p);
}
END_TEST

/* --- large ones --------------------------------------------------------------------------------------------------- */

#define LARGE       4096
#define LARGE_BYTES ((int64_t)LARGE * LARGE * 4) /* 64 MiB */
#define SCRATCH     ((int64_t)1 << 20)           /* of both ranks, however large the tensor is */

static int gather_large(void *arg)
{
    bool is_async = *(const bool *)arg;
    mesh_placements rows = MESH_PLACEMENTS(mesh_shard(0)), whole = MESH_PLACEMENTS(mesh_replicate());
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(2), NULL);
    mesh_dtensor *x = mesh_full(MESH_SHAPE(LARGE, LARGE), 7, m, rows);
    for (int round = 0; round < 2; round++) {
        mesh_scope *scope = mesh_scope_begin();
        REQUIRE(x != NULL && mesh_barrier(mesh_world()) == 0);
        size_t before = mem_in_use();
        mem_peak_reset();
        REQUIRE(mesh_barrier(mesh_world()) == 0);
        mesh_dtensor *y = is_async ? mesh_redistribute_async(x, whole) : mesh_redistribute(x, whole);
        mesh_tensor *local = mesh_to_local(y); /* waits for the elements */
        REQUIRE(local != NULL && mesh_barrier(mesh_world()) == 0);
        int64_t scratch = (int64_t)mem_peak() - (int64_t)before - 2 * LARGE_BYTES;
        if (round > 0 && scratch > SCRATCH) {
            return ranks_complain(__FILE__, __LINE__, "%lld bytes beside the results", (long long)scratch);
        }
        REQUIRE(((const float *)mesh_tensor_data(local))[LARGE * LARGE - 1] == 7);
        REQUIRE(mesh_scope_end(scope) == 0);
    }
    return 0;
}

START_TEST(shards_of_64_mib_made_whole_take_the_result_and_a_bounded_scratch)
{
    bool is_async = _i == 1;
    ranks_run(2, gather_large, &is_async);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("memory of redistributions");
    TCase *t = tcase_create("memory of redistributions");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_redistribution_holds_its_result_and_what_it_packs, 0, (int)ARRAY_SIZE(peaks));
    tcase_add_loop_test(t, shards_of_64_mib_made_whole_take_the_result_and_a_bounded_scratch, 0, 2);
    suite_add_tcase(s, t);
    return s;
}
