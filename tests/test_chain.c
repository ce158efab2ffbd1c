/* tests/test_chain.c - contractions and what goes on along their rows in one kernel, by blocks of
 * rows: the schedule against plain loops on several machines; attention and its relatives through
 * the public header against the interpreter, with the number of kernels and the bytes of
 * temporaries, the same bits at any number of threads, and memory refused.
 *
 * Guards: ccode/contract/chain.c, ccode/contract/chain_text.c. */
#include "ccode/contract/chain.h"
#include "tests/ir_cases.h"
#include "tests/rates.h"
#include "core.h"

/* ---- schedules ---------------------------------------------------------------------------- */

typedef struct { int vector_nbytes, vectors, lanes, cc; const char *dialect; } Machine;
static const Machine machines[] = {
    { 64, 32, 16, GCC_NATIVE, "gnu" }, { 32, 16, 8, GCC_NATIVE, "gnu" }, { 16, 16, 4, GCC, "gnu" },
    { 16, 16, 4, GCC, "c" }, { 0, 0, 1, GCC, "c" }, { 64, 32, 16, CLANG_NATIVE, "gnu" }
};
enum { MACHINES = sizeof machines / sizeof *machines };

static Target
target_of(const Machine *m)
{
    Target t;
    jot_target_default(&t);
    t.vector_nbytes = m->vector_nbytes;
    t.vectors = m->vectors;
    t.cores = 2;
    return t;
}

/* Elements of the largest scratch buffer. */
static int64_t
largest(const Kernel *k)
{
    int64_t most = 0;
    for (uint32_t b = 1; b < k->bufs.n; b++)
        if (k->bufs.v[b].role == BUF_SCRATCH && k->bufs.v[b].layout->nelem > most)
            most = k->bufs.v[b].layout->nelem;
    return most;
}

/* Schedule and run; *text: the schedule. */
static void
runs(IrCase *c, const Machine *m, Text *text, const char *what)
{
    Target target = target_of(m);
    Sched s;
    bool ok = jot_chain_sched(&s, &c->k, &target, m->lanes);
    CHECK(ok, "%s: no schedule for %d lanes", what, m->lanes);
    if (!ok)
        return;
    if (text)
        jot_sched_print(&s, text);
    ir_check(c, &s, m->dialect, m->cc, what);
    jot_sched_close(&s);
}

static void
test_attention(bool clang)
{
    static const int64_t shape[][3] = { /* z t d */
        { 2, 13, 18 }, { 1, 40, 33 }, { 3, 70, 16 }, { 20, 33, 36 }, { 1, 200, 5 }, { 17, 20, 64 }
    };
    char what[80];
    for (int i = 0; i < 6; i++)
        for (int m = 0; m < MACHINES - !clang; m++) {
            const int64_t *x = shape[i];
            IrCase c;
            if ((i + m) % test_many(2, 1))
                continue;
            make_attention(&c, x[0], x[1], x[2], 1);
            sprintf(what, "attention %d on machine %d", i, m);
            runs(&c, &machines[m], NULL, what);
            ir_end(&c);
        }
}

/* Where batches are enough for all threads, what all rows read is packed by each; else in a phase
 * before, and blocks of rows are shared. */
static void
test_forms(void)
{
    for (int many = 0; many < 2; many++) {
        IrCase c;
        Text text = {0};
        text.mem = &ir_mem;
        make_attention(&c, many ? 16 : 2, 240, 8, 1);
        runs(&c, &machines[1], &text, "a form");
        CHECK(text.s && (strstr(text.s, "phase") == NULL) == many, "%s", text.s ? text.s : "");
        CHECK(text.s && (strstr(text.s, " q:60p ") != NULL) == !many, "%s", text.s ? text.s : "");
        CHECK(largest(&c.k) < 240 * 240 / 3, "%lld elements of scratch", (long long)largest(&c.k));
        jot_text_free(&text);
        ir_end(&c);
    }
}

