/* ops/graph.h - the graph: nodes, slots, scopes, and the context that owns them.
 *
 *   slot  --refs-->  node  --inputs-->  node ...          refs = slots + consumers + queues
 *
 * A node is immutable once built, but for its data (filled by evaluation) and its name. Nodes are
 * hash-consed unless the context says otherwise, so two calls of the same operator on the same
 * operands are one node. Users never free nodes: dropping the last reference frees a node and,
 * iteratively, what only it used.
 *
 *   kind      inputs                  what
 *   LEAF      -                       has data: array, parameter
 *   CONST     -                       `value` in every element
 *   IOTA      -                       element i is i[op], as the dtype
 *   RANDOM    -                       EW_UNIFORM or EW_NORMAL of (seed value.u, stream + position)
 *   EW        1..3, of its shape      op of scalar.def; CAST to `dtype`
 *   MAP       user's operands         element-wise user text (code_map)
 *   REINDEX   x, then index variables out[i] = x[index(i)] or `value` (overflow)
 *   REDUCE    y, then index variables out[index(i)] op= y[i];  MEAN has `value.f` = finishing scale
 *   STACK     any, of one shape       its pieces one after the other  (ops/rewrite/stack.c)
 *   CODE      user's operands         opaque kernel, branch or loop; its outputs are PICK nodes
 *   PICK      a CODE node             output number op of it
 *   ALIAS     one                     the same value under other rules: stop_grad, stop_fuse, or an
 *                                     assigned state (a leaf for gradients) whose value is pending
 *   CUSTOM    x, then y               has no value: what becomes of the gradients of y (a callback)
 *
 * What a node stands beside without being computed from it is its `also`: gradients see it, values
 * do not. An ALIAS of y[op] has its CUSTOM there. What is computed again (checkpoints) begins with
 * an ALIAS that has there the gradient it is wanted for, so that it is another node.
 *
 * Read before: core.h, base.h, ops/index/index.h. After: the builders ops/element.c, ops/reindex.c,
 * ops/reduce.c, then ops/grad/grad.c, fuse/fuse.h. */
#ifndef JOT_GRAPH_H
#define JOT_GRAPH_H
#include "base.h"
#include "ops/index/index.h"
#include "target/target.h"

typedef enum {
    NODE_FREE, NODE_LEAF, NODE_CONST, NODE_IOTA, NODE_RANDOM, NODE_EW, NODE_MAP, NODE_REINDEX,
    NODE_REDUCE, NODE_STACK, NODE_CODE, NODE_PICK, NODE_ALIAS, NODE_CUSTOM
} NodeKind;

typedef enum {
    EW_NONE,
#define EW(ID, name, arity, result, flags, f_c, i_c, b_c, ...) EW_##ID,
#include "ops/scalar.def"
#undef EW
    EW_OPS
} EwOp;

typedef enum { EW_SAME, EW_BOOL, EW_ARG1 } EwResult;
enum { EW_COMMUTES = 1, EW_ASSOCIATES = 2, EW_DEAR = 4 };
typedef struct {
    const char *name; /* as users call it, without jot_ */
    uint8_t arity, result, flags;
    const char *c[3]; /* C text for floats, integers, bool; "" : not defined for that class */
} EwInfo;
extern const EwInfo jot_ew_info[EW_OPS];

/* What reduces know of their operator: name, the element-wise operator that combines two elements,
 * and whether there is an identity per dtype (ops/reduce.c). */
typedef struct { const char *name; uint8_t combine; } ReduceInfo;
/* After the public reductions: the mean of squared deviations from the mean, over whole dimensions.
 * Its scale is 1 / the number of their elements, as a mean's is. */
enum { REDUCE_VAR = JOT_REDUCE_OPS, REDUCE_OPS };
extern const ReduceInfo jot_reduce_info[REDUCE_OPS];
/* Identity of op for dtype (-inf for max of floats, the smallest integer for integers, ...). */
JOT_FN jot_Scalar jot_reduce_identity(int op, jot_DType dtype);

typedef uint32_t NodeId; /* 0: poison */

/* Row-major elements in memory, shared by the nodes whose value they are. They may be in host
 * memory, in the backend's memory, or in both; since elements never change, both are then equal. A
 * missing copy is made when it is needed (plan/data.c). */
