/* plan/function/export.c - a function as one C file that needs nothing: no allocator, no libm, no
 * libc.
 *
 *     declarations  all that there is for who includes it as a header
 *     prelude       typedefs and the mathematics that the kernels name
 *     kernels       strict C99, as printed for any compiler
 *     tables        the elements of parameters and other arrays
 *     NAME(arena, in0, .., out0, ..)
 *                   buf[0] = in0; buf[1] = NAME_t0; buf[2] = a + 64;
 *                   jot_k_0123(buf, 0, s, ..);
 *                   ...
 *
 * It is made as a compiled function is (plan/function/make.c), with a plan that is printed and not
 * compiled. The text goes out in pieces, for tables are long.
 *
 * Read before: plan/function/function.h. After: backends/files/export.c. */
#include "plan/function/export.h"

enum { EXPORT_ALIGN = 64 };

JOT_FN void
jot_export_flush(Export *e, size_t least)
{
    if (e->t.n < least || !e->t.n || e->f->ctx->mem.failed)
        return;
    e->write(e->user, e->t.s, e->t.n);
    e->t.n = 0;
}

/* ---- what stands above ---------------------------------------------------------------------- */

static void
export_shape(Export *e, const char *what, uint32_t k, const FuncShape *shape)
{
    jot_text_f(&e->t, " *   %s%u  %s ", what, k, jot_dtype_name(shape->dtype));
    jot_shape_text(&e->t, shape->rank, shape->ext);
    jot_text_f(&e->t, ", %zu bytes\n", shape->nbytes);
}

static void
export_head(Export *e)
{
    const Func *f = e->f;
    uint64_t tables = 0;
    uint32_t i, n = 0;

    for (i = 0; i < f->leaves.n; i++)
        if (f->leaves.v[i].kind != LEAF_INPUT) {
            tables += jot_export_buffer(f, &f->leaves.v[i])->nbytes;
            n++;
        }
    jot_text_f(&e->t, "/* %s - C99 made by jot; it needs no library.\n *\n", e->name);
    for (i = 0; i < f->ninputs; i++)
        export_shape(e, "in", i, &f->input[i].shape);
    for (i = 0; i < f->noutputs; i++)
        export_shape(e, "out", i, &f->output[i].shape);
    jot_text_f(&e->t, " *\n * Elements are row-major; outputs do not overlap inputs. arena: "
               "%s_ARENA bytes to work in\n * (%s_arena has the number), aligned as a double is; "
               "what it holds between two calls does not\n * matter. %u kernels; %u tables of %llu "
               "bytes%s. */\n", e->name, e->name, e->kernels.n, n, (unsigned long long)tables,
               f->updates.n ? ", some of which a call changes" : "");
}

/* Every kernel of a plan and of its bodies' once, and what there is of these. */
static bool
export_collect(Export *e, const Plan *plan)
{
    jot_Ctx *ctx = e->f->ctx;
    uint32_t i, j;

    for (i = 0; i < plan->codes.n; i++)
        if (!plan->codes.v[i].spec->source && !plan->codes.v[i].spec->flow)
            return jot_fail(ctx, JOT_EUSE, "export: code %s is a host function, which has no text "
                            "for a file", plan->codes.v[i].spec->name);
    for (i = 0; i < plan->steps.n; i++) {
        const PlanStep *step = &plan->steps.v[i];
        const PlanFlow *flow = step->flow ? &plan->flows.v[step->flow - 1] : NULL;

        e->most = !flow && step->narg > e->most ? step->narg : e->most;
        e->loops |= flow && flow->nplaces;
        for (j = 0; j < 2 && flow; j++)
            if (flow->part[j] && !export_collect(e, flow->part[j]))
                return false;
        for (j = 0; j < e->kernels.n && e->kernels.v[j] != step->best.kernel; j++)
            ;
        if (!flow && j == e->kernels.n
            && !jot_vec_add(ctx, e->kernels, step->best.kernel, "export"))
            return false;
    }
    return true;
}

