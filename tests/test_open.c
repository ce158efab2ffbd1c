/* tests/test_open.c - one kernel for many extents: networks whose rows, lengths and number of equal
 * parts change from run to run, each value against the interpreter's; extents are drawn, with 0, 1
 * and what no block divides among them. Elements lie against protected pages, so that a clamped
 * block which reads or writes beyond the end is a fault. Kernels are counted: many extents need a
 * few; what is deterministic, or comes often, has kernels of its own for each.
 *
 *     test_open [rounds [seed]]
 *
 * Guards: plan/tier/open.c, ccode/emit/any.c, ccode/lower/clamp.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "nn.h"
#include "tests/guarded.h"
#include "tests/test.h"

enum { EXTENTS = 16, MOST = 100 * 40 };
static const int64_t extent[EXTENTS] = {
    7, 12, 5, 33, 1, 64, 0, 2, 31, 13, 48, 3, 100, 25, 77, 17
};
static float host[2][MOST];

static jot_Var
rows(jot_Ctx *c, int k, int64_t n, int64_t wide)
{
    return jot_array(c, JOT_F32, JOT_SHAPE(n, wide), host[k]);
}

static jot_Var
weight(jot_Ctx *c, int64_t n, int64_t wide)
{
    static float w[MOST];

    for (int64_t i = 0; i < n * wide; i++)
        w[i] = host[1][(i * 7 + 3) % MOST] * 0.3f;
    return jot_array(c, JOT_F32, JOT_SHAPE(n, wide), w);
}

static jot_Var
linear(jot_Ctx *c, int64_t n)
{
    jot_Var y = jot_matmul(rows(c, 0, n, 40), weight(c, 40, 50));

    return jot_relu(jot_add(y, jot_reshape(weight(c, 1, 50), JOT_SHAPE(50))));
}

static jot_Var
layers(jot_Ctx *c, int64_t n)
{
    jot_Var y = jot_relu(jot_matmul(rows(c, 0, n, 40), weight(c, 40, 48)));

    return jot_matmul(jot_relu(jot_matmul(y, weight(c, 48, 20))), weight(c, 20, 10));
}

static jot_Var
outputs(jot_Ctx *c, int64_t n) /* w' along the sum, few rows */
{
    return jot_matmul(rows(c, 0, n, 40), jot_transpose(weight(c, 60, 40), JOT_INTS(1, 0)));
}

static jot_Var
by_weight(jot_Ctx *c, int64_t n)
{
    return jot_matmul(jot_transpose(rows(c, 0, n, 40), JOT_INTS(1, 0)), rows(c, 1, n, 24));
}

static jot_Var
normed(jot_Ctx *c, int64_t n)
{
    jot_Var x = rows(c, 0, n, 40), mean = jot_mean(x, JOT_KEEP(1));

    x = jot_sub(x, mean);
    return jot_mul(x, jot_rsqrt(jot_offset(jot_mean(jot_square(x), JOT_KEEP(1)), 1e-3)));
}

static jot_Var
columns(jot_Ctx *c, int64_t n)
{
    return jot_sum(jot_sigmoid(rows(c, 0, n, 40)), JOT_DIMS(0));
}

static jot_Var
softmax(jot_Ctx *c, int64_t n)
{
    return jot_softmax(jot_reshape(rows(c, 0, n, 20), JOT_SHAPE(20, n)), 1);
}

static jot_Var
attention(jot_Ctx *c, int64_t n)
{
    jot_Var q = rows(c, 0, n, 16), k = rows(c, 1, n, 16);
    jot_Var s = jot_matmul(q, jot_transpose(k, JOT_INTS(1, 0)));

    return jot_matmul(jot_softmax(jot_scale(s, 0.25), 1), k);
}

static jot_Var
turned(jot_Ctx *c, int64_t n)
{
    return jot_add(jot_transpose(rows(c, 0, n, 40), JOT_INTS(1, 0)),
                   jot_reshape(rows(c, 1, n, 40), JOT_SHAPE(40, n)));
}

