/* tests/test_stencil.c - windows with channels in lanes: which kernels are found, what their
 * schedule is, and its results against loops here; the same of planes whose pixels are in lanes,
 * and of rows that are summed up several at a time.
 *
 * Guards: ccode/stencil/plane.c, ccode/stencil/plane_text.c, ccode/stencil/rows.c,
 * ccode/stencil/stencil.c. */
#include "tests/ir_run.h"
#include "ccode/stencil/stencil.h"

static bool present[5];

typedef struct { int64_t n, c, h, w, step; int op; bool last; } Shape;

static double
at(const IrCase *c, Shape s, int64_t n, int64_t ch, int64_t y, int64_t x, double outside)
{
    return y < 0 || x < 0 || y >= s.h || x >= s.w
               ? outside : c->data[1][((n * s.c + ch) * s.h + y) * s.w + x];
}

/* y[n, c, i, j] = op over p q of x[n, c, step*i + p - 1, step*j + q - 1] (* g[c, p, q] for sums),
 * and that times two in another result */
static void
make_window(IrCase *c, Shape s)
{
    int64_t ext[6], ho = (s.h - 1) / s.step + 1, wo = (s.w - 1) / s.step + 1;
    bool sum = s.op == EW_ADD;
    uint32_t x, g = 0, y, z, v;
    Ix index[4], cond[4];
    jot_Scalar outside = {0};
    Layout l;
    const char *last = s.last ? "0 2 3 1" : "";
    ext[0] = s.n, ext[1] = s.c, ext[2] = ho, ext[3] = wo, ext[4] = ext[5] = 3;
    ir_start(c);
    ir_axes(c, "ncijpq", ext);
    x = IN("x", 4, s.n, s.c, s.h, s.w);
    if (sum)
        g = IN("g", 3, s.c, 3, 3, 0);
    y = OUT("y", 4, s.n, s.c, ho, wo);
    z = OUT("z", 4, s.n, s.c, ho, wo);
    CHECK(jot_layout_read(&l, 4, c->k.bufs.v[x].ext, last, strlen(last)), "a layout");
    jot_kernel_layout(&c->k, x, &l);
    CHECK(jot_layout_read(&l, 4, c->k.bufs.v[y].ext, last, strlen(last)), "a layout");
    jot_kernel_layout(&c->k, y, &l);
    jot_kernel_layout(&c->k, z, &l);
    if (sum && jot_layout_read(&l, 3, c->k.bufs.v[g].ext, "1 2 0", 5))
        jot_kernel_layout(&c->k, g, &l);
    index[0] = AX(0), index[1] = AX(1);
    for (int d = 0; d < 2; d++) {
        index[2 + d] = IADD(IMUL(AX(2 + d), s.step), ISUB(AX(4 + d), IC(1)));
        cond[2 * d] = jot_ix_ge0(&ir_ix, index[2 + d], NULL);
        cond[2 * d + 1] = jot_ix_lt(&ir_ix, index[2 + d], IC(d ? s.w : s.h), NULL);
    }
    outside.f = sum ? 0 : -INFINITY;
    v = jot_v_load(&c->k, x, index, 4, cond, outside);
    if (sum)
        v = ir_ew(c, EW_MUL, v, ir_load(c, g, AX(1), AX(4), AX(5), 0));
    v = ir_sum(c, (EwOp)s.op, BIT(4) | BIT(5), v, "s");
    ir_store(c, y, AX(0), AX(1), AX(2), AX(3), v);
    ir_store(c, z, AX(0), AX(1), AX(2), AX(3), ir_ew(c, EW_ADD, v, v));
    for (int64_t k = 0; k < s.n * s.c * ho * wo; k++) {
        int64_t j = k % wo, i = k / wo % ho, ch = k / wo / ho % s.c, n = k / wo / ho / s.c;
        double r = outside.f;
        for (int p = 0; p < 9; p++) {
            double e = at(c, s, n, ch, s.step * i + p / 3 - 1, s.step * j + p % 3 - 1, outside.f);
            r = sum ? r + e * c->data[g][ch * 9 + p] : fmax(r, e);
        }
        c->data[y][k] = r;
        c->data[z][k] = 2 * r;
    }
}

