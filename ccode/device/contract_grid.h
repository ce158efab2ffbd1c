/* ccode/device/contract_grid.h - what the choice of a device's tiles (contract_grid.c) and the
 * kernel and schedule that follow from it (contract_grid_make.c) share. Read before:
 * ccode/contract/make.h. */
#ifndef JOT_CONTRACT_GRID_H
#define JOT_CONTRACT_GRID_H
#include "ccode/contract/make.h"

/* A step of a side: an axis over `ext` places, `stride` apart. */
enum { PART_BAND, PART_BLOCK, PART_WARP, PART_PART, PART_HALF, PART_ITEM, PART_REG, PARTS };
typedef struct {
    int64_t ext, stride;
    int axis;                   /* -1: of one step only, there is none */
} TilePart;

/* One of m, n and k. */
typedef struct {
    int axis[KERNEL_AXES], n;   /* the kernel's, outermost first */
    int64_t ext;                /* points in all */
    TilePart part[PARTS]; /* outermost first, but for the block in it in any order of strides */
    int64_t block;              /* points of a block */
    Ix at;                      /* position over them */
    Ix local;                   /* ... within the block */
    Ix inside;                  /* at < ext; 0: always */
    bool unit;                  /* its operand's neighbours are neighbours along it */
    bool transposed; /* rows of its tile have these side by side, not neighbours along k */
    bool wide;                  /* a row of 16 bytes comes at a time */
} TileSide;

typedef struct {
    Sched *s;
    Kernel *k;
    Contract c;
    TileSide m, n, sum;
    int64_t chunks;             /* of k, each with partial sums of its own; 1: none */
    int chunk;                  /* their axis */
    uint32_t total;             /* the sum of the chunks' */
    int warps;                  /* 4: as many have a matrix instruction together */
    int64_t row;                /* of 16 bytes: elements */
    int buffers;                /* of each tile */
    bool bands;                 /* blocks come by bands of m's, down each column of a band */
    int64_t rounds;             /* groups that each multiprocessor has, one after the other */
    int group, half; /* half: dtype of the tiles for the matrix unit, F32 is tf32; 0: it is
                        not used */
    Ix inside[JOT_MAX_RANK + 8]; /* conditions of the sum, which its operands take over */
    int ninside;
    LoopList grid;
} GridTiles;

JOT_FN int64_t jot_contract_grid_blocks(const TileSide *side); /* how many cover it */
/* contract_grid_make.c, in this order; false: it cannot be, or out of memory. */
JOT_FN bool jot_contract_grid_respace(GridTiles *t);
JOT_FN bool jot_contract_grid_operands(GridTiles *t);
JOT_FN bool jot_contract_grid_total(GridTiles *t);
JOT_FN bool jot_contract_grid_stages(GridTiles *t);

#endif
