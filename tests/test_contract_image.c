/* tests/test_contract_image.c - contractions over images: convolutions, grouped ones, and their
 * gradients by input and by weight; each schedule runs against straightforward loops. Products:
 * tests/test_contract.c.
 *
 * Guards: ccode/contract/contract.c, ccode/contract/grouped.c, ccode/contract/pack.c,
 * ccode/contract/plan.c, ccode/contract/sched.c. */
#include "tests/contracts.h"

typedef struct { int64_t n, g, o, c, h, w, kh, kw, stride, pad, dilation; } Shape;

/* y[n, g, o, h, w] = sum over c p q of x[n, g*c + c, h*stride + p*dilation - pad, ..] * wt[..] */
static void
make_grouped(IrCase *k, const Shape *s)
{
    int64_t ho = (s->h + 2 * s->pad - s->dilation * (s->kh - 1) - 1) / s->stride + 1;
    int64_t wo = (s->w + 2 * s->pad - s->dilation * (s->kw - 1) - 1) / s->stride + 1, ext[8];
    uint32_t x, w, y;
    IrCase *c = k;
    ext[0] = s->n, ext[1] = s->g, ext[2] = s->o, ext[3] = ho, ext[4] = wo, ext[5] = s->c;
    ext[6] = s->kh, ext[7] = s->kw;
    ir_start(c);
    ir_axes(c, "ngohwcpq", ext);
    x = IN("x", 4, s->n, s->g * s->c, s->h, s->w);
    w = IN("wt", 4, s->g * s->o, s->c, s->kh, s->kw);
    y = OUT("y", 4, s->n, s->g * s->o, ho, wo);
    ir_store(c, y, AX(0), IADD(IMUL(AX(1), s->o), AX(2)), AX(3), AX(4),
             ir_sum(c, EW_ADD, BIT(5) | BIT(6) | BIT(7),
                    ir_ew(c, EW_MUL,
                          ir_guarded(c, x, AX(0), IADD(IMUL(AX(1), s->c), AX(5)),
                                     IADD(IMUL(AX(3), s->stride),
                                          ISUB(IMUL(AX(6), s->dilation), IC(s->pad))),
                                     IADD(IMUL(AX(4), s->stride),
                                          ISUB(IMUL(AX(7), s->dilation), IC(s->pad)))),
                          ir_load(c, w, IADD(IMUL(AX(1), s->o), AX(2)), AX(5), AX(6), AX(7))),
                    "acc"));
    for (int64_t i = 0; i < s->n * s->g * s->o * ho * wo; i++) {
        int64_t q = i % wo, p = i / wo % ho, oc = i / wo / ho % (s->g * s->o);
        double sum = 0;
        for (int64_t t = 0; t < s->c * s->kh * s->kw; t++)
            sum += at4(c->data[x], c->k.bufs.v[x].ext, i / wo / ho / (s->g * s->o),
                       oc / s->o * s->c + t / s->kw / s->kh,
                       p * s->stride + t / s->kw % s->kh * s->dilation - s->pad,
                       q * s->stride + t % s->kw * s->dilation - s->pad) *
                   c->data[w][oc * s->c * s->kh * s->kw + t];
        c->data[y][i] = sum;
    }
}

static void
test_convolutions(void)
{
    static const Shape shape[] = { /* n g o c h w kh kw stride pad dilation */
        { 2, 1, 35, 6, 9, 9, 3, 3, 1, 1, 1 }, { 1, 1, 40, 5, 13, 11, 3, 5, 2, 2, 1 },
        { 3, 2, 18, 4, 7, 7, 3, 3, 1, 1, 1 }, { 1, 1, 20, 7, 12, 10, 3, 3, 1, 2, 2 },
        { 2, 1, 33, 9, 6, 6, 1, 1, 1, 0, 1 }, { 1, 1, 3, 8, 16, 18, 3, 3, 1, 1, 1 },
        { 1, 4, 2, 3, 10, 33, 2, 2, 3, 0, 1 }, { 4, 1, 64, 2, 1, 1, 3, 3, 1, 1, 1 }
    };
    IrCase c;
    char what[80];
    for (int i = 0; i < (int)(sizeof shape / sizeof *shape); i++)
        for (int m = 0; m < 2; m++) {
            make_grouped(&c, &shape[i]);
            sprintf(what, "convolution %d", i);
            runs(&c, &machines[(i + 3 * m) % MACHINES], m ? 8192 : 1 << 20, NULL, what);
            ir_end(&c);
        }
}

