# tests/ref/onnx_models.py >tests/ref/onnx_models.h - small models for tests/test_onnx.c: bytes in ONNX's format,
# inputs, and what ONNX Runtime makes of them (where it refuses, onnx's evaluator); and models that are refused, with a part of what is said.
# python3 with onnx, onnxruntime.
import sys
import numpy as np
import onnxruntime as ort
from onnx import AttributeProto, TensorProto as T, helper as h, numpy_helper as nh
from onnx.reference import ReferenceEvaluator

rng = np.random.default_rng(7)
DTYPE = {'float32': 'JOT_F32', 'float64': 'JOT_F64', 'int64': 'JOT_I64', 'int32': 'JOT_I32', 'uint8': 'JOT_U8',
         'int8': 'JOT_I8', 'bool': 'JOT_BOOL', 'float16': 'JOT_F16'}
lines, table = [], []

def f(*shape):
    return np.round(rng.standard_normal(shape) * 4) .astype(np.float32) / 4
def i(*v):
    return np.array(v, np.int64)
def u8(*shape):
    return rng.integers(0, 255, shape).astype(np.uint8)
def n(op, ins, outs='y', **kw):
    return h.make_node(op, ins.split(',') if ins else [], outs.split(','), **kw)

def text(name, data):
    lines.append(f'static const uint8_t {name}[] = {{')
    row = '   '
    for b in data or b'\0':
        if len(row) + 4 > 98:
            lines.append(row)
            row = '   '
        row += f' {b},'
    lines.append(row.rstrip(','))
    lines.append('};')

def tensors(name, values):
    out = []
    for k, v in enumerate(values):
        v = np.asarray(v)
        text(f'{name}_{k}', v.tobytes())
        shape = list(v.shape) + [0] * (6 - v.ndim)
        out.append(f'{{{DTYPE[str(v.dtype)]}, {v.ndim}, {{{", ".join(map(str, shape))}}}, {name}_{k}, {v.nbytes}}}')
    return '{' + (', '.join(out) or '{0}') + '}'

def graph(nodes, ins, outs, weights={}, shapes=None):
    inputs = [h.make_tensor_value_info(k, h.np_dtype_to_tensor_dtype(v.dtype), (shapes or {}).get(k, v.shape)) for k, v in ins.items()]
    outputs = [h.make_empty_tensor_value_info(o) for o in outs]
    return h.make_graph(nodes, 'g', inputs, outputs, [nh.from_array(v, k) for k, v in weights.items()])

def model(g, opset=21, functions=(), domains=()):
    imports = [h.make_opsetid('', opset)] + [h.make_opsetid(d, 1) for d in domains]
    return h.make_model(g, opset_imports=imports, functions=list(functions), ir_version=9)

def emit(name, m, ins, outs, refused=None):
    data = m if isinstance(m, bytes) else m.SerializeToString()
    text('m_' + name, data)
    a, b = tensors('i_' + name, ins), tensors('o_' + name, outs)
    why = f'"{refused}"' if refused else 'NULL'
    table.append(f'    {{"{name}", m_{name}, {len(data)}, {len(ins)}, {a},\n     {len(outs)}, {b}, {why}}},')

def expected(m, ins):
    o = ort.SessionOptions()
    o.log_severity_level = 4
    try:
        return ort.InferenceSession(m.SerializeToString(), o).run(None, {k: np.asarray(v) for k, v in ins.items()})
    except Exception as e:
        print(str(e)[:200], file=sys.stderr)
        return ReferenceEvaluator(m).run(None, ins)

def case(name, nodes, ins, outs=('y',), weights={}, opset=21, **kw):
    nodes = nodes if isinstance(nodes, list) else [nodes]
    shapes = kw.pop('shapes', None)
    m = model(graph(nodes, ins, outs, weights, shapes), opset, **kw)
    emit(name, m, list(ins.values()), expected(m, ins))

def refused(name, nodes, ins, why, outs=('y',), weights={}, opset=21, **kw):
    nodes = nodes if isinstance(nodes, list) else [nodes]
    emit(name, model(graph(nodes, ins, outs, weights), opset, **kw), list(ins.values()), [], why)

