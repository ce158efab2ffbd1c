/* tests/test_io_memory.c - io.h with the n-th allocation refused, for every n: malloc and its like,
 * the C library's and those of cJSON and zlib among them, are this program's, and so is what the
 * context takes. What is refused is a file or a context that says so, or does not matter; nothing
 * is left behind, on the disk neither, and the same again without a refusal is as it was.
 *
 * Guards: io/file.c io/take.c io/write.c io/safetensors.c io/npy.c io/zip.c io/gguf.c io/pickle.c
 * io/torch.c io/checkpoint.c */
#include <dirent.h>
#include "tests/io_files.h"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#include "tests/refused_malloc.h"

/* The context's memory, which it may keep. */
static void *
hook(void *ud, void *p, size_t old_nbytes, size_t new_nbytes)
{
    (void)ud, (void)old_nbytes;
    if (new_nbytes)
        return refused() ? NULL : __libc_realloc(p, new_nbytes);
    __libc_free(p);
    return NULL;
}

static jot_Ctx *ctx;
static const RefFile *ref;
static const char *path;
static jot_Net net;
static jot_Trainer trainer;

/* 1 for a value, 0 for a failure with words; -1: without */
static int
told(bool ok)
{
    bool fine = ok == !jot_error(ctx);
    jot_clear(ctx);
    return fine ? ok : -1;
}

/* All of its tensors as variables, which outlive it. */
static int
do_read(void)
{
    static jot_Named named[64];
    jot_push(ctx);
    jot_File *f = path ? jot_file_open(path) : jot_file_memory(ref->name, ref->p, ref->n);
    bool words = !f || !f->status || *f->message;
    int n = jot_file_named(ctx, f, named, 64);
    jot_file_close(f);
    jot_pop(ctx);
    return words ? told(n > 0) : -1;
}

/* Nothing is left beside the file. */
static bool
alone(void)
{
    DIR *d = opendir(io_dir);
    bool odd = false;
    for (struct dirent *e; d && (e = readdir(d));)
        odd = odd || strstr(e->d_name, ".tmp-");
    if (d)
        closedir(d);
    return !odd;
}

static int
do_write(void)
{
    static const char *const texts[] = {"v"};
    jot_Text text = {*texts, 1};
    jot_Meta meta = {"k", JOT_META_TEXT, false, 1, NULL, NULL, &text};
    bool keeps = strstr(path, ".gguf") || strstr(path, ".safetensors");
    jot_push(ctx);
    jot_Named two[2] = {{"a", jot_zeros(ctx, JOT_F32, JOT_SHAPE(2, 32))},
                        {"b", jot_iota(ctx, JOT_I64, JOT_SHAPE(3), 0)}};
    jot_Writing how = {.meta = &meta, .metas = keeps, .q8_0 = true};
    bool ok = jot_file_write(ctx, path, two, 1 + !strstr(path, ".npy"), &how);
    jot_pop(ctx);
    bool was = counting;
    counting = false;
    bool fine = alone();
    counting = was;
    return fine ? told(ok) : -1;
}

static int
do_save(void)
{
    return told(jot_checkpoint_save(net, trainer, path, 1, 1));
}

static int
do_load(void)
{
    return told(jot_checkpoint_load(net, trainer, path) == 1);
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

static void
make_net(void)
{
    net = jot_net(ctx, JOT_F32);
    jot_Var y = jot_nn_linear(net, "l", jot_ones(ctx, JOT_F32, JOT_SHAPE(2, 3)), 2, NULL);
    trainer = jot_trainer(net, &(jot_Training){.lr = 0.1});
    CHECK(jot_train_step(trainer, jot_mean(y, JOT_ALL_DIMS)) && jot_run(ctx, JOT_NONE_VARS), "%s",
          jot_message(ctx));
}

int
main(void)
{
    static const char *const ends[] = {"x.npy", "x.gguf", "x.npz", "x.safetensors"};
    bool json = !*jot_file_can("safetensors"), zlib = !*jot_file_can("deflate");
    jot_Config config = {.hooks = {.realloc = hook}, .backend = "interp", .cache_dir = "",
                         .no_threads = 1, .no_programs = 1};

    ctx = jot_open(&config);
    for (int k = 0; k < REF_FILES; k++) {
        jot_File *f = jot_file_memory("f", ref_files[k].p, ref_files[k].n);
        ref = &ref_files[k];
        if (!f->status && jot_file_named(ctx, f, (jot_Named[64]){{"", {0}}}, 64))
            try(ref->name, do_read);
        jot_file_close(f);
        jot_clear(ctx);
    }
    for (int k = 0; k < (json ? 4 : zlib ? 3 : 2); k++) {
        path = io_path(ends[k]);
        try(ends[k], do_write);
        try(ends[k], do_read);
    }
    if (json) {
        make_net();
        path = io_path("steps");
        try("save", do_save);
        try("load", do_load);
    } else
        SKIP("%s", jot_file_can("safetensors"));
    jot_close(ctx);
    io_remove(io_dir);
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
