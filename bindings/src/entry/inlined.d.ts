/** Made by the build. */
declare module "relaysync-inlined" {
  export const wasmGzipBase64: string;
  export const workerText: string;
}
