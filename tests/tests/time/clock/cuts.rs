//! The power goes while memories are redated.

use omird_tests::cut_disk::{EVERYTHING, ONLY_SYNCED};

use super::*;

/// The card loses its power at every operation while memories are redated. None is lost, none is
/// dated twice, and whatever was set right by the end is right.
#[test]
fn a_cut_at_any_operation_dates_nothing_twice() {
    const RECORDS: usize = 6;
    for cut in 0.. {
        let (disk, clock) = lived();
        let known = clock_now(&clock);
        clock.reboot(0);
        let session = open(&disk, &clock);
        for n in 0..RECORDS {
            clock.advance(seconds(1));
            remember(&session, &record(&format!("r{n}"), ""));
        }
        let booted = known + 3 * DAY;
        disk.cut_at(disk.operations() + cut);
        clock.set(booted + 6 * SECOND, true);
        let is_done = || clock_status(&session, "corrected").as_u64() == Some(RECORDS as u64);
        eventually("it is done or cut", || is_done() || disk.is_off());
        drop(session);
        let is_whole = !disk.is_off();
        for survivors in [ONLY_SYNCED, EVERYTHING, 2 * cut + 2] {
            let card = disk.survivors(survivors);
            let again = after_a_cut(booted + HOUR);
            let session = open(&card, &again);
            // The log alone tells if the daemon knew that the clock was set.
            let goes_on = || clock_status(&session, "settling").as_bool() == Some(true);
            eventually("it comes to an end", || {
                again.advance(seconds(1));
                !goes_on()
            });
            let mut dated_again = 0;
            for n in 0..RECORDS {
                let record = get(&session, &format!("r{n}"));
                let created = micros(&record.created_at);
                let at = SECOND * (n as i64 + 1);
                let context = format!("r{n}, cut at {cut}, survivors {survivors}");
                match state_of(&record).as_deref() {
                    Some("unknown") => {
                        assert_eq!((created, version(&record)), (known + at, 1), "{context}");
                    }
                    Some("corrected") => {
                        assert_eq!((created, version(&record)), (booted + at, 2), "{context}");
                        dated_again += 1;
                    }
                    other => panic!("{context}: {other:?}"),
                }
            }
            assert!(dated_again == 0 || dated_again == RECORDS, "cut at {cut}: {dated_again} only");
            assert!(!is_whole || dated_again == RECORDS, "whole at {cut}");
        }
        if is_whole {
            assert!(cut > 2, "there were operations to cut: {cut}");
            break;
        }
    }
}

/// The clocks of the machine of a test when it is started once more, with the wall clock at `micros`.
fn after_a_cut(micros: i64) -> Arc<TestClock> {
    let clock = TestClock::new();
    clock.reboot(0);
    clock.reboot(micros);
    clock
}

/// The clock is set while the daemon is away, and the power goes while it starts. Either all that came
/// in before is put right, memories and accesses, or the store stands where it stood.
#[test]
fn a_cut_while_the_daemon_finds_the_clock_set_moves_all_or_nothing() {
    let (mut has_moved, mut has_stood) = (false, false);
    for cut in 0.. {
        let (disk, clock) = lived();
        let known = clock_now(&clock);
        clock.reboot(0);
        let session = open(&disk, &clock);
        clock.advance(seconds(1));
        remember(&session, &record("seen", ""));
        think_of(&session, "old");
        drop(session);
        let booted = known + 3 * DAY;
        clock.set(booted + SECOND, true);
        disk.cut_at(disk.operations() + cut);
        if let Ok(session) = Session::open(&disk, &clock) {
            let is_done = || clock_status(&session, "settling").as_bool() == Some(false);
            let mut looks = 0;
            eventually("it is done or cut", || {
                clock.advance(seconds(1));
                looks += 1;
                (looks > 20 && is_done()) || disk.is_off()
            });
        }
        for survivors in [ONLY_SYNCED, EVERYTHING, 2 * cut + 2] {
            let context = format!("cut at {cut}, survivors {survivors}");
            let card = disk.survivors(survivors);
            let again = after_a_cut(booted + HOUR);
            let session = open(&card, &again);
            eventually("it comes to an end", || {
                again.advance(seconds(1));
                clock_status(&session, "settling").as_bool() == Some(false)
            });
            let decay = get(&session, "old").decay.expect("it was thought of");
            let thought_of = decay.last_access.as_ref().map(micros).expect("it was thought of");
            let seen = micros(&get(&session, "seen").created_at);
            assert_eq!(seen, thought_of, "{context}");
            match seen - SECOND {
                at if at == booted => has_moved = true,
                at if at == known => has_stood = true,
                at => panic!("{context}: {at}"),
            }
        }
        if !disk.is_off() {
            break;
        }
    }
    assert!(has_moved && has_stood, "there were operations to cut");
}
