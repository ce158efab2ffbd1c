/* command/run.c - jot run, jot check: a model once, on elements from files.
 *
 * Read before: values.c. After: bench.c. */
#include "command/command.h"
#include <math.h>

typedef struct { jot_Ctx *c; Model m; Values v; double ready, seconds; char why[300]; } Once;

static void
once_close(Once *o)
{
    values_close(&o->v);
    model_close(&o->m);
    jot_close(o->c);
}

/* Of bounds: what each extent is of what it may be, and whether sizes have plans of their own. */
static void
open_tell(const Once *o, cJSON *json)
{
    cJSON *list = json && o->m.nbounds ? cJSON_AddObjectToObject(json, "open") : NULL;

    for (int b = 0; b < o->m.nbounds; b++) {
        const jot_Extent *e = &o->m.bound[b];
        if (list)
            cJSON_AddNumberToObject(list, e->name, (double)o->m.extent[b]);
        else
            printf("%s%s %lld of %lld to %lld", b ? ", " : "one function: ", e->name,
                   (long long)o->m.extent[b], (long long)e->least, (long long)e->most);
    }
    if (list)
        cJSON_AddStringToObject(json, "open_why", o->why);
    else if (o->m.nbounds)
        printf("%s%s\n", *o->why ? "; " : "", o->why);
}

/* Loaded, compiled, and called once. */
static int
once_open(Once *o, const Args *a)
{
    int64_t batch = 0;
    int code;
    double start = seconds_now();

    memset(o, 0, sizeof *o);
    if (args_has(a, "batch") && !args_numbers(a, "batch", "1", 1, &batch, 1))
        return WRONG_USE;
    o->c = open_context(a, 0);
    if (!o->c)
        return FAILED;
    code = model_open(&o->m, a, o->c, a->file[0], batch);
    if (!code) {
        jot_Func f = model_compile(&o->m);
        code = jot_func_ok(f) ? values_open(&o->v, a, &o->m, false) : complain_of(a, o->c);
        o->ready = seconds_now();
        if (!code && !model_call(&o->m, f, &o->v))
            code = complain_of(a, o->c);
        if (!code && o->m.nbounds)
            snprintf(o->why, sizeof o->why, "%s", jot_open_why(f));
        o->seconds = seconds_now() - o->ready;
        o->ready -= start;
        jot_func_free(f);
    }
    return code;
}

int
command_run(const Args *a)
{
    Once o;
    int code = once_open(&o, a);
    cJSON *json = a->json ? cJSON_CreateObject() : NULL;

    if (!code)
        code = values_write(&o.v, a, &o.m);
    if (!code && json) {
        cJSON_AddNumberToObject(json, "seconds_to_load", o.ready);
        cJSON_AddNumberToObject(json, "seconds", o.seconds);
    }
    if (!code) {
        values_tell(&o.v, &o.m, json);
        open_tell(&o, json);
    }
    if (!code && json)
        json_say(json);
    else
        cJSON_Delete(json);
    if (!code && !json)
        printf("loaded and compiled in %.3f s, run in %.3f ms\n", o.ready, o.seconds * 1e3);
    once_close(&o);
    return code;
}

/* ---- check -------------------------------------------------------------------------------- */

typedef struct { double most, at, got, want; int64_t beyond, nan; } Difference;

/* By how much y is off, relative to |want| and a hundredth of the greatest |want|: within 1e-4 is
 * 1e-4 of the element and 1e-6 of the greatest, some roundings of f32. */
static void
compare(const double *got, const double *want, int64_t n, double tolerance, Difference *d)
{
    double size = 0;

    memset(d, 0, sizeof *d);
    for (int64_t i = 0; i < n; i++)
        size = fabs(want[i]) > size && isfinite(want[i]) ? fabs(want[i]) : size;
    for (int64_t i = 0; i < n; i++) {
        double off = got[i] == want[i] || (isnan(got[i]) && isnan(want[i])) ? 0
                   : fabs(got[i] - want[i]) / (fabs(want[i]) + size / 100);
        if (isnan(off) || isinf(off))
            off = INFINITY;
        d->beyond += off > tolerance;
        if (off > d->most)
            d->most = off, d->at = (double)i, d->got = got[i], d->want = want[i];
    }
}

/* One output against its file. */
static int
check_output(const Args *a, Once *o, int k, const char *path, double tolerance, cJSON *list)
{
    jot_Var like = o->m.outputs.v[k], want = value_read(a, o->c, path, like), v[2];
    const char *name = o->m.output_names.v[k];
    Difference d;

    if (!jot_ok(want))
        return WRONG_FILE;
    v[0] = jot_cast(jot_array(o->c, jot_dtype(like), jot_shape(like), o->v.out[k].data), JOT_F64);
    v[1] = jot_cast(want, JOT_F64);
    if (!jot_run(o->c, jot_vars(2, v)))
        return complain_of(a, o->c);
    compare(jot_data(v[0]), jot_data(v[1]), jot_nelem(like), tolerance, &d);
    if (list) {
        cJSON *one = json_var(name, like);
        cJSON_AddNumberToObject(one, "greatest_difference", isinf(d.most) ? -1 : d.most);
        cJSON_AddNumberToObject(one, "beyond", (double)d.beyond);
        cJSON_AddItemToArray(list, one);
    } else if (d.beyond)
        printf("%s differs: %lld of %lld elements by more than %g; the worst is element %.0f: "
               "%.9g, %.9g asked (%g)\n", name, (long long)d.beyond, (long long)jot_nelem(like),
               tolerance, d.at, d.got, d.want, d.most);
    else
        printf("%s is as asked: within %g of %lld elements\n", name, d.most,
               (long long)jot_nelem(like));
    return d.beyond ? DIFFERS : DONE_WELL;
}

int
command_check(const Args *a)
{
    const char *s;
    double tolerance;
    Once o;
    int code, worst = DONE_WELL;

    if (!args_number(a, "tolerance", 1e-4, &tolerance))
        return WRONG_USE;
    if (!args_has(a, "against"))
        return complain(a, WRONG_USE, "against what? --against NAME=FILE for an output");
    code = once_open(&o, a);
    cJSON *json = a->json ? cJSON_CreateObject() : NULL;
    cJSON *list = json ? cJSON_AddArrayToObject(json, "outputs") : NULL;
    for (int k = 0; !code && (s = args_each(a, "against", k)) != NULL; k++) {
        const char *end = strchr(s, '=');
        int out = end ? model_find(o.m.output_names, s, (size_t)(end - s)) : 0;
        int one = check_output(a, &o, out, end ? end + 1 : s, tolerance, list);
        worst = one > worst ? one : worst;
    }
    if (!code && json) {
        cJSON_AddBoolToObject(json, "same", !worst);
        json_say(json);
    } else
        cJSON_Delete(json);
    once_close(&o);
    return code ? code : worst;
}
