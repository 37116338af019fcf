// web/src -> one html file without any reference to the outside, which the program embeds.
//   node build.mjs          writes src/app/page/index.html
//   node build.mjs --check  fails where that file is not what the sources give
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, '../src/app/page/index.html');

async function bundle(entry) {
  const result = await build({
    entryPoints: [join(here, 'src', entry)],
    bundle: true,
    minify: true,
    charset: 'utf8',
    format: 'iife',
    target: 'es2022',
    legalComments: 'eof',
    write: false,
  });
  return result.outputFiles[0].text.trim();
}

const style = await bundle('style.css');
const script = (await bundle('main.ts')).replaceAll('</script', '<\\/script');
const hash = createHash('sha256').update(script).digest('base64');
// Tooltips of charts carry styles of their own.
const policy = `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; connect-src 'self'; ` +
  `img-src data: blob:; base-uri 'none'; form-action 'none'`;
const page = readFileSync(join(here, 'src/index.html'), 'utf8')
  .replace('{{policy}}', () => policy)
  .replace('{{style}}', () => style)
  .replace('{{script}}', () => script);

if (process.argv.includes('--check')) {
  if (readFileSync(target, 'utf8') !== page) {
    console.error('src/app/page/index.html is not what web/src gives: run `npm run build` in web/');
    process.exit(1);
  }
} else {
  writeFileSync(target, page);
  console.log(`${(page.length / 1000).toFixed(0)} kB`);
}
