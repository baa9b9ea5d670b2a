/* proto/base/vec.c - growth of VEC() arrays.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/vec.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/util.h"

#define MIN_CAP 8

bool vec_reserve_(void **at, size_t *cap, size_t n, size_t item_bytes)
{
    if (n <= *cap) {
        return true;
    }
    size_t new_cap = MAX(MAX(n, *cap * 2), (size_t)MIN_CAP);
    if (new_cap > SIZE_MAX / 2 / item_bytes) {
        return false;
    }
    /* *at is really a pointer to some other type: read and written as bytes. */
    void *items;
    memcpy(&items, at, sizeof items);
    items = mem_realloc(items, *cap * item_bytes, new_cap * item_bytes);
    if (!items) {
        return false;
    }
    memcpy(at, &items, sizeof items);
    *cap = new_cap;
    return true;
}
