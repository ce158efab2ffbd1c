/* ccode/emit/dialect_vector.c - vectors in the text for gcc and clang: their types, and what is
 * loaded, stored, chosen, mixed and multiplied of them, spelled out for one type when a kernel
 * names it.
 *
 *     jot_f32x8           typedef float jot_f32x8 __attribute__((vector_size(32)));
 *     jot_ld_f32x8        a function, behind jot_f32x8
 *     jot_ld_bf16_f32x8   the same of halves, which are computed in floats
 *
 * Read before: ccode/emit/dialect.c. After: ccode/emit/part.c. */
#include "ccode/emit/print.h"

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

typedef struct { const char *name, *text; } VectorHelper;

/* What goes with a vector type: %V is the type's name, %B the bytes of a lane, %L the lanes, %T the
 * type of a lane, %1 of them separated by commas, %I the integers of the same width, %N 0, 1, ...,
 * %h the vector of half the lanes, %P, %p, %E, %Q, %q, %E: a part of it is loaded, otherwise,
 * stored, otherwise; %Xname, %E: by a target's instruction, otherwise; the rest: see below. */
#define SELECT_COMPARED(name, op) \
    "JOT_VECTOR jot_%V\njot_sel" name "_%V(jot_%V x, jot_%V y, jot_%V a, jot_%V b)\n{\n" \
    "%Xsel" name "\n    return jot_sel_%V((jot_%I)(x " op " y), a, b);\n%E}\n"
/* The prelude's jotm_f32_to_bf16, lane by lane, in the upper half of a float; as halves. */
#define HALF_NEAREST(word) \
    "    const " word " u = (" word ")v, nan = (" word ")(v != v);\n" \
    "    const " word " r = u + ((0x7fffu + (u >> 16 & 1u)) & ~nan);\n"
#define HALF_CUT(word) "    const half h = (half)jot_cv_u16_u32x%L((jot_u32x%L)(" word " >> 16));\n"
#define HALF_ROUND HALF_NEAREST("word") HALF_CUT("(r | (nan & 0x400000u))")
/* An index that lanes are added to, in 32 bits: one that is far from 0 stays so. */
#define RAMP_COMPARED(name, op) \
    "JOT_VECTOR jot_%V\njot_" name "_%V(jot_i64 base, int step)\n{\n" \
    "    const int far = 1073741824;\n" \
    "    const int near = (jot_u64)base + 1073741824u <= 2147483648u ? (int)base\n" \
    "        : base < 0 ? -far : far;\n" \
    "    return (jot_%V){%N} * step " op " -near;\n}\n"
/* %D and a row of jot_target_dots: its instruction. Else an element of a word, by shifts. */
#define DOT_OF(name, row) \
    "JOT_INLINE jot_%V\njot_dot_" name "_%V(jot_%U a, jot_%U b, jot_%V c)\n{\n%D" row
#define DOT_SIGNED(x, up, down) "(jot_%U)((jot_%I)(" x " << " up ") >> " down ")"
#define DOT_UNSIGNED(x, up, down) "(" x " << " up " >> " down ")"
#define DOT_BYTE(a, b, up) a("a", up, "24") " * " b("b", up, "24")
#define DOT_BYTES(a, b) \
    "    return (jot_%V)((jot_%U)c + " DOT_BYTE(a, b, "24") "\n        + " DOT_BYTE(a, b, "16") \
    "\n        + " DOT_BYTE(a, b, "8") "\n        + " DOT_BYTE(a, b, "0") ");\n#endif\n}\n"
