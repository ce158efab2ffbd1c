/* tests/test_tune.c - schedules by measurement: with a clock that the test turns, so that it says
 * which schedule is the fastest; what is timed and compiled by the figures of jot_stats; the file
 * that remembers it, read by others, damaged at each byte, written by two, or not to be written at
 * all; memory refused at each allocation.
 *
 * Guards: backends/files/tune.c, plan/tier/trial.c, plan/tier/tune.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "plan/tier/tune.h"
#include "tests/hooks.h"
#include "tests/test.h"
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TURNS = 7, MEMBERS = 4, FILE_MOST = 1 << 16 };

static char place[200];
static const char *backend = "tcc";

/* Time passes by the schedule that is being timed: of `members` in turn the one named is faster;
 * with a seed all are drawn. */
typedef struct {
    jot_Ctx *c;
    int64_t t;
    int members, fastest;
    unsigned seed;
    size_t calls, refuse;   /* allocations; the one that is refused */
} World;

static int64_t
turned(void *ud)
{
    World *w = ud;
    int64_t session = w->c ? (int64_t)jot_stats(w->c).tune_sessions : 0, i = session - 1, member;

    if (session && w->seed)
        w->t += 2000000 + (int64_t)((uint64_t)session * w->seed * 2654435761u >> 8) % 2000000;
    else if (session) {
        member = i < TURNS * w->members            ? i % w->members
                 : i % 2 == TURNS * w->members % 2 ? 0
                                                   : w->fastest;
        w->t += member == w->fastest ? 2000000 : 2500000;
    }
    return w->t;
}

/* Its ud is a World. */
static void
keep_what(void *ud, const char *text, size_t nbytes)
{
    (void)ud;
    keep_log(NULL, text, nbytes);
}

static jot_Ctx *
open_tuned(World *w, const char *cache, int tune, const char *dump)
{
    jot_Config config = {0};

    config.backend = backend;
    config.cache_dir = cache;
    config.dump = dump;
    config.layout = "rowmajor"; /* one kernel */
    config.threads = 1;
    config.tune = tune;
    config.hooks.log = keep_what;
    if (w) {
        config.hooks.now = turned;
        config.hooks.ud = w;
    }
    forget_log();
    w = w ? w : &(World){0};
    w->c = NULL;
    w->t = 0;
    w->c = jot_open(&config);
    return w->c;
}

/* ---- programs ----------------------------------------------------------------------------- */

enum { ROWS = 150, COLUMNS = 70, INNER = 40 };

static jot_Var
numbers(jot_Ctx *c, int rows, int columns)
{
    static float v[ROWS * COLUMNS];

    for (int i = 0; i < rows * columns; i++)
        v[i] = (float)(i * 7 % 32 - 16) / 8;
    return jot_param(c, JOT_F32, JOT_SHAPE(rows, columns), v);
}

/* One kernel each: a convolution, a product, a transposition. All sums are exact. */
static jot_Var
program(jot_Ctx *c, int which)
{
    jot_Var x = numbers(c, ROWS, COLUMNS);

    if (which == 0)
        return jot_conv2d(jot_reshape(x, JOT_SHAPE(1, 3, ROWS / 3, COLUMNS)),
                          jot_reshape(numbers(c, 8, 27), JOT_SHAPE(8, 3, 3, 3)), NULL);
    if (which == 1)
        return jot_matmul(x, numbers(c, COLUMNS, INNER));
    return jot_add(jot_transpose(x, JOT_INTS(1, 0)), numbers(c, COLUMNS, ROWS));
}

static float expected[3][8 * ROWS * COLUMNS];

static void
expect(void)
{
    jot_Config config = {0};
    jot_Ctx *c;

    config.backend = "interp";
    c = jot_open(&config);
    for (int i = 0; i < 3; i++) {
        jot_Var y = program(c, i);
        const float *v = jot_data(y);

        CHECK(v != NULL, "%s", jot_message(c));
        if (v)
            memcpy(expected[i], v, (size_t)jot_nelem(y) * sizeof *v);
    }
    jot_close(c);
}

