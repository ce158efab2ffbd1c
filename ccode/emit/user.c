/* ccode/emit/user.c - the C text around the user's: what jot_code and jot_code_map become; and the
 * text of a stack (ops/rewrite/stack.c), which no nest of loops over one variable's elements gives.
 *
 * Only what the user's text mentions is declared, so that the kernel is readable and takes strict
 * warnings. #line directives give the compiler the user's own line numbers, with the operator's
 * name for a file name; after the text the name changes, so that nothing of ours is blamed on the
 * user.
 *
 *   requires  a CODE or MAP node       keeps  the user's text, byte for byte
 *
 * Read before: ops/user/code.h, ccode/emit.h. After: ops/user/quote.c, plan/plan.c. */
#include "ccode/emit.h"
#include "ops/user/code.h"

#define USER_PARAMETERS \
    "(void *const *buf, const jot_i64 *ints, const jot_Scalar *scalars, void *scratch,\n" \
    "        jot_i64 phase, jot_i64 lo, jot_i64 hi)\n"
enum { USER_SHOWN = 48 }; /* bytes of an expression in its name */

/* ---- C types ------------------------------------------------------------------------------ */

/* As stored; 16-bit floats are bits there. */
static const char *const user_stored[JOT_DTYPES] = {
    "unsigned char", "signed char", "short", "int", "jot_i64", "unsigned char", "unsigned short",
    "unsigned int", "jot_u64", "unsigned short", "unsigned short", "float", "double"
};

/* As computed in. */
static const char *
user_type(int dtype)
{
    return user_stored[jot_dtype_compute((jot_DType)dtype)];
}

/* ---- what is mentioned -------------------------------------------------------------------- */

/* Does name stand in text as a word of its own? In comments too: a declaration too many is
 * harmless. */
static bool
user_mentions(const char *text, const char *name)
{
    size_t n = jot_str_len(name), len = jot_str_len(text), k;

    for (k = 0; k + n <= len; k++)
        if (text[k] == name[0] && !memcmp(text + k, name, n) && !jot_char_word(text[k + n])
            && (!k || !jot_char_word(text[k - 1])))
            return true;
    return false;
}

static const char *
user_derived(Text *name, const char *array, const char *suffix, int k)
{
    name->n = 0;
    if (k < 0)
        jot_text_f(name, "%s%s", array, suffix);
    else
        jot_text_f(name, "%s%s%d", array, suffix, k);
    return name->s;
}

static void
user_constant(Text *out, const char *source, const char *name, int64_t value)
{
    if (user_mentions(source, name))
        jot_text_f(out, "    const jot_i64 %s = %lld;\n", name, (long long)value);
}

/* An array's size, extents and strides. */
static void
user_extents(Text *out, const char *source, const CodeArg *a)
{
    char buf[80];
    Text name = {NULL, buf, 0, sizeof buf};
    int64_t stride = 1;
    int d;

    user_constant(out, source, user_derived(&name, a->name, "_n", -1), a->nelem);
    for (d = a->rank - 1; d >= 0; d--) {
        user_constant(out, source, user_derived(&name, a->name, "_", d), a->ext[d]);
        user_constant(out, source, user_derived(&name, a->name, "_s", d), stride);
        stride *= a->ext[d];
    }
}

/* jot_simd before a loop: where the compiler's command says what it is, vectors; else nothing. */
static void
user_simd(Text *out, const char *source, const char *helpers)
{
    if (user_mentions(source, "jot_simd") || (helpers && user_mentions(helpers, "jot_simd")))
        jot_text_f(out, "#ifndef jot_simd\n#define jot_simd\n#endif\n");
}

/* Steps of one example. */
static int64_t
user_steps(const CodeSpec *s)
{
    const CodeArg *a = &s->arg[s->parallel ? s->parallel - 1 : 0];

    return !s->parallel ? 1 : s->parallel_dim < 0 ? a->nelem : a->ext[s->parallel_dim];
}

/* ---- kernels ------------------------------------------------------------------------------ */

static void
user_array(Text *out, const CodeSpec *s, int k)
{
    const CodeArg *a = &s->arg[k];

    if (user_mentions(s->source, a->name))
        jot_text_f(out, "    %s%s *%s = buf[%d]; /* %s */\n", k < s->inputs ? "const " : "",
                   user_stored[a->dtype], a->name, k, jot_dtype_name((jot_DType)a->dtype));
    user_extents(out, s->source, a);
}

