/* tests/test_onnx_open.c - open extents with bounds where no function can be for all of them:
 * models whose shapes or branches depend on elements of inputs have plans as without bounds, say
 * why, and keep the bounds; and each allocation refused, malloc's and the context's, from the
 * model's bytes to its second size: words, nothing left, and the next run is as it would have been.
 *
 * Guards: onnx/open.c onnx/hold.c onnx/call.c */
#include <limits.h>
#include "onnx.h"
#include "tests/test.h"
#include "tests/ref/onnx_models.h"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define REFUSES
#include "tests/refused_malloc.h"
#endif

/* ---- models, written by hand ---------------------------------------------------------------- */

typedef struct { uint8_t b[600]; size_t n; } Msg;

static void
put(Msg *m, int field, const void *p, size_t n)
{
    m->b[m->n++] = (uint8_t)(field << 3 | 2);
    if (n > 127)
        m->b[m->n++] = (uint8_t)(n | 128);
    m->b[m->n++] = (uint8_t)(n > 127 ? n >> 7 : n);
    memcpy(m->b + m->n, p, n);
    m->n += n;
}

static void
put_text(Msg *m, int field, const char *s)
{
    put(m, field, s, strlen(s));
}

static void
put_int(Msg *m, int field, int v)
{
    m->b[m->n++] = (uint8_t)(field << 3);
    m->b[m->n++] = (uint8_t)v;
}

/* One of its names has a digit: an extent. */
static void
put_value(Msg *graph, int field, const char *name, int dtype, int rank, const char *const *shape)
{
    Msg dims = {{0}, 0}, tensor = {{0}, 0}, type = {{0}, 0}, value = {{0}, 0};

    for (int d = 0; d < rank; d++) {
        Msg dim = {{0}, 0};
        if (shape[d][0] >= '0' && shape[d][0] <= '9')
            put_int(&dim, 1, atoi(shape[d]));
        else
            put_text(&dim, 2, shape[d]);
        put(&dims, 1, dim.b, dim.n);
    }
    put_int(&tensor, 1, dtype);
    put(&tensor, 2, dims.b, dims.n);
    put(&type, 1, tensor.b, tensor.n);
    put_text(&value, 1, name);
    put(&value, 2, type.b, type.n);
    put(graph, field, value.b, value.n);
}

/* in: "x,s"; attribute: a whole message, n bytes. */
static void
put_node(Msg *graph, const char *op, const char *in, const char *out, const Msg *attribute,
         int attributes)
{
    Msg node = {{0}, 0};

    for (const char *s = in; *s; s += strcspn(s, ","), s += *s == ',')
        put(&node, 1, s, strcspn(s, ","));
    put_text(&node, 2, out);
    put_text(&node, 4, op);
    for (int k = 0; k < attributes; k++)
        put(&node, 5, attribute[k].b, attribute[k].n);
    put(graph, 1, node.b, node.n);
}

static void
model_of(Msg *model, const Msg *graph)
{
    Msg opset = {{0}, 0};

    model->n = 0;
    put_int(model, 1, 8);
    put_int(&opset, 2, 17);
    put(model, 7, graph->b, graph->n);
    put(model, 8, opset.b, opset.n);
}

enum { F32 = 1, I64 = 7, BOOLS = 9 }; /* ONNX's numbers */
static const char *const x_shape[] = {"n", "6"}, *const two[] = {"2"}, *const none[] = {"open"};

/* y = x as the shape that s says. */
static void
reshaped(Msg *model)
{
    Msg graph = {{0}, 0};

    put_node(&graph, "Reshape", "x,s", "y", NULL, 0);
    put_text(&graph, 2, "g");
    put_value(&graph, 11, "x", F32, 2, x_shape);
    put_value(&graph, 11, "s", I64, 1, two);
    put_value(&graph, 12, "y", F32, 1, none);
    model_of(model, &graph);
}

/* y = c ? x : x transposed */
static void
branched(Msg *model)
{
    static const char *const branch[] = {"then_branch", "else_branch"};
    static const char *const op[] = {"Identity", "Transpose"};
    Msg graph = {{0}, 0}, attribute[2];

    for (int k = 0; k < 2; k++) {
        Msg within = {{0}, 0};
        put_node(&within, op[k], "x", "z", NULL, 0);
        put_text(&within, 2, "b");
        put_value(&within, 12, "z", F32, 1, none);
        attribute[k].n = 0;
        put_text(&attribute[k], 1, branch[k]);
        put(&attribute[k], 6, within.b, within.n);
        memcpy(attribute[k].b + attribute[k].n, "\xa0\x01\x05", 3); /* its type: a graph */
        attribute[k].n += 3;
    }
    put_node(&graph, "If", "c", "y", attribute, 2);
    put_text(&graph, 2, "g");
    put_value(&graph, 11, "x", F32, 2, x_shape);
    put_value(&graph, 11, "c", BOOLS, 0, none);
    put_value(&graph, 12, "y", F32, 1, none);
    model_of(model, &graph);
}

