//! The methods that need no store: proofs, traces, and the judgement of an Authority.

use omir_core::manifesto::{
    self as core, AttachFault, Fault, MAX_SELECTED, Method, Policy, Proof, ProveResult,
    SelectionRequest, Verifier,
};
use omir_core::value::{Map, Value};
use omird_engine::CardState;
use omird_router::worded_for;

use crate::exchange::{Client, Manifesto};
use crate::failure::Failure;
use crate::request::{Request, check_world_id};
use crate::{episode, names};

impl Manifesto {
    /// Answers `prove`: a ProveResult.
    pub(crate) fn prove(&self, request: &mut Request) -> Result<Value, Failure> {
        let mut members = request.members(&["memory", "world", "method", "member"])?;
        let memory = members.object("memory")?;
        sound("/memory", &core::memory_ref(&memory, true))?;
        let world_id = memory.get("worldId").and_then(Value::as_str).unwrap_or_default();
        check_world_id(world_id, "/memory/worldId")?;
        let world = members.world()?;
        let (name, member) = (members.text("method")?, members.text("member")?);
        let method = match &name {
            None => Some(Method::Signature),
            Some(name) => Method::by_name(name),
        };
        if member.is_some() && method != Some(Method::Merkle) {
            return Err(Failure::invalid(
                "/member",
                "only a proof by `merkle` has the path of a member",
            ));
        }
        let Some(method) = method else {
            let error = Some("this verifier does not know the method".to_owned());
            return Ok(ProveResult { valid: false, proof: None, error }.to_value());
        };
        let verifier = Verifier::new(&self.keys, method);
        let verifier = member.as_deref().map_or(verifier, |member| verifier.with_path_of(member));
        Ok(verifier.prove(world_id, &world).to_value())
    }

    /// Answers `verify-proof`: `{"valid": bool}`. Evidence is refused: a caller who has some takes the proof out of it (M-12).
    pub(crate) fn verify_proof(&self, request: &mut Request) -> Result<Value, Failure> {
        let proof = request.members(&["proof"])?.object("proof")?;
        sound("/proof", &core::verification_proof(&proof, true))?;
        let valid = Proof::extract(&proof).is_some_and(|proof| self.keys.verify(&proof));
        Ok(Value::Object([("valid", valid)].into_iter().collect()))
    }

    /// Answers `trace`: a MemoryTrace.
    pub(crate) fn trace(&self, request: &mut Request) -> Result<Value, Failure> {
        let mut members = request.members(&["request", "result"])?;
        let (selection, result) = (members.object("request")?, members.object("result")?);
        bounded("/result", Some(&result))?;
        SelectionRequest::from_value(&selection, &["method", "filter"])
            .map_err(|faults| Failure::of_faults("/request", &faults))?;
        sound("/result", &core::selection_result(&result, true))?;
        if let Some(selector) = selection.get("selector") {
            request.check_actor(selector, "/request/selector")?;
        }
        Ok(core::create(&selection, &result))
    }

    /// Answers `trace/attach`: `{"proposal": Proposal}`, once the trace is recorded where that is asked for.
    pub(crate) fn attach(&self, mut request: Request, client: Client) {
        match self.attached(&mut request) {
            Ok((proposal, None)) => {
                client.finish(request.admitted, Ok((200, attached(proposal, None))))
            }
            Ok((proposal, Some(trace))) => self.record(request, client, proposal, trace),
            Err(failure) => client.finish(request.admitted, Err(failure)),
        }
    }

    /// Returns the new Proposal, and the trace if it is to be recorded.
    fn attached(&self, request: &mut Request) -> Result<(Value, Option<Value>), Failure> {
        let mut members = request.members(&["proposal", "trace", "record"])?;
        let (proposal, trace) = (members.object("proposal")?, members.object("trace")?);
        let record = members.flag("record")?;
        bounded("/trace", Some(&trace))?;
        sound("/trace", &core::memory_trace(&trace, true))?;
        if let Some(selector) = trace.get("selector") {
            request.check_actor(selector, "/trace/selector")?;
        }
        if record {
            let method = request.admitted.method();
            let refused = |refusal| Failure::from(worded_for(refusal, method));
            request.admitted.expect_change().map_err(refused)?;
        }
        let proposal =
            core::attach_to_proposal(&proposal, &trace).map_err(|fault| match &fault {
                AttachFault::Taken => {
                    Failure::conflict("/proposal/trace/context/memory", fault.to_string())
                }
                AttachFault::NoObject(pointer) => {
                    Failure::invalid(format!("/proposal{pointer}"), "expected an object")
                }
            })?;
        Ok((proposal, record.then_some(trace)))
    }

