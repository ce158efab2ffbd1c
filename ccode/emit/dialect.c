/* ccode/emit/dialect.c - targets as data, and what stands before the kernels in a file: typedefs
 * and exactly those functions that the kernels name, transitively. The scalar functions are the
 * prelude's (prelude/prelude.def), vectors are in dialect_vector.c; the few here belong to the
 * emitter: an index brought inside, fma, a processor's matrix unit.
 *
 *   requires  emitted functions (their text is scanned for jot_ names)
 *   keeps     nothing to keep      breaks  nothing
 *
 * Read before: ccode/emit.h, prelude/prelude.h. After: ccode/emit/dialect_vector.c. */
#include "ccode/emit/print.h"
#define JOT_PRELUDE_TEXT
#include "prelude/prelude.h"
#undef JOT_PRELUDE_TEXT

/* Integers of C and CUDA. */
#define DIALECT_TYPES \
    "typedef signed char jot_i8;\n" \
    "typedef unsigned char jot_u8;\n" \
    "typedef short jot_i16;\n" \
    "typedef unsigned short jot_u16;\n" \
    "typedef int jot_i32;\n" \
    "typedef unsigned jot_u32;\n" \
    "typedef long long jot_i64;\n" \
    "typedef unsigned long long jot_u64;\n"

static const DeviceDialect opencl = {
    "#pragma OPENCL FP_CONTRACT OFF\n"
    "typedef char jot_i8;\n"
    "typedef uchar jot_u8;\n"
    "typedef short jot_i16;\n"
    "typedef ushort jot_u16;\n"
    "typedef int jot_i32;\n"
    "typedef uint jot_u32;\n"
    "typedef long jot_i64;\n"
    "typedef ulong jot_u64;\n",
    "__kernel ", NULL, "static ", "__global ", "__local ", "__local ", true,
    "get_global_id(0)", "get_global_size(0)", "get_group_id(0)", "get_num_groups(0)",
    "get_local_id(0)", "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)",
    "__attribute__((aligned(16))) ", NULL, 0, NULL,
    {"uchar", "char", "short", "int", "long", "uchar", "ushort", "uint", "ulong", "ushort",
     "ushort", "float", "double"}, false,
    "atomic_cmpxchg", "atom_cmpxchg"
};

static const DeviceDialect cuda = {
    DIALECT_TYPES,
    "extern \"C\" __global__ ", "__launch_bounds__", "static __device__ ", "", "__shared__ ", "",
    false,
    "(jot_i64)blockIdx.x * blockDim.x + threadIdx.x", "(jot_i64)gridDim.x * blockDim.x",
    "blockIdx.x", "gridDim.x", "(int)threadIdx.x", "__syncthreads()", "__align__(16) ",
    "extern __shared__ __align__(1024) jot_u8", 48 << 10, "__align__",
    {NULL}, true, "atomicCAS", "atomicCAS"
};

