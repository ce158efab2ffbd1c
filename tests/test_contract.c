/* tests/test_contract.c - contractions: recognised whatever they are called, and scheduled; each
 * schedule of a product runs against straightforward loops. Of images: tests/test_contract_image.c.
 *
 * Guards: ccode/contract/block.c, ccode/contract/contract.c, ccode/contract/dots.c,
 * ccode/contract/pack.c, ccode/contract/plan.c, ccode/contract/sched.c, ccode/contract/operand.c,
 * ccode/rewrite/residue.c. */
#include <unistd.h>
#include "tests/contracts.h"
#include "backends/host/host.h"

static void
finds_none(IrCase *c, const char *what)
{
    Contract found;
    CHECK(!jot_contract_only(&c->k, &found), "%s: is taken for a contraction", what);
    ir_default(c, GCC, what);
    ir_end(c);
}

static void
test_find(void)
{
    IrCase c;
    make_conv(&c, 2, 6, 35, 7, 1, false);
    finds(&c, 0, BIT(0) | BIT(2) | BIT(3), BIT(1), BIT(4) | BIT(5) | BIT(6), "convolution");
    wishes(&c, 1, "0 2 3 1 halo 2:1,1 3:1,1", "convolution");
    wishes(&c, 2, "0:32 2 3 1 0", "convolution");
    wishes(&c, 3, "0 2 3 1", "convolution");
    ir_end(&c);
    make_by_weight(&c, 2, 9, 34, 6);
    finds(&c, 0, BIT(4) | BIT(5) | BIT(6), BIT(1), BIT(0) | BIT(2) | BIT(3), "by weight");
    ir_end(&c);
    make_by_input(&c, 1, 34, 5, 8);
    finds(&c, 0, BIT(0) | BIT(2) | BIT(3), BIT(4), BIT(1) | BIT(5) | BIT(6), "by input");
    ir_end(&c);
    make_softmax(&c, 5, 7);
    finds_none(&c, "softmax");
    make_columns(&c, 5, 7);
    finds_none(&c, "sums of columns");
    make_sigmoid(&c, 9);
    finds_none(&c, "sigmoid");
    make_transpose(&c, 5, 7);
    finds_none(&c, "transposition");
    make_attention(&c, 2, 13, 18, 4);
    finds_none(&c, "two products");
}

/* One tap of stride 2: three residue classes in four have no term,
 * and neither operand moves with them. */
static void
test_empty_classes(void)
{
    IrCase c;
    make_by_input_of(&c, 1, 34, 40, 8, 1);
    CHECK(jot_kernel_residues(&c.k), "out of memory");
    finds(&c, 0, BIT(0) | BIT(2) | BIT(3) | BIT(7) | BIT(8), BIT(4), BIT(1) | BIT(5) | BIT(6),
          "by input, one tap");
    ir_end(&c);
}

/* ---- products -------------------------------------------------------------------------------- */

static void
test_products(void)
{
    static const int64_t shape[][4] = { /* z i j k */
        { 1, 29, 67, 19 }, { 3, 5, 16, 40 }, { 1, 1, 100, 33 }, { 1, 70, 3, 5 }, { 2, 33, 130, 2 },
        { 1, 150, 90, 300 }
    };
    IrCase c;
    char what[80];
    for (int i = 0; i < (int)(sizeof shape / sizeof *shape); i++)
        for (int t = 0; t < 4; t++) {
            const int64_t *x = shape[i];
            if ((i + t / 2 + t) % test_many(2, 1))
                continue;
            make_product(&c, x[0], x[1], x[2], x[3], t & 1, t >> 1, (i + t) % 2);
            sprintf(what, "product %d%s%s", i, t & 1 ? ", a transposed" : "",
                    t >> 1 ? ", b transposed" : "");
            if (x[1] > 1)
                runs(&c, &machines[(i * 4 + t) % MACHINES], i % 2 ? 16384 : 1 << 20, NULL, what);
            ir_end(&c);
        }
    for (int m = 0; m < MACHINES; m += test_many(2, 1)) { /* halves, as vectors of floats */
        make_product_of(&c, JOT_F16, 1, 37, 67, 19, false, false, false);
        runs(&c, &machines[m], 1 << 20, NULL, "product of f16");
        ir_end(&c);
    }
}