static const VectorHelper vector_helpers[] = {
    /* by the vector's own type: gcc takes bytes that are copied for another, and a sum that lies
     * in an array then moves from register to register in every step */
    { "ld_", "JOT_INLINE jot_%V\njot_ld_%V(const void *p)\n{\n"
             "    typedef jot_%V memory __attribute__((aligned(1), may_alias));\n"
             "    return *(const memory *)p;\n}\n" },
    { "st_", "JOT_INLINE void\njot_st_%V(void *p, jot_%V v)\n{\n"
             "    typedef jot_%V memory __attribute__((aligned(1), may_alias));\n"
             "    *(memory *)p = v;\n}\n" },
    { "ldn_", "JOT_INLINE jot_%V\njot_ldn_%V(const void *p, int n)\n{\n%P%p%E}\n" },
    { "stn_", "JOT_INLINE void\njot_stn_%V(void *p, jot_%V v, int n)\n{\n%Q%q%E}\n" },
    /* the first n bytes of words of 8, by one access for each bit of n; of memory, 8 at most */
    { "put_", "JOT_INLINE void\njot_put_%V(void *to, jot_%V v, unsigned n)\n{\n"
              "    char *p = to;\n    jot_u64 low = v[0];\n"
              "#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__\n    __builtin_memcpy(p, &v, n);\n"
              "    return;\n#endif\n"
              "    if (n & 16) {\n        __builtin_memcpy(p, &v, 16);\n        return;\n    }\n"
              "    if (n & 8) {\n        __builtin_memcpy(p, &low, 8);\n        p += 8;\n"
              "        low = v[1];\n    }\n    if (n & 4) {\n"
              "        const jot_u32 word = (jot_u32)low;\n        __builtin_memcpy(p, &word, 4);\n"
              "        p += 4;\n        low >>= 32;\n    }\n    if (n & 2) {\n"
              "        const jot_u16 word = (jot_u16)low;\n        __builtin_memcpy(p, &word, 2);\n"
              "        p += 2;\n        low >>= 16;\n    }\n    if (n & 1)\n"
              "        *p = (char)low;\n}\n" },
    { "get_", "JOT_INLINE jot_u64\njot_get_%V(const void *from, unsigned n)\n{\n"
              "    const char *p = from;\n    jot_u64 v = 0;\n    int at = 0;\n"
              "#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__\n    __builtin_memcpy(&v, p, n);\n"
              "    return v;\n#endif\n"
              "    if (n & 8) {\n        __builtin_memcpy(&v, p, 8);\n        return v;\n    }\n"
              "    if (n & 4) {\n        jot_u32 word;\n        __builtin_memcpy(&word, p, 4);\n"
              "        v = word;\n        p += 4;\n        at = 32;\n    }\n    if (n & 2) {\n"
              "        jot_u16 word;\n        __builtin_memcpy(&word, p, 2);\n"
              "        v |= (jot_u64)word << at;\n        p += 2;\n        at += 16;\n    }\n"
              "    if (n & 1)\n        v |= (jot_u64)(jot_u8)*p << at;\n    return v;\n}\n" },
    /* a load that touches no memory where the mask is 0; 0 there */
    { "ldm_", "JOT_VECTOR jot_%V\njot_ldm_%V(const void *p, jot_%I m)\n{\n%O"
              "    jot_%V v = {0};\n    for (int l = 0; l < %L; l++)\n        if (m[l])\n"
              "            v[l] = ((const %T *)p)[l];\n    return v;\n%E}\n" },
    /* element i[l] of memory where the mask is not 0, else 0, and nothing is touched; 32 bits of 64
     * that are no farther than these reach; a mask of the first lanes */
    { "gather_", "JOT_INLINE jot_%V\n"
                 "jot_gather_%V(const void *p, jot_u32x%L i, jot_i32x%L m)\n{\n%g"
                 "    const jot_i32x%L at = (jot_i32x%L)i;\n"
                 "    jot_%V v = {0};\n    for (int l = 0; l < %L; l++)\n        if (m[l])\n"
                 "            v[l] = ((const %T *)p)[at[l]];\n    return v;\n%E}\n" },
    { "near_", "JOT_VECTOR jot_i32x%L\njot_near_%V(jot_%V v)\n{\n%n}\n" },
    { "first_", "JOT_VECTOR jot_%V\n"
                "jot_first_%V(int n)\n{\n    return (jot_%V){%N} < (%T)n;\n}\n" },
    /* base, base + step, ..; are these at least 0, or 0? */
    { "ramp_", "JOT_VECTOR jot_%V\njot_ramp_%V(jot_i64 base, int step)\n{\n"
               "    return (jot_%V)((jot_%U){%N} * (jot_%u)step + (jot_%u)base);\n}\n" },
    { "ge0_", RAMP_COMPARED("ge0", ">=") },
    { "eq0_", RAMP_COMPARED("eq0", "==") },
    { "bc_", "JOT_VECTOR jot_%V\njot_bc_%V(%T x)\n{\n    return (jot_%V){%1};\n}\n" },
    { "sel_", "JOT_VECTOR jot_%V\njot_sel_%V(jot_%I m, jot_%V a, jot_%V b)\n{\n%Xsel\n"
              "    return (jot_%V)((m & (jot_%I)a) | (~m & (jot_%I)b));\n%E}\n" },
    { "sellt_", SELECT_COMPARED("lt", "<") },
    { "selle_", SELECT_COMPARED("le", "<=") },
    { "seleq_", SELECT_COMPARED("eq", "==") },
    { "selne_", SELECT_COMPARED("ne", "!=") },
    { "max_", "JOT_VECTOR jot_%V\njot_max_%V(jot_%V a, jot_%V b)\n{\n%Xmax\n"
              "    return jot_sellt_%V(b, a, a, b);\n%E}\n" },
    { "min_", "JOT_VECTOR jot_%V\njot_min_%V(jot_%V a, jot_%V b)\n{\n%Xmin\n"
              "    return jot_sellt_%V(a, b, a, b);\n%E}\n" },
    { "any_", "JOT_VECTOR int\njot_any_%V(jot_%V m)\n{\n%A}\n" },
    { "lo_", "JOT_VECTOR jot_%h\njot_lo_%V(jot_%V v)\n{\n%0}\n" },
    { "hi_", "JOT_VECTOR jot_%h\njot_hi_%V(jot_%V v)\n{\n%9}\n" },
    { "join_", "JOT_VECTOR jot_%V\njot_join_%V(jot_%h a, jot_%h b)\n{\n%J}\n" },
    { "mask_", "JOT_INLINE jot_%I\njot_mask_%V(jot_u8x%L m)\n{\n"
               "    return __builtin_convertvector(m, jot_%I) != 0;\n}\n" },
    { "mix_", "JOT_INLINE jot_%V\njot_mix_%V(jot_%V v, jot_%I m)\n{\n#ifdef __clang__\n"
              "    jot_%V r = v;\n    for (unsigned l = 0; l < sizeof m / sizeof m[0]; l++)\n"
              "        r[l] = v[m[l]];\n    return r;\n"
              "#else\n    return __builtin_shuffle(v, m);\n#endif\n}\n" },
    { "mix2_", "JOT_INLINE jot_%V\njot_mix2_%V(jot_%V v, jot_%V w, jot_%I m)\n{\n"
               "#ifdef __clang__\n"
               "    jot_%V r = v;\n    for (unsigned l = 0; l < %Lu; l++)\n"
               "        r[l] = m[l] < %L ? v[m[l]] : w[m[l] - %L];\n    return r;\n"
               "#else\n    return __builtin_shuffle(v, w, m);\n#endif\n}\n" },
    { "part_", "JOT_INLINE jot_%V\njot_part_%V(jot_%V v, int n)\n{\n"
               "    return (jot_%V)((jot_%I)v & ((jot_%I){%N} < n));\n}\n" },
    { "some_", "JOT_INLINE jot_%V\njot_some_%V(int n, jot_%V a, jot_%V b)\n{\n"
               "    return jot_sel_%V((jot_%I){%N} < n, a, b);\n}\n" },
    /* Halves are computed in floats: loaded and stored as these, rounded to the nearest. */
    { "ld_bf16_", "JOT_INLINE jot_%V\njot_ld_bf16_%V(const void *p)\n{\n%2"
                  "    half h;\n    __builtin_memcpy(&h, p, sizeof h);\n"
                  "    return (jot_%V)(jot_cv_u32_u16x%L((jot_u16x%L)h) << 16);\n}\n" },
    { "ldn_bf16_", "JOT_INLINE jot_%V\njot_ldn_bf16_%V(const void *p, int n)\n{\n%2"
                   "    const half h = (half)jot_ldn_u16x%L(p, n);\n"
                   "    return (jot_%V)(jot_cv_u32_u16x%L((jot_u16x%L)h) << 16);\n}\n" },
    { "ldm_bf16_", "JOT_INLINE jot_%V\njot_ldm_bf16_%V(const void *p, jot_%I m)\n{\n%2"
                   "    const half h = (half)jot_ldm_u16x%L(p, jot_cv_i16_%I(m));\n"
                   "    return (jot_%V)(jot_cv_u32_u16x%L((jot_u16x%L)h) << 16);\n}\n" },
    { "st_bf16_", "JOT_INLINE void\njot_st_bf16_%V(void *p, jot_%V v)\n{\n%S" HALF_ROUND
                  "    __builtin_memcpy(p, &h, sizeof h);\n}\n" },
    { "stn_bf16_", "JOT_INLINE void\njot_stn_bf16_%V(void *p, jot_%V v, int n)\n{\n%S" HALF_ROUND
                   "    jot_stn_u16x%L(p, (jot_u16x%L)h, n);\n}\n" },
    /* ... of what is one already; what lies in registers becomes one without leaving its lanes */
    { "st_cut_", "JOT_INLINE void\njot_st_cut_%V(void *p, jot_%V v)\n{\n%S" HALF_CUT("(word)v")
                 "    __builtin_memcpy(p, &h, sizeof h);\n}\n" },
    { "stn_cut_", "JOT_INLINE void\njot_stn_cut_%V(void *p, jot_%V v, int n)\n{\n%S"
                  HALF_CUT("(word)v") "    jot_stn_u16x%L(p, (jot_u16x%L)h, n);\n}\n" },
    { "bf16_", "JOT_VECTOR jot_%V\njot_bf16_%V(jot_%V v)\n{\n" HALF_NEAREST("jot_u32x%L")
               "    return (jot_%V)((r | (nan & 0x400000u)) & 0xffff0000u);\n}\n" },
    { "ld_f16_", "JOT_INLINE jot_%V\njot_ld_f16_%V(const void *p)\n{\n%2"
                 "    half h;\n    __builtin_memcpy(&h, p, sizeof h);\n%H}\n" },
    { "ldn_f16_", "JOT_INLINE jot_%V\njot_ldn_f16_%V(const void *p, int n)\n{\n%2"
                  "    const half h = (half)jot_ldn_u16x%L(p, n);\n%H}\n" },
    { "ldm_f16_", "JOT_INLINE jot_%V\njot_ldm_f16_%V(const void *p, jot_%I m)\n{\n%2"
                  "    const half h = (half)jot_ldm_u16x%L(p, jot_cv_i16_%I(m));\n%H}\n" },
    { "st_f16_", "JOT_INLINE void\njot_st_f16_%V(void *p, jot_%V v)\n{\n%2%G"
                 "    __builtin_memcpy(p, &h, sizeof h);\n}\n" },
    { "stn_f16_", "JOT_INLINE void\njot_stn_f16_%V(void *p, jot_%V v, int n)\n{\n%2%G"
                  "    jot_stn_u16x%L(p, (jot_u16x%L)h, n);\n}\n" },
    { "fma_", "JOT_INLINE jot_%V\njot_fma_%V(jot_%V a, jot_%V b, jot_%V c)\n{\n%F}\n" },
    /* words of bf16: their products are exact, so fused or not is one */
    { "dot_bf16_", DOT_OF("bf16", "0")
                   "    c += (jot_%V)(a << 16) * (jot_%V)(b << 16);\n"
                   "    return c + (jot_%V)(a & 0xffff0000u) * (jot_%V)(b & 0xffff0000u);\n"
                   "#endif\n}\n" },
    /* words of integers: sums wrap around */
    { "dot_u8i8_", DOT_OF("u8i8", "1") DOT_BYTES(DOT_UNSIGNED, DOT_SIGNED) },
    { "dot_u7i8_", DOT_OF("u7i8", "5") DOT_BYTES(DOT_UNSIGNED, DOT_SIGNED) },
    { "dot_i8_", DOT_OF("i8", "2") DOT_BYTES(DOT_SIGNED, DOT_SIGNED) },
    { "dot_u8_", DOT_OF("u8", "3") DOT_BYTES(DOT_UNSIGNED, DOT_UNSIGNED) },
    { "dot_i16_", DOT_OF("i16", "4")
                  "    return (jot_%V)((jot_%U)c + " DOT_SIGNED("a", "16", "16") " * "
                  DOT_SIGNED("b", "16", "16") "\n        + " DOT_SIGNED("a", "0", "16") " * "
                  DOT_SIGNED("b", "0", "16") ");\n#endif\n}\n" },
    { "mad_", "JOT_VECTOR jot_%V\njot_mad_%V(jot_%V a, jot_%V b, jot_%V c)\n{\n%M}\n" },
};

