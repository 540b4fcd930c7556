//! Lines of a text by what they are: said by a person, the result of a tool, or a listing that a tool printed.
//!
//! The transcript of an agent has its thoughts beside whole files, tables, progress bars, prompts and tracebacks. A person who
//! reads what is left of it wants the thoughts, and of the rest how it came out. The shape of a line tells which it is, and
//! the lines beside it: no rule knows a tool by its name.
//!
//! | kind | lines |
//! |---|---|
//! | result | counts of tests (`3 passed, 1 failed`) |
//! | failure | the message of an error |
//! | place | the frame of a stack next to the error that is no library's |
//! | listing | code, changes of code, numbered lines, other frames, paths, rows of a directory, objects of JSON, progress, prompts, rules |
//! | said | all others |

use std::borrow::Cow;

use crate::work::steps;
use crate::{constraint_cue, sentences};

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LineKind {
    /// A person says it, or nothing tells otherwise.
    Said,
    /// The result of a tool: how tests came out.
    Result,
    /// The place where something failed: the frame of a stack that is no library's.
    Place,
    /// A message that something failed, such as `KeyError: 'dock'`.
    Failure,
    /// Printed by a tool: a part of a file or of a table, a prompt, progress.
    Listing,
}

impl LineKind {
    /// Returns true for what a tool tells of its outcome.
    pub fn is_result(self) -> bool {
        matches!(self, Self::Result | Self::Place | Self::Failure)
    }
}

/// Returns the lines of `text` that are not blank, trimmed, each with its kind.
pub fn lines(text: &str) -> Vec<(LineKind, &str)> {
    let raw: Vec<&str> = text.split(['\n', '\r', '\u{2028}', '\u{2029}']).collect();
    let mut kinds: Vec<LineKind> = raw.iter().map(|line| by_itself(line)).collect();
    mark_fences(&raw, &mut kinds);
    mark_numbered(&raw, &mut kinds);
    mark_indented(&raw, &mut kinds);
    mark_changes(&raw, &mut kinds);
    mark_frames(&raw, &mut kinds);
    let all = kinds.into_iter().zip(raw.into_iter().map(str::trim));
    all.filter(|(_, line)| !line.is_empty()).collect()
}

/// Returns `text` without its listings. A text of listings alone stays as it is, and so does one without any.
pub fn told(text: &str) -> Cow<'_, str> {
    let all = lines(text);
    let is_told = |kind: LineKind| kind != LineKind::Listing;
    if all.iter().all(|(kind, _)| is_told(*kind)) || !all.iter().any(|(kind, _)| is_told(*kind)) {
        return Cow::Borrowed(text);
    }
    let kept: Vec<&str> =
        all.into_iter().filter(|(kind, _)| is_told(*kind)).map(|(_, line)| line).collect();
    Cow::Owned(kept.join("\n"))
}

/// Returns the sentences of `text` in order, each with the kind of its line.
pub(crate) fn statements(text: &str) -> impl Iterator<Item = (LineKind, &str)> {
    lines(text)
        .into_iter()
        .flat_map(|(kind, line)| sentences(line).map(move |sentence| (kind, sentence)))
}

/// Words by which a client marks what a tool answered.
const LABELS: &[&str] = &["Observation: ", "OBSERVATION: ", "Outcome: ", "Output: ", "Result: "];

/// Returns a line, trimmed and without such a word before it.
fn unlabelled(raw: &str) -> &str {
    let line = raw.trim();
    LABELS.iter().find_map(|label| line.strip_prefix(label)).map_or(line, str::trim_start)
}

/// Returns the message of a line that tells an outcome, without the signs around it.
pub fn message(line: &str) -> &str {
    let bare = unlabelled(line).trim_matches(['=', ' ', '-', '_', '*']);
    // As pytest marks the message of an error.
    bare.strip_prefix("E ").map_or(bare, str::trim_start)
}

/// Decides by a line alone.
fn by_itself(raw: &str) -> LineKind {
    steps(raw.len());
    let line = unlabelled(raw);
    if line.is_empty() {
        return LineKind::Said;
    }
    if let Some(result) = result(line) {
        return result;
    }
    let is_listing = is_frame(line)
        || is_prompt(line)
        || is_aside(line)
        || is_rule(line)
        || is_progress(line)
        || is_single(line)
        || is_row(line)
        || is_object(line)
        || is_code(line);
    if is_listing { LineKind::Listing } else { LineKind::Said }
}

