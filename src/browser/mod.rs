//! The browser runtime: the same engine over WebSockets, IndexedDB and timers, and what JavaScript sees of it.
