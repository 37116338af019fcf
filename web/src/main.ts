// The page: sections behind the links of the head, one of them shown; light or dark.
import { loadFacts, type Facts } from './api';
import { fill, h } from './dom';
import { redrawAll } from './plot';
import { place } from './state';
import { accuracyTab } from './tabs/accuracy';
import { askTab } from './tabs/ask';
import { compareTab } from './tabs/compare';
import { exploreTab } from './tabs/explore';
import { libraryTab } from './tabs/library';
import type { Tab } from './tabs/tab';
import { timelineTab } from './tabs/timeline';

const tabs: { id: string; title: string; make: (facts: Facts) => Tab }[] = [
  { id: 'ask', title: 'Ask', make: askTab },
  { id: 'compare', title: 'Compare', make: compareTab },
  { id: 'explore', title: 'Explore', make: exploreTab },
  { id: 'timeline', title: 'Timeline', make: timelineTab },
  { id: 'accuracy', title: 'Accuracy', make: accuracyTab },
  { id: 'library', title: 'Library', make: libraryTab },
];

const byId = (id: string): HTMLElement => document.getElementById(id)!;

function startTheme(): void {
  const choice = byId('theme') as HTMLSelectElement;
  const system = matchMedia('(prefers-color-scheme: dark)');
  const apply = () => {
    const dark = choice.value === 'dark' || (choice.value === 'auto' && system.matches);
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    redrawAll();
  };
  choice.value = localStorage.getItem('theme') ?? 'auto';
  choice.addEventListener('change', () => {
    localStorage.setItem('theme', choice.value);
    apply();
  });
  system.addEventListener('change', apply);
  apply();
}

async function start(): Promise<void> {
  startTheme();
  const content = byId('content');
  const links = tabs.map((tab) => h('a', { href: `#${tab.id}` }, tab.title));
  fill(byId('sections'), ...links);
  let facts: Facts;
  try {
    facts = await loadFacts();
  } catch (error) {
    fill(content, h('p', { class: 'error', role: 'alert' }, `The server does not answer: ${String(error)}`));
    return;
  }
  // Made when first looked at, and kept: what was asked stays while one looks elsewhere.
  const made = new Map<string, Tab>();
  let shown = '';
  fill(content);
  const show = (moved: boolean) => {
    const { tab: name, params } = place();
    const asked = tabs.find((tab) => tab.id === name) ?? tabs[0]!;
    let tab = made.get(asked.id);
    if (!tab) {
      tab = asked.make(facts);
      made.set(asked.id, tab);
      content.append(tab.element);
    }
    for (const other of made.values()) other.element.hidden = other !== tab;
    links.forEach((link, i) => tabs[i] === asked ? link.setAttribute('aria-current', 'page') : link.removeAttribute('aria-current'));
    document.title = `${asked.title} · foretoken`;
    if (shown !== asked.id) {
      if (moved) content.focus({ preventScroll: true });
      window.scrollTo(0, 0);
    }
    shown = asked.id;
    redrawAll();
    tab.restore?.(params);
  };
  window.addEventListener('hashchange', () => {
    if (location.hash !== '#content') show(true);
  });
  show(false);
}

void start();
