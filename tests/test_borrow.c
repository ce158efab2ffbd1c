/* tests/test_borrow.c - arrays of the caller's (jot_array_borrow), in memory that cannot be written
 * and behind which nothing can be read: values, gradients, assignments and functions as of copies;
 * when the memory is given back; what is refused; each request for memory refused in turn.
 *
 * Guards: ops/buffer.c, ops/create.c, plan/donate.c, plan/function/run.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core.h"
#include "tests/hooks.h"
#include "tests/test.h"

enum { ROWS = 37, COLUMNS = 53, N = ROWS * COLUMNS };

static float *mapped;
static int released;

static void
release(void *user, const void *data)
{
    CHECK(user == &released && data == mapped, "given back: what was borrowed");
    released++;
}

/* Its last element is the last of a page. */
static void
map(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t room = (N * sizeof(float) + page - 1) / page * page;
    char *p = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        abort();
    mapped = (float *)(void *)(p + room - N * sizeof(float));
    for (int i = 0; i < N; i++)
        mapped[i] = (float)(i % 17) / 8 - 1;
    mprotect(p, room, PROT_READ);
    mprotect(p + room, page, PROT_NONE);
}

static jot_Var
borrowed(jot_Ctx *c)
{
    return jot_array_borrow(c, JOT_F32, JOT_SHAPE(ROWS, COLUMNS), mapped, release, &released);
}

static jot_Ctx *
open_with(const char *backend)
{
    jot_Config config;

    memset(&config, 0, sizeof config);
    config.backend = backend;
    released = 0;
    return jot_open(&config);
}

/* ---- values --------------------------------------------------------------------------------- */

static void
values(const char *backend)
{
    jot_Ctx *c = open_with(backend);
    jot_Var x = borrowed(c), copy = jot_array(c, JOT_F32, JOT_SHAPE(ROWS, COLUMNS), mapped);
    jot_Var of[2] = { x, copy }, y[2], g[2];

    CHECK(jot_data(x) == (const void *)mapped, "%s: it is read where it lies", backend);
    for (int k = 0; k < 2; k++) {
        jot_Var rows = jot_matmul(of[k], jot_swap(of[k], 0, 1));

        y[k] = jot_add(jot_sum(jot_tanh(of[k]), JOT_DIMS(1)), jot_max(rows, JOT_DIMS(1)));
        jot_grad(jot_sum(jot_mul(y[k], y[k]), JOT_ALL_DIMS), JOT_VARS(of[k]), &g[k]);
    }
    jot_run(c, JOT_VARS(y[0], y[1], g[0], g[1]));
    CHECK(jot_error(c) == JOT_OK, "%s: %s", backend, jot_message(c));
    CHECK(!memcmp(jot_data(y[0]), jot_data(y[1]), ROWS * sizeof(float)), "%s: values", backend);
    CHECK(!memcmp(jot_data(g[0]), jot_data(g[1]), N * sizeof(float)), "%s: gradients", backend);
    CHECK(!released, "%s: not while its handle lives", backend);
    jot_free(x);
    CHECK(!released, "%s: nor while what was made of it may be computed again", backend);
    jot_close(c);
    CHECK(released == 1, "%s: by the close, given back %d times", backend, released);
}

static void
ends(const char *backend)
{
    jot_Ctx *c = open_with(backend);
    jot_Var x, y;

    jot_push(c);
    x = borrowed(c);
    y = jot_keep(jot_scale(x, 3));
    jot_pop(c);
    CHECK(!released, "%s: what is asked of it later needs it", backend);
    CHECK(((const float *)jot_data(y))[COLUMNS + 2] == 3 * mapped[COLUMNS + 2], "%s: a value",
          backend);
    jot_free(y);
    CHECK(released == 1, "%s: with the last that needs it, %d times", backend, released);
    x = borrowed(c);
    jot_free(x);
    CHECK(released == 2, "%s: with its handle, %d times", backend, released);
    x = jot_array_borrow(c, JOT_F32, JOT_SHAPE(2), mapped, NULL, NULL);
    CHECK(((const float *)jot_data(x))[1] == mapped[1], "%s: nobody is told", backend);
    jot_close(c);
    CHECK(released == 2, "%s: given back %d times", backend, released);
}

/* ---- nothing is written to it --------------------------------------------------------------- */

static void
assigned(const char *backend)
{
    jot_Ctx *c = open_with(backend);
    jot_Var x = borrowed(c), w = jot_param(c, JOT_F32, JOT_SHAPE(ROWS, COLUMNS), NULL);

    jot_assign(w, x); /* shares the elements */
    jot_run(c, JOT_VARS(w));
    for (int k = 0; k < 3; k++) {
        jot_push(c);
        jot_assign(w, jot_add(jot_scale(w, 2), jot_scalar(c, JOT_F32, 1)));
        jot_run(c, JOT_VARS(w));
        jot_pop(c);
    }
    CHECK(((const float *)jot_data(w))[5] == 8 * mapped[5] + 7, "%s: a parameter: %s", backend,
          jot_message(c));
    for (int k = 0; k < 3; k++) {
        jot_push(c);
        jot_assign(x, jot_scale(x, 2));
        jot_run(c, JOT_VARS(x));
        jot_pop(c);
    }
    CHECK(((const float *)jot_data(x))[7] == 8 * mapped[7], "%s: itself", backend);
    CHECK(released == 1, "%s: given back when it was assigned, %d times", backend, released);
    jot_close(c);
    CHECK(released == 1, "%s: given back %d times", backend, released);
}

