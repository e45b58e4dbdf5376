//! The `relaysync` program.

fn main() -> std::process::ExitCode {
    relaysync::native::program::main()
}
