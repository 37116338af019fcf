// Accuracy: predictions against what was measured, by layer, and scenarios of the suite that were measured.
import { run, type AccuracySet, type Facts } from '../api';
import { fill, h, table } from '../dom';
import { choiceField } from '../fields';
import { compact } from '../format';
import { commandCard, figures } from '../parts';
import { Plot } from '../plot';
import { predictedAgainstMeasured, type ComparedPoint } from '../plots/accuracy';
import { Task } from '../task';
import type { Tab } from './tab';

interface Answered { value: number; low: number | null; high: number | null }
interface SuiteAnswer { scenarios: { id: string; answer?: Answered; checks?: { predicted?: Answered }[]; error?: string }[] }

type Group = AccuracySet['groups'][number] & Omit<AccuracySet, 'groups'>;

const mostDrawn = 1500;  // of all groups together

export function accuracyTab(facts: Facts): Tab {
  const { sets } = facts.accuracy;
  const groups: Group[] = sets.flatMap(({ groups: own, ...of }) => own.map((group) => ({ ...of, ...group })));
  const choices = (names: string[], all: string): [string, string][] => [['', all], ...[...new Set(names)].map((name): [string, string] => [name, name])];
  const layer = choiceField('Layer', choices(groups.map((group) => group.layer), 'all layers'), '');
  const seen = choiceField('Rows used in fitting', choices(groups.map((group) => group.seen), 'any'), '');
  const plot = new Plot('Predicted against measured', 'tall', true);
  const rows = h('div', { class: 'stack' });
  const detail = h('div', { class: 'stack', 'aria-live': 'polite' });
  const choose = (group: Group) => {
    const own = new Plot(`${group.group}: predicted against measured`, 'tall', true);
    fill(detail, ...groupParts(group, own));
    own.show(predictedAgainstMeasured(pointsOf(group)));
    for (const button of rows.querySelectorAll('button')) button.setAttribute('aria-pressed', String(button.textContent === group.group));
  };
  const show = () => {
    const chosen = groups.filter((group) => (layer.control.value === '' || group.layer === layer.control.value) && (seen.control.value === '' || group.seen === seen.control.value));
    plot.show(predictedAgainstMeasured(thinned(chosen.flatMap(pointsOf))));
    fill(rows, layerTable(chosen), groupTable(chosen, (group) => {
      choose(group);
      detail.scrollIntoView({ block: 'nearest' });
    }));
    if (chosen[0]) choose(chosen[0]);
  };
  for (const control of [layer.control, seen.control]) control.addEventListener('change', show);
  const section = h('section', { 'aria-labelledby': 'accuracy-title' },
    h('h1', { id: 'accuracy-title' }, 'How accurate are the predictions?'),
    h('p', { class: 'lead' }, 'Predictions compared with measurements that no fit has seen, by group. Errors cover all rows of a group; the plots show a few rows, evenly spaced by size.'),
    h('div', { class: 'stack' }, h('div', { class: 'card row' }, layer.element, seen.element), h('div', { class: 'plots' }, plot.element), rows, detail, scenarioCard(facts)));
  queueMicrotask(show);
  return { element: section };
}

const pointsOf = (group: Group): ComparedPoint[] => group.points.map(([measured, predicted]) => ({ layer: group.layer, name: group.group, unit: group.unit, measured, predicted }));

// Every n-th, so that no group is favoured.
function thinned(points: ComparedPoint[]): ComparedPoint[] {
  const each = Math.ceil(points.length / mostDrawn);
  return points.filter((_, i) => i % each === 0);
}

const off = (value: number): string => `${compact(value, 2)}%`;

// Means of a layer: over its rows, whatever the group.
function layerTable(groups: Group[]): HTMLElement {
  const layers = [...new Set(groups.map((group) => group.layer))];
  return table('Layers', [{ title: 'layer' }, { title: 'groups', number: true }, { title: 'rows', number: true }, { title: 'mean error of all rows', number: true }, { title: 'median over the groups', number: true }],
    layers.map((name) => {
      const own = groups.filter((group) => group.layer === name);
      const count = own.reduce((sum, group) => sum + group.count, 0);
      const medians = own.map((group) => group.median).sort((a, b) => a - b);
      return [name, String(own.length), compact(count), off(own.reduce((sum, group) => sum + group.mape * group.count, 0) / count), off(medians[medians.length >> 1] ?? 0)];
    }));
}

