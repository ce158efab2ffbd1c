/* tests/test_onnx_export.c - graphs written in ONNX's format (jot_onnx_export): what comes back by
 * our own importer has the same values.
 *
 *     test_onnx_export [drawn]             so many drawn programs
 *     test_onnx_export FOLDER drawn        models, inputs and outputs as files, for another runtime
 *                                          (tests/test_onnx_export.sh)
 *
 * Guards: onnx/export/graph.c onnx/export/model.c onnx/export/message.c onnx/export/element.c
 * onnx/export/number.c onnx/export/map.c onnx/export/place.c onnx/export/digits.c
 * onnx/export/concat.c onnx/export/reduce.c onnx/export/product.c onnx/export/window.c
 * onnx/export/pool.c onnx/export/value.c onnx/export/file.c */
#include "onnx.h"
#include "io.h"
#include "tests/hooks.h"
#include "tests/test.h"
#include "tests/onnx_shelf.h"
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int rename_fails; /* the n-th from now on; 0: none */

/* C's, which fails when it is told to. */
int
rename(const char *from, const char *to)
{
    errno = EIO;
    return rename_fails && --rename_fails == 0 ? -1
           : (int)syscall(SYS_renameat2, -100, from, -100, to, 0);
}

typedef struct { char *p; size_t n, room; } Bytes;

static void
keep_bytes(void *user, const char *text, size_t n)
{
    Bytes *b = user;

    if (b->n + n > b->room)
        b->p = realloc(b->p, b->room = 2 * (b->n + n));
    memcpy(b->p + b->n, text, n);
    b->n += n;
}

static jot_Ctx *
open_here(void)
{
    jot_Config config = {.cache_dir = "", .deterministic = 1, .no_programs = 1};

    return jot_open(&config);
}

/* is is want; floats to `most` of the largest. */
static void
compare(const Shelf *s, int k, const jot_Tensor *is, jot_Var want, double most)
{
    jot_Ctx *c = s->c;
    jot_Ints shape = jot_shape(want);
    bool fits = is->dtype == jot_dtype(want) && is->shape.n == shape.n;

    for (int d = 0; fits && d < shape.n; d++)
        fits = is->shape.v[d] == shape.v[d];
    CHECK(fits, "%s: output %d: another dtype or shape", s->name, k);
    if (!fits)
        return;
    if (is->dtype < JOT_F16) { /* integers and truths: all of them */
        const char *is_at = is->data, *at = jot_data(want);
        size_t size = jot_dtype_nbytes(is->dtype), n = (size_t)jot_nelem(want), i = 0;
        while (at && i < n && !memcmp(is_at + i * size, at + i * size, size))
            i++;
        CHECK(at && i == n, "%s: output %d, element %zu of %s: another one", s->name, k, i,
              jot_dtype_name(is->dtype));
        return;
    }
    jot_push(c);
    const double *y = jot_data(jot_cast(want, JOT_F64));
    const double *x = jot_data(jot_cast(jot_array(c, is->dtype, is->shape, is->data), JOT_F64));
    double large = 0;
    int64_t n = jot_nelem(want), i;
    for (i = 0; x && y && i < n; i++)
        large = isfinite(y[i]) && fabs(y[i]) > large ? fabs(y[i]) : large;
    for (i = 0; x && y && i < n; i++) {
        bool same = x[i] == y[i] || (isnan(x[i]) && isnan(y[i]))
                 || fabs(x[i] - y[i]) <= most * large;
        if (!same)
            break;
    }
    CHECK(x && y && i == n, "%s: output %d, element %lld: %.9g, not %.9g", s->name, k,
          (long long)i, x ? x[i] : 0, y ? y[i] : 0);
    jot_pop(c);
}

static double
tolerance(const Shelf *s, int k)
{
    jot_DType d = jot_dtype(s->out[k]);

    return d == JOT_BF16 ? 8e-3 : d == JOT_F16 ? 1e-3 : 1e-5;
}

