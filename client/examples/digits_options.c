/* client/examples/digits_options.c - reads the command line of digits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "digits_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage_text[] =
    "usage: digits [--mesh DPxTP] [--data FILE] [--epochs N]\n"
    "  --mesh DPxTP  DP parts of each batch, TP parts of each layer; DP x TP ranks (default: all ranks x 1)\n"
    "  --data FILE   lines of 64 pixels 0..16 and a class 0..9 (default: digits.csv beside the program)\n"
    "  --epochs N    how often to go through the data (default 20)\n";

static int refuse(struct digits_options *o, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(o->mistake, sizeof o->mistake, format, args);
    va_end(args);
    return 2;
}

/* 1..1000000 at the beginning of text; -1 when there is none. */
static int read_count(const char *text, const char **ret_end)
{
    char *end = NULL;
    errno = 0;
    long value = text[0] >= '0' && text[0] <= '9' ? strtol(text, &end, 10) : -1;
    if (value < 1 || value > 1000000 || errno != 0) {
        return -1;
    }
    *ret_end = end;
    return (int)value;
}

static int parse_mesh(const char *text, struct digits_options *o)
{
    const char *end = text;
    o->dp = read_count(text, &end);
    o->tp = o->dp > 0 && *end == 'x' ? read_count(end + 1, &end) : -1;
    return o->tp > 0 && *end == '\0'
               ? -1
               : refuse(o, "--mesh %s is not two numbers from 1 as in 2x2; see digits --help", text);
}

static int parse_epochs(const char *text, struct digits_options *o)
{
    const char *end = text;
    o->epochs = read_count(text, &end);
    return o->epochs > 0 && *end == '\0' ? -1
                                         : refuse(o, "--epochs %s is not a number from 1; see digits --help", text);
}

static int parse_data(const char *text, struct digits_options *o)
{
    int n = snprintf(o->data, sizeof o->data, "%s", text);
    return n > 0 && (size_t)n < sizeof o->data ? -1 : refuse(o, "--data needs the name of a file; see digits --help");
}

/* The folder this program lies in; "." when the system does not say. */
static void find_default_data(char *path, size_t path_bytes)
{
    const char *name = "digits.csv";
    char folder[3072];
    ssize_t n = readlink("/proc/self/exe", folder, sizeof folder);
    while (n > 0 && folder[n - 1] != '/') {
        n--;
    }
    snprintf(path, path_bytes, "%.*s%s", n > 0 ? (int)n : 0, folder, name);
}

int digits_parse(int argc, char **argv, struct digits_options *ret_options)
{
    static const struct option known[] = { { "mesh", required_argument, NULL, 'm' },
                                           { "data", required_argument, NULL, 'd' },
                                           { "epochs", required_argument, NULL, 'e' },
                                           { "help", no_argument, NULL, 'h' },
                                           { 0 } };
    struct digits_options *o = ret_options;
    *o = (struct digits_options){ .epochs = 20 };
    int result = -1, option;
    find_default_data(o->data, sizeof o->data);
    opterr = 0;
    while (result < 0 && (option = getopt_long(argc, argv, ":", known, NULL)) != -1) {
        switch (option) {
        case 'm':
            result = parse_mesh(optarg, o);
            break;
        case 'd':
            result = parse_data(optarg, o);
            break;
        case 'e':
            result = parse_epochs(optarg, o);
            break;
        case 'h':
            fputs(usage_text, stdout);
            return 0;
        case ':':
            return refuse(o, "%s needs an argument; see digits --help", argv[optind - 1]);
        default:
            return refuse(o, "unknown option %s; see digits --help", argv[optind - 1]);
        }
    }
    if (result < 0 && optind < argc) {
        return refuse(o, "unexpected argument \"%s\"; see digits --help", argv[optind]);
    }
    return result;
}
