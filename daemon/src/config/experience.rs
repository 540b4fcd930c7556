//! `[experience]`: how long experiences are kept, what of them, and where the robot was.

use std::time::Duration;

use serde::Deserialize;

use super::{Invalid, quantity, within};
use crate::protocols::experience::ExperienceSettings;

const DAY: u64 = 86_400;

/// `[experience]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExperienceSection {
    /// Days from the recording until an experience is no longer valid.
    #[serde(deserialize_with = "quantity::days")]
    pub retention_days: Option<u64>,
    /// Half-life of an experience.
    #[serde(deserialize_with = "quantity::hours")]
    pub half_life_h: Option<f64>,
    /// True if the pose of the robot goes with an experience.
    pub pose: Option<bool>,
    /// True if secrets are taken out of texts.
    pub redact: Option<bool>,
    /// True if ids of people are stored as they come.
    pub store_identifiers: Option<bool>,
    /// Memory for statistics.
    #[serde(deserialize_with = "quantity::bytes")]
    pub statistics_bytes: Option<u64>,
}

/// Checks the section and fills in what it leaves out. `robot_frame` is the frame of the robot, where one is known.
pub fn resolve(
    written: &ExperienceSection,
    robot_frame: Option<&str>,
) -> Result<ExperienceSettings, Invalid> {
    let default = ExperienceSettings::default();
    let days = default.retention.map_or(0, |kept| kept.as_secs() / DAY);
    let days = within("experience.retention_days", written.retention_days, days, 0..=36_500)?;
    let pose = written.pose.unwrap_or(true);
    Ok(ExperienceSettings {
        retention: (days > 0).then(|| Duration::from_secs(days * DAY)),
        half_life_hours: within(
            "experience.half_life_h",
            written.half_life_h,
            default.half_life_hours,
            1.0..=876_000.0,
        )?,
        store_identifiers: written.store_identifiers.unwrap_or(default.store_identifiers),
        redact: written.redact.unwrap_or(default.redact),
        robot_frame: robot_frame.filter(|_| pose).map(str::to_owned),
        statistics_bytes: usize::try_from(within(
            "experience.statistics_bytes",
            written.statistics_bytes,
            default.statistics_bytes as u64,
            1 << 20..=1 << 30,
        )?)
        .unwrap_or(default.statistics_bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, frame: Option<&str>) -> Result<ExperienceSettings, Invalid> {
        let file: super::super::file::File = toml::from_str(text).unwrap();
        resolve(&file.experience, frame)
    }

    #[test]
    fn everything_has_a_default_and_can_be_stated() {
        assert_eq!(read("", None), Ok(ExperienceSettings::default()));
        let robot_frame = Some("base_link".to_owned());
        let placed = ExperienceSettings { robot_frame, ..ExperienceSettings::default() };
        assert_eq!(read("", Some("base_link")), Ok(placed));
        let stated = "[experience]\nretention_days = 0\nhalf_life_h = 24\npose = false\nredact = false\n\
                      store_identifiers = true\nstatistics_bytes = '1MiB'";
        let expected = ExperienceSettings {
            retention: None,
            half_life_hours: 24.0,
            store_identifiers: true,
            redact: false,
            robot_frame: None,
            statistics_bytes: 1 << 20,
        };
        assert_eq!(read(stated, Some("base_link")), Ok(expected));
    }

    #[test]
    fn complaints_name_the_key() {
        for (text, complaint) in [
            ("retention_days = 40000", "experience.retention_days: 40000 is not between 0 and"),
            ("half_life_h = 0", "experience.half_life_h: 0 is not between 1 and"),
            ("statistics_bytes = 5", "experience.statistics_bytes: 5 is not between 1048576 and"),
        ] {
            let error = read(&format!("[experience]\n{text}"), None).unwrap_err().to_string();
            assert!(error.starts_with(complaint), "{error}");
        }
    }
}
