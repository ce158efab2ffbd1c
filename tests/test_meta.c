/* tests/test_meta.c - reindex, reindex_reduce and their specialised forms: what they simplify to,
 * what they refuse and in which words, what they compute. Simplified and unsimplified graphs of
 * random chains are compared element by element; every allocation of a small program is refused in
 * turn.
 *
 * Guards: base_mem.c, ops/forms.c, ops/forms_join.c, ops/index/index.c, ops/index/invert.c,
 * ops/index/parse.c, ops/index/simplify.c, ops/index/walk.c, ops/maps.c, ops/reduce.c,
 * ops/reindex.c. */
#include "ops/graph.h"
#include "tests/hooks.h"
#include "tests/test.h"

static jot_Ctx *
open_ctx(int no_simplify)
{
    jot_Config config;

    memset(&config, 0, sizeof config);
    config.backend = "interp";
    config.no_simplify = no_simplify;
    return jot_open(&config);
}

static jot_Var
counting(jot_Ctx *c, jot_Ints shape)
{
    jot_Var v = jot_array(c, JOT_F64, shape, NULL);
    double data[4096];
    int64_t k, n = jot_nelem(v);

    for (k = 0; k < n && k < 4096; k++)
        data[k] = (double)(k + 1);
    return jot_array(c, JOT_F64, shape, data);
}

/* The last operator of v, without the numbers of nodes: "f64 (5, 4) reindex % [i1, i0]". */
static const char *
shown(jot_Var v)
{
    static char out[2048];
    char line[2048];
    Text text = {NULL, NULL, 0, 0};
    size_t k, n = 0;

    if (!jot_ok(v))
        return jot_message(v.ctx);
    text.s = line;
    text.cap = sizeof line;
    jot_node_text(v.ctx, v.ctx->slots.v[v.slot].node, &text);
    for (k = (size_t)(strchr(line, '=') - line) + 2; line[k]; k++) {
        out[n++] = line[k];
        while (line[k] == '%' && out[n - 1] == '%' && line[k + 1] >= '0' && line[k + 1] <= '9'
               && k && line[k - 1] == ' ')
            memmove(line + k + 1, line + k + 2, strlen(line + k + 1));
    }
    out[n] = 0;
    if (strstr(out, "  ; stored"))
        *strstr(out, "  ; stored") = 0;
    return out;
}

#define SHOWS(v, text) \
    do { \
        const char *shows_ = shown(v); \
        CHECK(!strcmp(shows_, text), "%s\n    expected %s", shows_, text); \
    } while (0)

/* v failed with this status and exactly this message. */
static void
fails(int line, jot_Var v, jot_Status status, const char *message)
{
    CHECK(!jot_ok(v) && jot_error(v.ctx) == status && !strcmp(jot_message(v.ctx), message),
          "line %d: status %d: %s\n    expected %d: %s", line, (int)jot_error(v.ctx),
          jot_message(v.ctx), (int)status, message);
    jot_clear(v.ctx);
}
#define FAILS(v, status, message) fails(__LINE__, v, status, message)

/* v's elements, as doubles, are these. */
static void
equals(int line, jot_Var v, int n, const double *want)
{
    jot_Var wide = jot_cast(v, JOT_F64);
    const double *got = jot_data(wide);
    int k, bad = -1;

    CHECK(got && jot_nelem(v) == n, "line %d: %lld elements: %s", line, (long long)jot_nelem(v),
          jot_message(v.ctx));
    if (!got || jot_nelem(v) != n)
        return;
    for (k = 0; k < n; k++)
        if (got[k] != want[k] && !(got[k] != got[k] && want[k] != want[k]))
            bad = k;
    CHECK(bad < 0, "line %d: element %d is %g, not %g", line, bad, got[bad < 0 ? 0 : bad],
          want[bad < 0 ? 0 : bad]);
}
#define COUNT(...) ((int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)))
#define EQUALS(v, ...) equals(__LINE__, v, COUNT(__VA_ARGS__), (double[]){__VA_ARGS__})

/* ---- the grammar -------------------------------------------------------------------------- */

static void
test_grammar(void)
{
    jot_Ctx *c = open_ctx(0);
    jot_Var x = counting(c, JOT_SHAPE(100)), e, f;
    int32_t idx[3] = {2, 0, 7};

    e = jot_array(c, JOT_I32, JOT_SHAPE(3), idx);
    f = jot_array(c, JOT_I32, JOT_SHAPE(), idx);
#define ONE(text, want) \
    SHOWS(jot_reindex(x, JOT_SHAPE(4, 6), JOT_INDEX(text)), "f64 (4, 6) reindex % [" want "]")
    ONE("i0*6+i1", "6*i0 + i1");
    ONE("\ti0 * 6 + i1 ", "6*i0 + i1");
    ONE("(i0 + 1)*2 + 3*2 - i0", "i0 + 8");
    ONE("-(-i0)", "i0");
    ONE("xs0 - ys0*ys1 + i1", "i1 + 76");
    ONE("i0/2*2 + i0%2", "i0");
    ONE("(i0*6+i1)/6", "i0");
    ONE("(i0*6+i1)%6", "i1");
    ONE("i0*i1", "i0*i1");
    ONE("i0 < 2", "-i0 + 1 >= 0");
    ONE("i0 < 9", "1");
    ONE("2 > 1 && 1 >= 1 && 1 <= 1 && 1 == 1 && 1 != 2 && !0", "1");
    ONE("1 && 0 || 3", "1");
    ONE("1 + 2 == 3", "1");
    ONE("-7/2 + 50", "46");
    ONE("-7%2", "1");
    ONE("7/-2 + 50", "46");
    ONE("9223372036854775807 - 9223372036854775800", "7");
#undef ONE
    SHOWS(jot_reindex_ex(x, JOT_SHAPE(3), JOT_INDEX("@e0(i0)"), JOT_NONE_STRS, 0, JOT_VARS(e)),
          "f64 (3) reindex % [@e0(i0)] else 0 by %");
    SHOWS(jot_reindex_ex(x, JOT_SHAPE(3), JOT_INDEX("@e1(@e0(i0)) + e1s0 + @e2()"), JOT_NONE_STRS,
                         0, JOT_VARS(e, e, f)),
          "f64 (3) reindex % [@e1() + @e0(@e0(i0)) + 3] if @e0(i0) >= 0 && -@e0(i0) + 2 >= 0 "
          "else 0 by % %");
    SHOWS(jot_reindex_ex(x, JOT_SHAPE(4), JOT_INDEX("@e0(i0)"), JOT_NONE_STRS, 0, JOT_VARS(e)),
          "f64 (4) reindex % [@e0(i0)] if -i0 + 2 >= 0 else 0 by %");
    /* an index that is itself a map is read through, where it is inside of both */
    jot_Var rows = jot_broadcast(e, JOT_SHAPE(3, 4), JOT_INTS(1));
    SHOWS(jot_reindex_ex(x, JOT_SHAPE(4, 3), JOT_INDEX("@e0(i1, i0)"), JOT_NONE_STRS, 0,
                         JOT_VARS(rows)), "f64 (4, 3) reindex % [@e0(i1)] else 0 by %");
    SHOWS(jot_reindex_ex(x, JOT_SHAPE(4), JOT_INDEX("@e0(0, i0)"), JOT_NONE_STRS, 0,
                         JOT_VARS(jot_transpose(jot_flip(rows, JOT_INTS(0)), JOT_INTS(0, 1)))),
          "f64 (4) reindex % [@e0(2)] else 0 by %");
    SHOWS(jot_reindex_ex(x, JOT_SHAPE(5), JOT_INDEX("@e0(i0)"), JOT_NONE_STRS, 0,
                         JOT_VARS(jot_pad(e, JOT_INTS(1), JOT_INTS(1), 0))),
          "f64 (5) reindex % [@e0(i0)] else 0 by %");
    e = jot_zeros(c, JOT_I64, JOT_SHAPE(0)); /* an extent that happens to be 0 divides to 0 */
    CHECK(jot_ok(jot_reindex_ex(x, JOT_SHAPE(4), JOT_INDEX("i0/e0s0 + i0 % e0s0"), JOT_NONE_STRS, 0,
                                JOT_VARS(e))), "%s", jot_message(c));
    jot_close(c);
}

