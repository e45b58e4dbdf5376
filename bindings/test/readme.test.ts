import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

test("the first example of the documentation is the one that is compiled", () => {
  const documentation = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const example = readFileSync(new URL("../examples/first.ts", import.meta.url), "utf8");
  assert.ok(documentation.includes(`\`\`\`ts\n${example}\`\`\``));
});