/* There and back. */
static void
check_back(Shelf *s)
{
    static jot_Tensor in[SHELF_IN], out[SHELF_OUT];
    Bytes b = {0};
    jot_Ctx *c = s->c;
    bool wrote = jot_onnx_export_to(c, jot_vars(s->nin, s->in), jot_vars(s->nout, s->out), NULL,
                                    keep_bytes, &b);

    CHECK(wrote, "%s: %s", s->name, jot_message(c));
    jot_Onnx *m = wrote ? jot_onnx_parse(c, b.p, b.n, NULL) : NULL;
    CHECK(!wrote || m, "%s: %s", s->name, jot_message(c));
    for (int k = 0; k < s->nin; k++) {
        size_t nbytes = (size_t)jot_nelem(s->in[k]) * jot_dtype_nbytes(jot_dtype(s->in[k]));
        in[k] = (jot_Tensor){jot_dtype(s->in[k]), jot_shape(s->in[k]), jot_data(s->in[k]), nbytes};
        in[k].data = in[k].data ? in[k].data : "";
    }
    bool ran = m && jot_onnx_run(m, in, s->nin, out, s->nout);
    CHECK(!m || ran, "%s: %s", s->name, jot_message(c));
    for (int k = 0; ran && k < s->nout; k++)
        compare(s, k, &out[k], s->out[k], tolerance(s, k));
    jot_onnx_free(m);
    free(b.p);
    jot_clear(c);
}

/* A running sum is the operator, not a sum for each element. */
static void
running_sums(void)
{
    Shelf s = {.c = open_here(), .name = "a long running sum", .seed = 5};
    Bytes b = {0};

    s.out[s.nout++] = jot_cumsum(shelf_in(&s, JOT_F32, JOT_SHAPE(2, 3000), -1, 1), 1);
    check_back(&s);
    CHECK(jot_onnx_export_to(s.c, jot_vars(1, s.in), jot_vars(1, s.out), NULL, keep_bytes, &b)
          && memmem(b.p, b.n, "CumSum", 6) && !memmem(b.p, b.n, "ReduceSum", 9), "%s: %s", s.name,
          jot_message(s.c));
    free(b.p);
    jot_close(s.c);
}

/* For another runtime: FOLDER/NAME/model.onnx, io.npz with in0.., out0... */
static void
write_case(Shelf *s, const char *folder)
{
    static jot_Named named[SHELF_IN + SHELF_OUT];
    char path[600];
    int n = 0;

    snprintf(path, sizeof path, "%s/%s", folder, s->name);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/model.onnx", folder, s->name);
    CHECK(jot_onnx_export(s->c, jot_vars(s->nin, s->in), jot_vars(s->nout, s->out), path, NULL),
          "%s: %s", s->name, jot_message(s->c));
    for (int k = 0; k < s->nin + s->nout; k++) {
        jot_Var v = k < s->nin ? s->in[k] : s->out[k - s->nin];
        snprintf(named[n].name, sizeof named[n].name, "%s%d", k < s->nin ? "in" : "out",
                 k < s->nin ? k : k - s->nin);
        named[n++].var = jot_dtype(v) == JOT_BF16 ? jot_cast(v, JOT_F32) : v;
    }
    snprintf(path, sizeof path, "%s/%s/io.npz", folder, s->name);
    CHECK(jot_file_write(s->c, path, named, n, NULL), "%s: %s", s->name, jot_message(s->c));
    jot_clear(s->c);
}

typedef bool Builder(Shelf *s, int k);
static Builder *const builders[] = {shelf_forms, shelf_reduce, shelf_products, shelf_images,
                                    shelf_layers, shelf_net, shelf_cast, shelf_element};
enum { BUILDERS = sizeof builders / sizeof *builders };

/* One case; false: there are no more. */
static bool
one_of(Shelf *s, int builder, int k, const char *folder, int drawn)
{
    bool shelf = builder < BUILDERS, there = shelf || k < drawn;

    jot_push(s->c);
    s->nin = s->nout = 0;
    s->seed = 7u + (uint32_t)k;
    if (there)
        there = shelf ? builders[builder](s, k) : shelf_drawn(s, (uint64_t)k);
    CHECK(!jot_error(s->c), "%s: %s", s->name, jot_message(s->c));
    if (there && s->nout && folder)
        write_case(s, folder);
    else if (there && s->nout)
        check_back(s);
    jot_pop(s->c);
    return there;
}

