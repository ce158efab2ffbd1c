/* nn/layer/net.h - a tree of parameters as its files see it, and what layers ask of it.
 *
 *     jot_Net --> Net --> NetChunk --> NetChunk ...      64 items each, which never move
 *
 * All of it lies in the bytes of parameters of the context (nn_room): compositions have no
 * allocator.
 *
 * Read before: layer.h, nn/parts.h. After: nn/layer/init.h. */
#ifndef JOT_LAYER_NET_H
#define JOT_LAYER_NET_H
#include "layer.h"
#include "nn/parts.h"

enum { NET_CHUNK = 64, NET_DEPTH = 32, NET_SHAPE = JOT_MAX_RANK * 22 + 4 };

typedef struct {
    jot_NetItem is;
    uint32_t hash;
    jot_Var before;   /* of a buffer that a pass assigned: what it was, for a step that is left out;
                         an empty handle: none did */
    char name[JOT_NAME_SIZE];
} NetNode;

typedef struct NetChunk NetChunk;
struct NetChunk {
    jot_Var bytes;
    NetChunk *next;
    NetNode item[NET_CHUNK];
};

typedef struct {
    jot_Ctx *ctx;
    jot_Var bytes;
    jot_DType dtype, compute;
    bool train;
    int n, depth, trainers;    /* items; what was entered; trainers of them that live */
    int ends[NET_DEPTH];       /* lengths of the path before each enter */
    char path[JOT_NAME_SIZE];  /* "" or ending in a dot */
    NetChunk *first, *last;
    NetNode *asked;            /* for last */
    jot_InitFn *fill;
    void *user;
} Net;

/* NULL, and an error that names op: it is stale or poison. */
static inline Net *
net_of(jot_Net net, const char *op)
{
    jot_Ctx *ctx = net.state.ctx;
    return ctx && jot_check(ctx, net.state, op, "net") ? net.record : NULL;
}

static inline size_t
net_length(const char *s)
{
    size_t n = 0;
    while (s[n])
        n++;
    return n;
}

static inline bool
net_begins(const char *s, const char *prefix)
{
    while (*prefix && *s == *prefix)
        s++, prefix++;
    return !*prefix;
}

static inline bool
net_equal(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

static inline NetNode *
net_node(const Net *net, int k)
{
    NetChunk *c = net->first;
    for (; k >= NET_CHUNK; k -= NET_CHUNK)
        c = c->next;
    return &c->item[k];
}

/* (16, 1, 3), in NET_SHAPE bytes; returns its end. */
static inline char *
net_shape(char *to, jot_Ints shape)
{
    to = nn_put(to, "(");
    for (int d = 0; d < shape.n && d < JOT_MAX_RANK; d++)
        to = nn_put_int(d ? nn_put(to, ", ") : to, shape.v[d]);
    return nn_put(to, shape.n == 1 ? ",)" : ")");
}

/* Those that are trained: each parameter once. */
static inline bool
net_trained(const NetNode *node)
{
    return !node->is.buffer && !node->is.frozen && node->is.tied < 0;
}

/* The end of a layer, in its scope: what it made since there were `had` items goes again if it was
 * refused, so that the next call finds what was there before this one. */
static inline jot_Var
net_leave(Net *net, int had, jot_Var y)
{
    while (!jot_ok(y) && net->n > had) {
        NetNode *node = net_node(net, --net->n);
        NetChunk *empty = net->n % NET_CHUNK ? NULL : net->last;
        if (node->is.tied < 0)
            jot_free(node->is.var);
        if (jot_ok(node->before))
            jot_free(node->before);
        net->asked = NULL;
        node->before.ctx = NULL;
        if (!empty)
            continue;
        net->last = net->n ? net->first : NULL;
        while (net->last && net->last->next != empty)
            net->last = net->last->next;
        *(net->last ? &net->last->next : &net->first) = NULL;
        jot_free(empty->bytes);
    }
    return jot_leave(net->ctx, y);
}

/* The name of the parameter that is this variable; "": none is. */
static inline const char *
net_name(const Net *net, jot_Var param)
{
    for (int k = 0; k < net->n; k++) {
        const NetNode *node = net_node(net, k);
        if (node->is.var.slot == param.slot && node->is.tied < 0)
            return node->name;
    }
    return "";
}

/* Parameter `part` of layer `name`: "name.part". */
static inline jot_Var
net_part(jot_Net net, const char *name, const char *part, jot_Ints shape, jot_Init init)
{
    char full[2 * JOT_NAME_SIZE];
    if (!name || net_length(name) + net_length(part) + 2 > sizeof full)
        return jot_raise(net.state.ctx, JOT_EUSE, "layer: name: at most %d characters asked, %s "
                         "found", JOT_NAME_SIZE - 1, name ? "more" : "none");
    char *t = nn_put(full, name);
    nn_put(*name ? nn_put(t, ".") : t, part);
    return jot_net_param(net, full, shape, &init);
}

/* The parameter w, asked for last, is used in so many multiply-adds. */
static inline void
net_count(Net *net, jot_Var w, double madds)
{
    if (jot_ok(w))
        net->asked->is.madds = madds;
}

/* A layer's rule, or the caller's choice. */
static inline jot_Init
net_init(jot_Init asked, jot_InitRule rule, double a, double b)
{
    jot_Init own = {rule, a, b};
    return asked.rule == JOT_INIT_LAYER ? own : asked;
}

/* v in the dtype that the net computes in */
static inline jot_Var
net_as(const Net *net, jot_Var v)
{
    return nn_given(v) ? jot_cast(v, net->compute) : v;
}

#endif
