// Bundles a contender as an app would, and tells how many bytes its user has to load.

import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const sources = dirname(fileURLToPath(import.meta.url));

/** The folders of npm packages that are linked here and that the contenders import. */
const nodePaths = [join(sources, 'node_modules')];

/**
 * Puts a page that has the contender as `globalThis.contender` into a folder.
 *
 * @returns {Promise<number>} gzipped bytes of all code
 */
export async function bundle(contender, folder) {
  mkdirSync(folder, { recursive: true });
  await build({
    stdin: {
      contents: `import * as contender from './contenders/${contender}.mjs'; globalThis.contender = contender;`,
      resolveDir: sources,
    },
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    nodePaths,
    outfile: join(folder, 'contender.js'),
    // The packages look at it to find out whether they run in Node.
    define: { 'process.env.NODE_ENV': '"production"' },
    // Served beside it, as it is.
    external: ['/relaysync/*'],
    logLevel: 'error',
  });
  copyFileSync(join(sources, 'page.html'), join(folder, 'index.html'));
  return gzippedBytes([join(folder, 'contender.js')]);
}

/** What files weigh when each is compressed as servers do. */
export function gzippedBytes(files) {
  return files.reduce((sum, file) => sum + gzipSync(readFileSync(file), { level: 9 }).length, 0);
}
