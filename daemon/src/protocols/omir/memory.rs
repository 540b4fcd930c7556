//! Memories under their names, and what is heard of them.

use omir_core::instant::Timestamp;
use omir_core::reference::Ref;

use super::Omir;
use crate::engine::Recall;
use crate::engine::asked::Parameters;
use crate::engine::events::Following;
use crate::error::Error;
use crate::recall::query::Query;
use crate::router::Admitted;

impl Omir {
    /// Returns what is stored under a name, as CBOR.
    ///
    /// # Errors
    /// `INTERNAL` if it cannot be read.
    pub fn get(&self, _: &Admitted, name: &Ref) -> Result<Option<Vec<u8>>, Error> {
        self.engine.get(name)
    }

    /// Recalls for somebody who only looks: no access is counted. `base` is what holds where no parameter says else.
    ///
    /// # Errors
    /// `INVALID_QUERY`; `INTERNAL` if nothing can be read.
    pub fn look(
        &self,
        _: &Admitted,
        base: Query,
        parameters: &Parameters,
    ) -> Result<(Query, Recall), Error> {
        let mut query = self.engine.query(base, parameters)?;
        query.touch = false;
        let found = self.engine.recall(&query)?;
        Ok((query, found))
    }

    /// Follows what is recorded from now on; of more than `most` that wait the rest is passed over.
    pub fn events(&self, _: &Admitted, most: usize) -> Following {
        self.engine.events().follow(most)
    }

    /// Returns what time it is for the memory.
    pub fn now(&self) -> Timestamp {
        self.engine.now().0
    }
}
