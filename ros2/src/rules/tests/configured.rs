//! Rules for any type, several for one, and what does not fit.

use super::*;

#[test]
fn numbers_and_truths() {
    for (ty, value, text) in [
        ("Bool", Value::from(true), "/n: true"),
        ("Int8", Value::from(-3_i8), "/n: -3"),
        ("Int16", Value::from(-3_i8), "/n: -3"),
        ("Int32", Value::from(-3_i8), "/n: -3"),
        ("Int64", Value::from(i64::MIN), "/n: -9223372036854775808"),
        ("UInt8", Value::from(3_u8), "/n: 3"),
        ("UInt16", Value::from(3_u8), "/n: 3"),
        ("UInt32", Value::from(3_u8), "/n: 3"),
        ("UInt64", Value::from(u64::MAX), "/n: 18446744073709551615"),
        ("Byte", Value::from(3_u8), "/n: 3"),
        ("Char", Value::from(65_u8), "/n: 65"),
        ("Float32", Value::from(0.1_f32), "/n: 0.1"),
        ("Float64", Value::from(-2.5), "/n: -2.5"),
    ] {
        let mut bench = Bench::plain("/n");
        let mut message = bench.message(&format!("std_msgs/msg/{ty}"));
        message.set("data", value).unwrap();
        assert_eq!(record(bench.one(0.0, &message)).content, text, "{ty}");
        assert!(is_dropped(&bench.one(100.0, &message), Reason::Unchanged), "{ty}");
    }
}

#[test]
fn any_type_by_its_fields() {
    let mut bench = Bench::new(
        "/mine",
        "[[ros2.topic]]\ntopic = '/m*'\ntype = 'my_msgs/msg/Mine'\n\
         text = '{name}: {tags[*]} ({score:.0%})'\nentity = '{name}'\nlabel = 'location'\n\
         pose = 'where'\nframe = 'odom'\nkind = 'learning'\nexperience_type = 'discovery'\n\
         importance = 'score'\nhalf_life_h = 48\nanchored = true\nexpires_s = 3600\n\
         keep.only = [{ field = 'ok', is = true }, { field = 'name', is = ['dock', 'door'] }]",
    )
    .with_robot();
    let mut mine = bench.message("my_msgs/msg/Mine");
    mine.set("name", "dock").unwrap();
    mine.set("score", 1.5_f32).unwrap();
    mine.set("tags", vec!["new".to_owned(), "far".to_owned()]).unwrap();
    mine.set("where.position.x", 3.0).unwrap();
    mine.set("header.frame_id", "nonsense").unwrap();
    assert!(is_dropped(&bench.one(1.0, &mine), Reason::Condition));
    mine.set("ok", true).unwrap();
    let memory = record(bench.one(2.0, &mine));
    assert_eq!(memory.content, "dock: new, far (150%)");
    assert_eq!(memory.importance.unwrap().as_f64(), 1.0, "no more than there is");
    let decay = memory.decay.clone().unwrap();
    assert_eq!((decay.half_life_hours.unwrap().as_f64(), decay.anchored), (48.0, Some(true)));
    assert_eq!(memory.valid_until.unwrap().at(), at(3602.0).into());
    assert_eq!(memory.kind.unwrap().as_str(), "learning");
    assert_eq!(memory.experience_type.unwrap().as_str(), "discovery");
    let extensions = memory.extension.unwrap();
    near(&SpatialPose::from_extension(&extensions[0]).unwrap(), "map", [10.0, 3.0, 0.0]);
    // Of what nothing else is said, there is one in a second.
    mine.set("name", "door").unwrap();
    assert!(is_dropped(&bench.one(2.7, &mine), Reason::TooSoon));
    assert!(kept(bench.one(3.0, &mine)).is_first);
}

