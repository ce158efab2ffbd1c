/* speculate/host.c - a run of the step: its questions are answered as they are, and noted.
 *
 *     question   found in the tree, or a new one there       another was there: not the same step
 *     answer     what the host has, or an evaluation          (jot_capture: then a function)
 *     end        what is put is evaluated                    the same
 *
 * Off the tree (the step does not keep the rule, or memory was refused) answers are the same and
 * nothing is noted.
 *
 * Read before: speculate/tree.c. After: speculate/call.c. */
#include "speculate/spec.h"

/* ---- values ---- */

JOT_FN uint64_t
jot_spec_bits(const void *at, size_t nbytes)
{
    union { uint64_t u; unsigned char c[8]; } bits = {0};
    for (size_t k = 0; k < nbytes && k < sizeof bits.c; k++)
        bits.c[k] = ((const unsigned char *)at)[k];
    return bits.u;
}

JOT_FN void *
jot_spec_pointer(const void *at)
{
    union { void *p; unsigned char c[sizeof(void *)]; } v;
    for (size_t k = 0; k < sizeof v.c; k++)
        v.c[k] = ((const unsigned char *)at)[k];
    return v.p;
}

static int64_t
host_integer(jot_DType dtype, uint64_t bits)
{
    union { uint64_t u; int8_t i8; int16_t i16; int32_t i32; int64_t i64; uint8_t u8; uint16_t u16;
            uint32_t u32; } v = {bits};
    switch (dtype) {
    case JOT_I8: return v.i8;
    case JOT_I16: return v.i16;
    case JOT_I32: return v.i32;
    case JOT_U8: return v.u8;
    case JOT_U16: return v.u16;
    case JOT_U32: return v.u32;
    case JOT_BOOL: return v.u8 != 0;
    default: return v.i64;
    }
}

static double
host_real(jot_DType dtype, uint64_t bits)
{
    union { uint64_t u; float f32; double f64; } v = {bits};
    return dtype == JOT_F32 ? (double)v.f32 : v.f64;
}

/* A truth is 0 or 1, a float's bits tell it; -0 is 0. */
JOT_FN uint64_t
jot_spec_answer(SpecKind kind, jot_DType dtype, uint64_t bits)
{
    if (kind != SPEC_TEST)
        return bits;
    if (dtype == JOT_F32 || dtype == JOT_F64)
        return host_real(dtype, bits) != 0;
    return (dtype == JOT_F16 || dtype == JOT_BF16 ? bits & 0x7fff : bits) != 0;
}

static uint64_t
host_mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

/* ---- blocks ---- */

JOT_FN bool
jot_spec_block(Spec *s, char *p, uint64_t nbytes, uint64_t *key)
{
    const SpecBlock *b = s->blocks.v;
    *key = p != NULL;
    nbytes = p ? nbytes : 0;
    for (uint32_t k = 0; k < s->blocks.n; k++)
        if ((uintptr_t)p < (uintptr_t)b[k].p + b[k].nbytes &&
            (uintptr_t)b[k].p < (uintptr_t)p + nbytes)
            *key = host_mix(host_mix(*key, k), (uint64_t)((uintptr_t)p - (uintptr_t)b[k].p));
    SpecBlock *to = jot_spec_add(s, &s->blocks, sizeof *to);
    if (!to)
        return false;
    to->p = p;
    to->nbytes = nbytes;
    return true;
}

/* Where it stands; false, and an error in the name of op: in no block. */
static bool
host_place(jot_Host *h, const char *op, const void *at, uint64_t nbytes, SpecAsk *is)
{
    const SpecBlock *b = h->s->blocks.v;
    for (uint32_t k = nbytes ? h->s->blocks.n : 0; k-- > 0;) {
        uint64_t off = (uint64_t)((uintptr_t)at - (uintptr_t)b[k].p);
        if (!b[k].p || (uintptr_t)at < (uintptr_t)b[k].p || off > b[k].nbytes ||
            nbytes > b[k].nbytes - off)
            continue;
        is->block = k;
        is->off = off;
        is->nbytes = nbytes;
        return true;
    }
    if (!nbytes) /* nothing, which may stand anywhere */
        return true;
    jot_raise(h->s->ctx, JOT_EUSE, "%s: %llu bytes within *user (of %llu bytes) or within what "
              "jot_host_pointer returned asked, an address elsewhere found", op,
              (unsigned long long)nbytes, (unsigned long long)h->s->nbytes);
    return false;
}

