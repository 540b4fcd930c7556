//! Contents that rosbag2 compressed beside its storage: files as a whole, and messages one by one.
//!
//! Nothing is believed of how much comes out: a small file must not fill a disk, nor a small message the memory.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use tempfile::NamedTempFile;

use super::RecordingError;
use super::bounds::MOST_UNPACKED;
use super::input::{Input, Kind, ZSTD};

/// Largest ratio of a file's unpacked size to its own. Text compresses a hundredfold, and recordings of robots far less
/// than a tenth of this.
const MOST_RATIO: u64 = 1024;
/// Size to which a small file may grow, whatever its own.
const LEAST_LIMIT: u64 = 32 << 20;
/// Room on the disk that is left to others.
const LEAVE_FREE: u64 = 64 << 20;

/// The contents of a file that is compressed as a whole, in a temporary file that goes when this does.
pub(super) fn file(input: Input, kind: Kind) -> Result<(Input, NamedTempFile), RecordingError> {
    let Input { name, mut source, .. } = input;
    let failed = |why: String| {
        RecordingError::new(
            &name,
            format!("is compressed as a whole and cannot be unpacked: {why}"),
        )
    };
    let size = source.seek(SeekFrom::End(0)).map_err(|why| failed(why.to_string()))?;
    source.seek(SeekFrom::Start(0)).map_err(|why| failed(why.to_string()))?;
    let out = tempfile::Builder::new().prefix("omir-recording-").tempfile();
    let mut out = out.map_err(|why| failed(why.to_string()))?;
    let free = free(out.as_file()).map_err(|why| failed(why.to_string()))?;
    let by_ratio = size.saturating_mul(MOST_RATIO).saturating_add(LEAST_LIMIT);
    let by_room = free.saturating_sub(LEAVE_FREE);
    let most = by_ratio.min(by_room);
    let written = match kind {
        Kind::Gzip => copied(flate2::read::MultiGzDecoder::new(source), &mut out, most),
        _ => {
            zstd::stream::read::Decoder::new(source).and_then(|input| copied(input, &mut out, most))
        }
    };
    let written = written.map_err(|why| failed(why.to_string()))?;
    if written > most {
        let folder = std::env::temp_dir();
        return Err(failed(if by_room < by_ratio {
            format!(
                "there is no room for it in {}; name a folder with more room by TMPDIR, or unpack it yourself",
                folder.display()
            )
        } else {
            format!("more than {most} bytes come of its {size}")
        }));
    }
    let path = out.path().to_owned();
    let source = File::open(&path).map_err(|why| failed(why.to_string()))?;
    let unpacked = Input { name: name.clone(), source: Box::new(source), path: Some(path) };
    Ok((unpacked, out))
}

/// Copies until the end, or until there is more than `most`.
fn copied(input: impl Read, out: &mut NamedTempFile, most: u64) -> io::Result<u64> {
    let written = io::copy(&mut input.take(most.saturating_add(1)), out)?;
    out.flush()?;
    Ok(written)
}

/// Bytes that may still be written where this file is.
fn free(file: &File) -> io::Result<u64> {
    let room = rustix::fs::fstatvfs(file)?;
    Ok(room.f_bavail.saturating_mul(room.f_frsize))
}

/// A compressed message that cannot be unpacked.
#[derive(Debug)]
pub(super) enum PackError {
    Zstd(io::Error),
    /// It has more bytes than are read.
    TooLong,
}

impl fmt::Display for PackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zstd(why) => {
                write!(f, "it is compressed with zstd and cannot be unpacked: {why}")
            }
            Self::TooLong => {
                let most = MOST_UNPACKED >> 20;
                write!(f, "unpacked it has more than {most} MiB, and so much is not read")
            }
        }
    }
}

/// Unpacks a message that was compressed by itself; `None` for any other. It begins as zstd does, and no
/// encapsulation of CDR begins so.
pub(super) fn message(data: &[u8]) -> Result<Option<Vec<u8>>, PackError> {
    if !data.starts_with(&ZSTD) {
        return Ok(None);
    }
    let reader = zstd::stream::read::Decoder::with_buffer(data).map_err(PackError::Zstd)?;
    let mut all = Vec::new();
    reader.take(MOST_UNPACKED as u64 + 1).read_to_end(&mut all).map_err(PackError::Zstd)?;
    if all.len() > MOST_UNPACKED {
        return Err(PackError::TooLong);
    }
    Ok(Some(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_unpacked_within_its_bound() {
        assert_eq!(message(&[0, 1, 0, 0, 7]).unwrap(), None);
        let packed = zstd::encode_all(&[0, 1, 0, 0, 7][..], 3).unwrap();
        assert_eq!(message(&packed).unwrap(), Some(vec![0, 1, 0, 0, 7]));
        let cut = message(&packed[..packed.len() - 2]).unwrap_err().to_string();
        assert!(cut.contains("cannot be unpacked"), "{cut}");
        let bomb = zstd::encode_all(io::repeat(0).take(MOST_UNPACKED as u64 + 1), 1).unwrap();
        assert!(bomb.len() < 100_000, "{}", bomb.len());
        assert!(message(&bomb).unwrap_err().to_string().contains("64 MiB"));
    }

    #[test]
    fn a_file_that_is_compressed_does_not_fill_the_disk() {
        let input = |bytes: Vec<u8>| Input::new("x.mcap.zstd", Box::new(io::Cursor::new(bytes)));
        let bytes = zstd::encode_all(&b"all of it"[..], 3).unwrap();
        let (mut unpacked, _kept) = file(input(bytes), Kind::Zstd).unwrap();
        let mut text = String::new();
        unpacked.source.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), unpacked.name.as_str()), ("all of it", "x.mcap.zstd"));
        // 17,000 to one, as nothing that was recorded is.
        let bomb = zstd::encode_all(io::repeat(0).take(96 << 20), 1).unwrap();
        let why = file(input(bomb), Kind::Zstd).err().unwrap().to_string();
        assert!(why.starts_with("x.mcap.zstd: ") && why.contains("bytes come of its"), "{why}");
        let why = file(input(ZSTD.to_vec()), Kind::Zstd).err().unwrap().to_string();
        assert!(why.contains("cannot be unpacked"), "{why}");
    }
}
