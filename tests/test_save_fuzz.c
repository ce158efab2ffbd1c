/* tests/test_save_fuzz.c - saved graphs that are not to be trusted: a list of lies, each refused
 * with its sentence; texts spoiled at drawn places and pieces of them exchanged; whole files cut
 * off and spoiled. An answer is a graph that can be planned, or a message, and nothing is left.
 *
 *     test_save_fuzz N FIRST       seeds FIRST .. FIRST + N - 1; 1 .. 4000
 *
 * By clang -fsanitize=fuzzer,address -DJOT_LIBFUZZER with the library beside it, it is libFuzzer's:
 * a text, or a whole file where it begins as one.
 *
 * Guards: save/field.c, save/read.c, save/read_code.c, save/check.c. */
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
#include "tests/save_text.h"
#include "tests/scribe.h"

/* ---- one text ----------------------------------------------------------------------------- */

static jot_Ctx *shared;

static void
nothing_left(jot_Ctx *c, uint32_t slots, uint32_t nodes)
{
    CHECK(jot_stats(c).live_slots == slots && jot_stats(c).live_nodes == nodes,
          "%u handles and %u nodes are left", jot_stats(c).live_slots - slots,
          jot_stats(c).live_nodes - nodes);
}

/* What came of it can be planned for a machine with vectors, where it is small enough. */
static void
plan_it(jot_Ctx *c, TextGraph *g)
{
    static Notes notes;
    int64_t most = 0;

    for (int k = 0; k < g->nout; k++)
        most = jot_nelem(g->out[k]) > most ? jot_nelem(g->out[k]) : most;
    scribe = &notes;
    forget_notes(&notes);
    if (most < 1 << 16)
        jot_func_free(jot_compile(c, jot_vars(g->nin, g->in), jot_vars(g->nout, g->out)));
}

static void
fuzz_text(const char *text)
{
    jot_Ctx *c = shared;
    uint32_t slots = jot_stats(c).live_slots, nodes = jot_stats(c).live_nodes;
    TextGraph g;

    if (!text_graph(c, text, &g)) {
        CHECK(jot_error(c) && strlen(jot_message(c)) > 8, "a failure without words");
        jot_clear(c);
        nothing_left(c, slots, nodes);
        return;
    }
    plan_it(c, &g);
    jot_close(c); /* with the parameters, which nobody holds here */
    jot_Config config = {.backend = "interp", .no_environment = 1, .cache_dir = ""};
    shared = jot_open(&config);
    scribe_attach(shared, "gnu", false);
}

static void
fuzz_file(const uint8_t *p, size_t n)
{
    jot_Ctx *c = shared;
    uint32_t slots = jot_stats(c).live_slots, nodes = jot_stats(c).live_nodes;
    jot_Saved g;

    if (jot_load_memory(c, "f", p, n, JOT_LOAD_CODE, &g))
        jot_saved_free(&g);
    else
        CHECK(jot_error(c) && *jot_message(c) && !g.inputs.n, "a failure without words");
    jot_clear(c);
    jot_run(c, JOT_NONE_VARS); /* updates of what went */
    jot_clear(c);
    nothing_left(c, slots, nodes);
}

static void
fuzz_open(void)
{
    jot_Config config = {.backend = "interp", .no_environment = 1, .cache_dir = ""};

    if (shared)
        return;
    shared = jot_open(&config);
    scribe_attach(shared, "gnu", false);
}

#ifdef JOT_LIBFUZZER
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    fuzz_open();
    if (n > 9 && p[8] == '{') {
        fuzz_file(p, n);
    } else {
        char *text = malloc(n + 1);
        memcpy(text, p, n);
        text[n] = 0;
        fuzz_text(text);
        free(text);
    }
    if (test_failed)
        fflush(stdout), abort();
    return 0;
}
#else

/* ---- a graph with a node of each kind ----------------------------------------------------- */

static bool
no_gradient(void *user, jot_Vars x, jot_Vars y, jot_Vars dy, jot_Var *dx)
{
    (void)user, (void)x, (void)y;
    dx[0] = dy.v[0];
    return true;
}

static bool
trip(void *user, jot_Vars in, jot_Var *out)
{
    (void)user;
    out[0] = jot_add(in.v[0], jot_mean(in.v[in.n - 1], JOT_ALL_DIMS));
    out[in.n - 1] = jot_mul(out[0], in.v[0]); /* of a for: what is stacked */
    return true;
}

