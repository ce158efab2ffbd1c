/* ops/index.c - canonical linear forms: builders, ranges, substitution.
 *
 * Everything is kept as   c + sum of k * atom   and atoms are shared: equality is one comparison.
 * Three identities do the work of index simplification, with g | d and 0 <= V < g:
 *
 *     (d*A + B) / d     ->  A + B/d                   (d*A + B) % d     ->  B % d
 *     (g*U + V) / (g*m) ->  U / m                     (g*U + V) % (g*m) ->  g*(U % m) + V
 *     k*d*(x / d) + k*(x % d)  ->  k*x
 *
 * Ranges decide what is provable: a Space gives the bounds of the axes, interval arithmetic the
 * rest.
 *
 * Read before: ops/index.h. After: ops/index_parse.c (text to Ix), ops/reindex.c (maps). */
#include "ops/index.h"

enum { IX_TERMS = 96, IX_ARGS = 16, IX_FIRST_AXIS = 1, IX_AXES = 64 };

/* A linear form under construction, outside the pool because the pool's arrays move. */
typedef struct { int64_t c; int n; bool bad; IxTerm t[IX_TERMS]; } IxForm;

/* ---- the pool ----------------------------------------------------------------------------- */

static uint64_t
ix_hash(const IxRec *r, const IxTerm *t, const Ix *args)
{
    uint64_t h = jot_hash_u64(r->op, (uint64_t)r->a << 32 | r->b);
    uint32_t i;

    h = jot_hash_u64(h, (uint64_t)r->c);
    for (i = 0; i < r->n; i++)
        h = r->op == IX_SUM ? jot_hash_u64(jot_hash_u64(h, (uint64_t)t[i].k), t[i].atom)
                            : jot_hash_u64(h, args[i]);
    return h;
}

static bool
ix_same(const IxPool *pool, const IxRec *p, const IxRec *q, const IxTerm *t, const Ix *args)
{
    uint32_t i;

    if (p->op != q->op || p->a != q->a || p->b != q->b || p->c != q->c || p->n != q->n)
        return false;
    for (i = 0; i < p->n; i++) {
        if (p->op == IX_SUM) {
            const IxTerm *u = &pool->terms.v[p->at + i];

            if (u->k != t[i].k || u->atom != t[i].atom)
                return false;
        } else if (pool->args.v[p->at + i] != args[i]) {
            return false;
        }
    }
    return true;
}

static bool
ix_rehash(IxPool *pool)
{
    uint32_t cap = pool->table_cap ? pool->table_cap * 2 : 512, i;
    uint32_t *table = jot_mem_new(pool->mem, cap, sizeof *table);

    if (!table)
        return false;
    for (i = 1; i < pool->recs.n; i++) {
        const IxRec *r = &pool->recs.v[i];
        const IxTerm *t = r->op == IX_SUM ? pool->terms.v + r->at : NULL;
        uint64_t h = ix_hash(r, t, t || !r->n ? NULL : pool->args.v + r->at);

        while (table[h & (cap - 1)])
            h++;
        table[h & (cap - 1)] = i;
    }
    jot_mem_free(pool->mem, pool->table, pool->table_cap * sizeof *table);
    pool->table = table;
    pool->table_cap = cap;
    return true;
}

static bool
ix_store(IxPool *pool, IxRec *rec, const IxTerm *t, const Ix *args)
{
    if (rec->op == IX_SUM) {
        if (!jot_vec_reserve(pool->mem, pool->terms, rec->n))
            return false;
        rec->at = pool->terms.n;
        memcpy(pool->terms.v + rec->at, t, rec->n * sizeof *t);
        pool->terms.n += rec->n;
    } else if (rec->n) {
        if (!jot_vec_reserve(pool->mem, pool->args, rec->n))
            return false;
        rec->at = pool->args.n;
        memcpy(pool->args.v + rec->at, args, rec->n * sizeof *args);
        pool->args.n += rec->n;
    }
    return true;
}

/* The record equal to *rec, found or made. */
static Ix
ix_intern(IxPool *pool, IxRec rec, const IxTerm *t, const Ix *args)
{
    uint64_t h;
    uint32_t id;

    if (rec.depth >= IX_MAX_DEPTH || pool->recs.n >= UINT32_MAX / 2)
        return 0;
    if (pool->recs.n * 2 >= pool->table_cap && !ix_rehash(pool))
        return 0;
    h = ix_hash(&rec, t, args);
    for (; (id = pool->table[h & (pool->table_cap - 1)]); h++)
        if (ix_same(pool, &pool->recs.v[id], &rec, t, args))
            return id;
    if (!jot_vec_reserve(pool->mem, pool->recs, 1) || !ix_store(pool, &rec, t, args))
        return 0;
    id = pool->recs.n++;
    pool->recs.v[id] = rec;
    pool->table[h & (pool->table_cap - 1)] = id;
    return id;
}

