/* tests/test_interface.c - what the interface promises apart from its operators: structures of
 * other versions, a configuration against the environment, what jot_open may not do when it is told
 * so, lists, dimensions that stay, accessors, positions that are looked at, a tensor as text.
 *
 * Guards: config.c, core.c, fail.c, ops/reduce_dims.c, print.c, ops/user/check.c, plan/eval.c,
 * plan/options.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "nn.h"
#include "tests/test.h"
#include <dirent.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

static char logged[1 << 16];
static size_t log_n;

static void
keep_log(void *ud, const char *text, size_t nbytes)
{
    (void)ud;
    if (log_n + nbytes < sizeof logged)
        memcpy(logged + log_n, text, nbytes), log_n += nbytes;
    logged[log_n] = 0;
}

/* ---- structures of other versions ----------------------------------------------------------- */

/* A caller of an earlier version hands over less, one of a later version more. */
static void
check_config_size(void)
{
    struct { jot_Config now; int later[4]; } more;
    jot_Config config = {.backend = "interp", .cache_dir = "", .seed = 7, .no_threads = 1};
    jot_Ctx *c = jot_open_sized(&config, offsetof(jot_Config, policy));

    CHECK(!jot_error(c) && !strcmp(jot_backend(c), "interp"), "shorter: %s", jot_message(c));
    jot_close(c);
    config.lanes = 3; /* beyond what the next caller has */
    c = jot_open_sized(&config, offsetof(jot_Config, lanes));
    CHECK(!jot_error(c), "a field that the caller has not: %s", jot_message(c));
    jot_close(c);
    c = jot_open(&config);
    CHECK(jot_error(c) == JOT_EUSE && strstr(jot_message(c), "lanes is 3"), "%s", jot_message(c));
    jot_close(c);
    config.lanes = 0;
    memset(&more, 0, sizeof more);
    more.now = config;
    c = jot_open_sized(&more.now, sizeof more);
    CHECK(!jot_error(c), "longer, 0: %s", jot_message(c));
    jot_close(c);
    more.later[3] = 1;
    c = jot_open_sized(&more.now, sizeof more);
    CHECK(jot_error(c) == JOT_EUSE && strstr(jot_message(c), "is of a later version"), "longer: %s",
          jot_message(c));
    jot_close(c);
    CHECK(jot_version() == JOT_VERSION && JOT_VERSION >= 900, "version %d", jot_version());
}

static void
check_record_sizes(void)
{
    struct { jot_Stats now; unsigned char later[8], after; } stats;
    struct { jot_Machine now; unsigned char later[8], after; } machine;
    jot_Config config = {.backend = "tcc", .cache_dir = ""};
    jot_Ctx *c = jot_open(&config);
    uint64_t few[3] = {9, 9, 9};

    if (jot_error(c)) {
        SKIP("tcc: %s", jot_message(c));
        jot_close(c);
        return;
    }
    jot_item(jot_sum(jot_uniform(c, JOT_F32, JOT_SHAPE(3)), JOT_ALL_DIMS));
    CHECK(jot_stats(c).plans == 1, "%d plans", (int)jot_stats(c).plans);
    memset(&stats, 7, sizeof stats);
    jot_stats_sized(c, &stats.now, sizeof stats.now + 8);
    CHECK(stats.now.plans == 1 && !stats.later[0] && !stats.later[7] && stats.after == 7,
          "longer: %d %d %d", stats.later[0], stats.later[7], stats.after);
    jot_stats_sized(c, (jot_Stats *)(void *)few, 2 * sizeof *few);
    CHECK(few[0] == stats.now.kernels_run && few[1] == stats.now.replays && few[2] == 9, "shorter");
    memset(&machine, 7, sizeof machine);
    jot_machine_sized(c, &machine.now, sizeof machine.now + 8);
    CHECK(machine.now.cores == jot_machine(c).cores && !machine.later[7] && machine.after == 7,
          "machine");
    CHECK(jot_stats(NULL).plans == 0 && jot_machine(NULL).cores == 0, "of no context");
    jot_close(c);
}