static bool
export_had(const Export *e, const PlanKernel *k)
{
    uint32_t i;

    for (; e; e = e->before)
        for (i = 0; i < e->kernels.n; i++)
            if (jot_str_eq(e->kernels.v[i]->name, k->name))
                return true;
    return false;
}

/* static before a function that has no storage class where it is defined. */
JOT_FN void
jot_export_kernels(const Export *e, Text *kernels)
{
    uint32_t i;

    for (i = 0; i < e->kernels.n; i++) {
        if (export_had(e->before, e->kernels.v[i]))
            continue;
        jot_text_f(kernels, "static void %s(void *const *, const jot_i64 *, const jot_Scalar *, "
                   "void *,\n    jot_i64, jot_i64, jot_i64);\n", e->kernels.v[i]->name);
        jot_plan_kernel_text(e->kernels.v[i], kernels);
        jot_text_f(kernels, "\n");
    }
}

/* ---- the function --------------------------------------------------------------------------- */

static size_t
export_room(Export *e, size_t nbytes)
{
    size_t at = e->arena_nbytes;

    e->arena_nbytes += (nbytes + EXPORT_ALIGN - 1) / EXPORT_ALIGN * EXPORT_ALIGN;
    return at;
}

/* Results go to the first output that is one, or into the arena behind the plan's block; what an
 * update takes from a leaf is laid aside there. */
static bool
export_places(Export *e)
{
    Func *f = e->f;
    uint32_t i;

    e->out = jot_arena_array(&f->arena, uint32_t, f->roots.n);
    e->at = jot_arena_array(&f->arena, size_t, (size_t)f->roots.n + f->updates.n);
    if (!e->out || !e->at)
        return jot_fail_memory(f->ctx, "export");
    e->arena_nbytes = (f->plan->block_nbytes + EXPORT_ALIGN - 1) / EXPORT_ALIGN * EXPORT_ALIGN;
    for (i = 0; i < f->leaves.n; i++) /* tables: what a device has alone comes to the host */
        if (f->leaves.v[i].kind != LEAF_INPUT && jot_export_buffer(f, &f->leaves.v[i])->nbytes
            && !jot_data_host(f->ctx, jot_export_buffer(f, &f->leaves.v[i]), "export"))
            return false;
    for (i = 0; i < f->noutputs; i++)
        if (f->output[i].from.computed && !e->out[f->output[i].from.at])
            e->out[f->output[i].from.at] = i + 1;
    for (i = 0; i < f->roots.n; i++)
        if (!e->out[i])
            e->at[i] = export_room(e, f->roots.v[i].nbytes);
    for (i = 0; i < f->updates.n; i++)
        if (!f->updates.v[i].from.computed)
            e->at[f->roots.n + i] = export_room(e, f->updates.v[i].shape.nbytes);
    return true;
}

static void
export_leaf(Export *e, uint32_t number)
{
    const FuncLeaf *leaf = &e->f->leaves.v[number];

    if (leaf->kind == LEAF_INPUT)
        jot_text_f(&e->t, "(void *)in%u", leaf->input);
    else {
        jot_text_f(&e->t, "(void *)%s",
                   jot_export_finite(leaf->dtype, jot_export_buffer(e->f, leaf)) ? "" : "&");
        jot_export_table(e, number, &e->t);
    }
}

static void
export_from(Export *e, const FuncFrom *from)
{
    if (!from->computed)
        export_leaf(e, from->at);
    else if (e->out[from->at])
        jot_text_f(&e->t, "out%u", e->out[from->at] - 1);
    else
        jot_text_f(&e->t, "a + %zu", e->at[from->at]);
}

JOT_FN void
jot_export_var(Export *e, const ExportScope *scope, uint32_t var)
{
    const PlanVar *v = &scope->plan->vars.v[var];
    FuncFrom from;

    from.computed = v->kind == VAR_ASKED;
    if (v->kind == VAR_TEMP) {
        jot_text_f(&e->t, "a + %zu", scope->at + v->offset);
    } else if (scope->up) {
        (from.computed ? jot_export_result : jot_export_hole)(e, scope, var);
    } else {
        from.at = from.computed ? v->root : e->f->leaf[var];
        export_from(e, &from);
    }
}

