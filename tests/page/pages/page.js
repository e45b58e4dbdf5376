// What the tests call in a page: the package as it comes, and the few things that all of them do with it.

import { open } from '/relaysync/index.js';

/** All that the generated events are of. */
const filter = { kinds: [1, 7, 1111] };

globalThis.relaysync = { open };

/** Opens the database of the tests; `globalThis.db` from then on. */
globalThis.begin = async (options = {}) => {
  globalThis.db = await open({ name: 'page-tests', ...options });
  globalThis.told = [];
  for (const type of ['leader', 'storage', 'error']) {
    globalThis.db.addEventListener(type, ({ detail }) => globalThis.told.push({ type, detail }));
  }
  return { leading: globalThis.db.leading, mode: globalThis.db.mode };
};

/** Starts a job and reads it event by event; `globalThis.heard` has the ids, and how the job went. */
globalThis.follow = (options) => {
  const { filters = filter, ...rest } = options;
  const job = globalThis.db.sync(filters, rest);
  const heard = { ids: [], phases: {}, ended: false, error: undefined };
  globalThis.job = job;
  globalThis.heard = heard;
  (async () => {
    for await (const { event, phase } of job) {
      heard.ids.push(event.id);
      heard.phases[phase] = (heard.phases[phase] ?? 0) + 1;
    }
    heard.ended = true;
  })().catch((error) => {
    heard.error = String(error);
  });
};

/** Waits for the end of the job, and of reading it. */
globalThis.followed = async (moment = 'done') => {
  const report = await globalThis.job[moment];
  return { report, heard: globalThis.heard };
};

/** The ids of all that is held. */
globalThis.heldIds = async () => (await globalThis.db.query(filter)).map((event) => event.id);
globalThis.heldCount = () => globalThis.db.count(filter);
globalThis.ready = true;
