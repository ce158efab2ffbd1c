/* prelude.h - the scalar mathematics of kernels, without libm.
 *
 * One text, used twice: prelude.def is compiled here as static inline functions (interpreter and
 * constant folding call them), and kept in prelude.c as strings, which the emitter puts in front of
 * the kernels that use them. So the interpreter and a generated kernel round alike.
 *
 *     prelude.def --+-- FN = definition --> jotm_expf(x)                   in the library
 *                   +-- FN = table row  --> "jotm_expf", "float", ...      in generated source
 *
 * The functions are named jotm_ because core.h gives jot_exp to a builder. A file that wants the
 * table alone defines JOT_PRELUDE_TEXT before it includes this header.
 *
 * Read before: prelude.def (what each function does, and its error). After: ccode/emit.h. */
#ifndef JOT_PRELUDE_H
#define JOT_PRELUDE_H
#include <stddef.h>
#include <stdint.h>

#ifndef JOT_FN
#define JOT_FN
#endif

/* A function as text: `ret name params body` is its definition. All strings are static. */
typedef struct {
    const char *name;
    const char *ret;    /* return type */
    const char *params; /* with the parentheses */
    const char *uses;   /* functions that the body calls itself, separated by spaces; "" for none */
    const char *body;   /* one line, with the braces */
} PreludeFn;

/* The function of that name (n bytes, no final 0 needed); NULL if there is none. */
JOT_FN const PreludeFn *jot_prelude_find(const char *name, size_t n);
/* All of them, each behind those that it uses. */
JOT_FN const PreludeFn *jot_prelude_table(int *count);
#endif

#if !defined JOT_PRELUDE_TEXT && !defined JOT_PRELUDE_MATH
#define JOT_PRELUDE_MATH
typedef int8_t jot_i8;
typedef int16_t jot_i16;
typedef int32_t jot_i32;
typedef int64_t jot_i64;
typedef uint8_t jot_u8;
typedef uint16_t jot_u16;
typedef uint32_t jot_u32;
typedef uint64_t jot_u64;

#if defined(__GNUC__) && !defined(__TINYC__)
#define FN(name, ret, params, uses, ...) \
    static inline __attribute__((unused)) ret name params __VA_ARGS__
#else
#define FN(name, ret, params, uses, ...) static inline ret name params __VA_ARGS__
#endif
#include "prelude/prelude.def"
#undef FN
#endif
