/* command/dumps.c - the engine's dumps read back (docs/walk.md shows them).
 *
 * A plan's steps do not say which group they are of. A step that copies reads one variable and
 * computes nothing; of the others each goes to the first group without a step that reads the same
 * leaves and makes the same results: of equal groups one is as good as another.
 *
 * Read before: dumps.h. After: draw.c. */
#include "command/dumps.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for one more, cleared; NULL: no memory. */
static void *
list_add(void *list, int *n, size_t each)
{
    char **v = list;

    if ((*n & (*n - 1)) == 0) {
        char *more = realloc(*v, (size_t)(*n ? 2 * *n : 1) * each);
        if (!more)
            return NULL;
        *v = more;
    }
    return memset(*v + (size_t)(*n)++ * each, 0, each);
}

int
dumps_node(const Dumps *d, int id)
{
    for (int k = 0; k < d->nodes; k++)
        if (d->node[k].id == id)
            return k;
    return -1;
}

/* ---- lines -------------------------------------------------------------------------------- */

/* "  %4 = f32 (2, 3) mul %2 %3  ; name  (asked)" */
static bool
read_node(Dumps *d, char *s)
{
    DumpNode *n = list_add(&d->node, &d->nodes, sizeof *n);
    char *at = strstr(s, " = "), *end, *note;

    if (!n || !at)
        return n != NULL;
    n->id = atoi(s + 3);
    n->line = at + 3;
    end = strchr(n->line, ')');
    snprintf(n->shape, sizeof n->shape, "%.*s", end ? (int)(end + 1 - n->line) : 0, n->line);
    at = end ? end + 1 : at;
    at += strspn(at, " ");
    snprintf(n->op, sizeof n->op, "%.*s", (int)strcspn(at, " "), at);
    if (!strncmp(at, "reduce ", 7))
        snprintf(n->op, sizeof n->op, "%.*s", (int)strcspn(at + 7, " "), at + 7);
    note = strstr(at, "  ; ");
    n->asked = strstr(at, "  (asked)") != NULL;
    for (char *p = at; (p = strchr(p, '%')) != NULL && (!note || p < note)
                       && n->nreads < DUMP_READS; p++)
        if (p[1] >= '0' && p[1] <= '9' && p[-1] == ' ')
            n->reads[n->nreads++] = atoi(p + 1);
    if (note) {
        char *until = strstr(note, "  (asked)");
        n->name = note + 4;
        if (until)
            *until = 0;
    }
    return true;
}

/* "    stored  %4 = ..." of the group that was opened last, unless they are "in each". */
static void
read_member(Dumps *d, const char *s, bool each)
{
    int at = dumps_node(d, atoi(strchr(s, '%') + 1));

    if (at < 0 || each)
        return;
    d->node[at].group = d->groups - 1;
    d->node[at].stored = !strncmp(s + 4, "stored", 6);
}

/* "  v3 temp 300 bytes at 0, steps 0..1", "  v0 leaf %1", "  v3 copy of %3", "  v18 asked %65" */
static bool
read_var(Dumps *d, const char *s)
{
    DumpVar *v = list_add(&d->var, &d->vars, sizeof *v);
    const char *at = strchr(s, ' ') ? strchr(s + 2, ' ') : NULL;

    if (!v || !at)
        return v != NULL;
    v->kind = at[1];
    v->node = strchr(at, '%') ? atoi(strchr(at, '%') + 1) : 0;
    v->bytes = v->kind == 't' ? strtod(at + 6, NULL) : 0;
    return true;
}

/* "  step 3 NAME (operators): v1 v3 v5 v4" */
static bool
read_step(Dumps *d, char *s)
{
    DumpStep *t = list_add(&d->step, &d->steps, sizeof *t);
    char *name = strchr(s + 7, ' '), *what, *args;

    if (!t || !name)
        return t != NULL;
    what = strstr(++name, " (");
    args = what ? strstr(what, "): ") : NULL;
    if (!args)
        return true;
    snprintf(t->function, sizeof t->function, "%.*s", (int)(what - name), name);
    *args = 0;
    t->what = what + 2;
    t->var = malloc(sizeof *t->var * (strlen(args + 3) + 1));
    for (char *p = args + 2; t->var && (p = strstr(p, " v")) != NULL; p += 2) {
        int v = atoi(p + 2);
        if (v >= 0 && v < d->vars)
            t->var[t->vars++] = v;
    }
    return t->var != NULL;
}

/* ---- what belongs together ---------------------------------------------------------------- */

/* A function's text begins at its comment and ends with the line "}". It is found again by name. */
typedef struct { char name[40]; char *text; } DumpText;
typedef struct { DumpText *v; int n; } DumpTexts;

static char *
text_of(const DumpTexts *t, const char *name)
{
    for (int k = t->n; k-- > 0;)
        if (!strcmp(t->v[k].name, name))
            return t->v[k].text;
    return NULL;
}

/* The leaves and results of a group or a step, as a sum that does not depend on their order. */
static unsigned long
mixed(int id, bool result)
{
    unsigned long h = (unsigned long)id * 2654435761u + result;

    return (h ^ h >> 15) * 40503u;
}

static unsigned long
read_mix(const Dumps *d, int id, int depth, unsigned char *seen)
{
    int at = dumps_node(d, id);
    unsigned long h = 0;

    if (at < 0 || seen[at] || depth > 400)
        return 0;
    seen[at] = 1;
    if (!strcmp(d->node[at].op, "leaf"))
        return mixed(id, false);
    for (int k = 0; !d->node[at].group && k < d->node[at].nreads; k++)
        h += read_mix(d, d->node[at].reads[k], depth + 1, seen);
    return h;
}

