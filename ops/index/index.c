/* ops/index/index.c - the pool of index expressions, and the canonical linear forms in it.
 *
 * Everything is kept as   c + sum of k * atom   and atoms are shared: equality is one comparison.
 *
 *     k*d*(x / d) + k*(x % d)  ->  k*x          the one identity that sums know by themselves
 *
 * Read before: ops/index/index.h, ops/index/form.h. After: ops/index/simplify.c,
 * ops/index/walk.c. */
#include "ops/index/form.h"

/* Records of axis 0 and of the constant 0; the others follow.
 * What is asked for most is found without the table. */
enum { IX_FIRST_AXIS = 1, IX_FIRST_CONST = IX_FIRST_AXIS + IX_AXES, IX_CONSTS = 64 };

/* ---- the pool ----------------------------------------------------------------------------- */

static uint64_t
ix_hash(const IxRec *r, const IxTerm *t, const Ix *args)
{
    uint64_t h = jot_hash_u64((uint64_t)r->op << 56 ^ (uint64_t)r->a << 28 ^ r->b, (uint64_t)r->c);
    uint32_t i;

    for (i = 0; i < r->n; i++)
        h = r->op == IX_SUM ? jot_hash_u64(h ^ (uint64_t)t[i].atom << 32, (uint64_t)t[i].k)
                            : jot_hash_u64(h, args[i]);
    return h;
}

/* Axes by their number, then the others by depth, and by what they are: hashes of hashes. No number
 * of a record goes in, for it says who came first, and all programs of a context share its pool. */
static uint32_t
ix_key(const IxPool *pool, const IxRec *r, const IxTerm *t, const Ix *args)
{
    uint64_t h = jot_hash_u64(r->op, (uint64_t)r->c);
    uint32_t i;

    if (r->op == IX_AXIS)
        return r->a;
    if (r->op == IX_LOAD)
        h = jot_hash_u64(h, r->a);
    else if (r->op != IX_SUM && r->op != IX_CONST)
        h = jot_hash_u64(h, (uint64_t)pool->recs.v[r->a].key << 32 | pool->recs.v[r->b].key);
    for (i = 0; i < r->n; i++)
        h = r->op == IX_SUM ? jot_hash_u64(h ^ (uint64_t)t[i].key << 32, (uint64_t)t[i].k)
                            : jot_hash_u64(h, pool->recs.v[args[i]].key);
    return ((uint32_t)r->depth + 1) << 24 | (uint32_t)(h >> 40);
}

JOT_FN bool
jot_ix_before(const IxPool *pool, Ix a, Ix b)
{
    uint32_t x = pool->recs.v[a].key, y = pool->recs.v[b].key;

    return x < y || (x == y && a < b);
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
    rec.key = ix_key(pool, &rec, t, args);
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
    for (k = 0; k < IX_CONSTS; k++)
        if (jot_ix_const(pool, k) != (Ix)(IX_FIRST_CONST + k))
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
    jot_vec_free(pool->mem, pool->work);
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
    tmp->key = r->key;
    return tmp;
}

JOT_FN void
jot_form_add_term(const IxPool *pool, IxForm *f, int64_t k, Ix atom)
{
    uint32_t key = pool->recs.v[atom].key;
    int lo = 0;

    while (lo < f->n && (f->t[lo].key < key || (f->t[lo].key == key && f->t[lo].atom < atom)))
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
    f->t[lo].key = key;
}

JOT_FN void
jot_form_add(const IxPool *pool, IxForm *f, Ix ix, int64_t k)
{
    IxTerm one;
    int64_t c, kc;
    uint32_t n, i;
    const IxTerm *t = jot_ix_linear(pool, ix, &c, &n, &one);

    f->bad |= !ix || !jot_mul_ok(c, k, &kc) || !jot_add_ok(f->c, kc, &f->c);
    if (!f->n && k == 1 && n <= IX_TERMS) { /* in the order that it has */
        memcpy(f->t, t, n * sizeof *t);
        f->n = (int)n;
        return;
    }
    for (i = 0; i < n && !f->bad; i++) {
        if (jot_mul_ok(t[i].k, k, &kc))
            jot_form_add_term(pool, f, kc, t[i].atom);
        else
            f->bad = true;
    }
}

/* Is q the record of x / d? (y / e) / d is the atom y / (e*d). */
static bool
ix_is_quotient(const IxPool *pool, const IxRec *q, Ix x, int64_t d)
{
    const IxRec *r = &pool->recs.v[x];
    int64_t by, e;

    if (q->op != IX_DIV || !jot_ix_is_const(pool, q->b, &by))
        return false;
    return (q->a == x && by == d)
        || (r->op == IX_DIV && q->a == r->a && jot_ix_is_const(pool, r->b, &e) && e > 0 && d > 0
            && jot_mul_ok(e, d, &d) && by == d);
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

            if (f->t[j].k == kd && ix_is_quotient(pool, q, m->a, d)) {
                Ix x = m->a, mod = f->t[i].atom, div = f->t[j].atom;
                int64_t k = f->t[i].k;

                jot_form_add_term(pool, f, -k, mod);
                jot_form_add_term(pool, f, -kd, div);
                jot_form_add(pool, f, x, k);
                i = -1;
                break;
            }
        }
    }
}

