/* tests/test_data_fuzz.c - files that are not to be trusted (data.h): whole ones of each format
 * spoiled at drawn places, cut off, lengthened, and bytes that are none. Each answer is a buffer
 * that fits its shape and is no larger than such a file may become, or a message; nothing is left.
 *
 *     test_data_fuzz N FIRST       seeds FIRST .. FIRST + N - 1; 1 .. 3000
 *
 * By clang -fsanitize=fuzzer,address -DJOT_LIBFUZZER with data/ beside it, it is libFuzzer's.
 *
 * Guards: data/file.c data/idx.c data/png.c data/jpeg.c data/wav.c data/csv.c data/vocab.c */
#include "tests/test.h"
#include "tests/data_files.h"

/* The most that n bytes may become: of a palette of 1 bit a byte of deflate's 1032 is 8 pixels of 4
 * channels; gzip around it once more. */
static double
most_of(size_t n)
{
    return (double)n * 1100 * 1100 * 32 + (1 << 20);
}

static void
fit(jot_Buffer *b, size_t n)
{
    if (!b)
        return;
    size_t want = jot_dtype_nbytes(b->dtype);
    for (int d = 0; d < b->rank; d++)
        want *= (size_t)b->shape[d];
    if (b->status)
        CHECK(*b->message && !b->data, "a failure without words");
    else
        CHECK(b->data && b->nbytes == want && (double)b->nbytes <= most_of(n), "%zu bytes of %zu",
              b->nbytes, n);
    if (!b->status && b->rank == 3 && b->nbytes < 1 << 20)
        b = jot_image_fit(b, 1 + (int)(n % 4), n % 3 ? 5 : 0, n % 5 ? 7 : 0);
    jot_buffer_free(b);
}

static void
fuzz_text(const uint8_t *p, size_t n)
{
    jot_CsvForm form = {n % 3 ? 0 : ';', n % 2, "NA"};
    jot_Csv *csv = jot_csv_parse("t", p, n, &form);
    if (csv && !csv->status) {
        int64_t cells = 0;
        for (int64_t r = 0; r < csv->rows; r++)
            for (int k = 0; k < csv->columns; k++)
                cells += jot_csv_cell(csv, r, k) != NULL;
        CHECK(cells == csv->rows * csv->columns, "%lld cells", (long long)cells);
        jot_buffer_free(jot_csv_numbers(csv, JOT_NONE_STRS, (jot_DType)(1 + n % 12)));
        if (csv->columns) {
            jot_Vocab *words;
            jot_buffer_free(jot_csv_classes(csv, csv->names[0], &words));
            jot_vocab_free(words);
        }
    } else if (csv)
        CHECK(*csv->message, "a failure without words");
    jot_csv_free(csv);
    jot_TokenKind kind = n % 2 ? JOT_WORDS : JOT_CHARACTERS;
    jot_Vocab *v = jot_vocab_make(kind, p, n, (int64_t)(n % 7));
    jot_Buffer *b = jot_vocab_encode(v, p, n);
    if (b && !b->status) /* each is one of them */
        for (int64_t k = 0; k < b->shape[0]; k++)
            CHECK(jot_vocab_token(v, ((int32_t *)b->data)[k]), "token %lld", (long long)k);
    jot_buffer_free(b);
    jot_vocab_free(v);
}

static void
fuzz_one(const uint8_t *p, size_t n)
{
    fit(jot_decode("f", p, n), n);
    fuzz_text(p, n);
}

#include "tests/fuzz_one.h"

#ifndef JOT_LIBFUZZER

