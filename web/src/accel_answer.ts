// The best mapping that was found: cycles, energy, and where the energy goes.
import type { AccelAnswer, Facts, MappedLayer } from './api';
import { h } from './dom';
import { compact, joules, percent, seconds, words } from './format';
import { tableCard } from './parts';
import { Plot } from './plot';
import { timeParts, type Part } from './plots/shares';
import { verdictCard } from './verdict';

const picojoules = (value: number): string => joules(value * 1e-12);

const totals = (answer: AccelAnswer): { seconds: number; cycles: number; energy_pj: number; operations: number } =>
  answer.total ?? { seconds: answer.seconds ?? 0, cycles: answer.cycles ?? 0, energy_pj: answer.energy_pj ?? 0, operations: answer.operations ?? 0 };

// Layers of one shape are listed once.
const times = (layer: MappedLayer): number => layer.count ?? 1;

function energyParts(layers: MappedLayer[]): Part[] {
  const sums = new Map<string, number>();
  const add = (name: string, value: number) => sums.set(name, (sums.get(name) ?? 0) + value);
  for (const layer of layers) {
    add('multipliers', times(layer) * layer.compute_pj);
    for (const level of layer.levels) add(level.name, times(layer) * ((level.access_pj ?? 0) + level.leakage_pj + level.network_pj));
  }
  return [...sums].map(([name, value]) => ({ name, value }));
}

export function accelHeadline(answer: AccelAnswer): string {
  const { seconds: time, energy_pj } = totals(answer);
  return `${seconds(time)} and ${picojoules(energy_pj)}`;
}

export function accelParts(answer: AccelAnswer, facts: Facts): HTMLElement[] {
  const total = totals(answer);
  const layers = answer.layers ?? [answer as MappedLayer];
  const design = facts.designs.find(({ name }) => name === answer.architecture);
  const use = layers.reduce((sum, layer) => sum + times(layer) * layer.utilization * layer.cycles, 0) / Math.max(1, layers.reduce((sum, layer) => sum + times(layer) * layer.cycles, 0));
  const energy = new Plot('Where the energy goes'), time = new Plot('Longest layers');
  energy.show(timeParts(energyParts(layers), picojoules, 'energy'));
  if (answer.layers) time.show(timeParts(layers.map((layer) => ({ name: layer.problem, value: times(layer) * layer.seconds }))));
  const [value, unit] = seconds(total.seconds).split(' ', 2);
  const search = answer.search;
  return [
    verdictCard(facts, { state: 'plain', headline: accelHeadline(answer), layer: 'accelerators', notes: {},
      subject: `${answer.layers ? `${layers.reduce((sum, layer) => sum + times(layer), 0)} layers` : words(answer.problem ?? 'one operator')} on ${words(answer.architecture)}${design ? `: ${design.summary}` : ''}`,
      figures: [{ name: 'Time', value: value!, unit, note: `${compact(total.cycles)} cycles` }, { name: 'Energy', value: picojoules(total.energy_pj), note: `${compact(total.energy_pj / Math.max(1, total.operations))} pJ per operation` },
        { name: 'Multipliers in use', value: percent(use) }, ...(answer.limited_by ? [{ name: 'Limited by', value: answer.limited_by }] : [])],
      prose: h('p', { class: 'sentence' }, search ? `${compact(search.tried)} mappings tried; ${search.exhausted ? 'all there are.' : `the best is within ${percent(search.gap)} of a proven bound on energy × delay.`}` : 'Each layer has the best mapping that the search found.') }),
    h('div', { class: 'plots' }, energy.element, answer.layers ? time.element : null),
    ...(answer.layers ? [tableCard('Layers', [{ title: 'layer' }, { title: 'times', number: true }, { title: 'time each', number: true }, { title: 'energy', number: true }, { title: 'multipliers in use', number: true }, { title: 'limited by' }],
        layers.map((layer) => [layer.problem, String(times(layer)), seconds(layer.seconds), picojoules(layer.energy_pj), percent(layer.utilization), layer.limited_by]))] : []),
  ];
}
