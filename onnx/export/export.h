/* onnx/export/export.h - a graph becomes a model in ONNX's format: what the files of this room
 * share.
 *
 *     nodes --graph.c--> values --value.c, element.c, ..--> messages --model.c, file.c--> bytes
 *
 *     graph.c     which nodes; names; one value for each node, made by value.c
 *     message.c   nodes, attributes, constants of the model; arrays that change their shape
 *     model.c     inputs and outputs around them; what nobody reads goes
 *     element.c   element-wise operators        number.c   those that ONNX lacks, of those it has
 *     map.c       reindex: masks, a gather      digits.c   reshapes, transposes, slices
 *     place.c     index expressions as tensors  concat.c   sums of parts that are a concatenation
 *     reduce.c    reindex-reduce, scatters      product.c  sums of products: MatMul, Gemm
 *     window.c    Conv, ConvTranspose, pools    file.c     what callers see
 *
 * A value of a node is compact: only those dimensions are there along which its elements may
 * differ, as a bit each in `axes`. So what is broadcast in the graph stays small in the model, and
 * the factors of a product are there as they were before they were spread over its space.
 *
 * The one part of onnx/ that reads nodes: as save/ it stands above the graph.
 *
 * Read before: onnx.h, ops/graph.h. After: graph.c. */
#ifndef JOT_ONNX_EXPORT_H
#define JOT_ONNX_EXPORT_H
#include "onnx/parts.h"
#include "io/parts.h"
#include "ops/flow/flow.h"
#include "ops/maps.h"
#include "ops/user/code.h"
#include "plan/plan.h"

enum {
    EXPORT_OPSET = 18, EXPORT_IR = 8,
    EXPORT_RANK = 32,         /* of arrays in between */
    EXPORT_MOST = 1 << 24,    /* elements of a constant that is computed for the model */
    EXPORT_BUCKETS = 1024
};
#define EXPORT_STORED ((int64_t)1 << 31) /* elements of a value in between */
#define EXPORT_INSIDE ((size_t)1 << 30)  /* bytes of weights in the model itself, at most */

typedef const char *Tensor;   /* by its name; "": what failed */

/* A tensor and its shape; `was`: before it was reshaped. */
typedef struct {
    Tensor name, was;
    int rank, was_rank;
    int64_t ext[EXPORT_RANK], was_ext[EXPORT_RANK];
} Array;

/* Of a node: the dimensions in `axes`, in order. */
typedef struct { Tensor name; uint32_t axes; } Value;

enum { EXPORT_DEPENDS = 1, EXPORT_NEEDED = 2, EXPORT_LATE = 4, EXPORT_INPUT = 8 };

typedef struct { uint64_t hash; OnnxTensor *tensor; uint32_t next; } ExportConst;
typedef struct { Tensor name; uint32_t next; } ExportName;

typedef struct Export Export;
struct Export {
    jot_Ctx *ctx;
    const jot_OnnxExport *how;
    Value (*make)(Export *e, NodeId id); /* value.c: of a node that has no value yet */
    Arena arena;
    NodeList in, out, all;    /* all: what outputs stand on, operands first */
    Value *value;             /* per position in all; name NULL: not made yet */
    uint8_t *state;           /* ... EXPORT_ above */
    uint32_t *uses;           /* ... how many needed ones read it */
    Vec(OnnxNode *) nodes;
    Vec(OnnxTensor *) weights;
    Vec(ExportConst) consts;
    Vec(jot_Var) held;        /* whose elements the model has */
    Vec(ExportName) taken;    /* names of tensors: given, and made */
    uint32_t bucket[EXPORT_BUCKETS], name_bucket[EXPORT_BUCKETS]; /* of consts, of taken */
    uint32_t number;          /* of names so far */
    NodeId at;                /* the node that is written, for messages */
};

