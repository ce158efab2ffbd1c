/* tests/test_flags.c - that no compiler gets generated code wrong: drawn programs evaluated by the
 * kernels that each compiler on PATH makes with the shipped flags and with -O0 behind them. Texts
 * and schedules are the same, so that every bit is (a NaN is any NaN).
 *
 *     test_flags N FIRST             N programs, from seed FIRST on
 *     JOT_DUMP=ck test_flags 1 SEED  the kernels of one of them
 *
 * Programs are those of tests/wild_nets.h and wild_layers.h. A batch of them is a process of its
 * own and one evaluation for each compiler and flag; when it differs each program is run alone,
 * too.
 *
 * Guards: ccode/emit/dialect.c, ccode/emit/dialect_vector.c, ccode/emit/expr.c, ccode/emit/part.c. */
#include "ops/graph.h"
#include "tests/test.h"
#include "tests/wild_nets.h"
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCH = 8, MOST = 20000, PATIENCE = 900 };

static const char *const names[] = {
    "gcc", "clang", "gcc-10", "gcc-11", "gcc-12", "gcc-13", "gcc-14", "clang-13", "clang-14",
    "clang-15", "clang-16", "clang-17", "clang-18", "clang-19", "clang-20", "clang-21", "clang-22",
};
typedef struct { char name[16], path[PATH_MAX], plain[64]; } Compiler;
static Compiler compilers[sizeof names / sizeof *names];
static int ncompilers;

/* What a batch says to who started it. */
typedef struct { int passed, failed; char stage[64]; } Told;
static Told *told;

/* ---- compilers ---- */

/* The file that a command is, links followed. */
static bool
find(const char *name, char path[PATH_MAX])
{
    const char *at = getenv("PATH");
    char one[PATH_MAX];

    for (; at && *at; at += *at == ':') {
        size_t n = strcspn(at, ":");
        snprintf(one, sizeof one, "%.*s/%s", (int)n, at, name);
        if (access(one, X_OK) == 0 && realpath(one, path))
            return true;
        at += n;
    }
    return false;
}

/* A command whose last argument is -O0; -Og where the compiler dies of that (gcc 11 and 12 have no
 * instruction for the upper half of a vector in memory, which with -O0 alone they ask for). */
static bool
write_plain(const Compiler *k)
{
    FILE *to = fopen(k->plain, "w");

    if (!to)
        return false;
    fprintf(to, "#!/bin/sh\n'%s' \"$@\" -O0 2>/dev/null || exec '%s' \"$@\" -Og\n", k->path,
            k->path);
    return fclose(to) == 0 && chmod(k->plain, 0755) == 0;
}

/* Each compiler once, though it may have several names. */
static void
find_compilers(const char *dir)
{
    char missing[400] = "";

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        Compiler *k = &compilers[ncompilers];
        int same = 0;
        if (!find(names[i], k->path)) {
            snprintf(missing + strlen(missing), sizeof missing - strlen(missing), " %s", names[i]);
            continue;
        }
        while (same < ncompilers && strcmp(compilers[same].path, k->path))
            same++;
        if (same < ncompilers)
            continue;
        snprintf(k->name, sizeof k->name, "%s", names[i]);
        snprintf(k->plain, sizeof k->plain, "%s/%s", dir, names[i]);
        ncompilers += write_plain(k);
    }
    if (*missing)
        SKIP("not on PATH:%s", missing);
}

/* ---- programs ---- */

/* What a batch is evaluated by; programs of the same batch have the same, also one alone. */
static jot_Ctx *
open_on(uint64_t seed, const char *cc)
{
    static const char *const policies[] = {"reward", "reward", "paper", "none"};
    static const char *const targets[] = {"native", "native", "avx2", "sse", "native"};
    static const int lanes[] = {0, 0, 0, 0, 0, 4, 8, 16};
    Draw d = {.random = mixed(seed / BATCH ^ 0xf1a6)};
    char layout[24] = "chosen", schedule[24] = "default";
    jot_Config config = {.backend = "cc", .cache_dir = "", .cc = cc, .deterministic = 1};
    jot_Ctx *c;

    config.policy = policies[below(&d, 4)];
    config.target = targets[below(&d, 5)];
    config.lanes = lanes[below(&d, 8)];
    config.threads = (int)between(&d, 1, 2);
    if (chance(&d, 30))
        snprintf(layout, sizeof layout, "random:%d", (int)below(&d, 1000));
    if (chance(&d, 40))
        snprintf(schedule, sizeof schedule, "random:%d", (int)below(&d, 1000));
    config.layout = layout;
    config.schedule = schedule;
    c = jot_open(&config);
    if (jot_error(c) && strcmp(config.target, "native")) { /* a machine without these */
        jot_close(c);
        config.target = "native";
        c = jot_open(&config);
    }
    return c;
}

