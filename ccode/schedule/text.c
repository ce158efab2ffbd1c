/* ccode/schedule/text.c - schedules and index expressions as text with the names of axes, and back.
 *
 *     lanes 8
 *     fuse m = n h w
 *     %4: m:112 i:128 o:16 m:14 | p q i m:1u o:8u o:1v; keep y[n, o, h, w]
 *     !0: m:112 i:128 o:16 m:14 m:1u o:8u o:1v
 *
 * The same lines are the dump, the entry of the tuning cache and the form tests write.
 *
 * Read before: ccode/ir/ir.h. After: ccode/schedule/sched.c. */
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

static const char loop_letter[] = {0, 'p', 'u', 'v', 'U', 'c', 'd', 'l', 'g', 't', 'a', 'm', 0};

JOT_FN void
jot_loop_print(const Sched *s, const SLoop *l, Text *t)
{
    jot_text_f(t, " %s", axis_name(s->k, s, l->axis));
    if (l->kind == LOOP_WINDOW)
        jot_text_f(t, "@%s", axis_name(s->k, s, l->from));
    if (l->step != 1 || l->kind != LOOP_SERIAL)
        jot_text_f(t, ":%lld", (long long)l->step);
    if (loop_letter[l->kind])
        jot_text_f(t, "%c", loop_letter[l->kind]);
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
    if (d->split) {
        jot_text_f(t, "split %s = %s %s:%lld\n", axis_name(s->k, s, d->of[0]),
                   axis_name(s->k, s, d->axis), axis_name(s->k, s, d->axis + 1u),
                   (long long)d->step);
        return;
    }
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

/* ---- reading ---- */

typedef struct {
    Sched *s;
    const char *p, *end;    /* the rest of the current line */
    const char *error;
    uint8_t phase;
} Reader;

static void
skip(Reader *r)
{
    while (r->p < r->end && *r->p == ' ')
        r->p++;
}

static bool
eat(Reader *r, const char *word)
{
    size_t n = jot_str_len(word);
    skip(r);
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
        return false;
    r->p += n;
    return true;
}

static bool
word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* A name; its length in *n, 0 for none. */
static const char *
word(Reader *r, size_t *n)
{
    const char *from;
    skip(r);
    from = r->p;
    while (r->p < r->end && word_char(*r->p))
        r->p++;
    *n = (size_t)(r->p - from);
    return from;
}

static int64_t
number(Reader *r, int64_t otherwise)
{
    int64_t value = 0;
    if (r->p >= r->end || *r->p < '0' || *r->p > '9')
        return otherwise;
    for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++)
        if (value < INT64_MAX / 16)
            value = value * 10 + (*r->p - '0');
    return value;
}

static bool
is_name(const char *name, const char *text, size_t n)
{
    return name && jot_str_len(name) == n && memcmp(name, text, n) == 0;
}

static int
find_axis(Reader *r, const char *text, size_t n)
{
    for (int i = 0; n && i < SCHED_AXES; i++)
        if (jot_axis_is(r->s, i) && is_name(jot_axis_name(r->s, i), text, n))
            return i;
    if (!r->error)
        r->error = "an axis of that name does not exist";
    return -1;
}

static uint32_t
find_buf(Reader *r)
{
    size_t n;
    const char *text = word(r, &n);
    for (uint32_t i = 1; n && i < r->s->k->bufs.n; i++)
        if (is_name(r->s->k->bufs.v[i].name, text, n))
            return i;
    if (!r->error)
        r->error = "a buffer of that name does not exist";
    return 0;
}

static Ix read_sum(Reader *r, int depth);

static Ix
read_primary(Reader *r, int depth)
{
    IxPool *ix = r->s->k->ix;
    size_t n;
    const char *text;
    Ix value;
    if (depth > 40)
        return 0;
    if (eat(r, "-"))
        return jot_ix_scale(ix, read_primary(r, depth + 1), -1);
    if (eat(r, "(")) {
        value = read_sum(r, depth + 1);
        if (!eat(r, ")") && !r->error)
            r->error = "a parenthesis is not closed";
        return value;
    }
    skip(r);
    if (r->p < r->end && *r->p >= '0' && *r->p <= '9')
        return jot_ix_const(ix, number(r, 0));
    text = word(r, &n);
    return find_axis(r, text, n) < 0 ? 0 : jot_ix_axis(ix, find_axis(r, text, n));
}

