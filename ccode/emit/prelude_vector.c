/* ccode/emit/prelude_vector.c - the functions of the prelude on vectors, made of their scalar text:
 * for gcc and clang, when a kernel names jotm_expf_x16.
 *
 * All types have as many lanes, however wide that is; where the scalar returns a truth value the
 * vector has lanes of 0 or -1, as wide as the argument's. What a condition per lane guards is run
 * if any lane asks for it, and keeps the others' values. The bits are those of the scalar. A body
 * that has no such form (a loop of data's length) is called lane by lane; what a target has in one
 * instruction stands before it, for twice the lanes by halves.
 *
 *   requires  prelude/prelude.def, and the helpers of dialect_vector.c
 *   breaks    nothing: every function but jotm_fused has a form for 2 lanes and more
 *
 * Read before: ccode/emit/prelude_spell.c. After: ccode/emit/dialect.c. */
#include "ccode/emit/prelude_vector.h"

/* ---- statements ---- */

static void vform_statement(VForm *f);

static void
vform_assign(VForm *f)
{
    bool at = f->op == '*';
    VVar *v;
    int n;
    if (at)
        jot_vform_token(f);
    v = jot_vform_var(f, f->tok, f->ntok);
    if (!v || v->kind == VAR_SCALAR || at != (v->kind == VAR_POINTER)) {
        f->failed = true;
        return;
    }
    jot_vform_token(f);
    f->failed |= f->op != '=';
    jot_vform_token(f);
    n = jot_vform_read(f);
    jot_vform_want(f, ';');
    jot_text_f(f->out, "    %s%.*s = ", at ? "*" : "", (int)v->n, v->s);
    if (v->kind == VAR_MASK && !f->failed && f->node[n].truth)
        jot_vform_mask(f, n, v->bits);
    else if (v->kind == VAR_MASK)
        f->failed = true;
    else
        jot_vform_value(f, n, v->type);
    jot_text_f(f->out, ";\n");
}

/* The counter of a loop stays a scalar. */
static bool
vform_counts(const VForm *f)
{
    static const char head[] = "for (";
    for (const char *s = f->at; *s; s++) {
        size_t i = 0, n = 0;
        while (head[i] && s[i] == head[i])
            i++;
        while (!head[i] && n < f->ntok && s[i + n] == f->tok[n])
            n++;
        if (n == f->ntok && s[i + n] == ' ')
            return true;
    }
    return false;
}

static void
vform_declaration(VForm *f, bool is_int, VType type)
{
    for (;;) {
        const char *name = f->tok;
        int len = (int)f->ntok, n = -1;
        VVar *v = jot_vform_declare(f, type, VAR_VECTOR);
        bool counts = is_int && vform_counts(f);
        jot_vform_token(f);
        if (f->op == '=') {
            jot_vform_token(f);
            f->vars--; /* not yet, in its own value */
            n = jot_vform_read(f);
            f->vars++;
        }
        if (f->failed)
            return;
        if (counts) {
            v->kind = VAR_SCALAR;
            jot_text_f(f->out, "    int %.*s;\n", len, name);
            f->failed |= n >= 0;
        } else if (n >= 0 && f->node[n].truth && is_int) {
            v->kind = VAR_MASK;
            v->bits = jot_vform_mask_bits(f, &f->node[n]);
            jot_text_f(f->out, "    jot_i%dx%d %.*s = ", v->bits, f->lanes, len, name);
            jot_vform_mask(f, n, v->bits);
            jot_text_f(f->out, ";\n");
        } else {
            jot_text_f(f->out, "    ");
            jot_vform_put_type(f, type);
            jot_text_f(f->out, n >= 0 ? " %.*s = " : " %.*s", len, name);
            if (n >= 0)
                jot_vform_value(f, n, type);
            jot_text_f(f->out, ";\n");
            f->failed |= is_int && n < 0; /* a truth value, perhaps */
        }
        if (f->op != ',')
            break;
        jot_vform_token(f);
    }
    jot_vform_want(f, ';');
}

