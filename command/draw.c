/* command/draw.c - jot draw: a model's graph, and the kernels that it becomes, as a picture.
 *
 *     FILE.html     both, in one file without a network: zoom with the wheel, drag, search, and
 *                   what a box is made of, with the C of its kernel, beside it
 *     FILE.svg      the kernels, or with --graph the graph
 *
 * It is evaluated once with the dumps on, and called some times with the profile on. A kernel's box
 * says its bytes, its time, and the least that these take on this machine; its colour is the ratio.
 *
 * Read before: dumps.h, picture.h. */
#include "command/command.h"
#include "command/dumps.h"
#include "command/picture.h"
#include "command/page.h"

typedef struct { char *p; size_t n, room; bool on, bad; } Log;

static void
keep(void *user, const char *text, size_t nbytes)
{
    Log *l = user;

    if (!l->on)
        return;
    if (l->n + nbytes + 1 > l->room) {
        char *more = realloc(l->p, 2 * l->room + nbytes + 1);
        if (!more) {
            l->bad = true;
            return;
        }
        l->p = more;
        l->room = 2 * l->room + nbytes + 1;
    }
    memcpy(l->p + l->n, text, nbytes);
    l->p[l->n += nbytes] = 0;
}

typedef struct {
    Dumps d;
    jot_ProfileKernel *kernel;
    int kernels;
    Picture graph, steps;
} Drawing;

static const jot_ProfileKernel *
timed(const Drawing *w, const char *function)
{
    for (int k = 0; k < w->kernels; k++)
        if (!strcmp(w->kernel[k].name, function))
            return &w->kernel[k];
    return NULL;
}

/* Green at the floor, by way of yellow to red at ten times as much. */
static const char *
colour_of(const jot_ProfileKernel *k)
{
    static const char *const colours[] = {"#b7e4b0", "#d9efa5", "#fbf3a6", "#fdd692", "#fbb38a",
                                          "#f4907f"};
    double ratio = k && k->floor > 0 ? k->least / k->floor : 0;

    return !k || k->floor <= 0 ? "#e4e4ea" : ratio < 1.5 ? colours[0] : ratio < 2 ? colours[1]
         : ratio < 3 ? colours[2] : ratio < 5 ? colours[3] : ratio < 10 ? colours[4] : colours[5];
}

static void
bytes_text(char to[24], double n)
{
    if (n >= 10e6)
        snprintf(to, 24, "%.0f MB", n / 1e6);
    else if (n >= 10e3)
        snprintf(to, 24, "%.0f KB", n / 1e3);
    else
        snprintf(to, 24, "%.0f B", n);
}

static void
time_lines(Box *b, const jot_ProfileKernel *k)
{
    char bytes[24];

    if (!k) {
        picture_line(b, "not in every run");
        return;
    }
    bytes_text(bytes, k->read + k->written);
    picture_line(b, "%s, %.2f us", bytes, k->least * 1e6);
    if (k->floor > 0)
        picture_line(b, "floor %.2f us", k->floor * 1e6);
}

/* ---- the two pictures --------------------------------------------------------------------- */

static const char *
name_or(const DumpNode *n, const char *otherwise)
{
    return n->name ? n->name : otherwise;
}

static bool
draw_graph(Drawing *w)
{
    const Dumps *d = &w->d;

    for (int k = 0; k < d->nodes; k++) {
        const DumpNode *n = &d->node[k];
        Box *b = picture_box(&w->graph);
        if (!b)
            return false;
        picture_line(b, "%s", !strcmp(n->op, "leaf") ? name_or(n, "leaf") : n->op);
        picture_line(b, "%s", n->shape);
        if (n->name && strcmp(n->op, "leaf"))
            picture_line(b, "%s", n->name);
        b->cluster = n->group;
        b->detail = d->steps + k;
        b->fill = !strcmp(n->op, "leaf") ? "#cfe2f7" : n->stored ? "#f7dfb5" : n->group ? "#fbf3df"
                                                                            : "#f2f2f2";
    }
    for (int k = 0; k < d->nodes; k++)
        for (int i = 0; i < d->node[k].nreads; i++) {
            int from = dumps_node(d, d->node[k].reads[i]);
            if (from >= 0 && !picture_arrow(&w->graph, from, k))
                return false;
        }
    return true;
}