/* Its results are as they should be; the figures in *stats. */
static bool
right(jot_Ctx *c, int which, jot_Stats *stats)
{
    jot_Var y = program(c, which);
    const float *v = jot_data(y);
    bool ok = v && !memcmp(v, expected[which], (size_t)jot_nelem(y) * sizeof *v);

    if (stats)
        *stats = jot_stats(c);
    return ok;
}

/* ---- files --------------------------------------------------------------------------------- */

static const char *
path_of(const char *dir)
{
    static char path[300];

    snprintf(path, sizeof path, "%s/tuned.json", dir);
    return path;
}

static size_t
slurp(const char *dir, char *text)
{
    FILE *f = fopen(path_of(dir), "rb");
    size_t n = f ? fread(text, 1, FILE_MOST - 1, f) : 0;

    if (f)
        fclose(f);
    text[n] = 0;
    return n;
}

static void
spill(const char *dir, const char *text, size_t n)
{
    FILE *f = fopen(path_of(dir), "wb");

    if (f && fwrite(text, 1, n, f) != n)
        perror(path_of(dir));
    if (f)
        fclose(f);
}

static const char *
fresh(const char *name)
{
    static char dir[4][260];
    static int next;
    char *to = dir[next++ % 4], command[300];

    snprintf(to, sizeof dir[0], "%s/%s", place, name);
    snprintf(command, sizeof command, "rm -rf %s", to);
    if (system(command))
        perror(command);
    return to;
}

/* ---- tests --------------------------------------------------------------------------------- */

static char shown[MEMBERS][LOG];

/* Each of the four comes to be the fastest: that is the one that is kept. */
static void
check_kept(int which)
{
    static char model[LOG];
    jot_Stats s;
    jot_Ctx *c = open_tuned(NULL, "", 0, "s");

    CHECK(right(c, which, &s), "program %d by price: %s", which, jot_message(c));
    CHECK(s.tune_kernels == 0 && s.tune_recalled == 0, "measured with tune off");
    strcpy(model, logged);
    jot_close(c);
    for (int i = 0; i < MEMBERS; i++) {
        World w = {.members = MEMBERS, .fastest = i};
        uint64_t sessions = TURNS * MEMBERS + (i ? 2 * TURNS : 0);

        c = open_tuned(&w, "", MEMBERS - 1, "s");
        CHECK(right(c, which, &s), "program %d, schedule %d: %s", which, i, jot_message(c));
        CHECK(s.tune_kernels == 1 && s.tune_schedules == MEMBERS && s.tune_sessions == sessions,
              "program %d, schedule %d: %d kernels, %d schedules, %d sessions", which, i,
              (int)s.tune_kernels, (int)s.tune_schedules, (int)s.tune_sessions);
        CHECK(s.kernels_compiled == MEMBERS, "%d compiled", (int)s.kernels_compiled);
        strcpy(shown[i], logged);
        CHECK(i ? strcmp(model, shown[i]) != 0 : !strcmp(model, shown[i]),
              "program %d, schedule %d: %s", which, i, shown[i]);
        for (int j = 0; j < i; j++)
            CHECK(strcmp(shown[i], shown[j]) != 0, "program %d: %d and %d are one", which, i, j);
        CHECK(right(c, which, &s) && s.tune_kernels == 1, "it is measured once");
        jot_close(c);
    }
}

/* Whatever the clock says, the result is right. */
static void
check_drawn(int which)
{
    for (unsigned seed = 1; seed <= 4; seed++) {
        World w = {.seed = seed};
        jot_Stats s;
        jot_Ctx *c = open_tuned(&w, "", 14, NULL);

        CHECK(right(c, which, &s), "program %d, seed %u: %s", which, seed, jot_message(c));
        CHECK(s.tune_schedules > MEMBERS && s.tune_schedules <= 15, "%d", (int)s.tune_schedules);
        jot_close(c);
    }
}

static bool
remembers(const char *dir)
{
    static char text[FILE_MOST];

    return slurp(dir, text) > 0;
}

/* Measured once, taken by all that come after: with tune on or off, on any number of threads, in
 * other processes. */
