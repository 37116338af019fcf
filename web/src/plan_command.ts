// The command of one layout of a search.
import type { Fields, PlanAnswer } from './api';

interface Layout { device: string; engine: string; scheme: string; cache: string; tensor: string; pipeline: string; data: string; replicas: string; sequences: string; tokens: string }

const layoutPattern = /^(?<device>[^/]+)\/(?<engine>[^/]+)\/(?<scheme>[^/]+)\/kv-(?<cache>[^/]+)\/tp(?<tensor>\d+)\/pp(?<pipeline>\d+)\/dp(?<data>\d+)\/x(?<replicas>\d+)\/seqs(?<sequences>\d+)\/tokens(?<tokens>\d+)$/;
const layoutOf = (key: string): Layout | undefined => layoutPattern.exec(key)?.groups as Layout | undefined;

// A pool as the program takes it: "count=2,tp=4".
const poolText = ({ device, replicas, tensor, pipeline, data, sequences, tokens }: Layout, first: Layout): string =>
  [['count', replicas, ''], ['device', device, first.device], ['tp', tensor, '1'], ['pp', pipeline, '1'], ['dp', data, '1'],
    ['max-num-seqs', sequences, '0'], ['max-num-batched-tokens', tokens, '0']].filter(([, value, usual]) => value !== usual).map(([name, value]) => `${name}=${value}`).join(',');

// The run of a point as a command: "h100_sxm/vllm/fp8/kv-fp8/tp2/pp1/dp1/x4/seqs0/tokens0", or two such for separate pools.
// `maxModelLen` is what the engines were set up for where the question does not say.
export function commandOf(key: string, rate: number, question: Fields, maxModelLen?: number): string {
  const [, prefill = key, decode] = /^prefill:(.+)\+decode:(.+)$/.exec(key) ?? [];
  const layout = layoutOf(prefill), second = decode ? layoutOf(decode) : undefined;
  if (!layout || (decode && !second)) return '';
  const flags: [string, string, string][] = [['engine', layout.engine, 'vllm'], ['quantization', layout.scheme, 'config'], ['kv-cache-dtype', layout.cache, ''],
    ...(second ? [['prefill-pool', poolText(layout, layout), ''], ['decode-pool', poolText(second, layout), '']] as [string, string, string][]
      : [['tensor-parallel-size', layout.tensor, '1'], ['pipeline-parallel-size', layout.pipeline, '1'], ['data-parallel-size', layout.data, '1'], ['replicas', layout.replicas, '1'],
        ['max-num-seqs', layout.sequences, '0'], ['max-num-batched-tokens', layout.tokens, '0']] as [string, string, string][])];
  const all: Fields = maxModelLen === undefined ? question : { max_model_len: maxModelLen, ...question };
  // Searches cut prompts in every engine; TensorRT-LLM does so only when it is told to.
  const chunks = layout.engine.startsWith('trtllm') ? ['--enable-chunked-prefill'] : [];
  const load = ['random_input_len', 'random_output_len', 'random_range_ratio', 'max_model_len', 'gpu_memory_utilization'].filter((name) => all[name] !== undefined).map((name) => `--${name.replaceAll('_', '-')} ${String(all[name])}`);
  return ['foretoken serve', `--model ${String(question.model)}`, `--device ${layout.device}`, ...flags.filter(([, value, usual]) => value !== usual).map(([name, value]) => `--${name} ${value}`), ...chunks,
    `--request-rate ${Number(rate.toPrecision(3))} --num-prompts 1000`, ...load].join(' ');
}

// Tokens of the longest sequence that the engines of a search are set up for: all of them alike.
export function plannedModelLen(commands: PlanAnswer['commands']): number | undefined {
  for (const { line } of commands) {
    const tokens = /--(?:max-model-len|context-length|max[_-]seq[_-]len)[ =](\d+)/.exec(line)?.[1];
    if (tokens !== undefined) return Number(tokens);
  }
  return undefined;
}
