// The package as it is published: packed, and unpacked again.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';

import { cache, root } from './cache.mjs';

/** The packed package. Whoever runs the tests has built it; `RELAYSYNC_TARBALL` names it, else it is packed now. */
export function tarball() {
  if (process.env.RELAYSYNC_TARBALL) return process.env.RELAYSYNC_TARBALL;
  const folder = join(cache, 'page-tarball');
  mkdirSync(folder, { recursive: true });
  run('npm', ['pack', '--silent', '--pack-destination', folder], root);
  return join(folder, readdirSync(folder).find((name) => name.endsWith('.tgz')));
}

/** The folder with what is in it. */
export function unpacked() {
  const packed = tarball();
  const hash = createHash('sha256').update(readFileSync(packed)).digest('hex').slice(0, 16);
  const folder = join(cache, `page-package-${hash}`);
  if (!existsSync(folder)) {
    const unfinished = `${folder}.${process.pid}.part`;
    mkdirSync(unfinished, { recursive: true });
    run('tar', ['-xzf', packed, '-C', unfinished, '--strip-components=1'], root);
    // Another test file may have been faster.
    if (!existsSync(folder)) renameSync(unfinished, folder);
  }
  return folder;
}

function run(command, args, folder) {
  const done = spawnSync(command, args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  if (done.status !== 0) throw new Error(`${command} ${args.join(' ')} failed`);
}
