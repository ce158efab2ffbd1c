/* ops/index/index.h - index expressions: integer expressions over the axes of an iteration space,
 * in one canonical form, shared by the graph (maps of reindex and reindex-reduce) and by the kernel
 * IR (addresses over loop variables).
 *
 *     linear form   c + k1*atom1 + k2*atom2 + ...     atoms in ascending order, k != 0
 *     atom          axis | floor(x / y) | x mod y | x * y (neither constant) | @slot(x, ...)
 *                   | x >= 0 | x == 0 | not x | x and y | x or y          (conditions: 0 or 1)
 *
 * Expressions are records of a pool, hash-consed: two expressions are equal exactly when their Ix
 * are equal. 0 is the poison expression: what an overflow of a coefficient, a refused allocation or
 * a poison operand gives. Axes are numbered 0..63; what an axis *is* (a dimension of an operator's
 * output, a kernel axis, a loop variable) is the business of who holds the expression. Ranges are
 * not stored: functions that use them take a Space.
 *
 * Floor division and modulo round towards minus infinity; division by zero gives 0, and so does
 * modulo by zero. A load @slot(...) clamps each of its indices into its variable; who needs to know
 * that an index was outside adds a condition (the parser does).
 *
 * Values are whole numbers without a limit, and none reaches 64 bits: an element that is loaded
 * counts as at most IX_FAR from 0, a product as at most IX_PRODUCT, both further than any array
 * goes, and the parser refuses what could leave IX_VALUE all the same. So every rewriting of sums
 * is right, and kernels compute with plain integers.
 *
 * Read before: base.h. After: ops/graph.h, ccode/ir/ir.h. */
#ifndef JOT_INDEX_H
#define JOT_INDEX_H
#include "base.h"

typedef uint32_t Ix;

#define IX_FAR ((int64_t)1 << 40)
#define IX_PRODUCT ((int64_t)1 << 56)
#define IX_VALUE ((int64_t)1 << 62)

typedef enum {
    IX_POISON, IX_CONST, IX_AXIS, IX_SUM, IX_DIV, IX_MOD, IX_MUL, IX_LOAD,
    IX_GE0, IX_EQ0, IX_NOT, IX_AND, IX_OR
} IxOp;

typedef struct { int64_t k; Ix atom; uint32_t key; } IxTerm; /* key: its record's */

typedef struct {
    uint8_t op;    /* IxOp */
    uint8_t depth; /* nesting of atoms, at most IX_MAX_DEPTH */
    uint32_t a, b; /* operands; AXIS: a = number; LOAD: a = slot */
    uint32_t key;  /* of what it is, and of no other's number: the order of terms and operands */
    int64_t c;     /* CONST: value; SUM: constant part */
    uint32_t n;    /* SUM: number of terms; LOAD: number of indices */
    uint32_t at;   /* SUM: first of its terms in pool.terms; LOAD: first index in pool.args */
    uint64_t axes; /* bit k set: axis k occurs somewhere inside */
    uint64_t slots; /* bit k set: load from slot k occurs somewhere inside */
} IxRec;

typedef struct {
    Mem *mem;
    Vec(IxRec) recs;    /* recs.v[0] is poison */
    Vec(IxTerm) terms;
    Vec(Ix) args;
    Vec(Ix) work;       /* scratch of substitution */
    uint32_t *table;    /* hash table of record numbers, open addressing, 0 = empty */
    uint32_t table_cap;
} IxPool;

/* An iteration space: what the ranges of axes are. Axis k runs over lo[k] <= i < lo[k] + ext[k];
 * lo may be NULL (all 0). Axes >= n, and loads, have an unknown range. */
typedef struct { int n; const int64_t *ext; const int64_t *lo; } Space;

JOT_FN bool jot_ix_open(IxPool *pool, Mem *mem);
JOT_FN void jot_ix_close(IxPool *pool);

/* Builders: canonical results, constants folded. The Space arguments may be NULL; with one, ranges
 * simplify: (4*i + j) / 4 -> i and (4*i + j) % 4 -> j for 0 <= j < 4, i < n -> 1, and so on. */
