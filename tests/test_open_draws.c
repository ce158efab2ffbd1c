/* tests/test_open_draws.c - drawn programs with one to three open extents: what a call computes at
 * each size, from inputs and to outputs that end at a page, is what the interpreter computes of the
 * graph built for it. test_open_draws N FIRST BACKEND SIZES; SIZES 0: all.
 *
 * Guards: plan/open/open.c, plan/open/range.c, plan/open/follow.c, plan/open/map.c,
 * plan/open/mask.c, plan/open/padded.c, plan/open/sample.c, plan/open/ends.c, plan/open/fit.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tests/open_drawn.h"
#include "tests/guarded.h"
#include "tests/test.h"

/* ---- a function against the graph -------------------------------------------------------------- */

static double
number(jot_DType t, const void *at, size_t i)
{
    static const int64_t none = 0;
    uint16_t h;
    double m;

    switch (t) {
    case JOT_F64: return ((const double *)at)[i];
    case JOT_F32: return ((const float *)at)[i];
    case JOT_I64: return (double)((const int64_t *)at)[i];
    case JOT_I32: return ((const int32_t *)at)[i];
    case JOT_BOOL: return ((const uint8_t *)at)[i];
    case JOT_F16:
        h = ((const uint16_t *)at)[i];
        m = h >> 10 & 31 ? ldexp((h & 1023) | 1024, (h >> 10 & 31) - 25) : ldexp(h & 1023, -24);
        m = (h >> 10 & 31) == 31 ? (h & 1023 ? NAN : INFINITY) : m;
        return h & 0x8000 ? -m : m;
    default: return (double)none;
    }
}

/* Are they as far apart as roundings make them, at most? */
static bool
alike(const Program *p, jot_DType t, const void *got, const void *want, size_t nbytes, char *how)
{
    size_t n = nbytes / element(t), i, worst_at = 0;
    double size = 1, worst = 0, x, y, off;

    for (i = 0; i < n; i++) {
        x = number(t, want, i);
        size = isfinite(x) ? fmax(size, fabs(x)) : size;
    }
    for (i = 0; i < n; i++) {
        x = number(t, want, i);
        y = number(t, got, i);
        off = x == y || (x != x && y != y) ? 0 : fabs(x - y);
        off = off != off ? INFINITY : off;
        if (off > worst) {
            worst = off;
            worst_at = i;
        }
    }
    sprintf(how, "%g off of %g at %zu of %zu", worst, size, worst_at, n);
    return worst <= (p->half ? 3e-2 : 2e-4) * size;
}

typedef struct {
    unsigned char *in[LEAVES], *out[OUTS];
    size_t nin[LEAVES], nout[OUTS];
    jot_DType dtype[OUTS];
    unsigned char *want[OUTS], param[BYTES], other[BYTES];
} Room;

static bool
reference(jot_Ctx *c, Program *p, const int64_t *e, Room *r)
{
    jot_Var in[LEAVES], out[OUTS];
    bool ok;
    int i;

    jot_push(c);
    p->on = 1;
    for (i = 0; i < p->ninputs; i++)
        p->data[i] = r->in[i];
    ok = build(c, e, in, out, p);
    memset(p->data, 0, sizeof p->data);
    p->on = 0;
    ok = ok && jot_run(c, jot_vars(p->nouts, out));
    for (i = 0; ok && i < p->nouts; i++) {
        r->dtype[i] = jot_dtype(out[i]);
        r->nout[i] = (size_t)jot_nelem(out[i]) * element(r->dtype[i]);
        r->want[i] = malloc(r->nout[i] + 1);
        ok = jot_copy(out[i], r->want[i], r->nout[i]);
    }
    jot_pop(c);
    return ok;
}

typedef struct {
    jot_Ctx *c;
    const Program *p;
    jot_Func f;
    const int64_t *e;
    Room *r;
    bool vars;
} Call;

