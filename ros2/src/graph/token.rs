//! Entities of the ROS graph as liveliness tokens, and the keys their data goes over.
//!
//! `docs/design.md` of rmw_zenoh, "Topic and Service name mapping" and "Graph Cache":
//!
//! ```text
//! <domain>/<name>/<type>/<hash>
//! @ros2_lv/<domain>/<session>/<node id>/<entity id>/<kind>/<enclave>/<namespace>/<node>
//!                                                          [/<name>/<type>/<hash>/<qos>]
//! ```
//!
//! In tokens every `/` of a name is written `%`. `@ros2_lv` is a part that no wildcard of Zenoh
//! matches by accident.

use std::fmt;

use xxhash_rust::xxh3::xxh3_128;

use super::qos::{Qos, QosError};

/// The first part of every token.
const SPACE: &str = "@ros2_lv";

/// The key expression that all tokens of a domain match.
#[must_use]
pub fn all_tokens(domain: u32) -> String {
    format!("{SPACE}/{domain}/**")
}

/// The kind of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntityKind {
    /// `NN`.
    Node,
    /// `MP`: publishes messages.
    Publisher,
    /// `MS`: subscribes to messages.
    Subscription,
    /// `SS`: a service server.
    Server,
    /// `SC`: a service client.
    Client,
}

impl EntityKind {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Node, "NN"),
        (Self::Publisher, "MP"),
        (Self::Subscription, "MS"),
        (Self::Server, "SS"),
        (Self::Client, "SC"),
    ];

    fn code(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Returns true if data goes between the two.
    #[must_use]
    pub fn meets(self, other: Self) -> bool {
        use EntityKind::{Client, Publisher, Server, Subscription};
        matches!(
            (self, other),
            (Publisher, Subscription)
                | (Subscription, Publisher)
                | (Server, Client)
                | (Client, Server)
        )
    }
}

impl fmt::Display for EntityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Node => "node",
            Self::Publisher => "publisher",
            Self::Subscription => "subscription",
            Self::Server => "service server",
            Self::Client => "service client",
        })
    }
}

/// The 16 bytes by which ROS knows an entity: the XXH3 (128 bits, seed 0) of its token, the lower
/// half first, each half little-endian (`Entity::Entity` of `detail/liveliness_utils.cpp`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gid(pub [u8; 16]);

impl Gid {
    /// The id of the entity with this token.
    #[must_use]
    pub fn of_token(token: &str) -> Self {
        Self(xxh3_128(token.as_bytes()).to_le_bytes())
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Fields of every entity except nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The topic's or service's absolute name.
    pub name: String,
    /// The type's name as DDS has it: `std_msgs::msg::dds_::String_`.
    pub dds_type: String,
    /// `RIHS01_…`, or what the distribution has instead.
    pub hash: String,
    /// Quality of service.
    pub qos: Qos,
}

impl Endpoint {
    /// The key that this endpoint's data goes over.
    #[must_use]
    pub fn key(&self, domain: u32) -> String {
        format!("{domain}/{}/{}/{}", self.name.trim_matches('/'), self.dds_type, self.hash)
    }
}

/// A node, or something a node has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    /// `ROS_DOMAIN_ID`.
    pub domain: u32,
    /// The id of the Zenoh session, as Zenoh writes it.
    pub session: String,
    /// The number of the node in its session.
    pub node_id: String,
    /// The number of the entity in its session; a node's is its `node_id`.
    pub id: String,
    /// Its kind.
    pub kind: EntityKind,
    /// The SROS enclave; `/` without one.
    pub enclave: String,
    /// The node's namespace; `/` is the root.
    pub namespace: String,
    /// The node's name.
    pub node: String,
    /// For everything but a node.
    pub endpoint: Option<Endpoint>,
}

impl Entity {
    /// `/namespace/node`.
    #[must_use]
    pub fn node_name(&self) -> String {
        format!("{}/{}", self.namespace.trim_end_matches('/'), self.node)
    }

