//! The commands, one file for each.

mod akashik;
mod anchor;
mod answers;
mod backup;
mod compact;
mod completions;
mod console;
mod convert;
mod demo;
mod explain;
mod export;
mod feedback;
mod filters;
mod forget;
mod get;
mod import;
mod mcp;
mod prove;
mod pull;
mod push;
mod rebase;
mod recall;
mod remember;
mod restore;
mod robots;
mod schema;
mod status;
mod store;
mod sweep;
mod token;
mod trace;
mod validate;
mod verify;
mod view;
mod watch;

use crate::cli::{Cli, Command};
use crate::error::Result;

/// Does what the command line says.
///
/// # Errors
/// What the exit code is made of, see [`crate::error::Error`].
pub fn run(cli: Cli) -> Result<()> {
    let globals = &cli.globals;
    match cli.command {
        Command::Remember(args) => remember::run(globals, &args),
        Command::Recall(args) => recall::run(globals, &args),
        Command::Get(args) => get::run(globals, &args),
        Command::Forget(args) => forget::run(globals, &args),
        Command::Anchor(args) => anchor::run(globals, &args),
        Command::Feedback(args) => feedback::run(globals, &args),
        Command::Watch(args) => watch::run(globals, &args),
        Command::Status(args) => status::run(globals, &args),
        Command::Robots(_) => robots::run(globals),
        Command::Compact(args) => compact::run(globals, &args),
        Command::Explain(args) => explain::run(globals, &args),
        Command::Sweep(args) => sweep::run(globals, &args),
        Command::Rebase(args) => rebase::run(globals, &args),
        Command::Import(args) => import::run(globals, &args),
        Command::Export(args) => export::run(globals, &args),
        Command::Console(args) => console::run(globals, &args),
        Command::Mcp(args) => mcp::run(globals, &args),
        Command::Pull(args) => pull::run(globals, &args),
        Command::Push(args) => push::run(globals, &args),
        Command::Backup(args) => backup::run(globals, &args),
        Command::Restore(args) => restore::run(globals, &args),
        Command::Prove(args) => prove::run(globals, &args),
        Command::Verify(args) => verify::run(globals, &args),
        Command::Trace(args) => trace::run(globals, &args),
        Command::Convert(args) => convert::run(globals, &args),
        Command::Validate(args) => validate::run(globals, &args),
        Command::Schema(args) => schema::run(&args),
        Command::Store(args) => store::run(globals, &args),
        Command::Token(args) => token::run(globals, &args),
        Command::Akashik(args) => akashik::run(globals, &args),
        Command::Demo(args) => demo::run(globals, &args),
        Command::Completions(args) => completions::run(&args),
        Command::Daemon(args) => demo::run_daemon(globals, &args),
    }
}
