/* ccode/device/emit_matrix.c - the text of what a CUDA device has for products of small matrices,
 * and for what goes to a group's memory past the registers.
 *
 *     jot_mma_bf16_2x4x2_k1040_t528(&acc, .., ta + .., tb + ..)   a warp: 32 x 32 results, 32 terms
 *     jot_wgmma_f16_1x16x2_k1040_k1040(..)                        four warps: 64 x 128 results,
 *                                                                 begun: others may follow
 *     jot_wgmma_wait1(); jot_wgmma_done_64(&acc, ..)              all but the last are done; all,
 *                                                                 and the sums may be read
 *
 * The name says it all: steps of m, n and k, and how each operand lies in the group's memory, in
 * rows of 16 bytes. k: a row has neighbours of k, those of another m or n follow; t: it is turned,
 * a row has neighbours of m (n), and k's follow. Behind it: elements from there to the next 16
 * bytes of the same row.
 *
 *     k   (m, k) at k/V * far + m * V + k%V
 *     t   (m, k) at m/V * far + k * V + m%V       V: 8, of f32 4
 *     kz  (m, k) at k/64 * far + m * 64 + (k/8 ^ m) % 8 * 8 + k%8
 *     tz  (m, k) at m/64 * far + k * 64 + (m/8 ^ k) % 8 * 8 + m%8
 *
 * f32 is there already rounded to tf32 (contract_grid_make.c): the unit would cut its last 13 bits
 * off. Rows that follow each other lie on banks of their own: ldmatrix brings eight of them at
 * once, turned or not, and four warps' instructions read them by a descriptor. Chips without the
 * instruction, and items of a device that is none, sum terms one by one.
 *
 * Who holds what is PTX's: item 4g + i has rows g and g + 8, columns 2i and 2i + 1 of each 16 x 8
 * results.
 *
 *   requires  a name of ccode/device/walk_matrix.c      keeps  nothing to keep      breaks  nothing
 *
 * Read before: ccode/device/emit_device.c, ccode/device/walk_matrix.c. */
#include "ccode/device/device.h"

typedef struct {
    bool group;                 /* four warps have it together */
    int done;                   /* sums that are waited for: no product */
    const char *dtype, *type;   /* "bf16"; of elements in memory */
    int m, n, k;                /* steps */
    bool transposed[2], swizzled[2];
    int far[2], row, nbytes;    /* V and bytes of an element */
} MatrixText;

static int
read_int(const char *name, size_t n, size_t *at)
{
    int value = 0;
    while (*at < n && name[*at] >= '0' && name[*at] <= '9' && value < 1 << 20)
        value = value * 10 + (name[(*at)++] - '0');
    return value;
}

static bool
eat_word(const char *name, size_t n, size_t *at, const char *word)
{
    size_t len = jot_str_len(word);
    if (n - *at < len || memcmp(name + *at, word, len) != 0)
        return false;
    *at += len;
    return true;
}

static bool
read_name(const char *name, size_t n, MatrixText *x)
{
    size_t at = 0;
    memset(x, 0, sizeof *x);
    if (eat_word(name, n, &at, "jot_wgmma_done_")) {
        x->done = read_int(name, n, &at);
        return at == n && x->done > 0;
    }
    x->group = eat_word(name, n, &at, "jot_wgmma_");
    if (!x->group && !eat_word(name, n, &at, "jot_mma_"))
        return false;
    x->dtype = eat_word(name, n, &at, "bf16_") ? "bf16" : eat_word(name, n, &at, "f16_") ? "f16"
             : eat_word(name, n, &at, "f32_") ? "tf32" : NULL;
    if (!x->dtype)
        return false;
    x->type = x->dtype[0] == 't' ? "float" : "jot_u16";
    x->nbytes = x->dtype[0] == 't' ? 4 : 2;
    x->row = 16 / x->nbytes;
    x->m = read_int(name, n, &at);
    x->n = eat_word(name, n, &at, "x") ? read_int(name, n, &at) : 0;
    x->k = eat_word(name, n, &at, "x") ? read_int(name, n, &at) : 0;
    for (int i = 0; i < 2; i++) {
        x->transposed[i] = eat_word(name, n, &at, "_t");
        if (!x->transposed[i] && !eat_word(name, n, &at, "_k"))
            return false;
        x->swizzled[i] = eat_word(name, n, &at, "z");
        x->far[i] = read_int(name, n, &at);
    }
    return at == n && x->m > 0 && x->n > 0 && x->k > 0;
}