JOT_FN Ix jot_ix_const(IxPool *pool, int64_t value);
JOT_FN Ix jot_ix_axis(IxPool *pool, int axis);
JOT_FN Ix jot_ix_add(IxPool *pool, Ix a, Ix b);
JOT_FN Ix jot_ix_sub(IxPool *pool, Ix a, Ix b);
JOT_FN Ix jot_ix_scale(IxPool *pool, Ix a, int64_t k);
JOT_FN Ix jot_ix_mul(IxPool *pool, Ix a, Ix b, const Space *space);
JOT_FN Ix jot_ix_div(IxPool *pool, Ix a, Ix b, const Space *space);
JOT_FN Ix jot_ix_mod(IxPool *pool, Ix a, Ix b, const Space *space);
JOT_FN Ix jot_ix_load(IxPool *pool, int slot, int n, const Ix *index);
JOT_FN Ix jot_ix_ge0(IxPool *pool, Ix a, const Space *space);           /* a >= 0 */
JOT_FN Ix jot_ix_eq0(IxPool *pool, Ix a, const Space *space);           /* a == 0 */
JOT_FN Ix jot_ix_lt(IxPool *pool, Ix a, Ix b, const Space *space);      /* a <  b */
JOT_FN Ix jot_ix_not(IxPool *pool, Ix a);
JOT_FN Ix jot_ix_and(IxPool *pool, Ix a, Ix b);
JOT_FN Ix jot_ix_or(IxPool *pool, Ix a, Ix b);
JOT_FN Ix jot_ix_all(IxPool *pool, int n, const Ix *cond); /* and of them all, nested log2 n deep */

/* Questions. */
JOT_FN bool jot_ix_is_const(const IxPool *pool, Ix ix, int64_t *value);
JOT_FN bool jot_ix_is_axis(const IxPool *pool, Ix ix, int *axis);
/* A linear form as constant and terms: every Ix is one (an atom is 0 + 1*atom). `tmp` holds the
 * term of an atom; the result points to it or into the pool (valid until the next builder call). */
JOT_FN const IxTerm *jot_ix_linear(const IxPool *pool, Ix ix, int64_t *c, uint32_t *n, IxTerm *tmp);
/* Coefficient of axis in the linear form; *inside: the axis also occurs within another atom. */
JOT_FN int64_t jot_ix_coef(const IxPool *pool, Ix ix, int axis, bool *inside);
/* By how much a step of axis moves it, up or down, on average: i/4 by a quarter; what is loaded at
 * i by a line of the cache. *far (NULL: not asked): it is not by as much at each step. */
JOT_FN double jot_ix_moved(const IxPool *pool, Ix ix, int axis, bool *far);
/* Axes that move it by an element of a map. */
JOT_FN uint64_t jot_ix_mapped(const IxPool *pool, Ix ix);
/* ... within panels: what is divided by as many or more does not move. */
JOT_FN double jot_ix_moved_in(const IxPool *pool, Ix ix, int axis, int64_t panel, bool *far);
/* Is it a sum of axes times constants? */
JOT_FN bool jot_ix_straight(const IxPool *pool, Ix ix);
/* Is each of n indices, into something of extents `to`, an axis of its own that is as long in
 * `from`, or 0 where the extent is 1? */
JOT_FN bool jot_ix_whole(const IxPool *pool, int n, const Ix *index, const int64_t *to,
                         const int64_t *from);
/* Does the condition say that axis *low is at most axis *high; below: less? */
JOT_FN bool jot_ix_order(const IxPool *pool, Ix cond, int *low, int *high, bool *below);
/* Smallest and largest value; false if not known (an unknown axis, an overflow). An empty space
 * runs nothing, so an empty axis counts as standing at its first value. */
JOT_FN bool jot_ix_range(const IxPool *pool, Ix ix, const Space *space, int64_t *lo, int64_t *hi);
/* Does every sum inside, in any order of its terms, stay within IX_VALUE, provably, and every
 * product of axes within IX_PRODUCT? */
