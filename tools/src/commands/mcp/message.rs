//! Messages of JSON-RPC, as far as the bridge must understand them: which is answered, and which cancels another.

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::value::{Map, Value};

/// The code of an error of the server, in the range that JSON-RPC leaves to it.
const FAILED: i64 = -32_000;
/// The codes of JSON-RPC 2.0, section 5.1.
const UNREADABLE: i64 = -32_700;
const INVALID: i64 = -32_600;

/// A message of the client.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    /// To be passed on and answered.
    Request(Request),
    /// The request of this id is not wanted any more.
    Cancels(String),
    /// The client waits for no answer, and a daemon that keeps nothing learns nothing by it: a note, an answer, an
    /// empty line.
    Nothing,
    /// No JSON, or none of the messages above; this is the answer.
    Refused(String),
}

/// A request.
#[derive(Debug, PartialEq, Clone)]
pub(super) struct Request {
    /// Its id, as JSON.
    pub(super) id: String,
    pub(super) method: String,
    /// The tool or the resource that it names.
    pub(super) name: Option<String>,
    /// The version that it states itself.
    pub(super) version: Option<String>,
    /// The line as it came.
    pub(super) line: Vec<u8>,
}

impl Message {
    /// Reads a line.
    pub(super) fn read(line: Vec<u8>) -> Self {
        if line.trim_ascii().is_empty() {
            return Self::Nothing;
        }
        match json::from_slice(&line, &limits()) {
            Ok(value) => Self::of(&value, &line),
            Err(why) => Self::Refused(error(&Value::Null, UNREADABLE, &why.to_string())),
        }
    }

    /// Tells a message by its members (JSON-RPC 2.0, sections 4 and 5). What is neither request, note nor answer is refused:
    /// its sender may wait.
    fn of(value: &Value, line: &[u8]) -> Self {
        let invalid = |id: &Value, why: &str| Self::Refused(error(id, INVALID, why));
        if value.as_array().is_some() {
            let why = "batches are not taken: send each message on a line of its own";
            return invalid(&Value::Null, why);
        }
        let text =
            |pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let is_id = |id: &&Value| matches!(id, Value::Text(_) | Value::Number(_));
        let id = value.get("id");
        match (text("/method"), id) {
            (Some(method), Some(id)) if is_id(&id) => Self::Request(Request {
                id: json::to_string(id),
                method,
                name: text("/params/name").or_else(|| text("/params/uri")),
                version: text("/params/_meta/io.modelcontextprotocol~1protocolVersion"),
                line: line.trim_ascii().to_vec(),
            }),
            (Some(_), Some(_)) => {
                let why = "the id of a request is a text or a number; a notification has no id";
                invalid(&Value::Null, why)
            }
            (Some(method), None) if method == "notifications/cancelled" => {
                let id = value.pointer("/params/requestId");
                id.map_or(Self::Nothing, |id| Self::Cancels(json::to_string(id)))
            }
            (Some(_), None) => Self::Nothing,
            (None, _) if value.get("result").is_some() || value.get("error").is_some() => {
                Self::Nothing
            }
            (None, id) => {
                let why = "no message: a request has a method and an id, a notification a method";
                invalid(id.filter(is_id).unwrap_or(&Value::Null), why)
            }
        }
    }
}

fn limits() -> Limits {
    Limits { max_bytes: 17 << 20, ..Limits::default() }
}

/// Returns true if the bytes are the answer to a request: a result or an error of JSON-RPC.
pub(super) fn is_answer(bytes: &[u8]) -> bool {
    json::from_slice(bytes, &limits()).is_ok_and(|value| {
        value.get("jsonrpc").is_some()
            && (value.get("result").is_some() || value.get("error").is_some())
    })
}

/// The version in the answer to `initialize`.
pub(super) fn version_of(answer: &[u8]) -> Option<String> {
    let answer = json::from_slice(answer, &limits()).ok()?;
    answer.pointer("/result/protocolVersion")?.as_str().map(str::to_owned)
}

