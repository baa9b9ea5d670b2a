/* client/examples/digits.c - learn to read handwritten digits (64-128-10, GELU), data parallel x tensor parallel.
 *
 *     meshctl run -n 4 -- ./digits --mesh 2x2
 *
 * Every mesh computes what one process computes: the losses agree.  A batch is sharded over the mesh dim "dp"; the
 * first layer is split by its outputs over "tp", the second by its inputs.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/mesh.h>
#include <mesh/shorthand.h>
#include <stdio.h>
#include <time.h>

#include "digits_data.h"
#include "digits_options.h"

enum { N_TRAIN = 1437, BATCH = 96, HIDDEN = 128 };

struct training {
    mesh_device_mesh *mesh;
    mesh_module *net;
    mesh_optimizer *sgd;
    const struct digits *data;
};

/* Rows first..first+n of the data, each rank taking its own part of them. */
static mesh_dtensor *images(const struct training *t, size_t first, size_t n)
{
    mesh_tensor *rows =
        mesh_tensor_view(t->data->pixels + first * DIGITS_PIXELS, Shape((int64_t)n, DIGITS_PIXELS), MESH_F32);
    return mesh_distribute_same(rows, t->mesh, Placements(Shard(0), Replicate()));
}

static mesh_dtensor *labels(const struct training *t, size_t first, size_t n)
{
    mesh_tensor *rows = mesh_tensor_view(t->data->labels + first, Shape((int64_t)n), MESH_I64);
    return mesh_distribute_same(rows, t->mesh, Placements(Shard(0), Replicate()));
}

/* The mean loss over the training rows, each batch taken before the step that learns from it. */
static int train_epoch(const struct training *t, double *ret_loss)
{
    double sum = 0;
    mesh_scope *step = mesh_scope_begin();
    for (size_t first = 0; first < N_TRAIN && mesh_scope_next(step); first += BATCH) {
        size_t n = N_TRAIN - first < BATCH ? N_TRAIN - first : BATCH;
        mesh_dtensor *scores = mesh_forward(t->net, images(t, first, n));
        mesh_dtensor *loss = mesh_cross_entropy(scores, labels(t, first, n));
        mesh_backward(loss);
        mesh_optimizer_step(t->sgd);
        sum += mesh_item(loss) * (double)n;
    }
    *ret_loss = sum / N_TRAIN;
    return mesh_scope_end(step);
}

static size_t count_right(const struct training *t, const float *scores, size_t first, size_t n)
{
    size_t right = 0;
    for (size_t i = 0; i < n; i++, scores += DIGITS_CLASSES) {
        int64_t best = 0;
        for (int64_t c = 1; c < DIGITS_CLASSES; c++) {
            best = scores[c] > scores[best] ? c : best;
        }
        right += best == t->data->labels[first + i] ? 1 : 0;
    }
    return right;
}

