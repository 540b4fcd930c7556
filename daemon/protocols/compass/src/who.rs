//! Callers: the agents that a caller speaks as, and what the message says of the conversation it belongs to.

use std::sync::Arc;

use omir_core::value::{Map, Value};
use omird_router::{Caller, Scope};

use crate::failure::Failure;
use crate::model::Similarity;
use crate::params::Params;

/// Own memories.
pub const AGENT: Scope = Scope("compass:agent");
/// Memories of all agents that the token names, and interventions.
pub const ACE: Scope = Scope("compass:ace");
/// Everything, and forgetting.
pub const OPERATOR: Scope = Scope("compass:operator");

/// The caller.
#[derive(Debug, Clone)]
pub(crate) struct Who {
    tenant: String,
    /// The agents of the token, the first one its own.
    agents: Arc<[Arc<str>]>,
    is_ace: bool,
    is_operator: bool,
    is_agent: bool,
    /// The caller has a token, which says for which agents it speaks. Without one, the network decided which callers
    /// get here.
    has_token: bool,
    context: Conversation,
}

/// The member `a2a_context` of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Conversation {
    /// The name of the trace; made up where there is none.
    pub(crate) trace_id: String,
    /// The agent that asks, where the token does not say.
    pub(crate) source_agent: Option<String>,
}

impl Conversation {
    /// Reads it from the members beside a call. `trace` is the name that the transport knows; `new` makes one.
    pub(crate) fn of(
        beside: &Map,
        trace: Option<&str>,
        new: impl FnOnce() -> String,
    ) -> Result<Self, Failure> {
        let mut outer = Params::new(beside);
        let mut said = Self::default();
        let mut trace_id = None;
        if let Some(mut inner) = outer.object("a2a_context")? {
            trace_id = inner.id("trace_id")?.map(str::to_owned);
            said.source_agent = inner.id("source_agent")?.map(str::to_owned);
            for name in ["target_agent", "session_id", "conversation_id", "timestamp"] {
                inner.text(name)?;
            }
        }
        said.trace_id = trace_id.or_else(|| trace.map(str::to_owned)).unwrap_or_else(new);
        Ok(said)
    }
}

impl Who {
    /// Returns the rights of a caller and a request.
    pub(crate) fn new(caller: &Caller, context: Conversation) -> Self {
        Self {
            tenant: caller.tenant_name().to_owned(),
            agents: caller.agents.clone(),
            is_ace: caller.scopes.hold(ACE),
            is_operator: caller.scopes.hold(OPERATOR),
            is_agent: caller.scopes.hold(AGENT),
            has_token: caller.has_token,
            context,
        }
    }

    /// Returns the part of the memory that is the caller's.
    pub(crate) fn tenant(&self) -> &str {
        &self.tenant
    }

    /// Returns the name of the trace.
    pub(crate) fn trace_id(&self) -> &str {
        &self.context.trace_id
    }

    /// Refuses callers that are no operators.
    pub(crate) fn check_operator(&self, what: &str) -> Result<(), Failure> {
        if self.is_operator {
            return Ok(());
        }
        Err(Failure::unauthorized(format!(
            "{what} needs the scope compass:operator, which the caller does not hold"
        )))
    }

    /// Returns true if the caller may speak for this agent. One without a token speaks as the agent that the message
    /// names; a token speaks for the agents that it names.
    pub(crate) fn may(&self, agent: &str) -> bool {
        let is = |own: &Arc<str>| **own == *agent;
        self.is_operator
            || self.agents.is_empty() && !self.has_token
            || self.is_ace && self.agents.iter().any(is)
            || self.is_agent && self.agents.first().is_some_and(is)
    }

    /// Returns the agent of the token, or of the message.
    pub(crate) fn own(&self) -> Option<&str> {
        self.agents.first().map(|agent| &**agent).or(self.context.source_agent.as_deref())
    }

    /// Returns the agent that the parameters name, else the caller's own.
    pub(crate) fn agent(&self, params: &mut Params<'_>) -> Result<String, Failure> {
        let named = params.id("agent_id")?;
        let agent = match named.or(self.own()) {
            Some(agent) => agent,
            None => {
                let message = "agent_id: is required, because the token names no agent";
                return Err(Failure::params(params.path("agent_id"), message));
            }
        };
        if self.may(agent) {
            return Ok(agent.to_owned());
        }
        let message = if self.agents.is_empty() {
            "the token speaks for no agent; `omir token add NAME --scope compass:agent --agent ID` makes one that does"
                .to_owned()
        } else {
            format!("the caller may not speak for the agent {agent:?}; compass:ace with it may")
        };
        Err(Failure::unauthorized(message))
    }

