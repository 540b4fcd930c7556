//! Tools: what a protocol offers to a program that reads descriptions, such as a language model.
//!
//! A tool asks for one method of a table, so the router decides about it as about any request. Its input and output are
//! flat objects of [`Field`]s.

use omir_core::value::Map;
use omird_engine::Error;

use super::admitted::Admitted;
use super::field::Field;
use super::method::{Effect, Method};
use super::refusal::Refusal;

/// A tool of a protocol.
#[derive(Debug)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// A few words for a person.
    pub title: &'static str,
    /// Sentences for a model: the use of it, and what comes back.
    pub about: &'static str,
    /// The row that the router decides by.
    pub method: &'static Method,
    /// The members of its input.
    pub inputs: &'static [Field],
    /// The members of its result.
    pub outputs: &'static [Field],
    /// It takes something away that was there.
    pub is_destructive: bool,
    /// The same call again changes nothing more.
    pub is_idempotent: bool,
}

impl Tool {
    /// Returns true if it changes no memory.
    pub fn only_reads(&self) -> bool {
        self.method.effect == Effect::Reads
    }
}

/// The tools of a protocol, and what each of them does.
pub trait Toolbox: Send + Sync {
    /// Returns all tools.
    fn tools(&self) -> Vec<&'static Tool>;

    /// Uses a tool. The arguments fit its inputs: [`check`](super::field::check) has been asked.
    ///
    /// # Errors
    /// Those of its method.
    fn call(
        &self,
        tool: &'static Tool,
        admitted: Admitted,
        arguments: &Map,
        observer: &dyn CallObserver,
    ) -> Result<Map, Error>;

    /// Returns true if a call may wait for the disk. A card that hangs must not hold up the others.
    fn waits_for_the_disk(&self, tool: &Tool) -> bool {
        !tool.only_reads()
    }

    /// Words a refusal of the router.
    fn worded(&self, refusal: Refusal) -> Error;
}

/// Watches a call for the client that waits for it: tells the work if it is still wanted, and takes note of its progress.
pub trait CallObserver: Sync {
    /// Returns true while the client waits.
    fn is_wanted(&self) -> bool;

    /// Takes note of how far the work has come.
    fn note(&self, done: u64, of: u64);
}
