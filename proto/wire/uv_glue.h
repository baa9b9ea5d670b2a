/* proto/wire/uv_glue.h - what the files of wire tell each other about libuv; nobody else includes it.
 *
 * libuv's rule: the memory of a handle lives until its close callback ran, that of a request until its callback ran.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRE_UV_GLUE_H
#define WIRE_UV_GLUE_H

#include <uv.h>

#include "wire/conn.h"

uv_loop_t *loop_uv(struct loop *l);

/* Closes a timer, watch or signal and frees it when libuv lets go of it. */
void loop_source_close(uv_handle_t *source);

int status_from_uv(int uv_status);       /* UV_ECONNREFUSED -> MESH_EPEER */
const char *text_from_uv(int uv_status); /* "connection refused" */

/* A conn whose stream is not connected yet; conn_opened() when it is, conn_close() if it never will be. */
struct conn *conn_new(struct loop *l, bool is_unix); /* NULL: error set */
uv_stream_t *conn_stream(struct conn *c);
void conn_opened(struct conn *c);

#endif
