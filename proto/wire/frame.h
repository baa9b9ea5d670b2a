/* proto/wire/frame.h - the fixed header before every frame, control and data alike.
 *
 *   offset size  field         meaning
 *        0    8  length        payload bytes that follow
 *        8    1  kind          enum frame_kind
 *        9    1  version       FRAME_VERSION
 *       10    2  step          round of the plan
 *       12    4  generation    of the job
 *       16    8  group         0 for control frames
 *       24    8  sequence      of the call in its group
 *       32    8  fingerprint   hash over the call below and what does not fit in it (split sizes)
 *       40    1  collective    enum mesh_comm_kind      |
 *       41    1  dtype         enum mesh_dtype          | the call, spelled out, so that a
 *       42    1  op            enum mesh_reduce_op      | mismatch can print both sides
 *       43    1  plan          which algorithm          |
 *       44    4  root          group rank, or -1        |
 *       48    8  count         elements                 |
 *       56    4  tag           of point-to-point        |
 *       60    4  reserved      0
 *
 * All numbers little-endian.  Control frames use length, kind and version; the rest is 0.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRE_FRAME_H
#define WIRE_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define FRAME_HEADER_BYTES      64
#define FRAME_VERSION           1
#define FRAME_MAX_CONTROL_BYTES (4u << 20)

enum frame_kind { FRAME_CONTROL = 0x4d, FRAME_HELLO, FRAME_DATA, FRAME_P2P, N_FRAME_KIND_END };

struct frame_header {
    uint64_t length;
    uint8_t kind;
    uint8_t version;
    uint16_t step;
    uint32_t generation;
    uint64_t group;
    uint64_t sequence;
    uint64_t fingerprint;
    uint8_t collective;
    uint8_t dtype;
    uint8_t op;
    uint8_t plan;
    int32_t root;
    uint64_t count;
    uint32_t tag;
    uint32_t reserved;
};

void frame_encode(uint8_t ret_bytes[FRAME_HEADER_BYTES], const struct frame_header *h);
/* MESH_EPROTO with both versions, or naming the kind, when the bytes are not a header of ours. */
int frame_decode(const uint8_t bytes[FRAME_HEADER_BYTES], struct frame_header *ret_header);

#endif
