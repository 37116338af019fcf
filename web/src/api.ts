// The server: the library of facts, and commands run with progress.

export interface Fact { value: number; source: string; assumed?: boolean; note?: string }
// Facts that are words: the type of memory, or whether a device can do something.
export interface WordFact { value: string | boolean; source: string; assumed?: boolean; note?: string }

// A device file as it ships (data/hardware/README.md); numbers are facts.
export interface DeviceFile {
  name: string; title: string; vendor: string; kind: string; architecture: string; note?: string; aliases?: string[];
  dense_peak_tflops?: Record<string, Fact>;
  [key: string]: unknown;
}

export interface DeviceEntry {
  file: DeviceFile;
  units: Record<string, string>;
  engines: string[];  // that serve on it
  rent_usd_per_hour?: { value: number; source: string };
}

export interface ModelEntry {
  name: string; family: string; parameters: number; active_parameters: number; weight_bytes: number; kv_bytes_per_token: number;
  hidden: number; vocabulary: number; max_positions: number; dtype: string; scheme: string;
  layers: { count: number; layer: string }[]; aliases: string[]; notes: string[];
  source: string; checked: string; published_parameters: number | null;
}

export interface Scenario {
  id: string; name: string; model: string; hardware: string; strategy: string; metric: string; unit: string;
  status?: string; measured?: { value: number; source: string };
  checks?: { name: string; unit: string; measured: number; source: string }[];
  validation?: { status: string; against: string };
}

// What one command of validation says about measurements of one source (data/accuracy/README.md).
export interface AccuracySet {
  layer: string; quantity: string; unit: string; source: string; command: string;
  groups: {
    group: string; count: number; mape: number; median: number; within_interval?: number; seen: string;
    points: [measured: number, predicted: number][];
    worst: { row: string; measured: number; predicted: number }[];
  }[];
}

// What the program declares of a field: its other names, its limits, its choices.
export interface FieldFacts { names: string[]; help: string; least?: number; most?: number; usual?: string | number | boolean; choices?: string[] }

// A parameter of a kernel family, as the program declares it.
export interface KernelParameter { name: string; help: string; example: string; usual?: string; choices?: string[]; least?: number; most?: number; whole?: boolean }

export interface Facts {
  fields: Record<string, Record<string, FieldFacts>>;  // by command
  examples: { title: string; question: Question }[];
  drawn: Fields & { metric_percentiles: number[] };  // what questions of `serve` ask for besides
  devices: DeviceEntry[];
  clusters: string[];
  kernels: { name: string; summary: string; parameters: KernelParameter[] }[];
  designs: { name: string; multipliers: number; summary: string }[];
  networks: string[];
  edge_devices: string[];
  most_upload_bytes: number;
  models: ModelEntry[];
  stacks: { name: string; summary: string }[];
  scenarios: Scenario[];
  accuracy: { note: string; sets: AccuracySet[] };
}

export interface Estimate { value: number; low: number; high: number; confidence?: string }

export interface Operator {
  name: string; part: string; family: string; count: number; seconds: Estimate; bound: string; tier: string;
  multiplies_in?: string | null;  // the number format that the device multiplies in
  // Operators of the network compute nothing.
  work?: { flops: number; math: string; weight_bytes: number; activation_bytes: number; written_bytes: number };
}

// What a reader must know of the devices before relying on the answer.
export interface DeviceNotes { sheet_only_devices?: string[]; device_notes?: string[] }

export interface StepAnswer extends DeviceNotes {
  model: string; device: string; devices: number; phase: string; batch: number;
  seconds: Estimate; tokens_per_second: number; mfu: number; device_memory_bytes: number | null; fits_in_memory: boolean | null;
  gap: { kernels_seconds: number; communication_seconds: number; launch_gap_seconds: number; host_stall_seconds: number; verdict: string };
  stages: { seconds: Estimate; memory_bytes: Record<string, number>; operators: Operator[] }[];
  serving_memory?: ServingMemory;
}

export interface ServingMemory {
  bytes: Record<string, Estimate>;
  tokens: Estimate; sequences: Estimate; starts: boolean; short_by_bytes: number;
  remedies: { change: string; sequences: number; max_model_len: number }[];
}

export interface TimePoint {
  begin_s: number; running: number; waiting: number; kv_blocks_used: number; prefill_tokens_per_s: number; decode_tokens_per_s: number;
}

export interface ServeAnswer extends DeviceNotes {
  model_id: string; device: string; devices: number; replicas: number; label: string;
  request_rate: number | null; max_concurrency: number | null; num_prompts: number; completed: number; failed: number; duration: number;
  request_throughput: number; request_goodput?: number; output_throughput: number; total_token_throughput: number;
  failures: Record<string, number>;  // by reason
  preemptions: number; peak_kv_use: number; kv_blocks: number; mean_queue_ms: number;
  intervals: Record<string, Estimate>;
  time_series: { interval_s: number; points: TimePoint[] };
  breakdown?: { operators: { operator: string; seconds: number }[]; step_kinds: { kind: string; steps: number; seconds: number }[] };
  serving_memory?: ServingMemory;
  trace?: unknown;
  [latency: string]: unknown;
}

