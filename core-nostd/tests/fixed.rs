//! Records of fixed capacity beside the typed model: the same bytes, and the same memory back.
//!
//! Invariant 30 of ARCHITECTURE.md.

mod arbitrary;

use std::num::NonZeroU32;

use nalgebra::Point3;
use omir_core::cbor;
use omir_core::confidence::Beta;
use omir_core::decode::Limits;
use omir_core::fixed::{
    BootClock, Confidence, Decay, Id, Length, Moment, NoClock, Pose, ReadError, ReadErrorKind,
    Record, Reference, Text, Unit, Unknown, Uptime, WriteError,
};
use omir_core::forgetting::HalfLife;
use omir_core::geo::GeoPoint;
use omir_core::instant::{Instant, Timestamp};
use omir_core::model::{self, MemoryRecord, Resource};
use omir_core::number::Number;
use omir_core::space::unit_quaternion;
use omir_core::spatial::{self, SpatialPose};
use omir_core::tier::Tier;
use omir_core::value::Value;
use omir_core::vocabulary::{ExperienceType, Kind};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::{Index, select};

type Small = Record<24, 64, 3>;
type Roomy = Record<128, 4096, 8>;

/// Start number 7, which began then; of no other is anything known.
const CLOCK: BootClock = BootClock { boot: 7, started: Timestamp::from_unix(1_780_141_325, 5_000) };

fn timestamp() -> BoxedStrategy<Timestamp> {
    prop_oneof![
        (-62_167_219_200..=253_402_300_799_i64, 0..1_000_000_000_u32)
            .prop_map(|(secs, nanos)| Timestamp::from_unix(secs, nanos)),
        (0..4_000_000_000_i64, select(&[0, 5_000_000, 7_000][..]))
            .prop_map(|(secs, nanos)| Timestamp::from_unix(secs, nanos)),
    ]
    .boxed()
}

fn moment() -> BoxedStrategy<Moment> {
    let uptime = (0..1_u64 << 50).prop_map(|micros| Uptime { boot: 7, micros });
    prop_oneof![timestamp().prop_map(Moment::At), uptime.prop_map(Moment::SinceBoot)].boxed()
}

/// Every width of float, and those an encoder might take for integers.
fn float() -> BoxedStrategy<f64> {
    prop_oneof![
        -1e3..1e3_f64,
        any::<i16>().prop_map(f64::from),
        any::<f32>().prop_map(f64::from).prop_filter("finite", |float| float.is_finite()),
        any::<f64>().prop_filter("finite", |float| float.is_finite()),
    ]
    .boxed()
}

fn unit() -> BoxedStrategy<Unit> {
    prop_oneof![0.0..=1.0_f64, Just(0.5), Just(0.0), Just(1.0)]
        .prop_map(|number| Unit::new(number).unwrap())
        .boxed()
}

fn positive() -> BoxedStrategy<f64> {
    prop_oneof![1e-3..1e5_f64, Just(168.0), Just(1.0)].boxed()
}

fn word<T: Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> BoxedStrategy<Option<T>> {
    of(select(all)).boxed()
}

fn pose() -> BoxedStrategy<Pose<24>> {
    let frame = || "[a-zü_]{1,12}".prop_map(|name| name.as_str().try_into().unwrap());
    let geo = (-90.0..=90.0_f64, -180.0..=180.0_f64, of(-1e4..1e4_f64))
        .prop_map(|(lat, lon, alt)| GeoPoint::new(lat, lon, alt).unwrap());
    let turn = prop::array::uniform4(-1.0..1.0_f64).prop_filter_map("a rotation", unit_quaternion);
    (frame(), prop::array::uniform3(float()), of(turn), of(moment()), of(frame()), of(geo))
        .prop_map(|(frame, [x, y, z], orientation, stamp, child_frame, geo)| Pose {
            orientation,
            stamp,
            child_frame,
            geo,
            ..Pose::new(frame, Point3::new(x, y, z))
        })
        .boxed()
}

