/* proto/base/map.h - a hash map from byte strings to pointers; open addressing, keys copied, values borrowed.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot {
    uint64_t hash;
    uint8_t *key; /* NULL: empty */
    size_t key_len;
    void *value;
};

struct map {
    struct map_slot *slots;
    size_t n, cap; /* cap is 0 or a power of two */
};

#define MAP_INIT ((struct map){ .slots = NULL })

void *map_get(const struct map *m, const void *key, size_t key_len); /* NULL: absent */
int map_set(struct map *m, const void *key, size_t key_len, void *value,
            void **ret_old);                                      /* value not NULL; ret_old may be */
void *map_remove(struct map *m, const void *key, size_t key_len); /* the value, NULL: absent */
/* for (size_t i = 0; (slot = map_next(&m, &i)) != NULL;) ...; in no order; removing the slot just returned ends the walk */
struct map_slot *map_next(const struct map *m, size_t *i);
void map_fini(struct map *m); /* frees the keys; the values are the caller's */

uint64_t hash_bytes(const void *data, size_t len, uint64_t seed); /* not for security */

#endif
