//! Remapping rules as `ros2 run … --ros-args -r` takes them, and a node's names after them.
//!
//! Rules: <https://design.ros2.org/articles/static_remapping.html>. The wildcards that the article
//! plans (`*`, `**`, `\1`) exist in no rcl and not here.

use std::str::FromStr;

use super::name::{self, NameError, NameFault};

/// One rule `from:=to`.
///
/// `from` is a topic or service name (relative, absolute or `~/…`), with `rostopic://` or
/// `rosservice://` before it for only one of the two; or `__ns`; or `__node` or `__name`. With
/// `some_node:` before it the rule holds for the node of that name alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    node: Option<String>,
    sort: Sort,
    from: String,
    to: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Node,
    Namespace,
    Topic,
    Service,
    Either,
}

impl FromStr for Rule {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let error = |fault| NameError::rule(text, fault);
        let inner = |inner: NameError| error(NameFault::Of(Box::new(inner)));
        let Some((left, to)) = text.split_once(":=") else {
            return Err(error(NameFault::NoArrow));
        };
        if left.is_empty() || to.is_empty() {
            return Err(error(NameFault::Halved));
        }
        let (scheme, left) = match left.split_once("://") {
            Some((scheme, rest)) => (Some(scheme), rest),
            None => (None, left),
        };
        // rcl allows the node before the scheme too: node:rostopic://from.
        let (node, left, scheme) = match scheme {
            Some(s) if s.contains(':') => {
                let (node, s) = s.split_once(':').unwrap_or((s, ""));
                (Some(node), left, Some(s))
            }
            scheme => match left.split_once(':') {
                Some((node, rest)) => (Some(node), rest, scheme),
                None => (None, left, scheme),
            },
        };
        if let Some(node) = node {
            name::check_node(node).map_err(inner)?;
        }
        let sort = match (scheme, left) {
            (None, "__node" | "__name") => Sort::Node,
            (None, "__ns") => Sort::Namespace,
            (None, _) => Sort::Either,
            (Some("rostopic"), _) => Sort::Topic,
            (Some("rosservice"), _) => Sort::Service,
            (Some(other), _) => return Err(error(NameFault::Scheme(other.to_owned()))),
        };
        let checked = match sort {
            Sort::Node => name::check_node(to),
            Sort::Namespace => name::check_namespace(to),
            // With any node's name in the place of `~`.
            _ => name::expand(left, "/", "n").and(name::expand(to, "/", "n")).map(drop),
        };
        checked.map_err(inner)?;
        Ok(Self { node: node.map(str::to_owned), sort, from: left.to_owned(), to: to.to_owned() })
    }
}

/// The names of one node: its own, and how the names it uses become those of the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    node: String,
    namespace: String,
    rules: Vec<Rule>,
}

impl Names {
    /// The node `node` in `namespace` as the rules rename it. The first rule that fits wins.
    ///
    /// # Errors
    /// The name or the namespace is none that ROS allows.
    pub fn new(node: &str, namespace: &str, rules: Vec<Rule>) -> Result<Self, NameError> {
        name::check_node(node)?;
        name::check_namespace(namespace)?;
        let find = |sort: Sort, or: &str| {
            rules
                .iter()
                .find(|r| r.sort == sort && r.node.as_deref().is_none_or(|n| n == node))
                .map_or_else(|| or.to_owned(), |r| r.to.clone())
        };
        let (node, namespace) = (find(Sort::Node, node), find(Sort::Namespace, namespace));
        Ok(Self { node, namespace, rules })
    }

    /// The node's name.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// The node's namespace, `/` or `/like/this`.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// `/namespace/node`.
    #[must_use]
    pub fn full(&self) -> String {
        format!("{}/{}", self.namespace.trim_end_matches('/'), self.node)
    }

    /// The topic of the graph that `name` means to this node.
    ///
    /// # Errors
    /// The name is none that ROS allows.
    pub fn topic(&self, name: &str) -> Result<String, NameError> {
        self.resolve(name, Sort::Topic)
    }

    /// The service (or action) of the graph that `name` means to this node.
    ///
    /// # Errors
    /// The name is none that ROS allows.
    pub fn service(&self, name: &str) -> Result<String, NameError> {
        self.resolve(name, Sort::Service)
    }

