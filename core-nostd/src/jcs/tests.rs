//! The vectors of RFC 8785, and a comparison with another implementation.

use proptest::prelude::*;

use super::*;
use crate::decode::Limits;
use crate::json;

fn value(text: &str) -> Value {
    json::from_slice(text.as_bytes(), &Limits::default()).unwrap()
}

fn canonical(text: &str) -> String {
    to_string(&value(text)).unwrap()
}

/// RFC 8785, section 3.2.2 and 3.2.3: the example, as input and as result. Its first number is one that we refuse, since it
/// is rounded; the RFC begins after a parser that rounds.
#[test]
fn the_example_of_the_rfc_comes_out_as_printed() {
    let refused = to_string(&value(r#"{"numbers": [333333333.33333329]}"#)).unwrap_err();
    assert_eq!(refused.pointer, "/numbers/0");
    let input = r#"{
       "numbers": [333333333.3333333, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
       "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
       "literals": [null, true, false]
     }"#;
    let expected = "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],\
                    \"string\":\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}";
    assert_eq!(canonical(input), expected);
}

/// RFC 8785, section 3.2.3: the test of the order of names.
#[test]
fn names_are_sorted_by_utf_16_code_units() {
    let input = r#"{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One", "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis"}"#;
    let expected = "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\
                    \"\u{f6}\":\"Latin Small Letter O With Diaeresis\",\"\u{20ac}\":\"Euro Sign\",\
                    \"\u{1f600}\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}";
    assert_eq!(canonical(input), expected);
    // By bytes it were the other way round.
    assert!("\u{1f600}" > "\u{fb33}");
}

/// RFC 8785, appendix B: doubles by their bits.
#[test]
fn doubles_are_printed_as_in_the_appendix() {
    for (bits, expected) in [
        (0x0000_0000_0000_0000_u64, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ] {
        assert_eq!(to_string(&f64::from_bits(bits).into()).unwrap(), expected, "{bits:016x}");
    }
}

#[test]
fn a_number_with_digits_that_no_double_has_is_refused_where_it_stands() {
    for text in [
        "9007199254740993",
        "-9007199254740993",
        "36028797018963969",
        "340282366920938463463374607431768211457",
        "0.100000000000000004",
        "0.1000000000000000000001",
        "1e400",
        "-1e400",
        "1e-400",
    ] {
        let inside = format!("{{\"a/b\":[0,{{\"~\":{text}}}]}}");
        let refused = to_string(&value(&inside)).unwrap_err();
        assert_eq!(refused.pointer, "/a~1b/1/~0", "{text}");
        assert_eq!(refused.number, Number::parse(text).unwrap());
        let told = refused.to_string();
        assert!(told.starts_with("/a~1b/1/~0: ") && told.contains("write it as a text"), "{told}");
    }
    let root = to_string(&value("9007199254740993")).unwrap_err();
    assert_eq!((root.pointer.as_str(), root.to_string().starts_with("/: ")), ("", true));
}

#[test]
fn a_number_as_programs_print_it_is_taken() {
    for (text, expected) in [
        ("-0", "0"),
        ("-0.0", "0"),
        ("1.0", "1"),
        ("1e0", "1"),
        ("100e-2", "1"),
        ("9007199254740994", "9007199254740994"),
        // Two texts of one double: all its digits, and the shortest.
        ("36028797018963968", "36028797018963970"),
        ("36028797018963970", "36028797018963970"),
        ("1180591620717411303424", "1.1805916207174113e+21"),
        ("99999999999999991611392", "1e+23"),
        ("100000000000000000000000", "1e+23"),
        // With 17 digits, as C prints them; and all there are.
        ("0.10000000000000001", "0.1"),
        ("0.1000000000000000055511151231257827021181583404541015625", "0.1"),
    ] {
        assert_eq!(canonical(text), expected, "{text}");
    }
}

/// Values of doubles, as the crate that is compared with holds them.
fn doubles() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        any::<f64>().prop_filter_map("finite", Number::from_f64),
        any::<u64>().prop_map(f64::from_bits).prop_filter_map("finite", Number::from_f64),
        any::<i32>().prop_map(Number::from),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number.prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[\u{0}-\u{7f}\u{d7f0}-\u{e010}\u{fff0}-\u{1000f}]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        let name = prop_oneof![
            "[\u{d7f0}-\u{e010}\u{fff0}-\u{1000f}]{0,4}",
            "[a-c]{0,3}",
            any::<String>()
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
            proptest::collection::vec((name, inner), 0..24)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn another_implementation_writes_the_same(value in doubles()) {
        let theirs: serde_json::Value = serde_json::from_str(&json::to_string(&value)).unwrap();
        let theirs = serde_json_canonicalizer::to_string(&theirs).unwrap();
        prop_assert_eq!(to_string(&value).unwrap(), theirs);
    }

    #[test]
    fn the_form_reads_back_as_the_value_and_is_its_own_form(value in doubles()) {
        let form = to_string(&value).unwrap();
        let back = json::from_slice(form.as_bytes(), &Limits::default()).unwrap();
        prop_assert_eq!(&to_string(&back).unwrap(), &form);
    }

    /// An integer that states all its digits is taken if, and only if, a double is that integer.
    #[test]
    fn an_integer_is_taken_if_a_double_is_the_same(int in any::<i64>(), shift in 0..63_u32) {
        let int = int >> shift;
        let is_taken = to_string(&int.into()).is_ok();
        let is_exact = (int as f64) as i128 == i128::from(int);
        if int % 10 == 0 {
            // The zeros at its end need not be digits that anybody measured.
            prop_assert!(is_taken || !is_exact);
        } else {
            prop_assert_eq!(is_taken, is_exact);
        }
    }

    /// What C and Python print of a double (17 digits) is taken as that double.
    #[test]
    fn seventeen_digits_of_a_double_are_taken_as_that_double(float in any::<f64>().prop_filter("finite", |f| f.is_finite())) {
        let text = format!("{float:.16e}");
        let printed = to_string(&Number::parse(&text).unwrap().into()).unwrap();
        prop_assert_eq!(printed.parse::<f64>().unwrap().to_bits(), (float + 0.0).to_bits());
    }
}