/* Records side by side, at the distance of the caller's. */
static void
check_profile_size(void)
{
    struct { jot_ProfileKernel now; int later; } more[4];
    jot_Config config = {.backend = "tcc", .cache_dir = ""};
    jot_Ctx *c = jot_open(&config);
    jot_ProfileKernel same[4];
    int n;

    if (jot_error(c)) {
        SKIP("tcc: %s", jot_message(c));
        jot_close(c);
        return;
    }
    jot_profile(c, true);
    jot_item(jot_sum(jot_exp(jot_ones(c, JOT_F32, JOT_SHAPE(300))), JOT_ALL_DIMS));
    jot_item(jot_sum(jot_iota(c, JOT_F32, JOT_SHAPE(20, 30), 0), JOT_ALL_DIMS));
    n = jot_profile_kernels(c, same, 4);
    memset(more, 7, sizeof more);
    CHECK(n >= 2 && n == jot_profile_kernels_sized(c, &more[0].now, 4, sizeof *more), "%d", n);
    for (int k = 0; k < n && k < 4; k++)
        CHECK(!strcmp(same[k].name, more[k].now.name) && same[k].floor == more[k].now.floor
              && !more[k].later, "record %d", k);
    jot_close(c);
}

/* ---- the configuration against the environment ---------------------------------------------- */

static int asked;

static const char *
hostile(void *ud, const char *name)
{
    static const char *const bad[] = {"JOT_BACKEND", "JOT_POLICY", "JOT_DUMP", "JOT_LAYOUT",
                                      "JOT_SCHEDULE", "JOT_PRECISION", "JOT_TARGET", "JOT_LANES",
                                      "JOT_DETERMINISTIC", "JOT_THREADS", "JOT_GIVE_BACK",
                                      "JOT_TUNE", "JOT_CHECK", "JOT_DEVICE_MEMORY"};

    (void)ud;
    asked++;
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        if (!strcmp(name, bad[k]))
            return "nonsense";
    return getenv(name);
}

static void
check_environment(void)
{
    jot_Config off = {.hooks = {.getenv = hostile}, .backend = "interp", .policy = "", .dump = "",
                      .layout = "", .schedule = "", .precision = "", .target = "", .cache_dir = "",
                      .device_nbytes = UINT64_MAX, .threads = -1, .lanes = -1, .give_back = -1,
                      .deterministic = -1, .tune = -1, .check = -1};
    jot_Config none = {.hooks = {.getenv = hostile, .log = keep_log}, .no_environment = 1}, on = off;
    jot_Ctx *c = jot_open(&off);

    CHECK(!jot_error(c), "forced off: %s", jot_message(c));
    jot_close(c);
    on.policy = NULL;
    c = jot_open(&on);
    CHECK(jot_error(c) == JOT_EUSE && strstr(jot_message(c), "policy"), "a string of it counts");
    jot_close(c);
    on = off;
    on.tune = 0;
    c = jot_open(&on);
    CHECK(jot_error(c) == JOT_EUSE && strstr(jot_message(c), "JOT_TUNE"), "a number of it counts");
    jot_close(c);
    off.backend = "";
    off.threads = -2;
    c = jot_open(&off);
    CHECK(jot_error(c) == JOT_EUSE && strstr(jot_message(c), "threads is -2"), "%s",
          jot_message(c));
    jot_close(c);
    asked = 0;
    c = jot_open(&none);
    CHECK(!jot_error(c), "no environment: %s", jot_message(c));
    CHECK(jot_item(jot_sum(jot_ones(c, JOT_F32, JOT_SHAPE(5)), JOT_ALL_DIMS)) == 5, "%s",
          jot_message(c));
    jot_close(c);
    CHECK(asked == 0, "%d variables were asked for", asked);
}

