/* tests/kernels/wild.c - programs and networks of tests/wild_draw.h, tests/wild_nets.h.
 *
 * Read before: kernels.h, tests/test_wild.c. */
#include "tests/wild_nets.h"
#include "tests/kernels/kernels.h"

typedef bool Run(jot_Ctx *c, jot_Vars vars);

/* In a scope of its own, so that no handle of the program loses its value. */
static bool
run_inner(void *user, jot_Ctx *c, jot_Vars vars)
{
    Run *const *run = user;
    bool ok;

    jot_push(c);
    ok = (*run)(c, vars);
    jot_pop(c);
    return ok;
}

/* Drawn where nothing is simplified, as which calls are refused says what comes next. */
static void
draw_seed(Program *p, uint64_t seed)
{
    static Draw d;
    jot_Config config = {.backend = "interp", .no_simplify = 1, .cache_dir = "",
                         .hooks.getenv = no_environment};
    jot_Ctx *c = jot_open(&config);

    jot_push(c);
    (seed % 3 == 0 ? draw_network : draw_program)(&d, p, c, seed);
    jot_clear(c);
    jot_pop(c);
    drop_dead(p);
    jot_close(c);
}

static bool
run_wild(jot_Ctx *c, int i, Run *run)
{
    static Program p;
    static jot_Var var[VARS];
    jot_Var out[OUTPUTS];

    draw_seed(&p, 1 + (uint64_t)i);
    if (!build_program(c, &p, var, run_inner, &run))
        return false;
    for (int k = 0; k < p.nout; k++)
        out[k] = var[p.out[k]];
    return run(c, jot_vars(p.nout, out));
}

const Kind kind_wild = {"wild", 120, 10, 40, NULL, false, run_wild};