typedef struct Buffer Buffer;
struct Buffer {
    void *p;            /* in host memory; NULL: not there yet */
    size_t nbytes;
    uint32_t refs;
    void *device;       /* in the backend's memory, its handle; NULL: not there */
    struct PackedOnly *packed_only; /* not NULL: p was freed, the elements are only in one of
                                       `copies` */
    bool lent;          /* the user has a pointer to p (jot_data): p stays */
    bool borrowed;      /* p is the caller's: read, never written */
    jot_ReleaseFn *release; /* ... who is told when it is needed no longer; may be NULL */
    void *release_user;
    Buffer *copies;     /* the same elements in other layouts; they live as long as this buffer */
    Buffer *next_copy;  /* of a copy: the next one in that list */
    char *key;          /* of a copy: its layout as text, unique in the list */
    size_t nkey;
};

enum {
    NODE_STOP_GRAD = 1, /* ALIAS: no gradient passes */
    NODE_STOP_FUSE = 2, /* ALIAS: stored, consumers do not fuse with it */
    NODE_STATE = 4,     /* ALIAS or LEAF: assigned or a parameter: a leaf for gradients */
    NODE_HOLE = 8       /* LEAF without elements: what goes into the body of a branch or loop */
};

/* What became of a node that others were called on and do not read: they know by which map
 * (ops/grad/past.c), or nobody does. FIXED: elements of it that are known became a constant.
 * ASKED: its gradient is, by the walk at work. */
enum { PASSED_KEPT = 1, PASSED_LOST = 2, PASSED_FIXED = 4, PASSED_ASKED = 8 };
typedef struct Past Past;

typedef struct {
    uint8_t kind, op, dtype, flags;
    uint8_t rank, ninputs;
    uint16_t nindex, ncond;   /* REINDEX: one index per dimension of x; REDUCE: per own dimension */
    uint8_t passed;
    uint32_t refs;
    uint32_t hash_next;       /* next node of the same bucket of the sharing table */
    uint64_t hash;            /* 0: not shared */
    uint64_t stream;          /* RANDOM: counter of element 0 */
    jot_Scalar value;
    int64_t nelem;
    const int64_t *ext;       /* rank extents            \                        */
    NodeId *input;            /* ninputs                  } in one block, `block` */
    Ix *index;                /* nindex, over own axes (REINDEX) or input 0's (REDUCE) */
    Ix *cond;                 /* ncond, all must hold    /                        */
    void *block;
    uint32_t block_nbytes;
    uint32_t mark;            /* scratch of graph walks: number of the last walk that saw it */
    uint32_t at;              /* scratch: position in that walk's list */
    Buffer *data;             /* its elements, once evaluated (or from the start: LEAF) */
    struct CodeSpec *code;    /* CODE, MAP, CUSTOM: refcounted (ops/user/code.h) */
    NodeId also;              /* held, but no part of the value; 0: none */
    char *name;               /* user's name or NULL */
    Past *past;               /* the nodes that it was made past; NULL: none */
    uint64_t born;            /* number of this node among all, freed ones too */
    uint64_t origin;          /* ... of the first that its variable meant; born: it is the first */
} Node;

typedef struct {
    NodeId node;
    uint32_t gen, depth;
    uint32_t next;  /* ended: next free slot; live: its entry in `scoped` */
    uint32_t undo;  /* live: 1 + its entry in `undo`, 0 for none */
    uint32_t held;  /* live: 1 + its entry in `held`, 0 for none */
    uint64_t made;  /* live: number of its handle among all, ended ones too */
    bool dup;       /* a second handle: nobody's name for a state */
} Slot;
/* A slot is live when node is not 0. */

typedef struct {
    NodeId node;
    jot_FetchFn *call;
    void *user;
    struct DeviceCopy *copy;  /* being copied to the host; NULL: not begun */
} Fetch;

typedef struct { uint32_t slot, gen; NodeId old; } Undo; /* holds a reference to old */

struct Backend;
struct PlanCache;

