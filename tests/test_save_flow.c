/* tests/test_save_flow.c - branches and loops that are saved: what comes back has the same text, the
 * same kernels and the same bits, gradients to second order and tangents among them; trains on; is
 * differentiated as the one that was saved. Texts that lie about bodies, each with its sentence.
 *
 *     test_save_flow N FIRST     N drawn programs, from seed FIRST on
 *
 * Guards: save/write_flow.c, save/read_flow.c. */
#ifndef JOT_CJSON
#include "io.h"
#include "tests/test.h"

int
main(void)
{
    SKIP("%s", jot_file_can("safetensors"));
    return DONE();
}
#else
#include <unistd.h>
#include "io.h"
#include "tests/flow_drawn.h"
#include "tests/hooks.h"
#include "tests/save_text.h"
#include "tests/scribe.h"

static char path[64];

#define NBYTES(v) ((size_t)jot_nelem(v) * sizeof(double)) /* all are of f64 */

static jot_Ctx *
open_on(const char *backend)
{
    jot_Config config = {.backend = backend, .cache_dir = "", .deterministic = 1};

    return jot_open(&config);
}

/* ---- texts and kernels -------------------------------------------------------------------- */

static jot_Ctx *
scribed(Notes *notes)
{
    jot_Ctx *c = open_on("interp");

    scribe = notes;
    forget_notes(notes);
    scribe_attach(c, "gnu", false);
    return c;
}

enum { OF_KINDS = 1000000 }; /* seeds from here on: program() of tests/flow.h */

/* A graph on four inputs; how many outputs, 0: the context has the reason. */
static int
built(jot_Ctx *c, unsigned seed, V *in, V *out)
{
    in[0] = numbers(c, seed < OF_KINDS ? JOT_SHAPE(3) : JOT_SHAPE(2), 1 + (int)(seed % 7));
    in[1] = numbers(c, seed < OF_KINDS ? JOT_SHAPE(5, 3) : JOT_SHAPE(4, 2), 2);
    in[2] = numbers(c, seed < OF_KINDS ? JOT_SHAPE(3, 3) : JOT_SHAPE(2, 2), 3);
    in[3] = numbers(c, JOT_SHAPE(3), 4);
    for (int k = 0; k < DRAWN_IN; k++)
        in[k] = jot_param_of(in[k]);
    jot_run(c, JOT_NONE_VARS);
    jot_name(in[2], "w");
    if (seed < OF_KINDS)
        return drawn_graph(seed, in, out) ? DRAWN_OUT : 0;
    return program((int)(seed - OF_KINDS), in[0], in[1], in[2], out) ? OUTS : 0;
}

static void
check_text(unsigned seed)
{
    static Notes was, is;
    jot_Ctx *c = scribed(&was), *d;
    V in[DRAWN_IN], out[DRAWN_OUT];
    char *text, *again = NULL;
    TextGraph g;
    int n;

    jot_push(c);
    n = built(c, seed, in, out);
    text = graph_text(c, jot_vars(DRAWN_IN, in), jot_vars(n, out));
    CHECK(n && text, "%u: %s", seed, jot_message(c));
    CHECK(jot_func_ok(jot_compile(c, jot_vars(DRAWN_IN, in), jot_vars(n, out))), "%u: %s", seed,
          jot_message(c));
    jot_pop(c);
    jot_close(c);
    d = scribed(&is);
    if (text && text_graph(d, text, &g)) {
        again = graph_text(d, jot_vars(g.nin, g.in), jot_vars(g.nout, g.out));
        CHECK(again && !strcmp(text, again), "%u: saved again it has another text: %s", seed,
              jot_message(d));
        CHECK(jot_func_ok(jot_compile(d, jot_vars(g.nin, g.in), jot_vars(g.nout, g.out))), "%u: %s",
              seed, jot_message(d));
        CHECK(was.names == is.names && was.n == is.n && !memcmp(was.text, is.text, was.n),
              "%u: other kernels", seed);
    } else {
        CHECK(!text, "%u: %s", seed, jot_message(d));
    }
    jot_close(d);
    free(text);
    free(again);
}

/* ---- values ------------------------------------------------------------------------------- */

