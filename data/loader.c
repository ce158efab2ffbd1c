/* data/loader.c - batches out of a source, made ready on threads before they are asked for.
 *
 *     order of an epoch     0 .. n - 1, by split_seed, of which a part; by seed and epoch; of
 *                           which every world-th
 *     ring of slots         | held | ready | ready | being filled |     ahead + 1 + threads of them
 *                             ^ taken                ^ claimed
 *
 * A thread claims the next slot when it is free, which says its samples, and fills it beside the
 * others; jot_loader_next gives back the one that is held and takes the next, which it waits for.
 * An epoch's end and a failure are slots like others, so that they come in their turn. Without a
 * thread a slot is claimed and filled when it is asked for: the same batches.
 *
 * Read before: data/source.c. After: data/augment.c. */
#ifndef JOT_NO_HOST
#include "data/parts.h"
#include <unistd.h>
#ifndef JOT_NO_THREADS
#include <pthread.h>
#include <signal.h>
#endif

enum { LOAD_THREADS = 64 };
typedef struct {
    jot_Batch batch;
    void *data[JOT_FIELDS];
    int64_t *length[JOT_FIELDS];
    int64_t shape[JOT_FIELDS][JOT_DATA_RANK + 1];
    int64_t *sample;     /* of each row */
    bool end;            /* of an epoch: no batch */
    bool full;           /* there to be taken */
    jot_Fault fault;     /* status: a failure, no batch */
} LoadSlot;

struct jot_Loader {
    jot_Ctx *ctx;
    const jot_Source *source;
    jot_Loading how;
    size_t each[JOT_FIELDS];   /* bytes of a sample, of the longest */
    int64_t *part, *order, n;  /* those that count; in an epoch's order; how many */
    int64_t shard;             /* of these, for this program */
    int64_t epoch, at;         /* what is claimed next: the epoch, which of its samples */
    bool ended, failed;        /* a stream's epoch, behind this batch; nothing more is claimed */
    LoadSlot *slot;
    int slots;
    int64_t claimed, taken;    /* so many slots; the last one that was taken is held */
    jot_Waits waits;
    double began;
    pid_t process;
#ifndef JOT_NO_THREADS
    bool stop;
    int threads;
    pthread_t thread[LOAD_THREADS];
    pthread_mutex_t lock;
    pthread_cond_t filled, freed;
#endif
};

/* ---- order ---- */

/* Fisher and Yates with whole numbers alone: the same on every machine. */
static void
load_shuffle(int64_t *v, int64_t n, uint64_t seed)
{
    uint64_t mask = 1;

    for (int64_t k = n - 1; k > 0; k--) {
        while (mask < (uint64_t)k + 1)
            mask *= 2;
        while (mask / 2 >= (uint64_t)k + 1)
            mask /= 2;
        uint64_t other;
        do
            other = data_mix(seed++) & (mask - 1);
        while (other > (uint64_t)k);
        int64_t held = v[k];
        v[k] = v[other];
        v[other] = held;
    }
}

static bool
load_part(jot_Loader *l)
{
    const jot_Loading *how = &l->how;
    const int64_t count = l->source->count;
    int64_t *all = (uint64_t)count < PTRDIFF_MAX / sizeof *all
                 ? malloc(((size_t)count + 1) * sizeof *all) : NULL;

    if (!all)
        return false;
    for (int64_t k = 0; k < count; k++)
        all[k] = k;
    if (how->split_seed)
        load_shuffle(all, count, data_mix(how->split_seed));
    int64_t from = (int64_t)(how->from * (double)count), to = (int64_t)(how->to * (double)count);
    if (how->from == 0 && how->to == 0)
        to = count;
    l->n = to - from;
    l->part = all;
    memmove(all, all + from, (size_t)l->n * sizeof *all);
    l->order = all;
    if (how->shuffle)
        l->order = malloc(((size_t)l->n + 1) * sizeof *all);
    return l->order != NULL;
}

static void
load_begin_epoch(jot_Loader *l)
{
    if (l->order == l->part)
        return;
    memcpy(l->order, l->part, (size_t)l->n * sizeof *l->part);
    load_shuffle(l->order, l->n, data_mix(data_mix(l->how.seed) + (uint64_t)l->epoch));
}

