//! Responses of the daemon, as far as a hand-over needs them.

use ciborium_ll::Header;

use crate::fixed::read::{ReadError, ReadErrorKind, Reader};
use crate::fixed::{Text, Trust};
use crate::instant::Timestamp;

/// A response. Members that are not named here are passed over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Response {
    /// Of the request.
    pub(super) id: u64,
    /// `code` of `error`, if it is one; cut to what there is room for.
    pub(super) error: Option<Text<24>>,
    /// `time` of `info`.
    pub(super) time: Option<Timestamp>,
    /// `clock` of `info`.
    pub(super) clock: Option<Trust>,
    /// `access` of `info`.
    pub(super) may_write: Option<bool>,
    /// Of `push`.
    pub(super) stored: u32,
    pub(super) unchanged: u32,
    pub(super) kept: u32,
}

impl Response {
    /// Reads the map of a message, or the beginning of one that was `cut`. `None` if it is no response,
    /// or too little of one.
    pub(super) fn read(bytes: &[u8], cut: bool) -> Option<Self> {
        let mut reading = Reading::default();
        match reading.message(&mut Reader::new(bytes)) {
            Ok(()) => {}
            Err(ReadError { kind: ReadErrorKind::Truncated, .. }) if cut => {}
            Err(_) => return None,
        }
        let response = Response { id: reading.id?, ..reading.response };
        (reading.is_ok || response.error.is_some()).then_some(response)
    }
}

/// A response that is being read.
#[derive(Default)]
struct Reading {
    id: Option<u64>,
    is_ok: bool,
    response: Response,
}

impl Reading {
    fn message(&mut self, reader: &mut Reader<'_>) -> Result<(), ReadError> {
        for _ in 0..reader.map()? {
            match reader.text()? {
                "id" => {
                    // An id that is no number belongs to no request.
                    if let Header::Positive(id) = reader.head()? {
                        self.id = Some(id);
                    }
                }
                "ok" => {
                    self.is_ok = true;
                    self.ok(reader)?;
                }
                "error" => self.error(reader)?,
                _ => reader.skip()?,
            }
        }
        Ok(())
    }

    fn ok(&mut self, reader: &mut Reader<'_>) -> Result<(), ReadError> {
        for _ in 0..reader.map()? {
            match reader.text()? {
                "time" => self.response.time = Timestamp::parse(reader.text()?).ok(),
                "clock" => self.response.clock = Some(Trust::named(reader.text()?)),
                "access" => self.response.may_write = Some(reader.text()? == "write"),
                "stored" => self.response.stored = reader.count()?,
                "unchanged" => self.response.unchanged = reader.count()?,
                "kept" => self.response.kept = reader.count()?,
                _ => reader.skip()?,
            }
        }
        Ok(())
    }

    fn error(&mut self, reader: &mut Reader<'_>) -> Result<(), ReadError> {
        self.response.error = Some(Text::new());
        for _ in 0..reader.map()? {
            match reader.text()? {
                "code" => {
                    let mut code = Text::new();
                    // Room for all codes there are.
                    let _ = reader.text()?.chars().try_for_each(|letter| code.push(letter));
                    self.response.error = Some(code);
                }
                _ => reader.skip()?,
            }
        }
        Ok(())
    }
}
