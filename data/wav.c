/* data/wav.c - WAV: sound as chunks in a RIFF file, numbers with their lowest byte first.
 *
 *     RIFF size WAVE | fmt  16.. kind channels rate bytes/s bytes/frame bits | .. | data n frames
 *
 * kind 1: integers (8 bits without a sign), 3: floats, 0xfffe: what the first bytes of a longer
 * description say. Integers become floats of -1..1 by 2^(bits - 1).
 *
 * Read before: data/file.c. After: data/csv.c. */
#ifndef JOT_NO_HOST
#include "data/parts.h"
#include <math.h>

typedef struct { int kind, channels, bits; uint32_t rate; } WavForm;

static double
wav_sample(const uint8_t *p, WavForm form)
{
    union { uint32_t u; float f; } one;
    union { uint64_t u; double f; } two;

    switch (form.kind == 3 ? -form.bits : form.bits) {
    case 8: return ((double)p[0] - 128) / 128;
    case 16: return (double)(int16_t)(uint16_t)(p[0] | p[1] << 8) / 32768;
    case 24: return (double)(int32_t)((uint32_t)p[2] << 24 | (uint32_t)p[1] << 16 |
                                      (uint32_t)p[0] << 8) / 2147483648.0;
    case 32: return (double)(int32_t)data_little(p) / 2147483648.0;
    case -32: return one.u = data_little(p), (double)one.f;
    default: return two.u = (uint64_t)data_little(p + 4) << 32 | data_little(p), two.f;
    }
}

static jot_Buffer *
wav_frames(DataBytes file, size_t at, size_t n, WavForm form)
{
    const size_t each = (size_t)form.bits / 8, frame = each * (size_t)form.channels;

    if (n > file.n - at)
        return data_failed(JOT_EIO, "%s: byte %zu: %zu bytes of sound asked, %zu found", file.name,
                           at, n, file.n - at);
    if (n % frame)
        return data_failed(JOT_EIO, "%s: byte %zu: whole frames of %zu bytes asked, %zu bytes "
                           "found", file.name, at, frame, n);
    const int64_t frames = (int64_t)(n / frame);
    jot_Buffer *b = jot_buffer_make(JOT_F32, 2, (int64_t[]){form.channels, frames});
    if (!b || b->status)
        return b;
    b->rate = form.rate;
    for (int64_t k = 0; k < frames; k++)
        for (int c = 0; c < form.channels; c++, at += each)
            ((float *)b->data)[c * frames + k] = (float)wav_sample(file.p + at, form);
    return b;
}

/* The fmt chunk at `at`; NULL: it will do. */
static jot_Buffer *
wav_form(DataBytes file, size_t at, size_t n, WavForm *form)
{
    const uint8_t *p = file.p + at;

    if (n < 16 || n > file.n - at)
        return data_failed(JOT_EIO, "%s: byte %zu: a fmt chunk of at least 16 bytes asked, %zu of "
                           "%zu found", file.name, at, file.n - at, n);
    form->kind = p[0] | p[1] << 8;
    form->channels = p[2] | p[3] << 8;
    form->rate = data_little(p + 4);
    form->bits = p[14] | p[15] << 8;
    if (form->kind == 0xfffe && n >= 26)
        form->kind = p[24] | p[25] << 8;
    if (form->channels < 1 || form->channels > 1024)
        return data_failed(JOT_EIO, "%s: byte %zu: 1 to 1024 channels asked, %d found", file.name,
                           at + 2, form->channels);
    bool integers = form->kind == 1 && form->bits % 8 == 0 && form->bits >= 8 && form->bits <= 32;
    if (!integers && !(form->kind == 3 && (form->bits == 32 || form->bits == 64)))
        return data_failed(JOT_EIO, "%s: byte %zu: integers of 8, 16, 24, 32 bits (kind 1) or "
                                    "floats "
                           "of 32, 64 (kind 3) asked, kind %d of %d bits found", file.name, at,
                           form->kind, form->bits);
    return NULL;
}

