use super::*;

fn message(text: &str) -> Result<Raw, InterfaceError> {
    let name = "demo_msgs/msg/Demo".parse().unwrap();
    sections(&name, "Demo.msg", text).map(|all| all[0].clone())
}

fn constant(line: &str) -> Value {
    message(line).unwrap().constants[0].value.clone()
}

#[test]
fn comments_and_quotes() {
    assert_eq!(constant("string A = bare text # and why"), "bare text".into());
    assert_eq!(constant("string A=\"a # b\" # c"), "a # b".into());
    assert_eq!(constant(r#"string A='it\'s "so"\n'"#), "it's \"so\"\n".into());
    assert_eq!(constant("string A=don't # ask"), "don't".into());
    assert_eq!(constant("string A=\""), "\"".into());
    assert!(message("   # nothing\n\n").unwrap().fields[0].name.contains("at_least_one"));
}

#[test]
fn numbers_in_each_form() {
    assert_eq!(constant("int8 A=-128"), Value::Int(-128));
    assert_eq!(constant("uint64 A=0xFFFFFFFFFFFFFFFF"), Value::Uint(u64::MAX));
    assert_eq!(constant("int16 A = 0b101"), Value::Int(5));
    assert_eq!(constant("char A=0o17"), Value::Uint(15));
    assert_eq!(constant("float32 A=-1.5e3"), Value::Float(-1500.0));
    assert_eq!(constant("bool A=True"), Value::Bool(true));
}

#[test]
fn shapes_and_bounds() {
    let raw = message("string<=5[<=3] a\ngeometry_msgs/Pose[2] b\nOther[] c").unwrap();
    let shapes: Vec<Shape> = raw.fields.iter().map(|field| field.shape).collect();
    assert_eq!(shapes, [Shape::Bounded(3), Shape::Array(2), Shape::Unbounded]);
    let named = |i: usize| match &raw.fields[i].element {
        RawElement::Named(name) => name.to_string(),
        RawElement::Plain(element) => element.to_string(),
    };
    assert_eq!(
        [named(0), named(1), named(2)].join(" "),
        "string<=5 geometry_msgs/msg/Pose demo_msgs/msg/Other"
    );
}

#[test]
fn what_is_wrong_is_said_with_file_and_line() {
    for (text, why) in [
        ("int8 a\nint8", "Demo.msg:2: `int8` is a type without the name of a field"),
        ("int8 a\nint8 a", "Demo.msg:2: `a` stands here a second time"),
        ("int8 A=128", "Demo.msg:1: the constant `A`: 128 is out of the range of int8"),
        ("int8 A=x", "Demo.msg:1: the constant `A`: `x` is no int8"),
        ("int8[] A=[1]", "Demo.msg:1: the constant `A` cannot be a list"),
        ("Pose A=1", "Demo.msg:1: the constant `A` cannot be a message"),
        ("Pose p 1", "Demo.msg:1: the field `p` is a message and can have no default"),
        ("int8[2] a [1]", "Demo.msg:1: the default of `a`: 1 values, and int8[2] has 2"),
        ("int8[] a 1", "Demo.msg:1: the default of `a`: `1` is no list, which stands in [ and ]"),
        ("int8 a-b", "Demo.msg:1: `int8 a-b`: behind the name stands nothing, `=` or a default"),
        ("int8<=3 a", "Demo.msg:1: `int8<=3`: only string and wstring have a bound"),
        ("int8[0] a", "Demo.msg:1: `int8[0]`: `0` is no bound, it would be a number from 1"),
        ("int8] a", "Demo.msg:1: `int8]` has a `]` without `[`"),
        ("---", "Demo.msg:1: a message has no `---`"),
    ] {
        assert_eq!(message(text).unwrap_err().to_string(), why);
    }
    let wrong = message("uint9 a").unwrap_err().to_string();
    assert!(wrong.starts_with("Demo.msg:1: `demo_msgs/msg/uint9` is not the name"), "{wrong}");
    let service = "demo_msgs/srv/Demo".parse().unwrap();
    let wrong = sections(&service, "Demo.srv", "int8 a\n").unwrap_err();
    assert_eq!(wrong.to_string(), "Demo.srv:1: a service needs `---` between request and response");
}
