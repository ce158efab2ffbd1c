/* save/save.h - graphs as text: what jot_save writes and jot_load reads, between the two.
 *
 *     jot_save      list of nodes  --write.c-->  JSON, tensors by name  --file.c-->  safetensors
 *     jot_load      safetensors    --file.c--->  JSON, tensors by name  --read.c-->  nodes
 *
 *     {
 *     "jot": "graph 1",
 *     "inputs": [0], "outputs": [7], "updates": [[2, 9]],
 *     "nodes": [
 *     {"op": "input", "dtype": "f32", "shape": [64, 784], "name": "x"},
 *     {"op": "param", "dtype": "f32", "shape": [784, 10], "tensor": "w"},
 *     {"op": "reindex", "dtype": "f32", "shape": [64, 784, 10], "in": [0], "index": ["i0", "i1"]},
 *     ...]
 *     }
 *
 * A node is known by its place in the list, and reads only from those before it: no list has a
 * cycle; the bodies of a branch or loop are a list of their own in its node. The words of a node
 * are those of save.def; each kind has some that it must have and some that it may have, and no
 * others. Nodes are made as they are written, not by the builders that
 * fold: so a graph that comes back is the one that was saved, and so are its kernels. What a
 * builder checks is checked here (save/check.c).
 *
 * Read before: ops/graph.h, ops/user/code.h, io.h. After: save/write.c. */
#ifndef JOT_SAVE_H
#define JOT_SAVE_H
#include "backends/host/host.h"
#include "ops/maps.h"
#include "ops/user/code.h"
#include "plan/plan.h"
#ifndef JOT_NO_HOST
#ifdef JOT_CJSON
#include <cjson/cJSON.h>
#endif

#define SAVE_MAGIC "graph 1"
enum { SAVE_EXPRESSION = 8192 }; /* characters of an expression, at most: a sum's parts are sums */
enum { SAVE_DEPTH = 16 };        /* bodies within bodies */

/* ---- the words of a node ---- */
typedef enum {
#define SAVE_WORD(ID, name) SAVE_##ID,
#define SAVE_KIND(...)
#include "save/save.def"
    SAVE_WORDS
} SaveWord;
extern const char *const jot_save_words[SAVE_WORDS];

typedef struct {
    const char *name;
    uint8_t kind;         /* NodeKind; NODE_EW: the name of any operator of scalar.def */
    uint32_t must, may;   /* words, bit by bit, beside op, dtype, shape, name, beside */
} SaveKind;
extern const SaveKind jot_save_kinds[];
JOT_FN const SaveKind *jot_save_kind(const char *name); /* NULL: there is none */

/* ---- writing (write.c, write_map.c, write_code.c, write_flow.c) ---- */
typedef struct { NodeId node; const char *name; } SaveTensor;
typedef struct { uint32_t slot; NodeId old, value; } SaveUpdate;
typedef struct {
    NodeList all;         /* what its roots stand on, inputs first */
    uint8_t *state;       /* per position: SAVED_ below */
    uint32_t *number;     /* ... place in the list */
    uint32_t nodes;       /* in the list */
} SaveList;
typedef struct {
    jot_Ctx *ctx;
    Arena arena;          /* of names */
    NodeList in, out;     /* nodes of inputs and outputs */
    Vec(SaveUpdate) updates;
    SaveList list;        /* of the graph, or of a body in it */
    int depth;            /* bodies that it is in */
    uint64_t first_draw;  /* number of the first random variable */
    Vec(SaveTensor) tensors;
    Text json;
} Saving;
enum { SAVED_DEPENDS = 1, SAVED_NEEDED = 2, SAVED_CUT = 4 }; /* CUT: its elements are known */
JOT_FN bool jot_save_graph(Saving *s, jot_Vars inputs, jot_Vars outputs);
JOT_FN void jot_save_end(Saving *s);
/* "text", as JSON has it. */
JOT_FN bool jot_save_string(Saving *s, const char *text);
/* , "word": value, if it is not the usual one */
JOT_FN void jot_save_number(Saving *s, const char *word, int64_t value, int64_t usual);
JOT_FN bool jot_save_map(Saving *s, const Node *n);  /* , "index": [...], "where": [...] */
JOT_FN bool jot_save_code(Saving *s, const Node *n); /* , "code": {...} */
JOT_FN bool jot_save_flow(Saving *s, const Node *n); /* , "flow": {...} */
/* A new list, of what the roots stand on; its nodes as text. */
JOT_FN bool jot_save_list(Saving *s, const NodeId *root, uint32_t n);
JOT_FN bool jot_save_nodes(Saving *s);
JOT_FN void jot_save_list_free(Saving *s);
/* "in": [3, 5], with the field as it is given: where in the list they are. */
JOT_FN void jot_save_places(Saving *s, const char *field, const NodeId *id, uint32_t n);

