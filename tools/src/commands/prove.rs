//! `omir prove`: a proof that a device sealed a resource, by a daemon or from a folder.

use std::path::Path;

use omir_core::code::Code;
use omir_core::json;
use omir_core::proof::Proof;
use omir_core::reference::Ref;
use omir_core::value::Value;
use omird::store::inspect::NoProof;

use super::{backup, store};
use crate::cli::{Globals, ProveArgs};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::selector::Parameters;
use crate::{document, id_prefix, output, progress};

pub(super) fn run(globals: &Globals, args: &ProveArgs) -> Result<()> {
    let (target, proof) = match &args.data {
        Some(data) => of_folder(globals, data, &args.reference)?,
        None => of_daemon(globals, args)?,
    };
    // The receiver will do the same.
    let read = Proof::from_value(&proof);
    let is_right = read.as_ref().is_ok_and(|proof| proof.reference().as_ref() == Some(&target));
    let verified = read.and_then(|proof| proof.verify(&proof.seal.public_key));
    match verified {
        Ok(_) if is_right => {}
        Ok(_) => {
            return Err(Error::Partial(format!(
                "the answer is a proof of something else than {target}"
            )));
        }
        Err(fault) => {
            return Err(Error::Partial(format!("the answer is not a proof that holds: {fault}")));
        }
    }
    let text = json::to_string_pretty(&proof) + "\n";
    match &args.output {
        Some(file) => document::write_bytes(file, text.as_bytes()),
        None => Ok(output::print(&text)?),
    }
}

fn of_folder(globals: &Globals, data: &Path, named: &Ref) -> Result<(Ref, Value)> {
    let folder = store::open(globals, data)?;
    let history = store::read(globals, &folder, data)?;
    let target = store::meant(&history, named.clone())?;
    let proof = folder.prove(&history, &target).map_err(|why| match why {
        NoProof::Nothing(why) => Error::not_found(why.to_string()),
        NoProof::Unsealed { .. } => {
            Error::Negative { code: Code::Conflict.as_str(), message: format!("{target}: {why}") }
        }
        why => Error::input(data, why),
    })?;
    let value = proof.to_value().map_err(|fault| Error::input(data, fault))?;
    Ok((target, value))
}

fn of_daemon(globals: &Globals, args: &ProveArgs) -> Result<(Ref, Value)> {
    let mut client = Client::open(globals)?;
    let robot = client.robot(globals.robot.as_deref())?;
    if args.seal {
        client.be_patient(backup::AT_LEAST);
    }
    let (target, reply) = id_prefix::with(&client, &robot, &args.reference, |reference| {
        let mut parameters = Parameters::new();
        parameters.push("ref", &reference.to_string());
        let ask = || client.ask(&robot, "prove", &parameters, None);
        match ask() {
            Err(error) if args.seal && error.code() == Code::Conflict.as_str() => {
                let spinner =
                    progress::spinner(globals, &format!("{robot} seals what it remembers"));
                let offer = backup::list(&client, &robot)?;
                spinner.finish_and_clear();
                if let Some(why) = offer.unsealed {
                    return Err(Error::Partial(format!(
                        "{robot} could not seal everything: {why}"
                    )));
                }
                ask()
            }
            answer => answer,
        }
    })?;
    Ok((target, reply.value()?))
}
