/* expr/parts.h - what the files of this room share: a statement as a tree, the names in it and
 * their ranges.
 *
 *     parse.c     text -> tree: A[i,k] * B[k,j]
 *     statement.c ... with its left side: C[i,j] +=, and bounds
 *     range.c     tree -> ranges: i < 24 by A, j < 32 by B, k < 40 by both; what is refused
 *     emit.c      tree and ranges -> reindex, element-wise, reindex-reduce
 *     expr.c      the public functions: operands, statements, outputs
 *     einsum.c    letters -> such a text
 *
 * Built on the public headers alone, as nn/ is. All that is known while a text is read lies in one
 * record of fixed size on the stack; longer texts are refused. An index name is a number in order
 * of first appearance, left side first.
 *
 * Read before: expr.h (the grammar). After: expr/parse.c. */
#ifndef JOT_EXPR_PARTS_H
#define JOT_EXPR_PARTS_H
#include "expr.h"

#ifndef JOT_FN
#define JOT_FN /* as in base.h: `static` in the one-file build */
#endif

enum {
    EXPR_NODES = 320, /* of one statement */
    EXPR_VARS = 64,   /* operands and what is assigned */
    EXPR_SITES = 160, /* indices of one statement */
    EXPR_NEST = 24,   /* parentheses, functions and brackets within each other */
    EXPR_DEEP = 30,   /* of an index, as index strings count it; they allow 43 */
    EXPR_TALL = 64,   /* nodes above each other */
    EXPR_CONDS = 48   /* comparisons and bounds of loads that guard one read */
};
#define EXPR_FAR ((int64_t)1 << 50) /* no index, and no part of one, is further from 0 */

typedef enum {
    EXPR_NONE, EXPR_NUM, EXPR_NAME, EXPR_READ, EXPR_LOAD, EXPR_INFIX, EXPR_NOT, EXPR_CALL,
    EXPR_CAST, EXPR_COND
} ExprKind;

/* What a value's dtype is before it meets another: its own, or that of a number in the text, which
 * takes the other's. */
enum { EXPR_STRONG, EXPR_WHOLE, EXPR_REAL };

typedef struct {
    uint8_t kind;      /* ExprKind */
    uint8_t op;        /* INFIX, CALL: row of its table; CAST: the dtype */
    uint8_t weak;      /* EXPR_STRONG, EXPR_WHOLE, EXPR_REAL */
    bool index;        /* made of names and whole numbers alone: may stand in an index string */
    bool truth;        /* ... and is a comparison or logic */
    bool loads;        /* ... and loads */
    uint8_t tall;      /* of the tree */
    uint8_t deep;      /* as index strings count nesting */
    uint16_t names;    /* bit k: name k occurs */
    int16_t a, b, c;   /* operands; READ, LOAD: a is the variable, b the first index, c the number
                          outside, 0: none */
    int16_t next;      /* the index after this one */
    int at;            /* in the text */
    double num;        /* NUM */
} ExprNode;

typedef struct { const char *s; int n; } ExprWord;
typedef struct { ExprWord word; jot_Var v; bool assigned; } ExprVar;
typedef struct { ExprWord word; int64_t ext; int at; bool given, used; } ExprName;

/* An index that reads: of a variable, at one of its dimensions. */
typedef struct { int16_t node, var; uint8_t dim; bool loose; } ExprSite;

typedef struct {
    jot_Ctx *ctx;
    const char *text;
    int at;             /* next character */
    bool bad;           /* a failure is recorded */
    int nest, indexing; /* levels around; > 0: within brackets or a bound */
    int nnodes, nvars, nnames, nsites, nplaces;
    ExprVar var[EXPR_VARS];
    ExprName name[JOT_MAX_RANK];
    uint8_t axis[JOT_MAX_RANK];   /* of each name in the space of the statement */
    /* the left side */
    ExprWord target;
    int target_at;
    int16_t place[JOT_MAX_RANK];
    int64_t extent[JOT_MAX_RANK]; /* -1: to be found */
    bool scatters;                /* a place is more than a name of its own */
    jot_ReduceOp op;
    bool reduces;                 /* the assignment is not = */
    int16_t root;
    ExprSite site[EXPR_SITES];
    ExprNode node[EXPR_NODES];    /* 0: none */
    char shown[192];              /* of the last message */
} Expr;

/* Record a failure at a place of the text; false. */
#define EXPR_BAD(e, status, at, format, ...) \
    jot_expr_bad(e, jot_raise((e)->ctx, status, "expr: " format "%s", __VA_ARGS__, \
                              jot_expr_caret((e)->shown, (e)->text, at)))
JOT_FN bool jot_expr_bad(Expr *e, jot_Var raised); /* false */
/* The line of text around `at`, with a caret under it: shown, which has room for 192. */
JOT_FN const char *jot_expr_caret(char *shown, const char *text, int at);

typedef struct {
    const char *text;
    int level;                        /* the looser, the lower */
    jot_Var (*f)(jot_Var, jot_Var);
} ExprInfix;
enum { /* rows of jot_expr_infix; a longer spelling comes before its prefix */
    INFIX_OR, INFIX_AND, INFIX_EQ, INFIX_NE, INFIX_LE, INFIX_GE, INFIX_SHL, INFIX_SHR, INFIX_LT,
    INFIX_GT, INFIX_BITOR, INFIX_BITXOR, INFIX_BITAND, INFIX_ADD, INFIX_SUB, INFIX_FLOOR, INFIX_MUL,
    INFIX_DIV, INFIX_MOD, INFIX_N
};
enum { LEVEL_COMPARE = 6, LEVEL_SUM = 8 };
JOT_FN const ExprInfix *jot_expr_infix(int row);

typedef struct {
    const char *name;
    jot_Var (*one)(jot_Var);          /* of one operand, or of two */
    jot_Var (*two)(jot_Var, jot_Var);
} ExprFn;
JOT_FN const ExprFn *jot_expr_fn(int row);
JOT_FN bool jot_expr_of_bits(const ExprNode *n); /* an operator that takes no floats */

/* scan.c */
JOT_FN bool jot_expr_is_word(char c, bool first);
JOT_FN void jot_expr_blank(Expr *e);
JOT_FN bool jot_expr_take(Expr *e, const char *s);      /* if it stands there, after blanks */
JOT_FN ExprWord jot_expr_word(Expr *e);                 /* takes it; n 0: none */
JOT_FN bool jot_expr_same(ExprWord w, const char *s);
JOT_FN const char *jot_expr_likely(ExprWord w, int functions, char likely[64]);
JOT_FN bool jot_expr_number(Expr *e, double *v, bool *whole);
JOT_FN int jot_expr_find(const Expr *e, ExprWord w);    /* a variable; -1: none */
JOT_FN bool jot_expr_reserved(ExprWord w);

/* parse.c: nodes; 0 after a failure */
JOT_FN int jot_expr_value(Expr *e);
JOT_FN int jot_expr_index(Expr *e, int level);          /* of operators of this level and tighter */
JOT_FN int jot_expr_name(Expr *e, ExprWord w, int at);  /* an index name, maybe a new one */
JOT_FN bool jot_expr_statement(Expr *e);                /* statement.c: up to its end */
JOT_FN bool jot_expr_ranges(Expr *e);                   /* range.c */
JOT_FN jot_Var jot_expr_emit(Expr *e);                  /* emit.c */

#endif
