// Ask: a question in words or fields, the verdict first, then what stands behind it.
import { run, type CollectiveAnswer, type Facts, type Fields, type PlanAnswer, type Question, type ServeAnswer, type TrainAnswer, type TrainPlanAnswer } from '../api';
import { kindOf, type Kind } from '../ask_kind';
import { partKinds } from '../ask_parts';
import { phrases, understand } from '../ask_text';
import { CollectiveForm } from '../collective_form';
import { collectiveParts } from '../collective_answer';
import { copyButton, fill, h, submits } from '../dom';
import { MemoryGauge } from '../gauge';
import { GoalFields } from '../goal_fields';
import { commandCard, exportButtons, withoutDrawn } from '../parts';
import { planParts, planVerdict } from '../plan_parts';
import { Plot } from '../plot';
import { reportButton } from '../report';
import { serveParts, serveVerdict, subjectOf, sweep } from '../serve_answer';
import { ServingForm } from '../serving_form';
import { forget, go, hashOf, paramsOf, remember, remembered, typed } from '../state';
import { Task } from '../task';
import { trainCards, trainHeadline, trainPlanCards } from '../train_answer';
import { TrainForm } from '../train_form';
import type { Tab } from './tab';

const chipTabs: Record<string, string> = { step: 'explore' };

export function askTab(facts: Facts): Tab {
  const output = h('div', { class: 'stack answer' });
  const task = new Task(output);
  const kinds = askKinds(facts, () => changed());
  let kind = 'serve';
  let answered = '';  // the address of the answer that is shown
  const fields = h('div', { class: 'stack' });
  const radios = new Map(Object.entries(kinds).map(([id, { title, about, group }]) => {
    const radio = h('input', { type: 'radio', name: 'ask-kind', value: id, checked: id === kind, 'aria-label': `${group}: ${title}` });
    radio.addEventListener('change', () => choose(id));
    return [id, { radio, label: h('label', { title: about }, radio, h('span', {}, title)) }] as const;
  }));
  const groups = [...new Set(Object.values(kinds).map(({ group }) => group))].map((group) => h('div', { class: 'segments', role: 'radiogroup', 'aria-label': group },
    h('b', { 'aria-hidden': 'true' }, group), ...Object.entries(kinds).filter(([, one]) => one.group === group).map(([id]) => radios.get(id)!.label)));
  const choose = (id: string) => {
    kind = id;
    radios.get(id)!.radio.checked = true;
    fill(fields, ...kinds[id]!.elements);
    kinds[id]!.chosen?.();
    changed();
  };

  const address = () => hashOf('ask', paramsOf(kinds[kind]!.question()));
  const staleNote = h('p', { class: 'stale-note', hidden: true }, 'The question has changed since this answer. Ask again to update it.');
  const changed = () => {
    const isStale = answered !== '' && output.childElementCount > 0 && address() !== answered;
    output.classList.toggle('stale', isStale);
    staleNote.hidden = !isStale;
  };

  const ask = (label = '') => {
    const own = address();
    void task.start(async (signal, say) => {
      say('Asking…');
      const [result, shown] = await kinds[kind]!.ask(signal, say);
      answered = own;
      fill(output, label ? h('p', { class: 'example-note' }, label) : null, ...shown.parts,
        commandCard([withoutDrawn(result.command_line, facts.drawn)], [reportButton(shown.title, output), shareButton(own), ...exportButtons(`foretoken-${kind.replaceAll(' ', '-')}`, result.answer, shown.rows)]));
      changed();
      if (!label) remember({ hash: own, title: shown.title, verdict: shown.verdict });
      if (!label) task.reveal();
      await shown.after?.();
      say('Done.');
    });
  };

  const search = h('input', { type: 'search', placeholder: 'llama 70b on 8 h100, 5 req/s', 'aria-label': 'Question in words', autocomplete: 'off', spellcheck: 'false', list: 'ask-phrases' });
  const heard = h('p', { class: 'heard', role: 'status' });
  const askWords = () => {
    const { question, problem, ignored } = understand(search.value, facts);
    heard.className = problem ? 'heard missed' : 'heard';
    heard.textContent = problem ?? (ignored.length > 0 ? `Not understood: ${ignored.join(', ')}. See the fields for what was asked.` : '');
    if (!question) return;
    task.expect('Asking…');
    go(hashOf('ask', paramsOf(question)));
  };
  const chips = facts.examples.map(({ title, question }) => h('a', { class: 'chip', href: hashOf(chipTabs[question.command] ?? 'ask', paramsOf(question)) }, title));

  const recent = h('details', { class: 'card recent' });
  const showRecent = () => {
    const all = remembered();
    recent.hidden = all.length === 0;
    fill(recent, h('summary', {}, `Recent questions (${all.length})`),
      h('ul', { class: 'list' }, ...all.map(({ hash, title, verdict }) => h('li', {}, h('a', { href: hash }, title, h('small', {}, verdict))))),
      h('button', { type: 'button', class: 'small', onclick: forget }, 'Clear'));
  };
  window.addEventListener('remembered', showRecent);
  showRecent();

  const element = h('section', { 'aria-labelledby': 'ask-title' },
    h('div', { class: 'hero' },
      h('h1', { id: 'ask-title' }, 'How fast, how much memory, what cost?'),
      h('form', { class: 'search', role: 'search', onsubmit: (event: Event) => { event.preventDefault(); askWords(); } }, search, h('button', { type: 'submit', class: 'primary' }, 'Predict')),
      h('datalist', { id: 'ask-phrases' }, ...phrases.map((phrase) => h('option', { value: phrase }))),
      heard, h('nav', { class: 'chips', 'aria-label': 'Examples' }, ...chips)),
    h('div', { class: 'split' },
      h('div', { class: 'stack side' },
        h('form', { class: 'card', novalidate: true, onsubmit: submits(() => { task.expect('Asking…'); go(address()); }), oninput: () => changed(), onchange: () => changed(), 'aria-label': 'Question' },
          h('div', { class: 'kinds', role: 'group', 'aria-label': 'What to ask' }, ...groups),
          fields, h('div', { class: 'buttons' }, h('button', { type: 'submit', class: 'primary' }, 'Ask'))),
        recent),
      h('div', { class: 'stack' }, task.element, staleNote, output)));

  return {
    element,
    restore: (params) => {
      const id = kindOf(params);
      if (!kinds[id]) {
        // Nothing was asked: the page opens with an example's answer, which the server has ready.
        if (answered === '') {
          const first = facts.examples[0]!.question;
          choose(first.command);
          kinds[kind]!.put(paramsOf(first));
          ask('Example, computed by this server when it started. Change anything and ask again.');
        }
        return;
      }
      choose(id);
      kinds[id]!.put(params);
      const missing = kinds[id]!.missing?.() ?? '';
      if (missing !== '') {
        task.tell(missing);
        return;
      }
      changed();
      ask();
    },
  };
}

