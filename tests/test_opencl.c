/* tests/test_opencl.c - what only a device has: memory of its own that runs out, copies that are
 * made when they are asked for, long sums in two launches, atomic scatters, the cache of binaries,
 * the choice of a device. Skipped where there is no OpenCL device; PoCL will do. Less memory than a
 * plan wants: tests/test_swap.c.
 *
 *     test_opencl [cuda]
 *
 * Guards: backends/cuda/cuda.c, backends/cuda/graph.c, backends/cuda/nvrtc.c,
 * backends/host/driver.c, backends/opencl/find.c,
 * backends/opencl/opencl.c, plan/device/device.c. */
#include <dirent.h>
#include <pthread.h>
#include <unistd.h>
#include "backends/host/host.h"
#include "plan/parts.h"
#include "tests/on_device.h"

/* Results of a program on the device, against the interpreter; twice, to the same bits. */
typedef jot_Var Program(jot_Ctx *c);

static jot_Var
long_sum(jot_Ctx *c)
{
    return jot_sum(ramp(c, 300007), JOT_ALL_DIMS);
}

static jot_Var
long_columns(jot_Ctx *c)
{
    return jot_sum(jot_reshape(ramp(c, 20000 * 20), JOT_SHAPE(20000, 20)), JOT_DIMS(0));
}

static jot_Var
rows(jot_Ctx *c)
{
    return jot_softmax(jot_reshape(ramp(c, 30 * 700), JOT_SHAPE(30, 700)), 1);
}

static jot_Var
both_ways(jot_Ctx *c)
{
    jot_Var x = jot_reshape(ramp(c, 90 * 70), JOT_SHAPE(90, 70));

    return jot_add(jot_mul(jot_mean(x, JOT_DIMS(1)), jot_max(x, JOT_DIMS(1))),
                   jot_sum(x, JOT_ALL_DIMS));
}

static jot_Var
product(jot_Ctx *c)
{
    jot_Var x = jot_reshape(ramp(c, 33 * 50), JOT_SHAPE(33, 50));

    return jot_matmul(x, jot_transpose(x, JOT_INTS(1, 0)));
}

static void
test_values(const char *name, Program *program, int launches_least)
{
    jot_Ctx *c = open_device(0, NULL), *again = open_device(0, NULL), *oracle;
    jot_Config config = {.backend = "interp"};
    jot_Var got, same, want;
    const float *g, *s, *w;
    int64_t i, bad = 0, n;

    oracle = jot_open(&config);
    got = program(c);
    same = program(again);
    want = program(oracle);
    n = jot_nelem(want);
    g = jot_data(got);
    s = jot_data(same);
    w = jot_data(want);
    CHECK(g && s && w, "%s: %s", name, jot_message(c));
    for (i = 0; g && s && w && i < n; i++)
        bad += !(fabs((double)g[i] - (double)w[i]) <= 1e-5 * (1 + fabs((double)w[i])) * 100);
    CHECK(!bad, "%s: %d of %d elements", name, (int)bad, (int)n);
    CHECK(g && s && !memcmp(g, s, (size_t)n * sizeof *g), "%s: the same bits", name);
    CHECK((int)jot_stats(c).kernels_run >= launches_least, "%s: %d launches", name,
          (int)jot_stats(c).kernels_run);
    jot_close(c);
    jot_close(again);
    jot_close(oracle);
}

/* A tree of fixed shape, and two launches where the sum is long: the same bits each time. */
static void
test_same_bits(void)
{
    static const char *const in[] = {"jot_team_add_f32(", ":1t", "chunk:1g"};
    jot_Config config = {.backend = backend, .dump = "sc", .hooks = {.log = keep_log}};
    jot_Ctx *c = jot_open(&config);
    float first = 0, sum;
    jot_Var x = ramp(c, 300007);

    forget_log();
    for (int i = 0; i < 20; i++) {
        jot_push(c);
        sum = (float)jot_item(jot_sum(jot_square(x), JOT_ALL_DIMS));
        first = i ? first : sum;
        CHECK(!memcmp(&sum, &first, sizeof sum), "run %d: %.9g and %.9g", i, (double)sum,
              (double)first);
        jot_pop(c);
    }
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        CHECK(strstr(logged, in[i]), "'%s' in\n%s", in[i], logged);
    jot_close(c);
}

/* The least element, stored by one item of a group, and behind it a loop of all items, which share
 * the gradient out among those that are as small. PoCL 3.1 lost the store. */
