/* speculate/spec.h - the tree of what a step asked, and what a call of it works with.
 *
 *     Spec --> root --> ask, by answer --> ask ... --> end      SpecNode, in chunks that never move
 *              run:    blocks, inputs, outputs                   SpecList
 *
 * Compositions have no allocator: all of it lies in the bytes of parameters of the context.
 *
 * Read before: speculate.h. After: speculate/tree.c. */
#ifndef JOT_SPECULATE_SPEC_H
#define JOT_SPECULATE_SPEC_H
#include "speculate.h"

#ifndef JOT_FN
#define JOT_FN /* as in base.h: `static` in the one-file build */
#endif

enum { SPEC_CHUNK = 64, SPEC_FUNCTIONS = 256, SPEC_ANSWERS = 16384, SPEC_STRIKES = 3,
       SPEC_WASTED = 16, SPEC_FRESH = 256, SPEC_DROPS = 6, SPEC_WHY = 400 };

typedef enum {
    SPEC_ROOT, SPEC_INT, SPEC_FLOAT, SPEC_NUMBER, SPEC_POINTER, SPEC_ARRAY, SPEC_VAR, SPEC_CHOOSE,
    SPEC_TEST, SPEC_ITEM, SPEC_ITEM_INT, SPEC_PUT, SPEC_AFTER, SPEC_END, SPEC_KINDS
} SpecKind;

/* A question. Where: `off` bytes into block number `block`. */
typedef struct {
    uint8_t kind, dtype;
    uint32_t block;
    uint64_t off, nbytes;
    uint64_t shape;            /* ARRAY: a hash of it */
    jot_ChooseFn *choose;
    jot_AfterFn *after;
} SpecAsk;

/* Where it stands in the tree: asked when `up` was answered with `key`. */
typedef struct SpecNode SpecNode;
struct SpecNode {
    SpecAsk is;
    uint64_t key, used;        /* number of the last call that came here */
    SpecNode *up, *child, *next;
    bool any;                  /* NUMBER: an input */
    bool hashed;
    int visits, strikes;       /* runs of the step that came here with one hash; with another */
    int drops;                 /* for want of room; each makes it wait four times as long again */
    int wasted;                /* TEST, ITEM: calls of its function that were rolled back, lately */
    int fresh;                 /* answers that were new, less those that were met again, lately */
    uint64_t hash;             /* TEST, ITEM, END: of the evaluation */
    uint64_t draws;            /* END: of the whole way */
    jot_Func f;
};

/* n of some size; grown by another parameter's bytes. run: of the step, that made these. */
typedef struct { jot_Var bytes; void *v; uint32_t n, cap; uint64_t run; } SpecList;

typedef struct { char *p; uint64_t nbytes; } SpecBlock;
/* An input of functions: elements of the host's, or, with at NULL, a value that was asked for. var:
 * while the step runs, what it is there, a handle of our own. */
typedef struct { const void *at; size_t nbytes; uint64_t value; jot_Var var; } SpecInput;
typedef struct { void *to; size_t nbytes; jot_Var var; } SpecOutput;

typedef struct SpecChunk SpecChunk;
struct SpecChunk {
    jot_Var bytes;
    SpecChunk *next;
    SpecNode item[SPEC_CHUNK];
};

typedef struct Spec Spec;
struct jot_Host {
    Spec *s;
    SpecNode *at;              /* the last that was answered, and how; NULL: off the tree */
    uint64_t key;
    jot_Capture capture;
};

struct Spec {
    jot_Ctx *ctx;
    jot_Var bytes;
    jot_SpecFn *fn;
    size_t nbytes;
    jot_SpecHow how;
    jot_SpecStats stats;
    SpecNode root, *unused;
    SpecChunk *chunks;
    uint64_t run;              /* number of the last run of the step; since its beginning: */
    uint32_t made, ended;      /* parameters for all this that are new, and that are no more */
    uint64_t clock;
    bool running;
    bool off;                  /* the step does not keep the rule: it always runs */
    void *user;                /* during a call */
    jot_Host host;
    SpecList blocks, inputs, outputs, afters, ins, outs;
    char why[SPEC_WHY];
    char before[];             /* what *user was before the step ran */
};

extern const char *const jot_spec_names[SPEC_KINDS];

/* tree.c */
/* A cleared room behind the last; NULL: refused. */
JOT_FN void *jot_spec_add(Spec *s, SpecList *list, size_t nbytes);
JOT_FN void jot_spec_empty(Spec *s, SpecList *list);
/* why = the format, of %s %d (int) %l (int64_t); returns false. */
JOT_FN bool jot_spec_say(Spec *s, const char *format, ...);
/* The question that follows an answer; NULL: none yet. */
JOT_FN SpecNode *jot_spec_child(SpecNode *at, uint64_t key);
/* A new one; NULL: refused, or the answers are new too often for any to be worth its place. */
JOT_FN SpecNode *jot_spec_grow(Spec *s, SpecNode *at, uint64_t key, const SpecAsk *is);
JOT_FN void jot_spec_prune(Spec *s, SpecNode *at); /* all that follows it, functions too */
JOT_FN void jot_spec_drop(Spec *s, SpecNode *at);  /* its function */
JOT_FN void jot_spec_bound(Spec *s);               /* what was not used for longest goes */
JOT_FN void jot_spec_close(Spec *s);

/* host.c */
/* The value at a place, zeros behind it. */
JOT_FN uint64_t jot_spec_bits(const void *at, size_t nbytes);
JOT_FN void *jot_spec_pointer(const void *at); /* the one that stands there */
/* What an answer is told apart by, of a value's bits. */
JOT_FN uint64_t jot_spec_answer(SpecKind kind, jot_DType dtype, uint64_t bits);
/* How a pointer to nbytes lies to the blocks that are there, which it then is one of. False: memory
 * was refused. */
JOT_FN bool jot_spec_block(Spec *s, char *p, uint64_t nbytes, uint64_t *key);
/* The step, run; its end with all evaluated. False: failed. */
JOT_FN bool jot_host_run(Spec *s);

#endif