fn record() -> BoxedStrategy<Small> {
    let id = || "[A-Za-z0-9._:-]{1,24}".prop_map(|id| Id::try_from(id.as_str()).unwrap());
    let content = "[a-z ü]{0,32}".prop_map(|text| Text::try_from(text.as_str()).unwrap());
    let confidence = (of((positive(), positive())), of(unit())).prop_map(|(both, calibrated)| {
        Confidence { posterior: both.and_then(|(a, b)| Beta::new(a, b)), calibrated }
    });
    let decay = (of(positive()), of(moment()), of(any::<u32>()), of(any::<bool>())).prop_map(
        |(hours, last_access, access_count, anchored)| Decay {
            half_life: hours.and_then(HalfLife::new),
            last_access,
            access_count,
            anchored,
        },
    );
    let reference = "(MemoryRecord|Entity|Relationship|Episode)/[a-z0-9.-]{1,24}"
        .prop_map(|name| Reference::try_from(name.as_str()).unwrap());
    let words = (word(Kind::ALL), word(ExperienceType::ALL), word(&Tier::ALL));
    let times = (moment(), of(moment()), of(moment()));
    let numbers = (of(unit()), of(confidence), of(decay), of(any::<NonZeroU32>()));
    (id(), content, words, times, numbers, vec(reference, 0..=3), of(pose()))
        .prop_map(|(id, content, words, times, numbers, references, pose)| Record {
            kind: words.0,
            experience_type: words.1,
            tier: words.2,
            event_time: times.1,
            importance: numbers.0,
            confidence: numbers.1,
            decay: numbers.2,
            entity_refs: references.into_iter().collect(),
            valid_until: times.2,
            version: numbers.3,
            pose,
            ..Record::new(id, content, times.0)
        })
        .boxed()
}

/// The same record, typed.
fn typed(record: &Small) -> MemoryRecord {
    let instant = |moment: Moment| Instant::from(moment.at(&CLOCK).unwrap());
    let number = |float: f64| Number::from_f64(float).unwrap();
    let id = record.id.as_str().parse().unwrap();
    let mut typed = MemoryRecord::new(id, &*record.content, instant(record.created_at));
    typed.kind = record.kind;
    typed.experience_type = record.experience_type;
    typed.tier = record.tier;
    typed.event_time = record.event_time.map(instant);
    typed.importance = record.importance.map(|unit| number(unit.get()));
    typed.confidence = record.confidence.map(|confidence| model::Confidence {
        alpha: confidence.posterior.map(|beta| number(beta.alpha())),
        beta: confidence.posterior.map(|beta| number(beta.beta())),
        calibrated: confidence.calibrated.map(|unit| number(unit.get())),
    });
    typed.decay = record.decay.map(|decay| model::Decay {
        half_life_hours: decay.half_life.map(|half_life| number(half_life.hours())),
        last_access: decay.last_access.map(instant),
        access_count: decay.access_count.map(Number::from),
        anchored: decay.anchored,
    });
    if !record.entity_refs.is_empty() {
        let name = |reference: &Reference<24>| {
            format!("{}/{}", reference.kind, reference.id.as_str())
                .parse::<omir_core::reference::Ref>()
                .unwrap()
                .into()
        };
        typed.entity_refs = Some(record.entity_refs.iter().map(name).collect());
    }
    typed.valid_until = record.valid_until.map(instant);
    typed.version = record.version.map(|version| Number::from(version.get()));
    typed.extension = record.pose.as_ref().map(|pose| {
        let mut same = SpatialPose::new(pose.frame.as_str(), pose.position);
        same.orientation = pose.orientation;
        same.stamp = pose.stamp.map(instant);
        same.child_frame = pose.child_frame.as_ref().map(|frame| frame.as_str().into());
        same.geo = pose.geo;
        vec![same.to_extension()]
    });
    typed
}

fn written(record: &Small) -> Vec<u8> {
    let mut bytes = heapless::Vec::<u8, 2048>::new();
    record.write(&CLOCK, &mut bytes).unwrap();
    bytes.to_vec()
}

