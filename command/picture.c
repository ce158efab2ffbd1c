/* command/picture.c - boxes and arrows find their places, and become SVG.
 *
 *     dot       what graphviz says: dot -Tplain reads the boxes' sizes and gives back where they go
 *     levels    a box is one level below the lowest of those that point to it; in a level boxes
 *               stand in the order of the mean places of their neighbours, found by some sweeps
 *               down and up; arrows are bent towards the vertical
 *
 * Pictures that dot would take long for are laid out in levels.
 *
 * Read before: picture.h. After: draw.c. */
#include "command/picture.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FONT = 12, LINE = 15, GAP = 24, ROW = 52, DOT_MOST = 1500 };
#define LETTER 7.4

static void *
room_for(void *list, int n, int *room, size_t each)
{
    if (n < *room)
        return list;
    void *more = realloc(list, (size_t)(2 * *room + 16) * each);
    if (more)
        *room = 2 * *room + 16;
    return more;
}

Box *
picture_box(Picture *p)
{
    Box *box = room_for(p->box, p->boxes, &p->box_room, sizeof *box);

    if (!box)
        return NULL;
    p->box = box;
    memset(&box[p->boxes], 0, sizeof *box);
    box[p->boxes].fill = "#eeeeee";
    box[p->boxes].detail = -1;
    return &box[p->boxes++];
}

Arrow *
picture_arrow(Picture *p, int from, int to)
{
    Arrow *a = room_for(p->arrow, p->arrows, &p->arrow_room, sizeof *a);

    if (!a)
        return NULL;
    p->arrow = a;
    memset(&a[p->arrows], 0, sizeof *a);
    a[p->arrows].from = from;
    a[p->arrows].to = to;
    return &a[p->arrows++];
}

void
picture_line(Box *b, const char *format, ...)
{
    va_list args;
    char *to = b->line[b->lines];

    if (b->lines == BOX_LINES)
        return;
    va_start(args, format);
    if (vsnprintf(to, BOX_LINE, format, args) >= BOX_LINE)
        memcpy(to + BOX_LINE - 4, "...", 4);
    va_end(args);
    b->lines++;
}

static void
box_sizes(Picture *p)
{
    for (int k = 0; k < p->boxes; k++) {
        Box *b = &p->box[k];
        size_t most = 4;
        for (int i = 0; i < b->lines; i++)
            most = strlen(b->line[i]) > most ? strlen(b->line[i]) : most;
        b->w = (double)most * LETTER + 14;
        b->h = b->lines * LINE + 10;
    }
}

/* ---- levels ------------------------------------------------------------------------------- */

/* Arrows go from boxes to later ones, as in a list in order of computation. */
static int
box_levels(Picture *p)
{
    int most = 0;

    for (bool again = true; again;) {
        again = false;
        for (int k = 0; k < p->arrows; k++) {
            const Arrow *a = &p->arrow[k];
            Box *to = &p->box[a->to];
            if (a->from < a->to && to->level <= p->box[a->from].level) {
                to->level = p->box[a->from].level + 1;
                most = to->level > most ? to->level : most;
                again = true;
            }
        }
    }
    /* what nothing points to stands just above who reads it */
    for (int k = p->boxes; k-- > 0;) {
        int least = -1;
        bool pointed = false;
        for (int i = 0; i < p->arrows; i++) {
            pointed = pointed || p->arrow[i].to == k;
            if (p->arrow[i].from == k && (least < 0 || p->box[p->arrow[i].to].level < least))
                least = p->box[p->arrow[i].to].level;
        }
        if (!pointed && least > 0)
            p->box[k].level = least - 1;
    }
    return most + 1;
}

static Picture *sorted;
static double *wish;

static int
by_wish(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    if (sorted->box[x].level != sorted->box[y].level)
        return sorted->box[x].level - sorted->box[y].level;
    if (wish[x] != wish[y])
        return wish[x] < wish[y] ? -1 : 1;
    return x - y;
}

/* Boxes in `order`, level by level: places and middles from the left. */
static void
box_places(Picture *p, const int *order)
{
    double x = 0;
    int level = -1, place = 0;

    for (int k = 0; k < p->boxes; k++) {
        Box *b = &p->box[order[k]];
        if (b->level != level)
            x = 0, place = 0, level = b->level;
        b->place = place++;
        b->x = x + b->w / 2;
        x += b->w + GAP;
    }
}

/* Each level in the middle; the next one below it. */
static void
box_rows(Picture *p, const int *order, int levels)
{
    double *w = calloc((size_t)levels, sizeof *w), *h = calloc((size_t)levels, sizeof *h), y = GAP;

    for (int k = 0; w && h && k < p->boxes; k++) {
        Box *b = &p->box[order[k]];
        w[b->level] = b->x + b->w / 2;
        h[b->level] = b->h > h[b->level] ? b->h : h[b->level];
        p->w = w[b->level] > p->w ? w[b->level] : p->w;
    }
    for (int k = 0, level = 0; w && h && k < p->boxes; k++) {
        Box *b = &p->box[order[k]];
        while (level < b->level)
            y += h[level++] + ROW;
        b->x += (p->w - w[level]) / 2 + GAP;
        b->y = y + h[level] / 2;
        p->h = y + h[level] + GAP;
    }
    p->w += 2 * GAP;
    free(w);
    free(h);
}

