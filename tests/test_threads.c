/* tests/test_threads.c - results do not depend on the number of threads: the same programs at 1, 2, 3,
 * 7 and 128 threads give the same bits; contexts of several threads work side by side; a pool that
 * waits uses no processor time. */
#include "core.h"
#include "tests/test.h"
#include <pthread.h>
#include <time.h>

enum { N = 37, M = 611, MOST = 1 << 17 };

static float numbers[MOST];

/* Element-wise, reductions along either axis, products, a convolution with its gradients. */
static int
build(jot_Ctx *c, jot_Var *out)
{
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(N, M), numbers), w, g[2], in[2], y;
    jot_Conv how = {{1, 1}, {1, 1}, {1, 1}, 1};
    int n = 0;

    out[n++] = jot_tanh(jot_mul(x, x));
    out[n++] = jot_sum(x, JOT_DIMS(0));
    out[n++] = jot_sum(x, JOT_DIMS(1));
    out[n++] = jot_softmax(x, 1);
    out[n++] = jot_softmax(x, 0);
    out[n++] = jot_matmul(jot_transpose(x, JOT_DIMS(1, 0)), x);
    out[n++] = jot_argmax(x, 1);
    in[0] = jot_array(c, JOT_F32, JOT_SHAPE(3, 4, 33, 29), numbers);
    in[1] = w = jot_array(c, JOT_F32, JOT_SHAPE(6, 4, 3, 3), numbers + 99);
    y = jot_conv2d(in[0], w, &how);
    out[n++] = y;
    jot_grad(jot_sum(jot_mul(y, y), JOT_ALL_DIMS), in, 2, g);
    out[n++] = g[0];
    out[n++] = g[1];
    out[n++] = jot_uniform(c, JOT_F32, JOT_SHAPE(N, M));
    return n;
}

static void
compare(const char *backend)
{
    static const int threads[] = {1, 2, 3, 7, 128};
    jot_Ctx *one = NULL;
    jot_Var want[16], got[16];
    int i, k, n = 0;

    for (i = 0; i < 5; i++) {
        jot_Config config = {.backend = backend, .threads = threads[i]};
        jot_Ctx *c = jot_open(&config);

        if (jot_error(c)) {
            SKIP("%s: %s", backend, jot_message(c));
            jot_close(c);
            break;
        }
        n = build(c, got);
        CHECK(jot_run(c, jot_vars(n, got)), "%s, %d threads: %s", backend, threads[i], jot_message(c));
        for (k = 0; one && k < n; k++)
            CHECK(!memcmp(jot_data(want[k]), jot_data(got[k]),
                          (size_t)jot_nelem(got[k]) * jot_dtype_nbytes(jot_dtype(got[k]))),
                  "%s: result %d differs at %d threads", backend, k, threads[i]);
        if (one) {
            jot_close(c);
        } else {
            one = c;
            memcpy(want, got, sizeof want);
        }
    }
    if (one)
        jot_close(one);
}

static double
cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void
idle(const char *backend)
{
    jot_Config config = {.backend = backend, .threads = 4};
    jot_Ctx *c = jot_open(&config);
    struct timespec nap = {0, 300000000};
    jot_Var out[16];
    double before;

    if (jot_error(c)) {
        jot_close(c);
        return;
    }
    jot_run(c, jot_vars(build(c, out), out));
    nanosleep(&nap, NULL);
    before = cpu_seconds();
    nanosleep(&nap, NULL);
    CHECK(cpu_seconds() - before < 0.02, "an idle pool used %g s of %g", cpu_seconds() - before, 0.3);
    jot_close(c);
}

typedef struct { const char *backend; double sum; } Side;

static void *
side(void *p)
{
    Side *s = p;
    jot_Config config = {.backend = s->backend, .threads = 3};
    int i;

    for (i = 0; i < 5; i++) {
        jot_Ctx *c = jot_open(&config);
        jot_Var out[16];
        int n = build(c, out);

        s->sum = jot_run(c, jot_vars(n, out)) ? jot_item(jot_sum(out[3], JOT_ALL_DIMS)) : -1;
        jot_close(c);
    }
    return NULL;
}

static void
side_by_side(const char *backend)
{
    Side s[3];
    pthread_t t[3];
    jot_Config config = {.backend = backend};
    jot_Ctx *c = jot_open(&config);
    bool have = !jot_error(c);
    int i;

    jot_close(c);
    for (i = 0; have && i < 3; i++) {
        s[i].backend = backend;
        CHECK(!pthread_create(&t[i], NULL, side, &s[i]), "thread");
    }
    for (i = 0; have && i < 3; i++) {
        pthread_join(t[i], NULL);
        CHECK(fabs(s[i].sum - N) < 1e-3 && s[i].sum == s[0].sum, "context %d: %g", i, s[i].sum);
    }
}

int
main(void)
{
    int i;

    for (i = 0; i < MOST; i++)
        numbers[i] = (float)((i * 7919 % 1000) - 500) / 300;
    compare("tcc");
    compare("cc");
    idle("tcc");
    idle("cc");
    side_by_side("tcc");
    return DONE();
}
