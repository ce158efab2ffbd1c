/* tests/wild_program.h - a program as a list of calls: built in any context, printed as C, and cut
 * down to what still fails.
 *
 *     call   what it calls, the variables that it takes, lists, numbers, texts
 *     var    the results of all calls, numbered; a call has none (an assignment) to several
 *
 * A program is drawn once (tests/wild_draw.h, tests/wild_nets.h) and then built as often as there
 * are ways to run it. Every call is one row of WILD_CALLS: its name and, for the printer, its
 * arguments:  v operand  V all that are left  D list  R dimensions  K dimensions that an
 * integer keeps  i integer  f number  t dtype  x texts. */
#ifndef JOT_TEST_WILD_PROGRAM_H
#define JOT_TEST_WILD_PROGRAM_H
#include "core.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 120, VARS = 180, OPERANDS = 12, RESULTS = 6, OUTPUTS = 12, LISTS = 4, TEXTS = 12 };

#define WILD_UNARY_(name) X(U_##name, "jot_" #name "(%v)")
#define WILD_BINARY_(name) X(B_##name, "jot_" #name "(%v, %v)")
#define WILD_CALLS \
    X(LEAF, "leaf(c, %t, %D, %i, %i)") \
    X(PARAM, "jot_param_of(leaf(c, %t, %D, %i, %i))") \
    X(FULL, "jot_full(c, %t, %D, %f)") \
    X(IOTA, "jot_iota(c, %t, %D, %i)") \
    X(ARANGE, "jot_arange(c, %t, %f, %f, %i)") \
    X(UNIFORM, "jot_uniform(c, %t, %D)") \
    X(NORMAL, "jot_normal(c, %t, %D)") \
    JOT_UNARY(WILD_UNARY_) \
    JOT_BINARY(WILD_BINARY_) \
    X(SELECT, "jot_where(%v, %v, %v)") \
    X(CAST, "jot_cast(%v, %t)") \
    X(SCALE, "jot_scale(%v, %f)") \
    X(OFFSET, "jot_offset(%v, %f)") \
    X(CLAMP, "jot_clamp(%v, %f, %f)") \
    X(SQUARE, "jot_square(%v)") \
    X(RECIPROCAL, "jot_reciprocal(%v)") \
    X(BROADCAST_TO, "jot_broadcast_to(%v, %D)") \
    X(BROADCAST, "jot_broadcast(%v, %D, %D)") \
    X(RESHAPE, "jot_reshape(%v, %D)") \
    X(TRANSPOSE, "jot_transpose(%v, %D)") \
    X(SWAP, "jot_swap(%v, %i, %i)") \
    X(SLICE, "jot_slice(%v, %D, %D, %D)") \
    X(PAD, "jot_pad(%v, %D, %D, %f)") \
    X(FLIP, "jot_flip(%v, %D)") \
    X(TILE, "jot_tile(%v, %D)") \
    X(EXPAND, "jot_unsqueeze(%v, %i)") \
    X(SQUEEZE, "jot_squeeze(%v, %i)") \
    X(CONCAT, "jot_concat(%V, %i)") \
    X(STACK, "jot_stack(%V, %i)") \
    X(GATHER, "jot_take(%v, %v, %i)") \
    X(ONE_HOT, "jot_one_hot(%v, %i, %t)") \
    X(REINDEX, "jot_reindex_ex(%v, %D, %x, %x, %f, %V)") \
    X(SCATTER, "jot_reindex_reduce_ex(%i, %v, %D, %x, %x, %V)") \
    X(REDUCE, "jot_reduce(%i, %v, %K)") \
    X(VARIANCE, "jot_variance(%v, %R)") \
    X(ANY, "jot_any(%v, %R)") \
    X(ALL, "jot_all(%v, %R)") \
    X(ARGMAX, "jot_argmax(%v, JOT_DIMS(%i))") \
    X(ARGMIN, "jot_argmin(%v, JOT_DIMS(%i))") \
    X(MATMUL, "jot_matmul(%v, %v)") \
    X(CONV, "jot_conv2d(%v, %v, &(jot_Conv){{%i, %i}, {%i, %i}, {%i, %i}, %i})") \
    X(MAX_POOL, "jot_max_pool2d(%v, &(jot_Pool){{%i, %i}, {%i, %i}, {%i, %i}})") \
    X(AVG_POOL, "jot_avg_pool2d(%v, &(jot_Pool){{%i, %i}, {%i, %i}, {%i, %i}})") \
    X(LINEAR, "jot_linear(%v, %v, %v)") \
    X(RELU, "jot_relu(%v)") \
    X(GELU, "jot_gelu(%v)") \
    X(GELU_TANH, "jot_gelu_tanh(%v)") \
    X(SOFTMAX, "jot_softmax(%v, %i)") \
    X(LOG_SOFTMAX, "jot_log_softmax(%v, %i)") \
    X(CROSS_ENTROPY, "jot_cross_entropy(%v, %v)") \
    X(MSE, "jot_mse(%v, %v)") \
    X(BATCH_NORM_EVAL, "jot_batch_norm_eval(%v, %v, %v, %v, %v, %f)") \
    X(BATCH_NORM, "jot_batch_norm_train(%v, %v, %v, %f, %f, running)") \
    X(LAYER_NORM, "jot_layer_norm(%v, %v, %v, %f)") \
    X(INSTANCE_NORM, "jot_instance_norm(%v, %f)") \
    X(DROPOUT, "jot_dropout(%v, %f)") \
    X(STOP_GRAD, "jot_stop_grad(%v)") \
    X(STOP_FUSE, "jot_stop_fuse(%v)") \
    X(GRAD, "jot_grad(%v, %V, results)") \
    X(VJP, "jot_vjp(%v, %v, %V, results)") \
    X(ASSIGN, "jot_assign(%v, %v)") \
    X(SGD, "step of jot_sgd(%V: parameters, then gradients, %f, %f, %f)") \
    X(ADAM, "step of jot_adam(%V: parameters, then gradients, %f, .9, .99, %f)") \
    X(RUN, "jot_run(c, %V)")

