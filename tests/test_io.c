/* test_io.c - files of named tensors (io.h): those that safetensors, NumPy, gguf and PyTorch wrote
 * (tests/ref/io.py), value for value and key for key; what jot writes, read back, and byte for byte
 * where a package writes the same; a net's state from a file; what is refused to be written.
 *
 *     test_io FOLDER      leaves x.safetensors, x.npz, x.npy, x.gguf there, for
 *                         tests/ref/io.py check
 *
 * Guards: io/file.c io/format.c io/map.c io/take.c io/blocks.c io/write.c io/out.c io/safetensors.c
 * io/npy.c io/zip.c io/gguf.c io/pickle.c io/torch.c */
#include <sys/stat.h>
#include "tests/io_files.h"

static jot_Ctx *c;

static jot_File *
opened(const char *name, const char *format)
{
    for (int k = 0; k < REF_FILES; k++)
        if (!strcmp(ref_files[k].name, name)) {
            jot_File *f = jot_file_memory(name, ref_files[k].p, ref_files[k].n);
            CHECK(!f->status && !strcmp(f->format, format), "%s: %s", name, f->message);
            return f;
        }
    return NULL;
}

/* Tensor `name` has this dtype and shape, and element k is value(k) of where it comes from. */
static void
is_at(int line, jot_File *f, const char *name, jot_DType dtype, jot_Ints shape, const int *from,
      double scale)
{
    jot_push(c);
    int64_t k = jot_file_find(f, name);
    jot_Var v = jot_file_var(c, f, k);
    CHECK(jot_ok(v) && jot_dtype(v) == dtype && jot_rank(v) == shape.n, "line %d: %s: %s", line,
          name, jot_message(c));
    for (int d = 0; jot_ok(v) && d < shape.n; d++)
        CHECK(jot_extent(v, d) == shape.v[d], "line %d: %s: extent %d", line, name, d);
    const double *is = jot_data(jot_cast(v, JOT_F64));
    for (int64_t e = 0; is && e < jot_nelem(v); e++) {
        double want = io_value(from ? from[e] : e) * scale;
        CHECK(is[e] == (scale != 0 ? want : is[e]), "line %d: %s[%d]: %g, not %g", line, name,
              (int)e, is[e], want);
    }
    jot_clear(c);
    jot_pop(c);
}
#define IS(f, name, dtype, ...) is_at(__LINE__, f, name, dtype, JOT_SHAPE(__VA_ARGS__), NULL, 1)
#define LIES(f, name, dtype, from, ...) \
    is_at(__LINE__, f, name, dtype, JOT_SHAPE(__VA_ARGS__), from, 1)
#define SHAPED(f, name, dtype, ...) is_at(__LINE__, f, name, dtype, JOT_SHAPE(__VA_ARGS__), NULL, 0)

static double
item(jot_File *f, const char *name)
{
    return jot_item(jot_file_var(c, f, jot_file_find(f, name)));
}

/* ---- what others wrote ---- */

