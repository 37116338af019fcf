// An answer as one HTML file that needs neither this server nor any other.
import { download, h } from './dom';

const shownOnly = 'button, .buttons, .stale-note, summary, [role="status"]';

export function reportButton(name: string, output: HTMLElement): HTMLElement {
  return h('button', { type: 'button', onclick: () => download(`${name}.html`, 'text/html', reportText(name, output)) }, 'Save report');
}

function reportText(title: string, output: HTMLElement): string {
  const copy = output.cloneNode(true) as HTMLElement;
  for (const element of copy.querySelectorAll(shownOnly)) element.remove();
  for (const details of copy.querySelectorAll('details')) details.open = true;
  for (const link of copy.querySelectorAll('a')) link.replaceWith(link.textContent ?? '');
  const style = [...document.querySelectorAll('style')].map((element) => element.textContent).join('\n');
  const page = document.implementation.createHTMLDocument(title);
  page.documentElement.lang = 'en';
  page.documentElement.dataset.theme = document.documentElement.dataset.theme ?? 'light';
  page.head.append(h('meta', { charset: 'utf-8' }), h('meta', { name: 'viewport', content: 'width=device-width, initial-scale=1' }), h('style', {}, style));
  page.body.append(h('main', {}, h('h1', {}, title), h('p', { class: 'muted' }, `Made by foretoken on ${new Date().toISOString().slice(0, 10)}. Every figure is a prediction.`), copy));
  return `<!doctype html>\n${page.documentElement.outerHTML}\n`;
}
