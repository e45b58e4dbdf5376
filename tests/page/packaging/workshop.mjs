// A folder where the packed package is installed, beside the bundlers, with the projects that use it.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { tarball } from '../support/package.mjs';

const sources = dirname(fileURLToPath(import.meta.url));
const COMMAND_TIMEOUT_MS = 180_000;

/** Installs the package for the projects. `stop` removes all of it. */
export function workshop() {
  // Bundlers look for packages in all folders above; the tools are in that of the cache.
  const tools = dirname(realpathSync(join(sources, 'node_modules')));
  const folder = mkdtempSync(join(tools, 'work-'));
  cpSync(join(sources, 'projects'), folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies: { relaysync: `file:${tarball()}` } }));
  run(folder, 'npm', ['install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock']);
  const environment = { ...process.env, PACKAGING_ROOT: tools, NEXT_TELEMETRY_DISABLED: '1', NODE_ENV: undefined };
  return {
    folder,
    /** Runs a tool in a project's folder, and gives what it wrote. */
    tool: (project, name, args) => run(join(folder, project), process.execPath, [binary(tools, name), ...args], environment),
    /** Runs a script of a project in Node. */
    node: (project, args) => run(join(folder, project), process.execPath, args, environment),
    /** Starts a server that a tool has, on a free port. */
    server: async (project, name, args) => {
      const port = await freePort();
      return serve(join(folder, project), [binary(tools, name), ...args(port)], port, environment);
    },
    stop: () => rmSync(folder, { recursive: true, force: true }),
  };
}

const BINARIES = {
  attw: '@arethetypeswrong/cli/dist/index.js',
  esbuild: 'esbuild/bin/esbuild',
  next: 'next/dist/bin/next',
  publint: 'publint/src/cli.js',
  tsc: 'typescript/bin/tsc',
  vite: 'vite/bin/vite.js',
  webpack: 'webpack/bin/webpack.js',
};

function binary(tools, name) {
  return join(tools, 'node_modules', BINARIES[name]);
}

function run(folder, command, args, environment = process.env) {
  const done = spawnSync(command, args, { cwd: folder, env: environment, encoding: 'utf8', timeout: COMMAND_TIMEOUT_MS });
  if (done.status !== 0) {
    throw new Error(`${[command, ...args].join(' ')} ended with ${done.status ?? done.error}\n${done.stdout}\n${done.stderr}`);
  }
  return done.stdout;
}

async function serve(folder, args, port, environment) {
  const child = spawn(process.execPath, args, { cwd: folder, env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
  const words = [];
  child.stdout.on('data', (data) => words.push(data));
  child.stderr.on('data', (data) => words.push(data));
  const url = `http://localhost:${port}`;
  const end = performance.now() + 60_000;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the server ended: ${words.join('')}`);
    if (performance.now() > end) throw new Error(`the server is not ready: ${words.join('')}`);
    const answer = await fetch(url).catch(() => undefined);
    if (answer) break;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return {
    url,
    words,
    stop: async () => {
      if (child.exitCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    },
  };
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
