/* proto/wire/codec.h - protobuf messages to and from frames, within limits.
 *
 * Nothing is decoded before its size is checked; decoding draws on a budget (so a hostile message cannot take more memory
 * than a small multiple of its own length).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRE_CODEC_H
#define WIRE_CODEC_H

#include "mesh/v1/control.pb-c.h"
#include "wire/conn.h"

int codec_send_client(struct conn *c, const Mesh__V1__ClientMessage *m);
int codec_send_daemon(struct conn *c, const Mesh__V1__DaemonMessage *m);

/* NULL: MESH_EPROTO or MESH_ETOOLARGE with the sentence; free with codec_free_...(). */
Mesh__V1__ClientMessage *codec_decode_client(const uint8_t *payload, size_t len);
Mesh__V1__DaemonMessage *codec_decode_daemon(const uint8_t *payload, size_t len);
void codec_free_client(Mesh__V1__ClientMessage *m);
void codec_free_daemon(Mesh__V1__DaemonMessage *m);

#endif
