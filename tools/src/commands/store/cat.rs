//! `omir store cat`: what a resource, a file or everything says.

use omir_core::reference::{Id, Ref, ResourceType};
use omird::store::inspect::{CatError, History, Reader, State};

use super::{complete, instant, open, read};
use crate::cli::{Globals, StoreCatArgs};
use crate::document;
use crate::error::{Error, Result, told};
use crate::{id_prefix, ids, output};

/// The resources that `cat` prints.
enum What {
    Everything,
    File(String),
    Resource(Ref),
}

fn what(text: Option<&str>) -> Result<What> {
    let Some(text) = text else { return Ok(What::Everything) };
    let text = text.trim_end_matches(ids::ELLIPSIS);
    let plain = text.strip_suffix(".damaged").unwrap_or(text);
    if plain.ends_with(".omirb") || plain.ends_with(".wal") {
        return Ok(What::File(text.to_owned()));
    }
    let parsed = if text.contains('/') {
        text.parse::<Ref>().map_err(|why| why.to_string())
    } else {
        let id = Id::new(text).map_err(|why| why.to_string());
        id.map(|id| Ref::new(ResourceType::MemoryRecord, id))
    };
    parsed.map(What::Resource).map_err(|why| Error::Usage(format!("{text:?}: {why}")))
}

pub(super) fn run(globals: &Globals, args: &StoreCatArgs) -> Result<()> {
    let what = what(args.what.as_deref())?;
    if let Some(file) = &args.output {
        document::encoding_for_output(file)?;
    }
    let store = open(globals, &args.path)?;
    let history = read(globals, &store, &args.path)?;
    let unreadable = |why: CatError| match why {
        CatError::Disk { .. } | CatError::NoFile(_) => Error::input(&args.path, why),
        other => Error::not_found(other.to_string()),
    };
    let (value, is_whole_file) = match what {
        What::Everything => {
            let file = (!store.is_folder()).then_some(0);
            (history.bundle(&store, file).map_err(unreadable)?, true)
        }
        What::File(name) => {
            let file = history.file(&name).map_err(unreadable)?;
            (history.bundle(&store, Some(file)).map_err(unreadable)?, true)
        }
        What::Resource(target) => {
            let target = meant(&history, target)?;
            let row = history.version(&target, args.version).map_err(unreadable)?;
            if let State::Forgotten { at, by, .. } = row.state {
                let remark = format!("{target} was forgotten at {} by {by}", instant(at));
                output::remark(globals.quiet || globals.json, &remark);
            }
            let resource = Reader::new(&store, &history).resource(&row.version.position);
            let resource = resource.map_err(|why| Error::input(&args.path, why))?;
            (resource.to_value(), false)
        }
    };
    let written = match &args.output {
        Some(file) => document::write(file, &value),
        None => output::print_json(&value).map_err(Error::from),
    };
    told(written, if is_whole_file { complete(&history, &args.path) } else { Ok(()) })
}

/// The resource of that name, or else the only live one whose id begins so.
pub(in crate::commands) fn meant(history: &History, named: Ref) -> Result<Ref> {
    let rows = history.rows();
    if rows.iter().any(|row| row.version.target == named) {
        return Ok(named);
    }
    let live = rows.iter().filter(|row| row.state == State::Live).map(|row| &row.version.target);
    let begin = live.filter(|target| {
        target.kind == named.kind && ids::is_meant(named.id.as_str(), target.id.as_str())
    });
    let only = id_prefix::one_of(&named, begin.cloned().collect())?;
    Ok(only.unwrap_or(named))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_names_a_file_or_a_resource() {
        assert!(matches!(what(None), Ok(What::Everything)));
        assert!(matches!(what(Some("wal/0000000002.wal")), Ok(What::File(_))));
        assert!(matches!(what(Some("0000000002.omirb.damaged")), Ok(What::File(_))));
        assert!(matches!(what(Some("door-3")), Ok(What::Resource(target))
            if target.kind == ResourceType::MemoryRecord));
        assert!(matches!(what(Some("Entity/dock")), Ok(What::Resource(_))));
        assert!(matches!(what(Some("Thing/dock")), Err(Error::Usage(_))));
    }
}
