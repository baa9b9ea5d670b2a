/* proto/base/error.h - the error record: one status, one sentence, per thread.
 *
 * Who first knows *why* writes the sentence:    return err_set(MESH_ESHAPE, "matmul: %s x %s: ...", ...);
 * Callers that add something wrap it:           return err_wrap(r, "down");      gives "down: matmul: ..."
 * The rest pass the status up untouched.
 *
 * Every public function begins with err_enter(__func__), so that mesh_error.where names what the user called.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <mesh/base.h>

#include <stdarg.h>

#include "base/util.h"

/* Writes the sentence (cut to fit) and returns status. */
int err_set(int status, const char *format, ...) PRINTF_LIKE(2, 3);
int err_setv(int status, const char *format, va_list args);

/* As err_set, for a failure that only this rank sees (out of memory, a bad index in its shard, a broken file): whoever
 * fails a scope with it must tell the other ranks.  err_set(MESH_ENOMEM, ...) is local by itself. */
int err_set_local(int status, const char *format, ...) PRINTF_LIKE(2, 3);
/* As err_set, for news about another rank: mesh_error.rank is that rank. */
int err_set_about(int status, int rank, const char *format, ...) PRINTF_LIKE(3, 4);
int err_no_memory(size_t bytes, const char *what_for);

/* "outer: inner"; returns status.  Does nothing when status is 0. */
int err_wrap(int status, const char *outer_format, ...) PRINTF_LIKE(2, 3);

/* Makes a stored record this thread's last error and returns its status. */
int err_restore(const mesh_error *e);
bool err_is_local(void);
const mesh_error *err_last(void); /* never NULL; what mesh_last_error() gives programs */
int err_status(void);             /* its status, for who got NULL and returns an int */

void err_enter(const char *public_function);
const char *err_entered(void); /* the public_name() of what err_enter() was told last; "" at first */
void err_set_rank(int rank);   /* this thread's rank from now on; -1: none yet */
int err_rank(void);
void err_clear(void);

#endif
