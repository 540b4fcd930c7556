//! Type descriptions: asking a node what a type of its is, and telling others what ours are.
//!
//! The service `~/get_type_description` of REP-2016, which rcl gives every node since Jazzy.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hiroz_schema::{
    FieldDescription, FieldTypeDescription, TypeDescription, TypeDescriptionMsg, TypeHash,
    calculate_hash,
};
use parking_lot::RwLock;

use super::client::CallError;
use super::error::NodeError;
use super::node::Node;
use super::service::Server;
use super::token::{Entity, EntityKind};
use crate::interface::{InterfaceError, MessageType, Registry, TypeName};
use crate::message::{Message, PathError, Value};

/// The service's type.
const SERVICE: &str = "type_description_interfaces/srv/GetTypeDescription";
/// Descriptions that refer to more types are refused.
const MOST_TYPES: usize = 1000;
/// Bytes that a description may take, roughly; the largest of the common packages take some kilobytes.
const MOST_DESCRIPTION: usize = 1 << 20;

/// A topic whose type is not known.
#[derive(Debug, Clone, PartialEq)]
pub enum DescribeError {
    /// No node publishes the topic.
    Unpublished(String),
    /// The publisher's token names no type that could be asked for.
    Name(String),
    /// The publishers do not agree on the type.
    Several(String),
    /// The publisher could not be asked.
    Asking(NodeError),
    /// The publisher's node gave no description.
    Call {
        /// The node.
        node: String,
        /// The reason.
        why: CallError,
    },
    /// The publisher's node says that it has none.
    Refused {
        /// The node.
        node: String,
        /// In its words.
        why: String,
    },
    /// The description is not that of the hash that was announced.
    Hash {
        /// The type.
        name: String,
        /// Contents of the token.
        announced: String,
        /// Result of the description.
        described: String,
    },
    /// The description is none of a type.
    Malformed(String),
}

impl fmt::Display for DescribeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unpublished(topic) => write!(f, "nobody publishes {topic}"),
            Self::Name(why) => f.write_str(why),
            Self::Several(topic) => {
                write!(f, "the publishers of {topic} do not agree on its type: name it")
            }
            Self::Asking(error) => error.fmt(f),
            Self::Call { node, why } => {
                write!(
                    f,
                    "{node} does not describe its types: {why}; give the definition as a file"
                )
            }
            Self::Refused { node, why } => write!(f, "{node} has no description: {why}"),
            Self::Hash { name, announced, described } => write!(
                f,
                "the description of {name} has the hash {described}, announced was {announced}"
            ),
            Self::Malformed(why) => write!(f, "a description that is none: {why}"),
        }
    }
}

impl std::error::Error for DescribeError {}

impl Node {
    /// The type of a topic that a node publishes.
    ///
    /// A type that is known with the announced hash is taken as it is. Otherwise the publisher's node
    /// is asked; what it answers must have the announced hash, and is added to the node's types. A
    /// type that is known under the same name with another hash stays as it is, and the described one
    /// is returned for this topic alone. With Humble there is no hash and no service to ask.
    ///
    /// Waits for the answer: not to be called on a thread of Zenoh.
    ///
    /// # Errors
    /// Says why the type cannot be had.
    pub fn type_of_topic(
        &self,
        topic: &str,
        timeout: Duration,
    ) -> Result<Arc<MessageType>, DescribeError> {
        let topic = self.names().topic(topic).map_err(|e| DescribeError::Asking(e.into()))?;
        let publishers = self.graph().at(&topic, EntityKind::Publisher);
        let typed = |e: &Entity| e.endpoint.as_ref().map(|e| (e.dds_type.clone(), e.hash.clone()));
        let Some(publisher) = publishers.first() else {
            return Err(DescribeError::Unpublished(topic));
        };
        if publishers.iter().any(|e| typed(e) != typed(publisher)) {
            return Err(DescribeError::Several(topic));
        }
        self.type_of_publisher(publisher, timeout)
    }

