/* tests/test_io_fuzz.c - files of tensors that are not to be trusted (io.h): the packages' files
 * spoiled at drawn places, cut off, lengthened, and bytes that are none. Each answer is a file
 * whose tensors fit the bytes and can be copied, or a message; memory stays below what io.h says,
 * counted in this program's own malloc; nothing is left.
 *
 *     test_io_fuzz N FIRST         seeds FIRST .. FIRST + N - 1; 1 .. 20000
 *     test_io_fuzz corpus FOLDER   the packages' files, for libFuzzer
 *
 * By clang -fsanitize=fuzzer,address -DJOT_LIBFUZZER with io/ beside it, it is libFuzzer's.
 *
 * Guards: io/file.c io/take.c io/blocks.c io/safetensors.c io/npy.c io/zip.c io/gguf.c io/pickle.c
 * io/torch.c */
#include "tests/io_files.h"
#include <malloc.h>

static size_t live, peak; /* bytes */

#if defined(__SANITIZE_ADDRESS__) || defined(JOT_LIBFUZZER)
int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void *, size_t),
                                              void (*)(const volatile void *));
size_t __sanitizer_get_allocated_size(const volatile void *p);

static void
took(const volatile void *p, size_t n)
{
    live += p ? n : 0;
    peak = live > peak ? live : peak;
}

static void
gave(const volatile void *p)
{
    size_t n = p ? __sanitizer_get_allocated_size(p) : 0;
    live -= n < live ? n : live;
}

static void
count_memory(void)
{
    static bool done;
    if (!done)
        __sanitizer_install_malloc_and_free_hooks(took, gave);
    done = true;
}
#elif defined(__GLIBC__) && !defined(__SANITIZE_THREAD__)
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void __libc_free(void *p);

static void *
took(void *p)
{
    live += p ? malloc_usable_size(p) : 0;
    peak = live > peak ? live : peak;
    return p;
}

void *
malloc(size_t n)
{
    return took(__libc_malloc(n));
}

void *
calloc(size_t n, size_t size)
{
    return took(__libc_calloc(n, size));
}

void *
realloc(void *old, size_t n)
{
    size_t was = old ? malloc_usable_size(old) : 0;
    void *p = __libc_realloc(old, n);
    if (p || !n) {
        peak = live + n > peak ? live + n : peak; /* both are there for a moment */
        live -= was;
    }
    return p ? took(p) : NULL;
}

void
free(void *p)
{
    live -= p ? malloc_usable_size(p) : 0;
    __libc_free(p);
}

static void
count_memory(void)
{
}
#else
static void
count_memory(void)
{
}
#endif

/* Tensor k can be copied, or not; its records fit. */
static void
fuzz_tensor(jot_File *f, const uint8_t *p, size_t n, int64_t k)
{
    const jot_Stored *t = &f->tensor[k];
    size_t nbytes = jot_dtype_nbytes(t->dtype), before = live;
    bool deflated = !t->data;

    CHECK(t->offset <= n && t->nbytes <= n - t->offset, "%s: beyond the end", t->name);
    CHECK(!t->data || t->data == p + t->offset, "%s: elsewhere", t->name);
    CHECK(t->rank >= 0 && t->rank <= JOT_MAX_RANK && t->name && t->type && t->block >= 1, "record");
    int64_t found = jot_file_find(f, t->name);
    CHECK(found == k, "%s: found at %lld, not %lld", t->name, (long long)found, (long long)k);
    for (int d = 0; d < t->rank; d++)
        nbytes *= (size_t)t->shape[d];
    CHECK((double)nbytes <= (deflated ? 1032.0 : 8.0) * (double)t->nbytes, "%s: %zu of %zu",
          t->name, nbytes, t->nbytes);
    if (nbytes > 1 << 24)
        return;
    uint8_t *to = malloc(nbytes ? nbytes : 1);
    peak = live;
    size_t most = live;
    bool fine = jot_file_copy(NULL, f, k, to, nbytes);
    CHECK(!fine || t->dtype != JOT_DTYPES, "%s: of no dtype", t->name);
    CHECK((double)(peak - most) <= 1032.0 * (double)t->nbytes + JOT_IO_ROOM, "%s: %zu for %zu",
          t->name, peak - most, t->nbytes);
    free(to);
    CHECK(live == before, "%s: something is left", t->name);
}