static void
test_grammar_errors(void)
{
    jot_Ctx *c = open_ctx(0);
    jot_Var x = counting(c, JOT_SHAPE(5)), e = jot_zeros(c, JOT_I64, JOT_SHAPE(2, 2));
    char deep[1100], text[1100];
    int k;

#define BAD(source, message) \
    FAILS(jot_reindex_ex(x, JOT_SHAPE(2, 3), JOT_INDEX(source), JOT_NONE_STRS, 0, JOT_VARS(e)), \
          JOT_EINDEX, "reindex: index 0 is malformed: " message)
    BAD("i0 + q*2", "unknown name 'q'\n    i0 + q*2\n         ^");
    BAD("", "the expression ends where a value is expected\n    \n    ^");
    BAD("i0 +", "the expression ends where a value is expected\n    i0 +\n        ^");
    BAD("i2", "i2: the space has 2 axes\n    i2\n    ^");
    BAD("i", "unknown name 'i'\n    i\n    ^");
    BAD("i0x", "unknown name 'i0x'\n    i0x\n    ^");
    BAD("i99999999999999999999",
        "unknown name 'i99999999999999999999'\n    i99999999999999999999\n    ^");
    BAD("xs1", "xs1: there are 1 dimensions\n    xs1\n    ^");
    BAD("ys2", "ys2: there are 2 dimensions\n    ys2\n    ^");
    BAD("e1s0", "e1: there are 1 index variables\n    e1s0\n    ^");
    BAD("e0s2", "s2: there are 2 dimensions\n    e0s2\n    ^");
    BAD("@e1(0, 0)", "@e1: there are 1 index variables\n    @e1(0, 0)\n    ^");
    BAD("1 + @e0(i0)", "@e0 takes 2 indices, 1 are given\n    1 + @e0(i0)\n        ^");
    BAD("@e0(0,0,0)", "@e0 takes 2 indices, more are given\n    @e0(0,0,0)\n    ^");
    BAD("@e0 i0", "'(' expected after '@e0'\n    @e0 i0\n        ^");
    BAD("@x", "a load is written @e0(...)\n    @x\n    ^");
    BAD("@e0(i0, i1", "')' or ',' expected\n    @e0(i0, i1\n              ^");
    BAD("(i0", "')' expected\n    (i0\n       ^");
    BAD("i0)", "an operator or the end is expected, not ')'\n    i0)\n      ^");
    BAD("i0 i1", "an operator or the end is expected, not 'i'\n    i0 i1\n       ^");
    BAD("i0 & i1", "an operator or the end is expected, not '&'\n    i0 & i1\n       ^");
    BAD("*i0", "a value is expected, not '*'\n    *i0\n    ^");
    BAD("2i0", "an operator is expected after a number\n    2i0\n     ^");
    BAD("i0/0", "division by zero\n    i0/0\n       ^");
    BAD("i0 % (2-2)", "division by zero\n    i0 % (2-2)\n         ^");
    BAD("0 < i0 < 2", "comparisons do not chain: join them with &&\n    0 < i0 < 2\n           ^");
    BAD("9223372036854775808", "integer beyond 64 bits\n    9223372036854775808\n    ^");
    BAD("9223372036854775807 * 2 + i0",
        "a coefficient leaves 64 bits\n    9223372036854775807 * 2 + i0\n"
        "                        ^");
#undef BAD
    for (k = 0; k < 500; k++)
        deep[k] = '(';
    strcpy(deep + 500, "i0");
    memset(text, 0, sizeof text);
    {
        const char *one[1];

        one[0] = deep;
        CHECK(!jot_ok(jot_reindex(x, JOT_SHAPE(2, 3), jot_strs(1, one)))
              && strstr(jot_message(c), "nested deeper than 44\n    ((("), "%s", jot_message(c));
        jot_clear(c);
        memset(deep, 0, sizeof deep);
        for (k = 0; k < 250; k++)
            strcat(deep, "i0*");
        strcat(deep, "i0");
        CHECK(!jot_ok(jot_reindex(x, JOT_SHAPE(2, 3), jot_strs(1, one)))
              && strstr(jot_message(c), "nested deeper than 44"), "%s", jot_message(c));
        jot_clear(c);
        one[0] = NULL;
        FAILS(jot_reindex(x, JOT_SHAPE(2, 3), jot_strs(1, one)), JOT_EINDEX,
              "reindex: index 0 is NULL");
    }
    FAILS(jot_reindex(x, JOT_SHAPE(2), JOT_INDEX("0", "0")), JOT_ESHAPE,
          "reindex: 2 index expressions are given, one for each of 1 dimensions is needed");
    FAILS(jot_reindex_ex(x, JOT_SHAPE(2), JOT_INDEX("0"), JOT_INDEX("1", "i9"), 0, JOT_NONE_VARS),
          JOT_EINDEX, "reindex: condition 1 is malformed: i9: the space has 1 axes\n    i9\n    ^");
    FAILS(jot_reindex_ex(x, JOT_SHAPE(2), JOT_INDEX("0"), JOT_NONE_STRS, 0, JOT_VARS(x)),
          JOT_EDTYPE,
          "reindex: index variable e0 is f64; an integer dtype is needed");
    FAILS(jot_reindex(x, JOT_SHAPE(-2), JOT_INDEX("0")), JOT_ESHAPE,
          "reindex: extent -2 of dimension 0 is negative");
    jot_close(c);
}