/* What goes on along rows does so in lanes where these fill a vector, or a narrower one. */
static void
test_rows(void)
{
    static const struct { int64_t keys; bool lanes; } row[] = {
        { 3, false }, { 4, true }, { 8, true }, { 12, false }, { 16, true }, { 17, true },
        { 31, true }, { 33, true }
    };
    for (int i = 0; i < 8; i++) {
        IrCase c;
        Text text = {0};
        text.mem = &ir_mem;
        make_attention(&c, 2, row[i].keys, 18, 1);
        runs(&c, &machines[0], &text, "rows");
        CHECK(text.s && (strstr(text.s, "| t:") != NULL) == row[i].lanes, "%d keys: %s",
              (int)row[i].keys, text.s ? text.s : "");
        jot_text_free(&text);
        ir_end(&c);
    }
}

/* Keys lie along the sum: where its terms leave no rest of lanes they are turned in registers as
 * they are packed, in one panel or several. */
static void
test_turned(void)
{
    static const int64_t shape[][3] = {
        { 20, 32, 16 }, { 17, 64, 48 }, { 2, 96, 32 }, { 20, 32, 18 }, { 20, 36, 16 }
    };

    for (int i = 0; i < 5; i++)
        for (int m = 0; m < 3; m++) {
            IrCase c;
            Text text = {0};
            bool whole = machines[m].lanes >= 4 && shape[i][2] % machines[m].lanes == 0;

            text.mem = &ir_mem;
            make_attention(&c, shape[i][0], shape[i][1], shape[i][2], 1);
            runs(&c, &machines[m], &text, "turned keys");
            CHECK(text.s && (strstr(text.s, " k:1u t:1v; res") != NULL) == whole, "%d lanes: %s",
                  machines[m].lanes, text.s ? text.s : "");
            jot_text_free(&text);
            ir_end(&c);
        }
}

/* S = Q K', O = S K */
static void
make_there_and_back(IrCase *c, int64_t z, int64_t t, int64_t d)
{
    int64_t ext[4] = {z, t, t, d};
    uint32_t q, kt, o, keys, s;
    ir_start(c);
    ir_axes(c, "zqtk", ext);
    q = IN("Q", 3, z, t, d, 0);
    kt = IN("Kt", 3, z, t, d, 0);
    o = OUT("O", 3, z, t, d, 0);
    keys = ir_load(c, kt, AX(0), AX(2), AX(3), 0);
    s = ir_sum(c, EW_ADD, BIT(3), ir_ew(c, EW_MUL, ir_load(c, q, AX(0), AX(1), AX(3), 0), keys),
               "S");
    ir_store(c, o, AX(0), AX(1), AX(3), 0,
             ir_sum(c, EW_ADD, BIT(2), ir_ew(c, EW_MUL, s, keys), "o"));
    for (int64_t i = 0; i < z * t; i++)
        for (int64_t j = i / t * t; j < (i / t + 1) * t; j++) {
            double w = 0;
            for (int64_t k = 0; k < d; k++)
                w += c->data[q][i * d + k] * c->data[kt][j * d + k];
            for (int64_t k = 0; k < d; k++)
                c->data[o][i * d + k] += w * c->data[kt][j * d + k];
        }
}

/* What one product reads along one axis and another along another is packed for each. */
static void
test_twin(void)
{
    static const int64_t shape[][3] = { { 20, 128, 64 }, { 2, 192, 48 }, { 17, 145, 50 } };
    for (int i = 0; i < 3; i++)
        for (int m = 0; m < MACHINES - 1; m++) {
            IrCase c;
            Text text = {0};
            int panels = 0;
            if ((i + m) % test_many(2, 1))
                continue;
            text.mem = &ir_mem;
            make_there_and_back(&c, shape[i][0], shape[i][1], shape[i][2]);
            runs(&c, &machines[m], &text, "there and back");
            for (const char *at = text.s; at && (at = strstr(at, "; res p")) != NULL; at++)
                panels++;
            CHECK(panels == 2 || machines[m].lanes == 1, "%d lanes: %s", machines[m].lanes,
                  text.s ? text.s : "");
            jot_text_free(&text);
            ir_end(&c);
        }
}

/* Keys that fill no vector: its other lanes are stored, too, or sums would be made of what memory
 * holds by chance. */