/* ---- plans all the same --------------------------------------------------------------------- */

enum { MOST = 8 };
static float pixels[(MOST + 1) * 6];

/* The n rows of x, of which elements are in order, or turned: wanted, (rows, columns). */
static void
gives(jot_Onnx *m, jot_Ctx *c, int64_t n, const jot_Tensor *how, int64_t rows, int64_t columns,
      bool turned)
{
    jot_Tensor in[2] = {{JOT_F32, JOT_SHAPE(n, 6), pixels, (size_t)n * 24}, *how}, out;

    CHECK(jot_onnx_run(m, in, 2, &out, 1), "%s", jot_message(c));
    if (jot_error(c))
        return;
    CHECK(out.shape.n == 2 && out.shape.v[0] == rows && out.shape.v[1] == columns
          && out.nbytes == (size_t)n * 24, "(%lld, %lld)", (long long)out.shape.v[0],
          (long long)out.shape.v[1]);
    for (int64_t i = 0; i < n * 6; i++)
        CHECK(((const float *)out.data)[i] == pixels[turned ? i % n * 6 + i / n : i], "%lld: %g",
              (long long)i, ((const float *)out.data)[i]);
}

static void
fallback(const char *backend)
{
    jot_Config config = {.backend = backend, .cache_dir = ""};
    jot_Ctx *c = jot_open(&config);
    const jot_Extent n = {"n", 1, MOST, 0}, wide = {"n", 1, MOST + 1, 0};
    const int64_t as[2] = {-1, 3}, other[2] = {2, -1};
    const bool yes = true, no = false;
    jot_Tensor s = {JOT_I64, JOT_SHAPE(2), as, sizeof as}, b = {JOT_BOOL, JOT_SHAPE(), &yes, 1};
    jot_Tensor in[2] = {{JOT_F32, JOT_SHAPE(MOST + 1, 6), pixels, sizeof pixels}, s}, out;
    Msg model;

    reshaped(&model);
    jot_Onnx *m = jot_onnx_parse(c, model.b, model.n, NULL);
    CHECK(jot_onnx_open(m, &n, 1) && !*jot_onnx_open_why(m), "%s", jot_message(c));
    for (int64_t k = 0; k < 2 * MOST; k++) {
        s.data = k % 2 ? as : other;
        int64_t rows = 1 + k * 3 % MOST;
        gives(m, c, rows, &s, k % 2 ? rows * 2 : 2, k % 2 ? 3 : rows * 3, false);
        CHECK(strstr(jot_onnx_open_why(m), "its elements are asked")
              && strstr(jot_onnx_open_why(m), "(s)"), "%s", jot_onnx_open_why(m));
    }
    CHECK(!jot_onnx_run(m, in, 2, &out, 1) && jot_error(c) == JOT_ERANGE
          && strstr(jot_message(c), "n is 9: 1 to 8"), "bounds went: %s", jot_message(c));
    jot_clear(c);
    CHECK(jot_onnx_open(m, &wide, 1) && !*jot_onnx_open_why(m), "%s", jot_onnx_open_why(m));
    s.data = as;
    gives(m, c, MOST + 1, &s, 2 * (MOST + 1), 3, false);
    CHECK(*jot_onnx_open_why(m), "no reason");
    jot_onnx_free(m);
    branched(&model);
    m = jot_onnx_parse(c, model.b, model.n, NULL);
    CHECK(jot_onnx_open(m, &n, 1), "%s", jot_message(c));
    for (int64_t k = 0; k < MOST; k++) {
        int64_t rows = 1 + k * 3 % MOST;
        b.data = k % 2 ? &yes : &no;
        gives(m, c, rows, &b, k % 2 ? rows : 6, k % 2 ? 6 : rows, !(k % 2));
        CHECK(strstr(jot_onnx_open_why(m), "If"), "%s", jot_onnx_open_why(m));
    }
    jot_onnx_free(m);
    CHECK(!jot_error(c), "%s", jot_message(c));
    jot_close(c);
}

/* ---- memory --------------------------------------------------------------------------------- */

#ifdef REFUSES
static size_t taken; /* by contexts */
static bool others;  /* malloc is refused, too: libtcc ends the program then */

