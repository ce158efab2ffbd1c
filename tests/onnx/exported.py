"""exported.py FOLDER - models that jot wrote (tests/test_onnx_export.c): onnx's checker with shape inference, and
ONNX Runtime's values of io.npz, within 1e-5 of the largest (halves 1e-2). Prints each that differs, then how many."""
import os
import sys

import numpy as np
import onnx
import onnxruntime as ort


def differs(name, got, want):
    """What is wrong of an output; None: nothing."""
    if got.shape != want.shape:
        return f"shape {got.shape}, not {want.shape}"
    bound = 1e-2 if got.dtype == np.float16 else 1e-5
    got, want = got.astype(np.float64), want.astype(np.float64)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    finite = np.abs(want[np.isfinite(want)])
    with np.errstate(invalid="ignore"):
        same |= np.abs(got - want) <= bound * (finite.max() if finite.size else 0)
    at = np.flatnonzero(~same)
    return f"{at.size} elements: {got.flat[at[0]]}, not {want.flat[at[0]]}" if at.size else None


def case(folder):
    """'' or what is wrong; None: ONNX Runtime has no such operator of these dtypes."""
    model = onnx.load(os.path.join(folder, "model.onnx"))
    onnx.checker.check_model(model, full_check=True)
    data = np.load(os.path.join(folder, "io.npz"))
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(os.path.join(folder, "model.onnx"), options, ["CPUExecutionProvider"])
    except ort.capi.onnxruntime_pybind11_state.NotImplemented as e:
        return None, str(e).split("implementation for ")[-1].split(" node")[0]
    feeds = {}
    for k, i in enumerate(session.get_inputs()):
        if "bfloat16" in i.type:
            return None, "bfloat16 inputs of numpy"
        feeds[i.name] = data[f"in{k}"]
    outputs = session.get_outputs()
    if any("bfloat16" in o.type for o in outputs):
        return None, "bfloat16 outputs of numpy"
    wrong = [differs(o.name, got, data[f"out{k}"])
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
    sys.exit(bad != 0)


main()
