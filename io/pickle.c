/* io/pickle.c - Python's pickles, as much of them as state dicts need: a machine of a stack and a
 * memo, whose opcodes make values. Nothing is imported or called. Of classes and functions there
 * are names, and those that are "called" are the few rows of pickle_calls, which are PyTorch's way
 * to say "a tensor" or "a dict"; all others are refused by name.
 *
 * The opcodes are those of protocols 2 to 4 for None, bools, integers, floats, texts, tuples,
 * lists, dicts and what was named, in Python's module pickletools.
 *
 * Read before: io/pickle.h. After: io/torch.c. */
#ifndef JOT_NO_HOST
#include "io/pickle.h"

typedef struct {
    IoFile *f;
    const uint8_t *begin, *p, *end;
    PickleValue *stack, *memo;
    size_t n, room, memos, memo_room;
} Pickle;

static const PickleValue pickle_none = {PICKLE_NONE, 0, {0}};

bool
io_pickle_is(PickleValue v, const char *text)
{
    return (v.kind == PICKLE_TEXT || v.kind == PICKLE_NAME) && v.n == strlen(text)
        && !memcmp(v.is.text, text, v.n);
}

static bool
pickle_fail(Pickle *s, const char *what)
{
    return io_fail(s->f, JOT_EIO, "byte %llu: pickle: %s",
                   (unsigned long long)(s->p - s->f->bytes.p), what);
}

/* ---- bytes, stack ---- */

static const uint8_t *
pickle_take(Pickle *s, uint64_t n)
{
    const uint8_t *p = s->p;

    if (n > (uint64_t)(s->end - s->p)) {
        pickle_fail(s, "it ends in the middle");
        return NULL;
    }
    s->p += n;
    return p;
}

static bool
pickle_number(Pickle *s, int n, uint64_t *x)
{
    const uint8_t *p = pickle_take(s, (uint64_t)n);

    *x = p ? io_little(p, n) : 0;
    return p != NULL;
}

static bool
pickle_push(Pickle *s, PickleValue v)
{
    if (!io_grow(s->f, &s->stack, &s->room, s->n, sizeof v))
        return false;
    s->stack[s->n++] = v;
    return true;
}

/* The last value, taken away; NONE, and told, where there is none, or a mark. */
static PickleValue
pickle_pop(Pickle *s)
{
    if (s->n && s->stack[s->n - 1].kind != PICKLE_MARK)
        return s->stack[--s->n];
    pickle_fail(s, "a value asked, none on the stack");
    return pickle_none;
}

static bool
pickle_push_int(Pickle *s, PickleKind kind, int64_t i)
{
    PickleValue v = {kind, 0, {0}};

    v.is.i = i;
    return pickle_push(s, v);
}

/* A text, or a name, of so many bytes behind a number of `wide` bytes. */
static bool
pickle_push_text(Pickle *s, int wide)
{
    PickleValue v = {PICKLE_TEXT, 0, {0}};
    uint64_t n;

    if (!pickle_number(s, wide, &n) || !(v.is.text = (const char *)pickle_take(s, n)))
        return false;
    if (n > UINT32_MAX)
        return pickle_fail(s, "a text of 4 GB");
    v.n = (uint32_t)n;
    return pickle_push(s, v);
}

/* "module.name" of two texts. */
static bool
pickle_push_name(Pickle *s, const void *module, size_t m, const void *name, size_t n)
{
    PickleValue v = {PICKLE_NAME, (uint32_t)(m + 1 + n), {0}};
    char *to = m + n < 1 << 16 ? io_keep(s->f, m + 1 + n) : NULL;

    if (!to)
        return pickle_fail(s, "a name of 64 KB");
    memcpy(to, module, m);
    to[m] = '.';
    memcpy(to + m + 1, name, n);
    v.is.text = to;
    return pickle_push(s, v);
}

