// A static server for pages, on localhost: a secure context, as service and web workers, locks and storage want it.

import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { extname, join, normalize } from 'node:path';

const MIME_TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.map': 'application/json',
  '.jsonl': 'application/x-ndjson',
  '.wasm': 'application/wasm',
  '.svg': 'image/svg+xml',
};

/**
 * Serves folders, each under a prefix.
 *
 * @param {{ folders: Record<string, string>, headers?: Record<string, string> }} options `folders`: by prefix, such as
 *   `{ '/': '/some/folder' }`; the longest that fits is taken. `headers`: for each answer
 */
export async function site({ folders, headers = {} }) {
  const prefixes = Object.keys(folders).sort((one, other) => other.length - one.length);
  const requests = [];
  const server = createServer((request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, 'http://localhost').pathname));
    requests.push(path);
    const prefix = prefixes.find((prefix) => path.startsWith(prefix));
    const file = prefix && fileAt(join(folders[prefix], path.slice(prefix.length)));
    if (!file) {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('there is nothing here');
      return;
    }
    const type = MIME_TYPES[extname(file)] ?? 'application/octet-stream';
    response.writeHead(200, { 'content-type': type, 'cache-control': 'no-cache', ...headers });
    createReadStream(file).pipe(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://localhost:${server.address().port}`,
    requests,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function fileAt(path) {
  const file = existsSync(path) && statSync(path).isDirectory() ? join(path, 'index.html') : path;
  return existsSync(file) ? file : undefined;
}
