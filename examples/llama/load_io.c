/* load_io.c - models out of GGUF and safetensors, by io.h: sizes from what the file says beside its
 * tensors (of safetensors from the config.json in its folder), weights as they are.
 *
 *     blk.3.attn_q.weight                       Q8_0 (out, in / 32 blocks of 34 bytes)
 *     model.layers.3.self_attn.q_proj.weight    BF16 (out, in)
 *
 * Blocks are taken apart once, into numbers and scales (LlamaWeight): scales between numbers would
 * put each vector of these on an address of its own. Elements stay where they lie, in the file.
 * Blocks of other kinds become f32.
 *
 * Read before: io.h, llama.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "io.h"
#include "load.h"

enum { BLOCK = 32, Q8_NBYTES = 34, Q4_NBYTES = 18, NAME = 96 };

typedef struct { Load *load; jot_File *f; Llama *m; bool gguf; } LoadIo;

/* ---- weights ---- */

static jot_Var
io_find(LoadIo *l, const char *gguf, const char *other, int64_t layer, int64_t *at)
{
    char name[NAME];
    int n = layer < 0 ? 0 : snprintf(name, sizeof name, l->gguf ? "blk.%d." : "model.layers.%d.",
                                     (int)layer);

    snprintf(name + n, sizeof name - (size_t)n, "%s.weight", l->gguf ? gguf : other);
    *at = jot_file_find(l->f, name);
    if (*at < 0)
        load_no(l->load, "tensor %s is not there", name);
    return jot_none();
}

/* Blocks taken apart. */
static bool
io_blocks(LoadIo *l, const jot_Stored *t, LlamaForm form, LlamaWeight *w)
{
    int64_t out = t->shape[0], blocks = t->shape[1] / BLOCK, n = out * blocks;
    size_t each = form == LLAMA_Q8_0 ? BLOCK : BLOCK / 2;
    const uint8_t *from = t->data;
    uint8_t *data = malloc((size_t)n * each + 1), *scale = malloc((size_t)n * 2 + 1);

    if (!data || !scale || !from) {
        free(data);
        free(scale);
        return load_no(l->load, "%s: no memory for %lld blocks", t->name, (long long)n);
    }
    for (int64_t i = 0; i < n; i++, from += each + 2) {
        memcpy(scale + 2 * i, from, 2);
        memcpy(data + (size_t)i * each, from + 2, each);
    }
    w->form = form;
    w->data = jot_param(l->m->c, form == LLAMA_Q8_0 ? JOT_I8 : JOT_U8,
                        JOT_SHAPE(out, blocks * (int64_t)each), data);
    w->scale = jot_param(l->m->c, JOT_F16, JOT_SHAPE(out, blocks), scale);
    free(data);
    free(scale);
    return true;
}

static bool
io_matrix(LoadIo *l, const char *gguf, const char *other, int64_t layer, int64_t out, int64_t in,
          LlamaWeight *w)
{
    const jot_Stored *t;
    int64_t at;

    io_find(l, gguf, other, layer, &at);
    if (at < 0)
        return false;
    t = &l->f->tensor[at];
    if (t->rank != 2 || t->shape[0] != out || t->shape[1] != in)
        return load_no(l->load, "%s: (%lld, %lld) asked, rank %d (%lld, %lld) found", t->name,
                       (long long)out, (long long)in, t->rank, (long long)t->shape[0],
                       (long long)(t->rank > 1 ? t->shape[1] : 0));
    *w = (LlamaWeight){LLAMA_PLAIN, {0}, {0}};
    if (t->data && !strcmp(t->type, "Q8_0") && t->block_nbytes == Q8_NBYTES)
        return io_blocks(l, t, LLAMA_Q8_0, w);
    if (t->data && !strcmp(t->type, "Q4_0") && t->block_nbytes == Q4_NBYTES)
        return io_blocks(l, t, LLAMA_Q4_0, w);
    w->data = jot_file_var(l->m->c, l->f, at);
    return jot_ok(w->data) || load_no(l->load, "%s", jot_message(l->m->c));
}

