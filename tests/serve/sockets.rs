//! The relay service on sockets.