/// Words behind a number that count how tests came out.
const COUNTED: &[&str] =
    &["passed", "failed", "passing", "failing", "failures", "errors", "skipped", "tests"];
/// Words of a line that counts tests, at most: longer ones are prose.
const MOST_WORDS_OF_COUNT: usize = 20;
/// Ends of a message by which a shell says that something is wrong.
const COMPLAINTS: &[&str] =
    &["command not found", "No such file or directory", "Permission denied", "Segmentation fault"];
/// Beginnings of a line by which a tool says that something failed.
const FAILING: &[&str] = &["FAILED ", "FAIL ", "FAIL: ", "ERROR: ", "ERROR ", "fatal: ", "error: "];
/// The longest line that is a message.
const LONGEST_MESSAGE: usize = 400;

/// Returns the kind of a line that tells an outcome.
fn result(line: &str) -> Option<LineKind> {
    if line.len() > LONGEST_MESSAGE {
        return None;
    }
    let bare = line.trim_matches(['=', ' ', '-', '_', '*']);
    let message = message(line);
    let is_failure = is_exception(message)
        || FAILING.iter().any(|one| message.starts_with(one))
        || COMPLAINTS.iter().any(|one| message.ends_with(one))
        || message.starts_with("thread '") && message.contains("panicked at")
        || bare.starts_with("test ") && bare.ends_with("... FAILED")
        || bare.split_once(": ").is_some_and(|(_, word)| matches!(word, "FAIL" | "FAILED"))
        || is_finding(message);
    if is_failure {
        return Some(LineKind::Failure);
    }
    counts_tests(bare).then_some(LineKind::Result)
}

/// Returns true for `KeyError: 'dock'`, `x.y.SomeException: …` and `error[E0277]: …`.
fn is_exception(line: &str) -> bool {
    let Some((name, rest)) = line.split_once(':') else { return false };
    let name = name.trim_end();
    let is_name =
        |name: &str| name.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | ':'));
    let has_ending = ["Error", "Exception", "Warning"].iter().any(|end| name.ends_with(end));
    let is_class = has_ending && !name.ends_with("Warning") && is_name(name) && name.len() > 5;
    let is_numbered = name.strip_prefix("error[").is_some_and(|code| code.ends_with(']'));
    (is_class || is_numbered) && rest.starts_with(' ') && !rest.trim().is_empty()
}

/// Returns true for what a compiler or a linter found at a place: `a.c:3:4: error: …`, `a.py:3:1: F841 …`.
fn is_finding(line: &str) -> bool {
    let Some((place, rest)) = line.split_once(": ") else { return false };
    let first = rest.split([' ', ':', '[']).next().unwrap_or_default();
    let is_code = first.starts_with(|c: char| c.is_ascii_uppercase())
        && first.trim_start_matches(|c: char| c.is_ascii_uppercase()).parse::<u32>().is_ok();
    has_line_number(place)
        && !place.contains(' ')
        && (is_code || matches!(first, "error" | "warning"))
}

/// Returns true for `209 passed, 1 warning in 4.12s`, `Ran 5 tests in 0.3s` and `test result: ok. 3 passed; 0 failed`.
fn counts_tests(line: &str) -> bool {
    let (mut words, mut last_is_number, mut has_count) = (0, false, false);
    for word in line.split_whitespace() {
        words += 1;
        if words > MOST_WORDS_OF_COUNT {
            return false;
        }
        let word = word.trim_matches([',', ';', '.', '(', ')']);
        has_count |= last_is_number && COUNTED.iter().any(|one| word.eq_ignore_ascii_case(one));
        last_is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    }
    let is_prose = line.ends_with(['.', '!', '?']) && !line.contains(':');
    has_count && !is_prose
}