static const Dialect dialects[] = {
    { "c", false, false, "restrict", "", "jot_fma%f", "LL", NULL },
    { "c_any", false, true, "restrict", "", "jot_fma%f", "LL", NULL },
    { "gnu", true, false, "restrict", "", "__builtin_fma%f", "LL", NULL },
    { "opencl", false, false, "restrict", "", "fma", "L", &opencl },
    { "cuda", false, false, "__restrict__", "", "fma%f", "LL", &cuda },
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
    "#ifdef __clang__\n#pragma STDC FP_CONTRACT OFF\n#endif\n"
    "#if defined __GNUC__ && !defined __TINYC__\n"
    "#define JOT_AHEAD(p) __builtin_prefetch(p)\n"
    "#define JOT_ALIGNED __attribute__((aligned(64)))\n"
    "#else\n#define JOT_AHEAD(p) (void)0\n#define JOT_ALIGNED\n#endif\n"
    "#ifdef __GNUC__\n"
    "#define JOT_INLINE static inline __attribute__((unused))\n"
    "#define JOT_VECTOR static inline __attribute__((unused, always_inline))\n"
    "#else\n#define JOT_INLINE static inline\n#endif\n"
    DIALECT_TYPES
    "typedef union { jot_i64 i; jot_u64 u; double f; } jot_Scalar;\n";

typedef struct { const char *name, *text; } Helper;
/* Sums of products of integers in words: they wrap around. */
#define DIALECT_DOT(name, parts, type_a, type_b, bits) \
    "jot_i32\njot_dot_" name "(jot_u32 a, jot_u32 b, jot_i32 c)\n{\n" \
    "    for (int i = 0; i < " parts "; i++, a >>= " bits ", b >>= " bits ")\n" \
    "        c = (jot_i32)((jot_u32)c + (jot_u32)((" type_a ")a * (" type_b ")b));\n" \
    "    return c;\n}\n"
/* A step of the matrix unit of x86: 32 x 32 sums of rows of 64 bytes, which are so many elements
 * of the operands' type; without it `term` is the product of element k of row i and of column j. */
#define DIALECT_TILES_SUMS(op, at, end) \
    "__asm__ volatile (\"" op at(0, "") "\\n\\t" op at(1, "64") "\\n\\t" op at(2, "2048") \
    "\\n\\t" op at(3, "2112") "\" : : \"r\" (c), \"r\" (wide) : \"memory\");\n" end
#define DIALECT_TILES_IN(tile, from) from "(%0,%1,1), %%tmm" #tile
#define DIALECT_TILES_OUT(tile, to) "%%tmm" #tile ", " to "(%0,%1,1)"
#define DIALECT_TILES_ZERO(tile, from) "%%tmm" #tile
#define DIALECT_TILES(name, flag, unit, sum, of, each, terms, term) \
    { "jot_tiles_" name, \
      "void\njot_tiles_" name "(" sum " *c, const void *rows, const void *columns,\n" \
      "    jot_i64 steps, jot_i64 first)\n{\n    const " of " *a = rows, *b = columns;\n#ifdef " \
      flag "\n    const jot_i64 low = 64, wide = 128;\n    if (first)\n        " \
      DIALECT_TILES_SUMS("tilezero ", DIALECT_TILES_ZERO, "    else\n        ") \
      DIALECT_TILES_SUMS("tileloadd ", DIALECT_TILES_IN, "") \
      "    for (jot_i64 i = 0; i < steps; i++, a += " each ", b += " each ")\n" \
      "        __asm__ volatile (\"tileloadd (%1,%3,1), %%tmm6\\n\\t\"\n" \
      "            \"tileloadd 64(%1,%3,1), %%tmm7\\n\\ttileloaddt1 (%0,%2,1), %%tmm4\\n\\t\"\n" \
      "            \"" unit " %%tmm6, %%tmm4, %%tmm0\\n\\t" unit \
      " %%tmm7, %%tmm4, %%tmm1\\n\\ttileloaddt1 1024(%0,%2,1), %%tmm5\\n\\t\"\n" \
      "            \"" unit " %%tmm6, %%tmm5, %%tmm2\\n\\t\"\n" \
      "            \"" unit " %%tmm7, %%tmm5, %%tmm3\"\n" \
      "            : : \"r\" (a), \"r\" (b), \"r\" (low), \"r\" (wide) : \"memory\");\n    " \
      DIALECT_TILES_SUMS("tilestored ", DIALECT_TILES_OUT, "#else\n") \
      "    for (int i = 0; i < 32; i++)\n        for (int j = 0; j < 32; j++) {\n" \
      "            " sum " sum = first ? 0 : c[i * 32 + j];\n" \
      "            for (jot_i64 k = 0; k < " terms " * steps; k++)\n                " term ";\n" \
      "            c[i * 32 + j] = sum;\n        }\n#endif\n}\n" }
#define DIALECT_TILES_BYTES(name, unit, dot) \
    DIALECT_TILES(name, "__AMX_INT8__", unit, "jot_i32", "jot_u32", "512", "16", \
                  "sum = jot_dot_" dot ", sum)")
#define TILES_A "a[k / 16 * 512 + i * 16 + k % 16]"
#define TILES_B "b[k * 32 + j]"
static const Helper helpers[] = {
    /* no value stays in one of 16 vector registers from here on */
    { "jot_crowd",
      "void\njot_crowd(void)\n{\n"
      "#if defined __x86_64__ && !defined __AVX512F__ && !defined __TINYC__\n"
      "    __asm__ volatile(\"\" ::: \"xmm0\", \"xmm1\", \"xmm2\", \"xmm3\", \"xmm4\",\n"
      "        \"xmm5\", \"xmm6\", \"xmm7\", \"xmm8\", \"xmm9\", \"xmm10\", \"xmm11\",\n"
      "        \"xmm12\", \"xmm13\", \"xmm14\", \"xmm15\");\n#endif\n}\n" },
    { "jot_clamp",
      "jot_i64\njot_clamp(jot_i64 i, jot_i64 n)\n{\n"
      "    return i < 0 ? 0 : i < n ? i : n - 1;\n}\n" },
    { "jot_clamp_i32",
      "jot_i32\njot_clamp_i32(jot_i32 i, jot_i32 n)\n{\n"
      "    return i < 0 ? 0 : i < n ? i : n - 1;\n}\n" },
    /* IX_FAR, IX_PRODUCT (ops/index/index.h): no index goes further */
    { "jot_far",
      "jot_i64\njot_far(jot_i64 i)\n{\n    const jot_i64 far = (jot_i64)1 << 40;\n"
      "    return i > far ? far : i < -far ? -far : i;\n}\n" },
    { "jot_far_u",
      "jot_i64\njot_far_u(jot_u64 i)\n{\n    const jot_u64 far = (jot_u64)1 << 40;\n"
      "    return (jot_i64)(i > far ? far : i);\n}\n" },
    { "jot_product",
      "jot_i64\njot_product(jot_i64 a, jot_i64 b)\n{\n"
      "    const jot_i64 far = (jot_i64)1 << 56;\n"
      "    const float about = (float)a * (float)b;\n"
      "    const jot_i64 p = about > -1e18f && about < 1e18f ? a * b : about < 0.0f ? -far : far;\n"
      "    return p > far ? far : p < -far ? -far : p;\n}\n" },
    { "jot_fmaf",
      "float\njot_fmaf(float a, float b, float c)\n{\n    return a * b + c;\n}\n" },
    { "jot_fma",
      "double\njot_fma(double a, double b, double c)\n{\n    return a * b + c;\n}\n" },
    { "jot_dot_bf16", /* products of these are exact in f32 */
      "float\njot_dot_bf16(jot_u32 a, jot_u32 b, float c)\n{\n"
      "    c += jotm_bf16_to_f32((jot_u16)a) * jotm_bf16_to_f32((jot_u16)b);\n"
      "    return c + jotm_bf16_to_f32((jot_u16)(a >> 16))\n"
      "               * jotm_bf16_to_f32((jot_u16)(b >> 16));\n}\n" },
    { "jot_dot_i16", DIALECT_DOT("i16", "2", "jot_i16", "jot_i16", "16") },
    { "jot_dot_i8", DIALECT_DOT("i8", "4", "jot_i8", "jot_i8", "8") },
    { "jot_dot_u8", DIALECT_DOT("u8", "4", "jot_u8", "jot_u8", "8") },
    { "jot_dot_u8i8", DIALECT_DOT("u8i8", "4", "jot_u8", "jot_i8", "8") },
    { "jot_dot_u7i8", DIALECT_DOT("u7i8", "4", "jot_u8", "jot_i8", "8") },
    /* The matrix unit of x86 (AMX): eight tiles of 16 rows of 64 bytes, of which four hold sums. */
    { "jot_tiles_open",
      "void\njot_tiles_open(void)\n{\n#ifdef __AMX_TILE__\n"
      "    static const unsigned char shape[64] = {1, [16] = 64, [18] = 64, [20] = 64, [22] = 64,\n"
      "        [24] = 64, [26] = 64, [28] = 64, [30] = 64, [48] = 16, [49] = 16, [50] = 16,\n"
      "        [51] = 16, [52] = 16, [53] = 16, [54] = 16, [55] = 16};\n"
      "    __asm__ volatile (\"ldtilecfg %0\" : : \"m\" (shape));\n#endif\n}\n" },
    { "jot_tiles_close",
      "void\njot_tiles_close(void)\n{\n#ifdef __AMX_TILE__\n"
      "    __asm__ volatile (\"tilerelease\");\n#endif\n}\n" },
    DIALECT_TILES("bf16", "__AMX_BF16__", "tdpbf16ps", "float", "jot_u16", "1024", "32",
                  "sum += jotm_bf16_to_f32(a[k / 32 * 1024 + i * 32 + k % 32])\n"
                  "                       * jotm_bf16_to_f32(b[k / 2 * 64 + 2 * j + k % 2])"),
    DIALECT_TILES_BYTES("u8i8", "tdpbusd", "u8i8(" TILES_A ", " TILES_B),
    DIALECT_TILES_BYTES("i8u8", "tdpbsud", "u8i8(" TILES_B ", " TILES_A),
    DIALECT_TILES_BYTES("i8", "tdpbssd", "i8(" TILES_A ", " TILES_B),
    DIALECT_TILES_BYTES("u8", "tdpbuud", "u8(" TILES_A ", " TILES_B),
};

static const char *
dialect_helper(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof helpers / sizeof helpers[0]; i++)
        if (jot_str_len(helpers[i].name) == n && memcmp(helpers[i].name, name, n) == 0)
            return helpers[i].text;
    return NULL;
}

