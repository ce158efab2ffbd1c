/* 18_speech.c - where in a sound somebody speaks: a network of another framework, chunk by chunk,
 * with its state handed on from one call to the next.
 *
 *     18_speech [MODEL [WAV]]
 *
 * MODEL: silero's voice-activity network, a file of the Python package silero-vad; one of its
 * inputs is the rate, another the state. WAV: 16 kHz, one channel; without it out/speech.wav, which
 * is made first: silence, tones, noise and, where espeak-ng is, a voice. Leaves the chunk that is
 * speech most surely, and the state before it, in out/ for the command (docs/onnx.md).
 *
 * Read listen, then step. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include "data.h"
#include "io.h"
#include "onnx.h"

enum { RATE = 16000, CHUNK = 512, BEFORE = 64, STATE = 2 * 1 * 128, MOST = 30 * RATE };
#define MADE "out/speech.wav"
#define SPOKEN "out/spoken.wav"

/* ---- the sound ------------------------------------------------------------------------------ */

typedef struct { float v[MOST]; int64_t n; } Sound;
typedef enum { SILENCE, TONES, NOISE } Kind;

static void
add(Sound *s, Kind kind, double seconds)
{
    static const char *const name[] = {"silence", "tones", "noise"};
    static uint32_t state = 1;
    const double turn = 6.283185307179586 / RATE;
    int64_t first = s->n;

    for (; s->n < MOST && s->n < first + (int64_t)(seconds * RATE); s->n++) {
        double t = (double)(s->n - first) * turn;
        state = state * 1664525u + 1013904223u;
        s->v[s->n] = kind == TONES   ? (float)(0.2 * (sin(440 * t) + sin(1000 * t)))
                     : kind == NOISE ? 0.1f * ((float)(state >> 8) / 8388608.0f - 1)
                                     : 0;
    }
    printf("%6.2f to %5.2f s: %s\n", (double)first / RATE, (double)s->n / RATE, name[kind]);
}

/* x at place t of its own rate, without what is above `band` of its highest frequency: a sinc under
 * a window of Hann's. */
static double
sampled(const float *x, int64_t n, double t, double band)
{
    const double pi = 3.141592653589793, half = 16 / band;
    int64_t from = (int64_t)ceil(t - half), to = (int64_t)floor(t + half);
    double sum = 0;

    for (int64_t k = from < 0 ? 0 : from; k <= to && k < n; k++) {
        double d = t - (double)k, a = pi * band * d;
        double sinc = fabs(a) < 1e-9 ? 1 : sin(a) / a;
        sum += x[k] * band * sinc * (0.5 + 0.5 * cos(pi * d / half));
    }
    return sum;
}

/* What espeak-ng says, at our rate. */
static void
add_voice(Sound *s)
{
    static const char say[] = "espeak-ng -v en -s 150 -w " SPOKEN " 'The quick brown fox jumps over"
                              " the lazy dog. Somebody speaks, and is heard.' >" MADE ".log 2>&1";
    int64_t first = s->n;
    jot_Buffer *b;

    remove(SPOKEN);
    b = system(say) == 0 ? jot_read(SPOKEN) : NULL;
    remove(MADE ".log");
    if (!b || b->status || b->rate < 1000) {
        puts("speech is left out: no sound of espeak-ng (apt install espeak-ng)");
        if (b)
            puts(b->message);
        jot_buffer_free(b);
        return;
    }
    double stride = b->rate / RATE, band = stride > 1 ? 1 / stride : 1;
    for (int64_t k = 0; s->n < MOST && (double)k * stride < (double)b->shape[1]; k++)
        s->v[s->n++] = (float)sampled(b->data, b->shape[1], (double)k * stride, band);
    printf("%6.2f to %5.2f s: speech (espeak-ng, %g Hz)\n", (double)first / RATE,
           (double)s->n / RATE, b->rate);
    jot_buffer_free(b);
}

static bool
make_sound(jot_Ctx *c)
{
    static Sound s;

    puts(MADE ":");
    add(&s, SILENCE, 1), add(&s, TONES, 2), add(&s, SILENCE, 0.5), add(&s, NOISE, 2);
    add(&s, SILENCE, 0.5);
    add_voice(&s);
    add(&s, SILENCE, 1);
    return jot_write_wav(jot_array(c, JOT_F32, JOT_SHAPE(1, s.n), s.v), MADE, RATE, 16);
}

