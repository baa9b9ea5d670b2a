/* proto/base/log.h - log lines: "ms level topic message key=value", by topic and level.
 *
 * MESH_LOG=warn,comm:debug sets the levels (off error warn info debug trace) of a rank, meshd's option --log those of the
 * daemon; the default is warnings only.  The topic is the layer.  Lines go to stderr through one replaceable function.  A
 * warning ends with what we do about it ("..., retrying in 250 ms").
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

#include "base/util.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_TRACE };

typedef void (*log_sink)(enum log_level level, const char *line, void *arg);

int log_configure(const char *spec);         /* NULL: the default; MESH_EINVAL names the word that is not understood */
void log_set_sink(log_sink sink, void *arg); /* NULL: stderr */
bool log_enabled(const char *topic, enum log_level level);
void log_write(const char *topic, enum log_level level, const char *format, ...) PRINTF_LIKE(3, 4);

#define log_at(topic, level, ...) (log_enabled((topic), (level)) ? log_write((topic), (level), __VA_ARGS__) : (void)0)
#define log_error(topic, ...)     log_at(topic, LOG_ERROR, __VA_ARGS__)
#define log_warn(topic, ...)      log_at(topic, LOG_WARN, __VA_ARGS__)
#define log_info(topic, ...)      log_at(topic, LOG_INFO, __VA_ARGS__)
#define log_debug(topic, ...)     log_at(topic, LOG_DEBUG, __VA_ARGS__)

#endif
