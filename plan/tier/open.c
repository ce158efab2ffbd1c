/* plan/tier/open.c - one kernel for many extents: what of a text is a number, and which numbers are
 * arguments.
 *
 *     met with 12 rows     for (i = 0; i < [12]; i++)  y[i*[64]] = x[i*[64]] * [0.25]
 *     ... and with 7       for (i = 0; i < [7]; i++)   y[i*[64]] = x[i*[64]] * [0.25]
 *
 *     one text for both    const jot_i64 n = ints[0];
 *                          for (i = 0; i < n; i++)  y[i*64] = x[i*64] * 0.25
 *
 * A group that was met before, but for its extents, is printed with marks around its numbers
 * (ccode/emit/any.c). Texts that agree in all but these are one pattern. Of a pattern the numbers
 * that were the same whenever it was met are text, the others arguments; those that always changed
 * together are one. So blocks, packed panels and what else does not follow from the extents keep
 * their numbers, and the code is as good as that of one shape.
 *
 * Each shape's text is derived from its own extents and is the pattern's with its own numbers in
 * it: that a kernel is right for a shape does not depend on what else it was compiled for. A number
 * that changes later widens the pattern; who has the narrower kernel keeps it.
 *
 * Where jot_Config.open_sizes asks for it.
 *
 *   requires  marked texts      keeps  what is computed      breaks  nothing
 * Read before: plan/text.c, ccode/emit/any.c. After: plan/kernel.c. */
#include "plan/parts.h"

enum { OPEN_BUCKETS = 256, OPEN_MOST = 4096, OPEN_CLASSES = 1024, OPEN_AXES = 16 };
enum { OPEN_DIGITS = 17 }; /* of a mark */

typedef struct { jot_Scalar value; uint8_t dtype, arg; } OpenNumber; /* arg 0: text, else 1 + its */
typedef struct OpenText OpenText;
struct OpenText {
    OpenText *next;
    uint64_t hash;
    char *text;            /* without what is between the marks */
    size_t nbytes;
    OpenNumber *number;    /* as it was met last */
    uint32_t n;
    int nargs;
};
typedef struct {
    uint64_t hash;
    uint64_t open;         /* which extents have changed */
    uint64_t plans;        /* that were there before the one that met it first */
    int n;
    int64_t ext[OPEN_AXES];
} OpenClass;
struct PlanOpens {
    OpenText *bucket[OPEN_BUCKETS];
    uint32_t n;
    Vec(OpenClass) classes;
};

/* ---- kernels but for their extents --------------------------------------------------------- */

static struct PlanOpens *
open_table(jot_Ctx *ctx)
{
    if (!ctx->plans->opens)
        ctx->plans->opens = jot_mem_new(&ctx->mem, 1, sizeof *ctx->plans->opens);
    return ctx->plans->opens;
}

static bool
open_allowed(const Make *m)
{
    const jot_Config *c = &m->ctx->config;

    return m->dialect->vectors && !m->dialect->device && !m->plan->exact && !c->deterministic
        && c->open_sizes > 0 && !c->lanes && c->tune <= 0
        && !(c->schedule && c->schedule[0] == 'r');
}

/* What is alike by chance is printed with marks for nothing, and no more. */
static uint64_t
open_hash(const Make *m, const FuseGroup *g)
{
    uint64_t hash = jot_hash_u64(g->n, g->rank);
    uint32_t i;

    for (i = g->first; i < g->first + g->n; i++) {
        const Node *n = jot_node(m->ctx, m->s->list.v[m->fusion->member[i]]);
        uint64_t word = (uint64_t)n->kind | (uint64_t)n->op << 8 | (uint64_t)n->dtype << 16
                      | (uint64_t)n->rank << 24 | (uint64_t)n->ninputs << 32
                      | (uint64_t)m->fusion->place[m->fusion->member[i]] << 40;

        hash = jot_hash_u64(hash, word);
    }
    return hash;
}

static uint64_t
open_hash_own(const Kernel *k, const char *what)
{
    uint64_t hash = jot_hash_u64(jot_hash(k->axes.n, what, jot_str_len(what)), k->values.n);
    uint32_t i;

    for (i = 1; i < k->bufs.n; i++)
        hash = jot_hash_u64(hash, (uint64_t)k->bufs.v[i].dtype << 8 | k->bufs.v[i].rank);
    return hash;
}

/* Is this kernel of the class: are its extents the same but for those that have changed before, and
 * for one number, which has become another wherever it stands? Two layers of a network differ in
 * more, or are of one plan. */
static bool
open_fits(const OpenClass *c, uint64_t hash, int n, const int64_t *ext)
{
    int64_t was = 0, is = 0;
    int d, same = 0;

    if (c->hash != hash || c->n != n)
        return false;
    for (d = 0; d < n; d++) {
        same += c->ext[d] == ext[d];
        if (c->ext[d] == ext[d] || c->open >> d & 1)
            continue;
        if (was && (was != c->ext[d] || is != ext[d]))
            return false;
        was = c->ext[d];
        is = ext[d];
    }
    return same || n < 2;
}

