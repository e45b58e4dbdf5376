import { open } from 'relaysync';

import { syncAll } from '../sync_all.mjs';
import { webSocket } from './web_socket.cjs';

console.log(JSON.stringify(await syncAll(open, process.argv[2], webSocket())));
