//! JSON-RPC 2.0: messages read into calls, and results written as a message. It knows no method and no COMPASS.
//!
//! `rmcp` is linked for `/mcp` and brings messages of JSON-RPC, but only those of the Model Context Protocol: ids without
//! `null`, no batches in the revisions that it writes, and methods as its own enum. So this is the one dispatcher of the
//! daemon for other protocols, over the JSON reader that bounds depth, values and bytes.

use omir_core::decode::{DecodeErrorKind, Limits};
use omir_core::json;
use omir_core::value::{Map, Value};

/// Most members of a batch.
pub(crate) const MOST_IN_BATCH: usize = 32;
/// Bounds of a message beside its bytes: containers in one another, and values in all.
const LIMITS: Limits = Limits { max_bytes: usize::MAX, max_depth: 32, max_items: 100_000 };

/// The text is no JSON.
pub(crate) const PARSE_ERROR: i32 = -32700;
/// The JSON is no request.
pub(crate) const INVALID_REQUEST: i32 = -32600;
/// There is no such method.
pub(crate) const METHOD_NOT_FOUND: i32 = -32601;
/// The parameters do not fit the method.
pub(crate) const INVALID_PARAMS: i32 = -32602;
/// Something failed inside.
pub(crate) const INTERNAL_ERROR: i32 = -32603;

/// The error of a response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcError {
    /// The number that programs go by.
    pub(crate) code: i32,
    /// A sentence for people.
    pub(crate) message: String,
    /// Facts for programs; left out while empty.
    pub(crate) data: Map,
}

impl RpcError {
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: Map::new() }
    }
}

/// A request or notification.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcCall {
    /// The id; `None` makes it a notification, which gets no response.
    pub(crate) id: Option<Value>,
    /// The name of the method.
    pub(crate) method: String,
    /// The parameters: an object or an array, if there are any.
    pub(crate) params: Option<Value>,
    /// The members that JSON-RPC does not know.
    pub(crate) beside: Map,
    /// Bytes of the request as JSON.
    pub(crate) bytes: usize,
}

/// A member of a message: a call, or what is none.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Member {
    /// A call.
    Call(RpcCall),
    /// Not a call: the id as far as it has one, and the fault.
    Faulty(Value, RpcError),
}

/// A message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Incoming {
    /// One member, answered by one response.
    Single(Box<Member>),
    /// At least one member, answered by an array.
    Batch(Vec<Member>),
}

impl Incoming {
    /// Returns the calls in it.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &RpcCall> {
        let members = match self {
            Self::Single(member) => std::slice::from_ref(&**member),
            Self::Batch(members) => members.as_slice(),
        };
        members.iter().filter_map(|member| match member {
            Member::Call(call) => Some(call),
            Member::Faulty(..) => None,
        })
    }
}

/// Reads a message.
///
/// # Errors
/// The message as a whole is none: no JSON, an empty batch, or too large a one.
pub(crate) fn read(body: &[u8]) -> Result<Incoming, RpcError> {
    let value = json::from_slice(body, &LIMITS).map_err(|error| {
        let code = match error.kind {
            DecodeErrorKind::Depth | DecodeErrorKind::TooLarge => INVALID_REQUEST,
            _ => PARSE_ERROR,
        };
        RpcError::new(code, format!("unreadable JSON: {error}"))
    })?;
    match value {
        Value::Array(members) if members.is_empty() => {
            Err(RpcError::new(INVALID_REQUEST, "the batch is empty; send at least one request"))
        }
        Value::Array(members) if members.len() > MOST_IN_BATCH => {
            let count = members.len();
            let message = format!(
                "{count} requests are more than the {MOST_IN_BATCH} of a batch; send several"
            );
            Err(RpcError::new(INVALID_REQUEST, message))
        }
        Value::Array(members) => {
            let sized = |value: Value| {
                let bytes = json::to_string(&value).len();
                member(value, bytes)
            };
            Ok(Incoming::Batch(members.into_iter().map(sized).collect()))
        }
        value => Ok(Incoming::Single(Box::new(member(value, body.len())))),
    }
}

fn member(value: Value, bytes: usize) -> Member {
    let Value::Object(mut map) = value else {
        let message = format!("expected a request as an object, found {}", value.kind_name());
        return Member::Faulty(Value::Null, RpcError::new(INVALID_REQUEST, message));
    };
    let id = map.remove("id");
    let faulty = |id: Option<Value>, message: String| {
        Member::Faulty(id.unwrap_or_default(), RpcError::new(INVALID_REQUEST, message))
    };
    if let Some(wrong @ (Value::Bool(_) | Value::Array(_) | Value::Object(_))) = &id {
        let message = format!("`id` is a string, a number or null, not {}", wrong.kind_name());
        return faulty(None, message);
    }
    if map.remove("jsonrpc").as_ref().and_then(Value::as_str) != Some("2.0") {
        return faulty(id, "`jsonrpc` must be \"2.0\"".to_owned());
    }
    let Some(Value::Text(method)) = map.remove("method") else {
        return faulty(id, "`method` must be the name of a method".to_owned());
    };
    let params = map.remove("params");
    if let Some(wrong) =
        params.as_ref().filter(|params| !matches!(params, Value::Object(_) | Value::Array(_)))
    {
        let message = format!("`params` is an object, not {}", wrong.kind_name());
        return faulty(id, message);
    }
    Member::Call(RpcCall { id, method, params, beside: map, bytes })
}

/// Has each member worked on, in order, and writes the response. `None` where nothing is to be said: there were only
/// notifications.
pub(crate) fn respond(
    message: Incoming,
    mut work: impl FnMut(Result<RpcCall, RpcError>) -> Result<Value, RpcError>,
) -> Option<Value> {
    let mut one = |member: Member| match member {
        Member::Call(mut call) => {
            let id = call.id.take();
            let is_notification = id.is_none();
            call.id = id.clone();
            let ended = work(Ok(call));
            (!is_notification).then(|| response(id.unwrap_or_default(), ended))
        }
        Member::Faulty(id, error) => Some(response(id, work(Err(error)))),
    };
    match message {
        Incoming::Single(member) => one(*member),
        Incoming::Batch(members) => {
            let responses: Vec<Value> = members.into_iter().filter_map(one).collect();
            (!responses.is_empty()).then_some(Value::Array(responses))
        }
    }
}

/// Writes a response.
pub(crate) fn response(id: Value, ended: Result<Value, RpcError>) -> Value {
    let mut map = Map::new();
    map.insert("jsonrpc", "2.0");
    match ended {
        Ok(result) => map.insert("result", result),
        Err(RpcError { code, message, data }) => {
            let mut error = Map::new();
            error.insert("code", code);
            error.insert("message", message);
            if !data.is_empty() {
                error.insert("data", data);
            }
            map.insert("error", error)
        }
    };
    map.insert("id", id);
    Value::Object(map)
}

#[cfg(test)]
mod tests;
