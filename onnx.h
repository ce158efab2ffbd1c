/* onnx.h - models in ONNX's format: those of other frameworks read, looked at, and made a part of a
 * graph or a function; graphs written as such. Hosted builds have it where protobuf-c was there
 * when they were made, and not with JOT_NO_ONNX or JOT_NO_IO.
 *
 *     jot_Onnx *m = jot_onnx_load(c, "mnist.onnx");
 *     jot_Tensor in = {JOT_F32, JOT_SHAPE(1, 1, 28, 28), pixels, sizeof pixels}, out;
 *     if (jot_onnx_run(m, &in, 1, &out, 1)) show(out.data);
 *     else puts(jot_message(c));
 *     jot_onnx_free(m);
 *
 * A model is checked and understood as far as it can be without shapes by jot_onnx_load, and for
 * given shapes before anything of it runs: what is not supported is refused with the node, its
 * operator, opset, dtypes and shapes (docs/onnx.md has the operators). Arithmetic on shapes and
 * constants is done while the graph is built, and loops and branches that depend on nothing else
 * are gone from it.
 *
 * Failures are the context's, as in core.h; files are not trusted.
 *
 * Read before: core.h, nn.h. After: onnx/parts.h. */
#ifndef JOT_ONNX_H
#define JOT_ONNX_H
#include "nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- models --------------------------------------------------------------------------------- */

/* "" where this build reads ONNX, else what to install. */
JOT_API const char *jot_onnx_missing(void);

typedef struct jot_Onnx jot_Onnx;
/* A file, or memory that may go after the call (folder: where files of external data are looked
 * for, NULL: nowhere). Opsets 7 to 28 of the default domain. NULL after a failure. External data
 * are mapped; what stands in the model itself is kept once, and variables borrow it. */
JOT_API jot_Onnx *jot_onnx_load(jot_Ctx *ctx, const char *path);
JOT_API jot_Onnx *jot_onnx_parse(jot_Ctx *ctx, const void *data, size_t nbytes,
                                 const char *folder);
/* Ends the model, and the functions that jot_onnx_run made of it, before its context; NULL is
 * allowed. Graphs and functions of others that were made of it stay. */
JOT_API void jot_onnx_free(jot_Onnx *model);

/* An input, an output or a weight (what ONNX calls an initialiser). */
typedef struct {
    const char *name;             /* as all below it lives as long as the model */
    jot_DType dtype;              /* JOT_DTYPES: the model does not say, or jot has it not */
    int rank;                     /* -1: the model does not say */
    const int64_t *shape;         /* -1: open */
    const char *const *symbols;   /* of open extents, names ("batch"), which stand for one extent
                                     wherever they stand; "" for none */
} jot_OnnxValue;
/* Each copies the first `most` and returns how many there are. Inputs that are weights, too, count
 * as weights. */
JOT_API int jot_onnx_inputs(const jot_Onnx *model, jot_OnnxValue *out, int most);
JOT_API int jot_onnx_outputs(const jot_Onnx *model, jot_OnnxValue *out, int most);
JOT_API int jot_onnx_weights(const jot_Onnx *model, jot_OnnxValue *out, int most);

typedef struct { const char *name, *op, *domain; } jot_OnnxNode; /* domain "": the default */
/* The nodes of the graph, not of those within; as above. */
JOT_API int jot_onnx_nodes(const jot_Onnx *model, jot_OnnxNode *out, int most);
JOT_API int jot_onnx_opset(const jot_Onnx *model); /* of the default domain; 0: it is not used */
/* A text that its makers left in the model by this key (metadata_props): labels, characters, an
 * author. It lives as long as the model; NULL: none by this key. */
JOT_API const char *jot_onnx_metadata(const jot_Onnx *model, const char *key);

/* A weight's elements as a variable, borrowed from the model, which may be freed before it. */
JOT_API jot_Var jot_onnx_weight(jot_Onnx *model, const char *name);
/* In what is built of the model from now on, `value` stands for the weight of this name: a
 * parameter that is trained, say, of the same shape and dtype. An empty handle: the weight's own
 * elements again. value lives as long as graphs are built. */
JOT_API bool jot_onnx_set_weight(jot_Onnx *model, const char *name, jot_Var value);

/* ---- graphs and functions ------------------------------------------------------------------- */

