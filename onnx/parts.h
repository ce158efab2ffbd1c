/* onnx/parts.h - what the files of this room share: a model, a graph of it that is being built, and
 * the call of an operator.
 *
 *     bytes --protobuf-c--> messages --build.c, by table.c--> jot's variables --call.c--> functions
 *
 *     hold.c     memory, files, how long a model lives
 *     model.c    messages, limits                 tensor.c   elements of tensors
 *     value.c    names, what is computed at once  build.c    nodes in order, messages
 *     attr.c     attributes and operands as C has them
 *     table.c    the operators: {name, opset from, function}
 *     op/        the operators' functions, composed on core.h and nn.h
 *     control.c  If, Loop, Scan, functions        call.c     functions of shapes
 *     open.c     functions of bounded extents
 *
 * There are two contexts: the caller's, and an interpreter's (`fold`), in which small constants and
 * what is made of them live. An operator's function does not know in which one it builds.
 *
 * Read before: onnx.h. After: onnx/hold.c, onnx/model.c. */
#ifndef JOT_ONNX_PARTS_H
#define JOT_ONNX_PARTS_H
#include "onnx.h"
#include "onnx/onnx.pb-c.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef JOT_FN
#define JOT_FN /* as in base.h */
#endif

typedef JotOnnx__Tensor OnnxTensor;
typedef JotOnnx__Attribute OnnxAttr;
typedef JotOnnx__Node OnnxNode;
typedef JotOnnx__Graph OnnxGraph;
typedef JotOnnx__Function OnnxFunction;

enum {
    ONNX_LEAST = 7, ONNX_MOST = 28,    /* opsets */
    ONNX_DEPTH = 16,                   /* graphs within graphs, functions within functions */
    ONNX_NODES = 1 << 20,              /* nodes, operands and results that are built, those of
                                          unrolled loops each time */
    ONNX_KEY = 256,                    /* bytes of what a function is known by */
    ONNX_STEPS = 1 << 12,              /* of a loop that is unrolled */
    ONNX_FEW = 16,                     /* elements of an input that says which branch is taken */
    ONNX_SMALL = 4096,                 /* elements of constants that are computed at once */
    ONNX_LARGE = 1 << 24,              /* elements that are read while a graph is built */
    ONNX_TIMES = 64,                   /* bytes that unpacking one may take */
    ONNX_OUTS = 4                      /* results that a function may set beyond those asked for */
};

/* Blocks of memory that end together. */
typedef struct OnnxBlock { struct OnnxBlock *next; } OnnxBlock;
typedef struct { OnnxBlock *first; } OnnxArena;

/* A file that is mapped, or bytes. */
typedef struct OnnxFile {
    struct OnnxFile *next;
    char *path;
    const uint8_t *p;
    size_t n;
} OnnxFile;

typedef struct OnnxMap { int n, room; struct { const char *name; void *value; } *v; } OnnxMap;
typedef struct OnnxPlan OnnxPlan;

struct jot_Onnx {
    jot_Ctx *ctx, *fold;
    int refs;                          /* the caller's and those of variables that borrow */
    char *folder, *name;               /* of external data (NULL: nowhere); for messages */
    OnnxFile *files;
    OnnxArena arena;                   /* what lives as long as the model */
    JotOnnx__Model *message;
    OnnxTensor *tensor;                /* or a tensor alone */
    size_t budget;                     /* bytes that unpacking may still take */
    bool starved;                      /* there was no memory for some of them */
    OnnxMap graphs;                    /* graphs within nodes, by the address of their attribute */
    OnnxMap weights;                   /* name -> OnnxValue of this model's */
    OnnxMap functions;                 /* domain, name and overload -> OnnxFunction */
    int n_in, n_out, n_weights, opset;
    jot_OnnxValue *in, *out, *weight;
    OnnxPlan *plans;
    int n_plans;
    jot_Extent bound[JOT_OPEN_EXTENTS]; /* of open extents (onnx/open.c) */
    int n_bounds, n_opened;
    struct OnnxOpened *opened;
    char open_why[400];                /* there is no function for them: why */
};

/* A function, and what it is for (onnx/call.c). */
struct OnnxPlan {
    OnnxPlan *next;
    jot_Func f;
    uint64_t fixed;
    int n, n_free;
    jot_DType *dtype;
    int *rank;
    int64_t (*shape)[JOT_MAX_RANK];
    void **data;                       /* of fixed inputs */
    jot_In *in;
    jot_Out *out;
    jot_Tensor *result;
    OnnxArena arena;
};

/* A function for all extents within bounds. */
typedef struct OnnxOpened {
    struct OnnxOpened *next;
    jot_Onnx *m;
    jot_Func f;
    uint64_t wanted;                   /* inputs whose elements its builder asked for */
    jot_DType *dtype;                  /* of inputs, as their other extents are */
    int *rank;
    int64_t (*shape)[JOT_MAX_RANK], (*out_shape)[JOT_MAX_RANK];
    jot_In *in;
    jot_Out *out;
    jot_Tensor *result;                /* memory, with room for so many bytes */
    size_t *room;
    OnnxArena arena;
} OnnxOpened;