JOT_FN bool
jot_ix_open(IxPool *pool, Mem *mem)
{
    int k;

    memset(pool, 0, sizeof *pool);
    pool->mem = mem;
    (void)jot_vec_push(mem, pool->recs);
    if (!pool->recs.n)
        return false;
    for (k = 0; k < IX_AXES; k++)
        if (jot_ix_axis(pool, k) != (Ix)(IX_FIRST_AXIS + k))
            return jot_ix_close(pool), false;
    return true;
}

JOT_FN void
jot_ix_close(IxPool *pool)
{
    if (!pool->mem)
        return;
    jot_mem_free(pool->mem, pool->table, pool->table_cap * sizeof *pool->table);
    jot_vec_free(pool->mem, pool->recs);
    jot_vec_free(pool->mem, pool->terms);
    jot_vec_free(pool->mem, pool->args);
    pool->table = NULL;
    pool->table_cap = 0;
}

/* ---- linear forms ------------------------------------------------------------------------- */

JOT_FN const IxTerm *
jot_ix_linear(const IxPool *pool, Ix ix, int64_t *c, uint32_t *n, IxTerm *tmp)
{
    const IxRec *r = &pool->recs.v[ix];

    *c = r->op == IX_CONST || r->op == IX_SUM ? r->c : 0;
    *n = r->op == IX_CONST ? 0 : r->op == IX_SUM ? r->n : 1;
    if (r->op == IX_SUM)
        return pool->terms.v + r->at;
    tmp->k = 1;
    tmp->atom = ix;
    tmp->pad = 0;
    return tmp;
}

static void
form_add_term(IxForm *f, int64_t k, Ix atom)
{
    int lo = 0;

    while (lo < f->n && f->t[lo].atom < atom)
        lo++;
    if (lo < f->n && f->t[lo].atom == atom) {
        if (!jot_add_ok(f->t[lo].k, k, &f->t[lo].k))
            f->bad = true;
        if (!f->t[lo].k)
            memmove(f->t + lo, f->t + lo + 1, (size_t)(--f->n - lo) * sizeof *f->t);
        return;
    }
    if (!k)
        return;
    if (f->n == IX_TERMS || k == INT64_MIN) {
        f->bad = true;
        return;
    }
    memmove(f->t + lo + 1, f->t + lo, (size_t)(f->n++ - lo) * sizeof *f->t);
    f->t[lo].k = k;
    f->t[lo].atom = atom;
    f->t[lo].pad = 0;
}

static void
form_add(const IxPool *pool, IxForm *f, Ix ix, int64_t k)
{
    IxTerm one;
    int64_t c, kc;
    uint32_t n, i;
    const IxTerm *t = jot_ix_linear(pool, ix, &c, &n, &one);

    f->bad |= !ix || !jot_mul_ok(c, k, &kc) || !jot_add_ok(f->c, kc, &f->c);
    for (i = 0; i < n && !f->bad; i++) {
        if (jot_mul_ok(t[i].k, k, &kc))
            form_add_term(f, kc, t[i].atom);
        else
            f->bad = true;
    }
}

/* k*d*(x / d) + k*(x % d) -> k*x, as long as there is such a pair. */
static void
form_recombine(const IxPool *pool, IxForm *f)
{
    int i, j;

    for (i = 0; i < f->n && !f->bad; i++) {
        const IxRec *m = &pool->recs.v[f->t[i].atom];
        int64_t d, kd;

        if (m->op != IX_MOD || !jot_ix_is_const(pool, m->b, &d) || !jot_mul_ok(f->t[i].k, d, &kd))
            continue;
        for (j = 0; j < f->n; j++) {
            const IxRec *q = &pool->recs.v[f->t[j].atom];

            if (q->op == IX_DIV && q->a == m->a && q->b == m->b && f->t[j].k == kd) {
                Ix x = m->a, mod = f->t[i].atom, div = f->t[j].atom;
                int64_t k = f->t[i].k;

                form_add_term(f, -k, mod);
                form_add_term(f, -kd, div);
                form_add(pool, f, x, k);
                i = -1;
                break;
            }
        }
    }
}

static Ix
form_ix(IxPool *pool, IxForm *f)
{
    IxRec r = {0};
    int i;

    form_recombine(pool, f);
    if (f->bad)
        return 0;
    if (!f->n)
        return jot_ix_const(pool, f->c);
    if (f->n == 1 && !f->c && f->t[0].k == 1)
        return f->t[0].atom;
    r.op = IX_SUM;
    r.c = f->c;
    r.n = (uint32_t)f->n;
    for (i = 0; i < f->n; i++) {
        const IxRec *a = &pool->recs.v[f->t[i].atom];

        r.axes |= a->axes;
        r.slots |= a->slots;
        r.depth = a->depth > r.depth ? a->depth : r.depth;
    }
    return ix_intern(pool, r, f->t, NULL);
}

