/* tests/unit/comm/test_verify.c - what is said when a frame is not of the call a rank is in; what the hello proves.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/error.h"
#include "comm/call.h"
#include "comm/hello.h"
#include "comm/verify.h"
#include "harness/check_main.h"

static float in_buffer[4096], out_buffer[4096];

static struct frame_header header_of(const struct collective_call *given, uint64_t sequence)
{
    struct call c;
    struct frame_header h = { .generation = 3, .group = 77, .sequence = sequence };
    ck_assert_msg(call_prepare(&c, given, 4, 0) == 0, "%s", err_last()->message);
    call_header(&c, &h);
    return h;
}

static const struct collective_call a_sum = {
    .kind = MESH_COMM_ALL_REDUCE, .dtype = MESH_F32, .op = MESH_SUM, .count = 1024, .out = out_buffer
};
static const struct collective_call a_gather = {
    .kind = MESH_COMM_ALL_GATHER, .dtype = MESH_I32, .count = 12, .in = in_buffer, .out = out_buffer
};

static struct peer peers[3] = { [2] = { .host = "node1", .pid = 4711 } };
static struct mesh_session session = { .world_size = 3, .peers = peers };
static const struct verify_names names = { .session = &session, .group = "world", .me = 0, .sender = 2 };

static int explain(const struct frame_header *theirs, const struct frame_header *mine)
{
    uint8_t bytes[FRAME_HEADER_BYTES];
    frame_encode(bytes, theirs);
    return verify_explain(bytes, mine, &names);
}

START_TEST(both_calls_are_printed_in_full)
{
    struct frame_header mine = header_of(&a_sum, 7), theirs = header_of(&a_gather, 7);
    ck_assert_int_eq(explain(&theirs, &mine), MESH_EMISMATCH);
    ck_assert_str_eq(err_last()->message,
                     "rank 0 calls all_reduce sum f32[1024] (seq 7 of group world), rank 2 (node1, "
                     "pid 4711) calls all_gather i32[12] (seq 7)");
    ck_assert_int_eq(err_last()->rank, 2);
}
END_TEST

START_TEST(a_call_behind_is_told_by_its_number)
{
    struct frame_header mine = header_of(&a_sum, 8), theirs = header_of(&a_sum, 7);
    ck_assert_int_eq(explain(&theirs, &mine), MESH_EMISMATCH);
    ck_assert_ptr_nonnull(strstr(err_last()->message, "(seq 8 of group world)"));
    ck_assert_ptr_nonnull(strstr(err_last()->message, "(seq 7)"));
}
END_TEST

START_TEST(the_same_call_by_another_plan_or_of_another_length_says_so)
{
    struct frame_header mine = header_of(&a_sum, 7), theirs = mine;
    theirs.plan = PLAN_ALL_REDUCE_RING;
    mine.plan = PLAN_ALL_REDUCE_PAIRWISE;
    ck_assert_int_eq(explain(&theirs, &mine), MESH_EMISMATCH);
    ck_assert_ptr_nonnull(strstr(err_last()->message, "rank 0 and rank 2 (node1, pid 4711) run all_reduce sum"));
    ck_assert_ptr_nonnull(strstr(err_last()->message, "(seq 7 of group world) by different plans"));
    theirs.plan = mine.plan;
    theirs.length = mine.length + 4;
    ck_assert_int_eq(explain(&theirs, &mine), MESH_EMISMATCH);
    ck_assert_ptr_nonnull(strstr(err_last()->message, "rank 2 (node1, pid 4711) sends 4 bytes (round 0)"));
}
END_TEST

START_TEST(an_old_generation_is_stale)
{
    struct frame_header mine = header_of(&a_sum, 7), theirs = mine;
    theirs.generation = 2;
    ck_assert_int_eq(explain(&theirs, &mine), MESH_ESTALE);
    ck_assert_ptr_nonnull(strstr(err_last()->message, "generation 2 of the job, which is now at generation 3"));
}
END_TEST

START_TEST(garbage_is_no_frame)
{
    struct frame_header mine = header_of(&a_sum, 7);
    uint8_t bytes[FRAME_HEADER_BYTES];
    memset(bytes, 0xa5, sizeof bytes);
    ck_assert_int_eq(verify_explain(bytes, &mine, &names), MESH_EPROTO);
    ck_assert_ptr_nonnull(strstr(err_last()->message, "from rank 2 (node1, pid 4711) in group world: "));
}
END_TEST

START_TEST(equal_split_sizes_are_the_call_without_them)
{
    size_t even[4] = { 12, 12, 12, 12 }, uneven[4] = { 12, 12, 12, 11 };
    struct collective_call v = a_gather;
    v.count = 0;
    v.out_counts = even;
    struct frame_header plain = header_of(&a_gather, 1), split = header_of(&v, 1);
    ck_assert(memcmp(&plain, &split, sizeof plain) == 0);
    v.out_counts = uneven;
    split = header_of(&v, 1);
    ck_assert(split.fingerprint != plain.fingerprint);
    ck_assert_uint_eq(split.count, 47);
}
END_TEST

/* Hello ------------------------------------------------------------------------------------------------------------ */