/// Returns true for the frame of a stack: `File "a.py", line 3, in f`, `at f (a.js:3:4)`, `--> a.rs:3:4`, `b.py:3: in f`.
fn is_frame(line: &str) -> bool {
    if line.starts_with("File \"") && line.contains("\", line ") {
        return true;
    }
    if line == "Traceback (most recent call last):" {
        return true;
    }
    if let Some(rest) = line.strip_prefix("--> ").or_else(|| line.strip_prefix("at "))
        && !rest.ends_with('.')
    {
        let place = rest.trim_end_matches(')').rsplit([' ', '(']).next().unwrap_or_default();
        return has_line_number(place);
    }
    // pytest: `tests/test_a.py:380: AttributeError`.
    let (place, rest) = line.split_once(": ").unwrap_or((line.trim_end_matches(':'), ""));
    let is_behind =
        is_of_library(place) || rest.is_empty() || rest.starts_with("in ") || ends_as_error(rest);
    has_line_number(place) && !place.contains(' ') && is_behind
}

fn ends_as_error(word: &str) -> bool {
    !word.contains(' ') && ["Error", "Exception", "Failure"].iter().any(|end| word.ends_with(end))
}

/// Returns true for `b.py:380` and `a.rs:3:4`.
fn has_line_number(place: &str) -> bool {
    let Some((path, number)) = place.split_once(':') else { return false };
    let is_number = number
        .split(':')
        .all(|one| !one.is_empty() && one.bytes().all(|byte| byte.is_ascii_digit()));
    is_number && path.contains('.') && path.contains(char::is_alphabetic)
}

/// Places of libraries: a frame there is not the one to mend.
const LIBRARIES: &[&str] = &[
    "site-packages",
    "dist-packages",
    "node_modules",
    "/lib/python",
    "/usr/lib",
    "<frozen",
    ".cargo/registry",
    "/rustc/",
    "node:internal",
];

fn is_of_library(line: &str) -> bool {
    LIBRARIES.iter().any(|place| line.contains(place))
}

/// Returns true for the prompt of a shell with nothing behind it, such as `bash-$`.
fn is_prompt(line: &str) -> bool {
    let ends = line.ends_with(['$', '#', '>', '%']);
    ends && line.len() <= 60
        && !line[..line.len() - 1].trim_end().contains(' ')
        && !line.contains(|c: char| c.is_ascii_digit() && line.ends_with('%'))
}

/// Returns true for a line in brackets that is no sentence: `(Open file: a.py)`, `[File: a.py (30 lines total)]`.
fn is_aside(line: &str) -> bool {
    let is_in = line.starts_with('(') && line.ends_with(')')
        || line.starts_with('[') && line.ends_with(']');
    let inner = line.get(1..line.len().saturating_sub(1)).unwrap_or_default();
    is_in
        && !(is_whole_object(line) && line.contains("\":"))
        && !inner.ends_with(['.', '!', '?'])
        && constraint_cue(line).is_none()
}

/// Returns true for a line of few letters and digits, such as `=====` or `+---+---+`.
fn is_rule(line: &str) -> bool {
    let signs = line.chars().filter(|c| !c.is_alphanumeric() && !c.is_whitespace()).count();
    let all = line.chars().filter(|c| !c.is_whitespace()).count();
    let is_bracket =
        !line.contains(char::is_alphanumeric) && line.contains(['(', ')', '[', ']', '{', '}']);
    is_bracket
        || all >= 6
            && signs * 10 >= all * 6
            && !is_whole_object(line)
            && !line.contains(|c: char| c as u32 > 0x2fff)
}

/// Beginnings of a line by which a tool tells what it is at.
#[rustfmt::skip]
const AT_WORK: &[&str] = &[
    "Collecting ", "Compiling ", "Downloaded ", "Downloading ", "Fetching ", "Receiving objects", "Requirement already satisfied",
    "Resolving deltas", "Unpacking ", "Using cached ",
];

/// Returns true for a bar or a step of progress, and for one test that passed.
fn is_progress(line: &str) -> bool {
    let is_at_work = AT_WORK.iter().any(|one| line.starts_with(one))
        && line.contains(|c: char| c.is_ascii_digit() || c == '/')
        && (!line.ends_with('.') || line.ends_with(".."));
    let passes = line.contains("::") && line.split_whitespace().any(|word| word == "PASSED")
        || line.starts_with("test ") && line.ends_with("... ok");
    is_at_work || passes || line.contains('%') && has_bar(line)
}

