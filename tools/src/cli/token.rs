//! `omir token`: who may ask what.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand};

/// Exit codes of the commands that ask a daemon's socket, or change a data folder.
macro_rules! token_codes {
    () => {
        "\n\nExit codes:
  0  done
  1  the daemon refused, or there is no such token
  2  wrong usage, or a folder that cannot be read or written
  4  no daemon answers on its socket"
    };
}

/// `omir token`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir token add phone --scope omir:read --expires 30d
  omir token list
  omir token revoke phone
  sudo omir token --data /var/lib/omird add arm --scope omir:read --scope omir:write

Without --data, the daemon of this user is asked through the socket in its data folder. With it, the
folder is changed, with a daemon running on it or not. Either way it is in force within a second.
docs/access.md says where tokens are used and what the scopes allow.",
    token_codes!()
))]
pub struct TokenArgs {
    /// Data folder to change, instead of asking the daemon
    #[arg(long, value_name = "DIR", global = true)]
    pub data: Option<PathBuf>,

    /// The command on the tokens.
    #[command(subcommand)]
    pub command: TokenCommand,
}

/// The commands of `omir token`.
#[derive(Debug, Subcommand)]
#[non_exhaustive]
pub enum TokenCommand {
    /// Make a token, and print it this once
    Add(Box<TokenAddArgs>),
    /// List the tokens, without their texts
    #[command(visible_alias = "ls")]
    List(TokenListArgs),
    /// Revoke a token
    #[command(visible_alias = "rm")]
    Revoke(TokenRevokeArgs),
}

/// `omir token add`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir token add phone --scope omir:read
  omir token add arm --scope omir:read --scope omir:write --expires 30d --rate 20
  TOKEN=$(omir token add script --scope omir:read)
  omir token add fleet --scope omir:admin --expires 2027-06-01T00:00:00Z --data /var/lib/omird

The token alone goes to standard output. It is shown this once: only a hash of it is kept. With
--json an object is printed, with the token and what it grants.",
    token_codes!()
))]
pub struct TokenAddArgs {
    /// Its name, in lists and audit lines
    #[arg(value_name = "NAME")]
    pub name: String,

    /// What it may do, such as omir:read; repeatable
    #[arg(long = "scope", value_name = "SCOPE", required = true, value_delimiter = ',')]
    pub scopes: Vec<String>,

    /// The part of the memory that it is for [default: default]
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<String>,

    /// An agent it speaks as; repeatable
    #[arg(long = "agent", value_name = "ID")]
    pub agents: Vec<String>,

    /// Its end: a time from now such as 30d, or an instant such as 2027-01-01T00:00:00Z [default: never]
    #[arg(long, value_name = "WHEN")]
    pub expires: Option<String>,

    /// Most requests a second
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u32>::new().range(1..))]
    pub rate: Option<u32>,

    /// Most requests an hour
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u32>::new().range(1..))]
    pub per_hour: Option<u32>,

    /// Its authority among agents (Akashik)
    #[arg(long, value_name = "N")]
    pub authority: Option<u32>,
}

/// `omir token list`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir token list
  omir token list --json | jq -r 'select(.expires != null) | .name'

One line for each token; with --json one object a line. The token of the person at the machine,
keys/local.token in the data folder, is not listed.",
    token_codes!()
))]
pub struct TokenListArgs {}

/// `omir token revoke`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir token revoke phone
  omir token revoke local           (keys/local.token; the next start of omird makes another)

Whoever has the token is refused from then on, within a second.",
    token_codes!()
))]
pub struct TokenRevokeArgs {
    /// The name of the token
    #[arg(value_name = "NAME")]
    pub name: String,
}
