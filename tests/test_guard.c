/* tests/test_guard.c - nothing outside an array is touched: programs whose inputs, outputs and
 * temporaries lie against protected pages, on either side, or among bytes of NaN (tests/guarded.h),
 * by every compiler there is. An array of the caller's ends with its last element; the library's
 * own have whole lines of the cache, which a kernel may read to the end.
 *
 *     run    variables and temporaries, by the hook of jot_open
 *     call   the same as a function, of arrays of the caller's
 *
 * A fault is a failure, and so are bytes that changed beside an array, a NaN where the interpreter
 * has none, and, in what is moved and not computed, any other bit.
 *
 * Use: test_guard [number of drawn programs of each kind] [first] [word of the ways' labels]
 *
 * Guards: ccode/lower/guard.c, ccode/verify/bounds.c, plan/memory.c. */
#include "core.h"

/* Every array that a program makes is noted: an input of the function; where it brings no elements,
 * some are drawn. */
static jot_Var noted(jot_Ctx *c, jot_DType dtype, jot_Ints shape, const void *data);
#define jot_array(...) noted(__VA_ARGS__)
#include "tests/fuse_graphs.h"
#include "tests/fuzz_wide.h"
#undef jot_array
#include "tests/guarded.h"

enum { INPUTS = 64, OUTPUTS = 2 * VARS + 8, MOST = 1 << 20 };

static jot_Var input[INPUTS];
static int ninput;
static bool moves, anew; /* no arithmetic; drawn anew by each call */

static jot_Var
noted(jot_Ctx *c, jot_DType dtype, jot_Ints shape, const void *data)
{
    static double drawn[MOST];
    jot_Var v;
    int64_t n = 1;

    for (int k = 0; k < shape.n; k++)
        n *= shape.v[k];
    if (data || n > MOST) {
        v = jot_array(c, dtype, shape, data);
    } else {
        uint32_t s = (uint32_t)(n + 77 * ninput);

        for (int64_t k = 0; k < n; k++)
            s = s * 1664525u + 1013904223u, drawn[k] = dtype < JOT_F16 ? s >> 30 : (s >> 28) / 8. - 1;
        v = jot_cast(jot_array(c, JOT_F64, shape, drawn), dtype);
        v = jot_array(c, dtype, shape, jot_data(v));
    }
    if (ninput < INPUTS)
        input[ninput++] = v;
    return v;
}

/* ---- programs ------------------------------------------------------------------------------- */

static Prog prog;

static int
small(int least, int most)
{
    return least + draw(&prog, most - least + 1);
}

static jot_Var
drawn_array(jot_Ctx *c, jot_DType dtype, int rank, const int64_t *ext)
{
    return noted(c, dtype, jot_ints(rank, ext), NULL);
}

static jot_DType
drawn_dtype(void)
{
    return (jot_DType)draw(&prog, JOT_DTYPES);
}

static void
start(jot_Ctx *c, uint64_t seed)
{
    memset(&prog, 0, sizeof prog);
    prog.c = c;
    prog.s = seed * 7919 + 11;
    for (int k = 0; k < 20; k++)
        draw(&prog, 2);
}

