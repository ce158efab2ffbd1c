/* ccode/emit/emit.c - code records as the text of a C function: its head, the pointers it works on,
 * its body, and the passes that lead there: loops, records, conditions out of loops, uses counted
 * (ccode/lower/lower.c, ccode/lower/walk.c, ccode/lower/guard.c, ccode/lower/unswitch.c). Functions
 * of the prelude that are named often are called.
 *
 *   requires  counted code       keeps  order of effects       breaks  nothing
 *
 * Read before: ccode/emit/print.h, ccode/emit/statement.c. After: ccode/emit/dialect.c. */
#include "ccode/emit/print.h"

/* ---- the function ---- */

static void
find_used(const Printer *p, Used *u)
{
    memset(u, 0, sizeof *u);
    for (uint32_t n = 1; n < p->code->inst.n; n++) {
        const Inst *in = &p->code->inst.v[n];
        if (!in->live && !in->uses)
            continue;
        if (in->op == C_MATRIX || in->op == C_COPY)
            u->used[in->aux >> 16 & 255] = u->used[in->aux % 256] = true;
        if (in->op == C_MATRIX && !p->d->device)
            u->matrix = u->used[in->aux / 256 % 256] = true;
        if (in->op == C_LOAD || in->op == C_STORE || in->op == C_INT || in->op == C_ATOMIC ||
            in->op == C_AHEAD)
            u->used[in->aux % 256] = true;
        u->scalars |= in->op == C_SCALAR;
        u->phase |= in->op == C_PHASE;
        u->range |= (in->op == C_FOR && in->wide) || in->op == C_TAIL || in->op == C_LO ||
                    in->op == C_HI;
    }
    for (uint32_t b = 1; b < p->k->bufs.n; b++)
        if (u->used[b % 256])
            *(p->k->bufs.v[b].role == BUF_SCRATCH ? &u->scratch : &u->buf) = true;
}

/* buf[] holds inputs and outputs; what calls share follows as one block. */
static uint32_t
count_bufs(const Kernel *k)
{
    uint32_t n = 0;
    for (uint32_t b = 1; b < k->bufs.n; b++)
        n += k->bufs.v[b].role == BUF_INPUT || k->bufs.v[b].role == BUF_OUTPUT;
    return n;
}

/* Memory that is no other pointer's. */
static bool
is_alone(const Printer *p, uint32_t buf)
{
    for (uint32_t b = 1; b < p->k->bufs.n; b++)
        if (jot_buf_in(&p->over, b) && (b == buf || p->k->bufs.v[b].over == buf))
            return false;
    return !p->k->bufs.v[buf].may_alias;
}

/* An input that begins elsewhere: by how much is an argument while there is room. */
static void
print_placed(Printer *p, uint32_t number, const char *type, int64_t from)
{
    int i = p->nints;
    jot_text_f(p->out, " = (const %s *)buf[%u] + ", type, number);
    if (i == EMIT_INTS)
        jot_print_number(p, from);
    else {
        p->ints[i].i = from;
        p->int_dtype[i] = JOT_I64;
        p->nints++;
        if (p->d->any)
            jot_print_name(p, p->int_name[i]);
        else
            jot_text_f(p->out, "ints[%d]", i);
    }
    jot_text_f(p->out, ";\n");
}

static void
print_pointers(Printer *p, const Used *u)
{
    uint32_t number = 0, nbufs = count_bufs(p->k);
    size_t offset[2] = {0};
    bool bytes = false;
    for (uint32_t b = 1; b < p->k->bufs.n; b++)
        bytes |= p->k->bufs.v[b].bytes && u->used[b % 256];
    if (bytes)
        jot_text_f(p->out, "    typedef jot_u32 jot_bytes __attribute__((aligned(1)));\n");
    for (uint32_t b = 1; b < p->k->bufs.n; b++) {
        const KBuf *buf = &p->k->bufs.v[b];
        const char *type = buf->bytes ? "jot_bytes" : jot_print_memory_type(buf->dtype);
        bool shared = buf->role == BUF_SHARED, scratch = shared || buf->role == BUF_SCRATCH;
        p->buf_name[b] = jot_print_take(p, buf->name);
        if (u->used[b % 256]) {
            const char *alone = is_alone(p, b) ? p->d->restrict_ : "";
            jot_print_f(p, "    %s%s *%s%s%b", jot_buf_written(p->s, b) ? "" : "const ", type,
                        alone, *alone ? " " : "", b);
            if (shared)
                jot_text_f(p->out, " = (%s *)(void *)((char *)buf[%u] + ", type, nbufs);
            else if (scratch)
                jot_text_f(p->out, " = (%s *)(void *)((char *)scratch + ", type);
            else if (buf->placed)
                print_placed(p, number, type, buf->from);
            else
                jot_text_f(p->out, " = buf[%u];\n", number);
            if (scratch)
                jot_print_f(p, "%i);\n", (int64_t)offset[shared]);
        }
        number += !scratch;
        offset[shared] += scratch ? jot_print_scratch_size(p, buf) : 0;
    }
}