/* The instruction by the compiler's name for it: written as a * b + c it is two, and left to the
 * compiler to contract it depends on levels. clang contracts what it is told to. With 16 registers
 * sums (fma_) are spelled out: gcc reads a vector of memory anew for each multiply-add where up to
 * four share it, for registers' sake, and two loads a cycle do not keep up with two multiply-adds
 * then. Polynomials (mad_) are not: their constants may stay in memory. */
typedef struct { const char *vector, *target, *call, *spelled; } FmaName;
static const FmaName fma_names[] = {
    { "f32x16", "__AVX512F__", "__builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4)", NULL },
    { "f32x8", "__FMA__", "__builtin_ia32_vfmaddps256(a, b, c)", "ps" },
    { "f32x4", "__FMA__", "__builtin_ia32_vfmaddps(a, b, c)", "ps" },
    { "f64x8", "__AVX512F__", "__builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4)", NULL },
    { "f64x4", "__FMA__", "__builtin_ia32_vfmaddpd256(a, b, c)", "pd" },
    { "f64x2", "__FMA__", "__builtin_ia32_vfmaddpd(a, b, c)", "pd" },
    { "f32x4", "__aarch64__", "__builtin_aarch64_fmav4sf(a, b, c)", NULL },
    { "f64x2", "__aarch64__", "__builtin_aarch64_fmav2df(a, b, c)", NULL },
};