/* Two lines. */
static bool
pickle_global(Pickle *s)
{
    const uint8_t *module = s->p, *name = memchr(module, '\n', (size_t)(s->end - module));
    const uint8_t *end = name ? memchr(name + 1, '\n', (size_t)(s->end - name - 1)) : NULL;

    if (!end)
        return pickle_fail(s, "it ends in the middle");
    s->p = end + 1;
    return pickle_push_name(s, module, (size_t)(name - module), name + 1, (size_t)(end - name - 1));
}

/* ---- lists and dicts ---- */

static bool
pickle_append(Pickle *s, PickleItems *to, PickleValue v)
{
    PickleCell *cell = to->n < UINT32_MAX ? io_keep(s->f, sizeof *cell) : NULL;

    if (!cell)
        return false;
    *cell = (PickleCell){v, NULL};
    *(to->first ? &to->last->next : &to->first) = cell;
    to->last = cell;
    to->n++;
    return true;
}

/* Of the last n values, which go. */
static bool
pickle_push_items(Pickle *s, PickleKind kind, size_t n)
{
    PickleValue v = {kind, 0, {0}};
    PickleItems *items = io_keep(s->f, sizeof *items);

    if (!items)
        return false;
    if (n > s->n)
        return pickle_fail(s, "values asked, none on the stack");
    *items = (PickleItems){NULL, NULL, 0};
    for (size_t k = s->n - n; k < s->n; k++)
        if (s->stack[k].kind == PICKLE_MARK || !pickle_append(s, items, s->stack[k]))
            return pickle_fail(s, "a mark among values");
    s->n -= n;
    v.is.items = items;
    return pickle_push(s, v);
}

/* How many values there are behind the last mark, which goes; SIZE_MAX: told. */
static size_t
pickle_marked(Pickle *s)
{
    size_t k = s->n;

    while (k && s->stack[k - 1].kind != PICKLE_MARK)
        k--;
    if (!k) {
        pickle_fail(s, "no mark on the stack");
        return SIZE_MAX;
    }
    memmove(s->stack + k - 1, s->stack + k, (s->n - k) * sizeof *s->stack);
    s->n--;
    return s->n - (k - 1);
}

/* The last n values go into what lies below them. */
static bool
pickle_into(Pickle *s, PickleKind kind, size_t n)
{
    if (n >= s->n || s->stack[s->n - n - 1].kind != kind || (kind == PICKLE_DICT && n % 2))
        return pickle_fail(s, "items of a list or dict that is not there");
    PickleItems *to = s->stack[s->n - n - 1].is.items;
    for (size_t k = s->n - n; k < s->n; k++)
        if (!pickle_append(s, to, s->stack[k]))
            return false;
    s->n -= n;
    return true;
}

/* ---- what is "called" ---- */

static PickleValue
pickle_at(PickleValue list, uint32_t k)
{
    PickleCell *cell = list.kind == PICKLE_LIST && k < list.is.items->n ? list.is.items->first
                                                                        : NULL;
    while (cell && k--)
        cell = cell->next;
    return cell ? cell->value : pickle_none;
}

/* (storage, offset, shape, stride, requires_grad, hooks[, dtype]) */
static bool
call_tensor(Pickle *s, PickleValue in)
{
    PickleTensor *t = io_keep(s->f, sizeof *t);
    PickleValue v = {PICKLE_TENSOR, 0, {0}};

    if (!t)
        return false;
    *t = (PickleTensor){pickle_at(in, 0), pickle_at(in, 1), pickle_at(in, 2), pickle_at(in, 3),
                        pickle_at(in, 6)};
    if (t->storage.kind != PICKLE_LIST || t->offset.kind != PICKLE_INT
        || t->shape.kind != PICKLE_LIST || t->stride.kind != PICKLE_LIST)
        return pickle_fail(s, "a tensor that is none");
    v.is.tensor = t;
    return pickle_push(s, v);
}

/* (tensor, ...): a parameter */
static bool
call_first(Pickle *s, PickleValue in)
{
    return pickle_push(s, pickle_at(in, 0));
}

