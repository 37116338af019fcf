// What five people come for, done with the page alone: each within a minute.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { answered, choose, complaints, open, patience, press, root, shot, shown, skip, textOf, type, violations } from '../test_support/browser.mjs';

const most = 60_000;  // ms, a person's typing not counted

// A task from the page as it opens to an answer; and the answer is accessible.
function task(name, work) {
  test(name, { skip, timeout: patience }, async () => {
    const page = await open('', { height: 800 });
    await page.waitForSelector(`${shown} .bigs`, { timeout: patience });
    const begin = Date.now();
    await work(page);
    const took = Date.now() - begin;
    assert.ok(took < most, `${took} ms`);
    assert.deepEqual(await violations(page), []);
    await page.close();
  });
}

const asks = async (page, done = /Done/) => {
  await press(page, 'Ask');
  await answered(page, done);
};
const select = async (page, label, value) => (await page.waitForSelector(`${shown} ::-p-aria([name="${label}"][role="combobox"])`)).select(value);
const upload = async (page, ...files) => (await page.waitForSelector(`${shown} input[type="file"]`)).uploadFile(...files.map((file) => join(root, file)));

task('a serving engineer asks whether four H100 serve a 70B model within the goals', async (page) => {
  await page.type(`${shown} form.search input`, 'llama 70b fp8 on 4 h100, 2 req/s');
  await page.keyboard.press('Enter');
  await page.waitForFunction((selector) => /70B on 4 × .* at 2 requests/.test(document.querySelector(`${selector} .subject`)?.textContent ?? ''), { timeout: patience }, shown);
  await answered(page, /Done/);
  assert.match(await textOf(page, '.verdict'), /[Mm]eets both goals|Misses/);
  assert.match(await textOf(page, '.bigs'), /First token, p99.*90%: .*Per million output tokens/);
});

task('a capacity planner asks what a day of traffic costs with autoscaling', async (page) => {
  await choose(page, 'day');
  await type(page, 'Mean requests per second', 3);
  await asks(page);
  assert.match(await textOf(page, '.verdict'), /^\$[\d,.]+ a day$/);
  assert.match(await textOf(page, '.sentence'), /replicas serve/);
  assert.equal(await page.$$eval(`${shown} .plot svg`, (plots) => plots.length), 3);
  await shot(page, 'day');
});

task('a researcher asks for one fp8 GEMM and sees it under the fp8 roof', async (page) => {
  await choose(page, 'kernel');
  await select(page, 'dtype', 'fp8');
  await type(page, 'm', 2048);
  await asks(page);
  assert.match(await textOf(page, '.verdict'), /µs, [\d.]+% of the roofline/);
  const [row] = await page.$$eval(`${shown} table[aria-label="Roofline, numbers"] tbody tr`, (all) => all.map((one) => [...one.cells].map((cell) => cell.textContent)));
  assert.equal(row[1], 'fp8');
  assert.ok(parseFloat(row[4]) > 10 && parseFloat(row[4]) <= 100, `${row[4]} of its roof`);
  assert.ok(await page.$$eval(`${shown} table[aria-label="Time against m, numbers"] tbody tr`, (rows) => rows.length) >= 8);
  assert.match(await textOf(page, '.command pre'), /^foretoken kernel gemm --device h100_sxm --dtype fp8 --m 2048/);
  await shot(page, 'kernel');
});

task('an architect maps ResNet-50 onto an accelerator', async (page) => {
  await choose(page, 'accel');
  await select(page, 'Design', 'eyeriss_v1');
  await asks(page);
  assert.match(await textOf(page, '.verdict'), /ms and [\d.]+ mJ/);
  assert.match(await textOf(page, 'table[aria-label="Layers"]'), /conv1/);
  await shot(page, 'accelerator');
});

task('an edge engineer uploads a network and learns what to change', async (page) => {
  let sent = 0;
  page.on('request', (request) => { if (request.url().endsWith('/api/run')) sent = Math.max(sent, request.postData()?.length ?? 0); });
  await choose(page, 'edge');
  await upload(page, 'data/edge/networks/mobilenet_v2.onnx');
  await asks(page);
  assert.match(await textOf(page, '.verdict'), /ms per run/);
  assert.match(await textOf(page, 'section[aria-label="What to change"]'), /depthwise/);
  assert.match(await textOf(page, '.command pre'), /--onnx mobilenet_v2\.onnx/);
  assert.ok(sent > 10_000 && sent < 1_000_000, `${sent} bytes: the weights stay in the browser`);
  await shot(page, 'edge');
});

task('an operator compares a run of the server with its prediction, then calibrates', async (page) => {
  const folder = mkdtempSync(join(tmpdir(), 'foretoken-page-'));
  await (await page.createCDPSession()).send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: folder });
  await choose(page, 'run');
  await upload(page, 'examples/runs/small/run.json', 'examples/runs/small/requests.csv');
  await asks(page);
  assert.match(await textOf(page, '.verdict'), /The prediction differs: (the host needs|every kernel takes) [\d.]+ times as long/);
  assert.match(await textOf(page, '.bigs'), /measured 25\.6 ms/);
  await shot(page, 'run');
  await select(page, 'What to do', 'calibrate');
  await asks(page);
  const [, before, after] = (await textOf(page, '.verdict')).match(/Mean error ([\d.]+)% before, ([\d.]+)% after/);
  assert.ok(Number(after) < Number(before) / 3, `${before}% before, ${after}% after`);
  await press(page, 'Save deployment file');
  for (const end = Date.now() + 10_000; !readdirSync(folder).includes('deployment.json') && Date.now() < end;) await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(JSON.parse(readFileSync(join(folder, 'deployment.json'), 'utf8')).format, 1);
});

test('answers about parts fit a phone, in the dark too', { skip, timeout: 2 * patience }, async () => {
  for (const [hash, theme] of [['#ask?command=kernel+attention_decode&device=l40s&batch=64&heads=32&kv_heads=8&kv_len=4096', 'dark'], ['#ask?command=accel&arch=tpu_v1&gemm=128x3072x768', 'light'],
    ['#ask?command=edge&model=Qwen3-0.6B&quantization=int4_wo&context_len=512&device=neoverse_v1_ort', 'dark']]) {
    const page = await open(hash, { width: 390, height: 844, theme });
    await answered(page, /Done/);
    assert.deepEqual(await violations(page), [], hash);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${hash} is wider than a phone`);
    await page.close();
  }
});

test('a file that is no network, or too large, is told where the answer would be', { skip }, async () => {
  const page = await open('#ask?command=edge&device=neoverse_v1_ort');
  assert.match(await textOf(page, '.status'), /Choose the ONNX file again/);
  await (await page.waitForSelector(`${shown} input[type="file"]`)).uploadFile(join(root, 'README.md'));
  await press(page, 'Ask');
  await page.waitForSelector(`${shown} .error`);
  assert.match(await textOf(page, '.error'), /\.onnx/);
  assert.doesNotMatch(await textOf(page, '.error'), /\/dev\/shm|\/tmp/);
  assert.deepEqual(await violations(page), []);
  await page.close();
});

test('nothing was logged as wrong, and no other server was asked', { skip }, () => {
  assert.deepEqual(complaints, []);
});
