//! The table against a count over all that is in it.

use proptest::prelude::*;

use super::*;

fn row(seq: u64, finished: i64, uses: &[(u8, u8, Option<u32>)]) -> Row {
    let used =
        |&(thing, halves, took): &(u8, u8, Option<u32>)| Use { thing: [thing; 16], halves, took };
    Row {
        experience_id: seq,
        seq,
        finished: Timestamp::from_unix(finished, 0),
        uses: uses.iter().map(used).collect(),
    }
}

#[test]
fn uses_are_added_replaced_and_taken_back() {
    let mut table = Table::new(1 << 20);
    assert_eq!(table.usage("a", &[1; 16]), Usage::default());
    table.put("a", [1; 16], row(1, 10, &[(1, 2, Some(100)), (2, 0, None)]));
    table.put("a", [2; 16], row(2, 20, &[(1, 1, Some(201)), (1, 0, None)]));
    let used = table.usage("a", &[1; 16]);
    assert_eq!((used.uses, used.successes, used.mean_ms), (3, 1.5, Some(151)));
    assert_eq!(used.last, Some(Timestamp::from_unix(20, 0)));
    assert_eq!(table.usage("b", &[1; 16]), Usage::default(), "of another tenant");
    assert_eq!((table.generation("a"), table.generation("b")), (2, 0));

    table.put("a", [2; 16], row(2, 99, &[]));
    assert_eq!(table.generation("a"), 2, "as new as what is there");
    table.put("a", [2; 16], row(3, 5, &[(1, 2, None)]));
    let used = table.usage("a", &[1; 16]);
    assert_eq!((used.uses, used.successes, used.mean_ms), (2, 2.0, Some(100)));
    assert_eq!(used.last, Some(Timestamp::from_unix(10, 0)));
    assert_eq!((table.by_id("a", 3), table.by_id("b", 3)), (Some([2; 16]), None));

    table.remove("a", &[1; 16]);
    table.remove("a", &[2; 16]);
    let generation = table.generation("a");
    table.remove("a", &[2; 16]);
    assert_eq!(table.generation("a"), generation + 1, "what counts no more may be in an answer");
    assert_eq!(table.usage("a", &[1; 16]), Usage::default());
    assert_eq!((table.bytes, table.order.len()), (0, 0));
}

#[test]
fn the_oldest_stop_counting_where_there_is_no_room() {
    let one = row(0, 0, &[(1, 2, None)]).bytes();
    let mut table = Table::new(3 * one + THING);
    for at in 0..10_u8 {
        table.put("a", [at; 16], row(u64::from(at) + 1, i64::from(at), &[(1, 2, None)]));
        assert!(table.bytes <= table.most);
    }
    assert_eq!(table.usage("a", &[1; 16]).uses, 3);
    assert_eq!((table.seq("a", &[6; 16]), table.seq("a", &[7; 16])), (None, Some(8)));
}

#[test]
fn an_experience_id_is_twelve_digits() {
    assert_eq!(parse_id("exp_0000000000ff"), Some(255));
    for text in
        ["exp_ff", "exp_0000000000FF", "exp_0000000000fg", "0000000000ff", "exp_+000000000ff"]
    {
        assert_eq!(parse_id(text), None, "{text}");
    }
}

/// A row's tenant, key, time, and uses.
type Step = (bool, u8, u8, bool, Vec<(u8, u8, Option<u32>)>);

fn step() -> impl Strategy<Value = Step> {
    let used = (0..4_u8, 0..3_u8, proptest::option::of(0..1000_u32));
    (any::<bool>(), 0..6_u8, 0..9_u8, any::<bool>(), proptest::collection::vec(used, 0..5))
}

proptest! {
    #[test]
    fn the_counts_are_those_of_the_rows(steps in proptest::collection::vec(step(), 0..40)) {
        let mut table = Table::new(usize::MAX);
        let mut model: HashMap<(&str, u8), Row> = HashMap::new();
        for (seq, (is_a, key, finished, goes, uses)) in steps.into_iter().enumerate() {
            let tenant = if is_a { "a" } else { "b" };
            if goes {
                table.remove(tenant, &[key; 16]);
                model.remove(&(tenant, key));
            } else {
                let row = row(seq as u64 + 1, i64::from(finished), &uses);
                table.put(tenant, [key; 16], row.clone());
                model.insert((tenant, key), row);
            }
        }
        for tenant in ["a", "b"] {
            for thing in 0..4_u8 {
                let rows = || model.iter().filter(|((of, _), _)| *of == tenant).map(|(_, row)| row);
                let of = |row: &Row| -> Vec<Use> {
                    row.uses.iter().filter(|used| used.thing == [thing; 16]).cloned().collect()
                };
                let uses: Vec<Use> = rows().flat_map(of).collect();
                let found = table.usage(tenant, &[thing; 16]);
                prop_assert_eq!(found.uses, uses.len() as u64);
                let halves: u64 = uses.iter().map(|used| u64::from(used.halves)).sum();
                prop_assert_eq!(found.successes, halves as f64 / 2.0);
                prop_assert_eq!(found.mean_ms.is_some(), uses.iter().any(|used| used.took.is_some()));
                let last = rows().filter(|row| !of(row).is_empty()).map(|row| row.finished).max();
                prop_assert_eq!(found.last, last);
            }
        }
        let bytes: usize = model.values().map(Row::bytes).sum();
        let things: usize = table.tenants.values().map(|rows| rows.things.len()).sum();
        prop_assert_eq!(table.bytes, bytes + things * THING);
    }
}
