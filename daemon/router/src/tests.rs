//! The router against a table: each reason to refuse, for each method, and one audit line for each request.

use std::sync::atomic::Ordering;

use omird_engine::Error;

use super::testing::{AuditLines, Facts, each_method_is_decided, somebody};
use super::*;

const fn method(name: &'static str, effect: Effect, payload: Payload, scope: Scope) -> Method {
    Method {
        protocol: "toy",
        name,
        effect,
        streams: false,
        payload,
        scope,
        rates: [None, None],
        about: About::NOTHING,
    }
}

const ADMIN: Scope = Scope("toy:admin");

static TOY: Protocol = Protocol {
    name: "toy",
    scopes: &ALL,
    methods: &[
        &method("look", Effect::Reads, Payload::Parameters, Scope::READ),
        &Method { streams: true, ..method("watch", Effect::Reads, Payload::None, Scope::READ) },
        &method("tidy", Effect::ChangesUnlessDry, Payload::Parameters, Scope::WRITE),
        &method("save", Effect::Maintains, Payload::None, ADMIN),
        &method("put", Effect::Changes, Payload::Resources, Scope::WRITE),
        &method("move", Effect::Changes, Payload::Parameters, Scope::WRITE),
    ],
};

const ALL: [Scope; 3] = [Scope::READ, Scope::WRITE, ADMIN];
const NOW: Duration = Duration::from_secs(100);

#[test]
fn each_method_of_a_table_is_refused_for_each_reason() {
    each_method_is_decided(&TOY, &ALL);
}

#[test]
fn each_refusal_has_its_code() {
    let too_large = Refusal::TooLarge { bytes: 2, most: 1, size: Size::Decoded };
    let too_often = Refusal::TooOften { retry_after: NOW };
    for (refusal, code) in [
        (Refusal::ReadOnly, "UNAUTHORIZED"),
        (Refusal::OnlyReads, "UNAUTHORIZED"),
        (Refusal::Scope { needed: ADMIN, remedy: None }, "UNAUTHORIZED"),
        (too_large, "TOO_LARGE"),
        (Refusal::ImportUnderWay, "BUSY"),
        (too_often, "RATE_LIMITED"),
        (Refusal::Unauthenticated(Unauthenticated::Missing), "UNAUTHENTICATED"),
        (Refusal::WrongToken, "UNAUTHORIZED"),
        (Refusal::NoToken, "UNAUTHORIZED"),
        (Refusal::Locked { retry_after: NOW }, "UNAUTHORIZED"),
    ] {
        assert_eq!(refusal.code().as_str(), code);
    }
}

#[test]
fn what_a_caller_may_not_do_costs_it_nothing_of_its_rate() {
    let router = Router::new(Facts { most: 1000, ..Facts::default() }, []);
    let mut caller = somebody(&[Scope::READ]);
    caller.bounds.rates[0] = Some(Rate { requests: 1, per: Duration::from_secs(60) });
    let ask = |name| {
        let method = TOY.method(name).unwrap();
        router.admit_at(&caller, method, Incoming::default(), NOW).map(Admitted::done)
    };
    assert!(matches!(ask("put"), Err(Refusal::Scope { .. })));
    ask("look").unwrap();
    assert!(matches!(ask("look"), Err(Refusal::TooOften { .. })));
}

#[test]
fn a_burst_is_heard_at_once_and_then_evenly() {
    let router = Router::new(Facts::default(), []);
    let mut caller = somebody(&ALL);
    caller.bounds.rates[0] = Some(Rate { requests: 4, per: Duration::from_secs(4) });
    let other = Caller { name: "b".into(), ..caller.clone() };
    let tenant = Caller { tenant: Some("t".into()), ..caller.clone() };
    let heard = |caller: &Caller, millis: u64| {
        let now = NOW + Duration::from_millis(millis);
        router.admit_at(caller, TOY.methods[0], Incoming::default(), now).is_ok()
    };
    assert_eq!((0..9).filter(|_| heard(&caller, 0)).count(), 4);
    assert!(heard(&other, 0) && heard(&tenant, 0), "others do not pay for it");
    assert!(!heard(&caller, 999) && heard(&caller, 1000) && !heard(&caller, 1001));
    assert_eq!((0..9).filter(|_| heard(&caller, 60_000)).count(), 4, "no more than one burst");
}

