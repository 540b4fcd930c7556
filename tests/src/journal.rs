//! Requests to an engine and its answers.

use std::sync::Arc;
use std::time::Duration;

use omir_core::json;
use omir_core::model::Resource;
use omir_core::value::Value;
use omird::engine::testing::ByHand;
use omird::engine::{Change, Code, Encoding, Error, Query};

use crate::cut_disk::CutDisk;
use crate::life::Step;
use crate::model::{Answer, Model, Request};
use crate::session::{Session, TestClock};

/// Acknowledged requests, and the one whose outcome is unknown.
#[derive(Debug, Clone, Default)]
pub struct Journal {
    /// Everything that was acknowledged.
    pub acknowledged: Model,
    /// The model as it would be if the request that got no answer, or was refused by the disk, had been
    /// carried out: after a restart it may be there whole.
    pub in_doubt: Option<Model>,
}

/// The end of a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was lived to its end, and the engine stopped cleanly.
    Whole,
    /// The power went.
    Cut,
}

/// Asks an engine for a change, through the same door as every protocol.
///
/// # Errors
/// As the engine refuses.
pub fn change(session: &Session, request: &Request) -> Result<Change, Error> {
    Ok(match request {
        Request::Remember(resources) => {
            let value = match &resources[..] {
                [resource] => resource.to_value(),
                several => Value::Array(several.iter().map(Resource::to_value).collect()),
            };
            session.prepare(json::to_string(&value).as_bytes(), Encoding::Json, None)?
        }
        Request::Forget(target) => Change::Forget(vec![target.clone()]),
        Request::Anchor(target, anchored) => Change::Anchor(target.clone(), *anchored),
        Request::Feedback(target, outcome) => {
            Change::Feedback(target.clone(), *outcome, omir_core::confidence::Weight::ONE)
        }
    })
}

impl Journal {
    /// Makes a request and notes the answer, which must be the one the model gives. Where the disk
    /// refuses, the refusal is handed back.
    ///
    /// # Errors
    /// If the disk refused: `INTERNAL` or `STORAGE_FULL`.
    ///
    /// # Panics
    /// If the engine answers otherwise than the model.
    pub fn request(&mut self, session: &Session, request: &Request) -> Result<(), Error> {
        let mut after = self.acknowledged.clone();
        let expected = after.apply(request);
        let result = change(session, request).and_then(|change| session.execute(change));
        let answer = Answer::of(&result);
        if let Err(error) = result
            && matches!(error.code, Code::Internal | Code::StorageFull)
        {
            self.in_doubt = Some(after);
            return Err(error);
        }
        assert_eq!(answer, expected, "the answer to {request:?}");
        if after != self.acknowledged {
            // Something later was written, so what was refused before can not come back.
            self.in_doubt = None;
        }
        self.acknowledged = after;
        Ok(())
    }

    /// Lives `steps` on a card that may lose its power. Stops at the first sign of that.
    ///
    /// # Panics
    /// If anything fails while the power is on.
    pub fn live(&mut self, disk: &CutDisk, clock: &Arc<TestClock>, steps: &[Step]) -> Ended {
        let open = || match Session::open(disk, clock) {
            Ok(session) => Some(session),
            Err(error) => {
                assert!(disk.is_off(), "the store does not open: {error}");
                None
            }
        };
        let mut session = open();
        for step in steps {
            let Some(engine) = &session else { return Ended::Cut };
            clock.advance(Duration::from_secs(1));
            match step {
                Step::Restart => {
                    drop(session.take());
                    session = open();
                }
                Step::Recall(words) => {
                    let text = Some(words.as_str().into());
                    let query = Query { text, include_intentions: true, ..Query::default() };
                    let recalled = engine.recall(&query).expect("a recall is answered");
                    assert!(disk.is_off() || recalled.hits.len() as u64 == recalled.total.min(10));
                }
                Step::Compact(scope) => {
                    if let Err(error) = engine.compact(*scope) {
                        assert!(disk.is_off(), "{scope:?} is not compacted: {error}");
                        return Ended::Cut;
                    }
                }
                Step::Sweep(hours) => {
                    clock.advance(Duration::from_secs(3600 * u64::from(*hours)));
                    if let Err(error) = engine.sweep(false) {
                        assert!(disk.is_off(), "no sweep: {error}");
                        return Ended::Cut;
                    }
                }
                Step::Ask(request) => {
                    if let Err(error) = self.request(engine, request) {
                        assert!(disk.is_off(), "{request:?} is refused: {error}");
                        return Ended::Cut;
                    }
                }
            }
        }
        drop(session);
        if disk.is_off() { Ended::Cut } else { Ended::Whole }
    }
}
