/* tests/test_loader.c - samples into batches (data.h): which samples come, in which order, in what
 * shape; on a thread and without one; failures in their turn, an end at any time, fork, and how
 * often a program that computes waits.
 *
 * Guards: data/source.c data/folder.c data/loader.c */
#include "tests/test.h"
#include "tests/data_files.h"
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static jot_Ctx *ctx;

static int threads; /* 0: the default */
static jot_Loader *
open_loader(const jot_Source *s, jot_Loading how)
{
    how.threads = how.threads ? how.threads : threads;
    return jot_loader_open(ctx, s, &how);
}
#define LOADER(s, ...) open_loader(s, (jot_Loading){__VA_ARGS__})

/* Two fields: k itself as i64, and (2, 3) floats k, k, ... */
static jot_Source *
numbers(int64_t n)
{
    jot_Buffer *b[2] = {jot_buffer_make(JOT_I64, 1, &n), jot_buffer_make(JOT_F32, 3,
                        (int64_t[]){n, 2, 3})};
    for (int64_t k = 0; k < n; k++) {
        ((int64_t *)b[0]->data)[k] = k;
        for (int i = 0; i < 6; i++)
            ((float *)b[1]->data)[6 * k + i] = (float)k;
    }
    return jot_source_buffers(ctx, 2, b);
}

/* The numbers of an epoch into v; how many there are. Shapes and the second field are checked. */
static int
epoch_of(jot_Loader *l, int64_t *v, int64_t *batches)
{
    const jot_Batch *b;
    int n = 0, bad = 0;
    *batches = 0;
    while ((b = jot_loader_next(l))) {
        const float *f = b->field[1].data;
        bad += b->step != (*batches)++ || b->field[0].shape.n != 1 || b->field[1].shape.n != 3 ||
               b->field[1].shape.v[0] != b->samples || b->field[1].shape.v[2] != 3 ||
               b->field[1].nbytes != (size_t)b->samples * 24 || b->length[0];
        for (int64_t k = 0; k < b->samples; k++) {
            v[n] = ((const int64_t *)b->field[0].data)[k];
            for (int i = 0; i < 6; i++)
                bad += f[6 * k + i] != (float)v[n];
            n++;
        }
    }
    CHECK(!bad && !jot_error(ctx), "%d, %s", bad, jot_message(ctx));
    return n;
}

static uint64_t
digest(const int64_t *v, int n)
{
    uint64_t h = 1469598103934665603u;
    for (int k = 0; k < n; k++)
        h = (h ^ (uint64_t)v[k]) * 1099511628211u;
    return h;
}

static bool
is_permutation(const int64_t *v, int n, int64_t of)
{
    char *seen = calloc((size_t)of + 1, 1);
    bool ok = n == of;
    for (int k = 0; ok && k < n; k++) {
        ok = v[k] >= 0 && v[k] < of && !seen[v[k]];
        if (ok)
            seen[v[k]] = 1;
    }
    free(seen);
    return ok;
}

static void
test_order(int ahead)
{
    jot_Source *s = numbers(103);
    int64_t v[128], w[128], batches;
    jot_Loader *l = LOADER(s, .batch = 10, .ahead = ahead);
    for (int epoch = 0; epoch < 2; epoch++) {
        CHECK(epoch_of(l, v, &batches) == 103 && batches == 11 && jot_loader_steps(l) == 11, "all");
        for (int k = 0; k < 103; k++)
            CHECK(v[k] == k, "%d: %lld", k, (long long)v[k]);
    }
    jot_loader_close(l);
    l = LOADER(s, .batch = 10, .last = JOT_LAST_DROPPED, .ahead = ahead);
    CHECK(epoch_of(l, v, &batches) == 100 && batches == 10 && jot_loader_steps(l) == 10, "dropped");
    jot_loader_close(l);
    l = LOADER(s, .batch = 8, .shuffle = true, .seed = 7, .ahead = ahead);
    CHECK(is_permutation(v, epoch_of(l, v, &batches), 103), "shuffled");
    /* the same on every machine */
    CHECK(digest(v, 103) == 0xfa2f3485847520ecu, "order %#llx", (unsigned long long)digest(v, 103));
    CHECK(is_permutation(w, epoch_of(l, w, &batches), 103) && memcmp(v, w, 103 * 8), "again");
    jot_loader_close(l);
    /* an epoch's order is a function of seed and epoch */
    l = LOADER(s, .batch = 5, .shuffle = true, .seed = 7, .epoch = 1, .ahead = ahead);
    CHECK(epoch_of(l, v, &batches) == 103 && !memcmp(v, w, 103 * 8), "epoch 1");
    jot_loader_close(l);
    l = LOADER(s, .batch = 5, .shuffle = true, .seed = 8, .epoch = 1, .ahead = ahead);
    CHECK(epoch_of(l, v, &batches) == 103 && memcmp(v, w, 103 * 8), "another seed");
    jot_loader_close(l);
    jot_source_free(s);
}

