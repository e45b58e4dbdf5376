/** Checks what callers give, so that a mistake is told where it was made, and by name. */
import { invalid } from "./errors.js";
import type { Filter, NostrEvent } from "./events.js";

const hex = /^[0-9a-f]{64}$/;
const plainFields = new Set(["ids", "authors", "kinds", "since", "until", "limit"]);

/** 64 lower-case hex digits. */
export function checkHex(parameter: string, value: unknown): asserts value is string {
  if (typeof value !== "string" || !hex.test(value))
    throw invalid(parameter, `64 lower-case hex digits are needed, not ${show(value)}`);
}

/** A kind of event. */
export function checkKind(parameter: string, value: unknown): asserts value is number {
  if (!Number.isInteger(value) || (value as number) < 0 || (value as number) > 65_535) {
    throw invalid(parameter, `a kind is a whole number from 0 to 65535, not ${show(value)}`);
  }
}

/** A whole number from `min` on, if it is given. */
export function checkNumber(parameter: string, value: unknown, min = 0): void {
  if (value !== undefined && (!Number.isSafeInteger(value) || (value as number) < min)) {
    throw invalid(parameter, `a whole number of at least ${min} is needed, not ${show(value)}`);
  }
}

/** One of these words, if it is given. */
export function checkWord(parameter: string, value: unknown, words: readonly string[]): void {
  if (value !== undefined && !words.includes(value as string)) {
    throw invalid(parameter, `one of ${words.map((word) => `"${word}"`).join(", ")} is needed, not ${show(value)}`);
  }
}

/** No name that nobody knows: most likely a slip of the pen. */
export function checkNames(parameter: string, value: unknown, names: readonly string[]): void {
  if (value === undefined) return;
  if (typeof value !== "object" || value === null) throw invalid(parameter, `an object is needed, not ${show(value)}`);
  for (const name of Object.keys(value)) {
    if (!names.includes(name))
      throw invalid(`${parameter}.${name}`, `there is no such option; there are ${names.join(", ")}`);
  }
}

/** One filter or several, as several. `sync` takes no limits: a sync is whole. */
export function filtersOf(value: Filter | readonly Filter[], parameter = "filters", limits = true): readonly Filter[] {
  const filters: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (filters.length === 0) throw invalid(parameter, "at least one filter is needed; {} selects everything");
  filters.forEach((filter, at) =>
    checkFilter(Array.isArray(value) ? `${parameter}[${at}]` : parameter, filter, limits),
  );
  // Copies: what the page does with its own from now on changes nothing, and those of frameworks cannot be sent.
  return JSON.parse(JSON.stringify(filters)) as readonly Filter[];
}

function checkFilter(parameter: string, filter: unknown, limits: boolean): void {
  if (typeof filter !== "object" || filter === null || Array.isArray(filter)) {
    throw invalid(parameter, `a filter is an object, not ${show(filter)}`);
  }
  for (const [field, value] of Object.entries(filter)) {
    // A field that is there but undefined would silently widen the filter.
    if (value === undefined)
      throw invalid(`${parameter}.${field}`, "it is undefined: leave the field out, or give it a value");
    checkField(`${parameter}.${field}`, field, value, limits);
  }
}

function checkField(parameter: string, field: string, value: unknown, limits: boolean): void {
  if (field === "ids" || field === "authors") {
    each(parameter, value, checkHex);
  } else if (field === "kinds") {
    each(parameter, value, checkKind);
  } else if (field.startsWith("#") && field.length > 1) {
    each(parameter, value, (name, item) => {
      if (typeof item !== "string") throw invalid(name, `a string is needed, not ${show(item)}`);
    });
  } else if (plainFields.has(field)) {
    checkNumber(parameter, value);
    if (field === "limit" && !limits)
      throw invalid(parameter, "a sync takes all that a filter selects: leave the limit out");
  } else {
    throw invalid(parameter, "a filter has no such field");
  }
}

function each(parameter: string, value: unknown, check: (parameter: string, item: unknown) => void): void {
  if (!Array.isArray(value)) throw invalid(parameter, `an array is needed, not ${show(value)}`);
  value.forEach((item, at) => check(`${parameter}[${at}]`, item));
}

/** Relays, each once, in the form in which reports name them; `fallback` if none are given. */
export function relaysOf(
  value: readonly string[] | undefined,
  fallback: readonly string[],
  parameter = "relays",
): readonly string[] {
  const relays = value ?? fallback;
  if (!Array.isArray(relays)) throw invalid(parameter, `an array of relay URLs is needed, not ${show(relays)}`);
  if (relays.length === 0) throw invalid(parameter, "at least one relay is needed, here or in open()");
  return [...new Set(relays.map((relay, at) => relayOf(relay, `${parameter}[${at}]`)))];
}

/** A relay's URL, checked. */
export function relayOf(value: unknown, parameter: string): string {
  const url = typeof value === "string" ? parse(value) : undefined;
  if (url === undefined || !["ws:", "wss:"].includes(url.protocol)) {
    throw invalid(parameter, `a relay's URL begins with wss:// or ws://, unlike ${show(value)}`);
  }
  return value as string;
}

function parse(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

/** An event that is to be stored; whether it is genuine is checked by the core. */
export function checkEvent(parameter: string, value: unknown): asserts value is NostrEvent {
  if (typeof value !== "object" || value === null)
    throw invalid(parameter, `an event is an object, not ${show(value)}`);
  const event = value as Partial<Record<keyof NostrEvent, unknown>>;
  checkHex(`${parameter}.id`, event.id);
  checkHex(`${parameter}.pubkey`, event.pubkey);
  checkKind(`${parameter}.kind`, event.kind);
  if (!Number.isSafeInteger(event.created_at))
    throw invalid(`${parameter}.created_at`, "seconds since 1970 are needed");
  if (!Array.isArray(event.tags)) throw invalid(`${parameter}.tags`, "an array is needed");
  if (typeof event.content !== "string") throw invalid(`${parameter}.content`, "a string is needed");
  if (typeof event.sig !== "string") throw invalid(`${parameter}.sig`, "the event is not signed");
}

/** The text of an event with the seven fields that NIP-01 names, and no others. */
export function eventText({ id, pubkey, created_at, kind, tags, content, sig }: NostrEvent): string {
  return JSON.stringify({ id, pubkey, created_at, kind, tags, content, sig });
}

/** For a value that should be an AbortSignal. */
export function checkSignal(parameter: string, value: unknown): void {
  if (value !== undefined && (typeof value !== "object" || value === null || !("aborted" in value))) {
    throw invalid(parameter, `an AbortSignal is needed, not ${show(value)}`);
  }
}

function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
  if (typeof value === "object" && value !== null) return Array.isArray(value) ? "an array" : "an object";
  return String(value);
}
