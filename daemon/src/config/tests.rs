use super::*;
use crate::zenoh::{DEFAULT_LISTEN, DEFAULT_ROUTER, Mode};

fn host() -> Host {
    Host { name: Some("rover 7!\n".into()), home: Some("/home/r".into()), ..Host::default() }
}

const SAMPLE: &str = include_str!("../../../config/omird.toml");

#[test]
fn the_sample_says_exactly_the_defaults() {
    let host = host();
    let mut defaults = resolve(File::default(), &host).unwrap();
    let resolved = |text: &str| resolve(toml::from_str(text).unwrap(), &host).unwrap();
    // As it is it changes nothing: what is edited into it is all that is edited.
    assert_eq!(resolved(SAMPLE), defaults);
    let line = |line: &str| match line.strip_prefix('#') {
        Some(default) if default.starts_with(|c: char| c.is_ascii_lowercase()) => default.into(),
        _ => line.to_owned(),
    };
    let said: Vec<String> = SAMPLE.lines().map(line).collect();
    // These two say in the sample what they would otherwise take from the machine.
    defaults.robot = "robot".into();
    defaults.data = "/var/lib/omird".into();
    let mut resolved = resolved(&said.join("\n"));
    let network = std::mem::take(&mut resolved.network);
    let (listen, connect) = (DEFAULT_LISTEN.to_owned(), DEFAULT_ROUTER.to_owned());
    let said = Network {
        mode: Some(Mode::Peer),
        listen: Some(vec![listen]),
        connect: Some(vec![connect]),
        file: None,
        rules: None,
    };
    assert_eq!(network, said);
    // A stated address must be free, and the default one need not be.
    #[cfg(feature = "http")]
    {
        let stated = std::mem::replace(&mut resolved.http.listen, defaults.http.listen);
        assert_eq!(stated, crate::http::Listen::At(crate::http::DEFAULT_LISTEN));
    }
    assert_eq!(resolved, defaults);
}

#[test]
fn a_service_keeps_its_data_where_its_manager_says() {
    let host = Host { state_directory: Some("/var/lib/other".into()), ..host() };
    let data = |text: &str| resolve(toml::from_str(text).unwrap(), &host).unwrap().data;
    assert_eq!(data(""), PathBuf::from("/var/lib/other"));
    assert_eq!(data("data = '/media/card'"), PathBuf::from("/media/card"));
}

