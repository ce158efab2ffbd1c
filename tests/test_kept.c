/* tests/test_kept.c - texts of kernels that are kept on disk: a process that finds them builds and
 * prints nothing, and computes the same bits; what is another build's, of another configuration,
 * damaged or without its compiled function is not taken; graphs that differ only where the file's
 * name does not look are told apart by their keys.
 *
 * Guards: plan/tier/kept.c, backends/cpu/texts.c, backends/host/library.c (jot_library_self). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "nn.h"
#include "tests/test.h"
#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIDE = 12, ELEMENTS = 8 * SIDE * SIDE, OUTS = 8 * 6 };

static char cache[300], logged[4000];

static void
note(void *ud, const char *text, size_t n)
{
    size_t at = strlen(logged);

    (void)ud;
    snprintf(logged + at, sizeof logged - at, "%.*s", (int)n, text);
}

static const char *
variable(void *ud, const char *name)
{
    (void)ud;
    return !strcmp(name, "PATH") || !strcmp(name, "TMPDIR") ? getenv(name) : NULL;
}

/* What a graph is like: where its window begins and ends, what lies outside of it; how it is
 * planned. */
typedef struct {
    int from, to;
    double outside;
    const char *precision, *layout, *policy;
    bool other, evaluated;     /* expressions were met before; not a function */
} How;

typedef struct { jot_Stats s; float y[OUTS]; bool ok; } Ran;

/* A convolution, whose weights are copied and whose image gets a border, a window of it by
 * conditions, a product and a softmax. */
static jot_Var
net(jot_Ctx *c, jot_Var x, const How *how)
{
    static const jot_Conv conv = {.pad = {1, 1}};
    static float w[8 * 8 * 9], v[8 * 6 * SIDE];
    char lo[20], hi[20];
    jot_Var y;

    for (int k = 0; k < 8 * 8 * 9; k++)
        w[k] = (float)(k % 17 - 8) / 40;
    for (int k = 0; k < 8 * 6 * SIDE; k++)
        v[k] = (float)(k % 23 - 11) / 50;
    snprintf(lo, sizeof lo, "i3 >= %d", how->from);
    snprintf(hi, sizeof hi, "i3 < %d", how->to);
    y = jot_relu(jot_conv2d(x, jot_array(c, JOT_F32, JOT_SHAPE(8, 8, 3, 3), w), &conv));
    y = jot_reindex_ex(y, JOT_SHAPE(1, 8, SIDE, SIDE), JOT_INDEX("i0", "i1", "i2", "i3"),
                       JOT_INDEX(lo, hi), how->outside, jot_vars(0, NULL));
    y = jot_sum(y, JOT_DIMS(2));
    y = jot_matmul(jot_reshape(y, JOT_SHAPE(8, SIDE)),
                   jot_array(c, JOT_F32, JOT_SHAPE(SIDE, 6), v));
    return jot_softmax(y, 1);
}

static Ran
run(const How *how)
{
    static float x[ELEMENTS];
    jot_Config config = {.backend = "cpu", .cache_dir = cache, .deterministic = 1, .threads = 1,
                         .precision = how->precision, .layout = how->layout,
                         .policy = how->policy, .hooks = {.log = note, .getenv = variable}};
    jot_Ctx *c = jot_open(&config);
    Ran r = {.ok = false};
    jot_Var in, y;

    for (int k = 0; k < ELEMENTS; k++)
        x[k] = (float)(k * 2654435761u >> 8) / (1 << 24) - 0.5f;
    logged[0] = 0;
    if (how->other)
        jot_item(jot_sum(jot_reindex(jot_array(c, JOT_F32, JOT_SHAPE(7, 7), x), JOT_SHAPE(7),
                                     JOT_INDEX("3*i0 % 7", "6 - i0")), JOT_ALL_DIMS));
    r.s = jot_stats(c);
    for (int k = 0; k < (how->evaluated ? 3 : 1); k++) {
        jot_push(c);
        in = jot_array(c, JOT_F32, JOT_SHAPE(1, 8, SIDE, SIDE), x);
        y = net(c, in, how);
        if (how->evaluated) {
            r.ok = jot_copy(y, r.y, sizeof r.y);
        } else {
            jot_Func f = jot_compile(c, JOT_VARS(in), JOT_VARS(y));
            r.ok = true;
            for (int i = 0; i < 3; i++)
                r.ok &= jot_call(f, JOT_INS(JOT_IN(x, sizeof x)), JOT_OUTS(JOT_OUT(r.y, sizeof r.y)));
        }
        jot_pop(c);
    }
    CHECK(r.ok, "%s", jot_message(c));
    uint64_t built = r.s.groups_built, compiled = r.s.kernels_compiled;
    r.s = jot_stats(c);
    r.s.groups_built -= built;
    r.s.kernels_compiled -= compiled;
    jot_close(c);
    return r;
}

