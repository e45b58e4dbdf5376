/**
 * The script of the worker. `new Worker(new URL("relaysync/worker", import.meta.url), { type: "module" })`, or in a
 * worker of your own: `import { serve } from "relaysync/worker"; serve();`
 */
import { serve } from "../serve/worker.js";

export { serve };

serve();
