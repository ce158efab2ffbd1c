/* save/read_code.c - user code out of a file: a spec as jot_code, jot_code_map or jot_custom_grad
 * would have made it.
 *
 * Texts are taken as they are: who reads them trusts them (JOT_LOAD_CODE). What is checked is what
 * the library counts on: that arrays have the shapes that the code is told, and names are names.
 *
 * Read before: save/read.c, ops/user/code.h. After: save/file.c. */
#include "save/save.h"
#if !defined JOT_NO_HOST && defined JOT_CJSON
#include "ops/transform/transform.h"

enum { CF_NAME, CF_OUTPUTS, CF_ARGS, CF_SCALARS, CF_GRADIENT, CF_PARALLEL, CF_DIM, CF_EXAMPLES,
       CF_SOURCE, CF_HELPERS, CF_OPENCL, CF_OPENCL_HELPERS, CF_CUDA, CF_CUDA_HELPERS, CF_ALL };
static const char *const loadcode_fields[CF_ALL] = {
    "name", "outputs", "args", "scalars", "gradient", "parallel", "parallel_dim", "examples",
    "source", "helpers", "opencl", "opencl_helpers", "cuda", "cuda_helpers"
};
enum { AF_DTYPE, AF_SHAPE, AF_NAME, AF_SHARED, AF_PARALLEL, AF_DIM, AF_GRAD, AF_OPENCL, AF_CUDA,
       AF_ALL };
static const char *const arg_fields[AF_ALL] = {
    "dtype", "shape", "name", "shared", "grad_parallel", "grad_dim", "grad", "opencl_grad",
    "cuda_grad"
};

/* *to: a copy, NULL where the field is not there. */
static bool
loadcode_string(Loading *l, CodeSpec *s, const cJSON *item, const char *what, const char **to)
{
    if (item && !cJSON_IsString(item))
        return jot_load_bad(l, "%s of its code is no text", what);
    return jot_codespec_string(s, to, "", item ? item->valuestring : NULL)
        || jot_fail_memory(l->ctx, "load");
}

/* A name of C's, that no other before it in the list is. */
static bool
loadcode_is_name(const char *name)
{
    size_t k;

    for (k = 0; name && jot_char_word(name[k]); k++)
        ;
    return k && k < 100 && !name[k] && !(name[0] >= '0' && name[0] <= '9')
        && !jot_code_is_word(name);
}

static bool
loadcode_whole(Loading *l, const cJSON *item, const char *what, int64_t lo, int64_t hi, int *to)
{
    int64_t v;

    if (!item)
        return true;
    if (!jot_load_whole(l, item, what, lo, hi, &v))
        return false;
    *to = (int)v;
    return true;
}

static bool
loadcode_arg(Loading *l, CodeSpec *s, int k, const cJSON *item)
{
    cJSON *f[AF_ALL];
    int64_t ext[JOT_MAX_RANK];
    CodeArg *a = &s->arg[k];
    jot_DType dtype;
    int rank, shared = 0;

    if (!jot_load_fields(l, item, "an argument of its code", arg_fields, AF_ALL, f)
        || !jot_load_dtype(l, f[AF_DTYPE], &dtype) || !jot_load_shape(l, f[AF_SHAPE], &rank, ext)
        || !jot_shape_ok(l->ctx, "load", dtype, rank, ext, &(int64_t){0})
        || !loadcode_whole(l, f[AF_SHARED], "shared", 0, k < s->inputs, &shared)
        || !loadcode_string(l, s, f[AF_NAME], "a name", &a->name)
        || !loadcode_string(l, s, f[AF_GRAD], "grad", &a->grad)
        || !loadcode_string(l, s, f[AF_OPENCL], "opencl_grad", &a->device_grad[CODE_OPENCL])
        || !loadcode_string(l, s, f[AF_CUDA], "cuda_grad", &a->device_grad[CODE_CUDA])
        || !loadcode_whole(l, f[AF_PARALLEL], "grad_parallel", 0, 3 * CODE_MOST, &a->grad_parallel)
        || !loadcode_whole(l, f[AF_DIM], "grad_dim", -1, JOT_MAX_RANK - 1, &a->grad_dim))
        return false;
    a->shared = shared;
    return jot_codespec_arg(s, k, dtype, rank, ext) || jot_fail_memory(l->ctx, "load");
}

