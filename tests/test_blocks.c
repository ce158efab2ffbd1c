/* tests/test_blocks.c - what the block of a contraction reads, and how often: operands of half
 * precision are packed by panels of rows that fit a cache, not all rows at a time, whose sums would
 * go through memory for each block of k; of what is packed, columns and steps of the sum are in
 * balance, so that results are read and written again few times; and with 16 registers a vector
 * that up to four multiply-adds share is loaded once by what gcc makes of the text, and sums and
 * what they read leave it a register; what its stores read is asked for where it begins; and rows
 * go in steps whose results, and what they are made of, lie on few pages.
 *
 * Guards: ccode/contract/block.c, ccode/contract/plan.c, ccode/emit/statement.c,
 * ccode/lower/prefetch.c, ccode/lower/walk.c. */
#include <unistd.h>
#include "tests/contracts.h"

/* 8 lanes, 16 registers */
static bool
schedule(IrCase *c, int64_t l2, Sched *s)
{
    Target t;
    Contract found;

    jot_target_default(&t);
    t.vector_nbytes = 32;
    t.vectors = 16;
    t.fma = true;
    t.cores = 2;
    t.cache_nbytes[LEVEL_L1] = l2 / 8;
    t.cache_nbytes[LEVEL_L2] = l2;
    return jot_contract_only(&c->k, &found) && jot_contract_sched(s, &c->k, &found, &t, 8, NULL);
}

static void
test_halves(void)
{
    static const struct { jot_DType dtype; int64_t n, m, k; } cases[] = {
        {JOT_F16, 300, 200, 260}, {JOT_BF16, 300, 200, 260}, {JOT_F16, 96, 330, 500},
        {JOT_BF16, 31, 90, 70}
    };

    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        Text text = {0};
        IrCase c;
        Sched s;
        bool ok;

        text.mem = &ir_mem;
        make_product_of(&c, cases[i].dtype, 1, cases[i].n, cases[i].m, cases[i].k, false, false,
                        false);
        ok = schedule(&c, 65536, &s);
        CHECK(ok, "case %d: no schedule", i);
        if (ok) {
            jot_sched_print(&s, &text);
            CHECK(strstr(text.s, "; res pa[") && !strstr(text.s, "res patch"), "case %d: %s", i,
                  text.s);
            ir_check(&c, &s, "gnu", GCC_NATIVE, "product of halves");
        }
        jot_text_free(&text);
        jot_sched_close(&s);
        ir_end(&c);
    }
}

/* Half of the second cache holds the columns that are packed; the sum goes in few blocks, of one
 * length but for the last, whatever divides it. */
static void
test_steps(void)
{
    static const struct { int64_t m, k; } cases[] = {{660, 500}, {1000, 509}, {330, 1024}};
    const int64_t l2 = 65536;

    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        long long columns = 0, step = 0, k = cases[i].k, blocks;
        Text text = {0};
        const char *at;
        IrCase c;
        Sched s;

        text.mem = &ir_mem;
        make_product(&c, 1, 200, cases[i].m, k, false, false, false);
        CHECK(schedule(&c, l2, &s), "case %d: no schedule", i);
        jot_sched_print(&s, &text);
        at = strstr(text.s, ": j:");
        CHECK(at && sscanf(at, ": j:%lldp k:%lld", &columns, &step) == 2, "case %d: %s", i,
              text.s);
        blocks = step ? (k + step - 1) / step : 0;
        CHECK(step && columns * step * 4 <= l2 / 2 && step == (k + blocks - 1) / blocks
                  && step >= columns && blocks <= 10,
              "case %d: %lld columns, %lld steps of %lld", i, columns, step, k);
        ir_check(&c, &s, "gnu", GCC_NATIVE, "steps of a product");
        jot_text_free(&text);
        jot_sched_close(&s);
        ir_end(&c);
    }
}

/* Multiply-adds of vectors in what gcc makes of the text, and reads of memory by these or before
 * them. */
