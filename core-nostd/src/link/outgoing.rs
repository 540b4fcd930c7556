//! Messages to the other end: fragments that wait, are under way, or must be sent again.

use super::frame::MOST_WINDOW;

/// Fragments under way, oldest first, and those that wait behind them. `WINDOW` in all.
///
/// ```text
/// oldest …… next …… end
///   sent      waiting   (being gathered)
/// ```
#[derive(Debug)]
pub struct Outgoing<const WINDOW: usize, const PAYLOAD: usize> {
    slots: [Slot<PAYLOAD>; WINDOW],
    /// The oldest number that is not acknowledged.
    oldest: u16,
    /// The next number to be sent for the first time.
    next: u16,
    /// The next number to be given to a fragment.
    end: u16,
    /// The slot of `end` holds the beginning of a fragment.
    gathering: bool,
    /// The other end has room for what comes before this number.
    edge: u16,
    /// Bytes in a fragment.
    fragment: usize,
    /// Number of frames that were sent so far: the line keeps their order.
    sent: u32,
}

#[derive(Debug, Clone, Copy)]
struct Slot<const PAYLOAD: usize> {
    bytes: [u8; PAYLOAD],
    len: usize,
    last: bool,
    acknowledged: bool,
    lost: bool,
    again: bool,
    /// The number of its last transmission.
    sent: u32,
    /// Time of that, microseconds.
    at: u64,
}

impl<const PAYLOAD: usize> Slot<PAYLOAD> {
    const EMPTY: Self = Slot {
        bytes: [0; PAYLOAD],
        len: 0,
        last: false,
        acknowledged: false,
        lost: false,
        again: false,
        sent: 0,
        at: 0,
    };

    fn begin(&mut self) {
        self.len = 0;
        (self.last, self.acknowledged, self.lost, self.again) = (false, false, false, false);
    }
}

/// Contents of an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Time at which the frame was sent whose round trip it measures; of frames sent once (Karn's rule).
    pub measured_from: Option<u64>,
}

impl<const WINDOW: usize, const PAYLOAD: usize> Outgoing<WINDOW, PAYLOAD> {
    /// Nothing to send, and no peer to send it to.
    pub const fn new() -> Self {
        Outgoing {
            slots: [Slot::EMPTY; WINDOW],
            oldest: 0,
            next: 0,
            end: 0,
            gathering: false,
            edge: 0,
            fragment: 0,
            sent: 0,
        }
    }

    /// Begins a session with an end that has room for `window` frames of `max_payload` bytes.
    pub fn open(&mut self, window: u8, max_payload: u16) {
        (self.oldest, self.next, self.end, self.gathering) = (0, 0, 0, false);
        self.edge = u16::from(window);
        // One byte of the payload is for the flags.
        self.fragment = usize::from(max_payload).min(PAYLOAD) - 1;
        self.sent = 0;
    }

    /// Drops all of it.
    pub fn close(&mut self) {
        self.open(0, PAYLOAD as u16);
    }

    fn slot(&mut self, seq: u16) -> &mut Slot<PAYLOAD> {
        &mut self.slots[usize::from(seq) % WINDOW]
    }

    /// Takes as many of `bytes` as there is room for, and ends the message if all were taken and it
    /// `last`s no longer. Returns how many.
    pub fn write(&mut self, bytes: &[u8], last: bool) -> usize {
        let fragment = self.fragment;
        let mut taken = 0;
        loop {
            if self.gathering {
                let slot = &mut self.slots[usize::from(self.end) % WINDOW];
                let n = (fragment - slot.len).min(bytes.len() - taken);
                slot.bytes[slot.len..slot.len + n].copy_from_slice(&bytes[taken..taken + n]);
                slot.len += n;
                taken += n;
                let done = taken == bytes.len();
                if done && !last {
                    // A full fragment waits too: it may be the last one.
                    return taken;
                }
                slot.last = done;
                self.gathering = false;
                self.end = self.end.wrapping_add(1);
            }
            if taken == bytes.len() || self.queued() == WINDOW {
                return taken;
            }
            self.slot(self.end).begin();
            self.gathering = true;
        }
    }

    /// Fragments that are sent and not acknowledged, or wait.
    pub fn queued(&self) -> usize {
        usize::from(self.end.wrapping_sub(self.oldest))
    }

    /// Fragments that are sent and not acknowledged.
    pub fn under_way(&self) -> usize {
        usize::from(self.next.wrapping_sub(self.oldest))
    }

    /// Something waits that the other end has no room for, and nothing is under way that would tell of it.
    pub fn blocked(&self) -> bool {
        self.under_way() == 0 && self.next != self.end && !self.has_room()
    }

    fn has_room(&self) -> bool {
        let room = self.edge.wrapping_sub(self.next);
        (1..=MOST_WINDOW as u16).contains(&room)
    }

    fn lost(&self) -> Option<u16> {
        (0..self.under_way() as u16)
            .map(|i| self.oldest.wrapping_add(i))
            .find(|&seq| self.slots[usize::from(seq) % WINDOW].lost)
    }

    /// Returns true if [`Outgoing::transmit`] has something.
    pub fn ready(&self) -> bool {
        self.lost().is_some() || (self.next != self.end && self.has_room())
    }