/* Random bytes and random mutations of good text: an answer or an error, nothing else. */
static void
test_grammar_fuzz(void)
{
    static const char letters[] = "i0123xsye@(),+-*/%<>=!&| \t\nq$";
    static const char *const good[] = {"i0*2+i1-@e0(i0,i1)%3", "(i0<xs0)&&!(i1>=ys1)||e0s1==2"};
    jot_Ctx *c = open_ctx(0);
    jot_Var x = counting(c, JOT_SHAPE(5)), e = jot_zeros(c, JOT_I64, JOT_SHAPE(2, 2)), v;
    uint32_t seed = 7;
    int round, accepted = 0, bad = 0;

    for (round = 0; round < 20000; round++) {
        char s[48];
        const char *one[1];
        int k, n;

        seed = seed * 1664525u + 1013904223u;
        n = (int)(seed >> 24) % 40;
        strcpy(s, good[seed >> 23 & 1]);
        if (round & 1)
            n = (int)strlen(s);
        for (k = 0; k < n; k++) {
            seed = seed * 1664525u + 1013904223u;
            if (!(round & 1) || (seed >> 20) % 8 == 0)
                s[k] = letters[(seed >> 8) % (sizeof letters - 1)];
        }
        s[n] = 0;
        one[0] = s;
        jot_push(c);
        v = jot_reindex_ex(x, JOT_SHAPE(2, 3), jot_strs(1, one), JOT_NONE_STRS, 0, JOT_VARS(e));
        accepted += jot_ok(v);
        if (!jot_ok(v) && jot_error(c) != JOT_EINDEX && jot_error(c) != JOT_ERANGE)
            printf("    %s: %s\n", s, jot_message(c)), bad++;
        if (!jot_ok(v) && jot_error(c) == JOT_EINDEX && !strchr(jot_message(c), '^'))
            printf("    %s: %s\n", s, jot_message(c)), bad++;
        jot_clear(c);
        jot_pop(c);
    }
    CHECK(!bad && accepted > 100 && accepted < 20000, "%d bad, %d accepted", bad, accepted);
    jot_close(c);
}

/* ---- composition -------------------------------------------------------------------------- */

static void
test_one_reindex(void)
{
    jot_Ctx *c = open_ctx(0);
    jot_Var x = counting(c, JOT_SHAPE(4, 5)), y, e = jot_arange(c, JOT_I32, 0, 1, 3);

    SHOWS(jot_transpose(x, JOT_INTS(1, 0)), "f64 (5, 4) reindex % [i1, i0]");
    SHOWS(jot_transpose(jot_transpose(x, JOT_INTS(1, 0)), JOT_INTS(1, 0)), "f64 (4, 5) leaf");
    SHOWS(jot_flip(jot_flip(x, JOT_INTS(0, 1)), JOT_INTS(-1, -2)), "f64 (4, 5) leaf");
    SHOWS(jot_flip(x, JOT_INTS(1)), "f64 (4, 5) reindex % [i0, -i1 + 4]");
    SHOWS(jot_reshape(jot_reshape(x, JOT_SHAPE(-1)), JOT_SHAPE(4, 5)), "f64 (4, 5) leaf");
    SHOWS(jot_reshape(jot_reshape(x, JOT_SHAPE(2, 10)), JOT_SHAPE(4, 5)), "f64 (4, 5) leaf");
    SHOWS(jot_reshape(x, JOT_SHAPE(2, 1, 2, 5, 1)),
          "f64 (2, 1, 2, 5, 1) reindex % [2*i0 + i2, i3]");
    SHOWS(jot_reshape(x, JOT_SHAPE(20)), "f64 (20) reindex % [i0/5, i0%5]");
    SHOWS(jot_squeeze(jot_unsqueeze(x, 1), 1), "f64 (4, 5) leaf");
    y = jot_pad(x, JOT_INTS(1, 0), JOT_INTS(1, 0), 0);
    SHOWS(y, "f64 (6, 5) reindex % [i0 - 1, i1] else 0");
    SHOWS(jot_pad(y, JOT_INTS(1, 2), JOT_INTS(0, 0), 0),
          "f64 (7, 7) reindex % [i0 - 2, i1 - 2] else 0");
    SHOWS(jot_pad(y, JOT_INTS(1, 2), JOT_INTS(0, 0), 9),
          "f64 (7, 7) reindex % [i0 - 1, i1 - 2] else 9");
    SHOWS(jot_slice(jot_transpose(y, JOT_INTS(1, 0)), JOT_INTS(0, 1), JOT_INTS(5, -1), JOT_INTS()),
          "f64 (5, 4) reindex % [i1, i0]");
    SHOWS(jot_pad(y, JOT_INTS(-1, -1), JOT_INTS(-1, 0), 9), "f64 (4, 4) reindex % [i0, i1 + 1]");
    SHOWS(jot_slice(y, JOT_INTS(0, 0), JOT_INTS(3, 5), JOT_INTS(2, 1)),
          "f64 (2, 5) reindex % [2*i0 - 1, i1] else 0");
    SHOWS(jot_broadcast_to(x, JOT_SHAPE(3, 4, 5)), "f64 (3, 4, 5) reindex % [i1, i2]");
    SHOWS(jot_broadcast(x, JOT_SHAPE(4, 3, 5), JOT_INTS(1)), "f64 (4, 3, 5) reindex % [i0, i2]");
    SHOWS(jot_tile(x, JOT_INTS(1, 2)), "f64 (4, 10) reindex % [i0, i1%5]");
    SHOWS(jot_slice(jot_tile(x, JOT_INTS(1, 2)), JOT_INTS(0, 5), JOT_INTS(4, 10), JOT_INTS()),
          "f64 (4, 5) leaf");
    SHOWS(jot_transpose(jot_take(x, e, 1), JOT_INTS(1, 0)),
          "f64 (3, 4) reindex % [i1, @e0(i0)] else 0 by %");
    SHOWS(jot_take(jot_take(x, e, 1), e, 1),
          "f64 (4, 3) reindex % [i0, @e0(@e0(i1))] if @e0(i1) >= 0 && -@e0(i1) + 2 >= 0 "
          "else 0 by %");
    SHOWS(jot_broadcast_to(jot_full(c, JOT_F64, JOT_SHAPE(3), 7), JOT_SHAPE(2, 3)),
          "f64 (2, 3) const 7");
    SHOWS(jot_pad(jot_full(c, JOT_F64, JOT_SHAPE(3), 7), JOT_INTS(1), JOT_INTS(0), 7),
          "f64 (4) const 7");
    SHOWS(jot_reindex_ex(x, JOT_SHAPE(2), JOT_INDEX("0", "0"), JOT_INDEX("1 > 2"), 3,
                         JOT_NONE_VARS),
          "f64 (2) const 3");
    SHOWS(jot_reindex(x, JOT_SHAPE(2), JOT_INDEX("4 + i0", "0")), "f64 (2) const 0");
    SHOWS(jot_reindex_ex(x, JOT_SHAPE(2), JOT_INDEX("i0", "0"), JOT_INDEX("i0 >= 1", "!(i0 < 1)"),
                         3, JOT_NONE_VARS), "f64 (2) reindex % [i0, 0] if i0 - 1 >= 0 else 3");
    SHOWS(jot_transpose(jot_stop_fuse(jot_transpose(x, JOT_INTS(1, 0))), JOT_INTS(1, 0)),
          "f64 (4, 5) reindex % [i1, i0]");
    jot_close(c);
    c = open_ctx(1);
    x = counting(c, JOT_SHAPE(4, 5));
    SHOWS(jot_transpose(jot_transpose(x, JOT_INTS(1, 0)), JOT_INTS(1, 0)),
          "f64 (4, 5) reindex % [i1, i0]");
    jot_close(c);
}

