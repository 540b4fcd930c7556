//! `omir backup` and `omir restore`.

use std::path::PathBuf;

use clap::Args;

/// `omir backup`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  omir backup /media/usb/rover
  omir --robot rover --connect tcp/192.168.1.5:7448 backup rover --json | jq .fetched
  omir store check rover
  omir restore rover /var/lib/omird

The daemon keeps running. The backup holds everything acknowledged before it began. Only new
segments are fetched, and each is checked against its signature. After an interruption the next run
continues. `omir store check|ls|cat|repair` work on a backup as on a data folder. The first run
notes the robot's public key, and later runs refuse another one. The secret key is not in a backup.

Exit codes:
  0  done, and the whole chain of signatures verifies
  1  the daemon refused or went away meanwhile, the robot has another key, or another history
  2  wrong usage, or the folder is no backup or cannot be used
  3  finished, but something is damaged or could not be sealed
  4  no daemon reachable")]
pub struct BackupArgs {
    /// Folder to keep the backup in, made if it is not there
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// Accept that the robot signs with another key than before
    #[arg(long)]
    pub new_key: bool,
}

/// `omir restore`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  omir restore /media/usb/rover /var/lib/omird && omird --data /var/lib/omird
  omir restore --replace /media/usb/rover /var/lib/omird  (which goes to omird.before)
  omir restore --force-damaged /media/usb/rover recovered

Stop a daemon that uses the folder first. Digests, signatures and their chain are verified before
anything is written; the backup is not changed. The data folder appears whole or not at all.
Existing keys in keys/ stay; without them the daemon makes a new key at its first start and
continues the chain.

Exit codes:
  0  done
  1  the backup does not verify; nothing was written
  2  wrong usage, no backup, or a data folder that is in use, not empty or cannot be written
  3  finished with --force-damaged, but something is damaged or missing")]
pub struct RestoreArgs {
    /// Backup to read; it is not changed
    #[arg(value_name = "BACKUP")]
    pub backup: PathBuf,

    /// Data folder to write; without --replace it does not exist, is empty, or holds keys/ only
    #[arg(value_name = "DATA_DIR")]
    pub data: PathBuf,

    /// Put it in the place of the memory that lies there, which goes to DATA_DIR.before; keys stay
    #[arg(long)]
    pub replace: bool,

    /// Restore what can be had of a backup that does not verify
    #[arg(long)]
    pub force_damaged: bool,
}
