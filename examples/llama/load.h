/* load.h - what the loaders share: a file in memory, and why it was refused. */
#ifndef LLAMA_LOAD_H
#define LLAMA_LOAD_H
#include "llama.h"

typedef struct { char *p; size_t n, at; const char *path; char *why; size_t room; } Load;

/* "path: ..." into why; returns false. */
bool load_no(Load *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* All of the file in memory of the caller's, f->p, with room for a byte more. */
bool load_open(Load *f);
/* load_io.c: weights of GGUF or safetensors; the words that a GGUF has. */
bool load_io(Load *load, Llama *m);
bool load_io_words(Load *load, LlamaWords *w, int64_t vocab);
int32_t llama_words_find(const LlamaWords *w, const char *text, size_t n); /* -1: none */

#endif