/* What the compiler takes for the file's name: the operator's. Maps have none of their own, so the
 * beginning of the expression tells them apart. */
static const char *
user_file(Text *name, const CodeSpec *s, const char *part)
{
    size_t k;

    jot_text_f(name, "%s%s", s->name, part);
    if (!s->map)
        return name->s;
    jot_text_f(name, " [");
    for (k = 0; s->source[k] && k < USER_SHOWN; k++) {
        char c = s->source[k];

        jot_text_f(name, "%c", c == '\n' || c == '\t' || c == '\r' ? ' '
                             : c < ' ' || c > '~' || c == '"' || c == '\\'
                                       || (c == '?' && s->source[k + 1] == '?') ? '_' : c);
    }
    jot_text_f(name, s->source[k] ? "...]" : "]");
    return name->s;
}

/* The user's lines, under a name that the compiler shows in its messages. `end` closes them, in a
 * line that counts as their last: some compilers notice an error one token late. */
static void
user_lines(Text *out, const CodeSpec *s, const char *part, const char *text, const char *end)
{
    char buf[240];
    Text name = {NULL, buf, 0, sizeof buf};
    const char *file = user_file(&name, s, part);
    int last = 1;
    size_t k;

    jot_text_f(out, "#line 1 \"%s\"\n%s\n", file, text);
    for (k = 0; text[k]; k++)
        last += text[k] == '\n' && text[k + 1];
    if (*end)
        jot_text_f(out, "#line %d \"%s\"\n%s\n", last, file, end);
    jot_text_f(out, "#line 1 \"after %s\"\n", file);
}

static bool
user_done(jot_Ctx *ctx, const Text *out, size_t before)
{
    if (out->n > before && out->n < out->cap)
        return true;
    return jot_fail_memory(ctx, "code");
}

/* What is one example's of each array. */
static void
user_own(Text *out, const CodeSpec *s)
{
    int k;

    jot_text_f(out, "        void *const own[] = {\n");
    for (k = 0; k < s->inputs + s->outputs; k++)
        if (s->arg[k].shared)
            jot_text_f(out, "            buf[%d],\n", k);
        else
            jot_text_f(out, "            (char *)buf[%d] + e * %lld,\n", k,
                       (long long)s->arg[k].nelem
                           * (long long)jot_dtype_nbytes((jot_DType)s->arg[k].dtype));
    jot_text_f(out, "        };\n");
}

/* The function that calls NAME_one for each example that has steps in lo .. hi. */
static void
user_examples(Text *out, const CodeSpec *s, const char *fn_name)
{
    long long steps = (long long)user_steps(s);

    steps = steps ? steps : 1; /* then nobody calls it */
    jot_text_f(out, "void %s" USER_PARAMETERS "{\n    for (jot_i64 e = lo / %lld; e * %lld < hi; "
               "e++) {\n", fn_name, steps, steps);
    user_own(out, s);
    jot_text_f(out, "        const jot_i64 from = e * %lld, last = hi - from;\n"
               "        %s_one(own, ints, scalars, scratch, phase, lo > from ? lo - from : 0,\n"
               "            last < %lld ? last : %lld);\n    }\n}\n", steps, fn_name, steps, steps);
}

/* A call of the host function, or one per example, by one thread: it and its user pointer are in
 * ints, so that all have one kernel. */
static void
user_host(Text *out, const CodeSpec *s, const char *fn_name)
{
    jot_text_f(out,
               "/* host */\nvoid %s" USER_PARAMETERS "{\n"
               "    void (*host)(void *, int, void *const *, const jot_Scalar *) =\n"
               "        (void (*)(void *, int, void *const *, const jot_Scalar *))ints[0];\n"
               "    (void)scratch, (void)phase, (void)lo, (void)hi;\n",
               fn_name);
    if (s->lead) {
        jot_text_f(out, "    for (jot_i64 e = 0; e < %lld; e++) {\n", (long long)s->examples);
        user_own(out, s);
    }
    jot_text_f(out, "    %shost((void *)ints[1], %d, %s, scalars);\n%s}\n", s->lead ? "    " : "",
               s->inputs + s->outputs, s->lead ? "own" : "buf", s->lead ? "    }\n" : "");
}