static void
test_gradients_of_convolutions(void)
{
    IrCase c;
    for (int m = 0; m < MACHINES; m++) {
        make_by_weight(&c, 2, 9, 34, 6);
        runs(&c, &machines[m], m % 2 ? 1 << 20 : 8192, NULL, "by weight");
        ir_end(&c);
        make_by_input(&c, 1, 34, 5, 8);
        runs(&c, &machines[m], m % 2 ? 8192 : 1 << 20, NULL, "by input, stride 2");
        ir_end(&c);
        make_by_input(&c, 2, 17, 6, 6 + 4 * (m % 2));
        runs(&c, &machines[m], 1 << 20, NULL, "by input, stride 2, short");
        ir_end(&c);
        make_by_input_of(&c, 2, 34, 40, 6, 1);
        runs(&c, &machines[m], m % 2 ? 1 << 20 : 8192, NULL, "by input, stride 2, one tap");
        ir_end(&c);
    }
}

/* In layouts as the wish says nothing is packed. */
static void
test_wishes(void)
{
    IrCase c;
    Text text = {0};
    Layout layout;
    Target target = target_of(&machines[0], 1 << 20);
    Contract found;
    text.mem = &ir_mem;
    make_conv(&c, 2, 6, 35, 7, 1, false);
    CHECK(jot_contract_only(&c.k, &found), "convolution");
    for (uint32_t b = 1; b <= 3; b++)
        if (jot_contract_wish(&c.k, &found, &target, b, &layout))
            jot_kernel_layout(&c.k, b, &layout);
    runs(&c, &machines[0], 1 << 20, &text, "convolution in its layouts");
    CHECK(text.s && !strstr(text.s, "res "), "packed: %s", text.s ? text.s : "nothing");
    jot_text_free(&text);
    ir_end(&c);
}

/* Groups of few channels beside each other: a vector is of several, of which each lane reads its
 * own group's, as one load that is mixed; longer groups are walked one after the other, all of a
 * row of pixels. Groups that fit no vector, or whose image lies row by row, go one by one. */