JOT_FN bool jot_ix_fits(const IxPool *pool, Ix ix, const Space *space);
/* 0 <= ix < extent, provably? */
JOT_FN bool jot_ix_inside(const IxPool *pool, Ix ix, int64_t extent, const Space *space);
#define jot_ix_axes(pool, ix) ((pool)->recs.v[ix].axes)
#define jot_ix_slots(pool, ix) ((pool)->recs.v[ix].slots)

/* The expression of an operator that is no axis, sum or load (b 0: it has one part). */
JOT_FN Ix jot_ix_of(IxPool *pool, int op, Ix a, Ix b, const Space *space);
/* Replace axis k by map[k] (k < n; others stay) and load slot s by slots[s] (slots may be NULL: as
 * they are), simplified under the ranges of the new axes. This and all else that walks expressions
 * is recursive: they are at most IX_MAX_DEPTH deep, deeper ones are poison. A map of the graph
 * stays below IX_MAP_DEPTH; the rest is for the addresses and conditions that a kernel makes of
 * it. */
#define IX_MAX_DEPTH 64
#define IX_MAP_DEPTH 44
JOT_FN Ix jot_ix_subst(IxPool *pool, Ix ix, int n, const Ix *map, const int *slots,
                       const Space *space);

/* The same in a space with one more axis, outermost: axis k < n is axis k + 1 now, and loads from
 * the slots whose bits are in lead have one more index, axis 0, before theirs. */
JOT_FN Ix jot_ix_inner(IxPool *pool, Ix ix, int n, uint64_t lead, const Space *space);

/* Each load of a slot that is y, of extents ext, as one of x at the same slot, y[i] = x[index(i)].
 * 0: a load is not known to be inside of y, where it would be clamped. */
typedef struct { int slot, n; const Ix *index; const int64_t *ext; } IxThrough;
JOT_FN Ix jot_ix_through(IxPool *pool, Ix ix, const IxThrough *through, const Space *space);

/* a * b, at most IX_PRODUCT from 0. */
JOT_FN int64_t jot_ix_product(int64_t a, int64_t b);
/* Value at a point: axis k has value at[k]; load(ud, slot, n, index) reads an integer variable, an
 * element beyond 64 bits as the largest number. */
typedef int64_t IxLoadFn(void *ud, int slot, int n, const int64_t *index);
JOT_FN int64_t jot_ix_eval(const IxPool *pool, Ix ix, const int64_t *at, IxLoadFn *load, void *ud);

/* Text, in the grammar that the parser reads: "2*i0 + i1/3 - 1". name(ud, axis) names axes, NULL:
 * i0, i1, ...; loads print as @e0(...). */
JOT_FN void jot_ix_print(const IxPool *pool, Ix ix, Text *text);

/* Parser (ops/index/parse.c). Grammar, loosest first:
 *     or:  and { "||" and }                 and: cmp { "&&" cmp }
 *     cmp: sum [ ("<" "<=" ">" ">=" "==" "!=") sum ]
 *     sum: product { ("+"|"-") product }    product: unary { ("*"|"/"|"%") unary }
 *     unary: ["-"|"!"] primary
 *     primary: integer | name | "i"k | "@e"k "(" or { "," or } ")" | "(" or ")"
 * Names: i0.. axes of the space; xs0.. extents of the input (the variable indexed), ys0.. extents
 * of the space walked ("output" of reindex, "input" of reindex-reduce: of the larger side); e0s1:
 * extent 1 of index variable e0. Comparisons and logic give 0 or 1. */
typedef struct {
    IxPool *pool;
    Space space;               /* axes i0.. and names ys0.. */
    int xs_n; const int64_t *xs;      /* extents xs0.. */
    int extra_n;                      /* index variables @e0.. */
    const int *extra_rank; const int64_t *const *extra_ext;
    Ix *guards; int nguards, max_guards; /* out: conditions that loads stay inside */
    char message[160];         /* out: what is wrong */
    int at;                    /* out: offset of the offending character */
} IxParse;
JOT_FN Ix jot_ix_parse(IxParse *parse, const char *source);

#endif
