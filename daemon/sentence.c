/* daemon/sentence.c - lists of ranks, printable keys, texts of others.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/sentence.h"

#include <stdio.h>
#include <string.h>

static size_t run_length(const uint32_t *rank, size_t n)
{
    size_t length = 1;
    while (length < n && rank[length] == rank[length - 1] + 1) {
        length++;
    }
    return length;
}

const char *sentence_ranks(char *buf, size_t cap, const uint32_t *rank, size_t n)
{
    const size_t reserve = sizeof " ... (65536 in all)";
    size_t len = (size_t)snprintf(buf, cap, n == 1 ? "rank" : "ranks");
    for (size_t i = 0; i < n;) {
        size_t length = run_length(rank + i, n - i);
        char piece[32];
        if (length < 3) {
            length = 1;
            snprintf(piece, sizeof piece, " %u", rank[i]);
        } else {
            snprintf(piece, sizeof piece, " %u-%u", rank[i], rank[i + length - 1]);
        }
        if (len + strlen(piece) + reserve > cap) {
            snprintf(buf + len, cap - len, " ... (%zu in all)", n);
            break;
        }
        len += (size_t)snprintf(buf + len, cap - len, "%s", piece);
        i += length;
    }
    return buf;
}

const char *sentence_key(char *buf, size_t cap, struct bytes key)
{
    return text_quote(key.data, key.len, buf, cap);
}

const char *sentence_clean(char *buf, size_t cap, const char *text)
{
    size_t i = 0;
    for (; text[i] != 0 && i + 1 < cap; i++) {
        unsigned char c = (unsigned char)text[i];
        buf[i] = c < 0x20 || c == 0x7f ? '?' : text[i];
    }
    buf[i] = 0;
    return buf;
}
