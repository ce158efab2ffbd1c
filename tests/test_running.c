/* tests/test_running.c - running reductions: kernels that reduce the terms up to each point, every
 * relation of the two axes, said in each of three ways, in schedules by hand and the library's own,
 * against the loop; what is no running reduction; drawn ones with work before and behind them, by
 * the library on each backend, against the interpreter.
 *
 * Guards: ccode/ir/running.c, ccode/rewrite/running.c, ccode/schedule/running.c,
 * ccode/lower/running.c, fuse/runs.c. */
#include "ccode/rewrite/rewrite.h"
#include "ccode/schedule/sched.h"
#include "nn.h"
#include "target/target.h"
#include "tests/guarded.h"
#include "tests/ir_cases.h"

typedef enum { BY_LOAD, BY_CHOICE, BY_SUM } Said;
enum { BEFORE = 1, REVERSE = 2 };

/* i - k >= 0, or that with the two turned round, or with > */
static Ix
relation(int how)
{
    Ix d = how & REVERSE ? ISUB(AX(2), AX(1)) : ISUB(AX(1), AX(2));
    return jot_ix_ge0(&ir_ix, how & BEFORE ? ISUB(d, IC(1)) : d, NULL);
}

/* y[r, i] = 2 * (op over k of x[r, k] that counts) + x[r, i] */
static void
make_running(IrCase *c, EwOp op, int64_t rows, int64_t n, int how, Said said)
{
    int64_t ext[3];
    uint32_t x, y, v, cond, run;
    jot_Scalar none;
    Ix idx[2], holds;
    ext[0] = rows, ext[1] = n, ext[2] = n;
    ir_start(c);
    ir_axes(c, "rik", ext);
    x = IN("x", 2, rows, n, 0, 0);
    y = OUT("y", 2, rows, n, 0, 0);
    jot_reduce_op_identity(op, JOT_F32, &none);
    idx[0] = AX(0), idx[1] = AX(2);
    holds = relation(how);
    v = jot_v_load(&c->k, x, idx, said == BY_LOAD, &holds, none);
    if (said == BY_CHOICE) {
        cond = jot_v_index(&c->k, JOT_BOOL, holds);
        v = jot_v_ew(&c->k, EW_SELECT, JOT_F32, cond, v, jot_v_const(&c->k, JOT_F32, none));
    }
    run = jot_v_reduce(&c->k, op, BIT(2), v, said == BY_SUM, &holds, 1.0);
    ir_store(c, y, AX(0), AX(1), 0, 0,
             ir_ew(c, EW_ADD, ir_ew(c, EW_MUL, run, jot_v_constf(&c->k, JOT_F32, 2)),
                   ir_load(c, x, AX(0), AX(1), 0, 0)));
    for (int64_t r = 0; r < rows; r++) {
        double all = none.f;
        for (int64_t k = 0; k < n; k++) {
            int64_t at = r * n + (how & REVERSE ? n - 1 - k : k);
            double own = c->data[x][at], was = all;
            all = op == EW_ADD ? all + own : op == EW_MAX ? fmax(all, own) : fmin(all, own);
            c->data[y][at] = 2 * (how & BEFORE ? was : all) + own;
        }
    }
}

static bool
printed(const Sched *s, const char *part)
{
    Text t = {0};
    bool found;
    t.mem = &ir_mem;
    jot_ir_print(s->k, &t);
    jot_sched_print(s, &t);
    found = t.s && strstr(t.s, part);
    jot_text_free(&t);
    return found;
}

