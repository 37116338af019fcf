// Work that a form starts: one at a time, with progress, an end by hand, and errors where answers would be.
import { AnswerError } from './api';
import { announce, fill, h } from './dom';

export class Task {
  readonly status = h('p', { class: 'status', role: 'status', 'aria-live': 'polite' });
  readonly bar = h('div', { class: 'bar', hidden: true, 'aria-hidden': 'true' }, h('i'));
  readonly stop = h('button', { type: 'button', hidden: true, onclick: () => this.cancel() }, 'Cancel');
  private controller: AbortController | undefined;

  constructor(private readonly output: HTMLElement) {}

  // Scrolls to where progress and answers appear, unless they are in sight.
  reveal(): void {
    const place = this.status.parentElement;
    if (!place) return;
    const { top } = place.getBoundingClientRect();
    const head = document.querySelector('.top')?.getBoundingClientRect().bottom ?? 0;
    if (top < head || top > window.innerHeight / 2) place.scrollIntoView({ block: 'start' });
  }

  cancel(): void {
    this.controller?.abort();
  }

  // Ends what runs and starts this.
  async start(work: (signal: AbortSignal, say: (text: string) => void) => Promise<void>): Promise<void> {
    this.cancel();
    const controller = new AbortController();
    this.controller = controller;
    const isCurrent = () => this.controller === controller;
    this.busy(true);
    try {
      await work(controller.signal, (text) => isCurrent() && announce(this.status, text));
    } catch (error) {
      if (!isCurrent()) return;
      if (controller.signal.aborted) {
        announce(this.status, 'Canceled. The server has stopped working on it.');
      } else {
        announce(this.status, '');
        const message = error instanceof AnswerError ? error.message : `The page has a defect: ${String(error)}`;
        fill(this.output, h('p', { class: 'error', role: 'alert' }, message));
      }
    } finally {
      if (isCurrent()) this.busy(false);
    }
  }

  private busy(is: boolean): void {
    this.bar.hidden = !is;
    this.stop.hidden = !is;
    this.output.setAttribute('aria-busy', String(is));
  }
}
