"""ONNX Runtime or OpenVINO on the CPU over the networks of bench/ in inference: torchvision's, exported once to a
folder of the system's temporary files. Needs torch, torchvision, onnx, and onnxruntime or openvino.

    runtime_peer.py [--mode ort|openvino] [--threads T] [pattern...]       one JSON line each
    runtime_peer.py ... --serve           answers 'name seconds' lines (bench.c, MODES=ort,openvino)
"""
import argparse, os, tempfile, time
import numpy as np
from common import answer

ap = argparse.ArgumentParser()
ap.add_argument("--mode", default="ort", choices=["ort", "openvino"])
ap.add_argument("--threads", type=int, default=2)
ap.add_argument("--serve", action="store_true")
ap.add_argument("patterns", nargs="*")
args = ap.parse_args()
FOLDER = os.path.join(tempfile.gettempdir(), "jot-bench-onnx")
NETS = ("squeezenet1_1", "resnet18", "resnet50", "alexnet", "vgg11", "resnext50_32x4d", "mobilenet_v2", "inception_v3")


def lenet(nn):
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                         nn.Linear(84, 10))


def exported(net, batch):
    """The file of a network; written under another name first, so that a cut one is never read."""
    path = f"{FOLDER}/{net}_b{batch}.onnx"
    if not os.path.exists(path):
        import torch, torchvision
        torch.manual_seed(0)
        os.makedirs(FOLDER, exist_ok=True)
        side = 299 if net == "inception_v3" else 224
        x = torch.randn(batch, 1, 28, 28) if net == "lenet" else torch.randn(batch, 3, side, side)
        model = lenet(torch.nn) if net == "lenet" else getattr(torchvision.models, net)(weights=None)
        torch.onnx.export(model.eval(), (x,), path + ".part", dynamo=False, opset_version=17)
        os.rename(path + ".part", path)
    return path


def ort(path):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = args.threads, 1
    s = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    put = s.get_inputs()[0]
    x = np.random.randn(*put.shape).astype(np.float32)
    return lambda: s.run(None, {put.name: x})


def openvino(path):
    """f32 is kept: on processors with bf16 it would compute in that."""
    import openvino
    how = {"INFERENCE_NUM_THREADS": args.threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    m = openvino.Core().compile_model(path, "CPU", how)
    x, request = np.random.randn(*m.input(0).shape).astype(np.float32), m.create_infer_request()
    return lambda: request.infer({0: x})


def session(net, batch):
    return {"ort": ort, "openvino": openvino}[args.mode](exported(net, batch))


W = {f"{net}_infer_b{b}": (lambda net=net, b=b: session(net, b)) for net in NETS for b in (1, 8)}
W.update({f"lenet_infer_b{b}": (lambda b=b: session("lenet", b)) for b in (1, 64)})
W.update({f"{name}_compiled": fn for name, fn in W.items() if name.endswith("_b1")})


def prepared(name):
    fn = W[name]()
    t = time.perf_counter(); fn()
    return fn, time.perf_counter() - t


answer(W, prepared, args.mode, args)