/* One variable for each input, in the order of jot_onnx_inputs, with a shape that fits; one handle
 * for each output. Refused (JOT_EUSE, naming both) is a model in which a shape, an axis, a count
 * of steps or a branch depends on the elements of an input: jot_onnx_build_fixed builds it for the
 * elements that the inputs have that fixed[k] says, which may then not be inputs of a function.
 * What depends on weights alone is evaluated in the call, and with it what is pending. */
JOT_API bool jot_onnx_build(jot_Onnx *model, jot_Vars in, jot_Var *out);
JOT_API bool jot_onnx_build_fixed(jot_Onnx *model, jot_Vars in, const bool *fixed, jot_Var *out);

/* The same as a function (jot_call): n inputs, of which dtype and shape count. Where data is not
 * NULL the input is no input of the function, but these elements, for good. out: room for n_out
 * outputs, of which dtype, shape (it lives as long as the model) and nbytes are set and data NULL.
 * The caller ends the function. Poison after a failure. */
JOT_API jot_Func jot_onnx_compile(jot_Onnx *model, const jot_Tensor *in, int n,
                                  jot_Tensor *out, int n_out);

/* Run the model on elements. The first call with shapes (and, of inputs that shapes depend on,
 * with elements) that were not there before makes a function, and the model keeps the last
 * JOT_ONNX_PLANS of them. out: data are the model's, valid until its next run. */
enum { JOT_ONNX_PLANS = 32 };
JOT_API bool jot_onnx_run(jot_Onnx *model, const jot_Tensor *in, int n, jot_Tensor *out,
                          int n_out);

/* Bounds of extents that the model leaves open, by their names ("batch"), at most JOT_OPEN_EXTENTS;
 * least 0: 1. From now on jot_onnx_run makes one function for all sizes within them
 * (jot_compile_open), which a call with another size neither plans nor compiles; what is open and
 * has no bounds here is of each call's shapes as before. Names are copied; n 0: no bounds. Refused
 * are a name that no input has (JOT_EUSE, with those there are) and, by jot_onnx_run, an extent
 * outside of its bounds, by name (JOT_ERANGE). */
JOT_API bool jot_onnx_open(jot_Onnx *model, const jot_Extent *bounds, int n);
/* Once it ran: why there is no such function - shapes or branches within depend on elements of
 * inputs - and each size has a plan as without bounds, or what jot_open_why says of it. "":
 * nothing. It lives until the next call with the model. */
JOT_API const char *jot_onnx_open_why(const jot_Onnx *model);

/* ---- export --------------------------------------------------------------------------------- */

/* Fields that are 0, or NULL for all: the usual choice. */
typedef struct {
    jot_Strs inputs, outputs; /* names, one each, in UTF-8; none: jot_name's, else in0, out0 */
    bool external;            /* weights of 1 KB and more stand in a file beside, PATH-HASH.data, of
                                 what is in it; those of a model of more than 1 GB always do */
} jot_OnnxExport;
/* The graph between inputs and outputs as a model for inference, of opset 18: inputs are as
 * jot_compile's, shapes are those they have, and what does not depend on them is a weight, by the
 * name of its variable (else param0, array1, ...), with its value of now: what is pending runs. The
 * operators are ONNX's own: docs/onnx.md has which become which, and where its values differ (a
 * NaN's sign). Halves are computed in f32 and small integers in i32, as here.
 *
 * Refused (JOT_EUSE), by name: user code, branches and loops, random numbers, an assignment that
 * waits and depends on an input (a training step); what jot_compile refuses of inputs; a name that
 * is no UTF-8 text. JOT_ERANGE: a map that only a list of more than 2^24 positions says, and in
 * memory a model of 2 GB. All or nothing: the old model of that name, with its weights beside it,
 * is there until the new one is whole; then the file of its weights is removed. JOT_EIO. */
JOT_API bool jot_onnx_export(jot_Ctx *ctx, jot_Vars inputs, jot_Vars outputs, const char *path,
                             const jot_OnnxExport *how);
/* The same bytes to a function, piece by piece, after all that could be refused was; weights are
 * in them, whatever `external` says. */
JOT_API bool jot_onnx_export_to(jot_Ctx *ctx, jot_Vars inputs, jot_Vars outputs,
                                const jot_OnnxExport *how, jot_WriteFn *write, void *user);

/* A file with a tensor in ONNX's format ("input_0.pb"), as a variable. */
JOT_API jot_Var jot_onnx_read_tensor(jot_Ctx *ctx, const char *path);

#ifdef __cplusplus
}
#endif
#endif
