/* daemon/process.c - whether a process runs, is stopped, or is gone.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "4711 (any name ) even this) S 1 ...": the state follows the last parenthesis. */
enum process_state process_state_of(const char *stat)
{
    const char *end = strrchr(stat, ')');
    if (end == NULL || end[1] != ' ') {
        return PROCESS_UNKNOWN;
    }
    switch (end[2]) {
    case 'T':
    case 't':
        return PROCESS_STOPPED;
    case 'Z':
    case 'X':
        return PROCESS_GONE;
    case 0:
        return PROCESS_UNKNOWN;
    default:
        return PROCESS_RUNS;
    }
}

enum process_state process_look(pid_t pid, uid_t uid)
{
    char path[40], text[1024];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) {
        return pid > 0 && errno == ENOENT ? PROCESS_GONE : PROCESS_UNKNOWN;
    }
    ssize_t n = fstat(fd, &st) == 0 && st.st_uid == uid ? read(fd, text, sizeof text - 1) : -1;
    close(fd);
    if (n <= 0) {
        return PROCESS_UNKNOWN;
    }
    text[n] = 0;
    return process_state_of(text);
}
