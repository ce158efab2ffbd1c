/* expr.h - operators written as text, and Einstein's sums, composed on core.h.
 *
 * Read before: core.h. After: expr/parts.h. */
#ifndef JOT_EXPR_H
#define JOT_EXPR_H
#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Statements over named variables become the three meta-operators:
 *
 *     y = jot_expr(c, "C[i,j] += A[i,k] * B[k,j]", JOT_NAMED(A, B));
 *     y = jot_expr(c, "y[n,o,h,w] += x[n,c,h+p-1,w+q-1 else 0] * k[o,c,p,q] for h < x.2, w < x.3",
 *                  "x, k", JOT_VARS(image, weight));
 *
 * names: of the operands, in their order, one for each; JOT_NAMED(A, B) gives C's own names and the
 * variables. A word that names no variable is an index: it stands for 0, 1, ... below its range.
 *
 *     text       = statement { ";" statement } [ ";" ] [ "->" name { "," name } ]
 *     statement  = name [ "[" place { "," place } "]" ] op value [ "for" bound { "," bound } ]
 *     place      = index [ "<" extent ]
 *     bound      = name "<" extent
 *     op         = "=" | "+=" | "*=" | "max=" | "min=" | "mean=" | "&=" | "|=" | "^="
 *     value      = number | name | variable [ "[" index { "," index } [ "else" number ] "]" ]
 *                | function "(" value { "," value } ")" | "(" value ")" | value "?" value ":" value
 *                | variable "." digits | unary and binary operators: - ! ~ || && | ^ & == != < <=
 *                  > >= << >> + - * / // %, of C's precedence, but comparisons do not chain
 *     index      = of names, whole numbers, extents x.0 and loads @e[index, ...], with + - * / //
 *                  %, comparisons, && || ! and parentheses; not of products of names
 *     extent     = an index without names
 *
 * A variable is a function of its names alone: what is assigned may be read by later statements,
 * and none is assigned twice. Names on the left are the dimensions; the others are reduced by op.
 * With a reduction a place may be any index (2*i + p, @e[i], i twice): results are combined where
 * they fall, and dropped outside of the extent given, which is needed where the place could be
 * outside of any. Functions are those of JOT_UNARY and JOT_BINARY by name, square, reciprocal,
 * relu, gelu, gelu_tanh, stop_grad, and dtypes (f32(x[i])). x.2 is extent 2 of x. Within brackets
 * and bounds / rounds down, as // does everywhere; outside, an index is divided by // alone.
 *
 * Ranges. A range that is given counts. Else a name that stands alone as an index of a variable has
 * its extent, and all such extents agree; else one that is the only unknown of an index has the
 * largest range that keeps all such indices inside. Then every index must stay inside, but:
 *   - of a read with `else`, which has that number outside
 *   - if a name of it stands in a condition on indices around it: i > 0 ? x[i-1] : 0. Outside all
 *     the same, such a read is the number on the other side of the ':', or 0
 *   - with a load, which is not known: outside is 0, as in jot_take
 * The first two give ranges only to names alone, where nothing else does.
 *
 * Dtypes are those of the operators. A number takes the dtype of the value it meets (with `else`,
 * of what is read), and must be one of it; both are f32 if it is real and the value an integer.
 * Numbers alone are i64 or f32, index names i64.
 *
 * A text that means nothing fails with JOT_EINDEX, JOT_ESHAPE (ranks, ranges), JOT_EDTYPE or
 * JOT_ERANGE and a caret under the place; names that do not fit the operands are JOT_EUSE. A
 * statement has at most JOT_MAX_RANK names and 319 parts, a text 64 variables. */
JOT_API jot_Var jot_expr(jot_Ctx *ctx, const char *text, const char *names, jot_Vars operands);
/* The same with n outputs: those after ->, or the last statement's. False and poison after a
 * failure. */
JOT_API bool jot_exprs(jot_Ctx *ctx, const char *text, const char *names, jot_Vars operands, int n,
                       jot_Var *outputs);
/* Einstein's sum, as NumPy has it: a letter for each dimension, operands separated by commas.
 * "bhqd,bhkd->bhqk"; without -> the letters that stand once, by the alphabet (A..Z, a..z). A letter
 * twice in one operand is its diagonal; ... stands for dimensions that broadcast. Extents of a
 * letter are equal or 1. Products of integers are i64 or u64. Operands (at most 32) are joined from
 * the left, two at a time. */
JOT_API jot_Var jot_einsum(jot_Ctx *ctx, const char *text, jot_Vars operands);

#ifdef __cplusplus
}
#endif
#define JOT_NAMED(...) #__VA_ARGS__, JOT_VARS(__VA_ARGS__)

#endif
