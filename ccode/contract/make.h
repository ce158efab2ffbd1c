/* ccode/contract/make.h - what the choice of a contraction's blocks (ccode/contract/sched.c) and
 * the packing of its operands (ccode/contract/pack.c) share. Read before:
 * ccode/contract/contract.h. */
#ifndef JOT_CONTRACT_MAKE_H
#define JOT_CONTRACT_MAKE_H
#include "ccode/contract/contract.h"
#include "ccode/schedule/builder.h"
#include "target/thresholds.h"

/* Lanes along the sum (ccode/contract/dots.c): its axis, those of the block, of `rows` by `columns`
 * sums. */
typedef struct {
    int along, r, v;
    bool swap;                  /* the rows are b's */
    bool unpack_r, unpack_v;    /* what has the rows, the columns, is computed as it is read */
    int64_t rows, columns;
    int64_t group;              /* of columns whose sums go to an array, so that what follows runs
                                   over it in lanes; 0: none do */
    double price;               /* cycles of the whole */
} ContractDots;

/* Axes of the sum that go in blocks, at most. */
enum { CONTRACT_STEPS = 3 };

typedef struct {
    Sched *s;
    Kernel *k;
    Contract c;
    const Target *target;
    int lanes, registers;
    int words;                  /* elements in a word of the operands; 0: they are no words */
    bool matrix;                /* they are for the processor's matrix unit */
    bool signs;                 /* both operands have theirs: none becomes unsigned */
    uint32_t less;              /* a sum over b, which is taken off the results; 0: none */
    int64_t panel;              /* steps within which an address must be regular */
    int64_t most_rows, few_rows; /* few: at most so many in a block; 0: as registers have it */
    int v, r;                   /* axes of vectors and rows: the kernel's or fused ones */
    int unit;                   /* the innermost of v's */
    int64_t panels;             /* width of the panels that b lies in already, 0: none */
    uint64_t vaxes, raxes;      /* the kernel's axes in them */
    uint64_t other, outer;      /* the rest of n, of m */
    uint64_t unrolled;          /* axes of k that are spelled out: they say which lanes of a are
                                   read */
    int64_t most_vectors;       /* of a block of groups, as many as read the same of a; 0: none */
    uint64_t inner;             /* axes of a block of rows that sums ride on; 0: none do */
    uint64_t kept;              /* axes that these sums keep: none goes as one with another axis */
    int64_t rows, vectors, block; /* in registers; block = vectors * lanes */
    int korder[KERNEL_AXES], nk; /* axes of k, outermost first; the last may be a fused one */
    int64_t kstep[CONTRACT_STEPS]; /* of blocks of the first of them; 0: no blocks */
    LoopList nest;              /* loops around the block */
    int apack, bpack;           /* of them: around the packing of a and b */
    ContractDots dots;          /* rows 0: lanes do not go along the sum */
    int ahead;                  /* steps of k that b's vectors are asked for before; 0: none */
    int kat;                    /* ... around the loop over blocks of k */
} ContractMake;

typedef enum { PACK_NONE, PACK_PANEL, PACK_COLUMNS, PACK_PATCH } PackKind;

/* A patch: which dimensions of the load it has, and which of them are read through windows. */
typedef struct {
    int n, dim[JOT_MAX_RANK];       /* as the buffer's memory has them, outermost first */
    int axis[JOT_MAX_RANK];         /* per entry; -1: read through windows */
    int64_t ext[JOT_MAX_RANK], lo[JOT_MAX_RANK], hi[JOT_MAX_RANK];
    uint64_t outside;               /* axes that stand still while it is read */
    int64_t nelem;
} ContractPatch;

typedef struct {
    PackKind a, b;
    ContractPatch patch;
    bool shared;            /* the form is chosen, and of rows the height */
    bool rows;              /* the form of the nest; b in a phase before */
    int64_t columns, height; /* steps of the outer loops over v (0: none) and r */
    uint64_t first;         /* axes of m whose loops stand outside of a's packing */
    int lines;              /* one of them that goes in blocks, of which each panel of b sees all */
    int64_t nlines;         /* 0: none does */
} ContractPlan;

/* What all schedules of contractions begin with; *m is cleared, *s opened; NULL: only prices are
 * asked. */
JOT_FN void jot_contract_open(ContractMake *m, Sched *s, Kernel *k, const Target *target,
                              int lanes);