    /// Adds the trace and the agent to an error.
    pub(crate) fn note_in(&self, data: &mut Map) {
        data.insert("trace_id", self.trace_id());
        if let Some(agent) = self.own() {
            data.insert("agent_id", agent);
        }
    }

    /// Returns the member `meta` of a result.
    pub(crate) fn meta(
        &self,
        agent: Option<&str>,
        took_ms: f64,
        cost_usd: f64,
        degraded: bool,
        similarity: Option<Similarity>,
    ) -> Value {
        let mut meta = Map::new();
        meta.insert("trace_id", self.trace_id());
        meta.insert("agent_id", agent.or(self.own()));
        meta.insert("took_ms", took_ms);
        meta.insert("cost_usd", cost_usd);
        meta.insert("degraded", degraded);
        if let Some(similarity) = similarity {
            meta.insert("similarity", similarity.as_str());
        }
        Value::Object(meta)
    }
}

#[cfg(test)]
mod tests {
    use omird_router::{Caller, Scopes};

    use super::*;

    fn who(scopes: &[Scope], agents: &[&str]) -> Who {
        let agents = agents.iter().map(|agent| Arc::from(*agent)).collect();
        let scopes = Scopes::only(scopes);
        let caller = Caller { scopes, agents, has_token: true, ..Caller::trusted("test", "t") };
        Who::new(&caller, Conversation { trace_id: "x".to_owned(), source_agent: None })
    }

    #[test]
    fn each_caller_speaks_for_whom_it_may() {
        let agent = who(&[AGENT], &["a1", "a2"]);
        let ace = who(&[ACE], &["a1", "a2"]);
        let operator = who(&[OPERATOR], &["a1"]);
        let nobody = who(&[AGENT], &[]);
        let anyone = Who { has_token: false, ..nobody.clone() };
        let nobody_as_ace = who(&[ACE], &[]);
        let of = |who: &Who| ["a1", "a2", "a3"].map(|agent| who.may(agent));
        assert_eq!(of(&agent), [true, false, false]);
        assert_eq!(of(&ace), [true, true, false]);
        assert_eq!(of(&operator), [true; 3]);
        assert_eq!(of(&nobody), [false; 3], "the token names no agent");
        assert_eq!(of(&nobody_as_ace), [false; 3]);
        assert_eq!(of(&anyone), [true; 3], "whom the message names");
        assert!(ace.check_operator("x").is_err() && operator.check_operator("x").is_ok());
    }

    #[test]
    fn the_agent_is_the_one_that_is_named_or_the_own_one() {
        let named = |agent: Option<&str>, who: &Who| {
            let mut map = Map::new();
            map.insert("agent_id", agent);
            who.agent(&mut Params::new(&map)).map_err(|failure| failure.error.code)
        };
        assert_eq!(named(None, &who(&[AGENT], &["a1"])), Ok("a1".to_owned()));
        assert_eq!(named(Some("a2"), &who(&[AGENT], &["a1"])), Err(-32104));
        assert_eq!(named(Some("a2"), &who(&[ACE], &["a1", "a2"])), Ok("a2".to_owned()));
        assert_eq!(named(None, &who(&[AGENT], &[])), Err(-32602));
        let mut said = Who { has_token: false, ..who(&[AGENT], &[]) };
        said.context.source_agent = Some("a9".to_owned());
        assert_eq!(named(None, &said), Ok("a9".to_owned()));
        said.has_token = true;
        assert_eq!(named(None, &said), Err(-32104), "a token says whom it speaks for");
    }

    #[test]
    fn a_conversation_has_a_trace() {
        let of = |beside: &Map, header| Conversation::of(beside, header, || "made".to_owned());
        let mut context = Map::new();
        context.insert("trace_id", "x-1");
        context.insert("source_agent", "a1");
        let mut beside = Map::new();
        assert_eq!(of(&beside, None).unwrap().trace_id, "made");
        assert_eq!(of(&beside, Some("h")).unwrap().trace_id, "h");
        beside.insert("a2a_context", context);
        let said = of(&beside, Some("h")).unwrap();
        assert_eq!((&*said.trace_id, said.source_agent.as_deref()), ("x-1", Some("a1")));
        beside.insert("a2a_context", 7);
        let path = of(&beside, None).unwrap_err().error.data;
        assert_eq!(path.get("path"), Some(&"/a2a_context".into()));
    }
}