    /// The token that says that this entity is there.
    #[must_use]
    pub fn token(&self) -> String {
        let mut token = format!(
            "{SPACE}/{}/{}/{}/{}/{}/{}/{}/{}",
            self.domain,
            self.session,
            self.node_id,
            self.id,
            self.kind.code(),
            mangled(&self.enclave),
            mangled(&self.namespace),
            mangled(&self.node),
        );
        if let Some(e) = &self.endpoint {
            let parts =
                [mangled(&e.name), mangled(&e.dds_type), mangled(&e.hash), e.qos.to_string()];
            for part in parts {
                token.push('/');
                token.push_str(&part);
            }
        }
        token
    }

    /// Reads a token.
    ///
    /// # Errors
    /// Says which part is wrong.
    pub fn parse(token: &str) -> Result<Self, TokenError> {
        let error = |why: String| TokenError { token: token.to_owned(), why };
        let parts: Vec<&str> = token.split('/').collect();
        let node_only = match parts.len() {
            9 => true,
            13 => false,
            n => return Err(error(format!("has {n} parts; a node's has 9, others have 13"))),
        };
        if let Some(at) = parts.iter().position(|part| part.is_empty()) {
            return Err(error(format!("part {} is empty", at + 1)));
        }
        if parts[0] != SPACE {
            return Err(error(format!("does not begin with {SPACE}")));
        }
        let domain = parts[1]
            .parse()
            .map_err(|_| error(format!("{:?} is no number of a domain", parts[1])))?;
        let kind = EntityKind::ALL
            .iter()
            .find(|(_, code)| *code == parts[5])
            .map(|(kind, _)| *kind)
            .ok_or_else(|| error(format!("{:?} is none of NN, MP, MS, SS and SC", parts[5])))?;
        if (kind == EntityKind::Node) != node_only {
            return Err(error(format!("a {kind} does not have {} parts", parts.len())));
        }
        let endpoint = if node_only {
            None
        } else {
            Some(Endpoint {
                name: demangled(parts[9]),
                dds_type: demangled(parts[10]),
                hash: demangled(parts[11]),
                qos: parts[12].parse().map_err(|why: QosError| error(why.to_string()))?,
            })
        };
        Ok(Self {
            domain,
            session: parts[2].to_owned(),
            node_id: parts[3].to_owned(),
            id: parts[4].to_owned(),
            kind,
            enclave: demangled(parts[6]),
            namespace: demangled(parts[7]),
            node: demangled(parts[8]),
            endpoint,
        })
    }
}

fn mangled(name: &str) -> String {
    name.replace('/', "%")
}

fn demangled(part: &str) -> String {
    part.replace('%', "/")
}

/// A key in the space of tokens that is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenError {
    token: String,
    why: String,
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the token {}: {}", self.token, self.why)
    }
}

impl std::error::Error for TokenError {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The examples of `docs/design.md` of rmw_zenoh.
    const NODE: &str = "@ros2_lv/2/aac3178e146ba6f1fc6e6a4085e77f21/0/0/NN/%/%/listener";
    const SUBSCRIPTION: &str = "@ros2_lv/2/aac3178e146ba6f1fc6e6a4085e77f21/0/10/MS/%/%/listener/%chatter/std_msgs::msg::dds_::String_/RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18/::,10:,:,:,,";
    const PUBLISHER: &str = "@ros2_lv/2/8b20917502ee955ac4476e0266340d5c/0/10/MP/%/%/talker/%chatter/std_msgs::msg::dds_::String_/RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18/::,7:,:,:,,";
    const SERVER: &str = "@ros2_lv/2/f9980ee0495eaafb3e38f0d19e2eae12/0/10/SS/%/%/add_two_ints_server/%add_two_ints/example_interfaces::srv::dds_::AddTwoInts_/RIHS01_e118de6bf5eeb66a2491b5bda11202e7b68f198d6f67922cf30364858239c81a/::,10:,:,:,,";
    const CLIENT: &str = "@ros2_lv/2/e1dc8d1b45ae8717fce78689cc655685/0/10/SC/%/%/add_two_ints_client/%add_two_ints/example_interfaces::srv::dds_::AddTwoInts_/RIHS01_e118de6bf5eeb66a2491b5bda11202e7b68f198d6f67922cf30364858239c81a/::,10:,:,:,,";