static void
test_groups(void)
{
    static const struct { Shape s; int machine; bool rows; const char *sum; } cases[] = {
        /* n g o c h w kh kw stride pad dilation */
        { { 2, 8, 4, 4, 6, 9, 3, 3, 1, 1, 1 }, 0, false, " p c:1u q:1u w:1u nv:1v; ahead 1\n" },
        { { 1, 4, 8, 8, 5, 30, 3, 3, 1, 1, 1 }, 0, false, " p c:1u q:1u w:1u nv:1v; ahead 1\n" },
        { { 2, 8, 4, 4, 9, 9, 3, 3, 2, 1, 1 }, 5, false, " p q c:1u w:1u nv:1v; ahead 1\n" },
        { { 2, 6, 16, 16, 5, 7, 3, 3, 1, 1, 1 }, 0, false, " p q c w:1u nv:1v\n" },
        { { 1, 4, 32, 32, 5, 7, 3, 3, 1, 1, 1 }, 1, false, " p q c:2 c:1u h:1u nv:8u nv:1v" },
        { { 2, 8, 2, 2, 5, 9, 3, 3, 1, 1, 1 }, 2, false, " q c:1u p:1u h:1u nv:1v; ahead 1\n" },
        { { 2, 8, 4, 4, 6, 9, 3, 3, 1, 1, 1 }, 3, false, " p q c h:1u nv:1v" },
        { { 2, 8, 4, 4, 6, 9, 3, 3, 1, 1, 1 }, 4, false, " p q c w:1u" },
        { { 2, 5, 4, 4, 6, 9, 3, 3, 1, 1, 1 }, 0, false, " o:1v" },
        { { 2, 8, 4, 8, 6, 9, 3, 3, 1, 1, 1 }, 0, false, " o:1v" },
        { { 2, 8, 4, 4, 6, 35, 3, 3, 1, 1, 1 }, 0, true, " o:1v" }
    };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        const Machine *m = &machines[cases[i].machine];
        Target target = target_of(m, 1 << 20);
        Contract found;
        Layout layout;
        Text text = {0};
        char what[32];
        IrCase c;
        text.mem = &ir_mem;
        sprintf(what, "groups %d", i);
        make_grouped(&c, &cases[i].s);
        if (!cases[i].rows && i < 4)
            wishes(&c, 1, "0 2 3 1 halo 2:1,1 3:1,1", what);
        CHECK(jot_contract_only(&c.k, &found), "%s", what);
        for (uint32_t b = 1; b <= 3 && !cases[i].rows; b++)
            if (jot_contract_wish(&c.k, &found, &target, b, &layout))
                jot_kernel_layout(&c.k, b, &layout);
        runs(&c, m, 1 << 20, &text, what);
        CHECK(text.s && strstr(text.s, cases[i].sum), "%s: %s", what, text.s ? text.s : "");
        jot_text_free(&text);
        ir_end(&c);
    }
}

/* Lines of an image whose result has a border, by a matrix: where it is larger than they are
 * threads share its columns, else lines. */
static void
test_shares_of_lines(void)
{
    static const struct { int64_t side, in, out; const char *loop; } cases[] = {
        { 7, 160, 960, ": o:32p h o:32 w:7 " }, { 14, 64, 96, ": h:1p o:32 w:14 " }
    };
    static const char *const lies[] = { "0 2 3 1", "2 3 0:32 1 0", "0 2 3 1 halo 2:1,1 3:1,1" };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        Shape s = { 1, 1, cases[i].out, cases[i].in, cases[i].side, cases[i].side, 1, 1, 1, 0, 1 };
        IrCase c;
        Text text = {0};
        Layout layout;
        text.mem = &ir_mem;
        make_grouped(&c, &s);
        for (uint32_t b = 1; b <= 3; b++) {
            CHECK(jot_layout_read(&layout, 4, c.k.bufs.v[b].ext, lies[b - 1], strlen(lies[b - 1])),
                  "a layout");
            jot_kernel_layout(&c.k, b, &layout);
        }
        runs(&c, &machines[0], 1 << 20, &text, "lines by a matrix");
        CHECK(text.s && strstr(text.s, cases[i].loop), "case %d: %s", i, text.s ? text.s : "");
        jot_text_free(&text);
        ir_end(&c);
    }
}

/* The same where the sum runs over several axes, none of them long:
 * images of 5 x 5 with channels last. */
