//! Methods: what a protocol offers, as a table that the router decides by.

use std::fmt;

/// A protocol: its name and its methods. It opens no socket and knows no transport.
#[derive(Debug, Clone, Copy)]
pub struct Protocol {
    /// The name, as in audit lines and scopes.
    pub name: &'static str,
    /// All that can be asked.
    pub methods: &'static [&'static Method],
}

impl Protocol {
    /// Returns the method of that name, if there is one.
    pub fn method(&self, name: &str) -> Option<&'static Method> {
        self.methods.iter().copied().find(|method| method.name == name)
    }
}

/// One row of a protocol's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// The protocol that has it.
    pub protocol: &'static str,
    /// The name a caller uses.
    pub name: &'static str,
    /// Its effect on the memory.
    pub effect: Effect,
    /// The answer comes in parts, each of which is bounded by itself.
    pub streams: bool,
    /// The kind of payload that comes with it.
    pub payload: Payload,
    /// The scope that a caller must hold.
    pub scope: Scope,
}

/// The effect of a method on the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Reads. That accesses are counted is no change.
    Reads,
    /// Changes no memory, but has the card written: allowed in read-only mode, where it does less.
    Maintains,
    /// Changes memories, but for a dry run, which only the protocol can tell:
    /// [`Admitted::expect_change`](super::Admitted::expect_change).
    ChangesUnlessDry,
    /// Changes memories.
    Changes,
}

impl Effect {
    /// Returns true if a caller must name one memory exactly, so that whoever denies that name has denied the method:
    /// invariant 12 of ARCHITECTURE.md.
    pub fn names_exactly(self) -> bool {
        self != Self::Reads
    }
}

/// The kind of payload that comes with a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// Nothing but parameters by name. A payload is passed over.
    None,
    /// Members that are parameters as well.
    Parameters,
    /// Resources.
    Resources,
}

/// A right that a caller may hold: `read`, or `PROTOCOL:ROLE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scope(pub &'static str);

impl Scope {
    /// Read memories.
    pub const READ: Self = Self("read");
    /// Change memories.
    pub const WRITE: Self = Self("write");
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
