/* proto/base/names.h - keys and names as people write them: quoted for sentences, checked before they are taken.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_NAMES_H
#define BASE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#define MAX_NAME_BYTES 128 /* of jobs, barriers, groups: [A-Za-z0-9._-], '/' inside */

/* The bytes in quotes with what cannot be printed escaped, cut to fit; returns buf. */
const char *text_quote(const void *data, size_t len, char *buf, size_t cap);
/* 1..MAX_NAME_BYTES of [A-Za-z0-9._-], or of any printable ASCII without blanks when is_path; else MESH_EINVAL about
 * `what`. */
int name_check(const char *what, const char *name, bool is_path);

#endif
