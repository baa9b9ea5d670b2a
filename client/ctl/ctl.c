/* client/ctl/ctl.c - the options that every command takes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/ctl.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/util.h"

#define AT(field) offsetof(struct ctl, field)

/* clang-format off */
static const struct option rows[] = {
    { "address",    'a', OPTION_TEXT,     AT(address),       "ADDRESS",  0, 0, "meshd's address, unix:/path or tcp:host:port; default $MESH_ADDRESS, else the first socket of $XDG_RUNTIME_DIR/meshd, /run/meshd, /tmp/meshd-UID" },
    { "output",     'o', OPTION_CHOICE,   AT(format),        "table|wide|json|jsonl", 0, 0, "how data is printed" },
    { "no-headers",  0,  OPTION_FLAG,     AT(no_headers),    NULL,       0, 0, "tables without the line of titles" },
    { "timeout",     0,  OPTION_DURATION, AT(timeout_ms),    "TIME",     1, INT32_MAX, "how long meshd may take to answer, like 500ms or 5s; default 10s" },
    { "color",       0,  OPTION_CHOICE,   AT(color),         "auto|always|never", 0, 0, "colours; auto: on a terminal, unless NO_COLOR is set" },
    { "verbose",    'v', OPTION_COUNT,    AT(verbosity),     NULL,       0, 0, "say more on standard error" },
    { "help",       'h', OPTION_FLAG,     AT(wants_help),    NULL,       0, 0, "help for meshctl or the command" },
    { "version",    'V', OPTION_FLAG,     AT(wants_version), NULL,       0, 0, "print the version" },
};
/* clang-format on */

struct option_table ctl_options(struct ctl *ctl)
{
    return (struct option_table){ .rows = rows, .n = ARRAY_SIZE(rows), .values = ctl };
}

bool ctl_wants_color(const struct ctl *ctl, int fd)
{
    if (ctl->color != COLOR_AUTO) {
        return ctl->color == COLOR_ALWAYS;
    }
    const char *no_color = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    bool is_plain = (no_color != NULL && no_color[0] != '\0') || (terminal != NULL && terminal[0] == 'd');
    return !is_plain && isatty(fd) == 1;
}