static bool
loadcode_args(Loading *l, CodeSpec *s, const cJSON *array)
{
    const cJSON *item = array->child;
    int k;

    for (k = 0; item; item = item->next, k++)
        if (!loadcode_arg(l, s, k, item))
            return false;
    return true;
}

static bool
loadcode_scalars(Loading *l, CodeSpec *s, const cJSON *array)
{
    static const char *const fields[] = {"name", "bits"};
    const cJSON *item = array ? array->child : NULL;
    cJSON *f[2];
    int k;

    for (k = 0; item; item = item->next, k++)
        if (!jot_load_fields(l, item, "a scalar of its code", fields, 2, f)
            || !loadcode_string(l, s, f[0], "a name", &s->scalar_name[k])
            || !jot_load_bits(l, f[1], &s->scalar[k])
            || (!loadcode_is_name(s->scalar_name[k])
                && !jot_load_bad(l, "a scalar of its code has no name of C's")))
            return false;
    return true;
}

static bool
loadcode_examples(Loading *l, CodeSpec *s, const cJSON *array)
{
    int k;

    if (!array)
        return true;
    if (!jot_load_shape(l, array, &s->lead, s->lead_ext))
        return false;
    for (k = 0; k < s->lead; k++)
        if (!jot_mul_ok(s->examples, s->lead_ext[k], &s->examples))
            return jot_load_bad(l, "too many examples");
    return true;
}

/* An argument that parallel, or grad_parallel of input k, names; NULL: there is none. */
static const CodeArg *
loadcode_parallel_arg(const CodeSpec *s, int number, int k)
{
    int all = s->inputs + s->outputs, i;

    if (number <= all)
        return &s->arg[number - 1];
    for (number -= all, i = s->inputs; i < all; i++)
        if (jot_dtype_class((jot_DType)s->arg[i].dtype) == CLASS_FLOAT && !--number)
            return &s->arg[i];
    return number == 1 ? &s->arg[k] : NULL;
}

static bool
loadcode_parallel(Loading *l, const CodeSpec *s, int number, int dim, int k)
{
    const CodeArg *a = number ? loadcode_parallel_arg(s, number, k) : NULL;

    return !number || (a && dim < a->rank)
        || jot_load_bad(l, "its code runs in parallel over what is not there");
}

/* Do operands and arguments agree? A map's have no extents of their own. */
static bool
loadcode_fits(Loading *l, const CodeSpec *s, const NodeSpec *spec)
{
    int64_t ext[2 * JOT_MAX_RANK];
    int k, i;

    for (k = 0; k < s->inputs + s->outputs; k++) {
        const CodeArg *a = &s->arg[k];
        const Node *x = k < spec->ninputs ? jot_node(l->ctx, spec->input[k]) : NULL;
        int rank = jot_codespec_ext(s, a, ext), skip = a->shared ? s->lead : 0;

        if (rank > JOT_MAX_RANK)
            return jot_load_bad(l, "argument %d of its code has %d dimensions", k, rank);
        if (x && (x->dtype != a->dtype || (!s->map && (x->rank != rank - skip
            || memcmp(x->ext, ext + skip, (size_t)x->rank * sizeof *ext)))))
            return jot_load_bad(l, "operand %d is not what argument %d of its code says", k, k);
        if (!loadcode_parallel(l, s, a->grad_parallel, a->grad_dim, k))
            return false;
        if (spec->kind != NODE_CODE)
            continue;
        for (i = 0; i < k && loadcode_is_name(a->name) && !jot_str_eq(s->arg[i].name, a->name); i++)
            ;
        if (i < k || !loadcode_is_name(a->name))
            return jot_load_bad(l, "argument %d of its code has no name of C's, of its own", k);
    }
    if (s->map && (s->outputs != 1 || s->inputs > CODE_MAP_MOST + 1 || s->lead))
        return jot_load_bad(l, "its code is no map");
    return loadcode_parallel(l, s, s->parallel, s->parallel_dim, 0);
}

/* The gradient was a callback of the program that saved the graph. */
static bool
loadcode_no_callback(void *user, jot_Vars x, jot_Vars y, jot_Vars dy, jot_Var *dx)
{
    (void)user, (void)x, (void)dx;
    jot_raise(jot_ctx_of(y.n ? y : dy), JOT_EGRAD,
              "grad: of a graph that was loaded: a gradient of one's own (jot_custom_grad) is a "
              "function of the program that saved it, and is not in the file");
    return false;
}

