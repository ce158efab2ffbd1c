/* tests/test_draws.c - the bench's drawn workloads (bench/drawn/), small: lines are drawn, read
 * and built; what jot computes of them, built anew and compiled, is what the interpreter does
 * within some places of the dtype; every operator that the drawer has is met.
 *
 *     test_draws N SEED
 *
 * Read before: bench/drawn/drawn.h.
 *
 * Guards: nn/activation.c. */
#include "bench/drawn/drawn.h"
#include "tests/test.h"

enum { MOST_WORK = 100000 };
static char line[DRAWN_TEXT];
static bool met[256];

typedef struct { int n; jot_Var v[WORK_OUTPUTS]; Bench b; } Made;

static bool
make(Made *m, jot_Ctx *c, const DrawnProgram *p)
{
    memset(m, 0, sizeof *m);
    m->b.c = c;
    m->n = drawn_make(&m->b, p, m->v);
    return m->n > 0 && !jot_error(c);
}

static void
unmake(Made *m)
{
    for (int k = 0; k < WORK_INPUTS; k++)
        if (m->b.made[k])
            jot_free(m->b.in[k]);
}

/* The largest difference of a from b, to the largest of b; whole numbers: 1 where any differs. */
static double
difference(jot_Var a, jot_Var b)
{
    size_t nbytes = (size_t)jot_nelem(a) * jot_dtype_nbytes(jot_dtype(a));
    const double *x, *y;
    double most = 1e-30, off = 0;

    if (jot_dtype(a) != jot_dtype(b) || jot_nelem(a) != jot_nelem(b) || !jot_data(a) ||
        !jot_data(b))
        return INFINITY;
    if (jot_dtype(a) < JOT_F16)
        return memcmp(jot_data(a), jot_data(b), nbytes) != 0;
    x = jot_data(jot_cast(a, JOT_F64));
    y = jot_data(jot_cast(b, JOT_F64));
    for (int64_t k = 0; x && y && k < jot_nelem(a); k++) {
        most = fmax(most, fabs(y[k]));
        off = fmax(off, x[k] == y[k] ? 0 : isnan(x[k] - y[k]) ? INFINITY : fabs(x[k] - y[k]));
    }
    return x && y ? off / most : INFINITY;
}

static void
compare(const Made *got, const jot_Var *v, const Made *oracle, const char *way)
{
    for (int k = 0; k < oracle->n; k++) {
        jot_DType t = jot_dtype(oracle->v[k]);
        double places = t == JOT_F64 ? 1e-12 : t == JOT_BF16 ? 0.1 : t == JOT_F16 ? 1e-2 : 2e-4;
        double off = difference(v[k], oracle->v[k]);

        CHECK(got->n == oracle->n && off <= places, "%s: output %d is %g off: %s", way, k, off,
              line);
    }
}

/* As a function of its inputs. */
static void
compiled(jot_Ctx *c, const Made *m, const Made *oracle)
{
    jot_Var in[WORK_INPUTS], out[WORK_OUTPUTS];
    jot_Func f;
    int n = 0;

    for (int k = 0; k < WORK_INPUTS; k++)
        if (m->b.made[k])
            in[n++] = m->b.in[k];
    f = jot_compile(c, jot_vars(n, in), jot_vars(m->n, m->v));
    if (jot_call_vars(f, jot_vars(n, in), out))
        compare(m, out, oracle, "compiled");
    else
        CHECK(false, "%s: %s", jot_message(c), line);
    jot_func_free(f);
}

static void
one(jot_Ctx *plain, jot_Ctx *c, uint64_t seed, int k)
{
    static DrawnProgram p;
    Made oracle, m;
    char again[DRAWN_TEXT];

    drawn_line(seed, k, MOST_WORK, line);
    drawn_line(seed, k, MOST_WORK, again);
    CHECK(!strcmp(line, again), "drawn otherwise: %s", again);
    if (!drawn_parse(strchr(line, ' ') + 1, &p)) {
        CHECK(false, "not read: %s", line);
        return;
    }
    for (int i = 0; i < p.n; i++)
        met[p.step[i].op] = true;
    jot_push(plain);
    jot_push(c);
    if (make(&oracle, plain, &p) && make(&m, c, &p)) {
        compare(&m, m.v, &oracle, "anew");
        unmake(&m);
        if (make(&m, c, &p))
            compiled(c, &m, &oracle);
        unmake(&m);
        unmake(&oracle);
    }
    CHECK(!jot_error(plain) && !jot_error(c), "%s%s: %s", jot_message(plain), jot_message(c), line);
    jot_clear(plain);
    jot_clear(c);
    jot_pop(c);
    jot_pop(plain);
}

/* What makes no sense is refused, not read past. */
static void
refused(void)
{
    static const char *const some[] = {"f32 3 0; nosuch v0; out v0", "f32 3 0; neg v1; out v1",
                                       "f32 3 0; neg v0", "f32 3 0; neg x; out v0", ""};
    static DrawnProgram p;

    for (int k = 0; k < 5; k++)
        CHECK(!drawn_parse(some[k], &p), "it was read: %s", some[k]);
}

int
main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 150;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    jot_Config interp = {.backend = "interp"}, quick = {.backend = "tcc", .cache_dir = ""};
    jot_Ctx *plain = jot_open(&interp), *c = jot_open(&quick);

    refused();
    if (jot_error(c))
        SKIP("no quick compiler here: %s", jot_message(c));
    for (int k = 0; k < n && !jot_error(c); k++)
        one(plain, c, seed, k);
    for (int op = 0; argc < 2 && !jot_error(c) && drawn_ops[op].name; op++)
        CHECK(met[op] || (op < JOT_DTYPES && op != JOT_F32), "never drawn: %s", drawn_ops[op].name);
    jot_close(c);
    jot_close(plain);
    return DONE();
}
