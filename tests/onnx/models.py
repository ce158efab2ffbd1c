# tests/onnx/models.py FOLDER [WORD...] - real networks as ONNX files, with inputs that are drawn and what ONNX
# Runtime makes of them: FOLDER/NAME/model.onnx, input_K.pb, output_K.pb. Weights are drawn where they would have
# to be fetched; the first extent is open. What cannot be exported here is said, and left out. WORDs choose.
import glob, os, shutil, sys, traceback
import numpy as np
import onnx
from onnx import numpy_helper

folder, words = sys.argv[1], sys.argv[2:]
os.makedirs(folder, exist_ok=True)

def save(name, path, feeds):
    import onnxruntime as ort
    where = os.path.join(folder, name)
    os.makedirs(where, exist_ok=True)
    if os.path.abspath(path) != os.path.join(os.path.abspath(where), 'model.onnx'):
        shutil.copy(path, os.path.join(where, 'model.onnx'))
    o = ort.SessionOptions()
    o.log_severity_level = 3
    if name.endswith('_qdq'):  # as the graph says, in floats between quantisations: fused, it rounds elsewhere
        o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    s = ort.InferenceSession(os.path.join(where, 'model.onnx'), o, providers=['CPUExecutionProvider'])
    outs = s.run(None, feeds)
    for k, i in enumerate(s.get_inputs()):
        with open(f'{where}/input_{k}.pb', 'wb') as f:
            f.write(numpy_helper.from_array(np.asarray(feeds[i.name]), i.name).SerializeToString())
    for k, v in enumerate(outs):
        with open(f'{where}/output_{k}.pb', 'wb') as f:
            f.write(numpy_helper.from_array(np.asarray(v), f'y{k}').SerializeToString())

def draw(shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)

