// Latencies that a service has to keep: fields that serving questions share.
import type { Fields } from './api';
import { h } from './dom';
import { choiceField, numberField } from './fields';
import type { Goal } from './plots/latency';

const limit = { min: 0.001, max: 1e9, step: 'any', inputmode: 'decimal', required: false, placeholder: 'none' };

export class GoalFields {
  readonly element: HTMLElement;
  private readonly ttft = numberField('First token, ms', 500, limit);
  private readonly tpot = numberField('Per output token, ms', 50, limit);
  private readonly at = choiceField('At', [['50', 'median'], ['90', '90th percentile'], ['95', '95th percentile'], ['99', '99th percentile']], '99');
  private isNeeded = false;

  constructor() {
    this.element = h('fieldset', {}, h('legend', {}, 'Goals'), h('div', { class: 'row' }, this.ttft.element, this.tpot.element), this.at.element);
    for (const { control } of [this.ttft, this.tpot]) control.addEventListener('input', () => this.check(), { capture: true });
  }

  // A search is by its goals.
  need(isNeeded: boolean): void {
    this.isNeeded = isNeeded;
    this.check();
  }

  private check(): void {
    this.ttft.control.setCustomValidity(this.isNeeded && this.goals().length === 0 ? 'A search needs at least one goal' : '');
  }

  goals(): Goal[] {
    return [{ metric: 'ttft' as const, ms: Number(this.ttft.control.value) }, { metric: 'tpot' as const, ms: Number(this.tpot.control.value) }].filter((goal) => goal.ms > 0);
  }

  // From "ttft:500,tpot:50" of `serve`, or "ttft<500ms@p99,..." of `plan serve`.
  load(texts: string, percentile: string): void {
    const of = (metric: string) => new RegExp(`${metric}[:<]([0-9.]+)`).exec(texts)?.[1] ?? '';
    this.ttft.control.value = of('ttft');
    this.tpot.control.value = of('tpot');
    const at = percentile || /@p(\d+)/.exec(texts)?.[1] || '99';
    if ([...this.at.control.options].some((option) => option.value === at)) this.at.control.value = at;
    this.check();
  }

  percentile(): number { return Number(this.at.control.value); }

  // Of `serve`: how many requests keep all goals.
  goodput(): Fields {
    return this.goals().length > 0 ? { goodput: this.goals().map((goal) => `${goal.metric}:${goal.ms}`) } : {};
  }

  // Of `plan serve`.
  slo(): Fields {
    return { slo: this.goals().map((goal) => `${goal.metric}<${goal.ms}ms@p${this.percentile()}`) };
  }
}
