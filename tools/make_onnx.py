#!/usr/bin/env python3
"""Writes ONNX files of well-known networks with random or constant weights. Needs Python 3.9 and nothing else.

    python3 tools/make_onnx.py mobilenet_v2 mobilenet_v2.onnx
    python3 tools/make_onnx.py encoder encoder.onnx --layers 12 --width 768 --heads 12 --length 128
    python3 tools/make_onnx.py vit vit.onnx --layers 12 --width 384 --heads 6
    python3 tools/make_onnx.py decoder decoder.onnx --layers 28 --width 1024 --heads 16 --kv-heads 8 --head-width 128 \\
        --inner 3072 --vocabulary 151936 --length 1 --past 512 --int4 --weights constant
    python3 tools/make_onnx.py resnet50 resnet50_int8.onnx --int8 --weights constant

A decoder (Llama, Qwen3 without norms of heads) computes `--length` tokens after `--past` others, whose keys and values are
inputs; `--int4` writes its products as MatMulNBits, blocks of 32, which ONNX Runtime's contrib operators run.

`--int8` writes what ONNX Runtime's quantizer makes: convolutional networks with 8-bit tensors throughout (QLinearConv,
QLinearAdd, QGemm), transformers whose products quantize their inputs as they run (DynamicQuantizeLinear, MatMulInteger).

The files run in ONNX Runtime. With `--weights constant` large tensors are made by ConstantOfShape nodes, so that a
file takes kilobytes; runtimes fold these when they load it. The batch is a symbolic dimension unless --batch is given.
"""
import argparse
import array
import random
import struct

FLOAT, UINT8, INT8, INT32, INT64 = 1, 2, 3, 6, 7
MICROSOFT = "com.microsoft"


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def tensor(name, kind, dims, raw):
    return b"".join(number(1, d) for d in dims) + number(2, kind) + data(8, name) + data(9, raw)


def attribute(name, value):
    if isinstance(value, bytes):
        return data(1, name) + data(5, value) + number(20, 4)
    if isinstance(value, float):
        return data(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)
    if isinstance(value, int):
        return data(1, name) + number(3, value) + number(20, 2)
    return data(1, name) + b"".join(number(8, v) for v in value) + number(20, 7)


def value_info(name, dims):
    sides = b"".join(data(1, data(2, d) if isinstance(d, str) else number(1, d)) for d in dims)
    return data(1, name) + data(2, data(1, number(1, FLOAT) + data(2, sides)))