static bool
called(void *ud)
{
    const Call *call = ud;
    jot_Ctx *c = call->c;
    const Program *p = call->p;
    const int64_t *e = call->e;
    Room *r = call->r;
    jot_In in[LEAVES];
    jot_Out out[OUTS];
    jot_Var x[LEAVES], y[OUTS];
    int64_t shape[RANK];
    bool ok;
    int i;

    for (i = 0; i < p->nouts; i++)
        out[i] = jot_out(r->out[i], r->nout[i]);
    for (i = 0; i < p->ninputs; i++)
        in[i] = jot_in(r->in[i], r->nin[i]);
    if (!call->vars)
        return jot_call_open(call->f, jot_ints(p->nextents, e), jot_ins(p->ninputs, in),
                             jot_outs(p->nouts, out));
    jot_push(c);
    for (i = 0; i < p->ninputs; i++)
        x[i] = jot_array_borrow(c, p->leaf[i].dtype, leaf_shape(&p->leaf[i], e, shape), r->in[i],
                                NULL, NULL);
    ok = jot_call_vars_open(call->f, jot_ints(p->nextents, e), jot_vars(p->ninputs, x), y);
    for (i = 0; ok && i < p->nouts; i++)
        ok = jot_copy(y[i], r->out[i], r->nout[i]);
    jot_pop(c);
    return ok;
}

static const char *backend = "cpu";
static int64_t most_sizes = 20, sizes_run, sizes_shared;

static void
compare(jot_Ctx *c[2], Program *p, const int64_t *e, Room *r, bool vars)
{
    char how[120];
    size_t n;
    int i;

    for (i = 0; i < p->nouts; i++)
        CHECK(alike(p, r->dtype[i], r->out[i], r->want[i], r->nout[i], how),
              "seed %d at %d, %d, %d%s: output %d: %s", (int)p->seed, (int)e[0], (int)e[1],
              (int)e[2], vars ? " (variables)" : "", i, how);
    if (p->update < 0)
        return;
    i = p->nleaves - 1;
    n = (size_t)jot_nelem(p->param[0][i]) * 4;
    CHECK(jot_copy(p->param[0][i], r->param, n) && jot_copy(p->param[1][i], r->other, n)
          && alike(p, JOT_F32, r->param, r->other, n, how),
          "seed %d at %d, %d, %d: the parameter: %s %s", (int)p->seed, (int)e[0], (int)e[1],
          (int)e[2], how, jot_message(c[0]));
    leaf_fill(&p->leaf[i], e, i + 40, filled);
    jot_set(p->param[0][i], filled, n);
    jot_set(p->param[1][i], filled, n);
}

static bool
one_size(jot_Ctx *c[2], Program *p, jot_Func f, const int64_t *e, int salt)
{
    jot_RandomState state = {3, (uint64_t)salt * 7};
    bool vars = salt % 4 == 3, ok, ran;
    static Room r;
    Call call = {c[0], p, f, e, &r, vars};
    size_t changed = 0;
    int i;

    memset(&r, 0, sizeof r);
    for (i = 0; i < p->ninputs; i++) {
        r.nin[i] = leaf_fill(&p->leaf[i], e, salt + i, filled);
        r.in[i] = guarded_new(r.nin[i], salt % 2 ? BEGINS : ENDS, NULL);
        memcpy(r.in[i], filled, r.nin[i]);
    }
    jot_set_random_state(c[0], state);
    jot_set_random_state(c[1], state);
    ok = reference(c[1], p, e, &r);
    for (i = 0; i < p->nouts; i++) {
        r.out[i] = guarded_new(r.nout[i], salt % 2 ? BEGINS : ENDS, NULL);
        memset(r.out[i], 0xff, r.nout[i]);
    }
    ran = ok && caught(called, &call);
    CHECK(ran, "seed %d at %d, %d, %d: %s %s %s", (int)p->seed, (int)e[0], (int)e[1], (int)e[2],
          fault, fault[0] ? "" : jot_message(c[0]), jot_message(c[1]));
    if (ran)
        compare(c, p, e, &r, vars);
    for (i = 0; i < p->ninputs; i++)
        guarded_free(r.in[i], &changed);
    for (i = 0; i < p->nouts; i++) {
        guarded_free(r.out[i], &changed);
        free(r.want[i]);
    }
    CHECK(!changed, "seed %d at %d, %d, %d: %zu bytes written beside", (int)p->seed, (int)e[0],
          (int)e[1], (int)e[2], changed);
    return ran;
}

