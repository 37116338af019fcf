// The address holds the question: sharing, going back and reloading ask it again.
import type { Question } from './api';

export interface Place { tab: string; params: URLSearchParams }

export function place(hash = location.hash): Place {
  const [tab = '', query = ''] = hash.replace(/^#/, '').split('?', 2);
  return { tab, params: new URLSearchParams(query) };
}

export function hashOf(tab: string, params: URLSearchParams): string {
  const query = params.toString();
  return query ? `#${tab}?${query}` : `#${tab}`;
}

export function paramsOf(question: Question): URLSearchParams {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(question)) {
    for (const one of Array.isArray(value) ? value : [value]) params.append(name, String(one));
  }
  return params;
}

// Values are texts: forms take them as if they were typed.
export type Typed = (name: string) => string;
export const typed = (params: URLSearchParams): Typed => (name) => params.getAll(name).join(',');
export const typedOf = (question: Question): Typed => typed(paramsOf(question));

// Goes to a place; to where one is already, again.
export function go(hash: string): void {
  if (location.hash === hash) window.dispatchEvent(new HashChangeEvent('hashchange'));
  else location.hash = hash;
}

// Of this browser alone; the server keeps none of it.
export interface Remembered { hash: string; title: string; verdict: string; at: number }

const mostRemembered = 30;

export function remembered(): Remembered[] {
  try {
    const all = JSON.parse(localStorage.getItem('history') ?? '[]') as Remembered[];
    return Array.isArray(all) ? all : [];
  } catch {
    return [];
  }
}

export function remember(one: Omit<Remembered, 'at'>): void {
  const all = [{ ...one, at: Date.now() }, ...remembered().filter(({ hash }) => hash !== one.hash)].slice(0, mostRemembered);
  localStorage.setItem('history', JSON.stringify(all));
  window.dispatchEvent(new Event('remembered'));
}

export function forget(): void {
  localStorage.removeItem('history');
  window.dispatchEvent(new Event('remembered'));
}