/// The reason of an answer of HTTP that is none of JSON-RPC: the error object of the daemon, or its words.
pub(super) fn reason(status: u16, body: &[u8]) -> String {
    let object = json::from_slice(body, &limits()).ok();
    let text = |name: &str| {
        object.as_ref().and_then(|object| object.get(name)?.as_str()).map(str::to_owned)
    };
    match (text("code"), text("message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        _ => {
            let words = String::from_utf8_lossy(body);
            format!("the daemon answers {status}: {}", words.trim())
        }
    }
}

/// The answer to a request that could not be passed on. `id` is JSON.
pub(super) fn refusal(id: &str, message: &str) -> String {
    let id = json::from_slice(id.as_bytes(), &limits()).unwrap_or_default();
    error(&id, FAILED, message)
}

fn error(id: &Value, code: i64, message: &str) -> String {
    let mut error = Map::new();
    error.insert("code", code);
    error.insert("message", message);
    let mut answer = Map::new();
    answer.insert("jsonrpc", "2.0");
    answer.insert("id", id.clone());
    answer.insert("error", error);
    json::to_string(&Value::Object(answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Message {
        Message::read(line.as_bytes().to_vec())
    }

    #[test]
    fn requests_are_told_from_notes() {
        let line = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"recall",
            "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        let Message::Request(request) = read(&line.replace('\n', " ")) else { panic!("a request") };
        assert_eq!((request.id.as_str(), request.method.as_str()), ("\"a\"", "tools/call"));
        assert_eq!(request.name.as_deref(), Some("recall"));
        assert_eq!(request.version.as_deref(), Some("2026-07-28"));
        let cancel =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
        assert_eq!(read(cancel), Message::Cancels("7".to_owned()));
        for nothing in [
            "\n",
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32601,"message":"no"}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#,
        ] {
            assert_eq!(read(nothing), Message::Nothing, "{nothing}");
        }
    }

    #[test]
    fn what_is_no_message_is_answered_because_somebody_may_wait() {
        for (line, id, code, why) in [
            ("{nonsense", "null", -32_700, ""),
            ("[]", "null", -32_600, "batches are not taken"),
            (
                r#"[{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","id":2,"method":"ping"}]"#,
                "null",
                -32_600,
                "on a line of its own",
            ),
            (r#"{"jsonrpc":"2.0","id":7}"#, "7", -32_600, "a request has a method"),
            (r#"{"jsonrpc":"2.0","id":"a","method":5}"#, "\"a\"", -32_600, "has a method"),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
                "null",
                -32_600,
                "a text or a number",
            ),
            (
                r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
                "null",
                -32_600,
                "a text or a number",
            ),
            (r#"{"jsonrpc":"2.0","id":null}"#, "null", -32_600, "no message"),
            ("{}", "null", -32_600, "no message"),
            ("5", "null", -32_600, "no message"),
        ] {
            let Message::Refused(answer) = read(line) else { panic!("refused: {line}") };
            let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"#);
            assert!(answer.starts_with(&head) && answer.contains(why), "{line}: {answer}");
        }
    }

    #[test]
    fn what_is_no_answer_becomes_one() {
        assert!(is_answer(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
        assert!(is_answer(br#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#));
        assert!(!is_answer(br#"{"jsonrpc":"2.0","method":"notifications/progress"}"#));
        assert!(!is_answer(
            br#"{"code":"UNAUTHENTICATED","message":"a token is needed","path":""}"#
        ));
        assert!(!is_answer(b"Not Found"));
        let object = br#"{"code":"UNAUTHENTICATED","message":"a token is needed","path":""}"#;
        assert_eq!(reason(401, object), "UNAUTHENTICATED: a token is needed");
        assert_eq!(reason(404, b"Not Found\n"), "the daemon answers 404: Not Found");
        let answer = refusal("\"a\"", "nobody");
        assert_eq!(
            answer,
            r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32000,"message":"nobody"}}"#
        );
        let hello = br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}"#;
        assert_eq!(version_of(hello).as_deref(), Some("2025-06-18"));
    }
}