static void
test_safetensors(void)
{
    jot_File *f = opened("safetensors", "safetensors");
    jot_Text k = jot_meta_text(f, "k");

    CHECK(f->count == 7 && f->metas == 1, "%d", (int)f->count);
    CHECK(k.n == 6 && !memcmp(k.p, "v \303\251\n\"", 6), "%.*s", (int)k.n, k.p);
    IS(f, "w", JOT_F32, 2, 3);
    IS(f, "h", JOT_F16, 4);
    IS(f, "bf", JOT_BF16, 2, 1);
    SHAPED(f, "e", JOT_F32, 0, 3);
    CHECK(item(f, "i") == 5, "i");
    const uint8_t *b = jot_data_bool(jot_file_var(c, f, jot_file_find(f, "b")));
    CHECK(b && b[0] && !b[1] && b[2], "b");
    int64_t k8 = jot_file_find(f, "f8");
    CHECK(k8 >= 0 && !strcmp(f->tensor[k8].type, "F8_E4M3") && f->tensor[k8].nbytes == 2, "f8");
    RAISED(c, jot_ok(jot_file_var(c, f, k8)), JOT_EDTYPE, "f8 is of type F8_E4M3");
    RAISED(c, jot_ok(jot_file_blocks(c, f, k8)), JOT_EUSE, "f8 of type F8_E4M3");
    RAISED(c, jot_ok(jot_file_var(c, f, 7)), JOT_ERANGE, "tensor 7 asked, 7 found");
    RAISED(c, jot_ok(jot_file_var(c, f, -1)), JOT_ERANGE, "none of that name");
    float w[6];
    int64_t kw = jot_file_find(f, "w");
    RAISED(c, jot_file_copy(c, f, kw, w, 20), JOT_ESHAPE, "24 bytes, room for 20");
    CHECK(jot_file_copy(NULL, f, kw, w, 24) && (double)w[5] == io_value(5), "copy");
    CHECK(!jot_file_copy(NULL, f, 99, w, 24), "nobody is told");
    jot_file_close(f);
}

static void
test_npy(void)
{
    static const int turned[] = {0, 1, 2, 3, 4, 5};
    jot_File *f = opened("npy", "npy");

    IS(f, "", JOT_F32, 2, 3);
    CHECK(f->tensor->data == ref_io_npy + 128, "lies elsewhere");
    jot_file_close(f);
    f = opened("npy_turned", "npy");
    CHECK(!strcmp(f->tensor->type, ">i2") && !f->tensor->data, "%s", f->tensor->type);
    jot_Var v = jot_file_var(c, f, 0);
    const int16_t *is = jot_data_i16(v);
    for (int k = 0; is && k < 6; k++)
        CHECK(is[k] == (int16_t)io_value(turned[k]), "%d: %d", k, is[k]);
    CHECK(is && jot_extent(v, 1) == 3, "shape");
    jot_file_close(f);
    f = opened("npy_scalar", "npy");
    CHECK(item(f, "") == 3.5 && f->tensor->rank == 0, "scalar");
    jot_file_close(f);
    f = opened("npy_text", "npy");
    RAISED(c, jot_ok(jot_file_var(c, f, 0)), JOT_EDTYPE, "<U2");
    jot_file_close(f);
    f = opened("npz", "npz");
    IS(f, "w", JOT_F32, 2, 3);
    SHAPED(f, "b", JOT_BOOL, 2);
    jot_file_close(f);
    if (*jot_file_can("deflate")) {
        SKIP("%s", jot_file_can("deflate"));
        return;
    }
    f = opened("npz_deflated", "npz");
    IS(f, "w", JOT_F32, 4, 50);
    SHAPED(f, "e", JOT_F64, 0, 2);
    jot_file_close(f);
}

static void
test_gguf_values(jot_File *f)
{
    const jot_Meta *tokens = jot_meta(f, "tokens"), *scores = jot_meta(f, "scores");
    const jot_Meta *kinds = jot_meta(f, "kinds"), *nest = jot_meta(f, "nest");
    jot_Text name = jot_meta_text(f, "name");

    CHECK(jot_meta_int(f, "llama.block_count", 0) == 5, "count");
    CHECK(jot_meta_float(f, "eps", 0) == 0.0009765625, "eps");
    CHECK(jot_meta_float(f, "llama.block_count", 0) == 5 && jot_meta_float(f, "name", 7) == 7, "5");
    CHECK(jot_meta_int(f, "yes", 0) == 1 && jot_meta(f, "yes")->kind == JOT_META_BOOL, "yes");
    CHECK(jot_meta_int(f, "none", 9) == 9 && jot_meta_int(f, "name", 8) == 8, "none");
    CHECK(jot_meta_int(f, "big", 0) == -((int64_t)1 << 40), "big");
    CHECK(jot_meta_int(f, "small", 0) == 200 && jot_meta_int(f, "i8", 0) == -5, "8 bits");
    CHECK(jot_meta_int(f, "u16", 0) == 65535 && jot_meta_int(f, "i16", 0) == -300, "16 bits");
    CHECK(jot_meta_int(f, "u64", 0) == INT64_MIN + 1 && jot_meta_float(f, "f64", 0) == 0.1, "64");
    CHECK(name.n == 3 && !memcmp(name.p, "h\303\251", 3) && !jot_meta_text(f, "eps").p, "name");
    CHECK(tokens && tokens->list && tokens->kind == JOT_META_TEXT && tokens->count == 3
          && tokens->texts[1].n == 2 && !memcmp(tokens->texts[1].p, "bb", 2) && !tokens->texts[2].n,
          "tokens");
    CHECK(scores && scores->kind == JOT_META_FLOAT && scores->floats[1] == -1, "scores");
    CHECK(kinds && kinds->kind == JOT_META_INT && kinds->ints[1] == -2 && kinds->count == 3,
          "kinds");
    CHECK(nest && nest->kind == JOT_META_OTHER && nest->list && nest->count == 2, "nest");
}

