/* proto/wire/codec.c - protobuf messages to and from payloads.
 *
 * A decoded message and everything in it lie in one arena, a list of blocks of which the first begins with the message:
 *
 *     [struct arena | message | strings, arrays ...] -> [struct arena | more ...] -> NULL
 *
 * What an arena may take is a fixed multiple of the payload's length, so a message cannot cost more memory than it was
 * worth sending.  Our messages do not contain themselves: decoding goes as deep as control.proto does.
 * SPDX-License-Identifier: Apache-2.0 */
#include "wire/codec.h"

#include "base/alloc.h"
#include "base/check.h"
#include "base/error.h"
#include "base/util.h"

#define BUDGET_FACTOR     16
#define BUDGET_BASE_BYTES ((size_t)64 << 10)
#define BLOCK_BYTES       ((size_t)4 << 10)
#define ALIGNMENT         ((size_t)16)

struct arena {
    struct arena *next; /* the block after this one */
    size_t used, size;  /* bytes of this block, the struct included */
};

#define ARENA_HEADER ((sizeof(struct arena) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT)

struct decoding {
    struct arena *first, *last;
    size_t budget; /* bytes that may still be taken */
    bool is_over_budget, is_out_of_memory;
};

static struct arena *add_block(struct decoding *d, size_t at_least)
{
    size_t size = MAX(BLOCK_BYTES, ARENA_HEADER + at_least);
    struct arena *block = mem_alloc(size);
    if (!block) {
        d->is_out_of_memory = true;
        return NULL;
    }
    *block = (struct arena){ .used = ARENA_HEADER, .size = size };
    if (d->last) {
        d->last->next = block;
    } else {
        d->first = block;
    }
    d->last = block;
    return block;
}

static void *arena_alloc(void *arg, size_t bytes)
{
    struct decoding *d = arg;
    if (bytes > d->budget) {
        d->is_over_budget = true;
        return NULL;
    }
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct arena *block = d->last;
    if (!block || block->size - block->used < rounded) {
        block = add_block(d, rounded);
    }
    if (!block) {
        return NULL;
    }
    void *p = (char *)block + block->used;
    block->used += rounded;
    d->budget -= MIN(rounded, d->budget);
    return p;
}

static void arena_free(void *arg, void *p)
{
    (void)arg; /* everything goes at once */
    (void)p;
}

static void free_blocks(struct arena *block)
{
    while (block) {
        struct arena *next = block->next;
        mem_free(block);
        block = next;
    }
}

static ProtobufCMessage *decode(const ProtobufCMessageDescriptor *type, const uint8_t *payload, size_t len)
{
    if (len > FRAME_MAX_CONTROL_BYTES) {
        err_set(MESH_ETOOLARGE, "a message of %zu bytes; at most %u are taken", len, FRAME_MAX_CONTROL_BYTES);
        return NULL;
    }
    struct decoding d = { .budget = len * BUDGET_FACTOR + BUDGET_BASE_BYTES };
    ProtobufCAllocator allocator = { .alloc = arena_alloc, .free = arena_free, .allocator_data = &d };
    ProtobufCMessage *m = protobuf_c_message_unpack(type, &allocator, len, payload);
    if (m) {
        CHECK((char *)m == (char *)d.first + ARENA_HEADER); /* free_message() counts on it */
        return m;
    }
    free_blocks(d.first);
    if (d.is_out_of_memory) {
        err_no_memory(len, "a message that arrived");
    } else if (d.is_over_budget) {
        err_set(MESH_ETOOLARGE, "a message of %zu bytes would take over %zu bytes of memory", len,
                len * BUDGET_FACTOR + BUDGET_BASE_BYTES);
    } else {
        err_set(MESH_EPROTO, "%zu bytes arrived that are not a %s", len, type->short_name);
    }
    return NULL;
}

static void free_message(void *m)
{
    if (m) {
        free_blocks((struct arena *)(void *)((char *)m - ARENA_HEADER));
    }
}

static int send(struct conn *c, const ProtobufCMessage *m)
{
    size_t len = protobuf_c_message_get_packed_size(m);
    if (len > FRAME_MAX_CONTROL_BYTES) {
        return err_set(MESH_ETOOLARGE, "a message of %zu bytes; at most %u can be sent", len, FRAME_MAX_CONTROL_BYTES);
    }
    uint8_t *payload = mem_alloc(len);
    if (!payload) {
        return err_no_memory(len, "a message to send");
    }
    protobuf_c_message_pack(m, payload);
    int r = conn_send(c, payload, len);
    mem_free(payload);
    return r;
}

int codec_send_client(struct conn *c, const Mesh__V1__ClientMessage *m)
{
    return send(c, &m->base);
}

int codec_send_daemon(struct conn *c, const Mesh__V1__DaemonMessage *m)
{
    return send(c, &m->base);
}

Mesh__V1__ClientMessage *codec_decode_client(const uint8_t *payload, size_t len)
{
    return (Mesh__V1__ClientMessage *)decode(&mesh__v1__client_message__descriptor, payload, len);
}

Mesh__V1__DaemonMessage *codec_decode_daemon(const uint8_t *payload, size_t len)
{
    return (Mesh__V1__DaemonMessage *)decode(&mesh__v1__daemon_message__descriptor, payload, len);
}

void codec_free_client(Mesh__V1__ClientMessage *m)
{
    free_message(m);
}

void codec_free_daemon(Mesh__V1__DaemonMessage *m)
{
    free_message(m);
}
