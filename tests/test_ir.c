/* tests/test_ir.c - the kernel IR: kernels built by hand, with plain and hand-written schedules,
 * emitted as C, compiled, run and compared with straightforward loops here.
 * Set IR_SHOW to a part of a case's name to see its text.
 *
 * Guards: ccode/emit/print.c, ccode/lower/independent.c, ccode/emit/loop.c, ccode/schedule/read.c,
 * ccode/schedule/text.c, ccode/verify/sched.c, ccode/verify/verify.c. */
#include "tests/ir_cases.h"

/* ---- kernels for schedules by hand alone ---- */

/* y = conv(relu(x * g), w): the product is made in a tile with a halo: an image. */
static void
make_prologue(IrCase *c, int64_t n, int64_t ci, int64_t o, int64_t h)
{
    static const char *const name[] = { "n", "o", "h", "w", "i", "p", "q", "hp", "wp", "c" };
    int64_t ext[10];
    uint32_t x, g, w, y, xp, acc;
    int axis[3];
    Ix to[3];
    ext[0] = n, ext[1] = o, ext[2] = h, ext[3] = h, ext[4] = ci, ext[5] = 3, ext[6] = 3;
    ext[7] = h + 2, ext[8] = h + 2, ext[9] = ci;
    ir_start(c);
    for (int i = 0; i < 10; i++)
        jot_kernel_axis(&c->k, name[i], ext[i]);
    x = IN("x", 4, n, ci, h, h);
    g = IN("g", 1, ci, 0, 0, 0);
    w = IN("wt", 4, o, ci, 3, 3);
    y = OUT("y", 4, n, o, h, h);
    TMP("XP", 3, h + 2, h + 2, ci, 0);
    xp = ir_ew(c, EW_MAX,
               ir_ew(c, EW_MUL, ir_guarded(c, x, AX(0), AX(9), ISUB(AX(7), IC(1)),
                                           ISUB(AX(8), IC(1))),
                     ir_load(c, g, AX(9), 0, 0, 0)), jot_v_constf(&c->k, JOT_F32, 0));
    jot_v_name(&c->k, xp, "xp");
    axis[0] = 9, axis[1] = 7, axis[2] = 8;
    to[0] = AX(4), to[1] = IADD(AX(2), AX(5)), to[2] = IADD(AX(3), AX(6));
    acc = ir_sum(c, EW_ADD, BIT(4) | BIT(5) | BIT(6),
                 ir_ew(c, EW_MUL, jot_v_at(&c->k, xp, 3, axis, to),
                       ir_load(c, w, AX(1), AX(4), AX(5), AX(6))), "acc");
    ir_store(c, y, AX(0), AX(1), AX(2), AX(3), acc);
    for (int64_t i = 0; i < n * o * h * h; i++)
        for (int64_t k = 0; k < ci * 9; k++)
            c->data[y][i] += fmax(0, at4(c->data[x], c->k.bufs.v[x].ext, i / h / h / o, k / 9,
                                         i / h % h + k / 3 % 3 - 1,
                                         i % h + k % 3 - 1) * c->data[g][k / 9]) *
                             c->data[w][i / h / h % o * ci * 9 + k];
}

