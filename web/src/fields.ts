// Form fields that several tabs share, and what they say as flags.
import type { Facts, Fields } from './api';
import { h, labelled, type Control } from './dom';
import { shortName } from './format';

export function modelField(facts: Facts, usual: string, label = 'Model'): { element: HTMLElement; control: HTMLInputElement } {
  if (!document.getElementById('models')) {
    document.body.append(h('datalist', { id: 'models' }, ...facts.models.map((model) => h('option', { value: shortName(model.name) }))));
  }
  const control = h('input', { list: 'models', value: usual, required: true, autocomplete: 'off', spellcheck: 'false' });
  // The server takes names as the command line does: in any case, and aliases.
  const known = new Set(facts.models.flatMap((model) => [model.name, ...model.aliases]).flatMap((name) => [name, shortName(name)]).map((name) => name.toLowerCase()));
  control.addEventListener('input', () => control.setCustomValidity(known.has(control.value.trim().toLowerCase()) ? '' : 'Not a known model. Begin to type a name and choose from the list.'));
  return { element: labelled(label, control), control };
}

export function deviceField(facts: Facts, usual: string, label = 'Device'): { element: HTMLElement; control: HTMLSelectElement } {
  const vendors = [...new Set(facts.devices.map((device) => device.file.vendor))];
  const control = h('select', {}, ...vendors.map((vendor) => h('optgroup', { label: vendor },
    ...facts.devices.filter((device) => device.file.vendor === vendor).map((device) =>
      h('option', { value: device.file.name, selected: device.file.name === usual }, device.file.title)))));
  return { element: labelled(label, control), control };
}

// A whole number of at least one unless `rest` says otherwise.
export function numberField(label: string, value: number | '', rest: Record<string, unknown> = {}): { element: HTMLElement; control: HTMLInputElement } {
  const control = h('input', { type: 'number', min: 1, step: 1, required: true, inputmode: 'numeric', value: String(value), ...rest });
  return { element: labelled(label, control), control };
}

export function choiceField(label: string, choices: [value: string, text: string][], usual: string): { element: HTMLElement; control: HTMLSelectElement } {
  const control = h('select', {}, ...choices.map(([value, text]) => h('option', { value, selected: value === usual }, text)));
  return { element: labelled(label, control), control };
}

export const quantizations: [string, string][] = [['', 'as published'], ['bf16', 'bf16'], ['fp8', 'fp8'], ['fp8_block', 'fp8, blocks'], ['int8', 'int8'], ['int4_wo', 'int4 weights'], ['nvfp4', 'nvfp4']];
export const cacheTypes: [string, string][] = [['auto', 'as the model'], ['bf16', 'bf16'], ['fp8', 'fp8'], ['int8', 'int8']];
export const engines: [string, string][] = [['vllm', 'vLLM'], ['sglang', 'SGLang'], ['trtllm', 'TensorRT-LLM']];
export const tensorSizes: [string, string][] = ['1', '2', '4', '8', '16'].map((size) => [size, size]);

// Numbers as numbers; what was left empty or as usual is not said.
export function setFlag(flags: Fields, name: string, control: Control, usual = ''): void {
  if (control.value === '' || control.value === usual) return;
  const isNumber = control.type === 'number' || (control.value.trim() !== '' && !Number.isNaN(Number(control.value)));
  flags[name] = isNumber ? Number(control.value) : control.value;
}
