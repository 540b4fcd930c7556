use super::rendering::{MAX_TEXT, significant, words};
use super::*;
use crate::interface::Registry;
use crate::message::Message;

fn registry() -> Registry {
    let mut registry = Registry::standard();
    registry
        .add_text(
            &"my_msgs/msg/Reading".parse().unwrap(),
            "uint8 GOOD=1\nuint8 STATE_LOST=1\nuint8 STATE_FOUND=2\n\
             builtin_interfaces/Time stamp\nstring label\nuint8 state\nuint8 quality\n\
             float32 share\nfloat64[] values\nstring[] names\nbool on\nuint8[4] uuid\nint64 n\n\
             geometry_msgs/Point at\n",
        )
        .unwrap();
    registry
}

fn reading() -> Message {
    let mut message = Message::new(&registry().message("my_msgs/msg/Reading").unwrap());
    message.set("label", "door 12 opened 3.50 m, 7.").unwrap();
    message.set("share", 0.1_f32).unwrap();
    message.set("values", vec![1.0, 2.25, -3.0e-9]).unwrap();
    message.set("names", vec!["a".to_owned(), "b".to_owned()]).unwrap();
    message.set("state", 2_u8).unwrap();
    message.set("quality", 1_u8).unwrap();
    message.set("on", true).unwrap();
    message.set("uuid", vec![0xde_u8, 0xad, 0, 1]).unwrap();
    message.set("n", i64::MIN).unwrap();
    message.set("stamp.sec", 1_780_141_325).unwrap();
    message.set("at.x", 1.5).unwrap();
    message
}

fn render(text: &str) -> String {
    let template: Template = text.parse().unwrap();
    let message = reading();
    template
        .check(Types { whole: message.ty(), element: message.ty() })
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    template.render(&Scene { whole: &message, element: &message, topic: "/r", node: Some("/n") })
}

#[test]
fn every_form_by_hand() {
    for (template, text) in [
        ("{share}", "0.1"),
        ("{share:.3}", "0.100"),
        ("{share:.0%}", "10%"),
        ("{share:%}", "10%"),
        ("{at.x:.1deg}", "85.9"),
        ("{at}", "1.5 0 0"),
        ("{values}", "1, 2.25, -3e-9"),
        ("{values[*]:.1 join( / )}", "1.0 / 2.2 / -0.0"),
        ("{values[1]} {names[1]} {names[7]}!", "2.25 b !"),
        ("{names[*]}", "a, b"),
        ("{names:join(+)}", "a+b"),
        ("{state:name} {quality:name}", "FOUND GOOD"),
        ("{label:words}", "door # opened # m, #."),
        ("{{{on}}}", "{true}"),
        ("{uuid}", "dead0001"),
        ("{n} {stamp}", "-9223372036854775808 2026-05-30T11:42:05Z"),
        ("{@node} {@topic} {@type} {^state}", "/n /r my_msgs/msg/Reading 2"),
        ("  no field  ", "no field"),
    ] {
        assert_eq!(render(template), text, "{template}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    for (text, part) in [
        ("{a", "a { without a }"),
        ("a}", "a } without a {"),
        ("{a..b}", "{a..b}: a..b: a path is names"),
        ("{}", "{}: : a path"),
        ("{x:.2f}", "{x:.2f}: after the colon"),
        ("{x:.99}", "after the colon"),
        ("{x:join(}", "after the colon"),
        ("{@robot}", "{@robot} is none of"),
    ] {
        let error = text.parse::<Template>().unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    let message = reading();
    let template: Template = "{share} {colour}".parse().unwrap();
    let error = template.check(Types { whole: message.ty(), element: message.ty() }).unwrap_err();
    assert_eq!(error.path, "colour");
}

#[test]
fn a_name_is_whole_or_not_there() {
    let message = reading();
    let scene = Scene { whole: &message, element: &message, topic: "/r", node: None };
    let name = |text: &str| text.parse::<Template>().unwrap().render_name(&scene);
    assert_eq!(name("{names[0]}-{state}").as_deref(), Some("a-2"));
    assert_eq!(name("{names[2]}-{state}"), None);
    assert_eq!(name("{@node}"), None);
    assert_eq!(name("dock").as_deref(), Some("dock"));
}

#[test]
fn a_long_text_is_cut_between_characters() {
    let mut message = reading();
    message.set("label", format!("a{}", "ä".repeat(MAX_TEXT))).unwrap();
    let scene = Scene { whole: &message, element: &message, topic: "/r", node: None };
    let text = "{label}{label}".parse::<Template>().unwrap().render(&scene);
    assert!(text.len() <= MAX_TEXT && text.len() > MAX_TEXT - 4);
    assert!(text.ends_with("ä…"), "{}", &text[text.len() - 10..]);
    message.set("label", "ä".repeat(MAX_TEXT / 2)).unwrap();
    let scene = Scene { whole: &message, element: &message, topic: "/r", node: None };
    let text = "{label}".parse::<Template>().unwrap().render(&scene);
    assert!(text.len() == MAX_TEXT && text.ends_with('ä'), "what just fits is whole");
}

#[test]
fn a_long_list_says_that_there_is_more() {
    let mut message = reading();
    for (count, ending) in [(64, "63"), (65, "63, …"), (1000, "63, …")] {
        message.set("values", (0..count).map(f64::from).collect::<Vec<_>>()).unwrap();
        let scene = Scene { whole: &message, element: &message, topic: "/r", node: None };
        for template in ["{values}", "{values[*]}"] {
            let text = template.parse::<Template>().unwrap().render(&scene);
            assert!(text.ends_with(ending), "{template} of {count}: {text}");
            let name = template.parse::<Template>().unwrap().render_name(&scene);
            assert!(name.unwrap().ends_with(", 63"), "a name is what it was");
        }
    }
}

#[test]
fn words_are_the_same_for_each_reading() {
    let plain = |text: &str| {
        let mut out = String::new();
        words(text, &mut out);
        out
    };
    for (text, expected) in [
        ("took 3.25 s, 14 s", "took # s, # s"),
        ("at 0x7ffe3a, id 5f3ac9d1.", "at #, id #."),
        ("wheel_left2 of arm12b", "wheel_left# of arm#b"),
        ("dead face 12:30:45", "dead face #:#:#"),
        ("v1.2.3", "v#.#"),
        ("12.", "#."),
        ("größe 7 µm", "größe # µm"),
        ("", ""),
    ] {
        assert_eq!(plain(text), expected, "{text}");
    }
}

#[test]
fn six_digits_are_significant() {
    let show = |number: f64| {
        let mut out = String::new();
        significant(number, &mut out);
        out
    };
    for (number, text) in [
        (0.0, "0"),
        (-0.5, "-0.5"),
        (999_999.9, "1000000"),
        (0.000_123_456_7, "0.000123457"),
        (1.0e-7, "1e-7"),
        (1.5e300, "1.5e300"),
        (123_456_789.0, "123456789"),
        (f64::NAN, "NaN"),
    ] {
        assert_eq!(show(number), text);
    }
}
