// Form fields that several tabs share, and what they say as flags.
import type { Facts, Fields } from './api';
import { h, labelled, type Control } from './dom';
import { shortName, words } from './format';

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

// `serves`: only devices that an engine serves on.
export function deviceField(facts: Facts, usual: string, label = 'Device', serves = false): { element: HTMLElement; control: HTMLSelectElement } {
  const offered = facts.devices.filter((device) => !serves || device.engines.length > 0);
  const vendors = [...new Set(offered.map((device) => device.file.vendor))];
  const control = h('select', {}, ...vendors.map((vendor) => h('optgroup', { label: vendor },
    ...offered.filter((device) => device.file.vendor === vendor).map((device) =>
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

// Formats that a field's help lists, as the program knows them; `first` is the usual choice.
export function formatChoices(facts: Facts, field: string, first: [string, string]): [string, string][] {
  const listed = /: ([a-z0-9_, ]+?)(?:;|,? \.\.\.|$)/.exec(facts.fields.serve![field]!.help)?.[1]?.split(/,\s*/) ?? [];
  return [first, ...listed.filter((name) => name !== first[0] && name !== '').map((name): [string, string] => [name, name])];
}

export const tensorSizes: [string, string][] = ['1', '2', '4', '8', '16'].map((size) => [size, size]);

// What the program declares of a field: help and limits are its own.
export function declared(facts: Facts, command: string, name: string): Record<string, unknown> {
  const field = facts.fields[command]?.[name];
  return { ...(field?.least === undefined ? {} : { min: field.least }), ...(field?.most === undefined ? {} : { max: field.most }), ...(field ? { title: field.help } : {}) };
}

export const declaredChoices = (facts: Facts, command: string, name: string): [string, string][] =>
  (facts.fields[command]?.[name]?.choices ?? []).map((choice) => [choice, words(choice)]);

// Into a control, where something was given; a choice that is not offered is added.
export function put(control: Control, value: string, usual: string): void {
  const text = value === '' ? usual : value;
  if (control instanceof HTMLSelectElement && ![...control.options].some((option) => option.value === text)) control.append(h('option', { value: text }, text));
  control.value = text;
}

// Numbers as numbers; what was left empty or as usual is not said.
export function setFlag(flags: Fields, name: string, control: Control, usual = ''): void {
  if (control.value === '' || control.value === usual) return;
  const isNumber = control.type === 'number' || (control.value.trim() !== '' && !Number.isNaN(Number(control.value)));
  flags[name] = isNumber ? Number(control.value) : control.value;
}
