/* backends/cpu/cache.c - compiled kernels on disk, so that a second run starts at full speed.
 *
 *     $XDG_CACHE_HOME/jot/  (or ~/.cache/jot, or what JOT_CACHE_DIR says), mode 0700
 *         0f3a...9c.jot     one entry: 128 bits of hash of key and text
 *
 *     entry   magic | lengths of the three parts | two checksums | key | text | object
 *
 * A loaded object is trusted like our own code, so an entry has to prove itself: it is read into
 * memory once; its lengths, both checksums, and then the whole key (compiler, flags, machine) and
 * the whole source text must be as asked. The caller loads a private copy of those very bytes, not
 * the file: nobody can change them between the check and the use, nor later under a running
 * program.
 *
 * Once an hour the first to open the directory tidies it: what killed processes left goes, here and
 * from where temporary files are; and of entries that together are too many, those that were not
 * used for longest.
 *
 * Writers do not wait for each other: each writes a file of its own and renames it. Two processes
 * that make the same entry replace one whole entry by another. What fails on the way (a full disk,
 * a read-only directory) costs only the entry.
 *
 * Read before: backends/host/host.h. After: backends/cpu/cc.c. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "backends/host/host.h"
#ifndef JOT_NO_HOST
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- the directory ------------------------------------------------------------------------ */

/* A relative one is the one that it is now, wherever the program goes: for who opens it later,
 * too. */
static int
cache_absolute(jot_Ctx *ctx, char *dir, size_t nbytes)
{
    char here[512], given[512];
    const char *kept = NULL;
    int n = 0;

    snprintf(given, sizeof given, "%s", dir);
    if (getcwd(here, sizeof here))
        n = snprintf(dir, nbytes, "%s/%s", here, given);
    if (n > 0 && n < (int)nbytes && ctx->strings.mem)
        kept = jot_arena_copy(&ctx->strings, dir, (size_t)n);
    if (kept)
        ctx->config.cache_dir = kept;
    return n;
}

static bool
cache_place(jot_Ctx *ctx, char *dir, size_t nbytes, bool tell)
{
    const char *s = ctx->config.cache_dir;
    int n = 0;

    if (!s)
        s = jot_host_env(ctx, "JOT_CACHE_DIR");
    if (s)
        n = snprintf(dir, nbytes, "%s", s);
    else if ((s = jot_host_env(ctx, "XDG_CACHE_HOME")) != NULL && *s == '/')
        n = snprintf(dir, nbytes, "%s/jot", s);
    else if ((s = jot_host_env(ctx, "HOME")) != NULL && *s == '/')
        n = snprintf(dir, nbytes, "%s/.cache/jot", s);
    else if (tell)
        jot_host_log(ctx, "jot: no cache of compiled kernels: JOT_CACHE_DIR is not set, and "
                     "neither XDG_CACHE_HOME nor HOME is a whole path\n");
    if (n > 0 && n < (int)nbytes && *dir != '/')
        n = cache_absolute(ctx, dir, nbytes);
    if (n >= (int)nbytes && tell)
        jot_host_log(ctx, "jot: no cache of compiled kernels: its path is too long\n");
    return n > 0 && n < (int)nbytes;
}

/* mkdir -p. Returns errno's value of the first failure, 0 for none: it shows when the directory is
 * opened. */
static int
cache_mkdir(char *dir)
{
    int why = 0;
    char *p;

    for (p = dir + 1; p[-1]; p++) {
        char end = *p;

        if (end && end != '/')
            continue;
        *p = 0;
        if (mkdir(dir, 0700) && errno != EEXIST && !why)
            why = errno;
        *p = end;
    }
    return why;
}

enum { CACHE_MOST = 1 << 28 }; /* bytes of a file */

/* NULL, or why nothing may be kept in the directory, or the file does not count: who can write
 * there can run code as us. */
static const char *
cache_distrust(int fd, bool file)
{
    struct stat st;

    if (fstat(fd, &st))
        return strerror(errno);
    if (st.st_uid != geteuid())
        return file ? "belongs to another user: not taken" : "it belongs to another user";
    if (st.st_mode & 022)
        return file ? "is open to other users: not taken" : "other users may write there";
    return file && st.st_size > CACHE_MOST ? "is too large: not taken" : NULL;
}

/* ---- tidying ------------------------------------------------------------------------------ */

enum { CACHE_HOUR = 3600, CACHE_MEGABYTES = 512 };

