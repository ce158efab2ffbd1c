/* 14_llama.c - a language model of Llama's kind speaks, or learns to.
 *
 *     14_llama                                     the model of ../shared/models/tinystories
 *     14_llama --model FILE [--words FILE]         another one
 *     14_llama --prompt TEXT --prompt TEXT         conversations, side by side
 *     14_llama --train TEXTFILE                    a small one learns a text, letter by letter
 *     14_llama --quick                             ... two steps of a rhyme: for tests
 *
 * A step for one token a conversation is compiled once; so is one for a piece of the prompts. Both
 * change the caches in place. Text comes as it is made; then how fast it came.
 *
 * Read main, speak, then llama/model.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "llama/llama.h"

enum { ROWS = 16, TRAIN_ROWS = 16, TRAIN_LENGTH = 64 };

typedef struct {
    const char *model, *words, *train, *prompt[ROWS];
    int rows, tokens, room, piece, window, exact, steps, layers, quick;
    LlamaDraw draw;
} Options;

static double
seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- speaking ---- */

typedef struct {
    Llama *m;
    const LlamaWords *w;
    jot_Func step, piece;       /* of one token a row; of `wide` tokens a row, without logits */
    int wide, rows;
    int32_t *tokens[ROWS];      /* of the prompts, then of what is said */
    int given[ROWS], n[ROWS];
    float *logits;
    LlamaDraw draw[ROWS];
} Talk;

static jot_Func
talk_compile(Talk *s, int64_t t, bool logits)
{
    jot_Ctx *c = s->m->c;
    jot_Func f;

    jot_push(c);
    LlamaAt at = {.tokens = jot_array(c, JOT_I32, JOT_SHAPE(s->rows, t), NULL),
                  .start = jot_array(c, JOT_I64, JOT_SHAPE(s->rows), NULL),
                  .place = jot_array(c, JOT_I64, JOT_SHAPE(s->rows), NULL)};
    jot_Var y = llama_graph(s->m, &at, true);
    f = jot_compile(c, JOT_VARS(at.tokens, at.start, at.place),
                    logits ? JOT_VARS(y) : JOT_NONE_VARS);
    jot_pop(c);
    return f;
}

/* Token number `from` of each row and the wide - 1 behind it, 0 where a row has none: into the
 * caches, and (wide 1) its logits. */
static bool
talk_feed(Talk *s, jot_Func f, const int *from, int wide)
{
    int32_t now[ROWS * 256];
    int64_t start[ROWS], place[ROWS];
    size_t rows = (size_t)s->rows;

    for (int r = 0; r < s->rows; r++) {
        start[r] = from[r];
        place[r] = from[r] % s->m->room;
        for (int i = 0; i < wide; i++)
            now[r * wide + i] = from[r] + i < s->n[r] ? s->tokens[r][from[r] + i] : 0;
    }
    jot_Ins in = JOT_INS(JOT_IN(now, rows * (size_t)wide * sizeof *now),
                         JOT_IN(start, rows * sizeof *start), JOT_IN(place, rows * sizeof *place));
    jot_Out out = JOT_OUT(s->logits, rows * (size_t)s->m->of.vocab * sizeof(float));
    return jot_call(f, in, jot_outs(wide == 1, &out));
}

/* All tokens of the prompts but the last ones. */
static int
talk_prompts(Talk *s)
{
    int from[ROWS] = {0}, longest = 0, fed = 0;

    for (int r = 0; r < s->rows; r++) {
        longest = s->n[r] > longest ? s->n[r] : longest;
        fed += s->n[r] - 1;
    }
    for (int at = 0; at < longest - 1; at += s->wide) {
        for (int r = 0; r < s->rows; r++)
            from[r] = at;
        if (!talk_feed(s, s->piece, from, s->wide))
            return -1;
    }
    return fed;
}