static void
test_gguf(void)
{
    static const struct { const char *name; const float *want; size_t n; } packed[] = {
        {"Q8_0", ref_io_q8_0, 64}, {"Q4_0", ref_io_q4_0, 64}, {"Q4_K", ref_io_q4_k, 256},
        {"Q6_K", ref_io_q6_k, 256},
    };
    jot_File *f = opened("gguf", "gguf");
    float x[256];

    test_gguf_values(f);
    IS(f, "f32", JOT_F32, 2, 32);
    IS(f, "f16", JOT_F16, 2, 32);
    IS(f, "BF16", JOT_BF16, 2, 32);
    SHAPED(f, "i32", JOT_I32, 3);
    SHAPED(f, "Q8_0", JOT_F32, 2, 32);
    SHAPED(f, "Q4_0", JOT_F32, 2, 32);
    for (size_t kind = 0; kind < sizeof packed / sizeof *packed; kind++) {
        int64_t at = jot_file_find(f, packed[kind].name);
        CHECK(jot_file_copy(c, f, at, x, 4 * packed[kind].n), "%s", jot_message(c));
        for (size_t k = 0; k < packed[kind].n; k++)
            CHECK(x[k] == packed[kind].want[k], "%s[%zu]: %g, not %g", packed[kind].name, k,
                  (double)x[k], (double)packed[kind].want[k]);
    }
    int64_t q5 = jot_file_find(f, "Q5_K"), q8 = jot_file_find(f, "Q8_0");
    RAISED(c, jot_ok(jot_file_var(c, f, q5)), JOT_EDTYPE, "Q5_K");
    jot_Var b = jot_file_blocks(c, f, q5), b8 = jot_file_blocks(c, f, q8);
    CHECK(jot_rank(b) == 3 && jot_extent(b, 1) == 1 && jot_extent(b, 2) == 176, "blocks");
    CHECK(jot_extent(b8, 0) == 2 && jot_extent(b8, 2) == 34 && jot_data(b8) == f->tensor[q8].data,
          "blocks lie elsewhere");
    CHECK(f->tensor[q8].block == 32 && f->tensor[q8].block_nbytes == 34, "block");
    jot_file_close(f);
}

