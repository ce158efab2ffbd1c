/* tests/test_machines.c - programs are planned for machines that are not here: a board of one core,
 * servers of 128, vectors of 16 to 64 bytes or none, caches of any size, memory that is fast or
 * slow beside arithmetic, devices with groups of 32 items to 1024. Prices are honest, so these are
 * the schedules that such machines get. Kernels are planned and printed, nothing is compiled or
 * run: what is asked for is that the verifier of kernels and schedules, which looks at each plan,
 * refuses none.
 *
 *     graphs          those whose kernels tests/test_fuse.c counts, backward and training too
 *     contractions    products and convolutions of drawn extents and their gradients
 *     blocks          of residual networks, in training
 *     drawn           programs of tests/fuzz_programs.h
 *
 *     test_machines             the named machines and some that are drawn
 *     test_machines N FIRST     N drawn machines from number FIRST
 *
 * Read before: tests/test_forced.c, where prices are misjudged and kernels run.
 *
 * Guards: ccode/schedule/price.c, target/target.c. */
#include "tests/fuzz_programs.h"
#include "tests/machine_programs.h"
#include "tests/machines.h"

/* ---- machines ----------------------------------------------------------------------------- */

static Posed
drawn_machine(uint64_t number)
{
    static const int cores[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128};
    static char label[40];
    Posed m = {.label = label, .dialect = "gnu"};

    rng_state = number;
    snprintf(label, sizeof label, "machine %llu", (unsigned long long)number);
    m.vector_nbytes = 16 << rng(3);
    if (rng(4) == 0) {
        m.vector_nbytes = 0;
        m.dialect = "c";
    }
    m.vectors = 16 << rng(2);
    m.fma = rng(3) > 0;
    m.cores = cores[rng(sizeof cores / sizeof cores[0])];
    m.kib[0] = (int)power(4, 7);
    m.kib[1] = m.kib[0] * (int)power(0, 6);
    m.kib[2] = m.kib[1] * (int)power(0, 8);
    m.flops = power(0, 9);
    m.bandwidth[0] = m.flops * power(-1, 3);
    for (int i = 1; i < LEVELS; i++)
        m.bandwidth[i] = m.bandwidth[i - 1] * power(-4, 0);
    m.call = 1e-7 * power(-4, 4);
    m.handoff = 1e-5 * power(-4, 6);
    m.tiles = m.vector_nbytes == 64 && rng(2) ? TILES : 0;
    if (number % 4 == 0) {
        m.vector_nbytes = 0;
        m.dialect = rng(2) ? "cuda" : "opencl";
        m.copies = m.warps = m.dialect[0] == 'c' && rng(2);
        m.group = 32 << rng(6);
        m.group_kib = 16 << rng(4);
    }
    return m;
}

/* ---- programs ----------------------------------------------------------------------------- */

enum { CONTRACTIONS = 60, BLOCKS = 12, PROGRAMS = 40 };

/* Program number `which` in a context of its own; `first`: of what is drawn. */
static void
plan(const Posed *m, int which, uint64_t first)
{
    static Notes notes;
    static Prog prog;
    jot_Var out[VARS + 16];
    const char *label;
    int n;

    scribe = &notes;
    forget_notes(&notes);
    ctx = open_machine(m);
    if (ctx && !jot_error(ctx)) {
        rng_state = 0;
        if (which < ROW_CASES)
            label = rows[which].name, n = rows[which].build(out, rows[which].arg);
        else if ((which -= ROW_CASES) < CONTRACTIONS)
            label = "contraction", n = contraction(out, first + (uint64_t)which);
        else if ((which -= CONTRACTIONS) < BLOCKS)
            label = "residual block", n = residual(out, first + (uint64_t)which);
        else
            label = "program", n = fuzz_program(&prog, ctx, first + (uint64_t)which, out);
        CHECK(n > 0 && jot_run(ctx, jot_vars(n, out)), "%s: %s %d: %s", m->label, label, which,
              jot_message(ctx));
        CHECK(notes.names > 0 && notes.n > 0, "%s: %s %d: no text", m->label, label, which);
    }
    jot_close(ctx);
}

int
main(int argc, char **argv)
{
    int drawn = argc > 1 ? atoi(argv[1]) : 6, all = ROW_CASES + CONTRACTIONS + BLOCKS + PROGRAMS;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

    for (int k = argc > 1 ? NAMED : 0; k < NAMED + drawn; k++) {
        uint64_t number = first + (uint64_t)(k - NAMED);
        Posed m = k < NAMED ? named[k] : drawn_machine(number);

        for (int i = 0; i < all; i++)
            plan(&m, i, k < NAMED ? 1 : number * 1000);
    }
    return DONE();
}
