/* tests/test_profile.c - the profile: launches and extents are counted, bytes and operations are
 * those of the work, the trace is JSON with an event per launch, a device's launches, errors; every
 * allocation refused.
 *
 * Guards: backends/files/profile.c, plan/tier/profile.c. */
#include <locale.h>
#include <unistd.h>
#include "core.h"
#include "tests/test.h"

enum { MOST = 64, N = 40, M = 70, K = 30 };

static char dir[64];
static float numbers[4000];

/* ---- a reader of JSON that only says whether it is some ----------------------------------- */

typedef struct { const char *p; int objects, depth; } Json;

static void json_value(Json *j);

static void
json_space(Json *j)
{
    while (*j->p == ' ' || *j->p == '\n')
        j->p++;
}

static void
json_take(Json *j, char c)
{
    json_space(j);
    if (j->p[0] == c)
        j->p++;
    else
        j->p = "";
}

static void
json_string(Json *j)
{
    json_take(j, '"');
    for (; *j->p && *j->p != '"'; j->p++)
        if ((unsigned char)*j->p < 32 || (*j->p == '\\' && !*++j->p))
            j->p = "";
    json_take(j, '"');
}

static void
json_list(Json *j, char close, bool named)
{
    j->p++;
    j->objects += named;
    for (json_space(j); *j->p && *j->p != close; json_space(j)) {
        if (named) {
            json_string(j);
            json_take(j, ':');
        }
        json_value(j);
        json_space(j);
        if (*j->p != close)
            json_take(j, ',');
    }
    json_take(j, close);
}

static void
json_value(Json *j)
{
    json_space(j);
    if (++j->depth > 50)
        j->p = "";
    else if (*j->p == '{' || *j->p == '[')
        json_list(j, *j->p == '{' ? '}' : ']', *j->p == '{');
    else if (*j->p == '"')
        json_string(j);
    else {
        char *end;

        strtod(j->p, &end);
        j->p = end == j->p ? "" : end;
    }
    j->depth--;
}

/* Objects in the text; -1: it is not JSON. */
static int
json_objects(const char *text)
{
    Json j = {text, 0, 0};

    json_value(&j);
    json_space(&j);
    return j.p > text && *j.p == 0 && j.p == text + strlen(text) ? j.objects : -1;
}

/* ---- */

static char *
read_file(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = calloc(1, 1 << 20);

    if (f) {
        size_t n = fread(text, 1, (1 << 20) - 1, f);
        text[n] = 0;
        fclose(f);
    }
    return text;
}

static char *
written(jot_Ctx *c, jot_ProfileForm form)
{
    char path[128];

    snprintf(path, sizeof path, "%s/file", dir);
    CHECK(jot_profile_write(c, form, path), "%s", jot_message(c));
    return read_file(path);
}

static jot_Ctx *
open_tcc(void)
{
    jot_Config config = {.backend = "tcc"};
    jot_Ctx *c = jot_open(&config);

    if (!jot_error(c))
        return c;
    SKIP("tcc: %s", jot_message(c));
    jot_close(c);
    return NULL;
}

static void
product(jot_Ctx *c, int64_t n)
{
    jot_Var a, b;

    jot_push(c);
    a = jot_array(c, JOT_F32, JOT_SHAPE(n, K), numbers);
    b = jot_array(c, JOT_F32, JOT_SHAPE(K, M), numbers);
    jot_data(jot_matmul(a, b));
    jot_pop(c);
}

static const jot_ProfileKernel *
find(const jot_ProfileKernel *k, int n, double flops)
{
    for (int i = 0; i < n; i++)
        if (k[i].flops == flops)
            return &k[i];
    return NULL;
}