static void
put_head(const MatrixText *x, const char *name, size_t n, Text *out)
{
    jot_text_f(out, "static __device__ __forceinline__ void\n%.*s(", (int)n, name);
    for (int i = 0; i < x->done - 1; i++)
        jot_text_f(out, "float *d%d,%s", i, i % 8 == 7 ? "\n    " : " ");
    if (x->done) {
        jot_text_f(out, "float *d%d)\n{\n", x->done - 1);
        return;
    }
    for (int i = 0; i < 4 * x->m * x->n; i++)
        jot_text_f(out, "float *d%d,%s", i, i % 8 == 7 ? "\n    " : " ");
    jot_text_f(out, "const %s *a, const %s *b)\n{\n    const int lane = threadIdx.x %% 32;\n",
               x->type, x->type);
}

/* ---- term by term ------------------------------------------------------------------------- */

/* Element (outer, k) of operand i, as a float. */
static void
put_element(const MatrixText *x, int i, const char *outer, int add, Text *out)
{
    const char *name = i ? "b" : "a";
    if (x->row == 8)
        jot_text_f(out, "jotm_%s_to_f32", x->dtype);
    jot_text_f(out, "(");
    if (x->swizzled[i]) {
        const char *row = x->transposed[i] ? "k" : outer, *by = x->transposed[i] ? outer : "k";
        int a = x->transposed[i] ? 0 : add, b = x->transposed[i] ? add : 0;
        jot_text_f(out, "%s[(%s + %d) / 64 * %d + (%s + %d) * 64"
                   " + ((%s + %d) / 8 ^ (%s + %d)) %% 8 * 8 + (%s + %d) %% 8])",
                   name, by, b, x->far[i], row, a, by, b, row, a, by, b);
    } else if (x->transposed[i])
        jot_text_f(out, "%s[(%s + %d) / %d * %d + k * %d + (%s + %d) %% %d])", name, outer, add,
                   x->row, x->far[i], x->row, outer, add, x->row);
    else
        jot_text_f(out, "%s[k / %d * %d + (%s + %d) * %d + k %% %d])", name, x->row, x->far[i],
                   outer, add, x->row, x->row);
}

static void
put_plain(const MatrixText *x, Text *out)
{
    jot_text_f(out, "    const int row = lane / 4%s, column = lane %% 4 * 2;\n",
               x->group ? " + threadIdx.x / 32 % 4 * 16" : "");
    jot_text_f(out, "    for (int k = 0; k < %d; k++) {\n", 2 * x->row * x->k);
    for (int i = 0; i < 2 * x->m; i++) {
        jot_text_f(out, "        const float x%d = ", i);
        put_element(x, 0, "row", i * 8, out);
        jot_text_f(out, ";\n");
    }
    for (int j = 0; j < x->n; j++) {
        for (int r = 0; r < 2; r++) {
            jot_text_f(out, "        const float y%d = ", 2 * j + r);
            put_element(x, 1, "column", j * 8 + r, out);
            jot_text_f(out, ";\n");
        }
        for (int i = 0; i < 4 * x->m; i++) {
            int d = (i / 4 * x->n + j) * 4 + i % 4;
            jot_text_f(out, "        *d%d = fmaf(x%d, y%d, *d%d);\n", d, i / 2, 2 * j + i % 2, d);
        }
    }
    jot_text_f(out, "    }\n");
}

/* ---- by warps ----------------------------------------------------------------------------- */

/* Where an item's row of four matrices is: of a (m, m + 8 | k, k + 8), of b (k, k + 8 | n, n +
 * 8). */
static void
put_rows(const MatrixText *x, int i, Text *out)
{
    bool first = x->transposed[i] == (i == 1); /* the row number runs on into the second matrix */
    jot_text_f(out, "    const jot_u32 p%d = (jot_u32)__cvta_generic_to_shared(%s + (", i,
               i ? "b" : "a");
    if (first)
        jot_text_f(out, "lane / 16 * %d + lane %% 16 * %d));\n", x->far[i], x->row);
    else
        jot_text_f(out, "lane / 8 %% 2 * %d + (lane %% 8 + lane / 16 * 8) * %d));\n", x->far[i],
                   x->row);
}

/* Bytes to step `part` of 16 along m or n, and to step k. */
static int
far_off(const MatrixText *x, int i, int part, int k)
{
    int along = x->transposed[i] ? 16 / x->row * x->far[i] : 16 * x->row;
    int terms = x->transposed[i] ? 2 * x->row * x->row : 2 * x->far[i];
    if (x->swizzled[i])
        return x->transposed[i] ? 2048 * k : k / 4 * x->far[i] * x->nbytes + k % 4 * 32;
    return x->nbytes * (part * along + k * terms);
}