/* Entries of texts, or all others: go (cut < 0), or lose a byte at `cut` sixteenths of their
 * length. How many there are. */
static int
entries(bool texts, int cut)
{
    DIR *dir = opendir(cache);
    struct dirent *e;
    char path[600], head[70];
    int n = 0;

    while (dir && (e = readdir(dir)) != NULL) {
        snprintf(path, sizeof path, "%s/%s", cache, e->d_name);
        FILE *f = fopen(path, "r+");
        size_t got = f ? fread(head, 1, sizeof head - 1, f) : 0;
        bool is = got > 62 && !memcmp(head + 56, "texts\n", 6);
        if (!strstr(e->d_name, ".jot") || is != texts) {
            if (f)
                fclose(f);
            continue;
        }
        n++;
        if (cut >= 0 && cut < 16) {
            fseek(f, 0, SEEK_END);
            long at = ftell(f) * cut / 16;
            fseek(f, at, SEEK_SET);
            int was = fgetc(f);
            fseek(f, at, SEEK_SET);
            fputc(was ^ 4, f);
        }
        fclose(f);
        if (cut < 0)
            unlink(path);
    }
    if (dir)
        closedir(dir);
    return n;
}

static const How plain = {1, SIDE - 1, 0, NULL, NULL, NULL, false, false};

/* Nothing is built, nothing compiled, and the bits are the first ones. */
static void
same(const How *how, const Ran *first, const char *what)
{
    Ran r = run(how);

    CHECK(r.s.groups_built == 0 && r.s.kernels_compiled == 0 && r.s.groups_known > 0
          && !memcmp(r.y, first->y, sizeof r.y) && !logged[0],
          "%s: %d groups built, %d known, %d kernels compiled, %s values: %s", what,
          (int)r.s.groups_built, (int)r.s.groups_known, (int)r.s.kernels_compiled,
          memcmp(r.y, first->y, sizeof r.y) ? "other" : "the same", logged);
}

static void
test_second(void)
{
    How how = plain;
    Ran first = run(&how), r;

    CHECK(first.s.groups_built > 1 && first.s.kernels_compiled > 2, "%d groups, %d kernels",
          (int)first.s.groups_built, (int)first.s.kernels_compiled);
    CHECK(entries(true, 99) == 1, "%d entries of texts", entries(true, 99));
    same(&how, &first, "the second process");
    how.other = true; /* numbers of expressions are others */
    run(&how);        /* its own, small graph is compiled */
    same(&how, &first, "behind another graph");
    how.other = false;
    how.evaluated = true;
    r = run(&how);
    CHECK(!memcmp(r.y, first.y, sizeof r.y), "evaluated, it has other values");
    same(&how, &first, "evaluated");
}

/* Conditions and what lies outside are not in the file's name: these share one. */
static void
test_keys(void)
{
    static const How like[] = {{2, SIDE - 1, 0, NULL, NULL, NULL, false, false},
                               {1, SIDE - 2, 0, NULL, NULL, NULL, false, false},
                               {1, SIDE - 1, 0.5, NULL, NULL, NULL, false, false}};
    Ran first = run(&plain), want, r;
    int files = entries(true, 99);

    for (int k = 0; k < 3; k++) {
        entries(true, -1);
        want = run(&like[k]); /* by itself */
        CHECK(memcmp(want.y, first.y, sizeof want.y), "%d: the same values", k);
        entries(true, -1);
        run(&plain);
        CHECK(entries(true, 99) == 1, "%d entries", entries(true, 99));
        r = run(&like[k]);
        CHECK(r.s.groups_built > 0 && !memcmp(r.y, want.y, sizeof r.y),
              "%d: %d groups built, %s values", k, (int)r.s.groups_built,
              memcmp(r.y, want.y, sizeof r.y) ? "other" : "the same");
        CHECK(entries(true, 99) == 1, "%d entries: the names differ", entries(true, 99));
    }
    CHECK(files > 0, "nothing was kept");
}

