/* client/tensor/tensor.c - the life of a plain array: a reference-counted object over reference-counted storage.
 *
 *     mesh_tensor --.                     Several tensors (reshaped views, a DTensor's local part that the user holds)
 *     mesh_tensor --+--> storage --> data  may share one storage; the last one frees it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tensor/tensor.h"

#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/pool.h"
#include "tensor/shape.h"

#define DATA_INSIDE 64 /* where the data of a small tensor begin, in the block of its storage */
_Static_assert(sizeof(struct storage) <= DATA_INSIDE, "the data follow the storage");

static void storage_unref(struct storage *s)
{
    if (s == NULL || atomic_fetch_sub(&s->references, 1) != 1) {
        return;
    }
    if (s->is_inside) {
        pool_free(s, DATA_INSIDE + s->bytes);
        return;
    }
    if (!s->is_borrowed) {
        mem_free(s->data);
    }
    pool_drop(s);
}

int tensor_settle_slowly(struct mesh_tensor *t)
{
    int r = t->pending->finish(t->pending, t);
    if (r == 0) {
        t->pending->drop(t->pending);
        t->pending = NULL;
    }
    return r;
}

static void tensor_free(struct object *o)
{
    struct mesh_tensor *t = container_of(o, struct mesh_tensor, object);
    if (t->pending != NULL) {
        t->pending->drop(t->pending);
    }
    storage_unref(t->storage);
    pool_drop(t);
}

static const struct object_class tensor_class = { .name = "tensor", .free = tensor_free };

/* Takes the storage, also when it fails. */
static struct mesh_tensor *tensor_over(struct storage *storage, mesh_shape shape, mesh_dtype dtype)
{
    struct mesh_tensor *t = pool_new(struct mesh_tensor);
    if (t == NULL) {
        storage_unref(storage);
        err_no_memory(sizeof *t, "a tensor");
        return NULL;
    }
    object_init_unscoped(&t->object, &tensor_class);
    t->shape = shape;
    t->dtype = dtype;
    t->n = shape_numel(shape);
    t->data = storage->data;
    t->storage = storage;
    return t;
}

static struct storage *storage_new(void *data, size_t bytes, bool is_borrowed)
{
    struct storage *s = pool_new(struct storage);
    if (s == NULL) {
        err_no_memory(sizeof *s, "a tensor's storage");
        return NULL;
    }
    atomic_init(&s->references, 1);
    s->data = data;
    s->bytes = bytes;
    s->is_borrowed = is_borrowed;
    return s;
}

/* One block for both. */
static struct storage *storage_with_data(size_t bytes)
{
    struct storage *s = pool_alloc(DATA_INSIDE + bytes);
    if (s != NULL) {
        *s = (struct storage){ .data = (char *)s + DATA_INSIDE, .bytes = bytes, .is_inside = true };
        atomic_init(&s->references, 1);
    }
    return s;
}

static struct storage *storage_beside(size_t bytes)
{
    void *data = mem_alloc(bytes);
    struct storage *s = data == NULL ? NULL : storage_new(data, bytes, false);
    if (s == NULL) {
        mem_free(data);
    }
    return s;
}

struct mesh_tensor *tensor_new(mesh_shape shape, mesh_dtype dtype)
{
    size_t n = (size_t)shape_numel(shape), item = dtype_size(dtype), bytes = n * item;
    struct storage *s = n > PTRDIFF_MAX / item                  ? NULL
                        : bytes <= POOL_MAX_BYTES - DATA_INSIDE ? storage_with_data(bytes)
                                                                : storage_beside(bytes);
    if (s == NULL) {
        char text[SHAPE_TEXT_BYTES];
        err_set(MESH_ENOMEM, "no memory for a tensor %s of %s: %zu elements of %zu bytes",
                shape_text(shape, text, sizeof text), dtype_name(dtype), n, item);
        return NULL;
    }
    return tensor_over(s, shape, dtype);
}

struct mesh_tensor *tensor_new_zeroed(mesh_shape shape, mesh_dtype dtype)
{
    struct mesh_tensor *t = tensor_new(shape, dtype);
    if (t != NULL) {
        memset(t->data, 0, tensor_bytes(t));
    }
    return t;
}

struct mesh_tensor *tensor_share(struct mesh_tensor *t, mesh_shape shape)
{
    PRE(shape_numel(shape) == t->n && t->pending == NULL);
    atomic_fetch_add(&t->storage->references, 1);
    struct mesh_tensor *shared = tensor_over(t->storage, shape, t->dtype);
    if (shared != NULL) {
        shared->data = t->data;
    }
    return shared;
}

struct mesh_tensor *tensor_view(void *data, mesh_shape shape, mesh_dtype dtype)
{
    struct storage *s = storage_new(data, (size_t)shape_numel(shape) * dtype_size(dtype), true);
    return s == NULL ? NULL : tensor_over(s, shape, dtype);
}

void tensor_unref(struct mesh_tensor *t)
{
    if (t != NULL) {
        object_unref(&t->object);
    }
}

struct mesh_tensor *tensor_ref(struct mesh_tensor *t)
{
    object_ref(&t->object);
    return t;
}

struct mesh_tensor *tensor_copy(const struct mesh_tensor *t)
{
    struct mesh_tensor *copy = tensor_new(t->shape, t->dtype);
    if (copy != NULL) {
        memcpy(copy->data, t->data, tensor_bytes(t));
    }
    return copy;
}

struct mesh_tensor *tensor_detached(struct mesh_tensor *t, const struct mesh_tensor *source)
{
    if (t == NULL || t->n == 0 || t->data != source->data) {
        return t;
    }
    struct mesh_tensor *copy = tensor_settle(t) < 0 ? NULL : tensor_copy(t);
    tensor_unref(t);
    return copy;
}

struct mesh_tensor *tensor_give_to_scope(struct mesh_tensor *t)
{
    PRE(t->object.scope == NULL && atomic_load(&t->object.references) == 1);
    object_init(&t->object, &tensor_class);
    return t;
}

size_t tensor_bytes(const struct mesh_tensor *t)
{
    return (size_t)t->n * dtype_size(t->dtype);
}
