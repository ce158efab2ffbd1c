/* tests/wild_run.h - programs of tests/wild_program.h are run and judged, in a process of their
 * own.
 *
 *     oracle   the interpreter on each graph as it was called; what is asked gets its cells
 *     way      a context drawn otherwise: backend, policy, layouts, schedules, vectors, threads;
 *              all programs of a batch in one evaluation, so that their kernels share a compiler
 *
 * Every element of both must be one that its cell allows (tests/bounds.h). Who starts the process
 * shares a Desk with it, which says what it was at when it died. */
#ifndef JOT_TEST_WILD_RUN_H
#define JOT_TEST_WILD_RUN_H
#include "tests/bounds_walk.h"
#include "tests/wild_layers.h"
#include "tests/wild_nets.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCH = 16, WORDS = 600, CELLS_MOST = 400000 };

/* How programs are evaluated: all at once, each alone, each output alone, as compiled functions. */
enum { AT_ONCE, ALONE, BY_OUTPUT, COMPILED, MODES };

typedef struct {
    char backend[8], policy[8], layout[24], schedule[24], target[24], precision[8];
    int threads, lanes, no_simplify, give_back, deterministic, mode;
} Way;

/* What became of a program. */
enum { FINE, DIFFERENT, REFUSED, ORACLE, DIED, HUNG, PASSED_BY, VERDICTS };
static const char *const verdict_text[VERDICTS] = {"fine", "different", "refused", "oracle",
                                                   "died", "hung", "passed by"};

typedef struct {
    int n, now;              /* programs; the one at hand, n: all of them at once */
    const char *stage;
    Program program[BATCH];
    int verdict[BATCH];
    char why[BATCH][WORDS];
    char together[2 * WORDS]; /* why all of them at once were refused; then each is run alone */
    int64_t known, unknown;  /* elements that were judged; about which nothing is known */
} Desk;

typedef struct { int n; int64_t nelem[OUTPUTS]; int dtype[OUTPUTS]; Cell *cell[OUTPUTS]; } Expected;

/* ---- contexts ---- */

static jot_Ctx *
open_plain(void)
{
    jot_Config config = {.backend = "interp", .no_simplify = 1, .cache_dir = ""};
    return jot_open(&config);
}

static jot_Ctx *
open_way(const Way *w)
{
    jot_Config config = {.backend = w->backend, .policy = w->policy, .layout = w->layout,
                         .schedule = w->schedule, .precision = w->precision, .cache_dir = "",
                         .threads = w->threads, .lanes = w->lanes, .no_simplify = w->no_simplify,
                         .give_back = w->give_back, .deterministic = w->deterministic};
    config.target = *w->target ? w->target : NULL;
    return jot_open(&config);
}

static void
print_way(FILE *to, const Way *w)
{
    static const char *const modes[] = {"at once", "alone", "by output", "compiled"};

    fprintf(to, "JOT_BACKEND=%s JOT_POLICY=%s JOT_LAYOUT=%s JOT_SCHEDULE=%s JOT_TARGET=%s "
            "JOT_PRECISION=%s JOT_THREADS=%d JOT_LANES=%d%s%s%s, %s", w->backend, w->policy,
            w->layout, w->schedule, w->target, w->precision, w->threads, w->lanes,
            w->no_simplify ? " no_simplify" : "", w->give_back ? " JOT_GIVE_BACK=1" : "",
            w->deterministic ? " JOT_DETERMINISTIC=1" : "", modes[w->mode]);
}

/* ---- the oracle ---- */

static bool
oracle_run(void *user, jot_Ctx *c, jot_Vars vars)
{
    Bounds *b = user;
    uint32_t n = c->pending.n;
    NodeId *states = calloc(n + 1, sizeof *states);
    bool ok;

    if (n)
        memcpy(states, c->pending.v, n * sizeof *states);
    bounds_find(b, c, vars.v, vars.n);
    ok = jot_run(c, vars);
    if (ok)
        bounds_keep(b, states, n);
    free(states);
    return ok;
}

static void
free_params(const Program *p, const jot_Var *var)
{
    for (int k = 0; k < p->ncall; k++)
        if (p->call[k].kind == C_PARAM)
            jot_free(var[p->call[k].first]);
}

