//! The services and topics of an action, around [`Goals`].

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use super::goals::{GoalId, Goals, Status};
use crate::graph::error::NodeError;
use crate::graph::node::{Clock, Node, Shared};
use crate::graph::publisher::Publisher;
use crate::graph::qos::Qos;
use crate::graph::service::{Request, Server};
use crate::interface::{ActionType, MessageType};
use crate::message::{Message, PathError, Value};
use crate::stamp::Stamp;

/// Requests for the result of one goal that wait at most; more are refused, the oldest first: a client that gave up
/// does not say so.
const MOST_WAITING: usize = 100;

/// The work of an action.
pub trait GoalHandler: Send + Sync + 'static {
    /// Returns true if a goal is accepted; every goal is, unless this says otherwise.
    fn accepts(&self, _goal: &Message) -> bool {
        true
    }

    /// Works on a goal, on a thread of its own, until it ends. It looks at
    /// [`Goal::is_canceling`] often.
    fn execute(&self, goal: &Goal) -> Ending;
}

/// The end of a goal, with the message of the result.
#[derive(Debug, Clone)]
pub enum Ending {
    /// As it was wanted.
    Succeeded(Message),
    /// Because a client wanted it.
    Canceled(Message),
    /// It could not be reached.
    Aborted(Message),
}

/// Limits of an action server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActionConfig {
    /// Goals on the way at once; more are not accepted.
    pub at_once: usize,
    /// For how long a result can be asked for; rcl's default is 10 s.
    pub keep_results: Duration,
}

impl Default for ActionConfig {
    fn default() -> Self {
        Self { at_once: 1, keep_results: Duration::from_secs(10) }
    }
}

/// An action server. Dropping it takes it out of the graph, asks the goals on the way to end, and
/// waits for them.
pub struct ActionServer {
    /// First, that no goal comes in while those on the way end.
    services: Vec<Server>,
    action: Arc<Action>,
    name: String,
}

/// A goal that is worked on.
pub struct Goal {
    id: GoalId,
    message: Message,
    action: Arc<Action>,
}

struct Action {
    clock: Clock,
    result: Arc<MessageType>,
    feedback: Publisher,
    status: Publisher,
    handler: Box<dyn GoalHandler>,
    state: Mutex<State>,
}

struct State {
    goals: Goals,
    /// Callers that wait for the result of a goal that has not ended.
    waiting: HashMap<GoalId, VecDeque<Request>>,
    threads: Vec<JoinHandle<()>>,
    closing: bool,
}

impl Node {
    /// Offers the action `name`.
    ///
    /// The three services and two topics are those of the name after remapping; rcl remaps each of
    /// them by itself.
    ///
    /// # Errors
    /// The name is none that ROS allows, or Zenoh refused a declaration.
    pub fn action_server(
        &self,
        name: &str,
        ty: &ActionType,
        config: ActionConfig,
        handler: impl GoalHandler,
    ) -> Result<ActionServer, NodeError> {
        let name = self.names().service(name)?;
        let part = |part: &str| format!("{name}/_action/{part}");
        let missing = |e: crate::interface::InterfaceError| NodeError::Interface(e.to_string());
        let (cancel, status) = {
            let types = self.types().read();
            (
                types.service("action_msgs/srv/CancelGoal").map_err(missing)?,
                types.message("action_msgs/msg/GoalStatusArray").map_err(missing)?,
            )
        };
        let shared: &Arc<Shared> = &self.shared;
        let keep = i64::try_from(config.keep_results.as_nanos()).unwrap_or(i64::MAX);
        let action = Arc::new(Action {
            clock: Arc::clone(&shared.clock),
            result: Arc::clone(&ty.result),
            feedback: shared.publisher(part("feedback"), &ty.feedback_message, Qos::DEFAULT)?,
            status: shared.publisher(part("status"), &status, Qos::LATCHED)?,
            handler: Box::new(handler),
            state: Mutex::new(State {
                goals: Goals::new(config.at_once, keep),
                waiting: HashMap::new(),
                threads: Vec::new(),
                closing: false,
            }),
        });
        let serve = |name: &str, service, each: fn(&Arc<Action>, Request) -> Answered| {
            let (action, name) = (Arc::clone(&action), part(name));
            shared.serve(name.clone(), service, move |request| {
                if let Err(error) = each(&action, request) {
                    tracing::warn!("{name}: {error}");
                }
            })
        };
        let services = vec![
            serve("send_goal", &ty.send_goal, Action::send_goal)?,
            serve("cancel_goal", &cancel, Action::cancel_goal)?,
            serve("get_result", &ty.get_result, Action::get_result)?,
        ];
        Ok(ActionServer { services, action, name })
    }
}

