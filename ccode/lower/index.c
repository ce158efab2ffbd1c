/* ccode/lower/index.c - index expressions as code records: linear forms become sums, the other
 * atoms records of their own, each in the block of its deepest loop variable.
 *
 * Read before: ccode/lower/code.h. After: ccode/lower/walk.c. */
#include "ccode/lower/code.h"

enum { WALK_TERMS = 60 };

static uint32_t
clamp(IndexWalk *w, Ix index, uint32_t code, int64_t ext)
{
    Inst in = jot_code_pure(C_CLAMP, JOT_I64, 0);
    if (jot_ix_inside(w->k->ix, index, ext, &w->space))
        return code;
    in.c.i = ext;
    return jot_code_add(w->b, in, &code, 1, NULL);
}

/* Division and modulo of an index that is not negative, by a positive constant. */
static uint32_t
index_divide(IndexWalk *w, COp op, uint32_t a, int64_t by)
{
    Inst in = jot_code_pure(op, JOT_I64, 0);
    if (by == 1 && op == C_IDIV)
        return a;
    in.exact = true;
    return jot_code_pair(w->b, in, a, jot_code_lin(w->b, by, NULL, NULL, 0));
}

/* The address of an element whose indices are records: the rule of jot_layout_addr. */
static uint32_t
address(IndexWalk *w, const Layout *l, const uint32_t *index)
{
    uint32_t arg[LAYOUT_PARTS];
    int64_t coef[LAYOUT_PARTS], one = 1, c = 0;
    int n = 0;
    for (int i = 0; i < l->n; i++) {
        int d = l->part[i].dim;
        bool simple = l->part[i].step == 1 && l->first[i];
        uint32_t part = simple ? index[d] : jot_code_lin(w->b, l->halo_lo[d], &index[d], &one, 1);
        if (simple)
            c += l->halo_lo[d] * l->stride[i];
        else
            part = index_divide(w, C_IDIV, part, l->part[i].step);
        if (!l->first[i])
            part = index_divide(w, C_IMOD, part, l->size[i]);
        arg[n] = part;
        coef[n++] = l->stride[i];
        if (part == 0)
            return 0;
    }
    return jot_code_lin(w->b, c, arg, coef, n);
}

JOT_FN void
jot_walk_bounded(IndexWalk *w, int n, const Ix *cond)
{
    const IxPool *ix = w->k->ix;
    w->nbounded = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n && w->nbounded < 8; j++) { /* load >= 0, c - load >= 0 */
            const IxRec *low = &ix->recs.v[cond[i]], *high = &ix->recs.v[cond[j]];
            const IxTerm *t;
            IxTerm tmp;
            int64_t c;
            uint32_t terms;
            if (low->op != IX_GE0 || ix->recs.v[low->a].op != IX_LOAD || high->op != IX_GE0)
                continue;
            t = jot_ix_linear(ix, high->a, &c, &terms, &tmp);
            if (terms == 1 && t->k == -1 && t->atom == low->a && c < IX_FAR)
                w->bounded[w->nbounded++] = low->a;
        }
}

static JOT_DISTINCT uint32_t
load_index(IndexWalk *w, Ix ix)
{
    IxRec r = w->k->ix->recs.v[ix];
    uint32_t buf = r.a < w->k->slots.n ? w->k->slots.v[r.a] : 0;
    const KBuf *b = &w->k->bufs.v[buf];
    uint32_t index[JOT_MAX_RANK], at;
    Inst in = jot_code_pure(C_INT, JOT_I64, 0);
    if (buf == 0 || r.n != b->rank)
        return 0;
    for (uint32_t i = 0; i < r.n; i++) {
        Ix arg = w->k->ix->args.v[r.at + i];
        uint32_t code = jot_walk_ix(w, arg);
        if (b->ext[i] == 0) {
            in.op = C_LIN;
            return jot_code_add(w->b, in, NULL, 0, NULL);
        }
        index[i] = code ? clamp(w, arg, code, b->ext[i]) : 0;
        if (!index[i])
            return 0;
    }
    at = address(w, b->layout, index);
    in.aux = buf;
    in.exact = jot_find_u32(w->bounded, (uint32_t)w->nbounded, ix) != 0;
    in.pure = !w->written[buf % 256];
    return jot_code_add(w->b, in, &at, 1, NULL);
}

