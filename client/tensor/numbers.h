/* client/tensor/numbers.h - the C types behind the dtypes, as tables that a kernel expands: nothing is written once per dtype.
 *
 *     #define ROW(D, T, U, op) static void op##_##D(...) { T ... }
 *     NUMBER_TYPES(ROW, add)                                         defines add_F32, add_F64, add_I8, ...
 *     #define ENTRY(D, T, U, op) [MESH_##D] = op##_##D,
 *     static const row_fn add_rows[N_DTYPES] = { NUMBER_TYPES(ENTRY, add) };
 *
 * T is the element, U the type in which it is computed: unsigned for integers, so that they wrap instead of overflowing.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_NUMBERS_H
#define TENSOR_NUMBERS_H

#include <mesh/base.h>

#define N_DTYPES ((int)MESH_BOOL + 1)

/* clang-format off */
#define FLOAT_TYPES(X, ...)                 \
    X(F32, float,   float,    __VA_ARGS__)  \
    X(F64, double,  double,   __VA_ARGS__)
#define INT_TYPES(X, ...)                   \
    X(I8,  int8_t,  uint8_t,  __VA_ARGS__)  \
    X(U8,  uint8_t, uint8_t,  __VA_ARGS__)  \
    X(I32, int32_t, uint32_t, __VA_ARGS__)  \
    X(I64, int64_t, uint64_t, __VA_ARGS__)
#define NUMBER_TYPES(X, ...) FLOAT_TYPES(X, __VA_ARGS__) INT_TYPES(X, __VA_ARGS__)
#define ORDERED_TYPES(X, ...) NUMBER_TYPES(X, __VA_ARGS__) X(BOOL, uint8_t, uint8_t, __VA_ARGS__)
/* clang-format on */

/* MESH_EUNSUPPORTED: "gelu does not work on i32". */
int unsupported_dtype(const char *kernel, mesh_dtype t);

/* Whether a tensor of dtype t can hold v: integers hold whole numbers of their range, the others take anything. */
bool number_fits(mesh_dtype t, double v);

/* The integer of dtype t nearest to v; 0 for NaN. */
int64_t number_saturated(mesh_dtype t, double v);

#endif