/* Rows that are converted as they are packed, the same for all columns: once, in a phase before. */
static void
test_rows_once(void)
{
    IrCase c;
    Text text = {0};
    text.mem = &ir_mem;
    make_product_of(&c, JOT_F16, 1, 37, 2000, 64, false, false, false);
    runs(&c, &machines[0], 1 << 20, &text, "rows of halves");
    CHECK(text.s && strstr(text.s, "i:1p k:16"), "packed by each: %s", text.s ? text.s : "");
    jot_text_free(&text);
    ir_end(&c);
}

/* By the matrix unit, where there is one, and by what the text has for machines without. */
/* What is dear behind such sums runs over a group of columns in lanes; where results do not lie
 * along columns, or little follows, each sum is stored by itself. */
static void
test_dots_behind(void)
{
    static const int64_t shape[][4] = { /* z i j k */
        { 1, 2, 133, 40 }, { 2, 3, 77, 67 }, { 1, 7, 350, 300 }, { 1, 130, 3, 301 }
    };
    IrCase c;
    char what[80], loop[32];
    for (int m = 0; m < MACHINES; m++)
        for (int i = 0; i < 8; i++) {
            const int64_t *x = shape[i / 2];
            Text text = {0};
            bool dear = i % 2;
            if ((m + i / 2 + i) % test_many(2, 1))
                continue;
            text.mem = &ir_mem;
            make_product(&c, x[0], x[1], x[2], x[3], false, true, false);
            for (uint32_t n = 0; dear && n < c.k.stores.n; n++) {
                KStore *st = &c.k.stores.v[n];
                uint32_t y = st->buf, tanhs = ir_ew(&c, EW_TANH, st->value, 0);
                c.k.stores.v[n].value = tanhs;
                for (int64_t at = 0; at < x[0] * x[1] * x[2]; at++)
                    c.data[y][at] = tanh(c.data[y][at]);
            }
            sprintf(what, "behind few rows, %d", i);
            sprintf(loop, " k:%d i:1u j:1u k:1v; res row", machines[m].lanes);
            runs(&c, &machines[m], 1 << 19, &text, what);
            if (machines[m].lanes == 16)
                CHECK(text.s && (strstr(text.s, loop) != NULL) == (dear && x[1] < x[2]),
                      "%s, %d lanes:\n%s", what, machines[m].lanes, text.s ? text.s : "");
            jot_text_free(&text);
            ir_end(&c);
        }
}

static void
test_tiles(void)
{
    enum { WORDS = 1, DEEP = 5, LONG = 7 }; /* k in whole vectors of words; longer than the cache
                                               of the case has room for; both sides longer than
                                               blocks */
    static const int64_t shape[][4] = { /* z i j k */
        { 1, 32, 32, 32 }, { 1, 64, 96, 64 }, { 2, 33, 50, 70 }, { 1, 17, 16, 16 },
        { 1, 290, 40, 600 }, { 3, 40, 300, 1001 }, { 1, 300, 520, 33 }, { 1, 530, 520, 64 }
    };
    static const Machine plain = { 16, 16, 4, GCC, "gnu" };
    Target here;
    IrCase c;
    char what[80];
    jot_target_default(&here);
    jot_machine_detect(&here);
    if (!here.matrix)
        SKIP("the matrix unit: this machine has none");
    tiles = true;
    for (int i = 0; i < (int)(sizeof shape / sizeof *shape); i++)
        for (int t = 0; t < 8; t++) {
            const int64_t *x = shape[i];
            const Machine *m = t >= 4 || !here.matrix ? &plain : &machines[t % 2 ? MACHINES - 1 : 0];
            Text text = {0};
            text.mem = &ir_mem;
            make_product_of(&c, JOT_BF16, x[0], x[1], x[2], x[3], t & 1, t >> 1 & 1, (i + t) % 2);
            sprintf(what, "tiles %d%s%s", i, t & 1 ? ", a transposed" : "",
                    t >> 1 & 1 ? ", b transposed" : "");
            if (t < 4 ? i < 4 || (i + t) % test_many(2, 1) == 0 : i % 2 && here.matrix)
                runs(&c, m, i % 2 ? 16384 : 1 << 20, &text, what);
            CHECK(!text.s || strstr(text.s, ":1m "), "%s: not by tiles: %s", what, text.s);
            if (text.s) {
                const char *one = strstr(text.s, "phase\n");
                bool before = one && strstr(one + 1, "phase\n");
                bool turned = strstr(text.s, "k:1u j:1v; res pb[") != NULL;
                CHECK(before == (i == LONG || i == DEEP), "%s: b is packed %s: %s", what,
                      before ? "before all blocks" : "for each", text.s);
                CHECK(i != WORDS || m == &plain || turned == (t >> 1 & 1), "%s: b is %sturned: %s",
                      what, turned ? "" : "not ", text.s);
            }
            jot_text_free(&text);
            ir_end(&c);
        }
    tiles = false;
}

