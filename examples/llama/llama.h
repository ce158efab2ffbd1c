/* llama.h - a language model of Llama's kind: its sizes and weights, its graph, its words.
 *
 *     file --llama_open--> sizes, weights, words
 *     words --llama_encode--> tokens --llama_graph--> logits --llama_draw--> a token --> text
 *
 * One graph serves all: training (no cache; a chunk of text that sees itself), the prompt (some
 * tokens a call), generation (one). Keys and values of what was seen lie in two caches a layer,
 * which a call changes in place; where its tokens go, and how much of a cache is filled, are
 * inputs, so that one compiled function serves all steps.
 *
 * Read after: core.h, nn.h. Then: model.c (the graph), load.c, words.c, 14_llama.c. */
#ifndef LLAMA_H
#define LLAMA_H
#include "core.h"
#include "nn.h"

enum { LLAMA_LAYERS = 128, LLAMA_WEIGHTS = 9, LLAMA_PIECE = 256 };

typedef struct {
    int64_t dim, hidden, layers, heads, kv_heads, head_dim, vocab, length;
    double eps, base;       /* of the norms; of the rotation */
    bool neighbours;        /* pairs that are turned are neighbours, else of two halves */
} LlamaSizes;

/* A matrix (out, in) as its file has it: f32, f16 or bf16; or in blocks of 32 numbers along `in`,
 * each of `data` times one `scale`, (out, in / 32) of f16. Q8_0: data (out, in) of i8. Q4_0: (out,
 * in / 2) of u8, of each block the first 16 numbers in the low halves of 16 bytes and the others in
 * the high ones, all 8 less than that. */
typedef enum { LLAMA_PLAIN, LLAMA_Q8_0, LLAMA_Q4_0 } LlamaForm;
typedef struct { LlamaForm form; jot_Var data, scale; } LlamaWeight;

typedef struct {
    LlamaWeight wq, wk, wv, wo, w1, w2, w3;
    jot_Var norm, ff_norm;  /* (dim) */
    jot_Var keys, values;   /* caches: (rows, kv_heads, head_dim, length), (.., length, head_dim) */
} LlamaLayer;

typedef struct {
    jot_Ctx *c;
    LlamaSizes of;
    LlamaWeight table, out; /* (vocab, dim) both; out may be the table itself */
    jot_Var norm;
    LlamaLayer layer[LLAMA_LAYERS];
    int64_t rows, room;     /* conversations; tokens that a cache has room for */
    bool rounded;           /* what meets weights of bf16 or in blocks is rounded (llama_times) */
} Llama;

/* Weights drawn as for training, f32, or of a dtype, or quantised; 0: the context says why. */
bool llama_drawn(Llama *m, jot_Ctx *c, const LlamaSizes *of, jot_DType dtype, LlamaForm form);
/* Empty caches for so many conversations of so many tokens each. What they are of by itself: where
 * what meets the weights is rounded, halves, bf16 beside weights of bf16, else f16. */
jot_DType llama_room_dtype(const Llama *m);
bool llama_room(Llama *m, int64_t rows, int64_t room, jot_DType dtype);
/* All that an optimiser changes, into list, which has room for `most`: how many there are. */
int llama_parameters(const Llama *m, jot_Var *list, int most);

/* x (rows, t, in) times w: (rows, t, out). Weights are unpacked as they are read. rounded: x becomes
 * what machines multiply such weights by, and a result is off by that, and by floats' rounding.
 * Where w is bf16, x is rounded to it; a result is off by at most
 *     the sum of |x| |w| / 512; numbers within 1e-36 may count as 0.
 * Where w lies in blocks, x is rounded to 8 bits a number, 127 the largest of each 32, so that all
 * products are of bytes; a result is off by at most the sum over blocks of
 *     |scale of w| (largest of x) / 254 * (sum of the block's |data of w|); blocks within 1e-36
 * count as 0. */
jot_Var llama_times(jot_Var x, LlamaWeight w, bool rounded);

/* What changes from call to call of one compiled function. */
typedef struct {
    jot_Var tokens; /* (rows, t) i32 */
    jot_Var start;  /* (rows) i64: which token of its conversation the first of the t is */
    jot_Var place;  /* (rows) i64: where in the cache they go: start, or start % room */
} LlamaAt;
/* (rows, t, vocab) f32; with `last` (rows, vocab): of the last token. at->start empty: no cache. */
jot_Var llama_graph(Llama *m, const LlamaAt *at, bool last);
/* The mean of how unlikely the next tokens are: tokens (rows, t + 1). */
jot_Var llama_loss(Llama *m, jot_Var tokens, int64_t t);

/* ---- words ---- */

#define LLAMA_NEVER -1e29f /* scores no higher than this are of what is no pair */
typedef struct { const char *text; int32_t nbytes; float score; } LlamaToken;
typedef struct {
    LlamaToken *token;
    int32_t n, bos, eos;
    int32_t *sorted;        /* by text, for looking up */
    char *bytes;            /* the texts */
    bool space;             /* a space is put before a text, and pieces are joined by score */
} LlamaWords;
/* The tokens of a text, the first one BOS: how many; -1: more than `most`, or no memory. */
int llama_encode(const LlamaWords *w, const char *text, int32_t *tokens, int most);
/* What the token says behind `before`, its bytes in piece; their number. */
int llama_piece(const LlamaWords *w, int32_t before, int32_t token, char piece[LLAMA_PIECE]);
bool llama_words_bytes(LlamaWords *w); /* a token for each byte */
bool llama_words_sort(LlamaWords *w); /* once all tokens are there */
void llama_words_close(LlamaWords *w);

/* temperature 0: the likeliest. top_k 0, top_p 1: of all. */
typedef struct { double temperature, top_p; int top_k; uint64_t seed; } LlamaDraw;
int32_t llama_draw(LlamaDraw *d, float *logits, int n); /* logits are changed */

/* ---- files ---- */

/* GGUF, with its words; safetensors, with config.json beside it; llama2.c's .bin. words: llama2.c's
 * file of words, or a GGUF's; NULL: the model's own. false: what is wrong. */
bool llama_open(Llama *m, LlamaWords *w, jot_Ctx *c, const char *path, const char *words,
                char *why, size_t why_nbytes);

#endif