/* ---- what jot_open may not do --------------------------------------------------------------- */

static char folder[200];

/* Entries of a folder, and those beneath it. */
static int
entries(const char *dir, bool deep)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    char path[1000];
    int n = 0;

    while (d && (e = readdir(d)) != NULL)
        if (e->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%.300s", dir, e->d_name);
            n += 1 + (deep ? entries(path, true) : 0);
        }
    if (d)
        closedir(d);
    return n;
}

static int
threads(void)
{
    return entries("/proc/self/task", false);
}

/* Something that is worth threads, compilers and a cache: the highest number of threads seen. */
static int
work(jot_Ctx *c, bool *ok)
{
    int most = threads(), now;

    *ok = true;
    for (int k = 0; k < 12; k++) {
        jot_Var x = jot_uniform(c, JOT_F32, JOT_SHAPE(400, 400));

        jot_push(c);
        *ok = *ok && jot_item(jot_sum(jot_exp(jot_matmul(x, x)), JOT_ALL_DIMS)) > 0;
        jot_pop(c);
        now = threads();
        most = now > most ? now : most;
    }
    return most;
}

static void
check_forbidden(void)
{
    static const char script[] = "#!/bin/sh\n: >>%s/started\nexec cc \"$@\"\n";
    char path[300], mark[300], home[300];
    jot_Config config = {.backend = "cpu", .threads = 3}, tight;
    FILE *f;
    bool ok;
    int before;

    snprintf(folder, sizeof folder, "/tmp/jot_interface_%d", (int)getpid());
    mkdir(folder, 0700);
    snprintf(home, sizeof home, "%s/cache", folder);
    snprintf(path, sizeof path, "%s/compiler", folder);
    snprintf(mark, sizeof mark, "%s/started", folder);
    f = fopen(path, "w");
    if (!f)
        return;
    fprintf(f, script, folder);
    fclose(f);
    chmod(path, 0700);
    setenv("JOT_CC", path, 1);
    setenv("JOT_CACHE_DIR", home, 1);
    before = threads();
    for (int kind = 0; kind < 4; kind++) {
        jot_Ctx *c;
        int most;

        tight = config;
        tight.cache_dir = kind == 1 ? "" : NULL;
        tight.no_programs = kind == 2;
        tight.no_threads = kind == 3;
        unlink(mark);
        c = jot_open(&tight);
        if (kind == 2 && jot_error(c) == JOT_EDEVICE) {
            SKIP("no libtcc: %s", jot_message(c));
            jot_close(c);
            continue;
        }
        most = work(c, &ok);
        CHECK(ok, "%d: %s", kind, jot_message(c));
        jot_close(c);
        if (before)
            CHECK((most == before) == (kind == 3), "%d: %d threads, %d before", kind, most, before);
        CHECK((access(mark, F_OK) == 0) == (kind != 2), "%d: programs", kind);
        CHECK((entries(home, true) > 0) == (kind != 1), "%d: %d files", kind, entries(home, true));
        snprintf(path, sizeof path, "rm -rf %s/cache", folder);
        if (system(path))
            CHECK(0, "%s", path);
    }
    config.backend = "cc";
    config.no_programs = 1;
    tight = config;
    {
        jot_Ctx *c = jot_open(&tight);

        CHECK(jot_error(c) == JOT_EDEVICE && strstr(jot_message(c), "no_programs forbids"), "%s",
              jot_message(c));
        jot_close(c);
    }
    unsetenv("JOT_CC");
    unsetenv("JOT_CACHE_DIR");
    snprintf(path, sizeof path, "rm -rf %s", folder);
    if (system(path))
        CHECK(0, "%s", path);
}

/* ---- lists, accessors ------------------------------------------------------------------------ */

