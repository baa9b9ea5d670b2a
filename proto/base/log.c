/* proto/base/log.c - levels by topic, one line per message, one replaceable way out.
 *
 * Topics are the layers, so the table below is fixed and each level is one atomic: any thread may log while another
 * configures.  A topic that is not in the table follows the default level.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/error.h"

#define LINE_BYTES 1024
#define LEVEL_OFF  (-1)

static const char *const level_names[] = { "error", "warn", "info", "debug", "trace" };

static const char *const topics[] = { "base",   "wire",    "daemon",   "core", "session",  "comm",
                                      "tensor", "dtensor", "autograd", "nn",   "parallel", "ctl" };
#define N_TOPICS ARRAY_SIZE(topics)

/* [N_TOPICS] is the default for topics without a row; 0 in a fresh process must read as warnings only. */
#define STORED(level) ((level)-LOG_WARN)
static _Atomic int levels[N_TOPICS + 1];
static _Atomic int highest_level;

static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER;
static log_sink sink;
static void *sink_arg;

static size_t topic_index(const char *name, size_t len)
{
    for (size_t i = 0; i < N_TOPICS; i++) {
        if (strlen(topics[i]) == len && memcmp(topics[i], name, len) == 0) {
            return i;
        }
    }
    return N_TOPICS;
}

static bool level_parse(const char *word, size_t len, int *ret_level)
{
    if (len == 3 && strncasecmp(word, "off", len) == 0) {
        *ret_level = LEVEL_OFF;
        return true;
    }
    for (size_t i = 0; i < ARRAY_SIZE(level_names); i++) {
        if (strlen(level_names[i]) == len && strncasecmp(word, level_names[i], len) == 0) {
            *ret_level = (int)i;
            return true;
        }
    }
    return false;
}

/* One word of the spec: "debug" sets all topics, "comm:debug" sets one. */
static int word_apply(const char *word, size_t len, int new_levels[N_TOPICS + 1])
{
    const char *colon = memchr(word, ':', len);
    size_t topic = N_TOPICS;
    int level;
    if (colon) {
        topic = topic_index(word, (size_t)(colon - word));
    }
    const char *level_word = colon ? colon + 1 : word;
    if (!level_parse(level_word, (size_t)(word + len - level_word), &level)) {
        return err_set(MESH_EINVAL, "log levels: \"%.*s\" is not one of off, error, warn, info, debug, trace",
                       (int)(word + len - level_word), level_word);
    }
    if (colon && topic == N_TOPICS) {
        return err_set(MESH_EINVAL, "log levels: no topic \"%.*s\"; topics are the layers, such as wire, session, comm",
                       (int)(colon - word), word);
    }
    if (colon) {
        new_levels[topic] = level;
        return 0;
    }
    for (size_t i = 0; i <= N_TOPICS; i++) {
        new_levels[i] = level;
    }
    return 0;
}

int log_configure(const char *spec)
{
    int new_levels[N_TOPICS + 1];
    int r = word_apply("warn", 4, new_levels);
    while (r == 0 && spec && *spec != '\0') {
        size_t len = strcspn(spec, ",");
        r = len > 0 ? word_apply(spec, len, new_levels) : 0;
        spec += len + (spec[len] == ',');
    }
    if (r < 0) {
        return r;
    }
    int highest = LEVEL_OFF;
    for (size_t i = 0; i <= N_TOPICS; i++) {
        atomic_store(&levels[i], STORED(new_levels[i]));
        highest = MAX(highest, new_levels[i]);
    }
    atomic_store(&highest_level, STORED(highest));
    return 0;
}

void log_set_sink(log_sink new_sink, void *arg)
{
    pthread_mutex_lock(&sink_lock);
    sink = new_sink;
    sink_arg = arg;
    pthread_mutex_unlock(&sink_lock);
}

bool log_enabled(const char *topic, enum log_level level)
{
    int stored = STORED((int)level);
    if (stored > atomic_load_explicit(&highest_level, memory_order_relaxed)) {
        return false;
    }
    return stored <= atomic_load_explicit(&levels[topic_index(topic, strlen(topic))], memory_order_relaxed);
}

/* Names from other processes end up in lines; they must not be able to forge one. */
static void make_printable(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c != '\0'; c++) {
        if (*c < ' ' || *c == 0x7f) {
            *c = '?';
        }
    }
}

void log_write(const char *topic, enum log_level level, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list args;
    int n = snprintf(line, sizeof line, "%lld %s %s ", (long long)clock_now_ms(), level_names[level], topic);
    if (n < 0 || (size_t)n >= sizeof line) {
        return;
    }
    va_start(args, format);
    vsnprintf(line + n, sizeof line - (size_t)n, format, args);
    va_end(args);
    make_printable(line);

    pthread_mutex_lock(&sink_lock);
    if (sink) {
        sink(level, line, sink_arg);
    } else {
        fprintf(stderr, "%s\n", line);
    }
    pthread_mutex_unlock(&sink_lock);
}
