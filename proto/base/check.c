/* proto/base/check.c - what happens when one of our own claims is false.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

void check_failed(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: this is a bug in meshd: %s does not hold\n", file, line, what);
    abort();
}
