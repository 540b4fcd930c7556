//! The stack that a function takes: the memory below is painted, and what was overwritten is counted.
#![allow(unsafe_code, reason = "the stack below this function belongs to nobody")]

use core::ptr;

/// The paint: a value that code seldom leaves behind.
const PAINT: u32 = 0xC0DE_CAFE;
/// Words painted: 12 of the 16 KiB of the smallest board.
const WORDS: usize = 3072;
/// Bytes right below this frame that are not painted, for the frame of the loop itself.
const NEAR: usize = 128;

/// Runs `deed` and says how many bytes of stack it took, the frame it is called from not counted.
#[inline(never)]
pub fn worst_stack(deed: fn()) -> usize {
    let marker = 0_u32;
    let top = (&raw const marker as usize - NEAR) & !7;
    let bottom = top - WORDS * 4;
    for at in (bottom..top).step_by(4) {
        // SAFETY: RAM below the stack pointer, which the memory map leaves to the stack; no interrupt is on.
        unsafe { ptr::write_volatile(at as *mut u32, PAINT) };
    }
    deed();
    let is_painted = |at: &usize| {
        // SAFETY: as above.
        unsafe { ptr::read_volatile(*at as *const u32) == PAINT }
    };
    let untouched = (bottom..top).step_by(4).take_while(is_painted).count();
    // The bytes in `NEAR` were not painted; `deed` used them, too.
    (WORDS - untouched) * 4 + NEAR
}
