/* tests/test_transpose.c - blocks that are read along one axis and written along another, turned in
 * registers (ccode/schedule/transpose.c, ccode/lower/transpose.c): transpositions, copies into
 * panels and channels last, in vectors of 4, 8 and 16 lanes and in arrays, with what else is read
 * beside them, of floats and of doubles; how many loads and mixes they take; what is not turned.
 *
 * Guards: ccode/lower/transpose.c, ccode/schedule/transpose.c. */
#include "ccode/schedule/transpose.h"
#include "tests/ir_run.h"

typedef struct {
    const char *what;
    int64_t n, a, b;            /* y[n, a, b] */
    int panel;                  /* of b, 0: none */
    bool beside, halo;          /* something is added along b, one of a; the result has a halo */
    int from;                   /* x: 0 [n, b, a], 1 [b, n, a], 2 [n, b / 4, a, b % 4] */
} Transposed;

static jot_DType dtype = JOT_F32; /* of all buffers */

static uint32_t
buf(IrCase *c, const char *name, BufRole role, int rank, int64_t a, int64_t b, int64_t d, int64_t e)
{
    return ir_buf(c, name, dtype, role, rank, a, b, d, e);
}

static uint32_t
turned_ew(IrCase *c, EwOp op, uint32_t a, uint32_t b)
{
    return dtype == JOT_F32 ? ir_ew(c, op, a, b) : jot_v_ew(&c->k, op, dtype, a, b, 0);
}

/* y[n, a, b] = x[n, b, a] * 3 - z[n, a, b] + bias[b] + scale[a] */
static void
make_turned(IrCase *c, const Transposed *t)
{
    static const LayoutPart panels[] = { { 0, 1 }, { 2, 0 }, { 1, 1 }, { 2, 1 } };
    static const LayoutPart plain[] = { { 0, 1 }, { 1, 1 }, { 2, 1 } };
    int64_t ext[3], side[3] = {0, 1, 0};
    uint32_t x, y, z = 0, bias = 0, scale = 0, v;
    LayoutPart part[4];
    Layout layout;

    ext[0] = t->n, ext[1] = t->a, ext[2] = t->b;
    ir_start(c);
    ir_axes(c, "nab", ext);
    x = t->from == 1 ? buf(c, "x", BUF_INPUT, 3, t->b, t->n, t->a, 0)
        : t->from == 2 ? buf(c, "x", BUF_INPUT, 4, t->n, t->b / 4, t->a, 4) : buf(c, "x", BUF_INPUT, 3, t->n, t->b, t->a, 0);
    y = buf(c, "y", BUF_OUTPUT, 3, t->n, t->a, t->b, 0);
    memcpy(part, t->panel ? panels : plain, t->panel ? sizeof panels : sizeof plain);
    if (t->panel)
        part[1].step = t->panel;
    CHECK(jot_layout_make(&layout, 3, ext, t->panel ? 4 : 3, part, t->halo ? side : NULL,
                          t->halo ? side : NULL), "%s: layout", t->what);
    jot_kernel_layout(&c->k, y, &layout);
    v = t->from == 1 ? ir_load(c, x, AX(2), AX(0), AX(1), 0)
        : t->from == 2 ? ir_load(c, x, AX(0), IDIV(AX(2), 4), AX(1), IMOD(AX(2), 4))
        : ir_load(c, x, AX(0), AX(2), AX(1), 0);
    if (t->beside) {
        z = buf(c, "z", BUF_INPUT, 3, t->n, t->a, t->b, 0);
        bias = buf(c, "bias", BUF_INPUT, 1, t->b, 0, 0, 0);
        scale = buf(c, "scale", BUF_INPUT, 1, t->a, 0, 0, 0);
        v = turned_ew(c, EW_MUL, v, jot_v_constf(&c->k, dtype, 3));
        v = turned_ew(c, EW_SUB, v, ir_load(c, z, AX(0), AX(1), AX(2), 0));
        v = turned_ew(c, EW_ADD, v, ir_load(c, bias, AX(2), 0, 0, 0));
        v = turned_ew(c, EW_ADD, v, ir_load(c, scale, AX(1), 0, 0, 0));
    }
    ir_store(c, y, AX(0), AX(1), AX(2), 0, v);
    for (int64_t i = 0; i < t->n * t->a * t->b; i++) {
        int64_t b = i % t->b, a = i / t->b % t->a, n = i / t->b / t->a;
        double one = c->data[x][t->from == 1 ? (b * t->n + n) * t->a + a
                              : t->from == 2 ? ((n * (t->b / 4) + b / 4) * t->a + a) * 4 + b % 4
                              : (n * t->b + b) * t->a + a];

        c->data[y][i] = t->beside ? one * 3 - c->data[z][i] + c->data[bias][b] + c->data[scale][a]
                                  : one;
    }
}