static void
form_open(IxForm *f)
{
    f->c = f->n = 0;
    f->bad = false;
}

JOT_FN Ix
jot_ix_const(IxPool *pool, int64_t value)
{
    IxRec r = {0};

    r.op = IX_CONST;
    r.c = value;
    return ix_intern(pool, r, NULL, NULL);
}

JOT_FN Ix
jot_ix_axis(IxPool *pool, int axis)
{
    IxRec r = {0};

    if (axis < 0 || axis >= IX_AXES)
        return 0;
    r.op = IX_AXIS;
    r.a = (uint32_t)axis;
    r.axes = (uint64_t)1 << axis;
    return ix_intern(pool, r, NULL, NULL);
}

static Ix
ix_combine(IxPool *pool, Ix a, int64_t ka, Ix b, int64_t kb)
{
    IxForm f;

    if (!a || !b)
        return 0;
    form_open(&f);
    form_add(pool, &f, a, ka);
    form_add(pool, &f, b, kb);
    return form_ix(pool, &f);
}

JOT_FN Ix
jot_ix_add(IxPool *pool, Ix a, Ix b)
{
    return ix_combine(pool, a, 1, b, 1);
}

JOT_FN Ix
jot_ix_sub(IxPool *pool, Ix a, Ix b)
{
    return ix_combine(pool, a, 1, b, -1);
}

JOT_FN Ix
jot_ix_scale(IxPool *pool, Ix a, int64_t k)
{
    return ix_combine(pool, a, k, jot_ix_const(pool, 0), 1);
}

/* An atom of two operands. */
static Ix
ix_pair(IxPool *pool, IxOp op, Ix a, Ix b)
{
    const IxRec *x = &pool->recs.v[a], *y = &pool->recs.v[b];
    IxRec r = {0};

    if (!a || (!b && op != IX_GE0 && op != IX_EQ0 && op != IX_NOT))
        return 0;
    r.op = (uint8_t)op;
    r.a = a;
    r.b = b;
    r.axes = x->axes | (b ? y->axes : 0);
    r.slots = x->slots | (b ? y->slots : 0);
    r.depth = (uint8_t)((b && y->depth > x->depth ? y->depth : x->depth) + 1);
    return ix_intern(pool, r, NULL, NULL);
}

JOT_FN Ix
jot_ix_mul(IxPool *pool, Ix a, Ix b)
{
    int64_t k;

    if (jot_ix_is_const(pool, a, &k))
        return jot_ix_scale(pool, b, k);
    if (jot_ix_is_const(pool, b, &k))
        return jot_ix_scale(pool, a, k);
    return a < b ? ix_pair(pool, IX_MUL, a, b) : ix_pair(pool, IX_MUL, b, a);
}

/* ---- floor division and modulo ------------------------------------------------------------ */

/* f = d*quot + rest, taking what is divisible term by term; the constant of rest is in [0, d). */
static void
form_split(const IxForm *f, int64_t d, IxForm *quot, IxForm *rest)
{
    int i;

    form_open(quot);
    form_open(rest);
    quot->c = jot_floor_div(f->c, d);
    rest->c = jot_floor_mod(f->c, d);
    for (i = 0; i < f->n; i++) {
        if (f->t[i].k % d == 0)
            form_add_term(quot, f->t[i].k / d, f->t[i].atom);
        else
            form_add_term(rest, f->t[i].k, f->t[i].atom);
    }
}

static bool
ix_term_range(const IxPool *pool, const IxTerm *t, const Space *space, int64_t *lo, int64_t *hi)
{
    int64_t a, b;

    if (!jot_ix_range(pool, t->atom, space, &a, &b) || !jot_mul_ok(a, t->k, &a)
        || !jot_mul_ok(b, t->k, &b))
        return false;
    *lo = a < b ? a : b;
    *hi = a < b ? b : a;
    return true;
}

static bool
ix_linear_range(const IxPool *pool, int64_t c, uint32_t n, const IxTerm *t, const Space *space,
                int64_t *lo, int64_t *hi)
{
    uint32_t i;

    *lo = *hi = c;
    for (i = 0; i < n; i++) {
        int64_t a, b;

        if (!ix_term_range(pool, &t[i], space, &a, &b) || !jot_add_ok(*lo, a, lo)
            || !jot_add_ok(*hi, b, hi))
            return false;
    }
    return true;
}

