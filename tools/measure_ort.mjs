#!/usr/bin/env node
// Times kernels and whole models through ONNX Runtime on this machine's CPU: measure_ort.py for those who have Node.js.
//
//     foretoken profile cpu --plan > plan.csv
//     node measure_ort.mjs plan.csv kernels.csv
//     node measure_ort.mjs plan.csv threads.csv --threads 1,2
//     node measure_ort.mjs --models a.onnx b.onnx > models.csv
//
// Needs the npm package onnxruntime-node, found from this script's folder, the current one, or NODE_PATH. Process CPU
// time: the least and the median of samples that are spread over the run, one per model and round, since other work on
// a machine comes and goes. Kinds and models that cannot be run are left out, and said on standard error.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { parseArgs } from 'node:util';

const USAGE = `usage: measure_ort.mjs PLAN.csv KERNELS.csv [options]
       measure_ort.mjs --models FILE.onnx... [options]
  --threads N       intra-op threads (1). With a plan, a list such as 1,2,4 times each kernel on each of them, in wall-clock
                    time: the table for \`foretoken fit edge-kernels --thread-data\`, on an otherwise idle machine
  --bind NAME=SIZE  size of a dimension that the model leaves open; repeat; others are 1
  --batch N         size of the first dimension of every input, where the model leaves it open
  --rounds N        samples of each model (7)
  --seconds S       least CPU time of a sample (0.002)
  --profiles DIR    with --models: DIR/MODEL.csv, each operator's own time from the runtime's profile, and
                    DIR/MODEL.operators.csv, the operators left after its optimisations`;
const OPSET = 13, FLOAT = 1, UINT8 = 2, INT8 = 3, INT32 = 6, INT64 = 7;
const MICROSOFT = 'com.microsoft';

function runtime() {
  for (const from of [import.meta.url, path.join(process.cwd(), 'here.js')]) {
    try {
      return createRequire(from)('onnxruntime-node');
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND') throw error;
    }
  }
  throw new Error('no onnxruntime-node: npm install onnxruntime-node here, or set NODE_PATH');
}

// ---- Graphs of one kernel, as bytes of an ONNX file (onnx.proto; field numbers are its own).

function varint(value) {
  const out = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest >= 0x80n; rest >>= 7n) out.push(Number(rest & 0x7fn) | 0x80);
  return Buffer.from([...out, Number(rest)]);
}
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
function data(field, value) {
  const bytes = typeof value === 'string' ? Buffer.from(value) : value;
  return Buffer.concat([varint((field << 3) | 2), varint(bytes.length), bytes]);
}
const repeated = (values, write) => Buffer.concat(values.map(write));

function tensor(name, type, dims, raw) {
  return Buffer.concat([repeated(dims, (d) => number(1, d)), number(2, type), data(8, name), data(9, raw)]);
}
function attribute(name, value) {
  const content = Array.isArray(value) ? [repeated(value, (v) => number(8, v)), number(20, 7)]
                                       : [number(3, value), number(20, 2)];
  return Buffer.concat([data(1, name), ...content]);
}
function valueInfo(name, dims, type = FLOAT) {
  const shape = dims ? data(2, repeated(dims, (d) => data(1, number(1, d)))) : Buffer.alloc(0);
  return Buffer.concat([data(1, name), data(2, data(1, Buffer.concat([number(1, type), shape])))]);
}
function elementType(values) {
  if (values instanceof BigInt64Array) return INT64;
  if (values instanceof Int32Array) return INT32;
  if (values instanceof Uint8Array) return UINT8;
  return values instanceof Int8Array ? INT8 : FLOAT;
}

// Nodes in a row, with the tensors that come from outside.
class Graph {
  nodes = [];
  inputs = [];
  constants = [];
  last = '';
  resultType = FLOAT;

