// The page in a real Chromium (browser.mjs): every section, kind of question and error.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { answered, choose, complaints, open, openAsk, patience, press, sections, shot, shown, skip, startServer, textOf, type, violations } from '../test_support/browser.mjs';

test('a question is answered with a sentence, figures, plots and the command', { skip }, async () => {
  const page = await openAsk();
  await type(page, 'Requests', 120);
  await press(page, 'Ask');
  await answered(page, /Done/);
  assert.match(await textOf(page, '.verdict'), /Meets both goals/);
  assert.match(await textOf(page, '.subject'), /Llama-3\.1-8B on 1 × NVIDIA H100/);
  assert.match(await textOf(page, '.bigs'), /First token, p99.*90%: .*goal 500 ms met.*Output tokens.*Per million output tokens/);
  assert.match(await textOf(page, '.basis'), /published measurements: median error/);
  assert.match(await textOf(page, '.command pre'), /^foretoken serve --model Llama-3\.1-8B --device h100_sxm --request-rate 8 --num-prompts 120/);
  assert.equal(await page.$$eval(`${shown} .plot svg`, (plots) => plots.length), 4);
  assert.deepEqual(await violations(page), []);
  await shot(page, 'ask');
  await page.close();
});

test('answers are exported as JSON, CSV and SVG', { skip }, async () => {
  const page = await openAsk();
  const folder = mkdtempSync(join(tmpdir(), 'foretoken-page-'));
  const client = await page.createCDPSession();
  await client.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: folder });
  await type(page, 'Requests', 60);
  await press(page, 'Ask');
  await answered(page, /Done/);
  for (const button of ['Export JSON', 'Export CSV', 'SVG']) await press(page, button);
  const names = ['foretoken-serve.json', 'foretoken-serve.csv', 'latency-distribution.svg'];
  for (const end = Date.now() + 10_000; !names.every((name) => readdirSync(folder).includes(name) && statSync(join(folder, name)).size > 0) && Date.now() < end;) await new Promise((resolve) => setTimeout(resolve, 50));
  const [json, csv, svg] = names.map((name) => readFileSync(join(folder, name), 'utf8'));
  assert.equal(JSON.parse(json).completed, 60);
  assert.match(csv, /^metric,value,low,high\n/);
  assert.match(svg, /^<svg/);
  await page.close();
});

test('wrong input is told where the answer would be', { skip }, async () => {
  const page = await openAsk();
  await type(page, 'Prompt tokens', 900000);
  await press(page, 'Ask');
  await page.waitForFunction((selector) => /fail|error|expected/.test(document.querySelector(`${selector} .error, ${selector} .verdict`)?.textContent ?? ''), { timeout: patience }, shown);
  await page.close();
});

test('failed requests are the verdict, and the timeline says why it is empty', { skip }, async () => {
  const page = await openAsk();
  await type(page, 'Prompt tokens', 900000);
  await type(page, 'Requests', 60);
  await press(page, 'Ask');
  await answered(page, /Done/);
  assert.match(await textOf(page, '.verdict'), /All 60 requests failed: prompt of --max-model-len or more/);
  assert.doesNotMatch(await textOf(page, '.verdict'), /[Mm]eets/);
  assert.equal(await page.$(`${shown} .figures, ${shown} .bigs`), null, 'zeros are no figures');
  await page.close();
  const timeline = await open('timeline');
  await type(timeline, 'Prompt tokens', 900000);
  await type(timeline, 'Requests', 60);
  await press(timeline, 'Simulate');
  await answered(timeline, /Done/);
  assert.match(await textOf(timeline, '.sentence'), /^All 60 requests failed: .*There is no timeline to draw/);
  assert.deepEqual(await violations(timeline), []);
  await timeline.close();
});

test('some failed requests are told before any latency, and no goal is met', { skip }, async () => {
  const page = await openAsk();
  await type(page, 'Prompt tokens', 130000);
  await type(page, 'Requests', 20);
  await type(page, 'Requests per second', 0.05);
  await press(page, 'Ask');
  await answered(page, /Done/);
  assert.match(await textOf(page, '.verdict'), /\d+ of 20 requests failed: /);
  assert.match(await textOf(page, '.sentence'), /of the \d+ served requests get their first token within/);
  assert.doesNotMatch(await textOf(page, '.verdict'), /[Mm]eets/);
  await page.close();
});