/* F(2x2, 3x3): tiles i j of 4 x 4 points a b; U holds the transformed weights. */
static void
make_winograd(IrCase *c, int64_t n, int64_t ci, int64_t o, int64_t h, int64_t tb)
{
    static const double bt[16] = { 1, 0, -1, 0, 0, 1, 1, 0, 0, -1, 1, 0, 0, 1, 0, -1 };
    static const double at[8] = { 1, 1, 1, 0, 0, 1, -1, -1 };
    static const double g[12] = { 1, 0, 0, .5, .5, .5, .5, -.5, .5, 0, 0, 1 };
    int64_t t = h / 2, ext[11], four[2], two[2];
    uint32_t x, u, y, v1, v, m, y1, yy;
    double w[9];
    Ix idx[2];
    ext[0] = n, ext[1] = t, ext[2] = t, ext[3] = ext[4] = ext[5] = ext[6] = 4, ext[7] = ext[8] = 2;
    ext[9] = ci, ext[10] = o;
    four[0] = four[1] = 4, two[0] = 2, two[1] = 4;
    ir_start(c);
    ir_axes(c, "nijabrsefco", ext); /* 0 n 1 i 2 j 3 a 4 b 5 r 6 s 7 e 8 f 9 c 10 o */
    x = IN("x", 4, n, ci, h, h);
    u = IN("U", 4, 4, 4, ci, o);
    y = OUT("y", 4, n, o, h, h);
    TMP("SV", 4, 4, 4, tb, ci);
    TMP("SM", 4, 4, 4, tb, o);
    idx[0] = AX(3), idx[1] = AX(5);
    v1 = ir_sum(c, EW_ADD, BIT(5),
                ir_ew(c, EW_MUL, jot_v_table(&c->k, JOT_F32, 2, four, bt, idx),
                      ir_guarded(c, x, AX(0), AX(9), IADD(IMUL(AX(1), 2), ISUB(AX(5), IC(1))),
                                 IADD(IMUL(AX(2), 2), ISUB(AX(6), IC(1))))), "v1");
    idx[0] = AX(4), idx[1] = AX(6);
    v = ir_sum(c, EW_ADD, BIT(6), ir_ew(c, EW_MUL, jot_v_table(&c->k, JOT_F32, 2, four, bt, idx),
                                        v1), "v");
    m = ir_sum(c, EW_ADD, BIT(9), ir_ew(c, EW_MUL, v, ir_load(c, u, AX(3), AX(4), AX(9), AX(10))),
               "m");
    idx[0] = AX(7), idx[1] = AX(3);
    y1 = ir_sum(c, EW_ADD, BIT(3), ir_ew(c, EW_MUL, jot_v_table(&c->k, JOT_F32, 2, two, at, idx),
                                         m), "y1");
    idx[0] = AX(8), idx[1] = AX(4);
    yy = ir_sum(c, EW_ADD, BIT(4), ir_ew(c, EW_MUL, jot_v_table(&c->k, JOT_F32, 2, two, at, idx),
                                         y1), "yy");
    ir_store(c, y, AX(0), AX(10), IADD(IMUL(AX(1), 2), AX(7)), IADD(IMUL(AX(2), 2), AX(8)), yy);
    for (int64_t k = 0; k < ci * o; k++) { /* of input k % ci, output k / ci, into U and y */
        int64_t ic = k % ci, oc = k / ci;
        for (int i = 0; i < 9; i++)
            w[i] = (double)((k * 5 + i * 3) % 13) / 8 - 0.75;
        for (int i = 0; i < 16; i++) {
            double sum = 0;
            for (int j = 0; j < 9; j++)
                sum += g[i / 4 * 3 + j / 3] * w[j] * g[i % 4 * 3 + j % 3];
            c->data[u][(i * ci + ic) * o + oc] = sum;
        }
        for (int64_t i = 0; i < n * h * h; i++)
            for (int j = 0; j < 9; j++)
                c->data[y][(i / h / h * o + oc) * h * h + i % (h * h)] +=
                    w[j] * at4(c->data[x], c->k.bufs.v[x].ext, i / h / h, ic,
                               i / h % h + j / 3 - 1, i % h + j % 3 - 1);
    }
}

/* Row sums, column sums and the sum of one space of pairs: (x[i] - y[j])^2 * r[i, j]. Columns in
 * one partial row per block of b rows, added up in a second nest. */
static void
make_pairs(IrCase *c, int64_t n, int64_t m, int64_t b)
{
    int64_t nb = (n + b - 1) / b, ext[3];
    uint32_t x, y, r, rows, cols, val, pc, v, d;
    ext[0] = n, ext[1] = m, ext[2] = nb;
    ir_start(c);
    ir_axes(c, "ijb", ext);
    x = IN("x", 1, n, 0, 0, 0);
    y = IN("y", 1, m, 0, 0, 0);
    r = IN("r", 2, n, m, 0, 0);
    rows = OUT("rows", 1, n, 0, 0, 0);
    cols = OUT("cols", 1, m, 0, 0, 0);
    val = OUT("val", 1, 1, 0, 0, 0);
    pc = TMP("pc", 2, nb, m, 0, 0);
    d = ir_ew(c, EW_SUB, ir_load(c, x, AX(0), 0, 0, 0), ir_load(c, y, AX(1), 0, 0, 0));
    v = ir_ew(c, EW_MUL, ir_ew(c, EW_MUL, d, d), ir_load(c, r, AX(0), AX(1), 0, 0));
    ir_store(c, rows, AX(0), 0, 0, 0, ir_sum(c, EW_ADD, BIT(1), v, "rowsum"));
    ir_store(c, val, IC(0), 0, 0, 0, ir_sum(c, EW_ADD, BIT(0) | BIT(1), v, "all"));
    if (b > 0) { /* the partial rows are a reduction over i placed at pc[i / b, j] */
        uint32_t part = ir_sum(c, EW_ADD, BIT(0), v, "part");
        (void)part;
        ir_store(c, cols, AX(1), 0, 0, 0, ir_sum(c, EW_ADD, BIT(2),
                                                 ir_load(c, pc, AX(2), AX(1), 0, 0), "colsum"));
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++) {
            double t = c->data[x][i] - c->data[y][j];
            t = t * t * c->data[r][i * m + j];
            c->data[rows][i] += t;
            c->data[cols][j] += t;
            c->data[val][0] += t;
        }
}