/* Each of the 120 orders of 5 samples is as likely as any: chi-squared, 119 degrees; and the first
 * of 33, one more than a power of two, is any of them. */
static void
test_uniform(void)
{
    enum { MANY = 24000 };
    static int count[3125], first[33];
    int64_t v[64], batches;
    double chi = 0, other = 0;
    jot_Source *s = numbers(5), *t = numbers(33);
    jot_Loader *l = LOADER(s, .batch = 5, .shuffle = true, .seed = 1, .ahead = -1);
    for (int k = 0; k < MANY; k++) {
        epoch_of(l, v, &batches);
        count[(((v[0] * 5 + v[1]) * 5 + v[2]) * 5 + v[3]) * 5 + v[4]]++;
    }
    int orders = 0;
    for (int k = 0; k < 3125; k++)
        if (count[k])
            orders++, chi += pow(count[k] - MANY / 120.0, 2) / (MANY / 120.0);
    CHECK(orders == 120 && chi < 182, "%d orders, chi squared %g", orders, chi); /* 1 in 10^4 */
    jot_loader_close(l);
    l = LOADER(t, .batch = 33, .shuffle = true, .seed = 2, .ahead = -1);
    for (int k = 0; k < 3300; k++) {
        epoch_of(l, v, &batches);
        first[v[0]]++;
    }
    for (int k = 0; k < 33; k++)
        other += pow(first[k] - 100, 2) / 100;
    CHECK(other < 73, "chi squared %g", other); /* 32 degrees */
    jot_loader_close(l);
    jot_source_free(s);
    jot_source_free(t);
}

/* Parts do not meet and are all together; so are the shares of programs but for the rest. */
static void
test_parts(int ahead)
{
    jot_Source *s = numbers(103);
    int64_t v[128], batches;
    jot_Loader *l = LOADER(s, .batch = 4, .to = 0.75, .split_seed = 3, .ahead = ahead);
    jot_Loader *m = LOADER(s, .batch = 4, .from = 0.75, .to = 1, .split_seed = 3, .shuffle = true,
                           .ahead = ahead);
    int n = epoch_of(l, v, &batches);
    CHECK(n == 77, "%d", n);
    CHECK(is_permutation(v, n + epoch_of(m, v + n, &batches), 103), "parts");
    jot_loader_close(l);
    jot_loader_close(m);
    n = 0;
    for (int rank = 0; rank < 4; rank++) {
        l = LOADER(s, .batch = 7, .rank = rank, .world = 4, .shuffle = true, .to = 100 / 103.0,
                   .ahead = ahead);
        int own = epoch_of(l, v + n, &batches);
        CHECK(own == 25 && batches == 4, "rank %d: %d in %lld", rank, own, (long long)batches);
        n += own;
        jot_loader_close(l);
    }
    CHECK(is_permutation(v, n, 100), "shares");
    jot_source_free(s);
}

/* ---- sources of one's own ---- */

typedef struct { int64_t end, bad; int delay_us; jot_Status status; } Own;

static void
nap(int us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    while (us && nanosleep(&t, &t) && errno == EINTR)
        ;
}

/* Field 0: k; field 1: k % 5 rows of (2) shorts k. */
static bool
own_get(void *user, int64_t k, void *const *out, int64_t *length, jot_Fault *fault)
{
    const Own *own = user;
    nap(own->delay_us);
    if (k == own->bad)
        jot_fault(fault, own->status, "sample %lld is bad", (long long)k);
    if (k == own->bad || k >= own->end)
        return false;
    *(int64_t *)out[0] = k;
    length[1] = k % 5;
    for (int64_t i = 0; i < 2 * length[1]; i++)
        ((int16_t *)out[1])[i] = (int16_t)k;
    return true;
}

