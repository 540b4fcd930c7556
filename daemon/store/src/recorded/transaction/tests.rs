use super::*;

fn sample() -> Transaction {
    Transaction {
        seq: 9,
        at: Timestamp::from_micros(1_780_000_000_000_001),
        ops: vec![
            Op::Put { version: 2, resource: cbor::to_vec(&object(&[("id", "x".into())])) },
            Op::Forget {
                target: "Entity/y".parse().unwrap(),
                version: 4,
                who: RecordedOrigin::User,
            },
            Op::Forget {
                target: "Entity/z".parse().unwrap(),
                version: 2,
                who: RecordedOrigin::Rule,
            },
            Op::Forget {
                target: "Entity/w".parse().unwrap(),
                version: 2,
                who: RecordedOrigin::Merging(0),
            },
            Op::Touch(Touch {
                target: "MemoryRecord/x".into(),
                last_access: 5,
                access_count: 3,
                half_life_hours: 12.5,
            }),
            Op::Boot { count: 8 },
            Op::Mark(crate::recorded::mark::tests::sample()),
        ],
    }
}

#[test]
fn a_transaction_is_read_back_with_its_resources_in_place() {
    let transaction = sample();
    let mut payload = Vec::new();
    let places = transaction.encode(&mut payload);
    let (read, found) = Transaction::decode(&payload).unwrap();
    assert_eq!(read, transaction);
    assert_eq!(found, places);
    let Op::Put { resource, .. } = &transaction.ops[0] else { unreachable!() };
    assert!(payload[places[0].unwrap()..].starts_with(resource));
}

#[test]
fn an_access_state_is_read_as_it_was_written_before() {
    let step = |more: &[(&str, Value)]| {
        let mut members = vec![("op", "touch".into()), ("ref", "MemoryRecord/x".into())];
        members.extend_from_slice(more);
        let head = object(&[("seq", int(1u64)), ("at", int(2)), ("ops", int(1))]);
        let mut payload = cbor::to_vec(&head);
        cbor::write(&object(&members), &mut payload);
        Transaction::decode(&payload).map(|(transaction, _)| transaction.ops)
    };
    let old = [("lastAccess", int(5)), ("accessCount", int(3)), ("halfLifeHours", float(12.5))];
    assert_eq!(step(&old).unwrap(), [sample().ops[4].clone()]);
    let list = [int(5), int(3), float(12.5)];
    let shorter = [("state", Value::Array(list.to_vec()))];
    assert_eq!(step(&shorter).unwrap(), [sample().ops[4].clone()]);
    let short = [("state", Value::Array(list[..2].to_vec()))];
    assert!(step(&short).is_err());
}

#[test]
fn a_tombstone_is_read_as_it_was_written_before() {
    let head = object(&[("seq", int(1u64)), ("at", int(2)), ("ops", int(1))]);
    let mut payload = cbor::to_vec(&head);
    let step = [("op", "forget".into()), ("ref", "Entity/y".into()), ("version", int(4u64))];
    cbor::write(&object(&step), &mut payload);
    let (read, _) = Transaction::decode(&payload).unwrap();
    assert_eq!(read.ops, [sample().ops[1].clone()], "by someone, as far as anybody knows");
}

#[test]
fn what_is_alike_is_written_together_and_stays_apart() {
    let forget = |n: usize, who| Op::Forget {
        target: format!("MemoryRecord/m{n}").parse().unwrap(),
        version: n as u64,
        who,
    };
    let touch = |n: usize| {
        Op::Touch(Touch {
            target: format!("MemoryRecord/m{n}"),
            last_access: 5,
            access_count: 3,
            half_life_hours: 12.5,
        })
    };
    let put = sample().ops[0].clone();
    let mut ops = vec![put.clone()];
    ops.extend((0..3).map(|n| forget(n, RecordedOrigin::Merging(0))));
    ops.push(put);
    ops.extend((3..9).map(|n| forget(n, RecordedOrigin::Merging(4))));
    ops.extend((9..12).map(|n| forget(n, RecordedOrigin::Rule)));
    ops.extend((0..2 * TOGETHER + 1).map(touch));
    let transaction = Transaction { ops, ..sample() };
    let mut payload = Vec::new();
    let places = transaction.encode(&mut payload);
    let (head, _) = cbor::read_item(&payload, &Limits::default()).unwrap();
    assert_eq!(head.get("ops").and_then(Value::as_u64), Some(5 + 3));
    assert_eq!(Transaction::decode(&payload).unwrap(), (transaction, places));
}

#[test]
fn who_forgets_is_told_by_the_name_of_the_record() {
    let name = [("resourceType", "MemoryRecord".into()), ("id", "kept".into())];
    let record = Op::Put { version: 2, resource: cbor::to_vec(&object(&name)) };
    let transaction = Transaction { ops: vec![record, Op::Boot { count: 1 }], ..sample() };
    let kept = DeletionOrigin::Merging(RefKey::of_text("MemoryRecord/kept"));
    assert_eq!(transaction.by(RecordedOrigin::Merging(0)), kept);
    assert_eq!(transaction.by(RecordedOrigin::Rule), DeletionOrigin::Rule);
    // An unclear origin counts as a user's, so nothing is kept for it.
    for who in [RecordedOrigin::User, RecordedOrigin::Merging(1), RecordedOrigin::Merging(2)] {
        assert_eq!(transaction.by(who), DeletionOrigin::User);
    }
    assert_eq!(sample().by(RecordedOrigin::Merging(0)), DeletionOrigin::User, "it has no type");
}

#[test]
fn a_number_that_nothing_could_follow_is_refused() {
    let mut payload = Vec::new();
    Transaction { seq: u64::MAX, ..sample() }.encode(&mut payload);
    assert!(Transaction::decode(&payload).is_err());
}

#[test]
fn a_cut_payload_is_refused_at_every_byte() {
    let mut payload = Vec::new();
    sample().encode(&mut payload);
    for cut in 0..payload.len() {
        assert!(Transaction::decode(&payload[..cut]).is_err(), "cut at {cut}");
    }
}