static bool
layout_levels(Picture *p)
{
    int *order = malloc(sizeof *order * (size_t)(p->boxes + 1)), levels = box_levels(p);
    double *sum = malloc(sizeof *sum * (size_t)(p->boxes + 1));
    int *count = malloc(sizeof *count * (size_t)(p->boxes + 1));

    wish = malloc(sizeof *wish * (size_t)(p->boxes + 1));
    if (!order || !sum || !count || !wish)
        return free(order), free(sum), free(count), free(wish), false;
    sorted = p;
    for (int k = 0; k < p->boxes; k++)
        order[k] = k, wish[k] = k;
    for (int sweep = 0; sweep < 8; sweep++) {
        qsort(order, (size_t)p->boxes, sizeof *order, by_wish);
        box_places(p, order);
        memset(sum, 0, sizeof *sum * (size_t)p->boxes);
        memset(count, 0, sizeof *count * (size_t)p->boxes);
        for (int k = 0; k < p->arrows; k++) {
            int to = sweep % 2 ? p->arrow[k].from : p->arrow[k].to;
            int from = sweep % 2 ? p->arrow[k].to : p->arrow[k].from;
            sum[to] += p->box[from].x;
            count[to]++;
        }
        for (int k = 0; k < p->boxes; k++)
            wish[k] = count[k] ? sum[k] / count[k] : p->box[k].x;
    }
    box_rows(p, order, levels);
    p->by = "levels";
    free(order);
    free(sum);
    free(count);
    free(wish);
    return true;
}

/* ---- dot ---------------------------------------------------------------------------------- */

static bool
dot_write(const Picture *p, const char *path)
{
    FILE *f = fopen(path, "w");

    if (!f)
        return false;
    fprintf(f, "digraph g {\nnode [shape=box fixedsize=true];\n"
            "edge [arrowhead=none];\nnodesep=0.2; ranksep=0.5;\n");
    for (int k = 0; k < p->boxes; k++) {
        const Box *b = &p->box[k];
        if (b->cluster)
            fprintf(f, "subgraph cluster_%d { ", b->cluster);
        fprintf(f, "n%d [width=%.3f height=%.3f];%s\n", k, b->w / 72, b->h / 72,
                b->cluster ? " }" : "");
    }
    for (int k = 0; k < p->arrows; k++)
        fprintf(f, "n%d -> n%d;\n", p->arrow[k].from, p->arrow[k].to);
    fprintf(f, "}\n");
    return fclose(f) == 0;
}

/* "edge n1 n2 COUNT x y x y ...": the next arrow between these that has no points yet. */
static void
dot_edge(Picture *p, char *s)
{
    int from, to, n, used;

    if (sscanf(s, "edge n%d n%d %d%n", &from, &to, &n, &used) != 3 || n < 2 || n > 4096)
        return;
    for (int k = 0; k < p->arrows; k++) {
        Arrow *a = &p->arrow[k];
        if (a->from != from || a->to != to || a->at)
            continue;
        a->at = malloc(sizeof *a->at * 2 * (size_t)n);
        s += used;
        for (int i = 0; a->at && i < 2 * n; i++)
            a->at[i] = strtod(s, &s) * 72;
        for (int i = 0; a->at && i < n; i++) {
            a->at[2 * i] += GAP;
            a->at[2 * i + 1] = p->h - GAP - a->at[2 * i + 1];
        }
        a->n = a->at ? n : 0;
        return;
    }
}

static bool
layout_dot(Picture *p)
{
    char path[] = "/tmp/jot-draw-XXXXXX", command[200], *line = NULL;
    int fd = mkstemp(path), k, boxes = 0;
    size_t room = 0;
    double x, y;
    FILE *f;

    if (fd < 0)
        return false;
    close(fd);
    snprintf(command, sizeof command, "exec dot -Tplain %s 2>/dev/null", path);
    f = dot_write(p, path) ? popen(command, "r") : NULL;
    while (f && getline(&line, &room, f) > 0) {
        if (sscanf(line, "graph %*f %lf %lf", &x, &y) == 2)
            p->w = x * 72 + 2 * GAP, p->h = y * 72 + 2 * GAP;
        else if (sscanf(line, "node n%d %lf %lf", &k, &x, &y) == 3 && k >= 0 && k < p->boxes)
            p->box[k].x = x * 72 + GAP, p->box[k].y = p->h - GAP - y * 72, boxes++;
        else
            dot_edge(p, line);
    }
    bool ok = f && pclose(f) == 0 && boxes == p->boxes;
    free(line);
    unlink(path);
    p->by = "dot";
    return ok;
}

bool
picture_layout(Picture *p, bool dot)
{
    box_sizes(p);
    if (dot && p->boxes <= DOT_MOST && layout_dot(p))
        return true;
    for (int k = 0; k < p->arrows; k++) {
        free(p->arrow[k].at);
        p->arrow[k].at = NULL;
    }
    p->w = p->h = 0;
    return layout_levels(p);
}