static void
fuzz_meta(const jot_File *f, int k)
{
    const jot_Meta *m = &f->meta[k];
    uint64_t sum = 0;

    CHECK(m->key && m->count >= 0 && (m->list || m->count == 1), "record");
    for (int64_t j = 0; j < m->count; j++)
        if (m->kind == JOT_META_TEXT)
            for (size_t i = 0; i < m->texts[j].n; i++)
                sum += (uint8_t)m->texts[j].p[i];
        else if (m->kind == JOT_META_FLOAT)
            sum += m->floats[j] > 0;
        else if (m->kind != JOT_META_OTHER)
            sum += (uint64_t)m->ints[j];
    CHECK(sum || !sum, "reads what is there");
}

static void
fuzz_one(const uint8_t *p, size_t n)
{
    count_memory();
    size_t before = live;
    peak = live;
    jot_File *f = jot_file_memory("f", p, n);
    CHECK(peak - before <= (size_t)JOT_IO_MOST * n + JOT_IO_ROOM, "%s of %zu bytes took %zu",
          f->format, n, peak - before);
    if (f->status)
        CHECK(*f->message && !f->count && !f->tensor, "a failure without words");
    for (int64_t k = 0; k < f->count; k++)
        fuzz_tensor(f, p, n, k);
    for (int k = 0; k < f->metas; k++)
        fuzz_meta(f, k);
    jot_file_close(f);
    CHECK(live == before, "something is left");
}

#include "tests/fuzz_one.h"

#ifndef JOT_LIBFUZZER

typedef struct { size_t n; uint8_t p[1 << 15]; } Bytes;

/* A number where there may be a size, a count or a place. */
static void
spoil_number(Bytes *b, size_t at, size_t left)
{
    static const uint64_t values[] = {0, 1, 16, 127, 255, 65535, 0x7fffffff, 0xffffffff,
                                      (uint64_t)1 << 32, INT64_MAX, (uint64_t)1 << 63, UINT64_MAX};
    size_t n = (size_t)1 << draw(4);
    uint64_t x = draw(3) ? values[draw(12)] + draw(3) - 1 : draw(b->n + 2);

    for (size_t k = 0; k < n && k < left; k++, x >>= 8)
        b->p[at + k] = (uint8_t)x;
}

static void
spoil(Bytes *b)
{
    static const char words[] = "PK\1\2PK\3\4PK\5\6GGUF(((]]]}}}eu.sa\x85\x86\x87q\0h\0RQ\"shape\":"
                                "[4],[[[{\"a\":\\\\999999999999'descr': '>f8'True(9,9)";
    for (int times = 1 + (int)draw(6); times-- && b->n;) {
        size_t at = draw(b->n), left = b->n - at, n = draw(left < 9 ? left + 1 : 9);
        switch (draw(8)) {
        case 0: b->p[at] ^= (uint8_t)(1 << draw(8)); break;
        case 1: b->p[at] = (uint8_t)(draw(2) ? 255 * draw(2) : draw(256)); break;
        case 2: memset(b->p + at, draw(2) ? 255 : 0, n); break;
        case 3: b->n = draw(6) ? b->n : at; break;
        case 4:
            memmove(b->p + at, b->p + at + n, left - n);
            b->n -= n;
            break;
        case 5: case 6: spoil_number(b, at, left); break;
        default:
            if (b->n + n < sizeof b->p) {
                memmove(b->p + at + n, b->p + at, left);
                memcpy(b->p + at, words + draw(sizeof words - 9), n);
                b->n += n;
            }
        }
    }
}

