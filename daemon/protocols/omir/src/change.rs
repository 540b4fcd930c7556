//! A change that a caller asks for, on its way to the writer and back. All methods that change memories go this way: the bytes
//! of the request count in the queue, and the audit line names what is asked for, and then what was changed.
//!
//! The caller's side of it, which is the wording of what came of the change and the end of the request, is left to each method.

use omir_core::reference::Ref;
use omird_engine::{Change, Error, Receipt};
use omird_router::Admitted;

use super::Omir;

impl Omir {
    /// Hands a change to the writer. `reply` gets the request back, which may be tried again, with what came of the change.
    pub(crate) fn change(
        &self,
        mut admitted: Admitted,
        change: Change,
        reply: impl FnOnce(Admitted, Result<Receipt, Error>) + Send + 'static,
    ) {
        let bytes = begin(&mut admitted, &change);
        let reply = move |made: Result<Receipt, Error>| {
            note(&mut admitted, &made);
            reply(admitted, made);
        };
        self.engine.submit(change, bytes, Box::new(reply));
    }

    /// As [`Omir::change`], and waits until the change is as durable as the settings promise.
    ///
    /// # Errors
    /// Those of the change.
    pub(crate) fn change_now(
        &self,
        admitted: &mut Admitted,
        change: Change,
    ) -> Result<Receipt, Error> {
        let bytes = begin(admitted, &change);
        let made = self.engine.execute_counted(change, bytes);
        note(admitted, &made);
        made
    }
}

/// Notes what is asked for, and returns the bytes that the queue counts.
fn begin(admitted: &mut Admitted, change: &Change) -> usize {
    admitted.asked_for(asked_for(change));
    admitted.bytes()
}

/// Notes what was changed.
fn note(admitted: &mut Admitted, made: &Result<Receipt, Error>) {
    if let Ok(receipt) = made {
        admitted.note_receipt(receipt);
    }
}

/// Returns the resources that a change names by itself; what is stored names its receipt.
fn asked_for(change: &Change) -> &[Ref] {
    match change {
        Change::Forget(names) | Change::ForgetUpTo(names, _) => names,
        Change::Anchor(name, _) | Change::Feedback(name, ..) => std::slice::from_ref(name),
        _ => &[],
    }
}