/// Signs of a bar in a row.
const LEAST_BAR: usize = 5;

fn has_bar(line: &str) -> bool {
    let (mut count, mut last) = (0, None);
    for c in line.chars() {
        count = if last == Some(c) { count + 1 } else { 1 };
        last = Some(c);
        if count >= LEAST_BAR && matches!(c, '.' | '#' | '=' | '-' | '>' | '█' | '━' | '▓' | '■')
        {
            return true;
        }
    }
    false
}

/// Returns true for one word that is a path or a code, such as a line of a list of files.
fn is_single(line: &str) -> bool {
    if line.contains(char::is_whitespace) || line.len() < 8 {
        return false;
    }
    let is_path = line.contains(['/', '\\']) || line.contains("::");
    let hex = line.bytes().filter(|byte| byte.is_ascii_hexdigit() || *byte == b'-').count();
    let is_hash = hex == line.len()
        && line.contains(|c: char| c.is_ascii_digit())
        && line.contains(|c: char| c.is_ascii_alphabetic());
    is_path || is_hash
}

/// Returns true for a row of `ls -l`.
fn is_row(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    let rights = first.trim_end_matches(['+', '@', '.']);
    rights.len() == 10
        && rights.starts_with(['-', 'd', 'l', 'c', 'b', 's', 'p'])
        && rights[1..].bytes().all(|byte| b"rwxsStT-".contains(&byte))
}

/// The longest object of JSON that says something to a person.
const LONGEST_OBJECT: usize = 160;

/// Returns true for an object of JSON in one line.
fn is_whole_object(line: &str) -> bool {
    let body = line.trim_end_matches(',');
    body.starts_with('{') && body.ends_with('}')
        || body.starts_with('[') && body.ends_with(']') && body.contains('"')
}

/// Returns true for a long object of JSON, or a member of one in a line of its own.
fn is_object(line: &str) -> bool {
    if is_whole_object(line) {
        return line.len() > LONGEST_OBJECT;
    }
    let is_member = line.starts_with('"') && line.contains("\":");
    // An object that was cut off, or stands inside other words: quoted names before colons, again and again.
    is_member || line.matches("\": ").count() >= 6
}

/// Beginnings of a line of code.
#[rustfmt::skip]
const CODE: &[&str] = &[
    "#!/", "#include ", "#[", "<?", "</", "<!--", "/*", "*/", "//", "export class ", "export const ", "export default ",
    "export function ", "print(", "pub enum ", "pub fn ", "pub mod ", "pub struct ", "pub use ", "pub(", "self.",
];
/// Beginnings of a line of code, if one of these signs is in it too: they are words as well.
const CODE_WITH: &[(&str, char)] = &[
    ("async def ", '('),
    ("const ", '='),
    ("def ", '('),
    ("export ", '='),
    ("fn ", '('),
    ("function ", '('),
    ("let ", '='),
    ("var ", '='),
];
/// Words that open a block where the line ends with a colon.
const BLOCKS: &[&str] =
    &["class", "def", "elif", "else:", "except", "finally:", "for", "if", "try:", "while", "with"];
/// Signs that code has more of than prose has, of a hundred.
const MOST_SIGNS: usize = 22;
/// Signs on which that is decided, at least.
const LEAST_SIGNS: usize = 12;

/// Returns true for a line of code.
fn is_code(line: &str) -> bool {
    if has_end_of_prose(line) || is_whole_object(line) && line.contains("\":") {
        return false;
    }
    let first = line.split_whitespace().next().unwrap_or_default();
    let words = line.split_whitespace().count();
    let is_begun = CODE.iter().any(|one| line.starts_with(one))
        || CODE_WITH.iter().any(|(one, sign)| line.starts_with(one) && line.contains(*sign));
    let is_begun = is_begun && constraint_cue(line).is_none();
    let opens_block = BLOCKS.contains(&first)
        && line.ends_with(':')
        && (words <= 2
            || line.contains(['(', '=', '_', '[', '\'', '"'])
            || first == "for" && line.contains(" in "));
    let is_import = first == "import" && words <= 4
        || first == "from" && line.contains(" import ")
        || first == "return" && words <= 6 && line.contains(['(', '.', '_', '['])
        || first == "raise" && line.contains('(');
    let ends = line.ends_with(['{', '}', ';', '[', '\\'])
        || line.ends_with('(')
        || [");", "),", "],", "})", "])", "):"].iter().any(|end| line.ends_with(end));
    is_begun || opens_block || is_import || ends || is_assignment(line) || has_many_signs(line)
}