static void
check_lists(jot_Ctx *c)
{
    jot_Var a = jot_ones(c, JOT_F32, JOT_SHAPE(1)), b = jot_zeros(c, JOT_F32, JOT_SHAPE(1)), y;

    y = jot_concat(JOT_VARS(a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a,
                            a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, b), 0);
    CHECK(jot_extent(y, 0) == 40 && jot_item(jot_sum(y, JOT_ALL_DIMS)) == 39, "%s", jot_message(c));
    CHECK(JOT_KEEP(1, 2).keep && !JOT_DIMS(1, 2).keep && JOT_KEEP(1, 2).n == 2
          && JOT_DIMS().n == 0 && JOT_ALL_DIMS.n == -1 && JOT_KEEP_ALL.keep, "dimensions");
    CHECK(!jot_ok(jot_none()) && !jot_none().ctx, "none");
}

static bool
shape_is(jot_Var v, jot_Ints shape)
{
    bool same = jot_rank(v) == shape.n;

    for (int k = 0; same && k < shape.n; k++)
        same = jot_extent(v, k) == shape.v[k];
    return same;
}

/* Positions and medians over several dimensions, which stay if they are asked to. */
static void
check_kept(jot_Ctx *c)
{
    static const float v[12] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 8, 9, 7};
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(2, 3, 2), v), y;
    const int64_t *at;

    y = jot_argmax(x, JOT_DIMS(2, 0)); /* of (dim 0, dim 2), row by row */
    at = jot_data_i64(y);
    CHECK(at && shape_is(y, JOT_SHAPE(3)) && at[0] == 3 && at[1] == 3 && at[2] == 1,
          "%s", jot_message(c));
    y = jot_argmax(x, JOT_KEEP(0, 2));
    CHECK(shape_is(y, JOT_SHAPE(1, 3, 1)) && jot_data_i64(y)[2] == 1, "%s", jot_message(c));
    y = jot_argmin(x, JOT_KEEP(1));
    CHECK(shape_is(y, JOT_SHAPE(2, 1, 2)) && jot_data_i64(y)[3] == 0, "%s", jot_message(c));
    CHECK(jot_item_int(jot_argmin(x, JOT_ALL_DIMS)) == 1
          && shape_is(jot_argmax(x, JOT_KEEP_ALL), JOT_SHAPE(1, 1, 1))
          && jot_item_int(jot_argmax(x, JOT_KEEP_ALL)) == 5, "%s", jot_message(c));
    CHECK(shape_is(jot_argmax(x, JOT_DIMS()), JOT_SHAPE(2, 3, 2))
          && jot_item_int(jot_argmax(jot_scalar(c, JOT_F32, 2), JOT_ALL_DIMS)) == 0, "%s",
          jot_message(c));
    CHECK(shape_is(jot_variance(x, JOT_KEEP(1)), JOT_SHAPE(2, 1, 2))
          && shape_is(jot_std(x, JOT_KEEP(-1), 1), JOT_SHAPE(2, 3, 1))
          && shape_is(jot_vector_norm(x, JOT_KEEP(0, 1), 2), JOT_SHAPE(1, 1, 2))
          && shape_is(jot_logsumexp(x, JOT_DIMS(0, 1)), JOT_SHAPE(2)), "%s", jot_message(c));
    y = jot_median(x, JOT_KEEP(0, 2));
    CHECK(shape_is(y, JOT_SHAPE(1, 3, 1)) && jot_data_f32(y)[0] == 2 && jot_data_f32(y)[1] == 4
          && jot_data_f32(y)[2] == 7, "%s", jot_message(c));
    CHECK(jot_item(jot_median(x, JOT_ALL_DIMS)) == 5
          && jot_item(jot_quantile(x, JOT_KEEP_ALL, 1)) == 9, "%s", jot_message(c));
    CHECK(!jot_ok(jot_argmax(x, JOT_DIMS(1, -2))) && jot_error(c) == JOT_ERANGE
          && !strcmp(jot_message(c), "argmax: dimension 1 is given twice"), "%s", jot_message(c));
    jot_clear(c);
    CHECK(!jot_ok(jot_median(x, JOT_DIMS(1, -2))) && jot_error(c) == JOT_ERANGE
          && strstr(jot_message(c), "given twice"), "%s", jot_message(c));
    jot_clear(c);
    CHECK(!jot_ok(jot_argmax(jot_zeros(c, JOT_F32, JOT_SHAPE(2, 0)), JOT_ALL_DIMS))
          && jot_error(c) == JOT_ESHAPE, "%s", jot_message(c));
    jot_clear(c);
}

