/* tests/test_choose.c - schedules by price: which list of loops is the cheapest on which machine,
 * and that each computes what it should: extents 0 and 1, odd ones, rests of lanes, gcc's vectors.
 * Those of a device: sums whose neighbours read side by side, or are shared by a group that does.
 * Set IR_SHOW to a part of a case's name to see its text.
 *
 * Guards: ccode/device/grid.c, ccode/device/moves.c, ccode/device/rfactor.c,
 * ccode/device/square.c, ccode/schedule/touch.c, ccode/strategy/collect.c, target/choice.c. */
#include "ccode/build/build.h"
#include "ccode/device/grid.h"
#include "ccode/strategy/strategy.h"
#include "tests/ir_cases.h"

/* Bytes per second of the second cache and of memory, and the former's size; 0: as they come. */
static double rate_l2, rate_memory;
static int64_t size_l2;

/* A machine with vectors of so many bytes and plain caches. */
static Target
machine(int vector_nbytes)
{
    Target t;
    jot_target_default(&t);
    t.vector_nbytes = vector_nbytes;
    t.cache_nbytes[LEVEL_L1] = 32 << 10;
    t.cache_nbytes[LEVEL_L2] = size_l2 ? size_l2 : 1 << 20;
    if (rate_l2 > 0) {
        t.bandwidth[LEVEL_L2] = rate_l2;
        t.bandwidth[LEVEL_L3] = t.bandwidth[LEVEL_MEMORY] = rate_memory;
    }
    return t;
}

/* Is each of the words in the schedule ("!word": not)? run: compile, run, compare. The kernel gains
 * scratch buffers: once per case. */
static void
expect(IrCase *c, const char *what, int vector_nbytes, int cc, bool run, const char *const *word,
       int n)
{
    Target t = machine(vector_nbytes);
    Text text = {0};
    int order[KERNEL_AXES], m = jot_build_order_outer(&c->k, order);
    Sched s;
    text.mem = &ir_mem;
    CHECK(jot_sched_choose(&s, &c->k, &t, m, order) && jot_sched_collect(&s, &t),
          "%s: no schedule", what);
    CHECK(jot_sched_verify(&s, NULL), "%s: not legal", what);
    jot_sched_print(&s, &text);
    for (int i = 0; i < n; i++) {
        bool not = word[i][0] == '!';
        CHECK((strstr(text.s, word[i] + not) != NULL) != not, "%s: '%s' in\n%s", what, word[i],
              text.s);
    }
    if (run)
        ir_check(c, &s, "c", cc, what);
    jot_text_free(&text);
    jot_sched_close(&s);
    ir_end(c);
}

#define EXPECT(c, what, vector, cc, run, ...) do { \
        static const char *const words[] = { __VA_ARGS__ }; \
        expect(c, what, vector, cc, run, words, (int)(sizeof words / sizeof *words)); \
    } while (0)

/* ---- cases of several sums ---------------------------------------------------------------- */

/* Sums of rows and of columns of one space: g[r] = sum over j, c[j] = sum over r of exp(x) */
static void
make_both_sums(IrCase *c, int64_t n, int64_t m)
{
    int64_t ext[2];
    uint32_t x, g, h, e;
    ext[0] = n, ext[1] = m;
    ir_start(c);
    ir_axes(c, "rj", ext);
    x = IN("x", 2, n, m, 0, 0);
    g = OUT("g", 1, n, 0, 0, 0);
    h = OUT("h", 1, m, 0, 0, 0);
    e = ir_ew(c, EW_EXP, ir_load(c, x, AX(0), AX(1), 0, 0), 0);
    ir_store(c, g, AX(0), 0, 0, 0, ir_sum(c, EW_ADD, BIT(1), e, "rows"));
    ir_store(c, h, AX(1), 0, 0, 0, ir_sum(c, EW_ADD, BIT(0), e, "columns"));
    for (int64_t r = 0; r < n; r++)
        for (int64_t j = 0; j < m; j++) {
            c->data[g][r] += exp(c->data[x][r * m + j]);
            c->data[h][j] += exp(c->data[x][r * m + j]);
        }
}

