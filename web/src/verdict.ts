// An answer's head: the verdict, a few large figures with their intervals drawn, what it rests on, then prose.
import type { DeviceNotes, Estimate, Facts } from './api';
import { h } from './dom';
import { compact } from './format';
import { deviceNotes } from './parts';

export type State = 'met' | 'missed' | 'unsure' | 'plain';

export interface BigFigure {
  name: string;
  value: string;
  unit?: string;
  estimate?: Estimate;  // drawn with its interval, in the unit of `show`
  show?: (value: number) => string;
  goal?: number;  // at most this
  note?: string;
}

export interface Verdict {
  state: State;
  headline: string;
  subject: string;
  figures: BigFigure[];
  layer?: string;  // whose published accuracy is told
  prose?: HTMLElement;
  notes: DeviceNotes;
}

const marks: Record<State, string> = { met: '✓', missed: '✕', unsure: '?', plain: '' };

// From nothing to a little beyond what is to be seen: the interval, the value in it, the goal.
function intervalBar({ value, low, high }: Estimate, goal?: number): HTMLElement {
  const most = 1.12 * Math.max(high, goal ?? 0, 1e-12);
  const at = (x: number) => `${(100 * Math.min(1, Math.max(0, x / most))).toFixed(2)}%`;
  const band = h('i', { class: 'band' });
  band.style.left = at(low);
  band.style.width = at(high - low);
  const dot = h('i', { class: 'dot' });
  dot.style.left = at(value);
  const line = goal === undefined ? null : h('i', { class: 'goal' });
  if (line) line.style.left = at(goal!);
  return h('div', { class: 'interval', 'aria-hidden': 'true' }, band, line, dot);
}

export function goalState(estimate: Estimate, goal: number): State {
  if (estimate.value > goal) return 'missed';
  return estimate.high > goal ? 'unsure' : 'met';
}

// "114 to 243 ms".
function rangeText({ low, high }: Estimate, show: (value: number) => string): string {
  const [first, last] = [show(low), show(high)];
  const unit = / \S+$/.exec(last)?.[0] ?? '';
  return `${unit && first.endsWith(unit) ? first.slice(0, -unit.length) : first} to ${last}`;
}

const goalWords: Record<State, string> = { met: 'met', missed: 'missed', unsure: 'met by the middle estimate', plain: '' };

function bigFigure({ name, value, unit, estimate, show = compact, goal, note }: BigFigure): HTMLElement {
  const spread = estimate && estimate.high > estimate.low * 1.001;
  const state = estimate && goal !== undefined ? goalState(estimate, goal) : 'plain';
  return h('div', { class: `big is-${state}` }, h('dt', {}, name),
    h('dd', {}, h('strong', {}, value), unit ? h('span', { class: 'unit' }, ` ${unit}`) : null,
      estimate && (spread || goal !== undefined) ? intervalBar(estimate, goal) : null,
      spread ? h('small', {}, `90%: ${rangeText(estimate, show)}`) : null,
      goal === undefined ? null : h('small', { class: state }, `${marks[state]} goal ${show(goal)} ${goalWords[state]}`),
      note ? h('small', {}, note) : null));
}

// The error that validation found for a layer, over rows that no fit has seen.
export function basis(facts: Facts, layer: string): HTMLElement | null {
  const groups = facts.accuracy.sets.filter((set) => set.layer === layer).flatMap((set) => set.groups);
  const medians = groups.map((group) => group.median).sort((a, b) => a - b);
  if (medians.length === 0) return null;
  const rows = groups.reduce((sum, group) => sum + group.count, 0);
  const kind = layer.replace(/s$/, '');
  return h('p', { class: 'basis' }, `${kind[0]!.toUpperCase()}${kind.slice(1)} predictions were checked against ${compact(rows)} published measurements: median error ${compact(medians[medians.length >> 1]!, 2)}%. `,
    h('a', { href: '#accuracy' }, 'See them'));
}

export function verdictCard(facts: Facts, verdict: Verdict): HTMLElement {
  return h('section', { class: `card verdict-card is-${verdict.state}`, 'aria-live': 'polite', 'aria-label': 'Answer' },
    h('p', { class: 'subject' }, verdict.subject),
    h('h2', { class: `verdict is-${verdict.state}` }, marks[verdict.state] ? h('span', { class: 'mark', 'aria-hidden': 'true' }, marks[verdict.state]) : null, h('span', {}, verdict.headline)),
    verdict.figures.length > 0 ? h('dl', { class: 'bigs' }, ...verdict.figures.map(bigFigure)) : null,
    ...deviceNotes(verdict.notes),
    verdict.prose ?? null,
    verdict.layer ? basis(facts, verdict.layer) : null);
}