test('a device that was not measured is not said to meet goals plainly', { skip }, async () => {
  const page = await openAsk();
  await (await page.waitForSelector(`${shown} ::-p-aria([name="Device"])`)).select('gaudi3');
  await type(page, 'Requests', 60);
  await type(page, 'Per output token, ms', 20);  // between the middle and the slow end
  await press(page, 'Ask');
  await answered(page, /Done/);
  const said = await textOf(page, '.verdict');
  assert.match(said, /Meets both goals by the middle estimate only: the 90% interval reaches .* for|Misses the goal/);
  assert.match(await textOf(page, 'section[aria-label="Answer"]'), /spec sheet/);
  assert.deepEqual(await violations(page), []);
  await page.close();
});

test('progress and answer are in sight at 1280 by 800 without scrolling', { skip }, async () => {
  const isInSight = (page, selector) => page.$eval(`${shown} ${selector}`, (element) => {
    const { top, bottom } = element.getBoundingClientRect();
    const head = document.querySelector('.top').getBoundingClientRect().bottom;
    return top >= head && bottom <= window.innerHeight;
  });
  const page = await openAsk({ height: 800 });
  assert.equal(await isInSight(page, 'button.primary'), true, 'the button');
  await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight));
  await type(page, 'Requests', 2000);
  await page.evaluate((selector) => new MutationObserver((_, observer) => {
    if (!document.querySelector(`${selector} .progress.busy`)) return;
    window.took = performance.now() - window.asked;
    observer.disconnect();
  }).observe(document.body, { subtree: true, attributes: true, attributeFilter: ['class'] }), shown);
  await page.evaluate(() => document.addEventListener('click', () => { window.asked = performance.now(); }, { capture: true, once: true }));
  await press(page, 'Ask');
  await page.waitForFunction((selector) => document.querySelector(`${selector} .progress.busy`) !== null, { timeout: patience, polling: 10 }, shown);
  const took = await page.evaluate(() => window.took);
  assert.ok(took < 200, `progress after ${took} ms`);
  assert.equal(await isInSight(page, '.progress .status'), true, 'progress');
  await answered(page, /Done/);
  for (const part of ['.verdict', '.bigs']) assert.equal(await isInSight(page, part), true, `${part}, at the end`);
  if (process.env.SHOTS) await page.screenshot({ path: join(process.env.SHOTS, 'ui-ask-1280x800.png') });
  await page.close();
});

test('models are taken in any case and by their aliases', { skip }, async () => {
  const page = await open('explore');
  for (const [typed, said] of [['llama-3.1-8b', /--model meta-llama\/Llama-3\.1-8B /], ['Qwen-72B-Chat', /--model Qwen\/Qwen-72B-Chat /]]) {
    await type(page, 'Model', typed);
    await press(page, 'Predict');
    await page.waitForFunction((selector, source) => new RegExp(source).test(document.querySelector(`${selector} .command pre`)?.textContent ?? ''),
      { timeout: patience }, shown, said.source);
  }
  await page.close();
});

test('several devices are explored, and what does not fit says so', { skip }, async () => {
  const page = await open('explore');
  await (await page.waitForSelector(`${shown} ::-p-aria([name="Devices"])`)).select('2');
  await press(page, 'Predict');
  await answered(page);
  assert.match(await textOf(page, 'figure table[aria-label^="Where"]'), /all reduce|all_reduce|allreduce/i);
  await (await page.waitForSelector(`${shown} ::-p-aria([name="Devices"])`)).select('1');
  await type(page, 'Model', 'Llama-3.1-405B');
  await press(page, 'Predict');
  await page.waitForFunction((selector) => /Does not fit in memory/.test(document.querySelector(`${selector} .sentence`)?.textContent ?? ''), { timeout: patience }, shown);
  assert.match(await textOf(page, '.sentence'), /^Does not fit in memory: .* needed, .* available\. With enough memory/);
  const warning = await page.$$eval(`${shown} figure .missed`, (all) => all.map((element) => element.textContent).join(' '));
  assert.match(warning, /Does not fit: .* needed, .* available/);
  await shot(page, 'explore-too-large', 'figure .missed:not([hidden])');
  assert.deepEqual(await violations(page), []);
  await page.close();
});