/* Two matrices by a vector, the second by the first's result: h = W x, y = V h, over j k and i j */
static void
make_two_products(IrCase *c, int64_t ni, int64_t nj, int64_t nk)
{
    int64_t ext[3];
    uint32_t x, w, v, y, h, s;
    ext[0] = ni, ext[1] = nj, ext[2] = nk;
    ir_start(c);
    ir_axes(c, "ijk", ext);
    x = IN("x", 1, nk, 0, 0, 0);
    w = IN("w", 2, nj, nk, 0, 0);
    v = IN("v", 2, ni, nj, 0, 0);
    y = OUT("y", 1, ni, 0, 0, 0);
    h = ir_sum(c, EW_ADD, BIT(2), ir_ew(c, EW_MUL, ir_load(c, w, AX(1), AX(2), 0, 0),
                                        ir_load(c, x, AX(2), 0, 0, 0)), "first");
    s = ir_sum(c, EW_ADD, BIT(1), ir_ew(c, EW_MUL, ir_load(c, v, AX(0), AX(1), 0, 0), h),
               "second");
    ir_store(c, y, AX(0), 0, 0, 0, s);
    for (int64_t j = 0; j < nj; j++) {
        double sum = 0;
        for (int64_t k = 0; k < nk; k++)
            sum += (double)c->data[w][j * nk + k] * c->data[x][k];
        for (int64_t i = 0; i < ni; i++)
            c->data[y][i] += c->data[v][i * nj + j] * sum;
    }
}

/* A cell's result and the next matrix by it: h = tanh(x), y = W h, over j k */
static void
make_cell(IrCase *c, int64_t nj, int64_t nk)
{
    int64_t ext[2];
    uint32_t x, w, h, y, t;
    ext[0] = nj, ext[1] = nk;
    ir_start(c);
    ir_axes(c, "jk", ext);
    x = IN("x", 1, nk, 0, 0, 0);
    w = IN("w", 2, nj, nk, 0, 0);
    h = OUT("h", 1, nk, 0, 0, 0);
    y = OUT("y", 1, nj, 0, 0, 0);
    t = ir_ew(c, EW_TANH, ir_load(c, x, AX(1), 0, 0, 0), 0);
    ir_store(c, h, AX(1), 0, 0, 0, t);
    ir_store(c, y, AX(0), 0, 0, 0,
             ir_sum(c, EW_ADD, BIT(1), ir_ew(c, EW_MUL, ir_load(c, w, AX(0), AX(1), 0, 0), t),
                    "next"));
    for (int64_t k = 0; k < nk; k++)
        c->data[h][k] = tanh(c->data[x][k]);
    for (int64_t j = 0; j < nj; j++)
        for (int64_t k = 0; k < nk; k++)
            c->data[y][j] += c->data[w][j * nk + k] * tanh(c->data[x][k]);
}

/* One query of attention behind its scores: y[b, d] = sum over k of exp(x[b, k]) * v[b, k, d] */
static void
make_query(IrCase *c, int64_t nb, int64_t nk, int64_t nd)
{
    int64_t ext[3];
    uint32_t x, v, y, e;
    ext[0] = nb, ext[1] = nk, ext[2] = nd;
    ir_start(c);
    ir_axes(c, "bkd", ext);
    x = IN("x", 2, nb, nk, 0, 0);
    v = IN("v", 3, nb, nk, nd, 0);
    y = OUT("y", 2, nb, nd, 0, 0);
    e = ir_ew(c, EW_EXP, ir_load(c, x, AX(0), AX(1), 0, 0), 0);
    ir_store(c, y, AX(0), AX(2), 0, 0,
             ir_sum(c, EW_ADD, BIT(1), ir_ew(c, EW_MUL, e, ir_load(c, v, AX(0), AX(1), AX(2), 0)),
                    "values"));
    for (int64_t b = 0; b < nb; b++)
        for (int64_t k = 0; k < nk; k++)
            for (int64_t d = 0; d < nd; d++)
                c->data[y][b * nd + d] += exp(c->data[x][b * nk + k])
                                        * c->data[v][(b * nk + k) * nd + d];
}

/* ---- which ----------------------------------------------------------------------------------- */

