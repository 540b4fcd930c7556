//! The protocol over the identities of a real folder.

use std::path::Path;
use std::time::Duration;

use omir_core::json;
use omird_access::{AccessSettings, Clock};
use omird_router::testing::{Facts, somebody};
use omird_router::{Incoming, Method, Router, Scope, Scopes};

use super::*;

/// 2026-09-21T14:13:20Z.
const NOW: i64 = 1_790_000_000;

struct Noon;

impl Clock for Noon {
    fn now(&self) -> Option<i64> {
        Some(NOW)
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

fn access(data: &Path) -> Access {
    std::fs::create_dir_all(data.join("keys")).unwrap();
    let next = std::sync::atomic::AtomicU8::new(1);
    let random = move || [next.fetch_add(1, std::sync::atomic::Ordering::Relaxed); 32];
    let scopes = [Scope::READ, Scope::ADMIN];
    Access::open(data, AccessSettings::default(), &scopes, Box::new(Noon), Box::new(random))
        .unwrap()
}

fn admitted(method: &'static Method) -> Admitted {
    let router = Router::new(Facts { most: 1000, ..Facts::default() }, []);
    router.admit(&somebody(&[Scope::ADMIN]), method, Incoming::default()).unwrap()
}

/// Checks an answer against the schema that the table names.
fn is_as_its_schema_says(name: &str, answer: &Value) {
    assert!(ACCESS.methods.iter().any(|method| method.about.response == name));
    let schema = json::to_string(schemas().get(name).expect("there is one"));
    let validator = jsonschema::draft202012::new(&serde_json::from_str(&schema).unwrap()).unwrap();
    let answer = serde_json::from_str(&json::to_string(answer)).unwrap();
    let faults: Vec<String> =
        validator.iter_errors(&answer).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{name}: {faults:?}");
}

fn value(text: &str) -> Value {
    json::from_slice(text.as_bytes(), &Default::default()).unwrap()
}

#[test]
fn a_token_is_added_shown_once_listed_and_revoked() {
    let dir = tempfile::tempdir().unwrap();
    let access = access(dir.path());
    let tokens = Tokens::new(access.clone());
    let asked = r#"{"name":"arm","scopes":["omir:read"],"agents":["a"],"expires":"30d","rate":5}"#;
    let added = tokens.add(admitted(&ADD), &value(asked)).unwrap();
    is_as_its_schema_says("NewToken", &added);
    let token = added.get("token").and_then(Value::as_str).unwrap();
    assert_eq!(added.get("expires").and_then(Value::as_str), Some("2026-10-21T14:13:20Z"));
    let caller = access.identify("http", token).unwrap();
    assert_eq!((&*caller.name, caller.transport), ("arm", "http"));
    assert_eq!(caller.scopes, Scopes::only(&[Scope::READ]));

    let again = tokens.add(admitted(&ADD), &value(asked)).unwrap_err();
    assert_eq!(again.code, Code::Conflict);

    let listed = tokens.list(admitted(&LIST)).unwrap();
    is_as_its_schema_says("Tokens", &listed);
    let listed = json::to_string(&listed);
    assert_eq!(
        listed,
        r#"{"tokens":[{"name":"arm","scopes":["omir:read"],"tenant":null,"agents":["a"],"authority":null,"expires":"2026-10-21T14:13:20Z","rate":5,"perHour":null,"created":"2026-09-21T14:13:20Z"}]}"#
    );
    assert!(!listed.contains(token));

    let revoked = tokens.revoke(admitted(&REVOKE), "arm").unwrap();
    is_as_its_schema_says("RevokedToken", &revoked);
    assert_eq!(json::to_string(&revoked), r#"{"revoked":"arm"}"#);
    assert!(access.identify("http", token).is_err());
    let gone = tokens.revoke(admitted(&REVOKE), "arm").unwrap_err();
    assert_eq!(gone.code, Code::NotFound);
}

#[test]
fn a_wrong_parameter_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let tokens = Tokens::new(access(dir.path()));
    for (asked, path, expected) in [
        ("[]", "", "expected an object"),
        (r#"{"name":"a"}"#, "/scopes", "there is none"),
        (r#"{"name":"a","scopes":7}"#, "/scopes", "expected a list of texts"),
        (r#"{"name":"a","scopes":"omir:read,omir:raed"}"#, "/scopes", "\"omir:raed\" is none of"),
        (r#"{"name":"a","scopes":["omir:raed"]}"#, "/scopes", "none of omir:read, omir:admin"),
        (r#"{"name":"a b","scopes":["omir:read"]}"#, "/name", "is not 1 to 64"),
        (r#"{"name":"a","scopes":["omir:read"],"expires":"30"}"#, "/expires", "has no unit"),
        (r#"{"name":"a","scopes":["omir:read"],"rate":-1}"#, "/rate", "expected a whole number"),
        (r#"{"name":"a","scopes":["omir:read"],"tennant":"t"}"#, "/tennant", "is none of name"),
    ] {
        let error = tokens.add(admitted(&ADD), &value(asked)).unwrap_err();
        assert_eq!((error.code, error.path.as_str()), (Code::InvalidQuery, path), "{error}");
        assert!(error.message.contains(expected), "{error}");
    }
    assert_eq!(json::to_string(&tokens.list(admitted(&LIST)).unwrap()), r#"{"tokens":[]}"#);
}