/* What a target knows in one instruction (`of` a device, or C's, where gcc and clang are meant)
 * where `where` holds, NULL: always. The result is the body's, of mad the one that has one
 * rounding. Rows of one function stand together, the first that holds wins. For a root that may
 * set errno a compiler calls the library, which an exported file has not. */
typedef struct { const DeviceDialect *of; const char *name, *where, *call; } Builtin;
#define BUILTINS_ROUND "defined __SSE4_1__ || defined __aarch64__"
#define BUILTINS_ROOT "defined __NO_MATH_ERRNO__ && (defined __SSE2__ || defined __aarch64__)"
#define BUILTINS_ASM(text, reg) "__asm__(\"" text "\" : \"+" reg "\"(x));\n    return x"
#define BUILTINS_HALF "typedef short halves __attribute__((vector_size(16)));\n" \
                      "    typedef float floats __attribute__((vector_size(16)));\n" \
                      "    return ((floats)__builtin_ia32_vcvtph2ps((halves){(short)h}))[0]"
#define BUILTINS_SINGLE "defined __ARM_FP && !(__ARM_FP & 8)"
#define BUILTINS_WHOLE "return jotm_rempi2wholef(x, q, lo)"
static const Builtin builtins[] = {
    { NULL, "jotm_madf", "defined __FP_FAST_FMAF", "return __builtin_fmaf(x, y, z)" },
    { NULL, "jotm_mad", "defined __FP_FAST_FMA", "return __builtin_fma(x, y, z)" },
    { NULL, "jotm_mulerrf", "defined __FP_FAST_FMAF", "return __builtin_fmaf(a, b, -p)" },
    { NULL, "jotm_mulerr", "defined __FP_FAST_FMA", "return __builtin_fma(a, b, -p)" },
    { NULL, "jotm_fused", "defined __FP_FAST_FMAF", "return x | 1" },
    { NULL, "jotm_sqrtf", BUILTINS_ROOT, "return __builtin_sqrtf(x)" },
    { NULL, "jotm_sqrtf", "defined __AVX__", BUILTINS_ASM("vsqrtss %0, %0, %0", "x") },
    { NULL, "jotm_sqrtf", "defined __SSE2__", BUILTINS_ASM("sqrtss %0, %0", "x") },
    { NULL, "jotm_sqrtf", "defined __aarch64__", BUILTINS_ASM("fsqrt %s0, %s0", "w") },
    { NULL, "jotm_sqrt", BUILTINS_ROOT, "return __builtin_sqrt(x)" },
    { NULL, "jotm_sqrt", "defined __AVX__", BUILTINS_ASM("vsqrtsd %0, %0, %0", "x") },
    { NULL, "jotm_sqrt", "defined __SSE2__", BUILTINS_ASM("sqrtsd %0, %0", "x") },
    { NULL, "jotm_sqrt", "defined __aarch64__", BUILTINS_ASM("fsqrt %d0, %d0", "w") },
    { NULL, "jotm_f16_to_f32", "defined __F16C__ && !defined __clang__", BUILTINS_HALF },
    { NULL, "jotm_rintf", BUILTINS_ROUND, "return __builtin_rintf(x)" },
    { NULL, "jotm_rint", BUILTINS_ROUND, "return __builtin_rint(x)" },
    { NULL, "jotm_floorf", BUILTINS_ROUND, "return __builtin_floorf(x)" },
    { NULL, "jotm_floor", BUILTINS_ROUND, "return __builtin_floor(x)" },
    { NULL, "jotm_ceilf", BUILTINS_ROUND, "return __builtin_ceilf(x)" },
    { NULL, "jotm_ceil", BUILTINS_ROUND, "return __builtin_ceil(x)" },
    { NULL, "jotm_truncf", BUILTINS_ROUND, "return __builtin_truncf(x)" },
    { NULL, "jotm_trunc", BUILTINS_ROUND, "return __builtin_trunc(x)" },
    { NULL, "jotm_rempi2f", BUILTINS_SINGLE, BUILTINS_WHOLE },
    { &cuda, "jotm_madf", NULL, "return __fmaf_rn(x, y, z)" },
    { &cuda, "jotm_mad", NULL, "return __fma_rn(x, y, z)" },
    { &cuda, "jotm_mulerrf", NULL, "return __fmaf_rn(a, b, -p)" },
    { &cuda, "jotm_mulerr", NULL, "return __fma_rn(a, b, -p)" },
    { &cuda, "jotm_fused", NULL, "return x | 1" },
    { &cuda, "jotm_sqrtf", NULL, "return __fsqrt_rn(x)" },
    { &cuda, "jotm_sqrt", NULL, "return __dsqrt_rn(x)" },
    { &cuda, "jotm_rintf", NULL, "return rintf(x)" },
    { &cuda, "jotm_rint", NULL, "return rint(x)" },
    { &cuda, "jotm_floorf", NULL, "return floorf(x)" },
    { &cuda, "jotm_floor", NULL, "return floor(x)" },
    { &cuda, "jotm_ceilf", NULL, "return ceilf(x)" },
    { &cuda, "jotm_ceil", NULL, "return ceil(x)" },
    { &cuda, "jotm_truncf", NULL, "return truncf(x)" },
    { &cuda, "jotm_trunc", NULL, "return trunc(x)" },
    { &cuda, "jotm_rempi2f", NULL, BUILTINS_WHOLE },
    { &opencl, "jotm_madf", "defined FP_FAST_FMAF", "return fma(x, y, z)" },
    { &opencl, "jotm_mad", "defined FP_FAST_FMA", "return fma(x, y, z)" },
    { &opencl, "jotm_mulerrf", "defined FP_FAST_FMAF", "return fma(a, b, -p)" },
    { &opencl, "jotm_mulerr", "defined FP_FAST_FMA", "return fma(a, b, -p)" },
    { &opencl, "jotm_fused", "defined FP_FAST_FMAF", "return x | 1" },
    { &opencl, "jotm_rintf", NULL, "return rint(x)" },
    { &opencl, "jotm_rint", NULL, "return rint(x)" },
    { &opencl, "jotm_floorf", NULL, "return floor(x)" },
    { &opencl, "jotm_floor", NULL, "return floor(x)" },
    { &opencl, "jotm_ceilf", NULL, "return ceil(x)" },
    { &opencl, "jotm_ceil", NULL, "return ceil(x)" },
    { &opencl, "jotm_truncf", NULL, "return trunc(x)" },
    { &opencl, "jotm_trunc", NULL, "return trunc(x)" },
    { &opencl, "jotm_rempi2f", NULL, BUILTINS_WHOLE },
};