/* ---- questions ---- */

static bool
host_same(const SpecAsk *a, const SpecAsk *b)
{
    return a->kind == b->kind && a->dtype == b->dtype && a->block == b->block && a->off == b->off &&
           a->nbytes == b->nbytes && a->shape == b->shape && a->choose == b->choose &&
           a->after == b->after;
}

static bool
host_fails(const jot_Host *h)
{
    return jot_error(h->s->ctx) != JOT_OK;
}

/* The step does not keep the rule. */
static SpecNode *
host_off(jot_Host *h, const SpecNode *was, const SpecAsk *is)
{
    Spec *s = h->s;
    if (!s->off)
        jot_spec_say(s, "after the same answers another question: %s of block %d + %l, it was %s "
                     "of block %d + %l; the step reads the host without jot_host_, or by chance",
                     jot_spec_names[is->kind], (int)is->block, (int64_t)is->off,
                     jot_spec_names[was->is.kind], (int)was->is.block, (int64_t)was->is.off);
    s->off = true;
    h->at = NULL;
    return NULL;
}

/* The question in the tree; NULL: off it. */
static SpecNode *
host_ask(jot_Host *h, const SpecAsk *is)
{
    if (!h->at || host_fails(h))
        return NULL;
    SpecNode *n = jot_spec_child(h->at, h->key);
    if (n && !host_same(&n->is, is))
        return host_off(h, n, is);
    if (!n)
        n = jot_spec_grow(h->s, h->at, h->key, is);
    h->at = n;
    if (n)
        n->used = h->s->clock;
    return n;
}

/* A value of the host: where it stands, asked. */
static bool
host_value(jot_Host *h, const char *op, SpecKind kind, jot_DType dtype, uint64_t nbytes,
           const void *at, uint64_t shape)
{
    SpecAsk is = {.kind = (uint8_t)kind, .dtype = (uint8_t)dtype, .shape = shape};
    if (!h || host_fails(h) || !host_place(h, op, at, nbytes, &is))
        return false;
    host_ask(h, &is);
    return true;
}

static bool
host_dtype(jot_Host *h, const char *op, jot_DType dtype, jot_DType least, jot_DType most)
{
    bool fits = h && (unsigned)dtype < JOT_DTYPES && (dtype >= least) && dtype <= most &&
                dtype != JOT_F16 && dtype != JOT_BF16;
    if (h && !fits)
        jot_raise(h->s->ctx, JOT_EDTYPE, "%s: dtype: %s to %s asked, f16 and bf16 left out, %s "
                  "found", op, jot_dtype_name(least), jot_dtype_name(most),
                  (unsigned)dtype < JOT_DTYPES ? jot_dtype_name(dtype) : "none");
    return fits;
}

jot_Ctx *
jot_host_ctx(jot_Host *h)
{
    return h ? h->s->ctx : NULL;
}

int64_t
jot_host_int(jot_Host *h, jot_DType dtype, const void *at)
{
    size_t nbytes = jot_dtype_nbytes(dtype);
    if (!host_dtype(h, "host_int", dtype, JOT_BOOL, JOT_U64) ||
        !host_value(h, "host_int", SPEC_INT, dtype, nbytes, at, 0))
        return 0;
    h->key = jot_spec_bits(at, nbytes);
    return host_integer(dtype, h->key);
}

double
jot_host_float(jot_Host *h, jot_DType dtype, const void *at)
{
    size_t nbytes = jot_dtype_nbytes(dtype);
    if (!host_dtype(h, "host_float", dtype, JOT_F32, JOT_F64) ||
        !host_value(h, "host_float", SPEC_FLOAT, dtype, nbytes, at, 0))
        return 0;
    h->key = jot_spec_bits(at, nbytes);
    return host_real(dtype, h->key);
}

void *
jot_host_pointer(jot_Host *h, const void *at, size_t nbytes)
{
    void *p;
    if (!host_value(h, "host_pointer", SPEC_POINTER, JOT_U8, sizeof p, at, nbytes))
        return NULL;
    p = jot_spec_pointer(at);
    return jot_spec_block(h->s, p, nbytes, &h->key) ? p : NULL;
}

/* ---- inputs ---- */

