/* io/checkpoint.c - training that goes on after its process: jot_net_state as safetensors in a
 * folder, the last few of them.
 *
 *     folder/step-000000001100.safetensors
 *     folder/step-000000001200.safetensors        metadata: "jot.step", "jot.checksum"
 *
 * The checksum is a sum of hashes of step and tensors, each of name, dtype, shape and elements: in
 * whatever order they stand, a bit that is another one anywhere is seen. The newest file that is
 * whole is where training goes on; it is copied, as nobody sees that it is open.
 *
 * Read before: io/take.c, io/write.c. After: core.c. */
#ifndef JOT_NO_HOST
#include "io/parts.h"
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHECKPOINT_NAME "step-%012" PRId64 ".safetensors"
enum { CHECKPOINT_KEEP = 3, LOAD_TOLD = 1024 };

/* ---- the checksum ---- */

static uint64_t
check_word(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static uint64_t
check_bytes(uint64_t h, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    uint64_t word;

    for (; n >= 8; n -= 8, p += 8) {
        memcpy(&word, p, 8);
        h = check_word(h, word);
    }
    return check_word(h, n ? io_little(p, (int)n) | (uint64_t)n << 56 : 0);
}

static uint64_t
check_tensor(const char *name, jot_DType dtype, int rank, const int64_t *shape, const void *data,
             size_t nbytes)
{
    uint64_t h = check_word(check_bytes(1, name, strlen(name)), (uint64_t)dtype << 32
                            | (uint64_t)rank);

    for (int d = 0; d < rank; d++)
        h = check_word(h, (uint64_t)shape[d]);
    return check_bytes(h, data, nbytes);
}

/* As it should be, of a file; the hash of its step is check_word(0, step). */
static uint64_t
check_file(const IoFile *f, int64_t step)
{
    uint64_t sum = check_word(0, (uint64_t)step);

    for (int64_t k = 0; k < f->is.count; k++) {
        const jot_Stored *t = &f->tensor[k];
        sum += check_tensor(t->name, t->dtype, t->rank, t->shape, f->bytes.p + t->offset,
                            t->nbytes);
    }
    return sum;
}

/* ---- the folder ---- */

typedef struct { int64_t *step; size_t n; char *path; size_t room; } Steps;

static bool
steps_refused(jot_Ctx *ctx, const char *folder)
{
    jot_raise(ctx, JOT_EMEM, "%s: no memory for its list", folder);
    return false;
}

static int
by_step(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x < y) - (x > y); /* the newest first */
}

/* folder/name, in the list's own memory. */
static const char *
steps_path(const Steps *s, const char *folder, const char *name)
{
    snprintf(s->path, s->room, "%s/%s", folder, name);
    return s->path;
}

static const char *
steps_step(const Steps *s, const char *folder, int64_t step)
{
    char name[64];

    snprintf(name, sizeof name, CHECKPOINT_NAME, step);
    return steps_path(s, folder, name);
}

/* The steps that the folder has, the newest first. clean: remove what killed programs left. False:
 * told; a folder that is not there has none. */
static bool
steps_list(jot_Ctx *ctx, const char *folder, bool clean, Steps *s)
{
    size_t room = 0;

    *s = (Steps){.room = strlen(folder) + 300};
    if (!(s->path = malloc(s->room)))
        return steps_refused(ctx, folder);
    DIR *d = opendir(folder);
    if (!d && errno == ENOENT)
        return true;
    if (!d) {
        jot_raise(ctx, JOT_EIO, "%s: %s", folder, strerror(errno));
        return false;
    }
    for (struct dirent *e; (e = readdir(d));) {
        char name[64];
        int64_t step = strncmp(e->d_name, "step-", 5) ? -1 : strtoll(e->d_name + 5, NULL, 10);
        size_t n = (size_t)snprintf(name, sizeof name, CHECKPOINT_NAME, step);
        if (clean && step >= 0 && !strncmp(e->d_name, name, n)
            && !strncmp(e->d_name + n, ".tmp-", 5))
            unlink(steps_path(s, folder, e->d_name));
        if (step < 0 || strcmp(e->d_name, name))
            continue;
        if (s->n == room) {
            void *p = realloc(s->step, (room = 2 * room + 16) * sizeof *s->step);
            if (!p) {
                closedir(d);
                return steps_refused(ctx, folder);
            }
            s->step = p;
        }
        s->step[s->n++] = step;
    }
    closedir(d);
    if (s->n)
        qsort(s->step, s->n, sizeof *s->step, by_step);
    return true;
}

static void
steps_free(Steps *s)
{
    free(s->step);
    free(s->path);
}

/* ---- saving ---- */

/* All that is there, evaluated, and its checksum; false: told. */
static bool
save_check(jot_Ctx *ctx, const jot_Named *named, int n, uint64_t *sum)
{
    jot_Var *v = malloc(((size_t)n + 1) * sizeof *v);

    if (!v) {
        jot_raise(ctx, JOT_EMEM, "checkpoint: no memory for %d tensors", n);
        return false;
    }
    for (int k = 0; k < n; k++)
        v[k] = named[k].var;
    bool fine = jot_run(ctx, jot_vars(n, v));
    for (int k = 0; fine && k < n; k++) {
        const void *data = jot_data(v[k]);
        fine = data || !jot_nelem(v[k]);
        if (fine)
            *sum += check_tensor(named[k].name, jot_dtype(v[k]), jot_rank(v[k]), jot_shape(v[k]).v,
                                 data, io_var_nbytes(v[k]));
    }
    free(v);
    return fine;
}