static void
all_of(const char *folder, int drawn)
{
    static Shelf s;

    for (int b = 0; b <= BUILDERS; b++) {
        s.c = open_here();
        for (int k = 0; one_of(&s, b, k, folder, drawn); k++)
            continue;
        jot_close(s.c);
    }
}

/* ---- what is refused ---- */

static bool
write_nothing(Shelf *s, Bytes *b)
{
    b->n = 0;
    return jot_onnx_export_to(s->c, jot_vars(s->nin, s->in), jot_vars(s->nout, s->out), NULL,
                              keep_bytes, b);
}

static void
check_refused(Shelf *s, const char *name, jot_Status status, const char *words)
{
    Bytes b = {0};

    CHECK(!write_nothing(s, &b) && jot_error(s->c) == status && strstr(jot_message(s->c), words)
          && !b.n, "%s: %s", name, jot_message(s->c));
    jot_clear(s->c);
    free(b.p);
    s->nin = s->nout = 0;
}

static bool
twice(void *user, jot_Vars in, jot_Var *out)
{
    (void)user;
    out[0] = jot_add(in.v[0], in.v[0]);
    return jot_ok(out[0]);
}

static bool
step(void *user, jot_Vars in, jot_Var *out)
{
    (void)user;
    out[0] = jot_add(in.v[0], in.v[1]);
    return jot_ok(out[0]);
}

static void
refused_graphs(void)
{
    static Shelf s;
    jot_Ctx *c = s.c = open_here();
    jot_Var x, w, y, z[2];

    s.nout = 0;
    x = shelf_in(&s, JOT_F32, JOT_SHAPE(3, 4), -1, 1);
    shelf_out(&s, jot_sort(x, 1, false));
    check_refused(&s, "sort", JOT_EUSE, "user code argsort is not exported");
    x = shelf_in(&s, JOT_F32, JOT_SHAPE(3, 4), -1, 1);
    shelf_out(&s, jot_code_map("a + 1", JOT_VARS(x), JOT_F32, NULL));
    check_refused(&s, "code_map", JOT_EUSE, "is not exported: ONNX has no operator");
    x = shelf_in(&s, JOT_F32, JOT_SHAPE(3, 4), -1, 1);
    shelf_out(&s, jot_dropout(x, 0.5));
    check_refused(&s, "dropout", JOT_EUSE, "random numbers are not exported");
    x = shelf_in(&s, JOT_F32, JOT_SHAPE(), -1, 1);
    jot_cond(jot_gt(x, jot_scalar(c, JOT_F32, 0)), JOT_VARS(x), twice, twice, NULL, 1, z);
    shelf_out(&s, z[0]);
    check_refused(&s, "cond", JOT_EUSE, "the branch cond is not exported");
    x = shelf_in(&s, JOT_F32, JOT_SHAPE(5, 2), -1, 1);
    y = jot_zeros(c, JOT_F32, JOT_SHAPE(2));
    jot_for(JOT_VARS(y), JOT_VARS(x), step, NULL, &(jot_For){.trips = 0}, z);
    shelf_out(&s, z[0]);
    check_refused(&s, "for", JOT_EUSE, "the loop for is not exported");
    x = shelf_in(&s, JOT_F32, JOT_SHAPE(1 << 13), -1, 1);
    shelf_out(&s, jot_reindex(x, JOT_SHAPE(1 << 13, 1 << 12), JOT_INDEX("i0*i1%100")));
    check_refused(&s, "positions", JOT_ERANGE, "at most 16777216 elements asked, 33554432 found");
    s.in[s.nin++] = x;
    s.in[s.nin++] = x;
    shelf_out(&s, jot_neg(x));
    check_refused(&s, "an input twice", JOT_EUSE, "inputs[1] is there twice");
    s.in[s.nin++] = y = jot_neg(x);
    shelf_out(&s, jot_exp(y));
    check_refused(&s, "an expression", JOT_EUSE, "inputs[0] is an expression");
    s.in[s.nin++] = x;
    check_refused(&s, "no output", JOT_EUSE, "at least one output asked");
    s.in[s.nin++] = x;
    jot_Var gone = jot_neg(x);
    jot_free(gone);
    shelf_out(&s, gone);
    check_refused(&s, "a stale output", JOT_EHANDLE, "outputs");
    w = jot_param(c, JOT_F32, JOT_SHAPE(4), (float[]){1, 2, 3, 4});
    x = shelf_in(&s, JOT_F32, JOT_SHAPE(4), -1, 1);
    shelf_out(&s, jot_mul(w, x));
    jot_assign(w, jot_sub(w, x));
    check_refused(&s, "a step", JOT_EUSE, "an assignment waits that depends on an input");
    jot_close(c);
}