/* A value of a graph that is being built. */
typedef struct OnnxValue {
    const char *name;
    jot_Var at[2];                     /* in the caller's context, in the other one, or both */
    uint64_t deps;                     /* inputs whose elements it depends on, and the bits below */
    const OnnxTensor *tensor;          /* where it is one that no variable was made of yet */
    jot_Var given;                     /* a weight: what the caller put in its place */
    bool made;                         /* by an operator, in the caller's context */
    jot_Var bytes;                     /* of i8: itself + 128 as u8, in the caller's context */
    struct OnnxValue *quantised[3];    /* it is (q - zero) scale: q, scale, zero or NULL, ... */
    int64_t axis;                      /* ... along the axis, where there are several */
    jot_Var product[3];                /* of bytes: sums, scale, what is added or nothing */
} OnnxValue;
#define ONNX_RANDOM ((uint64_t)1 << 63)
#define ONNX_GIVEN ((uint64_t)1 << 62)
#define ONNX_MANY ((uint64_t)1 << 61)  /* some input beyond the first 61 */

/* Names of a graph, and of those around it. */
typedef struct OnnxScope {
    struct OnnxScope *up;              /* NULL: none is seen from here (a function's) */
    OnnxMap names;
    const OnnxFunction *function;      /* whose body this is, and who calls it from where */
    const OnnxNode *caller;
    struct OnnxScope *from;
    int opset;                         /* of the default domain */
} OnnxScope;

typedef struct {
    jot_Onnx *m;
    OnnxArena arena;
    int n_in;
    OnnxValue **in;
    uint64_t few;                      /* inputs of few elements, which the caller can fix */
    uint64_t wanted;                   /* inputs whose elements were asked for and are not known */
    jot_Var *held;                     /* constants that are worth computing once */
    int n_held, room_held;
    int depth, nodes;
} OnnxBuild;

struct OnnxOp;
/* A node that is being built. */
typedef struct {
    OnnxBuild *b;
    OnnxScope *s;
    const OnnxNode *node;
    const struct OnnxOp *op;
    jot_Ctx *ctx;                      /* where it is built */
    int n, n_out;
    OnnxValue **in;                    /* NULL: left out */
    jot_Var *x;                        /* the same in ctx, or empty handles */
    jot_Var *out;                      /* results, or */
    OnnxValue **value;                 /* values as they are */
    uint64_t deps;                     /* of the results */
} OnnxCall;

typedef bool OnnxFn(OnnxCall *c);
enum {
    ONNX_VALUES = 1, /* its operands are wanted as values: no variables are made of them */
    ONNX_DRAWS = 2,  /* random */
    ONNX_SUMS = 4    /* sums of products, of bytes where these were dequantised */
};
typedef struct OnnxOp {
    const char *name;
    int since, least, most;            /* opset; operands */
    OnnxFn *fn;
    jot_Var (*unary)(jot_Var x);       /* what fn is about, where one function serves several */
    jot_Var (*binary)(jot_Var a, jot_Var b);
    int kind;
    unsigned flags;
    unsigned reads;                    /* operands that are only read as numbers: a bit each */
} OnnxOp;

/* ---- hold.c ---- */
JOT_FN void *onnx_take(OnnxArena *arena, size_t n, size_t nbytes); /* zeros; NULL: none */
JOT_FN void onnx_drop(OnnxArena *arena);
JOT_FN void onnx_opened_free(OnnxOpened *o); /* a function with open extents */
JOT_FN void onnx_open_drop(jot_Onnx *m);     /* ... all of them */
JOT_FN char *onnx_copy(OnnxArena *arena, const char *s);
JOT_FN bool onnx_map_put(OnnxMap *map, const char *name, void *value); /* replaces */
JOT_FN void *onnx_map_get(const OnnxMap *map, const char *name);
JOT_FN const OnnxFile *onnx_file(jot_Onnx *m, const char *location); /* NULL: raised */
/* path NULL: as a file that is not there. */
JOT_FN bool onnx_map_file(jot_Ctx *ctx, const char *path, const char *beside, OnnxFile *f);
JOT_FN ProtobufCAllocator onnx_budget(jot_Onnx *m, size_t nbytes); /* to unpack so many */
JOT_FN void onnx_unref(void *m, const void *data); /* a jot_ReleaseFn */
JOT_FN void onnx_plan_free(OnnxPlan *p);

/* ---- model.c ---- */
JOT_FN const OnnxGraph *onnx_graph(jot_Onnx *m, const OnnxAttr *a); /* NULL: raised */
JOT_FN const OnnxFunction *onnx_function(const jot_Onnx *m, const OnnxNode *node);
JOT_FN int onnx_opset_of(JotOnnx__Import *const *imports, size_t n);
static inline const char *
onnx_s(const char *s)
{
    return s ? s : "";
}