static void
test_least(int n)
{
    jot_Ctx *c = open_device(0, NULL);
    double data[300];
    jot_Var x, out[2];
    const double *least, *grad;

    for (int i = 0; i < n; i++)
        data[i] = i * 37 % 11 - 2;
    x = jot_array(c, JOT_F64, JOT_SHAPE(n), data);
    out[0] = jot_min(x, JOT_ALL_DIMS);
    jot_grad(out[0], JOT_VARS(x), &out[1]);
    CHECK(jot_run(c, jot_vars(2, out)), "%d: %s", n, jot_message(c));
    least = jot_data(out[0]);
    grad = jot_data(out[1]);
    CHECK(least && *least == -2, "%d: least %g", n, least ? *least : 0);
    for (int i = 0; grad && i < n; i++)
        CHECK(fabs(grad[i] - (data[i] == -2) * 1.0 / ((n + 10) / 11)) < 1e-15,
              "%d: gradient %d", n, i);
    jot_close(c);
}

/* Integers: any order of the atomic operators gives the same sum; small elements share a word. */
static void
test_scatter(jot_DType dtype)
{
    enum { N = 5000, BINS = 7 };
    static int32_t bin[N];
    jot_Config of = {.backend = backend, .dump = "c", .hooks = {.log = keep_log}};
    jot_Ctx *c = jot_open(&of);
    jot_Config config = {.backend = "interp"};
    jot_Ctx *oracle = jot_open(&config);
    jot_Var got[2];
    jot_Ctx *const at[2] = {c, oracle};
    char word[40];
    int i;

    forget_log();

    for (i = 0; i < N; i++)
        bin[i] = (i * 31) % BINS;
    for (i = 0; i < 2; i++) {
        jot_Var b = jot_array(at[i], JOT_I32, JOT_SHAPE(N), bin);
        jot_Var x = jot_cast(jot_mod(b, jot_full_int(at[i], JOT_I32, JOT_SHAPE(), 3)), dtype);

        got[i] = jot_reindex_reduce_ex(JOT_MAX, x, JOT_SHAPE(BINS), JOT_INDEX("@e0(i0)"),
                                       (jot_Strs){0}, JOT_VARS(b));
    }
    CHECK(jot_data(got[0]), "scatter of %s: %s", jot_dtype_name(dtype), jot_message(c));
    snprintf(word, sizeof word, "jot_atomic_maximum_%s(", jot_dtype_name(dtype));
    CHECK(strstr(logged, word), "'%s' in\n%s", word, logged);
    CHECK(jot_data(got[0]) && jot_data(got[1])
              && !memcmp(jot_data(got[0]), jot_data(got[1]), BINS * jot_dtype_nbytes(dtype)),
          "scatter of %s", jot_dtype_name(dtype));
    jot_close(c);
    jot_close(oracle);
}

static void
test_out_of_memory(void)
{
    jot_Ctx *c = open_device((uint64_t)1 << 20, NULL);
    jot_Var small = ramp(c, 1000), large = ramp(c, 400000), sum;

    sum = jot_sum(jot_exp(large), JOT_ALL_DIMS);
    CHECK(!jot_data(sum) && jot_error(c) == JOT_EMEM && strstr(jot_message(c), "run: exp sum: ")
              && strstr(jot_message(c), "is out of memory: 1600000 bytes asked for, 0 in use; the "
                                        "limit (jot_Config.device_nbytes, JOT_DEVICE_MEMORY) is "
                                        "1048576"),
          "1.6 MB on 1 MB: %s", jot_message(c));
    jot_clear(c);
    CHECK(fabs(jot_item(jot_sum(jot_mul(small, small), JOT_ALL_DIMS)) - 94.) < 10, "afterwards: %s",
          jot_message(c));
    CHECK(!jot_error(c), "%s", jot_message(c));
    jot_close(c);
}

/* What the driver itself refuses: more bytes than there are. */
static void
test_refused_by_driver(void)
{
    jot_Ctx *c = open_device(0, NULL);
    jot_Var large = jot_exp(jot_uniform(c, JOT_F32, JOT_SHAPE((int64_t)1 << 30, 1 << 26)));

    CHECK(!jot_run(c, JOT_VARS(large)) && jot_error(c) == JOT_EMEM
              && strstr(jot_message(c), "out of memory: 288230376151711744 bytes asked for, 0 in "
                                        "use") && !strstr(jot_message(c), "limit"),
          "2^58 bytes: %s", jot_message(c));
    jot_clear(c);
    CHECK(jot_item(jot_sum(ramp(c, 3), JOT_ALL_DIMS)) < 0 && !jot_error(c), "afterwards: %s",
          jot_message(c));
    jot_close(c);
}