test('operators are compared with the roof of their own number format', { skip }, async () => {
  const page = await open('explore');
  await (await page.waitForSelector(`${shown} ::-p-aria([name="Weights"])`)).select('fp8');
  await (await page.waitForSelector(`${shown} ::-p-aria([name="Phase"])`)).select('prefill');
  await press(page, 'Predict');
  await answered(page);
  const rows = await page.$$eval(`${shown} table[aria-label="Roofline, numbers"] tbody tr`, (all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
  const formats = new Set(rows.map((row) => row[1]));
  assert.ok(formats.has('fp8') || formats.has('fp8_e4m3'), [...formats].join());
  assert.ok(formats.size > 1, 'attention stays in another format');
  for (const [operator, format, , , share] of rows.filter((row) => /^fp8/.test(row[1]))) assert.ok(parseFloat(share) <= 100, `${operator} in ${format} reaches ${share} of its roof`);
  await page.close();
});

test('a training job that does not fit is said so before it is compared', { skip }, async () => {
  const page = await open('compare');
  await (await page.waitForSelector(`${shown} ::-p-aria([name="Compare"][role="combobox"])`)).select('train');
  for (const side of ['A', 'B']) await type(page, 'Model', 'Llama-3.1-405B', `[role="group"][aria-label="${side}"]`);
  await press(page, 'Compare');
  await answered(page);
  assert.match(await textOf(page, '.sentence'), /^A does not run\. .*emory.*B does not run\./);
  await page.close();
});

test('a server that is gone is told as such', { skip }, async () => {
  const [own, at] = await startServer();
  const before = complaints.length;
  const page = await openAsk({ at });
  own.removeAllListeners('exit');
  own.kill('SIGTERM');
  await new Promise((resolve) => own.on('exit', resolve));
  await press(page, 'Ask');
  await page.waitForSelector(`${shown} .error`, { timeout: patience });
  assert.match(await textOf(page, '.error'), /^The server does not answer\. Start .foretoken ui. again/);
  await page.close();
  complaints.splice(before);  // the browser logs the refused connection
});

test('what is missing or out of range is told at its field, and nothing is asked', { skip }, async () => {
  const page = await openAsk();
  let asked = 0;
  page.on('request', (request) => { asked += request.url().endsWith('/api/run') && !/"command":"step"/.test(request.postData() ?? '') ? 1 : 0; });  // the gauge asks for steps
  const refused = async (label, value, complaint) => {
    await type(page, label, value);
    await press(page, 'Ask');
    const field = await page.waitForSelector(`${shown} ::-p-aria([name="${label}"])`);
    assert.equal(await field.evaluate((element) => document.activeElement === element), true, label);
    assert.equal(await field.evaluate((element) => element.getAttribute('aria-invalid')), 'true', label);
    assert.match(await field.evaluate((element) => document.getElementById(element.getAttribute('aria-describedby')).textContent), complaint);
  };
  await page.$eval(`${shown} details`, (details) => { details.open = true; });
  await refused('Tokens per step', '0', /1/);
  await page.$eval(`${shown} details`, (details) => { details.open = false; });
  await press(page, 'Ask');
  assert.equal(await page.$eval(`${shown} details`, (details) => details.open), true, 'a folded part opens where something in it is wrong');
  await type(page, 'Tokens per step', '2048');
  await refused('Requests', '99999999999999', /20000/);
  await type(page, 'Requests', 100);
  await refused('Requests per second', '-3', /0\.01/);
  assert.deepEqual(await violations(page), []);
  await type(page, 'Requests per second', 8);
  assert.equal(await page.$(`${shown} [aria-invalid]`), null, 'a mended field complains no more');
  await (await page.waitForSelector(`${shown} ::-p-aria([name="Output tokens"])`)).evaluate((element) => { element.value = ''; });
  await press(page, 'Ask');
  assert.equal(await page.$eval(`${shown} [aria-invalid]`, (element) => element.labels[0].textContent), 'Output tokens');
  await type(page, 'Output tokens', 100);
  await choose(page, 'plan serve');
  for (const label of ['First token, ms', 'Per output token, ms']) {
    const field = await page.waitForSelector(`${shown} ::-p-aria([name="${label}"])`);
    await field.click({ count: 3 });
    await page.keyboard.press('Backspace');
  }
  await press(page, 'Ask');
  assert.match(await textOf(page, '.problem:not(:empty)'), /needs at least one goal/);
  assert.equal(asked, 0);
  await page.close();
});

test('a search that is cancelled makes room for the next question', { skip }, async () => {
  const page = await openAsk();
  await choose(page, 'plan serve');
  await type(page, 'Devices available', 4096);
  await type(page, 'Requests', 20000);
  await press(page, 'Ask');
  await press(page, 'Cancel');
  await answered(page, /Canceled\. The server has stopped working on it/);
  await choose(page, 'serve');
  await type(page, 'Requests', 40);
  await press(page, 'Ask');
  await answered(page, /Done/);
  await page.close();
});

test('a question is asked and answered by keyboard alone', { skip }, async () => {
  const page = await open('timeline');
  await page.focus(`${shown} input[list]`);
  for (let i = 0; i < 40; ++i) {
    await page.keyboard.press('Tab');
    if (await page.evaluate(() => document.activeElement?.textContent === 'Simulate')) break;
  }
  await page.keyboard.press('Enter');
  await answered(page, /Done/);
  await page.close();
});

test('a search finds a layout and says how to start it', { skip }, async () => {
  const page = await openAsk();
  await choose(page, 'plan serve');
  await type(page, 'Devices available', 2);
  await type(page, 'Requests', 200);
  await press(page, 'Ask');
  await answered(page, /Done/);
  assert.match(await textOf(page, '.verdict'), /Best: /);
  assert.match(await textOf(page, '.bigs'), /Sustained within the goals.*90%: /);
  assert.match(await textOf(page, '.sentence'), /^Serve /);
  assert.match(await textOf(page, 'section[aria-label="To start it"]'), /vllm serve/);
  assert.match(await textOf(page, 'table[aria-label="Layouts, best first"]'), /J per output token/);
  assert.match(await textOf(page, 'figure table'), /best in.*throughput per device/s);
  // A point gives its command.
  const points = await page.$$(`${shown} figure.wide .plot svg path[fill]:not([fill="none"]):not([fill="transparent"])`);
  for (const point of points) {
    await point.evaluate((element) => element.scrollIntoView({ block: 'center' }));
    await point.click().catch(() => {});
    if (await page.$(`${shown} figure.wide code`)) break;
  }
  assert.match(await textOf(page, 'figure.wide code'), /^foretoken serve --model Llama-3\.1-8B --device h100_sxm .*--request-rate/);
  assert.deepEqual(await violations(page), []);
  await shot(page, 'find');
  await page.close();
});

test('a search over two devices and any engine compares them', { skip }, async () => {
  const page = await open('#ask?command=plan+serve&model=Llama-3.1-8B&hardware=h100_sxm:1&hardware=l40s:2&request_rate=4&num_prompts=100&random_input_len=512&random_output_len=128&slo=ttft<1000ms@p99&slo=tpot<60ms@p99');
  await answered(page, /Done/);
  const rows = await page.$$eval(`${shown} table[aria-label="Best of each device and engine"] tbody tr`, (all) => all.map((row) => row.textContent));
  assert.ok(rows.some((row) => /h100_sxm/.test(row)) && rows.some((row) => /l40s/.test(row)) && rows.length >= 4, rows.join('\n'));
  assert.match(await textOf(page, '.command pre'), /--hardware h100_sxm:1 --hardware l40s:2/);
  assert.deepEqual(await violations(page), []);
  await page.close();
});

test('a search that nothing answers says what is within reach', { skip }, async () => {
  const page = await openAsk();
  await choose(page, 'plan serve');
  await type(page, 'Devices available', 1);
  await type(page, 'Requests', 100);
  await type(page, 'Requests per second', 300);
  await press(page, 'Ask');
  await answered(page, /Done/);
  assert.match(await textOf(page, 'section[aria-label="What is possible"]'), /at most .* requests\/s within the goals.*devices for the requested load/s);
  await page.close();
});

for (const [kind, explained, command] of [
  ['step', /B is .* times faster than A.*Most of it is/, /^foretoken compare --first 'step --model/],
  ['serve', /For median TTFT B takes .*Of the (time of all steps|mean TPOT), most of the difference is/, /--quantization fp8/],
  ['train', /B is .* times faster than A.*Most of it is/, /--precision fp8-delayed/],
  ['plan', /For a million output tokens B takes .*Layout: .* →/, /--second 'plan serve .*a100_sxm/],
]) {
  test(`two questions are compared and the difference is explained: ${kind}`, { skip }, async () => {
    const page = await open('compare');
    const field = await page.waitForSelector(`${shown} ::-p-aria([name="Compare"][role="combobox"])`);
    await field.select(kind);
    if (kind === 'plan') for (const side of ['A', 'B']) await type(page, 'Devices available', 2, `[role="group"][aria-label="${side}"]`);
    await press(page, 'Compare');
    await answered(page);
    assert.match(await textOf(page, '.sentence'), explained);
    assert.match(await textOf(page, '.command pre'), command);
    assert.deepEqual(await violations(page), []);
    if (kind === 'step' || kind === 'serve') await shot(page, kind === 'step' ? 'compare' : 'compare-serve', '.sentence');
    await page.close();
  });
}

test('a changed hardware number moves the step', { skip }, async () => {
  const page = await open('explore');
  await press(page, 'Predict');
  await answered(page);
  const before = await textOf(page, '.sentence');
  await type(page, 'Memory bandwidth, GB/s', 6700);
  await page.keyboard.press('Tab');
  await page.waitForFunction((selector) => /times faster/.test(document.querySelector(`${selector} .sentence`)?.textContent ?? ''), { timeout: patience }, shown);
  assert.notEqual(await textOf(page, '.sentence'), before);
  assert.match(await textOf(page, '.command pre'), /--device h100_sxm_changed\.json/);
  // By keyboard alone, as those without a mouse do it.
  await page.focus(`${shown} input[type="range"]`);
  for (let i = 0; i < 5; ++i) await page.keyboard.press('ArrowLeft');
  await answered(page);
  assert.deepEqual(await violations(page), []);
  await shot(page, 'explore');
  await page.close();
});

test('a run is drawn over time and saved as a trace', { skip }, async () => {
  const page = await open('timeline');
  const folder = mkdtempSync(join(tmpdir(), 'foretoken-page-'));
  const client = await page.createCDPSession();
  await client.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: folder });
  await press(page, 'Simulate');
  await answered(page, /Done/);
  assert.equal(await page.$$eval(`${shown} .plot svg`, (plots) => plots.length), 3);
  await press(page, 'Save trace for Perfetto');
  const file = join(folder, 'foretoken-trace.json');
  for (const end = Date.now() + 10_000; !existsSync(file) && Date.now() < end;) await new Promise((resolve) => setTimeout(resolve, 50));
  assert.ok(JSON.parse(readFileSync(file, 'utf8')).traceEvents.length > 100);
  await shot(page, 'timeline');
  await page.close();
});

test('a run is enlarged with keys, buttons and the wheel, all plots together', { skip }, async () => {
  const page = await open('timeline');
  await answered(page, /Done/);
  const status = () => textOf(page, '.zoom [role=status]');
  const drawn = () => page.$$eval(`${shown} .plot svg`, (plots) => plots.map((plot) => plot.textContent));
  const whole = await drawn();
  assert.match(await status(), /whole run/);
  const press = async (name) => {
    const button = await page.waitForSelector(`${shown} .zoom ::-p-xpath(.//button[normalize-space()="${name}"])`);
    await button.focus();
    await page.keyboard.press('Enter');
  };
  await press('Zoom in');
  await press('Zoom in');
  assert.match(await status(), /^[0-9.]+ \S+ to [0-9.]+ \S+ of /);
  await page.waitForFunction((selector, before) => [...document.querySelectorAll(`${selector} .plot svg`)].every((plot, i) => plot.textContent !== before[i]), {}, shown, whole);
  const near = await status();
  await press('Later');
  assert.notEqual(await status(), near);
  assert.deepEqual(await violations(page), []);
  await press('Whole run');
  assert.match(await status(), /whole run/);
  const box = await page.$(`${shown} .plot`);
  await box.scrollIntoView();
  const { x, y, width, height } = await box.boundingBox();
  await page.mouse.move(x + width / 2, y + height / 2);
  await page.keyboard.down('Control');
  await page.mouse.wheel({ deltaY: -300 });
  await page.keyboard.up('Control');
  await page.waitForFunction((selector) => / of /.test(document.querySelector(`${selector} .zoom [role=status]`).textContent), {}, shown);
  await page.close();
});

test('a trace is handed to Perfetto after a click alone, and the page says when it cannot be', { skip }, async () => {
  const page = await open('timeline');
  await answered(page, /Done/);
  const site = 'https://ui.perfetto.dev';
  await page.evaluate((origin) => {
    window.handed = [];
    window.open = (address) => {
      window.handed.push(address);
      return { postMessage: (message, to) => {
        window.handed.push([typeof message === 'string' ? message : message.perfetto.buffer.byteLength, to]);
        if (message === 'PING') {
          window.dispatchEvent(new MessageEvent('message', { data: 'PONG', origin: 'https://elsewhere.example' }));
          window.dispatchEvent(new MessageEvent('message', { data: 'PONG', origin }));
        }
      } };
    };
  }, site);
  await press(page, 'Open in Perfetto');
  await page.waitForFunction(() => window.handed.length >= 3);
  const [address, ping, trace] = await page.evaluate(() => window.handed);
  assert.deepEqual([address, ping], [site, ['PING', site]]);
  assert.ok(trace[0] > 10_000 && trace[1] === site);
  const told = async (pattern) => page.waitForFunction((selector, source) => new RegExp(source).test(document.querySelector(selector).textContent), { timeout: 30_000 }, `${shown} p[role=status].muted`, pattern);
  await told('open in the other window');
  await page.evaluate(() => { window.open = () => null; });
  await press(page, 'Open in Perfetto');
  await told('allow pop-ups');
  await page.setOfflineMode(true);
  await press(page, 'Open in Perfetto');
  await told('is offline');
  await page.close();
});

test('accuracy shows every layer and predicts measured scenarios', { skip }, async () => {
  const page = await open('accuracy');
  assert.match(await page.$eval(`${shown} .plot`, (plot) => plot.getAttribute('aria-label')), /points lie within 10%/);
  const layers = await page.$$eval(`${shown} table[aria-label="Layers"] tbody th`, (cells) => cells.map((cell) => cell.textContent));
  for (const layer of ['kernels', 'attention', 'collectives', 'steps', 'serving', 'training', 'edge', 'accelerators']) assert.ok(layers.includes(layer), layer);
  await (await page.waitForSelector(`${shown} ::-p-aria([name="Layer"])`)).select('serving');
  await press(page, 'ttft_ms of each request, vLLM 0.19, RTX4090');
  const group = await textOf(page, 'section[aria-label="Group"]');
  assert.match(group, /Mean error[^]*%[^]*Median error[^]*Rows300/);
  assert.match(await textOf(page, '.command pre'), /^foretoken validate serving --run/);
  assert.equal(await page.$$eval(`${shown} table[aria-label="Its worst rows"] tbody tr`, (rows) => rows.length), 3);
  assert.equal(await page.$$eval(`${shown} .plot svg`, (plots) => plots.length), 2);
  assert.deepEqual(await violations(page), []);
  await (await page.waitForSelector(`${shown} ::-p-aria([name="Layer"])`)).select('');
  await shot(page, 'accuracy');
  await shot(page, 'accuracy-group', 'section[aria-label="Group"]');
  await press(page, 'Predict');
  await answered(page, /Done/);
  assert.ok(await page.$$eval(`${shown} table[aria-label^="Measured scenarios"] tbody tr`, (rows) => rows.length) >= 3);
  await page.close();
});

test('the library finds entries by words', { skip }, async () => {
  const page = await open('library');
  await page.type(`${shown} input[type="search"]`, 'h200');
  assert.match(await textOf(page, 'section[aria-label="Entry"]'), /H200[^]*memory bandwidth[^]*GB\/s/);
  await shot(page, 'library');
  await page.close();
});

for (const theme of ['light', 'dark']) {
  for (const width of [1280, 390]) {
    test(`every section is accessible and fits: ${theme}, ${width} pixels`, { skip }, async () => {
      for (const section of sections) {
        const page = await open(section, { width, theme });
        assert.deepEqual(await violations(page), [], section);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${section} is wider than ${width} pixels`);
        assert.ok(await page.$eval('.top nav', (nav) => nav.scrollWidth <= nav.clientWidth), `sections are cut off at ${width} pixels`);
        if (section === 'ask' && width === 390 && theme === 'light') await shot(page, 'ask-light-390');
        await page.close();
      }
    });
  }
}

test('an answer in dark on a small screen', { skip }, async () => {
  const page = await open('explore', { width: 390, theme: 'dark' });
  await press(page, 'Predict');
  await answered(page);
  assert.deepEqual(await violations(page), []);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
  if (process.env.SHOTS) {
    await page.$eval(`${shown} .sentence`, (element) => element.scrollIntoView());
    await page.evaluate(() => window.scrollBy(0, -120));
    await page.screenshot({ path: join(process.env.SHOTS, 'ui-explore-dark-390.png') });
  }
  await page.close();
});

for (const [width, height] of [[1280, 800], [390, 844]]) {
  for (const theme of ['light', 'dark']) {
    test(`the page opens with an answered example: ${theme}, ${width} pixels`, { skip }, async () => {
      const page = await open('', { width, height, theme });
      await page.waitForSelector(`${shown} .bigs`, { timeout: patience });
      assert.match(await textOf(page, '.example-note'), /^Example, computed by this server/);
      assert.match(await textOf(page, '.subject'), /Llama-3\.1-70B on 8 × NVIDIA H100/);
      assert.ok(await page.$eval(`${shown} .verdict`, (element) => element.getBoundingClientRect().bottom <= window.innerHeight), 'the verdict is in sight');
      await answered(page, /Done/);
      assert.deepEqual(await violations(page), []);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
      if (process.env.SHOTS) await page.screenshot({ path: join(process.env.SHOTS, `ui-open-${theme}-${width}.png`) });
      await page.close();
    });
  }
}

test('every example is answered, and its address gives it back', { skip }, async () => {
  const page = await open('');
  await page.waitForSelector(`${shown} .bigs`, { timeout: patience });
  const chips = await page.$$eval('.chip', (all) => all.map((chip) => [chip.textContent, chip.getAttribute('href')]));
  assert.ok(chips.length >= 5);
  await page.close();
  for (const [title, hash] of chips) {
    const own = await open(hash);
    await own.waitForFunction((selector) => document.querySelector(`${selector} .verdict, ${selector} .sentence`) !== null, { timeout: patience }, shown);
    await answered(own);
    assert.equal(await own.$(`${shown} .error`), null, title);
    assert.deepEqual(await violations(own), [], title);
    await own.close();
  }
});

test('a command and a link are copied where the browser has no clipboard', { skip }, async () => {
  const page = await openAsk();
  // Over plain http from another machine.
  await page.evaluate(() => {
    Object.defineProperty(navigator, 'clipboard', { value: undefined });
    document.execCommand = (name) => {
      window.copied = name === 'copy' && document.activeElement.value;
      return true;
    };
  });
  await press(page, 'Copy');
  await page.waitForSelector(`${shown} ::-p-xpath(.//button[normalize-space()="Copied"])`);
  assert.equal(await page.evaluate(() => window.copied), await textOf(page, '.command pre'));
  await press(page, 'Copy link');
  await page.waitForSelector(`${shown} ::-p-xpath(.//button[normalize-space()="Link copied"])`);
  assert.match(await page.evaluate(() => window.copied), /^http:.*#ask\?command=serve/);
  await page.evaluate(() => { document.execCommand = () => false; });
  await press(page, 'Copy');
  await page.waitForSelector(`${shown} ::-p-xpath(.//button[normalize-space()="Not copied"])`);
  assert.equal(await page.$('body > textarea'), null);
  await page.close();
});

test('a question in words fills the fields and is answered', { skip }, async () => {
  const page = await openAsk();
  await page.type(`${shown} form.search input`, 'llama 70b on 8 h100, 5 req/s');
  await page.keyboard.press('Enter');
  await page.waitForFunction((selector) => /Llama-3\.1-70B on 8 × NVIDIA H100 .* at 5 requests/.test(document.querySelector(`${selector} .subject`)?.textContent ?? ''), { timeout: patience }, shown);
  await answered(page, /Done/);
  const link = await page.evaluate(() => location.href);
  assert.match(link, /#ask\?command=serve&model=Llama-3\.1-70B&device=h100_sxm/);
  const verdict = await textOf(page, '.bigs');
  await page.goBack();
  await page.waitForFunction((selector) => /Llama-3\.1-8B/.test(document.querySelector(`${selector} .subject`)?.textContent ?? ''), { timeout: patience }, shown);
  await page.close();
  const other = await open(link.slice(link.indexOf('#')));
  await answered(other, /Done/);
  assert.equal(await textOf(other, '.bigs'), verdict, 'a shared link gives the same answer');
  assert.match(await textOf(other, '.recent'), /Llama-3\.1-70B on 8/);
  await other.close();
});

test('words about kernels, chips and days are answered', { skip, timeout: 2 * patience }, async () => {
  const page = await openAsk();
  for (const [words, address, answer] of [
    ['gemm 4096 x 4096 x 8192 bf16 on h200', /command=kernel(\+|%20)gemm&device=h200_sxm&m=4096&n=4096&k=8192/, /H200/],
    ['resnet50 on eyeriss', /command=accel&arch=eyeriss_v1&network=resnet50/, /eyeriss/i],
    ['chat over a day with llama 8b on h100, 1 req/s', /ramp_up_strategy=daily/, /day/i]]) {
    await page.$eval(`${shown} form.search input`, (field) => { field.value = ''; });
    await page.type(`${shown} form.search input`, words);
    await page.keyboard.press('Enter');
    await page.waitForFunction((source) => new RegExp(source).test(location.hash), {}, address.source);
    await answered(page, /Done/);
    assert.match(await textOf(page, '.answer'), answer, words);
    assert.equal(await textOf(page, '.heard'), '', words);
  }
  await page.close();
});

test('what no words say is asked for', { skip }, async () => {
  const page = await openAsk();
  await page.type(`${shown} form.search input`, 'llama 70b');
  await page.keyboard.press('Enter');
  assert.match(await textOf(page, '.heard'), /Name the hardware too/);
  await page.close();
});

test('an answer whose question has changed is marked', { skip }, async () => {
  const page = await openAsk();
  assert.equal(await page.$eval(`${shown} .stale-note`, (note) => note.hidden), true);
  await type(page, 'Output tokens', 300);
  assert.equal(await page.$eval(`${shown} .stale-note`, (note) => note.hidden), false);
  assert.deepEqual(await violations(page), []);
  await type(page, 'Output tokens', 256);
  assert.equal(await page.$eval(`${shown} .stale-note`, (note) => note.hidden), true);
  await page.close();
});

test('the gauge says what does not fit, and applies what helps', { skip }, async () => {
  const page = await openAsk();
  await page.waitForFunction((selector) => /Weights .* GB, KV cache/.test(document.querySelector(`${selector} .gauge`)?.textContent ?? ''), { timeout: patience }, shown);
  await type(page, 'Model', 'Llama-3.1-70B');
  await page.waitForFunction((selector) => /Does not fit: .* short/.test(document.querySelector(`${selector} .gauge`)?.textContent ?? ''), { timeout: patience }, shown);
  await page.click(`${shown} .gauge button`);
  await page.waitForFunction((selector) => /Weights .* GB, KV cache/.test(document.querySelector(`${selector} .gauge`)?.textContent ?? ''), { timeout: patience }, shown);
  assert.deepEqual(await violations(page), []);
  await page.close();
});

test('every device that is offered answers the question it begins with', { skip, timeout: 2 * patience }, async () => {
  const page = await openAsk();
  const field = await page.waitForSelector(`${shown} ::-p-aria([name="Device"])`);
  const names = await field.$$eval('option', (options) => options.map((option) => option.value));
  assert.ok(names.length > 40 && !names.includes('p100') && !names.includes('xeon_8480'));
  for (const name of names) {
    await (await page.waitForSelector(`${shown} ::-p-aria([name="Devices per replica"])`)).select('1');
    await field.select(name);
    await page.waitForFunction((selector) => /Weights .* GB, KV cache/.test(document.querySelector(`${selector} .gauge`)?.textContent ?? ''), { timeout: 20_000 }, shown)
      .catch(() => assert.fail(`${name} does not hold what it begins with`));
    await page.$eval(`${shown} .gauge`, (gauge) => gauge.replaceChildren());
  }
  await page.close();
});

test('an answer is saved as one HTML report', { skip }, async () => {
  const page = await openAsk();
  const folder = mkdtempSync(join(tmpdir(), 'foretoken-page-'));
  await (await page.createCDPSession()).send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: folder });
  await press(page, 'Save report');
  for (const end = Date.now() + 10_000; !readdirSync(folder).some((name) => name.endsWith('.html')) && Date.now() < end;) await new Promise((resolve) => setTimeout(resolve, 50));
  const name = readdirSync(folder).find((file) => file.endsWith('.html'));
  const text = readFileSync(join(folder, name), 'utf8');
  assert.match(text, /^<!doctype html>[^]*Meets both goals[^]*<svg/);
  assert.doesNotMatch(text, /<script|src="http|href=/);
  await page.close();
});

test('a chip of one\'s own is explored', { skip }, async () => {
  const page = await open('explore');
  await page.$eval(`${shown} details`, (details) => { details.open = true; });
  await press(page, 'Start from the chosen device');
  await page.waitForFunction((selector) => /--device my_h100_sxm/.test(document.querySelector(`${selector} .command pre`)?.textContent ?? ''), { timeout: patience }, shown);
  await answered(page);
  await page.close();
});

test('nothing was logged as wrong, and no other server was asked', { skip }, () => {
  assert.deepEqual(complaints, []);
});