/* What begins with `word`, followed by the dtype's short name. */
static int
count(const Text *text, const char *of)
{
    char word[32];
    int n = 0;

    snprintf(word, sizeof word, "%s_%s", of, jot_dtype_name(dtype));
    for (const char *p = text->s; p && (p = strstr(p, word)) != NULL; p++)
        n++;
    return n;
}

/* The text has as many loads of vectors as rows and, for each bit of a lane's number, as many
 * mixes; rows that are left over are loaded once and take no more mixes than others. */
static void
expect_counts(IrCase *c, const Sched *s, const Transposed *t, int lanes)
{
    Text text = {0};
    EmitInfo info;
    int bits = 0;

    while (1 << bits < lanes)
        bits++;
    if (ir_emit(c, s, "gnu", &text, &info, t->what)) {
        int left = (int)(t->b % lanes), loads = count(&text, "= jot_ld");
        int mixes = count(&text, "= jot_mix2"), blocks = loads / lanes; /* in the text */
        CHECK(loads == blocks * lanes + left && blocks >= 1 && blocks <= 1 + (left > 0),
              "%s, %d lanes: %d loads", t->what, lanes, loads);
        CHECK(left ? mixes > blocks * bits * lanes && mixes <= (blocks + 1) * bits * lanes
                   : mixes == bits * lanes, "%s, %d lanes: %d mixes", t->what, lanes, mixes);
        CHECK(count(&text, "jot_st") >= lanes, "%s, %d lanes: no vector is stored", t->what,
              lanes);
    }
    jot_text_free(&text);
}

/* which: does jot_transpose_sched take it? cc[0] knows vectors, cc[1] need not; -1: not there. */
static void
expect(const Transposed *t, bool which, int lanes, const int *cc)
{
    IrCase c;
    Sched s;

    make_turned(&c, t);
    memset(&s, 0, sizeof s);
    CHECK(jot_transpose_sched(&s, &c.k, NULL, lanes) == which, "%s, %d lanes: %s", t->what, lanes,
          which ? "not turned" : "turned");
    if (s.k) {
        CHECK(jot_sched_verify(&s, NULL), "%s, %d lanes: not legal", t->what, lanes);
        if (!t->beside)
            expect_counts(&c, &s, t, s.lanes);
        for (int i = 0; i < 2; i++)
            if (cc[i] >= 0)
                ir_check(&c, &s, i ? "c" : "gnu", cc[i], t->what);
        jot_sched_close(&s);
    }
    ir_end(&c);
}

static void
test_which(const int *cc)
{
    static const Transposed yes[] = {
        { "a transposition", 1, 64, 48, 0, false, false, 0 },
        { "several", 3, 32, 80, 0, false, false, 0 },
        { "with others beside", 2, 16, 64, 0, true, false, 0 },
        { "long rows", 1, 1040, 16, 0, false, false, 0 },
        { "panels", 1, 48, 128, 32, false, false, 0 },
        { "panels with others beside", 2, 32, 64, 16, true, false, 0 },
        { "a border around the result", 2, 32, 16, 0, true, true, 0 },
        { "panels, a border between them", 1, 32, 64, 32, false, true, 0 },
        { "the batch inside", 5, 16, 32, 0, true, false, 1 },
        { "halves of vectors", 2, 72, 40, 0, true, false, 0 },
        { "quarters", 1, 64, 36, 0, false, false, 0 },
        { "rows with a rest", 1, 70, 64, 0, false, false, 0 },
        { "columns with a rest", 1, 64, 70, 0, false, false, 0 },
        { "columns with a rest of one, others beside", 2, 32, 49, 0, true, false, 0 },
        { "rests of both", 3, 51, 37, 0, false, false, 0 },
    };
    static const Transposed no[] = {
        { "fewer rows than lanes", 1, 3, 64, 0, false, false, 0 },
        { "columns in groups", 2, 32, 64, 0, false, false, 2 },
    };
    for (int lanes = 4; lanes <= 16; lanes *= 2) {
        for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
            expect(&yes[i], lanes > 4 || (yes[i].a % lanes == 0 && yes[i].b % lanes == 0), lanes, cc);
        for (size_t i = 0; i < sizeof no / sizeof *no; i++)
            expect(&no[i], false, lanes, cc);
    }
    expect(&yes[0], false, 2, cc);
    dtype = JOT_F64; /* half as many lanes, whole lines of the cache */
    for (int lanes = 4; lanes <= 16; lanes *= 2)
        for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
            expect(&yes[i], lanes == 16 && yes[i].a % 8 == 0 && yes[i].b % 8 == 0, lanes, cc);
    dtype = JOT_F32;
}