/* The next row of a function from the i-th on; NULL: there is none. */
static const Builtin *
next_builtin(const DeviceDialect *of, const char *name, size_t i)
{
    for (; i < sizeof builtins / sizeof builtins[0]; i++)
        if (builtins[i].of == of && jot_str_eq(builtins[i].name, name))
            return &builtins[i];
    return NULL;
}

/* A function's body behind the branches that a target has for it */
static void
put_body(Text *out, const DeviceDialect *of, const PreludeFn *fn)
{
    const Builtin *b = next_builtin(of, fn->name, 0);
    const char *branch = "if";
    if (b && !b->where) {
        jot_text_f(out, "{\n    %s;\n}\n", b->call);
        return;
    }
    for (; b; b = next_builtin(of, fn->name, (size_t)(b - builtins) + 1), branch = "elif")
        jot_text_f(out, "#%s %s(%s)\n{\n    %s;\n}\n", branch, of ? "" : "defined __GNUC__ && ",
                   b->where, b->call);
    branch = branch[0] == 'e' ? "#endif\n" : "";
    jot_text_f(out, "%s%s\n%s", branch[0] ? "#else\n" : "", fn->body, branch);
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
    Needed *done;  /* NEEDED of them */
    int ndone;
} Prelude;

static void need_text(Prelude *p, const char *text, size_t n, int depth);

