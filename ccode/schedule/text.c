/* ccode/schedule/text.c - schedules and index expressions as text with the names of axes.
 *
 *     lanes 8
 *     fuse m = n h w
 *     %4: m:112 i:128 o:16 m:14 | p q i m:1u o:8u o:1v; keep y[n, o, h, w]
 *     !0: m:112 i:128 o:16 m:14 m:1u o:8u o:1v
 *
 * The same lines are the dump, the entry of the tuning cache and the form tests write; strategies
 * write them with roles in place of names. ccode/schedule/read.c reads them back.
 *
 * Read before: ccode/ir/ir.h. After: ccode/schedule/sched.c, ccode/schedule/read.c. */
#include "ccode/schedule/sched.h"

static const char *
axis_name(const Kernel *k, const Sched *s, uint32_t axis)
{
    return s ? jot_axis_name(s, (int)axis) : axis < k->axes.n ? k->axes.v[axis].name : "?";
}

/* ---- index expressions ---- */

/* How tightly the text of an expression holds together: 0 or, 1 and, 2 comparison, 3 sum, 4
 * product, 5 one word. */
static int
ix_level(const Kernel *k, Ix ix)
{
    const IxRec *r = &k->ix->recs.v[ix];
    switch (r->op) {
    case IX_OR: return 0;
    case IX_AND: return 1;
    case IX_GE0: case IX_EQ0: return 2;
    case IX_SUM: return r->n == 1 && r->c == 0 ? 4 : 3;
    case IX_DIV: case IX_MOD: case IX_MUL: return 4;
    case IX_CONST: return r->c < 0 ? 3 : 5;
    default: return 5;
    }
}

static void text_print_ix(const Kernel *k, const Sched *s, Ix ix, int level, Text *t);

static void
text_print_pair(const Kernel *k, const Sched *s, const IxRec *r, int level, const char *op, Text *t)
{
    text_print_ix(k, s, r->a, level, t);
    jot_text_f(t, "%s", op);
    text_print_ix(k, s, r->b, level + 1, t);
}

static void
print_sum(const Kernel *k, const Sched *s, const IxRec *r, Text *t)
{
    for (uint32_t i = 0; i < r->n; i++) {
        IxTerm term = k->ix->terms.v[r->at + i];
        int64_t size = term.k < 0 ? -term.k : term.k;
        jot_text_f(t, "%s", term.k < 0 ? (i ? " - " : "-") : i ? " + " : "");
        if (size != 1)
            jot_text_f(t, "%lld*", (long long)size);
        text_print_ix(k, s, term.atom, 5 - (size == 1), t);
    }
    if (r->c)
        jot_text_f(t, " %c %lld", r->c < 0 ? '-' : '+', (long long)(r->c < 0 ? -r->c : r->c));
}

static void
print_atom(const Kernel *k, const Sched *s, const IxRec *r, Text *t)
{
    switch (r->op) {
    case IX_CONST: jot_text_f(t, "%lld", (long long)r->c); break;
    case IX_AXIS: jot_text_f(t, "%s", axis_name(k, s, r->a)); break;
    case IX_SUM: print_sum(k, s, r, t); break;
    case IX_DIV: text_print_pair(k, s, r, 4, "/", t); break;
    case IX_MOD: text_print_pair(k, s, r, 4, "%", t); break;
    case IX_MUL: text_print_pair(k, s, r, 4, "*", t); break;
    case IX_AND: text_print_pair(k, s, r, 1, " && ", t); break;
    case IX_OR: text_print_pair(k, s, r, 0, " || ", t); break;
    case IX_GE0: text_print_ix(k, s, r->a, 3, t); jot_text_f(t, " >= 0"); break;
    case IX_EQ0: text_print_ix(k, s, r->a, 3, t); jot_text_f(t, " == 0"); break;
    case IX_NOT: jot_text_f(t, "!"); text_print_ix(k, s, r->a, 5, t); break;
    case IX_LOAD:
        jot_text_f(t, "@e%u(", r->a);
        for (uint32_t i = 0; i < r->n; i++) {
            jot_text_f(t, "%s", i ? ", " : "");
            text_print_ix(k, s, k->ix->args.v[r->at + i], 0, t);
        }
        jot_text_f(t, ")");
        break;
    default: jot_text_f(t, "poison"); break;
    }
}

