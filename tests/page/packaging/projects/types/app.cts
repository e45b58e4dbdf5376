// The same from CommonJS.

import { open, type RelaySync } from 'relaysync';

export function start(): Promise<RelaySync> {
  return open({ name: 'app', storage: 'memory' });
}
