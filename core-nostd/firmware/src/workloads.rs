//! Workloads of the core, so that its size, stack and instructions can be measured.
//!
//! Inputs and results pass through `black_box`: nothing is worked out by the compiler, and nothing left out.

use core::hint::black_box;

use embedded_storage::nor_flash::{
    ErrorType, NorFlash, NorFlashErrorKind, ReadNorFlash, check_erase, check_read, check_write,
};
use heapless::Vec;
use nalgebra::{Point3, Translation3};
use omir_core::fixed::{HandOver, Moment, NoClock, Uptime};
use omir_core::forgetting::{Decay, HalfLife, retrievability};
use omir_core::link::{Body, Frame, Greeting, Link};
use omir_core::space::{Isometry3, distance, unit_quaternion};
use omir_core::tier::{Stored, Tier, TierInputs, TierPolicy, current};

use crate::golden::sample;
use crate::{Memories, Record};

/// Something that is measured.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Its name in the table.
    pub name: &'static str,
    /// The work.
    pub run: fn(),
    /// The preparation, which is subtracted.
    pub base: fn(),
}

/// Each of them.
pub const WORKLOADS: [Workload; 8] = [
    Workload { name: "retrievability", run: fade, base: nothing },
    Workload { name: "access, and its tier", run: decay, base: nothing },
    Workload { name: "poses composed", run: pose, base: nothing },
    Workload { name: "record encoded", run: encode, base: make },
    Workload { name: "record decoded", run: read, base: encode },
    Workload { name: "remember", run: remember, base: prepare },
    Workload { name: "remember, use, anchor, walk, forget", run: journal, base: prepare },
    Workload { name: "one record handed over", run: handover, base: remember },
];

