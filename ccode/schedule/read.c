/* ccode/schedule/read.c - schedules from lines: those that were printed, and those that strategies
 * write over roles of axes.
 *
 *     %4: h:1p c:16 w:7 | p:1u q:1u w:1u c:1v          by names
 *     %$s: $o:1p $v:$V $b:$R | $k:1u $b:1u $v:1v       by roles, if the writer has some
 *
 *   requires  an open schedule       keeps  the kernel; adds buffers that lines ask for
 *
 * Read before: ccode/schedule/builder.h, ccode/schedule/text.c. After: ccode/stencil/stencil.c. */
#include "ccode/schedule/builder.h"

typedef struct {
    Writer *w;
    Sched *s;
    const char *p, *end;    /* the rest of the current line */
    const char *error;
    int store;              /* of a line for each store: the present one */
} Reader;

/* ---- words -------------------------------------------------------------------------------- */

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

/* The same, with nothing in between. */
static bool
next_is(Reader *r, char c)
{
    bool is = r->p < r->end && *r->p == c;
    r->p += is;
    return is;
}

/* A name; its length in *n, 0 for none. */
static const char *
word(Reader *r, size_t *n)
{
    const char *from;
    skip(r);
    from = r->p;
    while (r->p < r->end && jot_char_word(*r->p))
        r->p++;
    *n = (size_t)(r->p - from);
    return from;
}

static void
copy_name(Reader *r, char *name)
{
    size_t n;
    const char *text = word(r, &n);
    n = n < 31 ? n : 31;
    memcpy(name, text, n);
    name[n] = 0;
}

static bool
digit_next(const Reader *r)
{
    return r->p < r->end && *r->p >= '0' && *r->p <= '9';
}

static void
fail(Reader *r, const char *error)
{
    if (!r->error)
        r->error = error;
}

/* What stands behind a `$`; NULL: there is none. */
static const Role *
read_role(Reader *r)
{
    const Role *role;
    if (!next_is(r, '$'))
        return NULL;
    role = r->p < r->end && *r->p >= 'A' && *r->p <= 'z' ? &r->w->role[*r->p - 'A'] : NULL;
    if (!role) {
        fail(r, "a role is a letter");
        return r->w->role;
    }
    r->p++;
    return role;
}

