/* proto/wire/frame.c - the header to and from its 64 bytes.
 *
 * struct frame_header is laid out as the bytes are (asserted below), so only the byte order is converted.
 * SPDX-License-Identifier: Apache-2.0 */
#include "wire/frame.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "base/error.h"

#define AT(field, offset, size)                                                                                        \
    static_assert(offsetof(struct frame_header, field) == (offset) &&                                                  \
                      sizeof(((struct frame_header *)0)->field) == (size),                                             \
                  #field " is not where the wire has it")
AT(length, 0, 8);
AT(kind, 8, 1);
AT(version, 9, 1);
AT(step, 10, 2);
AT(generation, 12, 4);
AT(group, 16, 8);
AT(sequence, 24, 8);
AT(fingerprint, 32, 8);
AT(collective, 40, 1);
AT(dtype, 41, 1);
AT(op, 42, 1);
AT(plan, 43, 1);
AT(root, 44, 4);
AT(count, 48, 8);
AT(tag, 56, 4);
AT(reserved, 60, 4);
static_assert(sizeof(struct frame_header) == FRAME_HEADER_BYTES, "the header has no padding");

void frame_encode(uint8_t ret_bytes[FRAME_HEADER_BYTES], const struct frame_header *h)
{
    struct frame_header le = *h;
    le.length = htole64(h->length);
    le.step = htole16(h->step);
    le.generation = htole32(h->generation);
    le.group = htole64(h->group);
    le.sequence = htole64(h->sequence);
    le.fingerprint = htole64(h->fingerprint);
    le.root = (int32_t)htole32((uint32_t)h->root);
    le.count = htole64(h->count);
    le.tag = htole32(h->tag);
    le.reserved = 0;
    memcpy(ret_bytes, &le, sizeof le);
}

int frame_decode(const uint8_t bytes[FRAME_HEADER_BYTES], struct frame_header *ret_header)
{
    struct frame_header le, h;
    memcpy(&le, bytes, sizeof le);
    if (le.kind < FRAME_CONTROL || le.kind >= N_FRAME_KIND_END) {
        return err_set(MESH_EPROTO, "what arrived is not a frame of meshd: kind 0x%02x", le.kind);
    }
    if (le.version != FRAME_VERSION) {
        return err_set(MESH_EPROTO, "the other side speaks frame version %d, this side %d: update the older one",
                       le.version, FRAME_VERSION);
    }
    h = le;
    h.length = le64toh(le.length);
    h.step = le16toh(le.step);
    h.generation = le32toh(le.generation);
    h.group = le64toh(le.group);
    h.sequence = le64toh(le.sequence);
    h.fingerprint = le64toh(le.fingerprint);
    h.root = (int32_t)le32toh((uint32_t)le.root);
    h.count = le64toh(le.count);
    h.tag = le32toh(le.tag);
    h.reserved = 0; /* a later version may use it; this one ignores it */
    *ret_header = h;
    return 0;
}
