/* backends/host/library.c - shared libraries that are opened at run time, and tables of their
 * functions: compilers, drivers, JSON. What is used of one is declared where it is used, as a
 * struct of nothing but function pointers beside a list of their names in the same order.
 *
 *     {"clFinish", "clFlush"}   ->   struct { int32_t (*finish)(..); int32_t (*flush)(..); }
 *
 * Read before: backends/host/host.h. After: backends/cpu/tcc.c, backends/cuda/nvrtc.c,
 * backends/opencl/find.c, backends/cuda/cuda.c, backends/files/tune.c. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "backends/host/host.h"
#ifndef JOT_NO_HOST
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <elf.h>
#include <fcntl.h>
#endif

JOT_FN void *
jot_library_open(const char *const *names, size_t n)
{
    void *library = NULL;
    size_t i;

    jot_host_lock();
    for (i = 0; i < n && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    jot_host_unlock();
    return library;
}

JOT_FN void
jot_library_close(const jot_Ctx *ctx, void *library)
{
    if (!library || (ctx && ctx->forked))
        return;
    jot_host_lock();
    dlclose(library);
    jot_host_unlock();
}

#ifdef __linux__
#if UINTPTR_MAX > 0xffffffffu /* <link.h> knows, and is more than every compiler can read */
typedef Elf64_Ehdr LibraryHead;
typedef Elf64_Phdr LibraryPart;
#else
typedef Elf32_Ehdr LibraryHead;
typedef Elf32_Phdr LibraryPart;
#endif

static bool
library_has(uint64_t nbytes, uint64_t at, uint64_t n, uint64_t each)
{
    return at <= nbytes && n * each <= nbytes - at; /* n and each are of 16 bits, or each is 1 */
}

/* The table of sections is what a linker writes last, and is the end of the file. */
static bool
library_whole_fd(int fd)
{
    LibraryHead head;
    LibraryPart part;
    struct stat st;
    uint64_t nbytes;
    int i;

    if (fstat(fd, &st))
        return true;
    nbytes = (uint64_t)st.st_size;
    if (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head)
        return nbytes >= SELFMAG; /* too short */
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_phentsize != sizeof part)
        return true;
    if (!library_has(nbytes, head.e_phoff, head.e_phnum, sizeof part)
        || !library_has(nbytes, head.e_shoff, head.e_shnum, head.e_shentsize))
        return false;
    for (i = 0; i < head.e_phnum; i++)
        if (pread(fd, &part, sizeof part, (off_t)(head.e_phoff + (uint64_t)i * sizeof part))
                != (ssize_t)sizeof part
            || (part.p_type == PT_LOAD
                && !library_has(nbytes, part.p_offset, part.p_filesz, 1)))
            return false;
    return true;
}
#endif

JOT_FN bool
jot_library_whole(const char *path)
{
    bool whole = true;
#ifdef __linux__
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        whole = library_whole_fd(fd);
        close(fd);
    }
#else
    (void)path;
#endif
    return whole;
}

#ifdef __linux__
/* The line of /proc/self/maps that has this address: the file's number, and its path. */
static bool
self_mapped(const void *here, unsigned long long *inode, char path[512])
{
    FILE *maps = fopen("/proc/self/maps", "re");
    unsigned long long lo, hi;
    char line[700];
    bool found = false;

    while (maps && !found && fgets(line, sizeof line, maps))
        found = sscanf(line, "%llx-%llx %*s %*s %*s %llu %511[^\n]", &lo, &hi, inode, path) == 4
             && (uintptr_t)here >= lo && (uintptr_t)here < hi && *path == '/';
    if (maps)
        fclose(maps);
    return found;
}

/* The program's file may have been replaced since: its link leads to the one that runs. */
static bool
self_is(const char *path, unsigned long long inode, struct stat *st)
{
    static const char program[] = "/proc/self/exe";
    char to[512];
    ssize_t n = readlink(program, to, sizeof to - 1);

    to[n > 0 ? n : 0] = 0;
    if (!strcmp(path, to))
        return !stat(program, st);
    return !stat(path, st) && st->st_ino == inode;
}
#endif

JOT_FN bool
jot_library_self(char *name, size_t nbytes)
{
#ifdef __linux__
    static const char here[] = "code of the library";
    unsigned long long inode;
    char path[512];
    struct stat st;

    if (!self_mapped(here, &inode, path) || !self_is(path, inode, &st))
        return false;
    return snprintf(name, nbytes, "%s %llu %llu %lld %lld.%09ld %lld.%09ld", path,
                    (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
                    (long long)st.st_size, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
                    (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec) < (int)nbytes;
#else
    (void)name, (void)nbytes;
    return false;
#endif
}

JOT_FN int
jot_library_memory(Bytes object, char *path, size_t nbytes)
{
#ifdef MFD_CLOEXEC
    int fd = memfd_create("jot-kernel", MFD_CLOEXEC), at;
    unsigned long long number;
    struct stat st;

    if (fd < 0)
        return -1;
    if (!jot_host_write_fd(fd, object.p, object.n) || fstat(fd, &st)) {
        close(fd);
        return -1;
    }
    at = snprintf(path, nbytes, "/proc/self/");
    for (number = (unsigned long long)st.st_ino; number; number >>= 1)
        at += snprintf(path + at, nbytes - (size_t)at, number & 1 ? ".//" : "./");
    snprintf(path + at, nbytes - (size_t)at, "fd/%d", fd);
    return fd;
#else
    (void)object, (void)path, (void)nbytes;
    return -1;
#endif
}

JOT_FN bool
jot_library_find(void *library, const char *name, void *fn)
{
    void *p = dlsym(library, name);

    memcpy(fn, &p, sizeof p); /* C99 has no cast from data to function, POSIX equates them */
    return p != NULL;
}

JOT_FN const char *
jot_library_functions(void *library, const char *const *names, size_t n, void *table)
{
    const char *lacks = NULL;
    size_t i;

    for (i = 0; i < n; i++)
        if (!jot_library_find(library, names[i], (char *)table + i * sizeof(void *)) && !lacks)
            lacks = names[i];
    return lacks;
}

#endif
