//! Parameters of the operations of `docs/keys.md`, by their names: the same for every transport, whatever they came in.

mod named;
pub(super) mod rebase;
pub(super) mod recall;
pub(super) mod time_range;

use omir_core::confidence::{FeedbackOutcome, Weight};
use omir_core::reference::Ref;

use omird_engine::{Change, CompactionScope, Error, MAX_PIECE, Precedence, Precondition};

use crate::about;

use self::named::flag;
pub use self::named::{Named, Parameters, add, add_members, reference};

/// `remember`: the value of `merge`.
///
/// # Errors
/// `INVALID_QUERY`. No value of it asks for [`Precedence::Remembered`].
pub(super) fn precedence(text: &str) -> Result<Precedence, Error> {
    match text {
        "true" => Ok(Precedence::Newer),
        "overwrite" => Ok(Precedence::File),
        _ => {
            let message = format!("{text:?} is neither `true` nor `overwrite`");
            Err(Error::query("merge", message))
        }
    }
}

/// `remember`: takes `ifAbsent` and `ifVersion` from its parameters.
///
/// # Errors
/// `INVALID_QUERY` if a value cannot be read, or both are given.
pub(super) fn precondition(named: &mut Named) -> Result<Precondition, Error> {
    let is_absent = named.flag("ifAbsent")?;
    match named.take("ifVersion") {
        Some(_) if is_absent => Err(Error::query("ifVersion", "goes without `ifAbsent`")),
        Some(text) => match text.parse() {
            Ok(version @ 1..) => Ok(Precondition::Version(version)),
            _ => Err(Error::query(
                "ifVersion",
                format!(
                    "{text:?} is no version, a whole number from 1; `ifAbsent` says that there \
                     is none"
                ),
            )),
        },
        None if is_absent => Ok(Precondition::Absent),
        None => Ok(Precondition::None),
    }
}

/// `forget`: `ref`, one or several with commas between them.
///
/// # Errors
/// `INVALID_QUERY`.
pub fn forget(parameters: Parameters) -> Result<Change, Error> {
    let mut named = Named::of(&about::FORGET, parameters);
    let text = named.need("ref")?;
    named.finish("")?;
    let targets = text.split(',').map(|part| reference("ref", part.trim()));
    Ok(Change::Forget(targets.collect::<Result<Vec<_>, _>>()?))
}

/// `anchor`: `ref`, and `anchored=false` to let it go.
///
/// # Errors
/// `INVALID_QUERY`.
pub fn anchor(parameters: Parameters) -> Result<Change, Error> {
    let mut named = Named::of(&about::ANCHOR, parameters);
    let target = reference("ref", &named.need("ref")?)?;
    let anchored = match named.take("anchored") {
        Some(text) => flag("anchored", &text)?,
        None => true,
    };
    named.finish("")?;
    Ok(Change::Anchor(target, anchored))
}

/// `feedback`: `ref`, `outcome`, and `weight`.
///
/// # Errors
/// `INVALID_QUERY`.
pub fn feedback(parameters: Parameters) -> Result<Change, Error> {
    let mut named = Named::of(&about::FEEDBACK, parameters);
    let target = reference("ref", &named.need("ref")?)?;
    let text = named.need("outcome")?;
    let outcome: FeedbackOutcome = text.parse().map_err(|_| {
        Error::query("outcome", format!("{text:?} is neither `confirmed` nor `contradicted`"))
    })?;
    let weight = match named.take("weight") {
        None => Weight::ONE,
        Some(text) => text.parse().ok().and_then(Weight::new).ok_or_else(|| {
            Error::query("weight", format!("{text:?} is no number above 0, at most 1000"))
        })?,
    };
    named.finish("")?;
    Ok(Change::Feedback(target, outcome, weight))
}

/// `compact`: which `scope`.
///
/// # Errors
/// `INVALID_QUERY`.
pub fn compact(parameters: Parameters) -> Result<CompactionScope, Error> {
    let mut named = Named::of(&about::COMPACT, parameters);
    let scope = match named.take("scope") {
        None => CompactionScope::Due,
        Some(text) => CompactionScope::parse(&text).ok_or_else(|| {
            let message = format!("{text:?} is none of `due`, `forgotten`, `all`");
            Error::query("scope", message)
        })?,
    };
    named.finish("")?;
    Ok(scope)
}

/// `sweep`: whether it is a `dryRun`.
///
/// # Errors
/// `INVALID_QUERY`.
pub fn sweep(parameters: Parameters) -> Result<bool, Error> {
    let mut named = Named::of(&about::SWEEP, parameters);
    let dry_run = named.flag("dryRun")?;
    named.finish("")?;
    Ok(dry_run)
}

/// `explain`: `ref`.
///
/// # Errors
/// `INVALID_QUERY`.
pub fn explain(parameters: Parameters) -> Result<Ref, Error> {
    let mut named = Named::of(&about::EXPLAIN, parameters);
    let target = reference("ref", &named.need("ref")?)?;
    named.finish("")?;
    Ok(target)
}

