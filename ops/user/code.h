/* ops/user/code.h - user code: what a CODE or MAP node carries, and what the rest of jot asks of
 * it.
 *
 *     jot_code       CODE node (inputs: operands)  <- PICK 0, PICK 1 ...  its own kernel
 *     jot_code_map   MAP node  (inputs: operands, of its shape)      an expression that fuses
 *
 *   kernel of a CODE node                          function of a MAP node
 *     helpers                                        float code_map_0123...(float a, float b)
 *     void NAME(buf, ..., lo, hi) {                  { return (float)(
 *         const float *x = buf[0];                   #line 1 "code_map"
 *         float *y = buf[1];                         the user's expression
 *         const jot_i64 y_0 = 2;                     ); }
 *         const double decay = scalars[0].f;       in kernels: CALL "code_map_0123...(%0, %1)"
 *     #line 1 "running_sum"
 *         the user's text
 *     }
 *
 * Of many examples (jot_vmap) the kernel is this function called for each, with pointers to its
 * part of each array.
 *
 * buf[] of a CODE kernel: the inputs in order, then all outputs, picked or not (who launches it
 * gives unpicked ones memory too), all row-major. scalars[i] is scalar[i] of the node's CodeSpec:
 * the text does not depend on its value. A plan may be used for another CODE or MAP node if
 * jot_code_same.
 *
 * Read before: ops/graph.h. After: ops/user/code.c, ccode/emit/user.c. */
#ifndef JOT_OPS_CODE_H
#define JOT_OPS_CODE_H
#include "ops/graph.h"

enum { CODE_OPENCL, CODE_CUDA, CODE_DEVICES };
#define CODE_MAP_MOST 16   /* operands of jot_code_map: a .. p */
#define CODE_MOST 60       /* inputs, outputs, scalars: gradients take all arrays */

typedef struct {
    const char *name;      /* the user's; NULL in maps, whose operands are a, b, c, ... */
    uint8_t dtype, rank;
    const int64_t *ext;    /* rank extents */
    int64_t nelem;
    const char *grad;      /* inputs and operands: the user's gradient text, or NULL */
    const char *device_grad[CODE_DEVICES]; /* ... for devices */
    int grad_parallel, grad_dim; /* ... as parallel and parallel_dim below, of what it names */
    bool shared;           /* an input that all examples have in common */
} CodeArg;

/* Texts and names are copies, in one arena of its own; never changed after it was made. */
typedef struct CodeSpec {
    uint32_t refs;
    Arena arena;           /* this record too */
    uint64_t hash;         /* of everything but the scalars' values, and host and user beside a
                              source */
    const char *name;      /* for messages and #line: printable, without quotes */
    bool map, gradient;    /* gradient: its texts are another's grad_source */
    int inputs, outputs, scalars;
    CodeArg *arg;          /* inputs, then outputs. A map's: dtypes and gradients, no extents */
    const char **scalar_name;
    jot_Scalar *scalar;    /* .f */
    const char *helpers, *source; /* helpers may be NULL; a map's expression is in source;
                                     NULL: host is called */
    const char *device_source[CODE_DEVICES], *device_helpers[CODE_DEVICES];
    int parallel;          /* 1 + number in arg of what is run in parallel; 0: run once */
    int parallel_dim;      /* which of its extents; -1: its number of elements */
    jot_HostFn *host;
    void *user;
    int lead;              /* of many examples, side by side: the extents before those of each */
    int64_t lead_ext[JOT_MAX_RANK]; /* array, which are of one example */
    int64_t examples;      /* their product */
    struct CodeSpec *base; /* whose texts and names these are; NULL: its own */
    jot_CustomGradFn *custom;    /* of a CUSTOM node: makes gradients (ops/transform/custom.c) */
    bool part;             /* ... of a part of the graph that is computed again for them */
    struct Flow *flow;     /* of a branch or loop, whose text is graphs (ops/flow/flow.h) */
} CodeSpec;

/* ---- ops/user/code.c ---- */
/* The same but for the scalars' values (and the host function beside a source)? Then one compiled
 * kernel serves both. */
JOT_FN bool jot_code_same(const CodeSpec *a, const CodeSpec *b);
/* Gradient nodes of a CODE or MAP node from the user's texts. dout: one per output (a MAP has one),
 * 0: none flows; din: one per input. On entry din[k] != 0 says that the gradient of input k is
 * wanted; on return din[k] is its node, 0 where there is no text or nothing flows. False:
 * JOT_EGRAD naming a wanted float input that has no text, or another failure. */
