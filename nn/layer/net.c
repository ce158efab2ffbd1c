/* nn/layer/net.c - the tree of parameters: found by name, made where they are not there.
 *
 *     "block.3." + "q.weight"  --hash--> item, or a new one, whose values init.h draws
 *
 * Names are compared, not structured: entering a part puts its name before those that follow.
 *
 * Read before: nn/layer/init.h. After: nn/layer/layers.c. */
#include "nn/layer/init.h"
#include "nn/layer/net.h"

/* Memory that lives as long as its handle; cleared. NULL: refused. */
static void *
net_bytes(jot_Ctx *ctx, size_t nbytes, jot_Var *handle)
{
    *handle = jot_param(ctx, JOT_U8, JOT_SHAPE((int64_t)nbytes), NULL);
    void *p = (void *)(uintptr_t)jot_data(*handle);
    if (!p)
        jot_free(*handle);
    return p;
}

jot_Net
jot_net(jot_Ctx *ctx, jot_DType dtype)
{
    jot_Net net = {nn_poison(ctx), NULL};
    jot_Var bytes;
    if (dtype != JOT_F32 && dtype != JOT_F64) {
        jot_raise(ctx, JOT_EDTYPE, "net: dtype: f32 or f64 asked (jot_net_compute for others), %s "
                  "found", (unsigned)dtype < JOT_DTYPES ? jot_dtype_name(dtype) : "none");
        return net;
    }
    Net *n = ctx ? net_bytes(ctx, sizeof *n, &bytes) : NULL;
    if (!n)
        return net;
    n->ctx = ctx;
    n->bytes = bytes;
    n->dtype = n->compute = dtype;
    n->train = true;
    net.state = bytes;
    net.record = n;
    return net;
}

bool
jot_net_ok(jot_Net net)
{
    return jot_ok(net.state);
}

void
jot_net_free(jot_Net net)
{
    Net *n = net.state.slot ? net_of(net, "net_free") : NULL;
    if (n && n->trainers)
        jot_raise(n->ctx, JOT_EUSE, "net_free: a net without trainers asked (jot_trainer_free), %d "
                  "found", n->trainers);
    if (!n || n->trainers)
        return;
    for (int k = 0; k < n->n; k++) {
        NetNode *node = net_node(n, k);
        if (node->is.tied < 0)
            jot_free(node->is.var);
        if (jot_ok(node->before))
            jot_free(node->before);
    }
    for (NetChunk *c = n->first, *next; c; c = next) {
        next = c->next;
        jot_free(c->bytes);
    }
    jot_free(n->bytes);
}

bool
jot_net_train(jot_Net net, bool train)
{
    Net *n = net_of(net, "net_train");
    if (n)
        n->train = train;
    return n != NULL;
}

bool
jot_net_compute(jot_Net net, jot_DType compute)
{
    Net *n = net_of(net, "net_compute");
    bool fine = n && (compute == JOT_F16 || compute == JOT_BF16 || compute == n->dtype);
    if (n && !fine)
        jot_raise(n->ctx, JOT_EDTYPE, "net_compute: compute: f16, bf16 or %s asked, %s found",
                  jot_dtype_name(n->dtype),
                  (unsigned)compute < JOT_DTYPES ? jot_dtype_name(compute) : "none");
    if (fine)
        n->compute = compute;
    return fine;
}

bool
jot_net_init(jot_Net net, jot_InitFn *fill, void *user)
{
    Net *n = net_of(net, "net_init");
    if (n) {
        n->fill = fill;
        n->user = user;
    }
    return n != NULL;
}

/* ---- names ---- */

bool
jot_net_enter(jot_Net net, const char *name, int k)
{
    Net *n = net_of(net, "net_enter");
    if (!n)
        return false;
    size_t at = net_length(n->path), more = name ? net_length(name) : JOT_NAME_SIZE;
    if (n->depth == NET_DEPTH || at + more + 14 > sizeof n->path) {
        jot_raise(n->ctx, JOT_ERANGE, "net_enter: name: a name asked, within %d others and %d "
                  "characters in all, %s found", NET_DEPTH - 1, JOT_NAME_SIZE - 1,
                  name ? name : "none");
        return false;
    }
    n->ends[n->depth++] = (int)at;
    char *t = nn_put(nn_put(n->path + at, name), *name ? "." : "");
    if (k >= 0)
        nn_put(nn_put_int(t, k), ".");
    return true;
}

bool
jot_net_exit(jot_Net net)
{
    Net *n = net_of(net, "net_exit");
    if (n && !n->depth)
        jot_raise(n->ctx, JOT_EUSE, "net_exit: nothing was entered");
    if (!n || !n->depth)
        return false;
    n->path[n->ends[--n->depth]] = 0;
    return true;
}

static uint32_t
net_hash(const char *s)
{
    uint32_t h = 2166136261u;
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 16777619u;
    return h;
}

static NetNode *
net_look(const Net *n, const char *full, int *at)
{
    uint32_t hash = net_hash(full);
    int k = 0;
    for (NetChunk *c = n->first; c; c = c->next)
        for (int i = 0; i < NET_CHUNK && k < n->n; i++, k++)
            if (c->item[i].hash == hash && net_equal(c->item[i].name, full)) {
                *at = k;
                return &c->item[i];
            }
    return NULL;
}