static void
test_configured(void)
{
    How how = plain;
    Ran r;

    for (int k = 0; k < 2; k++) {
        how = plain;
        *(k ? &how.policy : &how.layout) = k ? "paper" : "rowmajor";
        r = run(&how);
        CHECK(r.s.groups_built > 0, "%d: nothing was built", k);
        same(&how, &r, "the same configuration");
    }
}

static void
test_damaged(void)
{
    How how = plain;
    Ran first, r;

    entries(true, -1);
    first = run(&how);
    for (int cut = 0; cut < 16; cut++) {
        entries(true, cut);
        r = run(&how);
        CHECK(r.s.groups_built > 0 && r.s.kernels_compiled == 0 && strstr(logged, "damaged")
              && !memcmp(r.y, first.y, sizeof r.y), "%d/16: %d groups built: %s", cut,
              (int)r.s.groups_built, logged);
        same(&how, &first, "written again");
    }
    entries(false, -1);
    r = run(&how);
    CHECK(r.s.kernels_compiled > 2 && r.s.groups_built > 1 && !memcmp(r.y, first.y, sizeof r.y),
          "without functions: %d groups built, %d kernels compiled", (int)r.s.groups_built,
          (int)r.s.kernels_compiled);
    same(&how, &first, "compiled again");
}

/* This program in a file of its own is another build, and so is what takes that file's place, also
 * while the former runs on: each prints its own, and finds that again. */
static void
test_builds(const char *dir)
{
    static const char *const is[] = {"built", "known", "replaced", "built", "known"};
    char copy[1000], child[1600];

    snprintf(copy, sizeof copy, "cp /proc/%ld/exe %s/new && mv -f %s/new %s/other", (long)getpid(),
             dir, dir, dir);
    snprintf(child, sizeof child, "%s/other %s", dir, cache);
    for (int k = 0; k < 5; k++) {
        if (k == 0)
            CHECK(!system(copy), "no copy");
        if (k == 2)
            snprintf(child, sizeof child, "%s/other %s '%s'", dir, cache, copy);
        int code = system(child), want = strcmp(is[k], "known") ? 1 : 0;
        CHECK(WIFEXITED(code) && WEXITSTATUS(code) == want, "%d, %s: %x", k, is[k], (unsigned)code);
        snprintf(child, sizeof child, "%s/other %s", dir, cache);
    }
}

/* Is there a compiler whose objects can be kept? */
static bool
have_cc(void)
{
    jot_Config config = {.backend = "cc", .cache_dir = "", .hooks = {.log = note, .getenv = variable}};
    jot_Ctx *c = jot_open(&config);
    bool have = c && !jot_error(c);

    jot_close(c);
    return have && !access("/proc/self/maps", R_OK);
}

/* CACHE [COMMAND]: 1 if something was built with this cache, once the command has run. */
int
main(int argc, char **argv)
{
    char dir[] = "/tmp/jot-test-XXXXXX", command[400];

    if (argc > 1) {
        snprintf(cache, sizeof cache, "%s", argv[1]);
        return argc > 2 && system(argv[2]) ? 2 : run(&plain).s.groups_built > 0;
    }
    if (!have_cc()) {
        SKIP("no C compiler, or a system that does not tell what is loaded");
        return DONE();
    }
    if (!mkdtemp(dir))
        return 1;
    snprintf(cache, sizeof cache, "%s/cache", dir);
    test_second();
    test_keys();
    test_configured();
    test_damaged();
    test_builds(dir);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command) ? 1 : DONE();
}