/* Weights (o, i, taps) into panels of 32 of o, taps outside: out[o / 32][t][i][o % 32] */
static void
make_panels(IrCase *c, int64_t o, int64_t i, int64_t t)
{
    static const LayoutPart part[] = { { 0, 32 }, { 2, 1 }, { 1, 1 }, { 0, 1 } };
    int64_t ext[3];
    uint32_t x, y;
    Layout layout;
    ext[0] = o, ext[1] = i, ext[2] = t;
    ir_start(c);
    ir_axes(c, "oit", ext);
    x = IN("x", 3, o, i, t, 0);
    y = OUT("y", 3, o, i, t, 0);
    CHECK(jot_layout_make(&layout, 3, c->k.bufs.v[y].ext, 4, part, NULL, NULL), "layout");
    jot_kernel_layout(&c->k, y, &layout);
    ir_store(c, y, AX(0), AX(1), AX(2), 0, ir_load(c, x, AX(0), AX(1), AX(2), 0));
    for (int64_t n = 0; n < o * i * t; n++)
        c->data[y][n] = c->data[x][n];
}

/* y[h, w, c] = x[c, h, w]: planes into pixels */
static void
make_channels_last(IrCase *c, int64_t n, int64_t h, int64_t w)
{
    int64_t ext[3];
    uint32_t x, y;
    ext[0] = n, ext[1] = h, ext[2] = w;
    ir_start(c);
    ir_axes(c, "chw", ext);
    x = IN("x", 3, n, h, w, 0);
    y = OUT("y", 3, h, w, n, 0);
    ir_store(c, y, AX(1), AX(2), AX(0), 0, ir_load(c, x, AX(0), AX(1), AX(2), 0));
    for (int64_t i = 0; i < n * h * w; i++)
        c->data[y][i % (h * w) * n + i / (h * w)] = c->data[x][i];
}

/* What follows sums of rows, twice: h = max + log(sum of exp), y[b, r] = tanh(h + sum + z[r]) */
static void
make_behind_rows(IrCase *c, int64_t nb, int64_t n, int64_t m)
{
    int64_t ext[3];
    uint32_t x, z, y, h, v, s, mx, e, t;
    ext[0] = nb, ext[1] = n, ext[2] = m;
    ir_start(c);
    ir_axes(c, "brj", ext);
    x = IN("x", 3, nb, n, m, 0);
    z = IN("z", 1, n, 0, 0, 0);
    y = OUT("y", 2, nb, n, 0, 0);
    h = OUT("h", 2, nb, n, 0, 0);
    v = ir_load(c, x, AX(0), AX(1), AX(2), 0);
    s = ir_sum(c, EW_ADD, BIT(2), v, "s");
    mx = ir_sum(c, EW_MAX, BIT(2), v, "mx");
    e = ir_sum(c, EW_ADD, BIT(2), ir_ew(c, EW_EXP, ir_ew(c, EW_SUB, v, mx), 0), "e");
    e = ir_ew(c, EW_ADD, mx, ir_ew(c, EW_LOG, e, 0));
    t = ir_ew(c, EW_ADD, s, ir_load(c, z, AX(1), 0, 0, 0));
    ir_store(c, y, AX(0), AX(1), 0, 0, ir_ew(c, EW_TANH, ir_ew(c, EW_ADD, e, t), 0));
    ir_store(c, h, AX(0), AX(1), 0, 0, e);
    for (int64_t r = 0; r < nb * n; r++) {
        double most = -1e30, sum = 0, exps = 0;
        for (int64_t j = 0; j < m; j++) {
            most = fmax(most, c->data[x][r * m + j]);
            sum += c->data[x][r * m + j];
        }
        for (int64_t j = 0; j < m; j++)
            exps += exp(c->data[x][r * m + j] - most);
        c->data[h][r] = most + log(exps);
        c->data[y][r] = tanh(c->data[h][r] + sum + c->data[z][r % n]);
    }
}