/* The library's schedule, of scalars and of vectors, rests and single vectors among the rows. */
static void
test_own(void)
{
    static const EwOp ops[] = {EW_ADD, EW_MAX, EW_MIN};
    static const int64_t extents[] = {2, 7, 16, 37};
    Target target;
    jot_target_default(&target);
    for (int i = 0; i < 3 * 4 * 4 * 3; i++) {
        int how = i % 4, op = i / 4 % 3, said = i / 12 % 3, lanes = i % 2 ? 16 : 1;
        int64_t n = extents[i / 36];
        char what[80];
        IrCase c;
        Sched s;
        make_running(&c, ops[op], 3, n, how, (Said)said);
        snprintf(what, sizeof what, "op %d of %d, how %d, said %d", op, (int)n, how, said);
        if (jot_running_sched(&s, &c.k, lanes, false)) {
            CHECK(printed(&s, "running") && printed(&s, lanes > 1 ? "i:16 i:1v" : "| i\n"),
                  "%s: it does not run", what);
            if (lanes == 1 || how < BEFORE + REVERSE || n < 17)
                ir_check(&c, &s, lanes > 1 ? "gnu" : "c", lanes > 1 ? GCC_NATIVE : GCC, what);
            jot_sched_close(&s);
        } else
            CHECK(false, "%s: no schedule: %s", what, s.no ? s.no : "");
        ir_end(&c);
    }
}

/* Schedules that do not go along the axis in order, or in which not all that is read is there. */
static void
test_refused(void)
{
    static const struct { const char *text, *why; } hand[] = {
        { "%v: r:1p | i\n!0: r:1p i", NULL },
        { "%v: | r:1u i\n!0: r i", "copies" },
        { "%v: r:1p | i:4 i\n!0: r:1p i:4 i", NULL },
        { "%v: r:1p i |\n!0: r:1p i", "in order" },
        { "%v: r:1p | i:1u\n!0: r:1p i:1u", "in order" },
        { "%v: r:1p | i:1l\n!0: r:1p i:1l", "in order" },
        { "%v: | i:1p r\n!0: i:1p r", "in order" },
        { "lanes 4\n%v: r:1p | i:8 i:1v\n!0: r:1p i:8 i:1v", "in order" },
    };
    IrCase c;
    make_running(&c, EW_ADD, 3, 37, 0, BY_LOAD);
    CHECK(jot_kernel_running(&c.k) == BIT(1), "it does not run");
    for (uint32_t i = 1; i < c.k.values.n; i++)
        if (c.k.values.v[i].op == VAL_RUN)
            jot_v_name(&c.k, i, "v");
    for (size_t i = 0; i < sizeof hand / sizeof hand[0]; i++) {
        Text why = {0};
        Sched s;
        why.mem = &ir_mem;
        CHECK(jot_sched_read(&s, &c.k, hand[i].text, strlen(hand[i].text), &why), "%s: %s",
              hand[i].text, why.s);
        if (!hand[i].why)
            ir_check(&c, &s, "c", GCC, hand[i].text);
        else
            CHECK(!jot_sched_verify(&s, &why), "taken: %s", hand[i].text);
        jot_sched_close(&s);
        jot_text_free(&why);
    }
    ir_end(&c);
}

/* Not of the terms up to a point: another extent, another relation, terms that know the point, an
 * outside that counts, the two ways in one kernel. */
