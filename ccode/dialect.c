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
    "__kernel ", "static ", "__global ", "__local ", "__local ", true,
    "get_global_id(0)", "get_global_size(0)", "get_group_id(0)", "get_num_groups(0)",
    "get_local_id(0)", "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)",
    "__attribute__((aligned(16))) ", NULL,
    {"uchar", "char", "short", "int", "long", "uchar", "ushort", "uint", "ulong", "ushort", "ushort",
     "float", "double"}, false,
    "atomic_cmpxchg", "atom_cmpxchg"
};

static const DeviceDialect cuda = {
    DIALECT_TYPES,
    "extern \"C\" __global__ ", "static __device__ ", "", "__shared__ ", "", false,
    "(jot_i64)blockIdx.x * blockDim.x + threadIdx.x", "(jot_i64)gridDim.x * blockDim.x",
    "blockIdx.x", "gridDim.x", "(int)threadIdx.x", "__syncthreads()", "__align__(16) ", "__align__",
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
    "#ifdef __clang__\n"
    "#pragma STDC FP_CONTRACT OFF\n"
    "#define JOT_APART\n"
    "#elif defined __GNUC__\n"
    "#define JOT_APART _Pragma(\"GCC ivdep\")\n"
    "#else\n"
    "#define JOT_APART\n"
    "#endif\n"
    "#if defined __GNUC__ && !defined __TINYC__\n"
    "#define JOT_AHEAD(p) __builtin_prefetch(p)\n"
    "#define JOT_ALIGNED __attribute__((aligned(64)))\n"
    "#else\n"
    "#define JOT_AHEAD(p) (void)0\n"
    "#define JOT_ALIGNED\n"
    "#endif\n"
    "#ifdef __GNUC__\n"
    "#define JOT_INLINE static inline __attribute__((unused))\n"
    "#else\n"
    "#define JOT_INLINE static inline\n"
    "#endif\n"
    DIALECT_TYPES
    "typedef union { jot_i64 i; jot_u64 u; double f; } jot_Scalar;\n";

typedef struct { const char *name, *text; } Helper;
static const Helper helpers[] = {
    { "jot_clamp",
      "jot_i64\njot_clamp(jot_i64 i, jot_i64 n)\n{\n"
      "    return i < 0 ? 0 : i < n ? i : n - 1;\n}\n" },
    { "jot_fmaf",
      "float\njot_fmaf(float a, float b, float c)\n{\n    return a * b + c;\n}\n" },
    { "jot_fma",
      "double\njot_fma(double a, double b, double c)\n{\n    return a * b + c;\n}\n" },
    /* The matrix unit of x86 (AMX): eight tiles of 16 rows of 64 bytes, of which four hold sums. */
    { "jot_tiles_open",
      "void\njot_tiles_open(void)\n{\n#ifdef __AMX_BF16__\n"
      "    static const unsigned char shape[64] = {1, [16] = 64, [18] = 64, [20] = 64, [22] = 64,\n"
      "        [24] = 64, [26] = 64, [28] = 64, [30] = 64, [48] = 16, [49] = 16, [50] = 16, [51] = 16,\n"
      "        [52] = 16, [53] = 16, [54] = 16, [55] = 16};\n"
      "    __asm__ volatile (\"ldtilecfg %0\" : : \"m\" (shape));\n#endif\n}\n" },
    { "jot_tiles_close",
      "void\njot_tiles_close(void)\n{\n#ifdef __AMX_BF16__\n"
      "    __asm__ volatile (\"tilerelease\");\n#endif\n}\n" },
    { "jot_tiles_bf16",
      "void\njot_tiles_bf16(float *c, const jot_u16 *a, const jot_u16 *b, jot_i64 steps,\n"
      "    jot_i64 first)\n{\n#ifdef __AMX_BF16__\n"
      "    const jot_i64 low = 64, wide = 128;\n"
      "    if (first)\n"
      "        __asm__ volatile (\"tilezero %%tmm0\\n\\ttilezero %%tmm1\\n\\t\"\n"
      "                          \"tilezero %%tmm2\\n\\ttilezero %%tmm3\" : : );\n"
      "    else\n"
      "        __asm__ volatile (\"tileloadd (%0,%1,1), %%tmm0\\n\\ttileloadd 64(%0,%1,1), %%tmm1\\n\\t\"\n"
      "                          \"tileloadd 2048(%0,%1,1), %%tmm2\\n\\ttileloadd 2112(%0,%1,1), %%tmm3\"\n"
      "                          : : \"r\" (c), \"r\" (wide) : \"memory\");\n"
      "    for (jot_i64 i = 0; i < steps; i++, a += 1024, b += 1024)\n"
      "        __asm__ volatile (\"tileloadd (%1,%3,1), %%tmm6\\n\\ttileloadd 64(%1,%3,1), %%tmm7\\n\\t\"\n"
      "                          \"tileloaddt1 (%0,%2,1), %%tmm4\\n\\t\"\n"
      "                          \"tdpbf16ps %%tmm6, %%tmm4, %%tmm0\\n\\t\"\n"
      "                          \"tdpbf16ps %%tmm7, %%tmm4, %%tmm1\\n\\t\"\n"
      "                          \"tileloaddt1 1024(%0,%2,1), %%tmm5\\n\\t\"\n"
      "                          \"tdpbf16ps %%tmm6, %%tmm5, %%tmm2\\n\\t\"\n"
      "                          \"tdpbf16ps %%tmm7, %%tmm5, %%tmm3\"\n"
      "                          : : \"r\" (a), \"r\" (b), \"r\" (low), \"r\" (wide) : \"memory\");\n"
      "    __asm__ volatile (\"tilestored %%tmm0, (%0,%1,1)\\n\\ttilestored %%tmm1, 64(%0,%1,1)\\n\\t\"\n"
      "                      \"tilestored %%tmm2, 2048(%0,%1,1)\\n\\ttilestored %%tmm3, 2112(%0,%1,1)\"\n"
      "                      : : \"r\" (c), \"r\" (wide) : \"memory\");\n"
      "#else\n"
      "    for (int i = 0; i < 32; i++)\n        for (int j = 0; j < 32; j++) {\n"
      "            float sum = first ? 0 : c[i * 32 + j];\n"
      "            for (jot_i64 k = 0; k < 32 * steps; k++)\n"
      "                sum += jotm_bf16_to_f32(a[k / 32 * 1024 + i * 32 + k % 32])\n"
      "                       * jotm_bf16_to_f32(b[k / 2 * 64 + 2 * j + k % 2]);\n"
      "            c[i * 32 + j] = sum;\n        }\n#endif\n}\n" },
};

JOT_FN const char *
jot_dialect_helper(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof helpers / sizeof helpers[0]; i++)
        if (jot_str_len(helpers[i].name) == n && memcmp(helpers[i].name, name, n) == 0)
            return helpers[i].text;
    return NULL;
}

