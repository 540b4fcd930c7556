//! The operations of `docs/keys.md`: a request is read here, carried out, and answered.

mod request;
mod response;

use omir_core::operation::Operation;
use omir_core::proof::Proof;
use omir_core::reference::Ref;
use omir_core::value::{Map, Value};

pub use self::request::{Params, Payload};
pub use self::response::{Encoded, Response};
use super::Omir;
use super::params::{self, Named};
use super::{about, methods};
use omird_engine::{
    Change, Code, CompactionScope, Error, Precondition, Query, SweepReport, unanswered,
};
use omird_router::{Admitted, worded};

/// Payloads up to this size are decoded on the thread that takes requests in; larger ones would hold up others there.
pub const INLINE_BYTES: usize = 64 << 10;

/// Returns true if the thread that takes requests in may call [`Omir::serve`] with a payload of so many bytes: the call
/// decodes little, hands the rest to a thread of the engine, and returns.
pub fn is_served_inline(operation: Operation, bytes: usize) -> bool {
    is_handed_over(operation) && bytes <= INLINE_BYTES
}

/// Returns true if a thread of the engine works on it. The others are worked on where they are served.
fn is_handed_over(operation: Operation) -> bool {
    match operation {
        Operation::Remember
        | Operation::Forget
        | Operation::Anchor
        | Operation::Feedback
        | Operation::Compact
        | Operation::Rebase => true,
        Operation::Recall
        | Operation::Export
        | Operation::Sweep
        | Operation::Explain
        | Operation::Status
        | Operation::Backup
        | Operation::Prove => false,
    }
}

/// An operation that was understood.
enum Command {
    Change(Change),
    Recall(Query),
    Export(Query),
    Compact(CompactionScope),
    Sweep { dry_run: bool },
    Explain(Ref),
    Status,
    Backup(params::Backup),
    Prove(Ref),
}

/// Notes the resources that a sweep has changed, for the audit line.
fn note_sweep(admitted: &mut Admitted, report: &SweepReport) {
    let names: Vec<Ref> = report.items.iter().filter_map(|item| item.target.parse().ok()).collect();
    let all = report.moved + report.merged + report.expired + report.evicted;
    admitted.touched(&names);
    admitted.touched_more(all.saturating_sub(names.len() as u64));
}

/// The document of a proof.
fn proof_value(proof: &Proof) -> Result<Value, Error> {
    proof.to_value().map_err(|fault| {
        Error::new(Code::Internal, format!("a stored resource cannot be read: {fault}"))
    })
}

impl Omir {
    /// Carries out an operation. `shape` makes of the response what the transport sends, and may fail too; `reply` is
    /// called once with that: if a thread of the engine works on the operation, on that thread, which must not wait; else before
    /// this returns.
    pub fn serve<T>(
        &self,
        mut admitted: Admitted,
        params: Params,
        shape: impl FnOnce(Response) -> Result<T, Error> + Send + 'static,
        reply: impl FnOnce(Result<T, Error>) + Send + 'static,
    ) {
        let command = self.read(&mut admitted, params);
        let answer = move |mut admitted: Admitted, response: Result<Response, Error>| {
            if let Ok(Response::Sweep(report)) = &response
                && !report.dry_run
            {
                note_sweep(&mut admitted, report);
            }
            let shaped = response.and_then(shape);
            admitted.finish(&shaped);
            reply(shaped);
        };
        let engine = &self.engine;
        let response = match command {
            Err(error) => Err(error),
            Ok(Command::Change(change)) => {
                return self.change(admitted, change, move |admitted, made| {
                    answer(admitted, made.map(Response::Receipt));
                });
            }
            Ok(Command::Compact(scope)) => {
                let reply =
                    move |done: Result<_, _>| answer(admitted, done.map(Response::Compaction));
                return engine.request_compaction(scope, Box::new(reply));
            }
            Ok(Command::Recall(query)) => engine.recall(&query).map(Response::Recall),
            Ok(Command::Export(query)) => {
                let export = match admitted.reply_bytes() {
                    None => engine.export(&query),
                    Some(most) => engine.export_within(&query, most),
                };
                export.map(Response::Export)
            }
            Ok(Command::Sweep { dry_run }) => engine.sweep(dry_run).map(Response::Sweep),
            Ok(Command::Explain(target)) => engine.explain(&target).map(Response::Explanation),
            Ok(Command::Status) => Ok(Response::Status(engine.status(&self.robot))),
            Ok(Command::Backup(params::Backup::List)) => {
                let offer = engine.offer_backup(&self.robot);
                offer.map(|offer| Response::Backup(offer.to_value()))
            }
            Ok(Command::Backup(params::Backup::Piece { segment, offset, length })) => {
                engine.segment_piece(segment, offset, length).map(Response::Piece)
            }
            Ok(Command::Prove(target)) => {
                let proof = engine.prove(&target).and_then(|proof| proof_value(&proof));
                proof.map(Response::Proof)
            }
        };
        answer(admitted, response);
    }