static bool
small(void *user, jot_Vars in, jot_Var *out)
{
    (void)user;
    out[0] = jot_lt(in.v[0], jot_scalar(in.v[0].ctx, JOT_F32, 99));
    return true;
}

/* A for, a while and a cond, the last with the first in one body. */
static bool
either(void *user, jot_Vars in, jot_Var *out)
{
    jot_Var o[2];

    if (!jot_for(JOT_VARS(in.v[0]), JOT_VARS(in.v[1]), trip, user, &(jot_For){.stacked = 1}, o))
        return false;
    out[0] = jot_add(o[0], jot_sum(o[1], JOT_ALL_DIMS));
    return true;
}

static bool
other(void *user, jot_Vars in, jot_Var *out)
{
    (void)user;
    out[0] = jot_sin(in.v[0]);
    return true;
}

static char *
every_kind(jot_Ctx *c)
{
    static const char *const names[] = {"x"};
    float v[6] = {1, 2, 3, 4, 5, 6};
    int32_t at[2] = {1, 0};
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(2, 3), v);
    jot_Var w = jot_param(c, JOT_F32, JOT_SHAPE(3, 2), v);
    jot_Var rows = jot_take(x, jot_array(c, JOT_I32, JOT_SHAPE(2), at), 0), y, z, d, m;
    jot_CodeOut out = {.name = "y", .like = "x"};
    jot_CodeScalar scalar = {"k", 2};
    jot_Code code = {.name = "twice", .inputs = 1, .in = &rows, .in_names = names, .outputs = 1,
                     .out = &out, .scalars = 1, .scalar = &scalar, .parallel = "y_n",
                     .source = "y[lo] = x[lo] * (float)k;"};

    jot_name(x, "x");
    jot_name(w, "w");
    jot_code(c, &code, &y);
    z = jot_iota(c, JOT_F32, JOT_SHAPE(2, 3), 1);
    y = jot_code_map("a + b", JOT_VARS(y, z), JOT_F32, NULL);
    jot_custom_grad(JOT_VARS(y), JOT_VARS(x), no_gradient, NULL, &y);
    y = jot_stop_fuse(jot_pad(y, JOT_INTS(0, 1), JOT_INTS(0, -1), -1.5));
    z = jot_matmul(jot_dropout(y, 0.5), jot_stop_grad(w));
    m = jot_variance(z, JOT_DIMS(1));
    y = jot_where(jot_gt(m, jot_zeros(c, JOT_F32, JOT_SHAPE(2))), m, jot_exp(m));
    z = jot_add(jot_sum(z, JOT_ALL_DIMS), jot_mean(y, JOT_ALL_DIMS));
    jot_checkpoint(JOT_VARS(z), JOT_VARS(w), &z);
    jot_while(JOT_VARS(z), small, trip, NULL, 5, &z);
    jot_cond(jot_gt(z, jot_scalar(c, JOT_F32, 0)), JOT_VARS(z, x), either, other, NULL, 1, &z);
    jot_grad(jot_mul(z, jot_sum(w, JOT_ALL_DIMS)), JOT_VARS(w), &d);
    jot_assign(w, jot_sub(w, jot_scale(d, 0.1)));
    char *text = graph_text(c, JOT_VARS(x), JOT_VARS(z, m));
    CHECK(text, "%s", jot_message(c));
    return text;
}

/* text with the first `from` behind `after` as `to`, in malloc's memory; NULL: it is not there. */
static char *
edited(const char *text, const char *after, const char *from, const char *to)
{
    const char *at = strstr(text, after);
    char *new;

    at = at ? strstr(at, from) : NULL;
    if (!at)
        return NULL;
    new = malloc(strlen(text) + strlen(to) + 1);
    memcpy(new, text, (size_t)(at - text));
    strcpy(new + (at - text), to);
    strcat(new, at + strlen(from));
    return new;
}