/* A text that is made for its name: of a vector, or of the prelude on one; on a device, a function
 * over the items of a work-group or on shared memory. Behind what it names. */
static bool
need_made(Prelude *p, const char *name, size_t n, int depth)
{
    Text text = {0};
    bool found;
    text.mem = p->out->mem;
    found = p->d->device ? jot_device_helper(p->d->device, name, n, &text)
        : jot_vector_text(name, n, &text) || jot_prelude_vector(name, n, &text);
    if (found && text.s) {
        need_text(p, text.s, text.n, depth + 1);
        jot_text_put(p->out, text.s, text.n);
    }
    jot_text_free(&text);
    return found;
}

static void
need(Prelude *p, const char *name, size_t n, int depth)
{
    const DeviceDialect *of = p->d->device;
    const PreludeFn *fn;
    const Builtin *b;
    const char *text;
    for (int i = 0; i < p->ndone; i++)
        if (p->done[i].n == n && memcmp(p->done[i].name, name, n) == 0)
            return;
    if (p->ndone >= NEEDED || depth > 40 || n > sizeof p->done->name)
        return;
    fn = jot_prelude_find(name, n);
    text = dialect_helper(name, n);
    memcpy(p->done[p->ndone].name, name, n);
    p->done[p->ndone++].n = n; /* before what it needs itself */
    if (fn) {
        b = next_builtin(of, fn->name, 0);
        if (!b || b->where) {
            need_text(p, fn->uses, jot_str_len(fn->uses), depth + 1);
            need_text(p, fn->body, jot_str_len(fn->body), depth + 1);
        }
        for (; b; b = next_builtin(of, fn->name, (size_t)(b - builtins) + 1))
            need_text(p, b->call, jot_str_len(b->call), depth + 1);
        jot_text_f(p->out, "%s%s\n%s%s\n",
                   p->d->device ? p->d->device->function : "JOT_INLINE ", fn->ret, fn->name,
                   fn->params);
        put_body(p->out, of, fn);
    } else if (text) {
        need_text(p, text, jot_str_len(text), depth + 1);
        jot_text_f(p->out, "%s%s", p->d->device ? p->d->device->function : "static ", text);
    } else if (!need_made(p, name, n, depth)) {
        p->ndone--; /* a word of the text's own */
    }
}

