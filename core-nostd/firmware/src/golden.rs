//! Numbers that come out the same, to the last bit, on a microcontroller and on the machine of the
//! daemon: forgetting, poses, and the bytes of a record.

use nalgebra::Point3;
use omir_core::confidence::Beta;
use omir_core::crc::crc32;
use omir_core::fixed::{Confidence, Decay, Moment, NoClock, Pose, Text, Unit};
use omir_core::forgetting::{HalfLife, hours_until, retrievability};
use omir_core::geo::GeoPoint;
use omir_core::instant::Timestamp;
use omir_core::space::{Isometry3, distance};
use omir_core::tier::{TierPolicy, next};
use omir_core::vocabulary::{ExperienceType, Kind};

use crate::Record;
use crate::sensors::Sensors;

/// Shows every number with its name: floats as the eight bytes of their bits, the highest first.
pub fn golden(show: &mut impl FnMut(&str, &[u8])) {
    let mut float = |name: &str, number: f64| show(name, &number.to_bits().to_be_bytes());
    let half_lives = [1e-3, 0.1, 6.0, 24.0, 168.0, 1234.5, 175_320.0];
    for half_life in half_lives.into_iter().filter_map(HalfLife::new) {
        for hours in [0.0, 1e-6, 0.1, 1.0, 10.0, 33.3, 168.0, 5000.0, 1e9] {
            float("retrievability", retrievability(half_life, hours));
            let before =
                Decay { half_life: Some(half_life), access_count: Some(3), ..Decay::default() };
            float("accessed", before.state().accessed(hours).half_life.hours());
        }
        float("hours-until", hours_until(half_life, 0.1).unwrap_or_default());
    }
    float("damped", Beta::PRIOR.damped());

    let mut sensors = Sensors::new(7);
    let mut whole = Isometry3::identity();
    for _ in 0..20 {
        let pose = sensors.read().pose;
        let between = whole.inverse() * pose;
        whole *= between;
        for number in whole.translation.vector.iter().chain(whole.rotation.coords.iter()) {
            float("pose", *number);
        }
        float("distance", distance(&Point3::origin(), &Point3::from(whole.translation.vector)));
    }

    let record = sample();
    if let Some(inputs) = record.tier_inputs(later(), &NoClock) {
        float("strength", inputs.strength(&TierPolicy::default()));
        let (tier, _) = next(omir_core::tier::Tier::Session, &inputs, &TierPolicy::default());
        show("tier", tier.as_str().as_bytes());
    }
    let mut bytes = heapless::Vec::<u8, 768>::new();
    if record.write(&NoClock, &mut bytes).is_ok() {
        show("record", &bytes);
        show("crc", &crc32(&bytes).to_be_bytes());
    }
    match Record::read(&bytes) {
        Ok(read) => show("read", &[u8::from(read == record)]),
        Err(error) => show("unread", &error.at.to_be_bytes()),
    }
}

/// A day and a half after the sample.
fn later() -> Moment {
    Moment::At(Timestamp::from_unix(1_780_141_325 + 129_600, 0))
}

/// A reading of the thermometer.
pub fn reading() -> Record {
    let at = Moment::At(Timestamp::from_unix(1_780_141_325, 0));
    let (id, content) =
        ("temp-1-0".try_into(), Text::try_from("21.31 degrees behind the door – grün"));
    // The literals fit.
    let (Ok(id), Ok(content)) = (id, content) else { unreachable!() };
    let mut record = Record::new(id, content, at);
    record.experience_type = Some(ExperienceType::Observation);
    record.importance = Unit::new(0.25);
    record.decay = Some(Decay { half_life: HalfLife::new(6.0), ..Decay::default() });
    record.pose = crate::life::pose(&Sensors::new(3).read());
    record
}

/// A record with every field.
pub fn sample() -> Record {
    let at = |micros: i64| Moment::At(Timestamp::from_micros(1_780_141_325_000_000 + micros));
    let mut record = reading();
    record.kind = Some(Kind::Memory);
    record.experience_type = Some(ExperienceType::Discovery);
    record.tier = Some(omir_core::tier::Tier::Session);
    record.event_time = Some(at(-1_500_000));
    record.valid_until = Some(at(86_400_000_000));
    record.version = core::num::NonZeroU32::new(70_000);
    record.importance = Unit::new(0.7);
    record.confidence =
        Some(Confidence { posterior: Beta::new(9.5, 1.0), calibrated: Unit::new(1.0 / 3.0) });
    record.decay = Some(Decay {
        half_life: HalfLife::new(400.0 / 7.0),
        last_access: Some(at(1)),
        access_count: Some(255),
        anchored: Some(false),
    });
    for name in ["Entity/door", "Episode/morning.3"] {
        if let Ok(reference) = name.try_into() {
            // There is room for two.
            let _ = record.entity_refs.push(reference);
        }
    }
    if let Some(Pose { stamp, geo, .. }) = &mut record.pose {
        *stamp = Some(at(250));
        *geo = GeoPoint::new(52.520_008, 13.404_954, Some(34.0)).ok();
    }
    record
}