  addInput(...shape) {
    return this.addTypedInput(FLOAT, shape);
  }
  addTypedInput(type, shape) {
    const name = `x${this.inputs.length}`;
    this.inputs.push(valueInfo(name, shape, type));
    return name;
  }
  addConstant(shape, values) {
    const name = `c${this.constants.length}`;
    const content = values ?? randomFloats(shape.reduce((all, side) => all * side, 1));
    this.constants.push(tensor(name, elementType(content), shape, Buffer.from(content.buffer)));
    return name;
  }
  // The scale and the zero point of a quantized tensor.
  quantization(ZeroPoint) {
    return [this.scalar(0.02), this.addConstant([], ZeroPoint.of(0))];
  }
  scalar(value) {
    return this.addConstant([], Float32Array.of(value));
  }
  add(operator, inputs, attributes = {}, domain = '', moreOutputs = []) {
    this.last = `t${this.nodes.length}`;
    this.nodes.push(Buffer.concat([repeated(inputs, (name) => data(1, name)), data(2, this.last),
                                   repeated(moreOutputs, (name) => data(2, name)), data(4, operator),
                                   repeated(Object.entries(attributes), ([k, v]) => data(5, attribute(k, v))),
                                   data(7, domain)]));
    return this.last;
  }
  bytes() {
    const graph = Buffer.concat([repeated(this.nodes, (n) => data(1, n)), data(2, 'kernel'),
                                 repeated(this.constants, (c) => data(5, c)), repeated(this.inputs, (i) => data(11, i)),
                                 data(12, valueInfo(this.last, undefined, this.resultType))]);
    const operators = (domain, version) => data(8, Buffer.concat([data(1, domain), number(2, version)]));
    return Buffer.concat([number(1, 8), data(7, graph), operators('', OPSET), operators(MICROSOFT, 1)]);
  }
}

function windowAttributes(p, groups) {
  const total = Math.max(0, (p.oh - 1) * p.s + p.k - p.h), before = Math.floor(total / 2);
  return {group: groups, kernel_shape: [p.k, p.k], strides: [p.s, p.s],
          pads: [before, before, total - before, total - before]};
}
function convolution(graph, p, depthwise) {
  const groups = depthwise ? p.ic : (p.g ?? 1);
  const inputs = [graph.addInput(1, p.ic, p.h, p.h), graph.addConstant([p.oc, p.ic / groups, p.k, p.k]),
                  graph.addConstant([p.oc])];
  const out = graph.add('Conv', inputs, windowAttributes(p, groups));
  if (p.act === 'relu') graph.add('Relu', [out]);
  if (p.act === 'clip') graph.add('Clip', [out, graph.scalar(0), graph.scalar(6)]);
  if (p.act === 'swish') graph.add('Mul', [out, graph.add('Sigmoid', [out])]);
}

// Channels last, as the runtime's optimiser lays out the convolutions of a quantized network. Activations are part of the
// result's clamp to 8 bits.
function quantizedConvolution(graph, p, depthwise) {
  const groups = depthwise ? p.ic : (p.g ?? 1);
  const activations = () => graph.quantization(Uint8Array);
  const weights = graph.addConstant([p.oc, p.ic / groups, p.k, p.k], randomBytes(p.oc * p.ic / groups * p.k * p.k));
  graph.add('QLinearConv', [graph.addTypedInput(UINT8, [1, p.h, p.h, p.ic]), ...activations(), weights,
                            ...graph.quantization(Int8Array), ...activations(),
                            graph.addConstant([p.oc], new Int32Array(p.oc).fill(7))],
            {...windowAttributes(p, groups), channels_last: 1}, MICROSOFT);
  graph.resultType = UINT8;
}
function quantizedProduct(graph, p) {
  const activations = () => graph.quantization(Uint8Array);
  graph.add('QLinearMatMul', [graph.addTypedInput(UINT8, [p.m, p.k]), ...activations(),
                              graph.addConstant([p.k, p.n], randomBytes(p.k * p.n)), ...graph.quantization(Int8Array),
                              ...activations()]);
  graph.resultType = UINT8;
}
// Weights of 4 bits in blocks of 32 with a scale each; activations are quantized to 8 bits on the way (level 4), as the
// builders of language models ask for.
function fourBitProduct(graph, p) {
  const blocks = Math.ceil(p.k / 32);
  const weights = new Uint8Array(randomBytes(p.n * blocks * 16).buffer);
  graph.add('MatMulNBits', [graph.addInput(p.m, p.k), graph.addConstant([p.n, blocks, 16], weights),
                            graph.addConstant([p.n * blocks])],
            {K: p.k, N: p.n, bits: 4, block_size: 32, accuracy_level: 4}, MICROSOFT);
}

// The decomposed chains of opset 13, as exporters write them.
function layerNorm(graph, p) {
  const width = Math.floor(p.n / p.r), x = graph.addInput(1, p.r, width), mean = {axes: [-1], keepdims: 1};
  const centred = graph.add('Sub', [x, graph.add('ReduceMean', [x], mean)]);
  const variance = graph.add('ReduceMean', [graph.add('Pow', [centred, graph.scalar(2)])], mean);
  const deviation = graph.add('Sqrt', [graph.add('Add', [variance, graph.scalar(1e-5)])]);
  const scaled = graph.add('Mul', [graph.add('Div', [centred, deviation]), graph.addConstant([width])]);
  graph.add('Add', [scaled, graph.addConstant([width])]);
}
function gelu(graph, p) {
  const x = graph.addInput(1, p.n);
  const erf = graph.add('Erf', [graph.add('Div', [x, graph.scalar(Math.SQRT2)])]);
  graph.add('Mul', [graph.add('Mul', [x, graph.add('Add', [erf, graph.scalar(1)])]), graph.scalar(0.5)]);
}

