import { open } from 'relaysync/inline';

import { syncAll } from '../sync_all.mjs';

globalThis.run = (relay) => syncAll(open, relay);
