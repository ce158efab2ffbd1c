/* ccode/lower/code.h - code records: what the walk makes of a lowered tree and the printer spells.
 *
 * One record per operation, in blocks (function, for, if). A pure record stands in the outermost
 * block where its operands exist; equal pure records of open blocks are one, and so are equal loads
 * of one block from a call's own memory with no write to it between them. Vectors are records with
 * `lanes` > 0.
 *
 *     for i                               1 FUNC   2 FOR i
 *         t = i*64                        3 LIN 64*i         (block 2, hoisted out of 4)
 *         for j                           4 FOR j
 *             y[t + j] = x[t + j] + 1     5 LOAD x [3 + 4]   6 EW add 5, 1   7 STORE y [3 + 4] = 6
 *
 * Read before: ccode/ir/ir.h, ccode/emit.h. After: ccode/lower/walk.c, ccode/emit/emit.c. */
#ifndef JOT_CODE_H
#define JOT_CODE_H
#include "ccode/emit.h"
#include "ccode/schedule/sched.h"

/* Behind the rows of jot_target_dots: i8 in rows by u8 in columns, which only tiles tell apart. */
enum { TILES_I8U8 = DOTS };

typedef enum {
    C_POISON,
    C_FUNC,     /* the function: outermost block */
    C_FOR,      /* c.i steps, or from arg 0 to before arg 1, where the conditions arg[2..) hold (a
                   note, no operands); as an operand: its variable. `wide`: steps lo..hi of the
                   caller, and a C_TAIL follows if `exact` */
    C_IF,       /* block under conditions arg[0..) */
    C_TAIL,     /* block run by the caller whose [lo, hi) holds step c.i */
    C_FIRST,    /* a condition: the first item of a work-group */
    C_ITEM,     /* number of the item in its work-group */
    C_TEAM,     /* arg 0 of all items of a work-group under `ew`, the same for all of them */
    C_BARRIER,  /* of a work-group: what its items wrote is seen by them all */
    C_MATRIX,   /* of this machine: c.i steps, sums at arg 0 of buffer aux >> 16 & 255, operands at
                   arg 1 and arg 2 of buffers aux >> 8 & 255 and aux & 255, arg 3: the sums begin;
                   aux >> 24: a row of jot_target_dots, or TILES_I8U8.
                   Of a device: sums arg[0 .. narg - 2) += the product of what is at the last two
                   arguments in buffers aux >> 16 and aux & 0xffff, which have dtype; MatrixUnit
                   in c */
    C_COPY,     /* 16 bytes at arg 1 of buffer aux & 0xffff to arg 0 of buffer aux >> 16 of a group,
                   zeros where a condition arg[2..) does not hold; there behind BARRIER_COPIES */
    C_ATOMIC,   /* buffer aux at address arg 0 = it `ew` arg 1, at once */
    C_LIN,      /* c.i + sum of coefficient * operand */
    C_IDIV, C_IMOD, C_IMUL, /* of index values; `exact`: plain C operator, no sign or end to think
                               of */
    C_PHASE,    /* the caller's phase, as an index value */
    C_LO, C_HI, /* the caller's steps, likewise */
    C_GE0, C_EQ0, C_INOT, C_IAND, C_IOR,
    C_IMIN, C_IMAX,
    C_CLAMP,    /* arg 0 moved into 0 .. c.i - 1 */
    C_INT,      /* element of an integer buffer as an index: buffer aux, address arg 0; at most
                   IX_FAR from 0, but for `exact`: it matters only where it is */
    C_CONST, C_SCALAR, /* c; number aux */
    C_INDEX,    /* index value as a value of dtype */
    C_LOAD,     /* buffer aux at address arg 0, under conditions arg[1..), else c */
    C_PACK,     /* vector of scalars */
    C_MIX,      /* vector of lanes of arg 0: lane l is the one that bits 4 l .. 4 l + 3 of c.u name.
                   With 2 operands: every second one of 2 n - 1 neighbours, of which arg 0 is the
                   first n and arg 1 the last; with c.i = h, a power of two: where bit h of l is set
                   lane l - h of arg 1, else lane l of arg 0; with c.i = -h lane l of arg 1, else
                   lane l + h of arg 0; with c.i = MIX_SHIFT + h lane l - h of arg 0, and lanes
                   below h of arg 1 */
    C_LANE,     /* lane c.i of arg 0 */
    C_DOT,      /* VAL_DOT of row `ew`: a step of SET takes its operands */
    C_EW, C_CALL, /* operator `ew`, or text of value aux; `exact`: EXP of what is not
                   above 0, DIV by what stands still in the loop, MAX, MIN with what is no NaN
                   second, or may be left out if it is */
    C_DECL,     /* variable (a register); as an operand: what is in it. c.i > 0: an array */
    C_CELL,     /* element arg 1 of array arg 0 */
    C_SET,      /* register or element arg 0 = arg 1, or arg 0 = arg 0 ew arg 1; with 3 operands:
                   fma(arg 1, arg 2, arg 0), or the dot product of row `aux` - 1. `exact`: nothing
                   is in the lanes beyond, they may be overwritten */
    C_STORE,    /* buffer aux at address arg 0 = arg 1 */
    C_AHEAD     /* buffer aux at address arg 0, which may be past its end, will be loaded soon */
} COp;