const KERNELS = {
  conv: (g, p) => convolution(g, p, false),
  dwconv: (g, p) => convolution(g, p, true),
  linear: (g, p) => g.add('Add', [g.add('MatMul', [g.addInput(1, p.m, p.k), g.addConstant([p.k, p.n])]),
                                  g.addConstant([p.n])]),
  gemm1: (g, p) => g.add('Gemm', [g.addInput(p.m, p.k), g.addConstant([p.k, p.n]), g.addConstant([p.n])]),
  bmm: (g, p) => g.add('MatMul', [g.addInput(p.b, p.m, p.k), g.addInput(p.b, p.k, p.n)]),
  add: (g, p) => g.add('Add', [g.addInput(p.n), g.addInput(p.n)]),
  addrelu: (g, p) => g.add('Relu', [g.add('Add', [g.addInput(p.n), g.addInput(p.n)])]),
  semul: (g, p) => g.add('Mul', [g.addInput(1, 64, p.n >> 6, 1), g.addInput(1, 64, 1, 1)]),
  concat: (g, p) => g.add('Concat', [g.addInput(1, p.n >> 1), g.addInput(1, p.n - (p.n >> 1))], {axis: 1}),
  gap: (g, p) => g.add('GlobalAveragePool', [g.addInput(1, 64, p.n >> 6, 1)]),
  sigmoid: (g, p) => g.add('Sigmoid', [g.addInput(p.n)]),
  maxpool: (g, p) => {
    const side = Math.round(Math.sqrt(p.n / 64));
    g.add('MaxPool', [g.addInput(1, 64, side, side)], {kernel_shape: [p.k, p.k], strides: [2, 2]});
  },
  scalesoftmax: (g, p) => g.add('Softmax', [g.add('Mul', [g.addInput(p.r, Math.floor(p.n / p.r)), g.addConstant([1])])],
                                {axis: -1}),
  layernorm: layerNorm,
  gelu,
  transpose: (g, p) => {
    const side = Math.round(Math.sqrt(p.n / 64));
    if (p.t === 1) g.add('Transpose', [g.addInput(p.n >> 6, 64)], {perm: [1, 0]});
    else g.add('Transpose', [g.addInput(side, Math.floor((p.n >> 6) / side), 64)], {perm: [1, 0, 2]});
  },
  qconv: (g, p) => quantizedConvolution(g, p, false),
  qdwconv: (g, p) => quantizedConvolution(g, p, true),
  qlinear: quantizedProduct,
  qgemm1: quantizedProduct,
  q4linear: fourBitProduct,
  q4gemm1: fourBitProduct,
  qadd: (g, p) => {
    const side = () => [g.addTypedInput(UINT8, [p.n]), ...g.quantization(Uint8Array)];
    g.add('QLinearAdd', [...side(), ...side(), ...g.quantization(Uint8Array)], {}, MICROSOFT);
    g.resultType = UINT8;
  },
  quantize: (g, p) => {
    g.add('DynamicQuantizeLinear', [g.addInput(p.n)], {}, '', ['scale', 'zero']);
    g.resultType = UINT8;
  },
  null: (g) => g.add('Identity', [g.addInput(1)]),
};

// ---- Measuring.

// Same values every time (a linear congruential generator), in (-1, 1): no denormals, no zeros.
function randomFloats(count) {
  const values = new Float32Array(count);
  let state = 1;
  for (let i = 0; i < count; ++i) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    values[i] = (state + 0.5) / 2 ** 31 - 1;
  }
  return values;
}

function randomBytes(count) {
  const values = new Int8Array(count);
  let state = 1;
  for (let i = 0; i < count; ++i) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    values[i] = state >>> 24;
  }
  return values;
}