/* v stands for what a call will bring. */
static jot_Var
host_input(jot_Host *h, jot_Var v, const void *at, size_t nbytes, uint64_t value)
{
    SpecInput *to = jot_ok(v) ? jot_spec_add(h->s, &h->s->inputs, sizeof *to) : NULL;
    if (!to)
        return jot_raise(v.ctx, JOT_EMEM, "host: no memory for an input");
    to->at = at;
    to->nbytes = nbytes;
    to->value = value;
    to->var = jot_dup(v);
    return v;
}

jot_Var
jot_host_array(jot_Host *h, jot_DType dtype, jot_Ints shape, const void *at)
{
    jot_Var v = {h ? h->s->ctx : NULL, 0, 0};
    uint64_t hash = (uint64_t)shape.n;
    if (!h || host_fails(h))
        return v;
    v = jot_array(v.ctx, dtype, shape, at); /* with its own words of what is wrong with them */
    if (!jot_ok(v))
        return v;
    for (int d = 0; d < shape.n; d++)
        hash = host_mix(hash, (uint64_t)shape.v[d]);
    size_t nbytes = (size_t)jot_nelem(v) * jot_dtype_nbytes(dtype);
    if (!host_value(h, "host_array", SPEC_ARRAY, dtype, nbytes, at, hash))
        return (jot_Var){v.ctx, 0, 0};
    h->key = 0;
    return host_input(h, v, at, nbytes, 0);
}

/* A constant, as long as it has one value. */
jot_Var
jot_host_number(jot_Host *h, jot_DType dtype, const void *at)
{
    jot_Var v = {h ? h->s->ctx : NULL, 0, 0};
    size_t nbytes = jot_dtype_nbytes(dtype);
    if (!host_dtype(h, "host_number", dtype, JOT_BOOL, JOT_F64) ||
        !host_value(h, "host_number", SPEC_NUMBER, dtype, nbytes, at, 0))
        return v;
    uint64_t bits = jot_spec_bits(at, nbytes);
    SpecNode *n = h->at;
    if (n && !n->any && n->child && n->child->key != bits) {
        jot_spec_prune(h->s, n);
        n->any = true;
        h->s->stats.widened++;
    }
    h->key = n && !n->any ? bits : 0;
    if (!n || n->any)
        return host_input(h, jot_array(v.ctx, dtype, JOT_SHAPE(), at), at, nbytes, 0);
    return dtype >= JOT_F32 ? jot_scalar(v.ctx, dtype, host_real(dtype, bits))
                            : jot_full_int(v.ctx, dtype, JOT_SHAPE(), host_integer(dtype, bits));
}

jot_Var
jot_host_var(jot_Host *h, const jot_Var *at)
{
    jot_Var v = {h ? h->s->ctx : NULL, 0, 0};
    if (!host_value(h, "host_var", SPEC_VAR, JOT_U8, sizeof *at, at, 0) ||
        !jot_check(v.ctx, *at, "host_var", "at"))
        return v;
    h->key = (uint64_t)at->slot << 32 | at->gen;
    return *at;
}

int64_t
jot_host_choose(jot_Host *h, jot_ChooseFn *fn)
{
    SpecAsk is = {.kind = SPEC_CHOOSE, .choose = fn};
    if (!h || host_fails(h))
        return 0;
    if (!fn) {
        jot_raise(h->s->ctx, JOT_EUSE, "host_choose: fn is NULL");
        return 0;
    }
    host_ask(h, &is);
    h->key = (uint64_t)fn(h->s->user);
    return (int64_t)h->key;
}

/* ---- evaluations ---- */

/* What was evaluated at n, against the last time. */
static bool
host_known(jot_Host *h, SpecNode *n)
{
    Spec *s = h->s;
    bool known = n->hashed, same = known && n->hash == h->capture.hash;
    n->hashed = !h->capture.why[0];
    n->hash = h->capture.hash;
    if (n->hashed && same) {
        n->visits += n->visits < SPEC_ANSWERS;
        return true;
    }
    jot_spec_drop(s, n);
    n->visits = n->hashed;
    if (!n->hashed)
        return jot_spec_say(s, "%s: %s", jot_spec_names[n->is.kind], h->capture.why);
    if (!known)
        return false;
    n->strikes++;
    return jot_spec_say(s, "%s: after the same answers another graph or literal; the step reads "
                        "the host without jot_host_, or by chance", jot_spec_names[n->is.kind]);
}

/* One that went for want of room is not looked at before its time. */
static bool
host_waits(SpecNode *n)
{
    return n->drops && !n->f.slot && ++n->visits < 1 << 2 * n->drops;
}

