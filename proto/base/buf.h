/* proto/base/buf.h - a growable string of bytes with a sticky failure, checked once at the end.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

struct buf {
    uint8_t *data; /* [cap]; always followed by a 0 byte once anything was appended */
    size_t len, cap;
    bool failed; /* an append found no memory; later appends do nothing */
};

#define BUF_INIT ((struct buf){ .data = NULL })

void buf_append(struct buf *b, const void *data, size_t len);
void buf_printf(struct buf *b, const char *format, ...) PRINTF_LIKE(2, 3);
void *buf_extend(struct buf *b, size_t len); /* room for len more bytes, counted as appended; NULL on failure */
void buf_consume(struct buf *b, size_t len); /* drops the first len bytes */
void buf_clear(struct buf *b);               /* keeps the memory, clears failed */
int buf_status(const struct buf *b);         /* 0 or MESH_ENOMEM with a sentence */
const char *buf_text(const struct buf *b);   /* "" when empty */
void buf_fini(struct buf *b);

#endif
