/* daemon/bounds.h - every bound of the daemon, in one place.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_BOUNDS_H
#define DAEMON_BOUNDS_H

#include "base/names.h"

#define MESHD_PROTOCOL       1

#define MAX_RANKS            65536                      /* of one job */
#define MAX_TABLE_BYTES      ((4u << 20) - (16u << 10)) /* of all ranks: it goes to each in one frame */
#define MAX_HOST_BYTES       64                         /* longer host names are cut */
#define MAX_ADDRESSES        4                          /* per rank */
#define MAX_ADDRESS_BYTES    160
#define MAX_HELLO_BYTES      4096 /* of the first frame, before anything is known about its sender */
#define HELLO_TIMEOUT_MS     5000
#define LAST_WORD_MS         100 /* for who started a rank to say how its process ended, before the others hear that it has */
#define MISSING_FIRST_MS     4000  /* after so long it is said who has not joined yet, */
#define MISSING_AGAIN_MS     10000 /* then so often */
#define DEFAULT_TIMEOUT_MS   60000 /* of a request that names none */
#define MAX_TIMEOUT_MS       (INT64_C(7) * 24 * 3600 * 1000)
#define KEEP_CREATED_MS      60000 /* of a created job that nobody has joined and whose creator is gone */

#define MAX_KEY_BYTES        1024
#define MAX_VALUE_BYTES      (1u << 20)
#define MAX_WAIT_KEYS        1024
#define MAX_STORE_KEYS       (1u << 18) /* per job */
#define MAX_STORE_BYTES      (256u << 20)
#define MAX_STORE_WAITERS    MAX_RANKS

#define MAX_BARRIERS         1024 /* open at once in one job */
#define MAX_AGREEMENTS       1024 /* kept per job; the oldest closed one makes room */
#define MAX_DESCRIPTOR_BYTES 4096
#define MAX_GROUP_RECORDS    4096
#define MAX_REPORTS_PER_RANK 1024 /* passed on to the others */
#define MAX_FINISHED_JOBS    64   /* remembered for `meshctl status` */

#endif