/* Files of a folder whose names end like this; gone: they are removed. */
static int
files_of(const char *folder, const char *end, bool gone)
{
    DIR *dir = opendir(folder);
    int n = 0;
    char path[400];

    for (struct dirent *d; dir && (d = readdir(dir));) {
        size_t size = strlen(d->d_name);
        if (size < strlen(end) || strcmp(d->d_name + size - strlen(end), end) || *d->d_name == '.')
            continue;
        n++;
        snprintf(path, sizeof path, "%s/%s", folder, d->d_name);
        if (gone)
            unlink(path);
    }
    if (dir)
        closedir(dir);
    return n;
}

/* A model with its weights beside it, of the value w each; then what the file gives is `gives`. */
static void
beside(const char *folder, float w, bool external, int fails, float gives)
{
    static float weight[600];
    char path[80];
    float ones[3] = {1, 1, 1};
    jot_Ctx *c = open_here();
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(1, 3), ones), y;
    jot_OnnxExport how = {.external = external};
    jot_Tensor in = {JOT_F32, JOT_SHAPE(1, 3), ones, sizeof ones}, out;

    for (int i = 0; i < 600; i++)
        weight[i] = w;
    snprintf(path, sizeof path, "%s/net.onnx", folder);
    y = jot_matmul(x, jot_param(c, JOT_F32, JOT_SHAPE(3, 200), weight));
    rename_fails = fails;
    bool ok = jot_onnx_export(c, JOT_VARS(x), JOT_VARS(y), path, &how);
    rename_fails = 0;
    CHECK(ok == !fails && jot_error(c) == (fails ? JOT_EIO : JOT_OK)
          && (ok || strstr(jot_message(c), "not written: rename")), "%d: %s", fails,
          jot_message(c));
    jot_clear(c);
    if (gives) {
        jot_Onnx *m = jot_onnx_load(c, path);
        CHECK(m && jot_onnx_run(m, &in, 1, &out, 1) && *(const float *)out.data == gives,
              "w %g, rename %d: not %g: %s", w, fails, gives, jot_message(c));
        jot_onnx_free(m);
    }
    CHECK(files_of(folder, "", false) == files_of(folder, ".onnx", false)
          + files_of(folder, ".data", false), "w %g, rename %d: something is left", w, fails);
    jot_close(c);
}

/* A refusal on the way leaves the old model with its weights, and nothing else. */
static void
refused_files(void)
{
    char folder[] = "/tmp/jot-onnx-XXXXXX";

    CHECK(mkdtemp(folder) != NULL, "no folder");
    for (int fails = 1; fails <= 2; fails++) {
        beside(folder, 1, true, fails, 0);
        CHECK(!files_of(folder, "", false), "files of what was refused: rename %d", fails);
    }
    beside(folder, 1, true, 0, 3);
    for (int fails = 1; fails <= 2; fails++) {
        beside(folder, 5, true, fails, 3);
        beside(folder, 1, true, fails, 3);
        CHECK(files_of(folder, ".data", false) == 1, "rename %d", fails);
    }
    beside(folder, 5, true, 0, 15);
    beside(folder, 5, true, 0, 15);
    CHECK(files_of(folder, ".data", false) == 1, "the old weights stay");
    beside(folder, 2, false, 1, 15);
    beside(folder, 2, false, 0, 6);
    CHECK(!files_of(folder, ".data", false), "weights that no model names");
    CHECK(files_of(folder, "", true) == 1 && !rmdir(folder), "something is left in %s", folder);
}

