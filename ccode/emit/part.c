/* ccode/emit/part.c - parts of vectors in memory, in the text for gcc and clang: the first lanes,
 * those of a mask, those that lie apart.
 *
 *     jot_stn_f32x8(p, v, 3)    a store under a mask where that is one quick instruction; else the
 *                               halves, and of 16 bytes and less a store for each bit of the size
 *
 * Nothing goes by way of memory: bytes and the zeros behind them are two stores there, for which a
 * load of the whole has to wait. Read before: ccode/emit/dialect_vector.c. */
#include "ccode/emit/print.h"

/* A part of a vector under a mask. Integers of 32 bits and more pass as floats of their width.
 * Stores of these under a mask are AVX-512's: by AVX2's a row of 14 floats is stored 3.5 ns later
 * than by words (Zen 3). %m: the mask, of lanes or of the first n of them. */
typedef struct { int bits, nbytes; const char *target, *load, *store; } MaskName;
#define MASK_AVX2(bits, nbytes, load, store) \
    { bits, nbytes, "__AVX2__", "maskload" load "((const word *)p, %m)", \
      "storeu" store "_mask(p, (word)v, %m)" }
#define MASK_SMALL(bits, nbytes, type) \
    { bits, nbytes, "__AVX512BW__", "loaddqu" type "_mask(p, (word){0}, %m)", \
      "storedqu" type "_mask(p, (word)v, %m)" }
static const MaskName mask_names[] = {
    { 32, 64, "__AVX512DQ__", "loadups512_mask((const float *)p, (word){0}, %m)",
      "storeups512_mask((float *)p, (word)v, %m)" },
    { 64, 64, "__AVX512DQ__", "loadupd512_mask((const double *)p, (word){0}, %m)",
      "storeupd512_mask((double *)p, (word)v, %m)" },
    MASK_AVX2(32, 32, "ps256", "ps256"), MASK_AVX2(64, 32, "pd256", "pd256"),
    MASK_AVX2(32, 16, "ps", "ps128"), MASK_AVX2(64, 16, "pd", "pd128"),
    MASK_SMALL(16, 64, "hi512"), MASK_SMALL(16, 32, "hi256"), MASK_SMALL(16, 16, "hi128"),
    MASK_SMALL(8, 64, "qi512"), MASK_SMALL(8, 32, "qi256"), MASK_SMALL(8, 16, "qi128"),
};

/* Bits of the first n of 8, 16, 32 and 64 lanes, or (of a part that ends in the next) of all. */
static const char mask_first[][40] = {
    "(unsigned char)((1u << n) - 1)", "(unsigned short)((1u << n) - 1)",
    "(unsigned)((1ull << n) - 1)", "", "n > 63 ? ~0ull : (1ull << n) - 1",
};

static const MaskName *
mask_find(const VectorName *v)
{
    for (size_t i = 0; i < sizeof mask_names / sizeof mask_names[0]; i++)
        if (mask_names[i].bits == v->bits && 8 * mask_names[i].nbytes == v->bits * v->lanes)
            return &mask_names[i];
    return NULL;
}

/* Is the mask a bit for each lane? */
static bool
mask_is_bits(const VectorName *v, char what)
{
    return v->bits < 32 || v->bits * v->lanes == 512 || what == 'Q';
}

/* 'O': of those lanes where m is -1, else of the first n */
static void
put_mask_bits(Text *out, const VectorName *v, char what)
{
    bool first = what != 'O';
    int letter = v->bits == 8 ? 'b' : v->bits == 16 ? 'w' : v->bits == 32 ? 'd' : 'q';
    if (mask_is_bits(v, what) && first)
        jot_text_f(out, "%s", mask_first[v->lanes / 16]);
    else if (mask_is_bits(v, what))
        jot_text_f(out, "__builtin_ia32_cvt%c2mask%d((lane)m)", letter, v->bits * v->lanes);
    else if (first) {
        jot_text_f(out, "(lane){0");
        for (int i = 1; i < v->lanes; i++)
            jot_text_f(out, ", %d", i);
        jot_text_f(out, "} < n");
    } else
        jot_text_f(out, "(lane)m");
}

/* The part where it is one instruction; what stands behind it, to '%E', is for other targets. */
JOT_FN bool
jot_vector_mask_text(Text *out, const VectorName *v, char what)
{
    static const char *const integer[] = {"", "char", "short", "", "int", "", "", "", "long long"};
    const MaskName *m = mask_find(v);
    const char *call = !m ? "" : what == 'Q' ? m->store : m->load;
    int nbytes = v->bits / 8;
    if (!m)
        return false;
    jot_text_f(out, nbytes < 4 || (what == 'Q' && m->nbytes < 64)
               ? "#if defined %s && defined __AVX512VL__\n" : "#ifdef %s\n", m->target);
    jot_text_f(out, "    typedef %s word __attribute__((vector_size(%d)));\n",
               nbytes == 8 ? "double" : nbytes == 4 ? "float" : integer[nbytes], m->nbytes);
    if (!mask_is_bits(v, what) || what == 'O')
        jot_text_f(out, "    typedef %s lane __attribute__((vector_size(%d)));\n",
                   integer[nbytes], m->nbytes);
    if (call == m->load)
        jot_text_f(out, "    return (jot_%.*s)__builtin_ia32_", (int)v->n, v->name);
    else
        jot_text_f(out, "    __builtin_ia32_");
    for (; *call; call += *call == '%' ? 2 : 1)
        if (*call == '%')
            put_mask_bits(out, v, what);
        else
            jot_text_put(out, call, 1);
    jot_text_f(out, ";\n#else\n");
    return true;
}

