//! The tools of this protocol: its methods as a language model uses them.
//!
//! A tool takes a few flat arguments and gives a flat, short result with its units stated. It asks the engine what the method
//! of its row asks, under the same scope.

mod ask;
mod change;
mod look;
mod memory;
mod page;
mod table;
mod time_range;
mod whereabouts;

use omir_core::instant::Timestamp;
use omir_core::value::{Map, Value};
use omird_engine::{Code, Error};
use omird_router::tool::{CallObserver, Tool, Toolbox};
use omird_router::{Admitted, Refusal, worded};

use crate::Omir;

impl Toolbox for Omir {
    fn tools(&self) -> Vec<&'static Tool> {
        table::ROWS.iter().map(|row| &row.tool).collect()
    }

    fn call(
        &self,
        tool: &'static Tool,
        mut admitted: Admitted,
        arguments: &Map,
        observer: &dyn CallObserver,
    ) -> Result<Map, Error> {
        if !observer.is_wanted() {
            return Err(given_up());
        }
        let call = Call { omir: self, tool, arguments, observer, now: self.now() };
        let result = match table::ROWS.iter().find(|row| std::ptr::eq(&row.tool, tool)) {
            Some(row) => (row.run)(&call, &mut admitted),
            None => Err(Error::new(Code::Internal, format!("{} is no tool here", tool.name))),
        };
        // A change that was made is no less made where the client waits for the answer no longer.
        let is_made = result.is_ok() && !tool.only_reads();
        if is_made || observer.is_wanted() {
            admitted.finish(&result);
        }
        result
    }

    fn worded(&self, refusal: Refusal) -> Error {
        worded(refusal)
    }
}

/// The error of a call that its client has cancelled; it reaches nobody.
fn given_up() -> Error {
    Error::new(Code::Busy, "the call was cancelled")
}

/// One use of a tool.
struct Call<'a> {
    omir: &'a Omir,
    tool: &'static Tool,
    arguments: &'a Map,
    observer: &'a dyn CallObserver,
    now: Timestamp,
}

impl<'a> Call<'a> {
    /// The value of an argument, if it is given.
    fn value(&self, name: &str) -> Option<&'a Value> {
        self.arguments.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.value(name).and_then(Value::as_str)
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.value(name).and_then(Value::as_f64)
    }

    fn list(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let items = self.value(name).and_then(Value::as_array).unwrap_or_default();
        items.iter().filter_map(Value::as_str)
    }

    /// The frame that places are shown in, where a memory has several.
    fn frame(&self) -> String {
        let fixed = || self.omir.engine.settings().fixed_frame.clone();
        self.text("frame").map_or_else(fixed, str::to_owned)
    }
}
