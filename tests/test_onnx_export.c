/* tests/test_onnx_export.c - graphs written in ONNX's format (jot_onnx_export): what comes back by
 * our own importer has the same values.
 *
 *     test_onnx_export [drawn]             so many drawn programs
 *     test_onnx_export FOLDER drawn        models, inputs and outputs as files, for another runtime
 *                                          (tests/test_onnx_export.sh)
 *
 * Guards: onnx/export/graph.c onnx/export/message.c onnx/export/element.c onnx/export/number.c
 * onnx/export/map.c onnx/export/place.c onnx/export/digits.c onnx/export/concat.c
 * onnx/export/reduce.c onnx/export/product.c onnx/export/window.c onnx/export/file.c */
#include "onnx.h"
#include "io.h"
#include "tests/hooks.h"
#include "tests/test.h"
#include "tests/onnx_shelf.h"
#include <sys/stat.h>
#include <unistd.h>

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

/* is is want, to 1e-5 of the largest (of doubles that a drawn program multiplies 1e-9). */
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

static void
all_of(const char *folder, int drawn)
{
    static Shelf s;
    int nb = (int)(sizeof builders / sizeof *builders), k;

    for (int b = getenv("FIRST")?atoi(getenv("FIRST")):0; b <= nb; b++)
        for (k = 0; b < nb || k < drawn; k++) {
            memset(&s, 0, sizeof s);
            s.c = open_here();
            s.seed = 7u + (uint32_t)k;
            jot_push(s.c);
            bool there = b < nb ? builders[b](&s, k) : shelf_drawn(&s, (uint64_t)k);
            CHECK(!jot_error(s.c), "%s: %s", s.name, jot_message(s.c));
            if (there && s.nout) {
                if (folder)
                    write_case(&s, folder);
                else
                    check_back(&s);
            }
            jot_pop(s.c);
            jot_close(s.c);
            if (!there)
                break;
        }
}

int
main(int argc, char **argv)
{
    if (*jot_onnx_missing()) {
        SKIP("%s", jot_onnx_missing());
        return DONE();
    }
    bool folder = argc > 2;
    all_of(folder ? argv[1] : NULL, argc > 1 ? atoi(argv[argc - 1]) : 60);
    return DONE();
}
