//! A life as a picture: five panels over the same days.

use omird_tests::years::Evening;
use omird_tests::years::card::Cause;
use omird_tests::years::probe::{Probes, Quality};
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::Result;

/// Size of the picture, in pixels.
const SIZE: (u32, u32) = (1100, 1650);
/// Colours that also differ in brightness (Okabe and Ito, *Color Universal Design*, 2008), and more.
const COLOURS: [RGBColor; 10] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
    RGBColor(120, 120, 120),
    RGBColor(240, 228, 66),
    RGBColor(0, 0, 0),
    RGBColor(150, 80, 30),
];

/// The curves over the days.
struct Series {
    name: String,
    points: Vec<(f64, f64)>,
}

/// Conversion of values into a panel.
struct Panel<'a> {
    title: &'a str,
    unit: &'a str,
    series: Vec<Series>,
    /// True if each series begins where the one before it ends.
    is_stacked: bool,
    /// Highest value that is shown; what is needed if there is none.
    top: Option<f64>,
    /// A value that is aimed at, with its name.
    aim: Option<(f64, &'a str)>,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// All panels, below each other.
///
/// # Errors
/// If the picture cannot be drawn.
pub fn svg(evenings: &[Evening]) -> Result<String> {
    let mut out = String::new();
    {
        let root = SVGBackend::with_string(&mut out, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let panels = [tiers(evenings), disk(evenings), written(evenings), answers(evenings)];
        let panels: Vec<Panel<'_>> = panels.into_iter().chain([moves(evenings)]).collect();
        let days = evenings.last().map_or(1.0, |evening| evening.day as f64);
        for (panel, area) in panels.iter().zip(root.split_evenly((panels.len(), 1))) {
            panel.draw(&area, days)?;
        }
        root.present()?;
    }
    Ok(out)
}

impl Series {
    fn new(
        name: impl Into<String>,
        evenings: &[Evening],
        value: impl Fn(&Evening) -> Option<f64>,
    ) -> Self {
        let points = evenings
            .iter()
            .filter_map(|evening| Some((evening.day as f64, value(evening)?)))
            .collect();
        Self { name: name.into(), points }
    }
}

fn tiers(evenings: &[Evening]) -> Panel<'static> {
    let names = ["working", "session", "longterm", "archive"];
    let series = names.iter().enumerate().map(|(at, name)| {
        Series::new(*name, evenings, move |evening| Some(evening.tiers[at] as f64 / 1e3))
    });
    Panel {
        title: "Memory records that are live, by tier",
        unit: "thousands",
        series: series.collect(),
        is_stacked: true,
        top: None,
        aim: None,
    }
}

fn disk(evenings: &[Evening]) -> Panel<'static> {
    let megabytes = |bytes: u64| Some(bytes as f64 / 1e6);
    Panel {
        title: "The data folder, and what came in",
        unit: "MB",
        series: vec![
            Series::new("occupied, whole blocks", evenings, |e| megabytes(e.disk)),
            Series::new("of it the kept index", evenings, |e| megabytes(e.index)),
            Series::new("memories that came in, so far", evenings, |e| megabytes(e.payload)),
        ],
        is_stacked: false,
        top: None,
        aim: None,
    }
}

fn written(evenings: &[Evening]) -> Panel<'static> {
    let share = |bytes: u64, evening: &Evening| Some(bytes as f64 / evening.payload.max(1) as f64);
    let causes = Cause::ALL.iter().enumerate();
    let mut series: Vec<Series> = causes
        .map(|(at, cause)| Series::new(cause.as_str(), evenings, move |e| share(e.written[at], e)))
        .collect();
    series.retain(|series| series.points.iter().any(|&(_, value)| value > 0.005));
    series.push(Series::new("index", evenings, |e| share(e.index_written, e)));
    Panel {
        title: "Bytes written to the card per byte of memory, since the beginning, by cause",
        unit: "bytes per byte",
        series,
        is_stacked: true,
        // Beyond it everything else would be a line on the ground.
        top: Some(10.0),
        aim: Some((3.0, "aim")),
    }
}

/// Answers of four weeks, so that a single question of a week is no cliff.
fn answers(evenings: &[Evening]) -> Panel<'static> {
    let asked: Vec<(f64, Probes)> =
        evenings.iter().filter_map(|evening| Some((evening.day as f64, evening.probes?))).collect();
    let rate = |name: &str, part: fn(&Probes) -> Quality, first: bool| {
        let points = (0..asked.len()).filter_map(|at| {
            let mut sum = Quality::default();
            for (_, probes) in &asked[at.saturating_sub(3)..=at] {
                sum.add_all(&part(probes));
            }
            let right = if first { sum.first } else { sum.found };
            (sum.asked > 0).then(|| (asked[at].0, 100.0 * right as f64 / sum.asked as f64))
        });
        Series { name: name.to_owned(), points: points.collect() }
    };
    let stale = asked
        .iter()
        .map(|(day, probes)| (*day, 100.0 * probes.stale as f64 / probes.hits.max(1) as f64));
    Panel {
        title: "Answers to questions that should be answered, over four weeks",
        unit: "%",
        series: vec![
            rate("place, best hit", |probes| probes.places, true),
            rate("place, among five", |probes| probes.places, false),
            rate("happening, among five", |probes| probes.happenings, false),
            rate("anchored, among five", |probes| probes.anchored, false),
            rate("used, among five", |probes| probes.used, false),
            rate("told once, among five", |probes| probes.told_once, false),
            Series { name: "hits that are stale trivia".to_owned(), points: stale.collect() },
        ],
        is_stacked: false,
        top: Some(105.0),
        aim: None,
    }
}

