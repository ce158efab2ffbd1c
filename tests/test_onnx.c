/* tests/test_onnx.c - models in ONNX's format (onnx.h): stored ones (tests/ref/onnx_models.py)
 * against the values stored with them and each refusal by what it says; inputs, outputs and weights
 * that are listed, texts by key; open extents, with bounds and without, functions of shapes,
 * plans that are kept; weights
 * that are trained; bytes cut off and spoiled. Skipped where this build reads no ONNX.
 *
 * Guards: onnx/open.c onnx/hold.c onnx/model.c onnx/tensor.c onnx/value.c onnx/build.c onnx/attr.c
 * onnx/call.c onnx/control.c onnx/table.c onnx/op/math.c onnx/op/shape.c onnx/op/index.c
 * onnx/op/reduce.c onnx/op/conv.c
 * onnx/op/pool.c onnx/op/resize.c onnx/op/norm.c onnx/op/rnn.c onnx/op/attention.c onnx/op/quant.c
 * onnx/op/signal.c onnx/absent.c */
#include "onnx.h"
#include "tests/test.h"
#include "tests/ref/onnx_models.h"
#include <unistd.h>

enum { MOST = 8, CASES = sizeof ref_onnx / sizeof *ref_onnx };

static jot_Ctx *
open_as(const char *backend)
{
    jot_Config config = {.backend = backend, .cache_dir = ""};
    return jot_open(&config);
}

static int
find(const char *name)
{
    for (int k = 0; k < CASES; k++)
        if (!strcmp(ref_onnx[k].name, name))
            return k;
    CHECK(0, "no case %s", name);
    return 0;
}

static jot_Tensor
tensor(const RefTensor *t)
{
    jot_Tensor r = {(jot_DType)t->dtype, jot_ints(t->rank, t->shape), t->p, t->n};
    return r;
}

static jot_Onnx *
parse(jot_Ctx *c, int k)
{
    return jot_onnx_parse(c, ref_onnx[k].model, ref_onnx[k].nbytes, ".");
}

/* is: what was stored, of floats within 1e-5 of 1 + |it|. */
static void
compare(jot_Ctx *c, const char *name, const jot_Tensor *is, const RefTensor *want)
{
    CHECK((int)is->dtype == want->dtype && is->shape.n == want->rank && is->nbytes == want->n,
          "%s: %s, rank %d, %zu bytes", name, jot_dtype_name(is->dtype), is->shape.n, is->nbytes);
    for (int d = 0; d < want->rank && d < is->shape.n; d++)
        CHECK(is->shape.v[d] == want->shape[d], "%s: dimension %d: %lld", name, d,
              (long long)is->shape.v[d]);
    if (is->nbytes != want->n || !is->data)
        return;
    jot_Var a = jot_cast(jot_array(c, is->dtype, is->shape, is->data), JOT_F64);
    jot_Var b = jot_cast(jot_array(c, is->dtype, is->shape, want->p), JOT_F64);
    const double *x = jot_data_f64(a), *y = jot_data_f64(b);
    for (int64_t i = 0; i < jot_nelem(a); i++)
        CHECK(x[i] == y[i] || fabs(x[i] - y[i]) <= 1e-5 * (1 + fabs(y[i])),
              "%s: %lld: %.9g, not %.9g", name, (long long)i, x[i], y[i]);
}

