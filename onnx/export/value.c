/* onnx/export/value.c - the value of a node, made when it is first asked for (Export.make), by its
 * kind.
 *
 * Read before: graph.c, element.c, map.c, reduce.c. After: file.c. */
#include "onnx/export/export.h"

static Value
value_iota(Export *e, const Node *n)
{
    int64_t extent = n->ext[n->op];
    size_t size = jot_dtype_nbytes((jot_DType)n->dtype);
    Value v = {"", (uint32_t)1 << n->op};
    uint8_t *data;

    if (extent > EXPORT_MOST) {
        export_refuse(e, JOT_ERANGE, "a constant of at most %d elements asked", EXPORT_MOST);
        return v;
    }
    data = export_new(e, (size_t)extent, size);
    for (int64_t i = 0; data && i < extent; i++)
        jot_scalar_write(data + (size_t)i * size, (jot_DType)n->dtype,
                         jot_scalar_from_i64(i, (jot_DType)n->dtype));
    if (data)
        v.name = export_const(e, (jot_DType)n->dtype, 1, &extent, data);
    return v;
}

static Value
value_refused(Export *e, const Node *n)
{
    const CodeSpec *c = n->kind == NODE_PICK ? jot_node(e->ctx, n->input[0])->code : n->code;

    if (n->kind == NODE_RANDOM)
        export_refuse(e, JOT_EUSE, "random numbers are not exported: evaluate them before, or "
                      "leave them out of what infers");
    else
        export_refuse(e, JOT_EUSE, "%s%s is not exported: ONNX has no operator for it", !c ? "this"
                      : c->flow ? c->flow->kind == FLOW_LOOP ? "the loop " : "the branch "
                      : "user code ", c ? c->name : "");
    return (Value){"", export_all_axes(n)};
}

static Value
value_stack(Export *e, const Node *n)
{
    int pieces = jot_stack_pieces(n);
    int64_t extent = pieces ? n->nelem / pieces : 0, one = 1;
    Tensor *part = export_new(e, (size_t)pieces, sizeof *part);
    OnnxNode *node;
    Array r;

    for (int k = 0; part && k < pieces; k++) {
        Piece p = jot_stack_piece(e->ctx, n, k);

        if (p.x) {
            r = export_slice(e, export_flat(e, export_full(e, p.x)), &p.at, &extent, &one);
        } else {
            r = export_array(export_number(e, (jot_DType)n->dtype, 0), 0, NULL);
            r = export_expand(e, export_reshape(e, r, 1, &one), &extent);
        }
        part[k] = r.name;
    }
    if (!part)
        return (Value){"", export_all_axes(n)};
    node = export_node(e, "Concat", pieces, part);
    export_i(e, node, "axis", 0);
    r = export_reshape(e, export_array(export_result(node), 1, &n->nelem), n->rank, n->ext);
    return (Value){r.name, export_all_axes(n)};
}

Value
export_make(Export *e, NodeId id)
{
    const Node *n = jot_node(e->ctx, id);
    ExportMap *m;

    if (!n->nelem) {
        return (Value){export_const(e, (jot_DType)n->dtype, n->rank, n->ext, NULL),
                       export_all_axes(n)};
    }
    switch (n->kind) {
    case NODE_CONST:
        return (Value){export_scalar(e, (jot_DType)n->dtype, n->value), 0};
    case NODE_IOTA:
        return value_iota(e, n);
    case NODE_EW:
        return export_element_wise(e, n);
    case NODE_REINDEX:
        m = export_map_of(e, n);
        return m ? export_map(e, m) : (Value){"", 0};
    case NODE_REDUCE:
        return export_reduce(e, n);
    case NODE_STACK:
        return value_stack(e, n);
    case NODE_ALIAS:
        return export_value(e, n->input[0]);
    default:
        return value_refused(e, n);
    }
}
