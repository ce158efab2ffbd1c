/* ccode/emit/prelude_read.c - the C of the prelude's bodies, an expression at a time: tokens,
 * precedence, and for each operand its type, whether it differs between lanes, and whether it is a
 * truth value.
 *
 *     (q & 1) ? a : -b    ->    choice(binary & (q, 1), a, unary - (b))
 *
 *   requires  valid C, as the library itself compiled it, in one line
 *   breaks    `failed` is set for what is not of the subset: the function is called lane by lane
 *
 * Read before: ccode/emit/prelude_vector.h. After: ccode/emit/prelude_vector.c. */
#include "ccode/emit/prelude_vector.h"

static const VTypeName vtypes[VT_NONE] = {
    {"float", "f32", 32}, {"double", "f64", 64}, {"jot_i8", "i8", 8}, {"jot_u8", "u8", 8},
    {"jot_i16", "i16", 16}, {"jot_u16", "u16", 16}, {"jot_i32", "i32", 32}, {"jot_u32", "u32", 32},
    {"jot_i64", "i64", 64}, {"jot_u64", "u64", 64}
};

JOT_FN const VTypeName *
jot_vtype(int t)
{
    return &vtypes[t];
}

static bool
vform_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool
vform_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A number goes on over the sign of its exponent. */
static const char *
vform_word_end(const char *s)
{
    const char *start = s;
    bool hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
    for (; vform_letter(*s) || vform_digit(*s) || *s == '.'; s++)
        if (vform_digit(*start) && !hex && *s == 'e' && (s[1] == '-' || s[1] == '+'))
            s++;
    return s;
}

JOT_FN void
jot_vform_token(VForm *f)
{
    static const char pairs[] = "&& || == != <= >= << >> ++ -- += -= *= /= |= &= ^= %= -> ";
    const char *s = f->at;
    while (*s == ' ')
        s++;
    f->tok = s;
    f->op = 0;
    if (vform_letter(*s) || vform_digit(*s)) {
        s = vform_word_end(s);
    } else if (*s) {
        f->op = (unsigned char)*s++;
        for (const char *p = pairs; *p; p += 3)
            if (p[0] == f->op && p[1] == *s) {
                f->op = VOP(f->op, *s);
                s++;
                break;
            }
    }
    f->ntok = (size_t)(s - f->tok);
    f->at = s;
}

JOT_FN bool
jot_vform_is(const VForm *f, const char *word)
{
    return jot_str_len(word) == f->ntok && memcmp(word, f->tok, f->ntok) == 0;
}

JOT_FN void
jot_vform_want(VForm *f, int op)
{
    if (f->op != op)
        f->failed = true;
    else
        jot_vform_token(f);
}

JOT_FN VType
jot_vform_type(const char *s, size_t n)
{
    if (n == 3 && memcmp(s, "int", 3) == 0)
        return VT_I32;
    for (int t = 0; t < VT_NONE; t++)
        if (jot_str_len(vtypes[t].c) == n && memcmp(vtypes[t].c, s, n) == 0)
            return (VType)t;
    return VT_NONE;
}

JOT_FN VVar *
jot_vform_var(VForm *f, const char *s, size_t n)
{
    for (int i = f->vars - 1; i >= 0; i--)
        if (f->var[i].n == n && memcmp(f->var[i].s, s, n) == 0)
            return &f->var[i];
    return NULL;
}

/* The token is the name. */
JOT_FN VVar *
jot_vform_declare(VForm *f, VType type, VarKind kind)
{
    VVar *v = &f->var[f->vars];
    f->failed |= f->vars + 1 >= VFORM_VARS || f->op || !f->ntok;
    f->vars += !f->failed;
    v->s = f->tok, v->n = f->ntok;
    v->type = type, v->kind = kind, v->bits = 32, v->depth = f->depth;
    return v;
}

