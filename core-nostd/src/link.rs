//! The serial link: messages over a line that loses, changes, repeats and adds bytes.
//!
//! `docs/serial-protocol.md` specifies it; the daemon, the tool and a microcontroller run this code. It does no I/O,
//! reads no clock, draws no random number and allocates nothing: bytes and times (microseconds since
//! any fixed moment) are handed in, bytes are handed out.
//!
//! ```text
//! receive(bytes, now) ─▶ line ─▶ frame ─▶ Link ─▶ poll_event() ─▶ Opened, Data, Closed
//! poll_transmit(now)  ◀─ line ◀─ frame ◀─ Link ◀─ send(message)
//! ```
//!
//! With the feature `alloc` comes what the messages say (`message`), with `deflate` how they are made
//! smaller (`pack`).
//!
//! A driver does this, for ever:
//!
//! 1. give what came in to [`Link::receive`], and act on [`Link::poll_event`] until it has no more;
//! 2. while the line can take a frame, call [`Link::poll_transmit`];
//! 3. wait for bytes, or until [`Link::next_timeout`].
//!
//! ```
//! use omir_core::link::{Event, Link};
//!
//! let mut sensor = Link::<2, 128>::new("sensor");
//! let mut host = Link::<32, 256>::new("host");
//! sensor.connect(0x5eed_0001, 0); // a random number, and the time
//! let mut got = Vec::new();
//! let (mut sent, mut now) = (0, 0);
//! let message = [7; 1000];
//! while got.len() < message.len() {
//!     let mut line = Vec::new();
//!     while sensor.poll_transmit(now, &mut |byte| line.push(byte)) {}
//!     host.receive(&line, now);
//!     while let Some(event) = host.poll_event() {
//!         if let Event::Data { bytes, .. } = event {
//!             got.extend_from_slice(bytes);
//!         }
//!     }
//!     line.clear();
//!     while host.poll_transmit(now, &mut |byte| line.push(byte)) {}
//!     sensor.receive(&line, now);
//!     while let Some(event) = sensor.poll_event() {
//!         assert_eq!(event, Event::Opened);
//!     }
//!     // What there is no room for is offered again.
//!     sent += sensor.send(&message[sent..], true);
//!     now += 1_000;
//! }
//! assert_eq!(got, message);
//! ```

mod frame;
mod incoming;
mod line;
#[cfg(feature = "alloc")]
pub mod message;
mod outgoing;
#[cfg(feature = "deflate")]
pub mod pack;
mod session;
mod timer;

pub use frame::{
    Body, Frame, Greeting, LEAST_PAYLOAD, MOST_NAME, MOST_PAYLOAD, MOST_WINDOW, Reason, VERSION,
};
pub use line::{DELIMITER, Deframer, Fault, XOFF, XON, most_bytes};
pub use session::{Closed, Counts, Event, Link};

#[cfg(test)]
pub(crate) mod tests;
