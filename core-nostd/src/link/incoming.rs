//! Messages from the other end: put in order, and held until it is taken.

/// Up to `WINDOW` fragments that were received.
///
/// ```text
/// taken …… next …… taken + WINDOW
///   in order   with gaps
/// ```
#[derive(Debug)]
pub struct Incoming<const WINDOW: usize, const PAYLOAD: usize> {
    slots: [Slot<PAYLOAD>; WINDOW],
    /// The next number for the caller.
    taken: u16,
    /// The next number expected from the line.
    next: u16,
    /// The room that was last told of ends before this number.
    told: u16,
}

#[derive(Debug, Clone, Copy)]
struct Slot<const PAYLOAD: usize> {
    bytes: [u8; PAYLOAD],
    len: usize,
    last: bool,
    filled: bool,
}

/// Outcome of a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// It was the next one.
    InOrder,
    /// It is kept, and one before it is missing.
    Ahead,
    /// It was here before, or there is no room for it: nothing changed.
    Needless,
}

impl<const WINDOW: usize, const PAYLOAD: usize> Incoming<WINDOW, PAYLOAD> {
    /// Nothing received.
    pub const fn new() -> Self {
        const {
            assert!(WINDOW.is_power_of_two() && WINDOW <= super::frame::MOST_WINDOW);
            assert!(
                PAYLOAD >= super::frame::LEAST_PAYLOAD && PAYLOAD <= super::frame::MOST_PAYLOAD
            );
        }
        let empty = Slot { bytes: [0; PAYLOAD], len: 0, last: false, filled: false };
        Incoming { slots: [empty; WINDOW], taken: 0, next: 0, told: WINDOW as u16 }
    }

    /// Begins a session; drops what is here.
    pub fn open(&mut self) {
        (self.taken, self.next, self.told) = (0, 0, WINDOW as u16);
        self.slots.iter_mut().for_each(|slot| slot.filled = false);
    }

    fn slot(&mut self, seq: u16) -> &mut Slot<PAYLOAD> {
        &mut self.slots[usize::from(seq) % WINDOW]
    }

    /// Takes a fragment from the line.
    pub fn receive(&mut self, seq: u16, last: bool, bytes: &[u8]) -> Arrival {
        let ahead = usize::from(seq.wrapping_sub(self.next));
        if ahead >= usize::from(self.room()) || bytes.len() > PAYLOAD || self.slot(seq).filled {
            return Arrival::Needless;
        }
        let slot = self.slot(seq);
        slot.bytes[..bytes.len()].copy_from_slice(bytes);
        (slot.len, slot.last, slot.filled) = (bytes.len(), last, true);
        if ahead > 0 {
            return Arrival::Ahead;
        }
        while self.room() > 0 && self.slot(self.next).filled {
            self.next = self.next.wrapping_add(1);
        }
        Arrival::InOrder
    }

    /// Frames from the next one on that there is room for.
    fn room(&self) -> u8 {
        (WINDOW - usize::from(self.next.wrapping_sub(self.taken))) as u8
    }

    /// Contents of an acknowledgement now: the next number, the bitmap, the room.
    pub fn acknowledgement(&mut self) -> (u16, u32, u8) {
        let room = self.room();
        let bitmap = (1..u16::from(room))
            .filter(|&i| self.slots[usize::from(self.next.wrapping_add(i)) % WINDOW].filled)
            .fold(0, |bitmap, i| bitmap | 1 << (i - 1));
        self.told = self.next.wrapping_add(u16::from(room));
        (self.next, bitmap, room)
    }

    /// There is much more room by now than the other end was told.
    pub fn has_more_room(&self) -> bool {
        let edge = self.taken.wrapping_add(WINDOW as u16);
        usize::from(edge.wrapping_sub(self.told)) >= (WINDOW / 2).max(1)
    }

    /// Returns true if [`Incoming::take`] has something.
    pub fn ready(&self) -> bool {
        self.taken != self.next
    }

    /// The next fragment, and whether its message ends with it.
    pub fn take(&mut self) -> Option<(&[u8], bool)> {
        if !self.ready() {
            return None;
        }
        let seq = self.taken;
        self.taken = seq.wrapping_add(1);
        let slot = self.slot(seq);
        slot.filled = false;
        Some((&slot.bytes[..slot.len], slot.last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_are_put_in_order_and_told_of() {
        let mut inc = Incoming::<4, 64>::new();
        assert_eq!(inc.acknowledgement(), (0, 0, 4));
        assert_eq!(inc.receive(1, false, b"b"), Arrival::Ahead);
        assert_eq!(inc.receive(3, true, b"d"), Arrival::Ahead);
        assert_eq!(inc.receive(4, true, b"e"), Arrival::Needless);
        assert_eq!(inc.receive(1, true, b"x"), Arrival::Needless);
        assert_eq!(inc.acknowledgement(), (0, 0b101, 4));
        assert_eq!(inc.take(), None);
        assert_eq!(inc.receive(0, false, b"a"), Arrival::InOrder);
        assert_eq!(inc.acknowledgement(), (2, 1, 2));
        assert_eq!(inc.receive(2, false, b"c"), Arrival::InOrder);
        assert_eq!(inc.acknowledgement(), (4, 0, 0));
        assert_eq!(inc.receive(3, true, b"x"), Arrival::Needless);
        assert_eq!(inc.receive(4, true, b"x"), Arrival::Needless);
        assert_eq!(inc.take(), Some((&b"a"[..], false)));
        assert!(!inc.has_more_room());
        assert_eq!(inc.take(), Some((&b"b"[..], false)));
        assert!(inc.has_more_room());
        assert_eq!(inc.acknowledgement(), (4, 0, 2));
        assert!(!inc.has_more_room());
        assert_eq!(inc.take(), Some((&b"c"[..], false)));
        assert_eq!(inc.take(), Some((&b"d"[..], true)));
        assert_eq!(inc.take(), None);
    }

    #[test]
    fn the_numbers_wrap() {
        let mut inc = Incoming::<2, 64>::new();
        for n in 0..=0x2_0000u32 {
            assert_eq!(inc.receive(n as u16, n % 3 == 0, &n.to_le_bytes()), Arrival::InOrder);
            assert_eq!(inc.receive(n as u16, true, b"again"), Arrival::Needless);
            assert_eq!(inc.take(), Some((&n.to_le_bytes()[..], n % 3 == 0)));
            assert_eq!(inc.receive(n as u16, true, b"again"), Arrival::Needless);
        }
    }
}
