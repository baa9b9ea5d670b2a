/* proto/base/names.c - quoting and checking of keys and names.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/names.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

const char *text_quote(const void *data, size_t len, char *buf, size_t cap)
{
    const uint8_t *bytes = data;
    size_t used = 0;
    buf[used++] = '"';
    for (size_t i = 0; i < len; i++) {
        if (used + sizeof "\\xff...\"" > cap) {
            used += (size_t)snprintf(buf + used, cap - used, "...");
            break;
        }
        uint8_t c = bytes[i];
        if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f) {
            used += (size_t)snprintf(buf + used, cap - used, "\\x%02x", (unsigned)c);
        } else {
            buf[used++] = (char)c;
        }
    }
    snprintf(buf + used, cap - used, "\"");
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
            return err_set(MESH_EINVAL, "the %s %s has a character other than %s", what,
                           text_quote(name, len, shown, sizeof shown),
                           is_path ? "printable ASCII" : "letters, digits and ._-");
        }
    }
    return 0;
}
