//! The `relaysync` program.
fn main() {}
