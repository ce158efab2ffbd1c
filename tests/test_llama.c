/* test_llama.c - the language model of examples/llama: its text, letter by letter, where the model
 * is there, and as GGUF and safetensors, rounded too; products that are rounded within their bound;
 * logits of drawn weights of every form against a loop, in conversations side by side, in pieces
 * and one by one, over the end of a cache that lets go of the oldest; words; draws; files that are cut
 * off or lie; learning.
 *
 * Guards: examples/llama/model.c, examples/llama/load.c, examples/llama/load_io.c,
 * examples/llama/words.c, examples/llama/draw.c. */
#include <unistd.h>
#include "io.h"
#include "examples/llama/load.h"
#include "tests/test.h"

static const char numbers[] = "../shared/models/tinystories/stories260K.bin";
static const char texts[] = "../shared/models/tinystories/tok512.bin";
static const char expected[] =
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. "
    "One day, she saw a big, red ball. She wanted to play with it, but it was too high.";

static const LlamaSizes small = {.dim = 64, .hidden = 96, .layers = 2, .heads = 4, .kv_heads = 2,
                                 .head_dim = 16, .vocab = 50, .length = 24, .eps = 1e-5,
                                 .base = 10000, .neighbours = true};

enum { ROWS = 2, ROOM = 24, TOKENS = 40, WIDE = 4 };

/* ---- a model, one number after the other ---- */

static double
element(const LlamaWeight *w, int64_t o, int64_t i)
{
    int64_t in = w->form == LLAMA_PLAIN ? jot_extent(w->data, 1) : jot_extent(w->scale, 1) * 32;
    jot_Var x = w->form == LLAMA_PLAIN ? jot_cast(w->data, JOT_F32)
                                       : jot_cast(w->scale, JOT_F32);
    double d = (double)jot_data_f32(x)[w->form == LLAMA_PLAIN ? o * in + i : (o * in + i) / 32];

    if (w->form == LLAMA_Q8_0)
        return d * jot_data_i8(w->data)[o * in + i];
    if (w->form == LLAMA_Q4_0) {
        int byte = jot_data_u8(w->data)[(o * in + i / 32 * 32) / 2 + i % 16];
        return d * ((i % 32 < 16 ? byte & 15 : byte >> 4) - 8);
    }
    return d;
}

/* The weights as doubles, each matrix once. */
static double *
matrix(jot_Ctx *c, const LlamaWeight *w, int64_t out, int64_t in)
{
    double *m = malloc((size_t)(out * in) * sizeof *m);

    jot_push(c);
    for (int64_t k = 0; k < out * in; k++)
        m[k] = element(w, k / in, k % in);
    jot_pop(c);
    return m;
}

static void
times(const double *m, int64_t out, int64_t in, const double *x, double *y)
{
    for (int64_t o = 0; o < out; o++) {
        y[o] = 0;
        for (int64_t i = 0; i < in; i++)
            y[o] += m[o * in + i] * x[i];
    }
}

static void
norm(const LlamaSizes *of, const double *x, double *y)
{
    double sum = 0;

    for (int64_t i = 0; i < of->dim; i++)
        sum += x[i] * x[i];
    for (int64_t i = 0; i < of->dim; i++)
        y[i] = x[i] / sqrt(sum / (double)of->dim + of->eps);
}

static void
turn(const LlamaSizes *of, double *x, int64_t heads, int64_t at)
{
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < of->head_dim / 2; i++) {
            double a = (double)at / pow(of->base, 2 * (double)i / (double)of->head_dim);
            double *p = x + h * of->head_dim + 2 * i, l = p[0];
            p[0] = l * cos(a) - p[1] * sin(a);
            p[1] = p[1] * cos(a) + l * sin(a);
        }
}

typedef struct { double *w[7]; } Layer;
typedef struct {
    const Llama *m;
    double *table;
    Layer layer[2];
    double k[2][TOKENS][64], v[2][TOKENS][64];
} Naive;