static void
test_torch(void)
{
    static const int turned[] = {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11};
    static const int slice[] = {1, 2, 5, 6, 9, 10}, second[] = {4, 5, 6, 7};
    jot_File *f = opened("pt", "pt");

    IS(f, "x", JOT_F32, 3, 4);
    LIES(f, "turned", JOT_F32, turned, 4, 3);
    LIES(f, "slice", JOT_F32, slice, 3, 2);
    LIES(f, "p", JOT_F32, second, 4);
    IS(f, "h", JOT_F16, 4);
    IS(f, "bf", JOT_BF16, 4);
    SHAPED(f, "none", JOT_F32, 0, 3);
    SHAPED(f, "u16", JOT_U16, 2);
    SHAPED(f, "b", JOT_BOOL, 2);
    CHECK(item(f, "i") == 7, "i");
    CHECK(jot_meta_int(f, "n.k.0", 0) == 1 && jot_meta_float(f, "n.k.1", 0) == 2.5, "n.k");
    CHECK(jot_meta_text(f, "n.k.2").n == 1 && jot_meta(f, "n.k.3")->kind == JOT_META_OTHER, "n.k");
    CHECK(jot_meta(f, "n.k.4")->kind == JOT_META_BOOL && jot_meta_int(f, "n.k.5", 0) == -3, "n.k");
    CHECK(jot_meta_int(f, "n.k.6", 0) == (int64_t)1 << 40 && jot_meta_int(f, "n.2.0", 0) == 4, "n");
    jot_file_close(f);
    f = opened("pt_4", "pt");
    IS(f, "x", JOT_F32, 2);
    jot_file_close(f);
    f = opened("pt_one", "pt");
    IS(f, "", JOT_F32, 2);
    jot_file_close(f);
    f = opened("pt_optim", "pt");
    SHAPED(f, "model.0.weight", JOT_F32, 2, 3);
    CHECK(jot_meta_float(f, "optim.param_groups.0.lr", 0) == 0.5, "lr");
    CHECK(jot_meta_int(f, "epoch", 0) == 3, "epoch");
    jot_file_close(f);
    f = jot_file_memory("o", ref_io_pt_object, sizeof ref_io_pt_object);
    CHECK(f->status == JOT_EIO && strstr(f->message, "an object of __main__.Stranger found"), "%s",
          f->message);
    jot_file_close(f);
    f = jot_file_memory("r", ref_io_pt_repeats, sizeof ref_io_pt_repeats);
    CHECK(f->status == JOT_EIO && strstr(f->message, "repeats elements"), "%s", f->message);
    jot_file_close(f);
}

/* ---- a net from a file ---- */

static jot_Var
network(jot_Net m, jot_Var x)
{
    return jot_nn_batch_norm(m, "1", jot_nn_linear(m, "0", x, 2, NULL), NULL);
}

static void
test_net(void)
{
    jot_File *f = opened("pt_optim", "pt");
    jot_Net m = jot_net(c, JOT_F64);
    jot_Var x = jot_ones(c, JOT_F64, JOT_SHAPE(4, 3));

    network(m, x);
    RAISED(c, jot_file_restore(m, (jot_Trainer){0}, f, ""), JOT_EUSE, "asked");
    CHECK(jot_file_restore(m, (jot_Trainer){0}, f, "model."), "%s", jot_message(c));
    const double *w = jot_data(jot_net_find(m, "0.weight"));
    const float *want = (const float *)f->tensor[jot_file_find(f, "model.0.weight")].data;
    for (int k = 0; w && k < 6; k++)
        CHECK(w[k] == (double)want[k], "%d", k);
    CHECK(w && jot_data(network(m, x)), "%s", jot_message(c));
    jot_Net other = jot_net(c, JOT_F32);
    jot_nn_linear(other, "0", x, 5, NULL);
    jot_clear(c);
    jot_nn_linear(other, "0", jot_cast(x, JOT_F32), 5, NULL);
    jot_nn_batch_norm(other, "1", jot_ones(c, JOT_F32, JOT_SHAPE(4, 5)), NULL);
    RAISED(c, jot_file_restore(other, (jot_Trainer){0}, f, "model."), JOT_ESHAPE, "0.weight");
    jot_file_close(f);
    RAISED(c, jot_file_restore(m, (jot_Trainer){0}, NULL, ""), JOT_EMEM, "no memory");
}

/* ---- what is written ---- */