static void
test_others(void)
{
    Running r;
    IrCase c;
    int64_t ext[3] = {3, 8, 9};
    Ix idx[2], cond;
    jot_Scalar one = {.f = 1}, zero = {.f = 0};
    uint32_t x, v, sum;
    ir_start(&c);
    ir_axes(&c, "rik", ext);
    x = ir_buf(&c, "x", JOT_F32, BUF_INPUT, 2, 3, 9, 0, 0);
    idx[0] = AX(0), idx[1] = AX(2);
    cond = relation(0);
    v = jot_v_load(&c.k, x, idx, 1, &cond, zero);
    sum = jot_v_reduce(&c.k, EW_ADD, BIT(2), v, 0, NULL, 1.0);
    CHECK(!jot_v_runs(&c.k, sum, &r), "axes of two extents");
    c.k.axes.v[1].ext = 9;
    CHECK(jot_v_runs(&c.k, sum, &r) && r.along == 1 && r.over == 2 && !r.before && !r.reverse,
          "a running sum");
    CHECK(!jot_v_runs(&c.k, jot_v_reduce(&c.k, EW_MUL, BIT(2), v, 0, NULL, 1.0), &r),
          "a product of zeros");
    CHECK(!jot_v_runs(&c.k, jot_v_reduce(&c.k, EW_ADD, BIT(2), v, 0, NULL, 0.5), &r), "a mean");
    CHECK(!jot_v_runs(&c.k, jot_v_reduce(&c.k, EW_ADD, BIT(2) | BIT(0), v, 0, NULL, 1.0), &r),
          "over two axes");
    v = jot_v_load(&c.k, x, idx, 1, &cond, one);
    CHECK(!jot_v_runs(&c.k, jot_v_reduce(&c.k, EW_ADD, BIT(2), v, 0, NULL, 1.0), &r),
          "ones outside");
    cond = jot_ix_ge0(&ir_ix, ISUB(ISUB(AX(1), AX(2)), IC(2)), NULL);
    v = jot_v_load(&c.k, x, idx, 1, &cond, zero);
    CHECK(!jot_v_runs(&c.k, jot_v_reduce(&c.k, EW_ADD, BIT(2), v, 0, NULL, 1.0), &r),
          "up to the last but one");
    v = jot_v_load(&c.k, x, idx, 0, NULL, zero);
    v = jot_v_ew(&c.k, EW_MUL, JOT_F32, v, jot_v_index(&c.k, JOT_F32, AX(1)), 0);
    v = jot_v_ew(&c.k, EW_SELECT, JOT_F32, jot_v_index(&c.k, JOT_BOOL, relation(0)), v,
                 jot_v_constf(&c.k, JOT_F32, 0));
    CHECK(!jot_v_runs(&c.k, jot_v_reduce(&c.k, EW_ADD, BIT(2), v, 0, NULL, 1.0), &r),
          "terms that know the point");
    ir_end(&c);
}

/* ---- by the library ------------------------------------------------------------------------- */

static unsigned seed;

static int
draw(int n)
{
    seed = seed * 1103515245u + 12345u;
    return (int)(seed >> 16) % n;
}

/* One or two running reductions of f(x), and g of them. */
static jot_Var
drawn(jot_Var x)
{
    static const jot_ReduceOp ops[] = {JOT_ADD, JOT_MAX, JOT_MIN};
    int dim = draw(3), two = draw(2), sums = draw(3) == 0, centred = draw(4) == 0;
    unsigned how = (unsigned)draw(4);
    jot_Var y = draw(2) ? jot_offset(jot_scale(x, 2), 1) : x, z;
    if (centred)
        y = jot_sub(y, jot_reduce(JOT_MAX, y, JOT_KEEP(draw(3))));
    y = jot_scan(ops[draw(3)], y, dim, how);
    if (two) {
        z = jot_scan(ops[draw(3)], draw(2) ? jot_neg(x) : x, dim, how ^ (unsigned)draw(2));
        y = jot_sub(y, jot_scale(z, 3));
    }
    if (draw(2))
        y = jot_relu(y);
    if (draw(4) == 0) /* all of a row is read again */
        y = jot_sub(y, jot_reduce(JOT_MIN, y, JOT_KEEP(draw(3))));
    return sums ? jot_sum(y, draw(2) ? JOT_ALL_DIMS : JOT_DIMS(draw(3))) : y;
}

/* In make test one half of the programs is drawn under sanitizers, the other one without. */
#ifdef __SANITIZE_ADDRESS__
enum { WATCHED = 1 };
#else
enum { WATCHED = 0 };
#endif