static void
run_case(int k, const char *backend)
{
    jot_Ctx *c = open_as(backend);
    jot_Onnx *m = parse(c, k);
    jot_Tensor in[MOST], out[MOST];
    const char *name = ref_onnx[k].name;

    for (int i = 0; i < ref_onnx[k].in; i++)
        in[i] = tensor(&ref_onnx[k].x[i]);
    for (int i = 0; i < (ref_onnx[k].refused ? 1 : ref_onnx[k].out); i++)
        memset(&out[i], 0, sizeof out[i]);
    bool done = m && jot_onnx_run(m, in, ref_onnx[k].in, out, jot_onnx_outputs(m, NULL, 0));
    CHECK(done == !ref_onnx[k].refused, "%s on %s: %s", name, backend, jot_message(c));
    if (ref_onnx[k].refused)
        CHECK(jot_error(c) && strstr(jot_message(c), ref_onnx[k].refused), "%s: said: %s", name,
              jot_message(c));
    for (int i = 0; done && i < ref_onnx[k].out; i++)
        compare(c, name, &out[i], &ref_onnx[k].y[i]);
    /* a failure leaves the context as it was */
    jot_clear(c);
    if (m && !done) {
        CHECK(jot_stats(c).live_slots == 0, "%s: %u handles are left", name,
              jot_stats(c).live_slots);
    }
    jot_onnx_free(m);
    jot_close(c);
}

/* What a model says of itself. */
static void
lists(void)
{
    jot_Ctx *c = open_as("interp");
    jot_Onnx *m = parse(c, find("mlp"));
    jot_OnnxValue v[MOST];
    jot_OnnxNode n[MOST];

    CHECK(jot_onnx_inputs(m, v, MOST) == 1 && !strcmp(v[0].name, "x"), "inputs");
    CHECK(v[0].dtype == JOT_F32 && v[0].rank == 2 && v[0].shape[0] == -1 && v[0].shape[1] == 3
          && !strcmp(v[0].symbols[0], "n"), "x's shape");
    CHECK(jot_onnx_outputs(m, v, MOST) == 1 && !strcmp(v[0].name, "y") && v[0].rank == -1, "y");
    CHECK(jot_onnx_weights(m, v, MOST) == 3 && !strcmp(v[0].name, "w") && v[0].shape[0] == 4, "w");
    CHECK(jot_onnx_nodes(m, n, MOST) == 4 && !strcmp(n[3].op, "Softmax") && !*n[3].domain, "nodes");
    CHECK(jot_onnx_opset(m) == 21, "opset %d", jot_onnx_opset(m));
    CHECK(jot_onnx_inputs(NULL, v, MOST) == 0 && !jot_onnx_load(c, "/nowhere/x.onnx"), "none");
    CHECK(jot_error(c) == JOT_EIO && strstr(jot_message(c), "/nowhere/x.onnx"), "%s",
          jot_message(c));
    jot_clear(c);
    CHECK(!jot_onnx_load(c, NULL) && jot_error(c) == JOT_EIO, "no path: %s", jot_message(c));
    jot_clear(c);
    CHECK(!jot_onnx_parse(c, NULL, 4, NULL) && jot_error(c) == JOT_EUSE, "no bytes: %s",
          jot_message(c));
    jot_clear(c);
    CHECK(!jot_ok(jot_onnx_read_tensor(c, NULL)) && jot_error(c) == JOT_EIO, "no tensor: %s",
          jot_message(c));
    jot_onnx_free(m);
    jot_onnx_free(NULL);
    jot_close(c);
}

/* Texts by key, which a model may have at its end as anywhere. */
static void
metadata(void)
{
    static const char more[] = "\x72\x0b\x0a\x01k\x12\x06" "a\nb\nc!" "\x72\x03\x0a\x01n";
    jot_Ctx *c = open_as("interp");
    int k = find("mlp");
    size_t nbytes = ref_onnx[k].nbytes, n = sizeof more - 1;
    char *bytes = malloc(nbytes + n);
    jot_Onnx *m = parse(c, k), *with;

    memcpy(bytes, ref_onnx[k].model, nbytes);
    memcpy(bytes + nbytes, more, n);
    with = jot_onnx_parse(c, bytes, nbytes + n, NULL);
    free(bytes);
    const char *text = jot_onnx_metadata(with, "k"), *none = jot_onnx_metadata(with, "n");
    CHECK(text && !strcmp(text, "a\nb\nc!"), "k: %s; %s", text ? text : "none", jot_message(c));
    CHECK(none && !*none, "a key without a text");
    CHECK(!jot_onnx_metadata(with, "a") && !jot_onnx_metadata(with, NULL), "another key");
    CHECK(!jot_onnx_metadata(m, "k") && !jot_onnx_metadata(NULL, "k"), "no texts");
    jot_onnx_free(with);
    jot_onnx_free(m);
    jot_close(c);
}