static void
test_by_weight_of_images(void)
{
    static const int64_t ext[5] = { 2, 5, 5, 300, 70 };
    IrCase k, *c = &k;
    Text text = {0};
    Layout layout;
    LayoutPart last[4];
    uint32_t x, dy, dw;
    text.mem = &ir_mem;
    ir_start(c);
    ir_axes(c, "nhwio", ext);
    x = IN("x", 4, 2, 300, 5, 5);
    dy = IN("dy", 4, 2, 70, 5, 5);
    dw = OUT("dw", 2, 300, 70, 0, 0);
    ir_store(c, dw, AX(3), AX(4), 0, 0,
             ir_sum(c, EW_ADD, BIT(0) | BIT(1) | BIT(2),
                    ir_ew(c, EW_MUL, ir_load(c, x, AX(0), AX(3), AX(1), AX(2)),
                          ir_load(c, dy, AX(0), AX(4), AX(1), AX(2))), "g"));
    for (int64_t i = 0; i < 300 * 70; i++)
        for (int64_t t = 0; t < 50; t++)
            c->data[dw][i] += c->data[x][(t / 25 * 300 + i / 70) * 25 + t % 25] *
                              c->data[dy][(t / 25 * 70 + i % 70) * 25 + t % 25];
    for (int d = 0; d < 4; d++)
        last[d].dim = (uint8_t)(d == 0 ? 0 : d == 3 ? 1 : d + 1), last[d].step = 1;
    for (uint32_t b = 1; b <= 2; b++)
        if (jot_layout_make(&layout, 4, c->k.bufs.v[b].ext, 4, last, NULL, NULL))
            jot_kernel_layout(&c->k, b, &layout);
    runs(c, &machines[0], 1 << 20, &text, "by weight, channels last");
    CHECK(text.s && strstr(text.s, "; res pa["), "rows are not packed: %s", text.s ? text.s : "");
    jot_text_free(&text);
    ir_end(c);
}

/* Weights that lie along the sum, packed in each call: all of the sum that lies there as one is one
 * axis, innermost, and turned in registers where it leaves no rest of lanes. Blocks of it end with
 * a channel and with a turned block, whichever l2 asks for. */
static void
test_turned_weights(void)
{
    static const int64_t l2[] = { 1 << 20, 1 << 13 };
    for (int i = 0; i < 6; i++) {
        const Machine *m = &machines[i % 2];
        int64_t channels = i / 2 == 2 ? 15 : 32;
        bool whole = channels * 9 % m->lanes == 0;
        IrCase c;
        Text text = {0};
        Layout layout;
        const char *lies = "0 2 3 1 halo 2:1,1 3:1,1";
        const char *step = m->lanes == 16 ? " kt:144 " : " kt:72 ";
        text.mem = &ir_mem;
        make_conv(&c, 1, channels, 64, 7, 2, false);
        CHECK(jot_layout_read(&layout, 4, c.k.bufs.v[1].ext, lies, strlen(lies)), "a layout");
        jot_kernel_layout(&c.k, 1, &layout);
        runs(&c, m, l2[i / 2 % 2], &text, "weights along the sum");
        CHECK(text.s && (strstr(text.s, "fuse kt = i p q\n") != NULL) == whole, "case %d: %s", i,
              text.s ? text.s : "");
        CHECK(text.s && (strstr(text.s, "kt:1u o:1v; res pb[") != NULL) == whole, "case %d: %s", i,
              text.s ? text.s : "");
        CHECK(text.s && (strstr(text.s, step) != NULL) == (i / 2 == 1), "case %d: %s", i,
              text.s ? text.s : "");
        jot_text_free(&text);
        ir_end(&c);
    }
}

/* What is packed: panels and a tile, never all windows at once. */
static void
test_scratch(void)
{
    IrCase c;
    Text text = {0};
    int64_t most = 0;
    text.mem = &ir_mem;
    make_conv(&c, 2, 20, 35, 17, 1, false);
    runs(&c, &machines[0], 1 << 20, &text, "convolution that packs");
    for (uint32_t b = 1; b < c.k.bufs.n; b++)
        if (c.k.bufs.v[b].role == BUF_SCRATCH && c.k.bufs.v[b].layout->nelem > most)
            most = c.k.bufs.v[b].layout->nelem;
    CHECK(most > 0 && most <= 20 * 19 * 19, "scratch of %lld elements: %s", (long long)most,
          text.s);
    CHECK(strstr(text.s, "res patch"), "no patch: %s", text.s);
    jot_text_free(&text);
    ir_end(&c);
}

int
main(void)
{
    ir_open();
    test_convolutions();
    test_gradients_of_convolutions();
    test_wishes();
    test_groups();
    test_shares_of_lines();
    test_by_weight_of_images();
    test_turned_weights();
    test_scratch();
    ir_close();
    return DONE();
}
