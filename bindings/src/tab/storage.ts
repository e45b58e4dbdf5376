import type { StorageInfo } from "../reports.js";

/** What the core says of the database, with what the browser says of the origin. */
export async function storageInfo(core: object): Promise<StorageInfo> {
  const storage = globalThis.navigator?.storage;
  const estimate = await storage?.estimate?.();
  const persisted = await storage?.persisted?.();
  return {
    ...(core as Pick<StorageInfo, "events" | "bytes" | "bytesMax" | "floorSecs" | "state" | "message">),
    usageBytes: estimate?.usage ?? null,
    quotaBytes: estimate?.quota ?? null,
    persisted: persisted ?? null,
  };
}