export interface PlanRun {
  rate: number; output_tokens_per_s: number; tokens_per_s_per_device: number; tokens_per_s_per_user: number; attained: number;
  usd_per_million_output_tokens: number | null; joules_per_output_token: Estimate | null;
}

export type BestIn = 'work' | 'cost' | 'energy';

export interface PlanPoint {
  key: string; layout: string; device: string; engine: string; devices: number; usd_per_hour: number | null; effort: string;
  capacity_requests_per_s: Estimate; run: PlanRun | null;
}

export interface PlanAnswer extends DeviceNotes {
  sentence: string; layouts: number; winner: PlanPoint | null; ranking: PlanPoint[]; frontier: (PlanRun & { key: string; best_in: BestIn[] })[];
  points: PlanPoint[]; slos: string[];
  by_device_and_engine: { device: string; engine: string; serves: boolean; place: number | null; tied_with_best: boolean; answer: PlanPoint | null; reason: string | null }[];
  commands: { count: number; role: string; line: string; note: string }[];
  reachable: { alone: { slo: string; least_ms: number }[]; most_requests_per_s: number | null; devices_for_rate: number | null } | null;
}

export interface TrainingPlan {
  tensor: number; pipeline: number; data: number; expert: number; context: number; virtual_stages: number; schedule: string;
  micro_batch: number; global_batch: number; micro_batches: number; sharding: string; recompute: string; devices: number;
}

export interface TrainAnswer extends DeviceNotes {
  model: string; cluster: string; device: string; precision: string; sequence_length: number; lora_rank: number; plan: TrainingPlan; fits: boolean;
  seconds: Estimate; tokens_per_second: number; tokens_per_second_per_device: number; flops: { mfu: number; peak_dtype: string };
  parts_seconds: Record<string, number>; interval_basis?: { beyond_runs: string[] };
  step_times: { p05: number; p50: number; p95: number; p99: number };
  memory: { fullest_stage: number; capacity_bytes: number; fits: boolean; verdict: string; advice: string[]; stages: Record<string, number>[] };
  run?: { steps: number; days: Estimate; device_hours: Estimate; goodput: number; usd: Estimate | null; megawatt_hours: Estimate | null };
  notes: string[];
}

export interface TrainPlanPoint { plan: TrainingPlan; seconds: Estimate; tokens_per_second_per_device: number; mfu: number; memory_bytes: number }

export interface TrainPlanAnswer extends DeviceNotes {
  model: string; device: string; looked_at: number; too_large: number; best: TrainPlanPoint[]; frontier: TrainPlanPoint[];
  megatron_flags?: string; fastest: TrainAnswer | null;
}

export interface CollectiveAnswer {
  op: string; machine: string; ranks: number;
  rows: { bytes: number; seconds: Estimate; algorithm_bandwidth_bytes_per_second: number; bus_bandwidth_bytes_per_second: number;
    algorithm: string; protocol: string; why: string; basis: string }[];
}

export interface KernelAnswer {
  family: string; device: string; parameters: Record<string, string>;
  estimate: { seconds: Estimate; tier: string; inside_envelope: boolean; work: NonNullable<Operator['work']>; compute_seconds: number; memory_seconds: number; bound: string };
  roofline_seconds: number; efficiency: number; mfu: number | null; mbu: number | null; multiplies_in: string | null; kernel: string;
  explanation: { kind: 'fact' | 'part' | 'limit'; name: string; value: number; unit: string; reading: string }[];
  interval_origin?: { basis: string; reading: string; mape?: number };
  envelope: { name: string; value: number; least: number; most: number; inside: boolean }[];
  notes: string[];
  power?: { burst?: { watts: Estimate; joules: Estimate; seconds: Estimate; power_limited: boolean } };
}

export interface FleetAnswer extends ServeAnswer {
  fleet: { autoscaler: string; gpu_hours: number; cold_start_s: number; starts: number; stops: number;
    replicas_serving: { mean: number; least: number; most: number }; replicas_paid_for: { mean: number; least: number; most: number };
    sizes: { from_s: number; serving: number; paid_for: number }[] };
}

export interface MappedLayer {
  problem: string; count?: number; operations: number; cycles: number; seconds: number; utilization: number; energy_pj: number; compute_pj: number; limited_by: string; area_um2: number;
  levels: { name: string; access_pj?: number; leakage_pj: number; network_pj: number }[];
}
export interface AccelAnswer extends Partial<MappedLayer> {
  architecture: string; notes?: string[];
  search?: { tried: number; gap: number; exhausted: boolean; out_of_time: boolean };
  total?: { operations: number; cycles: number; seconds: number; energy_pj: number };
  layers?: MappedLayer[];
}

