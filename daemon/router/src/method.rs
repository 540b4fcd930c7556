//! Methods: what a protocol offers, as a table that the router decides by.

use std::fmt;
use std::time::Duration;

use super::field::Field;

/// A protocol: its name and its methods. It opens no socket and knows no transport.
#[derive(Debug, Clone, Copy)]
pub struct Protocol {
    /// The name, as in audit lines and scopes.
    pub name: &'static str,
    /// The scopes of its methods: what a token may be given.
    pub scopes: &'static [Scope],
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
#[derive(Debug, Clone, Copy, PartialEq)]
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
    /// The rates of a caller whose key states none, as for a second and for an hour. The methods of a protocol count
    /// together, and what is refused counts as well.
    pub rates: [Option<Rate>; 2],
    /// What documents and tools say of it: the OpenAPI document and the tools of MCP are made of this.
    pub about: &'static About,
}

/// What a person or a program must know in order to use a method.
#[derive(Debug, PartialEq)]
pub struct About {
    /// One sentence, verb first.
    pub summary: &'static str,
    /// The parameters it takes by name.
    pub parameters: &'static [Field],
    /// The schema of its payload, where that has more than the parameters: a name among the schemas of its protocol; else
    /// empty.
    pub payload: &'static str,
    /// The schema of its answer: a name among the schemas of its protocol; empty where the answer has none.
    pub response: &'static str,
}

impl About {
    /// Nothing is said: for a method that only a transport's own frames reach.
    pub const NOTHING: &'static Self =
        &Self { summary: "", parameters: &[], payload: "", response: "" };

    /// Returns the names of the parameters, in the order of the table.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.parameters.iter().map(|parameter| parameter.name)
    }
}

/// So many requests in a time, evenly or at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Requests.
    pub requests: u32,
    /// In this time.
    pub per: Duration,
}

/// The effect of a method on the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Reads. That accesses are counted is no change.
    Reads,
    /// Changes no memory, but has the card written: allowed in read-only mode, where it does less.
    Maintains,
    /// Changes who may do what: allowed in read-only mode, where a token that was stolen must be revoked too.
    Administers,
    /// Changes memories, but for a dry run, which only the protocol can tell:
    /// [`Admitted::expect_change`](super::Admitted::expect_change).
    ChangesUnlessDry,
    /// Changes memories.
    Changes,
}

impl Effect {
    /// Returns true if a caller must name one memory exactly, so that an operator who denies that name has denied the method:
    /// invariant 12 of ARCHITECTURE.md.
    pub fn names_exactly(self) -> bool {
        self != Self::Reads
    }
}

/// The kind of payload that comes with a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// Nothing but parameters by name. A payload is passed over, or refused where the transport takes none.
    None,
    /// Members that are parameters as well.
    Parameters,
    /// Resources.
    Resources,
    /// A message of the protocol's own, of at most so many bytes: [`Exchange`](super::Exchange).
    Message(usize),
}

/// A right that a caller may hold: `PROTOCOL:ROLE`. A row that takes any of several has them in one text, with spaces between
/// them, as a JWT has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scope(pub &'static str);

impl Scope {
    /// See that the daemon is there, and say who asks: everybody may, also where a token is required.
    pub const OPEN: Self = Self("");
    /// Read memories, of all tenants.
    pub const READ: Self = Self("omir:read");
    /// Change memories.
    pub const WRITE: Self = Self("omir:write");
    /// Look after the store: tokens, backups, compaction, the simulated clock.
    pub const ADMIN: Self = Self("omir:admin");
}

impl Scope {
    /// Returns the scopes of which any one will do; for most rows that is one.
    pub fn alternatives(self) -> impl Iterator<Item = Self> {
        self.0.split(' ').map(Self)
    }
}

/// `PROTOCOL:ROLE`, or several with `or` between them.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, scope) in self.alternatives().enumerate() {
            let or = if index > 0 { " or " } else { "" };
            write!(f, "{or}{}", scope.0)?;
        }
        Ok(())
    }
}
