// Rendered by the server, for each request: it opens a database in memory there, with the same package.

import { open } from 'relaysync';

import { syncAll } from '../../sync_all.mjs';
import { webSocket } from '../../node/web_socket.cjs';
import { Client } from './client.jsx';

export const dynamic = 'force-dynamic';

export default async function Page({ searchParams }) {
  const { relay } = await searchParams;
  const synced = relay ? await syncAll(open, relay, webSocket()) : undefined;
  return (
    <main>
      <pre id="server">{JSON.stringify(synced)}</pre>
      <Client />
    </main>
  );
}