typedef enum {
#define X(ID, text) C_##ID,
    WILD_CALLS
#undef X
    CALL_KINDS
} CallKind;

typedef struct { int n; int64_t v[JOT_MAX_RANK]; } List;
typedef struct {
    int kind, nin, nout, first; /* of its operands, its results, the first one's number */
    int in[OPERANDS];
    int nlist, nnum, nint, ntext[2];
    List list[LISTS];
    int64_t num[8];
    double f[3];
    int dtype;
    char text[TEXTS][64]; /* maps, then conditions */
} Call;

typedef struct {
    uint64_t seed;
    int ncall, nvar, nout;
    Call call[CALLS];
    int out[OUTPUTS];
    /* of each variable, as it was drawn */
    int dtype[VARS];
    List shape[VARS];
} Program;

/* ---- leaves ---- */

static uint64_t
mixed(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* What leaves hold: small whole numbers, quarters, any numbers, positive ones, positions,
 * extremes. */
enum { OF_WHOLE, OF_QUARTERS, OF_ANY, OF_POSITIVE, OF_PLACES, OF_EXTREMES, STYLES };

static double
leaf_value(int style, uint64_t seed, int64_t k)
{
    static const double extremes[] = {0, 1, -1, INFINITY, -INFINITY, NAN, 1e30, -3e38, 1e-30, 7};
    uint64_t r = mixed(seed * 1000003u + (uint64_t)k);

    switch (style) {
    case OF_WHOLE: return (double)(r % 7) - 3;
    case OF_QUARTERS: return ((double)(r % 25) - 12) / 4;
    case OF_POSITIVE: return .25 + (double)(r >> 40) / 0x1p24 * 1.5;
    case OF_PLACES: return (double)(r % 8) - (r % 64 == 63);
    case OF_EXTREMES: return extremes[r % 10];
    default: return (double)(r >> 40) / 0x1p23 - 1;
    }
}

/* The elements of a leaf as its dtype, for a caller who frees them. Halves and what saturates are
 * left to jot_cast. */
static jot_Var
leaf(jot_Ctx *c, jot_DType dtype, jot_Ints shape, int style, int64_t seed)
{
    int64_t n = 1;
    jot_Var v;

    for (int d = 0; d < shape.n; d++)
        n *= shape.v[d];
    double *p = malloc((size_t)(n + 1) * sizeof *p);
    float *q = (float *)p;
    for (int64_t k = 0; k < n; k++)
        if (dtype == JOT_F64)
            p[k] = leaf_value(style, (uint64_t)seed, k);
        else
            q[k] = (float)leaf_value(style, (uint64_t)seed, k);
    v = jot_array(c, dtype == JOT_F64 ? JOT_F64 : JOT_F32, shape, p);
    free(p);
    return jot_dtype(v) == dtype ? v : jot_cast(v, dtype);
}

/* ---- building ---- */

static jot_Ints
ints_of(const Call *k, int at)
{
    return jot_ints(k->list[at].n, k->list[at].v);
}

static jot_Dims
dims_of(const Call *k, bool keep)
{
    return jot_dims(k->list[0].n, k->list[0].v, keep);
}

static jot_Strs
strs_of(const Call *k, int conditions, const char **s)
{
    int from = conditions ? k->ntext[0] : 0;

    for (int j = 0; j < k->ntext[conditions]; j++)
        s[j] = k->text[from + j];
    return jot_strs(k->ntext[conditions], s);
}

static jot_Var
build_form(jot_Ctx *c, const Call *k, const jot_Var *v)
{
    const char *s[2][TEXTS];

    switch (k->kind) {
    case C_BROADCAST_TO: return jot_broadcast_to(v[0], ints_of(k, 0));
    case C_BROADCAST: return jot_broadcast(v[0], ints_of(k, 0), ints_of(k, 1));
    case C_RESHAPE: return jot_reshape(v[0], ints_of(k, 0));
    case C_TRANSPOSE: return jot_transpose(v[0], ints_of(k, 0));
    case C_SWAP: return jot_swap(v[0], (int)k->num[0], (int)k->num[1]);
    case C_SLICE: return jot_slice(v[0], ints_of(k, 0), ints_of(k, 1), ints_of(k, 2));
    case C_PAD: return jot_pad(v[0], ints_of(k, 0), ints_of(k, 1), k->f[0]);
    case C_FLIP: return jot_flip(v[0], ints_of(k, 0));
    case C_TILE: return jot_tile(v[0], ints_of(k, 0));
    case C_EXPAND: return jot_unsqueeze(v[0], (int)k->num[0]);
    case C_SQUEEZE: return jot_squeeze(v[0], (int)k->num[0]);
    case C_CONCAT: return jot_concat(jot_vars(k->nin, v), (int)k->num[0]);
    case C_STACK: return jot_stack(jot_vars(k->nin, v), (int)k->num[0]);
    case C_GATHER: return jot_take(v[0], v[1], (int)k->num[0]);
    case C_ONE_HOT: return jot_one_hot(v[0], k->num[0], (jot_DType)k->dtype);
    case C_REINDEX:
        return jot_reindex_ex(v[0], ints_of(k, 0), strs_of(k, 0, s[0]), strs_of(k, 1, s[1]),
                              k->f[0], jot_vars(k->nin - 1, v + 1));
    case C_SCATTER:
        return jot_reindex_reduce_ex((jot_ReduceOp)k->num[0], v[0], ints_of(k, 0),
                                     strs_of(k, 0, s[0]), strs_of(k, 1, s[1]),
                                     jot_vars(k->nin - 1, v + 1));
    case C_REDUCE:
        return jot_reduce((jot_ReduceOp)k->num[0], v[0], dims_of(k, k->num[1] != 0));
    case C_VARIANCE: return jot_variance(v[0], dims_of(k, false));
    case C_ANY: return jot_any(v[0], dims_of(k, false));
    case C_ALL: return jot_all(v[0], dims_of(k, false));
    case C_ARGMAX: return jot_argmax(v[0], JOT_DIMS((int)k->num[0]));
    case C_ARGMIN: return jot_argmin(v[0], JOT_DIMS((int)k->num[0]));
    default: return jot_raise(c, JOT_EUSE, "no call %d", k->kind);
    }
}

static jot_Var
build_layer(jot_Ctx *c, const Call *k, const jot_Var *v)
{
    const int64_t *n = k->num;
    jot_Conv conv = {{(int)n[0], (int)n[1]}, {(int)n[2], (int)n[3]}, {(int)n[4], (int)n[5]},
                     (int)n[6]};
    jot_Pool pool = {{(int)n[0], (int)n[1]}, {(int)n[2], (int)n[3]}, {(int)n[4], (int)n[5]}};

    switch (k->kind) {
    case C_MATMUL: return jot_matmul(v[0], v[1]);
    case C_CONV: return jot_conv2d(v[0], v[1], &conv);
    case C_MAX_POOL: return jot_max_pool2d(v[0], &pool);
    case C_AVG_POOL: return jot_avg_pool2d(v[0], &pool);
    case C_LINEAR: return jot_linear(v[0], v[1], v[2]);
    case C_RELU: return jot_relu(v[0]);
    case C_GELU: return jot_gelu(v[0]);
    case C_GELU_TANH: return jot_gelu_tanh(v[0]);
    case C_SOFTMAX: return jot_softmax(v[0], (int)n[0]);
    case C_LOG_SOFTMAX: return jot_log_softmax(v[0], (int)n[0]);
    case C_CROSS_ENTROPY: return jot_cross_entropy(v[0], v[1]);
    case C_MSE: return jot_mse(v[0], v[1]);
    case C_BATCH_NORM_EVAL: return jot_batch_norm_eval(v[0], v[1], v[2], v[3], v[4], k->f[0]);
    case C_LAYER_NORM: return jot_layer_norm(v[0], v[1], v[2], k->f[0]);
    case C_INSTANCE_NORM: return jot_instance_norm(v[0], k->f[0]);
    case C_DROPOUT: return jot_dropout(v[0], k->f[0]);
    case C_STOP_GRAD: return jot_stop_grad(v[0]);
    case C_STOP_FUSE: return jot_stop_fuse(v[0]);
    default: return build_form(c, k, v);
    }
}

/* Calls of one result. */
static jot_Var
build_one(jot_Ctx *c, const Call *k, const jot_Var *v)
{
    jot_DType dtype = (jot_DType)k->dtype;

    switch (k->kind) {
#define U_(name) case C_U_##name: return jot_##name(v[0]);
#define B_(name) case C_B_##name: return jot_##name(v[0], v[1]);
    JOT_UNARY(U_)
    JOT_BINARY(B_)
#undef U_
#undef B_
    case C_LEAF: return leaf(c, dtype, ints_of(k, 0), (int)k->num[0], k->num[1]);
    case C_PARAM: return jot_param_of(leaf(c, dtype, ints_of(k, 0), (int)k->num[0], k->num[1]));
    case C_FULL: return jot_full(c, dtype, ints_of(k, 0), k->f[0]);
    case C_IOTA: return jot_iota(c, dtype, ints_of(k, 0), (int)k->num[0]);
    case C_ARANGE: return jot_arange(c, dtype, k->f[0], k->f[1], k->num[0]);
    case C_UNIFORM: return jot_uniform(c, dtype, ints_of(k, 0));
    case C_NORMAL: return jot_normal(c, dtype, ints_of(k, 0));
    case C_SELECT: return jot_where(v[0], v[1], v[2]);
    case C_CAST: return jot_cast(v[0], dtype);
    case C_SCALE: return jot_scale(v[0], k->f[0]);
    case C_OFFSET: return jot_offset(v[0], k->f[0]);
    case C_CLAMP: return jot_clamp(v[0], k->f[0], k->f[1]);
    case C_SQUARE: return jot_square(v[0]);
    case C_RECIPROCAL: return jot_reciprocal(v[0]);
    default: return build_layer(c, k, v);
    }
}

/* v: the operands; out: room for the results. A hook for RUN: who evaluates may look first. */
typedef bool WildRun(void *user, jot_Ctx *c, jot_Vars vars);

static bool
build_call(jot_Ctx *c, const Call *k, const jot_Var *v, jot_Var *out, WildRun *run, void *user)
{
    jot_Optim optim;
    bool ok;

    switch (k->kind) {
    case C_GRAD: return jot_grad(v[0], jot_vars(k->nin - 1, v + 1), out);
    case C_VJP:
        return jot_vjp(jot_vars(1, v), jot_vars(1, v + 1), jot_vars(k->nin - 2, v + 2), out);
    case C_BATCH_NORM:
        out[1] = v[3];
        out[2] = v[4];
        out[0] = jot_batch_norm_train(v[0], v[1], v[2], k->f[0], k->f[1], &out[1], &out[2]);
        return jot_ok(out[0]);
    case C_ASSIGN: return jot_assign(v[0], v[1]);
    case C_SGD:
    case C_ADAM:
        optim = k->kind == C_SGD ? jot_sgd(jot_vars(k->nin / 2, v), k->f[0], k->f[1], k->f[2])
                                 : jot_adam(jot_vars(k->nin / 2, v), k->f[0], .9, .99, k->f[1]);
        ok = jot_step(optim, jot_vars(k->nin / 2, v + k->nin / 2));
        jot_optim_free(optim);
        return ok;
    case C_RUN: return run ? run(user, c, jot_vars(k->nin, v)) : jot_run(c, jot_vars(k->nin, v));
    default:
        out[0] = build_one(c, k, v);
        return jot_ok(out[0]);
    }
}

/* All calls; var: the program's variables. False: the context says why. */
static bool
build_program(jot_Ctx *c, const Program *p, jot_Var *var, WildRun *run, void *user)
{
    jot_Var v[OPERANDS];
    bool ok = true;

    jot_seed(c, p->seed);
    for (int k = 0; k < p->ncall && ok; k++) {
        const Call *call = &p->call[k];
        for (int j = 0; j < call->nin; j++)
            v[j] = var[call->in[j]];
        ok = build_call(c, call, v, var + call->first, run, user);
    }
    return ok;
}

/* ---- printing ---- */

static const char *const call_text[CALL_KINDS] = {
#define X(ID, text) text,
    WILD_CALLS
#undef X
};

static void
print_list(FILE *to, const char *name, const List *l)
{
    fprintf(to, "%s(", name);
    for (int d = 0; d < l->n; d++)
        fprintf(to, l->v[d] == JOT_END ? "%sJOT_END" : "%s%lld", d ? ", " : "",
                (long long)l->v[d]);
    fprintf(to, ")");
}

static void
print_texts(FILE *to, const Call *k, int conditions)
{
    int n = k->ntext[conditions], from = conditions ? k->ntext[0] : 0;

    fprintf(to, n ? "JOT_INDEX(" : "JOT_NONE_STRS");
    for (int j = 0; j < n; j++)
        fprintf(to, "%s\"%s\"", j ? ", " : "", k->text[from + j]);
    fprintf(to, n ? ")" : "");
}

static void
print_call(FILE *to, const Call *k)
{
    int v = 0, d = 0, i = 0, f = 0, x = 0;

    fprintf(to, "    ");
    for (int j = 0; j < k->nout; j++)
        fprintf(to, "%sv%d", j ? ", " : "", k->first + j);
    fprintf(to, k->nout ? " = " : "");
    for (const char *s = call_text[k->kind]; *s; s++) {
        if (*s != '%') {
            fputc(*s, to);
            continue;
        }
        switch (*++s) {
        case 'v': fprintf(to, "v%d", k->in[v++]); break;
        case 'D': print_list(to, "JOT_INTS", &k->list[d++]); break;
        case 'R': print_list(to, "JOT_DIMS", &k->list[d++]); break;
        case 'K': print_list(to, k->num[i++] ? "JOT_KEEP" : "JOT_DIMS", &k->list[d++]); break;
        case 'i': fprintf(to, "%lld", (long long)k->num[i++]); break;
        case 'f': fprintf(to, "%.17g", k->f[f++]); break;
        case 't': fprintf(to, "<%s>", jot_dtype_name((jot_DType)k->dtype)); break;
        case 'x': print_texts(to, k, x++); break;
        case 'V':
            fprintf(to, v < k->nin ? "JOT_VARS(" : "JOT_NONE_VARS");
            for (int j = v; j < k->nin; j++)
                fprintf(to, "%sv%d", j > v ? ", " : "", k->in[j]);
            fprintf(to, v < k->nin ? ")" : "");
        }
    }
    fprintf(to, ";\n");
}

static inline void
print_program(FILE *to, const Program *p)
{
    for (int k = 0; k < p->ncall; k++)
        print_call(to, &p->call[k]);
    fprintf(to, "    asked:");
    for (int k = 0; k < p->nout; k++)
        fprintf(to, " v%d", p->out[k]);
    fprintf(to, "\n");
}

/* ---- cutting down ---- */

/* Only the calls that the outputs need; what changes state stays, with what it needs. */
static void
drop_dead(Program *p)
{
    bool live[VARS] = {false};
    int n = p->ncall;
    bool keep[CALLS] = {false};

    for (int k = 0; k < p->nout; k++)
        live[p->out[k]] = true;
    for (int k = p->ncall - 1; k >= 0; k--) {
        Call *c = &p->call[k];
        keep[k] = c->nout == 0;
        for (int j = 0; j < c->nout; j++)
            keep[k] = keep[k] || live[c->first + j];
        for (int j = 0; keep[k] && j < c->nin; j++)
            live[c->in[j]] = true;
    }
    p->ncall = 0;
    for (int k = 0; k < n; k++)
        if (keep[k])
            p->call[p->ncall++] = p->call[k];
}

/* Call k gives up: its result becomes a leaf of the same shape. False: it is none already, or has
 * other than one result. */
static inline bool
leaf_for_call(Program *p, int k)
{
    Call *c = &p->call[k], was = *c;
    int dtype = p->dtype[was.first];

    if (c->kind == C_LEAF || c->kind == C_PARAM || c->nout != 1)
        return false;
    memset(c, 0, sizeof *c);
    c->kind = dtype == JOT_F16 || dtype == JOT_BF16 ? C_PARAM : C_LEAF;
    c->nout = 1;
    c->first = was.first;
    c->dtype = dtype;
    c->list[0] = p->shape[was.first];
    c->num[0] = dtype < JOT_F16 ? OF_WHOLE : OF_ANY;
    c->num[1] = k;
    return true;
}
#endif
