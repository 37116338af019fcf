// A question in a few words, "llama 70b on 8 h100, 5 req/s", as one of the program's questions.
import type { DeviceEntry, Facts, Fields, ModelEntry, Question } from './api';
import { shortName } from './format';

export interface Understood { question?: Question; problem?: string; ignored: string[] }

const plain = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
const pieces = (text: string): string[] => text.toLowerCase().split(/[^a-z0-9.]+/).filter((piece) => piece !== '');

// Takes what a pattern finds out of the text.
class Reader {
  constructor(public text: string) {}
  take(pattern: RegExp): RegExpExecArray | null {
    const found = pattern.exec(this.text);
    if (found) this.text = `${this.text.slice(0, found.index)} , ${this.text.slice(found.index + found[0].length)}`;
    return found;
  }
}

// "1k", "4096", "1.5T".
function amount(text: string): number {
  const [, number = '', unit = ''] = /^([0-9.]+)\s*([kmbgt]?)/i.exec(text) ?? [];
  const scale: Record<string, number> = { k: 1e3, m: 1e6, b: 1e9, g: 1e9, t: 1e12 };
  return Number(number) * (scale[unit.toLowerCase()] ?? 1);
}

// The longest run of words that names one, and where it lies.
function longestName<Entry>(text: string, entries: Entry[], names: (entry: Entry) => string[]): { entry: Entry; words: string } | undefined {
  const words = text.split(/[\s,;]+/).filter((word) => word !== '');
  const known = new Map<string, Entry>();
  for (const entry of entries) for (const name of names(entry)) if (!known.has(plain(name))) known.set(plain(name), entry);
  for (let length = Math.min(5, words.length); length > 0; --length) {
    for (let i = 0; i + length <= words.length; ++i) {
      const run = words.slice(i, i + length);
      const entry = known.get(plain(run.join('')));
      if (entry) return { entry, words: run.join(' ') };
    }
  }
  return undefined;
}

const version = (name: string): number => Number(/-(\d+(?:\.\d+)?)-/.exec(name)?.[1] ?? 0);

// "llama 70b": the model whose name has most of these pieces; of several the plainest name, then the newest.
function modelByPieces(text: string, models: ModelEntry[]): { entry: ModelEntry; used: string[] } | undefined {
  const words = pieces(text);
  let best: { entry: ModelEntry; used: string[]; rank: number[] } | undefined;
  for (const entry of models) {
    const name = shortName(entry.name);
    const own = new Set(pieces(name.replaceAll('.', ' . ')).concat(pieces(name)));
    const used = words.filter((word) => own.has(word));
    if (used.length === 0 || !used.some((word) => /[a-z]{2}|^r\d/.test(word))) continue;
    const extra = pieces(name).length - used.length;
    const rank = [used.length, -extra, version(name)];
    const differs = rank.findIndex((value, i) => value !== best?.rank[i]);
    const isBetter = !best || (differs >= 0 && rank[differs]! > best.rank[differs]!);
    if (isBetter) best = { entry, used, rank };
  }
  return best;
}

const powers = [1, 2, 4, 8, 16];

// The fewest devices that hold the weights with room for a cache.
function fewest(model: ModelEntry, device: DeviceEntry, count: number, share: number): number {
  const memory = 1e9 * Number((device.file.memory_gb as { value?: number } | undefined)?.value ?? 0);
  const fitting = powers.filter((size) => size <= count);
  return fitting.find((size) => share * model.weight_bytes / size < 0.75 * memory) ?? fitting.at(-1) ?? 1;
}

const formats = /\b(fp8|bf16|int8|int4|nvfp4)\b/i;
const widths: Record<string, number> = { fp8: 1, int8: 1, int4: 0.5, nvfp4: 0.5 };