    /// The same of one publisher, where others of that topic may have another type.
    ///
    /// # Errors
    /// As [`Node::type_of_topic`].
    pub fn type_of_publisher(
        &self,
        publisher: &Entity,
        timeout: Duration,
    ) -> Result<Arc<MessageType>, DescribeError> {
        let Some(endpoint) = &publisher.endpoint else {
            return Err(DescribeError::Unpublished(publisher.node_name()));
        };
        let name: TypeName = endpoint
            .dds_type
            .parse()
            .map_err(|e: InterfaceError| DescribeError::Name(e.to_string()))?;
        let known = read(self.types()).message(&name.to_string());
        if let Ok(ty) = known
            && self.distribution().hash(&ty.hash.to_rihs_string()) == endpoint.hash
        {
            return Ok(ty);
        }
        self.ask(&publisher.node_name(), &name, &endpoint.hash, timeout)
    }

    fn ask(
        &self,
        node: &str,
        name: &TypeName,
        announced: &str,
        timeout: Duration,
    ) -> Result<Arc<MessageType>, DescribeError> {
        let asking = |why: String| DescribeError::Asking(NodeError::Interface(why));
        let service = read(self.types()).service(SERVICE).map_err(|e| asking(e.to_string()))?;
        let client = self
            .client(&format!("{node}/get_type_description"), &service)
            .map_err(DescribeError::Asking)?;
        let mut request = client.request();
        request
            .set("type_name", name.to_string())
            .and_then(|()| request.set("type_hash", announced.to_owned()))
            .and_then(|()| request.set("include_type_sources", false))
            .map_err(|e| asking(e.to_string()))?;
        let response = client
            .call(&request, timeout)
            .map_err(|why| DescribeError::Call { node: node.into(), why })?;
        if response.bool("successful") != Some(true) {
            let why = response.text("failure_reason").unwrap_or_default().to_owned();
            return Err(DescribeError::Refused { node: node.into(), why });
        }
        let described =
            response.message("type_description").and_then(description).ok_or_else(|| {
                DescribeError::Malformed("it is not complete, or larger than any type is".into())
            })?;
        let hash = calculate_hash(&described).to_rihs_string();
        if described.type_description.type_name != name.to_string() || hash != announced {
            return Err(DescribeError::Hash {
                name: name.to_string(),
                announced: announced.into(),
                described: hash,
            });
        }
        match read(self.types()).described(&described) {
            Err(InterfaceError::Conflict { .. }) => crate::interface::message_type(&described),
            ty => ty,
        }
        .map_err(|e| DescribeError::Malformed(e.to_string()))
    }
}

/// Offers `~/get_type_description` for all types that the node knows.
pub(super) fn serve(node: &Node) -> Result<Server, NodeError> {
    let service =
        read(node.types()).service(SERVICE).map_err(|e| NodeError::Interface(e.to_string()))?;
    let types = Arc::clone(node.types());
    node.serve("~/get_type_description", &service, move |request| {
        let mut response = request.response();
        let asked = |field| request.message().text(field).unwrap_or_default();
        let filled = match find(&types, asked("type_name"), asked("type_hash")) {
            Ok(described) => {
                response.set("successful", true).and_then(|()| fill(&mut response, &described))
            }
            Err(why) => response.set("failure_reason", why.to_string()),
        };
        let answered = filled
            .map_err(|e| e.to_string())
            .and_then(|()| request.answer(&response).map_err(|e| e.to_string()));
        if let Err(error) = answered {
            tracing::warn!("a type could not be described: {error}");
        }
    })
}

/// A type that this node cannot describe.
enum NotDescribed {
    Interface(InterfaceError),
    /// The node has the type with another hash.
    Hash {
        name: String,
        ours: String,
        wanted: String,
    },
}

impl fmt::Display for NotDescribed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interface(error) => error.fmt(f),
            Self::Hash { name, ours, wanted } => {
                write!(f, "{name} has the hash {ours} here, not {wanted}")
            }
        }
    }
}