static void
print_unused(Printer *p, const Used *u)
{
    jot_text_f(p->out, "    %s(void)ints%s", u->buf ? "" : "(void)buf, ",
               u->phase ? "" : ", (void)phase");
    jot_text_f(p->out, "%s%s%s;\n", u->scalars ? "" : ", (void)scalars",
               u->scratch ? "" : ", (void)scratch",
               u->range ? "" : ", (void)lo, (void)hi");
}

/* The schedule as a comment; what would end it is broken up. */
static void
print_comment(Printer *p, const char *name)
{
    Text text = {0};
    text.mem = p->code->mem;
    jot_text_f(&text, "%s", name);
    if (p->k->name)
        jot_text_f(&text, ": %s", p->k->name);
    jot_text_f(&text, "\n");
    if (!p->d->any) /* steps and layouts are numbers */
        jot_sched_print(p->s, &text);
    jot_text_f(p->out, "/* ");
    for (size_t i = 0; i + 1 < text.n; i++) {
        jot_text_put(p->out, text.s + i, 1);
        if (text.s[i] == '\n')
            jot_text_f(p->out, " * ");
        if (text.s[i] == '*' && text.s[i + 1] == '/')
            jot_text_f(p->out, " ");
    }
    jot_text_f(p->out, " */\n");
    jot_text_free(&text);
}

static void
print_body(Printer *p, const Used *u)
{
    print_pointers(p, u);
    print_unused(p, u);
    p->indent = 1;
    jot_text_f(p->out, "%s", u->matrix ? "    jot_tiles_open();\n" : "");
    jot_print_block(p, 1);
    jot_text_f(p->out, "%s", u->matrix ? "    jot_tiles_close();\n" : "");
}

/* Which arguments there are is known at the end. */
static void
print_any_body(Printer *p, const Used *u)
{
    Text body = {0}, *out = p->out;
    body.mem = p->code->mem;
    p->out = &body;
    print_body(p, u);
    p->out = out;
    jot_print_any_declare(p);
    jot_text_put(out, body.s, body.n);
    jot_text_free(&body);
}

static void
print_function(Printer *p, const char *name)
{
    static const char *const own[] = { "buf", "ints", "scalars", "scratch", "phase", "lo", "hi",
                                       "l", "item", "items", "team", "teams", "lane", "part",
                                       "shared", "given" };
    Used u;
    find_used(p, &u);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        jot_print_take(p, own[i]);
    jot_print_any_open(p);
    print_comment(p, name);
    if (p->d->device) {
        jot_print_kernel(p, &u, name);
        p->indent = 1;
        jot_print_block(p, 1);
        jot_text_f(p->out, "}\n");
        return;
    }
    jot_text_f(p->out,
               "%svoid\n%s(void *const *buf, const jot_i64 *ints, const jot_Scalar *scalars,\n",
               p->d->function, name);
    jot_text_f(p->out, "    void *scratch, jot_i64 phase, jot_i64 lo, jot_i64 hi)\n{\n");
    if (p->d->any)
        print_any_body(p, &u);
    else
        print_body(p, &u);
    jot_text_f(p->out, "}\n");
}

/* ---- called, not inlined ------------------------------------------------------------------ */

/* A vector function becomes a part of whoever names it, which costs gcc 30 ms each time. What one
 * kernel names more often than that it calls: 2 % slower, 64 sines compiled in 0.04 s for 3.2. */
enum { CALLED_FROM = 48, CALLED_NAMES = 32 };

typedef struct { const char *name; size_t n; int times; } Named;

/* Where the next name of the prelude begins, from `at` on, and its length; `end`: there is none. */
static size_t
called_next(const char *s, size_t at, size_t end, size_t *n)
{
    for (; at + 5 < end; at++) {
        if (s[at] != 'j' || memcmp(s + at, "jotm_", 5))
            continue;
        for (*n = 5; at + *n < end && s[at + *n] != '(' && s[at + *n] > ' '; ++*n)
            ;
        return at;
    }
    return end;
}