/* A whole file of a drawn kind. */
static void
whole(FileBytes *b)
{
    static uint8_t pixels[64 * 64 * 4];
    for (size_t k = 0; k < sizeof pixels; k++)
        pixels[k] = (uint8_t)(draw(4) ? k : draw(256));
    b->n = 0;
    switch (draw(6)) {
    case 0:
        bytes_add(b, "\0\0\x0b\2\0\0\0\3\0\0\0\4", 12);
        bytes_add(b, pixels, 24);
        break;
    case 1: {
        static const uint8_t kinds[][2] = {{1, 0}, {4, 0}, {8, 0}, {16, 0}, {8, 2}, {16, 2}, {2, 3},
                                           {8, 3}, {8, 4}, {8, 6}};
        const uint8_t *kind = kinds[draw(10)];
        int samples = kind[1] == 2 ? 3 : kind[1] == 4 ? 2 : kind[1] == 6 ? 4 : 1;
        uint32_t w = 1 + (uint32_t)draw(16), h = 1 + (uint32_t)draw(16);
        bytes_png(b, &(PngKind){w, h, kind[0], kind[1], pixels,
                                ((size_t)w * (size_t)(kind[0] * samples) + 7) / 8, pixels,
                                kind[1] == 3 ? 3 * (1 + draw(200)) : 0, pixels,
                                kind[1] == 3 ? draw(3) : 0});
        break;
    }
    case 2:
#ifdef JOT_JPEG
    {
        int c = draw(3) ? 3 : 1;
        bytes_jpeg(b, pixels, 1 + (int)draw(40), 1 + (int)draw(40), c, 5 + (int)draw(95),
                   (int)draw(2));
        break;
    }
#endif
    case 3:
        bytes_add(b, "RIFF\0\0\0\0WAVEfmt \20\0\0\0\1\0\2\0\100\37\0\0\0\0\0\0\4\0\20\0data"
                  "\100\0\0\0", 44);
        bytes_add(b, pixels, 64);
        break;
    case 4:
        bytes_add(b, "a,b,\"c\"\"d\"\n1,2,3\n4,\"5\n6\",x\r\nNA,,\"\"\n-1.5e3,7,\303\251\n", 48);
        break;
    default:
        bytes_add(b, "\x1f\x8b\x08\0\0\0\0\0\0\3\x4b\x4c\x4a\x06\0\xc2\x41\x24\x35\3\0\0\0", 23);
    }
}

static void
spoil(FileBytes *b)
{
    static const char words[] = "IHDRPLTEIDATtRNSfmt data\"\",,\n\r\n"
                                "\xff\xd8\xff\xda\xff\xc4\xff\xc0";
    for (int times = (int)draw(6); times-- && b->n;) {
        size_t at = draw(b->n), left = b->n - at, n = draw(left < 9 ? left + 1 : 9);
        switch (draw(6)) {
        case 0: b->p[at] ^= (uint8_t)(1 << draw(8)); break;
        case 1: b->p[at] = (uint8_t)(draw(2) ? 255 * draw(2) : draw(256)); break;
        case 2: memset(b->p + at, draw(2) ? 255 : 0, n); break;
        case 3: b->n = draw(4) ? b->n : at; break;
        case 4:
            memmove(b->p + at, b->p + at + n, left - n);
            b->n -= n;
            break;
        default:
            if (b->n + n < sizeof b->p) {
                memmove(b->p + at + n, b->p + at, left);
                memcpy(b->p + at, words + draw(sizeof words - 9), n);
                b->n += n;
            }
        }
    }
}

int
main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 3000, first = argc > 2 ? atol(argv[2]) : 1;
    FileBytes *b = calloc(1, sizeof *b);
    for (long seed = first; seed < first + n; seed++) {
        int failed = test_failed;
        state = (uint64_t)seed * 0x9e3779b97f4a7c15u + 1;
        draw(1), draw(1), draw(1);
        whole(b);
        spoil(b);
        uint8_t *exact = malloc(b->n ? b->n : 1); /* so that a sanitizer sees its end */
        memcpy(exact, b->p, b->n);
        fuzz_one(exact, b->n);
        free(exact);
        if (test_failed > failed)
            printf("seed %ld\n", seed);
    }
    CHECK(n > 0, "nothing tried");
    free(b);
    return DONE();
}
#endif