/* A new item of this full name; NULL: memory was refused. */
static NetNode *
net_add(Net *n, const char *full, jot_Var var)
{
    static const jot_NetItem fresh = {NULL, {NULL, 0, 0}, false, false, -1, 0};
    if (n->n % NET_CHUNK == 0) {
        jot_Var bytes;
        NetChunk *c = net_bytes(n->ctx, sizeof *c, &bytes);
        if (!c)
            return NULL;
        c->bytes = bytes;
        if (n->last)
            n->last->next = c;
        else
            n->first = c;
        n->last = c;
    }
    NetNode *node = &n->last->item[n->n++ % NET_CHUNK];
    node->is = fresh;
    node->is.name = node->name;
    node->is.var = var;
    node->hash = net_hash(full);
    nn_put(node->name, full);
    jot_name(var, node->name);
    return node;
}

static bool
net_fits(const Net *n, const NetNode *node, jot_Ints shape, bool buffer, const char *op)
{
    jot_Ints is = jot_shape(node->is.var);
    bool same = is.n == shape.n && node->is.buffer == buffer;
    for (int d = 0; same && d < is.n; d++)
        same = is.v[d] == shape.v[d];
    char there[NET_SHAPE], asked[NET_SHAPE];
    net_shape(there, is);
    net_shape(asked, shape);
    if (!same)
        jot_raise(n->ctx, JOT_ESHAPE, "%s: %s is there, a %s %s: a %s %s asked", op, node->name,
                  node->is.buffer ? "buffer" : "parameter", there,
                  buffer ? "buffer" : "parameter", asked);
    return same;
}

static jot_Var
net_ask(jot_Net net, const char *name, jot_Ints shape, const jot_Init *init, bool buffer)
{
    const char *op = buffer ? "net_buffer" : "net_param";
    char full[2 * JOT_NAME_SIZE];
    Net *n = net_of(net, op);
    int at;
    if (!n)
        return nn_poison(net.state.ctx);
    if (!name || net_length(n->path) + net_length(name) >= JOT_NAME_SIZE)
        return jot_raise(n->ctx, JOT_ERANGE, "%s: name: 1..%d characters asked, with what was "
                         "entered, %s found", op, JOT_NAME_SIZE - 1, name ? "more" : "none");
    nn_put(nn_put(full, n->path), name);
    NetNode *node = net_look(n, full, &at);
    if (node && !net_fits(n, node, shape, buffer, op))
        return nn_poison(n->ctx);
    if (!node) {
        jot_Var v = net_drawn(n, full, shape, init);
        if (!jot_ok(v))
            return v;
        node = net_add(n, full, v);
        if (!node) {
            jot_free(v);
            return nn_poison(n->ctx);
        }
        node->is.buffer = buffer;
    }
    n->asked = node;
    return node->is.var;
}

jot_Var
jot_net_param(jot_Net net, const char *name, jot_Ints shape, const jot_Init *init)
{
    static const jot_Init zeros = {JOT_INIT_CONSTANT, 0, 0};
    return net_ask(net, name, shape, init ? init : &zeros, false);
}

jot_Var
jot_net_buffer(jot_Net net, const char *name, jot_Ints shape, double value)
{
    jot_Init init = {JOT_INIT_CONSTANT, value, 0};
    return net_ask(net, name, shape, &init, true);
}

void
jot_net_madds(jot_Net net, double madds)
{
    Net *n = net_of(net, "net_madds");
    if (n && n->asked)
        n->asked->is.madds = madds;
}

bool
jot_net_tie(jot_Net net, const char *name, const char *is)
{
    Net *n = net_of(net, "net_tie");
    int at, was;
    if (!n)
        return false;
    NetNode *node = is ? net_look(n, is, &at) : NULL;
    NetNode *old = name ? net_look(n, name, &was) : NULL;
    if (node && node->is.tied >= 0)
        at = node->is.tied;
    if (old && node && old->is.tied == at)
        return true;
    if (!name || net_length(name) >= JOT_NAME_SIZE || !node || old) {
        jot_raise(n->ctx, JOT_EUSE, "net_tie: a name that is not there and one that is asked, %s "
                  "and %s found", name ? name : "none", is ? is : "none");
        return false;
    }
    NetNode *tied = net_add(n, name, node->is.var);
    if (tied) {
        tied->is.tied = at;
        tied->is.buffer = node->is.buffer;
        jot_name(node->is.var, node->name);
    }
    return tied != NULL;
}

int
jot_net_freeze(jot_Net net, const char *prefix, bool frozen)
{
    Net *n = net_of(net, "net_freeze");
    int count = 0;
    for (int k = 0; n && k < n->n; k++) {
        NetNode *node = net_node(n, k);
        bool fits = !node->is.buffer && net_begins(node->name, prefix ? prefix : "");
        node->is.frozen = fits ? frozen : node->is.frozen;
        count += fits;
    }
    return count;
}

/* ---- what is there ---- */

int
jot_net_count(jot_Net net)
{
    Net *n = net_of(net, "net_count");
    return n ? n->n : 0;
}

bool
jot_net_item(jot_Net net, int k, jot_NetItem *item)
{
    Net *n = net_of(net, "net_item");
    if (n && (k < 0 || k >= n->n))
        jot_raise(n->ctx, JOT_ERANGE, "net_item: k: 0..%d asked, %d found", n->n - 1, k);
    if (!n || k < 0 || k >= n->n)
        return false;
    *item = net_node(n, k)->is;
    return true;
}

jot_Var
jot_net_find(jot_Net net, const char *name)
{
    jot_Var none = {NULL, 0, 0};
    Net *n = net_of(net, "net_find");
    int at;
    NetNode *node = n && name ? net_look(n, name, &at) : NULL;
    return node ? node->is.var : none;
}

int
jot_net_params(jot_Net net, jot_Var *out, int most)
{
    Net *n = net_of(net, "net_params");
    int count = 0;
    for (int k = 0; n && k < n->n; k++) {
        NetNode *node = net_node(n, k);
        if (net_trained(node) && count++ < most)
            out[count - 1] = node->is.var;
    }
    return count;
}
