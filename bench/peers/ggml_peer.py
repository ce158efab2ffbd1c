"""ggml on the CPU over the products of bench/ by weights of few bits: the library that the package ctransformers has in it.

    ggml_peer.py [--threads T] [pattern...]      one JSON line each
    ggml_peer.py ... --serve                     answers 'name seconds' lines (bench.c, MODES=ggml)
"""
import argparse, ctypes as C, glob, importlib.util, os, time
from common import answer

ap = argparse.ArgumentParser()
ap.add_argument("--mode", default="ggml")
ap.add_argument("--threads", type=int, default=2)
ap.add_argument("--serve", action="store_true")
ap.add_argument("patterns", nargs="*")
args = ap.parse_args()
TYPES = {"q4_0": (2, 18 / 32), "q8_0": (8, 34 / 32)}  # ggml's number, bytes of a weight
F32 = 0


class Params(C.Structure):
    _fields_ = [("mem_size", C.c_size_t), ("mem_buffer", C.c_void_p), ("no_alloc", C.c_bool)]


def library():
    spec = importlib.util.find_spec("ctransformers")
    path = glob.glob(os.path.join(os.path.dirname(spec.origin), "lib", "avx2", "libctransformers.so"))[0]
    g = C.CDLL(path)
    for name, args in {"ggml_init": [Params], "ggml_new_tensor_2d": [C.c_void_p, C.c_int, C.c_int64, C.c_int64],
                       "ggml_mul_mat": [C.c_void_p] * 3, "ggml_build_forward_ctx": [C.c_void_p] * 2,
                       "ggml_get_data": [C.c_void_p]}.items():
        getattr(g, name).restype, getattr(g, name).argtypes = C.c_void_p, args
    g.ggml_graph_compute_with_ctx.argtypes = [C.c_void_p, C.c_void_p, C.c_int]
    g.ggml_free.argtypes = [C.c_void_p]
    return g


class Product:
    def __init__(self, kind, rows, k=4096, n=4096):
        number, nbytes = TYPES[kind]
        self.g = library()
        self.c = self.g.ggml_init(Params(int(n * k * nbytes) + rows * (k + n) * 4 + (1 << 28), None, False))
        w = self.g.ggml_new_tensor_2d(self.c, number, k, n)
        x = self.g.ggml_new_tensor_2d(self.c, F32, k, rows)
        C.memset(self.g.ggml_get_data(w), 0, int(n * k * nbytes))
        C.memset(self.g.ggml_get_data(x), 0, rows * k * 4)
        self.graph = self.g.ggml_build_forward_ctx(self.c, self.g.ggml_mul_mat(self.c, w, x))

    def __call__(self):
        self.g.ggml_graph_compute_with_ctx(self.c, self.graph, args.threads)

    def __del__(self):
        self.g.ggml_free(self.c)


W = {f"llm_{kind}_{rows}_compiled": (kind, rows) for kind in TYPES for rows in (1, 32)}


def prepared(name):
    t = time.perf_counter(); fn = Product(*W[name]); fn()
    return fn, time.perf_counter() - t


answer(W, prepared, "ggml", args)
