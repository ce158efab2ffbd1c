/* tests/test_data_memory.c - data.h with the n-th allocation refused, for every n: malloc and its
 * like, the C library's and those of libpng, libjpeg and zlib among them, are this program's. What
 * is refused is a buffer or a context that says so, or does not matter; nothing is left behind, and
 * the same again without a refusal is as it was.
 *
 * Guards: data/file.c data/png.c data/jpeg.c data/csv.c data/vocab.c data/folder.c data/loader.c
 * data/curves.c */
#include "tests/test.h"
#include "tests/data_files.h"
#include <locale.h>
#include <sys/stat.h>

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#include "tests/refused_malloc.h"

static jot_Ctx *ctx;
static FileBytes *file;

/* 1 for a value, 0 for a failure with words (or a NULL for want of memory) */
static int
ends(jot_Buffer *b)
{
    int ok = b && !b->status;
    if (b && b->status)
        ok = *b->message && !b->data ? 0 : -1;
    jot_buffer_free(b);
    return ok;
}

static int
told(bool ok)
{
    bool fine = ok == !jot_error(ctx);
    jot_clear(ctx);
    return fine ? ok : -1;
}

static int
do_decode(void)
{
    return ends(jot_decode("f", file->p, file->n));
}

static int
do_read(void)
{
    return ends(jot_image_fit(jot_read(files_path("x")), 3, 5, 4));
}

static int
do_csv(void)
{
    static const char text[] = "a,b\n1,x\n2,y\n3,x\n";
    jot_Csv *csv = jot_csv_parse("t", text, sizeof text - 1, NULL);
    jot_Vocab *words = NULL;
    int n = ends(jot_csv_numbers(csv, JOT_INDEX("a"), JOT_F32));
    int k = ends(jot_csv_classes(csv, "b", &words));
    jot_vocab_free(words);
    jot_csv_free(csv);
    return n < 0 || k < 0 ? -1 : n && k;
}

static int
do_vocab(void)
{
    static const char text[] = "to be or not to be";
    jot_Vocab *v = jot_vocab_make(JOT_WORDS, text, sizeof text - 1, 3);
    int ok = ends(jot_vocab_encode(v, text, sizeof text - 1));
    jot_vocab_free(v);
    return ok;
}

static int
do_folder(void)
{
    jot_Vocab *classes = NULL;
    jot_Source *s = jot_source_folder(ctx, files_path("f"), 1, 4, 4, &classes);
    int ok = told(s != NULL);
    CHECK(!s == !classes, "classes without a source, or the other way round");
    jot_vocab_free(classes);
    jot_source_free(s);
    return ok;
}

static int
do_load(void)
{
    jot_Buffer *b[2] = {jot_buffer_make(JOT_F32, 2, (int64_t[]){7, 3}),
                        jot_buffer_make(JOT_U8, 1, (int64_t[]){7})};
    for (int k = 0; k < 2; k++)
        if (b[k] && !b[k]->status)
            memset(b[k]->data, 0, b[k]->nbytes);
    jot_Source *s = jot_source_buffers(ctx, 2, b);
    jot_Loader *l = s ? jot_loader_open(ctx, s, &(jot_Loading){.batch = 2, .shuffle = true,
                                                               .ahead = -1}) : NULL;
    int n = 0;
    while (jot_loader_next(l))
        n++;
    int ok = told(n == 4);
    jot_loader_close(l);
    jot_source_free(s);
    return ok;
}

static int
do_curves(void)
{
    jot_Curves *c = jot_curves_open(ctx);
    bool ok = c != NULL;
    for (int k = 0; k < 300 && ok; k++)
        ok = jot_curves_add(c, k % 2 ? "a" : "b", k, k);
    ok = ok && jot_curves_svg(c, files_path("x.svg"), NULL) &&
         jot_curves_csv(c, files_path("x.csv"));
    int end = told(ok);
    jot_curves_close(c);
    return end;
}

static void
try(const char *what, int (*work)(void))
{
    long n, before = test_failed;
    CHECK(work() == 1, "%s: %s", what, jot_message(ctx)); /* what the system keeps is there now */
    for (n = 1; n < 5000; n++) {
        countdown = n;
        live = 0;
        counting = true;
        int end = work();
        counting = false;
        if (countdown > 0) {
            CHECK(end == 1 && live == 0, "%s: %d, %ld blocks", what, end, live);
            break;
        }
        CHECK(end >= 0, "%s: allocation %ld: without words", what, n);
        CHECK(live == 0, "%s: allocation %ld: %ld blocks stay", what, n, live);
        if (test_failed > before + 8)
            break;
    }
    CHECK(n > 1 && n < 5000, "%s: %ld allocations", what, n);
}

int
main(void)
{
    static uint8_t pixels[300];
    ctx = jot_open(&(jot_Config){.backend = "interp", .cache_dir = ""});
    file = __libc_calloc(1, sizeof *file);
    bytes_add(file, "\0\0\x08\1\0\0\0\2xy", 10);
    try("idx", do_decode);
    if (!*jot_reads("png")) {
        bytes_png(file, &(PngKind){10, 9, 8, 2, pixels, 30, NULL, 0, NULL, 0});
        try("png", do_decode);
        files_put("x", file->p, file->n);
        try("read", do_read);
        mkdir(files_path("f"), 0777), mkdir(files_path("f/a"), 0777);
        mkdir(files_path("f/b"), 0777);
        files_put("f/a/1.png", file->p, file->n);
        files_put("f/b/1.png", file->p, file->n);
        try("folder", do_folder);
    } else
        SKIP("%s", jot_reads("png"));
#ifdef JOT_JPEG
    bytes_jpeg(file, pixels, 10, 10, 3, 90, 1);
    try("jpeg", do_decode);
#else
    SKIP("%s", jot_reads("jpeg"));
#endif
    try("csv", do_csv);
    try("vocab", do_vocab);
    try("load", do_load);
    try("curves", do_curves);
    jot_close(ctx);
    __libc_free(file);
    files_close();
    return DONE();
}
#else
int
main(void)
{
    SKIP("no malloc of one's own under sanitizers, or without glibc");
    return DONE();
}
#endif
