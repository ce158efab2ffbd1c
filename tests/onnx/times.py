# tests/onnx/times.py RUN MODELS [NAME...] - jot, ONNX Runtime and OpenVINO (where it is installed) by turns on the
# same models: the median time of a run at BATCH (1,8; those that the model's open extents allow) on THREADS (1,2),
# each system in the same numbers; load to first result. A line for each: NAME, batch, threads, milliseconds, the
# faster peer / jot. ROUNDS (3) turns of SECONDS (0.3) each.
import os, statistics, subprocess, sys, tempfile, time
import numpy as np, onnx, onnxruntime as ort
from onnx import numpy_helper as nh
try:
    import openvino as ov
except ImportError:
    ov = None

run, models, names = sys.argv[1], sys.argv[2], sys.argv[3:]
ROUNDS, SECONDS = int(os.environ.get('ROUNDS', 3)), float(os.environ.get('SECONDS', 0.3))

def numbers(name, otherwise):
    return [int(v) for v in os.environ.get(name, otherwise).split(',')]

def once(work):
    n, t = 0, time.perf_counter()
    while n < 3 or time.perf_counter() - t < SECONDS:
        work()
        n += 1
    return (time.perf_counter() - t) / n * 1e3

class Runtime:
    def __init__(self, path, feeds, threads):
        o = ort.SessionOptions()
        o.intra_op_num_threads, o.inter_op_num_threads, o.log_severity_level = threads, 1, 4
        start = time.perf_counter()
        self.s, self.feeds = ort.InferenceSession(path, o, providers=['CPUExecutionProvider']), feeds
        self.made = (time.perf_counter() - start) * 1e3
        self.turn()
    def turn(self):
        return once(lambda: self.s.run(None, self.feeds))

class Vino:
    def __init__(self, path, feeds, threads):
        core = ov.Core()
        m = core.read_model(path)
        m.reshape({n: list(a.shape) for n, a in feeds.items()})
        how = {'INFERENCE_NUM_THREADS': threads, 'NUM_STREAMS': 1, 'INFERENCE_PRECISION_HINT': 'f32',
               'PERFORMANCE_HINT': 'LATENCY'}
        self.r = core.compile_model(m, 'CPU', how).create_infer_request()
        self.feeds = {n: ov.Tensor(a) for n, a in feeds.items()}
        self.turn()
    def turn(self):
        return once(lambda: self.r.infer(self.feeds))

class Jot:
    def __init__(self, folder, name, threads):
        self.p = subprocess.Popen([run, folder, 'time', name, str(SECONDS)], stdin=subprocess.PIPE, text=True,
                                  stdout=subprocess.PIPE, env=dict(os.environ, JOT_THREADS=str(threads)))
        self.first = self.p.stdout.readline().split(None, 2)
        assert self.first and self.first[0] == 'ready', ' '.join(self.first)
    def turn(self):
        self.p.stdin.write('go\n')
        self.p.stdin.flush()
        return float(self.p.stdout.readline())
    def end(self):
        self.p.stdin.close()
        self.p.wait()

def many(inputs, arrays, batch):
    """The inputs at a batch: along what is open first in the first of them; None: nothing is."""
    batch_of = [d for d in inputs[0].shape if not isinstance(d, int)][:1]
    if batch == 1 or not inputs[0].shape or isinstance(inputs[0].shape[0], int):
        return arrays if batch == 1 else None
    out = []
    for i, a in zip(inputs, arrays):
        at = [k for k, d in enumerate(i.shape) if not isinstance(d, int) and d == batch_of[0]][:1]
        out.append(np.ascontiguousarray(np.repeat(a, batch, at[0])) if at else a)
    return out

def line(name, batch, threads, path, inputs, arrays):
    feeds = {i.name: a for i, a in zip(inputs, arrays)}
    with tempfile.TemporaryDirectory() as t:
        os.makedirs(f'{t}/{name}')
        os.symlink(os.path.abspath(path), f'{t}/{name}/model.onnx')
        for k, a in enumerate(arrays):
            with open(f'{t}/{name}/input_{k}.pb', 'wb') as f:
                f.write(nh.from_array(a).SerializeToString())
        jot = Jot(t, name, threads)
        systems = [jot, Runtime(path, feeds, threads)]
        try:
            systems += [Vino(path, feeds, threads)] if ov else []
        except Exception as e:
            print(f'{name}: OpenVINO: {str(e).splitlines()[0][:100]}', file=sys.stderr)
        took = [[] for s in systems]
        for k in range(ROUNDS):
            for s, times in zip(systems, took):
                time.sleep(0.02)  # other systems' threads stop turning
                times.append(s.turn())
        jot.end()
    ms = [statistics.median(v) for v in took]
    best = min(ms[1:]) / ms[0]
    print(f'| {name} | {batch} | {threads} | {ms[0]:.3f} | {ms[1]:.3f} | {f"{ms[2]:.3f}" if len(ms) > 2 else "-"} '
          f'| {best:.2f} | {float(jot.first[1]):.0f} | {systems[1].made:.0f} |', flush=True)
    return best

ratios = []
for name in sorted(names or os.listdir(models)):
    folder = os.path.join(models, name)
    if not os.path.exists(folder + '/output_0.pb'):
        continue
    path = folder + '/model.onnx'
    inputs = ort.InferenceSession(path, providers=['CPUExecutionProvider']).get_inputs()
    arrays = [nh.to_array(onnx.load_tensor(f'{folder}/input_{k}.pb')) for k in range(len(inputs))]
    for batch in numbers('BATCH', '1,8'):
        for threads in numbers('THREADS', '1,2'):
            try:
                full = many(inputs, arrays, batch)
                if full:
                    ratios.append(line(name, batch, threads, path, inputs, full))
            except Exception as e:
                print(f'{name}: batch {batch}: {str(e)[:300]}', file=sys.stderr)
if ratios:
    print(f'geometric mean {np.exp(np.mean(np.log(ratios))):.2f} of {len(ratios)}, least {min(ratios):.2f}')
