//! A line as a person types it at a terminal, whichever that is.

use std::collections::VecDeque;

/// Longer lines ring the bell, and are not done.
pub const MOST_BYTES: usize = 512;
/// Lines that the arrow keys bring back.
const MOST_HISTORY: usize = 16;

const INTERRUPT: u8 = 0x03;
const BELL: u8 = 0x07;
const BACKSPACE: u8 = 0x08;
const TAB: u8 = 0x09;
const LF: u8 = 0x0a;
const CR: u8 = 0x0d;
const ERASE_LINE: u8 = 0x15;
const ERASE_WORD: u8 = 0x17;
const ESCAPE: u8 = 0x1b;
const DELETE: u8 = 0x7f;

/// Outcome of a byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    /// The line is whole.
    Line(String),
    /// It is whole, and some of it found no room: what is left of it may be another command.
    TooLong,
    /// Ctrl-C.
    Interrupt,
}

/// The line being typed.
#[derive(Debug, Default)]
pub struct Editor {
    line: String,
    /// Something found no room in it.
    is_cut: bool,
    /// The beginning of a character of several bytes.
    character: Vec<u8>,
    /// The last byte was a CR: an LF after it belongs to it.
    after_cr: bool,
    keys: Keys,
    history: VecDeque<String>,
    /// The distance of the line from its end.
    back: usize,
}

/// Position in the sequence of a special key (ECMA-48, section 5.4).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Keys {
    #[default]
    Plain,
    Escape,
    Sequence,
}

impl Editor {
    /// Takes a byte; what the terminal is to show goes to `echo`.
    pub fn take(&mut self, byte: u8, echo: &mut Vec<u8>) -> Option<Typed> {
        let after_cr = std::mem::take(&mut self.after_cr);
        match (self.keys, byte) {
            (Keys::Escape, b'[' | b'O') => {
                self.keys = Keys::Sequence;
                return None;
            }
            (Keys::Sequence, 0x20..0x40) => return None,
            (Keys::Sequence, 0x40..=0x7e) => {
                self.keys = Keys::Plain;
                match byte {
                    b'A' => self.recall(self.back + 1, echo),
                    b'B' => self.recall(self.back.saturating_sub(1), echo),
                    // Nothing is typed in the middle of a line.
                    _ => echo.push(BELL),
                }
                return None;
            }
            // Anything else was no key of ours, and counts by itself.
            (Keys::Escape | Keys::Sequence, _) => self.keys = Keys::Plain,
            (Keys::Plain, _) => {}
        }
        match byte {
            LF if after_cr => {}
            CR | LF => {
                self.after_cr = byte == CR;
                echo.extend_from_slice(b"\r\n");
                if self.is_cut {
                    self.clear();
                    return Some(Typed::TooLong);
                }
                return Some(Typed::Line(self.finish()));
            }
            INTERRUPT => {
                self.clear();
                echo.extend_from_slice(b"^C\r\n");
                return Some(Typed::Interrupt);
            }
            BACKSPACE | DELETE => {
                self.character.clear();
                self.erase(1, echo);
            }
            ERASE_LINE => self.erase(usize::MAX, echo),
            ERASE_WORD => {
                let kept = self.line.trim_end().rfind(' ').map_or(0, |at| at + 1);
                self.erase(self.line[kept..].chars().count(), echo);
            }
            ESCAPE => self.keys = Keys::Escape,
            TAB => self.put(b' ', echo),
            0x00..0x20 => {}
            _ => self.put(byte, echo),
        }
        None
    }

    fn put(&mut self, byte: u8, echo: &mut Vec<u8>) {
        // A byte that begins a character ends whatever was begun before it.
        if byte & 0xc0 != 0x80 {
            self.character.clear();
        }
        self.character.push(byte);
        match std::str::from_utf8(&self.character) {
            Ok(_) if self.line.len() + self.character.len() > MOST_BYTES => {
                self.is_cut = true;
                echo.push(BELL);
            }
            Ok(text) => {
                self.line.push_str(text);
                echo.extend_from_slice(text.as_bytes());
            }
            Err(error) if error.error_len().is_none() => return,
            Err(_) => {}
        }
        self.character.clear();
    }

    fn erase(&mut self, characters: usize, echo: &mut Vec<u8>) {
        for _ in 0..characters {
            if self.line.pop().is_none() {
                break;
            }
            echo.extend_from_slice(b"\x08 \x08");
        }
        // Characters that found no room are not in the line, and cannot be erased one by one.
        self.is_cut &= !self.line.is_empty();
    }

    fn recall(&mut self, back: usize, echo: &mut Vec<u8>) {
        let line = match back.checked_sub(1) {
            None => String::new(),
            Some(at) => match self.history.get(at) {
                None => return,
                Some(line) => line.clone(),
            },
        };
        self.erase(usize::MAX, echo);
        echo.extend_from_slice(line.as_bytes());
        self.line = line;
        self.is_cut = false;
        self.back = back;
    }

