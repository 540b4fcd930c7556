//! Hashes and descriptions of types, against those of ROS itself and of another implementation.
//!
//! Invariant 24 of ARCHITECTURE.md.

mod registry;

use std::collections::{BTreeMap, BTreeSet};

use omir_ros2::interface::{InterfaceError, Registry, TypeHash, TypeName, message_type};

use registry::registry;

const HASHES: &str = include_str!("data/hashes.txt");

#[test]
fn every_hash_is_that_of_another_implementation() {
    let registry = registry();
    let mut theirs: BTreeMap<TypeName, &str> = HASHES
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(n, h)| (n.parse().unwrap(), h))
        .collect();
    for name in registry.names() {
        let ours = registry.message(&name.to_string()).unwrap().hash.to_string();
        assert_eq!(theirs.remove(name), Some(&*ours), "{name}");
    }
    assert!(theirs.is_empty(), "{theirs:?}");
}

/// From code that `rosidl_generator_c` made (its `TYPE_HASH` and `EXPECTED_HASH` tables).
#[test]
fn services_and_actions_have_the_hashes_of_rosidl() {
    let registry = registry();
    let service = |name| registry.service(name).unwrap().hash.to_string();
    assert_eq!(
        service("example_interfaces/srv/AddTwoInts"),
        "RIHS01_e118de6bf5eeb66a2491b5bda11202e7b68f198d6f67922cf30364858239c81a"
    );
    assert_eq!(
        service("type_description_interfaces/srv/GetTypeDescription"),
        "RIHS01_69b9c19c1021405984cc60dbbb1edceb147a6538b411d812ba6afabeed962cd5"
    );
    let action = registry.action("example_interfaces/action/Fibonacci").unwrap();
    for (part, hash) in [
        (action.hash, "9508051da1ea4658de144b09bd0690ff3de52104683d847aed764d2915906f51"),
        (action.goal.hash, "226cb437e4355dcd3e914f930382a3b0cc1da81545bd319ed554e95a03255f51"),
        (action.result.hash, "fea81394f25aa4502217953f1a021fb750e79c10bbd43f13dd94632da6569649"),
        (action.feedback.hash, "2b12e37361da6f408d4c85bc24a18de64333f29082f2ca34b5ee33dc4c8b42a9"),
        (action.send_goal.hash, "d1a57fb2a4afe8c21e34fb10db206f16ce6729b28531141472df92277c55b557"),
        (
            action.send_goal.request.hash,
            "3d088942b413247db536576f0286768c6be8fcd5d0c9a5d544f359fba090a238",
        ),
        (
            action.send_goal.response.hash,
            "d8c07bb3d5b766fe4b43159c9a5222af5214e2fcc29229b991d826166c512be1",
        ),
        (
            action.send_goal.event.hash,
            "d5e5b312dbf847307b0e876c2ecc9d80258e95b0d17f8f7bfc581c4a29c83484",
        ),
        (
            action.get_result.hash,
            "1b0de0d5d29dc955d92f5467065684286327 71db13ec84c15ec1c1a59f424a57",
        ),
        (
            action.get_result.response.hash,
            "6021dc98ab9b4bbe395e48aa4de81ee5f68eb570f88358affcc648146668b24f",
        ),
        (
            action.feedback_message.hash,
            "c1de71afd52e49a89c53d8262366884185bc0a02f78ce051c4e46b0a7fe59bb2",
        ),
    ] {
        let hash = hash.replace(' ', "");
        assert_eq!(part, TypeHash::from_rihs_string(&format!("RIHS01_{hash}")).unwrap());
    }
    let message = |name| registry.message(name).unwrap().hash.to_string();
    assert_eq!(
        message("service_msgs/msg/ServiceEventInfo"),
        "RIHS01_41bcbbe07a75c9b52bc96bfd5c24d7f0fc0a08c0cb7921b3373c5732345a6f45"
    );
    assert_eq!(
        message("vision_msgs/msg/Detection3DArray"),
        "RIHS01_793f5eab9595ac1c0da07873cc859db42eae51f0ee76056db8562515d830e018"
    );
    assert_eq!(
        message("vision_msgs/msg/Detection2DArray"),
        "RIHS01_214274120007f4a683866481336b70310268cfa107aebe9d594a6acf75bda968"
    );
}