static void
naive_open(Naive *n, jot_Ctx *c, const Llama *m)
{
    const LlamaSizes *of = &m->of;
    int64_t kv = of->kv_heads * of->head_dim;

    n->m = m;
    n->table = matrix(c, &m->table, of->vocab, of->dim);
    for (int l = 0; l < 2; l++) {
        const LlamaLayer *y = &m->layer[l];
        double *w[7] = {matrix(c, &y->wq, of->dim, of->dim), matrix(c, &y->wk, kv, of->dim),
                        matrix(c, &y->wv, kv, of->dim), matrix(c, &y->wo, of->dim, of->dim),
                        matrix(c, &y->w1, of->hidden, of->dim),
                        matrix(c, &y->w2, of->dim, of->hidden),
                        matrix(c, &y->w3, of->hidden, of->dim)};
        memcpy(n->layer[l].w, w, sizeof w);
    }
}

static void
naive_close(Naive *n)
{
    free(n->table);
    for (int l = 0; l < 14; l++)
        free(n->layer[l / 7].w[l % 7]);
}

/* Row `at` of the keys and values, and what attention makes of those from `from` on. */
static void
naive_attend(Naive *n, int l, const double *q, int64_t from, int64_t at, double *y)
{
    const LlamaSizes *of = &n->m->of;
    int64_t d = of->head_dim;

    for (int64_t h = 0; h < of->heads; h++) {
        int64_t g = h / (of->heads / of->kv_heads);
        double sum = 0;
        for (int64_t e = 0; e < d; e++)
            y[h * d + e] = 0;
        for (int64_t j = from; j <= at; j++) {
            double s = 0;
            for (int64_t e = 0; e < d; e++)
                s += q[h * d + e] * n->k[l][j][g * d + e];
            s = exp(s / sqrt((double)d));
            sum += s;
            for (int64_t e = 0; e < d; e++)
                y[h * d + e] += s * n->v[l][j][g * d + e];
        }
        for (int64_t e = 0; e < d; e++)
            y[h * d + e] /= sum;
    }
}

/* Token number `at` of a conversation, which sees those from `from` on: logits. */
static void
naive_step(Naive *n, int32_t token, int64_t from, int64_t at, double *logits)
{
    const LlamaSizes *of = &n->m->of;
    int64_t dim = of->dim, kv = of->kv_heads * of->head_dim;
    double x[64], y[64], q[64], z[64], a[96], b[96];

    memcpy(x, n->table + token * dim, sizeof x);
    for (int l = 0; l < 2; l++) {
        double **w = n->layer[l].w;
        norm(of, x, y);
        times(w[0], dim, dim, y, q);
        times(w[1], kv, dim, y, n->k[l][at]);
        times(w[2], kv, dim, y, n->v[l][at]);
        turn(of, q, of->heads, at);
        turn(of, n->k[l][at], of->kv_heads, at);
        naive_attend(n, l, q, from, at, z);
        times(w[3], dim, dim, z, y);
        for (int64_t i = 0; i < dim; i++)
            x[i] += y[i];
        norm(of, x, y);
        times(w[4], of->hidden, dim, y, a);
        times(w[6], of->hidden, dim, y, b);
        for (int64_t i = 0; i < of->hidden; i++)
            a[i] *= b[i] / (1 + exp(-a[i]));
        times(w[5], dim, of->hidden, a, y);
        for (int64_t i = 0; i < dim; i++)
            x[i] += y[i];
    }
    norm(of, x, y);
    times(n->table, of->vocab, dim, y, logits);
}

/* ---- against it ---- */

static jot_Func
step_of(Llama *m, int64_t t)
{
    jot_push(m->c);
    LlamaAt at = {jot_array(m->c, JOT_I32, JOT_SHAPE(ROWS, t), NULL),
                  jot_array(m->c, JOT_I64, JOT_SHAPE(ROWS), NULL),
                  jot_array(m->c, JOT_I64, JOT_SHAPE(ROWS), NULL)};
    jot_Func f = jot_compile(m->c, JOT_VARS(at.tokens, at.start, at.place),
                             JOT_VARS(llama_graph(m, &at, true)));
    jot_pop(m->c);
    return f;
}

static int32_t
token_of(int row, int64_t at)
{
    return (int32_t)((at * 7 + row * 13 + at * at) % 50);
}

