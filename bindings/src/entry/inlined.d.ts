/** Made by the build. */
declare module "relaysync-inlined" {
  export const wasmBase64: string;
  export const workerText: string;
}