static bool
form_range(const IxPool *pool, const IxForm *f, const Space *space, int64_t *lo, int64_t *hi)
{
    return ix_linear_range(pool, f->c, (uint32_t)f->n, f->t, space, lo, hi);
}

/* Find g > 1, a proper divisor of d and of some coefficient, such that f = g*U + V with 0 <= V < g.
 * The largest such g; 0 for none. */
static int64_t
form_factor(const IxPool *pool, const IxForm *f, int64_t d, const Space *space, IxForm *u,
            IxForm *v)
{
    int64_t best = 0, lo, hi;
    int i;

    for (i = 0; i < f->n; i++) {
        int64_t a = f->t[i].k < 0 ? -f->t[i].k : f->t[i].k, b = d;

        while (b) {
            int64_t r = a % b;

            a = b;
            b = r;
        }
        if (a <= 1 || a >= d || a <= best)
            continue;
        form_split(f, a, u, v);
        if (form_range(pool, v, space, &lo, &hi) && lo >= 0 && hi < a)
            best = a;
    }
    if (best)
        form_split(f, best, u, v);
    return best;
}

/* floor(rest / d) where nothing of rest is divisible by d. */
static Ix
ix_div_rest(IxPool *pool, IxForm *rest, int64_t d, const Space *space)
{
    int64_t lo, hi, g, e;
    IxForm u, v;
    const IxRec *r;

    if (form_range(pool, rest, space, &lo, &hi) && jot_floor_div(lo, d) == jot_floor_div(hi, d))
        return jot_ix_const(pool, jot_floor_div(lo, d));
    g = form_factor(pool, rest, d, space, &u, &v);
    if (g)
        return jot_ix_div(pool, form_ix(pool, &u), jot_ix_const(pool, d / g), space);
    r = rest->n == 1 && rest->t[0].k == 1 ? &pool->recs.v[rest->t[0].atom] : &pool->recs.v[0];
    if (r->op == IX_DIV && jot_ix_is_const(pool, r->b, &e) && e > 0 && jot_mul_ok(e, d, &g)
        && jot_mul_ok(e, rest->c, &lo)) { /* (x/e + c)/d = (x + c*e)/(e*d) */
        Ix x = jot_ix_add(pool, r->a, jot_ix_const(pool, lo));

        return jot_ix_div(pool, x, jot_ix_const(pool, g), space);
    }
    return ix_pair(pool, IX_DIV, form_ix(pool, rest), jot_ix_const(pool, d));
}

JOT_FN Ix
jot_ix_div(IxPool *pool, Ix a, Ix b, const Space *space)
{
    int64_t d, x;
    IxForm f, quot, rest;

    if (!a || !b)
        return 0;
    if (!jot_ix_is_const(pool, b, &d))
        return ix_pair(pool, IX_DIV, a, b);
    if (d == 0)
        return jot_ix_const(pool, 0);
    if (d < 0) /* floor(a / -d) = floor(-a / d) */
        return d == INT64_MIN ? 0
             : jot_ix_div(pool, jot_ix_scale(pool, a, -1), jot_ix_const(pool, -d), space);
    if (jot_ix_is_const(pool, a, &x))
        return jot_ix_const(pool, jot_floor_div(x, d));
    form_open(&f);
    form_add(pool, &f, a, 1);
    form_split(&f, d, &quot, &rest);
    if (f.bad || quot.bad || rest.bad)
        return 0;
    if (!rest.n)
        return form_ix(pool, &quot);
    form_add(pool, &quot, ix_div_rest(pool, &rest, d, space), 1);
    return form_ix(pool, &quot);
}

/* (x % (d*e)) % d = x % d: open such terms. */
static void
form_open_mods(const IxPool *pool, IxForm *f, int64_t d)
{
    int i;

    for (i = 0; i < f->n && !f->bad; i++) {
        const IxRec *r = &pool->recs.v[f->t[i].atom];
        int64_t e, k = f->t[i].k;

        if (r->op != IX_MOD || !jot_ix_is_const(pool, r->b, &e) || e % d)
            continue;
        form_add_term(f, -k, f->t[i].atom);
        form_add(pool, f, r->a, k);
        i = -1;
    }
}