static void
test_padded(void)
{
    static const int64_t keys[] = { 3, 8, 20, 32 };
    for (int i = 0; i < 4; i++) {
        Target target = target_of(&machines[0]);
        Text all = {0};
        EmitInfo info;
        IrCase c;
        Sched s;
        all.mem = &ir_mem;
        make_attention(&c, 2, keys[i], 18, 1);
        CHECK(jot_chain_sched(&s, &c.k, &target, 16), "%d keys", (int)keys[i]);
        ir_emit(&c, &s, "gnu", &all, &info, "padded");
        CHECK(all.s && strstr(all.s, "jot_st_f32x16(p") && !strstr(all.s, "jot_stn_f32x16(p"),
              "%d keys: %s", (int)keys[i], all.s ? all.s : "");
        jot_text_free(&all);
        jot_sched_close(&s);
        ir_end(&c);
    }
}

/* One contraction, and no other sum, has schedules of its own; sums without one, too. */
static void
test_none(void)
{
    Target target = target_of(&machines[1]);
    for (int i = 0; i < 8; i++) {
        IrCase c;
        Sched s;
        switch (i) {
        case 0: make_softmax(&c, 50, 70); break;
        case 1: make_by_weight(&c, 2, 9, 34, 6); break;
        case 2: make_by_input(&c, 1, 34, 5, 8); break;
        case 3: make_conv(&c, 2, 6, 35, 9, 1, false); break;
        case 4: make_conv(&c, 2, 6, 35, 9, 1, true); break; /* windows */
        case 5: make_columns(&c, 30, 50); break;
        case 6: make_transpose(&c, 30, 50); break;
        default: make_sigmoid(&c, 99);
        }
        CHECK(!jot_chain_sched(&s, &c.k, &target, 8), "case %d is no chain", i);
        ir_end(&c);
    }
}

/* ---- programs ----------------------------------------------------------------------------- */

enum { OUTPUTS = 8, NUMBERS = 1 << 20 };
static float numbers[NUMBERS];

typedef struct { const char *name; int kind; int kernels; } Case;
enum {
    PLAIN,
    CAUSAL,
    BIAS,
    CHOICE,
    ACROSS,
    HEADS,
    HALF,
    DOUBLE,
    ASKED,
    LONG,
    BACKWARD,
    ONE,
    OF_ONE,
    CASES
};

static jot_Var
input(jot_Ctx *c, jot_DType dtype, int at, jot_Ints shape)
{
    jot_Var v = jot_cast(jot_array(c, JOT_F32, shape, numbers + 1000 * at), dtype);
    jot_run(c, jot_vars(1, &v));
    return v;
}

/* x (n, l, 3 h d): part 0, 1, 2 of a product as (n, h, l, d) */
static jot_Var
head(jot_Var x, int part, int heads)
{
    int64_t width = jot_extent(x, 2) / 3;
    jot_Var y = jot_slice(x, JOT_SHAPE(0, 0, part * width),
                          JOT_SHAPE(JOT_END, JOT_END, (part + 1) * width), JOT_SHAPE(1, 1, 1));
    y = jot_reshape(y, JOT_SHAPE(jot_extent(y, 0), jot_extent(y, 1), heads, width / heads));
    return jot_transpose(y, JOT_INTS(0, 2, 1, 3));
}

/* What is normalised along a dimension of 1: means of one term, between two products. */
static int
build_of_one(jot_Ctx *c, jot_Var *out)
{
    jot_Conv half = {{2, 2}, {0, 0}, {1, 1}, 1};
    jot_Var x = input(c, JOT_F32, 0, JOT_SHAPE(4, 16, 3, 2)), one = input(c, JOT_F32, 1, JOT_SHAPE(1));

    x = jot_conv2d(x, input(c, JOT_F32, 20, JOT_SHAPE(16, 16, 2, 2)), &half);
    x = jot_add(x, input(c, JOT_F32, 40, JOT_SHAPE(16, 1, 1)));
    x = jot_softmax(jot_layer_norm(x, one, one, 1e-5), 1);
    out[0] = jot_linear(jot_reshape(x, JOT_SHAPE(4, 16)), input(c, JOT_F32, 50, JOT_SHAPE(16, 3)),
                        input(c, JOT_F32, 60, JOT_SHAPE(3)));
    return 1;
}