static void put_vector_text(Text *out, const char *text, const VectorName *v);

static bool
name_is(const char *name, const char *s, size_t n)
{
    return jot_str_len(name) == n && memcmp(name, s, n) == 0;
}

/* More lanes than the widest of these, or fewer than the least: by parts, which round once too. */
#define FMA_HALVES(name) "    return jot_join_%V(\n" \
    "        jot_" name "_%h(jot_lo_%V(a), jot_lo_%V(b), jot_lo_%V(c)),\n" \
    "        jot_" name "_%h(jot_hi_%V(a), jot_hi_%V(b), jot_hi_%V(c)));\n"
static void
put_fma_parts(Text *out, const VectorName *v, bool sum)
{
    const char *f = v->bits == 64 ? "" : "f";
    jot_text_f(out, "#elif defined __FP_FAST_FMA%s\n", v->bits == 64 ? "" : "F");
    if (v->lanes * v->bits > 256)
        put_vector_text(out, sum ? FMA_HALVES("fma") : FMA_HALVES("mad"), v);
    else
        jot_text_f(out, "    for (int l = 0; l < %d; l++)\n        c[l] = __builtin_fma%s("
                   "a[l], b[l], c[l]);\n    return c;\n", v->lanes, f);
}

static void
put_fma(Text *out, const VectorName *v, bool sum)
{
    jot_text_f(out, "#ifdef __clang__\n#pragma clang fp contract(on)\n    return a * b + c;\n");
    for (size_t i = 0; i < sizeof fma_names / sizeof fma_names[0]; i++) {
        const FmaName *f = &fma_names[i];
        if (!name_is(f->vector, v->name, v->n))
            continue;
        jot_text_f(out, "#elif defined %s\n", f->target);
        if (sum && f->spelled)
            jot_text_f(out, "    __asm__(\"vfmadd231%s {%%2, %%1, %%0|%%0, %%1, %%2}\"\n"
                       "            : \"+v\"(c) : \"v\"(a), \"v\"(b));\n    return c;\n",
                       f->spelled);
        else
            jot_text_f(out, "    return (jot_%s)%s;\n", f->vector, f->call);
    }
    put_fma_parts(out, v, sum);
    jot_text_f(out, "#else\n    return a * b + c;\n#endif\n");
}