/* ---- the pool ----------------------------------------------------------------------------- */

static const Device *driver;
static int nallocs;
static struct { void *mem; size_t offset; } used[64];
static int nused;

static void *
noted_alloc(Backend *b, jot_Ctx *c, size_t nbytes)
{
    nallocs++;
    return driver->alloc(b, c, nbytes);
}

static bool
noted_launch(Backend *b, jot_Ctx *c, const Launch *l)
{
    for (int i = 0; i < l->nbufs && nused < 64; i++, nused++) {
        used[nused].mem = l->mem[i];
        used[nused].offset = l->offset[i];
    }
    return driver->launch(b, c, l);
}

/* Temporaries are one piece of memory, each at the plan's offset; a step that comes again asks the
 * driver for nothing. */
static void
test_pool(void)
{
    enum { N = 5000, DEPTH = 5 };
    jot_Ctx *c = open_device(0, NULL);
    Device noted = *(driver = c->backend->device);
    jot_Var w = jot_param(c, JOT_F32, JOT_SHAPE(N), NULL), y;
    size_t ends[2] = {0};
    int inside = 0, step, i;

    noted.alloc = noted_alloc;
    noted.launch = noted_launch;
    noted.replay_begin = NULL;
    c->backend->device = &noted;
    for (step = 0; step < 4; step++) {
        nallocs = nused = 0;
        jot_push(c);
        for (y = jot_offset(w, 1), i = 0; i < DEPTH; i++)
            y = jot_mul(jot_stop_fuse(jot_offset(y, 0.5)), jot_stop_fuse(jot_scale(y, 0.125)));
        jot_assign(w, y);
        CHECK(jot_run(c, JOT_NONE_VARS), "%s", jot_message(c));
        jot_pop(c);
        CHECK(step < 2 || nallocs == 0, "step %d: %d requests", step, nallocs);
    }
    for (i = 0; i < nused; i++)
        if (used[i].mem == c->plans->device_block) {
            size_t at = used[i].offset;

            inside++;
            CHECK(at % 64 == 0 && at + N * 4 <= jot_stats(c).last_block_nbytes, "offset %zu of %zu",
                  at, (size_t)jot_stats(c).last_block_nbytes);
            ends[at > 0] = at;
        }
    CHECK(inside > 2 * DEPTH && ends[1] > 0, "%d of %d accesses are to the block", inside, nused);
    CHECK(jot_stats(c).last_block_nbytes < 4 * (N * 4 + 64),
          "%zu bytes for few that live at a time",
          (size_t)jot_stats(c).last_block_nbytes);
    c->backend->device = driver;
    jot_close(c);
}

static void
count_text(void *user, const char *text, size_t nbytes)
{
    (void)text;
    *(size_t *)user += nbytes;
}

/* A parameter that is updated on the device does not come to the host until someone reads it. */
static void
test_copies(void)
{
    size_t nbytes = 0;
    jot_Ctx *c = open_device(0, NULL);
    jot_Var w = jot_param(c, JOT_F32, JOT_SHAPE(64), NULL), v;
    const Node *node;
    int i;

    for (i = 0; i < 3; i++) {
        jot_assign(w, jot_offset(w, 1));
        CHECK(jot_run(c, JOT_VARS(w)), "%s", jot_message(c));
    }
    node = jot_node(c, c->slots.v[w.slot].node);
    CHECK(node->data && node->data->device && !node->data->p, "only on the device");
    v = jot_array(c, JOT_F32, JOT_SHAPE(64), NULL);
    CHECK(jot_export_text(c, "f", JOT_VARS(v), JOT_VARS(jot_add(v, w)), count_text, &nbytes)
          && nbytes > 500, "%s", jot_message(c));
    CHECK(jot_data(w) && ((const float *)jot_data(w))[5] == 3, "3 updates");
    CHECK(node->data && node->data->device && node->data->p, "both");
    v = jot_array(c, JOT_F32, JOT_SHAPE(2), (float[]){1, 2});
    node = jot_node(c, c->slots.v[v.slot].node);
    CHECK(node->data && !node->data->device && node->data->p, "only on the host");
    CHECK(jot_item(jot_sum(v, JOT_ALL_DIMS)) == 3, "%s", jot_message(c));
    jot_close(c);
}

