/* ops/cells.h - what ops/cells.c (which nodes are rows of one) and ops/cells_rows.c (that one)
 * share.
 *
 * Read before: ops/stack.h. */
#ifndef JOT_OPS_CELLS_H
#define JOT_OPS_CELLS_H
#include "ops/stack.h"

enum {
    CELL_ROWS = 128,        /* of a chunk */
    CELL_NELEM = 1 << 16    /* elements of a part, of a row that is copied */
};

/* What is known of a position of the list. */
typedef struct {
    uint64_t key;           /* how it is computed from its cell's product */
    uint32_t level;
    uint32_t product;       /* 1 + number of the product that it is */
    uint32_t owner;         /* 1 + number of the product whose cell it is in; 0: of none */
    uint32_t part;          /* 1 + number of what it is there */
    NodeId all;             /* once there is one: the node of which it is row `row` of `rows` */
    uint32_t row, rows;
    bool stays, inner, wanted; /* inner: of a product */
} CellAt;

typedef struct {
    uint32_t pos, kind, next; /* next: 1 + the next one of its group */
    uint32_t cell;            /* where positions of its parts begin, by their number in the kind */
    int side;                 /* the operand of the multiplication that is another in each */
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

/* Can a node like this have an axis more? */
JOT_FN bool jot_cell_grows(const Cells *s, const Node *n);
/* The same operator, whatever its operands? */
JOT_FN bool jot_cell_same(const Node *a, const Node *b);
/* What is known of a node; NULL: it is not of the list. */
JOT_FN CellAt *jot_cell_at(const Cells *s, NodeId id);
/* It is read as it is, so it has to be there. */
JOT_FN void jot_cell_wants(Cells *s, NodeId id);
/* ops/cells_rows.c: the nodes at these positions become rows of one. False: they stay, or memory
 * was refused. */
JOT_FN bool jot_cells_chunk(Cells *s, uint32_t n, const uint32_t *pos);

#endif