// Tensors for the inputs of a session. Whole numbers are 1: valid as a token, an index and a mask. Others are random, for
// cores run up to 20% faster on operands that are all the same.
function feed(ort, session, settings) {
  const feeds = {};
  for (const input of session.inputMetadata) {
    const shape = input.shape.map((side, axis) => {
      if (typeof side === 'number') return side;
      return settings.bindings[side] ?? (axis === 0 ? settings.batch : 1);
    });
    const count = shape.reduce((all, side) => all * side, 1);
    const content = {
      float32: () => randomFloats(count),
      float64: () => Float64Array.from(randomFloats(count)),
      float16: () => new Uint16Array(count).fill(0x3800),  // 0.5
      int64: () => new BigInt64Array(count).fill(1n),
      int32: () => new Int32Array(count).fill(1),
      uint8: () => new Uint8Array(randomBytes(count).buffer),
      int8: () => randomBytes(count),
      bool: () => new Uint8Array(count).fill(1),
    }[input.type];
    if (!content) throw new Error(`input ${input.name} has type ${input.type}`);
    feeds[input.name] = new ort.Tensor(input.type, content(), shape);
  }
  return feeds;
}

function sessionOptions(settings, more = {}) {
  return {executionProviders: ['cpu'], intraOpNumThreads: settings.threads, interOpNumThreads: 1,
          executionMode: 'sequential', graphOptimizationLevel: 'all', logSeverityLevel: 3, ...more};
}

const cpuMilliseconds = () => {
  const used = process.cpuUsage();
  return (used.user + used.system) / 1e3;
};

// One sample: calls are repeated until it is long enough; mean CPU and wall milliseconds of a call.
async function sample(session, feeds, seconds) {
  const start = cpuMilliseconds(), wallStart = performance.now();
  for (let calls = 0, more = 1;; more *= 2) {
    for (let i = 0; i < more; ++i) await session.run(feeds);
    calls += more;
    const spent = cpuMilliseconds() - start;
    if (spent >= seconds * 1e3) return {cpu: spent / calls, wall: (performance.now() - wallStart) / calls};
  }
}

// `sources`: {name, model (a path or bytes)}. Rows in their order; what cannot be run has none.
async function measure(ort, sources, settings) {
  const subjects = [];
  for (const {name, model} of sources) {
    try {
      const session = await ort.InferenceSession.create(model, sessionOptions(settings));
      const feeds = feed(ort, session, settings);
      await session.run(feeds);
      subjects.push({name, session, feeds, samples: []});
    } catch (error) {
      console.error(`left out: ${name}: ${error.message.split('\n')[0]}`);
    }
  }
  for (let round = 0; round < settings.rounds; ++round) {
    for (const subject of subjects)
      subject.samples.push(await sample(subject.session, subject.feeds, settings.seconds));
  }
  for (const subject of subjects) await subject.session.release();
  return subjects.map(({name, samples}) => {
    const cpu = samples.map((s) => s.cpu).sort((a, b) => a - b);
    const mean = cpu.reduce((a, b) => a + b, 0) / cpu.length;
    const variance = cpu.reduce((all, t) => all + (t - mean) ** 2, 0) / Math.max(1, cpu.length - 1);
    return {name, least: cpu[0], median: cpu[cpu.length >> 1], variation: 100 * Math.sqrt(variance) / mean,
            wall: Math.min(...samples.map((s) => s.wall))};
  });
}

// ---- What the runtime says about itself.

// The operators of a model and their own time, from the runtime's profile: the least of the calls.
async function writeProfile(ort, name, model, settings) {
  const prefix = path.join(settings.profiles, `${name}.trace`);
  const optimised = path.join(settings.profiles, `${name}.optimised.onnx`);
  const session = await ort.InferenceSession.create(
    model, sessionOptions(settings, {enableProfiling: true, profileFilePrefix: prefix, optimizedModelFilePath: optimised}));
  const feeds = feed(ort, session, settings);
  for (let i = 0; i < Math.max(3, settings.rounds); ++i) await session.run(feeds);
  session.endProfiling();
  await session.release();
  fs.rmSync(optimised, {force: true});

  const operators = new Map();
  for (const file of fs.readdirSync(settings.profiles).filter((f) => f.startsWith(`${name}.trace`))) {
    const whole = path.join(settings.profiles, file);
    for (const event of JSON.parse(fs.readFileSync(whole, 'utf8'))) {
      if (event.cat !== 'Node' || !event.name.endsWith('_kernel_time')) continue;
      const key = event.name.slice(0, -'_kernel_time'.length);
      const shapes = (list) => (list ?? []).map((t) => Object.values(t)[0].join('x')).join(' ');
      const known = operators.get(key) ?? {type: event.args.op_name, microseconds: Infinity, calls: 0,
                                           inputs: shapes(event.args.input_type_shape),
                                           outputs: shapes(event.args.output_type_shape)};
      known.microseconds = Math.min(known.microseconds, event.dur);
      known.calls += 1;
      operators.set(key, known);
    }
    fs.rmSync(whole);
  }
  const rows = ['name,type,us_min,calls,input_shapes,output_shapes'], counts = new Map();
  for (const [key, o] of operators) {
    rows.push([key.replaceAll(',', ';'), o.type, o.microseconds, o.calls, o.inputs, o.outputs].join(','));
    const count = counts.get(o.type) ?? {operators: 0, microseconds: 0};
    counts.set(o.type, {operators: count.operators + 1, microseconds: count.microseconds + o.microseconds});
  }
  fs.writeFileSync(path.join(settings.profiles, `${name}.csv`), rows.join('\n') + '\n');
  const sums = [...counts].sort(([, a], [, b]) => b.microseconds - a.microseconds)
                   .map(([type, c]) => `${type},${c.operators},${c.microseconds}`);
  fs.writeFileSync(path.join(settings.profiles, `${name}.operators.csv`),
                   ['type,operators,us_min', ...sums].join('\n') + '\n');
}