#define NODE_CHUNK 1024
enum { SAID = 8 };
struct jot_Ctx {
    Mem mem;
    jot_Config config;       /* as resolved: strings live in `strings` */
    Arena strings;
    Target target;           /* fixed once open */
    /* first failure */
    jot_Status status;
    char message[1024];
    /* graph */
    IxPool ix;
    Vec(Node *) chunks;      /* nodes by number: chunks.v[id / NODE_CHUNK][id % NODE_CHUNK] */
    NodeId free_node;        /* list through hash_next */
    uint32_t nodes_made;     /* highest id + 1 */
    uint32_t live_nodes, unrun_nodes;
    uint64_t born;           /* nodes made so far, freed ones too */
    uint32_t *table;         /* sharing: hash -> first node of bucket */
    uint32_t table_cap;
    uint32_t walk;           /* number of the current graph walk */
    /* handles */
    Vec(Slot) slots;
    uint32_t free_slot, live_slots;
    uint64_t handles;        /* made so far, ended ones too */
    Vec(uint32_t) scoped;    /* slots in order of creation, scopes are ranges of it */
    Vec(uint32_t) marks;     /* where each open scope begins in `scoped` */
    uint32_t lost_marks;     /* pushes that failed for want of memory: their pops do nothing */
    /* evaluation */
    Vec(NodeId) pending;     /* ALIAS nodes of assignments that have not run */
    Vec(Undo) undo;          /* what the assigned slots named before; jot_clear puts it back */
    Vec(Undo) held;          /* before the first assignment since jot_begin, for jot_rollback */
    bool begun;              /* since jot_begin, until jot_commit or jot_rollback */
    uint64_t begins;         /* how often that was so */
    jot_RandomState begun_at; /* the generator then */
    uint64_t runs;           /* evaluations and calls of compiled functions that went well */
    Vec(Fetch) fetches;
    uint32_t fetched;        /* so many at the front are computed, and come whatever happens */
    struct CheckPlace *checks; /* ops/user/check.c: operators whose positions are looked at */
    struct { const struct CheckPlace *place; jot_Scalar value; int64_t extent, at; }
        outside;             /* the first position that was outside; place NULL: none was */
    uint64_t seed, stream;
    struct Backend *backend;
    /* frees Buffer.device; NULL: the backend is no device */
    void (*release)(jot_Ctx *ctx, void *device, size_t nbytes);
    bool (*run)(jot_Ctx *ctx, jot_Vars vars); /* jot_run: who builds graphs knows no plans */
    struct DeviceMemory *device; /* plan/data.c; NULL: none was asked for yet */
    struct PlanCache *plans;
    struct Profile *profile; /* NULL: nothing was ever profiled */
    const struct TuneStore *tune_store; /* plan/tier/tune.h; NULL: schedules are remembered here */
    void *tuned_state;       /* ... its own */
    jot_Stats stats;
    uint64_t said[SAID];     /* hashes of the last notes in the log; see jot_host_say */
    unsigned nsaid;
    unsigned forks;          /* of the process before it was opened; see jot_home */
    bool forked;             /* this is a child of the process that opened it, and was told so */
    bool running;            /* inside an evaluation (callbacks may not start another) */
    int building;            /* callbacks of gradients and bodies at work, one within the other */
    const char *body;        /* the branch or loop whose body is being built; NULL: none */
    bool closing;            /* nodes go, whatever refers to them */
    bool unasked;            /* ... that a builder started (JOT_START_NODES): no handle may lose its
                                value by it */
    Vec(NodeId) loose;       /* nodes that may still be without a reference; see jot_graph_sweep */
};

/* ---- errors ---- */
/* Keep the first failure; always returns false. */
JOT_FN bool jot_fail(jot_Ctx *ctx, jot_Status status, const char *format, ...) JOT_PRINTF(3, 4);
/* EMEM, "what: out of memory". After a failure of another kind it says nothing, so that it ends
 * whatever may have failed in both ways. */
JOT_FN bool jot_fail_memory(jot_Ctx *ctx, const char *what);
/* Append x to a growable array. False: memory was refused to `what`. */
#define jot_vec_add(ctx, vec, x, what) \
    (jot_vec_reserve(&(ctx)->mem, (vec), 1) ? ((vec).v[(vec).n++] = (x), true) \
                                            : jot_fail_memory((ctx), (what)))
/* config.c: the configuration into ctx->config; is it one? */
JOT_FN bool jot_config_read(jot_Ctx *ctx, const jot_Config *given);
JOT_FN bool jot_config_check(jot_Ctx *ctx);
/* Is this the process that opened the context? In a child of fork its threads and its device are
 * not there: whoever would use them asks first. The second fails with JOT_EUSE. */
