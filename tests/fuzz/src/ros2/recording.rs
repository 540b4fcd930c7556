//! A recording: what is read of it is whole and valid, and the same when it is read again.

use std::io::{Cursor, Write};

use omir_core::model::Resource;
use omir_core::value::Value;
use omir_ros2::recording::{Advance, Import, Input, Kind, by_type};

/// The bytes of an MCAP file, or of a bag in SQLite.
pub fn run(bytes: &[u8]) {
    // Rules take longer to prepare than most files to be refused.
    if !matches!(Kind::of(bytes), Some(Kind::Mcap | Kind::Sqlite)) {
        return;
    }
    let first = import(bytes);
    for resource in &first {
        let read = Resource::from_value(resource.clone()).expect("a resource of ours");
        assert_eq!(read.to_value(), *resource);
    }
    assert_eq!(first, import(bytes));
}

fn import(bytes: &[u8]) -> Vec<Value> {
    // SQLite reads files alone.
    let mut kept = tempfile::NamedTempFile::new().expect("a temporary file");
    let file = if Kind::of(bytes) == Some(Kind::Sqlite) {
        kept.write_all(bytes).expect("it is written");
        Input::open(kept.path()).expect("it is there")
    } else {
        Input::new("f", Box::new(Cursor::new(bytes.to_vec())))
    };
    let Ok(mut import) = Import::new(vec![file], &by_type(), Vec::new()) else { return Vec::new() };
    let mut all = Vec::new();
    loop {
        match import.advance(usize::MAX) {
            Advance::Reading => {}
            Advance::Batch(batch) => all.extend(batch),
            Advance::Done => return all,
        }
    }
}
