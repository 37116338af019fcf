// A trace handed to the Perfetto page in another window, without a server in between. Only after a click, as it needs the internet.
import { h } from './dom';

const site = 'https://ui.perfetto.dev';
const patience = 15_000, pause = 100;  // ms

// Resolves with what to tell the reader.
function handOver(title: string, trace: ArrayBuffer): Promise<string> {
  const save = 'Save the trace instead and open it in your own copy of Perfetto.';
  if (!navigator.onLine) return Promise.resolve(`This computer is offline, and ${site} cannot be reached. ${save}`);
  const other = window.open(site);
  if (!other) return Promise.resolve(`The browser did not open ${site}: allow pop-ups for this page, or save the trace.`);
  return new Promise((resolve) => {
    const done = (text: string) => {
      clearInterval(asking);
      clearTimeout(waiting);
      window.removeEventListener('message', heard);
      resolve(text);
    };
    // The page answers once it is ready for a trace.
    const heard = (event: MessageEvent) => {
      if (event.origin !== site || event.data !== 'PONG') return;
      other.postMessage({ perfetto: { buffer: trace, title, fileName: 'foretoken-trace.json' } }, site);
      done('The trace is open in the other window. It stays in this browser: Perfetto uploads nothing.');
    };
    const asking = window.setInterval(() => other.postMessage('PING', site), pause);
    const waiting = window.setTimeout(() => done(`${site} did not answer: this computer may be offline. ${save}`), patience);
    window.addEventListener('message', heard);
  });
}

export function perfettoButton(title: string, trace: () => string): { button: HTMLElement; status: HTMLElement } {
  const status = h('p', { class: 'muted', role: 'status' });
  const button = h('button', { type: 'button', onclick: async () => {
    status.textContent = `Opening ${site}…`;
    status.textContent = await handOver(title, new TextEncoder().encode(trace()).buffer as ArrayBuffer);
  } }, 'Open in Perfetto');
  return { button, status };
}