/* Entries last used before `before` go (INT64_MIN: none), unfinished ones older than an hour, and
 * what cannot be one. Returns the bytes of what is left. */
static int64_t
cache_drop(const Cache *cache, int64_t before, int64_t now)
{
    int fd = openat(cache->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    int64_t nbytes = 0;
    struct dirent *e;
    struct stat st;

    if (!dir && fd >= 0)
        close(fd);
    while (dir && (e = readdir(dir)) != NULL) {
        const char *dot = strrchr(e->d_name, '.');
        bool entry = dot && !strcmp(dot, ".jot"), unfinished = !strncmp(e->d_name, "tmp-", 4);

        if ((!entry && !unfinished) || fstatat(cache->fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW))
            continue;
        if (!S_ISREG(st.st_mode) || st.st_size > CACHE_MOST
            || st.st_mtime < (unfinished ? now - CACHE_HOUR : before))
            unlinkat(cache->fd, e->d_name, 0);
        else
            nbytes += (int64_t)st.st_size;
    }
    if (dir)
        closedir(dir);
    return nbytes;
}

/* Whatever it is, but a folder with something in it. */
static bool
cache_remove(const Cache *cache, const char *name)
{
    return !unlinkat(cache->fd, name, 0) || !unlinkat(cache->fd, name, AT_REMOVEDIR);
}

static void
cache_tidy(const Cache *cache, jot_Ctx *ctx)
{
    static const char mark[] = "tidied"; /* its time of change says when */
    const int make = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int64_t now = (int64_t)time(NULL), most = (int64_t)CACHE_MEGABYTES << 20, left, age;
    struct stat st;
    int fd;

    if (fstatat(cache->fd, mark, &st, AT_SYMLINK_NOFOLLOW))
        st.st_mtime = 0;
    else if (!S_ISREG(st.st_mode) && cache_remove(cache, mark))
        st.st_mtime = 0;
    if (st.st_mtime <= now && st.st_mtime > now - CACHE_HOUR)
        return;
    fd = openat(cache->fd, mark, make, 0600);
    if (fd < 0)
        return;
    futimens(fd, NULL);
    close(fd);
    jot_work_sweep(ctx, cache->dir);
    left = cache_drop(cache, INT64_MIN, now);
    for (age = (int64_t)64 * 24 * CACHE_HOUR; left > most && age; age /= 2)
        left = cache_drop(cache, now - age, now);
}

JOT_FN void
jot_cache_open(Cache *cache, jot_Ctx *ctx, bool tell)
{
    const char *why;
    int made;

    cache->fd = -1;
    if (!cache_place(ctx, cache->dir, sizeof cache->dir, tell)) {
        cache->dir[0] = 0;
        return;
    }
    made = cache_mkdir(cache->dir);
    cache->fd = open(cache->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    why = cache->fd >= 0 ? cache_distrust(cache->fd, false)
        : strerror(errno == ENOENT && made ? made : errno);
    if (!why) {
        cache_tidy(cache, ctx);
        return;
    }
    if (tell)
        jot_host_log(ctx, "jot: no cache of compiled kernels in %s: %s\n", cache->dir, why);
    jot_cache_close(cache);
}

JOT_FN void
jot_cache_close(Cache *cache)
{
    if (cache->fd >= 0)
        close(cache->fd);
    cache->fd = -1;
    cache->dir[0] = 0;
}

/* ---- entries ------------------------------------------------------------------------------ */

typedef struct {
    char magic[16];
    uint64_t key_nbytes, text_nbytes, object_nbytes;
    uint64_t sum[2]; /* of the lengths and the three parts */
} CacheHead;

static const char cache_magic[16] = "jot kernel 3\n";

/* Two hashes of different kinds, so that what fools one does not fool the other: jot_hash_u64's
 * and FNV by words. Four of each side by side, for one alone waits for itself at every word. */
static uint64_t
cache_fnv(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0x100000001b3u;
    return h ^ h >> 32; /* a word's high bytes reach the low ones of what follows */
}

static void
cache_hash(uint64_t sum[2], Bytes part)
{
    uint64_t a[4], b[4], word;
    size_t i, n;
    int k;

    for (k = 0; k < 4; k++) {
        a[k] = sum[0] + (uint64_t)k;
        b[k] = sum[1] ^ (uint64_t)k;
    }
    for (i = 0; i + 4 * sizeof word <= part.n; i += 4 * sizeof word)
        for (k = 0; k < 4; k++) {
            memcpy(&word, part.p + i + (size_t)k * sizeof word, sizeof word);
            a[k] = jot_hash_u64(a[k], word);
            b[k] = cache_fnv(b[k], word);
        }
    for (k = 0; i < part.n; i += n, k++) {
        n = part.n - i < sizeof word ? part.n - i : sizeof word;
        word = 0;
        memcpy(&word, part.p + i, n);
        a[k] = jot_hash_u64(a[k], word);
        b[k] = cache_fnv(b[k], word);
    }
    for (k = 0; k < 4; k++) {
        sum[0] = jot_hash_u64(sum[0] ^ part.n, a[k]);
        sum[1] = cache_fnv(sum[1] ^ part.n, b[k]);
    }
}

static void
cache_sums(CacheHead *head, const Bytes part[3])
{
    int i;

    head->sum[0] = head->key_nbytes * 3 + head->text_nbytes * 5 + head->object_nbytes * 7;
    head->sum[1] = head->sum[0] ^ 0xcbf29ce484222325u;
    for (i = 0; i < 3; i++)
        cache_hash(head->sum, part[i]);
}

JOT_FN void
jot_cache_name(Bytes key, Bytes text, char name[CACHE_NAME])
{
    uint64_t sum[2] = {1, 0xcbf29ce484222325u};

    cache_hash(sum, key);
    cache_hash(sum, text);
    snprintf(name, CACHE_NAME, "%016llx%016llx.jot", (unsigned long long)sum[0],
             (unsigned long long)sum[1]);
}

/* Take the object out of an entry's bytes if the entry is whole and the one asked for; a text that
 * is not known (NULL) is taken out, too. */
static bool
cache_check(Bytes entry, Bytes key, Bytes *text, Bytes *object)
{
    CacheHead head, want;
    Bytes part[3];

    if (entry.n < sizeof head)
        return false;
    memcpy(&head, entry.p, sizeof head);
    if (memcmp(head.magic, cache_magic, sizeof head.magic) || head.key_nbytes != key.n
        || head.text_nbytes > CACHE_MOST || (text->p && head.text_nbytes != text->n)
        || head.object_nbytes > CACHE_MOST
        || entry.n != sizeof head + key.n + head.text_nbytes + head.object_nbytes)
        return false;
    part[0].p = entry.p + sizeof head;
    part[0].n = key.n;
    part[1].p = part[0].p + key.n;
    part[1].n = (size_t)head.text_nbytes;
    part[2].p = part[1].p + part[1].n;
    part[2].n = (size_t)head.object_nbytes;
    want = head;
    cache_sums(&want, part);
    if (want.sum[0] != head.sum[0] || want.sum[1] != head.sum[1]
        || memcmp(part[0].p, key.p, key.n) || (text->p && memcmp(part[1].p, text->p, text->n)))
        return false;
    *text = part[1];
    *object = part[2];
    return true;
}

/* What does not count goes, so that nobody else finds it; what cannot go is told once. (Where
 * another process has just replaced it, its entry is lost, and made again.) */
static void
cache_reject(Cache *cache, jot_Ctx *ctx, const char *name, const char *what)
{
    char note[700];

    snprintf(note, sizeof note, "jot: %s/%s %s\n", cache->dir, name, what);
    if (cache_remove(cache, name))
        jot_host_log(ctx, "%s", note);
    else
        jot_host_say(ctx, note);
}

JOT_FN bool
jot_cache_read(Cache *cache, jot_Ctx *ctx, const char *name, Bytes *entry)
{
    int fd = cache->fd < 0 ? -1 : jot_host_open(cache->fd, name);
    const char *why = NULL;

    entry->p = NULL;
    entry->n = 0;
    if (cache->fd >= 0 && fd < 0) /* a link to itself, a socket; else there is none, or we cannot */
        why = errno == EINVAL || errno == ELOOP || errno == ENXIO ? "is no file: not taken" : NULL;
    else if (fd >= 0)
        why = cache_distrust(fd, true);
    if (!why)
        return fd >= 0 && jot_host_read_fd(ctx, fd, SIZE_MAX, entry);
    cache_reject(cache, ctx, name, why);
    if (fd >= 0)
        close(fd);
    return false;
}

static bool
cache_copy(jot_Ctx *ctx, Bytes from, Bytes *to)
{
    to->p = jot_mem_new(&ctx->mem, from.n + 1, 1);
    to->n = to->p ? from.n : 0;
    if (to->p)
        memcpy(to->p, from.p, from.n);
    return to->p != NULL;
}

JOT_FN bool
jot_cache_unit(Cache *cache, jot_Ctx *ctx, Bytes key, const char *name, Bytes *entry, Bytes *text,
               Bytes *object)
{
    Bytes part[2] = {{NULL, 0}, {NULL, 0}};
    char is[CACHE_NAME] = "";
    bool ok;

    entry->p = text->p = NULL;
    entry->n = text->n = 0;
    if (strlen(name) + 1 > CACHE_NAME || strchr(name, '/')
        || !jot_cache_read(cache, ctx, name, entry))
        return false; /* tidied away, perhaps */
    ok = cache_check(*entry, key, &part[0], &part[1]);
    if (ok)
        jot_cache_name(key, part[0], is);
    if (ok && !strcmp(is, name)) {
        ok = cache_copy(ctx, part[0], text);
        *object = part[1];
        utimensat(cache->fd, name, NULL, AT_SYMLINK_NOFOLLOW); /* it was used */
    } else {
        ok = false;
        cache_reject(cache, ctx, name, "is damaged or another unit's: compiling again");
    }
    if (!ok)
        jot_bytes_free(ctx, entry);
    return ok;
}

JOT_FN bool
jot_cache_find(Cache *cache, jot_Ctx *ctx, Bytes key, Bytes text, Bytes *entry, Bytes *object)
{
    char name[CACHE_NAME];
    bool ok;

    entry->p = NULL;
    entry->n = 0;
    if (cache->fd < 0)
        return false;
    jot_cache_name(key, text, name);
    if (!jot_cache_read(cache, ctx, name, entry))
        return false;
    ok = cache_check(*entry, key, &text, object);
    if (ok) {
        utimensat(cache->fd, name, NULL, AT_SYMLINK_NOFOLLOW); /* it was used */
    } else {
        cache_reject(cache, ctx, name, "is damaged or another kernel's: compiling again");
        jot_bytes_free(ctx, entry);
    }
    return ok;
}

/* ---- keeping ------------------------------------------------------------------------------ */

/* A new file that no other process or thread has: the name is tried until it is free. */
static int
cache_temporary(Cache *cache, const void *self, char name[64])
{
    int i, fd = -1;

    for (i = 0; i < 100 && fd < 0; i++) {
        snprintf(name, 64, "tmp-%ld-%llx-%d", (long)getpid(), (unsigned long long)(uintptr_t)self,
                 i);
        fd = openat(cache->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd;
}

/* All parts to a new file that then takes the name. Failing (a full disk) is no error: the log says
 * why, once: the note is the same for all entries. */
static void
cache_put(Cache *cache, jot_Ctx *ctx, const char *name, const Bytes *part, int n)
{
    char tmp[64], note[700];
    int fd = cache_temporary(cache, ctx, tmp), why = errno, i;
    bool ok = fd >= 0;

    for (i = 0; i < n && ok; i++)
        ok = jot_host_write_fd(fd, part[i].p, part[i].n);
    if (!ok)
        why = errno;
    if (fd >= 0 && close(fd) && ok) {
        why = errno;
        ok = false;
    }
    if (ok && renameat(cache->fd, tmp, cache->fd, name)) {
        why = errno;
        ok = false;
    }
    if (ok)
        return;
    if (fd >= 0)
        unlinkat(cache->fd, tmp, 0);
    snprintf(note, sizeof note, "jot: what is compiled and measured is not kept in %s: %s\n",
             cache->dir, strerror(why));
    jot_host_say(ctx, note);
}

JOT_FN void
jot_cache_write(Cache *cache, jot_Ctx *ctx, const char *name, Bytes text)
{
    if (cache->fd >= 0)
        cache_put(cache, ctx, name, &text, 1);
}

JOT_FN void
jot_cache_keep(Cache *cache, jot_Ctx *ctx, Bytes key, Bytes text, Bytes object)
{
    Bytes part[4];
    CacheHead head;
    char name[CACHE_NAME];

    if (cache->fd < 0)
        return;
    part[1] = key;
    part[2] = text;
    part[3] = object;
    memset(&head, 0, sizeof head);
    memcpy(head.magic, cache_magic, sizeof head.magic);
    head.key_nbytes = key.n;
    head.text_nbytes = text.n;
    head.object_nbytes = object.n;
    cache_sums(&head, part + 1);
    part[0].p = (char *)&head;
    part[0].n = sizeof head;
    jot_cache_name(key, text, name);
    cache_put(cache, ctx, name, part, 4);
}

#endif
