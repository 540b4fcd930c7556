//! Tensors of a `.safetensors` file, read in place.
//!
//! The file is `length:u64 header data`, little-endian. The header is a JSON object that names each tensor with its type, shape
//! and range of the data.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;

/// Longest header that is read.
const MAX_HEADER: usize = 16 << 20;

/// A file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadTensors(pub(crate) String);

impl fmt::Display for BadTensors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The type of a number in a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum Dtype {
    F64,
    F32,
    F16,
    BF16,
    I64,
    I32,
    I16,
    I8,
    U8,
}

impl Dtype {
    fn bytes(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::BF16 | Self::I16 => 2,
            Self::I8 | Self::U8 => 1,
        }
    }
}

#[derive(Deserialize)]
struct Stated {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

/// A tensor: where its numbers lie in the file. The range is within the file, and as long as type and shape say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tensor {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    range: Range<usize>,
}

impl Tensor {
    /// One number as a float; `None` beyond the end.
    pub(crate) fn float(&self, file: &[u8], at: usize) -> Option<f64> {
        let size = self.dtype.bytes();
        let start = self.range.start.checked_add(at.checked_mul(size)?)?;
        let bytes = file.get(self.range.clone())?.get(start - self.range.start..)?.get(..size)?;
        Some(number(self.dtype, bytes))
    }

    /// Adds `weight` times the numbers of row `row` to `out`, which is as long as a row. Returns false if there is no such row.
    pub(crate) fn add_row(&self, file: &[u8], row: usize, weight: f32, out: &mut [f32]) -> bool {
        let size = self.dtype.bytes();
        let length = out.len() * size;
        let Some(start) = row.checked_mul(length) else { return false };
        let Some(end) = start.checked_add(length) else { return false };
        let Some(bytes) = file.get(self.range.clone()).and_then(|data| data.get(start..end)) else {
            return false;
        };
        match self.dtype {
            Dtype::F32 => {
                let (numbers, _) = bytes.as_chunks::<4>();
                for (sum, bytes) in out.iter_mut().zip(numbers) {
                    *sum += weight * f32::from_le_bytes(*bytes);
                }
            }
            dtype => {
                for (sum, bytes) in out.iter_mut().zip(bytes.chunks_exact(size)) {
                    *sum += weight * number(dtype, bytes) as f32;
                }
            }
        }
        true
    }
}

fn number(dtype: Dtype, bytes: &[u8]) -> f64 {
    fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
        bytes.first_chunk().copied().unwrap_or([0; N])
    }
    match dtype {
        Dtype::F64 => f64::from_le_bytes(array(bytes)),
        Dtype::F32 => f32::from_le_bytes(array(bytes)).into(),
        Dtype::F16 => half(u16::from_le_bytes(array(bytes))),
        Dtype::BF16 => f32::from_bits(u32::from(u16::from_le_bytes(array(bytes))) << 16).into(),
        Dtype::I64 => i64::from_le_bytes(array(bytes)) as f64,
        Dtype::I32 => i32::from_le_bytes(array(bytes)).into(),
        Dtype::I16 => i16::from_le_bytes(array(bytes)).into(),
        Dtype::I8 => i8::from_le_bytes(array(bytes)).into(),
        Dtype::U8 => u8::from_le_bytes(array(bytes)).into(),
    }
}

/// A float of 16 bits: IEEE 754 binary16.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    sign * match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    }
}

/// Reads the table of tensors of a file.
pub(crate) fn tensors(file: &[u8]) -> Result<BTreeMap<String, Tensor>, BadTensors> {
    let bad = |message: &str| BadTensors(message.to_owned());
    let (length, rest) =
        file.split_first_chunk().ok_or_else(|| bad("it is shorter than 8 bytes"))?;
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
    if length > MAX_HEADER {
        return Err(BadTensors(format!(
            "its header states {length} bytes, more than {MAX_HEADER}"
        )));
    }
    let (header, data) =
        rest.split_at_checked(length).ok_or_else(|| bad("it ends within its header"))?;
    let members: BTreeMap<String, serde_json::Value> = serde_json::from_slice(header)
        .map_err(|error| BadTensors(format!("its header is no JSON object: {error}")))?;
    let base = file.len() - data.len();
    let mut tensors = BTreeMap::new();
    for (name, value) in members {
        if name == "__metadata__" {
            continue;
        }
        let wrong = |what: &str| BadTensors(format!("tensor {name:?}: {what}"));
        let Stated { dtype, shape, data_offsets: [start, end] } =
            serde_json::from_value(value).map_err(|error| wrong(&error.to_string()))?;
        // Types that no model has for its tables may stand there for something else.
        let Ok(dtype) = serde_json::from_value::<Dtype>(dtype.into()) else { continue };
        let numbers = shape.iter().try_fold(1usize, |size, side| size.checked_mul(*side));
        let bytes = numbers.and_then(|numbers| numbers.checked_mul(dtype.bytes()));
        if start > end || end > data.len() || bytes != Some(end - start) {
            return Err(wrong("its range does not fit its shape, or the file is cut"));
        }
        let range = base + start..base + end;
        tensors.insert(name, Tensor { dtype, shape, range });
    }
    Ok(tensors)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A file of one tensor.
    pub(crate) fn file(dtype: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let length = data.len();
        let header = format!(
            r#"{{"embeddings":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[0,{length}]}}}}"#
        );
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
    }

    #[test]
    fn halves_are_read() {
        for (bits, value) in [
            (0x3C00, 1.0),
            (0xC000, -2.0),
            (0x3555, 0.333_251_953_125),
            (0x0001, 2f64.powi(-24)),
            (0x7BFF, 65504.0),
            (0x7C00, f64::INFINITY),
        ] {
            assert_eq!(half(bits), value);
        }
        assert!(half(0x7E00).is_nan());
    }

    #[test]
    fn a_tensor_is_where_it_says_or_refused() {
        let whole = file("I8", "[2,3]", &[1, 2, 3, 4, 5, 0xFF]);
        let read = tensors(&whole).unwrap();
        let mut row = [0.5; 3];
        assert!(read["embeddings"].add_row(&whole, 1, 2.0, &mut row));
        assert_eq!(row, [8.5, 10.5, -1.5]);
        assert!(!read["embeddings"].add_row(&whole, 2, 1.0, &mut row));
        assert!(!read["embeddings"].add_row(&whole, usize::MAX, 1.0, &mut row));
        assert_eq!(read["embeddings"].float(&whole, 5), Some(-1.0));
        assert_eq!(read["embeddings"].float(&whole, 6), None);
        for cut in 0..whole.len() {
            assert!(tensors(&whole[..cut]).is_err(), "cut at {cut}");
        }
        for bad in [
            file("I8", "[2,4]", &[0; 6]),
            file("F32", "[2,3]", &[0; 6]),
            file("I8", "[18446744073709551615,3]", &[0; 6]),
            file("I8", "[-1]", &[0; 6]),
            b"\xff\xff\xff\xff\xff\xff\xff\xff{}".to_vec(),
        ] {
            assert!(tensors(&bad).is_err());
        }
    }
}
