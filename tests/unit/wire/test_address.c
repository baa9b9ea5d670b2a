/* tests/unit/wire/test_address.c - addresses as text, and back.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <mesh/base.h>

#include "base/error.h"
#include "wire/default_address.h"
#include "wire/dial.h"
#include "wire_fixture.h"

static const struct row {
    const char *text;
    const char *formatted; /* NULL: refused */
} rows[] = {
    { "unix:/run/meshd/meshd.sock", "unix:/run/meshd/meshd.sock" },
    { "unix:relative", "unix:relative" },
    { "./x.sock", "unix:./x.sock" },
    { "tcp:node2:4711", "tcp:node2:4711" },
    { "tcp:127.0.0.1:0", "tcp:127.0.0.1:0" },
    { "tcp:[::1]:65535", "tcp:[::1]:65535" },
    { "unix:", NULL },
    { "", NULL },
    { "meshd.sock", NULL },
    { "udp:host:1", NULL },
    { "tcp:host", NULL },
    { "tcp::1", NULL },
    { "tcp:host:", NULL },
    { "tcp:host:65536", NULL },
    { "tcp:host:-1", NULL },
    { "tcp:host:12a", NULL },
    { "tcp:host:000000001", NULL },
    { "tcp:::1:80", NULL },
    { "tcp:[::1]", NULL },
    { "tcp:[::1]80", NULL },
    { "tcp:[]:80", NULL },
};

START_TEST(addresses_are_read_or_refused_with_their_text)
{
    const struct row *row = &rows[_i];
    struct address a;
    char text[400];
    int r = address_parse(row->text, &a);
    if (!row->formatted) {
        ck_assert_int_eq(r, MESH_EINVAL);
        snprintf(text, sizeof text, "\"%s\"", row->text);
        ck_assert_ptr_nonnull(strstr(err_last()->message, text));
        return;
    }
    ck_assert_int_eq(r, 0);
    address_format(&a, text, sizeof text);
    ck_assert_str_eq(text, row->formatted);
}
END_TEST

START_TEST(a_path_fits_its_socket_or_is_refused)
{
    char text[200];
    struct address a;
    snprintf(text, sizeof text, "/%0106d", 1);
    ck_assert_int_eq(address_parse(text, &a), 0);
    snprintf(text, sizeof text, "/%0107d", 1);
    ck_assert_int_eq(address_parse(text, &a), MESH_EINVAL);
    ck_assert_ptr_nonnull(strstr(err_last()->message, "107"));
}
END_TEST

START_TEST(the_session_daemon_comes_first)
{
    char folder[64], path[128];
    struct address a;
    folder_make(folder);
    setenv("XDG_RUNTIME_DIR", folder, 1);
    ck_assert_int_eq(default_address_to_listen(&a), 0);
    snprintf(path, sizeof path, "%s/meshd/meshd.sock", folder);
    ck_assert_str_eq(a.path, path);

    snprintf(path, sizeof path, "%s/meshd", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/meshd/meshd.sock", folder);
    struct sockaddr_un where = { .sun_family = AF_UNIX };
    memcpy(where.sun_path, a.path, sizeof where.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&where, sizeof where), 0);
    ck_assert(default_address_find(&a));
    ck_assert_str_eq(a.path, path);
    close(fd);
    unlink(path);
    snprintf(path, sizeof path, "%s/meshd", folder);
    rmdir(path);
    folder_remove(folder);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("address");
    TCase *t = tcase_create("address");
    tcase_add_loop_test(t, addresses_are_read_or_refused_with_their_text, 0, sizeof rows / sizeof rows[0]);
    tcase_add_test(t, a_path_fits_its_socket_or_is_refused);
    tcase_add_test(t, the_session_daemon_comes_first);
    suite_add_tcase(s, t);
    return s;
}