/* y[a, b] = the sum over n of x[n, b, a], or x[0, b, a - 1], 0 where there is none */
static void
test_others(void)
{
    for (int sum = 0; sum < 2; sum++) {
        IrCase ca, *c = &ca;
        int64_t ext[3] = {3, 64, 64};
        uint32_t x, y, v;
        Sched s;

        ir_start(c);
        ir_axes(c, "nab", ext);
        x = IN("x", 3, 3, 64, 64, 0);
        y = OUT("y", 2, 64, 64, 0, 0);
        v = sum ? ir_sum(c, EW_ADD, BIT(0), ir_load(c, x, AX(0), AX(2), AX(1), 0), "s")
                : ir_guarded(c, x, IC(0), AX(2), ISUB(AX(1), IC(1)), 0);
        ir_store(c, y, AX(1), AX(2), 0, 0, v);
        memset(&s, 0, sizeof s);
        CHECK(!jot_transpose_sched(&s, &c->k, NULL, 16), sum ? "a sum is turned" : "a border is turned");
        ir_end(c);
    }
}

/* Schedules by hand: more copies than lanes, fewer, a rest of lanes, a clamped loop, rows of
 * groups. */
static void
test_by_hand(const int *cc)
{
    static const Transposed t = { "by hand", 2, 40, 64, 0, true, false, 0 };
    static const Transposed groups = { "groups by hand", 2, 16, 64, 0, true, false, 2 };
    static const char *const text[] = {
        "lanes 8\n!0: n a:8 b:8 a:1u b:1v\n",
        "lanes 8\n!0: n a:16 b:8 a:1u b:1v\n",
        "lanes 8\n!0: n a:4 b:8 a:1u b:1v\n",
        "lanes 16\n!0: n a:16 b:16 a:1u b:1v\n",
        "lanes 8\n!0: n a:8 b:24 b:8 a:1u b:1v\n",
        "lanes 16\n!0: n a:16c b:16 a:1u b:1v\n",
        "lanes 4\n!0: n b:4 a:4 n:1u a:1u b:1v\n",
        "lanes 4\n!0: n b:4 a:8 a:4u a:1u b:1v\n",
    };
    for (size_t i = 0; i < 4 * (sizeof text / sizeof *text); i++) {
        const char *one = text[i / 4];
        IrCase c;
        Sched s;
        Text why = {0};

        why.mem = &ir_mem;
        dtype = i % 4 < 2 ? JOT_F32 : JOT_F64;
        make_turned(&c, i % 2 ? &groups : &t);
        memset(&s, 0, sizeof s);
        CHECK(jot_sched_read(&s, &c.k, one, strlen(one), &why) && jot_sched_verify(&s, &why),
              "%s: %s", one, why.s ? why.s : "");
        for (int d = 0; d < 2; d++)
            if (cc[d] >= 0)
                ir_check(&c, &s, d ? "c" : "gnu", cc[d], one);
        jot_sched_close(&s);
        jot_text_free(&why);
        ir_end(&c);
    }
    dtype = JOT_F32;
}

int
main(void)
{
    int cc[2] = { GCC_NATIVE, TCC };

    ir_open();
    if (system("command -v gcc >/dev/null 2>&1") != 0) {
        SKIP("no gcc here");
        cc[0] = -1;
    }
    if (system("command -v tcc >/dev/null 2>&1") != 0)
        cc[1] = cc[0] < 0 ? -1 : GCC;
    test_which(cc);
    test_others();
    test_by_hand(cc);
    ir_close();
    return DONE();
}