JOT_FN const char *
jot_vform_param(const char *p, VVar *v)
{
    const char *from;
    while (*p == '(' || *p == ',' || *p == ' ')
        p++;
    if (*p == ')' || !*p)
        return NULL;
    from = p;
    while (vform_letter(*p) || vform_digit(*p))
        p++;
    memset(v, 0, sizeof *v);
    v->type = jot_vform_type(from, (size_t)(p - from));
    for (; *p == ' ' || *p == '*'; p++)
        v->kind = *p == '*' ? VAR_POINTER : v->kind;
    v->s = p;
    while (vform_letter(*p) || vform_digit(*p))
        p++;
    v->n = (size_t)(p - v->s);
    return p;
}

JOT_FN VType
jot_vform_common(VType a, VType b)
{
    if (vtype_is_float(a) || vtype_is_float(b))
        return a == VT_F64 || b == VT_F64 ? VT_F64 : VT_F32;
    a = vtypes[a].bits < 32 ? VT_I32 : a;
    b = vtypes[b].bits < 32 ? VT_I32 : b;
    return a > b ? a : b; /* wider first, unsigned before signed */
}

JOT_FN bool
jot_vform_is_truth(const PreludeFn *fn)
{
    return jot_str_eq(fn->ret, "int");
}

/* ---- nodes ---- */

static int vform_unary(VForm *f);
static int vform_choice(VForm *f);

static int
vform_new(VForm *f, VKind kind, VType type, const char *from)
{
    VNode *n = &f->node[f->nodes];
    f->failed |= f->nodes + 1 >= VFORM_NODES || type >= VT_NONE;
    memset(n, 0, sizeof *n);
    n->kind = (uint8_t)kind;
    n->type = (uint8_t)(type < VT_NONE ? type : VT_I32);
    n->s = from;
    n->arg[0] = n->arg[1] = n->arg[2] = n->next = -1;
    f->nodes += !f->failed;
    return (int)(n - f->node);
}

/* Its operands are read: the text ends before the token, lanes differ where an operand's do. */
static int
vform_close(VForm *f, int i)
{
    VNode *n = &f->node[i];
    n->n = (size_t)(f->tok - n->s);
    while (n->n > 0 && n->s[n->n - 1] == ' ')
        n->n--;
    for (int a = 0; a < 3; a++)
        if (n->arg[a] >= 0)
            n->vec |= f->node[n->arg[a]].vec;
    return i;
}

static int
vform_number(VForm *f)
{
    char last = f->tok[f->ntok - 1];
    bool hex = f->tok[0] == '0' && f->ntok > 1 && f->tok[1] == 'x', real = false, wide = false;
    int i;
    for (size_t c = 0; c < f->ntok; c++)
        real |= !hex && (f->tok[c] == '.' || f->tok[c] == 'e');
    wide = !real && (last == 'l' || last == 'L' || f->ntok > 11);
    f->failed |= wide; /* the prelude has none */
    i = vform_new(f, V_NUMBER, real ? last == 'f' ? VT_F32 : VT_F64
                                    : last == 'u' ? VT_U32 : VT_I32, f->tok);
    jot_vform_token(f);
    return vform_close(f, i);
}

/* name(arguments): of the prelude. Without pointers and with nothing that differs between lanes it
 * is a scalar's call. */
static int
vform_call(VForm *f, const char *name, size_t len)
{
    const PreludeFn *fn = jot_prelude_find(name, len);
    int i, last = -1, a;
    const char *p;
    VVar param;
    if (!fn) {
        f->failed = true;
        return 0;
    }
    i = vform_new(f, V_CALL, jot_vform_type(fn->ret, jot_str_len(fn->ret)), name);
    f->node[i].fn = fn;
    f->node[i].truth = jot_vform_is_truth(fn);
    jot_vform_want(f, '(');
    for (p = fn->params; (p = jot_vform_param(p, &param)) != NULL && !f->failed; last = a) {
        if (last >= 0)
            jot_vform_want(f, ',');
        a = vform_choice(f);
        if (last < 0)
            f->node[i].arg[0] = a;
        else
            f->node[last].next = a;
        f->node[i].vec |= f->node[a].vec || param.kind == VAR_POINTER;
    }
    jot_vform_want(f, ')');
    return vform_close(f, i);
}

