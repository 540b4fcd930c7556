//! A person who types.

use std::time::{Duration, Instant};

use crate::serial::PATIENCE;
use crate::serial::rig::Cable;

/// A terminal: what is typed, and what it shows.
pub struct Terminal {
    pub cable: Cable,
    pub shown: String,
}

impl Terminal {
    pub fn on(cable: Cable) -> Terminal {
        Terminal { cable, shown: String::new() }
    }

    pub fn type_in(&mut self, keys: &str) {
        self.cable.write(keys.as_bytes().to_vec());
    }

    /// Waits until this is shown; what came up to its end.
    #[track_caller]
    pub fn until(&mut self, text: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.shown.find(text) {
                let rest = self.shown.split_off(at + text.len());
                return std::mem::replace(&mut self.shown, rest);
            }
            assert!(Instant::now() < until, "{text:?} is not shown in {:?}", self.shown);
            self.shown += &String::from_utf8(self.cable.read()).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