enum { WRITTEN = 6 };
static const jot_Text tokens[] = {{"a", 1}, {"bb", 2}, {"", 0}};
static const int64_t wide[] = {4096}, five[] = {5}, kinds[] = {1, -2, 3};
static const int64_t big[] = {-((int64_t)1 << 40)};
static const double eps[] = {0.5};
static const jot_Meta metas[] = {
    {"llama.block_count", JOT_META_INT, false, 1, five, NULL, NULL},
    {"tokens", JOT_META_TEXT, true, 3, NULL, NULL, tokens},
    {"kinds", JOT_META_INT, true, 3, kinds, NULL, NULL},
    {"eps", JOT_META_FLOAT, false, 1, NULL, eps, NULL},
    {"big", JOT_META_INT, false, 1, big, NULL, NULL},
};

static int
written(jot_Named *to)
{
    static const uint8_t yes[] = {1, 0, 1};
    float x[128];
    int64_t i[6];
    int n = 0;

    for (int k = 0; k < 128; k++)
        x[k] = (float)io_value(k);
    for (int k = 0; k < 6; k++)
        i[k] = k;
    jot_Var f32 = jot_array(c, JOT_F32, JOT_SHAPE(4, 32), x);
    to[n++] = (jot_Named){"f32", f32};
    to[n++] = (jot_Named){"f16", jot_cast(f32, JOT_F16)};
    to[n++] = (jot_Named){"i64", jot_array(c, JOT_I64, JOT_SHAPE(1, 2, 3), i)};
    to[n++] = (jot_Named){"scalar", jot_scalar(c, JOT_F64, 2.5)};
    to[n++] = (jot_Named){"none", jot_zeros(c, JOT_F32, JOT_SHAPE(0, 3))};
    to[n++] = (jot_Named){"bool", jot_array(c, JOT_BOOL, JOT_SHAPE(3), yes)};
    return n;
}

static void
test_again(const char *name, int n)
{
    jot_File *f = jot_file_open(io_path(name));
    jot_Named all[WRITTEN];

    CHECK(!f->status && f->count == n, "%s: %s", name, f->message);
    IS(f, "f32", JOT_F32, 4, 32);
    IS(f, "f16", JOT_F16, 4, 32);
    SHAPED(f, "i64", JOT_I64, 1, 2, 3);
    CHECK(item(f, "scalar") == 2.5, "%s: scalar", name);
    for (int64_t k = 0; k < f->count; k++) {
        jot_Var v = jot_file_var(c, f, k);
        CHECK(!f->tensor[k].nbytes || f->tensor[k].dtype == JOT_BOOL
              || jot_data(v) == f->tensor[k].data, "%s: %s is copied", name, f->tensor[k].name);
    }
    CHECK(jot_file_named(c, f, all, WRITTEN) == n && jot_file_named(c, f, NULL, 0) == n, "%s: %s",
          name, jot_message(c));
    jot_file_close(f); /* its variables stay */
    for (int k = 0; k < n; k++)
        if (!strcmp(all[k].name, "f32")) {
            const float *x = jot_data_f32(all[k].var);
            CHECK(x && (double)x[127] == io_value(127), "gone");
        }
}

static void
test_write(void)
{
    jot_Named t[WRITTEN], one;
    int n = written(t);

    if (*jot_file_can("safetensors"))
        SKIP("%s", jot_file_can("safetensors"));
    else {
        CHECK(jot_file_write(c, io_path("x.safetensors"), t, n, NULL), "%s", jot_message(c));
        test_again("x.safetensors", n);
    }
    if (!*jot_file_can("deflate")) {
        CHECK(jot_file_write(c, io_path("x.npz"), t, n, NULL), "%s", jot_message(c));
        test_again("x.npz", n);
    }
    CHECK(jot_file_write(c, io_path("plain.gguf"), t, n - 1, NULL), "%s", jot_message(c));
    test_again("plain.gguf", n - 1);
    CHECK(jot_file_write(c, io_path("x.npy"), t, 1, NULL), "%s", jot_message(c));
    float x[6];
    for (int k = 0; k < 6; k++)
        x[k] = (float)io_value(k);
    CHECK(jot_file_write(c, io_path("empty.gguf"), NULL, 0, NULL), "%s", jot_message(c));
    jot_File *empty = jot_file_open(io_path("empty.gguf"));
    CHECK(!empty->status && !empty->count && jot_file_find(empty, "") == -1, "%s", empty->message);
    jot_file_close(empty);
    one = (jot_Named){"", jot_array(c, JOT_F32, JOT_SHAPE(2, 3), x)};
    CHECK(jot_file_write(c, io_path("same"), &one, 1, &(jot_Writing){.format = "npy"}), "npy");
    uint8_t bytes[sizeof ref_io_npy + 1];
    FILE *f = fopen(io_path("same"), "rb");
    CHECK(f && fread(bytes, 1, sizeof bytes, f) == sizeof ref_io_npy
          && !memcmp(bytes, ref_io_npy, sizeof ref_io_npy), "not as NumPy writes it");
    if (f)
        fclose(f);
}

