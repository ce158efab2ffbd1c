# tests/onnx/nodes.py FOLDER - onnx.backend.test's node suite as files: FOLDER/NAME/model.onnx, input_K.pb,
# output_K.pb, and FOLDER/list: NAME rtol atol, or NAME and what it has that is no plain tensor.
import os, sys
import numpy as np
from onnx import TensorProto, numpy_helper, helper
from onnx.backend.test.case.node import collect_testcases

PLAIN = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.BOOL,
         TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64,
         TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64}

def tensor(v):
    return v if isinstance(v, TensorProto) else numpy_helper.from_array(np.asarray(v))

def not_plain(model):
    values = list(model.graph.input) + list(model.graph.output)
    for v in values:
        kind = v.type.WhichOneof('value')
        if kind != 'tensor_type':
            return kind.replace('_type', '')
        if v.type.tensor_type.elem_type not in PLAIN:
            return TensorProto.DataType.Name(v.type.tensor_type.elem_type).lower()
    return None

def main(folder):
    os.makedirs(folder, exist_ok=True)
    lines = []
    for case in collect_testcases():
        if case.model is None:
            continue
        why = not_plain(case.model)
        op = case.model.graph.node[0]
        domains = {i.domain: i.version for i in case.model.opset_import}
        where = os.path.join(folder, case.name)
        os.makedirs(where, exist_ok=True)
        with open(os.path.join(where, 'model.onnx'), 'wb') as f:
            f.write(case.model.SerializeToString())
        if why is None:
            for kind, values in zip(('input', 'output'), case.data_sets[0]):
                for k, v in enumerate(values):
                    with open(os.path.join(where, f'{kind}_{k}.pb'), 'wb') as f:
                        f.write(tensor(v).SerializeToString())
        lines.append(f'{case.name} {case.rtol:g} {case.atol:g} {why or "plain"}\n')
    with open(os.path.join(folder, 'list'), 'w') as f:
        f.writelines(sorted(set(lines)))

main(sys.argv[1])