static void
vform_return(VForm *f)
{
    int n;
    jot_vform_token(f);
    n = jot_vform_read(f);
    jot_vform_want(f, ';');
    jot_text_f(f->out, "    return ");
    f->failed |= f->depth > 0;
    if (jot_vform_is_truth(f->fn)) {
        VVar param = {0};
        jot_vform_param(f->fn->params, &param);
        jot_vform_mask(f, n, param.type == VT_F64 ? 64 : 32);
    } else {
        jot_vform_value(f, n, jot_vform_type(f->fn->ret, jot_str_len(f->fn->ret)));
    }
    jot_text_f(f->out, ";\n");
}

/* Is it assigned to between the two? */
static bool
vform_assigns(const char *from, const char *to, const VVar *v)
{
    for (const char *s = from; s + v->n + 3 < to; s++)
        if (memcmp(s, v->s, v->n) == 0 && memcmp(s + v->n, " = ", 3) == 0 && s[-1] == ' ')
            return true;
        else if (v->kind == VAR_POINTER && *s == '*' && memcmp(s + 1, v->s, v->n) == 0 &&
                 memcmp(s + 1 + v->n, " =", 2) == 0)
            return true;
    return false;
}

/* The end of the statement that begins with this token. */
static const char *
vform_end(const VForm *f)
{
    const char *s = f->tok;
    int open = 0;
    for (; *s; s++) {
        open += *s == '{';
        open -= *s == '}';
        if (open == 0 && (*s == '}' || *s == ';'))
            return s + 1;
    }
    return s;
}

/* What a mask guards is run if any lane is in it; then the other lanes of what it assigned get
 * their values back. */
static void
vform_guarded(VForm *f, int mask, int bits)
{
    int vars = f->vars;
    const char *from = f->tok, *end = vform_end(f);
    if (f->depth + 1 >= VFORM_DEPTH) {
        f->failed = true;
        return;
    }
    jot_text_f(f->out, "    if (jot_any_i%dx%d(on_%d)) {\n", bits, f->lanes, mask);
    for (int i = 0; i < vars; i++) {
        const VVar *v = &f->var[i];
        if (!vform_assigns(from, end, v))
            continue;
        f->failed |= v->kind == VAR_SCALAR;
        jot_text_f(f->out, "    const ");
        jot_vform_put_type(f, v->kind == VAR_MASK ? jot_vform_int(v->bits, false) : v->type);
        jot_text_f(f->out, " %.*s_off%d = %s%.*s;\n", (int)v->n, v->s, mask,
                   v->kind == VAR_POINTER ? "*" : "", (int)v->n, v->s);
    }
    f->depth++;
    f->mask[f->depth] = mask;
    f->mask_bits[f->depth] = bits;
    vform_statement(f);
    f->depth--;
    f->vars = vars;
    for (int i = 0; i < vars; i++) {
        const VVar *v = &f->var[i];
        VType lane = v->kind == VAR_MASK ? jot_vform_int(v->bits, false) : v->type;
        const char *at = v->kind == VAR_POINTER ? "*" : "";
        if (!vform_assigns(from, end, v))
            continue;
        jot_text_f(f->out, "    %s%.*s = jot_sel_%sx%d(", at, (int)v->n, v->s,
                   jot_vtype(lane)->lane, f->lanes);
        jot_vform_open(f, jot_vform_int(bits, false), jot_vform_int(jot_vtype(lane)->bits, false));
        jot_text_f(f->out, "on_%d", mask);
        jot_vform_shut(f, jot_vform_int(bits, false), jot_vform_int(jot_vtype(lane)->bits, false));
        jot_text_f(f->out, ", %s%.*s, %.*s_off%d);\n", at, (int)v->n, v->s, (int)v->n, v->s, mask);
    }
    jot_text_f(f->out, "    }\n");
}

static void
vform_around(VForm *f, int bits)
{
    int from = f->mask_bits[f->depth];
    if (f->depth == 0)
        return;
    jot_text_f(f->out, " & ");
    jot_vform_open(f, jot_vform_int(from, false), jot_vform_int(bits, false));
    jot_text_f(f->out, "on_%d", f->mask[f->depth]);
    jot_vform_shut(f, jot_vform_int(from, false), jot_vform_int(bits, false));
}

