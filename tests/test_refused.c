/* tests/test_refused.c - a device that refuses: whichever of the requests to it fails, the program
 * is told or does without, no step is half done, what callbacks bring is right, and the context can
 * be used again. Skipped where there is no device.
 *
 *     test_refused [cuda]      on a stand-in (tests/fake_opencl.c, fake_cuda.c) the driver's own
 *                              functions fail, too, from jot_open on, and what they make is
 *                              counted
 *
 * Guards: backends/cuda/cuda.c, backends/cuda/graph.c, backends/host/driver.c. */
#include <dlfcn.h>
#include "backends/backend.h"
#include "tests/hooks.h"
#include "tests/test.h"

enum { N = 24, STEPS = 4, MOST = 2000 };
static const char *backend = "opencl";
static float want[STEPS + 3][N * N];

/* ---- a device that refuses one request ---------------------------------------------------- */

static const Device *real;
static int countdown, code; /* the request that is refused, from now on; what it says */

static bool
refused(void)
{
    return countdown > 0 && --countdown == 0;
}

static bool
refuse(jot_Ctx *c, const char *what)
{
    return jot_fail(c, (jot_Status)code, "%s: refused", what);
}

static void *
some_alloc(Backend *b, jot_Ctx *c, size_t nbytes)
{
    return refused() ? NULL : real->alloc(b, c, nbytes);
}

static bool
some_upload(Backend *b, jot_Ctx *c, void *mem, const void *from, size_t nbytes)
{
    return refused() ? refuse(c, "upload") : real->upload(b, c, mem, from, nbytes);
}

static bool
some_download(Backend *b, jot_Ctx *c, void *to, void *mem, size_t nbytes)
{
    return refused() ? refuse(c, "download") : real->download(b, c, to, mem, nbytes);
}

static bool
some_launch(Backend *b, jot_Ctx *c, const Launch *l)
{
    return refused() ? refuse(c, l->name) : real->launch(b, c, l);
}

static DeviceCopy *
some_fetch(Backend *b, jot_Ctx *c, void *mem, size_t nbytes)
{
    return refused() ? NULL : real->fetch(b, c, mem, nbytes);
}

static const void *
some_fetched(Backend *b, jot_Ctx *c, DeviceCopy *copy)
{
    return refused() ? (void)refuse(c, "fetch"), NULL : real->fetched(b, c, copy);
}

static bool
some_begin(Backend *b, jot_Ctx *c, DeviceReplay **replay)
{
    return refused() ? false : real->replay_begin(b, c, replay);
}

static bool
some_end(Backend *b, jot_Ctx *c, bool ok)
{
    bool no = refused();

    ok = real->replay_end(b, c, ok && !no);
    return no ? c->status ? false : refuse(c, "replay") : ok;
}

static Device some;

static void
let_refuse(jot_Ctx *c)
{
    real = c->backend->device;
    some = *real;
    some.alloc = some_alloc;
    some.upload = some_upload;
    some.download = some_download;
    some.launch = some_launch;
    some.fetch = real->fetch ? some_fetch : NULL;
    some.fetched = some_fetched;
    some.replay_begin = real->replay_begin ? some_begin : NULL;
    some.replay_end = some_end;
    c->backend->device = &some;
}

/* ---- a program ---------------------------------------------------------------------------- */

static Heap heap;

static jot_Ctx *
open_device(uint64_t nbytes)
{
    jot_Config config = {.backend = backend, .device_nbytes = nbytes, .give_back = 1};

    config.hooks.realloc = heap_realloc;
    config.hooks.ud = &heap;
    return jot_open(&config);
}

/* Each call brings the value after some step. */
static void
see(void *user, const jot_Tensor *value)
{
    int k = 0;

    while (k < STEPS + 3 && memcmp(value->data, want[k], value->nbytes))
        k++;
    *(bool *)user &= k < STEPS + 3;
}

static jot_Var
parameter(jot_Ctx *c)
{
    static float first[N * N];

    for (int i = 0; i < N * N; i++)
        first[i] = (float)(i % 13) * 0.125f;
    return jot_param(c, JOT_F32, JOT_SHAPE(N, N), first);
}

/* w = softmax(w x (w + literal)) + w / 2, in several kernels; fetched after each step. */
static void
steps(jot_Ctx *c, jot_Var w, int n, bool *right)
{
    for (int i = 0; i < n && !jot_error(c); i++) {
        jot_Var x;

        jot_push(c);
        x = jot_stop_fuse(jot_matmul(w, jot_offset(w, 0.25)));
        x = jot_stop_fuse(jot_softmax(x, 1));
        jot_assign(w, jot_add(x, jot_scale(w, 0.5)));
        if (right)
            jot_fetch(w, see, right);
        jot_run(c, JOT_NONE_VARS);
        jot_pop(c);
    }
}

