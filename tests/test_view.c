/* tests/test_view.c - where a kernel reads in a variable is an argument: the same step of an
 * unrolled network is one text, whatever it slices, and the number of texts does not grow with the
 * steps. Values against the interpreter's, in plain and drawn layouts.
 *
 * Guards: ccode/ir/view.c, ops/graph.c, plan/layout/pack.c. */
#include "core.h"
#include "tests/test.h"

static jot_Ctx *
open_on(const char *backend, const char *layout)
{
    jot_Config config;

    memset(&config, 0, sizeof config);
    config.backend = backend;
    config.layout = layout;
    config.cache_dir = "";
    config.threads = 2;
    return jot_open(&config);
}

static jot_Var
wave(jot_Ctx *c, jot_Ints shape, double scale)
{
    static float v[32 * 32 * 32];
    int64_t n = 1;

    for (int k = 0; k < shape.n; k++)
        n *= shape.v[k];
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)(scale * sin((double)i));
    return jot_array(c, JOT_F32, shape, v);
}

/* ---- programs: what is read at another place in each of n steps ------------------------------ */

typedef int Program(jot_Ctx *c, int n, jot_Var *out);

static jot_Var
at(jot_Var x, int dim, int k)
{
    int64_t from[4] = {0}, to[4], by[4] = {1, 1, 1, 1};

    for (int d = 0; d < jot_rank(x); d++)
        to[d] = JOT_END;
    from[dim] = k;
    to[dim] = k + 1;
    x = jot_slice(x, jot_ints(jot_rank(x), from), jot_ints(jot_rank(x), to),
                  jot_ints(jot_rank(x), by));
    return jot_squeeze(x, dim);
}

/* The first dimension, the middle one, the last one; two at once; behind a gather. */
static int
slices(jot_Ctx *c, int n, jot_Var *out)
{
    jot_Var rows = jot_array(c, JOT_I32, JOT_SHAPE(32), NULL), x[6], h[5];

    for (int k = 0; k < 6; k++)
        x[k] = wave(c, JOT_SHAPE(32, 32, 32), 1 + k);
    for (int k = 0; k < 5; k++)
        h[k] = jot_zeros(c, JOT_F32, JOT_SHAPE(32, 32));
    for (int k = 0; k < n; k++) {
        for (int d = 0; d < 3; d++)
            h[d] = jot_stop_fuse(jot_tanh(jot_add(h[d], at(x[d], d, k))));
        h[3] = jot_stop_fuse(jot_add(h[3], jot_mul(at(x[3], 0, k), at(x[4], 1, n - k))));
        h[4] = jot_stop_fuse(jot_add(h[4], jot_take(at(x[5], 0, k), jot_offset(rows, k % 2), 0)));
    }
    memcpy(out, h, sizeof h);
    return 5;
}

/* r * h before its product: each step's sums read a step of one product over all of them. */
static int
recurrent(jot_Ctx *c, int n, jot_Var *out)
{
    enum { B = 4, I = 6, H = 8 };
    jot_Var x = wave(c, JOT_SHAPE(B, n, I), 1), h = jot_zeros(c, JOT_F32, JOT_SHAPE(B, H)), p[6];

    for (int k = 0; k < 6; k++)
        p[k] = jot_param_of(wave(c, k < 3 ? JOT_SHAPE(I, H) : JOT_SHAPE(H, H), 0.1 + 0.1 * k));
    jot_run(c, JOT_NONE_VARS);
    for (int t = 0; t < n; t++) {
        jot_Var xt = at(x, 1, t), z, r, m;

        r = jot_sigmoid(jot_add(jot_matmul(xt, p[0]), jot_matmul(h, p[3])));
        z = jot_sigmoid(jot_add(jot_matmul(xt, p[1]), jot_matmul(h, p[4])));
        m = jot_tanh(jot_add(jot_matmul(xt, p[2]), jot_matmul(jot_mul(r, h), p[5])));
        h = jot_add(m, jot_mul(z, jot_sub(h, m)));
    }
    out[0] = h;
    jot_grad(jot_sum(jot_square(h), JOT_ALL_DIMS), jot_vars(6, p), out + 1);
    return 7;
}

/* ---- texts and values ------------------------------------------------------------------------ */

/* Kernels compiled for n steps. */
static int
texts(const char *backend, Program *program, int n)
{
    jot_Ctx *c = open_on(backend, NULL);
    jot_Var out[8];
    int count;

    count = program(c, n, out);
    CHECK(jot_run(c, jot_vars(count, out)), "%s", jot_message(c));
    count = (int)jot_stats(c).kernels_compiled;
    jot_close(c);
    return count;
}

static void
values(const char *backend, const char *layout, Program *program, const char *name, int n)
{
    jot_Ctx *c = open_on(backend, layout), *plain = open_on("interp", NULL);
    jot_Var out[8], want[8];
    int count = program(c, n, out);

    program(plain, n, want);
    CHECK(jot_run(c, jot_vars(count, out)) && jot_run(plain, jot_vars(count, want)), "%s, %s: %s",
          name, layout, jot_message(c));
    for (int k = 0; k < count; k++) {
        const float *a = jot_data(out[k]), *b = jot_data(want[k]);
        double worst = 0;

        for (int64_t i = 0; a && b && i < jot_nelem(out[k]); i++)
            worst = fabs(a[i] - b[i]) > worst ? fabs(a[i] - b[i]) : worst;
        CHECK(a && b && worst < 1e-5, "%s on %s, layout %s, result %d: off by %g", name, backend,
              layout, k, worst);
    }
    jot_close(c);
    jot_close(plain);
}

int
main(void)
{
    static const struct { const char *name; Program *run; } programs[] = {
        {"slices", slices}, {"recurrent", recurrent}};
    static const char *const backends[] = {"tcc", "cc"};
    static const char *const layouts[] = {"chosen", "rowmajor", "random:3", "random:11"};

    for (int b = 0; b < 2; b++) {
        jot_Ctx *c = open_on(backends[b], NULL);
        bool there = !jot_error(c);

        if (!there)
            SKIP("%s: %s", backends[b], jot_message(c));
        jot_close(c);
        for (int k = 0; there && k < 2; k++) {
            int few = texts(backends[b], programs[k].run, 12);
            int many = texts(backends[b], programs[k].run, 28);

            CHECK(many <= few + 4, "%s on %s: %d texts for 12 steps, %d for 28", programs[k].name,
                  backends[b], few, many);
            for (int l = 0; l < (b ? 2 : 4); l++)
                values(backends[b], layouts[l], programs[k].run, programs[k].name, 9);
        }
    }
    return DONE();
}
