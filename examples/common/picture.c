/* picture.c - a sheet of digits, and below each what it is and what it was read as. */
#include <stdlib.h>
#include <string.h>
#include "picture.h"

enum { ZOOM = 3, DOT = 2, LABEL = 7 * DOT + 10, GAP = 12, ARROW = 10 };

/* Digits and an arrow of 5 x 7 dots, rows of 5 bits from the top. */
static void
sheet_glyph(uint8_t *grey, int width, int x, int y, int which)
{
    static const uint8_t font[11][7] = {
        {016, 021, 023, 025, 031, 021, 016}, {004, 014, 004, 004, 004, 004, 016},
        {016, 021, 001, 002, 004, 010, 037}, {016, 021, 001, 006, 001, 021, 016},
        {002, 006, 012, 022, 037, 002, 002}, {037, 020, 036, 001, 001, 021, 016},
        {016, 020, 020, 036, 021, 021, 016}, {037, 001, 002, 002, 004, 004, 004},
        {016, 021, 021, 016, 021, 021, 016}, {016, 021, 021, 017, 001, 001, 016},
        {000, 004, 002, 037, 002, 004, 000}};
    for (int r = 0; r < 7 * DOT; r++)
        for (int c = 0; c < 5 * DOT; c++)
            if (font[which][r / DOT] >> (4 - c / DOT) & 1)
                grey[(y + r) * width + x + c] = which == ARROW ? 140 : 0;
}

/* Ink on paper, a thin frame around it. */
static void
sheet_digit(uint8_t *grey, int width, int x, int y, const float *pixels, int side)
{
    for (int r = -1; r <= side * ZOOM; r++)
        for (int c = -1; c <= side * ZOOM; c++) {
            int frame = r < 0 || c < 0 || r == side * ZOOM || c == side * ZOOM;
            float ink = frame ? 0.2f : pixels[r / ZOOM * side + c / ZOOM];
            grey[(y + r) * width + x + c] = (uint8_t)(255 - 255 * ink);
        }
}

int
picture_sheet(jot_Ctx *c, const char *path, const float *const *pictures, const uint8_t *small,
              int n, int side, int across)
{
    const int rows = n > 0 ? (n + across - 1) / across : 1;
    const int wide = side * ZOOM + GAP, high = side * ZOOM + LABEL + GAP;
    const int width = across * wide + GAP, height = rows * high + GAP;
    const int step = 6 * DOT + 4, label = (side * ZOOM - 2 * step - 5 * DOT) / 2;
    uint8_t *grey = malloc((size_t)width * (size_t)height);
    if (!grey)
        return 0;
    memset(grey, 255, (size_t)width * (size_t)height);
    for (int k = 0; k < n; k++) {
        int x = k % across * wide + GAP, y = k / across * high + GAP, below = y + side * ZOOM + 5;
        sheet_digit(grey, width, x, y, pictures[k], side);
        sheet_glyph(grey, width, x + label, below, small[2 * k] % 10);
        sheet_glyph(grey, width, x + label + step, below, ARROW);
        sheet_glyph(grey, width, x + label + 2 * step, below, small[2 * k + 1] % 10);
    }
    int ok = jot_write_png(jot_array(c, JOT_U8, JOT_SHAPE(1, height, width), grey), path);
    free(grey);
    return ok;
}