/// Outcome of a request.
type Answered = Result<(), AnswerError>;

/// A request that was not answered. A path can be wrong only where a type of the action is not what
/// rosidl derives.
enum AnswerError {
    Path(PathError),
    Node(NodeError),
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(error) => error.fmt(f),
            Self::Node(error) => error.fmt(f),
        }
    }
}

impl From<PathError> for AnswerError {
    fn from(error: PathError) -> Self {
        Self::Path(error)
    }
}

impl From<NodeError> for AnswerError {
    fn from(error: NodeError) -> Self {
        Self::Node(error)
    }
}

impl Action {
    fn now(&self) -> Stamp {
        (self.clock)()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn send_goal(self: &Arc<Self>, request: Request) -> Answered {
        let id = goal_id(request.message(), "goal_id.uuid");
        let now = self.now();
        let mut response = request.response();
        let accepted = self.take_in(&request, id, now);
        response.set("accepted", accepted.is_ok())?;
        set_time(&mut response, "stamp", now)?;
        // The client knows that its goal is accepted before anything happens to it.
        let answered = request.answer(&response);
        match accepted {
            Ok(message) => {
                self.tell();
                self.start(Goal { id, message, action: Arc::clone(self) });
            }
            Err(why) => tracing::info!("a goal was not accepted: {why}"),
        }
        Ok(answered?)
    }

    fn take_in(&self, request: &Request, id: GoalId, now: Stamp) -> Result<Message, &'static str> {
        let goal = request.message().message("goal").ok_or("a request without a goal")?;
        if !self.handler.accepts(goal) {
            return Err("the action does not take it");
        }
        let mut state = self.lock();
        if state.closing {
            return Err("the action server is closing");
        }
        state.goals.accept(id, now)?;
        Ok(goal.clone())
    }

    fn start(self: &Arc<Self>, goal: Goal) {
        let id = goal.id;
        let run = move || {
            let action = Arc::clone(&goal.action);
            action.lock().goals.begin(&id);
            action.tell();
            let (status, result) = match action.handler.execute(&goal) {
                Ending::Succeeded(result) => (Status::Succeeded, result),
                Ending::Canceled(result) => (Status::Canceled, result),
                Ending::Aborted(result) => (Status::Aborted, result),
            };
            action.end(id, status, result);
        };
        match std::thread::Builder::new().name("ros action".into()).spawn(run) {
            Ok(thread) => {
                let mut state = self.lock();
                state.threads.retain(|thread| !thread.is_finished());
                state.threads.push(thread);
            }
            Err(error) => {
                tracing::error!("no thread for a goal: {error}");
                self.end(id, Status::Aborted, Message::new(&self.result));
            }
        }
    }

    fn end(&self, id: GoalId, status: Status, mut result: Message) {
        if *result.ty() != self.result {
            tracing::error!("a goal ended with a {} for a result", result.ty().name);
            result = Message::new(&self.result);
        }
        let waiting = {
            let mut state = self.lock();
            state.goals.end(&id, status, result.clone(), self.now());
            state.waiting.remove(&id).unwrap_or_default()
        };
        self.tell();
        for request in waiting {
            if let Err(error) = answer_result(request, status, Some(&result)) {
                tracing::warn!("a result was not sent: {error}");
            }
        }
    }

    fn cancel_goal(self: &Arc<Self>, request: Request) -> Answered {
        let message = request.message();
        let id = goal_id(message, "goal_info.goal_id.uuid");
        let until = time(message, "goal_info.stamp");
        let (code, canceling) = self.lock().goals.cancel(&id, until);
        let mut response = request.response();
        response.set("return_code", code as i64)?;
        let mut list = Vec::with_capacity(canceling.len());
        for (id, accepted) in canceling {
            let mut info = response.element("goals_canceling")?;
            set_info(&mut info, "", &id, accepted)?;
            list.push(Value::Message(info));
        }
        response.set("goals_canceling", Value::List(list))?;
        self.tell();
        Ok(request.answer(&response)?)
    }