x = {'x': f(2, 3)}
case('mlp', [n('Gemm', 'x,w,b', 'h', transB=1), n('Tanh', 'h', 'r'), n('MatMul', 'r,v', 'z'), n('Softmax', 'z', 'y')],
     x, weights={'w': f(4, 3), 'b': f(4), 'v': f(4, 2)}, shapes={'x': ['n', 3]})
case('chain', [n('Mul', 'x,x', 'a'), n('Sqrt', 'a', 'b'), n('Sub', 'b,x', 'c'), n('Clip', 'c,lo,hi', 'd'), n('Elu', 'd', 'e'),
               n('LeakyRelu', 'e', 'y', alpha=0.1)], x, weights={'lo': np.float32(0.5), 'hi': np.float32(3)})
case('int_div', n('Div', 'a,b'), {'a': np.array([7, -7, 9, -9], np.int32), 'b': np.array([2, 2, -4, -4], np.int32)})
case('mod', n('Mod', 'a,b'), {'a': np.array([7, -7, 9, -9], np.int64), 'b': np.array([2, 3, -4, -4], np.int64)})
case('shape_math', [n('Shape', 'x', 's'), n('Gather', 's,zero', 'd'), n('Unsqueeze', 'd,ax', 'd1'), n('Concat', 'd1,m', 't', axis=0),
                    n('Reshape', 'x,t')], {'x': f(2, 3, 4)}, weights={'zero': np.int64(0), 'ax': i(0), 'm': i(-1)}, shapes={'x': ['n', 3, 'w']})
case('shape_input', n('Reshape', 'x,s'), {'x': f(2, 6), 's': i(3, -1)})
case('slice', n('Slice', 'x,a,b,ax,st'), {'x': f(4, 5)}, weights={'a': i(3, 0), 'b': i(-9, 5), 'ax': i(0, 1), 'st': i(-1, 2)})
case('pads', [n('Pad', 'x,p', 'a', mode='reflect'), n('Transpose', 'a', 'b'), n('Pad', 'b,p,v')], {'x': f(3, 4)},
     weights={'p': i(1, 0, 0, 2), 'v': np.float32(9)})
case('split', [n('Split', 'x', 'a,b', axis=1, num_outputs=2), n('Concat', 'b,a', 'y', axis=1)], {'x': f(2, 5)})
case('gather', [n('Gather', 'x,k', 'a', axis=1), n('GatherElements', 'a,e', 'y', axis=0)], {'x': f(3, 4)},
     weights={'k': i(-1, 0), 'e': np.array([[0, -1], [1, 2]])})
case('scatter', [n('ScatterND', 'x,k,u', 'a'), n('ScatterElements', 'a,e,v', 'y', axis=1, reduction='add')], {'x': f(3, 4)},
     weights={'k': np.array([[1], [-3]]), 'u': f(2, 4), 'e': np.array([[0, 0], [3, -1]]), 'v': f(2, 2)}, opset=18)
case('where_nonzero', [n('NonZero', 'k', 'z'), n('Transpose', 'z', 'zt'), n('GatherND', 'x,zt', 'y')], {'x': f(2, 3)},
     weights={'k': np.array([[1, 0, 2], [0, 0, 3]], np.float32)})
case('compress', n('Compress', 'x,c', 'y', axis=1), {'x': f(2, 4), 'c': np.array([True, False, True, True])})
case('reduce', [n('ReduceMean', 'x,ax', 'a', keepdims=0), n('ReduceL2', 'a', 'y')], {'x': f(2, 3, 4)}, weights={'ax': i(1, -1)})
case('order', [n('TopK', 'x,k', 'v,p'), n('CumSum', 'v,ax', 'y', reverse=1), n('ArgMax', 'x', 'z', axis=1)], {'x': f(2, 5)}, ('y', 'z'),
     weights={'k': i(3), 'ax': np.int64(1)})
case('conv', [n('Conv', 'x,w,b', 'c', pads=[0, 1, 1, 1], strides=[2, 1]), n('BatchNormalization', 'c,s,t,m,v', 'd'), n('MaxPool', 'd', 'e', kernel_shape=[2, 2], ceil_mode=1),
              n('GlobalAveragePool', 'e')], {'x': f(1, 2, 5, 6)},
     weights={'w': f(3, 2, 3, 3), 'b': f(3), 's': f(3), 't': f(3), 'm': f(3), 'v': np.abs(f(3)) + 1})