fn has_end_of_prose(line: &str) -> bool {
    line.ends_with(['.', '!', '?']) && line.split_whitespace().count() > 3
}

/// Returns true for a name, an equals sign, and a value as code has it. A setting, such as `speed = 0.5`, says something.
fn is_assignment(line: &str) -> bool {
    let Some((name, value)) = line.split_once('=') else { return false };
    let name = name.trim_end_matches([' ', '+', '-', ':', '*']);
    let is_name = !name.is_empty()
        && name.chars().all(|c| {
            c.is_alphanumeric() || matches!(c, '.' | '_' | '[' | ']' | '\'' | '"' | ',' | ' ')
        })
        && name.split(' ').count() <= 2;
    is_name && value.contains(['(', '[', '{', '\'', '"'])
}

fn has_many_signs(line: &str) -> bool {
    let is_sign = |c: &char| "(){}[]<>=;:\"'_+*/\\|&$#@!~^%".contains(*c);
    let all = line.chars().filter(|c| !c.is_whitespace()).count();
    let signs = line.chars().filter(is_sign).count();
    all >= LEAST_SIGNS && signs * 100 >= all * MOST_SIGNS && !line.contains("://")
}

/// Marks what stands between fences of three back ticks, if there is code in it, and what is between three quotes: a text inside
/// of code.
fn mark_fences(raw: &[&str], kinds: &mut [LineKind]) {
    for fence in ["```", "\"\"\"", "'''"] {
        let is_fence = |line: &str| {
            let line = line.trim_start();
            // One that is closed in the same line is none.
            line.strip_prefix(fence).is_some_and(|rest| !rest.contains(fence))
        };
        let fences: Vec<usize> = (0..raw.len()).filter(|&at| is_fence(raw[at])).collect();
        for pair in fences.chunks(2) {
            let [from, to] = *pair else {
                // One that nothing closes.
                kinds[pair[0]] = LineKind::Listing;
                break;
            };
            let is_code_anyway = fence != "```" || raw[from].trim().len() > fence.len();
            mark_if_code(raw, kinds, from + 1..to, is_code_anyway);
            kinds[from] = LineKind::Listing;
            kinds[to] = LineKind::Listing;
        }
    }
}

/// Marks a block as a listing if a quarter of its lines is code. Results stay.
fn mark_if_code(
    raw: &[&str],
    kinds: &mut [LineKind],
    block: std::ops::Range<usize>,
    is_code_anyway: bool,
) {
    let lines = block.clone().filter(|&at| !raw[at].trim().is_empty()).count();
    let code = block.clone().filter(|&at| kinds[at] == LineKind::Listing).count();
    if is_code_anyway || code * 4 >= lines.max(1) {
        for at in block {
            if kinds[at] == LineKind::Said {
                kinds[at] = LineKind::Listing;
            }
        }
    }
}

/// Returns the number at the beginning of a line of a listing, and what is behind it: `12:text`, `12 | text`.
fn numbered(line: &str) -> Option<(u64, &str)> {
    let line = line.trim_start();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || digits > 6 {
        return None;
    }
    let rest = &line[digits..];
    let behind = match rest.trim_start_matches(' ') {
        bar if bar.starts_with('|') => &bar[1..],
        _ if rest.starts_with('\t') => &rest[1..],
        arrow if arrow.starts_with('→') => &arrow['→'.len_utf8()..],
        _ => rest.strip_prefix(':')?,
    };
    if behind.starts_with(|c: char| c.is_ascii_digit()) {
        // A time of day.
        return None;
    }
    Some((line[..digits].parse().ok()?, behind))
}

/// Numbered lines in a row that are a listing.
const LEAST_NUMBERED: usize = 3;

