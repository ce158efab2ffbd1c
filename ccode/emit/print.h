/* ccode/emit/print.h - the state of the printer, shared by emit.c (the function),
 * ccode/emit/statement.c (statements), ccode/emit/expr.c (expressions) and what these are put
 * together from (ccode/emit/print.c). Read before: ccode/lower/code.h. After: ccode/emit/name.c,
 * ccode/emit/print.c, ccode/emit/statement.c, ccode/emit/emit.c. */
#ifndef JOT_PRINT_H
#define JOT_PRINT_H
#include "ccode/lower/code.h"

#define PRINT_BASES 512
typedef struct { char text[40]; uint32_t live; } NameBase;
typedef struct { uint16_t base; bool each; uint32_t number; } Name; /* base, or base_number; each:
                                   of the vector that a stage is at (ccode/emit/jam.c) */

enum {
    TOGETHER = 4,               /* neighbours that are loaded or stored as vectors, at most */
    JAM_ROWS = 16, JAM_NAMES = 24
};

/* What an expression of a vector is spelled as. */
typedef enum { WHOLE, EACH_LANE } LaneMode; /* the vector type; lane l of it */

typedef struct Printer Printer;
struct Printer {
    Code *code;
    const Kernel *k;
    const Sched *s;
    const Dialect *d;
    /* a record itself, though it has a name, and how tightly that holds (ccode/emit/expr.c) */
    void (*body)(Printer *p, uint32_t n, LaneMode mode);
    int (*level)(Printer *p, const Inst *in, LaneMode mode);
    Text *out;
    int indent;
    bool narrow;                /* indices are of 32 bits */
    int lanes;                  /* of a full vector */
    NameBase base[PRINT_BASES];
    int bases;
    Name *name;                 /* per record */
    Name buf_name[256];
    Vec(uint32_t) scope;        /* bases in use, to be given back at the end of the block */
    BufSet over;                /* outputs that may lie over an input */
    size_t given_nbytes;        /* of a group's memory, at the launch */
    int nints;                  /* numbers that became arguments */
    jot_Scalar ints[EMIT_INTS];
    uint8_t int_dtype[EMIT_INTS];
    Name int_name[EMIT_INTS];
    /* in a loop over vectors (ccode/emit/loop.c) */
    uint32_t loop;              /* its C_FOR, 0: not in one */
    bool part;                  /* lanes 0 .. part - 1 of each vector count */
    bool roomy;                 /* ... and the function's own arrays have room for all of them */
    bool covered;               /* ... and no element of theirs lies behind the part */
    int masks;                  /* bytes of the least element that is loaded under a mask by an
                                   instruction; 0: none is, and no part of a vector */
    bool reread;                /* the function loads what it stored: under a mask that waits */
    bool under;                 /* inside of a condition that differs by lane ... */
    Name where;                 /* ... its mask, of 32 bits, which leaves no lane beyond `part` */
    bool vectors;               /* there was one */
    uint32_t jam;               /* a loop of which several rows go together (ccode/emit/jam.c) */
    int jam_rows;               /* so many; 0: what they compute once is printed */
    Name jam_name[JAM_ROWS][JAM_NAMES + 1]; /* of its variable and records, in each row */
    uint32_t *stages;           /* per record of a loop in stages: its number while they are
                                   planned, then a bit for each that computes it, STAGE_KEPT */
    uint32_t stage;             /* the present one; 0: none */
    Name which;                 /* ... and its vector */
    uint8_t *moves;             /* per record: MOVES_; NULL: no loop goes in vectors */
    int64_t *stride;            /* ... of MOVES_LINEAR: from lane to lane */
    int64_t *size;              /* ... how far an index value is from 0, at most */
    bool indexed;               /* indices of the loop that are not linear are vectors */
    bool divided;               /* ... and one is divided */
    int aligned;                /* vectors of the loop begin at multiples of so many steps; 0: no */
};

/* How a record changes from step to step; a MOVES_VECTOR is a vector, others are index values, of
 * which the text has the first lane's, a vector (ccode/emit/lanes_index.c) or an array. */
