/* tests/bench/slowest.c - the slowest rank's times, and their median.
 * SPDX-License-Identifier: Apache-2.0 */
#include "slowest.h"

#include <mesh/collective.h>

#include <stdlib.h>

int slowest_rank(double *us, int n)
{
    return mesh_all_reduce(us, (size_t)n, MESH_F64, MESH_MAX, mesh_world());
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median_of(double *us, int n)
{
    qsort(us, (size_t)n, sizeof us[0], by_size);
    return us[n / 2];
}
