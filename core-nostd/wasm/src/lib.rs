//! Verification in WebAssembly, for `wasm32-unknown-unknown`: no import, no clock, no network.
//!
//! | export | |
//! |---|---|
//! | `input(length)` | makes room for what is to be checked, and says where it lies; 0 if it is too large |
//! | a check, such as `verify_proof()` | checks the input; 1: valid, 0: not |
//! | `output()`, `output_length()` | the verdict of the last check as JSON, `docs/proofs.md`, `docs/manifesto.md` |
//!
//! The host writes the public key (32 bytes) and the document behind it to `input`. Room is taken again for each check,
//! and what was written before a check is not kept. A check of another kind of document is one more line of [`check!`].

use std::sync::{Mutex, PoisonError};

use omir_core::json;
use omir_core::manifesto;
use omir_core::proof::{self, MAX_BYTES};
use omir_core::value::Value;

/// Bytes of the key in front of the document.
const KEY: usize = 32;

static INPUT: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static OUTPUT: Mutex<String> = Mutex::new(String::new());

/// Exports a check under a name: a function of document and key that gives the verdict, with `valid` in it.
macro_rules! check {
    ($name:ident, $check:path) => {
        /// A check of the input; see the crate.
        #[allow(unsafe_code, reason = "the attribute; no other function here has this name")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> u32 {
            decide($check)
        }
    };
}

check!(verify_proof, verdict_on_proof);
check!(verify_manifesto_proof, verdict_on_manifesto_proof);

fn verdict_on_proof(document: &[u8], key: [u8; KEY]) -> Value {
    proof::report(&proof::judge(document, &[key]))
}

fn verdict_on_manifesto_proof(document: &[u8], key: [u8; KEY]) -> Value {
    manifesto::verdict(document, &key)
}

fn decide(check: fn(&[u8], [u8; KEY]) -> Value) -> u32 {
    let input = std::mem::take(&mut *INPUT.lock().unwrap_or_else(PoisonError::into_inner));
    let mut output = OUTPUT.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((key, document)) = input.split_first_chunk::<KEY>() else {
        *output =
            r#"{"valid":false,"fault":"unreadable","message":"no key of 32 bytes"}"#.to_owned();
        return 0;
    };
    let verdict = check(document, *key);
    *output = json::to_string(&verdict);
    u32::from(verdict.get("valid").and_then(Value::as_bool) == Some(true))
}

/// Makes room for `length` bytes, and says where.
#[allow(unsafe_code, reason = "the attribute; no other function here has this name")]
#[unsafe(no_mangle)]
pub extern "C" fn input(length: usize) -> *mut u8 {
    let mut input = INPUT.lock().unwrap_or_else(PoisonError::into_inner);
    input.clear();
    if length > MAX_BYTES + KEY {
        return std::ptr::null_mut();
    }
    input.resize(length, 0);
    input.as_mut_ptr()
}

/// The place of the last verdict.
#[allow(unsafe_code, reason = "the attribute; no other function here has this name")]
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    OUTPUT.lock().unwrap_or_else(PoisonError::into_inner).as_ptr()
}

/// The length of the last verdict.
#[allow(unsafe_code, reason = "the attribute; no other function here has this name")]
#[unsafe(no_mangle)]
pub extern "C" fn output_length() -> usize {
    OUTPUT.lock().unwrap_or_else(PoisonError::into_inner).len()
}
