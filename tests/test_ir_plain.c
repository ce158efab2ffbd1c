/* tests/test_ir_plain.c - the plain schedule: order of loops, where sums live, guards that leave
 * their loops, lanes. Each kernel's schedule or text must hold (or not hold) given words, and each
 * kernel is compiled, run with 1 and 4 lanes and compared with loops here.
 * Set IR_SHOW to a part of a case's name to see its text.
 *
 * Guards: ccode/device/emit_matrix.c, ccode/emit/loop.c, ccode/schedule/builder.c,
 * ccode/schedule/read.c, ccode/verify/bounds.c. */
#include "ccode/build/build.h"
#include "ccode/schedule/builder.h"
#include "tests/ir_run.h"

/* Words that must be in the schedule and the text ("!word": must not), for one lane. */
static void
expect(IrCase *c, const char *what, const char *const *word, int n)
{
    int order[KERNEL_AXES], m = jot_build_order(&c->k, order);
    Text all = {0}, sched = {0};
    EmitInfo info;
    Sched s;
    all.mem = sched.mem = &ir_mem;
    CHECK(jot_sched_default(&s, &c->k, 1, m, order), "%s: no schedule", what);
    jot_sched_print(&s, &sched);
    if (ir_emit(c, &s, "c", &all, &info, what)) {
        const char *kernel = strstr(all.s, "\nk(void");
        for (int i = 0; i < n; i++) {
            bool not = word[i][0] == '!';
            bool found = strstr(sched.s, word[i] + not) || strstr(kernel, word[i] + not);
            CHECK(found != not, "%s: '%s' in\n%s%s", what, word[i], sched.s, kernel);
        }
    }
    jot_text_free(&all);
    jot_text_free(&sched);
    jot_sched_close(&s);
}

static void
check_lanes(IrCase *c, int lanes, const char *what)
{
    int order[KERNEL_AXES], m = jot_build_order(&c->k, order);
    Sched s;
    CHECK(jot_sched_default(&s, &c->k, lanes, m, order), "%s: no schedule", what);
    ir_check(c, &s, "c", GCC, what);
    jot_sched_close(&s);
}

#define EXPECT(c, what, ...) do { \
        static const char *const words[] = { __VA_ARGS__ }; \
        expect(c, what, words, (int)(sizeof words / sizeof *words)); \
        check_lanes(c, 1, what); \
        check_lanes(c, 4, what); \
        ir_end(c); \
    } while (0)

/* ---- order and places --------------------------------------------------------------------- */

/* x[n, c, h, w] summed over n, h, w, with its squares [J, Listing 6] */
static void
make_statistics(IrCase *c)
{
    static const int64_t ext[4] = { 3, 5, 4, 6 };
    uint32_t x, s, q, v;
    ir_start(c);
    ir_axes(c, "nchw", ext);
    x = IN("x", 4, 3, 5, 4, 6);
    s = OUT("s", 1, 5, 0, 0, 0);
    q = OUT("q", 1, 5, 0, 0, 0);
    v = ir_load(c, x, AX(0), AX(1), AX(2), AX(3));
    ir_store(c, s, AX(1), 0, 0, 0, ir_sum(c, EW_ADD, BIT(0) | BIT(2) | BIT(3), v, "sum"));
    ir_store(c, q, AX(1), 0, 0, 0,
             ir_sum(c, EW_ADD, BIT(0) | BIT(2) | BIT(3), ir_ew(c, EW_MUL, v, v), "squares"));
    for (int i = 0; i < 3 * 5 * 4 * 6; i++) {
        double e = c->data[x][i];
        c->data[s][i / 24 % 5] += e;
        c->data[q][i / 24 % 5] += e * e;
    }
}

/* y[i, j] = sum over k of a[i, k] b[k, j], or b[j, k] */
static void
make_product(IrCase *c, bool transposed)
{
    static const int64_t ext[3] = { 5, 9, 7 };
    uint32_t a, b, y;
    ir_start(c);
    ir_axes(c, "ijk", ext);
    a = IN("a", 2, 5, 7, 0, 0);
    b = transposed ? IN("b", 2, 9, 7, 0, 0) : IN("b", 2, 7, 9, 0, 0);
    y = OUT("y", 2, 5, 9, 0, 0);
    ir_store(c, y, AX(0), AX(1), 0, 0,
             ir_sum(c, EW_ADD, BIT(2),
                    ir_ew(c, EW_MUL, ir_load(c, a, AX(0), AX(2), 0, 0),
                          transposed ? ir_load(c, b, AX(1), AX(2), 0, 0)
                                     : ir_load(c, b, AX(2), AX(1), 0, 0)), "s"));
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 9; j++)
            for (int k = 0; k < 7; k++)
                c->data[y][i * 9 + j] +=
                    c->data[a][i * 7 + k] * c->data[b][transposed ? j * 7 + k : k * 9 + j];
}