/* Chains of any length stay one node, or a few when their maps grow. */
static void
test_long_chains(void)
{
    jot_Ctx *c = open_ctx(0);
    jot_Var x = counting(c, JOT_SHAPE(30, 30)), y = x;
    int k;

    for (k = 0; k < 1000; k++)
        y = jot_flip(jot_transpose(y, JOT_INTS(1, 0)), JOT_INTS(k % 2));
    CHECK(y.ctx->slots.v[y.slot].node == x.ctx->slots.v[x.slot].node, "%s", shown(y));
    for (k = 0; k < 200; k++)
        y = jot_reindex(y, JOT_SHAPE(30, 30), JOT_INDEX("i0*i1%(i0+1)", "i1"));
    CHECK(jot_ok(y), "%s", jot_message(c));
    CHECK(jot_data(y) != NULL, "%s", jot_message(c));
    jot_close(c);
}

/* ---- reductions --------------------------------------------------------------------------- */

static void
test_reduce_shapes(void)
{
    jot_Ctx *c = open_ctx(0);
    jot_Var x = counting(c, JOT_SHAPE(4, 5)), one = counting(c, JOT_SHAPE(1)), s, i, b;

    SHOWS(jot_sum(x, JOT_DIMS(1)), "f64 (4) reduce sum % [i0]");
    SHOWS(jot_sum(x, JOT_DIMS(-2)), "f64 (5) reduce sum % [i1]");
    SHOWS(jot_sum(x, JOT_ALL_DIMS), "f64 () reduce sum % []");
    SHOWS(jot_sum(x, JOT_DIMS()), "f64 (4, 5) leaf");
    SHOWS(jot_sum(jot_sum(x, JOT_DIMS(1)), JOT_DIMS(0)), "f64 () reduce sum % []");
    SHOWS(jot_reduce(JOT_MAX, x, JOT_KEEP(1)), "f64 (4, 1) reduce max % [i0, 0]");
    SHOWS(jot_mean(x, JOT_DIMS(0)), "f64 (5) reduce mean % [i1] scale 0.25");
    SHOWS(jot_mean(x, JOT_DIMS()), "f64 (4, 5) leaf");
    SHOWS(jot_sum(one, JOT_DIMS(0)), "f64 () reindex % [0]");
    SHOWS(jot_sum(jot_zeros(c, JOT_F64, JOT_SHAPE(3, 3)), JOT_DIMS(0)), "f64 (3) const 0");
    SHOWS(jot_sum(jot_full(c, JOT_F64, JOT_SHAPE(3, 4), 2), JOT_DIMS(0)), "f64 (4) const 6");
    SHOWS(jot_mean(jot_full(c, JOT_F64, JOT_SHAPE(3, 4), 2), JOT_DIMS(0)), "f64 (4) const 2");
    SHOWS(jot_max(jot_full(c, JOT_F64, JOT_SHAPE(3, 4), 2), JOT_DIMS(0)), "f64 (4) const 2");
    SHOWS(jot_sum(jot_array(c, JOT_F32, JOT_SHAPE(0, 2), NULL), JOT_DIMS(0)), "f32 (2) const 0");
    SHOWS(jot_prod(jot_array(c, JOT_F32, JOT_SHAPE(0, 2), NULL), JOT_DIMS(0)), "f32 (2) const 1");
    CHECK(isnan(jot_item(jot_mean(jot_array(c, JOT_F32, JOT_SHAPE(0), NULL), JOT_DIMS(0)))),
          "mean");
    s = jot_array(c, JOT_I8, JOT_SHAPE(3), "\1\2\3");
    i = jot_array(c, JOT_U32, JOT_SHAPE(3), NULL);
    b = jot_array(c, JOT_BOOL, JOT_SHAPE(3), "\1\0\1");
    CHECK(jot_dtype(jot_sum(s, JOT_DIMS(0))) == JOT_I64, "i8");
    CHECK(jot_dtype(jot_prod(i, JOT_DIMS(0))) == JOT_U64, "u32");
    CHECK(jot_dtype(jot_sum(b, JOT_DIMS(0))) == JOT_I64, "bool");
    CHECK(jot_dtype(jot_max(s, JOT_DIMS(0))) == JOT_I8, "max");
    CHECK(jot_dtype(jot_max(b, JOT_DIMS(0))) == JOT_BOOL, "max of bool");
    CHECK(jot_dtype(jot_mean(s, JOT_DIMS(0))) == JOT_F32, "mean of i8");
    CHECK(jot_dtype(jot_any(x, JOT_DIMS(0))) == JOT_BOOL, "any");
    EQUALS(jot_sum(b, JOT_DIMS(0)), 2);
    EQUALS(jot_min(b, JOT_DIMS(0)), 0);
    EQUALS(jot_max(b, JOT_DIMS(0)), 1);
    EQUALS(jot_mean(s, JOT_DIMS(0)), 2);
    EQUALS(jot_prod(s, JOT_DIMS(0)), 6);
    EQUALS(jot_any(s, JOT_DIMS(0)), 1);
    EQUALS(jot_all(b, JOT_DIMS(0)), 0);
    jot_close(c);
}