/* Of x: padded, cut, joined to itself, taken in another order, one after the other. */
static int
build_forms(jot_Ctx *c, uint64_t seed, jot_Var *out)
{
    int64_t ext[4], a[4], b[4], by[4];
    jot_Var x, y;
    int rank, n = 0;

    start(c, seed);
    rank = small(1, 4);
    for (int k = 0; k < rank; k++)
        ext[k] = small(1, rank > 2 ? 9 : 40);
    x = y = drawn_array(c, drawn_dtype(), rank, ext);
    for (int step = small(1, 3); step > 0; step--) {
        for (int k = 0; k < rank; k++) {
            a[k] = draw(&prog, 2) ? 0 : small(-1, 3);
            b[k] = draw(&prog, 2) ? 0 : small(0, 3);
            by[k] = small(1, 3);
        }
        switch (draw(&prog, 7)) {
        case 0: case 1: y = jot_pad(y, jot_ints(rank, a), jot_ints(rank, b), 1); break;
        case 2:
            for (int k = 0; k < rank; k++)
                a[k] = small(0, 1), b[k] = JOT_END, by[k] = draw(&prog, 3) ? by[k] : -by[k];
            for (int k = 0; k < rank; k++)
                a[k] = by[k] < 0 ? -1 - a[k] : a[k];
            y = jot_slice(y, jot_ints(rank, a), jot_ints(rank, b), jot_ints(rank, by));
            break;
        case 3: y = jot_concat(JOT_VARS(y, x.slot == y.slot ? jot_neg(x) : y, y),
                               draw(&prog, rank)); break;
        case 4: y = jot_swap(y, draw(&prog, rank), draw(&prog, rank)); break;
        case 5: y = jot_flip(y, JOT_INTS(draw(&prog, rank))); break;
        default: y = jot_nelem(y) < 2000 ? jot_tile(y, jot_ints(rank, by)) : y;
        }
        if (jot_nelem(y) == 0 || draw(&prog, 2))
            break;
    }
    moves = true;
    out[n++] = y;
    if (draw(&prog, 2))
        out[n++] = jot_where(jot_gt(y, jot_zeros(c, jot_dtype(y), JOT_SHAPE())), y, jot_neg(y));
    return n;
}

/* Sums, extremes and places of extremes along drawn axes. */
static int
build_reductions(jot_Ctx *c, uint64_t seed, jot_Var *out)
{
    static const jot_ReduceOp ops[] = {JOT_ADD, JOT_MAX, JOT_MIN, JOT_MEAN, JOT_MUL};
    int64_t ext[4], dims[4];
    int rank, m = 0, n = 0;
    jot_Var x;

    start(c, seed);
    rank = small(1, 4);
    for (int k = 0; k < rank; k++)
        ext[k] = small(1, rank > 2 ? 12 : 70);
    x = drawn_array(c, drawn_dtype(), rank, ext);
    for (int k = 0; k < rank; k++)
        if (draw(&prog, 2))
            dims[m++] = k;
    out[n++] = jot_reduce(ops[draw(&prog, 5)], x, jot_dims(m, dims, draw(&prog, 2)));
    if (jot_dtype(x) != JOT_BOOL)
        out[n++] = jot_argmax(x, JOT_DIMS(draw(&prog, rank)));
    out[n++] = jot_add(x, jot_reduce(JOT_MAX, x, jot_dims(m, dims, true)));
    out[n++] = jot_sum(jot_mul(jot_pad(x, jot_ints(rank, (int64_t[]){1, 0, 1, 2}),
                                       jot_ints(rank, (int64_t[]){0, 1, 2, 1}), 0),
                               jot_scalar(c, jot_dtype(x), 2)), jot_dims(m, dims, false));
    return n;
}

/* Products of two arrays, read as they lie or across, padded or cut, and their gradients. */
static int
build_products(jot_Ctx *c, uint64_t seed, jot_Var *out)
{
    static const jot_DType dtypes[] = {JOT_F32, JOT_F32, JOT_F64, JOT_F16, JOT_BF16, JOT_I32,
                                       JOT_I8, JOT_U8};
    int64_t big = 70, i, j, k, l;
    bool across[2];
    jot_DType dtype;
    jot_Var x, y, z;

    start(c, seed);
    dtype = dtypes[draw(&prog, 8)];
    i = small(1, (int)big), j = small(1, (int)big), k = small(1, (int)big), l = small(1, 4);
    across[0] = draw(&prog, 2), across[1] = draw(&prog, 2);
    x = drawn_array(c, dtype, 3, across[0] ? (int64_t[]){l, k, i} : (int64_t[]){l, i, k});
    y = drawn_array(c, dtype, draw(&prog, 2) ? 3 : 3,
                    across[1] ? (int64_t[]){l, j, k} : (int64_t[]){l, k, j});
    z = across[0] ? jot_swap(x, 1, 2) : x;
    if (!draw(&prog, 4))
        z = jot_pad(z, JOT_INTS(0, small(0, 2), 0), JOT_INTS(0, small(0, 2), 0), 0);
    z = jot_matmul(z, across[1] ? jot_swap(y, 1, 2) : y);
    out[0] = draw(&prog, 2) ? jot_maximum(z, jot_zeros(c, dtype, JOT_SHAPE())) : z;
    if (dtype < JOT_F16 || draw(&prog, 2) ||
        !jot_grad(jot_sum(jot_square(out[0]), JOT_ALL_DIMS), JOT_VARS(x, y), out + 1))
        return 1;
    return 3;
}

