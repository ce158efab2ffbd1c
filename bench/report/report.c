/* bench/report/report.c - JSON lines of the bench to a table and a picture. Needs cJSON.
 *
 *     report PICTURE.svg [--cold] LINES.jsonl...
 *
 * A cell is the median over a system's turns. The table goes to standard output, in Markdown:
 *
 *     workload | floor | jot/1 [share] | ... | torch-eager/1 (ratio) | ... | best peer / jot
 *
 * system/threads; milliseconds; the floor on the most threads; in brackets the floor on as many
 * threads over jot's time; in parentheses a peer's time over jot's on as many threads; last, the
 * fastest peer's time over that of the fastest jot; a peer that was also asked for the same task
 * from and to row-major arrays (onednn, onednn-rowmajor) counts by that. The picture has a bar of
 * the last column per workload, sorted, on a logarithmic scale.
 *
 * Read after: bench/bench.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cjson/cJSON.h>

enum { MOST_ROWS = 200, MOST_COLUMNS = 24, MOST_TURNS = 16 };

typedef struct { double s[MOST_TURNS]; int n; char error[80]; } Cell;
typedef struct {
    char name[64];
    Cell cell[MOST_COLUMNS];
    double floor[MOST_COLUMNS]; /* jot's columns only */
    double ratio;               /* fastest peer / fastest jot; 0: unknown */
} Row;
typedef struct { char peer[32]; int threads; } Column;

static Row rows[MOST_ROWS];
static Column columns[MOST_COLUMNS];
static int nrows, ncolumns;

/* ---- reading ------------------------------------------------------------------------------ */

static Row *
row_of(const char *name)
{
    for (int k = 0; k < nrows; k++)
        if (!strcmp(rows[k].name, name))
            return &rows[k];
    if (nrows == MOST_ROWS)
        return NULL;
    snprintf(rows[nrows].name, sizeof rows->name, "%s", name);
    return &rows[nrows++];
}

static int
column_of(const char *peer, int threads)
{
    for (int k = 0; k < ncolumns; k++)
        if (!strcmp(columns[k].peer, peer) && columns[k].threads == threads)
            return k;
    if (ncolumns == MOST_COLUMNS)
        return -1;
    snprintf(columns[ncolumns].peer, sizeof columns->peer, "%s", peer);
    columns[ncolumns].threads = threads;
    return ncolumns++;
}

static double
number(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);

    return cJSON_IsNumber(v) ? v->valuedouble : 0;
}

static const char *
text(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);

    return cJSON_IsString(v) ? v->valuestring : "";
}

static void
take(const cJSON *o)
{
    Row *r = row_of(text(o, "w"));
    int k = column_of(text(o, "peer"), (int)number(o, "threads"));

    if (!r || k < 0)
        return;
    Cell *c = &r->cell[k];
    if (number(o, "s") > 0 && c->n < MOST_TURNS)
        c->s[c->n++] = number(o, "s");
    if (number(o, "floor") > 0)
        r->floor[k] = number(o, "floor");
    snprintf(c->error, sizeof c->error, "%s", text(o, "error"));
}

/* A line of a cold run is a row of its own table, printed as it comes. */
static void
take_cold(const cJSON *o)
{
    printf("| %s | %s/%d | %s | %.0f | %.0f | %.3g |\n", text(o, "w"), text(o, "peer"),
           (int)number(o, "threads"), text(o, "cold"), 1e3 * number(o, "first"),
           1e3 * number(o, "full"), 1e3 * number(o, "s"));
}

static int
read_lines(const char *path, void (*each)(const cJSON *))
{
    static char line[65536];
    FILE *f = fopen(path, "r");

    if (!f)
        return perror(path), 1;
    while (fgets(line, sizeof line, f)) {
        cJSON *o = cJSON_Parse(line);

        if (o)
            each(o);
        else
            fprintf(stderr, "report: %s: not JSON: %.60s\n", path, line);
        cJSON_Delete(o);
    }
    fclose(f);
    return 0;
}

/* ---- numbers ------------------------------------------------------------------------------ */

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Seconds, 0: none. */
static double
median(Cell *c)
{
    qsort(c->s, (size_t)c->n, sizeof *c->s, by_value);
    return c->n == 0 ? 0 : c->n % 2 ? c->s[c->n / 2] : (c->s[c->n / 2 - 1] + c->s[c->n / 2]) / 2;
}

static int
is_jot(int column)
{
    return !strcmp(columns[column].peer, "jot");
}

/* The column's figure is of an easier task, of which another column has the whole. */
static int
easier(Row *r, int column)
{
    char whole[sizeof columns->peer + 16];

    snprintf(whole, sizeof whole, "%.31s-rowmajor", columns[column].peer);
    for (int k = 0; k < ncolumns; k++)
        if (!strcmp(columns[k].peer, whole) && columns[k].threads == columns[column].threads &&
            median(&r->cell[k]) > 0)
            return 1;
    return 0;
}

static double
fastest(Row *r, int jot)
{
    double best = 0;

    for (int k = 0; k < ncolumns; k++) {
        double s = median(&r->cell[k]);

        if (is_jot(k) == jot && s > 0 && (best == 0 || s < best) && !easier(r, k))
            best = s;
    }
    return best;
}

/* ---- the table ---------------------------------------------------------------------------- */

static void
print_ms(double s)
{
    printf(s <= 0 ? "-" : s < 0.0999 ? "%.3g" : "%.0f", 1e3 * s);
}

static void
print_jot(Row *r, int k)
{
    double s = median(&r->cell[k]);

    printf(" ");
    if (s <= 0 && r->cell[k].error[0])
        printf("%s", r->cell[k].error);
    else
        print_ms(s);
    if (s > 0 && r->floor[k] > 0)
        printf(" [%.2g]", r->floor[k] / s);
    printf(" |");
}