static void
check_values(const char *backend, unsigned seed)
{
    jot_Ctx *c = open_on(backend), *d = open_on(backend);
    V in[DRAWN_IN], out[DRAWN_OUT], w = jot_none(), slope;
    jot_Saved s;
    int n, k;

    n = built(c, seed, in, out);
    CHECK(n && jot_save(c, JOT_NONE_VARS, jot_vars(n, out), path), "%s, %u: %s", backend, seed,
          jot_message(c));
    CHECK(jot_load(d, path, 0, &s) && s.outputs.n == n, "%s, %u: %s", backend, seed,
          jot_message(d));
    for (k = 0; k < s.params.n; k++)
        w = strcmp(s.param_names.v[k], "w") ? w : s.params.v[k];
    if (seed >= OF_KINDS) /* differentiated once more */
        CHECK(jot_grad(s.outputs.v[0], JOT_VARS(w), &slope)
                  && !memcmp(jot_data(slope), jot_data(out[4]), NBYTES(slope)),
              "%s, %u: a gradient of what was loaded: %s", backend, seed, jot_message(d));
    for (k = 0; k < s.outputs.n; k++) {
        const void *a = jot_data(out[k]), *b = jot_data(s.outputs.v[k]);

        CHECK(a && b && NBYTES(out[k]) == NBYTES(s.outputs.v[k])
                  && !memcmp(a, b, NBYTES(out[k])), "%s, %u, output %d: %s %s", backend, seed,
              k, jot_message(c), jot_message(d));
    }
    jot_close(c);
    jot_close(d);
}

/* A step whose loss has a loop, taken up where another program left it. */
static void
check_step(void)
{
    jot_Ctx *c = open_on("interp"), *d = open_on("interp");
    V w = jot_param(c, JOT_F64, JOT_SHAPE(2, 2), (double[]){0.3, -0.2, 0.1, 0.4}), o[2], loss, g;
    V h = numbers(c, JOT_SHAPE(2), 1), s = numbers(c, JOT_SHAPE(6, 2), 2);
    double weights[2][4];
    jot_Func f, again;
    jot_Saved saved;

    CHECK(jot_for(JOT_VARS(h), JOT_VARS(s), cell, &w, &(jot_For){.stacked = 1, .every = 3}, o),
          "%s", jot_message(c));
    loss = jot_mean(jot_square(o[1]), JOT_ALL_DIMS);
    CHECK(jot_grad(loss, JOT_VARS(w), &g) && jot_assign(w, jot_sub(w, jot_scale(g, 0.1))), "%s",
          jot_message(c));
    CHECK(jot_save(c, JOT_VARS(h, s), JOT_VARS(loss), path), "%s", jot_message(c));
    f = jot_compile(c, JOT_VARS(h, s), JOT_VARS(loss));
    CHECK(jot_load(d, path, 0, &saved), "%s", jot_message(d));
    again = jot_compile(d, saved.inputs, saved.outputs);
    for (int k = 0; k < 4; k++) {
        double a = 0, b = 1;
        jot_Ins in = JOT_INS(JOT_IN(jot_data(h), 2 * sizeof a), JOT_IN(jot_data(s), 12 * sizeof a));

        CHECK(jot_call(f, in, JOT_OUTS(JOT_OUT(&a, sizeof a)))
                  && jot_call(again, in, JOT_OUTS(JOT_OUT(&b, sizeof b))) && a == b,
              "step %d: %g, %g: %s %s", k, a, b, jot_message(c), jot_message(d));
    }
    CHECK(jot_copy(w, weights[0], sizeof weights[0])
              && jot_copy(saved.params.v[0], weights[1], sizeof weights[1])
              && !memcmp(weights[0], weights[1], sizeof weights[0]), "weights");
    jot_close(c);
    jot_close(d);
}

/* An allocation that is refused, each in turn: nothing is left, and the context goes on. */
static void
check_memory(void)
{
    Heap heap = {0};
    jot_Config config = {.backend = "interp", .give_back = 1};

    config.hooks.realloc = heap_realloc;
    config.hooks.ud = &heap;
    jot_Ctx *c = jot_open(&config);
    V h = numbers(c, JOT_SHAPE(2), 1), s = numbers(c, JOT_SHAPE(6, 2), 2);
    V w = numbers(c, JOT_SHAPE(2, 2), 3), o[2];
    int saved = 0;

    jot_for(JOT_VARS(h), JOT_VARS(s), cell, &w, &(jot_For){.stacked = 1, .every = 2}, o);
    for (long k = 1; k < 2000 && !saved; k += test_many(2, 1)) {
        heap.countdown = k;
        saved = jot_save(c, JOT_VARS(h, s, w), jot_vars(2, o), path);
        heap.countdown = 0;
        CHECK(saved || jot_error(c) == JOT_EMEM, "allocation %ld: %s", k, jot_message(c));
        jot_clear(c);
    }
    CHECK(saved, "never");
    load_refused(c, &heap, path);
    jot_close(c);
    CHECK(!heap.live, "%zu bytes left", heap.live);
}

int
main(int argc, char **argv)
{
    unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : (unsigned)test_many(4, 12);
    unsigned first = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    static const char *const backends[] = {"interp", "tcc", "cc"};

    snprintf(path, sizeof path, "/tmp/jot-save-flow-%ld.jot", (long)getpid());
    for (unsigned k = 0; k < n + KINDS; k++) {
        unsigned seed = k < KINDS ? OF_KINDS + k : (first + k - KINDS) * 977;

        check_text(seed);
        check_values(backends[k % 3], seed);
    }
    check_step();
    check_memory();
    unlink(path);
    return DONE();
}
#endif