case('conv_same', [n('Conv', 'x,w', 'a', auto_pad='SAME_UPPER', group=2, strides=[2, 2]),
                   n('AveragePool', 'a', 'y', kernel_shape=[2, 2], pads=[0, 0, 1, 1])], {'x': f(1, 4, 5, 6)}, weights={'w': f(4, 2, 3, 3)})
case('conv_transpose', n('ConvTranspose', 'x,w', 'y', strides=[2, 2], pads=[1, 0, 0, 1], output_padding=[1, 0]), {'x': f(1, 2, 3, 3)}, weights={'w': f(2, 1, 3, 3)})
case('resize', n('Resize', 'x,,s', 'y', mode='cubic', coordinate_transformation_mode='half_pixel'), {'x': f(1, 1, 3, 4)}, weights={'s': np.array([1, 1, 2, 1.5], np.float32)}, opset=19)
case('resize_nearest', n('Resize', 'x,,,z', 'y', mode='nearest', coordinate_transformation_mode='asymmetric', nearest_mode='floor'), {'x': f(1, 2, 2, 3)}, weights={'z': i(1, 2, 4, 6)}, opset=19)
case('layer_norm', [n('LayerNormalization', 'x,s,b', 'a'), n('Gelu', 'a')], {'x': f(2, 8)}, weights={'s': f(8), 'b': f(8)})
case('attention', n('Attention', 'q,k,v,m', 'y', q_num_heads=2, kv_num_heads=1), {'q': f(1, 3, 8), 'k': f(1, 4, 4), 'v': f(1, 4, 4)},
     weights={'m': np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 0]], bool)}, opset=23)
case('rotary', n('RotaryEmbedding', 'x,c,s', 'y', num_heads=2), {'x': f(1, 3, 8)}, weights={'c': f(1, 3, 2), 's': f(1, 3, 2)}, opset=23)
case('lstm', n('LSTM', 'x,w,r,b', 'a,h,y', hidden_size=3), {'x': f(3, 2, 2)}, ('a', 'h', 'y'), weights={'w': f(1, 12, 2), 'r': f(1, 12, 3), 'b': f(1, 24)}, opset=14)
case('gru', n('GRU', 'x,w,r,b', 'a,y', hidden_size=3), {'x': f(3, 2, 2)}, ('a', 'y'), weights={'w': f(1, 9, 2), 'r': f(1, 9, 3), 'b': f(1, 18)}, opset=14)
case('qdq', [n('QuantizeLinear', 'x,s,z', 'q'), n('DequantizeLinear', 'q,s,z', 'd'), n('DequantizeLinear', 'w,t', 'e', axis=0), n('MatMul', 'd,e')], x,
     weights={'s': np.float32(0.05), 'z': np.uint8(120), 'w': rng.integers(-127, 127, (3, 2)).astype(np.int8), 't': np.abs(f(3)) + 1})
case('matmul_integer', n('MatMulInteger', 'a,b,p,q'), {'a': u8(2, 3), 'b': u8(3, 4)}, weights={'p': np.uint8(12), 'q': np.uint8(3)})
case('dynamic', n('DynamicQuantizeLinear', 'x', 'y,s,z'), x, ('y', 's', 'z'))
case('qlinear_conv', n('QLinearConv', 'x,s,z,w,t,o,r,p', 'y', pads=[1, 1, 1, 1]), {'x': u8(1, 1, 4, 4)},
     weights={'s': np.float32(0.02), 'z': np.uint8(100), 'w': u8(1, 1, 3, 3), 't': np.float32(0.01), 'o': np.uint8(90), 'r': np.float32(0.1), 'p': np.uint8(7)}, opset=13)

then = h.make_graph([n('Add', 'x,one', 'p')], 't', [], [h.make_tensor_value_info('p', T.FLOAT, None)])
other = h.make_graph([n('Sub', 'x,one', 'q')], 'e', [], [h.make_tensor_value_info('q', T.FLOAT, None)])
for name, cond in (('if_known', True), ('if_input', False)):
    case(name, n('If', 'c', 'y', then_branch=then, else_branch=other), {'x': f(2, 3), 'c': np.array(cond)}, weights={'one': np.float32(1)})