static bool
has_words(const Kernel *k)
{
    for (uint32_t i = 1; i < k->values.n; i++)
        if (k->values.v[i].op == VAL_DOT)
            return true;
    return false;
}

/* By dot products of words, on machines that have the instruction and by what the text has for
 * those without; on one lane by floats, and where the sum is short. */
static void
test_words(void)
{
    static const int64_t shape[][4] = { /* z i j k */
        { 1, 32, 32, 32 }, { 2, 33, 50, 71 }, { 1, 17, 16, 9 }, { 1, 290, 40, 600 },
        { 3, 40, 300, 1001 }, { 1, 300, 520, 33 }, { 1, 40, 40, 7 }
    };
    IrCase c;
    char what[80];
    dots = 1u << DOT_BF16;
    for (int i = 0; i < (int)(sizeof shape / sizeof *shape); i++)
        for (int t = 0; t < 4; t++) {
            const int64_t *x = shape[i];
            const Machine *m = &machines[(i + t) % MACHINES];
            if (i > 2 && (i + t / 2 + t) % test_many(2, 1))
                continue;
            make_product_of(&c, JOT_BF16, x[0], x[1], x[2], x[3], t & 1, t >> 1, (i + t) % 2);
            sprintf(what, "words %d%s%s", i, t & 1 ? ", a transposed" : "",
                    t >> 1 ? ", b transposed" : "");
            runs(&c, m, i % 2 ? 16384 : 1 << 20, NULL, what);
            CHECK(has_words(&c.k) == (m->lanes > 1 && x[3] >= 8), "%s: words %d", what,
                  has_words(&c.k));
            ir_end(&c);
        }
    dots = 0;
}

/* What lies outside by its rows is read through a tile; its fill asks for the batch, which is
 * padded as well, and which no border of the tile is about. */
static void
test_padded(void)
{
    const int64_t z = 5, n = 3, rows = 2, m = 17, k = 300;
    for (int t = 0; t < MACHINES; t += test_many(2, 1)) {
        const int64_t ext[] = { z, n, m, k };
        IrCase one, *c = &one;
        uint32_t a, b, y;
        Text text = {0};
        text.mem = &ir_mem;
        ir_start(c);
        ir_axes(c, "zijk", ext);
        a = IN("a", 3, z - 2, rows, k, 0);
        b = IN("b", 3, z, k, m, 0);
        y = OUT("y", 3, z, n, m, 0);
        ir_store(c, y, AX(0), AX(1), AX(2), 0,
                 ir_sum(c, EW_ADD, BIT(3),
                        ir_ew(c, EW_MUL, ir_guarded(c, a, ISUB(AX(0), IC(2)), AX(1), AX(3), 0),
                              ir_load(c, b, AX(0), AX(3), AX(2), 0)), "acc"));
        for (int64_t i = 0; i < z * n * m * k; i++) {
            int64_t p = i % k, j = i / k % m, r = i / k / m % n, q = i / k / m / n;
            if (q >= 2 && r < rows)
                c->data[y][i / k] += c->data[a][((q - 2) * rows + r) * k + p] *
                                     c->data[b][(q * k + p) * m + j];
        }
        runs(c, &machines[t], 1 << 20, &text, "batch and rows padded");
        CHECK(text.s && strstr(text.s, "patch["), "no patch: %s", text.s ? text.s : "");
        jot_text_free(&text);
        ir_end(c);
    }
}