#[test]
fn a_list_of_any_type_makes_entities() {
    let mut bench = Bench::new(
        "/mine",
        "[[ros2.topic]]\ntopic = '/mine'\nas = 'entity'\neach = 'parts[*]'\nentity = '{name}'\n\
         text = 'worn by {wear:.1}, codes {codes[*]:join(/)} of {^name}'\npose = 'at'\n\
         label = 'product'",
    )
    .with_robot();
    let part = |bench: &Bench, name: &str, wear: f64| {
        let mut part = bench.message("my_msgs/msg/Part");
        part.set("name", name).unwrap();
        part.set("wear", wear).unwrap();
        part.set("codes", vec![Value::Int(1), Value::Int(-2)]).unwrap();
        part
    };
    let mut mine = bench.message("my_msgs/msg/Mine");
    mine.set("name", "arm").unwrap();
    mine.set("header.frame_id", "base_link").unwrap();
    let parts = vec![part(&bench, "Gripper", 0.1), part(&bench, "", 0.2)];
    mine.set("parts", parts).unwrap();
    let mut decisions = bench.see(4.0, &mine);
    assert!(is_dropped(&decisions[1], Reason::NoName));
    let first = kept(decisions.remove(0));
    let gripper = entity(&first.resource);
    assert_eq!((gripper.id.as_str(), gripper.name.as_str()), ("gripper", "Gripper"));
    assert_eq!(gripper.summary.as_deref(), Some("worn by 0.1, codes 1/-2 of arm"));
    assert_eq!(gripper.mention_count.unwrap().as_u64(), Some(1));
    near(
        &SpatialPose::from_extension(&gripper.extension.unwrap()[0]).unwrap(),
        "map",
        [10.0, 4.0, 0.0],
    );
    assert_eq!(bench.see(5.0, &mine)[0], Decision::Merged { count: 2 });
    let again = kept(bench.see(64.0, &mine).remove(0));
    assert_eq!((again.is_first, again.seen), (false, 2));
    let mut stored = entity(&first.resource);
    stored.attributes = Some([("maker".to_owned(), "acme".to_owned())].into());
    let stored = Resource::from(stored).to_value();
    let value = folded(Some(&stored), &again).unwrap();
    let gripper = entity(&value);
    assert_eq!(gripper.mention_count.unwrap().as_u64(), Some(3));
    assert_eq!(gripper.attributes.unwrap()["maker"], "acme", "what others said of it stays");
    assert_eq!(gripper.last_seen_at.unwrap().at(), at(64.0).into());
    assert_eq!(folded(Some(&value), &again), None, "nothing counts twice");
}

#[test]
fn several_rules_look_at_a_topic_each_for_itself() {
    let mut bench = Bench::new(
        "/left/mine",
        "[[ros2.topic]]\ntopic = '/*/mine'\ntext = 'first {name}'\n\
         [[ros2.topic]]\ntopic = '/left/mine'\ntext = 'second {name}'\n\
         [[ros2.topic]]\ntopic = '/left/mine'\ntype = 'std_msgs/msg/String'\nqueue_depth = 3",
    );
    let mut mine = bench.message("my_msgs/msg/Mine");
    mine.set("name", "x").unwrap();
    let decisions = bench.see(0.0, &mine);
    let [first, second] = <[Decision; 2]>::try_from(decisions).unwrap().map(record);
    assert_eq!((first.content.as_str(), second.content.as_str()), ("first x", "second x"));
    assert_ne!(first.id, second.id);
    let name = |ty: &str| ty.parse::<TypeName>().unwrap();
    assert!(bench.rules.wants("/left/mine", &name("std_msgs/msg/String")));
    assert!(!bench.rules.wants("/mine", &name("std_msgs/msg/String")));
    assert_eq!(bench.rules.interest("/mine", &name("std_msgs/msg/String")), Interest::None);
    assert_eq!(bench.rules.queue_depth("/left/mine", &name("std_msgs/msg/String")), Some(3));
    assert_eq!(bench.rules.queue_depth("/left/mine", &name("my_msgs/msg/Mine")), None);
    bench.rules.malformed("/left/mine");
    assert_eq!(bench.counters().malformed, 1);
}

#[test]
fn two_definitions_of_one_name_at_once_are_one_rule() {
    let mut bench = Bench::new(
        "/mine",
        "[[ros2.topic]]\ntopic = '/mine'\ntext = '{name}'\nby = 'name'\nkeep.at_most_every_s = 60",
    );
    let mut other = Registry::standard();
    let name = "my_msgs/msg/Mine".parse().unwrap();
    other.add_text(&name, "string name\nint32 more").unwrap();
    let mut new = Message::new(&other.message("my_msgs/msg/Mine").unwrap());
    let mut old = bench.message("my_msgs/msg/Mine");
    for message in [&mut new, &mut old] {
        message.set("name", "x").unwrap();
    }
    // Half of the fleet is updated: what limits a rule does not begin again with each message.
    for n in 0..10 {
        bench.see(f64::from(n), if n % 2 == 0 { &old } else { &new });
    }
    assert_eq!(bench.counters().kept, 1);
    assert_eq!(bench.counters().dropped[&Reason::TooSoon], 9);
}

