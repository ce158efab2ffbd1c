/* speculate/call.c - a call: the tree is gone through by what the host has now, functions are
 * called where the step evaluated; where there is no way, the step runs.
 *
 *     begin     jot_begin: what variables are is kept
 *     replay    root, answer, question ... a function ... end       commit
 *     no way    rollback, the step runs (speculate/host.c)          commit
 *     failed    rollback
 *
 * A way without questions in the middle has one function, whose call is all or nothing by itself:
 * nothing is kept for it, so that it may write new values over old ones.
 *
 * Read before: speculate/host.c. After: examples/17_speculate.c. */
#include "speculate/spec.h"

typedef enum { REPLAYED, NO_WAY, FAILED } Replayed;

/* ---- handles ---- */

static Spec *
spec_of(jot_Spec spec, const char *op)
{
    jot_Ctx *ctx = spec.state.ctx;
    return ctx && jot_check(ctx, spec.state, op, "s") ? spec.record : NULL;
}

bool
jot_spec_ok(jot_Spec spec)
{
    return jot_ok(spec.state);
}

jot_Spec
jot_speculate(jot_Ctx *ctx, jot_SpecFn *fn, size_t nbytes, const jot_SpecHow *how)
{
    static const jot_SpecHow usual;
    jot_Spec spec = {{ctx, 0, 0}, NULL};
    how = how ? how : &usual;
    if (!ctx || jot_error(ctx))
        return spec;
    if (nbytes > PTRDIFF_MAX - sizeof(Spec)) {
        spec.state = jot_raise(ctx, JOT_EMEM, "speculate: no memory for what *user was, %llu bytes",
                               (unsigned long long)nbytes);
        return spec;
    }
    if (!fn || how->functions < 0 || how->answers < 0) {
        spec.state = jot_raise(ctx, JOT_EUSE, "speculate: %s", !fn ? "fn is NULL"
                               : "at least 0 functions and answers asked, fewer found");
        return spec;
    }
    jot_Var bytes = jot_param(ctx, JOT_U8, JOT_SHAPE((int64_t)(sizeof(Spec) + nbytes)), NULL);
    Spec *s = (Spec *)(uintptr_t)jot_data(bytes);
    if (!s) {
        jot_free(bytes);
        return spec;
    }
    s->ctx = ctx;
    s->bytes = bytes;
    s->fn = fn;
    s->nbytes = nbytes;
    s->how.functions = how->functions ? how->functions : SPEC_FUNCTIONS;
    s->how.answers = how->answers ? how->answers : SPEC_ANSWERS;
    if (how->run)
        s->off = !jot_spec_say(s, "it was told to run (jot_SpecHow.run)");
    spec.state = bytes;
    spec.record = s;
    return spec;
}

void
jot_spec_free(jot_Spec spec)
{
    Spec *s = spec.state.slot ? spec_of(spec, "spec_free") : NULL;
    if (s && s->running)
        jot_raise(s->ctx, JOT_EUSE, "spec_free: called from within its own call");
    else if (s)
        jot_spec_close(s);
}

jot_SpecStats
jot_spec_stats(jot_Spec spec)
{
    static const jot_SpecStats none;
    return jot_spec_ok(spec) ? ((const Spec *)spec.record)->stats : none;
}

const char *
jot_spec_why(jot_Spec spec)
{
    return jot_spec_ok(spec) ? ((const Spec *)spec.record)->why : "";
}

/* ---- a replay ---- */

/* The function of n, with what was met so far. */
static Replayed
replay_function(Spec *s, SpecNode *n, jot_RandomState begin, const SpecOutput *out, uint32_t nout)
{
    const SpecInput *in = s->inputs.v;
    s->ins.n = s->outs.n = 0;
    for (uint32_t k = 0; k < s->inputs.n; k++) {
        jot_In *to = jot_spec_add(s, &s->ins, sizeof *to);
        if (!to)
            return FAILED;
        *to = jot_in(in[k].at ? in[k].at : &in[k].value, in[k].nbytes);
    }
    for (uint32_t k = 0; k < nout; k++) {
        jot_Out *to = jot_spec_add(s, &s->outs, sizeof *to);
        if (!to)
            return FAILED;
        *to = jot_out(out[k].to, out[k].nbytes);
    }
    jot_set_random_state(s->ctx, begin);
    if (jot_call(n->f, jot_ins((int)s->ins.n, s->ins.v), jot_outs((int)s->outs.n, s->outs.v)))
        return REPLAYED;
    if (jot_error(s->ctx) != JOT_EHANDLE)
        return FAILED;
    jot_rollback(s->ctx); /* a variable of it is no more: the step has others */
    jot_clear(s->ctx);
    jot_spec_drop(s, n);
    n->hashed = false;
    n->visits = 0;
    jot_spec_say(s, "%s: a variable that the function read was freed", jot_spec_names[n->is.kind]);
    return NO_WAY;
}

