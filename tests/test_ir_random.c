/* tests/test_ir_random.c - the kernel IR: every kind of value with the plain schedule, then random
 * schedules and random layouts of all kernels, compiled and compared.
 *
 * Guards: ccode/lower/independent.c, ccode/emit/name.c, ccode/ir/layout.c, ccode/lower/memory.c,
 * ccode/lower/parts.c. */
#include "tests/ir_cases.h"

/* ---- layouts ---- */

/* Every logical element has an address of its own inside the memory, the same by Ix and by number.
 * */
static void
check_layout(const Layout *l, const char *what)
{
    int64_t at[JOT_MAX_RANK] = {0}, n = 1;
    char *seen = calloc((size_t)l->nelem + 1, 1);
    Ix index[JOT_MAX_RANK] = {0};
    Ix address;
    Text text = {0};
    Layout again;
    text.mem = &ir_mem;
    for (int d = 0; d < l->rank; d++) {
        n *= l->ext[d];
        index[d] = AX(d);
    }
    address = jot_layout_addr(l, &ir_ix, index, NULL);
    for (int64_t i = 0; i < n; i++) {
        int64_t a = jot_layout_addr_at(l, at);
        CHECK(a >= 0 && a < l->nelem && !seen[a], "%s: address %lld", what, (long long)a);
        CHECK(a == jot_ix_eval(&ir_ix, address, at, NULL, NULL), "%s: Ix and number differ", what);
        if (a >= 0 && a < l->nelem)
            seen[a] = 1;
        for (int d = l->rank - 1; d >= 0 && ++at[d] == l->ext[d]; d--)
            at[d] = 0;
    }
    jot_layout_print(l, &text);
    CHECK(jot_layout_read(&again, l->rank, l->ext, text.s ? text.s : "", text.n) &&
          jot_layout_eq(l, &again),
          "%s: \"%s\" reads back as another layout", what, text.s ? text.s : "");
    jot_text_free(&text);
    free(seen);
}

static void
test_layouts(void)
{
    int64_t ext[3] = { 5, 6, 7 }, empty[2] = { 0, 3 };
    LayoutPart panel[4] = { { 0, 2 }, { 2, 1 }, { 1, 1 }, { 0, 1 } };
    LayoutPart bad[3] = { { 0, 2 }, { 1, 1 }, { 2, 1 } };
    Layout l;
    CHECK(jot_layout_rowmajor(&l, 3, ext) && jot_layout_is_rowmajor(&l) && l.nelem == 210,
          "row-major");
    check_layout(&l, "row-major");
    CHECK(jot_layout_make(&l, 3, ext, 4, panel, NULL, NULL) && l.nelem == 252,
          "panels: %lld", (long long)l.nelem);
    check_layout(&l, "panels");
    CHECK(!jot_layout_make(&l, 3, ext, 3, bad, NULL, NULL), "a dimension is not covered");
    CHECK(jot_layout_rowmajor(&l, 2, empty) && l.nelem == 0, "empty");
    CHECK(jot_layout_rowmajor(&l, 0, NULL) && l.nelem == 1, "a scalar");
    for (uint64_t seed = 0; seed < 60; seed++)
        if (jot_layout_random(&l, 3, ext, seed, seed & 1))
            check_layout(&l, "random");
        else
            CHECK(false, "no random layout for seed %d", (int)seed);
}

/* ---- every kind of value ---- */

