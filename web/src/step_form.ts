// One step of a model on a device: the fields that Compare and Explore share.
import type { Facts, Fields } from './api';
import { h, showField } from './dom';
import { choiceField, deviceField, formatChoices, modelField, numberField, put, setFlag, tensorSizes } from './fields';
import { shortName } from './format';
import type { Typed } from './state';

export interface StepDefaults { model: string; device: string; quantization?: string; batch?: number }

export class StepForm {
  readonly element: HTMLElement;
  private readonly model;
  private readonly device;
  private readonly tensor = choiceField('Devices', tensorSizes, '1');
  private readonly phase = choiceField('Phase', [['decode', 'decode'], ['prefill', 'prefill']], 'decode');
  private readonly batch;
  private readonly context = numberField('Context tokens', 2048, { min: 0, max: 10000000 });
  private readonly prompt = numberField('Prompt tokens', 1024, { max: 10000000 });
  private readonly quantization;
  private readonly cache;

  constructor(facts: Facts, legend: string, usual: StepDefaults) {
    this.model = modelField(facts, usual.model);
    this.device = deviceField(facts, usual.device);
    this.batch = numberField('Sequences', usual.batch ?? 64, { max: 100000 });
    this.quantization = choiceField('Weights', formatChoices(facts, 'quantization', ['', 'as published']), usual.quantization ?? '');
    this.cache = choiceField('KV cache', formatChoices(facts, 'kv_cache_dtype', ['auto', 'as the model']), 'auto');
    const choose = () => showField(this.prompt, this.phase.control.value !== 'decode');
    this.phase.control.addEventListener('change', choose);
    choose();
    this.element = h('fieldset', {}, h('legend', {}, legend), this.model.element, this.device.element,
      h('div', { class: 'row' }, this.tensor.element, this.phase.element),
      h('div', { class: 'row' }, this.batch.element, this.context.element, this.prompt.element),
      h('div', { class: 'row' }, this.quantization.element, this.cache.element));
  }

  put(of: Typed): void {
    put(this.model.control, shortName(of('model')), 'Llama-3.1-8B');
    put(this.device.control, of('device'), 'h100_sxm');
    for (const [field, name, usual] of [[this.tensor, 'tensor_parallel_size', '1'], [this.phase, 'phase', 'decode'], [this.batch, 'batch', '64'], [this.context, 'context_len', '2048'],
      [this.prompt, 'input_len', '1024'], [this.quantization, 'quantization', ''], [this.cache, 'kv_cache_dtype', 'auto']] as const) put(field.control, of(name), usual);
    showField(this.prompt, this.phase.control.value !== 'decode');
  }

  deviceName(): string { return this.device.control.value; }

  // Flags of `step`, without the device.
  flags(): Fields {
    const flags: Fields = { model: this.model.control.value, phase: this.phase.control.value };
    setFlag(flags, 'tensor_parallel_size', this.tensor.control, '1');
    setFlag(flags, 'batch', this.batch.control);
    setFlag(flags, 'context_len', this.context.control);
    if (this.phase.control.value !== 'decode') setFlag(flags, 'input_len', this.prompt.control);
    setFlag(flags, 'quantization', this.quantization.control);
    setFlag(flags, 'kv_cache_dtype', this.cache.control, 'auto');
    return flags;
  }
}