static bool
talk_step(Talk *s, bool *over)
{
    int from[ROWS];
    char piece[LLAMA_PIECE];

    for (int r = 0; r < s->rows; r++)
        from[r] = s->n[r] - 1;
    if (!talk_feed(s, s->step, from, 1))
        return false;
    for (int r = 0; r < s->rows; r++) {
        int32_t before = s->tokens[r][s->n[r] - 1];
        int32_t next = llama_draw(&s->draw[r], s->logits + r * s->m->of.vocab,
                                  (int)s->m->of.vocab);
        s->tokens[r][s->n[r]++] = next;
        over[r] = over[r] || next == s->w->eos || next == s->w->bos;
        if (r == 0 && !over[r]) {
            fwrite(piece, 1, (size_t)llama_piece(s->w, before, next, piece), stdout);
            fflush(stdout);
        }
    }
    return true;
}

static void
talk_print(const Talk *s, int r, int from)
{
    char piece[LLAMA_PIECE];

    for (int i = from; i < s->n[r]; i++) {
        if (i >= s->given[r] && (s->tokens[r][i] == s->w->eos || s->tokens[r][i] == s->w->bos))
            break;
        fwrite(piece, 1, (size_t)llama_piece(s->w, i ? s->tokens[r][i - 1] : -1, s->tokens[r][i],
                                             piece), stdout);
    }
    printf("\n");
}

static bool
talk(Talk *s, const Options *o)
{
    bool over[ROWS] = {false}, all = false;
    double start = seconds(), middle;
    int fed = talk_prompts(s), said = 0;

    if (fed < 0)
        return false;
    middle = seconds();
    for (int i = 0; i < s->n[0]; i++)
        if (i) {
            char piece[LLAMA_PIECE];
            fwrite(piece, 1, (size_t)llama_piece(s->w, s->tokens[0][i - 1], s->tokens[0][i], piece),
                   stdout);
        }
    for (; said < o->tokens && !all; said++) {
        if (!talk_step(s, over))
            return false;
        all = true;
        for (int r = 0; r < s->rows; r++)
            all = all && over[r];
    }
    printf("\n");
    for (int r = 1; r < s->rows; r++)
        talk_print(s, r, 1);
    fprintf(stderr, "prompt %d tokens, %.0f a second; then %d, %.0f a second\n", fed,
            fed / (middle - start), said * s->rows, said * s->rows / (seconds() - middle));
    return true;
}

/* Prompts as tokens, with room for what is said. 0: said why. */
static bool
talk_begin(Talk *s, const Options *o)
{
    for (int r = 0; r < s->rows; r++) {
        const char *text = o->prompt[r] ? o->prompt[r] : "";
        int most = (int)strlen(text) + 2;
        s->tokens[r] = malloc((size_t)(most + o->tokens) * sizeof **s->tokens);
        s->given[r] = s->n[r] = s->tokens[r] ? llama_encode(s->w, text, s->tokens[r], most) : -1;
        s->draw[r] = o->draw;
        s->draw[r].seed += (uint64_t)r << 32;
        if (s->n[r] < 1)
            return fprintf(stderr, "prompt %d: no memory, or no token\n", r + 1), false;
        if (s->n[r] > s->m->room || (!o->window && s->n[r] + o->tokens - 1 > s->m->room))
            return fprintf(stderr, "prompt %d: at most %lld tokens asked (room of the cache), %d "
                           "and %d to be said found%s\n", r + 1, (long long)s->m->room, s->n[r],
                           o->tokens, o->window ? "" : "; --window lets go of the oldest"), false;
    }
    s->logits = malloc((size_t)s->rows * (size_t)s->m->of.vocab * sizeof *s->logits);
    return s->logits != NULL;
}

static bool
speak(Llama *m, const LlamaWords *w, const Options *o)
{
    int rows = o->rows ? o->rows : 1;
    int64_t room = o->room ? o->room : m->of.length, wide = o->piece;
    Talk s = {.m = m, .w = w, .rows = rows};

    while (room % wide)
        wide--;
    s.wide = (int)wide;
    m->rounded = !o->exact;
    bool ok = llama_room(m, rows, room, llama_room_dtype(m)) && talk_begin(&s, o);
    if (ok) {
        s.step = talk_compile(&s, 1, true);
        s.piece = talk_compile(&s, wide, false);
        ok = jot_func_ok(s.step) && jot_func_ok(s.piece) && talk(&s, o);
    }
    for (int r = 0; r < rows; r++)
        free(s.tokens[r]);
    free(s.logits);
    jot_func_free(s.step);
    jot_func_free(s.piece);
    return ok;
}