/* Tokens in pieces of WIDE and one by one: row 1 is 3 tokens behind row 0; from ROOM on the oldest
 * are let go, of a piece as many more as it has behind its row. */
static double
worst_of(Llama *m, Naive *n, int64_t last)
{
    jot_Func one = step_of(m, 1), four = step_of(m, WIDE);
    double worst = 0, logits[50];
    float got[ROWS][50];

    for (int64_t at = 0, t; at < last; at += t) {
        int32_t tokens[ROWS * WIDE];
        int64_t start[ROWS], place[ROWS];
        t = at % 8 < 4 && at % ROOM % WIDE == 0 && at + WIDE <= last ? WIDE : 1;
        for (int r = 0; r < ROWS; r++) {
            start[r] = at;
            place[r] = at % ROOM;
            for (int i = 0; i < t; i++)
                tokens[r * t + i] = token_of(r, at + i);
        }
        if (!jot_call(t == 1 ? one : four,
                      JOT_INS(JOT_IN(tokens, (size_t)(ROWS * t) * 4), JOT_IN(start, sizeof start),
                              JOT_IN(place, sizeof place)), JOT_OUTS(JOT_OUT(got, sizeof got))))
            return 1e9;
        for (int r = 0; r < ROWS; r++)
            for (int64_t i = at; i < at + t; i++) {
                int64_t from = i - (ROOM - t);
                naive_step(&n[r], token_of(r, i), from < 0 ? 0 : from, i, logits);
                for (int k = 0; i == at + t - 1 && k < 50; k++) {
                    double off = fabs(logits[k] - (double)got[r][k]) / (1 + fabs(logits[k]));
                    worst = off <= worst ? worst : off;
                }
            }
    }
    jot_func_free(one);
    jot_func_free(four);
    return worst;
}

/* By how much at most the product of a row of x and one of w, n numbers each, is off that is
 * rounded. */
static double
rounded_bound(LlamaForm form, const double *w, const float *x, int n)
{
    int block = form == LLAMA_PLAIN ? 1 : 32;
    double bound = 0;

    for (int b = 0; b < n; b += block) {
        double most = 0, size = 0;
        for (int i = b; i < b + block; i++) {
            most = fmax(most, fabs((double)x[i]));
            size += fabs(w[i]);
        }
        bound += most * size / (form == LLAMA_PLAIN ? 512 : 254) + 1e-5 * most * size
               + 1e-36 * size;
    }
    return bound;
}

/* What meets weights of bf16 or in blocks is rounded: within the bound that is stated, on rows of 0
 * and of the least numbers, too; and elsewhere it is not what floats give. */
static void
test_rounded(const char *backend)
{
    enum { R = 37, O = 50, I = 96 };
    static const struct { jot_DType dtype; LlamaForm form; int rows; } kinds[] = {
        {JOT_F32, LLAMA_Q8_0, 5}, {JOT_F32, LLAMA_Q4_0, 5}, {JOT_BF16, LLAMA_PLAIN, 1},
        {JOT_BF16, LLAMA_PLAIN, 5}, {JOT_BF16, LLAMA_PLAIN, R}};
    jot_Ctx *c = jot_open(&(jot_Config){.backend = backend, .deterministic = 1});
    float x[R * I];

    for (int i = 0; i < R * I; i++)
        x[i] = i / I == 2 ? 0 : (float)((i * 7919) % 2003 - 1001) / (i % 64 < 32 ? 1 : 900)
                                    * (i / I == 3 ? 1e-40f : 1);
    for (size_t kind = 0; !jot_error(c) && kind < sizeof kinds / sizeof *kinds; kind++) {
        Llama m;
        LlamaSizes of = small;
        of.dim = I, of.vocab = O, of.layers = 0;
        bool ok = llama_drawn(&m, c, &of, kinds[kind].dtype, kinds[kind].form), same = true;
        double *w = ok ? matrix(c, &m.table, O, I) : NULL, worst = 0;
        const float *y = jot_data(llama_times(
            jot_array(c, JOT_F32, JOT_SHAPE(1, kinds[kind].rows, I), x), m.table, true));
        for (int k = 0; w && y && k < kinds[kind].rows * O; k++) {
            const double *row = w + k % O * I;
            double sum = 0, bound = rounded_bound(kinds[kind].form, row, x + k / O * I, I);
            for (int i = 0; i < I; i++)
                sum += row[i] * (double)x[k / O * I + i];
            worst = fmax(worst, fabs(sum - (double)y[k]) - bound);
            same = same && fabs(sum - (double)y[k]) < 1e-6 * bound;
            ok = ok && (k / O != 2 || y[k] == 0) && y[k] == y[k];
        }
        CHECK(ok && w && y && worst <= 0 && !same, "%s, kind %d, rounded: %g beyond the bound; %s",
              backend, (int)kind, worst, jot_message(c));
        free(w);
    }
    if (jot_error(c))
        SKIP("%s: %s", backend, jot_message(c));
    jot_close(c);
}