static void
test_wanted(void)
{
    jot_Ctx *c = open_device(0);
    jot_Var w = parameter(c);

    for (int i = 0; i < STEPS + 3; i++) {
        CHECK(jot_copy(w, want[i], sizeof want[i]), "%s", jot_message(c));
        steps(c, w, 1, NULL);
    }
    CHECK(memcmp(want[STEPS], want[STEPS + 1], sizeof want[0]), "the steps differ");
    jot_close(c);
}

/* After some steps, one of which may have failed: w is what it was after a whole number of them,
 * and so is the next. */
static void
check_after(jot_Ctx *c, jot_Var w, bool right, const char *what, int n)
{
    static float got[N * N];
    jot_Status status = jot_error(c);
    int k = 0;

    CHECK(status == JOT_OK || status == JOT_EMEM || status == JOT_EDEVICE || status == JOT_ECOMPILE,
          "%s %d: %s", what, n, jot_message(c));
    CHECK(right, "%s %d: a callback brings something else", what, n);
    jot_clear(c);
    CHECK(jot_copy(w, got, sizeof got), "%s %d: %s", what, n, jot_message(c));
    while (k < STEPS + 1 && memcmp(want[k], got, sizeof got))
        k++;
    CHECK(k <= STEPS && (status || k == STEPS), "%s %d: as after no step (%d)", what, n, k);
    steps(c, w, 1, &right);
    CHECK(jot_copy(w, got, sizeof got) && jot_poll(c) && right && k <= STEPS
              && !memcmp(want[k + 1], got, sizeof got),
          "%s %d: the step after it: %s", what, n, jot_message(c));
}

/* nbytes: of the device, 0: all. */
static void
test_device(const char *what, uint64_t nbytes)
{
    int n, failures = 0;

    for (n = 1; n < MOST; n += test_many(3, 1)) {
        jot_Ctx *c = open_device(nbytes);
        jot_Var w = parameter(c);
        bool right = true, all;

        let_refuse(c);
        code = n % 2 ? JOT_EDEVICE : JOT_EMEM;
        countdown = n;
        steps(c, w, STEPS, &right);
        if (!jot_error(c))
            jot_poll(c);
        all = countdown > 0;
        countdown = 0;
        failures += jot_error(c) != JOT_OK;
        check_after(c, w, right, what, n);
        jot_close(c);
        CHECK(!heap.live, "%s %d: %zu bytes are left", what, n, heap.live);
        if (all)
            break;
    }
    CHECK(n > 12 && n < MOST && failures > 4, "%s: %d requests, %d failures", what, n, failures);
}

/* ---- a function with open extents --------------------------------------------------------- */

enum { ROWS = 8, COLUMNS = 5 };

/* x[i] + x[i + 1], of which there is none behind the last row; the sum of rows. */
static bool
build(jot_Ctx *c, const int64_t *rows, jot_Var *in, jot_Var *out, void *user)
{
    (void)user;
    in[0] = jot_array(c, JOT_F32, JOT_SHAPE(rows[0], COLUMNS), NULL);
    out[0] = jot_add(in[0], jot_reindex(in[0], JOT_SHAPE(rows[0], COLUMNS),
                                        JOT_INDEX("i0 + 1", "i1")));
    out[1] = jot_sum(in[0], JOT_DIMS(0));
    return jot_ok(out[0]) && jot_ok(out[1]);
}

/* Rows of k, 2 k, ...: is what comes right, or after a failure as it was? */
static bool
call_rows(jot_Func f, int n, int k, bool *ok)
{
    float x[ROWS * COLUMNS], y[ROWS * COLUMNS], sum[COLUMNS];
    bool right = true;

    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = (float)((i / COLUMNS + 1) * k), y[i] = sum[i % COLUMNS] = -1;
    *ok = jot_call_open(f, JOT_INTS(n), JOT_INS(JOT_IN(x, (size_t)n * COLUMNS * sizeof *x)),
                        JOT_OUTS(JOT_OUT(y, (size_t)n * COLUMNS * sizeof *y), JOT_OUT(sum, sizeof sum)));
    for (int i = 0; i < n * COLUMNS; i++)
        right &= y[i] == (!*ok ? -1 : x[i] + (i + COLUMNS < n * COLUMNS ? x[i + COLUMNS] : 0));
    for (int i = 0; i < COLUMNS; i++)
        right &= sum[i] == (float)(!*ok ? -1 : k * n * (n + 1) / 2);
    return right;
}

static void
test_open(void)
{
    const jot_Extent rows = {"rows", 2, ROWS, 0};
    const jot_Builder how = {1, &rows, 1, 2, build, NULL};
    int n, failures = 0;

    for (n = 1; n < MOST; n++) {
        jot_Ctx *c = open_device(0);
        jot_Func f = jot_compile_open(c, &how);
        bool ok = jot_func_ok(f), all;

        CHECK(ok && call_rows(f, ROWS, 1, &ok) && ok && !*jot_open_why(f), "open %d: %s %s", n,
              jot_message(c), jot_open_why(f));
        let_refuse(c);
        code = n % 2 ? JOT_EDEVICE : JOT_EMEM;
        countdown = n;
        CHECK(call_rows(f, 3, 2, &ok) && ok == !jot_error(c), "open %d: %s", n, jot_message(c));
        all = countdown > 0;
        countdown = 0;
        failures += !ok;
        jot_clear(c);
        CHECK(call_rows(f, 3, 3, &ok) && ok, "open %d, the call after it: %s", n, jot_message(c));
        jot_func_free(f);
        jot_close(c);
        CHECK(!heap.live, "open %d: %zu bytes are left", n, heap.live);
        if (all)
            break;
    }
    CHECK(n > 4 && n < MOST && failures > 2, "open: %d requests, %d failures", n, failures);
}