JOT_FN Ix
jot_ix_mod(IxPool *pool, Ix a, Ix b, const Space *space)
{
    int64_t d, x, lo, hi, g;
    IxForm f, quot, rest, u, v;

    if (!a || !b)
        return 0;
    if (!jot_ix_is_const(pool, b, &d))
        return ix_pair(pool, IX_MOD, a, b);
    if (d == 0)
        return jot_ix_const(pool, 0);
    if (d < 0) /* sign of the divisor: a mod -d = -(-a mod d) */
        return d == INT64_MIN ? 0
             : jot_ix_scale(pool, jot_ix_mod(pool, jot_ix_scale(pool, a, -1),
                                             jot_ix_const(pool, -d), space), -1);
    if (jot_ix_is_const(pool, a, &x))
        return jot_ix_const(pool, jot_floor_mod(x, d));
    form_open(&f);
    form_add(pool, &f, a, 1);
    form_open_mods(pool, &f, d);
    form_split(&f, d, &quot, &rest);
    if (f.bad || rest.bad)
        return 0;
    if (form_range(pool, &rest, space, &lo, &hi) && jot_floor_div(lo, d) == jot_floor_div(hi, d)) {
        rest.bad |= !jot_mul_ok(jot_floor_div(lo, d), d, &x) || !jot_add_ok(rest.c, -x, &rest.c);
        return form_ix(pool, &rest);
    }
    g = form_factor(pool, &rest, d, space, &u, &v);
    if (g) {
        Ix m = jot_ix_mod(pool, form_ix(pool, &u), jot_ix_const(pool, d / g), space);

        form_add(pool, &v, m, g);
        return form_ix(pool, &v);
    }
    return ix_pair(pool, IX_MOD, form_ix(pool, &rest), jot_ix_const(pool, d));
}

JOT_FN Ix
jot_ix_load(IxPool *pool, int slot, int n, const Ix *index)
{
    IxRec r = {0};
    int i;

    if (slot < 0 || slot >= 64 || n > IX_ARGS)
        return 0;
    r.op = IX_LOAD;
    r.a = (uint32_t)slot;
    r.n = (uint32_t)n;
    r.slots = (uint64_t)1 << slot;
    for (i = 0; i < n; i++) {
        const IxRec *x = &pool->recs.v[index[i]];

        if (!index[i])
            return 0;
        r.axes |= x->axes;
        r.slots |= x->slots;
        r.depth = x->depth + 1 > r.depth ? (uint8_t)(x->depth + 1) : r.depth;
    }
    return ix_intern(pool, r, NULL, index);
}

/* ---- conditions --------------------------------------------------------------------------- */

static bool
ix_is_truth(const IxPool *pool, Ix a)
{
    const IxRec *r = &pool->recs.v[a];

    return r->op >= IX_GE0 || (r->op == IX_CONST && (r->c == 0 || r->c == 1));
}

static Ix
ix_truth(IxPool *pool, Ix a)
{
    return !a || ix_is_truth(pool, a) ? a : jot_ix_not(pool, jot_ix_eq0(pool, a, NULL));
}

static int64_t
form_gcd(const IxForm *f)
{
    int64_t g = 0;
    int i;

    for (i = 0; i < f->n; i++) {
        int64_t a = f->t[i].k < 0 ? -f->t[i].k : f->t[i].k;

        while (a) {
            int64_t r = g % a;

            g = a;
            a = r;
        }
    }
    return g;
}

JOT_FN Ix
jot_ix_ge0(IxPool *pool, Ix a, const Space *space)
{
    int64_t lo, hi, g;
    IxForm f, quot, rest;

    if (!a)
        return 0;
    if (jot_ix_range(pool, a, space, &lo, &hi)) {
        if (lo >= 0)
            return jot_ix_const(pool, 1);
        if (hi < 0)
            return jot_ix_const(pool, 0);
    }
    form_open(&f);
    form_add(pool, &f, a, 1);
    g = form_gcd(&f);
    if (g > 1) { /* g*x + c >= 0  <=>  x + floor(c/g) >= 0 */
        form_split(&f, g, &quot, &rest);
        a = form_ix(pool, &quot);
    }
    return ix_pair(pool, IX_GE0, a, 0);
}

JOT_FN Ix
jot_ix_eq0(IxPool *pool, Ix a, const Space *space)
{
    int64_t lo, hi, g;
    IxForm f, quot, rest;

    if (!a)
        return 0;
    if (jot_ix_range(pool, a, space, &lo, &hi) && (lo > 0 || hi < 0 || lo == hi))
        return jot_ix_const(pool, lo == 0 && hi == 0);
    if (ix_is_truth(pool, a))
        return jot_ix_not(pool, a);
    form_open(&f);
    form_add(pool, &f, a, 1);
    g = form_gcd(&f);
    if (g > 1) {
        if (f.c % g)
            return jot_ix_const(pool, 0);
        form_split(&f, g, &quot, &rest);
        a = form_ix(pool, &quot);
    }
    if (f.n && f.t[0].k < 0)
        a = jot_ix_scale(pool, a, -1);
    return ix_pair(pool, IX_EQ0, a, 0);
}

JOT_FN Ix
jot_ix_lt(IxPool *pool, Ix a, Ix b, const Space *space)
{
    Ix d = jot_ix_sub(pool, b, a);

    return jot_ix_ge0(pool, jot_ix_sub(pool, d, jot_ix_const(pool, 1)), space);
}