static void
test_inversion(void)
{
    jot_Ctx *c = open_ctx(0);
    jot_Var x = counting(c, JOT_SHAPE(4, 6)), flat = jot_reshape(x, JOT_SHAPE(24)), e;
    int32_t at[4] = {3, 1, 2, 0};

    e = jot_array(c, JOT_I32, JOT_SHAPE(4), at);
#define ADD(v, shape, index, text) SHOWS(jot_reindex_reduce(JOT_ADD, v, shape, index), text)
    ADD(x, JOT_SHAPE(6, 4), JOT_INDEX("i1", "3 - i0"), "f64 (6, 4) reindex % [-i1 + 3, i0]");
    ADD(x, JOT_SHAPE(24), JOT_INDEX("6*i0 + i1"), "f64 (24) reindex % [i0/6, i0%6]");
    ADD(x, JOT_SHAPE(24), JOT_INDEX("23 - 6*i0 - i1"),
        "f64 (24) reindex % [((-i0 + 5)/6) + 3, (-i0 + 5)%6]");
    ADD(flat, JOT_SHAPE(4, 6), JOT_INDEX("i0/6", "i0%6"), "f64 (4, 6) leaf");
    ADD(flat, JOT_SHAPE(2, 3, 4), JOT_INDEX("i0/12", "i0/4%3", "i0%4"),
        "f64 (2, 3, 4) reindex % [2*i0 + ((4*i1 + i2)/6), (4*i1 + i2)%6]");
    ADD(x, JOT_SHAPE(8, 3), JOT_INDEX("2*i0 + i1/3", "i1%3"),
        "f64 (8, 3) reindex % [i0/2, i1 + 3*(i0%2)]");
    ADD(x, JOT_SHAPE(9, 6), JOT_INDEX("2*i0 + 1", "i1"),
        "f64 (9, 6) reindex % [((i0 + 1)/2) - 1, i1] if (i0 + 1)%2 == 0 else 0");
    ADD(x, JOT_SHAPE(4, 6, 4), JOT_INDEX("i0", "i1", "i0"),
        "f64 (4, 6, 4) reindex % [i0, i1] if i0 - i2 == 0 else 0");
    ADD(x, JOT_SHAPE(4, 3), JOT_INDEX("i0", "i1 - 2"), "f64 (4, 3) reindex % [i0, i1 + 2]");
    ADD(x, JOT_SHAPE(4, 9), JOT_INDEX("i0", "i0 + i1"),
        "f64 (4, 9) reindex % [i0, -i0 + i1] else 0");
    ADD(x, JOT_SHAPE(9), JOT_INDEX("i0 + i1"), "f64 (9) reduce sum % [i0 + i1]");
    ADD(x, JOT_SHAPE(4, 3), JOT_INDEX("i0", "i1/2"), "f64 (4, 3) reduce sum % [i0, i1/2]");
#undef ADD
    SHOWS(jot_reindex_reduce(JOT_MAX, x, JOT_SHAPE(5, 6), JOT_INDEX("i0 + 1", "i1")),
          "f64 (5, 6) reindex % [i0 - 1, i1] else -inf");
    SHOWS(jot_reindex_reduce_ex(JOT_ADD, x, JOT_SHAPE(6, 4), JOT_INDEX("i1", "i0"),
                                JOT_INDEX("i0 > i1"), JOT_NONE_VARS),
          "f64 (6, 4) reindex % [i1, i0] if -i0 + i1 - 1 >= 0 else 0");
    SHOWS(jot_reindex_reduce_ex(JOT_ADD, x, JOT_SHAPE(4, 6, 4), JOT_INDEX("i0", "i1", "@e0(i0)"),
                                JOT_NONE_STRS, JOT_VARS(e)),
          "f64 (4, 6, 4) reindex % [i0, i1] if i2 - @e0(i0) == 0 else 0 by %");
    SHOWS(jot_reindex_reduce_ex(JOT_ADD, x, JOT_SHAPE(4), JOT_INDEX("@e0(i0)"), JOT_NONE_STRS,
                                JOT_VARS(e)), "f64 (4) reduce sum % [@e0(i0)] by %");
    jot_close(c);
}

/* ---- values ------------------------------------------------------------------------------- */