/* A small image and weights that no cache holds: panels of channels are shared, not rows of pixels,
 * each of which would read all weights. With few channels it is the other way round. */
static void
test_columns(void)
{
    static const struct { int64_t o, l2; const char *sum; } cases[] = {
        { 130, 49152, ": o:32p h " }, { 130, 1 << 20, ": h:" }
    };
    for (int i = 0; i < 2; i++) {
        IrCase c;
        Text text = {0};
        Layout layout;
        Target target = target_of(&machines[0], cases[i].l2);
        Contract found;
        text.mem = &ir_mem;
        make_conv(&c, 1, 18, cases[i].o, 7, 1, false);
        CHECK(jot_contract_only(&c.k, &found), "convolution");
        for (uint32_t b = 1; b <= 3; b++)
            if (jot_contract_wish(&c.k, &found, &target, b, &layout))
                jot_kernel_layout(&c.k, b, &layout);
        runs(&c, &machines[0], cases[i].l2, &text, "small image");
        CHECK(text.s && strstr(text.s, cases[i].sum), "case %d: %s", i, text.s ? text.s : "");
        jot_text_free(&text);
        ir_end(&c);
    }
}

/* Rows that are enough for all threads leave the block as wide as registers have it. */
static void
test_tall(void)
{
    IrCase c;
    Text text = {0};
    text.mem = &ir_mem;
    make_product(&c, 1, 1200, 32, 40, false, false, false);
    runs(&c, &machines[0], 1 << 20, &text, "tall product");
    CHECK(text.s && strstr(text.s, "j:16u j:1v"), "one vector wide: %s", text.s ? text.s : "");
    jot_text_free(&text);
    ir_end(&c);
}

/* b along the sum, packed in panels: turned in registers where terms leave no rest of lanes. */
static void
test_turned(void)
{
    for (int m = 0; m < 3; m++)
        for (int rest = 0; rest < 3; rest++) {
            int lanes = machines[m].lanes;
            int64_t columns = 96 + 4 * (rest == 1), terms = 80 + 4 * (rest == 2);
            IrCase c;
            Text text = {0};
            bool whole = lanes >= 4 && terms % lanes == 0;
            if ((m + rest) % test_many(2, 1))
                continue;

            text.mem = &ir_mem;
            make_product(&c, 1, 60, columns, terms, false, true, false);
            runs(&c, &machines[m], 1 << 20, &text, "b along the sum");
            CHECK(text.s && (strstr(text.s, " k:1u j:1v; res pb[") != NULL) == whole,
                  "%d lanes: %s", lanes, text.s ? text.s : "");
            jot_text_free(&text);
            ir_end(&c);
        }
}

/* Few rows and columns: whichever of them divides evenly among threads is shared,
 * in steps as equal. */
static void
test_shares(void)
{
    static const struct { int64_t rows, columns; const char *loop; } cases[] = {
        { 196, 96, ": i:99p " }, { 24, 640, ": j:160p " }
    };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        IrCase c;
        Text text = {0};
        Layout layout;
        Contract found;
        Target target = target_of(&machines[0], 1 << 20);
        text.mem = &ir_mem;
        make_product(&c, 1, cases[i].rows, cases[i].columns, 130, false, false, false);
        if (jot_contract_only(&c.k, &found) &&
            jot_contract_wish(&c.k, &found, &target, 2, &layout))
            jot_kernel_layout(&c.k, 2, &layout);
        runs(&c, &machines[0], 1 << 20, &text, "few rows and columns");
        CHECK(text.s && strstr(text.s, cases[i].loop), "case %d: %s", i, text.s ? text.s : "");
        jot_text_free(&text);
        ir_end(&c);
    }
}

