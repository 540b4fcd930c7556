//! JSON Pointers (RFC 6901) as every error of this crate reports them.
//!
//! One habit departs from the RFC: the root of a document is written `/`, as OMIR validators do,
//! where the RFC writes the empty string. Inside the crate the root stays the empty string so that
//! pointers can be joined; [`displayed`] turns it into what people read.

use alloc::string::String;
use core::fmt::Write;

/// Appends one reference token, escaping `~` and `/`.
pub fn push(pointer: &mut String, token: &str) {
    pointer.push('/');
    for character in token.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

/// `base` followed by the member `token`; a `base` of `/` counts as the root.
pub fn join(base: &str, token: &str) -> String {
    let mut pointer = start(base, token.len() + 1);
    push(&mut pointer, token);
    pointer
}

/// `base` followed by the array position `index`; a `base` of `/` counts as the root.
pub fn join_index(base: &str, index: usize) -> String {
    let mut pointer = start(base, 8);
    // Writing to a String cannot fail.
    let _ = write!(pointer, "/{index}");
    pointer
}

/// The pointer as it is shown: the root becomes `/`.
pub fn displayed(pointer: &str) -> &str {
    if pointer.is_empty() { "/" } else { pointer }
}

/// The tokens of a pointer, unescaped. The root has none, however it is written.
pub fn tokens(pointer: &str) -> impl Iterator<Item = String> + '_ {
    let root = pointer.is_empty() || pointer == "/";
    pointer
        .split('/')
        .skip(1)
        .filter(move |_| !root)
        // In this order: `~01` means `~1`, not `/`.
        .map(|token| token.replace("~1", "/").replace("~0", "~"))
}

fn start(base: &str, extra: usize) -> String {
    let base = if base == "/" { "" } else { base };
    let mut pointer = String::with_capacity(base.len() + extra);
    pointer.push_str(base);
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_survive_escaping() {
        let pointer = join(&join_index("/", 3), "a/b~c~1");
        assert_eq!(pointer, "/3/a~1b~0c~01");
        let back: Vec<String> = tokens(&pointer).collect();
        assert_eq!(back, ["3", "a/b~c~1"]);
    }

    #[test]
    fn the_root_is_shown_as_a_slash() {
        assert_eq!(displayed(""), "/");
        assert_eq!(displayed("/a"), "/a");
        assert_eq!(tokens("/").count(), 0);
        assert_eq!(tokens("").count(), 0);
    }
}
