// What is served, on what, under which load: the fields of a serving question.
import type { Facts, Fields } from './api';
import { h, showField } from './dom';
import { choiceField, declared, declaredChoices, deviceField, formatChoices, modelField, numberField, put, setFlag, tensorSizes } from './fields';
import { shortName } from './format';
import type { Typed } from './state';

export interface Load { kind: 'rate' | 'concurrency'; value: number }

const usualValues = { tensor: '1', replicas: '1', rate: '8', concurrency: '32', input: '1024', output: '256', spread: '50', requests: '400', available: '8' };
const titles: Record<string, string> = { vllm: 'vLLM', sglang: 'SGLang', trtllm: 'TensorRT-LLM' };
const sequenceGrain = 256;  // tokens; the longest sequence is a multiple of it

export class ServingForm {
  readonly fieldsets: HTMLElement[];
  private readonly model;
  private readonly device;
  private readonly tensor = choiceField('Devices per replica', tensorSizes, usualValues.tensor);
  private readonly replicas;
  private readonly rate = numberField('Requests per second', 8, { min: 0.01, max: 100000, step: 'any', inputmode: 'decimal' });
  private readonly concurrency = numberField('Concurrent requests', 32, { max: 100000 });
  private readonly input;
  private readonly output;
  private readonly spread = numberField('Length spread, %', 50, { min: 0, max: 100 });
  private readonly requests;
  private readonly quantization;
  private readonly cache;
  private readonly engine;
  private readonly batchedTokens;
  private readonly sequences;
  private readonly longest;
  private readonly fraction;
  private readonly prefixes;
  private readonly available = numberField('Devices available', 8, { max: 4096 });
  private readonly other;
  private readonly otherAvailable = numberField('Of these', 8, { max: 4096 });
  private readonly objective;
  private readonly price = numberField('Price per device, USD/h', '', { min: 0.000001, max: 1000000, step: 'any', inputmode: 'decimal', placeholder: 'library price', required: false });
  private readonly budget = numberField('Budget, USD/h', '', { min: 0, max: 1e9, step: 'any', inputmode: 'decimal', placeholder: 'none', required: false });
  private readonly open: HTMLInputElement;
  private readonly closed: HTMLInputElement;
  private finds = false;

  constructor(private readonly facts: Facts, group: string, private readonly usual: { model: string; device: string; quantization?: string }) {
    const of = (name: string) => declared(facts, 'serve', name);
    const optional = { placeholder: 'engine default', required: false };
    this.quantization = choiceField('Weights', formatChoices(facts, 'quantization', ['', 'as published']), usual.quantization ?? '');
    this.cache = choiceField('KV cache', formatChoices(facts, 'kv_cache_dtype', ['auto', 'as the model']), 'auto');
    const engines = [...new Set(facts.devices.flatMap((device) => device.engines))];
    this.engine = choiceField('Engine', [...engines.map((name): [string, string] => [name, titles[name] ?? name]), ['any', 'any engine']], 'vllm');
    this.other = deviceField(facts, '', 'Or another device', true);
    this.other.control.prepend(h('option', { value: '', selected: true }, 'none'));
    this.other.control.addEventListener('change', () => this.choose());
    this.replicas = numberField('Replicas', 1, of('replicas'));
    this.requests = numberField('Requests', 400, declared(facts, 'plan serve', 'num_prompts'));  // a run is drawn and repeated at other rates: fewer than over a day
    this.input = numberField('Prompt tokens', 1024, of('random_input_len'));
    this.output = numberField('Output tokens', 256, of('random_output_len'));
    this.batchedTokens = numberField('Tokens per step', '', { ...of('max_num_batched_tokens'), min: 1, ...optional });
    this.sequences = numberField('Sequences per step', '', { ...of('max_num_seqs'), min: 1, ...optional });
    this.longest = numberField('Longest sequence, tokens', '', { ...of('max_model_len'), min: 1, placeholder: 'what requests need', required: false });
    this.fraction = numberField('Memory share', '', { ...of('gpu_memory_utilization'), step: 'any', inputmode: 'decimal', ...optional });
    this.prefixes = choiceField('Prefix caching', [['', 'engine default'], ['true', 'on'], ['false', 'off']], '');
    this.objective = choiceField('Objective', declaredChoices(facts, 'plan serve', 'objective'), 'auto');
    this.model = modelField(facts, usual.model);
    this.device = deviceField(facts, usual.device, 'Device', true);
    this.open = h('input', { type: 'radio', name: `${group}-load`, value: 'rate', checked: true });
    this.closed = h('input', { type: 'radio', name: `${group}-load`, value: 'concurrency' });
    const loads = h('div', { class: 'choices', role: 'radiogroup', 'aria-label': 'Load is given as' },
      h('label', {}, this.open, 'a rate'), h('label', {}, this.closed, 'concurrent requests'));
    for (const radio of [this.open, this.closed]) radio.addEventListener('change', () => this.choose());
    this.fieldsets = [
      h('fieldset', {}, h('legend', {}, 'Model and hardware'), this.model.element, this.device.element,
        h('div', { class: 'row' }, this.tensor.element, this.replicas.element, this.available.element, this.objective.element, this.other.element, this.otherAvailable.element)),
      h('fieldset', {}, h('legend', {}, 'Traffic'), loads, h('div', { class: 'row' }, this.rate.element, this.concurrency.element, this.requests.element),
        h('div', { class: 'row' }, this.input.element, this.output.element), h('div', { class: 'row' }, this.spread.element)),
      h('details', {}, h('summary', {}, 'More: number formats, engine, prices'),
        h('fieldset', {}, h('div', { class: 'row' }, this.quantization.element, this.cache.element, this.engine.element, this.prefixes.element,
          this.batchedTokens.element, this.sequences.element, this.longest.element, this.fraction.element, this.price.element, this.budget.element))),
    ];
    this.choose();
  }