case('if_data', [n('ReduceMax', 'x', 'm', keepdims=0), n('Greater', 'm,big', 'c'), n('If', 'c', 'y', then_branch=then, else_branch=other)], {'x': f(8, 3)},
     weights={'one': np.float32(1), 'big': np.float32(100)})
I, C = h.make_tensor_value_info('i', T.INT64, []), h.make_tensor_value_info('c', T.BOOL, [])
V, W = h.make_tensor_value_info('v', T.FLOAT, [2, 3]), h.make_tensor_value_info('w', T.FLOAT, [2, 3])
loop = h.make_graph([n('Identity', 'c', 'd'), n('Mul', 'v,x', 'w'), n('Cast', 'i', 'k', to=T.FLOAT), n('Add', 'w,k', 's')], 'b', [I, C, V],
                    [h.make_tensor_value_info('d', T.BOOL, []), W, h.make_tensor_value_info('s', T.FLOAT, [2, 3])])
case('loop', n('Loop', 'n,t,x', 'y,z', body=loop), {'x': f(2, 3), 'n': np.int64(3)}, ('y', 'z'), weights={'t': np.array(True)})
halt = h.make_graph([n('Mul', 'v,two', 'w'), n('ReduceMax', 'w', 'm', keepdims=0), n('Less', 'm,big', 'd')], 'b', [I, C, V],
                    [h.make_tensor_value_info('d', T.BOOL, []), W])
case('loop_data', n('Loop', 'n,t,x', 'y', body=halt), {'x': np.abs(f(6, 3)) + 1}, weights={'t': np.array(True), 'n': np.int64(5), 'two': np.float32(2), 'big': np.float32(20)})
scan = h.make_graph([n('Add', 's,e', 'z'), n('Identity', 'z', 'o')], 'b', [h.make_tensor_value_info('s', T.FLOAT, [3]), h.make_tensor_value_info('e', T.FLOAT, [3])],
                    [h.make_tensor_value_info('z', T.FLOAT, [3]), h.make_tensor_value_info('o', T.FLOAT, [3])])
case('scan', n('Scan', 's,x', 'z,y', body=scan, num_scan_inputs=1), x, ('z', 'y'), weights={'s': np.zeros(3, np.float32)})
twice = h.make_function('own', 'Twice', ['a'], ['b'], [n('Constant', '', 'k', value_float=2.0), n('Mul', 'a,k', 'b')], [h.make_opsetid('', 21)])
ref = AttributeProto(name='alpha', ref_attr_name='slope', type=AttributeProto.FLOAT)
slope = h.make_node('LeakyRelu', ['a'], ['b']); slope.attribute.append(ref)
leaky = h.make_function('own', 'Leaky', ['a'], ['b'], [slope], [h.make_opsetid('', 21)], attributes=['slope'])
case('functions', [n('Twice', 'x', 'a', domain='own'), n('Leaky', 'a', 'y', domain='own', slope=0.25)], x, functions=(twice, leaky), domains=('own',))
case('window', [n('HannWindow', 'k', 'w'), n('Mul', 'x,w', 'y')], {'x': f(6)}, weights={'k': np.int64(6)})
case('stft', n('STFT', 'x,s,,l'), {'x': f(1, 16, 1)}, weights={'s': np.int64(4), 'l': np.int64(8)})
case('grid', n('GridSample', 'x,g', 'y', mode='cubic', padding_mode='reflection'), {'x': f(1, 1, 4, 4), 'g': f(1, 2, 3, 2)}, opset=20)
case('old_opset', [n('Unsqueeze', 'x', 'a', axes=[0]), n('Softmax', 'a', 'y', axis=1)], x, opset=7)
case('identity', n('Identity', 'x'), x)
case('constant_output', n('Shape', 'x'), x)
case('einsum', n('Einsum', 'a,b', 'y', equation='bij, bjk -> bik'), {'a': f(2, 2, 3), 'b': f(2, 3, 2)})

