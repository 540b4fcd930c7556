//! The program `omird`, where the tests of this package find it.

fn main() -> std::process::ExitCode {
    omird::program::main()
}