JOT_FN Ix
jot_ix_not(IxPool *pool, Ix a)
{
    IxRec r = pool->recs.v[a];

    if (!a)
        return 0;
    switch (r.op) {
    case IX_CONST:
        return jot_ix_const(pool, !r.c);
    case IX_NOT:
        return r.a;
    case IX_GE0: /* not x >= 0  <=>  -x - 1 >= 0 */
        return jot_ix_ge0(pool, ix_combine(pool, r.a, -1, jot_ix_const(pool, -1), 1), NULL);
    case IX_EQ0: case IX_AND: case IX_OR:
        return ix_pair(pool, IX_NOT, a, 0);
    default:
        return jot_ix_eq0(pool, a, NULL);
    }
}

JOT_FN Ix
jot_ix_and(IxPool *pool, Ix a, Ix b)
{
    int64_t v;

    a = ix_truth(pool, a);
    b = ix_truth(pool, b);
    if (!a || !b)
        return 0;
    if (jot_ix_is_const(pool, a, &v))
        return v ? b : a;
    if (jot_ix_is_const(pool, b, &v))
        return v ? a : b;
    if (a == b)
        return a;
    return a < b ? ix_pair(pool, IX_AND, a, b) : ix_pair(pool, IX_AND, b, a);
}

JOT_FN Ix
jot_ix_or(IxPool *pool, Ix a, Ix b)
{
    int64_t v;

    a = ix_truth(pool, a);
    b = ix_truth(pool, b);
    if (!a || !b)
        return 0;
    if (jot_ix_is_const(pool, a, &v))
        return v ? a : b;
    if (jot_ix_is_const(pool, b, &v))
        return v ? b : a;
    if (a == b)
        return a;
    return a < b ? ix_pair(pool, IX_OR, a, b) : ix_pair(pool, IX_OR, b, a);
}

/* ---- questions ---------------------------------------------------------------------------- */

JOT_FN bool
jot_ix_is_const(const IxPool *pool, Ix ix, int64_t *value)
{
    const IxRec *r = &pool->recs.v[ix];

    if (r->op != IX_CONST)
        return false;
    *value = r->c;
    return true;
}

JOT_FN bool
jot_ix_is_axis(const IxPool *pool, Ix ix, int *axis)
{
    const IxRec *r = &pool->recs.v[ix];

    if (r->op != IX_AXIS)
        return false;
    *axis = (int)r->a;
    return true;
}

JOT_FN int64_t
jot_ix_coef(const IxPool *pool, Ix ix, int axis, bool *inside)
{
    IxTerm one;
    int64_t c, k = 0;
    uint32_t n, i;
    const IxTerm *t = jot_ix_linear(pool, ix, &c, &n, &one);

    *inside = false;
    for (i = 0; i < n; i++) {
        const IxRec *r = &pool->recs.v[t[i].atom];

        if (r->op == IX_AXIS && r->a == (uint32_t)axis)
            k = t[i].k;
        else if (r->axes >> axis & 1)
            *inside = true;
    }
    return k;
}

static bool
ix_div_range(const IxPool *pool, const IxRec *r, const Space *space, int64_t *lo, int64_t *hi)
{
    int64_t d, a, b;

    if (!jot_ix_is_const(pool, r->b, &d) || d <= 0)
        return false;
    if (!jot_ix_range(pool, r->a, space, &a, &b)) {
        *lo = 0;
        *hi = d - 1;
        return r->op == IX_MOD;
    }
    *lo = jot_floor_div(a, d);
    *hi = jot_floor_div(b, d);
    if (r->op == IX_MOD) {
        bool whole = *lo != *hi;

        *lo = whole ? 0 : jot_floor_mod(a, d);
        *hi = whole ? d - 1 : jot_floor_mod(b, d);
    }
    return true;
}

static bool
ix_mul_range(const IxPool *pool, const IxRec *r, const Space *space, int64_t *lo, int64_t *hi)
{
    int64_t a[2], b[2], p;
    int i;

    if (!jot_ix_range(pool, r->a, space, &a[0], &a[1])
        || !jot_ix_range(pool, r->b, space, &b[0], &b[1]))
        return false;
    for (i = 0; i < 4; i++) {
        if (!jot_mul_ok(a[i & 1], b[i >> 1], &p))
            return false;
        *lo = !i || p < *lo ? p : *lo;
        *hi = !i || p > *hi ? p : *hi;
    }
    return true;
}