export interface EdgeAnswer extends DeviceNotes {
  model: string; device: string; runtime?: string; phase?: string; seconds: Estimate; weight_bytes: number; activation_bytes?: number; tokens_per_second?: number;
  kinds?: { kind: string; calls: number; seconds: number; least_seconds: number }[];
  advice?: { share: number; text: string }[];
  batches?: { times: number; seconds: Estimate }[];
  steps: { operators?: string; operator?: string; node?: string; kernel?: string; family?: string; calls: number; seconds: number | Estimate }[];
  notes?: string[];
}

interface RunWindow { name: string; requests: number; ttft_ms: number; predicted_ttft_ms: number; tpot_ms: number; predicted_tpot_ms: number; e2e_ms: number; predicted_e2e_ms: number }
export interface ReplayAnswer {
  run: string; model: string; device: string; agrees: boolean;
  numbers: { metric: string; statistic: string; measured_ms: number; predicted_ms: number; low_ms: number; high_ms: number }[];
  over_time: RunWindow[]; by_batch: RunWindow[]; by_context: RunWindow[];
  explanations: { kind: string; fact: string; explains: number }[];
}

interface Constant { factor: number; log: number; sd: number; prior_sd: number }
export interface CalibrationAnswer {
  engine: string; device: string;
  engines: { model: string; posterior: { constants: Record<string, Constant> } }[];
  runs: { run: string; metric: string; measured: number; before: number; after: number; left_out: number | null }[];
  constants_fitted: string[]; cannot_tell: string[];
  next_loads: { max_concurrency?: number; random_input_len: number; random_output_len: number; num_prompts: number; narrows: string }[];
}

export interface ComparedNumber {
  name: string; unit: string; first: number; second: number;
  first_interval?: { low: number; high: number }; second_interval?: { low: number; high: number };
}
export interface ComparedText { name: string; first: string; second: string }

export interface CompareAnswer extends DeviceNotes {
  failures?: { first: string | null; second: string | null };
  sentence: string; settings: ComparedText[]; outcomes: ComparedText[]; headlines: ComparedNumber[];
  parts_of: string; parts: ComparedNumber[]; parts_difference_seconds: number;
}

export type FlagValue = string | number | boolean | (string | number)[];

export type Fields = Record<string, FlagValue>;

// As `foretoken COMMAND --print-spec` writes it.
export type Question = { command: string } & Fields;

// Files that go with a question: their content, never their place.
export interface Upload { files: { name: string; content: string }[] }

export type RunRequest = Question | ({ command: string } & Record<string, FlagValue | Upload>) | { command: string; device: DeviceFile } | { command: 'compare'; first: Question; second: Question };

export interface RunResult<Answer> { command_line: string; answer: Answer; text: string }

export class AnswerError extends Error {}

export async function loadFacts(): Promise<Facts> {
  const response = await reach(() => fetch('/api/library'));
  if (!response.ok) throw new AnswerError(`the library could not be read (status ${response.status})`);
  return await response.json() as Facts;
}

// Browsers have words of their own for a server that does not answer.
async function reach<Result>(ask: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
  try {
    return await ask();
  } catch (error) {
    if (signal?.aborted || !(error instanceof TypeError)) throw error;
    throw new AnswerError('The server does not answer. Start “foretoken ui” again and reload this page.');
  }
}

interface ServerEvent { kind: string; data: string }

// Events of a stream, from the bytes as they come.
async function* serverEvents(body: ReadableStream<Uint8Array>, signal?: AbortSignal): AsyncGenerator<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let pending = '';
  while (true) {
    const { done, value } = await reach(() => reader.read(), signal);
    if (done) return;
    pending += decoder.decode(value, { stream: true });
    for (let end = pending.indexOf('\n\n'); end >= 0; end = pending.indexOf('\n\n')) {
      const lines = pending.slice(0, end).split('\n');
      pending = pending.slice(end + 2);
      const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? '';
      yield { kind: field('event'), data: field('data') };
    }
  }
}

// Runs a command; leaving (the signal) ends it on the server too.
export async function run<Answer>(
  request: RunRequest, signal?: AbortSignal, onProgress: (text: string) => void = () => {}): Promise<RunResult<Answer>> {
  const response = await reach(() => fetch('/api/run', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream' },
    body: JSON.stringify(request),
    signal,
  }), signal);
  if (!response.ok || !response.body) throw new AnswerError((await response.json()).error.message);
  for await (const event of serverEvents(response.body, signal)) {
    const data = JSON.parse(event.data);
    if (event.kind === 'progress') onProgress(data.text);
    if (event.kind === 'error') throw new AnswerError(data.error.message);
    if (event.kind === 'answer') return data as RunResult<Answer>;
  }
  throw new AnswerError('The server stopped before it had answered. Start “foretoken ui” again and reload this page.');
}
