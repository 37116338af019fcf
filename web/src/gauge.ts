// The memory of a device while a question is typed: what an engine set up like this holds, and what would make it fit.
import { AnswerError, run, type StepAnswer } from './api';
import { fill, h } from './dom';
import { bytes, compact } from './format';
import type { ServingForm } from './serving_form';

const pause = 200;  // ms after the last key
const parts: [key: string, name: string][] = [['weights', 'weights'], ['peak_activations', 'activations'], ['graphs', 'graphs'], ['runtime', 'runtime'], ['context', 'context'], ['kv_cache', 'KV cache']];

export class MemoryGauge {
  readonly element = h('div', { class: 'gauge', 'aria-live': 'polite' });
  private waiting = 0;
  private mends = false;  // another device was chosen since memory was last measured
  private takeBack: (() => void) | undefined;  // what was changed to make the last device fit
  private controller: AbortController | undefined;

  constructor(private readonly form: ServingForm, private readonly changed: () => void) {
    // Another device: what does not fit is made to fit, and said.
    form.deviceControl().addEventListener('change', () => {
      this.mends = true;
      this.takeBack?.();
      this.takeBack = undefined;
    });
  }

  soon(): void {
    clearTimeout(this.waiting);
    this.controller?.abort();
    this.element.hidden = false;
    this.waiting = window.setTimeout(() => {
      const mends = this.mends;
      this.mends = false;
      void this.measure(mends);
    }, pause);
  }

  hide(): void {
    this.element.hidden = true;
    clearTimeout(this.waiting);
    this.controller?.abort();
    fill(this.element);
  }

  private async measure(mends: boolean): Promise<void> {
    const controller = new AbortController();
    this.controller = controller;
    try {
      const { answer } = await run<StepAnswer>({ command: 'step', ...this.form.memoryFields() }, controller.signal);
      const memory = answer.serving_memory;
      const first = memory?.remedies[0];
      if (mends && memory && !memory.starts && first) this.takeBack = this.form.apply(first.change);
      if (mends && first && this.takeBack) {
        this.changed();
        await this.measure(false);
        this.element.prepend(h('p', { class: 'unsure' }, `Changed so that it fits: ${first.change}`));
        return;
      }
      this.show(answer);
    } catch (error) {
      if (!controller.signal.aborted && error instanceof AnswerError) fill(this.element);  // asking says why
    }
  }

  private show({ serving_memory: memory }: StepAnswer): void {
    if (!memory) return fill(this.element);
    const all = memory.bytes.allocatable?.value ?? 0;
    const sized = parts.map(([key, name]) => ({ name, value: Math.max(0, memory.bytes[key]?.value ?? 0) })).filter((part) => part.value > 0);
    const used = sized.reduce((sum, part) => sum + part.value, 0);
    const most = Math.max(all, used);
    const bar = h('div', { class: 'gauge-bar', 'aria-hidden': 'true' }, ...sized.map((part, i) => {
      const piece = h('i', { class: `piece-${i}`, title: `${part.name} ${bytes(part.value)}` });
      piece.style.width = `${(100 * part.value / most).toFixed(2)}%`;
      return piece;
    }));
    const weights = bytes(memory.bytes.weights?.value ?? 0);
    fill(this.element, h('p', { class: 'label' }, h('span', {}, 'Memory per device'), h('span', {}, bytes(all))), bar,
      memory.starts
        ? h('p', { class: 'muted' }, `Weights ${weights}, KV cache ${bytes(memory.bytes.kv_cache?.value ?? 0)}: room for ${compact(memory.tokens.value)} tokens.`)
        : h('p', { class: 'missed' }, `Does not fit: ${bytes(memory.short_by_bytes)} short (weights ${weights}).`),
      memory.starts || memory.remedies.length === 0 ? null : h('p', { class: 'buttons' }, h('span', { class: 'muted' }, 'Fits with'),
        ...memory.remedies.slice(0, 4).map(({ change }) => h('button', { type: 'button', class: 'small', onclick: () => {
          if (this.form.apply(change)) {
            this.changed();
            this.soon();
          }
        } }, change))));
  }
}