    fn get_result(self: &Arc<Self>, request: Request) -> Answered {
        let id = goal_id(request.message(), "goal_id.uuid");
        let mut state = self.lock();
        state.goals.expire(self.now());
        let (status, result) = match state.goals.result(&id) {
            Some((status, result)) => (status, Some(result.clone())),
            None => (state.goals.status(&id), None),
        };
        if result.is_none() && status != Status::Unknown {
            let waiting = state.waiting.entry(id).or_default();
            waiting.push_back(request);
            let oldest = if waiting.len() > MOST_WAITING { waiting.pop_front() } else { None };
            drop(state);
            if let Some(oldest) = oldest {
                oldest.refuse("get_result", "too many wait for this goal; ask again later");
            }
            return Ok(());
        }
        drop(state);
        answer_result(request, status, result.as_ref())
    }

    /// Publishes the states of all goals.
    fn tell(&self) {
        // Published under the lock, that an older state does not follow a newer one.
        let state = self.lock();
        let told = || -> Answered {
            let mut message = Message::new(self.status.ty());
            let mut list = Vec::new();
            for (id, accepted, status) in state.goals.all() {
                let mut one = message.element("status_list")?;
                set_info(&mut one, "goal_info.", id, accepted)?;
                one.set("status", status as i64)?;
                list.push(Value::Message(one));
            }
            message.set("status_list", Value::List(list))?;
            Ok(self.status.publish(&message)?)
        };
        if let Err(error) = told() {
            tracing::debug!("the states of goals were not published: {error}");
        }
    }
}

impl Goal {
    /// The id that the client chose.
    #[must_use]
    pub fn id(&self) -> GoalId {
        self.id
    }

    /// The wanted value.
    #[must_use]
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// A result to fill in: with its defaults.
    #[must_use]
    pub fn result(&self) -> Message {
        Message::new(&self.action.result)
    }

    /// Returns true if a client wants the goal ended.
    #[must_use]
    pub fn is_canceling(&self) -> bool {
        let state = self.action.lock();
        state.closing || state.goals.status(&self.id) == Status::Canceling
    }

    /// Feedback to fill in: with its defaults, the goal's id set. Its fields are below `feedback`.
    ///
    /// # Errors
    /// The type of the feedback is not what rosidl derives.
    pub fn feedback(&self) -> Result<Message, PathError> {
        let mut message = Message::new(self.action.feedback.ty());
        message.set("goal_id.uuid", Value::Bytes(self.id.to_vec()))?;
        Ok(message)
    }

    /// Tells how far it is.
    ///
    /// # Errors
    /// It is another message than that of [`Self::feedback`], or the node is gone.
    pub fn send_feedback(&self, message: &Message) -> Result<(), NodeError> {
        self.action.feedback.publish(message)
    }
}

impl fmt::Debug for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "goal {:02x?}", self.id)
    }
}

impl ActionServer {
    /// The action's absolute name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for ActionServer {
    fn drop(&mut self) {
        self.services.clear();
        let threads = {
            let mut state = self.action.lock();
            state.closing = true;
            state.waiting.clear();
            std::mem::take(&mut state.threads)
        };
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("{}: the work on a goal panicked", self.name);
            }
        }
    }
}

impl fmt::Debug for ActionServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "action {}", self.name)
    }
}

fn answer_result(request: Request, status: Status, result: Option<&Message>) -> Answered {
    let mut response = request.response();
    response.set("status", status as i64)?;
    if let Some(result) = result {
        response.set("result", Value::Message(result.clone()))?;
    }
    Ok(request.answer(&response)?)
}

/// Zeros where there is none.
fn goal_id(message: &Message, path: &str) -> GoalId {
    message.bytes(path).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default()
}

fn time(message: &Message, path: &str) -> Stamp {
    let part = |part: &str| message.i64(&format!("{path}.{part}")).unwrap_or_default();
    let sec = i32::try_from(part("sec")).unwrap_or_default();
    Stamp::from_ros(sec, u32::try_from(part("nanosec")).unwrap_or_default())
}

/// A time that `builtin_interfaces/Time` cannot say is left at zero.
fn set_time(message: &mut Message, path: &str, at: Stamp) -> Result<(), PathError> {
    let (sec, nanosec) = at.to_ros().unwrap_or_default();
    message.set(&format!("{path}.sec"), i64::from(sec))?;
    message.set(&format!("{path}.nanosec"), u64::from(nanosec))
}

fn set_info(
    message: &mut Message,
    at: &str,
    id: &GoalId,
    accepted: Stamp,
) -> Result<(), PathError> {
    message.set(&format!("{at}goal_id.uuid"), Value::Bytes(id.to_vec()))?;
    set_time(message, &format!("{at}stamp"), accepted)
}