/* NULL, and a sentence, if it is not what the network was trained on. */
static jot_Buffer *
sound_of(const char *path)
{
    jot_Buffer *b = jot_read(path);

    if (b && !b->status && b->rate == RATE && b->shape[0] == 1 && b->shape[1] > 0)
        return b;
    if (b && b->status)
        printf("%s\n", b->message);
    else if (b && b->rate == 0)
        printf("%s: a sound asked, something else found\n", path);
    else if (b)
        printf("%s: %d Hz, 1 channel asked, %g Hz, %d channels of %d frames found\n", path, RATE,
               b->rate, (int)b->shape[0], (int)b->shape[1]);
    jot_buffer_free(b);
    return NULL;
}

/* ---- the network ---------------------------------------------------------------------------- */

/* What goes in: the chunk after the end of the one before, and what is handed on. */
typedef struct { float chunk[BEFORE + CHUNK], state[STATE]; } Moment;
typedef struct { Moment at; float p; int64_t chunk; } Best;

/* Which of its inputs is which of ours, below; the rate is one that models of one rate lack. */
typedef struct { jot_Onnx *onnx; int n, is[3]; } Model;

/* A sentence, if it is another model. */
static bool
understood(Model *m, const char *path)
{
    static const struct { const char *name; jot_DType dtype; int rank; } want[] = {
        {"input", JOT_F32, 2}, {"state", JOT_F32, 3}, {"sr", JOT_I64, 0}};
    int outputs = jot_onnx_outputs(m->onnx, NULL, 0), seen = 0, w;
    jot_OnnxValue v[3];

    m->n = jot_onnx_inputs(m->onnx, v, 3);
    if (m->n < 2 || m->n > 3 || outputs != 2) {
        printf("%s: not silero's voice activity: 2 or 3 inputs (input, state, sr) and 2 outputs "
               "asked, %d and %d found\n", path, m->n, outputs);
        return false;
    }
    for (int k = 0; k < m->n; k++) {
        for (w = 0; w < 3 && strcmp(v[k].name, want[w].name); w++)
            ;
        if (w == 3 || v[k].dtype != want[w].dtype ||
            (v[k].rank >= 0 && v[k].rank != want[w].rank)) {
            printf("%s: not silero's voice activity: inputs input f32 (1, %d), state f32 "
                   "(2, 1, 128) and sr i64 () asked, %s %s of rank %d found\n", path,
                   BEFORE + CHUNK, v[k].name,
                   v[k].dtype < JOT_DTYPES ? jot_dtype_name(v[k].dtype) : "?", v[k].rank);
            return false;
        }
        m->is[k] = w, seen |= 1 << w;
    }
    if ((seen & 3) != 3)
        printf("%s: not silero's voice activity: it has no %s\n", path,
               seen & 1 ? "state" : "input");
    return (seen & 3) == 3;
}

/* The probability that the chunk is speech; the state becomes the next one. Below 0 after a
 * failure. */
static float
step(const Model *m, Moment *at)
{
    static const int64_t rate = RATE;
    jot_Tensor in[3], out[2], ours[3] = {
        {JOT_F32, JOT_SHAPE(1, BEFORE + CHUNK), at->chunk, sizeof at->chunk},
        {JOT_F32, JOT_SHAPE(2, 1, STATE / 2), at->state, sizeof at->state},
        {JOT_I64, {0}, &rate, sizeof rate}};

    for (int k = 0; k < m->n; k++)
        in[k] = ours[m->is[k]];
    if (!jot_onnx_run(m->onnx, in, m->n, out, 2))
        return -1;
    if (out[0].dtype != JOT_F32 || out[0].nbytes != sizeof(float) || out[1].dtype != JOT_F32 ||
        out[1].nbytes != sizeof at->state) {
        puts("outputs f32 of 1 and of 256 elements asked, others found: not silero's network");
        return -1;
    }
    memcpy(at->state, out[1].data, sizeof at->state); /* out is the model's until its next run */
    return *(const float *)out[0].data;
}