/* e / sum over r of e, in columns of x[b, r, j]: the sums of one b live in a row. `twice`: the sum
 * is stored too, to each row of its columns. */
static void
make_column_share(IrCase *c, bool twice)
{
    static const int64_t ext[3] = { 3, 6, 20 };
    uint32_t x, y, z = 0, v, s;
    ir_start(c);
    ir_axes(c, "brj", ext);
    x = IN("x", 3, 3, 6, 20, 0);
    y = OUT("y", 3, 3, 6, 20, 0);
    if (twice)
        z = OUT("z", 3, 3, 6, 20, 0);
    v = ir_load(c, x, AX(0), AX(1), AX(2), 0);
    v = ir_ew(c, EW_MUL, v, v);
    s = ir_sum(c, EW_ADD, BIT(1), v, "s");
    ir_store(c, y, AX(0), AX(1), AX(2), 0, ir_ew(c, EW_DIV, v, s));
    if (twice)
        ir_store(c, z, AX(0), AX(1), AX(2), 0, s);
    for (int i = 0; i < 3 * 6 * 20; i++) {
        double sum = 0, e = c->data[x][i];
        for (int r = 0; r < 6; r++)
            sum += c->data[x][i / 120 * 120 + r * 20 + i % 20] * c->data[x][i / 120 * 120 + r * 20 +
                                                                            i % 20];
        c->data[y][i] = e * e / sum;
        if (twice)
            c->data[z][i] = sum;
    }
}

/* y[i, j] = sum over k of x[i, k]: the sum knows no j, so y is no place for it */
static void
make_spread(IrCase *c)
{
    static const int64_t ext[3] = { 4, 5, 6 };
    uint32_t x, y;
    ir_start(c);
    ir_axes(c, "ijk", ext);
    x = IN("x", 2, 6, 4, 0, 0);
    y = OUT("y", 2, 4, 5, 0, 0);
    ir_store(c, y, AX(0), AX(1), 0, 0,
             ir_sum(c, EW_ADD, BIT(2), ir_load(c, x, AX(2), AX(0), 0, 0), "s"));
    for (int n = 0; n < 4 * 5 * 6; n++)
        c->data[y][n / 6] += c->data[x][n % 6 * 4 + n / 30];
}

static void
test_places(void)
{
    IrCase one, *c = &one;
    make_spread(c);
    EXPECT(c, "spread sums", "!acc y");
    make_statistics(c);
    EXPECT(c, "statistics", "%2: c:1p | n h w", "%4: c:1p | n h w", "float sum", "!scratch +");
    make_product(c, true);
    EXPECT(c, "product with rows", "i:1p j | k", "float s", "!scratch +");
    make_product(c, false);
    EXPECT(c, "product", ": i:1p | k j; acc y[i, j]", "!scratch +", "y[at + j] = y[at + j] + ");
    make_column_share(c, false);
    EXPECT(c, "shares of columns", ": b:1p | r j; acc tmp3[j]\n", "scratch + 0");
    make_column_share(c, true);
    EXPECT(c, "shares of columns, and the sums", "; acc tmp3[j]\n", "!acc z");
}

/* ---- guards ------------------------------------------------------------------------------- */