static void
need_text(Prelude *p, const char *text, size_t n, int depth)
{
    for (size_t i = 0; i + 4 < n; i++) {
        size_t end = i;
        if (text[i] != 'j' || memcmp(text + i, "jot", 3) || (i > 0 && jot_char_word(text[i - 1])))
            continue;
        while (end < n && jot_char_word(text[end]))
            end++;
        if (end - i > 4)
            need(p, text + i, end - i, depth);
        i = end - 1;
    }
}

/* Dot products, where the compiler is told of an instruction; of several the first. It adds to c,
 * or gives the products of each lane, or puts these where a was; PAIRS: it gives shorts that are
 * added in pairs; HALVES: so of half a byte each, of four bits, for more would not fit a short. */
typedef enum { DOT_ADDS, DOT_GIVES, DOT_PUTS, DOT_PAIRS, DOT_HALVES } DotForm;
typedef struct { int row; const char *vector, *target, *op; DotForm form; } DotName;
#define DOT_X86 " {%2, %1, %0|%0, %1, %2}"
#define DOT_ARM64 " && defined __aarch64__"
static const DotName dot_names[] = {
    { DOT_BF16, "f32x16", "__AVX512BF16__", "vdpbf16ps" DOT_X86, DOT_ADDS },
    { DOT_BF16, "f32x4", "__ARM_FEATURE_BF16_VECTOR_ARITHMETIC" DOT_ARM64,
      "bfdot %0.4s, %1.8h, %2.8h", DOT_ADDS },
    { DOT_U8I8, "i32x16", "__AVX512VNNI__", "vpdpbusd" DOT_X86, DOT_ADDS },
    { DOT_U8I8, "i32x16", "__AVX512BW__", "vpmaddubsw" DOT_X86, DOT_HALVES },
    { DOT_U8I8, "i32x8", "__AVXVNNI__", "%{vex%} vpdpbusd" DOT_X86, DOT_ADDS },
    { DOT_U8I8, "i32x8", "__AVX2__", "vpmaddubsw" DOT_X86, DOT_HALVES },
    { DOT_I8, "i32x4", "__ARM_FEATURE_DOTPROD" DOT_ARM64, "sdot %0.4s, %1.16b, %2.16b", DOT_ADDS },
    { DOT_U8, "i32x4", "__ARM_FEATURE_DOTPROD" DOT_ARM64, "udot %0.4s, %1.16b, %2.16b", DOT_ADDS },
    { DOT_I16, "i32x16", "__AVX512VNNI__", "vpdpwssd" DOT_X86, DOT_ADDS },
    { DOT_I16, "i32x16", "__AVX512BW__", "vpmaddwd" DOT_X86, DOT_GIVES },
    { DOT_I16, "i32x8", "__AVXVNNI__", "%{vex%} vpdpwssd" DOT_X86, DOT_ADDS },
    { DOT_I16, "i32x8", "__AVX2__", "vpmaddwd" DOT_X86, DOT_GIVES },
    { DOT_I16, "i32x4", "__AVX__", "vpmaddwd" DOT_X86, DOT_GIVES },
    { DOT_I16, "i32x4", "__SSE2__", "pmaddwd {%1, %0|%0, %1}", DOT_PUTS },
    { DOT_U7I8, "i32x16", "__AVX512VNNI__", "vpdpbusd" DOT_X86, DOT_ADDS },
    { DOT_U7I8, "i32x16", "__AVX512BW__", "vpmaddubsw" DOT_X86, DOT_PAIRS },
    { DOT_U7I8, "i32x8", "__AVX2__", "vpmaddubsw" DOT_X86, DOT_PAIRS },
};
#undef DOT_X86
#undef DOT_ARM64

