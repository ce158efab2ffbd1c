/* io/map.c - a file's bytes, mapped: for io/file.c, and for onnx/.
 *
 * Read before: io/parts.h. After: io/file.c. */
#ifndef JOT_NO_HOST
#include "io/parts.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

jot_Status
io_map(const char *path, IoBytes *to, char why[IO_WHY])
{
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    jot_Status status = JOT_EIO;
    struct stat s;
    void *map;

    *to = (IoBytes){NULL, 0};
    if (fd < 0 || fstat(fd, &s)) {
        snprintf(why, IO_WHY, "%s", path ? strerror(errno) : "a path asked");
    } else if (!S_ISREG(s.st_mode)) {
        snprintf(why, IO_WHY, "a file asked, %s found",
                 S_ISDIR(s.st_mode) ? "a folder" : "a device or pipe");
    } else if (!s.st_size) {
        status = JOT_OK;
    } else {
        map = (uint64_t)s.st_size > SIZE_MAX / 2 ? MAP_FAILED
              : mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        status = map == MAP_FAILED ? JOT_EMEM : JOT_OK;
        if (status)
            snprintf(why, IO_WHY, "%lld bytes not mapped: %s", (long long)s.st_size,
                     strerror(errno));
        else
            *to = (IoBytes){map, (size_t)s.st_size};
    }
    if (fd >= 0)
        close(fd);
    return status;
}
#endif
