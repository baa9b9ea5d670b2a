/* tests/fuzz/fuzz_recorder.c - a recorder's file with any words changed: read within bounds, and judged.
 *
 * The input is a list of 12 bytes each: where (4), what (8); the even ones change both looks at the file, the odd ones the
 * second one alone.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/recorder.h"
#include "daemon/diagnose.h"

enum { EDIT_BYTES = 12, GROUP = 5 };

static uint8_t *looks; /* [2 x RECORDER_FILE_BYTES] */
static struct recorder_image *image;

static void put(uint8_t *file, size_t word, uint64_t value)
{
    for (size_t i = 0; i < 8; i++) {
        file[word * 8 + i] = (uint8_t)(value >> (8 * i));
    }
}

static void put_valid(uint8_t *file)
{
    size_t group = RECORDER_GROUPS_AT / 8, call = RECORDER_CALLS_AT / 8;
    memset(file, 0, RECORDER_FILE_BYTES);
    put(file, RECORDER_H_MAGIC, RECORDER_MAGIC);
    put(file, RECORDER_H_VERSION, recorder_pair(RECORDER_VERSION, RECORDER_WORDS));
    put(file, RECORDER_H_PLACES, recorder_pair(RECORDER_GROUPS, RECORDER_CALLS));
    put(file, RECORDER_H_RANK, recorder_pair(0, 2));
    put(file, RECORDER_H_N_CALLS, 3);
    put(file, group + RECORDER_G_ID, GROUP);
    put(file, group + RECORDER_G_SIZE, recorder_pair(2, 0));
    put(file, group + RECORDER_G_ENTERED, 3);
    put(file, group + RECORDER_G_FINISHED, 2);
    for (uint64_t n = 1; n <= 3; n++, call += RECORDER_WORDS) {
        put(file, call + RECORDER_C_NUMBER, n);
        put(file, call + RECORDER_C_GROUP, GROUP);
        put(file, call + RECORDER_C_SEQUENCE, n);
        put(file, call + RECORDER_C_CALL, recorder_pair(1 | 1 << 8 | 1 << 16 | (uint32_t)(n < 3 ? 3 : 2) << 24, 0));
        put(file, call + RECORDER_C_N_WAITED, 1);
    }
}

static void edit(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i + EDIT_BYTES <= size; i += EDIT_BYTES) {
        uint32_t where;
        uint64_t what;
        memcpy(&where, data + i, sizeof where);
        memcpy(&what, data + i + sizeof where, sizeof what);
        size_t word = where % (RECORDER_FILE_BYTES / 8);
        if (i / EDIT_BYTES % 2 == 0) {
            put(looks, word, what);
        }
        put(looks + RECORDER_FILE_BYTES, word, what);
    }
}

static void judge(void)
{
    const struct diagnose_rank rank[2] = {
        { .life = LIFE_JOINED, .process = PROCESS_RUNS, .host = "a", .image = image, .elsewhere = "" },
        { .life = LIFE_JOINED, .process = PROCESS_RUNS, .host = "a", .image = image, .elsewhere = "" },
    };
    const struct diagnose_input in = { .now_ns = 1000000000, .rank = rank, .n_ranks = 2 };
    struct verdict v;
    if (diagnose(&in, &v) == 0) {
        CHECK(strlen(v.sentence) > 0);
        verdict_fini(&v);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    looks = looks != NULL ? looks : malloc((size_t)2 * RECORDER_FILE_BYTES);
    image = image != NULL ? image : malloc(sizeof *image);
    CHECK(looks != NULL && image != NULL);
    put_valid(looks);
    put_valid(looks + RECORDER_FILE_BYTES);
    edit(data, size);
    if (recorder_read(looks, looks + RECORDER_FILE_BYTES, image) == 0) {
        CHECK(image->n_calls <= RECORDER_CALLS && image->n_groups <= RECORDER_GROUPS);
        judge();
    }
    return 0;
}