/* What gcc and clang know in one instruction where `where` is defined: the result is the body's, of
 * mad the one that has one rounding. Rows of one function stand together, the first that holds
 * wins. For a root that may set errno a compiler calls the library, which an exported file has
 * not. */
typedef struct { const char *name, *where, *call; } Builtin;
#define BUILTINS_ROUND "defined __SSE4_1__ || defined __aarch64__"
#define BUILTINS_ROOT "defined __NO_MATH_ERRNO__ && (defined __SSE2__ || defined __aarch64__)"
#define BUILTINS_ASM(text, reg) "__asm__(\"" text "\" : \"+" reg "\"(x));\n    return x"
static const Builtin builtins[] = {
    { "jotm_madf", "defined __FP_FAST_FMAF", "return __builtin_fmaf(x, y, z)" },
    { "jotm_mad", "defined __FP_FAST_FMA", "return __builtin_fma(x, y, z)" },
    { "jotm_mulerrf", "defined __FP_FAST_FMAF", "return __builtin_fmaf(a, b, -p)" },
    { "jotm_mulerr", "defined __FP_FAST_FMA", "return __builtin_fma(a, b, -p)" },
    { "jotm_fused", "defined __FP_FAST_FMAF", "return x | 1" },
    { "jotm_sqrtf", BUILTINS_ROOT, "return __builtin_sqrtf(x)" },
    { "jotm_sqrtf", "defined __AVX__", BUILTINS_ASM("vsqrtss %0, %0, %0", "x") },
    { "jotm_sqrtf", "defined __SSE2__", BUILTINS_ASM("sqrtss %0, %0", "x") },
    { "jotm_sqrtf", "defined __aarch64__", BUILTINS_ASM("fsqrt %s0, %s0", "w") },
    { "jotm_sqrt", BUILTINS_ROOT, "return __builtin_sqrt(x)" },
    { "jotm_sqrt", "defined __AVX__", BUILTINS_ASM("vsqrtsd %0, %0, %0", "x") },
    { "jotm_sqrt", "defined __SSE2__", BUILTINS_ASM("sqrtsd %0, %0", "x") },
    { "jotm_sqrt", "defined __aarch64__", BUILTINS_ASM("fsqrt %d0, %d0", "w") },
    { "jotm_rintf", BUILTINS_ROUND, "return __builtin_rintf(x)" },
    { "jotm_rint", BUILTINS_ROUND, "return __builtin_rint(x)" },
    { "jotm_floorf", BUILTINS_ROUND, "return __builtin_floorf(x)" },
    { "jotm_floor", BUILTINS_ROUND, "return __builtin_floor(x)" },
    { "jotm_ceilf", BUILTINS_ROUND, "return __builtin_ceilf(x)" },
    { "jotm_ceil", BUILTINS_ROUND, "return __builtin_ceil(x)" },
    { "jotm_truncf", BUILTINS_ROUND, "return __builtin_truncf(x)" },
    { "jotm_trunc", BUILTINS_ROUND, "return __builtin_trunc(x)" },
};

