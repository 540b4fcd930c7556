//! Answers of the other end, as far as a hand-over wants to know.

use ciborium_ll::Header;

use crate::fixed::read::{ReadError, ReadErrorKind, Reader};
use crate::fixed::{Text, Trust};
use crate::instant::Timestamp;

/// An answer. Members that are not named here are passed over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
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

impl Answer {
    /// Reads the map that a message is, or the beginning of one that was `cut`. `None` if it is no answer,
    /// or too little of one.
    pub(super) fn read(bytes: &[u8], cut: bool) -> Option<Self> {
        let mut found = Found::default();
        match found.message(&mut Reader::new(bytes)) {
            Ok(()) => {}
            Err(ReadError { kind: ReadErrorKind::Truncated, .. }) if cut => {}
            Err(_) => return None,
        }
        let answer = Answer { id: found.id?, ..found.answer };
        (found.is_ok || answer.error.is_some()).then_some(answer)
    }
}

#[derive(Default)]
struct Found {
    id: Option<u64>,
    is_ok: bool,
    answer: Answer,
}

impl Found {
    fn message(&mut self, reader: &mut Reader<'_>) -> Result<(), ReadError> {
        for _ in 0..reader.map()? {
            match reader.text()? {
                "id" => {
                    // What is no number answers nothing.
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
                "time" => self.answer.time = Timestamp::parse(reader.text()?).ok(),
                "clock" => self.answer.clock = Some(Trust::named(reader.text()?)),
                "access" => self.answer.may_write = Some(reader.text()? == "write"),
                "stored" => self.answer.stored = reader.count()?,
                "unchanged" => self.answer.unchanged = reader.count()?,
                "kept" => self.answer.kept = reader.count()?,
                _ => reader.skip()?,
            }
        }
        Ok(())
    }

    fn error(&mut self, reader: &mut Reader<'_>) -> Result<(), ReadError> {
        self.answer.error = Some(Text::new());
        for _ in 0..reader.map()? {
            match reader.text()? {
                "code" => {
                    let mut code = Text::new();
                    // Room for all codes there are.
                    let _ = reader.text()?.chars().try_for_each(|letter| code.push(letter));
                    self.answer.error = Some(code);
                }
                _ => reader.skip()?,
            }
        }
        Ok(())
    }
}
