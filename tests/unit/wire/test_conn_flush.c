/* tests/unit/wire/test_conn_flush.c - closing a connection whose peer does not read takes its second, no more.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <unistd.h>

#include "wire_fixture.h"

static struct world w;

START_TEST(closing_gives_up_on_a_peer_that_does_not_read)
{
    static uint8_t payload[1 << 20];
    world_init(&w);
    int fd = world_connect_a(&w);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(conn_send(w.a.conn, payload, sizeof payload), 0);
    }
    conn_close(w.a.conn);
    world_run(&w);
    ck_assert_int_eq(w.a.status, 0);
    close(fd);
    world_fini(&w);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("conn_flush");
    TCase *t = tcase_create("conn_flush");
    tcase_add_test(t, closing_gives_up_on_a_peer_that_does_not_read);
    suite_add_tcase(s, t);
    return s;
}