/* ---- message.c ---- */
JOT_FN void *export_new(Export *e, size_t count, size_t size); /* zeros; NULL: told */
JOT_FN bool export_ok(const Export *e);
JOT_FN bool export_refuse(Export *e, jot_Status status, const char *format, ...) JOT_PRINTF(3, 4);
JOT_FN int export_element(jot_DType dtype);
JOT_FN bool export_taken(Export *e, Tensor name);   /* is there such a tensor? */
JOT_FN bool export_take(Export *e, Tensor name);    /* there is, from now on; false: told */
JOT_FN OnnxNode *export_node(Export *e, const char *op, int n, const Tensor *in); /* NULL: told */
JOT_FN Tensor export_result(OnnxNode *node);
JOT_FN void export_i(Export *e, OnnxNode *node, const char *name, int64_t value);
JOT_FN void export_ints(Export *e, OnnxNode *node, const char *name, int n, const int64_t *v);
JOT_FN void export_text(Export *e, OnnxNode *node, const char *name, const char *text);
JOT_FN Tensor export_1(Export *e, const char *op, Tensor a);
JOT_FN Tensor export_2(Export *e, const char *op, Tensor a, Tensor b);
JOT_FN OnnxTensor *export_tensor(Export *e, jot_DType dtype, int rank, const int64_t *ext);
/* A constant of these elements, which are copied; equal ones are one. */
JOT_FN Tensor export_const(Export *e, jot_DType dtype, int rank, const int64_t *ext,
                           const void *data);
JOT_FN Tensor export_list(Export *e, int n, const int64_t *v);       /* i64 (n) */
JOT_FN Tensor export_number(Export *e, jot_DType dtype, double v);   /* a scalar */
JOT_FN Tensor export_scalar(Export *e, jot_DType dtype, jot_Scalar v);
JOT_FN Tensor export_cast(Export *e, Tensor x, jot_DType from, jot_DType to); /* wraps around */
/* The dtype in which ONNX Runtime computes what jot has in this one: i32, i64, f32, f64, bool. */
JOT_FN jot_DType export_work(jot_DType dtype);
JOT_FN Tensor export_where(Export *e, jot_DType dtype, Tensor c, Tensor a, Tensor b);
JOT_FN Array export_array(Tensor name, int rank, const int64_t *ext);
JOT_FN Array export_reshape(Export *e, Array a, int rank, const int64_t *ext);
JOT_FN Array export_transpose(Export *e, Array a, const int *order);
JOT_FN Array export_expand(Export *e, Array a, const int64_t *ext);
/* n positions of each dimension from start on, step apart. */
JOT_FN Array export_slice(Export *e, Array a, const int64_t *start, const int64_t *n,
                          const int64_t *step);
JOT_FN Array export_pad(Export *e, Array a, const int64_t *before, const int64_t *after, Tensor v);
JOT_FN Array export_gather(Export *e, Array x, Array index, int dim);
JOT_FN Array export_flat(Export *e, Array a);
JOT_FN int64_t export_nelem(int rank, const int64_t *ext);

/* ---- graph.c ---- */
JOT_FN bool export_graph(Export *e, jot_Vars inputs, jot_Vars outputs);
JOT_FN void export_end(Export *e);
/* What the node is called, or word and k; another one if there is such a tensor. */
JOT_FN Tensor export_name(Export *e, NodeId id, const char *word, uint32_t k);
JOT_FN bool export_is_weight(const Export *e, NodeId id); /* it has elements, for good */
JOT_FN bool export_model(Export *e, JotOnnx__Model *model); /* model.c */
JOT_FN Value export_value(Export *e, NodeId id);
JOT_FN Value export_make(Export *e, NodeId id);                 /* value.c */
JOT_FN uint32_t export_all_axes(const Node *n);
JOT_FN Array export_of(Export *e, NodeId id, Value v);          /* compact */
/* ... in a space of these extents, as an operand of what has the axes `of` */
JOT_FN Array export_compact(Value v, const int64_t *ext, int rank);
JOT_FN Tensor export_aligned(Export *e, Value v, const int64_t *ext, int rank, uint32_t of);
JOT_FN Array export_full(Export *e, NodeId id);                 /* all of its dimensions */
JOT_FN Array export_with(Export *e, Value v, const int64_t *ext, int rank, uint32_t axes);
/* src, whose dimension k is axis[k], as the compact value in ascending order. */
JOT_FN Value export_sorted(Export *e, Array src, const int *axis);

