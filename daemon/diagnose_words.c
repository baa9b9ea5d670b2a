/* daemon/diagnose_words.c - a verdict in words.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/diagnose.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "daemon/sentence.h"

const char *diagnose_age(int64_t ms, char *buf, size_t cap)
{
    if (ms < 10000) {
        snprintf(buf, cap, "%" PRId64 ".%" PRId64 " s", ms / 1000, ms % 1000 / 100);
    } else if (ms < 120000) {
        snprintf(buf, cap, "%" PRId64 " s", ms / 1000);
    } else {
        snprintf(buf, cap, "%" PRId64 " min", ms / 60000);
    }
    return buf;
}

static const char *age_since(const struct diagnose_input *in, int64_t since_ns, char *buf, size_t cap)
{
    int64_t ms = since_ns < in->now_ns ? (in->now_ns - since_ns) / 1000000 : 0;
    return diagnose_age(ms, buf, cap);
}

static void add(char *buf, size_t cap, const char *format, ...) PRINTF_LIKE(3, 4);

static void add(char *buf, size_t cap, const char *format, ...)
{
    size_t used = strlen(buf);
    va_list args;
    va_start(args, format);
    vsnprintf(buf + used, cap - used, format, args);
    va_end(args);
}

/* What it last finished in this group. */
static void add_progress(const struct diagnose_rank *r, uint64_t group, char *buf, size_t cap)
{
    const struct recorder_group *place = recorder_find_group(r->image, group);
    if (place == NULL) {
        add(buf, cap, "does not have the group (not made, or freed)");
    } else if (place->entered == 0) {
        add(buf, cap, "has made no call of the group");
    } else if (place->failed != 0) {
        add(buf, cap, "failed in seq %" PRIu64, place->failed);
    } else {
        add(buf, cap, "last finished seq %" PRIu64, place->finished);
    }
}

static void add_place(const struct diagnose_rank *r, const struct recorder_call *c, char *buf, size_t cap)
{
    char call[120];
    const struct recorder_group *g = recorder_find_group(r->image, c->group);
    add(buf, cap, "%s (", call_words_text(&c->words, call, sizeof call));
    if (c->sequence != 0) {
        add(buf, cap, "seq %" PRIu64 " of ", c->sequence);
    }
    add(buf, cap, "group %s)", g != NULL ? g->name : "freed since");
}

/* The end of the last thing it did. */
static int64_t last_sign_ns(const struct recorder_image *image)
{
    const struct recorder_call *c = recorder_latest(image);
    return c != NULL ? recorder_since_ns(c) : image->created_ns;
}

static void add_now(const struct diagnose_input *in, const struct diagnose_rank *r, char *buf, size_t cap)
{
    char age[24];
    const struct recorder_call *c = recorder_latest(r->image);
    bool is_alive = r->life == LIFE_JOINED && r->process != PROCESS_GONE;
    if (c != NULL && !recorder_is_over(c)) {
        add(buf, cap, ", %s ", is_alive ? "in" : "it was in");
        add_place(r, c, buf, cap);
    } else if (is_alive && r->elsewhere[0] != 0) {
        add(buf, cap, ", waits at meshd for %s", r->elsewhere);
    } else {
        add(buf, cap, ", %s", is_alive ? "in application code" : "it was in application code");
    }
    if (is_alive) {
        add(buf, cap, " for %s", age_since(in, last_sign_ns(r->image), age, sizeof age));
    }
}

static const char *fate(const struct diagnose_rank *r)
{
    if (r->life == LIFE_DEAD || (r->life == LIFE_JOINED && r->process == PROCESS_GONE)) {
        return "died; ";
    }
    if (r->life == LIFE_LEFT) {
        return "left the job; ";
    }
    return r->process == PROCESS_STOPPED ? "its process is stopped; " : "";
}