/// `prove`: `ref`.
///
/// # Errors
/// `INVALID_QUERY`.
pub fn prove(parameters: Parameters) -> Result<Ref, Error> {
    let mut named = Named::of(&about::PROVE, parameters);
    let target = reference("ref", &named.need("ref")?)?;
    named.finish("")?;
    Ok(target)
}

/// The part of a backup that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backup {
    /// The list of segments.
    List,
    /// Bytes of one.
    Piece { segment: u64, offset: u64, length: u64 },
}

/// `backup`: nothing, or which bytes of a `segment`.
///
/// # Errors
/// `INVALID_QUERY`.
pub(super) fn backup(parameters: Parameters) -> Result<Backup, Error> {
    let mut named = Named::of(&about::BACKUP, parameters);
    let number = |name: &str, text: &str| {
        text.parse::<u64>().map_err(|_| Error::query(name, format!("{text:?} is no whole number")))
    };
    let Some(segment) = named.take("segment") else {
        named.finish("")?;
        return Ok(Backup::List);
    };
    let segment = number("segment", &segment)?;
    let mut optional = |name: &str, otherwise: u64| match named.take(name) {
        Some(text) => number(name, &text),
        None => Ok(otherwise),
    };
    let (offset, length) = (optional("offset", 0)?, optional("length", MAX_PIECE)?);
    named.finish("")?;
    Ok(Backup::Piece { segment, offset, length })
}

#[cfg(test)]
mod tests {
    use omird_router::{Field, Method, Shape};

    use super::*;
    use crate::methods;

    /// Returns a value of this shape that is read.
    fn some_value(shape: Shape) -> &'static str {
        match shape {
            Shape::Form(_) => "MemoryRecord/a",
            Shape::OneOf(words) => words[0],
            Shape::List(of, ..) => some_value(*of),
            Shape::Named(_) => "2026-05-30T11:42:05Z",
            Shape::Flag => "true",
            Shape::Text(_) | Shape::Number(..) | Shape::Integer(..) => "1",
            Shape::Object(_) | Shape::Anything => panic!("{shape:?} is no parameter"),
        }
    }

    /// [`Named`] takes none that the table lacks, so this is the other direction.
    #[test]
    fn each_parameter_of_the_table_is_taken() {
        let read = |method: &Method, parameters: Parameters| match method.name {
            "forget" => forget(parameters).map(drop),
            "anchor" => anchor(parameters).map(drop),
            "feedback" => feedback(parameters).map(drop),
            "compact" => compact(parameters).map(drop),
            "sweep" => sweep(parameters).map(drop),
            "explain" => explain(parameters).map(drop),
            "backup" => backup(parameters).map(drop),
            "prove" => prove(parameters).map(drop),
            "remember" => {
                let mut named = Named::of(&about::REMEMBER, parameters);
                let merge = named.take("merge").map(|text| precedence(&text)).transpose();
                precondition(&mut named).and(merge)?;
                named.finish("")
            }
            other => panic!("{other} has parameters that nothing here reads"),
        };
        let mut taken = 0;
        for method in methods::OMIR.methods {
            let is_elsewhere = ["recall", "export", "document", "rebase"].contains(&method.name);
            let about = method.about;
            if is_elsewhere || about.parameters.is_empty() {
                continue;
            }
            for asked in about.parameters {
                let of_one = |other: &&Field| {
                    let needs_segment = method.name == "backup" && other.name == "segment";
                    other.is_required || needs_segment || **other == *asked
                };
                let given = about.parameters.iter().filter(of_one);
                let given =
                    given.map(|one| (one.name.to_owned(), some_value(one.shape).to_owned()));
                read(method, given.collect()).unwrap();
                taken += 1;
            }
            let unknown = read(method, vec![("noSuchThing".to_owned(), String::new())]);
            assert!(unknown.is_err(), "{}", method.name);
        }
        assert!(taken >= 14, "{taken}");
    }

    /// `format` is of one transport, which takes it away; the others do not know it.
    #[test]
    fn no_parameter_is_called_known_that_is_not() {
        let asked = || vec![("format".to_owned(), "cbor".to_owned())];
        let with = |more: &[(&str, &str)]| {
            let more = more.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
            more.chain(asked()).collect::<Parameters>()
        };
        let refusals = [
            forget(with(&[("ref", "Entity/a")])).unwrap_err(),
            anchor(with(&[("ref", "MemoryRecord/a")])).unwrap_err(),
            feedback(with(&[("ref", "MemoryRecord/a"), ("outcome", "confirmed")])).unwrap_err(),
            compact(asked()).unwrap_err(),
            sweep(asked()).unwrap_err(),
            explain(with(&[("ref", "Entity/a")])).unwrap_err(),
            prove(with(&[("ref", "Entity/a")])).unwrap_err(),
        ];
        for error in refusals {
            assert_eq!(error.path, "/format");
            let known = error.message.split("known are").nth(1).unwrap();
            assert!(!known.contains("format"), "{error}");
        }
    }
}