static void
corpus(const char *folder)
{
    for (int k = 0; k < REF_FILES; k++) {
        char path[300];
        snprintf(path, sizeof path, "%s/%s", folder, ref_files[k].name);
        FILE *f = fopen(path, "wb");
        CHECK(f && fwrite(ref_files[k].p, 1, ref_files[k].n, f) == ref_files[k].n && !fclose(f),
              "%s", path);
    }
}

/* Small files that ask for much: as many short records as their bytes can be. */
static void
greedy(Bytes *b)
{
    static const struct { const char *first, *again, *last; size_t first_size, again_size; }
    all[] = {
        {"........{\"a\":{\"shape\":[", "0,", "0]}}", 23, 2},
        {"........{", "\"\":0,", "\"\":0}", 9, 5},
        {"GGUF\3\0\0\0\0\0\0\0\0\0\0\0\0\4\0\0\0\0\0\0", "\0\0\0\0\0\0\0\0\7\0\0\0\0", "", 24, 13},
    };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        b->n = all[k].first_size;
        memcpy(b->p, all[k].first, b->n);
        while (b->n + all[k].again_size < 15000) {
            memcpy(b->p + b->n, all[k].again, all[k].again_size);
            b->n += all[k].again_size;
        }
        memcpy(b->p + b->n, all[k].last, strlen(all[k].last));
        b->n += strlen(all[k].last);
        if (k < 2)
            for (int j = 0; j < 8; j++)
                b->p[j] = (uint8_t)((b->n - 8) >> 8 * j);
        fuzz_one(b->p, b->n);
    }
}

/* Pickles of one opcode again and again. */
static void
greedy_pickle(Bytes *b)
{
    static const struct { const char *op; size_t size; } ops[] = {
        {"]", 1}, {")", 1}, {"}", 1}, {"(", 1}, {"N", 1}, {"]\x94", 2}, {"](NNNNe", 7},
        {"}(K\1Nu", 6}, {"h", 1}, {"q", 1}, {"X\0\0\0\0", 5}, {"]q\0", 3}, {"]\x94](h\0h\0e", 9},
    };
    static uint8_t pickle[15000];

    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        for (size_t j = 0; j + ops[k].size <= sizeof pickle; j += ops[k].size)
            memcpy(pickle + j, ops[k].op, ops[k].size);
        b->n = io_pt_of(b->p, pickle, sizeof pickle);
        jot_File *f = jot_file_memory("f", b->p, b->n);
        CHECK(!strcmp(f->format, "pt") && f->status && !strstr(f->message, "directory"), "%s",
              f->message);
        jot_file_close(f);
        fuzz_one(b->p, b->n);
    }
}

int
main(int argc, char **argv)
{
    if (argc > 2 && !strcmp(argv[1], "corpus")) {
        corpus(argv[2]);
        return DONE();
    }
    long n = argc > 1 ? atol(argv[1]) : 20000, first = argc > 2 ? atol(argv[2]) : 1;
    Bytes *b = calloc(1, sizeof *b);
    greedy(b);
    greedy_pickle(b);
    for (long seed = first; seed < first + n; seed++) {
        int failed = test_failed;
        state = (uint64_t)seed * 0x9e3779b97f4a7c15u + 1;
        draw(1), draw(1), draw(1);
        const RefFile *r = &ref_files[draw(REF_FILES)];
        memcpy(b->p, r->p, b->n = r->n);
        if (draw(50))
            spoil(b);
        uint8_t *exact = malloc(b->n ? b->n : 1); /* so that a sanitizer sees its end */
        memcpy(exact, b->p, b->n);
        fuzz_one(exact, b->n);
        free(exact);
        if (test_failed > failed)
            printf("seed %ld: %s\n", seed, r->name);
    }
    CHECK(n > 0, "nothing tried");
    free(b);
    return DONE();
}
#endif
