/* client/ctl/cmd_kv.c - meshctl kv get and kv set: the key-value store of a job.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/output.h"
#include "ctl/say.h"
#include "wire/codec.h"

#define MAX_VALUE_BYTES ((size_t)1 << 20)

struct get_options {
    int64_t wait_ms;
};

static const struct option get_rows[] = {
    { "wait", 'w', OPTION_DURATION, offsetof(struct get_options, wait_ms), "TIME", 0, INT32_MAX,
      "wait so long for the key to be set, like 500ms or 5s" },
};
static const struct get_options get_defaults = { .wait_ms = -1 };

const struct command_options options_kv_get = { get_rows, ARRAY_SIZE(get_rows), &get_defaults, sizeof get_defaults };
const struct command_options options_kv_set;

struct kv_row {
    const char *job, *key;
    const Mesh__V1__StoreValue *value;
    const char *text; /* the value, when it is printable */
    const char *hex;
};

static void get_job(const void *row, struct cell *c)
{
    cell_set_text(c, ((const struct kv_row *)row)->job);
}

static void get_key(const void *row, struct cell *c)
{
    cell_set_text(c, ((const struct kv_row *)row)->key);
}

/* null when the bytes are not printable text; the hexadecimal form carries any value. */
static void get_value(const void *row, struct cell *c)
{
    cell_set_text(c, ((const struct kv_row *)row)->text);
    c->kind = c->text != NULL ? CELL_TEXT : CELL_NONE;
}

static void get_value_hex(const void *row, struct cell *c)
{
    c->kind = CELL_TEXT;
    c->text = ((const struct kv_row *)row)->hex;
}

static void get_version(const void *row, struct cell *c)
{
    cell_set_number(c, (int64_t)((const struct kv_row *)row)->value->version);
}

static const struct column columns[] = {
    { NULL, "job", 0, get_job },         { NULL, "key", 0, get_key },
    { NULL, "value", 0, get_value },     { NULL, "value_hex", 0, get_value_hex },
    { NULL, "version", 0, get_version },
};

static bool is_printable(const ProtobufCBinaryData *value)
{
    for (size_t i = 0; i < value->len; i++) {
        if (value->data[i] >= 0x7f || (value->data[i] < 0x20 && value->data[i] != '\n' && value->data[i] != '\t')) {
            return false;
        }
    }
    return true;
}

static int print_json(const struct ctl *ctl, struct kv_row *row)
{
    struct buf text = BUF_INIT, hex = BUF_INIT;
    const ProtobufCBinaryData *value = &row->value->value;
    buf_append(&text, value->data, value->len);
    for (size_t i = 0; i < value->len; i++) {
        buf_printf(&hex, "%02x", value->data[i]);
    }
    row->text = is_printable(value) ? buf_text(&text) : NULL;
    row->hex = buf_text(&hex);
    int r = buf_status(&text) == 0 ? buf_status(&hex) : MESH_ENOMEM;
    if (r == 0) {
        struct view view = { .kind = "KeyValue", .head = { columns, ARRAY_SIZE(columns) }, .head_row = row };
        r = output_view(ctl, &view);
    }
    buf_fini(&text);
    buf_fini(&hex);
    return r;
}

static int print_value(const struct ctl *ctl, struct kv_row *row)
{
    if (ctl->format == FORMAT_JSON || ctl->format == FORMAT_JSONL) {
        return print_json(ctl, row);
    }
    (void)fwrite(row->value->value.data, 1, row->value->value.len, stdout);
    (void)putchar('\n');
    return 0;
}

static ProtobufCBinaryData bytes_of(const char *text)
{
    return (ProtobufCBinaryData){ .data = (uint8_t *)text, .len = strlen(text) };
}

int cmd_kv_get(const struct ctl *ctl, const struct arguments *arguments, const void *options)
{
    int64_t wait_ms = ((const struct get_options *)options)->wait_ms;
    Mesh__V1__DaemonMessage *reply = NULL;
    Mesh__V1__StoreGet question = MESH__V1__STORE_GET__INIT;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    struct ctl patient = *ctl;
    question.job = (char *)arguments->operand[0];
    question.key = bytes_of(arguments->operand[1]);
    question.timeout_ms = wait_ms > 0 ? wait_ms : -1;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_STORE_GET;
    m.store_get = &question;
    patient.timeout_ms += wait_ms > 0 ? wait_ms : 0;
    int r = client_ask(&patient, &m, MESH__V1__DAEMON_MESSAGE__BODY_STORE_VALUE, &reply);
    if (r == 0) {
        struct kv_row row = { .job = arguments->operand[0], .key = arguments->operand[1], .value = reply->store_value };
        r = print_value(ctl, &row);
        codec_free_daemon(reply);
    }
    return r == 0 ? EXIT_OK : say_failure(r);
}

/* All of standard input, up to one byte more than a value may have: meshd then says what the limit is. */
static int read_input(struct buf *value)
{
    char chunk[4096];
    ssize_t n = 0;
    while (value->len <= MAX_VALUE_BYTES && (n = read(STDIN_FILENO, chunk, sizeof chunk)) > 0) {
        buf_append(value, chunk, (size_t)n);
    }
    if (n < 0) {
        return err_set(MESH_EIO, "standard input cannot be read");
    }
    if (value->len > MAX_VALUE_BYTES) {
        return err_set(MESH_ETOOLARGE, "the value on standard input is over %zu bytes", MAX_VALUE_BYTES);
    }
    return buf_status(value);
}

int cmd_kv_set(const struct ctl *ctl, const struct arguments *arguments, const void *options)
{
    (void)options;
    struct buf value = BUF_INIT;
    Mesh__V1__DaemonMessage *reply = NULL;
    Mesh__V1__StoreSet question = MESH__V1__STORE_SET__INIT;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    struct client client;
    int r = 0;
    question.job = (char *)arguments->operand[0];
    question.key = bytes_of(arguments->operand[1]);
    question.value = bytes_of(arguments->operand[2]);
    if (strcmp(arguments->operand[2], "-") == 0) {
        r = read_input(&value);
        question.value = (ProtobufCBinaryData){ .data = value.data, .len = value.len };
    }
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_STORE_SET;
    m.store_set = &question;
    r = r == 0 ? client_find_any(ctl, &client) : r;
    r = r == 0 ? client_call(&client, &m, &reply) : r;
    codec_free_daemon(reply);
    buf_fini(&value);
    return r == 0 ? EXIT_OK : say_failure(r);
}