JOT_FN bool jot_home(jot_Ctx *ctx);
JOT_FN bool jot_home_only(jot_Ctx *ctx, const char *what);
/* A rewrite that may be given up: what failed since the attempt began is forgotten. */
typedef struct { jot_Status status; bool failed; } Attempt;
JOT_FN Attempt jot_attempt(const jot_Ctx *ctx);
JOT_FN void jot_give_up(jot_Ctx *ctx, Attempt before);

/* ---- nodes (ops/graph.c) ---- */
JOT_FN bool jot_graph_open(jot_Ctx *ctx);
JOT_FN void jot_graph_close(jot_Ctx *ctx);
/* A node's address, which is stable. */
#define jot_node(ctx, id) (&(ctx)->chunks.v[(id) / NODE_CHUNK][(id) % NODE_CHUNK])
JOT_FN void jot_node_ref(jot_Ctx *ctx, NodeId id);
JOT_FN void jot_node_unref(jot_Ctx *ctx, NodeId id); /* iterative: frees what nothing else holds */

/* The description of a node. jot_node_make returns the existing node of that description, or a new
 * one, or 0 after a failure. It takes references to the inputs, but the result has none of its own
 * yet (refs may be 0): take one before the next unref. unshared: always a new node. */
typedef struct {
    NodeKind kind;
    int op;
    jot_DType dtype;
    int flags, rank;
    const int64_t *ext;
    int ninputs; const NodeId *input;
    int nindex; const Ix *index;
    int ncond; const Ix *cond;
    jot_Scalar value;
    uint64_t stream;
    struct CodeSpec *code;
    NodeId also;
    bool unshared;
} NodeSpec;
JOT_FN NodeId jot_node_make(jot_Ctx *ctx, const NodeSpec *spec);
JOT_FN NodeSpec jot_node_spec(const Node *n); /* what makes this one; its lists are n's */
JOT_FN NodeSpec jot_spec_of(NodeKind kind, jot_DType dtype, int rank, const int64_t *ext);
/* ... of the dtype and shape of the first of its inputs. */
JOT_FN NodeSpec jot_spec_over(jot_Ctx *ctx, NodeKind kind, int ninputs, const NodeId *input);
/* The shared node of this description; 0: there is none. */
JOT_FN NodeId jot_node_find(jot_Ctx *ctx, const NodeSpec *spec);
/* Turn a node that is not evaluated into one of another description with the same elements; its
 * references and consumers stay. False: memory was refused, nothing has changed. */
JOT_FN bool jot_node_become(jot_Ctx *ctx, NodeId id, const NodeSpec *spec);
/* Checks an extent list for a variable of dtype: rank, negative extents, too many bytes. */
JOT_FN bool jot_shape_ok(jot_Ctx *ctx, const char *op, jot_DType dtype, int rank,
                         const int64_t *ext, int64_t *nelem);
/* Free the nodes without references that were made since loose.n was `mark`. A public builder notes
 * loose.n at its start and sweeps at its end, after jot_var_of, which frees what folding or a
 * failure left over. */
JOT_FN void jot_graph_sweep(jot_Ctx *ctx, uint32_t mark);
/* A pending state whose input is evaluated takes over the input's data and drops the input. */
JOT_FN void jot_node_to_leaf(jot_Ctx *ctx, NodeId id);
/* The name is copied; NULL: none. False: memory was refused to `op`. */
JOT_FN bool jot_node_name(jot_Ctx *ctx, NodeId id, const char *name, const char *op);
/* The node owns buf from now on (one of its references). */
JOT_FN void jot_node_set_data(jot_Ctx *ctx, NodeId id, Buffer *buf);
/* Elements (ops/buffer.c); bytes that a node's take. */
JOT_FN int64_t jot_node_nbytes(const Node *node);
JOT_FN Buffer *jot_buffer_new(jot_Ctx *ctx, size_t nbytes); /* refs 1, contents unset */
/* ... that owns device memory; NULL: refused, and the memory stays the caller's. */
JOT_FN Buffer *jot_buffer_of(jot_Ctx *ctx, size_t nbytes, void *device);
JOT_FN bool jot_buffer_host(jot_Ctx *ctx, Buffer *buf); /* allocate p if it is NULL; not filled */
JOT_FN void jot_buffer_no_host(jot_Ctx *ctx, Buffer *buf); /* free p: the device has the elements */
JOT_FN void jot_buffer_unref(jot_Ctx *ctx, Buffer *buf);
/* May who has one reference write new elements into p? */
JOT_FN bool jot_buffer_own(const Buffer *buf);
/* The copy of this key; NULL: there is none. */
JOT_FN Buffer *jot_buffer_copy(const Buffer *buf, const char *key, size_t nkey);
/* A new buffer, of zeros if it is `padded` (else all of it is written), that can become that copy
 * by copy_keep, which cannot fail. Until then it belongs to the caller, who may unref it. */