/* An open extent is bound by each call: a plan of its own, kept; a wrong one is refused. */
static void
shapes(void)
{
    jot_Ctx *c = open_as("interp");
    jot_Onnx *m = parse(c, find("mlp"));
    float x[64] = {0};
    jot_Tensor out;

    for (int round = 0; round < 2; round++)
        for (int64_t rows = 1; rows <= 5; rows++) {
            jot_Tensor in = {JOT_F32, JOT_SHAPE(rows, 3), x, (size_t)rows * 12};
            CHECK(jot_onnx_run(m, &in, 1, &out, 1) && out.shape.v[0] == rows, "%s", jot_message(c));
            CHECK(fabs(((const float *)out.data)[0] + ((const float *)out.data)[1] - 1) < 1e-6,
                  "row 0");
        }
    CHECK(jot_stats(c).plans <= 5, "%d plans", (int)jot_stats(c).plans);
    for (int64_t rows = 1; rows <= JOT_ONNX_PLANS + 4; rows++) {
        float *many = calloc((size_t)rows * 3, 4);
        jot_Tensor in = {JOT_F32, JOT_SHAPE(rows, 3), many, (size_t)rows * 12};
        CHECK(jot_onnx_run(m, &in, 1, &out, 1), "%s", jot_message(c));
        free(many);
    }
    jot_Tensor wrong = {JOT_F32, JOT_SHAPE(2, 4), x, 32};
    CHECK(!jot_onnx_run(m, &wrong, 1, &out, 1)
          && strstr(jot_message(c), "input x: dimension 1: extent 3 asked, 4 found"), "%s",
          jot_message(c));
    jot_clear(c);
    wrong = (jot_Tensor){JOT_F64, JOT_SHAPE(2, 3), x, 48};
    CHECK(!jot_onnx_run(m, &wrong, 1, &out, 1) && strstr(jot_message(c), "f32 asked, f64 found"),
          "%s", jot_message(c));
    jot_clear(c);
    wrong = (jot_Tensor){JOT_F32, JOT_SHAPE(2, 3), x, 20};
    CHECK(!jot_onnx_run(m, &wrong, 1, &out, 1) && strstr(jot_message(c), "20 found"), "%s",
          jot_message(c));
    jot_clear(c);
    CHECK(!jot_onnx_run(m, NULL, 0, &out, 1) && jot_error(c) == JOT_EUSE, "%s", jot_message(c));
    jot_clear(c);
    jot_onnx_free(m);
    jot_close(c);
}

static void
refuses(jot_Ctx *c, bool done, jot_Status status, const char *text)
{
    CHECK(!done && jot_error(c) == status && strstr(jot_message(c), text), "%s: %s", text,
          jot_message(c));
    jot_clear(c);
}

/* Bounds of open extents: one function, which other sizes neither plan nor compile; values are
 * those of a plan for each size. */