static void
check_window(Shape s)
{
    static const struct { int lanes, cc; } target[] = {
        { 4, GCC }, { 16, GCC_NATIVE }, { 8, CLANG_NATIVE } };
    static int turn; /* in make test each window on every other target */
    Target machine;
    IrCase c;
    jot_target_default(&machine);
    machine.vectors = 32;
    make_window(&c, s);
    turn++;
    for (size_t i = 0; i < sizeof target / sizeof target[0]; i++) {
        Sched sched;
        Text text = {0};
        char want[32];
        text.mem = &ir_mem;
        if (!present[target[i].cc] || ((int)i + turn) % test_many(2, 1))
            continue;
        if (!jot_stencil_sched(&sched, &c.k, &machine, target[i].lanes)) {
            CHECK(false, "not found");
            continue;
        }
        jot_sched_print(&sched, &text);
        snprintf(want, sizeof want, "| p:1u q:1u %s:1u c:1v", s.w > 1 ? "j" : "i");
        CHECK(strstr(text.s, want), "no %s in %s", want, text.s);
        ir_check(&c, &sched, "gnu", target[i].cc, "window");
        jot_text_free(&text);
        jot_sched_close(&sched);
    }
    ir_end(&c);
}

/* ---- planes ------------------------------------------------------------------------------- */

typedef struct {
    int64_t n, c, h, w, k, pad, dilation;
    bool window, sum, total;
    int64_t step; /* 0: 1 */
    bool turned;  /* columns lie in memory as rows do */
} Planes;

static int64_t
planes_step(const Planes *s)
{
    return s->step ? s->step : 1;
}

static double
plane_at(const IrCase *c, const Planes *s, int64_t n, int64_t ch, int64_t y, int64_t x)
{
    return y < 0 || x < 0 || y >= s->h || x >= s->w
               ? 0 : c->data[1][((n * s->c + ch) * s->h + y) * s->w + x];
}

static void
expect_planes(IrCase *c, const Planes *s, int64_t ho, int64_t wo)
{
    for (int64_t i = 0; i < s->n * s->c * ho * wo; i++) {
        int64_t x = i % wo, y = i / wo % ho, ch = i / wo / ho % s->c, n = i / wo / ho / s->c;
        for (int64_t p = 0; p < s->k * s->k; p++) {
            double e = plane_at(c, s, n, ch, planes_step(s) * y + p / s->k * s->dilation - s->pad,
                                planes_step(s) * x + p % s->k * s->dilation - s->pad);
            if (s->window)
                c->data[3][i] += e * c->data[2][ch * s->k * s->k + p];
            if (s->total)
                c->data[6][0] += e * c->data[2][ch * s->k * s->k + p] * c->data[4][i];
            if (s->sum)
                c->data[5][ch * s->k * s->k + p] += e * c->data[4][i];
        }
    }
}

/* y[n, c, i, j] = sum over p q of x[n, c, step*i + d*p - pad, step*j + d*q - pad] * g[c, p, q], and
 * z[c, p, q] = sum over n i j of the same x times v[n, c, i, j]; either or both; and the sum of all
 * y * v */
