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

export type Control = HTMLInputElement | HTMLSelectElement;

// A label tied to its control, and what is wrong with what stands in it.
export function labelled(label: string, control: Control): HTMLElement {
  control.id ||= `field-${++fieldCount}`;
  return h('div', { class: 'field' }, h('label', { for: control.id }, label), control, problemOf(control));
}

// Beside the control rather than in the browser's bubble, which goes away and looks different everywhere.
export function problemOf(control: Control): HTMLElement {
  control.id ||= `field-${++fieldCount}`;
  const problem = h('span', { class: 'problem', id: `${control.id}-problem` });
  control.setAttribute('aria-describedby', problem.id);
  control.addEventListener('invalid', () => {
    problem.textContent = control.validationMessage;
    control.setAttribute('aria-invalid', 'true');
  });
  const clear = () => {
    if (!control.validity.valid) return;
    problem.textContent = '';
    control.removeAttribute('aria-invalid');
  };
  control.addEventListener('input', clear);
  control.addEventListener('change', clear);
  return problem;
}

// Whether all that a form asks for is there; else says what is not, and goes to the first of it.
export function isComplete(form: HTMLFormElement): boolean {
  if (form.checkValidity()) return true;
  const wrong = [...form.elements].find((element) => element.matches('input:invalid, select:invalid')) as HTMLElement | undefined;
  const folded = wrong?.closest('details');
  if (folded) folded.open = true;
  wrong?.focus();
  return false;
}

// What is not shown is not asked for either.
export function showField(field: { element: HTMLElement; control: Control }, isShown: boolean): void {
  field.element.hidden = !isShown;
  field.control.disabled = !isShown;
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

// Whether it worked. Over plain http from another machine the browser offers no clipboard, but still copies a selection.
async function copyText(text: string): Promise<boolean> {
  try {
    if (navigator.clipboard) {
      await navigator.clipboard.writeText(text);
      return true;
    }
  } catch {
    // The page may not use it: a selection may still work.
  }
  const focused = document.activeElement;
  const area = h('textarea', { value: text, readonly: true, 'aria-hidden': 'true', style: 'position: fixed; opacity: 0' });
  document.body.append(area);
  area.select();
  const copied = document.execCommand('copy');
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return copied;
}

// A button that copies a text and then says for a moment whether it did.
export function copyButton(label: string, done: string, text: () => string, properties: Properties = {}): HTMLButtonElement {
  const button = h('button', { type: 'button', ...properties, onclick: async () => {
    button.textContent = await copyText(text()) ? done : 'Not copied';
    setTimeout(() => { button.textContent = label; }, 1500);
  } }, label);
  return button;
}

// What a form's submission does once the form is complete.
export function submits(work: () => void): (event: Event) => void {
  return (event) => {
    event.preventDefault();
    if (isComplete(event.currentTarget as HTMLFormElement)) work();
  };
}