static bool
judge(const Expected *e, int at, jot_Var v, const char *who, char *why, Desk *desk)
{
    const unsigned char *p = jot_data(v);
    jot_DType dtype = (jot_DType)e->dtype[at];

    if (!p || jot_dtype(v) != dtype || jot_nelem(v) != e->nelem[at]) {
        snprintf(why, WORDS, "%s: output %d: %s of %lld elements, %s of %lld asked: %s", who, at,
                 jot_dtype(v) < JOT_DTYPES ? jot_dtype_name(jot_dtype(v)) : "none",
                 (long long)jot_nelem(v), jot_dtype_name(dtype), (long long)e->nelem[at],
                 jot_message(v.ctx));
        return false;
    }
    for (int64_t k = 0; k < e->nelem[at]; k++) {
        Cell x = e->cell[at][k];
        jot_Scalar s = jot_scalar_read(p + (size_t)k * jot_dtype_nbytes(dtype), dtype);
        desk->known += cell_known(x);
        desk->unknown += !cell_known(x);
        if (cell_allows(x, s, dtype))
            continue;
        if (is_float(dtype))
            snprintf(why, WORDS, "%s: output %d, element %lld: %.17g, %.17g +- %.3g asked (%s)",
                     who, at, (long long)k, s.f, x.c, x.r, jot_dtype_name(dtype));
        else
            snprintf(why, WORDS, "%s: output %d, element %lld: %lld, %lld asked (%s)", who, at,
                     (long long)k, (long long)s.i, (long long)x.i, jot_dtype_name(dtype));
        return false;
    }
    return true;
}

/* The cells of all outputs; the interpreter's own values are judged, too. */
static void
expect(Desk *desk, int at, bool tiles, Expected *e)
{
    Program *p = &desk->program[at];
    jot_Ctx *c = open_plain();
    jot_Var var[VARS], out[OUTPUTS];
    Bounds b = {.tiles = tiles};
    bool ok;

    memset(e, 0, sizeof *e);
    ok = build_program(c, p, var, oracle_run, &b);
    for (int k = 0; ok && k < p->nout; k++)
        out[k] = var[p->out[k]];
    ok = ok && bounds_find(&b, c, out, p->nout);
    for (int k = 0; ok && k < p->nout; k++) {
        e->dtype[k] = jot_dtype(out[k]);
        e->nelem[k] = jot_nelem(out[k]);
        e->cell[k] = malloc((size_t)(e->nelem[k] + 1) * sizeof(Cell));
        memcpy(e->cell[k], bounds_of(&b, out[k]), (size_t)e->nelem[k] * sizeof(Cell));
    }
    e->n = ok ? p->nout : 0;
    ok = ok && jot_run(c, jot_vars(p->nout, out));
    if (!ok) {
        desk->verdict[at] = ORACLE;
        snprintf(desk->why[at], WORDS, "oracle: %s", jot_message(c));
    }
    for (int k = 0; ok && k < p->nout; k++)
        if (!judge(e, k, out[k], "oracle", desk->why[at], desk)) {
            desk->verdict[at] = ORACLE;
            break;
        }
    bounds_close(&b);
    jot_close(c);
}

static void
expected_free(Expected *e)
{
    for (int k = 0; k < e->n; k++)
        free(e->cell[k]);
}

/* ---- the way ---- */

/* In a scope of its own, so that no handle of the program loses its value. */
static bool
way_run(void *user, jot_Ctx *c, jot_Vars vars)
{
    bool ok;

    (void)user;
    jot_push(c);
    ok = jot_run(c, vars);
    jot_pop(c);
    return ok;
}

/* Not a fault: what gradients are asked of may have become a constant, as it is simplified. */
static void
refuse(Desk *desk, int at, jot_Ctx *c)
{
    bool constant = jot_error(c) == JOT_EGRAD && strstr(jot_message(c), "is a constant");

    desk->verdict[at] = constant ? PASSED_BY : REFUSED;
    snprintf(desk->why[at], WORDS, "refused: %s", jot_message(c));
    jot_clear(c);
}

static void
judge_all(Desk *desk, int at, const Expected *e, const jot_Var *out)
{
    for (int k = 0; k < e->n && desk->verdict[at] == FINE; k++)
        if (!judge(e, k, out[k], "way", desk->why[at], desk))
            desk->verdict[at] = DIFFERENT;
    if (jot_error(out[0].ctx))
        refuse(desk, at, out[0].ctx);
}

/* As a function of its leaves, which held other numbers when it was compiled. Random variables are
 * outputs, too: a function counts them from the first that it needs. */
static void
run_compiled(Desk *desk, int at, jot_Ctx *c, const Expected *e)
{
    Program *p = &desk->program[at], *other = malloc(sizeof *other);
    jot_Var var[VARS], in[8], out[OUTPUTS + VARS], got[OUTPUTS + VARS];
    int n = 0, nout = p->nout, from[8];
    jot_Func f;

    *other = *p;
    for (int k = 0; k < p->ncall && n < 6; k++)
        if (p->call[k].kind == C_LEAF && p->call[k].dtype >= JOT_F32)
            other->call[from[n++] = k].num[1]++;
    jot_push(c);
    if (!build_program(c, other, var, way_run, NULL)) {
        refuse(desk, at, c);
    } else {
        for (int k = 0; k < n; k++)
            in[k] = var[p->call[from[k]].first];
        for (int k = 0; k < p->nout; k++)
            out[k] = var[p->out[k]];
        for (int k = 0; k < p->ncall; k++)
            if (p->call[k].kind == C_DROPOUT || p->call[k].kind == C_UNIFORM
                || p->call[k].kind == C_NORMAL)
                out[nout++] = var[p->call[k].first];
        f = jot_compile(c, jot_vars(n, in), jot_vars(nout, out));
        if (!jot_func_ok(f) && jot_error(c) == JOT_EUSE) {
            jot_clear(c); /* it may not be one */
        } else if (!jot_func_ok(f)) {
            refuse(desk, at, c);
        } else {
            for (int k = 0; k < n; k++) {
                const Call *l = &p->call[from[k]];
                in[k] = leaf(c, (jot_DType)l->dtype, ints_of(l, 0), (int)l->num[0], l->num[1]);
            }
            jot_seed(c, p->seed);
            if (jot_call_vars(f, jot_vars(n, in), got))
                judge_all(desk, at, e, got);
            else
                refuse(desk, at, c);
            jot_func_free(f);
        }
    }
    free_params(p, var);
    jot_pop(c);
    free(other);
}

