// Building the document from code: elements, fields, tables.

type Child = Node | string | null | undefined | false;
type Properties = Record<string, unknown>;

// Keys that name properties of the element are set as such (onclick, value, ...), others as attributes.
export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag, properties: Properties = {}, ...children: Child[]): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on') || key === 'value' || key === 'checked' || key === 'disabled') {
      (element as unknown as Properties)[key] = value;
    } else {
      element.setAttribute(key, value === true ? '' : String(value));
    }
  }
  fill(element, ...children);
  return element;
}

export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren(...children.filter((child): child is Node | string => child !== null && child !== undefined && child !== false));
}

export interface Column {
  title: string;
  number?: boolean;
}

// The first cell of a row names it.
export function table(caption: string, columns: Column[], rows: (string | Node)[][]): HTMLElement {
  const kind = (i: number) => (columns[i]?.number ? 'number' : undefined);
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption },
    h('table', { 'aria-label': caption },
      h('thead', {}, h('tr', {}, ...columns.map((column, i) => h('th', { scope: 'col', class: kind(i) }, column.title)))),
      h('tbody', {}, ...rows.map((row) => h('tr', {}, ...row.map((cell, i) =>
        i === 0 ? h('th', { scope: 'row', class: kind(i) }, cell) : h('td', { class: kind(i) }, cell)))))));
}

let fieldCount = 0;

// A label tied to its control.
export function labelled(label: string, control: HTMLElement, hint?: string): HTMLElement {
  control.id ||= `field-${++fieldCount}`;
  const hintId = `${control.id}-hint`;
  if (hint) control.setAttribute('aria-describedby', hintId);
  return h('div', { class: 'field' }, h('label', { for: control.id }, label), control,
    hint ? h('span', { class: 'hint', id: hintId }, hint) : null);
}

export function announce(status: HTMLElement, text: string): void {
  status.textContent = text;
}

export function download(name: string, type: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = h('a', { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
