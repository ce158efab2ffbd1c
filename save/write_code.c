/* save/write_code.c - user code as text: what was given as text is written, what is a function of
 * the program's is refused by name.
 *
 *     "code": {"name": "running_sum", "source": "...",
 *              "args": [{"name": "x", "dtype": "f32", "shape": [4], "grad": "..."}, ...],
 *              "outputs": 1, "scalars": [{"name": "decay", "value": 0.9}]}
 *
 * Gradients of one's own are callbacks. Their nodes are kept, for values do not need the callback;
 * a graph that comes back refuses a gradient that would. A checkpoint's is the library's own, and
 * comes back whole.
 *
 * Read before: save/write.c. After: save/read.c. */
#include "save/save.h"
#ifndef JOT_NO_HOST
#include "ops/transform/transform.h"

static bool
savecode_text(Saving *s, const char *word, const char *text)
{
    if (!text)
        return true;
    jot_text_f(&s->json, ", \"%s\": ", word);
    return jot_save_string(s, text);
}

JOT_FN void
jot_save_number(Saving *s, const char *word, int64_t value, int64_t usual)
{
    if (value != usual)
        jot_text_f(&s->json, ", \"%s\": %lld", word, (long long)value);
}

static bool
savecode_arg(Saving *s, const CodeArg *a)
{
    int k;

    jot_text_f(&s->json, "{\"dtype\": \"%s\", \"shape\": [", jot_dtype_name((jot_DType)a->dtype));
    for (k = 0; k < a->rank; k++)
        jot_text_f(&s->json, k ? ", %lld" : "%lld", (long long)a->ext[k]);
    jot_text_f(&s->json, "]");
    jot_save_number(s, "shared", a->shared, 0);
    jot_save_number(s, "grad_parallel", a->grad_parallel, 0);
    jot_save_number(s, "grad_dim", a->grad_dim, 0);
    if (!savecode_text(s, "name", a->name) || !savecode_text(s, "grad", a->grad)
        || !savecode_text(s, "opencl_grad", a->device_grad[CODE_OPENCL])
        || !savecode_text(s, "cuda_grad", a->device_grad[CODE_CUDA]))
        return false;
    jot_text_f(&s->json, "}");
    return true;
}

static bool
savecode_scalars(Saving *s, const CodeSpec *c)
{
    int k;

    jot_text_f(&s->json, "], \"scalars\": [");
    for (k = 0; k < c->scalars; k++) {
        uint64_t bits = c->scalar[k].u;

        jot_text_f(&s->json, k ? ", {\"bits\": \"%08x%08x\"" : "{\"bits\": \"%08x%08x\"",
                   (unsigned)(bits >> 32), (unsigned)bits);
        if (!savecode_text(s, "name", c->scalar_name[k]))
            return false;
        jot_text_f(&s->json, "}");
    }
    jot_text_f(&s->json, "]");
    return true;
}

JOT_FN bool
jot_save_code(Saving *s, const Node *n)
{
    const CodeSpec *c = n->code;
    int k;

    if (!c->source && !c->custom)
        return jot_fail(s->ctx, JOT_EUSE, "save: code %s calls a function of the program's, which "
                        "has no text%s", c->name,
                        s->ctx->config.check ? " (indices are looked at by such: open the context "
                                               "without jot_Config.check)" : "");
    if (c->part)
        jot_text_f(&s->json, ", \"kept\": %d", (int)(uintptr_t)c->user);
    jot_text_f(&s->json, ", \"code\": {\"name\": ");
    if (!jot_save_string(s, c->name))
        return false;
    jot_text_f(&s->json, ", \"outputs\": %d, \"args\": [", c->outputs);
    for (k = 0; k < c->inputs + c->outputs; k++) {
        jot_text_f(&s->json, k ? ", " : "");
        if (!savecode_arg(s, &c->arg[k]))
            return false;
    }
    if (!savecode_scalars(s, c))
        return false;
    jot_save_number(s, "gradient", c->gradient, 0);
    jot_save_number(s, "parallel", c->parallel, 0);
    jot_save_number(s, "parallel_dim", c->parallel_dim, 0);
    for (k = 0; k < c->lead; k++)
        jot_text_f(&s->json, k ? ", %lld" : ", \"examples\": [%lld", (long long)c->lead_ext[k]);
    jot_text_f(&s->json, c->lead ? "]" : "");
    if (!savecode_text(s, "source", c->source) || !savecode_text(s, "helpers", c->helpers)
        || !savecode_text(s, "opencl", c->device_source[CODE_OPENCL])
        || !savecode_text(s, "opencl_helpers", c->device_helpers[CODE_OPENCL])
        || !savecode_text(s, "cuda", c->device_source[CODE_CUDA])
        || !savecode_text(s, "cuda_helpers", c->device_helpers[CODE_CUDA]))
        return false;
    jot_text_f(&s->json, "}");
    return true;
}
#else
typedef int jot_save_code_nothing;
#endif