static Named *
called_find(Named *all, int *count, const char *name, size_t n)
{
    int i = 0;
    while (i < *count && (all[i].n != n || memcmp(all[i].name, name, n)))
        i++;
    if (i == *count && i < CALLED_NAMES) {
        all[i].name = name;
        all[i].n = n;
        all[(*count)++].times = 0;
    }
    return i < *count ? &all[i] : NULL;
}

static void
print_called(Text *out, size_t from)
{
    Named all[CALLED_NAMES], *one;
    Text text = {0};
    int count = 0;
    bool many = false;
    size_t n = 0, at, last = from;
    for (at = from; (at = called_next(out->s, at, out->n, &n)) < out->n; at += n)
        if ((one = called_find(all, &count, out->s + at, n)))
            many |= ++one->times == CALLED_FROM + 1 && jot_prelude_may_call(one->name, n);
    if (!many)
        return;
    text.mem = out->mem;
    for (at = from; (at = called_next(out->s, at, out->n, &n)) < out->n; at += n) {
        one = called_find(all, &count, out->s + at, n);
        if (!one || one->times <= CALLED_FROM || !jot_prelude_may_call(one->name, n))
            continue;
        jot_text_put(&text, out->s + last, at + n - last);
        jot_text_f(&text, "_called");
        last = at + n;
    }
    jot_text_put(&text, out->s + last, out->n - last);
    out->n = from;
    jot_text_put(out, text.s, text.n);
    jot_text_free(&text);
}

static void
fill_info(const Printer *p, size_t from, EmitInfo *info)
{
    memset(info, 0, sizeof *info);
    info->vectors = p->d->vectors && (p->lanes > 1 || p->vectors);
    info->over = p->over;
    for (uint32_t b = 1; b < p->k->bufs.n; b++)
        if (p->k->bufs.v[b].begins) {
            info->begins = (uint8_t)b;
            info->as = p->k->bufs.v[b].over;
        }
    info->nints = p->nints;
    memcpy(info->ints, p->ints, sizeof info->ints);
    info->phases = p->code->phases;
    memcpy(info->steps, p->code->steps, sizeof info->steps);
    memcpy(info->end, p->code->end, sizeof info->end);
    info->group = p->s->group ? p->s->group : 1;
    info->launches = p->code->launches ? p->code->launches : info->phases;
    memcpy(info->launch, p->code->launch, sizeof info->launch);
    info->group_nbytes = p->given_nbytes;
    for (int i = 0; i < p->code->launches; i++)
        info->launch[i].group_nbytes = info->launch[i].kind == LAUNCH_TEAMS ? p->given_nbytes : 0;
    for (int i = 0; !p->code->launches && i < info->phases; i++)
        info->launch[i].steps = info->steps[i]; /* LAUNCH_ONE */
    info->nbufs = count_bufs(p->k);
    for (uint32_t b = 1; b < p->k->bufs.n; b++)
        if (p->k->bufs.v[b].role == BUF_SCRATCH || p->k->bufs.v[b].role == BUF_SHARED)
            *(p->k->bufs.v[b].role == BUF_SHARED ? &info->shared_nbytes : &info->scratch_nbytes) +=
                jot_print_scratch_size(p, &p->k->bufs.v[b]);
    for (size_t i = from; i < p->out->n; i++)
        info->lines += p->out->s[i] == '\n';
}