static void
test_logits(const char *backend, int many, int64_t last)
{
    static const struct { jot_DType dtype; LlamaForm form; jot_DType room; double most; } kinds[] = {
        {JOT_F32, LLAMA_Q8_0, JOT_F32, 2e-4}, {JOT_F32, LLAMA_Q4_0, JOT_F32, 2e-4},
        {JOT_F32, LLAMA_PLAIN, JOT_F16, 5e-4}, {JOT_F16, LLAMA_PLAIN, JOT_F32, 2e-4},
        {JOT_BF16, LLAMA_PLAIN, JOT_F32, 2e-4}, {JOT_F32, LLAMA_PLAIN, JOT_F32, 2e-4},
        {JOT_F32, LLAMA_PLAIN, JOT_BF16, 5e-3}};
    jot_Config config = {.backend = backend, .deterministic = 1};
    jot_Ctx *c = jot_open(&config);
    Naive *n = calloc(ROWS, sizeof *n);

    if (jot_error(c)) {
        SKIP("%s: %s", backend, jot_message(c));
        free(n);
        jot_close(c);
        return;
    }
    for (int k = 0; k < many; k++) {
        Llama m;
        bool ok = llama_drawn(&m, c, &small, kinds[k].dtype, kinds[k].form)
                  && llama_room(&m, ROWS, ROOM, kinds[k].room);
        for (int r = 0; ok && r < ROWS; r++)
            naive_open(&n[r], c, &m);
        double worst = ok ? worst_of(&m, n, last) : 1;
        CHECK(worst < kinds[k].most, "%s, kind %d: off by %g; %s", backend, k, worst,
              jot_message(c));
        for (int r = 0; ok && r < ROWS; r++)
            naive_close(&n[r]);
    }
    free(n);
    jot_close(c);
}

/* ---- the model that is there ---- */

/* What the likeliest tokens say, as long as what is expected. */
static void
says(const char *path, const char *words, const char *backend, bool rounded, char said[400])
{
    jot_Config config = {.backend = backend};
    jot_Ctx *c = jot_open(&config);
    Llama m;
    LlamaWords w;
    char why[400] = "";
    float two[ROWS][512];
    int32_t token = 1;
    size_t n = 0;

    said[0] = 0;
    bool ok = llama_open(&m, &w, c, path, words, why, sizeof why)
              && ((m.rounded = rounded), llama_room(&m, ROWS, m.of.length, llama_room_dtype(&m)));
    CHECK(ok, "%s: %s%s", path, why, jot_message(c));
    jot_Func f = ok ? step_of(&m, 1) : (jot_Func){0};
    for (int64_t at = 0; ok && n < sizeof expected - 1 && at < 128; at++) {
        int32_t both[ROWS] = {token, token};
        int64_t where[ROWS] = {at, at};
        char piece[LLAMA_PIECE];
        if (!jot_call(f, JOT_INS(JOT_IN(both, sizeof both), JOT_IN(where, sizeof where),
                                 JOT_IN(where, sizeof where)), JOT_OUTS(JOT_OUT(two, sizeof two))))
            break;
        int32_t next = llama_draw(&(LlamaDraw){0}, two[1], 512);
        int some = llama_piece(&w, token, next, piece);
        memcpy(said + n, piece, (size_t)some);
        n += (size_t)some;
        token = next;
    }
    said[n < sizeof expected - 1 ? n : sizeof expected - 1] = 0;
    CHECK(!strcmp(said, expected), "%s says \"%s\"; %s", path, said, jot_message(c));
    llama_words_close(&w);
    jot_close(c);
}

