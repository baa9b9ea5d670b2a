/* tests/fuzz/replay.c - a fuzz target as an ordinary test: its corpus, then mutations that are the same in every run.
 *
 *     fuzz_codec FOLDER [MUTATIONS [SEED]]
 *
 * Each input lies in a block of exactly its size, so that AddressSanitizer sees a read past its end.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

#define MAX_INPUTS     256
#define MAX_INPUT_SIZE 65536
#define N_MUTATIONS    20000

struct input {
    uint8_t *data;
    size_t size;
};

static struct input inputs[MAX_INPUTS];
static size_t n_inputs;

static void run(const uint8_t *data, size_t size)
{
    uint8_t *exact = malloc(size > 0 ? size : 1);
    if (size > 0) {
        memcpy(exact, data, size);
    }
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

static void load(const char *path)
{
    static uint8_t bytes[MAX_INPUT_SIZE];
    FILE *file = fopen(path, "rb");
    if (file && n_inputs < MAX_INPUTS) {
        struct input *in = &inputs[n_inputs++];
        in->size = fread(bytes, 1, sizeof bytes, file);
        in->data = malloc(in->size + 1);
        memcpy(in->data, bytes, in->size);
    }
    if (file) {
        fclose(file);
    }
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void load_folder(const char *folder)
{
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, NULL, by_name); /* sorted: the same order everywhere */
    for (int i = 0; i < n; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') {
            load(path);
        }
        free(entries[i]);
    }
    free(entries);
}

struct source {
    struct rng_key key;
    uint64_t n_drawn;
};

static size_t draw(struct source *s, size_t n)
{
    return (size_t)rng_below(s->key, s->n_drawn++, n);
}

/* One change of one kind to bytes [size]; the new size, at most MAX_INPUT_SIZE. */
static size_t change(struct source *s, uint8_t *bytes, size_t size)
{
    static const uint8_t telling[] = { 0, 1, 0x7f, 0x80, 0xff };
    const struct input *other = &inputs[draw(s, n_inputs)];
    size_t at = draw(s, size + 1), n = draw(s, 16) + 1;
    switch (draw(s, 6)) {
    case 0: /* shorter */
        return at;
    case 1: /* longer */
        n = n < MAX_INPUT_SIZE - size ? n : MAX_INPUT_SIZE - size;
        memmove(bytes + at + n, bytes + at, size - at);
        memset(bytes + at, telling[draw(s, sizeof telling)], n);
        return size + n;
    case 2: /* the end of another */
        n = other->size < MAX_INPUT_SIZE - at ? other->size : MAX_INPUT_SIZE - at;
        memcpy(bytes + at, other->data + other->size - n, n);
        return at + n;
    case 3:
        if (at < size) {
            bytes[at] = telling[draw(s, sizeof telling)];
        }
        return size;
    default:
        if (at < size) {
            bytes[at] = (uint8_t)(bytes[at] ^ 1u << draw(s, 8));
        }
        return size;
    }
}

static void run_mutation(uint64_t seed, uint64_t number)
{
    static uint8_t bytes[MAX_INPUT_SIZE];
    struct source s = { .key = { .seed = seed, .call = number } };
    struct input *in = &inputs[draw(&s, n_inputs)];
    size_t size = in->size;
    memcpy(bytes, in->data, size);
    for (size_t n = draw(&s, 8) + 1; n > 0; n--) {
        size = change(&s, bytes, size);
    }
    run(bytes, size);
}

int main(int argc, char **argv)
{
    uint64_t n_mutations = argc > 2 ? strtoull(argv[2], NULL, 10) : N_MUTATIONS;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    if (argc > 1) {
        load_folder(argv[1]);
    }
    if (n_inputs == 0) {
        fprintf(stderr, "usage: %s FOLDER [MUTATIONS [SEED]], FOLDER holding at least one file\n", argv[0]);
        return 2;
    }
    run(NULL, 0);
    for (size_t i = 0; i < n_inputs; i++) {
        run(inputs[i].data, inputs[i].size);
    }
    for (uint64_t i = 0; i < n_mutations; i++) {
        run_mutation(seed, i);
    }
    for (size_t i = 0; i < n_inputs; i++) {
        free(inputs[i].data);
    }
    printf("%zu passed, 0 failed (and %llu mutations)\n", n_inputs, (unsigned long long)n_mutations);
    return 0;
}
