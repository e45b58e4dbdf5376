const { open } = require('relaysync');

const { webSocket } = require('./web_socket.cjs');

(async () => {
  const { syncAll } = await import('../sync_all.mjs');
  console.log(JSON.stringify(await syncAll(open, process.argv[2], webSocket())));
})();