    fn resolve(&self, name: &str, sort: Sort) -> Result<String, NameError> {
        let full = self.expand(name)?;
        for rule in &self.rules {
            if (rule.sort == sort || rule.sort == Sort::Either)
                && rule.node.as_ref().is_none_or(|n| *n == self.node)
                && self.expand(&rule.from)? == full
            {
                return self.expand(&rule.to);
            }
        }
        Ok(full)
    }

    fn expand(&self, name: &str) -> Result<String, NameError> {
        name::expand(name, &self.namespace, &self.node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(rules: &[&str]) -> Names {
        let rules = rules.iter().map(|r| r.parse().unwrap()).collect();
        Names::new("omird", "/robot1", rules).unwrap()
    }

    fn refused(rule: &str) -> String {
        rule.parse::<Rule>().unwrap_err().to_string()
    }

    #[test]
    fn without_rules_names_are_expanded_only() {
        let n = names(&[]);
        assert_eq!(
            (n.node(), n.namespace(), n.full().as_str()),
            ("omird", "/robot1", "/robot1/omird")
        );
        assert_eq!(n.topic("odom").unwrap(), "/robot1/odom");
        assert_eq!(n.service("~/recall").unwrap(), "/robot1/omird/recall");
        assert_eq!(Names::new("n", "/", vec![]).unwrap().full(), "/n");
    }

    #[test]
    fn the_node_and_its_namespace_are_renamed_before_names_are_expanded() {
        let n = names(&["__node:=memory", "__ns:=/r2", "other:__ns:=/r3", "__name:=late"]);
        assert_eq!(n.full(), "/r2/memory");
        assert_eq!(n.service("~/recall").unwrap(), "/r2/memory/recall");
        assert_eq!(names(&["omird:__node:=memory"]).node(), "memory");
        assert_eq!(names(&["other:__node:=memory"]).node(), "omird");
    }

    #[test]
    fn a_rule_fits_by_the_absolute_name_and_the_first_one_wins() {
        let n = names(&["odom:=/wheel/odom", "/robot1/odom:=/never", "~/recall:=ask", "/tf:=tf"]);
        assert_eq!(n.topic("odom").unwrap(), "/wheel/odom");
        assert_eq!(n.topic("/robot1/odom").unwrap(), "/wheel/odom");
        assert_eq!(n.topic("/odom").unwrap(), "/odom");
        assert_eq!(n.service("~/recall").unwrap(), "/robot1/ask");
        assert_eq!(n.topic("/tf").unwrap(), "/robot1/tf");
        // A name that came out of a rule is not renamed again.
        assert_eq!(names(&["a:=b", "b:=c"]).topic("a").unwrap(), "/robot1/b");
    }

    #[test]
    fn a_rule_can_be_for_topics_or_services_or_one_node_alone() {
        let n = names(&["rostopic://x:=t", "rosservice://x:=s", "omird:y:=mine", "other:z:=not"]);
        assert_eq!(n.topic("x").unwrap(), "/robot1/t");
        assert_eq!(n.service("x").unwrap(), "/robot1/s");
        assert_eq!(n.topic("y").unwrap(), "/robot1/mine");
        assert_eq!(n.topic("z").unwrap(), "/robot1/z");
        let n = names(&["other:rostopic://x:=t", "omird:rosservice://x:=s"]);
        assert_eq!(
            (n.topic("x").unwrap(), n.service("x").unwrap()),
            ("/robot1/x".into(), "/robot1/s".into())
        );
    }

    #[test]
    fn a_rule_that_is_none_says_why() {
        assert!(refused("odom=/x").contains("no `:=`"));
        assert!(refused(":=/x").contains("nothing on one side"));
        assert!(refused("__ns:=robot").contains("does not begin with `/`"));
        assert!(refused("__node:=a/b").contains("node name"));
        assert!(refused("a:=1b").contains("begins with a digit"));
        assert!(refused("rosparam://a:=b").contains("neither rostopic"));
        assert!(refused("7up:a:=b").contains("begins with a digit"));
        assert!(Names::new("a b", "/", vec![]).is_err());
        assert!(Names::new("ab", "x", vec![]).is_err());
    }
}