/* User code brings a source for each language; a missing one is named. */
static void
test_code(void)
{
    static const char *const in[] = {"x"}, *const grad[] = {
        "for (jot_i64 i = 0; i < x_n; i++) dx[i] = 2 * k * x[i] * dy[i];"
    };
    jot_Ctx *c = open_device(0, NULL);
    jot_Var x = ramp(c, 300), y, g, none;
    jot_CodeOut out = {.name = "y", .like = "x"};
    jot_CodeScalar k = {"k", 3};
    jot_Code code = {.name = "squares", .inputs = 1, .in = &x, .in_names = in, .outputs = 1,
                     .out = &out, .scalars = 1, .scalar = &k, .parallel = "y_n",
                     .source = "for (jot_i64 i = lo; i < hi; i++) y[i] = k * x[i] * x[i];"};
    const float *v, *d;
    char missing[120];

    y = jot_code_map("a > 0 ? a * b : -b", JOT_VARS(x, x), JOT_F32, NULL);
    v = jot_data(y); /* x[0] is -0.4, x[2] 0.34; one text for all */
    CHECK(v && v[0] == 0.4f && fabs(v[2] - 0.34 * 0.34) < 1e-6, "%g, %g: %s", v ? v[0] : -1,
          v ? v[2] : -1, jot_message(c));
    CHECK(jot_code(c, &code, &none), "%s", jot_message(c));
    snprintf(missing, sizeof missing, "squares: it has no source for %s (jot_Code.%s.source)",
             backend, backend);
    CHECK(!jot_data(none) && jot_error(c) == JOT_EDEVICE && strstr(jot_message(c), missing), "%s",
          jot_message(c));
    jot_clear(c);
    code.opencl.helpers = "static float square(float a) { return a * a; }";
    code.opencl.source = "y[lo] = (float)k * square(x[lo]) + 0 * y_0;";
    code.cuda = code.opencl;
    code.cuda.helpers = "static __device__ float square(float a) { return a * a; }";
    code.grad_source = grad;
    snprintf(missing, sizeof missing,
             "squares gradient of x: it has no source for %s (jot_Code.%s.grad_source)", backend,
             backend);
    CHECK(jot_code(c, &code, &y) && jot_grad(jot_sum(y, JOT_ALL_DIMS), JOT_VARS(x), &g)
              && jot_data(y) && !jot_data(g) && jot_error(c) == JOT_EDEVICE
              && strstr(jot_message(c), missing), "%s", jot_message(c));
    jot_clear(c);
    code.opencl.grad_source = code.cuda.grad_source = grad;
    CHECK(jot_code(c, &code, &y), "%s", jot_message(c));
    jot_grad(jot_sum(y, JOT_ALL_DIMS), JOT_VARS(x), &g);
    v = jot_data(y);
    d = jot_data(g);
    CHECK(
        v && d
            && fabs(v[299] - 3 * ((299 * 37 % 101) * 0.01 - 0.4) * ((299 * 37 % 101) * 0.01 - 0.4))
                   < 1e-5
            && fabs(d[7] - 6 * ((7 * 37 % 101) * 0.01 - 0.4)) < 1e-5,
        "%g %g %s", v ? v[299] : -1, d ? d[7] : -1, jot_message(c));
    jot_close(c);
}

/* The one entry of the directory; its bytes. */
static size_t
read_entry(const char *dir, char *path, size_t npath, unsigned char *to, size_t most)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    size_t n = 0;

    path[0] = 0;
    while (d && (e = readdir(d)) != NULL)
        if (strstr(e->d_name, ".jot"))
            snprintf(path, npath, "%s/%s", dir, e->d_name);
    if (d)
        closedir(d);
    if (path[0]) {
        FILE *f = fopen(path, "rb");

        n = f ? fread(to, 1, most, f) : 0;
        if (f)
            fclose(f);
    }
    return n;
}

static void
write_entry(const char *path, const unsigned char *p, size_t n)
{
    FILE *f = fopen(path, "wb");

    CHECK(f && fwrite(p, 1, n, f) == n, "%s", path);
    if (f)
        fclose(f);
}

/* What is there is not taken, the text is compiled again, and that is kept. */
static void
check_rebuilt(const char *dir, const char *what)
{
    for (int hits = 0; hits < 2; hits++) {
        jot_Ctx *c = open_device(0, dir);
        const float *v = jot_data(jot_exp(ramp(c, 77)));

        CHECK(v && fabs(v[3] - exp((3 * 37 % 101) * 0.01 - 0.4)) < 1e-6
                  && (int)jot_stats(c).cache_hits == hits, "%s: %d of %d hits: %s", what,
              (int)jot_stats(c).cache_hits, hits, jot_message(c));
        jot_close(c);
    }
}