/* Choices and extremes that gcc makes of its own instruction only when told so; clang sees them.
 * `word`: the lanes as floats of their width, in which a choice of any type is made. */
typedef struct { const char *name; int bits, nbytes; const char *target, *call; } ChoiceName;
#define CHOICE_512(name, op) \
    { name, 32, 64, "__AVX512F__", \
      "blendmps_512_mask(b, a, __builtin_ia32_cmpps512_mask(x, y, " op ", -1, 4))" }, \
    { name, 64, 64, "__AVX512F__", \
      "blendmpd_512_mask(b, a, __builtin_ia32_cmppd512_mask(x, y, " op ", -1, 4))" }
static const ChoiceName choice_names[] = {
    { "sel", 32, 32, "__AVX__", "blendvps256((word)b, (word)a, (word)m)" },
    { "sel", 32, 16, "__SSE4_1__", "blendvps((word)b, (word)a, (word)m)" },
    { "sel", 64, 32, "__AVX__", "blendvpd256((word)b, (word)a, (word)m)" },
    { "sel", 64, 16, "__SSE4_1__", "blendvpd((word)b, (word)a, (word)m)" },
    CHOICE_512("sellt", "1"), CHOICE_512("selle", "2"),
    CHOICE_512("seleq", "0"), CHOICE_512("selne", "4"),
    { "max", 32, 64, "__AVX512F__", "maxps512_mask(a, b, a, -1, 4)" },
    { "max", 64, 64, "__AVX512F__", "maxpd512_mask(a, b, a, -1, 4)" },
    { "max", 32, 16, "__SSE2__", "maxps(a, b)" },
    { "max", 64, 16, "__SSE2__", "maxpd(a, b)" },
    { "min", 32, 64, "__AVX512F__", "minps512_mask(a, b, a, -1, 4)" },
    { "min", 64, 64, "__AVX512F__", "minpd512_mask(a, b, a, -1, 4)" },
    { "min", 32, 16, "__SSE2__", "minps(a, b)" },
    { "min", 64, 16, "__SSE2__", "minpd(a, b)" },
};
#undef CHOICE_512

/* `name` ends its line. False: no target has an instruction for it. */
static bool
put_choice(Text *out, const VectorName *v, const char *name)
{
    for (size_t i = 0; i < sizeof choice_names / sizeof choice_names[0]; i++) {
        const ChoiceName *c = &choice_names[i];
        size_t n = jot_str_len(c->name);
        bool any = c->name[n - 1] == 'l'; /* sel: of every type */
        if (memcmp(name, c->name, n) || name[n] != '\n' || v->bits != c->bits ||
            v->lanes * v->bits != 8 * c->nbytes || (v->name[0] != 'f' && !any))
            continue;
        jot_text_f(out, "#if defined %s && !defined __clang__\n", c->target);
        if (any)
            jot_text_f(out, "    typedef %s word __attribute__((vector_size(%d)));\n",
                       v->bits == 64 ? "double" : "float", c->nbytes);
        jot_text_f(out, "    return (jot_%.*s)__builtin_ia32_%s;\n#else\n", (int)v->n, v->name,
                   c->call);
        return true;
    }
    return false;
}

