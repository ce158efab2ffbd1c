/* tests/test_phase.c - phases and sums in pieces: schedules by hand and by rule, what the verifier
 * refuses, texts that read back, and values at any division of the calls.
 * Set IR_SHOW to a part of a case's name to see its text.
 *
 * Guards: ccode/device/emit_device.c, ccode/lower/independent.c, ccode/schedule/phase.c,
 * ccode/schedule/text.c, ccode/verify/sched.c, ccode/verify/verify.c. */
#include "ccode/build/build.h"
#include "tests/ir_run.h"

/* r[i] = sum over j, c[j] = sum over i, s = sum over both of x[i, j] * w[j]; t[i, j] = x / s */
enum { ROWS = 1, COLS = 2, ALL = 4, QUOTIENT = 8 };

static void
make_sums(IrCase *c, int64_t n, int64_t m, int which)
{
    int64_t ext[2];
    uint32_t x, w, out, v, all;
    double sum = 0;
    ext[0] = n, ext[1] = m;
    ir_start(c);
    ir_axes(c, "ij", ext);
    x = IN("x", 2, n, m, 0, 0);
    w = IN("w", 1, m, 0, 0, 0);
    v = ir_ew(c, EW_MUL, ir_load(c, x, AX(0), AX(1), 0, 0), ir_guarded(c, w, AX(1), 0, 0, 0));
    if (which & ROWS) {
        out = OUT("r", 1, n, 0, 0, 0);
        ir_store(c, out, AX(0), 0, 0, 0, ir_sum(c, EW_ADD, BIT(1), v, "rows"));
        for (int64_t i = 0; i < n * m; i++)
            c->data[out][i / m] += c->data[x][i] * c->data[w][i % m];
    }
    if (which & COLS) {
        out = OUT("c", 1, m, 0, 0, 0);
        ir_store(c, out, AX(1), 0, 0, 0, ir_sum(c, EW_ADD, BIT(0), v, "cols"));
        for (int64_t i = 0; i < n * m; i++)
            c->data[out][i % m] += c->data[x][i] * c->data[w][i % m];
    }
    if (!(which & (ALL | QUOTIENT)))
        return;
    all = ir_sum(c, EW_ADD, BIT(0) | BIT(1), v, "all");
    for (int64_t i = 0; i < n * m; i++)
        sum += c->data[x][i] * c->data[w][i % m];
    if (which & ALL) {
        out = OUT("s", 1, 1, 0, 0, 0);
        ir_store(c, out, IC(0), 0, 0, 0, all);
        c->data[out][0] = sum;
    }
    if (which & QUOTIENT) {
        out = OUT("t", 2, n, m, 0, 0);
        ir_store(c, out, AX(0), AX(1), 0, 0,
                 ir_ew(c, EW_DIV, ir_load(c, x, AX(0), AX(1), 0, 0), all));
        for (int64_t i = 0; i < n * m; i++)
            c->data[out][i] = c->data[x][i] / sum;
    }
}

static uint32_t
shared(IrCase *c, const char *name, int rank, int64_t a, int64_t b)
{
    return ir_buf(c, name, JOT_F32, BUF_SHARED, rank, a, b, 0, 0);
}

/* ---- by hand ------------------------------------------------------------------------------ */

/* It is accepted, prints as it was read, and computes the right values. */
static void
by_hand(IrCase *c, const char *text, const char *what)
{
    Sched s;
    Text why = {0}, back = {0};
    why.mem = back.mem = &ir_mem;
    if (jot_sched_read(&s, &c->k, text, strlen(text), &why)) {
        jot_sched_print(&s, &back);
        CHECK(back.s && !strcmp(back.s, text), "%s: read\n%sprinted\n%s", what, text, back.s);
        ir_check(c, &s, "c", GCC, what);
        ir_check(c, &s, "gnu", GCC, what);
    } else
        CHECK(false, "%s: %s", what, why.s ? why.s : "?");
    jot_sched_close(&s);
    jot_text_free(&why);
    jot_text_free(&back);
}

