/* client/session/store.c - the public functions of the store: check the arguments, ask the session's control plane.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/store.h>

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "session/session.h"
#include "session/store_check.h"

/* The session, with the key measured and checked; NULL: error set. */
static struct mesh_session *begin(const char *key, struct bytes *ret_key)
{
    struct mesh_session *s = session_require();
    struct bytes k = { key, key != NULL ? strlen(key) : 0 };
    if (s == NULL || store_key_check(k.data, k.len) < 0) {
        return NULL;
    }
    *ret_key = k;
    return s;
}

static int check_timeout(int64_t timeout_ms)
{
    return timeout_ms >= MESH_NO_WAIT
               ? 0
               : err_set(MESH_EINVAL,
                         "a time limit of %" PRId64 " ms: give milliseconds, 0 for the session's, or MESH_NO_WAIT",
                         timeout_ms);
}

static int check_value(const char *what, const void *value, size_t len)
{
    return value != NULL || len == 0 ? 0 : err_set(MESH_EINVAL, "the %s is NULL but has %zu bytes", what, len);
}

/* Copies what fits; r is kept unless it does not fit. */
static int hand_out(int r, const struct bytes *key, const struct buf *found, void *value, size_t cap, size_t *ret_len)
{
    if (ret_len != NULL) {
        *ret_len = found->len;
    }
    if (found->len > cap) {
        char text[STORE_KEY_TEXT_BYTES];
        return err_set(MESH_ERANGE, "store: the value of %s has %zu bytes, the buffer %zu",
                       text_quote(key->data, key->len, text, sizeof text), found->len, cap);
    }
    if (found->len > 0) {
        memcpy(value, found->data, found->len);
    }
    return r;
}

int mesh_store_set(const char *key, const void *value, size_t len)
{
    err_enter(__func__);
    struct bytes k;
    struct mesh_session *s = begin(key, &k);
    int r = s != NULL ? check_value("value", value, len) : (int)err_last()->status;
    if (r == 0) {
        r = store_value_check(k.data, k.len, len);
    }
    return r < 0 ? r : s->control->ops->store_set(s->control, k, (struct bytes){ value, len });
}

int mesh_store_get(const char *key, void *value, size_t cap, size_t *ret_len, int64_t timeout_ms)
{
    err_enter(__func__);
    struct bytes k;
    struct mesh_session *s = begin(key, &k);
    int r = s != NULL ? check_value("buffer", value, cap) : (int)err_last()->status;
    if (r == 0) {
        r = check_timeout(timeout_ms);
    }
    if (r < 0) {
        return r;
    }
    struct buf found = BUF_INIT;
    r = s->control->ops->store_get(s->control, k, session_timeout(s, timeout_ms), &found);
    if (r == 0) {
        r = hand_out(0, &k, &found, value, cap, ret_len);
    }
    buf_fini(&found);
    return r;
}

int mesh_store_add(const char *key, int64_t delta, int64_t *ret_value)
{
    err_enter(__func__);
    struct bytes k;
    struct mesh_session *s = begin(key, &k);
    if (s == NULL) {
        return err_last()->status;
    }
    int64_t sum;
    int r = s->control->ops->store_add(s->control, k, delta, &sum);
    if (r == 0 && ret_value != NULL) {
        *ret_value = sum;
    }
    return r;
}

static int swap(struct mesh_session *s, const struct store_swap *w, void *value, size_t cap, size_t *ret_len)
{
    struct buf found = BUF_INIT;
    int r = s->control->ops->store_compare_set(s->control, w, &found);
    if (r == MESH_EEXIST) {
        r = hand_out(r, &w->key, &found, value, cap, ret_len);
    }
    buf_fini(&found);
    return r;
}

int mesh_store_compare_set(const char *key, const void *expected, size_t expected_len, const void *desired,
                           size_t desired_len, void *value, size_t cap, size_t *ret_len)
{
    err_enter(__func__);
    struct store_swap w = { .expected = { expected, expected_len },
                            .desired = { desired, desired_len },
                            .expect_absent = expected == NULL };
    struct mesh_session *s = begin(key, &w.key);
    int r = s != NULL ? check_value("desired value", desired, desired_len) : (int)err_last()->status;
    if (r == 0) {
        r = check_value("expected value", expected, expected_len);
    }
    if (r == 0) {
        r = store_value_check(w.key.data, w.key.len, desired_len);
    }
    if (r == 0) {
        r = check_value("buffer", value, cap);
    }
    return r < 0 ? r : swap(s, &w, value, cap, ret_len);
}

/* The keys of a list that ends with NULL, checked. */
static int measure_keys(const char *const *keys, struct bytes **ret_keys, size_t *ret_n)
{
    size_t n = 0;
    while (keys[n] != NULL) {
        if (++n > STORE_MAX_WAIT_KEYS) {
            return err_set(MESH_ETOOLARGE, "store wait: more than %d keys in one call", STORE_MAX_WAIT_KEYS);
        }
    }
    struct bytes *list = mem_new_array(struct bytes, n);
    if (list == NULL) {
        return err_no_memory(n * sizeof *list, "the keys to wait for");
    }
    for (size_t i = 0; i < n; i++) {
        list[i] = (struct bytes){ keys[i], strlen(keys[i]) };
        int r = store_key_check(list[i].data, list[i].len);
        if (r < 0) {
            mem_free(list);
            return r;
        }
    }
    *ret_keys = list;
    *ret_n = n;
    return 0;
}

int mesh_store_wait(const char *const *keys, int64_t timeout_ms)
{
    err_enter(__func__);
    struct mesh_session *s = session_require();
    int r = s != NULL ? check_timeout(timeout_ms) : MESH_ESTATE;
    struct bytes *list = NULL;
    size_t n = 0;
    if (r == 0 && keys == NULL) {
        r = err_set(MESH_EINVAL, "store wait: the list of keys is NULL; it ends with NULL, as MESH_NAMES() makes it");
    }
    if (r == 0) {
        r = measure_keys(keys, &list, &n);
    }
    if (r < 0) {
        return r;
    }
    r = s->control->ops->store_wait(s->control, list, n, session_timeout(s, timeout_ms));
    mem_free(list);
    return r;
}

int mesh_store_delete(const char *key)
{
    err_enter(__func__);
    struct bytes k;
    struct mesh_session *s = begin(key, &k);
    return s != NULL ? s->control->ops->store_delete(s->control, k) : (int)err_last()->status;
}
