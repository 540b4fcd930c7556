//! The operations of `docs/keys.md`, in whatever protocol they are asked for: what was asked is read here, worked on,
//! and answered. An adapter brings an operation, parameters and a payload, and takes the answer away.

use omir_core::reference::Ref;
use omir_core::value::{Map, Value};

use super::Engine;
use super::asked::{self, Named, Parameters};
use super::command::{Change, Receipt};
use super::compaction::{Compaction, Scope};
use super::export::Export;
use super::importing::ImportPermit;
use super::merge::Precedence;
use super::precondition::Precondition;
use super::request::Encoding;
use super::sweep::SweepReport;
use super::view::Recall;
use crate::error::{Code, Error};
use crate::recall::parameters;
use crate::recall::query::Query;

/// What can be asked of the memory. `status` and `backup` are asked of the daemon that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of docs/keys.md")]
pub enum Operation {
    Remember,
    Recall,
    Forget,
    Anchor,
    Feedback,
    Export,
    Compact,
    Sweep,
    Explain,
    Rebase,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Remember,
        Self::Recall,
        Self::Forget,
        Self::Anchor,
        Self::Feedback,
        Self::Export,
        Self::Compact,
        Self::Sweep,
        Self::Explain,
        Self::Rebase,
    ];

    /// The name in `docs/keys.md`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Remember => "remember",
            Self::Recall => "recall",
            Self::Forget => "forget",
            Self::Anchor => "anchor",
            Self::Feedback => "feedback",
            Self::Export => "export",
            Self::Compact => "compact",
            Self::Sweep => "sweep",
            Self::Explain => "explain",
            Self::Rebase => "rebase",
        }
    }

    /// Whether it changes something (invariant 12 of ARCHITECTURE.md). A recall does not, although it counts accesses. A
    /// sweep does, also one with `dryRun`.
    pub fn changes(self) -> bool {
        match self {
            Self::Remember
            | Self::Forget
            | Self::Anchor
            | Self::Feedback
            | Self::Compact
            | Self::Sweep
            | Self::Rebase => true,
            Self::Recall | Self::Export | Self::Explain => false,
        }
    }

    /// Whether a thread of the engine works on it, so that [`Engine::serve`] hands it over and returns. The others
    /// are worked on where they are served.
    pub fn is_handed_over(self) -> bool {
        match self {
            Self::Remember
            | Self::Forget
            | Self::Anchor
            | Self::Feedback
            | Self::Compact
            | Self::Rebase => true,
            Self::Recall | Self::Export | Self::Sweep | Self::Explain => false,
        }
    }
}

/// What comes with an operation.
#[derive(Debug, Default)]
pub struct Asked {
    /// By name. They win over members of the payload that are called the same.
    pub parameters: Parameters,
    /// Beside them.
    pub payload: Payload,
    /// The permit for a payload to be merged, where [`Engine::admit`] gave one.
    pub permit: Option<ImportPermit>,
    /// Bytes that it came in, which count as waiting until it is made.
    pub bytes: usize,
    /// Bytes that an answer may have, where whoever takes it knows a bound.
    pub most: Option<u64>,
}

impl Asked {
    /// The parameters, and those members of the payload that none of them names.
    ///
    /// # Errors
    /// `INVALID_QUERY` if the payload is not one of members.
    pub fn into_parameters(self) -> Result<Parameters, Error> {
        let mut all = self.parameters;
        if let Some(members) = self.payload.members()? {
            for (name, value) in parameters::from_payload(&members)? {
                if !all.iter().any(|(known, _)| *known == name) {
                    all.push((name, value));
                }
            }
        }
        Ok(all)
    }
}

/// What an operation comes with besides parameters.
#[derive(Debug, Default)]
pub enum Payload {
    /// Nothing.
    #[default]
    None,
    /// Resources, for `remember`.
    Resources(Vec<u8>, Encoding),
    /// Members that are parameters as well; for `rebase` the keyframes.
    Members(Value),
}