static bool
call_dict(Pickle *s, PickleValue in)
{
    return in.kind == PICKLE_LIST && !in.is.items->n ? pickle_push_items(s, PICKLE_DICT, 0)
           : pickle_fail(s, "a dict of something");
}

typedef struct { const char *name; bool (*call)(Pickle *s, PickleValue in); } PickleCall;
static const PickleCall pickle_calls[] = {
    {"torch._utils._rebuild_tensor_v2", call_tensor},
    {"torch._utils._rebuild_tensor_v3", call_tensor},
    {"torch._utils._rebuild_parameter", call_first},
    {"torch.Size", call_first},
    {"torch.device", call_first},
    {"collections.OrderedDict", call_dict},
};
enum { PICKLE_CALLS = sizeof pickle_calls / sizeof *pickle_calls };

static bool
pickle_call(Pickle *s)
{
    PickleValue in = pickle_pop(s), what = pickle_pop(s);

    if (s->f->is.status)
        return false;
    for (int k = 0; k < PICKLE_CALLS; k++)
        if (io_pickle_is(what, pickle_calls[k].name))
            return pickle_calls[k].call(s, in);
    return io_fail(s->f, JOT_EIO, "byte %llu: pickle: tensors, dicts, lists, numbers and texts "
                   "asked, an object of %.*s found: its weights are what state_dict() gives, its "
                   "graph what torch.onnx.export writes",
                   (unsigned long long)(s->p - s->f->bytes.p),
                   what.kind == PICKLE_NAME ? (int)(what.n < 120 ? what.n : 120) : 9,
                   what.kind == PICKLE_NAME ? what.is.text : "something");
}

/* ---- the memo ---- */

static bool
pickle_put(Pickle *s, uint64_t k)
{
    if (!s->n || k > s->memos)
        return pickle_fail(s, "a place of the memo that is not the next one");
    if (k == s->memos && !io_grow(s->f, &s->memo, &s->memo_room, s->memos, sizeof *s->memo))
        return false;
    s->memos += k == s->memos;
    s->memo[k] = s->stack[s->n - 1];
    return true;
}

static bool
pickle_get(Pickle *s, uint64_t k)
{
    return k < s->memos ? pickle_push(s, s->memo[k]) : pickle_fail(s, "a memo that is not there");
}

/* ---- opcodes ---- */

/* An integer of n bytes, of two's complement. */
static bool
pickle_long(Pickle *s)
{
    uint64_t n, x = 0;

    if (!pickle_number(s, 1, &n))
        return false;
    if (n > 8)
        return pickle_fail(s, "an integer of more than 64 bits");
    if (!pickle_number(s, (int)n, &x))
        return false;
    if (n && n < 8 && x >> (8 * n - 1))
        x |= UINT64_MAX << 8 * n;
    return pickle_push_int(s, PICKLE_INT, (int64_t)x);
}

static bool
pickle_float(Pickle *s)
{
    const uint8_t *p = pickle_take(s, 8);
    PickleValue v = {PICKLE_FLOAT, 0, {0}};
    uint64_t bits = 0;

    if (!p)
        return false;
    for (int k = 0; k < 8; k++)
        bits = bits << 8 | p[k];
    memcpy(&v.is.f, &bits, 8);
    return pickle_push(s, v);
}

/* Attributes of a dict (a state dict's _metadata) are left out; nothing else has any. */
static bool
pickle_build(Pickle *s)
{
    pickle_pop(s);
    return s->n && s->stack[s->n - 1].kind == PICKLE_DICT ? !s->f->is.status
           : pickle_fail(s, "an object with attributes, where tensors, dicts and lists are asked");
}

static bool
pickle_stack_global(Pickle *s)
{
    PickleValue name = pickle_pop(s), module = pickle_pop(s);

    if (name.kind != PICKLE_TEXT || module.kind != PICKLE_TEXT)
        return pickle_fail(s, "a name that is no text");
    return pickle_push_name(s, module.is.text, module.n, name.is.text, name.n);
}