static void
check_remembered(int which)
{
    static char first[LOG];
    const char *dir = fresh("remembered");
    World w = {.members = MEMBERS, .fastest = 2};
    jot_Ctx *c = open_tuned(&w, dir, MEMBERS - 1, "c");
    jot_Stats s;
    int status = 0;

    CHECK(right(c, which, NULL), "%s", jot_message(c));
    strcpy(first, logged);
    jot_close(c);
    CHECK(remembers(dir), "nothing in %s", dir);
    for (int tune = 0; tune < 4; tune += 3) {
        w.fastest = 0;
        c = open_tuned(&w, dir, tune, "c");
        CHECK(right(c, which, &s), "tune %d: %s", tune, jot_message(c));
        CHECK(s.tune_sessions == 0 && s.tune_recalled == 1 && s.tune_refused == 0,
              "tune %d: %d sessions, "
              "%d recalled",
              tune, (int)s.tune_sessions, (int)s.tune_recalled);
        CHECK(!strcmp(first, logged), "another text\n%s\n%s", first, logged);
        jot_close(c);
    }
    fflush(stdout);
    if (fork() == 0) {
        c = open_tuned(NULL, dir, 3, "c");
        _exit(!(right(c, which, &s) && s.tune_sessions == 0 && s.tune_recalled == 1
                && !strcmp(first, logged)));
    }
    wait(&status);
    CHECK(status == 0, "another process: %x", status);
}

static void
check_deterministic(void)
{
    const char *dir = fresh("deterministic");
    World w = {.members = MEMBERS, .fastest = 1};
    jot_Config config = {0};
    jot_Stats s;
    jot_Ctx *c = open_tuned(&w, dir, MEMBERS - 1, NULL);

    right(c, 0, NULL);
    jot_close(c);
    config.backend = backend;
    config.cache_dir = dir;
    config.layout = "rowmajor";
    config.tune = 3;
    config.deterministic = 1;
    c = jot_open(&config);
    CHECK(right(c, 0, &s) && s.tune_recalled == 0 && s.tune_kernels == 0, "%s", jot_message(c));
    jot_close(c);
}

/* What a file says that somebody wrote: a schedule of this kernel's is taken, anything else is
 * not. */
static void
check_written(void)
{
    static char one[FILE_MOST], two[FILE_MOST], text[FILE_MOST], taken[LOG], *at, *from, *end;
    const char *dir = fresh("written");
    World w = {.members = MEMBERS, .fastest = 1};
    jot_Stats s;
    jot_Ctx *c = open_tuned(&w, dir, MEMBERS - 1, "s");

    right(c, 1, NULL);
    jot_close(c);
    slurp(dir, one);
    unlink(path_of(dir));
    w.fastest = 2;
    c = open_tuned(&w, dir, MEMBERS - 1, "s");
    right(c, 1, NULL);
    strcpy(taken, logged);
    jot_close(c);
    slurp(dir, two);
    c = open_tuned(NULL, dir, 0, "s");
    CHECK(right(c, 1, &s) && s.tune_recalled == 1 && !strcmp(taken, logged), "%s", logged);
    jot_close(c);
    spill(dir, one, strlen(one));
    c = open_tuned(NULL, dir, 0, "s");
    CHECK(right(c, 1, &s) && s.tune_recalled == 1 && strcmp(taken, logged), "%s", logged);
    jot_close(c);
    /* the path of one, the schedule of the other */
    at = strstr(one, "\"path\""), from = strstr(two, "\"path\"");
    end = from ? strchr(from, '\n') : NULL;
    if (at && end) {
        snprintf(text, sizeof text, "%.*s%.*s%s", (int)(at - one), one, (int)(end - from), from,
                 strchr(at, '\n'));
        spill(dir, text, strlen(text));
        c = open_tuned(NULL, dir, 0, NULL);
        CHECK(right(c, 1, &s) && s.tune_recalled == 0 && s.tune_refused == 1, "%d",
              (int)s.tune_refused);
        CHECK(strstr(logged, "is not one of its own"), "log: %s", logged);
        jot_close(c);
        w.fastest = 3;
        c = open_tuned(&w, dir, MEMBERS - 1, NULL); /* measured anew, and mended */
        CHECK(right(c, 1, &s) && s.tune_refused == 1 && s.tune_kernels == 1, "%s", jot_message(c));
        jot_close(c);
        c = open_tuned(NULL, dir, 0, NULL);
        CHECK(right(c, 1, &s) && s.tune_recalled == 1 && s.tune_refused == 0, "%s", jot_message(c));
        jot_close(c);
    } else
        CHECK(false, "no path in %s", one);
}