static void
vform_if(VForm *f)
{
    int n, bits, mask;
    jot_vform_token(f);
    jot_vform_want(f, '(');
    n = jot_vform_read(f);
    jot_vform_want(f, ')');
    if (f->failed)
        return;
    if (!f->node[n].vec) {
        jot_text_f(f->out, "    if (");
        jot_vform_source(f, &f->node[n]);
        jot_text_f(f->out, ") {\n");
        vform_statement(f);
        jot_text_f(f->out, "    }\n");
        f->failed |= jot_vform_is(f, "else");
        return;
    }
    bits = jot_vform_mask_bits(f, &f->node[n]);
    mask = ++f->masks;
    jot_text_f(f->out, "    const jot_i%dx%d on_%d = ", bits, f->lanes, mask);
    jot_vform_mask(f, n, bits);
    vform_around(f, bits);
    jot_text_f(f->out, ";\n");
    vform_guarded(f, mask, bits);
    if (!jot_vform_is(f, "else"))
        return;
    jot_vform_token(f);
    jot_text_f(f->out, "    const jot_i%dx%d on_%d = ~on_%d", bits, f->lanes, ++f->masks, mask);
    vform_around(f, bits);
    jot_text_f(f->out, ";\n");
    vform_guarded(f, f->masks, bits);
}

/* A loop of constant length, in scalars. */
static void
vform_for(VForm *f)
{
    const char *from = f->tok, *end;
    VVar *v;
    jot_vform_token(f);
    jot_vform_want(f, '(');
    v = jot_vform_var(f, f->tok, f->ntok);
    f->failed |= !v || v->kind != VAR_SCALAR;
    while (f->op != ')' && *f->tok && !f->failed) {
        v = f->op ? NULL : jot_vform_var(f, f->tok, f->ntok);
        f->failed |= f->op == '(' || (v && v->kind != VAR_SCALAR);
        jot_vform_token(f);
    }
    end = f->at;
    jot_vform_want(f, ')');
    jot_text_f(f->out, "    %.*s {\n", (int)(end - from), from);
    vform_statement(f);
    jot_text_f(f->out, "    }\n");
}

static void
vform_statement(VForm *f)
{
    VType type;
    if (f->failed)
        return;
    type = f->op ? VT_NONE : jot_vform_type(f->tok, f->ntok);
    if (f->op == '{') {
        jot_vform_token(f);
        while (f->op != '}' && f->ntok && !f->failed)
            vform_statement(f);
        jot_vform_want(f, '}');
    } else if (type != VT_NONE) {
        bool is_int = jot_vform_is(f, "int");
        jot_vform_token(f);
        vform_declaration(f, is_int, type);
    } else if (jot_vform_is(f, "return")) {
        vform_return(f);
    } else if (jot_vform_is(f, "if")) {
        vform_if(f);
    } else if (jot_vform_is(f, "for")) {
        vform_for(f);
    } else {
        vform_assign(f);
    }
}

/* ---- instructions ---- */

/* Where `where` holds: the function on so many lanes, 0: on any. %L: the lanes, %I: how to round.
 * The first that holds wins. */