/* Rows a page apart, few columns a step: as many rows as a set of the cache has lines,
 * nothing packed. */
static void
test_few_rows(void)
{
    IrCase c;
    Text text = {0};
    Layout layout;
    Contract found;
    Target target = target_of(&machines[0], 1 << 20);
    text.mem = &ir_mem;
    make_product(&c, 1, 20, 160, 1024, false, false, false);
    if (jot_contract_only(&c.k, &found) && jot_contract_wish(&c.k, &found, &target, 2, &layout))
        jot_kernel_layout(&c.k, 2, &layout);
    runs(&c, &machines[0], 1 << 20, &text, "rows a page apart");
    CHECK(text.s && !strstr(text.s, "; res ") && strstr(text.s, " j:32 i:7 "), "%s",
          text.s ? text.s : "");
    jot_text_free(&text);
    ir_end(&c);
}

/* Rows that are neighbours, each term of the sum a page on: a in columns of a block's rows. Not
 * where all of a row lies within a few lines. */
/* y[z, i, j] = sum over q k of a[i, z, q, k] * b[j, q, k]: two axes of rows, two of the sum. */
static void
make_rows(IrCase *c, int64_t z, int64_t n, int64_t m, int64_t q, int64_t k)
{
    int64_t ext[5];
    uint32_t a, b, y;
    ext[0] = z, ext[1] = n, ext[2] = m, ext[3] = q, ext[4] = k;
    ir_start(c);
    ir_axes(c, "zijqk", ext);
    a = IN("a", 4, n, z, q, k);
    b = IN("b", 3, m, q, k, 0);
    y = OUT("y", 3, z, n, m, 0);
    ir_store(c, y, AX(0), AX(1), AX(2), 0,
             ir_sum(c, EW_ADD, BIT(3) | BIT(4),
                    ir_ew(c, EW_MUL, ir_load(c, a, AX(1), AX(0), AX(3), AX(4)),
                          ir_load(c, b, AX(2), AX(3), AX(4), 0)), "acc"));
    for (int64_t at = 0; at < z * n * m; at++)
        for (int64_t x = 0; x < q * k; x++)
            c->data[y][at] += c->data[a][(at / m % n * z + at / m / n) * q * k + x] *
                              c->data[b][at % m * q * k + x];
}

/* Few rows by what lies along the sum, as it does: lanes go along the sum. */
static void
test_dots(void)
{
    static const int64_t shape[][6] = { /* z i j k, of so many lanes: all where they are few */
        { 1, 2, 33, 40, 4, 16 }, { 1, 7, 130, 300, 16, 16 }, { 1, 130, 3, 301, 4, 16 },
        { 2, 3, 29, 67, 8, 16 }, { 1, 64, 96, 80, 0, 0 }, { 1, 5, 90, 15, 0, 0 }
    };
    IrCase c;
    char what[80], loop[32];
    for (int m = 0; m < MACHINES; m++)
        for (int i = 0; i <= (int)(sizeof shape / sizeof *shape); i++) {
            const int64_t *x = shape[i];
            Text text = {0};
            bool two = i == (int)(sizeof shape / sizeof *shape), want;
            if ((m + i) % test_many(2, 1))
                continue;
            text.mem = &ir_mem;
            if (two)
                make_rows(&c, 2, 3, 41, 5, 48);
            else
                make_product(&c, x[0], x[1], x[2], x[3], false, true, i % 2);
            want = machines[m].lanes >= (two ? 2 : x[4]) && machines[m].lanes <= (two ? 16 : x[5]);
            sprintf(what, "few rows, %d", i);
            sprintf(loop, " k:%d i:1u j:1u k:1v", machines[m].lanes);
            if (!two && x[1] > x[2])
                sprintf(loop, " k:%d j:1u i:1u k:1v", machines[m].lanes);
            runs(&c, &machines[m], 1 << 19, &text, what);
            CHECK(text.s && (strstr(text.s, loop) != NULL) == want, "%s, %d lanes:\n%s", what,
                  machines[m].lanes, text.s ? text.s : "");
            jot_text_free(&text);
            ir_end(&c);
        }
}