JOT_FN Buffer *jot_buffer_copy_new(jot_Ctx *ctx, size_t nbytes, bool padded, const char *key,
                                   size_t nkey);
JOT_FN void jot_buffer_copy_keep(Buffer *buf, Buffer *copy);
/* ops/buffer.c: free p, because a copy in another layout has the elements. Returns a table for
 * the caller to fill: for each position of each dimension its offset in the copy, in elements (an
 * element's place there is the sum over its dimensions). NULL: memory was refused, or p must stay.
 * jot_buffer_back makes p again from the copy; false: memory was refused. */
JOT_FN int64_t *jot_buffer_packed_only(jot_Ctx *ctx, Buffer *buf, Buffer *copy, int rank,
                                const int64_t *ext, size_t element);
JOT_FN bool jot_buffer_back(jot_Ctx *ctx, Buffer *buf);
JOT_FN void jot_buffer_changed(jot_Ctx *ctx, Buffer *buf); /* new elements follow: drop copies */
/* Nodes of user code hold a reference of their CodeSpec (ops/user/release.c). */
JOT_FN void jot_code_ref(struct CodeSpec *code);
JOT_FN void jot_code_unref(jot_Ctx *ctx, struct CodeSpec *code);
/* Drop the pending assignments whose variable was assigned anew, or ended, before they ran. */
JOT_FN void jot_pending_trim(jot_Ctx *ctx);
/* Of the assignments since the last evaluation: forget how to undo them (it has run); undo all. */
JOT_FN void jot_undo_forget(jot_Ctx *ctx);
JOT_FN void jot_undo_apply(jot_Ctx *ctx);
/* The node that the k-th of them assigned, 0 if its slot has ended; undo that one alone, whose
 * reference passes to the caller. */
JOT_FN NodeId jot_undo_now(const jot_Ctx *ctx, uint32_t k);
JOT_FN void jot_undo_take(jot_Ctx *ctx, uint32_t k);
/* Each slot names what the k-th entry has, and the entry what it named: twice, nothing changed. */
JOT_FN void jot_undo_swap(jot_Ctx *ctx);
/* Between jot_begin and its end: room for n slots that are to name others; what this one names now
 * stays as it is, for jot_rollback. Outside: nothing. */
JOT_FN bool jot_held_room(jot_Ctx *ctx, uint32_t n);
JOT_FN void jot_held_note(jot_Ctx *ctx, uint32_t slot);

/* Node-level builders: operands are NodeIds of the right shapes and dtypes already (the gradient,
 * the public builders and graph rewrites call these); they fold, share and compose unless
 * config.no_simplify. 0 in gives 0 out. They live in the file of their meta-operator. */
JOT_FN NodeId jot_const_node(jot_Ctx *ctx, jot_DType dtype, int rank, const int64_t *ext,
                             jot_Scalar v);
JOT_FN NodeId jot_const_f64(jot_Ctx *ctx, jot_DType dtype, int rank, const int64_t *ext, double v);
/* The seed of the `number`-th random variable of a context; *stream: counter of its element 0. */
JOT_FN uint64_t jot_random_seed(const jot_Ctx *ctx, int op, jot_DType dtype, uint64_t number,
                                uint64_t *stream);
