// Pieces of answers that several tabs show.
import type { Estimate } from './api';
import { download, h } from './dom';

// A value and its 90% interval.
export function withRange(estimate: Estimate, show: (value: number) => string): HTMLElement {
  const spread = estimate.high > estimate.low * 1.001;
  return h('span', {}, h('strong', {}, show(estimate.value)),
    spread ? h('span', { class: 'range' }, ` (${show(estimate.low)} to ${show(estimate.high)})`) : null);
}

export interface Figure { name: string; value: string; note?: string }

export function figures(all: Figure[]): HTMLElement {
  return h('dl', { class: 'figures' }, ...all.map(({ name, value, note }) =>
    h('div', {}, h('dt', {}, name), h('dd', {}, value, note ? h('small', {}, note) : null))));
}

export function rangeNote(estimate: Estimate, show: (value: number) => string): string | undefined {
  return estimate.high > estimate.low * 1.001 ? `${show(estimate.low)} to ${show(estimate.high)}` : undefined;
}

// The command that gives the same answer in a terminal.
export function commandCard(commandLines: string[], further: HTMLElement[] = []): HTMLElement {
  const text = commandLines.join('\n');
  const copy = h('button', { type: 'button', class: 'small', onclick: async () => {
    await navigator.clipboard.writeText(text);
    copy.textContent = 'Copied';
    setTimeout(() => { copy.textContent = 'Copy'; }, 1500);
  } }, 'Copy');
  return h('section', { class: 'card', 'aria-label': 'Reproduce and export' },
    h('h2', {}, 'The same in a terminal'),
    h('div', { class: 'command' }, h('pre', { tabindex: 0, 'aria-label': 'Command line' }, text), copy),
    h('p', { class: 'buttons' }, ...further));
}

export function csvText(rows: (string | number)[][]): string {
  const cell = (value: string | number) => /[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value);
  return rows.map((row) => row.map(cell).join(',')).join('\n') + '\n';
}

export function exportButtons(name: string, json: unknown, rows: (string | number)[][]): HTMLElement[] {
  return [
    h('button', { type: 'button', onclick: () => download(`${name}.json`, 'application/json', JSON.stringify(json, null, 2)) }, 'Export JSON'),
    h('button', { type: 'button', onclick: () => download(`${name}.csv`, 'text/csv', csvText(rows)) }, 'Export CSV'),
  ];
}