impl Payload {
    fn members(self) -> Result<Option<Value>, Error> {
        match self {
            Self::None => Ok(None),
            Self::Members(members) => Ok(Some(members)),
            Self::Resources(..) => {
                let message = "only `remember` takes resources";
                Err(Error::new(Code::InvalidQuery, message))
            }
        }
    }
}

/// What was done, or found.
#[derive(Debug)]
pub enum Answer {
    /// A change.
    Receipt(Receipt),
    /// Hits.
    Recall(Recall),
    /// A Bundle.
    Export(Export),
    /// Segments that were rewritten.
    Compaction(Compaction),
    /// What time had done, or would.
    Sweep(SweepReport),
    /// Why something is as it is.
    Explanation(Value),
}

impl Answer {
    /// As `docs/replies.md` has it.
    ///
    /// # Errors
    /// `INTERNAL` if something that is stored cannot be read.
    pub fn into_value(self) -> Result<Value, Error> {
        Ok(match self {
            Self::Receipt(receipt) => receipt.to_value(),
            Self::Recall(recall) => recall.to_value()?,
            Self::Export(export) => export.to_value(),
            Self::Compaction(compaction) => compaction.to_value(),
            Self::Sweep(report) => report.to_value(),
            Self::Explanation(value) => value,
        })
    }

    /// The same as bytes. Hits go into CBOR as they are stored.
    ///
    /// # Errors
    /// As [`Answer::into_value`].
    pub fn encode(self, encoding: Encoding) -> Result<Vec<u8>, Error> {
        match (self, encoding) {
            (Self::Recall(recall), Encoding::Cbor) => Ok(recall.to_cbor()),
            (answer, encoding) => answer.into_value().map(|value| encoding.encode(&value)),
        }
    }

    /// What is missing in a Bundle, if anything is.
    pub fn left_out(&self) -> Option<Value> {
        match self {
            Self::Export(export) => export.left_out().to_value(),
            _ => None,
        }
    }
}

/// An operation that was understood.
enum Deed {
    Change(Change),
    Recall(Query),
    Export(Query, Option<u64>),
    Compact(Scope),
    Sweep { dry_run: bool },
    Explain(Ref),
}

impl Engine {
    /// Carries out an operation. `reply` is called once: by what [`Reply`](super::command::Reply) says where the
    /// operation [is handed over](Operation::is_handed_over), else before this returns.
    pub fn serve(
        &self,
        operation: Operation,
        asked: Asked,
        reply: impl FnOnce(Result<Answer, Error>) + Send + 'static,
    ) {
        let bytes = asked.bytes;
        match self.read(operation, asked) {
            Err(error) => reply(Err(error)),
            Ok(Deed::Change(change)) => {
                let reply = |receipt: Result<_, _>| reply(receipt.map(Answer::Receipt));
                self.submit(change, bytes, Box::new(reply));
            }
            Ok(Deed::Compact(scope)) => {
                let reply = |done: Result<_, _>| reply(done.map(Answer::Compaction));
                self.request_compaction(scope, Box::new(reply));
            }
            Ok(Deed::Recall(query)) => reply(self.recall(&query).map(Answer::Recall)),
            Ok(Deed::Export(query, most)) => {
                let export = match most {
                    None => self.export(&query),
                    Some(most) => self.export_within(&query, most),
                };
                reply(export.map(Answer::Export));
            }
            Ok(Deed::Sweep { dry_run }) => reply(self.sweep(dry_run).map(Answer::Sweep)),
            Ok(Deed::Explain(target)) => reply(self.explain(&target).map(Answer::Explanation)),
        }
    }

    /// As [`Engine::serve`], and waits for the answer.
    ///
    /// # Errors
    /// Those of the operation in `docs/keys.md`.
    pub fn ask(&self, operation: Operation, asked: Asked) -> Result<Answer, Error> {
        let (tell, told) = crossbeam_channel::bounded(1);
        self.serve(operation, asked, move |answer| {
            // Whoever asks waits for it.
            let _ = tell.send(answer);
        });
        told.recv().unwrap_or_else(|_| Err(super::unanswered()))
    }

