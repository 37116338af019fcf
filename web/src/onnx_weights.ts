// An ONNX file without the numbers of its large tensors (protobuf: ModelProto.graph.initializer).

const graphField = 7, initializerField = 5;
const dataFields = new Set([4, 5, 6, 7, 9, 10, 11]);  // of a tensor: floats, raw bytes and the like
const largest = 65_536;  // bytes: smaller ones may be shapes, which the reader needs

interface Field { number: number; wire: number; start: number; value: number; end: number }

function varint(of: Uint8Array, at: number): [value: number, next: number] {
  let value = 0, scale = 1;
  for (let i = at; i < of.length && i < at + 10; ++i) {
    value += (of[i]! & 0x7f) * scale;
    if (of[i]! < 0x80) return [value, i + 1];
    scale *= 128;
  }
  throw new Error('no protobuf');
}

function* fieldsOf(of: Uint8Array): Generator<Field> {
  for (let at = 0; at < of.length;) {
    const [tag, value] = varint(of, at);
    const wire = tag % 8;
    let begin = value, end: number;
    if (wire === 0) end = varint(of, value)[1];
    else if (wire === 1) end = value + 8;
    else if (wire === 5) end = value + 4;
    else if (wire === 2) {
      const [length, next] = varint(of, value);
      begin = next;
      end = next + length;
    } else throw new Error('no protobuf');
    if (end > of.length) throw new Error('no protobuf');
    yield { number: Math.floor(tag / 8), wire, start: at, value: begin, end };
    at = end;
  }
}

function joined(parts: Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

function message(number: number, content: Uint8Array): Uint8Array {
  const head: number[] = [];
  for (let value of [number * 8 + 2, content.length]) {
    for (; value >= 128; value = Math.floor(value / 128)) head.push(value % 128 + 128);
    head.push(value);
  }
  return joined([Uint8Array.from(head), content]);
}

// Messages in field `number` changed by `change`, all else as it is.
function changed(of: Uint8Array, number: number, change: (content: Uint8Array) => Uint8Array): Uint8Array {
  return joined([...fieldsOf(of)].map((field) => field.number === number && field.wire === 2
    ? message(number, change(of.subarray(field.value, field.end))) : of.subarray(field.start, field.end)));
}

const tensorShape = (tensor: Uint8Array): Uint8Array => tensor.length <= largest ? tensor
  : joined([...fieldsOf(tensor)].filter((field) => !dataFields.has(field.number)).map((field) => tensor.subarray(field.start, field.end)));

// What is no ONNX file comes back as it is: the server says what is wrong with it.
export function withoutWeights(file: Uint8Array): Uint8Array {
  try {
    return changed(file, graphField, (graph) => changed(graph, initializerField, tensorShape));
  } catch {
    return file;
  }
}
