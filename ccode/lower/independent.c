/* ccode/lower/independent.c - innermost loops whose steps have nothing to do with each other, so
 * that the emitter may print them over vectors.
 *
 *     for (j = 0; j < 32; j++)
 *         y[at + j] = x[at + j] * t
 *
 * Each step writes elements of its own: addresses are linear in the loop's variable; what is
 * written is read and written nowhere else but at the very address, or where no other step comes:
 * y[at + j + 64], with less than 64 steps, y[at + 2*j + 1] beside y[at + 2*j]; a register that is
 * written is declared inside, or is an element of an array. Loops over buffers that may share
 * memory stay scalar.
 *
 *   requires  a complete function, conditions moved       keeps  everything
 *   breaks    nothing: fills `independent`
 *
 * Read before: ccode/lower/code.h. After: ccode/emit/loop.c. */
#include "ccode/lower/code.h"
#include "target/thresholds.h"

/* The coefficient of the loop's variable in a linear address, 0: none, or not linear. */
static int64_t
factor_in(const Code *code, uint32_t loop, uint32_t address)
{
    const Inst *in = &code->inst.v[address];
    int64_t factor = 0;
    if (address == loop)
        return 1;
    for (int i = 0; in->op == C_LIN && i < in->narg; i++) {
        uint32_t arg = code->args.v[in->arg + (uint32_t)i];
        if (arg == loop)
            factor = code->coefs.v[in->coef + (uint32_t)i];
        else if (jot_guard_inside(code, jot_guard_scope(code, arg), loop))
            return 0;
    }
    return factor;
}

/* Two addresses that lie a constant apart, which no steps of the loop bridge: the same, if it goes
 * on with the loop at all, or no multiple of what a step moves by, or farther than all steps go. */
static bool
never_meet(const Code *code, uint32_t loop, uint32_t a, uint32_t b)
{
    int64_t steps = code->inst.v[loop].c.i, factor = factor_in(code, loop, a), off;
    if (factor == 0)
        return false;
    if (a == b)
        return true;
    if (!jot_code_offset(code, a, b, &off))
        return false;
    factor = factor < 0 ? -factor : factor;
    off = off < 0 ? -off : off;
    return off % factor != 0 || (!code->inst.v[loop].narg && off >= steps * factor);
}

/* Every access of the buffer in the loop is at this address, or at one that other steps do not
 * come to. */
static bool
only_there(const Code *code, uint32_t loop, uint32_t buf, uint32_t address)
{
    for (uint32_t n = loop; (n = jot_code_next(code, loop, n)) != 0;) {
        const Inst *in = &code->inst.v[n];
        bool touches = in->op == C_LOAD || in->op == C_STORE || in->op == C_INT;
        if (touches && in->aux == buf && !never_meet(code, loop, address, code->args.v[in->arg]))
            return false;
    }
    return true;
}

static bool
effect_independent(const Code *code, uint32_t loop, const Inst *in)
{
    uint32_t target = code->args.v[in->arg];
    const Inst *to = &code->inst.v[target];
    if (in->op == C_STORE)
        return !code->k->bufs.v[in->aux].may_alias &&
               only_there(code, loop, in->aux, target);
    if (in->op != C_SET)
        return true;
    if (to->op == C_CELL)
        return factor_in(code, loop, code->args.v[to->arg + 1]) != 0;
    return jot_guard_inside(code, to->block, loop);
}

static bool
steps_apart(const Code *code, uint32_t loop)
{
    for (uint32_t n = loop; (n = jot_code_next(code, loop, n)) != 0;) {
        const Inst *in = &code->inst.v[n];
        if (in->op == C_FOR || in->op == C_CALL || in->op == C_MATRIX || in->op == C_COPY ||
            !effect_independent(code, loop, in))
            return false;
        if (in->op == C_LOAD && code->k->bufs.v[in->aux].may_alias)
            return false;
    }
    return true;
}

static bool
sets_cells(const Code *code, uint32_t loop)
{
    for (uint32_t n = loop; (n = jot_code_next(code, loop, n)) != 0;)
        if (code->inst.v[n].op == C_SET
            && code->inst.v[code->args.v[code->inst.v[n].arg]].op == C_CELL)
            return true;
    return false;
}

JOT_FN void
jot_code_independent(Code *code)
{
    for (uint32_t n = 1; code->ok && n < code->inst.n; n++) {
        Inst *in = &code->inst.v[n];
        in->independent = in->op == C_FOR && !(in->wide && in->aux) && in->kids &&
                          (in->c.i >= LOOP_STEPS || sets_cells(code, n)) &&
                          steps_apart(code, n);
    }
}
