/* ops/rewrite/cells.h - what ops/rewrite/cells.c (finds equal cells) and ops/rewrite/cells_rows.c
 * (merges them, as rows of one node) share.
 *
 * Read before: ops/rewrite/stack.h. */
#ifndef JOT_OPS_CELLS_H
#define JOT_OPS_CELLS_H
#include "ops/rewrite/stack.h"

enum {
    CELL_ROWS = 128,        /* of a chunk */
    CELL_NELEM = 1 << 16    /* most elements of a part, and of a row that is copied */
};

/* What is known of a position of the list. */
typedef struct {
    uint64_t key;           /* how it is computed from its cell's product */
    uint32_t level;
    uint32_t product;       /* 1 + its number if it is a product, else 0 */
    uint32_t owner;         /* 1 + number of the product whose cell it belongs to; 0: none */
    uint32_t part;          /* 1 + its number within that cell */
    NodeId all;             /* not 0: the merged node of which it is row `row` of `rows` */
    uint32_t row, rows;
    bool stays, inner, wanted; /* inner: part of a product */
} CellAt;

typedef struct {
    uint32_t pos, kind, next; /* next: 1 + the next one of its group */
    uint32_t cell;            /* where positions of its parts begin, by their number in the kind */
    int side;                 /* the operand that differs from cell to cell */
} CellProduct;

typedef struct { uint64_t key; uint32_t n, chunks, parts; } CellKind;
typedef struct { uint64_t key; uint32_t kind, level, n, first, last, next; } CellGroup;
typedef struct { uint64_t key; uint32_t kind, n, last, number; bool often; } CellPart;

typedef struct {
    jot_Ctx *ctx;
    const NodeList *list;
    CellAt *at;
    Vec(CellProduct) product;
    Vec(CellKind) kind;
    Vec(CellGroup) group;
    Vec(CellPart) part;
    Vec(uint32_t) cell;
    uint32_t levels;
} Cells;

/* Can a node like this be extended by an axis? */
JOT_FN bool jot_cell_grows(const Cells *s, const Node *n);
/* The same operator, whatever its operands? */
JOT_FN bool jot_cell_same(const Node *a, const Node *b);
/* The entry of a node; NULL: it is not in the list. */
JOT_FN CellAt *jot_cell_at(const Cells *s, NodeId id);
/* It is read as it is, so it has to be there. */
JOT_FN void jot_cell_wants(Cells *s, NodeId id);
/* ops/rewrite/cells_rows.c: merge the nodes at these positions into rows of one. False: they stay
 * as they are, or memory was refused. */
JOT_FN bool jot_cells_chunk(Cells *s, uint32_t n, const uint32_t *pos);

#endif
