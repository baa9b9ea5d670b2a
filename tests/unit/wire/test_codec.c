/* tests/unit/wire/test_codec.c - every message round trip, and what hostile bytes may cost.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mesh/base.h>

#include "base/error.h"
#include "base/fault.h"
#include "base/rng.h"
#include "proto_sample.h"
#include "wire/codec.h"
#include "wire_fixture.h"

static const struct direction {
    const ProtobufCMessageDescriptor *type;
    const char *name;
} directions[] = {
    { &mesh__v1__client_message__descriptor, "client" },
    { &mesh__v1__daemon_message__descriptor, "daemon" },
};
enum { N_DIRECTIONS = 2 };

static ProtobufCMessage *decode(int direction, const uint8_t *bytes, size_t len)
{
    return direction == 0 ? (ProtobufCMessage *)codec_decode_client(bytes, len)
                          : (ProtobufCMessage *)codec_decode_daemon(bytes, len);
}

static void free_message(int direction, ProtobufCMessage *m)
{
    if (direction == 0) {
        codec_free_client((Mesh__V1__ClientMessage *)m);
    } else {
        codec_free_daemon((Mesh__V1__DaemonMessage *)m);
    }
}

START_TEST(every_message_comes_back_as_it_was)
{
    int n_messages = 0;
    uint8_t *bytes;
    size_t len;
    for (uint64_t seed = 0; seed < 20; seed++) {
        for (unsigned body = 0; sample_pack(directions[_i].type, body, seed, &bytes, &len); body++) {
            ProtobufCMessage *m = decode(_i, bytes, len);
            ck_assert_msg(m != NULL, "%s", err_last()->message);
            uint8_t *again = malloc(len + 1);
            ck_assert_uint_eq(protobuf_c_message_get_packed_size(m), len);
            protobuf_c_message_pack(m, again);
            ck_assert_mem_eq(again, bytes, len);
            free_message(_i, m);
            free(again);
            free(bytes);
            n_messages++;
        }
    }
    ck_assert_int_gt(n_messages, 20 * 8);
}
END_TEST

static char golden_folder[] = WIRE_GOLDEN;

START_TEST(messages_of_earlier_builds_are_still_understood)
{
    uint8_t *sample;
    size_t sample_len;
    for (unsigned body = 0;; body++) {
        const char *arm = sample_pack(directions[_i].type, body, 0, &sample, &sample_len);
        if (!arm) {
            break;
        }
        char path[512];
        snprintf(path, sizeof path, "%s/%s-%s-v1.bin", golden_folder, directions[_i].name, arm);
        if (getenv("MESH_WRITE_GOLDEN") && access(path, F_OK) != 0) {
            FILE *out = fopen(path, "wb");
            ck_assert_ptr_nonnull(out);
            fwrite(sample, 1, sample_len, out);
            fclose(out);
        }
        free(sample);
        uint8_t bytes[4096];
        FILE *in = fopen(path, "rb");
        ck_assert_msg(in != NULL, "%s is missing: MESH_WRITE_GOLDEN=1 writes it, once per new message", path);
        size_t len = fread(bytes, 1, sizeof bytes, in);
        fclose(in);
        ProtobufCMessage *m = decode(_i, bytes, len);
        ck_assert_msg(m != NULL, "%s: %s", path, err_last()->message);
        ck_assert_msg(m->n_unknown_fields == 0, "%s", path);
        const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field_by_name(m->descriptor, arm);
        uint32_t which;
        memcpy(&which, (char *)m + f->quantifier_offset, sizeof which);
        ck_assert_msg(which == f->id, "%s holds another message than it did", path);
        free_message(_i, m);
    }
}
END_TEST

START_TEST(ten_thousand_mutations_do_no_harm)
{
    int n_decoded = 0;
    for (uint64_t i = 0; i < 10000; i++) {
        struct rng_key key = { .seed = 77, .call = i };
        int direction = (int)(i % N_DIRECTIONS);
        uint8_t *bytes;
        size_t len;
        if (!sample_pack(directions[direction].type, (unsigned)rng_below(key, 0, 10), i, &bytes, &len) || len == 0) {
            continue;
        }
        for (uint64_t change = 1 + rng_below(key, 1, 6); change > 0; change--) {
            bytes[rng_below(key, 10 * change, len)] ^= (uint8_t)(1 + rng_below(key, 10 * change + 1, 255));
        }
        len = rng_below(key, 2, 4) == 0 ? (size_t)rng_below(key, 3, len + 1) : len;
        uint8_t *exact = malloc(len > 0 ? len : 1); /* so that reading past its end is seen */
        memcpy(exact, bytes, len);
        ProtobufCMessage *m = decode(direction, exact, len);
        if (m) {
            n_decoded++;
            protobuf_c_message_get_packed_size(m);
            free_message(direction, m);
        } else {
            int status = (int)err_last()->status;
            ck_assert(status == MESH_EPROTO || status == MESH_ETOOLARGE);
        }
        free(exact);
        free(bytes);
    }
    ck_assert_int_gt(n_decoded, 100);
}
END_TEST