    /// As [`Omir::serve`], and waits for the response.
    ///
    /// # Errors
    /// Those of the operation in `docs/keys.md`.
    pub fn ask<T: Send + 'static>(
        &self,
        admitted: Admitted,
        params: Params,
        shape: impl FnOnce(Response) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (tell, told) = crossbeam_channel::bounded(1);
        self.serve(admitted, params, shape, move |answer| {
            // The caller waits for it.
            let _ = tell.send(answer);
        });
        told.recv().unwrap_or_else(|_| Err(unanswered()))
    }

    fn read(&self, admitted: &mut Admitted, params: Params) -> Result<Command, Error> {
        let Some(operation) = methods::operation(admitted.method()) else {
            let message = format!("{} is no operation", admitted.method().name);
            return Err(Error::new(Code::Internal, message));
        };
        Ok(match operation {
            Operation::Remember => Command::Change(self.read_remember(admitted, params)?),
            Operation::Rebase => Command::Change(self.read_rebase(params)?),
            Operation::Recall => {
                Command::Recall(self.query(&about::RECALL, Query::default(), &params.merged()?)?)
            }
            Operation::Export => Command::Export(self.query(
                &about::EXPORT,
                Query::everything(),
                &params.merged()?,
            )?),
            Operation::Forget => Command::Change(params::forget(params.merged()?)?),
            Operation::Anchor => Command::Change(params::anchor(params.merged()?)?),
            Operation::Feedback => Command::Change(params::feedback(params.merged()?)?),
            Operation::Compact => Command::Compact(params::compact(params.merged()?)?),
            Operation::Sweep => {
                let dry_run = params::sweep(params.merged()?)?;
                if !dry_run {
                    admitted.expect_change().map_err(worded)?;
                }
                Command::Sweep { dry_run }
            }
            Operation::Explain => Command::Explain(params::explain(params.merged()?)?),
            Operation::Status => {
                Named::of(&about::STATUS, params.merged()?).finish("")?;
                Command::Status
            }
            Operation::Backup => Command::Backup(params::backup(params.parameters)?),
            Operation::Prove => Command::Prove(params::prove(params.merged()?)?),
        })
    }

    fn read_remember(&self, admitted: &mut Admitted, params: Params) -> Result<Change, Error> {
        let mut named = Named::of(&about::REMEMBER, params.parameters);
        let precedence = named.take("merge").map(|text| params::precedence(&text)).transpose()?;
        let precondition = params::precondition(&mut named)?;
        named.finish("the resource goes into the payload")?;
        if precedence.is_some() && precondition != Precondition::None {
            let message =
                "goes without `ifAbsent` and `ifVersion`: a merge decides by what both sides state";
            return Err(Error::query("merge", message));
        }
        let Payload::Resources(bytes, encoding) = params.payload else {
            return Err(Error::new(
                Code::InvalidResource,
                "there is no payload: send a resource, an array of resources, or a Bundle",
            ));
        };
        let engine = &self.engine;
        match precedence {
            None => Ok(engine.prepare(&bytes, encoding, None)?.only_if(precondition)),
            Some(precedence) => {
                engine.prepare_admitted(admitted.take_permit(), &bytes, encoding, precedence)
            }
        }
    }

    /// Its parameters may stand among the members, as those of all others do.
    fn read_rebase(&self, params: Params) -> Result<Change, Error> {
        let Params { parameters, payload } = params;
        let mut members = payload.members()?;
        let mut beside = Map::new();
        if let Some(Value::Object(map)) = &mut members {
            for name in ["undo", "dryRun"] {
                if let Some(value) = map.remove(name) {
                    beside.insert(name, value);
                }
            }
            if map.is_empty() {
                members = None;
            }
        }
        let payload = Payload::Members(Value::Object(beside));
        let parameters = Params { parameters, payload }.merged()?;
        params::rebase::parse(&self.engine, parameters, members.as_ref())
    }
}

#[cfg(test)]
mod tests;