// ---- Command line.

async function measureModels(ort, files, settings) {
  const sources = files.map((file) => ({name: path.basename(file, '.onnx'), model: file}));
  console.log('model,cpu_ms_median,cpu_ms_min,cv_pct,reps,wall_ms_min');
  for (const row of await measure(ort, sources, settings)) {
    console.log([row.name, row.median.toPrecision(6), row.least.toPrecision(6), row.variation.toFixed(1),
                 settings.rounds, row.wall.toPrecision(6)].join(','));
  }
  if (!settings.profiles) return;
  fs.mkdirSync(settings.profiles, {recursive: true});
  for (const {name, model} of sources) await writeProfile(ort, name, model, settings);
}

async function measurePlan(ort, [planFile, outFile], settings) {
  const [header, ...lines] = fs.readFileSync(planFile, 'utf8').trim().split('\n').map((line) => line.split(','));
  const kindColumn = header.indexOf('kind'), parameterColumn = header.indexOf('params');
  // The first calls of all are slow, until the engine has compiled this script.
  const first = new Graph();
  KERNELS.null(first, {});
  await measure(ort, [{name: 'null', model: first.bytes()}], {...settings, seconds: 0.2});
  const compares = settings.threadCounts.length > 1;
  const rows = [compares ? 'kernel_id,kind,params,threads,wall_ms_min' : 'kernel_id,kind,params,cpu_ms_min'];
  for (const [index, line] of lines.entries()) {
    const kind = line[kindColumn], parameters = line[parameterColumn];
    const pairs = parameters.split(';').filter(Boolean).map((pair) => pair.split('='));
    if (!KERNELS[kind]) {
      console.error(`left out: ${kind} ${parameters}`);
      continue;
    }
    const graph = new Graph();
    KERNELS[kind](graph, Object.fromEntries(pairs.map(([k, v]) => [k, k === 'act' ? v : Number(v)])));
    for (const threads of settings.threadCounts) {
      const source = {name: `${kind} ${parameters}`, model: graph.bytes()};
      const [row] = await measure(ort, [source], {...settings, threads});
      const times = compares && row ? [threads, row.wall.toPrecision(6)] : [row?.least.toPrecision(6)];
      if (row) rows.push([index + 1, kind, parameters, ...times].join(','));
    }
  }
  fs.writeFileSync(outFile, rows.join('\n') + '\n');
}

async function main() {
  const text = (value) => ({type: 'string', default: value});
  const {values, positionals} = parseArgs({
    allowPositionals: true,
    options: {models: {type: 'boolean'}, threads: text('1'), bind: {type: 'string', multiple: true, default: []},
              batch: text('1'), rounds: text('7'), seconds: text('0.002'), profiles: text(''),
              help: {type: 'boolean'}},
  });
  if (values.help || (values.models ? positionals.length === 0 : positionals.length !== 2)) {
    console.error(USAGE);
    process.exit(values.help ? 0 : 2);
  }
  const threadCounts = values.threads.split(',').map(Number);
  const settings = {threads: threadCounts[0], threadCounts, batch: Number(values.batch), rounds: Number(values.rounds),
                    seconds: Number(values.seconds), profiles: values.profiles,
                    bindings: Object.fromEntries(values.bind.map((b) => b.split('=')).map(([k, v]) => [k, Number(v)]))};
  const ort = runtime();
  console.error(`runtime: ONNX Runtime ${ort.env.versions.node}`);
  await (values.models ? measureModels : measurePlan)(ort, positionals, settings);
}

await main();