/* Boxes: steps by their numbers, then leaves and results that a step has to do with. */
static bool
draw_steps(Drawing *w)
{
    const Dumps *d = &w->d;
    int *box = malloc(sizeof *box * (size_t)(d->vars + 1));

    for (int v = 0; box && v < d->vars; v++) { /* leaves first: arrows go to later boxes */
        int at = d->var[v].kind == 'l' ? dumps_node(d, d->var[v].node) : -1;
        Box *b = at >= 0 ? picture_box(&w->steps) : NULL;
        box[v] = b ? w->steps.boxes - 1 : -1;
        if (!b)
            continue;
        picture_line(b, "%s", name_or(&d->node[at], "leaf"));
        picture_line(b, "%s", d->node[at].shape);
        b->fill = "#cfe2f7";
        b->detail = d->steps + at;
    }
    int first = w->steps.boxes;
    for (int k = 0; box && k < d->steps; k++) {
        const jot_ProfileKernel *t = timed(w, d->step[k].function);
        Box *b = picture_box(&w->steps);
        if (!b)
            break;
        picture_line(b, "%d: %s", k, d->step[k].what ? d->step[k].what : "?");
        time_lines(b, t);
        b->fill = colour_of(t);
        b->detail = k;
    }
    for (int k = 0; box && k < d->steps; k++)
        for (int i = 0; i < d->step[k].vars; i++) {
            int v = d->step[k].var[i], from = box[v];
            for (int by = 0; by < k && d->var[v].kind != 'l'; by++)
                from = dumps_writes(d, by, v) ? first + by : from;
            Arrow *a = from >= 0 ? picture_arrow(&w->steps, from, first + k) : NULL;
            if (a && d->var[v].bytes > 0)
                bytes_text(a->label, d->var[v].bytes);
        }
    free(box);
    return box != NULL;
}

/* ---- files -------------------------------------------------------------------------------- */

static void
step_detail(const Drawing *w, int k, FILE *f)
{
    const DumpStep *s = &w->d.step[k];
    const jot_ProfileKernel *t = timed(w, s->function);

    fprintf(f, "step %d: ", k);
    picture_escaped(f, s->what ? s->what : "");
    fprintf(f, "\n%s\n", s->function);
    if (s->group)
        fprintf(f, "group %d over %s\n", s->group, w->d.group[s->group].over);
    if (t)
        fprintf(f, "read %.0f bytes, written %.0f, %.0f operations\n%.3f us, the least of %llu; "
                "floor %.3f us\n", t->read, t->written, t->flops, t->least * 1e6,
                (unsigned long long)t->launches, t->floor * 1e6);
    fputc('\n', f);
    picture_escaped(f, s->text ? s->text : "its text was not printed");
}

static void
node_detail(const Drawing *w, int k, FILE *f)
{
    const DumpNode *n = &w->d.node[k];
    int step = n->group ? w->d.group[n->group].step : -1;

    fprintf(f, "%%%d = ", n->id);
    picture_escaped(f, n->line);
    if (n->group)
        fprintf(f, "\n%s in group %d", n->stored ? "stored" : "inside", n->group);
    else if (strcmp(n->op, "leaf"))
        fprintf(f, "\nin each group that needs it");
    fprintf(f, "\n\n");
    if (step >= 0)
        step_detail(w, step, f);
}

static void
write_page(const Drawing *w, const char *title, FILE *f)
{
    fprintf(f, "<!doctype html>\n<html><head><meta charset=\"utf-8\"><title>");
    picture_escaped(f, title);
    fprintf(f, "</title>\n<style>%s</style></head>\n<body>\n<div id=\"bar\"><b>", page_style);
    picture_escaped(f, title);
    fprintf(f, "</b> <button id=\"k\">kernels</button> <button id=\"g\">graph</button> "
            "<input id=\"q\" placeholder=\"search\"> <span id=\"n\"></span></div>\n"
            "<div id=\"view\">\n");
    picture_svg(&w->steps, f, "kernels");
    picture_svg(&w->graph, f, "graph");
    fprintf(f, "</div>\n<pre id=\"detail\">a box under the pointer is told of here; a click keeps "
            "it</pre>\n<div id=\"details\" hidden>\n");
    for (int k = 0; k < w->d.steps; k++) {
        fprintf(f, "<pre>");
        step_detail(w, k, f);
        fprintf(f, "</pre>\n");
    }
    for (int k = 0; k < w->d.nodes; k++) {
        fprintf(f, "<pre>");
        node_detail(w, k, f);
        fprintf(f, "</pre>\n");
    }
    fprintf(f, "</div>\n<script>%s</script>\n</body></html>\n", page_script);
}