export function understand(typed: string, facts: Facts): Understood {
  const reader = new Reader(` ${typed.toLowerCase().replaceAll(/\b(\d+)\s*[x×]\s*(?=[a-z])/g, '$1 ')} `);
  const trains = reader.take(/\b(pre-?train|train|fine-?tune|finetune)(ing|s)?\b/) !== null;
  const lora = reader.take(/\bq?lora\b/);
  const finds = reader.take(/\b(find|best|cheapest|which layout|how many|layouts?)\b/) !== null;
  const rate = reader.take(/([0-9.]+)\s*(?:requests?|reqs?|queries)?\s*(?:\/\s*s\b|\/\s*sec(?:ond)?\b|per second|a second|rps\b|qps\b)/);
  const users = reader.take(/([0-9]+)\s*(?:concurrent(?: requests)?|users|clients|streams)\b/);
  const ttft = reader.take(/\bttft\s*(?:<|under|below|of)?\s*([0-9.]+)\s*(ms|s)?/);
  const tpot = reader.take(/\b(?:tpot|itl)\s*(?:<|under|below|of)?\s*([0-9.]+)\s*(ms|s)?/);
  const lengths = reader.take(/\b([0-9.]+k?)\s*\/\s*([0-9.]+k?)\b/);
  const input = reader.take(/\b([0-9.]+k?)\s*(?:tokens?\s*)?(?:in|input|prompt)(?:\s*tokens?)?\b/);
  const output = reader.take(/\b([0-9.]+k?)\s*(?:tokens?\s*)?(?:out|output)(?:\s*tokens?)?\b/);
  const tokens = reader.take(/\b([0-9.]+\s*[kmbt]?)\s*tokens\b/);
  const engine = reader.take(/\b(vllm|sglang|trtllm|tensorrt(?:-llm)?)\b/);
  const format = reader.take(formats);

  const device = longestName(reader.text, facts.devices, ({ file }) => [file.name, ...(file.aliases ?? [])]);
  let count = 0;
  if (device) {
    const named = device.words.split(' ').map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('[\\s,;]+');
    const found = reader.take(new RegExp(`(?:(\\d+)\\s+)?${named}s?`));
    count = Number(found?.[1] ?? 0);
  }
  const filler = /\b(on|with|at|for|and|a|an|the|of|in|to|serve|serving|run|chat|model|gpus?|devices?|will|can|i|how|fast|is|weights?|using|my)\b/g;
  const rest = reader.text.replaceAll(filler, ' ');
  const exact = longestName(rest, facts.models, (model) => [model.name, shortName(model.name), ...model.aliases, ...model.aliases.map(shortName)]);
  const byPieces = exact ? undefined : modelByPieces(rest, facts.models);
  const model = exact?.entry ?? byPieces?.entry;
  const used = new Set(exact ? pieces(exact.words) : byPieces?.used ?? []);
  const ignored = pieces(rest).filter((word) => !used.has(word));

  if (!model) return { problem: 'Name a model, for example “llama 70b on 8 h100, 5 req/s”.', ignored };
  if (!device) return { problem: `Name the hardware too, for example “${shortName(model.name)} on 8 h100”.`, ignored };
  const name = shortName(model.name);
  const hardware = device.entry.file.name;
  if (trains || lora) {
    const devices = count || 8;
    const cluster = facts.clusters.find((one) => one.startsWith(`${hardware.split('_')[0]}_`));
    const machine: Fields = cluster && devices > 8 ? { cluster } : { device: hardware };
    const question: Question = { command: lora ? 'train' : 'plan train', model: name, ...machine, devices, seq_length: 4096, global_batch_size: lora ? 64 : 512,
      ...(lora ? { lora_rank: 16, base_weights: lora[0].startsWith('q') || widths[format?.[1] ?? ''] === 0.5 ? 'nf4' : 'bf16' } : {}), ...(lora && tokens ? { train_tokens: amount(tokens[1]!) } : {}) };
    return { question, ignored };
  }
  const scheme = format ? format[1]! === 'int4' ? 'int4_wo' : format[1]! : undefined;
  const milliseconds = (found: RegExpExecArray | null, usual: number) => found ? Number(found[1]) * (found[2] === 's' ? 1000 : 1) : usual;
  const goals = { ttft: milliseconds(ttft, 500), tpot: milliseconds(tpot, 50) };
  const traffic: Fields = {
    ...(users && !finds ? { max_concurrency: Number(users[1]) } : { request_rate: rate ? Number(rate[1]) : 8 }), num_prompts: 400,
    random_input_len: amount(lengths?.[1] ?? input?.[1] ?? '1024'), random_output_len: amount(lengths?.[2] ?? output?.[1] ?? '256'), random_range_ratio: 0.5 };
  const kind = engine ? engine[1]!.startsWith('tensorrt') ? 'trtllm' : engine[1]! : undefined;
  if (finds) {
    return { question: { command: 'plan serve', model: name, hardware: `${hardware}:${count || 8}`, ...traffic, engines: kind ?? 'vllm', ...(scheme ? { quantizations: scheme } : {}),
      slo: [`ttft<${goals.ttft}ms@p99`, `tpot<${goals.tpot}ms@p99`] }, ignored };
  }
  const tensor = fewest(model, device.entry, count || 16, format && model.scheme !== scheme ? (widths[format[1]!] ?? 2) / 2 : 1);
  const replicas = Math.max(1, Math.floor((count || tensor) / tensor));
  return { question: { command: 'serve', model: name, device: hardware, ...(tensor > 1 ? { tensor_parallel_size: tensor } : {}), ...(replicas > 1 ? { replicas } : {}), ...traffic,
    ...(scheme ? { quantization: scheme } : {}), ...(kind ? { engine: kind } : {}), goodput: [`ttft:${goals.ttft}`, `tpot:${goals.tpot}`] }, ignored };
}
