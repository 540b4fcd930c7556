//! Clocks that are believed, and changes that are no step of them.

use super::*;

#[test]
fn a_clock_that_nobody_vouches_for_is_believed_after_a_while() {
    let (disk, clock) = lived();
    let known = clock_now(&clock);
    let over = Timestamp::from_micros(known + DAY).to_string();
    remember(&open(&disk, &clock), &record("fair", &format!(r#","validUntil":"{over}""#)));
    clock.reboot(known + 60 * DAY);
    let session = open(&disk, &clock);
    assert_eq!(session.sweep(false).expect("it is swept").expired, 0);
    clock.advance(seconds(2 * 86_400));
    assert_eq!(session.now().1, ClockState::Coarse);
    assert_eq!(session.sweep(false).expect("it is swept").expired, 1);
}

/// A board whose clock goes on from what it saved when it was shut down.
#[test]
fn what_came_in_by_a_clock_that_had_stood_still_is_dated_again() {
    let (disk, clock) = lived();
    let known = clock_now(&clock);
    clock.reboot(known + 20 * SECOND);
    let session = open(&disk, &clock);
    assert_eq!(state(&session), ClockState::Coarse);
    clock.advance(seconds(600));
    let here = Timestamp::from_micros(known + 610 * SECOND);
    remember(&session, &record("stamped", ""));
    remember(&session, &record("stated", &format!(r#","createdAt":"{here}""#)));
    remember(&session, &record("ancient", r#","createdAt":"2019-01-01T00:00:00Z""#));
    think_of(&session, "old");
    for id in ["stamped", "stated"] {
        assert_eq!(note(&get(&session, id)), None, "a clock that may be right is no news");
    }
    let mine = bytes(&session, "stamped");
    // A restart of the daemon alone, and five hours that nobody knew of.
    drop(session);
    let session = open(&disk, &clock);
    clock.advance(seconds(60));
    let off = 5 * HOUR;
    clock.set(known + off + 680 * SECOND, true);
    corrected(&session, 2);
    assert_eq!(micros(&get(&session, "stamped").created_at), known + off + 620 * SECOND);
    assert_eq!(micros(&get(&session, "stated").created_at), known + off + 610 * SECOND);
    assert_eq!(version(&get(&session, "ancient")), 1);
    let decay = get(&session, "old").decay.expect("it was thought of");
    assert_eq!(decay.last_access.as_ref().map(micros), Some(known + off + 620 * SECOND));
    let change = session.prepare(&mine, Encoding::Cbor, None).expect("it is valid");
    session.execute(change).expect("it is stored");
    assert_eq!(version(&get(&session, "stamped")), 2, "what one got is no change");
    let was = note(&get(&session, "stamped"));
    let offset = was.and_then(|note| note.get("offsetMicros")?.as_i64());
    assert_eq!(offset, Some(off));
}

#[test]
fn a_clock_that_only_drifted_was_right() {
    let (disk, clock) = lived();
    let known = clock_now(&clock);
    clock.reboot(known);
    let session = open(&disk, &clock);
    remember(&session, &record("seen", ""));
    // 100 ppm of a month.
    clock.advance(seconds(30 * 86_400));
    clock.set(known + 30 * DAY + 260 * SECOND, true);
    assert_eq!(session.now().0.as_micros(), known + 30 * DAY + 260 * SECOND);
    assert_eq!(clock_status(&session, "settling").as_bool(), Some(false));
    assert_eq!(version(&get(&session, "seen")), 1);
}

#[test]
fn a_leap_second_and_a_suspend_are_no_steps() {
    let (disk, clock) = lived();
    let session = open(&disk, &clock);
    let before = session.now().0;
    clock.set(before.as_micros() - SECOND, true);
    assert_eq!(session.now().0, before, "it stands");
    clock.advance(seconds(3));
    assert_eq!(session.now().0.as_micros(), before.as_micros() + 2 * SECOND);
    let left = retrievability(&session, "new");
    clock.advance(seconds(8 * 3600));
    assert!(retrievability(&session, "new") < left, "a night asleep is a night");
    assert_eq!(clock_status(&session, "steppedBySeconds").as_f64(), Some(0.0));
    assert_eq!(clock_status(&session, "corrected").as_u64(), Some(0));
}

#[test]
fn a_remote_date_is_taken_only_where_it_can_be_right() {
    let (disk, clock) = lived();
    let session = open(&disk, &clock);
    let now = clock_now(&clock);
    for (id, sent, taken) in [
        ("recent", now - HOUR, true),
        ("skewed", now + SECOND / 4, true),
        ("ahead", now + YEAR, false),
        ("ancient", now - 2 * DAY, false),
    ] {
        let json = record(id, "");
        let sent_at = Timestamp::from_micros(sent);
        let change = session
            .prepare_sent(json.as_bytes(), Encoding::Json, None, sent_at)
            .expect("it is valid");
        session.execute(change).expect("it is stored");
        let created = micros(&get(&session, id).created_at);
        assert_eq!(created, if taken { sent } else { now }, "{id}");
    }
    assert_eq!(session.now().0.as_micros(), now, "nobody drags ours");
}