static jot_Source
own_source(Own *own, int64_t count)
{
    return (jot_Source){count, 2, {{JOT_I64, 0, {0}, false}, {JOT_I16, 2, {4, 2}, true}}, own_get,
                        own, NULL};
}

static void
test_varies(int ahead)
{
    Own own = {100, -1, 0, JOT_OK};
    jot_Source s = own_source(&own, 10);
    jot_Loader *l = LOADER(&s, .batch = 4, .pad = -7, .ahead = ahead);
    static const int64_t longest[] = {3, 4, 4};
    const jot_Batch *b;
    int64_t k = 0;
    jot_push(ctx);
    for (int step = 0; (b = jot_loader_next(l)); step++) {
        const int16_t *v = b->field[1].data;
        CHECK(b->field[1].shape.v[1] == longest[step] && b->field[1].shape.v[2] == 2, "%d: %lld",
              step, (long long)b->field[1].shape.v[1]);
        for (int64_t row = 0; row < b->samples; row++, k++) {
            CHECK(b->length[1][row] == k % 5, "length of %lld", (long long)k);
            for (int64_t i = 0; i < 2 * longest[step]; i++)
                CHECK(*v++ == (i < k % 5 * 2 ? k : -7), "sample %lld, element %lld", (long long)k,
                      (long long)i);
        }
        jot_Var x = jot_batch_var(b, 1), n = jot_batch_lengths(b, 1);
        CHECK(jot_rank(x) == 3 && jot_dtype(x) == JOT_I16 && jot_extent(x, 1) == longest[step] &&
              jot_item_int(jot_sum(n, JOT_ALL_DIMS)) == (step ? 7 : 6) &&
              jot_dtype(n) == JOT_I64, "%s",
              jot_message(ctx));
        CHECK(jot_batch_in(b, 1).data == b->field[1].data && !jot_batch_in(b, 2).data &&
              jot_batch_in(b, 1).nbytes == (size_t)(b->samples * longest[step] * 4), "in place");
        RAISED(jot_ok(jot_batch_lengths(b, 0)), JOT_ERANGE, "a field that varies asked, 0");
        RAISED(jot_ok(jot_batch_var(b, 2)), JOT_ERANGE, "field 0 to 1 asked, 2");
    }
    CHECK(k == 10, "%lld", (long long)k);
    jot_pop(ctx);
    jot_loader_close(l);
    s.field[1].shape[0] = 3;
    l = LOADER(&s, .batch = 4, .ahead = ahead);
    CHECK(jot_loader_next(l), "the first");
    RAISED(jot_loader_next(l), JOT_ERANGE, "sample 4: field 1: a length of 0 to 3 asked, 4 found");
    jot_loader_close(l);
}

static void
test_stream(int ahead)
{
    Own own = {10, -1, 0, JOT_OK};
    jot_Source s = own_source(&own, -1);
    for (int dropped = 0; dropped < 2; dropped++) {
        jot_Loader *l = LOADER(&s, .batch = 4, .last = dropped, .ahead = ahead);
        CHECK(jot_loader_steps(l) == -1, "not known");
        for (int epoch = 0; epoch < 2; epoch++) {
            int n = 0, steps = 0;
            for (const jot_Batch *b; (b = jot_loader_next(l)); steps++) {
                CHECK(b->epoch == epoch && ((const int64_t *)b->field[0].data)[0] == n, "in order");
                n += (int)b->samples;
            }
            CHECK(n == (dropped ? 8 : 10) && steps == (dropped ? 2 : 3) && !jot_error(ctx), "%d, "
                  "%d", n, steps);
        }
        jot_loader_close(l);
    }
    jot_Loader *l = LOADER(&s, .batch = 3, .rank = 1, .world = 3, .ahead = ahead);
    const jot_Batch *b = jot_loader_next(l);
    CHECK(b && b->samples == 3 && ((const int64_t *)b->field[0].data)[2] == 7, "a share");
    jot_loader_close(l);
    RAISED(LOADER(&s, .shuffle = true), JOT_EUSE, "a stream is neither shuffled nor split");
    RAISED(LOADER(&s, .threads = 2), JOT_EUSE, "read by one thread");
}