/* Cut anywhere, flipped anywhere, or nothing of the kind. */
static void
check_damaged(void)
{
    static const char *const other[] = {"",
                                        "{}",
                                        "[1, 2",
                                        "{\"jot\": 3}",
                                        "{\"jot\": \"tuned 1\"}",
                                        "{\"jot\": \"tuned 1\", \"kernels\": []}",
                                        "null",
                                        "\xff\xfe"};
    static char good[FILE_MOST], text[FILE_MOST];
    const char *dir = fresh("damaged");
    World w = {.members = MEMBERS, .fastest = 1};
    jot_Ctx *c = open_tuned(&w, dir, MEMBERS - 1, NULL);
    size_t n, i, kinds = sizeof other / sizeof *other;
    int recalled = 0, refused = 0, wrong = 0;

    right(c, 1, NULL);
    jot_close(c);
    n = slurp(dir, good);
    for (i = 0; i < 2 * n + kinds; i++) {
        jot_Stats s;
        size_t size = i < n ? n : i < 2 * n ? i - n : strlen(other[i - 2 * n]);

        if (i >= n && i < 2 * n && i % 11) /* cut at some places */
            continue;
        memcpy(text, i < 2 * n ? good : other[i - 2 * n], size);
        if (i < n)
            text[i] = (char)(text[i] ^ 1 << i % 8);
        spill(dir, text, size);
        c = open_tuned(NULL, dir, 0, NULL);
        wrong += !right(c, 1, &s) || jot_error(c);
        recalled += (int)s.tune_recalled;
        refused += (int)s.tune_refused;
        jot_close(c);
    }
    CHECK(wrong == 0, "%d of %d", wrong, (int)(2 * n));
    CHECK(recalled > 0 && recalled < (int)n && refused > 0, "%d recalled, %d refused of %d",
          recalled, refused, (int)n);
    w.fastest = 2;
    c = open_tuned(&w, dir, MEMBERS - 1, NULL); /* the last of them is replaced */
    right(c, 1, NULL);
    jot_close(c);
    CHECK(slurp(dir, text) > n / 2, "the file was not made anew: %s", text);
}

/* Two at a time, each with kernels of its own: both are remembered. */
static void
check_two(void)
{
    const char *dir = fresh("two");
    World w[2] = {{.members = MEMBERS, .fastest = 1}, {.members = MEMBERS, .fastest = 2}};
    jot_Ctx *a = open_tuned(&w[0], dir, MEMBERS - 1, NULL),
            *b = open_tuned(&w[1], dir, MEMBERS - 1, NULL);
    jot_Stats s;
    int status = 0, bad = 0;

    CHECK(right(a, 0, NULL) && right(b, 1, NULL), "%s %s", jot_message(a), jot_message(b));
    jot_close(a);
    jot_close(b);
    a = open_tuned(NULL, dir, 0, NULL);
    CHECK(right(a, 0, NULL) && right(a, 1, &s) && s.tune_recalled == 2, "%d", (int)s.tune_recalled);
    jot_close(a);
    fflush(stdout);
    for (int k = 0; k < 2; k++)
        if (fork() == 0) { /* the same file, again and again */
            bool ok = true;

            for (int i = 0; i < 10; i++) {
                World own = {.members = MEMBERS, .fastest = i % MEMBERS};
                jot_Ctx *c = open_tuned(&own, dir, MEMBERS - 1, NULL);

                ok = ok && right(c, k ? i % 3 : 2 - i % 3, NULL) && !jot_error(c);
                jot_close(c);
            }
            _exit(!ok);
        }
    for (int k = 0; k < 2; k++) {
        wait(&status);
        bad += status != 0;
    }
    CHECK(bad == 0, "%d of two processes failed", bad);
    a = open_tuned(NULL, dir, 0, NULL);
    CHECK(right(a, 0, NULL) && right(a, 1, NULL) && right(a, 2, &s), "%s", jot_message(a));
    CHECK(s.tune_recalled >= 2 && s.tune_refused == 0, "%d recalled", (int)s.tune_recalled);
    jot_close(a);
}

