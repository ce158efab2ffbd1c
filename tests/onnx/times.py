# tests/onnx/times.py RUN MODELS [NAME...] - jot and ONNX Runtime by turns on the same models: the median time of a
# run on 1 thread, batch 1 and 8 where the model's first extent is open or may be changed; load to first result.
# A line for each: NAME batch, milliseconds of both, the ratio.
import os, statistics, subprocess, sys, tempfile, time
import numpy as np, onnx, onnxruntime as ort
from onnx import numpy_helper as nh

run, models, names = sys.argv[1], sys.argv[2], sys.argv[3:]
ROUNDS, SECONDS = 5, 0.4

def session(path):
    o = ort.SessionOptions()
    o.intra_op_num_threads = o.inter_op_num_threads = 1
    o.log_severity_level = 4
    return ort.InferenceSession(path, o, providers=['CPUExecutionProvider'])

def once(s, feeds):
    n, t = 0, time.perf_counter()
    while n < 3 or time.perf_counter() - t < SECONDS:
        s.run(None, feeds)
        n += 1
    return (time.perf_counter() - t) / n * 1e3

ratios = []
for name in sorted(names or os.listdir(models)):
    folder = os.path.join(models, name)
    if not os.path.exists(folder + '/output_0.pb'):
        continue
    start = time.perf_counter()
    s = session(folder + '/model.onnx')
    feeds = {i.name: nh.to_array(onnx.load_tensor(f'{folder}/input_{k}.pb')) for k, i in enumerate(s.get_inputs())}
    s.run(None, feeds)
    cold = (time.perf_counter() - start) * 1e3
    server = subprocess.Popen([run, models, 'time', name, str(SECONDS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True, env=dict(os.environ, JOT_THREADS='1'))
    first = server.stdout.readline()
    if not first.startswith('ready'):
        print(f'{name}: {first.strip()}')
        continue
    a, b = [], []
    for _ in range(ROUNDS):
        a.append(once(s, feeds))
        server.stdin.write('go\n')
        server.stdin.flush()
        b.append(float(server.stdout.readline()))
    server.stdin.close()
    server.wait()
    x, y = statistics.median(a), statistics.median(b)
    ratios.append(x / y)
    print(f'| {name} | {x:.3f} | {y:.3f} | {x / y:.2f} | {cold:.0f} | {float(first.split()[1]):.0f} |', flush=True)
if ratios:
    print(f'geometric mean {np.exp(np.mean(np.log(ratios))):.2f} of {len(ratios)}, least {min(ratios):.2f}')