#[test]
fn each_of_several_rates_holds_and_none_counts_what_another_refuses() {
    let router = Router::new(Facts::default(), []);
    let mut caller = somebody(&ALL);
    let rate = |requests, seconds| Some(Rate { requests, per: Duration::from_secs(seconds) });
    caller.bounds.rates = [rate(2, 1), rate(6, 3600)];
    let ask = |seconds: u64| {
        let now = NOW + Duration::from_secs(seconds);
        let asked = router.admit_at(&caller, TOY.methods[0], Incoming::default(), now);
        asked.map(Admitted::done).err()
    };
    let heard = |seconds| (0..9).filter(|_| ask(seconds).is_none()).count();
    assert_eq!((heard(0), heard(1), heard(2), heard(3)), (2, 2, 2, 0), "six in this hour");
    // They count in the minute from 60 to 120, for an hour; what the second refused has not used the hour up.
    let retry_after = Duration::from_secs(60 + 3600 - 103);
    assert_eq!(ask(3), Some(Refusal::TooOften { retry_after }));
    assert_eq!((heard(1800), heard(3559)), (0, 0), "no seventh within the hour");
    assert_eq!((heard(3560), heard(3561), heard(3562), heard(3563)), (2, 2, 2, 0));
}

#[test]
fn a_stated_rate_counts_all_protocols_and_a_default_one() {
    const EACH: Method = Method {
        rates: [Some(Rate { requests: 2, per: Duration::from_secs(1) }), None],
        ..method("look", Effect::Reads, Payload::Parameters, Scope::READ)
    };
    static HERE: Method = EACH;
    static THERE: Method = Method { protocol: "other", ..EACH };
    let router = Router::new(Facts::default(), []);
    let mut caller = Caller { has_token: true, ..somebody(&ALL) };
    // Its key states the second rate, and has the first of each protocol.
    caller.bounds.rates[1] = Some(Rate { requests: 5, per: Duration::from_secs(3600) });
    let heard = |method: &'static Method, seconds: u64| {
        let now = NOW + Duration::from_secs(seconds);
        (0..9)
            .filter(|_| router.admit_at(&caller, method, Incoming::default(), now).is_ok())
            .count()
    };
    assert_eq!((heard(&HERE, 0), heard(&THERE, 0)), (2, 2), "each protocol has its own");
    assert_eq!((heard(&HERE, 1), heard(&THERE, 1)), (1, 0), "five in the hour, of both together");
}

#[test]
fn what_is_left_of_an_hour_is_told() {
    static RATED: Method = Method {
        rates: [Some(Rate { requests: 20, per: Duration::from_secs(1) }), HOUR],
        ..method("look", Effect::Reads, Payload::Parameters, Scope::READ)
    };
    const HOUR: Option<Rate> = Some(Rate { requests: 30, per: Duration::from_secs(3600) });
    let router = Router::new(Facts::default(), []);
    let caller = Caller { has_token: true, ..somebody(&ALL) };
    let stranger = Caller { has_token: false, name: "b".into(), ..somebody(&ALL) };
    let admit = |caller: &Caller, seconds: u64| {
        let now = NOW + Duration::from_secs(seconds);
        router.admit_at(caller, &RATED, Incoming::default(), now).map(Admitted::done)
    };
    let left = |caller: &Caller, seconds: u64| {
        let now = NOW + Duration::from_secs(seconds);
        let usage = router.rates().usage(caller, &RATED, now)?;
        Some((usage.remaining, usage.reset.as_secs()))
    };
    assert_eq!(left(&caller, 0), Some((30, 0)));
    admit(&caller, 0).unwrap();
    assert_eq!(left(&caller, 0), Some((29, 60 + 3600 - 100)));
    assert!((0..19).all(|_| admit(&caller, 0).is_ok()) && admit(&caller, 0).is_err());
    assert_eq!(left(&caller, 0), Some((10, 3560)));
    // Without the scope it costs something all the same, for the table says so.
    let other = Caller { scopes: Scopes::only(&[]), ..caller.clone() };
    assert!(matches!(admit(&other, 30), Err(Refusal::Scope { .. })));
    assert_eq!(left(&caller, 30), Some((9, 3530)));
    assert_eq!(left(&caller, 3559), Some((9, 1)));
    assert_eq!(left(&caller, 3560), Some((29, 60)), "the first minute has left the hour");
    assert_eq!(left(&caller, 7200), Some((30, 0)));
    // The rate of a protocol is for those who came with a key; a key that states its own has that one.
    assert!((0..99).all(|_| admit(&stranger, 0).is_ok()));
    assert_eq!(left(&stranger, 0), None);
    let mut stated = Caller { name: "c".into(), ..caller.clone() };
    stated.bounds.rates[1] = Some(Rate { requests: 2, ..HOUR.unwrap() });
    assert_eq!((admit(&stated, 0), admit(&stated, 0)), (Ok(()), Ok(())));
    assert!(admit(&stated, 1).is_err());
    // So does what is refused for its scope, by whichever rate holds.
    let unscoped = Caller { name: "e".into(), scopes: Scopes::only(&[]), ..stated.clone() };
    assert!(matches!(admit(&unscoped, 0), Err(Refusal::Scope { .. })));
    assert_eq!(left(&unscoped, 0).map(|(left, _)| left), Some(1));
    // Of several at once each has left one less, in whatever order they are answered.
    let third = Caller { name: "d".into(), ..caller.clone() };
    let at_once: Vec<Admitted> = (0..3)
        .map(|_| router.admit_at(&third, &RATED, Incoming::default(), NOW).ok().unwrap())
        .collect();
    let left: Vec<u32> = at_once.iter().map(|one| one.usage().unwrap().remaining).collect();
    assert_eq!(left, [29, 28, 27]);
}