/* The text as tokens of the file's, and back. */
static void
round_trip(const char *path, const char *words, const char *text)
{
    jot_Ctx *c = jot_open(&(jot_Config){.backend = "interp"});
    Llama m;
    LlamaWords w;
    char why[400] = "", said[400];
    int32_t tokens[64];
    size_t n = 0;

    CHECK(llama_open(&m, &w, c, path, words, why, sizeof why), "%s", why);
    int many = llama_encode(&w, text, tokens, 64);
    for (int i = 1, at; i < many; i++, n += (size_t)at)
        at = llama_piece(&w, tokens[i - 1], tokens[i], said + n);
    CHECK(many > 1 && many < 20 && n == strlen(text) && !memcmp(said, text, n),
          "%s: %d tokens, \"%.*s\"", path, many, (int)n, said);
    CHECK(llama_encode(&w, "too long", tokens, 3) == -1, "no room is said");
    llama_words_close(&w);
    jot_close(c);
}

/* ---- the same as other files ---- */

enum { NAMED = 2 + LLAMA_WEIGHTS * 5 };

static void
put(jot_Named *to, const char *format, int layer, jot_Var x)
{
    snprintf(to->name, sizeof to->name, format, layer);
    to->var = x;
}

/* Rows of turned pairs, of which neighbours become one of each half. */
static jot_Var
halves(const Llama *m, jot_Var w, int64_t heads)
{
    int64_t d = m->of.head_dim, in = m->of.dim;
    jot_Var x = jot_reshape(w, JOT_SHAPE(heads, d / 2, 2, in));
    return jot_reshape(jot_transpose(x, JOT_INTS(0, 2, 1, 3)), JOT_SHAPE(heads * d, in));
}

static int
named(const Llama *m, bool gguf, jot_Named *to)
{
    static const char *const names[2][LLAMA_WEIGHTS] = {
        {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
         "mlp.gate_proj", "mlp.down_proj", "mlp.up_proj", "input_layernorm",
         "post_attention_layernorm"},
        {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_down", "ffn_up",
         "attn_norm", "ffn_norm"}};
    int n = 0;

    put(&to[n++], gguf ? "token_embd.weight" : "model.embed_tokens.weight", 0, m->table.data);
    put(&to[n++], gguf ? "output_norm.weight" : "model.norm.weight", 0, m->norm);
    for (int i = 0; i < (int)m->of.layers; i++) {
        const LlamaLayer *l = &m->layer[i];
        jot_Var own[LLAMA_WEIGHTS] = {l->wq.data, l->wk.data, l->wv.data, l->wo.data, l->w1.data,
                                      l->w2.data, l->w3.data, l->norm, l->ff_norm};
        for (int k = 0; k < LLAMA_WEIGHTS; k++) {
            char format[100];
            snprintf(format, sizeof format, "%s.%%d.%s.weight", gguf ? "blk" : "model.layers",
                     names[gguf][k]);
            put(&to[n++], format, i, gguf || k > 1 ? own[k]
                                     : halves(m, own[k], k ? m->of.kv_heads : m->of.heads));
        }
    }
    return n;
}

static jot_Meta
meta_int(const char *key, const int64_t *v)
{
    return (jot_Meta){.key = key, .kind = JOT_META_INT, .count = 1, .ints = v};
}

