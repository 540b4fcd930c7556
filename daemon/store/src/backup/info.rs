//! `backup.json`: whose backup this is, and how far it reaches. It is not signed; the segments are.

use std::io;

use omir_core::decode::Limits;
use omir_core::instant::Timestamp;
use omir_core::json;
use omir_core::number::Number;
use omir_core::value::{Map, Value};

use crate::disk::{self, Disk};

/// The name of the file.
pub const INFO: &str = "backup.json";

const FORMAT: &str = "omird-backup-1";

/// The contents of `backup.json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// Name of the robot.
    pub robot: String,
    /// The daemon it came from, and its version.
    pub program: String,
    /// When the last run that ended did so; nothing before the first has.
    pub finished: Option<Timestamp>,
    /// The last transaction that run brought.
    pub last_seq: u64,
}

impl Info {
    /// Reads it; `None` if there is none, or none that can be read.
    ///
    /// # Errors
    /// What the disk says.
    pub fn read(disk: &dyn Disk) -> io::Result<Option<Self>> {
        match disk::read(disk, INFO) {
            Ok(text) => Ok(Self::from_json(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes it. Durable on return.
    pub(super) fn write(&self, disk: &dyn Disk) -> io::Result<()> {
        disk::replace(disk, INFO, self.to_json().as_bytes())?;
        disk.sync_dir(".")
    }

    fn to_json(&self) -> String {
        let mut map = Map::new();
        map.insert("format", FORMAT);
        map.insert("robot", self.robot.as_str());
        map.insert("omird", self.program.as_str());
        let finished = self.finished.map(|at| at.to_string());
        map.insert("finished", finished.map_or(Value::Null, Value::from));
        map.insert("lastSeq", Value::Number(Number::from(self.last_seq)));
        json::to_string(&Value::Object(map)) + "\n"
    }

    fn from_json(text: &[u8]) -> Option<Self> {
        let limits = Limits { max_bytes: 1 << 16, ..Limits::default() };
        let value = json::from_slice(text, &limits).ok()?;
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        (text("format") == Some(FORMAT)).then_some(())?;
        Some(Self {
            robot: text("robot")?.to_owned(),
            program: text("omird")?.to_owned(),
            finished: text("finished").and_then(|text| text.parse().ok()),
            last_seq: value.get("lastSeq").and_then(Value::as_u64)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_survives_its_file_and_nothing_else_is_taken_for_it() {
        for finished in [None, Some(Timestamp::from_micros(1_780_272_000_000_000))] {
            let (robot, program) = ("r1".to_owned(), "omird 0.1.0".to_owned());
            let info = Info { robot, program, finished, last_seq: 17 };
            assert_eq!(Info::from_json(info.to_json().as_bytes()), Some(info));
        }
        assert_eq!(Info::from_json(b"{\"format\":\"omird-backup-2\"}"), None);
        assert_eq!(Info::from_json(b"\xff"), None);
    }
}
