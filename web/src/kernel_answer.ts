// The answer of one kernel: its time, what limits it, and its place under the device's roof.
import { run, type Facts, type KernelAnswer } from './api';
import { h } from './dom';
import { bytes, compact, joules, percent, seconds, words } from './format';
import { kernelTitle, type KernelForm } from './kernel_form';
import { estimateLine, type LinePoint } from './lines';
import { tableCard } from './parts';
import { Plot } from './plot';
import { operatorRoofline } from './plots/roofline';
import { timeParts } from './plots/shares';
import type { Say } from './task';
import { verdictCard } from './verdict';

const sources: Record<string, string> = { measured: 'a sweep of this device', sibling: 'a device of the same generation', cross: 'sweeps of other devices', roofline: 'the spec sheet alone' };

const valueText = (value: number, unit: string): string => unit === 's' ? seconds(value) : unit === 'share' ? percent(value) : unit === 'B/s' ? `${bytes(value)}/s` : `${compact(value)}${unit ? ` ${unit}` : ''}`;

export function kernelHeadline({ estimate, efficiency }: KernelAnswer): string {
  return `${seconds(estimate.seconds.value)}, ${percent(efficiency)} of the roofline`;
}

export function kernelParts(answer: KernelAnswer, facts: Facts, sweep: Plot): HTMLElement[] {
  const { estimate } = answer;
  const device = facts.devices.find((entry) => entry.file.name === answer.device)?.file;
  const [time, unit] = seconds(estimate.seconds.value).split(' ', 2);
  const burst = answer.power?.burst;
  const roof = new Plot('Roofline', 'tall'), parts = new Plot('Where the time goes');
  const pieces = answer.explanation.filter(({ kind }) => kind === 'part');
  const limits = answer.explanation.filter(({ kind }) => kind === 'limit');
  const assumed = answer.explanation.filter(({ kind }) => kind === 'fact');
  const outside = answer.envelope.filter(({ inside }) => !inside);
  const drawsRoof = device !== undefined && estimate.work.flops > 0;
  if (drawsRoof) roof.show(operatorRoofline([{ name: answer.family, work: estimate.work, seconds: estimate.seconds, bound: estimate.bound, multiplies_in: answer.multiplies_in }], device));
  if (pieces.length > 0) parts.show(timeParts(pieces.map(({ name, value }) => ({ name, value }))));
  const told = [`Bound by ${estimate.bound}. Time from ${sources[estimate.tier] ?? estimate.tier}.`,
    outside.length > 0 ? `Outside the measured sizes: ${outside.map(({ name, least, most }) => `${name} was measured from ${compact(least)} to ${compact(most)}`).join(', ')}.` : '',
    answer.interval_origin ? `Interval: ${answer.interval_origin.reading}.` : '', ...answer.notes].filter((text) => text !== '').join(' ');
  return [
    verdictCard(facts, { state: estimate.tier === 'roofline' ? 'unsure' : 'plain', headline: kernelHeadline(answer), layer: answer.family.includes('attention') ? 'attention' : 'kernels',
      subject: `${kernelTitle(answer.family)} on ${device?.title ?? answer.device}: ${Object.entries(answer.parameters).filter(([, value]) => value !== 'any').map(([name, value]) => `${words(name)} ${value}`).join(', ')}`,
      figures: [{ name: 'Time', value: time!, unit, estimate: estimate.seconds, show: seconds },
        { name: 'MFU', value: answer.mfu === null ? '–' : percent(answer.mfu), note: `of the ${answer.multiplies_in ?? estimate.work.math} peak; ${compact(estimate.work.flops / 1e9)} GFLOP` },
        { name: 'MBU', value: answer.mbu === null ? '–' : percent(answer.mbu), note: `of the memory bandwidth; ${bytes(estimate.work.weight_bytes + estimate.work.activation_bytes + estimate.work.written_bytes)} moved` },
        ...(burst ? [{ name: 'Energy per call', value: joules(burst.joules.value), estimate: burst.joules, show: joules, note: burst.power_limited ? 'limited by the board’s power' : `at ${compact(burst.watts.value)} W` }] : [])],
      notes: {}, prose: h('p', { class: 'sentence' }, told) }),
    h('div', { class: 'plots' }, drawsRoof ? roof.element : null, sweep.element, pieces.length > 0 ? parts.element : null,
      limits.length + assumed.length > 0 ? tableCard('What the prediction assumes', [{ title: 'name' }, { title: 'value', number: true }, { title: 'meaning' }],
          [...limits, ...assumed].map(({ name, value, unit: of, reading }) => [words(name), valueText(value, of), reading])) : null),
  ];
}

// The same kernel at smaller and larger sizes.
export async function kernelSweep(form: KernelForm, plot: Plot, signal: AbortSignal, say: Say): Promise<void> {
  const sweep = form.sweep();
  if (!sweep) return;
  const points: LinePoint[] = [];
  for (const { x, question } of sweep.questions) {
    say(`Predicting ${words(sweep.name)} ${compact(x)}…`, points.length / sweep.questions.length);
    try {
      points.push({ x, estimate: (await run<KernelAnswer>(question, signal)).answer.estimate.seconds });
    } catch (error) {
      if (signal.aborted) throw error;  // else: a size that the kernel does not have
    }
  }
  if (points.length > 1) plot.show(estimateLine(points, words(sweep.name), 'µs', seconds, 1e6));
}