static void
test_by_weight(void)
{
    static const struct { int64_t m, n, k; bool columns; } cases[] = {
        { 300, 70, 50, true }, { 301, 64, 130, true }, { 40, 96, 70, false }, { 300, 70, 20, false }
    };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        IrCase c;
        Text text = {0};
        text.mem = &ir_mem;
        make_product(&c, 1, cases[i].m, cases[i].n, cases[i].k, true, false, false);
        runs(&c, &machines[0], i ? 1 << 20 : 65536, &text, "product by weight");
        CHECK(text.s && (strstr(text.s, "; res pa[") != NULL) == cases[i].columns, "case %d: %s", i,
              text.s ? text.s : "");
        jot_text_free(&text);
        ir_end(&c);
    }
}

/* b fits the second cache and a does not: rows are shared, b is packed once, before. */
static void
test_read_once(void)
{
    static const struct { int64_t n, m; bool rows; } cases[] = {
        { 1200, 400, true }, { 300, 400, false }, { 1200, 600, false }
    };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        IrCase c;
        Text text = {0};
        text.mem = &ir_mem;
        make_product(&c, 1, cases[i].n, cases[i].m, 40, false, false, false);
        runs(&c, &machines[0], 1 << 17, &text, "rows read once");
        CHECK(text.s && (strstr(text.s, "phase") != NULL) == cases[i].rows, "case %d: %s", i,
              text.s ? text.s : "");
        jot_text_free(&text);
        ir_end(&c);
    }
}

/* How often the text asks for a line ahead of its load. */
static int
asked_ahead(IrCase *c, const char *schedule)
{
    Text out = {0};
    EmitInfo info;
    Sched s;
    int n = 0;
    out.mem = &ir_mem;
    if (jot_sched_read(&s, &c->k, schedule, strlen(schedule), NULL) &&
        jot_emit(&c->k, &s, jot_dialect_find("gnu"), "f", NULL, NULL, &out, &info, NULL))
        for (const char *at = out.s; (at = strstr(at, "JOT_AHEAD(")); at++)
            n++;
    jot_sched_close(&s);
    jot_text_free(&out);
    return n;
}

/* A choice by bytes from memory among the stores is one of vectors, not of lanes. */
static void
test_chosen(void)
{
    for (int m = 0; m < MACHINES; m++) {
        int64_t ext[3] = { 13, 37, 20 };
        uint32_t a, b, bits, y, v;
        Target target = target_of(&machines[m], 1 << 20);
        Contract found;
        IrCase c;
        Sched s;
        Text out = {0};
        EmitInfo info;
        bool ok;
        ir_start(&c);
        ir_axes(&c, "ijk", ext);
        a = ir_buf(&c, "a", JOT_F32, BUF_INPUT, 2, 13, 20, 0, 0);
        b = ir_buf(&c, "b", JOT_F32, BUF_INPUT, 2, 20, 37, 0, 0);
        bits = ir_buf(&c, "bits", JOT_BOOL, BUF_INPUT, 2, 13, 37, 0, 0);
        y = ir_buf(&c, "y", JOT_F32, BUF_OUTPUT, 2, 13, 37, 0, 0);
        v = ir_sum(&c, EW_ADD, BIT(2), ir_ew(&c, EW_MUL, ir_load(&c, a, AX(0), AX(2), 0, 0),
                                             ir_load(&c, b, AX(2), AX(1), 0, 0)), "acc");
        v = jot_v_ew(&c.k, EW_SELECT, JOT_F32, ir_load(&c, bits, AX(0), AX(1), 0, 0),
                     jot_v_constf(&c.k, JOT_F32, 0), v);
        ir_store(&c, y, AX(0), AX(1), 0, 0, v);
        for (int64_t i = 0; i < 13 * 37; i++)
            for (int64_t k = 0; k < 20 && !c.data[bits][i]; k++)
                c.data[y][i] += c.data[a][i / 37 * 20 + k] * c.data[b][k * 37 + i % 37];
        ok = jot_contract_only(&c.k, &found) &&
             jot_contract_sched(&s, &c.k, &found, &target, machines[m].lanes, NULL);
        CHECK(ok, "no schedule");
        if (ok) {
            ir_check(&c, &s, machines[m].dialect, machines[m].cc, "chosen by bytes");
            ok = ir_emit(&c, &s, machines[m].dialect, &out, &info, "chosen by bytes");
            CHECK(!ok || strcmp(machines[m].dialect, "gnu") ||
                  (strstr(out.s, "jot_mask_f32x")
                   && !strstr(strstr(out.s, "const jot_Scalar *scalars"), "for (int l")),
                  "lane by lane: %s", out.s);
            jot_text_free(&out);
        }
        jot_sched_close(&s);
        ir_end(&c);
    }
}

