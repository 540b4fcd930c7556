use omir_core::model::Label;
use omir_core::value::Value;

use super::keeping::{Keep, condition, merging, threshold};
use super::*;

fn section(text: &str) -> Ros2Section {
    #[derive(Deserialize)]
    struct File {
        ros2: Ros2Section,
    }
    toml::from_str::<File>(text).unwrap().ros2
}

fn complaints(text: &str) -> Vec<String> {
    let error = section(text).resolve().unwrap_err();
    error.complaints.iter().map(ToString::to_string).collect()
}

/// The part of `config/omird.toml` that shows `[ros2]`, with its comment signs taken away.
fn sample() -> String {
    let text = include_str!("../../../../config/omird.toml");
    let lines = text.lines().skip_while(|line| !line.ends_with("[ros2]"));
    let bare = lines.map(|line| line.strip_prefix("# ").unwrap_or(line.trim_start_matches('#')));
    bare.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_sample_says_the_defaults_and_shows_every_key() {
    let text = sample();
    let resolved = section(&text).resolve().unwrap_or_else(|error| panic!("{error}"));
    assert!(resolved.topics.len() >= 4);
    // The default depends on `access.require`; the sample names the one that holds with it.
    assert_eq!(resolved.scopes.as_deref().map(<[_]>::len), Some(2));
    assert_eq!(Ros2 { topics: Vec::new(), scopes: None, ..resolved }, Ros2::default());
    let table: toml::Table = text.parse().unwrap();
    let shown = table["ros2"].as_table().unwrap();
    for key in [
        "enabled",
        "domain_id",
        "namespace",
        "node_name",
        "remap",
        "distribution",
        "interfaces",
        "fixed_frame",
        "robot_frame",
        "keyframes",
        "tf_buffer_s",
        "transform_wait_ms",
        "use_sim_time",
        "queue_depth",
        "things",
        "scopes",
    ] {
        assert!(shown.contains_key(key), "{key}");
    }
}

#[test]
fn times_in_words_mean_what_the_plain_numbers_mean() {
    let rule = "[[ros2.topic]]\ntopic = '/a'\n";
    for (words, number) in [
        ("[ros2]\ntf_buffer_s = '1min'".to_owned(), "[ros2]\ntf_buffer_s = 60".to_owned()),
        (
            "[ros2]\ntransform_wait_ms = '2s'".to_owned(),
            "[ros2]\ntransform_wait_ms = 2000".to_owned(),
        ),
        (format!("{rule}expires_s = '3d'"), format!("{rule}expires_s = 259200")),
        (format!("{rule}half_life_h = '3d'"), format!("{rule}half_life_h = 72.0")),
        (
            format!("{rule}keep.at_most_every_s = '1h30m'"),
            format!("{rule}keep.at_most_every_s = 5400"),
        ),
        (
            format!("{rule}merge = {{ within_s = '10min', update_every_s = '500ms' }}"),
            format!("{rule}merge = {{ within_s = 600, update_every_s = 0.5 }}"),
        ),
        (
            format!(
                "{rule}localised = {{ topic = '/b', age_s = '1min', frame = 'odom', frame_age_s = '2s' }}"
            ),
            format!(
                "{rule}localised = {{ topic = '/b', age_s = 60, frame = 'odom', frame_age_s = 2 }}"
            ),
        ),
    ] {
        let [words, number] = [words, number]
            .map(|text| section(&text).resolve().unwrap_or_else(|error| panic!("{text}: {error}")));
        assert_eq!(words, number);
    }
}

#[test]
fn every_complaint_names_its_key() {
    for (text, complaint) in [
        ("[ros2]\ndomain_id = 300", "ros2.domain_id: 300 is not between 0 and 232"),
        ("[ros2]\nnamespace = 'a b'", "ros2.namespace: \"a b\" is not letters"),
        ("[ros2]\nnode_name = '3d'", "ros2.node_name: \"3d\" is not letters"),
        ("[ros2]\nremap = ['/a']", "ros2.remap[0]: \"/a\" is no remapping"),
        (
            "[ros2]\ndistribution = 'jazy'",
            "ros2.distribution: \"jazy\" is not known; is it \"jazzy\"?",
        ),
        ("[ros2]\ninterfaces = ''", "ros2.interfaces: is empty"),
        ("[ros2]\nfixed_frame = ''", "ros2.fixed_frame: \"\" is no frame"),
        ("[ros2]\nkeyframes = ['']", "ros2.keyframes[0]: \"\" is no frame"),
        ("[ros2]\ntf_buffer_s = 0", "ros2.tf_buffer_s: 0 is not between 0.1 and 3600"),
        (
            "[ros2]\nfixedframe = 'map'\n",
            "ros2.fixedframe: there is no such key; is it fixed_frame?",
        ),
        ("[ros2]\ntopic = 3", "ros2.topic: expected tables, not a number"),
        ("[[ros2.topic]]\ntext = 'x'", "ros2.topic[0].topic: is missing"),
        ("[[ros2.topic]]\ntopic = 'rosout'", "ros2.topic[0].topic: \"rosout\" is no topic"),
        ("[[ros2.topic]]\ntopic = '/a'\ntype = 'String'", "ros2.topic[0].type: "),
        (
            "[[ros2.topic]]\ntopic = '/a'\nas = 'thing'",
            "ros2.topic[0].as: \"thing\" is none of record, entity",
        ),
        ("[[ros2.topic]]\ntopic = '/a'\neach = 'a[0]'", "ros2.topic[0].each: \"a[0]\" is no list"),
        ("[[ros2.topic]]\ntopic = '/a'\ntext = '{a'", "ros2.topic[0].text: a { without a }"),
        (
            "[[ros2.topic]]\ntopic = '/a'\nlabel = 'persn'",
            "ros2.topic[0].label: \"persn\" is not known; is it \"person\"?",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nimportance = 2",
            "ros2.topic[0].importance: 2 is not between 0 and 1",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nimportance.bad = 1",
            "ros2.topic[0].importance.bad: \"bad\" is none of debug",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nimportance.warn = 2",
            "ros2.topic[0].importance.warn: 2 is no number between 0 and 1",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nhalf_life_h = 0",
            "ros2.topic[0].half_life_h: 0 is not between",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nexperience_type = 'fun'",
            "ros2.topic[0].experience_type: \"fun\" is none of conversation",
        ),
        ("[[ros2.topic]]\ntopic = '/a'\npose = 'a b'", "ros2.topic[0].pose: a b: a path is names"),
        (
            "[[ros2.topic]]\ntopic = '/a'\nstamp = '@now'",
            "ros2.topic[0].stamp: @now: a path is names",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nwithout_transform = 'wait'",
            "ros2.topic[0].without_transform: \"wait\" is none of keep, drop",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nlocalised = true",
            "ros2.topic[0].localised: expected a table, not a boolean",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nlocalised = {}",
            "ros2.topic[0].localised.topic: is missing; a rule asks for a topic with a covariance, or",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nlocalised.within_m = 1",
            "ros2.topic[0].localised.topic: is missing; within_m is about the covariance",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nlocalised.topic = '/b'",
            "ros2.topic[0].localised.within_m: is missing; say how certain",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nlocalised = { topic = '/*', within_m = 1 }",
            "ros2.topic[0].localised.topic: \"/*\" is more than one topic",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nlocalised = { topic = '/b', within_m = -1 }",
            "ros2.topic[0].localised.within_m: -1 is not between 0 and 1000000",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nlocalised.frame = 'odom'",
            "ros2.topic[0].localised.frame_age_s: is missing; it says how old",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nlocalised.frame_age_s = '2s'",
            "ros2.topic[0].localised.frame: is missing; it is the frame that the localiser moves",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nlocalised = { topic = '/b', within_m = 1, otherwise = 'keep' }",
            "ros2.topic[0].localised.otherwise: \"keep\" is none of drop, unplaced, own_frame",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nhalf_life_h = '9'",
            "ros2.topic[0].half_life_h: \"9\" has no unit",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nkeep.at_most_every_s = 'soon'",
            "ros2.topic[0].keep.at_most_every_s: \"soon\" is no time such as",
        ),
        (
            "[ros2]\ntransform_wait_ms = '1h'",
            "ros2.transform_wait_ms: \"1h\" is not between 0 and 5000 milliseconds",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nkeep.beyond_m = 'far'",
            "ros2.topic[0].keep.beyond_m: expected a number, not a string",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nkeep.beyound_m = 1",
            "ros2.topic[0].keep.beyound_m: there is no such key; is it beyond_m?",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nkeep.levels = ['bad']",
            "ros2.topic[0].keep.levels[0]: \"bad\" is none of",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nkeep.only = { field = 'x' }",
            "ros2.topic[0].keep.only.at_least: a condition needs",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nkeep.above = [{ at = 1 }]",
            "ros2.topic[0].keep.above[0].field: is missing",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nkeep.above = { field = 'x' }",
            "ros2.topic[0].keep.above.at: is missing",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nkeep.below = { field = 'x', at = 1, back_at = 0 }",
            "ros2.topic[0].keep.below.back_at: 0 is below the limit of 1",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nmerge = true",
            "ros2.topic[0].merge: expected a table, not a boolean",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\nmerge.within = 1",
            "ros2.topic[0].merge.within: there is no such key; is it within_",
        ),
        (
            "[[ros2.topic]]\ntopic = '/a'\n[[ros2.topic]]\ntopic = '/b'\nqueue_depth = 0",
            "ros2.topic[1].queue_depth: 0 is not between 1 and 10000",
        ),
    ] {
        let found = complaints(text);
        assert!(found.len() == 1 && found[0].starts_with(complaint), "{text}\n{found:#?}");
    }
}

#[test]
fn everything_wrong_is_said_at_once() {
    let found = complaints(
        "[ros2]\ndomain_id = -1\n[[ros2.topic]]\ntopic = '/a'\nimportance = 3\nx = 1\n\
         [[ros2.topic]]\ntopic = 7",
    );
    assert_eq!(found.len(), 4, "{found:#?}");
}

#[test]
fn a_rule_says_what_it_says() {
    let text = "[[ros2.topic]]\ntopic = '/a'\nby = 'name'\nmerge = false\npose = '@none'\n\
                confidence = 'score'\nlabel = ['person', 'other']\nkeep.only = { field = '^x', is = 'a' }\n\
                [[ros2.topic]]\ntopic = '/a'\n[[ros2.topic]]\ntopic = '/*/b'\nname = '/a'\n[ros2]\nnamespace = 'r1/'";
    let error = complaints(text);
    assert_eq!(error.len(), 1, "{error:?}");
    let ros2 = section(&text.replace("'r1/'", "'r1'")).resolve().unwrap();
    assert_eq!(ros2.namespace, "/r1");
    let names: Vec<&str> = ros2.topics.iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(names, ["/a", "/a#2", "/a#3"], "ids need a name for each rule");
    let spec = &ros2.topics[0].spec;
    assert_eq!(spec.by, Some("{name}".parse().unwrap()));
    assert_eq!(spec.merge, Some(Merging::Never));
    assert_eq!(spec.pose, Some(PoseFrom::Nowhere));
    assert_eq!(spec.confidence, Some(Amount::Field("score".parse().unwrap())));
    assert_eq!(spec.labels, Some(vec![Label::Person, Label::Other]));
    assert_eq!(spec.keep.as_ref().unwrap().only[0].is, [Value::from("a")]);
    assert!(ros2.topics[2].topic.matches("/x/b"));
}

#[test]
fn the_page_tells_of_every_key() {
    let page = include_str!("../../../../docs/topics.md");
    let table_of = |read: &dyn Fn(Table<'_>)| {
        // A key that does not exist is answered with those that do.
        let complaints = Complaints::default();
        let wrong: Map = [("?", Value::Null)].into_iter().collect();
        read(Table::new("t", &wrong, &complaints));
        let error = complaints.or(()).unwrap_err().complaints;
        let known = error.iter().find_map(|complaint| {
            complaint.message.strip_prefix("there is no such key; there are ").map(str::to_owned)
        });
        known.unwrap()
    };
    let rule = table_of(&|table| drop(TopicRule::read(&table)));
    let keep = table_of(&|table| drop(Keep::read(table)));
    let merge = table_of(&|table| _ = merging(table));
    let condition = table_of(&|table| drop(condition(table)));
    let threshold = table_of(&|table| _ = threshold(table, true));
    for keys in [rule, keep, merge, condition, threshold] {
        for key in keys.split(", ") {
            let told =
                [format!("`{key}`"), format!("`{key} "), format!(" {key},"), format!(" {key} }}")];
            assert!(told.iter().any(|told| page.contains(told)), "docs/topics.md lacks {key}");
        }
    }
}