static void *
hook(void *ud, void *p, size_t old_nbytes, size_t new_nbytes)
{
    void *q = NULL;
    bool no = new_nbytes && (others ? refused() : --countdown == 0);

    (void)ud;
    if (no || (new_nbytes && !(q = __libc_realloc(p, new_nbytes))))
        return NULL;
    if (!new_nbytes)
        __libc_free(p);
    taken += new_nbytes - (p ? old_nbytes : 0);
    return q;
}

/* Of 5, then of 7 rows. */
static bool
two_sizes(jot_Ctx *c, jot_Onnx *m, const jot_Tensor *how, jot_Tensor out[2])
{
    bool ok = true;

    for (int k = 0; k < 2 && ok; k++) {
        int64_t n = 5 + 2 * k;
        jot_Tensor in[2] = {{JOT_F32, JOT_SHAPE(n, how ? 6 : 3), pixels,
                             (size_t)n * (how ? 24 : 12)}, {0}};
        if (how)
            in[1] = *how;
        ok = jot_onnx_run(m, in, how ? 2 : 1, &out[k], 1)
          && out[k].nbytes == (size_t)n * (how ? 24 : 8);
    }
    return ok && !jot_error(c);
}

/* Allocation n is refused, of what comes after the model is read, or all; how NULL: the model has
 * one input. True: there were fewer. */
static bool
refused_at(const char *backend, const void *model, size_t nbytes, const jot_Tensor *how, long n,
           bool read)
{
    jot_Config config = {.backend = backend, .cache_dir = "", .hooks = {.realloc = hook},
                         .no_threads = 1, .deterministic = 1, .give_back = 1};
    const jot_Extent bound = {"n", 1, MOST, 0};
    jot_Tensor out[2] = {{0}};

    live = 0;
    countdown = LONG_MAX;
    counting = others;
    jot_Ctx *c = jot_open(&config);
    countdown = read ? n : LONG_MAX;
    jot_Onnx *m = jot_onnx_parse(c, model, nbytes, NULL);
    bool ok = m && jot_onnx_open(m, &bound, 1);
    countdown = read ? countdown : n;
    ok = ok && two_sizes(c, m, how, out);
    bool fewer = countdown > 0;
    countdown = LONG_MAX;
    CHECK(ok ? !jot_error(c) : !fewer && jot_error(c) == JOT_EMEM, "%s, %ld: %s", backend, n,
          jot_message(c));
    CHECK(ok || strstr(jot_message(c), "memory"), "%s, %ld: %s", backend, n, jot_message(c));
    jot_clear(c);
    if (m && !ok) {
        CHECK(jot_onnx_open(m, &bound, 1) && two_sizes(c, m, how, out), "%s, %ld: again: %s",
              backend, n, jot_message(c));
        CHECK(!how == !strstr(jot_onnx_open_why(m), "asked"), "%s, %ld: why: %s", backend, n,
              jot_onnx_open_why(m));
    }
    if (m && how && !jot_error(c))
        CHECK(!memcmp(out[1].data, pixels, 7 * 24), "%s, %ld: other values", backend, n);
    jot_onnx_free(m);
    jot_close(c);
    counting = false;
    CHECK(live == 0 || n == LONG_MAX, "%s, %ld: %ld blocks stay", backend, n, live);
    CHECK(taken == 0, "%s, %ld: %zu bytes of the context's stay", backend, n, taken);
    return fewer;
}

static void
memory(const char *backend, int stride)
{
    const int64_t as[2] = {-1, 3};
    jot_Tensor s = {JOT_I64, JOT_SHAPE(2), as, sizeof as};
    size_t mlp = 0;
    Msg model;

    while (strcmp(ref_onnx[mlp].name, "mlp"))
        mlp++;
    reshaped(&model);
    for (int read = 0; read < 2; read++) {
        long n = 1, before = test_failed;
        refused_at(backend, model.b, model.n, &s, LONG_MAX, read); /* what the system keeps */
        while (!refused_at(backend, model.b, model.n, &s, n, read) && test_failed < before + 8)
            n += stride;
        CHECK(n > 20, "%ld allocations", n);
        for (n = 1; !refused_at(backend, ref_onnx[mlp].model, ref_onnx[mlp].nbytes, NULL, n, read)
                    && test_failed < before + 8;)
            n += stride;
        CHECK(n > 20, "%ld allocations", n);
    }
}
#endif

int
main(void)
{
    if (*jot_onnx_missing()) {
        SKIP("%s", jot_onnx_missing());
        return DONE();
    }
    for (int i = 0; i < (MOST + 1) * 6; i++)
        pixels[i] = (float)i;
    fallback("interp");
    fallback("tcc");
#ifdef REFUSES
    others = true;
    memory("interp", 1);
    others = false;
    memory("tcc", 7);
#else
    SKIP("no malloc of one's own under sanitizers, or without glibc");
#endif
    return DONE();
}
