/* daemon/main.c - meshd: read the options, prepare the place, serve.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/log.h"
#include "daemon/folder.h"
#include "daemon/options.h"
#include "daemon/server.h"
#include "wire/default_address.h"

#define EXIT_USAGE 2

static int complain(int exit_code)
{
    fprintf(stderr, "meshd: %s\n", mesh_last_error()->message);
    return exit_code;
}

/* Where to listen; the folder is there when this returned 0. */
static int prepare_address(const struct options *o, struct address *ret_address)
{
    const char *socket = options_text(o, OPTION_SOCKET);
    bool is_default = socket[0] == 0;
    int r = is_default ? default_address_to_listen(ret_address) : address_parse(socket, ret_address);
    if (r < 0) {
        return r;
    }
    if (!ret_address->is_unix) {
        return err_set(MESH_EUNSUPPORTED, "--socket %s: meshd listens on unix sockets only", socket);
    }
    return folder_make(ret_address->path, is_default);
}

static int serve(const struct options *o)
{
    struct server_config config = {
        .max_clients = (size_t)options_number(o, OPTION_MAX_CLIENTS),
        .max_jobs = (size_t)options_number(o, OPTION_MAX_JOBS),
        .idle_ms = options_number(o, OPTION_IDLE_MS),
        .ready_fd = (int)options_number(o, OPTION_READY_FD),
        .life_fd = (int)options_number(o, OPTION_LIFE_FD),
    };
    int r = prepare_address(o, &config.address);
    if (r == 0) {
        r = server_run(&config);
    }
    return r < 0 ? complain(EXIT_FAILURE) : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    (void)argc;
    static struct options options;
    umask(077);
    if (options_load(&options, argv) < 0 || log_configure(options_text(&options, OPTION_LOG)) < 0) {
        return complain(EXIT_USAGE);
    }
    if (options_is_set(&options, OPTION_HELP)) {
        options_help(stdout);
        return EXIT_SUCCESS;
    }
    if (options_is_set(&options, OPTION_VERSION)) {
        printf("meshd %s\n", MESH_VERSION);
        return EXIT_SUCCESS;
    }
    if (options_is_set(&options, OPTION_PRINT)) {
        options_print(&options, stdout);
    }
    if (options_is_set(&options, OPTION_CHECK) || options_is_set(&options, OPTION_PRINT)) {
        return EXIT_SUCCESS;
    }
    return serve(&options);
}