static int64_t
chunks_of(const jot_Buffer *sound)
{
    return (sound->shape[1] + CHUNK - 1) / CHUNK;
}

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The probability of each chunk, in order, and how long that took. */
static bool
listen(const Model *m, const jot_Buffer *sound, float *p, Best *best)
{
    int64_t frames = sound->shape[1], chunks = chunks_of(sound);
    double begin = now(), first = 0;
    Moment at = {{0}, {0}}, before;

    for (int64_t k = 0; k < chunks; k++) {
        int64_t rest = frames - k * CHUNK;
        memmove(at.chunk, at.chunk + CHUNK, BEFORE * sizeof(float));
        memset(at.chunk + BEFORE, 0, CHUNK * sizeof(float));
        memcpy(at.chunk + BEFORE, (const float *)sound->data + k * CHUNK,
               (size_t)(rest < CHUNK ? rest : CHUNK) * sizeof(float));
        before = at;
        if ((p[k] = step(m, &at)) < 0)
            return false;
        if (p[k] > best->p)
            *best = (Best){before, p[k], k};
        first = k ? first : now() - begin;
    }
    double others = now() - begin - first;
    printf("%d chunks of %d: the first took %.1f ms, with the making of the function", (int)chunks,
           CHUNK, 1e3 * first);
    if (chunks > 1)
        printf(",\nthe others %.3f ms each: %.0f times faster than real time",
               1e3 * others / (double)(chunks - 1), (double)(chunks - 1) * CHUNK / RATE / others);
    puts("");
    return true;
}

/* From when to when chunks are speech. */
static void
tell(const float *p, int64_t chunks)
{
    bool any = false;

    for (int64_t k = 0, to; k < chunks; k = to + 1) {
        float most = 0;
        for (to = k; to < chunks && p[to] >= 0.5f; to++)
            most = p[to] > most ? p[to] : most;
        if (to > k)
            printf("speech from %.2f to %.2f s, probability up to %.4f\n",
                   (double)k * CHUNK / RATE, (double)to * CHUNK / RATE, (double)most);
        any |= to > k;
    }
    if (!any)
        puts("no speech");
}

/* The surest chunk, as the command takes it. */
static bool
keep(jot_Ctx *c, const Best *b)
{
    static const char *const path[] = {"out/chunk.npy", "out/state.npy", "out/sr.npy"};
    static const int64_t rate = RATE;
    jot_Var v[] = {jot_array(c, JOT_F32, JOT_SHAPE(1, BEFORE + CHUNK), b->at.chunk),
                   jot_array(c, JOT_F32, JOT_SHAPE(2, 1, STATE / 2), b->at.state),
                   jot_array(c, JOT_I64, (jot_Ints){0}, &rate)};

    for (int k = 0; k < 3; k++)
        if (!jot_file_write(c, path[k], &(jot_Named){"", v[k]}, 1, NULL))
            return false;
    printf("out/chunk.npy, out/state.npy, out/sr.npy: the chunk at %.2f s, probability %.6g\n",
           (double)b->chunk * CHUNK / RATE, (double)b->p);
    return true;
}

static bool
heard(jot_Ctx *c, const char *model, const char *wav)
{
    jot_Buffer *sound = sound_of(wav);
    Model m = {sound ? jot_onnx_load(c, model) : NULL, 0, {0}};
    float *p = m.onnx ? calloc((size_t)chunks_of(sound), sizeof *p) : NULL;
    Best best = {.p = -1};
    bool ok = p && understood(&m, model) && listen(&m, sound, p, &best);

    if (ok) {
        tell(p, chunks_of(sound));
        ok = keep(c, &best);
    }
    if (m.onnx && !p)
        puts("no memory is left");
    if (jot_error(c))
        puts(jot_message(c));
    free(p);
    jot_onnx_free(m.onnx);
    jot_buffer_free(sound);
    return ok;
}

int
main(int argc, char **argv)
{
    jot_Ctx *c = jot_open(NULL);
    bool ok = true;

    mkdir("out", 0755);
    if (argc <= 2 && !make_sound(c)) {
        puts(jot_message(c));
        ok = false;
    } else if (argc > 1) {
        ok = heard(c, argv[1], argc > 2 ? argv[2] : MADE);
    } else {
        printf("to find the speech: %s silero_vad.onnx (of the Python package silero-vad)%s%s\n",
               argv[0], *jot_onnx_missing() ? "; " : "", jot_onnx_missing());
    }
    jot_close(c);
    return !ok;
}