/* Panels longer than the first cache are asked for ahead, a line once however many rows use it;
 * what lies apart along k, and what stays in the cache, is not. */
static void
test_ahead(void)
{
    static const struct { int64_t k; bool panels; int64_t l2; bool ahead; } cases[] = {
        { 300, true, 65536, true }, { 300, false, 65536, true }, { 19, true, 1 << 20, false }
    };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        Target target = target_of(&machines[0], cases[i].l2);
        Text text = {0};
        Contract found;
        Layout layout;
        IrCase c;
        int n = 0;
        text.mem = &ir_mem;
        make_product(&c, 1, 40, 96, cases[i].k, false, false, false);
        if (cases[i].panels && jot_contract_only(&c.k, &found) &&
            jot_contract_wish(&c.k, &found, &target, 2, &layout))
            jot_kernel_layout(&c.k, 2, &layout);
        runs(&c, &machines[0], cases[i].l2, &text, "product, asked for ahead");
        CHECK(text.s && (strstr(text.s, "; ahead ") != NULL) == cases[i].ahead, "case %d: %s", i,
              text.s ? text.s : "");
        n = text.s ? asked_ahead(&c, text.s) : 0;
        CHECK(n <= 4 && (n > 0) == cases[i].ahead, "case %d: %d lines asked for", i, n);
        jot_text_free(&text);
        ir_end(&c);
    }
}

/* Does a stage of values ask for lines ahead, and one of stores? */
static void
stages_ask(const char *schedule, bool *values, bool *stores)
{
    *values = *stores = false;
    for (const char *at = schedule; (at = strstr(at, "; ahead ")) != NULL; at++) {
        const char *line = at;
        while (line > schedule && line[-1] != '\n')
            line--;
        *(*line == '!' ? stores : values) = true;
    }
}

/* Threads share rows and b is larger than the second cache: where that has room for few rows of all
 * terms, the sum goes in parts, for which rows are packed block by block, and what the parts have
 * summed waits in the results, whose lines are asked for before each block. Two terms are one step,
 * and one more is left of an odd part. */
static void
test_parts(void)
{
    static const struct { int64_t n, k, l2; bool parts, asked; } cases[] = {
        { 480, 512, 131072, true, true }, { 480, 509, 131072, true, true },
        { 480, 512, 1 << 20, false, false }, { 480, 64, 131072, false, true },
        { 480, 31, 131072, false, false }
    };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        Target target = target_of(&machines[1], cases[i].l2);
        Text text = {0};
        Contract found;
        Layout layout;
        IrCase c;
        bool values, stores;
        text.mem = &ir_mem;
        make_product(&c, 1, cases[i].n, 160, cases[i].k, false, false, false);
        if (jot_contract_only(&c.k, &found) &&
            jot_contract_wish(&c.k, &found, &target, 2, &layout))
            jot_kernel_layout(&c.k, 2, &layout);
        runs(&c, &machines[1], cases[i].l2, &text, "product in parts");
        stages_ask(text.s ? text.s : "", &values, &stores);
        CHECK(text.s && (strstr(text.s, "; keep y[") != NULL) == cases[i].parts
                  && (strstr(text.s, "; res pa[") != NULL) == cases[i].parts
                  && (strstr(text.s, " k:2 k:1u i:1u ") != NULL) == (cases[i].k >= 32),
              "case %d: %s", i, text.s ? text.s : "");
        CHECK(stores == cases[i].asked, "case %d: %s", i, text.s ? text.s : "");
        jot_text_free(&text);
        ir_end(&c);
    }
}