fn find(
    types: &RwLock<Registry>,
    name: &str,
    hash: &str,
) -> Result<TypeDescriptionMsg, NotDescribed> {
    let ty = read(types).message(name).map_err(NotDescribed::Interface)?;
    if hash.is_empty() || TypeHash::from_rihs_string(hash).is_ok_and(|hash| hash == ty.hash) {
        return Ok(ty.description());
    }
    let ours = ty.hash.to_rihs_string();
    Err(NotDescribed::Hash { name: name.to_owned(), ours, wanted: hash.to_owned() })
}

fn read(types: &RwLock<Registry>) -> parking_lot::RwLockReadGuard<'_, Registry> {
    types.read()
}

/// Reads a `type_description_interfaces/msg/TypeDescription`.
fn description(message: &Message) -> Option<TypeDescriptionMsg> {
    let referenced = message.list("referenced_type_descriptions")?;
    if referenced.len() > MOST_TYPES {
        return None;
    }
    let described = TypeDescriptionMsg {
        type_description: individual(message.message("type_description")?)?,
        referenced_type_descriptions: referenced
            .iter()
            .map(|one| individual(one.as_message()?))
            .collect::<Option<_>>()?,
    };
    (size(&described) <= MOST_DESCRIPTION).then_some(described)
}

/// Size of a description in memory, roughly.
fn size(described: &TypeDescriptionMsg) -> usize {
    let of_field = |field: &FieldDescription| {
        let texts = [&field.name, &field.field_type.nested_type_name, &field.default_value];
        texts.iter().fold(64, |all, text| all + text.len())
    };
    let of = |one: &TypeDescription| {
        one.type_name.len() + one.fields.iter().map(of_field).sum::<usize>()
    };
    of(&described.type_description)
        + described.referenced_type_descriptions.iter().map(of).sum::<usize>()
}

fn individual(message: &Message) -> Option<TypeDescription> {
    let field = |field: &Value| {
        let field = field.as_message()?;
        let number = |path| field.u64(path);
        Some(FieldDescription {
            name: field.text("name")?.to_owned(),
            field_type: FieldTypeDescription {
                type_id: u8::try_from(number("type.type_id")?).ok()?,
                capacity: number("type.capacity")?,
                string_capacity: number("type.string_capacity")?,
                nested_type_name: field.text("type.nested_type_name")?.to_owned(),
            },
            default_value: field.text("default_value")?.to_owned(),
        })
    };
    Some(TypeDescription {
        type_name: message.text("type_name")?.to_owned(),
        fields: message.list("fields")?.iter().map(field).collect::<Option<_>>()?,
    })
}

/// Writes the description into the response of the service.
fn fill(response: &mut Message, described: &TypeDescriptionMsg) -> Result<(), PathError> {
    let one = |of: &TypeDescription, mut into: Message| -> Result<Message, PathError> {
        into.set("type_name", of.type_name.clone())?;
        let mut fields = Vec::with_capacity(of.fields.len());
        for field in &of.fields {
            let mut message = into.element("fields")?;
            message.set("name", field.name.clone())?;
            message.set("type.type_id", u64::from(field.field_type.type_id))?;
            message.set("type.capacity", field.field_type.capacity)?;
            message.set("type.string_capacity", field.field_type.string_capacity)?;
            message.set("type.nested_type_name", field.field_type.nested_type_name.clone())?;
            message.set("default_value", field.default_value.clone())?;
            fields.push(Value::Message(message));
        }
        into.set("fields", Value::List(fields))?;
        Ok(into)
    };
    let path = "type_description.referenced_type_descriptions";
    let mut referenced = Vec::new();
    for other in &described.referenced_type_descriptions {
        referenced.push(Value::Message(one(other, response.element(path)?)?));
    }
    let main = one(&described.type_description, response.element(path)?)?;
    response.set("type_description.type_description", Value::Message(main))?;
    response.set(path, Value::List(referenced))
}
