// Library: every number that predictions use, with its source.
import type { DeviceEntry, Fact, Facts, ModelEntry, WordFact } from '../api';
import { fill, h, labelled, table } from '../dom';
import { bytes, compact, dollars, parameters, shortName, words } from '../format';
import type { Tab } from './tab';

interface Entry { name: string; detail: string; search: string; show: () => HTMLElement }

export function libraryTab(facts: Facts): Tab {
  const kinds: Record<string, Entry[]> = { Devices: facts.devices.map(deviceEntry), Models: facts.models.map(modelEntry) };
  const list = h('ul', { class: 'list', 'aria-label': 'Entries' });
  const detail = h('section', { class: 'card', 'aria-live': 'polite', 'aria-label': 'Entry' });
  const count = h('p', { class: 'status', role: 'status' });
  const search = h('input', { type: 'search', placeholder: 'h200, Qwen, 80 GB…' });
  let kind = 'Devices';
  let chosen: Entry | undefined;

  const select = (entry: Entry | undefined) => {
    chosen = entry;
    fill(detail, entry ? entry.show() : h('p', { class: 'muted' }, 'Nothing found.'));
    for (const button of list.querySelectorAll('button')) button.setAttribute('aria-pressed', String(button.dataset.name === entry?.name));
  };
  const show = () => {
    const asked = search.value.toLowerCase().split(/\s+/);
    const found = kinds[kind]!.filter((entry) => asked.every((word) => entry.search.includes(word)));
    fill(list, ...found.map((entry) => h('li', {}, h('button', { type: 'button', 'data-name': entry.name, 'aria-pressed': 'false', onclick: () => select(entry) },
      entry.name, h('small', {}, entry.detail)))));
    count.textContent = `${found.length} of ${kinds[kind]!.length}`;
    select(found.find((entry) => entry.name === chosen?.name) ?? found[0]);
  };
  search.addEventListener('input', show);
  const radios = Object.keys(kinds).map((name) => h('label', {}, h('input', { type: 'radio', name: 'library-kind', value: name, checked: name === kind, onchange: () => { kind = name; show(); } }), name));
  show();
  return { element: h('section', { 'aria-labelledby': 'library-title' },
    h('h1', { id: 'library-title' }, 'Where do the numbers come from?'),
    h('p', { class: 'lead' }, 'Every number of every device and model, with its source.'),
    h('div', { class: 'split' },
      h('div', { class: 'card stack' }, h('div', { class: 'choices', role: 'radiogroup', 'aria-label': 'Kind' }, ...radios), labelled('Search', search), count, list),
      detail)) };
}

function deviceEntry(entry: DeviceEntry): Entry {
  const { file } = entry;
  return {
    name: file.title, detail: `${file.name} · ${file.architecture}`,
    search: [file.name, file.title, file.vendor, file.kind, file.architecture, ...(file.aliases ?? [])].join(' ').toLowerCase(),
    show: () => {
      const rows: string[][] = [];
      const shown = (value: number | string | boolean) => typeof value === 'number' ? compact(value, 4) : typeof value === 'boolean' ? (value ? 'yes' : 'no') : value;
      const add = (key: string, fact: Fact | WordFact) => rows.push([words(key.replace('dense_peak_tflops.', 'peak, ')).replace(/ (gb per s|gb|mib|mhz|w)$/, ''), `${shown(fact.value)} ${entry.units[key] ?? ''}`,
        `${fact.source}${fact.assumed ? ' (assumed)' : ''}${fact.note ? `. ${fact.note}` : ''}`]);
      for (const [key, value] of Object.entries(file)) {
        if (key === 'dense_peak_tflops') {
          for (const [type, fact] of Object.entries(file.dense_peak_tflops ?? {})) add(`${key}.${type}`, fact);
        } else if (typeof value === 'object' && value !== null && 'value' in value) {
          add(key, value as Fact | WordFact);
        }
      }
      if (entry.rent_usd_per_hour) rows.push(['rent', `${dollars(entry.rent_usd_per_hour.value)}/h`, entry.rent_usd_per_hour.source]);
      return h('div', { class: 'stack' }, h('h2', {}, file.title), h('p', { class: 'muted' }, `${file.name} · ${file.vendor} · ${file.architecture}`),
        file.note ? h('p', {}, file.note) : null, table(`Numbers of ${file.title}`, [{ title: 'number' }, { title: 'value', number: true }, { title: 'source' }], rows));
    },
  };
}

function modelEntry(model: ModelEntry): Entry {
  return {
    name: shortName(model.name), detail: `${parameters(model.parameters)} parameters · ${model.family}`,
    search: [model.name, model.family, ...model.aliases].join(' ').toLowerCase(),
    show: () => h('div', { class: 'stack' }, h('h2', {}, shortName(model.name)), h('p', { class: 'muted' }, `${model.name} · ${model.family}`),
      table(`Numbers of ${model.name}`, [{ title: 'number' }, { title: 'value' }], [
        ['parameters', `${parameters(model.parameters)}${model.published_parameters ? ` (published: ${parameters(model.published_parameters)})` : ''}`],
        ['active for each token', parameters(model.active_parameters)], ['weights', `${bytes(model.weight_bytes)}, ${model.scheme}`],
        ['KV cache', `${compact(model.kv_bytes_per_token)} bytes per token`], ['hidden size', compact(model.hidden)], ['vocabulary', compact(model.vocabulary)],
        ['longest context', `${compact(model.max_positions)} tokens`], ...model.layers.map((layer) => ['layers', `${layer.count} × ${layer.layer}`]),
        ...model.notes.map((text) => ['note', text]),
        ['source', `${model.source} (${model.checked})`], ...(model.aliases.length > 0 ? [['also', model.aliases.join(', ')]] : [])])),
  };
}