/* What has a number behind it, or a text. */
static bool
pickle_argument(Pickle *s, uint8_t op)
{
    uint64_t x = 0;
    int wide = strchr("\x80Kqh", op) ? 1 : op == 'M' ? 2 : op == 0x95 ? 8 : 4;

    if (!pickle_number(s, wide, &x))
        return false;
    switch (op) {
    case 0x80: case 0x95: return true;                                /* PROTO, FRAME */
    case 'K': case 'M': return pickle_push_int(s, PICKLE_INT, (int64_t)x);
    case 'J': return pickle_push_int(s, PICKLE_INT, (int32_t)(uint32_t)x);
    case 'q': case 'r': return pickle_put(s, x);
    default: return pickle_get(s, x);                                 /* h, j */
    }
}

static bool
pickle_marked_op(Pickle *s, uint8_t op)
{
    size_t n = pickle_marked(s);

    if (n == SIZE_MAX)
        return false;
    switch (op) {
    case 't': case 'l': return pickle_push_items(s, PICKLE_LIST, n);
    case 'd': return n % 2 ? pickle_fail(s, "a key without a value")
                           : pickle_push_items(s, PICKLE_DICT, n);
    case 'e': return pickle_into(s, PICKLE_LIST, n);
    default: return pickle_into(s, PICKLE_DICT, n);                   /* u */
    }
}

static bool
pickle_op(Pickle *s, uint8_t op)
{
    switch (op) {
    case 'N': return pickle_push(s, pickle_none);
    case 0x88: case 0x89: return pickle_push_int(s, PICKLE_BOOL, op == 0x88);
    case 0x80: case 0x95: case 'K': case 'M': case 'J': case 'q': case 'r': case 'h': case 'j':
        return pickle_argument(s, op);
    case 0x8a: return pickle_long(s);
    case 'G': return pickle_float(s);
    case 'X': return pickle_push_text(s, 4);
    case 0x8c: case 'U': return pickle_push_text(s, 1);
    case 0x8d: return pickle_push_text(s, 8);
    case 'c': return pickle_global(s);
    case 0x93: return pickle_stack_global(s);
    case 0x94: return pickle_put(s, s->memos);
    case '(': return pickle_push_int(s, PICKLE_MARK, 0);
    case 't': case 'l': case 'd': case 'e': case 'u': return pickle_marked_op(s, op);
    case ')': case ']': return pickle_push_items(s, PICKLE_LIST, 0);
    case '}': return pickle_push_items(s, PICKLE_DICT, 0);
    case 0x85: case 0x86: case 0x87: return pickle_push_items(s, PICKLE_LIST, op - 0x84u);
    case 'a': return pickle_into(s, PICKLE_LIST, 1);
    case 's': return pickle_into(s, PICKLE_DICT, 2);
    case 'Q': return s->n || pickle_fail(s, "no id on the stack"); /* of a storage: its list */
    case 'R': case 0x81: return pickle_call(s);
    case 'b': return pickle_build(s);
    case '0': return pickle_pop(s).kind != PICKLE_MARK && !s->f->is.status;
    default: return io_fail(s->f, JOT_EIO, "byte %llu: pickle: opcode %02x, which no state dict "
                            "needs", (unsigned long long)(s->p - 1 - s->f->bytes.p), op);
    }
}

bool
io_pickle(IoFile *f, IoBytes bytes, PickleValue *value)
{
    Pickle s = {.f = f, .begin = bytes.p, .p = bytes.p, .end = bytes.p + bytes.n};
    bool fine = true, stopped = false;

    while (fine && !stopped) {
        const uint8_t *op = pickle_take(&s, 1);
        stopped = op && *op == '.';
        fine = op && (stopped || pickle_op(&s, *op));
    }
    if (fine && (s.n != 1 || s.stack->kind == PICKLE_MARK))
        fine = pickle_fail(&s, "one value asked at its end");
    if (fine)
        *value = *s.stack;
    free(s.stack);
    free(s.memo);
    return fine && !f->is.status;
}
#endif