enum { MOVES_NOT, MOVES_LINEAR, MOVES_INDEX, MOVES_ANY, MOVES_VECTOR };

/* Stages of a chain (ccode/emit/jam.c): a bit for each; KEPT: in an array, for later ones. */
#define STAGE_MOST 30
#define STAGE_KEPT ((uint32_t)1 << 31)

/* ---- ccode/emit/print.c ---- */
JOT_FN const char *jot_print_type(int dtype);        /* C type values of dtype are computed in */
JOT_FN const char *jot_print_memory_type(int dtype);
JOT_FN const char *jot_print_short(int dtype);       /* "i32", "f32" */
JOT_FN bool jot_print_is_half(int dtype); /* f16 or bf16 */
JOT_FN int jot_print_lane_nbytes(int dtype);
JOT_FN size_t jot_print_scratch_size(const Printer *p, const KBuf *b);
JOT_FN void jot_print_indent(Printer *p);
/* Text in which \t is the indentation, and of which arguments follow in order:
 *     %s %d   a string, an int        %l %i  int64_t, as it is or as jot_print_number has it
 *     %n %b   a Name; a buffer's number, for its name
 *     %w %v   a record, WHOLE or EACH_LANE     %m   a LaneMode and a record; %2w: within level 2,
 *             which is 13 where it is not said */
JOT_FN void jot_print_f(Printer *p, const char *format, ...);
/* Arguments from.. of the record, each within the level. */
JOT_FN void jot_print_list(Printer *p, const Inst *in, int from, const char *between, int level,
                           LaneMode mode);
/* n as an operand of something that holds `level` together: in parentheses if it is looser. */
JOT_FN void jot_print_expr(Printer *p, uint32_t n, int level, LaneMode mode);
JOT_FN void jot_print_template(Printer *p, const char *text, const uint32_t *arg, int dtype,
                               LaneMode mode);
JOT_FN const char *jot_print_operator(const Inst *in, int operand_dtype, int third_dtype,
                                      int *dtype);
/* Arguments from.. as one condition; of a load, what it is where they do not hold. */
JOT_FN void jot_print_conditions(Printer *p, const Inst *in, int from, LaneMode mode);
JOT_FN void jot_print_outside(Printer *p, const Inst *in);
JOT_FN uint32_t jot_print_arg(const Printer *p, const Inst *in, int i); /* its record */
JOT_FN int jot_print_level(Printer *p, uint32_t n, LaneMode mode); /* how tightly n holds */
JOT_FN const char *jot_print_ew_text(const Printer *p, const Inst *in, int *dtype);
JOT_FN int jot_print_ew_level(const Printer *p, const Inst *in);
JOT_FN int jot_print_template_level(const char *text);
JOT_FN void jot_print_fma(Printer *p, const Inst *in);
JOT_FN void jot_print_const(Printer *p, const Inst *in); /* its literal, or an argument */
JOT_FN void jot_print_any_open(Printer *p);
JOT_FN void jot_print_any_declare(Printer *p);
JOT_FN void jot_print_number(Printer *p, int64_t x); /* of an index expression or a loop */

/* ---- ccode/emit/expr.c: the printer's body and level ---- */
JOT_FN void jot_print_body(Printer *p, uint32_t n, LaneMode mode);
JOT_FN int jot_print_body_level(Printer *p, const Inst *in, LaneMode mode);