    fn finish(&mut self) -> String {
        let line = std::mem::take(&mut self.line);
        self.clear();
        if !line.trim().is_empty() && self.history.front() != Some(&line) {
            self.history.push_front(line.clone());
            self.history.truncate(MOST_HISTORY);
        }
        line
    }

    /// Forgets what was typed of this line.
    pub fn clear(&mut self) {
        self.line.clear();
        self.is_cut = false;
        self.character.clear();
        self.keys = Keys::Plain;
        self.back = 0;
    }

    /// Returns true if nothing is typed of a line yet.
    pub fn is_empty(&self) -> bool {
        self.line.is_empty() && self.character.is_empty() && self.keys == Keys::Plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lines of these bytes, and the output for them.
    fn typed(bytes: &[u8]) -> (Vec<Typed>, String) {
        let (mut editor, mut echo) = (Editor::default(), Vec::new());
        let all = bytes.iter().filter_map(|byte| editor.take(*byte, &mut echo)).collect();
        (all, String::from_utf8_lossy(&echo).into_owned())
    }

    fn lines(bytes: &[u8]) -> Vec<String> {
        let line = |typed| match typed {
            Typed::Line(line) => line,
            Typed::TooLong => "too long".to_owned(),
            Typed::Interrupt => "^C".to_owned(),
        };
        typed(bytes).0.into_iter().map(line).collect()
    }

    #[test]
    fn every_end_of_a_line_is_one() {
        assert_eq!(lines(b"a\rb\nc\r\nd\r\n\n\r\r"), ["a", "b", "c", "d", "", "", ""]);
        assert_eq!(typed(b"a\r\n").1, "a\r\n");
    }

    #[test]
    fn what_was_typed_can_be_taken_back() {
        assert_eq!(lines(b"ab\x08\x7fc\r"), ["c"]);
        assert_eq!(lines(b"\x08x\r"), ["x"]);
        assert_eq!(lines(b"some words\x15else\r"), ["else"]);
        assert_eq!(lines(b"some words  \x17\x17\x17else\r"), ["else"]);
        assert_eq!(lines(b"some words\x17things\r"), ["some things"]);
        assert_eq!(lines("k\u{fc}\u{2713}\x08\x08\x08a\r".as_bytes()), ["a"]);
        assert_eq!(typed(b"ab\x08").1, "ab\x08 \x08");
        assert_eq!(lines(b"half\x03ls\r"), ["^C", "ls"]);
    }

    #[test]
    fn special_keys_leave_nothing_behind() {
        assert_eq!(lines(b"l\x1b[D\x1b[1;5C\x1bOPs\x1b[3~\r"), ["ls"]);
        assert_eq!(
            lines(b"one\rtwo\r\x1b[A\x1b[A\r\x1b[A\x1b[A\x1b[B\r"),
            ["one", "two", "one", "one"]
        );
        assert_eq!(lines(b"a\x1b\r\tb\r"), ["a", " b"]);
        assert_eq!(lines(b"a\x01\x02\xff\xc3\r"), ["a"]);
        assert_eq!(lines(b"\xc3a\r"), ["a"]);
    }

    #[test]
    fn what_was_cleared_is_gone_amid_a_key_too() {
        for begun in ["half", "\x1b", "\x1b[", "\x1b[1;", "\u{fc}"] {
            let (mut editor, mut echo) = (Editor::default(), Vec::new());
            assert!(editor.is_empty());
            begun.bytes().for_each(|byte| _ = editor.take(byte, &mut echo));
            assert!(!editor.is_empty(), "{begun:?}");
            editor.clear();
            assert!(editor.is_empty());
            let typed: Vec<_> = b"A1\r".iter().filter_map(|b| editor.take(*b, &mut echo)).collect();
            assert_eq!(typed, [Typed::Line("A1".to_owned())], "{begun:?}");
        }
    }

    #[test]
    fn a_line_has_an_end() {
        let (all, echo) = typed(&[&[b'x'; 600][..], b"\r"].concat());
        assert_eq!(all, [Typed::TooLong]);
        assert_eq!(echo.matches('\x07').count(), 88);
        // The next one is judged by itself, and this one once something was taken back.
        let long = "x".repeat(513);
        assert_eq!(lines(format!("{long}\rls\r").as_bytes()), ["too long", "ls"]);
        assert_eq!(lines(format!("{long}\x15ls\r").as_bytes()), ["ls"]);
        assert_eq!(lines(format!("{long}\x03ls\r").as_bytes()), ["^C", "ls"]);
        assert_eq!(lines(format!("ls\r{long}\x1b[A\r").as_bytes()), ["ls", "ls"]);
        assert_eq!(lines(format!("ls\r{long}\r\x1b[A\r").as_bytes()), ["ls", "too long", "ls"]);
        assert_eq!(lines(format!("{long}\x08\r").as_bytes()), ["too long"]);
        assert_eq!(lines(format!("{}\r", "x".repeat(512)).as_bytes()), ["x".repeat(512)]);
    }
}