static void
bounds(const char *backend)
{
    jot_Ctx *c = open_as(backend);
    jot_Onnx *m = parse(c, find("mlp")), *each = parse(c, find("mlp"));
    const jot_Extent n = {"n", 0, 40, 0}, wrong = {"batch", 1, 4, 0}, twice[] = {n, n};
    const jot_Extent none = {"n", 5, 4, 0};
    static float x[41 * 3];
    jot_Tensor in = {JOT_F32, JOT_SHAPE(41, 3), x, sizeof x}, out, want;
    int more = 0;

    for (int i = 0; i < 41 * 3; i++)
        x[i] = (float)(i * 37 % 101) / 50 - 1;
    refuses(c, jot_onnx_open(m, &wrong, 1), JOT_EUSE, "no input has an open extent batch; there "
            "are: n");
    refuses(c, jot_onnx_open(m, twice, 2), JOT_EUSE, "n is bound twice");
    refuses(c, jot_onnx_open(m, &none, 1), JOT_ERANGE, "n is 5 to 4");
    refuses(c, jot_onnx_open(m, &n, 4), JOT_ERANGE, "4 bounds: 0 to 3 asked");
    CHECK(jot_onnx_open(m, &n, 1), "%s", jot_message(c));
    refuses(c, jot_onnx_run(m, &in, 1, &out, 1), JOT_ERANGE,
            "input x: n is 41: 1 to 40 in steps of 1 asked");
    for (int64_t k = 0; k < 40; k += test_many(3, 1)) {
        int64_t rows = 1 + k * 23 % 40;
        in = (jot_Tensor){JOT_F32, JOT_SHAPE(rows, 3), x, (size_t)rows * 12};
        jot_Stats before = jot_stats(c);
        CHECK(jot_onnx_run(m, &in, 1, &out, 1), "%s", jot_message(c));
        jot_Stats after = jot_stats(c);
        more += k && (after.plans != before.plans
                      || after.kernels_compiled != before.kernels_compiled);
        CHECK(jot_onnx_run(each, &in, 1, &want, 1), "%s", jot_message(c));
        CHECK(out.dtype == want.dtype && out.nbytes == want.nbytes && out.shape.n == want.shape.n
              && out.shape.v[0] == rows, "%d rows: %zu bytes", (int)rows, out.nbytes);
        for (size_t i = 0; i < want.nbytes / 4 && out.nbytes == want.nbytes; i++)
            CHECK(fabs(((const float *)out.data)[i] - ((const float *)want.data)[i]) < 1e-5,
                  "%d rows: %zu: %g", (int)rows, i, ((const float *)out.data)[i]);
    }
    CHECK(more <= 1 || !strcmp(backend, "interp"), "%d sizes made plans: %s", more,
          jot_onnx_open_why(m));
    CHECK(jot_onnx_open(m, NULL, 0), "%s", jot_message(c));
    in = (jot_Tensor){JOT_F32, JOT_SHAPE(41, 3), x, sizeof x};
    CHECK(jot_onnx_run(m, &in, 1, &out, 1), "%s", jot_message(c));
    jot_onnx_free(each);
    jot_onnx_free(m);
    jot_close(c);
}

/* What depends on an input is not evaluated while a graph is built: this one cannot be. */
static void
waits(void)
{
    int k = find("qdq_given");
    jot_Config config = {.backend = "interp", .cache_dir = "", .check = 1};
    jot_Ctx *c = jot_open(&config);
    jot_Onnx *m = parse(c, k);
    const int64_t beyond = 3;
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(3, 16), ref_onnx[k].x[0].p), y;
    jot_Var table = jot_array(c, JOT_F32, JOT_SHAPE(3, 4), ref_onnx[k].x[1].p);
    jot_Var rows = jot_add(jot_arange(c, JOT_I64, 0, 1, 3),
                           jot_array(c, JOT_I64, JOT_SHAPE(1), &beyond));

    CHECK(jot_onnx_build(m, JOT_VARS(x, jot_take(table, rows, 0)), &y), "%s", jot_message(c));
    CHECK(!jot_data(y) && jot_error(c) == JOT_ERANGE, "%s", jot_message(c));
    jot_onnx_free(m);
    jot_close(c);
}