refused('r_operator', n('Grow', 'x', name='first'), x, 'node first, Grow (opset 21): the operator is not supported; operands: x f32 (2, 3)')
refused('r_domain', n('Twice', 'x', domain='com.other'), x, 'operators of domain com.other are not supported', domains=('com.other',))
refused('r_opset', n('Relu', 'x'), x, 'opset 7..28 asked, 99 found', opset=99)
refused('r_name', n('Relu', 'nowhere'), x, 'operand 0: nowhere is made by no node before')
refused('r_output', n('Relu', 'x', 'a'), x, 'output y is made by no node')
refused('r_shapes', n('MatMul', 'x,x'), x, 'node MatMul (opset 21): ')
refused('r_operands', n('Add', 'x'), x, 'at least 2 operands asked, operand 1 is not there')
refused('r_axis', n('Concat', 'x,x', axis=5), x, 'axis: -2..1 asked, 5 found')
refused('r_dtype', n('Cast', 'x', to=T.STRING), x, 'to: string is not supported')
refused('r_index', n('Gather', 'x,k'), x, 'indices: -2..1 asked, 7 found', weights={'k': i(7)})
refused('r_sequence', n('SequenceConstruct', 'x'), x, 'SequenceConstruct')
refused('r_loop', n('Loop', ',t,x', 'y', body=halt), x, 'at most 4096 steps asked', weights={'t': np.array(True), 'two': np.float32(0), 'big': np.float32(1)})
short = model(graph([n('Add', 'x,w')], x, ('y',), {'w': f(2, 3)}))
short.graph.initializer[0].raw_data = b'123'
emit('r_weight', short, list(x.values()), [], '24 bytes of f32 asked, 3 found')
far = model(graph([n('Add', 'x,w')], x, ('y',), {'w': f(2, 3)}))
w = far.graph.initializer[0]
w.ClearField('raw_data'); w.data_location = T.EXTERNAL
e = w.external_data.add(); e.key = 'location'; e.value = '../weights'
emit('r_external', far, list(x.values()), [], 'outside of the model')
deep = h.make_graph([n('Identity', 'x', 'p')], 'd', [], [h.make_tensor_value_info('p', T.FLOAT, None)])
for k in range(20):
    deep = h.make_graph([n('If', 't', 'p', then_branch=deep, else_branch=other)], 'd', [], [h.make_tensor_value_info('p', T.FLOAT, None)])
refused('r_deep', n('If', 't', 'y', then_branch=deep, else_branch=other), x, 'at most 16 graphs within each other asked', weights={'t': np.array(True), 'one': np.float32(1)})
emit('r_bytes', b'no model at all', [], [], '15 bytes that are no model')
emit('r_empty', model(graph([], {}, ())).SerializeToString()[:0] or b'\x08\x09', [], [], 'no graph: not a model')
refused('r_group', n('Conv', 'x,w', group=0), {'x': f(1, 1, 2, 2)}, 'group: from 1 asked, 0 found', weights={'w': f(1, 1, 1, 1)})
refused('r_many', [n('ConstantOfShape', 's', 'a'), n('NonZero', 'a')], {}, 'at most 16777216 elements asked, 17179869184 found', weights={'s': i(2 ** 34)})
refused('r_functions', n('Twice', 'x', domain='own'), x, 'function Twice: there are two', functions=(twice, twice), domains=('own',))
wide = h.make_function('own', 'Wide', [f'a{k}' for k in range(400)], ['b'], [n('Identity', 'a0', 'b')], [h.make_opsetid('', 21)])
steps = h.make_graph([n('Wide', ','.join(400 * ['x']), 'p', domain='own'), n('Identity', 'c', 'd')], 's',
                     [h.make_tensor_value_info('k', T.INT64, []), h.make_tensor_value_info('c', T.BOOL, [])], [h.make_tensor_value_info('d', T.BOOL, [])])
refused('r_wide', [h.make_node('Loop', ['m', 't'], [], body=steps), n('Identity', 'x')], x, 'more than 1048576 nodes, operands and results',
        weights={'m': np.int64(4000), 't': np.array(True)}, functions=(wide,), domains=('own',))

# a quantised network: a bias of the sums, a pool between equal scales, channels one by one, strides, two ways that meet
rng = np.random.default_rng(8)
def scaled(name, shape):
    w = rng.integers(-127, 128, shape).astype(np.int8)
    return {name: w, name + 's': (rng.uniform(1, 2, shape[0]) / 512).astype(np.float32)}
def conv(x, sx, w, y, **kw):
    return [n('DequantizeLinear', f'{w},{w}s', w + 'd', axis=0), n('DequantizeLinear', f'{w}b,{w}bs', w + 'bd', axis=0),
            n('Conv', f'{x},{w}d,{w}bd', y, **kw)]