typedef struct { const char *names; int lanes; const char *where, *call; } VectorBuiltin;
#define VB_ROUNDF "jotm_rintf jotm_floorf jotm_ceilf jotm_truncf"
#define VB_ROUND "jotm_rint jotm_floor jotm_ceil jotm_trunc"
#define VB_SQRT "jotm_sqrtf jotm_sqrt"
static const VectorBuiltin vector_builtins[] = {
    { "jotm_madf", 0, "defined __FP_FAST_FMAF", "jot_mad_f32x%L(x, y, z)" },
    { "jotm_mad", 0, "defined __FP_FAST_FMA", "jot_mad_f64x%L(x, y, z)" },
    { "jotm_mulerrf", 0, "defined __FP_FAST_FMAF", "jot_mad_f32x%L(a, b, -p)" },
    { "jotm_mulerr", 0, "defined __FP_FAST_FMA", "jot_mad_f64x%L(a, b, -p)" },
    { VB_SQRT, 0, "__clang_major__ >= 18", "__builtin_elementwise_sqrt(x)" },
    { "jotm_sqrtf", 16, "defined __AVX512F__ && defined __clang__",
      "__builtin_ia32_sqrtps512(x, 4)" },
    { "jotm_sqrtf", 16, "defined __AVX512F__", "__builtin_ia32_sqrtps512_mask(x, x, -1, 4)" },
    { "jotm_sqrtf", 8, "defined __AVX__", "__builtin_ia32_sqrtps256(x)" },
    { "jotm_sqrtf", 4, "defined __SSE2__", "__builtin_ia32_sqrtps(x)" },
    { "jotm_sqrtf", 4, "defined __aarch64__ && !defined __clang__",
      "__builtin_aarch64_sqrtv4sf(x)" },
    { "jotm_sqrt", 8, "defined __AVX512F__ && defined __clang__",
      "__builtin_ia32_sqrtpd512(x, 4)" },
    { "jotm_sqrt", 8, "defined __AVX512F__", "__builtin_ia32_sqrtpd512_mask(x, x, -1, 4)" },
    { "jotm_sqrt", 4, "defined __AVX__", "__builtin_ia32_sqrtpd256(x)" },
    { "jotm_sqrt", 2, "defined __SSE2__", "__builtin_ia32_sqrtpd(x)" },
    { "jotm_sqrt", 2, "defined __aarch64__ && !defined __clang__",
      "__builtin_aarch64_sqrtv2df(x)" },
    { VB_ROUNDF, 16, "defined __AVX512F__", "__builtin_ia32_rndscaleps_mask(x, %I, x, -1, 4)" },
    { VB_ROUNDF, 8, "defined __AVX__", "__builtin_ia32_roundps256(x, %I)" },
    { VB_ROUNDF, 4, "defined __SSE4_1__", "__builtin_ia32_roundps(x, %I)" },
    { VB_ROUND, 8, "defined __AVX512F__", "__builtin_ia32_rndscalepd_mask(x, %I, x, -1, 4)" },
    { VB_ROUND, 4, "defined __AVX__", "__builtin_ia32_roundpd256(x, %I)" },
    { VB_ROUND, 2, "defined __SSE4_1__", "__builtin_ia32_roundpd(x, %I)" },
    { "jotm_f16_to_f32", 16, "defined __AVX512F__",
      "__builtin_ia32_vcvtph2ps512_mask((jot_i16x16)h, (jot_f32x16){0}, -1, 4)" },
    { "jotm_f16_to_f32", 8, "defined __F16C__", "__builtin_ia32_vcvtph2ps256((jot_i16x8)h)" },
    { "jotm_f32_to_f16", 16, "defined __AVX512F__",
      "__builtin_ia32_vcvtps2ph512_mask(x, 0, (jot_i16x16){0}, -1)" },
    { "jotm_f32_to_f16", 8, "defined __F16C__", "__builtin_ia32_vcvtps2ph256(x, 0)" },
};
#define VECTOR_BUILTINS (sizeof vector_builtins / sizeof vector_builtins[0])

static bool
vector_builtin_is(const VectorBuiltin *b, const char *name)
{
    size_t n = jot_str_len(name);
    for (const char *s = b->names; *s; s += *s == ' ') {
        size_t len = 0;
        while (s[len] && s[len] != ' ')
            len++;
        if (len == n && memcmp(s, name, n) == 0)
            return true;
        s += len;
    }
    return false;
}

static void
vector_builtin_put(Text *out, const VectorBuiltin *b, const PreludeFn *fn, int lanes)
{
    VType t = jot_vform_type(fn->ret, jot_str_len(fn->ret));
    char how = fn->name[5];
    jot_text_f(out, "    return (jot_%sx%d)", jot_vtype(t)->lane, lanes);
    for (const char *s = b->call; *s; s++)
        if (*s != '%')
            jot_text_put(out, s, 1);
        else if (*++s == 'L')
            jot_text_f(out, "%d", lanes);
        else
            jot_text_f(out, "%d", how == 'r' ? 12 : how == 'f' ? 9 : how == 'c' ? 10 : 11);
    jot_text_f(out, ";\n");
}