static bool
io_norm(LoadIo *l, const char *gguf, const char *other, int64_t layer, jot_Var *norm)
{
    int64_t at;
    jot_Ctx *c = l->m->c;

    io_find(l, gguf, other, layer, &at);
    if (at < 0)
        return false;
    if (l->f->tensor[at].rank != 1 || l->f->tensor[at].shape[0] != l->m->of.dim)
        return load_no(l->load, "%s: (%lld) asked, rank %d (%lld) found", l->f->tensor[at].name,
                       (long long)l->m->of.dim, l->f->tensor[at].rank,
                       (long long)l->f->tensor[at].shape[0]);
    *norm = jot_param_of(jot_cast(jot_file_var(c, l->f, at), JOT_F32));
    return jot_run(c, JOT_VARS(*norm)) || load_no(l->load, "%s", jot_message(c));
}

static bool
io_weights(LoadIo *l)
{
    Llama *m = l->m;
    int64_t d = m->of.dim, q = m->of.heads * m->of.head_dim, kv = m->of.kv_heads * m->of.head_dim;
    int64_t h = m->of.hidden;
    const char *out = l->gguf ? "output.weight" : "lm_head.weight";

    for (int64_t i = 0; i < m->of.layers; i++) {
        LlamaLayer *y = &m->layer[i];
        if (!io_norm(l, "attn_norm", "input_layernorm", i, &y->norm)
            || !io_matrix(l, "attn_q", "self_attn.q_proj", i, q, d, &y->wq)
            || !io_matrix(l, "attn_k", "self_attn.k_proj", i, kv, d, &y->wk)
            || !io_matrix(l, "attn_v", "self_attn.v_proj", i, kv, d, &y->wv)
            || !io_matrix(l, "attn_output", "self_attn.o_proj", i, d, q, &y->wo)
            || !io_norm(l, "ffn_norm", "post_attention_layernorm", i, &y->ff_norm)
            || !io_matrix(l, "ffn_gate", "mlp.gate_proj", i, h, d, &y->w1)
            || !io_matrix(l, "ffn_down", "mlp.down_proj", i, d, h, &y->w2)
            || !io_matrix(l, "ffn_up", "mlp.up_proj", i, h, d, &y->w3))
            return false;
    }
    if (!io_norm(l, "output_norm", "model.norm", -1, &m->norm)
        || !io_matrix(l, "token_embd", "model.embed_tokens", -1, m->of.vocab, d, &m->table))
        return false;
    m->out = m->table;
    return jot_file_find(l->f, out) < 0
           || io_matrix(l, "output", "lm_head", -1, m->of.vocab, d, &m->out);
}

/* ---- sizes ---- */

/* A number of config.json, found by its key; `otherwise` where there is none. */
static double
config_number(const char *text, const char *key, double otherwise)
{
    char word[64];
    const char *p;

    snprintf(word, sizeof word, "\"%s\"", key);
    p = strstr(text, word);
    if (!p)
        return otherwise;
    p += strlen(word);
    p += strspn(p, " \t\r\n:");
    return (*p >= '0' && *p <= '9') || *p == '-' ? strtod(p, NULL) : otherwise;
}

/* The same of whole numbers; one beyond all sizes is the largest. */
static int64_t
config_int(const char *text, const char *key, int64_t otherwise)
{
    double v = config_number(text, key, (double)otherwise);

    return v > -1e15 && v < 1e15 ? (int64_t)v : INT64_MAX;
}

static bool
sizes_config(LoadIo *l, const char *path)
{
    LlamaSizes *of = &l->m->of;
    const char *end = strrchr(path, '/');
    char beside[400], whole[sizeof beside + 16], *text;

    snprintf(beside, sizeof beside, "%.*s", end ? (int)(end - path + 1) : 0, path);
    snprintf(whole, sizeof whole, "%sconfig.json", beside);
    Load config = {.path = whole, .why = l->load->why, .room = l->load->room};
    if (!load_open(&config))
        return false;
    text = config.p;
    text[config.n] = 0;
    if (strstr(text, "\"rope_scaling\"") && !strstr(text, "\"rope_scaling\": null"))
        return free(text), load_no(&config, "rope_scaling is not known here");
    *of = (LlamaSizes){
        .dim = config_int(text, "hidden_size", 0),
        .hidden = config_int(text, "intermediate_size", 0),
        .layers = config_int(text, "num_hidden_layers", 0),
        .heads = config_int(text, "num_attention_heads", 0),
        .vocab = config_int(text, "vocab_size", 0),
        .length = config_int(text, "max_position_embeddings", 2048),
        .eps = config_number(text, "rms_norm_eps", 1e-6),
        .base = config_number(text, "rope_theta", 10000)};
    of->kv_heads = config_int(text, "num_key_value_heads", of->heads);
    of->head_dim = config_int(text, "head_dim", 0);
    free(text);
    return true;
}