/* Convolutions and poolings with their gradients. */
static int
build_windows(jot_Ctx *c, uint64_t seed, jot_Var *out)
{
    jot_Conv conv = {0};
    jot_Pool pool = {0};
    int64_t in, of, side;
    jot_DType dtype;
    jot_Var x, w, y;
    int n = 0;

    start(c, seed);
    dtype = draw(&prog, 3) ? JOT_F32 : draw(&prog, 2) ? JOT_F64 : JOT_BF16;
    conv.groups = small(1, 2);
    in = conv.groups * small(1, 9), of = conv.groups * small(1, 9), side = small(1, 4);
    if (!draw(&prog, 3))
        conv.groups = (int)in, of = in;
    for (int k = 0; k < 2; k++) {
        conv.stride[k] = pool.stride[k] = small(1, 2);
        conv.pad[k] = small(0, (int)side / 2);
        conv.dilation[k] = draw(&prog, 3) ? 1 : 2;
        pool.size[k] = small(1, 3);
    }
    x = drawn_array(c, dtype, 4, (int64_t[]){small(1, 3), in, small(8, 20), small(8, 20)});
    w = drawn_array(c, dtype, 4, (int64_t[]){of, in / conv.groups, side, side});
    y = jot_conv2d(x, w, &conv);
    out[n++] = draw(&prog, 2) ? jot_relu(y) : y;
    if (draw(&prog, 2))
        out[n++] = draw(&prog, 2) ? jot_max_pool2d(x, &pool) : jot_avg_pool2d(y, &pool);
    if (draw(&prog, 2) &&
        jot_grad(jot_sum(jot_square(out[n - 1]), JOT_ALL_DIMS), JOT_VARS(x, w), out + n))
        n += 2;
    return n;
}

/* Pieces side by side in short rows: a load of a few lanes, folded into an operand of all of them,
 * was read beyond the end by gcc 12's code for AVX-512. */
static int
build_pieces(jot_Ctx *c, uint64_t seed, jot_Var *out)
{
    jot_Var x, y;

    start(c, seed);
    x = drawn_array(c, seed % 3 ? JOT_F32 : drawn_dtype(), 3,
                    seed % 4 == 2 ? (int64_t[]){8, 16, 5}
                                  : (int64_t[]){8, small(1, 16), small(1, 17)});
    y = jot_neg(x);
    out[0] = jot_concat(seed % 4 == 2 || draw(&prog, 2) ? JOT_VARS(x, y, x) : JOT_VARS(y, x), 2);
    moves = true;
    return 1;
}

static int
build_drawn(jot_Ctx *c, uint64_t seed, jot_Var *out)
{
    int n = fuzz_program(&prog, c, seed, out);

    anew = prog.random;
    return n;
}

static int
build_wide(jot_Ctx *c, uint64_t seed, jot_Var *out)
{
    int n = fuzz_wide(&prog, c, seed, false, out);

    anew = prog.random;
    return n;
}

static const Row rows[] = {ROWS};
enum { NROWS = sizeof rows / sizeof *rows };

static int
build_row(jot_Ctx *c, uint64_t seed, jot_Var *out)
{
    ctx = c;
    rng_state = 0;
    return rows[seed % NROWS].build(out, rows[seed % NROWS].arg);
}

typedef struct { const char *name; int (*build)(jot_Ctx *c, uint64_t seed, jot_Var *out); int times; }
    Kind;
static const Kind kinds[] = {
    {"forms", build_forms, 3}, {"pieces", build_pieces, 2}, {"reductions", build_reductions, 1},
    {"products", build_products, 1}, {"windows", build_windows, 1}, {"drawn", build_drawn, 1},
    {"wide", build_wide, 1}, {"row", build_row, 1},
};

/* ---- one program in one context ------------------------------------------------------------- */

