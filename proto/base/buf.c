/* proto/base/buf.c - bytes that grow by doubling.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/error.h"

#define MIN_CAP 64

/* Room for len more bytes and the closing 0. */
static bool reserve(struct buf *b, size_t len)
{
    if (b->failed || len >= SIZE_MAX / 2 - b->len) {
        b->failed = true;
        return false;
    }
    size_t needed = b->len + len + 1;
    if (needed <= b->cap) {
        return true;
    }
    size_t cap = MAX(MAX(needed, b->cap * 2), (size_t)MIN_CAP);
    uint8_t *data = mem_realloc(b->data, b->len, cap);
    if (!data) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->cap = cap;
    return true;
}

void *buf_extend(struct buf *b, size_t len)
{
    if (!reserve(b, len)) {
        return NULL;
    }
    uint8_t *room = b->data + b->len;
    b->len += len;
    b->data[b->len] = 0;
    return room;
}

void buf_append(struct buf *b, const void *data, size_t len)
{
    void *room = buf_extend(b, len);
    if (room && len > 0) {
        memcpy(room, data, len);
    }
}

void buf_printf(struct buf *b, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    if (n < 0 || !reserve(b, (size_t)n)) {
        b->failed = true;
    } else {
        vsnprintf((char *)b->data + b->len, (size_t)n + 1, format, again);
        b->len += (size_t)n;
    }
    va_end(again);
    va_end(args);
}

void buf_consume(struct buf *b, size_t len)
{
    PRE(len <= b->len);
    if (len == 0) {
        return;
    }
    memmove(b->data, b->data + len, b->len - len);
    b->len -= len;
    b->data[b->len] = 0;
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->data) {
        b->data[0] = 0;
    }
}

int buf_status(const struct buf *b)
{
    return b->failed ? err_no_memory(b->len, "a buffer that grows further") : 0;
}

const char *buf_text(const struct buf *b)
{
    return b->data ? (const char *)b->data : "";
}

void buf_fini(struct buf *b)
{
    if (b) {
        mem_free(b->data);
        *b = BUF_INIT;
    }
}