/* Is C's own operator enough: no sign to think of, no product that is cut off? */
static JOT_DISTINCT bool
is_plain(const IndexWalk *w, COp op, Ix a, Ix b)
{
    int64_t lo, hi, from, to, by;
    if ((op != C_IMUL && op != C_IDIV && op != C_IMOD) ||
        !jot_ix_range(w->k->ix, a, &w->space, &lo, &hi))
        return false;
    if (op != C_IMUL)
        return lo >= 0 && jot_ix_is_const(w->k->ix, b, &by) && by > 0;
    return jot_ix_range(w->k->ix, b, &w->space, &from, &to) && lo >= -IX_VALUE &&
           from >= -IX_VALUE && jot_mul_ok(hi > -lo ? hi : -lo, to > -from ? to : -from, &by) &&
           by <= IX_PRODUCT;
}

static JOT_DISTINCT uint32_t
index_add(IndexWalk *w, COp op, bool exact, uint32_t first, uint32_t second)
{
    Inst in = jot_code_pure(op, JOT_I64, 0);
    in.exact = exact;
    return jot_code_pair(w->b, in, first, second);
}

static uint32_t
pair(IndexWalk *w, COp op, const IxRec *r)
{
    Ix a = r->a, b = r->b;
    bool exact = is_plain(w, op, a, b);
    uint32_t first = jot_walk_ix(w, a), second = jot_walk_ix(w, b);
    return index_add(w, op, exact, first, second);
}

static uint32_t
unary(IndexWalk *w, COp op, const IxRec *r)
{
    uint32_t arg = jot_walk_ix(w, r->a);
    return jot_code_add(w->b, jot_code_pure(op, JOT_I64, 0), &arg, 1, NULL);
}

static uint32_t
atom(IndexWalk *w, Ix ix)
{
    const IxRec *r = &w->k->ix->recs.v[ix];
    switch (r->op) {
    case IX_AXIS: return r->a < WALK_VARS ? w->var[r->a] : 0;
    case IX_DIV: return pair(w, C_IDIV, r);
    case IX_MOD: return pair(w, C_IMOD, r);
    case IX_MUL: return pair(w, C_IMUL, r);
    case IX_AND: return pair(w, C_IAND, r);
    case IX_OR: return pair(w, C_IOR, r);
    case IX_GE0: return unary(w, C_GE0, r);
    case IX_EQ0: return unary(w, C_EQ0, r);
    case IX_NOT: return unary(w, C_INOT, r);
    case IX_LOAD: return load_index(w, ix);
    default: return 0;
    }
}

/* The sum, the records of whose atoms are those behind the mark. */
static JOT_DISTINCT uint32_t
sum_of(IndexWalk *w, Ix ix, uint32_t mark)
{
    IxTerm tmp;
    uint32_t n;
    int64_t c, coef[WALK_TERMS];
    const IxTerm *term = jot_ix_linear(w->k->ix, ix, &c, &n, &tmp);
    for (uint32_t i = 0; i < n; i++)
        coef[i] = term[i].k;
    return jot_code_lin(w->b, c, n ? w->b->code->work.v + mark : NULL, coef, (int)n);
}

JOT_FN uint32_t
jot_walk_ix(IndexWalk *w, Ix ix)
{
    Code *code = w->b->code;
    uint32_t mark = code->work.n, n = WALK_TERMS, i, sum = 0;
    for (i = 0; ix && i < n; i++) {
        IxTerm tmp;
        int64_t c;
        uint32_t record;
        const IxTerm *term = jot_ix_linear(w->k->ix, ix, &c, &n, &tmp);
        if (i >= n || n > WALK_TERMS || !(record = atom(w, term[i].atom)))
            break;
        *(uint32_t *)jot_vec_push(code->mem, code->work) = record;
    }
    if (ix && i >= n && code->work.n == mark + n)
        sum = sum_of(w, ix, mark);
    code->work.n = mark;
    return sum;
}
