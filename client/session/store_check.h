/* client/session/store_check.h - what a key and a value of the store may be, checked before anything is sent.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_STORE_CHECK_H
#define SESSION_STORE_CHECK_H

#include <stddef.h>

#include "base/names.h"

#define STORE_MAX_KEY_BYTES   1024
#define STORE_MAX_VALUE_BYTES (1u << 20)
#define STORE_MAX_WAIT_KEYS   1024

#define STORE_KEY_TEXT_BYTES  100 /* enough for a key in a sentence */

int store_key_check(const void *key, size_t key_len);                     /* MESH_EINVAL */
int store_value_check(const void *key, size_t key_len, size_t value_len); /* MESH_ETOOLARGE */

#endif
