/* tests/test_expr_same.c - expressions that are operators of the library have their kernels,
 * gradients included, up to the numbers of axes: on machines that are not here, where nothing is
 * compiled or run.
 *
 * Guards: expr/emit.c, expr/range.c, expr/einsum.c. */
#include <ctype.h>
#include "expr.h"
#include "tests/machines.h"

static jot_Ctx *ctx;
typedef jot_Var V;

/* ---- the library's operators -------------------------------------------------------------- */

static V l_matmul(V *x) { return jot_matmul(x[0], x[1]); }
static V l_transpose(V *x) { return jot_transpose(x[0], JOT_INTS(2, 0, 1)); }
static V l_rows(V *x) { return jot_sum(x[0], JOT_DIMS(1)); }
static V l_columns(V *x) { return jot_sum(x[0], JOT_DIMS(0)); }
static V l_all(V *x) { return jot_sum(jot_mul(x[0], x[0]), JOT_ALL_DIMS); }
static V l_prod(V *x) { return jot_prod(x[0], JOT_DIMS(1)); }
static V l_max(V *x) { return jot_max(x[0], JOT_DIMS(1)); }
static V l_min(V *x) { return jot_min(x[0], JOT_DIMS(1)); }
static V l_mean(V *x) { return jot_mean(x[0], JOT_DIMS(1)); }
static V l_bias(V *x) { return jot_add(x[0], x[1]); }
static V l_flip(V *x) { return jot_flip(x[0], JOT_INTS(1)); }
static V l_tile(V *x) { return jot_tile(x[0], JOT_INTS(1, 3)); }
static V l_softmax(V *x) { return jot_softmax(x[0], 1); }
static V l_pad(V *x) { return jot_pad(x[0], JOT_INTS(0, 1), JOT_INTS(0, 2), 7); }
static V l_concat(V *x) { return jot_concat(JOT_VARS(x[0], x[1], x[0]), 1); }
static V l_gather(V *x) { return jot_take(x[0], x[1], 0); }
static V l_one_hot(V *x) { return jot_one_hot(x[0], 10, JOT_F32); }
static V l_diagonal(V *x) { return jot_reindex(x[0], JOT_SHAPE(6), JOT_INDEX("i0", "i0")); }
static V l_clip(V *x) { return jot_clamp(jot_scale(x[0], 2.5), -1, 1); }
static V l_relu(V *x) { return jot_relu(jot_linear(x[0], x[1], x[2])); }

static V
l_any(V *x)
{
    return jot_reduce(JOT_BITOR, jot_gt(x[0], jot_neg(x[0])), JOT_DIMS(1));
}

static V
l_slice(V *x)
{
    return jot_slice(x[0], JOT_INTS(1, 2), JOT_INTS(5, 8), JOT_INTS(1, 2));
}

static V
conv(V *x, int stride, int pad, int dilation, int groups)
{
    jot_Conv how = {{stride, stride}, {pad, pad}, {dilation, dilation}, groups};

    return jot_conv2d(x[0], x[1], &how);
}

static V l_conv(V *x) { return conv(x, 1, 1, 1, 1); }
static V l_strided(V *x) { return conv(x, 2, 1, 1, 1); }
static V l_dilated(V *x) { return conv(x, 1, 0, 2, 1); }
static V l_grouped(V *x) { return conv(x, 1, 0, 1, 3); }

static V
l_transposed(V *x)
{
    jot_Conv how = {{2, 2}, {1, 1}, {1, 1}, 1};
    V at = jot_param(ctx, JOT_F32, JOT_SHAPE(2, 4, 16, 16), NULL), y;

    jot_vjp(JOT_VARS(jot_conv2d(at, x[1], &how)), JOT_VARS(x[0]), JOT_VARS(at), &y);
    return y;
}

static V
l_max_pool(V *x)
{
    jot_Pool pool = {{3, 3}, {2, 2}, {1, 1}};

    return jot_max_pool2d(x[0], &pool);
}

static V
l_avg_pool(V *x)
{
    jot_Pool pool = {{2, 2}, {0, 0}, {0, 0}};

    return jot_avg_pool2d(x[0], &pool);
}

static V
l_attention(V *x)
{
    V s = jot_scale(jot_matmul(x[0], jot_swap(x[1], -1, -2)), 0.125);

    return jot_matmul(jot_softmax(s, -1), x[2]);
}

static V
l_norm(V *x)
{
    V m = jot_reduce(JOT_MEAN, x[0], JOT_KEEP(1)), d = jot_sub(x[0], m);
    V v = jot_reduce(JOT_MEAN, jot_mul(d, d), JOT_KEEP(1));

    return jot_mul(d, jot_rsqrt(jot_offset(v, 1e-5)));
}

/* rank 0: there is none; I64 where the letter is */
typedef struct { int64_t n, ext[4], index; } Shape;
typedef struct {
    const char *name, *text;
    V (*library)(V *);
    Shape x[3];
} Same;