/* Shapes that depend on an input's elements: wanted, or fixed. */
static void
fixed(void)
{
    int k = find("shape_input");
    jot_Ctx *c = open_as("interp");
    jot_Onnx *m = parse(c, k);
    jot_Tensor in[2] = {tensor(&ref_onnx[k].x[0]), tensor(&ref_onnx[k].x[1])}, out;
    const int64_t other[2] = {4, 3};
    bool is[2] = {false, true};
    float y[12];

    in[1].data = NULL;
    CHECK(!jot_func_ok(jot_onnx_compile(m, in, 2, &out, 1))
          && strstr(jot_message(c), "depend on s"), "%s", jot_message(c));
    jot_clear(c);
    in[1].data = other;
    in[0].data = NULL;
    jot_Func f = jot_onnx_compile(m, in, 2, &out, 1);
    CHECK(jot_func_ok(f) && out.shape.n == 2 && out.shape.v[0] == 4 && out.nbytes == 48, "%s",
          jot_message(c));
    CHECK(jot_call(f, JOT_INS(JOT_IN(ref_onnx[k].x[0].p, 48)), JOT_OUTS(JOT_OUT(y, sizeof y)))
          && !memcmp(y, ref_onnx[k].x[0].p, 48), "%s", jot_message(c));
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(2, 6), NULL), v;
    jot_Var s = jot_array(c, JOT_I64, JOT_SHAPE(2), other);
    CHECK(!jot_onnx_build(m, JOT_VARS(x, s), &v) && !jot_ok(v), "built");
    jot_clear(c);
    CHECK(jot_onnx_build_fixed(m, JOT_VARS(x, s), is, &v) && jot_extent(v, 0) == 4, "%s",
          jot_message(c));
    jot_func_free(f);
    jot_onnx_free(m);
    CHECK(jot_data(v), "a graph outlives its model");
    jot_close(c);
}

/* A weight that is a parameter: the loss falls. */
static void
trained(void)
{
    int k = find("mlp");
    jot_Ctx *c = open_as("interp");
    jot_Onnx *m = parse(c, k);
    jot_Var w = jot_param_of(jot_onnx_weight(m, "w")), y, g;
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(2, 3), ref_onnx[k].x[0].p);
    double first = 0, last = 0;

    CHECK(!jot_onnx_set_weight(m, "b", w) && jot_error(c) == JOT_ESHAPE, "a wrong shape");
    jot_clear(c);
    CHECK(!jot_onnx_set_weight(m, "none", w) && strstr(jot_message(c), "no weight none"), "%s",
          jot_message(c));
    jot_clear(c);
    CHECK(jot_onnx_set_weight(m, "w", w), "%s", jot_message(c));
    for (int t = 0; t < 20; t++) {
        CHECK(jot_onnx_build(m, JOT_VARS(x), &y), "%s", jot_message(c));
        jot_Var loss = jot_mean(jot_square(jot_offset(jot_slice_dim(y, 1, 0, 1, 1), -0.2)),
                                JOT_ALL_DIMS);
        CHECK(jot_grad(loss, JOT_VARS(w), &g), "%s", jot_message(c));
        jot_assign(w, jot_sub(w, jot_scale(g, 0.5)));
        last = jot_item(loss);
        first = t ? first : last;
    }
    CHECK(last < 0.9 * first && !jot_error(c), "%g to %g: %s", first, last, jot_message(c));
    CHECK(jot_onnx_set_weight(m, "w", jot_none()), "%s", jot_message(c));
    jot_onnx_free(m);
    jot_close(c);
}

