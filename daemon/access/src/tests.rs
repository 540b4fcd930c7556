//! The identities of a folder, as transports see them.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use omird_router::Rate;
use proptest::prelude::*;
use sha2::{Digest as _, Sha256};

use super::*;

/// 2026-09-21T14:13:20Z.
const NOW: i64 = 1_790_000_000;
const AUTHORITY: Scope = Scope("manifesto:authority");
const AKASHIK: Scope = Scope("akashik:agent");
const SCOPES: [Scope; 5] = [Scope::READ, Scope::WRITE, Scope::ADMIN, AUTHORITY, AKASHIK];

/// A clock that a test sets. At 0 it cannot be trusted.
#[derive(Clone, Default)]
struct TestClock(Arc<(AtomicI64, AtomicU64)>);

impl TestClock {
    fn set(&self, now: i64) {
        self.0.0.store(now, Ordering::Relaxed);
    }

    fn pass(&self, millis: u64) {
        self.0.1.fetch_add(millis, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Option<i64> {
        Some(self.0.0.load(Ordering::Relaxed)).filter(|now| *now > 0)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.0.1.load(Ordering::Relaxed))
    }
}

/// Random bytes that no other call of a test gets.
fn fresh() -> [u8; 32] {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    Sha256::digest(NEXT.fetch_add(1, Ordering::Relaxed).to_le_bytes()).into()
}

fn open(data: &Path, clock: &TestClock) -> Access {
    fs::create_dir_all(data.join("keys")).unwrap();
    let clock = Box::new(clock.clone());
    Access::open(data, AccessSettings::default(), &SCOPES, clock, Box::new(fresh)).unwrap()
}

fn set_up() -> (tempfile::TempDir, TestClock, Access) {
    let (dir, clock) = (tempfile::tempdir().unwrap(), TestClock::default());
    clock.set(NOW);
    let access = open(dir.path(), &clock);
    (dir, clock, access)
}

fn grant(name: &str) -> Grant {
    Grant { name: name.to_owned(), scopes: vec!["omir:read".to_owned()], ..Grant::default() }
}

fn why(access: &Access, token: &str) -> Unauthenticated {
    match access.identify("http", token).map(|caller| caller.name) {
        Err(Refusal::Unauthenticated(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_token_speaks_for_what_it_grants() {
    let (_dir, _, access) = set_up();
    let token = access
        .add(Grant {
            name: "scout".into(),
            scopes: vec!["akashik:agent".into()],
            tenant: Some("lab".into()),
            agents: vec!["did:web:a".into(), "b".into()],
            authority: Some(3),
            expires: None,
            rate: Some(5),
            per_hour: Some(2000),
        })
        .unwrap();
    let caller = access.identify("zenoh", token.as_str()).unwrap();
    assert_eq!((&*caller.name, caller.transport), ("scout", "zenoh"));
    assert_eq!(caller.tenant.as_deref(), Some("lab"));
    let agents: Vec<&str> = caller.agents.iter().map(|agent| &**agent).collect();
    assert_eq!((agents, caller.authority), (vec!["did:web:a", "b"], Some(3)));
    assert_eq!(caller.scopes, Scopes::only(&[AKASHIK]));
    let rate = |requests, seconds| Some(Rate { requests, per: Duration::from_secs(seconds) });
    assert_eq!(caller.bounds.rates, [rate(5, 1), rate(2000, 3600)]);
    // Tenant `default` belongs to no caller in particular.
    let of_default = Grant { tenant: Some("default".into()), ..grant("d") };
    let token = access.add(of_default).unwrap();
    assert_eq!(access.identify("http", token.as_str()).unwrap().tenant, None);
}

#[test]
fn the_person_at_the_machine_has_a_token_that_lasts() {
    let (dir, clock, access) = set_up();
    let file = dir.path().join("keys/local.token");
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let caller = access.identify("http", text.trim()).unwrap();
    assert_eq!(&*caller.name, "local");
    assert!(SCOPES.iter().all(|scope| caller.scopes.hold(*scope) == (*scope != AUTHORITY)));
    open(dir.path(), &clock);
    assert_eq!(fs::read_to_string(&file).unwrap(), text, "the next start keeps it");
    access.revoke("local").unwrap();
    assert_eq!(why(&access, text.trim()), Unauthenticated::Unknown);
    assert!(matches!(access.revoke("local"), Err(TokenError::NotFound(_))));
    open(dir.path(), &clock);
    let other = fs::read_to_string(&file).unwrap();
    assert_ne!(other, text, "the next start makes another");
    clock.pass(1000);
    assert!(access.identify("http", other.trim()).is_ok());
}

#[test]
fn an_end_is_kept_and_needs_a_clock() {
    let (_dir, clock, access) = set_up();
    let token = access.add(Grant { expires: Some(NOW + 10), ..grant("a") }).unwrap();
    let endless = access.add(grant("b")).unwrap();
    assert!(access.identify("http", token.as_str()).is_ok());
    clock.set(0);
    assert_eq!(why(&access, token.as_str()), Unauthenticated::ClockUntrusted);
    assert!(access.identify("http", endless.as_str()).is_ok());
    clock.set(NOW + 9);
    assert!(access.identify("http", token.as_str()).is_ok());
    clock.set(NOW + 10);
    assert_eq!(why(&access, token.as_str()), Unauthenticated::Expired);
    assert_eq!(why(&access, "omird_nonsense"), Unauthenticated::Unknown);
}

#[test]
fn wrong_tokens_by_the_thousand_are_all_refused() {
    let (_dir, _, access) = set_up();
    let names: Vec<String> = (0..50).map(|i| format!("t{i}")).collect();
    let tokens: Vec<Secret> = names.iter().map(|name| access.add(grant(name)).unwrap()).collect();
    for i in 0..5000 {
        let right = tokens[i % tokens.len()].as_str();
        let mut wrong = right.as_bytes().to_vec();
        let at = PREFIX.len() + i % 43;
        wrong[at] = if wrong[at] == b'A' { b'B' } else { b'A' };
        let wrong = String::from_utf8(wrong).unwrap();
        assert_eq!(why(&access, &wrong), Unauthenticated::Unknown);
    }
    let long = "x".repeat(1 << 20);
    for wrong in ["", " ", "omird_", "Bearer x", "a.b", "a.b.c", "....", &long] {
        assert_eq!(why(&access, wrong), Unauthenticated::Unknown, "{wrong:.20}");
    }
    for (name, token) in names.iter().zip(&tokens) {
        assert_eq!(&*access.identify("http", token.as_str()).unwrap().name, name);
    }
}

#[test]
fn a_jwt_is_as_long_as_a_token_may_be() {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use hmac::{Hmac, Mac as _};

    const SECRET: &[u8] = b"a secret of more than 32 bytes, as RFC 7518 asks";
    let (_dir, _, access) = set_up();
    let jwt = JwtSettings { keys: vec![JwtKey::hs256(SECRET).unwrap()], audience: None };
    access.reconfigure(AccessSettings { jwt, ..AccessSettings::default() });
    let of_length = |more: usize| {
        let (filled, exp) = ("x".repeat(more), NOW + 60);
        let claims =
            format!(r#"{{"sub":"anna","scope":"omir:read","exp":{exp},"note":"{filled}"}}"#);
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let message = format!("{}.{}", part(r#"{"alg":"HS256"}"#), part(&claims));
        let mac = Hmac::<sha2::Sha256>::new_from_slice(SECRET).unwrap().chain_update(&message);
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
    };
    let (fits, long) = (of_length(5900), of_length(6100));
    assert!(fits.len() <= LONGEST_TOKEN && long.len() > LONGEST_TOKEN, "{}", long.len());
    assert!(access.identify("zenoh", &fits).is_ok());
    assert_eq!(why(&access, &long), Unauthenticated::Unknown);
}

#[test]
fn what_changes_beside_a_daemon_is_in_force_within_a_second() {
    let (dir, clock, access) = set_up();
    let beside = TokenStore::of(dir.path());
    let token = beside.add(grant("phone"), fresh(), None).unwrap();
    clock.pass(1000);
    assert_eq!(&*access.identify("http", token.as_str()).unwrap().name, "phone");
    beside.revoke("phone").unwrap();
    clock.pass(1000);
    assert_eq!(why(&access, token.as_str()), Unauthenticated::Unknown);
    // A change that the daemon makes itself is in force at once, and it looks at no file twice in a second.
    let token = access.add(grant("arm")).unwrap();
    assert!(access.identify("http", token.as_str()).is_ok());
    beside.revoke("arm").unwrap();
    clock.pass(999);
    assert!(access.identify("http", token.as_str()).is_ok());
    clock.pass(1);
    assert_eq!(why(&access, token.as_str()), Unauthenticated::Unknown);
}

#[test]
fn a_file_that_cannot_be_read_opens_nothing_and_is_not_written_over() {
    let (dir, clock, access) = set_up();
    let token = access.add(grant("a")).unwrap();
    let file = dir.path().join("keys/tokens.json");
    let good = fs::read(&file).unwrap();
    let local = fs::read_to_string(dir.path().join("keys/local.token")).unwrap();
    let text = String::from_utf8(good.clone()).unwrap();
    let twice = text.replace(
        "\"tokens\": [",
        &format!("\"tokens\": [{},", {
            let at = text.find("[").unwrap() + 1;
            &text[at..text.rfind(']').unwrap()]
        }),
    );
    for (bad, expected) in [
        (b"".to_vec(), "EOF"),
        (b"garbage".to_vec(), "expected value"),
        (good[..good.len() / 2].to_vec(), "EOF"),
        (vec![0; 4096], "expected value"),
        (vec![b' '; (1 << 20) + 1], "longer than"),
        (b"{\"format\":2,\"tokens\":{}}".to_vec(), "a newer omird"),
        (text.replace("omir:read", "omir read").into_bytes(), "is no scope"),
        (text.replace("sha256\": \"", "sha256\": \"z").into_bytes(), "hexadecimal digits"),
        (text.replace("\"name\"", "\"nome\"").into_bytes(), "unknown field"),
        (twice.into_bytes(), "is there twice"),
    ] {
        fs::write(&file, &bad).unwrap();
        clock.pass(1000);
        assert_eq!(why(&access, token.as_str()), Unauthenticated::Unknown, "{expected}");
        assert!(access.identify("http", local.trim()).is_ok(), "the owner can mend it");
        let fault = access.status(&[]).get("trouble").cloned();
        let fault = fault.as_ref().and_then(Value::as_str).unwrap();
        assert!(fault.contains("tokens.json") && fault.contains(expected), "{fault}");
        assert!(matches!(access.add(grant("b")), Err(TokenError::Unreadable(..))));
        assert!(matches!(access.revoke("a"), Err(TokenError::Unreadable(..))));
        assert_eq!(fs::read(&file).unwrap(), bad);
    }
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    clock.pass(1000);
    assert_eq!(why(&access, token.as_str()), Unauthenticated::Unknown);
    fs::remove_dir(&file).unwrap();
    let elsewhere = dir.path().join("elsewhere");
    fs::write(&elsewhere, &good).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    clock.pass(1000);
    assert_eq!(why(&access, token.as_str()), Unauthenticated::Unknown, "no link is followed");
    fs::remove_file(&file).unwrap();
    fs::write(&file, &good).unwrap();
    clock.pass(1000);
    assert!(access.identify("http", token.as_str()).is_ok(), "mended, it is taken again");
    assert_eq!(access.status(&[]).get("trouble"), Some(&Value::Null));
}

#[test]
fn no_two_who_add_at_once_lose_a_token() {
    let (dir, clock, access) = set_up();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = TokenStore::of(dir.path());
            scope.spawn(move || {
                for i in 0..25 {
                    store.add(grant(&format!("t{thread}.{i}")), fresh(), None).unwrap();
                }
            });
        }
    });
    clock.pass(1000);
    assert_eq!(access.tokens().unwrap().len(), 100);
    let left: Vec<_> = fs::read_dir(dir.path().join("keys")).unwrap().flatten().collect();
    assert_eq!(left.len(), 2, "nothing is left over: {left:?}");
    let mode = fs::metadata(dir.path().join("keys/tokens.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn on_a_full_disk_a_token_is_revoked_where_it_stands() {
    let (dir, clock, access) = set_up();
    let [a, b] = ["a", "b"].map(|name| access.add(grant(name)).unwrap());
    let file = dir.path().join("keys/tokens.json");
    let before = fs::metadata(&file).unwrap();
    TokenStore::of(dir.path()).blot_out("a").unwrap();
    let after = fs::metadata(&file).unwrap();
    assert_eq!((before.ino(), before.len()), (after.ino(), after.len()), "nothing was made");
    clock.pass(1000);
    assert_eq!(why(&access, a.as_str()), Unauthenticated::Unknown);
    assert!(access.identify("http", b.as_str()).is_ok());
    let names = || access.tokens().unwrap().into_iter().map(|it| it.grant.name).collect::<Vec<_>>();
    assert_eq!(names(), ["b"]);
    assert!(matches!(access.revoke("a"), Err(TokenError::NotFound(_))));
    let again = access.add(grant("a")).unwrap();
    assert_eq!(names(), ["b", "a"]);
    for (token, holds) in [(&a, false), (&b, true), (&again, true)] {
        assert_eq!(access.identify("http", token.as_str()).is_ok(), holds);
    }
}

#[test]
fn the_file_keeps_no_token() {
    let (dir, _, access) = set_up();
    let token = access.add(grant("a")).unwrap();
    let text = fs::read_to_string(dir.path().join("keys/tokens.json")).unwrap();
    assert!(!text.contains(&token.as_str()[PREFIX.len()..]), "{text}");
    assert!(!format!("{access:?}").contains(&token.as_str()[PREFIX.len()..]));
}

#[test]
fn where_a_token_is_required_nobody_gets_in_without() {
    let (_dir, _, access) = set_up();
    let without = access.without_token("zenoh").unwrap();
    assert_eq!(&*without.name, "zenoh");
    assert!(without.scopes.hold(Scope::ADMIN) && !without.scopes.hold(AUTHORITY));
    assert!(access.graph("ros2").scopes.hold(Scope::ADMIN));
    let ways = ["zenoh", "ros2"];
    let open = |access: &Access| access.status(&ways).get("openTransports").cloned();
    assert_eq!(open(&access), Some(ways.into_iter().collect()));
    access.reconfigure(AccessSettings { require: true, ..AccessSettings::default() });
    let missing = Refusal::Unauthenticated(Unauthenticated::Missing);
    assert_eq!(access.without_token("zenoh").unwrap_err(), missing);
    assert_eq!(access.graph("ros2").scopes, Scopes::only(&[Scope::READ, Scope::WRITE]));
    assert_eq!(open(&access), Some(["ros2"].into_iter().collect()));
    let graph = Some(vec![Scope::READ]);
    access.reconfigure(AccessSettings { graph, ..AccessSettings::default() });
    assert_eq!(access.graph("ros2").scopes, Scopes::only(&[Scope::READ]));
}

#[test]
fn without_a_folder_there_are_no_tokens() {
    let access = Access::open_to_all(&SCOPES);
    assert_eq!(why(&access, "omird_x"), Unauthenticated::Unknown);
    assert!(access.add(grant("a")).is_err());
    let store = TokenStore::of(Path::new("/nowhere"));
    let error = store.add(grant("a"), fresh(), None).unwrap_err();
    assert!(error.to_string().contains("/nowhere is no data folder"), "{error}");
}

#[derive(Debug, Clone)]
enum Step {
    Add { name: usize, lasts: Option<i64>, beside: bool },
    Revoke { name: usize, beside: bool },
    Pass(i64),
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let lasts = proptest::option::of(1..100_i64);
    let step = prop_oneof![
        4 => (0..6_usize, lasts, any::<bool>())
            .prop_map(|(name, lasts, beside)| Step::Add { name, lasts, beside }),
        3 => (0..6_usize, any::<bool>()).prop_map(|(name, beside)| Step::Revoke { name, beside }),
        2 => (1..50_i64).prop_map(Step::Pass),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Against a list of names, tokens and ends.
    #[test]
    fn the_tokens_in_force_are_those_of_a_simple_model(steps in steps()) {
        let (dir, clock, mut access) = set_up();
        let beside = TokenStore::of(dir.path());
        let mut model: Vec<(String, Secret, Option<i64>)> = Vec::new();
        let mut revoked: Vec<Secret> = Vec::new();
        let mut now = NOW;
        for step in steps {
            match step {
                Step::Add { name, lasts, beside: is_beside } => {
                    let name = format!("n{name}");
                    let expires = lasts.map(|lasts| now + lasts);
                    let grant = Grant { expires, ..grant(&name) };
                    let added = match is_beside {
                        true => beside.add(grant, fresh(), Some(now)),
                        false => access.add(grant),
                    };
                    if model.iter().any(|(known, ..)| *known == name) {
                        prop_assert!(matches!(added, Err(TokenError::Exists(_))));
                    } else {
                        model.push((name, added.unwrap(), expires));
                    }
                }
                Step::Revoke { name, beside: is_beside } => {
                    let name = format!("n{name}");
                    let gone =
                        if is_beside { beside.revoke(&name) } else { access.revoke(&name) };
                    match model.iter().position(|(known, ..)| *known == name) {
                        Some(at) => {
                            prop_assert!(gone.is_ok());
                            revoked.push(model.remove(at).1);
                        }
                        None => prop_assert!(matches!(gone, Err(TokenError::NotFound(_)))),
                    }
                }
                Step::Pass(seconds) => {
                    now += seconds;
                    clock.set(now);
                }
                Step::Restart => access = open(dir.path(), &clock),
            }
            clock.pass(1000);
            let listed: Vec<String> =
                access.tokens().unwrap().into_iter().map(|token| token.grant.name).collect();
            let names: Vec<&String> = model.iter().map(|(name, ..)| name).collect();
            prop_assert_eq!(listed.iter().collect::<Vec<_>>(), names);
            for (name, token, expires) in &model {
                match access.identify("http", token.as_str()) {
                    Ok(caller) => {
                        prop_assert_eq!(&*caller.name, name);
                        prop_assert!(expires.is_none_or(|end| now < end));
                    }
                    Err(refusal) => {
                        let expired = Refusal::Unauthenticated(Unauthenticated::Expired);
                        prop_assert_eq!(refusal, expired);
                        prop_assert!(expires.is_some_and(|end| now >= end));
                    }
                }
            }
            for token in &revoked {
                prop_assert_eq!(why(&access, token.as_str()), Unauthenticated::Unknown);
            }
        }
    }
}

/// As builds of 2026-11-23 wrote it. Robots have such files: this text is never altered.
const KEPT: &str = r#"{"format": 1, "tokens": [{"grant": {"name": "planner", "scopes": ["akashik:agent"],
    "tenant": "hall", "agents": ["a1", "a2"], "authority": 7, "expires": 1800000000, "rate": 5, "perHour": 100},
    "sha256": "742293474d917cc49a08bd90075e29de8f5afeab0d6607835dd5df6dda797b52", "created": 1789000000},
    {"grant": {"name": "viewer", "scopes": ["omir:read"]}, "sha256": "0000000000000000000000000000000000000000000000000000000000000000"}]}"#;

#[test]
fn tokens_that_earlier_builds_kept_are_in_force() {
    let (dir, clock, access) = set_up();
    fs::write(dir.path().join("keys/tokens.json"), KEPT).unwrap();
    clock.pass(1000);
    let caller =
        access.identify("http", "omird_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA").unwrap();
    assert_eq!((&*caller.name, caller.tenant.as_deref()), ("planner", Some("hall")));
    assert_eq!(caller.agents.iter().map(|agent| &**agent).collect::<Vec<_>>(), ["a1", "a2"]);
    assert!(caller.scopes.hold(AKASHIK));
    assert!(!caller.scopes.hold(Scope::READ));
}
