/* ccode/lower/code.c - making code records: placing, sharing, counting.
 *
 * A pure record goes to the end of the innermost open block that one of its operands needs; a block
 * that is open is linked into its parent only when it closes, so what is hoisted comes before it.
 *
 *   requires  open blocks       keeps  order of effects       breaks  nothing
 *
 * Read before: ccode/lower/code.h. After: ccode/emit/print.h. */
#include "ccode/lower/code.h"

JOT_FN void
jot_code_refuse(Code *code, const char *what)
{
    if (code->ok && code->why)
        jot_text_f(code->why, "%s", what);
    code->ok = false;
}

JOT_FN bool
jot_code_open(Code *code, Blocks *b, const Kernel *k, const Sched *s, Text *why)
{
    Inst func = {0};
    memset(code, 0, sizeof *code);
    memset(b, 0, sizeof *b);
    code->mem = k->mem;
    code->k = k;
    code->s = s;
    code->why = why;
    code->ok = true;
    code->phases = 1;
    for (int i = 0; i < SCHED_PHASES; i++)
        code->steps[i] = 1;
    code->table = jot_mem_new(k->mem, CODE_TABLE, sizeof *code->table);
    b->code = code;
    jot_vec_push(k->mem, code->inst);
    func.op = C_FUNC;
    *(Inst *)jot_vec_push(k->mem, code->inst) = func;
    b->stack[0] = 1;
    return code->table && code->inst.n == 2;
}

JOT_FN void
jot_code_close(Code *code)
{
    jot_mem_free(code->mem, code->table, CODE_TABLE * sizeof *code->table);
    jot_vec_free(code->mem, code->inst);
    jot_vec_free(code->mem, code->args);
    jot_vec_free(code->mem, code->coefs);
    jot_vec_free(code->mem, code->work);
    jot_vec_free(code->mem, code->order);
}

JOT_FN Inst
jot_code_pure(COp op, int dtype, int lanes)
{
    Inst in = {0};
    in.op = (uint8_t)op;
    in.dtype = in.round = (uint8_t)dtype;
    in.lanes = (uint8_t)lanes;
    in.pure = true;
    return in;
}

JOT_FN Inst
jot_code_effect(COp op, int dtype, uint32_t aux)
{
    Inst in = {0};
    in.op = (uint8_t)op;
    in.dtype = (uint8_t)dtype;
    in.aux = aux;
    return in;
}

static uint64_t
hash_inst(const Inst *in, const uint32_t *arg, int narg, const int64_t *coef)
{
    uint64_t h = jot_hash_u64(in->op,
                              (uint64_t)in->dtype << 32 | (uint64_t)in->lanes << 16 | in->ew);
    h = jot_hash_u64(h, in->c.u + in->aux * 0x10001u + in->round);
    for (int i = 0; i < narg; i++)
        h = jot_hash_u64(h, arg[i] + (coef ? (uint64_t)coef[i] << 32 : 0));
    return h;
}

/* Memory that the record writes: loads of it before and after differ. */
static void
count_writes(Code *code, const Inst *in)
{
    switch (in->op) {
    case C_STORE: case C_ATOMIC: code->writes[in->aux % 256]++; break;
    case C_MATRIX: case C_COPY: case C_BARRIER:
        for (int i = 0; i < 256; i++)
            code->writes[i]++;
        break;
    default: break;
    }
}

static bool
same_inst(const Code *code, const Inst *a, const Inst *in, const uint32_t *arg, int narg,
          const int64_t *coef)
{
    if (a->op != in->op || a->dtype != in->dtype || a->lanes != in->lanes || a->ew != in->ew ||
        a->round != in->round || a->exact != in->exact || a->aux != in->aux || a->c.u != in->c.u ||
        a->narg != narg || a->pure != in->pure || a->since != in->since)
        return false;
    for (int i = 0; i < narg; i++)
        if (code->args.v[a->arg + (uint32_t)i] != arg[i] ||
            (coef && code->coefs.v[a->coef + (uint32_t)i] != coef[i]))
            return false;
    return true;
}