/* A failure comes after the batches before it, and stays. */
static void
test_failure(int ahead)
{
    Own own = {100, 13, 0, JOT_EIO};
    jot_Source s = own_source(&own, 20);
    jot_Loader *l = LOADER(&s, .batch = 5, .ahead = ahead);
    CHECK(jot_loader_next(l) && jot_loader_next(l) && !jot_error(ctx), "two batches");
    RAISED(jot_loader_next(l), JOT_EIO, "sample 13 is bad");
    RAISED(jot_loader_next(l), JOT_EIO, "sample 13 is bad");
    jot_loader_close(l);
    own.status = JOT_OK;
    l = LOADER(&s, .batch = 20, .ahead = ahead);
    RAISED(jot_loader_next(l), JOT_EIO, "sample 13: its source failed and gave no reason");
    jot_loader_close(l);
}

static void
test_refused(void)
{
    jot_Source *s = numbers(10), none = *s, own = *s;
    RAISED(LOADER(NULL, .batch = 1), JOT_EUSE, "a source with get");
    RAISED(LOADER(s, .batch = -1), JOT_ERANGE, "batch and world of at least 1");
    RAISED(LOADER(s, .world = 2, .rank = 2), JOT_ERANGE, "rank below world");
    RAISED(LOADER(s, .from = 0.5), JOT_ERANGE, "0 <= from <= to <= 1 asked, 0.5 and 0 found");
    RAISED(LOADER(s, .batch = 11, .last = JOT_LAST_DROPPED), JOT_ERANGE, "10 of 10 found");
    RAISED(LOADER(s, .batch = INT64_MAX / 2), JOT_EMEM, "no memory");
    none.count = 0;
    RAISED(LOADER(&none, .batch = 1), JOT_ERANGE, "0 of 0 found");
    own.field[0].rank = 8;
    RAISED(LOADER(&own, .batch = 1), JOT_ESHAPE, "field 0");
    own.field[0] = (jot_Field){JOT_F16, 1, {3}, true};
    RAISED(LOADER(&own, .pad = 1), JOT_ERANGE, "pad: 0 or a number of f16 asked for field 0");
    for (int k = 0; k < 4; k++) {
        static const double none_of[] = {-1, 256, 0.5, NAN};
        own.field[0].dtype = JOT_U8;
        RAISED(LOADER(&own, .pad = none_of[k]), JOT_ERANGE, "a number of u8 asked for field 0");
    }
    own.field[0].dtype = JOT_I64;
    RAISED(LOADER(&own, .pad = 0x1p63), JOT_ERANGE, "a number of i64");
    own.count = INT64_MAX;
    RAISED(LOADER(&own, .batch = 1), JOT_EMEM, "no memory");
    own.count = (int64_t)1 << 61; /* so many numbers of 8 bytes are 0 bytes */
    RAISED(LOADER(&own, .batch = 1), JOT_EMEM, "no memory");
    jot_source_free(s);
    CHECK(!jot_loader_next(NULL) && jot_loader_steps(NULL) == -1 &&
          !jot_loader_waits(NULL)->batches, "NULL");
    jot_loader_close(NULL);
    jot_source_free(NULL);
    RAISED(jot_ok(jot_batch_var(NULL, 0)), JOT_OK, "");
    jot_Buffer *b[9] = {jot_read(files_path("none"))};
    RAISED(jot_source_buffers(ctx, 1, b), JOT_EIO, "none: No such file");
    b[0] = jot_buffer_make(JOT_U8, 1, (int64_t[]){3});
    b[1] = jot_buffer_make(JOT_U8, 1, (int64_t[]){4});
    RAISED(jot_source_buffers(ctx, 2, b), JOT_ESHAPE, "buffer 1: 3 rows asked, as buffer 0");
    for (int k = 0; k < 9; k++)
        b[k] = jot_buffer_make(JOT_U8, 1, (int64_t[]){3});
    RAISED(jot_source_buffers(ctx, 9, b), JOT_ERANGE, "1 to 8 buffers asked, 9 found");
    RAISED(jot_source_windows(ctx, jot_buffer_make(JOT_U8, 1, (int64_t[]){3}), 3, 1), JOT_ERANGE,
           "1 <= length < n");
    RAISED(jot_source_windows(ctx, jot_buffer_make(JOT_U8, 1, (int64_t[]){3}), 1, 0), JOT_ERANGE,
           "step >= 1 asked, rank 1, n 3, length 1 and step 0 found");
    RAISED(jot_source_windows(ctx, jot_buffer_make(JOT_U8, 2, (int64_t[]){3, 1}), 1, 1), JOT_ERANGE,
           "rank 2, n 3");
    jot_Var bad = {ctx, 0, 0};
    RAISED(jot_source_vars(ctx, JOT_VARS(bad)), JOT_EHANDLE, "source_vars");
}

