// A training job: the fields that say what trains on what, and how it is cut.
import type { Facts, Fields, Question } from './api';
import { h, showField } from './dom';
import { choiceField, declared, declaredChoices, deviceField, modelField, numberField, put, setFlag, tensorSizes } from './fields';
import { shortName, words } from './format';
import type { Typed } from './state';

const usualCluster = 'h100_ib_rail', usualModel = 'Llama-3.1-8B';

export class TrainForm {
  readonly element: HTMLElement;
  private readonly model;
  private readonly machine = choiceField('Machine', [['cluster', 'a cluster'], ['device', 'devices in their usual box']], 'cluster');
  private readonly cluster;
  private readonly device;
  private readonly devices;
  private readonly tensor = choiceField('Tensor parallel', tensorSizes, '1');
  private readonly pipeline;
  private readonly context;
  private readonly expert;
  private readonly sequence = choiceField('Sequence parallel', [['false', 'off'], ['true', 'on']], 'false');
  private readonly micro;
  private readonly batch;
  private readonly length;
  private readonly tokens = numberField('Tokens to train on', '', { min: 1, max: 1e18, step: 'any', placeholder: 'not asked', required: false });
  private readonly precision;
  private readonly sharding;
  private readonly recompute;
  private readonly optimizer;
  private readonly lora;
  private readonly base;
  private finds = false;

  constructor(facts: Facts, usual: { precision: string }) {
    const of = (name: string) => declared(facts, 'train', name);
    const choices = (name: string) => declaredChoices(facts, 'train', name);
    this.model = modelField(facts, usualModel);
    this.cluster = choiceField('Cluster', facts.clusters.map((name): [string, string] => [name, words(name)]), usualCluster);
    this.device = deviceField(facts, 'rtx_4090');
    this.devices = numberField('Devices', 64, { ...of('devices'), min: 1 });
    this.pipeline = numberField('Pipeline stages', 1, of('pipeline_parallel_size'));
    this.context = numberField('Context parallel', 1, of('context_parallel_size'));
    this.expert = numberField('Expert parallel', 1, of('expert_parallel_size'));
    this.micro = numberField('Micro-batch, sequences', 1, of('micro_batch_size'));
    this.batch = numberField('Global batch, sequences', 512, { ...of('global_batch_size'), min: 1 });
    this.length = numberField('Sequence length, tokens', 4096, of('seq_length'));
    this.precision = choiceField('Precision', choices('precision'), usual.precision);
    this.sharding = choiceField('Sharded across replicas', choices('sharding'), 'optimizer');
    this.recompute = choiceField('Recomputed', choices('recompute_granularity'), 'none');
    this.optimizer = choiceField('Optimizer', choices('optimizer'), 'adam');
    this.lora = numberField('LoRA rank', 0, of('lora_rank'));
    this.base = choiceField('Frozen weights', choices('base_weights'), 'bf16');
    const row = (...fields: { element: HTMLElement }[]) => h('div', { class: 'row' }, ...fields.map((field) => field.element));
    this.element = h('div', { class: 'stack' },
      h('fieldset', {}, h('legend', {}, 'Job'), this.model.element, this.machine.element, this.cluster.element, this.device.element,
        row(this.devices, this.length, this.micro, this.batch, this.tensor, this.pipeline, this.precision, this.sharding), this.recompute.element, this.tokens.element),
      h('details', {}, h('summary', {}, 'More: LoRA, parallelism, optimizer'),
        h('fieldset', {}, row(this.lora, this.base, this.context, this.expert, this.sequence, this.optimizer))));
    for (const { control } of [this.machine, this.lora]) control.addEventListener('input', () => this.choose());
    this.choose();
  }

  // Whether a plan is looked for; else it is given.
  findPlan(finds: boolean): void {
    this.finds = finds;
    this.choose();
  }

  private choose(): void {
    const isCluster = this.machine.control.value === 'cluster';
    showField(this.cluster, isCluster);
    showField(this.device, !isCluster);
    showField(this.base, Number(this.lora.control.value) > 0);
    for (const field of [this.tensor, this.pipeline, this.micro, this.sharding, this.recompute, this.context, this.expert, this.sequence, this.tokens]) showField(field, !this.finds);
  }

  put(of: Typed): void {
    put(this.model.control, shortName(of('model')), usualModel);
    this.machine.control.value = of('device') ? 'device' : 'cluster';
    put(this.cluster.control, of('cluster'), usualCluster);
    put(this.device.control, of('device'), 'rtx_4090');
    put(this.devices.control, of('devices'), '64');
    for (const [field, name, usual] of [[this.tensor, 'tensor_parallel_size', '1'], [this.pipeline, 'pipeline_parallel_size', '1'], [this.context, 'context_parallel_size', '1'],
      [this.expert, 'expert_parallel_size', '1'], [this.sequence, 'sequence_parallel', 'false'], [this.micro, 'micro_batch_size', '1'], [this.batch, 'global_batch_size', '512'],
      [this.length, 'seq_length', '4096'], [this.tokens, 'train_tokens', ''], [this.precision, 'precision', 'bf16'], [this.sharding, 'sharding', 'none'],
      [this.recompute, 'recompute_granularity', 'none'], [this.optimizer, 'optimizer', 'adam'], [this.lora, 'lora_rank', '0'], [this.base, 'base_weights', 'bf16']] as const) {
      put(field.control, of(name), usual);
    }
    this.choose();
  }

  question(): Question {
    const machine: Fields = this.machine.control.value === 'cluster' ? { cluster: this.cluster.control.value } : { device: this.device.control.value };
    const flags: Fields = { model: this.model.control.value, ...machine, devices: Number(this.devices.control.value) };
    setFlag(flags, 'seq_length', this.length.control);
    setFlag(flags, 'global_batch_size', this.batch.control);
    setFlag(flags, 'precision', this.precision.control, 'bf16');
    setFlag(flags, 'optimizer', this.optimizer.control, 'adam');
    setFlag(flags, 'lora_rank', this.lora.control, '0');
    if (Number(this.lora.control.value) > 0) setFlag(flags, 'base_weights', this.base.control, 'bf16');
    if (this.finds) return { command: 'plan train', ...flags };
    setFlag(flags, 'micro_batch_size', this.micro.control, '1');
    setFlag(flags, 'tensor_parallel_size', this.tensor.control, '1');
    setFlag(flags, 'pipeline_parallel_size', this.pipeline.control, '1');
    setFlag(flags, 'context_parallel_size', this.context.control, '1');
    setFlag(flags, 'expert_parallel_size', this.expert.control, '1');
    if (this.sequence.control.value === 'true') flags.sequence_parallel = true;
    setFlag(flags, 'sharding', this.sharding.control, 'none');
    setFlag(flags, 'recompute_granularity', this.recompute.control, 'none');
    setFlag(flags, 'train_tokens', this.tokens.control);
    return { command: 'train', ...flags };
  }
}