/* The branches before a function's body; are there any? */
static bool
put_builtins(Text *out, const char *name)
{
    bool any = false;
    for (size_t i = 0; i < sizeof builtins / sizeof builtins[0]; i++)
        if (jot_str_eq(builtins[i].name, name)) {
            jot_text_f(out, "#%s defined __GNUC__ && (%s)\n{\n    %s;\n}\n", any ? "elif" : "if",
                       builtins[i].where, builtins[i].call);
            any = true;
        }
    jot_text_f(out, any ? "#else\n" : "");
    return any;
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

/* ---- vectors ---- */

/* jot_f32x8: lanes of a type.. */
typedef struct { const char *name; size_t n, x; int lanes, bits; } VectorName;

static bool
read_vector(const char *name, size_t n, VectorName *v)
{
    size_t x = n;
    v->name = name, v->n = n;
    v->lanes = v->bits = 0;
    while (x > 0 && name[x - 1] != 'x')
        x--;
    if (x < 3 || x >= n || (name[0] != 'f' && name[0] != 'i' && name[0] != 'u'))
        return false;
    for (size_t i = x; i < n; i++) {
        if (name[i] < '0' || name[i] > '9')
            return false;
        v->lanes = v->lanes * 10 + (name[i] - '0');
    }
    for (size_t i = 1; i + 1 < x; i++) {
        if (name[i] < '0' || name[i] > '9')
            return false;
        v->bits = v->bits * 10 + (name[i] - '0');
    }
    v->x = x;
    return v->bits % 8 == 0 && v->bits > 0 && v->lanes > 0;
}

/* What goes with a vector type: %V is the type's name, %B the bytes of a lane, %L the lanes, %T the
 * type of a lane, %1 of them separated by commas, %I the integers of the same width, %N 0, 1, ...,
 * %P, %Q, %E: a part of it is loaded or stored, otherwise; %S, %R: see below. */
static const Helper vector_helpers[] = {
    { "ld_", "static inline jot_%V\njot_ld_%V(const void *p)\n{\n    jot_%V v;\n"
             "    __builtin_memcpy(&v, p, sizeof v);\n    return v;\n}\n" },
    { "st_", "static inline void\njot_st_%V(void *p, jot_%V v)\n{\n"
             "    __builtin_memcpy(p, &v, sizeof v);\n}\n" },
    { "ldn_", "static inline jot_%V\njot_ldn_%V(const void *p, int n)\n{\n%P"
              "    jot_%V v = {0};\n"
              "    __builtin_memcpy(&v, p, (unsigned)n * %Bu);\n    return v;\n%E}\n" },
    { "stn_", "static inline void\njot_stn_%V(void *p, jot_%V v, int n)\n{\n%Q"
              "    __builtin_memcpy(p, &v, (unsigned)n * %Bu);\n%E}\n" },
    { "bc_", "static inline jot_%V\njot_bc_%V(%T x)\n{\n    return (jot_%V){%1};\n}\n" },
    { "sel_", "static inline jot_%V\njot_sel_%V(jot_%I m, jot_%V a, jot_%V b)\n{\n"
              "    return (jot_%V)((m & (jot_%I)a) | (~m & (jot_%I)b));\n}\n" },
    { "mask_", "static inline jot_%I\njot_mask_%V(jot_u8x%L m)\n{\n"
               "    return __builtin_convertvector(m, jot_%I) != 0;\n}\n" },
    { "mix_", "static inline jot_%V\njot_mix_%V(jot_%V v, jot_%I m)\n{\n#ifdef __clang__\n"
              "    jot_%V r = v;\n    for (unsigned l = 0; l < sizeof m / sizeof m[0]; l++)\n"
              "        r[l] = v[m[l]];\n    return r;\n"
              "#else\n    return __builtin_shuffle(v, m);\n#endif\n}\n" },
    { "mix2_", "static inline jot_%V\njot_mix2_%V(jot_%V v, jot_%V w, jot_%I m)\n{\n#ifdef __clang__\n"
               "    jot_%V r = v;\n    for (unsigned l = 0; l < %Lu; l++)\n"
               "        r[l] = m[l] < %L ? v[m[l]] : w[m[l] - %L];\n    return r;\n"
               "#else\n    return __builtin_shuffle(v, w, m);\n#endif\n}\n" },
    { "part_", "static inline jot_%V\njot_part_%V(jot_%V v, int n)\n{\n"
               "    return (jot_%V)((jot_%I)v & ((jot_%I){%N} < n));\n}\n" },
    /* Halves are computed in floats: loaded and stored as these, rounded to the nearest. */
    { "ld_bf16_", "static inline jot_%V\njot_ld_bf16_%V(const void *p)\n{\n%S"
                  "    half h;\n    __builtin_memcpy(&h, p, sizeof h);\n"
                  "    return (jot_%V)(__builtin_convertvector(h, word) << 16);\n}\n" },
    { "ldn_bf16_", "static inline jot_%V\njot_ldn_bf16_%V(const void *p, int n)\n{\n%S"
                   "    half h = {0};\n    __builtin_memcpy(&h, p, (unsigned)n * 2u);\n"
                   "    return (jot_%V)(__builtin_convertvector(h, word) << 16);\n}\n" },
    { "st_bf16_", "static inline void\njot_st_bf16_%V(void *p, jot_%V v)\n{\n%S%R"
                  "    __builtin_memcpy(p, &h, sizeof h);\n}\n" },
    { "stn_bf16_", "static inline void\njot_stn_bf16_%V(void *p, jot_%V v, int n)\n{\n%S%R"
                   "    __builtin_memcpy(p, &h, (unsigned)n * 2u);\n}\n" },
    { "ld_f16_", "static inline jot_%V\njot_ld_f16_%V(const void *p)\n{\n%2"
                 "    half h;\n    __builtin_memcpy(&h, p, sizeof h);\n%H}\n" },
    { "ldn_f16_", "static inline jot_%V\njot_ldn_f16_%V(const void *p, int n)\n{\n%2"
                  "    half h = {0};\n    __builtin_memcpy(&h, p, (unsigned)n * 2u);\n%H}\n" },
    { "st_f16_", "static inline void\njot_st_f16_%V(void *p, jot_%V v)\n{\n%2%G"
                 "    __builtin_memcpy(p, &h, sizeof h);\n}\n" },
    { "stn_f16_", "static inline void\njot_stn_f16_%V(void *p, jot_%V v, int n)\n{\n%2%G"
                  "    __builtin_memcpy(p, &h, (unsigned)n * 2u);\n}\n" },
    { "fma_", "static inline jot_%V\njot_fma_%V(jot_%V a, jot_%V b, jot_%V c)\n{\n%F}\n" },
};

/* The instruction by the compiler's name for it: written as a * b + c it is two, and left to the
 * compiler to contract it depends on levels. clang contracts what it is told to. */
typedef struct { const char *vector, *target, *body; } FmaName;
static const FmaName fma_names[] = {
    { "f32x16", "__AVX512F__", "__builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4)" },
    { "f32x8", "__FMA__", "__builtin_ia32_vfmaddps256(a, b, c)" },
    { "f32x4", "__FMA__", "__builtin_ia32_vfmaddps(a, b, c)" },
    { "f64x8", "__AVX512F__", "__builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4)" },
    { "f64x4", "__FMA__", "__builtin_ia32_vfmaddpd256(a, b, c)" },
    { "f64x2", "__FMA__", "__builtin_ia32_vfmaddpd(a, b, c)" },
    { "f32x4", "__aarch64__", "__builtin_aarch64_fmav4sf(a, b, c)" },
    { "f64x2", "__aarch64__", "__builtin_aarch64_fmav2df(a, b, c)" },
};

static void
put_fma(Text *out, const VectorName *v)
{
    jot_text_f(out, "#ifdef __clang__\n#pragma clang fp contract(fast)\n    return a * b + c;\n");
    for (size_t i = 0; i < sizeof fma_names / sizeof fma_names[0]; i++)
        if (jot_str_len(fma_names[i].vector) == v->n && !memcmp(fma_names[i].vector, v->name, v->n))
            jot_text_f(out, "#elif defined %s\n    return (jot_%s)%s;\n", fma_names[i].target,
                       fma_names[i].vector, fma_names[i].body);
    jot_text_f(out, "#else\n    return a * b + c;\n#endif\n");
}

/* A part of a vector under a mask: through memory, its bytes and the zeros behind them are two
 * stores, for which a load of the whole has to wait. */
typedef struct { const char *vector, *target, *load, *store; } MaskName;
static const MaskName mask_names[] = {
    { "f32x16", "__AVX512F__",
      "    return (jot_f32x16)__builtin_ia32_loadups512_mask((const float *)p, (jot_f32x16){0},\n"
      "        (unsigned short)((1u << n) - 1));\n",
      "    __builtin_ia32_storeups512_mask((float *)p, v, (unsigned short)((1u << n) - 1));\n" },
    { "f32x8", "__AVX2__",
      "    typedef int mask __attribute__((vector_size(32)));\n"
      "    return (jot_f32x8)__builtin_ia32_maskloadps256((const jot_f32x8 *)p,\n"
      "        (mask){0, 1, 2, 3, 4, 5, 6, 7} < n);\n",
      "    typedef int mask __attribute__((vector_size(32)));\n"
      "    __builtin_ia32_maskstoreps256((jot_f32x8 *)p, (mask){0, 1, 2, 3, 4, 5, 6, 7} < n, v);\n" },
};

static const MaskName *
mask_find(const VectorName *v)
{
    for (size_t i = 0; i < sizeof mask_names / sizeof mask_names[0]; i++)
        if (jot_str_len(mask_names[i].vector) == v->n && !memcmp(mask_names[i].vector, v->name, v->n))
            return &mask_names[i];
    return NULL;
}

/* The part where it is one instruction; what stands behind it, to '%E', is for other targets. */
static void
put_mask(Text *out, const VectorName *v, char what)
{
    const MaskName *m = mask_find(v);
    if (m && what == 'E')
        jot_text_f(out, "#endif\n");
    else if (m)
        jot_text_f(out, "#ifdef %s\n%s#else\n", m->target, what == 'P' ? m->load : m->store);
}

static void
put_half_type(Text *out, const VectorName *v)
{
    jot_text_f(out, "    typedef jot_u16 half __attribute__((vector_size(%d)));\n", 2 * v->lanes);
}

/* A word for each lane, and a half. */
static void
put_half_types(Text *out, const VectorName *v)
{
    jot_text_f(out, "    typedef jot_u32 word __attribute__((vector_size(%d)));\n", 4 * v->lanes);
    put_half_type(out, v);
}

/* The prelude's jotm_f32_to_bf16, lane by lane. */
static void
put_half_round(Text *out)
{
    jot_text_f(out, "    const word u = (word)v, nan = (word)((u & 0x7fffffffu) > 0x7f800000u);\n"
               "    const word r = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;\n"
               "    const half h = __builtin_convertvector((r & ~nan) | ((u >> 16 | 0x40u) & nan), half);\n");
}

/* Halves h to floats, and floats v to halves: by the instruction where there is one for so many,
 * else the prelude's functions, lane by lane. */
static void
put_f16(Text *out, const VectorName *v, bool load)
{
    static const struct { int lanes; const char *where, *load, *store; } known[] = {
        { 16, "__AVX512F__", "vcvtph2ps512_mask((word16)h, (jot_f32x16){0}, -1, 4)",
          "vcvtps2ph512_mask(v, 0, (word16){0}, -1)" },
        { 8, "__F16C__", "vcvtph2ps256((word16)h)", "vcvtps2ph256(v, 0)" },
    };
    const char *end = "";
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].lanes == v->lanes && v->bits == 32) {
            jot_text_f(out, "#ifdef %s\n    typedef short word16 __attribute__((vector_size(%d)));\n",
                       known[i].where, 2 * v->lanes);
            if (load)
                jot_text_f(out, "    return (jot_f32x%d)__builtin_ia32_%s;\n#else\n", v->lanes,
                           known[i].load);
            else
                jot_text_f(out, "    const half h = (half)(word16)__builtin_ia32_%s;\n#else\n",
                           known[i].store);
            end = "#endif\n";
        }
    if (load)
        jot_text_f(out, "    jot_%.*s v = {0};\n    for (int l = 0; l < %d; l++)\n"
                        "        v[l] = jotm_f16_to_f32(h[l]);\n    return v;\n%s", (int)v->n, v->name,
                   v->lanes, end);
    else
        jot_text_f(out, "    half h = {0};\n    for (int l = 0; l < %d; l++)\n"
                        "        h[l] = jotm_f32_to_f16(v[l]);\n%s", v->lanes, end);
}