/* Arguments of files, and what is there afterwards. */
static void
files(void)
{
    jot_Ctx *c = open_here();
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(2, 3), (float[]){1, 2, 3, 4, 5, 6});
    float big[600];
    char folder[] = "/tmp/jot-onnx-XXXXXX", path[80];
    jot_OnnxExport how = {.inputs = jot_strs(1, (const char *[]){"rows"}),
                          .outputs = jot_strs(1, (const char *[]){"rows"})};

    for (int i = 0; i < 600; i++)
        big[i] = (float)i;
    CHECK(mkdtemp(folder) != NULL, "no folder");
    snprintf(path, sizeof path, "%s/net.onnx", folder);
    jot_Var w = jot_param(c, JOT_F32, JOT_SHAPE(3, 200), big);
    jot_name(w, "layer.weight");
    jot_Var y = jot_matmul(x, w);
    CHECK(!jot_onnx_export(c, JOT_VARS(x), JOT_VARS(y), path, &how) && jot_error(c) == JOT_EUSE
          && strstr(jot_message(c), "it is there twice"), "%s", jot_message(c));
    jot_clear(c);
    how.outputs = jot_strs(2, (const char *[]){"a", "b"});
    CHECK(!jot_onnx_export(c, JOT_VARS(x), JOT_VARS(y), path, &how)
          && strstr(jot_message(c), "1 outputs: as many names asked, 2 found"), "%s",
          jot_message(c));
    jot_clear(c);
    CHECK(!jot_onnx_export(c, JOT_VARS(x), JOT_VARS(y), NULL, NULL) && jot_error(c) == JOT_EUSE,
          "%s", jot_message(c));
    jot_clear(c);
    CHECK(!jot_onnx_export(c, JOT_VARS(x), JOT_VARS(y), folder, NULL) && jot_error(c) == JOT_EIO
          && strstr(jot_message(c), "a file asked, a folder found"), "%s", jot_message(c));
    jot_clear(c);
    CHECK(!jot_onnx_export(c, JOT_VARS(x), JOT_VARS(y), "/tmp/no/such/net.onnx", NULL)
          && jot_error(c) == JOT_EIO, "%s", jot_message(c));
    jot_clear(c);
    CHECK(access(path, F_OK) != 0, "a file after what was refused");
    how.outputs = jot_strs(1, (const char *[]){"scores"});
    for (int external = 0; external < 2; external++) {
        jot_OnnxValue v;
        jot_Tensor in = {JOT_F32, JOT_SHAPE(2, 3), jot_data(x), 24}, out;
        how.external = external;
        CHECK(jot_onnx_export(c, JOT_VARS(x), JOT_VARS(y), path, &how), "%s", jot_message(c));
        CHECK(files_of(folder, ".data", false) == external,
              "weights beside the model: %d", external);
        jot_Onnx *m = jot_onnx_load(c, path);
        CHECK(m && jot_onnx_opset(m) == 18 && jot_onnx_weights(m, &v, 1) == 1
              && !strcmp(v.name, "layer.weight"), "%s", jot_message(c));
        CHECK(m && jot_onnx_inputs(m, &v, 1) == 1 && !strcmp(v.name, "rows"), "the input's name");
        CHECK(m && jot_onnx_outputs(m, &v, 1) == 1 && !strcmp(v.name, "scores"), "the output's");
        CHECK(m && jot_onnx_run(m, &in, 1, &out, 1) && !memcmp(out.data, jot_data(y), out.nbytes),
              "other values: %s", jot_message(c));
        jot_onnx_free(m);
    }
    jot_Var d = jot_dropout(x, 0.5); /* what is refused leaves the old one */
    struct stat was, is;
    stat(path, &was);
    CHECK(!jot_onnx_export(c, JOT_VARS(x), JOT_VARS(d), path, NULL), "dropout is written");
    CHECK(!stat(path, &is) && is.st_size == was.st_size && is.st_ino == was.st_ino, "another file");
    jot_clear(c);
    CHECK(files_of(folder, "", true) == 2, "the model and its weights");
    CHECK(!rmdir(folder), "something is left in %s", folder);
    jot_close(c);
}

