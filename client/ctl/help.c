/* client/ctl/help.c - prints the table of commands and the tables of options for people.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/help.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "ctl/exit_codes.h"

#define TEXT_WIDTH 100

/* Breaks text at spaces so that no line passes TEXT_WIDTH; a newline in it begins a line. */
static void print_wrapped(const char *text, int indent)
{
    int column = 0;
    while (*text != '\0') {
        int len = (int)strcspn(text, " \n");
        if (column > 0 && column + 1 + len > TEXT_WIDTH) {
            column = 0;
            (void)putchar('\n');
        }
        column += column == 0 ? printf("%*s%.*s", indent, "", len, text) : printf(" %.*s", len, text);
        text += len;
        if (*text == '\n') {
            column = 0;
            (void)putchar('\n');
        }
        text += strspn(text, " \n");
    }
    (void)putchar('\n');
}

static void option_spelling(const struct option *o, char *buf, size_t cap)
{
    char letter[6] = "";
    if (o->letter != 0) {
        (void)snprintf(letter, sizeof letter, "-%c, ", o->letter);
    }
    (void)snprintf(buf, cap, "%s--%s%s%s", letter, o->name, o->value_name != NULL ? " " : "",
                   o->value_name != NULL ? o->value_name : "");
}

/* An option of the command takes the place of a general one of the same name. */
static bool is_taken(const struct command *c, const struct option *general)
{
    for (size_t i = 0; c != NULL && i < c->options->n; i++) {
        if (strcmp(c->options->rows[i].name, general->name) == 0) {
            return true;
        }
    }
    return false;
}

static void print_options(const struct option *rows, size_t n, const struct command *taken_by)
{
    for (size_t i = 0; i < n; i++) {
        if (is_taken(taken_by, &rows[i])) {
            continue;
        }
        char spelling[64];
        option_spelling(&rows[i], spelling, sizeof spelling);
        (void)printf("  %s\n", spelling);
        print_wrapped(rows[i].help, 8);
    }
}

static void print_global_options(const struct command *c)
{
    struct ctl none;
    struct option_table global = ctl_options(&none);
    print_options(global.rows, global.n, c);
}

int help_print_all(void)
{
    (void)printf("meshctl - start jobs of meshd and look inside them\n\n"
                 "Usage: meshctl [OPTION...] COMMAND ...\n\nCommands:\n");
    for (size_t i = 0; i < n_commands; i++) {
        (void)printf("  %-12s %s\n", commands[i].name, commands[i].summary);
    }
    (void)printf("\nOptions of every command:\n");
    print_global_options(NULL);
    (void)printf("\nFirst job: meshctl run -n 4 -- PROGRAM\n");
    return EXIT_OK;
}

int help_print_command(const struct command *c)
{
    (void)printf("meshctl %s - %s\n\nUsage: meshctl %s %s%s\n\n", c->name, c->summary, c->name,
                 c->options->n > 0 ? "[OPTION...] " : "", c->operands);
    if (c->details[0] != '\0') {
        print_wrapped(c->details, 0);
        (void)putchar('\n');
    }
    if (c->options->n > 0) {
        (void)printf("Options:\n");
        print_options(c->options->rows, c->options->n, NULL);
        (void)putchar('\n');
    }
    (void)printf("Options of every command:\n");
    print_global_options(c);
    return EXIT_OK;
}

/* Man page source: '-' is a minus, a line must not begin with '.' or a quote; a newline is a break. */
static void print_roff(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '-' || *text == '\\') {
            (void)printf(*text == '-' ? "\\-" : "\\e");
        } else if (*text == '\n') {
            (void)printf("\n.br\n");
        } else {
            (void)putchar(*text);
        }
    }
    (void)putchar('\n');
}

static void print_roff_options(const struct option *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char spelling[64];
        option_spelling(&rows[i], spelling, sizeof spelling);
        (void)printf(".TP\n.B ");
        print_roff(spelling);
        print_roff(rows[i].help);
    }
}

static void print_man_tables(void)
{
    struct ctl none;
    struct option_table global = ctl_options(&none);
    (void)printf(".SH COMMANDS\n");
    for (size_t i = 0; i < n_commands; i++) {
        const struct command *c = &commands[i];
        (void)printf(".SS meshctl %s %s\n", c->name, c->operands);
        print_roff(c->summary);
        if (c->details[0] != '\0') {
            (void)printf(".PP\n");
            print_roff(c->details);
        }
        print_roff_options(c->options->rows, c->options->n);
    }
    (void)printf(".SH OPTIONS\nThese go with every command, unless it has one of the same name.\n");
    print_roff_options(global.rows, global.n);
    (void)printf(".SH EXIT STATUS\n");
#define X(code, name, meaning) (void)printf(".TP\n.B %d\n%s\n", code, meaning);
    EXIT_CODES(X)
#undef X
}

int help_print_man(const char *path)
{
    char line[512];
    FILE *source = fopen(path, "re");
    if (source == NULL) {
        return err_set(MESH_ENOTFOUND, "'%.120s' cannot be read: %s", path, strerror(errno));
    }
    while (fgets(line, sizeof line, source) != NULL) {
        if (strcmp(line, "MESHCTL-TABLES\n") == 0) {
            print_man_tables();
        } else {
            (void)fputs(line, stdout);
        }
    }
    (void)fclose(source);
    return 0;
}
