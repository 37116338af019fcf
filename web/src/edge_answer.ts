// A network on a CPU or GPU: its latency, kernel by kernel, and what to change.
import type { EdgeAnswer, Estimate, Facts } from './api';
import { h } from './dom';
import { bytes, compact, percent, seconds, words } from './format';
import { tableCard } from './parts';
import { Plot } from './plot';
import { timeParts } from './plots/shares';
import { verdictCard } from './verdict';

const valueOf = (time: number | Estimate): number => typeof time === 'number' ? time : time.value;

// Notes of the program name flags; here they are fields.
const noteText = (note: string): string => `${note[0]!.toUpperCase()}${note.slice(1).replace(/--bind \S+ sets it/, 'change it under “Sizes of symbolic dimensions”')}.`;

export const edgeHeadline = (answer: EdgeAnswer): string =>
  `${seconds(answer.seconds.value)} ${answer.phase ? `per ${answer.phase} step` : 'per run'}`;

export function edgeParts(answer: EdgeAnswer, facts: Facts): HTMLElement[] {
  const device = facts.devices.find(({ file }) => file.name === answer.device)?.file.title ?? answer.device;
  const byKind = new Plot('Time by kind of kernel'), longest = new Plot('Longest steps');
  const name = (step: EdgeAnswer['steps'][number]) => step.operators ?? step.operator ?? step.node ?? '';
  const kinds = answer.kinds ?? Object.entries(answer.steps.reduce<Record<string, number>>((sums, step) => {
    const kind = step.kernel ?? step.family ?? step.operator ?? '';
    return { ...sums, [kind]: (sums[kind] ?? 0) + valueOf(step.seconds) };
  }, {})).map(([kind, time]) => ({ kind, seconds: time }));
  byKind.show(timeParts(kinds.map((kind) => ({ name: kind.kind, value: kind.seconds }))));
  longest.show(timeParts(answer.steps.map((step, i) => ({ name: `${i + 1}. ${name(step)}`, value: valueOf(step.seconds) }))));
  const [value, unit] = seconds(answer.seconds.value).split(' ', 2);
  const total = answer.seconds.value;
  return [
    verdictCard(facts, { state: 'plain', headline: edgeHeadline(answer), layer: 'edge', notes: answer, subject: `${words(answer.model)} on ${device}${answer.runtime ? `, ${answer.runtime}` : ''}`,
      figures: [{ name: 'Latency', value: value!, unit, estimate: answer.seconds, show: seconds },
        ...(answer.tokens_per_second ? [{ name: 'Tokens', value: compact(answer.tokens_per_second), unit: '/s' }] : [{ name: 'Runs', value: compact(1 / total), unit: '/s' }]),
        { name: 'Weights', value: bytes(answer.weight_bytes) }, ...(answer.activation_bytes ? [{ name: 'Activations, peak', value: bytes(answer.activation_bytes) }] : [])],
      prose: h('p', { class: 'sentence' }, (answer.notes ?? []).map(noteText).join(' ')) }),
    ...((answer.advice?.length ?? 0) > 0 ? [h('section', { class: 'card', 'aria-label': 'What to change' }, h('h2', {}, 'What to change'), h('ul', {}, ...answer.advice!.map(({ text }) => h('li', {}, text))))] : []),
    h('div', { class: 'plots' }, byKind.element, longest.element),
    tableCard('Steps in order', [{ title: 'step' }, { title: 'kernel' }, { title: 'calls', number: true }, { title: 'time', number: true }, { title: 'share', number: true }],
        answer.steps.map((step) => [name(step), step.kernel ?? step.family ?? '', String(step.calls), seconds(valueOf(step.seconds)), percent(valueOf(step.seconds) / total)])),
  ];
}