/* ---- schedules by hand: {V} lanes, {2V} twice as many, and so on ---- */

/* A schedule written by hand: it must read, print to what reads back the same, and compute. */
static void
ir_hand(IrCase *c, const char *text, const char *dialect, int cc, const char *what)
{
    Sched s, again;
    Text one = {0}, two = {0}, why = {0};
    one.mem = two.mem = why.mem = &ir_mem;
    if (!jot_sched_read(&s, &c->k, text, strlen(text), &why))
        CHECK(false, "%s: %s", what, why.s);
    else {
        jot_sched_print(&s, &one);
        CHECK(jot_sched_read(&again, &c->k, one.s, one.n, &why), "%s: printed schedule: %s", what,
              why.s);
        jot_sched_print(&again, &two);
        CHECK(one.n == two.n && memcmp(one.s, two.s, one.n) == 0, "%s: schedule changes: %s", what,
              two.s);
        jot_sched_close(&again);
        ir_check(c, &s, dialect, cc, what);
    }
    jot_sched_close(&s);
    jot_text_free(&one);
    jot_text_free(&two);
    jot_text_free(&why);
}

static void
fill_in(char *out, const char *text, int lanes)
{
    while (*text) {
        if (*text == '{') {
            int k = text[1] == 'V' ? 1 : text[1] - '0';
            out += sprintf(out, "%d", k * lanes);
            text = strchr(text, '}') + 1;
        } else
            *out++ = *text++;
    }
    *out = 0;
}

typedef struct { const char *dialect; int lanes, cc; } IrTarget;
static const IrTarget targets[] = {
    { "c", 1, GCC }, { "c", 1, TCC }, { "c", 1, CLANG }, { "c", 4, GCC }, { "c", 4, TCC },
    { "gnu", 8, GCC_NATIVE }, { "gnu", 16, GCC_NATIVE }, { "gnu", 8, CLANG_NATIVE }
};
static bool present[5];

/* What its reader makes of a text: the schedule as it prints, or why there is none. */
static void
read_as(IrCase *c, const char *text, size_t n, Text *to)
{
    Sched s;
    if (jot_sched_read(&s, &c->k, text, n, to))
        jot_sched_print(&s, to);
    jot_sched_close(&s);
}

/* Each beginning of a text reads as if nothing came behind it. */
static void
ir_beginnings(IrCase *c, const char *text, const char *what)
{
    for (size_t n = 0; n < strlen(text); n++) {
        char alone[4096] = {0};
        Text one = {0}, two = {0};
        one.mem = two.mem = &ir_mem;
        memcpy(alone, text, n);
        read_as(c, text, n, &one);
        read_as(c, alone, n, &two);
        CHECK(one.n == two.n && !memcmp(one.s, two.s, one.n), "%s: %s, with \"%s\" behind it: %s",
              what, two.s, text + n, one.s);
        jot_text_free(&one);
        jot_text_free(&two);
    }
}

static void
by_hand(IrCase *c, const char *text, const char *what)
{
    static unsigned turn; /* each schedule on every other target: odd ones, then even ones */
    char full[4096];
    fill_in(full, text, 4);
    ir_beginnings(c, full, what);
    turn++;
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
        if (present[targets[i].cc] && (i + turn) % (unsigned)test_many(2, 1) == 0) {
            int n = sprintf(full, "lanes %d\n", targets[i].lanes);
            fill_in(full + n, text, targets[i].lanes);
            ir_hand(c, full, targets[i].dialect, targets[i].cc, what);
        }
}

