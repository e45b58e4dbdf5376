/** Events as lines of JSON, out of the database and into it. */
import type { Config } from "../config.js";
import { invalid } from "../errors.js";
import type { ImportReport } from "../reports.js";
import { unlessAborted } from "../time.js";
import type { Client } from "./client.js";

/** NDJSON: whole, as a file, or as it comes. Bytes are UTF-8. */
export type ImportSource = string | Blob | ReadableStream<Uint8Array | string> | AsyncIterable<Uint8Array | string>;

/** All events, chunk by chunk as they are read. */
export function exportStream(client: Client, config: Config): ReadableStream<Uint8Array<ArrayBuffer>> {
  const encoder = new TextEncoder();
  let after: number | null | undefined;
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>): Promise<void> => {
    const chunk = await client.call<{ text: string; next: number | null }>({
      method: "export",
      bytesMax: config.exportBytesMax,
      ...(after === undefined || after === null ? {} : { after }),
    });
    after = chunk.next;
    if (chunk.text !== "") controller.enqueue(encoder.encode(chunk.text));
    if (after === null) controller.close();
    else if (chunk.text === "") await pull(controller);
  };
  return new ReadableStream({ pull }, { highWaterMark: 0 });
}

/** Stores what the lines say, chunk by chunk. */
export async function importText(
  client: Client,
  config: Config,
  source: ImportSource,
  signal: AbortSignal | undefined,
): Promise<ImportReport> {
  let total: ImportReport = {
    lines: 0,
    stored: 0,
    duplicate: 0,
    unwanted: 0,
    invalid: 0,
    malformed: 0,
    firstError: null,
  };
  let linesBefore = 0;
  for await (const text of lines(source, config, signal)) {
    const report = await client.call<Partial<ImportReport>>({ method: "import", text }, signal);
    total = sum(total, { ...report, firstError: renumbered(report.firstError, linesBefore) });
    linesBefore += text.split("\n").length - 1;
  }
  return total;
}

/** The core counts the lines of a chunk. */
function renumbered(error: string | null | undefined, linesBefore: number): string | null {
  return error?.replace(/^line (\d+)/, (_, line: string) => `line ${Number(line) + linesBefore}`) ?? null;
}

function sum(total: ImportReport, more: Partial<ImportReport>): ImportReport {
  return {
    lines: total.lines + (more.lines ?? 0),
    stored: total.stored + (more.stored ?? 0),
    duplicate: total.duplicate + (more.duplicate ?? 0),
    unwanted: total.unwanted + (more.unwanted ?? 0),
    invalid: total.invalid + (more.invalid ?? 0),
    malformed: total.malformed + (more.malformed ?? 0),
    firstError: total.firstError ?? more.firstError ?? null,
  };
}

/** Whole lines, as many at a time as a chunk holds. */
async function* lines(source: ImportSource, config: Config, signal: AbortSignal | undefined): AsyncGenerator<string> {
  let rest = "";
  for await (const text of texts(source, signal)) {
    rest += text;
    while (rest.length > config.importCharsMax) {
      const end = rest.lastIndexOf("\n", config.importCharsMax);
      const cut = end < 0 ? rest.indexOf("\n") : end;
      if (cut < 0) break;
      yield rest.slice(0, cut + 1);
      rest = rest.slice(cut + 1);
    }
    if (rest.length > config.importLineCharsMax && !rest.slice(0, config.importLineCharsMax).includes("\n")) {
      throw invalid("source", `a line is longer than ${config.importLineCharsMax} characters (importLineCharsMax)`);
    }
  }
  if (rest.trim() !== "") yield rest;
}

/** The source as text, with characters that were cut in two put together. */
async function* texts(source: ImportSource, signal: AbortSignal | undefined): AsyncGenerator<string> {
  if (typeof source === "string") return yield source;
  const decoder = new TextDecoder();
  for await (const part of parts(source, signal)) {
    yield typeof part === "string" ? part : decoder.decode(part, { stream: true });
  }
  yield decoder.decode();
}

async function* parts(
  source: Exclude<ImportSource, string>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array | string> {
  const stream = source instanceof Blob ? source.stream() : source;
  if (!("getReader" in stream)) {
    if (typeof stream?.[Symbol.asyncIterator] !== "function") {
      throw invalid("source", "a string, a Blob, a ReadableStream or an AsyncIterable is needed");
    }
    for await (const part of stream) {
      signal?.throwIfAborted();
      yield part;
    }
    return;
  }
  // Not every browser can iterate over a stream.
  const reader: ReadableStreamDefaultReader<Uint8Array | string> = stream.getReader();
  try {
    for (
      let next = await unlessAborted(reader.read(), signal);
      !next.done;
      next = await unlessAborted(reader.read(), signal)
    ) {
      yield next.value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