/* Entries that are cut short, or have a bit that is another, or are what the driver does not
 * take. */
static void
test_damage(const char *dir)
{
    static const double at[] = {0, 0.1, 0.5, 0.9};
    enum { MOST = 1 << 22 };
    unsigned char *entry = malloc(MOST);
    char path[300];
    size_t n = read_entry(dir, path, sizeof path, entry, MOST);
    uint64_t nbytes[3];
    Bytes key, text, object;
    Cache cache;
    jot_Ctx *c;

    CHECK(n > 100 && n < MOST, "%s: %zu bytes", dir, n);
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        size_t byte = (size_t)(at[i] * (double)n);

        write_entry(path, entry, byte);
        check_rebuilt(dir, "cut short");
        n = read_entry(dir, path, sizeof path, entry, MOST);
        byte = (size_t)(at[i] * (double)n);
        entry[byte] ^= 4;
        write_entry(path, entry, n);
        check_rebuilt(dir, "a bit");
        n = read_entry(dir, path, sizeof path, entry, MOST);
    }
    memcpy(nbytes, entry + 16, sizeof nbytes); /* of key, text, object: backends/cpu/cache.c */
    key.p = (char *)entry + 56;
    key.n = nbytes[0];
    text.p = key.p + key.n;
    text.n = nbytes[1];
    object.p = (char[]){"what no driver takes, whole as it is"};
    object.n = strlen(object.p);
    CHECK(56 + nbytes[0] + nbytes[1] + nbytes[2] == n, "the lengths of an entry");
    c = open_device(0, dir);
    jot_cache_open(&cache, c, false);
    jot_cache_keep(&cache, c, key, text, object);
    jot_cache_close(&cache);
    jot_close(c);
    check_rebuilt(dir, "another object");
    free(entry);
}

static void
test_cache(void)
{
    char dir[] = "/tmp/jot_test_XXXXXX", command[64];
    jot_Ctx *c;

    if (!mkdtemp(dir))
        return;
    c = open_device(0, dir);
    CHECK(jot_data(jot_exp(ramp(c, 77))) && jot_stats(c).cache_hits == 0, "the first: %s",
          jot_message(c));
    jot_close(c);
    c = open_device(0, dir);
    CHECK(jot_data(jot_exp(ramp(c, 77))) && jot_stats(c).cache_hits == 1, "from the cache: %s",
          jot_message(c));
    jot_close(c);
    test_damage(dir);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    CHECK(!system(command), "%s", command);
}

/* By number, by what it is, by a part of its name; the environment where the configuration is
 * silent. */
static bool
opens(const char *given, const char *env, char *why)
{
    bool cuda = !strcmp(backend, "cuda"), ok;
    const char *name = cuda ? "JOT_CUDA_DEVICE" : "JOT_OPENCL_DEVICE";
    jot_Config config = {.backend = backend, .device = given};
    jot_Ctx *c;

    if (env)
        setenv(name, env, 1);
    c = jot_open(&config);
    ok = !jot_error(c);
    snprintf(why, 300, "%s", jot_message(c));
    CHECK(ok || jot_error(c) == JOT_EDEVICE, "%s", why);
    jot_close(c);
    unsetenv(name);
    return ok;
}

static void
test_choice(void)
{
    bool cuda = !strcmp(backend, "cuda");
    const char *first = cuda ? "0" : "0.0", *none = cuda ? "77" : "no such device";
    char why[300];

    CHECK(!opens(none, NULL, why) && strstr(why, none), "%s", why);
    CHECK(cuda || strstr(why, "there are 0.0 "), "those that are there: %s", why);
    CHECK(cuda || (!opens("7.0", NULL, why) && !opens("0.77", NULL, why)),
          "a place, not a name: %s", why);
    CHECK(opens(first, NULL, why), "%s", why);
    CHECK(!opens(NULL, none, why) && strstr(why, none), "the environment: %s", why);
    CHECK(opens(NULL, first, why), "the environment: %s", why);
    CHECK(opens(first, none, why), "the configuration wins: %s", why);
    CHECK(!cuda || (!opens("0x", NULL, why) && !opens("gpu", NULL, why)), "no number: %s", why);
    CHECK(opens(NULL, "", why), "set to nothing: %s", why);
    CHECK(cuda || opens("cpu", NULL, why) || opens("gpu", NULL, why), "%s", why);
}