static void
test_loops(void)
{
    IrCase c;
    make_sigmoid(&c, 103);
    by_hand(&c, "!0: i:{V} i:1v", "sigmoid");
    by_hand(&c, "!0: i:{4V} i:{V}u i:1v", "sigmoid, unrolled");
    ir_end(&c);
    make_softmax(&c, 7, 101);
    by_hand(&c, "%mx: r:1p | j:{V} j:1v\n%e: r:1p j:{V} j:1v; res y[r, j]\n%s: r:1p | j:{V} j:1v\n"
            "!0: r:1p j:{V} j:1v", "softmax");
    by_hand(&c, "%mx: r:1p | j:{4V} j:{V}U j:1v\n%e: r:1p j:{4V} j:{V}U j:1v; res y[r, j]\n"
            "%s: r:1p | j:{4V} j:{V}U j:1v\n!0: r:1p j:{4V} j:{V}U j:1v",
                "softmax, four partial sums");
    ir_end(&c);
    make_columns(&c, 10, 101);
    by_hand(&c, "%s: j:{4V} | r j:{V}u j:1v\n%q: j:{4V} | r j:{V}u j:1v\n!0: j:{4V} r j:{V}u j:1v",
            "column panels");
    ir_end(&c);
}

/* Registers that are arrays, over reduced and kept axes; extents of which 8 is no divisor. */
static void
test_lanes(void)
{
    static const int64_t wide[4] = { 1, 8, 101, 31 };
    IrCase c;
    for (int i = 0; i < 4; i++) {
        make_softmax(&c, 7, wide[i]);
        by_hand(&c, "%mx: r:1p | j:8 j:1l\n%e: r:1p j:8 j:1l; res y[r, j]\n%s: r:1p | j:8 j:1l\n"
                "!0: r:1p j:8 j:1l", "softmax, lanes");
        by_hand(&c, "%mx: r:1p | j:8 j:1l\n%e: r:1p j:8 j:1l; res y[r, j]; next 1\n"
                "%s: r:1p | j:8 j:1l\n!0: r:1p j:8 j:1l", "softmax, the next row asked for");
        by_hand(&c, "%mx: r:1p | j:1l\n%e: r:1p j; res y[r, j]\n%s: r:1p | j:5 j:1l\n"
                "!0: r:1p j:8 j:1l", "softmax, a row of lanes");
        ir_end(&c);
        make_columns(&c, 10, wide[i]);
        by_hand(&c, "%s: j:8p | r j:1l\n%q: j:8p | r j:1l\n!0: j:8p r j:1l", "panels of lanes");
        by_hand(&c, "%s: j:16p | r j:8u j:1l\n%q: j:16p | r j:8u j:1l\n!0: j:16p r j:8u j",
                "copies of lanes");
        ir_end(&c);
    }
    make_conv(&c, 2, 6, 35, 7, 1, false);
    by_hand(&c, "%acc: n:1p o h | i p q w:1l\n!0: n:1p o h w:1l", "convolution, rows of lanes");
    by_hand(&c, "%acc: n:1p o h | i p w:1l q:1u\n!0: n:1p o h w:1l", "rows of lanes, taps inside");
    by_hand(&c, "%acc: n:1p o h | i w:1l p:1u q:1u\n!0: n:1p o h w:1l",
            "rows of lanes, two axes of taps");
    by_hand(&c, "%acc: n:1p o h w:1l | i:1u p:1u q:1u\n!0: n:1p o h w:1l",
            "a row's loop around taps");
    by_hand(&c, "%acc: n:1p o:2 h w:1l o:1u | i:1u p:1u q:1u\n!0: n:1p o:2 h w:1l o:1u",
            "a row's loop, two sums in it");
    by_hand(&c, "%acc: n:1p o i:4 h | i p w:1l q:1u; keep y[n, o, h, w]\n!0: n:1p o i:4 h w:1l",
            "rows of lanes kept in memory, taps inside");
    by_hand(&c, "%acc: n:1p o:2 h w:3 | i p q o:1u w:1l\n!0: n:1p o:2 h w:3 o:1u w:1l",
            "convolution, copies of lanes");
    by_hand(&c, "%acc: n:1p o i:4 h | i p q w:1l; keep y[n, o, h, w]\n!0: n:1p o i:4 h w:1l",
            "convolution, lanes saved between blocks");
    ir_end(&c);
}

static void
test_transpose(void)
{
    IrCase c;
    make_transpose(&c, 45, 37);
    ir_buf(&c, "T", JOT_F32, BUF_SCRATCH, 2, 16, 16, 0, 0);
    by_hand(&c, "%t: i:16 j:16 j i; res T[i%16, j%16]\n!0: i:16 j:16 i j",
            "transpose through scratch");
    by_hand(&c, "%t: i:16 j:16 i j:{V} j:1v; res T[i%16, j%16]\n!0: i:16 j:16 i j:{V} j:1v",
            "transpose, gathered");
    ir_end(&c);
    make_transpose(&c, 32, 64);
    by_hand(&c, "%t: i:16 j:16 j:{V} i:{V} | j:1u i:1v\n!0: i:16 j:16 j:{V} i:{V} i:1u j:1v",
            "transpose in registers");
    ir_end(&c);
}