/* Sums over a window of 3 that may stand over the ends: points outside do not count. */
static void
make_window(IrCase *c, bool of_products)
{
    static const int64_t ext[4] = { 9, 11, 3, 3 };
    uint32_t x, w, y, v;
    Ix i, j, cond[4];
    ir_start(c);
    ir_axes(c, "ijpq", ext);
    x = IN("x", 2, 9, 11, 0, 0);
    w = IN("w", 2, 3, 3, 0, 0);
    y = OUT("y", 2, 9, 11, 0, 0);
    i = IADD(AX(0), ISUB(AX(2), IC(1)));
    j = IADD(AX(1), ISUB(AX(3), IC(1)));
    cond[0] = jot_ix_ge0(&ir_ix, i, NULL), cond[1] = jot_ix_lt(&ir_ix, i, IC(9), NULL);
    cond[2] = jot_ix_ge0(&ir_ix, j, NULL), cond[3] = jot_ix_lt(&ir_ix, j, IC(11), NULL);
    v = ir_guarded(c, x, i, j, 0, 0);
    if (of_products)
        v = ir_ew(c, EW_MUL, v, ir_load(c, w, AX(2), AX(3), 0, 0));
    v = jot_v_reduce(&c->k, EW_ADD, BIT(2) | BIT(3), v, 4, cond, 1.0);
    ir_store(c, y, AX(0), AX(1), 0, 0, v);
    for (int n = 0; n < 9 * 11 * 9; n++) {
        int a = n / 99, b = n / 9 % 11, p = n / 3 % 3, q = n % 3, r = a + p - 1, s = b + q - 1;
        if (r >= 0 && r < 9 && s >= 0 && s < 11)
            c->data[y][a * 11 + b] +=
                c->data[x][r * 11 + s] * (of_products ? c->data[w][p * 3 + q] : 1);
    }
}

/* The largest of a window of 3 x 3, every `step` elements, that stands over the ends of x; or its
 * sum of products with w. What is outside is -inf, 0. */
static void
make_padded(IrCase *c, bool products, int64_t step)
{
    int64_t ext[4], size[2] = { 9, 11 };
    uint32_t x, w, y, v;
    Ix at[2], cond[4];
    jot_Scalar outside = {0};
    for (int d = 0; d < 2; d++)
        ext[d] = (size[d] - 1) / step + 1, ext[2 + d] = 3;
    ir_start(c);
    ir_axes(c, "ijpq", ext);
    x = IN("x", 2, 9, 11, 0, 0);
    w = IN("w", 2, 3, 3, 0, 0);
    y = OUT("y", 2, ext[0], ext[1], 0, 0);
    for (int d = 0; d < 2; d++) {
        at[d] = IADD(IMUL(AX(d), step), ISUB(AX(2 + d), IC(1)));
        cond[2 * d] = jot_ix_ge0(&ir_ix, at[d], NULL);
        cond[2 * d + 1] = jot_ix_lt(&ir_ix, at[d], IC(size[d]), NULL);
    }
    outside.f = products ? 0 : -INFINITY;
    v = jot_v_load(&c->k, x, at, 4, cond, outside);
    if (products)
        v = ir_ew(c, EW_MUL, v, ir_load(c, w, AX(2), AX(3), 0, 0));
    ir_store(c, y, AX(0), AX(1), 0, 0,
             ir_sum(c, products ? EW_ADD : EW_MAX, BIT(2) | BIT(3), v, "s"));
    for (int64_t n = 0; n < ext[0] * ext[1]; n++) {
        c->data[y][n] = outside.f;
        for (int k = 0; k < 9; k++) {
            int64_t r = n / ext[1] * step + k / 3 - 1, s = n % ext[1] * step + k % 3 - 1;
            double e = r >= 0 && r < 9 && s >= 0 && s < 11 ? c->data[x][r * 11 + s] : outside.f;
            c->data[y][n] = products ? c->data[y][n] + e * c->data[w][k] : fmax(c->data[y][n], e);
        }
    }
}

/* y[i] = sum over p of x[(i - p) / 2] where i - p is even and inside: one condition is not linear
 * */
static void
make_strided(IrCase *c)
{
    static const int64_t ext[2] = { 13, 3 };
    uint32_t x, y;
    Ix from, cond[3];
    ir_start(c);
    ir_axes(c, "ip", ext);
    x = IN("x", 1, 6, 0, 0, 0);
    y = OUT("y", 1, 13, 0, 0, 0);
    from = ISUB(AX(0), AX(1));
    cond[0] = jot_ix_ge0(&ir_ix, from, NULL);
    cond[1] = jot_ix_lt(&ir_ix, from, IC(12), NULL);
    cond[2] = jot_ix_eq0(&ir_ix, IMOD(from, 2), NULL);
    ir_store(c, y, AX(0), 0, 0, 0,
             jot_v_reduce(&c->k, EW_ADD, BIT(1), ir_load(c, x, IDIV(from, 2), 0, 0, 0), 3, cond,
                          1.0));
    for (int i = 0; i < 13; i++)
        for (int p = 0; p < 3; p++)
            if (i - p >= 0 && i - p < 12 && (i - p) % 2 == 0)
                c->data[y][i] += c->data[x][(i - p) / 2];
}