static Ix
read_product(Reader *r, int depth)
{
    IxPool *ix = r->s->k->ix;
    Ix a = read_primary(r, depth);
    for (;;) {
        if (eat(r, "*"))
            a = jot_ix_mul(ix, a, read_primary(r, depth), NULL);
        else if (eat(r, "/"))
            a = jot_ix_div(ix, a, read_primary(r, depth), NULL);
        else if (eat(r, "%"))
            a = jot_ix_mod(ix, a, read_primary(r, depth), NULL);
        else
            return a;
    }
}

static Ix
read_sum(Reader *r, int depth)
{
    IxPool *ix = r->s->k->ix;
    Ix a = read_product(r, depth);
    for (;;) {
        if (eat(r, "+"))
            a = jot_ix_add(ix, a, read_product(r, depth));
        else if (eat(r, "-"))
            a = jot_ix_sub(ix, a, read_product(r, depth));
        else
            return a;
    }
}

static Place
read_place(Reader *r, PlaceKind kind)
{
    Place p = {0};
    Ix index[JOT_MAX_RANK];
    int rank;
    p.kind = (uint8_t)kind;
    p.buf = find_buf(r);
    rank = r->s->k->bufs.v[p.buf].rank;
    p.at = r->s->ixs.n;
    if (!eat(r, "["))
        r->error = "[ expected";
    for (int i = 0; i < rank && !r->error; i++) {
        if (i && !eat(r, ","))
            r->error = "an index per dimension expected";
        index[i] = read_sum(r, 0);
        *(Ix *)jot_vec_push(r->s->k->mem, r->s->ixs) = index[i];
    }
    if (!eat(r, "]") && !r->error)
        r->error = "] expected";
    return p;
}

static bool
read_loop(Reader *r, SLoop *l)
{
    size_t n;
    const char *text = word(r, &n);
    int axis = find_axis(r, text, n), from = 0;
    memset(l, 0, sizeof *l);
    if (r->p < r->end && *r->p == '@') {
        r->p++;
        text = word(r, &n);
        from = find_axis(r, text, n);
        l->kind = LOOP_WINDOW;
    }
    if (axis < 0 || from < 0)
        return false;
    l->axis = (uint8_t)axis;
    l->from = (uint8_t)from;
    l->step = 1;
    if (r->p < r->end && *r->p == ':') {
        r->p++;
        l->step = number(r, 1);
        for (int i = 1; r->p < r->end && i < LOOP_WINDOW; i++)
            if (loop_letter[i] && *r->p == loop_letter[i]) {
                l->kind = (uint8_t)i;
                r->p++;
                break;
            }
    }
    return true;
}

static bool
read_what(Reader *r, Stage *st)
{
    size_t n;
    const char *text;
    st->store = r->p[-1] == '!';
    text = word(r, &n);
    if (n && *text >= '0' && *text <= '9') {
        r->p = text;
        st->what = (uint32_t)number(r, 0);
    } else
        for (uint32_t i = 1; i < r->s->k->values.n; i++)
            if (is_name(r->s->k->values.v[i].name, text, n))
                st->what = i;
    if (st->store ? st->what >= r->s->k->stores.n : st->what == 0 || st->what >= r->s->k->values.n)
        r->error = "a value or store of that number or name does not exist";
    return !r->error && eat(r, ":");
}

static uint8_t
read_ahead(Reader *r)
{
    int64_t steps = number(r, 0);
    if (steps < 1 || steps > UINT8_MAX)
        r->error = "ahead of 1 to 255 steps expected";
    return (uint8_t)steps;
}

static void
read_stage(Reader *r, bool combine)
{
    Stage st = {0};
    bool bar = false;
    if (!read_what(r, &st)) {
        if (!r->error)
            r->error = ": expected";
        return;
    }
    st.phase = r->phase;
    st.combine = combine;
    for (skip(r); r->p < r->end && !r->error && *r->p != ';'; skip(r)) {
        if (eat(r, "||")) {
            bar = true;
            st.part = st.nat = st.n;
        } else if (eat(r, "|")) {
            bar = true;
            st.nat = st.n;
        } else if (st.n >= STAGE_LOOPS)
            r->error = "too many loops";
        else if (!read_loop(r, &st.loop[st.n]))
            r->error = r->error ? r->error : "a loop expected";
        else
            st.n++;
    }
    while (!r->error && eat(r, ";")) {
        if (eat(r, "keep "))
            st.acc = read_place(r, PLACE_KEEP);
        else if (eat(r, "acc "))
            st.acc = read_place(r, PLACE_MEM);
        else if (eat(r, "res "))
            st.res = read_place(r, PLACE_MEM);
        else if (eat(r, "ahead "))
            st.ahead = read_ahead(r);
        else if (eat(r, "next "))
            st.next = read_ahead(r);
        else
            r->error = "keep, acc, res, ahead or next expected";
    }
    if (!bar && !st.store && !r->error && r->s->k->values.v[st.what].op != VAL_REDUCE)
        st.nat = st.n;
    if (st.store)
        st.nat = st.n;
    if (!r->error && (combine || st.part) &&
        (st.store || r->s->k->values.v[st.what].op != VAL_REDUCE))
        r->error = "partial results are a reduction's";
    *(Stage *)jot_vec_push(r->s->k->mem, r->s->stages) = st;
}

