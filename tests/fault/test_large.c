/* tests/fault/test_large.c - more than 2^31 elements in one call.
 *
 * The senders' pages are never written, so that only what is received takes memory: 2 GiB.  Left out under sanitizers and
 * on machines with less than MIN_FREE_BYTES to spare.
 * SPDX-License-Identifier: Apache-2.0 */
#include <sys/mman.h>

#include "../world/comm_world.h"

#define COUNT          (((size_t)1 << 31) + 5)
#define MIN_FREE_BYTES ((uint64_t)8 << 30)
#define MARK_EVERY     ((size_t)97 << 20)

static uint64_t free_bytes(void)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/meminfo", "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) {
            break;
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return (uint64_t)kib * 1024;
}

static bool has_room(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return false;
#else
    return free_bytes() >= MIN_FREE_BYTES;
#endif
}

/* Few bytes differ from 0, the last ones among them. */
static uint8_t mark(size_t i)
{
    return (uint8_t)(i / MARK_EVERY + 3);
}

static void set_marks(uint8_t *x)
{
    for (size_t i = 0; i < COUNT; i += MARK_EVERY) {
        x[i] = mark(i);
    }
    x[COUNT - 1] = 77;
}

static int check_marks(const uint8_t *x, const char *what)
{
    for (size_t i = 0; i < COUNT; i += MARK_EVERY) {
        if (x[i] != mark(i) || x[i + 1] != 0) {
            return wrong("%s: byte %zu is %d", what, i, (int)x[i]);
        }
    }
    return x[COUNT - 1] == 77 ? 0 : wrong("%s: the last byte is %d", what, (int)x[COUNT - 1]);
}

static int large(void *arg)
{
    (void)arg;
    uint8_t *x = mmap(NULL, COUNT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (x == MAP_FAILED) {
        return wrong("no memory");
    }
    bool is_source = mesh_rank() == 0;
    if (is_source) {
        set_marks(x);
    }
    int r = mesh_broadcast(x, COUNT, MESH_U8, 0, mesh_world());
    r = r < 0 ? r : check_marks(x, "broadcast");
    if (r == 0 && !is_source) {
        (void)madvise(x, COUNT, MADV_DONTNEED); /* all 0 again */
    }
    mesh_message m = { .peer = MESH_ANY_SOURCE, .tag = MESH_ANY_TAG, .count = COUNT };
    if (r == 0) {
        r = is_source ? mesh_send(x, COUNT, MESH_U8, 1, 9, mesh_world())
                      : mesh_recv_message(x, MESH_U8, &m, mesh_world());
    }
    r = r < 0 ? r : check_marks(x, "send");
    (void)munmap(x, COUNT);
    return r < 0 || m.count == COUNT ? r : wrong("%zu elements came", m.count);
}

START_TEST(more_than_2_to_the_31_bytes_arrive_in_one_call)
{
    if (!has_room()) {
        return;
    }
    int r = world_run_linked(2, LINK_UNIX, 60000, large, NULL);
    ck_assert_msg(r == 0, "%s", err_last()->message);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("large");
    TCase *c = tcase_create("large");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, more_than_2_to_the_31_bytes_arrive_in_one_call);
    suite_add_tcase(s, c);
    return s;
}