fn example() -> Small {
    let id = Id::try_from("bump-1").unwrap();
    let created = Moment::SinceBoot(Uptime { boot: 7, micros: 1_000_000 });
    Record::new(id, Text::try_from("bumper").unwrap(), created)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_same_record_has_the_same_bytes(record in record()) {
        let resource: Resource = typed(&record).into();
        let bytes = written(&record);
        prop_assert_eq!(&bytes, &cbor::to_vec(&resource.to_value()));
        // And they are valid.
        let value = cbor::from_slice(&bytes, &Limits::default()).unwrap();
        prop_assert_eq!(Resource::from_value(value), Ok(resource));

        let mut length = Length::default();
        record.write(&CLOCK, &mut length).unwrap();
        prop_assert_eq!(length.0, bytes.len());
    }

    #[test]
    fn what_is_kept_comes_back_as_it_was(record in record()) {
        let mut bytes = heapless::Vec::<u8, 2048>::new();
        record.write_kept(&mut bytes).unwrap();
        prop_assert_eq!(Small::read(&bytes), Ok(record.clone()));
        // A record that is handed over comes back dated.
        let dated = Small::read(&written(&record)).unwrap();
        prop_assert_eq!(written(&dated), written(&record));
        prop_assert_eq!(Some(dated.created_at), record.created_at.at(&CLOCK).map(Moment::At));
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        record in record(),
        changes in vec((any::<Index>(), any::<u8>()), 0..4),
        end in any::<Index>(),
        cut in any::<bool>(),
    ) {
        let mut bytes = written(&record);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if cut {
            bytes.truncate(end.index(bytes.len()));
        }
        for unknown in [Unknown::Refuse, Unknown::Skip] {
            match Small::read_with(&bytes, unknown) {
                Ok((record, _)) => prop_assert_eq!(Small::read(&kept(&record)), Ok(record)),
                Err(error) => prop_assert!(error.at <= bytes.len(), "{error}"),
            }
        }
    }

    #[test]
    fn bytes_of_no_meaning_are_refused(bytes in vec(any::<u8>(), 0..64)) {
        prop_assert!(Small::read_with(&bytes, Unknown::Skip).is_err());
        prop_assert!(Decay::read(&bytes).is_err() || bytes == [0xA0]);
    }

    /// Records of others with fields that this has no room for: the rest agrees with the model.
    #[test]
    fn records_of_others_are_read_or_refused_for_a_reason(value in arbitrary::resource()) {
        let bytes = cbor::to_vec(&value);
        let is_record = value.get("resourceType").and_then(Value::as_str) == Some("MemoryRecord");
        match Roomy::read_with(&bytes, Unknown::Skip) {
            Ok((read, skipped)) => {
                prop_assert!(is_record);
                let Ok(Resource::MemoryRecord(model)) = Resource::from_value(value.clone()) else {
                    panic!("read, though it is invalid: {value}");
                };
                prop_assert_eq!(read.id.as_str(), model.id.as_str());
                prop_assert_eq!(read.content.as_str(), &model.content);
                prop_assert_eq!(read.created_at, Moment::At(model.created_at.at()));
                prop_assert_eq!(read.kind, model.kind);
                prop_assert_eq!(read.tier, model.tier);
                let importance = model.importance.as_ref().map(Number::as_f64);
                prop_assert_eq!(read.importance.map(|unit| unit.get()), importance);
                let posed = spatial::pose_of(&Resource::from(*model)).and_then(Result::ok);
                prop_assert!(posed.is_none() || read.pose.is_some());
                prop_assert_eq!(Roomy::read(&bytes).is_ok(), skipped == 0);
            }
            Err(ReadError { kind, .. }) if is_record => prop_assert!(matches!(
                kind,
                ReadErrorKind::NoRoom          // longer than this program has room for
                    | ReadErrorKind::Missing(_) // alpha without beta
                    | ReadErrorKind::Unexpected // a decimal fraction, a bignum
                    | ReadErrorKind::Value      // an integer that no float holds, a count beyond u32
            )),
            Err(_) => {}
        }
    }
}

fn kept(record: &Small) -> Vec<u8> {
    let mut bytes = heapless::Vec::<u8, 2048>::new();
    record.write_kept(&mut bytes).unwrap();
    bytes.to_vec()
}

#[test]
fn without_a_date_nothing_is_handed_over() {
    let mut bytes = heapless::Vec::<u8, 256>::new();
    assert_eq!(example().write(&NoClock, &mut bytes), Err(WriteError::Undated));
    let mut short = heapless::Vec::<u8, 40>::new();
    assert!(matches!(example().write(&CLOCK, &mut short), Err(WriteError::Sink(_))));
    let mut lost = example();
    let nan = Point3::new(0.0, f64::NAN, 0.0);
    lost.pose = Some(Pose::new("map".try_into().unwrap(), nan));
    assert_eq!(lost.write(&CLOCK, &mut bytes), Err(WriteError::NotFinite));
}

