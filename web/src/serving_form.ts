// What is served, on what, under which load: the fields of a serving question.
import type { Facts, Fields } from './api';
import { h, showField } from './dom';
import { cacheTypes, choiceField, deviceField, engines, modelField, numberField, quantizations, setFlag, tensorSizes } from './fields';

export interface Load { kind: 'rate' | 'concurrency'; value: number }

export class ServingForm {
  readonly fieldsets: HTMLElement[];
  private readonly model;
  private readonly device;
  private readonly tensor = choiceField('Devices per replica', tensorSizes, '1');
  private readonly replicas = numberField('Replicas', 1, { max: 256 });
  private readonly rate = numberField('Requests per second', 8, { min: 0.01, max: 100000, step: 'any', inputmode: 'decimal' });
  private readonly concurrency = numberField('Concurrent requests', 32, { max: 100000 });
  private readonly input = numberField('Prompt tokens', 1024, { max: 1000000 });
  private readonly output = numberField('Output tokens', 256, { max: 1000000 });
  private readonly spread = numberField('Length spread, %', 50, { min: 0, max: 100 });
  private readonly requests = numberField('Requests', 400, { max: 20000 });
  private readonly quantization;
  private readonly cache = choiceField('KV cache', cacheTypes, 'auto');
  private readonly engine = choiceField('Engine', engines, 'vllm');
  private readonly batchedTokens = numberField('Tokens per step', '', { max: 1000000, placeholder: 'engine default', required: false });
  private readonly longest = numberField('Longest sequence, tokens', '', { max: 10000000, placeholder: 'model maximum', required: false });
  private readonly available = numberField('Devices available', 8, { max: 4096 });
  private readonly open: HTMLInputElement;
  private readonly closed: HTMLInputElement;
  private finds = false;

  constructor(facts: Facts, group: string, usual: { model: string; device: string; quantization?: string }) {
    this.quantization = choiceField('Weights', quantizations, usual.quantization ?? '');
    this.model = modelField(facts, usual.model);
    this.device = deviceField(facts, usual.device);
    this.open = h('input', { type: 'radio', name: `${group}-load`, value: 'rate', checked: true });
    this.closed = h('input', { type: 'radio', name: `${group}-load`, value: 'concurrency' });
    const loads = h('div', { class: 'choices', role: 'radiogroup', 'aria-label': 'Load is given as' },
      h('label', {}, this.open, 'a rate'), h('label', {}, this.closed, 'concurrent requests'));
    for (const radio of [this.open, this.closed]) radio.addEventListener('change', () => this.choose());
    this.choose();
    this.fieldsets = [
      h('fieldset', {}, h('legend', {}, 'Model and hardware'), this.model.element, this.device.element,
        h('div', { class: 'row' }, this.tensor.element, this.replicas.element, this.available.element)),
      h('fieldset', {}, h('legend', {}, 'Traffic'), loads, h('div', { class: 'row' }, this.rate.element, this.concurrency.element, this.requests.element),
        h('div', { class: 'row' }, this.input.element, this.output.element), h('div', { class: 'row' }, this.spread.element)),
      h('details', {}, h('summary', {}, 'More: number formats, engine'),
        h('fieldset', {}, h('div', { class: 'row' }, this.quantization.element, this.cache.element),
          h('div', { class: 'row' }, this.engine.element, this.batchedTokens.element),
          h('div', { class: 'row' }, this.longest.element))),
    ];
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
    showField(this.available, this.finds);
    for (const field of [this.tensor, this.replicas, this.quantization, this.cache, this.batchedTokens]) showField(field, !this.finds);
  }

  load(): Load {
    return this.open.checked ? { kind: 'rate', value: Number(this.rate.control.value) } : { kind: 'concurrency', value: Number(this.concurrency.control.value) };
  }

  // Flags of `serve`; another load than the form's where one is given.
  flags(load: Load = this.load()): Fields {
    const flags: Fields = { model: this.model.control.value, device: this.device.control.value };
    setFlag(flags, 'tensor_parallel_size', this.tensor.control, '1');
    setFlag(flags, 'replicas', this.replicas.control, '1');
    this.setTraffic(flags, load);
    setFlag(flags, 'quantization', this.quantization.control);
    setFlag(flags, 'kv_cache_dtype', this.cache.control, 'auto');
    setFlag(flags, 'engine', this.engine.control, 'vllm');
    setFlag(flags, 'max_num_batched_tokens', this.batchedTokens.control);
    setFlag(flags, 'max_model_len', this.longest.control);
    return flags;
  }

  // Flags of `plan serve`, without the goals.
  planFlags(): Fields {
    const flags: Fields = { model: this.model.control.value, hardware: `${this.device.control.value}:${this.available.control.value}` };
    this.setTraffic(flags, this.load());
    flags.engines = this.engine.control.value;
    setFlag(flags, 'max_model_len', this.longest.control);
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