static int
build(jot_Ctx *c, int kind, jot_Var *out)
{
    int64_t n = kind == LONG ? 1 : 3, h = kind == LONG ? 1 : 2, l = kind == LONG ? 300 : 70, d = 24;
    int64_t from = kind == ACROSS ? 41 : kind == ONE ? 1 : l;
    jot_DType dtype = kind == HALF ? JOT_F16 : kind == DOUBLE ? JOT_F64 : JOT_F32;
    jot_Var v[3], g[3], s, p, at = jot_arange(c, JOT_F32, 0, 1, l);
    jot_Var dy = input(c, dtype, 60, JOT_SHAPE(n, h, from, d));
    jot_Var bias = input(c, JOT_F32, 90, JOT_SHAPE(h, l, l));
    if (kind == OF_ONE)
        return build_of_one(c, out);
    v[0] = input(c, dtype, 0, JOT_SHAPE(n, h, from, d));
    v[1] = input(c, dtype, 20, JOT_SHAPE(n, h, l, d));
    v[2] = input(c, dtype, 40, JOT_SHAPE(n, h, l, d));
    for (int i = 0; i < 3 && kind == HEADS; i++)
        v[i] = head(input(c, dtype, 7, JOT_SHAPE(n, l, 3 * h * d)), i, (int)h);
    s = jot_scale(jot_matmul(v[0], jot_swap(v[1], 2, 3)), 0.2);
    if (kind == CAUSAL)
        s = jot_add(s, jot_scale(jot_cast(jot_lt(jot_reshape(at, JOT_SHAPE(l, 1)), at), JOT_F32),
                                 -1e9));
    if (kind == BIAS)
        s = jot_add(s, bias);
    if (kind == CHOICE)
        s = jot_where(jot_gt(bias, jot_full(c, JOT_F32, JOT_SHAPE(), 0.3)), s,
                       jot_full(c, JOT_F32, JOT_SHAPE(), -1e30));
    p = jot_softmax(s, 3);
    out[0] = jot_matmul(p, v[2]);
    if (kind == ASKED)
        out[1] = p;
    if (kind != BACKWARD && kind != ONE)
        return 1 + (kind == ASKED);
    jot_grad(jot_sum(jot_mul(out[0], kind == ONE ? out[0] : dy), JOT_ALL_DIMS), jot_vars(3, v), g);
    if (kind == ONE) { /* sums that keep the keys, and a store of keys and columns behind them */
        out[0] = g[1];
        return 1;
    }
    memcpy(out + 1, g, sizeof g);
    return 4;
}

static const Case cases[CASES] = {
    { "attention", PLAIN, 1 }, { "causal attention", CAUSAL, 1 },
    { "attention with a bias", BIAS, 1 },
    { "attention with a choice", CHOICE, 1 }, { "attention across", ACROSS, 1 },
    { "attention by heads", HEADS, 1 }, { "attention of halves", HALF, 1 },
    { "attention of doubles", DOUBLE, 1 }, { "attention and its weights", ASKED, 2 },
    { "long attention", LONG, 1 }, { "attention with backward", BACKWARD, 4 },
    { "gradient by keys of one query", ONE, 1 },
    { "norm of one element between products", OF_ONE, 1 }
};

static jot_Ctx *
opened(const char *backend, int threads)
{
    jot_Config config = {.backend = backend, .threads = threads, .deterministic = 1,
                         .policy = "reward"};
    jot_Ctx *c = jot_open(&config);

    same_rates(c);
    return c;
}