#define CHANNELS_LAST \
    "layout x 0 2 3 1 halo 2:1,1 3:1,1\nlayout y 0 2 3 1\nlayout wt 0:{2V} 2 3 1 0\n"

static void
test_conv(void)
{
    IrCase c;
    make_conv(&c, 2, 6, 35, 7, 1, false);
    by_hand(&c, CHANNELS_LAST
            "%acc: n h:4 i:4 o:{2V} h w:4 | p q i w:1u o:{V}u o:1v; keep y[n, o, h, w]\n"
            "!0: n h:4 i:4 o:{2V} h w:4 w:1u o:{V}u o:1v", "convolution");
    by_hand(&c, CHANNELS_LAST "fuse m = n h w\n"
            "%acc: m:16 i:4 o:{2V} m:4 | p q i m:1u o:{V}u o:1v; keep y[n, o, h, w]\n"
            "!0: m:16 i:4 o:{2V} m:4 m:1u o:{V}u o:1v", "convolution, fused pixels");
    by_hand(&c, "fma\n" CHANNELS_LAST
            "%acc: n o:{2V} h w:4 | p q i w:1u o:{V}u o:1v; ahead 7\n"
            "!0: n o:{2V} h w:4 w:1u o:{V}u o:1v",
            "convolution, one block, fma");
    by_hand(&c, CHANNELS_LAST
            "%acc: n o:{2V} h w:4c | p q i w:1u o:{V}u o:1v\n!0: n o:{2V} h w:4c w:1u o:{V}u o:1v",
            "convolution, clamped tails");
    by_hand(&c, "layout x 0 2 3 1 halo 2:1,1 3:1,1\nlayout y 0 1:{2V} 2 3 1\n"
            "layout wt 0:{2V} 2 3 1 0\n"
            "%acc: n o:{2V}d h w:4 | p q i w:1u o:{V}u o:1v\n!0: n o:{2V}d h w:4 w:1u o:{V}u o:1v",
            "convolution, padded tails");
    ir_end(&c);
    make_conv(&c, 1, 5, 18, 9, 2, false);
    by_hand(&c, CHANNELS_LAST
            "%acc: n i:4 o:{2V} h w:4 | p q i w:1u o:{V}u o:1v; keep y[n, o, h, w]\n"
            "!0: n i:4 o:{2V} h w:4 w:1u o:{V}u o:1v", "strided convolution");
    ir_end(&c);
    make_conv(&c, 2, 6, 35, 8, 1, true);
    by_hand(&c, CHANNELS_LAST
            "%acc: n h:4 i:3 o:{2V} h w:4 | p q i w:1u o:{V}u o:1v; keep y[n, o, h, w]\n"
            "!0: n h:4 i:3 o:{2V} h w:4 w:1u o:{V}u o:1v\n"
            "%s1: n | h:4 i:3 o:{2V} h w:4 w:1u o:{V}u o:1v; acc b1[n, o]\n"
            "%s2: n | h:4 i:3 o:{2V} h w:4 w:1u o:{V}u o:1v; acc b2[n, o]\n"
            "!1: n o\n!2: n o", "convolution and statistics");
    ir_end(&c);
}

static void
test_gradients(void)
{
    IrCase c;
    make_by_weight(&c, 2, 9, 34, 6);
    by_hand(&c, "layout x 0 2 3 1 halo 2:1,1 3:1,1\nlayout dy 0 2 3 1\nlayout dw 2 3 1 0\n"
            "%g: n h:4 o:{2V} p q i:4 | h w i:1u o:{V}u o:1v; keep dw[o, i, p, q]\n"
            "!0: n h:4 o:{2V} p q i:4 i:1u o:{V}u o:1v", "gradient by weight");
    by_hand(&c, "layout x 0 2 3 1 halo 2:1,1 3:1,1\nlayout dy 0 2 3 1\nlayout dw 2 3 1 0\n"
            "fuse m = p q i\n"
            "%g: n h:4 o:{2V} m:7 | h w m:1u o:{V}u o:1v; keep dw[o, i, p, q]\n"
            "!0: n h:4 o:{2V} m:7 m:1u o:{V}u o:1v", "gradient by weight, fused rows");
    ir_end(&c);
    make_by_input(&c, 1, 34, 5, 8);
    by_hand(&c, "layout dy 0 2 3 1 halo 2:1,1 3:1,1\nlayout dx 0 2 3 1\nlayout wt 1:{2V} 2 3 0 1\n"
            "%g: n h i:{2V} w:4 | p:1u q:1u o w:1u i:{V}u i:1v\n"
            "!0: n h i:{2V} w:4 w:1u i:{V}u i:1v", "gradient by input, vectors of channels");
    ir_end(&c);
}