jot_Buffer *
data_wav(DataBytes file)
{
    WavForm form = {0, 0, 0, 0};

    for (size_t at = 12, n; file.n - at >= 8; at += 8 + n + (n & 1)) {
        const uint8_t *p = file.p + at;
        n = data_little(p + 4);
        if (!memcmp(p, "fmt ", 4)) {
            jot_Buffer *bad = wav_form(file, at + 8, n, &form);
            if (bad)
                return bad;
        } else if (!memcmp(p, "data", 4)) {
            if (!form.bits)
                return data_failed(JOT_EIO, "%s: byte %zu: a fmt chunk before the sound asked",
                                   file.name, at);
            return wav_frames(file, at + 8, n, form);
        }
        if (n >= file.n - at - 8)
            break;
    }
    return data_failed(JOT_EIO, "%s: a data chunk asked, none found in %zu bytes", file.name,
                       file.n);
}

/* ---- writing ---- */

static void
wav_u32(uint8_t *to, uint32_t v)
{
    to[0] = (uint8_t)v, to[1] = (uint8_t)(v >> 8);
    to[2] = (uint8_t)(v >> 16), to[3] = (uint8_t)(v >> 24);
}

/* The `bits` of a sample, lowest byte first; NaN is silence. */
static void
wav_put(uint8_t *to, float x, int bits)
{
    union { float f; uint32_t u; } one = {x};
    double most = ldexp(1, bits - 1), v = rint((double)x * most);

    if (bits == -32)
        wav_u32(to, one.u);
    else {
        v = v >= most ? most - 1 : v > -most ? v : v <= -most ? -most : 0;
        wav_u32(to, (uint32_t)(int32_t)v);
    }
}

static void
wav_write(FILE *f, const float *data, int64_t channels, int64_t frames, int rate, int bits)
{
    const size_t each = (size_t)(bits < 0 ? 4 : bits / 8);
    uint8_t head[44], sample[4];
    uint32_t n = (uint32_t)((size_t)(channels * frames) * each);

    memcpy(head, "RIFF    WAVEfmt ", 16);
    wav_u32(head + 4, 36 + n);
    wav_u32(head + 16, 16);
    wav_u32(head + 20, (uint32_t)(bits < 0 ? 3 : 1) | (uint32_t)channels << 16);
    wav_u32(head + 24, (uint32_t)rate);
    wav_u32(head + 28, (uint32_t)rate * (uint32_t)channels * (uint32_t)each);
    wav_u32(head + 32, (uint32_t)channels * (uint32_t)each | (uint32_t)each << 19);
    memcpy(head + 36, "data", 4);
    wav_u32(head + 40, n);
    fwrite(head, 1, 44, f);
    for (int64_t k = 0; k < frames; k++)
        for (int64_t c = 0; c < channels; c++) {
            wav_put(sample, data[c * frames + k], bits);
            fwrite(sample, 1, each, f);
        }
}

bool
jot_write_wav(jot_Var sound, const char *path, int rate, int bits)
{
    jot_Ctx *ctx = sound.ctx;

    if (!jot_check(ctx, sound, "write_wav", "sound"))
        return false;
    if (bits != 16 && bits != 24 && bits != 32 && bits != -32)
        return jot_ok(jot_raise(ctx, JOT_ERANGE, "write_wav: bits: 16, 24, 32 or -32 asked, %d "
                                "found", bits));
    if (jot_rank(sound) != 2 || jot_extent(sound, 0) < 1 || jot_extent(sound, 0) > 1024 ||
        jot_nelem(sound) > (1 << 29) || rate < 1)
        return jot_ok(jot_raise(ctx, JOT_ESHAPE, "write_wav: (1 to 1024 channels, frames) of at "
                                                 "most "
                                "2^29 and a rate asked, rank %d, %lld elements and rate %d found",
                                jot_rank(sound), (long long)jot_nelem(sound), rate));
    jot_push(ctx);
    const float *data = jot_data(jot_cast(sound, JOT_F32));
    FILE *f = data ? data_create(ctx, path) : NULL;
    if (f)
        wav_write(f, data, jot_extent(sound, 0), jot_extent(sound, 1), rate, bits);
    bool ok = f && data_finish(ctx, f, path);
    jot_pop(ctx);
    return ok;
}
#endif