static bool
count(const Text *all, const Text *text, int *fma, int *read)
{
    char path[64], command[256], line[512];
    FILE *f;
    bool ok;

    snprintf(path, sizeof path, "/tmp/jot_blocks_%d.c", (int)getpid());
    f = fopen(path, "w");
    if (!f)
        return false;
    fwrite(all->s, 1, all->n, f);
    fwrite(text->s, 1, text->n, f);
    fclose(f);
    snprintf(command, sizeof command, "gcc -std=gnu99 -O3 -march=haswell -ffp-contract=off -S "
             "-o %s.s %s 2>/dev/null", path, path);
    ok = system(command) == 0;
    remove(path);
    snprintf(path, sizeof path, "/tmp/jot_blocks_%d.c.s", (int)getpid());
    f = ok ? fopen(path, "r") : NULL;
    *fma = *read = 0;
    while (f && fgets(line, sizeof line, f)) {
        const char *from = strchr(line, '('), *to = strstr(line, "%ymm");
        bool adds = strstr(line, "vfmadd") && to;

        *fma += adds;
        *read += from && to && from < to && (adds || strstr(line, "vmov"));
    }
    if (f)
        fclose(f);
    remove(path);
    return ok;
}

/* Three rows: each vector of b serves three sums. */
static void
test_loads(void)
{
    Text text = {0}, all = {0};
    EmitInfo info;
    IrCase c;
    Sched s;
    int fma = 0, read = 0;

    text.mem = all.mem = &ir_mem;
    make_product(&c, 1, 3, 96, 70, false, false, false);
    CHECK(schedule(&c, 1 << 19, &s) &&
          jot_emit(&c.k, &s, jot_dialect_find("gnu"), "k", NULL, NULL, &text, &info, NULL) &&
          jot_emit_prelude(jot_dialect_find("gnu"), text.s, text.n, &all), "no text");
    CHECK(text.s && strstr(text.s, "jot_crowd();\n"), "%s", text.s ? text.s : "");
    if (system("echo 'int i;' | gcc -march=haswell -x c -S -o - - >/dev/null 2>&1"))
        SKIP("no gcc for this processor's vectors");
    else
        CHECK(count(&all, &text, &fma, &read) && fma >= 9 && 2 * read <= fma,
              "%d reads for %d multiply-adds", read, fma);
#ifdef __x86_64__
    setenv("IR_CC", "gcc -std=gnu99 -O2 -march=native -masm=intel -ffp-contract=off", 1);
    ir_check(&c, &s, "gnu", GCC_NATIVE, "operands in the other order");
    unsetenv("IR_CC");
#endif
    jot_text_free(&text);
    jot_text_free(&all);
    jot_sched_close(&s);
    ir_end(&c);
}

/* 4 x 3 are the least loads for these, but take all of 16 registers: gcc read b for each row. */
static void
test_register(void)
{
    static const int64_t ext[][3] = {{64, 96, 256}, {64, 96, 100}, {256, 256, 256}, {512, 48, 31}};

    for (int i = 0; i < (int)(sizeof ext / sizeof *ext); i++) {
        Text text = {0};
        IrCase c;
        Sched s;
        const char *at;
        int columns = 0, rows = 0;

        text.mem = &ir_mem;
        make_product_of(&c, i % 2 ? JOT_F32 : JOT_BF16, 1, ext[i][0], ext[i][1], ext[i][2], false,
                        false, false);
        CHECK(schedule(&c, 1 << 19, &s), "case %d: no schedule", i);
        jot_sched_print(&s, &text);
        at = strstr(text.s, "!0: ");
        at = at ? strstr(at, " j:") : NULL;
        while (at && sscanf(at, " j:%d i:%d", &columns, &rows) < 2)
            at = strstr(at + 1, " j:");
        CHECK(rows * columns / 8 + columns / 8 + 1 < 16 && rows * columns > 32, "case %d: %s", i,
              text.s);
        jot_text_free(&text);
        jot_sched_close(&s);
        ir_end(&c);
    }
}

