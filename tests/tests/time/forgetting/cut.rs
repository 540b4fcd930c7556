//! A life with sweeps, cut anywhere.

use super::*;
use omird::engine::testing::ByHand;

/// The day of the robot of [`phase`]; doing it again changes nothing.
const PHASES: [Duration; 7] =
    [Duration::ZERO, HOUR.saturating_mul(2), HOUR, DAY, DAY.saturating_mul(40), DAY, HOUR];

/// One part of a life in which every kind of sweep has something to do.
fn phase(session: Session, disk: &CutDisk, clock: &Arc<TestClock>, part: usize) -> Option<Session> {
    let put = |session: &Session, json: &str| -> Option<()> {
        let change = session.prepare(json.as_bytes(), Encoding::Json, None).expect("it is valid");
        session.execute(change).ok().map(drop)
    };
    let plain = |id: &str, importance: f64, more: &str| {
        format!(
            r#"{{"resourceType":"MemoryRecord","id":"{id}","content":"{id} {}",{more}
            "createdAt":"2026-06-01T00:00:00Z","importance":{importance}}}"#,
            "and so on ".repeat(20),
        )
    };
    match part {
        0 => {
            put(&session, r#"{"resourceType":"Entity","id":"cup","name":"Cup"}"#)?;
            put(&session, &cup("c1", 1, 2.0, "cam:1", ""))?;
            put(&session, &cup("c2", 2, 3.0, "cam:1", ""))?;
            put(&session, &cup("c3", 3, 1.0, "cam:2", ""))?;
            put(&session, &plain("shop", 0.9, r#""validUntil":"2026-06-02T00:00:00Z","#))?;
            put(&session, &plain("dull", 0.0, ""))?;
            put(&session, &plain("dear", 0.9, ""))?;
            put(&session, &plain("pinned", 0.0, r#""decay":{"anchored":true},"#))?;
        }
        1 | 4 => drop(session.sweep(false).ok()?),
        2 => {
            drop(session);
            let session = Session::open(disk, clock).ok()?;
            put(&session, &cup("c4", 4, 2.0, "cam:3", ""))?;
            return Some(session);
        }
        3 => {
            session.sweep(false).ok()?;
            session.compact(CompactionScope::All).ok()?;
        }
        5 => drop(session.compact(CompactionScope::All).ok()?),
        _ => {
            session.relieve(1);
            session.sweep(false).ok()?;
        }
    }
    Some(session)
}

/// Lives from `part` on; gives the part in which the power went, or the store at the end.
fn live_on(disk: &CutDisk, clock: &Arc<TestClock>, from: usize) -> Result<Session, usize> {
    let mut session = Some(Session::open(disk, clock).map_err(|_| from)?);
    for (part, wait) in PHASES.iter().enumerate().skip(from) {
        // Time had already passed where the power went.
        clock.advance(if part == from && from > 0 { Duration::ZERO } else { *wait });
        session = session.and_then(|session| phase(session, disk, clock, part));
        if session.is_none() || disk.is_off() {
            return Err(part);
        }
    }
    session.ok_or(PHASES.len())
}

#[test]
fn a_life_with_sweeps_cut_anywhere_ends_like_one_that_was_not() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = live_on(&disk, &clock, 0).expect("the disk is good");
    let (whole, believed) = (standing(&session), evidence(&session));
    drop(session);
    let left: Vec<&str> = whole.keys().map(String::as_str).collect();
    assert_eq!(left, ["c1", "cup", "dear", "pinned"], "all kinds of sweep had something to do");
    assert_eq!(believed, BTreeMap::from([("c1".to_owned(), 6.0)]));

    for cut in 0..disk.operations() {
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        disk.cut_at(cut);
        // The last operations are those of the stop.
        let part = live_on(&disk, &clock, 0).map_or_else(|part| part, |_| PHASES.len() - 1);
        for seed in [if cut % 2 == 0 { ONLY_SYNCED } else { EVERYTHING }, cut + 2] {
            let card = disk.survivors(seed);
            let session = Session::open(&card, &clock).expect("it opens");
            assert!(session.damage().is_empty(), "cut at {cut}: {:?}", session.damage());
            let here = standing(&session);
            if part > 0 {
                for id in ["cup", "dear", "pinned"] {
                    assert!(here.contains_key(id), "cut at {cut}, survivors {seed}: {id} is lost");
                }
                // Each source of phase 0 once: apart, or in one record.
                let known: f64 = evidence(&session).values().sum();
                assert!([4.0, 6.0].contains(&known), "cut at {cut}, survivors {seed}: {known}");
            }
            drop(session);
            let session = live_on(&card, &clock, part).expect("the disk is good");
            assert_eq!(standing(&session), whole, "cut at {cut} in {part}, survivors {seed}");
            assert_eq!(evidence(&session), believed, "cut at {cut} in {part}, survivors {seed}");
        }
    }
}
