//! `[access]`, and `[ros2] scopes`: who is let in.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use omird_access::{AccessSettings, JwtKey, JwtSettings};
use serde::Deserialize;

use super::Invalid;
use crate::protocols::Protocols;
use crate::router::Scope;

/// No key is longer; whatever is, is another file.
const MOST_KEY: u64 = 64 << 10;
/// Each of them may be tried for a JWT.
const MOST_KEYS: usize = 16;

/// `[access]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccessSection {
    /// True if writes are refused.
    pub read_only: Option<bool>,
    /// True if every way in needs a token.
    pub require: Option<bool>,
    /// JWTs that are taken.
    pub jwt: Option<JwtSection>,
}

/// `[access.jwt]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JwtSection {
    /// The keys, one of which must have signed a JWT.
    pub keys: Vec<JwtKeySection>,
    /// The name that the claim `aud` must have.
    pub audience: Option<String>,
}

/// One of `access.jwt.keys`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JwtKeySection {
    /// A public key of Ed25519.
    pub eddsa: Option<String>,
    /// A file with one.
    pub eddsa_file: Option<PathBuf>,
    /// A file with a secret of HS256.
    pub hs256_file: Option<PathBuf>,
}

/// Checks the section, and reads the keys that it names. `graph` are the scopes of `[ros2]`.
pub fn resolve(
    written: &AccessSection,
    graph: Option<&[String]>,
) -> Result<AccessSettings, Invalid> {
    let graph = graph.map(|names| names.iter().map(|name| scope(name)).collect()).transpose()?;
    let jwt = written.jwt.as_ref().map(jwt).transpose()?.unwrap_or_default();
    Ok(AccessSettings { require: written.require.unwrap_or(false), graph, jwt })
}

fn scope(name: &str) -> Result<Scope, Invalid> {
    let found = Protocols::SCOPES.iter().copied().find(|scope| scope.0 == name);
    found.ok_or_else(|| {
        let known: Vec<&str> = Protocols::SCOPES.iter().map(|scope| scope.0).collect();
        let message = format!("{name:?} is none of {}", known.join(", "));
        Invalid::other("ros2.scopes", message)
    })
}

fn jwt(written: &JwtSection) -> Result<JwtSettings, Invalid> {
    if written.keys.is_empty() {
        let message = "there is none, so that no JWT would be taken; leave the section out";
        return Err(Invalid::other("access.jwt.keys", message));
    }
    if written.keys.len() > MOST_KEYS {
        let message = format!("there are {}; at most {MOST_KEYS}", written.keys.len());
        return Err(Invalid::other("access.jwt.keys", message));
    }
    let keys = written.keys.iter().enumerate().map(|(i, written)| key(i, written));
    if written.audience.as_deref() == Some("") {
        return Err(Invalid::other("access.jwt.audience", "an empty text is no name"));
    }
    Ok(JwtSettings { keys: keys.collect::<Result<_, _>>()?, audience: written.audience.clone() })
}

fn key(i: usize, written: &JwtKeySection) -> Result<JwtKey, Invalid> {
    let key = |name: &str| format!("access.jwt.keys[{i}].{name}");
    match written {
        JwtKeySection { eddsa: Some(text), eddsa_file: None, hs256_file: None } => {
            JwtKey::eddsa(text).map_err(|why| Invalid::other(&key("eddsa"), why))
        }
        JwtKeySection { eddsa: None, eddsa_file: Some(file), hs256_file: None } => {
            let key = key("eddsa_file");
            let bytes = contents(&key, file)?;
            JwtKey::eddsa(&String::from_utf8_lossy(&bytes))
                .map_err(|why| Invalid::other(&key, format!("{} {why}", file.display())))
        }
        JwtKeySection { eddsa: None, eddsa_file: None, hs256_file: Some(file) } => {
            let key = key("hs256_file");
            let bytes = contents(&key, file)?;
            let mode = std::fs::metadata(file).map_or(0, |found| found.permissions().mode());
            if mode & 0o007 != 0 {
                let message = format!(
                    "{} is open to everybody on this machine, who could sign with it: chmod o-rwx it",
                    file.display()
                );
                return Err(Invalid::other(&key, message));
            }
            JwtKey::hs256(&bytes)
                .map_err(|why| Invalid::other(&key, format!("{} {why}", file.display())))
        }
        _ => {
            let message = "takes one of eddsa (a public key), eddsa_file and hs256_file (a secret)";
            Err(Invalid::other(&format!("access.jwt.keys[{i}]"), message))
        }
    }
}