#define LONG "0123456789012345678901234567890123456789"
static const struct { const char *after, *from, *to, *says; } lies[] = {
    {"", "\"graph 1\"", "\"graph 2\"", "it is a \"graph 2\"; this version reads \"graph 1\""},
    {"", "\"jot\"", "\"jots\"",
     "the graph has the field \"jots\", which this version does not know"},
    {"", "\"updates\"", "\"inputs\"", "has the field \"inputs\" twice"},
    {"", "\"inputs\": [", "\"inputs\": [9999, ", "inputs has node 9999"},
    {"", "\"inputs\": [", "\"inputs\": [0.5, ", "inputs is no whole number"},
    {"", "\"nodes\": [", "\"nodes\": 3}", "nodes is no array"},
    {"", "{\"op\": \"input\"", "{\"op\": \"put\"", "there is no operator \"put\""},
    {"", "{\"op\": \"input\"", "{\"op\": \"\"", "there is no operator \"\""},
    {"", "\"dtype\": \"f32\"", "\"dtype\": \"f31\"", "there is no dtype \"f31\""},
    {"", "\"dtype\": \"f32\", ", "", "dtype is not there"},
    {"", "\"shape\": [2, 3]", "\"shape\": [2, -3]", "an extent is -3"},
    {"", "\"tensor\": \"", "\"tensor\": \"" LONG LONG LONG LONG, "bytes; 143 are taken"},
    {"", "\"shape\": [2, 3]", "\"shape\": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2]",
     "more than 16 extents"},
    {"\"op\": \"input\"", "\"name\"", "\"colour\": 3, \"name\"",
     "the field \"colour\", which this"},
    {"\"op\": \"input\"", "\"name\"", "\"dim\": 3, \"name\"", "input has no field \"dim\""},
    {"\"op\": \"reindex\"", "\"in\": [", "\"in\": [999, ",
     "and there is none of this number before it"},
    {"\"op\": \"reindex\"", "\"index\": [\"", "\"index\": [\"i99\", \"", "i99: the space has"},
    {"\"op\": \"reindex\"", "\"index\": [\"", "\"index\": [\"0\", \"", "expressions;"},
    {"\"op\": \"reindex\"", ", \"index\": [", ", \"indexes\": [", "\"indexes\""},
    {"\"op\": \"mul\"", "\"in\": [", "\"in\": [0, ", "it reads 3 nodes; 2 asked"},
    {"\"op\": \"mul\"", "\"dtype\": \"f32\"", "\"dtype\": \"f64\"", "its dtype is f64; f32 asked"},
    {"\"op\": \"mul\"", "\"op\": \"mul\"", "\"op\": \"bit_and\"", "bit_and is not defined for f32"},
    {"\"op\": \"mul\"", "\"op\": \"mul\"", "\"op\": \"uniform\"", "uniform has no field \"in\""},
    {"\"op\": \"mul\"", "\"shape\": [", "\"shape\": [7, ", "its shape is (7, "},
    {"\"op\": \"reduce\"", "\"how\": \"", "\"how\": \"su\", \"how\": \"",
     "the field \"how\" twice"},
    {"\"op\": \"reduce\"", "\"how\": \"sum\"", "\"how\": \"any\"", "any is not defined for f32"},
    {"\"op\": \"reduce\"", "\"how\": \"sum\"", "\"how\": \"middle\"",
     "there is no reduction \"middle\""},
    {"\"how\": \"variance\"", "\"index\": [\"i0\"]", "\"index\": [\"0*i0\"]",
     "a variance is not over whole"},
    {"\"op\": \"iota\"", "\"dim\": 1", "\"dim\": 2", "dim is 2; 0 to 1 asked"},
    {"\"op\": \"uniform\"", "\"draw\": 0", "\"draw\": -1", "draw is -1"},
    {"\"op\": \"uniform\"", "\"dtype\": \"f32\"", "\"dtype\": \"i32\"", "i32 are drawn"},
    {"\"op\": \"full\"", "\"value\"", "\"bits\": \"xy\", \"value\"", "a value and bits"},
    {"\"op\": \"full\"", "\"value\": ",
     "\"bits\": \"12\", \"name\": \"n\", \"beside\": 0, \"x\": ", "\"x\""},
    {"\"op\": \"pick\"", "\"output\": 0", "\"output\": 1", "it is no output of code"},
    {"\"op\": \"pick\"", "\"shape\": [2, 3]", "\"shape\": [3, 2]",
     "is not that of the code's output 0"},
    {"\"op\": \"alias\"", "\"shape\": [", "\"shape\": [5, ", "its shape is (5"},
    {"\"op\": \"alias\"", "\"stop_fuse\": 1", "\"stop_fuse\": 2", "stop_fuse is 2; 1 to 1 asked"},
    {"\"op\": \"code\"", "\"shape\": [2, 3]", "\"shape\": [2, 4]",
     "operand 0 is not what argument 0"},
    {"\"op\": \"code\"", "\"outputs\": 1", "\"outputs\": 2",
     "its code has 2 arguments, 2 of them outputs"},
    {"\"op\": \"code\"", "\"name\": \"x\"", "\"name\": \"x y\"",
     "argument 0 of its code has no name"},
    {"\"op\": \"code\"", "\"name\": \"x\"", "\"name\": \"while\"",
     "argument 0 of its code has no name"},
    {"\"op\": \"code\"", "\"name\": \"y\"", "\"name\": \"x\"",
     "argument 1 of its code has no name"},
    {"\"op\": \"code\"", "\"parallel\": ", "\"parallel\": 9", "parallel is"},
    {"\"op\": \"code\"", "\"source\"", "\"helpers\"", "no source"},
    {"\"op\": \"custom_grad\"", "\"dtype\": \"bool\"", "\"dtype\": \"f32\"",
     "it has no value: bool ()"},
    {"", "\"kind\": \"while\"", "\"kind\": \"until\"", "no branch or loop \"until\""},
    {"", "\"kind\": \"while\"", "\"kind\": \"cond\"", "a cond has no field \"trips\""},
    {"", "\"kind\": \"cond\"", "\"kind\": \"cond\", \"saved\": 1", "a cond has no field \"saved\""},
    {"", "\"kind\": \"while\"", "\"kind\": \"while\", \"then\": []", "has no field \"then\""},
    {"\"while\"", "\"trips\": 5", "\"trips\": 0", "trips is 0"},
    {"\"while\"", ", \"trips\": 5", "", "how many trips there are at most"},
    {"\"for\"", "\"trips\": 2", "\"trips\": 3", "has not a slice for each of 3 trips"},
    {"\"for\"", "\"carries\": 1", "\"carries\": 2", "sliced is "},
    {"\"for\"", "\"stacked\": 1", "\"stacked\": 2", "1 carried and 2 stacked, and its body has 2"},
    {"\"while\"", "\"saved\": 2", "\"saved\": 1", "1 of 2 carried are saved"},
    {"\"while\"", "\"saved\": 2", "\"counted\": 1", "holes for"},
    {"\"while\"", "\"test\": [", "\"test\": [0, ", "its test is not one bool"},
    {"\"while\"", "\"body\": [", "\"body\": [0, ", "its body has 3 results"},
    {"\"while\"", "\"holes\": [0, 1]", "\"holes\": [1, 0]", "operand 0 is not what goes into"},
    {"\"while\"", "\"holes\": [0, 1]", "\"holes\": [0]", "it has 1 holes for 2 operands"},
    {"\"while\"", "\"holes\": [0, 1]", "\"holes\": [0, 2]", "operand 1 is not what goes into"},
    {"\"cond\"", "\"then\": [", "\"then\": [0, ", "its bodies have 2 and 1 results"},
    {"\"while\"", "{\"op\": \"hole\"", "{\"op\": \"array\", \"tensor\": \"t\"",
     "array is within a body of a branch or loop"},
    {"", "{\"op\": \"input\"", "{\"op\": \"hole\"", "hole is outside the bodies"},
    {"", "\"updates\": [[", "\"updates\": [[0, 1], [", "node 0 is assigned, and is no parameter"},
    {"", "\"updates\": [[", "\"updates\": [[0], [", "an update is no pair of nodes"},
    {"\"updates\": [[", ", ", ", 4], [19, ", "of another dtype or shape"},
    {"", "\"outputs\": [", "\"outputs\": [-1, ", "outputs is -1"},
    {"", "{\n", "[\n", "its graph is no JSON"},
    {"", "\"name\": \"", "\"name\": \"\\ud83d\\u0041", "its graph is no JSON"},
    {"", "\"name\": \"", "\"name\": \"\\ude00\\ud83d", "its graph is no JSON"},
};