/* Evaluates v, or with NULL all that was put; at a node of the tree it becomes a function when it
 * comes a second time and is the same. */
static bool
host_evaluate(jot_Host *h, SpecNode *n, jot_Vars outputs)
{
    Spec *s = h->s;
    SpecList vars = {{0}, NULL, 0, 0, 0};
    const SpecInput *in = s->inputs.v;
    jot_Func f = {0};
    bool ok = true, make = n && n->hashed && n->visits >= 1 << 2 * n->drops && !jot_func_ok(n->f);
    if (!n || n->strikes >= SPEC_STRIKES || host_waits(n)) {
        h->at = NULL; /* what follows is not called before this is */
        return jot_run(s->ctx, outputs);
    }
    for (uint32_t k = 0; k < s->inputs.n && ok; k++) {
        jot_Var *to = jot_spec_add(s, &vars, sizeof *to);
        ok = to != NULL;
        if (ok)
            *to = in[k].var;
    }
    ok = ok && jot_capture(s->ctx, jot_vars((int)vars.n, vars.v), outputs, &h->capture,
                           make ? &f : NULL);
    jot_spec_empty(s, &vars);
    if (!ok)
        return false;
    bool same = host_known(h, n);
    if (jot_func_ok(f) && same && n->strikes < SPEC_STRIKES) {
        n->f = f;
        s->stats.functions++;
        s->stats.live++;
    } else if (jot_func_ok(f)) {
        jot_func_free(f);
    }
    return true;
}

/* A value asked for: its bits. */
static bool
host_asked(jot_Host *h, const char *op, SpecKind kind, jot_Var v, uint64_t *bits)
{
    SpecAsk is = {.kind = (uint8_t)kind};
    if (!h || host_fails(h) || !jot_check(h->s->ctx, v, op, "v"))
        return false;
    if (jot_nelem(v) != 1) {
        jot_raise(v.ctx, JOT_ESHAPE, "%s: v has %lld elements, one is asked for", op,
                  (long long)jot_nelem(v));
        return false;
    }
    is.dtype = (uint8_t)jot_dtype(v);
    is.nbytes = jot_dtype_nbytes(jot_dtype(v));
    SpecNode *n = host_ask(h, &is);
    if (host_fails(h) || !host_evaluate(h, n, jot_vars(1, &v)))
        return false;
    const void *p = jot_data(v);
    if (!p)
        return false;
    *bits = jot_spec_bits(p, is.nbytes);
    h->key = jot_spec_answer(kind, jot_dtype(v), *bits);
    return !h->at || jot_ok(host_input(h, v, NULL, is.nbytes, *bits));
}

bool
jot_host_test(jot_Host *h, jot_Var v)
{
    uint64_t bits;
    return host_asked(h, "host_test", SPEC_TEST, v, &bits) &&
           jot_spec_answer(SPEC_TEST, jot_dtype(v), bits);
}

double
jot_host_item(jot_Host *h, jot_Var v)
{
    uint64_t bits;
    return host_asked(h, "host_item", SPEC_ITEM, v, &bits) ? jot_item(v) : 0;
}

int64_t
jot_host_item_int(jot_Host *h, jot_Var v)
{
    uint64_t bits;
    return host_asked(h, "host_item_int", SPEC_ITEM_INT, v, &bits) ? jot_item_int(v) : 0;
}

/* ---- what it writes ---- */

bool
jot_host_put(jot_Host *h, jot_Var v, void *to, size_t nbytes)
{
    SpecOutput *out;
    if (!h || host_fails(h) || !jot_check(h->s->ctx, v, "host_put", "v"))
        return false;
    size_t has = (size_t)jot_nelem(v) * jot_dtype_nbytes(jot_dtype(v));
    if (has != nbytes) {
        jot_raise(v.ctx, JOT_ESHAPE, "host_put: v has %llu bytes, the destination %llu",
                  (unsigned long long)has, (unsigned long long)nbytes);
        return false;
    }
    if (!host_value(h, "host_put", SPEC_PUT, jot_dtype(v), nbytes, to, 0) || host_fails(h) ||
        !(out = jot_spec_add(h->s, &h->s->outputs, sizeof *out)))
        return false;
    h->key = 0;
    out->to = to;
    out->nbytes = nbytes;
    out->var = jot_dup(v);
    return jot_ok(out->var);
}

