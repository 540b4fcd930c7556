//! The rules of Zenoh where every way in needs a token (`access.require`): a token travels in the attachment of a query or
//! put, and Zenoh gives both to every program that has announced itself under their keys. So no other program may.
//!
//! A rule that denies covers only keys that it includes as a whole, and `omir/*/recall` is within no list of denials that
//! leaves other keys open. So everything is denied that is not allowed here.

use serde_json::{Value, json};

use super::keys::Keys;

/// Requests, and questions about who is alive.
const ASKING: [&str; 5] =
    ["query", "put", "delete", "liveliness_query", "declare_liveliness_subscriber"];
/// All of it, for a graph of ROS: each of its nodes asks and answers.
const MEETING: [&str; 9] = [
    "query",
    "reply",
    "put",
    "delete",
    "declare_subscriber",
    "declare_queryable",
    "liveliness_token",
    "liveliness_query",
    "declare_liveliness_subscriber",
];

/// Rules of Zenoh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Its section `access_control`.
    pub(super) control: Value,
    /// `scouting/gossip/target`: the peers that omird tells of others. Peers that hear of each other connect to each
    /// other, past these rules.
    pub(super) told: &'static str,
}

/// Returns the rules. Others may ask, subscribe to events and announcements, which carry references only, and meet in the graph of ROS of
/// domain `graph`, if there is one.
pub(crate) fn rules(keys: &Keys, graph: Option<u32>) -> Rules {
    let told = ["event/**", "compass/signal/**", "akashik/event/**"].map(|of| keys.operation(of));
    let heard: Vec<String> = told.iter().cloned().chain([keys.event_of_any()]).collect();
    let both = ["ingress", "egress"];
    let mut rules = vec![
        json!({"id": "asks", "permission": "allow", "flows": ["ingress"], "messages": ASKING,
               "key_exprs": ["**"]}),
        json!({"id": "hears of events", "permission": "allow", "flows": ["ingress"],
               "messages": ["declare_subscriber"], "key_exprs": heard}),
        json!({"id": "is told events", "permission": "allow", "flows": ["egress"], "messages": ["put"],
               "key_exprs": told}),
        // No queries: to a router Zenoh passes on what no subscriber has asked for.
        json!({"id": "is answered", "permission": "allow", "flows": ["egress"],
               "messages": ["reply", "declare_queryable", "declare_subscriber", "liveliness_token"],
               "key_exprs": ["**"]}),
    ];
    if let Some(domain) = graph {
        // `**` leaves out parts that begin with @, as those of late subscribers and of the graph itself do.
        let keys =
            [format!("{domain}/**"), format!("{domain}/**/@adv/**"), "@ros2_lv/**".to_owned()];
        rules.push(json!({"id": "meets in the graph", "permission": "allow", "flows": both,
                          "messages": MEETING, "key_exprs": keys}));
    }
    let ids: Vec<_> = rules.iter().map(|rule| rule["id"].clone()).collect();
    let control = json!({
        "enabled": true,
        "default_permission": "deny",
        "rules": rules,
        "subjects": [{"id": "everybody"}],
        "policies": [{"subjects": ["everybody"], "rules": ids}],
    });
    // Nodes of ROS find each other by what routers tell, and omird by what it tells its router.
    let told = if graph.is_some() { "{ peer: [\"router\"] }" } else { "{ peer: [] }" };
    Rules { control, told }
}