static void
link_into(Code *code, uint32_t block, uint32_t n)
{
    Inst *b = &code->inst.v[block];
    code->inst.v[n].block = block;
    if (b->last)
        code->inst.v[b->last].next = n;
    else
        b->kids = n;
    b->last = n;
}

JOT_FN bool
jot_code_args(Code *code, Inst *in, const uint32_t *arg, int narg, const int64_t *coef)
{
    if (!jot_vec_reserve(code->mem, code->args, (uint32_t)narg) ||
        (coef && !jot_vec_reserve(code->mem, code->coefs, (uint32_t)narg)))
        return false; /* it may be one of the code's: it stays as it is */
    in->arg = code->args.n;
    in->coef = code->coefs.n;
    in->narg = (uint16_t)narg;
    for (int i = 0; i < narg; i++) {
        *(uint32_t *)jot_vec_push(code->mem, code->args) = arg[i];
        if (coef)
            *(int64_t *)jot_vec_push(code->mem, code->coefs) = coef[i];
    }
    return jot_vec_reserve(code->mem, code->inst, 1);
}

JOT_FN uint32_t
jot_code_add(Blocks *b, Inst in, const uint32_t *arg, int narg, const int64_t *coef)
{
    Code *code = b->code;
    uint32_t n, slot;
    int depth = 0;
    if (code->inst.n >= CODE_LIMIT)
        jot_code_refuse(code, "the schedule unrolls into too many operations");
    for (int i = 0; i < narg; i++) {
        if (arg[i] == 0 || arg[i] >= code->inst.n)
            return 0;
        if (code->inst.v[arg[i]].depth > depth)
            depth = code->inst.v[arg[i]].depth;
    }
    if (!code->ok || code->mem->failed)
        return 0;
    slot = (uint32_t)(hash_inst(&in, arg, narg, coef) % CODE_TABLE);
    for (n = code->table[slot]; (in.pure || in.since) && n; n = code->inst.v[n].hnext) {
        const Inst *old = &code->inst.v[n];
        if (old->depth <= b->depth && b->stack[old->depth] == old->block &&
            (in.pure || old->depth == b->depth) && same_inst(code, old, &in, arg, narg, coef))
            return n;
    }
    count_writes(code, &in);
    if (!in.pure || in.still)
        depth = b->depth;
    if (!jot_code_args(code, &in, arg, narg, coef))
        return 0;
    in.depth = (uint16_t)depth;
    n = code->inst.n;
    in.hnext = in.pure || in.since ? code->table[slot] : 0;
    *(Inst *)jot_vec_push(code->mem, code->inst) = in;
    if (in.pure || in.since)
        code->table[slot] = n;
    if (in.op != C_FOR && in.op != C_IF && in.op != C_TAIL)
        link_into(code, b->stack[depth], n);
    return n;
}

JOT_FN void
jot_code_push(Blocks *b, uint32_t block)
{
    if (b->depth + 1 >= (int)(sizeof b->stack / sizeof b->stack[0])) {
        jot_code_refuse(b->code, "too many nested loops");
        return;
    }
    b->stack[++b->depth] = block;
    b->code->inst.v[block].depth = (uint16_t)b->depth;
}

JOT_FN void
jot_code_pop(Blocks *b)
{
    uint32_t block = b->stack[b->depth];
    if (b->depth == 0)
        return;
    b->depth--;
    if (block && b->code->inst.v[block].kids)
        link_into(b->code, b->stack[b->depth], block);
}

JOT_FN uint32_t
jot_code_pair(Blocks *b, Inst in, uint32_t first, uint32_t second)
{
    uint32_t arg[2];
    arg[0] = first, arg[1] = second;
    return jot_code_add(b, in, arg, 2, NULL);
}

JOT_FN void
jot_code_under(Blocks *b, const uint32_t *cond, int n)
{
    jot_code_push(b, jot_code_add(b, jot_code_effect(C_IF, 0, 0), cond, n, NULL));
}

JOT_FN void
jot_code_tail(Blocks *b, int64_t at)
{
    Inst in = jot_code_effect(C_TAIL, 0, 0);
    in.c.i = at;
    jot_code_push(b, jot_code_add(b, in, NULL, 0, NULL));
}

