/* client/comm/coalesced.h - several small buffers on their way as one.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMM_COALESCED_H
#define COMM_COALESCED_H

#include <stdbool.h>

struct parcel;

/* Copies what came of the call back into the buffers, when it went well, and frees the parcel; NULL is fine. */
void parcel_open(struct parcel *p, bool is_well);

#endif