/* The share of the rows not trained on whose greatest score is the right one. */
static int test_accuracy(const struct training *t, double *ret_accuracy)
{
    size_t n = t->data->n - N_TRAIN, right = 0;
    mesh_scope *scope = mesh_scope_begin();
    bool recorded = mesh_grad_enable(false);
    mesh_tensor *scores = mesh_full_tensor(mesh_forward(t->net, images(t, N_TRAIN, n)));
    if (scores != NULL) {
        right = count_right(t, mesh_tensor_data(scores), N_TRAIN, n);
    }
    mesh_grad_enable(recorded);
    *ret_accuracy = (double)right / (double)n;
    return mesh_scope_end(scope);
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The collectives that a step may need, and how many of each this rank has begun. */
static const struct {
    mesh_comm_kind kind;
    const char *name;
} kinds[] = { { MESH_COMM_ALL_REDUCE, "all_reduce" },
              { MESH_COMM_REDUCE_SCATTER, "reduce_scatter" },
              { MESH_COMM_ALL_GATHER, "all_gather" },
              { MESH_COMM_ALL_TO_ALL, "all_to_all" },
              { MESH_COMM_BROADCAST, "broadcast" } };
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

struct usage {
    double seconds;
    uint64_t count[N_KINDS];
    int n_steps;
};

static void print_usage(const struct usage *u)
{
    const char *separator = "";
    printf("%d steps in %.2f s; collectives per step: ", u->n_steps, u->seconds);
    for (size_t i = 0; i < N_KINDS; i++) {
        if (u->count[i] > 0) {
            printf("%s%g %s", separator, (double)u->count[i] / u->n_steps, kinds[i].name);
            separator = ", ";
        }
    }
    puts(separator[0] == '\0' ? "none" : "");
}

static int train_measured(const struct training *t, double *ret_loss, struct usage *u)
{
    double begin = seconds_now();
    mesh_comm_reset();
    int r = train_epoch(t, ret_loss);
    u->seconds += seconds_now() - begin;
    u->n_steps += (N_TRAIN + BATCH - 1) / BATCH;
    for (size_t i = 0; i < N_KINDS; i++) {
        u->count[i] += mesh_comm_count(kinds[i].kind);
    }
    return r;
}

static int train(const struct training *t, int n_epochs)
{
    struct usage usage = { .seconds = 0 };
    for (int epoch = 1; epoch <= n_epochs; epoch++) {
        double loss = 0, accuracy = 0;
        if (train_measured(t, &loss, &usage) < 0 || test_accuracy(t, &accuracy) < 0) {
            return -1;
        }
        if (mesh_rank() == 0) {
            printf("epoch %2d  loss %.8f  accuracy %.2f%%\n", epoch, loss, 100 * accuracy);
            fflush(stdout);
        }
    }
    if (mesh_rank() == 0) {
        print_usage(&usage);
    }
    return 0;
}

static int build_and_train(const struct digits *data, const struct digits_options *o)
{
    struct training t = { .data = data };
    t.mesh = mesh_init_device_mesh("cpu", Shape(o->dp, o->tp), Names("dp", "tp"));
    t.net = mesh_nn_sequential({ "up", mesh_nn_linear(t.mesh, DIGITS_PIXELS, HIDDEN, .seed = 1) },
                               { "gelu", mesh_nn_gelu() },
                               { "down", mesh_nn_linear(t.mesh, HIDDEN, DIGITS_CLASSES, .seed = 2) });
    mesh_parallelize_module(t.net, "tp", { "up", Colwise() }, { "down", Rowwise() });
    t.sgd = mesh_sgd(t.net, .lr = 0.1, .momentum = 0.9);
    if (mesh_rank() == 0) {
        printf("%d digits to learn from, %d to test, on a %dx%d mesh (dp x tp)\n", N_TRAIN, (int)data->n - N_TRAIN,
               o->dp, o->tp);
    }
    if (train(&t, o->epochs) < 0) {
        mesh_perror("digits");
        return 1;
    }
    return 0;
}

/* One rank says what is wrong; all wait for it, since a job ends with the first rank that does.  Returns the exit code. */
static int end_together(int code, int speaker, const char *sentence)
{
    if (mesh_rank() == speaker) {
        fprintf(stderr, "digits: %s\n", sentence);
    }
    if (mesh_barrier(mesh_world()) < 0) {
        mesh_perror("digits");
    }
    return code;
}

/* Each rank reads the file; when some cannot, all end. */
static int read_data(const char *path, struct digits *ret_data)
{
    char why[4352] = "";
    int result = digits_read(path, ret_data, why, sizeof why);
    if (result == 0 && ret_data->n <= N_TRAIN) {
        snprintf(why, sizeof why, "%s: %zu digits are too few: %d are to learn from, the rest to test", path,
                 ret_data->n, N_TRAIN);
        result = -1;
    }
    int32_t first_failed = result < 0 ? mesh_rank() : mesh_world_size();
    if (mesh_all_reduce(&first_failed, 1, MESH_I32, MESH_MIN, mesh_world()) < 0) {
        mesh_perror("digits");
        return 1;
    }
    return first_failed < mesh_world_size() ? end_together(1, first_failed, why) : 0;
}

static int run(struct digits_options *o)
{
    struct digits data = { .n = 0 };
    if (o->dp == 0) {
        o->dp = mesh_world_size();
        o->tp = 1;
    }
    if ((int64_t)o->dp * o->tp != mesh_world_size()) {
        char sentence[160];
        snprintf(sentence, sizeof sentence,
                 "a %dx%d mesh needs %lld ranks, but the world has %d; start it with meshctl run -n %lld", o->dp, o->tp,
                 (long long)o->dp * o->tp, mesh_world_size(), (long long)o->dp * o->tp);
        return end_together(2, 0, sentence);
    }
    int result = read_data(o->data, &data);
    if (result == 0) {
        result = build_and_train(&data, o);
    }
    digits_free(&data);
    return result;
}

int main(int argc, char **argv)
{
    struct digits_options options;
    int parsed = digits_parse(argc, argv, &options);
    if (parsed == 0) {
        return 0;
    }
    if (mesh_init() < 0) {
        mesh_perror("digits");
        return 1;
    }
    int result = parsed > 0 ? end_together(parsed, 0, options.mistake) : run(&options);
    if (mesh_finalize() < 0 && result == 0) {
        mesh_perror("digits");
        result = 1;
    }
    return result;
}