/* On the most threads: the last of jot's columns. */
static double
last_floor(const Row *r)
{
    double floor = 0;

    for (int k = 0; k < ncolumns; k++)
        floor = r->floor[k] > 0 ? r->floor[k] : floor;
    return floor;
}

static void
print_peer(Row *r, int k)
{
    double s = median(&r->cell[k]), mine = 0;

    for (int j = 0; j < ncolumns; j++)
        if (is_jot(j) && columns[j].threads == columns[k].threads)
            mine = median(&r->cell[j]);
    printf(" ");
    print_ms(s);
    if (s > 0 && mine > 0)
        printf(" (%.2g)", s / mine);
    printf(" |");
}

static void
table(void)
{
    printf("| ms | floor |");
    for (int k = 0; k < ncolumns; k++)
        printf(" %s/%d |", columns[k].peer, columns[k].threads);
    printf(" best peer / jot |\n|---|---|");
    for (int k = 0; k < ncolumns; k++)
        printf("---|");
    printf("---|\n");
    for (int i = 0; i < nrows; i++) {
        Row *r = &rows[i];

        printf("| %s | ", r->name);
        print_ms(last_floor(r));
        printf(" |");
        for (int k = 0; k < ncolumns; k++)
            if (is_jot(k))
                print_jot(r, k);
            else
                print_peer(r, k);
        printf(r->ratio > 0 ? " %.2g |\n" : " - |\n", r->ratio);
    }
}

static void
summary(void)
{
    double sum = 0;
    int n = 0, ahead = 0;

    for (int i = 0; i < nrows; i++)
        if (rows[i].ratio > 0) {
            sum += log(rows[i].ratio);
            ahead += rows[i].ratio >= 1;
            n++;
        }
    if (n)
        printf("\n%d workloads compared, jot ahead in %d; geometric mean of best peer / jot: "
               "%.3g\n", n, ahead, exp(sum / n));
}

/* ---- the picture -------------------------------------------------------------------------- */

static int
by_ratio(const void *a, const void *b)
{
    return -by_value(&((const Row *)a)->ratio, &((const Row *)b)->ratio);
}

enum { LEFT = 250, RIGHT = 60, WIDE = 640, BAR = 15, TOP = 64 };

static double
place(double ratio, int low, int high)
{
    return LEFT + WIDE * (log10(ratio) - low) / (high - low);
}

static void
bar(FILE *f, const Row *r, int k, int low, int high)
{
    double one = place(1, low, high), at = place(r->ratio, low, high);
    int y = TOP + k * BAR, ahead = r->ratio >= 1;

    fprintf(f, "<text x='%d' y='%d' text-anchor='end'>%s</text>\n", LEFT - 8, y + 11, r->name);
    fprintf(f, "<rect x='%.1f' y='%d' width='%.1f' height='%d' fill='%s'/>\n", ahead ? one : at,
            y + 2, ahead ? at - one : one - at, BAR - 4, ahead ? "#2b7a78" : "#d1603d");
    fprintf(f, "<text x='%.1f' y='%d' text-anchor='%s' fill='#444'>%.2g</text>\n",
            ahead ? at + 4 : at - 4, y + 11, ahead ? "start" : "end", r->ratio);
}

static int
picture(const char *path)
{
    FILE *f = fopen(path, "w");
    int n = 0, low = -1, high = 1;

    if (!f)
        return perror(path), 1;
    qsort(rows, (size_t)nrows, sizeof *rows, by_ratio);
    for (; n < nrows && rows[n].ratio > 0; n++) {
        while (rows[n].ratio < 1.6 * pow(10, low))
            low--;
        while (rows[n].ratio > pow(10, high) / 1.6)
            high++;
    }
    fprintf(f, "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' "
            "font-family='sans-serif' font-size='11'>\n"
            "<rect width='100%%' height='100%%' fill='white'/>\n"
            "<text x='%d' y='22' font-size='15'>fastest peer's time over jot's fastest</text>\n",
            LEFT + WIDE + RIGHT, TOP + n * BAR + 20, LEFT);
    fprintf(f, "<text x='%d' y='40' fill='#444'>right of 1: jot is faster; logarithmic</text>\n",
            LEFT);
    for (int e = low; e <= high; e++) {
        double x = place(pow(10, e), low, high);

        fprintf(f, "<line x1='%.1f' x2='%.1f' y1='%d' y2='%d' stroke='%s'/>\n"
                "<text x='%.1f' y='%d' text-anchor='middle' fill='#444'>%g</text>\n", x, x, TOP - 4,
                TOP + n * BAR, e ? "#ddd" : "#888", x, TOP - 8, pow(10, e));
    }
    for (int k = 0; k < n; k++)
        bar(f, &rows[k], k, low, high);
    fprintf(f, "</svg>\n");
    return fclose(f) != 0;
}

int
main(int argc, char **argv)
{
    int k = 2, cold = argc > 2 && !strcmp(argv[2], "--cold");

    if (argc < 3)
        return fprintf(stderr, "report PICTURE.svg [--cold] LINES.jsonl...\n"), 2;
    if (cold)
        printf("| workload | system/threads | start | first result, ms | full speed, ms | run, ms |"
               "\n|---|---|---|---|---|---|\n");
    for (k += cold; k < argc; k++)
        if (read_lines(argv[k], cold ? take_cold : take))
            return 1;
    if (cold)
        return 0;
    for (k = 0; k < nrows; k++) {
        double mine = fastest(&rows[k], 1), peer = fastest(&rows[k], 0);

        rows[k].ratio = mine > 0 && peer > 0 ? peer / mine : 0;
    }
    table();
    summary();
    return picture(argv[1]);
}