static void
make_planes(IrCase *c, const Planes *s)
{
    int64_t ho = (s->h + 2 * s->pad - (s->k - 1) * s->dilation - 1) / planes_step(s) + 1;
    int64_t wo = (s->w + 2 * s->pad - (s->k - 1) * s->dilation - 1) / planes_step(s) + 1, ext[6];
    uint32_t x, g, y, v, z, t, load, sum = 0;
    Ix index[4], cond[4];
    jot_Scalar outside = {0};
    ext[0] = s->n, ext[1] = s->c, ext[2] = ho, ext[3] = wo, ext[4] = ext[5] = s->k;
    ir_start(c);
    ir_axes(c, "ncijpq", ext);
    x = IN("x", 4, s->n, s->c, s->h, s->w);
    g = IN("g", 3, s->c, s->k, s->k, 0);
    y = s->window ? OUT("y", 4, s->n, s->c, ho, wo) : IN("y", 4, s->n, s->c, ho, wo);
    v = IN("v", 4, s->n, s->c, ho, wo);
    z = s->sum ? OUT("z", 3, s->c, s->k, s->k, 0) : IN("z", 3, s->c, s->k, s->k, 0);
    for (uint32_t b = x; s->turned && b <= v; b++) {
        Layout l;
        if (b != g && jot_layout_read(&l, 4, c->k.bufs.v[b].ext, "0 1 3 2", 7))
            jot_kernel_layout(&c->k, b, &l);
    }
    index[0] = AX(0), index[1] = AX(1);
    for (int d = 0; d < 2; d++) {
        index[2 + d] = IADD(IMUL(AX(2 + d), planes_step(s)),
                            ISUB(IMUL(AX(4 + d), s->dilation), IC(s->pad)));
        cond[2 * d] = jot_ix_ge0(&ir_ix, index[2 + d], NULL);
        cond[2 * d + 1] = jot_ix_lt(&ir_ix, index[2 + d], IC(d ? s->w : s->h), NULL);
    }
    load = jot_v_load(&c->k, x, index, 4, cond, outside);
    t = s->total ? OUT("t", 0, 0, 0, 0, 0) : 0;
    if (s->window || s->total)
        sum = ir_sum(c, EW_ADD, BIT(4) | BIT(5),
                     ir_ew(c, EW_MUL, load, ir_load(c, g, AX(1), AX(4), AX(5), 0)), "s");
    if (s->window)
        ir_store(c, y, AX(0), AX(1), AX(2), AX(3), sum);
    if (s->total)
        ir_store(c, t, 0, 0, 0, 0,
                 ir_sum(c, EW_ADD, BIT(0) | BIT(1) | BIT(2) | BIT(3),
                        ir_ew(c, EW_MUL, sum, ir_load(c, v, AX(0), AX(1), AX(2), AX(3))), "t"));
    if (s->sum)
        ir_store(c, z, AX(1), AX(4), AX(5), 0,
                 ir_sum(c, EW_ADD, BIT(0) | BIT(2) | BIT(3),
                        ir_ew(c, EW_MUL, ir_load(c, v, AX(0), AX(1), AX(2), AX(3)), load), "d"));
    memset(c->data[y], 0, ir_size(&c->k.bufs.v[y]) * sizeof(double));
    if (s->total)
        c->data[t][0] = 0;
    memset(c->data[z], 0, ir_size(&c->k.bufs.v[z]) * sizeof(double));
    expect_planes(c, s, ho, wo);
}

/* Both are found, read the image through one tile, and compute the right thing. */
static void
check_planes(const Planes *s)
{
    static const struct { int lanes, cc, vectors; } target[] = {
        { 4, GCC, 16 }, { 16, GCC_NATIVE, 32 }, { 8, CLANG_NATIVE, 16 } };
    static int turn;
    turn++;
    for (size_t i = 0; i < sizeof target / sizeof target[0]; i++) {
        Target machine;
        Sched sched;
        Text text = {0};
        IrCase c;
        if (!present[target[i].cc] || ((int)i + turn) % test_many(2, 1))
            continue;
        jot_target_default(&machine);
        machine.vectors = target[i].vectors;
        make_planes(&c, s);
        text.mem = &ir_mem;
        if (!jot_plane_sched(&sched, &c.k, &machine, target[i].lanes))
            CHECK(false, "not found");
        else {
            bool turns = s->k * s->k > 27; /* a column of taps at a time */
            const char *lanes = s->turned ? "j:1u i:1v" : "i:1u j:1v";
            char window[32], part[32];
            jot_sched_print(&sched, &text);
            sprintf(window, "| %s %s", turns ? "q p:1u" : "p:1u q:1u", lanes);
            sprintf(part, " %s %s; res part", turns ? "p:1u" : "p:1u q:1u", lanes);
            CHECK(!(s->window || s->total) || strstr(text.s, window), "window: %s", text.s);
            CHECK(!s->sum || strstr(text.s, part), "sum: %s", text.s);
            CHECK(!s->turned || strstr(text.s, "res tile[t03, t02]"), "lanes last: %s", text.s);
            CHECK(!s->sum || !turns || strstr(text.s, " q || "), "sums of a column: %s", text.s);
            CHECK(!s->sum || strstr(text.s, "phase"), "planes are added up later: %s", text.s);
            CHECK((strstr(text.s, "res tile[") != NULL) == (s->pad > 0) && !strstr(text.s, "tile1"),
                  "one tile where there is a border: %s", text.s);
            ir_check(&c, &sched, "gnu", target[i].cc, "planes");
            jot_sched_close(&sched);
        }
        jot_text_free(&text);
        ir_end(&c);
    }
}