static void
test_hand(void)
{
    IrCase one, *c = &one;
    make_sums(c, 23, 17, ALL);
    shared(c, "P", 1, 6, 0);
    by_hand(c, "%4: i:4p || i j; res P[i/4]\nphase\n+%4: | i:4d\n!0:\n", "sum of all");
    ir_end(c);
    make_sums(c, 5, 24, ALL);
    shared(c, "P", 2, 5, 4);
    by_hand(c, "lanes 4\n%4: i:1p j:6p || j:4 j:1v; res P[i, j/6]\nphase\n+%4: | i:1d j:6d\n!0:\n",
            "two loops in pieces, lanes");
    ir_end(c);
    make_sums(c, 23, 17, ROWS | COLS | ALL);
    shared(c, "PC", 2, 6, 17);
    shared(c, "P", 1, 6, 0);
    by_hand(c, "%4: i:4p i | j\n%5: i:4p || i j; acc PC[i/4, j]\n%6: i:4p || i j; res P[i/4]\n"
               "!0: i:4p i\nphase\n+%5: j:1p | i:4d; res c[j]\nphase\n+%6: | i:4d\n!2:\n",
            "sums over different axes of one space");
    ir_end(c);
    make_sums(c, 6, 8, ALL | QUOTIENT);
    shared(c, "P", 1, 6, 0);
    shared(c, "S", 0, 0, 0);
    by_hand(c, "%4: i:1p || j; res P[i]\nphase\n+%4: | i:1d; res S[]\n!0:\nphase\n!1: i:1p j:1p\n",
            "a sum and what it divides");
    ir_end(c);
    make_sums(c, 24, 12, COLS);
    shared(c, "PC", 2, 3, 12);
    by_hand(c, "lanes 4\n%4: i:8p || j:4 i:2 i j:1v; acc PC[i/8, j]\nphase\n"
               "+%4: j:4p | i:8d j:1v; res c[j]\n", "columns in lanes");
    ir_end(c);
    make_sums(c, 23, 17, COLS); /* pieces without sharing: one phase */
    TMP("PC", 2, 6, 17, 0, 0);
    by_hand(c, "%4: i:4 || i j; acc PC[i/4, j]\n+%4: j | i:4d; res c[j]\n", "pieces in one call");
    ir_end(c);
}

/* ---- what is refused ---------------------------------------------------------------------- */

static void
refused_of(int which, const char *text, const char *want)
{
    IrCase one, *c = &one;
    Sched s;
    Text why = {0};
    bool ok;
    why.mem = &ir_mem;
    make_sums(c, 23, 17, which);
    shared(c, "P", 1, 6, 0);
    shared(c, "S", 0, 0, 0);
    TMP("T", 1, 6, 0, 0, 0);
    TMP("R", 1, 23, 0, 0, 0);
    ok = jot_sched_read(&s, &c->k, text, strlen(text), &why) && jot_sched_verify(&s, &why);
    CHECK(!ok && why.s && strstr(why.s, want), "%s: %s, not: %s", text, ok ? "accepted" : why.s,
          want);
    jot_sched_close(&s);
    jot_text_free(&why);
    ir_end(c);
}

static void
refused(const char *text, const char *want)
{
    refused_of(ALL | QUOTIENT, text, want);
}

static void
test_refused(void)
{
    static const char some[] = "sums over some of the axes that go as one";
    refused("%4: i:4p | i j\n!0:\n!1: i j\n", "parallel loop without partial results");
    refused("%4: i:4p || i j; res P[i/4]\nphase\n!0:\nphase\n!1: i j\n", "nothing combines");
    refused("%4: i:4 || i j; res P[i/5]\n+%4: | i:4d\n!0:\n!1: i j\n", "have one place");
    refused("%4: i:4p || i j\nphase\n+%4: | i:4d\n!0:\n!1: i j\n", "not in memory");
    refused("+%4: | i:4d\n!0:\n!1: i j\n", "results that no stage has");
    refused("%4: i:4p || i j; res P[i/4]\nphase\n+%4: | i:8d\n!0:\n!1: i j\n",
            "does not loop over all");
    refused("%4: i:4p || i j; res T[i/4]\nphase\n+%4: | i:4d\n!0:\n!1: i j\n",
            "memory that calls share");
    refused("%4: i:4p || i j; res P[i/4]\nphase\n+%4: | i:4d\n!0:\nphase\n!1: i j\n",
            "memory that calls share");
    refused_of(ROWS, "fuse m = i j\n%rows: m\n!0: m\n", some);
    refused_of(ROWS, "fuse m = i j\n%rows: m; acc T[0]\n!0: m\n", some);
    refused_of(ROWS, "%rows: | i j; res R[i]\n!0: i\n", "over a loop that is not unrolled");
    refused("%4: | i j\n!0:\n!1: i j:1p\n", "not the outermost");
    refused("%4: | i j\n!0:\n!1: i || j\n", "partial results are a reduction's");
}

/* Both arms of a choice are of its dtype. */
static void
test_arms(void)
{
    for (int wrong = 0; wrong < 4; wrong++) {
        IrCase one, *c = &one;
        Text why = {0};
        uint32_t x, v[3];
        why.mem = &ir_mem;
        make_sums(c, 4, 4, ALL);
        x = jot_v_constf(&c->k, JOT_F32, 1);
        v[0] = jot_v_ew(&c->k, EW_LT, JOT_BOOL, x, x, 0);
        v[1] = jot_v_constf(&c->k, wrong & 1 ? JOT_F64 : JOT_F32, 2);
        v[2] = jot_v_constf(&c->k, wrong & 2 ? JOT_F64 : JOT_F32, 3);
        (void)jot_v_ew(&c->k, EW_SELECT, JOT_F32, v[0], v[1], v[2]);
        CHECK(jot_ir_verify(&c->k, &why) == !wrong, "arms %d: %s", wrong, why.s ? why.s : "");
        jot_text_free(&why);
        ir_end(c);
    }
}