bool
jot_host_after(jot_Host *h, jot_AfterFn *fn)
{
    SpecAsk is = {.kind = SPEC_AFTER, .after = fn};
    if (!h || host_fails(h))
        return false;
    if (!fn) {
        jot_raise(h->s->ctx, JOT_EUSE, "host_after: fn is NULL");
        return false;
    }
    host_ask(h, &is);
    h->key = 0;
    jot_AfterFn **to = jot_spec_add(h->s, &h->s->afters, sizeof *to);
    if (to)
        *to = fn;
    return to != NULL;
}

/* ---- the run ---- */

/* Where the step itself wrote to *user; its size: nowhere. */
static size_t
host_wrote(const Spec *s)
{
    size_t at = 0;
    while (at < s->nbytes && s->before[at] == ((const char *)s->user)[at])
        at++;
    return at;
}

/* What no call of functions would do: this way is not for them. */
static void
host_rule(Spec *s, SpecNode *end, size_t wrote)
{
    uint32_t made, ended;
    jot_capture_handles(s->ctx, &s->host.capture, &made, &ended);
    if (wrote < s->nbytes)
        jot_spec_say(s, "the step wrote to *user + %l: jot_host_put and jot_host_after do that",
                     (int64_t)wrote);
    else if (made > s->made || ended > s->ended)
        jot_spec_say(s, "%d handles outlive the call, %d from before were freed",
                     (int)(made - s->made), (int)(ended - s->ended));
    else
        return;
    jot_spec_drop(s, end);
    end->visits = 0;
}

/* All that was put is evaluated, and is there. */
static bool
host_end(jot_Host *h)
{
    Spec *s = h->s;
    SpecAsk is = {.kind = SPEC_END};
    SpecNode *n = host_ask(h, &is);
    SpecList vars = {{0}, NULL, 0, 0, 0};
    const SpecOutput *out = s->outputs.v;
    bool ok = !host_fails(h);
    for (uint32_t k = 0; k < s->outputs.n && ok; k++) {
        jot_Var *to = jot_spec_add(s, &vars, sizeof *to);
        ok = to != NULL;
        if (ok)
            *to = out[k].var;
    }
    ok = ok && host_evaluate(h, n, jot_vars((int)vars.n, vars.v));
    for (uint32_t k = 0; k < s->outputs.n && ok; k++)
        ok = jot_data(out[k].var) != NULL;
    jot_spec_empty(s, &vars);
    if (ok && n)
        n->draws = jot_random_state(s->ctx).k - h->capture.random.k;
    return ok;
}

static void
host_free(Spec *s)
{
    const SpecInput *in = s->inputs.v;
    const SpecOutput *out = s->outputs.v;
    for (uint32_t k = 0; k < s->inputs.n; k++)
        if (jot_ok(in[k].var))
            jot_free(in[k].var);
    for (uint32_t k = 0; k < s->outputs.n; k++)
        if (jot_ok(out[k].var))
            jot_free(out[k].var);
}

/* What the call began waits for its end yet. */
static bool
host_begun(const Spec *s, uint64_t begun)
{
    bool ok = jot_stats(s->ctx).begun == begun;
    if (!ok)
        jot_raise(s->ctx, JOT_EUSE, "spec_call: the step called jot_commit or jot_rollback, what "
                  "it did is no more all or nothing");
    return ok;
}

JOT_FN bool
jot_host_run(Spec *s)
{
    jot_Host *h = &s->host;
    uint64_t begun = jot_stats(s->ctx).begun, key;
    s->blocks.n = s->inputs.n = s->outputs.n = s->afters.n = 0;
    h->s = s;
    h->at = s->off ? NULL : &s->root;
    h->key = 0;
    for (size_t k = 0; k < s->nbytes; k++)
        s->before[k] = ((const char *)s->user)[k];
    if (!jot_spec_block(s, s->user, s->nbytes, &key))
        return false;
    jot_push(s->ctx);
    jot_capture_begin(s->ctx, &h->capture);
    s->run++;
    s->made = s->ended = 0;
    bool ok = s->fn(h, s->user) && !host_fails(h) && host_begun(s, begun) && host_end(h);
    size_t wrote = host_wrote(s);
    const SpecOutput *out = s->outputs.v;
    for (uint32_t k = 0; k < s->outputs.n && ok; k++)
        ok = jot_copy(out[k].var, out[k].to, out[k].nbytes);
    host_free(s);
    jot_pop(s->ctx);
    if (ok && h->at)
        host_rule(s, h->at, wrote);
    return ok;
}