static void
check_accessors(jot_Ctx *c)
{
    jot_Var x = jot_arange(c, JOT_F32, 0, 1, 6), m = jot_reshape(x, JOT_SHAPE(2, 3)), y;
    const float *v;

#define READS(name, DTYPE) \
    CHECK(jot_data_##name(jot_cast(jot_offset(x, 1), DTYPE)) != NULL, "%s", jot_message(c))
    READS(bool, JOT_BOOL); READS(i8, JOT_I8); READS(i16, JOT_I16); READS(i32, JOT_I32);
    READS(i64, JOT_I64); READS(u8, JOT_U8); READS(u16, JOT_U16); READS(u32, JOT_U32);
    READS(u64, JOT_U64); READS(f16, JOT_F16); READS(bf16, JOT_BF16); READS(f32, JOT_F32);
    READS(f64, JOT_F64);
#undef READS
    v = jot_data_f32(x);
    CHECK(v && v[5] == 5, "f32");
    CHECK(!jot_data_i32(x) && jot_error(c) == JOT_EDTYPE
          && !strcmp(jot_message(c), "data_i32: v is f32"), "%s", jot_message(c));
    jot_clear(c);
    y = jot_slice_dim(m, 1, JOT_END, JOT_END, -2);
    v = jot_data_f32(y);
    CHECK(v && jot_extent(y, 0) == 2 && jot_extent(y, 1) == 2 && v[0] == 2 && v[1] == 0 && v[3] == 3,
          "%s", jot_message(c));
    y = jot_slice_dim(m, -2, 1, JOT_END, 1);
    v = jot_data_f32(y);
    CHECK(v && jot_extent(y, 0) == 1 && jot_extent(y, 1) == 3 && v[0] == 3, "%s", jot_message(c));
    CHECK(!jot_ok(jot_slice_dim(m, 2, 0, 1, 1)) && jot_error(c) == JOT_ERANGE
          && strstr(jot_message(c), "slice_dim: dimension 2"), "%s", jot_message(c));
    jot_clear(c);
    CHECK(!jot_ok(jot_slice_dim(m, 0, 0, 1, 0)) && jot_error(c) == JOT_ERANGE, "%s",
          jot_message(c));
    jot_clear(c);
}

/* ---- positions that are looked at ------------------------------------------------------------ */

static void
outside(jot_Var v, const char *text)
{
    CHECK(!jot_data(v) && jot_error(v.ctx) == JOT_ERANGE && !strcmp(jot_message(v.ctx), text),
          "%s: %s", text, jot_message(v.ctx));
    jot_clear(v.ctx);
}

/* What fails leaves states, though they are written in place otherwise, and memory of the caller
 * as they were. */
static void
check_states(jot_Ctx *c, jot_Var x, const int32_t *good, const int32_t *bad)
{
    jot_Var at = jot_array(c, JOT_I32, JOT_SHAPE(3), good), y;
    jot_Var state = jot_param(c, JOT_F32, JOT_SHAPE(3), NULL);
    float out[3] = {-1, -1, -1};
    jot_Func f;

    jot_assign(state, jot_add(state, jot_take(x, jot_array(c, JOT_I32, JOT_SHAPE(3), bad), 0)));
    CHECK(!jot_run(c, JOT_NONE_VARS) && jot_error(c) == JOT_ERANGE, "%s", jot_message(c));
    jot_clear(c);
    CHECK(jot_item(jot_slice_dim(state, 0, 0, 1, 1)) == 0, "the state: %s", jot_message(c));
    y = jot_take(x, at, 0);
    jot_assign(state, jot_add(state, y));
    f = jot_compile(c, JOT_VARS(at), JOT_VARS(y));
    CHECK(!jot_call(f, JOT_INS(JOT_IN(bad, 12)), JOT_OUTS(JOT_OUT(out, sizeof out)))
          && jot_error(c) == JOT_ERANGE && out[0] == -1 && out[2] == -1, "%g: %s", out[0],
          jot_message(c));
    jot_clear(c);
    CHECK(jot_item(jot_slice_dim(state, 0, 0, 1, 1)) == 0, "the state: %s", jot_message(c));
    CHECK(jot_call(f, JOT_INS(JOT_IN(good, 12)), JOT_OUTS(JOT_OUT(out, sizeof out)))
          && out[0] == 30 && out[2] == 10, "%s", jot_message(c));
    CHECK(jot_item(jot_slice_dim(state, 0, 0, 1, 1)) == 30, "%s", jot_message(c));
}

static void
check_positions(const char *backend)
{
    static const float numbers[] = {10, 20, 30};
    static const int32_t good[] = {2, 1, 0}, bad[] = {0, 3, 1}, under[] = {0, 1, -1};
    static const int32_t pairs[] = {0, 1, 1, 2};
    jot_Config config = {.backend = backend, .cache_dir = "", .check = 1};
    jot_Ctx *c = jot_open(&config);
    jot_Var x, m, i, j, k, p, g;
    uint64_t plans = 0;

    if (jot_error(c)) {
        SKIP("%s: %s", backend, jot_message(c));
        jot_close(c);
        return;
    }
    x = jot_array(c, JOT_F32, JOT_SHAPE(3), numbers);
    m = jot_ones(c, JOT_F32, JOT_SHAPE(2, 2));
    i = jot_array(c, JOT_I32, JOT_SHAPE(3), good);
    j = jot_array(c, JOT_I32, JOT_SHAPE(3), bad);
    k = jot_array(c, JOT_I32, JOT_SHAPE(3), under);
    p = jot_array(c, JOT_I32, JOT_SHAPE(2, 2), pairs);
    CHECK(jot_item(jot_sum(jot_take(x, i, 0), JOT_ALL_DIMS)) == 60, "%s", jot_message(c));
    outside(jot_take(x, j, -1), "take: index: 0..2 asked, 3 found (element 1)");
    outside(jot_exp(jot_take(x, k, 0)), "take: index: 0..2 asked, -1 found (element 2)");
    outside(jot_take(x, jot_cast(k, JOT_U64), 0),
            "take: index: 0..2 asked, 18446744073709551615 found (element 2)");
    outside(jot_one_hot(j, 3, JOT_F32), "one_hot: index: 0..2 asked, 3 found (element 1)");
    outside(jot_take_along(x, j, 0), "take_along: index: 0..2 asked, 3 found (element 1)");
    outside(jot_gather_nd(m, p), "gather_nd: index: 0..1 asked, 2 found (element 3)");
    outside(jot_scatter(x, j, x, 0), "scatter: index: 0..2 asked, 3 found (element 1)");
    outside(jot_scatter_reduce(JOT_ADD, x, k, x, 0),
            "scatter_reduce: index: 0..2 asked, -1 found (element 2)");
    outside(jot_scatter_nd(m, p, jot_take(x, jot_slice_dim(i, 0, 0, 2, 1), 0)),
            "scatter_nd: index: 0..1 asked, 2 found (element 3)");
    outside(jot_take(jot_zeros(c, JOT_F32, JOT_SHAPE(3)), j, 0), /* 0 inside as well as outside */
            "take: index: 0..2 asked, 3 found (element 1)");
    outside(jot_take(jot_zeros(c, JOT_F32, JOT_SHAPE(0)), i, 0),
            "take: index: 0..-1 asked, 2 found (element 0)");
    outside(jot_embedding(jot_ones(c, JOT_F32, JOT_SHAPE(3, 2)), j, -1),
            "embedding: index: 0..2 asked, 3 found (element 1)");
    outside(jot_cross_entropy(jot_ones(c, JOT_F32, JOT_SHAPE(3, 3)), j),
            "cross_entropy: index: 0..2 asked, 3 found (element 1)");
    outside(jot_nll_loss(jot_ones(c, JOT_F32, JOT_SHAPE(3, 3)), k, NULL),
            "nll_loss: index: 0..2 asked, -1 found (element 2)");
    CHECK(jot_item(jot_nll_loss(jot_ones(c, JOT_F32, JOT_SHAPE(3, 3)), k,
                                &(jot_LabelLoss){.ignore = true, .ignored = -1})) == -1,
          "an ignored label is none: %s", jot_message(c));
    CHECK(jot_grad(jot_sum(jot_square(jot_take(x, i, 0)), JOT_ALL_DIMS), JOT_VARS(x), &g)
          && jot_data_f32(g) && jot_data_f32(g)[2] == 60, "%s", jot_message(c));
    CHECK(!jot_ok(jot_check_index(p, JOT_INTS(1, 2, 3), "own")) && jot_error(c) == JOT_ESHAPE, "%s",
          jot_message(c));
    jot_clear(c);
    for (int step = 0; step < 3; step++) {
        jot_push(c);
        jot_run(c, JOT_VARS(jot_exp(jot_take(x, i, 0))));
        jot_pop(c);
        plans = step ? plans : jot_stats(c).plans;
    }
    CHECK(jot_stats(c).plans == plans, "%s: steps find their plan", backend);
    check_states(c, x, good, bad);
    jot_close(c);
    config.check = 0;
    c = jot_open(&config);
    x = jot_array(c, JOT_F32, JOT_SHAPE(3), numbers);
    j = jot_array(c, JOT_I32, JOT_SHAPE(3), bad);
    CHECK(jot_item(jot_sum(jot_take(x, j, 0), JOT_ALL_DIMS)) == 30, "unchecked: %s",
          jot_message(c));
    CHECK(jot_check_index(j, JOT_INTS(3), "own").slot == j.slot, "the same handle");
    i = jot_param(c, JOT_F32, JOT_SHAPE(3), numbers);
    jot_assign(i, jot_add(i, jot_take(x, j, 0)));
    CHECK(jot_run(c, JOT_NONE_VARS) && (jot_stats(c).in_place == 1 || !strcmp(backend, "interp")),
          "%s: such a state is written in place", backend);
    jot_close(c);
}

/* ---- a tensor as text ------------------------------------------------------------------------ */

#define PRINTS(v, text) \
    (log_n = 0, CHECK(jot_print(v) && !strcmp(logged, text), "got\n%s\n%s", logged, \
                      jot_message((v).ctx)))

static void
check_print(jot_Ctx *c)
{
    static const float few[] = {1, 2.5f, 3, -1, 0, 0.1f}, wide[] = {1e-10f, 1, 0, -3.5e20f};
    static const double odd[] = {1, -0.0, 0.0 / 1, 12345.678};
    static const int32_t whole[] = {1, -20, 300, 4};
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(2, 3), few), y;
    char text[20];

    PRINTS(x, "f32 (2, 3)\n[[ 1.   2.5  3. ]\n [-1.   0.   0.1]]\n");
    PRINTS(jot_cast(x, JOT_F16), "f16 (2, 3)\n[[ 1.   2.5  3. ]\n [-1.   0.   0.1]]\n");
    PRINTS(jot_cast(x, JOT_BF16), "bf16 (2, 3)\n[[ 1.   2.5  3. ]\n [-1.   0.   0.1]]\n");
    PRINTS(jot_array(c, JOT_F32, JOT_SHAPE(4), wide),
           "f32 (4)\n[ 1.0e-10  1.0e+00  0.0e+00 -3.5e+20]\n");
    PRINTS(jot_array(c, JOT_F64, JOT_SHAPE(4), odd),
           "f64 (4)\n[ 1.0000000e+00 -0.0000000e+00  0.0000000e+00  1.2345678e+04]\n");
    PRINTS(jot_array(c, JOT_I32, JOT_SHAPE(2, 1, 2), whole),
           "i32 (2, 1, 2)\n[[[  1 -20]]\n\n [[300   4]]]\n");
    PRINTS(jot_gt(x, jot_zeros(c, JOT_F32, JOT_SHAPE())),
           "bool (2, 3)\n[[ true  true  true]\n [false false  true]]\n");
    PRINTS(jot_scalar(c, JOT_F64, 1.0 / 3), "f64 ()\n0.33333333\n");
    PRINTS(jot_div(jot_scalar(c, JOT_F32, -1), jot_scalar(c, JOT_F32, 0)), "f32 ()\n-inf\n");
    PRINTS(jot_zeros(c, JOT_U8, JOT_SHAPE(3, 0)), "u8 (3, 0)\n[]\n");
    PRINTS(jot_full_int(c, JOT_U64, JOT_SHAPE(1), -1), "u64 (1)\n[18446744073709551615]\n");
    PRINTS(jot_iota(c, JOT_I64, JOT_SHAPE(2000), 0),
           "i64 (2000)\n[   0    1    2 ... 1997 1998 1999]\n");
    y = jot_iota(c, JOT_I64, JOT_SHAPE(500, 2, 4), 0);
    PRINTS(y, "i64 (500, 2, 4)\n[[[  0   0   0   0]\n  [  0   0   0   0]]\n\n [[  1   1   1   1]\n"
              "  [  1   1   1   1]]\n\n [[  2   2   2   2]\n  [  2   2   2   2]]\n\n ...\n\n"
              " [[497 497 497 497]\n  [497 497 497 497]]\n\n [[498 498 498 498]\n"
              "  [498 498 498 498]]\n\n [[499 499 499 499]\n  [499 499 499 499]]]\n");
    PRINTS(jot_arange(c, JOT_F32, 0, 1, 30),
           "f32 (30)\n[ 0.  1.  2.  3.  4.  5.  6.  7.  8.  9. 10. 11. 12. 13. 14. 15. 16. 17.\n"
           " 18. 19. 20. 21. 22. 23. 24. 25. 26. 27. 28. 29.]\n");
    CHECK(jot_format(x, text, sizeof text) == 48 && !strcmp(text, "f32 (2, 3)\n[[ 1.   "), "%s",
          text);
    CHECK(jot_format(x, NULL, 0) == 48, "its length");
    CHECK(!jot_print(jot_none()) && !jot_format(jot_none(), text, sizeof text) && !*text, "none");
}

int
main(void)
{
    jot_Config config = {.hooks = {.log = keep_log}, .backend = "interp", .cache_dir = ""};
    jot_Ctx *c;

    check_config_size();
    check_record_sizes();
    check_profile_size();
    check_environment();
    check_forbidden();
    check_positions("interp");
    check_positions("tcc");
    check_positions("cpu");
    config.check = 1;
    config.backend = "opencl";
    c = jot_open(&config);
    CHECK(jot_error(c) == JOT_EDEVICE || (jot_error(c) == JOT_EUSE
          && strstr(jot_message(c), "opencl is a device")), "%s", jot_message(c));
    jot_close(c);
    config.check = 0;
    config.backend = "interp";
    c = jot_open(&config);
    check_lists(c);
    check_kept(c);
    check_accessors(c);
    check_print(c);
    jot_close(c);
    return DONE();
}
