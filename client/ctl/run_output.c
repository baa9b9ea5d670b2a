/* client/ctl/run_output.c - reads 2 x n pipes, feeds them to line mergers, writes the result.
 *
 * Our own output is written blocking: a reader that is slow holds back the ranks through their pipes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/run_output.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"

#define FLUSH_AFTER_MS 100
#define READ_BYTES     ((size_t)64 << 10)

struct rank_stream {
    struct run_output *output;
    int fd; /* -1: not there, or ended */
    struct loop_watch *watch;
    struct loop_timer *flush; /* runs while an unfinished line is held */
    struct line_source lines;
};

struct run_output {
    struct run_output_options options;
    struct line_sink sink[2];
    int n_open;
    bool was_broken;
    struct rank_stream *stream; /* [2 * n_ranks]: standard output and standard error of rank 0, of rank 1, ... */
    char *chunk;                /* [READ_BYTES] */
};

/* arg: the descriptor. */
static int write_all(const void *data, size_t len, void *arg)
{
    int fd = *(const int *)arg;
    const char *at = data;
    while (len > 0) {
        ssize_t n = write(fd, at, len);
        if (n >= 0) {
            at += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN) {
            struct pollfd p = { .fd = fd, .events = POLLOUT };
            (void)poll(&p, 1, -1); /* waits for whoever reads our output, or for a signal */
        } else if (errno != EINTR) {
            return MESH_EIO;
        }
    }
    return 0;
}

struct run_output *run_output_new(const struct run_output_options *options)
{
    static int descriptors[2] = { STDOUT_FILENO, STDERR_FILENO };
    size_t n = 2 * (size_t)options->n_ranks;
    struct run_output *o = mem_new(struct run_output);
    if (o == NULL) {
        (void)err_no_memory(sizeof *o, "the output of a job");
        return NULL;
    }
    o->options = *options;
    o->stream = mem_zalloc(n * sizeof *o->stream);
    o->chunk = mem_alloc(READ_BYTES);
    if (o->stream == NULL || o->chunk == NULL) {
        (void)err_no_memory(n * sizeof *o->stream + READ_BYTES, "the output of a job");
        mem_free(o->stream);
        mem_free(o->chunk);
        return mem_free(o);
    }
    for (size_t i = 0; i < n; i++) {
        o->stream[i].output = o;
        o->stream[i].fd = -1;
    }
    for (int i = 0; i < 2; i++) {
        o->sink[i] = (struct line_sink){ .write = write_all, .arg = &descriptors[i] };
    }
    return o;
}

static void make_tag(const struct run_output *o, int rank, bool has_color, char *tag, size_t cap)
{
    if (!o->options.is_tagged) {
        tag[0] = '\0';
    } else if (has_color) {
        (void)snprintf(tag, cap, "\033[%dm[%d]\033[0m ", 31 + (rank + 1) % 6, rank);
    } else {
        (void)snprintf(tag, cap, "[%d] ", rank);
    }
}

static void stream_end(struct rank_stream *s)
{
    if (s->fd < 0) {
        return;
    }
    s->watch = loop_watch_stop(s->watch);
    s->flush = loop_timer_stop(s->flush);
    lines_end(&s->lines);
    (void)close(s->fd);
    s->fd = -1;
    s->output->n_open--;
}

static void flush_cb(void *arg);

/* An unfinished line is shown a moment after the last piece of it. */
static void keep_flush_timer(struct rank_stream *s)
{
    s->flush = loop_timer_stop(s->flush);
    if (lines_has_held(&s->lines)) {
        s->flush = loop_timer_start(s->output->options.loop, FLUSH_AFTER_MS, 0, flush_cb, s);
    }
}

/* While we wait for our reader the moment passes, but the rest of the line may be there. */
static void flush_cb(void *arg)
{
    struct rank_stream *s = arg;
    struct pollfd p = { .fd = s->fd, .events = POLLIN };
    if (poll(&p, 1, 0) == 0) {
        lines_flush(&s->lines);
    }
    keep_flush_timer(s);
}

static void readable_cb(bool readable, bool writable, void *arg)
{
    struct rank_stream *s = arg;
    struct run_output *o = s->output;
    (void)readable, (void)writable;
    ssize_t n = read(s->fd, o->chunk, READ_BYTES);
    if (n > 0) {
        lines_feed(&s->lines, o->chunk, (size_t)n);
        keep_flush_timer(s);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        stream_end(s);
    }
    if (o->sink[0].status != 0 && !o->was_broken) {
        o->was_broken = true;
        o->options.broken(o->options.arg);
    }
    if (o->n_open == 0) {
        o->options.ended(o->options.arg);
    }
}

int run_output_add(struct run_output *o, int rank, const int fds[2])
{
    int r = 0;
    for (int i = 0; i < 2; i++) {
        struct rank_stream *s = &o->stream[2 * rank + i];
        s->fd = fds[i];
        s->lines.sink = &o->sink[i];
        make_tag(o, rank, o->options.has_color[i], s->lines.tag, sizeof s->lines.tag);
        o->n_open++;
        s->watch = loop_watch_start(o->options.loop, s->fd, true, false, readable_cb, s);
        r = s->watch != NULL ? r : mesh_last_error()->status;
    }
    return r;
}

bool run_output_has_ended(const struct run_output *o)
{
    return o->n_open == 0;
}

struct run_output *run_output_free(struct run_output *o)
{
    for (int i = 0; o != NULL && i < 2 * o->options.n_ranks; i++) {
        stream_end(&o->stream[i]);
    }
    if (o != NULL) {
        mem_free(o->stream);
        mem_free(o->chunk);
    }
    return mem_free(o);
}
