/* tests/fuzz/fuzz_codec.c - any payload, read as a message of either direction, is refused or can be packed again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <stdlib.h>

#include "base/check.h"
#include "wire/codec.h"

static const uint8_t nothing[1];

static void pack(const ProtobufCMessage *m)
{
    size_t size = protobuf_c_message_get_packed_size(m);
    uint8_t *bytes = malloc(size + 1);
    CHECK(protobuf_c_message_pack(m, bytes) == size);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Mesh__V1__ClientMessage *client = codec_decode_client(data ? data : nothing, size);
    if (client) {
        pack(&client->base);
    }
    codec_free_client(client);
    Mesh__V1__DaemonMessage *daemon = codec_decode_daemon(data ? data : nothing, size);
    if (daemon) {
        pack(&daemon->base);
    }
    codec_free_daemon(daemon);
    return 0;
}
