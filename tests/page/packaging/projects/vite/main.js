import { open } from 'relaysync';

import { syncAll } from '../sync_all.mjs';

globalThis.run = (relay) => syncAll(open, relay);
