//! The progress of a hand-over, and its outcome in numbers.

use crate::link::Reason;

/// The state of a hand-over for the main loop of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It goes on when something comes in, or when the link has room.
    Working,
    /// There is no session any more: connect the link again, at once or later.
    Lost,
    /// The session was ended on purpose. The other end said so: it has another version, stops, needs the line, or could
    /// not read what it got. Or its answer was none (`Reason::Protocol`). Another session at once would end the same
    /// way, and keep the line from others. Returned once, then the state is [`Progress::Lost`]: do not call
    /// [`HandOver::poll`](super::HandOver::poll) for a minute or so.
    Ended(Reason),
    /// Everything was handed over, except refused records. After more was remembered, call
    /// [`HandOver::resume`](super::HandOver::resume).
    Done,
    /// The other end takes nothing now, see [`HandOver::refusal`](super::HandOver::refusal). Try again later with
    /// [`HandOver::resume`](super::HandOver::resume).
    Refused,
}

/// The records of a hand-over, counted by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handed {
    /// New to the daemon.
    pub stored: u32,
    /// Known to the daemon already.
    pub unchanged: u32,
    /// Not taken, because the daemon has another record of that id: the same one with another date, one that was
    /// forgotten there, or **one of another node with the same ids**.
    pub kept: u32,
    /// Refused by the daemon, or impossible to write: longer than `BYTES`, of another program, or from a start after
    /// this one. Each is counted once, and offered again in each session.
    pub refused: u32,
    /// Refused, and not offered again: newer ones took their places among the eight that are remembered. They stay in
    /// the journal, and count as handed over.
    pub given_up: u32,
}