/* Shorts of a's bytes (of which: "a", or half of each), summed in pairs. */
static void
dot_pairs(Text *out, const DotName *d, const char *of, const char *to, const char *times)
{
    jot_text_f(out, "    __asm__(\"%s\" : \"=v\"(%s) : \"v\"(%s), \"v\"(b));\n"
               "    __asm__(\"vpmaddwd {%%2, %%1, %%0|%%0, %%1, %%2}\" : \"=v\"(%s) : "
               "\"v\"(%s), \"v\"(one%s));\n", d->op, to, of, to, to, times);
}

static void
dot_halves(Text *out, const DotName *d)
{
    const char *to = d->vector, *u = d->vector + 1;
    bool whole = d->form == DOT_PAIRS;
    jot_text_f(out, "    const jot_u%s one = (jot_u%s){0} + 0x00010001u;\n    jot_u%s p%s;\n",
               u, u, u, whole ? "" : ", q");
    if (!whole)
        jot_text_f(out, "    const jot_u%s low = a & 0x0f0f0f0fu, high = a >> 4 & 0x0f0f0f0fu;\n",
                   u);
    dot_pairs(out, d, whole ? "a" : "low", "p", "");
    if (!whole)
        dot_pairs(out, d, "high", "q", " << 4");
    jot_text_f(out, "    return (jot_%s)((jot_u%s)c + p%s);\n", to, u, whole ? "" : " + q");
}

