// One kernel on one device: its parameters are those that the program declares of the family.
import type { Facts, Fields, KernelParameter, Question } from './api';
import { fill, h, type Control } from './dom';
import { choiceField, deviceField, numberField, put } from './fields';
import { words } from './format';
import type { Typed } from './state';

const usualFamily = 'gemm';
const acronyms: Record<string, string> = { gemm: 'GEMM', mla: 'MLA', moe: 'MoE', kv: 'KV', fp8: 'FP8', gdn: 'GDN', kda: 'KDA', mamba2: 'Mamba-2', linattn: 'linear attention,', spmm: 'SpMM', sddmm: 'SDDMM', mhc: 'mHC', bmm: 'BMM' };
export const kernelTitle = (name: string): string => {
  const text = name.split('_').map((word) => acronyms[word] ?? word).join(' ');
  return `${text[0]!.toUpperCase()}${text.slice(1)}`;
};

interface ParameterField { parameter: KernelParameter; element: HTMLElement; control: Control }

function parameterField(parameter: KernelParameter): ParameterField {
  const usual = parameter.usual ?? parameter.example;
  const field = parameter.choices
    ? choiceField(words(parameter.name), parameter.choices.map((choice): [string, string] => [choice, choice]), usual)
    : numberField(words(parameter.name), Number(usual), { min: parameter.least, max: parameter.most, step: parameter.whole ? 1 : 'any' });
  field.control.title = parameter.help;
  field.element.append(h('small', { class: 'muted' }, parameter.help));
  return { parameter, ...field };
}

export class KernelForm {
  readonly element: HTMLElement;
  private readonly family;
  private readonly device;
  private readonly about = h('p', { class: 'muted' });
  private readonly rest = h('div', { class: 'row parameters' });
  private fields: ParameterField[] = [];

  constructor(private readonly facts: Facts) {
    this.family = choiceField('Kernel', facts.kernels.map(({ name }): [string, string] => [name, kernelTitle(name)]), usualFamily);
    this.device = deviceField(facts, 'h100_sxm');
    this.family.control.addEventListener('change', () => this.choose());
    this.element = h('fieldset', {}, h('legend', {}, 'Kernel'), this.family.element, this.about, this.device.element, this.rest);
    this.choose();
  }

  private choose(): void {
    const family = this.facts.kernels.find(({ name }) => name === this.family.control.value)!;
    this.about.textContent = `${family.summary[0]!.toUpperCase()}${family.summary.slice(1)}.`;
    // A single choice asks nothing.
    this.fields = family.parameters.filter(({ choices }) => !choices || choices.length > 1).map(parameterField);
    fill(this.rest, ...this.fields.map(({ element }) => element));
  }

  put(of: Typed): void {
    put(this.family.control, of('command').replace(/^kernel /, ''), usualFamily);
    this.choose();
    put(this.device.control, of('device'), 'h100_sxm');
    for (const { parameter, control } of this.fields) put(control, of(parameter.name), parameter.usual ?? parameter.example);
  }

  question(): Question {
    const flags: Fields = { device: this.device.control.value };
    for (const { parameter, control } of this.fields) if (control.value !== parameter.usual) flags[parameter.name] = control.value;
    return { command: `kernel ${this.family.control.value}`, ...flags };
  }

  // The size that a sweep changes, and the same question at other values of it; none where the kernel has no such size.
  sweep(): { name: string; questions: { x: number; question: Question }[] } | undefined {
    const field = this.fields.find(({ parameter }) => parameter.whole && parameter.usual === undefined);
    if (!field) return undefined;
    const { name, least = 1, most = 1e9 } = field.parameter;
    const middle = Number(field.control.value);
    const values = [-4, -3, -2, -1, 0, 1, 2, 3, 4].map((power) => Math.round(middle * 2 ** power)).filter((x) => x >= least && x <= most);
    return { name, questions: [...new Set(values)].map((x) => ({ x, question: { ...this.question(), [name]: String(x) } })) };
  }
}
