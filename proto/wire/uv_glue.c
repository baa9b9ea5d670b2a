/* proto/wire/uv_glue.c - libuv's statuses in our words.
 * SPDX-License-Identifier: Apache-2.0 */
#include "wire/uv_glue.h"

#include <mesh/base.h>

#include "base/util.h"

/* What is not in this table is MESH_EIO, with libuv's own text. */
static const struct row {
    int uv_status;
    int status;
    const char *text; /* NULL: libuv's */
} rows[] = {
    { 0, 0, "success" },
    { UV_ECONNREFUSED, MESH_EPEER, NULL },
    { UV_ECONNRESET, MESH_EPEER, "the other side reset the connection" },
    { UV_EPIPE, MESH_EPEER, "the other side closed the connection" },
    { UV_EOF, MESH_EPEER, "the other side closed the connection" },
    { UV_ENOTCONN, MESH_EPEER, NULL },
    { UV_ETIMEDOUT, MESH_ETIMEDOUT, NULL },
    { UV_EHOSTUNREACH, MESH_EPEER, NULL },
    { UV_ENETUNREACH, MESH_EPEER, NULL },
    { UV_ENOENT, MESH_ENOTFOUND, NULL },
    { UV_ENOTDIR, MESH_ENOTFOUND, NULL },
    { UV_EAI_NONAME, MESH_ENOTFOUND, "no host of this name" },
    { UV_EAI_NODATA, MESH_ENOTFOUND, "no address for this host" },
    { UV_EAI_AGAIN, MESH_EPEER, "the name service does not answer" },
    { UV_EACCES, MESH_EAUTH, NULL },
    { UV_EPERM, MESH_EAUTH, NULL },
    { UV_ENOMEM, MESH_ENOMEM, NULL },
    { UV_ENOBUFS, MESH_ENOMEM, NULL },
    { UV_EMFILE, MESH_EIO, "this process has as many open files as it may (ulimit -n): raise the limit" },
    { UV_EADDRINUSE, MESH_EEXIST, NULL },
    { UV_EADDRNOTAVAIL, MESH_EINVAL, "not an address of this host" },
    { UV_EINVAL, MESH_EINVAL, NULL },
    { UV_ECANCELED, MESH_EABORTED, "given up" },
};

static const struct row *find(int uv_status)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (rows[i].uv_status == uv_status) {
            return &rows[i];
        }
    }
    return NULL;
}

int status_from_uv(int uv_status)
{
    const struct row *row = find(uv_status);
    return row ? row->status : MESH_EIO;
}

const char *text_from_uv(int uv_status)
{
    const struct row *row = find(uv_status);
    return row && row->text ? row->text : uv_strerror(uv_status);
}