/* Rows packed in each call are read as wholes where the results stay in the second cache; where
 * they do not, parts of rows leave room for longer blocks of the sum. Panels of a block that stay
 * in the first cache are not asked for. */
static void
test_whole_rows(void)
{
    for (int i = 0; i < 2; i++) {
        IrCase c;
        Text text = {0};
        bool values, stores;
        text.mem = &ir_mem;
        make_product(&c, 8, 24, 400, 200, true, false, false);
        runs(&c, &machines[1], i ? 65536 : 262144, &text, "packed in each call");
        stages_ask(text.s ? text.s : "", &values, &stores);
        CHECK(text.s && (strstr(text.s, ": z:1p k:67 k j:16 ") != NULL) == !i && values == i,
              "%s", text.s ? text.s : "");
        jot_text_free(&text);
        ir_end(&c);
    }
}

/* A convolution's text for 32 registers of 16 bytes:
 * multiply-adds of vectors by a scalar's copies, and no sum in memory. */
static void
test_neon(void)
{
    static const char command[] = "clang --target=aarch64-linux-gnu -std=gnu99 -O2 -S "
                                  "-ffp-contract=off -o /tmp/jot_neon_%d.s /tmp/jot_neon_%d.c "
                                  "2>/dev/null";
    Text text = {0}, all = {0};
    Target target;
    Contract found;
    EmitInfo info;
    IrCase c;
    Sched s;
    char line[512], path[64];
    int fma = 0;
    FILE *f;

    text.mem = all.mem = &ir_mem;
    jot_target_default(&target);
    target.vectors = 32;
    target.fma = true;
    make_conv(&c, 2, 6, 35, 7, 1, false);
    CHECK(jot_contract_only(&c.k, &found) &&
          jot_contract_sched(&s, &c.k, &found, &target, 4, NULL) &&
          jot_emit(&c.k, &s, jot_dialect_find("gnu"), "k", NULL, NULL, &text, &info, NULL) &&
          jot_emit_prelude(jot_dialect_find("gnu"), text.s, text.n, &all), "no text");
    snprintf(path, sizeof path, "/tmp/jot_neon_%d.c", (int)getpid());
    f = fopen(path, "w");
    CHECK(f && fwrite(all.s, 1, all.n, f) == all.n && fwrite(text.s, 1, text.n, f) == text.n, "%s",
          path);
    fclose(f);
    snprintf(line, sizeof line, command, (int)getpid(), (int)getpid());
    if (system("clang --print-targets 2>/dev/null | grep -q aarch64"))
        SKIP("NEON: no clang for aarch64");
    else {
        CHECK(system(line) == 0, "%s: does not compile", path);
        path[strlen(path) - 1] = 's';
        f = fopen(path, "r");
        while (f && fgets(line, sizeof line, f))
            fma += strstr(line, "fmla\tv") != NULL;
        if (f)
            fclose(f);
        CHECK(fma >= 14, "%d multiply-adds of vectors", fma);
        remove(path);
        path[strlen(path) - 1] = 'c';
    }
    remove(path);
    jot_text_free(&text);
    jot_text_free(&all);
    jot_sched_close(&s);
    ir_end(&c);
}

int
main(void)
{
    ir_open();
    test_ahead();
    test_parts();
    test_whole_rows();
    test_neon();
    test_find();
    test_empty_classes();
    test_chosen();
    test_products();
    test_tiles();
    test_words();
    test_rows_once();
    test_padded();
    test_columns();
    test_tall();
    test_turned();
    test_by_weight();
    test_read_once();
    test_few_rows();
    test_dots();
    test_dots_behind();
    test_shares();
    ir_close();
    return DONE();
}
