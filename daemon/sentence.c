/* daemon/sentence.c - lists of ranks, printable keys, checked names.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/sentence.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "daemon/bounds.h"

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
    size_t len = 0;
    buf[len++] = '"';
    for (size_t i = 0; i < key.len; i++) {
        if (len + sizeof "\\xff...\"" > cap) {
            len += (size_t)snprintf(buf + len, cap - len, "...");
            break;
        }
        uint8_t c = key.data[i];
        if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f) {
            len += (size_t)snprintf(buf + len, cap - len, "\\x%02x", c);
        } else {
            buf[len++] = (char)c;
        }
    }
    snprintf(buf + len, cap - len, "\"");
    return buf;
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

static bool is_name_character(unsigned char c)
{
    return c < 0x80 && (isalnum(c) || c == '.' || c == '_' || c == '-');
}

int name_check(const char *what, const char *name, bool is_path)
{
    size_t len = strlen(name);
    if (len == 0) {
        return err_set(MESH_EINVAL, "the %s is empty: give it a name of letters, digits and ._-", what);
    }
    if (len > MAX_NAME_BYTES) {
        return err_set(MESH_EINVAL, "the %s \"%.32s...\" has %zu bytes; at most %d are allowed", what, name, len,
                       MAX_NAME_BYTES);
    }
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)name[i];
        bool is_allowed = is_path ? c > 0x20 && c < 0x7f : is_name_character(c);
        if (!is_allowed) {
            char shown[80];
            sentence_key(shown, sizeof shown, (struct bytes){ (const uint8_t *)name, len });
            return err_set(MESH_EINVAL, "the %s %s has a character other than %s", what, shown,
                           is_path ? "printable ASCII" : "letters, digits and ._-");
        }
    }
    return 0;
}