/* `count` registers from r{first} on. */
static void
put_load(const MatrixText *x, int i, const char *r, int first, int count, int offset, Text *out)
{
    jot_text_f(out, "    asm volatile(\"ldmatrix.sync.aligned.m8n8.x%d%s.shared.b16 {", count,
               x->transposed[i] ? ".trans" : "");
    for (int e = 0; e < count; e++)
        jot_text_f(out, e ? ", %%%d" : "%%%d", e);
    jot_text_f(out, "}, [%%%d+%d];\"\n        : ", count, offset);
    for (int e = 0; e < count; e++)
        jot_text_f(out, "%s\"=r\"(%s%d)", e ? ", " : "", r, first + e);
    jot_text_f(out, " : \"r\"(p%d) : \"memory\");\n", i);
}

/* d += a x b; half: by two instructions of half as many terms. */
static void
put_product(const MatrixText *x, int i, int j, bool half, Text *out)
{
    const char *dtype = x->dtype;
    for (int k = 0; k <= half; k++) {
        jot_text_f(out, "    asm volatile(\"mma.sync.aligned.m16n8k%d.row.col.f32.%s.%s.f32 ",
                   x->row == 4 || half ? 8 : 16, dtype, dtype);
        jot_text_f(out, "{%%0, %%1, %%2, %%3}, ");
        jot_text_f(out,
                   half ? "{%%4, %%5}, {%%6}, {%%0, %%1, %%2, %%3};\"\n        : "
                        : "{%%4, %%5, %%6, %%7}, {%%8, %%9}, {%%0, %%1, %%2, %%3};\"\n        : ");
        for (int e = 0; e < 4; e++)
            jot_text_f(out, "%s\"+f\"(*d%d)", e ? ", " : "", (i * x->n + j) * 4 + e);
        jot_text_f(out, " : ");
        for (int e = 0; e < (half ? 2 : 4); e++)
            jot_text_f(out, "\"r\"(a%d), ", 4 * i + 2 * k * half + e);
        jot_text_f(out, half ? "\"r\"(b%d));\n" : "\"r\"(b%d), \"r\"(b%d));\n", j % 2 * 2 + k,
                   j % 2 * 2 + 1);
    }
}

static void
put_warp(const MatrixText *x, bool half, Text *out)
{
    put_rows(x, 0, out);
    put_rows(x, 1, out);
    jot_text_f(out, "    jot_u32 b0, b1, b2, b3");
    for (int i = 0; i < 4 * x->m; i++)
        jot_text_f(out, ", a%d", i);
    jot_text_f(out, ";\n");
    for (int k = 0; k < x->k; k++) {
        for (int i = 0; i < x->m; i++)
            put_load(x, 0, "a", 4 * i, 4, far_off(x, 0, i, k), out);
        for (int j = 0; j < x->n; j++) {
            if (j % 2 == 0)
                put_load(x, 1, "b", 0, j + 1 < x->n ? 4 : 2, far_off(x, 1, j / 2, k), out);
            for (int i = 0; i < x->m; i++)
                put_product(x, i, j, half, out);
        }
    }
}

/* ---- by four warps ------------------------------------------------------------------------ */

/* Start, and from 16 bytes to the next, as the descriptor has them: along k, and along m or n; that
 * pieces of lines have traded places. */
static void
put_descriptor(const MatrixText *x, int i, Text *out)
{
    int far = x->far[i] * x->nbytes / 16, leading = x->transposed[i] ? 8 : far;
    int stride = x->transposed[i] ? far : 8;
    if (x->swizzled[i]) { /* between lines of m or n; between eight lines */
        leading = far;
        stride = 64;
    }
    jot_text_f(out,
               "    const jot_u64 p%d = ((jot_u64)__cvta_generic_to_shared(%s) & 0x3ffff) >> 4 | "
               "(jot_u64)%d << 16 | (jot_u64)%d << 32%s;\n",
               i, i ? "b" : "a", leading, stride, x->swizzled[i] ? " | (jot_u64)1 << 62" : "");
}

static void
put_sums(int n, Text *out)
{
    for (int e = 0; e < n; e++)
        jot_text_f(out, "%s\"+f\"(*d%d)", e ? e % 8 ? ", " : ",\n        " : "", e);
}

/* No reader of the sums may come before it. */
static void
put_done(const MatrixText *x, Text *out)
{
    jot_text_f(out, "    asm volatile(\"wgmma.wait_group.sync.aligned 0;\"\n        : ");
    put_sums(x->done, out);
    jot_text_f(out, " : : \"memory\");\n");
}

