//! Ids as people read and type them: of one that a daemon made up, the beginning is enough.
//!
//! Pure functions. [`crate::id_prefix`] asks the robots if a beginning is the only one of its kind.

/// So many characters of a made-up id tell it from a hundred thousand others, all but once in fifty thousand times.
const SHORT: usize = 8;

/// The mark in the place of an id's rest.
pub const ELLIPSIS: char = '…';

/// Returns true if a program made this id up: 32 hexadecimal digits as omird makes them up, or a random UUID (version
/// 4). Others, also UUIDs that begin with the time, may have much in common with their neighbours.
fn is_made_up(id: &str) -> bool {
    let is_digits = |text: &str| text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    match id.len() {
        32 => is_digits(id),
        36 => {
            let parts: Vec<&str> = id.split('-').collect();
            parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
                && parts.iter().all(|part| is_digits(part))
                && parts[2].starts_with('4')
        }
        _ => false,
    }
}

/// The id as it is shown beside `others`: of a made-up one as much as none of them begins with, another as a whole.
#[must_use]
pub fn short<'a>(id: &'a str, others: &[&str]) -> &'a str {
    if !is_made_up(id) {
        return id;
    }
    let is_shared =
        |beginning: &str| others.iter().any(|other| *other != id && other.starts_with(beginning));
    (SHORT..id.len()).map(|end| &id[..end]).find(|beginning| !is_shared(beginning)).unwrap_or(id)
}

/// Returns true if `beginning` may stand for `id`. A number is not cut in two: `door-3` does not mean `door-30`. The
/// digits of a made-up id are no number.
#[must_use]
pub fn is_meant(beginning: &str, id: &str) -> bool {
    let Some(rest) = id.strip_prefix(beginning) else { return false };
    let cuts_number = beginning.ends_with(|c: char| c.is_ascii_digit())
        && rest.starts_with(|c: char| c.is_ascii_digit());
    !cuts_number || is_made_up(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "3f9a12bc44429646fcdb23f94ea6cc70";
    const OTHER: &str = "3f9a12bc4d429646fcdb23f94ea6cc70";

    #[test]
    fn a_made_up_id_is_shown_as_far_as_it_is_alone() {
        assert_eq!(short(ONE, &[]), "3f9a12bc");
        assert_eq!(short(ONE, &[ONE, "door"]), "3f9a12bc");
        assert_eq!(short(ONE, &[ONE, OTHER]), "3f9a12bc44");
        assert_eq!(short(ONE, &["3f9a12bc44429646fcdb23f94ea6cc70-2"]), ONE);
        assert_eq!(short("0188a2b4-7c1d-4e2a-9b3c-0123456789ab", &[]), "0188a2b4");
    }

    #[test]
    fn a_chosen_id_is_shown_as_it_is() {
        for id in [
            "door-3",
            "kitti_00-00000000000000000001",
            "0188a2b4-7c1d-7e2a-9b3c-0123456789ab",
            "3F9A12BC44429646FCDB23F94EA6CC70",
            "дверь-дверь-дверь",
        ] {
            assert_eq!(short(id, &[]), id);
        }
    }

    #[test]
    fn a_beginning_stands_for_what_begins_so() {
        assert!(is_meant("3f9a", ONE) && is_meant("3", ONE) && is_meant(ONE, ONE));
        assert!(is_meant("door", "door-3") && is_meant("door-", "door-3"));
        assert!(!is_meant("door-3", "door-30"), "a number is a whole");
        assert!(is_meant("door-3", "door-3a") && is_meant("door-3", "door-3-left"));
        assert!(!is_meant("dock", "door") && !is_meant("door-31", "door-3"));
    }
}
