/* tests/unit/wire/test_frame.c - the frame header and its bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <string.h>

#include <mesh/base.h>

#include "base/error.h"
#include "base/rng.h"
#include "wire/frame.h"

/* clang-format off */
static const struct frame_header sample = {
    .length = 0x0102030405060708, .kind = FRAME_DATA, .version = FRAME_VERSION, .step = 0x1112, .generation = 0x21222324,
    .group = 0x3132333435363738, .sequence = 0x4142434445464748, .fingerprint = 0x5152535455565758, .collective = 0x61,
    .dtype = 0x62, .op = 0x63, .plan = 0x64, .root = -2, .count = 0x7172737475767778, .tag = 0x81828384,
};

static const uint8_t golden[FRAME_HEADER_BYTES] = {
    0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 0x4f, 0x01, 0x12, 0x11, 0x24, 0x23, 0x22, 0x21,
    0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31, 0x48, 0x47, 0x46, 0x45, 0x44, 0x43, 0x42, 0x41,
    0x58, 0x57, 0x56, 0x55, 0x54, 0x53, 0x52, 0x51, 0x61, 0x62, 0x63, 0x64, 0xfe, 0xff, 0xff, 0xff,
    0x78, 0x77, 0x76, 0x75, 0x74, 0x73, 0x72, 0x71, 0x84, 0x83, 0x82, 0x81, 0x00, 0x00, 0x00, 0x00,
};
/* clang-format on */

START_TEST(the_bytes_are_these_on_every_machine)
{
    uint8_t bytes[FRAME_HEADER_BYTES];
    struct frame_header back;
    frame_encode(bytes, &sample);
    ck_assert_mem_eq(bytes, golden, sizeof golden);
    ck_assert_int_eq(frame_decode(golden, &back), 0);
    ck_assert_mem_eq(&back, &sample, sizeof sample);
}
END_TEST

START_TEST(a_thousand_headers_come_back)
{
    for (uint64_t i = 0; i < 1000; i++) {
        struct frame_header h, back;
        uint8_t bytes[FRAME_HEADER_BYTES];
        for (size_t word = 0; word < sizeof h / 4; word++) {
            uint32_t bits = rng_bits((struct rng_key){ .seed = 1, .call = i }, word);
            memcpy((char *)&h + 4 * word, &bits, 4);
        }
        h.kind = (uint8_t)(FRAME_CONTROL + i % (N_FRAME_KIND_END - FRAME_CONTROL));
        h.version = FRAME_VERSION;
        h.reserved = 0;
        frame_encode(bytes, &h);
        ck_assert_int_eq(frame_decode(bytes, &back), 0);
        ck_assert_mem_eq(&back, &h, sizeof h);
    }
}
END_TEST

START_TEST(only_our_kinds_are_frames)
{
    for (int kind = 0; kind < 256; kind++) {
        uint8_t bytes[FRAME_HEADER_BYTES];
        struct frame_header h;
        memcpy(bytes, golden, sizeof bytes);
        bytes[8] = (uint8_t)kind;
        int want = kind >= FRAME_CONTROL && kind < N_FRAME_KIND_END ? 0 : MESH_EPROTO;
        ck_assert_int_eq(frame_decode(bytes, &h), want);
    }
}
END_TEST

START_TEST(another_version_is_refused_with_both_numbers)
{
    uint8_t bytes[FRAME_HEADER_BYTES];
    struct frame_header h;
    memcpy(bytes, golden, sizeof bytes);
    bytes[9] = 2;
    ck_assert_int_eq(frame_decode(bytes, &h), MESH_EPROTO);
    ck_assert_ptr_nonnull(strstr(err_last()->message, "version 2, this side 1"));
}
END_TEST

START_TEST(what_a_later_version_may_put_in_reserved_is_ignored)
{
    uint8_t bytes[FRAME_HEADER_BYTES];
    struct frame_header h;
    memcpy(bytes, golden, sizeof bytes);
    bytes[60] = 9;
    ck_assert_int_eq(frame_decode(bytes, &h), 0);
    ck_assert_uint_eq(h.reserved, 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("frame");
    TCase *t = tcase_create("frame");
    tcase_add_test(t, the_bytes_are_these_on_every_machine);
    tcase_add_test(t, a_thousand_headers_come_back);
    tcase_add_test(t, only_our_kinds_are_frames);
    tcase_add_test(t, another_version_is_refused_with_both_numbers);
    tcase_add_test(t, what_a_later_version_may_put_in_reserved_is_ignored);
    suite_add_tcase(s, t);
    return s;
}
