/* tests/onnx/run.c FOLDER NAME... - models with inputs and outputs: FOLDER/NAME/model.onnx, input_K.pb, output_K.pb
 * (in it, or in test_data_set_0), to be equal within 1e-4 of the largest element and to have it where theirs is. Of quantised models (NAME_qdq) a step or two of the last quantisation are allowed, for
 * ONNX Runtime's own modes differ by as much: 1/64 of the largest. With `-` for names: lines `NAME rtol atol plain` on stdin.
 * One line for each: ok, wrong or refused, and why. JOT_BACKEND chooses.
 *
 * run FOLDER time NAME SECONDS - for tests/onnx/times.py: times of runs. */
#include "onnx.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64 };

static const char *
file_of(const char *folder, const char *kind, int k, char path[600])
{
    snprintf(path, 600, "%s/%s_%d.pb", folder, kind, k);
    if (access(path, R_OK))
        snprintf(path, 600, "%s/test_data_set_0/%s_%d.pb", folder, kind, k);
    return access(path, R_OK) ? NULL : path;
}

/* The largest |a - b| - atol - rtol |b|, which is to be at most 0; in *at where. atol < 0: that part of the
 * largest |b|. */
static double
worst(jot_Var a, jot_Var b, double rtol, double atol, int64_t *at)
{
    const double *x = jot_data(jot_cast(a, JOT_F64)), *y = jot_data(jot_cast(b, JOT_F64));
    double most = -1, large = 0;

    for (int64_t i = 0; y && i < jot_nelem(b); i++)
        large = fmax(large, isfinite(y[i]) ? fabs(y[i]) : 0);
    atol = atol < 0 ? -atol * large : atol;
    for (int64_t i = 0; x && y && i < jot_nelem(a); i++) {
        double d = isnan(x[i]) && isnan(y[i]) ? -1 : x[i] == y[i] ? -1
                 : fabs(x[i] - y[i]) - atol - rtol * fabs(y[i]);
        if (isnan(d) || d > most) {
            most = isnan(d) ? INFINITY : d;
            *at = i;
        }
    }
    return x && y ? most : INFINITY;
}

/* The largest element is where theirs is. */
static bool
decided(jot_Var a, jot_Var b)
{
    return !jot_nelem(a) || jot_dtype(a) < JOT_F16
        || jot_item_int(jot_argmax(a, JOT_ALL_DIMS)) == jot_item_int(jot_argmax(b, JOT_ALL_DIMS));
}

static bool
same(jot_Ctx *c, const jot_Tensor *is, jot_Var want, double rtol, double atol, char why[300])
{
    int64_t at = 0;
    bool fits = is->dtype == jot_dtype(want) && is->shape.n == jot_rank(want);
    char have[100] = "", asked[100] = "";

    for (int d = 0; d < is->shape.n; d++)
        sprintf(have + strlen(have), " %lld", (long long)is->shape.v[d]);
    for (int d = 0; d < jot_rank(want); d++)
        sprintf(asked + strlen(asked), " %lld", (long long)jot_extent(want, d));
    if (!fits || strcmp(have, asked)) {
        snprintf(why, 300, "%s (%s ) asked, %s (%s ) found", jot_dtype_name(jot_dtype(want)), asked,
                 jot_dtype_name(is->dtype), have);
        return false;
    }
    jot_Var y = jot_array(c, is->dtype, is->shape, is->data);
    /* of 16 bits: two units in the last place, for what is asked was rounded at every operator */
    rtol = fmax(rtol, is->dtype == JOT_BF16 ? 0x1p-6 : is->dtype == JOT_F16 ? 0x1p-9 : 0);
    if (isinf(rtol))
        return true;
    double far = worst(y, want, rtol, atol, &at);
    if (far <= 0 && (atol >= 0 || decided(y, want)))
        return true;
    snprintf(why, 300, "element %lld: %.9g asked, %.9g found", (long long)at,
             ((const double *)jot_data(jot_cast(want, JOT_F64)))[at],
             ((const double *)jot_data(jot_cast(y, JOT_F64)))[at]);
    return false;
}

/* Operators that draw: only shape and dtype count. */
static bool
drawn(const char *name)
{
    return strstr(name, "bernoulli") || strstr(name, "training_dropout");
}

