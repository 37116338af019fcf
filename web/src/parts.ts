// Pieces of answers that several tabs show.
import type { DeviceNotes, Estimate, Fields, ServeAnswer } from './api';
import { copyButton, download, h, table, type Column } from './dom';
import { compact } from './format';

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

// What must be known of the devices before the answer is relied on; by its verdict.
export function deviceNotes(answer: DeviceNotes, confidence?: string): HTMLElement[] {
  const isSheetOnly = (answer.sheet_only_devices?.length ?? 0) > 0 || confidence === 'roofline';
  const notes = answer.device_notes ?? [];
  const all = notes.length === 0 && isSheetOnly ? ['From the spec sheet alone, not measured: the interval is wide.'] : notes;
  return all.map((note) => h('p', { class: 'unsure' }, note));
}

// "12 of 400 requests failed: prompt of --max-model-len or more"; empty where none did.
export function failureText(answer: ServeAnswer): string {
  if (answer.failed === 0) return '';
  const reasons = Object.entries(answer.failures ?? {}).filter(([, count]) => count > 0);
  const why = reasons.length === 1 ? reasons[0]![0] : reasons.map(([reason, count]) => `${reason} (${compact(count)})`).join(', ');
  const which = answer.completed === 0 ? `All ${compact(answer.failed)} requests failed` : `${compact(answer.failed)} of ${compact(answer.num_prompts)} requests failed`;
  return why ? `${which}: ${why}` : which;
}

// A command line without what the page asks for its plots alone.
export function withoutDrawn(line: string, drawn: Fields): string {
  return Object.keys(drawn).reduce((text, name) => text.replaceAll(new RegExp(` --${name.replaceAll('_', '-')}(?![\\w-])(?: (?!--)\\S+)?`, 'g'), ''), line);
}

// The command that gives the same answer in a terminal.
export function commandCard(commandLines: string[], further: HTMLElement[] = [], title = 'The same in a terminal'): HTMLElement {
  const text = commandLines.join('\n');
  const copy = copyButton('Copy', 'Copied', () => text, { class: 'small' });
  return h('section', { class: 'card', 'aria-label': title },
    h('h2', {}, title),
    h('div', { class: 'command' }, h('pre', { tabindex: 0, 'aria-label': 'Command line' }, text), copy),
    h('p', { class: 'buttons' }, ...further));
}

// A table under its title; the table itself is the landmark.
export function tableCard(title: string, columns: Column[], rows: string[][], ...further: HTMLElement[]): HTMLElement {
  return h('div', { class: 'card' }, h('h2', {}, title), table(title, columns, rows), ...further);
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