typedef struct {
    const char *label; jot_Config config; int every;
    jot_Ctx *ctx[SIDES];
    GuardedHeap heap[SIDES];
    bool gone;
} Guarded;

typedef struct {
    const Kind *kind;
    uint64_t seed;
    jot_Ctx *c;
    jot_Var out[OUTPUTS];
    int n;
    jot_In in[INPUTS];
    jot_Out to[OUTPUTS];
    int nin;
    jot_Func f;
} Task;

typedef struct { int n; void *data[OUTPUTS]; size_t nbytes[OUTPUTS]; jot_DType dtype[OUTPUTS]; } Want;

static size_t
bytes_of(jot_Var v)
{
    return (size_t)jot_nelem(v) * jot_dtype_nbytes(jot_dtype(v));
}

static bool
build(Task *t)
{
    ninput = 0;
    moves = anew = false;
    t->n = t->kind->build(t->c, t->seed, t->out);
    return !jot_error(t->c);
}

static bool
runs(void *ud)
{
    Task *t = ud;

    return build(t) && jot_run(t->c, jot_vars(t->n, t->out));
}

static bool
calls(void *ud)
{
    Task *t = ud;

    return jot_call(t->f, jot_ins(t->nin, t->in), jot_outs(t->n, t->to));
}

static bool
finite_at(const void *p, jot_DType dtype, size_t i)
{
    switch (dtype) {
    case JOT_F16: return (((const uint16_t *)p)[i] & 0x7c00) != 0x7c00;
    case JOT_BF16: return (((const uint16_t *)p)[i] & 0x7f80) != 0x7f80;
    case JOT_F32: return isfinite(((const float *)p)[i]);
    case JOT_F64: return isfinite(((const double *)p)[i]);
    default: return true;
    }
}

/* Is what was read elsewhere seen in it? The element, or -1. */
static int64_t
spoilt(const void *want, const void *got, jot_DType dtype, size_t nbytes)
{
    size_t size = jot_dtype_nbytes(dtype);
    bool bits = moves || (dtype < JOT_F16 && !anew);

    for (size_t i = 0; i < nbytes / size; i++) {
        const char *x = (const char *)want + i * size, *y = (const char *)got + i * size;

        if (bits ? memcmp(x, y, size) != 0
                 : finite_at(want, dtype, i) && !finite_at(got, dtype, i))
            return (int64_t)i;
    }
    return -1;
}

static void
judge(const Task *t, const Guarded *g, Side side, const char *how, const Want *want, bool ok,
      const void *const *got)
{
    int64_t at = -1;
    int k = 0;

    CHECK(ok, "%s %llu, %s, %s, %s: %s", t->kind->name, (unsigned long long)t->seed, g->label, how,
          side_name[side], fault[0] ? fault : jot_message(t->c));
    for (; ok && k < want->n && k < t->n && at < 0; k++)
        at = got[k] ? spoilt(want->data[k], got[k], want->dtype[k], want->nbytes[k]) : -1;
    CHECK(at < 0, "%s %llu, %s, %s, %s: element %lld of result %d (%s) is what lies elsewhere",
          t->kind->name, (unsigned long long)t->seed, g->label, how, side_name[side],
          (long long)at, k - 1, jot_dtype_name(want->dtype[k ? k - 1 : 0]));
}

static void
told_changed(const Task *t, const Guarded *g, Side side, const char *how, size_t *changed)
{
    CHECK(!*changed, "%s %llu, %s, %s, %s: wrote %zu bytes beside an array", t->kind->name,
          (unsigned long long)t->seed, g->label, how, side_name[side], *changed);
    *changed = 0;
}

static bool
by_run(Task *t, Guarded *g, Side side, const Want *want)
{
    const void *got[OUTPUTS];
    bool ok = caught(runs, t);

    for (int k = 0; ok && k < t->n; k++)
        got[k] = jot_data(t->out[k]);
    judge(t, g, side, "run", want, ok, got);
    return !fault[0];
}