/* ---- tensor.c ---- */
JOT_FN jot_DType onnx_dtype(int element);            /* JOT_DTYPES: none of jot's */
JOT_FN const char *onnx_element_name(int element);
JOT_FN int64_t onnx_tensor_nelem(const OnnxTensor *t); /* -1: too many */
JOT_FN jot_Var onnx_tensor(jot_Onnx *m, jot_Ctx *ctx, const OnnxTensor *t, const char *what);

/* ---- value.c ---- */
JOT_FN OnnxValue *onnx_value(OnnxBuild *b, const char *name, uint64_t deps);
JOT_FN OnnxValue *onnx_value_of(OnnxBuild *b, jot_Var v, uint64_t deps);
JOT_FN int64_t onnx_value_nelem(const OnnxValue *v);
JOT_FN jot_Var onnx_on(OnnxBuild *b, OnnxValue *v, jot_Ctx *ctx); /* poison: raised */
JOT_FN OnnxValue *onnx_find(OnnxBuild *b, const OnnxScope *s, const char *name);
JOT_FN bool onnx_bind(OnnxBuild *b, OnnxScope *s, const char *name, OnnxValue *v);
JOT_FN bool onnx_given(const OnnxCall *c, int k);
JOT_FN bool onnx_known(const OnnxCall *c, int k); /* whether operand k depends on no input */
/* v, made of operands in mask alone: computed once if these depend on no input. */
JOT_FN jot_Var onnx_hold(OnnxCall *c, jot_Var v, unsigned mask);
JOT_FN void onnx_hold_operands(OnnxCall *c); /* those that operators made of constants */

/* ---- build.c ---- */
JOT_FN bool onnx_nodes(OnnxBuild *b, OnnxScope *s, OnnxNode *const *nodes, size_t n);
JOT_FN bool onnx_build(OnnxBuild *b, jot_Vars in, uint64_t fixed, jot_Var *out);
JOT_FN void onnx_end(OnnxBuild *b);

/* ---- call.c ---- */
JOT_FN bool onnx_built(jot_Onnx *m, jot_Vars in, uint64_t fixed, uint64_t few, jot_Var *out,
                       uint64_t *wanted);
JOT_FN size_t onnx_nbytes(const jot_Tensor *t);

/* ---- open.c ---- */
/* The run, if extents have bounds: *done. False: failed. */
JOT_FN bool onnx_open_run(jot_Onnx *m, const jot_Tensor *in, jot_Tensor *out, int n_out,
                          bool *done);

/* ---- control.c ---- */
JOT_FN bool onnx_call(OnnxCall *c); /* a function of the model's */

/* ---- attr.c ---- */
JOT_FN const OnnxAttr *onnx_attr(const OnnxScope *s, const OnnxNode *node, const char *name);
JOT_FN int64_t onnx_i(const OnnxCall *c, const char *name, int64_t otherwise);
JOT_FN int onnx_int(const OnnxCall *c, const char *name, int otherwise); /* or the next that fits */
JOT_FN double onnx_f(const OnnxCall *c, const char *name, double otherwise);
JOT_FN const char *onnx_text(OnnxCall *c, const char *name, const char *otherwise);
JOT_FN bool onnx_is(OnnxCall *c, const char *name, const char *text); /* the attribute is text */
JOT_FN jot_Ints onnx_ints(const OnnxCall *c, const char *name); /* n 0: none */
/* The elements of operand k; false: not known while the graph is built, or no such numbers. */
JOT_FN bool onnx_read(OnnxCall *c, int k, jot_Ints *to);
JOT_FN const double *onnx_read_f64(OnnxCall *c, int k);
JOT_FN bool onnx_scalar(OnnxCall *c, int k, int64_t *to);
/* Of the attribute, or from opset `since` on of operand k. given: whether there is one. */
JOT_FN bool onnx_ints_or(OnnxCall *c, const char *name, int since, int k, jot_Ints *to,
                         bool *given);
JOT_FN bool onnx_axis(OnnxCall *c, int64_t *axis, int rank); /* from the start, or raised */
JOT_FN bool onnx_axes(OnnxCall *c, jot_Ints axes, int rank, int64_t to[JOT_MAX_RANK]);
JOT_FN bool onnx_fail(OnnxCall *c, jot_Status status, const char *format, ...); /* false */
JOT_FN bool onnx_const(OnnxCall *c, int out, jot_DType dtype, jot_Ints shape, const void *data);
static inline int
onnx_version(const OnnxCall *c)
{
    return c->s->opset;
}
static inline jot_Var
onnx_like(jot_Var v, jot_Var like)
{
    return jot_cast(v, jot_dtype(like));
}
static inline jot_Var
onnx_number(jot_Var like, double value)
{
    return jot_full(like.ctx, jot_dtype(like), JOT_SHAPE(), value);
}
static inline bool
onnx_put(OnnxCall *c, int k, jot_Var v)
{
    c->out[k] = v;
    return jot_ok(v);
}
static inline bool
onnx_float(jot_DType dtype)
{
    return dtype >= JOT_F16 && dtype < JOT_DTYPES;
}
JOT_FN const OnnxOp *onnx_op(const char *name, int opset, int *since);

#endif