/* ---- SVG ---------------------------------------------------------------------------------- */

void
picture_escaped(FILE *f, const char *s)
{
    for (; *s; s++)
        if (*s == '<')
            fputs("&lt;", f);
        else if (*s == '&')
            fputs("&amp;", f);
        else if (*s == '"')
            fputs("&quot;", f);
        else if ((unsigned char)*s >= 32 || *s == '\n')
            fputc(*s, f);
}

static void
svg_arrow(const Picture *p, const Arrow *a, FILE *f)
{
    const Box *from = &p->box[a->from], *to = &p->box[a->to];
    double x = from->x, y = from->y + from->h / 2, u = to->x, v = to->y - to->h / 2;

    fprintf(f, "<path class=\"a\" marker-end=\"url(#tip)\" d=\"");
    if (a->at) {
        fprintf(f, "M%.1f %.1fC", a->at[0], a->at[1]);
        for (int k = 1; k < a->n; k++)
            fprintf(f, "%.1f %.1f ", a->at[2 * k], a->at[2 * k + 1]);
        x = a->at[2 * (a->n / 2)], y = a->at[2 * (a->n / 2) + 1];
    } else {
        double bend = (v - y) / 2 > 20 ? (v - y) / 2 : 20;
        fprintf(f, "M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f", x, y, x, y + bend, u, v - bend, u,
                v);
        x = (x + u) / 2, y = (y + v) / 2;
    }
    fprintf(f, "\"/>\n");
    if (*a->label) {
        fprintf(f, "<text class=\"l\" x=\"%.1f\" y=\"%.1f\">", x + 3, y);
        picture_escaped(f, a->label);
        fprintf(f, "</text>\n");
    }
}

static void
svg_box(const Box *b, FILE *f)
{
    double x = b->x - b->w / 2, y = b->y - b->h / 2;

    fprintf(f, "<g class=\"b\"");
    if (b->detail >= 0)
        fprintf(f, " data-k=\"%d\"", b->detail);
    fprintf(f, "><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"4\" "
            "fill=\"%s\"/>", x, y, b->w, b->h, b->fill);
    for (int k = 0; k < b->lines; k++) {
        fprintf(f, "<text x=\"%.1f\" y=\"%.1f\"%s>", x + 8, y + 17 + k * LINE,
                k ? "" : " font-weight=\"bold\"");
        picture_escaped(f, b->line[k]);
        fprintf(f, "</text>");
    }
    fprintf(f, "</g>\n");
}

/* Around the boxes of a cluster, where they stand together. */
static void
svg_clusters(const Picture *p, FILE *f)
{
    int most = 0;

    for (int k = 0; k < p->boxes; k++)
        most = p->box[k].cluster > most ? p->box[k].cluster : most;
    for (int g = 1; g <= most && !strcmp(p->by, "dot"); g++) {
        double x = 1e9, y = 1e9, u = -1, v = -1;
        for (int k = 0; k < p->boxes; k++) {
            const Box *b = &p->box[k];
            if (b->cluster != g)
                continue;
            x = b->x - b->w / 2 < x ? b->x - b->w / 2 : x;
            y = b->y - b->h / 2 < y ? b->y - b->h / 2 : y;
            u = b->x + b->w / 2 > u ? b->x + b->w / 2 : u;
            v = b->y + b->h / 2 > v ? b->y + b->h / 2 : v;
        }
        if (u > x)
            fprintf(f, "<rect class=\"c\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                    "rx=\"6\"/><text class=\"l\" x=\"%.1f\" y=\"%.1f\">group %d</text>\n", x - 7,
                    y - 7, u - x + 14, v - y + 14, x - 6, v + 19, g);
    }
}

void
picture_svg(const Picture *p, FILE *f, const char *id)
{
    fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"%s\" width=\"%.0f\" "
            "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" font-family=\"monospace\" "
            "font-size=\"%d\">\n", id, p->w, p->h, p->w, p->h, FONT);
    fprintf(f, "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
            "markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">"
            "<path d=\"M0 0L8 4L0 8z\" fill=\"#666\"/></marker>\n"
            "<style>.c{fill:#faf7ef;stroke:#caa;stroke-dasharray:4 3}.b rect{stroke:#555}"
            ".a{fill:none;stroke:#888}.l{fill:#666;font-size:10px}"
            ".hit rect{stroke:#d00;stroke-width:3}</style></defs>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<g class=\"all\">\n");
    svg_clusters(p, f);
    for (int k = 0; k < p->arrows; k++)
        svg_arrow(p, &p->arrow[k], f);
    for (int k = 0; k < p->boxes; k++)
        svg_box(&p->box[k], f);
    fprintf(f, "</g></svg>\n");
}

void
picture_end(Picture *p)
{
    for (int k = 0; k < p->arrows; k++)
        free(p->arrow[k].at);
    free(p->box);
    free(p->arrow);
    memset(p, 0, sizeof *p);
}
