/* io/zip.c - stub */
#ifndef JOT_NO_HOST
#include "io/parts.h"
bool
io_inflate(jot_Ctx *ctx, const IoFile *f, const char *what, uint64_t offset, size_t nbytes,
           void *to, size_t inflated, uint32_t crc)
{
    (void)ctx, (void)f, (void)what, (void)offset, (void)nbytes, (void)to, (void)inflated, (void)crc;
    return false;
}
#endif
