//! The program `omird`.

fn main() -> std::process::ExitCode {
    omird::program::main()
}