/* Read inputs; how many. */
static int
feeds(jot_Ctx *c, const char *where, int n_in, jot_Tensor *in)
{
    char path[600];
    int n = 0;

    for (; n < n_in && file_of(where, "input", n, path); n++) {
        jot_Var v = jot_onnx_read_tensor(c, path);
        in[n].dtype = jot_dtype(v);
        in[n].shape = jot_shape(v);
        in[n].data = jot_data(v);
        in[n].nbytes = (size_t)jot_nelem(v) * jot_dtype_nbytes(jot_dtype(v));
    }
    return n;
}

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* "ready" and the milliseconds to the first result, when code no longer changes; then for each line of stdin the
 * mean milliseconds of a run. */
static int
serve(const char *folder, const char *name, double seconds)
{
    char where[500], path[600], line[10];
    double start = now();
    jot_Ctx *c = jot_open(NULL);
    jot_Tensor in[MOST], out[MOST];

    snprintf(where, sizeof where, "%s/%s", folder, name);
    snprintf(path, sizeof path, "%s/model.onnx", where);
    jot_Onnx *m = jot_onnx_load(c, path);
    int n_out = jot_onnx_outputs(m, NULL, 0);
    int n = m && n_out <= MOST ? feeds(c, where, jot_onnx_inputs(m, NULL, 0), in) : 0;
    bool ran = m && jot_onnx_run(m, in, n, out, n_out);
    double first = now() - start;
    double changed = now();
    for (uint64_t before = 0; ran;) {
        double t = now();
        for (int k = 0; k < 3 || now() - t < seconds; k++)
            ran = jot_onnx_run(m, in, n, out, n_out);
        jot_Stats s = jot_stats(c);
        changed = s.swaps == before ? changed : now();
        if (s.swaps == before && (s.swaps >= s.kernels_quick || now() - changed > 20))
            break;
        before = s.swaps;
    }
    printf(ran ? "ready %.3f\n" : "refused %.3f %s\n", first * 1e3, jot_message(c));
    fflush(stdout);
    while (ran && fgets(line, sizeof line, stdin)) {
        double t = now();
        int k = 0;
        for (; k < 3 || now() - t < seconds; k++)
            jot_onnx_run(m, in, n, out, n_out);
        printf("%.6f\n", (now() - t) / k * 1e3);
        fflush(stdout);
    }
    jot_onnx_free(m);
    jot_close(c);
    return !ran;
}

static int
run(const char *folder, const char *name, double rtol, double atol)
{
    char where[500], path[600], why[300] = "";
    jot_Ctx *c = jot_open(NULL);
    jot_Tensor in[MOST], out[MOST];
    int n, bad = 0;

    snprintf(where, sizeof where, "%s/%s", folder, name);
    snprintf(path, sizeof path, "%s/model.onnx", where);
    jot_Onnx *m = jot_onnx_load(c, path);
    int n_in = jot_onnx_inputs(m, NULL, 0), n_out = jot_onnx_outputs(m, NULL, 0);
    n = n_in <= MOST ? feeds(c, where, n_in, in) : 0;
    if (!m || n_out > MOST || !jot_onnx_run(m, in, n, out, n_out)) {
        printf("refused %s: %s\n", name, jot_message(c));
        bad = 1;
    }
    for (int k = 0; !bad && k < n_out && file_of(where, "output", k, path); k++) {
        jot_Var want = jot_onnx_read_tensor(c, path);
        bool fits = jot_ok(want)
                 && same(c, &out[k], want, drawn(name) ? INFINITY : rtol, atol, why);
        if (!fits) {
            printf("wrong %s: output %d: %s\n", name, k, jot_ok(want) ? why : jot_message(c));
            bad = 2;
        }
    }
    if (!bad)
        printf("ok %s\n", name);
    fflush(stdout);
    jot_onnx_free(m);
    jot_close(c);
    return bad;
}

int
main(int argc, char **argv)
{
    char line[600], name[400], kind[100];
    double rtol, atol;
    int bad = 0;

    if (argc < 3)
        return fprintf(stderr, "run FOLDER NAME...\n"), 2;
    if (argc == 5 && !strcmp(argv[2], "time"))
        return serve(argv[1], argv[3], atof(argv[4]));
    for (int k = 2; k < argc && strcmp(argv[k], "-"); k++)
        bad += run(argv[1], argv[k], 0, strstr(argv[k], "_qdq") ? -1.0 / 64 : -1e-4) != 0;
    while (!strcmp(argv[argc - 1], "-") && fgets(line, sizeof line, stdin))
        if (sscanf(line, "%399s %lf %lf %99s", name, &rtol, &atol, kind) == 4
            && !strcmp(kind, "plain"))
            bad += run(argv[1], name, rtol, atol) != 0;
    return bad != 0;
}