static bool
open_new(jot_Ctx *ctx, uint64_t hash, int n, const int64_t *ext)
{
    struct PlanOpens *all = ctx->plans->opens;
    OpenClass *c;

    if (all->classes.n == OPEN_CLASSES || !jot_vec_reserve(&ctx->mem, all->classes, 1))
        return false;
    c = &all->classes.v[all->classes.n++];
    memset(c, 0, sizeof *c);
    c->hash = hash;
    c->plans = ctx->stats.plans;
    c->n = n;
    memcpy(c->ext, ext, (size_t)n * sizeof *ext);
    return false;
}

/* True: kernels of its class were met before, and m->open_ext are the extents that have changed. */
static bool
open_met(Make *m, uint64_t hash, int n, const int64_t *ext)
{
    struct PlanOpens *all = open_allowed(m) && n <= OPEN_AXES ? open_table(m->ctx) : NULL;
    OpenClass *c;
    uint32_t i;
    int d;

    m->nopen = 0;
    for (i = 0; all && i < all->classes.n
                && (all->classes.v[i].plans == m->ctx->stats.plans
                    || !open_fits(&all->classes.v[i], hash, n, ext)); i++)
        ;
    if (!all || i == all->classes.n)
        return all && open_new(m->ctx, hash, n, ext);
    c = &all->classes.v[i];
    for (d = 0; d < n; d++) {
        c->open |= (uint64_t)(c->ext[d] != ext[d]) << d;
        if (c->open >> d & 1)
            m->open_ext[m->nopen++] = ext[d];
    }
    return m->nopen > 0;
}

JOT_FN void
jot_open_group(Make *m, uint32_t group)
{
    const FuseGroup *g = &m->fusion->groups[group];

    m->open = open_met(m, open_hash(m, g), (int)g->rank, g->ext);
}

JOT_FN void
jot_open_own(Make *m, const Kernel *k, const char *what)
{
    int64_t ext[KERNEL_AXES];
    uint32_t i;

    for (i = 0; i < k->axes.n; i++)
        ext[i] = k->axes.v[i].ext;
    m->open = open_met(m, open_hash_own(k, what), (int)k->axes.n, ext);
}

JOT_FN void
jot_open_axes(const Make *m, Kernel *k)
{
    uint32_t i;
    int d;

    for (i = 0; m->open && i < k->axes.n; i++)
        for (d = 0; d < m->nopen; d++)
            k->axes.v[i].open |= k->axes.v[i].ext == m->open_ext[d];
}

/* ---- marked texts --------------------------------------------------------------------------- */

static uint64_t
open_hex(const char *s, int n)
{
    uint64_t x = 0;

    for (; n > 0; n--, s++)
        x = x << 4 | (uint64_t)(*s <= '9' ? *s - '0' : *s - 'a' + 10);
    return x;
}

static void
open_free(Mem *mem, OpenText *t)
{
    jot_mem_free(mem, t->text, t->nbytes);
    jot_mem_free(mem, t->number, t->n * sizeof *t->number);
    jot_mem_free(mem, t, sizeof *t);
}

static void
open_sweep(Mem *mem, struct PlanOpens *all)
{
    int i;

    for (i = 0; i < OPEN_BUCKETS; i++)
        while (all->bucket[i]) {
            OpenText *t = all->bucket[i];

            all->bucket[i] = t->next;
            open_free(mem, t);
        }
    all->n = 0;
}

JOT_FN void
jot_opens_close(jot_Ctx *ctx)
{
    struct PlanOpens *all = ctx->plans->opens;

    if (!all)
        return;
    open_sweep(&ctx->mem, all);
    jot_vec_free(&ctx->mem, all->classes);
    jot_mem_free(&ctx->mem, all, sizeof *all);
    ctx->plans->opens = NULL;
}

/* Numbers apart from the rest; NULL: memory was refused. */
static OpenText *
open_read(Mem *mem, const Text *marked)
{
    OpenText *t = jot_mem_new(mem, 1, sizeof *t);
    size_t i, n = 0;
    uint32_t at = 0;

    for (i = 0; t && i < marked->n; i++)
        t->n += marked->s[i] == ANY_NUMBER;
    if (!t)
        return NULL;
    t->nbytes = marked->n + 1;
    t->text = jot_mem_new(mem, t->nbytes, 1);
    t->number = t->n ? jot_mem_new(mem, t->n, sizeof *t->number) : NULL;
    if (!t->text || (t->n && !t->number)) {
        t->n = t->number ? t->n : 0;
        t->nbytes = t->text ? t->nbytes : 0;
        open_free(mem, t);
        return NULL;
    }
    for (i = 0; i < marked->n; i++) {
        t->text[n++] = marked->s[i];
        if (marked->s[i] != ANY_NUMBER)
            continue;
        t->number[at].dtype = (uint8_t)open_hex(marked->s + i + 1, 1);
        t->number[at++].value.u = open_hex(marked->s + i + 2, OPEN_DIGITS - 1);
        while (marked->s[i] != ANY_END)
            i++;
    }
    t->hash = jot_hash(1, t->text, n); /* what follows is 0 */
    return t;
}