static void
test_windows(void)
{
    jot_Buffer *b = jot_buffer_make(JOT_I32, 1, (int64_t[]){11});
    for (int k = 0; k < 11; k++)
        ((int32_t *)b->data)[k] = k;
    jot_Source *s = jot_source_windows(ctx, b, 4, 3);
    CHECK(s && s->count == 3, "%lld", s ? (long long)s->count : -1);
    jot_Loader *l = LOADER(s, .batch = 3);
    const jot_Batch *batch = jot_loader_next(l);
    for (int row = 0; batch && row < 3; row++)
        for (int k = 0; k < 4; k++)
            CHECK(((const int32_t *)batch->field[0].data)[4 * row + k] == 3 * row + k &&
                  ((const int32_t *)batch->field[1].data)[4 * row + k] == 3 * row + k + 1,
                  "%d", row);
    CHECK(batch, "%s", jot_message(ctx));
    jot_loader_close(l);
    jot_source_free(s);
    jot_Var x = jot_arange(ctx, JOT_F64, 0, 0.5, 6), y = jot_ge(x, jot_scalar(ctx, JOT_F64, 1));
    s = jot_source_vars(ctx, JOT_VARS(x, y));
    l = LOADER(s, .batch = 6);
    batch = jot_loader_next(l);
    CHECK(batch && jot_item_int(jot_all(jot_eq(jot_batch_var(batch, 1), y), JOT_ALL_DIMS)) &&
          jot_item(jot_sum(jot_batch_var(batch, 0), JOT_ALL_DIMS)) == 7.5, "%s", jot_message(ctx));
    jot_loader_close(l);
    jot_source_free(s);
}

static void
put_image(const char *folder, const char *name, int h, int w, int value)
{
    char path[100];
    jot_Var x = jot_full(ctx, JOT_U8, JOT_SHAPE(3, h, w), value);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK(jot_write_png(x, files_path(path)), "%s", jot_message(ctx));
}

static void
test_folder(void)
{
    if (*jot_reads("png")) {
        SKIP("%s", jot_reads("png"));
        return;
    }
    mkdir(files_path("f"), 0777);
    RAISED(jot_source_folder(ctx, files_path("f"), 0, 0, 0, NULL), JOT_EIO, "none found");
    mkdir(files_path("f/b"), 0777), mkdir(files_path("f/a"), 0777), mkdir(files_path("f/c"), 0777);
    put_image("f/b", "2.png", 4, 6, 2);
    put_image("f/b", "1.PNG", 4, 6, 1);
    put_image("f/a", "9.png", 8, 9, 9);
    files_put("f/a/notes.txt", "x", 1);
    files_put("f/b/.hidden.png", "x", 1);
    jot_Vocab *classes;
    jot_Source *s = jot_source_folder(ctx, files_path("f"), 1, 4, 5, &classes);
    CHECK(s && s->count == 3 && jot_vocab_size(classes) == 3 && jot_vocab_find(classes, "b") == 1,
          "%s", jot_message(ctx));
    jot_Loader *l = LOADER(s, .batch = 3);
    const jot_Batch *b = jot_loader_next(l);
    static const int value[] = {9, 1, 2}, label[] = {0, 1, 1};
    for (int k = 0; b && k < 3; k++) {
        CHECK(((const int64_t *)b->field[1].data)[k] == label[k], "label %d", k);
        for (int i = 0; i < 20; i++)
            CHECK(((const uint8_t *)b->field[0].data)[20 * k + i] == value[k], "image %d", k);
    }
    CHECK(b && b->field[0].shape.n == 4 && b->field[0].shape.v[0] == 3 &&
          b->field[0].shape.v[1] == 1 && b->field[0].shape.v[2] == 4 &&
          b->field[0].shape.v[3] == 5, "%s", jot_message(ctx));
    files_put("f/b/2.png", "\211PNG\r\n\032\nno", 10);
    CHECK(!jot_loader_next(l) && !jot_error(ctx), "the end");
    jot_loader_close(l);
    l = LOADER(s, .batch = 3);
    RAISED(jot_loader_next(l), JOT_EIO, "f/b/2.png: byte");
    jot_loader_close(l);
    jot_vocab_free(classes);
    jot_source_free(s);
    mkdir(files_path("h"), 0777), mkdir(files_path("h/a"), 0777);
    put_image("h/a", "0000.png", 1, 1, 1);
    jot_Buffer *one = jot_read_bytes(files_path("h/a/0000.png"));
    for (int k = 1; k < 200; k++) {
        char name[32];
        sprintf(name, "h/a/%04d.png", k);
        files_put(name, one->data, one->nbytes);
    }
    jot_buffer_free(one);
    s = jot_source_folder(ctx, files_path("h"), 1, 0, 0, NULL);
    CHECK(s && s->count == 200, "%s", jot_message(ctx));
    jot_source_free(s);
    RAISED(jot_source_folder(ctx, files_path("g"), 0, 0, 0, NULL), JOT_EIO, "g: No such");
}

