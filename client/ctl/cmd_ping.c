/* client/ctl/cmd_ping.c - meshctl ping.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/output.h"
#include "ctl/say.h"
#include "wire/codec.h"

const struct command_options options_ping;

struct ping_row {
    const char *address;
    int64_t round_trip_us;
    uint64_t uptime_ms;
};

static void get_address(const void *row, struct cell *c)
{
    cell_set_text(c, ((const struct ping_row *)row)->address);
}

static void get_round_trip(const void *row, struct cell *c)
{
    cell_set_number(c, ((const struct ping_row *)row)->round_trip_us);
}

static void get_uptime(const void *row, struct cell *c)
{
    cell_set_duration(c, ((const struct ping_row *)row)->uptime_ms);
}

static const struct column columns[] = {
    { "ADDRESS", "address", 0, get_address },
    { "UP", "uptime_ms", COLUMN_RIGHT, get_uptime },
    { "ROUND-TRIP-US", "round_trip_us", COLUMN_RIGHT, get_round_trip },
};

int cmd_ping(const struct ctl *ctl, const struct arguments *arguments, const void *options)
{
    (void)arguments, (void)options;
    struct client client;
    Mesh__V1__DaemonMessage *reply = NULL;
    Mesh__V1__Ping ping = MESH__V1__PING__INIT;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_PING;
    m.ping = &ping;
    int r = client_find_any(ctl, &client);
    if (r != 0) {
        return say_failure(r);
    }
    int64_t begin_us = clock_now_us();
    r = client_call(&client, &m, &reply);
    if (r == 0 && reply->body_case != MESH__V1__DAEMON_MESSAGE__BODY_PONG) {
        r = err_set(MESH_EPROTO, "what listens at %s does not answer like meshd", client.text);
    }
    if (r != 0) {
        int code = say_failure(r);
        codec_free_daemon(reply);
        return client.was_reached ? EXIT_UNHEALTHY : code;
    }
    struct ping_row row = { client.text, clock_now_us() - begin_us, reply->pong->uptime_ms };
    struct view view = { .kind = "Ping", .head = { columns, ARRAY_SIZE(columns) }, .head_row = &row };
    codec_free_daemon(reply);
    r = output_view(ctl, &view);
    return r == 0 ? EXIT_OK : say_failure(r);
}
