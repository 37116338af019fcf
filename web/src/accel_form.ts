// Work on an accelerator design that ships.
import type { Facts, Fields, Question } from './api';
import { h, showField } from './dom';
import { choiceField, declared, modelField, numberField, put, setFlag } from './fields';
import { shortName, words } from './format';
import type { Typed } from './state';

type Work = 'gemm' | 'conv' | 'network' | 'model';

export class AccelForm {
  readonly element: HTMLElement;
  private readonly design;
  private readonly about = h('p', { class: 'muted' });
  private readonly work = choiceField('Work', [['network', 'a network'], ['gemm', 'one matrix multiplication'], ['conv', 'one convolution'], ['model', 'one step of a language model']], 'network');
  private readonly network;
  private readonly gemm = [numberField('M', 128), numberField('N', 3072), numberField('K', 768)];
  private readonly conv = [numberField('Input channels', 64), numberField('Output channels', 64), numberField('Height', 56), numberField('Width', 56), numberField('Kernel', 3), numberField('Stride', 1)];
  private readonly model;
  private readonly phase = choiceField('Phase', [['decode', 'decode'], ['prefill', 'prefill']], 'decode');
  private readonly batch;
  private readonly objective;

  constructor(private readonly facts: Facts) {
    this.design = choiceField('Design', facts.designs.map(({ name }): [string, string] => [name, words(name)]), 'tpu_v4');
    this.network = choiceField('Network', facts.networks.map((name): [string, string] => [name, words(name)]), 'resnet50');
    this.model = modelField(facts, 'Llama-3.1-8B');
    this.batch = numberField('Sequences', 1, declared(facts, 'accel', 'batch'));
    this.objective = choiceField('Objective', [['edp', 'energy × delay'], ['energy', 'energy'], ['delay', 'delay'], ['latency', 'latency']], 'edp');
    for (const { control } of [this.design, this.work]) control.addEventListener('change', () => this.choose());
    this.element = h('fieldset', {}, h('legend', {}, 'Accelerator'), this.design.element, this.about, this.work.element, this.network.element,
      h('div', { class: 'row' }, ...[...this.gemm, ...this.conv].map(({ element }) => element)), this.model.element,
      h('div', { class: 'row' }, this.phase.element, this.batch.element), this.objective.element);
    this.choose();
  }

  private choose(): void {
    this.about.textContent = this.facts.designs.find(({ name }) => name === this.design.control.value)?.summary ?? '';
    const work = this.work.control.value as Work;
    showField(this.network, work === 'network');
    for (const field of this.gemm) showField(field, work === 'gemm');
    for (const field of this.conv) showField(field, work === 'conv');
    for (const field of [this.model, this.phase, this.batch]) showField(field, work === 'model');
  }

  put(of: Typed): void {
    put(this.design.control, of('arch'), 'tpu_v4');
    const given = (['gemm', 'conv', 'network', 'model'] as const).find((name) => of(name) !== '') ?? 'network';
    put(this.work.control, given, given);
    put(this.network.control, of('network'), 'resnet50');
    put(this.model.control, shortName(of('model')), 'Llama-3.1-8B');
    for (const [fields, name] of [[this.gemm, 'gemm'], [this.conv, 'conv']] as const) {
      of(name).split('x').forEach((size, i) => size !== '' && fields[i] && put(fields[i].control, size, '1'));
    }
    put(this.phase.control, of('phase'), 'decode');
    put(this.batch.control, of('batch'), '1');
    put(this.objective.control, of('objective'), 'edp');
    this.choose();
  }

  question(): Question {
    const flags: Fields = { arch: this.design.control.value };
    const sizes = (fields: { control: HTMLInputElement }[]) => fields.map(({ control }) => control.value).join('x');
    const work = this.work.control.value as Work;
    if (work === 'network') flags.network = this.network.control.value;
    if (work === 'gemm') flags.gemm = sizes(this.gemm);
    if (work === 'conv') flags.conv = sizes(this.conv);
    if (work === 'model') {
      flags.model = this.model.control.value;
      setFlag(flags, 'phase', this.phase.control, 'decode');
      setFlag(flags, 'batch', this.batch.control, '1');
    }
    setFlag(flags, 'objective', this.objective.control, 'edp');
    return { command: 'accel', ...flags };
  }
}
