/* client/session/store_check.c - what a key and a value of the store may be, checked before anything is sent.
 * SPDX-License-Identifier: Apache-2.0 */
#include "session/store_check.h"

#include "base/error.h"

int store_key_check(const void *key, size_t key_len)
{
    if (key == NULL || key_len == 0) {
        return err_set(MESH_EINVAL, "store: the key is empty; keys have 1 to %d bytes", STORE_MAX_KEY_BYTES);
    }
    if (key_len > STORE_MAX_KEY_BYTES) {
        char text[STORE_KEY_TEXT_BYTES];
        return err_set(MESH_EINVAL, "store: key %s has %zu bytes; at most %d are allowed",
                       text_quote(key, key_len, text, sizeof text), key_len, STORE_MAX_KEY_BYTES);
    }
    return 0;
}

int store_value_check(const void *key, size_t key_len, size_t value_len)
{
    char text[STORE_KEY_TEXT_BYTES];
    if (value_len <= STORE_MAX_VALUE_BYTES) {
        return 0;
    }
    return err_set(MESH_ETOOLARGE, "store: the value of %s has %zu bytes; at most %u are allowed",
                   text_quote(key, key_len, text, sizeof text), value_len, STORE_MAX_VALUE_BYTES);
}
