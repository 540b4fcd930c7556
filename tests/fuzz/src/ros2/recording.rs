//! A recording: what is read of it is whole and valid, and the same when it is read again.

use std::io::Cursor;

use omir_core::model::Resource;
use omir_core::value::Value;
use omir_ros2::recording::{Advance, Import, Input, by_type};

/// The bytes of an MCAP file.
pub fn run(bytes: &[u8]) {
    // Rules take longer to prepare than most files to be refused.
    if !bytes.starts_with(b"\x89MCAP0\r\n") {
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
    let file = Input::new("f", Box::new(Cursor::new(bytes.to_vec())));
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