/* The whole row is left out where a condition on the row alone does not hold. */
static void
make_rows(IrCase *c)
{
    static const int64_t ext[2] = { 8, 40 };
    uint32_t x, y, some;
    Ix cond;
    ir_start(c);
    ir_axes(c, "ij", ext);
    some = ir_buf(c, "some", JOT_I32, BUF_INPUT, 1, 8, 0, 0, 0);
    x = IN("x", 2, 8, 40, 0, 0);
    y = OUT("y", 1, 8, 0, 0, 0);
    jot_kernel_slot(&c->k, 0, some);
    cond = jot_ix_ge0(&ir_ix, jot_ix_load(&ir_ix, 0, 1, (Ix[]){ AX(0) }), NULL);
    ir_store(c, y, AX(0), 0, 0, 0,
             jot_v_reduce(&c->k, EW_ADD, BIT(1), ir_load(c, x, AX(0), AX(1), 0, 0), 1, &cond, 1.0));
    for (int i = 0; i < 8 * 40; i++)
        if (c->data[some][i / 40] >= 0)
            c->data[y][i / 40] += c->data[x][i];
}

static void
test_guards(void)
{
    IrCase one, *c = &one;
    make_window(c, false);
    EXPECT(c, "window", "!if (", "! ? x", "from", "to");
    make_window(c, true);
    EXPECT(c, "window of products", "!if (", "! ? x");
    make_padded(c, false, 1);
    EXPECT(c, "padded pooling", "!if (", "! ? x");
    make_padded(c, false, 2);
    EXPECT(c, "padded pooling of every other", "!if (", "! ? x");
    make_padded(c, false, 3);
    EXPECT(c, "padded pooling of every third", "!if (", "! ? x");
    make_padded(c, true, 1);
    EXPECT(c, "padded products", "inside = i + p >= 1 && i + p < 10;", " && inside ? x[");
    make_strided(c);
    EXPECT(c, "strided", "if ((i - p)%2 == 0) {", "(i - p)/2", "!jotm_div", "!i - p >= 0");
    make_rows(c);
    EXPECT(c, "rows", "        if ((jot_i64)some[i] >= 0) {\n            const");
}

/* A window whose steps walk an array of sums: its conditions become bounds in C, and stay in a loop
 * of three steps on a device, which has the array in registers. */
static void
test_guarded_array(void)
{
    static const char sched[] = "%2: i:1p j | p q:1l\n!0: i:1p j\n";
    static const char *const dialect[] = { "c", "opencl", "cuda" };
    for (int i = 0; i < 3; i++) {
        Text all = {0}, why = {0};
        EmitInfo info;
        IrCase one, *c = &one;
        Sched s;
        all.mem = why.mem = &ir_mem;
        make_padded(c, false, 1);
        CHECK(jot_sched_read(&s, &c->k, sched, sizeof sched - 1, &why), "%s", why.s);
        if (ir_emit(c, &s, dialect[i], &all, &info, "array under conditions")) {
            bool whole = strstr(all.s, "if (j + q >= 1") != NULL;
            bool part = strstr(all.s, "q = from") != NULL;
            CHECK(whole == (i > 0) && part == (i == 0), "%s:\n%s", dialect[i], all.s);
        }
        if (i == 0)
            ir_check(c, &s, "c", GCC, "array under conditions");
        jot_text_free(&all);
        jot_text_free(&why);
        jot_sched_close(&s);
        ir_end(c);
    }
}

/* ---- roles -------------------------------------------------------------------------------- */

