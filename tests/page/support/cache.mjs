// The folder for what is made once and used by many runs.

import { existsSync, mkdirSync, renameSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The top of the tree. */
export const root = resolve(fileURLToPath(import.meta.url), '../../../..');

/** The cache folder, as all of the tests have it. */
export const cache = process.env.RELAYSYNC_CACHE ?? join(root, '.cache');

/**
 * The path of a file in the cache, made now if it is not there. `make(path)` writes it under another name first, so
 * that a run that ends halfway leaves nothing behind that looks whole.
 */
export async function cached(name, make) {
  const path = join(cache, name);
  if (existsSync(path)) return path;
  mkdirSync(cache, { recursive: true });
  const unfinished = `${path}.${process.pid}.part`;
  await make(unfinished);
  renameSync(unfinished, path);
  return path;
}