static void
put_group(const MatrixText *x, Text *out)
{
    int sums = 4 * x->n;
    put_descriptor(x, 0, out);
    put_descriptor(x, 1, out);
    jot_text_f(out, "    asm volatile(\"wgmma.fence.sync.aligned;\\n\"\n");
    for (int k = 0; k < x->k; k++) {
        jot_text_f(out, "        \"wgmma.mma_async.sync.aligned.m64n%dk%d.f32.%s.%s {", 8 * x->n,
                   2 * x->row, x->dtype, x->dtype);
        for (int e = 0; e < sums; e++)
            jot_text_f(out, e ? e % 16 ? ", %%%d" : ",\"\n        \" %%%d" : "%%%d", e);
        jot_text_f(out, "},\"\n        \" %%%d, %%%d, 1, 1, 1", sums + 2 * k, sums + 2 * k + 1);
        if (x->row == 8) /* words are never turned */
            jot_text_f(out, ", %d, %d", x->transposed[0], x->transposed[1]);
        jot_text_f(out, ";\\n\"\n");
    }
    jot_text_f(out, "        \"wgmma.commit_group.sync.aligned;\"\n        : ");
    put_sums(sums, out);
    jot_text_f(out, "\n        : ");
    for (int k = 0; k < x->k; k++)
        jot_text_f(out, "%s\"l\"(p0 + %d), \"l\"(p1 + %d)", k ? ", " : "", far_off(x, 0, 0, k) / 16,
                   far_off(x, 1, 0, k) / 16);
    jot_text_f(out, " : \"memory\");\n");
}

/* ---- all of them -------------------------------------------------------------------------- */

typedef struct { const char *name, *text; } MatrixHelper;
/* One instruction, where the chip has it. */
#define MATRIX_ASM(name, where, text) \
    { name, "static __device__ __forceinline__ void\n" name "(void)\n{\n" where "\n" \
      "    asm volatile(\"" text ";\" : : : \"memory\");\n#endif\n}\n" }
static const MatrixHelper matrix_helpers[] = {
    /* rounded to 10 bits behind the point */
    { "jot_tf32", "static __device__ __forceinline__ float\njot_tf32(float x)\n{\n"
      "    union { float f; jot_u32 u; } bits;\n    bits.f = x;\n#if __CUDA_ARCH__ >= 800\n"
      "    asm(\"cvt.rna.tf32.f32 %0, %1;\" : \"=r\"(bits.u) : \"f\"(x));\n#else\n"
      "    bits.u = x != x ? bits.u : (bits.u + 0x1000u) & ~(jot_u32)0x1fff;\n"
      "#endif\n    return bits.f;\n}\n" },
    /* 16 bytes to the group's memory, or zeros; past the registers where the chip can do that */
    { "jot_copy16", "static __device__ __forceinline__ void\n"
      "jot_copy16(void *to, const void *from, int inside)\n{\n"
      "#if __CUDA_ARCH__ >= 800\n"
      "    asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16, %2;\"\n"
      "        : : \"r\"((jot_u32)__cvta_generic_to_shared(to)), \"l\"(from),\n"
      "            \"r\"(inside ? 16 : 0) : \"memory\");\n"
      "#else\n    typedef struct __align__(16) { jot_u32 v[4]; } wide;\n"
      "    wide v = {{0, 0, 0, 0}};\n"
      "    if (inside)\n        v = *(const wide *)from;\n    *(wide *)to = v;\n#endif\n}\n" },
    /* where an element of lines of 128 bytes is, from a multiple of eight lines on */
    { "jot_swizzled", "static __device__ __forceinline__ int\njot_swizzled(int at)\n{\n"
      "    return at ^ (at >> 3 & 56);\n}\n" },
    MATRIX_ASM("jot_copies_group", "#if __CUDA_ARCH__ >= 800", "cp.async.commit_group"),
    /* all but the last one, or two */
    MATRIX_ASM("jot_copies_wait1", "#if __CUDA_ARCH__ >= 800", "cp.async.wait_group 1"),
    MATRIX_ASM("jot_copies_wait2", "#if __CUDA_ARCH__ >= 800", "cp.async.wait_group 2"),
    MATRIX_ASM("jot_copies_wait", "#if __CUDA_ARCH__ >= 800", "cp.async.wait_all"),
    /* four warps' products are done, all or but the last one */
    MATRIX_ASM("jot_wgmma_wait0", "#ifdef __CUDA_ARCH_FEAT_SM90_ALL",
               "wgmma.wait_group.sync.aligned 0"),
    MATRIX_ASM("jot_wgmma_wait1", "#ifdef __CUDA_ARCH_FEAT_SM90_ALL",
               "wgmma.wait_group.sync.aligned 1"),
    /* what was written is seen by instructions of four warps, behind the next barrier */
    MATRIX_ASM("jot_matrix_fence", "#if __CUDA_ARCH__ >= 900", "fence.proxy.async.shared::cta"),
};
#undef MATRIX_ASM