/* A line of a schedule may be of any length. */
static void
check_long(void)
{
    enum { LONG = 5000 };
    char schedule[LONG + 16];
    const char *dir = fresh("long");
    jot_Ctx *c = open_tuned(NULL, dir, 0, NULL);
    Text path = {NULL, NULL, 0, 0}, read = {NULL, NULL, 0, 0};
    Tuned tuned = {.key = "0123456789abcdef0123456789abcdef"};

    memset(schedule, 'm', LONG);
    strcpy(schedule + LONG, "\n%4: last\n");
    tuned.what = tuned.machine = "";
    tuned.path = "1 c8a";
    tuned.schedule = schedule;
    c->tune_store->keep(c, &tuned);
    jot_close(c);
    c = open_tuned(NULL, dir, 0, NULL);
    path.mem = read.mem = &c->mem;
    CHECK(c->tune_store->find(c, tuned.key, &path, &read), "%s", logged);
    CHECK(path.s && !strcmp(path.s, tuned.path), "%s", path.s ? path.s : "");
    CHECK(read.s && !strcmp(read.s, schedule), "%d of %d characters", (int)read.n,
          (int)strlen(schedule));
    jot_text_free(&path);
    jot_text_free(&read);
    jot_close(c);
}

/* Where nothing can be written the context remembers for itself. */
static void
check_unwritable(void)
{
    const char *dir = fresh("unwritable");
    World w = {.members = MEMBERS, .fastest = 1};
    char inner[400];
    jot_Stats s;
    jot_Ctx *c;

    mkdir(dir, 0700);
    mkdir(path_of(dir), 0700);
    snprintf(inner, sizeof inner, "%s/mine", path_of(dir));
    mkdir(inner, 0700); /* nothing takes its name */
    c = open_tuned(&w, dir, MEMBERS - 1, NULL);
    CHECK(right(c, 0, NULL) && right(c, 0, &s) && s.tune_kernels == 1, "%s", jot_message(c));
    CHECK(strstr(logged, "is not kept"), "log: %s", logged);
    jot_close(c);
    c = open_tuned(&w, "/proc/no/such/place", MEMBERS - 1, NULL);
    CHECK(right(c, 0, &s) && s.tune_kernels == 1, "%s", jot_message(c));
    jot_close(c);
}

static void *
refusing(void *ud, void *p, size_t old_nbytes, size_t new_nbytes)
{
    World *w = ud;

    (void)old_nbytes;
    if (!new_nbytes)
        return free(p), NULL;
    if (++w->calls == w->refuse)
        return NULL;
    return realloc(p, new_nbytes);
}

/* The n-th allocation is refused, for every n: an error that says so, or the right result; and
 * after it all is well. `dir`: with what is remembered there. */
static void
check_refused(const char *dir, int step)
{
    int wrong = 0, rounds = 0;
    bool whole = false;

    for (size_t n = 1; !whole && n < 100000; n += (size_t)step, rounds++) {
        World w = {.members = 3, .fastest = 1, .refuse = n};
        jot_Config config = {0};
        jot_Var y;
        jot_Ctx *c;
        const float *v;

        config.backend = backend;
        config.cache_dir = dir;
        config.layout = "rowmajor";
        config.tune = 2;
        config.give_back = 1;
        config.hooks.realloc = refusing;
        config.hooks.now = turned;
        config.hooks.log = keep_what;
        config.hooks.ud = &w;
        forget_log();
        c = w.c = jot_open(&config);
        whole = w.calls < n;
        if (!c || jot_error(c)) { /* refused while it was opened */
            wrong += c && jot_error(c) != JOT_EMEM && jot_error(c) != JOT_EDEVICE;
            jot_close(c);
            continue;
        }
        y = program(c, 1);
        v = jot_data(y);
        wrong += v ? memcmp(v, expected[1], sizeof(float) * ROWS * INNER) != 0
                   : jot_error(c) != JOT_EMEM;
        if (!v) {
            jot_clear(c);
            v = jot_data(program(c, 1));
            wrong += !v || memcmp(v, expected[1], sizeof(float) * ROWS * INNER);
        }
        whole = w.calls < n;
        w.c = NULL;
        jot_close(c);
    }
    CHECK(whole && wrong == 0, "%d wrong in %d rounds", wrong, rounds);
}