/* Lines over roles of axes become the stages that they name, with a buffer as large as is asked. */
static void
test_roles(void)
{
    static const char lines[] = "%$s: $o:1p $v:$M?p $v:$V $n:2 | $k $v:1?v; "
                                "res scratch t%[$o, $n, $v/$V, $v%$V#9]\n!*: $o:1p $v:$V? $v:1?v\n";
    static const char want[] = "lanes 4\n%2: i:1p j:4 | p q j:1v; res t2[i, j/4, j%4]\n"
                               "!0: i:1p j:4 j:1v\n";
    static const char *const refused[] = {
        "%$9: i", "%$v: i", "%$s: $s", "%$s: i | p q; res scratch t%[$k", "%$s: i:$v | p q",
        "%$s: i j | p q; res scratch t[i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, j]"
    };
    Text text = {0};
    IrCase one, *c = &one;
    const KBuf *buf;
    Sched s;
    Writer w;
    text.mem = &ir_mem;
    make_padded(c, false, 1);
    for (size_t i = 0; i <= sizeof refused / sizeof *refused; i++) {
        jot_write_open(&w, &s, &c->k, 4);
        jot_write_number(&w, 's', 2);
        jot_write_number(&w, 'V', 4);
        jot_write_number(&w, 'M', 1000);
        jot_write_axis(&w, 'v', 1);
        jot_write_axis(&w, 'n', -1);
        jot_write_set(&w, 'o', ~(uint64_t)2 & 3);
        jot_write_set(&w, 'k', ~(uint64_t)3);
        jot_write_lines(&w, i ? refused[i - 1] : lines);
        CHECK(jot_write_done(&w) == !i, "lines %zu: taken: %d", i, i != 0);
        if (i)
            continue;
        jot_sched_print(&s, &text);
        buf = &c->k.bufs.v[c->k.bufs.n - 1];
        CHECK(strcmp(text.s, want) == 0, "roles give\n%s", text.s);
        CHECK(buf->rank == 3 && buf->ext[0] == c->k.axes.v[0].ext && buf->ext[2] == 9 &&
              buf->ext[1] == (c->k.axes.v[1].ext + 3) / 4, "the buffer of a place");
        jot_sched_close(&s);
    }
    jot_text_free(&text);
    ir_end(c);
}

/* ---- conversions -------------------------------------------------------------------------- */

/* y = x converted, for values that the target has, that it must round and that it must saturate */
static void
convert(jot_DType from, jot_DType to, int n, const double *in, const double *out)
{
    IrCase one, *c = &one;
    char what[40];
    int64_t ext = n;
    uint32_t x, y;
    ir_start(c);
    ir_axes(c, "i", &ext);
    x = ir_buf(c, "x", from, BUF_INPUT, 1, n, 0, 0, 0);
    y = ir_buf(c, "y", to, BUF_OUTPUT, 1, n, 0, 0, 0);
    ir_store(c, y, AX(0), 0, 0, 0, jot_v_cast(&c->k, to, ir_load(c, x, AX(0), 0, 0, 0)));
    memcpy(c->data[x], in, (size_t)n * sizeof *in);
    memcpy(c->data[y], out, (size_t)n * sizeof *out);
    snprintf(what, sizeof what, "%s to %s", jot_dtype_name(from), jot_dtype_name(to));
    check_lanes(c, 1, what);
    check_lanes(c, 4, what);
    ir_end(c);
}

static void
test_casts(void)
{
    static const double x[6] = { 2.75, -2.75, 300, -300, 1e30, -1e30 };
    static const double i8[6] = { 2, -2, 127, -128, 127, -128 }, u8[6] = { 2, 0, 255, 0, 255, 0 };
    static const double i32[6] = { 2, -2, 300, -300, 2147483647.0, -2147483648.0 };
    static const double real[6] = { 1.5, -0.0, 65519, 65520, 1e-7, 0.33325 };
    static const double half[6] = { 1.5, -0.0, 65504, INFINITY, 1.1920928955078125e-07,
                                    0.333251953125 };
    static const double fine[4] = { 1, -2.5, 257, 3.141 }, coarse[4] = { 1, -2.5, 256, 3.140625 };
    convert(JOT_F32, JOT_I8, 6, x, i8);
    convert(JOT_F64, JOT_I8, 6, x, i8);
    convert(JOT_F32, JOT_U8, 6, x, u8);
    convert(JOT_F64, JOT_I32, 6, x, i32);
    convert(JOT_F32, JOT_F16, 6, real, half);
    convert(JOT_F64, JOT_F16, 6, real, half);
    convert(JOT_F16, JOT_F32, 6, half, half);
    convert(JOT_F32, JOT_BF16, 4, fine, coarse);
    convert(JOT_BF16, JOT_F64, 4, coarse, coarse);
}