static void
check_lies(const char *text)
{
    TextGraph g;

    for (size_t k = 0; k < sizeof lies / sizeof *lies; k++) {
        char *lie = edited(text, lies[k].after, lies[k].from, lies[k].to);
        bool ok = !lie || text_graph(shared, lie, &g);
        CHECK(lie && !ok && jot_error(shared) == JOT_EIO
                  && strstr(jot_message(shared), lies[k].says),
              "lie %zu (%s -> %s): %s", k, lies[k].from, lies[k].to,
              lie ? ok ? "taken" : jot_message(shared) : "the text has no such");
        jot_clear(shared);
        free(lie);
    }
}

/* Two halves of JSON's are one character, which is saved as such. */
static void
check_pair(const char *text)
{
    char *pair = edited(text, "", "\"name\": \"", "\"name\": \"\\ud83d\\ude00"), *again = NULL;
    jot_Config config = {.backend = "interp"};
    jot_Ctx *c = jot_open(&config);
    TextGraph g;

    if (pair && text_graph(c, pair, &g))
        again = graph_text(c, jot_vars(g.nin, g.in), jot_vars(g.nout, g.out));
    CHECK(again && strstr(again, "\"name\": \"\xf0\x9f\x98\x80"), "%s", jot_message(c));
    jot_close(c);
    free(pair);
    free(again);
}