static int64_t
number(Reader *r, int64_t otherwise)
{
    int64_t value = 0;
    const Role *role = read_role(r);
    if (role && role->kind != ROLE_NUMBER)
        fail(r, "a number expected");
    if (role)
        return role->number;
    if (!digit_next(r))
        return otherwise;
    for (; digit_next(r); r->p++)
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
read_axis(Reader *r)
{
    size_t n;
    const char *text = word(r, &n);
    for (int i = 0; n && i < SCHED_AXES; i++)
        if (jot_axis_is(r->s, i) && is_name(jot_axis_name(r->s, i), text, n))
            return i;
    fail(r, "an axis of that name does not exist");
    return -1;
}

static uint32_t
find_buf(Reader *r)
{
    size_t n;
    const char *text;
    if (r->p < r->end && *r->p == '$')
        return (uint32_t)number(r, 0);
    text = word(r, &n);
    for (uint32_t i = 1; n && i < r->s->k->bufs.n; i++)
        if (is_name(r->s->k->bufs.v[i].name, text, n))
            return i;
    fail(r, "a buffer of that name does not exist");
    return 0;
}

/* ---- index expressions -------------------------------------------------------------------- */

static Ix read_sum(Reader *r, int depth);

static Ix
role_index(Reader *r, const Role *role)
{
    switch (role->kind) {
    case ROLE_NUMBER: return jot_ix_const(r->s->k->ix, role->number);
    case ROLE_AXIS: return jot_ix_axis(r->s->k->ix, (int)role->number);
    case ROLE_INDEX: return role->ix;
    default: fail(r, "a number, an axis or an index expected"); return 0;
    }
}

static Ix
read_primary(Reader *r, int depth)
{
    IxPool *ix = r->s->k->ix;
    const Role *role;
    Ix value;
    int axis;
    if (depth > 40)
        return 0;
    if (eat(r, "-"))
        return jot_ix_scale(ix, read_primary(r, depth + 1), -1);
    if (eat(r, "(")) {
        value = read_sum(r, depth + 1);
        if (!eat(r, ")"))
            fail(r, "a parenthesis is not closed");
        return value;
    }
    skip(r);
    role = read_role(r);
    if (role)
        return role_index(r, role);
    if (digit_next(r))
        return jot_ix_const(ix, number(r, 0));
    axis = read_axis(r);
    return axis < 0 ? 0 : jot_ix_axis(ix, axis);
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

/* ---- places ------------------------------------------------------------------------------- */

/* As far as the index reaches. */
static int64_t
reach(const Sched *s, Ix at)
{
    int64_t ext[SCHED_AXES], lo, hi;
    Space space = {0};
    for (int a = 0; a < SCHED_AXES; a++)
        ext[a] = jot_axis_is(s, a) ? jot_axis_ext(s, a) : 1;
    space.n = SCHED_AXES;
    space.ext = ext;
    return jot_ix_range(s->k->ix, at, &space, &lo, &hi) ? hi + 1 : 0;
}

/* One or more dimensions: an index, or the axes of a role; #20: so many elements of each. */
static void
read_dim(Reader *r, const Stage *st, Dims *d)
{
    const char *from = r->p;
    const Role *role = read_role(r);
    int n = d->n;
    if (role && role->kind == ROLE_SET)
        jot_dims_axes(d, r->s, role->axes & jot_stage_free(r->s, st));
    else if (role && role->kind == ROLE_LOOPS)
        for (int i = 0; i < role->loops->n; i++)
            jot_dims_axis(d, r->s, role->loops->loop[i].axis);
    else if (!role || role->kind != ROLE_NONE) {
        Ix at;
        r->p = from;
        at = read_sum(r, 0);
        jot_dims_add(d, at, reach(r->s, at));
    }
    if (next_is(r, '#'))
        for (int64_t ext = number(r, 1); n < d->n && n < JOT_MAX_RANK; n++)
            d->ext[n] = ext;
}

static void
read_dims(Reader *r, const Stage *st, Dims *d)
{
    if (!eat(r, "["))
        fail(r, "[ expected");
    while (!r->error && !eat(r, "]")) {
        skip(r);
        read_dim(r, st, d);
        if (!eat(r, ",") && !(r->p < r->end && *r->p == ']'))
            fail(r, "] expected");
    }
}

/* A place in a buffer that is there. */
static Place
known_place(Reader *r, const Stage *st, PlaceKind kind)
{
    Place p = {0};
    Dims d = {{0}, {0}, 0};
    p.kind = (uint8_t)kind;
    p.buf = find_buf(r);
    read_dims(r, st, &d);
    if (d.n != r->s->k->bufs.v[p.buf].rank)
        fail(r, "an index per dimension expected");
    p.at = r->s->ixs.n;
    for (int i = 0; i < d.n && !r->error; i++)
        *(Ix *)jot_vec_push(r->s->k->mem, r->s->ixs) = d.ix[i];
    return p;
}

static Place
fresh_place(Reader *r, const Stage *st, PlaceKind kind, BufRole role)
{
    Place p = {0};
    Dims d = {{0}, {0}, 0};
    char name[32];
    bool numbered;
    copy_name(r, name);
    numbered = next_is(r, '%');
    read_dims(r, st, &d);
    if (r->error)
        return p;
    p = numbered ? jot_place_value(r->s, name, st->what, role, &d)
                 : jot_place_new(r->s, name, r->s->k->values.v[st->what].dtype, role, &d);
    p.kind = (uint8_t)kind;
    if (!p.buf)
        fail(r, "too many dimensions");
    return p;
}

static Place
read_place(Reader *r, const Stage *st, PlaceKind kind)
{
    if (eat(r, "scratch "))
        return fresh_place(r, st, kind, BUF_SCRATCH);
    return eat(r, "shared ") ? fresh_place(r, st, kind, BUF_SHARED) : known_place(r, st, kind);
}

/* ---- stages ------------------------------------------------------------------------------- */

static void
read_kind(Reader *r, SLoop *l)
{
    for (int i = 1; r->p < r->end && i <= LOOP_MATRIX; i++)
        if (*r->p == jot_loop_letter(i)) {
            l->kind = (uint8_t)i;
            r->p++;
            return;
        }
}

/* Those of a role, or one by name. */
static uint64_t
read_axes(Reader *r, const Role *role)
{
    int axis = role ? -1 : read_axis(r);
    if (!role)
        return axis < 0 ? 0 : (uint64_t)1 << axis;
    switch (role->kind) {
    case ROLE_AXIS: return (uint64_t)1 << role->number;
    case ROLE_SET: return role->axes;
    case ROLE_NONE: return 0;
    default: fail(r, "axes expected"); return 0;
    }
}

/* One loop, or those of a role, of which a set has the axes in `have`. */
static void
read_loops(Reader *r, Stage *st, uint64_t have)
{
    const Role *role = read_role(r);
    uint64_t axes;
    bool some = false;
    SLoop l = {0};
    if (role && role->kind == ROLE_LOOPS) {
        jot_stage_loops(st, role->loops->loop, role->loops->n);
        return;
    }
    axes = read_axes(r, role);
    if (role && role->kind == ROLE_SET)
        axes &= have;
    l.step = 1;
    if (next_is(r, ':')) {
        l.step = number(r, 1);
        some = next_is(r, '?');
        read_kind(r, &l);
    }
    for (int a = 0; a < SCHED_AXES && !r->error; a++)
        if ((axes >> a & 1) && (!some || jot_stage_left(r->s, st, a) > l.step)) {
            l.axis = (uint8_t)a;
            jot_stage_loops(st, &l, 1);
        }
}

static bool
read_what(Reader *r, Stage *st)
{
    const Kernel *k = r->s->k;
    st->store = r->p[-1] == '!';
    if (st->store && next_is(r, '*'))
        st->what = (uint32_t)r->store;
    else if (digit_next(r) || (r->p < r->end && *r->p == '$'))
        st->what = (uint32_t)number(r, 0);
    else {
        size_t n;
        const char *text = word(r, &n);
        for (uint32_t i = 1; i < k->values.n; i++)
            if (is_name(k->values.v[i].name, text, n))
                st->what = i;
    }
    if (st->store ? st->what >= k->stores.n : st->what == 0 || st->what >= k->values.n)
        fail(r, "a value or store of that number or name does not exist");
    return !r->error && eat(r, ":");
}

static uint8_t
read_ahead(Reader *r)
{
    bool given = r->p < r->end && *r->p == '$'; /* a role may say that nothing is */
    int64_t steps = number(r, 0);
    if (steps < !given || steps > UINT8_MAX)
        fail(r, "ahead of 1 to 255 steps expected");
    return (uint8_t)steps;
}

/* "i:8 | k i:1v" */
static void
stage_nest(Reader *r, Stage *st)
{
    uint64_t have = jot_stage_axes(r->s, st);
    bool bar = false;
    for (skip(r); r->p < r->end && !r->error && *r->p != ';'; skip(r)) {
        if (eat(r, "||")) {
            bar = true;
            st->part = st->nat = st->n;
        } else if (eat(r, "|")) {
            bar = true;
            st->nat = st->n;
        } else
            read_loops(r, st, have);
        if (st->n > STAGE_LOOPS)
            fail(r, "too many loops");
    }
    if (st->store || (!bar && !jot_stage_is_reduce(r->s, st)))
        st->nat = st->n;
}

static void
read_stage(Reader *r, bool combine)
{
    Stage st = {0};
    if (!read_what(r, &st)) {
        fail(r, ": expected");
        return;
    }
    st.phase = r->w->phase;
    st.combine = combine;
    stage_nest(r, &st);
    while (!r->error && eat(r, ";")) {
        if (eat(r, "keep "))
            st.acc = read_place(r, &st, PLACE_KEEP);
        else if (eat(r, "acc "))
            st.acc = read_place(r, &st, PLACE_MEM);
        else if (eat(r, "res "))
            st.res = read_place(r, &st, PLACE_MEM);
        else if (eat(r, "ahead "))
            st.ahead = read_ahead(r);
        else if (eat(r, "next "))
            st.next = read_ahead(r);
        else
            fail(r, "keep, acc, res, ahead or next expected");
    }
    if (!r->error && (combine || st.part) && !jot_stage_is_reduce(r->s, &st))
        fail(r, "partial results are a reduction's");
    if (!r->error)
        jot_stage_add(r->s, &st);
}

/* ---- lines -------------------------------------------------------------------------------- */

/* The axes of a set, all of them. */
static void
read_fuse(Reader *r)
{
    char name[32];
    int of[8], n = 0;
    copy_name(r, name);
    if (!eat(r, "="))
        fail(r, "= expected");
    for (skip(r); r->p < r->end && n < 8 && !r->error; skip(r)) {
        uint64_t axes = read_axes(r, read_role(r));
        for (int a = 0; a < SCHED_AXES && n < 8; a++)
            if (axes >> a & 1)
                of[n++] = a;
    }
    if (!r->error && jot_sched_fuse(r->s, name, n, of) < 0)
        fail(r, "axes cannot be fused");
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
        fail(r, "a layout that covers each dimension expected");
}

/* A number behind a word of its own. */
static bool
read_fact(Reader *r, const char *name, int *fact)
{
    if (!eat(r, name))
        return false;
    skip(r);
    *fact = (int)number(r, 1);
    return true;
}

static void
read_line(Reader *r)
{
    Sched *s = r->s;
    skip(r);
    if (r->p == r->end || read_fact(r, "lanes ", &s->lanes) ||
        read_fact(r, "buffers ", &s->buffers) || read_fact(r, "registers ", &s->registers) ||
        read_fact(r, "warps ", &s->warps) || read_fact(r, "group ", &s->group))
        return;
    if (eat(r, "layout "))
        read_layout(r);
    else if (eat(r, "fuse "))
        read_fuse(r);
    else if (eat(r, "fma"))
        s->fma = true;
    else if (eat(r, "copies"))
        s->copies = true;
    else if (eat(r, "phase"))
        r->w->phase++;
    else if (eat(r, "+%"))
        read_stage(r, true);
    else if (eat(r, "%") || eat(r, "!"))
        read_stage(r, false);
    else
        fail(r, "lanes, fma, group, warps, copies, buffers, registers, layout, fuse, phase, "
                "%, +% or ! expected");
}

static void
read_text(Writer *w, const char *text, size_t n)
{
    Reader r = {0};
    const char *end = text + n;
    r.w = w;
    r.s = w->s;
    for (int line = 1; text < end && !w->refused; line++) {
        const char *from = text;
        int times = text[0] == '!' && text + 1 < end && text[1] == '*' ? (int)r.s->k->stores.n : 1;
        while (text < end && *text != '\n')
            text++;
        for (r.store = 0; r.store < times && !r.error; r.store++) {
            r.p = from;
            r.end = text;
            read_line(&r);
        }
        if (r.error && w->why)
            jot_text_f(w->why, "schedule, line %d: %s at \"%.*s\"", line, r.error,
                       (int)(r.end - r.p), r.p);
        w->refused = r.error != NULL;
        text++;
    }
}

JOT_FN void
jot_write_lines(Writer *w, const char *lines)
{
    read_text(w, lines, jot_str_len(lines));
}

JOT_FN bool
jot_sched_read(Sched *s, Kernel *k, const char *text, size_t n, Text *why)
{
    Writer w;
    jot_write_open(&w, s, k, 1);
    w.why = why;
    read_text(&w, text, n);
    return !w.refused && !k->mem->failed;
}