/* What no verifier has seen: a register is read in another block than the one that it stands in. */
static void
test_undeclared(void)
{
    static const char *const dialect[] = { "c", "gnu", "c_any", "opencl" };
    for (size_t i = 0; i < sizeof dialect / sizeof *dialect; i++) {
        static const char text[] = "%rows: | i j; res R[i]\n!0: i\n";
        IrCase one, *c = &one;
        Sched s;
        EmitInfo info;
        Text why = {0}, out = {0};
        why.mem = out.mem = &ir_mem;
        make_sums(c, 23, 17, ROWS);
        TMP("R", 1, 23, 0, 0, 0);
        CHECK(jot_sched_read(&s, &c->k, text, strlen(text), &why), "%s", why.s);
        CHECK(!jot_emit(&c->k, &s, jot_dialect_find(dialect[i]), "k", NULL, NULL, &out, &info,
                        &why) && why.s &&
                  strstr(why.s, "not declared") && !out.n,
              "%s: %s", dialect[i], out.n ? out.s : why.s);
        jot_sched_close(&s);
        jot_text_free(&why);
        jot_text_free(&out);
        ir_end(c);
    }
}

/* ---- by rule ------------------------------------------------------------------------------ */

static bool
holds(const char *text, const char *word)
{
    return *word == '!' ? !strstr(text, word + 1) : strstr(text, word) != NULL;
}

/* The schedule with pieces of `grain` points holds (or not: "!") these words and is right. */
static void
by_rule(IrCase *c, double grain, int lanes, const char *what, const char *const *word)
{
    int order[KERNEL_AXES], n = jot_build_order(&c->k, order);
    PhaseHow how = {0, 1};
    Text text = {0};
    Sched s;
    text.mem = &ir_mem;
    how.grain = grain;
    CHECK(jot_sched_default(&s, &c->k, lanes, n, order), "%s: no schedule", what);
    for (uint32_t i = 0; i < s.stages.n; i++) /* small work: marked, in one phase */
        for (int j = 0; j < s.stages.v[i].n; j++)
            if (s.stages.v[i].loop[j].kind == LOOP_PARALLEL)
                s.stages.v[i].loop[j].kind = LOOP_SERIAL;
    jot_sched_phases(&s, &how);
    jot_sched_print(&s, &text);
    for (; *word; word++)
        CHECK(holds(text.s, *word), "%s: '%s' in\n%s", what, *word, text.s);
    ir_check(c, &s, "c", GCC, what);
    jot_sched_close(&s);
    jot_text_free(&text);
    ir_end(c);
}

#define RULE(c, grain, lanes, what, ...) do { \
        static const char *const words[] = { __VA_ARGS__, NULL }; \
        by_rule(c, grain, lanes, what, words); \
    } while (0)

static void
test_rule(void)
{
    IrCase one, *c = &one;
    make_sums(c, 40, 30, ALL);
    RULE(c, 100, 1, "sum of all", "%4: i:4p || i j; res part4[i/4]", "phase\n+%4: | i:4d\n!0:\n");
    make_sums(c, 40, 30, ALL); /* little work */
    RULE(c, 1000, 1, "little work", "!phase", "!p");
    make_sums(c, 40, 30, COLS);
    RULE(c, 100, 1, "columns", "|| i j; acc part4[", "j]\nphase\n+%4: j | i:", "d; res c[j]\n");
    make_sums(c, 40, 32, COLS);
    RULE(c, 100, 4, "columns in lanes", "phase\n+%4: j:4 | i:", "d j:1v; res c[j]\n");
    make_sums(c, 64, 30, ROWS); /* rows are shared as they are */
    RULE(c, 100, 1, "rows", "%4: i:1p | j", "!phase", "!||");
    make_sums(c, 3, 4096, ALL); /* three rows are too few to share */
    RULE(c, 256, 1, "few rows", "%4: i:1p j:", "res part4[i, j/");
    make_sums(c, 40, 30, ROWS | COLS | ALL);
    RULE(c, 100, 1, "one space", "%4: i:4p i | j", "%5: i:4p || i j; acc", "%6: i:4p || i j; res",
         "0: i:4p i\nphase", "+%5: j | i:4d; res c[j]\nphase\n+%6: | i:4d\n!2:\n");
    make_sums(c, 40, 30, ALL | QUOTIENT);
    RULE(c, 100, 1, "quotient", "+%4: | i:4d; res all4[]\n!0:\nphase\n!1: i:1p j\n");
    make_sums(c, 40, 30, QUOTIENT);
    RULE(c, 1e9, 1, "quotient of little work", "!phase");
    make_sums(c, 0, 30, ALL);
    RULE(c, 1, 1, "no rows", "!phase");
    make_sums(c, 1, 1, ALL | COLS | ROWS);
    RULE(c, 1, 1, "one element", "!||");
}

int
main(void)
{
    ir_open();
    test_hand();
    test_refused();
    test_arms();
    test_undeclared();
    test_rule();
    ir_close();
    return DONE();
}
