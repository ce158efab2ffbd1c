/* tests/test_onnx_fuzz.c - models that are not to be trusted (onnx.h): stored ones spoiled at drawn
 * places, parts of one in another, cut off, and bytes that are none. Each is parsed and built for
 * drawn extents, not run: a graph, or a message; nothing is left.
 *
 *     test_onnx_fuzz N FIRST       seeds FIRST .. FIRST + N - 1; 1 .. 1500
 *
 * By clang -fsanitize=fuzzer,address -DJOT_LIBFUZZER it is libFuzzer's.
 *
 * Guards: onnx/model.c onnx/tensor.c onnx/build.c onnx/attr.c onnx/control.c */
#include "onnx.h"
#include "tests/test.h"
#include "tests/ref/onnx_models.h"

enum { MOST = 16, CASES = sizeof ref_onnx / sizeof *ref_onnx, ELEMENTS = 1 << 16 };

static uint64_t state;

static uint64_t
draw(void)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state >> 8;
}

/* A variable for each input, open extents being `open`; false: too large to be asked for. */
static bool
inputs(jot_Ctx *c, jot_Onnx *m, int n, int64_t open, jot_Var *x)
{
    jot_OnnxValue v[MOST];

    jot_onnx_inputs(m, v, MOST);
    for (int k = 0; k < n; k++) {
        int64_t shape[JOT_MAX_RANK], all = 1;
        for (int d = 0; d < v[k].rank; d++) {
            shape[d] = v[k].shape[d] < 0 ? open : v[k].shape[d];
            if (shape[d] && all > ELEMENTS / shape[d])
                return false;
            all *= shape[d];
        }
        if (v[k].dtype == JOT_DTYPES)
            return false;
        x[k] = jot_array(c, v[k].dtype, jot_ints(v[k].rank < 0 ? 0 : v[k].rank, shape), NULL);
    }
    return true;
}

static void
feed(const uint8_t *bytes, size_t n)
{
    jot_Config config = {.backend = "interp", .cache_dir = "", .no_environment = 1,
                         .no_threads = 1};
    static jot_Ctx *c;
    jot_Var x[MOST], y[MOST];
    const bool fixed[MOST] = {false, true, true, true};

    c = c ? c : jot_open(&config);
    jot_push(c);
    jot_Onnx *m = jot_onnx_parse(c, bytes, n, NULL);
    int in = jot_onnx_inputs(m, NULL, 0), out = jot_onnx_outputs(m, NULL, 0);
    if (m && in <= MOST && out <= MOST && inputs(c, m, in, (int64_t)(n % 7), x)) {
        bool done = jot_onnx_build_fixed(m, jot_vars(in, x), n % 2 ? fixed : NULL, y);
        CHECK(done || *jot_message(c), "nothing is said");
    } else {
        CHECK(m || *jot_message(c), "nothing is said of %d bytes", (int)n);
    }
    jot_onnx_free(m);
    jot_pop(c);
    jot_clear(c);
    CHECK(jot_stats(c).live_slots == 0, "%u handles are left", jot_stats(c).live_slots);
}

#ifdef JOT_LIBFUZZER
int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    feed(bytes, n);
    if (test_failed)
        abort();
    return 0;
}
#else
/* A stored model, spoiled; or a part of another one in it; or bytes that are none. */
static void
spoil(uint64_t seed)
{
    static uint8_t b[1 << 16];
    state = seed * 0x9E3779B97F4A7C15u + 1;
    const size_t k = draw() % CASES, j = draw() % CASES;
    size_t n = ref_onnx[k].nbytes < sizeof b ? ref_onnx[k].nbytes : sizeof b;

    memcpy(b, ref_onnx[k].model, n);
    for (uint64_t times = draw() % 4; times; times--)
        b[draw() % n] = (uint8_t)draw();
    if (draw() % 4 == 0) {
        size_t from = draw() % ref_onnx[j].nbytes, some = 1 + draw() % 64, at = draw() % n;
        some = some < ref_onnx[j].nbytes - from ? some : ref_onnx[j].nbytes - from;
        some = some < n - at ? some : n - at;
        memcpy(b + at, ref_onnx[j].model + from, some);
    }
    if (draw() % 8 == 0)
        n = draw() % n;
    if (draw() % 32 == 0)
        for (size_t i = 0; i < n; i++)
            b[i] = (uint8_t)draw();
    feed(b, n);
}

int
main(int argc, char **argv)
{
    int times = argc > 1 ? atoi(argv[1]) : 1500;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

    if (*jot_onnx_missing()) {
        SKIP("%s", jot_onnx_missing());
        return DONE();
    }
    for (int k = 0; k < times; k++)
        spoil(first + (uint64_t)k);
    return DONE();
}
#endif