/* ... by a vector of rows where they are short, many, and what follows is dear. */
static void
test_behind_rows(void)
{
    IrCase c;
    make_behind_rows(&c, 1, 300, 100);
    EXPECT(&c, "behind short rows", 64, GCC_NATIVE, true,
           "%6: b:1p r:64p r:16 r | j:32 j:1l; res row6", "0: b:1p r:64p r:16 r:1l",
           "1: b:1p r:64p r:16 r:1l");
    make_behind_rows(&c, 3, 53, 128);
    EXPECT(&c, "rows of several axes, with a rest", 64, GCC_NATIVE, true, "r:16 r | j:32 j:1l; res",
           "r:16 r:1l");
    make_behind_rows(&c, 2, 53, 130);
    EXPECT(&c, "behind rows, half the vectors", 32, GCC_NATIVE, true, "r:8 r | j:16 j:1l; res",
           "r:8 r:1l");
    make_behind_rows(&c, 1, 300, 100);
    EXPECT(&c, "behind rows without vectors", 0, GCC, true, "!res row");
    make_behind_rows(&c, 1, 300, 9000);
    EXPECT(&c, "behind long rows", 64, GCC_NATIVE, false, "!res row");
    make_behind_rows(&c, 40, 20, 128);
    EXPECT(&c, "behind few rows", 64, GCC_NATIVE, true, "!res row");
}

/* Rows divided by their length, times weights: t = (x - m) v^-1/2 by sums m, v of each row,
 * q = w t; and gradients, from d g: u = w d g, y = u - t sum of t u, and of the columns' weights:
 * h[j] = sum over r of t d g, o[j] of d g */
static void
make_row_gradients(IrCase *c, int64_t n, int64_t m)
{
    int64_t ext[2];
    uint32_t x, w, d, g, q, y, h, o, t, u, s, v;
    ext[0] = n, ext[1] = m;
    ir_start(c);
    ir_axes(c, "rj", ext);
    x = IN("x", 2, n, m, 0, 0);
    w = IN("w", 1, m, 0, 0, 0);
    d = IN("d", 2, n, m, 0, 0);
    g = IN("g", 2, n, m, 0, 0);
    q = OUT("q", 2, n, m, 0, 0);
    y = OUT("y", 2, n, m, 0, 0);
    h = OUT("h", 1, m, 0, 0, 0);
    o = OUT("o", 1, m, 0, 0, 0);
    t = ir_load(c, x, AX(0), AX(1), 0, 0);
    t = ir_ew(c, EW_SUB, t, ir_sum(c, EW_ADD, BIT(1), t, "m"));
    v = ir_sum(c, EW_ADD, BIT(1), ir_ew(c, EW_MUL, t, t), "v");
    t = ir_ew(c, EW_DIV, t, ir_ew(c, EW_SQRT, v, 0));
    ir_store(c, q, AX(0), AX(1), 0, 0, ir_ew(c, EW_MUL, t, ir_load(c, w, AX(1), 0, 0, 0)));
    v = ir_ew(c, EW_MUL, ir_load(c, d, AX(0), AX(1), 0, 0), ir_load(c, g, AX(0), AX(1), 0, 0));
    u = ir_ew(c, EW_MUL, v, ir_load(c, w, AX(1), 0, 0, 0));
    s = ir_sum(c, EW_ADD, BIT(1), ir_ew(c, EW_MUL, t, u), "s");
    ir_store(c, y, AX(0), AX(1), 0, 0, ir_ew(c, EW_SUB, u, ir_ew(c, EW_MUL, t, s)));
    ir_store(c, h, AX(1), 0, 0, 0,
             ir_sum(c, EW_ADD, BIT(0), ir_ew(c, EW_MUL, t, v), "columns"));
    ir_store(c, o, AX(1), 0, 0, 0, ir_sum(c, EW_ADD, BIT(0), v, "others"));
    for (int64_t r = 0; r < n; r++) {
        const double *a = c->data[x] + r * m, *b = c->data[d] + r * m, *e = c->data[g] + r * m;
        double sum = 0, square = 0, dot = 0;
        for (int64_t j = 0; j < m; j++)
            sum += a[j];
        for (int64_t j = 0; j < m; j++)
            square += (a[j] - sum) * (a[j] - sum);
        for (int64_t j = 0; j < m; j++)
            dot += (a[j] - sum) / sqrt(square) * b[j] * e[j] * c->data[w][j];
        for (int64_t j = 0; j < m; j++) {
            double unit = (a[j] - sum) / sqrt(square);
            c->data[q][r * m + j] = unit * c->data[w][j];
            c->data[y][r * m + j] = b[j] * e[j] * c->data[w][j] - unit * dot;
            c->data[h][j] += unit * b[j] * e[j];
            c->data[o][j] += b[j] * e[j];
        }
    }
}