class Network:
    def __init__(self, name, constant, seed, int8=False):
        self.name, self.constant, self.int8 = name, constant, int8
        self.quantized = {}  # tensors that products have quantized already
        self.nodes, self.tensors, self.inputs, self.outputs = [], [], [], []
        self.count = 0
        self.random = random.Random(seed)
        self.table = array.array("f", [self.random.gauss(0, 0.02) for _ in range(1 << 15)])

    def fresh(self, stem):
        self.count += 1
        return f"{stem}_{self.count}"

    def input(self, name, dims):
        self.inputs.append(value_info(name, dims))
        return name

    def output(self, name, dims):
        self.outputs.append(value_info(name, dims))

    def node(self, operation, inputs, domain="", **attributes):
        return self.node_with_outputs(operation, inputs, 1, domain, **attributes)[0]

    def node_with_outputs(self, operation, inputs, outputs, domain="", **attributes):
        results = [self.fresh(operation) for _ in range(outputs)]
        body = b"".join(data(1, i) for i in inputs) + b"".join(data(2, r) for r in results)
        body += data(3, "node_" + results[0]) + data(4, operation)
        body += b"".join(data(5, attribute(k, v)) for k, v in attributes.items())
        self.nodes.append(body + (data(7, domain) if domain else b""))
        return results

    def integers(self, values):
        name = self.fresh("shape")
        self.tensors.append(tensor(name, INT64, [len(values)], struct.pack(f"<{len(values)}q", *values)))
        return name

    def scalar(self, value):
        name = self.fresh("value")
        self.tensors.append(tensor(name, FLOAT, [], struct.pack("<f", value)))
        return name

    def weight(self, *dims):
        elements = 1
        for size in dims:
            elements *= size
        if self.constant and elements > 256:
            fill = tensor("", FLOAT, [1], struct.pack("<f", 0.01))
            return self.node("ConstantOfShape", [self.integers(list(dims))], value=fill)
        values = array.array("f")
        while len(values) < elements:
            start = self.random.randrange(len(self.table))
            values.extend(self.table[start:start + elements - len(values)])
        name = self.fresh("weight")
        self.tensors.append(tensor(name, FLOAT, dims, struct.pack(f"<{elements}f", *values)))
        return name

    def quantization(self, kind):
        """The scale and the zero point of a quantized tensor."""
        zero = self.fresh("zero")
        self.tensors.append(tensor(zero, kind, [], b"\0"))
        return [self.scalar(0.02), zero]

    def conv(self, x, inside, out, kernel, stride=1, groups=1):
        window = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [kernel // 2] * 4, "group": groups}
        dims = [out, inside // groups, kernel, kernel]
        if not self.int8:
            return self.node("Conv", [x, self.weight(*dims), self.weight(out)], **window)
        return self.node("QLinearConv", [x, *self.quantization(UINT8), self.bytes_weight(INT8, *dims),
                                         *self.quantization(INT8), *self.quantization(UINT8), self.bias(out)], **window)

    def bias(self, size):
        name = self.fresh("bias")
        self.tensors.append(tensor(name, INT32, [size], struct.pack(f"<{size}i", *[7] * size)))
        return name

    def image(self, batch, size):
        x = self.input("image", [batch, 3, size, size])
        return self.node("QuantizeLinear", [x, *self.quantization(UINT8)]) if self.int8 else x

    def relu(self, x):
        """Results of 8 bits whose zero point is 0 are clamped already."""
        return x if self.int8 else self.node("Relu", [x])

    def sum(self, a, b):
        if not self.int8:
            return self.node("Add", [a, b])
        sides = [a, *self.quantization(UINT8), b, *self.quantization(UINT8)]
        return self.node("QLinearAdd", [*sides, *self.quantization(UINT8)], domain=MICROSOFT)

    def linear(self, x, inside, out):
        return self.node("Add", [self.product(x, inside, out, False), self.weight(out)])

    def bytes_weight(self, kind, *dims):
        elements = 1
        for size in dims:
            elements *= size
        if self.constant and elements > 256:
            fill = tensor("", kind, [1], b"\x88")
            return self.node("ConstantOfShape", [self.integers(list(dims))], value=fill)
        name = self.fresh("weight")
        self.tensors.append(tensor(name, kind, dims, self.random.randbytes(elements)))
        return name

    def integer_product(self, x, inside, out):
        """As dynamic quantization writes it: a tensor that several products read is quantized once."""
        if x not in self.quantized:
            self.quantized[x] = self.node_with_outputs("DynamicQuantizeLinear", [x], 3)
        whole, scale, zero = self.quantized[x]
        weight_scale, weight_zero = self.quantization(INT8)
        y = self.node("MatMulInteger", [whole, self.bytes_weight(INT8, inside, out), zero, weight_zero])
        return self.node("Mul", [self.node("Cast", [y], to=FLOAT), self.node("Mul", [scale, weight_scale])])

    def product(self, x, inside, out, int4):
        """Without a bias; in int4 two weights to a byte, with a scale for each block, and inputs in 8 bits (level 4)."""
        if int4:
            block = 32
            blocks = (inside + block - 1) // block
            weights = [self.bytes_weight(UINT8, out, blocks, block // 2), self.weight(out * blocks)]
            return self.node("MatMulNBits", [x, *weights], domain=MICROSOFT, K=inside, N=out, bits=4, block_size=block,
                             accuracy_level=4)
        return self.integer_product(x, inside, out) if self.int8 else self.node("MatMul", [x, self.weight(inside, out)])

    def layer_norm(self, x, width):
        return self.node("LayerNormalization", [x, self.weight(width), self.weight(width)], axis=-1)

    def rms_norm(self, x, width):
        mean = self.node("ReduceMean", [self.node("Mul", [x, x])], axes=[-1], keepdims=1)
        root = self.node("Sqrt", [self.node("Add", [mean, self.scalar(1e-6)])])
        return self.node("Mul", [self.node("Div", [x, root]), self.weight(width)])

    def gelu(self, x):
        gate = self.node("Add", [self.node("Erf", [self.node("Mul", [x, self.scalar(0.5 ** 0.5)])]), self.scalar(1.0)])
        return self.node("Mul", [self.node("Mul", [x, gate]), self.scalar(0.5)])

    def attention(self, x, width, heads):
        """Of every position with every other, biased, without the residual."""
        def heads_of(order):
            split = self.node("Reshape", [self.linear(x, width, width), self.integers([0, 0, heads, width // heads])])
            return self.node("Transpose", [split], perm=order)
        scores = self.node("MatMul", [heads_of([0, 2, 1, 3]), heads_of([0, 2, 3, 1])])
        scores = self.node("Mul", [scores, self.scalar((width // heads) ** -0.5)])
        mixed = self.node("MatMul", [self.node("Softmax", [scores], axis=-1), heads_of([0, 2, 1, 3])])
        joined = self.node("Reshape",
                           [self.node("Transpose", [mixed], perm=[0, 2, 1, 3]), self.integers([0, 0, width])])
        return self.linear(joined, width, width)

    def relu6(self, x):
        return x if self.int8 else self.node("Clip", [x, self.scalar(0.0), self.scalar(6.0)])

    def classifier(self, x, channels, batch):
        if self.int8:
            ends = [*self.quantization(UINT8), *self.quantization(UINT8)]
            x = self.node("Flatten", [self.node("QLinearGlobalAveragePool", [x, *ends], domain=MICROSOFT)])
            sides = [x, *self.quantization(UINT8), self.bytes_weight(INT8, 1000, channels), *self.quantization(INT8)]
            x = self.node("QGemm", [*sides, self.bias(1000), *self.quantization(UINT8)], domain=MICROSOFT, transB=1)
            x = self.node("DequantizeLinear", [x, *self.quantization(UINT8)])
        else:
            x = self.node("Flatten", [self.node("GlobalAveragePool", [x])])
            x = self.node("Gemm", [x, self.weight(1000, channels), self.weight(1000)], transB=1)
        self.output(x, [batch, 1000])

    def bytes(self):
        graph = b"".join(data(1, n) for n in self.nodes) + data(2, self.name)
        graph += b"".join(data(5, t) for t in self.tensors)
        graph += b"".join(data(11, i) for i in self.inputs) + b"".join(data(12, o) for o in self.outputs)
        return number(1, 8) + data(2, "make_onnx") + data(7, graph) + data(8, number(2, 17)) + data(8, data(1, MICROSOFT) + number(2, 1))


def resnet(net, batch, options, depths, bottleneck):
    x = net.relu(net.conv(net.image(batch, options.size), 3, 64, 7, 2))
    x = net.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    inside = 64
    for stage, depth in enumerate(depths):
        width = 64 << stage
        out = width * (4 if bottleneck else 1)
        for block in range(depth):
            stride = 2 if stage > 0 and block == 0 else 1
            skip = x if stride == 1 and inside == out else net.conv(x, inside, out, 1, stride)
            if bottleneck:
                y = net.relu(net.conv(x, inside, width, 1))
                y = net.conv(net.relu(net.conv(y, width, width, 3, stride)), width, out, 1)
            else:
                y = net.conv(net.relu(net.conv(x, inside, out, 3, stride)), out, out, 3)
            x, inside = net.relu(net.sum(y, skip)), out
    net.classifier(x, inside, batch)


def inverted_residual(net, x, inside, out, factor, stride):
    wide = inside * factor
    y = x if factor == 1 else net.relu6(net.conv(x, inside, wide, 1))
    y = net.conv(net.relu6(net.conv(y, wide, wide, 3, stride, wide)), wide, out, 1)
    return net.sum(x, y) if stride == 1 and inside == out else y


def mobilenet_v2(net, batch, options):
    x = net.relu6(net.conv(net.image(batch, options.size), 3, 32, 3, 2))
    inside = 32
    for factor, out, depth, first in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                      (6, 160, 3, 2), (6, 320, 1, 1)]:
        for block in range(depth):
            x = inverted_residual(net, x, inside, out, factor, first if block == 0 else 1)
            inside = out
    net.classifier(net.relu6(net.conv(x, inside, 1280, 1)), 1280, batch)


def encoder(net, batch, options):
    width, length = options.width, options.length
    x = net.input("tokens", [batch, length, width])
    for _ in range(options.layers):
        x = net.layer_norm(net.node("Add", [net.attention(x, width, options.heads), x]), width)
        y = net.linear(net.gelu(net.linear(x, width, 4 * width)), 4 * width, width)
        x = net.layer_norm(net.node("Add", [y, x]), width)
    net.output(x, [batch, length, width])


def vit(net, batch, options):
    """Patches of 16 pixels and a class token, norms before attention and multi-layer perceptron."""
    width, patch = options.width, 16
    x = net.input("image", [batch, 3, options.size, options.size])
    x = net.node("Conv", [x, net.weight(width, 3, patch, patch), net.weight(width)], kernel_shape=[patch] * 2,
                 strides=[patch] * 2, pads=[0] * 4, group=1)
    patches = (options.size // patch) ** 2
    x = net.node("Transpose", [net.node("Reshape", [x, net.integers([0, width, patches])])], perm=[0, 2, 1])
    first = net.node("Slice", [x, net.integers([0]), net.integers([1]), net.integers([1])])
    token = net.node("Add", [net.node("Mul", [first, net.scalar(0.0)]), net.weight(1, 1, width)])
    x = net.node("Add", [net.node("Concat", [token, x], axis=1), net.weight(1, patches + 1, width)])
    for _ in range(options.layers):
        x = net.node("Add", [net.attention(net.layer_norm(x, width), width, options.heads), x])
        y = net.linear(net.layer_norm(x, width), width, 4 * width)
        x = net.node("Add", [net.linear(net.gelu(y), 4 * width, width), x])
    x = net.node("Slice", [net.layer_norm(x, width), net.integers([0]), net.integers([1]), net.integers([1])])
    x = net.node("Gemm", [net.node("Flatten", [x]), net.weight(1000, width), net.weight(1000)], transB=1)
    net.output(x, [batch, 1000])


def rotated(net, x, head, cosine, sine):
    halves = [net.node("Slice", [x, net.integers([begin]), net.integers([end]), net.integers([3])])
              for begin, end in [(0, head // 2), (head // 2, head)]]
    turned = net.node("Concat", [net.node("Neg", [halves[1]]), halves[0]], axis=3)
    return net.node("Add", [net.node("Mul", [x, cosine]), net.node("Mul", [turned, sine])])


def decoder_attention(net, x, batch, options, angles):
    width, head, length, past = options.width, options.head_width, options.length, options.past
    groups = options.heads // options.kv_heads

    def heads_of(heads, turns):
        y = net.product(x, width, heads * head, options.int4)
        y = net.node("Transpose", [net.node("Reshape", [y, net.integers([0, 0, heads, head])])], perm=[0, 2, 1, 3])
        return rotated(net, y, head, *angles) if turns else y

    def cached(name, y):
        if past == 0:
            return y
        before = net.input(net.fresh(name), [batch, options.kv_heads, past, head])
        return net.node("Concat", [before, y], axis=2)

    # Heads of a group read the same keys: they are further rows of one product.
    query = net.node("Reshape", [heads_of(options.heads, True), net.integers([0, options.kv_heads, groups * length, head])])
    keys = cached("keys", heads_of(options.kv_heads, True))
    values = cached("values", heads_of(options.kv_heads, False))
    scores = net.node("MatMul", [query, net.node("Transpose", [keys], perm=[0, 1, 3, 2])])
    scores = net.node("Mul", [scores, net.scalar(head ** -0.5)])
    if length > 1:
        scores = net.node("Add", [scores, net.weight(1, 1, groups * length, past + length)])  # the causal mask
    mixed = net.node("MatMul", [net.node("Softmax", [scores], axis=-1), values])
    mixed = net.node("Reshape", [mixed, net.integers([0, options.heads, length, head])])
    joined = net.node("Reshape", [net.node("Transpose", [mixed], perm=[0, 2, 1, 3]),
                                  net.integers([0, 0, options.heads * head])])
    return net.product(joined, options.heads * head, width, options.int4)


def decoder(net, batch, options):
    width, inner = options.width, options.inner or 4 * options.width
    options.kv_heads = options.kv_heads or options.heads
    options.head_width = options.head_width or width // options.heads
    x = net.input("tokens", [batch, options.length, width])
    angles = [net.weight(1, 1, options.length, options.head_width) for _ in range(2)]
    for _ in range(options.layers):
        y = decoder_attention(net, net.rms_norm(x, width), batch, options, angles)
        x = net.node("Add", [y, x])
        y = net.rms_norm(x, width)
        gate = net.product(y, width, inner, options.int4)
        gate = net.node("Mul", [gate, net.node("Sigmoid", [gate])])
        y = net.node("Mul", [gate, net.product(y, width, inner, options.int4)])
        x = net.node("Add", [net.product(y, inner, width, options.int4), x])
    x = net.rms_norm(x, width)
    out = width
    if options.vocabulary:
        x, out = net.product(x, width, options.vocabulary, options.int4), options.vocabulary
    net.output(x, [batch, options.length, out])


NETWORKS = {
    "resnet18": lambda net, batch, options: resnet(net, batch, options, [2, 2, 2, 2], False),
    "resnet34": lambda net, batch, options: resnet(net, batch, options, [3, 4, 6, 3], False),
    "resnet50": lambda net, batch, options: resnet(net, batch, options, [3, 4, 6, 3], True),
    "mobilenet_v2": mobilenet_v2,
    "encoder": encoder,
    "vit": vit,
    "decoder": decoder,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("network", choices=sorted(NETWORKS))
    parser.add_argument("file")
    parser.add_argument("--weights", choices=["random", "constant"], default="random")
    parser.add_argument("--batch", type=int, help="a fixed batch; by default the dimension is called batch")
    parser.add_argument("--size", type=int, default=224, help="side of the picture")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--kv-heads", type=int, help="decoder: heads of keys and values [as many as heads]")
    parser.add_argument("--head-width", type=int, help="decoder: values of a head [width / heads]")
    parser.add_argument("--inner", type=int, help="decoder: width of the feed-forward layer [4 x width]")
    parser.add_argument("--vocabulary", type=int, default=0, help="decoder: rows of the last product [none]")
    parser.add_argument("--past", type=int, default=0, help="decoder: tokens whose keys and values are inputs")
    parser.add_argument("--int4", action="store_true", help="decoder: products as MatMulNBits")
    parser.add_argument("--int8", action="store_true", help="products and convolutions in 8 bits")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    net = Network(options.network, options.weights == "constant", options.seed, options.int8)
    NETWORKS[options.network](net, options.batch or "batch", options)
    with open(options.file, "wb") as out:
        out.write(net.bytes())


if __name__ == "__main__":
    main()
