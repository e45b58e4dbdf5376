/** What all of them sync: every event that the relay has, told by its kinds. */
export const filter = { kinds: [1, 7, 1111] };

/** How many records an object store of IndexedDB has, read past the library that wrote them: what is there is committed. */
export async function recordCount(database, store) {
  const known = await indexedDB.databases();
  if (!known.some(({ name }) => name === database)) return 0;
  const open = await settled(indexedDB.open(database));
  try {
    if (!open.objectStoreNames.contains(store)) return 0;
    return await settled(open.transaction(store).objectStore(store).count());
  } finally {
    open.close();
  }
}

function settled(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
    request.onblocked = () => reject(new Error('another connection blocks the database'));
  });
}
