/* proto/base/public.c - the error record as the library's users see it.
 *
 * Alone in its file: a program that links both libmeshclient and base then takes these from the library.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/base.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"

const mesh_error *mesh_last_error(void)
{
    return err_last();
}

/* Whoever shows the output of many ranks, as meshctl run, has the number in front of each line already. */
static bool is_tagged(void)
{
    const char *text = getenv("MESH_TAGGED");
    return text != NULL && text[0] != '\0';
}

void mesh_perror(const char *prefix)
{
    const mesh_error *e = err_last();
    char who[32] = "", about[32] = "";
    if (err_rank() >= 0 && !is_tagged()) {
        snprintf(who, sizeof who, "rank %d: ", err_rank());
    }
    if (e->rank >= 0 && e->rank != err_rank()) {
        snprintf(about, sizeof about, ", began on rank %d", e->rank);
    }
    const char *sentence = e->message[0] != '\0' ? e->message : mesh_status_text(e->status);
    const char *colon = prefix && prefix[0] != '\0' ? ": " : "";
    const char *in = e->where[0] != '\0' ? " in " : "";
    fprintf(stderr, "%s%s%s%s [%s%s%s%s]\n", who, prefix ? prefix : "", colon, sentence, mesh_status_name(e->status),
            in, e->where, about);
}