/* Whole rows, all their stages in one pass, and sums of columns in parts behind them, however fast
 * the second cache is: by blocks of columns each stage would read all rows anew. */
static void
test_row_gradients(void)
{
    static const double rates[][2] = {{0, 0}, {64e9, 15.6e9}, {45e9, 10.7e9}, {120e9, 8e9}};
    IrCase c;

    make_row_gradients(&c, 300, 1024);
    EXPECT(&c, "gradients of rows", 32, GCC_NATIVE, true, "r:20p r | j:16 j:1l",
           "r:20p || r j:16", "!phase\nphase");
    for (int i = 0; i < (int)(sizeof rates / sizeof *rates); i++) {
        rate_l2 = rates[i][0], rate_memory = rates[i][1], size_l2 = i ? 1 << 19 : 0;
        make_row_gradients(&c, 4096, 1024);
        EXPECT(&c, "gradients of many rows", 32, GCC_NATIVE, false, "r:64p r | j:16 j:1l",
               "!phase\nphase", "!j:512");
        make_row_gradients(&c, 4096, 1024);
        EXPECT(&c, "gradients of many rows, wide", 64, GCC_NATIVE, false, "r:64p r | j:32 j:1l",
               "!phase\nphase", "!j:512");
    }
    rate_l2 = rate_memory = 0, size_l2 = 0;
}

static void
test_which(void)
{
    IrCase c;
    make_sigmoid(&c, 12);
    ir_default(&c, GCC, "the plain schedule, to compare");
    ir_end(&c);
    make_sigmoid(&c, 999);
    EXPECT(&c, "elements", 64, GCC_NATIVE, true, "0: i:1p\n", "!:1l");
    make_softmax(&c, 40, 1000);
    EXPECT(&c, "rows", 64, GCC_NATIVE, true, "%2: r:1p | j:32 j:1l", "%5: r:1p | j:32 j:1l");
    make_softmax(&c, 40, 1000);
    EXPECT(&c, "rows, narrow vectors", 16, GCC, true, "%2: r:1p | j:8 j:1l");
    make_softmax(&c, 40, 1000);
    EXPECT(&c, "rows without vectors", 0, GCC, true, "%2: r:1p | j\n", "!l");
    make_softmax(&c, 900, 7);
    EXPECT(&c, "short rows", 64, GCC_NATIVE, true, "!j:32");
    make_softmax(&c, 2000, 600);
    EXPECT(&c, "rows of no cache", 64, GCC_NATIVE, true,
           "%4: r:1p j:32 j:1l; res y[r, j]; next 1\n");
    make_softmax(&c, 40, 1000);
    EXPECT(&c, "rows of the second cache", 64, GCC_NATIVE, true, "!next");
    make_softmax(&c, 200, 6000);
    EXPECT(&c, "rows as long as the first cache", 64, GCC_NATIVE, true, "!next");
    make_columns(&c, 700, 300);
    EXPECT(&c, "columns", 64, GCC_NATIVE, true, "| r j:1l", "!acc");
    make_columns(&c, 1024, 4096);
    EXPECT(&c, "panels of columns", 64, GCC_NATIVE, false, "%2: j:64p | r j:1l", "0: j:64p r j:1l");
    make_both_sums(&c, 300, 4096);
    EXPECT(&c, "rows in pieces, columns in blocks", 64, GCC_NATIVE, true,
           "%3: j:256p || r | j:32 j:1l; res part", "%4: j:256p | r j:32 j:1l; acc h[j]");
    make_both_sums(&c, 3, 40);
    EXPECT(&c, "too few for pieces", 64, GCC_NATIVE, true, "!part");
    make_two_products(&c, 84, 120, 400);
    EXPECT(&c, "each along its own rows", 64, GCC_NATIVE, true, "| k:32 k:1l", "| j:32 j:1l");
    make_cell(&c, 390, 130);
    EXPECT(&c, "a cell's result is computed once", 64, GCC_NATIVE, true, "| k:32 k:1l", "!| k j");
    make_query(&c, 20, 56, 117);
    EXPECT(&c, "a row of dear values", 64, GCC_NATIVE, true, "b:1p k:1l; res tmp", "| k d:1l");
    make_query(&c, 20, 3, 117);
    EXPECT(&c, "a row of few", 64, GCC_NATIVE, true, "!res tmp");
    make_transpose(&c, 1000, 1100);
    EXPECT(&c, "transposition", 64, GCC_NATIVE, true, "p j:32 i j");
    /* an axis too short for tiles: rows of a block stay while it and the one beside are walked */
    make_panels(&c, 128, 70, 9);
    EXPECT(&c, "weights into panels", 64, GCC, true, "!0: o:16 i t o\n");
    make_panels(&c, 128, 3, 70);
    EXPECT(&c, "few channels", 64, GCC, true, "!0: i o:16 t:16 ");
    /* what is stored one by one is stored in order, what is read may lie apart */
    make_channels_last(&c, 3, 57, 61);
    EXPECT(&c, "three planes into pixels", 64, GCC, true, "0: h:1p w c:1u\n");
    make_channels_last(&c, 256, 56, 56);
    EXPECT(&c, "planes into pixels", 64, GCC, true, " w c\n");
    /* ... but not where what is read begins at one line of each page, all of one set of the
     * cache */
    make_channels_last(&c, 256, 16, 1024);
    EXPECT(&c, "planes of pages", 64, GCC, false, " c w\n");
    make_transpose(&c, 10, 11);
    EXPECT(&c, "small transposition", 64, GCC_NATIVE, true, "!:16");
}