fn contents(key: &str, file: &Path) -> Result<Vec<u8>, Invalid> {
    let refused = |why: &dyn std::fmt::Display| {
        Invalid::other(key, format!("{}: {why}", PathBuf::from(file).display()))
    };
    if !file.is_absolute() {
        return Err(refused(&"is no absolute path"));
    }
    // Asked before it is opened: opening a pipe waits for a writer.
    match std::fs::metadata(file) {
        Ok(found) if !found.is_file() => return Err(refused(&"is no file")),
        Err(error) => return Err(refused(&error)),
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(|error| refused(&error))?;
    opened.take(MOST_KEY + 1).read_to_end(&mut bytes).map_err(|error| refused(&error))?;
    if bytes.len() as u64 > MOST_KEY {
        return Err(refused(&"is longer than any key"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<AccessSettings, Invalid> {
        let file: super::super::file::File = toml::from_str(text).unwrap();
        resolve(&file.access, None)
    }

    #[test]
    fn nothing_is_required_by_default() {
        assert_eq!(read(""), Ok(AccessSettings::default()));
        assert!(read("[access]\nrequire = true").unwrap().require);
    }

    #[test]
    fn keys_are_read_and_complaints_name_theirs() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8], mode: u32| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            path.display().to_string()
        };
        // RFC 8037, appendix A.2.
        let public = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
        let public_file = file("public", public.as_bytes(), 0o644);
        let secret = file("secret", &[b's'; 40], 0o640);
        let open = file("open", &[b's'; 40], 0o644);
        let short = file("short", b"sesame", 0o600);
        let keys = |keys: &str| format!("[access.jwt]\nkeys = [{keys}]");
        let all = format!(
            "{{ eddsa = '{public}' }}, {{ eddsa_file = '{public_file}' }}, {{ hs256_file = '{secret}' }}"
        );
        let jwt = read(&keys(&all)).unwrap().jwt;
        assert_eq!(jwt.keys.len(), 3);
        assert_eq!(jwt.keys[0], jwt.keys[1]);
        for (text, complaint) in [
            (keys(""), "access.jwt.keys: there is none"),
            (keys("{ eddsa = 'nonsense' }"), "access.jwt.keys[0].eddsa: is no public key"),
            (keys("{}"), "access.jwt.keys[0]: takes one of"),
            (
                keys(&format!("{{ eddsa = '{public}' }}, {{ hs256_file = '{short}' }}")),
                "access.jwt.keys[1].hs256_file: ",
            ),
            (keys(&format!("{{ hs256_file = '{open}' }}")), "open to everybody"),
            (keys("{ hs256_file = '/nowhere/s' }"), "/nowhere/s: No such file"),
            (keys("{ eddsa_file = 'public' }"), "public: is no absolute path"),
            (keys("{ hs256_file = '/dev/zero' }"), "/dev/zero: is no file"),
            (keys(&"{ eddsa = 'x' },".repeat(17)), "access.jwt.keys: there are 17"),
        ] {
            let error = read(&text).unwrap_err().to_string();
            assert!(error.contains(complaint), "{error}");
        }
        let error = resolve(&AccessSection::default(), Some(&["omir:raed".to_owned()]));
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("ros2.scopes: \"omir:raed\" is none of omir:read"), "{error}");
    }
}
