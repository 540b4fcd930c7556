//! Profiles that a command line asks for: built-in ones by name or URL, others from files.

use std::fmt::Write as _;
use std::path::Path;

use omir_core::profile::{self, Profile};
use omir_core::validate::{closest, is_absolute_uri};

use crate::document;
use crate::error::{Error, Result};

/// Faults of a profile document that are listed.
const MOST_LISTED: usize = 10;

/// Profiles checked besides the core.
#[derive(Debug, Default)]
pub(super) struct Selection {
    /// Profiles that are checked where a resource claims them.
    pub(super) profiles: Vec<Profile>,
    /// URLs of profiles that are to be claimed.
    pub(super) required: Vec<String>,
}

impl Selection {
    /// Finds the profiles named by `--profile` and `--require-profile`.
    pub(super) fn new(checked: &[String], required: &[String]) -> Result<Self> {
        let mut selection = Self::default();
        for name in checked {
            let found = match builtin(name) {
                Some(profile) => profile,
                None => load(name)?,
            };
            if selection.profiles.iter().any(|profile| profile.url == found.url) {
                return Err(twice("--profile", name));
            }
            selection.profiles.push(found);
        }
        for name in required {
            let url = selection.require(name)?;
            if selection.required.contains(&url) {
                return Err(twice("--require-profile", name));
            }
            selection.required.push(url);
        }
        Ok(selection)
    }

    /// The URL of a required profile, which is checked too if it is known.
    fn require(&mut self, name: &str) -> Result<String> {
        let mut loaded = self.profiles.iter();
        if let Some(profile) = loaded.find(|profile| is_called(profile, name)) {
            return Ok(profile.url.clone());
        }
        if let Some(profile) = builtin(name) {
            let url = profile.url.clone();
            self.profiles.push(profile);
            return Ok(url);
        }
        if is_absolute_uri(name) {
            return Ok(name.to_owned());
        }
        Err(unknown("--require-profile", name, "a URL"))
    }
}

fn is_called(profile: &Profile, name: &str) -> bool {
    profile.name == name || profile.url == name
}

fn builtin(name: &str) -> Option<Profile> {
    profile::builtin().into_iter().find(|profile| is_called(profile, name))
}

/// Reads a profile from a file.
fn load(name: &str) -> Result<Profile> {
    let file = Path::new(name);
    let looks_like_a_file = file.extension().is_some_and(|ending| ending == "json")
        || (name.contains('/') && !is_absolute_uri(name));
    if !looks_like_a_file && !file.is_file() {
        return Err(unknown("--profile", name, "a file with a profile in JSON"));
    }
    let value = document::read(file)?;
    Profile::from_value(&value).map_err(|faults| {
        let mut message = format!("{}: not a profile", file.display());
        for fault in faults.iter().take(MOST_LISTED) {
            let _ = write!(message, "; {}: {}", fault.pointer, fault.message);
        }
        if faults.len() > MOST_LISTED {
            let _ = write!(message, "; and {} more", faults.len() - MOST_LISTED);
        }
        Error::Input { message, path: faults.first().map(|fault| fault.pointer.clone()) }
    })
}

fn unknown(option: &str, name: &str, or: &str) -> Error {
    let known = profile::builtin();
    let names = || known.iter().map(|profile| profile.name.as_str());
    let hint = match closest(name, names()) {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("known are {}, or give {or}", names().collect::<Vec<_>>().join(", ")),
    };
    Error::Usage(format!("{option}: no profile {name:?}; {hint}"))
}

fn twice(option: &str, name: &str) -> Error {
    Error::Usage(format!("{option}: the profile {name:?} is given twice; give it once"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(checked: &[&str], required: &[&str]) -> Result<Selection> {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        Selection::new(&owned(checked), &owned(required))
    }

    fn refused(checked: &[&str], required: &[&str]) -> String {
        let error = select(checked, required).unwrap_err();
        assert_eq!(error.exit_code(), crate::error::USAGE);
        error.to_string()
    }

    #[test]
    fn names_and_urls_mean_the_same() {
        let found = select(&["omir-robotics"], &[profile::CODING_AGENT, "urn:x:unknown"]).unwrap();
        let urls: Vec<&str> = found.profiles.iter().map(|profile| profile.url.as_str()).collect();
        assert_eq!(urls, [profile::ROBOTICS, profile::CODING_AGENT]);
        assert_eq!(found.required, [profile::CODING_AGENT, "urn:x:unknown"]);
        let both = select(&[profile::ROBOTICS], &["omir-robotics"]).unwrap();
        assert_eq!((both.profiles.len(), both.required.len()), (1, 1));
    }

    #[test]
    fn what_is_misspelt_or_repeated_is_refused() {
        let error = refused(&["omir-robotic"], &[]);
        assert!(error.contains("did you mean \"omir-robotics\"?"), "{error}");
        let error = refused(&[], &["robot"]);
        assert!(error.contains("omir-personal-assistant"), "{error}");
        let error = refused(&["omir-robotics", profile::ROBOTICS], &[]);
        assert!(error.contains("twice"), "{error}");
        assert!(refused(&[], &["urn:x:y", "urn:x:y"]).contains("twice"));
        assert!(refused(&["urn:x:y"], &[]).contains("a file"));
    }

    #[test]
    fn a_profile_comes_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("patrol.json");
        let name = file.to_str().unwrap();
        let rule = r#"{"on":["Entity"],"must":{"path":"/summary","present":true}}"#;
        let text = format!(r#"{{"url":"urn:x:patrol","name":"patrol","rules":[{rule}]}}"#);
        std::fs::write(&file, &text).unwrap();
        let found = select(&[name], &["patrol"]).unwrap();
        assert_eq!(found.required, ["urn:x:patrol"]);
        assert_eq!(found.profiles.len(), 1);
        std::fs::write(&file, text.replace("/summary", "/sumary")).unwrap();
        let error = refused(&[name], &[]);
        assert!(error.contains("patrol.json") && error.contains("/rules/0/must/path"), "{error}");
        std::fs::write(&file, "{").unwrap();
        assert!(refused(&[name], &[]).contains("at byte 1"));
        assert!(refused(&["absent.json"], &[]).contains("absent.json"));
    }
}