static Inst
code_sum(int64_t c)
{
    Inst lin = jot_code_pure(C_LIN, JOT_I64, 0);
    lin.c.i = c;
    return lin;
}

/* The smallest depth of an operand that is above `than`; -1: there is none. */
static int
code_deeper(const Code *code, const uint32_t *arg, int n, int than)
{
    int depth = -1;
    for (int i = 0; i < n; i++) {
        int own = code->inst.v[arg[i]].depth;
        if (own > than && (depth < 0 || own < depth))
            depth = own;
    }
    return depth;
}

/* Terms that belong to outer blocks become a named sum of their own, so that each loop adds only
 * what changes in it. */
JOT_FN uint32_t
jot_code_lin(Blocks *b, int64_t c, const uint32_t *arg, const int64_t *coef, int n)
{
    uint32_t part[64];
    int64_t k[64];
    int m = 0, depth = -1;
    if (n > 60)
        return 0;
    while ((depth = code_deeper(b->code, arg, n, depth)) >= 0) {
        if (m > 1 || (m == 1 && k[0] != 1 && k[0] != -1)) {
            part[0] = jot_code_add(b, code_sum(0), part, m, k);
            b->code->inst.v[part[0]].named |= part[0] != 0;
            k[0] = m = 1;
        }
        for (int i = 0; i < n; i++)
            if (b->code->inst.v[arg[i]].depth == depth)
                part[m] = arg[i], k[m++] = coef[i];
    }
    if (n == 1 && c == 0 && coef[0] == 1)
        return arg[0];
    return jot_code_add(b, code_sum(c), part, m, k);
}

JOT_FN bool
jot_code_offset(const Code *code, uint32_t from, uint32_t to, int64_t *off)
{
    const Inst *x = &code->inst.v[from], *y = &code->inst.v[to];
    if (x->op != C_LIN || y->op != C_LIN || x->narg != y->narg)
        return false;
    for (uint32_t i = 0; i < x->narg; i++)
        if (code->args.v[x->arg + i] != code->args.v[y->arg + i] ||
            code->coefs.v[x->coef + i] != code->coefs.v[y->coef + i])
            return false;
    *off = y->c.i - x->c.i;
    return true;
}

JOT_FN int
jot_code_operands(const Inst *in)
{
    return in->op == C_FOR && in->narg > 2 ? 2 : in->narg;
}

JOT_FN uint32_t
jot_code_next(const Code *code, uint32_t block, uint32_t n)
{
    if (code->inst.v[n].kids)
        return code->inst.v[n].kids;
    while (n != block && !code->inst.v[n].next)
        n = code->inst.v[n].block;
    return n == block ? 0 : code->inst.v[n].next;
}

JOT_FN bool
jot_code_order(Code *code)
{
    code->order.n = 0;
    for (uint32_t n = code->inst.n > 1; n; n = jot_code_next(code, 1, n))
        *(uint32_t *)jot_vec_push(code->mem, code->order) = n;
    return !code->mem->failed;
}

static void
mark_live(Code *code)
{
    for (uint32_t i = 0; i < code->order.n; i++) {
        uint32_t n = code->order.v[i];
        int op = code->inst.v[n].op;
        if (op == C_STORE || op == C_SET || op == C_ATOMIC || op == C_BARRIER || op == C_MATRIX ||
            op == C_AHEAD || op == C_COPY)
            for (; n && !code->inst.v[n].live; n = code->inst.v[n].block)
                code->inst.v[n].live = true;
    }
}

/* count: from the end of the text to its beginning: a record is judged after all its users.
 *   requires  a complete function     keeps  everything     breaks  nothing: fills `live`, `uses`
 * */
JOT_FN void
jot_code_count(Code *code)
{
    if (!jot_code_order(code))
        return;
    mark_live(code);
    for (uint32_t at = code->order.n; at-- > 0;) {
        uint32_t n = code->order.v[at];
        const Inst *in = &code->inst.v[n];
        if (!in->live && !in->uses)
            continue;
        for (int i = 0; i < jot_code_operands(in); i++) {
            Inst *arg = &code->inst.v[code->args.v[in->arg + (uint32_t)i]];
            arg->uses++;
            arg->user = n;
        }
    }
}
