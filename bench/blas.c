/* bench/blas.c - OpenBLAS, where it was found at build time: the plain matrix products.
 *
 * linear_bias_relu is its product followed by the plainest loop for the rest. */
#include <stdlib.h>
#include <string.h>
#include "bench/system.h"

#ifdef HAVE_OPENBLAS
#include <cblas-openblas.h>

static const Work *work;
static float *a, *b, *c;
static int64_t m, n, k, batch;

static float *
numbers(int64_t count)
{
    float *p = aligned_alloc(64, ((size_t)count * sizeof *p + 63) / 64 * 64);

    for (int64_t i = 0; i < count; i++)
        p[i] = (float)model_fill(1, (uint32_t)i);
    return p;
}

static int
open_work(const Work *w, int threads)
{
    bool gemm = !strncmp(w->name, "gemm_", 5) || !strncmp(w->name, "mm_", 3);

    work = w;
    batch = 1;
    if (gemm) {
        m = w->a[0];
        k = w->a[1];
        n = w->a[2];
    } else if (!strcmp(w->name, "bmm_96x128x64x128")) {
        batch = 96;
        m = n = 128;
        k = 64;
    } else if (!strcmp(w->name, "linear_bias_relu_256")) {
        m = 256;
        n = k = 1024;
    } else
        return 0;
    openblas_set_num_threads(threads);
    a = numbers(batch * m * k);
    b = numbers(batch * k * n);
    c = numbers(batch * m * n + n);
    return 1;
}

static bool
run(void)
{
    bool linear = work->name[0] == 'l', turned = strstr(work->name, "by_weight") != NULL;

    for (int64_t i = 0; i < batch; i++)
        cblas_sgemm(CblasRowMajor, turned ? CblasTrans : CblasNoTrans,
                    linear ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k, 1, a + i * m * k,
                    turned ? (int)m : (int)k, b + i * k * n, linear ? (int)k : (int)n, 0,
                    c + i * m * n, (int)n);
    for (int64_t i = 0; linear && i < m * n; i++) {
        float v = c[i] + c[m * n + i % n];

        c[i] = v > 0 ? v : 0;
    }
    return true;
}

static void
close_work(void)
{
    free(a);
    free(b);
    free(c);
}

const System system_openblas = {"openblas", NULL, open_work, run, close_work, NULL, NULL};
#else
const System system_openblas = {
    "openblas", "no cblas-openblas.h here (apt install libopenblas-dev)", NULL, NULL, NULL, NULL,
    NULL
};
#endif