/* Integers and constants of a launch, in a scope of its own. */
static void
export_ints(Export *e, const Plan *plan, const PlanLaunch *launch)
{
    uint32_t i;

    if (!launch->nints)
        return;
    jot_text_f(&e->t, "    {\n    static const jot_i64 ints[%u] = {", launch->nints);
    for (i = 0; i < launch->nints; i++)
        jot_text_f(&e->t, "%s%lld", i ? ", " : "",
                   (long long)plan->ints.v[launch->ints + i].i);
    jot_text_f(&e->t, "};\n\n");
}

/* The name of the literals, or (code: 1 + its number) of user code's scalars. */
static void
export_scalar_name(const ExportScope *scope, uint32_t code, Text *t)
{
    jot_text_f(t, "s");
    if (code)
        jot_text_f(t, "%u", code);
    if (scope->id)
        jot_text_f(t, "_%u", scope->id);
}

static void
export_step(Export *e, const ExportScope *scope, const PlanStep *step)
{
    const Plan *plan = scope->plan;
    const PlanLaunch *launch = &step->best;
    uint32_t i;
    int phase;

    jot_text_f(&e->t, "\n    /* %s */\n", launch->kernel->what);
    for (i = 0; i < step->narg; i++) {
        jot_text_f(&e->t, "    buf[%u] = ", i);
        jot_export_var(e, scope, plan->args.v[step->arg + i]);
        jot_text_f(&e->t, ";\n");
    }
    export_ints(e, plan, launch);
    for (phase = 0; phase < launch->phases; phase++) {
        jot_text_f(&e->t, "    %s(buf, %s, ", launch->kernel->name, launch->nints ? "ints" : "0");
        export_scalar_name(scope, step->code, &e->t);
        if (!step->code)
            jot_text_f(&e->t, " + %u", step->scalar);
        jot_text_f(&e->t, ", a + %zu, %d, 0, %lld);\n", scope->at + plan->scratch, phase,
                   (long long)launch->count[phase]);
    }
    jot_text_f(&e->t, launch->nints ? "    }\n" : "");
}

static void
export_scalars(Export *e, const char *name, const jot_Scalar *v, uint32_t n)
{
    uint32_t i;

    jot_text_f(&e->t, "    static const jot_Scalar %s[%u] = {", name, n ? n : 1);
    for (i = 0; i < n; i++)
        jot_text_f(&e->t, "%s{.u = %lluull}", i ? ", " : "", (unsigned long long)v[i].u);
    jot_text_f(&e->t, n ? "};\n" : "{0}};\n");
}

JOT_FN void
jot_export_tables(Export *e, const ExportScope *scope, const jot_Scalar *scalar,
                  CodeSpec *const *code)
{
    const Plan *plan = scope->plan;
    uint32_t i;

    for (i = 0; i <= plan->codes.n; i++) {
        char name[40];
        Text t = {NULL, name, 0, sizeof name};

        if (i && code[i - 1]->flow)
            continue;
        export_scalar_name(scope, i, &t);
        export_scalars(e, name, i ? code[i - 1]->scalar : scalar,
                       i ? (uint32_t)code[i - 1]->scalars : plan->scalars.n);
    }
    jot_text_f(&e->t, "    (void)s");
    if (scope->id)
        jot_text_f(&e->t, "_%u", scope->id);
    jot_text_f(&e->t, scope->id ? ";\n" : ", (void)a, (void)buf;\n");
}

JOT_FN void
jot_export_steps(Export *e, const ExportScope *scope)
{
    uint32_t i;

    for (i = 0; i < scope->plan->steps.n; i++)
        if (scope->plan->steps.v[i].flow)
            jot_export_flow(e, scope, &scope->plan->steps.v[i]);
        else
            export_step(e, scope, &scope->plan->steps.v[i]);
}

