//! The firmware: starts, remembers, and one day hands over what it remembers.
//!
//! What it is to do comes over the command line of the emulator: `node=N` is which one it is, `cut=N` cuts the power in
//! the flash's step after `N` others, `readings=N` is how long it lives, `golden=1` asks for the golden numbers alone,
//! `time=N` (seconds since 1970) tells it the time at last, and asks for everything; and `serial=N` lets it
//! hand everything over to the daemon at its UART when it has lived, with `N` for what is random on a board, and goes
//! on to live for `more=N` readings meanwhile, one each second.

#![no_std]
#![no_main]

#[path = "../panic.rs"]
mod panic;

use core::fmt::Write;

use cortex_m_rt::{entry, exception};
use cortex_m_semihosting::debug::{EXIT_FAILURE, EXIT_SUCCESS, exit};
use cortex_m_semihosting::hio::{self, HostStream};
use omir_core::fixed::handover::{Handed, Progress};
use omir_core::fixed::ring::RingError;
use omir_core::fixed::{BootClock, JournalError, Starts, Trust, Uptime};
use omir_core::instant::Timestamp;
use omir_firmware::Memories;
use omir_firmware::board::{Clock, CutFlash, File, FlashFault, Uart, argument};
use omir_firmware::golden::golden;
use omir_firmware::handing::Cable;
use omir_firmware::life::{self, Event, Life};
use omir_firmware::sensors::{Random, Reading};

/// Length of a start that knows the time, for the emulated node: an hour.
const KNOWN_AFTER: u64 = 3_600_000_000;
/// Between two readings while it is at the cable, microseconds.
const PAUSE: u64 = 1_000_000;

#[entry]
fn main() -> ! {
    let done = hio::hstdout().is_ok_and(|mut out| run(&mut out).is_ok());
    exit(if done { EXIT_SUCCESS } else { EXIT_FAILURE });
    loop {
        cortex_m::asm::wfi();
    }
}

#[exception]
fn SysTick() {
    Clock::round();
}

/// The emulator's output is gone, or the flash failed.
struct Failed;

impl From<core::fmt::Error> for Failed {
    fn from(_: core::fmt::Error) -> Self {
        Self
    }
}

fn run(out: &mut HostStream) -> Result<(), Failed> {
    if argument("golden").is_some() {
        golden(&mut |name, bytes| {
            let _ = hex(out, format_args!("{name}"), bytes);
        });
        return Ok(());
    }
    let file = File::open("flash.img").ok_or(Failed)?;
    let flash = CutFlash::new(file, argument("cut"));
    match work(out, flash) {
        // The board is dark; the emulator need not know.
        Ok(()) | Err(JournalError::Ring(RingError::Flash(FlashFault::Cut))) => Ok(()),
        Err(error) => {
            writeln!(out, "failed {error:?}")?;
            Err(Failed)
        }
    }
}

fn work(out: &mut HostStream, flash: CutFlash) -> Result<(), JournalError<FlashFault>> {
    let mut memories = Memories::mount(flash)?;
    if let Some(seconds) = argument("time") {
        let boot = memories.next_boot()?;
        let now = Timestamp::from_unix(seconds.into(), 0);
        let mut starts = memories.starts()?;
        if let Some(clock) = BootClock::learnt(now, Uptime { boot, micros: KNOWN_AFTER }) {
            starts.learn(clock, Trust::Synchronised);
        }
        return show(out, &mut memories, &starts);
    }
    let node = argument("node").unwrap_or(7);
    let mut cable = Cable::new(&life::name(node));
    // Nobody reads on when the pipe is closed: what is told is told as far as possible.
    let mut life = Life::start(node, &mut memories, &mut |event| _ = tell(out, event))?;
    let mut lived = 0;
    for _ in 0..argument("readings").unwrap_or(8) {
        let reading = life.sense();
        lived = reading.micros;
        life.turn(&mut memories, &mut cable.hand_over, &reading, &mut |event| {
            let _ = tell(out, event);
        })?;
    }
    let Some(seed) = argument("serial") else { return Ok(()) };
    let Some(board) = cortex_m::Peripherals::take() else { return Ok(()) };
    let (mut uart, mut clock) = (Uart::start(), Clock::start(board.SYST));
    let _ = writeln!(out, "up {} {lived}", life.boot());
    let mut random = Random::new(seed);
    let (mut left, mut due) = (argument("more").unwrap_or(0), lived + PAUSE);
    // The main loop: nothing in it waits.
    loop {
        let uptime = Uptime { boot: life.boot(), micros: lived + clock.micros() };
        let progress = cable.turn(&mut memories, &mut uart, &mut random, uptime)?;
        if left > 0 && uptime.micros >= due {
            let reading = Reading { micros: uptime.micros, ..life.sense() };
            let hand_over = &mut cable.hand_over;
            life.turn(&mut memories, hand_over, &reading, &mut |event| _ = tell(out, event))?;
            (left, due) = (left - 1, uptime.micros + PAUSE);
            let _ = writeln!(out, "sensed {left}");
            if left == 0 {
                cable.call();
            }
        } else if left == 0 && progress == Progress::Done {
            break;
        }
    }
    show(out, &mut memories, cable.hand_over.starts())?;
    let Handed { stored, unchanged, kept, refused, .. } = cable.hand_over.handed();
    let _ = writeln!(out, "handed {stored} {unchanged} {kept} {refused}");
    Ok(())
}

/// Shows every record, as the daemon gets it.
fn show(
    out: &mut HostStream,
    memories: &mut Memories<CutFlash>,
    starts: &Starts,
) -> Result<(), JournalError<FlashFault>> {
    life::hand_over(memories, starts, &mut |number, bytes| {
        let _ = hex(out, format_args!("memory {}", number.get()), bytes);
    })
}

fn tell(out: &mut HostStream, event: Event<'_>) -> core::fmt::Result {
    match event {
        Event::Started(boot) => writeln!(out, "start {boot}"),
        Event::Held(number, record) => {
            let accesses = record.decay.and_then(|decay| decay.access_count).unwrap_or_default();
            writeln!(out, "held {} {} {accesses}", number.get(), record.id.as_str())
        }
        Event::Remembered(number, record) => {
            let word = if record.anchored() { "anchored" } else { "plain" };
            writeln!(out, "kept {} {} {word}", number.get(), record.id.as_str())
        }
        Event::Used(number, decay) => {
            writeln!(out, "used {} {}", number.get(), decay.access_count.unwrap_or_default())
        }
        Event::NoRoom => writeln!(out, "full"),
        Event::Forgot(number) => writeln!(out, "gone {}", number.get()),
    }
}

fn hex(out: &mut HostStream, name: core::fmt::Arguments<'_>, bytes: &[u8]) -> core::fmt::Result {
    // One request of the emulator for a piece, not for a byte.
    write!(out, "{name} ")?;
    for part in bytes.chunks(32) {
        let mut digits = heapless::String::<64>::new();
        for byte in part {
            write!(digits, "{byte:02x}")?;
        }
        out.write_str(&digits)?;
    }
    out.write_str("\n")
}