/* ---- learning ---- */

static char *
text_read(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    long size = -1;
    char *p = NULL;

    if (f && !fseek(f, 0, SEEK_END) && (size = ftell(f)) > 0 && !fseek(f, 0, SEEK_SET)
        && (p = malloc((size_t)size)) != NULL)
        *n = fread(p, 1, (size_t)size, f);
    if (!p || *n < TRAIN_LENGTH + 2) {
        fprintf(stderr, "%s: %d bytes asked, %ld found%s%s\n", path, TRAIN_LENGTH + 2, size,
                f ? "" : ": ", f ? "" : strerror(errno));
        free(p);
        p = NULL;
    }
    if (f)
        fclose(f);
    return p;
}

/* A step is one function: tokens in, the loss out. */
static jot_Func
train_step(Llama *m, jot_Optim *adam)
{
    jot_Var p[2 + LLAMA_WEIGHTS * 8], g[2 + LLAMA_WEIGHTS * 8];
    int n = llama_parameters(m, p, (int)(sizeof p / sizeof *p));

    *adam = jot_adamw(jot_vars(n, p), 2e-3, 0.9, 0.99, 1e-8, 0.01);
    jot_push(m->c);
    jot_Var x = jot_array(m->c, JOT_I32, JOT_SHAPE(TRAIN_ROWS, TRAIN_LENGTH + 1), NULL);
    jot_Var loss = llama_loss(m, x, TRAIN_LENGTH);
    jot_grad(loss, jot_vars(n, p), g);
    jot_clip_grad_norm(jot_vars(n, g), 1, g);
    jot_step(*adam, jot_vars(n, g));
    jot_Func f = jot_compile(m->c, JOT_VARS(x), JOT_VARS(loss));
    jot_pop(m->c);
    return f;
}

static bool
learn(Llama *m, const LlamaWords *w, const char *text, size_t n, const Options *o)
{
    static int32_t batch[TRAIN_ROWS][TRAIN_LENGTH + 1];
    double began = seconds();
    uint64_t state = o->draw.seed;
    float loss = 0;
    jot_Optim adam;
    jot_Func step = train_step(m, &adam);

    for (int k = 0; jot_func_ok(step) && k < o->steps; k++) {
        for (int r = 0; r < TRAIN_ROWS; r++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            const char *from = text + (state >> 33) % (n - TRAIN_LENGTH - 1);
            for (int i = 0; i <= TRAIN_LENGTH; i++)
                batch[r][i] = (unsigned char)from[i] + (w->n - 256);
        }
        jot_set_lr(adam, jot_lr_cosine(2e-3, 2e-4, k, o->steps));
        if (!jot_call(step, JOT_INS(JOT_IN(batch, sizeof batch)),
                      JOT_OUTS(JOT_OUT(&loss, sizeof loss))))
            return false;
        if (k % 50 == 0 || k + 1 == o->steps)
            fprintf(stderr, "step %d of %d: loss %.3f, %.1f s\n", k + 1, o->steps, (double)loss,
                    seconds() - began);
    }
    jot_func_free(step);
    return jot_func_ok(step) || !jot_error(m->c);
}