START_TEST(a_payload_over_the_limit_is_not_looked_at)
{
    ck_assert_ptr_null(codec_decode_client(NULL, FRAME_MAX_CONTROL_BYTES + 1));
    ck_assert_int_eq(err_last()->status, MESH_ETOOLARGE);
}
END_TEST

START_TEST(a_message_that_would_swell_is_refused)
{
    /* StoreWait with a million empty keys: two bytes each on the wire, forty and more decoded. */
    size_t n = 1000000, inner = 2 * n, len = 0;
    uint8_t *bytes = malloc(inner + 16);
    bytes[len++] = 14 << 3 | 2; /* store_wait = 14 */
    for (size_t rest = inner; rest > 0; rest >>= 7) {
        bytes[len++] = (uint8_t)((rest & 0x7f) | (rest >> 7 ? 0x80 : 0));
    }
    for (size_t i = 0; i < n; i++) {
        bytes[len++] = 2 << 3 | 2; /* key = 2 */
        bytes[len++] = 0;
    }
    ck_assert_ptr_null(codec_decode_client(bytes, len));
    ck_assert_int_eq(err_last()->status, MESH_ETOOLARGE);
    ck_assert_ptr_nonnull(strstr(err_last()->message, "memory"));
    free(bytes);
}
END_TEST

START_TEST(the_biggest_rank_table_passes)
{
    enum { N = 16384 };
    Mesh__V1__DaemonMessage m = MESH__V1__DAEMON_MESSAGE__INIT;
    Mesh__V1__Joined joined = MESH__V1__JOINED__INIT;
    Mesh__V1__RankInfo *rows = malloc(N * sizeof *rows), **table = malloc(N * sizeof(Mesh__V1__RankInfo *));
    static char *addresses[] = { "unix:/tmp/meshd-1000/rank/01234567-0", "tcp:[2001:db8::1234:5678]:41234" };
    for (uint32_t i = 0; i < N; i++) {
        mesh__v1__rank_info__init(&rows[i]);
        rows[i].rank = i;
        rows[i].host = "node-with-a-name-0123.cluster.example";
        rows[i].pid = 123456;
        rows[i].n_address = 2;
        rows[i].address = addresses;
        rows[i].state = "joined";
        table[i] = &rows[i];
    }
    joined.n_rank_table = N;
    joined.rank_table = table;
    m.body_case = MESH__V1__DAEMON_MESSAGE__BODY_JOINED;
    m.joined = &joined;
    size_t len = mesh__v1__daemon_message__get_packed_size(&m);
    uint8_t *bytes = malloc(len);
    mesh__v1__daemon_message__pack(&m, bytes);
    Mesh__V1__DaemonMessage *back = codec_decode_daemon(bytes, len);
    ck_assert_msg(back != NULL, "%s", err_last()->message);
    ck_assert_uint_eq(back->joined->n_rank_table, N);
    ck_assert_str_eq(back->joined->rank_table[N - 1]->address[1], addresses[1]);
    codec_free_daemon(back);
    free(bytes);
    free(table);
    free(rows);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    uint8_t *bytes;
    size_t len;
    ck_assert_ptr_nonnull(sample_pack(directions[1].type, 2, 3, &bytes, &len));
    for (uint64_t nth = 1;; nth++) {
        fault_arm(FAULT_ALLOC, nth, 0);
        Mesh__V1__DaemonMessage *m = codec_decode_daemon(bytes, len);
        bool has_fired = fault_fired(FAULT_ALLOC) > 0;
        fault_disarm(FAULT_ALLOC);
        if (!has_fired) {
            ck_assert_ptr_nonnull(m);
            codec_free_daemon(m);
            break;
        }
        ck_assert_ptr_null(m);
        ck_assert_int_eq(err_last()->status, MESH_ENOMEM);
    }
    free(bytes);
}
END_TEST

