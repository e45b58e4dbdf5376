/** How much is told on the console. */
export type LogLevel = "off" | "error" | "warn" | "info" | "debug" | "trace";

const order: readonly LogLevel[] = ["off", "error", "warn", "info", "debug", "trace"];

/** Tells on the console what is at least as grave as the level asked for. */
export class Log {
  constructor(readonly level: LogLevel) {}

  error(message: string, cause?: unknown): void {
    this.#tell("error", message, cause);
  }

  warn(message: string, cause?: unknown): void {
    this.#tell("warn", message, cause);
  }

  info(message: string): void {
    this.#tell("info", message);
  }

  debug(message: string): void {
    this.#tell("debug", message);
  }

  #tell(level: "error" | "warn" | "info" | "debug", message: string, cause?: unknown): void {
    if (order.indexOf(level) > order.indexOf(this.level)) return;
    const words = `relaysync: ${message}`;
    if (cause === undefined) console[level](words);
    else console[level](words, cause);
  }
}

/** The levels, for checking an argument. */
export const levels: readonly string[] = order;