/* External data, and a tensor in a file. */
static void
files(void)
{
    char folder[] = "/tmp/jot_onnx_XXXXXX", path[100];
    int k = find("r_external");
    uint8_t *m = malloc(ref_onnx[k].nbytes);
    jot_Ctx *c = open_as("interp");
    jot_Tensor in = tensor(&ref_onnx[k].x[0]), out;
    const float w[6] = {1, 2, 3, 4, 5, 6};
    const uint8_t t[] = {8, 2, 16, 1, 74, 8, 0, 0, 128, 63, 0, 0, 0, 64}; /* (2) f32: 1, 2 */

    CHECK(mkdtemp(folder) != NULL, "no folder");
    memcpy(m, ref_onnx[k].model, ref_onnx[k].nbytes);
    for (size_t i = 0; i + 10 <= ref_onnx[k].nbytes; i++)
        if (!memcmp(m + i, "../weights", 10))
            memcpy(m + i, "hereweight", 10);
    for (int size = 20; size <= 24; size += 4) {
        snprintf(path, sizeof path, "%s/hereweight", folder);
        FILE *f = fopen(path, "wb");
        fwrite(w, 1, (size_t)size, f);
        fclose(f);
        jot_Onnx *o = jot_onnx_parse(c, m, ref_onnx[k].nbytes, folder);
        bool ran = jot_onnx_run(o, &in, 1, &out, 1);
        CHECK(ran == (size == 24), "%s", jot_message(c));
        if (ran)
            CHECK(((const float *)out.data)[5] == ((const float *)in.data)[5] + 6, "a sum");
        else
            CHECK(strstr(jot_message(c), "hereweight"), "%s", jot_message(c));
        jot_onnx_free(o);
        jot_clear(c);
    }
    snprintf(path, sizeof path, "%s/t.pb", folder);
    FILE *f = fopen(path, "wb");
    fwrite(t, 1, sizeof t, f);
    fclose(f);
    jot_Var v = jot_onnx_read_tensor(c, path);
    CHECK(jot_nelem(v) == 2 && jot_data_f32(v)[1] == 2, "%s", jot_message(c));
    remove(path);
    snprintf(path, sizeof path, "%s/hereweight", folder);
    remove(path);
    rmdir(folder);
    free(m);
    jot_close(c);
}

/* Bytes cut off anywhere, and spoiled at drawn places: an answer or a message. */
static void
spoiled(int times)
{
    uint64_t r = 88172645463325252u;
    jot_Ctx *c = open_as("interp");
    int said = 0, ran = 0;

    for (int t = 0; t < times; t++) {
        int k = (int)(r % CASES);
        size_t n = ref_onnx[k].nbytes;
        uint8_t *b = malloc(n);
        memcpy(b, ref_onnx[k].model, n);
        for (int i = 0; i < 1 + t % 3; i++) {
            r ^= r << 13, r ^= r >> 7, r ^= r << 17;
            b[(r >> 8) % n] = (uint8_t)(r >> 40);
        }
        if (t % 4 == 0)
            n = (r >> 20) % n;
        jot_Tensor in[MOST], out[64];
        for (int i = 0; i < ref_onnx[k].in; i++)
            in[i] = tensor(&ref_onnx[k].x[i]);
        jot_Onnx *m = jot_onnx_parse(c, b, n, NULL);
        bool done = m && jot_onnx_outputs(m, NULL, 0) <= 64
                 && jot_onnx_run(m, in, ref_onnx[k].in, out, jot_onnx_outputs(m, NULL, 0));
        CHECK(done || (m && !jot_error(c)) || *jot_message(c), "%s: nothing is said",
              ref_onnx[k].name);
        done ? ran++ : said++;
        jot_onnx_free(m);
        jot_clear(c);
        free(b);
    }
    CHECK(said > times / 4 && ran > 0, "%d refused, %d ran", said, ran);
    jot_close(c);
}

int
main(int argc, char **argv)
{
    if (*jot_onnx_missing()) {
        jot_Ctx *c = open_as("interp");
        CHECK(!jot_onnx_load(c, "x") && strstr(jot_message(c), jot_onnx_missing()), "%s",
              jot_message(c));
        jot_close(c);
        SKIP("%s", jot_onnx_missing());
        return DONE();
    }
    for (int k = 0; k < CASES; k++)
        run_case(k, "interp");
    run_case(find("conv"), "cpu");
    run_case(find("lstm"), "cpu");
    lists();
    metadata();
    shapes();
    bounds("tcc");
    bounds("interp");
    waits();
    fixed();
    trained();
    files();
    spoiled(argc > 1 ? atoi(argv[1]) : 600);
    return DONE();
}
