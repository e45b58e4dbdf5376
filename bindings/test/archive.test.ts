import assert from "node:assert/strict";
import { test } from "node:test";
import type { ImportSource } from "../src/tab/archive.js";
import { Disk, event } from "./support/core.js";
import { openReady } from "./support/database.js";

const lines = [1, 2, 3, 4, 5, 6, 7].map((at) => `${JSON.stringify({ ...event(at), content: "süß 🥝" })}\n`).join("");

async function* inBytes(size: number): AsyncGenerator<Uint8Array> {
  const bytes = new TextEncoder().encode(lines);
  for (let at = 0; at < bytes.length; at += size) yield bytes.slice(at, at + size);
}

function streamed(): ReadableStream<Uint8Array> {
  const parts = inBytes(100);
  return new ReadableStream({
    pull: async (controller) => {
      const { value, done } = await parts.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
  });
}

const sources: Record<string, () => ImportSource> = {
  "a string": () => lines,
  "a Blob": () => new Blob([lines]),
  "a stream": streamed,
  "single bytes": () => inBytes(1),
};

for (const [name, source] of Object.entries(sources)) {
  test(`import takes ${name}, chunk by chunk`, async () => {
    const disk = new Disk();
    const db = await openReady(disk, { config: { importCharsMax: 900 } });
    const report = await db.import(source());
    assert.equal(report.stored, 7);
    assert.equal(report.firstError, null);
    assert.equal((await db.event(event(4).id))?.content, "süß 🥝");
    assert.ok(disk.count("import") > 1);
    await db.close();
  });
}

test("what is no event is counted, with the number of its line in the whole", async () => {
  const db = await openReady(new Disk(), { config: { importCharsMax: 900 } });
  const report = await db.import(`${lines}oops\n${JSON.stringify(event(8))}`);
  assert.deepEqual([report.stored, report.malformed, report.firstError], [8, 1, "line 8: no JSON"]);
  await db.close();
});

test("a line without end is refused", async () => {
  const db = await openReady(new Disk(), { config: { importCharsMax: 10, importLineCharsMax: 50 } });
  await assert.rejects(db.import("x".repeat(100)), { code: "invalid-argument", message: /importLineCharsMax/ });
  await db.close();
});

test("export is read as it is wanted, and import takes it again", async () => {
  const disk = new Disk();
  const db = await openReady(disk);
  await db.import(lines);
  const reader = db.export().getReader();
  await reader.read();
  assert.equal(disk.count("export"), 1);
  await reader.cancel();
  const other = await openReady(new Disk());
  assert.equal((await other.import(db.export())).stored, 7);
  assert.deepEqual(await other.query({}), await db.query({}));
  const nothing = await openReady(new Disk());
  assert.equal(await new Response(nothing.export()).text(), "");
  for (const each of [db, other, nothing]) await each.close();
});
