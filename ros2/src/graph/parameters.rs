//! The parameter services that rcl gives every node, so that tools that ask each node get an answer
//! (`ros2 param list` waits for all of them). Parameters can be read and not changed.
//!
//! What the services answer is that of rclpy's `ParameterService`; how prefixes and depth are meant stands
//! in `rcl_interfaces/srv/ListParameters`.

use std::sync::Arc;

use super::error::NodeError;
use super::node::Node;
use super::service::{Request, Server};
use crate::message::{Message, PathError, Value};

/// `PARAMETER_NOT_SET` and `PARAMETER_BOOL` of `rcl_interfaces/msg/ParameterType`.
const NOT_SET: u64 = 0;
const BOOL: u64 = 1;
/// Names or parameters in one request that are answered; the rest is left out.
const MOST: usize = 1000;

/// A parameter of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name; parts have dots between.
    pub name: String,
    /// Its kind.
    pub value: bool,
    /// Its meaning, and the place where it can be changed.
    pub description: String,
}

/// The parameter services of a node. Dropping it takes them out of the graph.
#[derive(Debug)]
pub struct ParameterServices {
    _servers: Vec<Server>,
}

type Responder = fn(&[Parameter], &Message, &mut Message) -> Result<(), PathError>;

const SERVICES: [(&str, &str, Responder); 6] = [
    ("describe_parameters", "DescribeParameters", describe),
    ("get_parameter_types", "GetParameterTypes", types),
    ("get_parameters", "GetParameters", get),
    ("list_parameters", "ListParameters", list),
    ("set_parameters", "SetParameters", set),
    ("set_parameters_atomically", "SetParametersAtomically", set_atomically),
];

impl Node {
    /// Offers `~/get_parameters` and the other five.
    ///
    /// # Errors
    /// A type of them is not known, or Zenoh refused a declaration.
    pub fn serve_parameters(
        &self,
        parameters: Vec<Parameter>,
    ) -> Result<ParameterServices, NodeError> {
        let parameters: Arc<[Parameter]> = parameters.into();
        let mut servers = Vec::with_capacity(SERVICES.len());
        for (name, ty, answer) in SERVICES {
            let ty = {
                let types = self.types().read();
                types.service(&format!("rcl_interfaces/srv/{ty}"))
            };
            let ty = ty.map_err(|error| NodeError::Interface(error.to_string()))?;
            let parameters = parameters.clone();
            servers.push(self.serve(&format!("~/{name}"), &ty, move |request: Request| {
                let mut response = request.response();
                let answered = answer(&parameters, request.message(), &mut response)
                    .map_err(|error| error.to_string())
                    .and_then(|()| request.answer(&response).map_err(|error| error.to_string()));
                if let Err(error) = answered {
                    tracing::warn!("a question for parameters was not answered: {error}");
                }
            })?);
        }
        Ok(ParameterServices { _servers: servers })
    }
}

fn names(request: &Message) -> impl Iterator<Item = &str> {
    let names = request.list("names").unwrap_or_default();
    names.iter().filter_map(Value::as_text).take(MOST)
}

fn find<'a>(parameters: &'a [Parameter], name: &str) -> Option<&'a Parameter> {
    parameters.iter().find(|parameter| parameter.name == name)
}

fn texts(names: impl IntoIterator<Item = impl Into<String>>) -> Value {
    Value::List(names.into_iter().map(|name| Value::Text(name.into())).collect())
}

/// A list of the response, with an element that `fill` makes of each of these.
fn list_of<T>(
    response: &mut Message,
    field: &str,
    items: impl Iterator<Item = T>,
    mut fill: impl FnMut(&mut Message, T) -> Result<(), PathError>,
) -> Result<(), PathError> {
    let mut all = Vec::new();
    for item in items {
        let mut one = response.element(field)?;
        fill(&mut one, item)?;
        all.push(Value::Message(one));
    }
    response.set(field, Value::List(all))
}

