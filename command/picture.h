/* command/picture.h - a drawing of boxes and arrows: laid out by graphviz's dot if it is there,
 * else in levels, and written as SVG.
 *
 * Read before: command.h. After: picture.c, draw.c. */
#ifndef JOT_PICTURE_H
#define JOT_PICTURE_H
#include <stdbool.h>
#include <stdio.h>

enum { BOX_LINES = 4, BOX_LINE = 64 };
typedef struct {
    char line[BOX_LINES][BOX_LINE]; /* what stands in it */
    int lines;
    const char *fill;               /* a colour of SVG's */
    int cluster;                    /* boxes of one cluster (> 0) stand together; 0: of none */
    int detail;                     /* number of the text that is shown for it; -1: none */
    double x, y, w, h;              /* of its middle, and its size; in pixels, once laid out */
    int level, place;
} Box;
typedef struct {
    int from, to;
    char label[32];
    double *at;                     /* n points as x, y; of a cubic spline; NULL: a straight line */
    int n;
} Arrow;
typedef struct {
    Box *box;
    Arrow *arrow;
    int boxes, arrows, box_room, arrow_room;
    double w, h;
    const char *by;                 /* who laid it out: "dot", "levels" */
} Picture;

Box *picture_box(Picture *p);                       /* a new one, cleared; NULL: no memory */
Arrow *picture_arrow(Picture *p, int from, int to);
void picture_line(Box *b, const char *format, ...); /* one more line, cut off if it is too long */
bool picture_layout(Picture *p, bool dot);          /* dot: if it is there. False: no memory */
void picture_svg(const Picture *p, FILE *f, const char *id);
void picture_end(Picture *p);
void picture_escaped(FILE *f, const char *text);    /* for XML */

#endif