static void
loadcode_custom(CodeSpec *s, int64_t kept)
{
    s->part = kept >= 0;
    s->custom = s->part ? jot_checkpoint_grad : loadcode_no_callback;
    s->user = s->part ? (void *)(uintptr_t)kept : NULL;
}

static bool
loadcode_fill(Loading *l, CodeSpec *s, cJSON *const *f, const NodeSpec *spec, int64_t kept)
{
    int gradient = 0;
    bool custom = spec->kind == NODE_CUSTOM;

    s->map = spec->kind == NODE_MAP;
    if (!f[CF_NAME] || !cJSON_IsString(f[CF_NAME]))
        return jot_load_bad(l, "its code has no name");
    if (!jot_codespec_name(s, "", f[CF_NAME]->valuestring))
        return jot_fail_memory(l->ctx, "load");
    if (!loadcode_args(l, s, f[CF_ARGS]) || !loadcode_scalars(l, s, f[CF_SCALARS])
        || !loadcode_examples(l, s, f[CF_EXAMPLES])
        || !loadcode_whole(l, f[CF_GRADIENT], "gradient", 0, 1, &gradient)
        || !loadcode_whole(l, f[CF_PARALLEL], "parallel", 0, s->inputs + s->outputs, &s->parallel)
        || !loadcode_whole(l, f[CF_DIM], "parallel_dim", -1, JOT_MAX_RANK - 1, &s->parallel_dim)
        || !loadcode_string(l, s, f[CF_SOURCE], "source", &s->source)
        || !loadcode_string(l, s, f[CF_HELPERS], "helpers", &s->helpers)
        || !loadcode_string(l, s, f[CF_OPENCL], "opencl", &s->device_source[CODE_OPENCL])
        || !loadcode_string(l, s, f[CF_OPENCL_HELPERS], "opencl_helpers",
                            &s->device_helpers[CODE_OPENCL])
        || !loadcode_string(l, s, f[CF_CUDA], "cuda", &s->device_source[CODE_CUDA])
        || !loadcode_string(l, s, f[CF_CUDA_HELPERS], "cuda_helpers",
                            &s->device_helpers[CODE_CUDA]))
        return false;
    s->gradient = gradient;
    if (custom == (s->source != NULL))
        return jot_load_bad(l, "its code has %s", custom ? "a source" : "no source");
    if (s->map && s->inputs > 1 && s->arg[s->inputs - 1].name
        && !loadcode_is_name(s->arg[s->inputs - 1].name))
        return jot_load_bad(l, "an operand of its map has no name of C's");
    if (custom)
        loadcode_custom(s, kept);
    return loadcode_fits(l, s, spec);
}

JOT_FN CodeSpec *
jot_load_code(Loading *l, const cJSON *item, const NodeSpec *spec, int64_t kept)
{
    cJSON *f[CF_ALL];
    int args, scalars, outputs = 0;
    CodeSpec *s;

    if (!jot_load_fields(l, item, "its code", loadcode_fields, CF_ALL, f))
        return NULL;
    args = (int)jot_load_count(f[CF_ARGS]);
    scalars = (int)jot_load_count(f[CF_SCALARS]);
    if (args > 4 * CODE_MOST + UINT8_MAX || scalars > CODE_MOST || !f[CF_OUTPUTS]
        || !loadcode_whole(l, f[CF_OUTPUTS], "outputs", 1, args, &outputs)
        || spec->ninputs != (spec->kind == NODE_CUSTOM ? args : args - outputs)
        || kept > args - outputs) {
        jot_load_bad(l, "its code has %d arguments, %d of them outputs, and it reads %d nodes",
                     args, outputs, spec->ninputs);
        return NULL;
    }
    s = jot_codespec_open(l->ctx, args - outputs, outputs, scalars);
    if (!s) {
        jot_fail_memory(l->ctx, "load");
        return NULL;
    }
    if (!loadcode_fill(l, s, f, spec, kept)) {
        jot_code_unref(l->ctx, s);
        return NULL;
    }
    if (!s->custom)
        jot_codespec_finish(s);
    return s;
}
#else
typedef int jot_load_code_nothing;
#endif