/// The example as JSON, with something else in it.
fn read(json: &str) -> Result<Small, ReadErrorKind> {
    let value = omir_core::json::from_slice(json.as_bytes(), &Limits::default()).unwrap();
    Small::read(&cbor::to_vec(&value)).map_err(|error| error.kind)
}

#[test]
fn refusals_say_what_is_wrong() {
    use ReadErrorKind::{Missing, NoRoom, Unexpected, Unknown, Value};
    let with = |rest: &str| {
        let start = r#"{"resourceType":"MemoryRecord","id":"a","content":"","#;
        read(&format!(r#"{start}"createdAt":"2026-05-30T11:42:05+01:00"{rest}}}"#))
    };
    let fine = with(r#","importance":1,"decay":{"accessCount":3.0}"#).unwrap();
    assert_eq!(fine.importance, Unit::new(1.0));
    assert_eq!(fine.decay.unwrap().access_count, Some(3));
    assert_eq!(fine.created_at, Moment::At(Timestamp::parse("2026-05-30T10:42:05Z").unwrap()));

    for (rest, kind) in [
        (r#","meta":{"omirVersion":"R1"}"#, Unknown),
        (r#","extension":[{"url":"urn:x:y","valueJson":[{"a":[1,2]}]}]"#, Unknown),
        (r#","importance":1.5"#, Value),
        (r#","importance":"1""#, Unexpected),
        (r#","importance":0.12345678901234567890123"#, Unexpected),
        (r#","version":0"#, Value),
        (r#","decay":{"accessCount":-1}"#, Value),
        (r#","decay":{"accessCount":4294967296}"#, Value),
        (r#","confidence":{"alpha":1}"#, Missing("beta")),
        (r#","kind":"dream""#, Value),
        (r#","eventTime":"yesterday""#, Value),
        (r#","entityRefs":[{"ref":"Entity/a b"}]"#, Value),
        (r#","entityRefs":[{}]"#, Missing("ref")),
        (r#","entityRefs":[{"ref":"Entity/0123456789012345678901234"}]"#, NoRoom),
        (r#","decay":{"halfLifeHours":0}"#, Value),
    ] {
        assert_eq!(with(rest), Err(kind), "{rest}");
    }
    let many = format!(r#","entityRefs":[{}]"#, [r#"{"ref":"Entity/a"}"#; 4].join(","));
    assert_eq!(with(&many), Err(NoRoom));
    assert_eq!(read(r#"{"resourceType":"Entity","id":"a"}"#), Err(Value));
    assert_eq!(read("{}"), Err(Missing("resourceType")));
    let twice = [&[0xA2][..], b"\x62id\x61a", b"\x62id\x61b"].concat();
    assert_eq!(Small::read(&twice).unwrap_err().kind, ReadErrorKind::Repeated);
    assert_eq!(Small::read(&[0xBF, 0xFF]).unwrap_err().kind, ReadErrorKind::Malformed);
    let mut more = kept(&example());
    more.push(0);
    assert_eq!(Small::read(&more).unwrap_err().kind, ReadErrorKind::Trailing);
    assert_eq!(
        Small::read(&more[..9]).unwrap_err(),
        ReadError { at: 9, kind: ReadErrorKind::Truncated }
    );
}

#[test]
fn forgetting_goes_by_the_same_functions() {
    let mut record = example();
    let (now, started) = (CLOCK.started.checked_add_micros(169 * 3_600_000_000), CLOCK.started);
    let now = Moment::At(now.unwrap());
    record.created_at = Moment::At(started.checked_add_micros(3_600_000_000).unwrap());
    assert_eq!(record.retrievability(now, &NoClock), Some(0.5)); // 168 h, the default half-life
    let after = record.accessed(now, &NoClock);
    record.decay = Some(after);
    assert_eq!((record.retrievability(now, &NoClock), after.access_count), (Some(1.0), Some(1)));
    let half_life = after.half_life.unwrap().hours();
    assert_eq!(after.state().retrievability(half_life), 0.5);
    // Nobody can tell how long ago: it counts, and nothing is learned from it.
    record.decay = None;
    record.created_at = Moment::SinceBoot(Uptime { boot: 1, micros: 0 });
    assert_eq!(record.retrievability(now, &NoClock), None);
    assert_eq!(record.accessed(now, &NoClock).half_life, Some(HalfLife::DEFAULT));
}