static void
put_lane_type(Text *out, const VectorName *v)
{
    if (v->name[0] == 'f')
        jot_text_f(out, v->bits == 64 ? "double" : "float");
    else
        jot_text_f(out, "jot_%.*s", (int)(v->x - 1), v->name);
}

static void
put_vector_text(Text *out, const char *text, const VectorName *v)
{
    for (; *text; text++) {
        if (*text != '%') {
            jot_text_put(out, text, 1);
            continue;
        }
        switch (*++text) {
        case 'V': jot_text_f(out, "%.*s", (int)v->n, v->name); break;
        case 'B': jot_text_f(out, "%d", v->bits / 8); break;
        case 'L': jot_text_f(out, "%d", v->lanes); break;
        case 'T': put_lane_type(out, v); break;
        case 'F': put_fma(out, v); break;
        case 'S': put_half_types(out, v); break;
        case 'R': put_half_round(out); break;
        case '2': put_half_type(out, v); break;
        case 'H': put_f16(out, v, true); break;
        case 'G': put_f16(out, v, false); break;
        case 'P': case 'Q': case 'E': put_mask(out, v, *text); break;
        case 'N':
            for (int i = 0; i < v->lanes; i++)
                jot_text_f(out, i ? ", %d" : "%d", i);
            break;
        case 'I': jot_text_f(out, "i%dx%d", v->bits, v->lanes); break;
        default:
            for (int i = 0; i < v->lanes; i++)
                jot_text_f(out, i ? ", x" : "x");
        }
    }
}