/// RAM that a node holds for as long as it is at a serial port: its end of the link, and the hand-over.
pub const HELD: [(&str, usize); 2] =
    [("link", size_of::<Link<2, 128>>()), ("hand-over", size_of::<HandOver<'static, 512>>())];

fn nothing() {}

/// One retrievability.
#[inline(never)]
pub fn fade() {
    if let Some(half_life) = HalfLife::new(black_box(168.0)) {
        black_box(retrievability(half_life, black_box(10.0)));
    }
}

/// An access, and the tier that comes of it.
#[inline(never)]
pub fn decay() {
    let before = Decay { access_count: black_box(3), ..Decay::default() };
    let after = black_box(before.accessed(black_box(100.0)));
    let inputs = TierInputs {
        age_hours: black_box(100.0),
        importance: black_box(0.5),
        access_count: after.access_count,
        retrievability: after.retrievability(black_box(1.0)),
        anchored: false,
    };
    let stored = Stored { tier: Tier::Working, hours: black_box(1.0), accessed: true };
    black_box(current(&stored, &inputs, &TierPolicy::default()));
}

/// A quaternion made a rotation, two poses composed, one turned back, and a distance.
#[inline(never)]
pub fn pose() {
    let Some(turn) = unit_quaternion(black_box([0.0, 0.0, 0.5, 2.0])) else { return };
    let (a, b) = black_box((
        Isometry3::from_parts(Translation3::new(1.0, 2.0, 0.5), turn),
        Isometry3::from_parts(Translation3::new(-0.5, 0.25, 3.0), turn),
    ));
    let c = a * b * a.inverse();
    black_box(distance(&Point3::origin(), &Point3::from(c.translation.vector)));
    black_box(c);
}

/// A record with every field, in the stack.
#[inline(never)]
pub fn make() {
    black_box(sample());
}

/// That record as CBOR.
#[inline(never)]
pub fn encode() {
    let mut bytes = Vec::<u8, 768>::new();
    let written = sample().write(&NoClock, &mut bytes);
    black_box((written.is_ok(), bytes.as_slice()));
}

/// And back.
#[inline(never)]
pub fn read() {
    let mut bytes = Vec::<u8, 768>::new();
    let written = sample().write(&NoClock, &mut bytes);
    black_box((written.is_ok(), bytes.as_slice()));
    black_box(Record::read(&bytes).is_ok());
}

/// A ring in erased flash, and a record to put there.
#[inline(never)]
pub fn prepare() {
    black_box(Memories::mount(&mut Ram::new()).is_ok());
    black_box(crate::golden::reading());
}

/// A record written to erased flash: a page is opened for it.
#[inline(never)]
pub fn remember() {
    let mut flash = Ram::new();
    if let Ok(mut memories) = Memories::mount(&mut flash) {
        black_box(memories.remember(&crate::golden::reading()).is_ok());
    }
}

/// Everything a node does with its flash.
#[inline(never)]
pub fn journal() {
    let mut flash = Ram::new();
    let Ok(mut memories) = Memories::mount(&mut flash) else { return };
    let now = Moment::SinceBoot(Uptime { boot: black_box(1), micros: 1 });
    if let Ok(number) = memories.remember(&crate::golden::reading()) {
        black_box(memories.access(number, now, &NoClock).is_ok());
        black_box(memories.anchor(number, true).is_ok());
        black_box(memories.next(None).is_ok());
        black_box(memories.forget(number).is_ok());
    }
}

/// A record remembered and handed over. The other end says what it always would.
#[inline(never)]
pub fn handover() {
    let mut flash = Ram::new();
    let Ok(mut memories) = Memories::mount(&mut flash) else { return };
    black_box(memories.remember(&crate::golden::reading()).is_ok());
    let mut link = Link::<2, 128>::new("node");
    let mut hand_over = HandOver::<512>::new();
    link.connect(SESSION, 0);
    let mut turn = |heard: &[(u16, Body<'_>)]| {
        for (seq, body) in heard {
            let frame = Frame { from_responder: true, session: SESSION, seq: *seq, body: *body };
            frame.encode(&mut |byte| link.receive(&[byte], 0));
        }
        let uptime = Uptime { boot: black_box(1), micros: 1 };
        black_box(hand_over.poll(&mut link, &mut memories, uptime).is_ok());
        while link.poll_transmit(0, &mut |byte| _ = black_box(byte)) {}
    };
    let acknowledged = |next| (next, Body::Ack { bitmap: 0, room: 32 });
    let said = |seq, bytes| (seq, Body::Data { last: true, bytes });
    turn(&[]);
    turn(&[(0, Body::Welcome(Greeting { window: 32, max_payload: 256, name: "r2" }))]);
    turn(&[acknowledged(1), said(0, TIME)]);
    (2..5).for_each(|next| turn(&[acknowledged(next)]));
    turn(&[said(1, STORED)]);
    black_box(hand_over.handed());
}

const SESSION: u32 = 1;
/// `{"id": 1, "ok": {"time": "2026-05-30T12:00:00Z", "clock": "synchronised"}}`
const TIME: &[u8] =
    b"\xa2\x62id\x01\x62ok\xa2\x64time\x742026-05-30T12:00:00Z\x65clock\x6csynchronised";
/// `{"id": 2, "ok": {"kept": 0, "stored": 1, "unchanged": 0}}`
const STORED: &[u8] = b"\xa2\x62id\x02\x62ok\xa3\x64kept\x00\x66stored\x01\x69unchanged\x00";

/// Flash of four pages that forgets what it is told, but for one page: enough for what is measured. It
/// lies in the stack, a kilobyte that a node has not.
struct Ram([u8; Self::PAGE]);

impl Ram {
    const PAGE: usize = 1024;

    fn new() -> Self {
        Self([0xFF; Self::PAGE])
    }
}

impl ErrorType for Ram {
    type Error = NorFlashErrorKind;
}

impl ReadNorFlash for Ram {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NorFlashErrorKind> {
        check_read(self, offset, bytes.len())?;
        match self.0.get(offset as usize..offset as usize + bytes.len()) {
            Some(there) => bytes.copy_from_slice(there),
            None => bytes.fill(0xFF),
        }
        Ok(())
    }

    fn capacity(&self) -> usize {
        4 * Self::PAGE
    }
}

impl NorFlash for Ram {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = Self::PAGE;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), NorFlashErrorKind> {
        check_erase(self, from, to)?;
        if from == 0 {
            self.0.fill(0xFF);
        }
        Ok(())
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), NorFlashErrorKind> {
        check_write(self, offset, bytes.len())?;
        if let Some(there) = self.0.get_mut(offset as usize..offset as usize + bytes.len()) {
            there.copy_from_slice(bytes);
        }
        Ok(())
    }
}
