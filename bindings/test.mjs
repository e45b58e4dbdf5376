// Checks types, examples included, and runs the tests, in Node's own runner.
//
//     node bindings/test.mjs [NAME…]    of bindings/test/NAME.test.ts; all, without arguments
import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, ".tests");
const tsc = join(here, "..", "node_modules", "typescript", "bin", "tsc");
const chosen = process.argv.slice(2);
const names = readdirSync(join(here, "test"))
  .filter((name) => name.endsWith(".test.ts"))
  .map((name) => name.replace(/\.test\.ts$/, ""))
  .filter((name) => chosen.length === 0 || chosen.includes(name));

execFileSync(process.execPath, [tsc, "-p", join(here, "tsconfig.json")], { stdio: "inherit" });
rmSync(out, { recursive: true, force: true });
await build({
  entryPoints: names.map((name) => join(here, "test", `${name}.test.ts`)),
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20",
  outdir: out,
  outExtension: { ".js": ".mjs" },
  sourcemap: "inline",
  packages: "external",
  external: ["relaysync-core"],
  logLevel: "warning",
});
const files = names.map((name) => join(out, `${name}.test.mjs`));
process.exitCode =
  spawnSync(process.execPath, ["--enable-source-maps", "--test", ...files], { stdio: "inherit" }).status ?? 1;
