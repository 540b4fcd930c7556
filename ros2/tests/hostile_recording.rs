//! Recordings made to take all memory, or for ever: each is refused with the reason and where, and what is in
//! memory at once stays within what docs/recordings.md states. A program of its own, since it looks at how
//! much memory it ever had.

#![cfg(all(feature = "recordings", target_os = "linux"))]

use std::collections::BTreeMap;
use std::io::Cursor;

use mcap::records::MessageHeader;
use mcap::{Compression, WriteOptions, Writer};
use omir_ros2::recording::{Advance, At, Import, Input, Report, by_type};

/// The bound of docs/recordings.md, in kB.
const BOUND: u64 = 512 << 10;
const MAGIC: &[u8] = b"\x89MCAP0\r\n";

/// Bytes of memory that this program had at most, in kB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn import(file: Vec<u8>) -> (usize, Report) {
    let input = Input::new("x.mcap", Box::new(Cursor::new(file)));
    let mut import = Import::new(vec![input], &by_type(), vec![]).unwrap();
    let mut all = 0;
    loop {
        match import.advance(1000) {
            Advance::Reading => {}
            Advance::Batch(batch) => all += batch.len(),
            Advance::Done => break,
        }
    }
    let report = import.report();
    for loss in &report.losses {
        assert_eq!(loss.file, "x.mcap");
        assert!(!loss.what.is_empty());
    }
    (all, report)
}

fn writer(compression: Option<Compression>) -> Writer<Cursor<Vec<u8>>> {
    let options = WriteOptions::new()
        .compression(compression)
        .chunk_size(None)
        .emit_message_indexes(false)
        .compression_level(1);
    options.create(Cursor::new(Vec::new())).unwrap()
}

fn string_channel(writer: &mut Writer<Cursor<Vec<u8>>>, text: &[u8]) -> u16 {
    let schema = writer.add_schema("std_msgs/msg/String", "ros2msg", text).unwrap();
    writer.add_channel(schema, "/words", "cdr", &BTreeMap::new()).unwrap()
}

fn header(channel_id: u16, n: u64) -> MessageHeader {
    MessageHeader { channel_id, sequence: 0, log_time: 1_000 + n, publish_time: 0 }
}

fn finished(mut writer: Writer<Cursor<Vec<u8>>>) -> Vec<u8> {
    writer.finish().unwrap();
    writer.into_inner().into_inner()
}

/// Chunks of messages without data: some kilobytes of file for each chunk.
fn empty_messages(chunks: u64, each: u64) -> Vec<u8> {
    let mut writer = writer(Some(Compression::Zstd));
    let channel = string_channel(&mut writer, b"string data\n");
    for _ in 0..chunks {
        for _ in 0..each {
            writer.write_to_known_channel(&header(channel, 0), &[]).unwrap();
        }
        writer.flush().unwrap();
    }
    finished(writer)
}

fn record(file: &mut Vec<u8>, opcode: u8, bytes: &[u8]) {
    file.push(opcode);
    file.extend((bytes.len() as u64).to_le_bytes());
    file.extend(bytes);
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text.as_bytes());
}

fn schema(id: u16, name: &str, definition: &str) -> Vec<u8> {
    let mut bytes = id.to_le_bytes().to_vec();
    text(&mut bytes, name);
    text(&mut bytes, "ros2msg");
    text(&mut bytes, definition);
    bytes
}

fn channel(id: u16, schema: u16, topic: &str) -> Vec<u8> {
    let mut bytes = [id.to_le_bytes(), schema.to_le_bytes()].concat();
    text(&mut bytes, topic);
    text(&mut bytes, "cdr");
    bytes.extend(0_u32.to_le_bytes());
    bytes
}

#[test]
fn no_file_takes_more_memory_than_is_stated() {
    let base = peak();
    let within = |what: &str| {
        let took = peak();
        println!("{what}: {} MB at most", took / 1024);
        assert!(took < base + BOUND, "{what}: {took} kB, {base} kB before all");
    };

    // 200 MB of messages without data, in one chunk of a few kilobytes.
    let file = empty_messages(1, 6_000_000);
    assert!(file.len() < 1 << 20, "{}", file.len());
    let (_, report) = import(file);
    within("a chunk of empty messages");
    assert_eq!(report.losses.len(), 1, "{:?}", report.losses);
    assert!(
        matches!(report.losses[0].at, At::Byte(at) if at > 8)
            && report.losses[0].what.contains("chunk")
    );

    // More than the limit of a chunk, of a topic that nobody wants.
    let mut zeros = writer(Some(Compression::Zstd));
    let unwanted = zeros.add_channel(0, "/zeros", "cdr", &BTreeMap::new()).unwrap();
    for n in 0..300 {
        zeros.write_to_known_channel(&header(unwanted, n), &vec![0; 1 << 20]).unwrap();
    }
    let file = finished(zeros);
    assert!(file.len() < 1 << 20, "{}", file.len());
    let (_, report) = import(file);
    within("a chunk that unpacks to 300 MB");
    assert_eq!(report.losses.len(), 1, "{:?}", report.losses);
    assert!(report.losses[0].what.contains("chunk"), "{:?}", report.losses);

    // Chunks that say they begin at the same time: all of them would have to be sorted.
    let (_, report) = import(empty_messages(3, 700_000));
    within("chunks of empty messages that overlap");
    assert!(report.losses.is_empty(), "{:?}", report.losses);
    let words = &report.topics[0];
    assert_eq!((words.messages, words.counters.malformed), (2_100_000, 2_100_000));
    assert_eq!(words.malformed.len(), 10);

    // Types and channels that are described again, and again.
    let mut file = MAGIC.to_vec();
    for n in 0..200_u16 {
        let fields: String = (0..20_000).map(|field| format!("int8 f{n}_{field}\n")).collect();
        record(&mut file, 3, &schema(n % 7 + 1, &format!("a/msg/T{n}"), &fields));
        record(&mut file, 4, &channel(n, n % 7 + 1, &format!("/t{n}")));
    }
    let (_, report) = import(file);
    within("types of 20,000 fields");
    assert!(report.losses.iter().any(|loss| loss.what.contains("is not read")));

    // A description that is larger than any is.
    let mut file = MAGIC.to_vec();
    record(&mut file, 3, &schema(1, "std_msgs/msg/String", &"#".repeat(2 << 20)));
    record(&mut file, 4, &channel(1, 1, "/words"));
    let (_, report) = import(file);
    assert_eq!((report.losses[0].at, report.losses.len()), (At::Byte(8), 2), "{:?}", report.losses);
    assert_eq!(report.topics[0].unusable.as_deref(), Some("the file has no schema for it"));

    // A million records that are none.
    let mut file = MAGIC.to_vec();
    for _ in 0..1_000_000 {
        record(&mut file, 3, b"?");
    }
    let (_, report) = import(file);
    within("a million broken schemas");
    assert_eq!(report.losses.len(), 101, "a hundred, and that there are more");
    assert!(report.losses[100].what.contains("more places"), "{:?}", report.losses[100]);

    // Lengths that nothing stands behind.
    for length in [u64::MAX, u64::MAX - 8, 1 << 62, 1 << 40, (1 << 28) - 1] {
        for opcode in 1..=0x0f {
            let mut file = MAGIC.to_vec();
            file.push(opcode);
            file.extend(length.to_le_bytes());
            file.extend([0; 64]);
            let (made, report) = import(file);
            assert_eq!(made, 0);
            assert_eq!(report.losses[0].at, At::Byte(8), "{opcode}: {:?}", report.losses);
        }
    }
    within("lengths that nothing stands behind");
}
