/* proto/base/util.h - the handful of macros that C leaves out.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_UTIL_H
#define BASE_UTIL_H

#include <stddef.h>

#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define ARRAY_SIZE(a)                   (sizeof(a) / sizeof((a)[0]))
/* <sys/param.h>, which comes in with other headers, has its own. */
#undef MIN
#undef MAX
#define MIN(a, b)               ((a) < (b) ? (a) : (b))
#define MAX(a, b)               ((a) > (b) ? (a) : (b))
#define PRINTF_LIKE(fmt, first) __attribute__((format(printf, fmt, first)))

#endif