JOT_FN void
jot_export_parameters(Export *e)
{
    const Func *f = e->f;
    uint32_t i;

    for (i = 0; i < f->ninputs; i++)
        jot_text_f(&e->t, ", const %s *in%u", jot_export_types[f->input[i].shape.dtype], i);
    for (i = 0; i < f->noutputs; i++)
        jot_text_f(&e->t, ", %s *out%u", jot_export_types[f->output[i].shape.dtype], i);
    jot_text_f(&e->t, ")");
}

/* What another file needs, and nothing else where that file asks for it: then behind #endif. */
static void
export_declarations(Export *e)
{
    const char *name = e->name;

    jot_text_f(&e->t, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
               "enum { %s_ARENA = %zu };\nextern const unsigned long %s_arena;\n"
               "extern void %s(void *arena", name, e->arena_nbytes, name, name);
    jot_export_parameters(e);
    jot_text_f(&e->t, ";\n#ifdef __cplusplus\n}\n#endif\n\n#ifndef %s_HEADER\n", name);
}

static void
export_copy(Export *e, size_t nbytes)
{
    jot_text_f(&e->t, ", (jot_u64)(%lld));\n", (long long)nbytes);
}

static bool
export_copies(const Export *e)
{
    const Func *f = e->f;
    bool some = f->updates.n > 0 || e->loops;
    uint32_t i;

    for (i = 0; i < f->noutputs; i++)
        some |= !f->output[i].from.computed || e->out[f->output[i].from.at] != i + 1;
    return some;
}

/* Outputs that no kernel writes, then updates: all are read before the first is written. */
static void
export_results(Export *e)
{
    const Func *f = e->f;
    uint32_t i, k;

    for (i = 0; i < f->noutputs; i++) {
        const FuncFrom *from = &f->output[i].from;

        if (from->computed && e->out[from->at] == i + 1)
            continue;
        jot_text_f(&e->t, "    %s_copy(out%u, ", e->name, i);
        export_from(e, from);
        export_copy(e, f->output[i].shape.nbytes);
    }
    for (i = 0; i < f->updates.n; i++) {
        if (f->updates.v[i].from.computed)
            continue;
        jot_text_f(&e->t, "    %s_copy(a + %zu, ", e->name, e->at[f->roots.n + i]);
        export_from(e, &f->updates.v[i].from);
        export_copy(e, f->updates.v[i].shape.nbytes);
    }
    for (k = 0; k < f->leaves.n; k++) {
        const FuncUpdate *u = jot_export_update_of(f, &f->leaves.v[k]);

        if (!u)
            continue;
        jot_text_f(&e->t, "    %s_copy(", e->name);
        export_leaf(e, k);
        jot_text_f(&e->t, ", ");
        if (u->from.computed)
            export_from(e, &u->from);
        else
            jot_text_f(&e->t, "a + %zu", e->at[f->roots.n + (uint32_t)(u - f->updates.v)]);
        export_copy(e, u->shape.nbytes);
    }
}

JOT_FN void
jot_export_body(Export *e)
{
    const Plan *plan = e->f->plan;
    const ExportScope scope = {.plan = plan};
    uint32_t i;

    jot_text_f(&e->t, "    unsigned char *a = arena;\n    void *buf[%u];\n", e->most);
    jot_export_tables(e, &scope, e->f->bind.scalar, e->f->bind.code);
    for (i = 0; i < e->f->ninputs; i++)
        jot_text_f(&e->t, "    (void)in%u;\n", i);
    jot_export_steps(e, &scope);
    export_results(e);
    jot_text_f(&e->t, "}\n");
}

/* What the body calls beside kernels, and its tables. */
JOT_FN void
jot_export_data(Export *e)
{
    if (export_copies(e))
        jot_text_f(&e->t, "static void\n%s_copy(void *to, const void *from, jot_u64 n)\n{\n"
                   "    unsigned char *t = to;\n    const unsigned char *f = from;\n\n"
                   "    while (n--)\n        *t++ = *f++;\n}\n\n", e->name);
    jot_export_tables_of(e);
}