/* Everything against the interpreter, and its kernels counted. */
static void
compare(const char *backend)
{
    for (int i = 0; i < CASES; i++) {
        jot_Ctx *c = opened(backend, 2), *plain = opened("interp", 1);
        jot_Var got[OUTPUTS], want[OUTPUTS];
        double tolerance = cases[i].kind == HALF ? 4e-3 : 2e-5;
        int n = build(c, cases[i].kind, got);
        build(plain, cases[i].kind, want);
        if (jot_error(c)) {
            SKIP("%s: %s", backend, jot_message(c));
            jot_close(c), jot_close(plain);
            return;
        }
        CHECK(jot_run(c, jot_vars(n, got)) && jot_run(plain, jot_vars(n, want)), "%s: %s",
              cases[i].name, jot_message(c));
        CHECK((int)jot_stats(c).last_kernels == cases[i].kernels, "%s, %s: %d kernels", backend,
              cases[i].name, (int)jot_stats(c).last_kernels);
        if (cases[i].kernels == 1)
            CHECK(jot_stats(c).last_temp_nbytes == 0, "%s, %s: temporaries of %d bytes", backend,
                  cases[i].name, (int)jot_stats(c).last_temp_nbytes);
        for (int k = 0; k < n; k++) {
            jot_Var a = jot_cast(got[k], JOT_F64), b = jot_cast(want[k], JOT_F64);
            jot_Var off = jot_sub(a, jot_array(c, JOT_F64, jot_shape(b), jot_data(b)));
            double worst = jot_item(jot_max(jot_abs(off), JOT_ALL_DIMS));
            CHECK(worst < tolerance, "%s, %s, result %d: %g from the interpreter", backend,
                  cases[i].name, k, worst);
        }
        jot_close(c);
        jot_close(plain);
    }
}

static void
test_threads(const char *backend)
{
    static const int threads[] = {1, 2, 3, 7, 128};
    for (int kind = 0; kind < CASES; kind += 1 + (kind == PLAIN) * (LONG - 1)) {
        jot_Ctx *one = NULL;
        jot_Var want[OUTPUTS], got[OUTPUTS];
        for (int i = 0; i < 5; i++) {
            jot_Ctx *c = opened(backend, threads[i]);
            int n = build(c, kind, got);
            CHECK(jot_run(c, jot_vars(n, got)), "%s", jot_message(c));
            for (int k = 0; one && k < n && !jot_error(c); k++)
                CHECK(!memcmp(jot_data(want[k]), jot_data(got[k]),
                              (size_t)jot_nelem(got[k]) * jot_dtype_nbytes(jot_dtype(got[k]))),
                      "%s, %s: result %d differs at %d threads", backend, cases[kind].name, k,
                      threads[i]);
            if (one)
                jot_close(c);
            else {
                one = c;
                memcpy(want, got, sizeof want);
            }
        }
        jot_close(one);
    }
}

/* ---- memory refused ----------------------------------------------------------------------- */

static int left;

static void *
refusing(void *ud, void *p, size_t old, size_t size)
{
    (void)ud, (void)old;
    if (size == 0) {
        free(p);
        return NULL;
    }
    return left-- > 0 ? realloc(p, size) : NULL;
}

/* The n-th allocation of a schedule is refused, for every n. */
static void
test_refused(void)
{
    bool done = false;
    for (int n = 0; !done && n < 10000; n++) {
        Target target = target_of(&machines[1]);
        IrCase c;
        Sched s;
        bool ok;
        make_attention(&c, 2, 30, 20, 1);
        left = n;
        ir_mem.hooks.realloc = refusing;
        ok = jot_chain_sched(&s, &c.k, &target, 8);
        done = !ir_mem.failed;
        CHECK(ok == done, "refused %d: a schedule all the same", n);
        ir_mem.hooks.realloc = ir_realloc;
        ir_mem.failed = false;
        if (ok)
            jot_sched_close(&s);
        ir_end(&c);
    }
    CHECK(done, "it ends");
}

int
main(void)
{
    bool gcc = system("command -v gcc >/dev/null 2>&1") == 0;
    bool clang = system("command -v clang >/dev/null 2>&1") == 0;
    uint32_t seed = 1;
    (void)ir_guarded, (void)ir_default;
    for (int i = 0; i < NUMBERS; i++) {
        seed = seed * 1664525u + 1013904223u;
        numbers[i] = (float)(seed >> 8) / (1 << 23) - 1;
    }
    ir_open();
    if (gcc) {
        test_attention(clang);
        test_forms();
        test_rows();
        test_turned();
        test_twin();
        test_padded();
    } else
        SKIP("no gcc here");
    test_none();
    test_refused();
    ir_close();
    compare("cc");
    compare("tcc");
    test_threads("cc");
    return DONE();
}
