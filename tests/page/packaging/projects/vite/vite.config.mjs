import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

// The packages are in a folder above this one, as in a repository of several projects.
export default {
  root: dirname(fileURLToPath(import.meta.url)),
  cacheDir: '.vite',
  server: { fs: { allow: [process.env.PACKAGING_ROOT] } },
};
