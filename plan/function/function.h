/* plan/function/function.h - a compiled function: a plan that runs again without a graph.
 *
 *     x (input)   w (state)                call    where its elements are
 *         \        /                       x       what the caller brings
 *      step 0, step 1                      w       what its slot names at that time
 *         |        \                       loss    the caller's memory, or a new variable
 *       loss        w' (update)            w'      becomes what the slot of w names
 *
 * The leaves of the graph become places to look at when the function is called; its results, places
 * to bring them from. Read before: plan/parts.h. After: plan/function/make.c,
 * plan/function/run.c. */
#ifndef JOT_FUNCTION_H
#define JOT_FUNCTION_H
#include "plan/parts.h"

typedef enum { LEAF_INPUT, LEAF_STATE, LEAF_CONST } FuncLeafKind;
typedef struct {
    uint8_t kind;
    uint32_t input;        /* INPUT: number */
    uint32_t slot, gen;    /* STATE: who names its elements */
    bool begun;            /* ... or did, when jot_begin was called */
    jot_DType dtype;
    NodeId node;           /* the leaf of the graph; CONST: with a reference */
    Buffer *buf;           /* this call's elements; of an INPUT only where the graph runs */
    Buffer view;           /* the same for kernels of this process: nobody's buffer */
} FuncLeaf;

/* A result is element for element one of the plan's, or a leaf. */
typedef struct {
    bool computed;
    uint32_t at;           /* number of the plan's result, or of the leaf */
} FuncFrom;

typedef struct {
    jot_DType dtype;
    int rank;
    const int64_t *ext;    /* in the function's arena */
    size_t nbytes;
} FuncShape;

/* copy: of elements that cannot be read where they lie; NULL: none yet */
typedef struct { FuncShape shape; Buffer *copy; } FuncInput;
typedef struct { FuncShape shape; FuncFrom from; } FuncOutput;
typedef struct {
    uint32_t slot, gen;
    FuncShape shape;
    FuncFrom from;
    NodeId fresh;          /* during a call: a leaf that it will name, with a reference; 0: the
                              one that it names gets new elements */
    Buffer *brings, *copy; /* during a call: its new elements; an input's, copied */
} FuncUpdate;

typedef struct {
    size_t nbytes;
    Buffer *buf;           /* where it is computed; NULL between calls: to be had first */
    Buffer given;          /* the caller's memory, as `to` */
    uint32_t over;         /* 1 + number of the leaf over which it may be computed; 0: none */
    Buffer *to;            /* during a call: a variable's elements, or `given`; NULL: buf */
} FuncRoot;

/* A drawn variable: number `k` of those of the function. */
typedef struct { NodeId node; uint64_t k; uint8_t op, dtype; } FuncRandom;

typedef struct Open Open;
struct Func {
    jot_Ctx *ctx;
    uint32_t slot;         /* of its handle */
    Arena arena;           /* of the arrays below */
    FuncInput *input;
    FuncOutput *output;
    uint32_t ninputs, noutputs;
    Vec(FuncUpdate) updates;
    Vec(FuncLeaf) leaves;
    Vec(FuncRoot) roots;
    Vec(FuncRandom) randoms;
    uint64_t draws;        /* numbers of random variables that a call takes */
    Plan *plan;            /* NULL: interpreted */
    uint32_t *leaf;        /* per variable of the plan: number of its leaf */
    uint32_t *random;      /* per scalar of the plan: 1 + number of its random variable */
    PlanBind bind;
    /* On the interpreter and on a device the graph runs, with this call's elements. Its roots have
     * a reference; per position 1 + number of the leaf in `leaf`, and in `data` the node's own
     * elements during a call. */
    bool graphed;
    Selection graph;
    Buffer **data;
    struct Open *open;     /* extents are open: what it is made of (plan/open/); else NULL */
    void (*end)(struct Open *o); /* ... and how that ends */
};

/* plan/function/function.c: an empty one, with a slot for its handle; NULL: refused, the context
 * has the reason. */
JOT_FN Func *jot_func_new(jot_Ctx *ctx, const char *op);
/* What a function is made for: an evaluation by the context's backend, or a text in a dialect;
 * capture: the evaluation that the same list would be now, which is left to its caller. look: only
 * whether it can be one; NULL is made, and no failure says that it can. ends: it is for the most
 * extents (Plan.ends); else NULL. */
typedef struct { const char *op, *dialect; jot_Capture *capture; bool look;
                 const OpenEnds *ends; } FuncFor;
JOT_FN Func *jot_func_make(jot_Ctx *ctx, jot_Vars inputs, jot_Vars outputs, const FuncFor *of);
/* plan/function/capture.c: whether what an evaluation reads is what a call of the function can
 * read; its hash. value: of outputs, then of updates; in: of inputs, 0 for one that is none.
 * False: failed. */
JOT_FN bool jot_func_captures(const Func *f, const Selection *s, const NodeList *value,
                              const NodeList *in, jot_Capture *capture);
/* The graph as the function keeps it: its roots have a reference. False: memory was refused. */
JOT_FN bool jot_func_hold(jot_Ctx *ctx, Selection *s);
/* The handle that names a node: of several, the one that lives longest; 0: none. */
JOT_FN uint32_t jot_func_slot(jot_Ctx *ctx, NodeId id);
/* The handle by which a call reads what has elements: of a state; in a capture also of an array, or
 * of what was evaluated, from before it: begun: the one that named it at jot_begin. 0: none. */
JOT_FN uint32_t jot_func_names(jot_Ctx *ctx, NodeId id, const jot_Capture *c, bool *begun);
/* plan/function/function.c: the calls, of a function whose extents are what they are. */
JOT_FN bool jot_func_call(Func *f, jot_Ins in, jot_Outs out);
JOT_FN bool jot_func_call_vars(Func *f, jot_Vars in, jot_Var *out);
/* The two halves of one, on the elements of in[k]; results are had in between (jot_func_result).
 * ok: they were; what the second returns is what it is given. */
JOT_FN bool jot_func_begin(Func *f, Buffer *const *in);
JOT_FN bool jot_func_finish(Func *f, bool ok);
JOT_FN Func *jot_func_of(jot_Func h, const char *op); /* NULL, and an error: stale or poison */
JOT_FN jot_Func jot_func_handle(jot_Ctx *ctx, const Func *f); /* NULL: poison */

/* plan/function/run.c: a call, once its inputs' leaves are filled in. */
/* Does an update keep the result? Then it is not computed in the caller's memory. */
JOT_FN bool jot_func_keeps(const Func *f, uint32_t root);
JOT_FN bool jot_func_ready(Func *f);
JOT_FN bool jot_func_launch(Func *f);
JOT_FN bool jot_func_fetch(Func *f, uint32_t noutputs); /* to the host: the first so many */
JOT_FN Buffer *jot_func_result(Func *f, const FuncFrom *from);
JOT_FN void jot_func_take(Func *f, const FuncOutput *output, void *to);
JOT_FN void jot_func_updates(Func *f); /* what cannot fail: slots get their new elements */
JOT_FN void jot_func_drop(Func *f);    /* after a failure: what the call had taken goes back */

#endif
