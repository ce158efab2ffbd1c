/* backends/library.c - shared libraries that are opened at run time, and tables of their functions:
 * compilers, drivers, JSON. What is used of one is declared where it is used, as a struct of nothing
 * but function pointers beside a list of their names in the same order.
 *
 *     {"clFinish", "clFlush"}   ->   struct { int32_t (*finish)(..); int32_t (*flush)(..); }
 *
 * Read before: backends/host.h. After: backends/tcc.c, nvrtc.c, opencl_find.c, cuda.c, io/tune.c. */
#include "backends/host.h"
#ifndef JOT_NO_HOST
#include <dlfcn.h>
#include <string.h>

JOT_FN void *
jot_library_open(const char *const *names, size_t n)
{
    void *library = NULL;
    size_t i;

    for (i = 0; i < n && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
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
