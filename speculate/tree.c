/* speculate/tree.c - the tree of questions and answers: found, grown, cut where it was not used for
 * longest; as text.
 *
 *     root -- int +16 --4--> array --> end           key: how the question before was answered
 *                     --3--> array --> end
 *
 * Read before: speculate/spec.h. After: speculate/host.c. */
#include <stdarg.h>
#include "speculate/spec.h"

const char *const jot_spec_names[SPEC_KINDS] = {
    "root", "int", "float", "number", "pointer", "array", "var", "choose", "test", "item",
    "item_int", "put", "after", "end"
};

/* ---- memory ---- */

static void *
tree_room(Spec *s, size_t nbytes, jot_Var *bytes)
{
    *bytes = jot_param(s->ctx, JOT_U8, JOT_SHAPE((int64_t)nbytes), NULL);
    void *p = (void *)(uintptr_t)jot_data(*bytes);
    if (p)
        s->made++;
    else
        jot_free(*bytes);
    return p;
}

static void
tree_list_free(Spec *s, SpecList *list)
{
    jot_free(list->bytes);
    if (list->run == s->run)
        s->made--;
    else
        s->ended++;
}

JOT_FN void *
jot_spec_add(Spec *s, SpecList *list, size_t nbytes)
{
    if (list->n == list->cap) {
        uint32_t cap = list->cap ? 2 * list->cap : 16;
        jot_Var bytes;
        char *v = tree_room(s, cap * nbytes, &bytes), *from = list->v;
        if (!v)
            return NULL;
        for (size_t k = 0; k < list->n * nbytes; k++)
            v[k] = from[k];
        if (from)
            tree_list_free(s, list);
        list->run = s->run;
        list->bytes = bytes;
        list->v = v;
        list->cap = cap;
    }
    char *p = (char *)list->v + list->n++ * nbytes;
    for (size_t k = 0; k < nbytes; k++)
        p[k] = 0;
    return p;
}

JOT_FN void
jot_spec_empty(Spec *s, SpecList *list)
{
    if (list->v)
        tree_list_free(s, list);
    list->v = NULL;
    list->n = list->cap = 0;
}

/* ---- text ---- */

static char *
tree_put(char *to, const char *end, const char *text)
{
    while (*text && to < end)
        *to++ = *text++;
    return to;
}

static char *
tree_put_int(char *to, const char *end, int64_t v)
{
    char digits[24], *d = digits + sizeof digits - 1;
    uint64_t left = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    *d = 0;
    do
        *--d = (char)('0' + left % 10);
    while (left /= 10);
    if (v < 0)
        *--d = '-';
    return tree_put(to, end, d);
}

/* Of %s, %d (int) and %l (int64_t); returns the end, where a 0 stands. */
static char *
tree_text(char *to, size_t nbytes, const char *format, va_list args)
{
    char *end = to + nbytes - 1, one[2] = {0, 0};
    for (; *format; format++) {
        one[0] = *format;
        if (*format != '%')
            to = tree_put(to, end, one);
        else if (*++format == 's')
            to = tree_put(to, end, va_arg(args, const char *));
        else
            to = tree_put_int(to, end, *format == 'l' ? va_arg(args, int64_t) : va_arg(args, int));
    }
    *to = 0;
    return to;
}

JOT_FN bool
jot_spec_say(Spec *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tree_text(s->why, sizeof s->why, format, args);
    va_end(args);
    return false;
}

static void
tree_line(Spec *s, const char *format, ...)
{
    char line[SPEC_WHY];
    va_list args;
    va_start(args, format);
    jot_print_text(s->ctx, line, (size_t)(tree_text(line, sizeof line, format, args) - line));
    va_end(args);
}

/* ---- nodes ---- */

JOT_FN SpecNode *
jot_spec_child(SpecNode *at, uint64_t key)
{
    for (SpecNode **link = &at->child; *link; link = &(*link)->next) {
        SpecNode *c = *link;
        if (c->key != key)
            continue;
        *link = c->next; /* the next time it is the first */
        c->next = at->child;
        at->child = c;
        at->fresh -= at->fresh > 0;
        return c;
    }
    return NULL;
}

static bool
tree_more(Spec *s)
{
    jot_Var bytes;
    SpecChunk *c = tree_room(s, sizeof *c, &bytes);
    if (!c)
        return false;
    c->bytes = bytes;
    c->next = s->chunks;
    s->chunks = c;
    for (int k = SPEC_CHUNK; k-- > 0;) {
        c->item[k].next = s->unused;
        s->unused = &c->item[k];
    }
    return true;
}

JOT_FN SpecNode *
jot_spec_grow(Spec *s, SpecNode *at, uint64_t key, const SpecAsk *is)
{
    static const SpecNode none;
    if (at->fresh >= SPEC_FRESH || (!s->unused && !tree_more(s)))
        return NULL;
    at->fresh++;
    SpecNode *n = s->unused;
    s->unused = n->next;
    *n = none;
    n->is = *is;
    n->key = key;
    n->up = at;
    n->next = at->child;
    at->child = n;
    s->stats.answers++;
    return n;
}

