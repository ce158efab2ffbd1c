/* bench/work_llm.c - language models of Llama's kind: products by weights of few bits, llm_q8_0_1 of
 * one row, and models of 15 and 110 million weights, one token at place 100 of a conversation or 128
 * tokens of a prompt. Weights are zeros: what they are does not matter to time. What meets weights
 * of few bits is rounded to 8, as ggml does, what meets bf16 to that, as PyTorch does; caches are of
 * halves then, as theirs are. */
#include <string.h>
#include "bench/work.h"
#include "examples/llama/llama.h"

enum { BLOCK = 32, PLACE = 100 };

static LlamaWeight
weight(jot_Ctx *c, int64_t out, int64_t in, jot_DType dtype, LlamaForm form)
{
    LlamaWeight w = {.form = form};
    int64_t each = form == LLAMA_Q4_0 ? in / 2 : in;

    w.data = jot_param(c, form == LLAMA_PLAIN ? dtype : form == LLAMA_Q8_0 ? JOT_I8 : JOT_U8,
                       JOT_SHAPE(out, each), NULL);
    if (form != LLAMA_PLAIN)
        w.scale = jot_param(c, JOT_F16, JOT_SHAPE(out, in / BLOCK), NULL);
    return w;
}

/* a: rows, in, out, form, dtype */
static int
product(Bench *b, jot_Var *out)
{
    static const Work *of;
    static jot_Ctx *c;
    static LlamaWeight w;
    const int64_t *a = b->work->a;
    jot_Var x = work_normal(b, 0, JOT_SHAPE(1, a[0], a[1]));

    if (of != b->work || c != b->c)
        w = weight(b->c, a[2], a[1], (jot_DType)a[4], (LlamaForm)a[3]);
    of = b->work, c = b->c;
    out[0] = llama_times(x, w, true);
    return 1;
}

static void
model_open(Llama *m, Bench *b)
{
    static const LlamaSizes sizes[2] = {
        {.dim = 288, .hidden = 768, .layers = 6, .heads = 6, .kv_heads = 6, .head_dim = 48,
         .vocab = 32000, .length = 256, .eps = 1e-5, .base = 10000, .neighbours = true},
        {.dim = 768, .hidden = 2048, .layers = 12, .heads = 12, .kv_heads = 12, .head_dim = 64,
         .vocab = 32000, .length = 1024, .eps = 1e-5, .base = 10000, .neighbours = true}};
    const int64_t *a = b->work->a;
    jot_DType t = (jot_DType)a[4];
    LlamaForm f = (LlamaForm)a[3];

    *m = (Llama){.c = b->c, .of = sizes[a[0]], .rounded = true};
    int64_t d = m->of.dim, h = m->of.hidden;
    m->table = m->out = weight(b->c, m->of.vocab, d, t, f);
    m->norm = jot_param(b->c, JOT_F32, JOT_SHAPE(d), NULL);
    for (int64_t i = 0; i < m->of.layers; i++)
        m->layer[i] = (LlamaLayer){
            .wq = weight(b->c, d, d, t, f), .wk = weight(b->c, d, d, t, f),
            .wv = weight(b->c, d, d, t, f), .wo = weight(b->c, d, d, t, f),
            .w1 = weight(b->c, h, d, t, f), .w2 = weight(b->c, d, h, t, f),
            .w3 = weight(b->c, h, d, t, f), .norm = m->norm, .ff_norm = m->norm};
    llama_room(m, 1, m->of.length, llama_room_dtype(m));
}

static jot_Var
input(Bench *b, int k, jot_DType dtype, jot_Ints shape, const void *data)
{
    if (!b->made[k])
        b->in[k] = jot_param(b->c, dtype, shape, data);
    b->made[k] = true;
    return b->in[k];
}

/* a: which model, tokens, -, form, dtype */
static int
talk(Bench *b, jot_Var *out)
{
    static const int64_t place[1] = {PLACE};
    static const Work *of;
    static jot_Ctx *c;
    static Llama m;
    int64_t t = b->work->a[1];

    if (of != b->work || c != b->c)
        model_open(&m, b);
    of = b->work, c = b->c;
    LlamaAt at = {.tokens = input(b, 0, JOT_I32, JOT_SHAPE(1, t), NULL),
                  .start = input(b, 1, JOT_I64, JOT_SHAPE(1), t == 1 ? place : NULL),
                  .place = input(b, 2, JOT_I64, JOT_SHAPE(1), t == 1 ? place : NULL)};
    out[0] = llama_graph(&m, &at, true);
    return 1;
}

#define PRODUCT(name, form, dtype, bits) \
    {"llm_" name "_1_compiled", product, {1, 4096, 4096, form, dtype}, 0, \
     4096.0 * 4096 / 8 * (bits), 4 * 4096.0, NULL}, \
    {"llm_" name "_32_compiled", product, {32, 4096, 4096, form, dtype}, \
     2.0 * 32 * 4096 * 4096, 0, 0, NULL}
#define TALK(name, which, weights, form, dtype, bits) \
    {"llm_" name "_token_compiled", talk, {which, 1, 0, form, dtype}, 0, (weights) / 8 * (bits), 0, \
     NULL}, \
    {"llm_" name "_prompt128_compiled", talk, {which, 128, 0, form, dtype}, \
     2 * 128 * ((weights) - 32000.0 * ((which) ? 768 : 288)), 0, 0, NULL}

const Work work_llm[] = {
    PRODUCT("f16", LLAMA_PLAIN, JOT_F16, 16),
    PRODUCT("bf16", LLAMA_PLAIN, JOT_BF16, 16),
    PRODUCT("q8_0", LLAMA_Q8_0, JOT_F32, 8.5),
    PRODUCT("q4_0", LLAMA_Q4_0, JOT_F32, 4.5),
    TALK("15m", 0, 15.2e6, LLAMA_PLAIN, JOT_F32, 32),
    TALK("15m_q8_0", 0, 15.2e6, LLAMA_Q8_0, JOT_F32, 8.5),
    TALK("110m", 1, 109.5e6, LLAMA_PLAIN, JOT_F32, 32),
    TALK("110m_bf16", 1, 109.5e6, LLAMA_PLAIN, JOT_BF16, 16),
    TALK("110m_q8_0", 1, 109.5e6, LLAMA_Q8_0, JOT_F32, 8.5),
    TALK("110m_q4_0", 1, 109.5e6, LLAMA_Q4_0, JOT_F32, 4.5),
    {0}
};