JOT_FN NodeId jot_iota_node(jot_Ctx *ctx, jot_DType dtype, int rank, const int64_t *ext, int dim);
JOT_FN NodeId jot_ew_node(jot_Ctx *ctx, EwOp op, jot_DType dtype, int n, const NodeId *operand);
/* ... of a, b, c, as many as op takes, in the dtype of a (no cast). */
JOT_FN NodeId jot_ew_of(jot_Ctx *ctx, EwOp op, NodeId a, NodeId b, NodeId c);
JOT_FN NodeId jot_reindex_node(jot_Ctx *ctx, NodeId x, int rank, const int64_t *ext,
                               const Ix *index, int ncond, const Ix *cond, jot_Scalar overflow,
                               int nextra, const NodeId *extra);
/* Does a REINDEX read inside its x everywhere, without a condition? */
JOT_FN bool jot_reindex_total(jot_Ctx *ctx, const Node *node);
JOT_FN NodeId jot_reduce_node(jot_Ctx *ctx, int op, NodeId y, int rank, const int64_t *ext,
                              const Ix *index, int ncond, const Ix *cond, double scale,
                              int nextra, const NodeId *extra);
JOT_FN NodeId jot_alias_node(jot_Ctx *ctx, NodeId x, int flags);
/* ops/grad/past.c: y, called on x by this map, reads what x reads (made: it is new, and will know;
 * what was there before stays what it is); x was gone past in another way; drop a past; what it
 * knows is lost. */
JOT_FN void jot_past_keep(jot_Ctx *ctx, NodeId y, bool made, NodeId x, int nindex, const Ix *index,
                          int ncond, const Ix *cond);
JOT_FN void jot_past_lost(jot_Ctx *ctx, NodeId x, uint8_t how);
JOT_FN void jot_past_unref(jot_Ctx *ctx, Past *p);
JOT_FN void jot_past_lose(jot_Ctx *ctx, const Past *p);
/* Is this CONST node equal to v in every element? */
JOT_FN bool jot_node_is(jot_Ctx *ctx, NodeId id, double v);
/* A constant that is part of a kernel: 0, 1, an infinity: 1 to 4; a byte, which may be a mask or a
 * shift: 3 more than it is. 0: others, -0 too, are arguments. */
JOT_FN int jot_node_literal(jot_Ctx *ctx, NodeId id);
/* The map of a REDUCE read backwards where it is injective: solves index(i) = o for i.
 * solution[k] = axis k of the input in terms of output axes; returns false if there is none. */
JOT_FN bool jot_map_invert(jot_Ctx *ctx, int in_rank, const int64_t *in_ext, int out_rank,
                           const Ix *index, Ix *solution, uint64_t *used_dims);

/* ops/flow/body.c. Fails while the body of a branch or loop is built: what op does is no value. */
JOT_FN bool jot_flow_outside(jot_Ctx *ctx, const char *op);

/* ---- walks: topological orders without recursion ---- */
typedef struct { uint32_t n, cap; NodeId *v; } NodeList;
/* Everything the roots need, inputs first. Stops at LEAF and at nodes with data when
 * `stop_at_data`; otherwise history is followed, and what nodes stand beside. Sets
 * mark = ctx->walk and at = the position. */
JOT_FN bool jot_graph_order(jot_Ctx *ctx, const NodeId *roots, uint32_t n, bool stop_at_data,
                            NodeList *out);
/* Make it the last walk again, after others. */
JOT_FN void jot_graph_number(jot_Ctx *ctx, const NodeList *list);
/* The same, after equal cells, products and sums of them were merged (ops/rewrite/batch.c), but
 * not while a gradient is at work. The nodes in `keep` are not replaced. */
JOT_FN bool jot_graph_order_batched(jot_Ctx *ctx, const NodeId *roots, uint32_t n,
                                    bool stop_at_data, const NodeId *keep, uint32_t nkeep,
                                    NodeList *out);
/* ops/rewrite/cells.c: merge equal cells. True: nodes of the list have changed. */
JOT_FN bool jot_cells_join(jot_Ctx *ctx, const NodeList *list, const NodeId *roots, uint32_t n,
                           const NodeId *keep, uint32_t nkeep);
JOT_FN void jot_list_free(jot_Ctx *ctx, NodeList *list);

/* ops/rewrite/stack.c: a variable made of equally long pieces of other variables, one after the
 * other. */
enum { STACK_MOST = 248 };
typedef struct { NodeId x; int64_t at; } Piece; /* from element `at` of x on; x 0: zeros */
JOT_FN NodeId jot_stack_node(jot_Ctx *ctx, jot_DType dtype, int rank, const int64_t *ext, int n,
                             const Piece *piece);
