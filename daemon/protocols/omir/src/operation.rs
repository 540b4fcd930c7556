//! The operations of `docs/keys.md`: what was asked is read here, worked on, and answered.

use omir_core::reference::Ref;
use omir_core::value::{Map, Value};

use super::methods;
use super::params::{self, Named, Parameters};
use super::{Omir, worded};
use omird_engine::command::{Change, Receipt};
use omird_engine::compaction::{Compaction, Scope};
use omird_engine::error::{Code, Error};
use omird_engine::export::Export;
use omird_engine::merge::Precedence;
use omird_engine::precondition::Precondition;
use omird_engine::recall::parameters;
use omird_engine::recall::query::Query;
use omird_engine::request::Encoding;
use omird_engine::sweep::SweepReport;
use omird_engine::{Recall, unanswered};
use omird_router::{Admitted, Method};

/// An operation. Over Zenoh each has a key of its own.
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
    Status,
    Backup,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 12] = [
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
        Self::Status,
        Self::Backup,
    ];

    /// Returns its row in the table of methods.
    pub fn method(self) -> &'static Method {
        match self {
            Self::Remember => &methods::REMEMBER,
            Self::Recall => &methods::RECALL,
            Self::Forget => &methods::FORGET,
            Self::Anchor => &methods::ANCHOR,
            Self::Feedback => &methods::FEEDBACK,
            Self::Export => &methods::EXPORT,
            Self::Compact => &methods::COMPACT,
            Self::Sweep => &methods::SWEEP,
            Self::Explain => &methods::EXPLAIN,
            Self::Rebase => &methods::REBASE,
            Self::Status => &methods::STATUS,
            Self::Backup => &methods::BACKUP,
        }
    }

    /// Returns the operation of a row, if the row is of one.
    pub fn of(method: &Method) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.method() == method)
    }

    /// The name in `docs/keys.md`.
    pub fn as_str(self) -> &'static str {
        self.method().name
    }

    /// Returns true if a thread of the engine works on it, so that [`Omir::serve`] hands it over and returns. The
    /// others are worked on where they are served.
    pub fn is_handed_over(self) -> bool {
        match self {
            Self::Remember
            | Self::Forget
            | Self::Anchor
            | Self::Feedback
            | Self::Compact
            | Self::Rebase => true,
            Self::Recall
            | Self::Export
            | Self::Sweep
            | Self::Explain
            | Self::Status
            | Self::Backup => false,
        }
    }
}

/// The payload of an operation.
#[derive(Debug, Default)]
pub struct Params {
    /// By name. They win over members of the payload that are called the same.
    pub parameters: Parameters,
    /// Beside them.
    pub payload: Payload,
}

impl Params {
    /// Returns the parameters, and those members of the payload that none of them names.
    ///
    /// # Errors
    /// `INVALID_QUERY` if the payload is not one of members.
    fn merged(self) -> Result<Parameters, Error> {
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

/// The result of an operation.
#[derive(Debug)]
pub enum Response {
    /// A change.
    Receipt(Receipt),
    /// Hits.
    Recall(Recall),
    /// A Bundle.
    Export(Export),
    /// Segments that were rewritten.
    Compaction(Compaction),
    /// The changes a sweep made, or would make.
    Sweep(SweepReport),
    /// Why something is as it is.
    Explanation(Value),
    /// The state of the daemon.
    Status(Value),
    /// The segments there are.
    Backup(Value),
    /// Bytes of a segment.
    Piece(Vec<u8>),
}

/// A response as bytes.
#[derive(Debug)]
pub struct Encoded {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Their encoding; `None` if they are octets of a file.
    pub encoding: Option<Encoding>,
    /// The resources left out of a Bundle, if any.
    pub left_out: Option<Value>,
}

impl Response {
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
            Self::Explanation(value) | Self::Status(value) | Self::Backup(value) => value,
            Self::Piece(_) => {
                let message = "a piece of a segment is bytes, and no value";
                return Err(Error::new(Code::InvalidQuery, message));
            }
        })
    }

    /// The same as bytes. Hits go into CBOR as they are stored.
    ///
    /// # Errors
    /// `INTERNAL` if something that is stored cannot be read.
    pub fn encode(self, encoding: Encoding) -> Result<Encoded, Error> {
        let left_out = self.left_out();
        let bytes = match (self, encoding) {
            (Self::Piece(bytes), _) => {
                return Ok(Encoded { bytes, encoding: None, left_out });
            }
            (Self::Recall(recall), Encoding::Cbor) => recall.to_cbor(),
            (response, encoding) => encoding.encode(&response.into_value()?),
        };
        Ok(Encoded { bytes, encoding: Some(encoding), left_out })
    }

    /// The resources left out of a Bundle, if any.
    pub fn left_out(&self) -> Option<Value> {
        match self {
            Self::Export(export) => export.left_out().to_value(),
            _ => None,
        }
    }
}