/* ---- functions ---- */

static void
vform_head(const PreludeFn *fn, int lanes, const char *how, const char *end, Text *out)
{
    VType t = jot_vform_type(fn->ret, jot_str_len(fn->ret));
    const char *p = fn->params;
    VVar v;
    bool first = true, truth = jot_vform_is_truth(fn);
    if (truth)
        t = jot_vform_param(p, &v) && v.type == VT_F64 ? VT_I64 : VT_I32;
    jot_text_f(out, "%s jot_%sx%d\n%s_x%d%s(", how, jot_vtype(t)->lane, lanes, fn->name, lanes,
               end);
    for (; (p = jot_vform_param(p, &v)) != NULL; first = false)
        jot_text_f(out, "%sjot_%sx%d %s%.*s", first ? "" : ", ", jot_vtype(v.type)->lane, lanes,
                   v.kind == VAR_POINTER ? "*" : "", (int)v.n, v.s);
    jot_text_f(out, ")\n{\n");
}

/* The body in vectors; false: it has none. */
static bool
vform_body(const PreludeFn *fn, int lanes, Text *out)
{
    VForm f;
    VVar v;
    memset(&f, 0, sizeof f);
    f.fn = fn, f.lanes = lanes, f.out = out;
    for (const char *p = fn->params; (p = jot_vform_param(p, &v)) != NULL;)
        f.var[f.vars++] = v;
    if (memcmp(fn->body, "{ union", 7) == 0) {
        jot_text_f(out, "    return (");
        jot_vform_put_type(&f, jot_vform_type(fn->ret, jot_str_len(fn->ret)));
        jot_text_f(out, ")%.*s;\n", (int)v.n, v.s);
        return true;
    }
    f.at = fn->body;
    jot_vform_token(&f);
    vform_statement(&f);
    return !f.failed;
}

/* One lane after another. */
static void
vform_each(const PreludeFn *fn, int lanes, Text *out)
{
    bool truth = jot_vform_is_truth(fn), first = true;
    VType t = jot_vform_type(fn->ret, jot_str_len(fn->ret));
    const char *p;
    VVar v;
    if (truth)
        t = jot_vform_param(fn->params, &v) && v.type == VT_F64 ? VT_I64 : VT_I32;
    jot_text_f(out, "    jot_%sx%d each = {0};\n    for (int l = 0; l < %d; l++) {\n",
               jot_vtype(t)->lane, lanes, lanes);
    for (p = fn->params; (p = jot_vform_param(p, &v)) != NULL;)
        if (v.kind == VAR_POINTER)
            jot_text_f(out, "        %s %.*s_l;\n", jot_vtype(v.type)->c, (int)v.n, v.s);
    jot_text_f(out, "        each[l] = %s%s(", truth ? "-" : "", fn->name);
    for (p = fn->params; (p = jot_vform_param(p, &v)) != NULL; first = false)
        jot_text_f(out, v.kind == VAR_POINTER ? "%s&%.*s_l" : "%s%.*s[l]", first ? "" : ", ",
                   (int)v.n, v.s);
    jot_text_f(out, ");\n");
    for (p = fn->params; (p = jot_vform_param(p, &v)) != NULL;)
        if (v.kind == VAR_POINTER)
            jot_text_f(out, "        (*%.*s)[l] = %.*s_l;\n", (int)v.n, v.s, (int)v.n, v.s);
    jot_text_f(out, "    }\n    return each;\n");
}

/* The function on each half; it has one parameter. */
static void
vform_halves(const PreludeFn *fn, int lanes, Text *out)
{
    VType t = jot_vform_type(fn->ret, jot_str_len(fn->ret));
    VVar v;
    if (!jot_vform_param(fn->params, &v))
        return;
    jot_text_f(out, "    return jot_join_%sx%d(", jot_vtype(t)->lane, lanes);
    for (int i = 0; i < 2; i++)
        jot_text_f(out, "%s%s_x%d(jot_%s_%sx%d(%.*s))", i ? ", " : "", fn->name, lanes / 2,
                   i ? "hi" : "lo", jot_vtype(v.type)->lane, lanes, (int)v.n, v.s);
    jot_text_f(out, ");\n");
}