static void
test_tiles(void)
{
    IrCase c;
    make_prologue(&c, 2, 18, 20, 7);
    by_hand(&c, "layout x 0 2 3 1 halo 2:1,1 3:1,1\nlayout y 0 2 3 1\nlayout wt 0:{2V} 2 3 1 0\n"
            "%xp: n hp wp c:{V} c:1v; res XP[hp, wp, c]\n"
            "%acc: n h:4 o:{2V} h w:4 | p q i w:1u o:{V}u o:1v\n"
            "!0: n h:4 o:{2V} h w:4 w:1u o:{V}u o:1v",
            "convolution with a prologue tile");
    ir_end(&c);
    make_winograd(&c, 1, 17, 18, 6, 4);
    by_hand(&c, "layout x 0 2 3 1 halo 2:1,1 3:1,1\nlayout y 0 2 3 1\nlayout U 0 1 3:{2V} 2 3\n"
            "fuse t = n i j\n"
            "%v1: t:4 t c:{V} | a:1u s:1u r:1u c:1v\n"
            "%v: t:4 t c:{V} | a:1u b:1u s:1u c:1v; res SV[a, b, t%4, c]\n"
            "%m: t:4 a b o:{2V} t:3 | c t:1u o:{V}u o:1v; res SM[a, b, t%4, o]\n"
            "%y1: t:4 t o:{V} | e:1u b:1u a:1u o:1v\n%yy: t:4 t o:{V} | e:1u f:1u b:1u o:1v\n"
            "!0: t:4 t o:{V} e:1u f:1u o:1v", "Winograd");
    ir_end(&c);
    make_attention(&c, 2, 13, 18, 4);
    by_hand(&c, "layout Kt 0 1:{2V} 2 1\nlayout Vt 0 2:{2V} 1 2\n"
            "%S: z q:4 t:{2V} | k q:1u t:{V}u t:1v\n"
            "%sm: z q:4 t:{2V} q:1u t:{V}u t:1v; res SS[q%4, t]\n"
            "%mx: z q:4 q | t:{4V} t:{V}U t:1v\n"
            "%e: z q:4 q t:{4V} t:{V}U t:1v; res SE[q%4, t]\n"
            "%s: z q:4 q | t:{4V} t:{V}U t:1v\n%sl: z q:4 q; res SL[q%4]\n"
            "%o: z q:4 d:{2V} | t q:1u d:{V}u d:1v\n!0: z q:4 d:{2V} q:1u d:{V}u d:1v",
                "attention");
    ir_end(&c);
    make_pairs(&c, 11, 37, 4);
    by_hand(&c, "%part: i:4 | i j:{V} j:1v; acc pc[i/4, j]\n%rowsum: i:4 i | j:{V} j:1v\n"
            "!0: i:4 i\n"
            "%all: | i j:{V} j:1v\n!1:\n%colsum: j:{V} | b j:1v\n!2: j:{V} j:1v", "pairs");
    ir_end(&c);
}

static void
test_plain(int cc)
{
    IrCase c;
    make_sigmoid(&c, 13);
    ir_default(&c, cc, "sigmoid");
    ir_end(&c);
    make_softmax(&c, 5, 7);
    ir_default(&c, cc, "softmax");
    ir_end(&c);
}

int
main(void)
{
    ir_open();
    for (int i = 0; i < 5; i++) {
        char cmd[64];
        snprintf(cmd, sizeof cmd, "command -v %.*s >/dev/null 2>&1", (int)strcspn(ir_cc[i], " "),
                 ir_cc[i]);
        present[i] = system(cmd) == 0;
        if (!present[i] && i < 3)
            SKIP("no %.*s here", (int)strcspn(ir_cc[i], " "), ir_cc[i]);
    }
    test_plain(GCC);
    test_loops();
    test_lanes();
    test_transpose();
    test_conv();
    test_gradients();
    test_tiles();
    ir_close();
    return DONE();
}
