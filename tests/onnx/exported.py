"""exported.py FOLDER - models that jot wrote (tests/test_onnx_export.c): onnx's checker with shape inference, and
ONNX Runtime's values of io.npz: integers and truths all, floats within 1e-5 of the largest (halves 1e-2). Prints
each that differs, then how many; fails where one does, or none was there."""
import os
import sys

import numpy as np
import onnx
import onnxruntime as ort


def differs(got, want, half):
    """What is wrong of an output; None: nothing."""
    if got.shape != want.shape:
        return f"shape {got.shape}, not {want.shape}"
    if got.dtype != want.dtype and got.dtype.kind + want.dtype.kind != "ff":
        return f"{got.dtype}, not {want.dtype}"
    if got.dtype.kind != "f":
        at = np.flatnonzero(got != want)
        return f"{at.size} elements: {got.flat[at[0]]}, not {want.flat[at[0]]}" if at.size else None
    bound = 1e-2 if half or got.dtype == np.float16 else 1e-5
    got, want = got.astype(np.float64), want.astype(np.float64)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    finite = np.abs(want[np.isfinite(want)])
    with np.errstate(invalid="ignore"):
        same |= np.abs(got - want) <= bound * (finite.max() if finite.size else 0)
    at = np.flatnonzero(~same)
    return f"{at.size} elements: {got.flat[at[0]]}, not {want.flat[at[0]]}" if at.size else None


def without_bf16(model):
    """Inputs and outputs of bfloat16, which numpy lacks, as float32 that the model casts."""
    graph, cast = model.graph, onnx.helper.make_node
    for kind, values in (("in", graph.input), ("out", graph.output)):
        for v in values:
            if v.type.tensor_type.elem_type != onnx.TensorProto.BFLOAT16:
                continue
            v.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
            old, v.name = v.name, v.name + "_f32"
            if kind == "in":
                graph.node.insert(0, cast("Cast", [v.name], [old], to=onnx.TensorProto.BFLOAT16))
            else:
                graph.node.append(cast("Cast", [old], [v.name], to=onnx.TensorProto.FLOAT))
    return model


def case(folder):
    """'' or what is wrong; None: ONNX Runtime has no such operator of these dtypes."""
    model = onnx.load(os.path.join(folder, "model.onnx"))
    onnx.checker.check_model(model, full_check=True)
    half = [v.type.tensor_type.elem_type in (onnx.TensorProto.BFLOAT16, onnx.TensorProto.FLOAT16)
            for v in model.graph.output]
    data = np.load(os.path.join(folder, "io.npz"))
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(without_bf16(model).SerializeToString(), options, ["CPUExecutionProvider"])
    except ort.capi.onnxruntime_pybind11_state.NotImplemented as e:
        return None, str(e).split("implementation for ")[-1].split(" node")[0]
    feeds = {}
    for k, i in enumerate(session.get_inputs()):
        feeds[i.name] = data[f"in{k}"]
    outputs = session.get_outputs()
    wrong = [differs(got, data[f"out{k}"], half[k])
             for k, (o, got) in enumerate(zip(outputs, session.run(None, feeds)))]
    return "; ".join(f"{o.name}: {w}" for o, w in zip(outputs, wrong) if w), ""


def main():
    ok = bad = 0
    lacks = {}
    for name in sorted(os.listdir(sys.argv[1])):
        try:
            wrong, why = case(os.path.join(sys.argv[1], name))
        except Exception as e:  # the checker's, ONNX Runtime's: each is a finding
            wrong, why = f"{type(e).__name__}: {str(e)[:300]}", ""
        if wrong is None:
            lacks.setdefault(why, []).append(name)
        elif wrong:
            bad += 1
            print(f"{name}: {wrong}")
        else:
            ok += 1
    for why, names in lacks.items():
        print(f"ONNX Runtime has not ({len(names)}): {why}: {' '.join(names[:12])}")
    print(f"{ok} passed, {bad} failed, {sum(map(len, lacks.values()))} skipped")
    sys.exit(bad != 0 or ok == 0)


main()