/* Is a record an index value? And the type of these. */
JOT_FN bool jot_print_is_index(const Inst *in);
JOT_FN const char *jot_print_index_type(const Printer *p);
/* The statements of a block (ccode/emit/statement.c). */
JOT_FN void jot_print_block(Printer *p, uint32_t block);
/* A vector that is kept from a stage for later ones, so many of it, and its name. */
JOT_FN void jot_print_kept(Printer *p, uint32_t n, int vectors);
/* The statements of a block whose head was printed, and its end. */
JOT_FN void jot_print_braced(Printer *p, uint32_t block);
/* for (jot_i64 name = from; name < to; name += step) { */
JOT_FN void jot_print_for(Printer *p, Name name, int64_t from, int64_t to, int step);
JOT_FN void jot_print_close(Printer *p, uint32_t block, uint32_t mark); /* its names are no more */
/* ccode/emit/index.c: index expressions and conditions */
JOT_FN void jot_print_index(Printer *p, const Inst *in, LaneMode mode);
JOT_FN int jot_print_index_level(Printer *p, const Inst *in, LaneMode mode);
/* of whole vectors */
JOT_FN bool jot_print_whole(Printer *p, uint32_t n); /* can be spelled with vector types */
JOT_FN bool jot_print_is_unpacked(const Printer *p, const Inst *in); /* ... loaded and converted */
JOT_FN bool jot_print_is_converted(Printer *p, const Inst *in);
JOT_FN bool jot_print_is_choice(Printer *p, const Inst *in); /* ... by a function that chooses */
JOT_FN void jot_print_choice(Printer *p, const Inst *in);
JOT_FN void jot_print_all_lanes(Printer *p, uint32_t n);
/* ccode/emit/loop.c: elements of an array of lanes as it is declared */
JOT_FN int64_t jot_print_room(const Printer *p, const Inst *decl);
JOT_FN bool jot_print_rereads(const Code *code, const Kernel *k);
/* ... false: it is no loop for vectors, and nothing was printed */
JOT_FN bool jot_print_vector_loop(Printer *p, uint32_t n);
JOT_FN int jot_print_loop_vectors(Printer *p, uint32_t n, bool *turns); /* 0: it is none */
/* ccode/emit/jam.c: rows of sums, several at a time; false: nothing was printed */
JOT_FN bool jot_print_jammed(Printer *p, uint32_t loop);
JOT_FN void jot_print_jam_row(Printer *p, int row);
/* ... vectors of a long chain, STAGE_VECTORS at a time; in how many stages, 0: in none */
JOT_FN int jot_print_stage_plan(Printer *p, uint32_t loop);
JOT_FN void jot_print_stages(Printer *p, uint32_t loop, int nstages);
/* ccode/emit/lanes.c: what is in such loops; false: it goes lane by lane */
JOT_FN bool jot_print_lanes_whole(Printer *p, uint32_t n);
JOT_FN int jot_print_lanes_level(Printer *p, const Inst *in);
JOT_FN void jot_print_lanes(Printer *p, uint32_t n);
JOT_FN bool jot_print_lanes_set(Printer *p, const Inst *in);
JOT_FN bool jot_print_lanes_operand_whole(Printer *p, uint32_t n);
JOT_FN void jot_print_lanes_type(Printer *p, uint32_t n);
/* jotm_max%f(%0, %1), the text of an operator, of all lanes; is it such a call? */
JOT_FN void jot_print_lanes_call(Printer *p, const Inst *in, const char *text, int dtype);
JOT_FN bool jot_print_is_call(const char *text);
JOT_FN void jot_print_index_mask(Printer *p, uint32_t n, int bits); /* of a condition on indices */
JOT_FN const char *jot_print_lane_type(int dtype); /* what values are computed in: f32 of halves */
JOT_FN void jot_print_stored(Printer *p, uint32_t n, int dtype); /* n as memory of dtype has it */
/* ccode/emit/lanes_memory.c: loads and stores of such loops; store: as above */
JOT_FN void jot_print_lanes_load(Printer *p, const Inst *in);
JOT_FN void jot_print_lanes_cell(Printer *p, const Inst *in);
JOT_FN bool jot_print_lanes_store(Printer *p, const Inst *in);
/* ... the lanes in which a load reads, a mask of so many bits */
JOT_FN void jot_print_load_mask(Printer *p, const Inst *in, int bits);
JOT_FN void jot_print_where(Printer *p, int bits); /* the mask of the condition around */
/* ccode/emit/lanes_index.c: indices that are vectors. Largest size of an index value, operands'
 * known: INT64_MAX, there is none. */
