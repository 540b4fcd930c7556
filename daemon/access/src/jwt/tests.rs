//! Attacks on JWTs, each of which another daemon fell for once, and what is taken.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ed25519_dalek::{Signer as _, SigningKey};
use hmac::{Hmac, Mac as _};
use serde_json::json;
use sha2::Sha256;

use super::*;

const NOW: i64 = 1_790_000_000;
const SECRET: &[u8] = b"a secret of more than 32 bytes, as RFC 7518 asks";
const KNOWN: [Scope; 4] =
    [Scope::READ, Scope::WRITE, Scope("manifesto:actor"), Scope("manifesto:authority")];

fn signing() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

fn public() -> [u8; 32] {
    signing().verifying_key().to_bytes()
}

fn settings() -> JwtSettings {
    let eddsa = JwtKey::eddsa(&STANDARD.encode(public())).unwrap();
    JwtSettings { keys: vec![eddsa, JwtKey::hs256(SECRET).unwrap()], audience: None }
}

fn part(value: &serde_json::Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

fn eddsa(header: &serde_json::Value, claims: &serde_json::Value) -> String {
    let message = format!("{}.{}", part(header), part(claims));
    let signature = signing().sign(message.as_bytes()).to_bytes();
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn hs256(header: &serde_json::Value, claims: &serde_json::Value, secret: &[u8]) -> String {
    let message = format!("{}.{}", part(header), part(claims));
    let mac = Hmac::<Sha256>::new_from_slice(secret).unwrap().chain_update(&message);
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
}

fn claims() -> serde_json::Value {
    json!({"sub": "anna", "scope": "omir:read omir:write", "exp": NOW + 60})
}

fn with(name: &str, value: serde_json::Value) -> serde_json::Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

fn ask(text: &str) -> Result<Caller, Unauthenticated> {
    identify(&settings(), &KNOWN, "http", text, Some(NOW))
}

fn why(text: &str) -> Unauthenticated {
    ask(text).map(|caller| caller.name).unwrap_err()
}

#[test]
fn either_algorithm_speaks_for_its_claims() {
    let mut claims = with("agents", json!(["b", "anna"]));
    for text in [
        eddsa(&json!({"alg": "EdDSA"}), &claims),
        hs256(&json!({"alg": "HS256", "typ": "JWT"}), &claims, SECRET),
    ] {
        assert!(is_one(&text));
        let caller = ask(&text).unwrap();
        assert_eq!((&*caller.name, caller.transport), ("jwt anna", "http"));
        let agents: Vec<&str> = caller.agents.iter().map(|agent| &**agent).collect();
        assert_eq!((agents, caller.tenant), (vec!["anna", "b"], None));
        assert_eq!(caller.scopes, Scopes::only(&[Scope::READ, Scope::WRITE]));
    }
    claims["scope"] = json!("manifesto:actor compass:agent");
    claims["tenant"] = json!("lab");
    let caller = ask(&eddsa(&json!({"alg": "EdDSA"}), &claims)).unwrap();
    assert_eq!(caller.tenant.as_deref(), Some("lab"));
    assert_eq!(caller.scopes, Scopes::only(&[Scope("manifesto:actor")]), "others are not known");
}

#[test]
fn no_algorithm_and_every_other_one_is_refused() {
    let claims = claims();
    for alg in ["none", "None", "NONE", "nOnE", "", "HS384", "HS512", "RS256", "ES256", "PS256"] {
        let header = json!({"alg": alg});
        let message = format!("{}.{}", part(&header), part(&claims));
        for text in [
            format!("{message}."),
            format!("{message}.AAAA"),
            hs256(&header, &claims, SECRET),
            eddsa(&header, &claims),
        ] {
            assert_eq!(why(&text), Unauthenticated::Unknown, "{alg}");
        }
    }
    // A header without it, or with it twice.
    assert_eq!(why(&hs256(&json!({}), &claims, SECRET)), Unauthenticated::Unknown);
    let twice = URL_SAFE_NO_PAD.encode(r#"{"alg":"none","alg":"HS256"}"#);
    let message = format!("{twice}.{}", part(&claims));
    let mac = Hmac::<Sha256>::new_from_slice(SECRET).unwrap().chain_update(&message);
    let text = format!("{message}.{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()));
    assert_eq!(why(&text), Unauthenticated::Unknown);
}

#[test]
fn a_public_key_is_no_secret() {
    let key = STANDARD.encode(public());
    let pem = format!("-----BEGIN PUBLIC KEY-----\n{key}\n-----END PUBLIC KEY-----\n");
    let eddsa = JwtKey::eddsa(&key).unwrap();
    let settings = JwtSettings { keys: vec![eddsa], audience: None };
    for secret in [&public()[..], key.as_bytes(), pem.as_bytes()] {
        let text = hs256(&json!({"alg": "HS256"}), &claims(), secret);
        let refused = identify(&settings, &KNOWN, "http", &text, Some(NOW));
        assert_eq!(refused.map(|_| ()), Err(Unauthenticated::Unknown));
    }
}

#[test]
fn a_wrong_signature_says_nothing_of_the_claims() {
    let good = eddsa(&json!({"alg": "EdDSA"}), &claims());
    let (message, signature) = good.rsplit_once('.').unwrap();
    let other = eddsa(&json!({"alg": "EdDSA"}), &with("sub", json!("eve")));
    let (forged, _) = other.rsplit_once('.').unwrap();
    let expired = with("exp", json!(1));
    let key = json!({"kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode([1; 32])});
    for text in [
        format!("{forged}.{signature}"),
        format!("{message}."),
        format!("{message}.{}", &signature[1..]),
        format!("{message}.{signature}A"),
        format!("{message}.{signature}=="),
        format!("{message}.{}", URL_SAFE_NO_PAD.encode([0; 64])),
        hs256(&json!({"alg": "HS256"}), &expired, b"another secret of more than thirty-two bytes"),
        hs256(&json!({"alg": "HS256"}), &expired, b""),
        // A key that the token brings along is not looked at.
        hs256(&json!({"alg": "HS256", "jwk": key}), &claims(), &[1; 32]),
        // RFC 7515, section 4.1.11.
        eddsa(&json!({"alg": "EdDSA", "crit": ["b64"], "b64": false}), &claims()),
    ] {
        assert_eq!(why(&text), Unauthenticated::Unknown, "{text}");
    }
    // The order of a curve added to a signature: only one form of it is taken.
    for at in 0..86 {
        let mut changed = signature.as_bytes().to_vec();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        assert_eq!(why(&format!("{message}.{changed}")), Unauthenticated::Unknown, "{at}");
    }
    assert!(ask(&good).is_ok());
}

#[test]
fn time_goes_by_the_daemons_clock() {
    let at = |claims: &serde_json::Value, now| {
        let text = eddsa(&json!({"alg": "EdDSA"}), claims);
        identify(&settings(), &KNOWN, "http", &text, now).map(|_| ())
    };
    assert_eq!(at(&claims(), None), Err(Unauthenticated::ClockUntrusted));
    assert_eq!(at(&claims(), Some(NOW + 59)), Ok(()));
    assert_eq!(at(&claims(), Some(NOW + 60)), Err(Unauthenticated::Expired));
    let early = Unauthenticated::Unsound("it is not valid yet (`nbf`)");
    assert_eq!(at(&with("nbf", json!(NOW + 61)), Some(NOW)), Err(early));
    assert_eq!(at(&with("nbf", json!(NOW + 60)), Some(NOW)), Ok(()), "a clock may be ahead");
    assert_eq!(at(&with("exp", json!(NOW as f64 + 0.5)), Some(NOW)), Ok(()));
    let mut endless = claims();
    endless.as_object_mut().unwrap().remove("exp");
    assert!(matches!(at(&endless, Some(NOW)), Err(Unauthenticated::Unsound(_))));
    for exp in [json!(null), json!("9999999999"), json!([NOW + 60]), json!({}), json!(true)] {
        let refused = at(&with("exp", exp.clone()), Some(NOW));
        assert!(refused.is_err(), "{exp}");
    }
    assert_eq!(at(&with("exp", json!(-1e300)), Some(NOW)), Err(Unauthenticated::Expired));
}

#[test]
fn unsound_claims_are_named() {
    for (claims, expected) in [
        (with("sub", json!(7)), "`sub`"),
        (with("sub", json!("a b")), "`sub`"),
        (with("sub", json!("a\nb")), "`sub`"),
        (with("scope", json!(["omir:read"])), "`scope`"),
        (with("scope", json!("")), "`scope`"),
        (with("scope", json!("manifesto:actor manifesto:authority")), "manifesto"),
        (with("tenant", json!("lab")), "all tenants"),
        (with("tenant", json!("../x")), "tenant"),
        (with("agents", json!("b")), "`agents`"),
        (with("agents", json!([1])), "`agents`"),
        (with("agents", json!(vec!["b"; 2])), ""),
        (with("agents", (0..65).map(|i| json!(i.to_string())).collect()), "`agents`"),
        (json!({"sub": "a", "exp": NOW + 60, "scope": "x:y", "tenant": "../x"}), "`tenant`"),
        (with("aud", json!("other")), "`aud`"),
        (json!({"exp": NOW + 60, "scope": "omir:read"}), "`sub`"),
        (json!({"exp": NOW + 60, "sub": "anna"}), "`scope`"),
    ] {
        match ask(&eddsa(&json!({"alg": "EdDSA"}), &claims)) {
            Err(Unauthenticated::Unsound(why)) => assert!(why.contains(expected), "{why}"),
            Ok(_) => assert!(expected.is_empty(), "{claims}"),
            other => panic!("{claims}: {other:?}"),
        }
    }
    let text = |aud| eddsa(&json!({"alg": "EdDSA"}), &with("aud", aud));
    let settings = JwtSettings { audience: Some("rover".into()), ..settings() };
    let to = |text: &str| identify(&settings, &KNOWN, "http", text, Some(NOW)).map(|_| ());
    assert_eq!(to(&text(json!("rover"))), Ok(()));
    assert_eq!(to(&text(json!(["a", "rover"]))), Ok(()));
    for aud in [json!("a"), json!([]), json!(7)] {
        assert!(matches!(to(&text(aud)), Err(Unauthenticated::Unsound(_))));
    }
}

#[test]
fn large_and_garbled_claims_are_refused() {
    let many = with("scope", json!("omir:read ".repeat(400)));
    assert!(matches!(why(&eddsa(&json!({"alg": "EdDSA"}), &many)), Unauthenticated::Unsound(_)));
    let list = r#"["anna","omir:read",null,null,1790000060,null,null]"#;
    for payload in ["", "null", "[]", list, "{", "7", "{\"exp\":1,\"exp\":2}", &"[".repeat(3000)] {
        let header = part(&json!({"alg": "EdDSA"}));
        let message = format!("{header}.{}", URL_SAFE_NO_PAD.encode(payload));
        let signature = signing().sign(message.as_bytes()).to_bytes();
        let text = format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature));
        assert_eq!(why(&text), Unauthenticated::Unknown, "{payload:.20}");
    }
    for text in ["..", "a..", ".b.", "a.b.c", "é.b.c", "a.b.c.d"] {
        assert_eq!(why(text), Unauthenticated::Unknown, "{text}");
    }
}

#[test]
fn without_keys_no_jwt_is_taken() {
    let text = eddsa(&json!({"alg": "EdDSA"}), &claims());
    let refused = identify(&JwtSettings::default(), &KNOWN, "http", &text, Some(NOW));
    assert_eq!(refused.map(|_| ()), Err(Unauthenticated::Unknown));
}