JOT_FN bool
jot_ix_range(const IxPool *pool, Ix ix, const Space *space, int64_t *lo, int64_t *hi)
{
    const IxRec *r = &pool->recs.v[ix];
    int k;

    switch (r->op) {
    case IX_CONST:
        *lo = *hi = r->c;
        return true;
    case IX_AXIS:
        k = (int)r->a;
        if (!space || k >= space->n)
            return false;
        *lo = space->lo ? space->lo[k] : 0;
        *hi = space->ext[k] > 0 ? *lo + space->ext[k] - 1 : *lo;
        return true;
    case IX_SUM:
        return ix_linear_range(pool, r->c, r->n, pool->terms.v + r->at, space, lo, hi);
    case IX_DIV: case IX_MOD:
        return ix_div_range(pool, r, space, lo, hi);
    case IX_MUL:
        return ix_mul_range(pool, r, space, lo, hi);
    case IX_GE0: case IX_EQ0: case IX_NOT: case IX_AND: case IX_OR:
        *lo = 0;
        *hi = 1;
        return true;
    default:
        return false;
    }
}

JOT_FN bool
jot_ix_inside(const IxPool *pool, Ix ix, int64_t extent, const Space *space)
{
    int64_t lo, hi;

    return jot_ix_range(pool, ix, space, &lo, &hi) && lo >= 0 && hi < extent;
}

/* ---- substitution and evaluation ---------------------------------------------------------- */

enum { SUBST_SEEN = 256 };

typedef struct {
    IxPool *pool;
    int n;
    const Ix *map;
    const int *slots;
    const Space *space;
    Ix from[SUBST_SEEN], to[SUBST_SEEN]; /* what was replaced: shared parts are walked once */
} IxSubst;

static Ix ix_subst(IxSubst *s, Ix ix);

static Ix
ix_subst_sum(IxSubst *s, const IxRec *r)
{
    IxForm f;
    uint32_t i;

    form_open(&f);
    f.c = r->c;
    for (i = 0; i < r->n && !f.bad; i++) {
        IxTerm t = s->pool->terms.v[r->at + i];

        form_add(s->pool, &f, ix_subst(s, t.atom), t.k);
    }
    return form_ix(s->pool, &f);
}

static Ix
ix_subst_load(IxSubst *s, const IxRec *r)
{
    Ix args[IX_ARGS];
    uint32_t i;

    for (i = 0; i < r->n; i++)
        args[i] = ix_subst(s, s->pool->args.v[r->at + i]);
    return jot_ix_load(s->pool, s->slots ? s->slots[r->a] : (int)r->a, (int)r->n, args);
}

static Ix
ix_subst_atom(IxSubst *s, Ix ix)
{
    IxRec r = s->pool->recs.v[ix];
    Ix a, b;

    if (r.op == IX_SUM)
        return ix_subst_sum(s, &r);
    if (r.op == IX_LOAD)
        return ix_subst_load(s, &r);
    a = ix_subst(s, r.a);
    b = r.b ? ix_subst(s, r.b) : 0;
    switch (r.op) {
    case IX_DIV: return jot_ix_div(s->pool, a, b, s->space);
    case IX_MOD: return jot_ix_mod(s->pool, a, b, s->space);
    case IX_MUL: return jot_ix_mul(s->pool, a, b);
    case IX_GE0: return jot_ix_ge0(s->pool, a, s->space);
    case IX_EQ0: return jot_ix_eq0(s->pool, a, s->space);
    case IX_NOT: return jot_ix_not(s->pool, a);
    case IX_AND: return jot_ix_and(s->pool, a, b);
    case IX_OR:  return jot_ix_or(s->pool, a, b);
    default:     return 0;
    }
}

static Ix
ix_subst(IxSubst *s, Ix ix)
{
    const IxRec *r = &s->pool->recs.v[ix];
    uint32_t slot = ix % SUBST_SEEN;

    if (!ix || (!r->axes && !r->slots))
        return ix;
    if (r->op == IX_AXIS)
        return (int)r->a < s->n ? s->map[r->a] : ix;
    if (s->from[slot] != ix) {
        Ix to = ix_subst_atom(s, ix);

        s->from[slot] = ix;
        s->to[slot] = to;
    }
    return s->to[slot];
}

JOT_FN Ix
jot_ix_subst(IxPool *pool, Ix ix, int n, const Ix *map, const int *slots, const Space *space)
{
    IxSubst s;

    s.pool = pool;
    s.n = n;
    s.map = map;
    s.slots = slots;
    s.space = space;
    memset(s.from, 0, sizeof s.from);
    return ix_subst(&s, ix);
}

/* Wraps on overflow: what a kernel would compute. */
static int64_t
ix_eval_sum(const IxPool *pool, const IxRec *r, const int64_t *at, IxLoadFn *load, void *ud)
{
    uint64_t v = (uint64_t)r->c;
    uint32_t i;

    for (i = 0; i < r->n; i++) {
        const IxTerm *t = &pool->terms.v[r->at + i];

        v += (uint64_t)t->k * (uint64_t)jot_ix_eval(pool, t->atom, at, load, ud);
    }
    return (int64_t)v;
}