#define INDEX_ITEMS 1024 /* of a group; phases are fewer */
JOT_FN int64_t jot_print_index_size(const Code *code, const Inst *in, const int64_t *size);
JOT_FN uint8_t jot_print_index_moves(const Printer *p, uint32_t n); /* MOVES_INDEX, MOVES_ANY */
JOT_FN bool jot_print_indices_valid(const Printer *p, uint32_t block);
JOT_FN bool jot_print_gathers(const Printer *p, const Inst *in);
JOT_FN void jot_print_gather(Printer *p, const Inst *in);
JOT_FN void jot_print_index_body(Printer *p, uint32_t n);
JOT_FN void jot_print_index_number(Printer *p, uint32_t n, int dtype);
JOT_FN void jot_print_index_compare(Printer *p, const Inst *in);
/* ccode/emit/alias.c */
JOT_FN void jot_code_donates(const Code *code, BufSet *over);
/* ccode/emit/name.c */
JOT_FN void jot_print_choose(Code *code);              /* fill `in_place` */
JOT_FN Name jot_print_take(Printer *p, const char *text);
JOT_FN void jot_print_give(Printer *p, uint32_t mark); /* names taken since scope.n was mark */
JOT_FN bool jot_print_is_condition(const Inst *in); /* 0 or 1 already */
JOT_FN void jot_print_name(Printer *p, Name name);
JOT_FN bool jot_print_is_lane(int dtype); /* whole vectors are of it: it has 32 or 64 bits */

/* ccode/device/emit_device.c */
typedef struct { bool buf, scalars, scratch, range, phase, matrix; bool used[256]; } Used;
JOT_FN void jot_print_kernel(Printer *p, const Used *used, const char *name); /* up to the body */
/* A record that only devices have: the head of a loop whose steps are shared out, called `name`;
 * all lanes as one access, to or from the array `name`; an atomic, a matrix instruction, a copy, a
 * barrier; what a work-group has together. */
/* What a device's compiler is told before a loop: it guesses by the type of the index otherwise. */
JOT_FN void jot_print_unroll(Printer *p, const Inst *in);
/* Two halves that lie in one word, stored as that; the second store, or 0: they are none. */
JOT_FN uint32_t jot_print_pair(Printer *p, uint32_t store);
/* Do 32 bits hold all indices (ccode/device/index_width.c)? */
JOT_FN bool jot_index_narrow(const Code *code);
JOT_FN void jot_print_device(Printer *p, const Inst *in, Name name, LaneMode mode);
/* The text of jot_team_<op>_<dtype> or jot_atomic_<op>_<dtype>; false: no such function. */
JOT_FN bool jot_device_helper(const DeviceDialect *d, const char *name, size_t n, Text *out);

/* dialect_vector.c: the text of a vector type or of a function on one, of that name (false: it is
 * none); a hash that goes on with all of these texts. ccode/emit/prelude_vector.c: the same of
 * jotm_expf_x16. */
JOT_FN bool jot_vector_text(const char *name, size_t n, Text *out);
JOT_FN uint64_t jot_vector_hash(uint64_t hash);
/* part.c: a part of a vector under a mask, and what is gathered, by a target's instruction;
 * false: there is none; what stands behind it, to '%E', is for other targets. what: 'P' the first n
 * lanes are loaded, 'Q' stored, 'O' those of a mask are loaded. */
typedef struct { const char *name; size_t n, x; int lanes, bits; } VectorName; /* f32x8: x at 4 */
JOT_FN bool jot_vector_mask_text(Text *out, const VectorName *v, char what);
JOT_FN bool jot_vector_gather_text(Text *out, const VectorName *v);
/* The first lanes loaded or stored without one, in words of dialect_vector.c; a hash that goes on
 * with these texts. */
JOT_FN const char *jot_part_text(const VectorName *v, bool store);
JOT_FN uint64_t jot_part_hash(uint64_t hash);
/* dialect.c: how the row of jot_target_dots is done on this vector, up to what is done without an
 * instruction. */
JOT_FN void jot_dot_text(Text *out, const char *vector, size_t n, int row);
JOT_FN bool jot_prelude_vector(const char *name, size_t n, Text *out);
/* Is this function on vectors long enough to be called, as name_called, and no instruction? */
JOT_FN bool jot_prelude_may_call(const char *name, size_t n);
JOT_FN uint64_t jot_prelude_vector_hash(uint64_t hash);

#endif