static int
vform_name(VForm *f)
{
    const char *s = f->tok;
    size_t n = f->ntok;
    VVar *v;
    int i;
    jot_vform_token(f);
    if (f->op == '(')
        return vform_call(f, s, n);
    v = jot_vform_var(f, s, n);
    i = vform_new(f, V_NAME, v ? v->type : VT_NONE, s);
    f->node[i].vec = v && v->kind != VAR_SCALAR;
    f->node[i].truth = v && v->kind == VAR_MASK;
    f->failed |= f->op == '[';
    return vform_close(f, i);
}

static int
vform_parenthesis(VForm *f)
{
    const char *from = f->tok;
    VType t;
    int i;
    jot_vform_token(f);
    t = f->op ? VT_NONE : jot_vform_type(f->tok, f->ntok);
    if (t == VT_NONE) {
        i = vform_choice(f);
        jot_vform_want(f, ')');
        f->node[i].s = from;
        return vform_close(f, i);
    }
    jot_vform_token(f);
    jot_vform_want(f, ')');
    i = vform_new(f, V_CAST, t, from);
    if (!f->failed)
        f->node[i].arg[0] = vform_unary(f);
    return vform_close(f, i);
}

static int
vform_unary(VForm *f)
{
    const char *from = f->tok;
    int op = f->op, i, a;
    if (f->failed)
        return 0;
    if (!op && f->ntok)
        return vform_digit(*f->tok) ? vform_number(f) : vform_name(f);
    if (op == '(')
        return vform_parenthesis(f);
    if (op != '-' && op != '~' && op != '!' && op != '*' && op != '&') {
        f->failed = true;
        return 0;
    }
    jot_vform_token(f);
    a = vform_unary(f);
    i = vform_new(f, op == '*' ? V_AT : op == '&' ? V_ADDRESS : V_UNARY,
                  op == '!' ? VT_I32 : op == '-' || op == '~'
                  ? jot_vform_common(f->node[a].type, f->node[a].type) : f->node[a].type, from);
    f->node[i].op = op;
    f->node[i].arg[0] = a;
    f->node[i].truth = op == '!';
    return vform_close(f, i);
}

static int
vform_precedence(int op)
{
    switch (op) {
    case VOP('|', '|'): return 1;
    case VOP('&', '&'): return 2;
    case '|': return 3;
    case '^': return 4;
    case '&': return 5;
    case VOP('=', '='): case VOP('!', '='): return 6;
    case '<': case '>': case VOP('<', '='): case VOP('>', '='): return 7;
    case VOP('<', '<'): case VOP('>', '>'): return 8;
    case '+': case '-': return 9;
    case '*': case '/': case '%': return 10;
    }
    return 0;
}

static int
vform_binary(VForm *f, int least)
{
    const char *from = f->tok;
    int a = vform_unary(f), level;
    while (!f->failed && (level = vform_precedence(f->op)) >= least) {
        int op = f->op, b, i;
        bool logic = level <= 2, both;
        jot_vform_token(f);
        b = vform_binary(f, level + 1);
        both = f->node[a].truth && f->node[b].truth;
        i = vform_new(f, V_BINARY, logic || level == 6 || level == 7 ? VT_I32
                      : jot_vform_common(f->node[a].type, level == 8 ? f->node[a].type
                                                                     : f->node[b].type), from);
        f->node[i].op = op;
        f->node[i].arg[0] = a;
        f->node[i].arg[1] = b;
        f->node[i].truth = logic || level == 6 || level == 7 || (both && level <= 5);
        a = vform_close(f, i);
    }
    return a;
}

static int
vform_choice(VForm *f)
{
    const char *from = f->tok;
    int c = vform_binary(f, 1), a, b, i;
    if (f->failed || f->op != '?')
        return c;
    jot_vform_token(f);
    a = vform_choice(f);
    jot_vform_want(f, ':');
    b = vform_choice(f);
    i = vform_new(f, V_CHOICE, jot_vform_common(f->node[a].type, f->node[b].type), from);
    f->node[i].arg[0] = c;
    f->node[i].arg[1] = a;
    f->node[i].arg[2] = b;
    f->node[i].truth = f->node[a].truth && f->node[b].truth;
    return vform_close(f, i);
}

JOT_FN int
jot_vform_read(VForm *f)
{
    f->nodes = 0;
    return vform_choice(f);
}
