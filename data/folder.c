/* data/folder.c - a folder of folders of images: each folder is a class.
 *
 *     flowers/rose/1.jpg   flowers/rose/2.png   flowers/tulip/1.jpg     -> 0, 0, 1
 *
 * Names are read once and sorted by their bytes, so that numbers do not depend on the disk; images
 * are read and fitted when they are asked for, on the loader's thread.
 *
 * Read before: data/source.c, data/image.c. After: data/loader.c. */
#ifndef JOT_NO_HOST
#include "data/parts.h"
#include <dirent.h>
#include <errno.h>
#include <strings.h>
#include <sys/stat.h>

typedef struct { char **v; int64_t n, room; } FolderNames;
typedef struct {
    FolderNames file;    /* paths, class by class */
    int64_t *label, label_room;
    int channels;
    int64_t height, width;
} Folder;

static void
folder_free_names(FolderNames *names)
{
    for (int64_t k = 0; k < names->n; k++)
        free(names->v[k]);
    free(names->v);
    memset(names, 0, sizeof *names);
}

/* Takes `name` over, unless it is NULL. */
static bool
folder_push(FolderNames *names, char *name)
{
    if (name && names->n == names->room) {
        int64_t room = names->room ? 2 * names->room : 64;
        char **v = realloc(names->v, (size_t)room * sizeof *v);
        if (!v) {
            free(name);
            return false;
        }
        names->v = v;
        names->room = room;
    }
    if (name)
        names->v[names->n++] = name;
    return name != NULL;
}

static char *
folder_join(const char *a, const char *b)
{
    size_t n = strlen(a) + strlen(b) + 2;
    char *path = malloc(n);

    if (path)
        snprintf(path, n, "%s/%s", a, b);
    return path;
}

static int
folder_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool
folder_is_image(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot && (!strcasecmp(dot, ".png") || !strcasecmp(dot, ".jpg") ||
                   !strcasecmp(dot, ".jpeg"));
}

/* Names in a folder, sorted, without hidden ones: of folders, or of images. False: told. */
static bool
folder_list(jot_Ctx *ctx, const char *path, bool folders, FolderNames *out)
{
    DIR *dir = path ? opendir(path) : NULL;
    bool ok = dir != NULL;

    if (!dir)
        jot_raise(ctx, path ? JOT_EIO : JOT_EUSE, "%s: %s", path ? path : "(no name)",
                  path ? strerror(errno) : "a path asked");
    for (struct dirent *e; ok && (e = readdir(dir));) {
        if (e->d_name[0] == '.' || (!folders && !folder_is_image(e->d_name)))
            continue;
        struct stat s;
        char *whole = folder_join(path, e->d_name);
        bool wanted = whole && !stat(whole, &s) && (folders ? S_ISDIR(s.st_mode)
                                                            : S_ISREG(s.st_mode));
        ok = whole && (!wanted || folder_push(out, strdup(e->d_name)));
        free(whole);
    }
    if (dir) {
        closedir(dir);
        if (!ok)
            jot_raise(ctx, JOT_EMEM, "%s: no memory for its names", path);
    }
    if (out->n)
        qsort(out->v, (size_t)out->n, sizeof *out->v, folder_compare);
    return ok;
}

static void
folder_close(void *user)
{
    Folder *f = user;

    folder_free_names(&f->file);
    free(f->label);
    free(f);
}

static jot_Buffer *
folder_image(const Folder *f, int64_t k)
{
    return jot_image_fit(jot_read(f->file.v[k]), f->channels, f->height, f->width);
}

static bool
folder_get(void *user, int64_t k, void *const *out, int64_t *length, jot_Fault *fault)
{
    const Folder *f = user;
    jot_Buffer *b = folder_image(f, k);
    const bool ok = b && !b->status;

    (void)length;
    if (ok) {
        memcpy(out[0], b->data, b->nbytes);
        memcpy(out[1], &f->label[k], sizeof *f->label);
    } else if (b && !strncmp(b->message, "image_fit", 9))
        jot_fault(fault, b->status, "%s: %s", f->file.v[k], b->message);
    else
        jot_fault(fault, b ? b->status : JOT_EMEM, "%s", b ? b->message : "no memory for an image");
    jot_buffer_free(b);
    return ok;
}

/* The images of one class. */
static bool
folder_class(jot_Ctx *ctx, Folder *f, const char *path, const char *name, int64_t label)
{
    FolderNames images = {NULL, 0, 0};
    char *own = folder_join(path, name);
    bool ok = own && folder_list(ctx, own, false, &images);

    for (int64_t k = 0; ok && k < images.n; k++) {
        if (f->file.n == f->label_room) {
            int64_t room = f->label_room ? 2 * f->label_room : 64;
            int64_t *v = realloc(f->label, (size_t)room * sizeof *v);
            if (!(ok = v != NULL))
                break;
            f->label = v;
            f->label_room = room;
        }
        f->label[f->file.n] = label;
        ok = folder_push(&f->file, folder_join(own, images.v[k]));
    }
    if (!ok && !jot_error(ctx))
        jot_raise(ctx, JOT_EMEM, "%s: no memory for its names", path);
    folder_free_names(&images);
    free(own);
    return ok;
}

/* The source of what was listed. The first image says what sizes of 0 mean. */
static jot_Source *
folder_source(jot_Ctx *ctx, const char *path, Folder *f)
{
    if (!f->file.n) {
        jot_raise(ctx, JOT_EIO, "%s: folders of .png or .jpg files asked, none found", path);
        return NULL;
    }
    jot_Buffer *first = folder_image(f, 0);
    jot_Source *s = first && !first->status ? calloc(1, sizeof *s) : NULL;
    if (!s)
        jot_raise(ctx, first && first->status ? first->status : JOT_EMEM, "%s",
                  first && first->status ? first->message : "source_folder: no memory");
    else {
        f->channels = (int)first->shape[0];
        f->height = first->shape[1];
        f->width = first->shape[2];
        s->count = f->file.n;
        s->fields = 2;
        s->field[0] = (jot_Field){JOT_U8, 3, {first->shape[0], first->shape[1], first->shape[2]},
                                  false};
        s->field[1] = (jot_Field){JOT_I64, 0, {0}, false};
        s->get = folder_get;
        s->close = folder_close;
        s->user = f;
    }
    jot_buffer_free(first);
    return s;
}

jot_Source *
jot_source_folder(jot_Ctx *ctx, const char *path, int channels, int64_t height, int64_t width,
                  jot_Vocab **classes)
{
    FolderNames names = {NULL, 0, 0};
    Folder *f = calloc(1, sizeof *f);
    jot_Source *s = NULL;

    if (classes)
        *classes = NULL;
    if (!f)
        jot_raise(ctx, JOT_EMEM, "source_folder: no memory");
    bool ok = f && folder_list(ctx, path, true, &names);
    for (int64_t k = 0; ok && k < names.n; k++)
        ok = folder_class(ctx, f, path, names.v[k], k);
    if (ok) {
        f->channels = channels, f->height = height, f->width = width;
        s = folder_source(ctx, path, f);
    }
    if (s && classes) {
        *classes = data_vocab(names.v, names.n); /* which takes them over */
        memset(&names, 0, sizeof names);
        if (!*classes) {
            jot_raise(ctx, JOT_EMEM, "source_folder: no memory");
            jot_source_free(s);
            return NULL;
        }
    }
    folder_free_names(&names);
    if (!s && f)
        folder_close(f);
    return s;
}
#endif
