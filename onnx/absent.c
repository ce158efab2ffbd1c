/* onnx/absent.c - onnx.h where ONNX is left out (JOT_NO_ONNX) or protobuf-c was not there: who asks
 * for a model is told.
 *
 * Read before: onnx.h. */
#include "onnx.h"

const char *
jot_onnx_missing(void)
{
#ifdef JOT_NO_ONNX
    return "this build leaves ONNX out (JOT_NO_ONNX)";
#elif defined JOT_NO_IO
    return "this build leaves io.h out (JOT_NO_IO), and ONNX with it";
#else
    return "this build reads no ONNX: install libprotobuf-c-dev and protobuf-c-compiler and build "
           "it again";
#endif
}

static jot_Onnx *
absent(jot_Ctx *ctx)
{
    jot_raise(ctx, JOT_EUSE, "onnx: %s", jot_onnx_missing());
    return NULL;
}

jot_Onnx *
jot_onnx_load(jot_Ctx *ctx, const char *path)
{
    (void)path;
    return absent(ctx);
}

jot_Onnx *
jot_onnx_parse(jot_Ctx *ctx, const void *data, size_t nbytes, const char *folder)
{
    (void)data, (void)nbytes, (void)folder;
    return absent(ctx);
}

void
jot_onnx_free(jot_Onnx *model)
{
    (void)model;
}

int
jot_onnx_inputs(const jot_Onnx *model, jot_OnnxValue *out, int most)
{
    (void)model, (void)out, (void)most;
    return 0;
}

int
jot_onnx_outputs(const jot_Onnx *model, jot_OnnxValue *out, int most)
{
    return jot_onnx_inputs(model, out, most);
}

int
jot_onnx_weights(const jot_Onnx *model, jot_OnnxValue *out, int most)
{
    return jot_onnx_inputs(model, out, most);
}

int
jot_onnx_nodes(const jot_Onnx *model, jot_OnnxNode *out, int most)
{
    (void)model, (void)out, (void)most;
    return 0;
}

int
jot_onnx_opset(const jot_Onnx *model)
{
    (void)model;
    return 0;
}

const char *
jot_onnx_metadata(const jot_Onnx *model, const char *key)
{
    (void)model, (void)key;
    return NULL;
}

jot_Var
jot_onnx_weight(jot_Onnx *model, const char *name)
{
    (void)model, (void)name;
    return jot_none();
}

bool
jot_onnx_set_weight(jot_Onnx *model, const char *name, jot_Var value)
{
    (void)model, (void)name, (void)value;
    return false;
}

bool
jot_onnx_build(jot_Onnx *model, jot_Vars in, jot_Var *out)
{
    (void)model, (void)in, (void)out;
    return false;
}

bool
jot_onnx_build_fixed(jot_Onnx *model, jot_Vars in, const bool *fixed, jot_Var *out)
{
    (void)fixed;
    return jot_onnx_build(model, in, out);
}

jot_Func
jot_onnx_compile(jot_Onnx *model, const jot_Tensor *in, int n, jot_Tensor *out, int n_out)
{
    jot_Func none = {0};
    (void)model, (void)n, (void)in, (void)n_out, (void)out;
    return none;
}

bool
jot_onnx_run(jot_Onnx *model, const jot_Tensor *in, int n, jot_Tensor *out, int n_out)
{
    (void)model, (void)n, (void)in, (void)n_out, (void)out;
    return false;
}

bool
jot_onnx_open(jot_Onnx *model, const jot_Extent *bounds, int n)
{
    (void)model, (void)bounds, (void)n;
    return false;
}

const char *
jot_onnx_open_why(const jot_Onnx *model)
{
    (void)model;
    return "";
}

bool
jot_onnx_export(jot_Ctx *ctx, jot_Vars inputs, jot_Vars outputs, const char *path,
                const jot_OnnxExport *how)
{
    (void)inputs, (void)outputs, (void)path, (void)how;
    return absent(ctx) != NULL;
}

bool
jot_onnx_export_to(jot_Ctx *ctx, jot_Vars inputs, jot_Vars outputs, const jot_OnnxExport *how,
                   jot_WriteFn *write, void *user)
{
    (void)write, (void)user;
    return jot_onnx_export(ctx, inputs, outputs, NULL, how);
}

jot_Var
jot_onnx_read_tensor(jot_Ctx *ctx, const char *path)
{
    (void)path;
    return jot_raise(ctx, JOT_EUSE, "onnx: %s", jot_onnx_missing());
}