    fn record(&self, request: Request, client: Client, proposal: Value, trace: Value) {
        let prepared =
            names::trace(&self.engine.new_id()).map_err(Failure::from).and_then(|name| {
                let (change, bytes) = self.prepared(vec![episode::of_trace(&name, trace)])?;
                Ok((name, change, bytes))
            });
        let (name, change, bytes) = match prepared {
            Ok(prepared) => prepared,
            Err(failure) => return client.finish(request.admitted, Err(failure)),
        };
        let mut admitted = request.admitted;
        let reply = Box::new(move |result| {
            let ended = match result {
                Ok(receipt) => {
                    admitted.note_receipt(&receipt);
                    Ok((200, attached(proposal, Some(name.to_string()))))
                }
                Err(error) => Err(Failure::from(error)),
            };
            client.finish(admitted, ended);
        });
        self.engine.submit(change, bytes, reply);
    }

    /// Answers `trace/validate`: `{"valid": bool, "errors": [text]}`.
    pub(crate) fn validate(&self, request: &mut Request) -> Result<Value, Failure> {
        let trace = request.members(&["trace"])?.required("trace")?;
        bounded("/trace", Some(&trace))?;
        let faults = core::memory_trace(&trace, false);
        let mut map = Map::new();
        map.insert("valid", faults.is_empty());
        map.insert("errors", faults.iter().map(|fault| fault.text.as_str()).collect::<Value>());
        Ok(Value::Object(map))
    }

    /// Answers `authority/evaluate`: an Evaluation. It has the Proposal and the keys, and looks into nothing else.
    pub(crate) fn evaluate(&self, request: &mut Request) -> Result<Value, Failure> {
        let mut members = request.members(&["proposal", "policy"])?;
        let proposal = members.object("proposal")?;
        let policy = match members.take("policy") {
            None => Policy::default(),
            Some(policy) => Policy::from_value(&policy)
                .map_err(|faults| Failure::of_faults("/policy", &faults))?,
        };
        bounded("/proposal/trace/context/memory", core::get_from_proposal(&proposal))?;
        Ok(core::evaluate(&proposal, &policy, &self.keys))
    }

    /// Answers `keys`: `{"keys": [{"publicKey", "current"}]}`.
    pub(crate) fn list_keys(&self, _: &mut Request) -> Result<Value, Failure> {
        let key = |(public_key, current): (String, bool)| {
            let mut map = Map::new();
            map.insert("publicKey", public_key);
            map.insert("current", current);
            Value::Object(map)
        };
        let keys: Value = self.keys.public_keys().map(key).collect();
        Ok(Value::Object([("keys", keys)].into_iter().collect()))
    }

    /// Answers `health`: `{"status": "ok"|"degraded"}`.
    pub(crate) fn health(&self, _: &mut Request) -> Result<Value, Failure> {
        let status = if self.engine.card_state() == CardState::Ok { "ok" } else { "degraded" };
        Ok(Value::Object([("status", status)].into_iter().collect()))
    }
}

fn attached(proposal: Value, recorded: Option<String>) -> Value {
    let mut map = Map::new();
    map.insert("proposal", proposal);
    if let Some(recorded) = recorded {
        map.insert("recorded", recorded);
    }
    Value::Object(map)
}

fn sound(path: &str, faults: &[Fault]) -> Result<(), Failure> {
    if faults.is_empty() { Ok(()) } else { Err(Failure::of_faults(path, faults)) }
}

/// Refuses a trace with more memories than any selection has: each may cost a signature.
fn bounded(path: &str, trace: Option<&Value>) -> Result<(), Failure> {
    let selected = trace.and_then(|trace| trace.get("selected")?.as_array());
    let count = selected.map_or(0, <[Value]>::len);
    if count <= MAX_SELECTED {
        return Ok(());
    }
    let message = format!("{count} memories are more than the {MAX_SELECTED} of a selection");
    Err(Failure::too_large(&format!("{path}/selected"), message))
}
