/* tests/unit/wire/proto_sample.c - see the header.  New messages and fields need no change here.
 * SPDX-License-Identifier: Apache-2.0 */
#include "proto_sample.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

struct source {
    struct rng_key key;
    uint64_t n_drawn;
};

static uint32_t draw(struct source *s, uint32_t n)
{
    return (uint32_t)rng_below(s->key, s->n_drawn++, n);
}

static void fill(struct source *s, ProtobufCMessage *m, const ProtobufCFieldDescriptor *only_arm);

static void fill_bytes(struct source *s, ProtobufCBinaryData *b)
{
    b->len = draw(s, 20);
    b->data = b->len > 0 ? malloc(b->len) : NULL;
    for (size_t i = 0; i < b->len; i++) {
        b->data[i] = (uint8_t)draw(s, 256);
    }
}

/* One value of the field's type at `at`; its size. */
static size_t fill_value(struct source *s, const ProtobufCFieldDescriptor *f, void *at)
{
    uint64_t wide = (uint64_t)draw(s, UINT32_MAX) << 32 | draw(s, UINT32_MAX);
    wide >>= draw(s, 64);
    uint32_t narrow = (uint32_t)wide;
    char *text;
    switch (f->type) {
    case PROTOBUF_C_TYPE_STRING:
        text = malloc(32);
        snprintf(text, 32, "%s-%u", f->name, draw(s, 1000000));
        memcpy(at, &text, sizeof text);
        return sizeof text;
    case PROTOBUF_C_TYPE_BYTES:
        fill_bytes(s, at);
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_MESSAGE: {
        const ProtobufCMessageDescriptor *type = f->descriptor;
        ProtobufCMessage *m = malloc(type->sizeof_message);
        protobuf_c_message_init(type, m);
        fill(s, m, NULL);
        memcpy(at, &m, sizeof m);
        return sizeof m;
    }
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        memcpy(at, &wide, 8);
        return 8;
    case PROTOBUF_C_TYPE_BOOL:
        memcpy(at, &(protobuf_c_boolean){ draw(s, 2) == 1 }, sizeof(protobuf_c_boolean));
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_ENUM:
        narrow = draw(s, 4);
        break;
    default:
        break;
    }
    memcpy(at, &narrow, 4);
    return 4;
}

static void fill_repeated(struct source *s, const ProtobufCFieldDescriptor *f, char *m)
{
    size_t n = draw(s, 4), size = 0;
    char *at = n > 0 ? malloc(n * sizeof(ProtobufCBinaryData)) : NULL;
    for (size_t i = 0; i < n; i++) {
        size += fill_value(s, f, at + size);
    }
    memcpy(m + f->quantifier_offset, &n, sizeof n);
    memcpy(m + f->offset, &at, sizeof at);
}

static void fill(struct source *s, ProtobufCMessage *m, const ProtobufCFieldDescriptor *only_arm)
{
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        bool is_arm = (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
        if (is_arm && f != only_arm) {
            continue;
        }
        if (f->label == PROTOBUF_C_LABEL_REPEATED) {
            fill_repeated(s, f, (char *)m);
            continue;
        }
        fill_value(s, f, (char *)m + f->offset);
        if (is_arm) {
            memcpy((char *)m + f->quantifier_offset, &f->id, sizeof f->id);
        }
    }
}

static const ProtobufCFieldDescriptor *find_arm(const ProtobufCMessageDescriptor *envelope, unsigned body)
{
    for (unsigned i = 0; i < envelope->n_fields; i++) {
        if ((envelope->fields[i].flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 && body-- == 0) {
            return &envelope->fields[i];
        }
    }
    return NULL;
}

const char *sample_pack(const ProtobufCMessageDescriptor *envelope, unsigned body, uint64_t seed, uint8_t **ret_bytes,
                        size_t *ret_len)
{
    struct source s = { .key = { .seed = seed, .call = body } };
    const ProtobufCFieldDescriptor *arm = find_arm(envelope, body);
    if (!arm) {
        return NULL;
    }
    ProtobufCMessage *m = malloc(envelope->sizeof_message);
    protobuf_c_message_init(envelope, m);
    fill(&s, m, arm);
    *ret_len = protobuf_c_message_get_packed_size(m);
    *ret_bytes = malloc(*ret_len + 1);
    protobuf_c_message_pack(m, *ret_bytes);
    protobuf_c_message_free_unpacked(m, NULL);
    return arm->name;
}