static bool
run_now(void *user, jot_Ctx *c, jot_Vars vars)
{
    bool ok;

    (void)user;
    jot_push(c);
    ok = jot_run(c, vars);
    jot_pop(c);
    return ok;
}

typedef struct { jot_DType dtype; int64_t nelem; char *data; } Value;
typedef struct { bool ok; char why[300]; Value value[OUTPUTS]; } Result;

/* A program that cannot be built is none: another compiler says the same of it. */
static bool
build(jot_Ctx *c, const Program *p, jot_Var *out, Result *r)
{
    static jot_Var var[VARS];

    r->ok = build_program(c, p, var, run_now, NULL);
    for (int k = 0; r->ok && k < p->nout; k++)
        out[k] = var[p->out[k]];
    snprintf(r->why, sizeof r->why, "%s", jot_message(c));
    jot_clear(c);
    return r->ok;
}

static void
keep(Result *r, const Program *p, const jot_Var *out)
{
    for (int k = 0; r->ok && k < p->nout; k++) {
        Value *v = &r->value[k];
        const void *data = jot_data(out[k]);
        size_t nbytes;
        v->dtype = jot_dtype(out[k]);
        v->nelem = jot_nelem(out[k]);
        nbytes = (size_t)v->nelem * jot_dtype_nbytes(v->dtype);
        r->ok = data && (v->data = malloc(nbytes + 1));
        if (r->ok)
            memcpy(v->data, data, nbytes);
    }
}

static void
evaluate(uint64_t seed, const char *cc, const Program *p, int n, Result *r)
{
    static jot_Var out[BATCH][OUTPUTS], all[BATCH * OUTPUTS];
    jot_Ctx *c = open_on(seed, cc);
    int nall = 0;

    memset(r, 0, (size_t)n * sizeof *r);
    for (int i = 0; i < n; i++)
        if (build(c, &p[i], out[i], &r[i]))
            for (int k = 0; k < p[i].nout; k++)
                all[nall++] = out[i][k];
    if (!jot_run(c, jot_vars(nall, all)))
        for (int i = 0; i < n; i++) {
            snprintf(r[i].why, sizeof r[i].why, "%s", jot_message(c));
            r[i].ok = false;
        }
    for (int i = 0; i < n; i++)
        keep(&r[i], &p[i], out[i]);
    jot_close(c);
}

static void
give(Result *r, int n)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < OUTPUTS; k++)
            free(r[i].value[k].data);
}

static bool
is_nan(const char *p, jot_DType dtype)
{
    jot_Scalar s = jot_scalar_read(p, dtype);
    return dtype >= JOT_F16 && s.f != s.f;
}

static bool
same(const Result *a, const Result *b, int nout, char *why, size_t room)
{
    if (a->ok != b->ok || (!a->ok && strcmp(a->why, b->why)))
        return snprintf(why, room, "\"%s\" and \"%s\"", a->why, b->why), false;
    for (int k = 0; a->ok && k < nout; k++) {
        const Value *x = &a->value[k], *y = &b->value[k];
        size_t each = jot_dtype_nbytes(x->dtype);
        for (int64_t i = 0; i < x->nelem; i++) {
            const char *p = x->data + (size_t)i * each, *q = y->data + (size_t)i * each;
            jot_Scalar s, t;
            if (!memcmp(p, q, each) || (is_nan(p, x->dtype) && is_nan(q, x->dtype)))
                continue;
            s = jot_scalar_read(p, x->dtype);
            t = jot_scalar_read(q, x->dtype);
            if (x->dtype >= JOT_F16)
                snprintf(why, room, "output %d, element %lld of %lld (%s): %.17g, %.17g with -O0", k,
                         (long long)i, (long long)x->nelem, jot_dtype_name(x->dtype), s.f, t.f);
            else
                snprintf(why, room, "output %d, element %lld of %lld (%s): %lld, %lld with -O0", k,
                         (long long)i, (long long)x->nelem, jot_dtype_name(x->dtype),
                         (long long)s.i, (long long)t.i);
            return false;
        }
    }
    return true;
}

