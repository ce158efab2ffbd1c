/* ccode/dialect.c - targets as data, and what stands before the kernels in a file: typedefs and
 * exactly those functions that the kernels name, transitively. The scalar functions are the
 * prelude's (ccode/prelude.def); the few here belong to the emitter: an index brought inside, fma,
 * vectors.
 *
 *   requires  emitted functions (their text is scanned for jot_ names)
 *   keeps     nothing to keep      breaks  nothing
 *
 * Read before: ccode/emit.h, ccode/prelude.h. */
#include "ccode/print.h"
#define JOT_PRELUDE_TEXT
#include "ccode/prelude.h"
#undef JOT_PRELUDE_TEXT

static const Dialect dialects[] = {
    { "c", false, "restrict", "", "jot_fma%f" },
    { "gnu", true, "restrict", "", "__builtin_fma%f" },
};

JOT_FN const Dialect *
jot_dialect_find(const char *name)
{
    for (size_t i = 0; i < sizeof dialects / sizeof dialects[0]; i++)
        if (jot_str_eq(dialects[i].name, name))
            return &dialects[i];
    return NULL;
}

static const char typedefs[] =
    "#ifdef __clang__\n"
    "#pragma STDC FP_CONTRACT OFF\n"
    "#endif\n"
    "typedef signed char jot_i8;\n"
    "typedef unsigned char jot_u8;\n"
    "typedef short jot_i16;\n"
    "typedef unsigned short jot_u16;\n"
    "typedef int jot_i32;\n"
    "typedef unsigned jot_u32;\n"
    "typedef long long jot_i64;\n"
    "typedef unsigned long long jot_u64;\n"
    "typedef union { jot_i64 i; jot_u64 u; double f; } jot_Scalar;\n";

typedef struct { const char *name, *text; } Helper;
static const Helper helpers[] = {
    { "jot_clamp",
      "static jot_i64\njot_clamp(jot_i64 i, jot_i64 n)\n{\n"
      "    return i < 0 ? 0 : i < n ? i : n - 1;\n}\n" },
    { "jot_fmaf",
      "static float\njot_fmaf(float a, float b, float c)\n{\n    return a * b + c;\n}\n" },
    { "jot_fma",
      "static double\njot_fma(double a, double b, double c)\n{\n    return a * b + c;\n}\n" },
};

JOT_FN const char *
jot_dialect_helper(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof helpers / sizeof helpers[0]; i++)
        if (jot_str_len(helpers[i].name) == n && memcmp(helpers[i].name, name, n) == 0)
            return helpers[i].text;
    return NULL;
}

/* ---- the functions that a text names ---- */

#define NEEDED 512
typedef struct {
    char name[40]; /* a copy: a caller's text may be gone */
    size_t n;
} Needed;
typedef struct {
    const Dialect *d;
    Text *out;
    Needed done[NEEDED];
    int ndone;
} Prelude;

static void need_text(Prelude *p, const char *text, size_t n, int depth);

static bool
is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* jot_f32x8, jot_ld_f32x8, jot_st_f32x8: a vector type, its loads and stores */
static bool
need_vector(Prelude *p, const char *name, size_t n)
{
    size_t x = n, from = 4;
    bool ld = n > 7 && memcmp(name + 4, "ld_", 3) == 0,
        st = n > 7 && memcmp(name + 4, "st_", 3) == 0;
    int lanes = 0, bits = 0;
    from += ld || st ? 3 : 0;
    while (x > from && name[x - 1] != 'x')
        x--;
    if (x <= from + 1 || x >= n || (name[from] != 'f' && name[from] != 'i' && name[from] != 'u'))
        return false;
    for (size_t i = x; i < n; i++) {
        if (name[i] < '0' || name[i] > '9')
            return false;
        lanes = lanes * 10 + (name[i] - '0');
    }
    for (size_t i = from + 1; i + 1 < x; i++)
        bits = bits * 10 + (name[i] - '0');
    if (ld || st) {
        char vector[64];
        Text t = {0};
        t.s = vector;
        t.cap = sizeof vector;
        jot_text_f(&t, "jot_%.*s", (int)(n - from), name + from);
        need_text(p, vector, t.n, 0);
    }
    if (ld)
        jot_text_f(p->out, "static inline jot_%.*s\n%.*s(const void *p)\n{\n    jot_%.*s v;\n"
                   "    __builtin_memcpy(&v, p, sizeof v);\n    return v;\n}\n", (int)(n - from),
                   name + from, (int)n, name, (int)(n - from), name + from);
    else if (st)
        jot_text_f(p->out, "static inline void\n%.*s(void *p, jot_%.*s v)\n{\n"
                   "    __builtin_memcpy(p, &v, sizeof v);\n}\n", (int)n, name, (int)(n - from),
                   name + from);
    else
        jot_text_f(p->out, "typedef %s%.*s %.*s __attribute__((vector_size(%d)));\n",
                   name[from] == 'f' ? (bits == 64 ? "double" : "float") : "jot_",
                   name[from] == 'f' ? 0 : (int)(x - 1 - from), name + from, (int)n, name,
                   lanes * bits / 8);
    return true;
}

static void
need(Prelude *p, const char *name, size_t n, int depth)
{
    const PreludeFn *fn;
    const char *text;
    for (int i = 0; i < p->ndone; i++)
        if (p->done[i].n == n && memcmp(p->done[i].name, name, n) == 0)
            return;
    if (p->ndone >= NEEDED || depth > 40 || n > sizeof p->done[0].name)
        return;
    fn = jot_prelude_find(name, n);
    text = jot_dialect_helper(name, n);
    memcpy(p->done[p->ndone].name, name, n);
    p->done[p->ndone++].n = n; /* before what it needs itself */
    if (fn) {
        need_text(p, fn->uses, jot_str_len(fn->uses), depth + 1);
        need_text(p, fn->body, jot_str_len(fn->body), depth + 1);
        jot_text_f(p->out, "static %s\n%s%s\n%s\n", fn->ret, fn->name, fn->params, fn->body);
    } else if (text) {
        jot_text_f(p->out, "%s", text);
    } else if (!need_vector(p, name, n)) {
        p->ndone--; /* a word of the text's own */
    }
}

static void
need_text(Prelude *p, const char *text, size_t n, int depth)
{
    for (size_t i = 0; i < n; i++) {
        size_t end = i;
        if (!is_word(text[i]) || (i > 0 && is_word(text[i - 1])))
            continue;
        while (end < n && is_word(text[end]))
            end++;
        if (end - i > 4 && memcmp(text + i, "jot", 3) == 0)
            need(p, text + i, end - i, depth);
        i = end - 1;
    }
}

JOT_FN bool
jot_emit_prelude(const Dialect *d, const char *kernels, size_t n, Text *out)
{
    Prelude p;
    memset(&p, 0, sizeof p);
    p.d = d;
    p.out = out;
    jot_text_f(out, "%s", typedefs);
    need_text(&p, kernels, n, 0);
    return !out->mem || !out->mem->failed;
}
