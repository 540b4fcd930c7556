//! Vectors stated on their memories.

use omird_embedding::Vector;

use super::Blank;
use crate::failure::Failure;
use crate::model::embedding::{Maker, hash_of};
use crate::names::Sort;
use crate::shared::Shared;
use crate::state::Memory;
use crate::store::{Batch, Shape, Store, Stored, retried};

/// States vectors on their memories, all in one write.
pub(super) fn state_all(
    shared: &Shared,
    maker: &Maker,
    blanks: &[Blank],
    vectors: &[Vector],
) -> Result<(), Failure> {
    let Some(first) = blanks.first() else { return Ok(()) };
    // The name of a memory knows its tenant; a write knows none.
    let writer = Store::new(&shared.engine, &first.due.0);
    retried(|| {
        let mut batch = Batch::default();
        for (blank, vector) in blanks.iter().zip(vectors) {
            let (tenant, id) = &blank.due;
            let store = Store::new(&shared.engine, tenant);
            let Some(stored) = store.get_readable::<Memory>(Sort::Memory, id)? else { continue };
            // It says something else by now, and waits for that once more.
            let is_as_it_was = hash_of(&stored.record.content) == blank.hash;
            if is_as_it_was && !stored.state.archived && !maker.has_made(&stored.record) {
                state_one(&store, &mut batch, &stored, maker, blank, vector)?;
            }
        }
        if !batch.is_empty() {
            writer.commit(batch)?;
        }
        Ok(())
    })
}

fn state_one(
    store: &Store,
    batch: &mut Batch,
    stored: &Stored<Memory>,
    maker: &Maker,
    blank: &Blank,
    vector: &Vector,
) -> Result<(), Failure> {
    let state = stored.state.with_vector(stored.version);
    let shape = Shape {
        vector: Some(maker.stated(vector.clone(), &blank.hash)),
        ..Shape::of(&stored.record)
    };
    store.change(batch, stored, &state, &shape)?;
    Ok(())
}