/* ---- memory ---- */

static size_t taken, most_taken; /* by cJSON and by the library */

static void *
counted(void *ud, void *p, size_t old, size_t new)
{
    void *q = NULL;

    (void)ud;
    if (new && !(q = realloc(p, new)))
        return NULL;
    if (!new)
        free(p);
    taken += new - (p ? old : 0);
    most_taken = taken > most_taken ? taken : most_taken;
    return q;
}

/* Blocks that say how large they are. */
static void *
counted_malloc(size_t n)
{
    size_t *p = counted(NULL, NULL, 0, n + 16);

    if (p)
        *p = n + 16;
    return p ? (char *)p + 16 : NULL;
}

static void
counted_free(void *p)
{
    if (p)
        counted(NULL, (char *)p - 16, *(size_t *)(void *)((char *)p - 16), 0);
}

/* head, `part` n times, tail: it is taken or refused with at most what core.h promises. */
static void
check_dense(const char *what, const char *head, const char *part, int n, const char *tail)
{
    cJSON_Hooks hooks = {counted_malloc, counted_free};
    jot_Config config = {.backend = "interp", .no_environment = 1, .cache_dir = ""};
    char *text = malloc(strlen(head) + (size_t)n * strlen(part) + strlen(tail) + 1), *end = text;
    TextGraph g;

    end = strcpy(end, head) + strlen(head);
    for (int k = 0; k < n; k++)
        end = strcpy(end, part) + strlen(part);
    strcpy(end, tail);
    cJSON_InitHooks(&hooks);
    config.hooks.realloc = counted;
    taken = most_taken = 0;
    jot_Ctx *c = jot_open(&config);
    size_t before = taken;
    most_taken = taken;
    bool ok = text_graph(c, text, &g);
    CHECK(most_taken - before <= 128 * strlen(text) + (16 << 20), "%s: %zu bytes for a text of %zu",
          what, most_taken - before, strlen(text));
    CHECK(ok || *jot_message(c), "%s: refused without words", what);
    if (getenv("SAVE_SHOW"))
        printf("%s: %.1f bytes for each of %zu: %s\n", what,
               (double)(most_taken - before) / (double)strlen(text), strlen(text),
               jot_message(c));
    jot_close(c);
    cJSON_InitHooks(NULL);
    CHECK(!taken, "%s: %zu bytes are left", what, taken);
    free(text);
}