/* A value of the host: the answer to n. */
static Replayed
replay_value(Spec *s, SpecNode *n, uint64_t *key)
{
    const SpecBlock *b = (const SpecBlock *)s->blocks.v + n->is.block;
    char *at = b->p + n->is.off;
    bool input = n->is.kind == SPEC_ARRAY || (n->is.kind == SPEC_NUMBER && n->any);
    *key = 0;
    if (n->is.kind == SPEC_POINTER)
        return jot_spec_block(s, jot_spec_pointer(at), n->is.shape, key) ? REPLAYED : FAILED;
    if (n->is.kind == SPEC_PUT) {
        SpecOutput *out = jot_spec_add(s, &s->outputs, sizeof *out);
        if (!out)
            return FAILED;
        out->to = at;
        out->nbytes = n->is.nbytes;
    } else if (n->is.kind == SPEC_VAR) {
        jot_Var v;
        for (size_t k = 0; k < sizeof v; k++)
            ((char *)&v)[k] = at[k];
        *key = (uint64_t)v.slot << 32 | v.gen;
        return v.ctx == s->ctx && jot_ok(v) ? REPLAYED : NO_WAY;
    } else if (input) {
        SpecInput *in = jot_spec_add(s, &s->inputs, sizeof *in);
        if (!in)
            return FAILED;
        in->at = at;
        in->nbytes = n->is.nbytes;
    } else {
        *key = jot_spec_bits(at, n->is.nbytes);
    }
    return REPLAYED;
}

/* A value that is asked for in the middle. */
static Replayed
replay_asked(Spec *s, SpecNode *n, jot_RandomState begin, uint64_t *key)
{
    uint64_t value = 0;
    SpecOutput out = {&value, n->is.nbytes, {0}};
    Replayed r = replay_function(s, n, begin, &out, 1);
    SpecInput *in = r == REPLAYED ? jot_spec_add(s, &s->inputs, sizeof *in) : NULL;
    if (!in)
        return r == REPLAYED ? FAILED : r;
    in->nbytes = n->is.nbytes;
    in->value = value;
    *key = jot_spec_answer((SpecKind)n->is.kind, (jot_DType)n->is.dtype, value);
    return REPLAYED;
}

/* The end: what a single function does is all or nothing already. */
static Replayed
replay_end(Spec *s, SpecNode *n, jot_RandomState begin, bool pieces)
{
    if (!pieces)
        jot_commit(s->ctx);
    Replayed r = replay_function(s, n, begin, s->outputs.v, s->outputs.n);
    jot_RandomState after = {begin.seed, begin.k + n->draws};
    if (r != REPLAYED)
        return r;
    jot_set_random_state(s->ctx, after);
    jot_commit(s->ctx);
    return r;
}

/* The question that nobody knows the answer to, for jot_spec_why. */
static Replayed
replay_none(Spec *s, const SpecNode *n, uint64_t key)
{
    if (n == &s->root)
        jot_spec_say(s, "the first call");
    else if (n->fresh >= SPEC_FRESH)
        jot_spec_say(s, "%s of block %d + %l: imperative, since its answers are new too often",
                     jot_spec_names[n->is.kind], (int)n->is.block, (int64_t)n->is.off);
    else if (n->is.kind == SPEC_INT || n->is.kind == SPEC_CHOOSE || n->is.kind == SPEC_ITEM_INT)
        jot_spec_say(s, "%s of block %d + %l has a new answer, %l", jot_spec_names[n->is.kind],
                     (int)n->is.block, (int64_t)n->is.off, (int64_t)key);
    else
        jot_spec_say(s, "%s of block %d + %l has a new answer", jot_spec_names[n->is.kind],
                     (int)n->is.block, (int64_t)n->is.off);
    return NO_WAY;
}