/* Evaluated with dumps, then called with the profile on. */
static int
look(const Args *a, jot_Ctx *c, Log *log, Drawing *w)
{
    int64_t batch = 0;
    Values v;
    Model m;
    int code;

    if (args_has(a, "batch") && !args_numbers(a, "batch", "1", 1, &batch, 1))
        return WRONG_USE;
    code = model_open(&m, a, c, a->file[0], batch);
    if (code)
        return code;
    log->on = true;
    bool ok = jot_run(c, m.outputs);
    log->on = false;
    model_close(&m);
    if (!ok)
        return complain_of(a, c);
    code = model_open(&m, a, c, a->file[0], batch);
    if (code)
        return code;
    jot_Func f = jot_compile(c, m.inputs, m.outputs);
    code = jot_func_ok(f) ? values_open(&v, a, &m, true) : complain_of(a, c);
    if (!code) {
        ok = jot_call(f, (jot_Ins){v.nin, v.in}, (jot_Outs){v.nout, v.out}) && jot_profile(c, true);
        for (int k = 0; ok && k < 10; k++)
            ok = jot_call(f, (jot_Ins){v.nin, v.in}, (jot_Outs){v.nout, v.out});
        w->kernels = ok && jot_profile(c, false) ? jot_profile_kernels(c, NULL, 0) : 0;
        w->kernel = malloc(sizeof *w->kernel * (size_t)(w->kernels + 1));
        if (w->kernel)
            jot_profile_kernels(c, w->kernel, w->kernels);
        code = ok && w->kernel ? DONE_WELL : complain_of(a, c);
        values_close(&v);
    }
    jot_func_free(f);
    model_close(&m);
    return code;
}

/* Beside its place, then there: a picture that is there already stays where this one fails. */
static int
write_picture(const Args *a, const Drawing *w, const char *out)
{
    size_t room = strlen(out) + sizeof ".part";
    char *beside = malloc(room);
    FILE *f;
    bool whole;

    if (!beside)
        return complain(a, FAILED, "no memory for the picture");
    snprintf(beside, room, "%s.part", out);
    f = fopen(beside, "w");
    if (f && ends_with(out, ".svg"))
        picture_svg(args_has(a, "graph") ? &w->graph : &w->steps, f, "picture");
    else if (f)
        write_page(w, a->file[0], f);
    whole = f && !(ferror(f) | fclose(f)) && !rename(beside, out);
    if (f && !whole)
        remove(beside);
    free(beside);
    return whole ? DONE_WELL
                 : complain(a, WRONG_FILE, f ? "%s: not all of it could be written"
                                             : "%s: it cannot be written", out);
}

static int
draw_file(const Args *a, Drawing *w, const char *out)
{
    bool dot = !args_has(a, "levels");
    int code;

    if (!draw_graph(w) || !draw_steps(w) || !picture_layout(&w->graph, dot)
        || !picture_layout(&w->steps, dot))
        return complain(a, FAILED, "no memory for the picture");
    code = write_picture(a, w, out);
    if (code)
        return code;
    if (a->json) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "file", out);
        cJSON_AddStringToObject(o, "layout", w->steps.by);
        cJSON_AddNumberToObject(o, "nodes", w->d.nodes);
        cJSON_AddNumberToObject(o, "groups", w->d.groups ? w->d.groups - 1 : 0);
        cJSON_AddNumberToObject(o, "kernels", w->d.steps);
        json_say(o);
    } else
        printf("%s: %d nodes, %d groups, %d kernels, laid out by %s\n", out, w->d.nodes,
               w->d.groups ? w->d.groups - 1 : 0, w->d.steps, w->steps.by);
    return DONE_WELL;
}

int
command_draw(const Args *a)
{
    const char *out = args_text(a, "out", NULL);
    Log log = {NULL, 0, 0, false, false};
    jot_Config config;
    Drawing w;
    int code;

    if (!out)
        return complain(a, WRONG_USE, "where to? -o FILE.html or -o FILE.svg");
    if (!ends_with(out, ".html") && !ends_with(out, ".svg"))
        return complain(a, WRONG_USE, "-o %s: a file ending in .html or .svg asked", out);
    memset(&w, 0, sizeof w);
    memset(&config, 0, sizeof config);
    config.backend = args_text(a, "backend", NULL);
    config.deterministic = 1; /* one compiler: the code that is drawn is the code that stays */
    config.dump = "gfpc";
    config.hooks.log = keep;
    config.hooks.ud = &log;
    jot_Ctx *c = jot_open(&config);
    code = c && !jot_error(c) ? look(a, c, &log, &w)
                              : complain(a, FAILED, "%s", c ? jot_message(c) : "out of memory");
    if (!code && (log.bad || !dumps_read(&w.d, log.p)))
        code = complain(a, FAILED, "no memory for what the engine says");
    else if (!code && !w.d.steps)
        code = complain(a, FAILED, "%s has no kernels to draw: --backend cpu", jot_backend(c));
    if (!code)
        code = draw_file(a, &w, out);
    dumps_end(&w.d);
    picture_end(&w.graph);
    picture_end(&w.steps);
    free(w.kernel);
    jot_close(c);
    return code;
}
