/* daemon/descriptor.h - descriptors, "device=cpu shape=2x4 names=dp,tp": find the first field in which two differ.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_DESCRIPTOR_H
#define DAEMON_DESCRIPTOR_H

#include <stdbool.h>
#include <stddef.h>

struct difference {
    char field[40];    /* "shape"; "descriptor" when one is not made of fields */
    char a[60], b[60]; /* the two values; "(none)" where a field is missing */
};

/* false: they are the same, byte by byte. */
bool descriptor_differs(const char *a, const char *b, struct difference *ret_difference);

#endif