static void
test_planes(void)
{
    static const Planes planes[] = {
        {2, 3, 19, 37, 3, 1, 1, true, true, false, 0, false},
        {1, 4, 8, 16, 3, 1, 1, true, false, false, 0, false},
        {3, 2, 9, 5, 3, 1, 1, false, true, false, 0, false},
        {2, 2, 12, 21, 5, 2, 1, true, true, true, 0, false},
        {2, 3, 11, 33, 3, 2, 2, true, true, true, 0, false},
        {2, 1, 10, 18, 3, 0, 1, true, true, false, 0, false},
        {2, 3, 13, 20, 3, 1, 1, false, true, true, 0, false},
        {1, 1, 9, 17, 3, 1, 1, false, false, true, 0, false},
        /* more taps than copies: columns of them in turn */
        {1, 2, 20, 40, 7, 3, 1, true, true, false, 0, false},
        {2, 2, 13, 19, 7, 3, 1, true, true, true, 0, false},
        {2, 1, 21, 23, 9, 2, 1, false, true, false, 0, false},
        {1, 2, 24, 27, 6, 5, 2, true, true, false, 0, false},
        /* windows of stride 2: every second element of two vectors */
        {2, 3, 19, 37, 3, 1, 1, true, true, false, 2, false},
        {3, 2, 16, 64, 3, 1, 1, true, true, true, 2, false},
        {1, 2, 11, 9, 3, 0, 1, true, true, false, 2, false},
        {2, 2, 20, 71, 5, 2, 2, true, true, false, 2, false},
        {1, 3, 17, 41, 7, 3, 1, true, true, false, 2, false},
        {2, 1, 33, 34, 2, 0, 1, true, false, false, 2, false},
        {2, 2, 33, 14, 3, 1, 1, true, false, false, 1, true},
        {2, 2, 33, 14, 3, 1, 1, false, true, false, 1, true}};
    Planes wide = { 1, 2, 40, 60, 29, 14, 1, true, false, false, 0, false };
    Planes steps = { 1, 2, 20, 60, 3, 1, 1, true, false, false, 3, false };
    Planes large = { 1, 1, 300, 400, 3, 1, 1, true, true, false, 0, false };
    Target machine;
    IrCase c;
    Sched s;
    for (size_t i = 0; i < sizeof planes / sizeof planes[0]; i++)
        check_planes(&planes[i]);
    jot_target_default(&machine);
    make_planes(&c, &wide);
    CHECK(!jot_plane_sched(&s, &c.k, &machine, 8), "29 taps in a column");
    ir_end(&c);
    make_planes(&c, &steps);
    CHECK(!jot_plane_sched(&s, &c.k, &machine, 8), "lanes three apart");
    ir_end(&c);
    make_planes(&c, &large);
    CHECK(!jot_plane_sched(&s, &c.k, &machine, 8), "a tile of 480 KB");
    ir_end(&c);
}

/* y[c, i] = sum over q of the product of n images, each with a border: a tile for each of them. */
static void
check_tiles(int n)
{
    const int64_t ext[3] = {3, 21, 3};
    uint32_t x[4], y, v = 0;
    Target machine;
    Sched sched;
    Text text = {0};
    IrCase c;
    ir_start(&c);
    ir_axes(&c, "ciq", ext);
    for (int b = 0; b < n; b++)
        x[b] = ir_buf(&c, (char[]){'a', (char)('0' + b), 0}, JOT_F32, BUF_INPUT, 2, ext[0], ext[1],
                      0, 0);
    y = ir_buf(&c, "y", JOT_F32, BUF_OUTPUT, 2, ext[0], ext[1], 0, 0);
    for (int b = 0; b < n; b++) {
        Ix index[2] = {AX(0), IADD(AX(1), ISUB(AX(2), IC(1)))}, cond[2];
        jot_Scalar outside = {0};
        uint32_t load;
        cond[0] = jot_ix_ge0(&ir_ix, index[1], NULL);
        cond[1] = jot_ix_lt(&ir_ix, index[1], IC(ext[1]), NULL);
        load = jot_v_load(&c.k, x[b], index, 2, cond, outside);
        v = b ? ir_ew(&c, EW_MUL, v, load) : load;
    }
    ir_store(&c, y, AX(0), AX(1), 0, 0, ir_sum(&c, EW_ADD, BIT(2), v, "s"));
    for (int64_t k = 0; k < ext[0] * ext[1]; k++) {
        c.data[y][k] = 0;
        for (int64_t i = k % ext[1] - 1; i < k % ext[1] + 2; i++) {
            double term = i >= 0 && i < ext[1];
            for (int b = 0; b < n && term != 0; b++)
                term *= c.data[x[b]][k / ext[1] * ext[1] + i];
            c.data[y][k] += term;
        }
    }
    jot_target_default(&machine);
    text.mem = &ir_mem;
    if (!jot_plane_sched(&sched, &c.k, &machine, 4))
        CHECK(false, "%d tiles: not found", n);
    else {
        jot_sched_print(&sched, &text);
        for (int b = 1; b < n; b++)
            CHECK(strstr(text.s, (char[]){'t', 'i', 'l', 'e', (char)('0' + b), '[', 0}),
                  "tile %d: %s", b, text.s);
        ir_check(&c, &sched, "gnu", GCC, "tiles");
        jot_sched_close(&sched);
    }
    jot_text_free(&text);
    ir_end(&c);
}

