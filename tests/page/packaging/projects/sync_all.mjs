/** What each of the projects does with the package: it syncs a relay, and tells what it has then. */
export async function syncAll(open, relay, options = {}) {
  const db = await open({ name: 'packaging', ...options });
  try {
    const filter = { kinds: [1, 7, 1111] };
    const { complete } = await db.sync(filter, { relays: [relay] }).done;
    return { complete, events: await db.count(filter), mode: db.mode };
  } finally {
    await db.close();
  }
}