/* ---- a batch ---- */

/* Rows of a field that varies: side by side, as long as the longest, `pad` behind the others. */
static void
load_pad(const jot_Loader *l, LoadSlot *s, int f)
{
    const jot_Field *field = &l->source->field[f];
    const int64_t n = s->batch.samples;
    const size_t size = jot_dtype_nbytes(field->dtype);
    const size_t inner = field->shape[0] ? l->each[f] / (size_t)field->shape[0] : 0;
    int64_t longest = 0;
    uint8_t pad[8], *data = s->data[f];

    data_number(pad, field->dtype, l->how.pad);
    for (int64_t k = 0; k < n; k++)
        longest = s->length[f][k] > longest ? s->length[f][k] : longest;
    for (int64_t k = 0; k < n; k++) {
        uint8_t *to = data + (size_t)(k * longest) * inner;
        size_t own = (size_t)s->length[f][k] * inner;
        memmove(to, data + (size_t)k * l->each[f], own);
        for (uint8_t *p = to + own; p < to + (size_t)longest * inner; p += size)
            memcpy(p, pad, size);
    }
    s->shape[f][1] = longest;
}

static void
load_describe(const jot_Loader *l, LoadSlot *s)
{
    jot_Batch *b = &s->batch;

    b->fields = l->source->fields;
    b->ctx = l->ctx;
    for (int f = 0; f < b->fields; f++) {
        const jot_Field *field = &l->source->field[f];
        s->shape[f][0] = b->samples;
        memcpy(s->shape[f] + 1, field->shape, (size_t)field->rank * sizeof *field->shape);
        if (field->varies)
            load_pad(l, s, f);
        b->length[f] = field->varies ? s->length[f] : NULL;
        b->field[f].dtype = field->dtype;
        b->field[f].shape = jot_ints(field->rank + 1, s->shape[f]);
        b->field[f].data = s->data[f];
        b->field[f].nbytes = jot_dtype_nbytes(field->dtype);
        for (int d = 0; d <= field->rank; d++)
            b->field[f].nbytes *= (size_t)s->shape[f][d];
    }
}

/* Sample k as row `row`. False: a failure, or (status JOT_OK) a stream's end. */
static bool
load_sample(jot_Loader *l, LoadSlot *s, int64_t row, int64_t k)
{
    const jot_Source *src = l->source;
    void *out[JOT_FIELDS] = {NULL};
    int64_t length[JOT_FIELDS] = {0};

    for (int f = 0; f < src->fields; f++) {
        out[f] = (char *)s->data[f] + (size_t)row * l->each[f];
        length[f] = src->field[f].varies ? -1 : 0;
    }
    if (!src->get(src->user, k, out, length, &s->fault)) {
        if (!s->fault.status && src->count >= 0)
            jot_fault(&s->fault, JOT_EIO, "sample %lld: its source failed and gave no reason",
                     (long long)k);
        return false;
    }
    for (int f = 0; f < src->fields; f++) {
        if (!src->field[f].varies)
            continue;
        if (length[f] < 0 || length[f] > src->field[f].shape[0]) {
            jot_fault(&s->fault, JOT_ERANGE, "sample %lld: field %d: a length of 0 to %lld asked, "
                     "%lld found", (long long)k, f, (long long)src->field[f].shape[0],
                     (long long)length[f]);
            return false;
        }
        s->length[f][row] = length[f];
    }
    return true;
}

static void
load_end_epoch(jot_Loader *l, LoadSlot *s)
{
    s->end = true;
    l->epoch++;
    l->at = 0;
    l->ended = false;
}

