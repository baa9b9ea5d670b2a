/* client/ctl/ctl.h - what every command is given: the global options.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_CTL_H
#define CTL_CTL_H

#include "ctl/options.h"

enum ctl_format { FORMAT_TABLE, FORMAT_WIDE, FORMAT_JSON, FORMAT_JSONL };
enum ctl_color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

struct ctl {
    const char *address; /* NULL: $MESH_ADDRESS, else the usual places */
    int format;          /* enum ctl_format */
    bool no_headers;
    int64_t timeout_ms;
    int color; /* enum ctl_color */
    int verbosity;
    bool wants_help, wants_version;
};

#define CTL_DEFAULTS ((struct ctl){ .timeout_ms = 10000 })

/* Is escape-sequence colour wanted on this descriptor? --color, then NO_COLOR, then whether it is a terminal. */
bool ctl_wants_color(const struct ctl *ctl, int fd);

struct option_table ctl_options(struct ctl *ctl);

#endif