static Replayed
replay(Spec *s, bool *pieces, SpecNode **last)
{
    jot_RandomState begin = jot_random_state(s->ctx);
    SpecNode *n = &s->root;
    uint64_t key;
    s->blocks.n = s->inputs.n = s->outputs.n = s->afters.n = 0;
    if (!jot_spec_block(s, s->user, s->nbytes, &key))
        return FAILED;
    key = 0;
    for (;;) {
        SpecNode *up = n;
        Replayed r = REPLAYED;
        n = jot_spec_child(up, key);
        if (!n)
            return replay_none(s, up, key);
        n->used = s->clock;
        *last = n;
        if (n->is.kind >= SPEC_TEST && n->is.kind <= SPEC_ITEM_INT && n->f.slot) {
            *pieces = true;
            r = replay_asked(s, n, begin, &key);
        } else if (n->is.kind == SPEC_END && n->f.slot) {
            return replay_end(s, n, begin, *pieces);
        } else if ((n->is.kind >= SPEC_TEST && n->is.kind <= SPEC_ITEM_INT)
                   || n->is.kind == SPEC_END) {
            r = NO_WAY;
            jot_spec_say(s, n->wasted >= SPEC_WASTED ? "%s: imperative, since its answers were "
                         "others too often" : n->strikes >= SPEC_STRIKES ? "%s: imperative, since "
                         "after the same answers another graph or literal came too often"
                         : "%s: this way was not taken often enough", jot_spec_names[n->is.kind]);
        } else if (n->is.kind == SPEC_CHOOSE) {
            key = (uint64_t)n->is.choose(s->user);
        } else if (n->is.kind == SPEC_AFTER) {
            jot_AfterFn **to = jot_spec_add(s, &s->afters, sizeof *to);
            key = 0;
            r = to ? REPLAYED : FAILED;
            if (to)
                *to = n->is.after;
        } else {
            r = replay_value(s, n, &key);
        }
        if (r != REPLAYED)
            return r;
    }
}

/* ---- a call ---- */

/* What the way from n up called: in vain too often, it is called no more. */
static void
call_wasted(Spec *s, SpecNode *n, bool wasted)
{
    for (; n != &s->root; n = n->up) {
        if (!n->f.slot || n->is.kind == SPEC_END)
            continue;
        n->wasted += wasted ? 1 : -(n->wasted > 0);
        if (n->wasted < SPEC_WASTED)
            continue;
        jot_spec_drop(s, n);
        n->strikes = SPEC_STRIKES;
    }
}

/* Replays, or else runs; within jot_begin, which may have ended. */
static bool
call_either(Spec *s)
{
    SpecNode *last = &s->root;
    bool pieces = false;
    Replayed r = s->off ? NO_WAY : replay(s, &pieces, &last);
    if (pieces && r != FAILED)
        call_wasted(s, last, r == NO_WAY);
    s->stats.replays += r == REPLAYED;
    if (r != NO_WAY) {
        if (r == REPLAYED)
            s->why[0] = 0;
        return r == REPLAYED;
    }
    jot_rollback(s->ctx);
    s->stats.wrong += pieces;
    if (!jot_begin(s->ctx) || !jot_host_run(s))
        return false;
    jot_commit(s->ctx);
    s->stats.runs++;
    return true;
}

/* For jot_spec_why; one that is off goes on saying why it is. */
static bool
call_failed(Spec *s)
{
    return !s->off && jot_spec_say(s, "it failed: %s", jot_error(s->ctx) ? jot_message(s->ctx)
                                   : "the step returned false");
}

bool
jot_spec_call(jot_Spec spec, void *user)
{
    Spec *s = spec_of(spec, "spec_call");
    if (!s || jot_error(s->ctx))
        return s && call_failed(s);
    if (s->running || (!user && s->nbytes)) {
        jot_raise(s->ctx, JOT_EUSE, "spec_call: %s", s->running ? "called from within its own call"
                                                                 : "user is NULL");
        return call_failed(s);
    }
    if (!jot_begin(s->ctx))
        return call_failed(s);
    s->running = true;
    s->user = user;
    s->clock++;
    if (!s->off)
        s->why[0] = 0;
    bool ok = call_either(s);
    if (!ok) {
        jot_rollback(s->ctx);
        call_failed(s);
    }
    jot_spec_bound(s);
    s->stats.calls += ok;
    for (uint32_t k = 0; k < s->afters.n && ok; k++)
        ((jot_AfterFn *const *)s->afters.v)[k](user);
    s->running = false;
    return ok;
}