/* Softplus of f32 is ONNX's, of f64 composed: ONNX Runtime's overflows. */
static void
softplus(void)
{
    jot_Ctx *c = open_here();

    for (int d = JOT_F32; d <= JOT_F64; d++) {
        jot_Var x = jot_array(c, (jot_DType)d, JOT_SHAPE(2), NULL);
        jot_OnnxNode node[64];
        Bytes b = {0};
        CHECK(jot_onnx_export_to(c, JOT_VARS(x), JOT_VARS(jot_softplus(x)), NULL, keep_bytes, &b),
              "%s", jot_message(c));
        jot_Onnx *m = jot_onnx_parse(c, b.p, b.n, NULL);
        int n = m ? jot_onnx_nodes(m, node, 64) : 0, found = 0;
        for (int k = 0; k < n && k < 64; k++)
            found += !strcmp(node[k].op, "Softplus");
        CHECK(n > 0 && n <= 64 && found == (d == JOT_F32), "%s: %d of %d nodes",
              jot_dtype_name((jot_DType)d), found, n);
        jot_onnx_free(m);
        free(b.p);
    }
    jot_close(c);
}

/* Where one of two is infinite so is their hypotenuse, whatever the other is. */
static void
far_corners(void)
{
    static const float a[] = {INFINITY, NAN, -INFINITY, 3, NAN}, b[] = {NAN, -INFINITY, 1, -4, 2};
    Shelf s = {.c = open_here(), .name = "hypot", .nin = 2, .nout = 1};

    s.in[0] = jot_array(s.c, JOT_F32, JOT_SHAPE(5), a);
    s.in[1] = jot_array(s.c, JOT_F32, JOT_SHAPE(5), b);
    s.out[0] = jot_hypot(s.in[0], s.in[1]);
    check_back(&s);
    jot_close(s.c);
}

/* ---- names ---- */

/* The graph's values by the model that b is. */
static void
check_named(jot_Ctx *c, const Bytes *b, jot_Tensor in, const char *const name[3], jot_Var want)
{
    jot_OnnxValue v[8];
    jot_Tensor out;
    jot_Onnx *m = jot_onnx_parse(c, b->p, b->n, NULL);
    int n = m ? jot_onnx_weights(m, v, 8) : 0, found = 0;

    CHECK(n >= 2 && n <= 8, "%d weights: %s", n, jot_message(c));
    for (int i = 0; i < n && n <= 8; i++) {
        found += !strcmp(v[i].name, name[1]);
        CHECK(strcmp(v[i].name, name[0]) && strcmp(v[i].name, name[2]), "%s twice", v[i].name);
        for (int k = 0; k < i; k++)
            CHECK(strcmp(v[i].name, v[k].name), "%s twice", v[i].name);
    }
    CHECK(found == 1, "%d weights %s", found, name[1]);
    CHECK(m && jot_onnx_inputs(m, v, 1) == 1 && !strcmp(v->name, name[0]), "%s", name[0]);
    CHECK(m && jot_onnx_outputs(m, v, 1) == 1 && !strcmp(v->name, name[2]), "%s", name[2]);
    CHECK(m && jot_onnx_run(m, &in, 1, &out, 1) && !memcmp(out.data, jot_data(want), out.nbytes),
          "%s, %s, %s: other values: %s", name[0], name[1], name[2], jot_message(c));
    jot_onnx_free(m);
}

/* Names of the caller's that nodes and constants would get: each in each place. */
static void
names(void)
{
    static const char *const made[] = {"Neg_0", "Mul_0", "Neg_1", "Mul_1", "Mul_2", "const_0",
                                       "const_2", "const_3", "Add_3", "Add_4", "Sin_3", "Sin_5",
                                       "param0", "in0", "out0"};
    enum { MADE = sizeof made / sizeof *made };
    jot_Ctx *c = open_here();
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(3), (float[]){1, 2, 3});
    jot_Var w = jot_param(c, JOT_F32, JOT_SHAPE(3), (float[]){4, 5, 7});
    jot_Var y = jot_sin(jot_offset(jot_mul(jot_neg(x), w), 2));
    jot_Tensor in = {JOT_F32, JOT_SHAPE(3), jot_data(x), 12};
    Bytes b = {0};

    for (int k = 0; k < MADE; k++)
        for (int given = 0; given < 2; given++) {
            const char *const name[] = {made[k], made[(k + 1) % MADE], made[(k + 2) % MADE]};
            jot_OnnxExport how = {.inputs = jot_strs(given, name),
                                  .outputs = jot_strs(given, name + 2)};
            jot_name(x, given ? "" : name[0]);
            jot_name(w, name[1]);
            jot_name(y, given ? "" : name[2]);
            b.n = 0;
            CHECK(jot_onnx_export_to(c, JOT_VARS(x), JOT_VARS(y), &how, keep_bytes, &b), "%s",
                  jot_message(c));
            check_named(c, &b, in, name, y);
        }
    jot_name(w, "\xff\xfe");
    CHECK(!jot_onnx_export_to(c, JOT_VARS(x), JOT_VARS(y), NULL, keep_bytes, &b)
          && jot_error(c) == JOT_EUSE
          && strstr(jot_message(c), "name \"\xff\xfe\" is no UTF-8 text"),
          "%s", jot_message(c));
    jot_clear(c);
    jot_name(w, "");
    jot_OnnxExport how = {.outputs = jot_strs(1, (const char *[]){"a\xc0\x80"})};
    CHECK(!jot_onnx_export_to(c, JOT_VARS(x), JOT_VARS(y), &how, keep_bytes, &b)
          && jot_error(c) == JOT_EUSE
          && strstr(jot_message(c), "name 0 of outputs: it is no UTF-8 text"), "%s",
          jot_message(c));
    free(b.p);
    jot_close(c);
}