static void
test_write_gguf(void)
{
    jot_Named t[WRITTEN];
    int n = written(t) - 1;
    jot_Writing how = {.meta = metas, .metas = sizeof metas / sizeof *metas, .q8_0 = true};

    CHECK(jot_file_write(c, io_path("x.gguf"), t, n, &how), "%s", jot_message(c));
    jot_File *f = jot_file_open(io_path("x.gguf")), *theirs = opened("gguf", "gguf");
    CHECK(!f->status, "%s", f->message);
    const jot_Meta *k = jot_meta(f, "kinds"), *words = jot_meta(f, "tokens");
    CHECK(jot_meta_int(f, "llama.block_count", 0) == 5 && jot_meta_float(f, "eps", 0) == 0.5
          && jot_meta_int(f, "big", 0) == *big && k && k->ints[1] == -2 && words
          && words->count == 3 && words->texts[1].n == 2, "metadata");
    int64_t mine = jot_file_find(f, "f32"), his = jot_file_find(theirs, "Q8_0");
    CHECK(!strcmp(f->tensor[mine].type, "Q8_0") && !strcmp(f->tensor[1].type, "Q8_0"), "no blocks");
    CHECK(!memcmp(f->tensor[mine].data, theirs->tensor[his].data, 68), "other blocks than gguf's");
    jot_file_close(f);
    how.meta = &(jot_Meta){"general.alignment", JOT_META_INT, false, 1, wide, NULL, NULL};
    how.metas = 1;
    jot_Named large = {"large", jot_iota(c, JOT_I32, JOT_SHAPE(9000), 0)};
    CHECK(jot_file_write(c, io_path("z.gguf"), &large, 1, &how), "%s", jot_message(c));
    f = jot_file_open(io_path("z.gguf"));
    CHECK(!f->status && f->tensor->offset % 4096 == 0, "%s", f->message);
    CHECK(jot_item_int(jot_sum(jot_file_var(c, f, 0), JOT_ALL_DIMS)) == 4500 * 8999, "large");
    jot_file_close(f);
    jot_Named after[2] = {large, {"after", jot_iota(c, JOT_I32, JOT_SHAPE(3), 0)}};
    how.meta = &(jot_Meta){"general.alignment", JOT_META_INT, true, 1, wide, NULL, NULL};
    CHECK(jot_file_write(c, io_path("z.gguf"), after, 2, &how), "a list: %s", jot_message(c));
    f = jot_file_open(io_path("z.gguf"));
    CHECK(jot_item_int(jot_sum(jot_file_var(c, f, 0), JOT_ALL_DIMS)) == 4500 * 8999, "a list");
    jot_file_close(f);
    RAISED(c, jot_file_write(c, io_path("z.gguf"), &large, 1, &(jot_Writing){
               .meta = &(jot_Meta){"general.alignment", JOT_META_INT, false, 1, five, NULL, NULL},
               .metas = 1}), JOT_EUSE, "no power of two");
    t[1].var = jot_cast(jot_file_var(c, theirs, jot_file_find(theirs, "f32")), JOT_BF16);
    CHECK(jot_file_write(c, io_path("y.gguf"), &t[1], 1, &(jot_Writing){.q8_0 = true}), "bf16");
    f = jot_file_open(io_path("y.gguf"));
    CHECK(!f->status && !memcmp(f->tensor->data, theirs->tensor[his].data, 68), "of bf16");
    jot_file_close(f);
    CHECK(!remove(io_path("y.gguf")), "y.gguf");
    jot_file_close(theirs);
    t[0].var = jot_div(t[0].var, jot_scalar(c, JOT_F32, 0));
    RAISED(c, jot_file_write(c, io_path("y.gguf"), t, 1, &(jot_Writing){.q8_0 = true}), JOT_ERANGE,
           "f32: element 0");
    CHECK(access(io_path("y.gguf"), F_OK), "it is there");
}

