//! Verifies a document by a public key, with nothing else: `case.bin` has the 32 bytes of the key and the document
//! behind them, `bytes=N` on the emulator's command line together. Prints the verdict as JSON, and below it
//! `cost STACK INSTRUCTIONS`. A check of another kind of document is one more line of [`CHECKS`], chosen by
//! `check=N`.

#![no_std]
#![no_main]

extern crate alloc;

#[path = "../panic.rs"]
mod panic;

use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt::Write;
use core::mem::MaybeUninit;

use cortex_m::interrupt::{self, Mutex};
use cortex_m_rt::entry;
use cortex_m_semihosting::debug::{EXIT_FAILURE, EXIT_SUCCESS, exit};
use cortex_m_semihosting::hio;
use embedded_alloc::LlffHeap;
use omir_core::json;
use omir_core::manifesto;
use omir_core::proof;
use omir_core::value::Value;
use omir_firmware::board::{File, Ticks, argument, worst_stack};

/// Bytes of the heap: a document of some kilobytes, read, and as text once more.
const HEAP_BYTES: usize = 64 * 1024;
/// Bytes of the key in front of the document.
const KEY: usize = 32;

#[global_allocator]
static HEAP: LlffHeap = LlffHeap::empty();
static mut HEAP_MEMORY: [MaybeUninit<u8>; HEAP_BYTES] = [MaybeUninit::uninit(); HEAP_BYTES];

/// Gives the verdict on a document by a key.
type Check = fn(&[u8], [u8; KEY]) -> Value;

/// The checks, by the number of `check=N`.
const CHECKS: [Check; 2] = [
    |document, key| proof::report(&proof::judge(document, &[key])),
    |document, key| manifesto::verdict(document, &key),
];

/// The document and its verdict: a deed that is measured takes and gives nothing.
static CASE: Mutex<RefCell<(Vec<u8>, usize, Value)>> =
    Mutex::new(RefCell::new((Vec::new(), 0, Value::Null)));

#[entry]
fn main() -> ! {
    #[allow(unsafe_code, reason = "memory is given to the heap")]
    // SAFETY: it belongs to the heap alone, and this runs once.
    unsafe {
        HEAP.init(&raw mut HEAP_MEMORY as usize, HEAP_BYTES);
    }
    let done = run().is_some();
    exit(if done { EXIT_SUCCESS } else { EXIT_FAILURE });
    loop {
        cortex_m::asm::wfi();
    }
}

fn run() -> Option<()> {
    let mut out = hio::hstdout().ok()?;
    let mut case = alloc::vec![0; usize::try_from(argument("bytes")?).ok()?];
    if !File::open("case.bin")?.read(0, &mut case) {
        return None;
    }
    let chosen = usize::try_from(argument("check").unwrap_or(0)).ok()?;
    CHECKS.get(chosen)?;
    interrupt::free(|cs| *CASE.borrow(cs).borrow_mut() = (case, chosen, Value::Null));
    let stack = worst_stack(check);
    let mut ticks = Ticks::take()?;
    let spent = ticks.of(check);
    let verdict = interrupt::free(|cs| json::to_string(&CASE.borrow(cs).borrow().2));
    writeln!(out, "{verdict}").ok()?;
    writeln!(out, "cost {stack} {}", ticks.instructions(spent)).ok()
}

fn check() {
    interrupt::free(|cs| {
        let mut case = CASE.borrow(cs).borrow_mut();
        let (given, chosen, verdict) = &mut *case;
        if let Some((key, document)) = given.split_first_chunk::<KEY>() {
            *verdict = CHECKS[*chosen](document, *key);
        }
    });
}
