/* proto/base/rng.c - Philox4x32-10: four words per block, block b of call c being philox((b, c), seed).
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wundef"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <Random123/philox.h>
#pragma GCC diagnostic pop

#include "base/check.h"
#include "base/error.h"
#include "base/util.h"

void rng_block(struct rng_key key, uint64_t block, uint32_t ret_words[4])
{
    philox4x32_ctr_t counter = { { (uint32_t)block, (uint32_t)(block >> 32), (uint32_t)key.call,
                                   (uint32_t)(key.call >> 32) } };
    philox4x32_key_t seed = { { (uint32_t)key.seed, (uint32_t)(key.seed >> 32) } };
    philox4x32_ctr_t words = philox4x32(counter, seed);
    memcpy(ret_words, words.v, 4 * sizeof ret_words[0]);
}

uint32_t rng_bits(struct rng_key key, uint64_t index)
{
    uint32_t words[4];
    rng_block(key, index / 4, words);
    return words[index % 4];
}

double rng_uniform(struct rng_key key, uint64_t index)
{
    return rng_bits(key, index) * 0x1p-32;
}

uint64_t rng_below(struct rng_key key, uint64_t index, uint64_t n)
{
    PRE(n >= 1);
    if (n <= (uint64_t)1 << 32) {
        return rng_bits(key, index) * n >> 32; /* at most (2^32 - 1) * 2^32: no overflow */
    }
    __extension__ typedef unsigned __int128 wide;
    uint64_t bits = (uint64_t)rng_bits(key, 2 * index) << 32 | rng_bits(key, 2 * index + 1);
    return (uint64_t)((wide)bits * n >> 64);
}

int rng_secret(void *ret_bytes, size_t len)
{
    uint8_t *bytes = ret_bytes;
    while (len > 0) {
        ssize_t n = getrandom(bytes, MIN(len, (size_t)256), 0);
        if (n < 0 && errno != EINTR) {
            return err_set_local(MESH_EIO, "the system gives no random bytes: %s", strerror(errno));
        }
        if (n > 0) {
            bytes += n;
            len -= (size_t)n;
        }
    }
    return 0;
}
