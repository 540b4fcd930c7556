//! Bounds of a recording's memory, whatever a file says of itself: all that grows with a
//! file is counted against one of these. `docs/recordings.md` adds them up.

/// Bytes that a message takes beside its data while it goes from queue to queue: what is known of it, its
/// own allocation, and the room by which queues grow. It is what makes a message without data count.
const OVERHEAD: usize = 128;

/// Bytes of messages that are wanted of one piece.
pub(super) const MOST_MESSAGES: usize = 128 << 20;
/// Bytes of a message that is compressed by itself, unpacked.
pub(super) const MOST_UNPACKED: usize = 64 << 20;
/// Bytes of messages that wait for earlier ones. Beyond it they are handed out as they are.
pub(super) const MOST_HELD: usize = 256 << 20;
/// Bytes of messages that wait for transforms behind them. Beyond it they wait no longer.
pub(super) const MOST_AHEAD: usize = 64 << 20;
/// Bytes of messages with static transforms that are taken before all else.
pub(super) const MOST_STATIC: usize = 16 << 20;

/// Pieces of a file: a chunk has a megabyte, more or less.
pub(super) const MOST_PIECES: usize = 1 << 20;
/// Channels that the indexes behind the chunks of a file name, in all.
pub(super) const MOST_INDEXED: usize = 16 << 20;
/// Bytes of the index at the end of a file.
pub(super) const MOST_INDEX: u64 = 64 << 20;

/// Bytes of the definition of one type, or of what is said of one channel.
pub(super) const MOST_DESCRIPTION: usize = 1 << 20;
/// Bytes of what one file says of its types and its channels.
pub(super) const MOST_DESCRIBED: usize = 16 << 20;
/// Bytes of the definitions of all types of a recording, of which no two are the same.
pub(super) const MOST_DEFINED: usize = 8 << 20;

/// Things that are lost and told one by one.
pub(super) const MOST_LOSSES: usize = 100;

/// Memory of a message.
pub(super) fn weight(data: &[u8]) -> usize {
    data.len().saturating_add(OVERHEAD)
}

/// Memory of the description of a type or channel that is written in these texts: what is made of it is
/// larger than a short text.
pub(super) fn described(texts: &[&[u8]]) -> usize {
    texts.iter().fold(2048, |all, text| all.saturating_add(text.len()))
}