/// An operation that was understood.
enum Command {
    Change(Change),
    Recall(Query),
    Export(Query),
    Compact(Scope),
    Sweep { dry_run: bool },
    Explain(Ref),
    Status,
    Backup(params::Backup),
}

impl Omir {
    /// Carries out an operation. `shape` makes of the response what the transport sends, and may fail too; `reply` is
    /// called once with that, by what [`Reply`](omird_engine::command::Reply) says where the operation
    /// [is handed over](Operation::is_handed_over), else before this returns.
    pub fn serve<T>(
        &self,
        mut admitted: Admitted,
        params: Params,
        shape: impl FnOnce(Response) -> Result<T, Error> + Send + 'static,
        reply: impl FnOnce(Result<T, Error>) + Send + 'static,
    ) {
        let bytes = admitted.bytes();
        let command = self.read(&mut admitted, params);
        let most = admitted.reply_bytes();
        let answer = move |response: Result<Response, Error>| {
            let shaped = response.and_then(shape);
            admitted.finish(&shaped);
            reply(shaped);
        };
        let engine = &self.engine;
        match command {
            Err(error) => answer(Err(error)),
            Ok(Command::Change(change)) => {
                let reply = |receipt: Result<_, _>| answer(receipt.map(Response::Receipt));
                engine.submit(change, bytes, Box::new(reply));
            }
            Ok(Command::Compact(scope)) => {
                let reply = |done: Result<_, _>| answer(done.map(Response::Compaction));
                engine.request_compaction(scope, Box::new(reply));
            }
            Ok(Command::Recall(query)) => answer(engine.recall(&query).map(Response::Recall)),
            Ok(Command::Export(query)) => {
                let export = match most {
                    None => engine.export(&query),
                    Some(most) => engine.export_within(&query, most),
                };
                answer(export.map(Response::Export));
            }
            Ok(Command::Sweep { dry_run }) => answer(engine.sweep(dry_run).map(Response::Sweep)),
            Ok(Command::Explain(target)) => {
                answer(engine.explain(&target).map(Response::Explanation));
            }
            Ok(Command::Status) => answer(Ok(Response::Status(engine.status(&self.robot)))),
            Ok(Command::Backup(params::Backup::List)) => {
                let offer = engine.offer_backup(&self.robot);
                answer(offer.map(|offer| Response::Backup(offer.to_value())));
            }
            Ok(Command::Backup(params::Backup::Piece { segment, offset, length })) => {
                answer(engine.segment_piece(segment, offset, length).map(Response::Piece));
            }
        }
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
            // Whoever asks waits for it.
            let _ = tell.send(answer);
        });
        told.recv().unwrap_or_else(|_| Err(unanswered()))
    }

    fn read(&self, admitted: &mut Admitted, params: Params) -> Result<Command, Error> {
        let Some(operation) = Operation::of(admitted.method()) else {
            let message = format!("{} is no operation", admitted.method().name);
            return Err(Error::new(Code::Internal, message));
        };
        let engine = &self.engine;
        Ok(match operation {
            Operation::Remember => Command::Change(self.read_remember(admitted, params)?),
            Operation::Rebase => Command::Change(self.read_rebase(params)?),
            Operation::Recall => {
                Command::Recall(engine.query(Query::default(), &params.merged()?)?)
            }
            Operation::Export => {
                Command::Export(engine.query(Query::everything(), &params.merged()?)?)
            }
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
                Named::new(params.merged()?).finish("format")?;
                Command::Status
            }
            Operation::Backup => Command::Backup(params::backup(params.parameters)?),
        })
    }

    fn read_remember(&self, admitted: &mut Admitted, params: Params) -> Result<Change, Error> {
        let mut named = Named::new(params.parameters);
        let precedence = named.take("merge").map(|text| Precedence::parse(&text)).transpose()?;
        let precondition = Precondition::take(&mut named)?;
        named.finish("merge, ifAbsent, ifVersion; the resource goes into the payload")?;
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
        self.engine.rebase(parameters, members.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use omir_core::decode::Limits;
    use omir_core::json;

    use super::*;
    use omird_engine::Engine;
    use omird_router::{Caller, Incoming, Refusal, Router};

    /// The protocol, and a router before it.
    struct Protocols {
        router: Router,
        omir: Omir,
    }

    impl Protocols {
        fn over(engine: &Engine) -> Self {
            Self { router: Router::new(engine.clone()), omir: Omir::new(engine.clone(), "r1") }
        }
    }

    fn protocols() -> (tempfile::TempDir, Engine, Protocols) {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(crate::testing::parts(dir.path()), &mut |_| {}).unwrap();
        let all = Protocols::over(&engine);
        (dir, engine, all)
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

    fn asked(all: &Protocols, operation: Operation, params: Params) -> Result<String, Error> {
        let caller = Caller::trusted("test");
        let admitted = all.router.admit(&caller, operation.method(), Incoming::default());
        let shape = |response: Response| response.encode(Encoding::Json);
        let encoded = all.omir.ask(admitted.map_err(worded)?, params, shape)?;
        Ok(String::from_utf8(encoded.bytes).unwrap())
    }

    fn remembered(all: &Protocols, text: &str, more: &str) -> Result<String, Error> {
        let payload = Payload::Resources(text.into(), Encoding::Json);
        asked(all, Operation::Remember, Params { parameters: parameters(more), payload })
    }

    const DOOR: &str = r#"{"resourceType":"MemoryRecord","id":"a","content":"a door"}"#;

    #[test]
    fn each_operation_is_answered() {
        let (_dir, engine, all) = protocols();
        let stored = remembered(&all, DOOR, "").unwrap();
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
            (Operation::Status, "", r#""readOnly":false"#),
            (Operation::Status, "how=well", "unknown parameter `how`"),
            (Operation::Backup, "", r#""segments""#),
            (Operation::Backup, "segment=1;length=9000000", "more than 1048576 bytes"),
            (Operation::Forget, "ref=MemoryRecord/a", r#""forgotten":1"#),
        ] {
            let params = Params { parameters: parameters(text), ..Params::default() };
            let answer = asked(&all, operation, params);
            let answer = answer.unwrap_or_else(|error| error.to_string());
            assert!(answer.contains(expected), "{}: {answer}", operation.as_str());
        }
        engine.stop();
    }

    #[test]
    fn members_are_parameters_and_parameters_win() {
        let (_dir, engine, all) = protocols();
        remembered(&all, DOOR, "").unwrap();
        let recalled = |text: &str, payload: &str| {
            let (parameters, payload) = (parameters(text), members(payload));
            asked(&all, Operation::Recall, Params { parameters, payload }).unwrap()
        };
        assert!(recalled("", r#"{"q":"window"}"#).contains(r#""total":0"#));
        assert!(recalled("q=door", r#"{"q":"window"}"#).contains(r#""total":1"#));
        engine.stop();
    }

    #[test]
    fn a_rebase_may_have_its_parameters_among_the_keyframes() {
        let (_dir, engine, all) = protocols();
        let rebase = |text: &str, payload: Payload| {
            let parameters = parameters(text);
            asked(&all, Operation::Rebase, Params { parameters, payload })
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
        let (_dir, engine, all) = protocols();
        for operation in Operation::ALL {
            // A backup passes a payload over.
            if !matches!(operation, Operation::Remember | Operation::Backup) {
                let payload = Payload::Resources(DOOR.into(), Encoding::Json);
                let error = asked(&all, operation, Params { payload, ..Params::default() });
                assert_eq!(error.unwrap_err().code, Code::InvalidQuery, "{}", operation.as_str());
            }
        }
        let error = remembered(&all, DOOR, "merge=never").unwrap_err();
        assert_eq!((error.code, &*error.path), (Code::InvalidQuery, "/merge"));
        engine.stop();
    }

    /// A dry run changes nothing, and a backup has segments made of what there is.
    #[test]
    fn a_read_only_memory_is_read_swept_dry_and_backed_up() {
        let dir = tempfile::tempdir().unwrap();
        let mut parts = crate::testing::parts(dir.path());
        parts.settings.read_only = true;
        let engine = Engine::open(parts, &mut |_| {}).unwrap();
        let all = Protocols::over(&engine);
        for operation in Operation::ALL {
            let is_refused = |text: &str| {
                let params = Params { parameters: parameters(text), ..Params::default() };
                match asked(&all, operation, params) {
                    Err(error) => error.code == Code::Unauthorized,
                    Ok(_) => false,
                }
            };
            let reads = matches!(
                operation,
                Operation::Recall
                    | Operation::Export
                    | Operation::Explain
                    | Operation::Status
                    | Operation::Backup
            );
            assert_eq!(is_refused(""), !reads, "{}", operation.as_str());
            if operation == Operation::Sweep {
                assert!(!is_refused("dryRun=true"));
            }
        }
        engine.stop();
    }

    /// The permit of a large import goes back when its request is over.
    #[test]
    fn one_large_import_is_let_in_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let mut parts = crate::testing::parts(dir.path());
        parts.settings.limits.max_payload_bytes = 1000;
        let engine = Engine::open(parts, &mut |_| {}).unwrap();
        let router = Router::new(engine.clone());
        let large = Incoming { bytes: 1001, merges: true, ..Incoming::default() };
        let caller = Caller::trusted("a");
        let admit = || router.admit(&caller, Operation::Remember.method(), large);
        let first = admit().unwrap();
        assert_eq!(admit().map(Admitted::done), Err(Refusal::ImportUnderWay));
        first.done();
        admit().unwrap().done();
        engine.stop();
    }
}
