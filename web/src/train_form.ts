// A training job: the fields that say what trains on what, and how it is cut.
import type { Facts, Fields, Question } from './api';
import { h } from './dom';
import { choiceField, modelField, numberField, setFlag, tensorSizes } from './fields';
import { words } from './format';

export class TrainForm {
  readonly element: HTMLElement;
  private readonly model;
  private readonly cluster;
  private readonly devices = numberField('Devices', 64, { max: 100000 });
  private readonly tensor = choiceField('Tensor parallel', tensorSizes, '1');
  private readonly pipeline = numberField('Pipeline stages', 1, { max: 1024 });
  private readonly micro = numberField('Micro-batch, sequences', 1, { max: 10000 });
  private readonly batch = numberField('Global batch, sequences', 512, { max: 10000000 });
  private readonly length = numberField('Sequence length, tokens', 4096, { max: 10000000 });
  private readonly precision;
  private readonly sharding = choiceField('Sharded across replicas', [['none', 'nothing'], ['optimizer', 'optimizer states'], ['gradients', 'gradients as well'], ['parameters', 'parameters as well (FSDP)']], 'optimizer');
  private readonly recompute = choiceField('Recomputed', [['none', 'nothing'], ['selective', 'attention cores'], ['full', 'whole layers']], 'none');

  constructor(facts: Facts, usual: { precision: string }) {
    this.model = modelField(facts, 'Llama-3.1-8B');
    this.cluster = choiceField('Cluster', facts.clusters.map((name): [string, string] => [name, words(name)]), 'h100_ib_rail');
    this.precision = choiceField('Precision', ['bf16', 'fp8-delayed', 'fp8-current', 'fp8-block', 'mxfp8', 'nvfp4'].map((name): [string, string] => [name, name]), usual.precision);
    this.element = h('fieldset', {}, h('legend', {}, 'Job'), this.model.element, this.cluster.element,
      h('div', { class: 'row' }, this.devices.element, this.length.element), h('div', { class: 'row' }, this.micro.element, this.batch.element),
      h('div', { class: 'row' }, this.tensor.element, this.pipeline.element), h('div', { class: 'row' }, this.precision.element, this.sharding.element), this.recompute.element);
  }

  question(): Question {
    const flags: Fields = { model: this.model.control.value, cluster: this.cluster.control.value, devices: Number(this.devices.control.value) };
    setFlag(flags, 'seq_length', this.length.control);
    setFlag(flags, 'micro_batch_size', this.micro.control, '1');
    setFlag(flags, 'global_batch_size', this.batch.control);
    setFlag(flags, 'tensor_parallel_size', this.tensor.control, '1');
    setFlag(flags, 'pipeline_parallel_size', this.pipeline.control, '1');
    setFlag(flags, 'precision', this.precision.control, 'bf16');
    setFlag(flags, 'sharding', this.sharding.control, 'none');
    setFlag(flags, 'recompute_granularity', this.recompute.control, 'none');
    return { command: 'train', ...flags };
  }
}
