// Plots over the same time, enlarged together: with Ctrl and the wheel (or a pinch), by dragging, or with buttons.
import { announce, h } from './dom';
import { seconds } from './format';
import type { Plot } from './plot';

const narrowest = 0.5;  // percent of the run

export class Zoom {
  readonly element: HTMLElement;
  private start = 0;  // percent of the run
  private end = 100;
  private readonly status = h('span', { class: 'muted', role: 'status' });
  private readonly buttons: { button: HTMLButtonElement; isPossible: () => boolean }[] = [];

  constructor(private readonly plots: readonly Plot[], private readonly duration: number) {
    const button = (title: string, act: () => void, isPossible: () => boolean) => {
      const made = h('button', { type: 'button', class: 'small', onclick: act }, title);
      this.buttons.push({ button: made, isPossible });
      return made;
    };
    const isZoomed = () => this.end - this.start < 100;
    this.element = h('div', { class: 'zoom', role: 'group', 'aria-label': 'Zoom' },
      button('Zoom in', () => this.scale(0.5), () => this.end - this.start > narrowest),
      button('Zoom out', () => this.scale(2), isZoomed),
      button('Earlier', () => this.move(-0.5), () => this.start > 0),
      button('Later', () => this.move(0.5), () => this.end < 100),
      button('Whole run', () => this.set(0, 100), isZoomed),
      this.status);
    for (const plot of plots) plot.zoomed = (start, end) => this.set(start, end);
    this.tell();
  }

  private scale(factor: number): void {
    const middle = (this.start + this.end) / 2;
    const half = Math.min(50, Math.max(narrowest / 2, factor * (this.end - this.start) / 2));
    const start = Math.min(100 - 2 * half, Math.max(0, middle - half));
    this.set(start, start + 2 * half);
  }

  private move(share: number): void {
    const width = this.end - this.start;
    const start = Math.min(100 - width, Math.max(0, this.start + share * width));
    this.set(start, start + width);
  }

  private set(start: number, end: number): void {
    if (start === this.start && end === this.end) return;
    [this.start, this.end] = [start, end];
    for (const plot of this.plots) plot.zoomTo(start, end);
    this.tell();
  }

  private tell(): void {
    const at = (share: number) => seconds(share / 100 * this.duration);
    announce(this.status, this.end - this.start < 100 ? `${at(this.start)} to ${at(this.end)} of ${at(100)}` : 'The whole run. Ctrl and the mouse wheel zoom too; drag to move.');
    // A button that is about to be disabled would lose the focus of the keyboard.
    for (const { button, isPossible } of this.buttons) button.setAttribute('aria-disabled', String(!isPossible()));
  }
}