/* integers, comparison, select, bool, casts, index values, run-time scalars, user's text */
static void
make_mixed(IrCase *c, int64_t n, int64_t m)
{
    int64_t ext[2];
    uint32_t a, b, f, yi, yb, yf, v, w, less, s, h, yh, t;
    int64_t want;
    ext[0] = n, ext[1] = m;
    ir_start(c);
    ir_axes(c, "ij", ext);
    a = ir_buf(c, "int", JOT_I32, BUF_INPUT, 2, n, m, 0, 0); /* names that C keeps for itself */
    b = ir_buf(c, "b[0]", JOT_I32, BUF_INPUT, 1, m, 0, 0, 0);
    f = IN("lo", 2, n, m, 0, 0);
    h = ir_buf(c, "h", JOT_BF16, BUF_INPUT, 1, m, 0, 0, 0);
    yi = ir_buf(c, "yi", JOT_I32, BUF_OUTPUT, 2, n, m, 0, 0);
    yb = ir_buf(c, "yb", JOT_BOOL, BUF_OUTPUT, 2, n, m, 0, 0);
    yf = OUT("yf", 2, n, m, 0, 0);
    yh = ir_buf(c, "yh", JOT_BF16, BUF_OUTPUT, 1, m, 0, 0, 0);
    CHECK(jot_kernel_scalar(&c->k, "scale", JOT_F32) == 0, "first scalar");
    c->scalars[0].f = 1.5;
    v = ir_load(c, a, AX(0), AX(1), 0, 0);
    w = ir_load(c, b, AX(1), 0, 0, 0);
    less = jot_v_ew(&c->k, EW_LT, JOT_BOOL, v, w, 0);
    s = jot_v_ew(&c->k, EW_SELECT, JOT_I32, less, jot_v_ew(&c->k, EW_ADD, JOT_I32, v, w, 0), v);
    ir_store(c, yi, AX(0), AX(1), 0, 0, s);
    ir_store(c, yb, AX(0), AX(1), 0, 0, jot_v_ew(&c->k, EW_AND, JOT_BOOL, less,
             jot_v_index(&c->k, JOT_BOOL, jot_ix_eq0(&ir_ix, IMOD(IADD(AX(0), AX(1)), 2), NULL)),
                 0));
    t = ir_ew(c, EW_MUL, ir_load(c, f, AX(0), AX(1), 0, 0), jot_v_scalar(&c->k, 0));
    t = ir_ew(c, EW_ADD, t, jot_v_cast(&c->k, JOT_F32, v));
    t = jot_v_call(&c->k, JOT_F32, "jotm_maxf", 2,
                   (uint32_t[]){ t, jot_v_index(&c->k, JOT_F32, IADD(IMUL(AX(0), 3), AX(1))) });
    ir_store(c, yf, AX(0), AX(1), 0, 0, t);
    ir_store(c, yh, AX(1), 0, 0, 0, ir_ew(c, EW_ADD, ir_load(c, h, AX(1), 0, 0, 0),
                                          jot_v_constf(&c->k, JOT_F32, 1)));
    for (int64_t i = 0; i < n * m; i++) {
        double x = c->data[a][i], z = c->data[b][i % m], q = c->data[f][i] * 1.5 + x;
        want = (int64_t)(x < z ? x + z : x);
        c->data[yi][i] = (double)want;
        c->data[yb][i] = x < z && (i / m + i % m) % 2 == 0;
        c->data[yf][i] = fmax(q, (double)(i / m * 3 + i % m));
        c->data[yh][i % m] = c->data[h][i % m] + 1;
    }
}

/* gather by an index variable, and scatter-add with a condition */
static void
make_gather(IrCase *c, int64_t n, int64_t rows, int64_t m)
{
    int64_t ext[2];
    uint32_t x, e, y, z, first;
    Ix at, arg, idx[2], cond;
    jot_Scalar none;
    ext[0] = n, ext[1] = m;
    none.u = 0;
    ir_start(c);
    ir_axes(c, "ij", ext);
    x = IN("x", 2, rows, m, 0, 0);
    e = ir_buf(c, "e", JOT_I32, BUF_INPUT, 1, n, 0, 0, 0);
    y = OUT("y", 2, n, m, 0, 0);
    z = OUT("z", 2, rows, m, 0, 0);
    for (int64_t i = 0; i < n; i++)
        c->data[e][i] = (double)((i * 3) % (rows + 1)); /* `rows` is outside */
    jot_kernel_slot(&c->k, 2, e);
    arg = AX(0);
    at = jot_ix_load(&ir_ix, 2, 1, &arg);
    idx[0] = at, idx[1] = AX(1);
    cond = jot_ix_lt(&ir_ix, at, IC(rows), NULL);
    none.f = -5;
    ir_store(c, y, AX(0), AX(1), 0, 0, jot_v_load(&c->k, x, idx, 1, &cond, none));
    first = ir_load(c, x, jot_ix_load(&ir_ix, 2, 1, (Ix[]){ IC(0) }), AX(1), 0, 0);
    CHECK(jot_kernel_store(&c->k, z, idx, first,
                           EW_ADD, 1, &cond) >= 0, "a scatter is refused");
    for (int64_t i = 0; i < n * m; i++) {
        int64_t r = (int64_t)c->data[e][i / m];
        c->data[y][i] = r < rows ? c->data[x][r * m + i % m] : -5;
        if (r < rows)
            c->data[z][r * m + i % m] += c->data[x][(int64_t)c->data[e][0] * m + i % m];
    }
}