static void
test_values(void)
{
    jot_Ctx *c = open_ctx(0);
    jot_Var x = counting(c, JOT_SHAPE(2, 3)), y = counting(c, JOT_SHAPE(6)), e, n, z;
    int64_t at[3] = {2, -1, 0};
    jot_Var none = jot_scalar(c, JOT_F64, 0);
    double nan = jot_item(jot_div(none, none));
    double odd[5] = {3, nan, 7, nan, 7}, low[4] = {0, 1, 0, 0}, zero[1] = {0};

    low[0] = nan, low[1] = INFINITY, low[2] = nan, low[3] = INFINITY;
    zero[0] = -zero[0];
    EQUALS(jot_transpose(x, JOT_INTS(1, 0)), 1, 4, 2, 5, 3, 6);
    EQUALS(jot_swap(x, -1, 0), 1, 4, 2, 5, 3, 6);
    EQUALS(jot_slice(y, JOT_INTS(JOT_END), JOT_INTS(JOT_END), JOT_INTS(-2)), 6, 4, 2);
    EQUALS(jot_slice(y, JOT_INTS(-2), JOT_INTS(JOT_END), JOT_INTS()), 5, 6);
    EQUALS(jot_slice(y, JOT_INTS(1), JOT_INTS(100), JOT_INTS(3)), 2, 5);
    EQUALS(jot_slice(y, JOT_INTS(-100), JOT_INTS(-4), JOT_INTS(1)), 1, 2);
    EQUALS(jot_slice(y, JOT_INTS(100), JOT_INTS(2), JOT_INTS(-1)), 6, 5, 4);
    CHECK(jot_nelem(jot_slice(y, JOT_INTS(4), JOT_INTS(2), JOT_INTS(1))) == 0, "empty");
    EQUALS(jot_slice(y, JOT_INTS(1), JOT_INTS(3), JOT_INTS(INT64_MAX)), 2);
    EQUALS(jot_slice(y, JOT_INTS(3), JOT_INTS(JOT_END), JOT_INTS(INT64_MIN + 1)), 4);
    EQUALS(jot_pad(y, JOT_INTS(1), JOT_INTS(-4), INFINITY), INFINITY, 1, 2);
    EQUALS(jot_flip(x, JOT_INTS(1)), 3, 2, 1, 6, 5, 4);
    EQUALS(jot_tile(x, JOT_INTS(1, 2)), 1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6);
    EQUALS(jot_reshape(jot_transpose(x, JOT_INTS(1, 0)), JOT_SHAPE(2, -1)), 1, 4, 2, 5, 3, 6);
    EQUALS(jot_concat(JOT_VARS(x, jot_flip(x, JOT_INTS(1))), 1), 1, 2, 3, 3, 2, 1, 4, 5, 6, 6, 5,
           4);
    EQUALS(jot_concat(JOT_VARS(x, x), -2), 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6);
    EQUALS(jot_stack(JOT_VARS(x, jot_neg(x)), 2), 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6);
    z = jot_array(c, JOT_F64, JOT_SHAPE(0), NULL);
    CHECK(jot_nelem(jot_concat(JOT_VARS(z, z), 0)) == 0, "concat of nothing");
    EQUALS(jot_concat(JOT_VARS(z, y, z), 0), 1, 2, 3, 4, 5, 6);
    e = jot_concat(JOT_VARS(jot_array(c, JOT_F64, JOT_SHAPE(4), low),
                            jot_array(c, JOT_F64, JOT_SHAPE(1), zero)), 0);
    EQUALS(e, nan, INFINITY, nan, INFINITY, 0);
    CHECK(signbit(((const double *)jot_data(e))[4]), "concat keeps the sign of a zero");
    EQUALS(jot_concat(JOT_VARS(jot_array(c, JOT_BOOL, JOT_SHAPE(2), "\1\0"),
                               jot_array(c, JOT_BOOL, JOT_SHAPE(1), "\1")), 0), 1, 0, 1);
    CHECK(jot_dtype(jot_concat(JOT_VARS(jot_ones(c, JOT_I8, JOT_SHAPE(1)),
                                        jot_ones(c, JOT_U8, JOT_SHAPE(1))), 0)) == JOT_I16,
          "promotes");
    e = jot_array(c, JOT_I64, JOT_SHAPE(3), at);
    EQUALS(jot_take(x, e, 1), 3, 0, 1, 6, 0, 4);
    EQUALS(jot_take(y, jot_reshape(e, JOT_SHAPE(3, 1)), 0), 3, 0, 1);
    EQUALS(jot_take(x, jot_full_int(c, JOT_I32, JOT_SHAPE(), 1), 0), 4, 5, 6);
    EQUALS(jot_one_hot(e, 3, JOT_F32), 0, 0, 1, 0, 0, 0, 1, 0, 0);
    EQUALS(jot_slice(jot_take(jot_slice(y, JOT_INTS(0), JOT_INTS(1), JOT_INTS()), e, 0),
                     JOT_INTS(0), JOT_INTS(1), JOT_INTS()), 0); /* one element, read outside it */
    n = jot_array(c, JOT_F64, JOT_SHAPE(5), odd);
    EQUALS(jot_argmax(n, JOT_DIMS(0)), 1);
    EQUALS(jot_argmin(n, JOT_DIMS(0)), 0);
    EQUALS(jot_argmin(jot_array(c, JOT_F64, JOT_SHAPE(4), low), JOT_DIMS(0)), 1);
    EQUALS(jot_argmin(jot_full(c, JOT_F64, JOT_SHAPE(3), nan), JOT_DIMS(0)), 0);
    EQUALS(jot_argmax(jot_array(c, JOT_BOOL, JOT_SHAPE(3), "\0\1\1"), JOT_DIMS(0)), 1);
    EQUALS(jot_argmax(x, JOT_DIMS(0)), 1, 1, 1);
    EQUALS(jot_argmin(x, JOT_DIMS(-1)), 0, 0);
    EQUALS(jot_reindex_reduce(JOT_MEAN, y, JOT_SHAPE(4), JOT_INDEX("i0/2")), 1.5, 3.5, 5.5, nan);
    EQUALS(jot_reindex_reduce(JOT_ADD, y, JOT_SHAPE(2), JOT_INDEX("i0%2")), 9, 12);
    EQUALS(jot_reindex_reduce(JOT_MAX, y, JOT_SHAPE(3), JOT_INDEX("i0%2")), 5, 6, -INFINITY);
    EQUALS(jot_reindex_reduce(JOT_BITXOR, jot_cast(y, JOT_I32), JOT_SHAPE(1), JOT_INDEX("0")), 7);
    EQUALS(jot_reindex_reduce(JOT_BITAND, jot_cast(y, JOT_U8), JOT_SHAPE(2), JOT_INDEX("0")), 0,
           255);
    EQUALS(jot_reindex_reduce(JOT_MIN, jot_cast(y, JOT_I16), JOT_SHAPE(2), JOT_INDEX("0")), 1,
           32767);
    EQUALS(jot_reindex_reduce_ex(JOT_ADD, jot_slice(y, JOT_INTS(0), JOT_INTS(3), JOT_INTS()),
                                 JOT_SHAPE(3), JOT_INDEX("@e0(i0)"), JOT_NONE_STRS, JOT_VARS(e)),
           3, 0, 1);
    jot_close(c);
}

