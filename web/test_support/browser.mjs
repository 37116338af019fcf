// The page in a real Chromium against the program itself: FORETOKEN names it (default: build/foretoken).
// Tests are skipped where there is no Chromium. With SHOTS=FOLDER they leave screenshots there.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import axe from 'axe-core';
import puppeteer from 'puppeteer-core';

export const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const program = process.env.FORETOKEN ?? join(root, 'build/foretoken');
const chromium = process.env.CHROMIUM ?? ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
export const skip = !chromium ? 'no Chromium here' : !existsSync(program) ? `no program at ${program}` : false;
export const sections = ['ask', 'compare', 'explore', 'timeline', 'accuracy', 'library'];
export const patience = 180_000;

let server, browser, address;
export const complaints = [];

// The process and its address.
export async function startServer() {
  const started = spawn(program, ['ui', '--port', '0', '--no-open']);
  const at = await new Promise((resolve, reject) => {
    started.stderr.on('data', (data) => {
      const found = /http:\S+/.exec(String(data));
      if (found) resolve(found[0]);
    });
    started.on('exit', (status) => reject(new Error(`foretoken ui ended with status ${status}`)));
  });
  return [started, at];
}

before(async () => {
  if (skip) return;
  [server, address] = await startServer();
  browser = await puppeteer.launch({ executablePath: chromium, args: ['--no-sandbox'], protocolTimeout: patience });
});

after(async () => {
  await browser?.close();
  server?.kill('SIGTERM');
});

// A page of its own for each test; what it logs as wrong, and what it asks of other servers, is a complaint.
export async function open(section, { width = 1280, height = 900, theme = 'light', at = address } = {}) {
  const page = await browser.newPage();
  page.on('console', (message) => ['error', 'warning', 'warn'].includes(message.type()) && complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('request', (request) => /^https?:/.test(request.url()) && !request.url().startsWith(at) && complaints.push(`asks ${request.url()}`));
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }, { name: 'prefers-reduced-motion', value: 'reduce' }]);
  await page.goto(`${at}${section.startsWith('#') ? section : `#${section}`}`, { timeout: patience });
  await page.waitForSelector('main > section h1');
  return page;
}

export const shown = 'main > section:not([hidden])';
const serving = '#ask?command=serve&model=Llama-3.1-8B&device=h100_sxm&random_range_ratio=0.5&goodput=ttft:500&goodput=tpot:50';  // what the fields begin with


export async function press(page, text) {
  const button = await page.waitForSelector(`${shown} ::-p-xpath(.//button[normalize-space()="${text}"])`);
  await button.click();
}

export async function answered(page, pattern = /Done|Step:/) {
  await page.waitForFunction((selector, source) => new RegExp(source).test(document.querySelector(`${selector} .status`)?.textContent ?? ''),
    { timeout: patience }, shown, pattern.source);
  assert.equal(await page.$(`${shown} .error`), null);
}

// Of the kinds of questions on Ask.
export const choose = (page, kind) => page.$eval(`${shown} input[name="ask-kind"][value="${kind}"]`, (radio) => radio.click());

// The fields of Ask as they begin, and their answer; what the page opens with is an example.
export async function openAsk(options) {
  const page = await open(`${serving}&request_rate=8&num_prompts=60&random_input_len=1024&random_output_len=256`, options);
  await answered(page, /Done/);
  return page;
}

export const textOf = (page, selector) => page.$eval(`${shown} ${selector}`, (element) => element.textContent);

export async function type(page, label, value, within = '') {
  const field = await page.waitForSelector(`${shown} ${within} ::-p-aria([name="${label}"])`);
  await field.focus();
  await field.evaluate((element) => element.select());
  await field.type(String(value));
}

export async function violations(page) {
  await page.evaluate(axe.source);
  const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return result.violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target.join(' ')} ${node.failureSummary}`));
}

// From the top of the page, or of what `selector` names.
export async function shot(page, name, selector) {
  if (!process.env.SHOTS) return;
  await page.evaluate((of) => {
    window.scrollTo(0, 0);
    if (of) window.scrollTo(0, document.querySelector(of).getBoundingClientRect().top - 80);
  }, selector && `${shown} ${selector}`);
  await page.screenshot({ path: join(process.env.SHOTS, `ui-${name}.png`), optimizeForSpeed: false });
}