/* As GGUF, with its words; its weights of f32 or in blocks. */
static bool
write_gguf(const Llama *m, const LlamaWords *w, const char *path, bool q8)
{
    static jot_Text texts[512];
    static double scores[512], eps = 1e-5;
    static const jot_Text llama = {"llama", 5};
    static jot_Named list[NAMED];
    const LlamaSizes *of = &m->of;
    int n = named(m, true, list);

    for (int i = 0; i < 512; i++) {
        texts[i] = (jot_Text){w->token[i].text, (size_t)w->token[i].nbytes};
        scores[i] = (double)w->token[i].score;
    }
    jot_Meta meta[] = {
        {.key = "general.architecture", .kind = JOT_META_TEXT, .count = 1, .texts = &llama},
        meta_int("llama.embedding_length", &of->dim), meta_int("llama.block_count", &of->layers),
        meta_int("llama.feed_forward_length", &of->hidden),
        meta_int("llama.attention.head_count", &of->heads),
        meta_int("llama.attention.head_count_kv", &of->kv_heads),
        meta_int("llama.context_length", &of->length),
        {.key = "llama.attention.layer_norm_rms_epsilon", .kind = JOT_META_FLOAT, .count = 1,
         .floats = &eps},
        {.key = "tokenizer.ggml.tokens", .kind = JOT_META_TEXT, .list = true, .count = 512,
         .texts = texts},
        {.key = "tokenizer.ggml.scores", .kind = JOT_META_FLOAT, .list = true, .count = 512,
         .floats = scores}};
    jot_Writing how = {.format = "gguf", .meta = meta, .metas = 10, .q8_0 = q8};
    return jot_file_write(m->c, path, list, n, &how);
}

static bool
write_safetensors(const Llama *m, const char *path, const char *config)
{
    static jot_Named list[NAMED];
    FILE *f = fopen(config, "w");
    int n = named(m, false, list);

    if (!f)
        return false;
    fprintf(f, "{\"hidden_size\": 64, \"intermediate_size\": 172, \"num_hidden_layers\": 5,\n"
            " \"num_attention_heads\": 8, \"num_key_value_heads\": 4, \"vocab_size\": 512,\n"
            " \"max_position_embeddings\": 512, \"rms_norm_eps\": 1e-05}\n");
    return fclose(f) == 0 && jot_file_write(m->c, path, list, n, NULL);
}

static void
test_text(void)
{
    jot_Ctx *c = jot_open(&(jot_Config){.backend = "interp"});
    char said[400], why[400] = "", dir[] = "/tmp/jot_llama_XXXXXX", path[80], config[80];
    char gguf[80], q8[80];
    Llama m;
    LlamaWords w;

    if (access(numbers, R_OK) || !mkdtemp(dir)) {
        SKIP("%s is not there", numbers);
        jot_close(c);
        return;
    }
    says(numbers, texts, NULL, false, said);
    round_trip(numbers, texts, "Once upon a time, Zo\xc3\xab");
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    snprintf(gguf, sizeof gguf, "%s/model.gguf", dir);
    snprintf(q8, sizeof q8, "%s/model_q8.gguf", dir);
    snprintf(config, sizeof config, "%s/config.json", dir);
    CHECK(llama_open(&m, &w, c, numbers, texts, why, sizeof why) && write_gguf(&m, &w, gguf, false)
          && write_gguf(&m, &w, q8, true), "%s%s", why, jot_message(c));
    says(gguf, NULL, NULL, false, said);
    if (*jot_file_can("safetensors")) {
        SKIP("%s", jot_file_can("safetensors"));
    } else {
        CHECK(write_safetensors(&m, path, config), "%s", jot_message(c));
        says(path, gguf, NULL, false, said);
    }
    says(q8, NULL, NULL, false, said);
    says(q8, NULL, NULL, true, said);
    round_trip(q8, NULL, "Once upon a time, Zo\xc3\xab");
    llama_words_close(&w);
    jot_close(c);
    remove(gguf), remove(q8), remove(path), remove(config), remove(dir);
}

/* A file of so many bytes of the model, with one of its sizes changed. */
static bool
opens(int size, int32_t value, long nbytes, char why[200])
{
    static char p[1100000];
    FILE *in = fopen(numbers, "rb"), *out = fopen("out_llama.bin", "wb");
    size_t n = in && out ? fread(p, 1, sizeof p, in) : 0;
    jot_Ctx *c = jot_open(&(jot_Config){.backend = "interp"});
    Llama m;
    LlamaWords w;

    n = nbytes < 0 || (size_t)nbytes > n ? n : (size_t)nbytes;
    if (size >= 0)
        memcpy(p + 4 * size, &value, 4);
    if (out)
        fwrite(p, 1, n, out), fclose(out);
    if (in)
        fclose(in);
    bool ok = llama_open(&m, &w, c, "out_llama.bin", texts, why, 200);
    llama_words_close(&w);
    jot_close(c);
    remove("out_llama.bin");
    return ok;
}