    /// The next fragment to send: its number, whether the message ends with it, its bytes, and whether it is
    /// sent again. What was lost goes first.
    pub fn transmit(&mut self, now: u64) -> Option<(u16, bool, &[u8], bool)> {
        let seq = match self.lost() {
            Some(seq) => seq,
            None if self.next != self.end && self.has_room() => {
                let seq = self.next;
                self.next = seq.wrapping_add(1);
                seq
            }
            None => return None,
        };
        self.sent = self.sent.wrapping_add(1);
        let sent = self.sent;
        let slot = self.slot(seq);
        slot.again = slot.lost;
        (slot.lost, slot.sent, slot.at) = (false, sent, now);
        Some((seq, slot.last, &slot.bytes[..slot.len], slot.again))
    }

    /// The oldest is taken for lost: nothing was heard of it for too long.
    pub fn time_out(&mut self) {
        if self.under_way() > 0 {
            self.slot(self.oldest).lost = true;
        }
    }

    /// Takes in an acknowledgement. `None` if it told nothing new of what was received.
    pub fn acknowledge(&mut self, next: u16, bitmap: u32, room: u8) -> Option<Progress> {
        let under_way = self.under_way() as u16;
        let until = next.wrapping_sub(self.oldest);
        if until > under_way {
            return None; // of what was never sent, or long ago
        }
        self.edge = next.wrapping_add(u16::from(room.min(MOST_WINDOW as u8)));

        let mut newest: Option<(u32, Option<u64>)> = None;
        for i in 0..under_way {
            let here = i < until
                || (i > until
                    && bitmap.checked_shr(u32::from(i - until - 1)).unwrap_or(0) & 1 == 1);
            let slot = self.slot(self.oldest.wrapping_add(i));
            if !here || slot.acknowledged {
                continue;
            }
            (slot.acknowledged, slot.lost) = (true, false);
            if newest.is_none_or(|(sent, _)| later(slot.sent, sent)) {
                newest = Some((slot.sent, (!slot.again).then_some(slot.at)));
            }
        }
        self.oldest = next;
        let (newest, measured_from) = newest?;
        // The line keeps the order: what was sent before something that arrived, and is not here, is lost.
        for i in 0..self.under_way() as u16 {
            let slot = self.slot(self.oldest.wrapping_add(i));
            if !slot.acknowledged && later(newest, slot.sent) {
                slot.lost = true;
            }
        }
        Some(Progress { measured_from })
    }
}

/// Returns true if transmission `a` came after `b`; the numbers wrap.
fn later(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    type Four = Outgoing<4, 65>;

    fn opened() -> Four {
        let mut out = Four::new();
        out.open(4, 65);
        out
    }

    fn numbers(out: &mut Four, now: u64) -> Vec<u16> {
        let mut all = Vec::new();
        while let Some((seq, ..)) = out.transmit(now) {
            all.push(seq);
        }
        all
    }

    #[test]
    fn messages_are_cut_into_fragments() {
        let mut out = opened();
        assert_eq!(out.write(&[1; 64], false), 64);
        assert_eq!(out.transmit(0), None, "it may be the last");
        assert_eq!(out.write(&[], true), 0);
        assert_eq!(out.transmit(0), Some((0, true, &[1; 64][..], false)));
        assert_eq!(out.write(&[2; 300], true), 192, "three slots are left");
        assert_eq!(out.write(&[2; 108], true), 0);
        assert_eq!(numbers(&mut out, 0), [1, 2, 3]);
        out.acknowledge(2, 0, 4).unwrap();
        assert_eq!(out.write(&[2; 108], true), 108);
        assert_eq!(out.transmit(0), Some((4, false, &[2; 64][..], false)));
        assert_eq!(out.transmit(0), Some((5, true, &[2; 44][..], false)));
        assert_eq!(out.write(&[], true), 0);
        assert_eq!(out.transmit(0), None, "there is no empty message");
    }

    #[test]
    fn what_is_missing_is_sent_again_once() {
        let mut out = opened();
        out.write(&[0; 256], true);
        assert_eq!(numbers(&mut out, 7), [0, 1, 2, 3]);
        // 1 and 3 are here: 0 and 2 were sent before 3.
        assert_eq!(out.acknowledge(0, 0b101, 4), Some(Progress { measured_from: Some(7) }));
        assert_eq!(numbers(&mut out, 9), [0, 2]);
        assert_eq!(out.acknowledge(0, 0b101, 4), None);
        assert_eq!(numbers(&mut out, 9), [] as [u16; 0]);
        // 2 came the second time, so the second 0 is lost; and it measures nothing.
        assert_eq!(out.acknowledge(0, 0b111, 4), Some(Progress { measured_from: None }));
        assert_eq!(numbers(&mut out, 9), [0]);
        assert!(out.acknowledge(4, 0, 4).is_some());
        assert_eq!(out.queued(), 0);
    }

    #[test]
    fn no_more_is_sent_than_there_is_room_for() {
        let mut out = opened();
        out.write(&[0; 256], true);
        out.transmit(0);
        out.acknowledge(1, 0, 1).unwrap();
        assert_eq!(numbers(&mut out, 0), [1]);
        out.acknowledge(2, 0, 0).unwrap();
        assert!(out.blocked());
        assert_eq!(out.acknowledge(2, 0, 2), None);
        assert!(!out.blocked());
        assert_eq!(numbers(&mut out, 0), [2, 3]);
    }

    #[test]
    fn nonsense_is_not_believed() {
        let mut out = opened();
        out.write(&[0; 200], true);
        assert_eq!(numbers(&mut out, 0), [0, 1, 2, 3]);
        assert_eq!(out.acknowledge(5, 0, 4), None);
        assert_eq!(out.acknowledge(0xffff, !0, 4), None);
        assert_eq!(out.under_way(), 4);
        out.acknowledge(4, !0, 255).unwrap();
        assert_eq!(out.under_way(), 0);
    }
}