static void
text_print_ix(const Kernel *k, const Sched *s, Ix ix, int level, Text *t)
{
    bool wrap = ix_level(k, ix) < level;
    jot_text_f(t, "%s", wrap ? "(" : "");
    print_atom(k, s, &k->ix->recs.v[ix], t);
    jot_text_f(t, "%s", wrap ? ")" : "");
}

JOT_FN void
jot_ix_print_named(const Kernel *k, const Sched *s, Ix ix, Text *t)
{
    text_print_ix(k, s, ix, 0, t);
}

/* ---- printing a schedule ---- */

JOT_FN char
jot_loop_letter(int kind)
{
    return "\0puvUcdlgtam"[kind];
}

JOT_FN void
jot_loop_print(const Sched *s, const SLoop *l, Text *t)
{
    jot_text_f(t, " %s", axis_name(s->k, s, l->axis));
    if (l->step != 1 || l->kind != LOOP_SERIAL)
        jot_text_f(t, ":%lld", (long long)l->step);
    if (jot_loop_letter(l->kind))
        jot_text_f(t, "%c", jot_loop_letter(l->kind));
}

static void
print_place(const Sched *s, const char *word, const Place *p, Text *t)
{
    const KBuf *b = &s->k->bufs.v[p->buf];
    jot_text_f(t, "; %s %s[", word, b->name);
    for (int i = 0; i < b->rank; i++) {
        jot_text_f(t, "%s", i ? ", " : "");
        text_print_ix(s->k, s, s->ixs.v[p->at + (uint32_t)i], 0, t);
    }
    jot_text_f(t, "]");
}

static void
print_stage(const Sched *s, const Stage *st, Text *t)
{
    bool reduce = !st->store && s->k->values.v[st->what].op == VAL_REDUCE;
    jot_text_f(t, "%s%c%u:", st->combine ? "+" : "", st->store ? '!' : '%', st->what);
    for (int i = 0; i <= st->n; i++) {
        if (st->part && i == st->part)
            jot_text_f(t, " ||");
        if (!st->store && i == st->nat && !(st->part && i == st->part) && (reduce || i < st->n))
            jot_text_f(t, " |");
        if (i < st->n)
            jot_loop_print(s, &st->loop[i], t);
    }
    if (st->acc.kind != PLACE_NONE)
        print_place(s, st->acc.kind == PLACE_KEEP ? "keep" : "acc", &st->acc, t);
    if (st->res.kind != PLACE_NONE)
        print_place(s, "res", &st->res, t);
    if (st->ahead)
        jot_text_f(t, "; ahead %d", st->ahead);
    if (st->next)
        jot_text_f(t, "; next %d", st->next);
    jot_text_f(t, "\n");
}

static void
print_def(const Sched *s, const SDef *d, Text *t)
{
    jot_text_f(t, "fuse %s =", axis_name(s->k, s, d->axis));
    for (int i = 0; i < d->n; i++)
        jot_text_f(t, " %s", axis_name(s->k, s, d->of[i]));
    jot_text_f(t, "\n");
}

JOT_FN void
jot_sched_print(const Sched *s, Text *t)
{
    if (s->lanes > 1)
        jot_text_f(t, "lanes %d\n", s->lanes);
    if (s->fma)
        jot_text_f(t, "fma\n");
    if (s->group)
        jot_text_f(t, "group %d\n", s->group);
    if (s->warps)
        jot_text_f(t, "warps %d\n", s->warps);
    if (s->copies)
        jot_text_f(t, "copies\n");
    if (s->buffers)
        jot_text_f(t, "buffers %d\n", s->buffers);
    if (s->registers)
        jot_text_f(t, "registers %d\n", s->registers);
    for (uint32_t b = 1; b < s->k->bufs.n; b++)
        if (!jot_layout_is_rowmajor(s->k->bufs.v[b].layout)) {
            jot_text_f(t, "layout %s ", s->k->bufs.v[b].name);
            jot_layout_print(s->k->bufs.v[b].layout, t);
            jot_text_f(t, "\n");
        }
    for (uint32_t i = 0; i < s->defs.n; i++)
        print_def(s, &s->defs.v[i], t);
    for (uint32_t i = 0; i < s->stages.n; i++) {
        if (i && s->stages.v[i].phase != s->stages.v[i - 1].phase)
            jot_text_f(t, "phase\n");
        print_stage(s, &s->stages.v[i], t);
    }
}