const char *diagnose_rank_line(const struct diagnose_input *in, uint32_t rank, uint64_t group, char *buf, size_t cap)
{
    const struct diagnose_rank *r = &in->rank[rank];
    snprintf(buf, cap, "rank %u (%s, pid %u): %s", rank, r->host, r->pid, fate(r));
    if (r->image == NULL) {
        add(buf, cap, "its calls are not known");
        if (r->elsewhere[0] != 0) {
            add(buf, cap, "; it waits at meshd for %s", r->elsewhere);
        }
        return buf;
    }
    const struct recorder_call *c = recorder_latest(r->image);
    if (group != 0) {
        add_progress(r, group, buf, cap);
    } else if (c == NULL) {
        add(buf, cap, "has made no call");
    } else if (recorder_is_over(c)) {
        add(buf, cap, "last call ");
        add_place(r, c, buf, cap);
    }
    if (group == 0 && c != NULL && !recorder_is_over(c)) {
        add(buf, cap, "unfinished");
    }
    add_now(in, r, buf, cap);
    bool is_sound = r->life == LIFE_JOINED && r->process == PROCESS_RUNS;
    add(buf, cap, "%s", is_sound ? ", alive" : "");
    return buf;
}

/* " (died)" when there is one culprit and it can do nothing. */
static const char *short_fate(const struct diagnose_input *in, const struct finding *f)
{
    const struct diagnose_rank *r = f->blamed.n == 1 ? &in->rank[f->blamed.at[0]] : NULL;
    if (r == NULL || (r->life == LIFE_JOINED && (r->process == PROCESS_RUNS || r->process == PROCESS_UNKNOWN))) {
        return "";
    }
    return r->life == LIFE_LEFT                                      ? ", which left"
           : r->life == LIFE_JOINED && r->process == PROCESS_STOPPED ? ", which is stopped"
                                                                     : ", which died";
}

static void say_group(const struct diagnose_input *in, const struct finding *f, const char *culprits, char *buf,
                      size_t cap)
{
    char age[24];
    diagnose_age(f->age_ms, age, sizeof age);
    snprintf(buf, cap, "group %s, ", f->name);
    if (f->sequence != 0) {
        add(buf, cap, "seq %" PRIu64 " ", f->sequence);
    }
    add(buf, cap, "%s: ", f->call);
    switch (f->kind) {
    case FINDING_MISMATCH:
        for (size_t i = 0; i < f->calls.n; i++) {
            char ranks[80];
            sentence_ranks(ranks, sizeof ranks, f->calls.at[i].ranks.at, f->calls.at[i].ranks.n);
            add(buf, cap, "%s%s on %s", i > 0 ? ", " : "different calls: ", f->calls.at[i].text, ranks);
        }
        break;
    case FINDING_STALL:
        add(buf, cap, "held up for %s by %s%s", age, culprits, short_fate(in, f));
        break;
    case FINDING_CIRCLE:
        add(buf, cap, "waits for %s, which waits for this group in turn, for %s", culprits, age);
        break;
    case FINDING_FAILED:
        add(buf, cap, "failed");
        break;
    case FINDING_UNKNOWN:
        add(buf, cap, "waits for %s; nothing is known of %s", age, f->blamed.n > 0 ? culprits : "some of its members");
        break;
    default:
        add(buf, cap, "all have entered, it goes on for %s", age);
        break;
    }
}

void diagnose_sentence(const struct diagnose_input *in, struct verdict *v)
{
    char culprits[80] = "";
    if (v->findings.n == 0) {
        snprintf(v->sentence, sizeof v->sentence, "all is well: nobody waits for anybody");
        return;
    }
    const struct finding *f = &v->findings.at[0];
    sentence_ranks(culprits, sizeof culprits, f->blamed.at, f->blamed.n);
    if (f->group != 0) {
        say_group(in, f, culprits, v->sentence, sizeof v->sentence);
    } else {
        snprintf(v->sentence, sizeof v->sentence, "%s %s", culprits,
                 f->kind == FINDING_DEAD ? "died" : "is stopped; nobody waits for it yet");
    }
}