static void
test_counts(void)
{
    jot_Ctx *c = open_tcc();
    jot_ProfileKernel kernel[MOST];
    const jot_ProfileKernel *k;
    jot_ProfileEvent event[MOST];
    uint64_t before, launches = 0;
    int n, events, plans = 0;

    if (!c)
        return;
    product(c, N);
    CHECK(jot_profile_kernels(c, kernel, MOST) == 0, "kernels before the profile began");
    CHECK(jot_profile(c, true), "%s", jot_message(c));
    before = jot_stats(c).kernels_run;
    for (int i = 0; i < 5; i++)
        product(c, N);
    product(c, N + 1);
    CHECK(jot_profile(c, false), "%s", jot_message(c));
    n = jot_profile_kernels(c, kernel, MOST);
    for (int i = 0; i < n; i++)
        launches += kernel[i].launches;
    CHECK(launches == jot_stats(c).kernels_run - before, "%d launches", (int)launches);
    k = find(kernel, n, 2.0 * N * M * K);
    CHECK(k && k->launches == 5, "a product of known operations");
    CHECK(k && k->read == 4.0 * (N * K + K * M) && k->written == 4.0 * N * M, "its bytes");
    CHECK(k && k->seconds >= 5 * k->least && k->least >= 0 && k->floor > 0, "its times");
    CHECK(k && strstr(k->what, "mul sum"), "its operators");
    k = find(kernel, n, 2.0 * (N + 1) * M * K);
    CHECK(k && k->launches == 1, "the same function with other extents");
    events = jot_profile_events(c, event, MOST);
    for (int i = 0; i < events; i++) {
        plans += event[i].kernel < 0;
        CHECK(event[i].kernel < n && event[i].start >= 0 && event[i].nanoseconds >= 0, "event %d",
              i);
    }
    CHECK(events - plans == (int)launches && plans >= 1, "%d events, %d plans", events, plans);
    product(c, N);
    CHECK(jot_profile_events(c, NULL, 0) == events, "launches after the profile's end count");
    jot_profile(c, true);
    CHECK(jot_profile_kernels(c, NULL, 0) == 0, "a new profile begins with nothing");
    jot_close(c);
}

/* User code with a quotation mark in its name; its work is not known. */
static void
user_code(jot_Ctx *c)
{
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(N), numbers), y;
    const char *const name = "x";
    jot_CodeOut out = {.name = "y", .like = "x"};
    jot_Code code;

    memset(&code, 0, sizeof code);
    code.name = "a \"<code>\"";
    code.inputs = 1;
    code.in = &x;
    code.in_names = &name;
    code.outputs = 1;
    code.out = &out;
    code.source = "for (long i = 0; i < x_n; i++) y[i] = x[i];";
    if (jot_code(c, &code, &y))
        jot_data(y);
}

static void
test_files(void)
{
    jot_Ctx *c = open_tcc();
    jot_ProfileKernel kernel[MOST];
    jot_ProfileEvent event[MOST];
    int events, plans = 0;
    char *text;

    if (!c)
        return;
    jot_profile(c, true);
    product(c, N);
    user_code(c);
    CHECK(!jot_error(c), "%s", jot_message(c));
    jot_profile(c, false);
    events = jot_profile_events(c, event, MOST);
    for (int i = 0; i < events; i++)
        plans += event[i].kernel < 0;
    text = written(c, JOT_PROFILE_TRACE);
    CHECK(events > plans && json_objects(text) == 2 + 2 * events - plans,
          "%d objects for %d events in\n%s",
          json_objects(text), events, text);
    CHECK(strstr(text, "\"a \\\"<code>") || strstr(text, "code a"), "the name of user code in\n%s",
          text);
    free(text);
    text = written(c, JOT_PROFILE_TABLE);
    CHECK(strstr(text, "mul sum") && strstr(text, "GFLOP/s"), "%s", text);
    CHECK(jot_profile_kernels(c, kernel, MOST) >= 2, "kernels");
    free(text);
    text = written(c, JOT_PROFILE_ROOFLINE);
    CHECK(!strncmp(text, "<svg", 4) && strstr(text, "</svg>") && strstr(text, "<circle"), "%s",
          text);
    CHECK(!strstr(text, "nan") && !strstr(text, "inf"), "%s", text);
    free(text);
    jot_close(c);
}

/* On a device each launch is waited for and counted, replayed plans among them; no floor is known,
 * and no roof. */