/* ---- right ----------------------------------------------------------------------------------- */

static void
test_right(int cc)
{
    static const int64_t size[] = { 0, 1, 2, 15, 31, 32, 33, 64, 97 };
    static const int vector[] = { 0, 16, 64 };
    IrCase c;
    for (size_t v = 0; v < 3; v++) {
        for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
            int64_t n = size[i], m = size[(i + v + 3) % (sizeof size / sizeof *size)];
            make_sigmoid(&c, n);
            expect(&c, "elements", vector[v], cc, true, NULL, 0);
            if (n && m) {
                make_transpose(&c, n, m);
                expect(&c, "transposition", vector[v], cc, true, NULL, 0);
                make_softmax(&c, m, n);
                expect(&c, "rows", vector[v], cc, true, NULL, 0);
                make_columns(&c, n, m);
                expect(&c, "columns", vector[v], cc, true, NULL, 0);
                make_both_sums(&c, n, m);
                expect(&c, "rows and columns", vector[v], cc, true, NULL, 0);
                make_two_products(&c, n, m, 33);
                expect(&c, "two products", vector[v], cc, true, NULL, 0);
            }
        }
        for (int64_t stride = 1; stride < 4; stride++) {
            make_conv(&c, 2, 3, 5, 37, stride, stride == 1);
            expect(&c, "convolution", vector[v], cc, true, NULL, 0);
        }
        make_by_input(&c, 1, 9, 5, 8);
        expect(&c, "gradient by input", vector[v], cc, true, NULL, 0);
        make_by_weight(&c, 2, 3, 4, 19);
        expect(&c, "gradient by weight", vector[v], cc, true, NULL, 0);
        make_attention(&c, 2, 33, 36, 4);
        expect(&c, "attention", vector[v], cc, true, NULL, 0);
    }
}

/* ---- of a device: none is run ------------------------------------------------------------- */

/* The kernel's schedule has each of the words ("!word": not). */
static void
expect_grid(IrCase *c, const char *what, const char *const *word, int n)
{
    Text text = {0};
    Target t;
    Sched s;
    text.mem = &ir_mem;
    jot_target_default(&t);
    CHECK(jot_sched_grid(&s, &c->k, &t) && jot_sched_verify(&s, NULL), "%s: no schedule", what);
    jot_sched_print(&s, &text);
    for (int i = 0; i < n; i++) {
        bool not = word[i][0] == '!';
        CHECK((strstr(text.s, word[i] + not) != NULL) != not, "%s: '%s' in\n%s", what, word[i],
              text.s);
    }
    jot_text_free(&text);
    jot_sched_close(&s);
    ir_end(c);
}