/* ---- steps apart -------------------------------------------------------------------------- */

/* w1 = w + g, where w1 may lie where w lay */
static void
make_update(IrCase *c, int n, bool aliased)
{
    int64_t ext = n;
    uint32_t w, g, y;
    ir_start(c);
    ir_axes(c, "i", &ext);
    w = IN("w", 1, n, 0, 0, 0);
    g = IN("g", 1, n, 0, 0, 0);
    y = OUT("w1", 1, n, 0, 0, 0);
    c->k.bufs.v[y].over = (uint8_t)w;
    c->k.bufs.v[w].may_alias = c->k.bufs.v[y].may_alias = aliased;
    ir_store(c, y, AX(0), 0, 0, 0, ir_ew(c, EW_ADD, ir_load(c, w, AX(0), 0, 0, 0),
                                         ir_load(c, g, AX(0), 0, 0, 0)));
    for (int i = 0; i < n; i++)
        c->data[y][i] = c->data[w][i] + c->data[g][i];
}

/* Is the loop over i printed over vectors, where it should be? */
static void
expect_vectors(IrCase *c, bool vectors, const char *what)
{
    int order[KERNEL_AXES], m = jot_build_order(&c->k, order);
    Text all = {0};
    EmitInfo info;
    Sched s;
    all.mem = &ir_mem;
    CHECK(jot_sched_default(&s, &c->k, 1, m, order), "%s: no schedule", what);
    s.vector_nbytes = 16;
    if (ir_emit(c, &s, "gnu", &all, &info, what)) {
        const char *kernel = strstr(all.s, "\nk(void");
        CHECK((strstr(kernel, "i += 4)") != NULL) == vectors, "%s:%s", what, kernel);
    }
    ir_check(c, &s, "gnu", GCC, what);
    jot_text_free(&all);
    jot_sched_close(&s);
    ir_end(c);
}

/* A loop that threads share out is apart as others are, in place too. */
static void
test_apart(void)
{
    IrCase c;
    make_update(&c, 40, false);
    expect_vectors(&c, true, "in place");
    make_update(&c, 40, true);
    expect_vectors(&c, false, "in memory of anybody");
    make_update(&c, 3, false);
    expect_vectors(&c, false, "too short for vectors");
}

/* ---- dumps -------------------------------------------------------------------------------- */

/* Each pass of the table shows something of its own. */
static void
test_dumps(void)
{
    static const char *const word[] = { "where", "| p q", "step %", "if (i + p >= 1", "p = from" };
    IrCase one, *c = &one;
    int order[KERNEL_AXES], m;
    Sched s;
    make_window(c, false);
    m = jot_build_order(&c->k, order);
    CHECK(jot_sched_default(&s, &c->k, 1, m, order), "dumps: no schedule");
    CHECK(jot_emit_passes_n == 5, "%d passes", jot_emit_passes_n);
    for (int i = 0; i < jot_emit_passes_n; i++) {
        char letter[2] = { jot_emit_passes[i].letter, 0 };
        Text dump = {0}, out = {0};
        EmitInfo info;
        dump.mem = out.mem = &ir_mem;
        CHECK(
            jot_emit(&c->k, &s, jot_dialect_find("c"), "k", letter, &dump, &out, &info, NULL),
            "dump %s", letter);
        CHECK(dump.s && strstr(dump.s, word[i]), "dump %s: no '%s' in\n%s", letter, word[i],
              dump.s ? dump.s : "");
        jot_text_free(&dump);
        jot_text_free(&out);
    }
    jot_sched_close(&s);
    ir_end(c);
}

/* ---- what a schedule that comes to nothing leaves ------------------------------------------ */

static void
test_restored(void)
{
    IrCase one, *c = &one;
    Text before = {0}, after = {0};
    Kernel was;
    int64_t ext = 3;
    uint32_t x;
    before.mem = after.mem = &ir_mem;
    make_window(c, false);
    jot_ir_print(&c->k, &before);
    CHECK(jot_kernel_copy(&was, &c->k), "a copy");
    jot_kernel_axis(&c->k, "t", ext);
    jot_kernel_buf(&c->k, "tile", JOT_F32, BUF_SCRATCH, 1, &ext);
    x = c->k.stores.v[0].value;
    CHECK(jot_v_replace(&c->k, x, jot_v_constf(&c->k, JOT_F32, 7), x), "another value");
    jot_ir_print(&c->k, &after);
    CHECK(strcmp(before.s, after.s), "it has changed:\n%s", after.s);
    jot_kernel_restore(&c->k, &was);
    after.n = 0;
    jot_ir_print(&c->k, &after);
    CHECK(!strcmp(before.s, after.s), "before:\n%safter:\n%s", before.s, after.s);
    check_lanes(c, 1, "restored");
    jot_text_free(&before);
    jot_text_free(&after);
    ir_end(c);
}