static bool
has_call(const Program *p, int kind)
{
    for (int k = 0; k < p->ncall; k++)
        if (p->call[k].kind == kind)
            return true;
    return false;
}

static bool
has_state(const Program *p)
{
    return has_call(p, C_ASSIGN) || has_call(p, C_SGD) || has_call(p, C_ADAM);
}

/* All programs that are not run one by one. */
static void
run_together(Desk *desk, jot_Ctx *c, const Way *w, const Expected *e)
{
    static jot_Var var[BATCH][VARS];
    static jot_Var out[BATCH][OUTPUTS], all[BATCH * OUTPUTS];
    int n = 0;
    bool spoiled = false;

    for (int at = 0; at < desk->n; at++) {
        Program *p = &desk->program[at];
        desk->now = at;
        if (desk->verdict[at] != FINE)
            continue;
        if (!build_program(c, p, var[at], way_run, NULL)) {
            refuse(desk, at, c);
            spoiled = true; /* assignments of those before are undone */
            continue;
        }
        for (int k = 0; k < p->nout; k++)
            all[n++] = out[at][k] = var[at][p->out[k]];
        if ((w->mode == ALONE || (w->mode == BY_OUTPUT && has_state(p))) &&
            !way_run(NULL, c, jot_vars(p->nout, out[at])))
            refuse(desk, at, c);
    }
    desk->now = desk->n;
    if (w->mode == AT_ONCE && !jot_run(c, jot_vars(n, all))) {
        snprintf(desk->together, sizeof desk->together, "%s", jot_message(c));
        jot_clear(c);
        spoiled = true;
    }
    for (int at = 0; at < desk->n; at++)
        if (desk->verdict[at] == FINE && e[at].n && !(spoiled && has_state(&desk->program[at])))
            judge_all(desk, at, &e[at], out[at]);
}

/* The desk's programs by this way, in this process. */
static void
run_desk(Desk *desk, const Way *w)
{
    static Expected e[BATCH];
    jot_Ctx *c;

    desk->stage = "the interpreter";
    for (int at = 0; at < desk->n; at++) {
        desk->now = at;
        desk->verdict[at] = FINE;
        expect(desk, at, strcmp(w->precision, "exact") != 0, &e[at]);
    }
    desk->stage = "the way";
    c = open_way(w);
    if (jot_error(c)) {
        for (int at = 0; at < desk->n; at++)
            refuse(desk, at, c);
    } else if (w->mode == COMPILED) {
        for (int at = 0; at < desk->n; at++) {
            desk->now = at;
            if (desk->verdict[at] == FINE && !has_call(&desk->program[at], C_RUN))
                run_compiled(desk, at, c, &e[at]);
        }
    } else {
        run_together(desk, c, w, e);
    }
    desk->stage = "the end";
    jot_close(c);
    for (int at = 0; at < desk->n; at++)
        expected_free(&e[at]);
}

/* The programs of seeds first.. are drawn; those that want too many cells ask for fewer outputs. */
static void
draw_desk(Desk *desk, uint64_t first, int n)
{
    static Draw d;
    jot_Ctx *c = open_plain();

    desk->stage = "drawing";
    for (desk->now = 0; desk->now < n; desk->now++) {
        Program *p = &desk->program[desk->now];
        jot_Var out[OUTPUTS];
        jot_push(c);
        if ((first + (uint64_t)desk->now) % 4 == 3)
            draw_network(&d, p, c, first + (uint64_t)desk->now);
        else
            draw_program(&d, p, c, first + (uint64_t)desk->now);
        for (; p->nout > 0; p->nout--) {
            for (int k = 0; k < p->nout; k++)
                out[k] = d.var[p->out[k]];
            if (bounds_cells(c, out, p->nout) <= CELLS_MOST)
                break;
        }
        jot_clear(c);
        free_params(p, d.var);
        jot_pop(c);
        drop_dead(p);
    }
    desk->n = n;
    jot_close(c);
}
#endif
