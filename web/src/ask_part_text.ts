// Questions about parts in words: "gemm 4096 x 4096 x 8192 bf16 on h200", "resnet50 on tpu v4", "all-reduce on 16 h100".
import type { DeviceEntry, Facts, Fields, KernelParameter, Question } from './api';
import type { Understood } from './ask_text';
import { pieces, withoutFiller, type Reader } from './text_reader';

type Family = Facts['kernels'][number];

const familyWords: Record<string, string[]> = {
  gemm: ['matmul', 'matrix multiplication', 'matrix product'], norm: ['rmsnorm', 'layernorm', 'rms norm', 'layer norm'], conv: ['convolution', 'conv2d'],
  attention_prefill: ['flash attention', 'prefill attention', 'attention'], attention_decode: ['decode attention', 'paged attention'], moe: ['expert layer', 'mixture of experts'],
};
// Also parts of models' names: a kernel only with sizes, or where the word is said.
const ambiguous = ['moe', 'embedding'];
const sizesPattern = /(?<![a-z0-9.])(\d+(?:\s*[x×]\s*\d+)+)(?![a-z0-9])/;

export const deviceNames = ({ file }: DeviceEntry): string[] => [file.name, ...(file.aliases ?? [])];
const designNames = ({ name }: Facts['designs'][number]): string[] => [name, name.replace(/_[^_]*$/, '')];

// The cluster that such devices usually stand in.
export function clusterOf(hardware: string, facts: Facts): string | undefined {
  const [make, ...more] = hardware.split('_');
  const own = facts.clusters.filter((name) => name.startsWith(`${make}_`));
  const size = more.find((word) => word.endsWith('gb'));
  return own.find((name) => size && name.includes(size)) ?? own.find((name) => name.includes('ib_rail')) ?? own[0];
}

// The sizes that a kernel has no usual value for, in their order.
const sizesOf = (family: Family): KernelParameter[] => family.parameters.filter(({ whole, usual }) => whole && usual === undefined);

function kernelQuestion(reader: Reader, family: Family, device: string): Question {
  const flags: Fields = { device };
  const known = new Map(family.parameters.map((parameter) => [parameter.name.replaceAll('_', ''), parameter]));
  for (const parameter of sizesOf(family)) flags[parameter.name] = parameter.example;
  const sizes = reader.take(sizesPattern)?.[1]?.split(/[x×]/).map((size) => size.trim()) ?? [];
  sizesOf(family).slice(0, sizes.length).forEach(({ name }, i) => { flags[name] = sizes[i]!; });
  const named = new Set<string>();
  // "m=4096", "head dim 128".
  for (const [name, parameter] of known) {
    const spelled = [...parameter.name].map((letter) => letter === '_' ? '[_ ]?' : letter).join('');
    const value = parameter.choices ? `(${parameter.choices.join('|')})` : '([0-9.]+)';
    const found = reader.take(new RegExp(`\\b(?:${spelled}|${name})\\s*[=: ]\\s*${value}(?![a-z0-9])`));
    if (!found) continue;
    flags[parameter.name] = found[1]!;
    named.add(parameter.name);
  }
  // A prompt that attends to itself.
  if (named.has('q_len') && !named.has('kv_len') && flags.kv_len !== undefined) flags.kv_len = flags.q_len!;
  const typed = family.parameters.find(({ name, choices }) => name.endsWith('dtype') && choices && choices.length > 1);
  const format = typed && reader.take(new RegExp(`\\b(${[...typed.choices!].sort((a, b) => b.length - a.length).join('|')})\\b`));
  if (typed && format) flags[typed.name] = format[1]!;
  return { command: `kernel ${family.name}`, ...flags };
}

const rest = (reader: Reader): string[] => pieces(withoutFiller(reader.text));

function takeFamily(reader: Reader, facts: Facts): Family | undefined {
  const before = reader.text;
  const isSaid = /\bkernel\b/.test(before) || sizesPattern.test(before) || /[a-z]=\d/.test(before);
  const found = reader.takeNamed(facts.kernels, ({ name }) => [name, ...(familyWords[name] ?? [])]);
  if (!found || isSaid || !ambiguous.includes(found.entry.name)) return found?.entry;
  reader.text = before;
  return undefined;
}

function collective(reader: Reader, facts: Facts): Understood | undefined {
  const choices = facts.fields.collective?.op?.choices ?? [];
  const op = reader.take(/\b(all[- _]?reduce|all[- _]?gather|reduce[- _]?scatter|all[- _]?to[- _]?all|broadcast)\b/)?.[1]?.replaceAll(/[^a-z]/g, '');
  const named = choices.find((choice) => choice.replaceAll('_', '') === op);
  if (!op || !named) return undefined;
  reader.take(/\b[0-9.]+\s*[kmg]i?b\b/);  // all sizes are answered
  const cluster = reader.takeNamed(facts.clusters, (name) => [name]);
  const ranks = Number(reader.take(/\b(\d+)\s*ranks\b/)?.[1] ?? 0);
  const device = cluster ? undefined : reader.takeNamed(facts.devices, deviceNames);
  const machine = cluster?.entry ?? (device && clusterOf(device.entry.file.name, facts));
  if (!machine) return { problem: 'Name the cluster, for example “all-reduce on 16 h100”.', ignored: rest(reader) };
  const count = ranks || device?.count || 0;
  return { question: { command: 'collective', cluster: machine, op: named, sizes: '1K:4G', ...(count > 1 ? { ranks: count } : {}) }, ignored: rest(reader) };
}

// Nothing where the words are not about a part.
export function understandPart(reader: Reader, facts: Facts): Understood | undefined {
  const told = collective(reader, facts);
  if (told) return told;
  const family = takeFamily(reader, facts);
  const network = family ? undefined : reader.takeNamed(facts.networks, (name) => [name, name.replaceAll('_', '')]);
  if (!family && !network) return undefined;
  const device = reader.takeNamed(facts.devices, deviceNames);
  if (family && device) return { question: kernelQuestion(reader, family, device.entry.file.name), ignored: rest(reader) };
  const design = device ? undefined : reader.takeNamed(facts.designs, designNames)?.entry.name;
  if (network && design) return { question: { command: 'accel', arch: design, network: network.entry }, ignored: rest(reader) };
  const sizes = design ? reader.take(sizesPattern)?.[1]?.replaceAll(/\s|×/g, (found) => found === '×' ? 'x' : '') : undefined;
  if (family && design && sizes && (family.name === 'gemm' || family.name === 'conv')) {
    return { question: { command: 'accel', arch: design, [family.name]: sizes }, ignored: rest(reader) };
  }
  const problem = network ? `Name a chip, for example “${network.words} on tpu v4”. For a network of your own on a CPU or GPU, choose Parts: ONNX.`
    : design ? 'Give the sizes, for example “gemm 512 x 512 x 512 on tpu v4”.' : 'Name the hardware too, for example “gemm 4096 x 4096 x 8192 bf16 on h200”.';
  return { problem, ignored: rest(reader) };
}

// "llama 8b on eyeriss": a design where no device is named.
export const takeDesign = (reader: Reader, facts: Facts): string | undefined => reader.takeNamed(facts.designs, designNames)?.entry.name;
