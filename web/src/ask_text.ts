// A question in a few words, "llama 70b on 8 h100, 5 req/s", as one of the program's questions.
import type { DeviceEntry, Facts, Fields, ModelEntry, Question } from './api';
import { clusterOf, deviceNames, takeDesign, understandPart } from './ask_part_text';
import { dayPeriod, dayTraffic } from './day_question';
import { shortName } from './format';
import { amount, longestName, pieces, Reader, withoutFiller } from './text_reader';

// What the box offers while one types; a test asks each.
export const phrases = [
  'llama 70b on 8 h100, 5 req/s', 'qwen3-32b fp8 on 2 l40s with sglang, 64 users, ttft < 1s', 'best layout for llama 8b on 4 a100, 10 req/s',
  'chat over a day with llama 8b on 8 h100, 16 req/s, swing 60%', 'train llama 70b on 256 h100, seq 8k', 'pretrain llama 8b on 1T tokens with 512 h100, tp 2, pp 2',
  'qlora llama 8b on 8 rtx 4090, rank 64', 'gemm 4096 x 4096 x 8192 bf16 on h200', 'decode attention batch 64 heads 32 kv heads 8 kv len 32768 on h100',
  'all-reduce on 16 h100', 'resnet50 on eyeriss', 'gemm 512 x 768 x 1024 on tpu v4'];

export interface Understood { question?: Question; problem?: string; ignored: string[] }

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


interface Machine { device: DeviceEntry; count: number }

// "train llama 70b on 256 h100, seq 8k, batch 1024, tp 8, pp 4, 1T tokens".
function training(reader: Reader, lora: RegExpExecArray | null, format: string | undefined): (model: string, machine: Machine, facts: Facts) => [Question, string[]] {
  const length = reader.take(/\b(?:seq(?:uence)?(?:\s*len(?:gth)?)?|context)\s*(?:of\s*)?([0-9.]+k?)\b/);
  const micro = reader.take(/\bmicro[- ]?batch(?:\s*size)?\s*(?:of\s*)?(\d+)\b/);
  const batch = reader.take(/\b(?:global\s*)?batch(?:\s*size)?\s*(?:of\s*)?([0-9.]+k?)\b/);
  const rank = reader.take(/\brank\s*(?:of\s*)?(\d+)\b/);
  const tokens = reader.take(/\b([0-9.]+\s*[kmbt]?)\s*(?:tokens|tok)\b/);
  const size = (name: string, words: string) => Number(reader.take(new RegExp(`\\b(?:${name}|${words}\\s*parallel)\\s*[=: ]?\\s*(\\d+)\\b`))?.[1] ?? 0);
  const tensor = size('tp', 'tensor'), pipeline = size('pp', 'pipeline'), context = size('cp', 'context'), expert = size('ep', 'expert');
  return (model, { device, count }, facts) => {
    const hardware = device.file.name;
    const devices = count || 8;
    const cluster = clusterOf(hardware, facts);
    const isGiven = lora !== null || tensor > 0 || pipeline > 0 || micro !== null;
    const isNarrow = lora?.[0].startsWith('q') || widths[format ?? ''] === 0.5;
    const question: Question = {
      command: isGiven ? 'train' : 'plan train', model, ...(cluster && devices > 8 ? { cluster } : { device: hardware }), devices,
      seq_length: length ? Math.round(1.024 ** (/k$/.test(length[1]!) ? 1 : 0) * amount(length[1]!)) : 4096, global_batch_size: batch ? amount(batch[1]!) : lora ? 64 : 512,
      ...(format === 'fp8' && !lora ? { precision: 'fp8' } : {}), ...(lora ? { lora_rank: Number(rank?.[1] ?? 16), base_weights: isNarrow ? 'nf4' : 'bf16' } : {}),
      ...(isGiven && !lora ? { sharding: 'optimizer' } : {}), ...(micro ? { micro_batch_size: Number(micro[1]) } : {}),
      ...(tensor > 1 ? { tensor_parallel_size: tensor, sequence_parallel: true } : {}), ...(pipeline > 1 ? { pipeline_parallel_size: pipeline } : {}),
      ...(context > 1 ? { context_parallel_size: context } : {}), ...(expert > 1 ? { expert_parallel_size: expert } : {}),
      ...(isGiven && tokens ? { train_tokens: amount(tokens[1]!) } : {}),
    };
    return [question, tokens && !isGiven ? [`${tokens[0].trim()} (a search has no length; give tp and pp to time a whole run)`] : []];
  };
}

