/* command/dumps.h - what the engine says of a graph that it evaluates (JOT_DUMP), read back:
 * nodes, groups, the plan's steps and variables, the C of each kernel.
 *
 * Read before: docs/walk.md. After: dumps.c, draw.c. */
#ifndef JOT_DUMPS_H
#define JOT_DUMPS_H
#include <stdbool.h>
#include <stddef.h>

enum { DUMP_READS = 32 };
typedef struct {
    int id;                   /* %id */
    const char *line;         /* of the dump, behind "%id = " */
    char op[24], shape[64];   /* "f32 (2, 3)" */
    const char *name;         /* the user's; NULL */
    int reads[DUMP_READS], nreads;
    int group;                /* 0: of none: a leaf, or cloned into each that needs it */
    bool asked, stored;
} DumpNode;
typedef struct {
    const char *over, *why;   /* "(2, 3): 5 nodes, a contraction" */
    int step;                 /* that computes it; -1: none is known */
} DumpGroup;
typedef struct {
    char function[40];
    const char *what;         /* its operators */
    int *var, vars;           /* arguments */
    const char *text;         /* its C; NULL */
    int group;                /* 0: it copies */
} DumpStep;
typedef struct {
    int node;                 /* %node; 0: a temporary */
    double bytes;             /* of a temporary */
    int first;                /* the step that names it first */
    char kind;                /* l t a c: leaf, temporary, asked for, copy of a leaf */
} DumpVar;
typedef struct {
    char *text;               /* all that was dumped; lines end in 0 */
    DumpNode *node; int nodes;
    DumpGroup *group; int groups; /* from 1 on */
    DumpStep *step; int steps;
    DumpVar *var; int vars;
} Dumps;
/* text: of JOT_DUMP=gfpc, in malloc's memory, which the record owns from now on. False: memory. */
bool dumps_read(Dumps *d, char *text);
void dumps_end(Dumps *d);
bool dumps_writes(const Dumps *d, int step, int var); /* does the step write it? */
int dumps_node(const Dumps *d, int id); /* its place; -1: there is none */

#endif
