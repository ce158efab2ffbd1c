/* onnx/export/window.h - dimensions that are windows: what convolutions and pools share.
 *
 * Read before: onnx/export/export.h. After: onnx/export/window.c. */
#ifndef JOT_ONNX_WINDOW_H
#define JOT_ONNX_WINDOW_H
#include "onnx/export/export.h"

enum { WINDOWS = 3, LABEL = 32 }; /* dimension LABEL + w is window w itself */

typedef struct {
    int dim;               /* of the array that is read, or of the result that is written */
    int pos, tap;          /* axes; -1: an extent of 1 */
    int64_t npos, ntap, stride, dilation, c;
    bool flip;             /* taps count backwards */
} Window;

typedef struct {
    const int64_t *ext;    /* of the space */
    int n;
    Window w[WINDOWS];
    uint32_t batch, group, in, out; /* axes: in, out: of channels */
} Windows;

bool export_window_add(Windows *s, int dim, const Terms *t, uint32_t pos, uint32_t tap);
uint32_t export_axes_of(const Terms *t);
bool export_window_axes(const Export *e, int n, const Ix *index, Terms *t, uint32_t *axes);
Array export_window_order(Export *e, Array x, const Terms *t, const Windows *s, bool windows,
                          const int *label, const int *joins, int n);
Array export_window_image(Export *e, Array x, const Windows *s, int64_t *pads);
bool export_window_fits(const Windows *s, Array x);
void export_window_attributes(Export *e, OnnxNode *node, const Windows *s, const int64_t *pads);
/* a, whose dimensions are r axes and then those of windows, as what n is; axis has room for all. */
Value export_window_put(Export *e, const Node *n, const Windows *s, Array a, int *axis, int r);
#endif
