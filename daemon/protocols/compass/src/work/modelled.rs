//! A model's summary in the place of an extracted one: asked for, paid for, judged.

use omird_router::DEFAULT_TENANT;

use crate::call::Call;
use crate::compress::{Compressed, Source};
use crate::failure::Failure;
use crate::model::{Question, Wish, judged, price};
use crate::money::{NotReserved, dollars};
use crate::names::{Sort, name};
use crate::signals::{Signal, SignalType};
use crate::state::Task;
use crate::store::Store;

/// Reads if the caller insists on a model. The call may ask one from here on.
pub(crate) fn take_wish(call: &mut Call<'_>) -> Result<(), Failure> {
    let is_required = call.params.flag("require_model")? == Some(true);
    call.model.wish = if is_required { Wish::Required } else { Wish::Wanted };
    if is_required && (call.shared.model().is_none() || !call.settings.test_time_scaling_enabled) {
        return Err(Failure::no_model());
    }
    Ok(())
}

/// Returns a model's summary of what is extracted already, or that one.
pub(crate) fn improved(
    call: &Call<'_>,
    task: &Task,
    sources: &[Source],
    extracted: Compressed,
) -> Result<Compressed, Failure> {
    let is_required = call.model.wish == Wish::Required;
    if call.model.wish == Wish::None || !call.settings.test_time_scaling_enabled {
        return Ok(extracted);
    }
    let known = call.model.last.borrow().clone();
    if let Some((_, made)) = known.filter(|(known, _)| known.as_slice() == sources) {
        return Ok(made);
    }
    if call.shared.model().is_none() {
        return Ok(extracted);
    }
    match asked(call, task, sources, &extracted) {
        Ok(made) => {
            *call.model.last.borrow_mut() = Some((sources.to_vec(), made.clone()));
            Ok(made)
        }
        Err(refused) if is_required => Err(match refused {
            Refused::Capped => Failure::no_money(),
            Refused::Silent(why) => Failure::not_compressed(format!("the model: {why}")),
        }),
        Err(refused) => {
            if let Refused::Silent(why) = &refused {
                tracing::warn!(why, "a summary was extracted, because the model did not make one");
            }
            call.model.is_missed.set(true);
            Ok(extracted)
        }
    }
}

/// Why there is no summary of the model.
enum Refused {
    Capped,
    Silent(String),
}

fn asked(
    call: &Call<'_>,
    task: &Task,
    sources: &[Source],
    extracted: &Compressed,
) -> Result<Compressed, Refused> {
    let (settings, shared) = (call.settings, call.shared);
    let silent = |why: &str| Refused::Silent(why.to_owned());
    let model = shared.model().ok_or_else(|| silent("there is none"))?;
    let question = Question::of(settings, sources, extracted.output_tokens);
    let question = question.ok_or_else(|| silent("the texts are too long for one request"))?;
    let dearest = question.dearest(settings);
    let reserved = match shared.account.reserve(&shared.engine, settings, question.worst(settings))
    {
        Ok(reserved) => reserved,
        Err(NotReserved::Capped) => return Err(Refused::Capped),
        Err(NotReserved::Failed(failure)) => return Err(Refused::Silent(failure.error.message)),
    };
    let answer = model.ask(settings, &question);
    let lost = match &answer {
        Ok(said) => said.lost,
        Err(silent) => silent.lost,
    };
    let paid = answer.as_ref().map_or(0, |said| price(settings, said.tokens));
    let cost = paid.saturating_add(dearest.saturating_mul(lost));
    let settled = shared.account.settle(&shared.engine, settings, reserved, cost);
    call.model.cost.set(call.model.cost.get().saturating_add(cost));
    if let Some((share, month)) = settled.alert {
        tracing::warn!(share, month, "the money for models runs out");
        alert(call, task, share, &month);
    }
    let said = answer.map_err(|silent| Refused::Silent(silent.message))?;
    let mut made = judged(settings, sources, extracted, &said.text)
        .map_err(|why| Refused::Silent(format!("its summary is not taken: {why}")))?;
    made.cost_usd = dollars(cost);
    Ok(made)
}

/// Tells that the money runs out.
fn alert(call: &Call<'_>, task: &Task, share: f64, month: &str) {
    let names =
        (name(Sort::Task, &task.tenant, &task.task_id), name(Sort::Budget, DEFAULT_TENANT, month));
    let (Ok(task_name), Ok(about)) = names else { return };
    call.shared.announcer.tell(&Signal {
        signal_type: SignalType::Budget,
        value: share,
        threshold: call.settings.alert_threshold_pct,
        task_id: task.task_id.clone(),
        agent_id: task.agent_id.clone(),
        at: Store::stamp(call.store.now().0),
        task: task_name,
        about,
    });
}