JOT_FN void
jot_spec_drop(Spec *s, SpecNode *at)
{
    if (!at->f.slot)
        return;
    if (jot_func_ok(at->f))
        jot_func_free(at->f);
    at->f.slot = 0;
    at->visits = 1; /* once more makes it a function again */
    s->stats.live--;
}

/* One that nothing follows. */
static void
tree_cut(Spec *s, SpecNode *n)
{
    SpecNode **link = &n->up->child;
    while (*link != n)
        link = &(*link)->next;
    *link = n->next;
    jot_spec_drop(s, n);
    n->is.kind = SPEC_ROOT;
    n->next = s->unused;
    s->unused = n;
    s->stats.answers--;
}

JOT_FN void
jot_spec_prune(Spec *s, SpecNode *at)
{
    SpecNode *n = at;
    while (at->child) {
        while (n->child)
            n = n->child;
        SpecNode *up = n->up;
        tree_cut(s, n);
        n = up;
    }
}

/* Of those that have a function, or of the last ones of their way, what was not used for longest;
 * NULL: this call uses them all. */
static SpecNode *
tree_oldest(Spec *s, bool functions)
{
    SpecNode *old = NULL;
    for (SpecChunk *c = s->chunks; c; c = c->next)
        for (int k = 0; k < SPEC_CHUNK; k++) {
            SpecNode *n = &c->item[k];
            bool counts = n->is.kind != SPEC_ROOT && (functions ? n->f.slot != 0 : !n->child);
            if (counts && n->used < s->clock && (!old || n->used < old->used))
                old = n;
        }
    return old;
}

JOT_FN void
jot_spec_bound(Spec *s)
{
    SpecNode *n;
    while (s->stats.live > (uint32_t)s->how.functions && (n = tree_oldest(s, true))) {
        jot_spec_drop(s, n);
        n->drops += n->drops < SPEC_DROPS;
        s->stats.dropped++;
    }
    while (s->stats.answers > (uint32_t)s->how.answers && (n = tree_oldest(s, false)))
        while (n != &s->root && !n->child && n->used < s->clock) {
            SpecNode *up = n->up;
            s->stats.dropped += n->f.slot != 0;
            tree_cut(s, n);
            n = up;
        }
}

JOT_FN void
jot_spec_close(Spec *s)
{
    jot_spec_prune(s, &s->root);
    SpecList *lists[] = {&s->blocks, &s->inputs, &s->outputs, &s->afters, &s->ins, &s->outs};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        jot_spec_empty(s, lists[k]);
    for (SpecChunk *c = s->chunks, *next; c; c = next) {
        next = c->next;
        jot_free(c->bytes);
    }
    jot_free(s->bytes);
}

/* ---- as text ---- */

static void
tree_print_one(Spec *s, const SpecNode *n, int depth)
{
    char indent[64];
    int k = 0;
    for (; k < 2 * depth && k < 62; k++)
        indent[k] = ' ';
    indent[k] = 0;
    const char *what = n->f.slot ? ", a function"
                     : n->strikes >= SPEC_STRIKES ? ", imperative" : "";
    if (n->is.kind == SPEC_INT || n->is.kind == SPEC_POINTER || n->is.kind == SPEC_FLOAT ||
        n->is.kind == SPEC_NUMBER || n->is.kind == SPEC_ARRAY || n->is.kind == SPEC_PUT ||
        n->is.kind == SPEC_VAR)
        tree_line(s, "%s%l: %s of block %d + %l%s\n", indent, (int64_t)n->key,
                  jot_spec_names[n->is.kind], (int)n->is.block, (int64_t)n->is.off,
                  n->any ? ", any" : "");
    else
        tree_line(s, "%s%l: %s%s\n", indent, (int64_t)n->key, jot_spec_names[n->is.kind], what);
}

/* A node after its `up`, siblings at the depth of the first. */
bool
jot_spec_print(jot_Spec spec)
{
    Spec *s = jot_spec_ok(spec) ? spec.record : NULL;
    int depth = 0;
    if (!s)
        return false;
    tree_line(s, "speculation: %l calls, %l replays, %d functions%s%s\n", (int64_t)s->stats.calls,
              (int64_t)s->stats.replays, (int)s->stats.live, s->off ? "; imperative: " : "",
              s->off ? s->why : "");
    for (const SpecNode *n = s->root.child; n;) {
        tree_print_one(s, n, depth);
        bool only = n->child && !n->child->next;
        if (n->child) {
            depth += !only;
            n = n->child;
            continue;
        }
        while (n != &s->root && !n->next) {
            const SpecNode *up = n->up;
            depth -= up->child && up->child->next ? 1 : 0;
            n = up;
        }
        n = n->next;
    }
    return true;
}
