/* ccode/dialect_vector.c - vectors in the text for gcc and clang: their types, and what is loaded,
 * stored, chosen, mixed and multiplied of them, spelled out for one type when a kernel names it.
 *
 *     jot_f32x8           typedef float jot_f32x8 __attribute__((vector_size(32)));
 *     jot_ld_f32x8        a function, behind jot_f32x8
 *     jot_ld_bf16_f32x8   the same of halves, which are computed in floats
 *
 *   requires  names as ccode/emit_vector.c makes them
 *
 * Read before: ccode/dialect.c. */
#include "ccode/print.h"

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

typedef struct { const char *name, *text; } VectorHelper;

/* What goes with a vector type: %V is the type's name, %B the bytes of a lane, %L the lanes, %T the
 * type of a lane, %1 of them separated by commas, %I the integers of the same width, %N 0, 1, ...,
 * %P, %Q, %E: a part of it is loaded or stored, otherwise; %S, %R: see below. */
static const VectorHelper vector_helpers[] = {
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
    { "mix2_", "static inline jot_%V\njot_mix2_%V(jot_%V v, jot_%V w, jot_%I m)\n{\n"
               "#ifdef __clang__\n"
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
 * compiler to contract it depends on levels. clang contracts what it is told to. With 16 registers
 * it is spelled out: gcc reads a vector of memory anew for each multiply-add where up to four share
 * it, for registers' sake, and two loads a cycle do not keep up with two multiply-adds then. */
typedef struct { const char *vector, *target, *body; } FmaName;
#define FMA_CALL(name) "    return " name ";\n"
#define FMA_SPELLED(type) \
    "    __asm__(\"vfmadd231" type " {%2, %1, %0|%0, %1, %2}\"\n" \
    "            : \"+v\"(c) : \"v\"(a), \"v\"(b));\n" \
    "    return c;\n"
static const FmaName fma_names[] = {
    { "f32x16", "__AVX512F__",
      FMA_CALL("(jot_f32x16)__builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4)") },
    { "f32x8", "__FMA__", FMA_SPELLED("ps") },
    { "f32x4", "__FMA__", FMA_SPELLED("ps") },
    { "f64x8", "__AVX512F__",
      FMA_CALL("(jot_f64x8)__builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4)") },
    { "f64x4", "__FMA__", FMA_SPELLED("pd") },
    { "f64x2", "__FMA__", FMA_SPELLED("pd") },
    { "f32x4", "__aarch64__", FMA_CALL("(jot_f32x4)__builtin_aarch64_fmav4sf(a, b, c)") },
    { "f64x2", "__aarch64__", FMA_CALL("(jot_f64x2)__builtin_aarch64_fmav2df(a, b, c)") },
};
#undef FMA_CALL
#undef FMA_SPELLED

static void
put_fma(Text *out, const VectorName *v)
{
    jot_text_f(out, "#ifdef __clang__\n#pragma clang fp contract(fast)\n    return a * b + c;\n");
    for (size_t i = 0; i < sizeof fma_names / sizeof fma_names[0]; i++)
        if (jot_str_len(fma_names[i].vector) == v->n && !memcmp(fma_names[i].vector, v->name, v->n))
            jot_text_f(out, "#elif defined %s\n%s", fma_names[i].target, fma_names[i].body);
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
      "    __builtin_ia32_maskstoreps256((jot_f32x8 *)p,\n"
      "        (mask){0, 1, 2, 3, 4, 5, 6, 7} < n, v);\n" },
};

static const MaskName *
mask_find(const VectorName *v)
{
    for (size_t i = 0; i < sizeof mask_names / sizeof mask_names[0]; i++)
        if (jot_str_len(mask_names[i].vector) == v->n &&
            !memcmp(mask_names[i].vector, v->name, v->n))
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
               "    const word q = (r & ~nan) | ((u >> 16 | 0x40u) & nan);\n"
               "    const half h = __builtin_convertvector(q, half);\n");
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

JOT_FN bool
jot_vector_needs(const char *name, size_t n, Text *needs)
{
    VectorName v;
    const VectorHelper *h = vector_helper(name, n, &v);
    bool mask = h && jot_str_eq(h->name, "mask_");
    if (!h)
        return read_vector(name + 4, n - 4, &v);
    jot_text_f(needs, "jot_%.*s", (int)v.n, v.name);
    if (mask || jot_str_eq(h->name, "sel_") || jot_str_eq(h->name, "mix_") ||
        jot_str_eq(h->name, "mix2_") || jot_str_eq(h->name, "part_"))
        jot_text_f(needs, " jot_i%dx%d", v.bits, v.lanes);
    if (mask)
        jot_text_f(needs, " jot_u8x%d", v.lanes);
    if (memcmp(v.name - 5, "_f16_", 5) == 0)
        jot_text_f(needs, name[4] == 'l' ? " jotm_f16_to_f32" : " jotm_f32_to_f16");
    return true;
}

JOT_FN void
jot_vector_text(const char *name, size_t n, Text *out)
{
    VectorName v;
    const VectorHelper *h = vector_helper(name, n, &v);
    if (h) {
        put_vector_text(out, h->text, &v);
        return;
    }
    read_vector(name + 4, n - 4, &v);
    jot_text_f(out, "typedef ");
    put_lane_type(out, &v);
    jot_text_f(out, " %.*s __attribute__((vector_size(%d)));\n", (int)n, name,
               v.lanes * v.bits / 8);
}

JOT_FN uint64_t
jot_vector_hash(uint64_t hash)
{
    for (size_t i = 0; i < sizeof vector_helpers / sizeof vector_helpers[0]; i++)
        hash = jot_hash(hash, vector_helpers[i].text, jot_str_len(vector_helpers[i].text));
    for (size_t i = 0; i < sizeof fma_names / sizeof fma_names[0]; i++)
        hash = jot_hash(hash, fma_names[i].body, jot_str_len(fma_names[i].body));
    return hash;
}
