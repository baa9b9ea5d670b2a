/* tests/unit/comm/test_link_sim.c - the simulated stream carries bytes in order, fills up, ends, and wakes who sleeps.
 * SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "comm/link.h"
#include "harness/check_main.h"

static struct sim_net *net;
static struct link *a, *b;

static void set_up(void)
{
    net = sim_net_new();
    a = sim_net_link(net, 1, 0, 1);
    b = sim_net_link(net, 1, 1, 0);
}

static void tear_down(void)
{
    a = link_close(a);
    b = link_close(b);
    sim_net_free(net);
}

static int64_t put(struct link *l, const char *text, size_t n)
{
    return link_send(l, &(struct iovec){ .iov_base = (void *)(uintptr_t)text, .iov_len = n }, 1);
}

static int64_t get(struct link *l, char *text, size_t n)
{
    return link_receive(l, &(struct iovec){ .iov_base = text, .iov_len = n }, 1);
}

START_TEST(bytes_arrive_in_order_both_ways)
{
    char text[8] = "";
    ck_assert_int_eq(put(a, "abc", 3), 3);
    ck_assert_int_eq(put(a, "de", 2), 2);
    ck_assert_int_eq(put(b, "xyz", 3), 3);
    ck_assert_int_eq(link_peek(b, text, 2), 2);
    ck_assert_int_eq(get(b, text, 8), 5);
    ck_assert(memcmp(text, "abcde", 5) == 0);
    ck_assert_int_eq(get(b, text, 8), 0);
    ck_assert_int_eq(get(a, text, 2), 2);
    ck_assert_int_eq(get(a, text, 2), 1);
    ck_assert(text[0] == 'z');
}
END_TEST

START_TEST(a_full_ring_takes_no_more_until_it_is_read)
{
    size_t n = 100000, sent = 0;
    char *block = calloc(1, n), *all = malloc(4 * n);
    int64_t m;
    while ((m = put(a, block, n)) > 0) {
        sent += (size_t)m;
        ck_assert_uint_le(sent, 4 * n);
    }
    ck_assert_int_eq(m, 0);
    ck_assert_int_eq(get(b, all, 4 * n), (int64_t)sent);
    ck_assert_int_gt(put(a, block, n), 0);
    free(block);
    free(all);
}
END_TEST

START_TEST(what_was_sent_before_the_end_arrives_before_it)
{
    char text[4];
    ck_assert_int_eq(put(a, "ab", 2), 2);
    a = link_close(a);
    ck_assert_int_eq(get(b, text, 4), 2);
    ck_assert_int_eq(get(b, text, 4), MESH_EPEER);
    ck_assert_int_eq(put(b, "c", 1), MESH_EPEER);
    a = sim_net_link(net, 2, 0, 1); /* for tear_down() */
}
END_TEST

static void *send_later(void *arg)
{
    (void)arg;
    (void)poll(NULL, 0, 20);
    (void)put(a, "x", 1);
    return NULL;
}

START_TEST(a_sleeper_is_woken)
{
    pthread_t thread;
    ck_assert_int_eq(put(a, "x", 1), 1);
    ck_assert(link_arm(b, true, false)); /* there already */
    char text[2];
    ck_assert_int_eq(get(b, text, 2), 1);
    ck_assert(!link_arm(b, true, false));
    ck_assert_int_eq(pthread_create(&thread, NULL, send_later, NULL), 0);
    struct pollfd p = { .fd = b->fd, .events = link_poll_events(b, true, false) };
    ck_assert_int_eq(poll(&p, 1, 10000), 1);
    pthread_join(thread, NULL);
    ck_assert_int_eq(get(b, text, 2), 1);
    ck_assert(link_arm(b, true, true)); /* room to write */
}
END_TEST

START_TEST(groups_have_streams_of_their_own)
{
    char text[4];
    struct link *c = sim_net_link(net, 9, 1, 0), *d = sim_net_link(net, 9, 0, 1);
    ck_assert_int_eq(put(a, "a", 1), 1);
    ck_assert_int_eq(get(c, text, 4), 0);
    ck_assert_int_eq(put(d, "d", 1), 1);
    ck_assert_int_eq(get(c, text, 4), 1);
    ck_assert(text[0] == 'd');
    link_close(c);
    link_close(d);
}
END_TEST

START_TEST(a_broken_link_gives_its_reason)
{
    struct link *broken = link_broken_new(MESH_EPEER, "no stream to rank 2: Connection refused");
    char text[4];
    ck_assert_int_eq(get(broken, text, 4), MESH_EPEER);
    ck_assert_str_eq(err_last()->message, "no stream to rank 2: Connection refused");
    link_close(broken);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("link_sim");
    TCase *c = tcase_create("link_sim");
    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_test(c, bytes_arrive_in_order_both_ways);
    tcase_add_test(c, a_full_ring_takes_no_more_until_it_is_read);
    tcase_add_test(c, what_was_sent_before_the_end_arrives_before_it);
    tcase_add_test(c, a_sleeper_is_woken);
    tcase_add_test(c, groups_have_streams_of_their_own);
    tcase_add_test(c, a_broken_link_gives_its_reason);
    suite_add_tcase(s, c);
    return s;
}