fn describe(
    parameters: &[Parameter],
    request: &Message,
    response: &mut Message,
) -> Result<(), PathError> {
    list_of(response, "descriptors", names(request), |one, name| {
        one.set("name", name.to_owned())?;
        if let Some(parameter) = find(parameters, name) {
            one.set("type", BOOL)?;
            one.set("description", parameter.description.clone())?;
            one.set("read_only", true)?;
        }
        Ok(())
    })
}

fn types(
    parameters: &[Parameter],
    request: &Message,
    response: &mut Message,
) -> Result<(), PathError> {
    let of = |name| if find(parameters, name).is_some() { BOOL } else { NOT_SET } as u8;
    response.set("types", Value::Bytes(names(request).map(of).collect()))
}

fn get(
    parameters: &[Parameter],
    request: &Message,
    response: &mut Message,
) -> Result<(), PathError> {
    list_of(response, "values", names(request), |one, name| {
        if let Some(parameter) = find(parameters, name) {
            one.set("type", BOOL)?;
            one.set("bool_value", parameter.value)?;
        }
        Ok(())
    })
}

fn list(
    parameters: &[Parameter],
    request: &Message,
    response: &mut Message,
) -> Result<(), PathError> {
    let depth = request.u64("depth").unwrap_or_default();
    let prefixes = request.list("prefixes").unwrap_or_default();
    let prefixes: Vec<&str> = prefixes.iter().filter_map(Value::as_text).take(MOST).collect();
    let found: Vec<&str> = parameters
        .iter()
        .map(|parameter| parameter.name.as_str())
        .filter(|name| is_listed(name, &prefixes, depth))
        .collect();
    let mut above: Vec<&str> =
        found.iter().filter_map(|name| Some(name.rsplit_once('.')?.0)).collect();
    above.dedup();
    response.set("result.names", texts(found))?;
    response.set("result.prefixes", texts(above))
}

/// Returns true if a parameter is one of those below the prefixes, and no deeper than `depth` parts; 0 is any.
fn is_listed(name: &str, prefixes: &[&str], depth: u64) -> bool {
    let is_near = |below: &str| depth == 0 || (below.matches('.').count() as u64) < depth;
    if prefixes.is_empty() {
        return is_near(name);
    }
    prefixes.iter().any(|prefix| {
        name.strip_prefix(prefix)
            .is_some_and(|below| below.is_empty() || below.starts_with('.') && is_near(&below[1..]))
    })
}

/// Returns the reason why a parameter cannot be set; `None` if it has the wanted value already.
fn refused(parameters: &[Parameter], asked: &Message) -> Option<String> {
    let name = asked.text("name").unwrap_or_default();
    match find(parameters, name) {
        Some(parameter)
            if asked.u64("value.type") == Some(BOOL)
                && asked.bool("value.bool_value") == Some(parameter.value) =>
        {
            None
        }
        Some(parameter) => Some(format!("cannot be changed here: {}", parameter.description)),
        None => Some("this node has no such parameter".to_owned()),
    }
}

fn set(
    parameters: &[Parameter],
    request: &Message,
    response: &mut Message,
) -> Result<(), PathError> {
    list_of(response, "results", asked(request), |one, asked| {
        let refused = refused(parameters, asked);
        one.set("successful", refused.is_none())?;
        one.set("reason", refused.unwrap_or_default())
    })
}

fn set_atomically(
    parameters: &[Parameter],
    request: &Message,
    response: &mut Message,
) -> Result<(), PathError> {
    let refused = asked(request).find_map(|asked| refused(parameters, asked));
    response.set("result.successful", refused.is_none())?;
    response.set("result.reason", refused.unwrap_or_default())
}

