/* tests/io_files.h - for the tests of io/: the packages' files by name, a folder, a context that is
 * asked what it was told, spoiled copies. */
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