const words = (facts: Facts, command: string, field: string): string => (facts.fields[command]?.[field]?.choices ?? []).filter((choice) => choice !== 'none').join('|') || 'reactive';

export function understand(typed: string, facts: Facts): Understood {
  const reader = new Reader(` ${typed.toLowerCase().replaceAll(/\b(\d+)\s*[x×]\s*(?=[a-z])/g, '$1 ')} `);
  const part = understandPart(reader, facts);
  if (part) return part;
  const lora = reader.take(/\bq?lora\b/);
  const trains = reader.take(/\b(pre-?train|train|fine-?tune|finetune)(ing|s)?\b/) !== null || lora !== null;
  reader.take(/\b(full|pre-?train|train|fine-?tune|finetune)(ing|s)?\b/);
  const rate = reader.take(/([0-9.]+)\s*(?:requests?|reqs?|queries)?\s*(?:\/\s*s\b|\/\s*sec(?:ond)?\b|per second|a second|rps\b|qps\b)/);
  const isDay = !trains && reader.take(/\b(?:(?:over|for|during|through|in)\s+)?(?:(?:a|one|the)\s+)?(?:whole\s+|full\s+)?day(?:\s+of\s+traffic)?\b|\bdaily\b|\b24\s*h(?:ours?)?\b|\bautoscal(?:e|ed|er|ing)\b/) !== null;
  const swing = isDay ? reader.take(/\bswing(?:ing)?\s*(?:of\s*)?([0-9.]+)\s*%?|([0-9.]+)\s*%\s*swing\b/) : null;
  const scaler = isDay ? reader.take(new RegExp(`\\b(${words(facts, 'serve', 'autoscaler')})\\b`)) : null;
  if (isDay) reader.take(/\bautoscal(?:e|ed|er|ing)\b/);
  const replicas = reader.take(/\b(?:up\s*to\s*)?(\d+)\s*replicas?\b/);
  const finds = reader.take(/\b(?:(?:find|best|cheapest)(?:\s+(?:the|a|best|cheapest|layouts?)\b)*|which layout|how many|layouts?)\b/) !== null;
  const users = reader.take(/([0-9]+)\s*(?:concurrent(?: requests)?|users|clients|streams)\b/);
  const ttft = reader.take(/\bttft\s*(?:<|under|below|of)?\s*([0-9.]+)\s*(ms|s)?/);
  const tpot = reader.take(/\b(?:tpot|itl)\s*(?:<|under|below|of)?\s*([0-9.]+)\s*(ms|s)?/);
  const lengths = trains ? null : reader.take(/\b([0-9.]+k?)\s*\/\s*([0-9.]+k?)\b/);
  const input = trains ? null : reader.take(/\b([0-9.]+k?)\s*(?:tokens?\s*)?(?:in|input|prompt)(?:\s*tokens?)?\b/);
  const output = trains ? null : reader.take(/\b([0-9.]+k?)\s*(?:tokens?\s*)?(?:out|output)(?:\s*tokens?)?\b/);
  const engine = reader.take(/\b(vllm|sglang|trtllm|tensorrt(?:-llm)?)\b/);
  const format = reader.take(formats)?.[1];
  const job = trains ? training(reader, lora, format) : undefined;

  const device = reader.takeNamed(facts.devices, deviceNames);
  const design = device || trains ? undefined : takeDesign(reader, facts);
  const count = device?.count ?? 0;
  const rest = withoutFiller(reader.text);
  const exact = longestName(rest, facts.models, (model) => [model.name, shortName(model.name), ...model.aliases, ...model.aliases.map(shortName)]);
  const byPieces = exact ? undefined : modelByPieces(rest, facts.models);
  const model = exact?.entry ?? byPieces?.entry;
  const used = new Set(exact ? pieces(exact.words) : byPieces?.used ?? []);
  const ignored = pieces(rest).filter((word) => !used.has(word) && !(design && (word === 'decode' || word === 'prefill')));

  if (!model) return { problem: 'Name a model, for example “llama 70b on 8 h100, 5 req/s”.', ignored };
  const name = shortName(model.name);
  if (design) return { question: { command: 'accel', arch: design, model: name, ...(/\bprefill\b/.test(rest) ? { phase: 'prefill' } : {}) }, ignored };
  if (!device) return { problem: `Name the hardware too, for example “${name} on 8 h100”.`, ignored };
  const hardware = device.entry.file.name;
  if (job) {
    const [question, unused] = job(name, { device: device.entry, count }, facts);
    return { question, ignored: [...ignored, ...unused] };
  }
  const scheme = format ? format === 'int4' ? 'int4_wo' : format : undefined;
  const milliseconds = (found: RegExpExecArray | null, usual: number) => found ? Number(found[1]) * (found[2] === 's' ? 1000 : 1) : usual;
  const goals = { ttft: milliseconds(ttft, 500), tpot: milliseconds(tpot, 50) };
  const requestRate = rate ? Number(rate[1]) : 8;
  const prompt = amount(lengths?.[1] ?? input?.[1] ?? '1024'), answer = amount(lengths?.[2] ?? output?.[1] ?? '256');
  const traffic: Fields = {
    ...(users && !finds ? { max_concurrency: Number(users[1]) } : { request_rate: requestRate }), num_prompts: 400,
    random_input_len: prompt, random_output_len: answer, random_range_ratio: 0.5 };
  const kind = engine ? engine[1]!.startsWith('tensorrt') ? 'trtllm' : engine[1]! : undefined;
  if (finds && !isDay) {
    return { question: { command: 'plan serve', model: name, hardware: `${hardware}:${count || 8}`, ...traffic, engines: kind ?? 'vllm', ...(scheme ? { quantizations: scheme } : {}),
      slo: [`ttft<${goals.ttft}ms@p99`, `tpot<${goals.tpot}ms@p99`] }, ignored };
  }
  const tensor = fewest(model, device.entry, count || 16, format && model.scheme !== scheme ? (widths[format] ?? 2) / 2 : 1);
  const copies = Number(replicas?.[1] ?? 0) || Math.max(1, Math.floor((count || tensor) / tensor));
  const setup: Fields = { command: 'serve', model: name, device: hardware, ...(tensor > 1 ? { tensor_parallel_size: tensor } : {}) };
  if (isDay) {
    const most = replicas || count ? copies : 8;
    return { question: { ...setup, command: 'serve', ...dayTraffic(requestRate, prompt, answer, Number(swing?.[1] ?? swing?.[2] ?? 80) / 100, dayPeriod(facts, requestRate)),
      autoscaler: scaler?.[1] ?? 'reactive', max_replicas: most }, ignored: [...ignored, ...(scheme ? [scheme] : []), ...(kind ? [kind] : [])] };
  }
  return { question: { ...setup, command: 'serve', ...(copies > 1 ? { replicas: copies } : {}), ...traffic,
    ...(scheme ? { quantization: scheme } : {}), ...(kind ? { engine: kind } : {}), goodput: [`ttft:${goals.ttft}`, `tpot:${goals.tpot}`] }, ignored };
}
