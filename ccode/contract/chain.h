/* ccode/contract/chain.h - chains: several contractions, and work along their rows, done one after
 * the other on a block of rows (attention). Read before: ccode/contract/contract.h. After:
 * ccode/contract/chain.c. */
#ifndef JOT_CHAIN_H
#define JOT_CHAIN_H
#include "ccode/contract/make.h"
#include "target/thresholds.h"

/* A schedule for a kernel of several reductions, at least one of them a contraction, that have axes
 * in common. lanes 1: in scalars. False: there is none, or out of memory (k->mem->failed); the
 * kernel then computes what it did, but may have gained unused scratch buffers. */
JOT_FN bool jot_chain_sched(Sched *s, Kernel *k, const Target *target, int lanes);

/* ---- what finding a chain (chain.c) and writing its schedule (chain_text.c) share ---------- */

enum { CHAIN_PRODUCTS = 12, CHAIN_STAGES = 48 };

typedef enum { CHAIN_INLINE, CHAIN_SUM, CHAIN_KEPT, CHAIN_PRODUCT } ChainKind;

typedef struct {
    ContractMake m;         /* c: a has the rows, b the vectors; v, r; rows, block in registers */
    bool packed;            /* b is copied into panels */
    bool epilogue;             /* its results are stored from registers */
    bool inside;            /* b is computed from other stages */
} ChainProduct;

typedef struct {
    Kernel *k;
    Sched none;             /* without derived axes: the products' */
    const Target *target;
    int lanes;
    int64_t wide;           /* lanes of loops along rows; 1: none */
    uint64_t shared;        /* axes around everything */
    int row;                /* of these: the one that goes in blocks; -1: none does */
    int64_t height;         /* of a block */
    bool phased;            /* blocks are shared out, panels packed before */
    int nproduct, nstage;
    ChainProduct product[CHAIN_PRODUCTS];
    bool used[KERNEL_VALUES], inside[KERNEL_VALUES];
    uint8_t kind[KERNEL_VALUES], which[KERNEL_VALUES]; /* PRODUCT: its number */
    int8_t last[KERNEL_VALUES];   /* the axis that neighbours lie along; -1: none */
    uint16_t run[KERNEL_VALUES];  /* of stages with the same loops over rows */
    bool placed[KERNEL_VALUES];   /* in scratch */
    uint32_t latest[KERNEL_VALUES]; /* the last stage at or below */
    uint64_t readers[KERNEL_VALUES];
    uint32_t cost[KERNEL_VALUES];
} Chain;

JOT_FN uint64_t jot_chain_bit(int axis);                      /* its mask; of -1: none */
JOT_FN int64_t jot_chain_ext(const Chain *c, int axis);
/* Does `what` stand below the value? */
JOT_FN bool jot_chain_depends(const Chain *c, uint32_t value, uint32_t what);
/* The schedule, and its scratch (chain_text.c). False: too many dimensions, or out of memory; *s is
 * closed. */
JOT_FN bool jot_chain_write(Chain *c, Sched *s);

#endif