static unsigned long
group_mix(const Dumps *d, int group, unsigned char *seen)
{
    unsigned long h = 0;

    memset(seen, 0, (size_t)d->nodes);
    for (int k = 0; k < d->nodes; k++)
        if (d->node[k].group == group) {
            h += d->node[k].asked ? mixed(d->node[k].id, true) : 0;
            for (int i = 0; i < d->node[k].nreads; i++)
                h += read_mix(d, d->node[k].reads[i], 0, seen);
        }
    return h;
}

static unsigned long
step_mix(const Dumps *d, const DumpStep *s)
{
    unsigned long h = 0;

    for (int k = 0; k < s->vars; k++) {
        const DumpVar *v = &d->var[s->var[k]];
        int i = 0;
        while (i < k && (d->var[s->var[i]].node != v->node || !v->node))
            i++;
        if (v->node && i == k)
            h += mixed(v->node, v->kind == 'a');
    }
    return h;
}

static bool
is_copy(const DumpStep *s)
{
    static const char *const words[] = {"border", "pack", "copy", "zero", "winograd"};

    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (!strncmp(s->what, words[k], strlen(words[k])))
            return true;
    return false;
}

static bool
match_groups(Dumps *d)
{
    unsigned char *seen = malloc((size_t)d->nodes + 1);
    unsigned long *mix = malloc(sizeof *mix * (size_t)(d->groups + 1));

    for (int g = 1; seen && mix && g < d->groups; g++)
        mix[g] = group_mix(d, g, seen);
    for (int g = 1; g < d->groups; g++)
        d->group[g].step = -1;
    for (int k = 0; seen && mix && k < d->steps; k++) {
        unsigned long h = step_mix(d, &d->step[k]);
        for (int g = 1; !is_copy(&d->step[k]) && !d->step[k].group && g < d->groups; g++)
            if (d->group[g].step < 0 && mix[g] == h) {
                d->group[g].step = k;
                d->step[k].group = g;
            }
    }
    free(mix);
    free(seen);
    return seen && mix;
}

/* A step writes what it is the first to name, but for leaves; and one that copies, its last. */
bool
dumps_writes(const Dumps *d, int step, int var)
{
    const DumpStep *s = &d->step[step];

    return d->var[var].kind != 'l'
        && (d->var[var].first == step || (is_copy(s) && s->vars && s->var[s->vars - 1] == var));
}

static void
find_first(Dumps *d)
{
    for (int k = d->steps; k-- > 0;)
        for (int i = 0; i < d->step[k].vars; i++)
            d->var[d->step[k].var[i]].first = k;
}

static bool
read_lines(Dumps *d, DumpTexts *texts)
{
    bool ok = true, each = false, graph = false, seen = false;
    char *s = d->text, *end, *last = NULL;

    for (; ok && *s; s = end) {
        end = s + strcspn(s, "\n");
        if (*end)
            *end++ = 0;
        if (last) { /* inside a function: its lines stay together */
            if (end > s && end[-1] == 0 && strcmp(s, "}"))
                end[-1] = '\n';
            if (!strcmp(s, "}"))
                last = NULL;
            continue;
        }
        if (!strncmp(s, "/* jot_k_", 9)) {
            DumpText *t = list_add(&texts->v, &texts->n, sizeof *t);
            ok = t != NULL;
            if (ok)
                snprintf(t->name, sizeof t->name, "%.*s", (int)strcspn(s + 3, ":"), s + 3);
            if (ok)
                t->text = last = s;
            end[-1] = '\n';
        } else if (!strncmp(s, "graph: ", 7)) {
            graph = !seen; /* of the first evaluation alone */
        } else if (!strncmp(s, "  %", 3) && graph) {
            ok = read_node(d, s);
        } else if (!strncmp(s, "group ", 6)) {
            DumpGroup *g = NULL;
            graph = false, seen = true, each = false;
            if (!d->groups)
                ok = list_add(&d->group, &d->groups, sizeof *g) != NULL;
            ok = ok && (g = list_add(&d->group, &d->groups, sizeof *g)) != NULL;
            if (ok)
                g->over = strstr(s, "over ") ? strstr(s, "over ") + 5 : s;
        } else if (!strncmp(s, "in each group", 13)) {
            each = true;
        } else if (!strncmp(s, "    ", 4) && strchr(s, '%') && d->groups) {
            read_member(d, s, each);
        } else if (!strncmp(s, "  v", 3) && s[3] >= '0' && s[3] <= '9') {
            ok = read_var(d, s);
        } else if (!strncmp(s, "  step ", 7)) {
            ok = read_step(d, s);
        }
    }
    return ok;
}

bool
dumps_read(Dumps *d, char *text)
{
    DumpTexts texts = {NULL, 0};
    bool ok;

    memset(d, 0, sizeof *d);
    d->text = text;
    ok = text && read_lines(d, &texts) && match_groups(d);
    find_first(d);
    for (int k = 0; k < d->steps; k++)
        d->step[k].text = text_of(&texts, d->step[k].function);
    free(texts.v);
    return ok;
}

void
dumps_end(Dumps *d)
{
    for (int k = 0; k < d->steps; k++)
        free(d->step[k].var);
    free(d->node);
    free(d->group);
    free(d->step);
    free(d->var);
    free(d->text);
    memset(d, 0, sizeof *d);
}
