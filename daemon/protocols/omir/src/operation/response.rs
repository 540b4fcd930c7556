//! The result of an operation, as a value and as bytes: `docs/replies.md`.

use omir_core::value::Value;
use omird_engine::Compaction;
use omird_engine::Encoding;
use omird_engine::Export;
use omird_engine::Recall;
use omird_engine::Receipt;
use omird_engine::SweepReport;
use omird_engine::{Code, Error};

/// The result of an operation.
#[derive(Debug)]
pub enum Response {
    /// A change.
    Receipt(Receipt),
    /// Hits.
    Recall(Recall),
    /// A Bundle.
    Export(Export),
    /// Segments that were rewritten.
    Compaction(Compaction),
    /// The changes a sweep made, or would make.
    Sweep(SweepReport),
    /// An explanation of one resource.
    Explanation(Value),
    /// The state of the daemon.
    Status(Value),
    /// The segments there are.
    Backup(Value),
    /// A proof of one resource.
    Proof(Value),
    /// Bytes of a segment.
    Piece(Vec<u8>),
}

/// A response as bytes.
#[derive(Debug)]
pub struct Encoded {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Their encoding; `None` if they are octets of a file.
    pub encoding: Option<Encoding>,
    /// The resources left out of a Bundle, if any.
    pub left_out: Option<Value>,
}

impl Response {
    /// As `docs/replies.md` has it.
    ///
    /// # Errors
    /// `INTERNAL` if something that is stored cannot be read.
    pub fn into_value(self) -> Result<Value, Error> {
        Ok(match self {
            Self::Receipt(receipt) => receipt.to_value(),
            Self::Recall(recall) => recall.to_value()?,
            Self::Export(export) => export.to_value(),
            Self::Compaction(compaction) => compaction.to_value(),
            Self::Sweep(report) => report.to_value(),
            Self::Explanation(value)
            | Self::Status(value)
            | Self::Backup(value)
            | Self::Proof(value) => value,
            Self::Piece(_) => {
                let message = "a piece of a segment is bytes, and no value";
                return Err(Error::new(Code::InvalidQuery, message));
            }
        })
    }

    /// The same as bytes. Hits go into CBOR as they are stored.
    ///
    /// # Errors
    /// `INTERNAL` if something that is stored cannot be read.
    pub fn encode(self, encoding: Encoding) -> Result<Encoded, Error> {
        let left_out = self.left_out();
        let bytes = match (self, encoding) {
            (Self::Piece(bytes), _) => {
                return Ok(Encoded { bytes, encoding: None, left_out });
            }
            (Self::Recall(recall), Encoding::Cbor) => recall.to_cbor(),
            (response, encoding) => encoding.encode(&response.into_value()?),
        };
        Ok(Encoded { bytes, encoding: Some(encoding), left_out })
    }

    /// The resources left out of a Bundle, if any.
    pub fn left_out(&self) -> Option<Value> {
        match self {
            Self::Export(export) => export.left_out().to_value(),
            _ => None,
        }
    }
}
