//! Server-sent events (WHATWG HTML, 9.2), as far as messages need them: the data of each event.

/// Bytes of a stream, made into the data of its events.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// A line that has not ended yet.
    line: Vec<u8>,
    /// The lines of data of an event that has not ended yet.
    data: Vec<u8>,
    /// The last byte was a carriage return: a line feed behind it ends no line of its own.
    after_return: bool,
}

impl Events {
    /// Takes bytes, and returns the data of each event that they end.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut ended = Vec::new();
        for &byte in bytes {
            let is_second = byte == b'\n' && self.after_return;
            self.after_return = byte == b'\r';
            match byte {
                b'\n' if is_second => {}
                b'\n' | b'\r' => ended.extend(self.end_line()),
                byte => self.line.push(byte),
            }
        }
        ended
    }

    fn end_line(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            return (!data.is_empty()).then_some(data);
        }
        if let Some(data) = line.strip_prefix(b"data:") {
            if !self.data.is_empty() {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_however_their_bytes_are_cut() {
        let stream =
            ": alive\n\ndata: {\"a\":1}\nid: 5\n\ndata:{\ndata: }\r\n\r\nevent: x\n\ndata: left";
        for size in 1..stream.len() {
            let mut events = Events::default();
            let pieces = stream.as_bytes().chunks(size);
            let found: Vec<Vec<u8>> = pieces.flat_map(|piece| events.take(piece)).collect();
            assert_eq!(found, [b"{\"a\":1}".to_vec(), b"{\n}".to_vec()], "{size}");
        }
    }
}
