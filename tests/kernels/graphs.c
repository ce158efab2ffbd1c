/* tests/kernels/graphs.c - graphs: those whose kernels tests/test_fuse.c counts; contractions and
 * residual blocks of drawn extents; drawn programs.
 *
 * Read before: kernels.h, tests/machine_programs.h. */
#include "tests/fuzz_programs.h"
#include "tests/machine_programs.h"
#include "tests/kernels/kernels.h"

typedef bool Run(jot_Ctx *c, jot_Vars vars);

static const char *
row_label(int i)
{
    return rows[i].name;
}

static bool
run_row(jot_Ctx *c, int i, Run *run)
{
    jot_Var out[64];

    ctx = c;
    rng_state = 0;
    return run(c, jot_vars(rows[i].build(out, rows[i].arg), out));
}

static bool
run_contraction(jot_Ctx *c, int i, Run *run)
{
    jot_Var out[3];

    ctx = c;
    return run(c, jot_vars(contraction(out, 1 + (uint64_t)i), out));
}

static bool
run_block(jot_Ctx *c, int i, Run *run)
{
    jot_Var out[16];

    ctx = c;
    return run(c, jot_vars(residual(out, 1 + (uint64_t)i), out));
}

static bool
run_drawn(jot_Ctx *c, int i, Run *run)
{
    static Prog prog;
    jot_Var out[VARS + 16];

    return run(c, jot_vars(fuzz_program(&prog, c, 1 + (uint64_t)i, out), out));
}

const Kind kind_graphs = {"graph", ROW_CASES, 1, 9, row_label, false, run_row};
const Kind kind_contractions = {"contraction", 90, 4, 30, NULL, false, run_contraction};
const Kind kind_blocks = {"block", 16, 4, 32, NULL, false, run_block};
const Kind kind_drawn = {"drawn", 150, 10, 50, NULL, false, run_drawn};