static void
test_drawn(const char *backend, const char *policy, int lanes, int threads)
{
    static const jot_DType dtypes[] = {JOT_F32, JOT_F64, JOT_BF16, JOT_I32};
    jot_Config config = {.backend = backend, .cache_dir = "", .policy = policy, .lanes = lanes,
                         .threads = threads};
    jot_Config plain = {.backend = "interp", .cache_dir = ""};
    jot_Ctx *c = jot_open(&config), *i = jot_open(&plain);
    bool here = !backend || !jot_error(c);
    if (!here)
        SKIP("backend %s: %s", backend, jot_message(c));
    for (unsigned k = 0; here && k < (backend ? 16 : lanes ? (unsigned)test_many(16, 48) : 48); k++) {
        static double got[20000], want[20000];
        jot_Ctx *on[2];
        if (!backend && (k / 4 + k + WATCHED) % (unsigned)test_many(2, 1))
            continue;
        int64_t n[3], count = 0;
        double worst = 0;
        jot_DType dtype = dtypes[k % 4];
        on[0] = c, on[1] = i;
        seed = k * 77 + 5;
        for (int d = 0; d < 3; d++)
            n[d] = 1 + draw(d == 1 ? 40 : 20);
        for (int b = 0; b < 2; b++) {
            jot_Var x, y;
            unsigned was = seed;
            jot_push(on[b]);
            x = jot_offset(jot_mod(jot_scale(jot_arange(on[b], JOT_F32, 0, 1, n[0] * n[1] * n[2]),
                                             7), jot_scalar(on[b], JOT_F32, 61)), -30);
            y = jot_cast(drawn(jot_cast(jot_reshape(x, jot_ints(3, n)), dtype)), JOT_F64);
            seed = was;
            count = jot_nelem(y);
            CHECK(jot_copy(y, b ? want : got, (size_t)count * sizeof *got), "%s",
                  jot_message(on[b]));
            jot_pop(on[b]);
        }
        for (int64_t e = 0; e < count; e++)
            worst = fmax(worst, fabs(got[e] - want[e]) / (fabs(want[e]) + 1));
        CHECK(worst < (dtype == JOT_BF16 ? 1e-2 : dtype == JOT_F32 ? 1e-5 : 1e-12),
              "%u: policy %s, %d lanes: off by %g", k, policy ? policy : "", lanes, worst);
    }
    jot_close(c);
    jot_close(i);
}

/* Rows and rests of vectors, either way. */
static bool
guarded_scans(void *ud)
{
    static const int64_t extents[] = {1, 3, 8, 15, 16, 17, 40, 61};
    static const jot_DType dtypes[] = {JOT_F32, JOT_F64, JOT_F16, JOT_I32};
    jot_Ctx *c = ud;
    for (int k = 0; k < 8 * 4 * 4; k += test_many(3, 1)) {
        int64_t n = extents[k / 16], inner = k % 3 ? 1 : 5;
        jot_Var x, y;
        double last;
        jot_push(c);
        x = jot_param_of(jot_ones(c, dtypes[k / 4 % 4], JOT_SHAPE(2, n, inner)));
        jot_run(c, JOT_VARS(x));
        y = jot_cast(jot_scan(JOT_ADD, x, 1, (unsigned)k % 4), JOT_F64);
        last = jot_item(jot_sum(y, JOT_ALL_DIMS));
        CHECK(last == (double)(2 * inner * (n * (n + 1) / 2 - (k & BEFORE ? n : 0))),
              "%d: %d elements of %s: %g: %s", k, (int)n, jot_dtype_name(dtypes[k / 4 % 4]), last,
              jot_message(c));
        jot_pop(c);
    }
    return true;
}

/* ... in memory that ends, or begins, at a protected page. */
static void
test_guarded(Side side)
{
    GuardedHeap heap = {side, 0};
    jot_Config config = {.cache_dir = "", .threads = 1,
                         .hooks = {.realloc = guarded_realloc, .ud = &heap}};
    jot_Ctx *c = jot_open(&config);
    if (caught(guarded_scans, c))
        jot_close(c);
    else {
        CHECK(false, "%s: %s", side_name[side], fault);
        guarded_forget(&heap);
    }
    CHECK(heap.changed == 0, "%zu bytes beside arrays were written", heap.changed);
}