/* ---- memory that is refused ---- */

static void
memory(void)
{
    Heap heap = {0};
    jot_Config config = {.hooks = {.realloc = heap_realloc, .ud = &heap}, .backend = "interp",
                         .give_back = 1, .no_environment = 1, .cache_dir = ""};
    static Shelf s;
    static float weight[108];
    Bytes b = {0};
    long n = 1;

    s.c = jot_open(&config);
    jot_Var x = s.in[s.nin++] = jot_array(s.c, JOT_F32, JOT_SHAPE(1, 3, 8, 8), NULL);
    jot_Var at = s.in[s.nin++] = jot_array(s.c, JOT_I64, JOT_SHAPE(4), NULL);
    jot_Var w = jot_param(s.c, JOT_F32, JOT_SHAPE(4, 3, 3, 3), weight);
    jot_Var y = jot_relu(jot_conv2d(x, w, &(jot_Conv){.pad = {1, 1}}));
    y = jot_max_pool2d(y, &(jot_Pool){.size = {2, 2}});
    y = jot_matmul(jot_reshape(y, JOT_SHAPE(4, 16)), jot_reshape(x, JOT_SHAPE(16, 12)));
    shelf_out(&s, jot_take(jot_softmax(y, 1), at, 0));
    shelf_out(&s, jot_concat(JOT_VARS(y, jot_flip(y, JOT_INTS(0))), 0));
    shelf_out(&s, jot_reindex_reduce(JOT_MAX, y, JOT_SHAPE(9), JOT_INDEX("i0+i1/2")));
    CHECK(write_nothing(&s, &b), "%s", jot_message(s.c));
    size_t all = b.n, live;
    for (; n < 20000; n++) {
        live = heap.live;
        heap.countdown = n;
        bool wrote = write_nothing(&s, &b);
        bool refused = heap.refused > 0;
        heap.countdown = heap.refused = 0;
        if (!refused) {
            CHECK(wrote && b.n == all, "after %ld refusals: %s", n, jot_message(s.c));
            break;
        }
        CHECK(wrote ? b.n == all : jot_error(s.c) == JOT_EMEM && !b.n, "refused %ld: %s", n,
              jot_message(s.c));
        jot_clear(s.c);
        CHECK(heap.live <= live || wrote, "refused %ld: %zu bytes stay", n, heap.live - live);
    }
    CHECK(n > 20 && n < 20000, "%ld allocations", n);
    free(b.p);
    jot_close(s.c);
    CHECK(!heap.live, "%zu bytes are left", heap.live);
}

int
main(int argc, char **argv)
{
    if (*jot_onnx_missing()) {
        SKIP("%s", jot_onnx_missing());
        return DONE();
    }
    bool folder = argc > 2;
    if (!folder) {
        running_sums();
        refused_graphs();
        files();
        refused_files();
        softplus();
        far_corners();
        names();
        memory();
    }
    all_of(folder ? argv[1] : NULL, argc > 1 ? atoi(argv[argc - 1]) : test_many(12, 60));
    return DONE();
}
