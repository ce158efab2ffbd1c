/* bench/drawn/text.c - lines of drawn workloads: parsed, and the table of those of a file. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench/drawn/drawn.h"

static bool
senseless(const char *what, const char *at)
{
    fprintf(stderr, "bench: a drawn line: %s: %.40s\n", what, at);
    return false;
}

/* "3,4,-5" */
static const char *
parse_list(DrawnStep *s, const char *at)
{
    int64_t *to = s->number[s->nlist];
    int n = 0;
    char *end = NULL;

    do {
        to[n++] = strtoll(at, &end, 10);
        at = *end == ',' ? end + 1 : end;
    } while (*end == ',' && n < 8);
    s->list[s->nlist++] = jot_ints(n, to);
    return end;
}

/* One step up to its ';' or the end; `made`: values so far. */
static const char *
parse_step(DrawnStep *s, const char *at, int made)
{
    size_t n = strcspn(at, " ;\n");

    memset(s, 0, sizeof *s);
    while (drawn_ops[s->op].name &&
           (strlen(drawn_ops[s->op].name) != n || strncmp(drawn_ops[s->op].name, at, n)))
        s->op++;
    if (!drawn_ops[s->op].name)
        return senseless("no such operator", at), NULL;
    for (at += n; *at == ' ';) {
        at++;
        if (*at == 'v' && s->nin < DRAWN_OPERANDS) {
            char *end;
            int v = (int)strtol(at + 1, &end, 10);

            if (v < 0 || v >= made)
                return senseless("a value that is not made yet", at), NULL;
            s->in[s->nin++] = v;
            at = end;
        } else if ((*at == '-' || isdigit((unsigned char)*at)) && s->nlist < DRAWN_LISTS)
            at = parse_list(s, at);
        else
            return senseless("neither a value nor a list", at), NULL;
    }
    return at;
}

bool
drawn_parse(const char *at, DrawnProgram *p)
{
    int made = 0;

    for (p->n = 0; p->n < DRAWN_STEPS;) {
        DrawnStep *s = &p->step[p->n++];

        if (!(at = parse_step(s, at, made)))
            return false;
        made += s->op == DRAWN_OUT ? 0 : s->op == DRAWN_GRAD ? s->nin - 1 : 1;
        if (*at != ';')
            return s->op == DRAWN_OUT || senseless("it does not end with out", at);
        at += 1 + strspn(at + 1, " ");
    }
    return senseless("too many steps", at);
}

/* ---- the table ---------------------------------------------------------------------------- */

typedef struct { Work work; char *steps; } Line;
static struct { Line *line; int n; bool read; } table;

/* The steps of a workload are parsed when it is first built, which is kept until another is. */
static int
build(Bench *b, jot_Var *out)
{
    static DrawnProgram program;
    static const Work *parsed;

    if (parsed != b->work && !drawn_parse(((const Line *)b->work)->steps, &program))
        return 0;
    parsed = b->work;
    return drawn_make(b, &program, out);
}

static void
add_line(const char *name, const char *suffix, const char *steps)
{
    char *text = malloc(strlen(name) + strlen(suffix) + strlen(steps) + 2), *full = text;

    table.line = realloc(table.line, (size_t)(table.n + 1) * sizeof *table.line);
    text += sprintf(text, "%s%s", name, suffix) + 1;
    strcpy(text, steps);
    table.line[table.n++] = (Line){{.name = full, .build = build}, text};
}

/* Each line is two workloads: built anew for each run, and compiled to a function. */
static void
read_table(void)
{
    static char line[DRAWN_TEXT];
    const char *path = getenv("BENCH_DRAWN");
    FILE *f = path && !table.read ? fopen(path, "r") : NULL;

    table.read = true;
    while (f && fgets(line, sizeof line, f)) {
        char *blank = strchr(line, ' ');

        if (!blank || line[0] == '#')
            continue;
        *blank = 0;
        add_line(line, "", blank + 1);
        add_line(line, "_compiled", blank + 1);
    }
    if (f)
        fclose(f);
}

const Work *
drawn_work(int k)
{
    read_table();
    return k < table.n ? &table.line[k].work : NULL;
}

const Work *
drawn_find(const char *name)
{
    read_table();
    for (int k = 0; k < table.n; k++)
        if (!strcmp(table.line[k].work.name, name))
            return &table.line[k].work;
    return NULL;
}