static struct hello a_hello(int from, int to)
{
    struct hello h = { .generation = 5, .group = 0x1122334455667788u, .from = from, .to = to };
    memset(h.nonce, from + 1, sizeof h.nonce);
    return h;
}

START_TEST(a_hello_survives_its_bytes)
{
    struct hello h = a_hello(3, 1), back;
    uint8_t bytes[HELLO_BYTES];
    hello_encode(bytes, &h);
    ck_assert_int_eq(hello_decode(bytes, &back), 0);
    ck_assert(memcmp(&h, &back, sizeof h) == 0);
    bytes[8] = 0x4d; /* a control frame */
    ck_assert_int_eq(hello_decode(bytes, &back), MESH_EPROTO);
    memset(bytes, 'G', sizeof bytes);
    ck_assert_int_eq(hello_decode(bytes, &back), MESH_EPROTO);
}
END_TEST

START_TEST(a_proof_binds_everything)
{
    uint8_t key[32] = { 1, 2, 3 }, other_key[32] = { 1, 2, 4 }, proof[HELLO_PROOF_BYTES];
    struct hello_secret secret = { .key = key, .key_len = sizeof key, .job = "train" };
    struct hello d = a_hello(3, 1), a = a_hello(1, 3);
    ck_assert_int_eq(hello_prove(proof, &secret, &d, &a, true), 0);
    ck_assert(hello_is_proof(proof, &secret, &d, &a, true));
    ck_assert(!hello_is_proof(proof, &secret, &d, &a, false)); /* a reflected proof */
    struct hello_secret wrong = secret;
    wrong.key = other_key;
    ck_assert(!hello_is_proof(proof, &wrong, &d, &a, true));
    wrong = secret;
    wrong.job = "trail";
    ck_assert(!hello_is_proof(proof, &wrong, &d, &a, true));
    struct hello other = d;
    other.generation++;
    ck_assert(!hello_is_proof(proof, &secret, &other, &a, true));
    other = d;
    other.group++;
    ck_assert(!hello_is_proof(proof, &secret, &other, &a, true));
    other = d;
    other.from = 2;
    ck_assert(!hello_is_proof(proof, &secret, &other, &a, true));
    other = a;
    other.nonce[31] ^= 1; /* a replay meets another nonce */
    ck_assert(!hello_is_proof(proof, &secret, &d, &other, true));
    proof[0] ^= 1;
    ck_assert(!hello_is_proof(proof, &secret, &d, &a, true));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("verify");
    TCase *c = tcase_create("verify");
    tcase_add_test(c, both_calls_are_printed_in_full);
    tcase_add_test(c, a_call_behind_is_told_by_its_number);
    tcase_add_test(c, the_same_call_by_another_plan_or_of_another_length_says_so);
    tcase_add_test(c, an_old_generation_is_stale);
    tcase_add_test(c, garbage_is_no_frame);
    tcase_add_test(c, equal_split_sizes_are_the_call_without_them);
    tcase_add_test(c, a_hello_survives_its_bytes);
    tcase_add_test(c, a_proof_binds_everything);
    suite_add_tcase(s, c);
    return s;
}
