//! The terms of one document.

/// The terms of one document with their counts, sorted. Made outside any lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocTerms {
    /// The terms' texts, end to end.
    text: Box<str>,
    /// End of each term in `text`, and its count.
    terms: Box<[(u32, u32)]>,
    len: u32,
}

impl DocTerms {
    /// Tokenizes the fields of a document: its words as they stand.
    pub fn of<'a>(fields: impl IntoIterator<Item = &'a str>) -> Self {
        Self::split(fields, |field, f| omird_text::words(field, f))
    }

    /// The same with English plurals taken off, to compare documents by.
    pub fn without_plurals<'a>(fields: impl IntoIterator<Item = &'a str>) -> Self {
        Self::split(fields, |field, f| omird_text::terms(field, f))
    }

    fn split<'a>(
        fields: impl IntoIterator<Item = &'a str>,
        tokens: impl Fn(&str, &mut dyn FnMut(&str)),
    ) -> Self {
        let (mut all, mut spans) = (String::new(), Vec::new());
        for field in fields {
            tokens(field, &mut |token| {
                let start = all.len();
                all.push_str(token);
                spans.push((start, all.len()));
            });
        }
        spans.sort_unstable_by_key(|&(start, end)| &all[start..end]);
        let (mut text, mut terms) = (String::new(), Vec::<(u32, u32)>::new());
        let mut previous = "";
        for &(start, end) in &spans {
            let token = &all[start..end];
            match terms.last_mut() {
                Some((_, count)) if token == previous => *count = count.saturating_add(1),
                _ => {
                    text.push_str(token);
                    terms.push((text.len() as u32, 1));
                    previous = token;
                }
            }
        }
        let len = u32::try_from(spans.len()).unwrap_or(u32::MAX);
        Self { text: text.into(), terms: terms.into(), len }
    }

    /// Each term once with its count, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        let mut start = 0;
        self.terms.iter().map(move |&(end, count)| {
            let term = &self.text[start..end as usize];
            start = end as usize;
            (term, count)
        })
    }

    /// Number of distinct terms.
    pub fn distinct(&self) -> usize {
        self.terms.len()
    }

    /// Length of the document in tokens, repetitions included.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns true if the document has no words at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// A document's length as it is kept.
pub(super) fn saturated(len: u32) -> u16 {
    u16::try_from(len).unwrap_or(u16::MAX)
}