/// Marks runs of numbered lines with code in them.
fn mark_numbered(raw: &[&str], kinds: &mut [LineKind]) {
    let mut at = 0;
    while at < raw.len() {
        let Some((mut last, behind)) = numbered(raw[at]) else {
            at += 1;
            continue;
        };
        let begin = at;
        let mut code = usize::from(is_listed(behind));
        at += 1;
        while let Some((number, behind)) = raw.get(at).and_then(|line| numbered(line)) {
            if number <= last {
                break;
            }
            (last, code) = (number, code + usize::from(is_listed(behind)));
            at += 1;
        }
        if at - begin >= LEAST_NUMBERED && code * 4 >= at - begin {
            kinds[begin..at].fill(LineKind::Listing);
        }
    }
}

fn is_listed(behind: &str) -> bool {
    let line = behind.trim();
    line.is_empty() || line.starts_with('#') || by_itself(line) == LineKind::Listing
}

/// White space before a line of code that stands in a block.
const INDENT: usize = 4;

/// Marks indented blocks with code in them: the comments in it are no statements of anybody.
fn mark_indented(raw: &[&str], kinds: &mut [LineKind]) {
    let is_in = |line: &str| {
        let trimmed = line.trim_start();
        let is_item = trimmed.starts_with(['-', '*', '•'])
            || trimmed.split_once(['.', ')']).is_some_and(|(number, rest)| {
                !number.is_empty()
                    && number.bytes().all(|byte| byte.is_ascii_digit())
                    && rest.starts_with(' ')
            });
        !trimmed.is_empty() && !is_item && line.len() - trimmed.len() >= INDENT
    };
    let mut at = 0;
    while at < raw.len() {
        if !is_in(raw[at]) {
            at += 1;
            continue;
        }
        let begin = at;
        let mut end = at;
        while at < raw.len() && (is_in(raw[at]) || raw[at].trim().is_empty()) {
            if !raw[at].trim().is_empty() {
                end = at + 1;
            }
            at += 1;
        }
        mark_if_code(raw, kinds, begin..end, false);
    }
}

/// Marks a change of code as `diff` prints it.
fn mark_changes(raw: &[&str], kinds: &mut [LineKind]) {
    const HEADS: &[&str] =
        &["diff --git ", "index ", "--- ", "+++ ", "@@ ", "new file mode", "deleted file mode"];
    let mut is_in = false;
    for (at, line) in raw.iter().enumerate() {
        let line = if line.starts_with(' ') { line } else { unlabelled(line) };
        let begins = line.starts_with("diff --git ") || line.starts_with("@@ -");
        let goes_on = line.starts_with([' ', '+', '-', '\\'])
            || line.is_empty()
            || HEADS.iter().any(|head| line.starts_with(head));
        is_in = begins || is_in && goes_on;
        if is_in {
            kinds[at] = LineKind::Listing;
        }
    }
}

/// Marks the last frame of a stack that is no library's, if an error stands behind or before it.
fn mark_frames(raw: &[&str], kinds: &mut [LineKind]) {
    let mut last: Option<usize> = None;
    let mut is_in_python = false;
    for at in 0..raw.len() {
        let line = unlabelled(raw[at]);
        let is_indented = raw[at].starts_with([' ', '\t']);
        if line == "Traceback (most recent call last):" {
            (last, is_in_python) = (None, true);
            continue;
        }
        if is_frame(line) {
            // Python prints the newest frame last, so the last counts. Others print the error first, so the first
            // counts.
            let is_first_wanted = line.starts_with("at ") || line.starts_with("--> ");
            if !is_of_library(line) && (!is_first_wanted || last.is_none()) {
                if is_first_wanted {
                    kinds[at] = LineKind::Place;
                }
                last = Some(at);
            }
            continue;
        }
        if is_in_python && is_indented {
            if kinds[at] == LineKind::Said {
                kinds[at] = LineKind::Listing;
            }
            continue;
        }
        is_in_python = false;
        if kinds[at] == LineKind::Failure {
            if let Some(frame) = last.take() {
                kinds[frame] = LineKind::Place;
            }
        } else if kinds[at] == LineKind::Said && !line.is_empty() {
            last = None;
        }
    }
}

#[cfg(test)]
mod tests;