JOT_FN void
jot_dot_text(Text *out, const char *vector, size_t n, int row)
{
    jot_text_f(out, "#if 0\n");
    for (size_t i = 0; i < sizeof dot_names / sizeof dot_names[0]; i++) {
        const DotName *d = &dot_names[i];
        char in = d->op[0] == 'v' ? 'v' : d->op[0] == 'p' || d->op[0] == '%' ? 'x'
                : 'w'; /* a register of vectors */
        if (d->row != row || jot_str_len(d->vector) != n || memcmp(d->vector, vector, n))
            continue;
        jot_text_f(out, "#elif defined %s\n", d->target);
        if (d->form == DOT_PUTS)
            jot_text_f(out, "    __asm__(\"%s\" : \"+%c\"(a) : \"%c\"(b));\n"
                       "    return (jot_%s)((jot_u%s)c + a);\n", d->op, in, in, d->vector,
                       d->vector + 1);
        else if (d->form == DOT_GIVES)
            jot_text_f(out, "    jot_u%s p;\n"
                       "    __asm__(\"%s\" : \"=%c\"(p) : \"%c\"(a), \"%c\"(b));\n"
                       "    return (jot_%s)((jot_u%s)c + p);\n",
                       d->vector + 1, d->op, in, in, in, d->vector, d->vector + 1);
        else if (d->form == DOT_PAIRS || d->form == DOT_HALVES)
            dot_halves(out, d);
        else
            jot_text_f(out, "    __asm__(\"%s\" : \"+%c\"(c) : \"%c\"(a), \"%c\"(b));\n"
                       "    return c;\n", d->op, in, in, in);
    }
    jot_text_f(out, "#else\n");
}

JOT_FN uint64_t
jot_emit_prelude_hash(void)
{
    int n;
    const PreludeFn *fn = jot_prelude_table(&n);
    uint64_t hash = jot_hash(0, typedefs, sizeof typedefs);
    for (int i = 0; i < n; i++)
        hash = jot_hash(hash, fn[i].body, jot_str_len(fn[i].body));
    for (size_t i = 0; i < sizeof helpers / sizeof helpers[0]; i++)
        hash = jot_hash(hash, helpers[i].text, jot_str_len(helpers[i].text));
    for (size_t i = 0; i < sizeof builtins / sizeof builtins[0]; i++)
        hash = jot_hash(hash, builtins[i].call, jot_str_len(builtins[i].call));
    for (size_t i = 0; i < sizeof dot_names / sizeof dot_names[0]; i++)
        hash = jot_hash(hash, dot_names[i].op, jot_str_len(dot_names[i].op));
    return jot_prelude_vector_hash(jot_vector_hash(jot_part_hash(hash)));
}

JOT_FN bool
jot_emit_prelude(const Dialect *d, const char *kernels, size_t n, Text *out)
{
    Prelude p = {d, out, jot_mem_new(out->mem, NEEDED, sizeof *p.done), 0};
    jot_text_f(out, "%s", d->device ? d->device->typedefs : typedefs);
    if (p.done)
        need_text(&p, kernels, n, 0);
    jot_mem_free(out->mem, p.done, NEEDED * sizeof *p.done);
    return !out->mem->failed;
}
#undef DIALECT_TYPES
