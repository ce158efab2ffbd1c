/* tests/expr_draw.h - drawn programs in the language of expressions, as text and as values.
 *
 * A program is one to three statements over names of small ranges, with reads at affine and
 * quasi-affine places, loads, values outside, conditions on indices and on values, reductions of
 * each kind, scatters; its ranges are given, or left to be found from reads that have a name alone
 * or with known ones. It is written as text with drawn spaces, and evaluated here, point by point,
 * in doubles that are whole numbers, so that results agree to the bit (products and means up to
 * rounding). */
#ifndef JOT_TEST_EXPR_DRAW_H
#define JOT_TEST_EXPR_DRAW_H
#include <stdarg.h>
#include "expr.h"
#include "tests/test.h"

enum { VARS = 60, NAMES = 4, NODES = 600, ELEMENTS = 4096, TEXT = 8192 };

static uint64_t state;

static int
rng(int n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

/* ---- programs ----------------------------------------------------------------------------- */

typedef enum {
    NUM, NAME, ADD, SUB, MUL, DIV, MOD, LOAD, LT, GE, EQ, AND, OR, NOT, /* of indices, too */
    READ, NEG, ABS, MAXIMUM, MINIMUM, SQUARE, COND
} Kind;
typedef struct { Kind kind; int a, b, c, var, idx[NAMES]; double num; bool outside; } Node;
typedef struct { bool index, made; int rank; int64_t ext[NAMES]; double data[ELEMENTS]; } Var;

static Node node[NODES];
static Var var[VARS];
static int nnodes, nvars, nnames, ext[NAMES], at[NAMES]; /* ranges; the point that is evaluated */
static unsigned loose; /* names of conditions on indices around: they may run outside */
static char text[TEXT];
static int length;

static void
put(const char *format, ...)
{
    va_list args;

    if (rng(8) == 0 && length < TEXT - 300)
        text[length++] = " \t\n "[rng(4)];
    va_start(args, format);
    length += vsnprintf(text + length, (size_t)(TEXT - length), format, args);
    va_end(args);
}

static int
new_node(Kind kind, int a, int b)
{
    Node *n = &node[nnodes];

    memset(n, 0, sizeof *n);
    n->kind = kind;
    n->a = a;
    n->b = b;
    return nnodes++;
}

static int
new_num(double v)
{
    int id = new_node(NUM, 0, 0);

    node[id].num = v;
    return id;
}

static int
new_name(int name)
{
    int id = new_node(NAME, 0, 0);

    node[id].var = name;
    return id;
}

/* ---- values ------------------------------------------------------------------------------- */

static double value(int id);

static int64_t
floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* The element, or `outside`. */
static double
element(const Node *n, double outside)
{
    const Var *v = &var[n->var];
    int64_t offset = 0;
    int d;

    for (d = 0; d < v->rank; d++) {
        double i = value(n->idx[d]);

        if (!(i >= 0 && i < (double)v->ext[d]))
            return outside;
        offset = offset * v->ext[d] + (int64_t)i;
    }
    return v->data[offset];
}

/* Is a load inside of an index outside of what it reads? Then so is the index. */
static bool
load_fails(int id)
{
    const Node *n = &node[id];

    if (n->kind == LOAD)
        return isnan(element(n, NAN));
    if (n->kind == NUM || n->kind == NAME)
        return false;
    return load_fails(n->a) || (n->kind != NOT && n->kind != MUL && load_fails(n->b));
}

static double
read_at(const Node *n, double outside)
{
    int d;

    for (d = 0; d < var[n->var].rank; d++)
        if (load_fails(n->idx[d]))
            return outside;
    return element(n, outside);
}

static double
value(int id)
{
    const Node *n = &node[id];
    double a, b;

    switch (n->kind) {
    case NUM: return n->num;
    case NAME: return at[n->var];
    case LOAD: return element(n, 0);
    case READ: return read_at(n, n->outside ? n->num : 0);
    case COND: /* a read that is outside all the same is the number on the other side */
        a = value(n->a) ? n->b : n->c;
        b = value(n->a) ? n->c : n->b;
        if (node[n->a].kind >= LT && node[n->a].kind <= NOT && node[(int)a].kind == READ &&
            node[(int)b].kind == NUM && !node[(int)a].outside && node[n->a].var)
            return read_at(&node[(int)a], node[(int)b].num);
        return value((int)a);
    default:
        break;
    }
    a = value(n->a);
    b = n->kind == NOT || n->kind == NEG || n->kind == ABS || n->kind == SQUARE ? 0 : value(n->b);
    switch (n->kind) {
    case ADD: return a + b;
    case SUB: return a - b;
    case MUL: return a * b;
    case DIV: return (double)floor_div((int64_t)a, (int64_t)b);
    case MOD: return a - b * (double)floor_div((int64_t)a, (int64_t)b);
    case LT: return a < b;
    case GE: return a >= b;
    case EQ: return a == b;
    case AND: return a && b;
    case OR: return a || b;
    case NOT: return !a;
    case NEG: return -a;
    case ABS: return fabs(a);
    case MAXIMUM: return a > b ? a : b;
    case MINIMUM: return a < b ? a : b;
    default: return a * a;
    }
}

/* Next point of all names; false: they are through. */
static bool
step(int n, int *i, const int *e)
{
    while (n-- > 0) {
        if (++i[n] < e[n])
            return true;
        i[n] = 0;
    }
    return false;
}

static void
bounds(int id, int64_t *lo, int64_t *hi)
{
    *lo = INT64_MAX, *hi = INT64_MIN;
    memset(at, 0, sizeof at);
    do {
        int64_t v = (int64_t)value(id);

        *lo = v < *lo ? v : *lo;
        *hi = v > *hi ? v : *hi;
    } while (step(nnames, at, ext));
}

/* ---- drawing ------------------------------------------------------------------------------ */

static int
new_var(bool index, int rank, const int64_t *e)
{
    Var *v = &var[nvars];
    int64_t n = 1;
    int k;

    v->index = index;
    v->made = false;
    v->rank = rank;
    for (k = 0; k < rank; k++)
        n *= v->ext[k] = e[k];
    for (k = 0; k < n; k++)
        v->data[k] = rng(6) - (index ? 1 : 2);
    return nvars++;
}

/* @e[name] of values -1..4 */
static int
draw_load(int name)
{
    int id = new_node(LOAD, 0, 0);
    int64_t e = ext[name];

    node[id].var = new_var(true, 1, &e);
    node[id].idx[0] = new_name(name);
    return id;
}

/* An affine or quasi-affine expression in which no name stands twice. */
static int
draw_affine(int *lone)
{
    int first = rng(nnames), id = new_name(first), k;

    *lone = first;
    if (rng(2))
        return id;
    if (rng(2))
        id = new_node(MUL, id, new_num(1 + rng(3)));
    for (k = 0; k < nnames && rng(3); k++)
        if (k != first)
            id = new_node(rng(3) ? ADD : SUB, id, new_name(k));
    if (rng(3) == 0)
        id = new_node(rng(2) ? ADD : SUB, id, new_num(rng(4)));
    if (rng(4) == 0)
        id = new_node(DIV, id, new_num(2 + rng(2)));
    else if (rng(6) == 0)
        id = new_node(MOD, new_name(first), new_num(2 + rng(2)));
    *lone = node[id].kind == NAME ? first : -1;
    return id;
}

static unsigned
names_of(int id)
{
    const Node *n = &node[id];

    if (n->kind == NUM)
        return 0;
    if (n->kind == NAME)
        return 1u << n->var;
    if (n->kind == LOAD)
        return names_of(n->idx[0]);
    return names_of(n->a) | (n->kind == NOT ? 0 : names_of(n->b));
}

/* A read of a new variable, which has the extents that it needs; outside: it may leave it, and so
 * it may where a condition allows. */
static int
draw_read(bool outside)
{
    int id = new_node(READ, 0, 0), rank = rng(4), d, lone;
    int64_t e[NAMES], lo, hi;
    bool leaves;

    for (d = 0; d < rank; d++) {
        int x = rng(8) ? draw_affine(&lone) : -1;

        if (x < 0)
            x = draw_load(rng(nnames)), lo = 0, hi = 3, lone = -1;
        else
            bounds(x, &lo, &hi);
        leaves = outside || names_of(x) & loose;
        if (lo < 0 && !leaves)
            x = new_node(ADD, x, new_num((double)-lo)), hi -= lo;
        e[d] = hi < 0 ? 1 : hi + 1;
        if (leaves)
            e[d] = 1 + rng((int)e[d] + 1);
        else if (lone < 0)
            e[d] += rng(3);
        node[id].idx[d] = x;
    }
    node[id].var = new_var(false, rank, e);
    node[id].outside = outside;
    node[id].num = rng(9) - 4;
    return id;
}

/* A condition on indices; its own flag says so, for numbers beside reads. */
static int
draw_test(int depth)
{
    int lone, id, x;

    if (depth && rng(3) == 0) {
        id = new_node(rng(2) ? AND : OR, draw_test(depth - 1), 0);
        x = draw_test(depth - 1);
        node[id].b = x;
    } else if (depth && rng(4) == 0)
        id = new_node(NOT, draw_test(depth - 1), 0);
    else {
        x = draw_affine(&lone);
        id = new_node((Kind)(LT + rng(3)), x, rng(3) ? new_num(rng(4)) : new_name(rng(nnames)));
    }
    node[id].var = 1;
    return id;
}

static int draw_value(int depth);

/* A condition on values. */
static int
draw_compare(int depth)
{
    int x = draw_read(rng(3) == 0), id = new_node(ADD, x, draw_value(depth));

    return new_node((Kind)(LT + rng(3)), id, new_num(1));
}

static int
draw_value(int depth)
{
    static const Kind two[] = {ADD, SUB, MUL, MAXIMUM, MINIMUM}, one[] = {NEG, ABS, SQUARE};
    int id, lone;
    unsigned around = loose;

    if (nvars > VARS - 30 || nnodes > NODES - 200)
        return rng(2) ? new_num(rng(7) - 3) : new_name(rng(nnames));
    if (!depth)
        return rng(6) ? draw_read(rng(3) == 0)
             : rng(2) ? new_num(rng(7) - 3) : new_name(rng(nnames));
    switch (rng(8)) {
    case 0:
        id = new_node(one[rng(3)], 0, 0);
        node[id].a = draw_value(depth - 1);
        return node[node[id].a].kind == NUM ? node[id].a : id; /* a negative number is a number */
    case 1: case 2:
        id = new_node(COND, 0, 0);
        node[id].a = rng(3) ? draw_test(2) : draw_compare(depth - 1);
        loose |= node[node[id].a].var ? names_of(node[id].a) : 0;
        node[id].b = draw_value(rng(2) ? depth - 1 : 0);
        node[id].c = draw_value(rng(2) ? depth - 1 : 0);
        loose = around;
        return id;
    case 3:
        return draw_affine(&lone);
    default:
        id = new_node(two[rng(5)], 0, 0);
        node[id].a = draw_value(depth - 1);
        node[id].b = draw_value(depth - 1);
        return id;
    }
}

/* ---- text --------------------------------------------------------------------------------- */

static void
write_node(int id, bool brackets)
{
    static const char *const infix[] = {"", "", "+", "-", "*", "/", "%", "", "<", ">=",
                                        "==", "&&", "||"};
    static const char *const fn[] = {"-", "abs", "maximum", "minimum", "square"};
    const Node *n = &node[id];
    int d;

    switch (n->kind) {
    case NUM:
        put(n->num < 0 ? "(%g)" : "%g", n->num);
        break;
    case NAME:
        put("%c", "ijkl"[n->var]);
        break;
    case LOAD: case READ:
        put(n->kind == LOAD ? "@x%d" : "x%d", n->var);
        for (d = 0; d < var[n->var].rank; d++) {
            put(d ? "," : "[");
            write_node(n->idx[d], true);
        }
        if (n->outside && d)
            put(" else %g", n->num);
        put(d ? "]" : "");
        break;
    case NOT:
        put("!(");
        write_node(n->a, brackets);
        put(")");
        break;
    case COND:
        put("(");
        write_node(n->a, false);
        put("?");
        write_node(n->b, false);
        put(":");
        write_node(n->c, false);
        put(")");
        break;
    case NEG: case ABS: case MAXIMUM: case MINIMUM: case SQUARE:
        put("%s(", fn[n->kind == NEG ? 0 : n->kind - ABS + 1]);
        write_node(n->a, false);
        if (n->kind == MAXIMUM || n->kind == MINIMUM) {
            put(",");
            write_node(n->b, false);
        }
        put(")");
        break;
    default:
        put("(");
        write_node(n->a, brackets);
        put("%s", n->kind == DIV && !brackets ? "//" : infix[n->kind]);
        write_node(n->b, brackets);
        put(")");
    }
}

/* ---- statements --------------------------------------------------------------------------- */

static const char *const ops[] = {"=", "+=", "max=", "min=", "*=", "mean="};

/* What is combined where: place d of the result is node place[d] */
typedef struct { int op, rank, place[NAMES], root; int64_t ext[NAMES]; } Statement;

static void
evaluate(const Statement *s, Var *to)
{
    static double count[ELEMENTS];
    static const double identity[] = {0, 0, -INFINITY, INFINITY, 1, 0};
    int64_t n = 1;
    int d, k;

    to->made = true;
    to->rank = s->rank;
    for (d = 0; d < s->rank; d++)
        n *= to->ext[d] = s->ext[d];
    for (k = 0; k < n; k++)
        to->data[k] = identity[s->op], count[k] = 0;
    memset(at, 0, sizeof at);
    do {
        int64_t offset = 0;
        double v = value(s->root), *y;

        for (d = 0; d < s->rank; d++) {
            double i = load_fails(s->place[d]) ? -1 : value(s->place[d]);

            if (!(i >= 0 && i < (double)s->ext[d]))
                break;
            offset = offset * s->ext[d] + (int64_t)i;
        }
        if (d < s->rank)
            continue;
        y = &to->data[offset];
        count[offset]++;
        *y = s->op == 0 ? v : s->op == 2 ? v > *y ? v : *y : s->op == 3 ? v < *y ? v : *y
           : s->op == 4 ? *y * v : *y + v;
    } while (step(nnames, at, ext));
    for (k = 0; s->op == 5 && k < n; k++)
        to->data[k] = count[k] ? to->data[k] / count[k] : NAN;
}

/* A read that has all names, so that their ranges are found: each alone, but perhaps the last,
 * which stands in a sum with others, in a variable that has room for no more of it. */
static int
draw_anchor(void)
{
    int id = new_node(READ, 0, 0), d, factor = 1 + rng(3);
    int64_t e[NAMES], lo, hi;

    for (d = 0; d < nnames; d++) {
        node[id].idx[d] = new_name(d);
        e[d] = ext[d];
    }
    if (nnames > 1 && rng(2)) {
        int x = new_node(MUL, new_name(nnames - 1), new_num(factor));

        x = new_node(ADD, x, new_name(0));
        bounds(x, &lo, &hi);
        node[id].idx[nnames - 1] = x;
        e[nnames - 1] = hi + 1 + rng(factor);
    }
    node[id].var = new_var(false, nnames, e);
    return id;
}

static void
draw_places(Statement *s, bool *given)
{
    int d, lone;
    int64_t lo, hi;

    for (d = 0; d < s->rank; d++) {
        s->place[d] = new_name(d); /* the left side's names come first */
        s->ext[d] = ext[d];
        given[d] = false;
        if (s->op < 1 || rng(4))
            continue;
        s->place[d] = rng(4) ? draw_affine(&lone) : draw_load(rng(nnames));
        if (node[s->place[d]].kind == NAME) {
            s->ext[d] = ext[node[s->place[d]].var];
            continue;
        }
        bounds(s->place[d], &lo, &hi);
        given[d] = node[s->place[d]].kind == LOAD || lo < 0 || rng(2);
        s->ext[d] = given[d] ? 1 + rng(5) : hi + 1;
    }
}

static void
draw_statement(int number, bool last)
{
    Statement s = {0};
    bool given[NAMES], bound = rng(2);
    int d, anchor, tree;

    nnames = 1 + rng(NAMES);
    for (d = 0; d < nnames; d++)
        ext[d] = 1 + rng(4);
    s.rank = rng(nnames + 1);
    s.op = s.rank == nnames && rng(3) ? 0 : 1 + rng(last ? 5 : 3);
    anchor = draw_anchor();
    tree = draw_value(3);
    s.root = new_node(rng(3) ? ADD : MUL, anchor, tree);
    if (number && rng(2)) { /* what was made before, at some place of it */
        int id = new_node(READ, 0, 0);

        node[id].var = number - 1;
        node[id].outside = true;
        for (d = 0; d < var[number - 1].rank; d++)
            node[id].idx[d] = new_name(rng(nnames));
        s.root = new_node(SUB, s.root, id);
    }
    draw_places(&s, given);
    put("x%d", number);
    for (d = 0; d < s.rank; d++) {
        put(d ? "," : "[");
        write_node(s.place[d], true);
        if (given[d])
            put("< %lld", (long long)s.ext[d]);
    }
    put(s.rank ? "] %s" : " %s", ops[s.op]);
    write_node(s.root, false);
    for (d = 0; bound && d < nnames; d++)
        put(d ? ", %c < %d" : " for %c < %d", "ijkl"[d], ext[d]);
    put(last ? "" : ";");
    evaluate(&s, &var[number]);
}

/* How many statements it has; their variables are the first. */
static int
draw_program(uint64_t seed)
{
    int made = 1 + (int)(seed % 3), k;

    state = seed * 0x9e3779b97f4a7c15u + 1;
    nnodes = length = 0;
    text[0] = 0;
    nvars = made;
    for (k = 0; k < made; k++)
        draw_statement(k, k + 1 == made);
    return made;
}

#endif
