/* ops/flow/flow.h - branches and loops: a CODE node whose text is graphs.
 *
 *     COND   test, operands ..                        otherwise | then     -> results
 *     LOOP   (count), carries, operands ..            test, body           -> carries, stacked,
 *                                                                             saved
 *
 *     hole        a leaf without elements that stands for an input (or its slice of a trip); a body
 *                 is a graph of its own, on holes, constants and positions alone
 *     form        the bodies as they are evaluated, for the outputs that somebody wants: planned,
 *                 or interpreted (plan/flow/form.c)
 *
 * In trip number t of a LOOP carries hold what the trip before left, operands what they are, or
 * where they are `sliced` their slice s; results are the next carries, and slice s of each of
 * `stacked`; `saved` gets the carries as the trip found them. s is t, or counted from the end where
 * `reverse`. It ends after `most` trips, or `count` of them, or when the test, asked before each,
 * says 0.
 *
 * Read before: ops/user/code.h. After: ops/flow/body.c, ops/flow/make.c, plan/flow/flow.h. */
#ifndef JOT_OPS_FLOW_H
#define JOT_OPS_FLOW_H
#include "ops/user/code.h"

typedef enum { FLOW_COND, FLOW_LOOP } FlowKind;
enum { FLOW_OTHERWISE, FLOW_THEN };            /* the bodies of a COND */
enum { FLOW_TEST, FLOW_TRIP, FLOW_BODIES };    /* of a LOOP; without a test n is 0 */
enum { FLOW_MOST = UINT8_MAX };                /* inputs and outputs */

typedef struct { int n; NodeId *result; } FlowBody;  /* with a reference each */

/* A body, for the outputs that are wanted, of nodes that nothing else has. root: distinct, and all
 * computed; output[k]: the output of the node that root k is for (a carry's: its next value). */
typedef struct {
    NodeList root, list;   /* list: inputs first; roots have a reference */
    uint8_t *asked;        /* per position of list: it is one of root */
    uint8_t *input;        /* ... 1 + the input whose hole it is; 0: none's */
    Buffer **own;          /* ... its elements, while holes have what they are lent */
    uint8_t output[FLOW_MOST];
} FlowPart;

typedef struct FlowForm FlowForm;
struct FlowForm {
    FlowForm *next;
    uint64_t want[4];      /* bit k: output k */
    FlowPart part[FLOW_BODIES];
    Vec(uint32_t) key;     /* the structure of the bodies, as plan/known/key.c has it */
    uint64_t hash;
    Vec(CodeSpec *) codes; /* user code in them, which their nodes hold */
};

typedef struct Flow {
    uint8_t kind;
    bool counted;          /* LOOP: input 0 is an i64, the number of trips */
    bool reverse;
    int64_t most;          /* ... trips; INT64_MAX: no bound, nothing is stacked or saved */
    int carries, stacked, saved;
    int counter;           /* where a test ends it and carries are saved: who counts trips */
    int lead;              /* inputs before these: COND's test, a LOOP's count */
    uint64_t sliced[4];    /* bit k: input k */
    NodeId *hole;          /* per input; 0 of the lead */
    FlowBody body[FLOW_BODIES];
    FlowForm *forms;
    FlowForm *form;        /* of the last selection that met the node */
    uint64_t wanted[4];    /* ... outputs that it wants, while these are collected */
    Buffer lent;           /* what holes hold while they are planned: no elements */
} Flow;

#define flow_bit(set, k) ((set)[(k) / 64] >> ((k) % 64) & 1)

/* ---- ops/flow/body.c: what a callback builds ------------------------------------------------ */

/* What is to become a node. input, hole: nodes, with references; behind `n` given ones what bodies
 * read from outside joins them. result: per body, with references. */
typedef struct {
    jot_Ctx *ctx;
    const char *op;        /* for messages: "while" */
    uint64_t born;         /* nodes that were there before */
    Flow flow;             /* kind, counts; its lists are those below */
    int n;                 /* inputs so far */
    NodeId input[FLOW_MOST], hole[FLOW_MOST];
    int results[FLOW_BODIES];
    NodeId result[FLOW_BODIES][FLOW_MOST];
} FlowMake;

JOT_FN void jot_flow_open(FlowMake *m, jot_Ctx *ctx, const char *op, FlowKind kind);
JOT_FN void jot_flow_close(FlowMake *m);
/* One more input, and what stands for it: a new hole of its shape (slice: without its first
 * dimension), or the given one; lead: none. False: the error is set. */
JOT_FN bool jot_flow_input(FlowMake *m, NodeId input, bool slice, NodeId hole);
JOT_FN bool jot_flow_lead(FlowMake *m, NodeId input);
JOT_FN NodeId jot_flow_hole(jot_Ctx *ctx, jot_DType dtype, int rank, const int64_t *ext);
/* A body's results by its callback, of the holes of inputs [from, from + count). */
JOT_FN bool jot_flow_build(FlowMake *m, int body, jot_BodyFn *fn, void *user, int from, int count,
                           int results);
/* ... that are known. */
JOT_FN bool jot_flow_result(FlowMake *m, int body, NodeId result);
/* What the bodies read from outside becomes inputs. */
JOT_FN bool jot_flow_capture(FlowMake *m);

/* ---- ops/user/release.c --------------------------------------------------------------------- */

JOT_FN void jot_flow_form_free(jot_Ctx *ctx, FlowForm *form);

/* ---- ops/flow/make.c ------------------------------------------------------------------------ */

/* What it is, refs 1; NULL: the error is set. */
JOT_FN CodeSpec *jot_flow_spec(FlowMake *m);
/* The node; its outputs' PICKs. False: the error is set. */
JOT_FN bool jot_flow_node(FlowMake *m, NodeId *pick);
/* Bytes of input k, and of output k of a LOOP, that a trip has. */
JOT_FN size_t jot_flow_input_nbytes(const CodeSpec *s, int k);
JOT_FN size_t jot_flow_output_nbytes(const CodeSpec *s, int k);

/* The form for these outputs, made when it is first asked for. NULL: the error is set. */
JOT_FN FlowForm *jot_flow_form(jot_Ctx *ctx, const CodeSpec *spec, const uint64_t want[4]);
/* Holes have these elements (per input; NULL: such as only say that they are there), and what is no
 * hole has none; and have back what they had. */
JOT_FN void jot_flow_lend(jot_Ctx *ctx, Flow *flow, FlowPart *part, Buffer *const *buf);
JOT_FN void jot_flow_back(jot_Ctx *ctx, FlowPart *part);

/* ---- ops/flow/grad.c, ops/flow/batch.c ------------------------------------------------------ */

/* As jot_code_grad, between other walks; nodes in din get a reference each. */
JOT_FN bool jot_flow_grad(jot_Ctx *ctx, NodeId id, const NodeId *dout, NodeId *din);
/* The tangents of its outputs where those of its inputs are t[0] .. (0: none), likewise. */
JOT_FN bool jot_flow_tangents(jot_Ctx *ctx, NodeId id, const NodeId *t, NodeId *out);

#endif