static void
check_memory(void)
{
    static const char *const node = "{\"op\":\"iota\",\"dtype\":\"f32\",\"shape\":[1],\"dim\":0},";
    static const char *const head = "{\"jot\":\"graph 1\",\"inputs\":[],\"outputs\":[],"
                                    "\"updates\":[],\"nodes\":[";
    static const char *const map = "{\"jot\":\"graph 1\",\"inputs\":[],\"outputs\":[],"
        "\"updates\":[],\"nodes\":[{\"op\":\"iota\",\"dtype\":\"i32\",\"shape\":[1000000],\"dim\":0},"
        "{\"op\":\"reindex\",\"dtype\":\"i32\",\"shape\":[9],\"in\":[0,0],\"index\":[\"i0\"],"
        "\"where\":[\"0";
    static const char *const reindex = "{\"op\":\"reindex\",\"dtype\":\"i32\",\"shape\":[9],"
        "\"in\":[0,0],\"index\":[\"i0\"],\"where\":[";
    char part[64];

    check_dense("inputs", "{\"jot\":\"graph 1\",\"inputs\":[", "0,", 1 << 20, "0]}");
    check_dense("lists", "", "[", 900, "");
    check_dense("nodes", head, node, 1 << 15, "{}]}");
    check_dense("a long shape", head, "{\"shape\":[0,0,0,0,0,0,0,0]},", 1 << 14, "{}]}");
    check_dense("a long sum", map, "+@e0(i0)", 2000, "\"]}]}");
    for (int k = 0; k < 2; k++) { /* sums of distinct parts, as long as they may be */
        snprintf(part, sizeof part, "%s", k ? "+@e0(i0*i0/7)*i0" : "+@e0(i0/3)%5*@e0(i0)");
        check_dense("sums", map, part, 400, "\"]}]}");
    }
    /* each part is another: the beginnings of all sums together are what it is refused for */
    char *sums = malloc(1 << 24), *at = sums;
    for (int i = 0, part_number = 0; i < 100; i++) {
        if (i)
            at += sprintf(at, "\"]},%s\"0", reindex);
        for (int j = 0; j < 60; j++) {
            at += sprintf(at, "\",\"i0");
            for (int k = 0; k < 60; k++)
                at += sprintf(at, "+@e0(%d)", part_number++);
        }
    }
    check_dense("many sums", map, sums, 1, "\"]}]}");
    free(sums);
}

/* ---- drawn -------------------------------------------------------------------------------- */

static uint64_t state;

static uint64_t
draw(uint64_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
}

/* Numbers exchanged for others, lines and words for copies of others, bytes for any. */
static void
spoil(char *text)
{
    size_t n = strlen(text);

    for (uint64_t k = 1 + draw(3); k; k--) {
        size_t at = draw(n), from = draw(n), len = 1 + draw(24);
        while (at < n && draw(3) && !(text[at] >= '0' && text[at] <= '9'))
            at++;
        if (at >= n)
            continue;
        if (text[at] >= '0' && text[at] <= '9')
            text[at] = (char)('0' + draw(10));
        else if (draw(2) && from + len < n && at + len < n)
            memmove(text + at, text + from, len);
        else
            text[at] = (char)(1 + draw(126));
    }
}

static void
fuzz(const char *text, const uint8_t *file, size_t nbytes, uint64_t seed)
{
    char *copy = malloc(strlen(text) + 1);
    uint8_t *spoiled = malloc(nbytes);
    size_t n = nbytes;

    state = seed * 0x9e3779b97f4a7c15u + 1;
    strcpy(copy, text);
    spoil(copy);
    fuzz_text(copy);
    memcpy(spoiled, file, nbytes);
    if (draw(4))
        spoiled[draw(nbytes)] ^= (uint8_t)(1 + draw(255));
    else
        n = draw(nbytes);
    fuzz_file(spoiled, n);
    free(copy);
    free(spoiled);
}

int
main(int argc, char **argv)
{
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 4000;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    char path[64];

    snprintf(path, sizeof path, "/tmp/jot-save-fuzz-%ld.jot", (long)getpid());
    fuzz_open();
    jot_Config config = {.backend = "interp"};
    jot_Ctx *c = jot_open(&config);
    char *text = every_kind(c);
    check_lies(text);
    check_pair(text);
    check_memory();
    jot_Var w = jot_param(c, JOT_F32, JOT_SHAPE(2), NULL);
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(2), NULL);
    jot_raise(c, JOT_EUSE, "the step of every_kind waits no longer");
    jot_clear(c);
    jot_assign(w, jot_add(w, x));
    CHECK(jot_save(c, JOT_VARS(x), JOT_VARS(jot_exp(w)), path), "%s", jot_message(c));
    FILE *f = fopen(path, "rb");
    uint8_t *file = malloc(1 << 16);
    size_t nbytes = f ? fread(file, 1, 1 << 16, f) : 0;
    if (f)
        fclose(f);
    if (getenv("SAVE_CORPUS")) { /* for libFuzzer: a text and a file to begin with */
        char name[300];
        snprintf(name, sizeof name, "%.200s/graph.json", getenv("SAVE_CORPUS"));
        FILE *to = fopen(name, "w");
        fputs(text, to);
        fclose(to);
    }
    for (uint64_t seed = first; text && nbytes && seed < first + n; seed++)
        fuzz(text, file, nbytes, seed);
    unlink(path);
    free(file);
    free(text);
    jot_close(c);
    jot_close(shared);
    return DONE();
}
#endif
#endif