/* jot_f32x8, jot_ld_f32x8, ...: a vector type and what goes with it */
static bool
need_vector(Prelude *p, const char *name, size_t n)
{
    size_t count = sizeof vector_helpers / sizeof vector_helpers[0];
    VectorName v;
    for (size_t i = 0; i < count; i++) {
        size_t from = 4 + jot_str_len(vector_helpers[i].name);
        char vector[64];
        Text t = {0};
        if (n <= from || memcmp(name + 4, vector_helpers[i].name, from - 4) ||
            !read_vector(name + from, n - from, &v))
            continue;
        t.s = vector;
        t.cap = sizeof vector;
        jot_text_f(&t, "jot_%.*s", (int)v.n, v.name);
        need_text(p, vector, t.n, 0);
        if (jot_str_eq(vector_helpers[i].name, "sel_") || jot_str_eq(vector_helpers[i].name, "mix_") ||
            jot_str_eq(vector_helpers[i].name, "mix2_") ||
            jot_str_eq(vector_helpers[i].name, "part_") ||
            jot_str_eq(vector_helpers[i].name, "mask_")) {
            t.n = 0;
            jot_text_f(&t, "jot_i%dx%d", v.bits, v.lanes);
            need_text(p, vector, t.n, 0);
        }
        if (jot_str_eq(vector_helpers[i].name, "mask_")) {
            t.n = 0;
            jot_text_f(&t, "jot_u8x%d", v.lanes);
            need_text(p, vector, t.n, 0);
        }
        if (memcmp(name + from - 5, "_f16_", 5) == 0)
            need_text(p, name[4] == 'l' ? "jotm_f16_to_f32" : "jotm_f32_to_f16", 15, 0);
        put_vector_text(p->out, vector_helpers[i].text, &v);
        return true;
    }
    if (!read_vector(name + 4, n - 4, &v))
        return false;
    jot_text_f(p->out, "typedef ");
    put_lane_type(p->out, &v);
    jot_text_f(p->out, " %.*s __attribute__((vector_size(%d)));\n", (int)n, name,
               v.lanes * v.bits / 8);
    return true;
}