    fn read(&self, operation: Operation, asked: Asked) -> Result<Deed, Error> {
        let most = asked.most;
        Ok(match operation {
            Operation::Remember => Deed::Change(self.read_remember(asked)?),
            Operation::Rebase => Deed::Change(self.read_rebase(asked)?),
            Operation::Recall => {
                Deed::Recall(self.query(Query::default(), &asked.into_parameters()?)?)
            }
            Operation::Export => {
                Deed::Export(self.query(Query::everything(), &asked.into_parameters()?)?, most)
            }
            Operation::Forget => Deed::Change(asked::forget(asked.into_parameters()?)?),
            Operation::Anchor => Deed::Change(asked::anchor(asked.into_parameters()?)?),
            Operation::Feedback => Deed::Change(asked::feedback(asked.into_parameters()?)?),
            Operation::Compact => Deed::Compact(asked::compact(asked.into_parameters()?)?),
            Operation::Sweep => Deed::Sweep { dry_run: asked::sweep(asked.into_parameters()?)? },
            Operation::Explain => Deed::Explain(asked::explain(asked.into_parameters()?)?),
        })
    }

    fn read_remember(&self, asked: Asked) -> Result<Change, Error> {
        let mut named = Named::new(asked.parameters);
        let precedence = named.take("merge").map(|text| Precedence::parse(&text)).transpose()?;
        let precondition = Precondition::take(&mut named)?;
        named.finish("merge, ifAbsent, ifVersion; the resource goes into the payload")?;
        if precedence.is_some() && precondition != Precondition::None {
            let message =
                "goes without `ifAbsent` and `ifVersion`: a merge decides by what both sides state";
            return Err(Error::query("merge", message));
        }
        let Payload::Resources(bytes, encoding) = asked.payload else {
            return Err(Error::new(
                Code::InvalidResource,
                "there is no payload: send a resource, an array of resources, or a Bundle",
            ));
        };
        match precedence {
            None => Ok(self.prepare(&bytes, encoding, None)?.only_if(precondition)),
            Some(precedence) => self.prepare_admitted(asked.permit, &bytes, encoding, precedence),
        }
    }