static void
test_device(void)
{
    jot_Config config = {.backend = "opencl"};
    jot_Ctx *c = jot_open(&config);
    jot_ProfileKernel kernel[MOST];
    uint64_t before, launches = 0;
    char *text;
    int n;

    if (jot_error(c)) {
        SKIP("opencl: %s", jot_message(c));
        jot_close(c);
        return;
    }
    product(c, N);
    product(c, N);
    CHECK(jot_profile(c, true), "%s", jot_message(c));
    before = jot_stats(c).kernels_run;
    for (int i = 0; i < 5; i++)
        product(c, N);
    n = jot_profile_kernels(c, kernel, MOST);
    for (int i = 0; i < n; i++) {
        launches += kernel[i].launches;
        CHECK(kernel[i].least > 0 && kernel[i].floor == 0, "%s: %g s, floor %g", kernel[i].what,
              kernel[i].least, kernel[i].floor);
    }
    CHECK(n > 0 && launches == jot_stats(c).kernels_run - before && launches >= 5,
          "%d launches in the profile of %d kernels", (int)launches, n);
    CHECK(find(kernel, n, 2.0 * N * M * K), "a product of known operations");
    text = written(c, JOT_PROFILE_TABLE);
    CHECK(strstr(text, "mul sum") && strstr(text, "a device"), "%s", text);
    free(text);
    text = written(c, JOT_PROFILE_TRACE);
    CHECK(json_objects(text) > 5, "%s", text);
    free(text);
    jot_profile(c, false);
    n = jot_profile_events(c, NULL, 0);
    product(c, N);
    CHECK(jot_profile_events(c, NULL, 0) == n, "launches after the profile's end count");
    CHECK(!jot_profile_write(c, JOT_PROFILE_ROOFLINE, "/dev/null") && jot_error(c) == JOT_EUSE
          && strstr(jot_message(c), "no roofline"), "%s", jot_message(c));
    jot_close(c);
}

/* No label of a picture is cut at its edges: letters are some 7 wide. */
static void
labels_inside(const char *svg)
{
    double width = atof(strstr(svg, "width=\"") + 7);
    int labels = 0;

    for (const char *at = svg; (at = strstr(at, "<text x=\"")) != NULL; at++) {
        double x = atof(at + 9), length;
        const char *from = strchr(at, '>') + 1, *end = strchr(from, '<');
        const char *anchor = strstr(at, "text-anchor=\"end");
        bool left = anchor && anchor < from;

        length = 7 * (double)(end - from);
        CHECK(left ? x - length >= 0 : x + length <= width, "a label at %g of %g, %s: %.*s", x, width,
              left ? "leftwards" : "rightwards", (int)(end - from), from);
        labels++;
    }
    CHECK(labels > 10, "%d labels", labels);
}

/* Kernels with long names, at both sides of the picture. */
static void
test_labels(void)
{
    jot_Ctx *c = open_tcc();
    jot_Var x, y, z;
    char *text;

    if (!c)
        return;
    x = y = z = jot_array(c, JOT_F32, JOT_SHAPE(4096), NULL);
    for (int k = 0; k < 40; k++) {
        y = jot_tanh(jot_exp(y));
        z = k < 30 ? jot_sub(jot_neg(jot_maximum(z, x)), x) : z;
    }
    jot_profile(c, true);
    jot_run(c, JOT_VARS(jot_sum(y, JOT_ALL_DIMS)));
    jot_run(c, JOT_VARS(z));
    product(c, N);
    text = written(c, JOT_PROFILE_ROOFLINE);
    labels_inside(text);
    free(text);
    jot_close(c);
}

