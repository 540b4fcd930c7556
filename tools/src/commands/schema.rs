//! `omir schema`: JSON Schemas for editors and other languages, printed by `omir-core`.

use std::fs;

use omir_core::json_schema::{Drafts, Subject, json_schema};

use crate::cli::SchemaArgs;
use crate::document;
use crate::error::{Error, Result};
use crate::output;

pub(super) fn run(args: &SchemaArgs) -> Result<()> {
    let drafts = if args.plain_r1 { Drafts::Refused } else { Drafts::Allowed };
    let Some(folder) = &args.output else {
        let subject = args.subject.unwrap_or(Subject::Bundle);
        return Ok(output::print_json(&json_schema(subject, drafts))?);
    };
    fs::create_dir_all(folder).map_err(|why| Error::input(folder, why))?;
    for subject in Subject::ALL {
        if args.subject.is_none_or(|only| only == subject) {
            let file = folder.join(format!("{subject}.schema.json"));
            document::write(&file, &json_schema(subject, drafts))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_gets_a_file_for_each_or_for_one() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("a/b");
        let mut args = SchemaArgs {
            subject: Some(Subject::SpatialPose),
            plain_r1: true,
            output: Some(output.clone()),
        };
        run(&args).unwrap();
        assert_eq!(fs::read_dir(&output).unwrap().count(), 1);
        args.subject = None;
        run(&args).unwrap();
        assert_eq!(fs::read_dir(&output).unwrap().count(), Subject::ALL.len());
        let written = document::read(&output.join("Entity.schema.json")).unwrap();
        let subject = Subject::Resource(omir_core::reference::ResourceType::Entity);
        assert_eq!(written, json_schema(subject, Drafts::Refused));
        args.output = Some(output.join("Entity.schema.json"));
        assert!(run(&args).is_err());
    }
}