static void
test_form_errors(void)
{
    jot_Ctx *c = open_ctx(0);
    jot_Var x = counting(c, JOT_SHAPE(2, 3)), f = jot_ones(c, JOT_F32, JOT_SHAPE(2));

    FAILS(jot_broadcast_to(x, JOT_SHAPE(3)), JOT_ESHAPE,
          "broadcast_to: x is (2, 3), asked is (3): x has more dimensions");
    FAILS(jot_broadcast_to(x, JOT_SHAPE(2, 4)), JOT_ESHAPE,
          "broadcast_to: x is (2, 3), asked is (2, 4): extents must be equal or 1");
    FAILS(jot_broadcast(x, JOT_SHAPE(2, 3, 4), JOT_INTS()), JOT_ESHAPE,
          "broadcast: 2 dimensions of x and 0 new ones do not make the 3 asked for");
    FAILS(jot_broadcast(x, JOT_SHAPE(2, 3, 4), JOT_INTS(3)), JOT_ERANGE,
          "broadcast: dimension 3 is asked, there are 3: -3 to 2");
    FAILS(jot_reshape(x, JOT_SHAPE(4, 2)), JOT_ESHAPE,
          "reshape: x is (2, 3), asked is (4, 2): the number of elements differs");
    FAILS(jot_reshape(x, JOT_SHAPE(-1, 4)), JOT_ESHAPE,
          "reshape: x is (2, 3), asked is (-1, 4): no extent in place of -1 fits");
    FAILS(jot_reshape(x, JOT_SHAPE(-1, -1)), JOT_ESHAPE,
          "reshape: x is (2, 3), asked is (-1, -1): only one extent may be -1");
    FAILS(jot_transpose(x, JOT_INTS(0)), JOT_ESHAPE,
          "transpose: order has 1 entries, x has rank 2");
    FAILS(jot_transpose(x, JOT_INTS(0, -2)), JOT_ERANGE, "transpose: dimension 0 is given twice");
    FAILS(jot_swap(x, 0, 2), JOT_ERANGE, "swap: dimension 2 is asked, there are 2: -2 to 1");
    FAILS(jot_slice(x, JOT_INTS(0), JOT_INTS(1, 1), JOT_INTS()), JOT_ESHAPE,
          "slice: start has 1 entries, x has rank 2");
    FAILS(jot_slice(x, JOT_INTS(0, 0), JOT_INTS(1, 1), JOT_INTS(1, 0)), JOT_ERANGE,
          "slice: step of dimension 1 is 0");
    FAILS(jot_pad(x, JOT_INTS(0, 0), JOT_INTS(0, -4), 0), JOT_ESHAPE,
          "pad: dimension 1 of extent 3 with 0 before and -4 after is no extent");
    FAILS(jot_flip(x, JOT_INTS(2)), JOT_ERANGE, "flip: dimension 2 is asked, there are 2: -2 to 1");
    FAILS(jot_tile(x, JOT_INTS(1, -1)), JOT_ERANGE,
          "tile: times[1]: at least 0 asked, -1 found");
    FAILS(jot_tile(x, JOT_INTS(1, INT64_MAX)), JOT_ERANGE,
          "tile: 9223372036854775807 times dimension 1 of extent 3 leaves 64 bits");
    FAILS(jot_squeeze(x, 1), JOT_ESHAPE, "squeeze: dimension 1 has extent 3, not 1");
    FAILS(jot_unsqueeze(x, 4), JOT_ERANGE, "unsqueeze: dimension 4 is asked, there are 3: -3 to 2");
    FAILS(jot_concat(JOT_VARS(x, f), 0), JOT_ESHAPE,
          "concat: variable 0 is (2, 3), variable 1 is (2)");
    FAILS(jot_stack(JOT_VARS(x, jot_transpose(x, JOT_INTS(1, 0))), 0), JOT_ESHAPE,
          "stack: variable 0 is (2, 3), variable 1 is (3, 2)");
    FAILS(jot_take(x, f, 0), JOT_EDTYPE, "take: index is f32; an integer dtype is needed");
    FAILS(jot_one_hot(f, 3, JOT_F32), JOT_EDTYPE,
          "one_hot: index is f32; an integer dtype is needed");
    FAILS(jot_sum(x, JOT_DIMS(2)), JOT_ERANGE, "sum: dimension 2 is asked, there are 2: -2 to 1");
    FAILS(jot_sum(x, JOT_DIMS(1, -1)), JOT_ERANGE, "sum: dimension 1 is given twice");
    FAILS(jot_max(jot_array(c, JOT_F32, JOT_SHAPE(0, 2), NULL), JOT_DIMS(0)), JOT_ESHAPE,
          "max: dimension 0 of (0, 2) is empty, and nothing has no max");
    FAILS(jot_reduce(JOT_BITOR, x, JOT_DIMS(0)), JOT_EDTYPE,
          "bit_or: x is f64; bits are of integers and bool");
    FAILS(jot_argmax(x, JOT_DIMS(5)), JOT_ERANGE,
          "argmax: dimension 5 is asked, there are 2: -2 to 1");
    FAILS(jot_sum(x, JOT_DIMS(0, -5)), JOT_ERANGE,
          "sum: dimension -5 is asked, there are 2: -2 to 1");
    FAILS(jot_any(x, JOT_DIMS(INT64_MIN)), JOT_ERANGE,
          "any: dimension -9223372036854775808 is asked, there are 2: -2 to 1");
    FAILS(jot_mean(jot_scalar(c, JOT_F32, 1), JOT_DIMS(-1)), JOT_ERANGE,
          "mean: dimension -1 is asked, a scalar has none");
    FAILS(jot_prod(x, jot_dims(-5, NULL, false)), JOT_ERANGE,
          "prod: a list of -5 dimensions; JOT_ALL_DIMS, which is of -1, means all");
    FAILS(jot_reduce((jot_ReduceOp)77, x, JOT_DIMS(0)), JOT_ERANGE,
          "reduce: there is no operator 77");
    FAILS(jot_argmin(jot_array(c, JOT_F32, JOT_SHAPE(0, 2), NULL), JOT_DIMS(0)), JOT_ESHAPE,
          "argmin: dimension 0 of (0, 2) is empty, and nothing has no argmin");
    FAILS(jot_one_hot(jot_cast(f, JOT_I32), -1, JOT_F32), JOT_ERANGE, 
          "one_hot: classes: at least 0 asked, -1 found");
    FAILS(jot_one_hot(jot_cast(f, JOT_I32), 3, JOT_DTYPES), JOT_EDTYPE, "one_hot: 13 is no dtype");
    FAILS(jot_concat(JOT_VARS(x, x, JOT_POISON(c)), 0), JOT_EHANDLE,
          "concat: vars[2] is poison: the call that made it failed");
    FAILS(jot_reindex_ex(x, JOT_SHAPE(1), JOT_INDEX("0", "0"), JOT_NONE_STRS, 0,
                         JOT_VARS(jot_cast(f, JOT_I32), JOT_POISON(c))), JOT_EHANDLE,
          "reindex: extra[1] is poison: the call that made it failed");
    CHECK(jot_ok(jot_sum(x, JOT_ALL_DIMS)) && !jot_error(c), "%s", jot_message(c));
    jot_close(c);
}

/* ---- random chains, simplified and not ---------------------------------------------------- */

static uint32_t fuzz_seed;

static int
below(int n)
{
    fuzz_seed = fuzz_seed * 1664525u + 1013904223u;
    return (int)((fuzz_seed >> 10) % (uint32_t)n);
}

/* A random map as text, from expressions that reach outside on purpose. */
static void
random_index(char *s, int rank, int extent, bool load)
{
    int a = below(rank), b = below(rank), k = 1 + below(4);

    switch (below(load ? 9 : 8)) {
    case 0: sprintf(s, "i%d", a); break;
    case 1: sprintf(s, "i%d*%d - %d", a, k, below(3)); break;
    case 2: sprintf(s, "%d - i%d", extent - below(2), a); break;
    case 3: sprintf(s, "i%d + i%d*%d", a, b, k); break;
    case 4: sprintf(s, "(i%d*ys%d + i%d)/%d", a, b, b, k + 1); break;
    case 5: sprintf(s, "(i%d*ys%d + i%d)%%%d", a, b, b, k + 1); break;
    case 6: sprintf(s, "(i%d - 1)/%d + i%d%%%d", a, k, b, k); break;
    case 7: sprintf(s, "%d", below(extent + 1)); break;
    default: sprintf(s, "@e0(i%d)", a);
    }
}

