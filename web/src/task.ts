// Work that a form starts: one at a time, with progress in sight, an end by hand, and errors where answers would be.
import { AnswerError } from './api';
import { announce, fill, h } from './dom';
import { seconds } from './format';

// `share` of the work that is done, from 0 to 1, where it is known.
export type Say = (text: string, share?: number) => void;

export class Task {
  readonly status = h('p', { class: 'status', role: 'status', 'aria-live': 'polite' });
  private readonly left = h('span', { class: 'muted' });
  private readonly bar = h('div', { class: 'bar', hidden: true, 'aria-hidden': 'true' }, h('i'));
  private readonly stop = h('button', { type: 'button', class: 'small', hidden: true, onclick: () => this.cancel() }, 'Cancel');
  // Lies over the page while work is under way: it is in sight wherever one has scrolled to.
  readonly element = h('div', { class: 'progress' }, this.bar, h('div', {}, this.status, this.left, this.stop));
  private controller: AbortController | undefined;

  constructor(private readonly output: HTMLElement) {}

  // Scrolls to where the answer is, unless it is in sight.
  reveal(): void {
    const { top } = this.output.getBoundingClientRect();
    const head = document.querySelector('.top')?.getBoundingClientRect().bottom ?? 0;
    if (top < head || top > window.innerHeight / 2) this.output.scrollIntoView({ block: 'start' });
  }

  cancel(): void {
    this.controller?.abort();
  }

  // Seen at once: what starts the work comes with the address, a moment later.
  expect(text: string): void {
    this.element.classList.remove('quiet');
    this.busy(true);
    announce(this.status, text);
  }

  // Says what is to be done first; nothing runs.
  tell(text: string): void {
    this.element.classList.remove('quiet');
    this.busy(false);
    announce(this.status, text);
  }

  // Ends what runs and starts this.
  async start(work: (signal: AbortSignal, say: Say) => Promise<void>): Promise<void> {
    this.cancel();
    const controller = new AbortController();
    this.controller = controller;
    const isCurrent = () => this.controller === controller;
    this.element.classList.remove('quiet');
    this.busy(true);
    const begin = performance.now();
    try {
      await work(controller.signal, (text, share) => {
        if (!isCurrent()) return;
        announce(this.status, text);
        this.show((performance.now() - begin) / 1000, share);
      });
      if (isCurrent()) this.element.classList.add('quiet');  // the answer itself is seen
    } catch (error) {
      if (!isCurrent()) return;
      if (controller.signal.aborted) {
        announce(this.status, 'Canceled. The server has stopped working on it.');
      } else {
        announce(this.status, '');
        const message = error instanceof AnswerError ? error.message : `The page has a defect: ${String(error)}`;
        fill(this.output, h('p', { class: 'error', role: 'alert' }, message));
        this.reveal();
      }
    } finally {
      if (isCurrent()) this.busy(false);
    }
  }

  private show(spent: number, share?: number): void {
    const isKnown = share !== undefined && share > 0;
    this.bar.classList.toggle('known', isKnown);
    (this.bar.firstElementChild as HTMLElement).style.width = isKnown ? `${Math.min(100, 100 * share)}%` : '';
    const left = isKnown ? spent * (1 - share) / share : 0;
    announce(this.left, isKnown && left >= 1 ? `${Math.round(100 * share)}%, about ${seconds(Math.ceil(left))} left` : '');
  }

  private busy(is: boolean): void {
    this.element.classList.toggle('busy', is);
    this.bar.hidden = !is;
    this.stop.hidden = !is;
    this.output.setAttribute('aria-busy', String(is));
    this.show(0);
  }
}