/* integer and bool reductions, min and max, a mean; several over one space */
static void
make_reductions(IrCase *c, int64_t n, int64_t m)
{
    int64_t ext[2];
    uint32_t a, p, o1, o2, o3, o4, v;
    ext[0] = n, ext[1] = m;
    ir_start(c);
    ir_axes(c, "ij", ext);
    a = ir_buf(c, "a", JOT_I32, BUF_INPUT, 2, n, m, 0, 0);
    p = ir_buf(c, "p", JOT_BOOL, BUF_INPUT, 2, n, m, 0, 0);
    o1 = ir_buf(c, "most", JOT_I32, BUF_OUTPUT, 1, n, 0, 0, 0);
    o2 = ir_buf(c, "any", JOT_BOOL, BUF_OUTPUT, 1, m, 0, 0, 0);
    o3 = OUT("mean", 1, n, 0, 0, 0);
    o4 = ir_buf(c, "all", JOT_I32, BUF_OUTPUT, 0, 0, 0, 0, 0);
    v = ir_load(c, a, AX(0), AX(1), 0, 0);
    ir_store(c, o1, AX(0), 0, 0, 0, ir_sum(c, EW_MAX, BIT(1), v, NULL));
    ir_store(c, o2, AX(1), 0, 0, 0, ir_sum(c, EW_OR, BIT(0), ir_load(c, p, AX(0), AX(1), 0, 0),
                                           NULL));
    ir_store(c, o3, AX(0), 0, 0, 0,
             jot_v_reduce(&c->k, EW_ADD, BIT(1), jot_v_cast(&c->k, JOT_F32, v), 0, NULL,
                          1.0 / (double)m));
    ir_store(c, o4, 0, 0, 0, 0, ir_sum(c, EW_ADD, BIT(0) | BIT(1), v, NULL));
    for (int64_t i = 0; i < n; i++)
        c->data[o1][i] = -2147483648.0;
    for (int64_t i = 0; i < n * m; i++) {
        double x = c->data[a][i];
        c->data[o1][i / m] = fmax(c->data[o1][i / m], x);
        if (c->data[p][i] != 0)
            c->data[o2][i % m] = 1;
        c->data[o3][i / m] += x / (double)m;
        c->data[o4][0] += x;
    }
    if (m == 0)
        for (int64_t i = 0; i < n; i++)
            c->data[o3][i] = 0.0 * (1.0 / 0.0); /* 0 times 1/0 */
}

/* ---- all of them ---- */

typedef void Make(IrCase *c, int which);
static void
make_case(IrCase *c, int which)
{
    switch (which) {
    case 0: make_sigmoid(c, 13); break;
    case 1: make_softmax(c, 5, 11); break;
    case 2: make_columns(c, 6, 9); break;
    case 3: make_transpose(c, 7, 10); break;
    case 4: make_conv(c, 1, 3, 5, 5, 1, false); break;
    case 5: make_conv(c, 2, 3, 3, 4, 2, true); break;
    case 6: make_by_weight(c, 1, 2, 3, 4); break;
    case 7: make_by_input(c, 1, 3, 2, 6); break;
    case 8: make_attention(c, 2, 5, 3, 2); break;
    case 9: make_mixed(c, 5, 9); break;
    case 10: make_gather(c, 7, 4, 9); break;
    case 11: make_reductions(c, 5, 9); break;
    case 12: make_sigmoid(c, 0); break;
    case 13: make_softmax(c, 0, 3); break;
    case 14: make_reductions(c, 4, 0); break;
    default: make_mixed(c, 1, 1); break;
    }
}
#define CASES 16

static void
test_plain(int cc)
{
    char name[32];
    for (int i = 0; i < CASES; i++) {
        IrCase c;
        make_case(&c, i);
        snprintf(name, sizeof name, "case %d", i);
        ir_default(&c, cc, name);
        ir_end(&c);
    }
}

static void
random_layouts(IrCase *c, uint64_t seed)
{
    for (uint32_t b = 1; b < c->k.bufs.n; b++) {
        const KBuf *buf = &c->k.bufs.v[b];
        Layout l;
        if (jot_layout_random(&l, buf->rank, buf->ext, seed * 31 + b, buf->role != BUF_OUTPUT))
            jot_kernel_layout(&c->k, b, &l);
    }
}