static jot_Var
image(jot_Ctx *c, int64_t n)
{
    static const jot_Conv conv = {.pad = {1, 1}};
    jot_Var x = jot_reshape(rows(c, 0, n, 36), JOT_SHAPE(n, 1, 6, 6));

    return jot_conv2d(x, jot_reshape(weight(c, 4, 9), JOT_SHAPE(4, 1, 3, 3)), &conv);
}

static jot_Var
joined(jot_Ctx *c, int64_t n)
{
    return jot_concat(JOT_VARS(jot_tanh(rows(c, 0, n, 40)), rows(c, 1, 3, 40)), 0);
}

static jot_Var
halves(jot_Ctx *c, int64_t n)
{
    jot_Var y = jot_matmul(jot_cast(rows(c, 0, n, 40), JOT_BF16),
                           jot_cast(weight(c, 40, 32), JOT_BF16));

    return jot_cast(y, JOT_F32);
}

static bool
step(void *w, jot_Vars in, jot_Var *out)
{
    out[0] = jot_tanh(jot_matmul(in.v[0], *(jot_Var *)w));
    return true;
}

static jot_Var
looped(jot_Ctx *c, int64_t n)
{
    jot_Var w = weight(c, 40, 40), y;

    jot_for(JOT_VARS(rows(c, 0, n, 40)), JOT_NONE_VARS, step, &w, &(jot_For){.trips = 3}, &y);
    return y;
}

typedef struct { const char *name; jot_Var (*build)(jot_Ctx *c, int64_t n); int most; } Program;
static const Program program[] = { /* most: kernels for all extents */
    {"linear", linear, 12}, {"layers", layers, 14}, {"outputs", outputs, 15},
    {"by_weight", by_weight, 12}, {"normed", normed, 7}, {"columns", columns, 15},
    {"softmax", softmax, 19}, {"attention", attention, 17}, {"turned", turned, 12},
    {"image", image, 15}, {"joined", joined, 9}, {"halves", halves, 21}, {"looped", looped, 12},
};

static jot_Ctx *
open_backend(const char *backend, GuardedHeap *heap, int deterministic)
{
    jot_Config config = {0};

    config.backend = backend;
    config.cache_dir = "";
    config.threads = config.give_back = config.open_sizes = 1;
    config.deterministic = deterministic;
    if (heap) {
        config.hooks.realloc = guarded_realloc;
        config.hooks.ud = heap;
    }
    return jot_open(&config);
}

/* The most that an element is off, of what is largest. */
static double
compare(jot_Ctx *c, jot_Ctx *interp, const Program *p, int64_t n)
{
    double off = 0, most = 1e-6;
    jot_Var y, z;
    int64_t nelem;

    jot_push(c);
    jot_push(interp);
    y = p->build(c, n);
    z = p->build(interp, n);
    nelem = jot_nelem(z);
    if (jot_nelem(y) != nelem)
        off = 1e30;
    else if (nelem && jot_data(y) && jot_data(z)) {
        const float *a = jot_data_f32(y), *b = jot_data_f32(z);

        for (int64_t i = 0; i < nelem; i++) {
            off = fabs(a[i] - b[i]) > off || a[i] != a[i] ? fabs(a[i] - b[i]) : off;
            most = fabs(b[i]) > most ? fabs(b[i]) : most;
        }
    } else if (nelem)
        off = 1e30;
    else
        jot_run(c, JOT_VARS(y));
    jot_pop(c);
    jot_pop(interp);
    return off / most;
}

typedef struct {
    jot_Ctx *c, *interp;
    const Program *p;
    uint32_t *seed;
    int rounds;
    double worst;
} Run;

