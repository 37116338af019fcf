// Traffic that rises and falls over a day, and replicas that follow it.
import type { Facts, Fields, Question } from './api';
import { h } from './dom';
import { dayPeriod, dayTraffic, isWholeDay } from './day_question';
import { choiceField, declared, declaredChoices, deviceField, modelField, numberField, put, setFlag, tensorSizes } from './fields';
import { shortName } from './format';
import type { Typed } from './state';

export class DayForm {
  readonly element: HTMLElement;
  private readonly model;
  private readonly device;
  private readonly tensor = choiceField('Devices per replica', tensorSizes, '1');
  private readonly most;
  private readonly least;
  private readonly autoscaler;
  private readonly rate = numberField('Mean requests per second', 4, { min: 0.01, max: 10000, step: 'any', inputmode: 'decimal' });
  private readonly swing = numberField('Daily swing, %', 80, { min: 0, max: 100 });
  private readonly input;
  private readonly output;
  private readonly cold;
  private readonly note = h('p', { class: 'muted' });

  constructor(private readonly facts: Facts) {
    const of = (name: string) => declared(facts, 'serve', name);
    this.model = modelField(facts, 'Llama-3.1-8B');
    this.device = deviceField(facts, 'h100_sxm', 'Device', true);
    this.autoscaler = choiceField('Autoscaler', declaredChoices(facts, 'serve', 'autoscaler'), 'reactive');
    this.least = numberField('Fewest replicas', 1, { ...of('min_replicas'), min: 1 });
    this.most = numberField('Most replicas', 8, { ...of('max_replicas'), min: 1 });
    this.input = numberField('Prompt tokens', 1024, of('random_input_len'));
    this.output = numberField('Output tokens', 256, of('random_output_len'));
    this.cold = numberField('Cold start, s', '', { ...of('cold_start'), min: 0, step: 'any', placeholder: 'predicted', required: false });
    this.element = h('fieldset', {}, h('legend', {}, 'A day of traffic'), this.model.element, this.device.element,
      h('div', { class: 'row' }, this.rate.element, this.swing.element, this.input.element, this.output.element),
      h('div', { class: 'row' }, this.tensor.element, this.autoscaler.element, this.least.element, this.most.element, this.cold.element), this.note);
    this.element.addEventListener('input', () => this.tell());
    this.tell();
  }

  period(): number {
    return dayPeriod(this.facts, Number(this.rate.control.value));
  }

  private tell(): void {
    const hours = this.period() / 3600;
    this.note.textContent = isWholeDay(this.period()) ? '' : `At this rate the simulation squeezes the day into ${hours >= 1 ? `${Number(hours.toPrecision(2))} hours` : `${Math.round(60 * hours)} minutes`}, so cold starts weigh more than in a real day.`;
  }

  put(of: Typed): void {
    put(this.model.control, shortName(of('model')), 'Llama-3.1-8B');
    put(this.device.control, of('device'), 'h100_sxm');
    for (const [field, name, usual] of [[this.tensor, 'tensor_parallel_size', '1'], [this.rate, 'request_rate', '4'], [this.input, 'random_input_len', '1024'], [this.output, 'random_output_len', '256'],
      [this.autoscaler, 'autoscaler', 'none'], [this.least, 'min_replicas', '1'], [this.most, 'max_replicas', '8'], [this.cold, 'cold_start', '']] as const) put(field.control, of(name), usual);
    put(this.swing.control, of('daily_swing') && String(Math.round(100 * Number(of('daily_swing')))), '50');
    this.tell();
  }

  question(): Question {
    const period = this.period();
    const flags: Fields = { model: this.model.control.value, device: this.device.control.value };
    setFlag(flags, 'tensor_parallel_size', this.tensor.control, '1');
    const number = (field: { control: HTMLInputElement }) => Number(field.control.value);
    Object.assign(flags, dayTraffic(number(this.rate), number(this.input), number(this.output), number(this.swing) / 100, period));
    setFlag(flags, 'autoscaler', this.autoscaler.control, 'none');
    if (this.autoscaler.control.value !== 'none') {
      setFlag(flags, 'min_replicas', this.least.control, '1');
      setFlag(flags, 'max_replicas', this.most.control);
      setFlag(flags, 'cold_start', this.cold.control);
      if (this.autoscaler.control.value === 'seasonal') flags.scale_period = period;
    } else {
      flags.replicas = Number(this.most.control.value);
    }
    return { command: 'serve', ...flags };
  }
}