fn asked(request: &Message) -> impl Iterator<Item = &Message> {
    let parameters = request.list("parameters").unwrap_or_default();
    parameters.iter().filter_map(Value::as_message).take(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::Registry;

    fn parameters() -> Vec<Parameter> {
        ["use_sim_time", "qos.depth", "qos.tf.depth"]
            .map(|name| Parameter {
                name: name.to_owned(),
                value: name == "use_sim_time",
                description: "stands in the file".to_owned(),
            })
            .into()
    }

    /// The response to a request that `fill` makes.
    fn ask(service: &str, fill: impl FnOnce(&mut Message)) -> Message {
        let (_, ty, answer) = SERVICES.into_iter().find(|(name, ..)| *name == service).unwrap();
        let ty = Registry::standard().service(&format!("rcl_interfaces/srv/{ty}")).unwrap();
        let (mut request, mut response) = (Message::new(&ty.request), Message::new(&ty.response));
        fill(&mut request);
        answer(&parameters(), &request, &mut response).unwrap();
        // A response that cannot be sent would be none.
        assert_eq!(Message::decode(&ty.response, &response.encode()), Ok(response.clone()));
        response
    }

    fn named(service: &str, all: &[&str]) -> Message {
        ask(service, |request| request.set("names", texts(all.iter().copied())).unwrap())
    }

    #[test]
    fn what_is_there_is_read_and_what_is_not_is_not_set() {
        let values = named("get_parameters", &["use_sim_time", "nothing"]);
        let of = |n: usize, field: &str| values.u64(&format!("values[{n}].{field}"));
        assert_eq!(
            (of(0, "type"), of(1, "type"), of(2, "type")),
            (Some(BOOL), Some(NOT_SET), None)
        );
        assert_eq!(values.bool("values[0].bool_value"), Some(true));
        let types = named("get_parameter_types", &["nothing", "qos.depth"]);
        assert_eq!(types.bytes("types"), Some(&[0, 1][..]));
        let described = named("describe_parameters", &["use_sim_time", "nothing"]);
        assert_eq!(described.text("descriptors[0].description"), Some("stands in the file"));
        assert_eq!(described.bool("descriptors[0].read_only"), Some(true));
        assert_eq!(described.text("descriptors[1].name"), Some("nothing"));
    }

    #[test]
    fn a_request_with_a_million_names_is_answered_in_part() {
        let many = vec!["x"; 2 * MOST];
        assert_eq!(named("get_parameters", &many).list("values").unwrap().len(), MOST);
    }

    #[test]
    fn prefixes_and_depth_narrow_the_list() {
        let listed = |prefixes: &[&str], depth: u64| {
            let response = ask("list_parameters", |request| {
                request.set("prefixes", texts(prefixes.iter().copied())).unwrap();
                request.set("depth", depth).unwrap();
            });
            let texts = |path: &str| {
                let list = response.list(path).unwrap().iter();
                list.map(|text| text.as_text().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
            };
            (texts("result.names"), texts("result.prefixes"))
        };
        let pair = |names: &str, prefixes: &str| (names.to_owned(), prefixes.to_owned());
        assert_eq!(listed(&[], 0), pair("use_sim_time qos.depth qos.tf.depth", "qos qos.tf"));
        assert_eq!(listed(&[], 1), pair("use_sim_time", ""));
        assert_eq!(listed(&["qos"], 1), pair("qos.depth", "qos"));
        assert_eq!(listed(&["use_sim_time", "q"], 0), pair("use_sim_time", ""));
    }

    #[test]
    fn what_is_set_stays_as_it_is_and_says_why() {
        let set = |service: &str, name: &str, value: bool| {
            ask(service, |request| {
                let mut one = request.element("parameters").unwrap();
                one.set("name", name).unwrap();
                one.set("value.type", BOOL).unwrap();
                one.set("value.bool_value", value).unwrap();
                request.set("parameters", Value::List(vec![Value::Message(one)])).unwrap();
            })
        };
        for (name, value, why) in [
            ("use_sim_time", true, ""),
            ("use_sim_time", false, "cannot be changed here: stands in the file"),
            ("nothing", true, "this node has no such parameter"),
        ] {
            let one = set("set_parameters", name, value);
            assert_eq!(one.bool("results[0].successful"), Some(why.is_empty()), "{name}");
            assert_eq!(one.text("results[0].reason"), Some(why), "{name}");
            let all = set("set_parameters_atomically", name, value);
            assert_eq!(all.bool("result.successful"), Some(why.is_empty()), "{name}");
            assert_eq!(all.text("result.reason"), Some(why), "{name}");
        }
    }
}
