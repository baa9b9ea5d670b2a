/* proto/wire/address.c - addresses as text.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "wire/dial.h"

static int parse_unix(const char *text, const char *path, struct address *ret_address)
{
    struct address a = { .is_unix = true };
    if (path[0] == '\0') {
        return err_set(MESH_EINVAL, "address \"%s\": the path after unix: is missing", text);
    }
    if (strlen(path) >= sizeof a.path) {
        return err_set(MESH_EINVAL, "address \"%s\": a socket's path has %zu bytes at most, this one has %zu", text,
                       sizeof a.path - 1, strlen(path));
    }
    memcpy(a.path, path, strlen(path) + 1);
    *ret_address = a;
    return 0;
}

static int parse_port(const char *text, const char *digits, int *ret_port)
{
    size_t len = strlen(digits);
    if (len == 0 || len > 5 || strspn(digits, "0123456789") != len || atoi(digits) > 65535) {
        return err_set(MESH_EINVAL, "address \"%s\": the port must be a number from 0 to 65535", text);
    }
    *ret_port = atoi(digits);
    return 0;
}

/* "host:port" or "[v6]:port" */
static int parse_tcp(const char *text, const char *rest, struct address *ret_address)
{
    struct address a = { .is_unix = false };
    bool is_bracketed = rest[0] == '[';
    const char *host = rest + is_bracketed;
    const char *end = is_bracketed ? strchr(host, ']') : strchr(host, ':');
    if (!end || end[is_bracketed] != ':') {
        return err_set(MESH_EINVAL, "address \"%s\": write tcp:HOST:PORT or tcp:[IPV6]:PORT", text);
    }
    if (!is_bracketed && strchr(end + 1, ':')) {
        return err_set(MESH_EINVAL, "address \"%s\": an IPv6 address stands in brackets, tcp:[IPV6]:PORT", text);
    }
    size_t len = (size_t)(end - host);
    if (len == 0 || len >= sizeof a.host) {
        return err_set(MESH_EINVAL, "address \"%s\": the host has 1 to %zu characters", text, sizeof a.host - 1);
    }
    memcpy(a.host, host, len);
    int r = parse_port(text, end + is_bracketed + 1, &a.port);
    if (r < 0) {
        return r;
    }
    *ret_address = a;
    return 0;
}

int address_parse(const char *text, struct address *ret_address)
{
    if (strncmp(text, "unix:", 5) == 0) {
        return parse_unix(text, text + 5, ret_address);
    }
    if (strncmp(text, "tcp:", 4) == 0) {
        return parse_tcp(text, text + 4, ret_address);
    }
    if (strchr(text, '/')) {
        return parse_unix(text, text, ret_address);
    }
    return err_set(MESH_EINVAL, "address \"%s\": write unix:PATH, a path with a '/', or tcp:HOST:PORT", text);
}

void address_format(const struct address *a, char *buf, size_t cap)
{
    if (a->is_unix) {
        snprintf(buf, cap, "unix:%s", a->path);
    } else if (strchr(a->host, ':')) {
        snprintf(buf, cap, "tcp:[%s]:%d", a->host, a->port);
    } else {
        snprintf(buf, cap, "tcp:%s:%d", a->host, a->port);
    }
}