JOT_FN Ix jot_contract_cond(const Kernel *k, Ix cond);
JOT_FN bool jot_contract_left_out(const ContractMake *m, Ix cond);
JOT_FN bool jot_contract_plain(const ContractMake *m, uint32_t value); /* a load as it lies */
JOT_FN bool jot_contract_unit(const ContractMake *m, uint32_t value, int axis);
/* ... computed from such as it is read, by at most CONTRACT_UNPACK operations */
JOT_FN bool jot_contract_unpacked(const ContractMake *m, uint32_t value, int axis);
JOT_FN bool jot_contract_stores_unit(const ContractMake *m, int axis);
JOT_FN bool jot_contract_stored_unit(const ContractMake *m, uint32_t store, int axis);
/* Words are read as they lie: along the axis their elements are neighbours. */
JOT_FN bool jot_contract_words_along(const ContractMake *m, uint32_t value, int axis);
JOT_FN int64_t jot_contract_stride(const ContractMake *m, uint32_t load, int axis);
JOT_FN int64_t jot_contract_stored_stride(const ContractMake *m, uint32_t store, int axis);
JOT_FN uint64_t jot_contract_parts(const ContractMake *m, int axis);
JOT_FN int jot_contract_inner(const ContractMake *m, int axis); /* of them, the innermost */
JOT_FN int64_t jot_contract_even(int64_t ext, int64_t unit, int64_t most);
JOT_FN void jot_contract_block(ContractMake *m, int64_t widest); /* rows, vectors, block */
/* ... of so many rows */
JOT_FN void jot_contract_block_of(ContractMake *m, int64_t rows, int64_t widest);
/* Steps of `outer` go on where n of `inner` end, in all that is read and stored but for value
 * `but`. */
JOT_FN bool jot_contract_continues(const ContractMake *m, int outer, int inner, int64_t n,
                                   uint32_t but);
/* The axis of the batch that continues v, of n, in all but a, and reads of a what lies beside; -1:
 * none. The order of the sum, and how many rows, where vectors mix what they read
 * (ccode/contract/grouped.c). */
JOT_FN int jot_contract_grouped(const ContractMake *m, uint32_t a, uint64_t n, int v);
JOT_FN void jot_contract_mix(ContractMake *m);
/* Of a block, per step over k, of so many. */
JOT_FN double jot_contract_cycles(const ContractMake *m, double steps, int64_t rows,
                                  int64_t vectors);
/* ... of all products, lanes along a side of so many, empty ones included. */
JOT_FN double jot_contract_side_cycles(const ContractMake *m, int64_t ext);
/* ... of all blocks of so many rows by vectors, rests included. */
JOT_FN double jot_contract_grid_cycles(const ContractMake *m, double steps, int64_t ext,
                                       int64_t rows, int64_t all, int64_t vectors);
/* Loops of the nest over axes of more than one step; over those of one, which come innermost, where
 * they cost nothing. */
JOT_FN void jot_contract_nest(ContractMake *m, uint64_t axes, LoopKind kind);
JOT_FN void jot_contract_ones(ContractMake *m, uint64_t axes);
/* A stage that starts with the first n loops of the nest. */
JOT_FN Stage jot_contract_begin(const ContractMake *m, bool store, uint32_t what, int n);
/* Loops over a block of so many columns in registers. */
JOT_FN void jot_contract_vectors(LoopList *list, int axis, int64_t block, int lanes);
/* Few rows, lanes along the sum: may they, in which block and at what price; stages. */
JOT_FN bool jot_contract_dots_find(const ContractMake *m, ContractDots *d);
JOT_FN bool jot_contract_dots(ContractMake *m);
/* Can the load be read through a patch that is more than panels of rows? */
JOT_FN bool jot_contract_patch(const ContractMake *m, uint32_t value, ContractPatch *t);
/* Bytes over so many axes of elements as wide as the sum; of a, 0: it is no load. Are rows
 * neighbours of a, which is a load? Blocks of the sum and of rows (ccode/contract/block.c). */
JOT_FN int64_t jot_contract_nbytes(const ContractMake *m, uint64_t axes);
JOT_FN int64_t jot_contract_a_nbytes(const ContractMake *m);
JOT_FN bool jot_contract_adjacent(const ContractMake *m);
JOT_FN void jot_contract_steps(ContractMake *m, ContractPlan *p);
/* What is packed, the steps of all blocks, the nest (ccode/contract/plan.c). */
JOT_FN void jot_contract_plan(ContractMake *m, ContractPlan *p);
/* The sum of another product, which is of these operands now; false: no memory. */
JOT_FN bool jot_contract_again(Kernel *k, Contract *c, uint32_t product, uint32_t a, uint32_t b);
/* The operand where the condition holds, else 0. */
JOT_FN uint32_t jot_contract_where(Kernel *k, uint32_t value, Ix cond);
/* By an instruction that contracts several terms at once, where one fits; false: no memory. */
JOT_FN bool jot_contract_words(ContractMake *m);
/* The layout of an input of bytes as words of `parts` of them along dim, neighbours in its memory;
 * false: they are none, or the kernel has it for something else. It becomes one of words: whoever
 * reads it reads these. */
JOT_FN bool jot_words_layout(const Kernel *k, uint32_t buf, int dim, int parts, Layout *to);
JOT_FN bool jot_words_buffer(Kernel *k, uint32_t buf, Layout *layout);
/* So many elements as they are fill a word, and need not be made longer. */
JOT_FN bool jot_words_whole(const Kernel *k, uint32_t buf, int parts);
/* By the processor's matrix unit (ccode/contract/matrix_tiles.c): does it fit; plan and stages. */
JOT_FN bool jot_contract_matrix_fit(const ContractMake *m);
JOT_FN bool jot_contract_matrix(ContractMake *m);
JOT_FN bool jot_contract_place(ContractMake *m); /* plan and stages (ccode/contract/pack.c) */

#endif
