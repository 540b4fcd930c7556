//! A clock that was a year ahead, and was set back.

use omir_core::tier::Tier;
use omird::engine::CompactionScope;
use omird::engine::testing::ByHand;

use super::*;

#[test]
fn a_clock_that_was_a_year_ahead_leaves_nothing_unfaded_and_the_order_stands() {
    let (disk, clock) = lived();
    let known = clock_now(&clock);
    clock.reboot(known + YEAR);
    let session = open(&disk, &clock);
    assert_eq!((state(&session), session.now().0.as_micros()), (ClockState::Coarse, known + YEAR));
    think_of(&session, "old");
    remember(&session, &record("ahead", ""));
    clock.advance(seconds(10));
    clock.set(known + 10 * SECOND, true);
    let now = || session.now().0.as_micros();
    assert_eq!(now(), known + 10 * SECOND, "a synchronised clock wins");
    let last = || get(&session, "old").decay.and_then(|decay| Some(micros(&decay.last_access?)));
    eventually("it was thought of ten seconds ago", || last() == Some(known));
    corrected(&session, 1);
    let ahead = get(&session, "ahead");
    assert_eq!((micros(&ahead.created_at), state_of(&ahead)), (known, Some("corrected".into())));
    assert_eq!(ahead.decay, None, "it fades from its date on");
    clock.advance(seconds(2 * 86_400));
    let faded = retrievability(&session, "ahead");
    assert!(faded < 0.9, "it fades from now on, not in a year: {faded}");
    // A record that comes later is ordered later, whatever its date.
    let at = Query { as_of: Some(Timestamp::from_micros(known + YEAR - 1)), ..Query::default() };
    remember(&session, &record("later", ""));
    let seen = session.recall(&at).expect("a recall").total;
    assert_eq!(seen, 2, "before the year ahead there were two");
    drop(session);
    clock.reboot(0);
    let session = open(&disk, &clock);
    let dated = session.now().0.as_micros();
    assert!((known..known + 3 * DAY).contains(&dated), "the year ahead is gone for good");
}

#[test]
fn a_clock_that_was_a_year_ahead_loses_nothing_for_good() {
    let (disk, clock) = lived();
    let known = clock_now(&clock);
    let until = |at: i64| Timestamp::from_micros(at).to_string();
    {
        let session = open(&disk, &clock);
        remember(&session, &record("fair", &format!(r#","validUntil":"{}""#, until(known + DAY))));
        remember(&session, &record("door", ""));
        remember(&session, &record("door", r#","importance":0.5"#));
    }
    let before = Query { as_of: Some(Timestamp::from_micros(known - DAY)), ..Query::default() };
    let past = |session: &Session| session.recall(&before).expect("a recall").total;
    // Two starts, so that the second has a past that is ahead as well.
    for start in 0..2 {
        clock.reboot(known + YEAR + start * DAY);
        let session = open(&disk, &clock);
        assert_eq!(state(&session), ClockState::Coarse);
        clock.advance(seconds(3600));
        assert_eq!(session.sweep(false).expect("it is swept").expired, 0);
        let done = session.compact(CompactionScope::All).expect("the disk is good");
        assert_eq!(done.superseded, 0, "the history of a week is kept");
        bytes(&session, "fair");
        assert_eq!(past(&session), 1);
    }
    clock.reboot(known + DAY);
    let session = open(&disk, &clock);
    clock.set(known + DAY, true);
    assert_eq!(session.now().0.as_micros(), known + DAY);
    bytes(&session, "fair");
    // By a clock that is right it is over a month later, and the week of history with it.
    clock.advance(seconds(40 * 86_400));
    assert_eq!(session.sweep(false).expect("it is swept").expired, 1);
    assert!(session.compact(CompactionScope::All).expect("the disk is good").superseded > 0);
}

#[test]
fn tiers_follow_the_date_and_not_an_order_that_is_a_year_ahead() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let right = micros(&"2026-06-01T00:00:00Z".parse().expect("an instant"));
    clock.set(right + YEAR, false);
    let session = open(&disk, &clock);
    remember(&session, &record("ahead", ""));
    clock.set(right, true);
    remember(&session, &record("after", ""));
    corrected(&session, 1);
    clock.advance(seconds(2 * 3600));
    for id in ["ahead", "after"] {
        assert_eq!(get(&session, id).tier, Some(Tier::Session), "{id}");
        let explained =
            session.explain(&format!("MemoryRecord/{id}").parse().expect("a reference"));
        let explained = explained.expect("it is known");
        let next = explained.get("nextMove").expect("it moves on").get("at");
        let next: Instant =
            next.and_then(Value::as_str).expect("it is dated").parse().expect("a date");
        assert!(micros(&next) < right + YEAR, "{next:?}");
    }
}