static bool
train(Llama *m, LlamaWords *w, jot_Ctx *c, const Options *o)
{
    static const char rhyme[] = "One, two, buckle my shoe; three, four, open the door; five, six, "
                                "pick up sticks; seven, eight, lay them straight.\n";
    const LlamaSizes of = {.dim = o->quick ? 32 : 128, .hidden = o->quick ? 64 : 384,
                           .layers = o->layers, .heads = 4, .kv_heads = 2,
                           .head_dim = o->quick ? 8 : 32, .vocab = 259, .length = 256,
                           .eps = 1e-5, .base = 10000};
    size_t n = sizeof rhyme - 1;
    char *own = o->train ? text_read(o->train, &n) : NULL;

    if (o->train && !own)
        return false;
    bool ok = llama_words_bytes(w) && llama_drawn(m, c, &of, JOT_F32, LLAMA_PLAIN)
              && learn(m, w, own ? own : rhyme, n, o);
    free(own);
    return ok;
}

/* ---- the whole ---- */

static bool
usage(const char *program)
{
    fprintf(stderr, "usage: %s [--model FILE] [--words FILE] [--prompt TEXT]... [--tokens N]\n"
            "    [--temperature X] [--top-k N] [--top-p X] [--seed N] [--room N] [--window]\n"
            "    [--exact]   (what meets weights of bf16 or of few bits is not rounded)\n"
            "    [--train TEXTFILE] [--steps N] [--layers 2..6] [--quick]\n", program);
    return false;
}

static bool
options(Options *o, int argc, char **argv)
{
    for (int k = 1; k < argc; k++) {
        const char *name = argv[k], *value = k + 1 < argc ? argv[k + 1] : "";
        if (!strcmp(name, "--window") || !strcmp(name, "--quick") || !strcmp(name, "--exact")) {
            *(name[2] == 'w' ? &o->window : name[2] == 'e' ? &o->exact : &o->quick) = 1;
            continue;
        }
        if (!*value)
            return usage(argv[0]);
        if (!strcmp(name, "--model"))
            o->model = value, o->words = NULL;
        else if (!strcmp(name, "--words"))
            o->words = value;
        else if (!strcmp(name, "--train"))
            o->train = value;
        else if (!strcmp(name, "--prompt") && o->rows < ROWS)
            o->prompt[o->rows++] = value;
        else if (!strcmp(name, "--temperature"))
            o->draw.temperature = atof(value);
        else if (!strcmp(name, "--top-p"))
            o->draw.top_p = atof(value);
        else if (!strcmp(name, "--seed"))
            o->draw.seed = strtoull(value, NULL, 10);
        else {
            int *n = !strcmp(name, "--tokens") ? &o->tokens : !strcmp(name, "--room") ? &o->room
                     : !strcmp(name, "--top-k") ? &o->draw.top_k
                     : !strcmp(name, "--steps") ? &o->steps
                     : !strcmp(name, "--layers") ? &o->layers : NULL;
            if (!n || (*n = atoi(value)) < 1)
                return usage(argv[0]);
        }
        k++;
    }
    if (o->layers < 2 || o->layers > 6)
        return usage(argv[0]);
    if (!o->train && !o->quick && access(o->model, R_OK))
        return fprintf(stderr, "%s: %s; pass --model FILE [--words FILE], a model's (docs/llm.md), "
                       "or --train TEXTFILE: a small one learns a text\n", o->model,
                       strerror(errno)), false;
    return true;
}

int
main(int argc, char **argv)
{
    Options o = {.model = "../shared/models/tinystories/stories260K.bin",
                 .words = "../shared/models/tinystories/tok512.bin", .tokens = 128, .piece = 32,
                 .steps = 500, .layers = 4, .draw = {.top_p = 1}};
    Llama *m = calloc(1, sizeof *m);
    LlamaWords w = {0};
    char why[400] = "";

    if (!m || !options(&o, argc, argv))
        return free(m), 2;
    jot_Ctx *c = jot_open(NULL);
    if (o.quick)
        o.steps = o.layers = 2, o.tokens = 16;
    bool ok = o.quick || o.train ? train(m, &w, c, &o)
                                 : llama_open(m, &w, c, o.model, o.words, why, sizeof why);
    ok = ok && speak(m, &w, &o);
    if (!ok && (*why || jot_error(c)))
        fprintf(stderr, "failed: %s\n", *why ? why : jot_message(c));
    llama_words_close(&w);
    jot_close(c);
    free(m);
    return !ok;
}
