/* client/comm/hello.h - how two ranks prove to each other that they are of one job, as bytes.
 *
 *      dialer                                            acceptor
 *        | --- hello: header, from, to, nonce ----------->  |       HELLO_BYTES
 *        | <-- hello, proof "acceptor" -------------------  |       HELLO_BYTES + HELLO_PROOF_BYTES
 *        | --- proof "dialer" --------------------------->  |       HELLO_PROOF_BYTES
 *        | === frames of collectives ===================== |
 *
 *   offset size  field        meaning
 *        0   64  header       a frame header: kind HELLO, length 40, generation, group
 *       64    4  from         world rank that speaks          (little-endian)
 *       68    4  to           world rank spoken to
 *       72   32  nonce        random, new for each stream
 *
 * A proof is HMAC-SHA256, under the secret of the job's generation, over the speaker's side ("dialer" or "acceptor"), the
 * job's name and both hellos: it binds job, generation, group, ranks, direction and both nonces, so none can be used twice.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMM_HELLO_H
#define COMM_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/frame.h"

#define HELLO_NONCE_BYTES 32
#define HELLO_BYTES       (FRAME_HEADER_BYTES + 8 + HELLO_NONCE_BYTES)
#define HELLO_PROOF_BYTES 32

struct hello {
    uint32_t generation;
    uint64_t group;
    int from, to;
    uint8_t nonce[HELLO_NONCE_BYTES];
};

void hello_encode(uint8_t ret_bytes[HELLO_BYTES], const struct hello *h);
int hello_decode(const uint8_t bytes[HELLO_BYTES], struct hello *ret_hello); /* MESH_EPROTO */

struct hello_secret {
    const uint8_t *key;
    size_t key_len;
    const char *job;
};

/* MESH_ENOMEM: not even for that. */
int hello_prove(uint8_t ret_proof[HELLO_PROOF_BYTES], const struct hello_secret *secret, const struct hello *dialer,
                const struct hello *acceptor, bool is_dialer);
/* In time that does not depend on the bytes.  False also when there is no memory to tell. */
bool hello_is_proof(const uint8_t proof[HELLO_PROOF_BYTES], const struct hello_secret *secret,
                    const struct hello *dialer, const struct hello *acceptor, bool is_dialer);

#endif