static bool
by_call(Task *t, Guarded *g, Side side, const Want *want)
{
    const void *got[OUTPUTS];
    size_t changed = 0;
    int n, k;
    bool ok;

    if (build(t))
        t->f = jot_compile(t->c, jot_vars(ninput, input), jot_vars(t->n, t->out));
    if (!jot_func_ok(t->f)) {
        CHECK(0, "%s %llu, %s: no function: %s", t->kind->name, (unsigned long long)t->seed,
              g->label, jot_message(t->c));
        return true;
    }
    for (n = ninput, k = 0; k < n; k++) {
        void *p = guarded_new(bytes_of(input[k]), side, t);

        memcpy(p, jot_data(input[k]), bytes_of(input[k]));
        t->in[k] = JOT_IN(p, bytes_of(input[k]));
    }
    for (k = 0; k < t->n; k++) {
        t->to[k] = JOT_OUT(guarded_new(bytes_of(t->out[k]), side, t), bytes_of(t->out[k]));
        got[k] = t->to[k].data;
    }
    t->nin = n;
    ok = caught(calls, t);
    judge(t, g, side, "call", want, ok, got);
    for (k = 0; k < n; k++)
        guarded_free((void *)t->in[k].data, &changed);
    for (k = 0; k < t->n; k++)
        guarded_free(t->to[k].data, &changed);
    told_changed(t, g, side, "call", &changed);
    return !fault[0];
}

static bool
open_guarded(Guarded *g, Side side)
{
    jot_Config config = g->config;

    config.hooks.realloc = guarded_realloc;
    config.hooks.ud = &g->heap[side];
    config.give_back = config.threads = 1;
    g->heap[side].side = side;
    g->ctx[side] = g->gone ? NULL : jot_open(&config);
    if (g->ctx[side] && jot_error(g->ctx[side])) {
        SKIP("%s: %s", g->label, jot_message(g->ctx[side]));
        jot_close(g->ctx[side]);
        g->ctx[side] = NULL;
        g->gone = true;
    }
    return g->ctx[side] != NULL;
}

static void
guarded(const Kind *kind, uint64_t seed, Guarded *g, const Want *want)
{
    for (int side = 0; side < SIDES; side++) {
        static Task t;
        bool lives = true;

        if (!g->ctx[side] && !open_guarded(g, side))
            return;
        memset(&t, 0, sizeof t);
        t.kind = kind, t.seed = seed, t.c = g->ctx[side];
        for (int way = 0; way < 2 && lives; way++) {
            jot_push(t.c);
            lives = way ? by_call(&t, g, side, want) : by_run(&t, g, side, want);
            if (lives) {
                jot_func_free(t.f);
                t.f = (jot_Func){0};
                jot_clear(t.c);
                jot_pop(t.c);
            }
        }
        if (!lives) {
            g->ctx[side] = NULL; /* it stands within an evaluation for ever */
            guarded_forget(&g->heap[side]);
        }
        told_changed(&t, g, side, "run", &g->heap[side].changed);
    }
}

/* ---- all of them ---------------------------------------------------------------------------- */

static bool
oracle(jot_Ctx *c, const Kind *kind, uint64_t seed, Want *want)
{
    static Task t;
    bool ok;

    t.kind = kind, t.seed = seed, t.c = c;
    jot_push(c);
    ok = runs(&t);
    CHECK(ok, "%s %llu: the interpreter: %s", kind->name, (unsigned long long)seed, jot_message(c));
    want->n = ok ? t.n : 0;
    for (int k = 0; k < want->n; k++) {
        want->nbytes[k] = bytes_of(t.out[k]);
        want->dtype[k] = jot_dtype(t.out[k]);
        want->data[k] = malloc(want->nbytes[k] + 1);
        memcpy(want->data[k], jot_data(t.out[k]), want->nbytes[k]);
    }
    jot_clear(c);
    jot_pop(c);
    return ok;
}

static void
one(jot_Ctx *c, const Kind *kind, uint64_t seed, Guarded *ways, int nways, const char *only)
{
    Want want;
    bool ok = oracle(c, kind, seed, &want);

    for (int w = 0; ok && w < nways; w++)
        if (only ? strstr(ways[w].label, only) != NULL
                 : seed % (uint64_t)ways[w].every == (uint64_t)(w % ways[w].every))
            guarded(kind, seed, &ways[w], &want);
    for (int k = 0; k < want.n; k++)
        free(want.data[k]);
}