static bool
save_named(jot_Ctx *ctx, const jot_Named *named, int n, const char *path, int64_t step)
{
    uint64_t sum = check_word(0, (uint64_t)step);

    if (!save_check(ctx, named, n, &sum))
        return false;
    char number[24], check[24];
    jot_Text text[2] = {
        {number, (size_t)snprintf(number, sizeof number, "%" PRId64, step)},
        {check, (size_t)snprintf(check, sizeof check, "%016" PRIx64, sum)},
    };
    jot_Meta meta[2] = {
        {.key = "jot.step", .kind = JOT_META_TEXT, .count = 1, .texts = &text[0]},
        {.key = "jot.checksum", .kind = JOT_META_TEXT, .count = 1, .texts = &text[1]},
    };
    jot_Writing how = {.format = "safetensors", .meta = meta, .metas = 2};
    return jot_file_write(ctx, path, named, n, &how);
}

/* Makes it, if it is not there; a new one is synced with the folder that it is in. */
static bool
save_folder(jot_Ctx *ctx, const char *folder)
{
    char *path = malloc(strlen(folder) + 1);
    bool made = path && !mkdir(folder, 0777), fine = made || (path && errno == EEXIST);

    if (!fine)
        jot_raise(ctx, path ? JOT_EIO : JOT_EMEM, "%s: %s", folder, strerror(errno));
    if (made)
        io_sync_folder(strcpy(path, folder));
    free(path);
    return fine;
}

/* All but the step that was saved now and the newest keep - 1 others go. */
static void
save_prune(const Steps *s, const char *folder, int64_t step, int keep)
{
    int others = 0;

    for (size_t k = 0; k < s->n; k++)
        if (s->step[k] != step && ++others >= keep)
            unlink(steps_step(s, folder, s->step[k]));
}

bool
jot_checkpoint_save(jot_Net net, jot_Trainer trainer, const char *folder, int64_t step, int keep)
{
    jot_Ctx *ctx = net.state.ctx;
    Steps s = {0};

    if (!folder || !*folder || step < 0 || step > 999999999999 || keep < 0) {
        jot_raise(ctx, JOT_EUSE, "checkpoint_save: a folder, a step from 0 to 10^12 - 1 and a "
                  "number to keep asked, step %lld and %d found", (long long)step, keep);
        return false;
    }
    jot_push(ctx);
    int n = jot_net_state(net, trainer, NULL, 0);
    jot_Named *named = malloc(((size_t)n + 1) * sizeof *named);
    bool fine = n > 0 && named;
    if (!named)
        jot_raise(ctx, JOT_EMEM, "checkpoint_save: no memory for %d tensors", n);
    fine = fine && jot_net_state(net, trainer, named, n) == n && save_folder(ctx, folder)
        && steps_list(ctx, folder, true, &s)
        && save_named(ctx, named, n, steps_step(&s, folder, step), step);
    if (fine)
        save_prune(&s, folder, step, keep ? keep : CHECKPOINT_KEEP);
    steps_free(&s);
    free(named);
    jot_pop(ctx);
    return fine;
}

/* ---- loading ---- */

/* Texts of a file may have no 0 at their end. */
static bool
check_text(jot_Text text, const char *is)
{
    return text.n == strlen(is) && !memcmp(text.p, is, text.n);
}

/* Whether it is what was saved; if not, file->message or `why` says so. */
static bool
checkpoint_whole(const jot_File *file, int64_t step, const char **why)
{
    jot_Text number = jot_meta_text(file, "jot.step"), check = jot_meta_text(file, "jot.checksum");
    char is[24];

    *why = file ? file->message : "no memory";
    if (!file || file->status)
        return false;
    *why = "no checkpoint of this step";
    snprintf(is, sizeof is, "%" PRId64, step);
    if (!check_text(number, is))
        return false;
    *why = "its checksum is another one: it was damaged";
    snprintf(is, sizeof is, "%016" PRIx64, check_file(io_of(file), step));
    return check_text(check, is);
}

/* "PATH: why", kept, and told through the log hook. */
static void
checkpoint_tell(jot_Ctx *ctx, const char *path, const char *why, char to[LOAD_TOLD])
{
    bool named = !strncmp(why, path, strlen(path));
    char line[LOAD_TOLD + 40];

    snprintf(to, LOAD_TOLD, "%s%s%s", named ? "" : path, named ? "" : ": ", why);
    jot_print_text(ctx, line, (size_t)snprintf(line, sizeof line, "jot: %s: passed over\n", to));
}

int64_t
jot_checkpoint_load(jot_Net net, jot_Trainer trainer, const char *folder)
{
    jot_Ctx *ctx = net.state.ctx;
    int64_t found = -1;
    bool whole = false;
    char told[LOAD_TOLD] = "";
    Steps s = {0};

    if (!folder || !jot_net_ok(net)) {
        jot_raise(ctx, JOT_EUSE, "checkpoint_load: a net and a folder asked");
        return -1;
    }
    bool fine = steps_list(ctx, folder, false, &s);
    for (size_t k = 0; fine && !whole && k < s.n; k++) {
        const char *path = steps_step(&s, folder, s.step[k]), *why;
        jot_File *file = jot_file_open(path);
        whole = checkpoint_whole(file, s.step[k], &why);
        if (!whole)
            checkpoint_tell(ctx, path, why, told);
        else if ((io_of(file)->copies = true) && jot_file_restore(net, trainer, file, ""))
            found = s.step[k];
        jot_file_close(file);
    }
    if (fine && s.n && !whole)
        jot_raise(ctx, JOT_EIO, "%s: none of its %zu checkpoints is whole; %s", folder, s.n, told);
    steps_free(&s);
    return found;
}
#endif