def line(h, w):
    """A line of text, dark on light, as these networks take pictures: -1..1."""
    from PIL import Image, ImageDraw
    page = Image.new('RGB', (w, h), 'white')
    ImageDraw.Draw(page).text((8, h // 5), 'jot 2048 lines', fill='black', font_size=h * 0.5)
    return (np.asarray(page, np.float32).transpose(2, 0, 1)[None] / 127.5 - 1).copy()

def export(name, net, args, names, dynamic=None):
    import torch
    where = os.path.join(folder, name)
    os.makedirs(where, exist_ok=True)
    path = os.path.join(where, 'model.onnx')
    net.eval()
    two = tuple(torch.cat([a, a]) for a in args)  # of one image the exporter makes a constant
    with torch.no_grad():
        torch.onnx.export(net, two, path, input_names=names, dynamo=True, external_data=False,
                          dynamic_shapes=tuple({0: 'batch'} for _ in args))
    save(name, path, {n: a.numpy() for n, a in zip(names, args)})

def zoo(name, size=224):
    def make():
        import torch, torchvision
        torch.manual_seed(1)
        kw = {'init_weights': True} if name in ('googlenet', 'inception_v3') else {}
        net = getattr(torchvision.models, name)(weights=None, **kw)
        export(name, net, (torch.from_numpy(draw((1, 3, size, size))),), ['x'])
    return make

def text(kind):
    def make():
        import torch, transformers as t
        torch.manual_seed(1)
        ids = torch.from_numpy(np.random.default_rng(2).integers(0, 1000, (1, 32)))
        small = dict(vocab_size=1000, num_hidden_layers=4, hidden_size=256, num_attention_heads=4, intermediate_size=1024)
        if kind == 'bert':
            net = t.BertModel(t.BertConfig(**small, attn_implementation='eager'))
        elif kind == 'gpt2':
            net = t.GPT2Model(t.GPT2Config(vocab_size=1000, n_layer=4, n_embd=256, n_head=4, use_cache=False, attn_implementation='eager'))
        class Only(torch.nn.Module):
            def __init__(self, m): super().__init__(); self.m = m
            def forward(self, x): return self.m(input_ids=x, attention_mask=torch.ones_like(x)).last_hidden_state
        export(kind, Only(net), (ids,), ['ids'])
    return make

def vit():
    import torch, transformers as t
    torch.manual_seed(1)
    net = t.ViTModel(t.ViTConfig(num_hidden_layers=4, hidden_size=256, num_attention_heads=4, intermediate_size=1024, attn_implementation='eager'))
    class Only(torch.nn.Module):
        def __init__(self, m): super().__init__(); self.m = m
        def forward(self, x): return self.m(pixel_values=x).last_hidden_state
    export('vit', Only(net), (torch.from_numpy(draw((1, 3, 224, 224))),), ['x'])

def qdq(name):
    def make():
        from onnxruntime.quantization import quantize_static, CalibrationDataReader, QuantFormat, QuantType
        src = os.path.join(folder, name, 'model.onnx')
        if not os.path.exists(src):
            zoo(name)()
        class Reader(CalibrationDataReader):
            def __init__(self): self.it = iter([{'x': draw((1, 3, 224, 224), s)} for s in range(3)])
            def get_next(self): return next(self.it, None)
        where = os.path.join(folder, name + '_qdq')
        os.makedirs(where, exist_ok=True)
        quantize_static(src, where + '/model.onnx', Reader(), quant_format=QuantFormat.QDQ, per_channel=True,
                        weight_type=QuantType.QInt8)
        save(name + '_qdq', where + '/model.onnx', {'x': draw((1, 3, 224, 224))})
    return make

def silero():
    import silero_vad, onnxruntime as ort
    for path in sorted(glob.glob(os.path.join(os.path.dirname(silero_vad.__file__), 'data', '*.onnx'))):
        base = os.path.splitext(os.path.basename(path))[0]
        for rate, n in ((16000, 512 + 64), (8000, 256 + 32)):
            s = ort.InferenceSession(path)
            names = [i.name for i in s.get_inputs()]
            if '16k' in base and rate != 16000:
                continue
            feeds = {}
            for i in s.get_inputs():
                feeds[i.name] = (draw((1, n)) * 0.1 if i.name == 'input' else np.array(rate, np.int64) if i.name == 'sr'
                                 else draw([d if isinstance(d, int) else 1 for d in i.shape]) * 0.1)
            save(f'{base}_{rate}', path, feeds)

def ocr():
    import rapidocr
    found = glob.glob(os.path.join(os.path.dirname(rapidocr.__file__), '**', '*.onnx'), recursive=True)
    for path in sorted(found):
        base = os.path.splitext(os.path.basename(path))[0]
        sizes = ((48, 320), (48, 192)) if 'rec' in base or 'cls' in base else ((320, 320), (416, 640), (256, 736))
        for h, w in sizes:
            import onnxruntime as ort
            i = ort.InferenceSession(path).get_inputs()[0]
            try:
                save(f'{base}_{h}x{w}', path, {i.name: line(h, w)})
            except Exception as e:
                print('left out', base, h, w, str(e)[:100])
                shutil.rmtree(os.path.join(folder, f'{base}_{h}x{w}'), ignore_errors=True)

def light():
    import onnx.backend.test as t
    from onnx import load
    for path in sorted(glob.glob(os.path.join(os.path.dirname(t.__file__), 'data', 'light', '*.onnx'))):
        base = os.path.splitext(os.path.basename(path))[0]
        try:
            m = load(path)
            have = {w.name for w in m.graph.initializer}
            i = [v for v in m.graph.input if v.name not in have][0]
            shape = [d.dim_value or 1 for d in i.type.tensor_type.shape.dim]
            save(base, path, {i.name: draw(shape)})
        except Exception as e:
            print('left out', base, str(e)[:100])

made = {'silero': silero, 'ocr': ocr, 'bert': text('bert'), 'gpt2': text('gpt2'), 'vit': vit}
for n in ('resnet18', 'mobilenet_v2', 'squeezenet1_1', 'shufflenet_v2_x1_0', 'mnasnet1_0', 'googlenet', 'densenet121',
          'efficientnet_b0', 'regnet_y_400mf', 'mobilenet_v3_small', 'resnet50', 'vgg11', 'alexnet', 'convnext_tiny'):
    made[n] = zoo(n)
made['resnet18_qdq'], made['mobilenet_v2_qdq'] = qdq('resnet18'), qdq('mobilenet_v2')
made['light'] = light
for name, make in made.items():
    if words and name not in words:
        continue
    try:
        make()
        print('made', name, flush=True)
    except Exception as e:
        print('left out', name, type(e).__name__, str(e)[:300].replace('\n', ' '), flush=True)