static bool
touches(void *p)
{
    return *(volatile unsigned char *)p != FILL;
}

/* What guards is guarded: a read beside an array is a fault, a write among NaN is counted. */
static void
test_guards(void)
{
    unsigned char *p = guarded_new(10, ENDS, NULL), *q = guarded_new(10, BEGINS, NULL);
    unsigned char *r = guarded_new(10, AMONG, NULL);
    size_t changed = 0;

    p[9] = q[0] = 0;
    CHECK(caught(touches, p + 9) && caught(touches, q), "%s", fault);
    CHECK(!caught(touches, p + 10) && strstr(fault, "0 bytes beyond the end of an array of 10"),
          "%s", fault);
    CHECK(!caught(touches, q - 1) && strstr(fault, "1 bytes before an array of 10"), "%s", fault);
    r[-1] = r[10] = 0;
    CHECK(guarded_free(r, &changed) && changed == 2, "%zu bytes changed", changed);
    CHECK(guarded_free(p, &changed) && guarded_free(q, &changed) && changed == 2, "%zu", changed);
}

static Guarded ways[] = {
    {.label = "gcc", .config = {.backend = "cc", .cc = "gcc"}, .every = 2},
    {.label = "gcc, avx2", .config = {.backend = "cc", .cc = "gcc", .target = "avx2"}, .every = 6},
    {.label = "gcc, sse", .config = {.backend = "cc", .cc = "gcc", .target = "sse"}, .every = 6},
    {.label = "gcc, 16 lanes", .config = {.backend = "cc", .cc = "gcc", .lanes = 16}, .every = 6},
    {.label = "gcc, 8 lanes", .config = {.backend = "cc", .cc = "gcc", .lanes = 8}, .every = 6},
    {.label = "gcc, 2 lanes", .config = {.backend = "cc", .cc = "gcc", .lanes = 2}, .every = 6},
    {.label = "gcc, 1 lane", .config = {.backend = "cc", .cc = "gcc", .lanes = 1}, .every = 6},
    {.label = "gcc, random", .config = {.backend = "cc", .cc = "gcc", .layout = "random:1",
                                        .schedule = "random:1"}, .every = 6},
    {.label = "clang", .config = {.backend = "cc", .cc = "clang"}, .every = 6},
    {.label = "clang, avx2", .config = {.backend = "cc", .cc = "clang", .target = "avx2"},
     .every = 12},
    {.label = "tcc", .config = {.backend = "tcc"}, .every = 1},
    {.label = "tcc, 4 lanes", .config = {.backend = "tcc", .lanes = 4}, .every = 2},
    {.label = "tcc, random", .config = {.backend = "tcc", .layout = "random:2",
                                        .schedule = "random:2", .lanes = 4}, .every = 1},
    {.label = "interp", .config = {.backend = "interp"}, .every = 3},
};
enum { WAYS = sizeof ways / sizeof *ways };

/* Contexts hold kernels, and each of their blocks takes pages: their number has a limit. */
static void
close_guarded(void)
{
    for (int w = 0; w < WAYS; w++)
        for (int side = 0; side < SIDES; side++) {
            jot_close(ways[w].ctx[side]);
            ways[w].ctx[side] = NULL;
        }
}

int
main(int argc, char **argv)
{
    char cache[] = "/tmp/jot-guard-XXXXXX", remove[64];
    int n = argc > 1 ? atoi(argv[1]) : test_many(1, 3);
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    jot_Ctx *c = jot_open(&(jot_Config){.backend = "interp", .no_simplify = 1});

    if (!mkdtemp(cache))
        return 1;
    catch_faults();
    test_guards();
    for (int w = 0; w < WAYS; w++)
        ways[w].config.cache_dir = cache;
    for (uint64_t seed = first; seed < first + (uint64_t)n; seed++, close_guarded())
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            for (int i = 0; i < kinds[k].times; i++)
                one(c, &kinds[k], seed * (uint64_t)kinds[k].times + (uint64_t)i, ways, WAYS,
                    argc > 3 ? argv[3] : NULL);
    jot_close(c);
    snprintf(remove, sizeof remove, "rm -r %s", cache);
    return DONE() | (system(remove) != 0);
}