static void
test_refused(void)
{
    Shape rows = { 1, 16, 6, 6, 1, EW_ADD, false }, last = { 1, 16, 6, 6, 1, EW_ADD, true };
    Target machine;
    IrCase c;
    Sched s;
    jot_target_default(&machine);
    make_window(&c, rows);
    CHECK(!jot_stencil_sched(&s, &c.k, &machine, 8), "channels are not last");
    ir_end(&c);
    make_window(&c, last);
    CHECK(!jot_stencil_sched(&s, &c.k, &machine, 1), "one lane");
    ir_end(&c);
}

/* ---- rows --------------------------------------------------------------------------------- */

/* y[r] = sum over k of max(x[k], 0) * w[r, k]: rows of what no cache holds come several at a
 * time. */
static void
check_rows(int64_t rows, int64_t n, size_t cache, bool found)
{
    static const struct { int nbytes, cc; } target[] = { { 16, GCC }, { 64, GCC_NATIVE } };
    int64_t ext[2] = { rows, n };
    uint32_t x, w, y, z, v, sum;
    Target machine;
    IrCase here, *c = &here;
    ir_start(c);
    ir_axes(c, "rk", ext);
    x = IN("x", 1, n, 0, 0, 0);
    w = IN("w", 2, rows, n, 0, 0);
    y = OUT("y", 1, rows, 0, 0, 0);
    z = OUT("z", 1, rows, 0, 0, 0);
    v = ir_load(c, x, AX(1), 0, 0, 0);
    v = ir_ew(c, EW_MUL, ir_ew(c, EW_MUL, v, v), ir_load(c, w, AX(0), AX(1), 0, 0));
    sum = ir_sum(c, EW_ADD, BIT(1), v, "s");
    ir_store(c, y, AX(0), 0, 0, 0, sum);
    ir_store(c, z, AX(0), 0, 0, 0, ir_ew(c, EW_ADD, sum, sum));
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t k = 0; k < n; k++)
            c->data[y][r] += c->data[x][k] * c->data[x][k] * c->data[w][r * n + k];
        c->data[z][r] = 2 * c->data[y][r];
    }
    jot_target_default(&machine);
    machine.cache_nbytes[LEVEL_L2] = cache;
    for (size_t i = 0; i < sizeof target / sizeof target[0]; i++) {
        Sched sched;
        machine.vector_nbytes = target[i].nbytes;
        if (!present[target[i].cc])
            continue;
        if (!jot_rows_sched(&sched, &c->k, &machine, target[i].nbytes / 4)) {
            CHECK(!found, "%lld rows of %lld: not found", (long long)rows, (long long)n);
            continue;
        }
        CHECK(found, "%lld rows of %lld: found", (long long)rows, (long long)n);
        ir_check(c, &sched, "gnu", target[i].cc, "rows");
        jot_sched_close(&sched);
    }
    ir_end(c);
}

int
main(void)
{
    static const Shape shape[] = {
        { 1, 16, 6, 7, 1, EW_ADD, true }, { 2, 35, 7, 9, 1, EW_MAX, true },
        { 2, 24, 9, 8, 2, EW_ADD, true }, { 1, 5, 3, 1, 1, EW_ADD, true },
        { 3, 33, 11, 23, 2, EW_MAX, true } };
    static const char *const name[] = { "gcc", "clang", "tcc", "gcc", "clang" };
    (void)ir_guarded;
    ir_open();
    for (int i = 0; i < 5; i++) {
        char cmd[64];
        snprintf(cmd, sizeof cmd, "command -v %s >/dev/null 2>&1", name[i]);
        present[i] = system(cmd) == 0;
    }
    for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++)
        check_window(shape[i]);
    test_planes();
    for (int n = 2; n <= 4 && present[GCC]; n++)
        check_tiles(n);
    test_refused();
    check_rows(16, 256, 1024, true);
    check_rows(19, 300, 1024, true);
    check_rows(35, 1025, 4096, true);
    check_rows(19, 300, 1 << 20, false); /* a cache holds it */
    check_rows(3, 300, 1024, false);
    ir_close();
    return DONE();
}