static void
test_random(int rounds, uint64_t seed0)
{
    static const struct { const char *dialect; int lanes, cc; } target[4] = {
        { "c", 1, TCC }, { "c", 4, TCC }, { "gnu", 8, GCC_NATIVE }, { "c", 3, TCC }
    };
    for (int i = 0; i < rounds; i++) {
        uint64_t seed = seed0 + (uint64_t)i;
        int t = i % 8 == 3 ? 2 : i % 4 == 2 ? 3 : i % 2;
        IrCase c;
        Sched s;
        char name[64];
        make_case(&c, (int)(jot_hash_u64(seed, 3) % CASES));
        if (i % 3 == 0)
            random_layouts(&c, seed);
        snprintf(name, sizeof name, "seed %d, case %d", (int)seed,
                 (int)(jot_hash_u64(seed, 3) % CASES));
        CHECK(jot_sched_random(&s, &c.k, target[t].lanes, seed), "%s: no schedule", name);
        ir_check(&c, &s, target[t].dialect, target[t].cc, name);
        jot_sched_close(&s);
        ir_end(&c);
    }
}

/* Each allocation refused in turn: no crash, no leak, no function. */
static int refuse_at;
static void *
refusing(void *ud, void *p, size_t old, size_t size)
{
    if (size > 0 && refuse_at > 0 && --refuse_at == 0)
        return NULL;
    return ir_realloc(ud, p, old, size);
}

static bool
build_all(Mem *mem, int n, bool by_price)
{
    Target target;
    IxPool ix = {0};
    Kernel k;
    Sched s = {0};
    Text out = {0};
    EmitInfo info;
    Ix i, j, at[2];
    int64_t ext[2] = { 5, 7 };
    int order[2] = { 0, 1 };
    uint32_t x, y, v;
    jot_Scalar none = {0};
    bool ok;
    jot_target_default(&target);
    refuse_at = n;
    memset(mem, 0, sizeof *mem);
    mem->hooks.realloc = refusing;
    out.mem = mem;
    ok = jot_ix_open(&ix, mem) && jot_kernel_open(&k, mem, &ix);
    if (ok) {
        jot_kernel_axis(&k, "i", 5);
        jot_kernel_axis(&k, "j", 7);
        x = jot_kernel_buf(&k, "x", JOT_F32, BUF_INPUT, 2, ext);
        y = jot_kernel_buf(&k, "y", JOT_F32, BUF_OUTPUT, 2, ext);
        i = jot_ix_axis(&ix, 0), j = jot_ix_axis(&ix, 1);
        at[0] = i, at[1] = j;
        v = jot_v_load(&k, x, at, 0, NULL, none);
        v = jot_v_ew(&k, EW_SUB, JOT_F32, v, jot_v_reduce(&k, EW_ADD, 1, v, 0, NULL, 0.5), 0);
        ok = jot_kernel_store(&k, y, at, v, EW_NONE, 0, NULL) >= 0 && jot_ir_verify(&k, NULL) &&
             (by_price ? jot_sched_choose(&s, &k, &target, 2, order)
                       : jot_sched_default(&s, &k, 1, 2, order)) && jot_sched_verify(&s, NULL) &&
             jot_emit(&k, &s, jot_dialect_find("c"), "k", NULL, NULL, &out, &info, NULL) &&
             !mem->failed;
        jot_sched_close(&s);
        jot_kernel_close(&k);
    } else if (ix.recs.v)
        jot_kernel_close(&k);
    jot_text_free(&out);
    jot_ix_close(&ix);
    return ok;
}

static void
test_refused(bool by_price)
{
    Mem mem;
    for (int n = 1; n < 2000; n++) {
        bool ok = build_all(&mem, n, by_price);
        CHECK(mem.live_nbytes == 0, "allocation %d refused: %zu bytes left", n, mem.live_nbytes);
        CHECK(ok == !mem.failed, "allocation %d refused: %s", n, ok ? "a function" : "no function");
        if (ok)
            break;
    }
}

int
main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 60;
    ir_open();
    test_layouts();
    test_refused(false);
    test_refused(true);
    test_plain(GCC);
    if (system("command -v tcc >/dev/null 2>&1") == 0) {
        test_plain(TCC);
        test_random(rounds, argc > 2 ? (uint64_t)atoll(argv[2]) : 1);
    } else
        SKIP("no tcc here: random schedules");
    ir_close();
    return DONE();
}