/* Bit for bit on any number of threads. */
static void
check_threads(void)
{
    static float first[ROWS * INNER];
    const char *dir = fresh("threads");
    World w = {.members = MEMBERS, .fastest = 3};
    jot_Ctx *c = open_tuned(&w, dir, MEMBERS - 1, NULL);
    static const int threads[] = {1, 2, 3, 7};

    right(c, 1, NULL);
    jot_close(c);
    for (int i = 0; i < 4; i++) {
        jot_Config config = {0};
        const float *v;
        jot_Var x;

        config.backend = backend;
        config.cache_dir = dir;
        config.layout = "rowmajor";
        config.threads = threads[i];
        c = jot_open(&config);
        x = jot_scale(numbers(c, ROWS, COLUMNS), 1.0 / 3);
        jot_data(x);
        v = jot_data(jot_matmul(x, numbers(c, COLUMNS, INNER)));
        CHECK(v && jot_stats(c).tune_recalled >= 1, "%s", jot_message(c));
        if (v && i == 0)
            memcpy(first, v, sizeof first);
        CHECK(v && !memcmp(v, first, sizeof first), "%d threads", threads[i]);
        jot_close(c);
    }
}

static void
check_arguments(void)
{
    jot_Config config = {0};
    jot_Ctx *c;

    config.tune = -2;
    c = jot_open(&config);
    CHECK(jot_error(c) == JOT_EUSE && strstr(jot_message(c), "tune is -2"), "%s", jot_message(c));
    jot_close(c);
    setenv("JOT_TUNE", "many", 1);
    c = jot_open(NULL);
    CHECK(jot_error(c) == JOT_EUSE && strstr(jot_message(c), "JOT_TUNE"), "%s", jot_message(c));
    jot_close(c);
    unsetenv("JOT_TUNE");
}

int
main(int argc, char **argv)
{
    int stride = argc > 1 ? atoi(argv[1]) : test_many(7, 1);
    char command[300];
    World w = {.members = MEMBERS, .fastest = 1};
    jot_Ctx *c;

    snprintf(place, sizeof place, "/tmp/jot-tune-XXXXXX");
    if (!mkdtemp(place))
        return perror(place), 1;
    c = open_tuned(NULL, "", 0, NULL);
    if (jot_error(c))
        backend = "cc";
    jot_close(c);
    c = open_tuned(NULL, "", 0, NULL);
    if (jot_error(c)) {
        SKIP("%s", jot_message(c));
        jot_close(c);
        return DONE();
    }
    jot_close(c);
    expect();
    check_arguments();
    for (int which = 0; which < 3; which++)
        check_kept(which);
    if (!strcmp(backend, "tcc")) {
        for (int which = 0; which < 3; which++)
            check_drawn(which);
        check_refused("", stride);
    } else
        SKIP("what takes hundreds of compiles: no libtcc");
    c = open_tuned(&w, fresh("probe"), MEMBERS - 1, NULL);
    right(c, 0, NULL);
    jot_close(c);
    if (strstr(logged, "libcjson is not here"))
        SKIP("what is remembered in a file: libcjson is not here");
    else {
        for (int which = 0; which < 3; which++)
            check_remembered(which);
        check_deterministic();
        check_written();
        check_damaged();
        check_long();
        check_unwritable();
        check_threads();
        if (!strcmp(backend, "tcc")) {
            check_two();
            check_refused(fresh("refused"), stride);
        }
    }
    snprintf(command, sizeof command, "rm -rf %s", place);
    if (system(command))
        perror(command);
    return DONE();
}
