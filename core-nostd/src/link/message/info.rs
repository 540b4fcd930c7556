//! The responder, and the access that it grants.

use alloc::string::String;

use super::MessageError;
use super::members::{Members, truth};
use crate::value::{Map, Value};

/// The answer to [`Request::Info`](super::Request::Info).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// The name of the robot.
    pub robot: String,
    /// The program that answers, with its version.
    pub program: String,
    /// True if this session may push.
    pub write: bool,
    /// The responder's time, an RFC 3339 instant.
    pub time: String,
    /// Trust in that time: `unknown`, `coarse` or `synchronised`.
    pub clock: String,
    /// Number of resources.
    pub count: u64,
    /// True if it reads packed messages.
    pub deflate: bool,
}

impl Info {
    /// As the member `ok` of an answer.
    pub fn to_map(self) -> Map {
        let members: [(&str, Value); 7] = [
            ("robot", self.robot.into()),
            ("program", self.program.into()),
            ("access", if self.write { "write" } else { "read" }.into()),
            ("time", self.time.into()),
            ("clock", self.clock.into()),
            ("count", self.count.into()),
            ("deflate", self.deflate.into()),
        ];
        members.into_iter().collect()
    }

    /// Reads the member `ok` of the answer to `info`.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn from_map(map: Map) -> Result<Info, MessageError> {
        let mut members = Members::of_ok(map);
        let access = members.text("access")?;
        Ok(Info {
            robot: members.text("robot")?,
            program: members.text("program")?,
            write: match access.as_str() {
                "write" => true,
                "read" => false,
                _ => return Err(members.error("access", "is neither \"read\" nor \"write\"")),
            },
            time: members.text("time")?,
            clock: members.text("clock")?,
            count: members.number("count")?,
            deflate: members.need("deflate", truth)?,
        })
    }
}