/* ---- batches ---- */

/* Programs that want little, so that -O0 is quick. */
static void
draw_batch(uint64_t first, int n, Program *p)
{
    static Draw d;
    jot_Config config = {.backend = "interp", .cache_dir = ""};
    jot_Ctx *c = jot_open(&config);

    for (int i = 0; i < n; i++) {
        jot_push(c);
        if ((first + (uint64_t)i) % 4 == 3)
            draw_network(&d, &p[i], c, first + (uint64_t)i);
        else
            draw_program(&d, &p[i], c, first + (uint64_t)i);
        while (p[i].nout > 1 && jot_nelem(d.var[p[i].out[p[i].nout - 1]]) > MOST)
            p[i].nout--;
        drop_dead(&p[i]);
        jot_clear(c);
        jot_pop(c);
    }
    jot_close(c);
}

static void
differ(const Compiler *k, uint64_t seed, const Program *p, const char *why)
{
    static Result a[1], b[1];
    char alone[600] = "the same alone";

    evaluate(seed, k->path, p, 1, a);
    evaluate(seed, k->plain, p, 1, b);
    same(a, b, p->nout, alone, sizeof alone);
    printf("seed %llu, %s: %s; alone: %s\n", (unsigned long long)seed, k->name, why, alone);
    print_program(stdout, p);
    fflush(stdout);
    give(a, 1);
    give(b, 1);
}

static void
check_batch(uint64_t first, int n)
{
    static Program p[BATCH];
    static Result a[BATCH], b[BATCH];
    char why[800];

    snprintf(told->stage, sizeof told->stage, "drawing");
    draw_batch(first, n, p);
    for (int k = 0; k < ncompilers; k++) {
        snprintf(told->stage, sizeof told->stage, "%.15s", compilers[k].name);
        evaluate(first, compilers[k].path, p, n, a);
        snprintf(told->stage, sizeof told->stage, "%.15s -O0", compilers[k].name);
        evaluate(first, compilers[k].plain, p, n, b);
        for (int i = 0; i < n; i++) {
            bool ok = same(&a[i], &b[i], p[i].nout, why, sizeof why);
            told->passed += ok;
            told->failed += !ok;
            if (!ok)
                differ(&compilers[k], first + (uint64_t)i, &p[i], why);
        }
        give(a, n);
        give(b, n);
    }
}

static void
start_batch(uint64_t first, int n)
{
    int status = 0;
    pid_t child;

    memset(told, 0, sizeof *told);
    fflush(stdout);
    child = fork();
    if (child == 0) {
        alarm(PATIENCE);
        check_batch(first, n);
        fflush(stdout);
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0,
          "seeds %llu..%llu: status %d at %s", (unsigned long long)first,
          (unsigned long long)first + (unsigned)n - 1, status, told->stage);
    test_passed += told->passed;
    test_failed += told->failed;
}

int
main(int argc, char **argv)
{
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 8;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 0, at;
    char dir[] = "/tmp/jot-flags-XXXXXX", cmd[64];

    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told == MAP_FAILED || !mkdtemp(dir)) {
        SKIP("no memory to share, or no temporary directory");
        return DONE();
    }
    find_compilers(dir);
    for (at = first; at < first + n;) {
        uint64_t end = (at / BATCH + 1) * BATCH;
        end = end > first + n ? first + n : end;
        start_batch(at, (int)(end - at));
        at = end;
    }
    snprintf(cmd, sizeof cmd, "rm -r %s", dir);
    if (system(cmd) != 0)
        printf("%s could not be removed\n", dir);
    return DONE();
}
