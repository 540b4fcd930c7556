//! A request to a model that is paid for: its price is set aside before, and settled after.

use omird_engine::Engine;
use omird_router::DEFAULT_TENANT;

use super::account::{Account, NotReserved};
use crate::model::server::{Patience, Request, Server, Silent, Why};
use crate::names::{Sort, name};
use crate::settings::Settings;
use crate::signals::{Announcer, Signal, SignalType};
use crate::state::Task;
use crate::store::Store;

/// The parts that a payment needs of those that all calls share.
#[derive(Clone, Copy)]
pub(crate) struct Purse<'s> {
    pub(crate) engine: &'s Engine,
    pub(crate) account: &'s Account,
    pub(crate) announcer: &'s Announcer,
}

/// The task that a request is made for, which is told where money runs out.
#[derive(Debug, Clone)]
pub(crate) struct Requester {
    pub(crate) tenant: String,
    pub(crate) agent: String,
    pub(crate) task: String,
}

impl Requester {
    /// Returns the task itself.
    pub(crate) fn of(task: &Task) -> Self {
        let (tenant, agent) = (task.tenant.clone(), task.agent_id.clone());
        Self { tenant, agent, task: task.task_id.clone() }
    }
}

/// The reason for which there is no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// The money of the month is used up.
    Capped,
    /// The server says nothing, or what it could cost could not be written down.
    Silent(Silent),
}

/// The end of a request, and what it cost in millionths of a dollar.
pub(crate) struct Paid<T> {
    pub(crate) answer: Result<T, NoAnswer>,
    pub(crate) cost: u64,
}

/// Asks, if there is money for all tries. What was or may have been worked on is paid for.
pub(crate) fn ask<R: Request>(
    purse: Purse<'_>,
    settings: &Settings,
    server: &Server,
    request: &R,
    patience: &Patience,
    requester: Option<&Requester>,
) -> Paid<R::Content> {
    let dearest = request.dearest(settings);
    let worst = dearest.saturating_mul(patience.tries());
    let reserved = match purse.account.reserve(purse.engine, settings, worst) {
        Ok(reserved) => reserved,
        Err(NotReserved::Capped) => return Paid { answer: Err(NoAnswer::Capped), cost: 0 },
        Err(NotReserved::Failed(failure)) => {
            let message = failure.error.message;
            let silent = Silent { message, lost: 0, why: Why::NotAsked };
            return Paid { answer: Err(NoAnswer::Silent(silent)), cost: 0 };
        }
    };
    let answer = server.ask(request, patience);
    let (paid, lost) = match &answer {
        Ok(response) => (R::price(settings, response.tokens), response.lost),
        Err(silent) => (0, silent.lost),
    };
    let cost = paid.saturating_add(dearest.saturating_mul(lost));
    let settled = purse.account.settle(purse.engine, settings, reserved, cost);
    if let Some((share, month)) = settled.alert {
        tracing::warn!(share, month, "the money for models runs out");
        if let Some(requester) = requester {
            alert(purse, settings, requester, share, &month);
        }
    }
    Paid { answer: answer.map(|answer| answer.content).map_err(NoAnswer::Silent), cost }
}

/// Tells that the money runs out.
fn alert(purse: Purse<'_>, settings: &Settings, requester: &Requester, share: f64, month: &str) {
    let Requester { tenant, agent, task } = requester;
    let names = (name(Sort::Task, tenant, task), name(Sort::Budget, DEFAULT_TENANT, month));
    let (Ok(task_name), Ok(about)) = names else { return };
    purse.announcer.tell(&Signal {
        signal_type: SignalType::Budget,
        value: share,
        threshold: settings.alert_threshold_pct,
        task_id: task.clone(),
        agent_id: agent.clone(),
        at: Store::stamp(Store::new(purse.engine, tenant).now().0),
        task: task_name,
        about,
    });
}