/* NaN stays, wherever it stands; what is infinite does as the loop has it. */
static void
test_odd_numbers(void)
{
    enum { N = 45 };
    jot_Config config = {.cache_dir = ""};
    jot_Ctx *c = jot_open(&config);
    float x[N];
    for (int at = 0; at < N; at += test_many(12, 4))
        for (int op = JOT_ADD; op <= JOT_MIN; op++) {
            const float *got;
            jot_push(c);
            for (int i = 0; i < N; i++)
                x[i] = i == at ? NAN : (float)(i % 5) - 2;
            got = jot_data(jot_scan((jot_ReduceOp)op, jot_array(c, JOT_F32, JOT_SHAPE(N), x), 0, 0));
            for (int i = 0; got && i < N; i++)
                CHECK((got[i] != got[i]) == (i >= at), "op %d, NaN at %d: %g at %d", op, at, got[i],
                      i);
            for (int i = 0; i < N; i++)
                x[i] = i == at ? INFINITY : (float)(i % 5) - 2;
            got = jot_data(jot_scan(op == JOT_MUL ? JOT_ADD : (jot_ReduceOp)op,
                                    jot_array(c, JOT_F32, JOT_SHAPE(N), x), 0, 0));
            for (int i = at; got && i < N; i++)
                CHECK(got[i] == INFINITY || op == JOT_MIN, "op %d, at %d: %g at %d", op, at, got[i],
                      i);
            CHECK(got, "%s", jot_message(c));
            jot_pop(c);
        }
    jot_close(c);
}

/* Positions in bytes begin again: they are no order. */
static void
test_bytes(void)
{
    enum { N = 300 };
    static const char *const index[] = {"i1"};
    jot_Config config = {.cache_dir = ""};
    jot_Ctx *c = jot_open(&config);
    for (int t = 0; t < 4; t++) {
        static const jot_DType dtypes[] = {JOT_U8, JOT_I8, JOT_I16, JOT_I32};
        static double got[N];
        jot_Var x = jot_param_of(jot_ones(c, JOT_F64, JOT_SHAPE(N)));
        jot_Var to = jot_iota(c, dtypes[t], JOT_SHAPE(N, N), 0);
        jot_Var from = jot_iota(c, dtypes[t], JOT_SHAPE(N, N), 1);
        jot_Var y = jot_where(jot_le(from, to),
                              jot_reindex(x, JOT_SHAPE(N, N), jot_strs(1, index)),
                              jot_scalar(c, JOT_F64, 0));
        CHECK(jot_copy(jot_sum(y, JOT_DIMS(1)), got, sizeof got), "%s", jot_message(c));
        for (int i = 0; i < N; i++) {
            int want = 0;
            for (int k = 0; k < N; k++)
                want += t == 0 ? (uint8_t)k <= (uint8_t)i : t == 1 ? (int8_t)k <= (int8_t)i : k <= i;
            CHECK(got[i] == want, "%s, %d: %g, not %d", jot_dtype_name(dtypes[t]), i, got[i], want);
        }
    }
    jot_close(c);
}

/* The first of equals, whichever way the axis is walked: a running extreme has many. */
static void
test_places(const char *backend)
{
    jot_Config config = {.backend = backend, .cache_dir = ""};
    jot_Ctx *c = jot_open(&config);
    float x[5 * 37];
    for (int k = 0; k < 5 * 37; k++)
        x[k] = (float)((k * 7 + k / 3) % 5) - 2;
    for (unsigned k = 0; k < 32; k++) {
        jot_ReduceOp op = (jot_ReduceOp)(k / 4 % 4);
        int dim = (int)(k / 16), n = dim ? 37 : 5, step = dim ? 1 : 37, rows = dim ? 5 : 37;
        jot_Var y = jot_scan(op, jot_array(c, JOT_F32, JOT_SHAPE(5, 37), x), dim, k % 4);
        jot_Var at = jot_argmax(y, JOT_DIMS(dim));
        static double v[5 * 37];
        static int64_t got[37];
        CHECK(jot_copy(at, got, (size_t)rows * sizeof *got) &&
              jot_copy(jot_cast(y, JOT_F64), v, sizeof v), "%s", jot_message(c));
        for (int r = 0; r < rows; r++) {
            const double *row = v + (dim ? 37 * r : r);
            int first = 0;
            for (int i = 1; i < n; i++)
                first = row[step * i] > row[step * first] ? i : first;
            CHECK(got[r] == first, "op %d, how %u, dimension %d, row %d: at %d, not %d", (int)op,
                  k % 4, dim, r, (int)got[r], first);
        }
    }
    jot_close(c);
}

/* Rows that are reduced whole in the kernel are so in lanes; where all pairs of points are walked
 * all the same, nothing runs. */