static void on_frame(struct conn *c, const struct frame_header *header, const uint8_t *payload, void *arg)
{
    struct side *s = arg;
    Mesh__V1__ClientMessage *m = codec_decode_client(payload, header->length);
    ck_assert_ptr_nonnull(m);
    ck_assert_uint_eq(m->request, 7);
    ck_assert_int_eq(m->body_case, MESH__V1__CLIENT_MESSAGE__BODY_PING);
    codec_free_client(m);
    s->n_frames++;
    conn_close(c);
}

static void on_closed(struct conn *c, int status, const char *sentence, void *arg)
{
    struct side *s = arg;
    (void)c;
    (void)status;
    (void)sentence;
    if (--s->world->n_open == 0) {
        s->world->guard = loop_timer_stop(s->world->guard);
        loop_stop(s->world->loop);
    }
}

START_TEST(a_message_travels_over_a_connection)
{
    static const struct conn_events events = { .frame = on_frame, .closed = on_closed };
    struct world w;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    Mesh__V1__Ping ping = MESH__V1__PING__INIT;
    world_init(&w);
    world_connect(&w);
    conn_set_events(w.b.conn, &events, &w.b);
    m.request = 7;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_PING;
    m.ping = &ping;
    ck_assert_int_eq(codec_send_client(w.a.conn, &m), 0);
    world_run(&w);
    ck_assert_int_eq(w.b.n_frames, 1);
    world_fini(&w);
}
END_TEST

START_TEST(a_message_too_big_to_send_is_refused_and_nothing_else_happens)
{
    struct world w;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    Mesh__V1__StoreSet set = MESH__V1__STORE_SET__INIT;
    Mesh__V1__DaemonMessage answer = MESH__V1__DAEMON_MESSAGE__INIT;
    world_init(&w);
    world_connect(&w);
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_STORE_SET;
    m.store_set = &set;
    set.value.len = FRAME_MAX_CONTROL_BYTES;
    set.value.data = malloc(set.value.len);
    memset(set.value.data, 1, set.value.len);
    ck_assert_int_eq(codec_send_client(w.a.conn, &m), MESH_ETOOLARGE);
    free(set.value.data);
    ck_assert_int_eq(codec_send_daemon(w.a.conn, &answer), 0); /* empty: a frame of length 0 */
    w.b.close_after = 1;
    world_run(&w);
    ck_assert_int_eq(w.b.status, 0);
    world_fini(&w);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("codec");
    TCase *t = tcase_create("codec");
    tcase_add_loop_test(t, every_message_comes_back_as_it_was, 0, N_DIRECTIONS);
    tcase_add_loop_test(t, messages_of_earlier_builds_are_still_understood, 0, N_DIRECTIONS);
    tcase_add_test(t, ten_thousand_mutations_do_no_harm);
    tcase_add_test(t, a_payload_over_the_limit_is_not_looked_at);
    tcase_add_test(t, a_message_that_would_swell_is_refused);
    tcase_add_test(t, the_biggest_rank_table_passes);
    tcase_add_test(t, every_allocation_may_fail);
    tcase_add_test(t, a_message_travels_over_a_connection);
    tcase_add_test(t, a_message_too_big_to_send_is_refused_and_nothing_else_happens);
    suite_add_tcase(s, t);
    return s;
}
