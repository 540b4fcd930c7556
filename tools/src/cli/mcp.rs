//! `omir mcp`: the tools of a daemon for a language model.

use std::path::PathBuf;

use clap::Args;

/// `omir mcp`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir mcp                                   (what an MCP client starts; docs/mcp.md)
  omir mcp --write
  omir mcp --data /var/lib/omird
  OMIR_TOKEN=... omir mcp --url http://127.0.0.1:7449
  OMIR_TOKEN=... omir mcp --url https://rover.local:7449 --ca ca.pem

It speaks the Model Context Protocol on standard input and output, and ends with its input. Requests
go to the daemon as they come, so a daemon that is started again is found again.

The model may read, and with --write remember, forget, anchor and give feedback too. Without
OMIR_TOKEN the socket in the data folder is used, by its owner. With OMIR_TOKEN the model may do no
more than the token. --url needs one.",
    online_codes!()
))]
pub struct McpArgs {
    /// Let the model change memories too
    #[arg(long)]
    pub write: bool,

    /// Data folder of the daemon [default: $OMIRD_DATA, or that of a daemon of this user]
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    pub data: Option<PathBuf>,

    /// The daemon on a port, instead of the socket: http://HOST:PORT or https://HOST:PORT
    #[arg(long)]
    pub url: Option<String>,

    /// The authorities of the certificate of https, in PEM; these alone are trusted
    #[arg(long, value_name = "FILE", requires = "url")]
    pub ca: Option<PathBuf>,

    /// The certificate to show, in PEM, where the daemon asks for one (client_ca)
    #[arg(long, value_name = "FILE", requires = "ca", requires = "key")]
    pub cert: Option<PathBuf>,

    /// The key of --cert, in PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
}
