/* io/blocks.c - blocks of few bits and their floats: what GGUF's quantised types are.
 *
 *     Q8_0   f16 d, 32 i8 q                                      x = d q
 *     Q4_0   f16 d, 16 bytes: q of k low, of k + 16 high         x = d (q - 8)
 *     Q4_K   f16 d, f16 m, 12 bytes: 8 scales s and 8 minima t of 6 bits, 128 bytes of q
 *            8 groups of 32: low halves of 32 bytes, then high   x = d s q - m t
 *     Q6_K   128 bytes: low 4 bits of q, 64 bytes: high 2 bits, 16 i8 scales s, f16 d
 *                                                                x = d s (q - 32)
 *
 * Read before: io/take.c. After: io/gguf.c. */
#ifndef JOT_NO_HOST
#include "io/parts.h"
#include <float.h>
#include <math.h>

float
io_half(const uint8_t *p)
{
    uint32_t h = (uint32_t)io_little(p, 2), sign = h >> 15, e = h >> 10 & 31, m = h & 1023, bits;
    float x;

    if (!e)
        return (sign ? -1.0f : 1.0f) * (float)m * (1.0f / (1 << 24));
    bits = sign << 31 | (e == 31 ? 255 : e + 112) << 23 | m << 13;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void
unpack_q8_0(float *to, const uint8_t *from)
{
    float d = io_half(from);

    for (int k = 0; k < 32; k++)
        to[k] = d * (float)(int8_t)from[2 + k];
}

static void
unpack_q4_0(float *to, const uint8_t *from)
{
    float d = io_half(from);

    for (int k = 0; k < 16; k++) {
        to[k] = d * (float)((from[2 + k] & 15) - 8);
        to[k + 16] = d * (float)((from[2 + k] >> 4) - 8);
    }
}

/* Scale and minimum of group k: 6 bits each; of the last four the high 2 lie above the first's. */
static void
q4_k_group(const uint8_t *p, int k, int *scale, int *least)
{
    if (k < 4) {
        *scale = p[k] & 63;
        *least = p[k + 4] & 63;
    } else {
        *scale = (p[k + 4] & 15) | (p[k - 4] >> 6) << 4;
        *least = p[k + 4] >> 4 | (p[k] >> 6) << 4;
    }
}

static void
unpack_q4_k(float *to, const uint8_t *from)
{
    float d = io_half(from), m = io_half(from + 2);

    for (int group = 0; group < 8; group++) {
        const uint8_t *q = from + 16 + group / 2 * 32;
        int scale, least;
        q4_k_group(from + 4, group, &scale, &least);
        for (int k = 0; k < 32; k++)
            *to++ = d * (float)scale * (float)(group % 2 ? q[k] >> 4 : q[k] & 15)
                  - m * (float)least;
    }
}

static void
unpack_q6_k(float *to, const uint8_t *from)
{
    float d = io_half(from + 208);

    for (int k = 0; k < 256; k++) {
        int half = k / 128, quarter = k % 128 / 32, at = k % 32;
        int low = from[64 * half + 32 * (quarter % 2) + at] >> (quarter / 2 ? 4 : 0) & 15;
        int high = from[128 + 32 * half + at] >> 2 * quarter & 3;
        to[k] = d * (float)(int8_t)from[192 + k / 16] * (float)((low | high << 4) - 32);
    }
}

/* The nearest f16, ties to even, of 0 <= x < 65520. */
static uint16_t
half_of(float x)
{
    int e;

    frexpf(x, &e); /* 2^(e - 1) <= x < 2^e, and 11 bits of it from there down; of 2^-24 at least */
    double scaled = ldexp((double)x, e < -13 ? 24 : 11 - e), whole = floor(scaled);
    double rest = scaled - whole;
    whole += rest > 0.5 || (rest == 0.5 && fmod(whole, 2) == 1);
    return (uint16_t)((e < -13 ? 0 : (e + 13) * 1024) + (int)whole);
}

bool
io_q8_0(uint8_t to[34], const float from[32])
{
    float most = 0;

    for (int k = 0; k < 32; k++) {
        float size = fabsf(from[k]);
        most = size > most || size != size ? size : most; /* a NaN stays */
    }
    float d = most / 127;
    if (!(d < 65520))
        return false;
    io_store(to, half_of(d), 2);
    for (int k = 0; k < 32; k++)
        to[2 + k] = (uint8_t)(int)(d > FLT_MIN ? roundf(from[k] * (1 / d)) : 0);
    return true;
}

const IoPacking *
io_packing(const char *name)
{
    static const IoPacking all[] = {
        {"Q8_0", 32, 34, unpack_q8_0}, {"Q4_0", 32, 18, unpack_q4_0},
        {"Q4_K", 256, 144, unpack_q4_k}, {"Q6_K", 256, 210, unpack_q6_k},
    };

    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (!strcmp(all[k].name, name))
            return &all[k];
    return NULL;
}
#endif
