//! The table against a count over all that is in it.

use proptest::prelude::*;

use super::*;

/// The latest use of a thing.
fn last(table: &mut Table, tenant: &str, thing: u8) -> Option<Timestamp> {
    table.latest(tenant, &[[thing; 16]])[0]
}

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
    assert_eq!(last(&mut table, "a", 1), Some(Timestamp::from_unix(20, 0)));
    assert_eq!(table.usage("b", &[1; 16]), Usage::default(), "of another tenant");
    assert_eq!((table.generation("a"), table.generation("b")), (2, 0));

    table.put("a", [2; 16], row(2, 99, &[]));
    assert_eq!(table.generation("a"), 2, "as new as what is there");
    table.put("a", [2; 16], row(3, 5, &[(1, 2, None)]));
    let used = table.usage("a", &[1; 16]);
    assert_eq!((used.uses, used.successes, used.mean_ms), (2, 2.0, Some(100)));
    assert_eq!(last(&mut table, "a", 1), Some(Timestamp::from_unix(10, 0)));
    assert_eq!((table.by_id("a", 3), table.by_id("b", 3)), (Some([2; 16]), None));

    table.remove("a", &[1; 16], 9);
    table.remove("a", &[2; 16], 9);
    let generation = table.generation("a");
    table.remove("a", &[2; 16], 9);
    assert_ne!(table.generation("a"), generation, "what counts no more may be in an answer");
    assert_eq!(table.usage("a", &[1; 16]), Usage::default());
    assert_eq!((table.bytes, table.order.len()), (0, 0));
}

#[test]
fn those_stored_first_stop_counting_whatever_the_order_they_are_put_in() {
    let one = row(0, 0, &[(1, 2, None)]).bytes();
    let filled = |seqs: &[u8]| {
        let mut table = Table::new(3 * one + THING);
        for &seq in seqs {
            table.put("a", [seq; 16], row(u64::from(seq), 0, &[(1, 2, None)]));
            assert!(table.bytes <= table.most);
        }
        assert_eq!(table.usage("a", &[1; 16]).uses, 3);
        assert!(table.is_cut());
        (1..=9).filter(|seq| table.seq("a", &[*seq; 16]).is_some()).collect::<Vec<u8>>()
    };
    for order in
        [[1, 2, 3, 4, 5, 6, 7, 8, 9], [9, 8, 7, 6, 5, 4, 3, 2, 1], [5, 9, 1, 7, 3, 8, 2, 6, 4]]
    {
        assert_eq!(filled(&order), [7, 8, 9], "{order:?}");
    }
}

#[test]
fn what_was_forgotten_and_stored_again_stays() {
    let mut table = Table::new(1 << 20);
    table.put("a", [1; 16], row(6, 10, &[(1, 2, None)]));
    let generation = table.generation("a");
    // The announcement of an earlier transaction comes after the answer of a later one.
    table.remove("a", &[1; 16], 5);
    assert_eq!((table.seq("a", &[1; 16]), table.generation("a")), (Some(6), generation));
    table.remove("a", &[1; 16], 7);
    assert_eq!(table.seq("a", &[1; 16]), None);
}

#[test]
fn tenants_that_have_nothing_leave_nothing() {
    let mut table = Table::new(1 << 20);
    let mut seen = std::collections::HashSet::new();
    assert!(seen.insert(table.generation("a")));
    for at in 0..5 {
        table.put("a", [1; 16], row(2 * at + 1, 10, &[(1, 2, None)]));
        assert!(seen.insert(table.generation("a")));
        table.remove("a", &[1; 16], 2 * at + 2);
        assert!(seen.insert(table.generation("a")), "an answer of before is none any more");
        table.remove(&format!("b{at}"), &[1; 16], 1);
    }
    assert!(table.tenants.is_empty());
}

#[test]
fn a_change_costs_by_its_uses_and_not_by_the_table() {
    // 3,000 experiences of the same 256 nodes, of which the newest is updated again and again. Looking at all rows for each
    // node would be 2e8 comparisons for each update.
    let uses: Vec<(u8, u8, Option<u32>)> = (0..=255).map(|thing| (thing, 2, None)).collect();
    let mut table = Table::new(1 << 30);
    for at in 0..3000_u64 {
        let key = u128::from(at).to_be_bytes();
        table.put("a", key, row(at + 1, 10, &uses));
    }
    let began = std::time::Instant::now();
    let key = 2999_u128.to_be_bytes();
    for at in 0..100_u64 {
        // The same end as before, and then an earlier one: the second leaves the latest use unknown.
        table.put("a", key, row(4000 + 2 * at, 20, &uses));
        table.put("a", key, row(4001 + 2 * at, 10, &uses));
    }
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(last(&mut table, "a", 7), Some(Timestamp::from_unix(10, 0)));
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
                table.remove(tenant, &[key; 16], seq as u64 + 1);
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
                prop_assert_eq!(table.latest(tenant, &[[thing; 16]])[0], last);
            }
        }
        let bytes: usize = model.values().map(Row::bytes).sum();
        let things: usize = table.tenants.values().map(|rows| rows.things.len()).sum();
        prop_assert_eq!(table.bytes, bytes + things * THING);
    }
}