/* Scales of Q8_0 are halves: the nearest ones, small ones too. */
static void
test_write_scales(void)
{
    float x[2 * 32], back[2 * 32];
    jot_Writing how = {.q8_0 = true};

    for (int e = -26; e < 15; e++)
        for (int part = 0; part < 5; part++) {
            double d = ldexp(1 + part * 0.2498, e), step = ldexp(1, e < -14 ? -24 : e - 10);
            for (int k = 0; k < 64; k++)
                x[k] = (float)(127 * d * (k < 32 ? 1 : -1));
            jot_push(c);
            jot_Named t = {"x", jot_array(c, JOT_F32, JOT_SHAPE(2, 32), x)};
            CHECK(jot_file_write(c, io_path("s.gguf"), &t, 1, &how), "%s", jot_message(c));
            jot_File *f = jot_file_open(io_path("s.gguf"));
            CHECK(jot_file_copy(c, f, 0, back, sizeof back), "%s", jot_message(c));
            jot_file_close(f);
            jot_pop(c);
            CHECK(fabs((double)back[0] / 127 - d) <= step / 2 * 1.0001 && back[32] == -back[0],
                  "%g: %g", d, (double)back[0] / 127);
        }
}

static void
test_write_refused(void)
{
    jot_Named t[WRITTEN], two[2];
    jot_Meta nest = {"nest", JOT_META_OTHER, true, 1, NULL, NULL, NULL};
    const char *path = io_path("r.npy");

    written(t);
    RAISED(c, jot_file_write(c, io_path("r.bin"), t, 1, NULL), JOT_EUSE, "format safetensors");
    RAISED(c, jot_file_write(c, io_path("r.pt"), t, 1, NULL), JOT_EUSE, "format safetensors");
    RAISED(c, jot_file_write(c, NULL, t, 1, NULL), JOT_EUSE, "a path");
    RAISED(c, jot_file_write(c, path, t, 2, NULL), JOT_EUSE, "npy is of one tensor, 2 found");
    RAISED(c, jot_file_write(c, path, t, 1, &(jot_Writing){.meta = &nest, .metas = 1}), JOT_EUSE,
           "no metadata");
    RAISED(c, jot_file_write(c, io_path("r.gguf"), t, 1, &(jot_Writing){.meta = &nest, .metas = 1}),
           JOT_EUSE, "nest");
    RAISED(c, jot_file_write(c, io_path("r.gguf"), &t[5], 1, NULL), JOT_EUSE, "tensor bool, bool");
    t[0].var = jot_cast(t[0].var, JOT_BF16);
    RAISED(c, jot_file_write(c, path, t, 1, NULL), JOT_EDTYPE, "bf16");
    two[0] = two[1] = t[1];
    RAISED(c, jot_file_write(c, io_path("r.gguf"), two, 2, NULL), JOT_EUSE, "f16 is there twice");
    RAISED(c, jot_file_write(c, io_path("r.gguf"), two, 1, &(jot_Writing){
               .meta = (jot_Meta[]){metas[0], metas[0]}, .metas = 2}), JOT_EUSE,
           "metadata llama.block_count is there twice");
    RAISED(c, jot_file_write(c, io_path("r.gguf"), two, 1, &(jot_Writing){
               .meta = &(jot_Meta){.key = "far", .kind = JOT_META_FLOAT, .count = 1,
                                   .floats = (double[]){1e300}}, .metas = 1}), JOT_EUSE,
           "cannot keep this: far");
    two[0].var = jot_none();
    RAISED(c, jot_file_write(c, io_path("r.gguf"), two, 1, NULL), JOT_EHANDLE, "f16");
    RAISED(c, jot_file_write(c, io_path("no/r.npy"), &t[1], 1, NULL), JOT_EIO, "No such file");
    RAISED(c, jot_file_write(c, "/dev/null", &t[1], 1, &(jot_Writing){.format = "npy"}), JOT_EIO,
           "a device or pipe found");
    RAISED(c, jot_file_write(c, io_path(""), &t[1], 1, &(jot_Writing){.format = "npy"}), JOT_EIO,
           "a folder found");
    if (*jot_file_can("safetensors"))
        return;
    RAISED(c, jot_file_write(c, io_path("r.safetensors"), t, 1,
                             &(jot_Writing){.meta = metas, .metas = 1}), JOT_EUSE, "texts alone");
    strcpy(two[1].name, "__metadata__");
    RAISED(c, jot_file_write(c, io_path("r.safetensors"), &two[1], 1, NULL), JOT_EUSE,
           "cannot be __metadata__");
    static const char *const bad[] = {"\x80", "\xc3", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
                                      "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf8", "\xe2\x82x"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        strcpy(two[1].name, bad[k]);
        RAISED(c, jot_file_write(c, io_path("r.safetensors"), &two[1], 1, NULL), JOT_EUSE,
               "cannot be ");
        RAISED(c, jot_file_write(c, io_path("r.safetensors"), t, 1, &(jot_Writing){
                   .meta = &(jot_Meta){.key = "k", .kind = JOT_META_TEXT, .count = 1,
                                       .texts = &(jot_Text){bad[k], strlen(bad[k])}},
                   .metas = 1}), JOT_EUSE, "in UTF-8");
    }
    strcpy(two[1].name, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xed\x9f\xbf");
    CHECK(jot_file_write(c, io_path("r.safetensors"), &two[1], 1, NULL), "%s", jot_message(c));
}

/* A link stays one, and a file that is replaced keeps its mode. */
static void
test_write_link(void)
{
    jot_Named t[WRITTEN];
    struct stat s;
    int n = written(t);

    CHECK(n && jot_file_write(c, io_path("real.npy"), t, 1, NULL), "%s", jot_message(c));
    remove(io_path("link.npy"));
    CHECK(!chmod(io_path("real.npy"), 0640) && !symlink("real.npy", io_path("link.npy")), "link");
    CHECK(jot_file_write(c, io_path("link.npy"), &t[1], 1, NULL), "%s", jot_message(c));
    CHECK(!lstat(io_path("link.npy"), &s) && S_ISLNK(s.st_mode), "no link any more");
    CHECK(!lstat(io_path("real.npy"), &s) && (s.st_mode & 0777) == 0640, "mode");
    jot_File *f = jot_file_open(io_path("link.npy"));
    IS(f, "", JOT_F16, 4, 32);
    jot_file_close(f);
}

int
main(int argc, char **argv)
{
    jot_Config config = {.backend = "interp", .cache_dir = ""};

    if (argc > 1)
        snprintf(io_dir, sizeof io_dir, "%s", argv[1]);
    c = jot_open(&config);
    if (*jot_file_can("safetensors"))
        SKIP("%s", jot_file_can("safetensors"));
    else
        test_safetensors();
    test_npy();
    test_gguf();
    test_torch();
    test_net();
    test_write();
    test_write_gguf();
    test_write_scales();
    test_write_refused();
    test_write_link();
    CHECK(!jot_error(c), "%s", jot_message(c));
    jot_close(c);
    if (argc < 2)
        io_remove(io_dir);
    return DONE();
}