static void
functions(const char *backend)
{
    jot_Ctx *c = open_with(backend);
    jot_Var table = borrowed(c), w = jot_param(c, JOT_F32, JOT_SHAPE(ROWS, COLUMNS), NULL);
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(COLUMNS), NULL), y;
    float in[COLUMNS], out[ROWS], want[ROWS];
    jot_Func f;

    for (int j = 0; j < COLUMNS; j++)
        in[j] = (float)(j % 5) - 2;
    jot_assign(w, table);
    jot_run(c, JOT_VARS(w));
    y = jot_sum(jot_mul(jot_add(table, w), x), JOT_DIMS(1));
    jot_assign(w, jot_scale(w, 2));
    f = jot_compile(c, JOT_VARS(x), JOT_VARS(y));
    jot_free(table);
    for (int k = 0, times = 1; k < 4; k++, times *= 2) {
        bool ok = jot_call(f, JOT_INS(JOT_IN(in, sizeof in)), JOT_OUTS(JOT_OUT(out, sizeof out)));

        CHECK(ok, "%s: call %d: %s", backend, k, jot_message(c));
        for (int i = 0; i < ROWS; i++) {
            want[i] = 0;
            for (int j = 0; j < COLUMNS; j++)
                want[i] += (float)(1 + times) * mapped[i * COLUMNS + j] * in[j];
            CHECK(want[i] - out[i] < 1e-3f && out[i] - want[i] < 1e-3f, "%s: call %d, row %d: %g, "
                  "%g asked", backend, k, i, out[i], want[i]);
        }
    }
    CHECK(!released, "%s: the function reads it", backend);
    jot_func_free(f);
    jot_close(c);
    CHECK(released == 1, "%s: given back %d times", backend, released);
}

/* ---- refusals ------------------------------------------------------------------------------- */

static void
refused_with(const char *what, jot_Status status, jot_Var made(jot_Ctx *c))
{
    jot_Ctx *c = open_with("interp");
    jot_Var v = made(c);

    CHECK(!jot_ok(v) && jot_error(c) == status, "%s: \"%s\"", what, jot_message(c));
    jot_close(c);
    CHECK(!released, "%s: nothing was borrowed", what);
}

static jot_Var
askew(jot_Ctx *c)
{
    return jot_array_borrow(c, JOT_F32, JOT_SHAPE(2), (char *)mapped + 2, release, &released);
}

static jot_Var
none(jot_Ctx *c)
{
    return jot_array_borrow(c, JOT_F32, JOT_SHAPE(2), NULL, release, &released);
}

static jot_Var
no_dtype(jot_Ctx *c)
{
    return jot_array_borrow(c, (jot_DType)99, JOT_SHAPE(2), mapped, release, &released);
}

/* A program of the interpreter, in which request number `at` is refused. False: there are fewer. */
static bool
refused_at(long at)
{
    Heap heap = { .countdown = at };
    jot_Config config;
    jot_Ctx *c;
    jot_Var x;
    bool has;

    memset(&config, 0, sizeof config);
    config.backend = "interp";
    config.hooks.realloc = heap_realloc;
    config.hooks.ud = &heap;
    released = 0;
    c = jot_open(&config);
    x = borrowed(c);
    has = jot_ok(x);
    if (has)
        jot_item(jot_sum(x, JOT_ALL_DIMS));
    jot_close(c);
    CHECK(released == has, "request %ld: borrowed %d, given back %d times", at, has, released);
    return heap.refused > 0;
}

int
main(void)
{
    static const char *const backends[] = {"interp", "tcc", "cc"};
    long at = 1;

    map();
    for (int b = 0; b < 3; b++) {
        jot_Ctx *c = open_with(backends[b]);
        bool here = jot_error(c) == JOT_OK;

        if (!here)
            SKIP("%s: %s", backends[b], jot_message(c));
        jot_close(c);
        if (!here)
            continue;
        values(backends[b]);
        ends(backends[b]);
        assigned(backends[b]);
        functions(backends[b]);
    }
    refused_with("not aligned", JOT_EUSE, askew);
    refused_with("NULL", JOT_EUSE, none);
    refused_with("no dtype", JOT_EDTYPE, no_dtype);
    while (refused_at(at))
        at++;
    CHECK(at > 20, "%ld requests", at);
    return DONE();
}