static int64_t
gguf_int(const jot_File *f, const char *key, int64_t otherwise)
{
    char name[NAME];

    snprintf(name, sizeof name, "llama.%s", key);
    return jot_meta_int(f, name, otherwise);
}

static bool
sizes_gguf(LoadIo *l)
{
    LlamaSizes *of = &l->m->of;
    jot_Text arch = jot_meta_text(l->f, "general.architecture");
    int64_t table = jot_file_find(l->f, "token_embd.weight");

    if (arch.n != 5 || memcmp(arch.p, "llama", 5))
        return load_no(l->load, "general.architecture: llama asked, %.*s found", (int)arch.n,
                       arch.p ? arch.p : "");
    if (jot_file_find(l->f, "rope_freqs.weight") >= 0)
        return load_no(l->load, "rope_freqs.weight: scaled rotations are not known here");
    *of = (LlamaSizes){
        .dim = gguf_int(l->f, "embedding_length", 0), .layers = gguf_int(l->f, "block_count", 0),
        .hidden = gguf_int(l->f, "feed_forward_length", 0),
        .heads = gguf_int(l->f, "attention.head_count", 0),
        .vocab = table < 0 ? 0 : l->f->tensor[table].shape[0],
        .length = gguf_int(l->f, "context_length", 2048),
        .eps = jot_meta_float(l->f, "llama.attention.layer_norm_rms_epsilon", 1e-5),
        .base = jot_meta_float(l->f, "llama.rope.freq_base", 10000), .neighbours = true};
    of->kv_heads = gguf_int(l->f, "attention.head_count_kv", of->heads);
    of->head_dim = gguf_int(l->f, "attention.key_length", 0);
    return true;
}

static bool
sizes_fit(LoadIo *l)
{
    LlamaSizes *of = &l->m->of;
    const int64_t all[] = {of->dim, of->hidden, of->layers, of->heads, of->kv_heads, of->vocab,
                           of->length};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] < 1 || all[i] > 1 << 24)
            return load_no(l->load, "width, hidden width, layers, heads, those of keys, "
                           "vocabulary, length: 1 to 2^24 asked, %lld found (number %d)",
                           (long long)all[i], (int)i + 1);
    of->head_dim = of->head_dim > 0 ? of->head_dim : of->dim / of->heads;
    if (of->head_dim > 1 << 24 || of->head_dim % 2 || of->heads % of->kv_heads
        || of->layers > LLAMA_LAYERS)
        return load_no(l->load, "heads of even width, a number of keys' that divides theirs and at "
                       "most %d layers asked; width %lld, %lld heads, %lld of keys, %lld layers "
                       "found", LLAMA_LAYERS, (long long)of->head_dim, (long long)of->heads,
                       (long long)of->kv_heads, (long long)of->layers);
    return true;
}

bool
load_io(Load *load, Llama *m)
{
    LoadIo l = {.load = load, .m = m, .f = jot_file_open(load->path)};
    bool ok = l.f && l.f->status == JOT_OK;

    if (!ok)
        load_no(load, "%s", l.f ? l.f->message : "no memory");
    l.gguf = ok && !strcmp(l.f->format, "gguf");
    ok = ok && (l.gguf ? sizes_gguf(&l) : sizes_config(&l, load->path)) && sizes_fit(&l)
         && io_weights(&l);
    jot_file_close(l.f);
    return ok;
}

/* ---- words ---- */

/* GPT-2's texts: a byte that is no printable character of Latin-1 stands at 256 and on. */
static size_t
byte_text(const char *from, size_t n, char *to)
{
    size_t out = 0;

    for (size_t i = 0; i < n; i++) {
        unsigned ch = (unsigned char)from[i];
        if (ch >= 0xc0 && ch < 0xe0 && i + 1 < n)
            ch = (ch & 31) << 6 | ((unsigned char)from[++i] & 63);
        if (ch >= 256 && ch < 256 + 33)
            ch -= 256;
        else if (ch >= 256 + 33 && ch < 256 + 67)
            ch = ch - 256 - 33 + 127;
        else if (ch == 256 + 67)
            ch = 173;
        to[out++] = (char)ch;
    }
    return out;
}