static OpenText *
open_find(struct PlanOpens *all, const OpenText *t)
{
    OpenText *old = all->bucket[t->hash % OPEN_BUCKETS];

    for (; old; old = old->next)
        if (old->hash == t->hash && old->n == t->n && jot_str_eq(old->text, t->text))
            return old;
    return NULL;
}

static bool
open_together(const OpenNumber *old, const OpenNumber *new, uint32_t i, uint32_t j)
{
    bool same = old[i].arg ? old[i].arg == old[j].arg
                           : !old[j].arg && old[i].value.u == old[j].value.u;

    return same && old[i].dtype == old[j].dtype && new[i].value.u == new[j].value.u;
}

/* Which numbers are arguments, now that these are met, too; false: too many. */
static bool
open_widen(OpenText *old, OpenText *new, int room)
{
    uint32_t i, j;
    int nargs = 0;

    for (i = 0; i < new->n; i++) {
        if (!old->number[i].arg && old->number[i].value.u == new->number[i].value.u)
            continue;
        for (j = 0; j < i && !(new->number[j].arg && open_together(old->number, new->number, i, j));
             j++)
            ;
        if (j == i && nargs == room)
            return false;
        new->number[i].arg = (uint8_t)(j < i ? new->number[j].arg : ++nargs);
    }
    for (i = 0; i < new->n; i++)
        old->number[i] = new->number[i];
    old->nargs = nargs;
    return true;
}

/* ---- the text ------------------------------------------------------------------------------- */

static void
open_name(Text *out, int arg)
{
    jot_text_f(out, arg ? "n_%d" : "n", arg);
}

static void
open_declare(const OpenText *t, int first, Text *out)
{
    uint32_t i;
    int arg;

    for (arg = 0; arg < t->nargs; arg++) {
        for (i = 0; t->number[i].arg != arg + 1; i++)
            ;
        jot_text_f(out, "    const %s ", t->number[i].dtype < JOT_F16 ? "jot_i64"
                                       : t->number[i].dtype == JOT_F64 ? "double" : "float");
        open_name(out, arg);
        if (t->number[i].dtype < JOT_F16)
            jot_text_f(out, " = ints[%d];\n", first + arg);
        else
            jot_text_f(out, " = %s((const jot_Scalar *)(const void *)ints)[%d].f;\n",
                       t->number[i].dtype == JOT_F64 ? "" : "(float)", first + arg);
    }
}

/* t NULL: all numbers are text. */
static void
open_spell(const OpenText *t, const Text *marked, int first, Text *out)
{
    uint32_t at = 0;
    size_t i, from = 0;

    for (i = 0; i < marked->n; i++) {
        if (marked->s[i] > ANY_HEAD || marked->s[i] < ANY_NUMBER)
            continue;
        jot_text_put(out, marked->s + from, i - from);
        if (marked->s[i] == ANY_HEAD && t)
            open_declare(t, first, out);
        if (marked->s[i] == ANY_NUMBER) {
            int arg = t ? t->number[at++].arg : 0;

            i += OPEN_DIGITS;
            if (arg) {
                open_name(out, arg - 1);
                while (marked->s[i + 1] != ANY_END)
                    i++;
            }
        }
        from = i + 1;
    }
    jot_text_put(out, marked->s + from, marked->n - from);
}

JOT_FN bool
jot_open_text(Make *m, Text *text, EmitInfo *info)
{
    Mem *mem = &m->ctx->mem;
    struct PlanOpens *all = open_table(m->ctx);
    OpenText *new = all ? open_read(mem, text) : NULL, *t = new ? open_find(all, new) : NULL;
    Text out = {NULL, NULL, 0, 0};
    int first = info->nints;
    uint32_t i;
    bool ok = new != NULL;

    out.mem = mem;
    if (t)
        ok = open_widen(t, new, EMIT_INTS - first);
    open_spell(t && ok ? t : NULL, text, first, &out);
    for (i = 0; t && ok && i < t->n; i++)
        if (t->number[i].arg)
            info->ints[first + t->number[i].arg - 1] = t->number[i].value;
    info->nints += t && ok ? t->nargs : 0;
    if (new && !t && all->n == OPEN_MOST)
        open_sweep(&m->ctx->mem, all);
    if (new && !t) {
        new->next = all->bucket[new->hash % OPEN_BUCKETS];
        all->bucket[new->hash % OPEN_BUCKETS] = new;
        all->n++;
    } else if (new)
        open_free(mem, new);
    jot_text_free(text);
    *text = out;
    return !mem->failed;
}