  // Whether a layout is looked for; else it is given.
  findLayout(finds: boolean): void {
    this.finds = finds;
    if (finds) this.open.checked = true;
    this.choose();
  }

  private choose(): void {
    showField(this.rate, this.open.checked);
    showField(this.concurrency, !this.open.checked);
    this.closed.disabled = this.finds;
    for (const field of [this.available, this.objective, this.other, this.price, this.budget]) showField(field, this.finds);
    showField(this.otherAvailable, this.finds && this.other.control.value !== '');
    const any = [...this.engine.control.options].find((option) => option.value === 'any')!;
    any.hidden = any.disabled = !this.finds;
    if (!this.finds && this.engine.control.value === 'any') this.engine.control.value = 'vllm';
    for (const field of [this.tensor, this.replicas, this.prefixes]) showField(field, !this.finds);
  }

  load(): Load {
    return this.open.checked ? { kind: 'rate', value: Number(this.rate.control.value) } : { kind: 'concurrency', value: Number(this.concurrency.control.value) };
  }

  deviceName(): string { return this.device.control.value; }
  deviceControl(): HTMLSelectElement { return this.device.control; }

  // As if a question of `serve` or `plan serve` had been typed.
  put(of: Typed): void {
    const [[device, count] = [], [other, otherCount] = []] = of('hardware').split(',').map((one) => one.split(':', 2));
    put(this.other.control, other ?? '', '');
    put(this.otherAvailable.control, otherCount ?? '', usualValues.available);
    put(this.model.control, shortName(of('model')), this.usual.model);
    put(this.device.control, of('device') || (device ?? ''), this.usual.device);
    put(this.available.control, count ?? '', usualValues.available);
    put(this.tensor.control, of('tensor_parallel_size'), usualValues.tensor);
    put(this.replicas.control, of('replicas'), usualValues.replicas);
    this.closed.checked = of('max_concurrency') !== '';
    this.open.checked = !this.closed.checked;
    put(this.rate.control, of('request_rate'), usualValues.rate);
    put(this.concurrency.control, of('max_concurrency'), usualValues.concurrency);
    put(this.requests.control, of('num_prompts'), usualValues.requests);
    put(this.input.control, of('random_input_len'), usualValues.input);
    put(this.output.control, of('random_output_len'), usualValues.output);
    put(this.spread.control, of('random_range_ratio') && String(Math.round(100 * Number(of('random_range_ratio')))), '0');
    put(this.quantization.control, of('quantization') || of('quantizations'), '');
    put(this.cache.control, of('kv_cache_dtype'), 'auto');
    put(this.engine.control, of('engine') || of('engines'), of('hardware') === '' ? 'vllm' : 'any');
    put(this.prefixes.control, of('enable_prefix_caching'), '');
    for (const [field, name] of [[this.batchedTokens, 'max_num_batched_tokens'], [this.sequences, 'max_num_seqs'], [this.longest, 'max_model_len'],
      [this.fraction, 'gpu_memory_utilization'], [this.budget, 'budget_usd_hour']] as const) put(field.control, of(name), '');
    put(this.price.control, of('price').split('=')[1] ?? '', '');
    put(this.objective.control, of('objective'), 'auto');
    this.choose();
  }

