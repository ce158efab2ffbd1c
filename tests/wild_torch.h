/* tests/wild_torch.h - drawn networks and their values as lines of JSON, one program a line, for
 * tests/ref/wild.py, which builds them once more in PyTorch:
 *
 *     {"seed", "calls": [{"op", "in", "out", "num", "f", "dtype", "lists", "shape", "data"}],
 *      "asked": [...], "values": [[...]], "bounds": [[...]]}
 *
 * Values are those of the default backend, bounds the radii of tests/bounds.h (-1: unknown). */
#ifndef JOT_TEST_WILD_TORCH_H
#define JOT_TEST_WILD_TORCH_H
#include "tests/wild_run.h"

static void
torch_number(double v)
{
    printf(v != v ? "NaN" : isinf(v) ? v < 0 ? "-Infinity" : "Infinity" : "%.17g", v);
}

static void
torch_ints(const char *name, const int *v, int n)
{
    printf("\"%s\": [", name);
    for (int k = 0; k < n; k++)
        printf("%s%d", k ? ", " : "", v[k]);
    printf("], ");
}

static void
torch_elements(jot_Var v)
{
    const unsigned char *p = jot_data(v);
    jot_DType dtype = jot_dtype(v);

    printf("[");
    for (int64_t k = 0; p && k < jot_nelem(v); k++) {
        jot_Scalar s = jot_scalar_read(p + (size_t)k * jot_dtype_nbytes(dtype), dtype);
        printf(k ? ", " : "");
        torch_number(jot_scalar_f64(s, dtype));
    }
    printf("]");
}

static void
torch_call(const Call *k, jot_Var first)
{
    int out[RESULTS];

    for (int j = 0; j < k->nout; j++)
        out[j] = k->first + j;
    printf("{\"op\": \"%.*s\", ", (int)strcspn(call_text[k->kind], "("), call_text[k->kind]);
    torch_ints("in", k->in, k->nin);
    torch_ints("out", out, k->nout);
    printf("\"num\": [");
    for (int j = 0; j < k->nnum; j++)
        printf("%s%lld", j ? ", " : "", (long long)k->num[j]);
    printf("], \"f\": [%.17g, %.17g], \"dtype\": \"%s\", \"lists\": [", k->f[0], k->f[1],
           jot_dtype_name((jot_DType)k->dtype));
    for (int j = 0; j < k->nlist; j++) {
        printf(j ? ", [" : "[");
        for (int d = 0; d < k->list[j].n; d++)
            printf(k->list[j].v[d] == JOT_END ? "%snull" : "%s%lld", d ? ", " : "",
                   (long long)k->list[j].v[d]);
        printf(k->list[j].n < 0 ? "null]" : "]");
    }
    printf("]");
    if (k->kind == C_LEAF || k->kind == C_PARAM) {
        printf(", \"data\": ");
        torch_elements(first);
    }
    printf("}");
}

/* What a network's leaves, calls and results are. */
static void
torch_program(const Program *p, jot_Ctx *c, const Expected *e)
{
    static jot_Var var[VARS];

    jot_push(c);
    if (!build_program(c, p, var, NULL, NULL))
        fprintf(stderr, "seed %llu: %s\n", (unsigned long long)p->seed, jot_message(c));
    printf("{\"seed\": %llu, \"calls\": [", (unsigned long long)p->seed);
    for (int k = 0; k < p->ncall; k++) {
        printf(k ? ", " : "");
        torch_call(&p->call[k], var[p->call[k].first]);
    }
    printf("], ");
    torch_ints("asked", p->out, e->n);
    printf("\"values\": [");
    for (int k = 0; k < e->n; k++) {
        printf(k ? ", " : "");
        torch_elements(var[p->out[k]]);
    }
    printf("], \"bounds\": [");
    for (int k = 0; k < e->n; k++) {
        printf(k ? ", [" : "[");
        for (int64_t j = 0; j < e->nelem[k]; j++)
            printf("%s%.9g", j ? ", " : "", cell_known(e->cell[k][j]) ? e->cell[k][j].r : -1);
        printf("]");
    }
    printf("]}\n");
    if (jot_error(c))
        fprintf(stderr, "seed %llu: %s\n", (unsigned long long)p->seed, jot_message(c));
    jot_clear(c);
    free_params(p, var);
    jot_pop(c);
}

/* Steps of optimisers are left to other tests: PyTorch's have other formulas. */
static void
drop_steps(Program *p)
{
    int n = 0;

    for (int k = 0; k < p->ncall; k++)
        if (p->call[k].nout)
            p->call[n++] = p->call[k];
    p->ncall = n;
}

static void
torch_print(Desk *desk, int64_t n, uint64_t first)
{
    jot_Config config = {.cache_dir = ""};
    jot_Ctx *c = jot_open(&config), *draft = open_plain();
    static Draw d;

    for (uint64_t seed = first; seed < first + (uint64_t)n; seed++) {
        Expected e;
        jot_push(draft);
        draw_network(&d, &desk->program[0], draft, seed);
        jot_clear(draft);
        free_params(&desk->program[0], d.var);
        jot_pop(draft);
        drop_steps(&desk->program[0]);
        drop_dead(&desk->program[0]);
        expect(desk, 0, true, &e);
        torch_program(&desk->program[0], c, &e);
        expected_free(&e);
    }
    jot_close(draft);
    jot_close(c);
}
#endif
