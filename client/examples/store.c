/* client/examples/store.c - ranks pass a word and count each other through the job's key-value store.
 *
 *     meshctl run -n 4 -- ./store
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/mesh.h>
#include <stdio.h>
#include <string.h>

static int pass_word(void)
{
    const char *word = "open sesame";
    char heard[64];
    size_t length = 0;
    int64_t arrived = 0;
    int r = mesh_rank() == 0 ? mesh_store_set("example/word", word, strlen(word)) : 0;
    /* waits until rank 0 has set it */
    r = r < 0 ? r : mesh_store_get("example/word", heard, sizeof heard, &length, 0);
    r = r < 0 ? r : mesh_store_add("example/arrived", 1, &arrived);
    if (r == 0) {
        printf("rank %d heard \"%.*s\" as number %d\n", mesh_rank(), (int)length, heard, (int)arrived);
    }
    return r;
}

int main(void)
{
    if (mesh_init() < 0) {
        mesh_perror("mesh_init");
        return 1;
    }
    int r = pass_word();
    if (r < 0) {
        mesh_perror("store");
    }
    return mesh_finalize() < 0 || r < 0;
}