/* ---- equal loads of a call's own memory ---- */

enum { SHARED_B = 3, SHARED_R = 4, SHARED_J = 5, SHARED_N = SHARED_B * SHARED_R * SHARED_J };

/* y = exp(s) x, z = exp(s) - x, s the sums of x x over r, in a row of scratch. */
static void
make_shared(IrCase *c)
{
    static const int64_t ext[3] = { SHARED_B, SHARED_R, SHARED_J };
    uint32_t x, y, z, v, e;
    ir_start(c);
    ir_axes(c, "brj", ext);
    x = IN("x", 3, SHARED_B, SHARED_R, SHARED_J, 0);
    y = OUT("y", 3, SHARED_B, SHARED_R, SHARED_J, 0);
    z = OUT("z", 3, SHARED_B, SHARED_R, SHARED_J, 0);
    TMP("row", 1, SHARED_J, 0, 0, 0);
    v = ir_load(c, x, AX(0), AX(1), AX(2), 0);
    e = ir_ew(c, EW_EXP, ir_sum(c, EW_ADD, BIT(1), ir_ew(c, EW_MUL, v, v), "s"), 0);
    ir_store(c, y, AX(0), AX(1), AX(2), 0, ir_ew(c, EW_MUL, e, v));
    ir_store(c, z, AX(0), AX(1), AX(2), 0, ir_ew(c, EW_SUB, e, v));
    for (int i = 0; i < SHARED_N; i++) {
        double sum = 0;
        for (int r = 0; r < SHARED_R; r++) {
            double at = c->data[x][i / SHARED_R / SHARED_J * SHARED_R * SHARED_J + r * SHARED_J +
                                   i % SHARED_J];
            sum += at * at;
        }
        c->data[y][i] = exp(sum) * c->data[x][i];
        c->data[z][i] = exp(sum) - c->data[x][i];
    }
}

static int
count(const char *text, const char *word)
{
    int n = 0;
    for (; text && (text = strstr(text, word)) != NULL; text++)
        n++;
    return n;
}

/* One exp for both results; where all is unrolled one for each element of the row, and none after
 * the row has been written again is that of before. */
static void
test_shared(void)
{
    static const struct { const char *what, *sched; int exps; } of[] = {
        { "shared", "%s: b:1p | r j; acc row[j]\n!0: b:1p r j\n!1: b:1p r j\n", 1 },
        { "shared, unrolled", "%s: b:1u | r:1u j:1u; acc row[j]\n"
                              "!0: b:1u r:1u j:1u\n!1: b:1u r:1u j:1u\n", SHARED_B * SHARED_J } };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        Text all = {0}, why = {0};
        EmitInfo info;
        IrCase c;
        Sched s;
        all.mem = why.mem = &ir_mem;
        make_shared(&c);
        CHECK(jot_sched_read(&s, &c.k, of[i].sched, strlen(of[i].sched), &why), "%s: %s",
              of[i].what, why.s);
        if (ir_emit(&c, &s, "c", &all, &info, of[i].what)) {
            const char *kernel = strstr(all.s, "\nk(void");
            CHECK(count(kernel, "jotm_expf(") == of[i].exps, "%s: %d exp, not %d:\n%s", of[i].what,
                  count(kernel, "jotm_expf("), of[i].exps, kernel);
        }
        ir_check(&c, &s, "c", GCC, of[i].what);
        jot_text_free(&all);
        jot_text_free(&why);
        jot_sched_close(&s);
        ir_end(&c);
    }
}

int
main(void)
{
    ir_open();
    test_dumps();
    test_restored();
    test_places();
    test_guards();
    test_guarded_array();
    test_roles();
    test_casts();
    test_apart();
    test_shared();
    ir_close();
    return DONE();
}