/* BARRIER: in aux, what items do before it: wait for their copies, but the last c.i groups of them;
 * let four warps' instructions see what they wrote. ONLY: and no barrier. GROUP: what was copied
 * since the last such is a group. PRODUCTS, alone: wait for those of four warps, but the last
 * c.i. */
enum {
    BARRIER_COPIES = 1, BARRIER_FENCE = 2, BARRIER_ONLY = 4, BARRIER_GROUP = 8,
    BARRIER_PRODUCTS = 16
};

/* FOR: `wide` with one of these in aux is a loop whose steps are shared out on a device. */
enum { SHARE_CALLER, SHARE_ITEMS, SHARE_TEAMS, SHARE_TEAM, SHARE_REST };

typedef struct {
    uint8_t op, dtype, lanes, ew;
    uint8_t round;              /* CAST: target */
    bool pure, exact, wide, named;
    bool aligned;               /* LOAD, STORE on a device: lanes begin at a multiple of them */
    bool padded;                /* STORE of a rest: the lanes beyond it may be written, too */
    bool loose;                 /* SET by MAX, MIN: NaN may be left out */
    bool still;                 /* LOAD: it stays in this block, in which what is read does not
                                   change */
    uint16_t depth;             /* of its block; of the block of its variable for FOR */
    uint16_t narg;
    uint32_t arg, coef;         /* in code.args, code.coefs (LIN) */
    uint32_t block, next;       /* block it stands in, next record of the block */
    uint32_t kids, last;        /* blocks */
    uint32_t uses, aux, hnext;
    uint32_t user;              /* where uses is 1: the user */
    uint32_t since;             /* LOAD of memory that the function writes: writes before it, from
                                   1; 0: another load is another value */
    bool independent;   /* FOR: its steps do not depend on each other (ccode/lower/independent.c) */
    bool live;                  /* it has an effect, or a block with one */
    bool in_place;              /* spelled where it is used, not as a variable */
    bool reads;                 /* memory, in place */
    uint8_t height;             /* of what is spelled in place below it */
    jot_Scalar c;
    const char *name;           /* what the variable or constant is called after, or NULL */
} Inst;

typedef struct {
    Mem *mem;
    const Kernel *k;
    const Sched *s;
    Vec(Inst) inst;             /* 0 poison, 1 the function */
    Vec(uint32_t) args;
    Vec(int64_t) coefs;
    uint32_t *table;            /* records that may be shared, by hash */
    uint32_t writes[256];       /* to the memory of each buffer so far (number % 256) */
    Vec(uint32_t) work;         /* operands of the sums in the making */
    Vec(uint32_t) order;        /* records as they stand in the text (jot_code_order) */
    int phases;
    int64_t steps[SCHED_PHASES]; /* of the loop that callers share */
    EmitEnd end[SCHED_PHASES];
    int launches;               /* of a device */
    EmitLaunch launch[EMIT_LAUNCHES];
    bool device;                /* arrays of its own are registers there: loops over them have the
                                   same steps each time */
    Text *why;
    bool ok;
} Code;

#define MIX_SHIFT 256
#define CODE_LIMIT 400000       /* records of one function: unrolling beyond is refused */
#define CODE_TABLE 4096