static bool
print_code(Code *code, const Dialect *d, const char *name, Text *out, EmitInfo *info)
{
    Printer *p = jot_mem_new(code->mem, 1, sizeof *p);
    size_t from = out->n;
    bool ok = false;
    if (!p)
        return false;
    p->code = code;
    p->k = code->k;
    p->s = code->s;
    p->d = d;
    p->body = jot_print_body;
    p->level = jot_print_body_level;
    p->narrow = d->device && jot_index_narrow(code);
    p->out = out;
    p->lanes = code->s->lanes;
    p->name = jot_mem_new(code->mem, code->inst.n, sizeof *p->name);
    if (d->vectors && p->s->vector_nbytes) {
        p->moves = jot_mem_new(code->mem, code->inst.n, sizeof *p->moves);
        p->stride = jot_mem_new(code->mem, code->inst.n, sizeof *p->stride);
        p->size = jot_mem_new(code->mem, code->inst.n, sizeof *p->size);
        p->stages = jot_mem_new(code->mem, code->inst.n, sizeof *p->stages);
        p->masks = p->s->vector_nbytes >= 64 ? 1 : p->s->vector_nbytes >= 32 ? 4 : 0;
        p->reread = jot_print_rereads(code, p->k);
    }
    if (p->name && !p->moves == !p->stride && !p->moves == !p->size && !p->moves == !p->stages) {
        for (uint32_t n = 1; p->size && n < code->inst.n; n++)
            p->size[n] = jot_print_index_size(code, &code->inst.v[n], p->size);
        jot_print_choose(code);
        jot_code_donates(code, &p->over);
        print_function(p, name);
        if (p->moves)
            print_called(out, from);
        ok = code->ok && !code->mem->failed;
        fill_info(p, from, info);
    }
    jot_mem_free(code->mem, p->name, code->inst.n * sizeof *p->name);
    jot_mem_free(code->mem, p->moves, p->moves ? code->inst.n * sizeof *p->moves : 0);
    jot_mem_free(code->mem, p->stride, p->stride ? code->inst.n * sizeof *p->stride : 0);
    jot_mem_free(code->mem, p->size, p->size ? code->inst.n * sizeof *p->size : 0);
    jot_mem_free(code->mem, p->stages, p->stages ? code->inst.n * sizeof *p->stages : 0);
    jot_vec_free(code->mem, p->scope);
    jot_mem_free(code->mem, p, sizeof *p);
    return ok;
}

/* ---- the passes ---- */

const EmitPass jot_emit_passes[] = {
    { 'k', "kernel", "what the kernel computes" },
    { 's', "schedule", "order and places" },
    { 'l', "loops", "the nest after lowering" },
    { 'w', "walk", "the function before conditions leave their loops (ccode/lower/guard.c)" },
    { 'c', "text", "the emitted function" },
};
const int jot_emit_passes_n = (int)(sizeof jot_emit_passes / sizeof jot_emit_passes[0]);

static bool
wants(const char *letters, char letter)
{
    for (; letters && *letters; letters++)
        if (*letters == letter)
            return true;
    return false;
}

static void
dump_lowered(const Kernel *k, const Sched *s, const Tree *t, const char *letters, Text *dump)
{
    if (wants(letters, 'k'))
        jot_ir_print(k, dump);
    if (wants(letters, 's')) {
        jot_text_f(dump, "schedule\n");
        jot_sched_print(s, dump);
    }
    if (wants(letters, 'l')) {
        jot_text_f(dump, "loops\n");
        jot_lower_print(t, s, dump);
    }
}

/* From the tree to text; guard: with conditions moved. */
static bool
walk_print(const Kernel *k, const Sched *s, const Tree *t, const Dialect *d, const char *name,
           bool guard, Text *out, EmitInfo *info, Text *why)
{
    Code code;
    bool ok = jot_walk(&code, k, s, t, why);
    code.device = d->device != NULL;
    if (ok && guard)
        jot_code_guard(&code);
    if (ok && !d->device)
        jot_code_independent(&code);
    if (ok && guard && d->vectors && s->vector_nbytes)
        jot_code_unswitch(&code, 1);
    if (ok) {
        jot_code_count(&code);
        ok = print_code(&code, d, name, out, info);
    }
    jot_code_close(&code);
    return ok;
}

JOT_FN bool
jot_emit(const Kernel *k, const Sched *s, const Dialect *d, const char *name,
              const char *letters, Text *dump, Text *out, EmitInfo *info, Text *why)
{
    Tree tree;
    size_t from = out->n;
    bool ok;
    if (k->bufs.n > 256 || s->lanes < 1 || s->lanes > 64) {
        if (why)
            jot_text_f(why, "too many buffers or lanes");
        return false;
    }
    ok = jot_lower(&tree, s, why);
    if (ok && dump)
        dump_lowered(k, s, &tree, letters, dump);
    if (ok && dump && wants(letters, 'w'))
        ok = walk_print(k, s, &tree, d, name, false, dump, info, why);
    ok = ok && walk_print(k, s, &tree, d, name, true, out, info, why);
    jot_lower_close(&tree);
    if (ok && dump && wants(letters, 'c'))
        jot_text_put(dump, out->s + from, out->n - from);
    if (!ok && out->s) {
        out->n = from;
        out->s[from] = 0;
    }
    return ok;
}