#define EXPECT_GRID(c, what, ...) do { \
        static const char *const words[] = { __VA_ARGS__ }; \
        expect_grid(c, what, words, (int)(sizeof words / sizeof *words)); \
    } while (0)

/* y = sum over r or j of x[r, j]; no data: nothing runs */
static void
make_sum(IrCase *c, int64_t n, int64_t m, int over)
{
    int64_t ext[2];
    uint32_t x, y;
    ext[0] = n, ext[1] = m;
    ir_start(c);
    ir_axes(c, "rj", ext);
    x = jot_kernel_buf(&c->k, "x", JOT_F32, BUF_INPUT, 2, ext);
    y = jot_kernel_buf(&c->k, "y", JOT_F32, BUF_OUTPUT, 1, &ext[1 - over]);
    ir_store(c, y, AX(1 - over), 0, 0, 0,
             ir_sum(c, EW_ADD, BIT(over), ir_load(c, x, AX(0), AX(1), 0, 0), "s"));
}

/* y[r, j] = x[r, j] / (sum over j of exp(x[r, j] - the largest)) */
static void
make_rows(IrCase *c, int64_t n, int64_t m)
{
    int64_t ext[2];
    uint32_t x, y, e, most;
    ext[0] = n, ext[1] = m;
    ir_start(c);
    ir_axes(c, "rj", ext);
    x = ir_load(c, jot_kernel_buf(&c->k, "x", JOT_F32, BUF_INPUT, 2, ext), AX(0), AX(1), 0, 0);
    y = jot_kernel_buf(&c->k, "y", JOT_F32, BUF_OUTPUT, 2, ext);
    most = ir_sum(c, EW_MAX, BIT(1), x, "most");
    e = ir_ew(c, EW_EXP, ir_ew(c, EW_SUB, x, most), 0);
    ir_store(c, y, AX(0), AX(1), 0, 0,
             ir_ew(c, EW_DIV, x, ir_sum(c, EW_ADD, BIT(1), e, "s")));
}

static void
test_rows(IrCase *c)
{
    make_rows(c, 4096, 1024); /* enough sums for items of their own, which would read rows apart */
    EXPECT_GRID(c, "softmax", "r:1g | j:1t", "!chunk", "!phase");
    make_sum(c, 4096, 4096, 1);
    EXPECT_GRID(c, "rows", "r:1g | j:1t", "!chunk");
    make_sum(c, 40000, 200, 1);
    EXPECT_GRID(c, "many rows", "r:1g | j:1t", "!chunk");
    make_sum(c, 40000, 20, 1);
    EXPECT_GRID(c, "short rows", "r:1g | j\n");
    make_sum(c, 16, 1 << 20, 1);
    EXPECT_GRID(c, "few rows", "r:1g chunk:1g | j:1t", "r:1g | chunk");
}

static void
test_columns(IrCase *c)
{
    make_sum(c, 4096, 4096, 0); /* neighbours have columns beside each other, of one chunk */
    EXPECT_GRID(c, "columns", "chunk:1g j:1g | r; res part5[chunk, j]", "j:1g | chunk");
    make_sum(c, 65536, 64, 0);
    EXPECT_GRID(c, "few columns", "chunk:1g j:1g | r; res part5[chunk, j]");
    make_sum(c, 1 << 20, 3, 0); /* three side by side are none */
    EXPECT_GRID(c, "three columns", "j:1g chunk:1g | r:1t");
    make_sum(c, 128, 64, 0);
    EXPECT_GRID(c, "small", "j:1g | r:1t", "!chunk");
}

int
main(void)
{
    IrCase c;
    ir_open();
    test_rows(&c);
    test_columns(&c);
    if (system("command -v gcc >/dev/null 2>&1") == 0) {
        test_which();
        test_behind_rows();
    test_row_gradients();
        test_right(GCC_NATIVE);
    } else
        SKIP("no gcc here");
    if (system("command -v tcc >/dev/null 2>&1") == 0)
        test_right(TCC);
    else
        SKIP("no tcc here");
    ir_close();
    return DONE();
}
