// A network of the visitor's own on a CPU or GPU: the file is read here and sent without its weights.
import { AnswerError, type Facts, type Fields, type Question, type RunRequest } from './api';
import { h, labelled, showField } from './dom';
import { choiceField, modelField, numberField, put, setFlag } from './fields';
import { shortName, words } from './format';
import type { Typed } from './state';
import { upload } from './upload';

const usualDevice = 'neoverse_v1_ort';

export class EdgeForm {
  readonly element: HTMLElement;
  private readonly source = choiceField('Network', [['onnx', 'my ONNX file'], ['model', 'a language model']], 'onnx');
  private readonly file = h('input', { type: 'file', accept: '.onnx,.json', required: true });
  private readonly fileField = { element: labelled('ONNX file', this.file), control: this.file };
  private readonly bind = h('input', { placeholder: 'batch=1, sequence=128', autocomplete: 'off', spellcheck: 'false' });
  private readonly bindField = { element: labelled('Sizes of symbolic dimensions', this.bind), control: this.bind };
  private readonly model;
  private readonly quantization = choiceField('Weights', [['', 'as published'], ['int8', 'int8'], ['int4_wo', 'int4']], 'int4_wo');
  private readonly context = numberField('Context tokens', 512, { min: 0, max: 1_048_576 });
  private readonly device;

  constructor(private readonly facts: Facts) {
    this.model = modelField(facts, 'Qwen3-0.6B');
    const cpus = facts.edge_devices.map((name): [string, string] => [name, `${words(name)} (measured CPU)`]);
    this.device = choiceField('Device', [...cpus, ...facts.devices.filter(({ file }) => file.kind === 'gpu').map(({ file }): [string, string] => [file.name, file.title])], usualDevice);
    this.fileField.element.append(h('small', { class: 'muted' }, 'Weights stay in your browser: only shapes and operators are sent.'));
    this.source.control.addEventListener('change', () => this.choose());
    this.element = h('fieldset', {}, h('legend', {}, 'Network'), this.source.element, this.fileField.element, this.bindField.element, this.model.element,
      h('div', { class: 'row' }, this.quantization.element, this.context.element), this.device.element);
    this.choose();
  }

  private isFile(): boolean { return this.source.control.value === 'onnx'; }

  private choose(): void {
    for (const field of [this.fileField, this.bindField]) showField(field, this.isFile());
    for (const field of [this.model, this.quantization, this.context]) showField(field, !this.isFile());
  }

  // Why it cannot be asked yet.
  missing(): string { return this.isFile() && !this.file.files?.length ? 'Choose the ONNX file again: links hold no files.' : ''; }

  put(of: Typed): void {
    put(this.source.control, of('model') === '' ? 'onnx' : 'model', 'onnx');
    put(this.device.control, of('device'), usualDevice);
    this.bind.value = of('bind');
    put(this.model.control, shortName(of('model')), 'Qwen3-0.6B');
    put(this.quantization.control, of('quantization'), '');
    put(this.context.control, of('context_len'), '512');
    this.choose();
  }

  question(): Question {
    const flags: Fields = { device: this.device.control.value };
    if (this.isFile()) {
      const bound = this.bind.value.split(/[\s,;]+/).filter((text) => text !== '');
      if (bound.length > 0) flags.bind = bound;
    } else {
      flags.model = this.model.control.value;
      setFlag(flags, 'quantization', this.quantization.control);
      setFlag(flags, 'context_len', this.context.control);
    }
    return { command: 'edge', ...flags };
  }

  async request(): Promise<RunRequest> {
    if (!this.isFile()) return this.question();
    const { name } = this.file.files![0]!;
    if (!/\.(onnx|graph\.json)$/.test(name)) throw new AnswerError(`${name} is no network: choose a file whose name ends in .onnx or .graph.json.`);
    return { ...this.question(), onnx: await upload([...this.file.files!], this.facts.most_upload_bytes) };
  }
}