/* What a store adds to its sums, as large as they are and larger than the second cache, is asked
 * for where a block begins; from a cache it comes by itself. */
static void
test_asked(void)
{
    for (int large = 0; large < 2; large++) {
        int64_t ext[3] = {13, 37, 20};
        uint32_t a, b, x, y, v;
        Text text = {0}, out = {0};
        EmitInfo info;
        IrCase c;
        Sched s;
        bool ok;

        text.mem = out.mem = &ir_mem;
        ir_start(&c);
        ir_axes(&c, "ijk", ext);
        a = ir_buf(&c, "a", JOT_F32, BUF_INPUT, 2, 13, 20, 0, 0);
        b = ir_buf(&c, "b", JOT_F32, BUF_INPUT, 2, 20, 37, 0, 0);
        x = ir_buf(&c, "x", JOT_F32, BUF_INPUT, 3, 40, 13, 37, 0);
        y = ir_buf(&c, "y", JOT_F32, BUF_OUTPUT, 2, 13, 37, 0, 0);
        v = ir_sum(&c, EW_ADD, BIT(2), ir_ew(&c, EW_MUL, ir_load(&c, a, AX(0), AX(2), 0, 0),
                                             ir_load(&c, b, AX(2), AX(1), 0, 0)), "acc");
        v = ir_ew(&c, EW_ADD, ir_load(&c, x, IC(1), AX(0), AX(1), 0), v);
        ir_store(&c, y, AX(0), AX(1), 0, 0, v);
        for (int64_t i = 0; i < 13 * 37; i++) {
            c.data[y][i] = c.data[x][13 * 37 + i];
            for (int64_t k = 0; k < 20; k++)
                c.data[y][i] += c.data[a][i / 37 * 20 + k] * c.data[b][k * 37 + i % 37];
        }
        ok = schedule(&c, large ? 65536 : 1 << 20, &s);
        CHECK(ok, "no schedule");
        if (ok) {
            ir_check(&c, &s, "gnu", GCC_NATIVE, "operands asked for");
            jot_sched_print(&s, &text);
            CHECK(ir_emit(&c, &s, "gnu", &out, &info, "operands asked for"), "no text");
            CHECK((strstr(text.s, "1v; ahead 1\n") != NULL) == (large == 1), "%s", text.s);
            CHECK((strstr(out.s, "JOT_AHEAD(x + ") != NULL) == (large == 1), "%s", out.s);
        }
        jot_text_free(&text);
        jot_text_free(&out);
        jot_sched_close(&s);
        ir_end(&c);
    }
}

/* b stays in the second cache; steps of rows that lie on a page each are shorter than a thread's
 * share, others are not. */
static void
test_pages(void)
{
    static const struct { int64_t m; bool few; } cases[] = {{1024, true}, {256, false}};
    const int64_t rows = 1200, k = 128;

    for (int i = 0; i < 2; i++) {
        long long height = 0;
        Text text = {0};
        const char *at;
        IrCase c;
        Sched s;

        text.mem = &ir_mem;
        make_product(&c, 1, rows, cases[i].m, k, false, false, false);
        CHECK(schedule(&c, 1 << 20, &s), "case %d: no schedule", i);
        jot_sched_print(&s, &text);
        at = strstr(text.s, "%4: i:");
        CHECK(at && sscanf(at, "%%4: i:%lldp", &height) == 1, "case %d: %s", i, text.s);
        CHECK(height && (height * (4096 + k * 4) <= 80 * 4096) == cases[i].few,
              "case %d: %lld rows of %lld: %s", i, height, (long long)cases[i].m, text.s);
        ir_check(&c, &s, "gnu", GCC_NATIVE, "pages of a product");
        jot_text_free(&text);
        jot_sched_close(&s);
        ir_end(&c);
    }
}

int
main(void)
{
    ir_open();
    test_pages();
    test_halves();
    test_steps();
    test_loads();
    test_register();
    test_asked();
    ir_close();
    return DONE();
}