/* name_x16: the function, and its lanes. */
static const PreludeFn *
vform_find(const char *name, size_t n, int *lanes)
{
    size_t end = n;
    *lanes = 0;
    while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9')
        end--;
    for (size_t i = end; i < n && *lanes < 1000; i++)
        *lanes = *lanes * 10 + (name[i] - '0');
    if (end < 3 || name[end - 1] != 'x' || name[end - 2] != '_' || *lanes < 2 || *lanes > 64 ||
        (*lanes & (*lanes - 1)))
        return NULL;
    return jot_prelude_find(name, end - 2);
}

/* ---- called, not inlined ------------------------------------------------------------------ */

enum { CALLED_LENGTH = 150 };
static const char called[] = "_called";

JOT_FN bool
jot_prelude_may_call(const char *name, size_t n)
{
    int lanes;
    const PreludeFn *fn = vform_find(name, n, &lanes);
    if (!fn || jot_str_len(fn->body) < CALLED_LENGTH)
        return false;
    for (size_t i = 0; i < VECTOR_BUILTINS; i++)
        if (vector_builtin_is(&vector_builtins[i], fn->name))
            return false;
    return true;
}

/* name_x16_called: a function that calls name_x16. */
static bool
called_text(const char *name, size_t n, Text *out)
{
    size_t end = sizeof called - 1;
    const PreludeFn *fn;
    int lanes;
    const char *p;
    VVar v;
    if (n <= end || memcmp(name + n - end, called, end)
        || !(fn = vform_find(name, n - end, &lanes)))
        return false;
    vform_head(fn, lanes, "static __attribute__((noinline))", called, out);
    jot_text_f(out, "    return %s_x%d(", fn->name, lanes);
    for (p = fn->params, n = 0; (p = jot_vform_param(p, &v)) != NULL; n++)
        jot_text_f(out, "%s%.*s", n ? ", " : "", (int)v.n, v.s);
    jot_text_f(out, ");\n}\n");
    return true;
}

JOT_FN bool
jot_prelude_vector(const char *name, size_t n, Text *out)
{
    int lanes, least = 64;
    const PreludeFn *fn = vform_find(name, n, &lanes);
    const char *branch = "if";
    size_t start = out->n;
    if (!fn)
        return called_text(name, n, out);
    if (jot_str_eq(fn->name, "jotm_fused"))
        return false;
    vform_head(fn, lanes, "JOT_VECTOR", "", out);
    for (size_t i = 0; i < VECTOR_BUILTINS; i++) {
        const VectorBuiltin *b = &vector_builtins[i];
        if (!vector_builtin_is(b, fn->name))
            continue;
        least = b->lanes && b->lanes < least ? b->lanes : least;
        if (b->lanes && b->lanes != lanes)
            continue;
        jot_text_f(out, "#%s %s\n", branch, b->where);
        vector_builtin_put(out, b, fn, lanes);
        branch = "elif";
    }
    if (branch[0] == 'e')
        jot_text_f(out, "#else\n");
    if (lanes > least) {
        vform_halves(fn, lanes, out);
    } else {
        size_t at = out->n;
        if (!vform_body(fn, lanes, out)) {
            out->n = branch[0] == 'e' ? at : start;
            if (branch[0] != 'e')
                vform_head(fn, lanes, "JOT_INLINE", "", out);
            vform_each(fn, lanes, out);
        }
    }
    jot_text_f(out, "%s}\n", branch[0] == 'e' ? "#endif\n" : "");
    return true;
}

JOT_FN uint64_t
jot_prelude_vector_hash(uint64_t hash)
{
    for (size_t i = 0; i < VECTOR_BUILTINS; i++)
        hash = jot_hash(hash, vector_builtins[i].call, jot_str_len(vector_builtins[i].call));
    return jot_hash(hash, VFORM_VERSION, sizeof VFORM_VERSION);
}
