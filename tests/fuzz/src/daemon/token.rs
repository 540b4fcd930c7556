//! Tokens: the file of them, and the texts that callers send as one.

use std::sync::OnceLock;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use omird::access::{
    Access, AccessSettings, Clock, JwtKey, JwtSettings, TokenStore, bearer, parse_tokens,
};
use omird::protocols::Protocols;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

const SECRET: &[u8] = b"a secret that only the issuer and the daemon know";
const NOW: i64 = 1_790_000_000;

struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> Option<i64> {
        Some(NOW)
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

fn access() -> &'static Access {
    static ACCESS: OnceLock<(tempfile::TempDir, Access)> = OnceLock::new();
    let (_, access) = ACCESS.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("keys")).unwrap();
        let keys = vec![JwtKey::hs256(SECRET).unwrap()];
        let jwt = JwtSettings { keys, audience: None };
        let settings = AccessSettings { jwt, ..AccessSettings::default() };
        let random = Box::new(|| Sha256::digest(b"no input is made of this").into());
        let access =
            Access::open(dir.path(), settings, Protocols::SCOPES, Box::new(Fixed), random).unwrap();
        (dir, access)
    });
    access
}

/// Reads the bytes as the file, as a text that somebody sends, and as the claims of a JWT that is signed as it should be.
pub fn run(bytes: &[u8]) {
    file(bytes);
    let text = String::from_utf8_lossy(bytes);
    // Nobody who has neither a token nor the key gets in.
    assert!(access().identify("http", &text).is_err(), "{text}");
    if let Ok(Some(token)) = bearer(bytes) {
        assert!(text.contains(token) && !token.contains(char::is_whitespace));
    }
    claims(bytes);
}

fn file(bytes: &[u8]) {
    let Ok(tokens) = parse_tokens(bytes) else { return };
    // A second reader takes it as JSON with as many tokens of these names.
    let json: Value = serde_json::from_slice(bytes).unwrap();
    let names: Vec<&str> = json["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .map(|token| token["grant"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(tokens.iter().map(|token| token.grant.name.as_str()).collect::<Vec<_>>(), names);
    // A token can be added to the tokens that were read, which then read the same again.
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("keys")).unwrap();
    std::fs::write(dir.path().join("keys/tokens.json"), bytes).unwrap();
    let store = TokenStore::of(dir.path());
    assert_eq!(store.list().unwrap(), tokens);
    if let Some(first) = tokens.first() {
        store.revoke(&first.grant.name).unwrap();
        assert_eq!(store.list().unwrap(), tokens[1..]);
    }
}

fn claims(bytes: &[u8]) {
    let header = URL_SAFE_NO_PAD.encode(br#"{"alg":"HS256"}"#);
    let message = format!("{header}.{}", URL_SAFE_NO_PAD.encode(bytes));
    let mac = Hmac::<Sha256>::new_from_slice(SECRET).unwrap().chain_update(&message);
    let text = format!("{message}.{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()));
    let Ok(caller) = access().identify("http", &text) else { return };
    // The caller may do no more than the claims state, and the claims end.
    let claims: Value = serde_json::from_slice(bytes).unwrap();
    assert!(claims["exp"].as_f64().unwrap() > NOW as f64);
    let said: Vec<&str> = claims["scope"].as_str().unwrap().split_whitespace().collect();
    for scope in Protocols::SCOPES {
        assert_eq!(caller.scopes.hold(*scope), said.contains(&scope.0), "{scope}");
    }
    if said.iter().any(|scope| scope.starts_with("omir:")) {
        assert_eq!(caller.tenant, None);
    }
    assert_eq!(&*caller.agents[0], claims["sub"].as_str().unwrap());
    assert_eq!(&*caller.name, format!("jwt {}", caller.agents[0]));
}