/* ---- the driver itself -------------------------------------------------------------------- */

/* The n-th call from now on, 0: none; and all after it, where the stand-in knows that. */
typedef void RefuseFn(long n, int code, int onwards);
typedef long LiveFn(void);
typedef const char *NameFn(void);

/* live: what was made and not given back; name: of the call that was refused. NULL: not known. */
static void
test_driver(RefuseFn *refuse_one, LiveFn *live, NameFn *name, bool onwards)
{
    static const int cuda[] = {2, 999, 2, 999, 2}; /* out of memory; unknown */
    static const int opencl[] = {-5, -34, -6, -4, -36}; /* resources, context, host memory, memory,
        queue */
    const int *codes = strcmp(backend, "cuda") ? opencl : cuda;
    int n, quiet = 0, failures = 0;

    for (n = 1; n < MOST && quiet < test_many(10, 40); n += test_many(4, 1)) {
        bool right = true;
        jot_Status opened;
        jot_Ctx *c;
        jot_Var w;

        refuse_one(n, codes[n % 5], onwards);
        c = open_device(0);
        opened = jot_error(c);
        if (opened) {
            CHECK(opened == JOT_EDEVICE && strstr(jot_message(c), backend), "open %d: %s", n,
                  jot_message(c));
        } else {
            w = parameter(c);
            steps(c, w, STEPS, &right);
            if (!jot_error(c))
                jot_poll(c);
            /* what was refused last was not asked for, or a binary of the cache, which is made again */
            quiet = jot_error(c) ? 0 : quiet + 1;
            failures += jot_error(c) != JOT_OK;
            refuse_one(0, 0, 0);
            check_after(c, w, right, name ? name() : "driver", n);
        }
        refuse_one(0, 0, 0);
        jot_close(c);
        CHECK(!heap.live, "driver %d: %zu bytes are left", n, heap.live);
        CHECK(!live || !live(), "%s %d: %ld objects are left", name ? name() : "driver", n, live());
    }
    CHECK(n > 60 && n < MOST && failures > test_many(3, 20), "%d requests, %d failures", n,
          failures);
}

/* Memory that is refused for another reason than that there is too little is told at once: nothing
 * is swapped for it. */
static void
test_memory(RefuseFn *refuse_one)
{
    bool cuda = !strcmp(backend, "cuda");
    int refused = 0;

    for (int n = 1; n < 5; n++)
        for (int little = 0; little < 2; little++) {
            jot_Ctx *c = open_device(0);
            const Device *device = c->backend->device;
            void *mem;

            refuse_one(n, cuda ? little ? 2 : 999 : little ? -4 : -34, 0);
            mem = device->alloc(c->backend, c, 256);
            refuse_one(0, 0, 0);
            CHECK(mem || little || jot_error(c) == JOT_EDEVICE, "%d: not told", n);
            CHECK(!mem || !jot_error(c), "%d: %s", n, jot_message(c));
            refused += !mem && !jot_error(c);
            if (mem)
                device->release(c->backend, c, mem, 256);
            jot_close(c);
        }
    CHECK(refused == 1, "too little memory: %d times", refused);
}

int
main(int argc, char **argv)
{
    RefuseFn *refuse_one = NULL;
    LiveFn *live = NULL;
    NameFn *name = NULL;
    void *driver;
    jot_Ctx *c;

    backend = argc > 1 ? argv[1] : backend;
    c = open_device(0);
    if (jot_error(c)) {
        SKIP("%s", jot_message(c));
        jot_close(c);
        return DONE();
    }
    jot_close(c);
    test_wanted();
    test_device("request", 0);
    test_device("request with little memory", 5 * N * N * sizeof(float));
    test_open();
    driver = dlopen(strcmp(backend, "cuda") ? "libOpenCL.so.1" : "libcuda.so.1", RTLD_NOW);
    if (driver) {
        *(void **)&refuse_one =
            dlsym(driver, strcmp(backend, "cuda") ? "fake_opencl_refuse" : "fake_refuse");
        *(void **)&live = dlsym(driver, "fake_opencl_live");
        *(void **)&name = dlsym(driver, "fake_opencl_refused");
    }
    if (refuse_one) {
        test_memory(refuse_one);
        test_driver(refuse_one, live, name, false);
    }
    if (refuse_one && live)
        test_driver(refuse_one, live, name, true); /* the device is gone */
    return DONE();
}
