/* client/comm/hello.c - how two ranks prove to each other that they are of one job, as bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/hello.h"

#include <endian.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "base/error.h"

#define JOB_BYTES 128

static void put_rank(uint8_t *at, int rank)
{
    uint32_t le = htole32((uint32_t)rank);
    memcpy(at, &le, sizeof le);
}

static int get_rank(const uint8_t *at)
{
    uint32_t le;
    memcpy(&le, at, sizeof le);
    return (int)le32toh(le);
}

void hello_encode(uint8_t ret_bytes[HELLO_BYTES], const struct hello *h)
{
    struct frame_header header = {
        .length = HELLO_BYTES - FRAME_HEADER_BYTES,
        .kind = FRAME_HELLO,
        .version = FRAME_VERSION,
        .generation = h->generation,
        .group = h->group,
    };
    frame_encode(ret_bytes, &header);
    put_rank(ret_bytes + FRAME_HEADER_BYTES, h->from);
    put_rank(ret_bytes + FRAME_HEADER_BYTES + 4, h->to);
    memcpy(ret_bytes + FRAME_HEADER_BYTES + 8, h->nonce, HELLO_NONCE_BYTES);
}

int hello_decode(const uint8_t bytes[HELLO_BYTES], struct hello *ret_hello)
{
    struct frame_header header;
    int r = frame_decode(bytes, &header);
    if (r < 0) {
        return r;
    }
    if (header.kind != FRAME_HELLO || header.length != HELLO_BYTES - FRAME_HEADER_BYTES) {
        return err_set(MESH_EPROTO, "a stream must begin with a hello, not with a frame of kind 0x%02x", header.kind);
    }
    *ret_hello = (struct hello){
        .generation = header.generation,
        .group = header.group,
        .from = get_rank(bytes + FRAME_HEADER_BYTES),
        .to = get_rank(bytes + FRAME_HEADER_BYTES + 4),
    };
    memcpy(ret_hello->nonce, bytes + FRAME_HEADER_BYTES + 8, HELLO_NONCE_BYTES);
    return 0;
}

int hello_prove(uint8_t ret_proof[HELLO_PROOF_BYTES], const struct hello_secret *secret, const struct hello *dialer,
                const struct hello *acceptor, bool is_dialer)
{
    uint8_t text[1 + JOB_BYTES + 2 * HELLO_BYTES] = { is_dialer ? 'd' : 'a' };
    strncpy((char *)text + 1, secret->job, JOB_BYTES - 1);
    hello_encode(text + 1 + JOB_BYTES, dialer);
    hello_encode(text + 1 + JOB_BYTES + HELLO_BYTES, acceptor);
    unsigned len = 0;
    bool is_done = HMAC(EVP_sha256(), secret->key, (int)secret->key_len, text, sizeof text, ret_proof, &len) != NULL;
    return is_done && len == HELLO_PROOF_BYTES ? 0 : err_no_memory(sizeof text, "the proof that begins a stream");
}

bool hello_is_proof(const uint8_t proof[HELLO_PROOF_BYTES], const struct hello_secret *secret,
                    const struct hello *dialer, const struct hello *acceptor, bool is_dialer)
{
    uint8_t right[HELLO_PROOF_BYTES];
    return hello_prove(right, secret, dialer, acceptor, is_dialer) == 0 &&
           CRYPTO_memcmp(right, proof, sizeof right) == 0;
}