    /// Its parameters may stand among the members, as those of all others do.
    fn read_rebase(&self, asked: Asked) -> Result<Change, Error> {
        let Asked { parameters, payload, .. } = asked;
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
        let parameters = Asked { parameters, payload, ..Asked::default() }.into_parameters()?;
        self.rebase(parameters, members.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use omir_core::decode::Limits;
    use omir_core::json;

    use super::*;

    fn engine() -> (tempfile::TempDir, Engine) {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(crate::testing::parts(dir.path()), &mut |_| {}).unwrap();
        (dir, engine)
    }

    fn parameters(text: &str) -> Parameters {
        let pair = |part: &str| {
            let (name, value) = part.split_once('=').unwrap();
            (name.to_owned(), value.to_owned())
        };
        text.split(';').filter(|part| !part.is_empty()).map(pair).collect()
    }

    fn members(text: &str) -> Payload {
        Payload::Members(json::from_slice(text.as_bytes(), &Limits::default()).unwrap())
    }

    fn asked(engine: &Engine, operation: Operation, asked: Asked) -> Result<String, Error> {
        let bytes = engine.ask(operation, asked)?.encode(Encoding::Json)?;
        Ok(String::from_utf8(bytes).unwrap())
    }

    fn remembered(engine: &Engine, text: &str, more: &str) -> Result<String, Error> {
        let payload = Payload::Resources(text.into(), Encoding::Json);
        let parameters = parameters(more);
        asked(engine, Operation::Remember, Asked { parameters, payload, ..Asked::default() })
    }

    const DOOR: &str = r#"{"resourceType":"MemoryRecord","id":"a","content":"a door"}"#;

    #[test]
    fn each_operation_is_answered() {
        let (_dir, engine) = engine();
        let stored = remembered(&engine, DOOR, "").unwrap();
        assert!(stored.contains(r#""ref":"MemoryRecord/a""#), "{stored}");
        for (operation, text, expected) in [
            (Operation::Remember, "", "there is no payload"),
            (Operation::Recall, "q=door", r#""total":1"#),
            (Operation::Anchor, "ref=MemoryRecord/a", r#""anchored":true"#),
            (Operation::Feedback, "ref=MemoryRecord/a;outcome=confirmed", r#""calibrated":"#),
            (Operation::Export, "", r#""resourceType":"Bundle""#),
            (Operation::Compact, "scope=all", r#""segments"#),
            (Operation::Sweep, "dryRun=true", r#""dryRun":true"#),
            (Operation::Explain, "ref=MemoryRecord/a", r#""retrievability""#),
            (Operation::Rebase, "undo=MemoryRecord/none", "MemoryRecord/none"),
            (Operation::Forget, "ref=MemoryRecord/a", r#""forgotten":1"#),
        ] {
            let asked_for = Asked { parameters: parameters(text), ..Asked::default() };
            let answer = asked(&engine, operation, asked_for);
            let answer = answer.unwrap_or_else(|error| error.to_string());
            assert!(answer.contains(expected), "{}: {answer}", operation.as_str());
        }
        engine.stop();
    }

    #[test]
    fn members_are_parameters_and_parameters_win() {
        let (_dir, engine) = engine();
        remembered(&engine, DOOR, "").unwrap();
        let recalled = |text: &str, payload: &str| {
            let (parameters, payload) = (parameters(text), members(payload));
            asked(&engine, Operation::Recall, Asked { parameters, payload, ..Asked::default() })
                .unwrap()
        };
        assert!(recalled("", r#"{"q":"window"}"#).contains(r#""total":0"#));
        assert!(recalled("q=door", r#"{"q":"window"}"#).contains(r#""total":1"#));
        engine.stop();
    }

    #[test]
    fn a_rebase_may_have_its_parameters_among_the_keyframes() {
        let (_dir, engine) = engine();
        let rebase = |text: &str, payload: Payload| {
            let parameters = parameters(text);
            asked(&engine, Operation::Rebase, Asked { parameters, payload, ..Asked::default() })
        };
        let keyframes = r#""keyframes":{"kf_1":{"position":[1,0,0]}}"#;
        let told = rebase("", members(&format!(r#"{{{keyframes},"dryRun":true}}"#))).unwrap();
        assert!(told.contains(r#""untied":1"#) && !told.contains(r#""ref""#), "{told}");
        assert_eq!(rebase("dryRun=true", members(&format!("{{{keyframes}}}"))).unwrap(), told);
        let error = rebase("", members(r#"{"undo":"MemoryRecord/none"}"#)).unwrap_err();
        assert_eq!(error.code, Code::NotFound, "{error}");
        let both = members(&format!(r#"{{{keyframes},"undo":"MemoryRecord/none"}}"#));
        assert_eq!(rebase("", both).unwrap_err().path, "/undo");
        let error = rebase("", members("[1]")).unwrap_err();
        assert!(error.message.contains("keyframes"), "{error}");
        engine.stop();
    }

    #[test]
    fn only_remember_takes_resources() {
        let (_dir, engine) = engine();
        for operation in Operation::ALL {
            if operation != Operation::Remember {
                let payload = Payload::Resources(DOOR.into(), Encoding::Json);
                let error = engine.ask(operation, Asked { payload, ..Asked::default() });
                assert_eq!(error.unwrap_err().code, Code::InvalidQuery, "{}", operation.as_str());
            }
        }
        let error = remembered(&engine, DOOR, "merge=never").unwrap_err();
        assert_eq!((error.code, &*error.path), (Code::InvalidQuery, "/merge"));
        engine.stop();
    }
}
