/* tests/fuzz/fuzz_frame.c - any 64 bytes: a header that is taken comes back from encoding as it was.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <string.h>

#include "base/check.h"
#include "wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t bytes[FRAME_HEADER_BYTES] = { 0 }, again[FRAME_HEADER_BYTES];
    struct frame_header h;
    memcpy(bytes, data ? data : bytes, size < sizeof bytes ? size : sizeof bytes);
    if (frame_decode(bytes, &h) == 0) {
        frame_encode(again, &h);
        memset(bytes + 60, 0, 4); /* reserved is not kept */
        CHECK(memcmp(bytes, again, sizeof bytes) == 0);
    }
    return 0;
}