static void
all_sizes(jot_Ctx *c[2], Program *p, jot_Func f)
{
    int64_t values[3] = {1, 1, 1}, n, i, k, stride, e[3] = {0};
    jot_Stats before, after;
    bool ok = true;
    int d;

    for (d = 0; d < p->nextents; d++)
        values[d] = (p->extent[d].most - p->extent[d].least) / p->extent[d].step + 1;
    n = values[0] * values[1] * values[2];
    stride = most_sizes && n > most_sizes ? n / most_sizes : 1;
    for (i = 0; ok && i * stride < n; i++) {
        for (k = i * stride * 17 % n, d = 0; d < p->nextents; k /= values[d++])
            e[d] = p->extent[d].least + k % values[d] * p->extent[d].step;
        before = jot_stats(c[0]);
        ok = one_size(c, p, f, e, (int)i);
        after = jot_stats(c[0]);
        sizes_run++;
        sizes_shared += before.plans == after.plans;
    }
}

static void
one_program(int64_t seed, bool told)
{
    static Program p;
    GuardedHeap *heap = calloc(1, sizeof *heap); /* a context that is lost keeps it */
    jot_Config config = {.backend = backend, .cache_dir = "", .deterministic = true, .seed = 3,
                         .give_back = true, .hooks = {.realloc = guarded_realloc, .ud = heap}};
    jot_Config plain = {.backend = "interp", .cache_dir = "", .deterministic = true, .seed = 3,
                        .hooks.log = quiet};
    jot_Ctx *c[2];
    int failed = test_failed;
    jot_Builder b;
    jot_Func f;

    heap->side = seed % 2 ? ENDS : BEGINS;
    config.hooks.log = told ? NULL : quiet;
    c[0] = jot_open(&config);
    c[1] = jot_open(&plain);
    draw_program(&p, seed);
    if (told)
        tell(&p);
    params(c[0], &p, 0);
    params(c[1], &p, 1);
    b = (jot_Builder){p.nextents, p.extent, p.ninputs, p.nouts, build, &p};
    f = jot_compile_open(c[0], &b);
    CHECK(jot_func_ok(f), "seed %d: %s", (int)seed, jot_message(c[0]));
    if (jot_func_ok(f)) {
        if (told)
            printf("  %s\n", jot_open_why(f));
        all_sizes(c, &p, f);
    }
    if (test_failed > failed && !told)
        tell(&p);
    jot_close(c[1]);
    if (fault[0]) {
        guarded_forget(heap);
        fault[0] = 0;
        return;
    }
    jot_close(c[0]);
    CHECK(!heap->changed, "seed %d: %zu bytes written beside memory of its own", (int)seed,
          heap->changed);
    free(heap);
}

int
main(int argc, char **argv)
{
    int64_t n = argc > 1 ? atoll(argv[1]) : test_many(6, 8), first = argc > 2 ? atoll(argv[2]) : 1, i;

    backend = argc > 3 ? argv[3] : "cpu";
    most_sizes = argc > 4 ? atoll(argv[4]) : most_sizes;
    setvbuf(stdout, NULL, _IOLBF, 0);
    catch_faults();
    for (i = 0; i < n; i++)
        one_program(first + i, n == 1);
    printf("%d programs from %d: %d of %d sizes without a plan of their own\n", (int)n, (int)first,
           (int)sizes_shared, (int)sizes_run);
    CHECK(sizes_shared * 10 > sizes_run, "hardly any size is shared");
    return DONE();
}
