/* ccode/contract_make.h - what the choice of a contraction's blocks (contract_sched.c) and the
 * packing of its operands (contract_pack.c) share. Read before: ccode/contract.h. */
#ifndef JOT_CONTRACT_MAKE_H
#define JOT_CONTRACT_MAKE_H
#include "ccode/contract.h"

typedef struct {
    Sched *s;
    Kernel *k;
    Contract c;
    const Target *target;
    int lanes, registers;
    int64_t panel;              /* steps within which an address must be regular */
    int64_t most_rows;
    int v, r;                   /* axes of the vectors and of the rows: the kernel's or fused ones */
    int unit;                   /* the innermost of v's */
    int64_t panels;             /* width of the panels that b lies in already, 0: none */
    uint64_t vaxes, raxes;      /* the kernel's axes in them */
    uint64_t other, outer;      /* the rest of n, of m */
    int64_t rows, vectors, block; /* in registers; block = vectors * lanes */
    int korder[KERNEL_AXES], nk; /* axes of k, outermost first */
    int64_t kstep, kstep2;      /* of blocks of the first two of them; 0: no blocks */
    SLoop nest[STAGE_LOOPS];    /* loops around the block, outermost first */
    int n, apack, bpack;        /* of them: around the packing of a and b */
    int kat;                    /* ... around the loop over blocks of k */
} ContractMake;

JOT_FN Space jot_contract_space(const Kernel *k, int64_t *ext); /* of the kernel's axes */
JOT_FN Ix jot_contract_cond(const Kernel *k, Ix cond);
JOT_FN bool jot_contract_left_out(const ContractMake *m, Ix cond);
JOT_FN bool jot_contract_plain(const ContractMake *m, uint32_t value); /* a load as it lies */
JOT_FN bool jot_contract_unit(const ContractMake *m, uint32_t value, int axis);
JOT_FN bool jot_contract_stores_unit(const ContractMake *m, int axis);
JOT_FN int64_t jot_contract_extent(const ContractMake *m, uint64_t axes);
JOT_FN int64_t jot_contract_stride(const ContractMake *m, uint32_t load, int axis, bool *tangled);
JOT_FN uint64_t jot_contract_parts(const ContractMake *m, int axis);
JOT_FN int64_t jot_contract_even(int64_t ext, int64_t unit, int64_t most);
JOT_FN void jot_contract_block(ContractMake *m, int64_t widest); /* rows, vectors, block */
JOT_FN bool jot_contract_place(ContractMake *m); /* contract_pack.c: nest and stages */

#endif