/* Which samples the next slot is of, or that it is an epoch's end. */
static LoadSlot *
load_claim(jot_Loader *l)
{
    LoadSlot *s = &l->slot[l->claimed++ % l->slots];
    const bool stream = l->source->count < 0;
    const int64_t batch = l->how.batch, left = stream ? batch : l->shard - l->at;
    int64_t rows = l->ended ? 0 : left < batch ? left : batch;

    memset(&s->fault, 0, sizeof s->fault);
    s->end = s->full = false;
    s->batch.epoch = l->epoch;
    s->batch.step = l->at / batch;
    if (!l->at)
        load_begin_epoch(l);
    if (!rows || (rows < batch && l->how.last == JOT_LAST_DROPPED)) {
        load_end_epoch(l, s);
        rows = 0;
    }
    for (int64_t row = 0; row < rows; row++) {
        int64_t k = l->at++ * l->how.world + l->how.rank;
        s->sample[row] = stream ? k : l->order[k];
    }
    s->batch.samples = rows;
    return s;
}

/* A stream, which has one thread, ends here. */
static void
load_fill(jot_Loader *l, LoadSlot *s)
{
    int64_t row = 0;

    while (row < s->batch.samples && load_sample(l, s, row, s->sample[row]))
        row++;
    if (s->fault.status || s->end)
        return;
    if (row < s->batch.samples) {
        l->ended = true;
        if (!row || l->how.last == JOT_LAST_DROPPED)
            load_end_epoch(l, s);
        s->batch.samples = row;
    }
    if (!s->end)
        load_describe(l, s);
}

/* The next slot on the caller's thread. */
static void
load_now(jot_Loader *l)
{
    load_fill(l, load_claim(l));
    l->taken++;
}

/* ---- the threads ---- */

