// A measured run of the visitor's server: compared with its prediction, or learned from.
import type { Facts, Fields, Question, RunRequest } from './api';
import { h, labelled } from './dom';
import { choiceField, declared, deviceField, formatChoices, modelField, numberField, put, setFlag, tensorSizes } from './fields';
import { shortName } from './format';
import type { Typed } from './state';
import { upload } from './upload';

export class RunForm {
  readonly element: HTMLElement;
  private readonly files = h('input', { type: 'file', multiple: true, required: true, accept: '.json,.csv,.jsonl,.txt,.log,.yaml' });
  private readonly task = choiceField('What to do', [['replay-run', 'compare with the prediction'], ['calibrate', 'learn from it (calibrate)']], 'replay-run');
  private readonly model;
  private readonly device;
  private readonly tensor = choiceField('Devices per replica', tensorSizes, '1');
  private readonly quantization;
  private readonly longest;

  constructor(private readonly facts: Facts) {
    this.model = modelField(facts, 'Llama-3.1-8B');
    this.device = deviceField(facts, 'h100_sxm', 'Device', true);
    this.quantization = choiceField('Weights', formatChoices(facts, 'quantization', ['', 'as published']), '');
    this.longest = numberField('Longest sequence, tokens', '', { ...declared(facts, 'replay-run', 'max_model_len'), min: 1, placeholder: 'as the run says', required: false });
    const field = labelled('Files of the run', this.files);
    field.append(h('small', { class: 'muted' }, 'run.json and requests.csv from “foretoken observe”, or the result of vllm bench, SGLang, GuideLLM, genai-perf or a server log.'));
    this.element = h('fieldset', {}, h('legend', {}, 'A run of my server'), field, this.task.element, this.model.element, this.device.element,
      h('div', { class: 'row' }, this.tensor.element, this.quantization.element), this.longest.element);
  }

  missing(): string { return this.files.files?.length ? '' : 'Choose the files of the run again: links hold no files.'; }
  learns(): boolean { return this.task.control.value === 'calibrate'; }

  put(of: Typed): void {
    put(this.task.control, of('command'), 'replay-run');
    put(this.model.control, shortName(of('model')), 'Llama-3.1-8B');
    put(this.device.control, of('device'), 'h100_sxm');
    put(this.tensor.control, of('tensor_parallel_size'), '1');
    put(this.quantization.control, of('quantization'), '');
    put(this.longest.control, of('max_model_len'), '');
  }

  question(): Question {
    const flags: Fields = { model: this.model.control.value, device: this.device.control.value };
    setFlag(flags, 'tensor_parallel_size', this.tensor.control, '1');
    setFlag(flags, 'quantization', this.quantization.control);
    setFlag(flags, 'max_model_len', this.longest.control);
    return { command: this.task.control.value, ...flags };
  }

  async request(): Promise<RunRequest> {
    return { ...this.question(), [this.learns() ? 'runs' : 'run']: await upload([...this.files.files!], this.facts.most_upload_bytes) };
  }
}
