use super::*;

fn complaints(text: &str, read: impl Fn(&Table<'_>)) -> Vec<String> {
    let map: Map = toml::from_str(text).unwrap();
    let complaints = Complaints::default();
    let table = Table::new("a", &map, &complaints);
    read(&table);
    table.done();
    let found = complaints.0.into_inner();
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn all_complaints_come_at_once_and_name_their_keys() {
    let text = "beyond_m = -1.0\nname = 3\nbeyound_deg = 3\ncolour = 1\ndepth = 2.5\n\
                [keep]\nlevel = 1\n[[list]]\n[[list]]\nx = true";
    let found = complaints(text, |table| {
        assert_eq!(table.number("beyond_m", 0.0..=1.0), None);
        assert_eq!(table.text("name"), None);
        assert_eq!(table.number("beyond_deg", 0.0..=1.0), None);
        assert_eq!(table.integer("depth", 1..=9), None);
        let keep = table.table("keep").unwrap();
        keep.texts("levels");
        keep.done();
        for one in table.tables("list") {
            one.number("x", 0.0..=1.0);
        }
    });
    assert_eq!(
        found,
        [
            "a.beyond_m: -1 is not between 0 and 1",
            "a.name: expected a string, not a number",
            "a.depth: expected an integer, not a number",
            "a.keep.level: there is no such key; is it levels?",
            "a.list[1].x: expected a number, not a boolean",
            "a.beyound_deg: there is no such key; is it beyond_deg?",
            "a.colour: there is no such key; there are beyond_m, name, beyond_deg, depth, \
             keep, list",
        ]
    );
}

#[test]
fn a_time_is_a_number_in_the_unit_of_its_key_or_has_its_own() {
    let text = "a = 90\nb = '1h30m'\nc = '500ms'\nd = 2.5\ne = '3d'\nf = '5 parsecs'\ng = '9'\nh = true\ni = '2h'";
    let found = complaints(text, |table| {
        let day = 0.0..=86_400.0;
        assert_eq!(table.seconds("a", day.clone()), Some(Duration::from_secs(90)));
        assert_eq!(table.seconds("b", day.clone()), Some(Duration::from_secs(5400)));
        assert_eq!(table.time("c", Unit::Millis, 0.0..=5000.0), Some(500.0));
        assert_eq!(table.seconds("d", day.clone()), Some(Duration::from_millis(2500)));
        assert_eq!(table.time("e", Unit::Hours, 0.0..=100.0), Some(72.0));
        for name in ["f", "g", "h"] {
            assert_eq!(table.seconds(name, day.clone()), None);
        }
        assert_eq!(table.time("i", Unit::Millis, 0.0..=5000.0), None);
    });
    assert_eq!(
        found,
        [
            r#"a.f: "5 parsecs" is no time such as "500ms", "90min", "1h30m" or "3d""#,
            r#"a.g: "9" has no unit: "30s", "90min", "1h30m" or "3d""#,
            r#"a.h: expected a time such as "90min" or "3d", or a number of seconds, not a boolean"#,
            "a.i: \"2h\" is not between 0 and 5000 milliseconds",
        ]
    );
}

#[test]
fn one_text_is_a_list_of_one() {
    complaints("a = 'x'\nb = ['x', 'y']", |table| {
        assert_eq!(table.texts("a"), Some(vec!["x"]));
        assert_eq!(table.texts("b"), Some(vec!["x", "y"]));
    });
    let parse = |text: &str| text.parse::<u8>();
    let found = complaints("a = ['1', 'x']\nb = 'y'", |table| {
        assert_eq!(table.all_parsed("a", parse), Some(vec![1]));
        table.all_parsed("b", parse);
    });
    assert_eq!(
        found,
        ["a.a[1]: invalid digit found in string", "a.b: invalid digit found in string"]
    );
}