JOT_FN Ix
jot_form_ix(IxPool *pool, IxForm *f)
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

JOT_FN void
jot_form_open(IxForm *f)
{
    f->c = f->n = 0;
    f->bad = false;
}

JOT_FN Ix
jot_ix_const(IxPool *pool, int64_t value)
{
    IxRec r = {0};

    if (value >= 0 && value < IX_CONSTS && pool->recs.n > IX_FIRST_CONST + (uint32_t)value)
        return IX_FIRST_CONST + (Ix)value;
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
    if (pool->recs.n > IX_FIRST_AXIS + (uint32_t)axis)
        return IX_FIRST_AXIS + (Ix)axis;
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
    if ((b == IX_FIRST_CONST && ka == 1) || (a == IX_FIRST_CONST && kb == 1)) /* by 0 */
        return b == IX_FIRST_CONST ? a : b;
    jot_form_open(&f);
    jot_form_add(pool, &f, a, ka);
    jot_form_add(pool, &f, b, kb);
    return jot_form_ix(pool, &f);
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

JOT_FN Ix
jot_ix_pair(IxPool *pool, IxOp op, Ix a, Ix b)
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

/* k*x as a sum; where what is loaded may take it too far, 0. */
static Ix
ix_multiple(IxPool *pool, Ix x, int64_t k, const Space *space)
{
    Ix ix = jot_ix_scale(pool, x, k);
    int64_t lo = 0, hi = 0;

    if (!ix || !jot_ix_slots(pool, ix))
        return ix;
    if (!jot_ix_range(pool, ix, space, &lo, &hi) && space)
        return 0;
    return lo < -IX_PRODUCT || hi > IX_PRODUCT ? 0 : ix;
}

JOT_FN Ix
jot_ix_mul(IxPool *pool, Ix a, Ix b, const Space *space)
{
    int64_t k;
    Ix sum = 0;

    if (jot_ix_is_const(pool, a, &k))
        sum = ix_multiple(pool, b, k, space);
    else if (jot_ix_is_const(pool, b, &k))
        sum = ix_multiple(pool, a, k, space);
    else
        k = 0;
    if (sum || (k && !(jot_ix_slots(pool, a) | jot_ix_slots(pool, b))))
        return sum;
    return jot_ix_before(pool, a, b) ? jot_ix_pair(pool, IX_MUL, a, b)
                                     : jot_ix_pair(pool, IX_MUL, b, a);
}

JOT_FN void
jot_form_split(const IxForm *f, int64_t d, IxForm *quot, IxForm *rest)
{
    int i;

    jot_form_open(quot);
    jot_form_open(rest);
    quot->c = jot_floor_div(f->c, d);
    rest->c = jot_floor_mod(f->c, d);
    for (i = 0; i < f->n; i++) { /* both in the order that f has */
        int64_t k = f->t[i].k;
        IxForm *to = k % d == 0 ? quot : rest;

        to->t[to->n] = f->t[i];
        to->t[to->n++].k = to == quot ? k / d : k;
        to->bad |= k == INT64_MIN;
    }
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

JOT_FN bool
jot_ix_straight(const IxPool *pool, Ix ix)
{
    const IxTerm *t;
    IxTerm tmp;
    uint32_t n, i;
    int64_t c;

    t = jot_ix_linear(pool, ix, &c, &n, &tmp);
    for (i = 0; i < n && pool->recs.v[t[i].atom].op == IX_AXIS; i++)
        ;
    return i == n;
}

JOT_FN bool
jot_ix_whole(const IxPool *pool, int n, const Ix *index, const int64_t *to, const int64_t *from)
{
    uint64_t seen = 0;
    int64_t value;
    int k, axis;

    for (k = 0; k < n; k++) {
        if (to[k] == 1 && jot_ix_is_const(pool, index[k], &value) && !value)
            continue;
        if (!jot_ix_is_axis(pool, index[k], &axis) || seen >> axis & 1 || from[axis] != to[k])
            return false;
        seen |= (uint64_t)1 << axis;
    }
    return true;
}

JOT_FN bool
jot_ix_order(const IxPool *pool, Ix cond, int *low, int *high, bool *below)
{
    const IxRec *rec = &pool->recs.v[cond];
    const IxTerm *t;
    IxTerm tmp;
    uint32_t n;
    int64_t c;
    bool first;

    if (rec->op != IX_GE0)
        return false;
    t = jot_ix_linear(pool, rec->a, &c, &n, &tmp);
    if (n != 2 || (c != 0 && c != -1) || t[0].k + t[1].k != 0 || (t[0].k != 1 && t[0].k != -1))
        return false;
    first = t[0].k > 0;
    *below = c != 0;
    return jot_ix_is_axis(pool, t[first].atom, low) && jot_ix_is_axis(pool, t[!first].atom, high);
}
