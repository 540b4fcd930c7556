//! Memories under their names, and what is heard of them.

use std::ops::ControlFlow;
use std::time::Duration;

use crossbeam_channel::Receiver;
use omir_core::instant::Timestamp;
use omir_core::reference::{Id, Ref, ResourceType};

use super::params::Parameters;
use super::{Omir, about};
use omird_engine::{
    Change, Encoding, Error, EventQueue, Lookup, Precondition, Query, Recall, Receipt, Unread,
    id_of,
};
use omird_router::Admitted;

/// Ends the request before its client is told.
fn ending(
    reply: impl FnOnce(Result<Receipt, Error>) + Send + 'static,
) -> impl FnOnce(Admitted, Result<Receipt, Error>) + Send + 'static {
    move |admitted: Admitted, made: Result<Receipt, Error>| {
        admitted.finish(&made);
        reply(made);
    }
}

impl Omir {
    /// Returns what is stored under a name, as CBOR.
    ///
    /// # Errors
    /// `INTERNAL` if it cannot be read.
    pub fn get(&self, _: &Admitted, name: &Ref) -> Result<Option<Vec<u8>>, Error> {
        self.engine.get(name)
    }

    /// As [`Omir::get`], with the number of the version.
    ///
    /// # Errors
    /// `INTERNAL` if it cannot be read.
    pub fn get_versioned(&self, _: &Admitted, name: &Ref) -> Result<Option<(Vec<u8>, u64)>, Error> {
        self.engine.get_versioned(name)
    }

    /// Returns the version that lives under a name, as a [`Precondition`] sees it, and the transaction that made it.
    pub fn live_version(&self, _: &Admitted, name: &Ref) -> Option<(u64, u64)> {
        self.engine.live_version(name)
    }

    /// Stores a resource under a name if the condition holds then. `reply` gets the request back, which may be tried
    /// again.
    pub fn put_if(
        &self,
        admitted: Admitted,
        name: &Ref,
        payload: &[u8],
        encoding: Encoding,
        precondition: Precondition,
        reply: impl FnOnce(Admitted, Result<Receipt, Error>) + Send + 'static,
    ) {
        match self.engine.prepare(payload, encoding, Some(name)) {
            Ok(change) => self.change(admitted, change.only_if(precondition), reply),
            Err(error) => reply(admitted, Err(error)),
        }
    }

    /// As [`Omir::get`], and tells what is damaged from what cannot be read now.
    ///
    /// # Errors
    /// `INTERNAL` if that cannot be told now, because the disk is away.
    pub fn look_up(&self, _: &Admitted, name: &Ref) -> Result<Lookup, Error> {
        self.engine.look_up(name)
    }

    /// Calls `f` for each live resource of a type whose name `is_wanted`, and for what cannot be read and may be among
    /// them, until it breaks.
    ///
    /// # Errors
    /// Breaks where `f` does.
    pub fn each(
        &self,
        _: &Admitted,
        of: ResourceType,
        is_wanted: impl Fn(&Ref) -> bool,
        mut f: impl FnMut(Result<(Ref, Vec<u8>), Unread>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.engine.each_or_unread(Some(of), |one| match one {
            Ok(bytes) => {
                let name = id_of(&bytes).and_then(|id| Id::new(id).ok()).map(|id| Ref::new(of, id));
                match name.filter(&is_wanted) {
                    Some(name) => f(Ok((name, bytes))),
                    None => ControlFlow::Continue(()),
                }
            }
            Err(unread) if unread.name.as_ref().is_none_or(&is_wanted) => f(Err(unread)),
            Err(_) => ControlFlow::Continue(()),
        })
    }

    /// Waits until what was put before is committed, at most `patience`. A client that puts and then gets reads what it
    /// wrote.
    pub fn wait_committed(&self, patience: Duration) {
        self.engine.wait_committed(patience);
    }

    /// Stores a resource under a name. `sent` is what the client's clock showed.
    pub fn put(
        &self,
        admitted: Admitted,
        name: &Ref,
        payload: &[u8],
        encoding: Encoding,
        sent: Option<Timestamp>,
        reply: impl FnOnce(Result<Receipt, Error>) + Send + 'static,
    ) {
        let key = Some(name);
        let change = match sent {
            Some(sent) => self.engine.prepare_sent(payload, encoding, key, sent),
            None => self.engine.prepare(payload, encoding, key),
        };
        match change {
            Ok(change) => self.change(admitted, change, ending(reply)),
            Err(error) => {
                admitted.failed(error.code);
                reply(Err(error));
            }
        }
    }

    /// Forgets what is under a name.
    pub fn delete(
        &self,
        admitted: Admitted,
        name: Ref,
        reply: impl FnOnce(Result<Receipt, Error>) + Send + 'static,
    ) {
        self.change(admitted, Change::Forget(vec![name]), ending(reply));
    }

    /// Forgets what is under a name, unless a later transaction than `seq` has stored it.
    pub fn delete_up_to(
        &self,
        admitted: Admitted,
        name: Ref,
        seq: u64,
        reply: impl FnOnce(Result<Receipt, Error>) + Send + 'static,
    ) {
        self.change(admitted, Change::ForgetUpTo(vec![name], seq), ending(reply));
    }

    /// Takes a place among the changes, and changes nothing: what is forgotten [up to it](Omir::forget_up_to) may be
    /// looked up afterwards.
    pub fn mark(&self, _: &Admitted) -> Receiver<Result<Receipt, Error>> {
        let (tell, told) = crossbeam_channel::bounded(1);
        let reply = move |receipt| {
            // A request that has ended does not wait for it.
            let _ = tell.send(receipt);
        };
        self.engine.submit(Change::Forget(Vec::new()), 0, Box::new(reply));
        told
    }

    /// Forgets what is under these names, as far as it was recorded no later than the transaction `seq`, and waits until that
    /// is durable.
    ///
    /// # Errors
    /// Those of a `forget`.
    pub fn forget_up_to(
        &self,
        admitted: &mut Admitted,
        names: Vec<Ref>,
        seq: u64,
    ) -> Result<Receipt, Error> {
        self.change_now(admitted, Change::ForgetUpTo(names, seq))
    }

    /// Recalls for a caller who only looks: no access is counted. `base` is what holds where no parameter says else.
    ///
    /// # Errors
    /// `INVALID_QUERY`; `INTERNAL` if nothing can be read.
    pub fn look(
        &self,
        _: &Admitted,
        base: Query,
        parameters: &Parameters,
    ) -> Result<(Query, Recall), Error> {
        let mut query = self.query(&about::RECALL, base, parameters)?;
        query.touch = false;
        let found = self.engine.recall(&query)?;
        Ok((query, found))
    }

    /// Follows what is recorded from now on; of more than `most` that wait the rest is passed over.
    pub fn events(&self, _: &Admitted, most: usize) -> EventQueue {
        self.engine.events().follow(most)
    }

    /// Returns what time it is for the memory.
    pub fn now(&self) -> Timestamp {
        self.engine.now().0
    }
}
