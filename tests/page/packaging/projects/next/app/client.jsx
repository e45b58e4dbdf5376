'use client';

// Rendered by the server first, where nothing may run at import, and then alive in the browser.

import { open } from 'relaysync';
import { useEffect, useState } from 'react';

import { syncAll } from '../../sync_all.mjs';

export function Client() {
  const [ready, setReady] = useState(false);
  useEffect(() => {
    globalThis.run = (relay) => syncAll(open, relay);
    setReady(true);
  }, []);
  return <p>{ready ? 'ready' : 'rendered'}</p>;
}