/* A function over the items of a work-group or on shared memory, behind what it calls. */
static bool
need_device(Prelude *p, const char *name, size_t n, int depth)
{
    Text text = {0};
    bool found;
    text.mem = p->out->mem;
    found = jot_device_helper(p->d->device, name, n, &text);
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
        jot_text_f(p->out, "%s%s\n%s%s\n",
                   p->d->device ? p->d->device->function : "JOT_INLINE ", fn->ret, fn->name,
                   fn->params);
        bool known = !p->d->device && put_builtins(p->out, fn->name);
        jot_text_f(p->out, "%s\n%s", fn->body, known ? "#endif\n" : "");
    } else if (text) {
        need_text(p, text, jot_str_len(text), depth + 1);
        jot_text_f(p->out, "%s%s", p->d->device ? p->d->device->function : "static ", text);
    } else if (p->d->device ? !need_device(p, name, n, depth) : !need_vector(p, name, n)) {
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
    for (size_t i = 0; i < sizeof vector_helpers / sizeof vector_helpers[0]; i++)
        hash = jot_hash(hash, vector_helpers[i].text, jot_str_len(vector_helpers[i].text));
    for (size_t i = 0; i < sizeof fma_names / sizeof fma_names[0]; i++)
        hash = jot_hash(hash, fma_names[i].body, jot_str_len(fma_names[i].body));
    return hash;
}

JOT_FN bool
jot_emit_prelude(const Dialect *d, const char *kernels, size_t n, Text *out)
{
    Prelude p;
    memset(&p, 0, sizeof p);
    p.d = d;
    p.out = out;
    jot_text_f(out, "%s", d->device ? d->device->typedefs : typedefs);
    need_text(&p, kernels, n, 0);
    return !out->mem || !out->mem->failed;
}
#undef DIALECT_TYPES