def quantised(y, s, z):
    return [n('QuantizeLinear', f'{y},{s},{z}', y + 'q'), n('DequantizeLinear', f'{y}q,{s},{z}', y + 'e')]
net = quantised('x', 's0', 'z0') + conv('xe', 's0', 'wa', 'a', pads=[1, 1, 1, 1]) + quantised('a', 's1', 'z1')
net += [n('MaxPool', 'ae', 'p', kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])] + quantised('p', 's2', 'z2')
net += conv('pe', 's2', 'wb', 'b', pads=[1, 1, 1, 1], strides=[2, 2], group=8) + quantised('b', 's3', 'z3')
net += conv('be', 's3', 'wc', 'c') + quantised('c', 's4', 'z4') + conv('pe', 's2', 'wd', 'd', strides=[2, 2]) + quantised('d', 's5', 'z5')
net += [n('Add', 'ce,de', 'm')] + quantised('m', 's6', 'z6')
have = {**scaled('wa', (8, 3, 3, 3)), **scaled('wb', (8, 1, 3, 3)), **scaled('wc', (12, 8, 1, 1)), **scaled('wd', (12, 8, 1, 1))}
for k, (s, z) in enumerate([(1 / 32, -3), (1 / 24, 5), (1 / 24, 5), (1 / 40, -7), (1 / 30, 2), (1 / 28, 0), (1 / 20, 9)]):
    have |= {f's{k}': np.float32(s), f'z{k}': np.int8(z)}
for w, s in (('wa', 's0'), ('wb', 's2'), ('wc', 's3'), ('wd', 's2')):
    have |= {w + 'bs': have[s] * have[w + 's'], w + 'b': rng.integers(-3000, 3000, len(have[w])).astype(np.int32)}
case('qdq_net', net, {'x': rng.standard_normal((1, 3, 16, 16)).astype(np.float32)}, ('me',), weights=have)

# ... whose bias is too large for the sums; whose bias is an input
far = np.array([2 ** 31 - 1, -2 ** 31, 2 ** 30, 5], np.int32)
have = {**scaled('wa', (4, 4, 3, 3)), 's0': np.float32(1 / 32), 'z0': np.int8(-3), 's1': np.float32(1 / 8), 'z1': np.int8(5)}
have |= {'wab': far, 'wabs': have['s0'] * have['was']}
case('qdq_far', quantised('x', 's0', 'z0') + conv('xe', 's0', 'wa', 'y'), {'x': rng.standard_normal((1, 4, 5, 5)).astype(np.float32)}, weights=have)
have |= scaled('wb', (4, 16)) | {'wbb': far, 'wbbs': have['s0'] * np.float32(1 / 256), 'wbs': np.float32(1 / 256)}
full = [n('DequantizeLinear', 'wb,wbs', 'wbd'), n('DequantizeLinear', 'wbb,wbbs', 'wbbd')]
case('qdq_far_gemm', quantised('x', 's0', 'z0') + full + [n('Gemm', 'xe,wbd,wbbd', transB=1)],
     {'x': rng.standard_normal((3, 16)).astype(np.float32)}, weights=have)
case('qdq_given', quantised('x', 's0', 'z0') + full[:1] + [n('Gemm', 'xe,wbd,c', transB=1)] + quantised('y', 's1', 'z1'),
     {'x': rng.standard_normal((3, 16)).astype(np.float32), 'c': rng.standard_normal((3, 4)).astype(np.float32)}, ('ye',), weights=have)

case('pow_root', n('Pow', 'x,k'), {'x': np.array([-np.inf, -0.0, 0, 4, np.inf], np.float32)}, weights={'k': np.float32(0.5)})

print('/* onnx_models.h - small models in ONNX\'s format. Written by tests/ref/onnx_models.py. */')
print('#ifndef REF_ONNX_MODELS_H\n#define REF_ONNX_MODELS_H\n#include <stdint.h>\n')
print('\n'.join(lines))
print('\ntypedef struct { int dtype, rank; int64_t shape[6]; const uint8_t *p; size_t n; } RefTensor;')
print('static const struct {\n    const char *name; const uint8_t *model; size_t nbytes;\n    int in; RefTensor x[6]; int out; RefTensor y[6]; const char *refused;\n} ref_onnx[] = {')
print('\n'.join(table))
print('};\n#endif')
