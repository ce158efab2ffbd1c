/* ccode/emit/prelude_vector.h - a function of the prelude as it is read: expressions with their
 * types.
 *
 *     ccode/emit/prelude_read.c    text -> tokens -> the tree of an expression
 *     ccode/emit/prelude_spell.c   a tree -> text in vectors of `lanes` lanes
 *     ccode/emit/prelude_vector.c  statements and functions
 *
 * Read before: prelude/prelude.def. After: ccode/emit/prelude_read.c. */
#ifndef JOT_PRELUDE_VECTOR_H
#define JOT_PRELUDE_VECTOR_H
#include "ccode/emit/print.h"
#define JOT_PRELUDE_TEXT
#include "prelude/prelude.h"
#undef JOT_PRELUDE_TEXT

/* Unsigned integers are odd, each behind the signed ones of its width. */
typedef enum {
    VT_F32, VT_F64, VT_I8, VT_U8, VT_I16, VT_U16, VT_I32, VT_U32, VT_I64, VT_U64, VT_NONE
} VType;
typedef struct { const char *c, *lane; int bits; } VTypeName; /* "jot_i32", "i32" */
JOT_FN const VTypeName *jot_vtype(int t);
#define vtype_is_float(t) ((t) <= VT_F64)

typedef enum {
    V_NUMBER, V_NAME, V_AT, V_ADDRESS, V_CALL, V_UNARY, V_BINARY, V_CHOICE, V_CAST /* V_AT: *p */
} VKind;
typedef struct {
    uint8_t kind, type; /* as C has it, of names and calls before promotion */
    bool vec;           /* differs between lanes; else its text is an operand as it stands */
    bool truth;         /* 0 or 1: in vectors a mask */
    int op;             /* of one character, or of two: the second << 8 */
    int arg[3], next;   /* nodes; the next argument of a call; -1: none */
    const char *s;      /* the text */
    size_t n;
    const PreludeFn *fn;
} VNode;

/* A variable: a vector, a pointer to one, a scalar (the counter of a loop), or a mask. */
typedef enum { VAR_VECTOR, VAR_POINTER, VAR_SCALAR, VAR_MASK } VarKind;
typedef struct { const char *s; size_t n; VType type; VarKind kind; int bits, depth; } VVar;

#define VFORM_NODES 160
#define VFORM_VARS 48
#define VFORM_DEPTH 8
typedef struct {
    const PreludeFn *fn;
    int lanes;
    Text *out;
    bool failed;      /* there is something in it that has no form in vectors */
    const char *at, *tok; /* behind the token, its start */
    size_t ntok;
    int op;           /* 0: a word or a number */
    VNode node[VFORM_NODES];
    int nodes;
    VVar var[VFORM_VARS];
    int vars;
    int depth;        /* of conditions that differ between lanes */
    int masks;        /* named so far */
    int mask[VFORM_DEPTH], mask_bits[VFORM_DEPTH];
    int choices;      /* around what is being spelled */
} VForm;

/* ccode/emit/prelude_read.c */
JOT_FN void jot_vform_token(VForm *f);                    /* the next one */
JOT_FN bool jot_vform_is(const VForm *f, const char *word);
JOT_FN void jot_vform_want(VForm *f, int op);             /* go on behind it */
JOT_FN VType jot_vform_type(const char *s, size_t n);     /* VT_NONE: no type */
JOT_FN VVar *jot_vform_var(VForm *f, const char *s, size_t n);
JOT_FN VVar *jot_vform_declare(VForm *f, VType type, VarKind kind);
/* A call's parameters: the next one of `params`, NULL behind the last. */
JOT_FN const char *jot_vform_param(const char *params, VVar *v);
JOT_FN int jot_vform_read(VForm *f);                      /* an expression */
JOT_FN VType jot_vform_common(VType a, VType b);          /* of two operands */
JOT_FN bool jot_vform_is_truth(const PreludeFn *fn);      /* returns a mask */
/* ccode/emit/prelude_spell.c */
JOT_FN VType jot_vform_int(int bits, bool is_unsigned);
JOT_FN void jot_vform_put_type(VForm *f, VType t);
JOT_FN void jot_vform_source(VForm *f, const VNode *v);   /* as it stands */
JOT_FN void jot_vform_open(VForm *f, VType from, VType to);
JOT_FN void jot_vform_shut(VForm *f, VType from, VType to);
/* Node n as a vector of that type; as lanes of 0 or -1 of so many bits; the width that it has as a
 * mask by itself. */
JOT_FN void jot_vform_value(VForm *f, int n, VType t);
JOT_FN void jot_vform_mask(VForm *f, int n, int bits);
JOT_FN int jot_vform_mask_bits(VForm *f, const VNode *v);
/* Goes into the cache's key: changes when the spelling does. */
#define VFORM_VERSION "1"
#define vform_is_compare(op) \
    ((op) == '<' || (op) == '>' || (op) == VOP('<', '=') || (op) == VOP('>', '=') || \
     (op) == VOP('=', '=') || (op) == VOP('!', '='))
#define VOP(a, b) ((a) | (b) << 8)
#endif