JOT_FN int64_t
jot_ix_eval(const IxPool *pool, Ix ix, const int64_t *at, IxLoadFn *load, void *ud)
{
    const IxRec *r = &pool->recs.v[ix];
    int64_t a, b, args[IX_ARGS];
    uint32_t i;

    switch (r->op) {
    case IX_CONST:
        return r->c;
    case IX_AXIS:
        return at[r->a];
    case IX_SUM:
        return ix_eval_sum(pool, r, at, load, ud);
    case IX_LOAD:
        for (i = 0; i < r->n; i++)
            args[i] = jot_ix_eval(pool, pool->args.v[r->at + i], at, load, ud);
        return load(ud, (int)r->a, (int)r->n, args);
    case IX_POISON:
        return 0;
    }
    a = jot_ix_eval(pool, r->a, at, load, ud);
    b = r->b ? jot_ix_eval(pool, r->b, at, load, ud) : 0;
    switch (r->op) {
    case IX_DIV: return b ? jot_floor_div(a, b) : 0;
    case IX_MOD: return b ? jot_floor_mod(a, b) : 0;
    case IX_MUL: return (int64_t)((uint64_t)a * (uint64_t)b);
    case IX_GE0: return a >= 0;
    case IX_EQ0: return a == 0;
    case IX_NOT: return !a;
    case IX_AND: return a && b;
    default:     return a || b;
    }
}

/* ---- text --------------------------------------------------------------------------------- */

static void
ix_print_atom(const IxPool *pool, Ix ix, Text *text)
{
    bool bare = pool->recs.v[ix].op == IX_AXIS || pool->recs.v[ix].op == IX_CONST
             || pool->recs.v[ix].op == IX_LOAD;

    jot_text_f(text, bare ? "" : "(");
    jot_ix_print(pool, ix, text);
    jot_text_f(text, bare ? "" : ")");
}

static void
ix_print_pair(const IxPool *pool, const IxRec *r, const char *op, Text *text)
{
    ix_print_atom(pool, r->a, text);
    jot_text_f(text, "%s", op);
    ix_print_atom(pool, r->b, text);
}

static void
ix_print_sum(const IxPool *pool, const IxRec *r, Text *text)
{
    uint32_t i;

    for (i = 0; i < r->n; i++) {
        const IxTerm *t = &pool->terms.v[r->at + i];
        uint64_t k = t->k < 0 ? 0 - (uint64_t)t->k : (uint64_t)t->k;

        jot_text_f(text, "%s", i ? t->k < 0 ? " - " : " + " : t->k < 0 ? "-" : "");
        if (k != 1)
            jot_text_f(text, "%llu*", (unsigned long long)k);
        ix_print_atom(pool, t->atom, text);
    }
    if (r->c)
        jot_text_f(text, r->c < 0 ? " - %llu" : " + %llu",
                   r->c < 0 ? 0 - (unsigned long long)r->c : (unsigned long long)r->c);
}

JOT_FN void
jot_ix_print(const IxPool *pool, Ix ix, Text *text)
{
    const IxRec *r = &pool->recs.v[ix];
    uint32_t i;

    switch (r->op) {
    case IX_POISON: jot_text_f(text, "?"); break;
    case IX_CONST:  jot_text_f(text, "%lld", (long long)r->c); break;
    case IX_AXIS:   jot_text_f(text, "i%u", r->a); break;
    case IX_SUM:    ix_print_sum(pool, r, text); break;
    case IX_DIV:    ix_print_pair(pool, r, "/", text); break;
    case IX_MOD:    ix_print_pair(pool, r, "%", text); break;
    case IX_MUL:    ix_print_pair(pool, r, "*", text); break;
    case IX_AND:    ix_print_pair(pool, r, " && ", text); break;
    case IX_OR:     ix_print_pair(pool, r, " || ", text); break;
    case IX_GE0:    jot_ix_print(pool, r->a, text); jot_text_f(text, " >= 0"); break;
    case IX_EQ0:    jot_ix_print(pool, r->a, text); jot_text_f(text, " == 0"); break;
    case IX_NOT:    jot_text_f(text, "!"); ix_print_atom(pool, r->a, text); break;
    case IX_LOAD:
        jot_text_f(text, "@e%u(", r->a);
        for (i = 0; i < r->n; i++) {
            jot_text_f(text, i ? ", " : "");
            jot_ix_print(pool, pool->args.v[r->at + i], text);
        }
        jot_text_f(text, ")");
        break;
    }
}