#[test]
fn a_request_says_how_it_ended_once() {
    let facts = Facts::default();
    let (lines, other) = (AuditLines::default(), AuditLines::default());
    let router = Router::new(facts.clone(), [lines.sink(), other.sink()]);
    let look = TOY.methods[0];
    let caller = somebody(&ALL);
    let patient = Caller { retries: true, ..somebody(&ALL) };
    let admit = |caller: &Caller| router.admit(caller, look, Incoming::default()).unwrap();
    admit(&caller).done();
    drop(admit(&caller));
    admit(&caller).finish::<()>(&Err(Error::new(Code::NotFound, "not there")));
    admit(&patient).failed(Code::Busy);
    admit(&patient).failed(Code::Conflict);
    router.refuse(&caller, look, 7, Code::InvalidQuery);
    let expected = [
        "a toy.look 0 ok",
        "a toy.look 0 given up",
        "a toy.look 0 NOT_FOUND",
        "a toy.look 0 BUSY",
        "a toy.look 0 CONFLICT",
        "a toy.look 7 INVALID_QUERY",
    ];
    assert_eq!(lines.take(), expected);
    assert_eq!(other.take(), expected, "each sink takes each line");
    let rejected = facts.rejected.load(Ordering::Relaxed);
    assert_eq!(rejected, 3, "who asks again by itself is not refused");
}

#[test]
fn an_answer_in_parts_has_no_bound_as_a_whole() {
    let router = Router::new(Facts::default(), []);
    let mut caller = somebody(&ALL);
    caller.bounds.reply_bytes = Some(500);
    let bound = |name| {
        let method = TOY.method(name).unwrap();
        router.admit(&caller, method, Incoming::default()).unwrap().reply_bytes()
    };
    assert_eq!((bound("look"), bound("watch")), (Some(500), None));
}

#[test]
fn a_dry_run_is_no_change() {
    let ask = |is_read_only| {
        let router = Router::new(Facts { is_read_only, ..Facts::default() }, []);
        let tidy = TOY.method("tidy").unwrap();
        let mut admitted = router.admit(&somebody(&ALL), tidy, Incoming::default()).unwrap();
        admitted.expect_change()
    };
    assert_eq!((ask(false), ask(true)), (Ok(()), Err(Refusal::ReadOnly)));
}

/// A protocol that changes something and does not ask fails in its tests.
#[cfg(debug_assertions)]
#[test]
#[should_panic(expected = "tidy is no dry run")]
fn a_change_that_the_router_has_not_decided_about_is_noticed() {
    let router = Router::new(Facts::default(), []);
    let tidy = TOY.method("tidy").unwrap();
    let mut admitted = router.admit(&somebody(&ALL), tidy, Incoming::default()).unwrap();
    let effect = omird_engine::Effect::Forgotten(1);
    admitted.note_receipt(&omird_engine::Receipt { effect, durable: true, seq: 1 });
}

