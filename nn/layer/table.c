/* nn/layer/table.c - a tree of parameters as a table, line by line through the log hook.
 *
 *     name              shape       dtype   elements     bytes   multiply-adds
 *     conv.weight       (16, 1, 3)  f32           48       192          12,544
 *     again.weight      (16, 1, 3) = conv.weight ...
 *
 * Read before: nn/layer/net.c. After: layer.h. */
#include "nn/layer/net.h"

enum { TABLE_SHAPE = NET_SHAPE + JOT_NAME_SIZE, TABLE_LINE = TABLE_SHAPE + JOT_NAME_SIZE + 128 };
typedef struct { int name, shape; } TableWidths; /* of the first two columns */

/* n with a comma before each three digits */
static char *
table_count(char *to, double n)
{
    char digits[32], *d = digits + sizeof digits - 1;
    uint64_t left = n < 1e19 ? (uint64_t)n : UINT64_MAX;
    *d = 0;
    for (int k = 0; !k || left; k++, left /= 10) {
        if (k && k % 3 == 0)
            *--d = ',';
        *--d = (char)('0' + left % 10);
    }
    return nn_put(to, d);
}

/* (16, 1, 3), and whose elements they are, of a tied one */
static char *
table_shape(char *to, const Net *net, const NetNode *node)
{
    to = net_shape(to, jot_shape(node->is.var));
    return node->is.tied < 0 ? to : nn_put(nn_put(to, " = "), net_node(net, node->is.tied)->name);
}

/* text, then blanks up to so many characters; or blanks before it */
static char *
table_left(char *to, const char *text, int width)
{
    to = nn_put(to, text);
    for (int n = width - (int)net_length(text); n > 0; n--)
        to = nn_put(to, " ");
    return to;
}

static char *
table_right(char *to, const char *text, int width)
{
    for (int n = width - (int)net_length(text); n > 0; n--)
        to = nn_put(to, " ");
    return nn_put(to, text);
}

static void
table_line(jot_Ctx *ctx, TableWidths w, const char *name, const char *shape, const char *dtype,
           const char *const number[3])
{
    char line[TABLE_LINE], *t = table_left(line, name, w.name + 2);
    t = table_left(t, shape, w.shape + 2);
    t = table_left(t, dtype, 5);
    for (int k = 0; k < 3; k++)
        t = table_right(t, number[k], k == 2 ? 18 : 16);
    t = nn_put(t, "\n");
    jot_print_text(ctx, line, (size_t)(t - line));
}

static void
table_numbers(jot_Ctx *ctx, TableWidths w, const char *name, const char *shape, const char *dtype,
              const double value[3])
{
    char text[3][48];
    const char *number[3];
    for (int k = 0; k < 3; k++) {
        table_count(text[k], value[k]);
        number[k] = k == 2 && value[k] == 0 ? "" : text[k];
    }
    table_line(ctx, w, name, shape, dtype, number);
}

/* Where the widest shape ends. */
static TableWidths
table_widths(const Net *n)
{
    TableWidths w = {10, 5};
    char shape[TABLE_SHAPE];
    for (int k = 0; k < n->n; k++) {
        const NetNode *node = net_node(n, k);
        int name = (int)net_length(node->name);
        table_shape(shape, n, node);
        w.name = name > w.name ? name : w.name;
        w.shape = (int)net_length(shape) > w.shape ? (int)net_length(shape) : w.shape;
    }
    return w;
}

bool
jot_net_print(jot_Net net)
{
    static const char *const heads[3] = {"elements", "bytes", "multiply-adds"};
    Net *n = net_of(net, "net_print");
    if (!n)
        return false;
    double all[3] = {0, 0, 0}, trained[3] = {0, 0, 0};
    TableWidths w = table_widths(n);
    table_line(n->ctx, w, "name", "shape", "dtype", heads);
    for (int k = 0; k < n->n; k++) {
        const NetNode *node = net_node(n, k);
        jot_Var v = node->is.var;
        char shape[TABLE_SHAPE];
        double nelem = (double)jot_nelem(v), nbytes = (double)jot_dtype_nbytes(jot_dtype(v));
        double value[3] = {nelem, nelem * nbytes, node->is.madds};
        table_shape(shape, n, node);
        if (node->is.tied >= 0)
            value[0] = value[1] = 0;
        table_numbers(n->ctx, w, node->name, shape, jot_dtype_name(jot_dtype(v)), value);
        for (int j = 0; j < 3; j++) {
            all[j] += value[j];
            trained[j] += net_trained(node) ? value[j] : 0;
        }
    }
    table_numbers(n->ctx, w, "in all", "", "", all);
    table_numbers(n->ctx, w, "trained", "", "", trained);
    return true;
}
