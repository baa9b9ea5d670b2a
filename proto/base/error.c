/* proto/base/error.c - this thread's error record: written once by who knows why, wrapped on the way up.
 *
 * A sentence longer than the record is cut before the character that no longer fits, ending in "...".
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/public_name.h"

struct thread_error {
    mesh_error last;
    bool is_local;
    const char *entered; /* the public function this thread is in */
    int rank;
};

static _Thread_local struct thread_error thread_error = { .last = { .rank = -1, .where = "" },
                                                          .entered = "",
                                                          .rank = -1 };

/* Cuts text, which needed `needed` bytes, to what its buffer holds; never inside a UTF-8 character. */
static void cut(char *text, size_t size, int needed)
{
    if (needed < 0) {
        text[0] = '\0';
    } else if ((size_t)needed >= size) {
        size_t end = size - sizeof("...");
        while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80) {
            end--;
        }
        memcpy(text + end, "...", sizeof("..."));
    }
}

static int record(int status, int rank, bool is_local, const char *format, va_list args) PRINTF_LIKE(4, 0);
static int record(int status, int rank, bool is_local, const char *format, va_list args)
{
    struct thread_error *t = &thread_error;
    char message[sizeof t->last.message]; /* the arguments may point into the record */
    cut(message, sizeof message, vsnprintf(message, sizeof message, format, args));
    t->last = (mesh_error){ .status = (mesh_status)status, .rank = rank, .where = err_entered() };
    memcpy(t->last.message, message, sizeof message);
    t->is_local = is_local;
    return status;
}

int err_setv(int status, const char *format, va_list args)
{
    return record(status, thread_error.rank, status == MESH_ENOMEM, format, args);
}

int err_set(int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    err_setv(status, format, args);
    va_end(args);
    return status;
}

int err_set_local(int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(status, thread_error.rank, true, format, args);
    va_end(args);
    return status;
}

int err_set_about(int status, int rank, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(status, rank, false, format, args);
    va_end(args);
    return status;
}

int err_no_memory(size_t bytes, const char *what_for)
{
    return err_set(MESH_ENOMEM, "out of memory: %zu bytes for %s", bytes, what_for);
}

int err_wrap(int status, const char *outer_format, ...)
{
    struct thread_error *t = &thread_error;
    char outer[sizeof t->last.message], message[sizeof t->last.message];
    va_list args;
    if (status == 0) {
        return 0;
    }
    va_start(args, outer_format);
    cut(outer, sizeof outer, vsnprintf(outer, sizeof outer, outer_format, args));
    va_end(args);
    if ((int)t->last.status != status) {
        /* Somebody passed up a status without a sentence. */
        return err_set(status, "%s: %s", outer, mesh_status_text((mesh_status)status));
    }
    cut(message, sizeof message, snprintf(message, sizeof message, "%s: %s", outer, t->last.message));
    memcpy(t->last.message, message, sizeof message);
    return status;
}

int err_restore(const mesh_error *e)
{
    struct thread_error *t = &thread_error;
    mesh_error copy = *e; /* e may be the record itself */
    t->last = copy;
    if (!copy.where || copy.where[0] == '\0') {
        t->last.where = err_entered();
    }
    t->is_local = copy.status == MESH_ENOMEM && copy.rank == t->rank;
    return (int)copy.status;
}

bool err_is_local(void)
{
    return thread_error.is_local;
}

const mesh_error *err_last(void)
{
    return &thread_error.last;
}

int err_status(void)
{
    return (int)err_last()->status;
}

int err_rank(void)
{
    return thread_error.rank;
}

void err_enter(const char *public_function)
{
    thread_error.entered = public_function;
}

const char *err_entered(void)
{
    return thread_error.entered ? public_name(thread_error.entered) : "";
}

void err_set_rank(int rank)
{
    thread_error.rank = rank;
}

void err_clear(void)
{
    thread_error.last = (mesh_error){ .rank = -1, .where = "" };
    thread_error.is_local = false;
}