/* Is any lane of a mask not 0? */
static void
put_any(Text *out, const VectorName *v)
{
    int nbytes = v->lanes * v->bits / 8;
    const char *test = nbytes == 64 ? "ptestmd512((word)m, (word)m, -1) != 0"
        : nbytes == 32 ? "ptestz256((word)m, (word)m) == 0" : "ptestz128((word)m, (word)m) == 0";
    bool known = nbytes >= 16 && nbytes <= 64;
    if (known)
        jot_text_f(out, "#if defined %s%s\n    typedef %s word __attribute__((vector_size(%d)));\n"
                   "    return __builtin_ia32_%s;\n#else\n",
                   nbytes == 64 ? "__AVX512F__" : nbytes == 32 ? "__AVX__" : "__SSE4_1__",
                   nbytes == 64 ? " && !defined __clang__" : "",
                   nbytes == 64 ? "int" : "long long", nbytes, test);
    if (nbytes > 16)
        put_vector_text(out, "    return jot_any_%h(jot_lo_%V(m) | jot_hi_%V(m));\n", v);
    else
        jot_text_f(out, "    jot_u64 word[2] = {0, 0};\n    __builtin_memcpy(word, &m, sizeof m);\n"
                   "    return (word[0] | word[1]) != 0;\n");
    jot_text_f(out, known ? "#endif\n" : "");
}

/* Lanes from..to of a, or of a and b, by the compiler's name for it where it has one. */
static void
put_some_lanes(Text *out, const VectorName *v, bool join, int from, int to)
{
    jot_text_f(out, "#if defined __clang__ || __GNUC__ >= 12\n"
               "    return __builtin_shufflevector(%s", join ? "a, b" : "v, v");
    for (int i = from; i < to; i++)
        jot_text_f(out, ", %d", i);
    jot_text_f(out, ");\n#else\n    jot_%.*s%d r;\n", (int)v->x, v->name,
               join ? v->lanes : v->lanes / 2);
    if (join)
        jot_text_f(out, "    __builtin_memcpy(&r, &a, sizeof a);\n"
                   "    __builtin_memcpy((char *)&r + sizeof a, &b, sizeof b);\n");
    else
        jot_text_f(out, "    __builtin_memcpy(&r, (char *)&v + %d * sizeof v[0], sizeof r);\n",
                   from);
    jot_text_f(out, "    return r;\n#endif\n");
}