fn moves(evenings: &[Evening]) -> Panel<'static> {
    let weekly = |name: &str, count: fn(&Evening) -> u64| {
        let weeks: Vec<&Evening> = evenings.iter().filter(|evening| evening.day % 7 == 0).collect();
        let points = weeks
            .windows(2)
            .map(|pair| (pair[1].day as f64, count(pair[1]).saturating_sub(count(pair[0])) as f64));
        Series { name: name.to_owned(), points: points.collect() }
    };
    Panel {
        title: "Each week",
        unit: "resources",
        series: vec![
            weekly("told", |evening| evening.counts.told),
            weekly("merged into another", |evening| evening.counts.upkeep.merged),
            weekly("expired", |evening| evening.counts.upkeep.expired),
            weekly("evicted", |evening| evening.counts.upkeep.evicted),
            weekly("forgotten on request", |evening| evening.counts.forgotten),
            weekly("moved to another tier", |evening| evening.counts.upkeep.moved),
        ],
        is_stacked: false,
        top: None,
        aim: None,
    }
}

impl Panel<'_> {
    fn highest(&self) -> f64 {
        let each = |series: &Series| series.points.iter().map(|&(_, y)| y).fold(0.0, f64::max);
        let highest = if self.is_stacked {
            self.series.iter().map(each).sum()
        } else {
            self.series.iter().map(each).fold(0.0, f64::max)
        };
        self.top.map_or(highest, |top| top.min(highest.max(1.0))) * 1.05 + 1e-9
    }

    fn draw(&self, area: &Area<'_>, days: f64) -> Result<()> {
        // Names stand beside the panel, so that they cover nothing.
        let (plot, names) = area.split_horizontally(820);
        let top = self.highest();
        let mut chart = ChartBuilder::on(&plot)
            .caption(self.title, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(38)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..days, 0.0..top)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .x_desc("days")
            .y_desc(self.unit)
            .x_labels(12)
            .y_labels(6)
            .label_style(("sans-serif", 13))
            .axis_desc_style(("sans-serif", 14))
            .x_label_formatter(&|day| format!("{day:.0}"))
            .y_label_formatter(&|value| {
                if top < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") }
            })
            .draw()?;
        let mut below: Vec<f64> = Vec::new();
        for (series, colour) in self.series.iter().zip(COLOURS.iter().cycle()) {
            if !self.is_stacked {
                let line = series.points.iter().copied();
                chart.draw_series(LineSeries::new(line, colour.stroke_width(2)))?;
                continue;
            }
            below.resize(series.points.len(), 0.0);
            let lower: Vec<(f64, f64)> =
                series.points.iter().zip(&below).map(|(&(x, _), &y)| (x, y.min(top))).collect();
            let upper: Vec<(f64, f64)> = series
                .points
                .iter()
                .zip(&mut below)
                .map(|(&(x, y), below)| {
                    *below += y;
                    (x, below.min(top))
                })
                .collect();
            let outline: Vec<(f64, f64)> =
                upper.into_iter().chain(lower.into_iter().rev()).collect();
            chart.draw_series([Polygon::new(outline, colour.mix(0.85).filled())])?;
        }
        if let Some((value, name)) = self.aim
            && value < top
        {
            let line = [(0.0, value), (days, value)];
            chart.draw_series(LineSeries::new(line, BLACK.stroke_width(1)))?;
            let style = ("sans-serif", 14).into_font();
            chart.draw_series([Text::new(
                name.to_owned(),
                (days * 0.005, value + top * 0.07),
                style,
            )])?;
        }
        self.name_all(&names)
    }

    fn name_all(&self, area: &Area<'_>) -> Result<()> {
        let count = self.series.len() as i32;
        for (at, (series, colour)) in self.series.iter().zip(COLOURS.iter().cycle()).enumerate() {
            // The order of the names is that of the stack: highest first.
            let at = at as i32;
            let row = if self.is_stacked { count - 1 - at } else { at };
            let y = 52 + 24 * row;
            let last = series.points.last().map_or(0.0, |&(_, value)| value);
            area.draw(&Rectangle::new([(4, y), (18, y + 14)], colour.filled()))?;
            let text = format!("{}: {last:.*}", series.name, if last < 10.0 { 2 } else { 0 });
            area.draw(&Text::new(text, (26, y), ("sans-serif", 14).into_font()))?;
        }
        Ok(())
    }
}