#[test]
fn a_type_and_its_description_are_one() {
    let registry = registry();
    let none = Registry::new();
    for name in registry.names() {
        let ty = registry.message(&name.to_string()).unwrap();
        let again = message_type(&ty.description()).unwrap();
        assert_eq!(again, ty);
        assert_eq!(none.described(&ty.description()).unwrap(), ty);
    }
    assert_eq!(none.names().count(), 0, "what publishers describe is not kept here");
}

#[test]
fn a_type_that_changed_under_its_name_is_refused_and_nothing_is_added() {
    let mut other = Registry::new();
    other.add_text(&"demo_msgs/msg/Inner".parse().unwrap(), "int32 a").unwrap();
    other.add_text(&"demo_msgs/msg/Outer".parse().unwrap(), "Inner[] all\nOther o").unwrap();
    other.add_text(&"demo_msgs/msg/Other".parse().unwrap(), "string s").unwrap();
    let described = other.message("demo_msgs/msg/Outer").unwrap().description();

    let mut registry = Registry::standard();
    registry.add_text(&"demo_msgs/msg/Inner".parse().unwrap(), "int64 a").unwrap();
    let refused = registry.described(&described).unwrap_err();
    assert!(
        matches!(&refused, InterfaceError::Conflict { name, .. } if name == "demo_msgs/msg/Inner")
    );
    assert!(registry.message("demo_msgs/msg/Other").is_err());
    // Standing alone it can be read all the same.
    assert_eq!(
        message_type(&described).unwrap().hash,
        other.message("demo_msgs/msg/Outer").unwrap().hash
    );
}

#[test]
fn descriptions_that_describe_nothing_are_refused() {
    let registry = registry();
    let good = registry.message("std_msgs/msg/Header").unwrap().description();
    let refused = |change: &dyn Fn(&mut omir_ros2::interface::TypeDescriptionMsg)| {
        let mut described = good.clone();
        change(&mut described);
        message_type(&described).unwrap_err().to_string()
    };
    let twice = refused(&|d| {
        let fields = &mut d.type_description.fields;
        fields.push(fields[0].clone());
    });
    assert!(twice.contains("the field `stamp` stands there twice"), "{twice}");
    let no_time = refused(&|d| d.referenced_type_descriptions.clear());
    assert!(
        no_time.contains("builtin_interfaces/msg/Time, which std_msgs/msg/Header needs,"),
        "{no_time}"
    );
    assert!(refused(&|d| d.type_description.type_name = "Header".into()).contains("Header"));
    for number in [0, 12, 19, 23, 48, 193, 255] {
        let why = refused(&|d| d.type_description.fields[1].field_type.type_id = number);
        assert!(why.contains("`frame_id`"), "{why}");
    }
    // An array of none, a field twice, a type within itself.
    assert!(refused(&|d| d.type_description.fields[1].field_type.type_id = 65).contains("none"));
    assert!(refused(&|d| d.type_description.fields[1].name = "stamp".into()).contains("twice"));
    let within = refused(&|d| {
        d.type_description.fields[0].field_type.nested_type_name = "std_msgs/msg/Header".into();
    });
    assert!(within.contains("itself"), "{within}");
}