    #[test]
    fn the_tokens_of_rmw_zenohs_own_documentation() {
        let node = Entity::parse(NODE).unwrap();
        assert_eq!(node.node_name(), "/listener");
        assert_eq!((node.domain, node.kind, &node.endpoint), (2, EntityKind::Node, &None));
        let kinds = [
            (SUBSCRIPTION, EntityKind::Subscription),
            (PUBLISHER, EntityKind::Publisher),
            (SERVER, EntityKind::Server),
            (CLIENT, EntityKind::Client),
        ];
        for (token, kind) in kinds {
            let entity = Entity::parse(token).unwrap();
            assert_eq!(entity.kind, kind);
            assert_eq!(entity.token(), token);
        }
        assert_eq!(node.token(), NODE);
        let talker = Entity::parse(PUBLISHER).unwrap().endpoint.unwrap();
        assert_eq!(talker.name, "/chatter");
        assert_eq!(talker.qos, Qos::DEFAULT.keep_last(7));
    }

    #[test]
    fn the_keys_of_rmw_zenohs_own_documentation() {
        let mut talker = Entity::parse(PUBLISHER).unwrap().endpoint.unwrap();
        assert_eq!(
            talker.key(0),
            "0/chatter/std_msgs::msg::dds_::String_/RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"
        );
        talker.name = "/robot1/chatter".into();
        assert!(talker.key(0).starts_with("0/robot1/chatter/std_msgs::msg::dds_::String_/"));
        let server = Entity::parse(SERVER).unwrap().endpoint.unwrap();
        assert!(server.key(2).starts_with("2/add_two_ints/example_interfaces::srv::dds_::AddT"));
        assert_eq!(all_tokens(7), "@ros2_lv/7/**");
    }

    #[test]
    fn an_entity_in_a_namespace_is_read_back() {
        let mut entity = Entity::parse(SERVER).unwrap();
        entity.namespace = "/robot1/arm".into();
        entity.endpoint.as_mut().unwrap().name = "/robot1/arm/omird/recall".into();
        let token = entity.token();
        assert!(token.contains("/SS/%/%robot1%arm/add_two_ints_server/%robot1%arm%omird%recall/"));
        assert_eq!(Entity::parse(&token), Ok(entity));
    }

    #[test]
    fn what_is_no_token_is_refused_with_the_part_that_is_wrong() {
        let why = |token: &str| Entity::parse(token).unwrap_err().to_string();
        assert!(why("@ros2_lv/0/a/0/0/NN/%/%").contains("has 8 parts"));
        assert!(why(&NODE.replace("NN", "XX")).contains("\"XX\" is none of"));
        assert!(why(&NODE.replace("NN", "MP")).contains("a publisher does not have 9 parts"));
        assert!(why(&NODE.replace("lv/2", "lv/-2")).contains("\"-2\" is no number"));
        assert!(why(&NODE.replace("@ros2_lv", "@ros2")).contains("does not begin with"));
        assert!(why(&NODE.replace("/NN/%/", "/NN//")).contains("part 7 is empty"));
        assert!(why(&PUBLISHER.replace("::,7", ":,7")).contains("six fields"));
    }

    #[test]
    fn a_gid_is_the_xxh3_of_the_token() {
        // `xxhsum -H2` of xxHash 0.8 prints 99aa06d3014798d86001c324468d497f for no bytes at all:
        // the higher half first. rmw_zenoh stores the lower half first, little-endian.
        assert_eq!(Gid::of_token("").to_string(), "7f498d4624c30160d8984701d306aa99");
        assert_ne!(Gid::of_token(PUBLISHER), Gid::of_token(SUBSCRIPTION));
    }

    #[test]
    fn data_goes_between_two_kinds_only() {
        assert!(
            EntityKind::Publisher.meets(EntityKind::Subscription)
                && EntityKind::Client.meets(EntityKind::Server)
        );
        assert!(
            !EntityKind::Publisher.meets(EntityKind::Publisher)
                && !EntityKind::Server.meets(EntityKind::Publisher)
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "(@ros2_lv/)?([0-9]{1,3}/)?([A-Z%:,0-9/a-z]{0,8}){0,14}") {
            if let Ok(entity) = Entity::parse(&text) {
                prop_assert_eq!(Entity::parse(&entity.token()), Ok(entity));
            }
        }
    }
}
