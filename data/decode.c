/* data/decode.c - a file as a buffer: by its first bytes idx, PNG, JPEG, WAV, gunzipped before.
 *
 * Read before: data/file.c, data/idx.c, data/png.c. After: data/folder.c. */
#ifndef JOT_NO_HOST
#include "data/parts.h"

jot_Buffer *
jot_decode(const char *name, const void *bytes, size_t nbytes)
{
    DataBytes file = {name ? name : "bytes", bytes, bytes ? nbytes : 0};
    const uint8_t *p = file.p;

    if (data_is_gzip(file)) {
        jot_Buffer *whole = data_gunzip(file);
        if (!whole || whole->status)
            return whole;
        DataBytes inner = {file.name, whole->data, whole->nbytes};
        jot_Buffer *b = data_is_gzip(inner) ? data_failed(JOT_EIO, "%s: gzip within gzip", name)
                                            : jot_decode(name, inner.p, inner.n);
        jot_buffer_free(whole);
        return b;
    }
    if (file.n >= 8 && !memcmp(p, "\211PNG\r\n\032\n", 8))
        return data_png(file);
    if (file.n >= 3 && !memcmp(p, "\377\330\377", 3))
        return data_jpeg(file);
    if (file.n >= 12 && !memcmp(p, "RIFF", 4) && !memcmp(p + 8, "WAVE", 4))
        return data_wav(file);
    if (file.n >= 4 && !p[0] && !p[1])
        return data_idx(file);
    if (file.n < 4)
        return data_failed(JOT_EIO, "%s: idx, PNG, JPEG or WAV asked, %zu bytes found", file.name,
                           file.n);
    return data_failed(JOT_EIO, "%s: idx, PNG, JPEG or WAV asked, a file that begins with "
                       "%02x %02x %02x %02x found", file.name, p[0], p[1], p[2], p[3]);
}

jot_Buffer *
jot_read(const char *path)
{
    jot_Buffer *whole = data_slurp(path);

    if (!whole || whole->status)
        return whole;
    jot_Buffer *b = jot_decode(path, whole->data, whole->nbytes);
    jot_buffer_free(whole);
    return b;
}
#endif