function shareButton(hash: string): HTMLElement {
  return copyButton('Copy link', 'Link copied', () => new URL(hash, location.href).href);
}

// How far a run is, by what the server tells of it.
const shareIn = (text: string, all: number): number | undefined => {
  const done = Number(/^(\d+) (?:requests served|layouts simulated)/.exec(text)?.[1]);
  return Number.isFinite(done) && all > 0 ? Math.min(0.99, done / all) : undefined;
};

function askKinds(facts: Facts, changed: () => void): Record<string, Kind> {
  const serving = new ServingForm(facts, 'ask', { model: 'Llama-3.1-8B', device: 'h100_sxm' });
  const goals = new GoalFields();
  const gauge = new MemoryGauge(serving, changed);
  const servingElements = [...serving.fieldsets.slice(0, 1), gauge.element, ...serving.fieldsets.slice(1, 2), goals.element, ...serving.fieldsets.slice(2)];
  for (const element of serving.fieldsets) for (const kind of ['input', 'change']) element.addEventListener(kind, () => !finds && gauge.soon());
  let finds = false;
  const chooseServing = (isSearch: boolean) => {
    finds = isSearch;
    serving.findLayout(isSearch);
    goals.need(isSearch);
    if (isSearch) gauge.hide();
    else gauge.soon();
  };
  const putServing = (params: URLSearchParams) => {
    serving.put(typed(params));
    goals.load(params.getAll('goodput').concat(params.getAll('slo')).join(','), params.get('at') ?? '');
    if (!finds) gauge.soon();
  };
  const training = new TrainForm(facts, { precision: 'bf16' });
  const collective = new CollectiveForm(facts);
  const searched = Number(facts.fields['plan serve']?.most_simulated?.usual ?? 0);
  const { kernel, ...others } = partKinds(facts);
  return {
    serve: {
      title: 'Check', about: 'Check one setup', group: 'Serve', elements: servingElements, chosen: () => chooseServing(false), put: putServing,
      question: () => ({ command: 'serve', ...serving.typedFlags(), ...goals.goodput(), ...(goals.percentile() === 99 ? {} : { at: goals.percentile() }) }),
      ask: async (signal, say) => {
        const wanted = goals.goals(), at = goals.percentile();
        const flags: Fields = { ...serving.flags(), ...facts.drawn, ...goals.goodput() };
        const result = await run<ServeAnswer>({ command: 'serve', ...flags }, signal, (text) => say(text, shareIn(text, Number(flags.num_prompts))));
        const { answer } = result;
        const curve = new Plot(`Latency against ${serving.load().kind === 'rate' ? 'rate' : 'concurrent requests'}`);
        return [result, { parts: serveParts(result, facts, wanted, at, curve), title: subjectOf(answer, facts), verdict: serveVerdict(answer, wanted, at).headline,
          rows: [['metric', 'value', 'low', 'high'], ...Object.entries(answer.intervals ?? {}).map(([name, of]) => [name, of.value, of.low, of.high])],
          after: () => answer.completed > 0 ? sweep(serving, at, wanted, curve, signal, say) : Promise.resolve() }];
      },
    },
    'plan serve': {
      title: 'Find', about: 'Find the best layout', group: 'Serve', elements: servingElements, chosen: () => chooseServing(true), put: putServing,
      question: () => ({ command: 'plan serve', ...serving.planFlags(), ...goals.slo() }),
      ask: async (signal, say) => {
        const question: Question = { command: 'plan serve', ...serving.planFlags(), ...goals.slo() };
        const result = await run<PlanAnswer>(question, signal, (text) => say(text, shareIn(text, searched)));
        return [result, { parts: planParts(result, facts, question), title: `${question.model} on ${String(question.hardware).replaceAll(',', ' or ')}`, verdict: planVerdict(result.answer),
          rows: [['layout', 'devices', 'capacity_requests_per_s', 'low', 'high', 'usd_per_hour', 'joules_per_output_token'],
            ...result.answer.ranking.map((point) => [point.layout, point.devices, point.capacity_requests_per_s.value, point.capacity_requests_per_s.low, point.capacity_requests_per_s.high,
              point.usd_per_hour ?? '', point.run?.joules_per_output_token?.value ?? ''])] }];
      },
    },
    train: {
      title: 'Check', about: 'Check one training plan', group: 'Train', elements: [training.element], chosen: () => training.findPlan(false), put: (params) => training.put(typed(params)), question: () => training.question(),
      ask: async (signal, say) => {
        const result = await run<TrainAnswer>(training.question(), signal, say);
        const { answer } = result;
        return [result, { parts: trainCards(answer, facts), title: `Training ${answer.model} on ${answer.plan.devices} × ${answer.device}`, verdict: trainHeadline(answer),
          rows: [['part', 'seconds'], ...Object.entries(answer.parts_seconds)] }];
      },
    },
    'plan train': {
      title: 'Find', about: 'Find the fastest plan', group: 'Train', elements: [training.element], chosen: () => training.findPlan(true), put: (params) => training.put(typed(params)), question: () => training.question(),
      ask: async (signal, say) => {
        const result = await run<TrainPlanAnswer>(training.question(), signal, say);
        const { answer } = result;
        return [result, { parts: trainPlanCards(result, facts), title: `Plan for training ${answer.model} on ${answer.device}`, verdict: answer.fastest ? trainHeadline(answer.fastest) : 'No plan fits',
          rows: [['tensor', 'pipeline', 'data', 'seconds', 'mfu', 'memory_bytes'], ...answer.best.map(({ plan, seconds, mfu, memory_bytes }) => [plan.tensor, plan.pipeline, plan.data, seconds.value, mfu, memory_bytes])] }];
      },
    },
    kernel: kernel!,
    collective: {
      title: 'Network', about: 'One collective on a cluster', group: 'Parts', elements: [collective.element], put: (params) => collective.put(typed(params)), question: () => collective.question(),
      ask: async (signal, say) => {
        const result = await run<CollectiveAnswer>(collective.question(), signal, say);
        const { answer } = result;
        return [result, { parts: collectiveParts(answer, facts), title: `${answer.op} of ${answer.ranks} ranks on ${answer.machine}`, verdict: `${answer.rows.length} sizes`,
          rows: [['bytes', 'seconds', 'low', 'high', 'bus_bandwidth'], ...answer.rows.map((row) => [row.bytes, row.seconds.value, row.seconds.low, row.seconds.high, row.bus_bandwidth_bytes_per_second])] }];
      },
    },
    ...others,
  };
}
