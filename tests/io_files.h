/* tests/io_files.h - for the tests of io/: the packages' files by name, a folder, a context that is
 * asked what it was told, pickles by hand. */
#ifndef IO_FILES_H
#define IO_FILES_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "io.h"
#include "tests/ref/io.h"
#include "tests/test.h"

#define REF(name) {#name, ref_io_##name, sizeof ref_io_##name}
typedef struct { const char *name; const uint8_t *p; size_t n; } RefFile;
static const RefFile ref_files[] = {
    REF(safetensors), REF(npy), REF(npy_turned), REF(npy_scalar), REF(npy_text), REF(npz),
    REF(npz_deflated), REF(gguf), REF(pt), REF(pt_4), REF(pt_one), REF(pt_optim), REF(pt_object),
    REF(pt_repeats),
};
enum { REF_FILES = sizeof ref_files / sizeof *ref_files };

/* What this build reads of them. */
static inline bool
ref_can(const RefFile *r)
{
    return !*jot_file_can(!strcmp(r->name, "safetensors") ? "safetensors"
                          : !strcmp(r->name, "npz_deflated") ? "deflate" : "pt");
}

static char io_dir[64];

static inline const char *
io_path(const char *name)
{
    static char path[8][256];
    static int turn;

    if (!*io_dir) {
        strcpy(io_dir, "/tmp/jot_io_XXXXXX");
        if (!mkdtemp(io_dir))
            exit(2);
    }
    turn = (turn + 1) % 8;
    snprintf(path[turn], sizeof path[turn], "%s/%s", io_dir, name);
    return path[turn];
}

static inline void
io_remove(const char *path)
{
    char command[300];

    snprintf(command, sizeof command, "rm -rf '%s'", path);
    if (system(command))
        printf("%s stays\n", path);
}

/* A zip that is PyTorch's of this pickle, without storages, to `to`; returns its size. */
static inline size_t
io_pt_of(uint8_t *to, const void *pickle, size_t n)
{
    static const char local[] = "PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0????????\12\0\0\0a/data.pkl";
    static const char record[] = "PK\1\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0????????\12\0\0"
                                 "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0a/data.pkl";
    enum { LOCAL = sizeof local - 1, RECORD = sizeof record - 1 };
    const uint8_t size[4] = {(uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16), 0};
    uint8_t end[22] = "PK\5\6", *p = to;

    memcpy(p, local, LOCAL);
    memcpy(p + 18, size, 4), memcpy(p + 22, size, 4);
    memcpy(p += LOCAL, pickle, n);
    memcpy(p += n, record, RECORD);
    memcpy(p + 20, size, 4), memcpy(p + 24, size, 4);
    end[8] = end[10] = 1, end[12] = RECORD;
    for (int k = 0; k < 3; k++)
        end[16 + k] = (uint8_t)((size_t)(p - to) >> 8 * k);
    memcpy(p += RECORD, end, sizeof end);
    return (size_t)(p - to) + sizeof end;
}

/* k-th value of tests/ref/io.py */
static inline double
io_value(int64_t k)
{
    return (double)(k * 7 % 23 - 11) / 4;
}

/* The failure that a call left in the context, which goes on. */
static inline void
io_raised(jot_Ctx *c, int line, bool ok, jot_Status status, const char *text)
{
    CHECK(!ok && jot_error(c) == status && strstr(jot_message(c), text), "line %d: %d \"%s\" in "
          "\"%s\"", line, (int)status, text, jot_message(c));
    jot_clear(c);
}
#define RAISED(c, ok, status, text) io_raised(c, __LINE__, ok, status, text)

#endif