/* How many pieces a STACK has; piece k. */
JOT_FN int jot_stack_pieces(const Node *n);
JOT_FN Piece jot_stack_piece(const jot_Ctx *ctx, const Node *n, int k);
/* ops/rewrite/again.c: extremes with data, of what is computed again. True: nodes of the list have
 * changed. */
JOT_FN bool jot_extremes_again(jot_Ctx *ctx, const NodeList *list);
/* ops/rewrite/stack_sum.c: turn sums of products into one product. True: nodes of the list have
 * changed. */
JOT_FN bool jot_stack_sums(jot_Ctx *ctx, const NodeList *list);

/* ---- slots ---- */
JOT_FN jot_Var jot_var_of(jot_Ctx *ctx, NodeId id); /* new slot in the current scope; takes a ref */
/* ... of n nodes, which are held meanwhile; all or none. */
JOT_FN bool jot_vars_of(jot_Ctx *ctx, int n, const NodeId *id, jot_Var *out);
/* The node of a handle. 0 and an error that names op and arg if it is stale or poison (an earlier
 * failure, the cause of the poison, stays the message). */
JOT_FN NodeId jot_node_of(jot_Var v, const char *op, const char *arg);
/* ... of a handle that must belong to ctx; of list.v[k], which messages call arg[k]. */
JOT_FN NodeId jot_node_in(jot_Ctx *ctx, jot_Var v, const char *op, const char *arg);
JOT_FN NodeId jot_node_at(jot_Ctx *ctx, jot_Vars list, int k, const char *op, const char *arg);
JOT_FN bool jot_nodes_of(jot_Ctx *ctx, jot_Vars list, const char *op, const char *arg,
                         NodeId *out); /* ... all of them */
JOT_FN jot_Var jot_var_outside(jot_Ctx *ctx, NodeId id); /* as jot_var_of, but outside all scopes */
/* An array whose elements somebody writes or brings before anybody reads; host: in memory that is
 * there (ops/create.c). */
JOT_FN jot_Var jot_array_unset(jot_Ctx *ctx, const char *op, jot_DType dtype, jot_Ints shape,
                               bool host);
#define JOT_POISON(c) ((jot_Var){(c), 0, 0})

/* ---- dtypes (ops/dtype.c) ---- */
enum { CLASS_FLOAT, CLASS_INT, CLASS_BOOL };
JOT_FN int jot_dtype_class(jot_DType dtype);
JOT_FN bool jot_dtype_signed(jot_DType dtype);
JOT_FN jot_DType jot_dtype_compute(jot_DType dtype); /* f16, bf16 -> f32; else itself */
JOT_FN double jot_scalar_f64(jot_Scalar v, jot_DType dtype); /* a CONST's value as a double */
/* Convert a double (or integer) to the nearest value of dtype, in the form kept in Node.value: `f`
 * for floats (rounded to f32/f16/bf16), `i`/`u` for integers and bool. */
JOT_FN jot_Scalar jot_scalar_from_f64(double v, jot_DType dtype);
JOT_FN jot_Scalar jot_scalar_from_i64(int64_t v, jot_DType dtype);
JOT_FN jot_Scalar jot_scalar_read(const void *element, jot_DType dtype);
JOT_FN void jot_scalar_write(void *element, jot_DType dtype, jot_Scalar v);
/* One application of an element-wise operator on scalars in Node.value form (folder and
 * interpreter): operands have dtype `in` (compute dtype), the result dtype `out`. ops/scalar.c, on
 * the prelude. */
JOT_FN jot_Scalar jot_scalar_apply(EwOp op, jot_DType in, jot_DType out, const jot_Scalar *operand);

/* ---- shapes (ops/shape.c), text ---- */
JOT_FN void jot_shape_text(Text *text, int rank, const int64_t *ext); /* (2, 3) */
enum { SHAPE_TEXT = 400 };
JOT_FN const char *jot_shape_str(char buf[SHAPE_TEXT], int rank, const int64_t *ext); /* in buf */
JOT_FN void jot_node_text(jot_Ctx *ctx, NodeId id, Text *text);       /* one line of the dump */

#endif