JOT_FN bool
jot_code_text(jot_Ctx *ctx, NodeId code_node, const char *fn_name, Text *out, int64_t *count)
{
    const CodeSpec *s = jot_node(ctx, code_node)->code;
    size_t before = out->n;
    int k;

    JOT_ASSERT(s && !s->map, "a CODE node has the text of a kernel");
    if (!s->source) {
        *count = 1;
        user_host(out, s, fn_name);
        return user_done(ctx, out, before);
    }
    *count = user_steps(s) * s->examples;
    user_simd(out, s->source, s->helpers);
    if (s->helpers)
        user_lines(out, s, " helpers", s->helpers, "");
    jot_text_f(out, "/* code: %s */\n%svoid %s%s" USER_PARAMETERS "{\n", s->name,
               s->lead ? "static " : "", fn_name, s->lead ? "_one" : "");
    for (k = 0; k < s->inputs + s->outputs; k++)
        user_array(out, s, k);
    for (k = 0; k < s->scalars; k++)
        if (user_mentions(s->source, s->scalar_name[k]))
            jot_text_f(out, "    const double %s = scalars[%d].f;\n", s->scalar_name[k], k);
    jot_text_f(out,
               "    (void)buf, (void)ints, (void)scalars, (void)scratch, (void)phase, (void)lo, "
               "(void)hi;\n    {\n");
    user_lines(out, s, "", s->source, "");
    jot_text_f(out, "    }\n}\n");
    if (s->lead)
        user_examples(out, s, fn_name);
    return user_done(ctx, out, before);
}

/* Not the user's, but no nest of loops over one variable's elements either. */
JOT_FN void
jot_stack_text(jot_DType dtype, int64_t n, const char *fn_name, Text *out)
{
    const char *type = user_stored[dtype];

    jot_text_f(out,
               "/* stack */\nvoid %s(void *const *buf, const jot_i64 *ints, const jot_Scalar "
               "*scalars, void *scratch,\n        jot_i64 phase, jot_i64 lo, jot_i64 hi)\n{\n"
               "    %s *y = buf[0];\n    (void)scalars, (void)scratch, (void)phase;\n"
               "    for (; lo < hi; lo++) {\n        const %s *x = buf[ints[2 * lo]];\n"
               "        %s *row = y + lo * %lld;\n        jot_i64 i;\n",
               fn_name, type, type, type, (long long)n);
    jot_text_f(out,
               "        for (i = 0; x == y && i < %lld; i++)\n            row[i] = 0;\n"
               "        x = x == y ? x : x + ints[2 * lo + 1];\n"
               "        for (i = 0; x != y && i < %lld; i++)\n            row[i] = x[i];\n"
               "    }\n}\n",
               (long long)n, (long long)n);
}

/* ---- kernels of devices --------------------------------------------------------------------- */

/* Memory and where the array begins in it, or a pointer. */
static void
user_memory(Text *out, const DeviceDialect *d, const CodeSpec *s, int k)
{
    jot_text_f(out, "    %s%s%s *arg%d, ", d->global, k < s->inputs ? "const " : "",
               user_stored[s->arg[k].dtype], k);
    if (d->offsets)
        jot_text_f(out, "jot_u32 arg%d_from, ", k);
    jot_text_f(out, "\n");
}

static void
user_device_array(Text *out, const DeviceDialect *d, const CodeSpec *s, const char *source, int k)
{
    const CodeArg *a = &s->arg[k];

    jot_text_f(out, "    %s%s%s *%s = arg%d", d->global, k < s->inputs ? "const " : "",
               user_stored[a->dtype], a->name, k);
    if (d->offsets)
        jot_text_f(out, " + (jot_i64)%zu * arg%d_from",
                   64 / jot_dtype_nbytes((jot_DType)a->dtype), k);
    if (s->lead && !a->shared)
        jot_text_f(out, " + step / %lld * %lld", (long long)user_steps(s), (long long)a->nelem);
    jot_text_f(out, "; /* %s */\n", jot_dtype_name((jot_DType)a->dtype));
    user_extents(out, source, a);
}