/* As many buffers as a kernel has at most, and scalars. */
static void
test_arguments(void)
{
    enum { MANY = 58 };
    jot_Ctx *c = open_device(0, NULL);
    jot_Var y = jot_full(c, JOT_F32, JOT_SHAPE(33), 0);
    const float *v;
    int i;

    for (i = 0; i < MANY; i++)
        y = jot_add(jot_scale(y, 0.5 + 0.01 * i), ramp(c, 33));
    v = jot_data(y);
    CHECK(v && jot_stats(c).kernels_run <= 3, "%llu kernels: %s",
          (unsigned long long)jot_stats(c).kernels_run, jot_message(c));
    jot_close(c);
}

/* ---- a plan that repeats ------------------------------------------------------------------ */

/* What a step draws and what its literals are differs from step to step. */
static bool
noisy_steps(jot_Ctx *c, int n, float *out)
{
    jot_Var w = jot_param(c, JOT_F32, JOT_SHAPE(40, 40), NULL);
    int i;

    for (i = 0; i < n && !jot_error(c); i++) {
        jot_Var x;

        jot_push(c);
        x = jot_matmul(jot_add(w, jot_uniform(c, JOT_F32, JOT_SHAPE(40, 40))),
                       jot_transpose(w, JOT_INTS(1, 0)));
        x = jot_softmax(jot_scale(x, 0.1 + i), 1);
        jot_assign(w, jot_add(jot_scale(w, 0.5), x));
        jot_run(c, JOT_NONE_VARS);
        jot_pop(c);
    }
    return jot_copy(w, out, 40 * 40 * sizeof *out);
}

/* Its launches are handed over as one, to the same bits as one by one. */
static void
test_replay(void)
{
    enum { N = 7 };
    static float want[40 * 40], got[40 * 40];
    jot_Ctx *c = open_device(0, NULL);
    bool graphs = c->backend->device->replay_begin != NULL
               && !(getenv("JOT_TEST_GRAPHS") && getenv("JOT_TEST_GRAPHS")[0] == '0');
    Device plain = *c->backend->device;

    plain.replay_begin = NULL;
    c->backend->device = &plain;
    CHECK(noisy_steps(c, N, want) && !jot_stats(c).replays, "%s", jot_message(c));
    jot_close(c);
    c = open_device(0, NULL);
    CHECK(noisy_steps(c, N, got), "%s", jot_message(c));
    CHECK(jot_stats(c).plans == 1 && jot_stats(c).last_kernels > 1
          && jot_stats(c).replays == (graphs ? N - 1 : 0), "%d replays of %d plans of %d kernels",
          (int)jot_stats(c).replays, (int)jot_stats(c).plans, (int)jot_stats(c).last_kernels);
    CHECK(!memcmp(want, got, sizeof want), "other bits");
    jot_close(c);
}

/* What a thread comes to, with a context of its own; -1: there is no device. */
static void *
sum_of_thread(void *to)
{
    jot_Ctx *c = open_device(0, NULL);

    *(double *)to = jot_error(c) ? -1 : jot_item(jot_sum(jot_exp(ramp(c, 101)), JOT_ALL_DIMS));
    jot_close(c);
    return NULL;
}

/* Before the process has any context: the driver sets itself up while several ask for devices. */
static void
test_at_once(void)
{
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    double sum[THREADS];

    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&thread[i], NULL, sum_of_thread, &sum[i]), "thread %d", i);
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_join(thread[i], NULL), "thread %d", i);
    for (int i = 1; i < THREADS; i++)
        CHECK(sum[i] == sum[0], "thread %d: %g, the first %g", i, sum[i], sum[0]);
}

int
main(int argc, char **argv)
{
    backend = argc > 1 ? argv[1] : backend;
    if (!strcmp(backend, "opencl")) /* tests/fake_cuda.c serves one thread */
        test_at_once();
    if (!device_is_here(argc, argv))
        return DONE();
    test_values("long sum", long_sum, 2);
    test_values("long columns", long_columns, 2);
    test_values("rows", rows, 1);
    test_values("both ways", both_ways, 2);
    test_values("product", product, 1);
    test_same_bits();
    test_least(64);
    test_least(300);
    test_scatter(JOT_I32);
    test_scatter(JOT_I8);
    test_scatter(JOT_F16);
    test_scatter(JOT_F64);
    test_out_of_memory();
    test_refused_by_driver();
    test_pool();
    test_copies();
    test_arguments();
    test_replay();
    test_code();
    test_cache();
    test_choice();
    return DONE();
}