/* "▁" is a space. */
static size_t
space_text(const char *from, size_t n, char *to)
{
    size_t out = 0;

    for (size_t i = 0; i < n; i++) {
        bool space = i + 2 < n && !memcmp(from + i, "\xe2\x96\x81", 3);
        to[out++] = space ? ' ' : from[i];
        i += space ? 2 : 0;
    }
    return out;
}

/* Ranks of merges as scores: the earlier, the better. */
static void
words_merges(LlamaWords *w, const jot_Meta *merges)
{
    char both[2 * LLAMA_PIECE];

    for (int32_t k = 0; k < w->n; k++)
        w->token[k].score = 10 * LLAMA_NEVER;
    for (int64_t i = 0; i < merges->count; i++) {
        jot_Text t = merges->texts[i];
        const char *gap = t.n > 2 ? memchr(t.p + 1, ' ', t.n - 2) : NULL;
        size_t n = gap ? (size_t)(gap - t.p) : 0;
        int32_t k;
        if (!gap || t.n >= sizeof both)
            continue;
        n = byte_text(t.p, n, both);
        n += byte_text(gap + 1, t.n - (size_t)(gap + 1 - t.p), both + n);
        k = llama_words_find(w, both, n);
        if (k >= 0 && w->token[k].score < (float)-i)
            w->token[k].score = (float)-i;
    }
}

static bool
words_texts(LlamaWords *w, const jot_Meta *texts, const jot_Meta *scores)
{
    size_t room = 1;
    char *to;

    for (int64_t i = 0; i < texts->count; i++)
        room += texts->texts[i].n;
    w->n = (int32_t)texts->count;
    w->token = calloc((size_t)w->n, sizeof *w->token);
    to = w->bytes = malloc(room);
    for (int32_t i = 0; w->token && to && i < w->n; i++) {
        jot_Text t = texts->texts[i];
        size_t n = w->space ? space_text(t.p, t.n, to) : byte_text(t.p, t.n, to);
        w->token[i] = (LlamaToken){to, (int32_t)n, scores ? (float)scores->floats[i] : 0};
        to += n;
    }
    return w->token && w->bytes && llama_words_sort(w);
}

bool
load_io_words(Load *load, LlamaWords *w, int64_t vocab)
{
    jot_File *f = jot_file_open(load->path);
    bool ok = f && f->status == JOT_OK;
    const jot_Meta *texts = ok ? jot_meta(f, "tokenizer.ggml.tokens") : NULL;
    const jot_Meta *scores = ok ? jot_meta(f, "tokenizer.ggml.scores") : NULL;
    const jot_Meta *merges = ok ? jot_meta(f, "tokenizer.ggml.merges") : NULL;

    scores = scores && scores->kind == JOT_META_FLOAT && scores->count == vocab ? scores : NULL;
    merges = merges && merges->kind == JOT_META_TEXT && merges->list ? merges : NULL;
    *w = (LlamaWords){0};
    if (!ok)
        load_no(load, "%s", f ? f->message : "no memory");
    else if (!texts || texts->kind != JOT_META_TEXT || !texts->list || texts->count != vocab)
        ok = load_no(load, "tokenizer.ggml.tokens: %lld texts asked, %lld found", (long long)vocab,
                     (long long)(texts ? texts->count : 0));
    else if (!scores && !merges)
        ok = load_no(load, "tokenizer.ggml: a score for each token, or merges, asked; none "
                     "found");
    else {
        w->space = !merges;
        w->bos = (int32_t)jot_meta_int(f, "tokenizer.ggml.bos_token_id", w->space ? 1 : -1);
        w->eos = (int32_t)jot_meta_int(f, "tokenizer.ggml.eos_token_id", w->space ? 2 : -1);
        ok = words_texts(w, texts, merges ? NULL : scores)
             || load_no(load, "no memory for %lld tokens", (long long)vocab);
        if (ok && !w->space)
            words_merges(w, merges);
    }
    jot_file_close(f);
    return ok;
}
