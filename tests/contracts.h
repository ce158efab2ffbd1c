/* tests/contracts.h - for tests of contractions: machines to schedule for, a schedule that runs
 * against straightforward loops, what a contraction is found to be, and products to try. */
#ifndef JOT_TEST_CONTRACTS_H
#define JOT_TEST_CONTRACTS_H
#include "tests/ir_cases.h"
#include "ccode/contract/contract.h"
#include "ccode/rewrite/rewrite.h"

static inline void
finds(IrCase *c, uint64_t batch, uint64_t m, uint64_t n, uint64_t k, const char *what)
{
    Contract found;
    bool is = jot_contract_only(&c->k, &found);
    CHECK(is, "%s: is not seen to be a contraction", what);
    CHECK(!is || (found.batch == batch && found.m == m && found.n == n && found.k == k),
          "%s: batch %llx m %llx n %llx k %llx", what, (unsigned long long)found.batch,
          (unsigned long long)found.m, (unsigned long long)found.n, (unsigned long long)found.k);
}

static inline void
wishes(IrCase *c, uint32_t buf, const char *want, const char *what)
{
    Target target;
    Contract found;
    Layout layout;
    Text text = {0};
    jot_target_default(&target);
    target.vector_nbytes = 64;
    target.vectors = 32;
    text.mem = &ir_mem;
    if (jot_contract_only(&c->k, &found) && jot_contract_wish(&c->k, &found, &target, buf, &layout))
        jot_layout_print(&layout, &text);
    CHECK(text.s && !strcmp(text.s, want), "%s: buffer %u wishes for \"%s\"", what, buf,
          text.s ? text.s : "nothing");
    jot_text_free(&text);
}

typedef struct { int vector_nbytes, vectors, lanes, cc; const char *dialect; } Machine;
static const Machine machines[] = {
    { 64, 32, 16, GCC_NATIVE, "gnu" }, { 32, 16, 8, GCC_NATIVE, "gnu" }, { 16, 16, 4, GCC, "gnu" },
    { 16, 16, 4, GCC, "c" }, { 0, 0, 1, GCC, "c" }, { 64, 32, 16, CLANG_NATIVE, "gnu" }
};
enum { MACHINES = sizeof machines / sizeof *machines };

static bool tiles; /* the machine multiplies tiles of bf16 */
static uint32_t dots; /* and has these rows of jot_target_dots */

static inline Target
target_of(const Machine *m, int64_t l2)
{
    Target t;
    jot_target_default(&t);
    t.vector_nbytes = m->vector_nbytes;
    t.vectors = m->vectors;
    t.cores = 2;
    t.matrix = tiles;
    t.dots = dots;
    t.cache_nbytes[LEVEL_L1] = l2 / 8;
    t.cache_nbytes[LEVEL_L2] = l2;
    return t;
}

/* Schedule and run; l2: of the machine, small ones bring blocks of k. *text: the schedule. */
static inline void
runs(IrCase *c, const Machine *m, int64_t l2, Text *text, const char *what)
{
    Target target = target_of(m, l2);
    Contract found;
    Sched s;
    Text why = {0};
    bool ok = jot_kernel_residues(&c->k) && jot_contract_only(&c->k, &found);
    CHECK(ok, "%s: is not seen to be a contraction", what);
    if (!ok)
        return;
    why.mem = &ir_mem;
    ok = jot_contract_sched(&s, &c->k, &found, &target, m->lanes, NULL);
    if (!ok)
        jot_sched_verify(&s, &why);
    CHECK(ok, "%s: no schedule for %d lanes: %s", what, m->lanes, why.s ? why.s : "");
    if (!ok && getenv("IR_SHOW")) {
        jot_ir_print(&c->k, &why);
        jot_sched_print(&s, &why);
        printf("%s\n", why.s);
    }
    jot_text_free(&why);
    if (text)
        jot_sched_print(&s, text);
    if (ok)
        ir_check(c, &s, m->dialect, m->cc, what);
    jot_sched_close(&s);
}

/* y[z, i, j] = 1.5 * sum over k of a * b + i's bias, at least 0: a, b transposed or not */
static inline void
make_product_of(IrCase *c, jot_DType dtype, int64_t z, int64_t n, int64_t m, int64_t k, bool ta,
                bool tb, bool after)
{
    int64_t ext[4];
    uint32_t a, b, r, y, v;
    ext[0] = z, ext[1] = n, ext[2] = m, ext[3] = k;
    ir_start(c);
    ir_axes(c, "zijk", ext);
    a = ir_buf(c, "a", dtype, BUF_INPUT, 3, z, ta ? k : n, ta ? n : k, 0);
    b = ir_buf(c, "b", dtype, BUF_INPUT, 3, z, tb ? m : k, tb ? k : m, 0);
    r = IN("r", 1, n, 0, 0, 0);
    y = OUT("y", 3, z, n, m, 0);
    v = ir_sum(c, EW_ADD, BIT(3),
               ir_ew(c, EW_MUL, ir_load(c, a, AX(0), ta ? AX(3) : AX(1), ta ? AX(1) : AX(3), 0),
                     ir_load(c, b, AX(0), tb ? AX(2) : AX(3), tb ? AX(3) : AX(2), 0)), "acc");
    if (after)
        v = ir_ew(c, EW_MAX, ir_ew(c, EW_ADD, v, ir_load(c, r, AX(1), 0, 0, 0)),
                  jot_v_constf(&c->k, JOT_F32, 0));
    ir_store(c, y, AX(0), AX(1), AX(2), 0, v);
    for (int64_t at = 0; at < z * n * m; at++) {
        int64_t q = at / n / m, i = at / m % n, j = at % m;
        double sum = 0;
        for (int64_t x = 0; x < k; x++)
            sum += c->data[a][q * n * k + (ta ? x * n + i : i * k + x)] *
                   c->data[b][q * k * m + (tb ? j * k + x : x * m + j)];
        c->data[y][at] = after ? fmax(0, sum + c->data[r][i]) : sum;
    }
}

static inline void
make_product(IrCase *c, int64_t z, int64_t n, int64_t m, int64_t k, bool ta, bool tb, bool after)
{
    make_product_of(c, JOT_F32, z, n, m, k, ta, tb, after);
}

#endif