static void
read_def(Reader *r, bool split)
{
    char name[2][32];
    int of[8], n = 0;
    size_t len;
    const char *text = word(r, &len);
    if (split)
        of[n++] = find_axis(r, text, len);
    for (int i = 0; i < 2; i++) {
        if (i == 1 || split) {
            if (i == 0 && !eat(r, "="))
                r->error = "= expected";
            if (i == 1 && !split)
                break;
            text = word(r, &len);
        }
        len = len < 31 ? len : 31;
        memcpy(name[i], text, len);
        name[i][len] = 0;
    }
    if (split) {
        if (r->error || !eat(r, ":") ||
            jot_sched_split(r->s, of[0], name[0], name[1], number(r, 1)) < 0)
            r->error = r->error ? r->error : "the step must divide the axis";
        return;
    }
    if (!eat(r, "="))
        r->error = "= expected";
    for (skip(r); r->p < r->end && n < 8 && !r->error; skip(r)) {
        text = word(r, &len);
        of[n++] = find_axis(r, text, len);
    }
    if (!r->error && jot_sched_fuse(r->s, name[0], n, of) < 0)
        r->error = "axes cannot be fused";
}

static void
read_layout(Reader *r)
{
    uint32_t buf = find_buf(r);
    const KBuf *b = &r->s->k->bufs.v[buf];
    Layout l;
    if (r->error)
        return;
    if (jot_layout_read(&l, b->rank, b->ext, r->p, (size_t)(r->end - r->p)))
        jot_kernel_layout(r->s->k, buf, &l);
    else
        r->error = "a layout that covers each dimension expected";
}

static void
read_line(Reader *r)
{
    skip(r);
    if (r->p == r->end)
        return;
    if (eat(r, "lanes ")) {
        skip(r);
        r->s->lanes = (int)number(r, 1);
    } else if (eat(r, "layout "))
        read_layout(r);
    else if (eat(r, "fuse "))
        read_def(r, false);
    else if (eat(r, "split "))
        read_def(r, true);
    else if (eat(r, "fma"))
        r->s->fma = true;
    else if (eat(r, "copies"))
        r->s->copies = true;
    else if (eat(r, "buffers ")) {
        skip(r);
        r->s->buffers = (int)number(r, 0);
    } else if (eat(r, "registers ")) {
        skip(r);
        r->s->registers = (int)number(r, 1);
    }
    else if (eat(r, "warps ")) {
        skip(r);
        r->s->warps = (int)number(r, 0);
    } else if (eat(r, "phase"))
        r->phase++;
    else if (eat(r, "+%"))
        read_stage(r, true);
    else if (eat(r, "group ")) {
        skip(r);
        r->s->group = (int)number(r, 0);
    }
    else if (eat(r, "%") || eat(r, "!"))
        read_stage(r, false);
    else
        r->error =
            "lanes, fma, group, warps, copies, buffers, registers, layout, fuse, split, phase, %, "
            "+% or ! expected";
}

JOT_FN bool
jot_sched_read(Sched *s, Kernel *k, const char *text, size_t n, Text *why)
{
    Reader r = {0};
    const char *end = text + n;
    jot_sched_open(s, k, 1);
    r.s = s;
    for (int line = 1; text < end; line++) {
        r.p = text;
        while (text < end && *text != '\n')
            text++;
        r.end = text;
        read_line(&r);
        if (r.error) {
            if (why)
                jot_text_f(why, "schedule, line %d: %s at \"%.*s\"", line, r.error,
                           (int)(r.end - r.p), r.p);
            return false;
        }
        text++;
    }
    return !k->mem->failed;
}
