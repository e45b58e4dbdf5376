/** Node has a WebSocket of its own from version 22 on; before that one is given. */
exports.webSocket = () => (globalThis.WebSocket ? {} : { WebSocket: require('ws') });