static jot_Var
random_step(jot_Var x)
{
    jot_Ctx *c = x.ctx;
    int rank = jot_rank(x), k, op = below(10), n = 1 + below(3), p = below(rank), q = below(rank);
    int conds = below(2), zero = below(2); /* drawn here: arguments have no order */
    int64_t a[8], b[8], s[8], shape[8], at[4] = {1, 0, 3, -1};
    char text[8][64];
    const char *index[8], *cond[1] = {"i0 != 1"};
    jot_Var e = jot_array(c, JOT_I64, JOT_SHAPE(4), at);

    for (k = 0; k < rank; k++) {
        a[k] = below(4) - 1;
        b[k] = below(4) - 1;
        s[k] = below(2) ? 1 + below(2) : -1 - below(2);
    }
    for (k = 0; k < n; k++)
        shape[k] = 1 + below(5);
    switch (op) {
    case 0: return jot_pad(x, jot_ints(rank, a), jot_ints(rank, b), zero ? 0 : 5);
    case 1:
        for (k = 0; k < rank; k++) {
            a[k] = below(3) ? JOT_END : a[k];
            b[k] = below(3) ? JOT_END : b[k];
        }
        return jot_slice(x, jot_ints(rank, a), jot_ints(rank, b), jot_ints(rank, s));
    case 2: return jot_swap(x, p, q);
    case 3: return jot_reshape(x, JOT_SHAPE(-1));
    case 4: return jot_nelem(x) % 2 ? jot_flip(x, JOT_INTS(0)) : jot_reshape(x, JOT_SHAPE(2, -1));
    case 5: return rank < 4 ? jot_unsqueeze(x, p) : jot_reshape(x, JOT_SHAPE(-1));
    case 6: return jot_take(x, e, q);
    case 7:
        for (k = 0; k < n; k++)
            random_index(text[k], rank, (int)shape[k], true), index[k] = text[k];
        return jot_reindex_reduce_ex(JOT_ADD, x, jot_ints(n, shape), jot_strs(n, index),
                                     jot_strs(conds, cond), JOT_VARS(e));
    default:
        for (k = 0; k < rank; k++)
            random_index(text[k], n, (int)jot_extent(x, k), true), index[k] = text[k];
        return jot_reindex_ex(x, jot_ints(n, shape), jot_strs(rank, index), jot_strs(conds, cond),
                              zero ? 0 : -3, JOT_VARS(e));
    }
}

/* The same random chain in a context; poison: some step was refused. */
static jot_Var
random_chain(jot_Ctx *c, uint32_t seed)
{
    int64_t shape[3];
    jot_Var x;
    int k, n;

    fuzz_seed = seed * 2654435761u + 1;
    for (k = 0; k < 3; k++)
        shape[k] = 1 + below(5 - k);
    x = counting(c, jot_ints(3, shape));
    n = 1 + below(5);
    for (k = 0; k < n && jot_ok(x) && jot_rank(x) && jot_rank(x) < 6; k++)
        x = random_step(x);
    return x;
}

static void
test_random_chains(void)
{
    jot_Ctx *plain = open_ctx(1), *c = open_ctx(0);
    uint32_t seed;
    int compared = 0, bad = 0;

    for (seed = 0; seed < 3000; seed++) {
        jot_Var a, b;
        const void *p, *q;

        jot_push(plain);
        jot_push(c);
        a = random_chain(plain, seed);
        b = random_chain(c, seed);
        if (jot_ok(a) != jot_ok(b) || (jot_ok(a) && jot_nelem(a) != jot_nelem(b))) {
            printf("    seed %u: %s / %s\n", (unsigned)seed, jot_message(plain), jot_message(c));
            bad++;
        } else if (jot_ok(a) && jot_nelem(a)) {
            p = jot_data(a);
            q = jot_data(b);
            compared++;
            if (!p || !q || memcmp(p, q, (size_t)jot_nelem(a) * 8)) {
                printf("    seed %u: values differ: %s\n", (unsigned)seed, shown(b));
                bad++;
            }
        }
        jot_clear(plain);
        jot_clear(c);
        jot_pop(plain);
        jot_pop(c);
    }
    CHECK(!bad && compared > 1500, "%d of %d chains differ", bad, compared);
    jot_close(plain);
    jot_close(c);
}

/* ---- memory ------------------------------------------------------------------------------- */

/* Builds a bit of everything; true: nothing was refused. */
static bool
small_program(jot_Ctx *c)
{
    jot_Var x, y, e;
    bool ok;

    jot_push(c);
    if (c->marks.n != 1)
        return false;
    x = jot_iota(c, JOT_F64, JOT_SHAPE(4, 5), 1);
    e = jot_iota(c, JOT_I32, JOT_SHAPE(4), 0);
    y = jot_reshape(jot_transpose(jot_pad(x, JOT_INTS(1, 0), JOT_INTS(0, 2), 1), JOT_INTS(1, 0)),
                    JOT_SHAPE(-1));
    y = jot_take(y, e, 0);
    y = jot_concat(JOT_VARS(y, y), 0);
    y = jot_reindex_reduce_ex(JOT_ADD, y, JOT_SHAPE(4), JOT_INDEX("i0/2*@e0(i0/2)"),
                              JOT_INDEX("i0 != 3"), JOT_VARS(e));
    y = jot_add(jot_mean(y, JOT_DIMS(0)), jot_cast(jot_argmin(y, JOT_DIMS(0)), JOT_F64));
    ok = jot_ok(y);
    CHECK(ok == !jot_error(c), "a failure is told: %s", jot_message(c));
    jot_pop(c);
    return ok;
}

static void
test_refusals(void)
{
    long n;
    bool done = false;

    for (n = 1; n < 2000 && !done; n++) {
        Heap heap = {0};
        jot_Config config;
        jot_Ctx *c;

        memset(&config, 0, sizeof config);
        config.hooks.realloc = heap_realloc;
        config.hooks.ud = &heap;
        config.backend = "interp";
        heap.countdown = n;
        c = jot_open(&config);
        if (c && jot_error(c)) { /* it opened, without what was refused */
            jot_close(c);
            CHECK(heap.live == 0, "request %ld: %zu bytes left", n, heap.live);
            continue;
        }
        done = c && small_program(c);
        CHECK(!c || done || jot_error(c) == JOT_EMEM, "request %ld: %s", n, jot_message(c));
        CHECK(!c || c->marks.n == 0, "request %ld: scopes", n);
        jot_close(c);
        CHECK(heap.live == 0, "request %ld: %zu bytes left", n, heap.live);
    }
    CHECK(done && n > 20, "%ld requests", n);
}

int
main(void)
{
    test_grammar();
    test_grammar_errors();
    test_grammar_fuzz();
    test_one_reindex();
    test_long_chains();
    test_reduce_shapes();
    test_inversion();
    test_values();
    test_form_errors();
    test_random_chains();
    test_refusals();
    return DONE();
}