#ifndef JOT_NO_THREADS
static void *
load_run(void *arg)
{
    jot_Loader *l = arg;

    pthread_mutex_lock(&l->lock);
    while (!l->stop && !l->failed) {
        if (l->claimed - l->taken >= l->slots - 1) {
            pthread_cond_wait(&l->freed, &l->lock);
            continue;
        }
        LoadSlot *s = load_claim(l);
        pthread_mutex_unlock(&l->lock);
        load_fill(l, s);
        pthread_mutex_lock(&l->lock);
        s->full = true;
        l->failed = l->failed || s->fault.status;
        pthread_cond_signal(&l->filled);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* No thread to be had: the batches are made when they are asked for. Signals are the program's. */
static void
load_start(jot_Loader *l)
{
    sigset_t all, before;

    if (l->how.ahead < 0)
        return;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->filled, NULL);
    pthread_cond_init(&l->freed, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (l->threads < l->how.threads &&
           !pthread_create(&l->thread[l->threads], NULL, load_run, l))
        l->threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void
load_stop(jot_Loader *l)
{
    if (!l->threads || getpid() != l->process)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->freed);
    pthread_mutex_unlock(&l->lock);
    for (int k = 0; k < l->threads; k++)
        pthread_join(l->thread[k], NULL);
}

/* Gives back the slot that is held; true: the next one was there. */
static bool
load_take(jot_Loader *l)
{
    if (!l->threads) {
        load_now(l);
        return false;
    }
    pthread_mutex_lock(&l->lock);
    LoadSlot *s = &l->slot[l->taken++ % l->slots];
    pthread_cond_signal(&l->freed);
    bool ready = s->full;
    while (!s->full)
        pthread_cond_wait(&l->filled, &l->lock);
    s->full = false;
    pthread_mutex_unlock(&l->lock);
    return ready;
}
#else
static void
load_start(jot_Loader *l)
{
    (void)l;
}

static void
load_stop(jot_Loader *l)
{
    (void)l;
}

static bool
load_take(jot_Loader *l)
{
    load_now(l);
    return false;
}
#endif

/* ---- opened, asked, closed ---- */

static bool
load_field_ok(jot_Ctx *ctx, const jot_Field *field, int f, double pad)
{
    bool ok = (unsigned)field->dtype < JOT_DTYPES && field->rank >= field->varies &&
              field->rank < JOT_DATA_RANK;
    for (int d = 0; ok && d < field->rank; d++)
        ok = field->shape[d] >= 0;
    if (!ok)
        jot_raise(ctx, JOT_ESHAPE, "loader: field %d: a dtype, a rank of %d to %d and extents "
                  "asked, dtype %d and rank %d found", f, field->varies, JOT_DATA_RANK - 1,
                  (int)field->dtype, field->rank);
    else if (field->varies && !data_number((uint8_t[8]){0}, field->dtype, pad))
        ok = jot_ok(jot_raise(ctx, JOT_ERANGE, "loader: pad: 0 or a number of %s asked for field "
                              "%d, %g found", jot_dtype_name(field->dtype), f, pad));
    return ok;
}

static bool
load_how_ok(jot_Ctx *ctx, const jot_Source *s, const jot_Loading *how)
{
    bool ok = true;

    if (!s || !s->get || s->fields < 1 || s->fields > JOT_FIELDS)
        ok = jot_ok(jot_raise(ctx, JOT_EUSE, "loader: a source with get and 1 to %d fields asked, "
                              "%d fields found", JOT_FIELDS, s ? s->fields : 0));
    else if (how->batch < 1 || how->world < 1 || how->rank < 0 || how->rank >= how->world ||
             how->epoch < 0 || how->ahead > 1 << 16 || how->threads < 1 ||
             how->threads > LOAD_THREADS)
        ok = jot_ok(jot_raise(ctx, JOT_ERANGE, "loader: batch and world of at least 1, rank below "
                              "world, epoch of at least 0, 1 to %d threads asked, %lld, %d, %d, %d "
                              "and %d found", LOAD_THREADS, (long long)how->batch, how->world,
                              how->rank, how->epoch, how->threads));
    else if (!(how->from >= 0 && how->from <= how->to && how->to <= 1))
        ok = jot_ok(jot_raise(ctx, JOT_ERANGE, "loader: 0 <= from <= to <= 1 asked, %g and %g "
                              "found", how->from, how->to));
    else if (s->count < 0 && (how->shuffle || how->from != 0 || how->to != 0 || how->threads > 1))
        ok = jot_ok(jot_raise(ctx, JOT_EUSE, "loader: a stream is neither shuffled nor split, and "
                              "read by one thread"));
    for (int f = 0; ok && f < s->fields; f++)
        ok = load_field_ok(ctx, &s->field[f], f, how->pad);
    return ok;
}

/* Memory of the slots. False: none, or too much. */
static bool
load_slots(jot_Loader *l)
{
    l->slots = l->how.ahead < 0 ? 1 : l->how.ahead + 1 + l->how.threads;
    if ((uint64_t)l->how.batch > SIZE_MAX / sizeof *l->slot->sample ||
        !(l->slot = calloc((size_t)l->slots, sizeof *l->slot)))
        return false;
    for (int k = 0; k < l->slots; k++)
        if (!(l->slot[k].sample = malloc((size_t)l->how.batch * sizeof *l->slot->sample)))
            return false;
    for (int f = 0; f < l->source->fields; f++) {
        const jot_Field *field = &l->source->field[f];
        size_t room = jot_dtype_nbytes(field->dtype);
        for (int d = -1; d < field->rank; d++) {
            l->each[f] = d < 0 ? room : l->each[f] * (size_t)field->shape[d];
            size_t n = (size_t)(d < 0 ? l->how.batch : field->shape[d]);
            if (n && room > (size_t)PTRDIFF_MAX / n)
                return false;
            room *= n;
        }
        for (int k = 0; k < l->slots; k++) {
            LoadSlot *s = &l->slot[k];
            s->data[f] = malloc(room ? room : 1);
            if (field->varies)
                s->length[f] = malloc((size_t)l->how.batch * sizeof **s->length);
            if (!s->data[f] || (field->varies && !s->length[f]))
                return false;
        }
    }
    return true;
}

jot_Loader *
jot_loader_open(jot_Ctx *ctx, const jot_Source *source, const jot_Loading *how)
{
    static const jot_Loading plain = {0};
    jot_Loading h = how ? *how : plain;

    h.batch = h.batch ? h.batch : 1;
    h.world = h.world ? h.world : 1;
    h.ahead = h.ahead ? h.ahead : 2;
    h.threads = h.threads ? h.threads : 1;
    if (!load_how_ok(ctx, source, &h))
        return NULL;
    jot_Loader *l = calloc(1, sizeof *l);
    if (l) {
        l->ctx = ctx;
        l->source = source;
        l->how = h;
        l->epoch = h.epoch;
        l->process = getpid();
    }
    if (!l || !load_slots(l) || (source->count >= 0 && !load_part(l))) {
        jot_raise(ctx, JOT_EMEM, "loader: no memory for %d batches of %lld samples", h.ahead,
                  (long long)h.batch);
        jot_loader_close(l);
        return NULL;
    }
    l->shard = l->n / h.world;
    if (source->count >= 0 && l->shard < (h.last == JOT_LAST_DROPPED ? h.batch : 1)) {
        jot_raise(ctx, JOT_ERANGE, "loader: samples for a batch asked, %lld of %lld found in this "
                  "part", (long long)l->shard, (long long)source->count);
        jot_loader_close(l);
        return NULL;
    }
    load_start(l);
    return l;
}

const jot_Batch *
jot_loader_next(jot_Loader *l)
{
    if (!l)
        return NULL;
    if (getpid() != l->process) {
        jot_raise(l->ctx, JOT_EUSE, "loader: it belongs to the process that opened it");
        return NULL;
    }
    LoadSlot *s = l->taken ? &l->slot[(l->taken - 1) % l->slots] : NULL;
    const double now = data_seconds();
    bool ready = true;
    if (!s || !s->fault.status) { /* a failure stays */
        ready = load_take(l);
        s = &l->slot[(l->taken - 1) % l->slots];
    }
    const double then = data_seconds();
    l->began = l->waits.batches ? l->began : now;
    l->waits.seconds = then - l->began;
    if (s->fault.status) {
        jot_raise(l->ctx, s->fault.status, "%s", s->fault.message);
        return NULL;
    }
    l->waits.wait_seconds += ready ? 0 : then - now;
    if (s->end)
        return NULL;
    l->waits.batches++;
    l->waits.waits += !ready;
    return &s->batch;
}

int64_t
jot_loader_steps(const jot_Loader *l)
{
    if (!l || l->source->count < 0)
        return -1;
    return l->shard / l->how.batch +
           (l->how.last == JOT_LAST_SMALLER && l->shard % l->how.batch != 0);
}

jot_Var
jot_batch_var(const jot_Batch *batch, int field)
{
    jot_Ctx *ctx = batch ? batch->ctx : NULL;

    if (!batch || field < 0 || field >= batch->fields)
        return jot_raise(ctx, JOT_ERANGE, "batch_var: field 0 to %d asked, %d found",
                         batch ? batch->fields - 1 : 0, field);
    const jot_Tensor *t = &batch->field[field];
    return jot_array(ctx, t->dtype, t->shape, t->data);
}

jot_In
jot_batch_in(const jot_Batch *batch, int field)
{
    if (!batch || field < 0 || field >= batch->fields)
        return jot_in(NULL, 0);
    return jot_in(batch->field[field].data, batch->field[field].nbytes);
}

jot_Var
jot_batch_lengths(const jot_Batch *batch, int field)
{
    jot_Ctx *ctx = batch ? batch->ctx : NULL;

    if (!batch || field < 0 || field >= batch->fields || !batch->length[field])
        return jot_raise(ctx, JOT_ERANGE, "batch_lengths: a field that varies asked, %d found",
                         field);
    return jot_array(ctx, JOT_I64, JOT_SHAPE(batch->samples), batch->length[field]);
}

const jot_Waits *
jot_loader_waits(const jot_Loader *l)
{
    static const jot_Waits none = {0, 0, 0, 0};

    return l ? &l->waits : &none;
}

void
jot_loader_close(jot_Loader *l)
{
    if (!l)
        return;
    load_stop(l);
    for (int k = 0; l->slot && k < l->slots; k++) {
        for (int f = 0; f < JOT_FIELDS; f++) {
            free(l->slot[k].data[f]);
            free(l->slot[k].length[f]);
        }
        free(l->slot[k].sample);
    }
    free(l->slot);
    if (l->order != l->part)
        free(l->order);
    free(l->part);
    free(l);
}
#endif