/* A step is a work item; of many examples, arrays are of that to which it belongs. */
static void
user_device_steps(Text *out, const DeviceDialect *d, const CodeSpec *s, const char *source)
{
    const char *step = s->lead ? "step" : "lo";
    int k;

    for (k = 0; !s->lead && k < s->inputs + s->outputs; k++)
        user_device_array(out, d, s, source, k);
    jot_text_f(out, "    for (jot_i64 %s = %s; %s < to_step; %s += %s) {\n", step, d->item, step,
               step, d->items);
    for (k = 0; s->lead && k < s->inputs + s->outputs; k++)
        user_device_array(out, d, s, source, k);
    if (s->lead)
        jot_text_f(out, "        const jot_i64 lo = step %% %lld;\n", (long long)user_steps(s));
    jot_text_f(out, "        const jot_i64 hi = lo + 1;\n        (void)hi;\n");
    user_lines(out, s, "", source, "");
    jot_text_f(out, "    }\n}\n");
}

JOT_FN bool
jot_code_device_text(jot_Ctx *ctx, NodeId code_node, const DeviceDialect *d, int device,
                     const char *fn_name, Text *out, int64_t *count)
{
    const CodeSpec *s = jot_node(ctx, code_node)->code;
    const char *source = s->device_source[device];
    size_t before = out->n;
    int k;

    *count = user_steps(s) * s->examples;
    user_simd(out, source, s->device_helpers[device]);
    if (s->device_helpers[device])
        user_lines(out, s, " helpers", s->device_helpers[device], "");
    jot_text_f(out, "/* code: %s */\n%svoid %s(\n", s->name, d->kernel, fn_name);
    for (k = 0; k < s->inputs + s->outputs; k++)
        user_memory(out, d, s, k);
    jot_text_f(out, "    %sjot_u8 *scratch, %s", d->global,
               d->offsets ? "jot_u32 scratch_from, " : "");
    for (k = 0; k < s->scalars; k++)
        jot_text_f(out, "double %s, ", s->scalar_name[k]);
    jot_text_f(out, "int phase, jot_i64 from_step, jot_i64 to_step)\n{\n");
    user_device_steps(out, d, s, source);
    return user_done(ctx, out, before);
}

/* ---- maps --------------------------------------------------------------------------------- */

/* The function is named after what it says, so that equal expressions are one function. */
static void
user_map_name(Text *out, const CodeSpec *s)
{
    int k;

    jot_text_f(out, "code_map_");
    for (k = 60; k >= 0; k -= 4)
        jot_text_f(out, "%x", (unsigned)(s->hash >> k & 15));
}

JOT_FN bool
jot_code_map_name(jot_Ctx *ctx, NodeId map_node, Text *out)
{
    const CodeSpec *s = jot_node(ctx, map_node)->code;
    size_t before = out->n;

    JOT_ASSERT(s && s->map, "a MAP node has an expression");
    user_map_name(out, s);
    return user_done(ctx, out, before);
}

static void
user_map_parameter(Text *out, const CodeSpec *s, int k)
{
    if (s->arg[k].name)
        jot_text_f(out, "%s", s->arg[k].name);
    else
        jot_text_f(out, "%c", 'a' + k);
}

JOT_FN bool
jot_code_map_text(jot_Ctx *ctx, NodeId map_node, const char *function, Text *out)
{
    const CodeSpec *s = jot_node(ctx, map_node)->code;
    int result = s->arg[s->inputs].dtype, k;
    size_t before = out->n;

    JOT_ASSERT(s->map, "a MAP node has an expression");
    jot_text_f(out, "#ifndef ");
    user_map_name(out, s);
    jot_text_f(out, "\n#define ");
    user_map_name(out, s);
    jot_text_f(out, " ");
    user_map_name(out, s);
    jot_text_f(out, "\n%s%s\n", function, user_type(result));
    user_map_name(out, s);
    for (k = 0; k < s->inputs; k++) {
        jot_text_f(out, "%s%s ", k ? ", " : "(", user_type(s->arg[k].dtype));
        user_map_parameter(out, s, k);
    }
    jot_text_f(out, ")\n{\n");
    for (k = 0; k < s->inputs; k++) {
        jot_text_f(out, "    (void)");
        user_map_parameter(out, s, k);
        jot_text_f(out, ";\n");
    }
    jot_text_f(out, result == JOT_BOOL ? "    return (\n" : "    return (%s)(\n",
               user_type(result));
    user_lines(out, s, "", s->source, result == JOT_BOOL ? ") != 0;" : ");");
    jot_text_f(out, "}\n#endif\n");
    return user_done(ctx, out, before);
}