/* Elements that lie apart, under a mask as wide as they are. clang has other names for some. */
typedef struct { int bits, nbytes; const char *target, *call, *clang, *mask; } GatherName;
static const GatherName gather_names[] = {
    { 32, 64, "__AVX512DQ__", "gathersiv16sf", "gathersiv16sf",
      "__builtin_ia32_cvtd2mask512((lane)m)" },
    { 64, 64, "__AVX512DQ__", "gathersiv8df", "gathersiv8df",
      "__builtin_ia32_cvtq2mask512((lane)jot_cv_i64_i32x8(m))" },
    { 32, 32, "__AVX2__", "gathersiv8sf", "gatherd_ps256", "(word)m" },
    { 64, 32, "__AVX2__", "gathersiv4df", "gatherd_pd256", "(word)jot_cv_i64_i32x4(m)" },
    { 32, 16, "__AVX2__", "gathersiv4sf", "gatherd_ps", "(word)m" },
};

JOT_FN bool
jot_vector_gather_text(Text *out, const VectorName *v)
{
    const char *type = v->bits == 64 ? "double" : "float";
    for (size_t i = 0; i < sizeof gather_names / sizeof gather_names[0]; i++) {
        const GatherName *g = &gather_names[i];
        if (g->bits != v->bits || 8 * g->nbytes != v->bits * v->lanes)
            continue;
        jot_text_f(out, "#ifdef %s\n    typedef %s word __attribute__((vector_size(%d)));\n"
                   "    typedef int at __attribute__((vector_size(%d)));\n", g->target, type,
                   g->nbytes, 4 * v->lanes);
        if (g->nbytes == 64)
            jot_text_f(out, "    typedef %s lane __attribute__((vector_size(64)));\n",
                       v->bits == 64 ? "long long" : "int");
        for (int clang = 1; clang >= 0; clang--)
            jot_text_f(out, "%s    return (jot_%.*s)__builtin_ia32_%s((word){0}, (const %s *)p, "
                       "(at)i,\n        %s, %d);\n", clang ? "#ifdef __clang__\n" : "#else\n",
                       (int)v->n, v->name, clang ? g->clang : g->call, type, g->mask, v->bits / 8);
        jot_text_f(out, "#endif\n#else\n");
        return true;
    }
    return false;
}

/* The first n lanes otherwise (words of ccode/emit/dialect_vector.c): loaded, stored; by their
 * bytes, of 64 (nearly every processor that has them has masks; but vectors of 64-bit words that
 * index floats are as wide on any, so they go by halves), 32, 16, and fewer. */
static const char *const first_texts[4][2] = {
    { "    jot_%V v = {0};\n    __builtin_memcpy(&v, p, (unsigned)n * %Bu);\n    return v;\n",
      "    __builtin_memcpy(p, &v, (unsigned)n * %Bu);\n" },
    { "    const jot_%h none = {0};\n    return n >= %L / 2\n        ? jot_join_%V("
      "jot_ld_%h(p), jot_ldn_%h((const char *)p + %L / 2 * %B, n - %L / 2))\n"
      "        : jot_join_%V(jot_ldn_%h(p, n), none);\n",
      "    if (n >= %L / 2) {\n        jot_st_%h(p, jot_lo_%V(v));\n"
      "        jot_stn_%h((char *)p + %L / 2 * %B, jot_hi_%V(v), n - %L / 2);\n"
      "    } else\n        jot_stn_%h(p, jot_lo_%V(v), n);\n" },
    { "    const unsigned nbytes = (unsigned)n * %Bu;\n    return (jot_%V)(nbytes >= 8\n"
      "        ? (jot_u64x2){jot_get_u64x2(p, 8),\n"
      "            jot_get_u64x2((const char *)p + 8, nbytes - 8)}\n"
      "        : (jot_u64x2){jot_get_u64x2(p, nbytes), 0});\n",
      "    jot_put_u64x2(p, (jot_u64x2)v, (unsigned)n * %Bu);\n" },
    { "    const jot_u64 w = jot_get_u64x2(p, (unsigned)n * %Bu);\n    jot_%V v;\n"
      "    __builtin_memcpy(&v, &w, sizeof v);\n    return v;\n",
      "    jot_u64x2 w = {0};\n    __builtin_memcpy(&w, &v, sizeof v);\n"
      "    jot_put_u64x2(p, w, (unsigned)n * %Bu);\n" },
};

static int
first_form(int bits, int nbytes)
{
    return nbytes >= 64 ? bits == 64 : nbytes == 32 ? 1 : nbytes == 16 ? 2 : 3;
}

JOT_FN const char *
jot_part_text(const VectorName *v, bool store)
{
    return first_texts[first_form(v->bits, v->lanes * v->bits / 8)][store];
}

JOT_FN uint64_t
jot_part_hash(uint64_t hash)
{
    for (size_t i = 0; i < sizeof mask_names / sizeof mask_names[0]; i++) {
        hash = jot_hash(hash, mask_names[i].load, jot_str_len(mask_names[i].load));
        hash = jot_hash(hash, mask_names[i].store, jot_str_len(mask_names[i].store));
    }
    hash = jot_hash(hash, mask_first, sizeof mask_first);
    for (size_t i = 0; i < sizeof gather_names / sizeof gather_names[0]; i++)
        hash = jot_hash(hash, gather_names[i].mask, jot_str_len(gather_names[i].mask));
    for (size_t i = 0; i < 8; i++)
        hash = jot_hash(hash, first_texts[i / 2][i % 2], jot_str_len(first_texts[i / 2][i % 2]));
    for (int bits = 8; bits <= 64; bits *= 2) {
        int form = first_form(bits, 64);
        hash = jot_hash(hash, &form, sizeof form);
    }
    return hash;
}
