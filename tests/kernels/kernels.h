/* tests/kernels/kernels.h - which kernels programs have on machines that are not here, to hold
 * against what they were: the parts of the program behind `make kernels` and `make kernels-check`.
 *
 *     record.c    one program on one machine: texts, plan and launches, as parts with hashes
 *     graphs.c    graphs that tests count or draw            wild.c   programs by another generator
 *     work.c      networks and the workloads of the bench
 *     kernels.c   which program goes to which machine; what is printed, stored and compared
 *
 * Read before: tests/machines.h. After: kernels.c, docs/testing.md. */
#ifndef JOT_KERNELS_H
#define JOT_KERNELS_H
#include <stdbool.h>
#include <stdint.h>
#include "core.h"

/* Programs of one kind, by number. */
typedef struct {
    const char *name;
    int n;                         /* 0: as many as have a label */
    int share, quick;              /* a machine checks every share-th of them, or every quick-th */
    const char *(*label)(int i);   /* NULL: its number says it */
    bool words;                    /* labels are words that the digest may name it by */
    bool (*run)(jot_Ctx *c, int i, bool (*run)(jot_Ctx *c, jot_Vars vars));
} Kind;

extern const Kind kind_graphs, kind_contractions, kind_blocks, kind_drawn, kind_wild, kind_nets,
    kind_work;

/* What is compared: a kernel's text, all preludes, the plans, the launches. */
typedef struct {
    char name[80];
    uint64_t hash; /* of the text */
    char *text;    /* without comments, names of kernels and space that says nothing */
} Part;

enum { TAIL = 3 }; /* parts that are no kernel: they come last */

typedef struct {
    Part *part;
    int n;           /* the kernels first */
    int launches;
    bool ok;
    char message[256];
} Record;

int machine_count(void);
const char *machine_label(int machine);
/* The record of a program on a machine; record_free gives back what it holds. */
void record_program(Record *r, int machine, const Kind *kind, int i);
void record_free(Record *r);
const char *no_environment(void *ud, const char *name); /* a hook: nothing is set */
uint64_t text_hash(uint64_t seed, const char *s, size_t n);

#endif