static void
test_files(void)
{
    char why[200] = "";
    jot_Ctx *c = jot_open(&(jot_Config){.backend = "interp"});
    Llama m;
    LlamaWords w;

    CHECK(!llama_open(&m, &w, c, "no/such.bin", texts, why, sizeof why)
          && strstr(why, "no/such.bin: No such file"), "%s", why);
    jot_close(c);
    if (access(numbers, R_OK))
        return;
    CHECK(!opens(-1, 0, 20, why) && strstr(why, "sizes: 28 bytes asked"), "%s", why);
    CHECK(!opens(-1, 0, 70000, why) && strstr(why, "asked at"), "%s", why);
    CHECK(!opens(2, 1 << 30, -1, why) && strstr(why, "size 3 of 7"), "%s", why);
    CHECK(!opens(3, 7, -1, why) && strstr(why, "heads that divide"), "%s", why);
    CHECK(!opens(1, 1 << 20, -1, why) && strstr(why, "w1: "), "%s", why);
    CHECK(opens(-1, 0, -1, why), "%s", why);
}

/* Words of GPT-2's kind: bytes as characters, pairs by rank, words that do not join each other. */
static void
test_merges(void)
{
    static const jot_Text tokens[] = {{"a", 1}, {"b", 1}, {"\xc4\xa0", 2}, {"ab", 2},
                                      {"\xc4\xa0" "ab", 4}, {"aba", 3}, {"<s>", 3}};
    static const jot_Text merges[] = {{"a b", 3}, {"\xc4\xa0 ab", 5}};
    static const int64_t bos = 6, two[] = {1, 2};
    static const double scores[] = {1, 2, 3, 4, 5, 6, 7};
    static const int32_t want[] = {6, 3, 0, 4, 4};
    char path[] = "/tmp/jot_llama_XXXXXX", why[200] = "";
    int file = mkstemp(path);
    jot_Ctx *c = jot_open(&(jot_Config){.backend = "interp"});
    jot_Named one = {"x", jot_zeros(c, JOT_F32, JOT_SHAPE(1))};
    jot_Meta meta[] = {
        {.key = "tokenizer.ggml.tokens", .kind = JOT_META_TEXT, .list = true, .count = 7,
         .texts = tokens},
        {.key = "tokenizer.ggml.merges", .kind = JOT_META_TEXT, .list = true, .count = 2,
         .texts = merges},
        meta_int("tokenizer.ggml.bos_token_id", &bos)};
    Load load = {.path = path, .why = why, .room = sizeof why};
    LlamaWords w = {0};
    int32_t got[16];
    char piece[LLAMA_PIECE];

    jot_Writing how = {.format = "gguf", .meta = meta, .metas = 3};
    CHECK(file >= 0 && jot_file_write(c, path, &one, 1, &how) && load_io_words(&load, &w, 7),
          "%s%s", why, jot_message(c));
    int n = llama_encode(&w, "aba ab ab", got, 16);
    CHECK(n == 5 && !memcmp(got, want, sizeof want), "%d tokens: %d %d %d %d", n, got[1], got[2],
          got[3], got[4]);
    CHECK(llama_piece(&w, 3, 4, piece) == 3 && !memcmp(piece, " ab", 3), "a space is one");
    llama_words_close(&w);
    CHECK(!load_io_words(&load, &w, 8) && strstr(why, "8 texts asked, 7 found"), "%s", why);
    llama_words_close(&w);
    meta[1] = (jot_Meta){.key = "tokenizer.ggml.merges", .kind = JOT_META_INT, .list = true,
                         .count = 2, .ints = two}; /* no texts: as if there were none */
    meta[2] = (jot_Meta){.key = "tokenizer.ggml.scores", .kind = JOT_META_FLOAT, .list = true,
                         .count = 7, .floats = scores};
    how.metas = 2;
    CHECK(jot_file_write(c, path, &one, 1, &how) && !load_io_words(&load, &w, 7)
              && strstr(why, "a score for each token, or merges, asked"), "%s", why);
    llama_words_close(&w);
    how.metas = 3;
    CHECK(jot_file_write(c, path, &one, 1, &how) && load_io_words(&load, &w, 7) && w.space
              && w.token[4].score > 4, "%s", why);
    llama_words_close(&w);
    jot_close(c);
    close(file);
    remove(path);
}

