/* proto/base/public_name.c - names without "_opt", each written once.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/public_name.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define SUFFIX     "_opt"
#define MAX_NAMES  256
#define NAME_BYTES 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char names[MAX_NAMES][NAME_BYTES];
static size_t n_names;

static const char *find_or_add(const char *name, size_t len)
{
    for (size_t i = 0; i < n_names; i++) {
        if (strncmp(names[i], name, len) == 0 && names[i][len] == '\0') {
            return names[i];
        }
    }
    if (n_names == MAX_NAMES) {
        return NULL;
    }
    memcpy(names[n_names], name, len);
    return names[n_names++];
}

const char *public_name(const char *function)
{
    size_t len = strlen(function), n_suffix = strlen(SUFFIX);
    if (len <= n_suffix || strcmp(function + len - n_suffix, SUFFIX) != 0 || len - n_suffix >= NAME_BYTES) {
        return function;
    }
    pthread_mutex_lock(&lock);
    const char *name = find_or_add(function, len - n_suffix);
    pthread_mutex_unlock(&lock);
    return name != NULL ? name : function;
}