/* ---- the thread ---- */

/* A program that computes longer than a batch takes waits for the first alone. */
static void
test_waits(void)
{
    Own own = {1000, -1, 300, JOT_OK};
    jot_Source s = own_source(&own, 60);
    jot_Loader *l = LOADER(&s, .batch = 3, .ahead = 2);
    while (jot_loader_next(l))
        nap(6000);
    const jot_Waits *w = jot_loader_waits(l);
#ifndef JOT_NO_THREADS
    CHECK(w->batches == 20 && w->waits <= 4, "%lld of %lld batches were waited for",
          (long long)w->waits, (long long)w->batches);
    CHECK(w->wait_seconds < 0.5 * w->seconds, "%g of %g s", w->wait_seconds, w->seconds);
#endif
    jot_loader_close(l);
    own.delay_us = 4000; /* three threads at it: a batch each 12 ms, of which a third is left */
    l = LOADER(&s, .batch = 3, .ahead = 3, .threads = 3);
    while (jot_loader_next(l))
        nap(8000);
    w = jot_loader_waits(l);
#ifndef JOT_NO_THREADS
    CHECK(w->batches == 20 && w->waits <= 6, "three threads: %lld of %lld batches "
          "were waited for", (long long)w->waits, (long long)w->batches);
#endif
    jot_loader_close(l);
    own.delay_us = 2000; /* and one that does not waits for each: its time is the source's */
    l = LOADER(&s, .batch = 3, .ahead = 2);
    while (jot_loader_next(l))
        ;
    w = jot_loader_waits(l);
    CHECK(w->waits >= 15 && w->wait_seconds > 0.8 * w->seconds, "%lld waits, %g of %g s",
          (long long)w->waits, w->wait_seconds, w->seconds);
    jot_loader_close(l);
}

/* Ended after any number of batches, at any moment. */
static void
test_stop(void)
{
    Own own = {1000, -1, 0, JOT_OK};
    for (int round = 0; round < 60; round++) {
        own.delay_us = round % 3 * 50;
        jot_Source s = own_source(&own, 40);
        jot_Loader *l = LOADER(&s, .batch = 3, .ahead = 1 + round % 5);
        for (int k = 0; k < round; k++)
            jot_loader_next(l);
        nap(round % 7 * 40);
        jot_loader_close(l);
    }
    CHECK(!jot_error(ctx), "%s", jot_message(ctx));
}

static void
test_fork(void)
{
    Own own = {1000, -1, 100, JOT_OK};
    jot_Source s = own_source(&own, 40);
    jot_Loader *l = LOADER(&s, .batch = 3);
    CHECK(jot_loader_next(l), "%s", jot_message(ctx));
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        bool ok = !jot_loader_next(l) && jot_error(ctx) == JOT_EUSE;
        jot_loader_close(l); /* its memory; the thread is the parent's */
        _exit(!ok);
    }
    int status = 1;
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "the child: %d", status);
    CHECK(jot_loader_next(l), "the parent goes on: %s", jot_message(ctx));
    jot_loader_close(l);
}

