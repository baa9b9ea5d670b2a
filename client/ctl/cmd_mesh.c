/* client/ctl/cmd_mesh.c - meshctl mesh show JOB: device meshes drawn as grids of rank@host.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/util.h"
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/mesh_view.h"
#include "ctl/output.h"
#include "ctl/say.h"
#include "wire/codec.h"

const struct command_options options_mesh_show;

#define CELL_BYTES 96
#define MESH(row)  ((const struct mesh_view *)(row))

static void get_key(const void *row, struct cell *c)
{
    cell_set_text(c, MESH(row)->key);
}

static void get_device(const void *row, struct cell *c)
{
    cell_set_text(c, MESH(row)->device);
}

static void get_shape(const void *row, struct cell *c)
{
    c->kind = CELL_NUMBERS;
    c->numbers = MESH(row)->shape;
    c->n = (size_t)MESH(row)->ndim;
}

static void get_names(const void *row, struct cell *c)
{
    c->kind = CELL_TEXTS;
    c->texts = MESH(row)->names;
    c->n = (size_t)MESH(row)->ndim;
}

static void get_ranks(const void *row, struct cell *c)
{
    c->kind = CELL_NUMBERS;
    c->numbers = MESH(row)->ranks;
    c->n = MESH(row)->n_ranks;
}

static void get_agreed(const void *row, struct cell *c)
{
    cell_set_number(c, MESH(row)->agreed);
}

static const struct column mesh_columns[] = {
    { "MESH", "key", 0, get_key },      { "DEVICE", "device", 0, get_device }, { "SHAPE", "shape", 0, get_shape },
    { "NAMES", "names", 0, get_names }, { "RANKS", "ranks", 0, get_ranks },    { "AGREED", "agreed", 0, get_agreed },
};

static void get_job(const void *row, struct cell *c)
{
    cell_set_text(c, row);
}

static const struct column head_columns[] = { { NULL, "job", 0, get_job } };

/* "5@node1", with the state when the rank no longer takes part. */
static void cell_text(char *buf, const Mesh__V1__RankList *ranks, uint32_t rank)
{
    for (size_t i = 0; i < ranks->n_ranks; i++) {
        const Mesh__V1__RankInfo *info = ranks->ranks[i];
        if (info->rank == rank) {
            bool is_well = strcmp(info->state, "joined") == 0;
            (void)snprintf(buf, CELL_BYTES, "%u@%.60s%s%.12s%s", rank, info->host, is_well ? "" : " (",
                           is_well ? "" : info->state, is_well ? "" : ")");
            return;
        }
    }
    (void)snprintf(buf, CELL_BYTES, "%u", rank);
}

/* The texts of a mesh's grid: a title for each row where there is more than one dimension, then the cells. */
struct grid {
    size_t n_rows, n_columns;
    bool has_row_titles;
    char (*text)[CELL_BYTES]; /* [(n_rows + 1) * n_columns]: the line of titles first */
    const char **at;          /* pointers to the above */
};

static int grid_init(struct grid *g, const struct mesh_view *v, const Mesh__V1__RankList *ranks)
{
    size_t across = v->shape[v->ndim - 1];
    g->has_row_titles = v->ndim > 1;
    g->n_rows = v->n_ranks / across;
    g->n_columns = across + g->has_row_titles;
    size_t n = (g->n_rows + 1) * g->n_columns;
    g->text = mem_zalloc(n * CELL_BYTES);
    g->at = mem_alloc_array(n, sizeof *g->at);
    if (g->text == NULL || g->at == NULL) {
        return err_no_memory(n * CELL_BYTES, "the grid of a mesh");
    }
    for (size_t i = 0; i < n; i++) {
        g->at[i] = g->text[i];
    }
    for (size_t c = 0; c < across; c++) {
        (void)snprintf(g->text[g->has_row_titles + c], CELL_BYTES, "%s=%zu", v->name[v->ndim - 1], c);
    }
    for (size_t r = 0; r < g->n_rows; r++) {
        char(*line)[CELL_BYTES] = g->text + (r + 1) * g->n_columns;
        if (g->has_row_titles) {
            mesh_view_row_title(v, r, line[0], CELL_BYTES);
        }
        for (size_t c = 0; c < across; c++) {
            cell_text(line[g->has_row_titles + c], ranks, v->ranks[r * across + c]);
        }
    }
    return 0;
}

