// One step of a model on a device: the fields that Compare and Explore share.
import type { Facts, Fields } from './api';
import { h, showField } from './dom';
import { cacheTypes, choiceField, deviceField, modelField, numberField, quantizations, setFlag, tensorSizes } from './fields';

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
  private readonly cache = choiceField('KV cache', cacheTypes, 'auto');

  constructor(facts: Facts, legend: string, usual: StepDefaults) {
    this.model = modelField(facts, usual.model);
    this.device = deviceField(facts, usual.device);
    this.batch = numberField('Sequences', usual.batch ?? 64, { max: 100000 });
    this.quantization = choiceField('Weights', quantizations, usual.quantization ?? '');
    const choose = () => showField(this.prompt, this.phase.control.value !== 'decode');
    this.phase.control.addEventListener('change', choose);
    choose();
    this.element = h('fieldset', {}, h('legend', {}, legend), this.model.element, this.device.element,
      h('div', { class: 'row' }, this.tensor.element, this.phase.element),
      h('div', { class: 'row' }, this.batch.element, this.context.element, this.prompt.element),
      h('div', { class: 'row' }, this.quantization.element, this.cache.element));
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