JOT_FN bool jot_walk(Code *code, const Kernel *k, const Sched *s, const Tree *t, Text *why);
JOT_FN void jot_code_close(Code *code);
/* How far one place lies behind another of one buffer all the time; false: it does not stay. */
JOT_FN bool jot_code_offset(const Code *code, uint32_t from, uint32_t to, int64_t *off);
JOT_FN int jot_code_operands(const Inst *in);
/* The record behind n in the text of the block, which n is at first; 0: its end. */
JOT_FN uint32_t jot_code_next(const Code *code, uint32_t block, uint32_t n);
JOT_FN bool jot_code_order(Code *code); /* false: out of memory */
/* Count uses from what has effects; records without uses are not printed: code is counted. */
JOT_FN void jot_code_count(Code *code);

/* ---- making records (code.c) ---- */
typedef struct {
    Code *code;
    uint32_t stack[96];         /* open blocks, the function first */
    int depth;                  /* stack[depth] is the innermost */
} Blocks;
JOT_FN bool jot_code_open(Code *code, Blocks *b, const Kernel *k, const Sched *s, Text *why);
/* A record that is yet to be added: one whose value is all there is to it; one of an effect. */
JOT_FN Inst jot_code_pure(COp op, int dtype, int lanes);
JOT_FN Inst jot_code_effect(COp op, int dtype, uint32_t aux);
/* Its operands, and what a sum multiplies them by (NULL: nothing); then there is room for it.
 * False: out of memory. */
JOT_FN bool jot_code_args(Code *code, Inst *in, const uint32_t *arg, int narg,
                          const int64_t *coef);
JOT_FN uint32_t jot_code_add(Blocks *b, Inst in, const uint32_t *arg, int narg,
                             const int64_t *coef);
JOT_FN uint32_t jot_code_pair(Blocks *b, Inst in, uint32_t first, uint32_t second);
/* Opens a block under the conditions, or of the caller that has step `at`. */
JOT_FN void jot_code_under(Blocks *b, const uint32_t *cond, int n);
JOT_FN void jot_code_tail(Blocks *b, int64_t at);
JOT_FN void jot_code_push(Blocks *b, uint32_t block); /* the block's records follow */
JOT_FN void jot_code_pop(Blocks *b);                  /* it is complete: link it into its parent */
JOT_FN uint32_t jot_code_lin(Blocks *b, int64_t c, const uint32_t *arg, const int64_t *coef, int n);
JOT_FN void jot_code_refuse(Code *code, const char *what);

/* ---- Ix to records (ccode/lower/index.c) ---- */
#define WALK_VARS 64
#define WALK_LANE 63            /* axis number of the lane */
typedef struct {
    Blocks *b;
    const Kernel *k;
    Space space;
    int64_t ext[WALK_VARS];
    uint32_t var[WALK_VARS];    /* record of each loop variable */
    bool written[256];          /* buffers that the kernel writes or that may alias */
    Ix bounded[8];              /* loads that IX_FAR does not limit: those below it matter alone */
    int nbounded;
} IndexWalk;
JOT_FN uint32_t jot_walk_ix(IndexWalk *w, Ix ix);
/* Until `nbounded` is 0 again, what is walked matters only where the conditions hold. */
JOT_FN void jot_walk_bounded(IndexWalk *w, int n, const Ix *cond);

/* ---- conditions out of loops (guard.c, bounds.c) ---- */
#define GUARD_CONDS 64
JOT_FN void jot_code_guard(Code *code);
JOT_FN void jot_code_independent(Code *code); /* ccode/lower/independent.c */
/* The block inside of which an operand can be read: a loop's for its variable. */
JOT_FN uint32_t jot_guard_scope(const Code *code, uint32_t n);
JOT_FN bool jot_guard_inside(const Code *code, uint32_t block, uint32_t around);
/* Conditions of IF n, of which each `and` is two; -1: more than GUARD_CONDS. */
JOT_FN int jot_guard_conds(const Code *code, uint32_t n, uint32_t *out);
JOT_FN void jot_guard_dissolve(Code *code, uint32_t block, uint32_t n);
JOT_FN void jot_guard_lift(Code *code, uint32_t block);
JOT_FN void jot_guard_gather(Code *code, uint32_t block, uint32_t loop);
/* A record of index values or a comparison, before the loop; 0: out of memory. */
JOT_FN uint32_t jot_guard_before(Code *code, uint32_t loop, Inst in, const uint32_t *arg,
                                 const int64_t *coef, int narg);
JOT_FN bool jot_guard_under(Code *code, uint32_t loop, const uint32_t *cond, int n);
JOT_FN void jot_code_unswitch(Code *code, uint32_t block); /* ccode/lower/unswitch.c */

#endif