  // One flag as the program names it ("-tp 4", "--max-model-len 8192"): what it advises.
  // Gives how to take it back, as long as nobody has changed the field since; nothing where there is no such field.
  apply(change: string): (() => void) | undefined {
    const [flag = '', value = ''] = change.trim().split(/\s+/, 2);
    const name = flag.replace(/^-+/, '').replaceAll('-', '_');
    const full = Object.entries(this.facts.fields.serve ?? {}).find(([, field]) => field.names.includes(name))?.[0];
    const controls: Record<string, HTMLInputElement | HTMLSelectElement> = { tensor_parallel_size: this.tensor.control, max_model_len: this.longest.control, quantization: this.quantization.control,
      kv_cache_dtype: this.cache.control, max_num_seqs: this.sequences.control, max_num_batched_tokens: this.batchedTokens.control, gpu_memory_utilization: this.fraction.control };
    const control = full ? controls[full] : undefined;
    if (!control || value === '') return undefined;
    const before = control.value;
    put(control, value, value);
    return () => {
      if (control.value === value) put(control, before, before);
    };
  }

  // Fields of `step --memory`: what an engine set up like this holds.
  memoryFields(): Fields {
    return { phase: 'decode', batch: 1, context_len: 1, memory: true, ...this.withLongest(this.engineFields()) };
  }

  private engineFields(): Fields {
    const flags: Fields = { model: this.model.control.value, device: this.device.control.value };
    setFlag(flags, 'tensor_parallel_size', this.tensor.control, '1');
    setFlag(flags, 'quantization', this.quantization.control);
    setFlag(flags, 'kv_cache_dtype', this.cache.control, 'auto');
    setFlag(flags, 'engine', this.engine.control, 'vllm');
    setFlag(flags, 'max_num_batched_tokens', this.batchedTokens.control);
    setFlag(flags, 'max_num_seqs', this.sequences.control);
    setFlag(flags, 'gpu_memory_utilization', this.fraction.control);
    setFlag(flags, 'max_model_len', this.longest.control);
    return flags;
  }

  // Engines set up for what the model could do would not start on small devices: unless said, for what the requests need.
  private withLongest(flags: Fields): Fields {
    if (flags.max_model_len !== undefined) return flags;
    const model = this.facts.models.find((one) => [one.name, shortName(one.name), ...one.aliases].some((name) => name.toLowerCase() === this.model.control.value.trim().toLowerCase()));
    const tokens = (Number(this.input.control.value) + Number(this.output.control.value)) * (1 + Number(this.spread.control.value) / 100);
    const needed = Math.max(2048, Math.ceil(tokens / sequenceGrain) * sequenceGrain);
    return model && needed < model.max_positions ? { ...flags, max_model_len: needed } : flags;
  }

  // Flags of `serve`; another load than the form's where one is given.
  flags(load: Load = this.load()): Fields {
    return this.withLongest(this.typedFlags(load));
  }

  // The same without what the form works out.
  typedFlags(load: Load = this.load()): Fields {
    const { model, device, ...engine } = this.engineFields();
    const flags: Fields = { model: model!, device: device! };
    if (engine.tensor_parallel_size !== undefined) flags.tensor_parallel_size = engine.tensor_parallel_size;
    setFlag(flags, 'replicas', this.replicas.control, '1');
    this.setTraffic(flags, load);
    if (this.prefixes.control.value !== '') flags.enable_prefix_caching = this.prefixes.control.value === 'true';
    return { ...flags, ...engine };
  }

  // Flags of `plan serve`, without the goals.
  planFlags(): Fields {
    const hardware = [`${this.device.control.value}:${this.available.control.value}`];
    if (this.other.control.value !== '') hardware.push(`${this.other.control.value}:${this.otherAvailable.control.value}`);
    const flags: Fields = { model: this.model.control.value, hardware };
    this.setTraffic(flags, this.load());
    setFlag(flags, 'engines', this.engine.control, 'any');
    setFlag(flags, 'objective', this.objective.control, 'auto');
    setFlag(flags, 'quantizations', this.quantization.control);
    setFlag(flags, 'kv_cache_dtype', this.cache.control, 'auto');
    setFlag(flags, 'max_num_batched_tokens', this.batchedTokens.control);
    setFlag(flags, 'max_num_seqs', this.sequences.control);
    setFlag(flags, 'gpu_memory_utilization', this.fraction.control);
    setFlag(flags, 'max_model_len', this.longest.control);
    setFlag(flags, 'budget_usd_hour', this.budget.control);
    if (this.price.control.value !== '') flags.price = `${this.device.control.value}=${this.price.control.value}`;
    return flags;
  }

  private setTraffic(flags: Fields, load: Load): void {
    flags[load.kind === 'rate' ? 'request_rate' : 'max_concurrency'] = load.value;
    setFlag(flags, 'num_prompts', this.requests.control);
    setFlag(flags, 'random_input_len', this.input.control);
    setFlag(flags, 'random_output_len', this.output.control);
    if (Number(this.spread.control.value) > 0) flags.random_range_ratio = Number(this.spread.control.value) / 100;
  }
}