#[test]
fn whoever_asked_to_be_held_to_reading_is() {
    let router = Router::new(Facts::default(), []);
    let caller = Caller { only_reads: true, ..Caller::trusted("test", "a") };
    let ask = |name| router.admit(&caller, TOY.method(name).unwrap(), Incoming::default());
    assert!(ask("look").is_ok());
    assert_eq!(ask("tidy").unwrap().expect_change(), Err(Refusal::OnlyReads));
    for change in ["put", "move", "save"] {
        assert_eq!(ask(change).err(), Some(Refusal::OnlyReads), "{change}");
    }
}

/// A row for messages of several requests.
static MESSAGE: Method = Method {
    payload: Payload::Message(100),
    ..method("message", Effect::ChangesUnlessDry, Payload::None, Scope("omir:read omir:write"))
};

#[test]
fn each_part_of_a_message_is_decided_counted_and_told_by_itself() {
    let lines = AuditLines::default();
    let router = Router::new(Facts { most: 1000, ..Facts::default() }, [lines.sink()]);
    let mut caller = somebody(&[Scope::READ]);
    caller.bounds.rates[0] = Some(Rate { requests: 3, per: Duration::from_secs(60) });
    let message = |bytes| {
        let incoming = Incoming { bytes, ..Incoming::default() };
        router.admit(&caller, &MESSAGE, incoming)
    };
    let [look, change] = ["look", "put"].map(|name| TOY.method(name).unwrap());
    let mut parts = Parts::of(message(90).unwrap());
    let denied = parts.admit(change, 20).map(Admitted::done).unwrap_err();
    assert_eq!(denied, Refusal::Scope { needed: Scope::WRITE, remedy: Some(Remedy::Unlock) });
    parts.admit(look, 30).unwrap().done();
    parts.admit(look, 31).unwrap().done();
    let too_often = parts.admit(look, 32).map(Admitted::done).unwrap_err();
    assert!(matches!(too_often, Refusal::TooOften { .. }), "the message counted as its first part");
    drop(parts);
    assert!(matches!(message(9).map(Admitted::done), Err(Refusal::TooOften { .. })));
    let expected = [
        "a toy.put 20 UNAUTHORIZED",
        "a toy.look 30 ok",
        "a toy.look 31 ok",
        "a toy.look 32 RATE_LIMITED",
        "a toy.message 9 RATE_LIMITED",
    ];
    assert_eq!(lines.take(), expected);
}

#[test]
fn a_message_without_parts_is_told_as_it_is() {
    let lines = AuditLines::default();
    let router = Router::new(Facts::default(), [lines.sink()]);
    let message = |caller: &Caller| router.admit(caller, &MESSAGE, Incoming::default());
    Parts::of(message(&somebody(&ALL)).unwrap()).failed(Code::InvalidQuery);
    let nobody = somebody(&[]);
    assert!(matches!(message(&nobody).map(Admitted::done), Err(Refusal::Scope { .. })));
    let expected = ["a toy.message 0 INVALID_QUERY", "a toy.message 0 UNAUTHORIZED"];
    assert_eq!(lines.take(), expected);
}

#[test]
fn an_unknown_parameter_is_named_with_the_nearest_known_one() {
    static NEAR: About = About {
        summary: "",
        parameters: &[
            Field::new("near", field::ANY_TEXT, ""),
            Field::new("radius", field::ANY_NUMBER, ""),
        ],
        payload: "",
        response: "",
    };
    let near = Method { about: &NEAR, ..*TOY.methods[0] };
    let check = |method: &Method, name: &str| {
        Message::check_parameters(method, &[(name.to_owned(), "1".to_owned())])
            .map_err(|error| (error.code, error.message))
    };
    let refused = |message: &str| Err((Code::InvalidQuery, message.to_owned()));
    assert_eq!(check(&near, "radius"), Ok(()));
    let expected = r#""raduis" is no parameter here; did you mean "radius"? known: near, radius"#;
    assert_eq!(check(&near, "raduis"), refused(expected));
    assert_eq!(check(&near, "at"), refused(r#""at" is no parameter here; known: near, radius"#));
    assert_eq!(check(TOY.methods[0], "at"), refused(r#""at" is no parameter here; known: none"#));
}