/* An integer for each lane: a half, or a word. */
static void
put_bits_type(Text *out, const VectorName *v, const char *name, int nbytes)
{
    jot_text_f(out, "    typedef jot_u%d %s __attribute__((vector_size(%d)));\n", 8 * nbytes, name,
               nbytes * v->lanes);
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
            jot_text_f(out, "#ifdef %s\n"
                       "    typedef short word16 __attribute__((vector_size(%d)));\n",
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
                        "        v[l] = jotm_f16_to_f32(h[l]);\n    return v;\n%s",
                   (int)v->n, v->name, v->lanes, end);
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

/* To the ends of 32 bits: of vectors that are wider than the target's gcc 12 makes scalars. */
static void
put_near(Text *out, const VectorName *v)
{
    static const char halves[] = "    return jot_join_i32x%L(jot_near_%h(jot_lo_%V(v)),\n"
                                 "        jot_near_%h(jot_hi_%V(v)));\n";
    if (v->lanes == 8)
        put_vector_text(out, "#ifdef __AVX512F__\n"
                        "    typedef long long wide __attribute__((vector_size(64)));\n"
                        "    typedef int word __attribute__((vector_size(32)));\n"
                        "    return (jot_i32x8)__builtin_ia32_pmovsqd512_mask((wide)v, (word){0}, "
                        "-1);\n#else\n", v);
    if (v->lanes >= 8)
        put_vector_text(out, halves, v);
    else
        put_vector_text(out, "    const jot_%V most = jot_bc_%V(2147483647);\n"
                        "    return jot_cv_i32_%V(jot_max_%V(jot_min_%V(v, most), -most));\n", v);
    jot_text_f(out, v->lanes == 8 ? "#endif\n" : "");
}

static void
put_vector_text(Text *out, const char *text, const VectorName *v)
{
    bool otherwise = false;
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
        case 'h': jot_text_f(out, "%.*s%d", (int)v->x, v->name, v->lanes / 2); break;
        case 'F': put_fma(out, v, true); break;
        case 'M': put_fma(out, v, false); break;
        case 'D': jot_dot_text(out, v->name, v->n, *++text - '0'); break;
        case 'A': put_any(out, v); break;
        case '0': put_some_lanes(out, v, false, 0, v->lanes / 2); break;
        case '9': put_some_lanes(out, v, false, v->lanes / 2, v->lanes); break;
        case 'J': put_some_lanes(out, v, true, 0, v->lanes); break;
        case 'X':
            otherwise = put_choice(out, v, text + 1);
            while (text[1] != '\n')
                text++;
            text++;
            break;
        case 'S': put_bits_type(out, v, "word", 4); /* fall through */
        case '2': put_bits_type(out, v, "half", 2); break;
        case 'H': put_f16(out, v, true); break;
        case 'G': put_f16(out, v, false); break;
        case 'U': jot_text_f(out, "u%dx%d", v->bits, v->lanes); break;
        case 'u': jot_text_f(out, "u%d", v->bits); break;
        case 'P': case 'Q': case 'O': otherwise = jot_vector_mask_text(out, v, *text); break;
        case 'p': case 'q':
            put_vector_text(out, jot_part_text(v, *text == 'q'), v);
            break;
        case 'n': put_near(out, v); break;
        case 'g': otherwise = jot_vector_gather_text(out, v); break;
        case 'E': jot_text_f(out, otherwise ? "#endif\n" : ""); break;
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

/* The function whose name this is, and the vector that it is of; NULL: none. */
static const VectorHelper *
vector_helper(const char *name, size_t n, VectorName *v)
{
    for (size_t i = 0; i < sizeof vector_helpers / sizeof vector_helpers[0]; i++) {
        size_t from = 4 + jot_str_len(vector_helpers[i].name);
        if (n > from && memcmp(name + 4, vector_helpers[i].name, from - 4) == 0 &&
            read_vector(name + from, n - from, v))
            return &vector_helpers[i];
    }
    return NULL;
}

/* Conversions between lanes of different widths: gcc 12 makes two halves and joins them. What is
 * extended has the sign of its own type. */
typedef struct { const char *to, *from; int lanes; const char *target, *call; } ConvertName;
#define CONVERT_TO64(lanes, target, size, more, last) \
    { "i64", "u32", lanes, target, "pmovzxdq" size "((jot_i32x" #lanes ")x" more last }, \
    { "u64", "u32", lanes, target, "pmovzxdq" size "((jot_i32x" #lanes ")x" more last }, \
    { "i64", "i32", lanes, target, "pmovsxdq" size "(x" more last }, \
    { "u64", "i32", lanes, target, "pmovsxdq" size "(x" more last }
#define CONVERT_UP(from, call, narrow) \
    { "i32", from, 16, "__AVX512F__", call "512_mask((" narrow ")x, (jot_i32x16){0}, -1)" }, \
    { "u32", from, 16, "__AVX512F__", call "512_mask((" narrow ")x, (jot_i32x16){0}, -1)" }
static const ConvertName convert_names[] = {
    CONVERT_TO64(8, "__AVX512F__", "512_mask", ", (jot_i64x8){0}", ", -1)"),
    CONVERT_TO64(4, "__AVX2__", "256", "", ")"),
    { "i32", "i64", 8, "__AVX512F__", "pmovqd512_mask(x, (jot_i32x8){0}, -1)" },
    { "u32", "i64", 8, "__AVX512F__", "pmovqd512_mask(x, (jot_i32x8){0}, -1)" },
    { "i32", "u64", 8, "__AVX512F__", "pmovqd512_mask((jot_i64x8)x, (jot_i32x8){0}, -1)" },
    { "u32", "u64", 8, "__AVX512F__", "pmovqd512_mask((jot_i64x8)x, (jot_i32x8){0}, -1)" },
    { "f64", "f32", 8, "__AVX512F__", "cvtps2pd512_mask(x, (jot_f64x8){0}, -1, 4)" },
    { "f32", "f64", 8, "__AVX512F__", "cvtpd2ps512_mask(x, (jot_f32x8){0}, -1, 4)" },
    { "f64", "i32", 8, "__AVX512F__", "cvtdq2pd512_mask(x, (jot_f64x8){0}, -1)" },
    { "i32", "f64", 8, "__AVX512F__", "cvttpd2dq512_mask(x, (jot_i32x8){0}, -1, 4)" },
    { "f64", "f32", 4, "__AVX__", "cvtps2pd256(x)" },
    { "f32", "f64", 4, "__AVX__", "cvtpd2ps256(x)" },
    { "f64", "i32", 4, "__AVX__", "cvtdq2pd256(x)" },
    { "i32", "f64", 4, "__AVX__", "cvttpd2dq256(x)" },
    CONVERT_UP("u8", "pmovzxbd", "chars"), CONVERT_UP("i8", "pmovsxbd", "chars"),
    CONVERT_UP("u16", "pmovzxwd", "jot_i16x16"), CONVERT_UP("i16", "pmovsxwd", "jot_i16x16"),
    { "i32", "u16", 8, "__AVX2__", "pmovzxwd256((jot_i16x8)x)" },
    { "u32", "u16", 8, "__AVX2__", "pmovzxwd256((jot_i16x8)x)" },
    { "i32", "i16", 8, "__AVX2__", "pmovsxwd256(x)" },
    { "u32", "i16", 8, "__AVX2__", "pmovsxwd256(x)" },
    { "i8", "u32", 16, "__AVX512F__", "pmovdb512_mask((jot_i32x16)x, (chars){0}, -1)" },
    { "u8", "u32", 16, "__AVX512F__", "pmovdb512_mask((jot_i32x16)x, (chars){0}, -1)" },
    { "i8", "i32", 16, "__AVX512F__", "pmovdb512_mask(x, (chars){0}, -1)" },
    { "u8", "i32", 16, "__AVX512F__", "pmovdb512_mask(x, (chars){0}, -1)" },
    { "i16", "i32", 16, "__AVX512F__", "pmovdw512_mask(x, (jot_i16x16){0}, -1)" },
    { "u16", "i32", 16, "__AVX512F__", "pmovdw512_mask(x, (jot_i16x16){0}, -1)" },
    { "u16", "u32", 16, "__AVX512F__", "pmovdw512_mask((jot_i32x16)x, (jot_i16x16){0}, -1)" },
};
#undef CONVERT_TO64
#undef CONVERT_UP

/* jot_cv_i64_f32x8: lanes of a type as another, as C converts; bytes and shorts become f32 by way
 * of i32, where gcc 12 would take them one by one. False: it is no such name. */
static bool
put_convert(Text *out, const char *name, size_t n)
{
    VectorName v;
    size_t to = 7, end = to;
    const char *target = NULL;
    if (n < 12 || memcmp(name, "jot_cv_", to))
        return false;
    while (end < n && name[end] != '_')
        end++;
    if (end == n || !read_vector(name + end + 1, n - end - 1, &v))
        return false;
    jot_text_f(out, "JOT_VECTOR jot_%.*sx%d\n%.*s(jot_%.*s x)\n{\n", (int)(end - to), name + to,
               v.lanes, (int)n, name, (int)v.n, v.name);
    for (size_t i = 0; i < sizeof convert_names / sizeof convert_names[0]; i++) {
        const ConvertName *c = &convert_names[i];
        if (c->lanes != v.lanes || !name_is(c->to, name + to, end - to) ||
            !name_is(c->from, v.name, v.x - 1))
            continue;
        target = c->target;
        jot_text_f(out, "#if defined %s && !defined __clang__\n%s"
                   "    return (jot_%sx%d)__builtin_ia32_%s;\n#else\n", c->target,
                   c->to[1] == '8' || c->from[1] == '8'
                   ? "    typedef char chars __attribute__((vector_size(16)));\n" : "",
                   c->to, c->lanes, c->call);
        break;
    }
    if (name_is("f32", name + to, end - to) && v.name[1] != '3' && v.name[1] != '6')
        jot_text_f(out, "    return jot_cv_f32_i32x%d(jot_cv_i32_%.*s(x));\n}\n", v.lanes, (int)v.n,
                   v.name);
    else
        jot_text_f(out, "    return __builtin_convertvector(x, jot_%.*sx%d);\n%s}\n",
                   (int)(end - to), name + to, v.lanes, target ? "#endif\n" : "");
    return true;
}

JOT_FN bool
jot_vector_text(const char *name, size_t n, Text *out)
{
    VectorName v;
    const VectorHelper *h = vector_helper(name, n, &v);
    if (h) {
        put_vector_text(out, h->text, &v);
        return true;
    }
    if (put_convert(out, name, n))
        return true;
    if (!read_vector(name + 4, n - 4, &v))
        return false;
    jot_text_f(out, "typedef ");
    put_lane_type(out, &v);
    jot_text_f(out, " %.*s __attribute__((vector_size(%d)));\n", (int)n, name,
               v.lanes * v.bits / 8);
    return true;
}

JOT_FN uint64_t
jot_vector_hash(uint64_t hash)
{
#define HASH_TEXTS(table, text) \
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) \
        hash = jot_hash(hash, table[i].text, jot_str_len(table[i].text));
    HASH_TEXTS(vector_helpers, text)
    HASH_TEXTS(fma_names, call)
    HASH_TEXTS(convert_names, call)
    HASH_TEXTS(choice_names, call)
#undef HASH_TEXTS
    return hash;
}