#ifdef JOT_CJSON
/* ---- reading (field.c, read.c, check.c, read_code.c, read_flow.c) ---- */
/* A leaf of this dtype and shape with the elements of that tensor of the file, as a parameter
 * outside all scopes, or as an array; name NULL: of zeros. Poison: the context has the reason. */
typedef jot_Var LoadLeafFn(void *user, const char *name, jot_DType dtype, jot_Ints shape,
                           bool param);
typedef struct {
    uint32_t n, at;       /* nodes in it; the one being read, n: none */
    NodeId *id;           /* per node; what is there has a reference */
    const char **name;    /* ... its name, or its tensor's; NULL: none */
} LoadList;
typedef struct {
    jot_Ctx *ctx;
    const char *file;     /* for messages */
    bool code;            /* code of the user's is taken */
    LoadLeafFn *leaf;
    void *user;
    cJSON *root;
    Arena arena;          /* of the lists below */
    LoadList list;        /* of the graph, or of a body in it */
    uint32_t within[SAVE_DEPTH]; /* nodes whose bodies it is in, so many: */
    int depth;
    uint32_t *param;      /* ... how many parameters there were with it; 0: it is none */
    bool *given;          /* ... it is an input */
    uint32_t *in, *out;   /* nodes by number; nin, nout of them */
    uint32_t *old, *value; /* updates */
    uint32_t nin, nout, nupdates;
    Vec(jot_Var) params;
    Vec(uint32_t) param_at;
    Vec(uint32_t) tensor_at; /* nodes whose elements are in the file */
    uint64_t draws;       /* numbers of random variables that it takes */
    uint64_t pool;        /* bytes of index expressions that it may come to */
} Loading;
/* A node of the file: the words that it has. */
typedef struct {
    const SaveKind *kind;
    cJSON *word[SAVE_WORDS];
    NodeSpec spec;
    int64_t ext[JOT_MAX_RANK];
    NodeId input[UINT8_MAX];
    Ix index[2 * STACK_MOST], cond[MAP_MAX_COND];
} LoadNode;
/* text: the graph, whose end is a 0. Nodes are made; handles and assignments are file.c's. */
JOT_FN bool jot_load_graph(Loading *l, const char *text);
JOT_FN void jot_load_end(Loading *l);
/* JOT_EIO "load: FILE: node 12: ...". Always false. */
JOT_FN bool jot_load_bad(Loading *l, const char *format, ...) JOT_PRINTF(2, 3);
/* A whole number of lo..hi. */
JOT_FN bool jot_load_whole(Loading *l, const cJSON *item, const char *what, int64_t lo, int64_t hi,
                           int64_t *value);
/* item's fields by name into field[0 .. n - 1]; one that is none of them is refused. */
JOT_FN bool jot_load_fields(Loading *l, const cJSON *item, const char *what,
                            const char *const *names, int n, cJSON **field);
JOT_FN uint32_t jot_load_count(const cJSON *array);
JOT_FN bool jot_load_array(Loading *l, const cJSON *item, const char *what);
JOT_FN bool jot_load_string(Loading *l, const cJSON *item, const char *what, const char **text);
/* Extents; dtype by name; 16 digits. */
JOT_FN bool jot_load_shape(Loading *l, const cJSON *item, int *rank, int64_t *ext);
JOT_FN bool jot_load_dtype(Loading *l, const cJSON *item, jot_DType *dtype);
JOT_FN bool jot_load_bits(Loading *l, const cJSON *item, jot_Scalar *value);
/* Do operands, dtype and shape fit what the node is? */
JOT_FN bool jot_load_check(Loading *l, const NodeSpec *spec);
/* The CodeSpec of a node, refs 1; kept: as in save.def, -1: none. */
JOT_FN CodeSpec *jot_load_code(Loading *l, const cJSON *item, const NodeSpec *spec, int64_t kept);
/* ... of a branch or loop. */
JOT_FN CodeSpec *jot_load_flow(Loading *l, const cJSON *item, const NodeSpec *spec);
/* The nodes of a new list, and what it holds on to. */
JOT_FN bool jot_load_nodes(Loading *l, const cJSON *nodes);
JOT_FN void jot_load_list_free(Loading *l);
/* Numbers of nodes of the list before `below`. */
JOT_FN bool jot_load_numbers(Loading *l, const cJSON *array, const char *what, uint32_t below,
                             uint32_t *to);

#endif
#endif
#endif
