//! Files that a command line names.

use std::path::{Path, PathBuf};

use crate::document::{self, Encoding};
use crate::error::{Error, Result};

/// Files as they were named, and for folders every `.omir` and `.omirb` below, in order.
pub(super) fn named(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !document::is_standard(path) && path.is_dir() {
            let before = files.len();
            walk(path, &mut files)?;
            if files.len() == before {
                return Err(Error::input(path, "no .omir or .omirb file below"));
            }
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let unreadable = |why| Error::input(folder, why);
    let entries = std::fs::read_dir(folder).map_err(unreadable)?;
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry.map_err(unreadable)?;
        let kind = entry.file_type().map_err(unreadable)?;
        paths.push((entry.path(), kind.is_dir()));
    }
    paths.sort();
    for (path, is_folder) in paths {
        // Links to folders are not followed: they may lead in circles.
        if is_folder {
            walk(&path, files)?;
        } else if !path.is_dir() && is_document(&path) {
            files.push(path);
        }
    }
    Ok(())
}

fn is_document(path: &Path) -> bool {
    let json = path.extension().is_some_and(|ending| ending == "json" || ending == "cbor");
    Encoding::of_ending(path).is_some() && !json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_searched_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir(root.join("b")).unwrap();
        for name in ["z.omir", "b/a.omirb", "notes.txt", "c.json"] {
            std::fs::write(root.join(name), "").unwrap();
        }
        let found = named(&[root.to_owned()]).unwrap();
        assert_eq!(found, [root.join("b/a.omirb"), root.join("z.omir")]);
        std::fs::create_dir(root.join("empty")).unwrap();
        assert!(named(&[root.join("empty")]).is_err());
    }
}
