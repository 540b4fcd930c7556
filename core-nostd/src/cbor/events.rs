//! CBOR documents that do not fit into memory: see [`crate::stream`].
//!
//! Only the headers of the document and of its `entry` are looked at here; everything inside is the
//! business of the reader of whole items.

use alloc::string::String;

use ciborium_ll::Header;

use super::header::Cursor;
use super::{read, tag};
use crate::decode::{Budget, DecodeError, DecodeErrorKind};
use crate::stream::{self, ENTRY, Source, StreamError, Tokens, Window};
use crate::value::Value;

/// The end of what says no length.
const BREAK: u8 = 0xFF;

/// Reads a CBOR document part by part.
pub type Events<S> = stream::Events<CborTokens<S>>;

/// The headers of a CBOR document.
#[derive(Debug)]
pub struct CborTokens<S> {
    window: Window<S>,
    budget: Budget,
    /// Members that the document says it has.
    members: Option<usize>,
    /// Items that `entry` says it has.
    items: Option<usize>,
}

impl<S: Source> Tokens for CborTokens<S> {
    type Source = S;

    const OBJECT: &'static str = "map";

    fn new(window: Window<S>, budget: Budget) -> Self {
        Self { window, budget, members: None, items: None }
    }

    fn offset(&self) -> usize {
        self.window.offset()
    }

    fn opens_document(&mut self) -> Result<bool, StreamError<S::Error>> {
        let (mut header, mut len) = self.header()?;
        if header == Header::Tag(tag::SELF_DESCRIBED) {
            self.window.advance(len);
            (header, len) = self.header()?;
        }
        let Header::Map(members) = header else { return Ok(false) };
        self.open(len, 1)?;
        self.members = members;
        Ok(true)
    }

    fn name(&mut self, seen: usize) -> Result<Option<(String, usize)>, StreamError<S::Error>> {
        if !self.more(self.members, seen)? {
            return Ok(None);
        }
        let offset = self.window.offset();
        let name = self.window.parse(|bytes, _| {
            let mut cursor = Cursor::new(bytes);
            let name = read::key(&mut cursor)?.into_owned();
            Ok((name, cursor.at))
        })?;
        Ok(Some((name, offset)))
    }

    fn separator(&mut self) -> Result<(), StreamError<S::Error>> {
        Ok(())
    }

    fn opens_entries(&mut self) -> Result<bool, StreamError<S::Error>> {
        let (Header::Array(items), len) = self.header()? else { return Ok(false) };
        self.open(len, 2)?;
        self.items = items;
        Ok(true)
    }

    fn has_item(&mut self, seen: usize) -> Result<bool, StreamError<S::Error>> {
        self.more(self.items, seen)
            .map_err(|error| error.map(|refusal| refusal.inside_index(seen).inside(ENTRY)))
    }

    fn value(&mut self, depth: usize) -> Result<Value, StreamError<S::Error>> {
        let budget = &mut self.budget;
        self.window.parse(|bytes, _| read::nested_item(bytes, depth, budget))
    }

    fn end(&mut self) -> Result<(), StreamError<S::Error>> {
        match self.window.peek()? {
            None => Ok(()),
            Some(_) => Err(DecodeError::new(
                self.window.offset(),
                DecodeErrorKind::TrailingBytes,
                "more bytes follow the CBOR item; one document is one item",
            )
            .into()),
        }
    }
}

impl<S: Source> CborTokens<S> {
    /// Returns true if a container of `len` elements, `seen` of them behind, has another; moves over a break.
    fn more(&mut self, len: Option<usize>, seen: usize) -> Result<bool, StreamError<S::Error>> {
        if let Some(len) = len {
            return Ok(seen < len);
        }
        let at_break = self.window.peek()? == Some(BREAK);
        self.window.advance(usize::from(at_break));
        Ok(!at_break)
    }

    /// The next header and how many bytes it takes; it stays where it is.
    fn header(&mut self) -> Result<(Header, usize), StreamError<S::Error>> {
        self.window.parse(|bytes, _| {
            let mut cursor = Cursor::new(bytes);
            let header = cursor.pull()?;
            Ok(((header, cursor.at), 0))
        })
    }

    /// Moves over the header, `len` bytes, of a container that lies `depth` containers deep.
    fn open(&mut self, len: usize, depth: usize) -> Result<(), StreamError<S::Error>> {
        let offset = self.window.offset();
        self.budget.take(offset)?;
        self.budget.check_depth(offset, depth)?;
        self.window.advance(len);
        Ok(())
    }
}
