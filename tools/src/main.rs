//! `omir`, the command-line tool of omird. Everything is in the library beside it.

fn main() -> std::process::ExitCode {
    omir_tools::run()
}