static int draw(const struct ctl *ctl, const struct mesh_view *v, const Mesh__V1__RankList *ranks)
{
    struct grid g = { .n_rows = 0 };
    struct buf text = BUF_INIT;
    int r = grid_init(&g, v, ranks);
    if (r == 0 && !ctl->no_headers) {
        buf_printf(&text, "%s: %s", v->key, v->device);
        for (int i = 0; i < v->ndim; i++) {
            buf_printf(&text, "%s%s=%u", i == 0 ? " " : ",", v->name[i], v->shape[i]);
        }
        buf_printf(&text, ", agreed by %u/%zu\n", v->agreed, v->n_ranks);
        (void)fputs(buf_text(&text), stdout);
        buf_clear(&text);
    }
    r = r == 0 ? output_grid(ctl, g.at, g.at + g.n_columns, g.n_rows, g.n_columns) : r;
    if (r == 0 && !ctl->no_headers) {
        for (int i = 0; i < v->ndim; i++) {
            buf_printf(&text, "%s", i == 0 ? "groups: " : "  ");
            mesh_view_groups(v, i, &text);
        }
        (void)printf("%s\n", buf_text(&text));
    }
    buf_fini(&text);
    mem_free(g.text);
    mem_free((void *)g.at);
    return r;
}

static int show(const struct ctl *ctl, const char *job, const Mesh__V1__MeshList *list, const Mesh__V1__RankList *ranks)
{
    int r = 0;
    size_t n = 0;
    struct mesh_view *views = mem_alloc_array(list->n_meshes + 1, sizeof *views);
    const void **rows = mem_alloc_array(list->n_meshes + 1, sizeof *rows);
    struct view view = { .kind = "MeshList",
                         .items_key = "meshes",
                         .head = { head_columns, ARRAY_SIZE(head_columns) },
                         .head_row = job,
                         .items = { mesh_columns, ARRAY_SIZE(mesh_columns) },
                         .none = "no meshes" };
    if (views == NULL || rows == NULL) {
        r = err_no_memory(list->n_meshes * sizeof *views, "the meshes of a job");
    }
    for (size_t i = 0; i < list->n_meshes && r == 0; i++) {
        const Mesh__V1__MeshInfo *m = list->meshes[i];
        if (mesh_view_parse(&views[n], m->descriptor, m->member, m->n_member) == 0) {
            views[n].key = m->key;
            views[n].agreed = m->agreed;
            rows[n] = &views[n];
            n++;
        }
    }
    view.rows = rows;
    view.n_rows = n;
    bool is_drawn = ctl->format == FORMAT_TABLE || ctl->format == FORMAT_WIDE;
    if (r == 0 && (!is_drawn || n == 0)) {
        r = output_view(ctl, &view);
    }
    for (size_t i = 0; i < n && r == 0 && is_drawn; i++) {
        (void)printf("%s", i > 0 ? "\n" : "");
        r = draw(ctl, &views[i], ranks);
    }
    mem_free(views);
    mem_free((void *)rows);
    return r;
}

static int ask_meshes(const struct ctl *ctl, char *job, Mesh__V1__DaemonMessage **ret_reply)
{
    Mesh__V1__ListMeshes question = MESH__V1__LIST_MESHES__INIT;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    question.job = job;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_LIST_MESHES;
    m.list_meshes = &question;
    return client_ask(ctl, &m, MESH__V1__DAEMON_MESSAGE__BODY_MESHES, ret_reply);
}

static int ask_ranks(const struct ctl *ctl, char *job, Mesh__V1__DaemonMessage **ret_reply)
{
    Mesh__V1__ListRanks question = MESH__V1__LIST_RANKS__INIT;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    question.job = job;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_LIST_RANKS;
    m.list_ranks = &question;
    return client_ask(ctl, &m, MESH__V1__DAEMON_MESSAGE__BODY_RANKS, ret_reply);
}

int cmd_mesh_show(const struct ctl *ctl, const struct arguments *arguments, const void *options)
{
    (void)options;
    char *job = arguments_job(arguments);
    Mesh__V1__DaemonMessage *meshes = NULL, *ranks = NULL;
    int r = ask_meshes(ctl, job, &meshes);
    job = r == 0 && meshes->meshes->job != NULL ? meshes->meshes->job->job : job;
    r = r == 0 ? ask_ranks(ctl, job, &ranks) : r;
    r = r == 0 ? show(ctl, job, meshes->meshes, ranks->ranks) : r;
    codec_free_daemon(meshes);
    codec_free_daemon(ranks);
    return r == 0 ? EXIT_OK : say_failure(r);
}
