/* tests/test_memory.c - refused allocations: a small training step is run with the n-th allocation
 * refused, for every n until none is. Whatever n: no crash, an error that says so, parameters as
 * they were, a context that goes on, and nothing left when it is closed. */
#include "core.h"
#include "tests/test.h"
#include <unistd.h>

typedef struct { long countdown; size_t live; long calls; } Heap;

static void *
heap_realloc(void *ud, void *p, size_t old_nbytes, size_t new_nbytes)
{
    Heap *h = ud;
    void *q;

    if (!new_nbytes) {
        if (p)
            h->live -= old_nbytes;
        free(p);
        return NULL;
    }
    h->calls++;
    if (h->countdown > 0 && --h->countdown == 0)
        return NULL;
    q = aligned_alloc(64, (new_nbytes + 63) / 64 * 64);
    if (!q)
        return NULL;
    if (p) {
        memcpy(q, p, old_nbytes < new_nbytes ? old_nbytes : new_nbytes);
        free(p);
    }
    h->live += new_nbytes - (p ? old_nbytes : 0);
    return q;
}

/* n steps of a two-layer network. */
static bool
steps(jot_Ctx *c, jot_Var w1, jot_Var w2, jot_Var x, jot_Var y, int n)
{
    int i;

    for (i = 0; i < n; i++) {
        jot_Var p[2], g[2], loss;
        bool ok;

        jot_push(c);
        p[0] = w1;
        p[1] = w2;
        loss = jot_mse(jot_matmul(jot_sigmoid(jot_matmul(x, w1)), w2), y);
        ok = jot_grad(loss, p, 2, g);
        ok = ok && jot_assign(w1, jot_sub(w1, jot_scale(g[0], 0.1)))
          && jot_assign(w2, jot_sub(w2, jot_scale(g[1], 0.1)));
        ok = ok && jot_run(c, jot_vars(1, &loss));
        jot_pop(c);
        if (!ok)
            return false;
    }
    return true;
}

static const float data[12] = {1, -1, .5f, 2, 0, 1, -.5f, .25f, 1, 1, -2, .125f};

static bool
near(const float *a, const float *b, int n)
{
    int i;

    for (i = 0; i < n; i++)
        if (fabsf(a[i] - b[i]) > 1e-5f)
            return false;
    return true;
}

static void
campaign(const char *backend, const char *cache_dir, int stride)
{
    float w1_is[12], w2_is[4], after[12];
    long n = 1, total = 0;
    bool done = false;

    for (; !done && n < 200000; n += stride) {
        Heap heap = {0, 0, 0};
        jot_Config config = {.backend = backend, .cache_dir = cache_dir, .give_back = 1};
        jot_Ctx *c;
        jot_Var w1, w2, x, y;
        bool ok;

        config.hooks.realloc = heap_realloc;
        config.hooks.ud = &heap;
        heap.countdown = n;
        c = jot_open(&config);
        if (!c) {
            CHECK(heap.live == 0, "n %ld: %zu bytes left by a refused open", n, heap.live);
            continue;
        }
        if (jot_error(c) == JOT_EDEVICE) {
            SKIP("%s: %s", backend, jot_message(c));
            jot_close(c);
            return;
        }
        if (jot_error(c)) {
            CHECK(jot_error(c) == JOT_EMEM, "n %ld: %s", n, jot_message(c));
            jot_close(c);
            CHECK(heap.live == 0, "n %ld: %zu bytes left by a refused open", n, heap.live);
            continue;
        }
        x = jot_array(c, JOT_F32, JOT_SHAPE(4, 3), data);
        y = jot_array(c, JOT_F32, JOT_SHAPE(4, 1), data);
        w1 = jot_param(c, JOT_F32, JOT_SHAPE(3, 4), data);
        w2 = jot_param(c, JOT_F32, JOT_SHAPE(4, 1), data);
        ok = steps(c, w1, w2, x, y, 1);
        done = heap.countdown > 0;
        CHECK(ok || (jot_error(c) == JOT_EMEM && jot_message(c)[0]), "n %ld: %d %s", n,
              jot_error(c),
              jot_message(c));
        CHECK(!done || ok, "n %ld: %s", n, jot_message(c));
        heap.countdown = 0;
        jot_clear(c);
        /* A refusal loses nothing: the same context goes on, and no parameter was changed. */
        if (!ok && jot_ok(w1) && jot_ok(w2) && jot_ok(x) && jot_ok(y)) {
            CHECK(jot_copy(w1, w1_is, sizeof w1_is) && jot_copy(w2, w2_is, sizeof w2_is),
                  "n %ld: read: %s", n, jot_message(c));
            CHECK(!memcmp(w1_is, data, sizeof w1_is) && !memcmp(w2_is, data, sizeof w2_is),
                  "n %ld: parameters changed", n);
            CHECK(steps(c, w1, w2, x, y, 1), "n %ld: afterwards: %s", n, jot_message(c));
            CHECK(jot_copy(w1, after, sizeof after) && !near(w1_is, after, 12),
                  "n %ld: a step changes the parameters", n);
        }
        total = heap.calls;
        jot_close(c);
        CHECK(heap.live == 0, "%s, n %ld: %zu bytes left", backend, n, heap.live);
    }
    CHECK(done, "%s: refused up to %ld of %ld allocations", backend, n, total);
}

int
main(int argc, char **argv)
{
    int stride = argc > 1 ? atoi(argv[1]) : 1;
    char cache[] = "/tmp/jot-test-XXXXXX", remove[100];

    campaign("interp", "", stride);
    campaign("tcc", "", stride);
    campaign("cc", "", stride * 61); /* each runs the compiler */
    if (mkdtemp(cache)) {
        campaign("cc", cache, stride * 3); /* the first does */
        snprintf(remove, sizeof remove, "rm -r %s", cache);
        CHECK(!system(remove), "%s is left", cache);
    }
    return DONE();
}
