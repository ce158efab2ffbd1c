/* command/open.c - --open NAME=LEAST..MOST/STEP: one function, or one C file, for all sizes within
 * the bounds of extents that a model leaves open.
 *
 *     --open n=1..64          x ("n", 3): its first extent is an argument
 *     --open side=64..640/32  64, 96, ... 640
 *
 * Names are those of the model's inputs (jot info has them). What is run has some size all the
 * same: that of --shape, --batch or the file that --input names, else the most.
 *
 * Read before: command.h, model.c. After: onnx.c. */
#include "command/command.h"
#include <errno.h>

int
open_bound(const Model *m, int k, int d)
{
    const Place *p = &m->place[k];

    for (int b = 0; b < m->nbounds && d < p->rank; b++)
        if (p->shape[d] < 0 && !strcmp(p->symbols[d], m->bound[b].name))
            return b;
    return -1;
}

/* The model's own text of this name of an open extent of an input; NULL: there is none. */
static const char *
open_named(const Model *m, const char *name, size_t n)
{
    for (int k = 0; k < m->nin; k++)
        for (int d = 0; d < m->place[k].rank; d++) {
            const char *s = m->place[k].symbols[d];
            if (m->place[k].shape[d] < 0 && n && strlen(s) == n && !memcmp(s, name, n))
                return s;
        }
    return NULL;
}

/* The names there are, each once. */
static void
open_names(const Model *m, char *to, size_t room)
{
    size_t at = 0;

    *to = 0;
    for (int k = 0; k < m->nin; k++)
        for (int d = 0; d < m->place[k].rank && at < room; d++) {
            const char *s = m->place[k].symbols[d];
            bool first = m->place[k].shape[d] < 0 && *s;
            for (int i = 0; i <= k && first; i++)
                for (int j = 0; j < (i < k ? m->place[i].rank : d); j++)
                    first &= m->place[i].shape[j] >= 0 || strcmp(m->place[i].symbols[j], s);
            if (first)
                at += (size_t)snprintf(to + at, room - at, "%s%s", at ? ", " : "", s);
        }
}

/* A whole number from 1 on, and `end` behind it. */
static bool
open_number(const char **s, const char *end, int64_t *to)
{
    char *stop;

    errno = 0;
    *to = strtoll(*s, &stop, 10);
    if (stop == *s || errno || **s < '0' || **s > '9' || *to < 1
        || strncmp(stop, end, strlen(end)) || (!*end && *stop))
        return false;
    *s = stop + strlen(end);
    return true;
}

/* "1..64", "64..640/32" */
static bool
open_range(const char *s, jot_Extent *e)
{
    const char *slash = strchr(s, '/');

    e->step = 1;
    return open_number(&s, "..", &e->least) && open_number(&s, slash ? "/" : "", &e->most)
        && (!slash || open_number(&s, "", &e->step));
}

int
open_read(Model *m, const Args *a)
{
    char names[300];
    const char *s;

    open_names(m, names, sizeof names);
    for (int k = 0; (s = args_each(a, "open", k)) != NULL; k++) {
        const char *is = strrchr(s, '=');
        jot_Extent e;
        if (!is || !open_range(is + 1, &e))
            return complain(a, WRONG_USE, "--open %s: NAME=LEAST..MOST or NAME=LEAST..MOST/STEP "
                            "asked, of whole numbers from 1 on, as in batch=1..64", s);
        if (!(e.name = open_named(m, s, (size_t)(is - s))))
            return complain(a, WRONG_USE, "--open %s: no input has an open extent of that name; "
                            "there are: %s", s, *names ? names : "none");
        if (e.most < e.least)
            return complain(a, WRONG_USE, "--open %s: %s is %lld to %lld: the most is less than "
                            "the least", s, e.name, (long long)e.least, (long long)e.most);
        for (int b = 0; b < m->nbounds; b++)
            if (!strcmp(m->bound[b].name, e.name))
                return complain(a, WRONG_USE, "--open %s: %s has bounds already", s, e.name);
        if (m->nbounds == JOT_OPEN_EXTENTS)
            return complain(a, WRONG_USE, "--open %s: at most %d extents have bounds", s,
                            JOT_OPEN_EXTENTS);
        e.most = e.least + (e.most - e.least) / e.step * e.step;
        m->bound[m->nbounds++] = e;
    }
    return DONE_WELL;
}

int
open_extents(Model *m, const Args *a)
{
    for (int k = 0; k < m->nin; k++)
        for (int d = 0; d < jot_rank(m->inputs.v[k]); d++) {
            int b = open_bound(m, k, d);
            int64_t n = jot_extent(m->inputs.v[k], d);
            const jot_Extent *e = &m->bound[b < 0 ? 0 : b];
            if (b < 0)
                continue;
            if (n < e->least || n > e->most || (n - e->least) % e->step)
                return complain(a, WRONG_USE, "input %s: %s is %lld: --open says %lld to %lld in "
                                "steps of %lld", m->place[k].name, e->name, (long long)n,
                                (long long)e->least, (long long)e->most, (long long)e->step);
            if (m->extent[b] && m->extent[b] != n)
                return complain(a, WRONG_USE, "input %s: %s is %lld here, %lld elsewhere",
                                m->place[k].name, e->name, (long long)n, (long long)m->extent[b]);
            m->extent[b] = n;
        }
    return DONE_WELL;
}

jot_Builder
open_builder(Model *m)
{
    jot_Builder how = {m->nbounds, m->bound, m->inputs.n, m->outputs.n, m->build, m};

    return how;
}

jot_Func
model_compile(Model *m)
{
    jot_Builder how = open_builder(m);

    return m->nbounds ? jot_compile_open(m->c, &how) : jot_compile(m->c, m->inputs, m->outputs);
}

bool
model_call(const Model *m, jot_Func f, const Values *v)
{
    jot_Ins in = {v->nin, v->in};
    jot_Outs out = {v->nout, v->out};

    return m->nbounds ? jot_call_open(f, jot_ints(m->nbounds, m->extent), in, out)
                      : jot_call(f, in, out);
}
