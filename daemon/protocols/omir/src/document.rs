//! A document of any size, one entry after the other: as much of the store as is under way is in memory.

use omir_core::value::{Map, Value};

use super::{Omir, Parameters, about};
use omird_engine::{Engine, Error, LeftOut, Query, Selection};
use omird_router::Admitted;

/// The selection of an export.
pub struct Document {
    engine: Engine,
    selection: Selection,
}

impl Omir {
    /// Selects what `export` gives with these parameters. Between steps of the work `goes_on` is asked, which may rest.
    ///
    /// # Errors
    /// `INVALID_QUERY`; `BUSY` if it was not to go on.
    pub fn document(
        &self,
        _: &Admitted,
        parameters: &Parameters,
        goes_on: impl FnMut() -> bool,
    ) -> Result<Document, Error> {
        let query = self.query(&about::DOCUMENT, Query::everything(), parameters)?;
        let selection = self.engine.select(&query, None, goes_on)?;
        Ok(Document { engine: self.engine.clone(), selection })
    }
}

impl Document {
    /// Returns the members of the Bundle before its entries.
    pub fn head(&self) -> &Map {
        self.selection.head()
    }

    /// Returns what belongs in it and could not be read when it was selected, as it goes with a Bundle.
    pub fn left_out(&self) -> &LeftOut {
        self.selection.left_out()
    }

    /// Returns the number of entries, those that cannot be read among them.
    pub fn len(&self) -> usize {
        self.selection.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.selection.is_empty()
    }

    /// Returns the entry at a position, read now; `None` if it was forgotten meanwhile.
    ///
    /// # Errors
    /// `INTERNAL`: it cannot be read.
    pub fn entry(&self, position: usize) -> Result<Option<Value>, Error> {
        self.engine.selected(&self.selection, position)
    }

    /// Returns the entries, each read as it is asked for; an error for one that cannot be. What was forgotten meanwhile is
    /// passed over.
    pub fn entries(&self) -> impl Iterator<Item = Result<Value, Error>> {
        let read = |position| self.entry(position).transpose();
        (0..self.selection.len()).filter_map(read)
    }
}