static bool
run_extents(void *ud)
{
    Run *r = ud;

    for (int k = 0; k < r->rounds * EXTENTS; k++) {
        int64_t n = extent[k % EXTENTS];
        double off;

        *r->seed = *r->seed * 1664525u + 1013904223u;
        n = k < EXTENTS ? n : (*r->seed >> 8) % 101;
        off = compare(r->c, r->interp, r->p, n);
        CHECK(off <= (r->p->build == halves ? 2e-2 : 2e-4), "%s of %d: off by %g: %s", r->p->name,
              (int)n, off, jot_message(r->c));
        r->worst = off > r->worst ? off : r->worst;
    }
    return true;
}

static void
test_program(const Program *p, int rounds, uint32_t seed, Side side)
{
    GuardedHeap heap = {side, 0};
    Run r = {open_backend("cc", &heap, -1), open_backend("interp", NULL, 0), p, &seed, rounds, 0};
    jot_Stats s;

    if (!caught(run_extents, &r)) {
        CHECK(false, "%s: %s", p->name, fault);
        guarded_forget(&heap);
        return;
    }
    s = jot_stats(r.c);
    printf("%-10s %2d kernels for %d extents, off by %.1e\n", p->name, (int)s.kernels_compiled,
           EXTENTS * rounds, r.worst);
    CHECK((int)s.kernels_compiled <= p->most, "%s: %d kernels, %d at most", p->name,
          (int)s.kernels_compiled, p->most);
    jot_close(r.c);
    jot_close(r.interp);
    CHECK(!heap.changed, "%s: %d bytes beside arrays changed", p->name, (int)heap.changed);
}

/* Who asks for the same bits each time gets the same kernel for an extent, whatever came before. */
static void
test_deterministic(void)
{
    static float first[MOST];
    jot_Ctx *c = NULL;

    for (int round = 0; round < 2; round++) {
        const float *d;
        jot_Var y;

        c = open_backend("cc", NULL, 1);
        for (int k = 0; round && k < 4; k++) {
            jot_push(c);
            jot_run(c, JOT_VARS(layers(c, extent[k])));
            jot_pop(c);
        }
        y = layers(c, 33);
        d = jot_data_f32(y);
        if (!round && d)
            memcpy(first, d, 330 * sizeof *first);
        CHECK(d && !memcmp(first, d, 330 * sizeof *first), "other bits: %s", jot_message(c));
        jot_close(c);
    }
}

/* What runs often gets kernels of its own for its extents, bodies of loops too. */
static void
test_often(void)
{
    static const Program often[] = {{"linear", linear, 0}, {"looped", looped, 0}};

    for (int p = 0; p < 2; p++) {
        jot_Ctx *c = open_backend("cc", NULL, -1), *interp = open_backend("interp", NULL, 0);
        uint64_t kernels[2];

        compare(c, interp, &often[p], 33);
        for (int k = 0; k < 2; k++) {
            for (int i = 0; i < 20; i++)
                CHECK(compare(c, interp, &often[p], 48) < 2e-4, "%s", often[p].name);
            kernels[k] = jot_stats(c).kernels_compiled;
        }
        CHECK(kernels[0] < kernels[1], "%s: %d kernels, then %d", often[p].name, (int)kernels[0],
              (int)kernels[1]);
        jot_close(c);
        jot_close(interp);
    }
}

int
main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    uint32_t seed = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
    jot_Ctx *c = open_backend("cc", NULL, -1);

    if (!c || strcmp(jot_backend(c), "cc")) {
        SKIP("no C compiler here");
        return DONE();
    }
    jot_close(c);
    catch_faults();
    for (int k = 0; k < MOST; k++) {
        host[0][k] = (float)(k * 2654435761u >> 8) / (1 << 23) - 1;
        host[1][k] = (float)(k * 40503u % 1009) / 505 - 1;
    }
    for (size_t i = 0; i < sizeof program / sizeof *program; i++)
        test_program(&program[i], rounds, seed, i % 2 ? BEGINS : ENDS);
    test_deterministic();
    test_often();
    return DONE();
}