/// The keys of a section, as the complaint about one that is not known names them; nothing if
/// `header` begins no section.
fn keys(header: &str) -> Vec<String> {
    let complaint = match toml::from_str::<File>(&format!("{header}\nzzz = 1")) {
        Ok(file) => resolve(file, &host()).unwrap_err().to_string(),
        Err(error) => error.message().to_owned(),
    };
    if let Some((_, known)) = complaint.split_once("no such key; there are ") {
        return known.split(", ").map(str::to_owned).collect();
    }
    let known = complaint.split_once("unknown field `zzz`, expected ");
    let known = known.map_or("", |(_, known)| known);
    known.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_sample_shows_every_key() {
    // Keys in comments count as shown.
    let mut section = String::new();
    let mut shown = Vec::new();
    for line in SAMPLE.lines() {
        let line = line.strip_prefix('#').map_or(line, |comment| comment.trim_start_matches(' '));
        if line.starts_with('[') {
            section = line.split_whitespace().next().unwrap().to_owned();
            if let Some((of, list)) = section.trim_matches(['[', ']']).split_once('.') {
                shown.push((format!("[{of}]"), list.to_owned()));
            }
        } else if let Some((key, _)) = line.split_once(" = ") {
            shown.push((section.clone(), key.to_owned()));
        }
    }
    let mut sections = Vec::new();
    let mut missing = Vec::new();
    for name in keys("") {
        let headers = [format!("[{name}]"), format!("[[{name}]]")];
        let Some(header) = headers.into_iter().find(|header| !keys(header).is_empty()) else {
            missing.push((String::new(), name));
            continue;
        };
        missing.extend(keys(&header).into_iter().map(|key| (header.clone(), key)));
        sections.push(header);
    }
    missing.retain(|key| !shown.contains(key));
    assert!(missing.is_empty(), "not in the sample: {missing:?}");
    for section in ["[network]", "[store]", "[access]"] {
        assert!(sections.contains(&section.to_owned()), "{section} was not looked at");
    }
    #[cfg(feature = "http")]
    assert!(sections.contains(&"[http]".to_owned()));
    #[cfg(feature = "ros2")]
    assert!(sections.contains(&"[ros2]".to_owned()));
    #[cfg(feature = "serial")]
    assert!(sections.contains(&"[[serial]]".to_owned()));
}

#[test]
fn complaints_name_their_key() {
    for (text, key) in [
        ("robot = 'a b'", "robot"),
        ("robot = '.'", "robot"),
        ("robot = '..'", "robot"),
        ("prefix = 'a//b'", "prefix"),
        ("data = ''", "data"),
        ("log = 'loud'", "log: \"loud\" is no level"),
        ("[store]\ndurability = 'maybe'", "store.durability"),
        ("[store]\nsegment_bytes = 1", "store.segment_bytes"),
        ("[flash]\nmax_bytes = 4000", "flash.max_bytes"),
        ("[flash]\nbytes_per_day = 1", "flash.bytes_per_day"),
        ("[flash]\nreserve_bytes = 1", "flash.reserve_bytes"),
        ("[flash]\ncard_bytes = 1", "flash.card_bytes"),
        ("[flash]\ncard_write_cycles = 0", "flash.card_write_cycles"),
        ("[flash]\ncard_write_factor = 0", "flash.card_write_factor"),
        ("[clock]\nsource = 'sundial'", "clock.source"),
        ("[clock]\nsynchronised_file = 'synced'", "clock.synchronised_file"),
        ("[limits]\nmax_depth = 113", "limits.max_depth"),
        ("[forgetting]\nsession_after_h = 0.0", "forgetting.session_after_h"),
        ("[forgetting]\nlongterm_after_h = nan", "forgetting.longterm_after_h"),
        ("[forgetting]\narchive_below = 0.6", "forgetting.archive_below"),
        ("[forgetting]\nmerge_similarity = 1.5", "forgetting.merge_similarity"),
        ("[forgetting]\nmerge_radius_m = -1.0", "forgetting.merge_radius_m"),
        ("[forgetting]\nsweep_interval_s = 0", "forgetting.sweep_interval_s"),
        ("[forgetting]\nexpire_after_s = 0", "forgetting.expire_after_s"),
        ("[network]\nlisten = ['garbage']", "network.listen"),
        ("[network]\nconnect = ['tcp/127.0.0.1:99999']", "network.connect"),
        ("[network]\nlisten = ['foo/1.2.3.4:1']", "network.listen"),
        ("[network]\nmode = 'client'\nconnect = []", "network.connect"),
    ] {
        let file: File = toml::from_str(text).unwrap();
        let message = resolve(file, &host()).unwrap_err().to_string();
        assert!(message.starts_with(key), "{message}");
    }
    let unknown = toml::from_str::<File>("[store]\nsegmentbytes = 1").unwrap_err();
    assert!(unknown.to_string().contains("segmentbytes"));
}

#[cfg(feature = "ros2")]
#[test]
fn questions_are_asked_in_the_frame_that_rules_keep_places_in() {
    let frame = |text: &str| {
        let file: File = toml::from_str(text).unwrap();
        resolve(file, &host()).unwrap().settings.fixed_frame
    };
    assert_eq!(frame(""), "map");
    assert_eq!(frame("[ros2]"), "map");
    assert_eq!(frame("[ros2]\nfixed_frame = 'odom'"), "odom");
    assert_eq!(frame("[ros2]\nenabled = false\nfixed_frame = 'odom'"), "map");
}

#[test]
fn a_named_endpoint_is_the_only_one() {
    let file: File = toml::from_str("[network]\nlisten = ['tcp/10.0.0.1:7448']").unwrap();
    let config = resolve(file, &host()).unwrap();
    assert_eq!(config.network.listen, Some(vec!["tcp/10.0.0.1:7448".to_owned()]));
    assert_eq!(config.network.connect, None);
    assert_eq!(config.robot, "rover7");
    assert_eq!(config.data, PathBuf::from("/home/r/.local/state/omird"));
}
