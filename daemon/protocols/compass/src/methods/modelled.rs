//! A model's summary in the place of an extracted one: asked for, paid for, judged.

use crate::call::Call;
use crate::compress::{Compressed, Source};
use crate::failure::Failure;
use crate::model::Preference;
use crate::model::server::Patience;
use crate::model::summary::{Question, judged};
use crate::money::account::dollars;
use crate::money::paying::{self, NoAnswer, Paid, Requester};
use crate::state::Task;

/// Reads if the caller insists on a model. The call may ask one from here on.
pub(crate) fn take_preference(call: &mut Call<'_>) -> Result<(), Failure> {
    let is_required = call.params.flag("require_model")? == Some(true);
    call.model.preference = if is_required { Preference::Required } else { Preference::Preferred };
    if is_required
        && (call.shared.summarizer().is_none() || !call.settings.test_time_scaling_enabled)
    {
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
    let is_required = call.model.preference == Preference::Required;
    if call.model.preference == Preference::None || !call.settings.test_time_scaling_enabled {
        return Ok(extracted);
    }
    let known = call.model.last.borrow().clone();
    if let Some((_, made)) = known.filter(|(known, _)| known.as_slice() == sources) {
        return Ok(made);
    }
    if call.shared.summarizer().is_none() {
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
    let model = shared.summarizer().ok_or_else(|| silent("there is none"))?;
    let question = Question::of(settings, sources, extracted.output_tokens);
    let question = question.ok_or_else(|| silent("the texts are too long for one request"))?;
    let (patience, requester) = (Patience::long(settings), Requester::of(task));
    let Paid { answer, cost } =
        paying::ask(shared.purse(), settings, model, &question, &patience, Some(&requester));
    call.model.cost.set(call.model.cost.get().saturating_add(cost));
    let text = answer.map_err(|why| match why {
        NoAnswer::Capped => Refused::Capped,
        NoAnswer::Silent(why) => Refused::Silent(why.message),
    })?;
    let mut made = judged(settings, sources, extracted, &text)
        .map_err(|why| Refused::Silent(format!("its summary is not taken: {why}")))?;
    made.cost_usd = dollars(cost);
    Ok(made)
}
