//! The subcommands of the `relaysync` program.

pub mod serve;
