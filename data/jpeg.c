/* data/jpeg.c - JPEG, read by libjpeg where it was there at build time. Grey stays grey, the rest
 * becomes RGB; what the pixels would take is compared with what the file could hold before they are
 * decoded, and a file with more passes over the image than writers make is refused, since each
 * takes as long as the image is large.
 *
 * Read before: data/png.c. After: data/wav.c. */
#ifndef JOT_NO_HOST
#include "data/parts.h"
#ifdef JOT_JPEG
#include <jpeglib.h>
#include <jerror.h>
#include <setjmp.h>

enum { JPG_PASSES = 100 };
typedef struct {
    struct jpeg_error_mgr error;      /* the first: libjpeg hands back its address */
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct j;
    jmp_buf out;
    DataBytes file;
    jot_Buffer *b;
    char why[JMSG_LENGTH_MAX];
} JpgRead;

static void
jpgread_error(j_common_ptr j)
{
    JpgRead *r = (JpgRead *)(void *)j->err;

    j->err->format_message(j, r->why);
    longjmp(r->out, 1);
}

/* Warnings are ignored, as everybody does, but for the one of a file that is cut off. */
static void
jpgread_message(j_common_ptr j, int level)
{
    if (level < 0 && j->err->msg_code == JWRN_JPEG_EOF)
        jpgread_error(j);
}

static void
jpgread_passes(j_common_ptr j)
{
    JpgRead *r = (JpgRead *)(void *)j->err;

    if (r->j.input_scan_number <= JPG_PASSES)
        return;
    snprintf(r->why, sizeof r->why, "more than %d passes", JPG_PASSES);
    longjmp(r->out, 1);
}

static bool
jpgread_room(JpgRead *r)
{
    const int64_t h = r->j.image_height, w = r->j.image_width;
    const int64_t c = r->j.jpeg_color_space == JCS_GRAYSCALE ? 1 : 3;

    if (r->j.jpeg_color_space == JCS_CMYK || r->j.jpeg_color_space == JCS_YCCK) {
        r->b = data_failed(JOT_EIO, "%s: a grey or RGB JPEG asked, CMYK found", r->file.name);
        return false;
    }
    if ((size_t)(h * w / DATA_MOST) > r->file.n) {
        r->b = data_failed(JOT_EIO, "%s: %lld x %lld pixels asked, more than %zu bytes of JPEG "
                           "hold", r->file.name, (long long)h, (long long)w, r->file.n);
        return false;
    }
    r->j.out_color_space = c == 1 ? JCS_GRAYSCALE : JCS_RGB;
    r->b = jot_buffer_make(JOT_U8, 3, (int64_t[]){h, w, c});
    return r->b && !r->b->status;
}

static bool
jpgread_image(JpgRead *r)
{
    if (setjmp(r->out))
        return false;
    jpeg_create_decompress(&r->j);
    r->j.progress = &r->progress;
    r->progress.progress_monitor = jpgread_passes;
    jpeg_mem_src(&r->j, (unsigned char *)(uintptr_t)r->file.p, (unsigned long)r->file.n);
    jpeg_read_header(&r->j, TRUE);
    if (!jpgread_room(r))
        return false;
    jpeg_start_decompress(&r->j);
    size_t row = (size_t)r->j.output_width * (size_t)r->j.output_components;
    while (r->j.output_scanline < r->j.output_height) {
        JSAMPROW to = (JSAMPROW)r->b->data + row * r->j.output_scanline;
        jpeg_read_scanlines(&r->j, &to, 1);
    }
    jpeg_finish_decompress(&r->j);
    return true;
}

jot_Buffer *
data_jpeg(DataBytes file)
{
    JpgRead *r = calloc(1, sizeof *r);

    if (!r)
        return NULL;
    r->file = file;
    r->j.err = jpeg_std_error(&r->error);
    r->error.error_exit = jpgread_error;
    r->error.emit_message = jpgread_message;
    if (!jpgread_image(r) && !(r->b && r->b->status)) {
        jot_buffer_free(r->b);
        r->b = data_failed(JOT_EIO, "%s: JPEG: %s", file.name, r->why);
    }
    jpeg_destroy_decompress(&r->j);
    jot_Buffer *b = r->b;
    free(r);
    return data_planes(b);
}
#else
jot_Buffer *
data_jpeg(DataBytes file)
{
    return data_failed(JOT_EIO, "%s: %s", file.name, jot_reads("jpeg"));
}
#endif
#endif
