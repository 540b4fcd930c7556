use super::*;

fn number(text: &str) -> Number {
    Number::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn texts_that_come_back_as_they_were() {
    for text in [
        "0",
        "9",
        "9.0",
        "-1",
        "-0.0",
        "0.1",
        "1e16",
        "1e-7",
        "1.5e300",
        "1e400",
        "-1e400",
        "1e-400",
        "5e-324",
        "1.7976931348623157e308",
        "170141183460469231731687303715884105727",
        "170141183460469231731687303715884105728",
        "-170141183460469231731687303715884105728",
        "-170141183460469231731687303715884105729",
        "0.1000000000000000055511151231257827",
        "0.00012345678901234567890123",
        "123456789.0123456789012345",
        "1e100000",
    ] {
        assert_eq!(number(text).to_string(), text);
    }
    assert_eq!(number("1E+3").to_string(), "1000.0");
    assert_eq!(number("1.50").to_string(), "1.5");
    assert_eq!(number("10000000000000000000000000e380").to_string(), "1e405");
    assert_eq!(number("0e999999999999999999999").to_string(), "0.0");
}

#[test]
fn floats_only_where_they_say_the_same() {
    for (text, float) in [
        ("0.1", true),
        ("0.30000000000000004", true),
        ("0.300000000000000044", false),
        ("1e308", true),
        ("1e309", false),
        ("2.5e-324", false),
        ("1e23", true),
        ("9007199254740993.0", false),
        ("9007199254740992.0", true),
    ] {
        let is_float = matches!(number(text).0, Repr::Float(_));
        assert_eq!(is_float, float, "{text}");
    }
}

#[test]
fn grammar_is_that_of_json() {
    for text in [
        "", "-", "+1", "01", "1.", ".5", "1e", "1e+", "0x1", "1_0", "NaN", "Infinity", " 1", "1 ",
        "--1", "1.5.5", "1e5e5", "１", "1e1.5", "-01",
    ] {
        assert_eq!(Number::parse(text), Err(NumberError::Syntax), "{text}");
    }
    let long = |n: usize| "9".repeat(n);
    assert!(Number::parse(&long(1000)).is_ok());
    assert_eq!(Number::parse(&long(1001)), Err(NumberError::TooLong));
    assert_eq!(Number::parse("1e100001"), Err(NumberError::TooLong));
    assert_eq!(Number::parse("1e-100001"), Err(NumberError::TooLong));
    for exponent in ["99999999999999999999", "9223372036854775807", "9223372036854775806"] {
        assert_eq!(Number::parse(&format!("1e{exponent}")), Err(NumberError::TooLong));
        assert_eq!(Number::parse(&format!("1.5e-{exponent}")), Err(NumberError::TooLong));
    }
}

#[test]
fn order_is_by_value_and_exact() {
    let ascending = [
        "-1e400",
        "-170141183460469231731687303715884105729",
        "-170141183460469231731687303715884105728",
        "-1.5",
        "-1",
        "-1e-400",
        "0",
        "1e-400",
        "5e-324",
        "0.1",
        "0.1000000000000000055511151231257827",
        "0.9999999999999999",
        "0.99999999999999999999",
        "1",
        "1.00000000000000000001",
        "2",
        "9007199254740992",
        "9007199254740993",
        "9007199254740994.0",
        "99999999999999999999999",
        "1e23",
        "100000000000000000000001",
        "1e400",
        "1e401",
    ];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            assert_eq!(number(a).cmp(&number(b)), i.cmp(&j), "{a} {b}");
        }
    }
    for (a, b) in [
        ("9", "9.0"),
        ("0", "-0.0"),
        ("1e3", "1000"),
        ("1e23", "100000000000000000000000"),
        ("1e400", "10.0e399"),
    ] {
        assert_eq!(number(a), number(b));
    }
    assert!(number("1.00000000000000000001") > 1.0);
    assert!(number("1e400") < f64::INFINITY);
    assert!(number("-1e400") > f64::NEG_INFINITY);
    assert_eq!(number("1").partial_cmp(&f64::NAN), None);
    assert!(number("0.5") > 0_i64 && number("1.0") == 1_i64);
}

#[test]
fn integers_however_written() {
    for text in ["1", "1.0", "1e3", "1e400", "-0.0", "1e23", "12345678901234567890e-1"] {
        assert!(number(text).is_integer(), "{text}");
    }
    for text in ["1.5", "1e-3", "1.00000000000000000001"] {
        assert!(!number(text).is_integer(), "{text}");
        assert_eq!(number(text).as_i128(), None);
    }
    assert_eq!(number("1.0").as_u64(), Some(1));
    assert_eq!(number("18446744073709551615").as_u64(), Some(u64::MAX));
    assert_eq!(number("18446744073709551616").as_u64(), None);
    assert_eq!(number("-1").as_u64(), None);
    assert_eq!(number("-9223372036854775808").as_i64(), Some(i64::MIN));
    assert_eq!(number("1e23").as_i128(), Some(10_i128.pow(23)));
    assert_eq!(number("1e400").as_i128(), None);
}

#[test]
fn floats_are_the_nearest() {
    assert_eq!(number("1e400").as_f64(), f64::INFINITY);
    assert_eq!(number("1e-400").as_f64(), 0.0);
    assert_eq!(number("0.1000000000000000055511151231257827").as_f64(), 0.1);
    assert_eq!(number("9007199254740993").as_f64(), 9007199254740992.0);
    assert!(Number::from_f64(f64::NAN).is_none() && Number::from_f64(f64::INFINITY).is_none());
}

#[test]
fn hostile_numbers_are_cheap() {
    // Comparing these by writing out a hundred thousand digits would show in the test's time.
    let (large, small) = (number("1e100000"), number("1e-100000"));
    for _ in 0..10_000 {
        assert!(large > small);
    }
}