/* ---- the file ------------------------------------------------------------------------------- */

/* What C++ keeps for itself beside C's words, and functions that a compiler knows or calls. */
static const char export_taken[] =
    " alignas alignof and and_eq asm bitand bitor bool catch char16_t char32_t class compl"
    " constexpr const_cast decltype delete dynamic_cast explicit export false friend mutable"
    " namespace new noexcept not not_eq nullptr operator or or_eq private protected public"
    " reinterpret_cast static_assert static_cast template this thread_local throw true try typeid"
    " typename using virtual wchar_t xor xor_eq main memcmp memcpy memmove memset ";

JOT_FN bool
jot_export_name_ok(jot_Ctx *ctx, const char *name)
{
    size_t i, n = name ? jot_str_len(name) : 0;
    bool ok = n > 0 && n < 64;

    for (i = 0; ok && i < n; i++)
        ok = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z')
          || name[i] == '_' || (i && name[i] >= '0' && name[i] <= '9');
    if (!ok)
        return jot_fail(ctx, JOT_EUSE, "export: name \"%s\": an identifier of C of at most 63 "
                        "characters is asked", name ? name : "");
    if (jot_code_is_word(name) || jot_code_is_among(export_taken, name)
        || (n > 3 && (!memcmp(name, "jot", 3) || !memcmp(name, "JOT", 3))))
        return jot_fail(ctx, JOT_EUSE, "export: name \"%s\" is taken, by C, by C++ or by what the "
                        "file itself defines (jot...): choose another (jot export: --name)", name);
    return true;
}

JOT_FN bool
jot_export_begin(Export *e)
{
    jot_Ctx *ctx = e->f->ctx;

    e->t.mem = &ctx->mem;
    ctx->mem.failed = false;
    if (e->f->randoms.n)
        return jot_fail(ctx, JOT_EUSE, "export: random variables have no place in a file: make "
                        "them inputs");
    e->most = 1;
    return export_collect(e, e->f->plan) && export_places(e);
}

static bool
export_text(Export *e)
{
    jot_Ctx *ctx = e->f->ctx;
    Text kernels = {&ctx->mem, NULL, 0, 0};

    if (!jot_export_begin(e))
        return false;
    export_head(e);
    export_declarations(e);
    jot_export_kernels(e, &kernels);
    if (!ctx->mem.failed && jot_emit_prelude(jot_dialect_find("c"), kernels.s ? kernels.s : "",
                                             kernels.n, &e->t)) {
        jot_text_put(&e->t, kernels.s, kernels.n);
        jot_export_data(e);
        jot_text_f(&e->t, "const unsigned long %s_arena = %s_ARENA;\n\nvoid\n%s(void *arena",
                   e->name, e->name, e->name);
        jot_export_parameters(e);
        jot_text_f(&e->t, "\n{\n");
        jot_export_body(e);
        jot_text_f(&e->t, "#endif\n");
        jot_export_flush(e, 0);
    }
    jot_text_free(&kernels);
    return !ctx->mem.failed || jot_fail_memory(ctx, "export");
}

bool
jot_export_text(jot_Ctx *ctx, const char *name, jot_Vars inputs, jot_Vars outputs,
                jot_WriteFn *write, void *user)
{
    static const FuncFor of = {.op = "export", .dialect = "c"};
    Export e;
    bool ok;

    if (!ctx || ctx->status || !jot_export_name_ok(ctx, name))
        return false;
    if (!write)
        return jot_fail(ctx, JOT_EUSE, "export: write is NULL");
    memset(&e, 0, sizeof e);
    e.name = name;
    e.write = write;
    e.user = user;
    e.f = jot_func_make(ctx, inputs, outputs, &of);
    if (!e.f)
        return false;
    ok = export_text(&e);
    jot_vec_free(&ctx->mem, e.kernels);
    jot_text_free(&e.t);
    jot_func_end(e.f);
    return ok;
}
