// Builds the npm package into bindings/dist: the core by build-core.sh, the rest by esbuild and tsc.
//
//     node bindings/build.mjs [--keep-core]
//
//     --keep-core        uses the core that was built last, if there is one
//     RELAYSYNC_CORE     a folder with core.js and core_bg.wasm, used in place of building them
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { copyFile, mkdir, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const source = join(here, "src");
const dist = join(here, "dist");
const tsc = join(here, "..", "node_modules", "typescript", "bin", "tsc");

const core = process.env.RELAYSYNC_CORE === undefined ? join(here, "core") : resolve(process.env.RELAYSYNC_CORE);
const keepCore = process.env.RELAYSYNC_CORE !== undefined || process.argv.includes("--keep-core");
if (!keepCore || !existsSync(join(core, "core_bg.wasm"))) {
  execFileSync("bash", [join(here, "build-core.sh"), core], { stdio: "inherit" });
}

/** The glue of the core, without the address where it would look for the WebAssembly by itself: bundlers would look, too. */
const glue = {
  name: "glue",
  setup(plugins) {
    plugins.onResolve({ filter: /^relaysync-core$/ }, () => ({ path: join(core, "core.js") }));
    plugins.onLoad({ filter: /core\.js$/ }, async ({ path }) => {
      if (path !== join(core, "core.js")) return undefined;
      const text = await readFile(path, "utf8");
      return { contents: text.replace(/new URL\(['"][^'"]+['"], import\.meta\.url\)/g, "undefined"), loader: "js" };
    });
  },
};

const common = { bundle: true, target: "es2022", legalComments: "none", logLevel: "warning" };
const gzip = (bytes) => gzipSync(bytes, { level: 9 });
const wasm = () => readFileSync(join(core, "core_bg.wasm"));

/** What `relaysync/inline` carries with it. */
const inlined = {
  name: "inlined",
  setup(plugins) {
    plugins.onResolve({ filter: /^relaysync-inlined$/ }, () => ({ path: "inlined", namespace: "inlined" }));
    plugins.onLoad({ filter: /.*/, namespace: "inlined" }, () => {
      const contents = `export const wasmGzipBase64 = ${JSON.stringify(gzip(wasm()).toString("base64"))};
export const workerText = ${JSON.stringify(readFileSync(join(dist, "worker.js"), "utf8"))};`;
      return { contents, loader: "js" };
    });
  },
};

async function bundle(entryPoints, options) {
  await build({ ...common, entryPoints, outdir: dist, plugins: [glue, inlined], ...options });
}

const entry = (name) => join(source, "entry", `${name}.ts`);
const cjs = { format: "cjs", outExtension: { ".js": ".cjs" } };

async function scripts() {
  await copyFile(join(core, "core_bg.wasm"), join(dist, "core.wasm"));
  await bundle({ worker: entry("worker") }, { format: "esm", minify: true });
  await bundle({ worker: entry("worker") }, { ...cjs, minify: true });
  await bundle(
    { index: entry("browser"), slim: entry("slim") },
    { format: "esm", splitting: true, chunkNames: "[name]-[hash]" },
  );
  await bundle({ slim: entry("slim") }, cjs);
  await bundle({ inline: entry("inline") }, { format: "esm" });
  await bundle({ inline: entry("inline") }, cjs);
  await bundle({ node: entry("node") }, { format: "esm", platform: "node" });
  await bundle(
    { node: entry("node") },
    {
      ...cjs,
      platform: "node",
      define: { "import.meta.url": "moduleUrl" },
      banner: { js: 'const moduleUrl = require("node:url").pathToFileURL(__filename).href;' },
    },
  );
}

/** Declarations, and the same once more for CommonJS. */
async function declarations() {
  const out = join(dist, "types");
  execFileSync(process.execPath, [tsc, "-p", join(here, "tsconfig.build.json"), "--outDir", out], { stdio: "inherit" });
  for (const path of await readdir(out, { recursive: true })) {
    if (!path.endsWith(".d.ts")) continue;
    const text = await readFile(join(out, path), "utf8");
    const target = join(dist, "types-cjs", path.replace(/\.d\.ts$/, ".d.cts"));
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, text.replace(/((?:from|import\()\s*"\.[^"]*)\.js"/g, '$1.cjs"'));
  }
}

await rm(dist, { recursive: true, force: true });
await mkdir(dist, { recursive: true });
await Promise.all([scripts(), declarations()]);
for (const name of (await readdir(dist)).filter((name) => /\.(js|cjs|wasm)$/.test(name)).sort()) {
  const path = join(dist, name);
  console.log(`${name}: ${(await stat(path)).size} bytes, ${gzip(await readFile(path)).length} gzipped`);
}