JOT_FN bool jot_code_grad(jot_Ctx *ctx, NodeId node, const NodeId *dout, NodeId *din);
/* What follows for the result of a MAP node from the tangent t of operand k. 0: no text was given,
 * or another failure. */
JOT_FN NodeId jot_code_tangent(jot_Ctx *ctx, NodeId map, int k, NodeId t);
/* ---- ops/user/check.c ---- */
/* Were all positions inside that were looked at since the last call? Fails with JOT_ERANGE. */
JOT_FN bool jot_check_passed(jot_Ctx *ctx);

/* Run a CODE node through its host function: buf as above. False: there is none; the message names
 * the operator and says which backends run it (a MAP never has one). */
JOT_FN bool jot_code_host(jot_Ctx *ctx, NodeId node, void *const *buf);

/* ---- between code.c, ops/user/names.c and ops/user/grad.c ---- */
/* All names of the kernel and of its gradient kernels are fit and distinct. */
JOT_FN bool jot_codespec_names(jot_Ctx *ctx, const char *op, const jot_Code *c);
JOT_FN bool jot_code_is_among(const char *words, const char *name); /* " one two three " */
JOT_FN bool jot_code_is_word(const char *name); /* of C99 */
/* "y_0" or "y_n", and for a gradient "dy_0": 1 + which argument; which extent, -1: its elements. */
JOT_FN bool jot_codespec_parallel(jot_Ctx *ctx, const char *name, const CodeSpec *s, bool gradient,
                                  int *arg, int *dim);
/* Making specs. False, NULL: memory was refused, and nothing was reported yet. */
JOT_FN CodeSpec *jot_codespec_open(jot_Ctx *ctx, int inputs, int outputs, int scalars); /* refs 1 */
JOT_FN bool jot_codespec_string(CodeSpec *s, const char **to, const char *prefix, const char *text);
JOT_FN bool jot_codespec_arg(CodeSpec *s, int k, jot_DType dtype, int rank, const int64_t *ext);
/* Makes it printable. */
JOT_FN bool jot_codespec_name(CodeSpec *s, const char *prefix, const char *name);
JOT_FN void jot_codespec_finish(CodeSpec *s); /* everything is filled in: compute the hash */
/* f over n examples, outermost; input k has its own in each, or with shared[k] none. Only inputs
 * that f's examples share may be shared. NULL: the context has the reason. */
JOT_FN CodeSpec *jot_codespec_examples(jot_Ctx *ctx, CodeSpec *f, int64_t n, const bool *shared);
/* A CODE node and its PICK nodes; the PICK nodes of a CODE node. False: the context has the
 * reason. */
JOT_FN bool jot_codespec_node(jot_Ctx *ctx, CodeSpec *s, const NodeId *input, NodeId *pick);
/* The extents of an array over all examples; how many there are. */
JOT_FN int jot_codespec_ext(const CodeSpec *s, const CodeArg *a, int64_t *ext);
JOT_FN bool jot_codespec_picks(jot_Ctx *ctx, NodeId code, NodeId *pick);

/* ---- ccode/emit/user.c ---- */
/* Append the kernel of a CODE node as function fn_name: helpers and one function with the
 * signature of ccode/emit.h. It needs jot_emit_prelude before it. Compile it in a text without
 * other CODE nodes: two users' helpers may have one name. *count: what [0, count) is handed out as
 * [lo, hi); 1 where the code is to run once; may be 0: nothing to run. False: out of memory. */
JOT_FN bool jot_code_text(jot_Ctx *ctx, NodeId code_node, const char *fn_name, Text *out,
                          int64_t *count);
/* Append the name of a MAP node's function, for jot_v_call: code_map_0123456789abcdef. */
JOT_FN bool jot_code_map_name(jot_Ctx *ctx, NodeId map_node, Text *out);
/* Append the definition of that function. It has to stand before the kernels that call it, after
 * the prelude; a second definition of the same is skipped by the preprocessor, so that each group
 * may bring its own. `function` stands before it: "static ", or what a device wants. It takes and
 * gives single elements (f16, bf16: as float; bool: as 0 or 1). */
JOT_FN bool jot_code_map_text(jot_Ctx *ctx, NodeId map_node, const char *function, Text *out);
/* ops/user/quote.c. text was refused with these messages: append the first line of the
 * user's that they are about, with its operator's name, and a newline; nothing where they are about
 * ours. */
JOT_FN void jot_code_quote(const char *text, size_t nbytes, const char *messages, Text *out);

#endif
