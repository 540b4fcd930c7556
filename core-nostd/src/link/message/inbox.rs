//! Messages that come in parts.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::vec::Vec;

use super::{MOST_MESSAGE, MessageError};

/// Puts the parts of a message together.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
}

impl Inbox {
    /// Takes the next part; gives the message if it is the last one.
    ///
    /// # Errors
    /// The message has more than [`MOST_MESSAGE`] bytes: the session is to be ended.
    pub fn push(&mut self, part: &[u8], last: bool) -> Result<Option<Vec<u8>>, MessageError> {
        if self.bytes.len() + part.len() > MOST_MESSAGE {
            self.bytes = Vec::new();
            let message = format!("a message has more than {MOST_MESSAGE} bytes");
            return Err(MessageError { id: None, path: "/".to_owned(), message });
        }
        self.bytes.extend_from_slice(part);
        Ok(last.then(|| core::mem::take(&mut self.bytes)))
    }

    /// Drops what is there of a message: its session is over.
    pub fn clear(&mut self) {
        self.bytes = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn a_message_has_an_end() {
        let mut inbox = Inbox::default();
        assert_eq!(inbox.push(b"ab", false), Ok(None));
        assert_eq!(inbox.push(b"c", true), Ok(Some(b"abc".to_vec())));
        assert_eq!(inbox.push(&vec![0; MOST_MESSAGE], false), Ok(None));
        assert!(inbox.push(b"x", true).is_err());
        assert_eq!(inbox.push(b"x", true), Ok(Some(b"x".to_vec())), "the next one may come");
    }
}