JOT_FN bool
jot_matrix_helper(const char *name, size_t n, Text *out)
{
    MatrixText x;
    bool half;
    for (size_t i = 0; i < sizeof matrix_helpers / sizeof matrix_helpers[0]; i++)
        if (jot_str_len(matrix_helpers[i].name) == n &&
            memcmp(matrix_helpers[i].name, name, n) == 0) {
            jot_text_f(out, "%s", matrix_helpers[i].text);
            return true;
        }
    if (!read_name(name, n, &x))
        return false;
    put_head(&x, name, n, out);
    if (x.done) {
        jot_text_f(out, "#ifdef __CUDA_ARCH_FEAT_SM90_ALL\n");
        put_done(&x, out);
        jot_text_f(out, "#endif\n}\n");
        return true;
    }
    half = jot_str_eq(x.dtype, "f16");
    jot_text_f(out, x.group ? "#ifdef __CUDA_ARCH_FEAT_SM90_ALL\n" : "#if __CUDA_ARCH__ >= 800\n");
    (void)(x.group ? put_group(&x, out) : put_warp(&x, false, out));
    if (!x.group && half) {
        jot_text_f(out, "#elif __CUDA_ARCH__ == 750\n");
        put_warp(&x, true, out);
    }
    jot_text_f(out, "#else\n");
    put_plain(&x, out);
    jot_text_f(out, "#endif\n}\n");
    return true;
}

/* ---- what kernels say --------------------------------------------------------------------- */

JOT_FN void
jot_print_matrix(Printer *p, const Inst *in)
{
    const uint32_t *arg = &p->code->args.v[in->arg];
    MatrixUnit x = jot_matrix_unit(in->c);
    int sums = in->narg - 2;
    if (!x.k)
        jot_text_f(p->out, "jot_wgmma_done_%d(", sums);
    else
        jot_text_f(p->out, "jot_%s_%s_%dx%dx%d_%s%s%d_%s%s%d(", x.warps == 4 ? "wgmma" : "mma",
                   jot_dtype_name((jot_DType)in->dtype), x.m, x.n, x.k, x.transposed[0] ? "t" : "k",
                   x.swizzled[0] ? "z" : "", x.far[0], x.transposed[1] ? "t" : "k",
                   x.swizzled[1] ? "z" : "", x.far[1]);
    for (int i = 0; i < sums; i++)
        jot_print_f(p, x.k || i < sums - 1 ? "&%w, " : "&%w);\n", arg[i]);
    if (x.k)
        jot_print_f(p, "%b + %2w, %b + %2w);\n", in->aux >> 16, arg[sums], in->aux & 0xffff,
                    arg[sums + 1]);
}

JOT_FN void
jot_print_copy(Printer *p, const Inst *in)
{
    const uint32_t *arg = &p->code->args.v[in->arg];
    bool swizzled = jot_group_swizzled(p->s, &p->k->bufs.v[in->aux >> 16]);
    jot_print_f(p, swizzled ? "jot_copy16(%b + jot_swizzled(%w), %b + %2w, %s"
                            : "jot_copy16(%b + %2w, %b + %2w, %s", in->aux >> 16, arg[0],
                in->aux & 0xffff, arg[1], in->narg > 2 ? "" : "1");
    jot_print_conditions(p, in, 2, WHOLE);
    jot_text_f(p->out, ");\n");
}

JOT_FN void
jot_print_barrier(Printer *p, const Inst *in)
{
    const char *end = in->aux & BARRIER_ONLY ? "\n" : " ";
    if (in->aux & BARRIER_PRODUCTS)
        jot_text_f(p->out, "jot_wgmma_wait%d();%s", (int)in->c.i, end);
    if (in->aux & BARRIER_GROUP)
        jot_text_f(p->out, "jot_copies_group();%s", end);
    if (in->aux & BARRIER_COPIES && in->c.i)
        jot_text_f(p->out, "jot_copies_wait%d();%s", (int)in->c.i, end);
    else if (in->aux & BARRIER_COPIES)
        jot_text_f(p->out, "jot_copies_wait();%s", end);
    if (in->aux & BARRIER_FENCE)
        jot_text_f(p->out, "jot_matrix_fence(); ");
    if (!(in->aux & BARRIER_ONLY))
        jot_text_f(p->out, "%s;\n", p->d->device->barrier);
}