static const Same sames[] = {
    {"matmul", "C[i,j] += a[i,k] * b[k,j]", l_matmul, {{2, {48, 40}, 0}, {2, {40, 64}, 0}}},
    {"bmm", "C[n,i,j] += a[n,i,k] * b[n,k,j]", l_matmul,
     {{3, {6, 20, 24}, 0}, {3, {6, 24, 28}, 0}}},
    {"matrix times vector", "y[i] += a[i,k] * b[k]", l_matmul, {{2, {48, 40}, 0}, {1, {40}, 0}}},
    {"transpose", "y[k,i,j] = a[i,j,k]", l_transpose, {{3, {5, 6, 7}, 0}}},
    {"rows", "y[i] += a[i,j]", l_rows, {{2, {30, 70}, 0}}},
    {"columns", "y[j] += a[i,j]", l_columns, {{2, {30, 70}, 0}}},
    {"all", "y += a[i,j] * a[i,j]", l_all, {{2, {30, 70}, 0}}},
    {"prod", "y[i] *= a[i,j]", l_prod, {{2, {30, 70}, 0}}},
    {"max", "y[i] max= a[i,j]", l_max, {{2, {30, 70}, 0}}},
    {"min", "y[i] min= a[i,j]", l_min, {{2, {30, 70}, 0}}},
    {"mean", "y[i] mean= a[i,j]", l_mean, {{2, {30, 70}, 0}}},
    {"any", "y[i] |= a[i,j] > -a[i,j]", l_any, {{2, {30, 70}, 0}}},
    {"broadcast", "y[i,j] = a[i,j] + b[j]", l_bias, {{2, {30, 70}, 0}, {1, {70}, 0}}},
    {"flip", "y[i,j] = a[i, a.1 - 1 - j]", l_flip, {{2, {30, 70}, 0}}},
    {"tile", "y[i,j] = a[i, j % 5] for j < 3 * a.1", l_tile, {{2, {7, 5}, 0}}},
    {"slice", "y[i,j] = a[i + 1, 2*j + 2] for i < 4, j < 3", l_slice, {{2, {6, 9}, 0}}},
    {"diagonal", "y[i] = a[i,i]", l_diagonal, {{2, {6, 6}, 0}}},
    {"clip", "y[i] = minimum(maximum(a[i] * 2.5, -1), 1)", l_clip, {{1, {300}, 0}}},
    {"pad", "y[i,j] = j >= 1 && j < a.1 + 1 ? a[i,j-1] : 7 for j < a.1 + 3", l_pad,
     {{2, {30, 70}, 0}}},
    {"pad with else", "y[i,j] = a[i, j-1 else 7] for j < a.1 + 3", l_pad, {{2, {30, 70}, 0}}},
    {"concat", "y[i,j] = j < 20 ? a[i,j] : j < 50 ? b[i,j-20] : a[i,j-50] for j < 70", l_concat,
     {{2, {6, 20}, 0}, {2, {6, 30}, 0}}},
    {"gather", "y[i,j] = a[@b[i], j]", l_gather, {{2, {6, 20}, 0}, {1, {9}, 1}}},
    {"one_hot", "y[i, k < 10] = f32(a[i] == k)", l_one_hot, {{1, {9}, 1}}},
    {"conv", "y[n,o,h,w] += a[n,c,h+p-1,w+q-1 else 0] * b[o,c,p,q] for h < a.2, w < a.3", l_conv,
     {{4, {2, 6, 12, 12}, 0}, {4, {8, 6, 3, 3}, 0}}},
    {"strided", "y[n,o,h,w] += a[n, c, 2*h+p-1, 2*w+q-1 else 0] * b[o,c,p,q]"
     "for h < (a.2 + 2 - b.2) / 2 + 1, w < (a.3 + 2 - b.3) / 2 + 1", l_strided,
     {{4, {2, 6, 12, 12}, 0}, {4, {8, 6, 3, 3}, 0}}},
    {"dilated", "y[n,o,h,w] += a[n, c, h + 2*p, w + 2*q] * b[o,c,p,q]", l_dilated,
     {{4, {2, 6, 12, 12}, 0}, {4, {8, 6, 3, 3}, 0}}},
    {"grouped", "y[n, 4*g+o, h, w] += a[n, 2*g+c, h+p, w+q] * b[4*g+o, c, p, q] for g < 3, o < 4",
     l_grouped, {{4, {2, 6, 12, 12}, 0}, {4, {12, 2, 3, 3}, 0}}},
    {"transposed", "y[n, c, 2*h+p-1 < 16, 2*w+q-1 < 16] += a[n,o,h,w] * b[o,c,p,q]", l_transposed,
     {{4, {2, 6, 8, 8}, 0}, {4, {6, 4, 4, 4}, 0}}},
    {"max_pool", "y[n,c,h,w] max= a[n, c, 2*h+p-1, 2*w+q-1 else -inf]"
     "for h < 6, w < 6, p < 3, q < 3", l_max_pool, {{4, {2, 6, 12, 12}, 0}}},
    {"avg_pool", "y[n,c,h,w] mean= a[n, c, 2*h+p, 2*w+q] for p < 2, q < 2", l_avg_pool,
     {{4, {2, 6, 12, 12}, 0}}},
    {"linear and relu", "t[i,j] += a[i,k] * b[k,j]; y[i,j] = relu(t[i,j] + d[j])", l_relu,
     {{2, {48, 40}, 0}, {2, {40, 64}, 0}, {1, {64}, 0}}},
    {"softmax", "m[i] max= a[i,j]; e[i,j] = exp(a[i,j] - stop_grad(m[i]));"
     "s[i] += e[i,j]; y[i,j] = e[i,j] / s[i]", l_softmax, {{2, {30, 70}, 0}}},
    {"norm", "m[i] mean= a[i,j]; d[i,j] = a[i,j] - m[i]; v[i] mean= d[i,j] * d[i,j];"
     "y[i,j] = d[i,j] * rsqrt(v[i] + 1e-5)", l_norm, {{2, {30, 70}, 0}}},
    {"attention", "t[b,h,q,k] += a[b,h,q,c] * b0[b,h,k,c]; s[b,h,q,k] = t[b,h,q,k] * 0.125;"
     "m[b,h,q] max= s[b,h,q,k]; e[b,h,q,k] = exp(s[b,h,q,k] - stop_grad(m[b,h,q]));"
     "z[b,h,q] += e[b,h,q,k]; p[b,h,q,k] = e[b,h,q,k] / z[b,h,q];"
     "y[b,h,q,c] += p[b,h,q,k] * d[b,h,k,c]", l_attention,
     {{4, {2, 3, 16, 64}, 0}, {4, {2, 3, 16, 64}, 0}, {4, {2, 3, 16, 64}, 0}}},
};
enum { SAMES = sizeof sames / sizeof *sames };