/* ---- element.c, number.c, concat.c ---- */
JOT_FN Value export_element_wise(Export *e, const Node *n);
/* What ONNX has no operator for; in, out: dtypes of the operands and the result in the graph. */
JOT_FN Tensor export_composed(Export *e, const Node *n, jot_DType in, const Tensor *x);
JOT_FN Tensor export_to(Export *e, Tensor x, jot_DType from, jot_DType to); /* as jot_cast */
/* Integers that are known to divide by no 0, -1. */
JOT_FN Tensor export_floor_div(Export *e, jot_DType dtype, Tensor a, Tensor b, bool safe);
JOT_FN Tensor export_floor_mod(Export *e, jot_DType dtype, Tensor a, Tensor b, bool safe);
JOT_FN bool export_concat(Export *e, const Node *n, Value *v);

/* ---- map.c, place.c, digits.c ---- */
/* A reindex of an array into a space, or a part of one. */
typedef struct {
    int rank;
    const int64_t *ext;       /* of the space */
    Array x;
    jot_DType dtype;
    Ix index[JOT_MAX_RANK];   /* one per dimension of x */
    int ncond;
    Ix cond[MAP_MAX_COND + 2 * JOT_MAX_RANK];
    int nextra;
    const NodeId *extra;
    jot_Scalar overflow;
    int nmask;
    Value mask[MAP_MAX_COND + 4 * JOT_MAX_RANK]; /* where it is x; else overflow */
} ExportMap;
JOT_FN Value export_map(Export *e, ExportMap *m);
/* The map of a REINDEX on its operand's compact value; NULL: told. */
JOT_FN ExportMap *export_map_of(Export *e, const Node *n);
JOT_FN bool export_digits(Export *e, ExportMap *m, Value *v);
/* An expression over a space as a tensor of i64, or (truth) of bool. */
JOT_FN Value export_place(Export *e, ExportMap *m, Ix ix, bool truth);
JOT_FN Value export_pair(Export *e, const ExportMap *m, const char *op, Value a, Value b);
/* Where each of the points is in an array of ext, flat; masks are added where it may be outside. */
JOT_FN Value export_flat_place(Export *e, ExportMap *m, int n, const Ix *index, const int64_t *ext);
/* Elements of the constants of a space along axes; false: told, they are too many. */
JOT_FN bool export_points(Export *e, const ExportMap *m, uint32_t axes, int64_t *n);
/* Axes of more than one point: indices name no others. */
JOT_FN uint32_t export_axes(const Node *space);
/* Points of the axes in turn; at: a place for each axis. False: there are no more. */
JOT_FN bool export_next(const int64_t *ext, int rank, uint32_t axes, int64_t *at);

/* ---- reduce.c, product.c, window.c ---- */
enum { TERMS = 4 };
/* c + sum of k[i] * axis[i], largest k first. */
typedef struct { int n, axis[TERMS]; int64_t k[TERMS], c; } Terms;
JOT_FN bool export_terms(const Export *e, Ix ix, Terms *t); /* false: it is not that */
/* Do they name each of their axes' points once, densely, 0 .. extent - 1? */
JOT_FN bool export_dense(const Terms *t, const int64_t *ext, int64_t extent);
JOT_FN Value export_reduce(Export *e, const Node *n);
/* The result of n, whose dimensions are axes of its operand's space, where n's map puts it. */
JOT_FN Value export_put(Export *e, const Node *n, Array src, const int *axis);
JOT_FN bool export_plain(const Export *e, const Node *n, Terms *out); /* out: per dimension of n */
/* A factor of a product, or what is reduced, under its map into the space of the product. */
typedef struct {
    Array x;
    jot_DType dtype;
    Ix index[JOT_MAX_RANK];
    bool total;               /* it reads inside of x alone; else there is overflow */
    jot_Scalar overflow;
} Factor;
JOT_FN bool export_factor(Export *e, NodeId id, Factor *f); /* false: it has no such map */
JOT_FN Array export_split(Export *e, const Factor *f, const Terms *t, const int64_t *ext,
                          int *axis); /* each axis a dimension */
JOT_FN bool export_product(Export *e, const Node *n, Value *v);
JOT_FN bool export_conv(Export *e, const Node *n, const Factor f[2], Value *v);
JOT_FN bool export_pool(Export *e, const Node *n, Value *v);

#endif