/* ---- draws, learning ---- */

static void
test_draws(void)
{
    float logits[4] = {1, 3, 2, -5}, x[4];
    int count[4] = {0};
    LlamaDraw same[2] = {{.temperature = 1, .top_p = 1, .seed = 5},
                         {.temperature = 1, .top_p = 1, .seed = 5}};

    for (int i = 0; i < 4000; i++) {
        memcpy(x, logits, sizeof x);
        int32_t a = llama_draw(&same[0], x, 4);
        memcpy(x, logits, sizeof x);
        CHECK(a == llama_draw(&same[1], x, 4), "a seed draws the same");
        count[a]++;
    }
    for (int k = 0; k < 4; k++) {
        double p = exp((double)logits[k]) / (exp(1) + exp(3) + exp(2) + exp(-5));
        CHECK(fabs(count[k] / 4000.0 - p) < 0.03, "%d: %d of 4000, %g asked", k, count[k], p);
    }
    for (int i = 0; i < 200; i++) {
        LlamaDraw two = {.temperature = 2, .top_p = 1, .top_k = 2, .seed = (uint64_t)i};
        LlamaDraw most = {.temperature = 2, .top_p = 0.3, .seed = (uint64_t)i};
        memcpy(x, logits, sizeof x);
        int32_t a = llama_draw(&two, x, 4);
        memcpy(x, logits, sizeof x);
        CHECK((a == 1 || a == 2) && llama_draw(&most, x, 4) == 1, "%d of the two likeliest", a);
    }
}

static void
test_learning(void)
{
    jot_Ctx *c = jot_open(&(jot_Config){.backend = "interp"});
    LlamaSizes of = small;
    Llama m;
    jot_Var p[32], g[32];
    int32_t tokens[2][9];
    double first = 0, last = 0;

    of.dim = 16, of.hidden = 16, of.head_dim = 4, of.vocab = 8;
    CHECK(llama_drawn(&m, c, &of, JOT_F32, LLAMA_PLAIN), "%s", jot_message(c));
    int n = llama_parameters(&m, p, 32);
    jot_Optim adam = jot_adam(jot_vars(n, p), 0.02, 0.9, 0.99, 1e-8);
    for (int k = 0; k < 18; k++)
        tokens[k / 9][k % 9] = (k / 9 + k % 9 * 3) % 8;
    for (int step = 0; step < 30; step++) {
        jot_push(c);
        jot_Var loss = llama_loss(&m, jot_array(c, JOT_I32, JOT_SHAPE(2, 9), tokens), 8);
        jot_grad(loss, jot_vars(n, p), g);
        jot_step(adam, jot_vars(n, g));
        last = jot_item(loss);
        first = step ? first : last;
        jot_pop(c);
    }
    CHECK(n == 20 && fabs(first - log(8)) < 0.1 && last < first / 4, "%d parameters, %g to %g; %s",
          n, first, last, jot_message(c));
    CHECK(llama_parameters(&m, p, 10) == 0, "no room");
    jot_close(c);
}

int
main(int argc, char **argv)
{
    static const char *const backends[] = {"interp", "tcc", "cc", "opencl", "cuda"};
    static const int kinds[] = {7, 2, 4, 1, 1};

    for (int i = 0; i < 5; i++)
        if (argc < 2 || !strcmp(argv[1], backends[i])) {
            test_logits(backends[i], kinds[i], i == 2 ? TOKENS : 12);
            test_rounded(backends[i]);
        }
    test_files();
    test_merges();
    test_draws();
    if (argc < 2) {
        test_text();
        test_learning();
    }
    return DONE();
}