/* In a program that writes numbers with a comma: a picture's have a point, the program's stay. */
static void
test_comma(void)
{
    jot_Ctx *c;
    char command[200], number[20];
    char *text;

    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de >/dev/null 2>&1", dir);
    setenv("LOCPATH", dir, 1);
    if (system(command) || !setlocale(LC_NUMERIC, "de")) {
        SKIP("a locale with a comma: localedef makes none here");
        return;
    }
    if ((c = open_tcc()) != NULL) {
        jot_profile(c, true);
        product(c, N);
        text = written(c, JOT_PROFILE_ROOFLINE);
        CHECK(strstr(text, "cx=\"") && strchr(strstr(text, "cx=\""), '.') ==
              strstr(text, "cx=\"") + 4 + strspn(strstr(text, "cx=\"") + 4, "0123456789"), "%s",
              text);
        free(text);
        jot_close(c);
    }
    snprintf(number, sizeof number, "%.1f", 0.5);
    CHECK(!strcmp(number, "0,5"), "the program's own number: %s", number);
    setlocale(LC_NUMERIC, "C");
}

static void
test_errors(void)
{
    jot_Ctx *c = open_tcc();

    CHECK(!jot_profile(NULL, true) && jot_profile_kernels(NULL, NULL, 0) == 0, "no context");
    if (!c)
        return;
    CHECK(!jot_profile_write(c, JOT_PROFILE_TABLE, "x") && strstr(jot_message(c), "jot_profile"),
          "%s",
          jot_message(c));
    jot_clear(c);
    jot_profile(c, true);
    CHECK(!jot_profile_write(c, JOT_PROFILE_TABLE, "/nowhere/at/all")
          && jot_error(c) == JOT_EIO && strstr(jot_message(c), "/nowhere"), "%s", jot_message(c));
    jot_clear(c);
    CHECK(!jot_profile_write(c, (jot_ProfileForm)9, "x") && strstr(jot_message(c), "form"), "%s",
          jot_message(c));
    jot_clear(c);
    CHECK(!jot_profile_write(c, JOT_PROFILE_TABLE, NULL), "no path");
    jot_close(c);
}

/* ---- memory ------------------------------------------------------------------------------- */

static long left; /* allocations that are granted; < 0: all */

static void *
counted(void *ud, void *p, size_t old_nbytes, size_t new_nbytes)
{
    void *q;

    (void)ud;
    if (!new_nbytes) {
        free(p);
        return NULL;
    }
    if (left == 0)
        return NULL;
    left -= left > 0;
    q = aligned_alloc(64, (new_nbytes + 63) / 64 * 64);
    if (q && p)
        memcpy(q, p, old_nbytes < new_nbytes ? old_nbytes : new_nbytes);
    if (q)
        free(p);
    return q;
}

static int64_t
ticks(void *ud)
{
    return ++*(int64_t *)ud;
}

/* With the n-th allocation after the profile's start refused the run fails or is right. */
static void
test_refused(void)
{
    for (long n = 0; n < 400; n += test_many(7, 3)) {
        int64_t clock = 0;
        jot_Config config = {.backend = "tcc"};
        jot_Ctx *c;
        jot_Var x;

        config.hooks.realloc = counted;
        config.hooks.now = ticks;
        config.hooks.ud = &clock;
        left = -1;
        c = jot_open(&config);
        if (jot_error(c)) {
            SKIP("tcc: %s", jot_message(c));
            jot_close(c);
            return;
        }
        left = n;
        x = jot_sum(jot_array(c, JOT_F32, JOT_SHAPE(N), numbers), JOT_ALL_DIMS);
        if (jot_profile(c, true) && jot_item(x) != 0)
            CHECK(jot_error(c) == JOT_EMEM, "%ld: %s", n, jot_message(c));
        left = -1;
        jot_clear(c);
        CHECK(jot_item(jot_sum(jot_full(c, JOT_F32, JOT_SHAPE(N), 2), JOT_ALL_DIMS)) == 2 * N,
              "%ld", n);
        jot_close(c);
    }
}

int
main(void)
{
    char command[100];

    snprintf(dir, sizeof dir, "/tmp/jot-profile-XXXXXX");
    if (!mkdtemp(dir))
        return 2;
    test_counts();
    test_files();
    test_device();
    test_labels();
    test_comma();
    test_errors();
    test_refused();
    snprintf(command, sizeof command, "rm -rf %s", dir);
    CHECK(!system(command), "%s is left", dir);
    return DONE();
}
