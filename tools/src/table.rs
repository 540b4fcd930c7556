//! Tables: aligned to the terminal for people, plain and complete behind a pipe.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Row, Table, presets};

use crate::output;

/// A column and how it is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Words, never broken.
    Words(&'static str),
    /// Numbers, to the right.
    Number(&'static str),
    /// Text that is cut to what is left of the line; one such column, the last.
    Text(&'static str),
}

impl Column {
    fn title(self) -> &'static str {
        match self {
            Self::Words(title) | Self::Number(title) | Self::Text(title) => title,
        }
    }
}

/// Sets rows under headings. Cells are made harmless, one line each.
///
/// On a terminal the table fits its width and texts end in `…`; elsewhere nothing is cut.
#[must_use]
pub fn render(columns: &[Column], rows: &[Vec<String>]) -> String {
    let width = if output::is_terminal() { Table::new().width() } else { None };
    render_to(columns, rows, width)
}

fn render_to(columns: &[Column], rows: &[Vec<String>], width: Option<u16>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_truncation_indicator("…");
    match width {
        Some(width) => {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.set_width(width.max(20));
        }
        None => {
            table.set_content_arrangement(ContentArrangement::Disabled);
            table.force_no_tty();
        }
    }
    table.set_header(columns.iter().map(|column| column.title()));
    for cells in rows {
        let mut row = Row::from(cells.iter().map(|cell| output::one_line(cell)));
        if width.is_some() {
            row.max_height(1);
        }
        table.add_row(row);
    }
    for (index, column) in columns.iter().enumerate() {
        let Some(set) = table.column_mut(index) else {
            continue;
        };
        set.set_padding((0, 2));
        match column {
            Column::Words(_) => {
                set.set_constraint(ColumnConstraint::ContentWidth);
            }
            Column::Number(_) => {
                set.set_constraint(ColumnConstraint::ContentWidth);
                set.set_cell_alignment(CellAlignment::Right);
            }
            Column::Text(_) => {}
        }
    }
    table.trim_fmt()
}

/// Names in one column, values in the other.
#[must_use]
pub fn pairs(rows: &[(String, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, value) in rows {
        let value = output::one_line(value);
        text.push_str(format!("{name:width$}  {value}").trim_end());
        text.push('\n');
    }
    text
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
        let text = render_to(&COLUMNS, &rows(), None);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[1].ends_with("the door of room three sticks when it rains for a long time"));
        assert!(lines[2].starts_with("  0.5  MemoryRecord/x       short"), "{text}");
    }

    #[test]
    fn on_a_terminal_texts_end_where_the_line_does() {
        let text = render_to(&COLUMNS, &rows(), Some(50));
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 50), "{text}");
        assert!(text.lines().nth(1).unwrap().ends_with('…'), "{text}");
        assert!(text.contains("MemoryRecord/door-3"), "{text}");
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