static void
test_beside(void)
{
    int64_t ext[4] = {3, 64, 64, 64};
    Target target;
    jot_target_default(&target);
    for (int pairs = 0; pairs < 2; pairs++) {
        IrCase c;
        Sched s = {0};
        Ix idx[2], holds = relation(0);
        jot_Scalar zero = {.f = 0};
        uint32_t x, y, v, top, run, both;
        ir_start(&c);
        ir_axes(&c, "rikj", ext);
        x = ir_buf(&c, "x", JOT_F32, BUF_INPUT, 2, 3, 64, 0, 0);
        y = ir_buf(&c, "y", JOT_F32, BUF_OUTPUT, 2, 3, 64, 0, 0);
        idx[0] = AX(0), idx[1] = AX(2);
        v = jot_v_load(&c.k, x, idx, 1, &holds, zero);
        run = jot_v_reduce(&c.k, EW_ADD, BIT(2), v, 0, NULL, 1.0);
        top = jot_v_reduce(&c.k, EW_MAX, BIT(3), ir_load(&c, x, AX(0), AX(3), 0, 0), 0, NULL, 1.0);
        both = ir_ew(&c, EW_SUB, v, ir_load(&c, x, AX(0), AX(1), 0, 0));
        both = jot_v_reduce(&c.k, EW_MAX, BIT(2), both, 0, NULL, 1.0);
        ir_store(&c, y, AX(0), AX(1), 0, 0, ir_ew(&c, EW_SUB, run, pairs ? both : top));
        for (int r = 0; r < 3; r++) {
            double all = 0, most = -INFINITY, part;
            for (int k = 0; k < 64; k++)
                most = fmax(most, c.data[x][r * 64 + k]);
            for (int i = 0; i < 64; i++) {
                all += c.data[x][r * 64 + i];
                part = -INFINITY;
                for (int k = 0; k < 64; k++)
                    part = fmax(part, (k <= i ? c.data[x][r * 64 + k] : 0) -
                                c.data[x][r * 64 + i]);
                c.data[y][r * 64 + i] = all - (pairs ? part : most);
            }
        }
        CHECK(jot_running_sched(&s, &c.k, 16, false) == !pairs, "pairs %d", pairs);
        if (!pairs) {
            CHECK(printed(&s, "| j:64 j:1l"), "a row is not reduced in lanes");
            ir_check(&c, &s, "gnu", GCC_NATIVE, "beside whole rows");
            jot_sched_close(&s);
        }
        ir_end(&c);
    }
}

/* Element-wise work before and behind, and a sum of it: no other kernel, no other array. */
static void
test_kernels(void)
{
    jot_Config config = {.cache_dir = "", .policy = "reward", .layout = "rowmajor"};
    jot_Ctx *c = jot_open(&config);
    jot_Var x = jot_param_of(jot_uniform(c, JOT_F32, JOT_SHAPE(300, 200)));
    jot_Stats before, after;
    jot_run(c, JOT_VARS(x));
    for (int reverse = 0; reverse < 2; reverse++) {
        jot_Var y = jot_scan(JOT_ADD, jot_exp(jot_neg(x)), 1, reverse ? JOT_SCAN_REVERSE : 0);
        before = jot_stats(c);
        jot_run(c, JOT_VARS(jot_scale(y, 0.5)));
        after = jot_stats(c);
        CHECK(after.kernels_run - before.kernels_run == 1, "%d kernels",
              (int)(after.kernels_run - before.kernels_run));
    }
    CHECK(!jot_error(c), "%s", jot_message(c));
    jot_close(c);
}

int
main(void)
{
    ir_open();
    test_others();
    test_own();
    test_refused();
    test_beside();
    ir_close();
    test_drawn(NULL, NULL, 0, 1);
    test_drawn(NULL, "paper", 0, 2);
    test_drawn(NULL, NULL, 4, 2);
    test_drawn(NULL, NULL, 1, 1);
    test_drawn("opencl", NULL, 0, 1);
    test_drawn("cuda", NULL, 0, 1);
    catch_faults();
    test_guarded(ENDS);
    test_guarded(BEGINS);
    test_odd_numbers();
    test_bytes();
    test_places(NULL);
    test_places("interp");
    test_kernels();
    return DONE();
}
