//! The model of a ring: records in memory, and commands that change both alike.

use std::collections::BTreeMap;

use omir_core::fixed::ring::{Number, Ring, RingError};

use super::nor::{Fault, Nor, Random};

/// One record: its bytes, its keep flag, its newest state.
pub type Memory = (Vec<u8>, bool, Option<Vec<u8>>);
pub type View = BTreeMap<Number, Memory>;

/// Something a firmware does.
#[derive(Clone, Debug)]
pub enum Command {
    Append(Vec<u8>, bool),
    Touch(Number, Vec<u8>, bool),
    Forget(Number),
}

pub type Answer = Result<Option<Number>, RingError<Fault>>;

pub fn act<const W: usize, const E: usize>(
    ring: &mut Ring<Nor<W, E>>,
    command: &Command,
) -> Answer {
    match command {
        Command::Append(bytes, keep) => ring.append(bytes, *keep).map(Some),
        Command::Touch(number, state, keep) => ring.touch(*number, state, *keep).map(|()| None),
        Command::Forget(number) => ring.forget(*number).map(|()| None),
    }
}

pub fn apply(view: &mut View, command: &Command, number: Option<Number>) {
    match (command, number) {
        (Command::Append(bytes, keep), Some(number)) => {
            assert!(
                view.insert(number, (bytes.clone(), *keep, None)).is_none(),
                "{number:?} again"
            );
        }
        (Command::Append(..), None) => panic!("appended without a number"),
        (Command::Touch(number, state, keep), _) => {
            let memory = view.get_mut(number).expect("touched");
            (memory.1, memory.2) = (*keep, Some(state.clone()));
        }
        (Command::Forget(number), _) => drop(view.remove(number)),
    }
}

/// Everything the ring holds.
pub fn look<const W: usize, const E: usize>(ring: &mut Ring<Nor<W, E>>) -> View {
    let mut buffer = [0; 1024];
    let mut view = View::new();
    let mut after = None;
    while let Some(entry) = ring.next(after, &mut buffer).unwrap() {
        assert!(after < Some(entry.number), "oldest to newest");
        after = Some(entry.number);
        let state = entry.state.map(|len| buffer[entry.len..entry.len + len].to_vec());
        view.insert(entry.number, (buffer[..entry.len].to_vec(), entry.keep, state));
        assert_eq!(ring.get(entry.number, &mut buffer), Ok(entry));
    }
    view
}

/// The ring may have lost its oldest records, and nothing else.
#[track_caller]
pub fn holds(view: &View, truth: &View, why: &str) {
    for (number, memory) in view {
        assert_eq!(truth.get(number), Some(memory), "{number:?}, {why}");
    }
    for (number, memory) in truth {
        assert!(!memory.1 || view.contains_key(number), "{number:?} was to be kept, {why}");
    }
}

/// After a cut within a command: all of it happened, or none; the oldest may be gone either way.
#[track_caller]
pub fn is_between(view: &View, before: &View, after: &View, why: &str) {
    for (number, memory) in view {
        let known = [before, after].map(|side| side.get(number));
        assert!(known.contains(&Some(memory)), "{number:?} is neither old nor new, {why}");
    }
    for (number, memory) in before {
        if after.contains_key(number) || memory.1 && !forgot(before, after) {
            assert!(view.contains_key(number), "{number:?} is lost, {why}");
        }
    }
}

/// Returns true if what is missing afterwards was to be kept, and so was forgotten on purpose.
pub fn forgot(before: &View, after: &View) -> bool {
    before.iter().any(|(number, memory)| memory.1 && !after.contains_key(number))
}

pub fn bytes(random: &mut Random, len: u64) -> Vec<u8> {
    (0..len).map(|_| random.next() as u8).collect()
}

/// The next thing to do: mostly appending, of all lengths.
pub fn command(random: &mut Random, view: &View) -> Command {
    let kept =
        view.values().filter(|memory| memory.1).map(|memory| memory.0.len() + 32).sum::<usize>();
    let known: Vec<&Number> = view.keys().collect();
    let one = |random: &mut Random| *known[random.below(known.len() as u64) as usize];
    match random.below(10) {
        0 | 1 if !known.is_empty() => {
            let (number, len) = (one(random), random.below(20));
            let keep = view[&number].1 ^ (random.below(4) == 0 && kept < 200);
            Command::Touch(number, bytes(random, len), keep)
        }
        2 if !known.is_empty() => Command::Forget(one(random)),
        _ => {
            let keep = random.below(5) == 0 && kept < 200;
            let len = random.below(90);
            Command::Append(bytes(random, len), keep)
        }
    }
}