/* All texts of its kernels, with those of its gradients, on a machine. */
static void
scribe_same(const Same *s, const Posed *m, bool library, Notes *notes)
{
    const char *names = strstr(s->text, "b0") ? "a b0 d" : "a b d";
    V x[3], y, g[3];
    int n = 0, wrt = 0, k;
    char which[8];

    scribe = notes;
    forget_notes(notes);
    ctx = open_machine(m);
    for (; n < 3 && s->x[n].n; n++) {
        x[n] = jot_param(ctx, s->x[n].index ? JOT_I64 : JOT_F32,
                         jot_ints((int)s->x[n].n, s->x[n].ext), NULL);
        wrt += wrt == n && !s->x[n].index;
    }
    k = n == 3 ? (int)strlen(names) : n == 2 ? 3 : 1;
    memcpy(which, names, (size_t)k);
    which[k] = 0;
    y = library ? s->library(x) : jot_expr(ctx, s->text, which, jot_vars(n, x));
    CHECK(jot_ok(y), "%s: %s", s->name, jot_message(ctx));
    if (jot_dtype(y) == JOT_F32 && wrt) {
        CHECK(jot_grad(jot_sum(jot_mul(y, jot_sin(y)), JOT_ALL_DIMS), jot_vars(wrt, x), g),
              "%s: %s", s->name,
              jot_message(ctx));
        g[wrt < 3 ? wrt : 2] = wrt < 3 ? y : g[2];
        CHECK(jot_run(ctx, jot_vars(wrt < 3 ? wrt + 1 : 3, g)), "%s: %s", s->name,
              jot_message(ctx));
    } else
        CHECK(jot_run(ctx, JOT_VARS(y)), "%s: %s", s->name, jot_message(ctx));
    jot_close(ctx);
}

/* Without comments, names of kernels and numbers of axes. */
static char *
bare(const char *s)
{
    char *to = malloc(strlen(s) + 1), *at = to;

    while (*s) {
        bool first = at == to || !isalnum((unsigned char)at[-1]);

        if (!strncmp(s, "/*", 2) && strstr(s, "*/"))
            s = strstr(s, "*/") + 2;
        else if (first && !strncmp(s, "jot_k_", 6))
            s += strspn(s + 6, "0123456789abcdef") + 6;
        else if (first && *s == 'i') {
            *at++ = *s++;
            s += strspn(s, "0123456789");
        } else
            *at++ = *s++;
    }
    *at = 0;
    return to;
}

static void
test_same(void)
{
    static Notes ours, theirs;
    int m, k;

    for (k = 0; k < SAMES; k++)
        for (m = 2; m < NAMED; m += 7) {
            scribe_same(&sames[k], &named[m], false, &ours);
            scribe_same(&sames[k], &named[m], true, &theirs);
            char *a = bare(ours.text), *b = bare(theirs.text);
            CHECK(ours.n && !strcmp(a, b), "%s on a %s: other kernels than the "
                  "library's", sames[k].name, named[m].label);
            free(a);
            free(b);
        }
}

int
main(void)
{
    test_same();
    return DONE();
}
