//! The node's counterpart on the machine of the daemon.
//!
//! `host golden` prints the golden numbers, to be compared with the node's. `host check IMAGE` reads on its
//! standard input what the node told over all its starts, and checks it: that nothing is lost which the node
//! said was there, that what it hands over is valid OMIR, and that the image of its flash says the same.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io::{BufRead, stdin};
use std::{env, fs};

use embedded_storage::nor_flash::{ErrorType, NorFlash, NorFlashErrorKind, ReadNorFlash};
use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::model::Resource;
use omir_core::spatial;
use omir_firmware::{FLASH, Memories, golden};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = env::args().skip(1);
    match (words.next().as_deref(), words.next()) {
        (Some("golden"), None) => {
            golden::golden(&mut |name, bytes| println!("{name} {}", hex(bytes)));
            Ok(())
        }
        (Some("check"), Some(image)) => check(&image),
        _ => Err("usage: host golden | host check IMAGE".into()),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    (0..hex.len()).step_by(2).map(|at| Ok(u8::from_str_radix(&hex[at..at + 2], 16)?)).collect()
}

/// The node's report of one record.
#[derive(Clone, Debug, PartialEq)]
struct Said {
    id: String,
    anchored: bool,
    accesses: u32,
}

/// The node's reports so far.
#[derive(Default)]
struct Story {
    known: BTreeMap<u32, Said>,
    /// The records at this start, until something happens.
    held: BTreeMap<u32, (String, u32)>,
    starting: bool,
    starts: u32,
    dropped: usize,
    /// The records that were not remembered.
    refused: usize,
}

impl Story {
    fn line(&mut self, line: &str) -> Result<(), Box<dyn Error>> {
        let words: Vec<&str> = line.split(' ').collect();
        if self.starting && words[0] != "held" {
            self.started()?;
        }
        match words[..] {
            ["start", _] => (self.starting, self.starts) = (true, self.starts + 1),
            ["held", number, id, accesses] => {
                self.held.insert(number.parse()?, (id.into(), accesses.parse()?));
            }
            ["kept", number, id, word] => {
                let said = Said { id: id.into(), anchored: word == "anchored", accesses: 0 };
                if self.known.insert(number.parse()?, said).is_some() {
                    return Err(format!("{number} was given twice").into());
                }
            }
            ["used", number, accesses] => {
                let said = self.known.get_mut(&number.parse()?).ok_or("used, though unknown")?;
                said.accesses = accesses.parse()?;
            }
            ["gone", number] => {
                self.known.remove(&number.parse()?).ok_or("forgotten, though unknown")?;
            }
            ["full"] => self.refused += 1,
            _ => return Err(format!("the node said: {line}").into()),
        }
        Ok(())
    }

    /// Compares what is there with what was said to be.
    fn started(&mut self) -> Result<(), Box<dyn Error>> {
        self.starting = false;
        let held = std::mem::take(&mut self.held);
        // Of the one thing that was under way when power went, nothing was said; it may have happened.
        let mut unsaid = 0;
        let oldest =
            held.keys().find(|number| self.known.get(number).is_some_and(|said| !said.anchored));
        let missing: Vec<u32> =
            self.known.keys().filter(|number| !held.contains_key(number)).copied().collect();
        for number in missing {
            let said = self.known.remove(&number).ok_or("unknown")?;
            if said.anchored {
                return Err(format!("the anchored record {number} is lost").into());
            }
            if oldest.is_some_and(|oldest| *oldest < number) {
                unsaid += 1;
            } else {
                self.dropped += 1;
            }
        }
        for (number, (id, accesses)) in held {
            match self.known.get_mut(&number) {
                Some(said) => {
                    let more = accesses.checked_sub(said.accesses).ok_or("an access is lost")?;
                    (unsaid, said.accesses) = (unsaid + more, accesses);
                    if said.id != id {
                        return Err(format!("{number} is {id}, and was {}", said.id).into());
                    }
                }
                None => {
                    unsaid += 1;
                    let anchored = id.contains("-b-");
                    self.known.insert(number, Said { id, anchored, accesses });
                }
            }
        }
        if unsaid > 1 {
            return Err(format!("{unsaid} things differ at start {}", self.starts).into());
        }
        Ok(())
    }
}

fn check(image: &str) -> Result<(), Box<dyn Error>> {
    let mut story = Story::default();
    let mut memories = BTreeMap::new();
    for line in stdin().lock().lines() {
        let line = line?;
        match line.strip_prefix("memory ").and_then(|rest| rest.split_once(' ')) {
            Some((number, hex)) => drop(memories.insert(number.parse::<u32>()?, bytes(hex)?)),
            None => story.line(&line)?,
        }
    }
    if story.starting {
        story.started()?;
    }
    if story.starts < 2 || memories.is_empty() {
        return Err("the node said nothing".into());
    }
    let said: BTreeSet<u32> = story.known.keys().copied().collect();
    if !memories.keys().all(|number| said.contains(number)) {
        return Err("something is handed over that was never told of".into());
    }
    for (number, said) in &story.known {
        let bytes = memories.get(number).ok_or(format!("{number} is not handed over"))?;
        let value = cbor::from_slice(bytes, &Limits::default())?;
        if cbor::to_vec(&value) != *bytes {
            return Err(format!("{number} is not in the deterministic form").into());
        }
        let resource = Resource::from_value(value).map_err(|faults| format!("{faults:?}"))?;
        let posed = spatial::pose_of(&resource).is_some_and(|pose| pose.is_ok());
        if resource.id().as_str() != said.id || !posed {
            return Err(format!("{number} is handed over as {}", resource.reference()).into());
        }
    }

    // The same memories, read here from the same flash.
    let mut flash = Memories::mount(Image(fs::read(image)?)).map_err(|error| error.to_string())?;
    let mut last = None;
    let mut found = BTreeSet::new();
    while let Some(kept) = flash.next(last).map_err(|error| error.to_string())? {
        last = Some(kept.number);
        found.insert(kept.number.get());
        if story.known.get(&kept.number.get()).map(|said| &*said.id)
            != Some(kept.record.id.as_str())
        {
            return Err("the image holds another record".into());
        }
    }
    if found != said {
        return Err("the image holds other records".into());
    }
    println!(
        "{} starts, {} memories at the end, {} dropped with the oldest pages, {} without room",
        story.starts,
        said.len(),
        story.dropped,
        story.refused
    );
    Ok(())
}

/// The image of the node's flash; nothing is written to it.
struct Image(Vec<u8>);

impl ErrorType for Image {
    type Error = NorFlashErrorKind;
}

impl ReadNorFlash for Image {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NorFlashErrorKind> {
        let there = self.0.get(offset as usize..).and_then(|rest| rest.get(..bytes.len()));
        bytes.copy_from_slice(there.ok_or(NorFlashErrorKind::OutOfBounds)?);
        Ok(())
    }

    fn capacity(&self) -> usize {
        FLASH
    }
}

impl NorFlash for Image {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = 1024;

    fn erase(&mut self, _: u32, _: u32) -> Result<(), NorFlashErrorKind> {
        Err(NorFlashErrorKind::Other)
    }

    fn write(&mut self, _: u32, _: &[u8]) -> Result<(), NorFlashErrorKind> {
        Err(NorFlashErrorKind::Other)
    }
}
