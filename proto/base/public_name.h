/* proto/base/public_name.h - the name by which a program knows a public function.
 *
 * What takes options is called by a macro, mesh_zeros(...), which calls mesh_zeros_opt(): errors and logs name the
 * macro.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_PUBLIC_NAME_H
#define BASE_PUBLIC_NAME_H

/* function without "_opt", for the life of the process. */
const char *public_name(const char *function);

#endif