function groupTable(groups: Group[], onChoose: (group: Group) => void): HTMLElement {
  return table('Groups of measurements',
    [{ title: 'group' }, { title: 'layer' }, { title: 'rows', number: true }, { title: 'mean error', number: true }, { title: 'median', number: true }, { title: 'in the 90% interval', number: true }, { title: 'what was known' }],
    groups.map((group) => [h('button', { type: 'button', class: 'link', onclick: () => onChoose(group) }, group.group), group.layer, compact(group.count), off(group.mape), off(group.median),
      group.within_interval === undefined ? '–' : off(group.within_interval), group.seen]));
}

function groupParts(group: Group, plot: Plot): HTMLElement[] {
  const errorOf = (row: { measured: number; predicted: number }) => `${compact(100 * (row.predicted / row.measured - 1), 2)}%`;
  return [
    h('section', { class: 'card', 'aria-label': 'Group' }, h('h2', {}, group.group),
      h('p', { class: 'muted' }, `${group.quantity[0]!.toUpperCase()}${group.quantity.slice(1)}; ${group.seen}. Source: ${group.source}.`),
      figures([{ name: 'Mean error', value: off(group.mape) }, { name: 'Median error', value: off(group.median) }, { name: 'Rows', value: compact(group.count), note: `${group.points.length} drawn` },
        ...(group.within_interval === undefined ? [] : [{ name: 'In the 90% interval', value: off(group.within_interval) }])])),
    h('div', { class: 'plots' }, plot.element),
    table('Its worst rows', [{ title: 'row' }, { title: 'measured', number: true }, { title: 'predicted', number: true }, { title: 'off by', number: true }],
      group.worst.map((row) => [row.row, `${compact(row.measured)} ${group.unit}`, `${compact(row.predicted)} ${group.unit}`, errorOf(row)])),
    commandCard(group.command.split(' && ')),
  ];
}

function scenarioCard(facts: Facts): HTMLElement {
  const output = h('div', { class: 'stack' });
  const task = new Task(output);
  const measured = facts.scenarios.filter((scenario) => scenario.measured || scenario.checks?.length);
  const row = (name: string, metric: string, predicted: number | undefined, value: number, source: string): string[] =>
    [name, metric, predicted === undefined ? '–' : compact(predicted), compact(value),
      predicted === undefined ? '–' : `${compact(100 * (predicted / value - 1), 2)}%`, source];
  const predict = () => void task.start(async (signal, say) => {
    say('Predicting the scenarios…');
    const result = await run<SuiteAnswer>({ command: 'suite', only: measured.map((scenario) => scenario.id) }, signal, say);
    const of = new Map(result.answer.scenarios.map((scenario) => [scenario.id, scenario]));
    fill(output, table('Measured scenarios of the suite',
      [{ title: 'scenario or similar configuration' }, { title: 'metric' }, { title: 'predicted', number: true }, { title: 'measured', number: true }, { title: 'off by', number: true }, { title: 'source' }],
      measured.flatMap((scenario) => {
        const answered = of.get(scenario.id);
        const own = scenario.measured
          ? [row(`${scenario.id} ${scenario.name}`, `${scenario.metric}, ${scenario.unit}`, answered?.answer?.value, scenario.measured.value, scenario.measured.source)] : [];
        return [...own, ...(scenario.checks ?? []).map((check, at) =>
          row(`${scenario.id}, similar: ${check.name}`, check.unit, answered?.checks?.[at]?.predicted?.value, check.measured, check.source))];
      })), commandCard([result.command_line]));
    say('Done.');
  });
  return h('section', { class: 'card', 'aria-labelledby': 'scenarios-title' },
    h('h2', { id: 'scenarios-title' }, 'Scenarios of the suite'),
    h('p', { class: 'muted' }, `${measured.length} of ${facts.scenarios.length} scenarios are backed by a measurement of the scenario or of a similar configuration. Predict them now:`),
    h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'primary', onclick: predict }, 'Predict')),
    task.element, output);
}
