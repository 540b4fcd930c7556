//! Tables: aligned to the terminal for people, plain and complete behind a pipe.

use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, Row, Table, Width, presets,
};

use crate::output;

/// A column and how it is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Words, never broken.
    Words(&'static str),
    /// Numbers, to the right.
    Number(&'static str),
    /// Ids: as words, but cut where else nothing would be left for the text.
    Id(&'static str),
    /// Text that is cut to what the others leave of the line; one such column.
    Text(&'static str),
}

impl Column {
    fn title(self) -> &'static str {
        match self {
            Self::Words(title) | Self::Number(title) | Self::Id(title) | Self::Text(title) => title,
        }
    }

    fn is_text(self) -> bool {
        matches!(self, Self::Text(_))
    }
}

/// Columns between two cells.
const GAP: usize = 2;
/// A text that is cut shorter says nothing.
const LEAST_TEXT: usize = 20;
/// An id that is cut shorter names nothing.
const LEAST_ID: usize = 10;

/// Sets rows under headings. Cells are made harmless, one line each.
///
/// On a terminal the table fits its width and texts end in `…`; elsewhere nothing is cut.
#[must_use]
pub fn render(columns: &[Column], rows: &[Vec<String>]) -> String {
    set(columns, rows, &[], output::width())
}

/// Sets rows under headings in a given width. While the text would get less than half of it, the columns named in
/// `spare` are left out, the first one first.
#[must_use]
pub fn set(
    columns: &[Column],
    rows: &[Vec<String>],
    spare: &[&str],
    width: Option<usize>,
) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_truncation_indicator("…");
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.force_no_tty();
    let mut titles = Row::from(columns.iter().map(|column| column.title()));
    titles.max_height(1);
    table.set_header(titles);
    for cells in rows {
        let mut row = Row::from(cells.iter().map(|cell| output::one_line(cell)));
        if width.is_some() {
            row.max_height(1);
        }
        table.add_row(row);
    }
    let mut widths: Vec<usize> =
        table.column_max_content_widths().into_iter().map(usize::from).collect();
    let shown = match width {
        Some(width) => {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
            fit(columns, &mut widths, spare, width)
        }
        None => vec![true; columns.len()],
    };
    let last = shown.iter().rposition(|is_shown| *is_shown);
    for (index, column) in columns.iter().enumerate() {
        let Some(set) = table.column_mut(index) else {
            continue;
        };
        let gap = if Some(index) == last { 0 } else { GAP };
        let cells = widths.get(index).map_or(0, |width| width + gap);
        set.set_padding((0, u16::try_from(gap).unwrap_or(0)));
        set.set_constraint(if shown[index] {
            ColumnConstraint::Absolute(Width::Fixed(u16::try_from(cells).unwrap_or(u16::MAX)))
        } else {
            ColumnConstraint::Hidden
        });
        if matches!(column, Column::Number(_)) {
            set.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// Chooses the columns and their widths, so that the table is at most so wide.
fn fit(columns: &[Column], widths: &mut [usize], spare: &[&str], width: usize) -> Vec<bool> {
    let mut shown = vec![true; columns.len()];
    let Some(text) = columns.iter().position(|column| column.is_text()) else { return shown };
    let room = |shown: &[bool], widths: &[usize]| {
        let others = (0..columns.len()).filter(|&index| index != text && shown[index]);
        width.saturating_sub(others.map(|index| widths[index] + GAP).sum())
    };
    for title in spare {
        if room(&shown, widths) >= widths[text].min(width / 2) {
            break;
        }
        if let Some(index) = columns.iter().position(|column| column.title() == *title) {
            shown[index] = false;
        }
    }
    if let Some(id) = columns.iter().position(|column| matches!(column, Column::Id(_))) {
        let others =
            (0..columns.len()).filter(|&index| index != id && index != text && shown[index]);
        let others: usize = others.map(|index| widths[index] + GAP).sum();
        let most = width.saturating_sub(others + GAP + widths[text].min(LEAST_TEXT));
        widths[id] = widths[id].min(most.max(LEAST_ID));
    }
    widths[text] = widths[text].min(room(&shown, widths)).max(1);
    shown
}

/// Names in one column, values in the other, which on a terminal go on below themselves.
#[must_use]
pub fn pairs(rows: &[(String, String)]) -> String {
    pairs_in(rows, output::width())
}

/// The same in a given width.
#[must_use]
pub fn pairs_in(rows: &[(String, String)], width: Option<usize>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.force_no_tty();
    for (name, value) in rows {
        table.add_row([name.clone(), output::one_line(value)]);
    }
    let gap = u16::try_from(GAP).unwrap_or(0);
    let names = table.column_max_content_widths().first().copied().unwrap_or(0) + gap;
    if let Some(width) = width {
        let width = u16::try_from(width).unwrap_or(u16::MAX);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(width);
        let values = width.saturating_sub(names).max(LEAST_TEXT as u16);
        for (index, cells) in [names, values].into_iter().enumerate() {
            if let Some(column) = table.column_mut(index) {
                column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(cells)));
            }
        }
    }
    for (index, gap) in [gap, 0].into_iter().enumerate() {
        if let Some(column) = table.column_mut(index) {
            column.set_padding((0, gap));
        }
    }
    table.trim_fmt() + "\n"
}

/// Bytes in the largest fitting binary unit.
#[must_use]
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64;
    let mut unit = "B";
    for next in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    format!("{value:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] =
        [Column::Number("score"), Column::Words("ref"), Column::Text("content")];

    fn rows() -> Vec<Vec<String>> {
        vec![
            vec![
                "0.87".into(),
                "MemoryRecord/door-3".into(),
                "the door of room three\nsticks when it rains for a long time".into(),
            ],
            vec!["0.5".into(), "MemoryRecord/x".into(), "short".into()],
        ]
    }

    #[test]
    fn behind_a_pipe_nothing_is_cut() {
        let text = set(&COLUMNS, &rows(), &[], None);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[1].ends_with("the door of room three sticks when it rains for a long time"));
        assert!(lines[2].starts_with("  0.5  MemoryRecord/x       short"), "{text}");
    }

    #[test]
    fn on_a_terminal_texts_end_where_the_line_does() {
        let text = set(&COLUMNS, &rows(), &[], Some(50));
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 50), "{text}");
        assert!(text.lines().nth(1).unwrap().ends_with('…'), "{text}");
        assert!(text.contains("MemoryRecord/door-3"), "{text}");
    }

    #[test]
    fn columns_of_less_use_go_before_the_text_does() {
        let columns = [
            Column::Text("content"),
            Column::Number("score"),
            Column::Words("where"),
            Column::Id("id"),
        ];
        let row = ["a text of some length that is read first", "0.5", "in the hall", "door-3"];
        let rows = [row.map(str::to_owned).to_vec()];
        let heads = |width| {
            let table = set(&columns, &rows, &["where", "score"], Some(width));
            assert!(table.lines().all(|line| line.chars().count() <= width), "{table}");
            table.lines().next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(heads(80), "content score where id");
        assert_eq!(heads(40), "content score id");
        assert_eq!(heads(20), "content id");
        let rows = [[row[0], row[1], row[2], &"x".repeat(128)].map(str::to_owned).to_vec()];
        let table = set(&columns, &rows, &["where", "score"], Some(60));
        assert!(table.lines().nth(1).unwrap().starts_with("a text of some"), "{table}");
        assert!(table.lines().all(|line| line.chars().count() <= 60), "{table}");
    }

    #[test]
    fn a_long_value_goes_on_below_itself() {
        let rows = [("hint".into(), "one two three four five six seven".into())];
        assert_eq!(pairs_in(&rows, Some(26)), "hint  one two three four\n      five six seven\n");
    }

    #[test]
    fn pairs_and_bytes_are_readable() {
        let text = pairs(&[("a".into(), "1".into()), ("long".into(), "2".into())]);
        assert_eq!(text, "a     1\nlong  2\n");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(u64::MAX), "16384.0 PiB");
    }
}