#[test]
fn types_of_ever_new_names_leave_no_trace_and_take_nothing_from_the_one_in_use() {
    let mut bench = Bench::new(
        "/mine",
        "[[ros2.topic]]\ntopic = '/mine'\ntext = '{name}'\nby = 'name'\nkeep.at_most_every_s = 6000",
    );
    let mut mine = bench.message("my_msgs/msg/Mine");
    mine.set("name", "x").unwrap();
    for n in 0..100 {
        bench.see(f64::from(n), &mine);
        let name = format!("their_msgs/msg/T{n}");
        let fields = if n % 2 == 0 { "string name" } else { "int32 other" };
        let mut registry = Registry::new();
        registry.add_text(&name.parse().unwrap(), fields).unwrap();
        bench.see(f64::from(n), &Message::new(&registry.message(&name).unwrap()));
    }
    let misfits = bench.rules.misfits().count();
    assert!(misfits < 16, "{misfits}");
    assert_eq!(bench.counters().dropped[&Reason::TooSoon], 99, "it is still the same thing");
}

#[test]
fn what_does_not_fit_a_type_is_said_under_its_key() {
    let mut registry = Registry::standard();
    registry.add_text(&"my_msgs/msg/Part".parse().unwrap(), PART).unwrap();
    registry.add_text(&"my_msgs/msg/Mine".parse().unwrap(), MINE).unwrap();
    for (rule, complaint) in [
        ("text = '{nme}'", "text: nme: my_msgs/msg/Mine has no such field"),
        ("", "text: is missing: it says what a my_msgs/msg/Mine means"),
        ("text = 'x'\neach = 'tags[*]'", "each: tags[*] is no message but string"),
        ("text = 'x'\neach = 'name[*]'", "each: name[*]: a string is no list"),
        ("text = 'x'\npose = 'score'", "pose: score is a float32, not a message with a pose"),
        ("text = 'x'\npose = 'header'", "pose: a std_msgs/msg/Header is no message with a pose"),
        ("text = 'x'\ngeo = '.'", "geo: a my_msgs/msg/Mine is no message with latitude"),
        ("text = 'x'\nstamp = 'name'", "stamp: name is a string, not a message of builtin"),
        ("text = 'x'\nimportance.warn = 1", "importance: a my_msgs/msg/Mine has no level"),
        ("text = 'x'\nkeep.levels = 'warn'", "keep.levels: a my_msgs/msg/Mine has no level"),
        (
            "text = 'x'\nkeep.on_change = 'a'",
            "keep.on_change: a: my_msgs/msg/Mine has no such field",
        ),
        ("text = 'x'\nkeep.below = { field = 'b', at = 1 }", "keep.below: b: my_msgs/msg/Mine"),
        ("text = 'x'\nkeep.only = { field = 'c', at_least = 1 }", "keep.only: c: my_msgs/msg/Mine"),
        ("text = 'x'\nas = 'entity'", "entity: is missing: it names the entity"),
    ] {
        let config = format!("[[ros2.topic]]\ntopic = '/m'\ntype = 'my_msgs/msg/Mine'\n{rule}\n");
        let error = Rules::compile(&resolve(&config).unwrap(), &registry).unwrap_err();
        let complaint = format!("ros2.topic[0].{complaint}");
        assert!(error.to_string().starts_with(&complaint), "{rule}: {error}");
    }
    let config = "[[ros2.topic]]\ntopic = '/m'\ntype = 'my_msgs/msg/Part'\ntext = 'x'\npose = 'at'";
    let error = Rules::compile(&resolve(config).unwrap(), &registry).unwrap_err();
    assert!(error.to_string().starts_with("ros2.topic[0].frame: is missing"), "{error}");
    // A type that is unknown yet may come.
    let config = "[[ros2.topic]]\ntopic = '/m'\ntype = 'their_msgs/msg/New'\ntext = '{x}'";
    assert!(Rules::compile(&resolve(config).unwrap(), &registry).is_ok());
}

#[test]
fn a_type_without_the_fields_is_dropped_and_told() {
    let mut bench = Bench::new("/m", "[[ros2.topic]]\ntopic = '/m'\ntext = '{colour}'");
    let mine = bench.message("my_msgs/msg/Mine");
    assert!(is_dropped(&bench.one(0.0, &mine), Reason::WrongType));
    let misfits: Vec<String> = bench.rules.misfits().map(ToString::to_string).collect();
    assert!(misfits[0].starts_with("ros2.topic[0].text: colour: "), "{misfits:?}");
}
