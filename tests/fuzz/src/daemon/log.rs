//! The reader of log files.
//!
//! Half of the inputs are a file's bytes. The other half tell how to build one, of good frames and of
//! damage between them, so that what must come out is known: a CRC is not guessed by chance.

use omird::store::format::wal::{self, Contents, Damage, FILE_HEADER, FRAME_HEADER};

use crate::support::Choices;

/// Reads a file, built or as it is.
pub fn run(bytes: &[u8]) {
    match bytes.split_first() {
        Some((0, choices)) => built(&mut Choices::new(choices)),
        _ => as_it_is(bytes),
    }
}

fn as_it_is(bytes: &[u8]) {
    let number = wal::stored_number(bytes).unwrap_or(1);
    assert!(
        wal::read(bytes, number.wrapping_add(1)).is_err() || wal::stored_number(bytes).is_none()
    );
    if let Ok(contents) = wal::read(bytes, number) {
        is_sound(bytes, &contents);
    }
}

/// Frames and damage tile the file, each frame passes its CRC, and what is behind the end is not missed.
fn is_sound(bytes: &[u8], contents: &Contents<'_>) {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for frame in &contents.frames {
        let start = frame.at - FRAME_HEADER;
        let head = &bytes[start..frame.at];
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&contents.number.to_le_bytes());
        hasher.update(&head[4..12]);
        hasher.update(frame.payload);
        assert_eq!(head[12..], hasher.finalize().to_le_bytes());
        assert_eq!(&bytes[frame.at..][..frame.payload.len()], frame.payload);
        parts.push((start, frame.at + frame.payload.len()));
    }
    parts.extend(contents.damage.iter().map(|damage| (damage.at, damage.at + damage.len)));
    parts.sort_unstable();
    let mut at = FILE_HEADER;
    for (start, end) in parts {
        assert_eq!(start, at);
        assert!(end > start);
        at = end;
    }
    assert_eq!(at, contents.end);
    // A log without damage is cut at its end and goes on from there.
    if contents.damage.is_empty() {
        assert_eq!(wal::read(&bytes[..contents.end], contents.number).as_ref(), Ok(contents));
    }
}

fn built(choices: &mut Choices<'_>) {
    let number = choices.word();
    let first_seq = choices.word() >> 2;
    let mut file = b"OMIRWAL1".to_vec();
    file.extend_from_slice(&number.to_le_bytes());
    file.extend_from_slice(&first_seq.to_le_bytes());
    file.extend_from_slice(&crc32fast::hash(&file).to_le_bytes());
    file.resize(FILE_HEADER, 0);
    let mut frames: Vec<(usize, Vec<u8>)> = Vec::new();
    let mut gaps: Vec<Damage> = Vec::new();
    let mut durable = 0;
    while !choices.is_empty() && file.len() < 1 << 16 {
        let kind = choices.byte() % 3;
        let len = usize::from(choices.byte());
        if kind < 2 {
            let payload = choices.take(len).to_vec();
            // A claim is never beyond where the frame stands.
            let synced = if kind == 0 { 0 } else { file.len() as u32 };
            durable = durable.max(synced as usize);
            push_frame(&mut file, number, synced, &payload);
            frames.push((file.len() - payload.len(), payload));
        } else {
            // Without an O no frame begins in it.
            let junk = choices.take(len.max(1)).iter().map(|&b| if b == b'O' { 0 } else { b });
            let at = file.len();
            file.extend(junk);
            let len = file.len() - at;
            match gaps.last_mut() {
                Some(gap) if gap.at + gap.len == at => gap.len += len,
                _ if len > 0 => gaps.push(Damage { at, len }),
                _ => {}
            }
        }
    }
    let end = gaps.iter().map(|gap| gap.at).find(|&at| at >= durable).unwrap_or(file.len());
    frames.retain(|(at, _)| at - FRAME_HEADER < end);
    gaps.retain(|gap| gap.at < end);
    let contents = wal::read(&file, number).expect("the header is whole");
    let found = contents.frames.iter().map(|frame| (frame.at, frame.payload.to_vec()));
    assert!(found.eq(frames), "{contents:?}");
    assert_eq!((contents.number, contents.first_seq, contents.end), (number, first_seq, end));
    assert_eq!(contents.damage, gaps);
    is_sound(&file, &contents);
}

fn push_frame(file: &mut Vec<u8>, number: u64, synced: u32, payload: &[u8]) {
    let len = payload.len() as u32;
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&number.to_le_bytes());
    hasher.update(&len.to_le_bytes());
    hasher.update(&synced.to_le_bytes());
    hasher.update(payload);
    file.extend_from_slice(b"OMF1");
    file.extend_from_slice(&len.to_le_bytes());
    file.extend_from_slice(&synced.to_le_bytes());
    file.extend_from_slice(&hasher.finalize().to_le_bytes());
    file.extend_from_slice(payload);
}