/* Signals are not the thread's, and two loaders share a source. */
static void
test_two(void)
{
    jot_Source *s = numbers(500);
    jot_Loader *l = LOADER(s, .batch = 7, .shuffle = true), *m = LOADER(s, .batch = 11);
    int64_t v[600], batches;
    CHECK(is_permutation(v, epoch_of(l, v, &batches), 500) &&
          is_permutation(v, epoch_of(m, v, &batches), 500), "both");
    jot_loader_close(l);
    jot_loader_close(m);
    jot_source_free(s);
}

/* Drawn settings: an epoch has as many samples of the part and the share as it should, each once,
 * in whole batches but for the last, the same with a thread, with several and without. */
static void
test_drawn(void)
{
    uint64_t state = 88172645463325252u;
    for (int round = 0; round < 300; round++) {
        int64_t d[10], v[128], w[128], batches, n = 0;
        for (int k = 0; k < 10; k++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            d[k] = (int64_t)(state >> 40);
        }
        int64_t count = 1 + d[0] % 100, lo = d[1] % 5, hi = lo + 1 + d[2] % (5 - lo);
        jot_Loading how = {.batch = 1 + d[3] % 12, .last = d[4] % 2, .shuffle = d[5] % 2,
                           .seed = (uint64_t)d[5], .from = (double)lo / 5, .to = (double)hi / 5,
                           .split_seed = (uint64_t)d[6] % 3, .world = 1 + (int)(d[7] % 4),
                           .epoch = (int)(d[8] % 3)};
        int64_t part = (int64_t)(how.to * (double)count) - (int64_t)(how.from * (double)count);
        int64_t share = part / how.world;
        int64_t own = how.last ? share / how.batch * how.batch : share;
        jot_Source *s = numbers(count);
        for (how.rank = 0; how.rank < how.world; how.rank++) {
            how.ahead = -1;
            jot_Loader *l = jot_loader_open(ctx, s, &how);
            if (!own) {
                RAISED(l, JOT_ERANGE, "samples for a batch asked");
                break;
            }
            int k = epoch_of(l, v + n, &batches);
            CHECK(k == own && batches == (own + how.batch - 1) / how.batch &&
                  batches == jot_loader_steps(l), "round %d: %d, %lld", round, k,
                  (long long)batches);
            jot_loader_close(l);
            how.ahead = 1 + (int)(d[9] % 4), how.threads = 1 + (int)(d[9] / 4 % 4);
            l = jot_loader_open(ctx, s, &how);
            for (int again = 0; again < 2; again++) /* the second epoch follows upon the first */
                CHECK(epoch_of(l, again ? w : v + n, &batches) == own, "round %d", round);
            jot_loader_close(l);
            how.ahead = -1, how.threads = 0, how.epoch++;
            l = jot_loader_open(ctx, s, &how);
            int64_t x[128];
            CHECK(epoch_of(l, x, &batches) == own && !memcmp(x, w, (size_t)own * sizeof *x),
                  "round %d: epoch %d", round, how.epoch);
            jot_loader_close(l);
            how.epoch--;
            n += own;
        }
        char seen[128] = {0};
        int twice = 0;
        for (int64_t k = 0; k < n; k++)
            twice += seen[v[k]]++ > 0;
        CHECK(!twice && n <= part, "round %d: %d twice", round, twice);
        jot_source_free(s);
    }
}

int
main(void)
{
    ctx = jot_open(&(jot_Config){.backend = "interp"});
    for (int ahead = -1; ahead < 4; ahead += 1 + (ahead > 0))
        for (threads = 0; threads < 6; threads += 5) {
            test_order(ahead);
            test_parts(ahead);
            test_varies(ahead);
            test_failure(ahead);
            if (!threads)
                test_stream(ahead);
        }
    threads = 0;
    test_uniform();
    test_drawn();
    test_refused();
    test_windows();
    test_folder();
    test_waits();
    for (threads = 0; threads < 4; threads += 3) {
        test_stop();
        test_fork();
        test_two();
    }
    jot_close(ctx);
    files_close();
    return DONE();
}