/// A description from the network must not fill the memory of whoever makes a message of it.
#[test]
fn types_that_fill_the_memory_are_refused() {
    let mut registry = Registry::new();
    let mut refused = |name: &str, text: &str| {
        registry.add_text(&name.parse().unwrap(), text).unwrap();
        matches!(registry.message(name), Err(InterfaceError::TooLarge { .. }))
    };
    assert!(!refused(
        "demo_msgs/msg/A",
        "uint8[1000000] a\nfloat64[1000000] b\nbool[<=18446744073709551615] c"
    ));
    assert!(refused("demo_msgs/msg/B", "uint8[18446744073709551615] a"));
    assert!(refused("demo_msgs/msg/C", "string[3000000] a"));
    assert!(refused("demo_msgs/msg/D", "A[8] a"));
    // Nested arrays multiply.
    assert!(!refused("demo_msgs/msg/E0", "bool[1000] a"));
    assert!(!refused("demo_msgs/msg/E1", "E0[1000] a"));
    assert!(refused("demo_msgs/msg/E2", "E1[1000] a"));
}

#[test]
fn folders_are_read_as_colcon_lays_them_out() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut registry = Registry::new();
    let all = registry.add_folder(&dir.join("interfaces")).unwrap();
    assert!(all.contains(&"sensor_msgs/msg/NavSatFix".parse().unwrap()));
    assert!(all.contains(&"std_srvs/srv/Trigger".parse().unwrap()));
    let standard = Registry::standard();
    for name in &all {
        let (ours, theirs) =
            (registry.message(&name.to_string()), standard.message(&name.to_string()));
        assert_eq!(ours.unwrap().hash, theirs.unwrap().hash, "{name}");
    }
    // Nothing is bundled that does not lie there, and the other way round.
    let omir = registry.add_folder(&dir.join("omir_msgs")).unwrap_or_default();
    assert!(omir.iter().all(|name| name.package() == "omir_msgs"));
    assert_eq!(registry.names().count(), standard.names().count());
    assert!(
        registry
            .add_folder(&dir.join("no such folder"))
            .unwrap_err()
            .to_string()
            .contains("no such")
    );
}

#[test]
fn a_schema_of_a_recording_brings_what_it_contains() {
    let text = "std_msgs/Header header\nDetail[<=2] details\n\
        ================================================================================\n\
        MSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n\
        ================================================================================\n\
        MSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n\
        ================================================================================\n\
        MSG: demo_msgs/Detail\nfloat64 x 1.5\n";
    let mut registry = Registry::new();
    registry.add_schema(&"demo_msgs/msg/Report".parse().unwrap(), text).unwrap();
    let report = registry.message("demo_msgs/msg/Report").unwrap();
    assert_eq!(report.field("details").unwrap().1.ty.to_string(), "demo_msgs/msg/Detail[<=2]");
    assert_eq!(
        registry.message("std_msgs/Header").unwrap(),
        Registry::standard().message("std_msgs/Header").unwrap()
    );
}

#[test]
fn the_package_for_ros_builds_all_there_is() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("omir_msgs");
    let listed = std::fs::read_to_string(dir.join("CMakeLists.txt")).unwrap();
    let listed: BTreeSet<&str> = listed
        .lines()
        .filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix('"'))
        .collect();
    let mut there = BTreeSet::new();
    for kind in ["msg", "srv", "action"] {
        for file in std::fs::read_dir(dir.join(kind)).unwrap() {
            there.insert(format!("{kind}/{}", file.unwrap().file_name().to_string_lossy()));
        }
    }
    assert_eq!(listed, there.iter().map(String::as_str).collect());
    // A package that a type is taken from is one that the package depends on.
    let manifest = std::fs::read_to_string(dir.join("package.xml")).unwrap();
    for file in &there {
        for line in std::fs::read_to_string(dir.join(file)).unwrap().lines() {
            let ty = line.split_whitespace().next().unwrap_or_default();
            if let Some((package, _)) = ty
                .split_once('/')
                .filter(|(package, _)| !ty.starts_with('#') && *package != "omir_msgs")
            {
                assert!(manifest.contains(&format!("<depend>{package}</depend>")), "{file}: {ty}");
            }
        }
    }
}
